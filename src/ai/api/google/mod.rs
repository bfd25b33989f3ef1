//! Google's `generateContent`: <https://ai.google.dev/api/generate-content>, in
//! the Gemini API and on Vertex AI.
//!
//! pi never requests server-side tools; their parts are skipped. Signatures are
//! opaque: they are sent back with their part, only to the model that made them,
//! and are never joined.

mod decode;
mod encode;
mod family;
mod partial_args;
mod schema;
mod wire;

use reqwest::header::HeaderMap;

use super::{BodyTo, Decode, EncodeError, WireApi, join_url, vertex};
use crate::ai::requests::Request;
use crate::ai::transport::escape_segment;

pub(in crate::ai) use schema::json_schema;

/// The Gemini API, with an API key.
#[derive(Debug)]
pub(super) struct GoogleGenerativeAi;

impl WireApi for GoogleGenerativeAi {
    fn url(&self, request: &Request) -> Result<String, EncodeError> {
        // Tuned models have a separate collection.
        let id = request.model.id.as_str();
        let (collection, id) = match id.split_once('/') {
            Some((collection @ ("models" | "tunedModels"), id)) => (collection, id),
            _ => ("models", id),
        };
        let path = format!("/{collection}/{}:streamGenerateContent?alt=sse", escape_segment(id));
        Ok(join_url(request.base_url(), &path))
    }

    fn write(&self, request: &Request, to: BodyTo<'_>) -> Result<HeaderMap, EncodeError> {
        encode::write(request, to)
    }

    fn decoder(&self, request: &Request) -> Box<dyn Decode> {
        Box::new(decode::Decoder::new(&request.model.id, request.options.started_ms, request.n_word_bytes()))
    }
}

/// Google's own models on Vertex AI.
#[derive(Debug)]
pub(super) struct GoogleVertex;

impl WireApi for GoogleVertex {
    fn url(&self, request: &Request) -> Result<String, EncodeError> {
        vertex::model_url(request, "google", "streamGenerateContent?alt=sse")
    }

    fn write(&self, request: &Request, to: BodyTo<'_>) -> Result<HeaderMap, EncodeError> {
        encode::write(request, to)
    }

    fn decoder(&self, request: &Request) -> Box<dyn Decode> {
        GoogleGenerativeAi.decoder(request)
    }
}
