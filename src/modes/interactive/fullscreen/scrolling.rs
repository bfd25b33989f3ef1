//! Where the screen goes: rows, pages, prompts, the start, the end, and what is held or found.

use super::scrollback::{RECENT, Spot};
use super::selection::Point;
use super::view::Move;
use super::viewport::{MORE_ROWS, Viewport};

impl Viewport<'_> {
    /// Does what inputs asked for since the last frame.
    pub(super) fn perform_all(&mut self) {
        for step in std::mem::take(&mut self.state.moves) {
            self.perform(step);
        }
    }

    fn perform(&mut self, step: Move) {
        let page_rows = isize::try_from(self.page).unwrap_or(isize::MAX);
        match step {
            Move::Rows(count) => self.scroll(count),
            Move::Pages(count) => self.scroll(count * (page_rows - 1).max(1)),
            Move::HalfPages(count) => self.scroll(count * (page_rows / 2).max(1)),
            Move::Bottom => {
                (self.state.top, self.state.at_end) = (None, false);
                self.move_caret_to_end();
            }
            Move::Top => {
                self.show_start();
                self.move_caret_to_start();
            }
            Move::Prompt { forward } => self.show_prompt(forward),
            Move::Part(thousandths) => self.show_part(thousandths),
            Move::Caret(step) => return self.move_caret(step),
        }
        self.keep_caret_visible();
    }

    /// Moves the first row by `count` rows.
    pub(super) fn scroll(&mut self, count: isize) {
        if self.state.top.is_none() && count >= 0 {
            return;
        }
        let from = self.top();
        self.state.top = Some(from);
        if count < 0 {
            self.load_above(count.unsigned_abs() + 2 * self.page);
        }
        let from = self.state.top.unwrap_or(from);
        let end = self.last_top();
        let mut rows = self.rows();
        let to = match count < 0 {
            true => rows.up(from, count.unsigned_abs()).0,
            false => rows.down(from, count.unsigned_abs()).0,
        };
        let is_read = rows.is_read(to.part);
        self.state.at_end = count < 0 && !is_read;
        self.state.top = (to < end).then_some(to);
    }

    fn show_start(&mut self) {
        self.state.top = Some(self.last_top());
        self.load_above(usize::MAX);
        let rows = self.rows();
        let (first, is_whole) = (rows.first(), rows.is_whole());
        (self.state.top, self.state.at_end) = (Some(first), false);
        if !is_whole {
            // Again, once the tree is there.
            self.state.moves.push(Move::Top);
        }
    }

    fn show_prompt(&mut self, forward: bool) {
        let from = self.top();
        self.state.top = Some(from);
        if !forward {
            self.load_prompt_above();
        }
        let from = self.state.top.unwrap_or(from);
        let end = self.last_top();
        let mut rows = self.rows();
        // A prompt begins with a blank row, which is the first one on the screen.
        if let Some(found) = rows.prompt(from, forward) {
            (self.state.top, self.state.at_end) = ((found < end).then_some(found), false);
        } else if forward {
            self.state.top = None;
        } else if rows.is_whole() {
            let first = rows.first();
            self.state.top = (first < end).then_some(first);
        } else {
            // Again, once the tree is there.
            self.state.moves.push(Move::Prompt { forward });
        }
    }

    /// Draws cells of the transcript until there is a prompt above the screen.
    fn load_prompt_above(&mut self) {
        self.load_above(4 * self.page);
        while let Some(top) = self.state.top
            && top.part == RECENT
            && self.app.transcript.hides_cells()
            && self.app.transcript.prompt_before(top.row).is_none()
        {
            self.load_above(top.row + MORE_ROWS);
        }
    }

    /// Goes to a part of the whole height.
    fn show_part(&mut self, thousandths: usize) {
        self.state.top = Some(self.last_top());
        self.load_above(usize::MAX);
        if !self.rows().is_whole() {
            // Again, once the tree is there.
            return self.state.moves.push(Move::Part(thousandths));
        }
        let end = self.last_top();
        let mut rows = self.rows();
        let (_, total) = rows.position(end);
        let wanted = total.saturating_mul(thousandths) / 1_000;
        let n_parts = rows.earlier.list.sections.len();
        let part = rows.first_part_at(wanted);
        let start = if part < n_parts { Spot { part, row: 0 } } else { rows.recent_first() };
        let (before, _) = rows.position(start);
        let spot = rows.down(start, wanted.saturating_sub(before)).0;
        let spot = rows.clamp(spot);
        (self.state.top, self.state.at_end) = ((spot < end).then_some(spot), false);
    }

    /// Scrolls while the mouse is held beyond the rows.
    pub(super) fn autoscroll(&mut self) {
        let Some(direction) = self.state.autoscroll else { return };
        self.scroll(direction);
        let (top, page) = (self.top(), self.page);
        let mut rows = self.rows();
        let edge = if direction < 0 { top } else { rows.down(top, page.saturating_sub(1)).0 };
        let column = if direction < 0 { 0 } else { self.width };
        if let Some(selection) = &mut self.state.selection {
            selection.extend(Point { spot: edge, column });
        }
    }

    /// Scrolls to a row, unless it is visible.
    pub(super) fn show_spot(&mut self, spot: Spot) {
        let (top, end, page) = (self.top(), self.last_top(), self.page);
        let mut rows = self.rows();
        // The last row is under the field of the search.
        let bottom = rows.down(top, page.saturating_sub(2)).0;
        if spot < top || spot > bottom {
            let to = rows.up(spot, page / 3).0;
            self.state.top = (to < end).then_some(to);
            self.state.at_end = false;
        }
    }
}
