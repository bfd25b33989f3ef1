//! Decodes a Responses stream.
//!
//! An answer is a list of items, each with an output index, which events
//! refer to. Item ids are not reliable: some gateways change an item's id in
//! every event. Deltas are shown as they arrive; the finished item is
//! authoritative.

use std::borrow::Cow;

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::super::{Blocks, Count, Decode, DecodeError, End, Finish, Str, filled, tier_factor, with_json};
use super::wire::{self, Event, TextSignature};
use crate::ai::failure::{ErrorBody, FailureClass, RequestError, classify};
use crate::ai::messages::{AssistantBlock, GrammarParameters, StopReason, StreamEvent, Usage, escaped};
use crate::ai::transport::SseFrame;

type ItemMap = Map<String, Value>;

pub(super) struct Decoder {
    asked_for: String,
    grammars: GrammarParameters,
    blocks: Blocks,
    items: Vec<OpenItem>,
    usage: Usage,
    response_id: Option<String>,
    response_model: Option<String>,
    service_tier: Option<String>,
    /// Set by the terminal event.
    status: Option<String>,
    incomplete_reason: Option<String>,
    error: Option<RequestError>,
}

/// An item that is shown, and its block.
struct OpenItem {
    output_index: u64,
    kind: Kind,
    slot: usize,
    /// The item's latest version: from its first event, later from its last.
    item: ItemMap,
    is_done: bool,
    /// Parts of the text in the order of their first appearance, with their full
    /// text once the server has sent it.
    parts: Vec<(PartId, Option<String>)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Message,
    Reasoning,
    Function,
    /// The input is text, which becomes the one argument.
    Custom,
}

impl Kind {
    fn of(item: &ItemMap) -> Option<Self> {
        match text_of(item, "type")? {
            "message" => Some(Self::Message),
            "reasoning" => Some(Self::Reasoning),
            "function_call" => Some(Self::Function),
            "custom_tool_call" => Some(Self::Custom),
            _ => None,
        }
    }
}

/// A part of an item's text: of the content, or of the summary of reasoning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PartId {
    Content(u64),
    Summary(u64),
}

impl Decoder {
    pub(super) fn new(asked_for: &str, grammars: GrammarParameters) -> Self {
        Self {
            asked_for: asked_for.to_owned(),
            grammars,
            blocks: Blocks::default(),
            items: Vec::new(),
            usage: Usage::default(),
            response_id: None,
            response_model: None,
            service_tier: None,
            status: None,
            incomplete_reason: None,
            error: None,
        }
    }

    fn event(
        &mut self,
        event: &Event<'_>,
        data: &str,
        out: &mut Vec<StreamEvent>,
    ) -> Result<(), DecodeError> {
        let place = event.output_index.map(|Count(index)| index);
        let content = PartId::Content(event.content_index.unwrap_or_default().0);
        let summary = PartId::Summary(event.summary_index.unwrap_or_default().0);
        match event.kind.as_str() {
            "response.output_text.delta" | "response.refusal.delta" => {
                self.piece(place, Kind::Message, content, event.delta, out);
            }
            "response.reasoning_summary_text.delta" => {
                self.piece(place, Kind::Reasoning, summary, event.delta, out);
            }
            "response.reasoning_text.delta" => {
                self.piece(place, Kind::Reasoning, content, event.delta, out);
            }
            "response.function_call_arguments.delta" => {
                self.piece(place, Kind::Function, content, event.delta, out);
            }
            "response.custom_tool_call_input.delta" => {
                self.piece(place, Kind::Custom, content, event.delta, out);
            }
            "response.output_text.done" => self.full(place, Kind::Message, content, event.text, out),
            "response.refusal.done" => self.full(place, Kind::Message, content, event.refusal, out),
            "response.reasoning_summary_text.done" => {
                self.full(place, Kind::Reasoning, summary, event.text, out);
            }
            "response.reasoning_text.done" => self.full(place, Kind::Reasoning, content, event.text, out),
            "response.function_call_arguments.done" => {
                self.full(place, Kind::Function, content, event.arguments, out);
            }
            "response.custom_tool_call_input.done" => {
                self.full(place, Kind::Custom, content, event.input, out);
            }
            "response.output_item.added" => {
                if let Some(item) = item_of(event.item) {
                    self.open(place, item, out);
                }
            }
            "response.output_item.done" => {
                if let Some(item) = item_of(event.item) {
                    self.item_done(place, item, out);
                }
            }
            "response.created" | "response.in_progress" | "response.queued" => {
                if let Some(response) = event.response {
                    self.named(&serde_json::from_str(response.get())?);
                }
            }
            "response.completed"
            | "response.done"
            | "response.incomplete"
            | "response.failed"
            | "response.cancelled" => {
                let fallback = event.kind.as_str().trim_start_matches("response.");
                let response = event.response.map_or("{}", RawValue::get);
                self.ended(serde_json::from_str(response)?, fallback, out);
            }
            "error" => self.error = Some(stream_error(data)),
            "" if event.error.is_some() => self.error = Some(stream_error(data)),
            _ => {}
        }
        Ok(())
    }

