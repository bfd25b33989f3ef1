//! Finds candidates for skills below one folder.
//!
//! A folder with a `SKILL.md` is a skill, and folders inside it are not searched.
//! Markdown files directly in the root may be skills. This module reads folders and
//! ignore files, not skills. It searches level by level, so that a tree above the limit
//! is still searched near its root.

use std::collections::{HashSet, VecDeque};
use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::util::os::{self, FileId};

use super::{SKILL_FILE, SkillProblem};

/// Maximum number of files and folders visited below one root.
pub(super) const MAX_ENTRIES: usize = 5_000;
/// Number of names of one folder that are sorted; beyond it, the disk determines the order.
const LARGE_FOLDER: usize = 50_000;
/// Maximum depth of a skill, in folders.
pub(super) const MAX_DEPTH: usize = 8;
/// Maximum size of an ignore file, in bytes.
const MAX_IGNORE_BYTES: u64 = 256 << 10;

/// Later ones win over earlier ones of the same folder.
const IGNORE_FILES: &[&str] = &[".gitignore", ".ignore", ".fdignore"];
/// Markdown files that are common beside skills.
const NOT_SKILLS: &[&str] = &["readme.md", "agents.md", "claude.md"];

/// A file that may be a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) path: PathBuf,
    /// The name, unless the file contains another.
    pub(super) default_name: String,
    /// A file in a root with a name other than `SKILL.md`; it may not be a skill.
    pub(super) is_lone: bool,
    /// The same for all links to the file.
    pub(super) file: FileId,
}

/// The candidates, and the problems of the search.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) candidates: Vec<Candidate>,
    pub(super) problems: Vec<SkillProblem>,
}

impl Found {
    /// Adds `path`: a file is itself a candidate, a folder is searched.
    /// Blocks.
    pub(super) fn look_at(&mut self, path: &Path) {
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => self.search(path),
            Ok(metadata) if metadata.is_file() => {
                self.candidates.push(Candidate { is_lone: false, ..candidate(path.to_owned(), &metadata) });
            }
            _ => self.problems.push(SkillProblem::Missing { path: path.to_owned() }),
        }
    }

    fn search(&mut self, root: &Path) {
        let first = self.candidates.len();
        let mut folders = VecDeque::from([Folder { path: root.to_owned(), depth: 0, rules: None }]);
        let mut visited = HashSet::new();
        let mut n_entries = 0;
        // Links may form cycles, or lead to the same place twice.
        let mut is_new = |metadata: &Metadata| visited.insert(os::file_id(metadata));
        while let Some(folder) = folders.pop_front() {
            let skill = folder.path.join(SKILL_FILE);
            if let Some(metadata) = fs::metadata(&skill).ok().filter(Metadata::is_file) {
                if is_new(&metadata) {
                    self.candidates.push(candidate(skill, &metadata));
                }
                continue;
            }
            if !fs::metadata(&folder.path).is_ok_and(|metadata| is_new(&metadata)) {
                continue;
            }
            if folder.depth == MAX_DEPTH {
                self.problems.push(SkillProblem::TooDeep { folder: folder.path });
            } else if n_entries <= MAX_ENTRIES {
                self.read(folder, &mut folders, &mut n_entries);
            }
        }
        if n_entries > MAX_ENTRIES {
            self.problems.push(SkillProblem::TooManyEntries { root: root.to_owned() });
        }
        // Folders list their entries in arbitrary order.
        if let Some(found) = self.candidates.get_mut(first..) {
            found.sort_by(|a, b| a.path.cmp(&b.path));
        }
    }

    /// Reads a folder that is not a skill.
    fn read(&mut self, folder: Folder, folders: &mut VecDeque<Folder>, n_entries: &mut usize) {
        let entries = match fs::read_dir(&folder.path) {
            Ok(entries) => entries,
            Err(source) => {
                return self.problems.push(SkillProblem::Unreadable { path: folder.path, source });
            }
        };
        let rules = self.rules_of(&folder);
        let depth = folder.depth + 1;
        // Sorted, because the limit may drop the last ones.
        let mut entries: Vec<fs::DirEntry> = entries.flatten().take(LARGE_FOLDER).collect();
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            *n_entries += 1;
            if *n_entries > MAX_ENTRIES {
                return;
            }
            let name = entry.file_name();
            if name.as_encoded_bytes().starts_with(b".") || name == "node_modules" {
                continue;
            }
            let path = entry.path();
            // A link counts as its target.
            let is_folder = match entry.file_type() {
                Ok(kind) if !kind.is_symlink() => kind.is_dir(),
                _ => path.is_dir(),
            };
            if is_ignored(rules.as_ref(), &path, is_folder) {
                continue;
            }
            if is_folder {
                folders.push_back(Folder { path, depth, rules: rules.clone() });
            } else if folder.depth == 0
                && may_be_skill(&path)
                && let Some(metadata) = fs::metadata(&path).ok().filter(Metadata::is_file)
            {
                self.candidates.push(candidate(path, &metadata));
            }
        }
    }

    /// The ignore files that apply to a folder: its own, and those above it up to
    /// the root. Those above the root do not apply, because many keep `.pi` itself out of git.
    fn rules_of(&mut self, folder: &Folder) -> Option<Arc<Rules>> {
        let mut builder = GitignoreBuilder::new(&folder.path);
        let mut is_empty = true;
        for name in IGNORE_FILES {
            let path = folder.path.join(name);
            let Ok(metadata) = fs::metadata(&path) else { continue };
            if !metadata.is_file() {
                continue;
            }
            if metadata.len() > MAX_IGNORE_BYTES {
                self.problems.push(SkillProblem::LongIgnoreFile { path });
                continue;
            }
            // Invalid patterns are skipped, as in git.
            drop(builder.add(path));
            is_empty = false;
        }
        match builder.build() {
            Ok(own) if !is_empty => Some(Arc::new(Rules { own, above: folder.rules.clone() })),
            _ => folder.rules.clone(),
        }
    }
}

