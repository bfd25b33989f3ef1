//! The terminal of interactive mode: painter, input, modes and size.

use std::borrow::Cow;
use std::io;
use std::time::Duration;

use ratatui::layout::{Position, Size};

use crate::config::ResizeMode;
use crate::tui::keymap::Keymap;
use crate::tui::term::{Canvas, Control, FullscreenWindow, InputBroker, TerminalGuard, TerminalOutput};
use crate::tui::theme::Theme;
use crate::util::os;

use super::super::signals::EndSignals;
use super::app::App;
use super::pager::PagerView;
use super::pictures::PictureGallery;
use super::transcript::{self, RowPlace};
use super::ui::{self, Ui};

/// How long rows must not have moved before pictures are drawn over them.
const REST: Duration = Duration::from_millis(150);

/// How often the cursor is asked for again because the size changed meanwhile.
const SIZE_RETRIES: usize = 3;

/// Everything that reads from the terminal or writes to it. They share one owner because
/// the terminal answers queries between the keys.
pub(super) struct Terminal {
    pub(super) ui: Ui<TerminalOutput>,
    pub(super) guard: TerminalGuard,
    pub(super) signals: EndSignals,
    pub(super) input: InputBroker,
    /// The alternate screen, while the pager is open over the main screen.
    pages: Option<Canvas<TerminalOutput>>,
    /// The alternate screen, while pi uses it.
    full: Option<FullscreenWindow<TerminalOutput>>,
    /// Where the rows end that are on the main screen or in its scrollback, while pi is
    /// fullscreen; `None` if there are none.
    left_at: Option<RowPlace>,
    has_drawn_inline: bool,
    drawing: Drawing,
    /// When rows with pictures last moved on the alternate screen.
    moved_at: Duration,
}

/// How every screen is drawn.
pub(super) struct Drawing {
    /// Whether links are written as OSC 8.
    pub(super) links: bool,
    pub(super) pictures: PictureGallery,
}

impl Terminal {
    pub(super) fn new(
        ui: Ui<TerminalOutput>,
        guard: TerminalGuard,
        signals: EndSignals,
        input: InputBroker,
        drawing: Drawing,
    ) -> Self {
        let (pages, full, left_at, has_drawn_inline) = (None, None, None, false);
        let moved_at = Duration::ZERO;
        Self { ui, guard, signals, input, pages, full, left_at, has_drawn_inline, drawing, moved_at }
    }

    pub(super) fn pictures(&self) -> &PictureGallery {
        &self.drawing.pictures
    }

    /// Whether pi has written to the main screen.
    pub(super) fn has_drawn_inline(&self) -> bool {
        self.has_drawn_inline
    }

    /// Whether links are written as OSC 8.
    pub(super) fn set_links(&mut self, links: bool) {
        self.drawing.links = links;
        self.ui.screen.set_links(links);
        if let Some(full) = &mut self.full {
            full.set_links(links);
        }
    }

    /// Draws everything again with the next frame.
    pub(super) fn repaint(&mut self) {
        match &mut self.full {
            Some(full) => full.repaint(),
            None => self.ui.screen.repaint(),
        }
    }

    /// The size, if it differs from the painted one.
    pub(super) fn new_size(&mut self) -> Option<Size> {
        let painted = match (&self.full, &self.pages) {
            (Some(full), _) => full.size(),
            (None, Some(pages)) => pages.size(),
            (None, None) => self.ui.screen.size(),
        };
        self.input.size().filter(|size| *size != painted)
    }

    /// Draws the app on the screen that it wants.
    ///
    /// # Errors
    /// If the terminal cannot be written to.
    pub(super) fn draw(&mut self, app: &mut App) -> io::Result<()> {
        match (app.fullscreen.is_some(), self.full.is_some()) {
            (true, false) => self.enter_fullscreen(app)?,
            (false, true) => self.leave_fullscreen(app)?,
            (true, true) | (false, false) => {}
        }
        match &mut self.full {
            Some(full) => draw_on(full, app)?,
            None => self.draw_inline(app)?,
        }
        self.draw_pictures_at_rest(app.now)
    }