    /// The item in progress at `place`. Without an index, which some servers omit,
    /// it is the item that started last.
    fn in_progress(&self, place: Option<u64>) -> Option<usize> {
        let at_place = |item: &OpenItem| place.is_none_or(|place| place == item.output_index);
        self.items.iter().rposition(|item| !item.is_done && at_place(item))
    }

    fn open(&mut self, place: Option<u64>, item: ItemMap, out: &mut Vec<StreamEvent>) -> Option<usize> {
        let kind = Kind::of(&item)?;
        let slot = match kind {
            Kind::Message => self.blocks.start_text(out),
            Kind::Reasoning => self.blocks.start_thinking(out),
            Kind::Function | Kind::Custom => {
                let name = text_of(&item, "name").unwrap_or_default().to_owned();
                self.blocks.start_call(call_id(&item), name, out)
            }
        };
        let next = self.items.last().map_or(0, |last| last.output_index.saturating_add(1));
        let output_index = place.unwrap_or(next);
        self.items.push(OpenItem { output_index, kind, slot, item, is_done: false, parts: Vec::new() });
        Some(self.items.len() - 1)
    }

    /// Appends a piece of text to the item at `place`, if it is of this kind.
    fn piece(
        &mut self,
        place: Option<u64>,
        kind: Kind,
        part: PartId,
        text: Option<&RawValue>,
        out: &mut Vec<StreamEvent>,
    ) {
        let (Some(at), Some(text)) = (self.in_progress(place), text.and_then(string)) else { return };
        self.append(at, kind, part, text, out);
    }

    fn append(
        &mut self,
        at: usize,
        kind: Kind,
        part: PartId,
        text: Cow<'_, str>,
        out: &mut Vec<StreamEvent>,
    ) {
        let Some(item) = self.items.get_mut(at).filter(|item| item.kind == kind) else { return };
        if text.is_empty() {
            return;
        }
        let is_first = item.parts.is_empty();
        let is_new = !item.parts.iter().any(|(known, _)| *known == part);
        if is_new {
            item.parts.push((part, None));
        }
        match kind {
            Kind::Reasoning if is_new && !is_first => {
                self.blocks.push(item.slot, Cow::Borrowed("\n\n"), out);
                self.blocks.push(item.slot, text, out);
            }
            Kind::Custom => {
                let tool = text_of(&item.item, "name").unwrap_or_default();
                let start = if is_first { self.grammars.opening(tool) } else { String::new() };
                self.blocks.push(item.slot, Cow::Owned(start + &escaped(&text)), out);
            }
            Kind::Message | Kind::Reasoning | Kind::Function => self.blocks.push(item.slot, text, out),
        }
    }

    /// Sets the full text of a part, which takes precedence over its deltas.
    fn full(
        &mut self,
        place: Option<u64>,
        kind: Kind,
        part: PartId,
        text: Option<&RawValue>,
        out: &mut Vec<StreamEvent>,
    ) {
        let (Some(at), Some(text)) = (self.in_progress(place), text.and_then(string)) else { return };
        let is_known = |item: &OpenItem| item.parts.iter().any(|(known, _)| *known == part);
        if !self.items.get(at).is_some_and(is_known) {
            self.append(at, kind, part, Cow::Borrowed(&*text), out);
        }
        let Some(item) = self.items.get_mut(at).filter(|item| item.kind == kind) else { return };
        if let Some((_, whole)) = item.parts.iter_mut().find(|(known, _)| *known == part) {
            *whole = Some(text.into_owned());
        }
    }

