//! Parses text into the messages of one request, in any supported wrapping.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::Format;
use super::json::{Object, filled, kind};
use super::report::Report;
use crate::ai::messages::partial_json;

/// Why a text cannot be imported.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum ImportError {
    #[error("it is empty")]
    Empty,
    #[error("it is neither JSON nor JSON lines: {0}")]
    NotJson(serde_json::Error),
    #[error("line {line} is not JSON: {source}")]
    BadLine { line: usize, source: serde_json::Error },
    #[error("{place}: expected {expected}, found {found}")]
    Shape { place: String, expected: &'static str, found: &'static str },
    /// The conversation is in another format; the names are those
    /// of [`Format::name`].
    #[error("it is not in {wanted} format; it looks like {found}")]
    LooksLike { wanted: &'static str, found: &'static str },
    #[error("{0} mixes requests with single messages")]
    Mixed(String),
    #[error("it contains no messages")]
    NoConversation,
}

impl ImportError {
    /// The error for a message without a role.
    pub(super) fn no_role(place: &str, message: &Object) -> Self {
        let found = message.get("role").map_or("none", kind);
        Self::Shape { place: place.to_owned(), expected: "a message with a \"role\"", found }
    }
}

/// A parsed request.
#[derive(Debug)]
pub(super) struct Document {
    pub(super) format: Format,
    /// The fields of the request other than its messages.
    pub(super) fields: Object,
    /// The messages or items, each with its path.
    pub(super) elements: Vec<(String, Object)>,
}

impl Document {
    /// The model of the request, without the collection in Google's names.
    pub(super) fn model(&self) -> &str {
        let model = filled(&self.fields, "model").unwrap_or_default();
        model.strip_prefix("models/").unwrap_or(model)
    }

    /// Reports fields that belong to the conversation but refer to data elsewhere or have
    /// no equivalent here. Generation options are not part of a conversation.
    pub(super) fn note_fields(&self, report: &mut Report) {
        if let Some(tools) = self.fields.get("tools").or_else(|| self.fields.get("functions"))
            && tools.as_array().is_none_or(|tools| !tools.is_empty())
        {
            report.add("tools", "tool definitions; pi uses its own tools");
        }
        const ELSEWHERE: [&str; 6] = [
            "previous_response_id",
            "conversation",
            "prompt",
            "cachedContent",
            "cached_content",
            "container",
        ];
        for field in ELSEWHERE {
            if self.fields.get(field).is_some_and(|value| !value.is_null()) {
                report.add(field, "refers to data only the provider has");
            }
        }
    }
}

/// The names of the message list in the three services.
const LISTS: [&str; 3] = ["messages", "input", "contents"];

/// The names of the request within a line of their batch files.
const WRAPPERS: [&str; 3] = ["body", "params", "request"];

pub(super) fn read(wanted: Format, text: &str, report: &mut Report) -> Result<Document, ImportError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim().is_empty() {
        return Err(ImportError::Empty);
    }
    let (fields, list, elements) = match parse(text) {
        Ok(value) => request(value)?,
        Err(error) => lines(text, error, report)?,
    };
    let is_session = |(_, element): &Element| element.get("type").and_then(Value::as_str) == Some("session");
    if elements.first().is_some_and(is_session) {
        return Err(ImportError::LooksLike { wanted: wanted.name(), found: "a session of pi" });
    }
    let found = Signs::of(&fields, list, &elements).format(wanted)?;
    let elements = elements.into_iter().map(|(place, value)| match value {
        Value::Object(element) => Ok((place.unwrap_or_else(|at| format!("{}[{at}]", found.list())), element)),
        other => Err(ImportError::Shape {
            place: place.unwrap_or_else(|at| format!("{}[{at}]", found.list())),
            expected: "a message, which is an object",
            found: kind(&other),
        }),
    });
    Ok(Document { format: found, elements: elements.collect::<Result<_, _>>()?, fields })
}

