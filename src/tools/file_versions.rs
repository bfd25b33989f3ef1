//! Remembers the files that the model has seen, to report changes by
//! other programs.
//!
//! Compares contents, not times: two writes may have the same time stamp, and
//! touching a file or checking it out again does not change it.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum number of remembered files; beyond it, all are forgotten.
const MAX_FILES: usize = 10_000;

const CHUNK_BYTES: usize = 64 * 1024;

/// The content of a file at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Version {
    checksum: u32,
    n_bytes: u64,
}

impl Version {
    pub(super) fn of(bytes: &[u8]) -> Self {
        let mut version = VersionBuilder::default();
        version.add(bytes);
        version.finish()
    }

    /// The version of the file at `path`. Blocks.
    fn read(path: &Path) -> io::Result<Self> {
        let mut file = File::open(path)?;
        let (mut version, mut chunk) = (VersionBuilder::default(), vec![0; CHUNK_BYTES]);
        loop {
            match file.read(&mut chunk) {
                Ok(0) => return Ok(version.finish()),
                Ok(n_bytes) => version.add(chunk.get(..n_bytes).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// A version of content that arrives in pieces.
#[derive(Debug, Default)]
pub(super) struct VersionBuilder {
    hasher: crc32fast::Hasher,
    n_bytes: u64,
}

impl VersionBuilder {
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
        self.n_bytes += bytes.len() as u64;
    }

    pub(super) fn finish(self) -> Version {
        Version { checksum: self.hasher.finalize(), n_bytes: self.n_bytes }
    }
}

/// The versions that the model last read or wrote, by path with links resolved.
/// Clones share them. All methods read the disk to resolve links.
#[derive(Debug, Clone, Default)]
pub(super) struct FileVersions(Arc<Mutex<HashMap<PathBuf, Version>>>);

impl FileVersions {
    /// Records that the model knows `version` of `path`.
    pub(super) fn note(&self, path: &Path, version: Version) {
        let path = real_path(path);
        let mut versions = self.lock();
        if versions.len() >= MAX_FILES {
            versions.clear();
        }
        versions.insert(path, version);
    }

    /// Whether the model knows a version of `path` other than `now`.
    pub(super) fn differs(&self, path: &Path, now: &Version) -> bool {
        let path = real_path(path);
        self.lock().get(&path).is_some_and(|known| known != now)
    }

    /// Whether the file at `path` differs from the one the model knows. False if it
    /// is deleted or unreadable.
    pub(super) fn has_changed(&self, path: &Path) -> bool {
        let path = real_path(path);
        // A separate statement, so that the lock is not held while reading.
        let known = self.lock().get(&path).cloned();
        let is_file = || fs::metadata(&path).is_ok_and(|metadata| metadata.is_file());
        known.is_some_and(|known| is_file() && Version::read(&path).is_ok_and(|now| now != known))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<PathBuf, Version>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn real_path(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_its_content_however_it_arrives() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        let content = b"some text\n".repeat(20_000);
        fs::write(&path, &content).unwrap();
        let whole = Version::of(&content);
        assert_eq!(Version::read(&path).unwrap(), whole);
        let mut pieces = VersionBuilder::default();
        content.chunks(7).for_each(|piece| pieces.add(piece));
        assert_eq!(pieces.finish(), whole);
        assert_ne!(Version::of(b"some text"), whole);
    }

    #[test]
    fn only_a_known_file_with_other_content_has_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        let versions = FileVersions::default();
        fs::write(&path, "one").unwrap();
        assert!(!versions.has_changed(&path), "never seen");
        versions.note(&path, Version::of(b"one"));
        fs::write(&path, "one").unwrap();
        assert!(!versions.has_changed(&path), "written, but the same");
        fs::write(&path, "two").unwrap();
        assert!(versions.has_changed(&path) && versions.differs(&path, &Version::of(b"two")));
        assert!(!FileVersions::default().has_changed(&path), "others know nothing of it");
        fs::remove_file(&path).unwrap();
        assert!(!versions.has_changed(&path));
    }
}
