//! The session file: entries, their tree, and the journal they are appended to.
//!
//! A session file is never rewritten and never truncated; a format migration
//! writes a new file beside it, syncs and renames, and keeps the old file. Damaged
//! lines are skipped and reported.

mod bodies;
mod context;
mod damage;
mod entry;
mod journal;
mod lease;
mod line;
mod list;
mod manage;
mod message_facts;
mod migrate;
mod nesting;
mod outline;
mod replace;
mod scan;
mod session_tree;
mod stamp;
mod tree;
mod tree_copy;

use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(super) use context::{ContextReader, ToSummarize};
pub use damage::DamagedLine;
pub(super) use damage::name_lines;
pub use entry::{
    BashExecution, BranchSummary, Compaction, ContextEdit, CustomMessage, CustomState, Entry, EntryBody,
    EntryId, Header, Label, ModelChange, Replacement, SessionInfo, SessionMessage, ThinkingLevelChange,
    UsageEntry,
};
pub use journal::JournalError;
pub(super) use journal::{Synced, Unsynced};
pub use list::{FoundSessions, file_name, find, latest, project_folder, unrecognised_latest};
pub(super) use list::{session_files, works_in};
pub use manage::{Deleted, ManageError, delete_session, rename_session};
pub(super) use outline::PendingOutline;
pub(super) use replace::replace;
pub use scan::{OpenError, read_header};
pub(super) use scan::{clean_name, is_entry, parse_header, past_bad_blocks, ranges_of_entries};
pub use session_tree::{EntryLabel, SessionTree, StoredEntry, TreeEntry, TreeLines};
pub(super) use stamp::{End, Stamp};
pub use tree::EntryKind;
pub(super) use tree_copy::{BranchCopy, copy_file};

use crate::util::clock;
use crate::util::disk::{Disk, SystemDisk};
use crate::util::os;

use super::state::Totals;
use journal::{Displaced, FileJournal, Journal};
use lease::{Lease, LeaseOutcome};
use scan::Scan;
use tree::{Body, Location, Node, Tree};

/// The contents of a session file, read without opening the session.
#[derive(Debug, Default)]
pub(super) struct Saved {
    /// The active branch, oldest first.
    pub(super) branch: Vec<Arc<Entry>>,
    /// See [`SessionStore::context_branch`].
    pub(super) context: Vec<Arc<Entry>>,
    /// Entries that are not on the active branch.
    pub(super) n_elsewhere: usize,
    pub(super) damage: Vec<DamagedLine>,
}

/// A session file read as a tree, without opening the session.
#[derive(Debug)]
pub struct StoredTree {
    /// The first line of the file.
    pub header: Header,
    /// Its entries.
    pub tree: SessionTree,
    /// What the user named the session.
    pub name: Option<String>,
    /// Lines that could not be read.
    pub damage: Vec<DamagedLine>,
}

/// Reads ids and parents of all entries in `path`, without a lease and without changes.
/// `None` for an empty file. Blocks: reads the whole file once.
///
/// # Errors
/// If the file cannot be read or is not a session.
pub fn read_tree(path: &Path) -> Result<Option<StoredTree>, OpenError> {
    let read_error = |error| OpenError::Read { path: path.to_owned(), error };
    check_file(path)?;
    let Some(scan) = scan::scan(path)? else { return Ok(None) };
    if scan.header.version < migrate::CURRENT_VERSION {
        // The tree keeps the temporary file open, which may leave its folder.
        let migrated = tempfile::NamedTempFile::new().map_err(read_error)?;
        migrate::migrate_to(&SystemDisk, path, migrated.path()).map_err(read_error)?;
        let damage = scan.damage;
        return Ok(read_tree(migrated.path())?.map(|read| StoredTree { damage, ..read }));
    }
    let Scan { header, tree, facts, damage, file, .. } = scan;
    let tree = SessionTree::new(&header.id, &tree, Some(file));
    Ok(Some(StoredTree { header, tree, name: facts.name, damage }))
}

/// Most bytes of the entries that are shown when a session is opened, and how many are shown
/// whatever their size.
const MAX_TAIL_BYTES: u64 = 2 << 20;
const MIN_TAIL_ENTRIES: usize = 40;

