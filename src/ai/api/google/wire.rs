//! The part of Google's JSON that pi uses. Other fields are ignored.

use std::borrow::Cow;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::super::{Count, Str, TextPiece};

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Body<'a> {
    pub(super) contents: Vec<Content<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) system_instruction: Option<SystemInstruction<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_config: Option<ToolConfig<'a>>,
    pub(super) generation_config: GenerationConfig<'a>,
}

#[derive(Debug, Serialize)]
pub(super) struct SystemInstruction<'a> {
    pub(super) parts: [Part<'a>; 1],
}

#[derive(Debug, Serialize)]
pub(super) struct Content<'a> {
    pub(super) role: Role,
    pub(super) parts: Vec<Part<'a>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Role {
    User,
    Model,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Part<'a> {
    #[serde(flatten)]
    pub(super) data: PartData<'a>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) thought: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) thought_signature: Option<&'a str>,
}

impl<'a> Part<'a> {
    /// A part that is neither thought nor signed.
    pub(super) fn plain(data: PartData<'a>) -> Self {
        Self { data, thought: false, thought_signature: None }
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum PartData<'a> {
    Text(&'a str),
    InlineData(Blob<'a>),
    FileData(File<'a>),
    FunctionCall(Call<'a>),
    FunctionResponse(Response<'a>),
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Blob<'a> {
    pub(super) mime_type: &'a str,
    /// Base64.
    pub(super) data: &'a str,
}

/// <https://ai.google.dev/api/caching#FileData>; Vertex AI requires the type.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct File<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) mime_type: Option<&'a str>,
    pub(super) file_uri: &'a str,
}

#[derive(Debug, Serialize)]
pub(super) struct Call<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<&'a str>,
    pub(super) name: &'a str,
    pub(super) args: &'a Value,
}

#[derive(Debug, Serialize)]
pub(super) struct Response<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<&'a str>,
    pub(super) name: &'a str,
    pub(super) response: Outcome<'a>,
    /// Images, for models that read them in responses.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) parts: Vec<Part<'a>>,
}

/// The keys by which the API distinguishes success from failure.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Outcome<'a> {
    Output(Cow<'a, str>),
    Error(Cow<'a, str>),
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Tool<'a> {
    pub(super) function_declarations: Vec<Declaration<'a>>,
}

#[derive(Debug, Serialize)]
pub(super) struct Declaration<'a> {
    pub(super) name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) description: &'a str,
    #[serde(flatten)]
    pub(super) schema: Schema<'a>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Schema<'a> {
    ParametersJsonSchema(Cow<'a, Value>),
    Parameters(Value),
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolConfig<'a> {
    pub(super) function_calling_config: FunctionCallingConfig<'a>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FunctionCallingConfig<'a> {
    pub(super) mode: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) allowed_function_names: Option<[&'a str; 1]>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) stream_function_call_arguments: bool,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GenerationConfig<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) top_p: Option<f64>,
    pub(super) max_output_tokens: u64,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    pub(super) stop_sequences: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) thinking_config: Option<ThinkingConfig>,
}

#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ThinkingConfig {
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) include_thoughts: bool,
    #[serde(flatten)]
    pub(super) amount: Amount,
}

/// The amount of thinking. The API rejects a request with both forms.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Amount {
    /// In tokens; 0 turns thinking off, -1 lets the model decide.
    ThinkingBudget(i64),
    ThinkingLevel(String),
}

/// One `GenerateContentResponse`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Chunk<'a> {
    #[serde(borrow)]
    pub(super) candidates: Option<Vec<Candidate<'a>>>,
    #[serde(borrow)]
    pub(super) prompt_feedback: Option<PromptFeedback<'a>>,
    pub(super) usage_metadata: Option<UsageMetadata>,
    #[serde(borrow)]
    pub(super) model_version: Option<Str<'a>>,
    #[serde(borrow)]
    pub(super) response_id: Option<Str<'a>>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Candidate<'a> {
    pub(super) index: Option<Count>,
    #[serde(borrow)]
    pub(super) content: Option<AnswerContent<'a>>,
    #[serde(borrow)]
    pub(super) finish_reason: Option<Str<'a>>,
    #[serde(borrow)]
    pub(super) finish_message: Option<Str<'a>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct AnswerContent<'a> {
    #[serde(borrow)]
    pub(super) parts: Option<Vec<AnswerPart<'a>>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AnswerPart<'a> {
    #[serde(borrow)]
    pub(super) text: Option<TextPiece<'a>>,
    pub(super) thought: Option<bool>,
    #[serde(borrow)]
    pub(super) thought_signature: Option<Str<'a>>,
    #[serde(borrow)]
    pub(super) function_call: Option<FunctionCall<'a>>,
    // Output of server-side tools and other media; never requested.
    executable_code: Option<IgnoredAny>,
    code_execution_result: Option<IgnoredAny>,
    inline_data: Option<IgnoredAny>,
    file_data: Option<IgnoredAny>,
    function_response: Option<IgnoredAny>,
    tool_call: Option<IgnoredAny>,
    tool_response: Option<IgnoredAny>,
}

impl AnswerPart<'_> {
    /// Whether the part contains data of a skipped kind.
    pub(super) fn is_foreign(&self) -> bool {
        self.executable_code.is_some()
            || self.code_execution_result.is_some()
            || self.inline_data.is_some()
            || self.file_data.is_some()
            || self.function_response.is_some()
            || self.tool_call.is_some()
            || self.tool_response.is_some()
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FunctionCall<'a> {
    #[serde(borrow)]
    pub(super) id: Option<Str<'a>>,
    #[serde(borrow)]
    pub(super) name: Option<Str<'a>>,
    #[serde(borrow)]
    pub(super) args: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) partial_args: Option<Vec<PartialArg<'a>>>,
    pub(super) will_continue: Option<bool>,
}

/// A piece of the arguments: a value, or the next segment of a string.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PartialArg<'a> {
    #[serde(borrow)]
    pub(super) json_path: Option<Str<'a>>,
    #[serde(borrow)]
    pub(super) string_value: Option<TextPiece<'a>>,
    pub(super) number_value: Option<serde_json::Number>,
    pub(super) bool_value: Option<bool>,
    pub(super) will_continue: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PromptFeedback<'a> {
    #[serde(borrow)]
    pub(super) block_reason: Option<Str<'a>>,
    #[serde(borrow)]
    pub(super) block_reason_message: Option<Str<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UsageMetadata {
    pub(super) prompt_token_count: Option<Count>,
    pub(super) cached_content_token_count: Option<Count>,
    pub(super) tool_use_prompt_token_count: Option<Count>,
    pub(super) candidates_token_count: Option<Count>,
    pub(super) thoughts_token_count: Option<Count>,
    pub(super) total_token_count: Option<Count>,
}
