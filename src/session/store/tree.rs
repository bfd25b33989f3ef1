//! The entries of a session as a tree, with bodies that can stay on disk.
//!
//! Knows no files: a [`Location`] refers `SessionStore` to a body. An entry without its
//! body takes about a hundred bytes, and the way from the leaf is read only as far as it is
//! needed, so that the length of a session costs little.

use std::collections::{HashMap, HashSet};
use std::num::NonZeroU64;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::ai::Message;

use super::damage;
use super::entry::{Entry, EntryBody, EntryId, SessionMessage};

/// The bytes of one entry in the session file, without the line break.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Location {
    /// The byte after the first one, so that no place is 0.
    second: NonZeroU64,
    pub(super) len: u32,
}

impl Location {
    /// `None` for what is no entry: more than 4 GiB.
    pub(super) fn new(offset: u64, len: usize) -> Option<Self> {
        Some(Self { second: NonZeroU64::new(offset + 1)?, len: u32::try_from(len).ok()? })
    }

    /// The number of bytes before it in the file.
    pub(super) fn offset(self) -> u64 {
        self.second.get() - 1
    }
}

/// The properties of an entry that are known without its body.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) id: EntryId,
    pub(super) parent_id: Option<EntryId>,
    pub(super) kind: EntryKind,
    /// An answer that has nothing to read; see [`is_silent`].
    pub(super) is_silent: bool,
    /// When it was written, in milliseconds since the Unix epoch; 0 where that is unknown.
    pub(super) at_ms: u64,
    /// `None` while its line is not in the file.
    pub(super) location: Option<Location>,
    /// Line of the file, from 1; 0 for an entry of this process.
    pub(super) line: u32,
}

/// A damaged line that used to be an entry.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Gap {
    /// `None` if it is not readable.
    pub(super) id: Option<EntryId>,
    pub(super) parent: GapParent,
}

/// The readable part of a damaged line's parent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) enum GapParent {
    #[default]
    Unknown,
    /// It was a root.
    None,
    Id(EntryId),
}

/// Where a whole entry is.
#[derive(Debug, Clone)]
pub(super) enum Body {
    Loaded(Arc<Entry>),
    OnDisk(Location),
    /// Its line was lost before it was read.
    Lost,
}

impl Body {
    /// Of the entry `idx`, where these bodies are in memory.
    pub(super) fn of(idx: usize, node: &Node, loaded: &FxHashMap<usize, Arc<Entry>>) -> Self {
        match (loaded.get(&idx), node.location) {
            (Some(entry), _) => Self::Loaded(Arc::clone(entry)),
            (None, Some(location)) => Self::OnDisk(location),
            (None, None) => Self::Lost,
        }
    }
}

/// What an entry is, as far as that can be told without its body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A message of the system.
    System,
    /// A message of the user.
    User,
    /// An answer.
    Assistant,
    /// The result of a tool.
    ToolResult,
    /// A command the user ran with `!`.
    Bash,
    /// A message of a role that is not known here.
    OtherMessage,
    /// Another model.
    ModelChange,
    /// Another thinking level.
    ThinkingLevelChange,
    /// Tokens of a request that is no message.
    Usage,
    /// A summary in place of what came before.
    Compaction,
    /// A summary of a branch that was left.
    BranchSummary,
    /// A change of what the model sees.
    ContextEdit,
    /// State of an extension.
    Custom,
    /// A message of an extension.
    CustomMessage,
    /// A name for an entry.
    Label,
    /// A name for the session.
    SessionInfo,
    /// An entry of a type that is not known here.
    Other,
}

impl EntryKind {
    const ALL: [Self; 17] = [
        Self::System,
        Self::User,
        Self::Assistant,
        Self::ToolResult,
        Self::Bash,
        Self::OtherMessage,
        Self::ModelChange,
        Self::ThinkingLevelChange,
        Self::Usage,
        Self::Compaction,
        Self::BranchSummary,
        Self::ContextEdit,
        Self::Custom,
        Self::CustomMessage,
        Self::Label,
        Self::SessionInfo,
        Self::Other,
    ];

