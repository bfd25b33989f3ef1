//! A mode's connection to a session task.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot, watch};

use super::command::{Reply, SessionCommand};
use super::event::SessionEvent;
use super::state::SessionState;

/// Why a command was rejected; the text is for the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    #[error("{0}")]
    Refused(String),
    #[error("the session has ended")]
    Ended,
}

/// A command with the channel for its reply, if the sender waits for one.
pub(super) struct Envelope {
    pub(super) command: SessionCommand,
    pub(super) reply: Option<oneshot::Sender<Result<Reply, SessionError>>>,
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
        drop(self.commands.send(Envelope { command, reply: None }));
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
        let sent = self.commands.send(Envelope { command, reply: Some(reply) });
        async move {
            sent.map_err(|_| SessionError::Ended)?;
            answer.await.map_err(|_| SessionError::Ended)?
        }
    }

    /// The latest snapshot.
    pub fn state(&self) -> Arc<SessionState> {
        self.state.borrow().clone()
    }
}

/// The events of a session, for a single reader.
pub type SessionEvents = mpsc::UnboundedReceiver<SessionEvent>;
