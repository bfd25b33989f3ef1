//! Notices of the program, which no file has: they stay when their cells leave memory, and are
//! shown again between the entries that are read from the file.

use std::collections::VecDeque;

use crate::session::{Entry, EntryKind, NoticeLevel};

use super::cell_list::CellList;
use super::cells::{Cell, NoticeCell};
use super::notices;

/// Bytes of all remarks; beyond that the oldest are dropped, and a line takes their place.
const MAX_BYTES: usize = 1 << 20;

/// A place between entries: after this many prompts and answers, and after this many other
/// entries with a cell since the last of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) struct EntryPlace {
    n_messages: isize,
    n_others: usize,
}

impl EntryPlace {
    /// The place behind entries of these kinds, which are the first ones.
    pub(in super::super) fn after(kinds: impl Iterator<Item = EntryKind>) -> Self {
        kinds.fold(Self::default(), |place, kind| place.next(kind).unwrap_or(place))
    }

    /// The place behind an entry; `None` if it is the same, because the entry belongs to the
    /// message before it or is not shown.
    pub(in super::super) fn next(self, kind: EntryKind) -> Option<Self> {
        match kind {
            EntryKind::User | EntryKind::Assistant => {
                Some(Self { n_messages: self.n_messages + 1, n_others: 0 })
            }
            EntryKind::Bash | EntryKind::Compaction | EntryKind::BranchSummary | EntryKind::CustomMessage => {
                Some(Self { n_others: self.n_others + 1, ..self })
            }
            _ => None,
        }
    }

    /// The place of the next cell, which follows this many prompts and answers.
    fn of_cell(self, n_messages: usize) -> Self {
        let n_messages = isize::try_from(n_messages).unwrap_or(isize::MAX);
        if self.n_messages == n_messages { self } else { Self { n_messages, n_others: 0 } }
    }

    /// The same place, counted from the messages after `first`.
    #[must_use]
    pub(in super::super) fn since(self, first: Self) -> Self {
        Self { n_messages: self.n_messages - first.n_messages, ..self }
    }
}

/// Remarks in the order in which they were made.
#[derive(Debug, Clone, Default)]
pub(in super::super) struct Remarks {
    kept: VecDeque<(EntryPlace, NoticeCell)>,
    n_bytes: usize,
    n_dropped: usize,
    /// Where the last dropped one was.
    dropped_at: EntryPlace,
}

impl Remarks {
    /// Takes the remarks out of cells that leave memory. Each comes with the number of prompts
    /// and answers before it; the first one begins a message.
    pub(super) fn take<'a>(&mut self, cells: impl Iterator<Item = (usize, &'a mut Cell)>) {
        let mut place = EntryPlace::default();
        for (n_messages, cell) in cells {
            place = place.of_cell(n_messages);
            match std::mem::replace(cell, Cell::Released) {
                Cell::Notice(notice) if !notice.is_of_entry => self.keep(place, notice),
                Cell::Bash(_) | Cell::Summary(_) | Cell::Custom(_) => place.n_others += 1,
                _ => {}
            }
        }
    }

    /// Copies the remarks of cells that stay in memory, which follow those of [`Self::take`].
    pub(super) fn copy<'a>(&mut self, cells: impl Iterator<Item = (usize, &'a Cell)>) {
        let mut place = EntryPlace::default();
        for (n_messages, cell) in cells {
            place = place.of_cell(n_messages);
            match cell {
                Cell::Notice(notice) if !notice.is_of_entry => self.keep(place, notice.clone()),
                Cell::Bash(_) | Cell::Summary(_) | Cell::Custom(_) => place.n_others += 1,
                _ => {}
            }
        }
    }

    fn keep(&mut self, place: EntryPlace, notice: NoticeCell) {
        self.n_bytes += n_bytes(&notice);
        self.kept.push_back((place, notice));
        while self.n_bytes > MAX_BYTES
            && let Some((place, dropped)) = self.kept.pop_front()
        {
            self.n_bytes -= n_bytes(&dropped);
            self.n_dropped += 1;
            self.dropped_at = place;
        }
    }

    /// Where remarks are that contain `query`, regardless of case.
    pub(in super::super) fn containing(&self, query: &str) -> Vec<EntryPlace> {
        let query = query.to_lowercase();
        let contains = |notice: &NoticeCell| notice.text.to_lowercase().contains(&query);
        self.kept.iter().filter(|(_, notice)| contains(notice)).map(|(place, _)| *place).collect()
    }

    /// The remarks from `start` on, to be shown between entries that begin there.
    pub(in super::super) fn from(&self, start: EntryPlace) -> RemarksBetween<'_> {
        let next = self.kept.partition_point(|(place, _)| *place < start);
        RemarksBetween { remarks: self, next, at: start }
    }
}

