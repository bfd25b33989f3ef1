//! The provider's cache of the conversation: notices about prompts that missed it.

use std::sync::Arc;

use crate::ai::{AssistantMessage, Message};

use super::super::cache_watch::{CacheWatch, Miss};
use super::super::event::NoticeLevel;
use super::super::outbox::Outbox;

/// What the provider caches of the conversation.
pub(super) struct PromptCache {
    watch: CacheWatch,
    outbox: Outbox,
}

impl PromptCache {
    pub(super) fn new(outbox: Outbox) -> Self {
        Self { watch: CacheWatch::default(), outbox }
    }

    /// Resets everything; for another session.
    pub(super) fn reset(&mut self) {
        *self = Self::new(self.outbox.clone());
    }

    /// Prepares for a run after `messages`.
    pub(super) fn on_run_start(&mut self, messages: &[Arc<Message>]) {
        self.watch.catch_up(messages);
    }

    /// Records that an earlier part of the conversation has changed.
    pub(super) fn on_prefix_change(&mut self, what: &'static str) {
        self.watch.rewritten(what);
    }

    /// Records an answer to the request with `messages`. The provider keeps its prompt for
    /// `kept_ms`; `is_shown` is whether the user wants to know what was paid for again.
    pub(super) fn on_answer(
        &mut self,
        answer: &AssistantMessage,
        messages: &[Arc<Message>],
        kept_ms: u64,
        is_shown: bool,
    ) {
        let miss = self.watch.answered(answer, messages, kept_ms);
        if let Some(Miss { tokens, cause }) = miss.filter(|_| is_shown) {
            let reason = cause.describe();
            let text = format!("Cache miss: {tokens} prompt tokens were billed again; {reason}.");
            self.outbox.notice(NoticeLevel::Info, text);
        }
    }
}
