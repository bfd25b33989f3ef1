//! Where WezTerm puts its cursor when its width changes.
//!
//! It stays with its text, but not in the first column: there it goes to the row above, so that it does not lose
//! its line if a wrapped line ends before it. Every change of the width does that again, and blank lines at the end
//! are dropped.

use ratatui::layout::{Position, Size};

use super::steps::{Line, Steps, painted_lines, positions_of};
use super::{Picture, Positions};

/// The lines of the terminal, of which the last ones are on the screen.
pub(super) struct Screen {
    size: Size,
    lines: Vec<Line>,
    /// Its column may be after the last one, its line after all.
    column: usize,
    line: usize,
}

impl Steps for Screen {
    fn new(picture: &Picture, n_above: usize, styled: bool) -> Self {
        let lines = painted_lines(picture, n_above, styled);
        let (column, line) = (picture.cursor.x.into(), n_above + usize::from(picture.cursor.y));
        Self { size: picture.size, lines, column, line }
    }

    fn resize(&mut self, size: Size) {
        let before = std::mem::replace(&mut self.size, size);
        if before == size {
            return;
        }
        // Blank lines at the end are dropped.
        let is_blank = |line: &&Line| line.cells.is_empty();
        let n_below = self.lines.len().saturating_sub(self.line + 1);
        let n_blank = self.lines.iter().rev().take(n_below).take_while(is_blank).count();
        let dropped = self.lines.split_off(self.lines.len() - n_blank);
        if before.width != size.width {
            self.rewrap(before.width);
        }
        // Rows of the picture that were blank keep their order, and the screen is filled.
        let n_missing = usize::from(size.height).saturating_sub(self.lines.len());
        self.lines.extend(dropped.into_iter().take(n_missing));
        let height = usize::from(size.height);
        self.lines.resize_with(self.lines.len().max(height), Line::default);
    }

    fn cursor(&self) -> Position {
        let within = |at: usize, end: u16| u16::try_from(at).unwrap_or(u16::MAX).min(end.saturating_sub(1));
        let y = self.line.saturating_sub(self.base());
        Position::new(within(self.column, self.size.width), within(y, self.size.height))
    }

    fn positions(&self, n_rows: usize) -> Positions {
        positions_of(&self.lines, self.base(), n_rows)
    }
}

impl Screen {
    /// The first line on the screen.
    fn base(&self) -> usize {
        self.lines.len().saturating_sub(self.size.height.into())
    }

    fn rewrap(&mut self, old_width: u16) {
        let width = usize::from(self.size.width.max(1));
        let (column, at) = (self.column, self.line);
        let mut wrapped: Vec<Line> = Vec::new();
        let mut whole = Line::default();
        let (mut is_open, mut cursor) = (false, None);
        for (n, line) in std::mem::take(&mut self.lines).into_iter().enumerate() {
            if n == at {
                let n_before: u16 = if is_open { whole.cells.iter().sum() } else { 0 };
                cursor = Some(usize::from(n_before) + column);
            }
            if !is_open {
                whole.row = line.row;
            }
            whole.cells.extend(line.cells);
            is_open = line.wraps;
            if is_open {
                continue;
            }
            if let Some(x) = cursor.take() {
                (self.column, self.line) = (x % width, wrapped.len() + x / width);
                if self.column == 0 && self.line > 0 {
                    self.column = if width < usize::from(old_width) { column } else { width };
                    self.line -= 1;
                }
            }
            wrap(std::mem::take(&mut whole), self.size.width, &mut wrapped);
        }
        self.lines = wrapped;
    }
}

/// Adds a line as rows of this width.
fn wrap(line: Line, width: u16, rows: &mut Vec<Line>) {
    let mut used = 0;
    rows.push(Line { row: line.row, ..Line::default() });
    for cells in line.cells {
        if used + cells > width
            && let Some(last) = rows.last_mut()
        {
            last.wraps = true;
            rows.push(Line::default());
            used = 0;
        }
        used += cells;
        if let Some(last) = rows.last_mut() {
            last.cells.push(cells);
        }
    }
}

