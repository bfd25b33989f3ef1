//! Decodes a Chat Completions stream.
//!
//! An answer is one thinking block, one text block and the calls, in the order
//! of their first appearance. The API does not mark boundaries between them, so all
//! stay open until the end.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::super::{
    Blocks, Count, Decode, DecodeError, End, Finish, Joint, Str, TextPiece, UsageCount, billed_cost,
    error_of, filled, outcome_of, reported_error, tier_factor, with_json, without_signs,
};
use super::wire::{self, Choice, Chunk, ContentChunk, Delta, DeltaContent, FunctionDelta, ToolCallDelta};
use crate::ai::failure::{RequestError, normalised};
use crate::ai::messages::{GrammarParameters, StopReason, StreamEvent, Usage, escaped, partial_json};
use crate::ai::transport::SseFrame;

pub(super) struct Decoder {
    asked_for: String,
    supports_finish_reason: bool,
    /// Makes generated ids of calls unique in the session.
    call_seed: u64,
    grammars: GrammarParameters,
    blocks: Blocks,
    thinking: Option<usize>,
    text: Option<usize>,
    calls: Vec<Call>,
    reasoning_field: Option<&'static str>,
    reasoning_details: Vec<Map<String, Value>>,
    /// Joins the pieces of the last detail.
    detail_joint: Joint,
    usage: UsageCount,
    response_id: Option<String>,
    response_model: Option<String>,
    finish_reason: Option<String>,
    /// The processing tier of the answer.
    service_tier: Option<String>,
    /// Deltas have brought content, so that no other form of the answer counts.
    has_deltas: bool,
    is_done: bool,
}

/// A call being assembled.
struct Call {
    wire_index: Option<u64>,
    id: String,
    name: String,
    /// The index of its block, once the name is known.
    slot: Option<usize>,
    /// Arguments that arrived before the name.
    early: Vec<String>,
    /// The input is text, which becomes its one argument.
    is_custom: bool,
}

impl Decoder {
    /// `sent_bytes` is the size of the text in the request.
    pub(super) fn new(
        asked_for: &str,
        supports_finish_reason: bool,
        call_seed: u64,
        grammars: GrammarParameters,
        sent_bytes: usize,
    ) -> Self {
        Self {
            asked_for: asked_for.to_owned(),
            supports_finish_reason,
            call_seed,
            grammars,
            blocks: Blocks::default(),
            thinking: None,
            text: None,
            calls: Vec::new(),
            reasoning_field: None,
            reasoning_details: Vec::new(),
            detail_joint: Joint::default(),
            usage: UsageCount::new(sent_bytes),
            response_id: None,
            response_model: None,
            finish_reason: None,
            service_tier: None,
            has_deltas: false,
            is_done: false,
        }
    }

    fn chunk(&mut self, chunk: Chunk<'_>, out: &mut Vec<StreamEvent>) -> Result<(), DecodeError> {
        if self.response_id.is_none() {
            self.response_id = filled(chunk.id.as_ref()).map(str::to_owned);
        }
        if self.response_model.is_none() {
            self.response_model = filled(chunk.model.as_ref()).map(str::to_owned);
        }
        // Only the first candidate counts; pi never requests more.
        for choice in
            chunk.choices.into_iter().flatten().filter(|choice| choice.index.unwrap_or_default().0 == 0)
        {
            self.choice(choice, out);
        }
        let (groq_usage, groq_error) = chunk.x_groq.map_or((None, None), |extra| (extra.usage, extra.error));
        if let Some(usage) = chunk.usage.or(groq_usage) {
            self.usage.update(usage_of(&usage));
        }
        if let Some(Str(tier)) = chunk.service_tier {
            self.service_tier = Some(tier.into_owned());
        }
        match groq_error {
            Some(error) => Err(error_of(&format!("{{\"error\":{error}}}"))),
            None => Ok(()),
        }
    }

