//! The canvas: writes only the terminal cells that change.
//!
//! It knows rows, cells, links and the cursor of one screen, but neither documents
//! nor scrollback: those belong to the window on top of it, such as
//! [`InlineWindow`](super::InlineWindow). A window that shows any part of a
//! document just shows other rows; [`Canvas::scroll`] is for a window that moves rows to
//! the terminal's scrollback.
//!
//! Invariants, checked against a terminal emulator in `tests/it/tui_painter.rs`: a
//! frame is at most one write, and none if nothing changed; outside a reset, no
//! erase-display from the first cell (it makes several terminals save the screen to
//! scrollback); no scroll regions (a region of one row scrolls everything). Rows are inserted
//! only above others that stay as they are.
//!
//! Frames are written with automatic wrapping off, and a row that becomes shorter is
//! erased from its first cell. Otherwise terminals that wrap their rows again on a narrower
//! screen would count cells that look blank as text.
//!
//! A row with clusters that terminals measure differently, such as flags, is
//! repainted completely whenever it changes: if the terminal's columns
//! differ from ours, single cells would be drawn at wrong positions.

use std::borrow::Cow;
use std::io::{self, Write};

use ratatui::buffer::{Buffer, Cell, CellDiffOption, CellWidth};
use ratatui::layout::{Position, Size};

use super::super::text::{LinkTarget, PromptMark, Row, is_uncertain};
use super::answers::{CURSOR_QUERY, SIZE_QUERY};
use super::cell_grid::CellGrid;
use super::control::Control;
use super::frame_bytes::{CellUpdate, FrameBytes};
use super::picture_store::PictureStore;
use super::pictures::ScreenPictures;
use super::reflow::RowShape;

/// Rows are moved only if that saves writing more cells.
const MIN_SAVED_CELLS: i64 = 16;
/// Length of a cursor movement, about.
const MAX_GAP: usize = 6;

/// How rows are made blank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Erasing {
    InPlace,
    /// By deleting them, so that new ones take their place: for terminals in which an erased row
    /// still continues the line of the row above.
    ByNewRows,
}

/// Pictures that the terminal may not have any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LostPictures {
    /// All that it knows by number, as after another program.
    Numbered,
    /// Those drawn over the text, as after another screen: terminals keep only so many for both.
    OverText,
}

/// What a terminal understands of the form of cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Abilities {
    /// Links are written as OSC 8.
    pub links: bool,
    /// Of colours, only the first 16, which have a form of their own there.
    pub has_16_colors: bool,
}

/// A terminal whose cells are all known. `W` is the terminal, or an emulator in
/// tests. Nothing is written before [`Self::flush`].
#[derive(Debug)]
pub struct Canvas<W> {
    sink: W,
    /// The frame being composed.
    bytes: FrameBytes,
    size: Size,
    /// The current contents of the screen.
    shown: CellGrid,
    /// Another copy of `shown`, for composing the next frame: only differing rows
    /// are touched.
    next: CellGrid,
    cursor: Position,
    cursor_visible: Option<bool>,
    links: bool,
    prompt_marks: bool,
    /// Whether the cursor is only moved, and never shown.
    cursor_hidden: bool,
    /// Whether the next frame asks which size the terminal has before and after it, and where its cursor
    /// is then.
    pub(super) asks_sizes: bool,
    /// Whether the last frame asked.
    pub(super) asked_sizes: bool,
    pictures: ScreenPictures,
}

impl<W: Write> Canvas<W> {
    /// A canvas that assumes a blank screen and the cursor at `cursor`.
    pub fn new(sink: W, size: Size, cursor: Position) -> Self {
        let mut canvas = Self {
            sink,
            bytes: FrameBytes::default(),
            size: Size::new(1, 1),
            shown: CellGrid::default(),
            next: CellGrid::default(),
            cursor,
            cursor_visible: None,
            links: false,
            prompt_marks: false,
            cursor_hidden: false,
            asks_sizes: false,
            asked_sizes: false,
            pictures: ScreenPictures::default(),
        };
        canvas.set_size(size);
        canvas
    }

