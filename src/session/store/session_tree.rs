//! All entries of a session as they were at one moment, for readers outside of its task.
//!
//! Ids, parents and kinds are in memory. Bodies are read from the file when they are
//! asked for and not kept, so that a session of any size can be shown as a tree.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::util::clock;

use super::bodies::{self, LineReader};
use super::entry::{Entry, EntryBody, EntryId};
use super::tree::{Body, EntryKind, Location, Node, Tree};

/// The entries of a session in file order. Cheap to clone.
#[derive(Debug, Clone)]
pub struct SessionTree(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    session_id: String,
    nodes: Arc<Vec<Node>>,
    /// The parent of each entry, [`NO_PARENT`] for a root. Following them ends.
    parents: Vec<u32>,
    /// Bodies in memory.
    loaded: FxHashMap<usize, Arc<Entry>>,
    leaf: Option<usize>,
    /// Where the other bodies are.
    file: Option<File>,
}

const NO_PARENT: u32 = u32::MAX;

/// What is known of an entry without its body. Entries are named by their index.
#[derive(Debug, Clone, Copy)]
pub struct TreeEntry<'t> {
    /// Unique in the file.
    pub id: &'t EntryId,
    /// `None` for a root. Following parents always ends at one.
    pub parent: Option<usize>,
    /// What kind of entry it is.
    pub kind: EntryKind,
    /// An answer with nothing to read: it only calls tools, and did not fail.
    pub is_silent: bool,
    /// Milliseconds since the Unix epoch; 0 where that is unknown.
    pub at_ms: u64,
}

/// Reads entries of a tree as they are. Lines that follow each other in the file take few
/// accesses to it.
#[derive(Debug)]
pub struct TreeLines<'t> {
    tree: &'t SessionTree,
    reader: LineReader,
}

/// An entry as it is at hand.
#[derive(Debug)]
pub enum StoredEntry<'l> {
    /// In memory.
    Entry(Arc<Entry>),
    /// The bytes where it was in the file, without a line break; if the file has changed,
    /// they may be another entry, or none.
    Line(Cow<'l, str>),
}

impl TreeLines<'_> {
    /// The entry `idx`; `None` if it cannot be read. Blocks.
    pub fn read(&mut self, idx: usize) -> Option<StoredEntry<'_>> {
        match self.tree.body(idx)? {
            Body::Loaded(entry) => Some(StoredEntry::Entry(entry)),
            Body::Lost => None,
            Body::OnDisk(location) => {
                let line = self.reader.line(self.tree.0.file.as_ref()?, location)?;
                Some(StoredEntry::Line(text(line)))
            }
        }
    }
}

/// A name that the user gave an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryLabel {
    /// The label, one line.
    pub text: String,
    /// When it was given, in milliseconds since the Unix epoch.
    pub at_ms: u64,
}

impl PartialEq for SessionTree {
    /// Whether both are the same snapshot.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl SessionTree {
    pub(super) fn new(session_id: &str, tree: &Tree, file: Option<File>) -> Self {
        let number = |idx: usize| u32::try_from(idx).unwrap_or(NO_PARENT);
        let mut parents: Vec<u32> =
            (0..tree.len()).map(|idx| tree.parent(idx).map_or(NO_PARENT, number)).collect();
        break_cycles(&mut parents);
        let (nodes, loaded) = (Arc::clone(tree.nodes()), tree.loaded().clone());
        let session_id = session_id.to_owned();
        Self(Arc::new(Shared { session_id, nodes, parents, loaded, leaf: tree.leaf(), file }))
    }

    /// The id of the session, which is that of [`SessionState`](crate::session::SessionState).
    pub fn session_id(&self) -> &str {
        &self.0.session_id
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.0.nodes.len()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.0.nodes.is_empty()
    }

