//! The cells of a screen, with their links and source rows.

use std::num::NonZeroU16;
use std::ops::Range;

use ratatui::buffer::{Buffer, Cell, CellDiffOption, CellWidth};
use ratatui::layout::{Rect, Size};

use super::super::text::{LinkTarget, PromptMark, Row, RowPicture, graphemes, is_uncertain};
use super::reflow::RowShape;

/// A screenful of cells, and the link of each.
#[derive(Debug, Default)]
pub(super) struct CellGrid {
    cells: Buffer,
    links: Vec<Option<LinkTarget>>,
    rows: Vec<RowFacts>,
}

/// What is known about a screen row without looking at its cells.
#[derive(Debug, Clone, Default)]
struct RowFacts {
    /// The row that it was drawn from; `None` if unknown.
    source: Option<Row>,
    /// The column after the last non-blank cell.
    end: u16,
    /// Whether it has clusters that terminals measure differently.
    is_uncertain: bool,
    /// Whether the terminal has the picture of the row.
    is_picture_drawn: bool,
}

impl CellGrid {
    /// Resets to blank cells of a screen of `size`.
    pub(super) fn blank(&mut self, size: Size) {
        let area = Rect::new(0, 0, size.width, size.height);
        if self.cells.area != area {
            self.cells = Buffer::empty(area);
        } else {
            self.cells.content.fill(Cell::EMPTY);
        }
        self.links.clear();
        self.links.resize(self.cells.content.len(), None);
        self.rows.clear();
        self.rows.resize(usize::from(size.height), RowFacts::default());
    }

    fn index(&self, x: u16, y: u16) -> usize {
        usize::from(y) * usize::from(self.cells.area.width) + usize::from(x)
    }

    pub(super) fn link(&self, x: u16, y: u16) -> Option<&LinkTarget> {
        self.links.get(self.index(x, y))?.as_ref()
    }

    /// Replaces screen row `y` and returns whether that changes it. Content beyond the
    /// width is dropped.
    pub(super) fn put(&mut self, y: u16, row: &Row) -> bool {
        let known = self.rows.get(usize::from(y)).map(|facts| facts.source.as_ref());
        if known.is_none_or(|source| source == Some(row)) {
            return false;
        }
        let mut facts = RowFacts { source: Some(row.clone()), ..RowFacts::default() };
        let width = self.cells.area.width;
        let (start, end) = (self.index(0, y), self.index(0, y) + usize::from(width));
        self.cells.content[start..end].fill(Cell::EMPTY);
        self.links[start..end].fill(None);
        let mut x = 0_u16;
        for span in &row.line.spans {
            let style = row.line.style.patch(span.style);
            for (grapheme, cells) in graphemes(&span.content) {
                let cells = narrow(cells);
                let Some(room) = (width - x).checked_sub(cells) else { break };
                let Some(forced) = NonZeroU16::new(cells) else { continue };
                let cell = &mut self.cells.content[start + usize::from(x)];
                cell.set_symbol(grapheme).set_style(style);
                if cell.cell_width() != cells {
                    cell.diff_option = CellDiffOption::ForcedWidth(forced);
                }
                facts.is_uncertain |= is_uncertain(grapheme);
                x = width - room;
                if *cell != Cell::EMPTY {
                    facts.end = x;
                }
            }
        }
        self.rows[usize::from(y)] = facts;
        for (range, target) in &row.links {
            for x in range.start..range.end.min(width) {
                self.links[start + usize::from(x)] = Some(target.clone());
            }
        }
        true
    }

    /// Row `y` as a separate buffer, at its position on the screen.
    pub(super) fn row_buffer(&self, y: u16) -> Buffer {
        let area = Rect::new(0, y, self.cells.area.width, 1);
        Buffer { area, content: self.cells.content[self.range(y)].to_vec() }
    }

    pub(super) fn copy_row(&mut self, y: u16, from: &Self) {
        let range = self.range(y);
        self.cells.content[range.clone()].clone_from_slice(&from.cells.content[range.clone()]);
        self.links[range.clone()].clone_from_slice(&from.links[range]);
        self.rows[usize::from(y)].clone_from(&from.rows[usize::from(y)]);
    }

    /// Whether row `y` contains clusters that terminals measure differently.
    pub(super) fn is_uncertain(&self, y: u16) -> bool {
        self.rows.get(usize::from(y)).is_some_and(|facts| facts.is_uncertain)
    }

    /// The mark of row `y`.
    pub(super) fn mark(&self, y: u16) -> Option<PromptMark> {
        self.rows.get(usize::from(y))?.source.as_ref()?.mark
    }

