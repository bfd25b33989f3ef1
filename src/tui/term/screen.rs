//! The painter: a document on the main screen, with native scrollback.
//!
//! The screen is a window on the end of a [`Document`]. Rows that are final and
//! no longer fit leave it through a newline on the last row, which is how every
//! program scrolls, so every terminal and multiplexer keeps them in its own
//! scrollback. Rows still changing, and overlays, never leave that way.
//!
//! Invariants, checked against a terminal emulator in `tests/it/tui_painter.rs`:
//! each final row stands exactly once and in order in scrollback and screen; what
//! the shell had printed stays until [`Screen::reset`]; a frame is at most one
//! write, and none if nothing changed; no erase-display outside of a reset (it
//! makes several terminals save the screen to scrollback) and no scroll regions
//! (a region of one row scrolls everything). Work per frame depends on the size
//! of the screen, not on the length of the document.
//!
//! For a fullscreen view the same painter serves: a document no longer than the
//! screen with no stable rows is never scrolled.

use std::borrow::Cow;
use std::io::{self, Write};
use std::num::NonZeroU16;

use ratatui::backend::{Backend, CrosstermBackend};
use ratatui::buffer::{Buffer, Cell, CellDiffOption, CellWidth};
use ratatui::layout::{Position, Rect, Size};

use super::super::text::{LinkTarget, Row, graphemes};
use super::control::Control;

/// What there is to show, top to bottom: settled rows, live rows, the dock.
pub trait Document {
    /// Number of rows at the current width.
    fn len(&self) -> usize;
    /// The row at `index`, which is below [`Self::len`]. Only rows near the screen
    /// are asked for.
    fn row(&self, index: usize) -> Cow<'_, Row>;
    /// How many leading rows will never change at this width. Does not shrink
    /// without a [`Screen::reset`].
    fn stable(&self) -> usize;

    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Where an overlay stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    /// It ends on the last row in use, over the dock.
    Bottom,
    /// It ends above this document row; where there is no room, it stands below the
    /// document.
    Above(usize),
}

/// Rows on top of the document, full width. They change nothing below them.
#[derive(Debug, Clone)]
pub struct Overlay<'a> {
    pub rows: &'a [Row],
    pub anchor: Anchor,
}

/// Where the terminal's cursor goes; input methods open their windows there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cursor {
    Document { row: usize, column: u16 },
    Overlay { overlay: usize, row: u16, column: u16 },
}

/// One picture of the screen.
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

/// The painter. `W` is the terminal, or an emulator in tests.
#[derive(Debug)]
pub struct Screen<W> {
    sink: W,
    /// The frame being composed.
    bytes: Vec<u8>,
    size: Size,
    /// First screen row that is ours; rows above belong to the shell.
    origin: u16,
    /// Document rows that have left the screen for good.
    pushed: usize,
    /// Whether rows between `pushed` and the screen were hidden in the last frame.
    gap: bool,
    /// How many rows were settled in the last frame.
    stable: usize,
    /// What is on the screen now.
    shown: Canvas,
    /// The canvas of the frame before, kept for its memory.
    spare: Canvas,
    /// What the next frame has to do to the terminal before painting.
    due: Due,
    cursor: Position,
    cursor_visible: Option<bool>,
    links: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Due {
    Nothing,
    /// Blank the rows from `origin` on, one by one.
    EraseOwnRows,
    /// Blank screen and scrollback.
    Reset,
}

impl<W: Write> Screen<W> {
    /// A painter that starts on the row of `cursor`, or below it if the shell left
    /// text there.
    pub fn new(sink: W, size: Size, cursor: Position) -> Self {
        let mut screen = Self {
            sink,
            bytes: Vec::new(),
            size: Size::new(1, 1),
            origin: 0,
            pushed: 0,
            gap: false,
            stable: 0,
            shown: Canvas::default(),
            spare: Canvas::default(),
            due: Due::Nothing,
            cursor,
            cursor_visible: None,
            links: false,
        };
        screen.resume(size, cursor);
        screen
    }

