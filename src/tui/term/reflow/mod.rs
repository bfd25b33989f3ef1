//! Where rows end up after the terminal changed its width.
//!
//! Most terminals wrap the rows of a narrower screen anew, some cut them. Neither
//! reports what it did; the only sensor is the position of the cursor after the change.
//! A [`Picture`] keeps the rows of the last frame as cells, computes for each
//! [model](Model) of a terminal the new screen row of every painted row, and drops the
//! models that contradict the reported cursor. Pure arithmetic: it writes nothing.

mod ghostty;
mod kitty;
mod steps;
mod wezterm;
mod xtermjs;

use ratatui::layout::{Position, Size};

use steps::Computed;

/// What a terminal does to its rows when its width changes; `None` if unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReflowTraits {
    /// Whether rows wider than the screen are wrapped; otherwise they are cut.
    pub reflows: Option<bool>,
    /// Whether blanks with a background at the end of a row count as text.
    pub keeps_styled_blanks: Option<bool>,
    /// Whether rows below the cursor stay on the screen when rows above it wrap.
    pub keeps_rows_below: Option<bool>,
    pub cursor: CursorRule,
    /// Whether rows that are inserted on the screen take the place of as many rows at the end of the
    /// scrollback.
    pub inserts_over_scrollback: bool,
    /// Whether a row that continued the line of the row above still does so when it was erased.
    pub erased_rows_continue: bool,
    /// Whether the cursor can be reported above its text after the screen became wider (tmux 3.3a): lines
    /// that are joined up to a wide character without room are counted twice.
    pub miscounts_joined_lines: bool,
    /// Whether a wide character counts as three columns, and can be torn, when rows are wrapped, also on a screen that
    /// became wider (tmux from 3.6 on).
    pub counts_padding: bool,
}

/// How the reported cursor moves with the text under it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CursorRule {
    /// It stays with its text.
    #[default]
    Follows,
    /// Like [`Self::Follows`], but rows that leave the screen because rows below the cursor
    /// wrapped, or because the screen became lower, are not subtracted (kitty). Versions up to 0.37
    /// do not move a cursor that is not on text at all.
    IgnoresRowsBelow,
    /// Like [`Self::Follows`], but after its text it may move to another row of it (Ghostty).
    OfGhostty,
    /// Like [`Self::Follows`], but in the first column it goes to the row above at every change (WezTerm).
    OfWezTerm,
    /// It follows from all sizes that the terminal had (xterm.js, as in VS Code).
    OfXtermJs,
    /// Only rows above the cursor wrap (Konsole).
    WrapsOnlyAbove,
}

impl ReflowTraits {
    /// The traits of a terminal known by this name; unknown ones are found out at the first
    /// change of the width.
    pub fn of(terminal: &str) -> Self {
        let reflowing = |styled, below, cursor| Self {
            reflows: Some(true),
            keeps_styled_blanks: Some(styled),
            keeps_rows_below: Some(below),
            cursor,
            inserts_over_scrollback: false,
            erased_rows_continue: false,
            miscounts_joined_lines: false,
            counts_padding: false,
        };
        match terminal {
            "foot" => Self { inserts_over_scrollback: true, ..reflowing(true, true, CursorRule::Follows) },
            "alacritty" => reflowing(true, true, CursorRule::Follows),
            "ghostty" => reflowing(true, true, CursorRule::OfGhostty),
            "tmux" => Self { miscounts_joined_lines: true, ..reflowing(true, true, CursorRule::Follows) },
            "vte" | "urxvt" => reflowing(true, false, CursorRule::Follows),
            "wezterm" => reflowing(false, true, CursorRule::OfWezTerm),
            "windows-terminal" => reflowing(false, true, CursorRule::Follows),
            "kitty" => reflowing(true, true, CursorRule::IgnoresRowsBelow),
            "vscode" => reflowing(true, true, CursorRule::OfXtermJs),
            "konsole" => reflowing(false, false, CursorRule::WrapsOnlyAbove),
            "screen" | "zellij" => Self { erased_rows_continue: true, ..Self::default() },
            "xterm" | "st" => Self { reflows: Some(false), ..Self::default() },
            _ => Self::default(),
        }
    }
}

/// The cells of one painted row.
#[derive(Debug, Clone, Default)]
pub(super) struct RowShape {
    /// Widths of the clusters up to the last cell that is not blank.
    pub(super) widths: Vec<u16>,
    /// Number of clusters up to the last one that is not a space.
    pub(super) n_plain: usize,
}

