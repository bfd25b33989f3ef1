//! OpenAI Responses: <https://platform.openai.com/docs/api-reference/responses>,
//! streaming as in
//! <https://platform.openai.com/docs/api-reference/responses-streaming>.
//!
//! Used without server state: nothing is stored there, so every request
//! contains the whole conversation, and reasoning is exchanged encrypted. Data that
//! must be sent back unchanged is stored in the blocks of an answer: a complete
//! reasoning item in the signature of its thinking, id and phase of a message in the
//! signature of its text, and a call's two ids as `call_id|item_id` in its id.
//! Session files of the original have the same form.
//!
//! The service behind ChatGPT and Azure use the same API at other addresses;
//! `compat` has the differences.

mod chain;
mod decode;
mod encode;
mod wire;

use reqwest::header::HeaderMap;

use super::{BodyTo, Decode, EncodeError, WireApi};
use crate::ai::messages::GrammarParameters;
use crate::ai::requests::Request;

pub(in crate::ai) use chain::{Chain, SocketError, is_aside};
pub(in crate::ai) use wire::TextSignature;

#[derive(Debug)]
pub(super) struct OpenAiResponses {
    /// Appended to the base URL.
    pub(super) path: &'static str,
}

impl WireApi for OpenAiResponses {
    fn url(&self, request: &Request) -> Result<String, EncodeError> {
        encode::url(request, self.path)
    }

    fn write(&self, request: &Request, to: BodyTo<'_>) -> Result<HeaderMap, EncodeError> {
        encode::write(request, to)
    }

    fn decoder(&self, request: &Request) -> Box<dyn Decode> {
        let grammars = GrammarParameters::of(request.messages.iter().map(AsRef::as_ref));
        Box::new(decode::Decoder::new(&request.model.id, grammars, request.n_word_bytes()))
    }

    fn told_effort(&self, request: &Request) -> Option<String> {
        encode::told_effort(request)
    }

    fn web_socket_headers(&self, request: &Request, headers: &HeaderMap) -> Option<HeaderMap> {
        encode::web_socket_headers(request, headers)
    }

    fn shortest_answer(&self, request: &Request) -> Option<u64> {
        encode::shortest_answer(request)
    }
}
