//! The wire APIs: how requests are encoded and answers decoded.
//!
//! Each API is a folder `{mod, encode, decode, wire}` and a row in [`APIS`]. They
//! share `headers`, `body` and `thinking` for requests, `lenient`, `halves`, `blocks`,
//! `stop_words` and `usage_count` for answers, and the addresses of `azure` and `vertex`.
//! Encoding and decoding are pure; `http_provider` does everything in between:
//! sending, framing, timeouts, cancellation and the final `Done`. The invariant
//! of every decoder: a tool call with incomplete arguments has
//! `arguments_error` set, so it cannot run.

mod anthropic;
mod azure;
mod bedrock;
mod blocks;
mod body;
mod google;
mod halves;
mod headers;
mod lenient;
mod openai_chat;
mod openai_responses;
mod stop_words;
mod thinking;
mod usage_count;
mod vertex;

use reqwest::header::HeaderMap;
use serde_json::Value;

use crate::ai::failure::RequestError;
use crate::ai::messages::{Api, AssistantBlock, StopReason, StreamEvent, Usage, supported_apis};
use crate::ai::requests::{Request, Unmet};
use crate::ai::transport::{Framing, HttpRequest, SseFrame};
use blocks::Blocks;
use body::{strict_tools, write_body};
use halves::{Joint, TextPiece, without_signs};
use headers::Headers;
use lenient::{Count, Str, error_of, filled, lenient, lenient_str, reported_error, with_json};
use stop_words::{ReportedEnd, outcome_of, reported_end};
use thinking::{fitting_budget, mapped_level, thinking_budget};
use usage_count::{UsageCount, billed_cost};

pub(super) use body::{BodyTo, object_schema};
pub(super) use google::json_schema as google_schema;
pub(super) use openai_responses::{Chain, SocketError, TextSignature, is_aside};

