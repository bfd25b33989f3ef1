//! Chat Completions: <https://platform.openai.com/docs/api-reference/chat/create>.
//!
//! Also the dialects of servers that copied it: reasoning in fields and in
//! parts, arguments as objects, and the legacy `function_call`.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::document::{Document, ImportError};
use super::draft::{Draft, RawResult, SEE_IMAGE, images_of};
use super::json::{
    self, Noted, Object, Piece, filled, image_at, image_of, kind, pieces, text, text_block, texts_first,
};
use super::plan::{Answer, Block, Outcome, Plan, Step, argument_text};
use crate::ai::messages::{AssistantBlock, ContentBlock, Text, Thinking, ToolCall};

/// The fields in which servers send reasoning; the first non-empty one is used.
const REASONING_FIELDS: [&str; 3] = ["reasoning_content", "reasoning", "reasoning_text"];

/// The signature of reasoning that was a part of the content.
const IN_CONTENT: &str = "content";

pub(super) fn read(document: &Document, draft: &mut Draft) -> Result<(), ImportError> {
    for (place, message) in &document.elements {
        let content_place = format!("{place}.content");
        let content = || pieces(&content_place, message.get("content"));
        let name = filled(message, "name");
        match filled(message, "role") {
            Some("system" | "developer") => {
                let blocks = draft.shown(content()?, shown);
                Plan::drop_name(&mut draft.report, place, name);
                let texts = draft.texts(place, blocks);
                draft.system(&texts.join("\n"));
            }
            Some("user") => {
                let blocks = draft.shown(content()?, shown);
                draft.user(blocks, name);
            }
            Some("assistant") => answer(place, message, name, content()?, draft)?,
            Some(role @ ("tool" | "function")) => {
                let content = texts_first(draft.shown(content()?, shown));
                // The legacy form refers to its call by name only.
                let id = if role == "tool" { text(message, "tool_call_id").unwrap_or_default() } else { "" };
                draft.result(RawResult {
                    place: place.clone(),
                    id: id.to_owned(),
                    name: name.unwrap_or_default().to_owned(),
                    content,
                    is_error: false,
                });
            }
            Some(role) => draft.report.add(place.as_str(), format!("role {role:?}")),
            None => return Err(ImportError::no_role(place, message)),
        }
    }
    Ok(())
}

/// The block for a part of a message of a user, a tool or the system.
fn shown(part: &Object) -> Noted {
    match filled(part, "type") {
        Some("text") | None if part.contains_key("text") => (text(part, "text").and_then(text_block), None),
        Some("refusal") => (text(part, "refusal").and_then(text_block), None),
        Some("image_url") => image_of(part).unwrap_or_else(|| image_at("data:", None)),
        Some("input_audio") => (None, Some("audio input".to_owned())),
        Some("file") => (None, Some("file".to_owned())),
        Some(other) => (None, Some(format!("part of type {other:?}"))),
        None => (None, Some("part without a type".to_owned())),
    }
}

