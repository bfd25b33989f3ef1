//! The model's thinking. Consecutive blocks are one
//! cell.

use ratatui::style::{Modifier, Style};

use crate::tui::text::{Ellipsis, Row, truncate_row};
use crate::tui::theme::Token;

use super::super::cell_list::Painted;
use super::super::render::RenderCx;
use super::streamed::StreamedText;

/// Replaces hidden thinking.
const LABEL: &str = "Thinking…";

/// Before each row where thinking has no colour of its own: italics are not seen everywhere.
const PLAIN_MARK: &str = "┊ ";

#[derive(Debug, Default)]
pub(in super::super) struct ThinkingCell {
    parts: Vec<String>,
    pub(super) streamed: StreamedText,
}

impl ThinkingCell {
    /// Begins another block and returns its number.
    pub(in super::super) fn add_part(&mut self) -> usize {
        self.parts.push(String::new());
        self.parts.len() - 1
    }

    pub(in super::super) fn push(&mut self, part_idx: usize, delta: &str) {
        let is_last = part_idx + 1 == self.parts.len();
        let Some(part) = self.parts.get_mut(part_idx) else { return };
        let goes_on = is_last && !part.is_empty();
        part.push_str(delta);
        if goes_on {
            self.streamed.push(delta);
        } else {
            self.join();
        }
    }

    pub(in super::super) fn set(&mut self, part_idx: usize, text: &str) {
        if let Some(part) = self.parts.get_mut(part_idx)
            && part != text
        {
            text.clone_into(part);
            self.join();
        }
    }

    pub(in super::super) fn finish(&mut self) {
        self.streamed.finish();
    }

    pub(in super::super) fn is_finished(&self) -> bool {
        self.streamed.is_finished()
    }

    fn join(&mut self) {
        let shown: Vec<&str> =
            self.parts.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
        self.streamed.set(&shown.join("\n\n"));
    }

    pub(super) fn text(&self) -> &str {
        self.streamed.text()
    }

    pub(super) fn render(&mut self, cx: &RenderCx<'_>, painted: &mut Painted) {
        let style = cx.style(Token::ThinkingText).add_modifier(Modifier::ITALIC);
        if !cx.view.hide_thinking {
            let mark = if style.fg.is_none() { PLAIN_MARK } else { "" };
            return self.streamed.render(cx, style, mark, painted);
        }
        if !self.streamed.text().trim().is_empty() {
            let mut label = Row::styled(LABEL, style);
            label.indent(" ".repeat(usize::from(cx.answer_side())), Style::new());
            truncate_row(&mut label, cx.narrower(cx.answer_side()).width, Ellipsis::One);
            painted.replace(vec![Row::default(), label]);
            painted.stable = painted.rows.len();
        }
    }
}
