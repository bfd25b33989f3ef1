//! What is searched for in the tree, and what was found. Entries that arrive later are searched too.

use std::collections::HashSet;

use crate::session::SessionTree;

use super::super::TreeEffect;
use super::super::numbering::Numbering;

/// A query and its results.
#[derive(Default)]
pub(super) struct Search {
    query: String,
    found: Option<Found>,
    /// Whether a search for the query is under way.
    is_running: bool,
}

/// What was found for a query.
struct Found {
    query: String,
    entries: HashSet<usize>,
    /// How many entries were searched.
    n_searched: usize,
}

impl Search {
    pub(super) fn query(&self) -> &str {
        &self.query
    }

    pub(super) fn is_empty(&self) -> bool {
        self.query.trim().is_empty()
    }

    /// What was found for the query, or for the one before while the search goes on.
    pub(super) fn entries(&self) -> Option<&HashSet<usize>> {
        self.found.as_ref().filter(|_| !self.is_empty()).map(|found| &found.entries)
    }

    /// Whether nothing was found yet because the search goes on.
    pub(super) fn goes_on(&self) -> bool {
        !self.is_empty() && self.found.as_ref().is_none_or(|found| found.query != self.query)
    }

    /// Searches for something else; `None` if there is nothing to search for.
    pub(super) fn start(&mut self, tree: &SessionTree, query: String) -> Option<TreeEffect> {
        self.query = query;
        self.is_running = !self.is_empty();
        if !self.is_running {
            self.found = None;
            return None;
        }
        Some(TreeEffect::Search { tree: tree.clone(), query: self.query.clone(), from: 0 })
    }

    /// Takes over the results for the entries of `searched` from the number `from` on. Returns whether
    /// they are new.
    pub(super) fn on_found(
        &mut self,
        (searched, tree): (&SessionTree, &SessionTree),
        (query, from): (String, usize),
        entries: Vec<usize>,
    ) -> bool {
        let is_first = from == 0;
        let continues = |found: &Found| is_first || (found.query == self.query && found.n_searched == from);
        if query != self.query || !(is_first || self.found.as_ref().is_some_and(continues)) {
            return false;
        }
        self.is_running = false;
        if Numbering::between(searched, tree) != Numbering::Kept {
            // All entries are searched again.
            return false;
        }
        let mut known =
            self.found.take().filter(|_| !is_first).map(|found| found.entries).unwrap_or_default();
        known.extend(entries);
        self.found = Some(Found { query, entries: known, n_searched: searched.len() });
        true
    }

    /// Follows the entries into another tree.
    pub(super) fn renumber(&mut self, numbering: &Numbering) {
        let Some(found) = self.found.as_mut().filter(|_| *numbering != Numbering::Kept) else { return };
        found.entries = found.entries.iter().filter_map(|entry| numbering.of(*entry)).collect();
        found.n_searched = 0;
    }

    /// Searches what was added to the tree, unless a search is under way, after which this is asked again.
    pub(super) fn resume(&mut self, tree: &SessionTree) -> Option<TreeEffect> {
        if self.is_empty() || self.is_running {
            return None;
        }
        let n_searched = self.found.as_ref().filter(|found| found.query == self.query);
        let from = n_searched.map_or(0, |found| found.n_searched);
        if from == tree.len() {
            return None;
        }
        self.is_running = true;
        Some(TreeEffect::Search { tree: tree.clone(), query: self.query.clone(), from })
    }
}
