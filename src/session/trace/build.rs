//! Derives a trace from the entries of a branch.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::ai::{
    self, AssistantBlock, AssistantMessage, ContentBlock, Message, StopReason, ToolCall, ToolResultMessage,
};
use crate::util::clock;

use super::super::store::{Entry, EntryBody, EntryId, SessionMessage};
use super::delete;
use super::message::{CallResult, Trace, TraceStep, TraceTime, TracedCall, TracedMessage};
use super::recorder;

/// Nanoseconds per millisecond, the resolution of entries.
const NANOS: u64 = 1_000_000;

impl Trace {
    /// The trace of a branch, oldest entry first. Deleted messages are left out.
    pub fn of(branch: &[Arc<Entry>]) -> Self {
        let mut builder = Builder::default();
        for entry in branch {
            builder.add(entry);
        }
        let deleted: HashSet<EntryId> =
            branch.iter().filter_map(|entry| delete::deleted_message(&entry.body)).collect();
        let mut messages = builder.messages;
        messages.retain(|message| !deleted.contains(&message.id));
        Self { session_id: None, messages, damage: None }
    }

    /// The message with this id.
    pub fn message(&self, id: &EntryId) -> Option<&TracedMessage> {
        self.messages.iter().find(|message| message.id == *id)
    }
}

/// Indices of a call: message, step, call.
type CallAt = (usize, usize, usize);

#[derive(Default)]
struct Builder {
    messages: Vec<TracedMessage>,
    last_time: TraceTime,
    /// Calls without a result, by id.
    open: HashMap<String, CallAt>,
    /// Calls with a result that no text has followed.
    awaiting_text: Vec<CallAt>,
}

impl Builder {
    fn add(&mut self, entry: &Entry) {
        let EntryBody::Message { message: SessionMessage::Model(message), extra } = &entry.body else {
            return;
        };
        match &**message {
            Message::User(user) => {
                let n_images = user.content.blocks().iter().filter(|block| block.is_image()).count();
                self.begin(entry, user.content.text(), n_images);
            }
            Message::Assistant(answer) => {
                let recorded = recorder::request_id(extra);
                self.add_step(entry, answer, recorded, &recorder::reflects_on(extra));
            }
            Message::ToolResult(result) => self.add_result(entry, result),
            Message::System(_) => {}
        }
    }

    fn begin(&mut self, entry: &Entry, text: String, n_images: usize) {
        let request_id = match self.messages.last() {
            Some(before) if is_running(before) => before.request_id.clone(),
            _ => entry.id.clone(),
        };
        let entry_ns = clock::parse_iso8601(&entry.timestamp).unwrap_or_default().saturating_mul(NANOS);
        // Entries may share a millisecond, and clocks may be set back.
        self.last_time = TraceTime(entry_ns.max(self.last_time.0 + 1));
        self.messages.push(TracedMessage {
            id: entry.id.clone(),
            request_id,
            time: self.last_time,
            text,
            n_images,
            steps: Vec::new(),
            completed: false,
            version: 1,
            entries: vec![entry.id.clone()],
        });
    }

    fn add_step(
        &mut self,
        entry: &Entry,
        answer: &AssistantMessage,
        request_id: Option<EntryId>,
        reflects_on: &[String],
    ) {
        if self.messages.is_empty() {
            // An imported conversation may begin with an answer.
            self.begin(entry, String::new(), 0);
            self.count(Vec::clear);
        }
        let text: String = answer.texts().collect();
        self.reflect(&text, reflects_on);
        let at = self.messages.len() - 1;
        let Some(message) = self.messages.last_mut() else { return };
        if let Some(request_id) = request_id {
            message.request_id = request_id;
        }
        let calls: Vec<TracedCall> = answer.tool_calls().map(open_call).collect();
        for (idx, call) in calls.iter().enumerate() {
            self.open.insert(call.id.clone(), (at, message.steps.len(), idx));
        }
        message.steps.push(TraceStep {
            id: entry.id.clone(),
            iteration: message.steps.len(),
            time: entry.timestamp.clone(),
            thought: thought(answer),
            text,
            model: format!("{}/{}", answer.provider, answer.model),
            stop_reason: stop_reason(answer.stop_reason).to_owned(),
            error: answer.error_message.clone(),
            duration_ms: answer.duration_ms,
            calls,
        });
        self.count(|entries| entries.push(entry.id.clone()));
    }

