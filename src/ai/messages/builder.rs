//! Messages made by hand, for callers of the library.
//!
//! The builders make it impossible to write what every provider rejects: a user
//! message has content, a tool call has an id, a name and an object of
//! arguments, and a tool result is made from the call it answers. Messages read
//! from a file do not pass through here and may be invalid.
//!
//! ```
//! use pi::ai::{Api, AssistantMessage, Message, ToolCall, UserMessage};
//! use serde_json::{Map, Value};
//!
//! let arguments = Map::from_iter([("path".to_owned(), Value::from("notes.md"))]);
//! let call = ToolCall::new("call_1", "read", arguments);
//! let result = call.result().text("buy milk").build();
//! let conversation: Vec<Message> = vec![
//!     UserMessage::builder().text("What is in my notes?").build().into(),
//!     AssistantMessage::builder(Api::ANTHROPIC_MESSAGES, "anthropic", "claude-sonnet-4-5")
//!         .thinking("The notes are in a file.")
//!         .text("I'll look.")
//!         .tool_call(call)
//!         .build()
//!         .into(),
//!     result.into(),
//! ];
//! assert_eq!(conversation.len(), 3);
//! ```

use std::borrow::Cow;
use std::marker::PhantomData;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::image_url::NoImage;
use super::message::{
    AssistantBlock, AssistantMessage, ContentBlock, Extra, Image, Message, Millis, StopReason, SystemContent,
    SystemMessage, Text, Thinking, ToolCall, ToolResultMessage, Usage, UserContent, UserMessage,
};
use super::partial_json;
use crate::ai::messages::Api;

impl From<SystemMessage> for Message {
    fn from(message: SystemMessage) -> Self {
        Self::System(Box::new(message))
    }
}

impl From<UserMessage> for Message {
    fn from(message: UserMessage) -> Self {
        Self::User(message)
    }
}

impl From<AssistantMessage> for Message {
    fn from(message: AssistantMessage) -> Self {
        Self::Assistant(Box::new(message))
    }
}

impl From<ToolResultMessage> for Message {
    fn from(message: ToolResultMessage) -> Self {
        Self::ToolResult(Arc::new(message))
    }
}

impl SystemMessage {
    /// A message that adds `text` to the system prompt.
    ///
    /// ```
    /// use pi::ai::{Message, SystemMessage};
    ///
    /// let message: Message = SystemMessage::new("Answer in French.").into();
    /// ```
    pub fn new(text: impl Into<String>) -> Self {
        Self { content: SystemContent::Text(text.into()), ..Self::default() }
    }
}

impl Image {
    /// An image from its base64 text and the media type of its bytes, such as `image/png`.
    pub fn new(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        Self { data: data.into(), mime_type: mime_type.into(), extra: Extra::new() }
    }
}

impl Thinking {
    /// Thinking without a signature.
    pub fn new(thinking: impl Into<String>) -> Self {
        Self { thinking: thinking.into(), ..Self::default() }
    }
}

/// Type state: the message is empty and cannot be built yet.
#[derive(Debug, Clone, Copy)]
pub enum Blank {}

/// Type state: the message has content.
#[derive(Debug, Clone, Copy)]
pub enum Filled {}

/// Builds a [`UserMessage`]; see [`UserMessage::builder`].
#[derive(Debug, Clone)]
#[must_use]
pub struct UserMessageBuilder<State> {
    blocks: Vec<ContentBlock>,
    timestamp: Millis,
    extra: Extra,
    state: PhantomData<State>,
}

impl UserMessage {
    /// Begins a message of text and images, in the order they are added.
    ///
    /// ```
    /// use pi::ai::{Image, Millis, UserMessage};
    ///
    /// let message = UserMessage::builder()
    ///     .text("What is wrong here?")
    ///     .image(Image::new("iVBORw0KGgo=", "image/png"))
    ///     .at(Millis(1_795_253_027_438))
    ///     .build();
    /// assert_eq!(message.content.text(), "What is wrong here?");
    /// ```
    ///
    /// A message without content does not compile:
    ///
    /// ```compile_fail
    /// pi::ai::UserMessage::builder().build();
    /// ```
    pub fn builder() -> UserMessageBuilder<Blank> {
        UserMessageBuilder {
            blocks: Vec::new(),
            timestamp: Millis::default(),
            extra: Extra::new(),
            state: PhantomData,
        }
    }
}

impl<State> UserMessageBuilder<State> {
    /// Adds a text.
    pub fn text(self, text: impl Into<String>) -> UserMessageBuilder<Filled> {
        self.block(ContentBlock::text(text))
    }

    /// Adds an image.
    pub fn image(self, image: Image) -> UserMessageBuilder<Filled> {
        self.block(ContentBlock::Image(image))
    }

