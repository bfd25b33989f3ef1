//! The settings `skills`, `prompts` and `themes`: locations to search, and filters for what the
//! folders of the same layer contain.
//!
//! `path` is a location. `!glob` excludes matching files, `+path` includes one
//! nevertheless, `-path` always excludes one. Relative paths start in the folder of the
//! settings file. Pure.

use std::path::{Path, PathBuf};

use globset::{Glob, GlobSet, GlobSetBuilder};

use crate::util::paths;

use super::skills::SKILL_FILE;

/// The files that the settings exclude.
#[derive(Debug)]
pub struct Filter {
    base: PathBuf,
    excluded: GlobSet,
    kept: Vec<PathBuf>,
    dropped: Vec<PathBuf>,
}

impl Filter {
    /// Splits the entries into the filter, the locations, and problems with globs, one line
    /// each.
    pub fn new(entries: &[String], base: &Path, home: Option<&Path>) -> (Self, Vec<PathBuf>, Vec<String>) {
        let absolute = |path: &str| paths::normalise(&base.join(paths::expand_home(path, home)));
        let mut excluded = GlobSetBuilder::new();
        let (mut kept, mut dropped) = (Vec::new(), Vec::new());
        let (mut places, mut problems) = (Vec::new(), Vec::new());
        for entry in entries.iter().map(|entry| entry.trim()).filter(|entry| !entry.is_empty()) {
            if let Some(glob) = entry.strip_prefix('!') {
                let glob = paths::expand_home(glob.trim_start_matches("./"), home);
                match Glob::new(&glob.to_string_lossy()) {
                    Ok(glob) => drop(excluded.add(glob)),
                    Err(error) => problems.push(error.to_string()),
                }
            } else if let Some(path) = entry.strip_prefix('+') {
                kept.push(absolute(path));
            } else if let Some(path) = entry.strip_prefix('-') {
                dropped.push(absolute(path));
            } else {
                places.push(absolute(entry));
            }
        }
        let excluded = excluded.build().unwrap_or_else(|error| {
            problems.push(error.to_string());
            GlobSet::empty()
        });
        (Self { base: base.to_owned(), excluded, kept, dropped }, places, problems)
    }

    /// The locations that entries name. Relative ones begin at `base`.
    pub fn locations(entries: &[String], base: &Path, home: Option<&Path>) -> Vec<PathBuf> {
        Self::new(entries, base, home).1
    }

    /// Whether the file `path` is used.
    pub fn keeps(&self, path: &Path) -> bool {
        let path = paths::normalise(path);
        // A path refers to a skill by its file or by its folder.
        let folder = path.parent().filter(|_| path.ends_with(SKILL_FILE));
        let forms: Vec<&Path> = [Some(path.as_path()), folder].into_iter().flatten().collect();
        let is_named = |list: &[PathBuf]| list.iter().any(|one| forms.contains(&one.as_path()));
        let is_excluded = forms.iter().any(|form| {
            let relative = form.strip_prefix(&self.base).ok();
            let name = form.file_name().map(Path::new);
            [Some(*form), relative, name].into_iter().flatten().any(|one| self.excluded.is_match(one))
        });
        !is_named(&self.dropped) && (!is_excluded || is_named(&self.kept))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(entries: &[&str], path: &str, expected: bool) {
        let entries: Vec<String> = entries.iter().map(|&entry| entry.to_owned()).collect();
        let (filter, _, problems) = Filter::new(&entries, Path::new("/agent"), Some(Path::new("/home/me")));
        assert!(problems.is_empty(), "{problems:?}");
        assert_eq!(filter.keeps(Path::new(path)), expected, "{entries:?} {path}");
    }

    #[test]
    fn globs_leave_out_by_path_folder_or_name() {
        check(&[], "/agent/skills/a/SKILL.md", true);
        check(&["!a"], "/agent/skills/a/SKILL.md", false);
        check(&["!skills/a"], "/agent/skills/a/SKILL.md", false);
        check(&["!skills/*-old"], "/agent/skills/b-old/SKILL.md", false);
        check(&["!~/.agents/**"], "/home/me/.agents/skills/a/SKILL.md", false);
        check(&["!a.md"], "/agent/skills/a.md", false);
        check(&["!skills"], "/agent/skills/a.md", true);
        check(&["!b"], "/agent/skills/a/SKILL.md", true);
    }

    #[test]
    fn a_plus_keeps_against_globs_and_a_minus_wins_over_all() {
        let entries = ["!skills/**", "+skills/a", "+skills/b", "-skills/b/SKILL.md"];
        check(&entries, "/agent/skills/a/SKILL.md", true);
        check(&entries, "/agent/skills/b/SKILL.md", false);
        check(&entries, "/agent/skills/c/SKILL.md", false);
        check(&["-skills/a"], "/agent/skills/a-b/SKILL.md", true);
    }

    #[test]
    fn other_entries_are_places() {
        let entries = ["more", "/abs", "~/mine", " ", "!x[", "./a/../b"].map(str::to_owned);
        let (_, places, problems) = Filter::new(&entries, Path::new("/agent"), Some(Path::new("/home/me")));
        assert_eq!(places, ["/agent/more", "/abs", "/home/me/mine", "/agent/b"].map(PathBuf::from));
        assert!(matches!(&problems[..], [problem] if problem.contains("x[")), "{problems:?}");
    }
}
