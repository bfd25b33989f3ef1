//! A long text with scrolling.

use crossterm::event::KeyCode;
use ratatui::style::Modifier;

use super::super::keymap::{Context, Keymap};
use super::super::term::InputEvent;
use super::super::text::{Ellipsis, Row, Run, Wrap, truncate_row};
use super::super::theme::Token;
use super::{DialogCx, Hints};

/// The outcome of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PagerOutcome {
    Pending,
    /// The pager does not use the key; the owner may.
    Ignored,
    Closed,
}

/// A titled text that fills the screen.
#[derive(Debug)]
pub struct Pager {
    title: String,
    lines: Vec<Vec<Run>>,
    hints: Hints,
    wrapped: Option<(u16, Vec<Row>)>,
    scroll: usize,
    page: usize,
}

impl Pager {
    /// A pager over logical lines, which it wraps itself. Their text must be sanitised
    /// (see [`sanitize`](super::super::text::sanitize)).
    pub fn new(title: impl Into<String>, lines: Vec<Vec<Run>>) -> Self {
        Self { title: title.into(), lines, hints: Hints::new(), wrapped: None, scroll: 0, page: 1 }
    }

    /// Sets the rows below the position: the meaning of keys.
    #[must_use]
    pub fn hints(mut self, hints: Hints) -> Self {
        self.hints = hints;
        self
    }

    pub fn handle(&mut self, event: &InputEvent, keymap: &Keymap) -> PagerOutcome {
        let InputEvent::Key(key) = event else { return PagerOutcome::Ignored };
        match (keymap.lookup(Context::Select, key), key.code) {
            (Some("tui.select.up"), _) => self.scroll = self.scroll.saturating_sub(1),
            (Some("tui.select.down"), _) => self.scroll += 1,
            (Some("tui.select.pageUp"), _) => self.scroll = self.scroll.saturating_sub(self.page),
            (Some("tui.select.pageDown"), _) | (_, KeyCode::Char(' ')) => self.scroll += self.page,
            (Some("tui.select.cancel" | "tui.select.confirm"), _) | (_, KeyCode::Char('q')) => {
                return PagerOutcome::Closed;
            }
            (_, KeyCode::Home | KeyCode::Char('g')) => self.scroll = 0,
            (_, KeyCode::End | KeyCode::Char('G')) => self.scroll = usize::MAX / 2,
            _ => return PagerOutcome::Ignored,
        }
        PagerOutcome::Pending
    }

    /// As many rows as there is room for: a title, the text, the position, the keys.
    pub fn render(&mut self, cx: &DialogCx<'_>) -> Vec<Row> {
        let DialogCx { width, max_rows, theme, .. } = *cx;
        let width = width.max(1);
        if self.wrapped.as_ref().is_none_or(|(wrapped_at, _)| *wrapped_at != width) {
            let rows = self.lines.iter().flat_map(|line| Wrap::new(width).runs(line)).collect();
            self.wrapped = Some((width, rows));
        }
        let text = self.wrapped.as_ref().map_or(&[][..], |(_, rows)| rows);
        let below = self.hints.rows(cx);
        self.page = usize::from(max_rows).saturating_sub(2 + below.len()).max(1);
        self.scroll = self.scroll.min(text.len().saturating_sub(self.page));

        let mut rows =
            vec![Row::styled(self.title.clone(), theme.style(Token::Accent).add_modifier(Modifier::BOLD))];
        rows.extend(text.iter().skip(self.scroll).take(self.page).cloned());
        rows.resize(self.page + 1, Row::default());
        let end = (self.scroll + self.page).min(text.len());
        rows.push(Row::styled(format!("{end}/{}", text.len()), theme.style(Token::Dim)));
        rows.extend(below);
        for row in &mut rows {
            truncate_row(row, width, Ellipsis::One);
        }
        rows.truncate(usize::from(max_rows));
        rows
    }
}

#[cfg(test)]
mod tests {
    use crossterm::event::{KeyEvent, KeyModifiers};
    use ratatui::style::Style;

    use super::super::super::keymap::{BINDINGS, Platform};
    use super::super::super::theme::{Appearance, ColorDepth, Theme};
    use super::*;

    #[test]
    fn scrolls_within_the_text() {
        let theme = Theme::builtin("dark", Appearance::Dark, ColorDepth::True).unwrap();
        let keymap = Keymap::new(&[BINDINGS], Platform::Unix);
        let lines = (1..=9).map(|n| vec![Run::new(format!("line {n}"), Style::new())]).collect();
        let mut pager = Pager::new("Text", lines);
        let mut shown = |code, max_rows| {
            let key = InputEvent::Key(KeyEvent::new(code, KeyModifiers::NONE));
            let outcome = pager.handle(&key, &keymap);
            let cx = DialogCx { width: 20, max_rows, theme: &theme, keymap: &keymap };
            let rows: Vec<String> = pager.render(&cx).iter().map(Row::text).collect();
            (outcome, rows)
        };
        assert_eq!(shown(KeyCode::Up, 4).1, ["Text", "line 1", "line 2", "2/9"]);
        assert_eq!(shown(KeyCode::PageDown, 4).1, ["Text", "line 3", "line 4", "4/9"]);
        assert_eq!(shown(KeyCode::End, 4).1, ["Text", "line 8", "line 9", "9/9"]);
        assert_eq!(shown(KeyCode::Down, 4).1, ["Text", "line 8", "line 9", "9/9"]);
        assert_eq!(shown(KeyCode::Esc, 0), (PagerOutcome::Closed, vec![]));
    }
}
