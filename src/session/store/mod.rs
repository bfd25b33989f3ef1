//! The session file: entries, their tree, and the journal they are appended to.
//!
//! A session file is never rewritten and never truncated; a format migration
//! writes beside, syncs and renames. Damaged lines are skipped and reported.

mod entry;
mod journal;
mod list;
mod migrate;
mod scan;
mod tree;

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use entry::{
    BashExecution, BranchSummary, Compaction, ContextEdit, CustomMessage, CustomState, Entry, EntryBody,
    EntryId, Header, Label, ModelChange, Replacement, SessionInfo, SessionMessage, ThinkingLevelChange,
    UsageEntry,
};
pub use journal::JournalError;
pub use list::{SessionSummary, file_name, find, latest, list, project_folder};
pub use scan::OpenError;
pub(super) use scan::{clean_name, read_header};

use crate::util::clock;

use super::state::Totals;
use journal::{Journal, Lease, Taken};
use scan::Scan;
use tree::{Body, Kind, Node, Tree};

/// What a session file says, read and left alone.
#[derive(Debug, Default)]
pub(super) struct Saved {
    /// The active branch, oldest first.
    pub(super) branch: Vec<Arc<Entry>>,
    /// See [`SessionStore::context_branch`].
    pub(super) context: Vec<Arc<Entry>>,
    /// Entries that are not on the active branch.
    pub(super) n_elsewhere: usize,
    pub(super) damaged_lines: Vec<usize>,
}

/// The entry tree in memory; every append also goes to the journal.
#[derive(Debug)]
pub struct SessionStore {
    header: Header,
    tree: Tree,
    journal: Journal,
    /// Where bodies are read from; `None` if nothing is on disk.
    source: Option<PathBuf>,
    name: Option<String>,
    totals: Totals,
    damaged_lines: Vec<usize>,
}

impl SessionStore {
    /// A new session for `cwd`. With `path` it is saved there once somebody says
    /// something; without, it lives in memory.
    pub fn create(header: Header, path: Option<PathBuf>) -> Self {
        let journal = match path {
            Some(path) => Journal::create(path),
            None => Journal::Memory,
        };
        Self {
            header,
            tree: Tree::default(),
            journal,
            source: None,
            name: None,
            totals: Totals::default(),
            damaged_lines: Vec::new(),
        }
    }

    /// Opens the session in `path`. An empty file becomes a session with `header`.
    /// Blocks: reads the whole file once.
    ///
    /// # Errors
    /// When the file cannot be read or is not a session; it is left as it is.
    pub fn open(path: &Path, header: impl FnOnce() -> Header) -> Result<Self, OpenError> {
        let read_error = |source| OpenError::Read { path: path.to_owned(), source };
        // Before the file is read: from here on nobody else appends to it.
        let lease = Lease::take(path);
        let scanned = match scan::scan(path)? {
            Some(scan)
                if scan.header.version < migrate::CURRENT_VERSION && matches!(lease, Taken::Ours(_)) =>
            {
                migrate::migrate(path).map_err(read_error)?;
                scan::scan(path)?
            }
            scanned => scanned,
        };
        let Some(scan) = scanned else {
            let header = header();
            if matches!(lease, Taken::Ours(_)) {
                fs::write(path, journal::header_line(&header) + "\n").map_err(read_error)?;
            }
            let journal = Journal::open(path, lease).map_err(read_error)?;
            return Ok(Self { journal, source: Some(path.to_owned()), ..Self::create(header, None) });
        };
        let Scan { header, tree, facts, damaged_lines, unterminated, .. } = scan;
        let journal = Journal::open(path, lease).map_err(read_error)?;
        if unterminated && matches!(journal, Journal::File(_)) {
            // So that the next entry starts on a line of its own.
            let mut file = fs::OpenOptions::new().append(true).open(path).map_err(read_error)?;
            file.write_all(b"\n").map_err(read_error)?;
        }
        Ok(Self {
            header,
            tree,
            journal,
            source: Some(path.to_owned()),
            name: facts.name,
            totals: facts.totals,
            damaged_lines,
        })
    }

