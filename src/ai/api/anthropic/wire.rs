//! The part of Anthropic's JSON that pi uses. Other fields are ignored.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::super::{Count, Str, TextPiece, lenient};

#[derive(Debug, Serialize)]
pub(super) struct Body<'a> {
    /// Absent if the URL contains the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) model: Option<&'a str>,
    /// Replaces the header of the same name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) anthropic_version: Option<&'static str>,
    pub(super) max_tokens: u64,
    pub(super) stream: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) system: Vec<Block<'a>>,
    pub(super) messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_choice: Option<ToolChoice<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) thinking: Option<ThinkingMode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) output_config: Option<OutputConfig<'a>>,
    /// The fallback models, by preference.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) fallbacks: Vec<Fallback>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) top_p: Option<f64>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    pub(super) stop_sequences: &'a [String],
}

#[derive(Debug, Serialize)]
pub(super) struct Message<'a> {
    pub(super) role: &'static str,
    pub(super) content: Vec<Block<'a>>,
    /// Applies from this message on; only in system messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) output_config: Option<OutputConfig<'a>>,
}

/// A content block with an optional cache marker.
#[derive(Debug, Serialize)]
pub(super) struct Block<'a> {
    #[serde(flatten)]
    pub(super) body: BlockBody<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cache_control: Option<CacheControl>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum BlockBody<'a> {
    Text {
        text: Cow<'a, str>,
    },
    Image {
        source: ImageSource<'a>,
    },
    Thinking {
        thinking: &'a str,
        signature: &'a str,
    },
    RedactedThinking {
        data: &'a str,
    },
    ToolUse {
        id: &'a str,
        name: &'a str,
        input: &'a Value,
    },
    ToolResult {
        tool_use_id: &'a str,
        content: Vec<Block<'a>>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
    /// Adds a tool, or replaces the one with the same name, from this message on.
    ToolAddition {
        tool: AddedTool<'a>,
    },
    /// Removes a tool from this message on.
    ToolRemoval {
        tool: RemovedTool<'a>,
    },
    /// A block of a paused answer, as the service sent it.
    #[serde(untagged)]
    Kept(&'a Value),
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename = "tool_definition")]
pub(super) struct AddedTool<'a> {
    pub(super) definition: Tool<'a>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename = "tool_reference")]
pub(super) struct RemovedTool<'a> {
    pub(super) name: &'a str,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ImageSource<'a> {
    Base64 { media_type: &'a str, data: &'a str },
    Url { url: &'a str },
}

#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct CacheControl {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<&'static str>,
}

/// Marks the end of a prefix to cache, for five minutes, or for an hour if `is_long`.
pub(super) fn cache_mark(is_long: bool) -> CacheControl {
    CacheControl { kind: "ephemeral", ttl: is_long.then_some("1h") }
}

#[derive(Debug, Serialize)]
pub(super) struct Tool<'a> {
    pub(super) name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) description: &'a str,
    pub(super) input_schema: Cow<'a, Value>,
    /// Whether to enforce the schema.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) strict: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) eager_input_streaming: bool,
    /// Hides the tool from the model until it is activated.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) defer_loading: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cache_control: Option<CacheControl>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ToolChoice<'a> {
    Auto,
    Any,
    None,
    Tool { name: &'a str },
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ThinkingMode {
    Disabled,
    Enabled {
        budget_tokens: u64,
    },
    Adaptive {
        display: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        block_binding: Option<BlockBinding>,
    },
}

/// What the server does with thinking if an earlier part of the prompt has changed.
#[derive(Debug, Serialize)]
pub(super) struct BlockBinding {
    pub(super) prefix_mismatch_behavior: &'static str,
}

#[derive(Debug, Serialize)]
pub(super) struct OutputConfig<'a> {
    pub(super) effort: Cow<'a, str>,
}

#[derive(Debug, Serialize)]
pub(super) struct Fallback {
    pub(super) model: String,
}

/// Any event. Flat, because tagged enums would buffer every delta.
#[derive(Debug, Deserialize)]
pub(super) struct Event<'a> {
    #[serde(rename = "type", borrow, default)]
    pub(super) kind: Str<'a>,
    pub(super) index: Option<Count>,
    #[serde(borrow)]
    pub(super) delta: Option<Delta<'a>>,
    #[serde(borrow)]
    pub(super) content_block: Option<ContentBlock<'a>>,
    #[serde(borrow)]
    pub(super) message: Option<MessageStart<'a>>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) usage: Option<Usage>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
}

/// Delta of a block or, with a stop reason, of the message.
#[derive(Debug, Deserialize)]
pub(super) struct Delta<'a> {
    #[serde(rename = "type", borrow, default)]
    pub(super) kind: Str<'a>,
    #[serde(borrow)]
    pub(super) text: Option<TextPiece<'a>>,
    #[serde(borrow)]
    pub(super) thinking: Option<TextPiece<'a>>,
    #[serde(borrow)]
    pub(super) signature: Option<Str<'a>>,
    #[serde(borrow)]
    pub(super) partial_json: Option<TextPiece<'a>>,
    #[serde(borrow)]
    pub(super) stop_reason: Option<Str<'a>>,
    #[serde(borrow)]
    pub(super) stop_details: Option<StopDetails<'a>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct StopDetails<'a> {
    #[serde(borrow)]
    pub(super) category: Option<Str<'a>>,
    #[serde(borrow)]
    pub(super) explanation: Option<Str<'a>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ContentBlock<'a> {
    #[serde(rename = "type", borrow, default)]
    pub(super) kind: Str<'a>,
    #[serde(borrow)]
    pub(super) text: Option<TextPiece<'a>>,
    #[serde(borrow)]
    pub(super) thinking: Option<TextPiece<'a>>,
    #[serde(borrow)]
    pub(super) signature: Option<Str<'a>>,
    /// Text in redacted thinking; of any type in other kinds of blocks.
    #[serde(borrow)]
    pub(super) data: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) id: Option<Str<'a>>,
    #[serde(borrow)]
    pub(super) name: Option<Str<'a>>,
    #[serde(borrow)]
    pub(super) input: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
pub(super) struct MessageStart<'a> {
    #[serde(borrow)]
    pub(super) id: Option<Str<'a>>,
    #[serde(borrow)]
    pub(super) model: Option<Str<'a>>,
    #[serde(borrow, default)]
    pub(super) content: Option<Vec<ContentBlock<'a>>>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) usage: Option<Usage>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Usage {
    pub(super) input_tokens: Option<Count>,
    pub(super) output_tokens: Option<Count>,
    pub(super) cache_read_input_tokens: Option<Count>,
    pub(super) cache_creation_input_tokens: Option<Count>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) cache_creation: Option<CacheCreation>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) output_tokens_details: Option<OutputTokensDetails>,
}

#[derive(Debug, Deserialize)]
pub(super) struct CacheCreation {
    pub(super) ephemeral_1h_input_tokens: Option<Count>,
}

#[derive(Debug, Deserialize)]
pub(super) struct OutputTokensDetails {
    pub(super) thinking_tokens: Option<Count>,
}
