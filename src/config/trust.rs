//! Trust in projects: `trust.json`, and how decisions are made.
//!
//! A folder of another person may contain skills, settings and prompts that control
//! the model. pi uses them only after the user has trusted this folder or
//! one above it. Modes ask the user; other modules read the trusted files.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::util::atomic_file;
use crate::util::git::Repository;

use super::json_file::{self, FolderLock, LockError, LockTimes};

/// Long enough for a write, short enough for a user waiting at the screen.
pub(super) const LOCK: LockTimes = LockTimes {
    stale: Duration::from_secs(10),
    watch: Duration::from_millis(500),
    wait: Duration::from_secs(1),
};

/// Entries of a project's `.pi` folder that need trust.
const PROTECTED: &[&str] = &[
    "settings.json",
    "mcp.json",
    "extensions",
    "skills",
    "prompts",
    "themes",
    "SYSTEM.md",
    "APPEND_SYSTEM.md",
];

/// Default for projects without a decision: `defaultProjectTrust`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrustDefault {
    /// The user is asked.
    #[default]
    Ask,
    /// They are trusted.
    Always,
    /// They are not trusted.
    Never,
}

/// Whether the files of a project are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// Its files are used.
    Trusted,
    /// The user declined: on the command line, in `trust.json` or in the settings.
    Refused,
    /// No decision, and no user to ask; not used.
    Unasked,
    /// The user will be asked; not used until then.
    Undecided,
}

impl Trust {
    /// Whether its files are used.
    pub fn is_trusted(self) -> bool {
        self == Self::Trusted
    }
}

/// How this process decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TrustPolicy {
    /// The command line option, for this process.
    pub flag: Option<bool>,
    /// What counts without a decision.
    pub default: TrustDefault,
    /// Whether a user can be asked.
    pub can_ask: bool,
}

impl TrustPolicy {
    /// The command line wins over `saved`, the nearest stored decision, which
    /// wins over the default.
    pub fn decide(&self, saved: Option<bool>) -> Trust {
        match (self.flag.or(saved), self.default) {
            (Some(true), _) | (None, TrustDefault::Always) => Trust::Trusted,
            (Some(false), _) | (None, TrustDefault::Never) => Trust::Refused,
            (None, TrustDefault::Ask) => self.ask(),
        }
    }

    /// Without a decision that still applies.
    pub fn ask(&self) -> Trust {
        if self.can_ask { Trust::Undecided } else { Trust::Unasked }
    }
}

/// The contents of `trust.json`: canonical folders, each with `true`, `false`, or
/// `null` for a decision that was withdrawn. Shared with the original.
#[derive(Debug, Clone)]
pub struct TrustFile {
    path: PathBuf,
    values: Map<String, Value>,
    problem: Option<String>,
}

/// Why a decision could not be stored; the file is unchanged.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum TrustError {
    #[error("the decision was not saved: {problem}; fix the file and try again")]
    Broken { problem: String },
    #[error("the decision was not saved: another process has locked {}; try again", path.display())]
    Locked { path: PathBuf },
    #[error("the decision was not saved: cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
}

impl From<LockError> for TrustError {
    fn from(error: LockError) -> Self {
        match error {
            LockError::Held { path } => Self::Locked { path },
            LockError::Create { path, source } => Self::Write { path, source },
        }
    }
}

impl TrustFile {
    /// Reads the file at `path`; a missing one is empty, and so is an invalid one,
    /// which trusts no folder. Blocks.
    pub fn load(path: PathBuf) -> Self {
        let (values, problem) = match json_file::read(&path) {
            Ok(values) => (values, None),
            Err(problem) => (Map::new(), Some(problem)),
        };
        Self { path, values, problem }
    }

    /// Why the file could not be read, with its path and line.
    pub fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// The decision about `folder` or the nearest folder above it; `None` if there
    /// is none. Resolves `folder` on disk.
    pub fn nearest(&self, folder: &Path) -> Option<bool> {
        let folder = canonical(folder);
        folder.ancestors().find_map(|folder| self.values.get(folder.to_str()?)?.as_bool())
    }

