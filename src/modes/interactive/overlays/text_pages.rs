//! The trace of the session, to scroll through.

use ratatui::style::Style;

use crate::tui::keymap::Keymap;
use crate::tui::term::InputEvent;
use crate::tui::text::{Row, Run, sanitize};
use crate::tui::theme::Theme;
use crate::tui::widgets::{Pager, PagerOutcome};

use super::{Overlay, OverlayStep};

/// A text that fills the screen.
pub(in super::super) struct TextPages(Pager);

impl TextPages {
    pub(in super::super) fn new(title: &str, text: &str) -> Self {
        let line = |line: &str| vec![Run::new(sanitize(line).into_owned(), Style::new())];
        Self(Pager::new(format!("{title} · escape: close"), text.lines().map(line).collect()))
    }
}

impl Overlay for TextPages {
    fn handle(&mut self, input: &InputEvent, keymap: &Keymap) -> OverlayStep {
        match self.0.handle(input, keymap) {
            PagerOutcome::Pending | PagerOutcome::Ignored => OverlayStep::Stay,
            PagerOutcome::Closed => OverlayStep::Close,
        }
    }

    fn render(&mut self, width: u16, max_rows: u16, theme: &Theme) -> (Vec<Row>, Option<(u16, u16)>) {
        (self.0.render(width, max_rows, theme), None)
    }
}
