//! The wire APIs: how a request is written and its answer read.
//!
//! Each API is a folder `{mod, encode, decode, wire}` and a row in [`APIS`].
//! Encoding and decoding are pure; `http_provider` owns all between them:
//! sending, framing, timeouts, cancellation and the final `Done`. The invariant
//! of every decoder: a tool call whose arguments did not arrive whole has
//! `arguments_error` set, so it cannot be run.

mod anthropic;
mod azure;
mod bedrock;
mod google;
mod openai_chat;
mod openai_responses;
mod vertex;

use std::borrow::Cow;
use std::collections::BTreeMap;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ai::failure::{ErrorBody, clip};
use crate::ai::messages::{
    Api, AssistantBlock, BlockKind, Extra, StopReason, StreamEvent, Text, Thinking, ThinkingLevel, ToolCall,
    Usage, partial_json, replace_lone_surrogates, supported_apis,
};
use crate::ai::models::{Dialect, Model};
use crate::ai::requests::{Prompt, Request, StreamOptions, StrictTools, Turn, Unmet};
use crate::ai::transport::{Framing, HttpRequest, SseFrame};

pub(super) use google::json_schema as google_schema;
pub(super) use openai_responses::TextSignature;

/// The two pure halves of a wire API.
pub(super) trait WireApi: Send + Sync {
    /// Where requests to this model go.
    fn url(&self, request: &Request) -> Result<String, EncodeError>;
    fn encode(&self, request: &Request) -> Result<Encoded, EncodeError>;
    fn decoder(&self, request: &Request) -> Box<dyn Decode>;

    /// How answers are cut into frames.
    fn framing(&self) -> Framing {
        Framing::Text
    }

    /// Puts into `encoded` what depends on the time it is sent at, milliseconds
    /// since the Unix epoch. Called before every attempt.
    fn sign(&self, _request: &Request, _encoded: &mut HttpRequest, _now_ms: u64) -> Result<(), EncodeError> {
        Ok(())
    }

    /// How much to think, in the service's word, if the request says it between
    /// the turns: it goes into the answer, so that later requests can repeat it.
    fn told_effort(&self, _request: &Request) -> Option<String> {
        None
    }

    /// What the user can do about `error`, the text of a request refused.
    fn hint(&self, _request: &Request, _error: &str) -> Option<String> {
        None
    }
}

/// Reads one answer.
pub(super) trait Decode: Send {
    /// Takes one frame and appends the events it completes.
    ///
    /// # Errors
    /// Nothing more is to be fed, but [`Self::finish`] still tells what came before.
    fn frame(&mut self, frame: &SseFrame<'_>, out: &mut Vec<StreamEvent>) -> Result<(), DecodeError>;

    /// Whether the server has said all it has to say; it may keep the connection open.
    fn is_complete(&self) -> bool;

    /// What the answer costs, compared with the model's listed prices.
    fn price_factor(&self) -> f64 {
        1.0
    }

    /// Whether `document`, which came outside of any frame, is a frame's data
    /// all the same. Only asked about what is no error.
    fn reads_document(&self, _document: &Value) -> bool {
        false
    }

    /// Closes all blocks and sums up, once no more frames come.
    fn finish(self: Box<Self>, end: End, out: &mut Vec<StreamEvent>) -> Finish;
}

/// How the frames came to an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// The server closed the stream. It may still lack its terminal marker.
    Closed,
    /// The connection broke. An answer whose terminal marker had come is whole.
    Lost,
    /// Cancelled, failed or not understood: nothing after this point was read.
    Cut,
}

