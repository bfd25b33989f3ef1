//! The cursor as a block of cells, where the terminal does not show its own
//! (`showHardwareCursor`). The terminal's cursor is at the same place, for input methods.

use ratatui::style::{Modifier, Style};

use crate::tui::text::Row;

use super::app::App;
use super::fullscreen::with_style;

/// Whether the settings or the environment ask for it.
pub(super) fn is_drawn(app: &App) -> bool {
    !app.overrides.hardware_cursor.unwrap_or(app.session.settings.values.layout.hardware_cursor)
}

/// Draws the cursor in a row.
pub(super) fn draw(rows: &mut [Row], row: usize, column: u16) {
    let Some(slot) = rows.get_mut(row) else { return };
    let mut with_cell = std::mem::take(slot);
    let end = column.saturating_add(1);
    with_cell.pad(end, Style::new());
    *slot = with_style(with_cell, &(column..end), Style::new().add_modifier(Modifier::REVERSED));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, column: u16, expected: &str) {
        let mut rows = [Row::styled(text, Style::new())];
        draw(&mut rows, 0, column);
        let shown: String = (rows[0].line.spans.iter())
            .map(|span| match span.style.add_modifier.contains(Modifier::REVERSED) {
                true => format!("[{}]", span.content),
                false => span.content.to_string(),
            })
            .collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn the_character_at_the_cursor_or_a_blank_is_reversed() {
        check("word", 1, "w[o]rd");
        check("word", 4, "word[ ]");
        check("", 2, "  [ ]");
        check("深い", 2, "深[い]");
        draw(&mut [], 3, 0);
    }
}
