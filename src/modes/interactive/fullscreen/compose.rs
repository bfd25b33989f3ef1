//! The rows of a frame: those of the transcript with what is found and selected, and what is
//! drawn over them.

use std::ops::{Range, RangeInclusive};

use ratatui::style::{Modifier, Style};

use crate::config::Scrollbar;
use crate::tui::text::{Ellipsis, Row, truncate_row};
use crate::tui::theme::{Theme, Token};

use super::last_row;
use super::scrollback::{RECENT, Scrollback, Spot};
use super::scrollbar::Bar;
use super::selection::{Extent, with_style};
use super::view::{Fullscreen, Shown};
use super::viewport::{Viewport, section_cx};

impl Viewport<'_> {
    /// The rows above the dock, and the cursor among them, if it is there.
    pub(super) fn compose(&mut self, screen_width: u16) -> (Vec<Row>, Option<(u16, u16)>) {
        self.settle_top();
        self.load_above(2 * self.page);
        self.release_far();
        let kept = kept_parts(self.state);
        if let Some(top) = self.state.top {
            self.state.earlier.follow(top.part, &kept);
        }
        let top = self.top();
        let (page, width) = (self.page, self.width);
        let (state, app) = (&mut *self.state, &mut *self.app);
        let mut search = state.search.take();
        let selection = state.selection;
        let mut rows = state.scrollback(&app.transcript, section_cx(app, width));
        let last = rows.last();
        let spots = rows.spots(top, last, page);
        if let Some(search) = &mut search {
            search.recount(&mut rows);
        }
        let marks = Marks {
            selected: selection.and_then(|selection| selection.extent(&mut rows)),
            found: search.as_ref().map(|search| search.visible(&spots, &mut rows)).unwrap_or_default(),
            current: search.as_ref().and_then(|search| search.current),
        };
        let mut drawn: Vec<Row> =
            spots.iter().map(|spot| marked_row(*spot, &mut rows, &marks, &app.theme)).collect();
        drawn.resize(page, Row::default());
        let (above, total) = rows.position(top);
        state.search = search;

        let wants_bar = match app.session.settings.values.fullscreen.scrollbar {
            Scrollbar::Auto => state.top.is_some(),
            Scrollbar::Always => true,
            Scrollbar::Hidden => false,
        };
        let bar = wants_bar.then(|| Bar::of(above, total, page)).flatten();
        if let Some(bar) = &bar {
            bar.draw(&mut drawn, screen_width, &app.theme);
        }
        let label = last_row::draw(state, app, &mut drawn, screen_width);
        let cursor = last_row::cursor(state, &spots, page, screen_width, (&app.theme, &app.keymap));
        let first_recent = spots.iter().find(|spot| spot.part == RECENT);
        app.top_row = first_recent.map_or(0, |spot| spot.row);
        let n_blank_below = state.shown.n_blank_below;
        state.shown =
            Shown { spots, page, n_blank_below, width, screen_width, has_scrollbar: bar.is_some(), label };
        if state.top.is_none() {
            state.see_all(&app.transcript);
        }
        for row in &mut drawn {
            truncate_row(row, screen_width.max(1), Ellipsis::One);
        }
        (drawn, cursor)
    }
}

/// What is drawn in another style.
struct Marks {
    selected: Option<Extent>,
    /// Matches of the search.
    found: Vec<Extent>,
    /// The match that was gone to.
    current: Option<Extent>,
}

fn marked_row(spot: Spot, rows: &mut Scrollback<'_>, marks: &Marks, theme: &Theme) -> Row {
    if !rows.is_read(spot.part) {
        return Row::styled(" reading…", theme.style(Token::Dim));
    }
    let mut row = rows.row(spot).into_owned();
    // Marks of prompts are for a scrollback of the terminal.
    row.mark = None;
    let inside = row.text_columns();
    let reversed = Style::new().add_modifier(Modifier::REVERSED);
    let current = theme.style(Token::Accent).add_modifier(Modifier::REVERSED | Modifier::BOLD);
    for found in &marks.found {
        if let Some(columns) = found.columns(spot) {
            let style = if Some(*found) == marks.current { current } else { reversed };
            row = with_style(row, &within(&columns, &inside), style);
        }
    }
    match marks.selected.and_then(|selected| selected.columns(spot)) {
        Some(columns) if !row.is_frame() => with_style(row, &within(&columns, &inside), reversed),
        _ => row,
    }
}

fn within(columns: &Range<u16>, inside: &Range<u16>) -> Range<u16> {
    columns.start.max(inside.start)..columns.end.min(inside.end)
}

/// The sections that a selection needs.
fn kept_parts(state: &Fullscreen) -> RangeInclusive<usize> {
    match &state.selection {
        Some(selection) => {
            let (first, last) = (selection.anchor.min(selection.head), selection.anchor.max(selection.head));
            first.spot.part..=last.spot.part
        }
        None => RangeInclusive::new(1, 0),
    }
}