    fn add_result(&mut self, entry: &Entry, result: &ToolResultMessage) {
        let Some(at @ (message, step, call)) = self.open.remove(&result.tool_call_id) else { return };
        let message = &mut self.messages[message];
        message.entries.push(entry.id.clone());
        message.version = message.entries.len() as u64;
        let step = &mut message.steps[step];
        let estimated = duration_between(&step.time, &entry.timestamp);
        let call = &mut step.calls[call];
        call.duration_ms = result.duration_ms.or(estimated);
        call.duration_estimated = result.duration_ms.is_none() && estimated.is_some();
        call.result = Some(call_result(result));
        self.awaiting_text.push(at);
        message.completed = is_completed(message);
    }

    /// Attaches the text of an answer to the results it follows: those the session
    /// recorded, otherwise all since the last text.
    fn reflect(&mut self, text: &str, recorded: &[String]) {
        if text.trim().is_empty() {
            return;
        }
        for (message, step, call) in self.awaiting_text.drain(..) {
            let call = &mut self.messages[message].steps[step].calls[call];
            if recorded.is_empty() || recorded.contains(&call.id) {
                call.reflection = Some(text.to_owned());
            }
        }
    }

    /// Changes the entries of the last message and updates the fields that depend on them.
    fn count(&mut self, change: impl FnOnce(&mut Vec<EntryId>)) {
        if let Some(message) = self.messages.last_mut() {
            change(&mut message.entries);
            message.version = message.entries.len() as u64;
            message.completed = is_completed(message);
        }
    }
}

/// Whether a message still waits for a result or for the answer after one.
fn is_running(message: &TracedMessage) -> bool {
    message.steps.last().is_some_and(|step| step.stop_reason == "toolUse")
}

fn is_completed(message: &TracedMessage) -> bool {
    let calls_finished = message.steps.iter().flat_map(|step| &step.calls).all(|call| call.result.is_some());
    calls_finished
        && message.steps.last().is_some_and(|step| matches!(step.stop_reason.as_str(), "stop" | "length"))
}

fn open_call(call: &ToolCall) -> TracedCall {
    TracedCall {
        id: call.id.clone(),
        name: call.name.clone(),
        args: call.arguments.clone(),
        result: None,
        reflection: None,
        duration_ms: None,
        duration_estimated: false,
    }
}

fn call_result(result: &ToolResultMessage) -> CallResult {
    let output = ai::join_text(&result.content);
    let images = result.content.iter().filter(|block| block.is_image());
    let n_bytes = output.len() + images.clone().map(image_bytes).sum::<usize>();
    CallResult {
        success: !result.is_error,
        n_images: images.count(),
        data: result.details.clone(),
        error: result.is_error.then(|| output.clone()),
        n_bytes: n_bytes as u64,
        output,
    }
}

fn image_bytes(block: &ContentBlock) -> usize {
    match block {
        ContentBlock::Image(image) => image.data.len(),
        ContentBlock::Text(_) | ContentBlock::ImageUrl(_) | ContentBlock::Unknown(_) => 0,
    }
}

fn thought(answer: &AssistantMessage) -> String {
    let thoughts: Vec<&str> = answer
        .content
        .iter()
        .filter_map(|block| match block {
            AssistantBlock::Thinking(thinking) => Some(thinking.thinking.as_str()),
            AssistantBlock::Text(_) | AssistantBlock::ToolCall(_) | AssistantBlock::Unknown(_) => None,
        })
        .filter(|text| !text.trim().is_empty())
        .collect();
    thoughts.join("\n\n")
}

/// The name in session files.
fn stop_reason(reason: StopReason) -> &'static str {
    match reason {
        StopReason::Stop => "stop",
        StopReason::Length => "length",
        StopReason::ToolUse => "toolUse",
        StopReason::Error => "error",
        StopReason::Aborted => "aborted",
        StopReason::Deferred => "deferred",
        StopReason::Pending => "pending",
    }
}

fn duration_between(start: &str, end: &str) -> Option<u64> {
    clock::parse_iso8601(end)?.checked_sub(clock::parse_iso8601(start)?)
}
