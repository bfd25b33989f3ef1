//! Where WezTerm puts its cursor when its width changes.
//!
//! It stays with its text, but not in the first column: there it goes to the row above, so that it does not lose
//! its line if a wrapped line ends before it. Every change of the width does that again, so its place follows from
//! all of them.

use ratatui::layout::{Position, Size};

use super::{From, Picture, flow};

/// Below, or above, the first row of its own line the cursor is, given its reported position.
pub(super) fn rows(picture: &Picture, size: Size, reply: Position) -> Vec<From> {
    let places = [&picture.sizes[..], &[]].map(|sizes| {
        let mut cursor = Cursor::new(picture);
        sizes.iter().chain([&size]).for_each(|size| cursor.resize(size.width));
        cursor
    });
    let is_reported = |cursor: &&Cursor<'_>| cursor.column.min(size.width.saturating_sub(1)) == reply.x;
    let mut found: Vec<i64> = places.iter().filter(is_reported).flat_map(Cursor::rows_down).collect();
    if found.is_empty() {
        // Sizes between are not known.
        found.extend(if picture.cursor.x == 0 { vec![-1] } else { places[1].rows_down() });
    }
    found.dedup();
    found.into_iter().map(From::CursorOn).collect()
}

/// The cursor on one of the rows that a painted row became.
struct Cursor<'a> {
    picture: &'a Picture,
    width: u16,
    /// Index of the painted row, and below its first row.
    line: usize,
    n_down: u16,
    /// May be after the last one.
    column: u16,
    /// Whether it is above all rows that are known.
    is_above: bool,
}

impl<'a> Cursor<'a> {
    fn new(picture: &'a Picture) -> Self {
        let line = usize::from(picture.cursor.y.saturating_sub(picture.origin));
        let (width, column) = (picture.size.width, picture.cursor.x);
        Self { picture, width, line, n_down: 0, column, is_above: false }
    }

    fn resize(&mut self, width: u16) {
        let before = std::mem::replace(&mut self.width, width.max(1));
        if before == self.width || self.is_above {
            return;
        }
        let at = self.n_down.saturating_mul(before).saturating_add(self.column);
        let column = std::mem::replace(&mut self.column, at % self.width);
        self.n_down = at / self.width;
        if self.column > 0 {
            return;
        }
        self.column = if self.width < before { column } else { self.width };
        if self.n_down > 0 {
            self.n_down -= 1;
        } else if self.line > 0 {
            self.line -= 1;
            self.n_down = self.height(self.line).saturating_sub(1);
        } else {
            self.is_above = true;
        }
    }

    /// How many rows a painted row is now.
    fn height(&self, line: usize) -> u16 {
        let shape = self.picture.shapes.get(line);
        let n_rows = shape.map_or(1, |shape| flow(shape.widths(false), self.width).0.max(1));
        u16::try_from(n_rows).unwrap_or(u16::MAX)
    }

    /// How far it is below the first row of the line on which it was. Blank rows at the end are dropped, and then it
    /// may be on the last row instead of below it.
    fn rows_down(&self) -> Vec<i64> {
        let own = usize::from(self.picture.cursor.y.saturating_sub(self.picture.origin));
        let n_up: i64 = (self.line..own).map(|line| i64::from(self.height(line))).sum();
        let last = self.height(self.line).saturating_sub(1);
        let is_last = self.picture.shapes.iter().skip(self.line + 1).all(|shape| shape.n_plain == 0);
        let dropped = (is_last && self.n_down > last).then_some(last);
        let rows = [Some(self.n_down), dropped].into_iter().flatten();
        rows.map(|n_down| i64::from(n_down) - n_up - i64::from(self.is_above)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ReflowTraits, RowShape};
    use super::*;

    /// Screen row of the first row: a rule, a draft with the cursor after it, and another rule, at the end of a
    /// screen of 80 columns.
    #[track_caller]
    fn check(n_draft: u16, sizes: &[u16], width: u16, reply: (u16, u16), first: i64) {
        let row = |n_cells: u16| RowShape { widths: vec![1; n_cells.into()], n_plain: n_cells.into() };
        let picture = Picture {
            size: Size::new(80, 10),
            origin: 7,
            used: 10,
            cursor: Position::new(n_draft, 8),
            n_above: 40,
            sizes: sizes.iter().map(|width| Size::new(*width, 10)).collect(),
            shapes: vec![row(80), row(n_draft), row(80)],
        };
        let reply = Some(Position::new(reply.0, reply.1));
        let found = picture.positions(Size::new(width, 10), reply, &ReflowTraits::of("wezterm"));
        let tops: Vec<i64> = found.iter().map(|positions| positions.tops[0]).collect();
        assert_eq!(tops, [first], "{n_draft} {sizes:?} {width}");
    }

    /// The positions are those that its code reported.
    #[test]
    fn cursor_in_the_first_column_goes_to_the_row_above() {
        check(0, &[], 60, (0, 6), 5);
        check(0, &[60], 50, (10, 6), 5);
        check(0, &[], 40, (0, 6), 5);
        check(0, &[], 100, (99, 6), 6);
        check(0, &[100], 120, (100, 6), 6);
        check(0, &[60], 80, (60, 6), 6);
        check(0, &[40], 80, (40, 6), 6);
        // Sizes that were not noticed.
        check(0, &[], 50, (29, 6), 5);
    }

    #[test]
    fn blank_rows_that_were_dropped_leave_the_text_on_the_last_row() {
        let row = |n_cells: usize| RowShape { widths: vec![1; n_cells], n_plain: n_cells };
        let picture = Picture {
            size: Size::new(80, 24),
            origin: 0,
            used: 2,
            cursor: Position::new(0, 2),
            n_above: 40,
            sizes: vec![Size::new(97, 24)],
            shapes: vec![row(78), row(30), row(0)],
        };
        let end = |reply: (u16, u16)| {
            let reply = Position::new(reply.0, reply.1);
            picture.lowest_end(Size::new(60, 24), reply, &ReflowTraits::of("wezterm"))
        };
        assert_eq!(end((37, 23)), 24);
        assert_eq!(end((0, 22)), 23, "97 columns were none of the terminal");
    }

    #[test]
    fn elsewhere_it_stays_with_its_text() {
        check(2, &[], 60, (2, 7), 5);
        check(40, &[], 40, (39, 7), 5);
        check(40, &[40], 80, (40, 8), 7);
        check(70, &[60], 50, (20, 7), 4);
        check(70, &[], 100, (70, 8), 7);
    }
}
