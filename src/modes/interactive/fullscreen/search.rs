//! Searching in fullscreen.
//!
//! Text is found as it was before it was wrapped, regardless of case. Rows in memory are
//! searched as the query is typed; earlier entries in the session's file when the user goes on
//! to the next match.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::tui::widgets::Field;

use super::super::transcript::Hidden;
use super::recent_matches::RecentMatches;
use super::scrollback::{RECENT, Scrollback, Spot};
use super::selection::{Extent, Point, line_end, line_start};

/// The open search.
#[derive(Default)]
pub(super) struct Search {
    pub(super) field: Field,
    /// The query in lower case.
    pub(super) query: Vec<char>,
    /// The match that was gone to.
    pub(super) current: Option<Extent>,
    /// Where to look for the first match.
    pub(super) origin: Option<Spot>,
    /// Sections whose entries contain the query, and may show it; `None` while that is not known.
    pub(super) sections: Option<Vec<usize>>,
    /// Whether those were asked for.
    pub(super) is_asked: bool,
    /// The step that waits for something to be read.
    pub(super) waiting: Option<Step>,
    pub(super) note: Option<Note>,
    /// What hides the query in an earlier section that does not show it.
    pub(super) hidden: Option<Hidden>,
    /// The matches that are known; `None` while there are none.
    pub(super) count: Option<Count>,
    /// Where the current match is among those of its part, if that is an earlier section.
    pub(super) place: Option<usize>,
    /// Matches in the earlier sections that were counted. A section may leave memory, so they are
    /// counted when a match in it is shown.
    pub(super) counted: BTreeMap<usize, usize>,
    /// The matches in the rows of the transcript in memory.
    pub(super) recent: RecentMatches,
}

/// The place of the current match among all, from the first row on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Count {
    /// From 1 on; `None` if no match was gone to.
    pub(super) nth: Option<usize>,
    pub(super) of: usize,
    /// Whether there may be more of them above the rows that were counted.
    pub(super) is_least: bool,
}

/// Why there is no match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Note {
    /// Not in memory; earlier entries were not searched.
    NotHere,
    NotFound,
    /// It is only in text that is not shown.
    Hidden(Hidden),
}

/// A step to another match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) forward: bool,
    /// Whether earlier entries are searched too.
    pub(super) is_deep: bool,
}

/// What a step led to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Sought {
    Found(Extent),
    /// The tree of the session, or the sections that contain the query, must be known first.
    NeedsEarlier,
    /// This section must be read first.
    NeedsSection(usize),
    Nothing,
}

impl Search {
    /// Follows a change of the query.
    pub(super) fn on_typed(&mut self) {
        self.query = self.field.text().chars().flat_map(char::to_lowercase).collect();
        self.note = None;
        self.forget_current();
        self.forget_sections();
        self.waiting = (!self.query.is_empty()).then_some(Step { forward: true, is_deep: false });
    }

    /// Forgets what is known about earlier entries.
    pub(super) fn forget_sections(&mut self) {
        (self.sections, self.is_asked, self.hidden) = (None, false, None);
        self.counted.clear();
    }

    /// Called when more or less of the same text is shown than before.
    pub(super) fn on_view_changed(&mut self) {
        self.forget_sections();
        if let Some(Note::Hidden(_)) = self.note {
            self.note = None;
            self.waiting = Some(Step { forward: true, is_deep: true });
        }
    }

    /// Forgets the current match, because rows are others.
    pub(super) fn forget_current(&mut self) {
        (self.current, self.place, self.count) = (None, None, None);
        self.forget_recent();
    }

    /// Forgets the matches in the transcript, because its rows have other indices.
    pub(super) fn forget_recent(&mut self) {
        self.recent = RecentMatches::default();
    }

    /// Goes to a match.
    pub(super) fn go_to(&mut self, found: Extent, rows: &mut Scrollback<'_>) {
        self.current = Some(found);
        self.note = None;
        self.count_part_of(found, rows);
    }