    /// All entries, in the order of the file.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = TreeEntry<'_>> + ExactSizeIterator {
        (0..self.len()).map(|idx| self.entry(idx))
    }

    /// The entry `idx`.
    ///
    /// # Panics
    /// If there are not so many.
    pub fn entry(&self, idx: usize) -> TreeEntry<'_> {
        let Node { id, kind, is_silent, at_ms, .. } = &self.0.nodes[idx];
        TreeEntry { id, parent: self.parent(idx), kind: *kind, is_silent: *is_silent, at_ms: *at_ms }
    }

    /// The entry that `idx` follows; `None` for a root.
    fn parent(&self, idx: usize) -> Option<usize> {
        Some(self.0.parents[idx]).filter(|parent| *parent != NO_PARENT).map(|parent| parent as usize)
    }

    /// Whether the line of `idx` names its parent, not one that is missing.
    pub(super) fn is_linked(&self, idx: usize) -> bool {
        let parent = self.parent(idx).map(|parent| &self.0.nodes[parent].id);
        self.0.nodes[idx].parent_id.as_ref() == parent
    }

    /// `None` if there is no such entry.
    fn body(&self, idx: usize) -> Option<Body> {
        Some(Body::of(idx, self.0.nodes.get(idx)?, &self.0.loaded))
    }

    /// The end of the active branch; `None` before the first entry.
    pub fn leaf(&self) -> Option<usize> {
        self.0.leaf
    }

    /// The entry `id` means: the last one of that id. Looks at every entry.
    pub fn index_of(&self, id: &EntryId) -> Option<usize> {
        self.0.nodes.iter().rposition(|node| node.id == *id)
    }

    /// The entries from a root to `end`, which is the last one.
    pub fn path(&self, end: Option<usize>) -> Vec<usize> {
        let mut path: Vec<usize> = std::iter::successors(end, |idx| self.parent(*idx)).collect();
        path.reverse();
        path
    }

    /// The entries that are on the way to `from` and not on the way to `to`, oldest first.
    pub fn path_left(&self, from: Option<usize>, to: usize) -> Vec<usize> {
        let stays: HashSet<usize> = self.path(Some(to)).into_iter().collect();
        self.path(from).into_iter().filter(|idx| !stays.contains(idx)).collect()
    }

    /// The whole entry; `None` if it cannot be read. Blocks.
    pub fn read(&self, idx: usize) -> Option<Arc<Entry>> {
        match self.body(idx)? {
            Body::Loaded(entry) => Some(entry),
            Body::Lost => None,
            Body::OnDisk(location) => {
                let entry = bodies::read_entry(self.0.file.as_ref()?, location)?;
                // Another entry where this one was: the file is not what it was.
                (entry.id == self.0.nodes[idx].id).then(|| Arc::new(entry))
            }
        }
    }

    /// The entries that can be read. Long lists are read by several threads. Blocks.
    pub fn read_all(&self, indices: &[usize]) -> Vec<Arc<Entry>> {
        let on_disk = |idx: &usize| match self.body(*idx)? {
            Body::OnDisk(location) => Some((*idx, location)),
            Body::Loaded(_) | Body::Lost => None,
        };
        let (places, locations): (Vec<usize>, Vec<Location>) = indices.iter().filter_map(on_disk).unzip();
        let read = self.0.file.as_ref().map(|file| bodies::read_entries(file, &locations));
        let mut read = places.into_iter().zip(read.unwrap_or_default()).peekable();
        let entries = indices.iter().filter_map(|idx| match read.next_if(|(place, _)| place == idx) {
            Some((_, entry)) => entry.filter(|entry| entry.id == self.0.nodes[*idx].id),
            None => self.read(*idx),
        });
        entries.collect()
    }

    /// A reader of entries as they are in the file.
    pub fn lines(&self) -> TreeLines<'_> {
        TreeLines { tree: self, reader: LineReader::default() }
    }

    /// Bytes of an entry's line; 0 if it is in memory or cannot be read.
    pub fn line_bytes(&self, idx: usize) -> u64 {
        match self.body(idx) {
            Some(Body::OnDisk(location)) => location.len.into(),
            _ => 0,
        }
    }

    /// The entry's line of the file, without a line break. Blocks.
    pub fn line(&self, idx: usize) -> Option<Cow<'_, str>> {
        match self.body(idx)? {
            Body::Loaded(entry) => Some(Cow::Owned(entry.to_line())),
            Body::Lost => None,
            Body::OnDisk(location) => {
                let line = bodies::read_line(self.0.file.as_ref()?, location)?;
                Some(Cow::Owned(text(&line).into_owned()))
            }
        }
    }

    /// The labels, by the entries that have them: of two the later one in the file counts,
    /// on whatever branch. Reads the entries that label; blocks.
    pub fn labels(&self) -> HashMap<usize, EntryLabel> {
        self.labels_since(0).into_iter().filter_map(|(idx, label)| Some((idx, label?))).collect()
    }

    /// What the entries from `first` on change about labels, by the entries that they label; `None` for
    /// a label that was removed. Reads the entries that label; blocks.
    pub fn labels_since(&self, first: usize) -> HashMap<usize, Option<EntryLabel>> {
        let labelling = (first..self.len()).filter(|idx| self.0.nodes[*idx].kind == EntryKind::Label);
        let mut by_id: HashMap<EntryId, Option<EntryLabel>> = HashMap::new();
        for entry in labelling.filter_map(|idx| self.read(idx)) {
            let EntryBody::Label(label) = &entry.body else { continue };
            let text = label.label.as_deref().map(str::trim).filter(|text| !text.is_empty());
            let at_ms = clock::parse_iso8601(&entry.timestamp).unwrap_or_default();
            by_id.insert(
                label.target_id.clone(),
                text.map(|text| EntryLabel { text: text.to_owned(), at_ms }),
            );
        }
        if by_id.is_empty() {
            return HashMap::new();
        }
        let labelled = self.0.nodes.iter().enumerate();
        labelled.filter_map(|(idx, node)| Some((idx, by_id.get(&node.id)?.clone()))).collect()
    }
}

