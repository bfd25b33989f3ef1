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
    /// Instructions, and which tools there are.
    System(Box<SystemMessage>),
    /// What the user said.
    User(UserMessage),
    /// What the model answered.
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
    /// Text that is added to the system prompt.
    #[serde(default, deserialize_with = "null_as_default")]
    pub content: SystemContent,
    /// Named prompt sections in prompt order; `None` removes a section.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sections: Option<Map<String, Value>>,
    /// Milliseconds since the Unix epoch.
    #[serde(default)]
    pub timestamp: Millis,
    /// Tools that the model can call from here on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools_added: Vec<ToolDeclaration>,
    /// Tools that it cannot call any more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools_removed: Vec<RemovedTool>,
    /// Fields that pi does not know, kept.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Text of a system message: a plain string or text blocks.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum SystemContent {
    /// A text.
    Text(String),
    /// Texts with their own caching.
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
    /// What calls name.
    pub name: String,
    /// What the model reads about it.
    #[serde(default)]
    pub description: String,
    /// JSON Schema of the arguments, an object schema.
    #[serde(default)]
    pub parameters: Value,
    /// How the arguments of its calls are sampled, where the service has a choice.
    #[serde(rename = "constrainedSampling", default, skip_serializing_if = "Option::is_none")]
    pub constrained_sampling: Option<ConstrainedSampling>,
    /// Fields that pi does not know, kept.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Names a tool that is no longer offered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RemovedTool {
    /// What calls named.
    pub name: String,
    /// Fields that pi does not know, kept.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A message of the user, or of the session on the user's behalf.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UserMessage {
    /// Text and images.
    #[serde(default, deserialize_with = "null_as_default")]
    pub content: UserContent,
    /// Milliseconds since the Unix epoch.
    #[serde(default)]
    pub timestamp: Millis,
    /// Fields that pi does not know, kept.
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
    /// The short form, a text.
    Text(String),
    /// Text and images in order.
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
    /// A text.
    Text(Text),
    /// An image as data.
    Image(Image),
    /// In files: a text with the field `imageUrl`.
    #[serde(untagged)]
    ImageUrl(ImageUrl),
    /// A block of a kind this version does not know; kept, never sent.
    #[serde(untagged)]
    Unknown(Value),
}

impl ContentBlock {
    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(Text::new(text))
    }

    /// The text, if it is one.
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
    /// Part of the answer.
    Text(Text),
    /// What the model thought before.
    Thinking(Thinking),
    /// A call that the model makes.
    ToolCall(ToolCall),
    /// A block of a kind this version does not know; kept, never sent.
    #[serde(untagged)]
    Unknown(Value),
}

/// A text with what belongs to it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Text {
    /// The text.
    #[serde(default)]
    pub text: String,
    /// Opaque provider data that must be sent back with the text. Responses
    /// stores id and phase of the message item here, as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text_signature: Option<String>,
    /// Fields that pi does not know, kept.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Text {
    /// A text without anything else.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), text_signature: None, extra: Extra::new() }
    }
}

/// An image in base64, with the media type of its bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Image {
    /// Base64.
    pub data: String,
    /// The media type, such as `image/png`.
    pub mime_type: String,
    /// Fields that pi does not know, kept.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Thinking, as far as the provider shows it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Thinking {
    /// The text; empty if it is hidden.
    #[serde(default)]
    pub thinking: String,
    /// Opaque provider data that must be sent back with the block. For redacted
    /// thinking it is the whole payload. Chat Completions stores the name of the
    /// reasoning field here, or the `reasoning_details` array as JSON, and
    /// Responses the whole reasoning item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_signature: Option<String>,
    /// Whether the provider hides the text.
    #[serde(default, skip_serializing_if = "is_false")]
    pub redacted: bool,
    /// Fields that pi does not know, kept.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A call that the model makes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// What the result names; unique in the conversation.
    pub id: String,
    /// The tool.
    pub name: String,
    /// A JSON object. When `arguments_error` is set, it is `{}`, or what had arrived before the
    /// answer broke off.
    #[serde(default)]
    pub arguments: Value,
    /// What Google wants back with the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thought_signature: Option<String>,
    /// Why the finished argument text is not a JSON object, and that text. A
    /// call with this set is answered with an error instead of being run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments_error: Option<String>,
    /// Fields that pi does not know, kept.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Why the model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StopReason {
    /// The answer is complete.
    Stop,
    /// The answer reached the limit of tokens.
    Length,
    /// The model waits for results of its calls.
    ToolUse,
    /// The request failed.
    Error,
    /// The request was cancelled.
    Aborted,
    /// The answer is fetched later.
    Deferred,
    /// Only while streaming; never on disk.
    Pending,
}

