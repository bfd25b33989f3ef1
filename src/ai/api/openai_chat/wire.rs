//! The part of Chat Completions' JSON that pi uses. Other fields are ignored.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::super::{Count, Str, TextPiece, lenient, lenient_str};

#[derive(Debug, Serialize)]
pub(super) struct Body<'a> {
    pub(super) model: Cow<'a, str>,
    pub(super) messages: Vec<Message<'a>>,
    pub(super) stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) store: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max_completion_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) top_p: Option<f64>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    pub(super) stop: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tools: Option<Vec<Tool<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_choice: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) prompt_cache_key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) prompt_cache_retention: Option<&'static str>,
    /// Fields only some servers support: reasoning controls and routing.
    #[serde(flatten)]
    pub(super) dialect: Map<String, Value>,
}

#[derive(Debug, Serialize)]
pub(super) struct StreamOptions {
    pub(super) include_usage: bool,
}

#[derive(Debug, Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
pub(super) enum Message<'a> {
    System {
        content: Content<'a>,
    },
    /// Adds these tools from this message on.
    #[serde(rename = "system")]
    Tools {
        tools: Vec<Tool<'a>>,
    },
    Developer {
        content: Content<'a>,
    },
    User {
        content: Content<'a>,
    },
    Assistant {
        content: Option<Content<'a>>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<ToolCall<'a>>,
        /// Reasoning, under its original name.
        #[serde(flatten)]
        reasoning: Map<String, Value>,
    },
    Tool {
        tool_call_id: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<&'a str>,
        content: Content<'a>,
    },
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
    Text {
        text: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    ImageUrl {
        image_url: ImageUrl<'a>,
    },
    /// Mistral's reasoning.
    Thinking {
        thinking: Vec<Self>,
    },
}

impl<'a> Part<'a> {
    pub(super) fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text { text: text.into(), cache_control: None }
    }
}

#[derive(Debug, Serialize)]
pub(super) struct ImageUrl<'a> {
    pub(super) url: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) detail: Option<&'a str>,
}

/// Anthropic's cache marker, which OpenRouter passes on.
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
pub(super) struct ToolCall<'a> {
    pub(super) id: &'a str,
    #[serde(flatten)]
    pub(super) called: Called<'a>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(super) enum Called<'a> {
    Function { function: FunctionCall<'a> },
    Custom { custom: CustomCall<'a> },
}

/// A call of a tool with text input.
#[derive(Debug, Serialize)]
pub(super) struct CustomCall<'a> {
    pub(super) name: &'a str,
    pub(super) input: &'a str,
}

#[derive(Debug, Serialize)]
pub(super) struct FunctionCall<'a> {
    pub(super) name: &'a str,
    /// JSON text.
    pub(super) arguments: String,
}

#[derive(Debug, Serialize)]
pub(super) struct Tool<'a> {
    #[serde(flatten)]
    pub(super) offered: Offered<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cache_control: Option<CacheControl>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(super) enum Offered<'a> {
    Function { function: Function<'a> },
    Custom { custom: Custom<'a> },
}

/// A tool whose input is text of a grammar:
/// <https://platform.openai.com/docs/api-reference/chat/create#chat-create-tools>.
#[derive(Debug, Serialize)]
pub(super) struct Custom<'a> {
    pub(super) name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) description: &'a str,
    pub(super) format: CustomFormat<'a>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(super) enum CustomFormat<'a> {
    Grammar { grammar: Grammar<'a> },
}

#[derive(Debug, Serialize)]
pub(super) struct Grammar<'a> {
    pub(super) syntax: &'static str,
    pub(super) definition: &'a str,
}

#[derive(Debug, Serialize)]
pub(super) struct Function<'a> {
    pub(super) name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) description: &'a str,
    pub(super) parameters: Cow<'a, Value>,
    /// Whether to enforce the schema.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) strict: bool,
}

#[derive(Debug, Deserialize)]
pub(super) struct Chunk<'a> {
    #[serde(borrow, default, deserialize_with = "lenient_str")]
    pub(super) id: Option<Str<'a>>,
    #[serde(borrow, default, deserialize_with = "lenient_str")]
    pub(super) model: Option<Str<'a>>,
    #[serde(borrow)]
    pub(super) choices: Option<Vec<Choice<'a>>>,
    #[serde(borrow, default, deserialize_with = "lenient")]
    pub(super) usage: Option<Usage<'a>>,
    #[serde(borrow, default, deserialize_with = "lenient_str")]
    pub(super) service_tier: Option<Str<'a>>,
    #[serde(borrow, default, deserialize_with = "lenient")]
    pub(super) x_groq: Option<XGroq<'a>>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
