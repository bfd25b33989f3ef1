//! The inline window: a document on the main screen, with native scrollback.
//!
//! The window shows the end of a [`Document`]. Final rows that no longer
//! fit leave it through a newline on the last row, as every program
//! scrolls, so every terminal and multiplexer keeps them in its own scrollback. Rows
//! that may change, and overlays, never leave that way.
//!
//! Invariants, checked against a terminal emulator in `tests/it/tui_painter.rs`:
//! each final row appears exactly once and in order in scrollback and screen; earlier
//! output of the shell stays until [`InlineWindow::reset`]. Work per frame depends
//! on the size of the screen, not on the length of the document. The [`Canvas`]
//! draws the cells.

use std::borrow::Cow;
use std::io::{self, Write};

use ratatui::layout::{Position, Size};

use super::super::text::Row;
use super::canvas::Canvas;
use super::cell_grid::narrow;
use super::control::Control;

/// The content to show, top to bottom: settled rows, live rows, the dock.
pub trait Document {
    /// Number of rows at the current width.
    fn len(&self) -> usize;
    /// The row at `index`, which is below [`Self::len`]. Only rows near the screen
    /// are requested.
    fn row(&self, index: usize) -> Cow<'_, Row>;
    /// Number of leading rows that will never change at this width. Does not decrease
    /// without a [`InlineWindow::reset`].
    fn stable(&self) -> usize;

    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The position of an overlay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    /// Ends on the last row in use, over the dock.
    Bottom,
    /// Ends above this document row; if there is no room, it appears below the
    /// document.
    Above(usize),
}

/// Rows on top of the document, full width. They change nothing below them.
#[derive(Debug, Clone)]
pub struct Overlay<'a> {
    pub rows: &'a [Row],
    pub anchor: Anchor,
}

/// The position of the terminal's cursor, at which input methods open their windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cursor {
    Document { row: usize, column: u16 },
    Overlay { overlay: usize, row: u16, column: u16 },
}

/// The contents of the screen.
pub struct Frame<'a> {
    pub document: &'a dyn Document,
    /// Later ones cover earlier ones.
    pub overlays: &'a [Overlay<'a>],
    /// `None` hides the cursor.
    pub cursor: Option<Cursor>,
}

impl<'a> Frame<'a> {
    pub fn new(document: &'a dyn Document) -> Self {
        Self { document, overlays: &[], cursor: None }
    }
}

/// A window on the end of a document. `W` is the terminal, or an emulator in tests.
#[derive(Debug)]
pub struct InlineWindow<W> {
    canvas: Canvas<W>,
    /// First screen row of the window; rows above belong to the shell.
    origin: u16,
    /// Number of document rows that have left the screen permanently.
    pushed: usize,
    /// Whether rows between `pushed` and the screen were hidden in the last frame.
    gap: bool,
    /// Number of settled rows in the last frame.
    stable: usize,
    /// The action needed before the next frame is painted.
    due: Due,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Due {
    Nothing,
    /// Blank the rows from `origin` on, one by one.
    EraseOwnRows,
    /// Blank screen and scrollback.
    Reset,
}

impl<W: Write> InlineWindow<W> {
    /// A window that starts on the row of `cursor`, or below it if the shell left
    /// text on that row.
    pub fn new(sink: W, size: Size, cursor: Position) -> Self {
        let canvas = Canvas::new(sink, size, cursor);
        let mut window = Self { canvas, origin: 0, pushed: 0, gap: false, stable: 0, due: Due::Nothing };
        window.resume(size, cursor);
        window
    }

    /// Whether links are written as OSC 8; off by default.
    pub fn set_links(&mut self, enabled: bool) {
        self.canvas.set_links(enabled);
    }

    pub fn size(&self) -> Size {
        self.canvas.size()
    }

    fn height(&self) -> u16 {
        self.size().height
    }

    /// Number of document rows that are already in the terminal's scrollback.
    pub fn pushed(&self) -> usize {
        self.pushed
    }

    pub fn sink(&self) -> &W {
        self.canvas.sink()
    }