fn answer(
    place: &str,
    message: &Object,
    name: Option<&str>,
    content: Vec<(String, Piece<'_>)>,
    draft: &mut Draft,
) -> Result<(), ImportError> {
    let mut blocks = Vec::new();
    let thinking = reasoning(message);
    for field in REASONING_FIELDS {
        let letters = |text: &str| text.split_whitespace().collect::<String>();
        let is_kept = |text: &str| {
            thinking.as_ref().is_some_and(|thinking| letters(&thinking.thinking) == letters(text))
        };
        if filled(message, field).is_some_and(|text| !text.trim().is_empty() && !is_kept(text)) {
            draft.report.add(format!("{place}.{field}"), "another version of the reasoning");
        }
    }
    blocks.extend(thinking.map(AssistantBlock::Thinking));
    for (place, piece) in content {
        blocks.extend(answer_part(&place, &piece, draft));
    }
    blocks.extend(text(message, "refusal").and_then(text_of));
    if message.get("audio").is_some_and(|audio| !audio.is_null()) {
        draft.report.add(format!("{place}.audio"), "audio output");
    }
    if message.get("annotations").and_then(Value::as_array).is_some_and(|list| !list.is_empty()) {
        draft.report.add(format!("{place}.annotations"), "annotations");
    }
    match message.get("tool_calls") {
        None | Some(Value::Null) => {}
        Some(Value::Array(calls)) => {
            for (at, raw) in calls.iter().enumerate() {
                match raw.as_object().and_then(call) {
                    Some(call) => blocks.push(AssistantBlock::ToolCall(call)),
                    None => draft.report.add(format!("{place}.tool_calls[{at}]"), "call without a name"),
                }
            }
        }
        Some(other) => {
            return Err(ImportError::Shape {
                place: format!("{place}.tool_calls"),
                expected: "a list of calls",
                found: kind(other),
            });
        }
    }
    if let Some(Value::Object(function)) = message.get("function_call") {
        match named_call("", function, "arguments") {
            Some(call) => blocks.push(AssistantBlock::ToolCall(call)),
            None => draft.report.add(format!("{place}.function_call"), "call without a name"),
        }
    }
    draft.answer(place, blocks, name);
    Ok(())
}

fn text_of(text: &str) -> Option<AssistantBlock> {
    (!text.trim().is_empty()).then(|| AssistantBlock::Text(Text::new(text)))
}

fn answer_part(place: &str, piece: &Piece<'_>, draft: &mut Draft) -> Option<AssistantBlock> {
    let part = match piece {
        Piece::Text(text) => return text_of(text),
        Piece::Part(part) => part,
    };
    let what = match filled(part, "type") {
        Some("text") | None if part.contains_key("text") => return text(part, "text").and_then(text_of),
        Some("refusal") => return text(part, "refusal").and_then(text_of),
        Some("thinking") => {
            let texts: Vec<&str> = match part.get("thinking") {
                Some(Value::String(text)) => vec![text],
                Some(Value::Array(parts)) => {
                    parts.iter().filter_map(|part| text(part.as_object()?, "text")).collect()
                }
                _ => Vec::new(),
            };
            let thinking =
                Thinking { thinking_signature: Some(IN_CONTENT.to_owned()), ..Thinking::new(texts.concat()) };
            return (!thinking.thinking.trim().is_empty()).then_some(AssistantBlock::Thinking(thinking));
        }
        Some(other) => format!("part of type {other:?}"),
        None => "part without a type".to_owned(),
    };
    draft.report.add(place, what);
    None
}

/// Reasoning in a field: as details, or as text under one of several names.
fn reasoning(message: &Object) -> Option<Thinking> {
    let field = REASONING_FIELDS.into_iter().find_map(|field| Some((field, filled(message, field)?)));
    if let Some(Value::Array(details)) = message.get("reasoning_details")
        && !details.is_empty()
    {
        let said = details_text(details);
        let said = if said.is_empty() { field.map_or("", |(_, text)| text).to_owned() } else { said };
        let signature = Value::Array(details.clone()).to_string();
        return Some(Thinking { thinking_signature: Some(signature), ..Thinking::new(said) });
    }
    let (field, text) = field.filter(|(_, text)| !text.trim().is_empty())?;
    Some(Thinking { thinking_signature: Some(field.to_owned()), ..Thinking::new(text) })
}

fn details_text(details: &[Value]) -> String {
    let texts = details.iter().filter_map(Value::as_object);
    let texts = texts.filter_map(|detail| filled(detail, "text").or_else(|| filled(detail, "summary")));
    texts.collect::<Vec<&str>>().join("\n\n")
}

fn call(raw: &Object) -> Option<ToolCall> {
    let id = text(raw, "id").unwrap_or_default();
    if let Some(Value::Object(custom)) = raw.get("custom") {
        let input = text(custom, "input").unwrap_or_default();
        let arguments = Object::from_iter([("input".to_owned(), Value::from(input))]);
        return filled(custom, "name").map(|name| ToolCall::new(id, name, arguments));
    }
    named_call(id, raw.get("function")?.as_object()?, "arguments")
}

/// A call from an object with a name and arguments. The arguments are JSON in a
/// string, or the object itself at servers that misread the API.
pub(super) fn named_call(id: &str, function: &Object, key: &str) -> Option<ToolCall> {
    let name = filled(function, "name")?;
    Some(match function.get(key) {
        Some(Value::String(text)) => ToolCall::from_text(id, name, text),
        None | Some(Value::Null) => ToolCall::new(id, name, Object::new()),
        Some(Value::Object(arguments)) => ToolCall::new(id, name, arguments.clone()),
        Some(other) => ToolCall::from_text(id, name, &other.to_string()),
    })
}

pub(super) fn write(plan: &mut Plan<'_>) -> (Object, Vec<Value>) {
    let mut messages = Vec::with_capacity(plan.steps.len() + 1);
    if !plan.system.is_empty() {
        messages.push(json!({"role": "system", "content": plan.system}));
    }
    for step in std::mem::take(&mut plan.steps) {
        match step {
            Step::System { text, .. } => messages.push(json!({"role": "system", "content": text})),
            Step::User { content, name, .. } => {
                let content: Vec<&ContentBlock> = content.iter().map(Cow::as_ref).collect();
                messages.push(with_name(json!({"role": "user", "content": parts(&content)}), name));
            }
            Step::Answer(answer) => {
                messages.push(with_name(answer_message(&answer), answer.name));
                let mut images = Vec::new();
                for result in &answer.results {
                    messages.push(tool_message(result, &mut images));
                    if result.is_error {
                        plan.report
                            .add(result.place.as_str(), "failed result; the format cannot mark it as failed");
                    }
                }
                if !images.is_empty() {
                    messages.push(json!({"role": "user", "content": images}));
                }
            }
        }
    }
    (Object::new(), messages)
}

fn with_name(mut message: Value, name: Option<&str>) -> Value {
    if let (Some(name), Some(fields)) = (name, message.as_object_mut()) {
        fields.insert("name".to_owned(), Value::from(name));
    }
    message
}

/// A string if the content is a single text.
fn parts(content: &[&ContentBlock]) -> Value {
    match content {
        [ContentBlock::Text(text)] => Value::from(text.text.as_str()),
        content => content.iter().filter_map(|block| part(block)).collect(),
    }
}

fn part(block: &ContentBlock) -> Option<Value> {
    match block {
        ContentBlock::Text(text) => Some(text_part(&text.text)),
        ContentBlock::Image(image) => {
            Some(json!({"type": "image_url", "image_url": {"url": json::data_url(image)}}))
        }
        ContentBlock::ImageUrl(image) => {
            let mut url = json!({"url": image.url()});
            if let Some(detail) = image.detail() {
                url["detail"] = Value::from(detail);
            }
            Some(json!({"type": "image_url", "image_url": url}))
        }
        ContentBlock::Unknown(_) => None,
    }
}

fn text_part(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn answer_message(answer: &Answer<'_>) -> Value {
    let mut content = Vec::new();
    let mut calls = Vec::new();
    let mut fields = Object::new();
    for block in &answer.blocks {
        match block {
            // It exists only for its signature, and this format has no field for it.
            Block::Text { text, .. } if text.trim().is_empty() => {}
            Block::Text { text, .. } => content.push(text_part(text)),
            Block::Thinking { thinking, .. } => thought(thinking, &mut content, &mut fields),
            Block::Call { id, call, .. } => {
                let function = json!({"name": call.name, "arguments": argument_text(call)});
                calls.push(json!({"id": id, "type": "function", "function": function}));
            }
        }
    }
    // A string if possible, because some models start to imitate the parts.
    let content = match content.as_slice() {
        [] if calls.is_empty() => Value::from(""),
        [] => Value::Null,
        [Value::Object(part)] if part.contains_key("text") => part.get("text").cloned().unwrap_or_default(),
        _ => Value::Array(content),
    };
    let mut message = Object::new();
    message.insert("role".to_owned(), Value::from("assistant"));
    message.insert("content".to_owned(), content);
    message.append(&mut fields);
    if !calls.is_empty() {
        message.insert("tool_calls".to_owned(), Value::Array(calls));
    }
    Value::Object(message)
}

/// Writes thinking in its original form.
fn thought(thinking: &Thinking, content: &mut Vec<Value>, fields: &mut Object) {
    let said = thinking.thinking.as_str();
    let mut append = |field: &str| match fields.get_mut(field) {
        Some(Value::String(known)) => {
            known.push_str("\n\n");
            known.push_str(said);
        }
        _ => drop(fields.insert(field.to_owned(), Value::from(said))),
    };
    let signature = thinking.thinking_signature.as_deref().unwrap_or_default();
    let is_details = signature.starts_with('[');
    if said.trim().is_empty() && !is_details {
        return;
    }
    if signature == IN_CONTENT {
        content.push(json!({"type": "thinking", "thinking": [text_part(said)]}));
    } else if is_details && let Ok(Value::Array(mut details)) = serde_json::from_str(signature) {
        // Encrypted details contain no text, but their text may be stored beside them.
        if details_text(&details).is_empty() && !said.is_empty() {
            append("reasoning");
        }
        match fields.get_mut("reasoning_details") {
            Some(Value::Array(all)) => all.append(&mut details),
            _ => drop(fields.insert("reasoning_details".to_owned(), Value::Array(details))),
        }
    } else {
        append(REASONING_FIELDS.into_iter().find(|field| *field == signature).unwrap_or("reasoning_content"));
    }
}

/// A result; its images, which it cannot contain, are appended to `images`.
fn tool_message(result: &Outcome<'_>, images: &mut Vec<Value>) -> Value {
    let found = result.content.iter().filter(|block| block.is_image());
    let found: Vec<Value> = found.filter_map(|block| part(block)).collect();
    let texts: Vec<&str> = result.content.iter().filter_map(|block| block.as_text()).collect();
    let mut text = texts.join("\n");
    if !found.is_empty() {
        if text.is_empty() {
            SEE_IMAGE.clone_into(&mut text);
        }
        images.push(text_part(&images_of(&result.id)));
        images.extend(found);
    }
    json!({"role": "tool", "tool_call_id": result.id, "content": text})
}