    /// Stores the decision about `folder` in the current file and leaves all
    /// others unchanged. Blocks.
    ///
    /// # Errors
    /// If the file cannot be read or written; it stays unchanged.
    pub fn save(&mut self, folder: &Path, trusted: bool) -> Result<(), TrustError> {
        let read = || json_file::read(&self.path).map_err(|problem| TrustError::Broken { problem });
        self.values = store(&self.path, folder, trusted.into(), read)?;
        Ok(())
    }
}

/// Sets the value of `folder` in the file at `path`, whose values `read` returns, and leaves
/// all others unchanged. Returns all of them. Blocks.
pub(super) fn store(
    path: &Path,
    folder: &Path,
    value: Value,
    read: impl FnOnce() -> Result<Map<String, Value>, TrustError>,
) -> Result<Map<String, Value>, TrustError> {
    let write_error = |source| TrustError::Write { path: path.to_owned(), source };
    let folder = canonical(folder);
    let Some(key) = folder.to_str() else {
        // A lossy key could match several folders and trust the wrong one.
        let problem = format!("{} is not UTF-8", folder.display());
        return Err(write_error(io::Error::new(io::ErrorKind::InvalidFilename, problem)));
    };
    if let Some(parent) = path.parent() {
        atomic_file::create_private_folder(parent).map_err(write_error)?;
    }
    let lock = FolderLock::acquire(path, LOCK)?;
    let mut values = read()?;
    values.insert(key.to_owned(), value);
    values.sort_keys();
    atomic_file::write_private(path, json_file::text(&values).as_bytes()).map_err(write_error)?;
    drop(lock);
    Ok(values)
}

/// The folder with links resolved, or unchanged if that fails.
pub(super) fn canonical(folder: &Path) -> PathBuf {
    fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned())
}

/// The files of the project around `cwd` that need trust. Blocks.
pub fn protected_resources(cwd: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let own = PROTECTED.iter().map(|name| cwd.join(".pi").join(name)).filter(|path| path.exists());
    let skills = agents_folders(cwd, home).into_iter().filter(|path| path.is_dir());
    own.chain(skills).collect()
}

/// The skill folders of a project: `.pi/skills` of `cwd`, then `.agents/skills` of
/// `cwd` and, in a repository, of the folders above it, up to its top. They may
/// not exist. The user's own `~/.agents/skills` is not among them.
pub fn project_skill_folders(cwd: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let mut folders = vec![cwd.join(".pi").join("skills")];
    folders.extend(agents_folders(cwd, home));
    folders
}

