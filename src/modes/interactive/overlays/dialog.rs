//! The layout of dialogs: a border, a title, text, an input line, a
//! note about a problem, and the keys.

use ratatui::style::Modifier;

use crate::tui::text::{Ellipsis, Row, truncate_row, wrap_plain};
use crate::tui::theme::Token;
use crate::tui::widgets::{DialogCx, Field, Hints};

use super::Drawn;

/// One frame of a dialog.
pub(in super::super) struct Dialog<'a> {
    pub(in super::super) title: &'a str,
    /// Already wrapped to the width.
    pub(in super::super) body: Vec<Row>,
    pub(in super::super) field: Option<&'a Field>,
    /// A note to the user, and its colour.
    pub(in super::super) note: Option<(&'a str, Token)>,
    pub(in super::super) hints: Hints,
}

impl Dialog<'_> {
    /// The rows, and the cursor's position. On a small screen the text is dropped first.
    pub(in super::super) fn render(mut self, cx: &DialogCx<'_>) -> Drawn {
        let DialogCx { width, max_rows, theme, .. } = *cx;
        let columns = width.max(1);
        let note = self.note.map(|(text, token)| wrap_plain(text, columns, theme.style(token)));
        let note = note.unwrap_or_default();
        let n_others = 2 + note.len() + usize::from(self.field.is_some());
        // More than one row of hints only beside the whole text.
        let mut hints = self.hints.rows(cx);
        hints.truncate(usize::from(max_rows).saturating_sub(n_others + self.body.len()).max(1));
        let n_fixed = n_others + hints.len();
        self.body.truncate(usize::from(max_rows).saturating_sub(n_fixed));
        let mut rows = vec![
            Row::styled("─".repeat(usize::from(columns)), theme.style(Token::Border)),
            Row::styled(self.title, theme.style(Token::Accent).add_modifier(Modifier::BOLD)),
        ];
        rows.extend(self.body);
        let mut cursor = None;
        if let Some(field) = self.field {
            let (row, column) = field.render(columns, theme);
            cursor = Some((u16::try_from(rows.len()).unwrap_or(0), column));
            rows.push(row);
        }
        rows.extend(note);
        rows.extend(hints);
        for row in &mut rows {
            truncate_row(row, columns, Ellipsis::One);
        }
        rows.truncate(usize::from(max_rows.max(1)));
        let is_shown = |(row, _): &(u16, u16)| usize::from(*row) < rows.len();
        let cursor = cursor.filter(is_shown);
        (rows, cursor)
    }
}