pub(super) struct XGroq<'a> {
    #[serde(borrow, default, deserialize_with = "lenient")]
    pub(super) usage: Option<Usage<'a>>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Choice<'a> {
    pub(super) index: Option<Count>,
    #[serde(borrow)]
    pub(super) delta: Option<Delta<'a>>,
    /// The whole answer, from servers that do not stream.
    #[serde(borrow, default, deserialize_with = "lenient")]
    pub(super) message: Option<Delta<'a>>,
    /// The text, from servers of the older API.
    #[serde(borrow, default, deserialize_with = "lenient")]
    pub(super) text: Option<TextPiece<'a>>,
    #[serde(borrow)]
    pub(super) finish_reason: Option<Str<'a>>,
    #[serde(borrow, default, deserialize_with = "lenient")]
    pub(super) usage: Option<Usage<'a>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Delta<'a> {
    #[serde(borrow)]
    pub(super) content: Option<DeltaContent<'a>>,
    #[serde(borrow)]
    pub(super) refusal: Option<TextPiece<'a>>,
    #[serde(borrow)]
    pub(super) reasoning_content: Option<TextPiece<'a>>,
    #[serde(borrow)]
    pub(super) reasoning: Option<TextPiece<'a>>,
    #[serde(borrow)]
    pub(super) reasoning_text: Option<TextPiece<'a>>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) reasoning_details: Option<Vec<Map<String, Value>>>,
    #[serde(borrow)]
    pub(super) tool_calls: Option<Vec<ToolCallDelta<'a>>>,
    /// The older form of a call, of which an answer has at most one.
    #[serde(borrow, default, deserialize_with = "lenient")]
    pub(super) function_call: Option<FunctionDelta<'a>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ToolCallDelta<'a> {
    pub(super) index: Option<Count>,
    #[serde(borrow)]
    pub(super) id: Option<Str<'a>>,
    #[serde(borrow)]
    pub(super) function: Option<FunctionDelta<'a>>,
    #[serde(borrow)]
    pub(super) custom: Option<CustomDelta<'a>>,
    /// Name and arguments, from servers that leave out `function`.
    #[serde(borrow, default, deserialize_with = "lenient_str")]
    pub(super) name: Option<Str<'a>>,
    #[serde(borrow)]
    pub(super) arguments: Option<&'a RawValue>,
}

/// A piece of a call of a tool with text input.
#[derive(Debug, Deserialize)]
pub(super) struct CustomDelta<'a> {
    #[serde(borrow)]
    pub(super) name: Option<Str<'a>>,
    #[serde(borrow)]
    pub(super) input: Option<TextPiece<'a>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct FunctionDelta<'a> {
    #[serde(borrow)]
    pub(super) name: Option<Str<'a>>,
    /// A piece of JSON text in a string, or the complete object.
    #[serde(borrow)]
    pub(super) arguments: Option<&'a RawValue>,
}

/// Content of a delta: text, or Mistral's list of chunks.
#[derive(Debug)]
pub(super) enum DeltaContent<'a> {
    Text(Cow<'a, str>),
    Chunks(Vec<ContentChunk<'a>>),
}

#[derive(Debug, Deserialize)]
pub(super) struct ContentChunk<'a> {
    #[serde(borrow)]
    pub(super) text: Option<TextPiece<'a>>,
    #[serde(borrow)]
    pub(super) thinking: Option<DeltaContent<'a>>,
}

impl<'de: 'a, 'a> Deserialize<'de> for DeltaContent<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ContentVisitor;
        impl<'de> Visitor<'de> for ContentVisitor {
            type Value = DeltaContent<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text or content chunks")
            }
            fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(DeltaContent::Text(Cow::Borrowed(text)))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(DeltaContent::Text(Cow::Owned(text.to_owned())))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut chunks = Vec::new();
                while let Some(chunk) = seq.next_element()? {
                    chunks.push(chunk);
                }
                Ok(DeltaContent::Chunks(chunks))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                let chunk = ContentChunk::deserialize(de::value::MapAccessDeserializer::new(map))?;
                Ok(DeltaContent::Chunks(vec![chunk]))
            }
        }
        deserializer.deserialize_any(ContentVisitor)
    }
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Usage<'a> {
    pub(super) prompt_tokens: Option<Count>,
    pub(super) completion_tokens: Option<Count>,
    pub(super) total_tokens: Option<Count>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) prompt_tokens_details: Option<PromptTokensDetails>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) completion_tokens_details: Option<CompletionTokensDetails>,
    /// GitHub Copilot.
    pub(super) reasoning_tokens: Option<Count>,
    /// DeepSeek.
    pub(super) prompt_cache_hit_tokens: Option<Count>,
    /// Kimi.
    pub(super) cached_tokens: Option<Count>,
    /// Mistral.
    pub(super) num_cached_tokens: Option<Count>,
    /// US dollars at OpenRouter and Vercel; an object elsewhere.
    #[serde(borrow)]
    pub(super) cost: Option<&'a RawValue>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) is_byok: Option<bool>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) cost_details: Option<CostDetails>,
}

#[derive(Debug, Deserialize)]
pub(super) struct PromptTokensDetails {
    pub(super) cached_tokens: Option<Count>,
    pub(super) cache_write_tokens: Option<Count>,
}

#[derive(Debug, Deserialize)]
pub(super) struct CompletionTokensDetails {
    pub(super) reasoning_tokens: Option<Count>,
}

#[derive(Debug, Deserialize)]
pub(super) struct CostDetails {
    pub(super) upstream_inference_cost: Option<f64>,
}