/// The entry tree in memory; every append also goes to the journal.
#[derive(Debug)]
pub struct SessionStore {
    header: Header,
    tree: Tree,
    journal: Journal,
    /// The opened file and its path; `None` for a new session. Bodies are read from this
    /// file even if another one replaces it at the path.
    source: Option<(PathBuf, File)>,
    name: Option<String>,
    totals: Totals,
    damage: Vec<DamagedLine>,
    /// The lines of `damage`.
    damaged_lines: Vec<usize>,
    /// Entries whose bodies could not be read, which was already reported.
    unreadable: HashSet<usize>,
    /// Notices for the user that were not collected yet.
    notices: Vec<String>,
    /// An outline of the file that was read, to be written.
    outline: Option<PendingOutline>,
    reads: ReadCounts,
}

/// How much of its file a store has read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReadCounts {
    /// Bytes of lines that were looked at to open the session.
    pub n_scanned_bytes: u64,
    /// Entries that were read whole.
    pub n_bodies: usize,
}

impl SessionStore {
    /// A new session. With `path`, it is saved there with its first message;
    /// without, it stays in memory.
    pub fn create(header: Header, path: Option<PathBuf>) -> Self {
        Self::create_on(Arc::new(SystemDisk), header, path)
    }

    /// Like [`Self::create`], on a given disk.
    pub fn create_on(disk: Arc<dyn Disk>, header: Header, path: Option<PathBuf>) -> Self {
        let journal = match path {
            Some(path) => Journal::create(path, disk),
            None => Journal::Memory,
        };
        Self {
            header,
            tree: Tree::default(),
            journal,
            source: None,
            name: None,
            totals: Totals::default(),
            damage: Vec::new(),
            damaged_lines: Vec::new(),
            unreadable: HashSet::new(),
            notices: Vec::new(),
            outline: None,
            reads: ReadCounts::default(),
        }
    }

    /// Opens the session in `path`. An empty file becomes a session with `header`.
    /// Blocks: reads the whole file once. A file that is not writable can still be
    /// opened; [`Self::unsaved`] reports it once something was added.
    ///
    /// # Errors
    /// If the file cannot be read or is not a session; it stays unchanged.
    pub fn open(path: &Path, header: impl FnOnce() -> Header) -> Result<Self, OpenError> {
        Self::open_on(Arc::new(SystemDisk), path, header)
    }

