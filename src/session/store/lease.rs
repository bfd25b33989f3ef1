//! The right to append to a session file: a lock on a file beside it.
//!
//! The system releases the lock when the process dies, so it cannot become stale. The
//! lock file is never opened through a link, and an existing file that pi did not
//! create keeps its content.

use std::fs::{self, File, Metadata, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use crate::util::atomic_file;
use crate::util::disk::Disk;
use crate::util::os;

/// The lock, held until it is dropped.
#[derive(Debug)]
pub(super) struct Lease {
    path: PathBuf,
    file: File,
    /// Whether the file is pi's: it contains nothing but a process id.
    is_own: bool,
}

/// The outcome of requesting a lease.
#[derive(Debug)]
pub(super) enum LeaseOutcome {
    Ours(Lease),
    /// Nothing can be locked here, as on some network shares; the session is writable.
    Unlocked(io::Error),
    Theirs {
        holder: String,
    },
}

impl LeaseOutcome {
    /// Why there is no lock.
    pub(super) fn problem(&self) -> Option<String> {
        match self {
            Self::Unlocked(error) => Some(error.to_string()),
            Self::Ours(_) | Self::Theirs { .. } => None,
        }
    }
}

/// Lock files are short; a longer file is not pi's.
const MAX_HOLDER_BYTES: u64 = 20;

impl Lease {
    pub(super) fn take(disk: &dyn Disk, session: &Path) -> LeaseOutcome {
        let Some(name) = session.file_name() else {
            return LeaseOutcome::Unlocked(io::ErrorKind::InvalidInput.into());
        };
        let path = session.with_file_name(format!(".{}.lock", name.to_string_lossy()));
        loop {
            let file = match open(&path) {
                Ok(file) => file,
                Err(error) => return LeaseOutcome::Unlocked(error),
            };
            match disk.try_lock(&file) {
                Ok(()) if is_at(&file, &path) => return LeaseOutcome::Ours(Self::hold(path, file)),
                // Its holder removed it after it was opened here, so other processes ignore this lock.
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    let holder = holder(&file).filter(|holder| !holder.is_empty());
                    return LeaseOutcome::Theirs { holder: holder.unwrap_or_else(|| "unknown".to_owned()) };
                }
                Err(TryLockError::Error(error)) => return LeaseOutcome::Unlocked(error),
            }
        }
    }

    /// Whether the lock file is still at its path.
    pub(super) fn is_held(&self) -> bool {
        is_at(&self.file, &self.path)
    }

    fn hold(path: PathBuf, mut file: File) -> Self {
        let is_own = holder(&file).is_some();
        if is_own {
            // Only for the message in another process; the lock itself is authoritative.
            let written = file.set_len(0).and_then(|()| {
                use std::io::Seek as _;

                file.rewind()?;
                write!(file, "{}", std::process::id())
            });
            drop(written);
        }
        Self { path, file, is_own }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if self.is_own && self.is_held() {
            drop(fs::remove_file(&self.path));
        }
    }
}

/// Opens or creates the lock file, which must be a regular file.
fn open(path: &Path) -> io::Result<File> {
    let mut options = atomic_file::private_options();
    options.read(true).write(true).create(true).truncate(false);
    os::refuse_links_and_waiting(&mut options);
    let file = options.open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::InvalidInput.into()) }
}

/// The process id in a lock file; empty in a new one, `None` if the file contains
/// anything else.
fn holder(mut file: &File) -> Option<String> {
    use std::io::Seek as _;

    let mut text = String::new();
    file.rewind().ok()?;
    file.take(MAX_HOLDER_BYTES + 1).read_to_string(&mut text).ok()?;
    let is_number = text.len() as u64 <= MAX_HOLDER_BYTES && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then_some(text)
}

/// Whether `path` still refers to the open `file`.
pub(super) fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::metadata(path)) {
        (Ok(open), Ok(named)) => is_same_file(&open, &named),
        _ => false,
    }
}

pub(super) fn is_same_file(a: &Metadata, b: &Metadata) -> bool {
    os::file_id(a) == os::file_id(b)
}
