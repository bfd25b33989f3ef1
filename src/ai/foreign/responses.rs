//! Responses: <https://platform.openai.com/docs/api-reference/responses/create>.
//!
//! The input is a flat list of items; consecutive items of a model are
//! one answer. Ids are stored as in `api::openai_responses`: a complete reasoning item
//! in the signature of its thinking, id and phase of a message in that of
//! its text, both ids of a call in its id.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::chat::named_call;
use super::document::{Document, ImportError};
use super::draft::{Draft, RawResult};
use super::json::{self, Noted, Object, Piece, filled, image_of, kind, pieces, text, text_block};
use super::plan::{Answer, Block, Plan, Step, argument_text};
use crate::ai::api::TextSignature;
use crate::ai::messages::{AssistantBlock, ContentBlock, Text, Thinking, ToolCall};

pub(super) fn read(document: &Document, draft: &mut Draft) -> Result<(), ImportError> {
    let prompt = draft.shown(pieces("instructions", document.fields.get("instructions"))?, shown);
    let texts = draft.texts("instructions", prompt);
    draft.system(&texts.join("\n"));
    // The answer whose items are being read, and its position.
    let mut answer: Option<(&str, Vec<AssistantBlock>)> = None;
    for (place, item) in &document.elements {
        let is_said = text(item, "type").is_none_or(|kind| kind == "message");
        let role = if is_said { filled(item, "role") } else { None };
        let mut says = |block: Option<AssistantBlock>| {
            answer.get_or_insert_with(|| (place, Vec::new())).1.extend(block);
        };
        let content = || pieces(&format!("{place}.content"), item.get("content"));
        match (filled(item, "type"), role) {
            (_, Some("assistant")) => {
                let content = content()?;
                says(message(place, item, content, draft));
            }
            (Some("reasoning"), _) => says(Some(AssistantBlock::Thinking(reasoning(item)))),
            (Some(kind @ ("function_call" | "custom_tool_call")), _) => match call(kind, item) {
                Some(call) => says(Some(AssistantBlock::ToolCall(call))),
                None => draft.report.add(place.as_str(), "call without a name"),
            },
            (Some("function_call_output" | "custom_tool_call_output"), _) => {
                flush(&mut answer, draft);
                let output = pieces(&format!("{place}.output"), item.get("output"))?;
                let content = draft.shown(output, shown);
                draft.result(RawResult {
                    place: place.clone(),
                    id: plain_id(item, "call_id").unwrap_or_default(),
                    name: String::new(),
                    content,
                    is_error: false,
                });
            }
            (_, Some("user")) => {
                let blocks = draft.shown(content()?, shown);
                flush(&mut answer, draft);
                draft.user(blocks, None);
            }
            (_, Some("system" | "developer")) => {
                let blocks = draft.shown(content()?, shown);
                flush(&mut answer, draft);
                let texts = draft.texts(place, blocks);
                draft.system(&texts.join("\n"));
            }
            (_, Some(role)) => draft.report.add(place.as_str(), format!("role {role:?}")),
            (Some("item_reference"), _) => {
                draft.report.add(place.as_str(), "reference to an item that only the provider has");
            }
            (Some(kind), _) if !is_said => {
                draft.report.add(place.as_str(), format!("item of type {kind:?}"));
            }
            _ => {
                return Err(ImportError::Shape {
                    place: place.clone(),
                    expected: "an item with a \"role\" or a \"type\"",
                    found: item.get("role").map_or("none", kind),
                });
            }
        }
    }
    flush(&mut answer, draft);
    Ok(())
}

fn flush(answer: &mut Option<(&str, Vec<AssistantBlock>)>, draft: &mut Draft) {
    if let Some((place, blocks)) = answer.take() {
        draft.answer(place, blocks, None);
    }
}

/// The block for a part of a message of a user, a tool or the system.
fn shown(part: &Object) -> Noted {
    match filled(part, "type") {
        Some("input_text" | "output_text" | "text") | None if part.contains_key("text") => {
            (text(part, "text").and_then(text_block), None)
        }
        Some("refusal") => (text(part, "refusal").and_then(text_block), None),
        Some("input_image") => {
            image_of(part).unwrap_or_else(|| (None, Some("image that only the provider has".to_owned())))
        }
        Some("input_file") => (None, Some("file".to_owned())),
        Some("input_audio") => (None, Some("audio input".to_owned())),
        Some(other) => (None, Some(format!("part of type {other:?}"))),
        None => (None, Some("part without a type".to_owned())),
    }
}

