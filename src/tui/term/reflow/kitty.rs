//! What kitty does with its rows when its size changes, from 0.40 on or so; compared with the code of 0.48.
//!
//! The first row of the screen stays there, lines that wrap push rows out above it, and the cursor stays where its text
//! was before they did. So after several changes its row says little, and all sizes are computed one after the
//! other. Earlier versions differ in where they leave a cursor without text: their reports do not fit then.

use ratatui::layout::{Position, Size};

use super::steps::{Line, Steps, painted_lines, positions_of};
use super::{Picture, Positions};

/// Its lines.
pub(super) struct Screen {
    size: Size,
    lines: Vec<Line>,
    /// Number of lines in the scrollback.
    base: usize,
    cursor: Position,
}

impl Steps for Screen {
    fn new(picture: &Picture, n_above: usize, styled: bool) -> Self {
        // What is above has no influence.
        let base = n_above.min(1);
        let lines = painted_lines(picture, base, styled);
        Self { size: picture.size, lines, base, cursor: picture.cursor }
    }

    fn resize(&mut self, size: Size) {
        if std::mem::replace(&mut self.size, size) == size {
            return;
        }
        let is_marked = self.mark_blank_line();
        let is_blank = |line: &Line| line.cells.is_empty();
        let n_blank = self.lines[self.base..].iter().rev().take_while(|line| is_blank(line)).count();
        let n_lines = self.lines.len() - n_blank;
        let dropped = self.lines.split_off(n_lines);
        let mut wrapped = Wrapped::new(size, self.cursor);
        let mut continues = false;
        for (n, line) in std::mem::take(&mut self.lines).into_iter().enumerate() {
            wrapped.is_on_screen = n >= self.base;
            let y = n.checked_sub(self.base).and_then(|y| u16::try_from(y).ok());
            let wraps = line.wraps;
            wrapped.add(line, y, continues);
            continues = wraps;
        }
        let Wrapped { lines, first, cursor, .. } = wrapped;
        let first = first.unwrap_or(lines.len());
        self.lines = lines;
        self.base = first.max(self.lines.len().saturating_sub(usize::from(size.height)));
        // Rows of the picture that were blank keep their order.
        self.lines.extend(dropped.into_iter().filter(|line| line.row.is_some()));
        let n_screen = self.base + usize::from(size.height);
        self.lines.resize_with(self.lines.len().max(n_screen), Line::default);
        self.cursor = Position::new(
            cursor.x.min(size.width.saturating_sub(1)),
            cursor.y.min(size.height.saturating_sub(1)),
        );
        if is_marked {
            self.cursor.x = 0;
            let marked = self.base + usize::from(self.cursor.y);
            if let Some(line) = self.lines.get_mut(marked).filter(|line| line.cells.len() <= 1) {
                line.cells.clear();
            }
        }
    }

    fn cursor(&self) -> Position {
        self.cursor
    }

    fn positions(&self, n_rows: usize) -> Positions {
        positions_of(&self.lines, self.base, n_rows)
    }
}

impl Screen {
    /// Gives a blank line at whose start the cursor is a character, so that it counts as text. It is removed where the
    /// cursor is afterwards, which may be another line.
    fn mark_blank_line(&mut self) -> bool {
        let at = self.base + usize::from(self.cursor.y);
        let is_continued = self.cursor.y > 0 && self.lines.get(at - 1).is_some_and(|line| line.wraps);
        match self.lines.get_mut(at) {
            Some(line) if self.cursor.x == 0 && line.cells.is_empty() && !is_continued => {
                line.cells.push(1);
                self.cursor.x = 1;
                true
            }
            _ => false,
        }
    }
}

/// The lines at the new width.
struct Wrapped {
    size: Size,
    lines: Vec<Line>,
    /// Columns used of the last one.
    used: u16,
    /// The first one on the screen.
    first: Option<usize>,
    /// Whether the line that is added was on the screen.
    is_on_screen: bool,
    before: Position,
    cursor: Position,
}

