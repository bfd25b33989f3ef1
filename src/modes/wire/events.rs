//! Turns the events of a session into the original's events.
//!
//! Both come in the same order, with four differences. The original says in `agent_end`
//! and `compaction_end` what happens next, so `agent_end` is held back until that is known.
//! Blocks that a cancelled answer leaves open are closed before its `message_end`. Changes
//! of name and thinking level are found by comparing snapshots. A session also settles after a
//! compaction without a run; the original does not.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use crate::agent::{AgentEvent, ToolOutput};
use crate::ai::{
    AssistantBlock, AssistantMessage, BlockKind, ContentBlock, Message, StreamEvent, ThinkingLevel, ToolCall,
    Usage,
};
use crate::session::{
    BashId, Compaction, CompactionReason, Entry, EntryBody, SessionEvent, SessionState, SessionUpdate,
    SummarySource,
};

use super::slim;

/// How much of a session's events is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::modes) enum EventStyle {
    /// All of the original's fields; a line may be as long as a message with its images.
    Whole,
    /// Nothing twice, and no line longer than [`slim::MAX_LINE_BYTES`].
    Slim,
}

/// The fold of session events into lines.
pub(in crate::modes) struct Lines {
    style: EventStyle,
    /// Ids of clients for the commands they run.
    bash_names: HashMap<BashId, Option<Value>>,
    answer: OpenAnswer,
    /// Tool calls that run, with their names and arguments.
    calls: HashMap<String, Arc<ToolCall>>,
    /// `agent_end`, until it is known whether the request is repeated.
    held: Option<Vec<Arc<Message>>>,
    compaction: Option<Arc<Entry>>,
    /// Whether a run began since the session last settled.
    has_run: bool,
    name: Option<String>,
    thinking: Option<ThinkingLevel>,
}

/// The answer that streams.
#[derive(Default)]
struct OpenAnswer {
    usage: Usage,
    /// The kind of each block that has begun and not ended, by index.
    open: Vec<Option<OpenBlock>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OpenBlock {
    Text,
    Thinking,
    ToolCall,
}

impl Lines {
    pub(in crate::modes) fn new(style: EventStyle) -> Self {
        Self {
            style,
            bash_names: HashMap::new(),
            answer: OpenAnswer::default(),
            calls: HashMap::new(),
            held: None,
            compaction: None,
            has_run: false,
            name: None,
            thinking: None,
        }
    }

    /// The output of this command is marked with the client's own id.
    pub(super) fn name_bash(&mut self, id: BashId, name: Option<Value>) {
        self.bash_names.insert(id, name);
    }

