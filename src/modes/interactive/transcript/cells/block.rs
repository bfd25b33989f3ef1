//! A text of the program itself, such as the output of `/session`.

use ratatui::style::Style;

use crate::tui::markdown;
use crate::tui::text::Row;

use super::super::render::{RenderCx, indented, side};

#[derive(Debug)]
pub(in super::super) struct BlockCell {
    pub(in super::super) markdown: String,
}

impl BlockCell {
    pub(super) fn rows(&self, cx: &RenderCx<'_>) -> Vec<Row> {
        let width = cx.narrower(side(cx.width)).width;
        let options = cx.markdown(Style::new());
        let rows = markdown::render(&self.markdown, width, cx.theme, cx.highlighter, &options);
        rows.into_iter().map(|row| indented(row, cx.width)).collect()
    }
}
