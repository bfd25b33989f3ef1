//! The terminal of interactive mode: painter, input, modes and size.

use std::fs::File;
use std::io;

use ratatui::layout::{Position, Size};
use rustix::process::{Signal, getpgrp, kill_process_group};

use crate::tui::term::{Control, InputBroker, TerminalGuard};

use super::super::signals::EndSignals;
use super::app::App;
use super::ui::Ui;

/// Everything that reads from the terminal or writes to it. They share one owner because
/// the terminal answers queries between the keys.
pub(super) struct Terminal {
    pub(super) ui: Ui<File>,
    pub(super) guard: TerminalGuard,
    pub(super) signals: EndSignals,
    pub(super) input: InputBroker,
}

impl Terminal {
    /// The size, if it differs from the painted one.
    pub(super) fn new_size(&mut self) -> Option<Size> {
        self.input.size().filter(|size| *size != self.ui.screen.size())
    }

    /// Follows the size once it is stable. Returns whether it changed.
    pub(super) fn follow_size(&mut self) -> bool {
        let Some(size) = self.input.size() else { return false };
        let now = self.ui.screen.size();
        if size.width != now.width {
            self.ui.screen.reset(size);
        } else if size.height != now.height {
            // Rows moved into or out of the scrollback, together with the cursor.
            let row = self.input.cursor_position().map(|position| position.y);
            self.ui.screen.height_changed(size, row);
        }
        true
    }

    /// Draws everything again with the next frame.
    pub(super) fn replay(&mut self) {
        let size = self.ui.screen.size();
        self.ui.screen.reset(size);
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
        if size.width == self.ui.screen.size().width {
            self.ui.screen.resume(size, cursor);
        } else {
            self.ui.screen.reset(size);
        }
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
