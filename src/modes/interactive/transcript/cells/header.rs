//! The header above the transcript: the program and its keys.

use ratatui::style::Style;

use crate::tui::text::{Row, Run, Wrap, sanitize_line, wrap_plain};
use crate::tui::theme::Token;

use super::super::render::{RenderCx, indented, side};
use super::super::resources::{self, ResourceSection};

/// Texts of the program itself. Empty until they are set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in super::super) struct HeaderCell {
    pub(in super::super) name: String,
    pub(in super::super) version: String,
    pub(in super::super) hints: Vec<String>,
    /// In place of the first hint when everything is expanded.
    pub(in super::super) keys: Vec<String>,
    pub(in super::super) resources: Vec<ResourceSection>,
    /// The models to cycle through, if there are some.
    pub(in super::super) scope: Option<String>,
}

impl HeaderCell {
    pub(super) fn rows(&self, cx: &RenderCx<'_>) -> Vec<Row> {
        if self.name.is_empty() {
            return Vec::new();
        }
        let inner = cx.narrower(2 * side(cx.width));
        let width = inner.width;
        let title = [
            Run::new(self.name.as_str(), cx.bold(Token::Accent)),
            Run::new(" ", Style::new()),
            Run::new(self.version.as_str(), cx.style(Token::Dim)),
        ];
        let mut rows = Wrap::new(width).runs(&title);
        let is_expanded = cx.view.expanded && !self.keys.is_empty();
        let (keys, hints) = self.hints.split_at(usize::from(is_expanded).min(self.hints.len()));
        let keys = if is_expanded { &self.keys } else { keys };
        let dim = cx.style(Token::Dim);
        let wrap = Wrap::new(width).rest(if is_expanded { "  " } else { "" }, dim);
        rows.extend(keys.iter().flat_map(|key| wrap.text(key, dim)));
        rows.extend(hints.iter().flat_map(|hint| wrap_plain(hint, width, dim)));
        let mut more = resources::rows(&self.resources, &inner);
        if let Some(scope) = &self.scope {
            more.extend(wrap_plain(&sanitize_line(scope), width, dim));
        }
        if !more.is_empty() {
            rows.push(Row::default());
            rows.extend(more);
        }
        rows.into_iter().map(|row| indented(row, cx.width)).collect()
    }
}