    /// The picture of row `y`.
    pub(super) fn picture(&self, y: u16) -> Option<RowPicture> {
        self.rows.get(usize::from(y))?.source.as_ref()?.picture
    }

    /// Whether the picture of row `y` is drawn over its cells.
    pub(super) fn has_drawn_picture(&self, y: u16) -> bool {
        self.picture(y).is_some_and(|picture| !picture.key.format.has_placeholders())
    }

    /// The picture of row `y`, if the terminal does not have it.
    pub(super) fn missing_picture(&self, y: u16) -> Option<RowPicture> {
        self.picture(y).filter(|_| self.rows.get(usize::from(y)).is_some_and(|facts| !facts.is_picture_drawn))
    }

    pub(super) fn set_picture_drawn(&mut self, y: u16) {
        if let Some(facts) = self.rows.get_mut(usize::from(y)) {
            facts.is_picture_drawn = true;
        }
    }

    /// The cells of row `y` from column `x` on, blank but with their backgrounds.
    pub(super) fn blanks(&self, x: u16, y: u16, columns: u16) -> Vec<Cell> {
        let end = x.saturating_add(columns).min(self.cells.area.width);
        let blank = |x: u16| {
            let mut cell = Cell::EMPTY;
            cell.bg = self.cells.content[self.index(x, y)].bg;
            cell
        };
        (x..end).map(blank).collect()
    }

    /// The index range of row `y`.
    fn range(&self, y: u16) -> Range<usize> {
        self.index(0, y)..self.index(0, y + 1)
    }

    /// The column after the last non-blank cell of a row.
    pub(super) fn text_end(&self, y: u16) -> u16 {
        self.rows.get(usize::from(y)).map_or(0, |facts| facts.end)
    }

    /// The widths of the clusters of row `y`.
    pub(super) fn shape(&self, y: u16) -> RowShape {
        let mut shape = RowShape::default();
        let (mut x, end) = (0, self.text_end(y));
        while x < end {
            let cell = &self.cells.content[self.index(x, y)];
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
        let range = self.range(y);
        self.cells.content[range.clone()].fill(Cell::EMPTY);
        self.links[range].fill(None);
        self.rows[usize::from(y)] = RowFacts::default();
    }

    pub(super) fn scroll_up(&mut self, rows: u16) {
        let gone = self.index(0, rows).min(self.cells.content.len());
        self.cells.content.rotate_left(gone);
        self.links.rotate_left(gone);
        let kept = self.cells.content.len() - gone;
        self.cells.content[kept..].fill(Cell::EMPTY);
        self.links[kept..].fill(None);
        let n_gone = usize::from(rows).min(self.rows.len());
        self.rows.rotate_left(n_gone);
        let kept = self.rows.len() - n_gone;
        self.rows[kept..].fill(RowFacts::default());
    }

    /// Moves the rows from `y` on down by `n`, over those at the end.
    pub(super) fn insert_rows(&mut self, y: u16, n: u16) {
        let n = n.min(narrow(self.rows.len()).saturating_sub(y));
        let (start, inserted) = (self.index(0, y), self.index(0, n));
        self.cells.content[start..].rotate_right(inserted);
        self.links[start..].rotate_right(inserted);
        self.cells.content[start..start + inserted].fill(Cell::EMPTY);
        self.links[start..start + inserted].fill(None);
        let (start, inserted) = (usize::from(y), usize::from(n));
        self.rows[start..].rotate_right(inserted);
        self.rows[start..start + inserted].fill(RowFacts::default());
    }

    /// Whether row `y` was drawn from `row`.
    pub(super) fn shows(&self, y: u16, row: &Row) -> bool {
        self.rows.get(usize::from(y)).is_some_and(|facts| facts.source.as_ref() == Some(row))
    }

    /// Makes the diff of row `y` include cells whose text is the same but whose link
    /// differs.
    pub(super) fn mark_changed_links(&mut self, shown: &Self, y: u16) {
        for idx in self.range(y) {
            let cell = &mut self.cells.content[idx];
            if self.links[idx] != shown.links[idx] && cell.diff_option == CellDiffOption::None {
                cell.diff_option = CellDiffOption::AlwaysUpdate;
            }
        }
    }

    pub(super) fn unmark(&mut self, y: u16) {
        let range = self.range(y);
        for cell in &mut self.cells.content[range] {
            if cell.diff_option == CellDiffOption::AlwaysUpdate {
                cell.diff_option = CellDiffOption::None;
            }
        }
    }
}

/// A count of rows or cells, saturated to a screen's range.
pub(super) fn narrow(count: usize) -> u16 {
    u16::try_from(count).unwrap_or(u16::MAX)
}
