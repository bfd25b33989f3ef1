//! The messages every provider shares, and their JSON form.
//!
//! The JSON is a compatibility surface: it is the `message` field of a session
//! entry and of the JSON events, written in the field order the original pi
//! writes. Fields and blocks this version does not know survive a round trip.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::constrained::ConstrainedSampling;
use super::image_url::ImageUrl;
use crate::ai::failure::Failure;
use crate::ai::messages::{Api, ThinkingLevel};

/// Fields of a message or block that this version does not interpret.
pub type Extra = Map<String, Value>;

/// One message of the conversation, as every provider sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "camelCase")]
pub enum Message {
    System(Box<SystemMessage>),
    User(UserMessage),
    Assistant(Box<AssistantMessage>),
    /// Shared: the event, the session and the screen hold the same result.
    ToolResult(Arc<ToolResultMessage>),
}

impl Message {
    /// The input blocks of a message of the user or of a tool.
    pub fn input_blocks(&self) -> &[ContentBlock] {
        match self {
            Self::User(user) => match &user.content {
                UserContent::Blocks(blocks) => blocks,
                UserContent::Text(_) => &[],
            },
            Self::ToolResult(result) => &result.content,
            Self::System(_) | Self::Assistant(_) => &[],
        }
    }

    /// Mutable access to the input blocks; `None` for messages without blocks.
    pub fn input_blocks_mut(&mut self) -> Option<&mut Vec<ContentBlock>> {
        match self {
            Self::User(user) => match &mut user.content {
                UserContent::Blocks(blocks) => Some(blocks),
                UserContent::Text(_) => None,
            },
            Self::ToolResult(result) => Some(&mut Arc::make_mut(result).content),
            Self::System(_) | Self::Assistant(_) => None,
        }
    }
}

/// A change of the system prompt or of the tools the model may call.
///
/// The first one of a session declares everything; later ones carry only what
/// changed. `transform` replays them into the current prompt and tool list.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SystemMessage {
    #[serde(default, deserialize_with = "null_as_default")]
    pub content: SystemContent,
    /// Named prompt sections in prompt order; `None` removes a section.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sections: Option<Map<String, Value>>,
    #[serde(default)]
    pub timestamp: Millis,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools_added: Vec<ToolDeclaration>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools_removed: Vec<RemovedTool>,
    #[serde(flatten)]
    pub extra: Extra,
}

/// Text of a system message: a plain string or text blocks.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum SystemContent {
    Text(String),
    Blocks(Vec<ContentBlock>),
}

impl Default for SystemContent {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

/// The declaration of one tool, as the model reads it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolDeclaration {
    pub name: String,
    #[serde(default)]
    pub description: String,
    /// JSON Schema of the arguments, an object schema.
    #[serde(default)]
    pub parameters: Value,
    /// How the arguments of its calls are sampled, where the service has a choice.
    #[serde(rename = "constrainedSampling", default, skip_serializing_if = "Option::is_none")]
    pub constrained_sampling: Option<ConstrainedSampling>,
    #[serde(flatten)]
    pub extra: Extra,
}

/// Names a tool that is no longer offered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RemovedTool {
    pub name: String,
    #[serde(flatten)]
    pub extra: Extra,
}

/// A message of the user, or of the session on the user's behalf.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UserMessage {
    #[serde(default, deserialize_with = "null_as_default")]
    pub content: UserContent,
    #[serde(default)]
    pub timestamp: Millis,
    #[serde(flatten)]
    pub extra: Extra,
}

impl UserMessage {
    /// A message of one text block followed by images.
    pub fn new(text: impl Into<String>, images: Vec<Image>, timestamp: Millis) -> Self {
        let mut blocks = vec![ContentBlock::text(text)];
        blocks.extend(images.into_iter().map(ContentBlock::Image));
        Self { content: UserContent::Blocks(blocks), timestamp, extra: Extra::new() }
    }
}

/// Content of a user message: both forms are read, blocks are written.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum UserContent {
    Text(String),
    Blocks(Vec<ContentBlock>),
}

impl Default for UserContent {
    fn default() -> Self {
        Self::Blocks(Vec::new())
    }
}

