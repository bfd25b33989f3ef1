//! Commands a mode can send to a session.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agent::{QueueKind, QueueSlot, Tool};
use crate::ai::{Image, ThinkingLevel};

use super::context_report::ContextReport;
use super::copies::Secrets;
use super::question::QuestionId;
use super::store::{Entry, EntryId, SessionTree};
use super::user_bash::BashId;

/// What a client can ask of a session.
#[derive(Debug, Clone, PartialEq)]
pub enum SessionCommand {
    /// Sends a prompt to the model, or queues it.
    Prompt {
        /// What the user wrote; commands of front ends do not belong here. It may return to the editor.
        prompt: PromptDraft,
        /// What happens if the agent works.
        when_busy: WhenBusy,
    },
    /// Sends prompts given before the session was open, in order, once trust is decided.
    /// Rejected prompts return as [`SessionEvent::PromptReturned`](super::SessionEvent::PromptReturned).
    Begin {
        /// In the order in which they are sent.
        prompts: Vec<PromptDraft>,
    },
    /// Keeps the next prompt word for word through every compaction, because nobody is there to repeat it.
    KeepNextPrompt,
    /// Delivers the queued steering messages at once, whatever the setting.
    DeliverNow,
    /// Takes all queued messages back. Replies [`Reply::Queue`].
    TakeQueue,
    /// Takes one queued message back. Replies [`Reply::Queue`], empty if it has
    /// already been delivered.
    TakeQueued {
        /// The message as the last snapshot showed it.
        slot: QueueSlot,
    },
    /// Removes a queued message for good, if it is still queued.
    DropQueued {
        /// The message as the last snapshot showed it.
        slot: QueueSlot,
    },
    /// Moves a queued message to position `index` of a queue, if it is still queued.
    MoveQueued {
        /// The message as the last snapshot showed it.
        slot: QueueSlot,
        /// The queue it goes to.
        kind: QueueKind,
        /// Its position there, from 0.
        index: usize,
    },
    /// Takes back messages that an earlier process had not delivered, and its
    /// draft. Replies [`Reply::Queue`].
    TakeLeftOver,
    /// Stores the contents of the editor, replacing the previous draft.
    SaveDraft {
        /// The text with its images.
        draft: PromptDraft,
        /// Each [`TakenQueue::ticket`] that has arrived, whose messages are in the draft or were in one
        /// that was sent. One that is still on its way must not be among them.
        tickets: Vec<u64>,
    },
    /// Cancels the run, a retry wait, or a running `!` command; the queue stays.
    Abort,
    /// As [`Self::Abort`], and returns queued messages to the user with
    /// [`SessionEvent::QueueReturned`](super::SessionEvent::QueueReturned).
    Interrupt,
    /// Changes a setting in this session and in the user's file; `None` removes the
    /// user's value. If the file cannot be written, a notice reports it and the change
    /// applies to this session.
    ChangeSetting {
        /// A key of the settings table.
        key: String,
        /// The new value; `None` for the default.
        value: Option<Value>,
    },
    /// Reloads settings, skills, templates and instructions; rejected while the agent works.
    Reload,
    /// Switches the model: an id, `provider/id` or part of one, with an optional `:level`.
    SetModel {
        /// The model.
        reference: String,
        /// Whether later sessions begin with it.
        scope: Scope,
    },
    /// Changes how much the model thinks.
    SetThinking {
        /// A level that the model supports.
        level: ThinkingLevel,
        /// Whether later sessions begin with it.
        scope: Scope,
    },
    /// Sets the models to cycle through; an empty list means all models with a key.
    ///
    /// Patterns as in the setting `enabledModels`.
    SetScope {
        /// Ids with wildcards.
        patterns: Vec<String>,
        /// Whether later sessions have the same models.
        scope: Scope,
    },
    /// The catalogue has changed: continues with the new definition of the model.
    ModelsChanged,
    /// Selects the next (or, if not `forward`, previous) available model.
    CycleModel {
        /// The direction.
        forward: bool,
    },
    /// Selects the next thinking level the model supports, from the highest back to the lowest.
    CycleThinking,
    /// Replaces the beginning of the conversation with a summary; `focus` is the subject to
    /// emphasise. Replies [`Reply::Started`]; rejected while the agent is working.
    Compact {
        /// What the summary should dwell on.
        focus: Option<String>,
        /// Whether the user decides about the summary first. A draft that waits for that is
        /// shown again in place of a new one, with [`Reply::Done`].
        with_review: bool,
    },
    /// Decides about the summary in `SessionState::summary_draft`.
    DecideSummary {
        /// What becomes of the summary.
        decision: SummaryDecision,
    },
    /// Runs a user's `!` command and records it. Replies [`Reply::BashStarted`].
    RunBash {
        /// The command line.
        command: String,
        /// Whether the model never learns of it.
        exclude_from_context: bool,
        /// What happens if another command runs.
        others: OtherCommands,
    },
    /// Cancels the user's commands, or one of them; a run goes on.
    CancelBash {
        /// The command; `None` for all.
        id: Option<BashId>,
    },
    /// Names the session; an empty name removes the name.
    SetName {
        /// The name, of which one line is kept.
        name: String,
    },
    /// Decides whether to use the files of the session's project.
    DecideTrust {
        /// The decision.
        choice: TrustChoice,
    },
    /// Answers a question by the index of an option.
    Answer {
        /// The question.
        id: QuestionId,
        /// The index of the answer in its options.
        option: usize,
    },
    /// Offers the model a tool from the next request on, in place of the one with its name
    /// if there is one. It stays when another session is opened.
    AddTool {
        /// Its spec must be one that providers accept.
        tool: Arc<dyn Tool>,
    },
    /// Withdraws a tool from the next request on. Calls of it that run go on.
    RemoveTool {
        /// The name in its spec.
        name: String,
    },
    /// Takes a picture of all entries. Replies [`Reply::Tree`].
    ReadTree,
    /// Reads the entries that the next request depends on. Replies [`Reply::Context`].
    ReadContext,
    /// Estimates the parts of the next request. Replies [`Reply::ContextReport`].
    DescribeContext,
    /// Continues at another entry, in the same session. A message of the user is taken back
    /// to be sent anew: the branch ends before it. Replies [`Reply::Done`], or
    /// [`Reply::Started`] if a summary is written first; `SessionEvent::Navigated` follows.
    Navigate {
        /// The entry to continue after, or the message to take back.
        target: EntryId,
        /// Whether a summary of what is left goes along.
        summary: LeftBranch,
        /// What happens if the agent works.
        if_busy: IfBusy,
    },
    /// Drafts the prompt of a new session that works on `goal`, and opens that session.
    /// Replies [`Reply::Started`]; `SessionEvent::HandoffEnded` follows.
    Handoff {
        /// What the new session is to do.
        goal: String,
    },
    /// Keeps a message word for word when the conversation is compacted, or ends that.
    /// Without a target: the latest message of the user.
    Pin {
        /// A message of the active branch.
        target: Option<EntryId>,
        /// `false` ends it.
        pinned: bool,
    },
    /// Names an entry, or takes its name away.
    SetLabel {
        /// The entry.
        target: EntryId,
        /// One line; `None` removes the label.
        label: Option<String>,
    },
    /// Continues in a new session with what came before a message of the user. Replies
    /// [`Reply::Forked`] with the message.
    Fork {
        /// The message of the user.
        target: EntryId,
        /// What happens if the agent works.
        if_busy: IfBusy,
    },
    /// Continues in a new session with all of the active branch.
    Clone {
        /// What happens if the agent works.
        if_busy: IfBusy,
    },
    /// Copies a session file to the others and continues with it.
    Import {
        /// The file to copy, which stays unchanged.
        path: PathBuf,
        /// What happens if the agent works.
        if_busy: IfBusy,
    },
    /// Writes the active branch to a new session file at `path`.
    Export {
        /// The file, which must not exist.
        path: PathBuf,
        /// What becomes of secrets in the copy.
        secrets: Secrets,
    },
    /// Starts a new session in the same directory.
    New {
        /// What happens if the agent works.
        if_busy: IfBusy,
    },
    /// As [`Self::New`], and the session names the file of another as its parent.
    NewChild {
        /// The session file that is named.
        parent: PathBuf,
        /// What happens if the agent works.
        if_busy: IfBusy,
    },
    /// Continues the session in `path`.
    Open {
        /// The session file.
        path: PathBuf,
        /// What happens if the agent works.
        if_busy: IfBusy,
    },
    /// Ends the run, flushes the journal and ends the task.
    Shutdown,
}

