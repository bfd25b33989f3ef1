//! Messages every provider shares, and the providers.
//!
//! This module is the facade: other layers name only what it re-exports. It
//! knows no tools, files, sessions or screens. Its invariant: a provider never
//! fails twice, because a stream is a sequence of events with exactly one
//! terminal event, which carries the failure if there is one.

mod api;
mod demo;
mod failure;
pub mod foreign;
mod messages;
mod models;
mod providers;
mod requests;
mod transport;

pub use providers::{
    FakeAnswer, FakeProvider, Gate, HttpOptions, HttpProvider, RequestPreview, Router, decode_recorded,
    preview_request, request_body,
};

pub use demo::{DemoPace, DemoProvider};
pub use failure::{
    Failure, FailureClass, Place, Refused, Rejection, classify, failure_text, is_overflow, is_retryable,
    rejection, retry_delay,
};
pub use messages::{
    AssistantBlock, AssistantMessage, AssistantMessageBuilder, Blank, BlockKind, ConstrainedSampling,
    ContentBlock, EventStream, Extra, Filled, Grammars, Image, ImageUrl, Message, MessageBuilder, Millis,
    NoImage, RemovedTool, StopReason, StreamEvent, StreamOrder, Strictness, SystemContent, SystemMessage,
    Text, Thinking, ToolCall, ToolDeclaration, ToolResultBuilder, ToolResultMessage, Usage, UsageCost,
    UserContent, UserMessage, UserMessageBuilder, finished_arguments, join_text, parse_lenient, parse_strict,
    replace_lone_surrogates,
};
pub use models::{
    Api, BEDROCK_DEFAULT_REGION, BEDROCK_TEMPLATE, COMPAT_FIELDS, Catalog, CompatField, CompatKind, Cost,
    CostTier, DEMO_PROVIDER, EnvKey, LOCAL_SERVERS, LiveCatalog, LocalAddresses, LocalServer, MatchError,
    Matched, Modality, Model, ProviderInfo, ScopedModel, ThinkingLevel, VENDORS, VERTEX_TEMPLATE, Vendor,
    VertexPlace, bedrock_base_url, bedrock_region, discover, list_models, local_server, variable, vendor,
};
pub use requests::{
    Provider, Request, Sampling, SamplingPolicy, StreamOptions, SystemState, ToolChoice, continuable,
    fit_for_storing, system_state,
};
pub use transport::{
    AwsKeys, Call, CallBody, CallError, CallReply, Credential, RecordedFrame, SignIn, Transport,
    recorded_frames,
};

/// The wire APIs a model can be spoken to in, by their names in `models.json`.
pub fn supported_apis() -> Vec<&'static str> {
    api::names()
}
