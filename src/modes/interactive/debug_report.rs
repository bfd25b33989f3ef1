//! `/debug`: what is on the screen and what pi knows of the terminal, for a report about a wrong screen.

use std::borrow::Borrow;
use std::fmt::Write as _;
use std::ops::Range;

use ratatui::layout::Size;

use crate::tui::term::{ScreenReport, TerminalAnswers};
use crate::tui::text::Row;
use crate::util::{atomic_file, paths};

use super::app::App;
use super::effects::Effects;
use super::msg::EffectDone;

/// The file in the agent's folder; the original has the same.
const FILE: &str = "pi-debug.log";
/// Rows of the transcript that are written, the last ones.
const MAX_ROWS: usize = 500;

/// What only the owner of the screen knows.
pub(super) struct ScreenFacts {
    /// Which screen is shown.
    pub(super) name: &'static str,
    /// The size of the last frame.
    pub(super) painted: Size,
    /// The size that the system knows.
    pub(super) system: Option<Size>,
    /// The size and the cursor that the terminal reports.
    pub(super) reported: ScreenReport,
    /// The rows of the last frame; `None` for blank ones.
    pub(super) rows: Vec<Option<Row>>,
    /// First screen row of the window on the main screen.
    pub(super) origin: u16,
    /// Document rows that are in the scrollback.
    pub(super) pushed: usize,
    /// Document rows on the main screen.
    pub(super) in_view: Range<usize>,
}

/// The report. Contains the conversation as it is shown.
pub(super) fn report(app: &App, screen: &ScreenFacts, answers: &TerminalAnswers) -> String {
    let ScreenFacts { name, reported, .. } = screen;
    let session = app.session.path.as_deref().map(|path| path.display().to_string());
    let size = |size: Option<Size>| size.map_or_else(|| "unknown".to_owned(), |size| size.to_string());
    let cursor = reported.cursor.map(|at| format!("column {}, row {}", at.x, at.y));
    let facts = [
        ("session", session.unwrap_or_else(|| "in memory".to_owned())),
        ("screen", format!("{}, {name}", screen.painted)),
        ("size reported by the system", size(screen.system)),
        ("size reported by the terminal", size(reported.size)),
        ("cursor reported by the terminal", cursor.unwrap_or_else(|| "unknown".to_owned())),
        ("window", format!("from screen row {}, {} rows in the scrollback", screen.origin, screen.pushed)),
        ("in view", format!("rows {}..{}", screen.in_view.start, screen.in_view.end)),
        ("terminal", format!("{answers:?}")),
    ];
    let mut text = format!("pi {}\n", env!("CARGO_PKG_VERSION"));
    for (name, fact) in facts {
        writeln!(text, "{name}: {fact}").ok();
    }
    let width = screen.painted.width;
    let blank = Row::default();
    let rows = screen.rows.iter().map(|row| row.as_ref().unwrap_or(&blank));
    write_rows("Screen", rows.enumerate(), width, &mut text);
    let transcript = &app.transcript;
    let last = transcript.len().saturating_sub(MAX_ROWS)..transcript.len();
    write_rows("Transcript", last.map(|at| (at, transcript.row(at))), width, &mut text);
    text
}

/// Each row with its number and width; those that are too wide are marked.
fn write_rows<R: Borrow<Row>>(
    title: &str,
    rows: impl Iterator<Item = (usize, R)>,
    width: u16,
    text: &mut String,
) {
    writeln!(text, "\n{title}: number, width, text").ok();
    for (at, row) in rows {
        let row = row.borrow();
        let mark = if row.width() > usize::from(width) { "!" } else { " " };
        writeln!(text, "{at:6}{mark}{:4}  {:?}", row.width(), row.text()).ok();
    }
}

impl Effects {
    /// Writes the report to a file for its owner alone; answers with [`EffectDone::Notice`].
    pub(super) fn write_debug_report(&self, text: String) {
        let (dirs, done) = (self.services.dirs.clone(), self.done.clone());
        tokio::task::spawn_blocking(move || {
            let path = dirs.agent.join(FILE);
            let shown = paths::display(&path, dirs.home.as_deref());
            drop(done.send(match atomic_file::write_owner_only(&path, text.as_bytes()) {
                Ok(()) => EffectDone::Notice(format!(
                    "Wrote what is on the screen to {shown}. It contains the conversation as it is shown."
                )),
                Err(error) => EffectDone::Failed(format!("cannot write {shown}: {error}")),
            }));
        });
    }
}
