//! One line of a terminal, which programs write over with carriage returns, backspaces and a
//! few escape sequences: progress bars, spinners, overstruck manual pages.
//!
//! The line has no end: programs whose output is captured know no width to wrap at. What is
//! above it is out of reach; movements between lines are ignored.

use unicode_width::UnicodeWidthChar;

use super::escapes::LineEdit;

/// Distance of tab stops in columns.
const TAB_STOP: usize = 8;

/// A movement goes to this column at most, unless the line is longer.
const MAX_COLUMN: usize = 500;

/// A line with a cursor. `S` is the style of its characters.
///
/// Text that is only appended costs no more than its bytes; columns exist once something is
/// written over.
#[derive(Debug, Clone, Default)]
pub struct TerminalLine<S> {
    /// The text, while the cursor is at its end.
    runs: Vec<(String, S)>,
    /// The text by columns, once the cursor has been elsewhere.
    grid: Option<Grid<S>>,
}

#[derive(Debug, Clone)]
struct Grid<S> {
    cells: Vec<Cell<S>>,
    column: usize,
}

#[derive(Debug, Clone)]
struct Cell<S> {
    /// The character with its combining marks; empty in the columns that a tab or a wide
    /// character fills in addition.
    text: String,
    style: S,
}

impl<S: Clone + Default + PartialEq> TerminalLine<S> {
    /// Writes a character that is no control character, or a tab, at the cursor.
    pub fn put(&mut self, c: char, style: &S) {
        match &mut self.grid {
            Some(grid) => grid.put(c, style),
            None => append(&mut self.runs, c, style),
        }
    }

    /// Moves the cursor, or erases.
    pub fn edit(&mut self, edit: LineEdit) {
        let is_at_end = self.grid.is_none();
        let changes = match edit {
            LineEdit::Right(_) => true,
            LineEdit::Column(column) => column > 0 || !self.is_empty(),
            LineEdit::EraseRight => !is_at_end,
            LineEdit::Left(_) | LineEdit::EraseLeft | LineEdit::EraseLine => !self.is_empty(),
        };
        if !changes {
            return;
        }
        let grid = self.grid.get_or_insert_with(|| Grid::of(&self.runs));
        self.runs.clear();
        grid.edit(edit);
    }

    /// Whether nothing was written since the line began.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.grid.is_none()
    }

    /// The text.
    pub fn text(&self) -> String {
        self.runs().into_iter().map(|(text, _)| text).collect()
    }

    /// The text in runs of one style. Blanks at the end of a line that was edited are left out:
    /// they cannot be told from erased text.
    pub fn runs(&self) -> Vec<(String, S)> {
        self.grid.as_ref().map_or_else(|| self.runs.clone(), Grid::runs)
    }

    /// Ends the line, and returns its runs.
    pub fn take_runs(&mut self) -> Vec<(String, S)> {
        let runs = self.grid.as_ref().map(Grid::runs);
        let line = std::mem::take(self);
        runs.unwrap_or(line.runs)
    }
}

fn append<S: Clone + PartialEq>(runs: &mut Vec<(String, S)>, c: char, style: &S) {
    match runs.last_mut() {
        Some((text, last)) if last == style => text.push(c),
        _ => runs.push((c.into(), style.clone())),
    }
}

impl<S: Clone + Default + PartialEq> Grid<S> {
    fn of(runs: &[(String, S)]) -> Self {
        let mut grid = Self { cells: Vec::new(), column: 0 };
        for (text, style) in runs {
            for c in text.chars() {
                grid.put(c, style);
            }
        }
        grid
    }

    fn put(&mut self, c: char, style: &S) {
        if c == '\t' {
            return self.tab(style);
        }
        match c.width().unwrap_or(0) {
            0 => self.join(c),
            cells => self.write(c, cells, style),
        }
    }

    /// A mark belongs to the character before the cursor. Without one it has no place.
    fn join(&mut self, mark: char) {
        self.extend_to(self.column);
        let start = (0..self.column).rev().find(|at| !self.cells[*at].text.is_empty());
        if let Some(at) = start {
            self.cells[at].text.push(mark);
        }
    }

