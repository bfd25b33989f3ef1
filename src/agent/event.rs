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
/// tool      = ToolStart ToolUpdate* ToolEnd             tools may overlap
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
pub enum AgentEvent {
    AgentStart,
    TurnStart,
    MessageStart(Arc<Message>),
    /// An answer begins; its metadata, with no content yet.
    AssistantStart(Arc<AssistantMessage>),
    /// Only the delta; consumers that need the whole message keep a `MessageBuilder`.
    MessageUpdate(StreamEvent),
    MessageEnd(Arc<Message>),
    ToolStart {
        call: Arc<ToolCall>,
    },
    ToolUpdate {
        call_id: String,
        partial: Arc<ToolOutput>,
    },
    ToolEnd {
        call_id: String,
        result: Arc<ToolResultMessage>,
    },
    TurnEnd {
        message: Arc<Message>,
        results: Vec<Arc<Message>>,
    },
    AgentEnd {
        messages: Vec<Arc<Message>>,
    },
}