    /// Appends the lines of an event, each with its line break.
    pub(super) fn push_update(&mut self, update: &SessionUpdate, out: &mut String) {
        self.settle_end(&update.event, out);
        match &update.event {
            SessionEvent::Agent(event) => self.agent_event(event, out),
            SessionEvent::Opened(_) => self.note_state(&update.state),
            SessionEvent::SelectionChanged => self.selection_changed(&update.state, out),
            SessionEvent::QueueChanged => {
                let queue = &update.state.queue;
                let (steering, follow_up) = (&queue.steering[..], &queue.follow_up[..]);
                self.line(&WireEvent::QueueUpdate { steering, follow_up }, out);
            }
            SessionEvent::RetryScheduled { .. }
            | SessionEvent::RetryEnded { .. }
            | SessionEvent::SummaryRetryScheduled { .. }
            | SessionEvent::SummaryRetryStarted { .. }
            | SessionEvent::SummaryRetriesFinished => self.retry(&update.event, out),
            SessionEvent::EntryAppended(entry) => self.entry_appended(entry),
            SessionEvent::CompactionStarted { reason } => {
                self.compaction = None;
                self.line(&WireEvent::CompactionStart { reason: reason_name(*reason) }, out);
            }
            SessionEvent::CompactionEnded { reason, aborted, error, will_retry, tokens_after } => {
                let entry = self.compaction.take().filter(|_| error.is_none());
                let compaction = entry.as_deref().and_then(as_compaction);
                let event = WireEvent::CompactionEnd {
                    reason: reason_name(*reason),
                    result: compaction.map(|compaction| CompactionResult::new(compaction, *tokens_after)),
                    aborted: *aborted,
                    will_retry: *will_retry,
                    error_message: error.as_deref().filter(|_| !aborted),
                };
                self.line(&event, out);
            }
            SessionEvent::BashOutput { id, chunk } => {
                let id = self.bash_names.get(id).and_then(Option::as_ref);
                for delta in self.pieces(chunk) {
                    self.line(&WireEvent::BashExecutionUpdate { id, delta }, out);
                }
            }
            SessionEvent::BashEnded { id, .. } => drop(self.bash_names.remove(id)),
            SessionEvent::Settled { aborted } => {
                // What ends may have been a compaction alone.
                if std::mem::take(&mut self.has_run) {
                    self.line(&WireEvent::AgentSettled { aborted: *aborted }, out);
                }
            }
            SessionEvent::QueueReturned(_)
            | SessionEvent::SummaryDrafted(_)
            | SessionEvent::SummaryDecided { .. }
            | SessionEvent::PromptReturned { .. }
            | SessionEvent::BranchSummaryStarted
            | SessionEvent::BranchSummaryEnded { .. }
            | SessionEvent::HandoffStarted
            | SessionEvent::HandoffEnded { .. }
            | SessionEvent::Navigated(_)
            | SessionEvent::BashStarted { .. }
            | SessionEvent::SettingsChanged { .. }
            | SessionEvent::ProjectChanged
            | SessionEvent::Question(_)
            | SessionEvent::QuestionClosed { .. }
            | SessionEvent::Notice { .. }
            | SessionEvent::Ended { .. } => {}
        }
    }

    /// Writes what becomes of a request that failed, of an answer or of a summary.
    fn retry(&self, event: &SessionEvent, out: &mut String) {
        let millis = |delay: &Duration| u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        let event = match event {
            SessionEvent::RetryScheduled { attempt, max_attempts, delay, error } => {
                WireEvent::AutoRetryStart {
                    attempt: *attempt,
                    max_attempts: *max_attempts,
                    delay_ms: millis(delay),
                    error_message: error,
                }
            }
            SessionEvent::RetryEnded { success, attempt, final_error } => {
                let final_error = final_error.as_deref();
                WireEvent::AutoRetryEnd { success: *success, attempt: *attempt, final_error }
            }
            SessionEvent::SummaryRetryScheduled { attempt, max_attempts, delay, error } => {
                WireEvent::SummarizationRetryScheduled {
                    attempt: *attempt,
                    max_attempts: *max_attempts,
                    delay_ms: millis(delay),
                    error_message: error,
                }
            }
            SessionEvent::SummaryRetryStarted { source } => {
                let (source, reason) = match source {
                    SummarySource::Compaction(reason) => ("compaction", Some(reason_name(*reason))),
                    SummarySource::Branch => ("branchSummary", None),
                    SummarySource::Handoff => ("handoff", None),
                };
                WireEvent::SummarizationRetryAttemptStart { source, reason }
            }
            SessionEvent::SummaryRetriesFinished => WireEvent::SummarizationRetryFinished,
            _ => return,
        };
        self.line(&event, out);
    }

    /// Writes an `agent_end` that was held back, now that `next` tells what follows.
    fn settle_end(&mut self, next: &SessionEvent, out: &mut String) {
        let will_retry = match next {
            // These say nothing about it.
            SessionEvent::EntryAppended(_) | SessionEvent::Notice { .. } => return,
            SessionEvent::RetryScheduled { .. } => true,
            SessionEvent::CompactionStarted { reason } => *reason == CompactionReason::Overflow,
            _ => false,
        };
        let Some(messages) = self.held.take() else { return };
        let messages = (self.style == EventStyle::Whole).then_some(&messages[..]);
        self.line(&WireEvent::AgentEnd { messages, will_retry }, out);
    }

