//! Draws the app: composes one frame from the parts.

use std::borrow::Cow;
use std::io::{self, Write};

use ratatui::layout::{Position, Size};

use crate::tui::term::{
    Anchor, Cursor, Frame, FullscreenWindow, InlineWindow, Overlay as ScreenOverlay, record_erasure,
    record_size,
};
use crate::tui::text::Row;
use crate::tui::widgets::DialogCx;

use super::app::App;
use super::block_cursor;
use super::enter_label::enter_label;
use super::fullscreen;
use super::layout::{Page, editor_rows};
use super::overlays::Drawn;
use super::pending;
use super::transcript::{LeftRows, Places, continue_after, freeze, freeze_at, keep_places, left_rows};

/// The painter and the rows below the transcript. `W` is the terminal, or an emulator
/// in tests.
pub(super) struct Ui<W> {
    pub(super) screen: InlineWindow<W>,
    dock: Vec<Row>,
}

/// Smaller screens are left to a dialog or the pager, with at most the last row of the footer.
const LEAST_WITH_FOOTER: u16 = 12;
/// Smaller screens have no row of it either.
const LEAST_WITH_LAST_ROW: u16 = 10;

/// The dock of one frame.
pub(super) struct Dock {
    pub(super) rows: Vec<Row>,
    /// Row of the editor's upper border, the first row of the footer, and the cursor, all among
    /// `rows`.
    pub(super) editor: usize,
    pub(super) footer: usize,
    pub(super) cursor: (usize, u16),
}

impl Dock {
    /// The rows that stay below a dialog on a screen of this height.
    fn below_dialogs(&self, height: u16) -> &[Row] {
        below_dialogs(self.rows.get(self.footer..).unwrap_or_default(), height)
    }
}

/// The rows of the footer that stay below a dialog or the pager on a screen of this height.
pub(super) fn below_dialogs(footer: &[Row], height: u16) -> &[Row] {
    match height {
        LEAST_WITH_FOOTER.. => footer,
        LEAST_WITH_LAST_ROW.. => &footer[footer.len().saturating_sub(1)..],
        _ => &[],
    }
}

/// The open dialog with the footer below it, and the cursor's row and column among them.
pub(super) fn dialog_rows(app: &mut App, dock: &Dock, size: Size) -> Option<Drawn> {
    let below = dock.below_dialogs(size.height);
    let max_rows = size.height.saturating_sub(u16::try_from(below.len()).unwrap_or(u16::MAX));
    let cx = DialogCx { width: size.width, max_rows, theme: &app.theme, keymap: &app.keymap };
    let (mut rows, cursor) = app.dialogs.render(&cx)?;
    rows.extend_from_slice(below);
    Some((rows, cursor))
}

impl<W: Write> Ui<W> {
    pub(super) fn new(screen: InlineWindow<W>) -> Self {
        Self { screen, dock: Vec::new() }
    }

    /// Draws changes.
    ///
    /// # Errors
    /// If the terminal cannot be written to.
    pub(super) fn draw(&mut self, app: &mut App) -> io::Result<()> {
        let size = self.screen.size();
        app.transcript.on_pushed(self.screen.pushed());
        self.lay_out(app, size.width);
        let dock = compose_dock(app, size.width, size.height);
        let layout = &app.session.settings.values.layout;
        let clears = app.overrides.clear_on_shrink.unwrap_or(layout.clear_on_shrink);
        if clears
            && !app.dialogs.is_open()
            && self.screen.leaves_blank(app.transcript.len() + dock.rows.len())
        {
            self.replay(app, size);
            // Nothing has left the screen now, so that this happens once.
            return self.draw(app);
        }

        freeze_overflow(app, &dock, size);
        let drawn = dialog_rows(app, &dock, size);
        self.paint(app, dock, drawn)
    }

    /// Draws changes without dialogs, before the terminal shows its alternate screen.
    ///
    /// # Errors
    /// If the terminal cannot be written to.
    pub(super) fn draw_undisturbed(&mut self, app: &mut App) -> io::Result<()> {
        let size = self.screen.size();
        app.transcript.on_pushed(self.screen.pushed());
        self.lay_out(app, size.width);
        let dock = compose_dock(app, size.width, size.height);
        freeze_overflow(app, &dock, size);
        self.paint(app, dock, None)
    }