fn agents_folders(cwd: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    // Without a repository, the folders above do not belong to the project.
    let top = Repository::find(cwd).map_or_else(|| cwd.to_owned(), |repository| repository.root);
    let home = home.map(canonical);
    let mut folders = Vec::new();
    for folder in cwd.ancestors() {
        // The system's home directory may be a link.
        if home.is_none() || home != Some(canonical(folder)) {
            folders.push(folder.join(".agents").join("skills"));
        }
        if top == folder {
            break;
        }
    }
    folders
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn saved(text: &str) -> (tempfile::TempDir, TrustFile) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trust.json");
        fs::write(&path, text).unwrap();
        (folder, TrustFile::load(path))
    }

    #[test]
    fn the_flag_wins_over_what_was_saved_and_that_over_the_default() {
        let check = |flag, saved, default, can_ask, expected| {
            let policy = TrustPolicy { flag, default, can_ask };
            assert_eq!(policy.decide(saved), expected, "{policy:?} {saved:?}");
        };
        check(Some(true), Some(false), TrustDefault::Never, true, Trust::Trusted);
        check(Some(false), Some(true), TrustDefault::Always, true, Trust::Refused);
        check(None, Some(true), TrustDefault::Never, false, Trust::Trusted);
        check(None, Some(false), TrustDefault::Always, true, Trust::Refused);
        check(None, None, TrustDefault::Always, false, Trust::Trusted);
        check(None, None, TrustDefault::Never, true, Trust::Refused);
        check(None, None, TrustDefault::Ask, true, Trust::Undecided);
        check(None, None, TrustDefault::Ask, false, Trust::Unasked);
    }

    #[test]
    fn the_nearest_decision_counts_and_one_taken_back_is_none() {
        let text = json!({"/a": true, "/a/b": false, "/a/b/c": null, "/a/odd": "yes", "/": false});
        let (_folder, file) = saved(&text.to_string());
        let check =
            |folder: &str, expected| assert_eq!(file.nearest(Path::new(folder)), expected, "{folder}");
        check("/a", Some(true));
        check("/a/x/y", Some(true));
        check("/a/b", Some(false));
        check("/a/b/c/d", Some(false));
        check("/a/odd", Some(true));
        check("/ab", Some(false));
        let (_folder, file) = saved("{}");
        assert_eq!(file.nearest(Path::new("/a")), None);
    }

    #[test]
    fn a_link_to_a_trusted_folder_is_that_folder() {
        let root = tempfile::tempdir().unwrap();
        let (real, link) = (root.path().join("real"), root.path().join("link"));
        fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let mut file = TrustFile::load(root.path().join("new/trust.json"));
        file.save(&link, true).unwrap();
        assert_eq!(file.nearest(&real), Some(true));
        assert!(!file.values.contains_key(link.to_str().unwrap()));
    }

    #[test]
    fn a_decision_is_added_in_order_and_the_rest_is_kept() {
        let (_folder, mut file) = saved("{}");
        // Another process writes in between.
        fs::write(&file.path, r#"{"/z":true,"note":{"x":1},"/b":null}"#).unwrap();
        file.save(Path::new("/c"), false).unwrap();
        let text = fs::read_to_string(&file.path).unwrap();
        let expected =
            "{\n  \"/b\": null,\n  \"/c\": false,\n  \"/z\": true,\n  \"note\": {\n    \"x\": 1\n  }\n}\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_broken_trust_file_trusts_no_folder_and_is_never_written() {
        let (_folder, mut file) = saved("{\"/a\": true,}");
        assert!(file.problem().is_some_and(|problem| problem.contains("trust.json")));
        assert_eq!(file.nearest(Path::new("/a")), None);
        let error = file.save(Path::new("/a"), true).unwrap_err().to_string();
        assert!(error.contains("fix the file and try again"), "{error}");
        assert_eq!(fs::read_to_string(&file.path).unwrap(), "{\"/a\": true,}");
    }

    #[track_caller]
    fn check_protected(files: &[&str], expected: &[&str]) {
        let root = tempfile::tempdir().unwrap();
        for file in files {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "ref: refs/heads/main").unwrap();
        }
        let (home, cwd) = (root.path().join("home"), root.path().join("home/repo/sub"));
        fs::create_dir_all(&cwd).unwrap();
        let found: Vec<String> = protected_resources(&cwd, Some(&home))
            .iter()
            .map(|path| path.strip_prefix(root.path()).unwrap().display().to_string())
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn only_what_can_do_something_takes_trust() {
        check_protected(&["home/repo/sub/AGENTS.md", "home/repo/sub/.pi/notes.md"], &[]);
        check_protected(
            &["home/repo/sub/.pi/SYSTEM.md", "home/repo/sub/.pi/skills/a/SKILL.md", "home/repo/.pi/skills/x"],
            &["home/repo/sub/.pi/skills", "home/repo/sub/.pi/SYSTEM.md"],
        );
    }

    #[test]
    fn folders_above_count_up_to_the_repository_and_the_users_own_do_not() {
        let files = [
            "home/.agents/skills/mine/SKILL.md",
            "home/repo/.agents/skills/a/SKILL.md",
            "home/repo/.git/HEAD",
        ];
        check_protected(&files, &["home/repo/.agents/skills"]);
        let in_repository = ["home/repo/sub/.git/HEAD", files[1]];
        check_protected(&in_repository, &[]);
        // Without a repository.
        check_protected(&files[..2], &[]);
    }
}
