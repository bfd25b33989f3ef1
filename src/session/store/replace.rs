//! Replaces the small files beside a session, often and without waiting for the disk.

use std::io;
use std::path::{Path, PathBuf};

use crate::util::atomic_file;
use crate::util::disk::{Disk, write_all};

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
