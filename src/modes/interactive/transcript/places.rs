//! Where rows of the transcript are after it was laid out anew.

use std::ops::Range;

use crate::tui::term::{Relayout, RowMark};
use crate::tui::text::{LinePlace, Row};

use super::cell_list::CellList;

/// The places of rows before a layout.
#[derive(Debug, Default)]
pub(in super::super) struct Places {
    /// Index of each cell, its first row, and the marks of its rows.
    cells: Vec<(usize, usize, Vec<RowMark>)>,
    /// Number of rows.
    len: usize,
    /// The last cell, and the mark of its end: rows that arrive later begin there.
    end: Option<(usize, RowMark)>,
    /// The cell that is arriving, and rows of it that can be the first ones after rows that left the screen.
    arriving: Option<(usize, Vec<(usize, LinePlace)>)>,
}

impl Places {
    pub(super) fn of(cells: &mut CellList, rows: Range<usize>) -> Self {
        let arriving = cells.places_to_freeze(rows.clone());
        let marks =
            cells.cells_in(rows).map(|(index, start, rows)| (index, start, RowMark::of(rows).collect()));
        let last = cells.cell_at(cells.len().saturating_sub(1)).map(|(index, _)| index);
        let end = last.and_then(|index| Some((index, RowMark::end_of(cells.rows_of(index))?)));
        Self { cells: marks.collect(), len: cells.len(), end, arriving }
    }

    /// The cell that is arriving, and the place of row `old` in it, or of its end if that is before.
    pub(super) fn to_freeze(&self, old: usize) -> Option<(usize, usize, &LinePlace)> {
        let (cell, rows) = self.arriving.as_ref()?;
        let (row, place) = rows.iter().find(|(row, _)| *row == old).or_else(|| rows.last())?;
        (*row == old || *row == self.len).then_some((*cell, *row, place))
    }

    /// Index of the cell of the first row.
    pub(super) fn first_cell(&self) -> Option<usize> {
        self.cells.first().map(|(index, ..)| *index)
    }

    /// Index of the cell of row `old`, and its mark; no mark for a row that belongs to no cell. The row
    /// after the last one is the end of its cell.
    fn find(&self, old: usize) -> Option<(usize, Option<&RowMark>)> {
        if old >= self.len {
            return self.end.as_ref().map(|(index, mark)| (*index, Some(mark)));
        }
        let found = self.cells.partition_point(|(_, start, _)| *start <= old).checked_sub(1)?;
        let (index, start, marks) = self.cells.get(found)?;
        Some((*index, marks.get(old - start)))
    }
}

/// The rows of a transcript after a layout, found by their places before it.
pub(in super::super) struct MovedRows<'a> {
    pub(super) places: &'a Places,
    pub(super) cells: &'a CellList,
    /// Number of rows before the layout that were frozen since then.
    pub(super) n_frozen: usize,
}

impl MovedRows<'_> {
    /// The same after leading rows were frozen.
    pub(in super::super) fn after_freezing(self, n_frozen: usize) -> Self {
        Self { n_frozen, ..self }
    }
}

impl Relayout for MovedRows<'_> {
    fn n_frozen(&self) -> usize {
        self.n_frozen
    }

    fn row(&self, old: usize) -> Option<usize> {
        let (index, mark) = self.places.find(old)?;
        let (rows, end) = (self.cells.rows_of(index), Row::default());
        Some(self.cells.start_of(index) + mark?.find(rows.iter().chain([&end]))?)
    }

    fn near(&self, old: usize) -> usize {
        if let Some(row) = self.row(old) {
            return row;
        }
        let Some((index, mark)) = self.places.find(old) else { return 0 };
        match mark {
            Some(mark) => self.cells.start_of(index) + mark.find_before(self.cells.rows_of(index)),
            None => self.cells.start_of(index + 1),
        }
    }
}
