//! The version whose changes the user has seen, in a file of its own: settings that pi shares with the
//! original belong to the user, and the original counts its own versions there.

use std::io::{self, Read as _};
use std::path::Path;

use crate::util::{atomic_file, os};

/// More bytes than any version has.
const MAX_BYTES: u64 = 64;

/// The version in the file; `None` if none was recorded. Blocks for a moment.
pub fn seen_version(path: &Path) -> Option<String> {
    let mut text = String::new();
    os::open_regular(path).ok()?.take(MAX_BYTES).read_to_string(&mut text).ok()?;
    Some(text.trim().to_owned()).filter(|version| !version.is_empty())
}

/// Records a version. Blocks.
///
/// # Errors
/// If the file cannot be written.
pub fn record_seen_version(path: &Path, version: &str) -> io::Result<()> {
    atomic_file::write_private(path, format!("{version}\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorded_version_is_read_back_and_anything_else_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agent/seen-version");
        assert_eq!(seen_version(&path), None);
        std::fs::create_dir(folder.path().join("agent")).unwrap();
        record_seen_version(&path, "1.2.3").unwrap();
        assert_eq!(seen_version(&path).as_deref(), Some("1.2.3"));
        std::fs::write(&path, b"\xff").unwrap();
        assert_eq!(seen_version(&path), None);
        assert_eq!(seen_version(folder.path()), None, "a folder");
    }
}