/// What an answer amounts to. After [`End::Cut`] the caller knows the reason better.
#[derive(Debug)]
pub(super) struct Finish {
    pub(super) content: Vec<AssistantBlock>,
    pub(super) usage: Usage,
    /// `Error` comes with its text.
    pub(super) outcome: Result<StopReason, String>,
    pub(super) response_id: Option<String>,
    /// The model that answered, if it is not the one asked for.
    pub(super) response_model: Option<String>,
    pub(super) raw_stop_reason: Option<String>,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum DecodeError {
    /// The data of a frame is not what the API defines, or cut off.
    #[error("the stream carried malformed JSON: {0}")]
    Malformed(#[from] serde_json::Error),
    /// The server reports an error, or breaks the protocol.
    #[error("{0}")]
    Failed(String),
}

#[derive(Debug, thiserror::Error)]
pub(super) enum EncodeError {
    #[error("the header {0:?} cannot be sent: its name or value has characters HTTP does not allow")]
    Header(String),
    #[error("{0} has no address; set \"baseUrl\" in models.json")]
    NoAddress(String),
    #[error("no project for Vertex AI; set GOOGLE_CLOUD_PROJECT and GOOGLE_CLOUD_LOCATION")]
    NoPlace,
    #[error(transparent)]
    Strict(#[from] Unmet),
    #[error("the request cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

/// A request but for its address.
#[derive(Debug, PartialEq)]
pub(super) struct Encoded {
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

/// The codec of each API this program speaks, by name.
const APIS: &[(Api, &'static dyn WireApi)] = &[
    (Api::ANTHROPIC_MESSAGES, &anthropic::AnthropicMessages { host: anthropic::Host::Direct }),
    (Api::ANTHROPIC_VERTEX, &anthropic::AnthropicMessages { host: anthropic::Host::Vertex }),
    (Api::BEDROCK_CONVERSE_STREAM, &bedrock::BedrockConverse),
    (Api::GOOGLE_GENERATIVE_AI, &google::GoogleGenerativeAi),
    (Api::GOOGLE_VERTEX, &google::GoogleVertex),
    (Api::OPENAI_COMPLETIONS, &openai_chat::OpenAiChat { path: "/chat/completions" }),
    (Api::MISTRAL_CONVERSATIONS, &openai_chat::OpenAiChat { path: "/v1/chat/completions" }),
    (Api::OPENAI_RESPONSES, &openai_responses::OpenAiResponses { path: "/responses" }),
    (Api::OPENAI_CODEX_RESPONSES, &openai_responses::OpenAiResponses { path: "/codex/responses" }),
    (Api::AZURE_OPENAI_RESPONSES, &openai_responses::OpenAiResponses { path: "/responses" }),
];

pub(super) fn find(api: &Api) -> Option<&'static dyn WireApi> {
    APIS.iter().find(|(name, _)| name == api).map(|(_, codec)| *codec)
}

/// What to tell people about an API that is not in the table.
pub(super) fn unsupported(api: &Api) -> String {
    format!("the API {:?} is not supported; supported are {}", api.as_str(), supported_apis().join(", "))
}

/// `base` and `path` as one URL; a version both have is not repeated.
fn join_url(base: &str, path: &str) -> String {
    let base = base.trim_end_matches('/');
    let base = if path.starts_with("/v1/") { base.strip_suffix("/v1").unwrap_or(base) } else { base };
    format!("{base}{path}")
}

/// Headers by name; a later header replaces an earlier one.
#[derive(Debug, Default)]
struct Headers(HeaderMap);

impl Headers {
    fn set(&mut self, name: &str, value: &str) -> Result<(), EncodeError> {
        let refused = || EncodeError::Header(name.to_owned());
        let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| refused())?;
        self.0.insert(key, HeaderValue::from_str(value.trim()).map_err(|_| refused())?);
        Ok(())
    }

    /// Marks a value that must not be printed.
    fn set_secret(&mut self, name: &str, value: &str) -> Result<(), EncodeError> {
        self.set(name, value)?;
        if let Some(value) = self.0.get_mut(name) {
            value.set_sensitive(true);
        }
        Ok(())
    }

    fn set_bearer(&mut self, token: &str) -> Result<(), EncodeError> {
        self.set_secret("authorization", &format!("Bearer {token}"))
    }

    /// What Copilot asks of every request, whatever its API: who took the
    /// initiative, which decides what the account is charged, and what for.
    fn set_copilot(&mut self, prompt: &Prompt<'_>) -> Result<(), EncodeError> {
        let last = prompt.turns.iter().rev().find(|turn| !matches!(turn, Turn::System(_)));
        let by_user = matches!(last, Some(Turn::User(_)) | None);
        self.set("x-initiator", if by_user { "user" } else { "agent" })?;
        self.set("openai-intent", "conversation-edits")?;
        if prompt.has_images() {
            self.set("copilot-vision-request", "true")?;
        }
        Ok(())
    }

    fn extend(&mut self, headers: &BTreeMap<String, String>) -> Result<(), EncodeError> {
        headers.iter().try_for_each(|(name, value)| self.set(name, value))
    }
}

/// Writes `body`, with the fields of `extra` in place of its own; objects are
/// merged member by member.
fn write_body(body: &impl Serialize, extra: &Map<String, Value>) -> Result<Vec<u8>, EncodeError> {
    let bytes = serde_json::to_vec(body)?;
    if extra.is_empty() {
        return Ok(bytes);
    }
    let mut merged: Map<String, Value> = serde_json::from_slice(&bytes)?;
    merge(&mut merged, extra);
    Ok(serde_json::to_vec(&merged)?)
}

fn merge(base: &mut Map<String, Value>, over: &Map<String, Value>) {
    for (key, value) in over {
        match (base.get_mut(key), value) {
            (Some(Value::Object(old)), Value::Object(new)) => merge(old, new),
            _ => drop(base.insert(key.clone(), value.clone())),
        }
    }
}

/// The schema of a tool's arguments with the root that Anthropic and OpenAI insist
/// on: an object with properties and without alternatives.
pub(super) fn object_schema(schema: &Value) -> Cow<'_, Value> {
    const ALTERNATIVES: [&str; 3] = ["anyOf", "oneOf", "allOf"];
    let is_fine = schema.get("type").and_then(Value::as_str) == Some("object")
        && schema.get("properties").is_some_and(Value::is_object)
        && !ALTERNATIVES.iter().any(|key| schema.get(key).is_some());
    if is_fine {
        return Cow::Borrowed(schema);
    }
    let mut root = schema.as_object().cloned().unwrap_or_default();
    for key in ALTERNATIVES {
        root.remove(key);
    }
    root.insert("type".to_owned(), Value::from("object"));
    if !root.get("properties").is_some_and(Value::is_object) {
        root.insert("properties".to_owned(), Value::Object(Map::new()));
    }
    Cow::Owned(Value::Object(root))
}

/// The schemas that the service is to enforce.
///
/// Those of the tools of `prompt`, later ones included; none without a `dialect`,
/// which is where the service enforces no schemas.
fn strict_tools<'a>(
    request: &Request,
    prompt: &'a Prompt<'a>,
    dialect: Option<Dialect>,
) -> Result<StrictTools<'a>, EncodeError> {
    match dialect {
        Some(dialect) if !prompt.tools_are_history => {
            let only_required = request.options.without_strict_schemas;
            Ok(StrictTools::of(prompt.all_tools(), dialect, only_required)?)
        }
        _ => Ok(StrictTools::default()),
    }
}

/// The start of a session's id that OpenAI takes as the key of its cache.
fn cache_key(session: &str) -> &str {
    const MAX_CHARS: usize = 64;
    match session.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => &session[..end],
        None => session,
    }
}

