//! A settings file: read as a whole, changed key by key.
//!
//! Unknown keys survive. A file that cannot be read is never written.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value};

use crate::util::{RepeatedKey, atomic_file, line_of_key, repeated_keys};

use super::super::json_file::{self, FolderLock, LockError, LockTimes};
use super::layers;
use super::live::SettingChange;

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
    /// As it was read, for the lines of keys.
    text: String,
    problem: Option<String>,
}

/// Why a setting could not be saved; the file is unchanged.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum SaveError {
    #[error("the setting was not saved: {problem}; fix the file and try again")]
    Broken { problem: String },
    #[error("the setting was not saved: another process has locked {}; try again", path.display())]
    Locked { path: PathBuf },
    #[error("the setting was not saved: cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    /// The section of the setting is not an object.
    #[error("the setting was not saved: \"{section}\" in {} must be an object; fix the file and try again", path.display())]
    NoSection { path: PathBuf, section: String },
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
        let (values, text, problem) = match json_file::read_with_text(&path) {
            Ok((values, text)) => (values, text, None),
            Err(problem) => (Map::new(), String::new(), Some(problem)),
        };
        Self { path, values, text, problem }
    }

    /// The line of a dotted key in the file as it was read, from 1; `None` if it is not there.
    pub fn line_of(&self, key: &str) -> Option<usize> {
        line_of_key(&self.text, key)
    }

    /// Keys that the file has more than once.
    pub(super) fn repeated_keys(&self) -> Vec<RepeatedKey> {
        repeated_keys(&self.text)
    }

    /// The values as the file has them.
    pub fn values(&self) -> &Map<String, Value> {
        &self.values
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Why the file could not be read, with its path and line.
    pub fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// Makes `changes` in the current file and leaves all other keys unchanged.
    /// Blocks.
    ///
    /// # Errors
    /// If the file cannot be read or written; it stays unchanged.
    pub fn save(&mut self, changes: &[SettingChange]) -> Result<(), SaveError> {
        let write_error = |source| SaveError::Write { path: self.path.clone(), source };
        if let Some(folder) = self.path.parent() {
            atomic_file::create_private_folder(folder).map_err(write_error)?;
        }
        let lock = FolderLock::acquire(&self.path, LOCK)?;
        let mut values = json_file::read(&self.path).map_err(|problem| SaveError::Broken { problem })?;
        for change in changes {
            self.change(&mut values, change)?;
        }
        atomic_file::write_private(&self.path, json_file::text(&values).as_bytes()).map_err(write_error)?;
        drop(lock);
        self.values = values;
        Ok(())
    }

    fn change(&self, values: &mut Map<String, Value>, change: &SettingChange) -> Result<(), SaveError> {
        if ["skills", "enableSkillCommands"].contains(&change.key) {
            // In the older form, one contains the other.
            *values = layers::modern(values).into_owned();
        }
        for (dot, _) in change.key.match_indices('.') {
            let section = &change.key[..dot];
            let found = layers::lookup(values, section);
            if found.is_some_and(|found| !found.is_object() && !found.is_null()) {
                let (path, section) = (self.path.clone(), section.to_owned());
                return Err(SaveError::NoSection { path, section });
            }
        }
        layers::set(values, change.key, change.value.as_ref());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    fn set(key: &'static str, value: Value) -> SettingChange {
        SettingChange { key, value: Some(value) }
    }

    fn reset(key: &'static str) -> SettingChange {
        SettingChange { key, value: None }
    }

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
        file.save(&[set("defaultModel", json!("m"))]).unwrap();
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
        let error = file.save(&[set("theme", json!("light"))]).unwrap_err().to_string();
        assert!(error.contains("fix the file and try again"), "{error}");
        assert_eq!(fs::read_to_string(&file.path).unwrap(), text);
    }

    #[track_caller]
    fn check(before: Value, changes: &[SettingChange], after: Value) {
        let (_folder, mut file) = file(&before.to_string());
        file.save(changes).unwrap();
        let written: Value = serde_json::from_str(&fs::read_to_string(&file.path).unwrap()).unwrap();
        assert_eq!(written, after);
    }

    #[test]
    fn a_nested_setting_is_set_and_reset_beside_its_neighbours() {
        let retry = [set("retry.maxRetries", json!(5))];
        check(json!({}), &retry, json!({"retry": {"maxRetries": 5}}));
        check(json!({"retry": {"new": 1}}), &retry, json!({"retry": {"new": 1, "maxRetries": 5}}));
        let before = json!({"retry": {"new": 1, "maxRetries": 5}, "images": {"autoResize": false}});
        let resets = [reset("retry.maxRetries"), reset("images.autoResize"), reset("theme")];
        check(before, &resets, json!({"retry": {"new": 1}}));
    }

    #[test]
    fn the_older_form_of_skills_loses_nothing_when_it_is_changed() {
        let old = json!({"skills": {"customDirectories": ["a"], "enableSkillCommands": false}});
        check(
            old.clone(),
            &[set("skills", json!(["b"]))],
            json!({"skills": ["b"], "enableSkillCommands": false}),
        );
        check(old, &[reset("enableSkillCommands")], json!({"skills": ["a"]}));
    }

    #[test]
    fn a_section_that_is_no_object_is_left_alone() {
        let (_folder, mut file) = file("{\"retry\": 3}");
        let error = file.save(&[set("retry.maxRetries", json!(5))]).unwrap_err().to_string();
        assert!(error.contains("\"retry\" in") && error.contains("must be an object"), "{error}");
        assert_eq!(fs::read_to_string(&file.path).unwrap(), "{\"retry\": 3}");
    }
}