    fn agent_event(&mut self, event: &AgentEvent, out: &mut String) {
        match event {
            AgentEvent::AgentStart => {
                self.has_run = true;
                self.line(&WireEvent::AgentStart, out);
            }
            AgentEvent::TurnStart => self.line(&WireEvent::TurnStart, out),
            AgentEvent::MessageStart(message) => self.line(&WireEvent::MessageStart { message }, out),
            AgentEvent::AssistantStart(pending) => {
                self.answer = OpenAnswer { usage: pending.usage.clone(), open: Vec::new() };
                // The original adds the level at the end.
                let message = AssistantMessage { thinking_level: None, ..AssistantMessage::clone(pending) };
                let message = Message::from(message);
                self.line(&WireEvent::MessageStart { message: &message }, out);
            }
            AgentEvent::MessageUpdate(update) => self.update(update, out),
            AgentEvent::MessageEnd(message) => {
                if let Message::Assistant(answer) = &**message {
                    self.close_blocks(answer, out);
                }
                self.line(&WireEvent::MessageEnd { message }, out);
            }
            AgentEvent::ToolStart { call } => {
                self.calls.insert(call.id.clone(), Arc::clone(call));
                let event = WireEvent::ToolExecutionStart {
                    tool_call_id: &call.id,
                    tool_name: &call.name,
                    args: &call.arguments,
                };
                self.line(&event, out);
            }
            // The protocol has no event for it.
            AgentEvent::ToolRunning { .. } => {}
            AgentEvent::ToolUpdate { call_id, partial } => {
                let Some(call) = self.calls.get(call_id) else { return };
                let event = WireEvent::ToolExecutionUpdate {
                    tool_call_id: call_id,
                    tool_name: &call.name,
                    args: &call.arguments,
                    partial_result: ToolResultData::of(partial),
                };
                self.line(&event, out);
            }
            AgentEvent::ToolEnd { call_id, result } => {
                self.calls.remove(call_id);
                let event = WireEvent::ToolExecutionEnd {
                    tool_call_id: call_id,
                    tool_name: &result.tool_name,
                    result: ToolResultData { content: &result.content, details: result.details.as_ref() },
                    is_error: result.is_error,
                    duration_ms: result.duration_ms,
                };
                self.line(&event, out);
            }
            AgentEvent::TurnEnd { message, results } => {
                let whole = self.style == EventStyle::Whole;
                let event = WireEvent::TurnEnd {
                    message: whole.then_some(message),
                    tool_results: whole.then_some(results),
                };
                self.line(&event, out);
            }
            AgentEvent::AgentEnd { messages } => {
                let whole = self.style == EventStyle::Whole;
                self.held = Some(if whole { messages.clone() } else { Vec::new() });
            }
        }
    }

    fn update(&mut self, update: &StreamEvent, out: &mut String) {
        match update {
            StreamEvent::Start | StreamEvent::Done(_) => {}
            StreamEvent::BlockStart { index, kind } => {
                let content_index = *index;
                let (block, event) = match kind {
                    BlockKind::Text => (OpenBlock::Text, AnswerEvent::TextStart { content_index }),
                    BlockKind::Thinking => {
                        (OpenBlock::Thinking, AnswerEvent::ThinkingStart { content_index })
                    }
                    BlockKind::ToolCall { id, name } => (
                        OpenBlock::ToolCall,
                        AnswerEvent::ToolcallStart { content_index, id, tool_name: name },
                    ),
                };
                self.answer.begin(*index, block);
                self.answer_event(event, out);
            }
            StreamEvent::Delta { index, text } => {
                let content_index = *index;
                let Some(block) = self.answer.open.get(*index).copied().flatten() else { return };
                for delta in self.pieces(text) {
                    let event = match block {
                        OpenBlock::Text => AnswerEvent::TextDelta { content_index, delta },
                        OpenBlock::Thinking => AnswerEvent::ThinkingDelta { content_index, delta },
                        OpenBlock::ToolCall => AnswerEvent::ToolcallDelta { content_index, delta },
                    };
                    self.answer_event(event, out);
                }
            }
            StreamEvent::BlockEnd { index, block } => {
                self.answer.end(*index);
                self.block_end(*index, block, out);
            }
        }
    }

