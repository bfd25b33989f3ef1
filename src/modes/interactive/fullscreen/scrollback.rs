//! The rows that fullscreen scrolls over: earlier sections of the session, read as they are
//! needed, and the rows of the transcript.
//!
//! Work depends on the rows that are asked for, not on those behind them.

use std::borrow::Cow;
use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::session::{Entry, EntryKind, SessionTree};
use crate::tui::text::Row;

use super::super::sections::{Section, SectionCx, SectionList};
use super::super::transcript::{EntryPlace, Hidden, RowPlace, Transcript, ViewSettings};

/// The part of a [`Spot`] in the transcript; all smaller numbers are earlier sections.
pub(super) const RECENT: usize = usize::MAX;

/// Rows of an entry that is not read, about.
const ROWS_PER_ENTRY: usize = 8;

/// A row: its part, and its index there. Ordered as on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Spot {
    pub(super) part: usize,
    pub(super) row: usize,
}

/// The entries before those of the transcript.
#[derive(Default)]
pub(super) struct Earlier {
    pub(super) list: SectionList,
    /// Whether the tree was asked for.
    pub(super) is_asked: bool,
    view: Option<ViewSettings>,
    /// Where the entries begin that the transcript has or had.
    recent_start: EntryPlace,
}

impl Earlier {
    /// Takes the entries before those of `transcript` out of `tree`, of which the first
    /// `n_released` prompts and answers are left out too. Returns whether the tree has them all;
    /// otherwise nothing changes.
    pub(super) fn on_tree(&mut self, tree: SessionTree, transcript: &Transcript, n_released: usize) -> bool {
        let mut path = tree.path(tree.leaf());
        let kind = |position: usize| tree.entry(path[position]).kind;
        let is_message = |position: &usize| matches!(kind(*position), EntryKind::User | EntryKind::Assistant);
        let is_first = |idx: &usize| transcript.first_entry() == Some(tree.entry(*idx).id);
        let first = path.iter().position(is_first).unwrap_or(0);
        let recent_start = EntryPlace::after((0..first).map(kind));
        let end = match n_released {
            0 => Some(first),
            n => (first..path.len()).filter(is_message).nth(n - 1),
        };
        let Some(end) = end else { return false };
        let end = match n_released {
            0 => end,
            _ => {
                // The results of its calls belong to a message; all else that follows it is in the
                // transcript.
                let Some(next) = (end + 1..path.len()).find(is_message) else { return false };
                let is_result = |position: &usize| kind(*position) == EntryKind::ToolResult;
                (end + 1..next).rev().find(is_result).unwrap_or(end) + 1
            }
        };
        path.truncate(end);
        (self.is_asked, self.recent_start) = (true, recent_start);
        self.list.continue_to(tree, path);
        true
    }

    /// Shows entries that were read.
    pub(super) fn on_read(
        &mut self,
        tree: &SessionTree,
        sections: Vec<(usize, Vec<Arc<Entry>>)>,
        transcript: &Transcript,
    ) {
        if !self.list.is_of(tree) {
            return;
        }
        for (index, entries) in sections {
            if let Some(section) = self.list.on_read(index) {
                section.show_part(entries, transcript, self.recent_start);
            }
        }
    }

    /// The section in which a remark of the transcript is shown.
    pub(super) fn part_at(&self, place: EntryPlace) -> Option<usize> {
        let is_before = |section: &Section| section.start.since(self.recent_start) <= place;
        self.list.sections.partition_point(is_before).checked_sub(1)
    }

    /// Where a row is, if it belongs to a section that is read.
    pub(super) fn place(&self, spot: Spot) -> Option<RowPlace> {
        self.list.sections.get(spot.part)?.place(spot.row)
    }

    /// Shows all sections like the transcript. Returns whether that changes them.
    pub(super) fn follow_view(&mut self, view: &ViewSettings) -> bool {
        let is_changed = self.view.as_ref() != Some(view);
        if is_changed {
            for section in &mut self.list.sections {
                section.set_view(view);
            }
            self.view = Some(view.clone());
        }
        is_changed
    }

