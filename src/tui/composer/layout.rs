//! Converts lines to visual rows, and cursor positions to cells.

use std::ops::Range;

use super::super::text::{chunks, visible, width};
use super::markers::Markers;
use super::model::{Model, Place};
use super::words::atoms;

/// One visual row: a piece of one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct VisualRow {
    pub(super) line: usize,
    /// Byte range in the line.
    pub(super) range: Range<usize>,
    /// Whether the line ends with this row, so that the cursor may be after its end.
    pub(super) is_last: bool,
}

/// The visual rows of the whole text at one width.
#[derive(Debug, Clone, Default)]
pub(super) struct Layout {
    key: Option<(u64, usize)>,
    pub(super) rows: Vec<VisualRow>,
    width: usize,
    /// Index of an empty row for the cursor, after a row that is full.
    cursor_row: Option<usize>,
}

impl Layout {
    /// Lays out the text, if it or the width has changed. If the cursor is at the end of a line that fills its last
    /// row, it gets an empty row.
    pub(super) fn update(&mut self, model: &Model, markers: &Markers, width: usize) {
        let key = Some((model.revision(), width));
        if self.key != key {
            self.rows.clear();
            for (line_idx, line) in model.lines().iter().enumerate() {
                lay_out_line(line_idx, line, &markers.ranges(line), width, &mut self.rows);
            }
            (self.key, self.width, self.cursor_row) = (key, width, None);
        }
        self.take_cursor_row();
        let cursor = model.cursor();
        let line = model.line(cursor.line);
        let last = self.rows.partition_point(|row| row.line <= cursor.line).saturating_sub(1);
        if let Some(row) = self.rows.get_mut(last).filter(|_| cursor.byte == line.len())
            && cells(&line[row.range.clone()]) >= width
        {
            row.is_last = false;
            let end = line.len();
            let empty = VisualRow { line: cursor.line, range: end..end, is_last: true };
            self.rows.insert(last + 1, empty);
            self.cursor_row = Some(last + 1);
        }
    }

    fn take_cursor_row(&mut self) {
        let Some(at) = self.cursor_row.take() else { return };
        self.rows.remove(at);
        if let Some(row) = at.checked_sub(1).and_then(|before| self.rows.get_mut(before)) {
            row.is_last = true;
        }
    }

    /// Index of the row the place is on.
    pub(super) fn row_of(&self, place: Place) -> usize {
        let first = self.rows.partition_point(|row| row.line < place.line);
        let of_line = self.rows[first..].iter().take_while(|row| row.line == place.line);
        let found = of_line
            .enumerate()
            .find(|(_, row)| place.byte < row.range.end || (row.is_last && place.byte <= row.range.end))
            .map(|(offset, _)| first + offset);
        found.unwrap_or_else(|| self.rows.len().saturating_sub(1))
    }

    /// Row and column of a place. Spaces beyond the edge share its last cell.
    pub(super) fn cell_of(&self, model: &Model, place: Place) -> (usize, usize) {
        let row_idx = self.row_of(place);
        let Some(row) = self.rows.get(row_idx) else { return (0, 0) };
        let before =
            model.line(row.line).get(row.range.start..place.byte.max(row.range.start)).unwrap_or_default();
        (row_idx, cells(before).min(self.width.saturating_sub(1)))
    }

    /// The place on a row nearest to a column, not after it.
    pub(super) fn place_at(&self, model: &Model, markers: &Markers, row_idx: usize, column: usize) -> Place {
        let Some(row) = self.rows.get(row_idx) else { return model.end() };
        let line = model.line(row.line);
        let text = &line[row.range.clone()];
        let own: Vec<Range<usize>> = markers
            .ranges(line)
            .into_iter()
            .filter(|marker| marker.start >= row.range.start && marker.end <= row.range.end)
            .map(|marker| marker.start - row.range.start..marker.end - row.range.start)
            .collect();
        let mut column_of_atom = 0;
        let mut byte = row.range.start;
        for atom in atoms(text, &own) {
            let next = column_of_atom + cells(&text[atom.clone()]);
            // The end of a wrapped row is the start of the next one.
            let past_end = !row.is_last && atom.end == text.len();
            if next > column || past_end {
                break;
            }
            column_of_atom = next;
            byte = row.range.start + atom.end;
        }
        Place::new(row.line, byte)
    }
}

/// The cells of a text as the editor shows it: what cannot be seen is spelt out.
fn cells(text: &str) -> usize {
    width(&visible(text))
}

/// Breaks at words; spaces at a break may extend beyond the edge.
fn lay_out_line(
    line: usize,
    text: &str,
    markers: &[Range<usize>],
    width_cells: usize,
    rows: &mut Vec<VisualRow>,
) {
    let mut start = 0;
    let mut used = 0;
    let mut finish = |start: &mut usize, end: usize, used: &mut usize| {
        rows.push(VisualRow { line, range: *start..end, is_last: false });
        (*start, *used) = (end, 0);
    };
    let mut atoms = atoms(text, markers).into_iter().peekable();
    for chunk in chunks(text, markers) {
        let word = cells(&text[chunk.start..chunk.word_end]);
        if used > 0 && used + word > width_cells {
            finish(&mut start, chunk.start, &mut used);
        }
        while let Some(atom) = atoms.next_if(|atom| atom.start < chunk.end) {
            let n_cells = cells(&text[atom.clone()]).min(width_cells);
            // Blanks do, but not a blank that is spelt out.
            let hangs = atom.start >= chunk.word_end && visible(&text[atom.clone()]).trim().is_empty();
            if used + n_cells > width_cells && !hangs && atom.start > start {
                finish(&mut start, atom.start, &mut used);
            }
            used += n_cells;
        }
    }
    finish(&mut start, text.len(), &mut used);
    if let Some(last) = rows.last_mut() {
        last.is_last = true;
    }
}
