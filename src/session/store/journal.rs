//! Where entries go: a file that is only ever appended to, or memory.
//!
//! One entry is one `write` of whole lines on an append handle, so a killed
//! process loses nothing that was acknowledged. What cannot be written waits
//! and goes out with the next entry. `take_unsynced` hands out what still has
//! to be made durable against power loss; when that happens is the session
//! task's business.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::entry::Header;

/// An entry is not in the file, though it is in memory.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    #[error(
        "cannot write the session file {}: {source}; what is said from here on is kept in memory and saved \
         as soon as that is possible", path.display()
    )]
    Write { path: PathBuf, source: io::Error },
    #[error(
        "this session is open in another pi (process {holder}); quit that one, or start a new session with /new"
    )]
    Locked { holder: String },
}

#[derive(Debug)]
pub(super) enum Journal {
    /// `--no-session`, and tests.
    Memory,
    File(FileJournal),
    /// Another process writes this file.
    ReadOnly {
        holder: String,
    },
}

#[derive(Debug)]
pub(super) struct FileJournal {
    path: PathBuf,
    /// `None` until somebody has said something.
    file: Option<File>,
    /// Somebody has said something, so the file has to be there.
    due: bool,
    /// What is not in the file yet: whole lines, the first perhaps begun.
    waiting: Vec<u8>,
    unsynced: bool,
    _lease: Option<Lease>,
}

impl Journal {
    /// A file that appears with the first thing said.
    pub(super) fn create(path: PathBuf) -> Self {
        let waiting = Vec::new();
        Self::File(FileJournal { path, file: None, due: false, waiting, unsynced: false, _lease: None })
    }

    /// Continues an existing file with the right to do so.
    pub(super) fn open(path: &Path, taken: Taken) -> io::Result<Self> {
        let lease = match taken {
            Taken::Ours(lease) => lease,
            Taken::Theirs { holder } => return Ok(Self::ReadOnly { holder }),
        };
        let file = OpenOptions::new().append(true).open(path)?;
        Ok(Self::File(FileJournal {
            path: path.to_owned(),
            file: Some(file),
            due: true,
            waiting: Vec::new(),
            unsynced: false,
            _lease: lease,
        }))
    }

    /// Appends one line; `create` makes the file appear.
    pub(super) fn append(&mut self, header: &Header, line: &str, create: bool) -> Result<(), JournalError> {
        match self {
            Self::Memory => Ok(()),
            Self::ReadOnly { holder } => Err(JournalError::Locked { holder: holder.clone() }),
            Self::File(journal) => {
                journal.waiting.extend_from_slice(line.as_bytes());
                journal.waiting.push(b'\n');
                journal.due |= create;
                journal.flush(header)
            }
        }
    }

    /// Tries again to write what could not be written.
    pub(super) fn flush(&mut self, header: &Header) -> Result<(), JournalError> {
        match self {
            Self::File(journal) => journal.flush(header),
            Self::Memory | Self::ReadOnly { .. } => Ok(()),
        }
    }

    /// A handle to sync elsewhere, if something was written since the last call.
    pub(super) fn take_unsynced(&mut self) -> Option<File> {
        match self {
            Self::File(journal) if journal.unsynced => {
                journal.unsynced = false;
                journal.file.as_ref().and_then(|file| file.try_clone().ok())
            }
            Self::Memory | Self::File(_) | Self::ReadOnly { .. } => None,
        }
    }

    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            Self::File(journal) => Some(&journal.path),
            Self::Memory | Self::ReadOnly { .. } => None,
        }
    }

    /// Whether the file exists.
    pub(super) fn exists(&self) -> bool {
        match self {
            Self::File(journal) => journal.file.is_some(),
            Self::ReadOnly { .. } => true,
            Self::Memory => false,
        }
    }
}

impl FileJournal {
    fn flush(&mut self, header: &Header) -> Result<(), JournalError> {
        if !self.due || self.waiting.is_empty() {
            return Ok(());
        }
        self.write_waiting(header).map_err(|source| JournalError::Write { path: self.path.clone(), source })
    }

    fn write_waiting(&mut self, header: &Header) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                let (file, lease) = create_file(&self.path, header)?;
                self._lease = lease;
                self.file.insert(file)
            }
        };
        self.unsynced = true;
        drain_into(file, &mut self.waiting)
    }
}

