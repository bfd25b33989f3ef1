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

/// The same with the cursor of Ghostty in 2025, which leaves its text when the width changes: see `reflow/ghostty.rs`.
pub(crate) struct GhosttyTerminal(ReflowingTerminal);

impl GhosttyTerminal {
    /// The columns of a row up to its last character.
    fn n_used(&self, line: i32) -> usize {
        let row = &self.0.term.grid()[Line(line)];
        (0..self.0.term.grid().columns())
            .rev()
            .find(|n| !row[Column(*n)].is_empty())
            .map_or(0, |last| last + 1)
    }

    fn first_line(&self) -> i32 {
        -i32::try_from(self.0.term.grid().history_size()).unwrap_or(0)
    }

    /// The first row of the line that goes on in this one.
    fn line_start(&self, line: i32) -> i32 {
        let is_start = |line: &i32| *line <= self.first_line() || !self.0.row(*line - 1).1;
        (self.first_line()..=line).rev().find(is_start).unwrap_or(line)
    }
}

impl Emulator for GhosttyTerminal {
    fn new(size: Size) -> Self {
        Self(ReflowingTerminal::new(size))
    }

    fn shell(&mut self, text: &str) {
        self.0.shell(text);
    }

    fn resize(&mut self, size: Size) {
        let before = self.cursor();
        let (y, x) = (i32::from(before.y), usize::from(before.x));
        let is_after_text = x >= self.n_used(y);
        let n_before = usize::try_from(y - self.line_start(y)).unwrap() * self.0.term.grid().columns();
        let is_same_width = self.0.term.grid().columns() == usize::from(size.width);
        self.0.resize(size);
        if !is_after_text || is_same_width {
            return;
        }
        let width = usize::from(size.width);
        let start = self.line_start(i32::from(self.cursor().y));
        let n_above = match n_before {
            0 => (self.first_line()..start).rev().map(|line| self.n_used(line)).find(|n| *n > 0).unwrap_or(0),
            n => n % width,
        };
        let at = n_before + x.min((width - 1).saturating_sub(n_above));
        let row = (start + i32::try_from(at / width).unwrap()).max(0);
        let cursor = &mut self.0.term.grid_mut().cursor;
        cursor.point = Point::new(Line(row), Column(at % width));
        cursor.input_needs_wrap = false;
    }

    fn cursor(&self) -> Position {
        self.0.cursor()
    }

    fn lines(&mut self) -> (Vec<String>, Vec<String>) {
        self.0.lines()
    }

    fn take_bytes(&mut self) -> Vec<u8> {
        self.0.take_bytes()
    }
}

impl Write for GhosttyTerminal {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
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
