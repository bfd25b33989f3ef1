//! Decodes a Responses stream.
//!
//! An answer is a list of items, each with an output index and an id, which events
//! refer to. Item ids are not reliable: some gateways change an item's id in
//! every event, so the index comes first; others send only the id, or leave out the
//! events around the text. Deltas are shown as they arrive; the finished item is
//! authoritative.

use std::borrow::Cow;

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::super::{
    Blocks, Count, Decode, DecodeError, End, Finish, ReportedEnd, Str, TextPiece, UsageCount, billed_cost,
    filled, reported_end, tier_factor, with_json, without_signs,
};
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
    usage: UsageCount,
    response_id: Option<String>,
    response_model: Option<String>,
    service_tier: Option<String>,
    /// Set by the terminal event.
    status: Option<String>,
    incomplete_reason: Option<String>,
    transformations: Vec<Value>,
    /// Items of kinds that are not shown.
    skipped: Vec<(Option<u64>, Option<String>)>,
    /// Such an item had text.
    has_skipped_text: bool,
    error: Option<RequestError>,
}

/// An item that is shown, and its block.
struct OpenItem {
    output_index: u64,
    kind: Kind,
    slot: usize,
    /// The item's latest version: from its first event, later from its last.
    item: ItemMap,
    /// The server has started it; otherwise a piece of its text did.
    is_announced: bool,
    is_done: bool,
    /// Parts of the text in the order of their first appearance, with their full
    /// text once the server has sent it.
    parts: Vec<(PartId, Option<String>)>,
}

/// How an event names its item. Gateways leave out either, or change the id in every event.
#[derive(Debug, Clone, Copy)]
struct ItemPlace<'a> {
    index: Option<u64>,
    id: Option<&'a str>,
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

    /// Its name in items.
    fn name(self) -> &'static str {
        match self {
            Self::Message => "message",
            Self::Reasoning => "reasoning",
            Self::Function => "function_call",
            Self::Custom => "custom_tool_call",
        }
    }
}

impl<'a> ItemPlace<'a> {
    /// The place of `item`, which an event brings.
    fn of(event: &Event<'_>, item: &'a ItemMap) -> Self {
        Self { index: event.output_index.map(|Count(index)| index), id: text_of(item, "id") }
    }
}

