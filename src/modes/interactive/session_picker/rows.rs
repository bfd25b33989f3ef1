//! Draws a session of the list: the title, and at the right edge what fits beside it.

use std::ops::Range;
use std::path::Path;

use crate::session::{MessageHit, SessionSummary};
use crate::tui::text::{
    Ellipsis, Row, Run, sanitize_line, truncate, truncate_middle, truncate_row, visible_line, visible_name,
    width,
};
use crate::tui::theme::{Theme, Token};
use crate::util::paths;

use super::super::super::sessions::{age, title};

/// How rows are drawn.
pub(super) struct RowStyle<'a> {
    pub(super) width_cells: u16,
    pub(super) theme: &'a Theme,
    pub(super) now_ms: u64,
    pub(super) home: Option<&'a Path>,
    /// Whether each row contains the directory, if there is room.
    pub(super) with_cwd: bool,
}

/// Narrower lists show no directories.
const MIN_WIDTH_WITH_CWD: usize = 56;

impl RowStyle<'_> {
    /// The row of a session. Number of messages and age are always shown.
    pub(super) fn session(
        &self,
        session: &SessionSummary,
        depth: usize,
        is_selected: bool,
        is_current: bool,
    ) -> Row {
        let theme = self.theme;
        let total = usize::from(self.width_cells);
        let token = match (is_selected, session.name.is_some()) {
            (true, _) | (_, true) => Token::Accent,
            (false, false) => Token::Text,
        };
        let style = theme.style(token);
        let right = format!("{:>4} {:>4}", session.n_messages, age(self.now_ms, session.modified_ms));
        let cwd = if self.with_cwd && total >= MIN_WIDTH_WITH_CWD {
            self.cwd(session, total / 3)
        } else {
            String::new()
        };
        let right = if cwd.is_empty() { right } else { format!("{cwd}  {right}") };
        let branch =
            if depth == 0 { String::new() } else { format!("{}└─ ", "   ".repeat(depth.min(4) - 1)) };
        let mark = if is_current { "(this session) " } else { "" };
        let left = format!("{branch}{mark}{}", visible_line(title(session)));
        let room = total.saturating_sub(2 + width(&right) + 2);
        let left = truncate(&left, room, Ellipsis::One);
        let gap = total.saturating_sub(2 + width(&left) + width(&right));
        let mut row = Row::from_runs([
            Run::new(if is_selected { "→ " } else { "  " }, style),
            Run::new(left.as_ref(), style),
            Run::new(" ".repeat(gap), style),
            Run::new(right, theme.style(Token::Muted)),
        ]);
        truncate_row(&mut row, self.width_cells.max(1), Ellipsis::One);
        row
    }

    fn cwd(&self, session: &SessionSummary, max_width: usize) -> String {
        let cwd = paths::display(Path::new(&session.cwd), self.home);
        truncate_middle(&visible_name(&cwd), max_width).into_owned()
    }

    /// The text that a search found, with its matches.
    pub(super) fn found(&self, message: &MessageHit) -> Row {
        let (theme, text) = (self.theme, &message.snippet.text);
        let dim = theme.style(Token::Muted);
        let mark = theme.style(Token::SearchMatchText).patch(theme.style(Token::SearchMatchBg));
        let mut row =
            Row::from_runs([Run::new(format!("    {}: ", message.author.name()), theme.style(Token::Dim))]);
        let mut end = 0;
        for Range { start, end: mark_end } in message.snippet.marks.iter().cloned() {
            row.push(Run::new(sanitize_line(&text[end..start]), dim));
            row.push(Run::new(sanitize_line(&text[start..mark_end]), mark));
            end = mark_end;
        }
        row.push(Run::new(sanitize_line(&text[end..]), dim));
        truncate_row(&mut row, self.width_cells.max(1), Ellipsis::One);
        row
    }
}