impl Wrapped {
    fn new(size: Size, cursor: Position) -> Self {
        let (lines, used, first) = (Vec::new(), 0, None);
        Self { size, lines, used, first, is_on_screen: false, before: cursor, cursor }
    }

    /// Adds a line, which was in row `y` of the screen.
    fn add(&mut self, line: Line, y: Option<u16>, continues: bool) {
        if !continues {
            self.begin_line(line.row);
        }
        let end: u16 = line.cells.iter().sum();
        let mut x = 0;
        for cells in line.cells {
            if self.used.saturating_add(cells) > self.size.width {
                if let Some(last) = self.lines.last_mut() {
                    last.wraps = true;
                }
                self.begin_line(None);
            }
            let is_under = x <= self.before.x && (self.before.x < x + cells || self.before.x >= end);
            if y == Some(self.before.y) && is_under {
                let column = self.used.saturating_add(self.before.x - x).min(self.size.width);
                self.cursor = Position::new(column, self.row());
            }
            if let Some(last) = self.lines.last_mut() {
                last.cells.push(cells);
            }
            x += cells;
            self.used += cells;
        }
    }

    fn begin_line(&mut self, row: Option<usize>) {
        if self.is_on_screen && self.first.is_none() {
            self.first = Some(self.lines.len());
        }
        self.lines.push(Line { row, ..Line::default() });
        self.used = 0;
    }