    fn item_done(&mut self, place: Option<u64>, item: ItemMap, out: &mut Vec<StreamEvent>) {
        let Some(kind) = Kind::of(&item) else { return };
        let known = self.in_progress(place).filter(|at| self.items[*at].kind == kind);
        let at = match known {
            Some(at) => at,
            None if self.is_repeated(place, &item) => return,
            None => match self.open(place, item.clone(), out) {
                Some(at) => at,
                None => return,
            },
        };
        let open = &mut self.items[at];
        open.is_done = true;
        // Keep fields that only the start of the item contained.
        for (key, value) in item {
            open.item.insert(key, value);
        }
        self.settle(at);
        let open = &self.items[at];
        match open.kind {
            // The last event of the stream may still contain the encrypted form.
            Kind::Reasoning if text_of(&open.item, "encrypted_content").is_none() => {}
            Kind::Message | Kind::Reasoning => self.blocks.end(open.slot, out),
            Kind::Function | Kind::Custom => {
                // The server reports if it stopped in the middle of a call.
                let is_whole = text_of(&open.item, "status").is_none_or(|status| status == "completed");
                self.blocks.end_as(open.slot, is_whole, out);
            }
        }
    }

    /// Whether the same item has already finished.
    fn is_repeated(&self, place: Option<u64>, item: &ItemMap) -> bool {
        let same = |known: &OpenItem, key: &str| text_of(&known.item, key) == text_of(item, key);
        self.items.iter().any(|known| {
            known.is_done
                && place.is_some_and(|place| place == known.output_index)
                && same(known, "type")
                && (same(known, "id") || (item.contains_key("call_id") && same(known, "call_id")))
        })
    }

    /// Copies the contents of an item into its block.
    fn settle(&mut self, at: usize) {
        let OpenItem { kind, slot, item, is_done, parts, .. } = &self.items[at];
        let (kind, slot) = (*kind, *slot);
        let said = match kind {
            Kind::Message => texts(item, "content", &["text", "refusal"], ""),
            Kind::Reasoning => texts(item, "summary", &["text"], "\n\n")
                .or_else(|| texts(item, "content", &["text"], "\n\n")),
            Kind::Function => arguments_of(item),
            Kind::Custom => text_of(item, "input").map(str::to_owned),
        };
        let separator = if kind == Kind::Reasoning { "\n\n" } else { "" };
        let whole = said.filter(|_| *is_done).or_else(|| {
            let parts: Option<Vec<&str>> = parts.iter().map(|(_, whole)| whole.as_deref()).collect();
            parts.filter(|parts| !parts.is_empty()).map(|parts| parts.join(separator))
        });
        match kind {
            Kind::Custom => {
                let tool = text_of(item, "name").unwrap_or_default();
                let whole = whole.or_else(|| is_done.then(String::new));
                self.blocks.replace(slot, whole.map(|input| self.grammars.arguments(tool, &input)));
            }
            Kind::Message | Kind::Reasoning | Kind::Function => self.blocks.replace(slot, whole),
        }
        match self.blocks.content.get_mut(slot) {
            Some(AssistantBlock::Text(text)) => {
                let phase = text_of(item, "phase").map(str::to_owned);
                text.text_signature = text_of(item, "id").and_then(|id| {
                    let signature = TextSignature { v: TextSignature::VERSION, id: id.to_owned(), phase };
                    serde_json::to_string(&signature).ok()
                });
            }
            // Unfinished items must not be sent back.
            Some(AssistantBlock::Thinking(thinking)) if *is_done => {
                thinking.thinking_signature = serde_json::to_string(item).ok();
            }
            Some(AssistantBlock::ToolCall(call)) => {
                call.id = call_id(item);
                text_of(item, "name").unwrap_or_default().clone_into(&mut call.name);
            }
            Some(AssistantBlock::Thinking(_) | AssistantBlock::Unknown(_)) | None => {}
        }
    }

    fn named(&mut self, response: &wire::Response<'_>) {
        if let Some(id) = filled(response.id.as_ref()) {
            self.response_id = Some(id.to_owned());
        }
        if let Some(model) = filled(response.model.as_ref()) {
            self.response_model = Some(model.to_owned());
        }
    }

    fn ended(&mut self, response: wire::Response<'_>, fallback: &str, out: &mut Vec<StreamEvent>) {
        self.named(&response);
        self.service_tier = filled(response.service_tier.as_ref()).map(str::to_owned);
        if let Some(usage) = &response.usage {
            self.usage = usage_of(usage);
        }
        let output = response.output.and_then(|output| serde_json::from_str(output.get()).ok());
        self.backfill(output.unwrap_or_default(), out);
        let status = filled(response.status.as_ref()).unwrap_or(fallback);
        // `response.done` ends a stream, whatever status it contains.
        let status = if matches!(status, "done" | "in_progress" | "queued") { "completed" } else { status };
        if status == "failed" {
            let said = response.error.as_ref().filter(|error| !error.is_null());
            let text = said.map(reported);
            self.error = text.or(self.error.take()).or_else(|| {
                Some("unknown: the response failed, and the server does not say why".to_owned().into())
            });
        }
        let reason = response.incomplete_details.as_ref().and_then(|details| details.get("reason"));
        self.incomplete_reason = reason.and_then(Value::as_str).map(str::to_owned);
        self.status = Some(status.to_owned());
    }

