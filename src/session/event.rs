//! Events a session sends to modes.

use std::sync::Arc;
use std::time::Duration;

use crate::agent::AgentEvent;

use super::question::{Question, QuestionId};
use super::store::{BashExecution, Entry};

/// What happens to a session, in order. Events carry what changed; the state
/// snapshot carries what is.
#[derive(Debug, Clone)]
pub enum SessionEvent {
    /// A session was opened, started or switched to: forget what was shown.
    Opened(Arc<Opened>),
    Agent(AgentEvent),
    /// The queues changed; `SessionState::queue` has their texts.
    QueueChanged,
    /// The request failed in a way that may pass; it is repeated after `delay`.
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
    /// A summary is being written in place of the beginning of the conversation.
    CompactionStarted {
        reason: CompactionReason,
    },
    /// The summary is in the session (`EntryAppended` told of it), or nothing changed.
    CompactionEnded {
        reason: CompactionReason,
        aborted: bool,
        /// Why there is no summary.
        error: Option<String>,
    },
    /// A user's command began.
    BashStarted {
        command: String,
        exclude_from_context: bool,
    },
    /// It printed something.
    BashOutput {
        chunk: String,
    },
    BashEnded(Arc<BashExecution>),
    /// An entry was added: on disk, unless a notice says that the file cannot be
    /// written or nobody has said anything in the session yet.
    EntryAppended(Arc<Entry>),
    /// Model, thinking level or name changed, or whether everything is saved.
    SelectionChanged,
    /// The user is to decide something, which something waits for.
    Question(Arc<Question>),
    /// A question was answered, by whatever front end, or is of no interest any more.
    QuestionClosed {
        id: QuestionId,
    },
    /// Something the user should know; nothing was lost.
    Notice {
        level: NoticeLevel,
        text: String,
    },
    /// The session task is gone, because of a bug or because the session could not be
    /// opened; the file has everything that was shown as finished. The last event of
    /// the stream.
    Ended {
        reason: String,
    },
    /// Run, retries and queues are over; the session waits for the user.
    Settled {
        aborted: bool,
    },
}

/// Why a conversation is compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompactionReason {
    /// The user asked for it.
    Manual,
    /// The window is nearly full.
    Threshold,
    /// A request did not fit.
    Overflow,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoticeLevel {
    Info,
    Warning,
    Error,
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
