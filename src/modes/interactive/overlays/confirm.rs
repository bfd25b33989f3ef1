//! Asks for confirmation before running work is cancelled.

use std::borrow::Cow;
use std::path::PathBuf;

use crate::session::{IfBusy, SessionCommand};
use crate::tui::keymap::{Context, Keymap};
use crate::tui::term::InputEvent;
use crate::tui::text::{Row, wrap_plain};
use crate::tui::theme::Token;
use crate::tui::widgets::{DialogCx, Hints};

use super::dialog::Dialog;
use super::{DialogOutcome, Drawn, Overlay, OverlayStep};

/// A question whose first answer, which is selected, changes nothing. The others proceed.
pub(in super::super) struct Confirmation {
    pub(in super::super) title: &'static str,
    pub(in super::super) about: Cow<'static, str>,
    pub(in super::super) leave: &'static str,
    /// The other answers with their outcomes; `None` once it was used.
    pub(in super::super) proceed: Vec<(&'static str, Option<DialogOutcome>)>,
    /// The selected answer; 0 is the first.
    pub(in super::super) selected: usize,
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
            selected: 0,
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
            selected: 0,
        }
    }

    fn step(&mut self, by: usize) {
        self.selected = (self.selected + by) % (self.proceed.len() + 1);
    }
}

impl Overlay for Confirmation {
    fn handle(&mut self, input: &InputEvent, keymap: &Keymap) -> OverlayStep {
        let InputEvent::Key(key) = input else { return OverlayStep::Stay };
        match keymap.lookup(Context::Select, key) {
            Some("tui.select.up") => self.step(self.proceed.len()),
            Some("tui.select.down") => self.step(1),
            Some("tui.select.confirm") => {
                let chosen = self.selected.checked_sub(1).and_then(|at| self.proceed.get_mut(at));
                return match chosen.and_then(|(_, outcome)| outcome.take()) {
                    Some(outcome) => OverlayStep::CloseWith(outcome),
                    None => OverlayStep::Close,
                };
            }
            Some("tui.select.cancel") => return OverlayStep::Close,
            _ => {}
        }
        OverlayStep::Stay
    }

    fn render(&mut self, cx: &DialogCx<'_>) -> Drawn {
        let DialogCx { width, max_rows, theme, .. } = *cx;
        let option = |label: &str, is_selected: bool| {
            let (arrow, token) = if is_selected { ("→ ", Token::Accent) } else { ("  ", Token::Text) };
            Row::styled(format!("{arrow}{label}"), theme.style(token))
        };
        let mut body = wrap_plain(&self.about, width.max(1), theme.style(Token::Muted));
        body.truncate(usize::from(max_rows).saturating_sub(4 + self.proceed.len()));
        let labels = [self.leave].into_iter().chain(self.proceed.iter().map(|(label, _)| *label));
        body.extend(labels.enumerate().map(|(at, label)| option(label, at == self.selected)));
        let hints = Hints::confirm("choose").cancel("cancel");
        Dialog { title: self.title, body, field: None, note: None, hints }.render(cx)
    }
}