    /// Like [`Self::open`], on a given disk.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_on(
        disk: Arc<dyn Disk>,
        path: &Path,
        header: impl FnOnce() -> Header,
    ) -> Result<Self, OpenError> {
        let read_error = |error| OpenError::Read { path: path.to_owned(), error };
        check_file(path)?;
        // Before the file is read: from here on, no other process appends to it.
        let lease = Lease::take(&*disk, path);
        let is_ours = !matches!(lease, LeaseOutcome::Theirs { .. });
        let mut notices = Vec::new();
        let scanned = match scan::scan(path)? {
            Some(scan) if scan.header.version < migrate::CURRENT_VERSION && is_ours => {
                let backup = migrate::migrate(&*disk, path, scan.header.version)
                    .map_err(|error| OpenError::Migrate { path: path.to_owned(), error })?;
                notices.push(format!(
                    "converted this session from format version {}; the old file is {}",
                    scan.header.version,
                    backup.display()
                ));
                scan::scan(path)?
            }
            scanned => scanned,
        };
        let unlocked = lease.problem();
        let journal = Journal::open(path, lease, disk);
        if let Some(problem) = journal.file().and_then(FileJournal::open_problem) {
            notices.push(format!(
                "cannot write the session file {} ({problem}); new messages stay in memory until it can be written",
                path.display()
            ));
        } else if let Some(problem) = unlocked {
            notices.push(format!(
                "this session cannot be locked ({problem}); do not open it in another pi at the same time"
            ));
        }
        let mut store = match scanned {
            None => {
                let header = header();
                let line = journal::header_line(&header) + "\n";
                let source = Some((path.to_owned(), os::open_regular(path).map_err(read_error)?));
                let mut store = Self { journal, source, ..Self::create(header, None) };
                if let Some(journal) = store.journal.file_mut() {
                    journal.push(line.as_bytes(), true);
                }
                store
            }
            Some(scan) => {
                let unterminated = scan.unterminated;
                notices.extend(damage::link_notices(&scan.repeated, &scan.links));
                if scan.header.version > migrate::CURRENT_VERSION {
                    notices.push(format!(
                        "this session has the format version {}, which is newer than this pi knows; what it \
                         cannot read stays in the file",
                        scan.header.version
                    ));
                }
                let mut store = Self { journal, notices, ..Self::of(path, scan) };
                if unterminated {
                    // The next entry must start on a new line.
                    if let Some(journal) = store.journal.file_mut() {
                        journal.push(b"\n", true);
                    }
                }
                store
            }
        };
        // Lines that cannot be written now are written before the first entry.
        drop(store.flush());
        Ok(store)
    }

    /// What was read, without a journal.
    fn of(path: &Path, scan: Scan) -> Self {
        let Scan { header, tree, facts, damage, file, n_bytes, outline, .. } = scan;
        let (name, totals) = (facts.name, facts.totals);
        let damaged_lines = damage.iter().map(|damaged| damaged.line).collect();
        let reads = ReadCounts { n_scanned_bytes: n_bytes, n_bodies: 0 };
        let source = Some((path.to_owned(), file));
        let empty = Self::create(header, None);
        Self { tree, name, totals, damage, damaged_lines, source, outline, reads, ..empty }
    }

    /// Reads the session in `path` without a lease and without changes. Blocks:
    /// reads the whole file.
    ///
    /// # Errors
    /// If the file cannot be read or is not a session.
    pub(super) fn read(path: &Path) -> Result<Saved, OpenError> {
        let read_error = |error| OpenError::Read { path: path.to_owned(), error };
        check_file(path)?;
        let Some(scan) = scan::scan(path)? else { return Ok(Saved::default()) };
        if scan.header.version < migrate::CURRENT_VERSION {
            let migrated = tempfile::NamedTempFile::new().map_err(read_error)?;
            migrate::migrate_to(&SystemDisk, path, migrated.path()).map_err(read_error)?;
            let damage = scan.damage;
            return Ok(Saved { damage, ..Self::read(migrated.path())? });
        }
        let mut store = Self::of(path, scan);
        let branch = store.branch(0);
        let n_elsewhere = store.tree.len().saturating_sub(branch.len());
        Ok(Saved { context: store.context_branch(), branch, n_elsewhere, damage: store.damage })
    }

    /// The text of a session file with only the active branch.
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

    /// The first line of the file.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The session's file; `None` for one in memory. A new session's file
    /// appears with the first message.
    pub fn path(&self) -> Option<&Path> {
        let source = self.source.as_ref().map(|(path, _)| path.as_path());
        self.journal.file().map(FileJournal::path).or(source)
    }

    /// Whether the session's file exists.
    pub fn is_on_disk(&self) -> bool {
        self.journal.exists()
    }

    /// The process that holds the lease of this session, if it is another one.
    pub fn locked_by(&self) -> Option<&str> {
        match &self.journal {
            Journal::ReadOnly { holder } => Some(holder),
            Journal::Memory | Journal::File(_) => None,
        }
    }

    /// What the user named the session.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// What the session has used so far.
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Line numbers, from 1, of unreadable lines.
    pub fn damaged_lines(&self) -> &[usize] {
        &self.damaged_lines
    }

    pub(super) fn contains(&self, id: &EntryId) -> bool {
        self.tree.contains(id)
    }

    /// How much was read so far.
    pub fn reads(&self) -> ReadCounts {
        self.reads
    }

    /// The number of entries in memory with their bodies.
    pub fn n_loaded_bodies(&self) -> usize {
        self.tree.n_loaded()
    }

    /// The outline of the file, if one is to be written.
    pub(super) fn take_outline(&mut self) -> Option<PendingOutline> {
        self.outline.take()
    }

    /// Writes the outline of the file, if one is to be written: what later makes opening it
    /// fast. Blocks. Nothing depends on it, so a failure is ignored.
    pub fn write_outline(&self) {
        drop(self.outline.as_ref().map(PendingOutline::write));
    }

    /// The same lines, with the kinds of their content if known.
    pub fn damage(&self) -> &[DamagedLine] {
        &self.damage
    }

    /// Removes and returns notices about the file since the last call.
    pub fn take_notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notices)
    }

    /// Adds notices about files beside the session.
    pub(super) fn report(&mut self, notices: impl IntoIterator<Item = String>) {
        self.notices.extend(notices);
    }

    /// Why something added is not durable; `None` if everything is.
    pub fn unsaved(&self) -> Option<&str> {
        self.journal.file().and_then(FileJournal::problem)
    }

    /// How many messages are not in the file.
    pub fn n_unsaved_messages(&self) -> usize {
        self.journal.file().map_or(0, FileJournal::n_waiting_messages)
    }

    /// Writes the whole session, including unsaved lines, to a new file in the
    /// first writable one of `folders`. `None` if everything is saved. Blocks.
    pub fn write_copy(&self, folders: &[PathBuf]) -> Option<io::Result<PathBuf>> {
        let journal = self.journal.file().filter(|journal| journal.problem().is_some())?;
        Some(journal.write_copy(&self.header, folders))
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.tree.len() == 0
    }

    /// Makes an entry the leaf of the active branch and writes it. `now_ms` is
    /// its time. If it cannot be written, it is kept and written with a later entry;
    /// the result reports that. Content that could not be read back is left out of the entry.
    pub fn append(&mut self, body: EntryBody, now_ms: u64) -> (Arc<Entry>, Result<(), JournalError>) {
        let timestamp = clock::iso8601(now_ms);
        let id = fresh_id(|id| self.tree.contains(id));
        self.append_entry(Entry { id, parent_id: None, timestamp, body })
    }

    /// Like [`Self::append`], for an entry that already has id and time. Its parent
    /// becomes the leaf of the active branch.
    pub(super) fn append_entry(&mut self, entry: Entry) -> (Arc<Entry>, Result<(), JournalError>) {
        let parent_id = self.tree.leaf().map(|idx| self.tree.node(idx).id.clone());
        let entry = Entry { parent_id, ..entry };
        let (line, bounded) = nesting::bounded_line(&entry);
        if bounded.is_some() {
            let text = "part of the last message was nested too deeply to store; a placeholder replaces \
                        it in the session";
            self.notices.push(text.to_owned());
        }
        let entry = Arc::new(bounded.unwrap_or(entry));
        let idx = self.tree.push(Node {
            id: entry.id.clone(),
            parent_id: entry.parent_id.clone(),
            kind: EntryKind::of(&entry.body),
            is_silent: tree::is_silent(&entry.body),
            at_ms: clock::parse_iso8601(&entry.timestamp).unwrap_or_default(),
            location: None,
            line: 0,
        });
        self.tree.keep_body(idx, Arc::clone(&entry));
        self.note(&entry.body);
        let len = line.len();
        let written = self.write(line + "\n", entry.body.is_conversation());
        let offset = self.journal.file().and_then(|journal| journal.offset_of_last_line(len));
        self.tree.set_location(idx, offset.and_then(|offset| Location::new(offset, len)));
        (entry, written)
    }

    fn write(&mut self, line: String, create: bool) -> Result<(), JournalError> {
        match &mut self.journal {
            Journal::Memory => Ok(()),
            Journal::ReadOnly { holder } => Err(JournalError::Locked { holder: holder.clone() }),
            Journal::File(journal) => {
                journal.push(line.as_bytes(), create);
                self.flush()
            }
        }
    }

    /// The active branch, oldest first, from the entry at `skip` on. Unreadable
    /// bodies are left out.
    pub fn branch(&mut self, skip: usize) -> Vec<Arc<Entry>> {
        let path = self.tree.branch();
        self.load_all(path.into_iter().skip(skip))
    }

    /// The last `n` entries of the active branch, and the number of earlier ones. Fewer if
    /// they are large: those for several screens are enough.
    pub fn branch_tail(&mut self, n: usize) -> (Vec<Arc<Entry>>, usize) {
        let mut upwards = self.tree.upwards();
        let mut n_bytes = 0_u64;
        let mut path: Vec<usize> = Vec::new();
        let mut n_earlier = 0;
        for idx in upwards.by_ref() {
            n_bytes += self.tree.node(idx).location.map_or(0, |location| u64::from(location.len));
            let fits = path.len() < MIN_TAIL_ENTRIES || n_bytes <= MAX_TAIL_BYTES;
            if path.len() >= n || !fits {
                n_earlier = 1;
                break;
            }
            path.push(idx);
        }
        n_earlier += upwards.count();
        path.reverse();
        (self.load_all(path), n_earlier)
    }

    /// Number of compactions, on all branches. Takes time in proportion to the number of entries.
    pub(super) fn n_compactions(&self) -> usize {
        self.tree.nodes().iter().filter(|node| node.kind == EntryKind::Compaction).count()
    }

    /// All entries as they are now, for readers elsewhere. Takes time in proportion to
    /// their number and reads no body.
    pub fn tree(&self) -> SessionTree {
        let file = self.file().and_then(|file| file.try_clone().ok());
        SessionTree::new(&self.header.id, &self.tree, file)
    }

    /// The file that bodies are read from.
    fn file(&self) -> Option<&File> {
        let own = || self.journal.file().and_then(FileJournal::handle).map(|file| &**file);
        self.source.as_ref().map(|(_, file)| file).or_else(own)
    }

    /// The last entry of the active branch.
    pub fn leaf(&self) -> Option<&EntryId> {
        self.tree.leaf().map(|idx| &self.tree.node(idx).id)
    }

    /// Continues after the entry `id`, or with a new root: the active branch ends there, and
    /// what is appended next follows it. Bodies that only the branch before needed leave
    /// memory. Returns false if there is no such entry; nothing changes then.
    pub fn move_leaf(&mut self, id: Option<&EntryId>) -> bool {
        let idx = id.map(|id| self.tree.index_of(id));
        if idx == Some(None) {
            return false;
        }
        self.tree.move_leaf(idx.flatten());
        let keep: HashSet<usize> = self.tree.upwards().collect();
        self.tree.release(|idx, _| keep.contains(&idx));
        true
    }

    /// Drops the bodies of all entries that can be read again. Returns their number.
    pub fn release_bodies(&mut self) -> usize {
        self.tree.release(|_, _| false)
    }

    /// Drops the bodies that the next request does not depend on, and those with images,
    /// which are large: it reads them again. Does nothing while the file might lose lines
    /// that are only in memory. Returns the number of dropped bodies.
    pub fn release_unused(&mut self) -> usize {
        if self.journal.file().is_some_and(|journal| !journal.is_durable()) {
            return 0;
        }
        let keep: HashSet<usize> = context::path(self).into_iter().collect();
        self.tree.release(|idx, entry| keep.contains(&idx) && !entry.body.has_image())
    }

    /// The part of the active branch a request can depend on: everything from
    /// the first entry the latest compaction keeps, or all of it.
    pub fn context_branch(&mut self) -> Vec<Arc<Entry>> {
        let path = context::path(self);
        self.load_all(path)
    }

    /// The entries of type `custom` on the branch.
    pub(super) fn custom_entries(&mut self) -> Vec<Arc<Entry>> {
        let mut path = self.tree.branch();
        path.retain(|idx| self.tree.node(*idx).kind == EntryKind::Custom);
        self.load_all(path)
    }

    /// The latest entry on the branch whose kind is `wanted`.
    fn last_where(&self, wanted: impl Fn(EntryKind) -> bool) -> Option<usize> {
        self.tree.upwards().find(|idx| wanted(self.tree.node(*idx).kind))
    }

    /// The latest entry of one of `kinds` on the branch.
    pub(super) fn last_of(&self, kinds: &[EntryKind]) -> Option<EntryId> {
        let last = self.last_where(|kind| kinds.contains(&kind))?;
        Some(self.tree.node(last).id.clone())
    }

    /// The entries that determine the model and thinking level at
    /// the leaf: at most two.
    pub(super) fn selecting_entries(&mut self) -> Vec<Arc<Entry>> {
        let thinking = self.last_where(|kind| kind == EntryKind::ThinkingLevelChange);
        let model = self.last_where(|kind| matches!(kind, EntryKind::ModelChange | EntryKind::Assistant));
        self.load_all(thinking.into_iter().chain(model))
    }

    /// The latest answer on the branch, unless a compaction follows it.
    pub(super) fn last_answer(&mut self) -> Option<Arc<Entry>> {
        let relevant = |kind| matches!(kind, EntryKind::Assistant | EntryKind::Compaction);
        let idx = self.last_where(relevant)?;
        (self.tree.node(idx).kind == EntryKind::Assistant).then(|| self.load(idx)).flatten()
    }

    /// Whether the branch contains a message.
    pub fn has_conversation(&self) -> bool {
        self.last_where(|kind| matches!(kind, EntryKind::User | EntryKind::Assistant)).is_some()
    }

    /// Retries writing. If the file was deleted, moved
    /// or replaced, the session is written to a new file; [`Self::take_notices`] reports it.
    ///
    /// # Errors
    /// If entries still wait in memory.
    pub fn flush(&mut self) -> Result<(), JournalError> {
        if let Some(displaced) = self.journal.file().and_then(FileJournal::displaced) {
            self.begin_again(displaced)?;
        }
        if self.journal.file_mut().is_some_and(FileJournal::finds_other_writer) {
            let text = "another program writes to this session file too; what it adds is on a branch of \
                        its own, in /tree once the session is opened again";
            self.notices.push(text.to_owned());
        }
        self.journal.file_mut().map_or(Ok(()), |journal| journal.flush(&self.header))
    }

    /// Creates the file of a new session before its first message, because something is kept
    /// beside it.
    ///
    /// # Errors
    /// As [`Self::flush`].
    pub(super) fn begin_file(&mut self) -> Result<(), JournalError> {
        self.journal.file_mut().map_or(Ok(()), |journal| journal.begin(&self.header))
    }

    fn begin_again(&mut self, displaced: Displaced) -> Result<(), JournalError> {
        let whole = match displaced {
            // The lost part is known as far as it was read.
            Displaced::Truncated => None,
            Displaced::Gone | Displaced::Replaced => self.journal.file().and_then(FileJournal::old_bytes),
        };
        let is_whole = whole.is_some();
        let (bytes, n_lost) = whole.map_or_else(|| self.known_lines(), |bytes| (bytes, 0));
        let Some(journal) = self.journal.file_mut() else { return Ok(()) };
        let old = journal.path().to_owned();
        let path = journal.begin_again(displaced, bytes, !is_whole)?;
        if let Some(file) = journal.handle().and_then(|file| file.try_clone().ok()) {
            // Either lines kept their offsets, or every remaining line is in memory.
            self.source = Some((path.clone(), file));
        }
        if !is_whole {
            self.tree.forget_locations();
        }
        let what = match displaced {
            Displaced::Gone => "was deleted or moved",
            Displaced::Replaced => "was replaced by another file",
            Displaced::Truncated => "was truncated",
        };
        let place = if path == old { "there again".to_owned() } else { format!("to {}", path.display()) };
        let lost =
            if n_lost == 0 { String::new() } else { format!("; {n_lost} earlier entries could not be read") };
        let text = format!(
            "the session file {} {what} while it was open; pi wrote the session {place}{lost}",
            old.display()
        );
        self.notices.push(text);
        Ok(())
    }

    /// The lines of all entries that are in memory or can be read, and the number of
    /// those that cannot.
    fn known_lines(&mut self) -> (Vec<u8>, usize) {
        let mut bytes = (journal::header_line(&self.header) + "\n").into_bytes();
        let all: Vec<usize> = (0..self.tree.len()).collect();
        let n_all = all.len();
        let entries = self.load_each(all, false);
        let n_lost = n_all - entries.len();
        for entry in entries {
            bytes.extend_from_slice(nesting::bounded_line(&entry).0.as_bytes());
            bytes.push(b'\n');
        }
        (bytes, n_lost)
    }

    /// The bytes to sync, if something was written since the last call.
    /// Pass the result to [`Self::synced`].
    pub(super) fn take_unsynced(&mut self) -> Option<Unsynced> {
        self.journal.file_mut().and_then(FileJournal::take_unsynced)
    }

    /// Handles the result of a sync; bytes that are not durable stay unsynced.
    pub(super) fn synced(&mut self, synced: Synced) {
        let notice = self.journal.file_mut().and_then(|journal| journal.synced(synced));
        self.notices.extend(notice);
    }

    fn load(&mut self, idx: usize) -> Option<Arc<Entry>> {
        self.load_all([idx]).pop()
    }

    /// The readable ones of these entries; unreadable ones are reported.
    fn load_all(&mut self, indices: impl IntoIterator<Item = usize>) -> Vec<Arc<Entry>> {
        self.load_each(indices, true)
    }

    fn load_each(&mut self, indices: impl IntoIterator<Item = usize>, report: bool) -> Vec<Arc<Entry>> {
        let indices: Vec<usize> = indices.into_iter().collect();
        let (missing, locations) = self.not_in_memory(&indices);
        self.reads.n_bodies += missing.len();
        let read = self.file().map(|file| bodies::read_entries(file, &locations)).unwrap_or_default();
        self.tree.reserve_bodies(read.len());
        for (idx, entry) in missing.into_iter().zip(read) {
            // Another entry at this offset: the file was changed.
            if let Some(entry) = entry.filter(|entry| entry.id == self.tree.node(idx).id) {
                self.tree.keep_body(idx, entry);
            }
        }
        let mut entries = Vec::with_capacity(indices.len());
        let mut lost = Vec::new();
        for idx in indices {
            if let Body::Loaded(entry) = self.tree.body(idx) {
                entries.push(entry);
            } else if self.unreadable.insert(idx) {
                let node = self.tree.node(idx);
                lost.push(DamagedLine { line: node.line as usize, what: node.kind.describe() });
            }
        }
        if let Some(lines) = name_lines(&lost).filter(|_| report) {
            self.notices
                .push(format!("{lines} of the session file can no longer be read; the rest is intact"));
        }
        entries
    }

    /// Those of these entries that can be read, and where they are.
    fn not_in_memory(&self, indices: &[usize]) -> (Vec<usize>, Vec<Location>) {
        let on_disk = indices.iter().filter_map(|idx| match self.tree.body(*idx) {
            Body::OnDisk(location) => Some((*idx, location)),
            Body::Loaded(_) | Body::Lost => None,
        });
        on_disk.unzip()
    }

    fn note(&mut self, body: &EntryBody) {
        match body {
            EntryBody::Message { message: SessionMessage::Model(message), .. } => self.totals.note(message),
            EntryBody::SessionInfo(info) => self.name = scan::clean_name(&info.name),
            EntryBody::Usage(usage) => {
                let provider = usage.extra.get("provider").and_then(|name| name.as_str()).unwrap_or_default();
                self.totals.add_usage(provider, &usage.usage);
            }
            EntryBody::Compaction(compaction) => compaction.usage.iter().for_each(|usage| {
                self.totals.add_usage("", usage);
            }),
            EntryBody::BranchSummary(branch) => branch.usage.iter().for_each(|usage| {
                self.totals.add_usage("", usage);
            }),
            _ => {}
        }
    }
}

/// An id that is not taken, of eight hexadecimal digits if possible.
fn fresh_id(is_taken: impl Fn(&EntryId) -> bool) -> EntryId {
    for _ in 0..100 {
        let uuid = uuid::Uuid::new_v4().simple().to_string();
        let id = EntryId::new(&uuid[..8]);
        if !is_taken(&id) {
            return id;
        }
    }
    EntryId::new(&uuid::Uuid::new_v4().to_string())
}

/// Only a regular file can be a session: a folder has no lines, and reading a pipe could
/// block forever.
pub(super) fn check_file(path: &Path) -> Result<(), OpenError> {
    let read_error = |error| OpenError::Read { path: path.to_owned(), error };
    let metadata = fs::metadata(path).map_err(read_error)?;
    if metadata.is_dir() {
        return Err(read_error(io::ErrorKind::IsADirectory.into()));
    }
    if !metadata.is_file() {
        return Err(read_error(io::Error::other("it is not a regular file")));
    }
    Ok(())
}
