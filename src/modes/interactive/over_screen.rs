//! The alternate screen in inline mode, while something is read or chosen over the main screen.
//!
//! A terminal that becomes smaller moves its upper rows to the scrollback before a program can draw
//! anything else. Lists, reports and the pager are tall, so they are on the alternate screen, which has no
//! scrollback. The main screen stays as it was, and what settles in the meantime is written there
//! afterwards. Questions that nobody asked for stay on the main screen while they are small: what
//! led to them can be scrolled to there.

use std::borrow::Cow;
use std::io::{self, Write};
use std::iter;

use ratatui::layout::{Position, Size};

use crate::tui::term::{Document, FullscreenWindow, InlineWindow};
use crate::tui::text::Row;

use super::app::App;
use super::block_cursor;
use super::layout::Page;
use super::transcript::{Places, keep_places};
use super::ui::{below_dialogs, compose_dock, cover, dialog_rows};

/// The alternate screen. `W` is the terminal, or an emulator in tests.
pub(super) struct OverScreen<W> {
    window: FullscreenWindow<W>,
    below: MainScreen,
}

/// The main screen, as it was left.
pub(super) struct MainScreen {
    size: Size,
    /// The first screen row of the transcript and its dock, and their row there.
    origin: u16,
    top: usize,
    /// The rows above that one, blank where pi did not draw them.
    above: Vec<Row>,
    /// The rows in view.
    pub(super) places: Places,
    /// Whether the terminal has had another size since then.
    pub(super) is_resized: bool,
    /// Number of blank rows before the unsettled ones.
    n_blank: usize,
    /// Whether settled rows have changed since then.
    pub(super) is_relaid: bool,
}

/// Whether the app wants the alternate screen for something over the main one.
pub(super) fn is_wanted(app: &mut App, size: Size) -> bool {
    app.pager.is_some() || app.dialogs.has_chosen() || (app.dialogs.is_open() && is_tall(app, size))
}

/// Whether the open dialog takes more than half of the screen.
fn is_tall(app: &mut App, size: Size) -> bool {
    let dock = compose_dock(app, size.width, size.height);
    dialog_rows(app, &dock, size).is_some_and(|(rows, _)| rows.len() > usize::from(size.height / 2))
}

impl MainScreen {
    /// The main screen, on which the last frame had no dialog.
    pub(super) fn new<W: Write>(app: &mut App, screen: &InlineWindow<W>) -> Self {
        let in_view = screen.rows_in_view();
        Self {
            size: screen.size(),
            origin: screen.origin(),
            n_blank: screen.n_blank_shown(),
            top: in_view.start,
            above: screen.rows_above().cloned().collect(),
            places: app.transcript.places(in_view),
            is_resized: false,
            is_relaid: false,
        }
    }

    /// The rows of the main screen, at their places if these are known. Rows of the shell are blank. Rows of the
    /// transcript that another program or screen moved up are shown again.
    fn rows<'p>(&'p self, page: &'p Page<'_>, size: Size) -> Vec<Cow<'p, Row>> {
        let len = page.len();
        let height = usize::from(size.height);
        let is_in_place = !self.is_resized && !self.is_relaid && size == self.size;
        let (origin, n_blank) = if is_in_place { (usize::from(self.origin), self.n_blank) } else { (0, 0) };
        let n_blank = n_blank.min(height.saturating_sub(len.saturating_sub(self.top)));
        let end = len + n_blank;
        let first = if is_in_place { self.top.saturating_sub(origin) } else { 0 };
        let first = first.max(end.saturating_sub(height));
        let n_above = origin.saturating_sub(self.top).min(height.saturating_sub(end - first));
        let above = self.above.get(..origin.saturating_sub(self.top)).unwrap_or_default();
        let above = above.iter().skip(above.len().saturating_sub(n_above)).map(Cow::Borrowed);
        let shown = (first..len).map(|index| page.row(index));
        let mut rows: Vec<_> = above.chain(shown).take(height).collect();
        let at = (n_above + page.stable().saturating_sub(first)).min(rows.len());
        rows.splice(at..at, iter::repeat_with(Cow::default).take(n_blank));
        rows.truncate(height);
        rows
    }
}

impl<W: Write> OverScreen<W> {
    /// The terminal shows the alternate screen.
    pub(super) fn new(window: FullscreenWindow<W>, below: MainScreen) -> Self {
        Self { window, below }
    }

    pub(super) fn window(&mut self) -> &mut FullscreenWindow<W> {
        &mut self.window
    }

    pub(super) fn size(&self) -> Size {
        self.window.size()
    }

    /// Adopts a new size; a frame must follow.
    pub(super) fn resize(&mut self, size: Size) {
        self.window.resize(size);
        self.below.is_resized = true;
    }

    /// The main screen, which the terminal is about to show again on `screen`.
    pub(super) fn close(self, screen: &mut InlineWindow<W>) -> MainScreen {
        screen.return_to();
        self.below
    }

    /// Draws the pager, or the open dialog over the transcript.
    ///
    /// # Errors
    /// If the terminal cannot be written to.
    pub(super) fn draw(&mut self, app: &mut App) -> io::Result<()> {
        if app.pager.is_some() {
            return draw_pager(&mut self.window, app);
        }
        let size = self.window.size();
        self.lay_out(app, size.width);
        let dock = compose_dock(app, size.width, size.height);
        let Some((mut dialog, at)) = dialog_rows(app, &dock, size) else { return Ok(()) };
        let page = Page { transcript: &app.transcript, dock: &dock.rows };
        let mut rows = self.below.rows(&page, size);
        let end = rows.len().max(dialog.len());
        rows.resize_with(end, Cow::default);
        let first = end - dialog.len();
        let is_block = block_cursor::is_drawn(app);
        if let (true, Some((row, column))) = (is_block, at) {
            block_cursor::draw(&mut dialog, usize::from(row), column);
        }
        cover(&mut rows, dialog.into_iter().map(Cow::Owned), end);
        let first = u16::try_from(first).unwrap_or(u16::MAX);
        let cursor = at.map(|(row, column)| Position::new(column, first.saturating_add(row)));
        self.window.canvas_mut().set_cursor_hidden(is_block);
        self.window.draw(rows, cursor)
    }

    /// Lays the transcript out for this screen. The rows of the main screen stay in memory.
    fn lay_out(&mut self, app: &mut App, width: u16) {
        if !app.transcript.is_laid_out(width, &app.theme) {
            keep_places(&mut app.transcript, &self.below.places);
            self.below.is_relaid = true;
        }
        app.transcript.layout(width, &app.theme, app.now);
    }
}

/// Draws the pager.
///
/// # Errors
/// If the terminal cannot be written to.
pub(super) fn draw_pager<W: Write>(window: &mut FullscreenWindow<W>, app: &mut App) -> io::Result<()> {
    let Some(pager) = &mut app.pager else { return Ok(()) };
    pager.set_waiting(app.dialogs.is_open());
    let Size { width, height } = window.size();
    let footer = app.footer.rows(&app.session, app.home.as_deref(), app.now_ms, width, &app.theme);
    let footer = below_dialogs(&footer, height);
    let room = height.saturating_sub(u16::try_from(footer.len()).unwrap_or(u16::MAX));
    let (mut rows, cursor) = pager.render(Size::new(width, room), (&app.theme, &app.keymap), app.now);
    rows.extend_from_slice(footer);
    let cursor = cursor.map(|(row, column)| Position::new(column, row));
    window.draw(rows.into_iter().map(Cow::Owned), cursor)
}
