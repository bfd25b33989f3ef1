//! Reasons why a session rejects a command.

use std::path::Path;

use crate::ai::{MatchError, ThinkingLevel};
use crate::config::CredentialError;
use crate::util::paths;

use super::compaction::NothingToCompact;
use super::from_settings::ChangeError;

/// Why a command was rejected; the text is for the user. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum Refusal {
    /// Neither text nor image.
    #[error("there is nothing to send")]
    NothingToSend,
    /// The command needs an idle session.
    #[error("the agent is still working; interrupt it, or wait until it is done")]
    Working,
    /// One command of the user runs at a time.
    #[error("a command is still running; cancel it, or wait until it ends")]
    CommandRunning,
    #[error("{n_running} commands are running already; wait until one ends, or cancel them")]
    TooManyCommands { n_running: usize },
    #[error(
        "this session is open in another pi process ({holder}); quit that process and open the session again, or start a new one"
    )]
    ReadOnly { holder: String },
    #[error(transparent)]
    Model(#[from] MatchError),
    #[error("there is no other model to cycle to; set up another provider")]
    NoOtherModel,
    #[error("{model} does not support thinking level {level}; choose one of {}", names(supported))]
    ThinkingLevel { model: String, level: ThinkingLevel, supported: Vec<ThinkingLevel> },
    #[error("{model} has no thinking levels")]
    NoThinkingLevels { model: String },
    /// The model cannot be asked.
    #[error(transparent)]
    Credential(#[from] CredentialError),
    /// The text calls a skill that does not exist, or a skill or template that cannot be read.
    #[error("{reason}")]
    Resource { reason: String },
    #[error(transparent)]
    Compaction(#[from] NothingToCompact),
    /// The spec of a tool would be rejected with every request.
    #[error("{reason}")]
    Tool { reason: String },
    #[error("there is no tool {name}")]
    NoSuchTool { name: String },
    #[error("the question is no longer open")]
    QuestionClosed,
    #[error("the question has options 0 to {}; {option} is none", n_options - 1)]
    NoSuchOption { option: usize, n_options: usize },
    /// The session to switch to cannot be opened.
    #[error("{reason}")]
    CannotOpen { reason: String },
    /// Leaving the session would lose entries that exist only in memory.
    #[error("{reason}")]
    Unsaved { reason: String },
    #[error("the session is already at this point")]
    AtThisPoint,
    #[error("this session has no entry {id}")]
    NoSuchEntry { id: String },
    #[error("no summary waits for a decision")]
    NoSummaryDraft,
    #[error("the summary is empty; write one, or drop it")]
    EmptySummary,
    #[error(
        "the conversation was compacted or continued elsewhere since this summary was written; drop it, or go back in the session tree"
    )]
    StaleSummary,
    #[error("there is no conversation to hand off yet")]
    NothingToHandOff,
    #[error("there is no message on this branch to pin")]
    NothingToPin,
    #[error("only your own messages can be forked from; clone the session to copy the whole branch")]
    NotYourMessage,
    #[error("this session is not saved yet, so it cannot be copied")]
    NotSavedYet,
    #[error("sessions are not saved in this run, so none can be imported")]
    NoSessionFolder,
    #[error("there is nothing to export yet")]
    NothingToExport,
    #[error("{path} exists already; choose another name")]
    FileExists { path: String },
    /// A session file cannot be copied or written.
    #[error("{reason}")]
    CannotCopy { reason: String },
    /// A limit of cost is exceeded.
    #[error("{reason}")]
    OverBudget { reason: String },
    #[error(transparent)]
    Setting(#[from] ChangeError),
    /// A bug.
    #[error("{problem}")]
    Internal { problem: String },
}

impl Refusal {
    /// Shows the home directory as `~`.
    pub(super) fn with_tilde(mut self, home: Option<&Path>) -> Self {
        let text = match &mut self {
            Self::Resource { reason }
            | Self::Tool { reason }
            | Self::CannotOpen { reason }
            | Self::CannotCopy { reason }
            | Self::FileExists { path: reason }
            | Self::Unsaved { reason } => reason,
            Self::Internal { problem } => problem,
            Self::Credential(
                CredentialError::Unresolved { problem, .. }
                | CredentialError::Headers { problem, .. }
                | CredentialError::Broken { problem, .. },
            ) => problem,
            _ => return self,
        };
        *text = paths::with_tilde(text, home);
        self
    }
}

fn names(levels: &[ThinkingLevel]) -> String {
    levels.iter().map(|level| level.name()).collect::<Vec<_>>().join(", ")
}