fn n_bytes(notice: &NoticeCell) -> usize {
    /// What an empty one takes, about.
    const OVERHEAD: usize = 100;
    notice.text.len() + OVERHEAD
}

/// Goes through entries and adds the remarks between them.
pub(in super::super) struct RemarksBetween<'a> {
    remarks: &'a Remarks,
    /// The next one to show.
    next: usize,
    at: EntryPlace,
}

impl RemarksBetween<'_> {
    /// Called before an entry is shown. What stands behind the last entry belongs to those who
    /// show the next one.
    pub(super) fn before(&mut self, entry: &Entry, cells: &mut CellList) {
        let Some(next) = self.at.next(EntryKind::of(&entry.body)) else { return };
        let remarks = self.remarks;
        if remarks.n_dropped > 0 && self.at == remarks.dropped_at {
            let text =
                format!("{} earlier notices of this session are no longer in memory", remarks.n_dropped);
            notices::show((NoticeLevel::Info, &text), true, cells);
        }
        while let Some((_, notice)) = remarks.kept.get(self.next).filter(|(place, _)| *place <= self.at) {
            cells.push(notice.clone());
            self.next += 1;
        }
        self.at = next;
    }

    /// Called after the last entry of the session.
    pub(super) fn rest(&mut self, cells: &mut CellList) {
        for (_, notice) in self.remarks.kept.iter().skip(self.next) {
            cells.push(notice.clone());
        }
        self.next = self.remarks.kept.len();
    }
}

#[cfg(test)]
mod tests {
    use super::super::cells::Tone;
    use super::*;

    #[test]
    fn remarks_take_limited_memory_and_dropped_ones_are_counted() {
        let mut remarks = Remarks::default();
        for n in 0..3_000 {
            let mut cells = [
                Cell::Notice(NoticeCell::new(Tone::Warning, &"x".repeat(1_000))),
                Cell::Released,
                Cell::Notice(NoticeCell::new(Tone::Warning, &format!("notice {n}"))),
            ];
            remarks.take(cells.iter_mut().map(|cell| (n, cell)));
            assert!(cells.iter().all(|cell| matches!(cell, Cell::Released)));
            assert!(remarks.n_bytes <= MAX_BYTES);
        }
        assert_eq!(remarks.kept.len() + remarks.n_dropped, 6_000);
        assert!(remarks.n_dropped > 1_000);
    }

    #[test]
    fn places_count_messages_and_what_stands_between_them() {
        let kinds = [EntryKind::Bash, EntryKind::User, EntryKind::Assistant, EntryKind::ToolResult];
        let after = EntryPlace::after(kinds.into_iter().chain([EntryKind::Compaction]));
        assert_eq!(after, EntryPlace { n_messages: 2, n_others: 1 });
        let first = EntryPlace::after(kinds.into_iter().take(2));
        assert_eq!(after.since(first), EntryPlace { n_messages: 1, n_others: 1 });
        assert!(EntryPlace::default().since(first) < EntryPlace::default());
        assert_eq!(after.next(EntryKind::Usage), None);
    }
}
