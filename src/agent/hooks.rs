//! Decisions a run leaves to its owner.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::Value;

use crate::ai::{Request, StreamEvent, SystemMessage, ToolCall};

use super::event::AgentEvent;
use super::tool::{Environment, ToolOutput, ToolRegistry};

/// Implemented by the session and by tests.
pub trait Hooks: Send {
    /// Takes an event. Awaited: the loop goes on when the owner has taken it, so
    /// an assistant message is on disk before the tools it asks for run, and a result
    /// before the next call starts.
    fn emit(&mut self, event: AgentEvent) -> BoxFuture<'_, ()>;

    /// Takes a piece of the answer, an [`AgentEvent::MessageUpdate`] in all but
    /// form: there are thousands of these, so nothing is awaited or boxed.
    fn update(&mut self, event: &StreamEvent);

    /// Called before each model call after the first; may change all of it. The loop
    /// waits.
    fn prepare_request<'a>(&'a mut self, next: &'a mut NextRequest) -> BoxFuture<'a, ()>;

    /// Takes the result of `call` before anybody sees or stores it; may change all of it.
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

    /// Decides whether a call may run. `arguments` fit its tool; those in `call` are as
    /// the model wrote them. The loop waits, if need be for the user.
    fn gate_tool<'a>(&'a mut self, call: &'a Arc<ToolCall>, arguments: &'a Value) -> BoxFuture<'a, Gate>;
}

/// What the loop asks the model next.
#[derive(Clone)]
pub struct NextRequest {
    /// Model, options, and the conversation so far.
    pub request: Request,
    /// What the model may call from here on.
    pub tools: ToolRegistry,
    /// Becomes the next message of the conversation: what changed of prompt and tools.
    pub system: Option<SystemMessage>,
}

/// Whether a tool call may run.
#[derive(Debug, Clone, PartialEq)]
pub enum Gate {
    Allow,
    /// Runs with these arguments, if they fit the tool.
    Change {
        arguments: Value,
    },
    /// The model reads the reason instead of a result.
    Block {
        reason: String,
    },
    /// The run was cancelled or interrupted before there was a decision.
    Withdrawn,
}
