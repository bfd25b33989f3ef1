//! Says what happens in a session, as lines to append.

use std::collections::HashSet;

use crate::agent::AgentEvent;
use crate::ai::{
    AssistantMessage, BlockKind, ContentBlock, Message, StopReason, StreamEvent, ToolCall, ToolResultMessage,
    failure_text,
};
use crate::session::{
    EntryBody, NoticeLevel, Opened, Phase, SessionEvent, SessionMessage, SessionState, SummarySource,
};
use crate::util::visible::spell_out;

/// Rows of a tool's result or a command's output that are read out.
const MAX_RESULT_LINES: usize = 5;
/// Characters of a line about a call.
const MAX_CALL_CHARS: usize = 200;

/// What has been said so far of the answer that is being given.
#[derive(Debug, Default)]
pub(super) struct Narrator {
    /// Blocks of the answer that are text.
    texts: HashSet<usize>,
    /// The beginning of a line that is not complete.
    line: String,
    /// The names of calls that run.
    calls: Vec<(String, String)>,
    /// Output of the user's command that is not a whole line yet.
    output: String,
    last_answer: String,
}

impl Narrator {
    pub(super) fn last_answer(&self) -> &str {
        &self.last_answer
    }

    /// The lines about an event; `state` is the snapshot that came with it.
    pub(super) fn on_event(&mut self, event: &SessionEvent, state: &SessionState) -> Vec<String> {
        match event {
            SessionEvent::Opened(opened) => self.on_opened(opened, state),
            SessionEvent::Agent(event) => self.on_agent_event(event),
            SessionEvent::RetryScheduled { attempt, max_attempts, delay, error } => {
                let seconds = delay.as_secs_f64().ceil();
                one(format!(
                    "Error: {error}. Trying again in {seconds:.0} seconds, {attempt} of {max_attempts}."
                ))
            }
            SessionEvent::SummaryRetryScheduled { attempt, max_attempts, delay, error } => {
                let seconds = delay.as_secs_f64().ceil();
                one(format!(
                    "Error: no summary yet: {error}. Trying again in {seconds:.0} seconds, {attempt} of {max_attempts}."
                ))
            }
            SessionEvent::QueueChanged => queued(state),
            SessionEvent::CompactionStarted { .. } => one("Summarising the conversation."),
            SessionEvent::CompactionEnded { error: Some(error), .. } => {
                one(format!("Error: no summary: {error}"))
            }
            SessionEvent::CompactionEnded { aborted: true, .. } => one("The summary was cancelled."),
            SessionEvent::CompactionEnded { .. } => one("The conversation is summarised."),
            SessionEvent::SummaryRetryStarted { source: SummarySource::Compaction(_) } => Vec::new(),
            SessionEvent::BashStarted { command, .. } => {
                one(format!("Running your command: {}", spell_out(command, Some(" ")).0))
            }
            SessionEvent::BashOutput { chunk, .. } => self.on_output(chunk),
            SessionEvent::BashEnded { execution, .. } => {
                let mut lines = rest(&mut self.output);
                lines.push(match execution.exit_code {
                    _ if execution.cancelled => "Your command was cancelled.".to_owned(),
                    Some(0) => "Your command is done.".to_owned(),
                    Some(code) => format!("Error: your command exited with code {code}."),
                    None => "Error: your command did not run.".to_owned(),
                });
                lines
            }
            SessionEvent::SelectionChanged => {
                one(format!("Model {}, thinking {}.", state.model.id, state.thinking))
            }
            SessionEvent::Notice { level, text } => one(match level {
                NoticeLevel::Info => text.clone(),
                NoticeLevel::Warning => format!("Warning: {text}"),
                NoticeLevel::Error => format!("Error: {text}"),
            }),
            SessionEvent::Ended { reason } => one(format!("Error: the session stopped: {reason}")),
            SessionEvent::Settled { aborted: true } => one("Interrupted. Your turn."),
            SessionEvent::Settled { aborted: false } => one("Done. Your turn."),
            SessionEvent::QueueReturned(_)
            | SessionEvent::PromptReturned { .. }
            | SessionEvent::RetryEnded { .. }
            | SessionEvent::SummaryDrafted(_)
            | SessionEvent::SummaryDecided { .. }
            | SessionEvent::SummaryRetryStarted { .. }
            | SessionEvent::SummaryRetriesFinished
            | SessionEvent::BranchSummaryStarted
            | SessionEvent::HandoffStarted
            | SessionEvent::HandoffEnded { .. }
            | SessionEvent::BranchSummaryEnded { .. }
            | SessionEvent::Navigated(_)
            | SessionEvent::EntryAppended(_)
            | SessionEvent::SettingsChanged { .. }
            | SessionEvent::ProjectChanged
            | SessionEvent::Question(_)
            | SessionEvent::QuestionClosed { .. } => Vec::new(),
        }
    }

    fn on_opened(&mut self, opened: &Opened, state: &SessionState) -> Vec<String> {
        *self = Self::default();
        let name = state.name.as_ref().map_or_else(String::new, |name| format!(" “{name}”"));
        let mut lines = vec![format!("Session{name}, model {}.", state.model.id)];
        let answer = opened.tail.iter().rev().find_map(|entry| match &entry.body {
            EntryBody::Message { message: SessionMessage::Model(message), .. } => match &**message {
                Message::Assistant(answer) => Some(text_of(answer)).filter(|text| !text.is_empty()),
                Message::User(_) | Message::System(_) | Message::ToolResult(_) => None,
            },
            _ => None,
        });
        if let Some(answer) = answer {
            lines.push("The last answer was:".to_owned());
            lines.extend(answer.lines().map(str::to_owned));
            self.last_answer = answer;
        }
        lines
    }