    /// A number below 32.
    pub(super) fn code(self) -> u8 {
        self as u8
    }

    pub(super) fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }

    /// By the type of an entry and the role of its message.
    pub(super) fn named(kind: &str, role: Option<&str>) -> Self {
        match (kind, role) {
            ("message", Some("system")) => Self::System,
            ("message", Some("user")) => Self::User,
            ("message", Some("assistant")) => Self::Assistant,
            ("message", Some("toolResult")) => Self::ToolResult,
            ("message", Some("bashExecution")) => Self::Bash,
            ("message", _) => Self::OtherMessage,
            ("model_change", _) => Self::ModelChange,
            ("thinking_level_change", _) => Self::ThinkingLevelChange,
            ("usage", _) => Self::Usage,
            ("compaction", _) => Self::Compaction,
            ("branch_summary", _) => Self::BranchSummary,
            ("context_edit", _) => Self::ContextEdit,
            ("custom", _) => Self::Custom,
            ("custom_message", _) => Self::CustomMessage,
            ("label", _) => Self::Label,
            ("session_info", _) => Self::SessionInfo,
            _ => Self::Other,
        }
    }

    /// The kind of an entry with this content.
    pub fn of(body: &EntryBody) -> Self {
        match body {
            EntryBody::Message { message: SessionMessage::Model(message), .. } => match **message {
                Message::System(_) => Self::System,
                Message::User(_) => Self::User,
                Message::Assistant(_) => Self::Assistant,
                Message::ToolResult(_) => Self::ToolResult,
            },
            EntryBody::Message { message: SessionMessage::BashExecution(_), .. } => Self::Bash,
            EntryBody::Message { message: SessionMessage::Unknown(_), .. } => Self::OtherMessage,
            EntryBody::ModelChange(_) => Self::ModelChange,
            EntryBody::ThinkingLevelChange(_) => Self::ThinkingLevelChange,
            EntryBody::Usage(_) => Self::Usage,
            EntryBody::Compaction(_) => Self::Compaction,
            EntryBody::BranchSummary(_) => Self::BranchSummary,
            EntryBody::ContextEdit(_) => Self::ContextEdit,
            EntryBody::Custom(_) => Self::Custom,
            EntryBody::CustomMessage(_) => Self::CustomMessage,
            EntryBody::Label(_) => Self::Label,
            EntryBody::SessionInfo(_) => Self::SessionInfo,
            EntryBody::Unknown { .. } => Self::Other,
        }
    }

    /// The kind in the user's words, if there is a single word for it.
    pub(super) fn describe(self) -> Option<String> {
        let (kind, role) = match self {
            Self::User => ("message", Some("user")),
            Self::Assistant => ("message", Some("assistant")),
            Self::Compaction => ("compaction", None),
            Self::ModelChange => ("model_change", None),
            Self::ThinkingLevelChange => ("thinking_level_change", None),
            _ => return None,
        };
        damage::describe(kind, role)
    }

    /// Whether such an entry makes a new session worth a file: somebody said something.
    pub(super) fn is_conversation(self) -> bool {
        matches!(self, Self::User | Self::Assistant | Self::Bash)
    }
}

/// Whether an answer has nothing to read: it only calls tools, and did not fail.
pub(super) fn is_silent(body: &EntryBody) -> bool {
    let EntryBody::Message { message: SessionMessage::Model(message), .. } = body else { return false };
    let Message::Assistant(answer) = &**message else { return false };
    !answer.is_failed() && answer.texts().all(|text| text.trim().is_empty())
}

/// All entries in file order, and the leaf new ones are appended to.
#[derive(Debug, Default)]
pub(super) struct Tree {
    /// Shared with pictures of the tree; a change while there are such copies them.
    nodes: Arc<Vec<Node>>,
    by_id: HashMap<EntryId, u32>,
    /// The bodies in memory.
    loaded: FxHashMap<usize, Arc<Entry>>,
    leaf: Option<usize>,
    /// Gaps whose id is known, each with the number of entries before it.
    gaps_by_id: HashMap<EntryId, (usize, GapParent)>,
    /// For all other gaps, the number of entries before each; ascending.
    unnamed_gaps: Vec<usize>,
    /// Entries whose ids were used again, oldest first.
    reused: HashMap<EntryId, Vec<usize>>,
    /// Entries whose parent was not there yet when they were added.
    unresolved: Vec<usize>,
}

