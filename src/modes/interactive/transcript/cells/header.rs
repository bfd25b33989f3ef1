//! The header above the transcript: the program and its keys.

use ratatui::style::Style;

use crate::tui::text::{Row, Run, Wrap, wrap_plain};
use crate::tui::theme::Token;

use super::super::render::{RenderCx, indented, side};

/// Texts of the program itself. Empty until they are set.
#[derive(Debug, Default)]
pub(in super::super) struct HeaderCell {
    pub(in super::super) name: String,
    pub(in super::super) version: String,
    pub(in super::super) hints: Vec<String>,
}

impl HeaderCell {
    pub(super) fn rows(&self, cx: &RenderCx<'_>) -> Vec<Row> {
        if self.name.is_empty() {
            return Vec::new();
        }
        let width = cx.narrower(2 * side(cx.width)).width;
        let title = [
            Run::new(self.name.as_str(), cx.bold(Token::Accent)),
            Run::new(" ", Style::new()),
            Run::new(self.version.as_str(), cx.style(Token::Dim)),
        ];
        let mut rows = Wrap::new(width).runs(&title);
        for hint in &self.hints {
            rows.extend(wrap_plain(hint, width, cx.style(Token::Dim)));
        }
        rows.into_iter().map(|row| indented(row, cx.width)).collect()
    }
}