    /// Reads the session in `path` without taking or changing anything. Blocks:
    /// reads the whole file.
    ///
    /// # Errors
    /// When the file cannot be read or is not a session.
    pub(super) fn read(path: &Path) -> Result<Saved, OpenError> {
        let read_error = |source| OpenError::Read { path: path.to_owned(), source };
        let Some(scan) = scan::scan(path)? else { return Ok(Saved::default()) };
        if scan.header.version < migrate::CURRENT_VERSION {
            let migrated = tempfile::NamedTempFile::new().map_err(read_error)?;
            migrate::migrate_to(path, migrated.path()).map_err(read_error)?;
            let damaged_lines = scan.damaged_lines;
            return Ok(Saved { damaged_lines, ..Self::read(migrated.path())? });
        }
        let Scan { header, tree, damaged_lines, .. } = scan;
        let mut store = Self { tree, source: Some(path.to_owned()), ..Self::create(header, None) };
        let branch = store.branch(0);
        let n_elsewhere = store.tree.len().saturating_sub(branch.len());
        Ok(Saved { context: store.context_branch(), branch, n_elsewhere, damaged_lines })
    }

    /// The session as its file would have it, of the active branch alone.
    pub(super) fn into_text(mut self) -> String {
        let header = journal::header_line(&self.header);
        let lines = self.branch(0).into_iter().map(|entry| entry.to_line());
        [header].into_iter().chain(lines).map(|line| line + "\n").collect()
    }

    /// The last entries of the branch in `path`, without opening the session:
    /// reads half a mebibyte at most. `None` if the file cannot be read.
    pub fn peek_tail(path: &Path) -> Option<Vec<Arc<Entry>>> {
        scan::tail(path)
    }

    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The session's file; `None` for one in memory. A new session's file
    /// appears with the first message.
    pub fn path(&self) -> Option<&Path> {
        self.journal.path().or(self.source.as_deref())
    }

    /// Whether the session's file exists.
    pub fn is_on_disk(&self) -> bool {
        self.journal.exists()
    }

    /// The process that writes this session, if it is not this one.
    pub fn locked_by(&self) -> Option<&str> {
        match &self.journal {
            Journal::ReadOnly { holder } => Some(holder),
            Journal::Memory | Journal::File(_) => None,
        }
    }

    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Line numbers, from 1, that could not be read.
    pub fn damaged_lines(&self) -> &[usize] {
        &self.damaged_lines
    }

    pub(super) fn contains(&self, id: &EntryId) -> bool {
        self.tree.contains(id)
    }

    pub fn is_empty(&self) -> bool {
        self.tree.len() == 0
    }

    /// Makes an entry the leaf of the active branch and writes it. `now_ms` is
    /// its time. What cannot be written is kept and written with a later entry;
    /// the result says so.
    pub fn append(&mut self, body: EntryBody, now_ms: u64) -> (Arc<Entry>, Result<(), JournalError>) {
        let timestamp = clock::iso8601(now_ms);
        self.append_entry(Entry { id: self.fresh_id(), parent_id: None, timestamp, body })
    }

    /// As [`Self::append`], for an entry that has id and time already. Its parent
    /// becomes the leaf of the active branch.
    pub(super) fn append_entry(&mut self, entry: Entry) -> (Arc<Entry>, Result<(), JournalError>) {
        let parent_id = self.tree.leaf().map(|idx| self.tree.node(idx).id.clone());
        let entry = Arc::new(Entry { parent_id, ..entry });
        self.tree.push(Node {
            id: entry.id.clone(),
            parent_id: entry.parent_id.clone(),
            kind: Kind::of(&entry.body),
            body: Body::Loaded(Arc::clone(&entry)),
        });
        self.note(&entry.body);
        let written = self.journal.append(&self.header, &entry.to_line(), entry.body.is_conversation());
        (entry, written)
    }

    /// The active branch, oldest first, from the entry at `skip` on. Bodies that
    /// cannot be read are left out.
    pub fn branch(&mut self, skip: usize) -> Vec<Arc<Entry>> {
        let path = self.tree.branch();
        self.load_all(path.into_iter().skip(skip))
    }

    /// The last `n` entries of the active branch, and how many come before them.
    pub fn branch_tail(&mut self, n: usize) -> (Vec<Arc<Entry>>, usize) {
        let n_earlier = self.tree.branch().len().saturating_sub(n);
        (self.branch(n_earlier), n_earlier)
    }