/// What is wrong with the parents of a file's entries, by their lines.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct BrokenLinks {
    /// Entries whose parent is missing, so that a branch begins with them.
    pub(super) orphans: Vec<usize>,
    /// Entries whose ids an earlier entry has.
    pub(super) reused_ids: Vec<usize>,
    /// An entry that follows one of its own successors.
    pub(super) circle: Option<usize>,
}

/// Most entries with missing parents for which a damaged id is looked for.
const MAX_REPAIRED: usize = 64;
/// Length of an id; shorter ones are not compared.
const ID_BYTES: usize = 8;

impl Tree {
    /// Room for this many entries.
    pub(super) fn with_capacity(n_entries: usize) -> Self {
        let nodes = Arc::new(Vec::with_capacity(n_entries));
        Self { nodes, by_id: HashMap::with_capacity(n_entries), ..Self::default() }
    }

    /// Adds an entry and makes it the leaf. If its id is already in use, later references
    /// resolve to the newer entry, as in the file.
    pub(super) fn push(&mut self, node: Node) -> usize {
        let idx = self.nodes.len();
        if node.parent_id.as_ref().is_some_and(|parent| !self.by_id.contains_key(parent)) {
            self.unresolved.push(idx);
        }
        let number = u32::try_from(idx).expect("a file has fewer than four billion lines");
        if let Some(earlier) = self.by_id.insert(node.id.clone(), number) {
            self.reused.entry(node.id.clone()).or_default().push(earlier as usize);
        }
        Arc::make_mut(&mut self.nodes).push(node);
        self.leaf = Some(idx);
        idx
    }

    /// Makes room for about `n` more entries, if there is so much memory. What grows step by step leaves
    /// holes of its earlier sizes.
    pub(super) fn make_room(&mut self, n: usize) {
        // A table that grows costs twice the memory, a list with room to spare nothing until it is used.
        let nodes = Arc::make_mut(&mut self.nodes);
        // Without so much memory they grow step by step.
        drop(self.by_id.try_reserve(n).and_then(|()| nodes.try_reserve_exact(n.saturating_add(n / 8))));
    }

    /// Entries for which there is room.
    #[cfg(test)]
    pub(super) fn room(&self) -> usize {
        self.nodes.capacity()
    }

    /// Whether an entry of a file is the same as an earlier one: the line was written twice.
    pub(super) fn repeats(&self, node: &Node) -> bool {
        let Some(earlier) = self.index_of(&node.id).map(|idx| &self.nodes[idx]) else { return false };
        let len = |node: &Node| node.location.map(|location| location.len);
        let facts = |node: &Node| (node.kind, node.at_ms, len(node));
        earlier.parent_id == node.parent_id && facts(earlier) == facts(node)
    }

    /// Called after the last line of a file. Lines that changed places leave an entry before
    /// its parent; the leaf is then the end of its branch, not of the file.
    pub(super) fn finish(&mut self) -> BrokenLinks {
        let is_orphan = |idx: &usize| self.parent(*idx).is_none();
        let (orphans, found): (Vec<usize>, Vec<usize>) =
            self.unresolved.iter().copied().partition(|idx| is_orphan(idx));
        let is_before_parent = |idx: &usize| self.parent(*idx).is_some_and(|parent| parent >= *idx);
        let mut circle = None;
        if found.iter().any(is_before_parent) {
            circle = self.circle();
            if circle.is_none() {
                self.leaf = self.leaf.map(|leaf| self.end_of_branch(leaf));
            }
        }
        let line = |idx: usize| self.nodes[idx].line as usize;
        let mut reused_ids: Vec<usize> =
            self.reused.keys().filter_map(|id| self.index_of(id)).map(line).collect();
        reused_ids.sort_unstable();
        BrokenLinks { orphans: orphans.into_iter().map(line).collect(), reused_ids, circle: circle.map(line) }
    }

