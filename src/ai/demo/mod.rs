//! The offline demo model: follows rules, states that it does, and calls the
//! real tools.
//!
//! It needs no key and no network. It has no tools of its own: it calls those
//! the request declares, by name, like any model. `rules` decides the content of an
//! answer; this file turns it into a stream at a readable pace.
//!
//! The invariant: it makes only changes that the user spelled out, and never
//! overwrites or removes a file.

mod about;
mod changes;
mod looks;
mod rules;
mod summaries;
mod words;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::ai::messages::{
    AssistantBlock, AssistantMessage, BlockKind, EventStream, Extra, Message, MessageBuilder, Millis,
    StopReason, StreamEvent, Text, Thinking, ThinkingLevel, ToolCall, Usage,
};
use crate::ai::providers::Provider;
use crate::ai::requests::Request;
use crate::util::manual::Page;

/// The speed of the demo model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DemoPace {
    /// A few words at a time, like a service.
    Natural,
    /// Everything at once.
    Instant,
}

/// Answers by rules, from the conversation alone.
#[derive(Debug, Clone, Copy)]
pub struct DemoProvider {
    pace: DemoPace,
    /// What it knows about pi.
    pages: &'static [Page],
}

impl DemoProvider {
    /// Answers at this speed.
    pub fn new(pace: DemoPace) -> Self {
        Self { pace, pages: &[] }
    }

    /// Answers questions about pi from these pages.
    #[must_use]
    pub fn with_pages(self, pages: &'static [Page]) -> Self {
        Self { pages, ..self }
    }
}

impl Provider for DemoProvider {
    fn stream(&self, request: Arc<Request>, cancel: CancellationToken) -> EventStream {
        let pending = AssistantMessage::pending(
            request.model.api.clone(),
            &request.model.provider,
            &request.model.id,
            Millis(request.options.started_ms),
        );
        let answer = rules::answer(&request, self.pages);
        let script = script(&request, &answer, pending.clone());
        let playing =
            Playing { script, builder: MessageBuilder::new(pending), cancel, pace: self.pace, done: false };
        stream::unfold(playing, Playing::next).boxed()
    }
}

/// The answer the rules decided on.
#[derive(Debug, Clone, PartialEq, Default)]
struct Answer {
    thinking: Option<String>,
    text: String,
    calls: Vec<Call>,
    /// Time between two pieces of text.
    beat: Beat,
}

impl Answer {
    fn of_text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
}

/// A tool call the rules decided on.
#[derive(Debug, Clone, PartialEq)]
struct Call {
    tool: &'static str,
    arguments: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Beat {
    #[default]
    Brisk,
    /// Slow enough to interrupt and to steer.
    Slow,
}

impl Beat {
    fn duration(self) -> Duration {
        match self {
            Self::Brisk => Duration::from_millis(12),
            Self::Slow => Duration::from_millis(350),
        }
    }
}

/// An answer being played out.
struct Playing {
    script: VecDeque<(Duration, StreamEvent)>,
    builder: MessageBuilder,
    cancel: CancellationToken,
    pace: DemoPace,
    done: bool,
}

impl Playing {
    async fn next(mut self) -> Option<(StreamEvent, Self)> {
        if self.done {
            return None;
        }
        let (wait, event) = self.script.pop_front()?;
        let cancelled = match (self.pace, wait) {
            (DemoPace::Instant, _) | (_, Duration::ZERO) => self.cancel.is_cancelled(),
            (DemoPace::Natural, wait) => tokio::select! {
                biased;
                () = self.cancel.cancelled() => true,
                () = tokio::time::sleep(wait) => false,
            },
        };
        if cancelled {
            self.done = true;
            let mut message = self.builder.message().clone();
            message.stop_reason = StopReason::Aborted;
            message.error_message = Some("Request was aborted".to_owned());
            return Some((StreamEvent::Done(Box::new(message)), self));
        }
        self.builder.push(&event);
        self.done = matches!(event, StreamEvent::Done(_));
        Some((event, self))
    }
}

/// The events of an answer, each with the pause before it.
fn script(
    request: &Request,
    answer: &Answer,
    mut message: AssistantMessage,
) -> VecDeque<(Duration, StreamEvent)> {
    let mut events = VecDeque::from([(Duration::ZERO, StreamEvent::Start)]);
    let beat = answer.beat.duration();
    let mut block = |kind: BlockKind, text: &str, block: AssistantBlock| {
        let index = message.content.len();
        events.push_back((Duration::ZERO, StreamEvent::BlockStart { index, kind }));
        for piece in words::pieces(text) {
            events.push_back((beat, StreamEvent::Delta { index, text: piece.to_owned() }));
        }
        events.push_back((Duration::ZERO, StreamEvent::BlockEnd { index, block: block.clone() }));
        message.content.push(block);
    };
    if let Some(thinking) = &answer.thinking
        && request.options.thinking != ThinkingLevel::Off
    {
        let finished = Thinking { thinking: thinking.clone(), ..Thinking::default() };
        block(BlockKind::Thinking, thinking, AssistantBlock::Thinking(finished));
    }
    if !answer.text.is_empty() {
        block(BlockKind::Text, &answer.text, AssistantBlock::Text(Text::new(answer.text.as_str())));
    }
    for (call_idx, call) in answer.calls.iter().enumerate() {
        let id = format!("demo_{}_{call_idx}", request.messages.len());
        let name = call.tool.to_owned();
        let finished = ToolCall {
            id: id.clone(),
            name: name.clone(),
            arguments: call.arguments.clone(),
            thought_signature: None,
            arguments_error: None,
            extra: Extra::new(),
        };
        let kind = BlockKind::ToolCall { id, name };
        block(kind, &call.arguments.to_string(), AssistantBlock::ToolCall(finished));
    }
    message.stop_reason = if answer.calls.is_empty() { StopReason::Stop } else { StopReason::ToolUse };
    message.usage = estimated_usage(request, answer);
    message.thinking_level = Some(request.options.thinking);
    events.push_back((Duration::ZERO, StreamEvent::Done(Box::new(message))));
    events
}

/// Counts four characters as a token, roughly like a service.
fn estimated_usage(request: &Request, answer: &Answer) -> Usage {
    let chars: usize = request
        .messages
        .iter()
        .map(|message| match &**message {
            Message::System(_) => 0,
            Message::User(message) => message.content.text().len(),
            Message::Assistant(message) => message.texts().map(str::len).sum(),
            Message::ToolResult(message) => crate::ai::messages::join_text(&message.content).len(),
        })
        .sum();
    let input = chars as u64 / 4 + 1;
    let output = answer.text.len() as u64 / 4 + 1;
    Usage { input, output, total_tokens: input + output, ..Usage::default() }
}