impl RowShape {
    /// The row without the clusters beyond `width`.
    fn cut_to(mut self, width: u16) -> Self {
        let mut end = 0_u16;
        let fits = |cells: &&u16| {
            end = end.saturating_add(**cells);
            end <= width
        };
        let n_fitting = self.widths.iter().take_while(fits).count();
        self.widths.truncate(n_fitting);
        self.n_plain = self.n_plain.min(n_fitting);
        self
    }

    fn widths(&self, with_styled: bool) -> &[u16] {
        if with_styled { &self.widths } else { self.widths.get(..self.n_plain).unwrap_or_default() }
    }

    /// The same with a column more for each wide cluster.
    fn with_padding(&self) -> Self {
        let padded = |widths: &[u16]| -> Vec<u16> {
            widths.iter().flat_map(|cells| if *cells == 2 { vec![2, 1] } else { vec![*cells] }).collect()
        };
        Self { widths: padded(&self.widths), n_plain: padded(self.widths(false)).len() }
    }

    /// Whether column `x` has text.
    fn is_at(&self, x: u16) -> bool {
        x < self.widths.iter().sum()
    }

    /// Whether column `x` is beyond the text.
    fn ends_before(&self, x: u16, with_styled: bool) -> bool {
        self.widths(with_styled).iter().sum::<u16>() < x
    }

    /// Rows this one takes on a screen of `width`.
    fn n_rows(&self, width: u16, with_styled: bool) -> i64 {
        flow(self.widths(with_styled), width).0.max(1)
    }

    /// How far below its first row the cell in column `x` ends up, and in which column.
    fn place_of(&self, x: u16, width: u16, with_styled: bool) -> (i64, u16) {
        let widths = self.widths(with_styled);
        let mut end = 0_u16;
        let n_before = widths.iter().position(|cells| {
            end = end.saturating_add(*cells);
            end > x
        });
        if let Some(n_before) = n_before {
            let (rows, used) = flow(&widths[..=n_before], width);
            return (rows - 1, used - widths[n_before]);
        }
        // After the text: the distance from its end stays.
        let (rows, used) = flow(widths, width);
        let column = used.saturating_add(x.saturating_sub(end));
        match rows {
            0 => (i64::from(x / width.max(1)), x % width.max(1)),
            // Right after a full row, terminals keep the cursor on it.
            _ if column == width => (rows - 1, width.saturating_sub(1)),
            _ => (rows - 1 + i64::from(column / width.max(1)), column % width.max(1)),
        }
    }
}

/// Number of rows, and cells used in the last one.
fn flow(widths: &[u16], width: u16) -> (i64, u16) {
    let (mut rows, mut used) = (0, width);
    for cells in widths {
        if used.saturating_add(*cells) > width {
            rows += 1;
            used = 0;
        }
        used += cells;
    }
    (rows, if rows == 0 { 0 } else { used })
}

/// The rows of the window as last painted.
#[derive(Debug)]
pub(super) struct Picture {
    pub(super) size: Size,
    /// Screen row of the first shape.
    pub(super) origin: u16,
    /// Number of screen rows in use, including those above `origin`.
    pub(super) used: u16,
    pub(super) cursor: Position,
    /// Number of rows in the scrollback, at least.
    pub(super) n_above: usize,
    /// Sizes that the screen had since then, as far as they are known.
    pub(super) sizes: Vec<Size>,
    /// The rows from `origin` to `used`, and to the cursor if that is lower.
    pub(super) shapes: Vec<RowShape>,
}

/// An assumption about a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Model {
    /// Every row stays one row.
    Rigid,
    Reflow {
        styled: bool,
        from: From,
    },
}

/// The fixed point from which positions are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum From {
    Cursor,
    /// The cursor is on this one of the rows its own row becomes, counted from 0.
    CursorOn(i64),
    /// The cursor is on a row of its own below its text, which ends at the edge.
    CursorAfter,
    /// The last row of the window is the last row of the screen.
    Bottom,
}

/// The result of one model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Positions {
    /// The new screen row of each painted row, and of the row after the last one. Negative
    /// for rows in the scrollback.
    pub(super) tops: Vec<i64>,
    pub(super) reflows: bool,
    styled: bool,
}

impl Positions {
    fn moved(mut self, n_rows: i64) -> Self {
        self.tops.iter_mut().for_each(|top| *top += n_rows);
        self
    }

    /// The same without `n` blank rows, of which row `first` is the first one. The row below them may begin there too,
    /// if it is on the screen.
    pub(super) fn without_blank(mut self, first: usize, n: usize) -> Self {
        if let (Some(&top), Some(&below)) = (self.tops.get(first), self.tops.get(first + n)) {
            self.tops.drain(first..first + n);
            self.tops[first] = if below >= 0 { top.max(0) } else { below };
        }
        self
    }
}

