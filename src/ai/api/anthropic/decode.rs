//! Reads an Anthropic event stream.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::super::{
    Blocks, Count, Decode, DecodeError, End, Finish, ReportedEnd, TextPiece, UsageCount, error_of, filled,
    outcome_of, reported_end, reported_error, with_json, without_signs,
};
use super::wire::{self, ContentBlock, Event};
use crate::ai::failure::RequestError;
use crate::ai::messages::{AssistantBlock, StopReason, StreamEvent};
use crate::ai::transport::SseFrame;

/// The event types the decoder reads.
const EVENTS: &[&str] = &[
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
    "error",
];
const BLOCKS: &[&str] = &["text", "thinking", "redacted_thinking", "tool_use"];
const DELTAS: &[&str] = &["text_delta", "thinking_delta", "signature_delta", "input_json_delta"];

pub(super) struct Decoder {
    asked_for: String,
    blocks: Blocks,
    /// The blocks the server has open, by its index; blocks of skipped kinds have no slot.
    open: Vec<OpenBlock>,
    usage: UsageCount,
    response_id: Option<String>,
    response_model: Option<String>,
    raw_stop_reason: Option<String>,
    /// The server's explanation of a refusal.
    explanation: Option<String>,
    /// All blocks in their order, also the skipped ones, to send back when the service pauses.
    parts: Vec<PausedPart>,
    /// A block of a skipped kind had text.
    has_skipped_text: bool,
    has_stopped: bool,
}

/// A block of the answer as the service wants it back.
enum PausedPart {
    Shown(usize),
    /// A block of a skipped kind, and the JSON text of its input.
    Skipped(Value, String),
}

struct OpenBlock {
    wire_index: u64,
    kind: DeltaTarget,
    slot: Option<usize>,
    /// Input that came with the start; used if no delta follows.
    input: Option<String>,
}

/// The kinds of blocks that deltas extend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DeltaTarget {
    Text,
    Thinking,
    Call,
    /// Output of server-side tools, and kinds pi does not know.
    Skipped,
}

impl DeltaTarget {
    /// The kind that a block names, or that its fields show.
    fn of(block: &ContentBlock<'_>) -> Option<Self> {
        Some(match block.kind.as_str() {
            "text" => Self::Text,
            "thinking" | "redacted_thinking" => Self::Thinking,
            "tool_use" => Self::Call,
            "" if block.name.is_some() => Self::Call,
            "" if block.thinking.is_some() => Self::Thinking,
            "" if block.text.is_some() => Self::Text,
            "" => return None,
            _ => Self::Skipped,
        })
    }
}

impl Decoder {
    /// `sent_bytes` is the size of the text in the request.
    pub(super) fn new(asked_for: &str, sent_bytes: usize) -> Self {
        Self {
            asked_for: asked_for.to_owned(),
            blocks: Blocks::default(),
            open: Vec::new(),
            usage: UsageCount::new(sent_bytes),
            response_id: None,
            response_model: None,
            raw_stop_reason: None,
            explanation: None,
            parts: Vec::new(),
            has_skipped_text: false,
            has_stopped: false,
        }
    }

    fn event(&mut self, event: Event<'_>, data: &str, out: &mut Vec<StreamEvent>) -> Result<(), DecodeError> {
        match event.kind.as_str() {
            "content_block_delta" => self.block_delta(event, out)?,
            "content_block_start" => {
                if let Some(block) = event.content_block {
                    let at = self.parts.len();
                    self.block_start(event.index.unwrap_or_default().0, block, out);
                    self.keep_skipped(at, data);
                }
            }
            "content_block_stop" => self.block_stop(event.index.unwrap_or_default().0, out),
            "message_start" => self.message_start(event, out)?,
            "message_delta" => self.message_delta(event),
            "message_stop" => self.has_stopped = true,
            _ => {}
        }
        Ok(())
    }

    fn message_start(&mut self, event: Event<'_>, out: &mut Vec<StreamEvent>) -> Result<(), DecodeError> {
        let Some(message) = event.message else { return Ok(()) };
        let id = filled(message.id.as_ref()).unwrap_or_default();
        if let Some(open) = &self.response_id {
            // Some proxies repeat the start; others insert a second answer.
            if open == id {
                return Ok(());
            }
            return Err(DecodeError::failed(format!("message_start for {id} while {open} is open")));
        }
        self.response_id = Some(id.to_owned());
        self.response_model = filled(message.model.as_ref()).map(str::to_owned);
        if let Some(usage) = &message.usage {
            self.update_usage(usage);
        }
        // Prefilled content is complete; indices above all others keep it separate.
        for (at, block) in message.content.into_iter().flatten().enumerate() {
            let index = u64::MAX - at as u64;
            self.block_start(index, block, out);
            self.block_stop(index, out);
        }
        Ok(())
    }

