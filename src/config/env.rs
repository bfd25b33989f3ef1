//! The environment: the only place that reads it.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;

/// A snapshot of the environment. Values that are not UTF-8 are kept unchanged.
#[derive(Debug, Clone, Default)]
pub struct Env(HashMap<OsString, OsString>);

impl Env {
    /// The environment of this process.
    #[expect(clippy::disallowed_methods, reason = "this is where the program reads its environment")]
    pub fn process() -> Self {
        Self(std::env::vars_os().collect())
    }

    /// An environment of exactly these variables.
    pub fn of(pairs: &[(&str, &str)]) -> Self {
        Self(pairs.iter().map(|(name, value)| (OsString::from(name), OsString::from(value))).collect())
    }

    /// The value, if it is set, not empty and UTF-8.
    pub fn get(&self, name: &str) -> Option<String> {
        let value = self.0.get(std::ffi::OsStr::new(name))?.to_str()?;
        (!value.is_empty()).then(|| value.to_owned())
    }

    /// The value as a path, if it is set and not empty.
    pub fn path(&self, name: &str) -> Option<PathBuf> {
        self.0.get(std::ffi::OsStr::new(name)).filter(|value| !value.is_empty()).map(PathBuf::from)
    }

    /// The home directory that `HOME` names, if that does not depend on the current directory.
    pub fn home(&self) -> Option<PathBuf> {
        self.path("HOME").filter(|home| home.has_root())
    }

    /// The folder for temporary files: `TMPDIR`, or the system's.
    pub fn temp_dir(&self) -> PathBuf {
        self.path("TMPDIR").unwrap_or_else(std::env::temp_dir)
    }

    /// Where a program is, by `PATH`.
    pub fn find_program(&self, name: &str) -> Option<PathBuf> {
        let search_path = self.path("PATH")?;
        std::env::split_paths(&search_path).map(|folder| folder.join(name)).find(|path| path.is_file())
    }

    /// Whether the variable has a value.
    pub fn is_set(&self, name: &str) -> bool {
        self.path(name).is_some()
    }
}