    /// Whether links are written as OSC 8; off until told otherwise.
    pub fn set_links(&mut self, enabled: bool) {
        self.links = enabled;
    }

    pub fn size(&self) -> Size {
        self.size
    }

    /// Document rows that are in the terminal's scrollback already.
    pub fn pushed(&self) -> usize {
        self.pushed
    }

    pub fn sink(&self) -> &W {
        &self.sink
    }

    pub fn sink_mut(&mut self) -> &mut W {
        &mut self.sink
    }

    /// Brings the screen up to date with one write, or none.
    ///
    /// # Errors
    /// When the terminal cannot be written to. The state is then as if the frame
    /// had been shown; a caller that goes on should [`Self::reset`].
    pub fn draw(&mut self, frame: &Frame<'_>) -> io::Result<()> {
        self.compose(frame)?;
        self.flush()
    }

    /// Forgets what is on the screen and in the scrollback; the next frame shows
    /// the document from its beginning. For a new width, and whenever settled rows
    /// change.
    pub fn reset(&mut self, size: Size) {
        self.set_size(size);
        (self.origin, self.pushed, self.gap) = (0, 0, false);
        self.due = Due::Reset;
    }

    /// Takes a new size without touching the scrollback: the window is painted
    /// again, and what left it earlier stays as it was wrapped then.
    pub fn keep_scrollback(&mut self, size: Size, document: &dyn Document) {
        self.set_size(size);
        (self.origin, self.gap) = (0, false);
        self.pushed = document.len().saturating_sub(usize::from(self.size.height)).min(document.stable());
        self.due = Due::EraseOwnRows;
    }

    /// Takes a new height at the old width. The terminal has moved the rows itself,
    /// to or from its scrollback, and the cursor with them; `cursor_row` is where
    /// it is now. Without an answer, or while rows were hidden, the arithmetic
    /// would be wrong and this is a [`Self::reset`]; so it is when the terminal has
    /// moved live rows out of reach.
    pub fn height_changed(&mut self, size: Size, cursor_row: Option<u16>) {
        let known =
            cursor_row.filter(|_| size.width == self.size.width && !self.gap && self.due == Due::Nothing);
        let Some(cursor_row) = known else {
            self.reset(size);
            return;
        };
        // Where our first row is now. Rows that came back out of the scrollback are
        // final and stand above it like the shell's; rows that went in have left.
        let origin = i64::from(self.origin) + i64::from(cursor_row) - i64::from(self.cursor.y);
        let pushed = self.pushed + usize::try_from(-origin.min(0)).unwrap_or(0);
        if pushed > self.stable.max(self.pushed) {
            self.reset(size);
            return;
        }
        self.set_size(size);
        self.pushed = pushed;
        self.origin = u16::try_from(origin.max(0)).unwrap_or(u16::MAX).min(self.size.height);
        self.due = Due::EraseOwnRows;
    }

    /// Gives the terminal back: settled rows stay, live rows and the dock go, the
    /// cursor stands below. For leaving and for suspending.
    ///
    /// # Errors
    /// When the terminal cannot be written to.
    pub fn release(&mut self, document: &dyn Document) -> io::Result<()> {
        self.compose(&Frame::new(document))?;
        let height = self.size.height;
        let top = self.top(document.len());
        let settled = document.stable().saturating_sub(top).min(usize::from(height - self.origin));
        let mut row = self.origin + narrow(settled);
        if row >= height {
            self.scroll_by(1)?;
            row = height - 1;
        }
        for y in row..height {
            self.erase_row(y)?;
        }
        self.pushed = self.pushed.max(document.stable());
        self.origin = row;
        self.shown.blank(self.size);
        self.place_cursor(Position::new(0, row), true)?;
        self.flush()
    }

