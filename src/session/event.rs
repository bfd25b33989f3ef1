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
    pub event: SessionEvent,
    pub state: Arc<SessionState>,
}

/// The events of a session, in order. Events describe changes; the state
/// snapshot describes the current state.
#[derive(Debug, Clone)]
pub enum SessionEvent {
    /// A session was opened, started or switched to; clients discard earlier content.
    Opened(Arc<Opened>),
    Agent(AgentEvent),
    /// The queues changed; `SessionState::queue` has their texts.
    QueueChanged,
    /// The session returns queued messages to the user, because their run failed or was
    /// interrupted. They stay on disk until [`SaveDraft`](super::SessionCommand::SaveDraft) names their ticket.
    QueueReturned(Arc<TakenQueue>),
    /// The session rejected a prompt of [`Begin`](super::SessionCommand::Begin) and returns it.
    PromptReturned {
        prompt: Arc<PromptDraft>,
        error: SessionError,
    },
    /// The request failed with a transient error; it is repeated after `delay`.
    RetryScheduled {
        attempt: u32,
        max_attempts: u32,
        delay: Duration,
        error: String,
    },
    /// Retrying has ended: an answer arrived, or the retries are exhausted.
    RetryEnded {
        success: bool,
        attempt: u32,
        final_error: Option<String>,
    },
    /// pi is writing a summary to replace the beginning of the conversation.
    CompactionStarted {
        reason: CompactionReason,
    },
    /// The compaction ended: `EntryAppended` reported the summary, `SummaryDrafted` that it
    /// waits for a decision, or nothing changed.
    CompactionEnded {
        reason: CompactionReason,
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
        accepted: bool,
    },
    /// The request for a summary failed with a transient error; it is repeated after `delay`.
    SummaryRetryScheduled {
        attempt: u32,
        max_attempts: u32,
        delay: Duration,
        error: String,
    },
    /// The request for a summary is repeated now.
    SummaryRetryStarted {
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
        prompt: Option<Arc<PromptDraft>>,
        aborted: bool,
    },
    /// There is a summary, and `Navigated` follows; or the branch was not left.
    BranchSummaryEnded {
        /// Where the user wanted to go.
        target: EntryId,
        aborted: bool,
        /// Why there is no summary.
        error: Option<String>,
    },
    /// The session continues at another entry: forget what was shown.
    Navigated(Arc<Navigated>),
    /// A user's command began.
    BashStarted {
        id: BashId,
        command: String,
        exclude_from_context: bool,
    },
    /// A user's command printed output.
    BashOutput {
        id: BashId,
        chunk: String,
    },
    /// It ended; if it could not be started, `execution` is empty and a notice follows.
    BashEnded {
        id: BashId,
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
        keys: Arc<[&'static str]>,
    },
    /// Trust was decided, or the project's files were reloaded.
    ProjectChanged,
    /// The session waits for a decision of the user.
    Question(Arc<Question>),
    /// A question was answered by any front end, or withdrawn.
    QuestionClosed {
        id: QuestionId,
    },
    /// A notice for the user; nothing was lost.
    Notice {
        level: NoticeLevel,
        text: String,
    },
    /// The session task has ended, because of a bug or because the session could not be
    /// opened; the file contains everything shown as finished. The last event of
    /// the stream.
    Ended {
        reason: String,
    },
    /// Run, retries and queues are over; the session waits for the user.
    Settled {
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
    Compaction(CompactionReason),
    /// A branch that is left.
    Branch,
    /// The prompt of a new session.
    Handoff,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoticeLevel {
    Info,
    Warning,
    Error,
}

/// Another branch of the same session.
#[derive(Debug, Clone, Default)]
pub struct Navigated {
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
}
