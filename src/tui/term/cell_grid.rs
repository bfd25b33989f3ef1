//! The cells of a screen, with their links and source rows.

use std::num::NonZeroU16;
use std::ptr;
use std::sync::Arc;

use ratatui::buffer::{Buffer, Cell, CellDiffOption, CellWidth};
use ratatui::layout::{Rect, Size};

use super::super::text::{LinkTarget, PromptMark, Row, RowPicture, graphemes, is_uncertain};
use super::reflow::RowShape;

/// A screenful of cells. Rows are shared: all blank rows are one, and a row of another grid is taken over
/// without its cells, so that memory is needed for what differs and scrolling moves no cells.
#[derive(Debug, Clone, Default)]
pub(super) struct CellGrid {
    rows: Vec<Arc<GridRow>>,
    /// A blank row of the same width.
    blank: Arc<GridRow>,
}

/// The cells of a row, and what is known about it without looking at them.
#[derive(Debug, Clone, Default)]
struct GridRow {
    /// Shared by all blank rows of a grid.
    cells: Arc<Buffer>,
    /// The row that it was drawn from; `None` if unknown.
    source: Option<Row>,
    /// The column after the last non-blank cell.
    end: u16,
    /// Whether it has clusters that terminals measure differently.
    is_uncertain: bool,
    /// Whether the terminal has the picture of the row.
    is_picture_drawn: bool,
}

impl GridRow {
    fn blank(width: u16) -> Self {
        Self { cells: Arc::new(Buffer::empty(Rect::new(0, 0, width, 1))), ..Self::default() }
    }

    fn width(&self) -> u16 {
        self.cells.area.width
    }

    /// The cells of `row`, in place of those of a blank one. Content beyond the width is dropped.
    fn drawn(row: &Row, blank: &Self) -> Self {
        let mut drawn = Self { source: Some(row.clone()), ..blank.clone() };
        let mut own_cells: Option<Buffer> = None;
        let (mut x, width) = (0_u16, blank.width());
        for span in &row.line.spans {
            let mut blank_cell = Cell::EMPTY;
            blank_cell.set_style(row.line.style.patch(span.style));
            let is_plain = blank_cell == Cell::EMPTY;
            for (grapheme, cells) in graphemes(&span.content) {
                let cells = narrow(cells);
                let Some(room) = (width - x).checked_sub(cells) else { break };
                let Some(forced) = NonZeroU16::new(cells) else { continue };
                let at = usize::from(x);
                x = width - room;
                if is_plain && grapheme == " " {
                    continue;
                }
                let mut cell = blank_cell.clone();
                cell.set_symbol(grapheme);
                if !grapheme.is_ascii() {
                    if cell.cell_width() != cells {
                        cell.diff_option = CellDiffOption::ForcedWidth(forced);
                    }
                    drawn.is_uncertain |= is_uncertain(grapheme);
                }
                drawn.end = x;
                own_cells.get_or_insert_with(|| Buffer::clone(&blank.cells)).content[at] = cell;
            }
        }
        if let Some(cells) = own_cells {
            drawn.cells = Arc::new(cells);
        }
        drawn
    }

    fn link(&self, x: u16) -> Option<&LinkTarget> {
        let links = &self.source.as_ref()?.links;
        links.iter().find(|(range, _)| range.contains(&x)).map(|(_, target)| target)
    }

    fn has_links(&self) -> bool {
        self.source.as_ref().is_some_and(|row| !row.links.is_empty())
    }
}

impl CellGrid {
    /// Resets to blank cells of a screen of `size`.
    pub(super) fn blank(&mut self, size: Size) {
        if self.blank.width() != size.width {
            self.blank = Arc::new(GridRow::blank(size.width));
        }
        self.rows.clear();
        self.rows.resize(usize::from(size.height), Arc::clone(&self.blank));
    }

    fn at(&self, y: u16) -> Option<&GridRow> {
        self.rows.get(usize::from(y)).map(Arc::as_ref)
    }

    pub(super) fn link(&self, x: u16, y: u16) -> Option<&LinkTarget> {
        self.at(y)?.link(x)
    }

