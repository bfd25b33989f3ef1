//! Events a session sends to modes.

use std::sync::Arc;
use std::time::Duration;

use crate::agent::AgentEvent;

use super::command::{PromptDraft, TakenQueue};
use super::handle::SessionError;
use super::question::{Question, QuestionId};
use super::state::SessionState;
use super::store::{BashExecution, Entry, EntryId};
use super::summary_draft::SummaryDraft;
use super::user_bash::BashId;

/// An event with the snapshot after it.
#[derive(Debug, Clone)]
pub struct SessionUpdate {
    /// What happened.
    pub event: SessionEvent,
    /// How the session is since.
    pub state: Arc<SessionState>,
}

/// The events of a session, in order. Events describe changes; the state
/// snapshot describes the current state.
#[derive(Debug, Clone)]
pub enum SessionEvent {
    /// A session was opened, started or switched to; clients discard earlier content.
    Opened(Arc<Opened>),
    /// An event of the run.
    Agent(AgentEvent),
    /// The queues changed; `SessionState::queue` has their texts.
    QueueChanged,
    /// The session returns queued messages to the user, because their run failed or was
    /// interrupted. They stay on disk until [`SaveDraft`](super::SessionCommand::SaveDraft) names their ticket.
    QueueReturned(Arc<TakenQueue>),
    /// The session rejected a prompt of [`Begin`](super::SessionCommand::Begin) and returns it.
    PromptReturned {
        /// The prompt, unchanged.
        prompt: Arc<PromptDraft>,
        /// Why it was rejected.
        error: SessionError,
    },
    /// The request failed with a transient error; it is repeated after `delay`.
    RetryScheduled {
        /// Counts from 1.
        attempt: u32,
        /// The setting.
        max_attempts: u32,
        /// From now on.
        delay: Duration,
        /// What the provider reported.
        error: String,
    },
    /// Retrying has ended: an answer arrived, or the retries are exhausted.
    RetryEnded {
        /// Whether an answer arrived.
        success: bool,
        /// How many attempts there were.
        attempt: u32,
        /// The last error, unless there was an answer.
        final_error: Option<String>,
    },
    /// pi is writing a summary to replace the beginning of the conversation.
    CompactionStarted {
        /// Why now.
        reason: CompactionReason,
    },
    /// The compaction ended: `EntryAppended` reported the summary, `SummaryDrafted` that it
    /// waits for a decision, or nothing changed.
    CompactionEnded {
        /// Why it began.
        reason: CompactionReason,
        /// Whether it was cancelled.
        aborted: bool,
        /// Why there is no summary.
        error: Option<String>,
        /// Whether the request that did not fit is repeated.
        will_retry: bool,
        /// Estimated tokens of the next request, if there is a summary.
        tokens_after: Option<u64>,
    },
    /// A summary was written, or asked for again, and takes effect only when the user accepts
    /// it: [`DecideSummary`](super::SessionCommand::DecideSummary).
    SummaryDrafted(Arc<SummaryDraft>),
    /// The user accepted the summary, and `EntryAppended` reported it, or dropped it.
    SummaryDecided {
        /// Whether it takes effect.
        accepted: bool,
    },
    /// The request for a summary failed with a transient error; it is repeated after `delay`.
    SummaryRetryScheduled {
        /// Counts from 1.
        attempt: u32,
        /// The setting.
        max_attempts: u32,
        /// From now on.
        delay: Duration,
        /// What the provider reported.
        error: String,
    },
    /// The request for a summary is repeated now.
    SummaryRetryStarted {
        /// What the summary is for.
        source: SummarySource,
    },
    /// The request for a summary succeeded after retries, or they are exhausted.
    SummaryRetriesFinished,
    /// A summary of a branch that is left is being written.
    BranchSummaryStarted,
    /// A model drafts the prompt of a new session.
    HandoffStarted,
    /// The draft is complete and its session open; without a `prompt` nothing has changed.
    HandoffEnded {
        /// The message that begins the new session.
        prompt: Option<Arc<PromptDraft>>,
        /// Whether it was cancelled.
        aborted: bool,
    },
    /// There is a summary, and `Navigated` follows; or the branch was not left.
    BranchSummaryEnded {
        /// Where the user wanted to go.
        target: EntryId,
        /// Whether it was cancelled.
        aborted: bool,
        /// Why there is no summary.
        error: Option<String>,
    },
    /// The session continues at another entry: forget what was shown.
    Navigated(Arc<Navigated>),
    /// A user's command began.
    BashStarted {
        /// Names the command in later events.
        id: BashId,
        /// The command line.
        command: String,
        /// Whether the model never learns of it.
        exclude_from_context: bool,
    },
    /// A user's command printed output.
    BashOutput {
        /// The command.
        id: BashId,
        /// The next piece, cleaned of escape sequences. A carriage return stands before text that
        /// replaces the current line.
        chunk: String,
    },
    /// It ended; if it could not be started, `execution` is empty and a notice follows.
    BashEnded {
        /// The command.
        id: BashId,
        /// As it is stored.
        execution: Arc<BashExecution>,
    },
    /// An entry was added: it is on disk, unless a notice reports that the file cannot be
    /// written or the session has no messages yet.
    EntryAppended(Arc<Entry>),
    /// Model, thinking level or name changed, or whether everything is saved.
    SelectionChanged,
    /// The values of these settings changed, or only origins if there are no keys;
    /// `SessionState::settings` has both.
    SettingsChanged {
        /// Keys of the settings table.
        keys: Arc<[&'static str]>,
    },
    /// Trust was decided, or the project's files were reloaded.
    ProjectChanged,
    /// The session waits for a decision of the user.
    Question(Arc<Question>),
    /// A question was answered by any front end, or withdrawn.
    QuestionClosed {
        /// The question.
        id: QuestionId,
    },
    /// A notice for the user; nothing was lost.
    Notice {
        /// How serious it is.
        level: NoticeLevel,
        /// One or two sentences for the user.
        text: String,
    },
    /// The session task has ended, because of a bug or because the session could not be
    /// opened; the file contains everything shown as finished. The last event of
    /// the stream.
    Ended {
        /// What happened, for the user.
        reason: String,
    },
    /// Run, retries and queues are over; the session waits for the user.
    Settled {
        /// Whether the user ended it.
        aborted: bool,
    },
}

/// The reason for a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompactionReason {
    /// The user requested it.
    Manual,
    /// The window is nearly full.
    Threshold,
    /// A request did not fit.
    Overflow,
}

/// What a summary is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SummarySource {
    /// A conversation that goes on.
    Compaction(CompactionReason),
    /// A branch that is left.
    Branch,
    /// The prompt of a new session.
    Handoff,
}

/// How serious a notice is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoticeLevel {
    /// Good to know.
    Info,
    /// Something did not work and pi goes on without it.
    Warning,
    /// Something that the user wanted did not happen.
    Error,
}

/// Another branch of the same session.
#[derive(Debug, Clone, Default)]
pub struct Navigated {
    /// What is shown now.
    pub branch: Opened,
    /// The message that was taken back, to be sent anew.
    pub prompt: Option<PromptDraft>,
}

/// A session that has just been opened.
#[derive(Debug, Clone, Default)]
pub struct Opened {
    /// The end of the active branch, oldest first.
    pub tail: Vec<Arc<Entry>>,
    /// How many entries of the branch come before `tail`; `None` while a large
    /// file is still being scanned, in which case another `Opened` follows.
    pub n_earlier: Option<usize>,
    /// Compactions in the file, on all branches; 0 until it is scanned.
    pub n_compactions: usize,
}
