//! Prompts that wait for a decision about trust.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::config::Trust;

use super::super::command::{PromptDraft, WhenBusy};
use super::super::event::SessionEvent;
use super::AgentSession;

/// Prompts given before the session was open, oldest first.
#[derive(Debug, Default)]
pub(super) struct HeldPrompts {
    prompts: VecDeque<PromptDraft>,
}

impl HeldPrompts {
    pub(super) fn extend(&mut self, prompts: Vec<PromptDraft>) {
        self.prompts.extend(prompts);
    }

    /// Sends the prompts in order, unless trust is still undecided. Rejected prompts
    /// return to the user.
    pub(super) async fn release(session: &mut AgentSession) {
        if session.project.context().state.trust == Trust::Undecided {
            return;
        }
        while let Some(prompt) = session.held.prompts.pop_front() {
            if let Err(error) = session.prompt(prompt.clone(), WhenBusy::FollowUp).await {
                let (prompt, error) = (Arc::new(prompt), session.outbox.shown_error(error));
                session.outbox.send(SessionEvent::PromptReturned { prompt, error });
            }
        }
    }
}
