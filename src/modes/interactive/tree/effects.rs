//! Does what [`TreeEffect`]s say: reads the tree and the bodies of its entries, on threads
//! that may wait for the disk.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::session::{EntryId, EntryKind, Reply, SessionCommand, SessionTree};

use super::super::effects::Effects;
use super::super::msg::EffectDone;
use super::numbering::Numbering;
use super::outline::{Outline, Shape, View};
use super::texts::{self, describe};
use super::{TreeDone, TreeEffect, TreeOptions, TreeRefresh, TreeView};

/// Lines that are read above and below the first selection, before the tree is shown.
const FIRST_TEXTS: usize = 80;

impl Effects {
    pub(in super::super) fn start_tree(&mut self, effect: TreeEffect) {
        match effect {
            TreeEffect::Read { options, select } => {
                self.with_tree(move |tree| TreeDone::Read(Box::new(read(tree, options, select.as_ref()))));
            }
            TreeEffect::Refresh(earlier) => {
                self.with_tree(|tree| TreeDone::Refreshed(Box::new(refresh(earlier, tree))));
            }
            TreeEffect::ReadTexts { tree, wanted } => self.read_tree(move || {
                let texts = wanted.into_iter().map(|idx| (idx, describe(&tree, idx))).collect();
                TreeDone::Texts { tree, texts }
            }),
            TreeEffect::Search { tree, query, from } => self.search(tree, query, from),
            TreeEffect::ReadWhole { tree, entry } => {
                self.read_tree(move || TreeDone::Whole(texts::whole(&tree, entry)));
            }
            TreeEffect::ListPrompts => self.with_tree(|tree| prompts(&tree)),
        }
    }

    fn read_tree(&self, read: impl FnOnce() -> TreeDone + Send + 'static) {
        let done = self.done.clone();
        tokio::task::spawn_blocking(move || drop(done.send(EffectDone::Tree(read()))));
    }

    /// Asks the session for its tree and reads in it.
    fn with_tree(&self, read: impl FnOnce(SessionTree) -> TreeDone + Send + 'static) {
        let (answer, done) = (self.link.handle().post(SessionCommand::ReadTree), self.done.clone());
        tokio::spawn(async move {
            if let Ok(Reply::Tree(tree)) = answer.await {
                tokio::task::spawn_blocking(move || drop(done.send(EffectDone::Tree(read(tree)))));
            }
        });
    }

    /// The last search counts; those before it stop.
    fn search(&self, tree: SessionTree, query: String, from: usize) {
        let (latest, done) = (Arc::clone(&self.tree_searches), self.done.clone());
        let number = latest.fetch_add(1, Ordering::Relaxed) + 1;
        tokio::task::spawn_blocking(move || {
            let is_stale = || latest.load(Ordering::Relaxed) != number;
            if let Some(entries) = texts::search((&tree, from), &query, &is_stale) {
                drop(done.send(EffectDone::Tree(TreeDone::Found { tree, query, from, entries })));
            }
        });
    }
}

/// Everything the tree needs for its first frame.
pub(in super::super) fn read(tree: SessionTree, options: TreeOptions, select: Option<&EntryId>) -> TreeView {
    let (shape, labels) = (Shape::new(&tree), tree.labels());
    let selected = select.and_then(|id| tree.index_of(id)).or(tree.leaf());
    let view = View {
        filter: options.filter(),
        is_labelled: &|idx| labels.contains_key(&idx),
        found: None,
        folded: &HashSet::new(),
    };
    let outline = Outline::new(&tree, &shape, &view);
    let at = outline.place(&tree, selected);
    let near = at.saturating_sub(FIRST_TEXTS)..(at + FIRST_TEXTS).min(outline.len());
    let texts =
        near.filter_map(|at| outline.row(at)).map(|row| (row.entry, describe(&tree, row.entry))).collect();
    TreeView { tree, shape, labels, texts, options, outline, selected: at }
}

/// What an open list needs to show `tree` in place of `earlier`. Reads only entries that were added,
/// unless the numbers changed.
fn refresh(earlier: SessionTree, tree: SessionTree) -> TreeRefresh {
    let numbering = Numbering::between(&earlier, &tree);
    let n_known = if numbering == Numbering::Kept { earlier.len() } else { 0 };
    let (shape, labels) = (Shape::new(&tree), tree.labels_since(n_known));
    let added = n_known.max(tree.len().saturating_sub(FIRST_TEXTS))..tree.len();
    let texts = added.map(|idx| (idx, describe(&tree, idx))).collect();
    TreeRefresh { earlier, tree, numbering, shape, labels, texts }
}

/// The result of an effect, for a session whose tree is `now`.
#[cfg(test)]
pub(in super::super) fn answer(effect: TreeEffect, now: SessionTree) -> TreeDone {
    match effect {
        TreeEffect::Read { options, select } => TreeDone::Read(Box::new(read(now, options, select.as_ref()))),
        TreeEffect::Refresh(earlier) => TreeDone::Refreshed(Box::new(refresh(earlier, now))),
        TreeEffect::ReadTexts { tree, wanted } => {
            let texts = wanted.into_iter().map(|idx| (idx, describe(&tree, idx))).collect();
            TreeDone::Texts { tree, texts }
        }
        TreeEffect::Search { tree, query, from } => {
            let entries = texts::search((&tree, from), &query, &|| false).unwrap();
            TreeDone::Found { tree, query, from, entries }
        }
        TreeEffect::ReadWhole { tree, entry } => TreeDone::Whole(texts::whole(&tree, entry)),
        TreeEffect::ListPrompts => prompts(&now),
    }
}

fn prompts(tree: &SessionTree) -> TreeDone {
    let is_prompt = |idx: &usize| tree.entry(*idx).kind == EntryKind::User;
    let prompts = tree.path(tree.leaf()).into_iter().filter(is_prompt);
    let prompts = prompts.map(|idx| (tree.entry(idx).id.clone(), describe(tree, idx).text)).collect();
    TreeDone::Prompts { session_id: tree.session_id().to_owned(), prompts }
}