    /// How cells are written; by default without links.
    pub fn set_abilities(&mut self, abilities: Abilities) {
        self.links = abilities.links;
        self.bytes.has_16_colors = abilities.has_16_colors;
    }

    /// Whether marks of prompts are written as OSC 133; off by default.
    pub fn set_prompt_marks(&mut self, enabled: bool) {
        self.prompt_marks = enabled;
    }

    /// Whether the cursor stays hidden wherever it is, for input methods that follow it; off by
    /// default.
    pub fn set_cursor_hidden(&mut self, hidden: bool) {
        self.cursor_hidden = hidden;
    }

    /// Where the pictures of rows are; without it they are not drawn.
    pub fn set_pictures(&mut self, store: PictureStore) {
        self.pictures.store = Some(store);
    }

    /// Leaves pictures that are drawn over the text to [`Self::draw_waiting_pictures`].
    pub fn let_pictures_wait(&mut self) {
        self.pictures.wait_for_rest = true;
    }

    /// Whether rows with pictures that are drawn over the text changed since the last call.
    pub fn have_pictures_moved(&mut self) -> bool {
        std::mem::take(&mut self.pictures.have_moved)
    }

    /// Whether pictures wait for [`Self::draw_waiting_pictures`].
    pub fn have_pictures_waiting(&self) -> bool {
        self.pictures.are_waiting(&self.next, self.size)
    }

    /// Draws the pictures that wait, as a frame of their own.
    ///
    /// # Errors
    /// If the terminal cannot be written to.
    pub fn draw_waiting_pictures(&mut self) -> io::Result<()> {
        self.pictures.draw_all(&mut self.next, self.size, &mut self.bytes)?;
        self.place_cursor(self.cursor, self.cursor_visible.unwrap_or(false))?;
        self.flush()
    }

    /// Whether row `y` has a picture that is still to be drawn.
    pub(super) fn misses_picture(&self, y: u16) -> bool {
        self.next.missing_picture(y).is_some_and(|picture| !picture.key.format.has_placeholders())
    }

    /// Sends pictures again, because another program or screen was shown.
    pub fn forget_pictures(&mut self, lost: LostPictures) {
        match lost {
            LostPictures::Numbered => self.pictures.placed.clear(),
            LostPictures::OverText => {
                self.next.forget_drawn_pictures();
                self.shown.forget_drawn_pictures();
            }
        }
    }

    pub fn size(&self) -> Size {
        self.size
    }

    /// The rows that the last frame left on the screen, as they were drawn; `None` where it is blank.
    pub fn rows(&self) -> impl Iterator<Item = Option<&Row>> {
        (0..self.size.height).map(|y| self.shown.source(y))
    }

    pub fn sink(&self) -> &W {
        &self.sink
    }

    pub fn sink_mut(&mut self) -> &mut W {
        &mut self.sink
    }

    /// Where the last frame left the cursor.
    pub fn cursor(&self) -> Position {
        self.cursor
    }

    /// Adopts a size and assumes a blank screen; a terminal without a size
    /// counts as one cell.
    pub fn set_size(&mut self, size: Size) {
        self.size = Size::new(size.width.max(1), size.height.max(1));
        self.forget();
    }

    /// Assumes that the whole screen is blank, because something else erased it.
    pub fn forget(&mut self) {
        self.shown.blank(self.size);
        self.next = self.shown.clone();
    }

    /// Assumes that the cursor is at `cursor`, because something else moved it.
    pub fn forget_cursor(&mut self, cursor: Position) {
        self.cursor = cursor;
        self.cursor_visible = None;
    }

    /// Makes the next frame name rows by their distance from the cursor, which is at `cursor`: the terminal
    /// may move its rows before the frame arrives.
    pub(super) fn start_at_cursor(&mut self, cursor: Position) {
        self.cursor = cursor;
        self.bytes.start_at_cursor(cursor.y);
    }