impl UserContent {
    /// The text blocks, joined by one line break.
    pub fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Blocks(blocks) => join_text(blocks),
        }
    }

    /// The content as blocks, whichever form it was read in.
    pub fn blocks(&self) -> Vec<ContentBlock> {
        match self {
            Self::Text(text) => vec![ContentBlock::text(text.as_str())],
            Self::Blocks(blocks) => blocks.clone(),
        }
    }
}

/// The text of `blocks`, joined by one line break.
pub fn join_text(blocks: &[ContentBlock]) -> String {
    let texts: Vec<&str> = blocks.iter().filter_map(ContentBlock::as_text).collect();
    texts.join("\n")
}

/// A block of user or tool input.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum ContentBlock {
    Text(Text),
    Image(Image),
    /// In files: a text with the field `imageUrl`.
    #[serde(untagged)]
    ImageUrl(ImageUrl),
    /// A block of a kind this version does not know; kept, never sent.
    #[serde(untagged)]
    Unknown(Value),
}

impl ContentBlock {
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(Text::new(text))
    }

    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(&text.text),
            Self::Image(_) | Self::ImageUrl(_) | Self::Unknown(_) => None,
        }
    }

    /// Whether it is an image, embedded or by URL.
    pub fn is_image(&self) -> bool {
        match self {
            Self::Image(_) | Self::ImageUrl(_) => true,
            Self::Text(_) | Self::Unknown(_) => false,
        }
    }
}

/// A block of an answer. Never an image; never in a user message.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum AssistantBlock {
    Text(Text),
    Thinking(Thinking),
    ToolCall(ToolCall),
    /// A block of a kind this version does not know; kept, never sent.
    #[serde(untagged)]
    Unknown(Value),
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Text {
    #[serde(default)]
    pub text: String,
    /// Opaque provider data that must be sent back with the text. Responses
    /// stores id and phase of the message item here, as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text_signature: Option<String>,
    #[serde(flatten)]
    pub extra: Extra,
}

impl Text {
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), text_signature: None, extra: Extra::new() }
    }
}

/// An image in base64, with the media type of its bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Image {
    pub data: String,
    pub mime_type: String,
    #[serde(flatten)]
    pub extra: Extra,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Thinking {
    #[serde(default)]
    pub thinking: String,
    /// Opaque provider data that must be sent back with the block. For redacted
    /// thinking it is the whole payload. Chat Completions stores the name of the
    /// reasoning field here, or the `reasoning_details` array as JSON, and
    /// Responses the whole reasoning item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_signature: Option<String>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub redacted: bool,
    #[serde(flatten)]
    pub extra: Extra,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    pub id: String,
    pub name: String,
    /// A JSON object; `{}` when `arguments_error` is set.
    #[serde(default)]
    pub arguments: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thought_signature: Option<String>,
    /// Why the finished argument text is not a JSON object, and that text. A
    /// call with this set is answered with an error instead of being run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments_error: Option<String>,
    #[serde(flatten)]
    pub extra: Extra,
}

/// Why the model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StopReason {
    Stop,
    Length,
    ToolUse,
    Error,
    Aborted,
    Deferred,
    /// Only while streaming; never on disk.
    Pending,
}

/// The model's answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AssistantMessage {
    #[serde(default, deserialize_with = "null_as_default")]
    pub content: Vec<AssistantBlock>,
    #[serde(default)]
    pub api: Api,
    #[serde(default)]
    pub provider: String,
    #[serde(default)]
    pub model: String,
    #[serde(default)]
    pub usage: Usage,
    #[serde(default = "stop")]
    pub stop_reason: StopReason,
    /// Request start.
    #[serde(default)]
    pub timestamp: Millis,
    /// Set exactly when `stop_reason` is `Error` or `Aborted`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// Facts about the failure in addition to `error_message`; not stored.
    #[serde(skip)]
    pub failure: Option<Box<Failure>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_id: Option<String>,
    /// The model that answered, if the provider reports another than the requested one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_stop_reason: Option<String>,
    /// Monotonic milliseconds from request start to the terminal event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The service's name for the thinking effort, if the request set it between the
    /// turns: every later request must repeat it in the same position.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_thinking_level: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_level: Option<ThinkingLevel>,
    #[serde(flatten)]
    pub extra: Extra,
}