    fn block_start(&mut self, wire_index: u64, block: ContentBlock<'_>, out: &mut Vec<StreamEvent>) {
        // Deltas show the kind of a block that does not name its own.
        let Some(kind) = DeltaTarget::of(&block) else { return };
        let mut input = None;
        let slot = match kind {
            DeltaTarget::Text => {
                let slot = self.blocks.start_text(out);
                self.blocks.push(slot, block.text.unwrap_or_default().0, out);
                Some(slot)
            }
            DeltaTarget::Thinking => Some(self.thinking_start(block, out)),
            DeltaTarget::Call => {
                let id = filled(block.id.as_ref()).unwrap_or_default().to_owned();
                let name = filled(block.name.as_ref()).unwrap_or_default().to_owned();
                input = block.input.map(|input| without_signs(input.get()).into_owned());
                Some(self.blocks.start_call(id, name, out))
            }
            DeltaTarget::Skipped => None,
        };
        self.parts.push(match slot {
            Some(slot) => PausedPart::Shown(slot),
            None => PausedPart::Skipped(Value::Null, String::new()),
        });
        self.open.push(OpenBlock { wire_index, kind, slot, input });
    }

    fn thinking_start(&mut self, block: ContentBlock<'_>, out: &mut Vec<StreamEvent>) -> usize {
        let slot = self.blocks.start_thinking(out);
        if block.kind.as_str() == "redacted_thinking" {
            if let Some(thinking) = self.blocks.thinking_mut(slot) {
                thinking.redacted = true;
                thinking.thinking_signature =
                    block.data.and_then(|data| serde_json::from_str(data.get()).ok());
            }
            return slot;
        }
        self.blocks.push(slot, block.thinking.unwrap_or_default().0, out);
        if let Some(signature) = filled(block.signature.as_ref()) {
            self.sign(slot, signature);
        }
        slot
    }

    fn block_delta(&mut self, event: Event<'_>, out: &mut Vec<StreamEvent>) -> Result<(), DecodeError> {
        let wire_index = event.index.unwrap_or_default().0;
        let Some(delta) = event.delta else { return Ok(()) };
        let (kind, text) = match delta.kind.as_str() {
            "text_delta" => (DeltaTarget::Text, delta.text),
            "thinking_delta" => (DeltaTarget::Thinking, delta.thinking),
            "input_json_delta" => (DeltaTarget::Call, delta.partial_json),
            "signature_delta" => {
                if let Some(signature) = filled(delta.signature.as_ref())
                    && let Some(slot) = self.slot_for(wire_index, DeltaTarget::Thinking, out)
                {
                    self.sign(slot, signature);
                }
                return Ok(());
            }
            // Some gateways leave out the kind.
            "" if delta.text.is_some() => (DeltaTarget::Text, delta.text),
            "" if delta.thinking.is_some() => (DeltaTarget::Thinking, delta.thinking),
            "" if delta.partial_json.is_some() => (DeltaTarget::Call, delta.partial_json),
            _ => return Ok(()),
        };
        let Some(TextPiece(text)) = text.filter(|text| !text.is_empty()) else { return Ok(()) };
        if self.is_skipped(wire_index) {
            self.has_skipped_text |= kind != DeltaTarget::Call;
            if let Some(PausedPart::Skipped(_, input)) = self.parts.last_mut() {
                input.push_str(&text);
            }
            return Ok(());
        }
        let slot = self.slot_for(wire_index, kind, out).ok_or_else(RequestError::unnamed_call)?;
        self.blocks.push(slot, text, out);
        Ok(())
    }

    /// The block at this index that a delta of this kind extends. If the server has not started
    /// one, it starts here, except a call, whose name is unknown.
    fn slot_for(&mut self, wire_index: u64, kind: DeltaTarget, out: &mut Vec<StreamEvent>) -> Option<usize> {
        let fits = |open: &&OpenBlock| open.wire_index == wire_index && open.kind == kind;
        if let Some(slot) = self.open.iter().rev().find(fits).and_then(|open| open.slot) {
            return Some(slot);
        }
        let slot = match kind {
            DeltaTarget::Text => self.blocks.start_text(out),
            DeltaTarget::Thinking => self.blocks.start_thinking(out),
            DeltaTarget::Call | DeltaTarget::Skipped => return None,
        };
        self.parts.push(PausedPart::Shown(slot));
        self.open.push(OpenBlock { wire_index, kind, slot: Some(slot), input: None });
        Some(slot)
    }

