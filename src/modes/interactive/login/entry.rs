//! Prompts for one line of text, which may be a secret.

use crate::tui::keymap::{Context, Keymap};
use crate::tui::term::InputEvent;
use crate::tui::text::wrap_plain;
use crate::tui::theme::Token;
use crate::tui::widgets::{DialogCx, Field, Hints};

use super::super::overlays::{Dialog, Drawn, Overlay, OverlayStep};
use super::LoginMsg;

/// A dialog with a line to type into. An empty line is rejected.
pub(super) struct Entry {
    title: String,
    about: Vec<String>,
    field: Field,
    is_refused: bool,
    entered: Box<dyn Fn(&str) -> LoginMsg>,
}

impl Entry {
    /// Shows dots. `entered` converts the typed text to a message.
    pub(super) fn hidden(
        title: String,
        about: Vec<String>,
        entered: impl Fn(&str) -> LoginMsg + 'static,
    ) -> Self {
        Self { title, about, field: Field::hidden(), is_refused: false, entered: Box::new(entered) }
    }

    /// Shows the typed text.
    pub(super) fn plain(
        title: String,
        about: Vec<String>,
        entered: impl Fn(&str) -> LoginMsg + 'static,
    ) -> Self {
        Self { field: Field::plain(), ..Self::hidden(title, about, entered) }
    }
}

impl Overlay<LoginMsg> for Entry {
    fn handle(&mut self, input: &InputEvent, keymap: &Keymap) -> OverlayStep<LoginMsg> {
        let bound = match input {
            InputEvent::Key(key) => keymap.lookup(Context::Select, key),
            _ => None,
        };
        match bound {
            Some("tui.select.cancel") => return OverlayStep::Close,
            Some("tui.select.confirm") if self.field.text().trim().is_empty() => self.is_refused = true,
            Some("tui.select.confirm") => {
                return OverlayStep::CloseWith((self.entered)(self.field.text()));
            }
            _ => {
                if self.field.handle(input, keymap) {
                    self.is_refused = false;
                }
            }
        }
        OverlayStep::Stay
    }

    fn render(&mut self, cx: &DialogCx<'_>) -> Drawn {
        let muted = cx.theme.style(Token::Muted);
        let body = self.about.iter().flat_map(|line| wrap_plain(line, cx.width, muted)).collect();
        let dialog = Dialog {
            title: &self.title,
            body,
            field: Some(&self.field),
            note: self.is_refused.then_some(("type or paste it first", Token::Warning)),
            hints: Hints::confirm("continue").cancel("cancel"),
        };
        dialog.render(cx)
    }
}