    /// Counts the matches of the earlier section of `found`, if it has one.
    fn count_part_of(&mut self, found: Extent, rows: &mut Scrollback<'_>) {
        let part = found.from.spot.part;
        if part != RECENT {
            let matches = self.matches_in(part, rows);
            self.counted.insert(part, matches.len());
            self.place = matches.iter().position(|other| *other == found);
        }
    }

    /// Counts the matches that are known, and reads only those rows of the transcript for it that
    /// have changed since the last time.
    pub(super) fn recount(&mut self, rows: &mut Scrollback<'_>) {
        if self.query.is_empty() || self.waiting.is_some() {
            return;
        }
        self.recent.update(&self.query, rows);
        if !self.recent.found().is_empty() {
            // They may have arrived since it was shown.
            self.note = None;
        }
        let here = self.current.and_then(|current| {
            let part = current.from.spot.part;
            if part == RECENT {
                return self.recent.position(current);
            }
            if !self.counted.contains_key(&part) && rows.is_read(part) {
                self.count_part_of(current, rows);
            }
            self.place
        });
        if let (Some(current), None) = (self.current, here) {
            // Its row shows something else now; the next step begins there.
            (self.current, self.origin) = (None, Some(current.from.spot));
        }
        let is_before = |part: usize| self.current.is_some_and(|current| part < current.from.spot.part);
        let before: usize =
            self.counted.iter().filter(|(part, _)| is_before(**part)).map(|(_, n_matches)| n_matches).sum();
        let of = self.counted.values().sum::<usize>() + self.recent.found().len();
        let is_counted = |sections: &Vec<usize>| sections.iter().all(|part| self.counted.contains_key(part));
        let is_least = rows.transcript.hides_cells()
            || rows.transcript.has_earlier() && !self.sections.as_ref().is_some_and(is_counted);
        self.count = (of > 0).then(|| Count { nth: here.map(|here| before + here + 1), of, is_least });
    }

    /// All matches of a part, which is in memory.
    fn matches_in(&self, part: usize, rows: &mut Scrollback<'_>) -> Vec<Extent> {
        let mut found = Vec::new();
        let Some((first, last)) = rows.bounds(part) else { return found };
        let mut at = first;
        loop {
            let line = Line::at(at, rows);
            found.extend(line.matches(&self.query));
            let (next, moved) = rows.down(line.last, 1);
            if moved == 0 || next > last {
                return found;
            }
            at = next;
        }
    }

    /// Looks for the next match in a direction, around the end.
    pub(super) fn seek(&mut self, step: Step, rows: &mut Scrollback<'_>) -> Sought {
        if self.query.is_empty() {
            return Sought::Nothing;
        }
        let first = rows.first();
        let from = match (self.current, self.origin) {
            (Some(current), _) => current.from,
            (None, origin) => Point { spot: origin.unwrap_or(first), column: 0 },
        };
        let is_first = self.current.is_none();
        if !rows.is_read(from.spot.part) {
            return Sought::NeedsSection(from.spot.part);
        }
        if let Some(found) = self.find_in(from.spot.part, Some((from, is_first)), step.forward, rows) {
            return Sought::Found(found);
        }
        let has_earlier = rows.transcript.has_earlier();
        if has_earlier && step.is_deep && self.sections.is_none() {
            return Sought::NeedsEarlier;
        }
        let mut parts: Vec<usize> = self.sections.iter().flatten().copied().chain([RECENT]).collect();
        parts.sort_unstable();
        // All others in their order, around the end, and at last the rest of the first one.
        let split = parts.partition_point(|part| {
            if step.forward { *part <= from.spot.part } else { *part < from.spot.part }
        });
        parts.rotate_left(split);
        if !step.forward {
            parts.reverse();
        }
        if parts.last() != Some(&from.spot.part) {
            parts.push(from.spot.part);
        }
        for part in parts {
            if !rows.is_read(part) {
                return Sought::NeedsSection(part);
            }
            if let Some(found) = self.find_in(part, None, step.forward, rows) {
                return Sought::Found(found);
            }
            // Its entries contain the query where nothing of them is shown. It may leave memory
            // before the search ends.
            if self.hidden.is_none() {
                self.hidden = rows.find_hidden(part, &self.query.iter().collect::<String>());
            }
            if let Some(sections) = &mut self.sections {
                sections.retain(|section| *section != part);
            }
        }
        Sought::Nothing
    }