    pub fn sink_mut(&mut self) -> &mut W {
        self.canvas.sink_mut()
    }

    /// Updates the screen with at most one write.
    ///
    /// # Errors
    /// If the terminal cannot be written to. The state is then as if the frame
    /// had been shown; a caller that continues should [`Self::reset`].
    pub fn draw(&mut self, frame: &Frame<'_>) -> io::Result<()> {
        self.compose(frame)?;
        self.canvas.flush()
    }

    /// Clears screen and scrollback; the next frame shows
    /// the document from its beginning. For a new width, and whenever settled rows
    /// change.
    pub fn reset(&mut self, size: Size) {
        self.canvas.set_size(size);
        (self.origin, self.pushed, self.gap) = (0, 0, false);
        self.due = Due::Reset;
    }

    /// Adopts a new height at the same width. The terminal has itself moved rows
    /// to or from its scrollback, together with the cursor; `cursor_row` is the cursor's
    /// new row. If it is unknown, if rows were hidden, or if the terminal has
    /// moved live rows into the scrollback, the positions cannot be computed and this is
    /// a [`Self::reset`].
    pub fn height_changed(&mut self, size: Size, cursor_row: Option<u16>) {
        let known =
            cursor_row.filter(|_| size.width == self.size().width && !self.gap && self.due == Due::Nothing);
        let Some(cursor_row) = known else {
            self.reset(size);
            return;
        };
        // The new position of our first row. Rows that came back from the scrollback are
        // final and stay above it like the shell's; rows that moved in have left.
        let origin = i64::from(self.origin) + i64::from(cursor_row) - i64::from(self.canvas.cursor().y);
        let pushed = self.pushed + usize::try_from(-origin.min(0)).unwrap_or(0);
        if pushed > self.stable.max(self.pushed) {
            self.reset(size);
            return;
        }
        self.canvas.set_size(size);
        self.pushed = pushed;
        self.origin = u16::try_from(origin.max(0)).unwrap_or(u16::MAX).min(self.height());
        self.due = Due::EraseOwnRows;
    }

    /// Releases the terminal: settled rows stay, live rows and the dock are removed, the
    /// cursor is placed below. For leaving and for suspending.
    ///
    /// # Errors
    /// If the terminal cannot be written to.
    pub fn release(&mut self, document: &dyn Document) -> io::Result<()> {
        self.compose(&Frame::new(document))?;
        let height = self.height();
        let top = self.top(document.len());
        let settled = document.stable().saturating_sub(top).min(usize::from(height - self.origin));
        let mut row = self.origin + narrow(settled);
        if row >= height {
            self.canvas.scroll(1)?;
            row = height - 1;
        }
        for y in row..height {
            self.canvas.erase_row(y)?;
        }
        self.pushed = self.pushed.max(document.stable());
        self.origin = row;
        self.canvas.forget();
        self.canvas.place_cursor(Position::new(0, row), true)?;
        self.canvas.flush()
    }

    /// Resumes after [`Self::release`]: painting continues at
    /// the row of `cursor`, or below it if the row has text.
    pub fn resume(&mut self, size: Size, cursor: Position) {
        self.canvas.set_size(size);
        self.origin = cursor.y.saturating_add(u16::from(cursor.x > 0)).min(self.height());
        self.canvas.forget_cursor(cursor);
        self.due = Due::EraseOwnRows;
    }

    /// Sends a control that does not affect the screen's contents.
    ///
    /// # Errors
    /// If the terminal cannot be written to.
    pub fn control(&mut self, control: &Control) -> io::Result<()> {
        self.canvas.control(control)
    }

    /// First document row on the screen.
    fn top(&self, len: usize) -> usize {
        len.saturating_sub(usize::from(self.height() - self.origin)).max(self.pushed)
    }

