//! The terminal that interactive mode has taken: painter, input, modes and size.

use std::fs::File;
use std::io;

use ratatui::layout::{Position, Size};
use rustix::process::{Signal, getpgrp, kill_process_group};

use crate::tui::term::{Control, InputBroker, TerminalGuard};

use super::super::signals::EndSignals;
use super::app::App;
use super::ui::Ui;

/// Everything that reads from the terminal or writes to it. They take turns: the
/// terminal answers queries among the keys.
pub(super) struct Terminal {
    pub(super) ui: Ui<File>,
    pub(super) guard: TerminalGuard,
    pub(super) signals: EndSignals,
    pub(super) input: InputBroker,
}

impl Terminal {
    /// The size, if it is not the one that is painted.
    pub(super) fn new_size(&mut self) -> Option<Size> {
        self.input.size().filter(|size| *size != self.ui.screen.size())
    }

    /// Follows the size, which has come to rest. Whether there is one to follow.
    pub(super) fn follow_size(&mut self) -> bool {
        let Some(size) = self.input.size() else { return false };
        let now = self.ui.screen.size();
        if size.width != now.width {
            self.ui.screen.reset(size);
        } else if size.height != now.height {
            // Rows moved into or out of the scrollback, and the cursor with them.
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

    /// Tells the terminal something that is not on the screen.
    ///
    /// # Errors
    /// When the terminal cannot be written to.
    pub(super) fn control(&mut self, control: &Control) -> io::Result<()> {
        self.ui.screen.control(control)
    }

    /// Gives the terminal to the shell until the user resumes pi.
    ///
    /// # Errors
    /// When the terminal cannot be handed over or the process cannot be stopped.
    pub(super) fn suspend(&mut self, app: &App) -> Result<(), String> {
        self.lend(app, || kill_process_group(getpgrp(), Signal::TSTP).map_err(|error| error.to_string()))
    }

    /// Gives the terminal to another program for the time of `work`. The size must be
    /// the one that is painted.
    ///
    /// # Errors
    /// Those of `work`, or why the terminal could not be handed over.
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

    /// Draws the last frame and hands the terminal back.
    pub(super) fn leave(mut self, app: &mut App) {
        // The terminal may be gone; then there is nobody to show this to.
        drop(self.ui.draw(app));
        self.input.pause();
        drop(self.ui.release(app));
        self.guard.leave();
    }
}