    fn paint(&mut self, app: &mut App, dock: Dock, mut drawn: Option<Drawn>) -> io::Result<()> {
        let size = self.screen.size();
        let n_rows = app.transcript.len();
        let mut overlays = Vec::new();
        let editor = n_rows + dock.editor;
        // And their count.
        let wanted = completion_rows(app, size.height) + 1;
        let room = u16::try_from(wanted).unwrap_or(u16::MAX);
        let free = self.screen.room_beside(editor, room, n_rows + dock.rows.len());
        let completion = suggestions(app, size, wanted.min(usize::from(free)));
        self.dock = dock.rows;
        if block_cursor::is_drawn(app) {
            match &mut drawn {
                Some((rows, Some((row, column)))) => block_cursor::draw(rows, usize::from(*row), *column),
                Some((_, None)) => {}
                None => block_cursor::draw(&mut self.dock, dock.cursor.0, dock.cursor.1),
            }
        }
        self.screen.set_cursor_hidden(block_cursor::is_drawn(app));
        let mut cursor = Some(Cursor::Document { row: n_rows + dock.cursor.0, column: dock.cursor.1 });
        if let Some((rows, at)) = &drawn {
            overlays.push(ScreenOverlay { rows, anchor: Anchor::Bottom });
            cursor = at.map(|(row, column)| Cursor::Overlay { overlay: 0, row, column });
        } else if app.input.completion.is_open() {
            let anchor = Anchor::Beside { row: editor, room };
            overlays.push(ScreenOverlay { rows: &completion, anchor });
        }
        let page = Page { transcript: &app.transcript, dock: &self.dock };
        let drawn = self.screen.draw(&Frame { document: &page, overlays: &overlays, cursor });
        app.top_row = self.screen.rows_in_view().start;
        drawn
    }

    /// Lays the transcript out. If settled rows change, the window continues with the new ones.
    fn lay_out(&mut self, app: &mut App, width: u16) {
        let is_first = app.transcript.len() == 0;
        if is_first || self.screen.starts_over() || app.transcript.is_laid_out(width, &app.theme) {
            return app.transcript.layout(width, &app.theme, app.now);
        }
        let places = app.transcript.places(self.screen.rows_in_view());
        app.transcript.layout(width, &app.theme, app.now);
        self.screen.relaid(&app.transcript.moved(&places));
    }

    /// Adopts a new size; `cursor` is where the terminal put its cursor, and `places` are where its rows
    /// were. A frame must follow.
    pub(super) fn follow_size(
        &mut self,
        app: &mut App,
        size: Size,
        cursor: Option<Position>,
        places: &Places,
    ) {
        self.lay_out_at(app, size, places);
        // What is in the scrollback now stays there once.
        let kept = self.screen.first_kept(size, cursor);
        let n_frozen = kept.and_then(|row| freeze_at(&mut app.transcript, places, row));
        if n_frozen.is_some() {
            self.lay_out_at(app, size, places);
        }
        let moved = app.transcript.moved(places).after_freezing(n_frozen.unwrap_or(0));
        self.screen.resized(size, cursor, &moved);
    }

    /// Lays the transcript out for a screen of another size, without losing what is known about `places`.
    pub(super) fn lay_out_at(&mut self, app: &mut App, size: Size, places: &Places) {
        keep_places(&mut app.transcript, places);
        app.transcript.layout(size.width, &app.theme, app.now);
    }

    /// Lays the transcript out again for a screen of the same size, after it was laid out in other
    /// ways since its rows were at `places`.
    pub(super) fn lay_out_since(&mut self, app: &mut App, places: &Places) {
        self.lay_out_at(app, self.screen.size(), places);
        self.screen.relaid(&app.transcript.moved(places));
    }

    /// Clears screen and scrollback; the next frame writes the transcript again.
    pub(super) fn replay(&mut self, app: &mut App, size: Size) {
        app.transcript.replay_whole();
        record_size(size);
        record_erasure();
        self.screen.reset(size);
    }

    /// Removes dock and live rows from the screen, so that another program can write there.
    pub(super) fn release(&mut self, app: &App) -> io::Result<()> {
        let page = Page { transcript: &app.transcript, dock: &self.dock };
        self.screen.release(&page)
    }

    /// The same before pi draws on another screen. Returns the rows that stay here.
    pub(super) fn leave(&mut self, app: &mut App) -> io::Result<LeftRows> {
        let places = app.transcript.places(self.screen.rows_in_view());
        self.release(app)?;
        Ok(LeftRows::new(&app.transcript, places))
    }

    /// Continues after the rows that were left, where the last program left the cursor; a frame must follow.
    pub(super) fn continue_after(
        &mut self,
        app: &mut App,
        left: &LeftRows,
        (size, cursor): (Size, Position),
    ) {
        let row = continue_after(&mut app.transcript, left, size.width, &app.theme, app.now);
        self.screen.resume_at(row, size, cursor, &left_rows(&app.transcript, left));
    }
}

/// Unsettled rows for which the screen has no room leave it like settled ones, if they can be final.
fn freeze_overflow(app: &mut App, dock: &Dock, size: Size) {
    let n_rows = app.transcript.len() + dock.rows.len();
    freeze(&mut app.transcript, n_rows.saturating_sub(usize::from(size.height)));
}

