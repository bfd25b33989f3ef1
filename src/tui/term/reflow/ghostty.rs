//! Where Ghostty puts a cursor that is after the text of its row when its width changes.
//!
//! Newer versions (1.3.2) wrap the blanks before the cursor like text. Older ones, such as those of 2025, move it to
//! the left, into the first of the rows that the text becomes, by as many columns as the row above ends with.

use ratatui::layout::{Position, Size};

use super::{From, Picture, flow};

/// On which of the rows that its own row becomes the cursor may be, given its reported position; empty if that
/// is certain: on text and before the edge.
pub(super) fn rows(picture: &Picture, size: Size, reply: Position) -> Vec<From> {
    let at = usize::from(picture.cursor.y.saturating_sub(picture.origin));
    let is_beyond = picture.cursor.x >= size.width;
    let Some(shape) = picture.shapes.get(at).filter(|shape| is_beyond && !shape.is_at(picture.cursor.x))
    else {
        return Vec::new();
    };
    let mut with_blanks = shape.widths.clone();
    let n_text: u16 = with_blanks.iter().sum();
    with_blanks.extend((n_text..=picture.cursor.x).map(|_| 1));
    let newer = place(&with_blanks, size.width);
    let older = [&picture.sizes[..], &[]].map(|sizes| {
        let widths = sizes.iter().chain([&size]).map(|size| size.width);
        let column = widths.fold(picture.cursor.x, |x, width| moved(picture, at, x, width));
        place(&with_blanks[..with_blanks.len().min(usize::from(column) + 1)], size.width)
    });
    let mut found = Vec::new();
    if newer.1 == reply.x {
        // Right after a full row, it is on one of its own.
        let is_alone = picture.cursor.x == n_text && n_text.is_multiple_of(size.width.max(1));
        found.push(if is_alone { From::CursorAfter } else { From::Cursor });
    }
    let older = older.into_iter().filter(|(_, column)| *column == reply.x);
    found.extend(older.map(|(row, _)| From::CursorOn(row)));
    found.dedup();
    if found.is_empty() { vec![From::CursorOn(0)] } else { found }
}

/// Row and column of the last cluster.
fn place(widths: &[u16], width: u16) -> (i64, u16) {
    let (n_rows, used) = flow(widths, width);
    (n_rows - 1, used.saturating_sub(widths.last().copied().unwrap_or(0)))
}

/// The column of a cursor at `x`, counted from the start of its text, after a change to `width`.
fn moved(picture: &Picture, at: usize, x: u16, width: u16) -> u16 {
    if picture.shapes[at].is_at(x) {
        return x;
    }
    let above = picture.shapes[..at].iter().rev().find(|shape| !shape.widths.is_empty());
    let used = above.map_or(0, |shape| flow(&shape.widths, width).1);
    x.min(width.saturating_sub(1).saturating_sub(used.min(width.saturating_sub(1))))
}

#[cfg(test)]
mod tests {
    use super::super::ReflowTraits;
    use super::super::steps::recorded::picture;
    use super::*;

    /// Screen rows of the first row that fit a reported cursor: a window at the end of a full screen of 80 columns,
    /// of a rule, a draft of 70 cells with the cursor after it, and another rule.
    fn tops(sizes: &[(u16, u16)], size: (u16, u16), reply: (u16, u16)) -> Vec<i64> {
        let picture = picture((80, 24), 21, (70, 22), &[80, 70, 80], sizes);
        let reply = Some(Position::new(reply.0, reply.1));
        let found = picture.positions(Size::new(size.0, size.1), reply, &ReflowTraits::of("ghostty"));
        found.iter().map(|positions| positions.tops[0]).collect()
    }

    /// The positions are those that its code reported, built of a version of 2025; the newer ones are those of its
    /// source at 1.3.2.
    #[test]
    fn versions_are_told_by_the_column_of_the_cursor() {
        // The rule becomes two rows, of which the second one has 24 cells.
        assert_eq!(tops(&[], (56, 30), (31, 25)), [23], "older: 55 - 24");
        assert_eq!(tops(&[], (56, 30), (14, 26)), [23], "newer: 70 - 56");
        assert_eq!(tops(&[], (56, 30), (3, 25)), [23], "neither");
        // On text, the cursor stays with it.
        assert_eq!(tops(&[(75, 24)], (40, 30), (29, 26)), [23], "69 is on the second row");
        assert_eq!(tops(&[(75, 24)], (40, 30), (0, 25)), [23], "the size between was none of the terminal");
        // Right after a full row.
        assert_eq!(tops(&[], (35, 30), (0, 27)), [22], "newer");
        assert_eq!(tops(&[], (35, 30), (24, 25)), [22], "older: 34 - 10");
    }
}
