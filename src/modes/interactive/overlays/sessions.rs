//! The list of sessions to continue.

use std::path::{Path, PathBuf};

use crate::session::{SessionCommand, SessionSummary};
use crate::tui::keymap::Keymap;
use crate::tui::term::InputEvent;
use crate::tui::text::Row;
use crate::tui::theme::Theme;
use crate::tui::widgets::{Picker, PickerItem, PickerOutcome};

use super::{Overlay, OverlayStep};

/// The sessions of this directory, newest first.
pub(in super::super) struct Sessions(Picker<PathBuf>);

impl Sessions {
    /// `now_ms` is the wall clock, for ages; `current` is left out.
    pub(in super::super) fn new(sessions: &[SessionSummary], current: Option<&Path>, now_ms: u64) -> Self {
        let items = sessions
            .iter()
            .filter(|session| Some(session.path.as_path()) != current)
            .map(|session| {
                let label =
                    session.name.as_deref().or(session.first_message.as_deref()).unwrap_or("(no messages)");
                let note = format!("{} messages · {}", session.n_messages, age(now_ms, session.modified_ms));
                PickerItem::new(session.path.clone(), label)
                    .note(note)
                    .detail(format!("{} · {}", session.id, session.cwd))
                    .keywords(format!(
                        "{} {}",
                        session.id,
                        session.first_message.as_deref().unwrap_or_default()
                    ))
            })
            .collect();
        Self(Picker::new("Sessions of this directory", items).hints("enter: continue · escape: cancel"))
    }
}

/// `now`, `5m`, `3h`, `2d`, `1w`, `1mo`, `1y`.
fn age(now_ms: u64, then_ms: u64) -> String {
    let minutes = now_ms.saturating_sub(then_ms) / 60_000;
    let (hours, days) = (minutes / 60, minutes / 60 / 24);
    match (minutes, hours, days) {
        (0, _, _) => "now".to_owned(),
        (_, 0, _) => format!("{minutes}m"),
        (_, _, 0) => format!("{hours}h"),
        (_, _, 1..7) => format!("{days}d"),
        (_, _, 7..30) => format!("{}w", days / 7),
        (_, _, 30..365) => format!("{}mo", days / 30),
        _ => format!("{}y", days / 365),
    }
}

impl Overlay for Sessions {
    fn handle(&mut self, input: &InputEvent, keymap: &Keymap) -> OverlayStep {
        match self.0.handle(input, keymap) {
            PickerOutcome::Pending | PickerOutcome::Ignored => OverlayStep::Stay,
            PickerOutcome::Cancelled => OverlayStep::Close,
            PickerOutcome::Chosen(path) => OverlayStep::close_with(SessionCommand::Open { path }),
        }
    }

    fn render(&mut self, width: u16, max_rows: u16, theme: &Theme) -> (Vec<Row>, Option<(u16, u16)>) {
        let drawn = self.0.render(width, max_rows, theme);
        (drawn.rows, drawn.cursor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_short() {
        let minutes = [0, 5, 60, 60 * 47, 60 * 24 * 8, 60 * 24 * 45, 60 * 24 * 800];
        let shown = minutes.map(|minutes| age(100_000_000_000_000, 100_000_000_000_000 - minutes * 60_000));
        assert_eq!(shown, ["now", "5m", "1h", "1d", "1w", "1mo", "2y"]);
    }
}
