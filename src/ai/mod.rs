//! Messages every provider shares, and the providers.
//!
//! This module is the facade: other layers name only what it re-exports. It
//! knows no tools, files, sessions or screens. Its invariant: a provider never
//! fails twice, because a stream is a sequence of events with exactly one
//! terminal event, which carries the failure if there is one.

mod answer;
mod api;
mod bedrock_place;
mod builder;
mod call;
mod catalog;
mod compat;
mod compat_fields;
mod constrained;
mod continuation;
mod demo;
mod event_stream;
mod failure;
mod fake;
pub mod foreign;
mod framing;
mod http;
mod http_provider;
mod image_fit;
mod image_limits;
mod image_url;
mod local_servers;
mod message;
mod model;
mod model_lists;
mod partial_json;
mod provider;
mod redact;
mod refusals;
mod router;
mod sampling;
mod sigv4;
mod silence;
mod sse;
mod stream;
mod strict_schema;
mod transform;
mod vendors;
mod vertex;

pub use answer::decode_recorded;

pub use bedrock_place::{BEDROCK_DEFAULT_REGION, BEDROCK_TEMPLATE, bedrock_base_url, bedrock_region};
pub use builder::{AssistantMessageBuilder, Blank, Filled, ToolResultBuilder, UserMessageBuilder};
pub use call::{Call, CallBody, CallError, CallReply};
pub use catalog::{Catalog, DEMO_PROVIDER, LiveCatalog, MatchError, Matched, ProviderInfo, ScopedModel};
pub use compat_fields::{COMPAT_FIELDS, CompatField, CompatKind};
pub use constrained::{ConstrainedSampling, Grammars, Strictness};
pub use continuation::continuable;
pub use demo::{DemoPace, DemoProvider};
pub use failure::{
    Failure, FailureClass, Place, Refused, Rejection, classify, failure_text, is_overflow, is_retryable,
    rejection, retry_delay,
};
pub use fake::{FakeAnswer, FakeProvider, Gate};
pub use http::Transport;
pub use http_provider::{HttpOptions, HttpProvider, RequestPreview, preview_request, request_body};
pub use image_fit::fit_for_storing;
pub use image_url::{ImageUrl, NoImage};
pub use local_servers::{LOCAL_SERVERS, LocalAddresses, LocalServer, discover, local_server};
pub use message::{
    AssistantBlock, AssistantMessage, ContentBlock, Extra, Image, Message, Millis, RemovedTool, StopReason,
    SystemContent, SystemMessage, Text, Thinking, ToolCall, ToolDeclaration, ToolResultMessage, Usage,
    UsageCost, UserContent, UserMessage, join_text,
};
pub use model::{Api, Cost, CostTier, Modality, Model, ThinkingLevel};
pub use model_lists::{list_models, variable};
pub use partial_json::{finished_arguments, parse_lenient, parse_strict, replace_lone_surrogates};
pub use provider::{AwsKeys, Credential, Provider, Request, SignIn, StreamOptions, ToolChoice};
pub use router::Router;
pub use sampling::{Sampling, SamplingPolicy};
pub use sse::{RecordedFrame, recorded_frames};
pub use stream::{BlockKind, EventStream, MessageBuilder, StreamEvent, StreamOrder};
pub use transform::{SystemState, system_state};
pub use vendors::{EnvKey, VENDORS, Vendor, vendor};
pub use vertex::{VERTEX_TEMPLATE, VertexPlace};

/// The wire APIs a model can be spoken to in, by their names in `models.json`.
pub fn supported_apis() -> Vec<&'static str> {
    api::names()
}
