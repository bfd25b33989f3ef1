//! A disk that fails on request.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use pi::session::{Disk, SystemDisk};

/// Writes to the real disk until a test makes it fail.
#[derive(Debug)]
pub(crate) struct FaultyDisk(Mutex<Faults>);

#[derive(Debug)]
struct Faults {
    /// Bytes that still fit.
    room: usize,
    /// The one file that finds no room, if not all of them.
    full: Option<PathBuf>,
    /// Syncs that fail from here on.
    n_bad_syncs: usize,
    /// Files that exist cannot be opened for writing.
    is_read_only: bool,
}

impl FaultyDisk {
    pub(crate) fn new() -> Arc<Self> {
        let faults = Faults { room: usize::MAX, full: None, n_bad_syncs: 0, is_read_only: false };
        Arc::new(Self(Mutex::new(faults)))
    }

    pub(crate) fn set_room(&self, n_bytes: usize) {
        self.0.lock().unwrap().room = n_bytes;
    }

    /// Makes room for every file but this one.
    pub(crate) fn set_room_elsewhere(&self, full: PathBuf) {
        let mut faults = self.0.lock().unwrap();
        (faults.room, faults.full) = (usize::MAX, Some(full));
    }

    pub(crate) fn fail_syncs(&self, n: usize) {
        self.0.lock().unwrap().n_bad_syncs = n;
    }

    pub(crate) fn set_read_only(&self, is_read_only: bool) {
        self.0.lock().unwrap().is_read_only = is_read_only;
    }
}

impl Disk for FaultyDisk {
    fn open(&self, options: &OpenOptions, path: &Path) -> io::Result<File> {
        if self.0.lock().unwrap().is_read_only && path.exists() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        SystemDisk.open(options, path)
    }

    fn write(&self, file: &File, bytes: &[u8]) -> io::Result<usize> {
        let mut faults = self.0.lock().unwrap();
        let is_full = |path: &PathBuf| {
            let (open, full) = (file.metadata().unwrap(), fs::metadata(path).unwrap());
            (open.dev(), open.ino()) == (full.dev(), full.ino())
        };
        if faults.room == 0 || faults.full.as_ref().is_some_and(is_full) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let n = SystemDisk.write(file, &bytes[..bytes.len().min(faults.room)])?;
        faults.room = faults.room.saturating_sub(n);
        Ok(n)
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        let mut faults = self.0.lock().unwrap();
        if faults.n_bad_syncs > 0 {
            faults.n_bad_syncs -= 1;
            return Err(io::Error::other("lost page"));
        }
        SystemDisk.sync(file)
    }
}