    /// The screen row of the last line, before others follow.
    fn row(&self) -> u16 {
        let n_before = self.first.map_or(0, |first| self.lines.len() - 1 - first);
        u16::try_from(n_before).unwrap_or(u16::MAX).min(self.size.height.saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::super::steps::recorded::{Case, check};

    /// What kitty 0.48 did.
    #[test]
    fn rows_are_where_kitty_has_put_them() {
        let cases: &[Case] = &[
            (
                (106, 35),
                5,
                (0, 7),
                &[86, 106, 42, 4, 106],
                &[(66, 23), (106, 35), (106, 35), (20, 35)],
                (0, 16),
                &[(0, 5), (1, 10), (2, 16), (3, 19), (4, 20)],
            ),
            ((55, 30), 5, (6, 7), &[55, 55, 27], &[(33, 30), (55, 30)], (6, 7), &[(0, 5), (1, 6), (2, 7)]),
            (
                (83, 29),
                0,
                (72, 4),
                &[41, 4, -28, 1, 11],
                &[(83, 43), (83, 24), (47, 41)],
                (46, 5),
                &[(0, 0), (1, 1), (2, 2), (4, 5)],
            ),
            (
                (47, 23),
                5,
                (0, 8),
                &[4, 47, 23, 0],
                &[(47, 23), (47, 7), (41, 23)],
                (0, 7),
                &[(0, 3), (1, 4), (2, 6)],
            ),
            (
                (43, 31),
                0,
                (4, 3),
                &[21, 26, -13, 4],
                &[(17, 31), (41, 31), (43, 31), (74, 31)],
                (4, 3),
                &[(0, 0), (1, 1), (2, 2), (3, 3)],
            ),
            (
                (87, 40),
                0,
                (0, 3),
                &[87, 1, 1, -35, 0, 43],
                &[(87, 40), (87, 40), (13, 10), (87, 40)],
                (39, 1),
                &[(0, -4), (3, -1), (5, 1)],
            ),
            (
                (77, 27),
                5,
                (42, 6),
                &[4, 66, -28, -4],
                &[(77, 27), (38, 27), (113, 27), (35, 27)],
                (7, 7),
                &[(0, 5), (1, 6), (2, 8), (3, 10)],
            ),
            (
                (64, 28),
                0,
                (32, 0),
                &[64, -27, 4, 64, 0],
                &[(52, 35), (73, 12), (64, 28)],
                (32, 0),
                &[(0, 0), (1, 1), (2, 2), (3, 3)],
            ),
            (
                (86, 30),
                0,
                (21, 4),
                &[4, 43, 85, 86, 43],
                &[(86, 30), (86, 30), (54, 30)],
                (21, 6),
                &[(0, 0), (1, 1), (2, 2), (3, 4), (4, 6)],
            ),
            (
                (93, 24),
                0,
                (0, 4),
                &[93, 52, 1, 93, 46],
                &[(99, 24), (93, 24), (77, 24)],
                (0, 6),
                &[(0, 0), (1, 2), (3, 4), (4, 6)],
            ),
            (
                (100, 15),
                0,
                (0, 0),
                &[100, -18, 4],
                &[(100, 11), (33, 15), (42, 7), (67, 15)],
                (0, 0),
                &[(0, 0), (1, 2), (2, 3)],
            ),
            (
                (83, 26),
                0,
                (0, 3),
                &[25, 1, 41, 41, 4, 1],
                &[(26, 26), (83, 26), (83, 26)],
                (0, 3),
                &[(0, 0), (2, 2), (3, 3), (4, 4)],
            ),
            (
                (109, 30),
                0,
                (0, 5),
                &[1, 1, 54, 4, 88, 54],
                &[(109, 28), (109, 17), (57, 30)],
                (0, 6),
                &[(2, 2), (3, 3), (4, 4), (5, 6)],
            ),
            (
                (98, 27),
                5,
                (0, 10),
                &[1, -46, 42, -5, 4, 0],
                &[(83, 27), (98, 27), (115, 27)],
                (0, 10),
                &[(1, 6), (2, 7), (3, 8), (4, 9)],
            ),
            (
                (48, 28),
                0,
                (10, 2),
                &[24, 1, 48, 4, 0],
                &[(48, 28), (74, 28), (37, 28)],
                (10, 2),
                &[(0, 0), (2, 2), (3, 4)],
            ),
            (
                (56, 17),
                0,
                (0, 2),
                &[4, 56, 56, 28, -6],
                &[(65, 17), (24, 17), (36, 17)],
                (0, 3),
                &[(0, 0), (1, 1), (2, 3), (3, 5), (4, 6)],
            ),
            (
                (80, 19),
                0,
                (23, 2),
                &[0, 48, -18, 1, 80],
                &[(94, 19), (80, 19), (28, 19)],
                (23, 3),
                &[(1, 1), (2, 3), (4, 6)],
            ),
            (
                (108, 33),
                5,
                (45, 7),
                &[1, 83, 4, 61, 0],
                &[(108, 33), (90, 33), (108, 33), (108, 33)],
                (45, 7),
                &[(1, 6), (2, 7), (3, 8)],
            ),
            (
                (46, 29),
                5,
                (0, 8),
                &[1, 46, -6, 23],
                &[(65, 29), (104, 33), (70, 29), (13, 32)],
                (0, 11),
                &[(1, 6), (2, 10), (3, 11)],
            ),
            ((49, 29), 0, (0, 1), &[49, 1, 4, 33], &[(49, 29), (14, 39)], (0, 4), &[(0, 0), (2, 5), (3, 6)]),
            (
                (54, 16),
                0,
                (53, 5),
                &[1, 27, 27, -1, 29, 54],
                &[(54, 36), (21, 16), (54, 16), (54, 16)],
                (53, 5),
                &[(1, 1), (2, 2), (4, 4), (5, 5)],
            ),
            (
                (74, 20),
                0,
                (2, 4),
                &[37, -15, 0, 37, 2],
                &[(44, 21), (106, 20), (27, 20), (43, 20)],
                (2, 4),
                &[(0, 0), (1, 1), (3, 3), (4, 4)],
            ),
            (
                (48, 40),
                0,
                (28, 0),
                &[-4, 4, 4],
                &[(21, 21), (119, 40), (53, 29)],
                (20, 0),
                &[(0, 0), (1, 1), (2, 2)],
            ),
            (
                (77, 27),
                0,
                (19, 4),
                &[0, -19, 4, 21, 38],
                &[(89, 27), (75, 24), (77, 30)],
                (19, 4),
                &[(1, 1), (2, 2), (3, 3), (4, 4)],
            ),
        ];
        check("kitty", 40, cases);
    }
}