#[cfg(test)]
mod tests {
    use ratatui::layout::{Position, Size};

    use super::super::steps::recorded::{Case, check, picture};
    use super::super::{Picture, ReflowTraits};

    /// Screen row of the first row: a rule, a draft with the cursor after it, and another rule, at the end of a
    /// screen of 80 columns.
    #[track_caller]
    fn check_draft(n_draft: u16, sizes: &[u16], width: u16, reply: (u16, u16), first: i64) {
        let sizes: Vec<(u16, u16)> = sizes.iter().map(|width| (*width, 10)).collect();
        let n_cells = isize::try_from(n_draft).unwrap();
        let picture = picture((80, 10), 7, (n_draft, 8), &[80, n_cells, 80], &sizes);
        let reply = Some(Position::new(reply.0, reply.1));
        let found = picture.positions(Size::new(width, 10), reply, &ReflowTraits::of("wezterm"));
        let tops: Vec<i64> = found.iter().map(|positions| positions.tops[0]).collect();
        assert_eq!(tops, [first], "{n_draft} {sizes:?} {width}");
    }

    /// The positions are those that its code reported.
    #[test]
    fn cursor_in_the_first_column_goes_to_the_row_above() {
        check_draft(0, &[], 60, (0, 6), 5);
        check_draft(0, &[60], 50, (10, 6), 5);
        check_draft(0, &[], 40, (0, 6), 5);
        check_draft(0, &[], 100, (99, 6), 6);
        check_draft(0, &[100], 120, (100, 6), 6);
        check_draft(0, &[60], 80, (60, 6), 6);
        check_draft(0, &[40], 80, (40, 6), 6);
        // Sizes that were not noticed.
        check_draft(0, &[], 50, (29, 6), 5);
    }

    #[test]
    fn blank_rows_that_were_dropped_leave_the_text_on_the_last_row() {
        let end = |reply: (u16, u16)| {
            let picture = Picture { used: 2, ..picture((80, 24), 0, (0, 2), &[78, 30, 0], &[(97, 24)]) };
            let reply = Position::new(reply.0, reply.1);
            picture.lowest_end(Size::new(60, 24), reply, &ReflowTraits::of("wezterm"))
        };
        assert_eq!(end((37, 23)), 24);
        assert_eq!(end((0, 22)), 23, "97 columns were none of the terminal");
    }

    #[test]
    fn elsewhere_it_stays_with_its_text() {
        check_draft(2, &[], 60, (2, 7), 5);
        check_draft(40, &[], 40, (39, 7), 5);
        check_draft(40, &[40], 80, (40, 8), 7);
        check_draft(70, &[60], 50, (20, 7), 4);
        check_draft(70, &[], 100, (70, 8), 7);
    }

