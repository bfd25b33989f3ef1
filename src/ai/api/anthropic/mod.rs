//! Anthropic Messages: <https://docs.anthropic.com/en/api/messages>, streaming
//! as in <https://docs.anthropic.com/en/docs/build-with-claude/streaming>.
//!
//! Also spoken by services that copy it. Server-side tools are never asked for;
//! their blocks are skipped if they come anyway.

mod decode;
mod encode;
mod wire;

use super::super::provider::Request;
use super::{Decode, EncodeError, HttpRequest, WireApi};

#[derive(Debug)]
pub(super) struct AnthropicMessages;

impl WireApi for AnthropicMessages {
    fn encode(&self, request: &Request) -> Result<HttpRequest, EncodeError> {
        encode::encode(request)
    }

    fn decoder(&self, request: &Request) -> Box<dyn Decode> {
        Box::new(decode::Decoder::new(&request.model.id))
    }
}
