//! Reads a directory's git state from git's files.
//!
//! `git` is run only to read HEAD from a reftable. Layouts: gitrepository-layout(5), `gitdir:` files of
//! worktrees and submodules included.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{os, paths};

/// A working tree and its git directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    /// The top of the working tree.
    pub root: PathBuf,
    /// `<root>/.git`, or the directory in that file.
    pub git_dir: PathBuf,
}

/// The state of HEAD.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Head {
    /// A branch, without `refs/heads/`; it may have no commit yet.
    Branch(String),
    /// No branch: the first seven digits of the commit.
    Detached(String),
}

impl Repository {
    /// The repository whose working tree contains `folder`.
    pub fn find(folder: &Path) -> Option<Self> {
        folder.ancestors().find_map(Self::at)
    }

    /// The repository whose working tree starts at `root`.
    fn at(root: &Path) -> Option<Self> {
        let dot_git = root.join(".git");
        let metadata = fs::metadata(&dot_git).ok()?;
        let git_dir = if metadata.is_dir() {
            dot_git
        } else {
            let pointer = read_start(&dot_git)?;
            let target = pointer.lines().next()?.strip_prefix("gitdir:")?.trim();
            paths::normalise(&root.join(target))
        };
        git_dir.join("HEAD").is_file().then(|| Self { root: root.to_owned(), git_dir })
    }

    /// The file of HEAD.
    pub fn head_path(&self) -> PathBuf {
        self.git_dir.join("HEAD")
    }

    /// The file that changes when another branch is checked out; to be watched.
    pub fn changing_path(&self) -> PathBuf {
        let tables = self.git_dir.join("reftable/tables.list");
        if tables.is_file() { tables } else { self.head_path() }
    }

    /// As [`Self::head`]. Asks git where it stores references in a reftable, if there is one. Blocks.
    pub fn head_or_ask(&self) -> Option<Head> {
        let head = self.head();
        if head.is_some() || !self.git_dir.join("reftable").is_dir() {
            return head;
        }
        let branch = self.ask(&["symbolic-ref", "--short", "-q", "HEAD"]).map(Head::Branch);
        branch.or_else(|| self.ask(&["rev-parse", "--short=7", "HEAD"]).map(Head::Detached))
    }

    /// What git answers, on one line.
    fn ask(&self, args: &[&str]) -> Option<String> {
        let mut git = Command::new("git");
        git.arg("-C").arg(&self.root).args(args).stdin(Stdio::null()).stderr(Stdio::null());
        let output =
            git.env("GIT_OPTIONAL_LOCKS", "0").output().ok().filter(|output| output.status.success())?;
        let answer = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        (!answer.is_empty()).then_some(answer)
    }

    /// `None` if HEAD cannot be read, or is a fixed placeholder because the repository
    /// stores its references in a reftable.
    pub fn head(&self) -> Option<Head> {
        let text = read_start(&self.head_path())?;
        let line = text.lines().next()?.trim();
        if let Some(reference) = line.strip_prefix("ref:") {
            let branch = reference.trim().strip_prefix("refs/heads/")?;
            let placeholder = branch.is_empty() || branch == ".invalid";
            return (!placeholder).then(|| Head::Branch(branch.to_owned()));
        }
        let is_hash = line.len() >= 40 && line.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_hash.then(|| Head::Detached(line.chars().take(7).collect()))
    }
}

/// Reads HEAD or a `gitdir:` file. They are a line long; a longer file is not git's.
fn read_start(path: &Path) -> Option<String> {
    let mut text = String::new();
    os::open_regular(path).ok()?.take(4096).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(head: &str, expected: Option<Head>) {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join(".git")).unwrap();
        fs::write(folder.path().join(".git/HEAD"), head).unwrap();
        let repository = Repository::find(folder.path()).unwrap();
        assert_eq!(repository.head(), expected);
    }

    #[test]
    fn head_names_a_branch_or_a_commit() {
        check("ref: refs/heads/main\n", Some(Head::Branch("main".to_owned())));
        check("ref: refs/heads/feat/ü\n", Some(Head::Branch("feat/ü".to_owned())));
        check(&"0123456789".repeat(4), Some(Head::Detached("0123456".to_owned())));
        check("ref: refs/heads/.invalid\n", None);
        check("ref: refs/remotes/origin/main\n", None);
        check("", None);
    }

    #[test]
    fn tables_of_references_change_in_place_of_head() {
        let folder = tempfile::tempdir().unwrap();
        let git_dir = folder.path().join(".git");
        fs::create_dir_all(git_dir.join("reftable")).unwrap();
        fs::write(git_dir.join("HEAD"), "ref: refs/heads/.invalid\n").unwrap();
        let repository = Repository::find(folder.path()).unwrap();
        assert_eq!(repository.changing_path(), git_dir.join("HEAD"));
        fs::write(git_dir.join("reftable/tables.list"), "").unwrap();
        assert_eq!(repository.changing_path(), git_dir.join("reftable/tables.list"));
        // git knows no branch of these tables.
        assert_eq!(repository.head_or_ask(), None);
    }

    #[test]
    fn finds_the_repository_from_below_and_through_a_worktree_file() {
        let folder = tempfile::tempdir().unwrap();
        let git_dir = folder.path().join("main/.git/worktrees/w");
        fs::create_dir_all(&git_dir).unwrap();
        fs::write(git_dir.join("HEAD"), "ref: refs/heads/w\n").unwrap();
        let root = folder.path().join("w");
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(root.join(".git"), "gitdir: ../main/.git/worktrees/w\n").unwrap();

        let repository = Repository::find(&root.join("a/b")).unwrap();
        assert_eq!(repository, Repository { root, git_dir });
        assert_eq!(repository.head(), Some(Head::Branch("w".to_owned())));
    }

    #[test]
    fn a_folder_named_git_alone_is_no_repository() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join(".git")).unwrap();
        assert_eq!(Repository::at(folder.path()), None);
    }
}
