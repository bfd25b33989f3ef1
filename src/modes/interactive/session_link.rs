//! The session that is open: commands to it, events from it, and another one in its
//! place when its task is gone.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::session::{
    self, OpenSession, PromptDraft, Services, SessionCommand, SessionEvent, SessionEvents, SessionHandle,
};

use super::draft::DraftWatch;

/// A session that stops again within this time of being opened is not opened again
/// by itself.
const REOPEN_REST: Duration = Duration::from_secs(5);

/// The session interactive mode works with; at times there is none.
pub(super) struct SessionLink {
    handle: SessionHandle,
    events: SessionEvents,
    services: Arc<Services>,
    cwd: PathBuf,
    draft: DraftWatch,
    /// The session to open in place of one whose task is gone.
    wanted: Option<Reopening>,
    reopened_at: Option<Instant>,
    /// The task is gone.
    is_lost: bool,
}

/// A session to open, and what to say then.
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

    /// Sends a command. Without a session, one that opens a session does so.
    pub(super) fn send(&mut self, command: SessionCommand) {
        let open = match command {
            SessionCommand::New if self.is_lost => OpenSession::New,
            SessionCommand::Open { path } if self.is_lost => OpenSession::File(path),
            command => return self.handle.send(command),
        };
        self.wanted = Some(Reopening { open, notice: None });
    }

    /// The next event; `None` if the task is gone unannounced. Waits forever while
    /// there is no session.
    pub(super) async fn next(&mut self) -> Option<SessionEvent> {
        if self.is_lost {
            return std::future::pending().await;
        }
        self.events.recv().await
    }

    /// An event that is waiting already.
    pub(super) fn next_waiting(&mut self) -> Option<SessionEvent> {
        self.events.try_recv().ok()
    }

    /// The session task is gone: what it stored is in its file, what is being typed in
    /// the editor. Opens the file again at the next [`Self::reopen`], unless that was
    /// just tried: then this returns what to tell the user.
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

    /// Opens the session that was asked for in place of one that is gone. `None` if
    /// there is nothing to open; otherwise what to tell the user, as an error if there
    /// still is no session.
    pub(super) async fn reopen(&mut self) -> Option<Result<Option<String>, String>> {
        let Reopening { open, notice } = self.wanted.take()?;
        self.reopened_at = Some(Instant::now());
        Some(match session::start(Arc::clone(&self.services), self.cwd.clone(), open).await {
            Ok((handle, events)) => {
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

    /// The editor may have changed.
    pub(super) fn on_input(&mut self) {
        self.draft.on_input();
    }

    /// When the draft has to be stored; `None` while nothing happens.
    pub(super) fn draft_due_at(&self) -> Option<Instant> {
        self.draft.due_at()
    }

    /// Has the session store what is in the editor, if that changed.
    pub(super) fn save_draft(&mut self, draft: PromptDraft, ticket: u64) {
        if !self.is_lost && self.draft.take_change(&draft, ticket) {
            self.handle.send(SessionCommand::SaveDraft { draft, ticket });
        }
    }
}
