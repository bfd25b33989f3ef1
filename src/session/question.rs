//! Questions that something in a session waits for, and who asks before a tool runs.

use std::sync::Arc;

use serde_json::Value;

use crate::agent::ToolSpec;
use crate::ai::ToolCall;

use super::command::TrustChoice;
use super::state::ProjectState;

/// Names a question for as long as its session's task runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct QuestionId(pub(super) u64);

/// Something the user is to decide. Any front end may answer it, by
/// [`SessionCommand::Answer`](super::SessionCommand::Answer).
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    pub id: QuestionId,
    pub kind: QuestionKind,
    pub text: String,
    /// What can be answered, in the order in which it is offered.
    pub options: Vec<String>,
    /// The option that holds where nobody can answer.
    pub default: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub enum QuestionKind {
    /// Whether the project of the session is trusted; the options are [`TRUST_OPTIONS`].
    Trust,
    /// Whether a call of a tool may run; the first option allows it.
    ToolCall(Arc<ToolCall>),
}

/// The answers to a question about trust.
pub const TRUST_OPTIONS: &[(TrustChoice, &str)] = &[
    (TrustChoice::NotNow, "Not now"),
    (TrustChoice::Folder, "Trust this folder"),
    (TrustChoice::Parent, "Trust parent folder"),
    (TrustChoice::Session, "Trust it until pi ends"),
    (TrustChoice::No, "Don't trust"),
];

/// Decides about calls of tools before they run.
pub trait ToolGate: Send + Sync {
    /// Decides about one call with `arguments` that fit its tool.
    fn check(&self, call: &PendingCall<'_>) -> Verdict;
}

/// A call that is about to run.
pub struct PendingCall<'a> {
    pub call: &'a Arc<ToolCall>,
    /// Validated; those in `call` are as the model wrote them.
    pub arguments: &'a Value,
    /// `None` if the tool was removed meanwhile.
    pub spec: Option<&'a ToolSpec>,
    pub project: &'a ProjectState,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    Allow,
    /// Runs with these arguments, if they fit the tool.
    Change {
        arguments: Value,
    },
    /// The model reads the reason instead of a result.
    Block {
        reason: String,
    },
    /// Asks the user `text`; where nobody can answer the call is blocked.
    Ask {
        text: String,
    },
}

/// Lets every call run.
#[derive(Debug, Clone, Copy, Default)]
pub struct AllowAll;

impl ToolGate for AllowAll {
    fn check(&self, _call: &PendingCall<'_>) -> Verdict {
        Verdict::Allow
    }
}
