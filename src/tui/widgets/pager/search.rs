//! Searching in the text of a pager.

use std::borrow::Cow;

use ratatui::style::Style;
use ratatui::text::Span;

use super::super::super::keymap::{Context, Keymap};
use super::super::super::term::InputEvent;
use super::super::super::text::{Row, WRAPPED_MARK};
use super::super::Field;
use super::{HiddenText, PagedText, Pager, Place, Viewport};

/// The search.
#[derive(Default)]
pub(super) struct Search {
    /// The query while it is typed.
    pub(super) field: Option<Field>,
    /// In lower case; empty if there is none.
    pub(super) query: String,
    /// The query as it was typed.
    pub(super) typed: String,
    /// Parts that may contain it; `None` while that is not known.
    parts: Option<Vec<usize>>,
    pub(super) current: Option<Place>,
    /// The direction in which to go on when the next part has been read.
    pub(super) waiting: Option<bool>,
    pub(super) note: Option<Note>,
}

/// Why there is no match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Note {
    NotFound,
    /// It is only in text that is not shown.
    Hidden(HiddenText),
}

impl Pager {
    /// The parts that contain a query, as an answer to [`PagedText::search`].
    pub fn on_found(&mut self, query: &str, parts: Vec<usize>) {
        if self.search.query == query {
            self.search.parts = Some(parts);
        }
    }

    /// Handles an input while the query is typed.
    pub(super) fn on_typed(&mut self, input: &InputEvent, keymap: &Keymap, text: &mut dyn PagedText) {
        let Some(field) = &mut self.search.field else { return };
        let id = match input {
            InputEvent::Key(key) => keymap.lookup(Context::Select, key),
            _ => None,
        };
        match id {
            Some("tui.select.confirm") => {
                let typed = field.text().trim().to_owned();
                self.search = Search { query: typed.to_lowercase(), typed, ..Search::default() };
                if !self.search.query.is_empty() {
                    self.search.parts = text.search(&self.search.query);
                    self.search.waiting = Some(true);
                }
            }
            Some("tui.select.cancel") => self.search = Search::default(),
            _ => drop(field.handle(input, keymap)),
        }
    }

    /// Goes to the next match; waits if its part must be read first.
    pub(super) fn seek(&mut self, forward: bool, view: &mut Viewport<'_>) {
        if self.search.query.is_empty() {
            self.search.waiting = None;
            return;
        }
        self.search.waiting = Some(forward);
        let Some(candidates) = self.search.parts.clone() else { return };
        let (at, row) = self.search.current.unwrap_or(self.top);
        let is_first = self.search.current.is_none();
        let mut hidden = None;
        for (n, part) in order(&candidates, at, forward).into_iter().enumerate() {
            if !view.text.is_read(part) {
                return view.text.want(part);
            }
            let n_rows = view.layout(part);
            let is_here = n == 0 && part == at;
            let is_beyond = |other: usize| match (is_here, forward) {
                (false, _) => true,
                (true, true) => other > row || is_first && other == row,
                (true, false) => other < row,
            };
            let query = &self.search.query;
            let matches =
                |other: &usize| is_beyond(*other) && is_match(view.text, query, part, *other, n_rows);
            let found = if forward { (0..n_rows).find(matches) } else { (0..n_rows).rev().find(matches) };
            if let Some(found) = found {
                self.search.waiting = None;
                self.search.current = Some((part, found));
                return self.show_match(view);
            }
            hidden = hidden.or_else(|| view.text.hidden(part, query, view.width_cells, view.theme));
        }
        self.search.waiting = None;
        self.search.note = Some(hidden.map_or(Note::NotFound, Note::Hidden));
    }

    /// Scrolls so that the match is in the upper third.
    pub(super) fn show_match(&mut self, view: &mut Viewport<'_>) {
        let Some((part, row)) = self.search.current else { return };
        let n_rows = view.layout(part);
        // After a change of the width it may be on a row nearby.
        let is_there = |row: &usize| is_match(view.text, &self.search.query, part, *row, n_rows);
        let row = (0..n_rows).filter(is_there).min_by_key(|other| other.abs_diff(row)).unwrap_or(row);
        self.search.current = Some((part, row));
        self.top = (part, row);
        let above = isize::try_from(view.page / 3).unwrap_or(0);
        self.scroll(-above, view);
    }
}

