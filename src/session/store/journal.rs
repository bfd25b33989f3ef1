//! Appends entries to a file, or keeps them in memory.
//!
//! An entry is a single `write` of whole lines on an append handle, so a killed
//! process loses no acknowledged entry. Lines that cannot be written wait and
//! are written with the next entry, from the byte at which the disk was full. Before
//! each write the journal checks that its path still refers to the open file. Written
//! bytes stay in memory until a sync succeeds, because they must be written
//! again if it fails; the session task decides when to sync.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::util::atomic_file;
use crate::util::disk::{self, Disk};
use crate::util::os;

use super::entry::Header;
use super::lease::{Lease, LeaseOutcome, is_at, is_same_file};

/// An entry is in memory but not in the file.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum JournalError {
    #[error(
        "cannot write the session file {}: {source}; new messages stay in memory until it can be written",
        path.display()
    )]
    Write { path: PathBuf, source: io::Error },
    #[error(
        "this session is open in another pi process ({holder}); quit that process and open the session again, or start a new one"
    )]
    Locked { holder: String },
}

#[derive(Debug)]
pub(super) enum Journal {
    /// `--no-session`, and tests.
    Memory,
    File(FileJournal),
    /// Another process holds the lease.
    ReadOnly {
        holder: String,
    },
}

#[derive(Debug)]
pub(super) struct FileJournal {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    /// `None` until the first message, and while the file cannot be opened.
    file: Option<Arc<File>>,
    /// Whether the file was created, by this process or an earlier one.
    is_made: bool,
    /// Whether the session has a message, so that the file must exist.
    due: bool,
    /// Lines that are missing from the file, completely or in part.
    waiting: Vec<u8>,
    /// Number of bytes of `waiting` that are already at the end of the file.
    begun: usize,
    /// End of the last write, in bytes from the start of the file.
    end: u64,
    /// Number of bytes of the last write.
    n_last: usize,
    unsynced: Vec<Piece>,
    /// Why lines are waiting.
    problem: Option<String>,
    /// Why written lines are not durable.
    sync_problem: Option<String>,
    lease: Option<Lease>,
    /// Whether it is known that another program appends to the file.
    is_shared: bool,
}

/// Written bytes and their offset.
#[derive(Debug)]
struct Piece {
    offset: u64,
    bytes: Vec<u8>,
}

/// What happened to the file of an open session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Displaced {
    /// The path does not exist: the file was deleted or moved.
    Gone,
    /// The path refers to another file.
    Replaced,
    /// The file is shorter than before.
    Truncated,
}

impl Journal {
    /// A file that is created with the first message.
    pub(super) fn create(path: PathBuf, disk: Arc<dyn Disk>) -> Self {
        Self::File(FileJournal::new(path, disk))
    }

    /// Continues an existing file with the outcome of its lease. A file that is not
    /// writable can still be read; appended lines then wait.
    pub(super) fn open(path: &Path, outcome: LeaseOutcome, disk: Arc<dyn Disk>) -> Self {
        let lease = match outcome {
            LeaseOutcome::Ours(lease) => Some(lease),
            LeaseOutcome::Unlocked(_) => None,
            LeaseOutcome::Theirs { holder } => return Self::ReadOnly { holder },
        };
        let mut journal = FileJournal::new(path.to_owned(), disk);
        journal.is_made = true;
        journal.due = true;
        journal.lease = lease;
        if let Err(error) = journal.open_again() {
            journal.problem = Some(error.to_string());
        }
        Self::File(journal)
    }

    pub(super) fn file(&self) -> Option<&FileJournal> {
        match self {
            Self::File(journal) => Some(journal),
            Self::Memory | Self::ReadOnly { .. } => None,
        }
    }

    pub(super) fn file_mut(&mut self) -> Option<&mut FileJournal> {
        match self {
            Self::File(journal) => Some(journal),
            Self::Memory | Self::ReadOnly { .. } => None,
        }
    }

    /// Whether the file exists.
    pub(super) fn exists(&self) -> bool {
        match self {
            Self::File(journal) => journal.is_made,
            Self::ReadOnly { .. } => true,
            Self::Memory => false,
        }
    }
}