    /// Replaces screen row `y` and returns whether that changes it. Content beyond the
    /// width is dropped.
    pub(super) fn put(&mut self, y: u16, row: &Row) -> bool {
        let Some(slot) = self.rows.get_mut(usize::from(y)) else { return false };
        let is_changed = slot.source.as_ref() != Some(row);
        if is_changed {
            *slot = Arc::new(GridRow::drawn(row, &self.blank));
        }
        is_changed
    }

    /// The cells of row `y`, as those of a screen of one row.
    pub(super) fn cells(&self, y: u16) -> &Buffer {
        &self.at(y).unwrap_or(&self.blank).cells
    }

    /// Whether row `y` has the very cells of another grid, as blank rows have and rows that were copied.
    pub(super) fn shares_cells(&self, other: &Self, y: u16) -> bool {
        ptr::eq(self.cells(y), other.cells(y))
    }

    pub(super) fn copy_row(&mut self, y: u16, from: &Self) {
        self.rows[usize::from(y)] = Arc::clone(&from.rows[usize::from(y)]);
    }

    /// Whether row `y` contains clusters that terminals measure differently.
    pub(super) fn is_uncertain(&self, y: u16) -> bool {
        self.at(y).is_some_and(|row| row.is_uncertain)
    }

    /// The row that screen row `y` was drawn from; `None` if it is blank, or unknown.
    pub(super) fn source(&self, y: u16) -> Option<&Row> {
        self.at(y)?.source.as_ref()
    }

    /// The mark of row `y`.
    pub(super) fn mark(&self, y: u16) -> Option<PromptMark> {
        self.at(y)?.source.as_ref()?.mark
    }

    /// The picture of row `y`.
    pub(super) fn picture(&self, y: u16) -> Option<RowPicture> {
        self.at(y)?.source.as_ref()?.picture
    }

    /// Whether the picture of row `y` is drawn over its cells.
    pub(super) fn has_drawn_picture(&self, y: u16) -> bool {
        self.picture(y).is_some_and(|picture| !picture.key.format.has_placeholders())
    }

    /// The picture of row `y`, if the terminal does not have it.
    pub(super) fn missing_picture(&self, y: u16) -> Option<RowPicture> {
        self.picture(y).filter(|_| self.at(y).is_some_and(|row| !row.is_picture_drawn))
    }

    /// Assumes that pictures drawn over cells are gone.
    pub(super) fn forget_drawn_pictures(&mut self) {
        for y in 0..narrow(self.rows.len()) {
            if self.has_drawn_picture(y)
                && let Some(row) = self.rows.get_mut(usize::from(y))
            {
                Arc::make_mut(row).is_picture_drawn = false;
            }
        }
    }

    pub(super) fn set_picture_drawn(&mut self, y: u16) {
        if let Some(row) = self.rows.get_mut(usize::from(y)) {
            Arc::make_mut(row).is_picture_drawn = true;
        }
    }

    /// The cells of row `y` from column `x` on, blank but with their backgrounds.
    pub(super) fn blanks(&self, x: u16, y: u16, columns: u16) -> Vec<Cell> {
        let cells = self.cells(y);
        let end = x.saturating_add(columns).min(cells.area.width);
        let blank = |x: u16| {
            let mut cell = Cell::EMPTY;
            cell.bg = cells.content[usize::from(x)].bg;
            cell
        };
        (x..end).map(blank).collect()
    }

    /// The column after the last non-blank cell of a row.
    pub(super) fn text_end(&self, y: u16) -> u16 {
        self.at(y).map_or(0, |row| row.end)
    }

    /// The widths of the clusters of row `y`.
    pub(super) fn shape(&self, y: u16) -> RowShape {
        let mut shape = RowShape::default();
        let (mut x, end) = (0, self.text_end(y));
        let row = self.cells(y);
        while x < end {
            let cell = &row.content[usize::from(x)];
            let cells = cell.cell_width().max(1);
            shape.widths.push(cells);
            if cell.symbol() != " " {
                shape.n_plain = shape.widths.len();
            }
            x += cells;
        }
        shape
    }

    pub(super) fn erase_row(&mut self, y: u16) {
        self.rows[usize::from(y)] = Arc::clone(&self.blank);
    }

