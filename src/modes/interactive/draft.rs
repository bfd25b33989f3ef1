//! When the draft in the editor is stored.

use std::time::Duration;

use tokio::time::Instant;

use crate::session::PromptDraft;

/// Longest time a change of the editor stays in memory only. Not set back by further
/// typing, so that it holds while somebody writes.
const LONGEST_UNSAVED: Duration = Duration::from_millis(250);

/// Knows what was stored last, and when to store again.
#[derive(Default)]
pub(super) struct DraftWatch {
    due_at: Option<Instant>,
    /// The draft the session got last, and its ticket.
    sent: (PromptDraft, u64),
}

impl DraftWatch {
    /// An input may have changed the editor.
    pub(super) fn on_input(&mut self) {
        self.due_at.get_or_insert_with(|| Instant::now() + LONGEST_UNSAVED);
    }

    /// When to look again; `None` while nothing happens.
    pub(super) fn due_at(&self) -> Option<Instant> {
        self.due_at
    }

    /// Whether `draft` differs from the one sent last; it counts as sent from then on.
    pub(super) fn take_change(&mut self, draft: &PromptDraft, ticket: u64) -> bool {
        self.due_at = None;
        if self.sent.0 == *draft && self.sent.1 == ticket {
            return false;
        }
        self.sent = (draft.clone(), ticket);
        true
    }

    /// Another session is open, which got no draft yet.
    pub(super) fn forget(&mut self) {
        self.sent = (PromptDraft::default(), 0);
    }
}
