//! Decisions a run leaves to its owner.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::Value;

use crate::ai::{Request, StreamEvent, SystemMessage, ToolCall};

use super::event::AgentEvent;
use super::tool::{Environment, ToolOutput, ToolRegistry};
use super::touches::Touches;

/// Implemented by the session and by tests.
pub trait Hooks: Send {
    /// Handles an event. The loop waits for the owner, so
    /// an assistant message is on disk before its tool calls run, and a result
    /// before the next call starts.
    fn emit(&mut self, event: AgentEvent) -> BoxFuture<'_, ()>;

    /// Handles a delta of the answer. Like [`AgentEvent::MessageUpdate`], but neither
    /// awaited nor boxed, because an answer has thousands of deltas.
    fn update(&mut self, event: &StreamEvent);

    /// Called before each model call after the first; may change every part of it. The
    /// loop waits.
    fn prepare_request<'a>(&'a mut self, next: &'a mut NextRequest) -> BoxFuture<'a, ()>;

    /// Called with each request as it is sent, before its answer begins.
    fn on_request(&mut self, _request: &Arc<Request>) {}

    /// Handles the result of `call` before it is emitted or stored; may change every part of it.
    fn settle_result<'a>(
        &'a mut self,
        _call: &'a ToolCall,
        _output: &'a mut ToolOutput,
    ) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Returns the environment of a call that is about to start.
    fn environment(&self) -> Environment {
        Environment::new()
    }

    /// Decides whether a call may run: the one place before every file access and process
    /// start. The loop waits, if need be for the user.
    fn gate_tool<'a>(&'a mut self, call: CheckedCall<'a>) -> BoxFuture<'a, Gate>;
}

/// A call that fits its tool.
#[derive(Clone, Copy)]
pub struct CheckedCall<'a> {
    /// The call as the model made it.
    pub call: &'a Arc<ToolCall>,
    /// Validated; those in `call` are as the model wrote them.
    pub arguments: &'a Value,
    /// What the call accesses if it runs with `arguments`.
    pub touches: &'a Touches,
}

/// The next request to the model.
#[derive(Clone)]
pub struct NextRequest {
    /// Model, options, and the conversation so far.
    pub request: Request,
    /// The tools the model may call from this request on.
    pub tools: ToolRegistry,
    /// The next message of the conversation: the changes of prompt and tools.
    pub system: Option<SystemMessage>,
    /// Ends the run instead of sending the request; queued messages stay queued.
    pub stop: bool,
}

/// Whether a tool call may run.
#[derive(Debug, Clone, PartialEq)]
pub enum Gate {
    /// Runs the call.
    Allow,
    /// Runs with these arguments, if they match the tool's schema.
    Change {
        /// The arguments to use in place of the model's.
        arguments: Value,
    },
    /// The model reads the reason as the call's error.
    Block {
        /// What the model reads as the call's error.
        reason: String,
    },
    /// The run was cancelled or interrupted before the decision.
    Withdrawn,
}