    fn on_agent_event(&mut self, event: &AgentEvent) -> Vec<String> {
        match event {
            AgentEvent::AgentStart => one("Working."),
            AgentEvent::AssistantStart(_) => {
                self.texts.clear();
                rest(&mut self.line)
            }
            AgentEvent::MessageUpdate(update) => self.on_update(update),
            AgentEvent::MessageEnd(message) => match &**message {
                Message::Assistant(answer) => self.on_answer(answer),
                Message::User(_) | Message::System(_) | Message::ToolResult(_) => Vec::new(),
            },
            AgentEvent::ToolStart { call } => {
                self.calls.push((call.id.clone(), call.name.clone()));
                one(describe(call))
            }
            AgentEvent::ToolEnd { call_id, result } => self.on_result(call_id, result),
            AgentEvent::TurnStart
            | AgentEvent::MessageStart(_)
            | AgentEvent::ToolRunning { .. }
            | AgentEvent::ToolUpdate { .. }
            | AgentEvent::TurnEnd { .. }
            | AgentEvent::AgentEnd { .. } => Vec::new(),
        }
    }

    /// Whole lines of the answer, as they arrive.
    fn on_update(&mut self, update: &StreamEvent) -> Vec<String> {
        match update {
            StreamEvent::BlockStart { index, kind } => {
                let mut lines = rest(&mut self.line);
                match kind {
                    BlockKind::Text => drop(self.texts.insert(*index)),
                    BlockKind::Thinking => lines.push("Thinking.".to_owned()),
                    BlockKind::ToolCall { .. } => {}
                }
                lines
            }
            StreamEvent::Delta { index, text } if self.texts.contains(index) => {
                self.line.push_str(text);
                whole_lines(&mut self.line)
            }
            StreamEvent::Start
            | StreamEvent::Delta { .. }
            | StreamEvent::BlockEnd { .. }
            | StreamEvent::Done(_) => Vec::new(),
        }
    }

    fn on_answer(&mut self, answer: &AssistantMessage) -> Vec<String> {
        let mut lines = rest(&mut self.line);
        let text = text_of(answer);
        if self.texts.is_empty() {
            // It did not arrive in pieces.
            lines.extend(text.lines().map(str::to_owned));
        }
        if !text.is_empty() {
            self.last_answer = text;
        }
        match answer.stop_reason {
            StopReason::Error => lines.push(format!(
                "Error: {}",
                failure_text(answer).or_else(|| answer.error_message.clone()).unwrap_or_default()
            )),
            StopReason::Length => {
                lines.push("Warning: the answer was truncated at its length limit.".to_owned());
            }
            StopReason::Aborted
            | StopReason::Stop
            | StopReason::ToolUse
            | StopReason::Deferred
            | StopReason::Pending => {}
        }
        lines
    }

    fn on_result(&mut self, call_id: &str, result: &ToolResultMessage) -> Vec<String> {
        let position = self.calls.iter().position(|(id, _)| id == call_id);
        let name = position.map_or_else(|| result.tool_name.clone(), |at| self.calls.remove(at).1);
        if !result.is_error {
            return one(format!("{name} is done."));
        }
        let text: String = result
            .content
            .iter()
            .filter_map(|block| match block {
                ContentBlock::Text(text) => Some(text.text.as_str()),
                _ => None,
            })
            .collect();
        let mut lines = vec![format!("Error: {name} failed.")];
        lines.extend(
            text.lines().filter(|line| !line.trim().is_empty()).take(MAX_RESULT_LINES).map(str::to_owned),
        );
        lines
    }

    fn on_output(&mut self, chunk: &str) -> Vec<String> {
        let mut versions = chunk.split('\r');
        self.output.push_str(versions.next().unwrap_or_default());
        let mut lines = whole_lines(&mut self.output);
        for version in versions {
            // A new version of the line, which was not read yet.
            self.output.clear();
            self.output.push_str(version);
            lines.extend(whole_lines(&mut self.output));
        }
        lines
    }
}

fn one(line: impl Into<String>) -> Vec<String> {
    vec![line.into()]
}

/// Removes and returns the lines of `text` that are complete.
fn whole_lines(text: &mut String) -> Vec<String> {
    let Some(end) = text.rfind('\n') else { return Vec::new() };
    let rest = text.split_off(end + 1);
    let whole = std::mem::replace(text, rest);
    whole.lines().map(str::to_owned).collect()
}

/// Removes and returns what is left of a text.
fn rest(text: &mut String) -> Vec<String> {
    let text = std::mem::take(text);
    text.lines().map(str::to_owned).collect()
}

fn text_of(answer: &AssistantMessage) -> String {
    answer.texts().collect::<Vec<_>>().join("\n").trim().to_owned()
}

/// What a call does, in one line: the first argument that says most.
fn describe(call: &ToolCall) -> String {
    let argument =
        ["command", "path", "pattern", "query"].iter().find_map(|name| call.arguments.get(*name)?.as_str());
    let line = argument.map_or_else(|| call.name.clone(), |argument| format!("{}: {argument}", call.name));
    let line = spell_out(&line, Some(" ")).0.split_whitespace().collect::<Vec<_>>().join(" ");
    let shown: String = line.chars().take(MAX_CALL_CHARS).collect();
    format!("Running {shown}")
}

/// The message that was queued last, and when it is delivered.
fn queued(state: &SessionState) -> Vec<String> {
    if state.phase == Phase::Idle || state.queue.is_empty() {
        return Vec::new();
    }
    let n = state.queue.steering.len() + state.queue.follow_up.len();
    let messages = if n == 1 { "1 message is" } else { &format!("{n} messages are") };
    one(format!("{messages} queued. An empty line delivers now, /queue reads the queue."))
}
