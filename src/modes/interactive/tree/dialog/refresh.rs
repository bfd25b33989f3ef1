//! The open tree follows the session: entries that arrive, labels, and the end of the active branch.

use std::collections::{HashMap, HashSet};

use super::super::numbering::Numbering;
use super::super::{TreeEffect, TreeRefresh};
use super::{ALREADY_HERE, Stage, TreeDialog};

/// Whether the tree is being read again.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refreshing {
    #[default]
    No,
    Once,
    /// Something has changed since that was asked for.
    Again,
}

impl TreeDialog {
    /// The session has changed. Returns what has to be read, unless that is being done: then it is done
    /// once more afterwards.
    pub(in super::super) fn refresh(&mut self) -> Option<TreeEffect> {
        if self.refreshing != Refreshing::No {
            self.refreshing = Refreshing::Again;
            return None;
        }
        self.refreshing = Refreshing::Once;
        self.labelled_since.clear();
        Some(TreeEffect::Refresh(self.tree.clone()))
    }

    /// Shows a tree that was read again. The selected entry stays selected, in the row of the screen where
    /// it is.
    pub(in super::super) fn on_refreshed(&mut self, read: TreeRefresh) -> Vec<TreeEffect> {
        // One of another session, which this dialog does not survive, or for a tree that was open before.
        if read.earlier != self.tree || read.tree.session_id() != self.tree.session_id() {
            return Vec::new();
        }
        let asks_again = std::mem::take(&mut self.refreshing) == Refreshing::Again;
        self.replace(read);
        let more = [if asks_again { self.refresh() } else { None }, self.search.resume(&self.tree)];
        more.into_iter().chain([self.missing_texts()]).flatten().collect()
    }

    fn replace(&mut self, read: TreeRefresh) {
        let TreeRefresh { tree, numbering, shape, labels, texts, .. } = read;
        let leaf_before = self.tree.leaf().and_then(|leaf| numbering.of(leaf));
        let selected = self.entry().and_then(|entry| numbering.of(entry));
        if numbering != Numbering::Kept {
            self.renumber(&numbering);
        }
        (self.tree, self.shape) = (tree, shape);
        self.pinned_ids = None;
        for (entry, label) in labels {
            // What was typed since the tree was read comes with the next one.
            if self.labelled_since.contains(&entry) {
                continue;
            }
            match label {
                Some(label) => drop(self.labels.insert(entry, label)),
                None => drop(self.labels.remove(&entry)),
            }
        }
        for entry in texts.keys() {
            self.awaited.remove(entry);
        }
        self.texts.extend(texts);
        if leaf_before != self.tree.leaf() {
            self.note = None;
        }
        if let Stage::Leave { entry, .. } | Stage::Focus { entry, .. } = self.stage
            && self.tree.leaf() == Some(entry)
        {
            (self.stage, self.note) = (Stage::Browse, Some(ALREADY_HERE.to_owned()));
        }
        self.lay_out();
        let row = selected.and_then(|entry| self.row_in_place_of(entry));
        self.list.moved_to(row.unwrap_or_else(|| self.row_of(selected)));
    }

    /// The entries have other numbers, or are no longer there.
    fn renumber(&mut self, numbering: &Numbering) {
        fn set(entries: &mut HashSet<usize>, numbering: &Numbering) {
            *entries = entries.iter().filter_map(|entry| numbering.of(*entry)).collect();
        }
        fn map<T>(entries: &mut HashMap<usize, T>, numbering: &Numbering) {
            let old = std::mem::take(entries).into_iter();
            *entries = old.filter_map(|(entry, value)| Some((numbering.of(entry)?, value))).collect();
        }
        for entries in [&mut self.folded, &mut self.pinned, &mut self.awaited, &mut self.labelled_since] {
            set(entries, numbering);
        }
        map(&mut self.texts, numbering);
        // All are read again, except those that were typed since.
        let since = &self.labelled_since;
        map(&mut self.labels, numbering);
        self.labels.retain(|entry, _| since.contains(entry));
        self.search.renumber(numbering);
        let entry = match &mut self.stage {
            Stage::Browse => return,
            Stage::Label { entry, .. } | Stage::Leave { entry, .. } | Stage::Focus { entry, .. } => entry,
        };
        match numbering.of(*entry) {
            Some(number) => *entry = number,
            None => self.stage = Stage::Browse,
        }
    }

    /// The row of the entry that takes the place of one that only calls tools: that one is shown as long
    /// as it is the last, and its results name the calls.
    fn row_in_place_of(&self, entry: usize) -> Option<usize> {
        if !self.tree.entry(entry).is_silent || self.shape.current() == Some(entry) {
            return None;
        }
        let path = self.tree.path(self.tree.leaf());
        let at = path.iter().position(|idx| *idx == entry)?;
        self.outline.first_of(&path[at + 1..])
    }
}