    fn write(&mut self, c: char, cells: usize, style: &S) {
        let end = self.column + cells;
        self.open_up_to(end);
        self.cells[self.column] = Cell { text: c.into(), style: style.clone() };
        for cell in &mut self.cells[self.column + 1..end] {
            *cell = Cell { text: String::new(), style: style.clone() };
        }
        self.column = end;
    }

    /// Makes room for what is written from the cursor to `end`: a wide character or a tab that is
    /// partly there becomes blanks.
    fn open_up_to(&mut self, end: usize) {
        self.split_at(self.column);
        self.split_at(end);
        self.extend_to(end);
    }

    fn split_at(&mut self, column: usize) {
        if self.cells.get(column).is_none_or(|cell| !cell.text.is_empty()) {
            return;
        }
        let start = (0..column).rev().find(|at| !self.cells[*at].text.is_empty()).unwrap_or(0);
        for at in start..self.cells.len() {
            if at > start && !self.cells[at].text.is_empty() {
                break;
            }
            self.cells[at].text = " ".to_owned();
        }
    }

    fn extend_to(&mut self, end: usize) {
        let blank = Cell { text: " ".to_owned(), style: S::default() };
        self.cells.resize(self.cells.len().max(end), blank);
    }

    /// A tab moves over what is there, and is kept as a tab where nothing is.
    fn tab(&mut self, style: &S) {
        let stop = (self.column / TAB_STOP + 1) * TAB_STOP;
        if self.column >= self.cells.len() {
            self.extend_to(self.column);
            let rest = Cell { text: String::new(), style: style.clone() };
            self.cells.push(Cell { text: "\t".to_owned(), style: style.clone() });
            self.cells.resize(stop, rest);
        }
        self.column = stop;
    }

    fn edit(&mut self, edit: LineEdit) {
        let furthest = self.cells.len().max(MAX_COLUMN);
        match edit {
            LineEdit::Column(column) => self.column = column.min(furthest),
            LineEdit::Left(count) => self.column = self.column.saturating_sub(count),
            LineEdit::Right(count) => self.column = self.column.saturating_add(count).min(furthest),
            LineEdit::EraseRight => {
                self.split_at(self.column);
                self.cells.truncate(self.column);
            }
            LineEdit::EraseLeft => {
                let end = (self.column + 1).min(self.cells.len());
                self.split_at(end);
                for cell in &mut self.cells[..end] {
                    *cell = Cell { text: " ".to_owned(), style: S::default() };
                }
            }
            LineEdit::EraseLine => self.cells.clear(),
        }
    }

    fn runs(&self) -> Vec<(String, S)> {
        let is_shown = |cell: &Cell<S>| !matches!(cell.text.as_str(), "" | " " | "\t");
        let n_shown = self.cells.iter().rposition(is_shown).map_or(0, |at| at + 1);
        let mut runs: Vec<(String, S)> = Vec::new();
        for cell in &self.cells[..n_shown] {
            match runs.last_mut() {
                Some((text, style)) if *style == cell.style => text.push_str(&cell.text),
                _ => runs.push((cell.text.clone(), cell.style.clone())),
            }
        }
        runs
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZero;

    use proptest::prelude::*;

    use crate::util::escapes::{Piece, pieces};

    use super::*;

    /// The lines of `text`.
    fn lines(text: &str) -> Vec<String> {
        let mut lines = Vec::new();
        let mut line = TerminalLine::default();
        for piece in pieces(text) {
            match piece {
                Piece::Char('\n') => lines.push(std::mem::take(&mut line).text()),
                Piece::Char(c) if c == '\t' || !c.is_control() => line.put(c, &()),
                Piece::Char(c) => LineEdit::of_char(c).into_iter().for_each(|edit| line.edit(edit)),
                Piece::Edit(edit) => line.edit(edit),
                Piece::Sgr(_) => {}
            }
        }
        lines.push(line.text());
        lines
    }

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(lines(text).join("\n"), expected, "{text:?}");
    }