impl OpenItem {
    /// Whether an event at `place` is about this item.
    fn is_at(&self, place: ItemPlace<'_>) -> bool {
        let id = text_of(&self.item, "id");
        match place.index {
            Some(index) => {
                index == self.output_index && (place.id.is_none() || id.is_none() || place.id == id)
            }
            None => place.id.is_some() && place.id == id,
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
    /// `sent_bytes` is the size of the text in the request.
    pub(super) fn new(asked_for: &str, grammars: GrammarParameters, sent_bytes: usize) -> Self {
        Self {
            asked_for: asked_for.to_owned(),
            grammars,
            blocks: Blocks::default(),
            items: Vec::new(),
            usage: UsageCount::new(sent_bytes),
            response_id: None,
            response_model: None,
            service_tier: None,
            status: None,
            incomplete_reason: None,
            transformations: Vec::new(),
            skipped: Vec::new(),
            has_skipped_text: false,
            error: None,
        }
    }

    fn event(
        &mut self,
        event: &Event<'_>,
        data: &str,
        out: &mut Vec<StreamEvent>,
    ) -> Result<(), DecodeError> {
        let kind = event.kind.as_str();
        match kind {
            "response.output_item.added" => {
                if let Some(item) = item_of(event.item) {
                    self.added(ItemPlace::of(event, &item), item.clone(), out);
                }
            }
            "response.output_item.done" => {
                if let Some(item) = item_of(event.item) {
                    self.item_done(ItemPlace::of(event, &item), item.clone(), out);
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
                let fallback = kind.trim_start_matches("response.");
                let response = event.response.map_or("{}", RawValue::get);
                self.ended(serde_json::from_str(response)?, fallback, out);
            }
            "error" => self.error = Some(stream_error(data)),
            "" if event.error.is_some() => self.error = Some(stream_error(data)),
            _ => self.text_event(event, out)?,
        }
        Ok(())
    }

    /// Handles an event with a piece of an item's text, or with all of it.
    fn text_event(&mut self, event: &Event<'_>, out: &mut Vec<StreamEvent>) -> Result<(), DecodeError> {
        let Some((name, is_whole)) = event.kind.as_str().strip_prefix("response.").and_then(split_end) else {
            return Ok(());
        };
        let content = PartId::Content(event.content_index.unwrap_or_default().0);
        let summary = PartId::Summary(event.summary_index.unwrap_or_default().0);
        let (kind, part, whole) = match name {
            "output_text" => (Kind::Message, content, event.text),
            "refusal" => (Kind::Message, content, event.refusal),
            "reasoning_summary_text" => (Kind::Reasoning, summary, event.text),
            "reasoning_text" => (Kind::Reasoning, content, event.text),
            "function_call_arguments" => (Kind::Function, content, event.arguments),
            "custom_tool_call_input" => (Kind::Custom, content, event.input),
            _ => return Ok(()),
        };
        let Some(raw) = (if is_whole { whole } else { event.delta }).filter(|raw| raw.get() != "null") else {
            return Ok(());
        };
        let TextPiece(text) = serde_json::from_str(raw.get())?;
        let place = ItemPlace {
            index: event.output_index.map(|Count(index)| index),
            id: filled(event.item_id.as_ref()),
        };
        let at = match self.in_progress(place, kind) {
            Some(at) => at,
            None if text.is_empty() || self.is_settled(place, kind) => return Ok(()),
            None if self.is_skipped(place) => {
                self.has_skipped_text = true;
                return Ok(());
            }
            None => self.begin(place, kind, out),
        };
        if let Some(tool) = filled(event.name.as_ref()) {
            self.items[at].item.entry("name").or_insert_with(|| Value::from(tool));
        }
        if is_whole {
            self.full(at, part, text, out);
        } else {
            self.append(at, part, text, out);
        }
        Ok(())
    }

    /// Whether an event at `place`, where no item is in progress, comes after the end of its item,
    /// which has the whole text.
    fn is_settled(&self, place: ItemPlace<'_>, kind: Kind) -> bool {
        self.items.iter().any(|item| item.is_done && item.kind == kind && item.is_at(place))
    }

    /// Whether an event at `place` is about an item of a kind that is not shown.
    fn is_skipped(&self, place: ItemPlace<'_>) -> bool {
        self.skipped.iter().any(|(index, id)| match place.index {
            Some(_) => place.index == *index,
            None => place.id.is_some() && place.id == id.as_deref(),
        })
    }

    /// The item of this kind in progress at `place`: by its index and its id, otherwise by its
    /// index, by its id, or as the one that started last.
    fn in_progress(&self, place: ItemPlace<'_>, kind: Kind) -> Option<usize> {
        let find = |fits: &dyn Fn(&OpenItem) -> bool| {
            self.items.iter().rposition(|item| !item.is_done && item.kind == kind && fits(item))
        };
        let has_index = |item: &OpenItem| place.index == Some(item.output_index);
        let has_id = |item: &OpenItem| place.id.is_some() && place.id == text_of(&item.item, "id");
        if place.index.is_some() {
            return find(&|item| has_index(item) && has_id(item)).or_else(|| find(&has_index));
        }
        find(&has_id).or_else(|| find(&|_| true))
    }

    /// Opens an item whose start the server left out.
    fn begin(&mut self, place: ItemPlace<'_>, kind: Kind, out: &mut Vec<StreamEvent>) -> usize {
        let mut item = ItemMap::new();
        item.insert("type".to_owned(), Value::from(kind.name()));
        if let Some(id) = place.id {
            item.insert("id".to_owned(), Value::from(id));
        }
        let at = self.open(place, kind, item, out);
        self.items[at].is_announced = false;
        at
    }

    /// Opens an item, or takes over the one that its text has opened.
    fn added(&mut self, place: ItemPlace<'_>, item: ItemMap, out: &mut Vec<StreamEvent>) {
        let Some(kind) = Kind::of(&item) else {
            self.skipped.push((place.index, place.id.map(str::to_owned)));
            return;
        };
        let begun = self.in_progress(place, kind).filter(|at| !self.items[*at].is_announced);
        match begun {
            Some(at) => {
                let begun = &mut self.items[at];
                begun.is_announced = true;
                begun.item.extend(item);
                if let Some(index) = place.index {
                    begun.output_index = index;
                }
            }
            None => drop(self.open(place, kind, item, out)),
        }
    }

    fn open(&mut self, place: ItemPlace<'_>, kind: Kind, item: ItemMap, out: &mut Vec<StreamEvent>) -> usize {
        let slot = match kind {
            Kind::Message => self.blocks.start_text(out),
            Kind::Reasoning => self.blocks.start_thinking(out),
            Kind::Function | Kind::Custom => {
                let name = text_of(&item, "name").unwrap_or_default().to_owned();
                self.blocks.start_call(call_id(&item), name, out)
            }
        };
        let next = self.items.last().map_or(0, |last| last.output_index.saturating_add(1));
        let output_index = place.index.unwrap_or(next);
        let parts = Vec::new();
        self.items.push(OpenItem {
            output_index,
            kind,
            slot,
            item,
            is_announced: true,
            is_done: false,
            parts,
        });
        self.items.len() - 1
    }

    /// Appends a piece of text to an item.
    fn append(&mut self, at: usize, part: PartId, text: Cow<'_, str>, out: &mut Vec<StreamEvent>) {
        if text.is_empty() {
            return;
        }
        let item = &mut self.items[at];
        let is_first = item.parts.is_empty();
        let is_new = !item.parts.iter().any(|(known, _)| *known == part);
        if is_new {
            item.parts.push((part, None));
        }
        match item.kind {
            Kind::Reasoning if is_new && !is_first => {
                self.blocks.push(item.slot, Cow::Borrowed("\n\n"), out);
                self.blocks.push(item.slot, text, out);
            }
            Kind::Custom => {
                let tool = text_of(&item.item, "name").unwrap_or_default();
                let start = if is_first { self.grammars.opening(tool) } else { String::new() };
                self.blocks.push(item.slot, Cow::Owned(start), out);
                self.blocks.push(item.slot, Cow::Owned(escaped(&text)), out);
            }
            Kind::Message | Kind::Reasoning | Kind::Function => self.blocks.push(item.slot, text, out),
        }
    }

    /// Sets the full text of a part, which takes precedence over its deltas.
    fn full(&mut self, at: usize, part: PartId, text: Cow<'_, str>, out: &mut Vec<StreamEvent>) {
        let whole = without_signs(&text).into_owned();
        if !self.items[at].parts.iter().any(|(known, _)| *known == part) {
            self.append(at, part, text, out);
        }
        let mut parts = self.items[at].parts.iter_mut();
        if let Some((_, known)) = parts.find(|(known, _)| *known == part) {
            *known = Some(whole);
        }
    }

    fn item_done(&mut self, place: ItemPlace<'_>, item: ItemMap, out: &mut Vec<StreamEvent>) {
        let Some(kind) = Kind::of(&item) else { return };
        let at = match self.in_progress(place, kind) {
            Some(at) => at,
            None if self.is_repeated(place.index, &item) => return,
            None => self.open(place, kind, item.clone(), out),
        };
        self.finish_item(at, item, out);
    }

    /// Completes an item by its last version.
    fn finish_item(&mut self, at: usize, item: ItemMap, out: &mut Vec<StreamEvent>) {
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
            Kind::Function | Kind::Custom => match text_of(&open.item, "status") {
                None | Some("completed") => self.blocks.end(open.slot, out),
                // Some gateways never change this status, so the end of the response decides.
                Some("in_progress") => {}
                // The server stopped in the middle of the call.
                Some(_) => self.blocks.cut(open.slot, out),
            },
        }
    }

    /// Whether the same item has already finished.
    fn is_repeated(&self, index: Option<u64>, item: &ItemMap) -> bool {
        let same = |known: &OpenItem, key: &str| text_of(&known.item, key) == text_of(item, key);
        self.items.iter().any(|known| {
            known.is_done
                && index == Some(known.output_index)
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
        // Without an end or a piece, the start of an item has all that there is.
        let whole = said.filter(|_| *is_done || parts.is_empty()).or_else(|| {
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
            Some(AssistantBlock::ToolCall(_)) => {
                self.blocks.name_call(slot, call_id(item), text_of(item, "name").unwrap_or_default());
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
            self.usage.update(usage_of(usage));
        }
        self.transformations = response.input_transformations.and_then(list_of).unwrap_or_default();
        let status = filled(response.status.as_ref()).unwrap_or(fallback).to_lowercase();
        // `response.done` ends a stream, whatever status it contains.
        let is_complete = matches!(status.as_str(), "in_progress" | "queued")
            || reported_end(&status) == Some(ReportedEnd::Stop);
        let status = if is_complete { "completed".to_owned() } else { status };
        self.backfill(response.output.and_then(list_of).unwrap_or_default(), out);
        if status == "failed" {
            let said = response.error.as_ref().filter(|error| !error.is_null());
            let text = said.map(reported);
            self.error = text.or(self.error.take()).or_else(|| {
                Some("unknown: the response failed, and the server does not say why".to_owned().into())
            });
        }
        let reason = response.incomplete_details.as_ref().and_then(|details| details.get("reason"));
        self.incomplete_reason = reason.and_then(Value::as_str).map(str::to_owned);
        self.status = Some(status);
    }

    /// Adds from the final output what the item events lacked: the encrypted form of
    /// reasoning, the ends of items, and items that were never announced.
    fn backfill(&mut self, output: Vec<Value>, out: &mut Vec<StreamEvent>) {
        let mut is_known = vec![false; self.items.len()];
        let mut unknown = Vec::new();
        for (index, item) in output.into_iter().enumerate() {
            let (index, Value::Object(mut item)) = (index as u64, item) else { continue };
            let Some(kind) = Kind::of(&item) else { continue };
            if matches!(kind, Kind::Function | Kind::Custom) {
                // The end of the response decides whether the call is complete.
                item.entry("status").or_insert_with(|| Value::from("in_progress"));
            }
            match self.known_item(&is_known, index, kind, &item) {
                Some(at) => {
                    is_known[at] = true;
                    self.complete(at, item, out);
                }
                None => unknown.push((index, kind, item)),
            }
        }
        // Ids may change and indices may be missing, so an item is new only if there are more of its
        // kind than have arrived.
        for (index, kind, item) in unknown {
            let rest = (0..is_known.len()).find(|at| !is_known[*at] && self.items[*at].kind == kind);
            match rest {
                Some(at) => {
                    is_known[at] = true;
                    self.complete(at, item, out);
                }
                None => {
                    let at = self.open(ItemPlace { index: Some(index), id: None }, kind, item.clone(), out);
                    self.finish_item(at, item, out);
                }
            }
        }
    }

    /// The item of ours that `item` of the final output is.
    fn known_item(&self, is_known: &[bool], index: u64, kind: Kind, item: &ItemMap) -> Option<usize> {
        let find = |fits: &dyn Fn(&OpenItem) -> bool| {
            (0..is_known.len())
                .find(|at| !is_known[*at] && self.items[*at].kind == kind && fits(&self.items[*at]))
        };
        let has_same = |known: &OpenItem, key: &str| {
            text_of(item, key).is_some() && text_of(&known.item, key) == text_of(item, key)
        };
        find(&|known| has_same(known, "id"))
            .or_else(|| find(&|known| has_same(known, "call_id")))
            .or_else(|| find(&|known| known.output_index == index))
    }

    /// Adds to an item of ours what its form in the final output has more.
    fn complete(&mut self, at: usize, item: ItemMap, out: &mut Vec<StreamEvent>) {
        let known = &mut self.items[at];
        if !known.is_done {
            self.finish_item(at, item, out);
        } else if known.kind == Kind::Reasoning
            && text_of(&known.item, "encrypted_content").is_none()
            && let Some(encrypted) = text_of(&item, "encrypted_content")
        {
            known.item.insert("encrypted_content".to_owned(), Value::from(encrypted));
        }
    }

    /// Closes the texts of calls that arrived in pieces, at the end of a completed response.
    fn end_inputs(&mut self, out: &mut Vec<StreamEvent>) {
        let is_cut = |item: &&OpenItem| {
            item.kind == Kind::Custom && !item.is_done && item.parts.iter().any(|(_, whole)| whole.is_none())
        };
        for item in self.items.iter().filter(is_cut) {
            self.blocks.push(item.slot, Cow::Borrowed("\"}"), out);
        }
    }

    fn outcome(&self) -> Result<StopReason, RequestError> {
        let reason = self.incomplete_reason.as_deref();
        match (self.status.as_deref(), &self.error) {
            (_, Some(error)) => Err(error.clone()),
            (Some("completed"), None) if self.blocks.has_unnamed_call() => Err(RequestError::unnamed_call()),
            (Some("completed"), None) if self.has_skipped_text && self.blocks.content.is_empty() => {
                Err(RequestError::unread_text())
            }
            (Some("completed"), None) if self.blocks.has_calls() => Ok(StopReason::ToolUse),
            (Some("completed"), None) => Ok(StopReason::Stop),
            (Some("incomplete"), None) => {
                let reason = reason.unwrap_or("no reason given");
                match reported_end(reason) {
                    Some(ReportedEnd::Length) => Ok(StopReason::Length),
                    _ => Err(RequestError::of_stop_reason("incomplete", reason, None)),
                }
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
            if self.blocks.is_open(self.items[at].slot) {
                self.settle(at);
            }
        }
        let outcome = match end {
            End::Closed | End::Lost => self.outcome(),
            End::Cut => Err(RequestError::cut_off("stream interrupted")),
        };
        // The end of a completed response ends its items; without it a call is incomplete.
        let is_whole = matches!(outcome, Ok(StopReason::Stop | StopReason::ToolUse));
        if is_whole {
            self.end_inputs(out);
        }
        self.blocks.end_all(is_whole, out);
        let asked_for = self.asked_for;
        let raw_stop_reason = match (self.status, self.incomplete_reason) {
            (Some(status), Some(reason)) => Some(format!("{status}.{reason}")),
            (status, _) => status,
        };
        Finish {
            content: self.blocks.content,
            usage: self.usage.finish(),
            outcome,
            response_id: self.response_id,
            response_model: self.response_model.filter(|model| *model != asked_for),
            raw_stop_reason,
            diagnostics: note_of(&self.transformations).into_iter().collect(),
        }
    }
}

/// A member that is a non-empty string.
fn text_of<'a>(item: &'a ItemMap, key: &str) -> Option<&'a str> {
    item.get(key).and_then(Value::as_str).filter(|text| !text.is_empty())
}

fn item_of(raw: Option<&RawValue>) -> Option<ItemMap> {
    serde_json::from_str(&without_signs(raw?.get())).ok()
}

fn list_of(raw: &RawValue) -> Option<Vec<Value>> {
    serde_json::from_str(&without_signs(raw.get())).ok()
}

/// The original's note of reasoning that the service dropped; `None` if there is none. At the end of a
/// turn that is normal.
fn note_of(transformations: &[Value]) -> Option<Value> {
    let is_noted = |entry: &&Value| {
        entry.is_object() && entry.get("reason").and_then(Value::as_str) != Some("turn_boundary")
    };
    let noted: Vec<&Value> = transformations.iter().filter(is_noted).collect();
    (!noted.is_empty())
        .then(|| json!({"type": "openai_input_transformations", "details": {"transformations": noted}}))
}

/// The name of an event without its end, and whether it has the whole text.
fn split_end(name: &str) -> Option<(&str, bool)> {
    let piece = name.strip_suffix(".delta").map(|name| (name, false));
    piece.or_else(|| Some((name.strip_suffix(".done")?, true)))
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
    let upstream = wire.cost_details.as_ref().and_then(|details| details.upstream_inference_cost);
    // With the user's own key, the provider bills separately from OpenRouter.
    let own_key = wire.is_byok == Some(true);
    if let Some(cost) = billed_cost(wire.cost, upstream.filter(|_| own_key)) {
        usage.cost.total = cost;
        usage.cost.total_from_provider = Some(true);
    }
    usage
}
