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
        let first_kept = store.load(idx).and_then(|entry| match &entry.body {
            EntryBody::Compaction(compaction) => Some(EntryId::new(&compaction.first_kept_entry_id)),
            _ => None,
        });
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

/// What the plan of a summary depends on: the part of [`SessionStore::context_branch`], and
/// before it the entries of type `custom` and those that are `wanted`.
pub(in crate::session) fn branch_to_summarize(
    store: &mut SessionStore,
    wanted: &[EntryId],
) -> Vec<Arc<Entry>> {
    let context = path(store);
    let mut before: Vec<usize> = store.tree.upwards().skip(context.len()).collect();
    before.retain(|idx| {
        let node = store.tree.node(*idx);
        node.kind == EntryKind::Custom || wanted.contains(&node.id)
    });
    store.load_all(before.into_iter().rev().chain(context))
}