impl Picture {
    /// Number of painted rows.
    pub(super) fn n_rows(&self) -> usize {
        usize::from(self.used.saturating_sub(self.origin))
    }

    /// Whether nothing has moved the rows since then, as far as is known.
    pub(super) fn is_unmoved(&self, size: Size, cursor: Position) -> bool {
        self.sizes.is_empty() && self.size == size && self.cursor == cursor
    }

    /// The same as a terminal sees it that [counts padding](ReflowTraits::counts_padding).
    fn with_padding(&self) -> Self {
        let shapes: Vec<RowShape> = self.shapes.iter().map(RowShape::with_padding).collect();
        let own = self.shapes.get(usize::from(self.cursor.y.saturating_sub(self.origin)));
        let mut end = 0_u16;
        let is_before = |cells: &&u16| {
            end = end.saturating_add(**cells);
            end <= self.cursor.x
        };
        let before = own.map_or(&[][..], |shape| &shape.widths).iter().take_while(is_before);
        let n_wide = before.filter(|cells| **cells == 2).count();
        let x = self.cursor.x.saturating_add(u16::try_from(n_wide).unwrap_or(u16::MAX));
        let cursor = Position::new(x, self.cursor.y);
        Self { shapes, cursor, sizes: self.sizes.clone(), ..*self }
    }

    /// Smallest width and height since the rows were painted.
    fn smallest(&self) -> Size {
        let smaller = |a: Size, b: &Size| Size::new(a.width.min(b.width), a.height.min(b.height));
        self.sizes.iter().fold(self.size, smaller)
    }

    fn is_full(&self) -> bool {
        self.used >= self.size.height
    }

    /// The same rows on a screen of another size, which cuts what does not fit.
    pub(super) fn cut_to(mut self, size: Size) -> Self {
        self.shapes = self.shapes.into_iter().map(|shape| shape.cut_to(size.width)).collect();
        self.cursor.x = self.cursor.x.min(size.width.saturating_sub(1));
        self.size = size;
        self
    }

    /// Where the rows may be on a screen of `size`, given the reported cursor: one
    /// entry for each model that fits, at least one.
    pub(super) fn positions(
        &self,
        size: Size,
        reply: Option<Position>,
        traits: &ReflowTraits,
    ) -> Vec<Positions> {
        match traits.cursor {
            CursorRule::OfXtermJs => {
                Computed::of::<xtermjs::Screen>(self, size, reply, traits).exact_or_nearest()
            }
            CursorRule::OfWezTerm => {
                Computed::of::<wezterm::Screen>(self, size, reply, traits).exact_or_nearest()
            }
            // Older versions, which leave their cursor elsewhere, are not like that.
            CursorRule::IgnoresRowsBelow if !self.sizes.is_empty() => {
                match Computed::of::<kitty::Screen>(self, size, reply, traits).exact {
                    exact if exact.is_empty() => self.positions_of_models(size, reply, traits),
                    exact => exact,
                }
            }
            _ if traits.counts_padding => self.with_padding().positions_of_models(size, reply, traits),
            _ => self.positions_of_models(size, reply, traits),
        }
    }

    fn positions_of_models(
        &self,
        size: Size,
        reply: Option<Position>,
        traits: &ReflowTraits,
    ) -> Vec<Positions> {
        let mut found: Vec<Positions> = Vec::new();
        for model in self.models(size, reply, traits) {
            let tops = self.tops(model, size, reply, traits);
            let (reflows, styled) = match model {
                Model::Rigid => (false, false),
                Model::Reflow { styled, .. } => (true, styled),
            };
            found.push(Positions { tops, reflows, styled });
        }
        found
    }

    /// The lowest screen row that may follow the rows on a screen of `size`, whose cursor was below them and is
    /// reported at `reply`.
    pub(super) fn lowest_end(&self, size: Size, reply: Position, traits: &ReflowTraits) -> u16 {
        let height = size.height;
        if traits.cursor == CursorRule::IgnoresRowsBelow {
            // A cursor that is on no text stays behind, also when its row comes back from a smaller screen.
            let smallest = self.smallest();
            let smallest = Size::new(smallest.width.min(size.width), smallest.height.min(height));
            let n_rows: i64 = self.shapes.iter().map(|shape| shape.n_rows(smallest.width, true)).sum();
            if i64::from(self.origin) + n_rows > i64::from(smallest.height) {
                return height;
            }
        }
        let found = self.positions(size, Some(reply), traits);
        let end = found.iter().filter_map(|positions| positions.tops.last()).max().copied();
        end.and_then(|end| u16::try_from(end.max(0)).ok()).map_or(height, |end| end.min(height))
    }

