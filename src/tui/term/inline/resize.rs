//! What the window does about a change of the size: it computes where the terminal put its rows, and continues at
//! the first one whose place is certain.

use std::io::Write;

use ratatui::layout::{Position, Size};

use super::super::reflow::{Picture, Positions};
use super::{Due, InlineWindow, Relayout, SizeSeen, exact_or_near};

/// Most changes between two frames that are kept.
const MAX_SIZES: usize = 256;

/// Where the window continues after a change of the size.
struct Place {
    line: u16,
    pushed: usize,
}

impl<W: Write> InlineWindow<W> {
    /// Adopts a new size, for which the document has been laid out anew. The terminal has
    /// itself moved rows to or from its scrollback and may have wrapped them, together with
    /// the cursor; `reply` is the reported position of the cursor. The next
    /// frame must follow before the size changes again.
    pub fn resized(&mut self, size: Size, reply: Option<Position>, rows: &dyn Relayout) {
        let borrowed_from = (self.shown.top < self.pushed).then(|| exact_or_near(rows, self.shown.top));
        let place = self.is_on_screen().then(|| {
            let picture = self.picture();
            let found = self.positions(&picture, size, reply);
            self.traits = picture.learned(size, &found, self.traits);
            self.place_after(&picture, &found, size, rows)
        });
        self.canvas.set_size(size);
        self.above.clear();
        self.painted_on = None;
        self.sizes.clear();
        if let Some(cursor) = reply {
            self.canvas.forget_cursor(cursor);
            self.canvas.start_at_cursor(cursor);
        }
        let Some(place) = place else {
            self.origin = self.origin.min(self.height());
            return self.relaid(rows);
        };
        self.origin = place.line.min(self.height());
        self.pushed = place.pushed;
        let borrowed_from = borrowed_from.filter(|_| self.origin == 0);
        self.n_borrowed = borrowed_from.map_or(0, |first| self.pushed.saturating_sub(first));
        self.due = Due::EraseWrappedRows;
    }

    /// The first row on the screen after a change to `size`, if the terminal has moved unsettled rows to its
    /// scrollback. `reply` is the reported position of the cursor.
    pub fn first_kept(&self, size: Size, reply: Option<Position>) -> Option<usize> {
        if !self.is_on_screen() || self.start.is_some() || self.gap || self.shown.top < self.pushed {
            return None;
        }
        let picture = self.picture();
        let found = self.positions(&picture, size, reply);
        let is_on_screen = |n: &usize| {
            let mut tops = found.iter().filter_map(|positions| positions.tops.get(*n));
            tops.next().is_some_and(|top| *top >= 0 && tops.all(|other| other == top))
        };
        let end = self.shown.covered_from.unwrap_or(u16::MAX).min(self.shown.used);
        let n = (0..=usize::from(end.saturating_sub(self.origin))).find(is_on_screen)?;
        (n > self.n_settled()).then_some(self.shown.top + n)
    }

    /// Takes note of another size. [`Self::resized`] must follow.
    pub fn had_size(&mut self, seen: SizeSeen) {
        match seen {
            SizeSeen::AtLastFrame(size) => self.painted_on = Some(size),
            SizeSeen::Between(size) if self.sizes.last() == Some(&size) => {}
            SizeSeen::Between(size) => {
                if self.sizes.len() == MAX_SIZES {
                    self.sizes.remove(0);
                }
                self.sizes.push(size);
            }
        }
    }

    pub(super) fn picture(&self) -> Picture {
        let cursor = self.canvas.cursor();
        let end = self.shown.used.max(cursor.y + 1).max(self.origin).min(self.height());
        let picture = Picture {
            size: self.size(),
            origin: self.origin,
            used: self.shown.used.max(self.origin),
            cursor,
            n_above: self.pushed,
            sizes: self.sizes.clone(),
            shapes: (self.origin..end).map(|y| self.canvas.shape(y)).collect(),
        };
        match self.painted_on {
            Some(size) => picture.cut_to(size),
            None => picture,
        }
    }

    /// Where the rows of the document may be on a screen of `size`.
    fn positions(&self, picture: &Picture, size: Size, reply: Option<Position>) -> Vec<Positions> {
        let first_blank = self.stable.saturating_sub(self.shown.top);
        let found = picture.positions(size, reply, &self.traits).into_iter();
        found.map(|positions| positions.without_blank(first_blank, self.shown.n_blank)).collect()
    }

    /// Number of leading rows on the screen that are settled and not under an overlay.
    fn n_settled(&self) -> usize {
        let settled = self.stable.saturating_sub(self.shown.top);
        let end = self.shown.covered_from.unwrap_or(u16::MAX).min(self.shown.used);
        settled.min(usize::from(end.saturating_sub(self.origin)))
    }

    fn place_after(&self, picture: &Picture, found: &[Positions], size: Size, rows: &dyn Relayout) -> Place {
        let top_of = |n: usize| found.iter().filter_map(|positions| positions.tops.get(n)).min();
        let line = |top: i64| u16::try_from(top.max(0)).unwrap_or(u16::MAX).min(size.height);
        let lowest = |n: usize| line(top_of(n).copied().unwrap_or(0));
        let n_settled = self.n_settled().max(rows.n_frozen().saturating_sub(self.shown.top));
        if self.start.is_some() {
            return Place { line: lowest(n_settled), pushed: 0 };
        }
        if self.gap || self.shown.top < self.pushed {
            // Hidden rows have not left the screen, and borrowed ones have.
            return Place { line: lowest(0), pushed: exact_or_near(rows, self.pushed) };
        }
        let is_cut = size.width < picture.size.width && found.iter().all(|positions| !positions.reflows);
        if is_cut && let Some(positions) = found.first() {
            // What is on the screen was cut, so all of it is painted again.
            let first = positions.tops.iter().take(n_settled).position(|top| *top >= 0).unwrap_or(n_settled);
            let pushed = exact_or_near(rows, self.shown.top + first);
            return Place { line: lowest(first), pushed };
        }
        for n in 0..=n_settled {
            let mut tops = found.iter().filter_map(|positions| positions.tops.get(n));
            let Some(&top) = tops.next() else { continue };
            let is_certain = tops.all(|other| *other == top) && (top >= 0 || n == n_settled);
            if is_certain && let Some(pushed) = rows.row(self.shown.top + n) {
                return Place { line: line(top), pushed };
            }
        }
        // Erase from the highest candidate and paint from the earliest: some rows appear
        // twice, none is lost. Rows above the window are never erased.
        let below_shell = found.iter().filter_map(|positions| positions.tops.first()).max();
        let protected = below_shell.filter(|_| self.origin > 0).map_or(0, |top| line(*top));
        let line = lowest(n_settled).max(protected);
        let at_or_below = |positions: &Positions| {
            let tops = positions.tops.iter().take(n_settled);
            tops.into_iter().position(|top| *top >= i64::from(line)).unwrap_or(n_settled)
        };
        let first = found.iter().map(at_or_below).min().unwrap_or(n_settled);
        Place { line, pushed: exact_or_near(rows, self.shown.top + first) }
    }
}
