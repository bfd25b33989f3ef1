//! The session file as its task uses it: appends and syncs entries, and keeps those that
//! cannot be written.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::util::clock::Clock;

use super::super::deferred::DeferredEntries;
use super::super::event::{NoticeLevel, Opened, SessionEvent};
use super::super::handle::SessionError;
use super::super::outbox::Outbox;
use super::super::pins;
use super::super::refusal::Refusal;
use super::super::state::SessionState;
use super::super::store::{ContextReader, Entry, EntryBody, EntryId, JournalError, SessionStore, Synced};
use super::super::user_bash::BashId;

/// Maximum time until a written line is durable against power loss.
const SYNC_DELAY: Duration = Duration::from_millis(100);
/// Delay before another attempt to save.
const SAVE_AGAIN_DELAY: Duration = Duration::from_secs(5);

/// The entries and their file; no other part of a session writes it.
pub(super) struct SessionLog {
    store: SessionStore,
    /// Entries that must not come between a tool call and its result.
    deferred_entries: DeferredEntries,
    /// When to sync, or to retry writing.
    sync_at: Option<Instant>,
    /// The sync in progress.
    syncing: Option<JoinHandle<Synced>>,
    /// Entries could not be written, and the user was notified.
    unsaved: bool,
    /// Whether the session may be in another file than before.
    moved: bool,
    clock: Clock,
    outbox: Outbox,
    /// See [`SessionState::pinned`].
    pinned: Arc<[EntryId]>,
}

/// The events that wake the log.
pub(super) enum LogInput {
    Sync,
    /// A sync has ended; `None` if its thread panicked.
    Synced(Option<Synced>),
}

impl SessionLog {
    pub(super) fn new(
        store: SessionStore,
        deferred_entries: DeferredEntries,
        clock: Clock,
        outbox: Outbox,
    ) -> Self {
        let mut log = Self {
            store,
            deferred_entries,
            sync_at: None,
            syncing: None,
            unsaved: false,
            moved: false,
            clock,
            outbox,
            pinned: Arc::from([]),
        };
        log.on_open();
        log
    }

    /// Continues with another session.
    pub(super) fn replace(&mut self, store: SessionStore, deferred_entries: DeferredEntries) {
        self.store = store;
        self.deferred_entries = deferred_entries;
        self.unsaved = false;
        self.on_open();
    }

    fn on_open(&mut self) {
        self.pinned = pinned_in(&mut self.store);
        if let Some(outline) = self.store.take_outline() {
            // Nothing waits for it; without it, the next start takes longer.
            drop(tokio::task::spawn_blocking(move || outline.write()));
        }
    }

    pub(super) fn store(&self) -> &SessionStore {
        &self.store
    }

    pub(super) fn session_id(&self) -> &str {
        &self.store.header().id
    }

