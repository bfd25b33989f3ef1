//! Anthropic Messages: <https://docs.anthropic.com/en/api/messages>.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::document::{Document, ImportError};
use super::draft::{Draft, RawResult, SEE_IMAGE, images_of};
use super::json::{self, Noted, Object, Piece, filled, pieces, text, text_block};
use super::plan::{Answer, Block, Outcome, Plan, Step, WRAPPED, arguments};
use crate::ai::messages::{AssistantBlock, ContentBlock, Text, Thinking, ToolCall};

pub(super) fn read(document: &Document, draft: &mut Draft) -> Result<(), ImportError> {
    let prompt = draft.shown(pieces("system", document.fields.get("system"))?, shown);
    let texts = draft.texts("system", prompt);
    draft.system(&texts.join("\n\n"));
    for (place, message) in &document.elements {
        let content = pieces(&format!("{place}.content"), message.get("content"))?;
        match filled(message, "role") {
            Some("system") => {
                let blocks = draft.shown(content, shown);
                let texts = draft.texts(place, blocks);
                draft.system(&texts.join("\n\n"));
            }
            Some("user") => {
                // Results come before the user's text in the same message.
                let is_result = |piece: &Piece<'_>| matches!(piece, Piece::Part(part) if text(part, "type") == Some("tool_result"));
                let (results, rest): (Vec<_>, Vec<_>) =
                    content.into_iter().partition(|(_, piece)| is_result(piece));
                for (place, piece) in results {
                    if let Piece::Part(part) = piece {
                        let result = result(place, part, draft)?;
                        draft.result(result);
                    }
                }
                let blocks = draft.shown(rest, shown);
                draft.user(blocks, filled(message, "name"));
            }
            Some("assistant") => {
                let blocks =
                    content.iter().filter_map(|(place, piece)| answer_block(place, piece, draft)).collect();
                draft.answer(place, blocks, filled(message, "name"));
            }
            Some(role) => draft.report.add(place.as_str(), format!("role {role:?}")),
            None => return Err(ImportError::no_role(place, message)),
        }
    }
    Ok(())
}

/// The block for a part of a message of a user, a tool or the system.
fn shown(part: &Object) -> Noted {
    let source = part.get("source").and_then(Value::as_object);
    let source_kind = source.and_then(|source| text(source, "type")).unwrap_or_default();
    let of_source = |key: &str| source.and_then(|source| text(source, key)).unwrap_or_default();
    match (filled(part, "type"), source_kind) {
        (Some("text") | None, _) if part.contains_key("text") => {
            (text(part, "text").and_then(text_block), None)
        }
        (Some("image"), "base64") => json::image(of_source("media_type"), of_source("data")),
        (Some("image"), "url") => json::image_at(of_source("url"), None),
        (Some("document"), "text") => {
            (text_block(of_source("data")), Some("document; kept as text".to_owned()))
        }
        (Some("image"), _) => (None, Some("image that only the provider has".to_owned())),
        (Some("document"), _) => (None, Some("document".to_owned())),
        (Some(other), _) => (None, Some(format!("block of type {other:?}"))),
        (None, _) => (None, Some("block without a type".to_owned())),
    }
}

fn result(place: String, part: &Object, draft: &mut Draft) -> Result<RawResult, ImportError> {
    let content = draft.shown(pieces(&format!("{place}.content"), part.get("content"))?, shown);
    let is_error = part.get("is_error").and_then(Value::as_bool).unwrap_or_default();
    // An error cannot contain images; they move behind it and thereby after its texts.
    let has_images = content.iter().any(|block| block.as_text().is_none());
    let content = if is_error && has_images { texts_before_images(content) } else { content };
    Ok(RawResult {
        place,
        id: text(part, "tool_use_id").unwrap_or_default().to_owned(),
        name: String::new(),
        content,
        is_error,
    })
}

fn texts_before_images(content: Vec<ContentBlock>) -> Vec<ContentBlock> {
    let (mut texts, images): (Vec<ContentBlock>, Vec<ContentBlock>) =
        content.into_iter().partition(|block| block.as_text().is_some());
    texts.extend(images);
    texts
}

fn answer_block(place: &str, piece: &Piece<'_>, draft: &mut Draft) -> Option<AssistantBlock> {
    let said = |text: &str| (!text.trim().is_empty()).then(|| AssistantBlock::Text(Text::new(text)));
    let part = match piece {
        Piece::Text(text) => return said(text),
        Piece::Part(part) => part,
    };
    let what = match filled(part, "type") {
        Some("text") | None if part.contains_key("text") => {
            if part.get("citations").and_then(Value::as_array).is_some_and(|list| !list.is_empty()) {
                draft.report.add(place, "citations");
            }
            return text(part, "text").and_then(said);
        }
        Some("thinking") => {
            let signature = filled(part, "signature").map(str::to_owned);
            let thinking = text(part, "thinking").unwrap_or_default();
            let is_something = signature.is_some() || !thinking.trim().is_empty();
            let thinking = Thinking { thinking_signature: signature, ..Thinking::new(thinking) };
            return is_something.then_some(AssistantBlock::Thinking(thinking));
        }
        Some("redacted_thinking") => {
            let data = filled(part, "data")?.to_owned();
            let thinking = Thinking { thinking_signature: Some(data), redacted: true, ..Thinking::default() };
            return Some(AssistantBlock::Thinking(thinking));
        }
        Some("tool_use") => match filled(part, "name") {
            Some(name) => {
                let id = text(part, "id").unwrap_or_default();
                let call = call(id, name, part.get("input"));
                if call.arguments.get(WRAPPED).is_some()
                    && !matches!(part.get("input"), Some(Value::Object(_)))
                {
                    draft.report.add(place, NO_OBJECT);
                }
                return Some(AssistantBlock::ToolCall(call));
            }
            None => "call without a name".to_owned(),
        },
        Some(other) => format!("block of type {other:?}"),
        None => "block without a type".to_owned(),
    };
    draft.report.add(place, what);
    None
}

