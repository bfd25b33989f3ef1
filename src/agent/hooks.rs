//! What the owner of a run decides for it.

use futures_util::future::BoxFuture;

use crate::ai::{Request, StreamEvent, ToolCall};

use super::event::AgentEvent;
use super::tool::{Environment, ToolOutput};

/// Implemented by the session and by tests.
pub trait Hooks: Send {
    /// Takes an event. Awaited: the loop goes on when the owner has taken it, so
    /// an assistant message is on disk before the tools it asks for run, and a result
    /// before the next call starts.
    fn emit(&mut self, event: AgentEvent) -> BoxFuture<'_, ()>;

    /// Takes a piece of the answer, an [`AgentEvent::MessageUpdate`] in all but
    /// form: there are thousands of these, so nothing is awaited or boxed.
    fn update(&mut self, event: &StreamEvent);

    /// Called before each model call after the first, with the conversation so
    /// far in `request.messages`; may change all of it.
    fn prepare_request<'a>(&'a mut self, request: &'a mut Request) -> BoxFuture<'a, ()>;

    /// Takes a result before anybody sees or stores it; may change all of it.
    fn settle_result<'a>(&'a mut self, _output: &'a mut ToolOutput) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Returns the environment of a call that is about to start.
    fn environment(&self) -> Environment {
        Environment::new()
    }

    /// Decides whether a valid call may run.
    fn gate_tool<'a>(&'a mut self, call: &'a ToolCall) -> BoxFuture<'a, Gate>;
}

/// Whether a tool call may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gate {
    Allow,
    /// The model reads the reason instead of a result.
    Block {
        reason: String,
    },
}
