//! Text of an answer.

use ratatui::style::Style;

use super::super::cell_list::Painted;
use super::super::render::RenderCx;
use super::streamed::StreamedText;

#[derive(Debug, Default)]
pub(in super::super) struct TextCell {
    pub(super) streamed: StreamedText,
}

impl TextCell {
    /// A text that is complete.
    pub(in super::super) fn finished(text: &str) -> Self {
        let mut cell = Self::default();
        cell.set(text);
        cell.finish();
        cell
    }

    pub(in super::super) fn push(&mut self, delta: &str) {
        self.streamed.push(delta);
    }

    pub(in super::super) fn set(&mut self, text: &str) {
        self.streamed.set(text);
    }

    pub(in super::super) fn finish(&mut self) {
        self.streamed.finish();
    }

    pub(super) fn is_finished(&self) -> bool {
        self.streamed.is_finished()
    }

    pub(super) fn render(&mut self, cx: &RenderCx<'_>, painted: &mut Painted) {
        self.streamed.render(cx, Style::new(), "", painted);
    }
}