    /// What WezTerm did.
    #[test]
    fn rows_are_where_wezterm_has_put_them() {
        let cases: &[Case] = &[
            (
                (104, 25),
                5,
                (0, 10),
                &[42, 52, -27, 1, 104, 27],
                &[(30, 25), (104, 25), (104, 20), (95, 31)],
                (90, 28),
                &[(0, 24), (1, 25), (2, 26), (3, 27), (4, 28), (5, 30)],
            ),
            (
                (72, 12),
                0,
                (0, 1),
                &[1, 1, 1, 36],
                &[(112, 12)],
                (111, 8),
                &[(0, 8), (1, 9), (2, 10), (3, 11)],
            ),
            ((98, 8), 0, (0, 1), &[0, 4, 98, 4, 0], &[(107, 8), (98, 8)], (9, 5), &[(1, 5), (2, 6), (3, 7)]),
            (
                (82, 9),
                5,
                (0, 5),
                &[1, 4, 41],
                &[(34, 9), (12, 9), (82, 9), (82, 9)],
                (81, 3),
                &[(0, 6), (1, 7), (2, 8)],
            ),
            (
                (72, 29),
                5,
                (0, 8),
                &[1, 36, 72, 36, 72, 72],
                &[(88, 13), (72, 29), (72, 19), (104, 37)],
                (16, 34),
                &[(0, 31), (1, 32), (2, 33), (3, 34), (4, 35), (5, 36)],
            ),
            (
                (91, 8),
                0,
                (0, 1),
                &[1, 4, 4, 91, 45, 33],
                &[(65, 19), (61, 8), (115, 13), (107, 8)],
                (8, 1),
                &[(0, 2), (1, 3), (2, 4), (3, 5), (4, 6), (5, 7)],
            ),
            (
                (86, 34),
                5,
                (0, 8),
                &[4, -1, 75, 1, 43, 4],
                &[(110, 34), (86, 32)],
                (24, 29),
                &[(0, 26), (1, 27), (2, 28), (3, 29), (4, 30), (5, 31)],
            ),
            (
                (77, 31),
                5,
                (0, 9),
                &[38, 2, 1, 66, 0],
                &[(50, 31), (77, 38)],
                (50, 37),
                &[(0, 34), (1, 35), (2, 36), (3, 37)],
            ),
            (
                (103, 19),
                0,
                (0, 2),
                &[4, 1, 14],
                &[(103, 19), (115, 19), (94, 19)],
                (21, 18),
                &[(0, 16), (1, 17), (2, 18)],
            ),
            (
                (29, 28),
                0,
                (0, 5),
                &[1, 1, 0, -12, 29, 23],
                &[(87, 43)],
                (86, 41),
                &[(0, 37), (1, 38), (3, 40), (4, 41), (5, 42)],
            ),
            (
                (35, 25),
                0,
                (0, 2),
                &[24, -12, 35, 1, 4],
                &[(41, 25)],
                (40, 21),
                &[(0, 20), (1, 21), (2, 22), (3, 23), (4, 24)],
            ),
            (
                (93, 31),
                0,
                (0, 5),
                &[-34, 4, 1, 4, 93, -14],
                &[(93, 31), (33, 31), (93, 31)],
                (66, 29),
                &[(0, 25), (1, 26), (2, 27), (3, 28), (4, 29), (5, 30)],
            ),
            (
                (37, 12),
                0,
                (25, 2),
                &[29, 1, 25],
                &[(104, 12), (52, 12), (95, 30)],
                (25, 29),
                &[(0, 27), (1, 28), (2, 29)],
            ),
            ((81, 28), 0, (40, 2), &[1, 0, 40, 41, 0], &[(44, 40)], (40, 38), &[(0, 36), (2, 38), (3, 39)]),
            (
                (80, 30),
                0,
                (40, 3),
                &[4, 80, 0, 80],
                &[(80, 30), (53, 26), (50, 30)],
                (40, 28),
                &[(0, 24), (1, 25), (3, 28)],
            ),
            (
                (91, 11),
                0,
                (2, 5),
                &[45, -15, -26, 91, 45, 4],
                &[(91, 11), (36, 16), (68, 11), (70, 11)],
                (2, 10),
                &[(0, 4), (1, 5), (2, 6), (3, 7), (4, 9), (5, 10)],
            ),
            (
                (53, 28),
                5,
                (4, 6),
                &[53, -4, 1, 4],
                &[(53, 28), (53, 39), (104, 24), (32, 28)],
                (4, 25),
                &[(0, 23), (1, 25), (2, 26), (3, 27)],
            ),
            (
                (85, 17),
                0,
                (17, 1),
                &[85, 35, 85, -31, 85, 85],
                &[(80, 9), (53, 17), (85, 17), (27, 14)],
                (17, 0),
                &[(0, -7), (1, -3), (2, -1), (3, 3), (4, 6), (5, 10)],
            ),
        ];
        check("wezterm", 400, cases);
    }
}
