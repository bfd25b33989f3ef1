//! Lines about the program and about answers that failed.

use crate::tui::text::{Row, sanitize};
use crate::tui::theme::Token;

use super::super::super::tool_view;
use super::super::render::{RenderCx, indented, side};

/// Of longer notices only the beginning is shown while collapsed.
const COLLAPSED_ROWS: usize = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Tone {
    Info,
    Warning,
    Error,
    /// An error that is a sentence of its own.
    Failure,
}

#[derive(Debug)]
pub(in super::super) struct NoticeCell {
    pub(in super::super) tone: Tone,
    pub(in super::super) text: String,
    settled: bool,
}

impl NoticeCell {
    /// A line that stays.
    pub(in super::super) fn new(tone: Tone, text: &str) -> Self {
        Self { tone, text: text.to_owned(), settled: true }
    }

    /// A line that the next of its kind may replace, until something else follows.
    pub(in super::super) fn passing(text: &str) -> Self {
        Self { tone: Tone::Info, text: text.to_owned(), settled: false }
    }

    pub(in super::super) fn settle(&mut self) -> bool {
        !std::mem::replace(&mut self.settled, true)
    }

    pub(in super::super) fn is_settled(&self) -> bool {
        self.settled
    }

    pub(super) fn rows(&self, cx: &RenderCx<'_>) -> Vec<Row> {
        let (lead, token) = match self.tone {
            Tone::Info => ("", Token::Dim),
            Tone::Warning => ("Warning: ", Token::Warning),
            Tone::Error => ("Error: ", Token::Error),
            Tone::Failure => ("", Token::Error),
        };
        let text = sanitize(self.text.trim());
        if text.is_empty() {
            return Vec::new();
        }
        let limit = (!cx.view.expanded).then_some(COLLAPSED_ROWS);
        let inner = cx.narrower(side(cx.width));
        let rows = tool_view::head(&format!("{lead}{text}"), limit, cx.style(token), &inner);
        rows.into_iter().map(|row| indented(row, cx.width)).collect()
    }
}
