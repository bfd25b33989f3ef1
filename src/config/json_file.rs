//! JSON files of the user that other processes write too: reading them, and the
//! lock around changing them.
//!
//! What is in a file is its owner's business (`settings_file`, `auth_file`).

use std::fs;
#[cfg(unix)]
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[cfg(unix)]
use rustix::fs::{Timespec, Timestamps, UTIME_NOW, futimens};
use serde_json::{Map, Value};

use crate::util::atomic_file;

/// Reads the object in `path`; a missing or empty file is an empty one.
///
/// # Errors
/// Says what is wrong with the file, with its path and line.
pub(super) fn read(path: &Path) -> Result<Map<String, Value>, String> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Map::new()),
        Err(error) => return Err(format!("{}: {error}", path.display())),
    };
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(values)) => Ok(values),
        Ok(_) => Err(format!("{}: expected an object", path.display())),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}

/// The text of a file that holds `values`.
pub(super) fn text(values: &Map<String, Value>) -> String {
    serde_json::to_string_pretty(values).unwrap_or_default() + "\n"
}

/// How patient a lock is.
#[derive(Debug, Clone, Copy)]
pub(super) struct LockTimes {
    /// A lock nobody touched for so long was left by a crash.
    pub(super) stale: Duration,
    /// How long to wait for one that is held.
    pub(super) wait: Duration,
}

/// The lock the original takes on a file: a folder beside it, which only one
/// process can create. A symbolic link is followed first, so that everybody who
/// means the same file takes the same lock.
#[derive(Debug)]
pub(super) struct FolderLock(PathBuf);

/// Why there is no lock.
#[derive(Debug)]
pub(super) enum LockError {
    /// Somebody else has it.
    Held {
        path: PathBuf,
    },
    Create {
        path: PathBuf,
        source: io::Error,
    },
}

const PAUSE: Duration = Duration::from_millis(25);

impl FolderLock {
    /// Blocks until the lock on `file` is free, for `times.wait` at most.
    pub(super) fn acquire(file: &Path, times: LockTimes) -> Result<Self, LockError> {
        let target = atomic_file::follow_links(file)
            .map_err(|source| LockError::Create { path: file.to_owned(), source })?;
        let mut name = target.into_os_string();
        name.push(".lock");
        let path = PathBuf::from(name);
        let mut waited = Duration::ZERO;
        loop {
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(source) => return Err(LockError::Create { path, source }),
            }
            if is_stale(&path, times.stale) {
                drop(fs::remove_dir(&path));
            } else {
                std::thread::sleep(PAUSE);
            }
            waited += PAUSE;
            if waited > times.wait {
                return Err(LockError::Held { path });
            }
        }
    }

    /// Shows that the holder still lives; for work that takes longer than a lock
    /// may look untouched. A failure leaves the lock to look older than it is.
    pub(super) fn touch(&self) {
        #[cfg(unix)]
        if let Ok(folder) = File::open(&self.0) {
            // By the clock of the file system, which also tells the age.
            let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
            let times = Timestamps { last_access: now, last_modification: now };
            futimens(folder, &times).unwrap_or_default();
        }
    }
}

impl Drop for FolderLock {
    fn drop(&mut self) {
        drop(fs::remove_dir(&self.0));
    }
}

fn is_stale(path: &Path, stale: Duration) -> bool {
    let modified = fs::metadata(path).and_then(|metadata| metadata.modified());
    modified.is_ok_and(|modified| modified.elapsed().is_ok_and(|age| age > stale))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: LockTimes = LockTimes { stale: Duration::from_secs(10), wait: Duration::ZERO };

    #[cfg(unix)]
    #[test]
    fn the_lock_is_on_what_a_link_leads_to() {
        let folder = tempfile::tempdir().unwrap();
        let (target, link) = (folder.path().join("target"), folder.path().join("link"));
        std::os::unix::fs::symlink("target", &link).unwrap();
        let held = FolderLock::acquire(&link, TIMES).unwrap();
        assert!(folder.path().join("target.lock").is_dir());
        assert!(matches!(FolderLock::acquire(&target, TIMES), Err(LockError::Held { .. })));
        drop(held);
        FolderLock::acquire(&target, TIMES).unwrap();
    }

    #[test]
    fn a_lock_left_by_a_crash_is_taken_over_unless_it_is_touched() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.json");
        let left = FolderLock::acquire(&file, TIMES).unwrap();
        let long_ago = fs::metadata(&left.0).unwrap().modified().unwrap() - Duration::from_secs(60);
        File::open(&left.0).unwrap().set_modified(long_ago).unwrap();
        left.touch();
        assert!(matches!(FolderLock::acquire(&file, TIMES), Err(LockError::Held { .. })));
        File::open(&left.0).unwrap().set_modified(long_ago).unwrap();
        let patient = LockTimes { wait: Duration::from_secs(1), ..TIMES };
        FolderLock::acquire(&file, patient).unwrap();
    }
}