/// The order in which parts are searched: from `at` on and around, and `at` once more at the end.
fn order(candidates: &[usize], at: usize, forward: bool) -> Vec<usize> {
    let candidates = || candidates.iter().copied();
    let mut order = Vec::new();
    order.extend(candidates().find(|part| *part == at));
    if forward {
        order.extend(candidates().filter(|part| *part > at));
        order.extend(candidates().filter(|part| *part <= at));
    } else {
        order.extend(candidates().rev().filter(|part| *part < at));
        order.extend(candidates().rev().filter(|part| *part >= at));
    }
    order
}

/// Between the columns of tables, and left of quotations.
const BAR: char = '│';

/// Whether the query begins on a row; it may continue on the next ones, where words or a long word
/// were broken, in the same column of a table.
fn is_match(text: &dyn PagedText, query: &str, part: usize, row: usize, n_rows: usize) -> bool {
    let lower = |row: usize| text.row(part, row).text().to_lowercase();
    let first = lower(row);
    if first.contains(query) {
        return true;
    }
    let n_columns = first.split(BAR).count();
    // The text of a column in a later row of the same table or paragraph.
    let piece = |row: usize, column: usize| {
        let row = (row < n_rows).then(|| lower(row))?;
        let piece = row.split(BAR).nth(column).filter(|_| row.split(BAR).count() == n_columns)?;
        let piece = piece.trim();
        let piece = piece.strip_prefix(WRAPPED_MARK).unwrap_or(piece);
        Some(piece.to_owned()).filter(|piece| !piece.is_empty())
    };
    first
        .split(BAR)
        .enumerate()
        .any(|(column, text)| continues(text.trim(), query, |nth| piece(row + 1 + nth, column)))
}

/// Whether the query begins in a text and continues in the pieces after it. They were one text, broken
/// at blanks or within a long word.
fn continues(first: &str, query: &str, piece: impl Fn(usize) -> Option<String>) -> bool {
    let begins = |(at, _): (usize, char)| {
        let Some(mut rest) = query.strip_prefix(&first[at..]) else { return false };
        for nth in 0.. {
            rest = rest.strip_prefix(' ').unwrap_or(rest);
            let Some(piece) = piece(nth) else { return false };
            if piece.starts_with(rest) {
                return true;
            }
            match rest.strip_prefix(piece.as_str()) {
                Some(after) => rest = after,
                None => return false,
            }
        }
        false
    };
    first.char_indices().any(begins)
}

/// The row with all occurrences of `query`, which is in lower case, in another style.
pub(super) fn highlighted(row: Cow<'_, Row>, query: &str, style: Style) -> Row {
    let mut row = row.into_owned();
    let text = row.text();
    let lower = text.to_lowercase();
    // Offsets in the two differ for the few characters that change their length.
    if query.is_empty() || lower.len() != text.len() || !lower.contains(query) {
        return row;
    }
    let ranges: Vec<_> = lower.match_indices(query).map(|(at, found)| at..at + found.len()).collect();
    let mut offset = 0;
    let mut spans: Vec<Span<'static>> = Vec::new();
    for span in std::mem::take(&mut row.line.spans) {
        let mut plain = String::new();
        for (at, c) in span.content.char_indices() {
            let is_marked = ranges.iter().any(|range| range.contains(&(offset + at)));
            if is_marked {
                if !plain.is_empty() {
                    spans.push(Span::styled(std::mem::take(&mut plain), span.style));
                }
                let marked = span.style.patch(style);
                match spans.last_mut().filter(|last| last.style == marked) {
                    Some(last) => last.content.to_mut().push(c),
                    None => spans.push(Span::styled(c.to_string(), marked)),
                }
            } else {
                plain.push(c);
            }
        }
        offset += span.content.len();
        if !plain.is_empty() {
            spans.push(Span::styled(plain, span.style));
        }
    }
    row.line.spans = spans;
    row
}
