//! How an answer ended: its failure, and whether the conversation still fits the window.

use super::message::{AssistantBlock, AssistantMessage, StopReason};
use crate::ai::failure::{Failure, FailureClass, normalised, plain_error};

impl Failure {
    /// The failure of an answer: the one it carries, otherwise the one its text describes.
    /// `None` if it did not fail.
    pub fn of_answer(message: &AssistantMessage) -> Option<Self> {
        let text = message.error_message.as_deref().filter(|_| message.stop_reason == StopReason::Error)?;
        Some(message.failure.as_deref().cloned().unwrap_or_else(|| Self::read(text, None)))
    }
}

/// Whether retrying the request behind `message` may help.
pub fn is_retryable(message: &AssistantMessage) -> bool {
    Failure::of_answer(message).is_some_and(|failure| failure.class.is_retryable())
}

/// The error for the user in plain words, prefixed with the provider if the text does not name it.
/// `None` if the answer did not fail.
pub fn failure_text(message: &AssistantMessage) -> Option<String> {
    if message.stop_reason != StopReason::Error {
        return None;
    }
    let error = message.error_message.as_deref().unwrap_or("the request failed");
    let provider = message.provider.as_str();
    // Lines below the first are about the key and always name the provider.
    let first = error.lines().next().unwrap_or_default();
    let names_it = provider.is_empty() || first.to_lowercase().contains(&provider.to_lowercase());
    let error = plain_error(error);
    Some(if names_it { error.into_owned() } else { format!("{provider}: {error}") })
}

/// A sentence about a finished answer that has nothing to read: neither a text nor a tool call.
/// `None` for other answers.
pub fn empty_answer_text(message: &AssistantMessage) -> Option<&'static str> {
    let is_finished = matches!(message.stop_reason, StopReason::Stop | StopReason::ToolUse);
    let is_empty = |block: &AssistantBlock| match block {
        AssistantBlock::Text(text) => text.text.trim().is_empty(),
        AssistantBlock::Thinking(_) => true,
        AssistantBlock::ToolCall(_) | AssistantBlock::Unknown(_) => false,
    };
    if !is_finished || !message.content.iter().all(is_empty) {
        return None;
    }
    let has_thinking = message.content.iter().any(|block| matches!(block, AssistantBlock::Thinking(_)));
    Some(match has_thinking {
        true => "The model stopped after thinking, without an answer.",
        false => "The model returned an empty answer.",
    })
}

/// A sentence about an answer that ended at a limit.
pub fn length_text(message: &AssistantMessage) -> &'static str {
    if filled_the_window(message) {
        "The conversation and the answer filled the model's context window"
    } else {
        "The answer was truncated at the output token limit"
    }
}

/// Whether the service reports that the window was full.
fn filled_the_window(message: &AssistantMessage) -> bool {
    let reason = message.raw_stop_reason.as_deref().map(normalised);
    reason.is_some_and(|reason| matches!(&*reason, "modelcontextwindowexceeded" | "contextwindowexceeded"))
}

/// Whether `message` shows that the conversation no longer fits a window of
/// `context_window` tokens. Some servers report it, others just return an empty answer.
pub fn is_overflow(message: &AssistantMessage, context_window: u64) -> bool {
    if filled_the_window(message) {
        return true;
    }
    let prompt = message.usage.input.saturating_add(message.usage.cache_read);
    match message.stop_reason {
        StopReason::Error => {
            Failure::of_answer(message).is_some_and(|failure| failure.class == FailureClass::Overflow)
        }
        StopReason::Length if message.usage.output == 0 => {
            context_window > 0 && prompt >= context_window - context_window / 100
        }
        StopReason::Stop | StopReason::Length | StopReason::ToolUse => {
            context_window > 0 && prompt > context_window
        }
        StopReason::Aborted | StopReason::Deferred | StopReason::Pending => false,
    }
}
