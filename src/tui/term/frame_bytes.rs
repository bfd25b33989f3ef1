//! The bytes of a frame, and the row that they leave the cursor on.
//!
//! A frame names screen rows by number. While a terminal changes its size, its rows can move before a frame
//! arrives. The cursor moves with them, so such a frame names rows by their distance from the cursor: it
//! finds its own rows wherever they are, and touches none above them.

use std::io::{self, Write as _};

use ratatui::backend::{Backend as _, CrosstermBackend};
use ratatui::buffer::Cell;
use ratatui::layout::Position;

const RESET_OF_BACKEND: &[u8] = b"\x1b[39m\x1b[49m\x1b[59m\x1b[0m";
const RESET: &[u8] = b"\x1b[0m";

/// A cell to write, with its column and row.
pub(super) type CellUpdate<'c> = (u16, u16, &'c Cell);

/// A frame being composed.
#[derive(Debug, Default)]
pub(super) struct FrameBytes {
    bytes: Vec<u8>,
    /// Whether colours have the form that terminals of 16 colours know. It is that of [`Abilities`](super::Abilities).
    pub(super) has_16_colors: bool,
    /// The row of the cursor, where rows are named by their distance from it.
    cursor_row: Option<u16>,
}

impl FrameBytes {
    /// Names rows by their distance from the cursor, which is on row `y`, until the frame is taken.
    pub(super) fn start_at_cursor(&mut self, y: u16) {
        self.cursor_row = Some(y);
    }

