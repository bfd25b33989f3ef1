//! An open session, as a program that embeds pi holds it: its handle with its events.

use std::sync::Arc;

use crate::agent::AgentEvent;
use crate::ai::{AssistantMessage, Image, Message, failure_text};

use super::command::{PromptDraft, SessionCommand, WhenBusy};
use super::event::{SessionEvent, SessionUpdate};
use super::handle::{SessionError, SessionHandle};
use super::outbox::SessionEvents;
use super::state::SessionState;

/// A session with its events. [`SessionBuilder`](super::SessionBuilder) opens one.
///
/// Dropping it ends the session in order, in the background; [`Self::close`] waits for that.
pub struct Session {
    handle: SessionHandle,
    events: SessionEvents,
    problems: Vec<String>,
}

/// Why a prompt has no answer; the text is for the user.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PromptError {
    /// The session rejected the prompt, or has ended.
    #[error(transparent)]
    Rejected(#[from] SessionError),
    /// The request failed, and retrying did not help.
    #[error("{reason}")]
    Failed {
        /// What the provider reported.
        reason: String,
        /// The answer as far as it came.
        answer: Box<AssistantMessage>,
    },
    /// The run was cancelled, or its queue was taken back, before there was an answer.
    #[error("the run was cancelled")]
    Cancelled,
}

impl Session {
    pub(super) fn new(handle: SessionHandle, events: SessionEvents) -> Self {
        Self { handle, events, problems: Vec::new() }
    }

    pub(super) fn with_problems(self, problems: Vec<String>) -> Self {
        Self { problems, ..self }
    }

    /// What was wrong with settings, models and keys when the session was opened, one line
    /// each. None is fatal; the session uses the rest of those files.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// Sends commands; clones may do so elsewhere while this session waits for events.
    pub fn handle(&self) -> &SessionHandle {
        &self.handle
    }

    /// The latest snapshot.
    pub fn state(&self) -> Arc<SessionState> {
        self.handle.state()
    }

    /// The next event with the snapshot after it; `None` once the session has ended.
    /// Nothing is lost if it is cancelled.
    pub async fn next(&mut self) -> Option<SessionUpdate> {
        self.events.recv().await
    }

    /// Sends a prompt, and waits until the session is idle again: until the answer is
    /// complete and all tools, retries and queued messages are done. Returns the last
    /// answer. Events in between are dropped; subscribe through [`Self::handle`] to see
    /// them, or use [`Self::send`] and [`Self::next`].
    ///
    /// Dropping the future leaves the run going on; [`SessionCommand::Abort`] cancels it.
    ///
    /// # Errors
    /// If the session rejects the prompt, or the answer failed or was cancelled.
    pub async fn prompt(&mut self, text: &str) -> Result<AssistantMessage, PromptError> {
        self.send(text, Vec::new()).await?;
        self.settled().await
    }

    /// Sends a prompt with images, and returns once it is accepted. Further prompts wait
    /// until the agent would otherwise stop.
    ///
    /// # Errors
    /// If the session rejects the prompt.
    pub async fn send(&self, text: &str, images: Vec<Image>) -> Result<(), SessionError> {
        let prompt = PromptDraft { images, ..PromptDraft::from(text) };
        self.handle.request(SessionCommand::Prompt { prompt, when_busy: WhenBusy::FollowUp }).await?;
        Ok(())
    }

    /// Sends a message to the agent while it works: it reads the message before the next
    /// tool runs, or as the setting `steeringDelivery` says. To an idle session it is a
    /// prompt.
    ///
    /// # Errors
    /// If the session rejects the message.
    pub async fn steer(&self, text: &str) -> Result<(), SessionError> {
        let prompt = PromptDraft::from(text);
        self.handle.request(SessionCommand::Prompt { prompt, when_busy: WhenBusy::Steer }).await?;
        Ok(())
    }

    /// Waits until the session is idle, and returns the last answer that was completed
    /// meanwhile. Cancellation as for [`Self::prompt`].
    ///
    /// # Errors
    /// If that answer failed, or there was none.
    pub async fn settled(&mut self) -> Result<AssistantMessage, PromptError> {
        let mut last = None;
        while let Some(SessionUpdate { event, .. }) = self.next().await {
            match event {
                SessionEvent::Agent(AgentEvent::MessageEnd(message)) => {
                    if let Message::Assistant(answer) = &*message {
                        last = Some(AssistantMessage::clone(answer));
                    }
                }
                SessionEvent::Settled { .. } => return finished(last),
                _ => {}
            }
        }
        Err(PromptError::Rejected(SessionError::Ended))
    }

    /// Ends the run if there is one, writes what is left to write, and ends the session.
    ///
    /// # Errors
    /// If entries could not be written; the text says where a copy is.
    pub async fn close(self) -> Result<(), SessionError> {
        match self.handle.request(SessionCommand::Shutdown).await {
            Ok(_) | Err(SessionError::Ended) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

fn finished(last: Option<AssistantMessage>) -> Result<AssistantMessage, PromptError> {
    let answer = last.ok_or(PromptError::Cancelled)?;
    if !answer.is_failed() {
        return Ok(answer);
    }
    match failure_text(&answer) {
        Some(reason) => Err(PromptError::Failed { reason, answer: Box::new(answer) }),
        None => Err(PromptError::Cancelled),
    }
}