    /// Takes the terminal over again after [`Self::release`]: painting goes on at
    /// the row of `cursor`, or below it if something stands there.
    pub fn resume(&mut self, size: Size, cursor: Position) {
        self.set_size(size);
        self.origin = cursor.y.saturating_add(u16::from(cursor.x > 0)).min(self.size.height);
        self.cursor = cursor;
        self.cursor_visible = None;
        self.due = Due::EraseOwnRows;
    }

    /// Tells the terminal something that is not on the screen.
    ///
    /// # Errors
    /// When the terminal cannot be written to.
    pub fn control(&mut self, control: &Control) -> io::Result<()> {
        self.sink.write_all(control.encode().as_bytes())?;
        self.sink.flush()
    }

    /// Takes a size; a terminal that reports none at all counts as one cell.
    fn set_size(&mut self, size: Size) {
        self.size = Size::new(size.width.max(1), size.height.max(1));
        self.shown.blank(self.size);
    }

    /// First document row on the screen.
    fn top(&self, len: usize) -> usize {
        len.saturating_sub(usize::from(self.size.height - self.origin)).max(self.pushed)
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
        let mut next = std::mem::take(&mut self.spare);
        next.blank(self.size);
        for (y, index) in (self.origin..self.size.height).zip(top..len) {
            next.put(y, &document.row(index));
        }
        let used = self.origin + narrow(len.saturating_sub(top)).min(self.size.height - self.origin);
        let mut first_rows = Vec::with_capacity(frame.overlays.len());
        for overlay in frame.overlays {
            let first = self.place(overlay, top, used);
            for (y, row) in (first..self.size.height).zip(overlay.rows) {
                next.put(y, row);
            }
            first_rows.push(first);
        }
        self.paint(next)?;

        let last = Position::new(0, used.max(self.origin + 1).min(self.size.height) - 1);
        let wanted = frame.cursor.and_then(|cursor| self.locate(cursor, top, &first_rows));
        self.place_cursor(wanted.unwrap_or(last), wanted.is_some())
    }

    fn settle_due(&mut self) -> io::Result<()> {
        match std::mem::replace(&mut self.due, Due::Nothing) {
            Due::Nothing => Ok(()),
            Due::EraseOwnRows => (self.origin..self.size.height).try_for_each(|y| self.erase_row(y)),
            // `3J` comes after `2J`, which itself may move the screen to scrollback.
            Due::Reset => self.write("\x1b[r\x1b[0m\x1b[H\x1b[2J\x1b[3J"),
        }
    }