    /// The first entry of the active branch, if it follows another entry of it.
    fn circle(&self) -> Option<usize> {
        let path = self.branch();
        let first = *path.first()?;
        self.parent(first).filter(|parent| path.contains(parent)).map(|_| first)
    }

    /// The last entry that follows `from`, directly or not.
    fn end_of_branch(&self, from: usize) -> usize {
        let mut child_of: HashMap<usize, usize> = HashMap::new();
        for idx in 0..self.nodes.len() {
            if let Some(parent) = self.parent(idx) {
                child_of.insert(parent, idx);
            }
        }
        let mut seen = HashSet::from([from]);
        let mut at = from;
        while let Some(child) = child_of.get(&at).copied().filter(|child| seen.insert(*child)) {
            at = child;
        }
        at
    }

    /// Records that an entry is missing after those added so far.
    pub(super) fn push_gap(&mut self, gap: Gap) {
        self.push_gap_at(self.nodes.len(), gap);
    }

    /// Makes the entry that the gap `id` followed the leaf, if its line tells: it may have begun
    /// another branch than the entry above it in the file.
    pub(super) fn end_at_gap(&mut self, id: &EntryId) {
        if !self.contains(id) {
            self.leaf = self.resolve(id, self.nodes.len()).or(self.leaf);
        }
    }

    /// Records that an entry is missing after the first `n_before`.
    pub(super) fn push_gap_at(&mut self, n_before: usize, gap: Gap) {
        match gap.id {
            Some(id) => drop(self.gaps_by_id.insert(id, (n_before, gap.parent))),
            // Where several are missing, one place is enough.
            None if self.unnamed_gaps.last() == Some(&n_before) => {}
            None => self.unnamed_gaps.push(n_before),
        }
    }

    /// The gaps, each with the number of entries before it.
    pub(super) fn gaps(&self) -> impl Iterator<Item = (usize, Gap)> {
        let named = self.gaps_by_id.iter().map(|(id, (n_before, parent))| {
            (*n_before, Gap { id: Some(id.clone()), parent: parent.clone() })
        });
        named.chain(self.unnamed_gaps.iter().map(|n_before| (*n_before, Gap::default())))
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

    pub(super) fn nodes(&self) -> &Arc<Vec<Node>> {
        &self.nodes
    }

    /// The bodies in memory, by the index of their entries.
    pub(super) fn loaded(&self) -> &FxHashMap<usize, Arc<Entry>> {
        &self.loaded
    }

    /// Makes an entry the leaf: what is added next follows it. Without one, what is added
    /// next is a root.
    pub(super) fn move_leaf(&mut self, idx: Option<usize>) {
        debug_assert!(idx.is_none_or(|idx| idx < self.nodes.len()), "no such entry");
        self.leaf = idx;
    }

    pub(super) fn index_of(&self, id: &EntryId) -> Option<usize> {
        self.by_id.get(id).map(|idx| *idx as usize)
    }

    pub(super) fn body(&self, idx: usize) -> Body {
        Body::of(idx, &self.nodes[idx], &self.loaded)
    }

    /// Makes room for this many bodies more.
    pub(super) fn reserve_bodies(&mut self, n_bodies: usize) {
        self.loaded.reserve(n_bodies);
    }

    /// Keeps a body in memory.
    pub(super) fn keep_body(&mut self, idx: usize, entry: Arc<Entry>) {
        self.loaded.insert(idx, entry);
    }

    /// The number of bodies in memory.
    pub(super) fn n_loaded(&self) -> usize {
        self.loaded.len()
    }

    /// Drops the bodies of entries that `keep` rejects and that can be read again.
    /// Returns their number.
    pub(super) fn release(&mut self, keep: impl Fn(usize, &Entry) -> bool) -> usize {
        let n_before = self.loaded.len();
        let nodes = &self.nodes;
        self.loaded.retain(|idx, entry| nodes[*idx].location.is_none() || keep(*idx, entry));
        self.loaded.shrink_to_fit();
        n_before - self.loaded.len()
    }

    /// Records that the line of an entry is in the file.
    pub(super) fn set_location(&mut self, idx: usize, location: Option<Location>) {
        Arc::make_mut(&mut self.nodes)[idx].location = location;
    }

    /// Forgets the locations of loaded entries, because the file was replaced.
    pub(super) fn forget_locations(&mut self) {
        let nodes = Arc::make_mut(&mut self.nodes);
        for idx in self.loaded.keys() {
            nodes[*idx].location = None;
        }
    }

    pub(super) fn contains(&self, id: &EntryId) -> bool {
        self.by_id.contains_key(id)
    }

    /// The path from the root to the leaf, as indices.
    pub(super) fn branch(&self) -> Vec<usize> {
        let mut path: Vec<usize> = self.upwards().collect();
        path.reverse();
        path
    }

    /// The path from the leaf to the root, as indices. A cycle ends it, and so does a
    /// missing parent, unless a damaged line explains it: then the path continues
    /// with the entry above that line.
    pub(super) fn upwards(&self) -> Upwards<'_> {
        Upwards { tree: self, at: self.leaf, seen: Vec::new() }
    }

