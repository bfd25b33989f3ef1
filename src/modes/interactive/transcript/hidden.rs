//! Looks for text that cells have and do not show.

use std::time::Duration;

use crate::tui::text::copied_text;
use crate::tui::theme::Theme;

use super::cell_list::Painted;
use super::cells::Cell;
use super::render::RenderCx;
use super::{Transcript, ViewSettings};

/// What keeps a text from being shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Hidden {
    /// Output and other long texts are shown in part.
    Collapsed,
    /// Thinking is one line.
    Thinking,
}

/// The action that shows what is hidden.
pub(in super::super) fn action_showing(hidden: Hidden) -> &'static str {
    match hidden {
        Hidden::Collapsed => "app.tools.expand",
        Hidden::Thinking => "app.thinking.toggle",
    }
}

/// More text would have to be read than was allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct TooMuch;

/// What hides the last text of the transcript that contains `query`, which is in lower case and is not shown
/// anywhere. Reads at most `max_bytes`.
pub(in super::super) fn find_hidden(
    transcript: &mut Transcript,
    query: &str,
    max_bytes: usize,
    (width, theme, now): (u16, &Theme, Duration),
) -> Result<Option<Hidden>, TooMuch> {
    let Transcript { cells, view, highlighter, .. } = transcript;
    let whole = ViewSettings { expanded: true, hide_thinking: false, ..view.clone() };
    let cx = RenderCx { width: width.max(1), theme, highlighter, view: &whole, now };
    let mut left = max_bytes;
    let other = view.toggled();
    for (cell, is_toggled) in cells.cells_mut().rev() {
        let Some(hidden) = cell.hidden_by(if is_toggled { &other } else { view }) else { continue };
        let (mut n_bytes, mut has_query) = (0, false);
        cell.each_text(&mut |text| {
            n_bytes += text.len();
            has_query |= n_bytes <= left && text.to_lowercase().contains(query);
        });
        left = left.checked_sub(n_bytes).ok_or(TooMuch)?;
        if has_query && shows(cell, query, &cx) {
            return Ok(Some(hidden));
        }
    }
    Ok(None)
}

/// Whether the rows of a cell contain a text of it: no view shows all that a call was given and returned.
fn shows(cell: &mut Cell, query: &str, cx: &RenderCx<'_>) -> bool {
    // It keeps how far it has been drawn, and shows all of its text.
    if let Cell::Thinking(_) = cell {
        return true;
    }
    let mut painted = Painted::default();
    cell.render(cx, &mut painted);
    let text = copied_text(painted.rows.iter().map(|row| (row, 0..u16::MAX)));
    text.to_lowercase().contains(query)
}