    /// Adds from the final output what the item events lacked: the
    /// encrypted form of reasoning, or everything if no item was announced.
    fn backfill(&mut self, output: Vec<Value>, out: &mut Vec<StreamEvent>) {
        let items = output.into_iter().map(|item| match item {
            Value::Object(item) => item,
            _ => ItemMap::new(),
        });
        if self.items.is_empty() {
            for item in items {
                let place = self.items.len() as u64;
                if matches!(Kind::of(&item), Some(Kind::Message | Kind::Reasoning)) {
                    self.item_done(Some(place), item, out);
                } else {
                    // A call that was never announced as finished must not run.
                    self.open(Some(place), item, out);
                }
            }
            return;
        }
        for (place, item) in items.enumerate() {
            let Some(encrypted) = text_of(&item, "encrypted_content") else { continue };
            let lacks = |known: &OpenItem| {
                known.kind == Kind::Reasoning
                    && known.is_done
                    && text_of(&known.item, "encrypted_content").is_none()
            };
            let same_id = |known: &&mut OpenItem| text_of(&known.item, "id") == text_of(&item, "id");
            let same_place = |known: &&mut OpenItem| known.output_index == place as u64;
            let mut lacking = self.items.iter_mut().filter(|known| lacks(known));
            let found = match lacking.find(same_id) {
                Some(known) => Some(known),
                None => self.items.iter_mut().filter(|known| lacks(known)).find(same_place),
            };
            if let Some(known) = found {
                known.item.insert("encrypted_content".to_owned(), Value::from(encrypted));
            }
        }
    }

    fn outcome(&self) -> Result<StopReason, RequestError> {
        let reason = self.incomplete_reason.as_deref();
        match (self.status.as_deref(), &self.error) {
            (_, Some(error)) => Err(error.clone()),
            (Some("completed"), None) if self.blocks.has_calls() => Ok(StopReason::ToolUse),
            (Some("completed"), None) => Ok(StopReason::Stop),
            (Some("incomplete"), None) if reason == Some("max_output_tokens") => Ok(StopReason::Length),
            (Some("incomplete"), None) => {
                let reason = reason.unwrap_or("no reason given");
                Err(RequestError::of_stop_reason("incomplete", reason, None))
            }
            (Some(other), None) => Err(format!("status: {other}").into()),
            (None, None) => Err(RequestError::cut_off("stream ended before a terminal response event")),
        }
    }
}

impl Decode for Decoder {
    fn frame(&mut self, frame: &SseFrame<'_>, out: &mut Vec<StreamEvent>) -> Result<(), DecodeError> {
        // Some gateways end the stream like Chat Completions.
        if self.status.is_some() || frame.data.trim() == "[DONE]" {
            return Ok(());
        }
        with_json(&frame.data, &mut String::new(), |mut event: Event<'_>| {
            if event.kind.as_str().is_empty() && frame.event == "error" {
                event.kind = Str(Cow::Borrowed("error"));
            }
            self.event(&event, &frame.data, out)
        })
    }

    /// A failed response may follow an error, but it adds nothing.
    fn is_complete(&self) -> bool {
        self.status.is_some() || self.error.is_some()
    }

    fn price_factor(&self) -> f64 {
        tier_factor(self.service_tier.as_deref(), &self.asked_for)
    }

    fn finish(mut self: Box<Self>, end: End, out: &mut Vec<StreamEvent>) -> Finish {
        for at in 0..self.items.len() {
            let open = &self.items[at];
            let (slot, is_done) = (open.slot, open.is_done);
            if self.blocks.is_open(slot) {
                self.settle(at);
                self.blocks.end_as(slot, is_done, out);
            }
        }
        let outcome = match end {
            End::Closed | End::Lost => self.outcome(),
            End::Cut => Err(RequestError::cut_off("stream interrupted")),
        };
        let asked_for = self.asked_for;
        let raw_stop_reason = match (self.status, self.incomplete_reason) {
            (Some(status), Some(reason)) => Some(format!("{status}.{reason}")),
            (status, _) => status,
        };
        Finish {
            content: self.blocks.content,
            usage: self.usage,
            outcome,
            response_id: self.response_id,
            response_model: self.response_model.filter(|model| *model != asked_for),
            raw_stop_reason,
        }
    }
}

