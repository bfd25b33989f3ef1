//! Marks: where a row begins within its text, independent of the width.
//!
//! Rows that are laid out again at another width have other indices. A mark names a row by
//! the text before it, without blanks, lines drawn with box characters and the marks of wrapped code,
//! because wrapping adds and removes only those. A table that becomes too narrow repeats its heads, so the rows
//! below it are named by the text after them.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::super::text::{Row, WRAPPED_MARK};

/// The beginning of a row within the rows of one block of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RowMark {
    /// The text before the row, and the number of rows between that text and it.
    before: Side,
    /// The text from the row on, and the number of rows between it and that text.
    after: Side,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Side {
    /// The characters as a sum of hashes: columns of a table interleave differently at each width,
    /// so their order does not count.
    sum: u64,
    n_chars: usize,
    /// Number of rows without text.
    n_rows: usize,
}

impl RowMark {
    /// The marks of all rows of a block, in order.
    pub fn of<'r>(rows: impl IntoIterator<Item = &'r Row>) -> impl Iterator<Item = Self> {
        let mut next = Side::default();
        let mut marks: Vec<Self> = Vec::new();
        for row in rows {
            marks.push(Self { before: next, after: Side::default() });
            next.n_rows += 1;
            for span in &row.line.spans {
                for c in span.content.chars().filter(|c| is_text(*c)) {
                    next.sum = next.sum.wrapping_add(hash(c));
                    next.n_chars += 1;
                    next.n_rows = 0;
                }
            }
        }
        let whole = next;
        let (mut below, mut n_rows) = (whole.n_chars, 0);
        for mark in marks.iter_mut().rev() {
            n_rows = if mark.before.n_chars == below { n_rows + 1 } else { 0 };
            below = mark.before.n_chars;
            let sum = whole.sum.wrapping_sub(mark.before.sum);
            mark.after = Side { sum, n_chars: whole.n_chars - below, n_rows };
        }
        marks.into_iter()
    }

    /// The mark of a row after the last one.
    pub fn end_of(rows: &[Row]) -> Option<Self> {
        Self::of(rows.iter().chain([&Row::default()])).last()
    }

    /// The row that begins with the same text. The text may have grown.
    pub fn find<'r>(&self, rows: impl IntoIterator<Item = &'r Row>) -> Option<usize> {
        self.find_by(rows, self.after.n_chars > 0)
    }

    /// The same in a text that has not grown, whose end is where it was.
    pub fn find_in_whole<'r>(&self, rows: impl IntoIterator<Item = &'r Row>) -> Option<usize> {
        self.find_by(rows, true)
    }

    /// The row that comes after the same text as this one, whatever follows.
    pub fn find_after_same<'r>(&self, rows: impl IntoIterator<Item = &'r Row>) -> Option<usize> {
        self.find_by(rows, false)
    }

    fn find_by<'r>(&self, rows: impl IntoIterator<Item = &'r Row>, by_end: bool) -> Option<usize> {
        let mut below = None;
        for (n, mark) in Self::of(rows).enumerate() {
            if mark.before == self.before {
                return Some(n);
            }
            if by_end && mark.after == self.after {
                below = Some(n);
            }
        }
        below
    }

    /// The last row that begins no later in the text, or the number of rows if all of them
    /// are shorter than the text before the mark.
    pub fn find_before(&self, rows: &[Row]) -> usize {
        let end = Row::default();
        let marks: Vec<Self> = Self::of(rows.iter().chain([&end])).collect();
        let n_rows = marks.len() - 1;
        let n_chars = self.before.n_chars;
        if marks[n_rows].before.n_chars < n_chars {
            return n_rows;
        }
        marks[..n_rows].iter().rposition(|mark| mark.before.n_chars <= n_chars).unwrap_or(0)
    }
}

fn is_text(c: char) -> bool {
    !c.is_whitespace() && !('\u{2500}'..='\u{259f}').contains(&c) && !WRAPPED_MARK.contains(c)
}

fn hash(c: char) -> u64 {
    let mut hasher = DefaultHasher::new();
    c.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use ratatui::style::Style;

    use super::*;

    fn rows(texts: &[&str]) -> Vec<Row> {
        texts.iter().map(|text| Row::styled(*text, Style::new())).collect()
    }

    #[test]
    fn a_row_is_found_at_another_width_if_a_row_begins_there() {
        let wide = rows(&["", "one two three", "four", "", "five six"]);
        let slim = rows(&["", "one two", "three", "four", "", "five", "six"]);
        let found: Vec<_> = RowMark::of(&wide).map(|mark| mark.find(&slim)).collect();
        assert_eq!(found, [Some(0), Some(1), Some(3), Some(4), Some(5)]);
        let found: Vec<_> = RowMark::of(&slim).map(|mark| mark.find(&wide)).collect();
        assert_eq!(found, [Some(0), Some(1), None, Some(2), Some(3), Some(4), None]);
        let six = RowMark::of(&slim).last().unwrap();
        assert_eq!(six.find_before(&wide), 4);
    }

    #[test]
    fn the_rows_after_a_table_are_found_although_its_cells_wrapped() {
        let wide = rows(&["a b c │ d e", "──────┼────", "after"]);
        let slim = rows(&["a b │ d", "c   │ e", "────┼──", "after"]);
        let after = RowMark::of(&wide).last().unwrap();
        assert_eq!(after.find(&slim), Some(3));
        assert_eq!(after.find_before(&slim), 3);
        assert_eq!(after.find_before(&rows(&["a b"])), 1, "the text went on behind it");
    }

    #[test]
    fn end_below_a_diagram_is_found_unless_the_text_has_grown() {
        let wide = rows(&["before", "[drawing]", ""]);
        let slim = rows(&["before", "source of it", "too wide", ""]);
        let ends: Vec<_> = RowMark::of(&wide).skip(2).chain(RowMark::end_of(&wide)).collect();
        let find = |mark: &RowMark, rows: &[Row]| mark.find_in_whole(rows.iter().chain([&Row::default()]));
        // The marks of a block's rows do not know of a row after the last one.
        assert_eq!(find(&ends[1], &slim), Some(4));
        assert_eq!(ends[0].find_in_whole(&slim), Some(3));
        assert_eq!((ends[0].find(&slim), ends[1].find(&slim)), (None, None));
    }

    #[test]
    fn the_rows_after_a_table_are_found_although_its_heads_are_repeated() {
        let wide = rows(&["before", "", "k │ v", "──┼──", "a │ 1", "b │ 2", "", "after", "the end"]);
        let slim = rows(&["before", "", "k: a", "v: 1", "", "k: b", "v: 2", "", "after", "the", "end"]);
        let found: Vec<_> = RowMark::of(&wide).map(|mark| mark.find(&slim)).collect();
        let (above, table, below) = (&found[..3], &found[3..6], &found[6..]);
        assert_eq!(above, [Some(0), Some(1), Some(2)]);
        assert_eq!(table, [None; 3]);
        assert_eq!(below, [Some(7), Some(8), Some(9)]);
        assert_eq!(RowMark::end_of(&wide).unwrap().find(&slim), None, "more text may have arrived");
    }
}
