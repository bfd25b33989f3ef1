//! The part of Responses' JSON that pi uses. Other fields are ignored.
//!
//! The contents of an event are parsed only once its type is known, so that
//! unknown events and items cannot be malformed.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::super::{Count, Str, lenient, lenient_str};
use crate::ai::requests::Picture;

#[derive(Debug, Serialize)]
pub(super) struct Body<'a> {
    pub(super) model: Cow<'a, str>,
    pub(super) input: Vec<Item<'a>>,
    pub(super) stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) store: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max_output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) top_p: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_choice: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<TextOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reasoning: Option<Reasoning>,
    #[serde(skip_serializing_if = "<[&str]>::is_empty")]
    pub(super) include: &'static [&'static str],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) prompt_cache_key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) prompt_cache_retention: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) prompt_cache_options: Option<CacheOptions>,
}

#[derive(Debug, Serialize)]
pub(super) struct CacheOptions {
    pub(super) ttl: &'static str,
}

#[derive(Debug, Serialize)]
pub(super) struct TextOptions {
    pub(super) verbosity: &'static str,
}

#[derive(Debug, Serialize)]
pub(super) struct Reasoning {
    pub(super) effort: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) summary: Option<&'static str>,
}

/// One item of the input.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Item<'a> {
    /// Instructions or a user message.
    Said {
        role: &'static str,
        content: Content<'a>,
    },
    /// As the server wrote it.
    Reasoning(Map<String, Value>),
    Known(KnownItem<'a>),
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum KnownItem<'a> {
    Message {
        role: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        status: &'static str,
        content: [OutputText<'a>; 1],
        #[serde(skip_serializing_if = "Option::is_none")]
        phase: Option<String>,
    },
    FunctionCall {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        call_id: &'a str,
        name: &'a str,
        /// JSON text.
        arguments: String,
    },
    CustomToolCall {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        call_id: &'a str,
        name: &'a str,
        input: &'a str,
    },
    FunctionCallOutput {
        call_id: &'a str,
        output: Content<'a>,
    },
    CustomToolCallOutput {
        call_id: &'a str,
        output: Content<'a>,
    },
    /// Adds these tools from this position on.
    AdditionalTools {
        role: &'static str,
        tools: Vec<Tool<'a>>,
    },
    /// Pretends that the model searched for tools.
    ToolSearchCall {
        call_id: String,
        execution: &'static str,
        status: &'static str,
        arguments: ToolQuery,
    },
    ToolSearchOutput {
        call_id: String,
        execution: &'static str,
        status: &'static str,
        tools: Vec<Tool<'a>>,
    },
    /// Applies from this position on.
    ConfigurationUpdate {
        reasoning: Effort<'a>,
    },
}

#[derive(Debug, Serialize)]
pub(super) struct ToolQuery {
    pub(super) query: String,
    pub(super) limit: usize,
}

#[derive(Debug, Serialize)]
pub(super) struct Effort<'a> {
    pub(super) effort: &'a str,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename = "output_text")]
pub(super) struct OutputText<'a> {
    pub(super) text: &'a str,
    /// The API rejects a text without this list.
    pub(super) annotations: [(); 0],
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Content<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<Part<'a>>),
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Part<'a> {
    InputText { text: &'a str },
    InputImage { detail: &'a str, image_url: Cow<'a, str> },
}

impl<'a> Part<'a> {
    pub(super) fn image(picture: Picture<'a>) -> Self {
        const AUTO: &str = "auto";
        match picture {
            Picture::Data(image) => {
                let image_url = format!("data:{};base64,{}", image.mime_type, image.data);
                Self::InputImage { detail: AUTO, image_url: Cow::Owned(image_url) }
            }
            Picture::At(image) => Self::InputImage {
                detail: image.detail().unwrap_or(AUTO),
                image_url: Cow::Borrowed(image.url()),
            },
        }
    }
}

#[derive(Debug, Serialize)]
pub(super) struct Tool<'a> {
    #[serde(flatten)]
    pub(super) offered: Offered<'a>,
    /// Found by a search instead of declared at the start.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) defer_loading: bool,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Offered<'a> {
    /// Allows the input to contain found tools.
    ToolSearch { execution: &'static str },
    Function {
        name: &'a str,
        #[serde(skip_serializing_if = "str::is_empty")]
        description: &'a str,
        parameters: Cow<'a, Value>,
        /// Whether to enforce the schema.
        #[serde(skip_serializing_if = "Option::is_none")]
        strict: Option<bool>,
    },
    /// A tool with text input.
    Custom {
        name: &'a str,
        #[serde(skip_serializing_if = "str::is_empty")]
        description: &'a str,
        format: CustomFormat<'a>,
    },
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(super) enum CustomFormat<'a> {
    Grammar { syntax: &'static str, definition: &'a str },
}

/// Data to send back with a text, in the form of session files.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(in crate::ai) struct TextSignature {
    /// Version of the format.
    #[serde(default)]
    pub(in crate::ai) v: u64,
    /// The message item's id.
    pub(in crate::ai) id: String,
    /// `commentary` or `final_answer`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::ai) phase: Option<String>,
}

