//! The open session: sends commands, receives events, and opens another session
//! if its task has ended.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::session::{
    self, Deltas, OpenSession, PromptDraft, Services, SessionCommand, SessionEvents, SessionHandle,
    SessionUpdate,
};

use super::super::crash_notice::watch_session;
use super::draft::DraftWatch;

/// A session that ends again within this time after opening is not reopened
/// automatically.
const REOPEN_REST: Duration = Duration::from_secs(5);

/// The session of interactive mode; temporarily there may be none.
pub(super) struct SessionLink {
    handle: SessionHandle,
    events: SessionEvents,
    services: Arc<Services>,
    cwd: PathBuf,
    draft: DraftWatch,
    /// The session to open after its task has ended.
    wanted: Option<Reopening>,
    reopened_at: Option<Instant>,
    /// Whether the task has ended.
    is_lost: bool,
}

/// A session to open, and the notice to show then.
struct Reopening {
    open: OpenSession,
    notice: Option<String>,
}

impl SessionLink {
    pub(super) fn new(
        handle: SessionHandle,
        events: SessionEvents,
        services: Arc<Services>,
        cwd: PathBuf,
    ) -> Self {
        let draft = DraftWatch::default();
        Self { handle, events, services, cwd, draft, wanted: None, reopened_at: None, is_lost: false }
    }

    pub(super) fn handle(&self) -> &SessionHandle {
        &self.handle
    }

    /// Whether there is a session that answers commands.
    pub(super) fn is_open(&self) -> bool {
        !self.is_lost
    }

    /// Sends a command. If the session has ended, a command that opens a session does so.
    pub(super) fn send(&mut self, command: SessionCommand) {
        let open = match command {
            SessionCommand::New { .. } if self.is_lost => OpenSession::New,
            SessionCommand::Open { path, .. } if self.is_lost => OpenSession::File(path),
            command => return self.handle.send(command),
        };
        self.wanted = Some(Reopening { open, notice: None });
    }

    /// The next event; `None` if the task ended without an event. Never returns while
    /// there is no session.
    pub(super) async fn next(&mut self) -> Option<SessionUpdate> {
        if self.is_lost {
            return std::future::pending().await;
        }
        self.events.recv().await
    }

    /// An event that has already arrived.
    pub(super) fn next_waiting(&mut self) -> Option<SessionUpdate> {
        self.events.try_recv()
    }

    /// Handles the end of the session task: stored entries are in its file, the draft is in
    /// the editor. Opens the file again at the next [`Self::reopen`], unless that was
    /// just tried; then it returns the message for the user.
    pub(super) fn on_lost(&mut self, reason: &str) -> Option<String> {
        self.is_lost = true;
        if self.reopened_at.is_some_and(|at| at.elapsed() < REOPEN_REST) {
            return Some(format!(
                "The session stopped again: {reason}. Your draft is in the editor; use /resume or /new to continue."
            ));
        }
        let file = self.handle.state().path.clone().filter(|path| path.exists());
        let open = file.map_or(OpenSession::New, OpenSession::File);
        let notice = format!("The session stopped: {reason}. pi reopened it from its file.");
        self.wanted = Some(Reopening { open, notice: Some(notice) });
        None
    }

    /// Opens the requested session after one has ended. `None` if
    /// there is nothing to open; otherwise the message for the user, as an error if there
    /// still is no session.
    pub(super) async fn reopen(&mut self) -> Option<Result<Option<String>, String>> {
        let Reopening { open, notice } = self.wanted.take()?;
        self.reopened_at = Some(Instant::now());
        let (services, cwd) = (Arc::clone(&self.services), self.cwd.clone());
        Some(match session::start(services, cwd, open, Deltas::Wanted).await {
            Ok((handle, events)) => {
                watch_session(&handle);
                (self.handle, self.events) = (handle, events);
                self.is_lost = false;
                self.draft.forget();
                Ok(notice)
            }
            Err(error) => Err(format!(
                "Cannot open the session: {error}. Use /resume to open another one or /new to start one."
            )),
        })
    }

    // The draft.

    /// Records that the editor may have changed.
    pub(super) fn on_input(&mut self) {
        self.draft.on_input();
    }

    /// When to store the draft; `None` if nothing has changed.
    pub(super) fn draft_due_at(&self) -> Option<Instant> {
        self.draft.due_at()
    }

    /// Lets the session store the contents of the editor, if they changed.
    pub(super) fn save_draft(&mut self, draft: PromptDraft, tickets: Vec<u64>) {
        if !self.is_lost && self.draft.take_change(&draft, &tickets) {
            self.handle.send(SessionCommand::SaveDraft { draft, tickets });
        }
    }
}