/// Parses JSON; lone surrogates, which some programs write, are replaced.
fn parse(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(text).or_else(|error| match partial_json::replace_lone_surrogates(text) {
        Cow::Borrowed(_) => Err(error),
        Cow::Owned(whole) => serde_json::from_str(&whole).map_err(|_| error),
    })
}

/// A message with its position: its path or its line number.
type Element = (Result<String, usize>, Value);

/// Fields, the name of the list if there is one, and elements.
type Request = (Object, Option<&'static str>, Vec<Element>);

fn request(value: Value) -> Result<Request, ImportError> {
    let numbered =
        |list: Vec<Value>| list.into_iter().enumerate().map(|(at, value)| (Err(at), value)).collect();
    match value {
        Value::Array(list) => Ok((Object::new(), None, numbered(list))),
        Value::Object(object) => match unwrap(object) {
            Ok((list, mut fields)) => {
                let elements = match fields.shift_remove(list) {
                    Some(Value::Array(elements)) => numbered(elements),
                    // Shorthands of Responses and of Google's libraries.
                    Some(Value::String(text)) if list == "input" => {
                        vec![(Ok(list.to_owned()), json!({"role": "user", "content": text}))]
                    }
                    Some(Value::String(text)) if list == "contents" => {
                        vec![(Ok(list.to_owned()), json!({"role": "user", "parts": [{"text": text}]}))]
                    }
                    Some(content @ Value::Object(_)) if list == "contents" => numbered(vec![content]),
                    other => {
                        return Err(ImportError::Shape {
                            place: list.to_owned(),
                            expected: "a list of messages",
                            found: kind(&other.unwrap_or_default()),
                        });
                    }
                };
                Ok((fields, Some(list), elements))
            }
            Err(object) if is_message(&object) => {
                Ok((Object::new(), None, numbered(vec![Value::Object(object)])))
            }
            Err(_) => Err(ImportError::Shape {
                place: "the document".to_owned(),
                expected: "a request with \"messages\", \"input\" or \"contents\", or a list of messages",
                found: "an object without them",
            }),
        },
        other => Err(ImportError::Shape {
            place: "the document".to_owned(),
            expected: "a request, or a list of messages",
            found: kind(&other),
        }),
    }
}

/// The request in `object`, which may be wrapped, and the name of its list.
fn unwrap(mut object: Object) -> Result<(&'static str, Object), Object> {
    for key in WRAPPERS {
        let is_request = |value: &Value| value.as_object().is_some_and(|inner| list_of(inner).is_some());
        if object.get(key).is_some_and(is_request)
            && let Some(Value::Object(inner)) = object.shift_remove(key)
        {
            object = inner;
            break;
        }
    }
    match list_of(&object) {
        Some(list) => Ok((list, object)),
        None => Err(object),
    }
}

fn list_of(object: &Object) -> Option<&'static str> {
    // An item of Responses can have an `input` of its own.
    let is_list = |list: &&str| object.contains_key(*list) && !(*list == "input" && is_message(object));
    LISTS.into_iter().find(is_list)
}

fn is_message(object: &Object) -> bool {
    ["role", "type", "parts"].into_iter().any(|key| object.contains_key(key))
}

/// Parses JSON lines. `error` is the reason why the text is not a single document.
fn lines(text: &str, error: serde_json::Error, report: &mut Report) -> Result<Request, ImportError> {
    let mut requests: Vec<(usize, Object)> = Vec::new();
    let mut messages: Vec<Element> = Vec::new();
    let rows = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    for (line_idx, line) in rows {
        let line_no = line_idx + 1;
        let value = match parse(line) {
            Ok(value) => value,
            // A document whose first line is invalid is not JSON lines.
            Err(_) if requests.is_empty() && messages.is_empty() => return Err(ImportError::NotJson(error)),
            Err(source) => return Err(ImportError::BadLine { line: line_no, source }),
        };
        match value {
            Value::Object(object) => match unwrap(object) {
                Ok((_, request)) => requests.push((line_no, request)),
                Err(object) => messages.push((Ok(format!("line {line_no}")), Value::Object(object))),
            },
            other => messages.push((Ok(format!("line {line_no}")), other)),
        }
        if !requests.is_empty() && !messages.is_empty() {
            return Err(ImportError::Mixed(format!("line {line_no}")));
        }
    }
    let Some((_, last)) = requests.pop() else { return Ok((Object::new(), None, messages)) };
    for (line_no, _) in &requests {
        report.add(format!("line {line_no}"), "earlier request; pi reads only the last one");
    }
    request(Value::Object(last))
}