/// The text of a line, with marks for bytes that are none.
fn text(line: &[u8]) -> Cow<'_, str> {
    // The lossy conversion looks at every byte for itself.
    std::str::from_utf8(line).map_or_else(|_| String::from_utf8_lossy(line), Cow::Borrowed)
}

/// Where entries follow each other in a circle, the first of them in the file becomes a root.
fn break_cycles(parents: &mut [u32]) {
    #[derive(Clone, Copy, PartialEq)]
    enum Seen {
        No,
        OnThisPath,
        Before,
    }
    // Where every entry follows an earlier one there are no circles.
    let is_before = |(idx, parent): (usize, &u32)| *parent == NO_PARENT || (*parent as usize) < idx;
    if parents.iter().enumerate().all(is_before) {
        return;
    }
    let mut seen = vec![Seen::No; parents.len()];
    let mut path = Vec::new();
    for start in 0..parents.len() {
        let mut at = start;
        while seen.get(at) == Some(&Seen::No) {
            seen[at] = Seen::OnThisPath;
            path.push(at);
            at = parents[at] as usize;
        }
        if seen.get(at) == Some(&Seen::OnThisPath) {
            let circle = path.iter().skip_while(|idx| **idx != at);
            if let Some(first) = circle.min() {
                parents[*first] = NO_PARENT;
            }
        }
        for idx in path.drain(..) {
            seen[idx] = Seen::Before;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::ai::Extra;

    use super::super::entry::Label;
    use super::*;

    fn push(tree: &mut Tree, id: &str, parent: Option<&str>, body: EntryBody) {
        let (id, parent_id) = (EntryId::new(id), parent.map(EntryId::new));
        let entry =
            Entry { id: id.clone(), parent_id: parent_id.clone(), timestamp: clock::iso8601(7), body };
        let kind = EntryKind::of(&entry.body);
        let idx =
            tree.push(Node { id, parent_id, kind, is_silent: false, at_ms: 7, location: None, line: 0 });
        tree.keep_body(idx, Arc::new(entry));
    }

    fn other() -> EntryBody {
        EntryBody::Unknown { kind: "other".to_owned(), fields: Extra::new() }
    }

    fn label(target: &str, label: Option<&str>) -> EntryBody {
        let label = label.map(str::to_owned);
        EntryBody::Label(Label { target_id: EntryId::new(target), label, extra: Extra::new() })
    }

    #[track_caller]
    fn check_parents(nodes: &[(&str, Option<&str>)], expected: &[Option<usize>]) {
        let mut tree = Tree::default();
        for (id, parent) in nodes {
            push(&mut tree, id, *parent, other());
        }
        let tree = SessionTree::new("s", &tree, None);
        let parents: Vec<Option<usize>> = tree.entries().map(|entry| entry.parent).collect();
        assert_eq!(parents, expected);
    }

    #[test]
    fn broken_parents_and_circles_become_roots() {
        check_parents(&[("a", None), ("b", Some("gone")), ("c", Some("b"))], &[None, None, Some(1)]);
        check_parents(&[("a", Some("a")), ("b", Some("a"))], &[None, Some(0)]);
        let circle = [("x", Some("b")), ("a", Some("c")), ("b", Some("a")), ("c", Some("b"))];
        check_parents(&circle, &[Some(2), None, Some(1), Some(2)]);
        // Of two entries with one id the later one is meant.
        check_parents(&[("a", None), ("a", None), ("b", Some("a"))], &[None, None, Some(1)]);
    }

    #[test]
    fn picture_shares_the_entries_and_stays_as_it_was() {
        let mut tree = Tree::default();
        push(&mut tree, "a", None, other());
        let picture = SessionTree::new("s", &tree, None);
        assert!(Arc::ptr_eq(&picture.0.nodes, tree.nodes()));
        push(&mut tree, "b", Some("a"), other());
        assert_eq!((picture.len(), picture.leaf(), tree.len()), (1, Some(0), 2));
        assert_eq!(SessionTree::new("s", &tree, None).len(), 2);
    }

    /// What may happen to a tree.
    #[derive(Debug, Clone)]
    enum Step {
        Append,
        /// Moves the leaf to one of the entries there are, or before all.
        Move(Option<prop::sample::Index>),
        Label(prop::sample::Index, Option<String>),
    }

    fn any_step() -> impl Strategy<Value = Step> {
        let index = any::<prop::sample::Index>;
        prop_oneof![
            3 => Just(Step::Append),
            1 => prop::option::weighted(0.8, index()).prop_map(Step::Move),
            1 => (index(), prop::option::of("[a-c]")).prop_map(|(at, label)| Step::Label(at, label)),
        ]
    }

    proptest! {
        /// The plain model: the parent of each entry, by its number.
        #[test]
        fn tree_agrees_with_a_list_of_parents(steps in prop::collection::vec(any_step(), 0..40), ends in any::<(prop::sample::Index, prop::sample::Index)>()) {
            let (mut tree, mut parents, mut leaf) = (Tree::default(), Vec::<Option<usize>>::new(), None);
            let mut labels = HashMap::new();
            // The labels before each entry.
            let mut before = vec![HashMap::new()];
            for step in steps {
                let body = match step {
                    Step::Append => other(),
                    Step::Move(at) => {
                        leaf = at.filter(|_| !parents.is_empty()).map(|at| at.index(parents.len()));
                        tree.move_leaf(leaf);
                        continue;
                    }
                    Step::Label(..) if parents.is_empty() => continue,
                    Step::Label(at, text) => {
                        let target = at.index(parents.len());
                        match &text {
                            Some(text) => drop(labels.insert(target, EntryLabel { text: text.clone(), at_ms: 7 })),
                            None => drop(labels.remove(&target)),
                        }
                        label(&target.to_string(), text.as_deref())
                    }
                };
                let parent = leaf.map(|idx: usize| idx.to_string());
                push(&mut tree, &parents.len().to_string(), parent.as_deref(), body);
                parents.push(leaf);
                before.push(labels.clone());
                leaf = Some(parents.len() - 1);
            }
            let way = |end: Option<usize>| -> Vec<usize> {
                let mut way: Vec<usize> = std::iter::successors(end, |idx| parents[*idx]).collect();
                way.reverse();
                way
            };
            prop_assert_eq!(tree.branch(), way(leaf));
            let snapshot = SessionTree::new("s", &tree, None);
            prop_assert_eq!(snapshot.leaf(), leaf);
            prop_assert_eq!(snapshot.entries().map(|entry| entry.parent).collect::<Vec<_>>(), parents.clone());
            prop_assert_eq!(snapshot.labels(), labels);
            // Those of an earlier picture, and what has changed since.
            let first = ends.0.index(before.len());
            let mut read = before[first].clone();
            for (idx, label) in snapshot.labels_since(first) {
                match label {
                    Some(label) => drop(read.insert(idx, label)),
                    None => drop(read.remove(&idx)),
                }
            }
            prop_assert_eq!(&read, &snapshot.labels());
            if !parents.is_empty() {
                let (from, to) = (ends.0.index(parents.len()), ends.1.index(parents.len()));
                prop_assert_eq!(snapshot.path(Some(from)), way(Some(from)));
                let kept = way(Some(to));
                let left: Vec<usize> = way(Some(from)).into_iter().filter(|idx| !kept.contains(idx)).collect();
                prop_assert_eq!(snapshot.path_left(Some(from), to), left);
                prop_assert_eq!(snapshot.index_of(&EntryId::new(&from.to_string())), Some(from));
            }
        }

        #[test]
        fn following_parents_always_ends(parents in prop::collection::vec(prop::option::of(0_usize..30), 0..30)) {
            let n = parents.len();
            let mut parents: Vec<u32> = parents
                .into_iter()
                .map(|parent| parent.filter(|idx| *idx < n).map_or(NO_PARENT, |idx| idx as u32))
                .collect();
            break_cycles(&mut parents);
            for start in 0..n {
                let above = |idx: &usize| Some(parents[*idx] as usize).filter(|parent| *parent < n);
                prop_assert!(std::iter::successors(Some(start), above).take(n + 1).count() <= n);
            }
        }
    }
}