/// Writes what it can of `waiting` and keeps the rest. After a full disk the
/// next write goes on where this one stopped, in the middle of a line if need
/// be: nothing is cut off, and no line is in the file twice.
fn drain_into(file: &mut impl Write, waiting: &mut Vec<u8>) -> io::Result<()> {
    let mut n_written = 0;
    let result = loop {
        if n_written == waiting.len() {
            break Ok(());
        }
        match file.write(&waiting[n_written..]) {
            Ok(0) => break Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => n_written += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => break Err(error),
        }
    };
    waiting.drain(..n_written);
    result
}

fn create_file(path: &Path, header: &Header) -> io::Result<(File, Option<Lease>)> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut file = OpenOptions::new().append(true).create_new(true).open(path)?;
    let line = header_line(header) + "\n";
    if let Err(error) = file.write_all(line.as_bytes()) {
        // Nothing of this session is on disk yet; leave no half of it behind.
        drop(fs::remove_file(path));
        return Err(error);
    }
    let lease = match Lease::take(path) {
        Taken::Ours(lease) => lease,
        Taken::Theirs { .. } => None,
    };
    Ok((file, lease))
}

/// The first line of a session file, without its line break.
pub(super) fn header_line(header: &Header) -> String {
    let mut fields = serde_json::Map::new();
    fields.insert("type".to_owned(), "session".into());
    if let Ok(serde_json::Value::Object(rest)) = serde_json::to_value(header) {
        fields.extend(rest);
    }
    serde_json::Value::Object(fields).to_string()
}

/// The right to append to a session file, held as a lock on a file beside it.
/// The system releases it when the process dies, so it cannot go stale.
#[derive(Debug)]
pub(super) struct Lease {
    path: PathBuf,
    _file: File,
}

pub(super) enum Taken {
    /// `None` where the folder does not allow lock files; then nobody is kept out.
    Ours(Option<Lease>),
    Theirs {
        holder: String,
    },
}

impl Lease {
    pub(super) fn take(session: &Path) -> Taken {
        let Some(name) = session.file_name() else { return Taken::Ours(None) };
        let path = session.with_file_name(format!(".{}.lock", name.to_string_lossy()));
        loop {
            let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
            let Ok(mut file) = opened else { return Taken::Ours(None) };
            match file.try_lock() {
                Ok(()) if is_at(&file, &path) => {
                    // For the message another process shows; the lock is what counts.
                    drop(file.set_len(0).and_then(|()| write!(file, "{}", std::process::id())));
                    return Taken::Ours(Some(Self { path, _file: file }));
                }
                // Its holder removed it after we had opened it: a lock nobody else looks at.
                Ok(()) => {}
                Err(fs::TryLockError::WouldBlock) => {
                    let holder = fs::read_to_string(&path).unwrap_or_default();
                    let holder = if holder.is_empty() { "unknown".to_owned() } else { holder };
                    return Taken::Theirs { holder };
                }
                Err(fs::TryLockError::Error(_)) => return Taken::Ours(None),
            }
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        drop(fs::remove_file(&self.path));
    }
}

/// Whether `path` still means the open `file`.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;

    match (file.metadata(), fs::metadata(path)) {
        (Ok(open), Ok(named)) => (open.dev(), open.ino()) == (named.dev(), named.ino()),
        _ => false,
    }
}

/// An open file cannot be removed here.
#[cfg(not(unix))]
fn is_at(_file: &File, _path: &Path) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk with room for so many bytes.
    struct Disk {
        room: usize,
        written: Vec<u8>,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.room == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            let n = bytes.len().min(self.room).min(3);
            self.room -= n;
            self.written.extend_from_slice(&bytes[..n]);
            Ok(n)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_delays_lines_and_neither_cuts_nor_repeats_them() {
        let mut disk = Disk { room: 7, written: Vec::new() };
        let mut waiting = b"first\nsecond\n".to_vec();
        let error = drain_into(&mut disk, &mut waiting).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!(waiting, b"econd\n");
        waiting.extend_from_slice(b"third\n");
        disk.room = 100;
        drain_into(&mut disk, &mut waiting).unwrap();
        assert_eq!(disk.written, b"first\nsecond\nthird\n");
        assert!(waiting.is_empty());
    }
}
