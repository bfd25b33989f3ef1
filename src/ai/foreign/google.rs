//! `generateContent`: <https://ai.google.dev/api/generate-content>, with names in
//! camel case, as REST writes them, or in snake case, as the libraries do.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::anthropic::{NO_OBJECT, call};
use super::document::{Document, ImportError};
use super::draft::{Draft, RawResult};
use super::json::{self, Noted, Object, Piece, filled, pieces, text_block, texts_first};
use super::plan::{Answer, Block, Outcome, Plan, Step, WRAPPED, arguments};
use crate::ai::messages::{AssistantBlock, ContentBlock, Text, Thinking};

/// The field with this name, in either spelling.
fn get<'a>(object: &'a Object, camel: &str, snake: &str) -> Option<&'a Value> {
    object.get(camel).or_else(|| object.get(snake)).filter(|value| !value.is_null())
}

fn get_object<'a>(object: &'a Object, camel: &str, snake: &str) -> Option<&'a Object> {
    get(object, camel, snake).and_then(Value::as_object)
}

fn get_text<'a>(object: &'a Object, camel: &str, snake: &str) -> Option<&'a str> {
    get(object, camel, snake).and_then(Value::as_str)
}

pub(super) fn read(document: &Document, draft: &mut Draft) -> Result<(), ImportError> {
    if let Some(instruction) = get(&document.fields, "systemInstruction", "system_instruction") {
        // A content, its parts, or only the text.
        let parts = match instruction {
            Value::Object(content) => content.get("parts").unwrap_or(instruction),
            other => other,
        };
        let blocks = draft.shown(pieces("systemInstruction", Some(parts))?, shown);
        let texts = draft.texts("systemInstruction", blocks);
        draft.system(&texts.join("\n\n"));
    }
    for (place, content) in &document.elements {
        let parts = match (content.get("parts"), content.get("content")) {
            (None, Some(_)) => {
                return Err(ImportError::Shape {
                    place: place.clone(),
                    expected: "\"parts\"",
                    found: "\"content\", as OpenAI and Anthropic have it",
                });
            }
            (parts, _) => pieces(&format!("{place}.parts"), parts)?,
        };
        match filled(content, "role") {
            // The default role is the user.
            Some("user" | "function" | "tool") | None => {
                let mut rest = Vec::new();
                for (place, piece) in parts {
                    match &piece {
                        Piece::Part(part) if get(part, "functionResponse", "function_response").is_some() => {
                            let result = result(place, part, draft)?;
                            draft.result(result);
                        }
                        _ => rest.push((place, piece)),
                    }
                }
                let blocks = draft.shown(rest, shown);
                draft.user(blocks, None);
            }
            Some("model" | "assistant") => {
                let blocks =
                    parts.iter().filter_map(|(place, piece)| answer_part(place, piece, draft)).collect();
                draft.answer(place, blocks, None);
            }
            Some("system") => {
                let blocks = draft.shown(parts, shown);
                let texts = draft.texts(place, blocks);
                draft.system(&texts.join("\n\n"));
            }
            Some(role) => draft.report.add(place.as_str(), format!("role {role:?}")),
        }
    }
    Ok(())
}

/// The block for a part of a message of a user, a tool or the system.
fn shown(part: &Object) -> Noted {
    if let Some(text) = json::text(part, "text") {
        return (text_block(text), None);
    }
    if let Some(blob) = get_object(part, "inlineData", "inline_data") {
        let mime = get_text(blob, "mimeType", "mime_type").unwrap_or_default();
        return json::image(mime, json::text(blob, "data").unwrap_or_default());
    }
    if let Some(file) = get_object(part, "fileData", "file_data") {
        let mime = get_text(file, "mimeType", "mime_type").unwrap_or_default();
        if mime.starts_with("image/") {
            let uri = get_text(file, "fileUri", "file_uri").unwrap_or_default();
            let (mut block, note) = json::image_at(uri, None);
            if let Some(ContentBlock::ImageUrl(image)) = &mut block {
                image.mime_type = Some(mime.to_owned());
            }
            return (block, note);
        }
    }
    (None, Some(unknown(part)))
}