    /// Stores the block of a skipped kind that the event in `data` has just started.
    fn keep_skipped(&mut self, at: usize, data: &str) {
        if let Some(PausedPart::Skipped(block, _)) = self.parts.get_mut(at)
            && let Ok(Value::Object(mut event)) = serde_json::from_str(data)
        {
            *block = event.shift_remove("content_block").unwrap_or_default();
        }
    }

    /// The content so far as blocks of a request.
    fn content(&self) -> Vec<Value> {
        let parts = self.parts.iter().filter_map(|part| match part {
            PausedPart::Shown(slot) => sent_back(self.blocks.content.get(*slot)?),
            PausedPart::Skipped(block @ Value::Object(_), input) => {
                let mut block = block.clone();
                if let Ok(input) = serde_json::from_str::<Value>(input) {
                    block["input"] = input;
                }
                Some(block)
            }
            PausedPart::Skipped(..) => None,
        });
        parts.collect()
    }

    fn is_skipped(&self, wire_index: u64) -> bool {
        self.open.iter().any(|open| open.wire_index == wire_index && open.kind == DeltaTarget::Skipped)
    }

    fn block_stop(&mut self, wire_index: u64, out: &mut Vec<StreamEvent>) {
        while let Some(at) = self.open.iter().position(|open| open.wire_index == wire_index) {
            let open = self.open.remove(at);
            self.end_block(open, true, out);
        }
    }

    fn end_block(&mut self, open: OpenBlock, is_whole: bool, out: &mut Vec<StreamEvent>) {
        let Some(slot) = open.slot else { return };
        if let Some(input) = open.input.filter(|input| input != "{}" && input != "null")
            && self.blocks.arguments(slot).is_empty()
        {
            self.blocks.push(slot, Cow::Owned(input), out);
        }
        self.blocks.end_as(slot, is_whole, out);
    }

    /// Whether to skip an unreadable event: its type is unknown, or the type of its block
    /// or delta is, so that its fields have another meaning.
    fn passes_over(&mut self, data: &str) -> bool {
        let Ok(event) = serde_json::from_str::<Value>(data) else { return false };
        let is_unknown = |kind: &Value, known: &[&str]| {
            let kind = kind.get("type").and_then(Value::as_str);
            kind.is_some_and(|kind| !known.contains(&kind))
        };
        match event.get("type").and_then(Value::as_str) {
            Some("content_block_start") => {
                let is_unknown = is_unknown(&event["content_block"], BLOCKS);
                if is_unknown {
                    let wire_index = event["index"].as_u64().unwrap_or_default();
                    self.open.push(OpenBlock {
                        wire_index,
                        kind: DeltaTarget::Skipped,
                        slot: None,
                        input: None,
                    });
                }
                is_unknown
            }
            Some("content_block_delta") => is_unknown(&event["delta"], DELTAS),
            _ => is_unknown(&event, EVENTS),
        }
    }

    fn sign(&mut self, slot: usize, signature: &str) {
        if let Some(thinking) = self.blocks.thinking_mut(slot) {
            thinking.thinking_signature.get_or_insert_default().push_str(signature);
        }
    }

    fn message_delta(&mut self, event: Event<'_>) {
        if let Some(usage) = &event.usage {
            self.update_usage(usage);
        }
        let Some(delta) = event.delta else { return };
        if let Some(reason) = filled(delta.stop_reason.as_ref()) {
            self.raw_stop_reason = Some(reason.to_owned());
        }
        if let Some(details) = delta.stop_details {
            let text = details.explanation.or(details.category);
            self.explanation = filled(text.as_ref()).map(str::to_owned);
        }
    }

    /// Updates the counts that are present; they are totals, not increments.
    fn update_usage(&mut self, report: &wire::Usage) {
        let mut usage = self.usage.so_far();
        let set = |slot: &mut u64, count: Option<Count>| {
            if let Some(count) = count {
                *slot = count.0;
            }
        };
        set(&mut usage.input, report.input_tokens);
        set(&mut usage.output, report.output_tokens);
        set(&mut usage.cache_read, report.cache_read_input_tokens);
        set(&mut usage.cache_write, report.cache_creation_input_tokens);
        let made = report.cache_creation.as_ref();
        if let Some(Count(written)) = made.and_then(|made| made.ephemeral_1h_input_tokens) {
            usage.cache_write_1h = (written > 0).then_some(written);
        }
        let details = report.output_tokens_details.as_ref();
        if let Some(Count(thought)) = details.and_then(|details| details.thinking_tokens) {
            usage.reasoning = Some(thought);
        }
        usage.total_tokens = 0;
        self.usage.update(usage);
    }

