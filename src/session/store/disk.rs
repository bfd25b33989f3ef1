//! The system calls that change the files of a session: the session file and those beside
//! it.

use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use crate::util::atomic_file;

/// The disk of a session's files. Tests use disks that are full, broken, without locks, or
/// that stop at a chosen step.
pub trait Disk: fmt::Debug + Send + Sync {
    /// Opens or creates a file.
    ///
    /// # Errors
    /// As [`OpenOptions::open`].
    fn open(&self, options: &OpenOptions, path: &Path) -> io::Result<File>;

    /// Writes some of `bytes` and returns how many.
    ///
    /// # Errors
    /// As [`io::Write::write`].
    fn write(&self, file: &File, bytes: &[u8]) -> io::Result<usize>;

    /// Makes written bytes durable.
    ///
    /// # Errors
    /// As [`File::sync_data`].
    fn sync(&self, file: &File) -> io::Result<()>;

    /// Writes `bytes` again at `offset`.
    ///
    /// # Errors
    /// As [`FileExt::write_all_at`](std::os::unix::fs::FileExt::write_all_at).
    fn write_again(&self, file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
        file.write_all_at(bytes, offset)
    }

    /// Renames a file; one that has the new name is replaced.
    ///
    /// # Errors
    /// As [`fs::rename`].
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    /// # Errors
    /// As [`fs::remove_file`].
    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    /// Locks a file without waiting. The lock ends with the file's last handle.
    ///
    /// # Errors
    /// As [`File::try_lock`]; some network file systems have no locks.
    fn try_lock(&self, file: &File) -> Result<(), TryLockError> {
        file.try_lock()
    }
}

/// The disk of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemDisk;

impl Disk for SystemDisk {
    fn open(&self, options: &OpenOptions, path: &Path) -> io::Result<File> {
        options.open(path)
    }

    fn write(&self, mut file: &File, bytes: &[u8]) -> io::Result<usize> {
        file.write(bytes)
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        file.sync_data()
    }
}

/// Replaces the file at `path`, or creates it; only its owner can read it. A process that
/// is killed leaves the old content or the new one. Blocks, briefly.
///
/// # Errors
/// If it cannot be written; the old content stays.
pub(in crate::session) fn replace(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        atomic_file::create_private_folder(folder)?;
    }
    let beside = beside(path);
    let mut options = atomic_file::private_options();
    options.write(true).create_new(true);
    let opened = disk.open(&options, &beside);
    let file = match opened {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            // A killed process left it; it was never part of anything.
            disk.remove(&beside)?;
            disk.open(&options, &beside)?
        }
        opened => opened?,
    };
    let written = write_all(disk, &file, bytes).and_then(|()| disk.rename(&beside, path));
    written.inspect_err(|_| drop(disk.remove(&beside)))
}

/// Where the new content of `path` is until it is complete.
pub(super) fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".tmp");
    PathBuf::from(name)
}

/// Writes all of `bytes`.
pub(in crate::session) fn write_all(disk: &dyn Disk, file: &File, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match disk.write(file, bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => bytes = &bytes[n..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