    /// The first row of them on a screen of `size`, and its screen row there, if the terminal cuts rows.
    pub(super) fn first_cut(
        &self,
        size: Size,
        reply: Position,
        traits: &ReflowTraits,
    ) -> Option<(usize, u16)> {
        let found = (traits.reflows == Some(false)).then(|| self.positions(size, Some(reply), traits))?;
        let tops = found.first()?.tops.iter().take(self.n_rows()).enumerate();
        tops.filter_map(|(n, top)| Some((n, u16::try_from(*top).ok()?))).next()
    }

    /// The traits after a change that only `found` explains.
    pub(super) fn learned(&self, size: Size, found: &[Positions], traits: ReflowTraits) -> ReflowTraits {
        let is_sensed = self.is_full() && size.height == self.size.height && size.width < self.size.width;
        let wraps = self.shapes.iter().any(|shape| shape.n_rows(size.width, true) > 1);
        let (Some(first), true, true) = (found.first(), is_sensed, wraps) else { return traits };
        let agree = found.iter().all(|positions| positions.reflows == first.reflows);
        let agree_on_style = first.reflows && found.iter().all(|positions| positions.styled == first.styled);
        let styled_differs =
            self.shapes.iter().any(|shape| shape.n_rows(size.width, true) != shape.n_rows(size.width, false));
        ReflowTraits {
            reflows: traits.reflows.or(agree.then_some(first.reflows)),
            keeps_styled_blanks: traits
                .keeps_styled_blanks
                .or((agree && agree_on_style && styled_differs).then_some(first.styled)),
            ..traits
        }
    }

    fn models(&self, size: Size, reply: Option<Position>, traits: &ReflowTraits) -> Vec<Model> {
        if size.width >= self.size.width && !self.wraps_when_wider(size, traits)
            || traits.reflows == Some(false)
        {
            // No painted row wraps, however the terminal does it.
            return vec![Model::Rigid];
        }
        let styles = match traits.keeps_styled_blanks {
            Some(known) => vec![known],
            None => vec![true, false],
        };
        let reflow = |from| styles.iter().map(move |&styled| Model::Reflow { styled, from });
        let mut models: Vec<Model> = Vec::new();
        if let Some(reply) = reply {
            models.extend(self.rows_of_cursor(size, reply, &styles, traits).into_iter().flat_map(reflow));
        }
        let from_cursor = models.clone();
        let end = |model: Model| self.tops(model, size, reply, traits).last().copied().unwrap_or(0);
        let bottom = i64::from(size.height);
        if self.is_full() && size.height == self.size.height {
            // Rows below the cursor wrap too, so the window reaches the bottom of the
            // screen, or beyond it where the terminal drops them.
            models.retain(|model| end(*model) >= bottom);
            // Rows below the cursor are also missing where the screen was lower in the meantime.
            let fits_exactly = models.iter().any(|model| end(*model) == bottom);
            if traits.keeps_rows_below != Some(false) && fits_exactly {
                models.retain(|model| end(*model) == bottom);
            }
        }
        let may_cut = traits.reflows.is_none()
            && (size.height != self.size.height
                || self.smallest().height < size.height
                || reply.is_none_or(|reply| reply.y == self.cursor.y));
        if may_cut {
            models.push(Model::Rigid);
        }
        if models.is_empty() && self.is_full() {
            // A cursor below the first row is where its text is: the screen was lower or higher in the
            // meantime. On the first row, its text may be above.
            let is_certain = reply.is_some_and(|reply| reply.y > 0);
            models = if is_certain { from_cursor } else { reflow(From::Bottom).collect() };
        }
        if models.is_empty() {
            models.push(Model::Rigid);
        }
        models
    }

    /// Whether painted rows wrap although the screen is not narrower.
    fn wraps_when_wider(&self, size: Size, traits: &ReflowTraits) -> bool {
        let is_changed = self.sizes.iter().chain([&size]).any(|size| size.width != self.size.width);
        let wraps = |shape: &RowShape| shape.n_rows(size.width, true) > 1;
        traits.counts_padding && is_changed && self.shapes.iter().any(wraps)
    }