    fn choice(&mut self, choice: Choice<'_>, out: &mut Vec<StreamEvent>) {
        if let Some(usage) = &choice.usage {
            self.usage.update(usage_of(usage));
        }
        if let Some(delta) = choice.delta {
            self.delta(delta, out);
            self.has_deltas |= !self.blocks.content.is_empty() || !self.calls.is_empty();
        }
        // Some servers repeat the answer in another form.
        if !self.has_deltas {
            if let Some(TextPiece(text)) = choice.text {
                self.say(text, out);
            }
            if let Some(message) = choice.message.filter(|_| self.blocks.content.is_empty()) {
                self.delta(message, out);
            }
        }
        let reason = filled(choice.finish_reason.as_ref()).filter(|reason| *reason != "null");
        if let Some(reason) = reason {
            self.finish_reason = Some(reason.to_owned());
        }
    }

    fn delta(&mut self, delta: Delta<'_>, out: &mut Vec<StreamEvent>) {
        // Some servers send the reasoning under two names; the first one is used.
        let named = [
            ("reasoning_content", delta.reasoning_content),
            ("reasoning", delta.reasoning),
            ("reasoning_text", delta.reasoning_text),
        ];
        let reasoning = named
            .into_iter()
            .find_map(|(field, text)| text.filter(|text| !text.is_empty()).map(|text| (field, text)));
        let has_reasoning = reasoning.is_some();
        if let Some((field, TextPiece(text))) = reasoning {
            self.reasoning_field.get_or_insert(field);
            self.think(text, out);
        }
        for detail in delta.reasoning_details.into_iter().flatten() {
            self.reasoning_detail(detail, has_reasoning, out);
        }
        match delta.content {
            Some(DeltaContent::Text(text)) => self.say(text, out),
            Some(DeltaContent::Chunks(chunks)) => self.content_chunks(chunks, out),
            None => {}
        }
        if let Some(TextPiece(refusal)) = delta.refusal {
            self.say(refusal, out);
        }
        for call in delta.tool_calls.into_iter().flatten() {
            self.tool_call(call, out);
        }
        if let Some(function) = delta.function_call {
            self.tool_call(ToolCallDelta::of_function(function), out);
        }
    }

    fn think(&mut self, text: Cow<'_, str>, out: &mut Vec<StreamEvent>) {
        if !text.is_empty() {
            let slot = *self.thinking.get_or_insert_with(|| self.blocks.start_thinking(out));
            self.blocks.push(slot, text, out);
        }
    }

    fn say(&mut self, text: Cow<'_, str>, out: &mut Vec<StreamEvent>) {
        if !text.is_empty() {
            let slot = *self.text.get_or_insert_with(|| self.blocks.start_text(out));
            self.blocks.push(slot, text, out);
        }
    }

    fn content_chunks(&mut self, chunks: Vec<ContentChunk<'_>>, out: &mut Vec<StreamEvent>) {
        for chunk in chunks {
            match chunk.thinking {
                Some(DeltaContent::Text(text)) => {
                    self.reasoning_field.get_or_insert("content");
                    self.think(text, out);
                }
                Some(DeltaContent::Chunks(parts)) => {
                    self.reasoning_field.get_or_insert("content");
                    for TextPiece(text) in parts.into_iter().filter_map(|part| part.text) {
                        self.think(text, out);
                    }
                }
                None => {}
            }
            if let Some(TextPiece(text)) = chunk.text {
                self.say(text, out);
            }
        }
    }

