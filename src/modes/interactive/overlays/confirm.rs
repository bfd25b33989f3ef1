//! Asks for confirmation before running work is cancelled.

use crate::tui::keymap::{Context, Keymap};
use crate::tui::term::InputEvent;
use crate::tui::text::{Row, wrap_plain};
use crate::tui::theme::{Theme, Token};

use super::dialog::Dialog;
use super::{DialogOutcome, Overlay, OverlayStep};

/// A question with two answers: keep working, which is selected first, or proceed.
pub(in super::super) struct Confirmation {
    pub(in super::super) title: &'static str,
    pub(in super::super) about: &'static str,
    pub(in super::super) leave: &'static str,
    pub(in super::super) confirm: &'static str,
    /// The outcome of confirming; `None` once it was used.
    pub(in super::super) then: Option<DialogOutcome>,
    pub(in super::super) is_confirmed: bool,
}

impl Overlay for Confirmation {
    fn handle(&mut self, input: &InputEvent, keymap: &Keymap) -> OverlayStep {
        let InputEvent::Key(key) = input else { return OverlayStep::Stay };
        match keymap.lookup(Context::Select, key) {
            Some("tui.select.up" | "tui.select.down") => self.is_confirmed = !self.is_confirmed,
            Some("tui.select.confirm") => {
                return match self.then.take().filter(|_| self.is_confirmed) {
                    Some(outcome) => OverlayStep::CloseWith(outcome),
                    None => OverlayStep::Close,
                };
            }
            Some("tui.select.cancel") => return OverlayStep::Close,
            _ => {}
        }
        OverlayStep::Stay
    }

    fn render(&mut self, width: u16, max_rows: u16, theme: &Theme) -> (Vec<Row>, Option<(u16, u16)>) {
        let option = |label: &str, is_selected: bool| {
            let (arrow, token) = if is_selected { ("→ ", Token::Accent) } else { ("  ", Token::Text) };
            Row::styled(format!("{arrow}{label}"), theme.style(token))
        };
        let mut body = wrap_plain(self.about, width.max(1), theme.style(Token::Muted));
        body.truncate(usize::from(max_rows).saturating_sub(5));
        body.extend([option(self.leave, !self.is_confirmed), option(self.confirm, self.is_confirmed)]);
        let hints = "enter: choose · escape: cancel";
        Dialog { title: self.title, body, field: None, note: None, hints }.render(width, max_rows, theme)
    }
}