    /// Reads what matters to the model.
    pub(super) fn context(&mut self) -> ContextReader<'_> {
        ContextReader::new(&mut self.store, &self.pinned)
    }

    pub(super) fn is_pinned(&self, id: &EntryId) -> bool {
        self.pinned.contains(id)
    }

    /// See [`SessionStore::context_branch`].
    pub(super) fn context_branch(&mut self) -> Vec<Arc<Entry>> {
        self.store.context_branch()
    }

    pub(super) fn selecting_entries(&mut self) -> Vec<Arc<Entry>> {
        self.store.selecting_entries()
    }

    /// The session as it is shown when it is opened, with at most `n_max` entries.
    pub(super) fn opened(&mut self, n_max: usize) -> Opened {
        let (tail, n_earlier) = self.store.branch_tail(n_max);
        Opened { tail, n_earlier: Some(n_earlier), n_compactions: self.store.n_compactions() }
    }

    pub(super) fn last_answer(&mut self) -> Option<Arc<Entry>> {
        self.store.last_answer()
    }

    /// See [`SessionStore::move_leaf`].
    pub(super) fn move_leaf(&mut self, id: Option<&EntryId>) -> bool {
        let moved = self.store.move_leaf(id);
        self.pinned = pinned_in(&mut self.store);
        moved
    }

    /// The next task for the file; never returns if there is none.
    pub(super) async fn next_input(&mut self) -> LogInput {
        let sync_at = self.sync_at;
        tokio::select! {
            biased;
            () = super::until(sync_at) => LogInput::Sync,
            synced = ended(&mut self.syncing) => LogInput::Synced(synced),
        }
    }

    /// Writes an entry; a failure is reported and the entry kept for later.
    pub(super) fn append(&mut self, body: EntryBody) -> EntryId {
        let is_custom = matches!(body, EntryBody::Custom(_));
        let appended = self.store.append(body, self.clock.now_ms());
        if is_custom {
            self.pinned = pinned_in(&mut self.store);
        }
        self.appended(appended)
    }

    /// Creates the file of a new session, so that what is beside it is found again.
    pub(super) fn begin_file(&mut self) {
        if !self.store.is_on_disk() {
            let begun = self.store.begin_file();
            self.on_written(begun);
        }
    }

    /// Records that a `!` command starts, so that it is reported if pi is killed.
    pub(super) fn on_command_start(&mut self, id: BashId, command: &str, exclude_from_context: bool) {
        self.begin_file();
        let recorded = self.deferred_entries.begin(id, command, exclude_from_context, self.clock.now_ms());
        if let Err(error) = recorded {
            let text = format!("a crash would lose this command, because it cannot be recorded: {error}");
            self.outbox.notice(NoticeLevel::Warning, text);
        }
    }

    /// Stores the result of the `!` command, at once or at the end of the run; `None` if it
    /// did not start.
    pub(super) fn on_command_end(&mut self, id: BashId, body: Option<EntryBody>, is_in_run: bool) {
        let stored = self.deferred_entries.end(id, body, self.clock.now_ms());
        if !is_in_run {
            self.append_deferred();
        } else if let Err(error) = stored {
            let text = format!(
                "cannot save the command's result yet; it stays in memory until the run ends: {error}"
            );
            self.outbox.notice(NoticeLevel::Warning, text);
        }
    }

    /// Appends the entries deferred until the end of the run.
    pub(super) fn append_deferred(&mut self) {
        let entries = self.deferred_entries.take();
        if entries.is_empty() {
            return;
        }
        for entry in entries {
            let appended = self.store.append_entry(entry);
            self.appended(appended);
        }
        if !self.unsaved {
            self.deferred_entries.forget();
        }
    }

    fn appended(&mut self, (entry, written): (Arc<Entry>, Result<(), JournalError>)) -> EntryId {
        self.on_written(written);
        let id = entry.id.clone();
        self.outbox.send(SessionEvent::EntryAppended(entry));
        id
    }

    /// Reports the result of a write, and schedules the next step.
    fn on_written(&mut self, written: Result<(), JournalError>) {
        self.report_store();
        self.publish();
        match written {
            Ok(()) => {
                if std::mem::take(&mut self.unsaved) {
                    let text = "the session file is writable again; nothing was lost";
                    self.outbox.notice(NoticeLevel::Info, text);
                }
                self.sync_at.get_or_insert_with(|| Instant::now() + SYNC_DELAY);
            }
            Err(error) => {
                if self.store.unsaved().is_some() {
                    self.sync_at.get_or_insert_with(|| Instant::now() + SAVE_AGAIN_DELAY);
                }
                // One notice, not one per entry; the status line keeps showing it.
                if !std::mem::replace(&mut self.unsaved, true) {
                    self.outbox.notice(NoticeLevel::Error, error.to_string());
                }
            }
        }
    }

    /// Reports what happened to the file.
    pub(super) fn report_store(&mut self) {
        let notices = self.store.take_notices();
        if !notices.is_empty() && self.store.locked_by().is_none() {
            self.deferred_entries.follow(self.store.path());
            self.moved = true;
        }
        for text in notices {
            self.outbox.notice(NoticeLevel::Warning, text);
        }
    }

    /// Whether the session may be in another file since the last call.
    pub(super) fn take_moved(&mut self) -> bool {
        std::mem::take(&mut self.moved)
    }

    /// Writes entries that could not be written before.
    pub(super) fn flush(&mut self) -> Result<(), JournalError> {
        self.store.flush()
    }

    /// Like [`Self::flush`], and reports a failure.
    pub(super) fn flush_and_report(&mut self) {
        let written = self.store.flush();
        if written.is_err() {
            self.on_written(written);
        }
        self.report_store();
    }

    /// Called before the session ends: if entries cannot be saved, writes a copy to the
    /// first writable one of `folders`.
    ///
    /// # Errors
    /// Describes the unsaved entries and the location of the copy.
    pub(super) fn save_or_copy(&mut self, folders: &[PathBuf]) -> Result<(), SessionError> {
        // A failure is reported below.
        drop(self.store.flush());
        let Some(reason) = self.store.unsaved().map(str::to_owned) else { return Ok(()) };
        let what = match self.store.n_unsaved_messages() {
            0 => "the end of this session may not be saved".to_owned(),
            1 => "1 message of this session is not saved".to_owned(),
            n => format!("{n} messages of this session are not saved"),
        };
        let copy = match self.store.write_copy(folders) {
            None => return Ok(()),
            Some(Ok(path)) => format!("saved a copy of the whole session to {}", path.display()),
            Some(Err(error)) => format!("cannot write a copy either ({error})"),
        };
        Err(Refusal::Unsaved { reason: format!("{what}: {reason}; {copy}") }.into())
    }

    pub(super) fn on_input(&mut self, input: LogInput) {
        match input {
            LogInput::Sync => self.sync_later(),
            LogInput::Synced(synced) => self.on_synced(synced),
        }
    }

    /// Makes the file durable without waiting, and retries writing entries that
    /// could not be written.
    fn sync_later(&mut self) {
        self.sync_at = None;
        if self.unsaved && self.store.unsaved().is_some() {
            let written = self.store.flush();
            let is_saved = written.is_ok();
            self.on_written(written);
            if is_saved {
                self.outbox.send(SessionEvent::SelectionChanged);
            }
        }
        if self.syncing.is_some() {
            self.sync_at.get_or_insert_with(|| Instant::now() + SYNC_DELAY);
        } else if let Some(unsynced) = self.store.take_unsynced() {
            self.syncing = Some(tokio::task::spawn_blocking(move || unsynced.sync()));
        }
    }

    pub(super) async fn sync(&mut self) {
        self.sync_at = None;
        if let Some(task) = self.syncing.take() {
            self.on_synced(task.await.ok());
        }
        if let Some(unsynced) = self.store.take_unsynced() {
            let task = tokio::task::spawn_blocking(move || unsynced.sync());
            self.on_synced(task.await.ok());
        }
        // Once nothing is going on, what the next request does not need leaves memory.
        self.store.release_unused();
    }

    fn on_synced(&mut self, synced: Option<Synced>) {
        self.syncing = None;
        let was_unsaved = self.store.unsaved().is_some();
        if let Some(synced) = synced {
            self.store.synced(synced);
        }
        self.report_store();
        let is_unsaved = self.store.unsaved().is_some();
        if is_unsaved {
            self.sync_at.get_or_insert_with(|| Instant::now() + SAVE_AGAIN_DELAY);
        }
        if is_unsaved != was_unsaved {
            self.publish();
            self.outbox.send(SessionEvent::SelectionChanged);
        }
    }

    fn publish(&self) {
        self.outbox.update(|state| self.show(state));
    }

    /// Sets the snapshot's fields about the file.
    pub(super) fn show(&self, state: &mut SessionState) {
        let store = &self.store;
        if *state.header != *store.header() {
            state.header = Arc::new(store.header().clone());
            state.id.clone_from(&store.header().id);
        }
        if state.path.as_deref() != store.path() {
            state.path = store.path().map(std::path::Path::to_owned);
        }
        state.on_disk = store.is_on_disk();
        state.is_read_only = store.locked_by().is_some();
        state.pinned = Arc::clone(&self.pinned);
        state.leaf = store.leaf().cloned();
        state.name = store.name().map(str::to_owned);
        state.totals = store.totals().clone();
        if state.damaged_lines != store.damaged_lines() {
            state.damaged_lines = store.damaged_lines().to_vec();
        }
        state.unsaved = store.unsaved().map(|reason| self.outbox.shown(reason).into());
    }
}

/// The pinned messages of the active branch.
fn pinned_in(store: &mut SessionStore) -> Arc<[EntryId]> {
    pins::pinned(&store.custom_entries()).into()
}

/// The result of a sync, once it has ended; never returns without one.
async fn ended(syncing: &mut Option<JoinHandle<Synced>>) -> Option<Synced> {
    match syncing {
        Some(task) => task.await.ok(),
        None => std::future::pending().await,
    }
}
