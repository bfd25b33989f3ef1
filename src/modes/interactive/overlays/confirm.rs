//! Asks for confirmation before running work is cancelled.

use std::borrow::Cow;
use std::path::PathBuf;

use crate::session::{IfBusy, SessionCommand};
use crate::tui::keymap::Keymap;
use crate::tui::term::InputEvent;
use crate::tui::text::wrap_plain;
use crate::tui::theme::Token;
use crate::tui::widgets::{DialogCx, Hints, ListState, ListStep};

use super::dialog::Dialog;
use super::{DialogOutcome, Drawn, Overlay, OverlayStep};

/// A question whose first answer, which is selected, changes nothing. The others proceed.
pub(in super::super) struct Confirmation {
    pub(in super::super) title: &'static str,
    pub(in super::super) about: Cow<'static, str>,
    pub(in super::super) leave: &'static str,
    /// The other answers with their outcomes; `None` once it was used.
    pub(in super::super) proceed: Vec<(&'static str, Option<DialogOutcome>)>,
    /// The answers as a list; the first one is [`Self::leave`].
    pub(in super::super) list: ListState,
}

impl Confirmation {
    /// Asks before `command` cancels running work.
    pub(in super::super) fn cancel_work(mut command: SessionCommand) -> Self {
        if let Some(if_busy) = command.if_busy_mut() {
            *if_busy = IfBusy::Cancel;
        }
        let (title, proceed) = match &command {
            SessionCommand::New { .. } => ("Start a new session?", "Cancel and start a new session"),
            SessionCommand::Open { .. } => ("Open another session?", "Cancel and open the other session"),
            SessionCommand::Fork { .. } => ("Fork the session?", "Cancel and continue in the fork"),
            SessionCommand::Clone { .. } => ("Clone the session?", "Cancel and continue in the clone"),
            SessionCommand::Import { .. } => ("Import this session?", "Cancel, import and continue there"),
            _ => ("Continue elsewhere?", "Cancel and continue"),
        };
        Self {
            title,
            about:
                "The agent or a command is still working, and this cancels it. Finished work is kept, and \
                    queued messages return to the editor."
                    .into(),
            leave: "Keep working",
            proceed: vec![(proceed, Some(DialogOutcome::session(command)))],
            list: ListState::default(),
        }
    }

    /// Asks before another session takes the place of this one.
    pub(in super::super) fn import(path: PathBuf) -> Self {
        let import = DialogOutcome::session(SessionCommand::Import { path, if_busy: IfBusy::Refuse });
        Self {
            title: "Import this session?",
            about: "pi copies the file to your sessions and continues with the copy. This session is kept."
                .into(),
            leave: "Stay in this session",
            proceed: vec![("Import and continue there", Some(import))],
            list: ListState::default(),
        }
    }
}

/// The text as it continues a sentence.
fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(char::to_lowercase);
    first.into_iter().flatten().chain(chars).collect()
}

impl Overlay for Confirmation {
    fn handle(&mut self, input: &InputEvent, keymap: &Keymap) -> OverlayStep {
        let InputEvent::Key(key) = input else { return OverlayStep::Stay };
        match self.list.on_key(key, keymap, self.proceed.len() + 1) {
            ListStep::Moved | ListStep::Ignored => {}
            ListStep::Confirmed => {
                let chosen = self.list.selected().checked_sub(1).and_then(|at| self.proceed.get_mut(at));
                return match chosen.and_then(|(_, outcome)| outcome.take()) {
                    Some(outcome) => OverlayStep::CloseWith(outcome),
                    None => OverlayStep::Close,
                };
            }
            ListStep::Cancelled => return OverlayStep::Close,
        }
        OverlayStep::Stay
    }

    fn render(&mut self, cx: &DialogCx<'_>) -> Drawn {
        let body = wrap_plain(&self.about, cx.width.max(1), cx.theme.style(Token::Muted));
        let labels = [self.leave].into_iter().chain(self.proceed.iter().map(|(label, _)| *label));
        let labels: Vec<&str> = labels.collect();
        // What is cancelled otherwise is the work.
        let hints = Hints::confirm("choose").cancel(lower_first(self.leave));
        let dialog = Dialog { title: self.title, body, field: None, note: None, hints };
        dialog.render_choices((&mut self.list, &labels), cx)
    }
}