    fn block_end(&mut self, content_index: usize, block: &AssistantBlock, out: &mut String) {
        let event = match block {
            AssistantBlock::Text(text) => AnswerEvent::TextEnd { content_index, content: &text.text },
            AssistantBlock::Thinking(thinking) => {
                AnswerEvent::ThinkingEnd { content_index, content: &thinking.thinking }
            }
            AssistantBlock::ToolCall(_) => AnswerEvent::ToolcallEnd { content_index, tool_call: block },
            AssistantBlock::Unknown(_) => return,
        };
        self.answer_event(event, out);
    }

    /// Ends the blocks that an answer leaves open.
    fn close_blocks(&mut self, answer: &AssistantMessage, out: &mut String) {
        let open = std::mem::take(&mut self.answer.open);
        for (idx, _) in open.iter().enumerate().filter(|(_, open)| open.is_some()) {
            if let Some(block) = answer.content.get(idx) {
                self.block_end(idx, block, out);
            }
        }
    }

    fn answer_event(&mut self, event: AnswerEvent<'_>, out: &mut String) {
        let update = MessageUpdate { usage: &self.answer.usage, assistant_message_event: event };
        write_line(&WireEvent::MessageUpdate(update), self.style, out);
    }

    fn entry_appended(&mut self, entry: &Arc<Entry>) {
        if as_compaction(entry).is_some() {
            self.compaction = Some(Arc::clone(entry));
        }
    }

    fn note_state(&mut self, state: &SessionState) {
        self.name.clone_from(&state.name);
        self.thinking = Some(state.thinking);
    }

    fn selection_changed(&mut self, state: &SessionState, out: &mut String) {
        if state.name != self.name {
            self.line(&WireEvent::SessionInfoChanged { name: state.name.as_deref() }, out);
        }
        if self.thinking.is_some_and(|thinking| thinking != state.thinking) {
            self.line(&WireEvent::ThinkingLevelChanged { level: state.thinking }, out);
        }
        self.note_state(state);
    }

    /// What a client slower than the session gets of a text that arrives: all of it, in as many
    /// lines as their limit needs.
    fn pieces<'t>(&self, text: &'t str) -> impl Iterator<Item = &'t str> + use<'t> {
        let limit = if self.style == EventStyle::Slim { slim::PIECE_BYTES } else { usize::MAX };
        let mut rest = Some(text);
        std::iter::from_fn(move || {
            let (piece, later) = rest?.split_at(rest?.floor_char_boundary(limit));
            rest = Some(later).filter(|later| !later.is_empty());
            Some(piece)
        })
    }

    fn line(&self, event: &WireEvent<'_>, out: &mut String) {
        write_line(event, self.style, out);
    }
}

fn write_line(event: &WireEvent<'_>, style: EventStyle, out: &mut String) {
    let start = out.len();
    // Messages have string keys and no failing serializers.
    out.push_str(&serde_json::to_string(event).unwrap_or_default());
    if style == EventStyle::Slim {
        slim::shorten(out, start);
    }
    out.push('\n');
}

impl OpenAnswer {
    fn begin(&mut self, index: usize, block: OpenBlock) {
        if self.open.len() <= index {
            self.open.resize(index + 1, None);
        }
        self.open[index] = Some(block);
    }

    fn end(&mut self, index: usize) {
        if let Some(open) = self.open.get_mut(index) {
            *open = None;
        }
    }
}

pub(in crate::modes) fn as_compaction(entry: &Entry) -> Option<&Compaction> {
    match &entry.body {
        EntryBody::Compaction(compaction) => Some(compaction),
        _ => None,
    }
}

fn reason_name(reason: CompactionReason) -> &'static str {
    match reason {
        CompactionReason::Manual => "manual",
        CompactionReason::Threshold => "threshold",
        CompactionReason::Overflow => "overflow",
    }
}

