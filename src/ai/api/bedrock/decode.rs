//! Decodes the events of a `ConverseStream`.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::super::{Blocks, Count, Decode, DecodeError, End, Finish, filled, with_json};
use super::wire::{self, Delta, Event, ReasoningDelta};
use crate::ai::failure::RequestError;
use crate::ai::messages::{StopReason, StreamEvent, Usage};
use crate::ai::transport::{SseFrame, framing};

#[derive(Default)]
pub(super) struct Decoder {
    blocks: Blocks,
    /// The blocks the server has open, by its index.
    open: Vec<OpenBlock>,
    usage: Usage,
    stop_reason: Option<String>,
    has_stopped: bool,
    /// The token counts have arrived, which mostly happens after the end of the message.
    has_counts: bool,
}

struct OpenBlock {
    wire_index: u64,
    slot: usize,
    kind: Kind,
}

/// The kinds of blocks that deltas extend. Only calls have a start event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Thinking,
    /// Thinking that is only sent back, never shown.
    Redacted,
    Call,
}

impl Decoder {
    fn event(&mut self, kind: &str, event: Event<'_>, out: &mut Vec<StreamEvent>) {
        let wire_index = event.content_block_index.unwrap_or_default().0;
        match kind {
            "metadata" => {
                if let Some(usage) = &event.usage {
                    self.update_usage(usage);
                }
                self.has_counts = true;
            }
            // The stop reason ends a message.
            _ if self.has_stopped => {}
            "contentBlockDelta" => {
                if let Some(delta) = event.delta {
                    self.block_delta(wire_index, delta, out);
                }
            }
            "contentBlockStart" => {
                if let Some(call) = event.start.and_then(|start| start.tool_use) {
                    self.end_open(wire_index, out);
                    let id = filled(call.tool_use_id.as_ref()).unwrap_or_default().to_owned();
                    let name = filled(call.name.as_ref()).unwrap_or_default().to_owned();
                    let slot = self.blocks.start_call(id, name, out);
                    self.open.push(OpenBlock { wire_index, slot, kind: Kind::Call });
                }
            }
            "contentBlockStop" => {
                if let Some(open) = self.take_open(wire_index) {
                    self.blocks.end(open.slot, out);
                }
            }
            "messageStop" => {
                self.stop_reason = filled(event.stop_reason.as_ref()).map(str::to_owned);
                self.has_stopped = true;
            }
            _ => {}
        }
    }

    fn block_delta(&mut self, wire_index: u64, delta: Delta<'_>, out: &mut Vec<StreamEvent>) {
        if let Some(text) = delta.text {
            self.push(wire_index, Kind::Text, text.0, out);
        }
        if let Some(input) = delta.tool_use.and_then(|call| call.input)
            && let Some(slot) = self.find_open(wire_index, Kind::Call)
        {
            self.blocks.push(slot, input.0, out);
        }
        if let Some(reasoning) = delta.reasoning_content {
            self.reasoning_delta(wire_index, reasoning, out);
        }
    }

    fn reasoning_delta(&mut self, wire_index: u64, delta: ReasoningDelta<'_>, out: &mut Vec<StreamEvent>) {
        let signature = filled(delta.signature.as_ref()).map(str::to_owned);
        if let Some(text) = delta.text {
            self.push(wire_index, Kind::Thinking, text.0, out);
        }
        if let Some(signature) = signature {
            let slot = self.open_block(wire_index, Kind::Thinking, out);
            if let Some(thinking) = self.blocks.thinking_mut(slot) {
                thinking.thinking_signature.get_or_insert_default().push_str(&signature);
            }
        }
        if let Some(data) = filled(delta.redacted_content.as_ref()) {
            let slot = self.open_block(wire_index, Kind::Redacted, out);
            if let Some(thinking) = self.blocks.thinking_mut(slot) {
                thinking.redacted = true;
                let kept = thinking.thinking_signature.get_or_insert_default();
                *kept = join_base64(kept, data);
            }
        }
    }

    /// Appends to the text or thinking at this index; an empty text opens no block.
    fn push(&mut self, wire_index: u64, kind: Kind, text: Cow<'_, str>, out: &mut Vec<StreamEvent>) {
        if !text.is_empty() {
            let slot = self.open_block(wire_index, kind, out);
            self.blocks.push(slot, text, out);
        }
    }

    fn find_open(&self, wire_index: u64, kind: Kind) -> Option<usize> {
        let found = self.open.iter().find(|open| open.wire_index == wire_index && open.kind == kind);
        found.map(|open| open.slot)
    }