    /// On which of the rows that its own row becomes the cursor may be.
    fn rows_of_cursor(
        &self,
        size: Size,
        reply: Position,
        styles: &[bool],
        traits: &ReflowTraits,
    ) -> Vec<From> {
        if traits.cursor == CursorRule::OfGhostty {
            let found = ghostty::rows(self, size, reply);
            return if found.is_empty() { vec![From::Cursor] } else { found };
        }
        if traits.counts_padding {
            return vec![From::Cursor];
        }
        let mut found = vec![From::Cursor];
        if self.cursor.x >= size.width && !self.is_column_as_expected(size, reply, styles) {
            // What terminals do with such a cursor differs.
            found.push(From::CursorOn(0));
            if self.cursor.x.is_multiple_of(size.width.max(1)) {
                found.push(From::CursorAfter);
            }
        }
        found
    }

    /// The row of the cursor's text, if `n_below` rows were added below it.
    fn row_of_text(&self, size: Size, reply: Position, n_below: i64, traits: &ReflowTraits) -> i64 {
        let Size { width: narrowest, height: lowest } = self.smallest();
        let y = i64::from(reply.y);
        if !traits.miscounts_joined_lines || size.width <= narrowest || !self.is_full() {
            return y;
        }
        // Rows that are joined leave room for others from the scrollback, so nothing moves up, but to
        // keep the cursor on a lower screen. A higher one gets rows from there too.
        let lowest = lowest.min(size.height);
        let n_more = size.height - lowest;
        let n_joined = usize::from(size.width / narrowest.max(1)) + 2;
        let stays = self.n_above / n_joined >= usize::from(self.origin.saturating_add(n_more));
        let kept = self.cursor.y.min(lowest.saturating_sub(1)).saturating_add(n_more);
        if stays { y.max(i64::from(kept) - n_below) } else { y }
    }

    fn tops(&self, model: Model, size: Size, reply: Option<Position>, traits: &ReflowTraits) -> Vec<i64> {
        let at = usize::from(self.cursor.y.saturating_sub(self.origin));
        let (heights, sub_row) = match model {
            Model::Rigid => (vec![1; self.shapes.len()], 0),
            Model::Reflow { styled, from } => {
                let mut heights = self.heights(size.width, styled, traits.cursor);
                let mut sub_row = self.sub_row(size, styled, from, traits);
                if from == From::CursorAfter
                    && let Some(own) = heights.get_mut(at)
                {
                    sub_row = *own;
                    *own += 1;
                }
                (heights, sub_row)
            }
        };
        let before = |n: usize| heights.iter().take(n).sum::<i64>();
        let n_rows = self.n_rows();
        let below: i64 = heights.iter().take(n_rows).skip(at + 1).sum();
        let n_below = i64::try_from(n_rows.saturating_sub(at + 1)).unwrap_or(0);
        let height = i64::from(size.height);
        let first = match (model, reply) {
            (Model::Reflow { from: From::Bottom, .. }, _) => height - before(n_rows),
            (_, None) => i64::from(self.origin),
            (_, Some(reply)) if traits.cursor == CursorRule::IgnoresRowsBelow => {
                let row = i64::from(reply.y) - sub_row;
                let first = if self.may_be_left(size, reply) { self.origin.into() } else { row - before(at) };
                first.min(height - before(n_rows))
            }
            (Model::Rigid, Some(reply)) => self.row_of_text(size, reply, 0, traits) - before(at),
            (Model::Reflow { .. }, Some(reply)) => {
                self.row_of_text(size, reply, below - n_below, traits) - sub_row - before(at)
            }
        };
        (0..=n_rows).map(|n| first + before(n)).collect()
    }

    /// Whether the cursor is in the column in which its text would take it.
    fn is_column_as_expected(&self, size: Size, reply: Position, styles: &[bool]) -> bool {
        let at = usize::from(self.cursor.y.saturating_sub(self.origin));
        let Some(shape) = self.shapes.get(at) else { return false };
        let is_expected = |styled: &bool| {
            let (row, column) = shape.place_of(self.cursor.x, size.width, *styled);
            let (n_rows, used) = flow(shape.widths(*styled), size.width);
            // tmux puts a cursor that is beyond the text, as after a blank, at its end.
            column == reply.x
                || row + 1 == n_rows && used == reply.x && shape.ends_before(self.cursor.x, *styled)
        };
        !self.cursor.x.is_multiple_of(size.width.max(1)) && styles.iter().all(is_expected)
    }

    /// Whether the cursor is on no text and may be where it was, although its row moved. If it
    /// did not move either, the window begins where it did.
    fn may_be_left(&self, size: Size, reply: Position) -> bool {
        let at = usize::from(self.cursor.y.saturating_sub(self.origin));
        let n_cells: u16 = self.shapes.get(at).map_or(0, |shape| shape.widths.iter().sum());
        self.cursor.x >= n_cells && reply.y == self.cursor.y.min(size.height.saturating_sub(1))
    }