/// Evidence for a format.
#[derive(Debug, Default)]
struct Signs {
    chat: bool,
    responses: bool,
    anthropic: bool,
    google: bool,
    /// Messages have `content` instead of `parts`.
    has_content: bool,
}

impl Signs {
    fn of(fields: &Object, list: Option<&str>, elements: &[Element]) -> Self {
        let has = |keys: &[&str]| keys.iter().any(|key| fields.contains_key(*key));
        let mut signs = Self {
            responses: list == Some("input") || has(&["instructions", "previous_response_id"]),
            google: list == Some("contents")
                || has(&["systemInstruction", "system_instruction", "generationConfig", "generation_config"]),
            anthropic: has(&["system", "anthropic_version", "anthropic_beta"]),
            ..Self::default()
        };
        for (_, element) in elements {
            if let Value::Object(element) = element {
                signs.look_at(element);
            }
        }
        signs
    }

    fn look_at(&mut self, element: &Object) {
        let role = filled(element, "role").unwrap_or_default();
        self.google |= element.contains_key("parts") || role == "model";
        self.has_content |= element.contains_key("content");
        self.chat |= matches!(role, "tool" | "function") && !element.contains_key("parts")
            || ["tool_calls", "function_call", "tool_call_id", "reasoning_content", "reasoning_details"]
                .iter()
                .any(|key| element.get(*key).is_some_and(|value| !value.is_null()));
        // Anthropic's answers are of type `message` too.
        self.responses |= role.is_empty()
            && !element.contains_key("parts")
            && filled(element, "type").is_some_and(|kind| kind != "message");
        let Some(Value::Array(parts)) = element.get("content") else { return };
        for part in parts.iter().filter_map(Value::as_object) {
            match filled(part, "type").unwrap_or_default() {
                "image_url" | "input_audio" | "file" | "video_url" => self.chat = true,
                "input_text" | "input_image" | "input_file" | "output_text" => self.responses = true,
                "tool_use" | "tool_result" | "redacted_thinking" | "server_tool_use" => self.anthropic = true,
                "image" | "document" => self.anthropic |= part.contains_key("source"),
                "thinking" => self.anthropic |= part.contains_key("signature"),
                _ => {}
            }
        }
    }

    /// The detected format, if it can be the `wanted` one or its sibling.
    fn format(&self, wanted: Format) -> Result<Format, ImportError> {
        let looks_like = |found| Err(ImportError::LooksLike { wanted: wanted.name(), found });
        let openai = self.chat || self.responses;
        match wanted {
            Format::OpenAiChat | Format::OpenAiResponses => match self {
                Self { chat: true, .. } if wanted == Format::OpenAiChat || !self.responses => {
                    Ok(Format::OpenAiChat)
                }
                Self { responses: true, .. } => Ok(Format::OpenAiResponses),
                Self { anthropic: true, .. } => looks_like(Format::Anthropic.name()),
                Self { google: true, .. } => looks_like(Format::Google.name()),
                // Plain texts look alike in every format.
                _ => Ok(Format::OpenAiChat),
            },
            Format::Anthropic if self.anthropic => Ok(wanted),
            Format::Anthropic if self.google => looks_like(Format::Google.name()),
            Format::Anthropic if openai => looks_like(Format::OpenAiChat.name()),
            Format::Anthropic => Ok(wanted),
            Format::Google if self.google => Ok(wanted),
            Format::Google if self.anthropic => looks_like(Format::Anthropic.name()),
            Format::Google if openai => looks_like(Format::OpenAiChat.name()),
            Format::Google if self.has_content => looks_like("openai or anthropic"),
            Format::Google => Ok(wanted),
        }
    }
}
