//! What xterm.js, the terminal of VS Code, does with its rows when its size changes, up to version 6.0.
//!
//! It does not wrap the line of the cursor, which programs are meant to draw again, and finds that line by a count
//! that is off while other lines become longer. Rows below the cursor are dropped when it becomes lower. So where
//! rows are follows only from all sizes it had, one after the other.

use std::ops::Range;

use ratatui::layout::{Position, Size};

use super::steps::Steps;
use super::{Picture, Positions};

/// A cell without text. Others are numbers of cells.
const BLANK: u16 = 0;

/// A row of the screen or scrollback.
#[derive(Debug, Clone, Default)]
struct Line {
    /// Widths of its clusters, or [`BLANK`].
    cells: Vec<u16>,
    /// Whether it goes on with the text of the line above.
    continues: bool,
    /// Which row of the picture begins here.
    row: Option<usize>,
}

impl Line {
    /// Number of cells up to the last one with text.
    fn len(&self) -> u16 {
        let n_blank = self.cells.iter().rev().take_while(|cells| **cells == BLANK).count();
        n_cells(&self.cells[..self.cells.len() - n_blank])
    }

    fn cut_to(&mut self, width: u16) {
        let mut end = 0_u16;
        let fits = |cells: &&u16| {
            end = end.saturating_add(n_cells(&[**cells]));
            end <= width
        };
        let n_fitting = self.cells.iter().take_while(fits).count();
        self.cells.truncate(n_fitting);
    }
}

fn n_cells(clusters: &[u16]) -> u16 {
    clusters.iter().fold(0, |sum, cells| sum.saturating_add((*cells).max(1)))
}

pub(super) struct Screen {
    size: Size,
    lines: Vec<Line>,
    /// Number of lines in the scrollback.
    base: usize,
    cursor: Position,
}

impl Steps for Screen {
    fn new(picture: &Picture, n_above: usize, styled: bool) -> Self {
        let n_others = n_above + usize::from(picture.origin);
        let others = std::iter::repeat_with(Line::default).take(n_others);
        let shown = picture.shapes.iter().enumerate().map(|(n, shape)| Line {
            cells: shape.widths(styled).to_vec(),
            continues: false,
            row: Some(n),
        });
        let mut lines: Vec<Line> = others.chain(shown).collect();
        lines.resize_with(n_above + usize::from(picture.size.height), Line::default);
        Self { size: picture.size, lines, base: n_above, cursor: picture.cursor }
    }

    fn resize(&mut self, size: Size) {
        let added = self.set_height(usize::from(size.height));
        self.cursor.x = self.cursor.x.min(size.width.saturating_sub(1));
        self.cursor.y = self.cursor.y.min(size.height.saturating_sub(1)).saturating_add(added);
        let before = std::mem::replace(&mut self.size, size);
        if size.width > before.width {
            self.join(before.width);
        } else if size.width < before.width {
            self.wrap(before.width);
            self.lines.iter_mut().for_each(|line| line.cut_to(size.width));
        }
    }

    fn cursor(&self) -> Position {
        self.cursor
    }

    fn positions(&self, n_rows: usize) -> Positions {
        let line =
            |index: usize| i64::try_from(index).unwrap_or(i64::MAX) - i64::try_from(self.base).unwrap_or(0);
        let end = |index: usize| line(self.end_of(index));
        let of = |n: usize| self.lines.iter().position(|line| line.row == Some(n));
        let mut tops: Vec<i64> = Vec::with_capacity(n_rows + 1);
        for n in 0..n_rows {
            // What was dropped is at the end.
            let missing = || n.checked_sub(1).and_then(of).map(end);
            let top = of(n).map(line).or_else(missing);
            tops.push(top.or_else(|| tops.last().copied()).unwrap_or(0));
        }
        let after = n_rows.checked_sub(1).and_then(of).map(end);
        tops.push(after.or_else(|| tops.last().copied()).unwrap_or(0));
        Positions { tops, reflows: true, styled: true }
    }
}

impl Screen {
    /// Adds or drops rows at the end. Returns how many came back from the scrollback.
    fn set_height(&mut self, height: usize) -> u16 {
        let (before, y) = (usize::from(self.size.height), usize::from(self.cursor.y));
        let mut added = 0;
        for _ in before..height {
            if self.lines.len() >= height + self.base {
                break;
            }
            // Nothing is below the cursor.
            if self.base > 0 && self.lines.len() <= self.base + y + usize::from(added) + 1 {
                self.base -= 1;
                added += 1;
            } else {
                self.lines.push(Line::default());
            }
        }
        for _ in height..before {
            if self.lines.len() <= height + self.base {
                break;
            }
            if self.lines.len() > self.base + y + 1 {
                self.lines.pop();
            } else {
                self.base += 1;
            }
        }
        added
    }

