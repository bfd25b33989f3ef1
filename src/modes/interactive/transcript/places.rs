//! Where rows of the transcript are after it was laid out anew.

use std::ops::Range;

use crate::tui::term::{Relayout, RowMark};
use crate::tui::text::{LinePlace, Row};

use super::cell_list::CellList;

/// The places of rows before a layout.
#[derive(Debug, Default)]
pub(in super::super) struct Places {
    cells: Vec<CellPlaces>,
    /// Number of rows.
    len: usize,
    /// The end of the last cell: rows that arrive later begin there.
    end: Option<MarkedRow>,
    arriving: Option<Arriving>,
}

/// The cell that is arriving.
#[derive(Debug)]
pub(super) struct Arriving {
    /// Its index.
    pub(super) cell: usize,
    /// The row after it.
    pub(super) end: usize,
    /// Rows of it that can be the first ones after rows that left the screen.
    pub(super) rows: Vec<(usize, LinePlace)>,
}

/// The places of a cell's rows, and of its end.
#[derive(Debug)]
struct CellPlaces {
    index: usize,
    start: usize,
    marks: Vec<RowMark>,
    is_settled: bool,
}

/// One row of them, by the text around it.
#[derive(Debug, Clone, Copy)]
struct MarkedRow {
    /// Index of its cell.
    cell: usize,
    /// `None` for a row that belongs to no cell.
    mark: Option<RowMark>,
    /// Whether the text of the cell does not grow.
    is_settled: bool,
}

impl Places {
    pub(super) fn of(cells: &CellList, rows: Range<usize>) -> Self {
        let arriving = cells.places_to_freeze(rows.clone());
        let end = Row::default();
        let places = cells.cells_in(rows).map(|(index, start, rows)| CellPlaces {
            index,
            start,
            marks: RowMark::of(rows.iter().chain([&end])).collect(),
            is_settled: cells.is_settled(index),
        });
        let last = cells.cell_at(cells.len().saturating_sub(1)).map(|(index, _)| index);
        let end = last.map(|index| MarkedRow {
            cell: index,
            mark: RowMark::end_of(cells.rows_of(index)),
            is_settled: cells.is_settled(index),
        });
        Self { cells: places.collect(), len: cells.len(), end, arriving }
    }

    /// The cell that is arriving, and the place of row `old` in it, or of its end if that is before.
    pub(super) fn to_freeze(&self, old: usize) -> Option<(usize, usize, &LinePlace)> {
        let Arriving { cell, end, rows } = self.arriving.as_ref()?;
        let (row, place) = rows.iter().rfind(|(row, _)| *row <= old)?;
        (*row == old || row == end).then_some((*cell, *row, place))
    }

    /// Index of the cell of the first row.
    pub(super) fn first_cell(&self) -> Option<usize> {
        self.cells.first().map(|cell| cell.index)
    }

    /// The cell of row `old`, and its number among those that are known.
    fn cell_at(&self, old: usize) -> Option<(usize, &CellPlaces)> {
        let found = self.cells.partition_point(|cell| cell.start <= old).checked_sub(1)?;
        Some((found, self.cells.get(found)?))
    }

    /// The place of row `old`. The row after the last one is the end of its cell, and so is one after a text
    /// that is arriving: more of it may come before the next cell.
    fn find(&self, old: usize) -> Option<MarkedRow> {
        if old >= self.len {
            return self.end;
        }
        let (found, cell) = self.cell_at(old)?;
        let before = found.checked_sub(1).and_then(|before| self.cells.get(before));
        if let Some(before) = before.filter(|before| old == cell.start && !before.is_settled) {
            return Some(MarkedRow {
                cell: before.index,
                mark: before.marks.last().copied(),
                is_settled: false,
            });
        }
        let mark = cell.marks.get(old - cell.start).copied();
        Some(MarkedRow { cell: cell.index, mark, is_settled: cell.is_settled })
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
        let MarkedRow { cell, mark, is_settled } = self.places.find(old)?;
        let end = Row::default();
        let rows = self.cells.rows_of(cell).iter().chain([&end]);
        let found = if is_settled { mark?.find_in_whole(rows) } else { mark?.find(rows) };
        Some(self.cells.start_of(cell) + found?)
    }

    fn replaced(&self, old: usize) -> usize {
        if let Some(row) = self.row(old) {
            return row;
        }
        let in_cell = self.places.cell_at(old).and_then(|(_, cell)| {
            let end = Row::default();
            let rows = || self.cells.rows_of(cell.index).iter().chain([&end]);
            let before = cell.marks.get(..=old - cell.start)?.iter().rev();
            let found = before.into_iter().find_map(|mark| mark.find_after_same(rows()))?;
            Some(self.cells.start_of(cell.index) + found)
        });
        in_cell.unwrap_or_else(|| self.near(old))
    }

    fn near(&self, old: usize) -> usize {
        if let Some(row) = self.row(old) {
            return row;
        }
        let Some(MarkedRow { cell, mark, .. }) = self.places.find(old) else { return 0 };
        match mark {
            Some(mark) => self.cells.start_of(cell) + mark.find_before(self.cells.rows_of(cell)),
            None => self.cells.start_of(cell + 1),
        }
    }
}
