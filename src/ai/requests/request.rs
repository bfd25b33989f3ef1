//! Everything one model call depends on.

use crate::ai::models::{Model, RequestTraits};
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::ai::messages::{Message, ThinkingLevel};
use crate::ai::transport::Credential;

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

    pub(in crate::ai) fn traits(&self) -> RequestTraits {
        RequestTraits {
            signed_in: matches!(self.credential, Credential::SignedIn(_)),
            long_cache: self.options.long_cache,
            without_updates: self.options.without_updates,
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