/// A message of the model, as one text.
fn message(
    place: &str,
    item: &Object,
    content: Vec<(String, Piece<'_>)>,
    draft: &mut Draft,
) -> Option<AssistantBlock> {
    for (place, piece) in &content {
        if let Piece::Part(part) = piece
            && part.get("annotations").and_then(Value::as_array).is_some_and(|list| !list.is_empty())
        {
            draft.report.add(format!("{place}.annotations"), "annotations");
        }
    }
    let blocks = draft.shown(content, shown);
    let said = draft.texts(place, blocks).concat();
    let phase = filled(item, "phase").map(str::to_owned);
    let id = filled(item, "id").unwrap_or_default().to_owned();
    let is_signed = phase.is_some() || !id.is_empty();
    let signature = TextSignature { v: TextSignature::VERSION, id, phase };
    let text_signature = is_signed.then(|| serde_json::to_string(&signature).ok()).flatten();
    (!said.trim().is_empty()).then(|| AssistantBlock::Text(Text { text_signature, ..Text::new(said) }))
}

fn reasoning(item: &Object) -> Thinking {
    let texts = |key: &str| {
        let parts = item.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let texts = parts.iter().filter_map(|part| filled(part.as_object()?, "text"));
        texts.collect::<Vec<&str>>().join("\n\n")
    };
    let summary = texts("summary");
    let said = if summary.is_empty() { texts("content") } else { summary };
    let signature = Value::Object(item.clone()).to_string();
    Thinking { thinking_signature: Some(signature), ..Thinking::new(said) }
}

/// An id without the separator between the two ids of a call.
fn plain_id(item: &Object, key: &str) -> Option<String> {
    filled(item, key).map(|id| id.replace('|', "_"))
}

fn call(kind: &str, item: &Object) -> Option<ToolCall> {
    let call_id = plain_id(item, "call_id").unwrap_or_default();
    let item_id = plain_id(item, "id");
    if kind == "custom_tool_call" {
        // The item's id distinguishes it from a function.
        let item_id = item_id.filter(|id| id.starts_with("ctc_")).unwrap_or_else(|| format!("ctc_{call_id}"));
        let input = text(item, "input").unwrap_or_default();
        let arguments = Object::from_iter([("input".to_owned(), Value::from(input))]);
        return Some(ToolCall::new(format!("{call_id}|{item_id}"), filled(item, "name")?, arguments));
    }
    let id = match item_id {
        Some(item_id) if !call_id.is_empty() => format!("{call_id}|{item_id}"),
        Some(id) => id,
        None => call_id,
    };
    named_call(&id, item, "arguments")
}

pub(super) fn write(plan: &mut Plan<'_>) -> (Object, Vec<Value>) {
    let mut fields = Object::new();
    if !plan.system.is_empty() {
        fields.insert("instructions".to_owned(), Value::from(plan.system.as_str()));
    }
    let mut items = Vec::with_capacity(plan.steps.len() * 2);
    for step in std::mem::take(&mut plan.steps) {
        match step {
            Step::System { text, .. } => items.push(json!({"role": "developer", "content": text})),
            Step::User { place, content, name } => {
                Plan::drop_name(&mut plan.report, &place, name);
                let content: Vec<&ContentBlock> = content.iter().map(Cow::as_ref).collect();
                items.push(json!({"role": "user", "content": parts(&content)}));
            }
            Step::Answer(answer) => {
                Plan::drop_name(&mut plan.report, &answer.place, answer.name);
                write_answer(&answer, plan, &mut items);
            }
        }
    }
    (fields, items)
}

fn write_answer(answer: &Answer<'_>, plan: &mut Plan<'_>, items: &mut Vec<Value>) {
    let mut custom: Vec<&str> = Vec::new();
    for block in &answer.blocks {
        match block {
            // It exists only for its signature, which cannot be sent without a text.
            Block::Text { text, .. } if text.trim().is_empty() => {}
            Block::Text { text, signature, .. } => items.push(message_item(text, *signature)),
            Block::Thinking { place, thinking } => {
                let signature = thinking.thinking_signature.as_deref().unwrap_or_default();
                match serde_json::from_str::<Object>(signature) {
                    Ok(item) if text(&item, "type") == Some("reasoning") => items.push(Value::Object(item)),
                    _ => plan.report.add(place.as_str(), "thinking without its reasoning item"),
                }
            }
            Block::Call { id, call, .. } => {
                let (call_id, item_id) = split(id);
                let input = call.arguments.get("input").and_then(Value::as_str);
                let mut item = match (item_id, input) {
                    (Some(item_id), Some(input)) if item_id.starts_with("ctc_") => {
                        custom.push(call_id);
                        json!({"type": "custom_tool_call", "call_id": call_id, "name": call.name, "input": input})
                    }
                    _ => json!({"type": "function_call", "call_id": call_id, "name": call.name,
                        "arguments": argument_text(call)}),
                };
                if let Some(item_id) = item_id {
                    item["id"] = Value::from(item_id);
                }
                items.push(item);
            }
        }
    }
    for result in &answer.results {
        let (call_id, _) = split(&result.id);
        let is_custom = custom.contains(&call_id);
        let kind = if is_custom { "custom_tool_call_output" } else { "function_call_output" };
        items.push(json!({"type": kind, "call_id": call_id, "output": parts(&result.content)}));
        if result.is_error {
            plan.report.add(result.place.as_str(), "failed result; the format cannot mark it as failed");
        }
    }
}

/// `call_id|item_id`.
fn split(id: &str) -> (&str, Option<&str>) {
    id.split_once('|').map_or((id, None), |(call, item)| (call, Some(item)))
}

fn message_item(text: &str, signature: Option<&str>) -> Value {
    let content = json!([{"type": "output_text", "text": text, "annotations": []}]);
    let mut item = json!({"type": "message", "role": "assistant", "content": content});
    let signature = signature.map(TextSignature::parse).unwrap_or_default();
    if !signature.id.is_empty() {
        item["id"] = Value::from(signature.id);
        item["status"] = Value::from("completed");
    }
    if let Some(phase) = signature.phase {
        item["phase"] = Value::from(phase);
    }
    item
}

/// A string if the content is a single text.
fn parts(content: &[&ContentBlock]) -> Value {
    match content {
        [] => Value::from(""),
        [ContentBlock::Text(text)] => Value::from(text.text.as_str()),
        content => {
            let parts = content.iter().filter_map(|block| match block {
                ContentBlock::Text(text) => Some(json!({"type": "input_text", "text": text.text})),
                ContentBlock::Image(image) => {
                    Some(json!({"type": "input_image", "detail": "auto", "image_url": json::data_url(image)}))
                }
                ContentBlock::ImageUrl(image) => {
                    let detail = image.detail().unwrap_or("auto");
                    Some(json!({"type": "input_image", "detail": detail, "image_url": image.url()}))
                }
                ContentBlock::Unknown(_) => None,
            });
            parts.collect()
        }
    }
}
