//! The session tree: a list of all entries to move in, and what it asks of the world.
//!
//! `outline` decides what is visible, `texts` what is said about an entry, `dialog` is the
//! list with its keys, `effects` reads what it shows. A tree is a picture of the session at
//! one moment; the open list asks for another one when something has changed, and finds its
//! entries there (`numbering`). The session itself checks every move.

mod dialog;
mod done;
mod effects;
mod numbering;
mod outline;
mod texts;

use std::collections::HashMap;

use crate::session::{EntryId, EntryLabel, PromptDraft, SessionTree};

pub(super) use dialog::{TreeDialog, TreeOptions};
pub(super) use done::{follow, on_done};
#[cfg(test)]
pub(super) use effects::{answer, read as read_tree};

use numbering::Numbering;
use outline::{Outline, Shape};
use texts::EntryText;

/// An entry in one line. Blocks.
pub(super) fn line_of(tree: &SessionTree, idx: usize) -> String {
    let text = texts::describe(tree, idx).text;
    let within = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    within.unwrap_or(&text).to_owned()
}

/// Something about the tree for the world to do.
#[derive(Debug, PartialEq)]
pub(super) enum TreeEffect {
    /// Reads the tree; answers with [`TreeDone::Read`].
    Read { options: TreeOptions, select: Option<EntryId> },
    /// Reads it again, for the list that shows this one; answers with [`TreeDone::Refreshed`].
    Refresh(SessionTree),
    /// Reads the lines of entries; answers with [`TreeDone::Texts`].
    ReadTexts { tree: SessionTree, wanted: Vec<usize> },
    /// Searches the entries from the number `from` on; answers with [`TreeDone::Found`], unless another
    /// search is asked for first.
    Search { tree: SessionTree, query: String, from: usize },
    /// Answers with [`TreeDone::Whole`].
    ReadWhole { tree: SessionTree, entry: usize },
    /// Reads the user's messages on the active branch; answers with [`TreeDone::Prompts`].
    ListPrompts,
}

/// The result of such an effect.
#[derive(Debug)]
pub(super) enum TreeDone {
    Read(Box<TreeView>),
    Refreshed(Box<TreeRefresh>),
    Texts {
        tree: SessionTree,
        texts: Vec<(usize, EntryText)>,
    },
    Found {
        tree: SessionTree,
        query: String,
        from: usize,
        entries: Vec<usize>,
    },
    /// `None` if the entry has no text.
    Whole(Option<String>),
    Prompts {
        session_id: String,
        /// Oldest first.
        prompts: Vec<(EntryId, String)>,
    },
    Forked(PromptDraft),
}

/// A tree that has been read, with the lines around the entry that is selected first.
#[derive(Debug)]
pub(super) struct TreeView {
    tree: SessionTree,
    shape: Shape,
    labels: HashMap<usize, EntryLabel>,
    texts: HashMap<usize, EntryText>,
    options: TreeOptions,
    outline: Outline,
    /// The row to select.
    selected: usize,
}

impl TreeView {
    /// The end of the active branch.
    fn leaf(&self) -> Option<&EntryId> {
        self.tree.leaf().map(|idx| self.tree.entry(idx).id)
    }
}

/// A tree that has been read again, with what is new in it.
#[derive(Debug)]
pub(super) struct TreeRefresh {
    /// The one before.
    earlier: SessionTree,
    tree: SessionTree,
    numbering: Numbering,
    shape: Shape,
    /// Labels that were given or, where there is none, removed since; all of them if the numbers changed.
    labels: HashMap<usize, Option<EntryLabel>>,
    /// Lines of entries that were added.
    texts: HashMap<usize, EntryText>,
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use crate::session::{Header, SessionStore, SessionTree};

    /// The line of a message of the user that says its id.
    pub(super) fn user(id: &str, parent: Option<&str>) -> String {
        let parent = parent.map_or("null".to_owned(), |parent| format!("\"{parent}\""));
        format!(
            r#"{{"type":"message","id":"{id}","parentId":{parent},"timestamp":"2026-11-21T09:23:47.280Z","message":{{"role":"user","content":"says {id}"}}}}"#
        )
    }

    /// The tree of a session file with these lines.
    pub(super) fn tree_of(lines: &[String]) -> SessionTree {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        writeln!(file, r#"{{"type":"session","version":3,"id":"s","timestamp":"","cwd":"/"}}"#).unwrap();
        for line in lines {
            writeln!(file, "{line}").unwrap();
        }
        let none = || -> Header { unreachable!("the file has a header") };
        SessionStore::open(file.path(), none).unwrap().tree()
    }
}
