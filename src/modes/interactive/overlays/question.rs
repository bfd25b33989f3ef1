//! The dialog for a question of the session, such as whether a tool call may run.

use std::sync::Arc;

use crate::session::{Question, QuestionId, SessionCommand};
use crate::tui::keymap::Keymap;
use crate::tui::term::InputEvent;
use crate::tui::text::{sanitize_line, visible_line, wrap_plain};
use crate::tui::theme::Token;
use crate::tui::widgets::{DialogCx, Hints, ListState, ListStep};

use super::dialog::Dialog;
use super::{Drawn, Overlay, OverlayStep};

/// A question with its options. The default is selected first, because keys that the user
/// typed ahead must not decide.
pub(in super::super) struct QuestionDialog {
    question: Arc<Question>,
    list: ListState,
}

impl QuestionDialog {
    pub(in super::super) fn new(question: Arc<Question>) -> Self {
        Self { list: ListState::at(question.default), question }
    }

    pub(in super::super) fn id(&self) -> QuestionId {
        self.question.id
    }

    fn answer(&self, option: usize) -> OverlayStep {
        OverlayStep::close_with(SessionCommand::Answer { id: self.question.id, option })
    }
}

impl Overlay for QuestionDialog {
    fn handle(&mut self, input: &InputEvent, keymap: &Keymap) -> OverlayStep {
        let InputEvent::Key(key) = input else { return OverlayStep::Stay };
        match self.list.on_key(key, keymap, self.question.options.len()) {
            ListStep::Moved | ListStep::Ignored => {}
            ListStep::Confirmed => return self.answer(self.list.selected()),
            ListStep::Cancelled => return self.answer(self.question.default),
        }
        OverlayStep::Stay
    }

    fn render(&mut self, cx: &DialogCx<'_>) -> Drawn {
        let mut lines = self.question.text.lines();
        let title = visible_line(lines.next().unwrap_or_default());
        let muted = cx.theme.style(Token::Muted);
        let body = lines.flat_map(|line| wrap_plain(&visible_line(line), cx.width.max(1), muted)).collect();
        let default = self.question.options.get(self.question.default).map_or("", String::as_str);
        let hints = Hints::confirm("choose").cancel(sanitize_line(default).to_lowercase());
        let dialog = Dialog { title: &title, body, field: None, note: None, hints };
        dialog.render_choices((&mut self.list, &self.question.options), cx)
    }
}
