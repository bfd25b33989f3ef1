//! The seam between whoever wants an answer and whoever produces one.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::ai::messages::{EventStream, Message};
use crate::ai::models::{Model, ThinkingLevel};
use crate::ai::transport::Credential;

/// Answers requests. `HttpProvider` for real services, `DemoProvider` without
/// one, `FakeProvider` in tests; `Router` picks by the model's API.
pub trait Provider: Send + Sync {
    /// Starts answering. The stream ends soon after `cancel` fires, with
    /// `StopReason::Aborted` and what had arrived until then. Dropping the
    /// stream ends the work behind it.
    fn stream(&self, request: Arc<Request>, cancel: CancellationToken) -> EventStream;

    /// Gets ready for the first request to `model`, which then need not wait for
    /// what takes long. Blocks; optional.
    fn warm_up(&self, _model: &Model) {}
}

/// Everything one model call depends on: no environment, no globals.
#[derive(Debug, Clone)]
pub struct Request {
    pub model: Arc<Model>,
    pub credential: Credential,
    /// The conversation, system messages included; `transform` decides what of
    /// it the provider gets to see.
    pub messages: Vec<Arc<Message>>,
    pub options: StreamOptions,
}

impl Request {
    /// Where the service is: the account's own address before the model's.
    pub fn base_url(&self) -> &str {
        match &self.credential {
            Credential::SignedIn(account) => account.base_url.as_deref().unwrap_or(&self.model.base_url),
            _ => &self.model.base_url,
        }
    }
}

/// What the caller asks of one answer. `None` leaves it to the provider.
#[derive(Debug, Clone, Default)]
pub struct StreamOptions {
    pub thinking: ThinkingLevel,
    pub temperature: Option<f64>,
    pub top_p: Option<f64>,
    /// Upper bound of tokens to answer with; clamped to model and window.
    pub max_tokens: Option<u64>,
    pub stop_sequences: Vec<String>,
    pub tool_choice: Option<ToolChoice>,
    /// Names the conversation to the provider's cache.
    pub session_id: Option<String>,
    /// The beginning of the answer, from an attempt that broke off: the model goes
    /// on after it, where its API allows that, and the answer holds both.
    pub continue_from: Option<String>,
    /// Request start, milliseconds since the Unix epoch: the message's timestamp.
    pub started_ms: u64,
    /// Asks the provider to keep the prompt in its cache for long.
    pub long_cache: bool,
    /// Thinking tokens of each level, where they differ from the usual ones.
    pub thinking_budgets: BTreeMap<ThinkingLevel, u64>,
    /// Leaves out the strict schemas of tools that merely prefer one: the service
    /// has refused such a request.
    pub without_strict_schemas: bool,
    /// Says all of the system at the start, and lets no other model stand in: the
    /// service has refused a request that did otherwise.
    pub without_updates: bool,
    /// Fields merged into the request body last, for what this list lacks.
    pub extra_body: serde_json::Map<String, Value>,
}

/// Whether and what the model must call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolChoice {
    Auto,
    Any,
    None,
    Tool(String),
}
