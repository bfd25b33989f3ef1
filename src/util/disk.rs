//! The system calls that change files, so that tests can make each of them fail.

use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::path::Path;

use super::os;

/// What files are written to. Tests use disks that are full, broken, without locks, or
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
    /// As [`io::Write::write_all`].
    fn write_again(&self, file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
        os::write_all_at(file, bytes, offset)
    }

    /// Renames a file; one that has the new name is replaced.
    ///
    /// # Errors
    /// As [`fs::rename`].
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    /// Renames a file to a name that no file has.
    ///
    /// # Errors
    /// If a file has the new name ([`io::ErrorKind::AlreadyExists`]), or as [`fs::rename`].
    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        let from = tempfile::TempPath::try_from_path(from)?;
        from.persist_noclobber(to).map_err(|refused| {
            // The caller decides what becomes of the file.
            refused.path.keep().map_or_else(|kept| kept.error, |_| refused.error)
        })
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

/// Writes all of `bytes`.
///
/// # Errors
/// As [`Disk::write`]; some of the bytes may have been written.
pub fn write_all(disk: &dyn Disk, file: &File, mut bytes: &[u8]) -> io::Result<()> {
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

/// A file as a writer.
pub(super) struct DiskWriter<'a> {
    pub(super) disk: &'a dyn Disk,
    pub(super) file: &'a File,
}

impl io::Write for DiskWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.disk.write(self.file, bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