    /// Adds the image at `address`: a URL that the service fetches, or a `data:` URL.
    ///
    /// ```
    /// use pi::ai::UserMessage;
    ///
    /// let message = UserMessage::builder()
    ///     .text("What is on it?")
    ///     .image_at("https://example.com/cat.png")?
    ///     .build();
    /// assert!(message.content.blocks()[1].is_image());
    ///
    /// // No service can read a local file.
    /// assert!(UserMessage::builder().image_at("file:///home/ada/cat.png").is_err());
    /// # Ok::<(), pi::ai::NoImage>(())
    /// ```
    ///
    /// # Errors
    /// If no service fetches such an address; see [`ContentBlock::image_at`].
    pub fn image_at(self, address: &str) -> Result<UserMessageBuilder<Filled>, NoImage> {
        ContentBlock::image_at(address).map(|block| self.block(block))
    }

    /// Sets the time of the message.
    pub fn at(mut self, timestamp: Millis) -> Self {
        self.timestamp = timestamp;
        self
    }

    /// Sets the author's name, for conversations of several people. Only Chat Completions sends it.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.extra.insert("name".to_owned(), Value::from(name.into()));
        self
    }

    fn block(mut self, block: ContentBlock) -> UserMessageBuilder<Filled> {
        self.blocks.push(block);
        let Self { blocks, timestamp, extra, .. } = self;
        UserMessageBuilder { blocks, timestamp, extra, state: PhantomData }
    }
}

impl UserMessageBuilder<Filled> {
    /// The message.
    pub fn build(self) -> UserMessage {
        let content = UserContent::Blocks(self.blocks);
        UserMessage { content, timestamp: self.timestamp, extra: self.extra }
    }
}

/// Builds an [`AssistantMessage`]; see [`AssistantMessage::builder`].
#[derive(Debug, Clone)]
#[must_use]
pub struct AssistantMessageBuilder {
    message: AssistantMessage,
}

impl AssistantMessage {
    /// Begins an answer of `model` at `provider`. The stop reason follows from the
    /// content, unless one of the builder's methods sets it.
    ///
    /// ```
    /// use pi::ai::{Api, AssistantMessage, StopReason, ToolCall};
    /// use serde_json::Map;
    ///
    /// let answer = || AssistantMessage::builder(Api::OPENAI_COMPLETIONS, "openai", "gpt-5");
    /// assert_eq!(answer().text("Hello.").build().stop_reason, StopReason::Stop);
    ///
    /// let call = ToolCall::new("call_1", "ls", Map::new());
    /// assert_eq!(answer().tool_call(call).build().stop_reason, StopReason::ToolUse);
    ///
    /// let failed = answer().text("Hel").failed("the connection broke").build();
    /// assert_eq!(failed.error_message.as_deref(), Some("the connection broke"));
    /// ```
    pub fn builder(api: Api, provider: &str, model: &str) -> AssistantMessageBuilder {
        AssistantMessageBuilder { message: Self::pending(api, provider, model, Millis::default()) }
    }
}

impl AssistantMessageBuilder {
    /// Adds a text.
    pub fn text(self, text: impl Into<String>) -> Self {
        self.block(AssistantBlock::Text(Text::new(text)))
    }

    /// Adds thinking without a signature.
    pub fn thinking(self, thinking: impl Into<String>) -> Self {
        self.block(AssistantBlock::Thinking(Thinking::new(thinking)))
    }

    /// Adds thinking with the signature its provider expects back.
    pub fn signed_thinking(self, thinking: impl Into<String>, signature: impl Into<String>) -> Self {
        let thinking =
            Thinking { thinking_signature: Some(signature.into()), ..Thinking::new(thinking.into()) };
        self.block(AssistantBlock::Thinking(thinking))
    }

    /// Adds a tool call.
    pub fn tool_call(self, call: ToolCall) -> Self {
        self.block(AssistantBlock::ToolCall(call))
    }

    /// Appends a block of any kind.
    pub fn block(mut self, block: AssistantBlock) -> Self {
        self.message.content.push(block);
        self
    }

    /// Sets the time at which the request began.
    pub fn at(mut self, timestamp: Millis) -> Self {
        self.message.timestamp = timestamp;
        self
    }

    /// Sets tokens and dollars.
    pub fn usage(mut self, usage: Usage) -> Self {
        self.message.usage = usage;
        self
    }

    /// Marks the answer as truncated at the output limit.
    pub fn cut_off(mut self) -> Self {
        self.message.stop_reason = StopReason::Length;
        self
    }

    /// Marks the request as failed, for this reason.
    pub fn failed(mut self, reason: impl Into<String>) -> Self {
        self.message.stop_reason = StopReason::Error;
        self.message.error_message = Some(reason.into());
        self
    }

    /// The message.
    pub fn build(mut self) -> AssistantMessage {
        if self.message.stop_reason == StopReason::Pending {
            let calls = self.message.tool_calls().next().is_some();
            self.message.stop_reason = if calls { StopReason::ToolUse } else { StopReason::Stop };
        }
        self.message
    }
}

