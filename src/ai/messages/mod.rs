//! The messages every provider shares, and how they are assembled.
//!
//! `message` has the types and their JSON form, `stream` the events of an answer and
//! the fold of events into a message, `builder` builds messages in code, `image_url`
//! has images by URL, `partial_json` arguments that are still arriving, and
//! `constrained` the options for constrained sampling. `outcome` interprets how an
//! answer ended; `api_name` and `thinking_level` are names that messages contain.
//! Nothing here knows models, requests or services. The invariant: any JSON in a
//! session file survives a round trip.

mod api_name;
mod builder;
mod constrained;
mod image_url;
pub(super) mod message;
mod outcome;
pub(super) mod partial_json;
mod stored;
mod stream;
mod thinking_level;

#[cfg(test)]
pub(super) use api_name::SPOKEN;
pub use api_name::{Api, supported_apis};
pub use builder::{AssistantMessageBuilder, Blank, Filled, ToolResultBuilder, UserMessageBuilder};
pub use constrained::{ConstrainedSampling, Grammars, Strictness};
pub(super) use constrained::{GrammarParameters, GrammarTool, escaped};
pub(super) use image_url::label;
pub use image_url::{ImageUrl, NoImage};
pub(super) use message::js_number;
pub use message::{
    AssistantBlock, AssistantMessage, ContentBlock, Extra, Image, Message, Millis, RemovedTool, StopReason,
    SystemContent, SystemMessage, Text, Thinking, ToolCall, ToolDeclaration, ToolResultMessage, Usage,
    UsageCost, UserContent, UserMessage, join_text,
};
pub use outcome::{empty_answer_text, failure_text, is_overflow, is_retryable, length_text};
pub use partial_json::{
    finished_arguments, parse_lenient, parse_strict, parse_text, replace_lone_surrogates,
};
pub use stream::{BlockKind, EventStream, MessageBuilder, StreamEvent, StreamOrder};
pub use thinking_level::ThinkingLevel;
