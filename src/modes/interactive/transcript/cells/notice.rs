//! Lines about the program and about failed answers.

use crate::tui::text::{Row, visible};
use crate::tui::theme::Token;

use super::super::super::tool_view;
use super::super::render::{RenderCx, indented, side};
use super::super::resources::{self, ResourceSection};

/// Maximum rows of a notice while collapsed.
const COLLAPSED_ROWS: usize = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Tone {
    Info,
    Warning,
    Error,
    /// An error that is a complete sentence.
    Failure,
}

#[derive(Debug, Clone)]
pub(in super::super) struct NoticeCell {
    pub(in super::super) tone: Tone,
    pub(in super::super) text: String,
    /// Number of consecutive repetitions.
    times: u32,
    settled: bool,
    /// Whether it comes from an entry of the session, which shows it again.
    pub(in super::super) is_of_entry: bool,
    /// Shown in place of the text.
    resources: Vec<ResourceSection>,
}

impl NoticeCell {
    /// A permanent line.
    pub(in super::super) fn new(tone: Tone, text: &str) -> Self {
        let (text, resources) = (text.to_owned(), Vec::new());
        Self { tone, text, times: 1, settled: true, is_of_entry: false, resources }
    }

    /// A permanent list of what was loaded.
    pub(in super::super) fn listing(resources: Vec<ResourceSection>) -> Self {
        let text = resources::text(&resources);
        Self { resources, ..Self::new(Tone::Info, &text) }
    }

    /// A line that may come again, such as the reason why a request failed, or what a command cannot do.
    pub(in super::super) fn repeatable(tone: Tone, text: &str) -> Self {
        Self { settled: false, ..Self::new(tone, text) }
    }

    /// The same for a line that comes from an entry of the session.
    #[must_use]
    pub(in super::super) fn of_entry(self) -> Self {
        Self { is_of_entry: true, ..self }
    }

    /// Whether another line says the same, and no cell came between.
    pub(in super::super) fn is_repeated_by(&self, other: &Self) -> bool {
        let key = |notice: &Self| (notice.settled, notice.tone, notice.is_of_entry);
        key(self) == (false, other.tone, other.is_of_entry) && self.text == other.text
    }

    /// Counts a repetition.
    pub(in super::super) fn repeat(&mut self) {
        self.times += 1;
    }

    /// A line that the next of its kind replaces, until another cell follows.
    pub(in super::super) fn passing(text: &str) -> Self {
        Self::repeatable(Tone::Info, text)
    }

    pub(in super::super) fn settle(&mut self) -> bool {
        !std::mem::replace(&mut self.settled, true)
    }

    /// Whether the next such line replaces it.
    pub(in super::super) fn is_passing(&self) -> bool {
        !self.settled && self.tone == Tone::Info
    }

    pub(in super::super) fn is_settled(&self) -> bool {
        self.settled
    }

    pub(super) fn rows(&self, cx: &RenderCx<'_>) -> Vec<Row> {
        let inner = cx.narrower(2 * side(cx.width));
        if !self.resources.is_empty() {
            let rows = resources::rows(&self.resources, &inner);
            return rows.into_iter().map(|row| indented(row, cx.width)).collect();
        }
        let (lead, token) = match self.tone {
            Tone::Info => ("", Token::Dim),
            Tone::Warning => ("Warning: ", Token::Warning),
            Tone::Error => ("Error: ", Token::Error),
            Tone::Failure => ("", Token::Error),
        };
        // It may name what is in a file of the user, where nothing may be hidden.
        let text = visible(self.text.trim());
        if text.is_empty() {
            return Vec::new();
        }
        let limit = (!cx.view.expanded).then_some(COLLAPSED_ROWS);
        let count = if self.times > 1 { format!(" ({} times)", self.times) } else { String::new() };
        // After the first line, because the next lines contain instructions.
        let text = match text.split_once('\n') {
            Some((first, rest)) => format!("{first}{count}\n{rest}"),
            None => format!("{text}{count}"),
        };
        let rows = tool_view::head(&format!("{lead}{text}"), limit, cx.style(token), &inner);
        rows.into_iter().map(|row| indented(row, cx.width)).collect()
    }
}
