//! A terminal in memory that wraps its rows again when its width changes, and a common face
//! for it and [`VirtualTerminal`], which cuts them.

use std::io::{self, Write};

use alacritty_terminal::event::VoidListener;
use alacritty_terminal::grid::{Dimensions, GridCell as _};
use alacritty_terminal::index::{Column, Line, Point};
use alacritty_terminal::term::cell::Flags;
use alacritty_terminal::term::{Config, Term};
use alacritty_terminal::vte::ansi::Processor;
use ratatui::layout::{Position, Size};

use super::virtual_terminal::VirtualTerminal;

/// Rows of scrollback it remembers.
const SCROLLBACK: usize = 20_000;

/// What a resize test needs of a terminal.
pub(crate) trait Emulator: Write {
    /// Whether it is known where a cursor goes that is after text which ends at the edge.
    const KNOWS_EDGE: bool = false;

    fn new(size: Size) -> Self;
    /// Prints like a program on the cooked terminal would.
    fn shell(&mut self, text: &str);
    fn resize(&mut self, size: Size);
    fn cursor(&self) -> Position;
    /// The lines in the scrollback and those on the screen; rows that the terminal wrapped are
    /// joined. A line that begins in the scrollback counts to it.
    fn lines(&mut self) -> (Vec<String>, Vec<String>);
    /// Bytes written since the last call.
    fn take_bytes(&mut self) -> Vec<u8>;
}

/// Alacritty's terminal.
pub(crate) struct ReflowingTerminal {
    term: Term<VoidListener>,
    parser: Processor,
    written: Vec<u8>,
}

struct Cells(Size);

impl Dimensions for Cells {
    fn total_lines(&self) -> usize {
        self.0.height.into()
    }

    fn screen_lines(&self) -> usize {
        self.0.height.into()
    }

    fn columns(&self) -> usize {
        self.0.width.into()
    }
}

impl ReflowingTerminal {
    fn feed(&mut self, bytes: &[u8]) {
        self.parser.advance(&mut self.term, bytes);
        self.parser.stop_sync(&mut self.term);
    }

    /// The text of a row, and whether it goes on in the next.
    fn row(&self, line: i32) -> (String, bool) {
        let grid = self.term.grid();
        let row = &grid[Line(line)];
        let mut text = String::new();
        for column in 0..grid.columns() {
            let cell = &row[Column(column)];
            if !cell.flags.intersects(Flags::WIDE_CHAR_SPACER | Flags::LEADING_WIDE_CHAR_SPACER) {
                text.push(cell.c);
                text.extend(cell.zerowidth().unwrap_or_default());
            }
        }
        (text, row[Column(grid.columns() - 1)].flags.contains(Flags::WRAPLINE))
    }
}

impl Emulator for ReflowingTerminal {
    fn new(size: Size) -> Self {
        let config = Config { scrolling_history: SCROLLBACK, ..Config::default() };
        let term = Term::new(config, &Cells(size), VoidListener);
        Self { term, parser: Processor::new(), written: Vec::new() }
    }

    fn shell(&mut self, text: &str) {
        self.feed(text.replace('\n', "\r\n").as_bytes());
    }

    fn resize(&mut self, size: Size) {
        self.term.resize(Cells(size));
    }

    fn cursor(&self) -> Position {
        let point = self.term.grid().cursor.point;
        Position::new(u16::try_from(point.column.0).unwrap_or(0), u16::try_from(point.line.0).unwrap_or(0))
    }

    fn lines(&mut self) -> (Vec<String>, Vec<String>) {
        let grid = self.term.grid();
        let n_history = i32::try_from(grid.history_size()).unwrap_or(i32::MAX);
        let n_rows = i32::try_from(grid.screen_lines()).unwrap_or(i32::MAX);
        let (mut scrollback, mut screen) = (Vec::new(), Vec::new());
        let mut open: Option<String> = None;
        let mut begins_at = 0;
        for line in -n_history..n_rows {
            let (text, goes_on) = self.row(line);
            if open.is_none() {
                begins_at = line;
            }
            let whole = open.take().unwrap_or_default() + &text;
            if goes_on {
                open = Some(whole);
            } else {
                let lines = if begins_at < 0 { &mut scrollback } else { &mut screen };
                lines.push(whole.trim_end().to_owned());
            }
        }
        screen.extend(open);
        (scrollback, screen)
    }

    fn take_bytes(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.written)
    }
}

