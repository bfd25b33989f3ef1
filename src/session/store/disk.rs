//! The system calls of a journal that fail on a full or broken disk.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

/// The disk operations of a journal. Tests use disks that are full or broken.
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
pub(super) fn write_all(disk: &dyn Disk, file: &File, mut bytes: &[u8]) -> io::Result<()> {
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