impl FileJournal {
    fn new(path: PathBuf, disk: Arc<dyn Disk>) -> Self {
        Self {
            disk,
            path,
            file: None,
            is_made: false,
            due: false,
            waiting: Vec::new(),
            begun: 0,
            end: 0,
            n_last: 0,
            unsynced: Vec::new(),
            problem: None,
            sync_problem: None,
            lease: None,
            is_shared: false,
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The open file, to read from.
    pub(super) fn handle(&self) -> Option<&Arc<File>> {
        self.file.as_ref()
    }

    /// Appends bytes to the waiting lines; `create` makes the file appear.
    pub(super) fn push(&mut self, bytes: &[u8], create: bool) {
        self.waiting.extend_from_slice(bytes);
        self.due |= create;
    }

    /// Where the line of `len` bytes is that was pushed last; `None` unless one write wrote
    /// it whole.
    pub(super) fn offset_of_last_line(&self, len: usize) -> Option<u64> {
        let is_whole = self.waiting.is_empty() && self.n_last > len;
        self.end.checked_sub(len as u64 + 1).filter(|_| is_whole)
    }

    /// Whether nothing is in memory only: everything was written, and what could be synced
    /// was.
    pub(super) fn is_durable(&self) -> bool {
        self.waiting.is_empty() && self.unsynced.is_empty() && self.sync_problem.is_none()
    }

    /// Why something is not durable; `None` if everything is.
    pub(super) fn problem(&self) -> Option<&str> {
        // The line break after a partial line is not content.
        let waits = self.waiting.iter().any(|byte| *byte != b'\n');
        self.problem.as_deref().filter(|_| waits).or(self.sync_problem.as_deref())
    }

    /// Why the file cannot be opened for writing.
    pub(super) fn open_problem(&self) -> Option<&str> {
        self.problem.as_deref().filter(|_| self.file.is_none())
    }

    /// How many messages are not in the file.
    pub(super) fn n_waiting_messages(&self) -> usize {
        let lines = self.waiting.split(|byte| *byte == b'\n');
        lines.filter(|line| line.starts_with(br#"{"type":"message""#)).count()
    }

    /// Creates the file, although the session has no message yet.
    pub(super) fn begin(&mut self, header: &Header) -> Result<(), JournalError> {
        self.due = true;
        if self.file.is_some() || self.is_made {
            return self.flush(header);
        }
        let made = self.create_file(header).map(drop);
        self.problem = made.as_ref().err().map(ToString::to_string);
        made.map_err(|source| self.write_error(source))?;
        self.flush(header)
    }

    /// Writes waiting lines as far as the disk allows.
    pub(super) fn flush(&mut self, header: &Header) -> Result<(), JournalError> {
        if !self.due || self.waiting.is_empty() {
            return Ok(());
        }
        let written = self.write_waiting(header);
        self.problem = written.as_ref().err().map(ToString::to_string);
        written.map_err(|source| self.write_error(source))
    }

    fn write_error(&self, source: io::Error) -> JournalError {
        JournalError::Write { path: self.path.clone(), source }
    }

    fn write_waiting(&mut self, header: &Header) -> io::Result<()> {
        let file = match &self.file {
            Some(file) => Arc::clone(file),
            None if self.is_made => self.open_again()?,
            None => self.create_file(header)?,
        };
        if self.begun > 0 && file.metadata()?.len() != self.end {
            // Another program has appended to the line begun here.
            self.waiting.insert(0, b'\n');
            self.begun = 0;
        }
        let written = self.drain_into(&file);
        // A line stays complete in memory until its last byte is written.
        let n_done =
            self.waiting[..self.begun].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        self.waiting.drain(..n_done);
        self.begun -= n_done;
        written
    }

    fn drain_into(&mut self, file: &File) -> io::Result<()> {
        while self.begun < self.waiting.len() {
            match self.disk.write(file, &self.waiting[self.begun..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => self.written(file, n),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Records that the next `n` waiting bytes are in the file.
    fn written(&mut self, mut file: &File, n: usize) {
        let bytes = &self.waiting[self.begun..self.begun + n];
        let len = n as u64;
        self.n_last = n;
        // After a write, the position of an append handle is the end of its data.
        self.end = file.stream_position().unwrap_or(self.end + len);
        let offset = self.end.saturating_sub(len);
        match self.unsynced.last_mut() {
            Some(last) if last.offset + last.bytes.len() as u64 == offset => {
                last.bytes.extend_from_slice(bytes);
            }
            _ => self.unsynced.push(Piece { offset, bytes: bytes.to_vec() }),
        }
        self.begun += n;
    }

    fn open_again(&mut self) -> io::Result<Arc<File>> {
        let file = self.disk.open(OpenOptions::new().read(true).append(true), &self.path)?;
        self.end = file.metadata()?.len();
        Ok(Arc::clone(self.file.insert(Arc::new(file))))
    }

    fn create_file(&mut self, header: &Header) -> io::Result<Arc<File>> {
        make_folder(&self.path)?;
        let file = self.disk.open(&new_file(), &self.path)?;
        let line = header_line(header) + "\n";
        if let Err(error) = disk::write_all(&*self.disk, &file, line.as_bytes()) {
            // None of this session is on disk yet, so leave no partial file.
            drop(self.disk.remove(&self.path));
            return Err(error);
        }
        self.settle_in(file, self.path.clone(), line.into_bytes());
        Ok(self.file.clone().expect("it was just set"))
    }

    /// Continues in `file`, which contains `bytes` and is at `path`.
    fn settle_in(&mut self, file: File, path: PathBuf, bytes: Vec<u8>) {
        self.file = Some(Arc::new(file));
        self.is_made = true;
        self.begun = 0;
        self.end = bytes.len() as u64;
        self.n_last = 0;
        self.unsynced = vec![Piece { offset: 0, bytes }];
        let is_held = path == self.path && self.lease.as_ref().is_some_and(Lease::is_held);
        self.path = path;
        if !is_held {
            self.lease = match Lease::take(&*self.disk, &self.path) {
                LeaseOutcome::Ours(lease) => Some(lease),
                LeaseOutcome::Unlocked(_) | LeaseOutcome::Theirs { .. } => None,
            };
        }
    }

    // A file that was taken away.

    /// What happened to the file since the last write, checked before the next one.
    pub(super) fn displaced(&self) -> Option<Displaced> {
        let file = self.file.as_ref().filter(|_| self.due && !self.waiting.is_empty())?;
        let open = file.metadata().ok()?;
        match fs::metadata(&self.path) {
            Ok(named) if is_same_file(&open, &named) => {
                (open.len() < self.end).then_some(Displaced::Truncated)
            }
            Ok(_) => Some(Displaced::Replaced),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                Some(Displaced::Gone)
            }
            // The state is unknown; the open file still accepts writes.
            Err(_) => None,
        }
    }

    /// Whether another program has appended to the file since the last write; true once.
    pub(super) fn finds_other_writer(&mut self) -> bool {
        if self.is_shared || self.waiting.is_empty() {
            return false;
        }
        let len = self.file.as_ref().and_then(|file| Some(file.metadata().ok()?.len()));
        self.is_shared = len.is_some_and(|len| len > self.end);
        self.is_shared
    }

    /// The contents of the file without a partial last line; `None` if it can
    /// no longer be read.
    pub(super) fn old_bytes(&self) -> Option<Vec<u8>> {
        let len = self.end.saturating_sub(self.begun as u64);
        let mut bytes = vec![0; usize::try_from(len).ok()?];
        os::read_exact_at(self.file.as_ref()?, &mut bytes, 0).ok()?;
        Some(bytes)
    }

    /// Continues in a new file that begins with `bytes`: at the old path if that is
    /// free, otherwise beside it. With `is_all`, `bytes` include the waiting lines. Returns
    /// the path.
    pub(super) fn begin_again(
        &mut self,
        displaced: Displaced,
        bytes: Vec<u8>,
        is_all: bool,
    ) -> Result<PathBuf, JournalError> {
        let made = self.make_file(displaced, &bytes);
        self.problem = made.as_ref().err().map(ToString::to_string);
        let (file, path) = made.map_err(|source| self.write_error(source))?;
        if is_all {
            self.waiting.clear();
        }
        self.settle_in(file, path.clone(), bytes);
        Ok(path)
    }

    fn make_file(&self, displaced: Displaced, bytes: &[u8]) -> io::Result<(File, PathBuf)> {
        make_folder(&self.path)?;
        let stem = self.path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let own = (displaced == Displaced::Gone).then(|| self.path.clone());
        let others = (1..).map(|n| self.path.with_file_name(format!("{stem}-recovered-{n}.jsonl")));
        for path in own.into_iter().chain(others) {
            let file = match self.disk.open(&new_file(), &path) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(error),
            };
            let written = disk::write_all(&*self.disk, &file, bytes);
            written.inspect_err(|_| drop(self.disk.remove(&path)))?;
            return Ok((file, path));
        }
        unreachable!("there is always another number")
    }

    /// Writes the session, including unsaved lines, to a new file in the first writable one
    /// of `folders`. Returns its path.
    pub(super) fn write_copy(&self, header: &Header, folders: &[PathBuf]) -> io::Result<PathBuf> {
        let in_file = self.old_bytes().or_else(|| fs::read(&self.path).ok().filter(|_| self.is_made));
        let mut bytes = in_file.unwrap_or_else(|| (header_line(header) + "\n").into_bytes());
        bytes.extend_from_slice(&self.waiting);
        let name = format!("pi-unsaved-{}.jsonl", uuid::Uuid::new_v4().simple());
        let copy_into = |folder: &Path| {
            let path = folder.join(&name);
            let file = self.disk.open(&new_file(), &path)?;
            let written = disk::write_all(&*self.disk, &file, &bytes).and_then(|()| self.disk.sync(&file));
            written.inspect_err(|_| drop(self.disk.remove(&path))).map(|()| path)
        };
        let mut last = Err(io::ErrorKind::NotFound.into());
        for folder in folders {
            last = copy_into(folder);
            if last.is_ok() {
                break;
            }
        }
        last
    }

    // Durability.

    /// The bytes to sync, if something was written since the last call.
    pub(super) fn take_unsynced(&mut self) -> Option<Unsynced> {
        let file = self.file.clone()?;
        let pieces = std::mem::take(&mut self.unsynced);
        let (disk, path) = (Arc::clone(&self.disk), self.path.clone());
        (!pieces.is_empty()).then_some(Unsynced { disk, path, file, pieces })
    }

    /// Handles the result of a sync. Returns a notice for the user.
    pub(super) fn synced(&mut self, synced: Synced) -> Option<String> {
        let before = self.sync_problem.take();
        match synced.0 {
            Outcome::Durable => None,
            Outcome::WrittenAgain { error } => Some(format!(
                "saving the session failed once ({error}); writing the messages again succeeded"
            )),
            Outcome::Failed { error, unsynced } => {
                // Offsets refer to a file, so those of another file are useless.
                if self.file.as_ref().is_some_and(|file| Arc::ptr_eq(file, &unsynced.file)) {
                    self.unsynced.splice(0..0, unsynced.pieces);
                }
                self.sync_problem = Some(error.to_string());
                before.is_none().then(|| {
                    format!(
                        "saving the session to disk fails ({error}); a power failure may lose the last \
                         messages. pi keeps retrying"
                    )
                })
            }
        }
    }
}

/// Bytes of a session file that are not durable yet.
#[derive(Debug)]
pub(in crate::session) struct Unsynced {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    file: Arc<File>,
    pieces: Vec<Piece>,
}

/// The result of a sync, to be returned to its store.
#[derive(Debug)]
pub(in crate::session) struct Synced(Outcome);

#[derive(Debug)]
enum Outcome {
    Durable,
    /// The sync failed and succeeded after the bytes were written once more.
    WrittenAgain {
        error: io::Error,
    },
    Failed {
        error: io::Error,
        unsynced: Unsynced,
    },
}

impl Unsynced {
    /// Makes the bytes durable. Blocks on the disk.
    pub(in crate::session) fn sync(self) -> Synced {
        let Err(error) = self.try_sync() else { return Synced(Outcome::Durable) };
        // The system reports a page it could not store once and then considers it
        // stored: a second sync alone would succeed without effect.
        Synced(match self.write_again().and_then(|()| self.try_sync()) {
            Ok(()) => Outcome::WrittenAgain { error },
            Err(error) => Outcome::Failed { error, unsynced: self },
        })
    }

    fn try_sync(&self) -> io::Result<()> {
        match self.disk.sync(&self.file) {
            // Some file systems have no sync.
            Err(error)
                if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) =>
            {
                Ok(())
            }
            result => result,
        }
    }

    fn write_again(&self) -> io::Result<()> {
        // Not with the append handle, which always writes at the end.
        let file = self.disk.open(OpenOptions::new().write(true), &self.path)?;
        if !is_at(&self.file, &self.path) || !is_same_file(&file.metadata()?, &self.file.metadata()?) {
            return Err(io::Error::other("the file was replaced"));
        }
        self.pieces.iter().try_for_each(|piece| self.disk.write_again(&file, &piece.bytes, piece.offset))
    }
}

fn make_folder(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), atomic_file::create_private_folder)
}

fn new_file() -> OpenOptions {
    let mut options = atomic_file::private_options();
    options.read(true).append(true).create_new(true);
    options
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

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::util::disk::SystemDisk;

    /// A disk with a limited number of free bytes.
    #[derive(Debug)]
    struct SmallDisk {
        room: Mutex<usize>,
        n_syncs_that_fail: Mutex<usize>,
    }

    impl SmallDisk {
        fn new(room: usize, n_syncs_that_fail: usize) -> Arc<Self> {
            Arc::new(Self { room: Mutex::new(room), n_syncs_that_fail: Mutex::new(n_syncs_that_fail) })
        }
    }

    impl Disk for SmallDisk {
        fn open(&self, options: &OpenOptions, path: &Path) -> io::Result<File> {
            SystemDisk.open(options, path)
        }

        fn write(&self, file: &File, bytes: &[u8]) -> io::Result<usize> {
            let mut room = self.room.lock().unwrap();
            if *room == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            let n = bytes.len().min(*room).min(3);
            *room -= n;
            SystemDisk.write(file, &bytes[..n])
        }

        fn sync(&self, _file: &File) -> io::Result<()> {
            let mut n_left = self.n_syncs_that_fail.lock().unwrap();
            if *n_left == 0 {
                return Ok(());
            }
            *n_left -= 1;
            Err(io::Error::other("lost page"))
        }
    }

    fn header() -> Header {
        serde_json::from_str(r#"{"version":3,"id":"s-1","timestamp":"T","cwd":"/"}"#).unwrap()
    }

    /// A journal of an existing file that contains `old\n`.
    fn journal(disk: &Arc<SmallDisk>) -> (tempfile::TempDir, FileJournal) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        fs::write(&path, "old\n").unwrap();
        let disk: Arc<dyn Disk> = Arc::<SmallDisk>::clone(disk);
        match Journal::open(&path, LeaseOutcome::Unlocked(io::ErrorKind::Unsupported.into()), disk) {
            Journal::File(journal) => (folder, journal),
            other => panic!("{other:?}"),
        }
    }

    fn text(journal: &FileJournal) -> String {
        fs::read_to_string(journal.path()).unwrap()
    }

    #[test]
    fn a_full_disk_delays_lines_and_neither_cuts_nor_repeats_them() {
        let disk = SmallDisk::new(7, 0);
        let (_folder, mut journal) = journal(&disk);
        journal.push(b"first\nsecond\n", false);
        let error = journal.flush(&header()).unwrap_err();
        assert!(
            matches!(error, JournalError::Write { source, .. } if source.kind() == io::ErrorKind::StorageFull)
        );
        assert_eq!(
            (text(&journal).as_str(), journal.waiting.as_slice()),
            ("old\nfirst\ns", &b"second\n"[..])
        );
        assert!(journal.problem().is_some());
        journal.push(b"third\n", false);
        *disk.room.lock().unwrap() = 100;
        journal.flush(&header()).unwrap();
        assert_eq!(text(&journal), "old\nfirst\nsecond\nthird\n");
        assert!(journal.waiting.is_empty() && journal.problem().is_none());
    }

    #[test]
    fn a_begun_line_that_another_program_appended_to_is_written_again() {
        let disk = SmallDisk::new(3, 0);
        let (_folder, mut journal) = journal(&disk);
        journal.push(b"first\n", false);
        assert!(journal.flush(&header()).is_err());
        fs::write(journal.path(), text(&journal) + "theirs\n").unwrap();
        *disk.room.lock().unwrap() = 100;
        journal.flush(&header()).unwrap();
        assert_eq!(text(&journal), "old\nfirtheirs\n\nfirst\n");
    }

    #[test]
    fn lines_are_written_again_when_a_sync_fails() {
        let disk = SmallDisk::new(100, 1);
        let (_folder, mut journal) = journal(&disk);
        journal.push(b"first\nsecond\n", false);
        journal.flush(&header()).unwrap();
        // Simulates the lost page.
        fs::write(journal.path(), [b"old\n".as_slice(), &[0; 13]].concat()).unwrap();
        let synced = journal.take_unsynced().unwrap().sync();
        let notice = journal.synced(synced).unwrap();
        assert!(notice.contains("lost page") && notice.contains("again succeeded"), "{notice}");
        assert_eq!(text(&journal), "old\nfirst\nsecond\n");
        assert!(journal.take_unsynced().is_none() && journal.problem().is_none());
    }

    #[test]
    fn a_disk_that_stays_broken_is_reported_once_and_tried_again() {
        let disk = SmallDisk::new(100, 4);
        let (_folder, mut journal) = journal(&disk);
        journal.push(b"first\n", false);
        journal.flush(&header()).unwrap();
        let sync = |journal: &mut FileJournal| {
            let synced = journal.take_unsynced().unwrap().sync();
            journal.synced(synced)
        };
        assert!(sync(&mut journal).unwrap().contains("keeps retrying"));
        assert_eq!(journal.problem(), Some("lost page"));
        assert_eq!(sync(&mut journal), None, "it is known");
        assert_eq!(sync(&mut journal), None);
        assert_eq!((journal.problem(), text(&journal).as_str()), (None, "old\nfirst\n"));
    }
}
