//! Tests that send events to the transcript and compare its text.

mod looks;
mod pictures;
mod rules;
mod sessions;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::agent::{AgentEvent, ToolOutput};
use crate::ai::{
    AssistantBlock, AssistantMessage, BlockKind, ContentBlock, Message, Millis, StopReason, StreamEvent,
    Text, Thinking, ToolCall, ToolResultMessage, UserMessage,
};
use crate::session::{Opened, SessionEvent};
use crate::tui::markdown::Highlighter;
use crate::tui::theme::{Appearance, ColorDepth, Theme};

use super::{Transcript, ViewSettings};

/// A transcript with what it needs to be drawn.
struct TranscriptStage {
    transcript: Transcript,
    theme: Theme,
    now: Duration,
}

impl TranscriptStage {
    fn new() -> Self {
        let highlighter = Highlighter::new();
        let (cwd, home) = (PathBuf::from("/home/me/proj"), PathBuf::from("/home/me"));
        Self {
            transcript: Transcript::new(highlighter, ViewSettings::new("ctrl+o".to_owned(), cwd, Some(home))),
            theme: Theme::builtin("dark", Appearance::Dark, ColorDepth::True).unwrap(),
            now: Duration::ZERO,
        }
    }

    /// With the messages of a stored session.
    fn with(messages: impl IntoIterator<Item = Message>) -> Self {
        let mut stage = Self::new();
        for message in messages {
            stage.agent(AgentEvent::MessageEnd(Arc::new(message)));
        }
        stage
    }

    fn event(&mut self, event: SessionEvent) -> &mut Self {
        self.transcript.apply(&event, self.now);
        self
    }

    fn agent(&mut self, event: AgentEvent) -> &mut Self {
        self.event(SessionEvent::Agent(event))
    }

    fn stream(&mut self, event: StreamEvent) -> &mut Self {
        self.agent(AgentEvent::MessageUpdate(event))
    }

    /// Begins an answer.
    fn answer(&mut self) -> &mut Self {
        self.agent(AgentEvent::AssistantStart(Arc::new(assistant(StopReason::Pending, vec![]))))
    }

    fn begin(&mut self, index: usize, kind: BlockKind) -> &mut Self {
        self.stream(StreamEvent::BlockStart { index, kind })
    }

    fn delta(&mut self, index: usize, text: &str) -> &mut Self {
        self.stream(StreamEvent::Delta { index, text: text.to_owned() })
    }

    fn run_call(&mut self, call: &ToolCall) -> &mut Self {
        self.start_call(call).agent(AgentEvent::ToolRunning { call_id: call.id.clone() })
    }

    /// A call that waits until it can run.
    fn start_call(&mut self, call: &ToolCall) -> &mut Self {
        self.agent(AgentEvent::ToolStart { call: Arc::new(call.clone()) })
    }

    fn partial(&mut self, call: &ToolCall, text: &str) -> &mut Self {
        let partial = Arc::new(ToolOutput::text(text));
        self.agent(AgentEvent::ToolUpdate { call_id: call.id.clone(), partial })
    }

    fn wait(&mut self, millis: u64) -> &mut Self {
        self.now += Duration::from_millis(millis);
        self
    }

    fn expanded(&mut self, expanded: bool) -> &mut Self {
        self.change_view(|view| view.expanded = expanded)
    }

    fn change_view(&mut self, change: impl FnOnce(&mut ViewSettings)) -> &mut Self {
        let mut view = self.transcript.view().clone();
        change(&mut view);
        self.transcript.set_view(view);
        self
    }

    fn layout(&mut self, width: u16) -> &mut Self {
        self.transcript.layout(width, &self.theme, self.now);
        self
    }

    /// All rows, each after a bar and without trailing spaces.
    fn text(&mut self, width: u16) -> String {
        self.layout(width);
        let rows = (0..self.transcript.len()).map(|index| {
            let row = self.transcript.row(index);
            assert!(row.width() <= usize::from(width), "{row:?}");
            format!("|{}", row.text().trim_end())
        });
        rows.collect::<Vec<_>>().join("\n")
    }
}

fn assistant(stop_reason: StopReason, content: Vec<AssistantBlock>) -> AssistantMessage {
    let mut message = AssistantMessage::pending(Default::default(), "acme", "m-1", Millis(0));
    message.content = content;
    message.stop_reason = stop_reason;
    message
}

fn answer(stop_reason: StopReason, content: Vec<AssistantBlock>) -> Message {
    Message::from(assistant(stop_reason, content))
}

fn failed(stop_reason: StopReason, content: Vec<AssistantBlock>, error: &str) -> Message {
    let mut message = assistant(stop_reason, content);
    message.error_message = Some(error.to_owned());
    Message::from(message)
}

fn says(text: &str) -> AssistantBlock {
    AssistantBlock::Text(Text::new(text))
}

fn thinks(text: &str) -> AssistantBlock {
    AssistantBlock::Thinking(Thinking { thinking: text.to_owned(), ..Default::default() })
}

fn user(text: &str) -> Message {
    Message::User(UserMessage::new(text, vec![], Millis(0)))
}

fn call(name: &str, arguments: Value) -> ToolCall {
    serde_json::from_value(json!({ "id": format!("call-{name}"), "name": name, "arguments": arguments }))
        .unwrap()
}

fn result(call: &ToolCall, text: &str) -> ToolResultMessage {
    ToolResultMessage {
        tool_call_id: call.id.clone(),
        tool_name: call.name.clone(),
        content: vec![ContentBlock::text(text)],
        details: None,
        is_error: false,
        duration_ms: Some(1_200),
        timestamp: Millis(0),
        extra: Default::default(),
    }
}

fn error(call: &ToolCall, text: &str) -> ToolResultMessage {
    ToolResultMessage { is_error: true, ..result(call, text) }
}

/// A finished call, as a stored session shows it.
fn called(call: &ToolCall, result: ToolResultMessage) -> TranscriptStage {
    TranscriptStage::with([
        answer(StopReason::ToolUse, vec![AssistantBlock::ToolCall(call.clone())]),
        Message::ToolResult(Arc::new(result)),
    ])
}

fn numbered(n_lines: usize) -> String {
    (1..=n_lines).map(|n| format!("line {n}\n")).collect()
}
