//! The tree as rows: which entries are visible, how they are indented, what is folded.
//! Pure, and linear in the number of entries; drawing looks at visible rows only.

use std::collections::HashSet;

use crate::config::TreeFilter as Filter;
use crate::session::{EntryKind, SessionTree, TreeEntry};

const NONE: u32 = u32::MAX;

/// The order of all entries, which only a new tree changes: each before those that follow
/// it, the active branch before its siblings, those by time.
#[derive(Debug)]
pub(super) struct Shape {
    order: Vec<u32>,
    is_active: Vec<bool>,
    current: Option<usize>,
}

/// One visible entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OutlineRow {
    pub(super) entry: usize,
    /// Row of the visible entry it follows.
    parent: u32,
    /// Row that begins the branch it is on.
    head: u32,
    pub(super) connector: Connector,
    /// How many branches lead to it.
    pub(super) level: u32,
    pub(super) fold: Fold,
}

/// How a row hangs on its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Connector {
    /// It goes on where its parent ends.
    None,
    /// One of several, and not the last.
    Middle,
    Last,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fold {
    /// It begins no branch, or nothing follows it.
    None,
    Open,
    Closed,
}

/// The visible entries, top to bottom.
#[derive(Debug, Default)]
pub(super) struct Outline {
    rows: Vec<OutlineRow>,
}

impl Shape {
    pub(super) fn new(tree: &SessionTree) -> Self {
        let n_entries = tree.len();
        let path = tree.path(tree.leaf());
        let mut is_active = vec![false; n_entries];
        for idx in &path {
            is_active[*idx] = true;
        }
        let current = path.iter().copied().rfind(|idx| !is_unseen(tree.entry(*idx).kind));
        let mut others: Vec<usize> = (0..n_entries).filter(|idx| !is_active[*idx]).collect();
        let at_ms = |idx: &usize| tree.entry(*idx).at_ms;
        // As they were written, unless a clock ran backwards.
        if !others.is_sorted_by_key(at_ms) {
            others.sort_by_key(at_ms);
        }
        // Siblings as a list: the one that is added last is its first, and visited first below.
        let (mut first, mut next) = (vec![NONE; n_entries], vec![NONE; n_entries]);
        let mut first_root = NONE;
        for idx in others.into_iter().rev().chain(path) {
            let slot = match tree.entry(idx).parent {
                Some(parent) => &mut first[parent],
                None => &mut first_root,
            };
            next[idx] = std::mem::replace(slot, u32::try_from(idx).unwrap_or(NONE));
        }
        let mut order = Vec::with_capacity(n_entries);
        let mut open = vec![first_root];
        while let Some(at) = open.pop() {
            if at == NONE {
                continue;
            }
            order.push(at);
            open.push(next[at as usize]);
            open.push(first[at as usize]);
        }
        Self { order, is_active, current }
    }

    /// The entry after which the session continues: the leaf, or the one before the labels at the end.
    pub(super) fn current(&self) -> Option<usize> {
        self.current
    }

    /// Whether an entry is on the active branch.
    pub(super) fn is_active(&self, entry: usize) -> bool {
        self.is_active.get(entry).copied().unwrap_or_default()
    }
}

/// Whether entries of a kind are about others, so that moving to one moves nowhere.
pub(super) fn is_unseen(kind: EntryKind) -> bool {
    matches!(kind, EntryKind::Label | EntryKind::Usage)
}

impl Filter {
    const ALL: [(Self, &'static str); 5] = [
        (Self::Default, "default"),
        (Self::NoTools, "no-tools"),
        (Self::UserOnly, "user-only"),
        (Self::LabeledOnly, "labeled-only"),
        (Self::All, "all"),
    ];

    pub(super) fn name(self) -> &'static str {
        Self::ALL.into_iter().find(|(filter, _)| *filter == self).map_or("", |(_, name)| name)
    }

    pub(super) fn cycled(self, forward: bool) -> Self {
        let at = Self::ALL.iter().position(|(filter, _)| *filter == self).unwrap_or_default();
        let n = Self::ALL.len();
        Self::ALL[(at + if forward { 1 } else { n - 1 }) % n].0
    }

