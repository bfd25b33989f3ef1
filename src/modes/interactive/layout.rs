//! The order of the parts on screen: transcript, status, queue, editor, footer.

use std::borrow::Cow;

use crate::tui::term::Document;
use crate::tui::text::Row;

use super::transcript::Transcript;

/// The transcript with the dock below it.
pub(super) struct Page<'a> {
    pub(super) transcript: &'a Transcript,
    pub(super) dock: &'a [Row],
}

impl Document for Page<'_> {
    fn len(&self) -> usize {
        self.transcript.len() + self.dock.len()
    }

    fn row(&self, index: usize) -> Cow<'_, Row> {
        match index.checked_sub(self.transcript.len()) {
            None => self.transcript.row(index),
            Some(dock_idx) => {
                self.dock.get(dock_idx).map_or_else(|| Cow::Owned(Row::default()), Cow::Borrowed)
            }
        }
    }

    fn stable(&self) -> usize {
        self.transcript.stable()
    }
}

/// Rows the editor may take: a third of the screen, at most twelve.
pub(super) fn editor_rows(screen_rows: u16) -> u16 {
    (screen_rows / 3).clamp(1, 12)
}