    fn compose(&mut self, frame: &Frame<'_>) -> io::Result<()> {
        self.settle_due()?;
        let document = frame.document;
        let len = document.len();
        self.make_room(len, frame.overlays)?;
        self.push_stable(document, len)?;

        let top = self.top(len);
        self.gap = top > self.pushed;
        self.stable = document.stable();
        // The content of each of our screen rows.
        let mut wanted: Vec<Cow<'_, Row>> = Vec::with_capacity(usize::from(self.height()));
        wanted.extend((self.origin..self.height()).zip(top..len).map(|(_, index)| document.row(index)));
        wanted.resize_with(usize::from(self.height() - self.origin), Cow::default);
        let used = self.origin + narrow(len.saturating_sub(top)).min(self.height() - self.origin);
        let mut first_rows = Vec::with_capacity(frame.overlays.len());
        for overlay in frame.overlays {
            let first = self.place(overlay, top, used);
            let covered = wanted.iter_mut().skip(usize::from(first.saturating_sub(self.origin)));
            for (slot, row) in covered.zip(overlay.rows) {
                *slot = Cow::Borrowed(row);
            }
            first_rows.push(first);
        }
        self.canvas.show((self.origin..self.height()).zip(wanted))?;

        let last = Position::new(0, used.max(self.origin + 1).min(self.height()) - 1);
        let wanted = frame.cursor.and_then(|cursor| self.locate(cursor, top, &first_rows));
        self.canvas.place_cursor(wanted.unwrap_or(last), wanted.is_some())
    }

    fn settle_due(&mut self) -> io::Result<()> {
        match std::mem::replace(&mut self.due, Due::Nothing) {
            Due::Nothing => Ok(()),
            Due::EraseOwnRows => (self.origin..self.height()).try_for_each(|y| self.canvas.erase_row(y)),
            Due::Reset => self.canvas.erase_all(),
        }
    }

    /// Scrolls the shell's rows away until the document, or the tallest overlay,
    /// fits below the remaining ones.
    fn make_room(&mut self, len: usize, overlays: &[Overlay<'_>]) -> io::Result<()> {
        let tallest = overlays.iter().map(|overlay| overlay.rows.len()).max().unwrap_or(0);
        let needed = len.saturating_sub(self.pushed).max(tallest).max(1);
        let over = (needed + usize::from(self.origin)).saturating_sub(usize::from(self.height()));
        let eat = narrow(over).min(self.origin);
        self.canvas.scroll(eat)?;
        self.origin -= eat;
        Ok(())
    }

    /// Moves stable rows that no longer fit to the scrollback, a screenful at a
    /// time, each drawn in its final form before it leaves.
    fn push_stable(&mut self, document: &dyn Document, len: usize) -> io::Result<()> {
        let height = usize::from(self.height());
        let target = len.saturating_sub(height).min(document.stable());
        while self.pushed < target {
            let count = (target - self.pushed).min(height);
            let leaving = (self.pushed..self.pushed + count).map(|index| document.row(index));
            self.canvas.show((0..self.height()).zip(leaving))?;
            self.canvas.scroll(narrow(count))?;
            self.pushed += count;
        }
        Ok(())
    }

    /// First screen row of an overlay.
    fn place(&self, overlay: &Overlay<'_>, top: usize, used: u16) -> u16 {
        let height = narrow(overlay.rows.len()).min(self.height() - self.origin);
        match overlay.anchor {
            Anchor::Bottom => used.max(self.origin + height) - height,
            Anchor::Above(row) => {
                let below = self.origin.saturating_add(narrow(row.saturating_sub(top))).min(self.height());
                if below - self.origin >= height { below - height } else { used.min(self.height() - height) }
            }
        }
    }

    fn locate(&self, cursor: Cursor, top: usize, first_rows: &[u16]) -> Option<Position> {
        let (y, column) = match cursor {
            Cursor::Document { row, column } => {
                (self.origin.checked_add(u16::try_from(row.checked_sub(top)?).ok()?)?, column)
            }
            Cursor::Overlay { overlay, row, column } => (first_rows.get(overlay)?.checked_add(row)?, column),
        };
        (y < self.height()).then(|| Position::new(column.min(self.size().width - 1), y))
    }
}
