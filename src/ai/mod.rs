//! Messages every provider shares, and the providers.
//!
//! This module is the facade: other layers name only what it re-exports. Each
//! folder is a room for one question: `messages` defines messages, `models` the
//! catalogue, `requests` prepares requests, `api` encodes and decodes them,
//! `transport` sends them, `providers` and `demo` answer them, `failure`
//! classifies errors, and `foreign` reads and writes the formats of other
//! programs. Rooms import downwards only; a test has the order. The layer
//! knows no tools, files, sessions or screens. Its invariant: a provider reports
//! a failure once, because a stream is a sequence of events with exactly one
//! terminal event, which contains the failure if there is one.

mod api;
mod demo;
mod failure;
pub mod foreign;
mod messages;
mod models;
mod providers;
mod requests;
mod transport;

pub use api::shortest_answer;
pub use demo::{DemoPace, DemoProvider};
pub use failure::{
    Failure, FailureClass, Refused, RefusedSize, Rejection, RequestPath, classify, plain_error, rejection,
    retry_delay, wait_text,
};
pub use messages::{
    Api, AssistantBlock, AssistantMessage, AssistantMessageBuilder, Blank, BlockKind, ConstrainedSampling,
    ContentBlock, EventStream, Extra, Filled, Grammars, Image, ImageUrl, Message, MessageBuilder, Millis,
    NoImage, RemovedTool, StopReason, StreamEvent, StreamOrder, Strictness, SystemContent, SystemMessage,
    Text, Thinking, ThinkingLevel, ToolCall, ToolDeclaration, ToolResultBuilder, ToolResultMessage, Usage,
    UsageCost, UserContent, UserMessage, UserMessageBuilder, empty_answer_text, failure_text,
    finished_arguments, is_overflow, is_retryable, join_text, length_text, parse_lenient, parse_strict,
    parse_text, replace_lone_surrogates, supported_apis,
};
pub use models::{
    BEDROCK_DEFAULT_REGION, BEDROCK_TEMPLATE, COMPAT_FIELDS, Catalog, CompatField, CompatKind, Cost,
    CostTier, DEMO_PROVIDER, EnvKey, LOCAL_SERVERS, ListedModel, LiveCatalog, LocalAddresses, LocalServer,
    MatchError, Matched, Modality, Model, Pricing, ProviderInfo, Sampling, ScopedModel, UnmatchedPattern,
    VENDORS, VERTEX_TEMPLATE, Vendor, VertexPlace, bedrock_base_url, bedrock_region, discover, glob_selects,
    is_flat_rate, list_models, local_server, variable, vendor,
};
pub use providers::{
    FakeAnswer, FakeProvider, HttpOptions, HttpProvider, Provider, RequestPreview, Router, TestBarrier,
    WebSocketUse, decode_recorded, preview_request, request_body, text_answer,
};
pub use requests::{
    Request, SamplingPolicy, StreamOptions, SystemState, ToolChoice, answer_limit, continuable,
    fit_for_storing, fits_with_shorter_answer, is_answer_limit_lowered, least_answer, system_state,
};
pub use transport::{
    AwsKeys, CallBody, CallError, CallReply, Credential, ExtraRoots, HttpCall, Quota, QuotaWindow, Quotas,
    RecordedFrame, SignIn, Transport, recorded_frames,
};