    /// Draws pictures over the rows of the alternate screen once these no longer move: each
    /// step would draw them again.
    fn draw_pictures_at_rest(&mut self, now: Duration) -> io::Result<()> {
        let Some(canvas) = alternate(&mut self.full, &mut self.pages) else { return Ok(()) };
        if canvas.have_pictures_moved() {
            self.moved_at = now;
        } else if canvas.have_pictures_waiting() && now.saturating_sub(self.moved_at) >= REST {
            return canvas.draw_waiting_pictures();
        }
        Ok(())
    }

    /// How long until pictures that wait are drawn; `None` if none wait.
    pub(super) fn pictures_due_in(&mut self, now: Duration) -> Option<Duration> {
        let canvas = alternate(&mut self.full, &mut self.pages)?;
        canvas.have_pictures_waiting().then(|| REST.saturating_sub(now.saturating_sub(self.moved_at)))
    }

    /// Leaves the finished rows on the main screen, and switches to the alternate one.
    fn enter_fullscreen(&mut self, app: &mut App) -> io::Result<()> {
        if self.pages.take().is_some() {
            self.guard.show_alternate_screen(false)?;
            self.follow_size(app);
        }
        if self.has_drawn_inline {
            self.ui.release(app)?;
            self.left_at =
                self.ui.screen.pushed().checked_sub(1).and_then(|last| app.transcript.place_in_text(last));
        }
        // Rows that have left memory are read again when they are needed.
        app.transcript.on_pushed(0);
        self.guard.set_fullscreen(true)?;
        let size = self.input.size().unwrap_or_else(|| self.ui.screen.size());
        let mut full = FullscreenWindow::new(self.ui.screen.sink().try_clone()?, size);
        full.set_links(self.drawing.links);
        full.set_pictures(self.drawing.pictures.store.clone());
        self.full = Some(full);
        Ok(())
    }

    /// Switches to the main screen, which continues after the rows that it has.
    fn leave_fullscreen(&mut self, app: &mut App) -> io::Result<()> {
        self.full = None;
        self.guard.set_fullscreen(false)?;
        let cursor = self.input.cursor_position().unwrap_or(Position::new(0, 0));
        let size = self.input.size().unwrap_or_else(|| self.ui.screen.size());
        let last = self.left_at.take();
        let (theme, transcript) = (&app.theme, &mut app.transcript);
        let row = transcript::continue_after(transcript, last.as_ref(), size.width, theme, app.now);
        self.ui.screen.continue_from(row);
        self.ui.screen.resume(size, cursor);
        Ok(())
    }

    /// Draws the app on the main screen, or the pager over it.
    fn draw_inline(&mut self, app: &mut App) -> io::Result<()> {
        if app.pager.is_none() {
            if self.pages.take().is_some() {
                self.guard.show_alternate_screen(false)?;
                // The main screen followed the size in the meantime.
                self.follow_size(app);
            }
            self.has_drawn_inline = true;
            return self.ui.draw(app);
        }
        if self.pages.is_none() {
            self.guard.show_alternate_screen(true)?;
            let size = self.input.size().unwrap_or_else(|| self.ui.screen.size());
            let sink = self.ui.screen.sink().try_clone()?;
            let mut pages = Canvas::new(sink, size, Position::new(0, 0));
            pages.set_pictures(self.drawing.pictures.store.clone());
            pages.let_pictures_wait();
            pages.erase_from_row(0)?;
            self.pages = Some(pages);
        }
        match (&mut app.pager, &mut self.pages) {
            (Some(pager), Some(pages)) => {
                pager.set_waiting(app.dialogs.is_open());
                draw_pages(pager, pages, (&app.theme, &app.keymap), app.now)
            }
            _ => Ok(()),
        }
    }