    /// Whether an entry with this head is shown, unless it is the current one, which always is. Answers
    /// that only call tools are not: their results say what was called.
    fn shows(self, head: &TreeEntry<'_>, is_labelled: bool) -> bool {
        if head.kind == EntryKind::Usage || head.is_silent {
            return false;
        }
        let is_bookkeeping = matches!(
            head.kind,
            EntryKind::System
                | EntryKind::Label
                | EntryKind::ContextEdit
                | EntryKind::Custom
                | EntryKind::ModelChange
                | EntryKind::ThinkingLevelChange
                | EntryKind::SessionInfo
        );
        match self {
            Self::Default => !is_bookkeeping,
            Self::NoTools => !is_bookkeeping && head.kind != EntryKind::ToolResult,
            Self::UserOnly => head.kind == EntryKind::User,
            Self::LabeledOnly => is_labelled,
            Self::All => true,
        }
    }
}

/// What decides which entries are visible.
pub(super) struct View<'a> {
    pub(super) filter: Filter,
    pub(super) is_labelled: &'a dyn Fn(usize) -> bool,
    /// Entries that a search found; `None` without one. Folds do not count then.
    pub(super) found: Option<&'a HashSet<usize>>,
    /// Entries whose followers are hidden.
    pub(super) folded: &'a HashSet<usize>,
}

