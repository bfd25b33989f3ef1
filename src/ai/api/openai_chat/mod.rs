//! OpenAI Chat Completions: <https://platform.openai.com/docs/api-reference/chat>.
//!
//! The API that most vendors copied, each with deviations. `compat` has the
//! documented differences; the decoder corrects the servers' mistakes.

mod decode;
mod encode;
mod wire;

use reqwest::header::HeaderMap;

use super::{BodyTo, Decode, EncodeError, WireApi};
use crate::ai::messages::GrammarParameters;
use crate::ai::models::ChatCompat;
use crate::ai::requests::Request;

#[derive(Debug)]
pub(super) struct OpenAiChat {
    /// Appended to the base URL.
    pub(super) path: &'static str,
}

impl WireApi for OpenAiChat {
    fn url(&self, request: &Request) -> Result<String, EncodeError> {
        encode::url(request, self.path)
    }

    fn write(&self, request: &Request, to: BodyTo<'_>) -> Result<HeaderMap, EncodeError> {
        encode::write(request, to)
    }

    fn decoder(&self, request: &Request) -> Box<dyn Decode> {
        let compat = ChatCompat::of(&request.model);
        let call_seed = request.options.started_ms;
        let grammars = GrammarParameters::of(request.messages.iter().map(AsRef::as_ref));
        let sent_bytes = request.n_word_bytes();
        let finishes = compat.supports_finish_reason;
        Box::new(decode::Decoder::new(&request.model.id, finishes, call_seed, grammars, sent_bytes))
    }
}
