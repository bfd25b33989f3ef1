//! The entries of a session as a tree, with bodies that can stay on disk.
//!
//! Knows no files: where a body lies is a [`Location`] for `SessionStore`.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::ai::Message;

use super::entry::{Entry, EntryBody, EntryId, SessionMessage};

/// Bytes of the session file that hold one entry, without the line break.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Location {
    pub(super) offset: u64,
    pub(super) len: usize,
}

/// What is known of an entry without reading its body.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) id: EntryId,
    pub(super) parent_id: Option<EntryId>,
    pub(super) kind: Kind,
    pub(super) body: Body,
}

#[derive(Debug, Clone)]
pub(super) enum Body {
    Loaded(Arc<Entry>),
    OnDisk(Location),
}

/// The kinds of entry the tree tells apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    User,
    Assistant,
    Compaction,
    ModelChange,
    ThinkingLevelChange,
    /// Anything else, seen or unseen.
    Other,
}

impl Kind {
    pub(super) fn of(body: &EntryBody) -> Self {
        match body {
            EntryBody::Message { message: SessionMessage::Model(message), .. } => match **message {
                Message::User(_) => Self::User,
                Message::Assistant(_) => Self::Assistant,
                Message::System(_) | Message::ToolResult(_) => Self::Other,
            },
            EntryBody::ModelChange(_) => Self::ModelChange,
            EntryBody::ThinkingLevelChange(_) => Self::ThinkingLevelChange,
            EntryBody::Compaction(_) => Self::Compaction,
            _ => Self::Other,
        }
    }
}

/// All entries in file order, and the leaf new ones are appended to.
#[derive(Debug, Default)]
pub(super) struct Tree {
    nodes: Vec<Node>,
    by_id: HashMap<EntryId, usize>,
    leaf: Option<usize>,
}

impl Tree {
    /// Adds an entry and makes it the leaf. If its id is taken, later references
    /// mean the newer entry, as in the file.
    pub(super) fn push(&mut self, node: Node) -> usize {
        let idx = self.nodes.len();
        self.by_id.insert(node.id.clone(), idx);
        self.nodes.push(node);
        self.leaf = Some(idx);
        idx
    }

    pub(super) fn leaf(&self) -> Option<usize> {
        self.leaf
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn node(&self, idx: usize) -> &Node {
        &self.nodes[idx]
    }

    pub(super) fn set_body(&mut self, idx: usize, body: Body) {
        self.nodes[idx].body = body;
    }

    pub(super) fn contains(&self, id: &EntryId) -> bool {
        self.by_id.contains_key(id)
    }

    /// The path from the root to the leaf, as indices. A missing parent or a
    /// cycle ends it.
    pub(super) fn branch(&self) -> Vec<usize> {
        let mut path = Vec::new();
        let mut seen = HashSet::new();
        let mut at = self.leaf;
        while let Some(idx) = at {
            if !seen.insert(idx) {
                break;
            }
            path.push(idx);
            at = self.nodes[idx].parent_id.as_ref().and_then(|id| self.by_id.get(id)).copied();
        }
        path.reverse();
        path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(nodes: &[(&str, Option<&str>)]) -> Tree {
        let mut tree = Tree::default();
        for (id, parent) in nodes {
            tree.push(Node {
                id: EntryId::new(id),
                parent_id: parent.map(EntryId::new),
                kind: Kind::Other,
                body: Body::OnDisk(Location { offset: 0, len: 0 }),
            });
        }
        tree
    }

    #[track_caller]
    fn check(nodes: &[(&str, Option<&str>)], expected: &[&str]) {
        let tree = tree(nodes);
        let branch: Vec<&str> = tree.branch().into_iter().map(|idx| tree.node(idx).id.as_str()).collect();
        assert_eq!(branch, expected);
    }

    #[test]
    fn the_branch_is_the_path_to_the_last_entry() {
        check(&[("a", None), ("b", Some("a")), ("c", Some("a"))], &["a", "c"]);
    }

    #[test]
    fn broken_parents_and_cycles_end_the_path() {
        check(&[("a", None), ("b", Some("gone")), ("c", Some("b"))], &["b", "c"]);
        check(&[("a", Some("a"))], &["a"]);
        check(&[("a", Some("b")), ("b", Some("a"))], &["a", "b"]);
    }
}