    /// Names rows by number.
    pub(super) fn start_at_top(&mut self) {
        self.cursor_row = None;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The frame. The next one names rows by number.
    pub(super) fn take(&mut self) -> Vec<u8> {
        self.cursor_row = None;
        std::mem::take(&mut self.bytes)
    }

    /// Writes what does not move the cursor to another row.
    pub(super) fn push(&mut self, bytes: impl AsRef<[u8]>) {
        self.bytes.extend_from_slice(bytes.as_ref());
    }

    /// Writes controls at the beginning of row `y`.
    ///
    /// # Errors
    /// Like [`Self::go_to`].
    pub(super) fn push_at(&mut self, y: u16, controls: &str) -> io::Result<()> {
        self.go_to(Position::new(0, y))?;
        self.push(controls);
        Ok(())
    }

    /// Moves the cursor.
    ///
    /// # Errors
    /// None in practice: the frame is composed in memory.
    pub(super) fn go_to(&mut self, at: Position) -> io::Result<()> {
        let Some(row) = self.cursor_row.replace(at.y) else {
            self.cursor_row = None;
            return write!(self.bytes, "\x1b[{};{}H", at.y + 1, at.x + 1);
        };
        if at.y < row {
            write!(self.bytes, "\x1b[{}A", row - at.y)?;
        }
        // Line feeds do not stop at the end of a screen that became lower.
        self.push("\n".repeat(usize::from(at.y.saturating_sub(row))));
        if at.x == 0 { self.bytes.write_all(b"\r") } else { write!(self.bytes, "\x1b[{}G", at.x + 1) }
    }

    /// Scrolls a screen whose last row the cursor is on.
    pub(super) fn feed_lines(&mut self, n: u16) {
        self.push("\n".repeat(usize::from(n)));
    }

    /// Writes cells. Each of them that does not follow the one before takes a movement of the cursor.
    ///
    /// # Errors
    /// Like [`Self::go_to`].
    pub(super) fn draw(&mut self, cells: &[CellUpdate<'_>]) -> io::Result<()> {
        if self.cursor_row.is_none() {
            let drawn = self.encoded(cells)?;
            self.push(drawn);
            return Ok(());
        }
        for run in cells.chunk_by(|a, b| (a.0 + 1, a.1) == (b.0, b.1)) {
            let Some((x, y, _)) = run.first() else { continue };
            self.go_to(Position::new(*x, *y))?;
            let drawn = self.encoded(run)?;
            // The backend begins with a movement of its own.
            let start = drawn.iter().position(|byte| *byte == b'H').map_or(0, |at| at + 1);
            self.push(&drawn[start..]);
        }
        Ok(())
    }

    fn encoded(&self, cells: &[CellUpdate<'_>]) -> io::Result<Vec<u8>> {
        let mut drawn = Vec::new();
        CrosstermBackend::new(&mut drawn).draw(cells.iter().copied())?;
        shorten_reset(&mut drawn);
        Ok(if self.has_16_colors {
            with_16_colors(&String::from_utf8_lossy(&drawn)).into_bytes()
        } else {
            drawn
        })
    }

    /// Writes what may move the cursor anywhere, with the cursor at `at`.
    ///
    /// # Errors
    /// Like [`Self::go_to`].
    pub(super) fn draw_picture(&mut self, at: Position, picture: &[u8]) -> io::Result<()> {
        let is_relative = self.cursor_row.is_some();
        self.go_to(at)?;
        if is_relative {
            self.push("\x1b7");
        }
        self.push(picture);
        if is_relative {
            self.push("\x1b8");
        }
        Ok(())
    }
}

/// Replaces how the backend ends a run by the one sequence that means all of it.
fn shorten_reset(bytes: &mut Vec<u8>) {
    if bytes.ends_with(RESET_OF_BACKEND) {
        bytes.truncate(bytes.len() - RESET_OF_BACKEND.len());
        bytes.extend_from_slice(RESET);
    }
}

/// `drawn` with the first 16 colours as `30` to `37` and `90` to `97`, in place of `38;5;0` to `38;5;15`, and
/// backgrounds likewise.
fn with_16_colors(drawn: &str) -> String {
    let (mut written, mut rest) = (String::with_capacity(drawn.len()), drawn);
    while let Some((before, sequence)) = rest.split_once("\x1b[") {
        let end = sequence.find(|c: char| !c.is_ascii_digit() && c != ';').unwrap_or(sequence.len());
        let (parameters, after) = sequence.split_at(end);
        let parameters =
            if after.starts_with('m') { with_short_colors(parameters) } else { parameters.to_owned() };
        written.extend([before, "\x1b[", &parameters]);
        rest = after;
    }
    written + rest
}

fn with_short_colors(parameters: &str) -> String {
    let mut short = Vec::new();
    let mut parameters = parameters.split(';').map(str::to_owned).peekable();
    while let Some(parameter) = parameters.next() {
        let base = match parameter.as_str() {
            "38" => 30,
            "48" => 40,
            _ => {
                short.push(parameter);
                continue;
            }
        };
        let form = parameters.next().unwrap_or_default();
        let color = parameters.peek().filter(|_| form == "5").and_then(|color| color.parse::<u8>().ok());
        match color {
            Some(color @ 0..16) => {
                parameters.next();
                short.push((base + color % 8 + if color < 8 { 0 } else { 60 }).to_string());
            }
            _ => short.extend([parameter, form]),
        }
    }
    short.join(";")
}

#[cfg(test)]
mod tests {
    use ratatui::style::{Color, Modifier, Style};

    use super::*;

    #[test]
    fn terminals_of_16_colors_get_them_in_their_form() {
        let drawn = |style: Style, has_16_colors: bool| {
            let mut cell = Cell::new("38;5;9m");
            cell.set_style(style);
            let mut frame = FrameBytes { has_16_colors, ..FrameBytes::default() };
            frame.draw(&[(0, 0, &cell)]).unwrap();
            String::from_utf8(frame.take()).unwrap()
        };
        let check = |style: Style, expected: &str| {
            assert_eq!(drawn(style, true), format!("\x1b[1;1H\x1b[{expected}m38;5;9m\x1b[0m"), "{style:?}");
        };
        check(Style::new().fg(Color::Indexed(9)), "91;49");
        check(Style::new().fg(Color::LightRed).bg(Color::Blue), "91;44");
        check(Style::new().fg(Color::Indexed(0)).bg(Color::Indexed(15)), "30;107");
        check(Style::new().bg(Color::Indexed(8)), "39;100");
        check(Style::new().fg(Color::Indexed(200)).bg(Color::Indexed(7)), "38;5;200;47");
        check(Style::new().fg(Color::Rgb(5, 9, 3)).bg(Color::Red), "38;2;5;9;3;41");
        check(Style::new().add_modifier(Modifier::BOLD), "1");
        let indexed = drawn(Style::new().fg(Color::Indexed(9)), false);
        assert_eq!(indexed, "\x1b[1;1H\x1b[38;5;9;49m38;5;9m\x1b[0m");
    }

    #[test]
    fn rows_are_named_by_number_or_by_their_distance_from_the_cursor() {
        let cell = Cell::new("x");
        let compose = |frame: &mut FrameBytes| {
            frame.go_to(Position::new(0, 3)).unwrap();
            frame.draw(&[(2, 5, &cell), (3, 5, &cell), (9, 5, &cell)]).unwrap();
            frame.go_to(Position::new(4, 1)).unwrap();
            String::from_utf8(frame.take()).unwrap()
        };
        let mut frame = FrameBytes::default();
        assert_eq!(compose(&mut frame), "\x1b[4;1H\x1b[6;3Hxx\x1b[6;10Hx\x1b[0m\x1b[2;5H");
        frame.start_at_cursor(7);
        assert_eq!(compose(&mut frame), "\x1b[4A\r\n\n\x1b[3Gxx\x1b[0m\x1b[10Gx\x1b[0m\x1b[4A\x1b[5G");
        assert_eq!(compose(&mut frame), "\x1b[4;1H\x1b[6;3Hxx\x1b[6;10Hx\x1b[0m\x1b[2;5H", "the next one");
    }
}