impl Outline {
    pub(super) fn new(tree: &SessionTree, shape: &Shape, view: &View<'_>) -> Self {
        let n_entries = tree.len();
        let is_visible = |entry: usize| {
            let is_shown = shape.current == Some(entry)
                || view.filter.shows(&tree.entry(entry), (view.is_labelled)(entry));
            is_shown && view.found.is_none_or(|found| found.contains(&entry))
        };
        // The nearest visible entry above each, itself excluded; and of each the number of
        // visible ones it is that for, with those without any in the last place.
        let mut above = vec![NONE; n_entries];
        let mut n_children = vec![0_u32; n_entries + 1];
        let mut visible = vec![false; n_entries];
        let slot = |parent: u32| if parent == NONE { n_entries } else { parent as usize };
        for entry in shape.order.iter().map(|entry| *entry as usize) {
            if let Some(parent) = tree.entry(entry).parent {
                above[entry] =
                    if visible[parent] { u32::try_from(parent).unwrap_or(NONE) } else { above[parent] };
            }
            visible[entry] = is_visible(entry);
            if visible[entry] {
                n_children[slot(above[entry])] += 1;
            }
        }
        let mut n_shown = vec![0_u32; n_entries + 1];
        // The row of each entry; none for those that are not shown.
        let mut row_of = vec![NONE; n_entries];
        let n_visible = visible.iter().filter(|is_visible| **is_visible).count();
        let mut rows: Vec<OutlineRow> = Vec::with_capacity(n_visible);
        for entry in shape.order.iter().map(|entry| *entry as usize).filter(|entry| visible[*entry]) {
            let parent = if above[entry] == NONE { NONE } else { row_of[above[entry] as usize] };
            if above[entry] != NONE {
                // Above it something is folded.
                let is_hidden = parent == NONE || rows[parent as usize].fold == Fold::Closed;
                if is_hidden {
                    continue;
                }
            }
            let (n_siblings, nth) = (n_children[slot(above[entry])], &mut n_shown[slot(above[entry])]);
            *nth += 1;
            let connector = match (n_siblings, *nth) {
                (1, _) => Connector::None,
                (n, nth) if nth == n => Connector::Last,
                _ => Connector::Middle,
            };
            let at = u32::try_from(rows.len()).unwrap_or(NONE);
            let begins = parent == NONE || connector != Connector::None;
            let above = rows.get(parent as usize);
            let head = if begins { at } else { above.map_or(at, |above| above.head) };
            let level = above.map_or(0, |above| above.level) + u32::from(connector != Connector::None);
            let fold = match (begins && n_children[entry] > 0, view.folded.contains(&entry)) {
                (false, _) => Fold::None,
                (true, true) if view.found.is_none() => Fold::Closed,
                (true, _) => Fold::Open,
            };
            row_of[entry] = at;
            rows.push(OutlineRow { entry, parent, head, connector, level, fold });
        }
        Self { rows }
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn row(&self, at: usize) -> Option<&OutlineRow> {
        self.rows.get(at)
    }

    /// The row of `entry`, or of the nearest entry above it that is visible; the last row
    /// if there is none.
    pub(super) fn place(&self, tree: &SessionTree, entry: Option<usize>) -> usize {
        let last = self.rows.len().saturating_sub(1);
        let mut rows: Vec<u32> = vec![NONE; tree.len()];
        for (at, row) in self.rows.iter().enumerate() {
            rows[row.entry] = u32::try_from(at).unwrap_or(NONE);
        }
        let mut way = std::iter::successors(entry, |idx| tree.entry(*idx).parent);
        way.find_map(|idx| (rows[idx] != NONE).then(|| rows[idx] as usize)).unwrap_or(last)
    }

    /// The first row whose entry is one of `entries`.
    pub(super) fn first_of(&self, entries: &[usize]) -> Option<usize> {
        let entries: HashSet<usize> = entries.iter().copied().collect();
        self.rows.iter().position(|row| entries.contains(&row.entry))
    }

    /// The connectors of the branches that lead to a row, outermost first, without the
    /// first `skip` of them.
    pub(super) fn gutter(&self, at: usize, skip: u32) -> Vec<Connector> {
        let mut gutter = Vec::new();
        let mut head = self.rows.get(at).map(|row| row.head);
        while let Some(row) = head.and_then(|head| self.rows.get(head as usize)) {
            if row.level <= skip {
                break;
            }
            if row.connector != Connector::None {
                gutter.push(row.connector);
            }
            head = self.rows.get(row.parent as usize).map(|parent| parent.head);
        }
        gutter.reverse();
        gutter
    }

    /// The row that begins the branch of `at`; of such a row the one its parent is on.
    pub(super) fn branch_start(&self, at: usize) -> usize {
        let Some(row) = self.rows.get(at) else { return at };
        if row.head as usize != at {
            return row.head as usize;
        }
        self.rows.get(row.parent as usize).map_or(at, |parent| parent.head as usize)
    }

    /// The next row below `at` on the same branch that others branch off from, or the last
    /// one of the branch; of such a row the first one that branches off.
    pub(super) fn branch_end(&self, at: usize) -> usize {
        let Some(row) = self.rows.get(at) else { return at };
        let goes_on = |to: usize| {
            self.rows.get(to).is_some_and(|next| next.head == row.head && next.parent as usize + 1 == to)
        };
        let mut end = at;
        while goes_on(end + 1) {
            end += 1;
        }
        let leads_on = |to: usize| self.rows.get(to).is_some_and(|next| next.parent as usize + 1 == to);
        if end == at && leads_on(at + 1) { at + 1 } else { end }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::{tree_of, user};
    use super::*;

    /// Rows as text: connectors, fold and id.
    fn shown(tree: &SessionTree, filter: Filter, folded: &[usize], found: Option<&[usize]>) -> Vec<String> {
        let folded = folded.iter().copied().collect();
        let found: Option<HashSet<usize>> = found.map(|found| found.iter().copied().collect());
        let view = View { filter, is_labelled: &|_| false, found: found.as_ref(), folded: &folded };
        let outline = Outline::new(tree, &Shape::new(tree), &view);
        let row = |at: usize| {
            let row = outline.row(at).unwrap();
            let gutter: String = outline
                .gutter(at, 0)
                .iter()
                .map(|connector| match connector {
                    Connector::None => '?',
                    Connector::Middle => '|',
                    Connector::Last => '`',
                })
                .collect();
            assert_eq!(gutter.len(), row.level as usize);
            let fold = match row.fold {
                Fold::None => "",
                Fold::Open => "-",
                Fold::Closed => "+",
            };
            format!("{gutter}{fold}{}", tree.entry(row.entry).id)
        };
        (0..outline.len()).map(row).collect()
    }

    /// `a` with two ways on: `b c` and `d`, of which `d` ends the session.
    fn forked() -> SessionTree {
        tree_of(&[user("a", None), user("b", Some("a")), user("c", Some("b")), user("d", Some("a"))])
    }

    #[test]
    fn the_active_branch_comes_first_and_connectors_stand_where_branches_are() {
        assert_eq!(shown(&forked(), Filter::Default, &[], None), ["-a", "|d", "`-b", "`c"]);
        let line = tree_of(&[user("a", None), user("b", Some("a"))]);
        assert_eq!(shown(&line, Filter::Default, &[], None), ["-a", "b"]);
        let roots = tree_of(&[user("a", None), user("b", None), user("c", Some("b"))]);
        assert_eq!(shown(&roots, Filter::Default, &[], None), ["|-b", "|c", "`a"]);
    }

    #[test]
    fn what_is_folded_or_not_found_is_hidden_and_its_followers_hang_on_what_is_visible() {
        let tree = forked();
        assert_eq!(shown(&tree, Filter::Default, &[1], None), ["-a", "|d", "`+b"]);
        assert_eq!(shown(&tree, Filter::Default, &[0], None), ["+a"]);
        assert_eq!(shown(&tree, Filter::Default, &[0], Some(&[0, 2, 3])), ["-a", "|d", "`c"]);
        assert_eq!(shown(&tree, Filter::Default, &[], Some(&[2])), ["c"]);
    }

    #[test]
    fn current_entry_is_shown_by_every_filter() {
        let change = |id: &str, parent: &str| {
            user(id, Some(parent))
                .replace(r#""type":"message""#, r#""type":"model_change","provider":"p","modelId":"m""#)
        };
        let label = r#"{"type":"label","id":"l","parentId":"e","timestamp":"","targetId":"b","label":"x"}"#;
        let tree = tree_of(&[
            user("a", None),
            change("b", "a"),
            user("c", Some("b")),
            change("d", "c"),
            change("e", "d"),
            label.to_owned(),
        ]);
        assert_eq!(shown(&tree, Filter::Default, &[], None), ["-a", "c", "e"]);
        assert_eq!(shown(&tree, Filter::NoTools, &[], None), ["-a", "c", "e"]);
        assert_eq!(shown(&tree, Filter::UserOnly, &[], None), ["-a", "c", "e"]);
        assert_eq!(shown(&tree, Filter::LabeledOnly, &[], None), ["e"]);
        assert_eq!(shown(&tree, Filter::All, &[], None), ["-a", "b", "c", "d", "e", "l"]);
        // A search shows only what it found.
        assert_eq!(shown(&tree, Filter::Default, &[], Some(&[0])), ["a"]);
    }

    #[test]
    fn branches_are_jumped_along() {
        let tree = forked();
        let view =
            View { filter: Filter::All, is_labelled: &|_| false, found: None, folded: &HashSet::new() };
        let outline = Outline::new(&tree, &Shape::new(&tree), &view);
        // Rows: a d b c.
        assert_eq!([0, 1, 2, 3].map(|at| outline.branch_start(at)), [0, 0, 0, 2]);
        assert_eq!([0, 1, 2, 3].map(|at| outline.branch_end(at)), [1, 1, 3, 3]);
    }

    proptest! {
        /// The plain model: every visible entry once, below the nearest visible one above it.
        #[test]
        fn every_visible_entry_is_shown_once_below_its_nearest_visible_ancestor(
            parents in prop::collection::vec(prop::option::weighted(0.9, any::<prop::sample::Index>()), 1..30),
            found in prop::collection::hash_set(0_usize..30, 0..30),
        ) {
            let nodes: Vec<_> = parents
                .iter()
                .enumerate()
                .map(|(at, parent)| {
                    let parent = parent.as_ref().filter(|_| at > 0).map(|index| index.index(at).to_string());
                    user(&at.to_string(), parent.as_deref())
                })
                .collect();
            let tree = tree_of(&nodes);
            let view = View { filter: Filter::All, is_labelled: &|_| false, found: Some(&found), folded: &HashSet::new() };
            let outline = Outline::new(&tree, &Shape::new(&tree), &view);
            let mut shown: Vec<usize> = (0..outline.len()).map(|at| outline.row(at).unwrap().entry).collect();
            for at in 0..outline.len() {
                let row = outline.row(at).unwrap();
                let mut way = std::iter::successors(tree.entry(row.entry).parent, |idx| tree.entry(*idx).parent);
                let above = way.find(|idx| found.contains(idx));
                prop_assert_eq!(outline.row(row.parent as usize).map(|parent| parent.entry), above);
                prop_assert!(row.parent == NONE || (row.parent as usize) < at);
                prop_assert_eq!(outline.gutter(at, 0).len(), row.level as usize);
            }
            shown.sort_unstable();
            let mut expected: Vec<usize> = found.iter().copied().filter(|idx| *idx < nodes.len()).collect();
            expected.sort_unstable();
            prop_assert_eq!(shown, expected);
        }
    }
}