/// A folder to read.
struct Folder {
    path: PathBuf,
    /// 0 for the root.
    depth: usize,
    /// The rules of its parent folders.
    rules: Option<Arc<Rules>>,
}

/// The ignore files of a folder.
struct Rules {
    own: Gitignore,
    above: Option<Arc<Self>>,
}

/// Applies the nearest rules first. Ignored folders are never entered, so
/// their parents need no check.
fn is_ignored(rules: Option<&Arc<Rules>>, path: &Path, is_folder: bool) -> bool {
    let mut next = rules;
    while let Some(rules) = next {
        match rules.own.matched(path, is_folder) {
            Match::Ignore(_) => return true,
            Match::Whitelist(_) => return false,
            Match::None => next = rules.above.as_ref(),
        }
    }
    false
}

fn may_be_skill(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    name.ends_with(".md") && !NOT_SKILLS.contains(&name.as_str())
}

/// A `SKILL.md` is named for its folder, any other file for itself.
fn candidate(path: PathBuf, metadata: &Metadata) -> Candidate {
    let is_lone = path.file_name().is_none_or(|name| name != SKILL_FILE);
    let named_for = if is_lone { path.file_stem() } else { path.parent().and_then(Path::file_name) };
    let default_name = named_for.unwrap_or_default().to_string_lossy().into_owned();
    Candidate { path, default_name, is_lone, file: os::file_id(metadata) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files below a root; a text for ignore files, folders for links.
    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    fn found(root: &Path) -> (Vec<String>, Vec<String>) {
        let mut found = Found::default();
        found.look_at(root);
        let shown = |path: &Path| path.strip_prefix(root).unwrap().display().to_string();
        let candidates =
            found.candidates.iter().map(|one| format!("{}={}", one.default_name, shown(&one.path))).collect();
        let problems =
            found.problems.iter().map(|one| one.to_string().replace(root.to_str().unwrap(), "ROOT"));
        (candidates, problems.collect())
    }

    #[track_caller]
    fn check(files: &[(&str, &str)], expected: &[&str]) {
        let root = tree(files);
        assert_eq!(found(root.path()), (expected.iter().map(|&one| one.to_owned()).collect(), Vec::new()));
    }

    #[test]
    fn folders_with_skills_are_found_and_not_entered() {
        check(
            &[("b/SKILL.md", ""), ("b/inner/SKILL.md", ""), ("a/x/SKILL.md", ""), ("a/x.md", "")],
            &["x=a/x/SKILL.md", "b=b/SKILL.md"],
        );
        let root = tree(&[("SKILL.md", ""), ("a/SKILL.md", ""), ("b.md", "")]);
        let (candidates, _) = found(root.path());
        assert_eq!(candidates.len(), 1, "{candidates:?}");
    }

    #[test]
    fn markdown_in_the_root_may_be_a_skill() {
        check(
            &[
                ("one.md", ""),
                ("Two.MD", ""),
                ("README.md", ""),
                ("AGENTS.md", ""),
                ("Claude.md", ""),
                ("a.txt", ""),
            ],
            &["Two=Two.MD", "one=one.md"],
        );
    }

    #[test]
    fn hidden_and_foreign_folders_are_skipped() {
        check(
            &[
                (".git/a/SKILL.md", ""),
                ("node_modules/a/SKILL.md", ""),
                ("x/node_modules/b/SKILL.md", ""),
                (".a.md", ""),
            ],
            &[],
        );
    }

    #[test]
    fn ignore_files_hold_for_their_folder_and_below() {
        check(
            &[
                (".gitignore", "/drafts\n*.tmp\nold-*\n"),
                ("drafts/a/SKILL.md", ""),
                ("x/drafts/SKILL.md", ""),
                ("x/.ignore", "b\n!old-c\n"),
                ("x/b/SKILL.md", ""),
                ("x/old-c/SKILL.md", ""),
                ("y/old-d/SKILL.md", ""),
                ("y/.fdignore", "e/\n"),
                ("y/e/SKILL.md", ""),
                ("old-f.md", ""),
            ],
            &["drafts=x/drafts/SKILL.md", "old-c=x/old-c/SKILL.md"],
        );
    }

    #[test]
    fn ignore_files_above_the_root_do_not_hold() {
        let above = tree(&[(".gitignore", "*\n"), (".pi/skills/a/SKILL.md", "")]);
        let (candidates, problems) = found(&above.path().join(".pi/skills"));
        assert_eq!((candidates, problems), (vec!["a=a/SKILL.md".to_owned()], Vec::new()));
    }

    #[test]
    fn links_are_followed_once_and_loops_end() {
        use std::os::unix::fs::symlink;

        let outside = tree(&[("real/SKILL.md", "")]);
        let root = tree(&[("x/keep", "")]);
        symlink(outside.path().join("real"), root.path().join("linked")).unwrap();
        symlink(outside.path().join("real"), root.path().join("twice")).unwrap();
        symlink(root.path(), root.path().join("x/back")).unwrap();
        symlink("nowhere", root.path().join("broken")).unwrap();
        let (candidates, problems) = found(root.path());
        assert_eq!((candidates.len(), problems.len()), (1, 0), "{candidates:?} {problems:?}");
    }

    #[test]
    fn what_is_too_deep_is_said() {
        let deepest = ["d"; MAX_DEPTH].join("/");
        let root =
            tree(&[(&format!("{deepest}/SKILL.md"), ""), (&format!("{}/e/x/SKILL.md", &deepest[2..]), "")]);
        let (candidates, problems) = found(root.path());
        assert_eq!(candidates, [format!("d={deepest}/SKILL.md")]);
        assert!(
            matches!(&problems[..], [one] if one.contains("more than 8 directories deep")),
            "{problems:?}"
        );
    }

    #[test]
    fn a_tree_that_is_too_large_is_seen_in_part() {
        let root = tree(&[("deep/x/SKILL.md", "")]);
        for n in 0..MAX_ENTRIES {
            fs::write(root.path().join(format!("deep/{n}.txt")), "").unwrap();
        }
        // One level higher, and therefore visited.
        fs::create_dir(root.path().join("a")).unwrap();
        fs::write(root.path().join("a/SKILL.md"), "").unwrap();
        let (candidates, problems) = found(root.path());
        assert_eq!(candidates[0], "a=a/SKILL.md");
        assert_eq!(
            problems,
            ["skills: ROOT contains more than 5000 files and directories; the rest was not searched"]
        );
    }
}
