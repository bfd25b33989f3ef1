//! The part of Converse's JSON that pi uses. Other fields are ignored.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::{Count, Str, TextPiece};

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Body<'a> {
    pub(super) messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) system: Vec<SystemBlock<'a>>,
    pub(super) inference_config: InferenceConfig<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_config: Option<ToolConfig<'a>>,
    /// Fields that only models of one vendor support.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) additional_model_request_fields: Option<Value>,
}

#[derive(Debug, Serialize)]
pub(super) struct Message<'a> {
    pub(super) role: Role,
    pub(super) content: Vec<Block<'a>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Role {
    User,
    Assistant,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum SystemBlock<'a> {
    Text(&'a str),
    CachePoint(CachePoint),
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Block<'a> {
    Text(Cow<'a, str>),
    Image(Image<'a>),
    ToolUse(ToolUse<'a>),
    ToolResult(ToolResult<'a>),
    ReasoningContent(Reasoning<'a>),
    CachePoint(CachePoint),
}

#[derive(Debug, Serialize)]
pub(super) struct Image<'a> {
    pub(super) format: &'static str,
    pub(super) source: ImageSource<'a>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum ImageSource<'a> {
    /// In base64.
    Bytes(&'a str),
    S3Location {
        uri: &'a str,
    },
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolUse<'a> {
    pub(super) tool_use_id: &'a str,
    pub(super) name: &'a str,
    pub(super) input: Cow<'a, Value>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolResult<'a> {
    pub(super) tool_use_id: &'a str,
    pub(super) content: Vec<Block<'a>>,
    pub(super) status: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Reasoning<'a> {
    ReasoningText(ReasoningText<'a>),
    /// In base64.
    RedactedContent(&'a str),
}

#[derive(Debug, Serialize)]
pub(super) struct ReasoningText<'a> {
    pub(super) text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) signature: Option<&'a str>,
}

#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct CachePoint {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<&'static str>,
}

/// Marks the end of a prefix to cache, for five minutes, or for an hour if `is_long`.
pub(super) fn cache_point(is_long: bool) -> CachePoint {
    CachePoint { kind: "default", ttl: is_long.then_some("1h") }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct InferenceConfig<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) top_p: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) stop_sequences: Vec<&'a str>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolConfig<'a> {
    pub(super) tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_choice: Option<ToolChoice<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Tool<'a> {
    ToolSpec(ToolSpec<'a>),
    CachePoint(CachePoint),
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolSpec<'a> {
    pub(super) name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) description: &'a str,
    pub(super) input_schema: InputSchema<'a>,
    /// Whether to enforce the schema:
    /// <https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ToolSpecification.html>.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) strict: bool,
}

#[derive(Debug, Serialize)]
pub(super) struct InputSchema<'a> {
    pub(super) json: Cow<'a, Value>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum ToolChoice<'a> {
    Auto {},
    Any {},
    Tool { name: &'a str },
}

/// The payload of any event. Flat, because the event's type is outside the payload.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Event<'a> {
    pub(super) content_block_index: Option<Count>,
    #[serde(borrow)]
    pub(super) start: Option<Start<'a>>,
    #[serde(borrow)]
    pub(super) delta: Option<Delta<'a>>,
    #[serde(borrow)]
    pub(super) stop_reason: Option<Str<'a>>,
    #[serde(borrow)]
    pub(super) usage: Option<Usage<'a>>,
}

/// Empty for every kind of block except calls.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Start<'a> {
    #[serde(borrow)]
    pub(super) tool_use: Option<ToolUseStart<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolUseStart<'a> {
    #[serde(borrow)]
    pub(super) tool_use_id: Option<Str<'a>>,
    #[serde(borrow)]
    pub(super) name: Option<Str<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Delta<'a> {
    #[serde(borrow)]
    pub(super) text: Option<TextPiece<'a>>,
    #[serde(borrow)]
    pub(super) tool_use: Option<ToolUseDelta<'a>>,
    #[serde(borrow)]
    pub(super) reasoning_content: Option<ReasoningDelta<'a>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ToolUseDelta<'a> {
    #[serde(borrow)]
    pub(super) input: Option<TextPiece<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReasoningDelta<'a> {
    #[serde(borrow)]
    pub(super) text: Option<TextPiece<'a>>,
    #[serde(borrow)]
    pub(super) signature: Option<Str<'a>>,
    /// In base64.
    #[serde(borrow)]
    pub(super) redacted_content: Option<Str<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Usage<'a> {
    pub(super) input_tokens: Option<Count>,
    pub(super) output_tokens: Option<Count>,
    pub(super) cache_read_input_tokens: Option<Count>,
    pub(super) cache_write_input_tokens: Option<Count>,
    /// Tokens written to the cache, by their lifetime.
    #[serde(borrow)]
    pub(super) cache_details: Option<Vec<CacheDetail<'a>>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CacheDetail<'a> {
    #[serde(borrow)]
    pub(super) ttl: Option<Str<'a>>,
    pub(super) input_tokens: Option<Count>,
}
