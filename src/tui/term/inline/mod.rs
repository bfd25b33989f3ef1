//! The inline window: a document on the main screen, with native scrollback.
//!
//! The window shows the end of a [`Document`]. Final rows that no longer
//! fit leave it through a newline on the last row, as every program
//! scrolls, so every terminal and multiplexer keeps them in its own scrollback. Rows
//! that may change, and overlays, never leave that way. If the terminal itself moved such rows to its
//! scrollback, the document can make them final ([`InlineWindow::first_kept`]).
//!
//! Nothing but [`InlineWindow::reset`] erases the scrollback. If the terminal changes
//! its size, the window computes where its rows are now ([`Picture`]) and continues from
//! the first settled row whose new place is certain; rows above that one stay as the
//! terminal wrapped them. If settled rows change, the window shows the new ones where its
//! rows were. If the document is replaced, the new one begins below the old one.
//!
//! Invariants, checked against terminal emulators in `tests/it/tui_painter.rs` and
//! `tests/it/tui_resize.rs`: each final row appears exactly once and in order in scrollback
//! and screen; earlier output of the shell stays. Work per frame depends
//! on the size of the screen, not on the length of the document. The [`Canvas`]
//! draws the cells.

use std::borrow::Cow;
use std::io::{self, Write};
use std::iter;
use std::ops::Range;

use ratatui::layout::{Position, Size};

use super::super::text::Row;
use super::canvas::{Abilities, Canvas, Erasing, LostPictures};
use super::cell_grid::narrow;
use super::control::Control;
use super::picture_store::PictureStore;
use super::reflow::{Picture, ReflowTraits, RowShape};
use super::spaced::Spaced;

mod resize;

/// The content to show, top to bottom: settled rows, live rows, the dock.
pub trait Document {
    /// Number of rows at the current width.
    fn len(&self) -> usize;
    /// The row at `index`, which is below [`Self::len`]. Only rows near the screen
    /// are requested.
    fn row(&self, index: usize) -> Cow<'_, Row>;
    /// Number of leading rows that will never change, until the document is laid out anew
    /// ([`InlineWindow::relaid`], [`InlineWindow::resized`]).
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
    /// Begins below the document if at least `room` rows are free there, so that it stays on one side
    /// while it changes its height; otherwise it ends above this document row. It never covers that row and
    /// those below it: rows for which there is no room are left out. See [`InlineWindow::room_beside`].
    Beside { row: usize, room: u16 },
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

/// Maps rows of the document before it was laid out anew to rows of the document now.
pub trait Relayout {
    /// The row that begins with the same text as row `old` did; `None` if none does.
    fn row(&self, old: usize) -> Option<usize>;
    /// The row that contains the beginning of row `old`.
    fn near(&self, old: usize) -> usize;
    /// The row to show from, in place of row `old`, once other text takes the place of some at the same width: the
    /// one that begins with the same text, or the first one after the text that is still there before it.
    fn replaced(&self, old: usize) -> usize {
        self.row(old).unwrap_or_else(|| self.near(old))
    }
    /// Number of leading rows that were settled because they left the screen.
    fn n_frozen(&self) -> usize {
        0
    }
}

/// What a frame does about a size that may change before it arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameGuard {
    /// It finds its rows from the cursor, which is where the last frame left it.
    StartAtCursor,
    /// It asks which size the terminal has before and after it, and where its cursor is then.
    AskSizes,
    /// It asks nothing any more.
    AskNothing,
}

/// A size that the terminal had since the last frame was composed, other than those of this frame and the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SizeSeen {
    /// It had it when the last frame arrived, which was painted for another one.
    AtLastFrame(Size),
    /// It had it for a moment, without a frame.
    Between(Size),
}

