//! Commands a mode can send to a session.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::agent::{QueueKind, QueueSlot};
use crate::ai::{Image, ThinkingLevel};

use super::question::QuestionId;

#[derive(Debug, Clone, PartialEq)]
pub enum SessionCommand {
    /// Says something to the model, or queues it.
    Prompt {
        text: String,
        images: Vec<Image>,
        when_busy: WhenBusy,
    },
    /// Delivers the queued steering messages at once, whatever the setting.
    DeliverNow,
    /// Takes everything queued back. Replies [`Reply::Queue`].
    TakeQueue,
    /// Takes one queued message back. Replies [`Reply::Queue`], empty if it has
    /// been delivered meanwhile.
    TakeQueued {
        slot: QueueSlot,
    },
    /// Puts a queued message at place `index` of a queue, if it still waits.
    MoveQueued {
        slot: QueueSlot,
        kind: QueueKind,
        index: usize,
    },
    /// Takes back what an earlier process left: messages it had not delivered, and the
    /// draft. Replies [`Reply::Queue`].
    TakeLeftOver,
    /// Stores what is in the editor, in place of the draft before it.
    SaveDraft {
        draft: PromptDraft,
        /// The highest [`TakenQueue::ticket`] whose messages stand in the draft, or
        /// stood in one that was sent; 0 for none.
        ticket: u64,
    },
    /// Cancels the run, a retry wait, or a running `!` command; the queue stays.
    Abort,
    /// Switches the model: an id, `provider/id` or part of one, with an optional `:level`.
    SetModel {
        reference: String,
        scope: Scope,
    },
    SetThinking {
        level: ThinkingLevel,
        scope: Scope,
    },
    /// The models to cycle through from now on; none means all there are keys for.
    ///
    /// Patterns as in the setting `enabledModels`.
    SetScope {
        patterns: Vec<String>,
        scope: Scope,
    },
    /// The catalogue has changed: continues with the new definition of the model.
    ModelsChanged,
    /// Next (or, if not `forward`, previous) available model.
    CycleModel {
        forward: bool,
    },
    /// Next thinking level the model supports, from the highest back to the lowest.
    CycleThinking,
    /// Puts a summary in place of the beginning of the conversation; `focus` is what it
    /// should dwell on. Replies [`Reply::Started`]; refused while the agent works.
    Compact {
        focus: Option<String>,
    },
    /// Runs a user's `!` command and records it.
    RunBash {
        command: String,
        exclude_from_context: bool,
    },
    SetName {
        name: String,
    },
    /// Decides whether what the project of the session brings along is used.
    DecideTrust {
        choice: TrustChoice,
    },
    /// Answers a question by the index of an option.
    Answer {
        id: QuestionId,
        option: usize,
    },
    /// Starts a new session in the same directory.
    New,
    /// Goes on with the session in `path`.
    Open {
        path: PathBuf,
    },
    /// Ends the run, flushes the journal and ends the task.
    Shutdown,
}

/// What a prompt does while a run is active. When idle all start a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenBusy {
    /// Delivered as the `steeringDelivery` setting says, or at once if it
    /// begins with an urgent word.
    Steer,
    /// Delivered when the agent would stop.
    FollowUp,
    /// Interrupts the run at once.
    Now,
    Refuse,
}

/// How far a choice reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    Session,
    /// This session, and the default of later ones.
    Default,
}

/// The user's trust decision about a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrustChoice {
    /// Trusts the folder, from now on.
    Folder,
    /// Trusts the parent folder and everything in it, permanently.
    Parent,
    /// Trusts the folder until the program ends.
    Session,
    /// Does not trust the folder, from now on.
    No,
    /// Does not trust the folder until the program ends.
    NotNow,
}

impl TrustChoice {
    pub fn is_trusted(self) -> bool {
        match self {
            Self::Folder | Self::Parent | Self::Session => true,
            Self::No | Self::NotNow => false,
        }
    }
}

/// What a command came to.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    Done,
    /// A run started.
    Started,
    /// The prompt waits in a queue.
    Queued,
    /// The same text was queued moments ago; this one was dropped.
    Duplicate,
    Queue(TakenQueue),
}

/// A prompt as the user wrote it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct PromptDraft {
    pub text: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
}

impl PromptDraft {
    pub fn is_empty(&self) -> bool {
        self.text.trim().is_empty() && self.images.is_empty()
    }
}

impl From<&str> for PromptDraft {
    fn from(text: &str) -> Self {
        Self { text: text.to_owned(), images: Vec::new() }
    }
}

/// Messages taken out of the queues, oldest first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TakenQueue {
    pub steering: Vec<PromptDraft>,
    pub follow_up: Vec<PromptDraft>,
    /// What was in the editor when an earlier process ended.
    pub draft: Option<PromptDraft>,
    /// The messages stay on disk until [`SessionCommand::SaveDraft`] names this number.
    pub ticket: u64,
}

impl TakenQueue {
    pub(super) fn of_kind(&mut self, kind: QueueKind) -> &mut Vec<PromptDraft> {
        match kind {
            QueueKind::Steering => &mut self.steering,
            QueueKind::FollowUp => &mut self.follow_up,
        }
    }

    /// All of it, in the order in which it was to be delivered.
    pub fn into_prompts(self) -> Vec<PromptDraft> {
        self.steering.into_iter().chain(self.follow_up).chain(self.draft).collect()
    }
}
