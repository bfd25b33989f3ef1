//! Pages of a trace, newest first.

use serde::Serialize;

use super::message::{Trace, TraceTime, TracedMessage};

/// A page of messages, newest first.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TracePage<'a> {
    /// Newest last.
    pub messages: Vec<&'a TracedMessage>,
    /// The cursor of the next page; `None` on the last one.
    pub next_before: Option<TraceTime>,
}

impl Trace {
    /// Number of messages in the trace.
    pub fn n_messages(&self) -> usize {
        self.messages.len()
    }

    /// The newest `limit` messages strictly before the time `before`.
    ///
    /// Times are unique and never change, so pages neither overlap nor leave a message
    /// out, even if new messages arrive between two calls.
    pub fn page(&self, limit: usize, before: Option<TraceTime>) -> TracePage<'_> {
        let end = match before {
            Some(before) => self.messages.partition_point(|message| message.time < before),
            None => self.messages.len(),
        };
        let start = end.saturating_sub(limit);
        let messages: Vec<&TracedMessage> = self.messages[start..end].iter().rev().collect();
        let next_before = messages.last().filter(|_| start > 0).map(|message| message.time);
        TracePage { messages, next_before }
    }
}