    /// Replaces screen rows. Other rows stay unchanged.
    ///
    /// # Errors
    /// None in practice: the frame is composed in memory.
    pub fn show<'r>(&mut self, rows: impl IntoIterator<Item = (u16, Cow<'r, Row>)>) -> io::Result<()> {
        let mut changed = Vec::new();
        for (y, row) in rows {
            if self.next.put(y, &row) {
                changed.push(y);
            }
        }
        self.paint(&changed)?;
        self.pictures.have_moved |= changed.iter().any(|y| self.next.has_drawn_picture(*y));
        self.pictures.draw(&mut self.next, self.size, &mut self.bytes)
    }

    /// Writes the rows of `next` that differ from the screen.
    fn paint(&mut self, changed: &[u16]) -> io::Result<()> {
        for &y in changed {
            let has_picture = self.shown.has_drawn_picture(y) || self.next.has_drawn_picture(y);
            if has_picture || self.shown.is_uncertain(y) || self.next.is_uncertain(y) {
                self.erase_row(y)?;
                self.shown.erase_row(y);
            }
            // Written trailing spaces would become text when the row is copied.
            if self.shown.text_end(y) > self.next.text_end(y) {
                self.bytes.push_at(y, "\x1b[K")?;
                self.shown.erase_row(y);
            }
            if self.links {
                self.next.mark_changed_links(&self.shown, y);
            }
        }
        let updates: Vec<CellUpdate<'_>> = changed
            .iter()
            .filter(|&&y| !self.next.shares_cells(&self.shown, y))
            .flat_map(|&y| {
                let (shown, next) = (self.shown.cells(y), self.next.cells(y));
                let updates = shown.diff_iter(next).map(|(x, _, cell)| (x, cell)).collect();
                with_narrow_gaps(updates, next).into_iter().map(move |(x, cell)| (x, y, cell))
            })
            .collect();
        let link_of =
            |update: &CellUpdate<'_>| self.links.then(|| self.next.link(update.0, update.1)).flatten();
        // Each run begins with a cursor movement.
        let is_one_run =
            |a: &CellUpdate<'_>, b: &CellUpdate<'_>| link_of(a) == link_of(b) && !is_uncertain(a.2.symbol());
        for run in updates.chunk_by(is_one_run) {
            let link = run.first().and_then(link_of);
            if let Some(link) = link {
                self.bytes.push(format!("\x1b]8;id={:x};{}\x1b\\", link_id(link), link.as_str()));
            }
            self.bytes.draw(run)?;
            if link.is_some() {
                self.bytes.push("\x1b]8;;\x1b\\");
            }
        }
        self.write_prompt_marks(changed)?;
        for &y in changed {
            self.next.unmark(y);
            self.shown.copy_row(y, &self.next);
        }
        Ok(())
    }

    /// Marks the rows where prompts begin and end, after all text of the frame: some terminals
    /// count what is written after a mark as the prompt. The beginning therefore never comes
    /// without an end.
    fn write_prompt_marks(&mut self, changed: &[u16]) -> io::Result<()> {
        if !self.prompt_marks {
            return Ok(());
        }
        let mut is_open = None;
        for &y in changed {
            let Some(mark) = self.next.mark(y).filter(|mark| self.shown.mark(y) != Some(*mark)) else {
                continue;
            };
            let sequence = match mark {
                PromptMark::Begin => "\x1b]133;A;redraw=0\x1b\\",
                PromptMark::End => "\x1b]133;B\x1b\\\x1b]133;C\x1b\\",
            };
            self.bytes.push_at(y, sequence)?;
            is_open = (mark == PromptMark::Begin).then_some(y);
        }
        if let Some(begin) = is_open {
            // The end is below the screen; the row under the beginning is part of the prompt.
            self.bytes.push_at((begin + 1).min(self.size.height - 1), "\x1b]133;C\x1b\\")?;
        }
        Ok(())
    }

    /// Scrolls the whole screen up; only this moves rows to the scrollback.
    ///
    /// # Errors
    /// Like [`Self::show`].
    pub fn scroll(&mut self, rows: u16) -> io::Result<()> {
        if rows == 0 {
            return Ok(());
        }
        self.bytes.go_to(Position::new(0, self.size.height - 1))?;
        self.bytes.feed_lines(rows);
        self.shown.scroll_up(rows);
        self.next.scroll_up(rows);
        Ok(())
    }

    /// Moves the rows from `y` on down by `n`. Those at the end of the screen are lost.
    ///
    /// # Errors
    /// Like [`Self::show`].
    fn insert_rows(&mut self, y: u16, n: u16) -> io::Result<()> {
        self.bytes.push_at(y, &format!("\x1b[0m\x1b[{n}L"))?;
        self.shown.insert_rows(y, n);
        self.next.insert_rows(y, n);
        Ok(())
    }

    /// Called before the rows from `first` on become `wanted`, `n` rows longer than before or
    /// after a scroll: moves what is at the end of both, such as the editor, to its new place,
    /// so that it is not written again.
    ///
    /// # Errors
    /// Like [`Self::show`].
    pub fn keep_end(&mut self, first: u16, wanted: &[Cow<'_, Row>], n: u16) -> io::Result<()> {
        let height = self.size.height;
        if n == 0 || n >= height || (first..height).any(|y| self.shown.has_drawn_picture(y)) {
            return Ok(());
        }
        // The cells that need not be written if row `y` becomes row `at`.
        let saved = |y: u16, at: u16| {
            let is_kept = wanted.get(usize::from(at - first)).is_some_and(|row| self.shown.shows(y, row));
            if is_kept { i64::from(self.shown.text_end(y)) } else { 0 }
        };
        let (mut sum, mut best, mut place) = (0, MIN_SAVED_CELLS, None);
        for y in (first..height - n).rev() {
            sum += saved(y, y + n) - saved(y, y);
            if sum > best {
                (best, place) = (sum, Some(y));
            }
        }
        place.map_or(Ok(()), |y| self.insert_rows(y, n))
    }

    /// Blanks a row of the terminal, regardless of its known contents. From its first cell on:
    /// VTE 0.70 fills a line that is erased as such (EL 2) with blanks that count as text.
    ///
    /// # Errors
    /// Like [`Self::show`].
    pub fn erase_row(&mut self, y: u16) -> io::Result<()> {
        self.bytes.push_at(y, "\x1b[0m\x1b[K")
    }

    /// Blanks row `y` and all rows below it, and ends lines that continue from row to row.
    ///
    /// # Errors
    /// Like [`Self::show`].
    pub(super) fn erase_from_row(&mut self, y: u16, erasing: Erasing) -> io::Result<()> {
        match y {
            _ if y >= self.size.height => Ok(()),
            // Some terminals save the screen to the scrollback when it is erased from its first cell.
            0 if self.size.height > 1 => {
                self.bytes.push("\x1b[0m");
                // A deleted first row is saved to the scrollback, so a new one moves it down.
                let blank_first = match erasing {
                    Erasing::InPlace => "\x1b[K",
                    Erasing::ByNewRows => "\x1b[L",
                };
                self.bytes.push_at(0, blank_first)?;
                self.erase_from_row(1, erasing)
            }
            _ => {
                self.bytes.push("\x1b[0m");
                match erasing {
                    Erasing::InPlace if y == 0 => self.bytes.push_at(y, "\x1b[K"),
                    Erasing::InPlace => self.bytes.push_at(y, "\x1b[J"),
                    Erasing::ByNewRows => self.bytes.push_at(y, &format!("\x1b[{}M", self.size.height - y)),
                }
            }
        }
    }

    /// The cells of screen row `y`.
    pub(super) fn shape(&self, y: u16) -> RowShape {
        self.shown.shape(y)
    }

    /// Blanks screen and scrollback of the terminal.
    ///
    /// # Errors
    /// Like [`Self::show`].
    pub fn erase_all(&mut self) -> io::Result<()> {
        // `3J` after `2J`, because `2J` itself may move the screen to scrollback.
        self.bytes.start_at_top();
        self.bytes.push("\x1b[r\x1b[0m\x1b[H\x1b[2J\x1b[3J");
        Ok(())
    }

    /// Moves the cursor, which ends a frame.
    ///
    /// # Errors
    /// Like [`Self::show`].
    pub fn place_cursor(&mut self, at: Position, visible: bool) -> io::Result<()> {
        let visible = visible && !self.cursor_hidden;
        let untouched = self.bytes.is_empty();
        let shown_before = self.cursor_visible.replace(visible);
        if untouched && self.cursor == at && shown_before == Some(visible) {
            return Ok(());
        }
        self.bytes.go_to(at)?;
        // Every frame begins by hiding the cursor.
        if visible {
            self.bytes.push("\x1b[?25h");
        }
        self.cursor = at;
        Ok(())
    }

    /// Writes the frame to the terminal, as one synchronized update.
    /// See <https://gist.github.com/christianparpart/d8a62cc1ab659194337d73e399004036>.
    ///
    /// # Errors
    /// If the terminal cannot be written to. The state is then as if the frame had
    /// been shown.
    pub fn flush(&mut self) -> io::Result<()> {
        let body = self.bytes.take();
        let asks = std::mem::take(&mut self.asks_sizes);
        self.asked_sizes = asks;
        if body.is_empty() && !asks {
            return Ok(());
        }
        let mut bytes = Vec::with_capacity(body.len() + 64);
        if asks {
            bytes.extend_from_slice(SIZE_QUERY.as_bytes());
        }
        if !body.is_empty() {
            // Without wrapping, a cluster drawn wider than measured stays in its row too.
            bytes.extend_from_slice(b"\x1b[?2026h\x1b[?25l\x1b[?7l");
            bytes.extend_from_slice(&body);
            bytes.extend_from_slice(b"\x1b[?7h\x1b[?2026l");
        }
        if asks {
            bytes.extend_from_slice([SIZE_QUERY, CURSOR_QUERY].concat().as_bytes());
        }
        self.sink.write_all(&bytes)?;
        self.sink.flush()
    }

    /// Sends a control that does not affect the screen's contents.
    ///
    /// # Errors
    /// If the terminal cannot be written to.
    pub fn control(&mut self, control: &Control) -> io::Result<()> {
        self.sink.write_all(control.encode().as_bytes())?;
        self.sink.flush()
    }
}