    /// How far below the first row of its text the cursor is.
    fn sub_row(&self, size: Size, styled: bool, from: From, traits: &ReflowTraits) -> i64 {
        let wraps = traits.cursor != CursorRule::WrapsOnlyAbove;
        let at = usize::from(self.cursor.y.saturating_sub(self.origin));
        match (from, self.shapes.get(at)) {
            (From::CursorOn(row), _) => row,
            (From::Cursor, Some(shape)) if wraps => shape.place_of(self.cursor.x, size.width, styled).0,
            _ => 0,
        }
    }

    /// How many rows each painted row becomes.
    fn heights(&self, width: u16, styled: bool, rule: CursorRule) -> Vec<i64> {
        let at = usize::from(self.cursor.y.saturating_sub(self.origin));
        let wrapped = |(n, shape): (usize, &RowShape)| match rule {
            CursorRule::WrapsOnlyAbove if n >= at => 1,
            _ => shape.n_rows(width, styled),
        };
        self.shapes.iter().enumerate().map(wrapped).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cells: usize, styled_blanks: usize) -> RowShape {
        RowShape { widths: vec![1; cells + styled_blanks], n_plain: cells }
    }

    /// A full screen of four rows: two of text, the cursor's, and a border.
    fn full(width: u16, shapes: Vec<RowShape>) -> Picture {
        let n_rows = u16::try_from(shapes.len()).unwrap();
        let cursor = Position::new(2, n_rows - 2);
        let size = Size::new(width, n_rows);
        Picture { size, origin: 0, used: n_rows, cursor, n_above: 0, sizes: Vec::new(), shapes }
    }

    #[test]
    fn rows_of_a_full_screen_do_not_move_up_when_it_becomes_wider() {
        let mut picture = full(10, vec![row(10, 0), row(3, 0), row(4, 0), row(10, 0)]);
        let top = |picture: &Picture, size: Size, y: u16, terminal: &str| {
            let reply = Some(Position::new(2, y));
            picture.positions(size, reply, &ReflowTraits::of(terminal))[0].tops[0]
        };
        // tmux counts lines twice that it joins up to a wide character, and puts the cursor that much higher.
        assert_eq!(top(&picture, Size::new(20, 4), 1, "tmux"), 0);
        assert_eq!(top(&picture, Size::new(20, 4), 2, "tmux"), 0);
        assert_eq!(top(&picture, Size::new(20, 2), 0, "tmux"), -1, "the cursor stays on a lower screen");
        assert_eq!(top(&picture, Size::new(20, 6), 4, "tmux"), 2, "others come back to a higher one");
        assert_eq!(top(&picture, Size::new(20, 4), 1, "alacritty"), -1);
        // Rows above the window that are joined may leave no others to take their place.
        picture.origin = 1;
        picture.shapes.remove(0);
        assert_eq!(top(&picture, Size::new(20, 4), 1, "tmux"), 0);
        picture.n_above = 12;
        assert_eq!(top(&picture, Size::new(20, 4), 1, "tmux"), 1);
        assert_eq!(top(&picture, Size::new(20, 6), 3, "tmux"), 3);
    }

    #[test]
    fn rows_that_were_wrapped_and_joined_in_the_meantime_do_not_move_up() {
        let mut picture = full(30, vec![row(10, 0), row(3, 0), row(4, 0), row(20, 0)]);
        picture.n_above = 40;
        let top = |picture: &Picture, size: Size, y: u16| {
            let found = picture.positions(size, Some(Position::new(2, y)), &ReflowTraits::of("tmux"));
            found[0].tops[0]
        };
        assert_eq!(top(&picture, Size::new(20, 4), 1), -1);
        picture.sizes = vec![Size::new(10, 4)];
        assert_eq!(top(&picture, Size::new(20, 4), 1), 0, "counted twice");
        assert_eq!(top(&picture, Size::new(15, 4), 1), -1, "the last row is two");
        assert_eq!(top(&picture, Size::new(30, 4), 1), 0);
        // What was below the cursor is gone from the lower screen, and others came back above it.
        picture.sizes = vec![Size::new(10, 2)];
        assert_eq!(top(&picture, Size::new(40, 4), 2), 1);
    }

    #[test]
    fn rows_wrap_at_cells_and_wide_clusters_move_down_whole() {
        assert_eq!(flow(&[1; 10], 4), (3, 2));
        assert_eq!(flow(&[1, 1, 1, 2, 1], 4), (2, 3));
        assert_eq!(flow(&[], 4), (0, 0));
        assert_eq!(row(10, 0).place_of(9, 4, true), (2, 1));
        assert_eq!(row(8, 0).place_of(8, 4, true), (1, 3), "after a full row the cursor stays on it");
        assert_eq!(row(3, 0).place_of(6, 4, true), (1, 2));
    }