impl Write for ReflowingTerminal {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.feed(bytes);
        self.written.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The same with a cursor that leaves its text when the width changes, as in Ghostty of 2025 or in WezTerm: see
/// `reflow/ghostty.rs` and `reflow/wezterm.rs`.
pub(crate) struct LeavingCursor<const OF_WEZTERM: bool> {
    terminal: ReflowingTerminal,
    /// Where the cursor is after the last column, and that column.
    beyond: Option<(Position, usize)>,
}

pub(crate) type GhosttyTerminal = LeavingCursor<false>;
pub(crate) type WezTermTerminal = LeavingCursor<true>;

impl<const OF_WEZTERM: bool> LeavingCursor<OF_WEZTERM> {
    fn n_columns(&self) -> usize {
        self.terminal.term.grid().columns()
    }

    /// The columns of a row up to its last character.
    fn n_used(&self, line: i32) -> usize {
        let row = &self.terminal.term.grid()[Line(line)];
        (0..self.n_columns()).rev().find(|n| !row[Column(*n)].is_empty()).map_or(0, |last| last + 1)
    }

    fn first_line(&self) -> i32 {
        -i32::try_from(self.terminal.term.grid().history_size()).unwrap_or(0)
    }

    /// The first row of the line that goes on in this one.
    fn line_start(&self, line: i32) -> i32 {
        let is_start = |line: &i32| *line <= self.first_line() || !self.terminal.row(*line - 1).1;
        (self.first_line()..=line).rev().find(is_start).unwrap_or(line)
    }

    /// Row and column of the cursor, which is in `column` of a row that is `n_before` columns after the start of its
    /// line. That line begins in row `start` now.
    fn place(&self, start: i32, n_before: usize, column: usize, old_width: usize) -> (i32, usize) {
        let width = self.n_columns();
        let row = |at: usize| start + i32::try_from(at / width).unwrap_or(0);
        if OF_WEZTERM {
            let at = n_before + column;
            return match at % width {
                0 if width < old_width => (row(at) - 1, column),
                0 => (row(at) - 1, width),
                column => (row(at), column),
            };
        }
        let above = (self.first_line()..start).rev().map(|line| self.n_used(line)).find(|n| *n > 0);
        let n_above = if n_before == 0 { above.unwrap_or(0) } else { n_before % width };
        let at = n_before + column.min((width - 1).saturating_sub(n_above));
        (row(at), at % width)
    }
}

impl<const OF_WEZTERM: bool> Emulator for LeavingCursor<OF_WEZTERM> {
    const KNOWS_EDGE: bool = OF_WEZTERM;

    fn new(size: Size) -> Self {
        Self { terminal: ReflowingTerminal::new(size), beyond: None }
    }

    fn shell(&mut self, text: &str) {
        self.terminal.shell(text);
    }

    fn resize(&mut self, size: Size) {
        let (before, old_width) = (self.cursor(), self.n_columns());
        let beyond = self.beyond.take().filter(|(position, _)| *position == before);
        let y = i32::from(before.y);
        let column = beyond.map_or(usize::from(before.x), |(_, column)| column);
        let leaves = OF_WEZTERM || column >= self.n_used(y);
        let n_before = usize::try_from(y - self.line_start(y)).unwrap_or(0) * old_width;
        self.terminal.resize(size);
        if !leaves || old_width == self.n_columns() {
            return;
        }
        let start = self.line_start(i32::from(self.cursor().y));
        let (row, column) = self.place(start, n_before, column, old_width);
        let last = self.n_columns() - 1;
        let cursor = &mut self.terminal.term.grid_mut().cursor;
        cursor.point = Point::new(Line(row.max(0)), Column(column.min(last)));
        cursor.input_needs_wrap = false;
        self.beyond = (column > last).then(|| (self.cursor(), column));
    }

    fn cursor(&self) -> Position {
        self.terminal.cursor()
    }

    fn lines(&mut self) -> (Vec<String>, Vec<String>) {
        self.terminal.lines()
    }

    fn take_bytes(&mut self) -> Vec<u8> {
        self.terminal.take_bytes()
    }
}

impl<const OF_WEZTERM: bool> Write for LeavingCursor<OF_WEZTERM> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.terminal.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Emulator for VirtualTerminal {
    fn new(size: Size) -> Self {
        Self::new(size)
    }

    fn shell(&mut self, text: &str) {
        Self::shell(self, text);
    }

    fn resize(&mut self, size: Size) {
        Self::resize(self, size);
    }

    fn cursor(&self) -> Position {
        Self::cursor(self)
    }

    fn lines(&mut self) -> (Vec<String>, Vec<String>) {
        (self.scrollback(), self.screen())
    }

    fn take_bytes(&mut self) -> Vec<u8> {
        self.take_writes().concat()
    }
}
