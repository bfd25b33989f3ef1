//! Events a run sends to its owner, and their order.

use std::sync::Arc;

use crate::ai::{AssistantMessage, Message, StreamEvent, ToolCall, ToolResultMessage};

use super::tool::ToolOutput;

/// The events of one run, in this order:
///
/// ```text
/// run       = AgentStart turn+ AgentEnd
/// turn      = TurnStart message* assistant tool* message* TurnEnd
/// message   = MessageStart MessageEnd                   system, user, tool result
/// assistant = AssistantStart MessageUpdate* MessageEnd
/// tool      = ToolStart (ToolRunning ToolUpdate*)? ToolEnd   tools may overlap
/// ```
///
/// `ToolEnd` is emitted in the order in which calls finish, and the result is stored
/// then. Result messages are emitted in the order of their calls: after the last
/// `ToolEnd` of a parallel batch, or each after its own `ToolEnd` in a sequential
/// one. They share the result with that event.
#[derive(Debug, Clone)]
#[expect(
    clippy::large_enum_variant,
    reason = "updates are most events by far; a box for each would cost more"
)]
/// One step of a run.
pub enum AgentEvent {
    /// The run begins.
    AgentStart,
    /// A request is about to be sent.
    TurnStart,
    /// A message of the system, the user or a tool is about to be stored.
    MessageStart(Arc<Message>),
    /// An answer begins; its metadata, with no content yet.
    AssistantStart(Arc<AssistantMessage>),
    /// Only the delta; consumers that need the whole message keep a `MessageBuilder`.
    MessageUpdate(StreamEvent),
    /// The message is complete and stored.
    MessageEnd(Arc<Message>),
    /// A call was taken up. It may still wait: for a decision of the user, for calls on the same file, or
    /// because many others run.
    ToolStart {
        /// The call as the model made it.
        call: Arc<ToolCall>,
    },
    /// A call that was taken up runs from now on.
    ToolRunning {
        /// The id of the call.
        call_id: String,
    },
    /// A call that runs reports what it has so far.
    ToolUpdate {
        /// The id of the call.
        call_id: String,
        /// Replaces the previous report.
        partial: Arc<ToolOutput>,
    },
    /// A call has ended.
    ToolEnd {
        /// The id of the call.
        call_id: String,
        /// What the model will read; stored already.
        result: Arc<ToolResultMessage>,
    },
    /// The answer and all its calls are done.
    TurnEnd {
        /// The answer.
        message: Arc<Message>,
        /// The results, in the order of the calls.
        results: Vec<Arc<Message>>,
    },
    /// The run is over.
    AgentEnd {
        /// All messages of the run, oldest first.
        messages: Vec<Arc<Message>>,
    },
}
