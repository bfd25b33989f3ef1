//! Instruction files: AGENTS.md, CLAUDE.md and their kin.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::util::git::Repository;

/// In each folder the first of these that is a file counts.
const NAMES: &[&str] = &["AGENTS.override.md", "AGENTS.md", "AGENTS.MD", "CLAUDE.md", "CLAUDE.MD"];

/// An instruction file with its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextFile {
    pub path: PathBuf,
    pub text: String,
}

/// The instruction files that hold for `cwd`: the user's own in `agent_dir`
/// first, then from the file system's root down. Files that cannot be read are
/// left out. Blocks.
pub fn context_files(agent_dir: &Path, cwd: &Path) -> Vec<ContextFile> {
    let mut folders: Vec<&Path> = cwd.ancestors().collect();
    folders.push(agent_dir);
    folders.reverse();
    let shadowed = shadowed_checkout(cwd);
    let mut seen = HashSet::new();
    folders
        .into_iter()
        .filter_map(|folder| {
            let file = first_file(folder)?;
            let hidden = shadowed.as_ref().is_some_and(|(main, names)| {
                folder == main && names.iter().any(|name| file.path.ends_with(name))
            });
            let canonical = fs::canonicalize(&file.path).unwrap_or_else(|_| file.path.clone());
            (!hidden && seen.insert(canonical)).then_some(file)
        })
        .collect()
}

fn first_file(folder: &Path) -> Option<ContextFile> {
    NAMES.iter().find_map(|name| {
        let path = folder.join(name);
        if !path.is_file() {
            return None;
        }
        let bytes = fs::read(&path).ok()?;
        let text = String::from_utf8_lossy(&bytes);
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text).trim().to_owned();
        Some(ContextFile { path, text })
    })
}

/// A worktree inside its own main checkout has the main checkout's files above
/// it a second time: that checkout's folder, and the names the worktree has too.
fn shadowed_checkout(cwd: &Path) -> Option<(PathBuf, Vec<&'static str>)> {
    let worktree = cwd.ancestors().find(|folder| folder.join(".git").is_file())?;
    let main = worktree.ancestors().skip(1).find(|folder| folder.join(".git").is_dir())?;
    let linked = Repository::find(worktree)?.head_path().starts_with(main.join(".git"));
    let names = NAMES.iter().copied().filter(|name| worktree.join(name).is_file()).collect();
    linked.then(|| (main.to_owned(), names))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(files: &[(&str, &str)], cwd: &str, expected: &[&str]) {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        fs::create_dir_all(root.path().join(cwd)).unwrap();
        let found: Vec<String> = context_files(&root.path().join("agent"), &root.path().join(cwd))
            .into_iter()
            .filter_map(|file| {
                let relative = file.path.strip_prefix(root.path()).ok()?;
                Some(format!("{}={}", relative.display(), file.text))
            })
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn the_users_file_comes_first_then_from_the_root_down() {
        check(
            &[("agent/AGENTS.md", "mine"), ("a/AGENTS.md", "\u{feff}outer"), ("a/b/CLAUDE.md", "inner")],
            "a/b",
            &["agent/AGENTS.md=mine", "a/AGENTS.md=outer", "a/b/CLAUDE.md=inner"],
        );
    }

    #[test]
    fn one_file_counts_per_folder_and_folders_do_not() {
        check(&[("a/AGENTS.md/x", ""), ("a/CLAUDE.md", "c")], "a", &["a/CLAUDE.md=c"]);
        check(
            &[("a/AGENTS.md", "plain"), ("a/AGENTS.override.md", "override")],
            "a",
            &["a/AGENTS.override.md=override"],
        );
    }

    #[test]
    fn a_worktree_inside_its_checkout_does_not_see_the_same_file_twice() {
        check(
            &[
                ("main/.git/HEAD", "ref: refs/heads/main"),
                ("main/.git/worktrees/w/HEAD", "ref: refs/heads/w"),
                ("main/AGENTS.md", "main"),
                ("main/w/.git", "gitdir: ../.git/worktrees/w"),
                ("main/w/AGENTS.md", "w"),
            ],
            "main/w",
            &["main/w/AGENTS.md=w"],
        );
    }
}