    /// Joins lines that were wrapped, in a wider screen.
    fn join(&mut self, before: u16) {
        let at = self.base + usize::from(self.cursor.y);
        let mut joined: Vec<Line> = Vec::with_capacity(self.lines.len());
        let n_before = self.lines.len();
        let mut first = 0;
        while first < n_before {
            let end = self.end_of(first);
            let is_kept = end - first == 1 || (first..end).contains(&at);
            if is_kept {
                joined.extend(self.lines[first..end].iter_mut().map(std::mem::take));
            } else {
                let cells = self.cells(first..end, before);
                let rows = chunks(&cells, self.size.width);
                let is_text = |cells: &&[u16]| cells.iter().any(|cells| *cells != BLANK);
                let n_rows = rows.iter().rposition(is_text).map_or(1, |last| last + 1).min(end - first);
                for (n, line) in self.lines[first..first + n_rows].iter_mut().enumerate() {
                    let cells = rows.get(n).map(|cells| cells.to_vec()).unwrap_or_default();
                    joined.push(Line { cells, ..std::mem::take(line) });
                }
            }
            first = end;
        }
        self.lines = joined;
        for _ in self.lines.len()..n_before {
            if self.base > 0 {
                self.base -= 1;
                continue;
            }
            self.cursor.y = self.cursor.y.saturating_sub(1);
            if self.lines.len() < usize::from(self.size.height) {
                self.lines.push(Line::default());
            }
        }
    }

    /// Wraps lines in a narrower screen, from the last one up.
    fn wrap(&mut self, before: u16) {
        let height = usize::from(self.size.height);
        // Lines to be added, below the line with this index.
        let mut added: Vec<(usize, Vec<Line>)> = Vec::new();
        let mut n_added = 0;
        // Lines that are dropped are wrapped as the others.
        let mut n_kept = self.lines.len();
        let mut end = n_kept;
        while end > 0 {
            let first = self.first_of(end - 1);
            let range = first..end;
            end = first;
            let is_short = range.len() == 1 && self.lines[first].len() <= self.size.width;
            if is_short || range.contains(&(self.base + usize::from(self.cursor.y))) {
                continue;
            }
            let cells = self.cells(range.clone(), before);
            let rows = chunks(&cells, self.size.width);
            for (line, cells) in self.lines[range.clone()].iter_mut().zip(&rows) {
                line.cells = cells.to_vec();
            }
            let more = rows.iter().skip(range.len());
            let more: Vec<Line> =
                more.map(|cells| Line { cells: cells.to_vec(), continues: true, row: None }).collect();
            n_added += more.len();
            for _ in &more {
                if self.base > 0 {
                    let most = (n_kept + n_added).saturating_sub(height);
                    self.base += usize::from(self.base < most);
                } else if usize::from(self.cursor.y) + 1 < height {
                    self.cursor.y += 1;
                    n_kept = n_kept.saturating_sub(1);
                } else {
                    self.base += 1;
                }
            }
            added.push((range.end, more));
        }
        let mut lines = Vec::with_capacity(n_kept + n_added);
        let mut taken = self.lines.drain(..n_kept);
        let mut n_taken = 0;
        for (end, more) in added.into_iter().rev() {
            lines.extend(taken.by_ref().take(end.saturating_sub(n_taken)));
            n_taken = end;
            lines.extend(more);
        }
        lines.extend(taken);
        self.lines = lines;
    }

    /// The first line of the text that goes on at line `index`.
    fn first_of(&self, index: usize) -> usize {
        self.lines[..=index].iter().rposition(|line| !line.continues).unwrap_or(0)
    }

    /// The line after those of the text that begins at line `first`.
    fn end_of(&self, first: usize) -> usize {
        let rest = self.lines.get(first + 1..).unwrap_or_default();
        first + 1 + rest.iter().take_while(|line| line.continues).count()
    }