    /// The entry it follows; `None` for a root, and where no line tells what it follows.
    pub(super) fn parent(&self, idx: usize) -> Option<usize> {
        let id = self.nodes[idx].parent_id.as_ref()?;
        if id.as_str().is_empty() {
            // Its line has no parent any more.
            return idx.checked_sub(1);
        }
        // Nearly every entry follows the one before it.
        if let Some(before) = idx.checked_sub(1)
            && self.reused.is_empty()
            && self.nodes[before].id == *id
        {
            return Some(before);
        }
        self.resolve(id, idx)
    }

    /// The entry with the id that entry `idx` names as its parent, or the one above it if its
    /// line is damaged.
    fn resolve<'a>(&'a self, mut id: &'a EntryId, idx: usize) -> Option<usize> {
        let mut before_gap = None;
        // At most one step per gap, because damaged lines may refer to each other.
        for _ in 0..=self.gaps_by_id.len() {
            if let Some(parent) = self.find(id, idx) {
                return Some(parent);
            }
            match self.gaps_by_id.get(id) {
                Some((n_before, GapParent::Id(above))) => {
                    id = above;
                    before_gap = n_before.checked_sub(1);
                }
                Some((_, GapParent::None)) => return None,
                Some((n_before, GapParent::Unknown)) => return n_before.checked_sub(1),
                // The parent that a damaged line names may be damaged too. Otherwise it must
                // be one of the gaps without an id; the last one above is the most likely.
                None => {
                    let n_above = self.unnamed_gaps.partition_point(|n_before| *n_before <= idx);
                    let above = || self.unnamed_gaps[..n_above].last()?.checked_sub(1);
                    return self.similar(id, idx).or(before_gap).or_else(above);
                }
            }
        }
        None
    }

    /// The entry with this id; of several the last one above `idx`.
    fn find(&self, id: &EntryId, idx: usize) -> Option<usize> {
        let latest = self.index_of(id)?;
        if latest < idx || self.reused.is_empty() {
            return Some(latest);
        }
        let above = self.reused.get(id).and_then(|all| all.iter().rfind(|earlier| **earlier < idx));
        Some(above.copied().unwrap_or(latest))
    }

    /// The entry above `idx` whose id, or that of the line after it, is `id` but for one
    /// damaged character.
    fn similar(&self, id: &EntryId, idx: usize) -> Option<usize> {
        if self.unresolved.len() > MAX_REPAIRED {
            return None;
        }
        let fits = |other: &EntryId| is_similar(id.as_str(), other.as_str());
        if let Some(at) = self.nodes[..idx].iter().rposition(|node| fits(&node.id)) {
            return Some(at);
        }
        let (_, (n_before, parent)) = self.gaps_by_id.iter().find(|(other, _)| fits(other))?;
        match parent {
            GapParent::Id(above) => self.find(above, idx),
            GapParent::None => None,
            GapParent::Unknown => n_before.checked_sub(1),
        }
    }
}

