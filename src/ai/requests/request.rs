//! Everything one model call depends on.

use crate::ai::models::{Model, RequestTraits};
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::ai::messages::{AssistantBlock, ContentBlock, Message, ThinkingLevel, UserContent, UserMessage};
use crate::ai::transport::Credential;

/// Everything one model call depends on: no environment, no globals.
#[derive(Debug, Clone)]
pub struct Request {
    /// The model to ask.
    pub model: Arc<Model>,
    /// The key; `Credential::None` if a provider around this one finds it.
    pub credential: Credential,
    /// The conversation, including system messages; `transform` decides which parts
    /// the provider receives.
    pub messages: Vec<Arc<Message>>,
    /// Everything else that can be chosen.
    pub options: StreamOptions,
}

impl Request {
    /// The address of the service: the account's own one, otherwise the model's.
    pub fn base_url(&self) -> &str {
        match &self.credential {
            Credential::SignedIn(account) => account.base_url.as_deref().unwrap_or(&self.model.base_url),
            _ => &self.model.base_url,
        }
    }

    /// About how many bytes its messages have, without the JSON around them.
    pub(in crate::ai) fn n_text_bytes(&self) -> usize {
        self.messages.iter().map(|message| text_bytes(message)).sum()
    }

    /// About how many bytes of text its messages have: fewer than are sent, because the JSON around them
    /// and the declarations of tools do not count.
    pub(in crate::ai) fn n_word_bytes(&self) -> usize {
        let images = |message: &Message| -> usize {
            let sizes = message.input_blocks().iter().map(|block| match block {
                ContentBlock::Image(image) => image.data.len(),
                ContentBlock::Text(_) | ContentBlock::ImageUrl(_) | ContentBlock::Unknown(_) => 0,
            });
            sizes.sum()
        };
        self.messages.iter().map(|message| text_bytes(message) - images(message)).sum()
    }

    /// Whether images of the conversation are sent as images.
    pub(in crate::ai) fn shows_images(&self) -> bool {
        self.model.reads_images() && !self.options.without_images
    }

    /// The limit of an answer that may have `max_tokens`.
    pub(in crate::ai) fn answer_limit(&self, max_tokens: u64) -> u64 {
        self.options.answer_cap.map_or(max_tokens, |cap| cap.min(max_tokens))
    }

    pub(in crate::ai) fn traits(&self) -> RequestTraits {
        RequestTraits {
            signed_in: matches!(self.credential, Credential::SignedIn(_)),
            long_cache: self.options.long_cache,
            without_updates: self.options.without_updates,
        }
    }
}

fn text_bytes(message: &Message) -> usize {
    let input = |blocks: &[ContentBlock]| -> usize {
        let sizes = blocks.iter().map(|block| match block {
            ContentBlock::Text(text) => text.text.len(),
            ContentBlock::Image(image) => image.data.len(),
            ContentBlock::ImageUrl(_) | ContentBlock::Unknown(_) => 0,
        });
        sizes.sum()
    };
    match message {
        Message::User(UserMessage { content: UserContent::Text(text), .. }) => text.len(),
        Message::User(_) | Message::ToolResult(_) => input(message.input_blocks()),
        Message::Assistant(answer) => {
            let sizes = answer.content.iter().map(|block| match block {
                AssistantBlock::Text(text) => text.text.len(),
                AssistantBlock::Thinking(thinking) => thinking.thinking.len(),
                AssistantBlock::ToolCall(call) => value_bytes(&call.arguments),
                AssistantBlock::Unknown(_) => 0,
            });
            sizes.sum()
        }
        // They are as long as instructions and declarations are.
        Message::System(_) => 0,
    }
}

fn value_bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(value_bytes).sum(),
        Value::Object(fields) => fields.values().map(value_bytes).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

/// Options of one answer. `None` means the provider's default.
#[derive(Debug, Clone, Default)]
pub struct StreamOptions {
    /// How much the model thinks.
    pub thinking: ThinkingLevel,
    /// How much answers vary.
    pub temperature: Option<f64>,
    /// The share of likely tokens that are considered, 0 to 1.
    pub top_p: Option<f64>,
    /// Maximum number of tokens in the answer; clamped to model and window.
    pub max_tokens: Option<u64>,
    /// Ends the answer after this many tokens and changes nothing else of the request: unlike
    /// with `max_tokens`, thinking keeps its budget. See
    /// [`shortest_answer`](crate::ai::shortest_answer).
    pub answer_cap: Option<u64>,
    /// Texts that end the answer.
    pub stop_sequences: Vec<String>,
    /// Whether tools are called.
    pub tool_choice: Option<ToolChoice>,
    /// Identifies the conversation to the provider's cache.
    pub session_id: Option<String>,
    /// The beginning of the answer, from an interrupted attempt: the model continues
    /// it, if its API supports prefill, and the answer contains both parts.
    pub continue_from: Option<String>,
    /// Request start, milliseconds since the Unix epoch: the message's timestamp.
    pub started_ms: u64,
    /// Requests a long lifetime of the prompt in the provider's cache.
    pub long_cache: bool,
    /// Thinking tokens of each level, if they differ from the defaults.
    pub thinking_budgets: BTreeMap<ThinkingLevel, u64>,
    /// Leaves out the strict schemas of tools that merely prefer one, because the
    /// service rejected such a request.
    pub without_strict_schemas: bool,
    /// Puts all system messages into the system prompt and disables fallback models,
    /// because the service rejected a request with them.
    pub without_updates: bool,
    /// Sends an empty `reasoning_content` with each answer that has none, because the service
    /// rejected a request without it.
    pub with_reasoning_content: bool,
    /// The content of an answer that the service paused, as it sent it: the answer to this request
    /// continues it.
    pub paused_content: Vec<Value>,
    /// Sends a line of text in place of each run of images.
    pub without_images: bool,
    /// Fields merged into the request body last, for options missing here.
    pub extra_body: serde_json::Map<String, Value>,
}

/// Whether the model must call a tool, and which.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolChoice {
    /// The model decides.
    Auto,
    /// The model calls at least one.
    Any,
    /// The model calls none.
    None,
    /// The model calls this one.
    Tool(String),
}
