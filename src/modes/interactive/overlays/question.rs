//! The dialog for a question of the session, such as whether a tool call may run.

use std::sync::Arc;

use crate::session::{Question, QuestionId, SessionCommand};
use crate::tui::keymap::{Context, Keymap};
use crate::tui::term::InputEvent;
use crate::tui::text::{Row, sanitize_line, wrap_plain};
use crate::tui::theme::Token;
use crate::tui::widgets::{DialogCx, Hints};

use super::dialog::Dialog;
use super::{Drawn, Overlay, OverlayStep};

/// A question with its options. The default is selected first, because keys that the user
/// typed ahead must not decide.
pub(in super::super) struct QuestionDialog {
    question: Arc<Question>,
    selected: usize,
}

impl QuestionDialog {
    pub(in super::super) fn new(question: Arc<Question>) -> Self {
        Self { selected: question.default, question }
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
        let n = self.question.options.len().max(1);
        match keymap.lookup(Context::Select, key) {
            Some("tui.select.up") => self.selected = (self.selected + n - 1) % n,
            Some("tui.select.down") => self.selected = (self.selected + 1) % n,
            Some("tui.select.confirm") => return self.answer(self.selected),
            Some("tui.select.cancel") => return self.answer(self.question.default),
            _ => {}
        }
        OverlayStep::Stay
    }

    fn render(&mut self, cx: &DialogCx<'_>) -> Drawn {
        let DialogCx { width, max_rows, theme, .. } = *cx;
        let options: Vec<Row> = (self.question.options.iter().enumerate())
            .map(|(option_idx, label)| {
                let is_selected = option_idx == self.selected;
                let (arrow, token) = if is_selected { ("→ ", Token::Accent) } else { ("  ", Token::Text) };
                Row::styled(format!("{arrow}{}", sanitize_line(label)), theme.style(token))
            })
            .collect();
        let mut lines = self.question.text.lines();
        let title = sanitize_line(lines.next().unwrap_or_default()).into_owned();
        let muted = theme.style(Token::Muted);
        let mut body: Vec<Row> =
            lines.flat_map(|line| wrap_plain(&sanitize_line(line), width.max(1), muted)).collect();
        // On a small screen the options matter more than the text.
        body.truncate(usize::from(max_rows).saturating_sub(options.len() + 3));
        body.extend(options);
        let default = self.question.options.get(self.question.default).map_or("", String::as_str);
        let hints = Hints::confirm("choose").cancel(sanitize_line(default).to_lowercase());
        Dialog { title: &title, body, field: None, note: None, hints }.render(cx)
    }
}
