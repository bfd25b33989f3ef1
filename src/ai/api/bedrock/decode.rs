//! Decodes the events of a `ConverseStream`.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::super::{
    Blocks, Count, Decode, DecodeError, End, Finish, UsageCount, filled, outcome_of, with_json,
};
use super::wire::{self, Delta, Event, ReasoningDelta};
use crate::ai::failure::RequestError;
use crate::ai::messages::{StopReason, StreamEvent, Usage};
use crate::ai::transport::{SseFrame, framing};

pub(super) struct Decoder {
    blocks: Blocks,
    /// The blocks the server has open, by its index.
    open: Vec<OpenBlock>,
    usage: UsageCount,
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
    /// `sent_bytes` is the size of the text in the request.
    pub(super) fn new(sent_bytes: usize) -> Self {
        Self {
            blocks: Blocks::default(),
            open: Vec::new(),
            usage: UsageCount::new(sent_bytes),
            stop_reason: None,
            has_stopped: false,
            has_counts: false,
        }
    }

    fn event(&mut self, kind: &str, event: Event<'_>, out: &mut Vec<StreamEvent>) -> Result<(), DecodeError> {
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
                    self.block_delta(wire_index, delta, out)?;
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
        Ok(())
    }

    fn block_delta(
        &mut self,
        wire_index: u64,
        delta: Delta<'_>,
        out: &mut Vec<StreamEvent>,
    ) -> Result<(), DecodeError> {
        if let Some(text) = delta.text {
            self.push(wire_index, Kind::Text, text.0, out);
        }
        let input = delta.tool_use.and_then(|call| call.input).filter(|input| !input.is_empty());
        if let Some(input) = input {
            let slot = self.find_open(wire_index, Kind::Call).ok_or_else(RequestError::unnamed_call)?;
            self.blocks.push(slot, input.0, out);
        }
        if let Some(reasoning) = delta.reasoning_content {
            self.reasoning_delta(wire_index, reasoning, out);
        }
        Ok(())
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

    /// Closes the block that another one replaces. Of a call without its own stop event the end of
    /// the message decides whether it is complete.
    fn end_open(&mut self, wire_index: u64, out: &mut Vec<StreamEvent>) {
        if let Some(open) = self.take_open(wire_index).filter(|open| open.kind != Kind::Call) {
            self.blocks.end(open.slot, out);
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
        self.usage.update(Usage {
            input: count(usage.input_tokens),
            output: count(usage.output_tokens),
            cache_read: count(usage.cache_read_input_tokens),
            cache_write: count(usage.cache_write_input_tokens),
            cache_write_1h: (written_1h > 0).then_some(written_1h),
            ..Usage::default()
        });
    }

    fn outcome(&self) -> Result<StopReason, RequestError> {
        if !self.has_stopped {
            return Err(RequestError::cut_off("stream ended before messageStop"));
        }
        let Some(reason) = self.stop_reason.as_deref() else {
            return Err(RequestError::cut_off("stream ended without a stopReason"));
        };
        if self.blocks.has_unnamed_call() {
            return Err(RequestError::unnamed_call());
        }
        outcome_of("stopReason", reason, self.blocks.has_calls(), None)
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
            | "metadata") => {
                with_json(&frame.data, &mut String::new(), |event: Event<'_>| self.event(kind, event, out))
            }
            // Some gateways send exceptions as events.
            kind if kind.ends_with("Exception") => Err(framing::exception(kind, &frame.data).into()),
            _ => Ok(()),
        }
    }

    fn is_complete(&self) -> bool {
        self.has_stopped && self.has_counts
    }

    fn finish(mut self: Box<Self>, end: End, out: &mut Vec<StreamEvent>) -> Finish {
        let outcome = match end {
            End::Closed | End::Lost => self.outcome(),
            End::Cut => Err(RequestError::cut_off("stream interrupted")),
        };
        // The end of the message closes what is open; without it a call is incomplete.
        let is_whole = matches!(outcome, Ok(StopReason::Stop | StopReason::ToolUse));
        self.blocks.end_all(is_whole, out);
        Finish {
            content: self.blocks.content,
            usage: self.usage.finish(),
            outcome,
            response_id: None,
            response_model: None,
            raw_stop_reason: self.stop_reason,
            diagnostics: Vec::new(),
        }
    }
}
