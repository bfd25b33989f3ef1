//! Amazon Bedrock's `ConverseStream`:
//! <https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html>.
//!
//! One API for models of many vendors; `family` has their differences. Requests
//! carry a bearer token or a signature, which is computed anew
//! for every attempt. Answers are binary event streams.

mod decode;
mod encode;
mod family;
mod images;
mod wire;

use reqwest::Url;
use reqwest::header::HeaderMap;

use super::{BodyTo, Decode, EncodeError, WireApi, join_url};
use crate::ai::models::{
    BEDROCK_DEFAULT_REGION, BEDROCK_TEMPLATE, arn_region, bedrock_base_url, bedrock_region, is_region,
};
use crate::ai::requests::Request;
use crate::ai::transport::{Credential, Framing, HttpBody, HttpRequest, Scope, escape_segment, sigv4};

#[derive(Debug)]
pub(super) struct BedrockConverse;

impl WireApi for BedrockConverse {
    fn url(&self, request: &Request) -> Result<String, EncodeError> {
        Ok(url(request))
    }

    fn write(&self, request: &Request, to: BodyTo<'_>) -> Result<HeaderMap, EncodeError> {
        encode::write(request, to)
    }

    fn decoder(&self, request: &Request) -> Box<dyn Decode> {
        Box::new(decode::Decoder::new(request.n_word_bytes()))
    }

    fn framing(&self) -> Framing {
        Framing::AmazonEventStream
    }

    fn signs_body(&self) -> bool {
        true
    }

    fn sign(&self, request: &Request, encoded: &mut HttpRequest, now_ms: u64) -> Result<(), EncodeError> {
        let Credential::Aws(keys) = &request.credential else { return Ok(()) };
        // The transport reports addresses that are invalid.
        let Ok(url) = encoded.url.parse::<Url>() else { return Ok(()) };
        let HttpBody::Whole(body) = &encoded.body else { return Ok(()) };
        let region = region(request);
        let scope = Scope { region, service: "bedrock" };
        sigv4::sign_post(keys, scope, &url, &mut encoded.headers, body, now_ms)
            .map_err(|_| EncodeError::Header("authorization".to_owned()))
    }

    fn shortest_answer(&self, request: &Request) -> Option<u64> {
        encode::shortest_answer(request)
    }

    fn hint(&self, request: &Request, error: &str) -> Option<String> {
        error.contains("on-demand throughput").then(|| {
            let id = &request.model.id;
            format!("choose an inference profile of the model, such as us.{id}, eu.{id} or global.{id}")
        })
    }
}

/// The region of the request and of its signature: that of an ARN,
/// otherwise of the keys, otherwise of the address.
fn region(request: &Request) -> &str {
    let keys = match &request.credential {
        Credential::Aws(keys) => Some(keys.region.as_str()).filter(|region| is_region(region)),
        _ => None,
    };
    let region = arn_region(&request.model.id).or(keys);
    region.or_else(|| bedrock_region(request.base_url())).unwrap_or(BEDROCK_DEFAULT_REGION)
}

fn url(request: &Request) -> String {
    let base = match request.base_url() {
        "" => BEDROCK_TEMPLATE,
        base => base,
    };
    let base = bedrock_base_url(base, region(request));
    join_url(&base, &format!("/model/{}/converse-stream", escape_segment(&request.model.id)))
}