    /// The block of this kind at this index, opened if necessary. An open block of
    /// another kind at the same index is closed.
    fn open_block(&mut self, wire_index: u64, kind: Kind, out: &mut Vec<StreamEvent>) -> usize {
        if let Some(slot) = self.find_open(wire_index, kind) {
            return slot;
        }
        self.end_open(wire_index, out);
        let slot = match kind {
            Kind::Thinking | Kind::Redacted => self.blocks.start_thinking(out),
            Kind::Text | Kind::Call => self.blocks.start_text(out),
        };
        self.open.push(OpenBlock { wire_index, slot, kind });
        slot
    }

    /// Closes the block that another one replaces. A call without its own stop event is
    /// incomplete.
    fn end_open(&mut self, wire_index: u64, out: &mut Vec<StreamEvent>) {
        match self.take_open(wire_index) {
            Some(OpenBlock { slot, kind: Kind::Call, .. }) => self.blocks.cut(slot, out),
            Some(OpenBlock { slot, .. }) => self.blocks.end(slot, out),
            None => {}
        }
    }

    fn take_open(&mut self, wire_index: u64) -> Option<OpenBlock> {
        let at = self.open.iter().position(|open| open.wire_index == wire_index)?;
        Some(self.open.remove(at))
    }

    fn update_usage(&mut self, usage: &wire::Usage<'_>) {
        let count = |count: Option<Count>| count.unwrap_or_default().0;
        let is_hour = |ttl: &str| ttl == "1h";
        let details = usage.cache_details.iter().flatten();
        let hours = details.filter(|detail| filled(detail.ttl.as_ref()).is_some_and(is_hour));
        let written_1h = hours.fold(0_u64, |sum, detail| sum.saturating_add(count(detail.input_tokens)));
        self.usage = Usage {
            input: count(usage.input_tokens),
            output: count(usage.output_tokens),
            cache_read: count(usage.cache_read_input_tokens),
            cache_write: count(usage.cache_write_input_tokens),
            cache_write_1h: (written_1h > 0).then_some(written_1h),
            ..Usage::default()
        };
        self.usage.total_tokens = self.usage.prompt_tokens().saturating_add(self.usage.output);
    }

    fn outcome(&self) -> Result<StopReason, RequestError> {
        if !self.has_stopped {
            return Err(RequestError::cut_off("stream ended before messageStop"));
        }
        match self.stop_reason.as_deref() {
            Some("end_turn" | "stop_sequence") => Ok(StopReason::Stop),
            Some("max_tokens" | "model_context_window_exceeded") => Ok(StopReason::Length),
            Some("tool_use") => Ok(StopReason::ToolUse),
            Some(other) => Err(RequestError::of_stop_reason("stopReason", other, None)),
            None => Err(RequestError::cut_off("stream ended without a stopReason")),
        }
    }
}

/// Joins two contents; pieces of binary content are encoded separately.
fn join_base64(one: &str, other: &str) -> String {
    match (STANDARD.decode(one), STANDARD.decode(other)) {
        (Ok(mut bytes), Ok(more)) => {
            bytes.extend(more);
            STANDARD.encode(bytes)
        }
        _ => format!("{one}{other}"),
    }
}

impl Decode for Decoder {
    fn frame(&mut self, frame: &SseFrame<'_>, out: &mut Vec<StreamEvent>) -> Result<(), DecodeError> {
        match &*frame.event {
            kind @ ("contentBlockStart" | "contentBlockDelta" | "contentBlockStop" | "messageStop"
            | "metadata") => with_json(&frame.data, &mut String::new(), |event: Event<'_>| {
                self.event(kind, event, out);
                Ok(())
            }),
            // Some gateways send exceptions as events.
            kind if kind.ends_with("Exception") => Err(framing::exception(kind, &frame.data).into()),
            _ => Ok(()),
        }
    }

    fn is_complete(&self) -> bool {
        self.has_stopped && self.has_counts
    }

    fn finish(mut self: Box<Self>, end: End, out: &mut Vec<StreamEvent>) -> Finish {
        // A block without a stop event is incomplete, whatever it contains.
        self.blocks.end_all(false, out);
        let outcome = match end {
            End::Closed | End::Lost => self.outcome(),
            End::Cut => Err(RequestError::cut_off("stream interrupted")),
        };
        Finish {
            content: self.blocks.content,
            usage: self.usage,
            outcome,
            response_id: None,
            response_model: None,
            raw_stop_reason: self.stop_reason,
        }
    }
}
