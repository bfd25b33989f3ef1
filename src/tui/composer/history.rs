//! Earlier inputs, and the draft during browsing.

use std::collections::VecDeque;

const MAX_ENTRIES: usize = 500;

#[derive(Debug, Clone, Default)]
pub(super) struct History {
    /// Newest first.
    entries: VecDeque<String>,
    /// The index of the shown entry.
    at: Option<usize>,
    draft: String,
}

impl History {
    /// Adds an input as the newest; repetitions of the newest and blank inputs are left out.
    pub(super) fn add(&mut self, text: &str) {
        self.stop();
        if text.trim().is_empty() || self.entries.front().is_some_and(|newest| newest == text) {
            return;
        }
        self.entries.push_front(text.to_owned());
        self.entries.truncate(MAX_ENTRIES);
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(super) fn is_browsing(&self) -> bool {
        self.at.is_some()
    }

    /// Stops browsing; the editor's contents become the draft.
    pub(super) fn stop(&mut self) {
        self.at = None;
        self.draft.clear();
    }

    /// The next older entry; when browsing starts, `current` becomes the draft.
    pub(super) fn older(&mut self, current: &str) -> Option<String> {
        let next = self.at.map_or(0, |at| at + 1);
        let entry = self.entries.get(next)?.clone();
        if self.at.is_none() {
            current.clone_into(&mut self.draft);
        }
        self.at = Some(next);
        Some(entry)
    }

    /// The next newer entry, or the draft after the newest.
    pub(super) fn newer(&mut self) -> Option<String> {
        match self.at? {
            0 => {
                self.at = None;
                Some(std::mem::take(&mut self.draft))
            }
            at => {
                self.at = Some(at - 1);
                self.entries.get(at - 1).cloned()
            }
        }
    }
}
