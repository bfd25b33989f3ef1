//! `/debug`: what is on the screen and what pi knows of the terminal, for a report about a wrong screen.

use std::fmt::Write as _;
use std::ops::Range;

use ratatui::layout::Size;

use crate::tui::term::TerminalAnswers;
use crate::tui::text::Row;
use crate::util::{atomic_file, paths};

use super::app::App;
use super::effects::Effects;
use super::fullscreen;
use super::msg::EffectDone;
use super::ui::compose_dock;

/// The file in the agent's folder; the original has the same.
const FILE: &str = "pi-debug.log";
/// Rows of the transcript that are written, the last ones.
const MAX_ROWS: usize = 500;

/// What only the owner of the screen knows.
pub(super) struct ScreenFacts {
    pub(super) size: Size,
    /// First screen row of the window, and document rows that are in the scrollback.
    pub(super) origin: u16,
    pub(super) pushed: usize,
    /// Document rows on the screen.
    pub(super) in_view: Range<usize>,
}

/// The report. Contains the conversation as it is shown.
pub(super) fn report(app: &mut App, screen: &ScreenFacts, answers: &TerminalAnswers) -> String {
    let Size { width, height } = screen.size;
    let dock = compose_dock(app, width, height);
    let is_fullscreen = app.fullscreen.is_some();
    let page = usize::from(height).saturating_sub(dock.rows.len());
    let (first, rows) = if is_fullscreen {
        (0, fullscreen::render(app, width, page).0)
    } else {
        let first = app.transcript.len().saturating_sub(MAX_ROWS);
        (first, (first..app.transcript.len()).map(|at| app.transcript.row(at).into_owned()).collect())
    };
    let mut text = format!("pi {}\n", env!("CARGO_PKG_VERSION"));
    let session = app.session.path.as_deref().map(|path| path.display().to_string());
    let facts = [
        ("session", session.unwrap_or_else(|| "in memory".to_owned())),
        ("screen", format!("{width}x{height}, {}", if is_fullscreen { "fullscreen" } else { "main screen" })),
        ("window", format!("from screen row {}, {} rows in the scrollback", screen.origin, screen.pushed)),
        ("in view", format!("rows {}..{}", screen.in_view.start, screen.in_view.end)),
        ("terminal", format!("{answers:?}")),
    ];
    for (name, fact) in facts {
        writeln!(text, "{name}: {fact}").ok();
    }
    write_rows("Transcript", first, &rows, width, &mut text);
    write_rows("Editor and footer", first + rows.len(), &dock.rows, width, &mut text);
    text
}

/// Each row with its number and width; those that are too wide are marked.
fn write_rows(title: &str, first: usize, rows: &[Row], width: u16, text: &mut String) {
    writeln!(text, "\n{title}: number, width, text").ok();
    for (at, row) in rows.iter().enumerate() {
        let mark = if row.width() > usize::from(width) { "!" } else { " " };
        writeln!(text, "{:6}{mark}{:4}  {:?}", first + at, row.width(), row.text()).ok();
    }
}

impl Effects {
    /// Writes the report to a file for its owner alone; answers with [`EffectDone::Exported`].
    pub(super) fn write_debug_report(&self, text: String) {
        let (dirs, done) = (self.services.dirs.clone(), self.done.clone());
        tokio::task::spawn_blocking(move || {
            let path = dirs.agent.join(FILE);
            let shown = paths::display(&path, dirs.home.as_deref());
            drop(done.send(match atomic_file::write_private(&path, text.as_bytes()) {
                Ok(()) => EffectDone::Exported(format!(
                    "Wrote what is on the screen to {shown}. It contains the conversation as it is shown."
                )),
                Err(error) => EffectDone::Failed(format!("cannot write {shown}: {error}")),
            }));
        });
    }
}
