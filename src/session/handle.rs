//! A mode's connection to a session task.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot, watch};

use super::command::{Reply, SessionCommand};
use super::outbox::{Deltas, SessionEvents, Subscriber};
use super::refusal::Refusal;
use super::state::SessionState;

/// Why a command failed; the text is for the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum SessionError {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("the session has ended")]
    Ended,
}

/// A message from a handle to its task.
pub(super) enum Envelope {
    /// With the channel for its reply, if the sender waits for one.
    Command {
        command: SessionCommand,
        reply: Option<oneshot::Sender<Result<Reply, SessionError>>>,
    },
    Subscribe(Subscriber),
}

/// Sends commands and reads state. Cheap to clone; never blocks. The session
/// task ends when the last handle is gone or `Shutdown` was sent.
#[derive(Clone)]
pub struct SessionHandle {
    commands: mpsc::UnboundedSender<Envelope>,
    state: watch::Receiver<Arc<SessionState>>,
}

impl SessionHandle {
    pub(super) fn new(
        commands: mpsc::UnboundedSender<Envelope>,
        state: watch::Receiver<Arc<SessionState>>,
    ) -> Self {
        Self { commands, state }
    }

    /// Sends without waiting. A rejection comes back as a `Notice` event.
    pub fn send(&self, command: SessionCommand) {
        // A closed channel means the session has ended; its last event reported that.
        drop(self.commands.send(Envelope::Command { command, reply: None }));
    }

    /// Sends, and waits until the session has accepted or rejected the command.
    ///
    /// # Errors
    /// If the session rejects the command or has ended.
    pub async fn request(&self, command: SessionCommand) -> Result<Reply, SessionError> {
        self.post(command).await
    }

    /// Sends at once and returns a future for the reply, so that a caller that
    /// does not wait here keeps its commands in order.
    pub fn post(
        &self,
        command: SessionCommand,
    ) -> impl Future<Output = Result<Reply, SessionError>> + 'static {
        let (reply, answer) = oneshot::channel();
        let sent = self.commands.send(Envelope::Command { command, reply: Some(reply) });
        async move {
            sent.map_err(|_| SessionError::Ended)?;
            answer.await.map_err(|_| SessionError::Ended)?
        }
    }

    /// Adds a subscriber and returns its events: first `Opened` with the current content,
    /// then every event. Deltas of an answer that has already begun are left out. The
    /// stream ends at once if the session has ended.
    pub fn subscribe(&self, deltas: Deltas) -> SessionEvents {
        let (subscriber, events) = Subscriber::new(deltas);
        // A closed channel drops the subscriber, which ends its events.
        drop(self.commands.send(Envelope::Subscribe(subscriber)));
        events
    }

    /// The latest snapshot.
    pub fn state(&self) -> Arc<SessionState> {
        self.state.borrow().clone()
    }

    /// Reads the latest snapshot without keeping the session alive.
    pub fn reader(&self) -> impl Fn() -> Arc<SessionState> + Clone + Send + Sync + 'static {
        let state = self.state.clone();
        move || state.borrow().clone()
    }
}
