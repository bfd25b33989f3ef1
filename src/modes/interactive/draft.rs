//! Decides when the editor's draft is saved.

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
    /// The draft last sent to the session, and its ticket.
    told: (PromptDraft, u64),
}

impl DraftWatch {
    /// Something happened that may have changed the editor.
    pub(super) fn touched(&mut self) {
        self.due_at.get_or_insert_with(|| Instant::now() + LONGEST_UNSAVED);
    }

    /// When to look again; `None` while nothing happens.
    pub(super) fn due_at(&self) -> Option<Instant> {
        self.due_at
    }

    /// Whether the session has to be told of `draft`; it counts as told then.
    pub(super) fn is_news(&mut self, draft: &PromptDraft, ticket: u64) -> bool {
        self.due_at = None;
        if self.told.0 == *draft && self.told.1 == ticket {
            return false;
        }
        self.told = (draft.clone(), ticket);
        true
    }

    /// Another session was opened; no draft was sent to it yet.
    pub(super) fn forget(&mut self) {
        self.told = (PromptDraft::default(), 0);
    }
}