impl ToolCall {
    /// A call with complete arguments.
    ///
    /// ```compile_fail
    /// // Arguments are an object.
    /// pi::ai::ToolCall::new("call_1", "read", "notes.md");
    /// ```
    pub fn new(id: impl Into<String>, name: impl Into<String>, arguments: Map<String, Value>) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            arguments: Value::Object(arguments),
            thought_signature: None,
            arguments_error: None,
            extra: Extra::new(),
        }
    }

    /// A call with the arguments as a model wrote them. Text that is not a JSON
    /// object is kept in `arguments_error`, and the call does not run.
    ///
    /// ```
    /// use pi::ai::ToolCall;
    /// use serde_json::json;
    ///
    /// let call = ToolCall::from_text("call_1", "read", r#"{"path": "notes.md"}"#);
    /// assert_eq!(call.arguments, json!({"path": "notes.md"}));
    ///
    /// let broken = ToolCall::from_text("call_2", "read", r#"{"path": "no"#);
    /// assert!(broken.arguments_error.unwrap().ends_with(r#"{"path": "no"#));
    /// ```
    pub fn from_text(id: impl Into<String>, name: impl Into<String>, arguments: &str) -> Self {
        let (arguments, arguments_error) = partial_json::finished_arguments(arguments);
        Self { arguments, arguments_error, ..Self::new(id, name, Map::new()) }
    }

    /// The text of arguments that are not a complete object, as the model wrote it.
    pub(in crate::ai) fn received_text(&self) -> Option<&str> {
        partial_json::quoted(self.arguments_error.as_deref()?)
    }

    /// The arguments as requests contain them: `{}` unless they are a complete object.
    pub fn sent_arguments(&self) -> Cow<'_, Value> {
        match &self.arguments {
            arguments @ Value::Object(_) if self.arguments_error.is_none() => Cow::Borrowed(arguments),
            _ => Cow::Owned(Value::Object(Map::new())),
        }
    }

    /// The arguments for people to read: of a call that does not run, the part that can be read.
    ///
    /// ```
    /// use pi::ai::ToolCall;
    /// use serde_json::json;
    ///
    /// let broken = ToolCall::from_text("call_1", "read", r#"{"path": "no"#);
    /// assert_eq!(*broken.readable_arguments(), json!({"path": "no"}));
    /// assert_eq!(*broken.sent_arguments(), json!({}));
    /// ```
    pub fn readable_arguments(&self) -> Cow<'_, Value> {
        let is_empty = self.arguments.as_object().is_some_and(Map::is_empty);
        match self.received_text() {
            Some(text) if is_empty => Cow::Owned(partial_json::parse_lenient(text)),
            _ => Cow::Borrowed(&self.arguments),
        }
    }

    /// Begins the result of this call; this is the only way to build one.
    ///
    /// ```
    /// use pi::ai::ToolCall;
    /// use serde_json::Map;
    ///
    /// let call = ToolCall::new("call_1", "ls", Map::new());
    /// let result = call.result().text("no such directory").failed().build();
    /// assert_eq!((result.tool_call_id.as_str(), result.is_error), ("call_1", true));
    /// ```
    pub fn result(&self) -> ToolResultBuilder {
        ToolResultBuilder {
            message: ToolResultMessage {
                tool_call_id: self.id.clone(),
                tool_name: self.name.clone(),
                content: Vec::new(),
                details: None,
                is_error: false,
                duration_ms: None,
                timestamp: Millis::default(),
                extra: Extra::new(),
            },
        }
    }
}

/// Builds a [`ToolResultMessage`]; see [`ToolCall::result`].
#[derive(Debug, Clone)]
#[must_use]
pub struct ToolResultBuilder {
    message: ToolResultMessage,
}

impl ToolResultBuilder {
    /// Adds a text.
    pub fn text(self, text: impl Into<String>) -> Self {
        self.block(ContentBlock::text(text))
    }

    /// Adds an image.
    pub fn image(self, image: Image) -> Self {
        self.block(ContentBlock::Image(image))
    }

    /// Adds the image at `address`: a URL that the service fetches, or a `data:` URL.
    ///
    /// # Errors
    /// If no service fetches such an address; see [`ContentBlock::image_at`].
    pub fn image_at(self, address: &str) -> Result<Self, NoImage> {
        ContentBlock::image_at(address).map(|block| self.block(block))
    }

    /// Appends a block of any kind.
    pub fn block(mut self, block: ContentBlock) -> Self {
        self.message.content.push(block);
        self
    }

    /// Sets the data for screens and exports; the model never reads it.
    pub fn details(mut self, details: Value) -> Self {
        self.message.details = Some(details);
        self
    }

    /// Marks the result as a failure; the content gives the reason.
    pub fn failed(mut self) -> Self {
        self.message.is_error = true;
        self
    }

    /// Sets the time of the result.
    pub fn at(mut self, timestamp: Millis) -> Self {
        self.message.timestamp = timestamp;
        self
    }

    /// The message.
    pub fn build(self) -> ToolResultMessage {
        self.message
    }
}