/// Describes a part that has no equivalent here.
fn unknown(part: &Object) -> String {
    let is_data =
        |key: &&String| !matches!(key.as_str(), "thought" | "thoughtSignature" | "thought_signature");
    match part.keys().find(is_data) {
        Some(key) => format!("part with {key:?}"),
        None => "empty part".to_owned(),
    }
}

fn result(place: String, part: &Object, draft: &mut Draft) -> Result<RawResult, ImportError> {
    let empty = Object::new();
    let raw = get_object(part, "functionResponse", "function_response").unwrap_or(&empty);
    let (said, is_error) = match raw.get("response") {
        None | Some(Value::Null) => (String::new(), false),
        Some(Value::String(text)) => (text.clone(), false),
        Some(Value::Object(response)) => outcome(response),
        Some(other) => (other.to_string(), false),
    };
    let mut content: Vec<ContentBlock> = text_block(&said).into_iter().collect();
    content.extend(draft.shown(pieces(&format!("{place}.functionResponse.parts"), raw.get("parts"))?, shown));
    Ok(RawResult {
        place,
        id: json::text(raw, "id").unwrap_or_default().to_owned(),
        name: json::text(raw, "name").unwrap_or_default().to_owned(),
        content: texts_first(content),
        is_error,
    })
}

/// The text of a response, and whether it is an error. Responses can be any
/// object; by convention all its content is in `output` or `error`, and libraries
/// write `result`.
fn outcome(response: &Object) -> (String, bool) {
    let mut fields = response.iter();
    match (fields.next(), fields.next()) {
        (None, _) => (String::new(), false),
        (Some((key, Value::String(text))), None) if ["output", "result", "error"].contains(&key.as_str()) => {
            (text.clone(), key == "error")
        }
        _ => {
            let is_error = response.get("error").is_some_and(|error| !error.is_null());
            (Value::Object(response.clone()).to_string(), is_error)
        }
    }
}

fn answer_part(place: &str, piece: &Piece<'_>, draft: &mut Draft) -> Option<AssistantBlock> {
    let part = match piece {
        Piece::Text(text) => {
            return (!text.trim().is_empty()).then(|| AssistantBlock::Text(Text::new(*text)));
        }
        Piece::Part(part) => part,
    };
    let signature =
        get_text(part, "thoughtSignature", "thought_signature").filter(|signature| !signature.is_empty());
    let signature = signature.map(str::to_owned);
    if let Some(function) = get_object(part, "functionCall", "function_call") {
        let Some(name) = filled(function, "name") else {
            draft.report.add(place, "call without a name");
            return None;
        };
        let args = function.get("args").or_else(|| function.get("arguments"));
        let id = json::text(function, "id").unwrap_or_default();
        let mut call = call(id, name, args);
        if call.arguments.get(WRAPPED).is_some() && !args.is_some_and(Value::is_object) {
            draft.report.add(place, NO_OBJECT);
        }
        call.thought_signature = signature;
        return Some(AssistantBlock::ToolCall(call));
    }
    let is_data =
        |key: &String| !matches!(key.as_str(), "text" | "thought" | "thoughtSignature" | "thought_signature");
    if part.get("text").is_none() && part.keys().any(is_data) {
        draft.report.add(place, unknown(part));
        return None;
    }
    let said = json::text(part, "text").unwrap_or_default();
    if said.trim().is_empty() && signature.is_none() {
        return None;
    }
    Some(if part.get("thought").and_then(Value::as_bool) == Some(true) {
        AssistantBlock::Thinking(Thinking { thinking_signature: signature, ..Thinking::new(said) })
    } else {
        AssistantBlock::Text(Text { text_signature: signature, ..Text::new(said) })
    })
}