/// The note on arguments that had to be wrapped.
pub(super) const NO_OBJECT: &str = "arguments that are not an object; wrapped in one";

/// A call whose arguments must be an object. A string is parsed; any other value
/// is wrapped in an object.
pub(super) fn call(id: &str, name: &str, input: Option<&Value>) -> ToolCall {
    let wrapped = |value: &Value| Object::from_iter([(WRAPPED.to_owned(), value.clone())]);
    let arguments = match input {
        None | Some(Value::Null) => Object::new(),
        Some(Value::Object(arguments)) => arguments.clone(),
        Some(value @ Value::String(text)) => {
            let read = ToolCall::from_text(id, name, text);
            if read.arguments_error.is_none() {
                return read;
            }
            wrapped(value)
        }
        Some(other) => wrapped(other),
    };
    ToolCall::new(id, name, arguments)
}

pub(super) fn write(plan: &mut Plan<'_>) -> (Object, Vec<Value>) {
    let mut fields = Object::new();
    if !plan.system.is_empty() {
        fields.insert("system".to_owned(), Value::from(plan.system.as_str()));
    }
    let mut messages = Vec::with_capacity(plan.steps.len());
    for step in std::mem::take(&mut plan.steps) {
        match step {
            Step::System { place, text } => {
                plan.report.add(place, "later system message, which only newer models accept there");
                messages.push(json!({"role": "system", "content": text}));
            }
            Step::User { place, content, name } => {
                Plan::drop_name(&mut plan.report, &place, name);
                let content: Vec<&ContentBlock> = content.iter().map(Cow::as_ref).collect();
                messages.push(json!({"role": "user", "content": blocks(&content)}));
            }
            Step::Answer(answer) => {
                Plan::drop_name(&mut plan.report, &answer.place, answer.name);
                let content = answer_blocks(&answer, plan);
                if !content.is_empty() {
                    messages.push(json!({"role": "assistant", "content": content}));
                }
                let results = results(&answer.results);
                if !results.is_empty() {
                    messages.push(json!({"role": "user", "content": results}));
                }
            }
        }
    }
    (fields, messages)
}

/// A string if the content is a single text.
fn blocks(content: &[&ContentBlock]) -> Value {
    match content {
        [ContentBlock::Text(text)] => Value::from(text.text.as_str()),
        content => content.iter().filter_map(|block| self::block(block)).collect(),
    }
}

fn block(block: &ContentBlock) -> Option<Value> {
    match block {
        ContentBlock::Text(text) => Some(text_value(&text.text)),
        ContentBlock::Image(image) => Some(json!({"type": "image", "source":
            {"type": "base64", "media_type": image.mime_type, "data": image.data}})),
        ContentBlock::ImageUrl(image) => {
            Some(json!({"type": "image", "source": {"type": "url", "url": image.url()}}))
        }
        ContentBlock::Unknown(_) => None,
    }
}

fn text_value(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn answer_blocks(answer: &Answer<'_>, plan: &mut Plan<'_>) -> Vec<Value> {
    let mut content = Vec::with_capacity(answer.blocks.len());
    for block in &answer.blocks {
        match block {
            // It exists only for its signature, and this format has no field for it.
            Block::Text { text, .. } if text.trim().is_empty() => {}
            Block::Text { text, .. } => content.push(text_value(text)),
            Block::Thinking { place, thinking } => {
                let signature = thinking.thinking_signature.as_deref().unwrap_or_default();
                if thinking.redacted {
                    content.push(json!({"type": "redacted_thinking", "data": signature}));
                    continue;
                }
                if signature.is_empty() {
                    plan.report
                        .add(place.as_str(), "thinking without a signature, which Anthropic itself rejects");
                }
                let said = &thinking.thinking;
                content.push(json!({"type": "thinking", "thinking": said, "signature": signature}));
            }
            Block::Call { place, id, call, .. } => {
                if call.arguments_error.is_some() || !call.arguments.is_object() {
                    plan.report.add(place.as_str(), NO_OBJECT);
                }
                content
                    .push(json!({"type": "tool_use", "id": id, "name": call.name, "input": arguments(call)}));
            }
        }
    }
    content
}

/// The results, then the images that errors cannot contain.
fn results(results: &[Outcome<'_>]) -> Vec<Value> {
    let mut blocks = Vec::with_capacity(results.len());
    let mut moved = Vec::new();
    for result in results {
        let mut content: Vec<Value> = Vec::with_capacity(result.content.len());
        let mut images = Vec::new();
        for block in &result.content {
            let values = if result.is_error && block.is_image() { &mut images } else { &mut content };
            values.extend(self::block(block));
        }
        if !images.is_empty() {
            if content.is_empty() {
                content.push(text_value(SEE_IMAGE));
            }
            moved.push(text_value(&images_of(&result.id)));
            moved.append(&mut images);
        }
        let mut value = json!({"type": "tool_result", "tool_use_id": result.id, "content": content});
        if result.is_error {
            value["is_error"] = Value::Bool(true);
        }
        blocks.push(value);
    }
    blocks.append(&mut moved);
    blocks
}