/// The two pure halves of a wire API.
pub(super) trait WireApi: Send + Sync {
    /// The URL for requests to this model.
    fn url(&self, request: &Request) -> Result<String, EncodeError>;
    /// Writes the body, the same bytes every time, and returns the headers.
    ///
    /// # Errors
    /// If the request cannot be written.
    fn write(&self, request: &Request, to: BodyTo<'_>) -> Result<HeaderMap, EncodeError>;
    fn decoder(&self, request: &Request) -> Box<dyn Decode>;

    /// The framing of answers.
    fn framing(&self) -> Framing {
        Framing::Text
    }

    /// Whether [`Self::sign`] needs the whole body.
    fn signs_body(&self) -> bool {
        false
    }

    /// Adds to `encoded` the parts that depend on the time of sending, in milliseconds
    /// since the Unix epoch. Called before every attempt.
    fn sign(&self, _request: &Request, _encoded: &mut HttpRequest, _now_ms: u64) -> Result<(), EncodeError> {
        Ok(())
    }

    /// The thinking effort in the service's words, if the request sets it between
    /// the turns. The answer stores it, so that later requests can repeat it.
    fn told_effort(&self, _request: &Request) -> Option<String> {
        None
    }

    /// The headers that open a WebSocket for such requests, made of those of the request itself;
    /// `None` unless the service is known to answer them there. [`Chain`] has the messages.
    fn web_socket_headers(&self, _request: &Request, _headers: &HeaderMap) -> Option<HeaderMap> {
        None
    }

    /// The least limit of an answer that leaves the rest of the request as it is; `None` if
    /// there is none.
    fn shortest_answer(&self, _request: &Request) -> Option<u64> {
        Some(1)
    }

    /// A remedy for `error`, the text of a rejected request.
    fn hint(&self, _request: &Request, _error: &str) -> Option<String> {
        None
    }
}

/// Decodes one answer.
pub(super) trait Decode: Send {
    /// Reads one frame and appends the events it completes.
    ///
    /// # Errors
    /// The caller must stop feeding frames; [`Self::finish`] still returns earlier content.
    fn frame(&mut self, frame: &SseFrame<'_>, out: &mut Vec<StreamEvent>) -> Result<(), DecodeError>;

    /// Whether the answer is complete; the server may keep the connection open.
    fn is_complete(&self) -> bool;

    /// The price of the answer relative to the model's listed prices.
    fn price_factor(&self) -> f64 {
        1.0
    }

    /// Whether `document`, which arrived outside a frame, is the data of a frame.
    /// Only called for documents that are not errors.
    fn reads_document(&self, _document: &Value) -> bool {
        false
    }

    /// The content so far, as the service wants it back, if it has paused the answer. The frames that
    /// follow continue it.
    fn resume(&mut self) -> Option<Vec<Value>> {
        None
    }

    /// Closes all blocks and returns the result, after the last frame.
    fn finish(self: Box<Self>, end: End, out: &mut Vec<StreamEvent>) -> Finish;
}

/// How the frames ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// The server closed the stream, possibly without its end marker.
    Closed,
    /// The connection was lost. The answer is complete if its end marker had arrived.
    Lost,
    /// Cancelled, failed or malformed: nothing after this point was read.
    Cut,
}

/// The result of decoding. After [`End::Cut`] the caller has the better reason.
#[derive(Debug)]
pub(super) struct Finish {
    pub(super) content: Vec<AssistantBlock>,
    pub(super) usage: Usage,
    /// `Error` includes its text.
    pub(super) outcome: Result<StopReason, RequestError>,
    pub(super) response_id: Option<String>,
    /// The model that answered, if it differs from the requested one.
    pub(super) response_model: Option<String>,
    pub(super) raw_stop_reason: Option<String>,
    /// Notes about the answer, in the form of session files without their time.
    pub(super) diagnostics: Vec<Value>,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum DecodeError {
    /// The data of a frame is truncated or does not match the API.
    #[error("the stream carried malformed JSON: {0}")]
    Malformed(#[from] serde_json::Error),
    /// The server reported an error, or violated the protocol.
    #[error("{0}")]
    Failed(Box<RequestError>),
}

impl DecodeError {
    /// A failure of which only the text is known.
    fn failed(text: impl Into<String>) -> Self {
        RequestError::from(text.into()).into()
    }
}

impl From<RequestError> for DecodeError {
    fn from(error: RequestError) -> Self {
        Self::Failed(Box::new(error))
    }
}

impl From<DecodeError> for RequestError {
    fn from(error: DecodeError) -> Self {
        match error {
            DecodeError::Failed(error) => *error,
            malformed @ DecodeError::Malformed(_) => Self::cut_off(&malformed.to_string()),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub(super) enum EncodeError {
    #[error("the header {0:?} cannot be sent: its name or value has characters HTTP does not allow")]
    Header(String),
    #[error("{0} has no base URL; set \"baseUrl\" in models.json")]
    NoAddress(String),
    #[error("no project for Vertex AI; set GOOGLE_CLOUD_PROJECT and GOOGLE_CLOUD_LOCATION")]
    NoPlace,
    #[error(transparent)]
    Strict(#[from] Unmet),
    #[error("the request cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

/// TABLE: the codec of each supported API.
const APIS: &[(Api, &'static dyn WireApi)] = &[
    (Api::ANTHROPIC_MESSAGES, &anthropic::AnthropicMessages { host: anthropic::Host::Direct }),
    (Api::ANTHROPIC_VERTEX, &anthropic::AnthropicMessages { host: anthropic::Host::Vertex }),
    (Api::BEDROCK_CONVERSE_STREAM, &bedrock::BedrockConverse),
    (Api::GOOGLE_GENERATIVE_AI, &google::GoogleGenerativeAi),
    (Api::GOOGLE_VERTEX, &google::GoogleVertex),
    (Api::OPENAI_COMPLETIONS, &openai_chat::OpenAiChat { path: "/chat/completions" }),
    (Api::MISTRAL_CONVERSATIONS, &openai_chat::OpenAiChat { path: "/v1/chat/completions" }),
    (Api::OPENAI_RESPONSES, &openai_responses::OpenAiResponses { path: "/responses" }),
    (Api::OPENAI_CODEX_RESPONSES, &openai_responses::OpenAiResponses { path: "/codex/responses" }),
    (Api::AZURE_OPENAI_RESPONSES, &openai_responses::OpenAiResponses { path: "/responses" }),
];

pub(super) fn find(api: &Api) -> Option<&'static dyn WireApi> {
    APIS.iter().find(|(name, _)| name == api).map(|(_, codec)| *codec)
}

/// Where users put a limit of their own.
const LIMIT_FIELDS: [&str; 5] =
    ["max_tokens", "max_completion_tokens", "max_output_tokens", "generationConfig", "inferenceConfig"];

/// The least [`answer_cap`](crate::ai::StreamOptions::answer_cap) that leaves the rest of `request`
/// as it is, in tokens; `None` if its API, its thinking budget or a continued answer does not
/// allow that.
pub fn shortest_answer(request: &Request) -> Option<u64> {
    let options = &request.options;
    let is_fixed = options.continue_from.is_some()
        || LIMIT_FIELDS.iter().any(|field| options.extra_body.contains_key(*field));
    if is_fixed {
        return None;
    }
    find(&request.model.api)?.shortest_answer(request)
}

/// The user's message for an API that is not in the table.
pub(super) fn unsupported(api: &Api) -> String {
    format!("the API {:?} is not supported; supported are {}", api.as_str(), supported_apis().join(", "))
}

/// Joins `base` and `path`; a version in both appears once.
fn join_url(base: &str, path: &str) -> String {
    let base = base.trim_end_matches('/');
    let base = if path.starts_with("/v1/") { base.strip_suffix("/v1").unwrap_or(base) } else { base };
    format!("{base}{path}")
}

/// The prefix of a session's id that OpenAI accepts as a cache key.
fn cache_key(session: &str) -> &str {
    const MAX_CHARS: usize = 64;
    match session.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => &session[..end],
        None => session,
    }
}

/// What a service charges for this processing tier, compared with the standard one.
///
/// Constants, because no catalogue has prices of processing tiers: neither the lists
/// compiled in, nor what the original stores, nor `models.json`, whose `cost.tiers` are
/// rates by the length of the prompt. The factors are those of
/// <https://openai.com/api/pricing>, and the original's.
fn tier_factor(service_tier: Option<&str>, model: &str) -> f64 {
    match service_tier {
        Some("flex") => 0.5,
        Some("priority") if model.starts_with("gpt-5.5") => 2.5,
        Some("priority") => 2.0,
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ai::messages::SPOKEN;

    #[test]
    fn every_spoken_api_has_a_codec_and_no_other() {
        let with_codec: Vec<&Api> = APIS.iter().map(|(api, _)| api).collect();
        assert_eq!(with_codec, SPOKEN.iter().collect::<Vec<_>>());
    }

    #[test]
    fn urls_join_without_repeating_the_version() {
        let check = |base: &str, path: &str, expected: &str| assert_eq!(join_url(base, path), expected);
        check("https://a.b", "/v1/messages", "https://a.b/v1/messages");
        check("https://a.b/v1/", "/v1/messages", "https://a.b/v1/messages");
        check("https://a.b/api/v1/", "/chat/completions", "https://a.b/api/v1/chat/completions");
    }
}