/// Draws the app on the whole screen: the transcript, scrolled, above the dock.
///
/// # Errors
/// If the terminal cannot be written to.
pub(super) fn draw_fullscreen<W: Write>(app: &mut App, window: &mut FullscreenWindow<W>) -> io::Result<()> {
    let size = window.size();
    let Size { width, height } = size;
    let dock = compose_dock(app, width, height);
    let page = usize::from(height).saturating_sub(dock.rows.len());
    let n_blank = dock.rows.iter().take_while(|row| row.text().trim().is_empty()).count();
    let (mut rows, in_transcript) = fullscreen::render(app, width, page, n_blank);
    rows.extend_from_slice(&dock.rows);
    let narrow = |row: usize| u16::try_from(row).unwrap_or(u16::MAX);
    let mut cursor = in_transcript.unwrap_or((narrow(page + dock.cursor.0), dock.cursor.1));
    let mut is_cursor_shown = true;
    if let Some((dialog, at)) = dialog_rows(app, &dock, size) {
        let first = cover(&mut rows, dialog.into_iter(), usize::from(height));
        is_cursor_shown = at.is_some();
        cursor = at.map_or(cursor, |(row, column)| (narrow(first).saturating_add(row), column));
    } else if app.input.completion.is_open() && in_transcript.is_none() {
        let end = page + dock.editor;
        let completion = suggestions(app, size, end.min(completion_rows(app, height) + 1));
        cover(&mut rows, completion.into_iter(), end);
    }
    if is_cursor_shown && block_cursor::is_drawn(app) {
        block_cursor::draw(&mut rows, usize::from(cursor.0), cursor.1);
    }
    window.canvas_mut().set_cursor_hidden(block_cursor::is_drawn(app));
    let cursor = is_cursor_shown.then_some(Position::new(cursor.1, cursor.0));
    window.draw(rows.into_iter().map(Cow::Owned), cursor)
}

/// The suggestions and their count, on at most `max_rows` rows.
fn suggestions(app: &mut App, size: Size, max_rows: usize) -> Vec<Row> {
    let mut rows = app.input.completion.rows(size.width, max_rows.saturating_sub(1).max(1), &app.theme);
    rows.truncate(max_rows);
    rows
}

/// Rows with suggestions: as set, as long as the transcript stays visible above them.
fn completion_rows(app: &App, height: u16) -> usize {
    /// The fewest that the setting allows.
    const LEAST: u16 = 3;
    let wanted = app.session.settings.values.layout.completion_rows;
    usize::from(wanted.min((height / 2).max(LEAST)))
}

/// Puts rows over others so that they end above row `end`. Returns the first of them.
pub(super) fn cover<R>(rows: &mut [R], over: impl ExactSizeIterator<Item = R>, end: usize) -> usize {
    let first = end.saturating_sub(over.len());
    for (slot, row) in rows.iter_mut().skip(first).zip(over) {
        *slot = row;
    }
    first
}

/// Smaller screens have no blank row above the status.
const ROWS_WITH_GAP: u16 = 16;

/// Status, queue, editor and footer; on small screens only the editor's text.
pub(super) fn compose_dock(app: &mut App, width: u16, height: u16) -> Dock {
    let mut rows = Vec::new();
    let theme = &app.theme;
    if height >= ROWS_WITH_GAP {
        // Cells begin with a blank row, and so does what follows the last one.
        rows.push(Row::default());
    }
    if height >= 6 {
        let interrupt_key = app.keymap.hint("app.interrupt");
        let quit_hint = app.input.quit_hint(&app.keymap);
        app.status.is_still = app.session.settings.values.reduced_motion;
        let unsaved = app.session.unsaved.as_deref();
        rows.push(app.status.row(app.now, &interrupt_key, quit_hint.as_deref(), unsaved, width, theme));
    }
    if height >= 6 {
        let (queue, dequeue_key) = (&app.session.queue, app.keymap.hint("app.message.dequeue"));
        if height >= 12 {
            rows.extend(pending::rows(queue, &dequeue_key, width, theme));
        } else {
            rows.extend(pending::summary(queue, &dequeue_key, width, theme));
        }
    }
    let editor = rows.len();
    let is_provider = |name: &str| app.input.completion.knows_provider(name);
    let when_busy = app.input.prompt.when_busy(&app.session);
    let enter = enter_label(&app.input.planned(), (&app.session, when_busy), is_provider, &app.keymap);
    let drawn = app.input.prompt.render(width, editor_rows(height), theme, &app.session, enter);
    let (mut cursor_row, column) = (usize::from(drawn.cursor.0), drawn.cursor.1);
    let mut editor_rows = drawn.rows;
    if height < 5 && editor_rows.len() > 2 {
        // No room for borders.
        editor_rows.pop();
        editor_rows.remove(0);
        cursor_row = cursor_row.saturating_sub(1);
    }
    rows.extend(editor_rows);
    let footer = rows.len();
    if height >= 8 {
        rows.extend(app.footer.rows(&app.session, app.home.as_deref(), app.now_ms, width, theme));
    }
    Dock { rows, editor, footer, cursor: (editor + cursor_row, column) }
}