/// An event, in the original's field order.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
enum WireEvent<'a> {
    AgentStart,
    AgentEnd {
        #[serde(skip_serializing_if = "Option::is_none")]
        messages: Option<&'a [Arc<Message>]>,
        will_retry: bool,
    },
    AgentSettled {
        aborted: bool,
    },
    TurnStart,
    TurnEnd {
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<&'a Arc<Message>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        tool_results: Option<&'a Vec<Arc<Message>>>,
    },
    MessageStart {
        message: &'a Message,
    },
    MessageUpdate(MessageUpdate<'a>),
    MessageEnd {
        message: &'a Message,
    },
    ToolExecutionStart {
        tool_call_id: &'a str,
        tool_name: &'a str,
        args: &'a Value,
    },
    ToolExecutionUpdate {
        tool_call_id: &'a str,
        tool_name: &'a str,
        args: &'a Value,
        partial_result: ToolResultData<'a>,
    },
    ToolExecutionEnd {
        tool_call_id: &'a str,
        tool_name: &'a str,
        result: ToolResultData<'a>,
        is_error: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        duration_ms: Option<u64>,
    },
    QueueUpdate {
        steering: &'a [String],
        follow_up: &'a [String],
    },
    SessionInfoChanged {
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<&'a str>,
    },
    ThinkingLevelChanged {
        level: ThinkingLevel,
    },
    CompactionStart {
        reason: &'static str,
    },
    CompactionEnd {
        reason: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<CompactionResult<'a>>,
        aborted: bool,
        will_retry: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        error_message: Option<&'a str>,
    },
    AutoRetryStart {
        attempt: u32,
        max_attempts: u32,
        delay_ms: u64,
        error_message: &'a str,
    },
    AutoRetryEnd {
        success: bool,
        attempt: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        final_error: Option<&'a str>,
    },
    SummarizationRetryScheduled {
        attempt: u32,
        max_attempts: u32,
        delay_ms: u64,
        error_message: &'a str,
    },
    SummarizationRetryAttemptStart {
        source: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<&'static str>,
    },
    SummarizationRetryFinished,
    BashExecutionUpdate {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a Value>,
        delta: &'a str,
    },
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MessageUpdate<'a> {
    usage: &'a Usage,
    assistant_message_event: AnswerEvent<'a>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
enum AnswerEvent<'a> {
    TextStart { content_index: usize },
    TextDelta { content_index: usize, delta: &'a str },
    TextEnd { content_index: usize, content: &'a str },
    ThinkingStart { content_index: usize },
    ThinkingDelta { content_index: usize, delta: &'a str },
    ThinkingEnd { content_index: usize, content: &'a str },
    ToolcallStart { content_index: usize, id: &'a str, tool_name: &'a str },
    ToolcallDelta { content_index: usize, delta: &'a str },
    ToolcallEnd { content_index: usize, tool_call: &'a AssistantBlock },
}

#[derive(Serialize)]
struct ToolResultData<'a> {
    content: &'a [ContentBlock],
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<&'a Value>,
}

impl<'a> ToolResultData<'a> {
    fn of(output: &'a ToolOutput) -> Self {
        Self { content: &output.content, details: output.details.as_ref() }
    }
}

/// What a compaction did.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::modes) struct CompactionResult<'a> {
    summary: &'a str,
    first_kept_entry_id: &'a str,
    tokens_before: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    estimated_tokens_after: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<&'a Usage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<&'a Value>,
}

impl<'a> CompactionResult<'a> {
    pub(in crate::modes) fn new(compaction: &'a Compaction, tokens_after: Option<u64>) -> Self {
        Self {
            summary: &compaction.summary,
            first_kept_entry_id: &compaction.first_kept_entry_id,
            tokens_before: compaction.tokens_before,
            estimated_tokens_after: tokens_after,
            usage: compaction.usage.as_ref(),
            details: compaction.details.as_ref(),
        }
    }
}