    /// The first match of a part in a direction, beyond a point if there is one, which may
    /// itself be a match.
    fn find_in(
        &self,
        part: usize,
        beyond: Option<(Point, bool)>,
        forward: bool,
        rows: &mut Scrollback<'_>,
    ) -> Option<Extent> {
        let (first, last) = rows.bounds(part)?;
        let start = match beyond {
            Some((point, _)) if point.spot.part == part => point.spot,
            _ if forward => first,
            _ => last,
        };
        let mut at = line_start(rows, start.clamp(first, last));
        loop {
            let line = Line::at(at, rows);
            let is_beyond = |found: &Extent| match beyond {
                Some((point, true)) if forward => found.from >= point,
                Some((point, _)) if forward => found.from > point,
                Some((point, _)) => found.from < point,
                None => true,
            };
            let mut matches = line.matches(&self.query).into_iter().filter(is_beyond);
            let found = if forward { matches.next() } else { matches.next_back() };
            if found.is_some() {
                return found;
            }
            let (next, moved) = if forward { rows.down(line.last, 1) } else { rows.up(line.first, 1) };
            if moved == 0 || next.part != part {
                return None;
            }
            at = if forward { next } else { line_start(rows, next) };
        }
    }

    /// The matches on these rows, which follow each other.
    pub(super) fn visible(&self, spots: &[Spot], rows: &mut Scrollback<'_>) -> Vec<Extent> {
        let mut found = Vec::new();
        let mut done: Option<Spot> = None;
        for spot in spots {
            if self.query.is_empty() || done.is_some_and(|done| *spot <= done) || !rows.is_read(spot.part) {
                continue;
            }
            let start = line_start(rows, *spot);
            let line = Line::at(start, rows);
            found.extend(line.matches(&self.query));
            done = Some(line.last);
        }
        found
    }
}

/// A line of text before it was wrapped.
pub(super) struct Line {
    first: Spot,
    pub(super) last: Spot,
    /// In lower case, with the cells of each character.
    chars: Vec<(char, Spot, Range<u16>)>,
}

impl Line {
    /// The line that begins on row `first`.
    pub(super) fn at(first: Spot, rows: &mut Scrollback<'_>) -> Self {
        let last = line_end(rows, first);
        let mut chars = Vec::new();
        for spot in rows.spots(first, last, usize::MAX) {
            let row = rows.row(spot);
            if row.is_frame() {
                continue;
            }
            let inside = row.text_columns();
            let mut at = 0_u16;
            for (grapheme, width) in crate::tui::text::graphemes(&row.text()) {
                let end = at.saturating_add(u16::try_from(width).unwrap_or(u16::MAX));
                if at >= inside.start && end <= inside.end {
                    for c in grapheme.chars().flat_map(char::to_lowercase) {
                        chars.push((c, spot, at..end));
                    }
                }
                at = end;
            }
            for c in row.dropped().chars() {
                chars.push((c, spot, at..at));
            }
        }
        Self { first, last, chars }
    }

    pub(super) fn matches(&self, query: &[char]) -> Vec<Extent> {
        let mut found = Vec::new();
        let mut at = 0;
        while at + query.len() <= self.chars.len() {
            let candidate = &self.chars[at..at + query.len()];
            if candidate.iter().map(|(c, ..)| c).eq(query) {
                let (_, first, start) = &candidate[0];
                let (_, last, end) = &candidate[query.len() - 1];
                found.push(Extent {
                    from: Point { spot: *first, column: start.start },
                    to: Point { spot: *last, column: end.end },
                });
                at += query.len();
            } else {
                at += 1;
            }
        }
        found
    }
}
