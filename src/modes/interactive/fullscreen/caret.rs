//! The caret of the keyboard's selection.

use crate::tui::text::{Row, graphemes};

use super::scrollback::{Scrollback, Spot};
use super::selection::{Point, word};
use super::viewport::Viewport;

/// A step of the caret; negative counts lead back.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum CaretMove {
    Columns(i32),
    Rows(i32),
    Words(i32),
    LineStart,
    LineEnd,
}

impl Viewport<'_> {
    pub(super) fn move_caret(&mut self, step: CaretMove) {
        let Some(caret) = self.state.caret else { return };
        let moved = moved(caret, step, &mut self.rows());
        self.set_caret(moved);
    }

    /// Moves the caret and what it selects, and scrolls to it.
    fn set_caret(&mut self, caret: Point) {
        self.state.caret = Some(caret);
        if let Some(selection) = &mut self.state.selection {
            selection.extend(caret);
            selection.is_extended = true;
        }
        let (top, page) = (self.top(), self.page);
        let mut rows = self.rows();
        let bottom = rows.down(top, page.saturating_sub(2)).0;
        if caret.spot < top {
            self.state.top = Some(caret.spot);
            self.load_above(2 * page);
        } else if caret.spot > bottom {
            let to = rows.up(caret.spot, page.saturating_sub(2)).0;
            self.state.top = Some(to);
            self.scroll(0);
        }
    }

    /// Moves the caret to the first column of the first row that is read.
    pub(super) fn move_caret_to_start(&mut self) {
        let mut rows = self.rows();
        let spot = rows.first();
        let column = rows.row(spot).text_columns().start;
        self.move_caret_to(Point { spot, column });
    }

    /// Moves the caret to the last column of the last row.
    pub(super) fn move_caret_to_end(&mut self) {
        let mut rows = self.rows();
        let spot = rows.last();
        let column = last_column(&rows.row(spot));
        self.move_caret_to(Point { spot, column });
    }

    fn move_caret_to(&mut self, point: Point) {
        if self.state.caret.is_some() {
            self.set_caret(point);
        }
    }

    /// Brings the caret onto the screen after it scrolled.
    pub(super) fn keep_caret_visible(&mut self) {
        let Some(caret) = self.state.caret else { return };
        let (top, page) = (self.top(), self.page);
        let mut rows = self.rows();
        let bottom = rows.down(top, page.saturating_sub(2)).0;
        let spot = caret.spot.clamp(top, bottom.max(top));
        let columns = rows.row(spot).text_columns();
        let column = caret.column.clamp(columns.start, columns.end.max(columns.start));
        if spot != caret.spot {
            self.set_caret(Point { spot, column });
        }
    }
}

/// The caret after a step.
fn moved(caret: Point, step: CaretMove, rows: &mut Scrollback<'_>) -> Point {
    let row = rows.row(caret.spot).into_owned();
    match step {
        CaretMove::LineStart => Point { column: row.text_columns().start, ..caret },
        CaretMove::LineEnd => Point { column: last_column(&row), ..caret },
        CaretMove::Rows(count) => Point { spot: neighbour(caret.spot, count, rows), ..caret },
        CaretMove::Columns(count) => {
            let stops = stops(&row);
            let at = stops.partition_point(|stop| *stop < caret.column);
            let to = i32::try_from(at).unwrap_or(0) + count;
            let found = usize::try_from(to).ok().and_then(|to| stops.get(to).copied());
            let edge = |row: &Row| if count < 0 { last_column(row) } else { row.text_columns().start };
            found_or_beyond(caret, found, count, rows, edge)
        }
        CaretMove::Words(count) => {
            let starts = word_starts(&row);
            let next = if count < 0 {
                starts.iter().rev().find(|start| **start < caret.column)
            } else {
                starts.iter().find(|start| **start > caret.column)
            };
            let edge = |row: &Row| {
                let starts = word_starts(row);
                let word = if count < 0 { starts.last() } else { starts.first() };
                word.copied().unwrap_or(0)
            };
            found_or_beyond(caret, next.copied(), count, rows, edge)
        }
    }
}

/// A column of the caret's row, or the one that `edge` finds in the next row.
fn found_or_beyond(
    caret: Point,
    found: Option<u16>,
    count: i32,
    rows: &mut Scrollback<'_>,
    edge: impl FnOnce(&Row) -> u16,
) -> Point {
    if let Some(column) = found {
        return Point { column, ..caret };
    }
    let spot = neighbour(caret.spot, count, rows);
    if spot == caret.spot { caret } else { Point { spot, column: edge(&rows.row(spot)) } }
}

/// The row above for a negative `count`, else the one below.
fn neighbour(spot: Spot, count: i32, rows: &mut Scrollback<'_>) -> Spot {
    if count < 0 { rows.up(spot, 1).0 } else { rows.down(spot, 1).0 }
}

fn last_column(row: &Row) -> u16 {
    let columns = row.text_columns();
    columns.end.saturating_sub(1).max(columns.start)
}

/// The columns at which the clusters of a row begin.
fn stops(row: &Row) -> Vec<u16> {
    let inside = row.text_columns();
    let mut at = 0_u16;
    let mut stops = Vec::new();
    for (_, cells) in graphemes(&row.text()) {
        if cells > 0 && inside.contains(&at) {
            stops.push(at);
        }
        at = at.saturating_add(u16::try_from(cells).unwrap_or(u16::MAX));
    }
    stops
}

/// The columns at which words begin.
fn word_starts(row: &Row) -> Vec<u16> {
    let mut starts: Vec<u16> = Vec::new();
    let mut at = row.text_columns().start;
    let end = row.text_columns().end;
    let text = row.text();
    let is_blank = |column: u16| {
        let mut from = 0_u16;
        graphemes(&text).any(|(grapheme, cells)| {
            let start = from;
            from = from.saturating_add(u16::try_from(cells).unwrap_or(u16::MAX));
            start == column && grapheme.trim().is_empty()
        })
    };
    while at < end {
        let word = word(row, at);
        if !is_blank(at) {
            starts.push(at);
        }
        at = word.end.max(at + 1);
    }
    starts
}