    /// The text of these lines of a screen of `width`: all cells of them, but the blank ones of the last.
    fn cells(&self, range: Range<usize>, width: u16) -> Vec<u16> {
        let lines = &self.lines[range];
        let mut all: Vec<u16> = Vec::new();
        for (n, line) in lines.iter().enumerate() {
            all.extend(&line.cells);
            let Some(next) = lines.get(n + 1) else { break };
            let n_missing = width.saturating_sub(n_cells(&line.cells));
            // A wide character had no room in the last cell.
            let is_no_room = n_missing > 0 && next.cells.first() == Some(&2);
            all.extend((u16::from(is_no_room)..n_missing).map(|_| BLANK));
        }
        let n_blank = all.iter().rev().take_while(|cells| **cells == BLANK).count();
        all.truncate(all.len() - n_blank);
        all
    }
}

/// The clusters of each row of `width` cells.
fn chunks(mut clusters: &[u16], width: u16) -> Vec<&[u16]> {
    let mut rows = Vec::new();
    while !clusters.is_empty() {
        let mut end = 0_u16;
        let fits = |cells: &&u16| {
            end = end.saturating_add((**cells).max(1));
            end <= width
        };
        let (row, rest) = clusters.split_at(clusters.iter().take_while(fits).count().max(1));
        rows.push(row);
        clusters = rest;
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::super::steps::recorded::{Case, check};

    /// What xterm.js 6.0 did.
    #[test]
    fn rows_are_where_xterm_js_has_put_them() {
        let cases: &[Case] = &[
            (
                (95, 20),
                0,
                (34, 2),
                &[95, 95, 47, 95, 95],
                &[(14, 20)],
                (13, 19),
                &[(0, -10), (1, -3), (2, 4)],
            ),
            ((93, 25), 0, (46, 1), &[93, 46, 1, 93, 1], &[(20, 7)], (19, 6), &[(0, -5), (1, 0)]),
            (
                (80, 21),
                5,
                (40, 7),
                &[4, 0, 40, 80, 80, 1, 4],
                &[(33, 25)],
                (32, 12),
                &[(0, 5), (1, 6), (2, 7)],
            ),
            (
                (67, 12),
                5,
                (33, 7),
                &[67, 67, 33, 1, 67, 0, 4],
                &[(14, 11)],
                (13, 10),
                &[(0, -6), (1, -1), (2, 4)],
            ),
            ((46, 12), 5, (4, 7), &[1, 4, 4, 4, 4, 46, 1], &[(19, 10)], (4, 7), &[(0, 5), (1, 6), (2, 7)]),
            (
                (78, 28),
                5,
                (4, 11),
                &[78, 78, 39, 4, 78, 4, 4, 39],
                &[(19, 10)],
                (4, 9),
                &[(0, -11), (1, -6), (2, -1), (3, 2), (4, 3), (5, 8), (6, 9)],
            ),
            (
                (72, 14),
                5,
                (0, 11),
                &[72, 72, 72, 72, 36, 0, 0, 72, 72],
                &[(29, 11)],
                (0, 10),
                &[(0, -5), (1, -2), (2, 1), (3, 4), (4, 7), (5, 9), (6, 10)],
            ),
            (
                (54, 14),
                5,
                (0, 11),
                &[1, 0, 54, 27, 0, 0, 0, 54, 27],
                &[(53, 8)],
                (0, 7),
                &[(0, 0), (1, 1), (2, 2), (3, 4), (4, 5), (5, 6), (6, 7)],
            ),
            (
                (42, 15),
                5,
                (0, 8),
                &[42, 0, 4, 0, 42],
                &[(42, 24), (36, 9)],
                (0, 8),
                &[(0, 4), (1, 6), (2, 7), (3, 8)],
            ),
            (
                (52, 18),
                0,
                (26, 3),
                &[4, 52, 26, 26, 26, 4],
                &[(35, 13), (23, 9)],
                (22, 8),
                &[(0, 0), (1, 1), (2, 4), (3, 6)],
            ),
            (
                (57, 12),
                5,
                (0, 10),
                &[4, 28, 1, 4, 28, 0, 57],
                &[(19, 11), (47, 13)],
                (0, 10),
                &[(0, 5), (1, 6), (2, 7), (3, 8), (4, 9), (5, 10)],
            ),
            (
                (97, 13),
                5,
                (24, 12),
                &[0, 97, 1, 97, 0, 97, 4, 48],
                &[(35, 8)],
                (24, 7),
                &[(0, -6), (1, -5), (2, -2), (3, -1), (4, 2), (5, 3), (6, 6), (7, 7)],
            ),
            (
                (51, 13),
                5,
                (25, 12),
                &[0, 4, 1, 51, 51, 51, 25, 25],
                &[(49, 8)],
                (25, 7),
                &[(0, -3), (1, -2), (2, -1), (3, 0), (4, 2), (5, 4), (6, 6), (7, 7)],
            ),
            (
                (85, 23),
                5,
                (0, 12),
                &[4, 85, 0, 85, 85, 42, 42, 0],
                &[(14, 23)],
                (0, 22),
                &[(0, -7), (1, -6), (2, 1), (3, 2), (4, 9), (5, 16), (6, 19), (7, 22)],
            ),
            (
                (59, 25),
                0,
                (0, 5),
                &[58, 58, 58, 58, 58, 0],
                &[(52, 25), (62, 25), (61, 25), (53, 25)],
                (0, 10),
                &[(0, 0), (1, 2), (2, 4), (3, 6), (4, 8), (5, 10)],
            ),
            (
                (91, 16),
                5,
                (0, 9),
                &[90, 0, 4, 44, 0, 90, 0, 90, 44],
                &[(95, 25), (95, 26), (87, 26), (63, 26), (58, 26)],
                (0, 11),
                &[(0, 5), (1, 7), (2, 8), (3, 9), (4, 10)],
            ),
            (
                (55, 31),
                0,
                (0, 3),
                &[0, 54, 4, 0, 54],
                &[(78, 31), (72, 10), (21, 10), (15, 10), (20, 10), (14, 9)],
                (0, 8),
                &[(0, 0), (1, 1), (2, 5), (3, 6)],
            ),
            (
                (90, 24),
                0,
                (0, 10),
                &[0, 4, 44, 1, 0, 4, 4, 44, 90, 0, 0],
                &[(80, 24), (79, 14), (76, 8), (83, 18), (80, 18)],
                (0, 11),
                &[(0, 0), (1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (6, 6), (7, 7), (8, 8), (9, 10), (10, 11)],
            ),
            (
                (82, 20),
                0,
                (2, 3),
                &[82, 82, 0, 4, 1, -2, 0],
                &[(75, 20), (73, 20), (24, 20), (34, 20)],
                (2, 7),
                &[(0, 0), (1, 3), (2, 6), (3, 7)],
            ),
            (
                (70, 15),
                5,
                (10, 13),
                &[0, 0, 1, 34, 4, 70, 0, 70, 35, 1],
                &[(69, 15), (65, 15), (61, 15)],
                (10, 14),
                &[(0, 4), (1, 5), (2, 6), (3, 7), (4, 8), (5, 9), (6, 11), (7, 12), (8, 14)],
            ),
            (
                (98, 12),
                5,
                (0, 11),
                &[4, 48, 4, 48, 4, 98, 0],
                &[(105, 12), (23, 12), (53, 12), (46, 12)],
                (0, 11),
                &[(0, 1), (1, 2), (2, 4), (3, 5), (4, 7), (5, 8), (6, 11)],
            ),
            (
                (99, 13),
                5,
                (0, 8),
                &[-24, 0, 98, 0],
                &[(108, 13), (118, 25), (115, 13), (116, 13), (66, 13), (58, 13)],
                (0, 9),
                &[(0, 5), (1, 6), (2, 7), (3, 9)],
            ),
            (
                (73, 14),
                0,
                (36, 8),
                &[72, 72, 72, 0, 0, 36, 4, 0, 36, 72, 72],
                &[(78, 14), (74, 14), (56, 17)],
                (36, 12),
                &[(0, 0), (1, 2), (2, 4), (3, 6), (4, 7), (5, 8), (6, 9), (7, 10), (8, 11)],
            ),
            (
                (73, 28),
                0,
                (0, 4),
                &[72, -18, 1, 0, 0, -2, -18],
                &[(63, 28), (53, 28), (49, 28), (41, 28)],
                (0, 5),
                &[(0, 0), (1, 2), (2, 3), (3, 4), (4, 5)],
            ),
            (
                (76, 20),
                5,
                (0, 14),
                &[76, 76, 76, 76, 76, 76, 4, 76, 76, 0],
                &[(74, 20), (39, 7)],
                (0, 6),
                &[(0, -11), (1, -9), (2, -7), (3, -5), (4, -3), (5, -1), (6, 1), (7, 2), (8, 4), (9, 6)],
            ),
            (
                (79, 31),
                0,
                (0, 7),
                &[78, 4, 4, 78, 38, 4, 78, 0, 38],
                &[(63, 19), (53, 19), (45, 21), (43, 21)],
                (0, 10),
                &[(0, 0), (1, 2), (2, 3), (3, 4), (4, 6), (5, 7), (6, 8), (7, 10)],
            ),
        ];
        check("vscode", 0, cases);
    }
}
