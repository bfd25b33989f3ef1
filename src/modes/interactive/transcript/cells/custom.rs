//! Messages that an application inserted into the conversation.

use crate::ai::UserContent;
use crate::session::CustomMessage;
use crate::tui::markdown;
use crate::tui::text::{Row, Run, Wrap, sanitize_line};
use crate::tui::theme::Token;

use super::super::super::tool_view;
use super::super::render::{BoxMark, RenderCx, box_inset, boxed};

/// Maximum rows of the text while collapsed.
const COLLAPSED_ROWS: usize = 10;

#[derive(Debug)]
pub(in super::super) struct CustomCell {
    kind: String,
    text: String,
}

impl CustomCell {
    pub(in super::super) fn new(message: &CustomMessage) -> Self {
        let text = message.content.as_ref().map(UserContent::text).unwrap_or_default();
        Self { kind: message.custom_type.clone(), text }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn rows(&self, cx: &RenderCx<'_>) -> Vec<Row> {
        let background = cx.style(Token::CustomMessageBg);
        let inner = cx.narrower(box_inset(cx.width, background));
        let label = format!("[{}]", sanitize_line(&self.kind));
        let mut content = Wrap::new(inner.width).runs(&[Run::new(label, cx.bold(Token::CustomMessageLabel))]);
        if !self.text.trim().is_empty() {
            content.push(Row::default());
            let options = cx.markdown(cx.style(Token::CustomMessageText));
            let rows = markdown::render(&self.text, inner.width, cx.theme, cx.highlighter, &options);
            let n_rows = rows.len();
            let shown = if cx.view.expanded { n_rows } else { COLLAPSED_ROWS.min(n_rows) };
            // Of a block that goes on, only what is shown is copied.
            let cut = rows.get(shown).and_then(Row::part);
            content.extend(rows.into_iter().take(shown).map(|mut row| {
                if cut.is_some() && row.part() == cut {
                    row.forget_part();
                }
                row
            }));
            if shown < n_rows {
                content.push(tool_view::hint(n_rows - shown, "more", &inner));
            }
        }
        boxed(content, cx.width, background, BoxMark::Labelled)
    }
}