/// The model's answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AssistantMessage {
    /// The parts of the answer, in order.
    #[serde(default, deserialize_with = "null_as_default")]
    pub content: Vec<AssistantBlock>,
    /// The API that it came through.
    #[serde(default)]
    pub api: Api,
    /// The id of the provider.
    #[serde(default)]
    pub provider: String,
    /// The id of the model that was asked.
    #[serde(default)]
    pub model: String,
    /// Tokens and dollars.
    #[serde(default)]
    pub usage: Usage,
    /// Why it ended.
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
    /// The provider's id of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_id: Option<String>,
    /// The model that answered, if the provider reports another than the requested one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_model: Option<String>,
    /// Why it ended, in the provider's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_stop_reason: Option<String>,
    /// Monotonic milliseconds from request start to the terminal event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The service's name for the thinking effort, if the request set it between the
    /// turns: every later request must repeat it in the same position.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_thinking_level: Option<String>,
    /// How much the model was asked to think.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_level: Option<ThinkingLevel>,
    /// Fields that pi does not know, kept.
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

    /// Its tool calls, in order.
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

    /// All its texts, without thinking and tool calls.
    pub fn text(&self) -> String {
        self.texts().collect::<Vec<_>>().join("\n")
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
    /// The id of the call.
    #[serde(default)]
    pub tool_call_id: String,
    /// The tool.
    #[serde(default)]
    pub tool_name: String,
    /// What the model reads.
    #[serde(default, deserialize_with = "null_as_default")]
    pub content: Vec<ContentBlock>,
    /// Data for screens and exports; the model never reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// Whether the call failed.
    #[serde(default)]
    pub is_error: bool,
    /// Milliseconds the tool itself ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// Milliseconds since the Unix epoch.
    #[serde(default)]
    pub timestamp: Millis,
    /// Fields that pi does not know, kept.
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
    /// Input tokens that were not in a cache.
    pub input: u64,
    /// Output tokens, thinking included.
    pub output: u64,
    /// Input tokens read from a cache.
    pub cache_read: u64,
    /// Input tokens written to a cache.
    pub cache_write: u64,
    /// Those of them that the cache keeps for an hour.
    #[serde(rename = "cacheWrite1h", skip_serializing_if = "Option::is_none")]
    pub cache_write_1h: Option<u64>,
    /// Output tokens of thinking.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<u64>,
    /// All tokens of request and answer.
    pub total_tokens: u64,
    /// What they cost.
    pub cost: UsageCost,
    /// Fields that pi does not know, kept.
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
    /// US dollars for `Usage::input`.
    #[serde(serialize_with = "js_number")]
    pub input: f64,
    /// US dollars for `Usage::output`.
    #[serde(serialize_with = "js_number")]
    pub output: f64,
    /// US dollars for `Usage::cache_read`.
    #[serde(serialize_with = "js_number")]
    pub cache_read: f64,
    /// US dollars for `Usage::cache_write`.
    #[serde(serialize_with = "js_number")]
    pub cache_write: f64,
    /// US dollars in total.
    #[serde(serialize_with = "js_number")]
    pub total: f64,
    /// Whether `total` is the amount the provider billed, not the catalogue's estimate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_from_provider: Option<bool>,
    /// Fields that pi does not know, kept.
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