    #[test]
    fn the_cursor_decides_between_a_terminal_that_wraps_and_one_that_cuts() {
        let shapes = vec![row(10, 0), row(3, 0), row(4, 0), row(20, 0)];
        let picture = full(20, shapes);
        let size = Size::new(10, 4);
        let unknown = ReflowTraits::default();
        // The border became two rows, so the cursor moved up by one.
        let found = picture.positions(size, Some(Position::new(2, 1)), &unknown);
        assert!(found.iter().all(|positions| positions.reflows), "{found:?}");
        assert_eq!(found[0].tops, [-1, 0, 1, 2, 4]);
        assert_eq!(picture.learned(size, &found, unknown).reflows, Some(true));
        // It did not move.
        let found = picture.positions(size, Some(Position::new(2, 2)), &unknown);
        let cut: Vec<_> = found.iter().filter(|positions| !positions.reflows).collect();
        assert_eq!(cut[0].tops, [0, 1, 2, 3, 4]);
    }

    /// What kitty 0.26.5 did with a window from the first row on: every third of its rows,
    /// and some at its end, as wide as the screen.
    #[test]
    fn kitty_is_understood_although_its_cursor_stays_behind() {
        let picture = |(width, height): (u16, u16), used: u16, y: u16, x: u16, own: usize| {
            let shape = |n: u16| match n {
                n if n == y => row(own, 0),
                n if n % 3 == 1 || n + 5 >= used && n % 2 == 0 => row(width.into(), 0),
                _ => row(4, 0),
            };
            let (size, cursor) = (Size::new(width, height), Position::new(x, y));
            let shapes = (0..used).map(shape).collect();
            Picture { size, origin: 0, used, cursor, n_above: 0, sizes: Vec::new(), shapes }
        };
        let check = |before: &Picture, size: (u16, u16), reply: (u16, u16), first: i64| {
            let (size, reply) = (Size::new(size.0, size.1), Position::new(reply.0, reply.1));
            let found = before.positions(size, Some(reply), &ReflowTraits::of("kitty"));
            assert_eq!(found.len(), 1, "{size:?} {reply:?}: {found:?}");
            assert_eq!(found[0].tops[0], first, "{size:?} {reply:?}");
        };
        // On text, the cursor follows the rows above it, and only those.
        let on_text = |size, used, y| picture(size, used, y, 2, if y == 24 { 110 } else { 4 });
        check(&on_text((110, 40), 20, 15), (90, 28), (3, 20), 0);
        check(&on_text((110, 40), 20, 15), (110, 18), (3, 15), -2);
        check(&on_text((110, 28), 28, 24), (90, 28), (4, 27), -11);
        check(&on_text((90, 20), 20, 15), (110, 28), (3, 15), 0);
        // On a row without text, and after the text, it stays where it was if there is room.
        let beside_text = |size, used, y| [picture(size, used, y, 0, 0), picture(size, used, y, 7, 7)];
        for ((size, used, y), to, reply, first) in [
            (((110, 40), 20, 15), (90, 28), 15, 0),
            (((110, 40), 20, 15), (110, 18), 15, -2),
            (((110, 28), 28, 24), (90, 28), 24, -10),
            (((110, 28), 28, 24), (90, 20), 19, -18),
            (((110, 28), 28, 24), (90, 40), 24, 0),
            (((110, 28), 28, 24), (110, 18), 17, -10),
        ] {
            for before in beside_text(size, used, y) {
                check(&before, to, (before.cursor.x, reply), first);
            }
        }
    }

