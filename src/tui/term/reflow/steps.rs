//! Terminals of which it is computed what they do with their rows at each change of the size, as their own code does.
//!
//! Their cursor alone does not tell where rows are: it depends on all sizes they had. The reported one tells
//! whether these, and how much is in the scrollback, are known.

use ratatui::layout::{Position, Size};

use super::{Picture, Positions, ReflowTraits};

/// Rows in the scrollback, if there are more than a few.
const MANY_ROWS: usize = 1000;

/// A terminal, which has several sizes in turn.
pub(super) trait Steps {
    /// The screen as it was painted, with `n_above` rows in the scrollback. `styled` is whether blanks with a
    /// background count as text.
    fn new(picture: &Picture, n_above: usize, styled: bool) -> Self;

    fn resize(&mut self, size: Size);

    /// Where it reports its cursor.
    fn cursor(&self) -> Position;

    /// Where the rows of the picture are, and the one after the last.
    fn positions(&self, n_rows: usize) -> Positions;
}

/// Where the rows are after the sizes that a picture had and another one.
#[derive(Debug, Default)]
pub(super) struct Computed {
    /// With the cursor where it was reported.
    pub(super) exact: Vec<Positions>,
    /// With the rows moved to the reported cursor.
    nearest: Option<Positions>,
}

impl Computed {
    /// In a terminal like `T`, which reported its cursor at `reply`.
    pub(super) fn of<T: Steps>(
        picture: &Picture,
        size: Size,
        reply: Option<Position>,
        traits: &ReflowTraits,
    ) -> Self {
        let mut computed = Self::default();
        let (mut is_column_same, direct): (bool, &[Size]) = (false, &[]);
        // A size that was over before it was known may not have been one of the terminal either.
        for sizes in [&picture.sizes, direct] {
            for n_above in [MANY_ROWS, picture.n_above.min(MANY_ROWS)] {
                let mut terminal = T::new(picture, n_above, traits.keeps_styled_blanks != Some(false));
                sizes.iter().chain([&size]).for_each(|size| terminal.resize(*size));
                let (positions, cursor) = (terminal.positions(picture.n_rows()), terminal.cursor());
                let reply = reply.unwrap_or(cursor);
                if reply == cursor && !computed.exact.contains(&positions) {
                    computed.exact.push(positions);
                } else if computed.nearest.is_none() || cursor.x == reply.x && !is_column_same {
                    is_column_same = cursor.x == reply.x;
                    computed.nearest = Some(positions.moved(i64::from(reply.y) - i64::from(cursor.y)));
                }
            }
            if !computed.exact.is_empty() {
                break;
            }
        }
        computed
    }

    pub(super) fn exact_or_nearest(self) -> Vec<Positions> {
        if self.exact.is_empty() { self.nearest.into_iter().collect() } else { self.exact }
    }
}

/// A row of the screen or scrollback.
#[derive(Debug, Clone, Default)]
pub(super) struct Line {
    /// Widths of its clusters up to the last one.
    pub(super) cells: Vec<u16>,
    /// Whether its text goes on in the next one.
    pub(super) wraps: bool,
    /// Which row of the picture begins here.
    pub(super) row: Option<usize>,
}

/// The lines of a screen, below `n_above` others. Those that are not of the picture have a character.
pub(super) fn painted_lines(picture: &Picture, n_above: usize, styled: bool) -> Vec<Line> {
    let others = n_above + usize::from(picture.origin);
    let above = std::iter::repeat_with(|| Line { cells: vec![1], ..Line::default() }).take(others);
    let shown = picture.shapes.iter().enumerate();
    let shown =
        shown.map(|(n, shape)| Line { cells: shape.widths(styled).to_vec(), wraps: false, row: Some(n) });
    let mut lines: Vec<Line> = above.chain(shown).collect();
    lines.resize_with(n_above + usize::from(picture.size.height), Line::default);
    lines
}

/// Where the rows of a picture are, and the one after the last, on a screen that begins with line `base`.
pub(super) fn positions_of(lines: &[Line], base: usize, n_rows: usize) -> Positions {
    let row = |at: usize| i64::try_from(at).unwrap_or(i64::MAX) - i64::try_from(base).unwrap_or(0);
    let (mut tops, mut next) = (Vec::with_capacity(n_rows + 1), base);
    for n in 0..n_rows {
        // Blank rows at the end may be gone.
        let start = lines.iter().position(|line| line.row == Some(n)).unwrap_or(next);
        let n_wrapped = lines.iter().skip(start).take_while(|line| line.wraps).count();
        tops.push(row(start));
        next = start + n_wrapped + 1;
    }
    tops.push(row(next));
    Positions { tops, reflows: true, styled: true }
}

/// What terminals did.
#[cfg(test)]
pub(super) mod recorded {
    use super::super::RowShape;
    use super::*;

    pub(in super::super) type Cells = (u16, u16);

    /// Size, first row, cursor, cells of each row (clusters of two cells where it is negative), later sizes, reported
    /// cursor, and where rows are then.
    pub(in super::super) type Case =
        (Cells, u16, Cells, &'static [isize], &'static [Cells], Cells, &'static [(usize, i64)]);

    /// Rows on a screen that had other sizes since then.
    pub(in super::super) fn picture(
        (width, height): Cells,
        origin: u16,
        (x, y): Cells,
        rows: &[isize],
        sizes: &[Cells],
    ) -> Picture {
        let shape = |n_clusters: &isize| {
            let n_plain = n_clusters.unsigned_abs();
            RowShape { widths: vec![if *n_clusters < 0 { 2 } else { 1 }; n_plain], n_plain }
        };
        Picture {
            size: Size::new(width, height),
            origin,
            used: origin + u16::try_from(rows.len()).unwrap(),
            cursor: Position::new(x, y),
            n_above: 400,
            sizes: sizes.iter().map(|size| Size::new(size.0, size.1)).collect(),
            shapes: rows.iter().map(shape).collect(),
        }
    }

    #[track_caller]
    pub(in super::super) fn check(terminal: &str, n_above: usize, cases: &[Case]) {
        for (size, origin, cursor, rows, sizes, reply, tops) in cases {
            let (last, others) = sizes.split_last().unwrap();
            let picture = Picture { n_above, ..picture(*size, *origin, *cursor, rows, others) };
            let (last, reply) = (Size::new(last.0, last.1), Position::new(reply.0, reply.1));
            let found = picture.positions(last, Some(reply), &ReflowTraits::of(terminal));
            let [found] = found.as_slice() else { panic!("{size:?} {rows:?} {sizes:?}: {found:?}") };
            let found: Vec<(usize, i64)> = tops.iter().map(|(row, _)| (*row, found.tops[*row])).collect();
            assert_eq!(found, *tops, "{size:?} {rows:?} {sizes:?}");
        }
    }
}