    /// Asks for sections around `at` and releases those far from it that are not in `kept`.
    pub(super) fn follow(&mut self, at: usize, kept: &RangeInclusive<usize>) {
        self.list.follow(at..at, |index| kept.contains(&index));
    }
}

/// All rows, during one frame or one input.
pub(super) struct Scrollback<'a> {
    pub(super) earlier: &'a mut Earlier,
    pub(super) transcript: &'a Transcript,
    pub(super) cx: SectionCx<'a>,
}

impl Scrollback<'_> {
    /// The first row of the transcript that is shown: the header only if nothing comes before.
    pub(super) fn recent_start(&self) -> usize {
        let is_begun = self.is_whole() && self.parts() == 0;
        if is_begun && !self.transcript.hides_cells() { 0 } else { self.transcript.body() }
    }

    /// Whether the first row of the session is known.
    pub(super) fn is_whole(&self) -> bool {
        !self.transcript.has_earlier() || self.earlier.list.tree.is_some()
    }

    fn parts(&self) -> usize {
        self.earlier.list.sections.len()
    }

    pub(super) fn is_read(&self, part: usize) -> bool {
        part == RECENT || self.earlier.list.sections.get(part).is_some_and(Section::is_read)
    }

    /// What hides a text of an earlier section that contains `query` and is not shown.
    pub(super) fn find_hidden(&mut self, part: usize, query: &str) -> Option<Hidden> {
        self.earlier.list.sections.get_mut(part)?.find_hidden(query, self.cx)
    }

    pub(super) fn first(&self) -> Spot {
        if self.parts() > 0 {
            Spot { part: 0, row: 0 }
        } else {
            Spot { part: RECENT, row: self.recent_start() }
        }
    }

    pub(super) fn last(&self) -> Spot {
        Spot { part: RECENT, row: self.transcript.len().saturating_sub(1).max(self.recent_start()) }
    }

    /// The rows of a part: the first one, and the one after the last.
    fn rows_of(&mut self, part: usize) -> (usize, usize) {
        match self.earlier.list.sections.get_mut(part) {
            Some(section) => (0, section.layout(self.cx).max(1)),
            None => (self.recent_start(), self.transcript.len()),
        }
    }

    /// The first and the last row of a part; `None` if it has none.
    pub(super) fn bounds(&mut self, part: usize) -> Option<(Spot, Spot)> {
        let (start, end) = self.rows_of(part);
        (start < end).then(|| (Spot { part, row: start }, Spot { part, row: end - 1 }))
    }

    fn part_before(&self, part: usize) -> Option<usize> {
        part.min(self.parts()).checked_sub(1)
    }

    fn part_after(&self, part: usize) -> Option<usize> {
        match part {
            RECENT => None,
            part if part + 1 < self.parts() => Some(part + 1),
            _ => Some(RECENT),
        }
    }

    /// The spot `count` rows above, and how many rows there were. Stops at the first row, and at
    /// a section that is not read.
    pub(super) fn up(&mut self, from: Spot, count: usize) -> (Spot, usize) {
        let (mut spot, mut left) = (from, count);
        loop {
            let (start, _) = self.rows_of(spot.part);
            let above = spot.row.saturating_sub(start);
            if left <= above {
                spot.row -= left;
                return (spot, count);
            }
            left -= above;
            spot.row = start;
            let Some(part) = self.part_before(spot.part) else { return (spot, count - left) };
            let (_, end) = self.rows_of(part);
            spot = Spot { part, row: end - 1 };
            left -= 1;
            if !self.is_read(part) {
                return (spot, count - left);
            }
        }
    }

    /// The spot `count` rows below, and how many rows there were; at most the last row.
    pub(super) fn down(&mut self, from: Spot, count: usize) -> (Spot, usize) {
        let (mut spot, mut left) = (from, count);
        loop {
            let (_, end) = self.rows_of(spot.part);
            let below = end.saturating_sub(spot.row + 1);
            if left <= below {
                spot.row += left;
                return (spot, count);
            }
            let Some(part) = self.part_after(spot.part) else {
                spot.row += below;
                return (spot, count - (left - below));
            };
            left -= below + 1;
            let (start, end) = self.rows_of(part);
            spot = Spot { part, row: start };
            if start >= end {
                // An empty transcript has no row to stand on.
                return (spot, count - left);
            }
        }
    }

    /// A row within the document as it is now.
    pub(super) fn clamp(&mut self, spot: Spot) -> Spot {
        let part = if spot.part < self.parts() { spot.part } else { RECENT };
        let (start, end) = self.rows_of(part);
        let row = if part == spot.part { spot.row } else { start };
        Spot { part, row: row.clamp(start, end.saturating_sub(1).max(start)) }
    }

    pub(super) fn row(&mut self, spot: Spot) -> Cow<'_, Row> {
        match self.earlier.list.sections.get_mut(spot.part) {
            Some(section) => {
                section.layout(self.cx);
                section.row(spot.row)
            }
            None => self.transcript.row(spot.row),
        }
    }

    /// The Markdown text that a row shows a part of, and its number among those of its part.
    pub(super) fn markdown(&self, spot: Spot) -> Option<(usize, &str)> {
        match self.earlier.list.sections.get(spot.part) {
            Some(section) => section.markdown(spot.row),
            None => self.transcript.markdown(spot.row),
        }
    }

    /// The rows from `from` to `to`, at most `limit` of them.
    pub(super) fn spots(&mut self, from: Spot, to: Spot, limit: usize) -> Vec<Spot> {
        let mut spots = Vec::new();
        let mut at = from;
        while at <= to && spots.len() < limit {
            spots.push(at);
            let (next, moved) = self.down(at, 1);
            if moved == 0 {
                break;
            }
            at = next;
        }
        spots
    }

    /// The first row of the prompt before or after `from`.
    pub(super) fn prompt(&mut self, from: Spot, forward: bool) -> Option<Spot> {
        let sections = &self.earlier.list.sections;
        let is_prompt = |index: &usize| sections.get(*index).is_some_and(|section| section.is_prompt);
        let section_spot = |part: usize| Spot { part, row: 0 };
        let recent = |row: Option<usize>| row.map(|row| Spot { part: RECENT, row });
        if forward {
            if from.part == RECENT {
                return recent(self.transcript.prompt_after(from.row));
            }
            let next = (from.part + 1..sections.len()).find(is_prompt).map(section_spot);
            let start = self.recent_start();
            let first = || self.transcript.prompt_after(start.saturating_sub(1));
            return next.or_else(|| recent(first()));
        }
        let in_recent = (from.part == RECENT).then(|| self.transcript.prompt_before(from.row)).flatten();
        let start = self.recent_start();
        let before = match from.part {
            RECENT => sections.len(),
            part if from.row > 0 => part + 1,
            part => part,
        };
        recent(in_recent.filter(|row| *row >= start))
            .or_else(|| (0..before).rev().find(is_prompt).map(section_spot))
    }

    /// The part that has the row with about `above` rows above it, as [`Self::position`] has it.
    pub(super) fn first_part_at(&self, above: usize) -> usize {
        let entry = above / ROWS_PER_ENTRY;
        let part = self.earlier.list.sections.partition_point(|section| section.entries.end <= entry);
        if part < self.parts() { part } else { RECENT }
    }

    pub(super) fn recent_first(&self) -> Spot {
        Spot { part: RECENT, row: self.recent_start() }
    }

    /// Where `spot` is in the document: estimated rows above it, and of all. Sections that are
    /// not read are estimated, so that this takes no work.
    pub(super) fn position(&self, spot: Spot) -> (usize, usize) {
        let n_entries = self.earlier.list.path.len();
        let earlier = n_entries * ROWS_PER_ENTRY;
        let total = earlier + self.transcript.len();
        match self.earlier.list.sections.get(spot.part) {
            Some(section) => {
                let limit = section.entries.len() * ROWS_PER_ENTRY;
                (section.entries.start * ROWS_PER_ENTRY + spot.row.min(limit), total)
            }
            None => (earlier + spot.row, total),
        }
    }
}
