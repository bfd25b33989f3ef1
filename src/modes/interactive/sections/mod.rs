//! The entries of a session in sections, which are read from its file as they are needed.
//!
//! `section` has the rows of a prompt and what followed, `list` knows which sections are in
//! memory, `effects` reads. The pager shows such a list, fullscreen the part of the session
//! before the transcript; each gets the results of its own effects.

mod effects;
mod list;
mod section;

use std::sync::Arc;

use crate::session::{Entry, SessionTree};

#[cfg(test)]
pub(super) use effects::search;
pub(super) use list::SectionList;
#[cfg(test)]
pub(super) use list::{FAR, NEAR};
pub(super) use section::{Section, SectionCx};

/// The screen that reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reader {
    Pager,
    Fullscreen,
}

/// Something to read.
#[derive(Debug, PartialEq)]
pub(super) enum ReadEffect {
    /// Reads the tree; answers with [`ReadDone::Tree`].
    Tree,
    /// Reads entries of sections; answers with [`ReadDone::Sections`].
    Sections { tree: SessionTree, sections: Vec<(usize, Vec<usize>)> },
    /// Searches the entries at these indices; answers with [`ReadDone::Found`].
    Search { tree: SessionTree, path: Arc<[usize]>, query: String },
}

/// The result of such an effect.
#[derive(Debug)]
pub(super) enum ReadDone {
    Tree(SessionTree),
    Sections {
        tree: SessionTree,
        sections: Vec<(usize, Vec<Arc<Entry>>)>,
    },
    Found {
        tree: SessionTree,
        query: String,
        /// Positions on the path.
        positions: Vec<usize>,
    },
}