/// The value a model's API uses for `level`, if the level is on and supported.
fn mapped_level(model: &Model, level: ThinkingLevel) -> String {
    match model.thinking_level_map.get(&level) {
        Some(Some(Value::String(name))) => name.clone(),
        Some(Some(value)) => value.to_string(),
        Some(None) | None => level.name().to_owned(),
    }
}

/// Thinking tokens of `level`, for APIs that count them: as many as the user set
/// for it, or else the usual number. Levels above `high` have its setting.
fn thinking_budget(options: &StreamOptions, level: ThinkingLevel) -> u64 {
    use ThinkingLevel::{High, Low, Max, Medium, Minimal, Off, Xhigh};
    if let Some(budget) = options.thinking_budgets.get(&level.min(High)) {
        return *budget;
    }
    match level {
        Off => 0,
        Minimal => 1_024,
        Low => 2_048,
        Medium => 8_192,
        High | Xhigh | Max => 16_384,
    }
}

/// As much of `budget` as leaves `model` room for an answer within `max_tokens`;
/// `None` if that is less than a model thinks with. Near the end of the window it
/// shrinks by steps: another budget in every request would cost the cached prompt,
/// just when it is largest.
fn fitting_budget(budget: u64, model: &Model, max_tokens: u64) -> Option<u64> {
    /// Fewest thinking tokens that Claude takes, and fewest left to answer with.
    const MIN: u64 = 1_024;
    let room = max_tokens.saturating_sub(MIN);
    let budget = budget.min(model.max_tokens.saturating_sub(MIN));
    if budget <= room {
        return (budget >= MIN).then_some(budget);
    }
    [65_536, 32_768, 16_384, 8_192, 4_096, 2_048, MIN].into_iter().find(|step| *step <= room)
}