/// Whether two ids differ in one character, or in what follows a lost quotation mark.
fn is_similar(id: &str, other: &str) -> bool {
    if id.len() < ID_BYTES || other.len() < ID_BYTES {
        return false;
    }
    let n_different = id.chars().zip(other.chars()).filter(|(a, b)| a != b).count();
    let n_chars = |text: &str| text.chars().count();
    if n_chars(id) == n_chars(other) { n_different == 1 } else { other.starts_with(id) }
}

/// See [`Tree::upwards`].
pub(super) struct Upwards<'t> {
    tree: &'t Tree,
    at: Option<usize>,
    /// One bit for each entry, set once it was passed.
    seen: Vec<u64>,
}

impl Iterator for Upwards<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let idx = self.at?;
        if self.seen.is_empty() {
            self.seen = vec![0; self.tree.len().div_ceil(64)];
        }
        let (word, bit) = (&mut self.seen[idx / 64], 1 << (idx % 64));
        if *word & bit != 0 {
            self.at = None;
            return None;
        }
        *word |= bit;
        self.at = self.tree.parent(idx);
        Some(idx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(id: &str, parent: Option<&str>) -> Node {
        Node {
            id: EntryId::new(id),
            parent_id: parent.map(EntryId::new),
            kind: EntryKind::Other,
            is_silent: false,
            at_ms: 0,
            location: None,
            line: 0,
        }
    }

    fn ids(tree: &Tree) -> Vec<&str> {
        tree.branch().into_iter().map(|idx| tree.node(idx).id.as_str()).collect()
    }

    /// Like [`check`]; `None` is a damaged line without readable fields.
    #[track_caller]
    fn check_gaps(lines: &[Option<(&str, Option<&str>)>], expected: &[&str]) {
        let mut tree = Tree::default();
        for line in lines {
            match line {
                Some((id, parent)) => drop(tree.push(node(id, *parent))),
                None => tree.push_gap(Gap::default()),
            }
        }
        assert_eq!(ids(&tree), expected);
    }

    #[track_caller]
    fn check(nodes: &[(&str, Option<&str>)], expected: &[&str]) {
        let mut tree = Tree::default();
        for (id, parent) in nodes {
            tree.push(node(id, *parent));
        }
        assert_eq!(ids(&tree), expected);
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

    #[test]
    fn damaged_character_of_an_id_does_not_end_the_path() {
        check(
            &[("11111111", None), ("2222222!", Some("11111111")), ("33333333", Some("22222222"))],
            &["11111111", "2222222!", "33333333"],
        );
        check(&[("11111111", None), ("22222222", Some("1111111q"))], &["11111111", "22222222"]);
        check(&[("11111111", None), ("22222222", Some("1111q11q"))], &["22222222"]);
    }

    #[test]
    fn id_that_is_used_again_leads_to_the_entry_above() {
        let nodes = [("a", None), ("b", Some("a")), ("a", Some("b")), ("c", Some("a"))];
        check(&nodes, &["a", "b", "a", "c"]);
        let mut tree = Tree::default();
        for (line, (id, parent)) in nodes.into_iter().enumerate() {
            tree.push(Node { line: line as u32, ..node(id, parent) });
        }
        assert_eq!(tree.finish(), BrokenLinks { reused_ids: vec![2], ..BrokenLinks::default() });
    }

    #[test]
    fn lines_that_changed_places_keep_the_end_of_the_branch() {
        let check = |nodes: &[(&str, Option<&str>)], expected: &[&str], links: BrokenLinks| {
            let mut tree = Tree::default();
            for (line, (id, parent)) in nodes.iter().enumerate() {
                tree.push(Node { line: line as u32, ..node(id, *parent) });
            }
            assert_eq!((tree.finish(), ids(&tree)), (links, expected.to_vec()));
        };
        let fine = BrokenLinks::default;
        check(&[("a", None), ("c", Some("b")), ("b", Some("a"))], &["a", "b", "c"], fine());
        let first_last = [("d", Some("c")), ("b", Some("a")), ("c", Some("b")), ("a", None)];
        check(&first_last, &["a", "b", "c", "d"], fine());
        let orphan = [("a", None), ("b", Some("gone")), ("c", Some("b"))];
        check(&orphan, &["b", "c"], BrokenLinks { orphans: vec![1], ..fine() });
        let circle = [("a", Some("b")), ("b", Some("a"))];
        check(&circle, &["a", "b"], BrokenLinks { circle: Some(0), ..fine() });
    }

    #[test]
    fn a_damaged_line_is_stepped_over_to_the_entry_above_it() {
        let (a, b, d) = (Some(("a", None)), Some(("b", Some("a"))), Some(("d", Some("c"))));
        check_gaps(&[a, b, None, d], &["a", "b", "d"]);
        check_gaps(&[a, b, None, None, d], &["a", "b", "d"]);
        check_gaps(&[None, d], &["d"]);
        // A later gap cannot be the parent, and another branch is not above.
        check_gaps(&[a, b, d, None], &["d"]);
        check_gaps(&[a, None, Some(("x", Some("a"))), d], &["a", "d"]);
        // Two gaps on one branch.
        check_gaps(&[a, None, d, None, Some(("f", Some("e")))], &["a", "d", "f"]);
    }

    #[test]
    fn what_is_left_of_a_damaged_last_line_says_where_the_branch_ends() {
        let branch = |gaps: Vec<Gap>| {
            let mut tree = Tree::default();
            tree.push(node("a", None));
            tree.push(node("b", Some("a")));
            tree.push(node("x", Some("a")));
            for gap in gaps {
                let id = gap.id.clone();
                tree.push_gap(gap);
                id.iter().for_each(|id| tree.end_at_gap(id));
            }
            ids(&tree).join(" ")
        };
        let gap = |id: &str, parent| Gap { id: Some(EntryId::new(id)), parent };
        let of = |id: &str, parent: &str| gap(id, GapParent::Id(EntryId::new(parent)));
        assert_eq!(branch(vec![of("c", "b")]), "a b");
        assert_eq!(branch(vec![of("c", "x")]), "a x");
        assert_eq!(branch(vec![of("c", "b"), of("d", "c")]), "a b", "two damaged lines follow each other");
        assert_eq!(branch(vec![of("c", "b"), of("d", "x")]), "a x");
        assert_eq!(branch(vec![of("c", "b"), Gap::default()]), "a b");
        assert_eq!(branch(vec![gap("c", GapParent::None)]), "a x", "nothing would be left");
        assert_eq!(branch(vec![gap("c", GapParent::Unknown)]), "a x");
        assert_eq!(branch(vec![of("b", "a")]), "a x", "a copy of a line that is there");
        assert_eq!(branch(vec![of("c", "d"), of("d", "c")]), "a x", "they name each other");
    }

    #[test]
    fn what_is_left_of_a_damaged_line_says_where_the_path_goes_on() {
        let branch = |gap: Gap| {
            let mut tree = Tree::default();
            tree.push(node("a", None));
            tree.push(node("x", Some("a")));
            tree.push_gap(gap);
            tree.push(node("d", Some("c")));
            ids(&tree).join(" ")
        };
        let gap = |id: &str, parent| Gap { id: Some(EntryId::new(id)), parent };
        assert_eq!(branch(gap("c", GapParent::Id(EntryId::new("a")))), "a d");
        assert_eq!(branch(gap("c", GapParent::Id(EntryId::new("a*,")))), "a x d", "no entry has this id");
        assert_eq!(branch(gap("c", GapParent::None)), "d");
        assert_eq!(branch(gap("c", GapParent::Unknown)), "a x d");
        assert_eq!(branch(gap("c", GapParent::Id(EntryId::new("c")))), "d", "it names itself");
        assert_eq!(branch(gap("other", GapParent::Unknown)), "d", "it is not the one");
    }
}
