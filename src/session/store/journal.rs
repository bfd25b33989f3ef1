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
    /// Whole lines that are not in the file yet.
    waiting: Vec<u8>,
    unsynced: bool,
    _lease: Option<Lease>,
}

impl Journal {
    /// A file that appears with the first thing said.
    pub(super) fn create(path: PathBuf) -> Self {
        Self::File(FileJournal { path, file: None, waiting: Vec::new(), unsynced: false, _lease: None })
    }

    /// Continues an existing file.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let lease = match Lease::take(path) {
            Taken::Ours(lease) => lease,
            Taken::Theirs { holder } => return Ok(Self::ReadOnly { holder }),
        };
        let file = OpenOptions::new().append(true).open(path)?;
        let waiting = Vec::new();
        Ok(Self::File(FileJournal {
            path: path.to_owned(),
            file: Some(file),
            waiting,
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
                if journal.file.is_none() && !create {
                    return Ok(());
                }
                journal
                    .write_waiting(header)
                    .map_err(|source| JournalError::Write { path: journal.path.clone(), source })
            }
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
    fn write_waiting(&mut self, header: &Header) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                let (file, lease) = create_file(&self.path, header)?;
                self._lease = lease;
                self.file.insert(file)
            }
        };
        append_whole(file, &self.waiting)?;
        self.waiting.clear();
        self.unsynced = true;
        Ok(())
    }
}

/// Writes all of `bytes`, or nothing: a short write (full disk) is undone, so
/// the file never gains half a line that will be written again.
fn append_whole(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    let before = file.metadata()?.len();
    file.write_all(bytes).inspect_err(|_| {
        // If even this fails, readers skip the half line and report it.
        drop(file.set_len(before));
    })
}

fn create_file(path: &Path, header: &Header) -> io::Result<(File, Option<Lease>)> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut file = OpenOptions::new().append(true).create_new(true).open(path)?;
    let line = header_line(header) + "\n";
    if let Err(error) = append_whole(&mut file, line.as_bytes()) {
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
struct Lease {
    path: PathBuf,
    _file: File,
}

enum Taken {
    /// `None` where the folder does not allow lock files; then nobody is kept out.
    Ours(Option<Lease>),
    Theirs {
        holder: String,
    },
}

impl Lease {
    fn take(session: &Path) -> Taken {
        let Some(name) = session.file_name() else { return Taken::Ours(None) };
        let path = session.with_file_name(format!(".{}.lock", name.to_string_lossy()));
        let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let Ok(mut file) = opened else { return Taken::Ours(None) };
        match file.try_lock() {
            Ok(()) => {
                // For the message another process shows; the lock is what counts.
                drop(file.set_len(0).and_then(|()| write!(file, "{}", std::process::id())));
                Taken::Ours(Some(Self { path, _file: file }))
            }
            Err(fs::TryLockError::WouldBlock) => {
                let holder = fs::read_to_string(&path).unwrap_or_default();
                let holder = if holder.is_empty() { "unknown".to_owned() } else { holder };
                Taken::Theirs { holder }
            }
            Err(fs::TryLockError::Error(_)) => Taken::Ours(None),
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        drop(fs::remove_file(&self.path));
    }
}
