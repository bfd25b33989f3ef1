//! The files kept beside a session file: their names, and what is common to reading them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::util::disk::Disk;
use crate::util::os;

use super::store;

/// The endings of files that belong to a session and are deleted with it.
pub(super) const ENDINGS: [&str; 7] =
    [".queue", ".queue.tmp", ".draft", ".draft.tmp", ".deferred", ".deferred.tmp", ".summary"];

/// The hidden file beside the session at `session` whose name ends in `ending`; `None`
/// for a session that is not saved.
pub(super) fn path(session: Option<&Path>, ending: &str) -> Option<PathBuf> {
    let session = session?;
    let name = session.file_name()?.to_string_lossy();
    Some(session.with_file_name(format!(".{name}{ending}")))
}

/// Longer files beside a session are not read. A queue may contain images.
pub(super) const LIMIT_BYTES: u64 = 256 << 20;

/// The contents of a file; empty if there is none.
#[derive(Debug, Default)]
pub(super) struct Contents {
    pub(super) bytes: Vec<u8>,
    /// Why it cannot be read, for the user.
    pub(super) problem: Option<String>,
}

/// Reads a file that contains `what`. One that cannot be read is moved aside, because a new
/// one would replace it.
pub(super) fn read(disk: &dyn Disk, path: &Path, what: &str) -> Contents {
    match os::read_regular(path, LIMIT_BYTES) {
        Ok(bytes) => Contents { bytes, problem: None },
        Err(error) if is_missing(&error) => Contents::default(),
        Err(error) => {
            let kept = free_name(path, None);
            let place = match disk.rename(path, &kept) {
                Ok(()) => kept,
                Err(_) => path.to_owned(),
            };
            let problem = format!("cannot read {what}: {error}; the file is kept as {}", place.display());
            Contents { bytes: Vec::new(), problem: Some(problem) }
        }
    }
}

/// Whether there is no such file, or no such folder.
fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Keeps a copy of a damaged file that contains `what`, because the readable part will
/// replace it. Returns a report for the user.
pub(super) fn keep_damaged(disk: &dyn Disk, path: &Path, bytes: &[u8], what: &str) -> String {
    let kept = free_name(path, Some(bytes));
    match store::replace(disk, &kept, bytes) {
        Ok(()) => format!("some {what} could not be read; the damaged file is kept as {}", kept.display()),
        Err(error) => format!("some {what} could not be read, and the damaged file cannot be kept: {error}"),
    }
}

/// `NAME.damaged`, or the next name that is free or contains `bytes` already.
fn free_name(path: &Path, bytes: Option<&[u8]>) -> PathBuf {
    let name_of = |n: u32| {
        let mut name = path.as_os_str().to_owned();
        name.push(if n == 1 { ".damaged".to_owned() } else { format!(".damaged-{n}") });
        PathBuf::from(name)
    };
    let is_free = |path: &PathBuf| {
        let is_same =
            || bytes.is_some_and(|bytes| os::read_regular(path, LIMIT_BYTES).is_ok_and(|kept| kept == bytes));
        fs::symlink_metadata(path).is_err() || is_same()
    };
    (1..).map(name_of).find(is_free).unwrap_or_else(|| name_of(0))
}

/// Removes a file, if there is one.
///
/// # Errors
/// If it stays.
pub(super) fn remove(disk: &dyn Disk, path: &Path) -> io::Result<()> {
    match disk.remove(path) {
        Err(error) if !is_missing(&error) => Err(error),
        _ => Ok(()),
    }
}