/// Parses a frame and hands it to `read`, repaired if it is not JSON as it
/// stands: some servers write raw control characters, impossible escapes and
/// halves of surrogate pairs.
fn with_json<'a, T, R>(
    data: &'a str,
    repaired: &'a mut String,
    read: impl FnOnce(T) -> Result<R, DecodeError>,
) -> Result<R, DecodeError>
where
    T: Deserialize<'a>,
{
    let error = match replace_lone_surrogates(data) {
        Cow::Borrowed(_) => match serde_json::from_str(data) {
            Ok(parsed) => return read(parsed),
            Err(error) => {
                *repaired = partial_json::repair(data).into_owned();
                Some(error)
            }
        },
        // Halves in a part that is read later would not be an error before.
        Cow::Owned(whole) => {
            *repaired = partial_json::repair(&whole).into_owned();
            None
        }
    };
    read(serde_json::from_str(repaired).map_err(|again| error.unwrap_or(again))?)
}

/// The error that a frame with this data reports, as its text; `None` if it does
/// not look like one.
fn reported_error(data: &str) -> Option<DecodeError> {
    let whole = replace_lone_surrogates(data);
    let value = serde_json::from_str::<Value>(&partial_json::repair(&whole)).ok()?;
    let body = ErrorBody::from_json(&value)?;
    Some(DecodeError::Failed(body.in_stream()))
}

/// The same where the API has said that it is one.
fn error_of(data: &str) -> DecodeError {
    reported_error(data).unwrap_or_else(|| DecodeError::Failed(clip(data)))
}

/// A string of a frame, borrowed where it has no escapes.
///
/// A type of its own because `Option<Cow<str>>` always copies.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(transparent)]
struct Str<'a>(#[serde(borrow)] Cow<'a, str>);

impl Str<'_> {
    fn as_str(&self) -> &str {
        &self.0
    }
}

/// The text of an optional string, unless it is empty.
fn filled<'s>(text: Option<&'s Str<'_>>) -> Option<&'s str> {
    text.map(Str::as_str).filter(|text| !text.is_empty())
}

/// A count, in whatever number type the server writes it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Count(u64);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Count;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a number")
            }
            fn visit_u64<E>(self, count: u64) -> Result<Count, E> {
                Ok(Count(count))
            }
            fn visit_i64<E>(self, count: i64) -> Result<Count, E> {
                Ok(Count(u64::try_from(count).unwrap_or(0)))
            }
            fn visit_f64<E>(self, count: f64) -> Result<Count, E> {
                Ok(Count(count.max(0.0) as u64))
            }
            fn visit_str<E>(self, count: &str) -> Result<Count, E> {
                Ok(Count(count.trim().parse().unwrap_or(0)))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// Reads a field that is of use but not needed: of another type than it should
/// be, it counts as absent. An answer is not given up for it.
fn lenient<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de>,
{
    let raw = Option::<&'de serde_json::value::RawValue>::deserialize(deserializer)?;
    Ok(raw.and_then(|raw| serde_json::from_str(raw.get()).ok()))
}

/// The same for a string, without reading it twice: some are in every frame.
fn lenient_str<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Str<'de>>, D::Error> {
    use serde::de::{IgnoredAny, MapAccess, SeqAccess};

    struct Visitor;
    impl<'de> serde::de::Visitor<'de> for Visitor {
        type Value = Option<Str<'de>>;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("anything")
        }
        fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
            Ok(Some(Str(Cow::Borrowed(text))))
        }
        fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
            Ok(Some(Str(Cow::Owned(text.to_owned()))))
        }
        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(None)
        }
        fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
            Ok(None)
        }
        fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
            Ok(None)
        }
        fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
            Ok(None)
        }
        fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
            Ok(None)
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
            while items.next_element::<IgnoredAny>()?.is_some() {}
            Ok(None)
        }
        fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
            while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            Ok(None)
        }
    }
    deserializer.deserialize_any(Visitor)
}

