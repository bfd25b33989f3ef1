//! JSON files of the user that other processes write too: reads them, and locks them
//! for changes.
//!
//! `settings_file` and `auth_file` interpret their content.

use std::fs::{self, File, Metadata, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::{Map, Value};

use crate::util::atomic_file;
use crate::util::json_problem;
use crate::util::os::{self, FileId};

/// Reads the object in `path`; a missing or empty file is an empty object.
///
/// # Errors
/// Describes the problem with the file, with path and line.
pub(super) fn read(path: &Path) -> Result<Map<String, Value>, String> {
    read_with_text(path).map(|(values, _)| values)
}

/// As [`read`], with the text of the file.
///
/// # Errors
/// As for [`read`].
pub(super) fn read_with_text(path: &Path) -> Result<(Map<String, Value>, String), String> {
    let mut text = match os::open_regular(path).and_then(io::read_to_string) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((Map::new(), String::new())),
        Err(error) => return Err(format!("{}: {error}", path.display())),
    };
    if text.starts_with('\u{feff}') {
        text.drain(..'\u{feff}'.len_utf8());
    }
    if text.trim().is_empty() {
        return Ok((Map::new(), text));
    }
    match serde_json::from_str(&text) {
        Ok(Value::Object(values)) => Ok((values, text)),
        Ok(_) => Err(format!("{}: expected an object", path.display())),
        Err(error) => Err(format!("{}: {}", path.display(), json_problem(&error))),
    }
}

/// The text of a file with `values`.
pub(super) fn text(values: &Map<String, Value>) -> String {
    serde_json::to_string_pretty(values).unwrap_or_default() + "\n"
}

/// The timeouts of a lock.
#[derive(Debug, Clone, Copy)]
pub(super) struct LockTimes {
    /// A lock untouched for this long may be left over from a crash.
    pub(super) stale: Duration,
    /// How long a waiter must additionally have observed it untouched; longer than
    /// the interval between a holder's touches, because after the machine slept every lock
    /// looks old.
    pub(super) watch: Duration,
    /// Maximum wait for a held lock.
    pub(super) wait: Duration,
}

/// The lock the original uses for a file: a folder beside it, which only one
/// process can create. Symbolic links are resolved first, so that all processes that
/// change the same file use the same lock.
///
/// A process that considers a lock abandoned replaces it with another folder. The
/// holder therefore touches and removes only the folder it has created.
#[derive(Debug)]
pub(super) struct FolderLock {
    path: PathBuf,
    /// While it is open, no other folder gets its inode number. It is locked itself, which
    /// shows other processes of this program that the holder is alive.
    folder: File,
}

/// Why there is no lock.
#[derive(Debug)]
pub(super) enum LockError {
    /// Another process holds it.
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
    /// Blocks until the lock on `file` is free, at most for `times.wait`.
    pub(super) fn acquire(file: &Path, times: LockTimes) -> Result<Self, LockError> {
        let target = atomic_file::follow_links(file)
            .map_err(|source| LockError::Create { path: file.to_owned(), source })?;
        let mut name = target.into_os_string();
        name.push(".lock");
        let path = PathBuf::from(name);
        let mut watch = Watch::default();
        let mut waited = Duration::ZERO;
        loop {
            match Self::create(&path) {
                Ok(lock) => return Ok(lock),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(source) => return Err(LockError::Create { path, source }),
            }
            match watch.look(&path, times) {
                Some(left) if move_away(&path, left) => {}
                Some(_) | None => std::thread::sleep(PAUSE),
            }
            waited += PAUSE;
            if waited > times.wait {
                return Err(LockError::Held { path });
            }
        }
    }

    fn create(path: &Path) -> io::Result<Self> {
        fs::create_dir(path)?;
        let opened = File::open(path);
        let folder = opened.inspect_err(|_| drop(fs::remove_dir(path)))?;
        // If folders cannot be locked, other processes rely on the lock's age.
        folder.try_lock().unwrap_or_default();
        Ok(Self { path: path.to_owned(), folder })
    }

    /// Whether this process still holds the lock.
    pub(super) fn is_held(&self) -> bool {
        let own = self.folder.metadata().ok().as_ref().map(Seen::of);
        own.is_some_and(|own| Seen::at(&self.path).is_some_and(|seen| seen.is_same_folder(own)))
    }

    /// Shows that the holder is still alive, for work that takes longer than a lock
    /// may stay untouched. A failure makes the lock look older than it is.
    pub(super) fn touch(&self) {
        // Use the clock of the file system, which also determines the age.
        os::touch(&self.folder).unwrap_or_default();
    }
}

impl Drop for FolderLock {
    fn drop(&mut self) {
        if self.is_held() {
            drop(fs::remove_dir(&self.path));
        }
    }
}

/// An observation of a lock: its folder, and when it was last touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    file: FileId,
    modified: Option<SystemTime>,
}

impl Seen {
    fn at(path: &Path) -> Option<Self> {
        fs::symlink_metadata(path).ok().as_ref().map(Self::of)
    }

    fn of(metadata: &Metadata) -> Self {
        Self { file: os::file_id(metadata), modified: metadata.modified().ok() }
    }

    fn is_same_folder(self, other: Self) -> bool {
        self.file == other.file
    }

    fn is_older_than(self, limit: Duration) -> bool {
        self.modified.is_some_and(|modified| modified.elapsed().is_ok_and(|age| age > limit))
    }
}

/// State of another process's lock, as seen by a waiter.
#[derive(Debug, Default)]
struct Watch {
    seen: Option<Seen>,
    /// How long it has been unchanged. Counted in pauses, so that the time a machine
    /// sleeps does not count.
    unchanged: Duration,
}