/// How much of a document that replaces another one is written below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartOver {
    All,
    /// A screenful of its end.
    Tail,
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
    /// Number of rows before `pushed` that the window may show although they are in the scrollback already: it
    /// showed as many rows before they became fewer.
    n_borrowed: usize,
    /// Number of document rows that the window had before they were replaced, until the next frame.
    n_replaced: Option<usize>,
    /// The screen row on which unsettled rows begin at least, as far as there is room: a change of the width
    /// leaves them where they were.
    unsettled_from: usize,
    /// What the last frame showed.
    shown: Shown,
    traits: ReflowTraits,
    /// The size that the terminal had when the last frame arrived, if it was not [`Self::size`].
    painted_on: Option<Size>,
    /// Sizes that the terminal had since then.
    sizes: Vec<Size>,
    /// The action needed before the next frame is painted.
    due: Due,
    /// The document was replaced.
    start: Option<StartOver>,
    /// The rows that [`Self::release`] left on the screen, and which row of the document the first one was.
    released: Option<Released>,
    /// The last rows of other documents that are above the window, as far as they are known.
    above: Vec<Row>,
}

#[derive(Debug, Default)]
struct Shown {
    /// Document row on the first row of the window.
    top: usize,
    /// Number of rows of the document from there on.
    n_rows: usize,
    /// Number of blank rows before the unsettled ones.
    n_blank: usize,
    /// The settled rows from there to this document row are drawn as they stay.
    settled_end: usize,
    /// Screen rows in use, including those above the window.
    used: u16,
    /// First screen row under an overlay.
    covered_from: Option<u16>,
    /// Settled rows under overlays, and their screen rows.
    covered: Vec<(u16, Row)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Due {
    Nothing,
    /// Draw the rows that are on the screen again.
    Repaint,
    /// Blank the rows from `origin` on, one by one.
    EraseOwnRows,
    /// The same, and separate them from rows that the terminal wrapped.
    EraseWrappedRows,
    /// Blank screen and scrollback.
    Reset,
}

/// The rows that [`InlineWindow::release`] left on the screen.
#[derive(Debug)]
struct Released {
    picture: Picture,
    /// Document row of the first one.
    top: usize,
    /// Whether no row before them is on the screen, and none is missing.
    is_whole: bool,
}

impl<W: Write> InlineWindow<W> {
    /// A window that starts on the row of `cursor`, or below it if the shell left
    /// text on that row.
    pub fn new(sink: W, size: Size, cursor: Position) -> Self {
        let mut canvas = Canvas::new(sink, size, cursor);
        canvas.set_prompt_marks(true);
        let mut window = Self {
            canvas,
            origin: 0,
            pushed: 0,
            gap: false,
            stable: 0,
            n_borrowed: 0,
            n_replaced: None,
            unsettled_from: 0,
            shown: Shown::default(),
            traits: ReflowTraits::default(),
            painted_on: None,
            sizes: Vec::new(),
            due: Due::Nothing,
            start: None,
            released: None,
            above: Vec::new(),
        };
        window.resume(size, cursor);
        window
    }

    /// How cells are written; by default without links.
    pub fn set_abilities(&mut self, abilities: Abilities) {
        self.canvas.set_abilities(abilities);
    }

    /// Whether the cursor stays hidden wherever it is; off by default.
    pub fn set_cursor_hidden(&mut self, hidden: bool) {
        self.canvas.set_cursor_hidden(hidden);
    }

    /// Whether a document of `len` rows leaves rows at the end of the screen blank although
    /// others have left it, because it became shorter.
    pub fn leaves_blank(&self, len: usize) -> bool {
        let goes_on = self.start.is_none() && self.is_on_screen() && self.n_borrowed == 0;
        goes_on && self.pushed > 0 && len < self.pushed + usize::from(self.height() - self.origin)
    }

    /// Where the pictures of rows are; without it they are not drawn.
    pub fn set_pictures(&mut self, store: PictureStore) {
        self.canvas.set_pictures(store);
    }

    /// Sets what is known about the terminal; nothing by default.
    pub fn set_traits(&mut self, traits: ReflowTraits) {
        self.traits = traits;
    }