    pub(super) fn scroll_up(&mut self, rows: u16) {
        let n_gone = usize::from(rows).min(self.rows.len());
        self.rows.rotate_left(n_gone);
        let kept = self.rows.len() - n_gone;
        self.rows[kept..].fill(Arc::clone(&self.blank));
    }

    /// Moves the rows from `y` on down by `n`, over those at the end.
    pub(super) fn insert_rows(&mut self, y: u16, n: u16) {
        let n = n.min(narrow(self.rows.len()).saturating_sub(y));
        let (start, inserted) = (usize::from(y), usize::from(n));
        self.rows[start..].rotate_right(inserted);
        self.rows[start..start + inserted].fill(Arc::clone(&self.blank));
    }

    /// Whether row `y` was drawn from `row`.
    pub(super) fn shows(&self, y: u16, row: &Row) -> bool {
        self.at(y).is_some_and(|shown| shown.source.as_ref() == Some(row))
    }

    /// Makes the diff of row `y` include cells whose text is the same but whose link
    /// differs.
    pub(super) fn mark_changed_links(&mut self, shown: &Self, y: u16) {
        let (Some(row), Some(shown)) = (self.rows.get_mut(usize::from(y)), shown.at(y)) else { return };
        if !row.has_links() && !shown.has_links() {
            return;
        }
        let row = Arc::make_mut(row);
        for x in 0..row.width() {
            let has_changed = row.link(x) != shown.link(x);
            let cell = &mut Arc::make_mut(&mut row.cells).content[usize::from(x)];
            if has_changed && cell.diff_option == CellDiffOption::None {
                cell.diff_option = CellDiffOption::AlwaysUpdate;
            }
        }
    }

    pub(super) fn unmark(&mut self, y: u16) {
        let is_marked = |cell: &Cell| cell.diff_option == CellDiffOption::AlwaysUpdate;
        if !self.cells(y).content.iter().any(is_marked) {
            return;
        }
        let row = Arc::make_mut(&mut self.rows[usize::from(y)]);
        for cell in &mut Arc::make_mut(&mut row.cells).content {
            if is_marked(cell) {
                cell.diff_option = CellDiffOption::None;
            }
        }
    }
}

/// A count of rows or cells, saturated to a screen's range.
pub(super) fn narrow(count: usize) -> u16 {
    u16::try_from(count).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use ratatui::style::Style;

    use super::*;

    /// The number of rows whose cells take memory.
    fn n_own_rows(grids: &[&CellGrid]) -> usize {
        let rows = grids.iter().flat_map(|grid| &grid.rows);
        let mut rows: Vec<_> = rows.map(|row| Arc::as_ptr(&row.cells)).collect();
        rows.sort_unstable();
        rows.dedup();
        rows.len()
    }

    #[test]
    fn blank_rows_and_rows_of_another_grid_take_no_memory() {
        let mut shown = CellGrid::default();
        shown.blank(Size::new(160, 45));
        let mut next = shown.clone();
        assert_eq!(n_own_rows(&[&shown, &next]), 1);
        for y in 0..10 {
            assert!(next.put(y, &Row::styled(format!("row {y}"), Style::new())));
            next.unmark(y);
            shown.copy_row(y, &next);
        }
        assert_eq!(n_own_rows(&[&shown, &next]), 10 + 1);
        assert!((0..45).all(|y| next.shares_cells(&shown, y)));
        shown.scroll_up(3);
        next.scroll_up(3);
        shown.insert_rows(2, 1);
        next.insert_rows(2, 1);
        assert_eq!(n_own_rows(&[&shown, &next]), 7 + 1);
        assert!(shown.shows(3, &Row::styled("row 5", Style::new())));
        // A drawn row without text is as blank as an empty one.
        assert!(next.put(0, &Row::styled("   ", Style::new())));
        assert_eq!(n_own_rows(&[&shown, &next]), 7 + 1);
        assert!(next.put(0, &Row::styled("text", Style::new())));
        assert!(!next.shares_cells(&shown, 0));
        next.blank(Size::new(80, 24));
        assert_eq!(n_own_rows(&[&next]), 1);
    }
}