    /// Stores a detail for later requests. Its text is shown only if the delta has no
    /// reasoning string, which would contain the same text.
    fn reasoning_detail(&mut self, mut detail: Map<String, Value>, shown: bool, out: &mut Vec<StreamEvent>) {
        let kind = detail.get("type").and_then(Value::as_str).unwrap_or_default();
        let text_key = match kind {
            "reasoning.text" => Some("text"),
            "reasoning.summary" => Some("summary"),
            _ => None,
        };
        let text = text_key.and_then(|key| detail.get(key)).and_then(Value::as_str).unwrap_or_default();
        if !shown {
            self.think(Cow::Owned(text.to_owned()), out);
        }
        // An encrypted detail creates a block even though it shows no text.
        if text_key.is_none() && self.thinking.is_none() {
            self.thinking = Some(self.blocks.start_thinking(out));
        }
        let continues = |last: &&mut Map<String, Value>| {
            let same = |key: &str| match (last.get(key), detail.get(key)) {
                (Some(a), Some(b)) => a == b || a.is_null() || b.is_null(),
                _ => true,
            };
            last.get("type") == detail.get("type") && same("index") && same("id")
        };
        let last = self.reasoning_details.last_mut().filter(|last| text_key.is_some() && continues(last));
        let Some(last) = last else {
            self.end_detail();
            if let Some(Value::String(text)) = text_key.and_then(|key| detail.get_mut(key)) {
                *text = self.detail_joint.add(Cow::Borrowed(&**text)).into_owned();
            }
            self.reasoning_details.push(detail);
            return;
        };
        for (key, value) in detail {
            match last.get_mut(&key) {
                Some(Value::String(known)) if Some(key.as_str()) == text_key => {
                    let more = value.as_str().unwrap_or_default();
                    known.push_str(&self.detail_joint.add(Cow::Borrowed(more)));
                }
                Some(known) if !known.is_null() && *known != "" => {}
                _ => {
                    last.insert(key, value);
                }
            }
        }
    }

    /// Ends the text of the last detail, which may wait for half of a character.
    fn end_detail(&mut self) {
        let Some(half) = self.detail_joint.end() else { return };
        let Some(last) = self.reasoning_details.last_mut() else { return };
        for key in ["text", "summary"] {
            if let Some(Value::String(text)) = last.get_mut(key) {
                text.push_str(half);
                return;
            }
        }
    }

    fn tool_call(&mut self, delta: ToolCallDelta<'_>, out: &mut Vec<StreamEvent>) {
        let wire_index = delta.index.map(|Count(index)| index);
        let id = filled(delta.id.as_ref()).filter(|id| *id != "null").unwrap_or_default();
        let (name, arguments) = match delta.function {
            Some(function) => (function.name, function.arguments),
            None => (delta.name, delta.arguments),
        };
        let mut arguments = arguments.map_or(Cow::Borrowed(""), |arguments| argument_text(arguments.get()));
        let is_custom = delta.custom.is_some();
        let name = match delta.custom {
            Some(custom) => {
                let text = custom.input.unwrap_or_default();
                arguments = Cow::Owned(escaped(&text.0));
                custom.name
            }
            None => name,
        };
        let name = filled(name.as_ref()).unwrap_or_default();

        let at = self.call_of(wire_index, id, name, &arguments).unwrap_or_else(|| {
            self.calls.push(Call {
                wire_index,
                id: id.to_owned(),
                name: String::new(),
                slot: None,
                early: Vec::new(),
                is_custom,
            });
            self.calls.len() - 1
        });
        let call = &mut self.calls[at];
        if call.id.is_empty() && call.slot.is_none() {
            id.clone_into(&mut call.id);
        }
        if call.name.is_empty() {
            name.clone_into(&mut call.name);
        }
        if call.slot.is_none() && call.name.is_empty() {
            call.early.push(arguments.into_owned());
            return;
        }
        let slot = self.open_call(at, out);
        self.blocks.push(slot, arguments, out);
    }