impl TextSignature {
    pub(in crate::ai) const VERSION: u64 = 1;

    /// Parses a signature; older files contain the bare id.
    pub(in crate::ai) fn parse(signature: &str) -> Self {
        let parsed = serde_json::from_str(signature).ok();
        parsed.unwrap_or_else(|| Self { id: signature.to_owned(), ..Self::default() })
    }
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Event<'a> {
    #[serde(rename = "type", borrow, default)]
    pub(super) kind: Str<'a>,
    pub(super) output_index: Option<Count>,
    #[serde(borrow, default, deserialize_with = "lenient_str")]
    pub(super) item_id: Option<Str<'a>>,
    /// The tool, in the last event of a call's arguments.
    #[serde(borrow, default, deserialize_with = "lenient_str")]
    pub(super) name: Option<Str<'a>>,
    pub(super) content_index: Option<Count>,
    pub(super) summary_index: Option<Count>,
    #[serde(borrow)]
    pub(super) delta: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) text: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) refusal: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) input: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) item: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) response: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Response<'a> {
    #[serde(borrow, default, deserialize_with = "lenient_str")]
    pub(super) id: Option<Str<'a>>,
    #[serde(borrow, default, deserialize_with = "lenient_str")]
    pub(super) model: Option<Str<'a>>,
    #[serde(borrow)]
    pub(super) status: Option<Str<'a>>,
    #[serde(borrow, default, deserialize_with = "lenient_str")]
    pub(super) service_tier: Option<Str<'a>>,
    pub(super) error: Option<Value>,
    pub(super) incomplete_details: Option<Value>,
    #[serde(borrow)]
    pub(super) output: Option<&'a RawValue>,
    /// What the service did with earlier items.
    #[serde(borrow)]
    pub(super) input_transformations: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "lenient")]
    pub(super) usage: Option<Usage<'a>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Usage<'a> {
    pub(super) input_tokens: Option<Count>,
    pub(super) output_tokens: Option<Count>,
    pub(super) total_tokens: Option<Count>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) input_tokens_details: Option<InputTokensDetails>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) output_tokens_details: Option<OutputTokensDetails>,
    /// US dollars at OpenRouter.
    #[serde(borrow)]
    pub(super) cost: Option<&'a RawValue>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) is_byok: Option<bool>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) cost_details: Option<CostDetails>,
}

#[derive(Debug, Deserialize)]
pub(super) struct InputTokensDetails {
    pub(super) cached_tokens: Option<Count>,
    pub(super) cache_write_tokens: Option<Count>,
}

#[derive(Debug, Deserialize)]
pub(super) struct OutputTokensDetails {
    pub(super) reasoning_tokens: Option<Count>,
}

#[derive(Debug, Deserialize)]
pub(super) struct CostDetails {
    pub(super) upstream_inference_cost: Option<f64>,
}
