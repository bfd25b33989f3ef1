//! A grid of cells on which diagrams are drawn: lines that join, and text.
//!
//! Lines are stored as the directions in which they leave a cell, so corners and
//! junctions result from what is drawn there. Lines of different nets that cross are
//! not joined: the vertical one passes over the other.

use super::super::super::text::{graphemes, width};

/// What a piece of a drawing is, for its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Ink {
    Line,
    /// The text of a node, a participant or a note.
    Text,
    /// The text beside a line, the title of a frame.
    Label,
}

/// A row of a drawing: pieces side by side, without blanks at the end.
pub(in super::super) type DrawnRow = Vec<(Ink, String)>;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) enum Stroke {
    #[default]
    Plain,
    Dotted,
    Thick,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dir {
    Up,
    Down,
    Left,
    Right,
}

impl Dir {
    fn bit(self) -> u8 {
        match self {
            Self::Up => 1,
            Self::Down => 2,
            Self::Left => 4,
            Self::Right => 8,
        }
    }

    /// Columns and rows to the next cell.
    pub(super) fn step(self) -> (isize, isize) {
        match self {
            Self::Up => (0, -1),
            Self::Down => (0, 1),
            Self::Left => (-1, 0),
            Self::Right => (1, 0),
        }
    }
}

const VERTICAL: u8 = 1 | 2;
const HORIZONTAL: u8 = 4 | 8;

/// Lines that belong together and are joined where they meet.
pub(super) type NetId = u32;
/// The borders of boxes and frames.
pub(super) const BORDER: NetId = 0;

#[derive(Debug, Clone, Default)]
enum Cell {
    #[default]
    Blank,
    Line {
        bits: u8,
        stroke: Stroke,
        is_round: bool,
        net: NetId,
    },
    Text(Ink, Box<str>),
    /// Covered by the cluster on its left.
    Covered,
}

/// The grid. What is drawn outside of it is dropped.
#[derive(Debug)]
pub(super) struct Sheet {
    n_columns: usize,
    cells: Vec<Cell>,
}

impl Sheet {
    pub(super) fn new(n_columns: usize, n_rows: usize) -> Self {
        Self { n_columns, cells: vec![Cell::Blank; n_columns * n_rows] }
    }

    fn at(&mut self, x: usize, y: usize) -> Option<&mut Cell> {
        if x >= self.n_columns {
            return None;
        }
        self.cells.get_mut(y * self.n_columns + x)
    }

    /// Adds directions to a cell. A crossing of two nets becomes a vertical line.
    fn add(&mut self, x: usize, y: usize, more: u8, of: Stroke, in_net: NetId) {
        let Some(cell) = self.at(x, y) else { return };
        match cell {
            Cell::Line { bits, stroke, net, .. } => {
                let crosses = *net != in_net
                    && matches!((*bits, more), (VERTICAL, HORIZONTAL) | (HORIZONTAL, VERTICAL));
                if crosses && more == HORIZONTAL {
                    return;
                }
                if crosses {
                    *cell = Cell::Line { bits: more, stroke: of, is_round: false, net: in_net };
                    return;
                }
                *bits |= more;
                if *stroke != of {
                    *stroke = Stroke::Plain;
                }
            }
            Cell::Text(..) | Cell::Covered => {}
            Cell::Blank => *cell = Cell::Line { bits: more, stroke: of, is_round: false, net: in_net },
        }
    }

    /// A horizontal line from one cell to another, both included. Where it begins and ends,
    /// it leaves the cell only towards the other.
    pub(super) fn horizontal(&mut self, y: usize, x0: usize, x1: usize, stroke: Stroke, net: NetId) {
        self.line((x0, y), x1.saturating_sub(x0), true, [false; 2], stroke, net);
    }

    pub(super) fn vertical(&mut self, x: usize, y0: usize, y1: usize, stroke: Stroke, net: NetId) {
        self.line((x, y0), y1.saturating_sub(y0), false, [false; 2], stroke, net);
    }

    /// The same, over `steps` more cells to the right or down; where it `continues`, it leaves its
    /// first or last cell on both sides.
    pub(super) fn line(
        &mut self,
        (x, y): (usize, usize),
        steps: usize,
        is_horizontal: bool,
        continues: [bool; 2],
        stroke: Stroke,
        net: NetId,
    ) {
        let (back, onward) = if is_horizontal { (Dir::Left, Dir::Right) } else { (Dir::Up, Dir::Down) };
        for at in 0..=steps {
            let before = if at > 0 || continues[0] { back.bit() } else { 0 };
            let after = if at < steps || continues[1] { onward.bit() } else { 0 };
            let (x, y) = if is_horizontal { (x + at, y) } else { (x, y + at) };
            self.add(x, y, before | after, stroke, net);
        }
    }

    /// Lets the line in a cell also leave towards `dir`; a cell with text stays as it is.
    pub(super) fn join(&mut self, x: usize, y: usize, dir: Dir, stroke: Stroke, net: NetId) {
        self.add(x, y, dir.bit(), stroke, net);
    }

    /// A box with its border; what was inside is erased.
    pub(super) fn rect(
        &mut self,
        (x, y): (usize, usize),
        (w, h): (usize, usize),
        stroke: Stroke,
        is_round: bool,
    ) {
        let (right, bottom) = (x + w.saturating_sub(1), y + h.saturating_sub(1));
        for row in y..=bottom {
            for column in x..=right {
                if let Some(cell) = self.at(column, row) {
                    *cell = Cell::Blank;
                }
            }
        }
        self.frame((x, y), (w, h), stroke);
        for (column, row) in [(x, y), (right, y), (x, bottom), (right, bottom)] {
            if let Some(Cell::Line { is_round: rounded, .. }) = self.at(column, row) {
                *rounded = is_round;
            }
        }
    }

    /// A border around what is drawn inside.
    pub(super) fn frame(&mut self, (x, y): (usize, usize), (w, h): (usize, usize), stroke: Stroke) {
        let (right, bottom) = (x + w.saturating_sub(1), y + h.saturating_sub(1));
        self.horizontal(y, x, right, stroke, BORDER);
        self.horizontal(bottom, x, right, stroke, BORDER);
        self.vertical(x, y, bottom, stroke, BORDER);
        self.vertical(right, y, bottom, stroke, BORDER);
    }

    /// Text over what is there. The caller has sanitised it.
    pub(super) fn text(&mut self, x: usize, y: usize, text: &str, ink: Ink) {
        let mut column = x;
        for (grapheme, cells) in graphemes(text) {
            if cells == 0 || column + cells > self.n_columns {
                continue;
            }
            for at in column..column + cells {
                if let Some(cell) = self.at(at, y) {
                    *cell = if at == column { Cell::Text(ink, grapheme.into()) } else { Cell::Covered };
                }
            }
            column += cells;
        }
    }

    /// Lines of text, each in the middle of `w` columns.
    pub(super) fn centered(&mut self, x: usize, y: usize, w: usize, lines: &[String], ink: Ink) {
        for (line_idx, line) in lines.iter().enumerate() {
            self.text(x + w.saturating_sub(width(line)) / 2, y + line_idx, line, ink);
        }
    }

    pub(super) fn rows(&self) -> Vec<DrawnRow> {
        let mut rows: Vec<DrawnRow> = self.cells.chunks(self.n_columns.max(1)).map(row).collect();
        while rows.last().is_some_and(Vec::is_empty) {
            rows.pop();
        }
        rows
    }
}

fn row(cells: &[Cell]) -> DrawnRow {
    let mut pieces: DrawnRow = Vec::new();
    let mut blanks = 0;
    for cell in cells {
        let (ink, glyph): (Ink, &str) = match cell {
            Cell::Blank => {
                blanks += 1;
                continue;
            }
            Cell::Covered => continue,
            Cell::Line { bits, stroke, is_round, .. } => (Ink::Line, glyph(*bits, *stroke, *is_round)),
            Cell::Text(_, text) if text.trim().is_empty() => {
                blanks += width(text);
                continue;
            }
            Cell::Text(ink, text) => (*ink, text),
        };
        let before = " ".repeat(std::mem::take(&mut blanks));
        match pieces.last_mut() {
            Some((last, text)) if *last == ink => *text += &[&before, glyph].concat(),
            _ => {
                if !before.is_empty() {
                    pieces.push((Ink::Line, before));
                }
                match pieces.last_mut() {
                    Some((last, text)) if *last == ink => text.push_str(glyph),
                    _ => pieces.push((ink, glyph.to_owned())),
                }
            }
        }
    }
    pieces
}

fn glyph(bits: u8, stroke: Stroke, is_round: bool) -> &'static str {
    const PLAIN: [&str; 16] =
        [" ", "│", "│", "│", "─", "┘", "┐", "┤", "─", "└", "┌", "├", "─", "┴", "┬", "┼"];
    const THICK: [&str; 16] =
        [" ", "┃", "┃", "┃", "━", "┛", "┓", "┫", "━", "┗", "┏", "┣", "━", "┻", "┳", "╋"];
    let is_straight = |along: u8| bits & along != 0 && bits & !along == 0;
    match (stroke, bits) {
        (Stroke::Thick, _) => THICK[usize::from(bits & 15)],
        (Stroke::Dotted, _) if is_straight(VERTICAL) => "┆",
        (Stroke::Dotted, _) if is_straight(HORIZONTAL) => "┄",
        (_, 5) if is_round => "╯",
        (_, 6) if is_round => "╮",
        (_, 9) if is_round => "╰",
        (_, 10) if is_round => "╭",
        _ => PLAIN[usize::from(bits & 15)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(sheet: &Sheet) -> String {
        let text = |row: &DrawnRow| row.iter().map(|(_, text)| text.as_str()).collect::<String>();
        sheet.rows().iter().map(text).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn lines_of_a_net_join_and_others_pass_over() {
        let mut sheet = Sheet::new(7, 5);
        sheet.horizontal(2, 0, 6, Stroke::Plain, 1);
        sheet.vertical(2, 0, 4, Stroke::Plain, 2);
        sheet.vertical(4, 0, 4, Stroke::Plain, 1);
        sheet.vertical(6, 2, 4, Stroke::Dotted, 1);
        assert_eq!(drawn(&sheet), "  │ │\n  │ │\n──│─┼─┐\n  │ │ ┆\n  │ │ ┆");
    }

    #[test]
    fn text_takes_the_cells_it_is_wide() {
        let mut sheet = Sheet::new(8, 3);
        sheet.rect((0, 0), (8, 3), Stroke::Plain, true);
        sheet.text(2, 1, "世e\u{301}x", Ink::Text);
        sheet.text(7, 0, "世", Ink::Text);
        assert_eq!(drawn(&sheet), "╭──────╮\n│ 世e\u{301}x │\n╰──────╯");
    }
}