/// What a service charges for this processing tier, compared with the standard one.
/// <https://openai.com/api/pricing>.
fn tier_factor(service_tier: Option<&str>, model: &str) -> f64 {
    match service_tier {
        Some("flex") => 0.5,
        Some("priority") if model.starts_with("gpt-5.5") => 2.5,
        Some("priority") => 2.0,
        _ => 1.0,
    }
}

/// The blocks of an answer while they are read. Keeps the whole content and
/// writes the events that tell of it.
#[derive(Debug, Default)]
struct Blocks {
    content: Vec<AssistantBlock>,
    /// Per block: argument text of a tool call so far.
    arguments: Vec<String>,
    open: Vec<bool>,
}

impl Blocks {
    fn start_text(&mut self, out: &mut Vec<StreamEvent>) -> usize {
        self.start(BlockKind::Text, AssistantBlock::Text(Text::default()), out)
    }

    fn start_thinking(&mut self, out: &mut Vec<StreamEvent>) -> usize {
        self.start(BlockKind::Thinking, AssistantBlock::Thinking(Thinking::default()), out)
    }

    fn start_call(&mut self, id: String, name: String, out: &mut Vec<StreamEvent>) -> usize {
        let call = ToolCall {
            id: id.clone(),
            name: name.clone(),
            arguments: Value::Object(Map::new()),
            thought_signature: None,
            arguments_error: None,
            extra: Extra::new(),
        };
        self.start(BlockKind::ToolCall { id, name }, AssistantBlock::ToolCall(call), out)
    }

    fn start(&mut self, kind: BlockKind, block: AssistantBlock, out: &mut Vec<StreamEvent>) -> usize {
        let index = self.content.len();
        self.content.push(block);
        self.arguments.push(String::new());
        self.open.push(true);
        out.push(StreamEvent::BlockStart { index, kind });
        index
    }

    /// Appends to an open block.
    fn push(&mut self, index: usize, text: Cow<'_, str>, out: &mut Vec<StreamEvent>) {
        if text.is_empty() || self.open.get(index) != Some(&true) {
            return;
        }
        match &mut self.content[index] {
            AssistantBlock::Text(block) => block.text.push_str(&text),
            AssistantBlock::Thinking(block) => block.thinking.push_str(&text),
            AssistantBlock::ToolCall(_) => self.arguments[index].push_str(&text),
            AssistantBlock::Unknown(_) => return,
        }
        out.push(StreamEvent::Delta { index, text: text.into_owned() });
    }

    fn thinking_mut(&mut self, index: usize) -> Option<&mut Thinking> {
        match self.content.get_mut(index)? {
            AssistantBlock::Thinking(thinking) => Some(thinking),
            AssistantBlock::Text(_) | AssistantBlock::ToolCall(_) | AssistantBlock::Unknown(_) => None,
        }
    }

    /// Puts `text`, if there is one, in place of what the pieces of an open
    /// block added up to.
    fn replace(&mut self, index: usize, text: Option<String>) {
        let Some(text) = text.filter(|_| self.is_open(index)) else { return };
        match &mut self.content[index] {
            AssistantBlock::Text(block) => block.text = text,
            AssistantBlock::Thinking(block) => block.thinking = text,
            AssistantBlock::ToolCall(_) => self.arguments[index] = text,
            AssistantBlock::Unknown(_) => {}
        }
    }

    fn is_open(&self, index: usize) -> bool {
        self.open.get(index) == Some(&true)
    }

    fn text_mut(&mut self, index: usize) -> Option<&mut Text> {
        match self.content.get_mut(index)? {
            AssistantBlock::Text(text) => Some(text),
            AssistantBlock::Thinking(_) | AssistantBlock::ToolCall(_) | AssistantBlock::Unknown(_) => None,
        }
    }

    fn call_mut(&mut self, index: usize) -> Option<&mut ToolCall> {
        match self.content.get_mut(index)? {
            AssistantBlock::ToolCall(call) => Some(call),
            AssistantBlock::Text(_) | AssistantBlock::Thinking(_) | AssistantBlock::Unknown(_) => None,
        }
    }

    fn has_calls(&self) -> bool {
        self.content.iter().any(|block| matches!(block, AssistantBlock::ToolCall(_)))
    }

