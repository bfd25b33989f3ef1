//! `/resume`: the list of sessions, with a search over their texts.
//!
//! `dialog` is the list, `rows` draws it, `order` decides what is shown in which order;
//! `finder` reads and searches sessions on a thread of its own.

mod dialog;
mod finder;
mod order;
mod rows;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use crate::session::{Deleted, EntryId, SearchHit, SessionSummary};

pub(super) use dialog::SessionsDialog;
pub(super) use finder::{IndexUpdate, SessionFinder, SessionFolders};

/// Something about sessions for the world to do.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum SessionsEffect {
    /// Starts to list the sessions of this directory; answers with [`SessionsDone::Opened`].
    Open,
    /// Lists; answers with [`SessionsDone::Listed`].
    List { request: u64, is_all: bool },
    /// Searches; answers with [`SessionsDone::Found`]. A later request cancels it.
    Search { request: u64, is_all: bool, text: String },
    /// Answers with [`SessionsDone::Renamed`] or [`SessionsDone::NotRenamed`].
    Rename { path: PathBuf, name: String },
    /// Answers with [`SessionsDone::Deleted`].
    Delete { path: PathBuf },
    /// Ends reading and searching, and releases what they keep in memory.
    Close,
    /// Brings the cache up to date while nothing else happens.
    UpdateIndex,
}

/// The result of such an effect.
#[derive(Debug, Clone)]
pub(super) enum SessionsDone {
    Opened,
    Listed {
        request: u64,
        /// Whether these replace earlier ones.
        is_first: bool,
        sessions: Vec<SessionSummary>,
        is_done: bool,
    },
    Found {
        request: u64,
        is_first: bool,
        hits: Vec<SearchHit>,
        is_done: bool,
    },
    Renamed {
        path: PathBuf,
        name: String,
    },
    /// The name goes back to the user.
    NotRenamed {
        path: PathBuf,
        name: String,
        problem: String,
    },
    Deleted {
        path: PathBuf,
        how: Deleted,
    },
    /// The text of a search is not understood.
    BadQuery {
        request: u64,
        problem: String,
    },
    Failed(String),
}

/// The session chosen in the list.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ChosenSession {
    pub(super) path: PathBuf,
    /// The message that a search found.
    pub(super) entry: Option<EntryId>,
}
