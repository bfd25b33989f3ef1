//! Follows the size of the main screen.
//!
//! The system can know the size later than the terminal: tmux changes its rows at once and tells programs at
//! most four times per second, and a connection takes its time. So the terminal is asked for its size together
//! with its cursor. It is asked when the transcript is laid out, so that the frame follows the answer
//! at once, and the frame asks again.

use std::io::Write;

use ratatui::layout::Size;

use crate::tui::term::{ScreenReport, SizeSeen};

use super::app::App;
use super::transcript::Places;
use super::ui::Ui;

/// How often a change is followed that is over before its frame is shown.
pub(super) const SIZE_RETRIES: usize = 4;

/// A terminal that can be asked.
pub(super) trait ScreenSensor {
    /// The size that the system knows.
    fn known_size(&self) -> Option<Size>;
    /// Cursor and size, at one moment.
    fn ask_screen(&mut self) -> ScreenReport;
}

/// Adopts the size that the terminal has now; a frame must follow. `places` are where the rows of the main
/// screen were, if the transcript was laid out in other ways since then.
pub(super) fn adopt_size<W: Write>(
    ui: &mut Ui<W>,
    app: &mut App,
    terminal: &mut impl ScreenSensor,
    places: Option<&Places>,
) {
    let own_places = places.is_none().then(|| app.transcript.places(ui.screen.rows_in_view()));
    let Some(places) = places.or(own_places.as_ref()) else { return };
    let mut size = terminal.known_size().unwrap_or_else(|| ui.screen.size());
    let mut cursor = None;
    for n in 0..SIZE_RETRIES {
        ui.lay_out_at(app, size, places);
        let report = terminal.ask_screen();
        cursor = report.cursor;
        let Some(other) = report.size.filter(|other| *other != size) else { break };
        // What the system knows may be from before the last frame.
        if n > 0 {
            ui.screen.had_size(SizeSeen::Between(size));
        }
        size = other;
    }
    ui.follow_size(app, size, cursor, places);
}

/// Whether the last frame was shown on a screen of its size. `sizes` are those that the terminal reported
/// before and after it. If not, the size must be adopted again.
pub(super) fn was_shown<W: Write>(ui: &mut Ui<W>, sizes: Option<(Size, Size)>) -> bool {
    let painted = ui.screen.size();
    let Some((before, after)) = sizes else { return true };
    if before != painted {
        ui.screen.had_size(SizeSeen::AtLastFrame(before));
    }
    (before, after) == (painted, painted)
}