/// What a command of the user does while another one runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OtherCommands {
    /// The command is rejected.
    Refuse,
    /// Both run.
    RunBeside,
}

/// What a prompt does during a run. Without one, every prompt starts a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenBusy {
    /// Delivered as the `steeringDelivery` setting says, or at once if it
    /// begins with an urgent word.
    Steer,
    /// Delivered when the agent would otherwise stop.
    FollowUp,
    /// Put at a position of a queue, or at its end if it is shorter: a message that was taken out of it
    /// and edited. In the steering queue it is otherwise as [`Self::Steer`].
    At {
        /// The queue.
        kind: QueueKind,
        /// The position, from 0.
        index: usize,
    },
    /// Interrupts the run immediately.
    Now,
    /// The prompt is rejected.
    Refuse,
}

/// What becomes of the end of a branch that is left.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variants say what the fields are")]
pub enum LeftBranch {
    /// It stays in the file; the model does not learn of it.
    Leave,
    /// A summary of it goes along; `focus` is what it should dwell on.
    Summarize { focus: Option<String> },
}

/// What becomes of a summary that waits for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variants say what the fields are")]
pub enum SummaryDecision {
    /// Stores the changed text; the summary keeps waiting.
    Save { text: String },
    /// As [`Self::Save`], and delivers the messages that were queued meanwhile.
    Later { text: String },
    /// `text` takes the place of the beginning of the conversation.
    Accept { text: String },
    /// The conversation stays as it is.
    Drop,
}