    /// The part of the active branch a request can depend on: everything from
    /// the first entry the latest compaction keeps, or all of it.
    pub fn context_branch(&mut self) -> Vec<Arc<Entry>> {
        let path = self.tree.branch();
        let compaction = path.iter().rposition(|idx| self.tree.node(*idx).kind == Kind::Compaction);
        let Some(at) = compaction else { return self.branch(0) };
        let kept = self.load(path[at]).and_then(|entry| match &entry.body {
            EntryBody::Compaction(compaction) => path[..at]
                .iter()
                .position(|idx| self.tree.node(*idx).id.as_str() == compaction.first_kept_entry_id),
            _ => None,
        });
        self.branch(kept.unwrap_or(at))
    }

    /// The entries that say which model and which thinking level are in force at
    /// the leaf: at most two.
    pub(super) fn selecting_entries(&mut self) -> Vec<Arc<Entry>> {
        let path = self.tree.branch();
        let last =
            |kinds: &[Kind]| path.iter().rfind(|idx| kinds.contains(&self.tree.node(**idx).kind)).copied();
        let entries = [last(&[Kind::ThinkingLevelChange]), last(&[Kind::ModelChange, Kind::Assistant])];
        self.load_all(entries.into_iter().flatten())
    }

    /// The latest answer on the branch, if no compaction came after it.
    pub(super) fn last_answer(&mut self) -> Option<Arc<Entry>> {
        let path = self.tree.branch();
        let relevant =
            |idx: &&usize| matches!(self.tree.node(**idx).kind, Kind::Assistant | Kind::Compaction);
        let idx = *path.iter().rfind(relevant)?;
        (self.tree.node(idx).kind == Kind::Assistant).then(|| self.load(idx)).flatten()
    }

    /// Whether anybody has said anything on the branch.
    pub fn has_conversation(&self) -> bool {
        self.tree.branch().iter().any(|idx| matches!(self.tree.node(*idx).kind, Kind::User | Kind::Assistant))
    }

    /// Tries again to write what could not be written.
    ///
    /// # Errors
    /// When entries still wait in memory.
    pub fn flush(&mut self) -> Result<(), JournalError> {
        self.journal.flush(&self.header)
    }

    /// A handle to make durable, if something was written since the last call.
    pub fn take_unsynced(&mut self) -> Option<File> {
        self.journal.take_unsynced()
    }

    fn load(&mut self, idx: usize) -> Option<Arc<Entry>> {
        self.load_all([idx]).pop()
    }

    /// The entries that can be read. The file is opened once, if at all.
    fn load_all(&mut self, indices: impl IntoIterator<Item = usize>) -> Vec<Arc<Entry>> {
        let mut file = None;
        let mut entries = Vec::new();
        for idx in indices {
            let location = match &self.tree.node(idx).body {
                Body::Loaded(entry) => {
                    entries.push(Arc::clone(entry));
                    continue;
                }
                Body::OnDisk(location) => *location,
            };
            if file.is_none() {
                file = self.source.as_deref().and_then(|path| File::open(path).ok());
            }
            if let Some(entry) = file.as_ref().and_then(|file| scan::read_entry(file, location)) {
                let entry = Arc::new(entry);
                self.tree.set_body(idx, Body::Loaded(Arc::clone(&entry)));
                entries.push(entry);
            }
        }
        entries
    }

    fn note(&mut self, body: &EntryBody) {
        match body {
            EntryBody::Message { message: SessionMessage::Model(message), .. } => self.totals.note(message),
            EntryBody::SessionInfo(info) => self.name = scan::clean_name(&info.name),
            EntryBody::Usage(usage) => self.totals.add_usage(&usage.usage),
            _ => {}
        }
    }

    fn fresh_id(&self) -> EntryId {
        for _ in 0..100 {
            let uuid = uuid::Uuid::new_v4().simple().to_string();
            let id = EntryId::new(&uuid[..8]);
            if !self.tree.contains(&id) {
                return id;
            }
        }
        EntryId::new(&uuid::Uuid::new_v4().to_string())
    }
}