/// Adds unchanged cells between changed ones of a row where writing them takes fewer bytes than
/// moving the cursor over them: mostly the blanks between words. Cells come with their columns.
fn with_narrow_gaps<'c>(updates: Vec<(u16, &'c Cell)>, row: &'c Buffer) -> Vec<(u16, &'c Cell)> {
    let mut filled: Vec<(u16, &'c Cell)> = Vec::with_capacity(updates.len() * 5 / 4);
    for (x, cell) in updates {
        if let Some(&(before_x, before)) = filled.last() {
            let gap = before_x + before.cell_width().max(1)..x;
            let cells = || gap.clone().filter_map(|x| Some((x, row.cell((x, 0))?)));
            if gap.len() <= MAX_GAP && cells().all(|(_, cell)| is_plain_like(cell, before)) {
                filled.extend(cells());
            }
        }
        filled.push((x, cell));
    }
    filled
}

/// Whether `cell` is one byte in the style of `other`.
fn is_plain_like(cell: &Cell, other: &Cell) -> bool {
    let style = |cell: &Cell| (cell.fg, cell.bg, cell.underline_color, cell.modifier);
    cell.symbol().len() == 1 && cell.diff_option == CellDiffOption::None && style(cell) == style(other)
}

/// Rows of one link share an id, so that a terminal highlights them together (FNV-1a).
fn link_id(link: &LinkTarget) -> u32 {
    link.as_str().bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}
