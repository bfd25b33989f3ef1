//! Anthropic Messages: <https://docs.anthropic.com/en/api/messages>, streaming
//! as in <https://docs.anthropic.com/en/docs/build-with-claude/streaming>.
//!
//! Also used for services that copy it. pi never requests server-side tools;
//! their blocks are skipped.

mod decode;
mod encode;
mod wire;

use reqwest::header::HeaderMap;

use super::{BodyTo, Decode, EncodeError, WireApi};
use crate::ai::requests::Request;

/// The host of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Host {
    /// Anthropic, or a service that copies its API.
    Direct,
    /// Vertex AI, whose URLs contain the model:
    /// <https://docs.anthropic.com/en/api/claude-on-vertex-ai>.
    Vertex,
}

#[derive(Debug)]
pub(super) struct AnthropicMessages {
    pub(super) host: Host,
}

impl WireApi for AnthropicMessages {
    fn url(&self, request: &Request) -> Result<String, EncodeError> {
        encode::url(request, self.host)
    }

    fn write(&self, request: &Request, to: BodyTo<'_>) -> Result<HeaderMap, EncodeError> {
        encode::write(request, self.host, to)
    }

    fn decoder(&self, request: &Request) -> Box<dyn Decode> {
        Box::new(decode::Decoder::new(&request.model.id, request.n_word_bytes()))
    }

    fn told_effort(&self, request: &Request) -> Option<String> {
        encode::told_effort(request)
    }

    fn shortest_answer(&self, request: &Request) -> Option<u64> {
        encode::shortest_answer(request)
    }
}
