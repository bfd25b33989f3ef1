//! Questions to the user, and the gate that decides about tool calls.

use std::sync::Arc;

use serde_json::Value;

use crate::agent::{ToolSpec, Touches};
use crate::ai::ToolCall;

use super::budget::BudgetPeriod;
use super::command::TrustChoice;
use super::state::ProjectState;

/// The id of a question, valid until its session's task ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct QuestionId(pub(super) u64);

impl QuestionId {
    /// The id that a client sent back.
    pub fn new(id: u64) -> Self {
        Self(id)
    }

    /// The id as a client sends it back.
    pub fn get(self) -> u64 {
        self.0
    }
}

/// A decision for the user. Any front end may answer it with `SessionCommand::Answer`.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// What an answer names.
    pub id: QuestionId,
    /// What it is about.
    pub kind: QuestionKind,
    /// One sentence for the user.
    pub text: String,
    /// The possible answers, in the order in which they are shown.
    pub options: Vec<String>,
    /// The option that applies if no front end can answer.
    pub default: usize,
}

/// What a question is about.
#[derive(Debug, Clone, PartialEq)]
pub enum QuestionKind {
    /// Whether the project of the session is trusted; the options are [`TRUST_OPTIONS`].
    Trust,
    /// Whether a tool call may run; the first option allows it.
    ToolCall(Arc<ToolCall>),
    /// Whether to continue beyond a limit of cost; the second option raises it.
    Budget(BudgetPeriod),
}

/// The answers to a question about trust.
pub const TRUST_OPTIONS: &[(TrustChoice, &str)] = &[
    (TrustChoice::NotNow, "Not now"),
    (TrustChoice::Folder, "Trust this folder"),
    (TrustChoice::Parent, "Trust parent folder"),
    (TrustChoice::Session, "Trust it until pi exits"),
    (TrustChoice::No, "Don't trust"),
];

/// Decides about tool calls before they run.
pub trait ToolGate: Send + Sync {
    /// Decides about one call with valid `arguments`.
    fn check(&self, call: &PendingCall<'_>) -> Verdict;
}

/// A call that is about to run.
pub struct PendingCall<'a> {
    /// The call as the model made it.
    pub call: &'a Arc<ToolCall>,
    /// Validated; those in `call` are the model's originals.
    pub arguments: &'a Value,
    /// What the call accesses if it runs with `arguments`.
    pub touches: &'a Touches,
    /// `None` if the tool was removed meanwhile.
    pub spec: Option<&'a ToolSpec>,
    /// Where the session works, and whether that is trusted.
    pub project: &'a ProjectState,
}

/// The decision about a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// The call runs.
    Allow,
    /// Runs with these arguments, if they match the tool's schema.
    Change {
        /// What the call runs with.
        arguments: Value,
    },
    /// The model reads the reason as the call's error.
    Block {
        /// What the model reads.
        reason: String,
    },
    /// Asks the user `text`; the call is blocked if no front end can answer.
    Ask {
        /// The question, one sentence.
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