    /// Follows the size, if it changed; then a frame must follow. Returns whether it changed.
    pub(super) fn follow_size(&mut self, app: &mut App) -> bool {
        let Some(mut size) = self.new_size() else { return false };
        if let Some(full) = &mut self.full {
            full.resize(size);
            return true;
        }
        if let Some(pages) = &mut self.pages {
            pages.set_size(size);
            // The frame that follows reports a terminal that is gone.
            pages.erase_from_row(0).ok();
            return true;
        }
        let is_wider_or_narrower = size.width != self.ui.screen.size().width;
        if is_wider_or_narrower && app.session.settings.values.resize == ResizeMode::Replay {
            self.ui.replay(app, size);
            return true;
        }
        // The terminal moved its rows together with the cursor.
        let mut cursor = self.input.cursor_position();
        for _ in 0..SIZE_RETRIES {
            let Some(later) = self.input.size().filter(|later| *later != size) else { break };
            size = later;
            cursor = self.input.cursor_position();
        }
        self.ui.follow_size(app, size, cursor);
        true
    }

    /// Sends a control that does not affect the screen's contents.
    ///
    /// # Errors
    /// If the terminal cannot be written to.
    pub(super) fn control(&mut self, control: &Control) -> io::Result<()> {
        self.ui.screen.control(control)
    }

    /// Returns the terminal to the shell until the user resumes pi.
    ///
    /// # Errors
    /// If the terminal cannot be restored or the process cannot be stopped.
    pub(super) fn suspend(&mut self, app: &App) -> Result<(), String> {
        self.lend(app, || os::stop_job().map_err(|error| error.to_string()))
    }

    /// Lends the terminal to another program during `work`. The size must be
    /// the painted one.
    ///
    /// # Errors
    /// Those of `work`, or why the terminal could not be restored.
    pub(super) fn lend<T>(
        &mut self,
        app: &App,
        work: impl FnOnce() -> Result<T, String>,
    ) -> Result<T, String> {
        self.input.pause();
        if let Some(full) = &mut self.full {
            // The main screen is as pi left it, and the terminal keeps its cursor.
            full.resume();
            let result = self.guard.suspend(work).map_err(|error| error.to_string())?;
            self.signals.forget_keys();
            return result;
        }
        self.ui.release(app).map_err(|error| error.to_string())?;
        let result = self.guard.suspend(work).map_err(|error| error.to_string())?;
        self.signals.forget_keys();
        let cursor = self.input.cursor_position().unwrap_or(Position::new(0, 0));
        let size = self.input.size().unwrap_or_else(|| self.ui.screen.size());
        self.ui.screen.resume(size, cursor);
        result
    }

    /// Draws the last frame and restores the terminal.
    pub(super) fn leave(mut self, app: &mut App) {
        // Ignore errors, because the terminal may be gone.
        drop(self.ui.draw(app));
        self.input.pause();
        drop(self.ui.release(app));
        self.guard.leave();
    }

    /// Restores the terminal without writing to the main screen.
    pub(super) fn leave_untouched(mut self) {
        self.input.pause();
        self.guard.leave();
    }
}

/// The alternate screen, if it is shown.
fn alternate<'a>(
    full: &'a mut Option<FullscreenWindow<TerminalOutput>>,
    pages: &'a mut Option<Canvas<TerminalOutput>>,
) -> Option<&'a mut Canvas<TerminalOutput>> {
    full.as_mut().map(FullscreenWindow::canvas_mut).or(pages.as_mut())
}

/// Draws the pager, or the transcript with the editor.
fn draw_on(full: &mut FullscreenWindow<TerminalOutput>, app: &mut App) -> io::Result<()> {
    let Some(pager) = &mut app.pager else { return ui::draw_fullscreen(app, full) };
    pager.set_waiting(app.dialogs.is_open());
    let size = full.size();
    let (rows, cursor) = pager.render(size, (&app.theme, &app.keymap), app.now);
    let cursor = cursor.map(|(row, column)| Position::new(column, row));
    full.draw(rows.into_iter().map(Cow::Owned), cursor)
}

fn draw_pages(
    pager: &mut PagerView,
    pages: &mut Canvas<TerminalOutput>,
    looks: (&Theme, &Keymap),
    now: Duration,
) -> io::Result<()> {
    let size = pages.size();
    let (rows, cursor) = pager.render(size, looks, now);
    pages.show((0..size.height).zip(rows.into_iter().map(Cow::Owned)))?;
    let at = cursor.map_or(Position::new(0, size.height - 1), |(row, column)| Position::new(column, row));
    pages.place_cursor(at, cursor.is_some())?;
    pages.flush()
}
