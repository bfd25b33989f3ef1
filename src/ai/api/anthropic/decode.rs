//! Reads an Anthropic event stream.

use std::borrow::Cow;

use serde_json::Value;

use super::super::{
    Blocks, Count, Decode, DecodeError, End, Finish, error_of, filled, reported_error, with_json,
};
use super::wire::{self, ContentBlock, Event};
use crate::ai::failure::RequestError;
use crate::ai::messages::{StopReason, StreamEvent, Usage};
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
    usage: Usage,
    response_id: Option<String>,
    response_model: Option<String>,
    raw_stop_reason: Option<String>,
    /// The server's explanation of a refusal.
    explanation: Option<String>,
    has_stopped: bool,
}

struct OpenBlock {
    wire_index: u64,
    slot: Option<usize>,
    /// Input that came with the start; used if no delta follows.
    input: Option<String>,
}

impl Decoder {
    pub(super) fn new(asked_for: &str) -> Self {
        Self {
            asked_for: asked_for.to_owned(),
            blocks: Blocks::default(),
            open: Vec::new(),
            usage: Usage::default(),
            response_id: None,
            response_model: None,
            raw_stop_reason: None,
            explanation: None,
            has_stopped: false,
        }
    }

    fn event(&mut self, event: Event<'_>, out: &mut Vec<StreamEvent>) -> Result<(), DecodeError> {
        match event.kind.as_str() {
            "content_block_delta" => self.block_delta(event, out),
            "content_block_start" => {
                if let Some(block) = event.content_block {
                    self.block_start(event.index.unwrap_or_default().0, &block, out);
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
        for (at, block) in message.content.iter().flatten().enumerate() {
            let index = u64::MAX - at as u64;
            self.block_start(index, block, out);
            self.block_stop(index, out);
        }
        Ok(())
    }

    fn block_start(&mut self, wire_index: u64, block: &ContentBlock<'_>, out: &mut Vec<StreamEvent>) {
        let mut input = None;
        let slot = match block.kind.as_str() {
            "text" => {
                let slot = self.blocks.start_text(out);
                self.blocks.push(slot, Cow::Borrowed(filled(block.text.as_ref()).unwrap_or_default()), out);
                Some(slot)
            }
            "thinking" => {
                let slot = self.blocks.start_thinking(out);
                let text = filled(block.thinking.as_ref()).unwrap_or_default();
                self.blocks.push(slot, Cow::Borrowed(text), out);
                if let Some(signature) = filled(block.signature.as_ref()) {
                    self.sign(slot, signature);
                }
                Some(slot)
            }
            "redacted_thinking" => {
                let slot = self.blocks.start_thinking(out);
                if let Some(thinking) = self.blocks.thinking_mut(slot) {
                    thinking.redacted = true;
                    thinking.thinking_signature =
                        block.data.and_then(|data| serde_json::from_str(data.get()).ok());
                }
                Some(slot)
            }
            "tool_use" => {
                let id = filled(block.id.as_ref()).unwrap_or_default().to_owned();
                let name = filled(block.name.as_ref()).unwrap_or_default().to_owned();
                input = block.input.map(|input| input.get().to_owned());
                Some(self.blocks.start_call(id, name, out))
            }
            _ => None,
        };
        self.open.push(OpenBlock { wire_index, slot, input });
    }

    fn block_delta(&mut self, event: Event<'_>, out: &mut Vec<StreamEvent>) {
        let wire_index = event.index.unwrap_or_default().0;
        let open = self.open.iter().rev().find(|open| open.wire_index == wire_index);
        let (Some(slot), Some(delta)) = (open.and_then(|open| open.slot), event.delta) else { return };
        let text = match delta.kind.as_str() {
            "text_delta" => delta.text,
            "thinking_delta" => delta.thinking,
            "input_json_delta" => delta.partial_json,
            "signature_delta" => {
                if let Some(signature) = filled(delta.signature.as_ref()) {
                    self.sign(slot, signature);
                }
                None
            }
            _ => None,
        };
        if let Some(text) = text {
            self.blocks.push(slot, text.0, out);
        }
    }

    fn block_stop(&mut self, wire_index: u64, out: &mut Vec<StreamEvent>) {
        let Some(at) = self.open.iter().rposition(|open| open.wire_index == wire_index) else { return };
        let open = self.open.remove(at);
        let Some(slot) = open.slot else { return };
        if let Some(input) = open.input.filter(|input| input != "{}" && input != "null")
            && self.blocks.arguments(slot).is_empty()
        {
            self.blocks.push(slot, Cow::Owned(input), out);
        }
        self.blocks.end(slot, out);
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
                    self.open.push(OpenBlock { wire_index, slot: None, input: None });
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
    fn update_usage(&mut self, usage: &wire::Usage) {
        let set = |slot: &mut u64, count: Option<Count>| {
            if let Some(count) = count {
                *slot = count.0;
            }
        };
        set(&mut self.usage.input, usage.input_tokens);
        set(&mut self.usage.output, usage.output_tokens);
        set(&mut self.usage.cache_read, usage.cache_read_input_tokens);
        set(&mut self.usage.cache_write, usage.cache_creation_input_tokens);
        if let Some(Count(written)) =
            usage.cache_creation.as_ref().and_then(|made| made.ephemeral_1h_input_tokens)
        {
            self.usage.cache_write_1h = (written > 0).then_some(written);
        }
        if let Some(Count(thought)) =
            usage.output_tokens_details.as_ref().and_then(|details| details.thinking_tokens)
        {
            self.usage.reasoning = Some(thought);
        }
    }

    /// The failure for which a model stopped, in the words of the service if it has any.
    fn stopped_by(&self, reason: &str) -> RequestError {
        let mut error = RequestError::of_stop_reason("stop_reason", reason, None);
        if let Some(explanation) = &self.explanation {
            error.text.clone_from(explanation);
        }
        error
    }

    fn outcome(&self) -> Result<StopReason, RequestError> {
        if !self.has_stopped {
            return Err(RequestError::cut_off("stream ended before message_stop"));
        }
        match self.raw_stop_reason.as_deref() {
            // Only server-side tools pause an answer, and pi never requests those.
            Some("end_turn" | "stop_sequence" | "pause_turn") => Ok(StopReason::Stop),
            Some("max_tokens" | "model_context_window_exceeded") => Ok(StopReason::Length),
            Some("tool_use") => Ok(StopReason::ToolUse),
            Some(other) => Err(self.stopped_by(other)),
            None => Err(RequestError::cut_off("stream ended without a stop_reason")),
        }
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
                None => self.event(event, out),
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

    fn finish(mut self: Box<Self>, end: End, out: &mut Vec<StreamEvent>) -> Finish {
        // A block without a stop event is incomplete, whatever it contains.
        self.blocks.end_all(false, out);
        let outcome = match end {
            End::Closed | End::Lost => self.outcome(),
            End::Cut => Err(RequestError::cut_off("stream interrupted")),
        };
        let usage = &mut self.usage;
        usage.total_tokens = usage.prompt_tokens().saturating_add(usage.output);
        Finish {
            content: self.blocks.content,
            usage: self.usage,
            outcome,
            response_id: self.response_id.filter(|id| !id.is_empty()),
            response_model: self.response_model.filter(|model| *model != self.asked_for),
            raw_stop_reason: self.raw_stop_reason,
        }
    }
}