    /// What is known of the terminal so far.
    pub fn traits(&self) -> ReflowTraits {
        self.traits
    }

    pub fn size(&self) -> Size {
        self.canvas.size()
    }

    fn height(&self) -> u16 {
        self.size().height
    }

    /// First screen row of the window.
    pub fn origin(&self) -> u16 {
        self.origin
    }

    /// The rows above the window, from the first one of the screen on. Those that pi did not draw are blank.
    pub fn rows_above(&self) -> impl Iterator<Item = &Row> {
        let n_rows = usize::from(self.origin);
        let n_unknown = n_rows.saturating_sub(self.above.len());
        let known = self.above.iter().skip(self.above.len().saturating_sub(n_rows));
        iter::repeat_n(Row::blank(), n_unknown).chain(known)
    }

    /// Number of blank rows that the last frame had before the unsettled rows.
    pub fn n_blank_shown(&self) -> usize {
        self.shown.n_blank
    }

    /// Where the last frame left the cursor.
    pub fn cursor(&self) -> Position {
        self.canvas.cursor()
    }

    /// Number of document rows that are already in the terminal's scrollback.
    pub fn pushed(&self) -> usize {
        self.pushed
    }

    /// What is on the screen.
    pub fn canvas(&self) -> &Canvas<W> {
        &self.canvas
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
    /// the document from its beginning. Only for users who ask for it: the scrollback also
    /// has what the shell printed.
    pub fn reset(&mut self, size: Size) {
        self.canvas.set_size(size);
        self.canvas.forget_pictures(LostPictures::Numbered);
        (self.origin, self.pushed, self.gap) = (0, 0, false);
        (self.n_borrowed, self.n_replaced) = (0, None);
        (self.painted_on, self.unsettled_from) = (None, 0);
        self.sizes.clear();
        (self.due, self.start) = (Due::Reset, None);
        self.above.clear();
        self.shown = Shown::default();
    }

    /// The document rows that [`Self::resized`] and [`Self::relaid`] may ask about.
    pub fn rows_in_view(&self) -> Range<usize> {
        let end = self.shown.top + usize::from(self.shown.used.saturating_sub(self.origin));
        self.pushed.min(self.shown.top)..end.max(self.pushed) + 1
    }

    /// Sets what the next frame does about a size that may change before it arrives.
    pub fn guard_next_frame(&mut self, guard: FrameGuard) {
        match guard {
            FrameGuard::StartAtCursor => self.canvas.start_at_cursor(self.canvas.cursor()),
            FrameGuard::AskSizes => self.canvas.asks_sizes = true,
            FrameGuard::AskNothing => self.canvas.asks_sizes = false,
        }
    }

    /// Whether the frame that [`FrameGuard::AskSizes`] is for was drawn, and no other one since.
    pub fn has_asked_sizes(&self) -> bool {
        !self.canvas.asks_sizes && self.canvas.asked_sizes
    }

    /// Shows other rows in place of the settled ones: they changed, but their size did not.
    /// What has left the screen stays as it was.
    pub fn relaid(&mut self, rows: &dyn Relayout) {
        self.shown.settled_end = 0;
        if self.start.is_none() {
            self.pushed = rows.replaced(self.pushed);
            self.n_replaced = Some(self.shown.n_rows);
        }
    }

    /// Shows another document from the next frame on, below the settled rows of this one.
    pub fn start_over(&mut self, start: StartOver) {
        self.start = Some(start);
    }

    /// Whether the next frame shows another document.
    pub fn starts_over(&self) -> bool {
        self.start.is_some()
    }

    /// Draws all rows of the window again with the next frame.
    pub fn repaint(&mut self) {
        if self.due == Due::Nothing {
            self.due = Due::Repaint;
        }
    }

    /// Whether the rows of the last frame are on the screen.
    fn is_on_screen(&self) -> bool {
        matches!(self.due, Due::Nothing | Due::Repaint)
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
        let is_whole = !self.gap && self.n_borrowed == 0;
        self.pushed = self.pushed.max(document.stable());
        let cursor = Position::new(0, row);
        let shapes = (self.origin..row).map(|y| self.canvas.shape(y)).chain([RowShape::default()]);
        let picture = Picture { used: row, cursor, shapes: shapes.collect(), ..self.picture() };
        self.released = Some(Released { picture, top, is_whole });
        self.sizes.clear();
        self.origin = row;
        self.shown = Shown { top: self.pushed, used: row, ..Shown::default() };
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
        self.canvas.forget_pictures(LostPictures::Numbered);
        (self.painted_on, self.unsettled_from) = (None, 0);
        self.sizes.clear();
        self.above.clear();
        self.shown = Shown { top: self.pushed, used: self.origin, ..Shown::default() };
        self.due = Due::EraseOwnRows;
    }

    /// The same at document row `row`, whatever was laid out anew since then, below the rows that were left. Nobody
    /// wrote to the screen in the meantime; some terminals leave the cursor where it was when they move its row.
    /// Those that cut rows get theirs once more. If nothing moved, the rows that were left are the window's again.
    pub fn resume_at(&mut self, row: usize, size: Size, cursor: Position, rows: &dyn Relayout) {
        let sizes = std::mem::take(&mut self.sizes);
        let released = self.released.take();
        self.resume(size, cursor);
        let mut row = row;
        let mut first = None;
        if let Some(Released { picture, top, is_whole }) = released {
            let picture = Picture { sizes, ..picture };
            if is_whole && picture.is_unmoved(size, cursor) {
                let is_same = |first: &usize| row.checked_sub(*first) == Some(picture.n_rows());
                first = rows.row(top).filter(is_same).filter(|_| self.start.is_none());
            }
            self.origin = picture.lowest_end(size, cursor, &self.traits).min(self.height());
            let cut = picture.first_cut(size, cursor, &self.traits);
            if let (Some((n, line)), None) = (cut, &self.start) {
                row = exact_or_near(rows, top + n).min(row);
                self.origin = line.min(self.height());
            }
        }
        if self.start.is_none() {
            (self.pushed, self.n_borrowed) = (first.unwrap_or(row), 0);
            self.origin = self.origin.saturating_sub(narrow(row.saturating_sub(self.pushed)));
        }
        self.shown = Shown { top: self.pushed, used: self.origin, ..Shown::default() };
    }

    /// Resumes where another program left the cursor after it wrote to the screen while this process was
    /// stopped. Settled rows that were shown are not drawn again.
    pub fn resume_below(&mut self, size: Size, cursor: Position) {
        if !std::mem::take(&mut self.gap) {
            self.pushed = self.pushed.max(self.stable);
        }
        self.n_borrowed = 0;
        self.resume(size, cursor);
    }

    /// Assumes nothing about whether the cursor is shown and which pictures are left, because another screen was
    /// shown.
    pub fn return_to(&mut self) {
        self.canvas.forget_cursor(self.canvas.cursor());
        self.canvas.forget_pictures(LostPictures::OverText);
    }

    /// Sends a control that does not affect the screen's contents.
    ///
    /// # Errors
    /// If the terminal cannot be written to.
    pub fn control(&mut self, control: &Control) -> io::Result<()> {
        self.canvas.control(control)
    }

    /// Number of rows that an overlay beside document row `row` of `len` rows can have in the next frame, if it
    /// wants `room`.
    pub fn room_beside(&self, row: usize, room: u16, len: usize) -> u16 {
        let height = usize::from(self.height());
        let n_blank = if row < self.stable { 0 } else { self.n_blank(len, self.stable) };
        let (row, len) = (row + n_blank, len + n_blank);
        let needed = self.rows_needed(len, [Anchor::Beside { row, room }]);
        let origin = usize::from(self.origin).min(height.saturating_sub(needed));
        let visible = height - origin;
        let top = len.saturating_sub(visible);
        let top = top.max(self.first());
        let above = row.saturating_sub(top).min(visible);
        let below = visible.saturating_sub(len.saturating_sub(top));
        narrow(above.max(below))
    }

    /// Number of rows that the document and what is beside it take, as far as there are as many.
    fn rows_needed(&self, len: usize, anchors: impl IntoIterator<Item = Anchor>) -> usize {
        let own = len.saturating_sub(self.pushed);
        let beside = anchors.into_iter().map(|anchor| match anchor {
            Anchor::Beside { row, room } if row.saturating_sub(self.pushed) < usize::from(room) => {
                own + usize::from(room)
            }
            Anchor::Beside { .. } | Anchor::Bottom => own,
        });
        beside.max().unwrap_or(own)
    }

    /// Number of blank rows before the unsettled ones, in a document of `len` rows.
    fn n_blank(&self, len: usize, stable: usize) -> usize {
        if self.start.is_some() {
            return 0;
        }
        let at = |row: usize| usize::from(self.origin) + row.saturating_sub(self.first());
        self.unsettled_from.saturating_sub(at(stable)).min(usize::from(self.height()).saturating_sub(at(len)))
    }

    /// The first document row that may be on the screen.
    fn first(&self) -> usize {
        self.pushed - self.n_borrowed.min(self.pushed)
    }

    /// First document row on the screen.
    fn top(&self, len: usize) -> usize {
        len.saturating_sub(usize::from(self.height() - self.origin)).max(self.first())
    }

    fn compose(&mut self, frame: &Frame<'_>) -> io::Result<()> {
        let len = frame.document.len();
        let is_continued = self.start.is_none() && self.due == Due::Nothing && frame.overlays.is_empty();
        let kept = if is_continued { self.shown.top..self.shown.settled_end } else { 0..0 };
        let kept_at = self.origin;
        if let Some(start) = self.start.take() {
            self.leave_old_document(start)?;
            self.unsettled_from = 0;
            self.pushed = match start {
                StartOver::All => 0,
                StartOver::Tail => {
                    len.saturating_sub(usize::from(self.height())).min(frame.document.stable())
                }
            };
        }
        self.settle_due(frame.document)?;
        if let Some(n_replaced) = self.n_replaced.take().filter(|_| self.origin == 0) {
            self.n_borrowed = n_replaced.saturating_sub(len.saturating_sub(self.pushed));
        }
        let n_blank = self.n_blank(len, frame.document.stable());
        let spaced = Spaced::new(frame.document, n_blank);
        let (document, len): (&dyn Document, usize) = (&spaced, spaced.len());
        let overlays: Vec<Overlay<'_>> = frame
            .overlays
            .iter()
            .map(|overlay| Overlay { rows: overlay.rows, anchor: spaced.moved_anchor(overlay.anchor) })
            .collect();
        let n_scrolled = self.make_room(len, &overlays)? + self.push_stable(document, len)?;

        let top = self.top(len);
        self.gap = top > self.pushed;
        self.n_borrowed = self.pushed.saturating_sub(top);
        self.stable = document.stable();
        let is_in_place = top >= kept.start
            && usize::from(kept_at) + (top - kept.start) == usize::from(self.origin) + n_scrolled;
        let n_kept = if is_in_place { kept.end.saturating_sub(top) } else { 0 };
        let changes_from = self.origin + narrow(n_kept).min(self.height() - self.origin);
        // The content of each of our screen rows, except those that are there already.
        let n_wanted = usize::from(self.height() - changes_from);
        let mut wanted: Vec<Cow<'_, Row>> = Vec::with_capacity(n_wanted);
        wanted.extend((top + n_kept..len).take(n_wanted).map(|index| document.row(index)));
        wanted.resize_with(n_wanted, Cow::default);
        let used = self.origin + narrow(len.saturating_sub(top)).min(self.height() - self.origin);
        let n_rows = usize::from(used - self.origin).saturating_sub(n_blank);
        let mut shown = Shown { top, n_rows, n_blank, used, ..Shown::default() };
        let mut first_rows = Vec::with_capacity(overlays.len());
        for overlay in &overlays {
            let place = self.place(overlay, top, used);
            let (first, n_rows) = (place.start, usize::from(place.end - place.start));
            let covered = wanted.iter_mut().enumerate().skip(usize::from(first.saturating_sub(self.origin)));
            for ((at, slot), row) in covered.zip(overlay.rows.iter().take(n_rows)) {
                let below = std::mem::replace(slot, Cow::Borrowed(row));
                if top + at < self.stable && first_rows.is_empty() {
                    shown.covered.push((self.origin + narrow(at), below.into_owned()));
                }
            }
            shown.used = shown.used.max(place.end);
            shown.covered_from = Some(shown.covered_from.map_or(first, |other| other.min(first)));
            first_rows.push(first);
        }
        let n_lower = (n_scrolled + usize::from(shown.used)).saturating_sub(usize::from(self.shown.used));
        if !self.traits.inserts_over_scrollback {
            self.canvas.keep_end(changes_from, &wanted, narrow(n_lower))?;
        }
        if overlays.is_empty() {
            shown.settled_end = self.stable.min(top + usize::from(self.height() - self.origin));
        }
        self.shown = shown;
        self.canvas.show((changes_from..self.height()).zip(wanted))?;

        let last = Position::new(0, used.max(self.origin + 1).min(self.height()) - 1);
        // A terminal that becomes lower drops rows below its cursor, and moves those above it to the
        // scrollback. None of an overlay's is above its first one.
        let resting = first_rows.first().map_or(last, |y| Position::new(0, (*y).min(last.y)));
        let cursor = frame.cursor.map(|cursor| spaced.moved_cursor(cursor));
        let wanted = cursor.and_then(|cursor| self.locate(cursor, top, &first_rows));
        self.canvas.place_cursor(wanted.unwrap_or(resting), wanted.is_some())
    }

    fn settle_due(&mut self, document: &dyn Document) -> io::Result<()> {
        match std::mem::replace(&mut self.due, Due::Nothing) {
            Due::Nothing => Ok(()),
            Due::Repaint => {
                self.canvas.forget();
                (self.origin..self.height()).try_for_each(|y| self.canvas.erase_row(y))
            }
            Due::EraseOwnRows => (self.origin..self.height()).try_for_each(|y| self.canvas.erase_row(y)),
            Due::EraseWrappedRows => {
                let erasing =
                    if self.traits.erased_rows_continue { Erasing::ByNewRows } else { Erasing::InPlace };
                self.canvas.erase_from_row(self.origin, erasing)?;
                self.keep_distance(document);
                Ok(())
            }
            Due::Reset => self.canvas.erase_all(),
        }
    }

    /// Keeps unsettled rows away from the top of the screen after a change of the size. Some terminals make room
    /// there for rows that they wrap, even if the end of the screen is blank, and would push the dock to the
    /// scrollback at the next change.
    fn keep_distance(&mut self, document: &dyn Document) {
        let (len, stable) = (document.len(), document.stable());
        // Half the width is as narrow as most changes go.
        let wraps = |index: &usize| document.row(*index).width() > usize::from(self.size().width) / 2;
        let n_wrapping = (stable..len).rev().take(usize::from(self.height())).filter(wraps).count();
        // Where rows have left the screen, the dock was at its end. Otherwise some rows are enough, and some more
        // for what is added until then.
        self.unsettled_from = if self.pushed > 0 { usize::from(self.height()) } else { n_wrapping + 2 };
    }

    /// Leaves the settled rows of a document on the screen and the window below them. The end of another document may
    /// begin in the middle of a text, so a blank row comes before it.
    fn leave_old_document(&mut self, start: StartOver) -> io::Result<()> {
        (self.gap, self.n_borrowed, self.n_replaced) = (false, 0, None);
        if matches!(self.due, Due::Reset | Due::EraseWrappedRows) {
            return Ok(());
        }
        let covered = std::mem::take(&mut self.shown.covered);
        let settled = self.stable.saturating_sub(self.shown.top);
        let end = narrow(settled).min(self.shown.used.saturating_sub(self.origin)) + self.origin;
        for (y, row) in covered {
            if !self.is_on_screen() {
                self.canvas.erase_row(y)?;
            }
            self.canvas.show([(y, Cow::Owned(row))])?;
        }
        let left = self.canvas.rows().take(usize::from(end)).skip(usize::from(self.origin));
        let above: Vec<Row> =
            self.rows_above().chain(left.map(|row| row.unwrap_or(Row::blank()))).cloned().collect();
        self.above = above;
        self.origin = end;
        self.due = Due::EraseOwnRows;
        self.canvas.forget();
        if start == StartOver::Tail && (1..self.height()).contains(&end) {
            self.canvas.erase_row(end)?;
            self.above.push(Row::blank().clone());
            self.origin += 1;
        }
        Ok(())
    }

    /// Scrolls the shell's rows away until the document, or the tallest overlay,
    /// fits below the remaining ones. Returns the number of rows it scrolled.
    fn make_room(&mut self, len: usize, overlays: &[Overlay<'_>]) -> io::Result<usize> {
        let tallest = overlays.iter().map(|overlay| overlay.rows.len()).max().unwrap_or(0);
        let anchors = overlays.iter().map(|overlay| overlay.anchor);
        let needed = self.rows_needed(len, anchors).max(tallest).max(1);
        let over = (needed + usize::from(self.origin)).saturating_sub(usize::from(self.height()));
        let eat = narrow(over).min(self.origin);
        self.canvas.scroll(eat)?;
        self.origin -= eat;
        Ok(usize::from(eat))
    }

    /// Moves stable rows that no longer fit to the scrollback, a screenful at a
    /// time, each drawn in its final form before it leaves. Returns their number.
    fn push_stable(&mut self, document: &dyn Document, len: usize) -> io::Result<usize> {
        let height = usize::from(self.height());
        let target = len.saturating_sub(height).min(document.stable());
        let n_before = self.pushed;
        while self.pushed < target {
            let mut count = (target - self.pushed).min(height);
            let leaving = (self.pushed..self.pushed + count).map(|index| document.row(index));
            self.canvas.show((0..self.height()).zip(leaving))?;
            // A picture on the last row is drawn when the row has moved up.
            if count > 1 && count == height && self.canvas.misses_picture(narrow(count - 1)) {
                count -= 1;
            }
            self.canvas.scroll(narrow(count))?;
            self.pushed += count;
        }
        Ok(self.pushed - n_before)
    }

    /// The screen rows of an overlay.
    fn place(&self, overlay: &Overlay<'_>, top: usize, used: u16) -> Range<u16> {
        let n_rows = narrow(overlay.rows.len());
        let height = n_rows.min(self.height() - self.origin);
        match overlay.anchor {
            Anchor::Bottom => {
                let first = used.max(self.origin + height) - height;
                first..first + height
            }
            Anchor::Beside { row, room } => {
                let end = self.origin.saturating_add(narrow(row.saturating_sub(top))).min(self.height());
                let (above, below) = (end - self.origin, self.height() - used);
                let is_below = below >= room.max(n_rows) || above < n_rows && above < below;
                if is_below { used..used + n_rows.min(below) } else { end - n_rows.min(above)..end }
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

/// The row that begins with the same text as row `old` did, or contains its beginning.
fn exact_or_near(rows: &dyn Relayout, old: usize) -> usize {
    rows.row(old).unwrap_or_else(|| rows.near(old))
}
