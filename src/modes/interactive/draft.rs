//! Decides when to store the draft in the editor.

use std::time::Duration;

use tokio::time::Instant;

use crate::session::PromptDraft;

/// Maximum time that a change of the editor stays only in memory. Further
/// typing does not reset it.
const LONGEST_UNSAVED: Duration = Duration::from_millis(250);

/// Remembers the last stored draft, and when to store again.
#[derive(Default)]
pub(super) struct DraftWatch {
    due_at: Option<Instant>,
    /// The last draft sent to the session, and its tickets.
    sent: (PromptDraft, Vec<u64>),
}

impl DraftWatch {
    /// Records that an input may have changed the editor.
    pub(super) fn on_input(&mut self) {
        self.due_at.get_or_insert_with(|| Instant::now() + LONGEST_UNSAVED);
    }

    /// When to check again; `None` while nothing changes.
    pub(super) fn due_at(&self) -> Option<Instant> {
        self.due_at
    }

    /// Whether `draft` differs from the last one sent; marks it as sent.
    pub(super) fn take_change(&mut self, draft: &PromptDraft, tickets: &[u64]) -> bool {
        self.due_at = None;
        if self.sent.0 == *draft && self.sent.1 == tickets {
            return false;
        }
        self.sent = (draft.clone(), tickets.to_vec());
        true
    }

    /// Resets for another session, which has received no draft yet.
    pub(super) fn forget(&mut self) {
        self.sent = (PromptDraft::default(), Vec::new());
    }
}
