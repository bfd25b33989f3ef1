//! The part of a branch that matters to the model: what follows the latest compaction, and
//! what that keeps.

use std::sync::Arc;

use super::SessionStore;
use super::entry::{Entry, EntryBody, EntryId};
use super::tree::EntryKind;

/// The entries that a request can depend on, oldest first. Reads only a compaction.
pub(super) fn path(store: &mut SessionStore) -> Vec<usize> {
    let mut path = Vec::new();
    let mut compaction = None;
    for idx in store.tree.upwards() {
        path.push(idx);
        if store.tree.node(idx).kind == EntryKind::Compaction {
            compaction = Some(idx);
            break;
        }
    }
    if let Some(idx) = compaction {
        let n_after = path.len();
        let first_kept = first_kept(store, idx);
        let tree = &store.tree;
        let is_first_kept = |idx: usize| Some(&tree.node(idx).id) == first_kept.as_ref();
        for idx in tree.upwards().skip(n_after).take_while(|_| first_kept.is_some()) {
            path.push(idx);
            if is_first_kept(idx) {
                break;
            }
        }
        if !path.last().is_some_and(|idx| is_first_kept(*idx)) {
            // It keeps nothing that is there.
            path.truncate(n_after);
        }
    }
    path.reverse();
    path
}

/// The first entry that the compaction `idx` keeps.
fn first_kept(store: &mut SessionStore, idx: usize) -> Option<EntryId> {
    match &store.load(idx)?.body {
        EntryBody::Compaction(compaction) => Some(EntryId::new(&compaction.first_kept_entry_id)),
        _ => None,
    }
}

/// The number of bytes that are read first of the end of a long context.
const FIRST_BYTES: u64 = 1 << 20;

/// Reads what matters to the model, of a long session no more than is needed.
pub(in crate::session) struct ContextReader<'s> {
    store: &'s mut SessionStore,
    /// Messages that compactions quote.
    pinned: &'s [EntryId],
}

/// What the plan of a summary depends on.
#[derive(Debug)]
pub(in crate::session) struct ToSummarize {
    /// The end of [`SessionStore::context_branch`], and of what comes before it the entries of
    /// type `custom`, the pinned messages and the latest compaction.
    pub(in crate::session) entries: Vec<Arc<Entry>>,
    /// Messages of that branch that were not read.
    pub(in crate::session) n_unread: usize,
}

impl<'s> ContextReader<'s> {
    pub(in crate::session) fn new(store: &'s mut SessionStore, pinned: &'s [EntryId]) -> Self {
        Self { store, pinned }
    }

    /// Reads the end of the context, as much as `is_enough` needs: it is given longer and longer
    /// ends, up to the whole, oldest entry first. Returns the length in the file of what comes
    /// before, in bytes.
    pub(in crate::session) fn read_end(&mut self, is_enough: impl FnMut(&[Arc<Entry>]) -> bool) -> u64 {
        let path = path(self.store);
        let (from, _) = self.read_back(&path, is_enough);
        path[..from].iter().map(|idx| self.n_bytes(*idx)).sum()
    }

    /// What the plan of a summary depends on, of the context as much as `is_enough` needs.
    pub(in crate::session) fn read_to_summarize(
        &mut self,
        is_enough: impl FnMut(&[Arc<Entry>]) -> bool,
    ) -> ToSummarize {
        let path = path(self.store);
        let (from, tail) = self.read_back(&path, is_enough);
        let mut wanted = self.pinned.to_vec();
        let compaction = path[..from].iter().rfind(|idx| self.kind(**idx) == EntryKind::Compaction);
        if let Some(idx) = compaction {
            wanted.push(self.store.tree.node(*idx).id.clone());
            wanted.extend(first_kept(self.store, *idx));
        }
        let before = self.before(path.len() - from, &wanted);
        let n_messages = path[..from].iter().filter(|idx| is_message(self.kind(**idx))).count();
        let n_read = before.iter().filter(|idx| is_message(self.kind(**idx)) && path.contains(idx)).count();
        let mut entries = self.store.load_all(before);
        entries.extend(tail);
        ToSummarize { entries, n_unread: n_messages.saturating_sub(n_read) }
    }

    /// The entries of type `custom`, the pinned messages, the latest compaction and the entry
    /// `also` of the active branch.
    pub(in crate::session) fn landmarks(&mut self, also: &EntryId) -> Vec<Arc<Entry>> {
        let compaction = self.store.last_of(&[EntryKind::Compaction]);
        let wanted: Vec<EntryId> =
            self.pinned.iter().cloned().chain(compaction).chain([also.clone()]).collect();
        let wanted = self.before(0, &wanted);
        self.store.load_all(wanted)
    }

    /// The entries of the context that say what prompt and tools the model was given.
    pub(in crate::session) fn system(&mut self) -> Vec<Arc<Entry>> {
        let mut path = path(self.store);
        let says = |kind| matches!(kind, EntryKind::System | EntryKind::Compaction | EntryKind::ContextEdit);
        path.retain(|idx| says(self.kind(*idx)));
        self.store.load_all(path)
    }

    /// Reads the end of `path`; returns where in it that begins.
    fn read_back(
        &mut self,
        path: &[usize],
        mut is_enough: impl FnMut(&[Arc<Entry>]) -> bool,
    ) -> (usize, Vec<Arc<Entry>>) {
        let (mut from, mut n_bytes, mut wanted) = (path.len(), 0, FIRST_BYTES);
        loop {
            while from > 0 && n_bytes < wanted {
                from -= 1;
                n_bytes += self.n_bytes(path[from]);
            }
            let entries = self.store.load_all(path[from..].iter().copied());
            if is_enough(&entries) || from == 0 {
                return (from, entries);
            }
            wanted = n_bytes.saturating_mul(2);
        }
    }

    /// Those before the last `n_after` entries of the branch that are `wanted` or of type
    /// `custom`, oldest first.
    fn before(&self, n_after: usize, wanted: &[EntryId]) -> Vec<usize> {
        let mut before: Vec<usize> = self.store.tree.upwards().skip(n_after).collect();
        before.retain(|idx| {
            let node = self.store.tree.node(*idx);
            node.kind == EntryKind::Custom || wanted.contains(&node.id)
        });
        before.reverse();
        before
    }

    fn kind(&self, idx: usize) -> EntryKind {
        self.store.tree.node(idx).kind
    }

    fn n_bytes(&self, idx: usize) -> u64 {
        self.store.tree.node(idx).location.map_or(0, |location| u64::from(location.len))
    }
}

/// Whether an entry of this kind can be a message for the model.
fn is_message(kind: EntryKind) -> bool {
    use EntryKind::{Assistant, Bash, BranchSummary, CustomMessage, OtherMessage, ToolResult, User};
    matches!(kind, User | Assistant | ToolResult | Bash | OtherMessage | BranchSummary | CustomMessage)
}
