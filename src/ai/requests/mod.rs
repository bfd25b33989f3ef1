//! Makes a request from a conversation.
//!
//! `request` is everything one model call depends on, `sampling_policy` sets its
//! generation options, `transform` turns the conversation into turns that a service
//! accepts, `strict_schema` writes tool schemas in the form services enforce,
//! `image_fit` shrinks images to a service's limits, `refusals` remembers which
//! optional features an endpoint rejected, and `continuation` continues an interrupted
//! answer. Everything is pure, apart from the caches of `image_fit` and `refusals`.

pub(super) mod continuation;
mod image_fit;
mod refusals;
mod request;
mod sampling_policy;
mod strict_schema;
pub(super) mod transform;

pub(super) use continuation::Joiner;
pub use continuation::continuable;
pub(super) use image_fit::ImageFitter;
pub use image_fit::fit_for_storing;
pub(super) use refusals::Refusals;
pub use request::{Request, StreamOptions, ToolChoice};
pub use sampling_policy::SamplingPolicy;
pub(super) use strict_schema::{StrictTools, Unmet};
pub(super) use transform::{
    AssistantTurn, Block, Content, IdRule, Ids, NO_TEXT, Picture, Prompt, SystemUpdate, ToolResult, Turn,
};
pub use transform::{
    SystemState, answer_limit, fits_with_shorter_answer, is_answer_limit_lowered, least_answer, system_state,
};