    /// The call a fragment belongs to: by index, otherwise by id, otherwise the last one.
    fn call_of(&self, wire_index: Option<u64>, id: &str, name: &str, arguments: &str) -> Option<usize> {
        let Some(wire_index) = wire_index else {
            return match (id, name) {
                ("", "") => self.calls.len().checked_sub(1),
                // Servers without index and id send each call in one piece.
                ("", _) => None,
                (id, _) => self.calls.iter().rposition(|call| call.id == id),
            };
        };
        let at = self.calls.iter().rposition(|call| call.wire_index == Some(wire_index))?;
        let call = &self.calls[at];
        // Some servers number all parallel calls 0. A new id with a name starts
        // a call; a new id without a name comes from a server that changes ids per fragment.
        let other_id = !id.is_empty() && !call.id.is_empty() && id != call.id && !name.is_empty();
        let begun_again = id.is_empty() && call.id.is_empty() && !name.is_empty() && !arguments.is_empty();
        let is_whole = || {
            let known = call.slot.map_or("", |slot| self.blocks.arguments(slot));
            !known.is_empty() && partial_json::parse_strict(known).is_ok()
        };
        let is_new = other_id || (begun_again && is_whole());
        (!is_new).then_some(at)
    }

    /// The block of a call, opened on first use.
    fn open_call(&mut self, at: usize, out: &mut Vec<StreamEvent>) -> usize {
        let call = &mut self.calls[at];
        if let Some(slot) = call.slot {
            return slot;
        }
        let id = match call.id.as_str() {
            "" => format!("call_{}_{at}", self.call_seed),
            id => id.to_owned(),
        };
        let slot = self.blocks.start_call(id, call.name.clone(), out);
        call.slot = Some(slot);
        let early = std::mem::take(&mut call.early);
        if call.is_custom {
            let opening = self.grammars.opening(&call.name);
            self.blocks.push(slot, Cow::Owned(opening), out);
        }
        for piece in early {
            self.blocks.push(slot, Cow::Owned(piece), out);
        }
        slot
    }

    /// Stores the data to send back with the thinking: the details, otherwise the field's name.
    fn sign_thinking(&mut self) {
        self.end_detail();
        for detail in &mut self.reasoning_details {
            if detail.get("signature").is_some_and(|signature| *signature == "") {
                detail.shift_remove("signature");
            }
        }
        let Some(thinking) = self.thinking.and_then(|slot| self.blocks.thinking_mut(slot)) else { return };
        thinking.thinking_signature = if self.reasoning_details.is_empty() {
            self.reasoning_field.map(str::to_owned)
        } else {
            serde_json::to_string(&self.reasoning_details).ok()
        };
    }

    fn outcome(&self, end: End) -> Result<StopReason, RequestError> {
        let has_calls = self.blocks.has_calls();
        match self.finish_reason.as_deref() {
            Some(_) if self.blocks.has_unnamed_call() => Err(RequestError::unnamed_call()),
            // z.ai reports a conversation without room for an answer.
            Some(reason) if normalised(reason) == "modelcontextwindowexceeded" => {
                Err(RequestError::of_stop_reason("finish_reason", reason, None))
            }
            Some(reason) => outcome_of("finish_reason", reason, has_calls, None),
            // Such a server ends a stream without a reason; an empty answer is still an error.
            None if !self.supports_finish_reason
                && (self.is_done || (end == End::Closed && !self.blocks.content.is_empty())) =>
            {
                Ok(if has_calls { StopReason::ToolUse } else { StopReason::Stop })
            }
            None => Err(RequestError::cut_off("stream ended before a finish_reason")),
        }
    }
}