/// What a command does that cannot be carried out while the agent or a command works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfBusy {
    /// Rejects it with `Refusal::Working` or `Refusal::CommandRunning`, so that a front end
    /// can ask first.
    Refuse,
    /// Cancels the work first, keeping what there is of it. Queued messages return to the
    /// user when another session is opened.
    Cancel,
}

impl SessionCommand {
    /// What the command does while the agent or a command works; `None` for commands that
    /// need not ask.
    pub fn if_busy_mut(&mut self) -> Option<&mut IfBusy> {
        match self {
            Self::Navigate { if_busy, .. }
            | Self::Fork { if_busy, .. }
            | Self::Clone { if_busy }
            | Self::Import { if_busy, .. }
            | Self::New { if_busy }
            | Self::Open { if_busy, .. } => Some(if_busy),
            _ => None,
        }
    }

    /// Whether the session rejects the command with `Refusal::Working` while the agent works. A compaction
    /// with a review shows a summary that waits even then.
    pub fn needs_idle(&self) -> bool {
        match self {
            Self::Compact { with_review, .. } => !with_review,
            Self::Handoff { .. } | Self::Reload => true,
            Self::Prompt { .. }
            | Self::Begin { .. }
            | Self::KeepNextPrompt
            | Self::DeliverNow
            | Self::TakeQueue
            | Self::TakeQueued { .. }
            | Self::DropQueued { .. }
            | Self::MoveQueued { .. }
            | Self::TakeLeftOver
            | Self::SaveDraft { .. }
            | Self::Abort
            | Self::Interrupt
            | Self::ChangeSetting { .. }
            | Self::SetModel { .. }
            | Self::SetThinking { .. }
            | Self::SetScope { .. }
            | Self::ModelsChanged
            | Self::CycleModel { .. }
            | Self::CycleThinking
            | Self::DecideSummary { .. }
            | Self::RunBash { .. }
            | Self::CancelBash { .. }
            | Self::SetName { .. }
            | Self::DecideTrust { .. }
            | Self::Answer { .. }
            | Self::AddTool { .. }
            | Self::RemoveTool { .. }
            | Self::ReadTree
            | Self::ReadContext
            | Self::DescribeContext
            | Self::Navigate { .. }
            | Self::Pin { .. }
            | Self::SetLabel { .. }
            | Self::Fork { .. }
            | Self::Clone { .. }
            | Self::Import { .. }
            | Self::Export { .. }
            | Self::New { .. }
            | Self::NewChild { .. }
            | Self::Open { .. }
            | Self::Shutdown => false,
        }
    }
}

/// The scope of a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Only this session.
    Session,
    /// This session, and the default of later ones.
    Default,
}

/// The user's trust decision about a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrustChoice {
    /// Trusts the folder permanently.
    Folder,
    /// Trusts the parent folder and everything in it, permanently.
    Parent,
    /// Trusts the folder until the program ends.
    Session,
    /// Does not trust the folder, permanently.
    No,
    /// Does not trust the folder until the program ends.
    NotNow,
}

impl TrustChoice {
    /// Whether the project's files are used.
    pub fn is_trusted(self) -> bool {
        match self {
            Self::Folder | Self::Parent | Self::Session => true,
            Self::No | Self::NotNow => false,
        }
    }
}

/// The reply to a command.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// The command is carried out.
    Done,
    /// A run started.
    Started,
    /// The prompt was queued.
    Queued,
    /// The same text was queued moments ago; this one was dropped.
    Duplicate,
    /// What was taken back.
    Queue(TakenQueue),
    /// The picture.
    Tree(SessionTree),
    /// Part of the active branch, oldest first.
    Context(Vec<Arc<Entry>>),
    /// The parts with their estimates.
    ContextReport(Box<ContextReport>),
    /// A command of the user runs; its events have this id.
    BashStarted(BashId),
    /// The message that was taken back.
    Forked(PromptDraft),
}

/// A prompt as the user wrote it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct PromptDraft {
    /// The text, with pastes unfolded.
    pub text: String,
    /// Images that go along.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    /// Bytes of `text` that were pasted and that the editor shows folded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pastes: Vec<Range<usize>>,
}

impl PromptDraft {
    /// Whether there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.text.trim().is_empty() && self.images.is_empty()
    }
}

impl From<&str> for PromptDraft {
    fn from(text: &str) -> Self {
        Self { text: text.to_owned(), ..Self::default() }
    }
}

/// Messages taken out of the queues, oldest first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TakenQueue {
    /// Messages that would have been delivered while the agent works.
    pub steering: Vec<PromptDraft>,
    /// Messages that would have been delivered when it is done.
    pub follow_up: Vec<PromptDraft>,
    /// The contents of the editor when an earlier process ended.
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

    /// All prompts, in delivery order.
    pub fn into_prompts(self) -> Vec<PromptDraft> {
        self.steering.into_iter().chain(self.follow_up).chain(self.draft).collect()
    }
}