impl AssistantMessage {
    /// An answer of which nothing has arrived.
    pub fn pending(api: Api, provider: &str, model: &str, timestamp: Millis) -> Self {
        Self {
            content: Vec::new(),
            api,
            provider: provider.to_owned(),
            model: model.to_owned(),
            usage: Usage::default(),
            stop_reason: StopReason::Pending,
            timestamp,
            error_message: None,
            failure: None,
            response_id: None,
            response_model: None,
            raw_stop_reason: None,
            duration_ms: None,
            provider_thinking_level: None,
            thinking_level: None,
            extra: Extra::new(),
        }
    }

    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.content.iter().filter_map(|block| match block {
            AssistantBlock::ToolCall(call) => Some(call),
            AssistantBlock::Text(_) | AssistantBlock::Thinking(_) | AssistantBlock::Unknown(_) => None,
        })
    }

    /// The text blocks in order.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.content.iter().filter_map(|block| match block {
            AssistantBlock::Text(text) => Some(text.text.as_str()),
            AssistantBlock::Thinking(_) | AssistantBlock::ToolCall(_) | AssistantBlock::Unknown(_) => None,
        })
    }

    /// Whether the request failed or was cancelled.
    pub fn is_failed(&self) -> bool {
        matches!(self.stop_reason, StopReason::Error | StopReason::Aborted)
    }
}

/// The result of one tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolResultMessage {
    #[serde(default)]
    pub tool_call_id: String,
    #[serde(default)]
    pub tool_name: String,
    /// What the model reads.
    #[serde(default, deserialize_with = "null_as_default")]
    pub content: Vec<ContentBlock>,
    /// Data for screens and exports; the model never reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    #[serde(default)]
    pub is_error: bool,
    /// Milliseconds the tool itself ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    #[serde(default)]
    pub timestamp: Millis,
    #[serde(flatten)]
    pub extra: Extra,
}

/// Tokens and cost of one answer.
///
/// `input` excludes cached tokens; `output` includes `reasoning`, and
/// `cache_write` includes `cache_write_1h`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Usage {
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
    #[serde(rename = "cacheWrite1h", skip_serializing_if = "Option::is_none")]
    pub cache_write_1h: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<u64>,
    pub total_tokens: u64,
    pub cost: UsageCost,
    #[serde(flatten)]
    pub extra: Extra,
}

impl Usage {
    /// Tokens of the request, cached or not.
    pub fn prompt_tokens(&self) -> u64 {
        self.input.saturating_add(self.cache_read).saturating_add(self.cache_write)
    }

    /// Whether a flat-rate plan covered the request; the dollars are then what it would have
    /// cost without the plan.
    pub fn is_on_plan(&self) -> bool {
        self.extra.get(ON_PLAN).and_then(Value::as_bool).unwrap_or(false)
    }

    /// Records that a flat-rate plan covered the request.
    pub(in crate::ai) fn set_on_plan(&mut self) {
        self.extra.insert(ON_PLAN.to_owned(), true.into());
    }
}

/// The field of a usage that a flat-rate plan covered.
const ON_PLAN: &str = "onPlan";

/// US dollars, by kind of token.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UsageCost {
    #[serde(serialize_with = "js_number")]
    pub input: f64,
    #[serde(serialize_with = "js_number")]
    pub output: f64,
    #[serde(serialize_with = "js_number")]
    pub cache_read: f64,
    #[serde(serialize_with = "js_number")]
    pub cache_write: f64,
    #[serde(serialize_with = "js_number")]
    pub total: f64,
    /// Whether `total` is the amount the provider billed, not the catalogue's estimate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_from_provider: Option<bool>,
    #[serde(flatten)]
    pub extra: Extra,
}

/// Milliseconds since the Unix epoch. Fractions in hand-edited files are dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize)]
#[serde(transparent)]
pub struct Millis(pub u64);

impl<'de> Deserialize<'de> for Millis {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = serde_json::Number::deserialize(deserializer)?;
        let whole = number.as_u64().or_else(|| number.as_f64().map(|float| float.max(0.0) as u64));
        Ok(Self(whole.unwrap_or_default()))
    }
}

/// Writes whole numbers without a fraction, as JavaScript does.
pub(in crate::ai) fn js_number<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    if value.fract() == 0.0 && value.abs() < 9e15 {
        serializer.serialize_i64(*value as i64)
    } else {
        serializer.serialize_f64(*value)
    }
}

/// Reads `null` as the default: old and hand-edited files have `content: null`.
fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

fn is_false(value: &bool) -> bool {
    !value
}

fn stop() -> StopReason {
    StopReason::Stop
}
