//! Draws the editor: its rows between two borders, and the cursor's position.

use ratatui::style::Style;

use super::super::text::{Ellipsis, Row, truncate, visible_runs, width};
use super::super::theme::{Theme, Token};
use super::editor::Composer;

/// The inputs of drawing the editor.
#[derive(Debug, Clone)]
pub struct ComposerView<'a> {
    /// Cells per row, borders included.
    pub width: u16,
    /// Maximum number of text rows; further text scrolls. Borders are additional.
    pub max_rows: u16,
    /// Padding left and right of the text.
    pub padding: u16,
    pub theme: &'a Theme,
    pub border: Style,
    /// Text in the upper border, such as the effect of Enter. Parts after a ` · ` are left out where there is no room.
    pub label: &'a str,
    /// Shown while the text is empty.
    pub placeholder: &'a str,
}

/// The drawn editor.
#[derive(Debug, Clone, PartialEq)]
pub struct ComposerRows {
    pub rows: Vec<Row>,
    /// Row among `rows` and column of the cursor.
    pub cursor: (u16, u16),
}

impl Composer {
    /// The editor's rows: a border, at least one row of text, a border. Stores the
    /// size, on which vertical moves and pages depend.
    pub fn render(&mut self, view: &ComposerView<'_>) -> ComposerRows {
        let total = view.width.max(1);
        // Drop the padding if it would leave no room for a wide character.
        let padding = if total > 2 * view.padding + 1 { view.padding } else { 0 };
        let inner = usize::from(total - 2 * padding);
        self.width = inner;
        let (cursor_row, cursor_column) = self.cell();
        let n_rows = self.layout.rows.len();
        let shown = n_rows.clamp(1, usize::from(view.max_rows.max(1)));
        self.height = shown;
        self.scroll = self
            .scroll
            .min(n_rows.saturating_sub(shown))
            .clamp((cursor_row + 1).saturating_sub(shown), cursor_row);

        let mut rows = vec![border(view, total, self.scroll, '↑')];
        if self.is_empty() {
            let text = truncate(view.placeholder, inner, Ellipsis::One);
            rows.push(Row::styled(text, view.theme.style(Token::Dim)));
        } else {
            rows.extend((self.scroll..self.scroll + shown).map(|row_idx| self.text_row(row_idx, view.theme)));
        }
        for row in rows.iter_mut().skip(1) {
            row.clip(narrow(inner));
            row.indent(" ".repeat(usize::from(padding)), Style::new());
        }
        let below = n_rows.saturating_sub(self.scroll + shown);
        let bottom = ComposerView { label: "", ..view.clone() };
        rows.push(border(&bottom, total, below, '↓'));
        let cursor = (narrow(cursor_row - self.scroll + 1), narrow(cursor_column) + padding);
        ComposerRows { rows, cursor }
    }

    fn text_row(&self, row_idx: usize, theme: &Theme) -> Row {
        let Some(visual) = self.layout.rows.get(row_idx) else { return Row::default() };
        let line = self.model.line(visual.line);
        let (text, marked) = (theme.style(Token::Text), theme.style(Token::Accent));
        let mut row = Row::default();
        let mut done = visual.range.start;
        let mut push = |from: usize, to: usize, style| {
            let piece = line.get(from..to).unwrap_or_default();
            visible_runs(piece, style, theme.style(Token::Warning)).into_iter().for_each(|run| row.push(run));
        };
        for marker in self.markers.ranges(line) {
            let (start, end) = (marker.start.max(done), marker.end.min(visual.range.end));
            if start < end {
                push(done, start, text);
                push(start, end, marked);
                done = end;
            }
        }
        push(done, visual.range.end, text);
        row
    }
}

/// `── label ── ↑ 3 more ───`, as much as fits.
fn border(view: &ComposerView<'_>, total: u16, hidden: usize, arrow: char) -> Row {
    let total = usize::from(total);
    let mut text = String::new();
    if !view.label.is_empty() {
        let room = total.saturating_sub(5);
        text = format!("── {} ", truncate(whole_parts(view.label, room), room, Ellipsis::One));
    }
    if hidden > 0 {
        let more = format!("─── {arrow} {hidden} more ");
        if width(&text) + width(&more) <= total {
            text.push_str(&more);
        }
    }
    if width(&text) > total {
        text.clear();
    }
    let rest = "─".repeat(total - width(&text));
    Row::styled(text + &rest, view.border)
}

/// The parts of a label that fit, at least the first: part of the name of a key is worse than nothing.
fn whole_parts(label: &str, room: usize) -> &str {
    let mut shown = label;
    while width(shown) > room
        && let Some((parts, _)) = shown.rsplit_once(" · ")
    {
        shown = parts;
    }
    shown
}

fn narrow(count: usize) -> u16 {
    u16::try_from(count).unwrap_or(u16::MAX)
}