impl Decode for Decoder {
    fn frame(&mut self, frame: &SseFrame<'_>, out: &mut Vec<StreamEvent>) -> Result<(), DecodeError> {
        if self.is_done {
            return Ok(());
        }
        if frame.data.trim() == "[DONE]" {
            self.is_done = true;
            return Ok(());
        }
        with_json(&frame.data, &mut String::new(), |chunk: Chunk<'_>| {
            if chunk.error.is_some() {
                // Other content of the same chunk still counts.
                self.chunk(chunk, out)?;
                return Err(error_of(&frame.data));
            }
            let says_nothing = chunk.choices.is_none() && chunk.usage.is_none() && chunk.x_groq.is_none();
            if (says_nothing || frame.event == "error")
                && let Some(error) = reported_error(&frame.data)
            {
                return Err(error);
            }
            self.chunk(chunk, out)
        })
    }

    fn is_complete(&self) -> bool {
        self.is_done
    }

    fn price_factor(&self) -> f64 {
        tier_factor(self.service_tier.as_deref(), &self.asked_for)
    }

    fn finish(mut self: Box<Self>, end: End, out: &mut Vec<StreamEvent>) -> Finish {
        for at in 0..self.calls.len() {
            self.open_call(at, out);
        }
        self.sign_thinking();
        let outcome = match end {
            End::Closed | End::Lost => self.outcome(end),
            End::Cut => Err(RequestError::cut_off("stream interrupted")),
        };
        // A truncated text looks complete, so the input stays unfinished in other cases.
        if matches!(outcome, Ok(StopReason::Stop | StopReason::ToolUse)) {
            for slot in self.calls.iter().filter(|call| call.is_custom).filter_map(|call| call.slot) {
                self.blocks.push(slot, Cow::Borrowed("\"}"), out);
            }
        }
        self.blocks.end_all(outcome.is_ok(), out);
        Finish {
            content: self.blocks.content,
            usage: self.usage.finish(),
            outcome,
            response_id: self.response_id,
            response_model: self.response_model.filter(|model| *model != self.asked_for),
            raw_stop_reason: self.finish_reason,
            diagnostics: Vec::new(),
        }
    }
}

impl<'a> ToolCallDelta<'a> {
    /// The older form of a call as one of the newer form. A server may repeat its name.
    fn of_function(function: FunctionDelta<'a>) -> Self {
        let index = Some(Count(u64::MAX));
        Self { index, id: None, function: Some(function), custom: None, name: None, arguments: None }
    }
}

/// The JSON text in `raw`: the content of a string, otherwise `raw` itself.
fn argument_text(raw: &str) -> Cow<'_, str> {
    if raw == "null" {
        return Cow::Borrowed("");
    }
    match serde_json::from_str::<TextPiece<'_>>(raw) {
        Ok(TextPiece(text)) => text,
        Err(_) => without_signs(raw),
    }
}

fn usage_of(wire: &wire::Usage<'_>) -> Usage {
    let count = |count: Option<Count>| count.unwrap_or_default().0;
    let details = wire.prompt_tokens_details.as_ref();
    let cache_read = details
        .and_then(|details| details.cached_tokens)
        .or(wire.prompt_cache_hit_tokens)
        .or(wire.cached_tokens)
        .or(wire.num_cached_tokens);
    let cache_read = count(cache_read);
    let cache_write = count(details.and_then(|details| details.cache_write_tokens));
    let prompt = count(wire.prompt_tokens);
    let details = wire.completion_tokens_details.as_ref();
    let reasoning = details.and_then(|details| details.reasoning_tokens).or(wire.reasoning_tokens);
    let mut output = count(wire.completion_tokens);
    // xAI does not include reasoning in the output count, as the total shows.
    let with_reasoning = output.saturating_add(count(reasoning));
    if with_reasoning > output && count(wire.total_tokens) == prompt.saturating_add(with_reasoning) {
        output = with_reasoning;
    }
    let mut usage = Usage {
        input: prompt.saturating_sub(cache_read).saturating_sub(cache_write),
        output,
        cache_read,
        cache_write,
        reasoning: reasoning.map(|Count(tokens)| tokens),
        ..Usage::default()
    };
    usage.total_tokens = usage.prompt_tokens().saturating_add(output);
    let upstream = wire.cost_details.as_ref().and_then(|details| details.upstream_inference_cost);
    // With the user's own key, the provider bills separately from OpenRouter.
    let own_key = wire.is_byok == Some(true);
    if let Some(cost) = billed_cost(wire.cost, upstream.filter(|_| own_key)) {
        usage.cost.total = cost;
        usage.cost.total_from_provider = Some(true);
    }
    usage
}