pub(super) fn write(plan: &mut Plan<'_>) -> (Object, Vec<Value>) {
    let mut fields = Object::new();
    if !plan.system.is_empty() {
        fields.insert("systemInstruction".to_owned(), json!({"parts": [{"text": plan.system}]}));
    }
    let mut contents = Vec::with_capacity(plan.steps.len());
    for step in std::mem::take(&mut plan.steps) {
        match step {
            // All of them are in the prompt before the conversation.
            Step::System { .. } => {}
            Step::User { place, content, name } => {
                Plan::drop_name(&mut plan.report, &place, name);
                let parts = content.iter().filter_map(|block| part(block)).collect();
                add(&mut contents, "user", parts);
            }
            Step::Answer(answer) => {
                Plan::drop_name(&mut plan.report, &answer.place, answer.name);
                add(&mut contents, "model", answer_parts(&answer, plan));
                add(&mut contents, "user", answer.results.iter().map(response).collect());
            }
        }
    }
    (fields, contents)
}

/// Adds parts; roles must alternate, so parts of the same side are joined.
fn add(contents: &mut Vec<Value>, role: &str, mut parts: Vec<Value>) {
    if parts.is_empty() {
        return;
    }
    if let Some(Value::Object(last)) = contents.last_mut()
        && json::text(last, "role") == Some(role)
        && let Some(Value::Array(known)) = last.get_mut("parts")
    {
        known.append(&mut parts);
        return;
    }
    contents.push(json!({"role": role, "parts": parts}));
}

/// The text form of `block`, for texts and for URLs without a media type.
fn said(block: &ContentBlock) -> Option<Cow<'_, str>> {
    match block {
        ContentBlock::Text(text) => Some(Cow::Borrowed(text.text.as_str())),
        ContentBlock::ImageUrl(image) if image.media_type().is_none() => Some(Cow::Owned(image.label())),
        ContentBlock::Image(_) | ContentBlock::ImageUrl(_) | ContentBlock::Unknown(_) => None,
    }
}

fn part(block: &ContentBlock) -> Option<Value> {
    if let Some(text) = said(block) {
        return Some(json!({"text": text}));
    }
    match block {
        ContentBlock::Image(image) => {
            Some(json!({"inlineData": {"mimeType": image.mime_type, "data": image.data}}))
        }
        ContentBlock::ImageUrl(image) => {
            Some(json!({"fileData": {"mimeType": image.media_type(), "fileUri": image.url()}}))
        }
        ContentBlock::Text(_) | ContentBlock::Unknown(_) => None,
    }
}

fn answer_parts(answer: &Answer<'_>, plan: &mut Plan<'_>) -> Vec<Value> {
    let mut parts = Vec::with_capacity(answer.blocks.len());
    for block in &answer.blocks {
        let (mut part, signature) = match block {
            Block::Text { text, signature, .. } => (json!({"text": text}), *signature),
            Block::Thinking { thinking, .. } => {
                let signature = thinking.thinking_signature.as_deref();
                (json!({"text": thinking.thinking, "thought": true}), signature)
            }
            Block::Call { place, id, call, signature } => {
                if call.arguments_error.is_some() || !call.arguments.is_object() {
                    plan.report.add(place.as_str(), NO_OBJECT);
                }
                (json!({"functionCall": {"id": id, "name": call.name, "args": arguments(call)}}), *signature)
            }
        };
        if let Some(signature) = signature.filter(|signature| !signature.is_empty()) {
            part["thoughtSignature"] = Value::from(signature);
        }
        parts.push(part);
    }
    parts
}

fn response(result: &Outcome<'_>) -> Value {
    let texts: Vec<Cow<'_, str>> = result.content.iter().filter_map(|block| said(block)).collect();
    let images = result.content.iter().filter(|block| said(block).is_none());
    let images: Vec<Value> = images.filter_map(|block| part(block)).collect();
    let key = if result.is_error { "error" } else { "output" };
    let mut response = json!({"id": result.id, "name": result.name, "response": {key: texts.join("\n")}});
    if !images.is_empty() {
        response["parts"] = Value::Array(images);
    }
    json!({"functionResponse": response})
}