impl Watch {
    /// Checks again; returns a lock that is certainly abandoned.
    fn look(&mut self, path: &Path, times: LockTimes) -> Option<Seen> {
        let seen = Seen::at(path);
        if seen == self.seen {
            self.unchanged += PAUSE;
        } else {
            *self = Self { seen, unchanged: Duration::ZERO };
        }
        seen.filter(|seen| seen.is_older_than(times.stale) && self.unchanged > times.watch)
    }
}

/// Makes room for a new lock by moving `left` away; `false` if it no longer
/// exists, or its holder is alive. Of several waiters one succeeds.
fn move_away(path: &Path, left: Seen) -> bool {
    let Ok(folder) = File::open(path) else { return false };
    if matches!(folder.try_lock(), Err(TryLockError::WouldBlock)) {
        return false;
    }
    // Another waiter may have replaced it before the folder was locked.
    if Seen::at(path) != Some(left) || !folder.metadata().is_ok_and(|own| Seen::of(&own) == left) {
        return false;
    }
    let mut aside = path.as_os_str().to_owned();
    aside.push(format!(".{}", uuid::Uuid::new_v4().simple()));
    let aside = PathBuf::from(aside);
    if fs::rename(path, &aside).is_err() {
        return false;
    }
    // In this moment the holder may have released it and another process
    // have acquired it.
    if !Seen::at(&aside).is_some_and(|moved| moved.is_same_folder(left)) {
        if Seen::at(path).is_none() {
            drop(fs::rename(&aside, path));
        }
        return false;
    }
    drop(fs::remove_dir(&aside));
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: LockTimes =
        LockTimes { stale: Duration::from_secs(10), watch: Duration::ZERO, wait: Duration::ZERO };
    const PATIENT: LockTimes = LockTimes { wait: Duration::from_secs(1), ..TIMES };

    #[test]
    fn json_that_is_wrong_is_described_in_the_words_of_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("settings.json");
        for (text, expected) in [
            ("{\n  \"theme\": ", "the file ends at line 2, column 11, before its JSON is complete"),
            ("{\n  \"theme\": dark\n}", "expected value at line 2 column 12"),
            ("[]", "expected an object"),
        ] {
            fs::write(&path, text).unwrap();
            assert_eq!(read(&path), Err(format!("{}: {expected}", path.display())));
        }
    }

    fn make_old(lock: &Path) {
        let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
        File::open(lock).unwrap().set_modified(long_ago).unwrap();
    }

    /// A file to lock, and an old abandoned lock.
    fn abandoned() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let (file, lock) = (folder.path().join("a.json"), folder.path().join("a.json.lock"));
        fs::create_dir(&lock).unwrap();
        make_old(&lock);
        (folder, file, lock)
    }

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
    fn a_lock_left_by_a_crash_is_taken_over_once_it_was_watched() {
        let (folder, file, lock) = abandoned();
        let hasty = LockTimes { watch: Duration::from_secs(60), wait: Duration::from_millis(100), ..TIMES };
        // The machine may have slept, and the holder may be about to touch it.
        assert!(matches!(FolderLock::acquire(&file, hasty), Err(LockError::Held { .. })));
        let taken = FolderLock::acquire(&file, PATIENT).unwrap();
        assert!(taken.is_held() && lock.is_dir());
        drop(taken);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left");
    }

    #[test]
    fn a_touch_begins_the_watch_anew() {
        let (_folder, _, lock) = abandoned();
        let times = LockTimes { watch: PAUSE, ..TIMES };
        let mut watch = Watch::default();
        let looks = |watch: &mut Watch, n: usize| (0..n).filter_map(|_| watch.look(&lock, times)).count();
        assert_eq!(looks(&mut watch, 2), 0);
        let again = SystemTime::UNIX_EPOCH + Duration::from_secs(2);
        File::open(&lock).unwrap().set_modified(again).unwrap();
        assert_eq!((looks(&mut watch, 2), looks(&mut watch, 1)), (0, 1));
    }

    #[test]
    fn a_holder_that_lives_is_not_robbed_however_old_its_lock_looks() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.json");
        let held = FolderLock::acquire(&file, TIMES).unwrap();
        make_old(&held.path);
        let times = LockTimes { wait: Duration::from_millis(100), ..TIMES };
        assert!(matches!(FolderLock::acquire(&file, times), Err(LockError::Held { .. })));
        held.touch();
        assert!(!Seen::at(&held.path).unwrap().is_older_than(TIMES.stale));
    }

    #[test]
    fn a_holder_that_was_robbed_leaves_the_new_lock_alone() {
        let folder = tempfile::tempdir().unwrap();
        let held = FolderLock::acquire(&folder.path().join("a.json"), TIMES).unwrap();
        let lock = held.path.clone();
        // Like a program that judges only by age.
        fs::remove_dir(&lock).unwrap();
        fs::create_dir(&lock).unwrap();
        make_old(&lock);
        let theirs = Seen::at(&lock).unwrap();
        assert!(!held.is_held());
        held.touch();
        drop(held);
        assert_eq!(Seen::at(&lock), Some(theirs));
    }

    #[test]
    fn of_two_waiters_one_takes_an_abandoned_lock() {
        let (_folder, file, lock) = abandoned();
        let left = Seen::at(&lock).unwrap();
        let faster = FolderLock::acquire(&file, PATIENT).unwrap();
        make_old(&lock);
        assert!(!move_away(&lock, left), "it was judged before the other one came");
        assert!(faster.is_held());
    }
}
