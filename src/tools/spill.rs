//! The files with the complete output of commands, and their removal.
//!
//! A file has a size limit: of longer output, the beginning and the end are kept.
//! Files are removed after a week without writes.

use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::util::clock::Clock;
use crate::util::os;

use super::output::format_size;

/// The size limits of a file.
#[derive(Debug, Clone, Copy)]
pub(super) struct SpillLimits {
    /// For the beginning, written as it arrives.
    pub(super) head_bytes: u64,
    /// For the end, kept in memory until the output is complete.
    pub(super) tail_bytes: usize,
}

impl Default for SpillLimits {
    fn default() -> Self {
        Self { head_bytes: 56 << 20, tail_bytes: 8 << 20 }
    }
}

/// A file that only this user can read, with an unpredictable, unique name.
#[derive(Debug)]
pub(super) struct SpillFile {
    file: File,
    path: PathBuf,
    limits: SpillLimits,
    n_head_bytes: u64,
    /// The end of the output beyond the head.
    tail: VecDeque<u8>,
    n_left_out: u64,
}

impl SpillFile {
    pub(super) fn create(folder: &Path, limits: SpillLimits) -> io::Result<Self> {
        let random = uuid::Uuid::new_v4().as_u64_pair().0;
        let path = folder.join(format!("{PREFIX}{random:016x}{SUFFIX}"));
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        os::make_file_private(&mut options);
        let file = options.open(&path)?;
        Ok(Self { file, path, limits, n_head_bytes: 0, tail: VecDeque::new(), n_left_out: 0 })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Number of bytes missing from the file.
    pub(super) fn n_left_out(&self) -> u64 {
        self.n_left_out
    }

    /// Adds output.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        let room = usize::try_from(self.limits.head_bytes - self.n_head_bytes).unwrap_or(usize::MAX);
        let (head, rest) = bytes.split_at(room.min(bytes.len()));
        self.file.write_all(head)?;
        self.n_head_bytes += head.len() as u64;
        self.tail.extend(rest);
        let n_excess = self.tail.len().saturating_sub(self.limits.tail_bytes);
        self.tail.drain(..n_excess);
        self.n_left_out += n_excess as u64;
        Ok(())
    }

    /// Writes the end of a complete output after its beginning.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn close(&mut self) -> io::Result<()> {
        if self.n_left_out > 0 {
            let size = format_size(self.n_left_out);
            write!(self.file, "\n\n[{} bytes ({size}) of output omitted]\n\n", self.n_left_out)?;
        }
        let (first, second) = self.tail.as_slices();
        self.file.write_all(first)?;
        self.file.write_all(second)?;
        self.tail = VecDeque::new();
        Ok(())
    }

    /// Removes the file, because a partial output would be mistaken for the complete one.
    pub(super) fn remove(self) {
        fs::remove_file(&self.path).unwrap_or_default();
    }
}

const PREFIX: &str = "pi-bash-";
const SUFFIX: &str = ".log";

/// How long a file is kept after its last write. A session that is resumed
/// within that time still finds the files its results refer to.
const KEPT: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Interval between searches of a folder.
const SWEEP_INTERVAL: Duration = Duration::from_secs(60 * 60);

/// Removes old files from `folder` on a background thread, at most once
/// per hour.
pub(super) fn remove_old_in_background(folder: &Path) {
    let now_ms = CLOCK.now_ms();
    if !is_due(folder, now_ms) {
        return;
    }
    let folder = folder.to_owned();
    let sweep = move || remove_old(&folder, now_ms);
    // If no thread can start, a later call removes them.
    thread::Builder::new().name("old-outputs".to_owned()).spawn(sweep).map(drop).unwrap_or_default();
}

static CLOCK: LazyLock<Clock> = LazyLock::new(Clock::system);

