//! The terminal of interactive mode: painter, input, modes and size.

use std::fs::File;
use std::io;

use ratatui::layout::{Position, Size};
use rustix::process::{Signal, getpgrp, kill_process_group};

use crate::config::ResizeMode;
use crate::tui::term::{Control, InputBroker, TerminalGuard};

use super::super::signals::EndSignals;
use super::app::App;
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
}

impl Terminal {
    /// The size, if it differs from the painted one.
    pub(super) fn new_size(&mut self) -> Option<Size> {
        self.input.size().filter(|size| *size != self.ui.screen.size())
    }

    /// Follows the size, if it changed; then a frame must follow. Returns whether it changed.
    pub(super) fn follow_size(&mut self, app: &mut App) -> bool {
        let Some(mut size) = self.new_size() else { return false };
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