    /// Where tmux has put the rows, which is certain.
    #[track_caller]
    fn check_tmux(picture: &Picture, size: (u16, u16), reply: (u16, u16), expected: &[i64]) {
        let reply = Some(Position::new(reply.0, reply.1));
        let found = picture.positions(Size::new(size.0, size.1), reply, &ReflowTraits::of("tmux"));
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].tops, expected);
    }

    #[test]
    fn an_impossible_answer_of_a_known_terminal_leaves_the_window_at_the_bottom() {
        let picture = full(20, vec![row(10, 0), row(3, 0), row(4, 0), row(20, 0)]);
        check_tmux(&picture, (10, 4), (2, 0), &[-1, 0, 1, 2, 4]);
    }

    /// It drops rows below the cursor when it becomes lower, and shows earlier ones when it becomes higher.
    #[test]
    fn terminal_that_was_lower_in_the_meantime_is_understood_by_its_cursor() {
        let picture = full(20, vec![row(10, 0), row(3, 0), row(4, 0), row(20, 0)]);
        check_tmux(&picture, (10, 4), (2, 3), &[1, 2, 3, 4, 6]);
    }

    /// tmux puts the cursor at the end of the text.
    #[test]
    fn cursor_after_a_blank_is_certain_wherever_it_is_put() {
        let mut picture = full(80, vec![row(40, 0), row(80, 0), row(70, 0), row(80, 0)]);
        (picture.size.height, picture.cursor) = (24, Position::new(71, 2));
        for x in [10, 11] {
            check_tmux(&picture, (60, 24), (x, 4), &[0, 1, 3, 5, 7]);
        }
    }

    /// What tmux 3.6 did with rows of 4 cells, of 30 wide characters, and of the prompt below them.
    #[test]
    fn wide_characters_of_newer_tmux_wrap_as_if_they_had_three_columns() {
        let wide = RowShape { widths: vec![2; 30], n_plain: 30 };
        let shapes = vec![row(4, 0), wide, row(80, 0), row(0, 0), row(80, 0)];
        let mut picture = full(80, shapes);
        picture.cursor.x = 0;
        let tops = |picture: &Picture, size: (u16, u16), reply: (u16, u16), counts_padding| {
            let traits = ReflowTraits { counts_padding, ..ReflowTraits::of("tmux") };
            let reply = Some(Position::new(reply.0, reply.1));
            let found = picture.positions(Size::new(size.0, size.1), reply, &traits);
            found.iter().map(|positions| positions.tops.clone()).collect::<Vec<_>>()
        };
        // 90 columns in the count of tmux.
        assert_eq!(tops(&picture, (85, 5), (0, 3), true), [[-1, 0, 2, 3, 4, 5]]);
        assert_eq!(tops(&picture, (85, 5), (0, 3), false), [[0, 1, 2, 3, 4, 5]]);
        assert_eq!(tops(&picture, (90, 5), (0, 3), true), [[0, 1, 2, 3, 4, 5]], "it fits");
        assert_eq!(
            tops(&picture, (80, 7), (0, 5), true),
            [[2, 3, 4, 5, 6, 7]],
            "nothing wraps at the same width"
        );
        assert_eq!(tops(&picture, (60, 5), (0, 2), true), [[-3, -2, 0, 2, 3, 5]]);
        picture.sizes = vec![Size::new(100, 5)];
        assert_eq!(
            tops(&picture, (80, 5), (0, 3), true),
            [[-1, 0, 2, 3, 4, 5]],
            "it was wider in the meantime"
        );
    }

    /// It may show blank rows at its end when it becomes higher.
    #[test]
    fn terminal_with_blank_rows_at_its_end_is_understood_by_its_cursor() {
        let picture = full(20, vec![row(10, 0), row(3, 0), row(4, 0), row(5, 0)]);
        check_tmux(&picture, (10, 4), (2, 1), &[-1, 0, 1, 2, 3]);
    }

    /// kitty 0.26 leaves a cursor below the text where it was, and its text may be lower.
    #[test]
    fn text_goes_on_below_all_rows_that_kitty_moved_down() {
        let shapes: Vec<RowShape> = (0..20).map(|n| row(if n % 2 == 0 { 90 } else { 20 }, 0)).collect();
        let end = |smallest: Size, size: Size, y: u16, name: &str| {
            let shapes = shapes.iter().cloned().chain([RowShape::default()]).collect();
            let (before, cursor) = (Size::new(100, 30), Position::new(0, 20));
            let picture = Picture {
                size: before,
                origin: 0,
                used: 20,
                cursor,
                n_above: 40,
                sizes: vec![smallest],
                shapes,
            };
            picture.lowest_end(size, Position::new(0, y), &ReflowTraits::of(name))
        };
        let (same, slim, low) = (Size::new(100, 30), Size::new(60, 30), Size::new(100, 15));
        assert_eq!(end(same, same, 20, "kitty"), 20);
        assert_eq!(end(slim, slim, 20, "kitty"), 30, "ten rows wrap");
        assert_eq!(end(slim, same, 20, "kitty"), 30, "it may have scrolled");
        assert_eq!(end(low, low, 14, "kitty"), 15);
        assert_eq!(end(same, Size::new(95, 30), 20, "kitty"), 20, "nothing wraps");
        // The others report where the row is.
        assert_eq!(end(slim, slim, 29, "tmux"), 29);
        assert_eq!(end(slim, slim, 25, "vscode"), 25);
    }
}
