//! The layout of dialogs: a border, a title, text, an input line, a
//! note about a problem, and the keys.

use ratatui::style::{Modifier, Style};

use crate::tui::text::{Ellipsis, Row, sanitize_line, truncate_row, wrap_plain};
use crate::tui::theme::Token;
use crate::tui::widgets::{DialogCx, Field, Hints, ListItems, ListState};

use super::Drawn;

/// A few answers.
struct Choices<'a> {
    labels: &'a [&'a str],
    cx: &'a DialogCx<'a>,
}

impl ListItems for Choices<'_> {
    fn len(&self) -> usize {
        self.labels.len()
    }

    fn rows(&self, at: usize, is_selected: bool) -> Vec<Row> {
        let (arrow, token) = if is_selected { ("→ ", Token::Accent) } else { ("  ", Token::Text) };
        let label = format!("{arrow}{}", sanitize_line(self.labels[at]));
        vec![Row::styled(label, self.cx.theme.style(token))]
    }
}

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
    /// The same with choices below the text. On a small screen they matter more than the text.
    pub(in super::super) fn render_choices<S: AsRef<str>>(
        mut self,
        (list, labels): (&mut ListState, &[S]),
        cx: &DialogCx<'_>,
    ) -> Drawn {
        let note = self.note.map(|(text, _)| wrap_plain(text, cx.width.max(1), Style::new()).len());
        // Border, title and a row of hints.
        let room = usize::from(cx.max_rows).saturating_sub(3 + note.unwrap_or_default());
        let labels: Vec<&str> = labels.iter().map(AsRef::as_ref).collect();
        self.body.truncate(room.saturating_sub(labels.len()));
        let room = room.saturating_sub(self.body.len());
        self.body.extend(list.rows(&Choices { labels: &labels, cx }, room, (cx.width, cx.theme)));
        self.render_with(1, cx)
    }

    /// The rows, and the cursor's position. On a small screen the text is dropped first, then border and title.
    pub(in super::super) fn render(self, cx: &DialogCx<'_>) -> Drawn {
        self.render_with(0, cx)
    }

    /// The same with so many rows of the body that stay.
    fn render_with(mut self, n_kept: usize, cx: &DialogCx<'_>) -> Drawn {
        let DialogCx { width, max_rows, theme, .. } = *cx;
        let columns = width.max(1);
        let note = self.note.map(|(text, token)| wrap_plain(text, columns, theme.style(token)));
        let note = note.unwrap_or_default();
        // A row of hints stays too.
        let n_needed = n_kept + note.len() + usize::from(self.field.is_some()) + 1;
        let n_head = usize::from(max_rows).saturating_sub(n_needed).min(2);
        let n_others = n_head + note.len() + usize::from(self.field.is_some());
        // More than one row of hints only beside the whole text.
        let room = usize::from(max_rows).saturating_sub(n_others + self.body.len());
        let hints = self.hints.rows_at_most(room, cx);
        let n_fixed = n_others + hints.len();
        self.body.truncate(usize::from(max_rows).saturating_sub(n_fixed).max(n_kept));
        let mut rows = vec![
            Row::styled("─".repeat(usize::from(columns)), theme.style(Token::Border)),
            Row::styled(self.title, theme.style(Token::Accent).add_modifier(Modifier::BOLD)),
        ];
        rows.drain(..rows.len() - n_head);
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

#[cfg(test)]
mod tests {
    use crate::tui::keymap::{BINDINGS, Keymap, Platform};
    use crate::tui::theme::{Appearance, ColorDepth, Theme};

    use super::*;

    #[test]
    fn choice_or_field_and_keys_are_shown_first_where_rows_are_few() {
        let theme = Theme::builtin("dark", Appearance::Dark, ColorDepth::True).unwrap();
        let keymap = Keymap::new(&[BINDINGS], Platform::Unix);
        let check = |field: Option<&Field>, expected: [&str; 5]| {
            for max_rows in 1..=5 {
                let cx = DialogCx { width: 20, max_rows, theme: &theme, keymap: &keymap };
                let body = vec![Row::styled("Why", Style::new())];
                let hints = Hints::confirm("choose");
                let dialog = Dialog { title: "Sure?", body, field, note: None, hints };
                let (rows, _) = match field {
                    None => dialog.render_choices((&mut ListState::at(1), &["yes", "no"]), &cx),
                    Some(_) => dialog.render(&cx),
                };
                let rows: Vec<String> = rows.iter().map(|row| row.text().trim_end().to_owned()).collect();
                assert_eq!(rows.join("|"), expected[usize::from(max_rows) - 1], "{max_rows}");
            }
        };
        let border = "─".repeat(20);
        let [fourth, fifth] = ["|Sure?|→ no|enter: choose", "|Sure?|  yes|→ no|enter: choose"];
        let [fourth, fifth] = [fourth, fifth].map(|rows| border.clone() + rows);
        check(None, ["→ no", "→ no|enter: choose", "Sure?|→ no|enter: choose", &fourth, &fifth]);
        let [fourth, fifth] = ["|Sure?|> x|enter: choose", "|Sure?|Why|> x|enter: choose"];
        let [fourth, fifth] = [fourth, fifth].map(|rows| border.clone() + rows);
        let field = Field::with_text("x");
        check(Some(&field), ["> x", "> x|enter: choose", "Sure?|> x|enter: choose", &fourth, &fifth]);
    }
}
