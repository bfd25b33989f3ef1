//! The settings file: read once, changed key by key.
//!
//! Unknown keys survive. A file that cannot be read is never written.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value};

use crate::util::atomic_file;

use super::json_file::{self, FolderLock, LockError, LockTimes};

/// Long enough for a write, short enough for a user waiting at the screen.
const LOCK: LockTimes = LockTimes {
    stale: Duration::from_secs(10),
    // A write is the longest time it is held.
    watch: Duration::from_millis(500),
    wait: Duration::from_secs(1),
};

/// A settings file as it was read.
#[derive(Debug, Clone)]
pub struct SettingsFile {
    path: PathBuf,
    values: Map<String, Value>,
    problem: Option<String>,
}

/// Why a setting could not be saved; the file is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    #[error("the setting was not saved: {problem}; fix the file and try again")]
    Broken { problem: String },
    #[error("the setting was not saved: another process has locked {}; try again", path.display())]
    Locked { path: PathBuf },
    #[error("the setting was not saved: cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
}

impl From<LockError> for SaveError {
    fn from(error: LockError) -> Self {
        match error {
            LockError::Held { path } => Self::Locked { path },
            LockError::Create { path, source } => Self::Write { path, source },
        }
    }
}

impl SettingsFile {
    /// Reads the file at `path`; a missing one is empty. [`Self::problem`] reports
    /// errors.
    pub fn load(path: PathBuf) -> Self {
        let (values, problem) = match json_file::read(&path) {
            Ok(values) => (values, None),
            Err(problem) => (Map::new(), Some(problem)),
        };
        Self { path, values, problem }
    }

    pub fn values(&self) -> &Map<String, Value> {
        &self.values
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Why the file could not be read, with its path and line.
    pub fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// Sets top-level keys in the current file and leaves all others unchanged.
    /// Blocks.
    ///
    /// # Errors
    /// If the file cannot be read or written; it stays unchanged.
    pub fn save(&mut self, changes: &[(&str, Value)]) -> Result<(), SaveError> {
        let write_error = |source| SaveError::Write { path: self.path.clone(), source };
        if let Some(folder) = self.path.parent() {
            atomic_file::create_private_folder(folder).map_err(write_error)?;
        }
        let lock = FolderLock::acquire(&self.path, LOCK)?;
        let mut values = json_file::read(&self.path).map_err(|problem| SaveError::Broken { problem })?;
        for (key, value) in changes {
            values.insert((*key).to_owned(), value.clone());
        }
        atomic_file::write_private(&self.path, json_file::text(&values).as_bytes()).map_err(write_error)?;
        drop(lock);
        self.values = values;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    fn file(text: &str) -> (tempfile::TempDir, SettingsFile) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("settings.json");
        fs::write(&path, text).unwrap();
        (folder, SettingsFile::load(path))
    }

    #[test]
    fn saving_changes_only_the_named_keys() {
        let (_folder, mut file) = file("\u{feff}{\"theme\":\"dark\",\"novel\":{\"x\":1}}");
        fs::write(&file.path, "{\"theme\":\"dark\",\"novel\":{\"x\":2}}").unwrap();
        file.save(&[("defaultModel", json!("m"))]).unwrap();
        let text = fs::read_to_string(&file.path).unwrap();
        let expected =
            "{\n  \"theme\": \"dark\",\n  \"novel\": {\n    \"x\": 2\n  },\n  \"defaultModel\": \"m\"\n}\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_broken_file_is_reported_with_its_line_and_never_written() {
        let text = "{\n  \"theme\": dark\n}";
        let (_folder, mut file) = file(text);
        let problem = file.problem().unwrap().to_owned();
        assert!(problem.contains("settings.json") && problem.contains("line 2"), "{problem}");
        let error = file.save(&[("theme", json!("light"))]).unwrap_err().to_string();
        assert!(error.contains("fix the file and try again"), "{error}");
        assert_eq!(fs::read_to_string(&file.path).unwrap(), text);
    }
}
