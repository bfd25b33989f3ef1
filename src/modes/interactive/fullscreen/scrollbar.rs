//! The scrollbar.

use std::ops::Range;

use ratatui::style::Style;

use crate::tui::text::{Row, Run};
use crate::tui::theme::{Theme, Token};

/// The scrollbar: its handle, in rows of the screen.
pub(super) struct Bar {
    handle: Range<usize>,
}

impl Bar {
    /// `None` if everything is visible.
    pub(super) fn of(above: usize, total: usize, page: usize) -> Option<Self> {
        if total <= page || page == 0 {
            return None;
        }
        let size = (page * page / total).clamp(1, page);
        let room = page - size;
        let start = (above * room).div_ceil(total - page).min(room);
        Some(Self { handle: start..start + size })
    }

    pub(super) fn draw(&self, rows: &mut [Row], width: u16, theme: &Theme) {
        let Some(column) = width.checked_sub(1) else { return };
        for (index, row) in rows.iter_mut().enumerate() {
            let is_handle = self.handle.contains(&index);
            row.clip(column);
            row.pad(column, Style::new());
            let (symbol, token) =
                if is_handle { ("█", Token::ScrollbarThumb) } else { ("│", Token::ScrollbarTrack) };
            row.push(Run::new(symbol, theme.style(token)));
        }
    }
}