    /// The argument text so far, for decoders that have to look at it.
    fn arguments(&self, index: usize) -> &str {
        self.arguments.get(index).map_or("", String::as_str)
    }

    /// Ends a block that arrived whole.
    fn end(&mut self, index: usize, out: &mut Vec<StreamEvent>) {
        self.end_as(index, true, out);
    }

    /// Ends a block of which more was to come.
    fn cut(&mut self, index: usize, out: &mut Vec<StreamEvent>) {
        self.end_as(index, false, out);
    }

    /// Ends a call with arguments that count before their text; an error says
    /// why there are none.
    fn end_call(&mut self, index: usize, arguments: Result<Value, String>, out: &mut Vec<StreamEvent>) {
        match self.open.get_mut(index) {
            Some(open) if *open => *open = false,
            _ => return,
        }
        let text = std::mem::take(&mut self.arguments[index]);
        if let AssistantBlock::ToolCall(call) = &mut self.content[index] {
            match arguments {
                Ok(arguments) => call.arguments = arguments,
                Err(error) => {
                    call.arguments_error = Some(format!("{error}\n\nReceived arguments:\n{text}"));
                }
            }
        }
        out.push(StreamEvent::BlockEnd { index, block: self.content[index].clone() });
    }

    /// Ends all open blocks, `whole` or not.
    fn end_all(&mut self, whole: bool, out: &mut Vec<StreamEvent>) {
        for index in 0..self.content.len() {
            self.end_as(index, whole, out);
        }
    }

    fn end_as(&mut self, index: usize, whole: bool, out: &mut Vec<StreamEvent>) {
        match self.open.get_mut(index) {
            Some(open) if *open => *open = false,
            _ => return,
        }
        if let AssistantBlock::ToolCall(call) = &mut self.content[index] {
            let text = std::mem::take(&mut self.arguments[index]);
            (call.arguments, call.arguments_error) = partial_json::finished_arguments(&text);
            if !whole && call.arguments_error.is_none() {
                call.arguments = Value::Object(Map::new());
                call.arguments_error =
                    Some(format!("the arguments were cut off\n\nReceived arguments:\n{text}"));
            }
        }
        out.push(StreamEvent::BlockEnd { index, block: self.content[index].clone() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ai::messages::SPOKEN;

    #[test]
    fn every_spoken_api_has_a_codec_and_no_other() {
        let with_codec: Vec<&Api> = APIS.iter().map(|(api, _)| api).collect();
        assert_eq!(with_codec, SPOKEN.iter().collect::<Vec<_>>());
    }

    #[test]
    fn a_budget_shrinks_by_steps_as_the_window_fills() {
        let model = Model { max_tokens: 16_384, ..Model::default() };
        let check = |max_tokens: u64, expected| {
            assert_eq!(fitting_budget(16_384, &model, max_tokens), expected, "{max_tokens}");
        };
        check(16_384, Some(15_360));
        check(16_000, Some(8_192));
        check(10_000, Some(8_192));
        check(3_000, Some(1_024));
        check(2_000, None);
        assert_eq!(fitting_budget(500, &model, 16_384), None);
    }

    #[test]
    fn urls_join_without_repeating_the_version() {
        let check = |base: &str, path: &str, expected: &str| assert_eq!(join_url(base, path), expected);
        check("https://a.b", "/v1/messages", "https://a.b/v1/messages");
        check("https://a.b/v1/", "/v1/messages", "https://a.b/v1/messages");
        check("https://a.b/api/v1/", "/chat/completions", "https://a.b/api/v1/chat/completions");
    }

    #[test]
    fn schemas_have_an_object_with_properties_at_their_root() {
        use serde_json::json;

        let check = |schema: Value, expected: Value| assert_eq!(*object_schema(&schema), expected);
        let empty = json!({"type": "object", "properties": {}});
        for schema in
            [json!(null), json!({}), json!({"type": "object"}), json!({"oneOf": [], "properties": null})]
        {
            let mut sorted = object_schema(&schema).into_owned();
            sorted.sort_all_objects();
            assert_eq!(sorted, empty, "{schema}");
        }
        let fine = json!({"properties": {"x": {"anyOf": []}}, "type": "object", "required": ["x"]});
        check(fine.clone(), fine);
    }
}
