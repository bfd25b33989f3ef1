//! Where the entries of a tree are in a later one.

use std::collections::HashMap;

use crate::session::{EntryId, SessionTree};

/// The numbers of a tree's entries in a later tree of the session.
#[derive(Debug, PartialEq)]
pub(super) enum Numbering {
    /// They are the same: entries were only added.
    Kept,
    /// By the numbers in the earlier tree; `None` for an entry that the later one lacks. A session
    /// that was opened again may come from a file that something else has changed.
    Changed(Vec<Option<usize>>),
}

impl Numbering {
    /// Looks at every entry, unless both are the same tree.
    pub(super) fn between(earlier: &SessionTree, later: &SessionTree) -> Self {
        let is_same_id = |(before, after): (usize, usize)| earlier.entry(before).id == later.entry(after).id;
        let is_kept = earlier == later
            || (earlier.len() <= later.len() && (0..earlier.len()).all(|idx| is_same_id((idx, idx))));
        if is_kept {
            return Self::Kept;
        }
        let by_id: HashMap<&EntryId, usize> =
            later.entries().enumerate().map(|(idx, entry)| (entry.id, idx)).collect();
        Self::Changed(earlier.entries().map(|entry| by_id.get(entry.id).copied()).collect())
    }

    /// The number of an entry in the later tree.
    pub(super) fn of(&self, entry: usize) -> Option<usize> {
        match self {
            Self::Kept => Some(entry),
            Self::Changed(numbers) => numbers.get(entry).copied().flatten(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::{tree_of, user};
    use super::*;

    fn tree(ids: &[String]) -> SessionTree {
        tree_of(&ids.iter().map(|id| user(id, None)).collect::<Vec<_>>())
    }

    #[track_caller]
    fn check(earlier: &str, later: &str, expected: Numbering) {
        let ids = |ids: &str| ids.chars().map(String::from).collect::<Vec<_>>();
        assert_eq!(Numbering::between(&tree(&ids(earlier)), &tree(&ids(later))), expected);
    }

    #[test]
    fn numbers_change_only_where_more_than_additions_happened() {
        check("", "ab", Numbering::Kept);
        check("ab", "abc", Numbering::Kept);
        check("abc", "ab", Numbering::Changed(vec![Some(0), Some(1), None]));
        check("abc", "xbac", Numbering::Changed(vec![Some(2), Some(1), Some(3)]));
        check("ab", "ca", Numbering::Changed(vec![Some(1), None]));
    }

    proptest! {
        #[test]
        fn entry_has_its_id_in_the_later_tree_or_is_not_in_it(
            earlier in Just("abcde".chars().map(String::from).collect::<Vec<_>>()).prop_shuffle(),
            later in prop::sample::subsequence("abcdefg".chars().map(String::from).collect::<Vec<_>>(), 0..7).prop_shuffle(),
            n_earlier in 0_usize..6,
            is_longer in any::<bool>(),
        ) {
            let earlier = &earlier[..n_earlier];
            let others: Vec<String> = later.iter().filter(|id| !earlier.contains(id)).cloned().collect();
            let later = if is_longer { [earlier.to_vec(), others].concat() } else { later };
            let numbering = Numbering::between(&tree(earlier), &tree(&later));
            if is_longer {
                prop_assert_eq!(&numbering, &Numbering::Kept);
            }
            for (idx, id) in earlier.iter().enumerate() {
                match numbering.of(idx) {
                    Some(number) => prop_assert_eq!(&later[number], id),
                    None => prop_assert!(!later.contains(id)),
                }
            }
        }
    }
}