    /// Scrolls rows of the shell away until the document, or the tallest overlay,
    /// fits below what is left of them.
    fn make_room(&mut self, len: usize, overlays: &[Overlay<'_>]) -> io::Result<()> {
        let tallest = overlays.iter().map(|overlay| overlay.rows.len()).max().unwrap_or(0);
        let needed = len.saturating_sub(self.pushed).max(tallest).max(1);
        let over = (needed + usize::from(self.origin)).saturating_sub(usize::from(self.size.height));
        let eat = narrow(over).min(self.origin);
        self.scroll_by(eat)?;
        self.origin -= eat;
        Ok(())
    }

    /// Moves stable rows that no longer fit to the scrollback, a screenful at a
    /// time, each shown in its final form when it leaves.
    fn push_stable(&mut self, document: &dyn Document, len: usize) -> io::Result<()> {
        let height = usize::from(self.size.height);
        let target = len.saturating_sub(height).min(document.stable());
        while self.pushed < target {
            let count = (target - self.pushed).min(height);
            let mut next = std::mem::take(&mut self.spare);
            next.clone_from(&self.shown);
            for (y, index) in (0..self.size.height).zip(self.pushed..self.pushed + count) {
                next.put(y, &document.row(index));
            }
            self.paint(next)?;
            self.scroll_by(narrow(count))?;
            self.pushed += count;
        }
        Ok(())
    }

    /// First screen row of an overlay.
    fn place(&self, overlay: &Overlay<'_>, top: usize, used: u16) -> u16 {
        let height = narrow(overlay.rows.len()).min(self.size.height - self.origin);
        match overlay.anchor {
            Anchor::Bottom => used.max(self.origin + height) - height,
            Anchor::Above(row) => {
                let below = self.origin.saturating_add(narrow(row.saturating_sub(top))).min(self.size.height);
                if below - self.origin >= height {
                    below - height
                } else {
                    used.min(self.size.height - height)
                }
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
        (y < self.size.height).then(|| Position::new(column.min(self.size.width - 1), y))
    }

    fn paint(&mut self, mut next: Canvas) -> io::Result<()> {
        for y in 0..self.size.height {
            // Blanks written out would count as text: when it is copied, and when the
            // terminal wraps its rows anew.
            let end = next.text_end(y);
            if self.shown.text_end(y) > end {
                write!(self.bytes, "\x1b[{};{}H\x1b[K", y + 1, end + 1)?;
                self.shown.erase_from(end, y);
            }
        }
        if self.links {
            next.mark_changed_links(&self.shown);
        }
        let updates: Vec<(u16, u16, &Cell)> = self.shown.cells.diff_iter(&next.cells).collect();
        let link_of = |update: &(u16, u16, &Cell)| next.link(update.0, update.1);
        if self.links {
            for run in updates.chunk_by(|a, b| link_of(a) == link_of(b)) {
                let link = run.first().and_then(link_of);
                if let Some(link) = link {
                    write!(self.bytes, "\x1b]8;id={:x};{}\x1b\\", link_id(link), link.as_str())?;
                }
                CrosstermBackend::new(&mut self.bytes).draw(run.iter().copied())?;
                if link.is_some() {
                    write!(self.bytes, "\x1b]8;;\x1b\\")?;
                }
            }
        } else if !updates.is_empty() {
            CrosstermBackend::new(&mut self.bytes).draw(updates.into_iter())?;
        }
        next.unmark();
        self.spare = std::mem::replace(&mut self.shown, next);
        Ok(())
    }

    /// Scrolls the whole screen up; the one way rows reach the scrollback.
    fn scroll_by(&mut self, rows: u16) -> io::Result<()> {
        if rows == 0 {
            return Ok(());
        }
        write!(self.bytes, "\x1b[{};1H", self.size.height)?;
        self.write(&"\n".repeat(usize::from(rows)))?;
        self.shown.scroll_up(rows);
        Ok(())
    }

    fn erase_row(&mut self, y: u16) -> io::Result<()> {
        write!(self.bytes, "\x1b[{};1H\x1b[0m\x1b[2K", y + 1)
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        self.bytes.write_all(text.as_bytes())
    }

    fn place_cursor(&mut self, at: Position, visible: bool) -> io::Result<()> {
        let untouched = self.bytes.is_empty();
        let shown_before = self.cursor_visible.replace(visible);
        if untouched && self.cursor == at && shown_before == Some(visible) {
            return Ok(());
        }
        write!(self.bytes, "\x1b[{};{}H", at.y + 1, at.x + 1)?;
        // Every frame begins by hiding the cursor.
        if visible {
            self.write("\x1b[?25h")?;
        }
        self.cursor = at;
        Ok(())
    }

    /// Hands the frame to the terminal, as one synchronized update.
    /// See <https://gist.github.com/christianparpart/d8a62cc1ab659194337d73e399004036>.
    fn flush(&mut self) -> io::Result<()> {
        let body = std::mem::take(&mut self.bytes);
        if body.is_empty() {
            return Ok(());
        }
        let mut bytes = Vec::with_capacity(body.len() + 32);
        bytes.extend_from_slice(b"\x1b[?2026h\x1b[?25l");
        bytes.extend_from_slice(&body);
        bytes.extend_from_slice(b"\x1b[?2026l");
        self.sink.write_all(&bytes)?;
        self.sink.flush()
    }
}

/// A screenful of cells, and the link of each.
#[derive(Debug, Clone, Default)]
struct Canvas {
    cells: Buffer,
    links: Vec<Option<LinkTarget>>,
}

impl Canvas {
    fn blank(&mut self, size: Size) {
        let area = Rect::new(0, 0, size.width, size.height);
        if self.cells.area != area {
            self.cells = Buffer::empty(area);
        } else {
            self.cells.content.fill(Cell::EMPTY);
        }
        self.links.clear();
        self.links.resize(self.cells.content.len(), None);
    }

    fn index(&self, x: u16, y: u16) -> usize {
        usize::from(y) * usize::from(self.cells.area.width) + usize::from(x)
    }

    fn link(&self, x: u16, y: u16) -> Option<&LinkTarget> {
        self.links.get(self.index(x, y))?.as_ref()
    }

    /// Replaces screen row `y`. What does not fit is left out.
    fn put(&mut self, y: u16, row: &Row) {
        let width = self.cells.area.width;
        let (start, end) = (self.index(0, y), self.index(0, y) + usize::from(width));
        self.cells.content[start..end].fill(Cell::EMPTY);
        self.links[start..end].fill(None);
        let mut x = 0_u16;
        for span in &row.line.spans {
            let style = row.line.style.patch(span.style);
            for (grapheme, cells) in graphemes(&span.content) {
                let cells = narrow(cells);
                let Some(room) = (width - x).checked_sub(cells) else { break };
                let Some(forced) = NonZeroU16::new(cells) else { continue };
                let cell = &mut self.cells.content[start + usize::from(x)];
                cell.set_symbol(grapheme).set_style(style);
                if cell.cell_width() != cells {
                    cell.diff_option = CellDiffOption::ForcedWidth(forced);
                }
                x = width - room;
            }
        }
        for (range, target) in &row.links {
            for x in range.start..range.end.min(width) {
                self.links[start + usize::from(x)] = Some(target.clone());
            }
        }
    }

    /// The column behind the last cell of a row that is not blank.
    fn text_end(&self, y: u16) -> u16 {
        let start = self.index(0, y);
        let row = &self.cells.content[start..start + usize::from(self.cells.area.width)];
        let last = row.iter().rposition(|cell| *cell != Cell::EMPTY);
        last.map_or(0, |x| narrow(x).saturating_add(row[x].cell_width().max(1)).min(self.cells.area.width))
    }

    fn erase_from(&mut self, x: u16, y: u16) {
        let (from, to) = (self.index(x, y), self.index(0, y + 1));
        self.cells.content[from..to].fill(Cell::EMPTY);
        self.links[from..to].fill(None);
    }

    fn scroll_up(&mut self, rows: u16) {
        let gone = self.index(0, rows).min(self.cells.content.len());
        self.cells.content.rotate_left(gone);
        self.links.rotate_left(gone);
        let kept = self.cells.content.len() - gone;
        self.cells.content[kept..].fill(Cell::EMPTY);
        self.links[kept..].fill(None);
    }

    /// Makes the diff yield cells whose text is the same but whose link is not.
    fn mark_changed_links(&mut self, shown: &Self) {
        for ((cell, link), before) in self.cells.content.iter_mut().zip(&self.links).zip(&shown.links) {
            if link != before && cell.diff_option == CellDiffOption::None {
                cell.diff_option = CellDiffOption::AlwaysUpdate;
            }
        }
    }

    fn unmark(&mut self) {
        for cell in &mut self.cells.content {
            if cell.diff_option == CellDiffOption::AlwaysUpdate {
                cell.diff_option = CellDiffOption::None;
            }
        }
    }
}

/// Rows of one link share an id, so that a terminal lights them up together (FNV-1a).
fn link_id(link: &LinkTarget) -> u32 {
    link.as_str().bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

fn narrow(count: usize) -> u16 {
    u16::try_from(count).unwrap_or(u16::MAX)
}
