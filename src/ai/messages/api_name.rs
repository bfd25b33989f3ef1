//! The names of wire APIs, in files and in the messages they produced.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

/// The wire API of a model, by its name in files and sessions.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Api(Cow<'static, str>);

impl Api {
    /// Anthropic Messages.
    pub const ANTHROPIC_MESSAGES: Self = Self(Cow::Borrowed("anthropic-messages"));
    /// OpenAI Chat Completions.
    pub const OPENAI_COMPLETIONS: Self = Self(Cow::Borrowed("openai-completions"));
    /// Chat Completions with Mistral's quirks.
    pub const MISTRAL_CONVERSATIONS: Self = Self(Cow::Borrowed("mistral-conversations"));
    /// OpenAI Responses.
    pub const OPENAI_RESPONSES: Self = Self(Cow::Borrowed("openai-responses"));
    /// Responses of the service behind ChatGPT, for ChatGPT accounts.
    pub const OPENAI_CODEX_RESPONSES: Self = Self(Cow::Borrowed("openai-codex-responses"));
    /// Responses at Azure's endpoints.
    pub const AZURE_OPENAI_RESPONSES: Self = Self(Cow::Borrowed("azure-openai-responses"));
    /// Gemini, and the other models of the Gemini API.
    pub const GOOGLE_GENERATIVE_AI: Self = Self(Cow::Borrowed("google-generative-ai"));
    /// Google's models on Vertex AI.
    pub const GOOGLE_VERTEX: Self = Self(Cow::Borrowed("google-vertex"));
    /// Anthropic's models on Vertex AI.
    pub const ANTHROPIC_VERTEX: Self = Self(Cow::Borrowed("anthropic-vertex"));
    /// Amazon Bedrock's `ConverseStream`, for models of any vendor.
    pub const BEDROCK_CONVERSE_STREAM: Self = Self(Cow::Borrowed("bedrock-converse-stream"));
    /// The offline demo model.
    pub const DEMO: Self = Self(Cow::Borrowed("demo"));

    /// An API with a name fixed at compile time.
    pub(in crate::ai) fn known(name: &'static str) -> Self {
        Self(Cow::Borrowed(name))
    }

    /// An API by the name that files have.
    pub fn new(name: impl Into<String>) -> Self {
        Self(Cow::Owned(name.into()))
    }

    /// The name that files have.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The APIs pi supports: each has a codec.
pub(in crate::ai) static SPOKEN: [Api; 10] = [
    Api::ANTHROPIC_MESSAGES,
    Api::ANTHROPIC_VERTEX,
    Api::BEDROCK_CONVERSE_STREAM,
    Api::GOOGLE_GENERATIVE_AI,
    Api::GOOGLE_VERTEX,
    Api::OPENAI_COMPLETIONS,
    Api::MISTRAL_CONVERSATIONS,
    Api::OPENAI_RESPONSES,
    Api::OPENAI_CODEX_RESPONSES,
    Api::AZURE_OPENAI_RESPONSES,
];

/// The wire APIs that `models.json` can name.
pub fn supported_apis() -> Vec<&'static str> {
    SPOKEN.iter().map(Api::as_str).collect()
}
