//! The terminal of interactive mode: painter, input, modes and size.

use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::time::Duration;

use ratatui::layout::{Position, Size};
use rustix::process::{Signal, getpgrp, kill_process_group};

use crate::config::ResizeMode;
use crate::tui::term::{Canvas, Control, InputBroker, TerminalGuard};
use crate::tui::theme::Theme;

use super::super::signals::EndSignals;
use super::app::App;
use super::pager::PagerView;
use super::ui::Ui;

/// How often the cursor is asked for again because the size changed meanwhile.
const SIZE_RETRIES: usize = 3;

/// Everything that reads from the terminal or writes to it. They share one owner because
/// the terminal answers queries between the keys.
pub(super) struct Terminal {
    pub(super) ui: Ui<File>,
    pub(super) guard: TerminalGuard,
    pub(super) signals: EndSignals,
    pub(super) input: InputBroker,
    /// The alternate screen, while the pager is open.
    pub(super) pages: Option<Canvas<File>>,
}

impl Terminal {
    /// The size, if it differs from the painted one.
    pub(super) fn new_size(&mut self) -> Option<Size> {
        let painted = self.pages.as_ref().map_or(self.ui.screen.size(), Canvas::size);
        self.input.size().filter(|size| *size != painted)
    }

    /// Draws the app, or the pager on the alternate screen.
    ///
    /// # Errors
    /// If the terminal cannot be written to.
    pub(super) fn draw(&mut self, app: &mut App) -> io::Result<()> {
        if app.pager.is_none() {
            if self.pages.take().is_some() {
                self.guard.show_alternate_screen(false)?;
                // The main screen followed the size in the meantime.
                self.follow_size(app);
            }
            return self.ui.draw(app);
        }
        if self.pages.is_none() {
            self.guard.show_alternate_screen(true)?;
            let size = self.input.size().unwrap_or_else(|| self.ui.screen.size());
            let sink = self.ui.screen.sink().try_clone()?;
            let mut pages = Canvas::new(sink, size, Position::new(0, 0));
            pages.erase_from_row(0)?;
            self.pages = Some(pages);
        }
        match (&mut app.pager, &mut self.pages) {
            (Some(pager), Some(pages)) => {
                pager.set_waiting(app.dialogs.is_open());
                draw_pages(pager, pages, &app.theme, app.now)
            }
            _ => Ok(()),
        }
    }

    /// Follows the size, if it changed; then a frame must follow. Returns whether it changed.
    pub(super) fn follow_size(&mut self, app: &mut App) -> bool {
        let Some(mut size) = self.new_size() else { return false };
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
        self.lend(app, || kill_process_group(getpgrp(), Signal::TSTP).map_err(|error| error.to_string()))
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
}

fn draw_pages(
    pager: &mut PagerView,
    pages: &mut Canvas<File>,
    theme: &Theme,
    now: Duration,
) -> io::Result<()> {
    let size = pages.size();
    let rows = pager.render(size, theme, now);
    pages.show((0..size.height).zip(rows.into_iter().map(Cow::Owned)))?;
    let cursor = pager.cursor(size);
    let at = cursor.map_or(Position::new(0, size.height - 1), |(row, column)| Position::new(column, row));
    pages.place_cursor(at, cursor.is_some())?;
    pages.flush()
}