/// A member that is a non-empty string.
fn text_of<'a>(item: &'a ItemMap, key: &str) -> Option<&'a str> {
    item.get(key).and_then(Value::as_str).filter(|text| !text.is_empty())
}

fn item_of(raw: Option<&RawValue>) -> Option<ItemMap> {
    serde_json::from_str(raw?.get()).ok()
}

fn string(raw: &RawValue) -> Option<Cow<'_, str>> {
    serde_json::from_str::<Str<'_>>(raw.get()).ok().map(|Str(text)| text)
}

/// Both ids of a call, in the form of blocks.
fn call_id(item: &ItemMap) -> String {
    match (text_of(item, "call_id"), text_of(item, "id")) {
        (Some(call), Some(item)) => format!("{call}|{item}"),
        (Some(id), None) | (None, Some(id)) => id.to_owned(),
        (None, None) => String::new(),
    }
}

/// The argument text of a call; some servers send the object instead.
fn arguments_of(item: &ItemMap) -> Option<String> {
    match item.get("arguments")? {
        Value::String(text) => Some(text.clone()).filter(|text| !text.is_empty()),
        Value::Null => None,
        other => Some(other.to_string()),
    }
}

/// The texts in the list `key`; `None` if there are none.
fn texts(item: &ItemMap, key: &str, members: &[&str], separator: &str) -> Option<String> {
    let parts = item.get(key)?.as_array()?;
    let texts = parts.iter().filter_map(|part| members.iter().find_map(|name| part.get(*name)?.as_str()));
    let texts: Vec<&str> = texts.collect();
    Some(texts.join(separator)).filter(|text| !text.is_empty())
}

/// The text of an `error` event, whose fields are at the top level, as documented, or nested, as sent.
pub(super) fn stream_error(data: &str) -> RequestError {
    let Ok(event) = serde_json::from_str::<Value>(data) else {
        return ErrorBody::from_text(data).into_error(None);
    };
    match event.get("error") {
        Some(error) if !error.is_null() => reported(error),
        _ => reported(&event),
    }
}

fn reported(error: &Value) -> RequestError {
    let body = ErrorBody::from_json(&json!({"error": error}));
    let mut body = body.unwrap_or_else(|| ErrorBody { message: error.to_string(), ..ErrorBody::default() });
    // The type is too coarse to name the error, but it may be the only hint
    // about whether to retry.
    if error.get("code").is_some_and(Value::is_null) {
        let kind = body.code.replace("unknown".to_owned());
        let tells = |text: &str| classify(text, None) != FailureClass::Unknown;
        let telling = kind.filter(|kind| tells(kind) && !tells(&body.message));
        body.notes.extend(telling.clone());
        body.kinds.extend(telling);
    }
    body.into_error(None)
}

fn usage_of(wire: &wire::Usage<'_>) -> Usage {
    let count = |count: Option<Count>| count.unwrap_or_default().0;
    let input = wire.input_tokens_details.as_ref();
    let cache_read = count(input.and_then(|details| details.cached_tokens));
    let cache_write = count(input.and_then(|details| details.cache_write_tokens));
    let reasoning = wire.output_tokens_details.as_ref().and_then(|details| details.reasoning_tokens);
    let mut usage = Usage {
        input: count(wire.input_tokens).saturating_sub(cache_read).saturating_sub(cache_write),
        output: count(wire.output_tokens),
        cache_read,
        cache_write,
        reasoning: reasoning.map(|Count(tokens)| tokens),
        ..Usage::default()
    };
    let sum = usage.prompt_tokens().saturating_add(usage.output);
    usage.total_tokens = wire.total_tokens.map_or(sum, |Count(total)| total);
    if let Some(cost) = wire.cost.and_then(|cost| cost.get().trim_matches('"').parse::<f64>().ok()) {
        let upstream = wire.cost_details.as_ref().and_then(|details| details.upstream_inference_cost);
        // With the user's own key, the provider bills separately from OpenRouter.
        let own_key = wire.is_byok == Some(true);
        usage.cost.total = cost + upstream.filter(|_| own_key).unwrap_or(0.0);
        usage.cost.total_from_provider = Some(true);
    }
    usage
}