    #[test]
    fn characters_are_written_over_from_the_column_of_the_cursor() {
        check("10%\r50%\r100%", "100%");
        check("working\rdone", "doneing");
        check("working\r\u{1b}[Kdone", "done");
        check("N\u{8}NA\u{8}AM\u{8}ME\u{8}E", "NAME");
        check("_\u{8}f_\u{8}o_\u{8}o", "foo");
        check("|\u{8}/\u{8}-", "-");
        check("\u{8}\u{8}a\r\rb", "b");
        check("ab\u{8}", "ab");
        check("one\rtwo\nthree\r\nfour", "two\nthree\nfour");
        check("a\u{1b}[5Cb\u{1b}[2Dc\u{1b}[2Gd\u{1b}[1Ge", "ed   cb");
        check("abcdef\u{1b}[3G\u{1b}[1Kx", "  xdef");
        check("abc\u{1b}[2Kx", "   x");
    }

    #[test]
    fn half_of_a_wide_character_or_of_a_tab_becomes_blank() {
        check("世界\rx", "x 界");
        check("世界\u{8}x", "世 x");
        check("世界\u{8}\u{8}x", "世x");
        check("a\tb\rxyz", "xyz     b");
        check("a\tb\r\tc", "a\tc");
        check("e\u{301}o\rx", "xo");
        check("ab\re\u{301}", "e\u{301}b");
    }

    #[test]
    fn text_that_is_only_appended_is_kept_exactly() {
        check("a \t世\u{301}👨‍👩‍👧 ", "a \t世\u{301}👨‍👩‍👧 ");
        let mut line = TerminalLine::default();
        line.edit(LineEdit::Column(0));
        line.edit(LineEdit::EraseRight);
        assert!(line.is_empty());
        line.put('a', &1);
        line.put('b', &1);
        line.put('c', &2);
        assert_eq!(line.take_runs(), [("ab".to_owned(), 1), ("c".to_owned(), 2)]);
        assert!(line.is_empty());
    }

    #[test]
    fn movements_far_to_the_right_cost_little() {
        let mut line = TerminalLine::default();
        line.put('a', &());
        for _ in 0..100 {
            line.edit(LineEdit::Right(usize::MAX));
            line.edit(LineEdit::Column(usize::MAX));
        }
        line.put('b', &());
        assert_eq!(line.text().len(), MAX_COLUMN + 1);
    }

    proptest! {
        /// The oracle is a terminal emulator whose screen is wider than any of the lines.
        #[test]
        fn lines_are_those_of_a_terminal(
            text in "([a-d 世é]|\r|\u{8}|\t|\n|\u{1b}\\[[0-2]?K|\u{1b}\\[[1-9]?[CDG]|\u{1b}\\[3[12]m){0,40}",
        ) {
            let mut parser = vt100::Parser::new(NonZero::new(50).unwrap(), NonZero::new(500).unwrap(), 0);
            // A line feed alone does not return to the first column.
            parser.process(text.replace('\n', "\r\n").as_bytes());
            let shown: Vec<String> = parser.screen().contents().lines().map(in_columns).collect();
            let ours: Vec<String> = lines(&text).iter().map(|line| in_columns(line)).collect();
            let (ours, shown) = (ours.join("\n"), shown.join("\n"));
            prop_assert_eq!(ours.trim_end(), shown.trim_end());
        }
    }

    /// Tabs as blanks, and none at the end.
    fn in_columns(line: &str) -> String {
        let mut out = String::new();
        let mut column = 0;
        for c in line.chars() {
            let cells = if c == '\t' { TAB_STOP - column % TAB_STOP } else { c.width().unwrap_or(0) };
            if c == '\t' {
                out.extend(std::iter::repeat_n(' ', cells));
            } else {
                out.push(c);
            }
            column += cells;
        }
        out.trim_end_matches(' ').to_owned()
    }
}
