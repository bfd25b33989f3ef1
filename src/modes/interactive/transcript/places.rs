//! Where rows of the transcript are after it was laid out anew.

use std::ops::Range;

use crate::tui::term::{Relayout, RowMark};

use super::cell_list::CellList;

/// The places of rows before a layout.
#[derive(Debug, Default)]
pub(in super::super) struct Places {
    /// Index of each cell, its first row, and the marks of its rows.
    cells: Vec<(usize, usize, Vec<RowMark>)>,
    /// Number of rows.
    len: usize,
}

impl Places {
    pub(super) fn of(cells: &CellList, rows: Range<usize>) -> Self {
        let marks =
            cells.cells_in(rows).map(|(index, start, rows)| (index, start, RowMark::of(rows).collect()));
        Self { cells: marks.collect(), len: cells.len() }
    }

    /// Index of the cell of row `old`, and its mark; no mark for a row that belongs to no cell.
    fn find(&self, old: usize) -> Option<(usize, Option<&RowMark>)> {
        let found = self.cells.partition_point(|(_, start, _)| *start <= old).checked_sub(1)?;
        let (index, start, marks) = self.cells.get(found)?;
        Some((*index, marks.get(old - start)))
    }
}

/// The rows of a transcript after a layout, found by their places before it.
pub(in super::super) struct MovedRows<'a> {
    pub(super) places: &'a Places,
    pub(super) cells: &'a CellList,
}

impl Relayout for MovedRows<'_> {
    fn row(&self, old: usize) -> Option<usize> {
        if old >= self.places.len {
            return Some(self.cells.len());
        }
        let (index, mark) = self.places.find(old)?;
        Some(self.cells.start_of(index) + mark?.find(self.cells.rows_of(index))?)
    }

    fn near(&self, old: usize) -> usize {
        if old >= self.places.len {
            return self.cells.len();
        }
        let Some((index, mark)) = self.places.find(old) else { return 0 };
        match mark {
            Some(mark) => self.cells.start_of(index) + mark.find_before(self.cells.rows_of(index)),
            None => self.cells.start_of(index + 1),
        }
    }
}