fn is_due(folder: &Path, now_ms: u64) -> bool {
    static SWEPT_MS: Mutex<BTreeMap<PathBuf, u64>> = Mutex::new(BTreeMap::new());
    let mut swept = SWEPT_MS.lock().unwrap_or_else(PoisonError::into_inner);
    let interval_ms = u64::try_from(SWEEP_INTERVAL.as_millis()).unwrap_or(u64::MAX);
    if swept.get(folder).is_some_and(|last_ms| now_ms.saturating_sub(*last_ms) < interval_ms) {
        return false;
    }
    swept.insert(folder.to_owned(), now_ms);
    true
}

fn remove_old(folder: &Path, now_ms: u64) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let is_ours = entry.file_name().to_str().is_some_and(is_spill_name);
        // Not through a link, which another user may have created.
        if is_ours && entry.path().symlink_metadata().is_ok_and(|metadata| is_old(&metadata, now_ms)) {
            fs::remove_file(entry.path()).unwrap_or_default();
        }
    }
}

fn is_spill_name(name: &str) -> bool {
    let id = name.strip_prefix(PREFIX).and_then(|rest| rest.strip_suffix(SUFFIX));
    id.is_some_and(|id| id.len() == 16 && id.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

fn is_old(metadata: &fs::Metadata, now_ms: u64) -> bool {
    let is_own = os::owner(metadata).is_some_and(os::is_this_user);
    let written = metadata.modified().ok();
    let written = written.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
    let age = written.and_then(|written| Duration::from_millis(now_ms).checked_sub(written));
    metadata.is_file() && is_own && age.is_some_and(|age| age > KEPT)
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    const LIMITS: SpillLimits = SpillLimits { head_bytes: 10, tail_bytes: 5 };

    #[track_caller]
    fn check(pieces: &[&str], expected: &str) {
        let folder = tempfile::tempdir().unwrap();
        let mut file = SpillFile::create(folder.path(), LIMITS).unwrap();
        for piece in pieces {
            file.push(piece.as_bytes()).unwrap();
            assert!(file.tail.len() <= LIMITS.tail_bytes);
        }
        file.close().unwrap();
        assert_eq!(fs::read_to_string(file.path()).unwrap(), expected);
    }

    #[test]
    fn a_long_output_keeps_its_beginning_and_its_end() {
        check(&["0123456789", "abcde"], "0123456789abcde");
        check(&["0123", "456789ab", "cde"], "0123456789abcde");
        let marker = "\n\n[3 bytes (3B) of output omitted]\n\n";
        check(&["0123456789abc", "de", "fgh"], &format!("0123456789{marker}defgh"));
        check(&["0123456789abcdefgh"], &format!("0123456789{marker}defgh"));
        check(&[], "");
    }

    #[test]
    fn only_own_files_that_are_old_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let week_ms = u64::try_from(KEPT.as_millis()).unwrap();
        let now_ms = 2 * week_ms;
        let write = |name: &str, written_ms: u64| {
            let file = File::create(path(name)).unwrap();
            file.set_modified(UNIX_EPOCH + Duration::from_millis(written_ms)).unwrap();
        };
        write("pi-bash-0123456789abcdef.log", now_ms - week_ms - 1);
        write("pi-bash-0123456789abcde0.log", now_ms - week_ms);
        write("pi-bash-mine.log", 0);
        write("notes.log", 0);
        std::os::unix::fs::symlink("notes.log", path("pi-bash-ffffffffffffffff.log")).unwrap();
        remove_old(folder.path(), now_ms);
        let mut left: Vec<_> =
            fs::read_dir(folder.path()).unwrap().flatten().map(|e| e.file_name()).collect();
        left.sort();
        let expected =
            ["notes.log", "pi-bash-0123456789abcde0.log", "pi-bash-ffffffffffffffff.log", "pi-bash-mine.log"];
        assert_eq!(left, expected);
    }

    #[test]
    fn a_folder_is_looked_through_once_an_hour() {
        let folder = tempfile::tempdir().unwrap();
        let hour_ms = u64::try_from(SWEEP_INTERVAL.as_millis()).unwrap();
        let check =
            |now_ms: u64, expected: bool| assert_eq!(is_due(folder.path(), now_ms), expected, "{now_ms}");
        check(hour_ms, true);
        check(2 * hour_ms - 1, false);
        check(2 * hour_ms, true);
    }
}