    fn outcome(&self) -> Result<StopReason, RequestError> {
        if !self.has_stopped {
            return Err(RequestError::cut_off("stream ended before message_stop"));
        }
        let Some(reason) = self.raw_stop_reason.as_deref() else {
            return Err(RequestError::cut_off("stream ended without a stop_reason"));
        };
        if self.blocks.has_unnamed_call() {
            return Err(RequestError::unnamed_call());
        }
        if self.has_skipped_text && self.blocks.content.is_empty() {
            return Err(RequestError::unread_text());
        }
        // The caller resumes it.
        if reported_end(reason) == Some(ReportedEnd::Pause) {
            return Ok(StopReason::Stop);
        }
        outcome_of("stop_reason", reason, self.blocks.has_calls(), None).map_err(|mut error| {
            // The words of the service, if it has any.
            if let Some(explanation) = &self.explanation {
                error.text.clone_from(explanation);
            }
            error
        })
    }
}

/// A block as the service wants it back; `None` for empty ones, which it rejects.
fn sent_back(block: &AssistantBlock) -> Option<Value> {
    match block {
        AssistantBlock::Text(text) if text.text.trim().is_empty() => None,
        AssistantBlock::Text(text) => Some(json!({"type": "text", "text": text.text})),
        AssistantBlock::Thinking(thinking) => {
            let signature = thinking.thinking_signature.as_deref()?;
            Some(match thinking.redacted {
                true => json!({"type": "redacted_thinking", "data": signature}),
                false => {
                    json!({"type": "thinking", "thinking": thinking.thinking, "signature": signature})
                }
            })
        }
        // A paused answer has no calls for the client.
        AssistantBlock::ToolCall(_) | AssistantBlock::Unknown(_) => None,
    }
}

impl Decode for Decoder {
    fn frame(&mut self, frame: &SseFrame<'_>, out: &mut Vec<StreamEvent>) -> Result<(), DecodeError> {
        // Some gateways end the stream like Chat Completions.
        if self.has_stopped || frame.data == "[DONE]" {
            return Ok(());
        }
        let is_error = frame.event == "error";
        let read = with_json(&frame.data, &mut String::new(), |event: Event<'_>| {
            let is_error = is_error || event.kind.as_str() == "error";
            // An event without a type may be an error in another format.
            let may_be_error = is_error || (event.kind.as_str().is_empty() && event.error.is_some());
            match may_be_error.then(|| reported_error(&frame.data)).flatten() {
                Some(error) => Err(error),
                None if is_error => Err(error_of(&frame.data)),
                None => self.event(event, &frame.data, out),
            }
        });
        match read {
            // Declared as an error, but not in the format of this API.
            Err(DecodeError::Malformed(_)) if is_error => Err(error_of(&frame.data)),
            Err(DecodeError::Malformed(_)) if self.passes_over(&frame.data) => Ok(()),
            read => read,
        }
    }

    fn is_complete(&self) -> bool {
        self.has_stopped
    }

    fn resume(&mut self) -> Option<Vec<Value>> {
        let reason = self.raw_stop_reason.as_deref().filter(|_| self.has_stopped)?;
        if reported_end(reason) != Some(ReportedEnd::Pause) {
            return None;
        }
        self.has_stopped = false;
        self.raw_stop_reason = None;
        self.response_id = None;
        self.open.clear();
        self.usage.start_next();
        Some(self.content())
    }

    fn finish(mut self: Box<Self>, end: End, out: &mut Vec<StreamEvent>) -> Finish {
        let outcome = match end {
            End::Closed | End::Lost => self.outcome(),
            End::Cut => Err(RequestError::cut_off("stream interrupted")),
        };
        // The end of the message closes what is open; without it a block is incomplete, whatever
        // it contains.
        let is_whole = matches!(outcome, Ok(StopReason::Stop | StopReason::ToolUse));
        for open in std::mem::take(&mut self.open) {
            self.end_block(open, is_whole, out);
        }
        self.blocks.end_all(is_whole, out);
        Finish {
            content: self.blocks.content,
            usage: self.usage.finish(),
            outcome,
            response_id: self.response_id.filter(|id| !id.is_empty()),
            response_model: self.response_model.filter(|model| *model != self.asked_for),
            raw_stop_reason: self.raw_stop_reason,
            diagnostics: Vec::new(),
        }
    }
}
