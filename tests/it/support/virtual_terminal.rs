//! A terminal in memory: the `vt100` emulator behind a writer, with scrollback.
//!
//! It keeps what was written, so that a test can also look at the bytes of a
//! frame. It does not wrap rows anew when its width changes; no assertion about
//! that belongs here.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on stops where it is; unit tests may anyway")]

use std::io::{self, Write};
use std::num::NonZeroU16;

use ratatui::layout::{Position, Size};

/// Rows of scrollback it remembers.
const SCROLLBACK: usize = 200_000;

pub(crate) struct VirtualTerminal {
    parser: vt100::Parser,
    /// Every write since the last [`Self::take_writes`].
    writes: Vec<Vec<u8>>,
}

impl VirtualTerminal {
    pub(crate) fn new(size: Size) -> Self {
        let (width, height) = (cells(size.width), cells(size.height));
        Self { parser: vt100::Parser::new(height, width, SCROLLBACK), writes: Vec::new() }
    }

    /// Prints like a program on the cooked terminal would; not recorded.
    pub(crate) fn shell(&mut self, text: &str) {
        self.parser.process(text.replace('\n', "\r\n").as_bytes());
    }

    /// Shows bytes without recording them.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        self.parser.process(bytes);
    }

    pub(crate) fn resize(&mut self, size: Size) {
        self.parser.screen_mut().set_size(cells(size.height), cells(size.width));
    }

    /// Where the cursor stands.
    pub(crate) fn cursor(&self) -> Position {
        let (y, x) = self.parser.screen().cursor_position();
        Position::new(x, y)
    }

    pub(crate) fn cursor_visible(&self) -> bool {
        !self.parser.screen().hide_cursor()
    }

    pub(crate) fn take_writes(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.writes)
    }

    /// The rows on the screen, without trailing blanks.
    pub(crate) fn screen(&self) -> Vec<String> {
        let (_, columns) = self.parser.screen().size();
        self.parser.screen().rows(0, columns.get()).map(|row| row.trim_end().to_owned()).collect()
    }

    /// The screen with its colours.
    pub(crate) fn picture(&self) -> &vt100::Screen {
        self.parser.screen()
    }

    /// The contents of a cell of the screen.
    pub(crate) fn cell(&self, x: u16, y: u16) -> String {
        self.parser.screen().cell(y, x).map(|cell| cell.contents().to_owned()).unwrap_or_default()
    }

    /// The rows that left the screen, oldest first, without trailing blanks.
    pub(crate) fn scrollback(&mut self) -> Vec<String> {
        let (height, columns) = self.parser.screen().size();
        let (height, columns) = (usize::from(height.get()), columns.get());
        let screen = self.parser.screen_mut();
        screen.set_scrollback(usize::MAX);
        let mut rows = Vec::new();
        let mut left = screen.scrollback();
        while left > 0 {
            screen.set_scrollback(left);
            let taken = left.min(height);
            rows.extend(screen.rows(0, columns).take(taken).map(|row| row.trim_end().to_owned()));
            left -= taken;
        }
        screen.set_scrollback(0);
        rows
    }

    /// Scrollback and screen as one list.
    pub(crate) fn everything(&mut self) -> Vec<String> {
        let mut rows = self.scrollback();
        rows.extend(self.screen());
        rows
    }
}

impl Write for VirtualTerminal {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.parser.process(bytes);
        self.writes.push(bytes.to_vec());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn cells(count: u16) -> NonZeroU16 {
    NonZeroU16::new(count).unwrap()
}
