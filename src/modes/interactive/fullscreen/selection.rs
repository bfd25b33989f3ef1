//! Selected text.

use std::ops::Range;

use ratatui::style::Style;
use ratatui::text::Span;

use crate::tui::markdown::{CopyRow, copied_markdown};
use crate::tui::text::{Row, graphemes, has_no_blanks, word_parts};

use super::scrollback::{Scrollback, Spot};

/// A cell of the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Point {
    pub(super) spot: Spot,
    pub(super) column: u16,
}

/// What a selection consists of: one click selects characters, two words, three lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Character,
    Word,
    Line,
}

impl Unit {
    pub(super) fn of_clicks(n_clicks: usize) -> Self {
        match n_clicks % 3 {
            1 => Self::Character,
            2 => Self::Word,
            _ => Self::Line,
        }
    }
}

/// A selection from where it began to where it is extended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Selection {
    pub(super) anchor: Point,
    pub(super) head: Point,
    pub(super) unit: Unit,
    /// Whether it has been extended; one click selects nothing.
    pub(super) is_extended: bool,
}

/// Cells from `from` on, up to `to`, whose cell is not included. Columns up to `u16::MAX` are the
/// whole row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) from: Point,
    pub(super) to: Point,
}

impl Selection {
    pub(super) fn new(at: Point, unit: Unit) -> Self {
        Self { anchor: at, head: at, unit, is_extended: unit != Unit::Character }
    }

    pub(super) fn extend(&mut self, head: Point) {
        self.is_extended |= head != self.anchor;
        self.head = head;
    }

    /// What is selected; `None` if nothing is.
    pub(super) fn extent(&self, rows: &mut Scrollback<'_>) -> Option<Extent> {
        if !self.is_extended {
            return None;
        }
        let (first, last) = (self.anchor.min(self.head), self.anchor.max(self.head));
        let (from, to) = match self.unit {
            Unit::Character => (first, Point { column: last.column.saturating_add(1), ..last }),
            Unit::Word => {
                let start = word(&rows.row(first.spot), first.column).start;
                let end = word(&rows.row(last.spot), last.column).end;
                (Point { column: start, ..first }, Point { column: end, ..last })
            }
            Unit::Line => {
                let (start, end) = (whole_start(rows, first.spot), whole_end(rows, last.spot));
                (Point { spot: start, column: 0 }, Point { spot: end, column: u16::MAX })
            }
        };
        Some(Extent { from, to })
    }
}

/// The first row of the line, or of the row of a table, that row `spot` belongs to.
fn whole_start(rows: &mut Scrollback<'_>, spot: Spot) -> Spot {
    let start = line_start(rows, spot);
    first_while(rows, start, Row::cells_go_on)
}

/// The last row of it.
fn whole_end(rows: &mut Scrollback<'_>, spot: Spot) -> Spot {
    let end = line_end(rows, spot);
    last_while(rows, end, Row::cells_go_on)
}

/// The first row of the line that row `spot` belongs to.
pub(super) fn line_start(rows: &mut Scrollback<'_>, spot: Spot) -> Spot {
    first_while(rows, spot, Row::goes_on)
}

/// The last row of that line.
pub(super) fn line_end(rows: &mut Scrollback<'_>, spot: Spot) -> Spot {
    last_while(rows, spot, Row::goes_on)
}

fn first_while(rows: &mut Scrollback<'_>, mut spot: Spot, goes_on: impl Fn(&Row) -> bool) -> Spot {
    loop {
        let (above, moved) = rows.up(spot, 1);
        if moved == 0 || !goes_on(&rows.row(above)) {
            return spot;
        }
        spot = above;
    }
}

fn last_while(rows: &mut Scrollback<'_>, mut spot: Spot, goes_on: impl Fn(&Row) -> bool) -> Spot {
    while goes_on(&rows.row(spot)) {
        let (below, moved) = rows.down(spot, 1);
        if moved == 0 {
            break;
        }
        spot = below;
    }
    spot
}

/// The Markdown texts that rows show.
#[derive(Default)]
struct Texts {
    texts: Vec<String>,
    /// Part and number of the last one.
    last: Option<(usize, usize)>,
}

impl Texts {
    fn row(&mut self, rows: &mut Scrollback<'_>, spot: Spot, columns: Option<Range<u16>>) -> CopyRow {
        let row = rows.row(spot).into_owned();
        let text = rows.markdown(spot).filter(|_| row.part().is_some()).map(|(number, text)| {
            if self.last.replace((spot.part, number)) != Some((spot.part, number)) {
                self.texts.push(text.to_owned());
            }
            self.texts.len() - 1
        });
        CopyRow { row, columns, text }
    }
}

impl Extent {
    /// The selected columns of a row.
    pub(super) fn columns(&self, spot: Spot) -> Option<Range<u16>> {
        if spot < self.from.spot || spot > self.to.spot {
            return None;
        }
        let start = if spot == self.from.spot { self.from.column } else { 0 };
        let end = if spot == self.to.spot { self.to.column } else { u16::MAX };
        (start < end).then_some(start..end)
    }

    /// The text, as [`copied_markdown`] has it, without blank rows at its ends. `Err` with parts that are not in memory.
    pub(super) fn text(&self, rows: &mut Scrollback<'_>) -> Result<String, Vec<usize>> {
        let n_parts = rows.earlier.list.sections.len();
        let parts = self.from.spot.part..self.to.spot.part.min(n_parts.saturating_sub(1)).saturating_add(1);
        let unread: Vec<usize> = parts.filter(|part| *part < n_parts && !rows.is_read(*part)).collect();
        if !unread.is_empty() {
            return Err(unread);
        }
        let mut texts = Texts::default();
        let mut copied: Vec<CopyRow> = Vec::new();
        let mut at = self.from.spot;
        // Frames do not tell whether what is in them is selected.
        while copied.last().is_none_or(|above| above.row.is_frame()) {
            let (above, n_above) = rows.up(at, 1);
            if n_above == 0 {
                break;
            }
            at = above;
            copied.push(texts.row(rows, above, None));
        }
        copied.reverse();
        let goes_on = copied.last().is_some_and(|above| above.row.goes_on());
        for spot in rows.spots(self.from.spot, self.to.spot, usize::MAX) {
            let mut columns = self.columns(spot).unwrap_or(0..0);
            if goes_on && spot == self.from.spot {
                // It begins in the middle of a line.
                columns.start = columns.start.max(rows.row(spot).text_columns().start).max(1);
            }
            copied.push(texts.row(rows, spot, Some(columns)));
        }
        let mut at = self.to.spot;
        loop {
            let (below, n_below) = rows.down(at, 1);
            if n_below == 0 {
                break;
            }
            at = below;
            copied.push(texts.row(rows, below, None));
            if copied.last().is_some_and(|below| !below.row.is_frame()) {
                break;
            }
        }
        Ok(copied_markdown(&copied, &texts.texts).trim_matches('\n').to_owned())
    }
}

/// The columns of the word at a column: letters and what connects them in names, paths and
/// addresses, a word of a script without blanks, or other characters of one kind.
pub(super) fn word(row: &Row, column: u16) -> Range<u16> {
    let text = row.text();
    let mut cells: Vec<(Range<u16>, &str)> = Vec::new();
    let mut at = 0_u16;
    for (grapheme, width) in graphemes(&text) {
        let end = at.saturating_add(u16::try_from(width).unwrap_or(u16::MAX));
        cells.push((at..end, grapheme));
        at = end;
    }
    let inside = row.text_columns();
    cells.retain(|(cell, _)| cell.start >= inside.start && cell.end <= inside.end);
    let Some(found) = cells.iter().position(|(cell, _)| cell.contains(&column)) else {
        return column..column.saturating_add(1);
    };
    let kinds: Vec<Kind> = cells.iter().map(|(_, grapheme)| Kind::of(grapheme)).collect();
    let parted = |after: usize| !kinds[after - 1].joins(kinds[after]);
    let first = (1..=found).rev().find(|after| parted(*after)).unwrap_or(0);
    let mut end = (found + 1..cells.len()).find(|after| parted(*after)).unwrap_or(cells.len());
    // The full stop or colon after a name is no part of it.
    while end > found + 1 && kinds[end - 1] == Kind::Connector {
        end -= 1;
    }
    let run = &cells[first..end];
    if kinds[first..end].iter().any(|kind| *kind != Kind::Unspaced) {
        return run[0].0.start..run[run.len() - 1].0.end;
    }
    let text: String = run.iter().map(|(_, grapheme)| *grapheme).collect();
    let mut at = 0;
    let places = run.iter().map(|(cell, grapheme)| {
        at += grapheme.len();
        (cell, at)
    });
    let places: Vec<(&Range<u16>, usize)> = places.collect();
    let clicked = places[found - first].1;
    let parts = word_parts(&text).into_iter().map(|(at, part)| at..at + part.len());
    let part =
        parts.clone().find(|part| part.start < clicked && clicked <= part.end).unwrap_or(0..text.len());
    let mut cells =
        places.iter().filter(|(_, end)| part.start < *end && *end <= part.end).map(|(cell, _)| *cell);
    let first = cells.next().unwrap_or(&run[0].0);
    first.start..cells.next_back().unwrap_or(first).end
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Blank,
    Letter,
    /// A letter of a script without blanks between words.
    Unspaced,
    /// Part of a word between letters.
    Connector,
    Other,
}

impl Kind {
    fn of(grapheme: &str) -> Self {
        match grapheme.chars().next() {
            Some(c) if c.is_whitespace() => Self::Blank,
            Some(c) if has_no_blanks(c) && c.is_alphanumeric() => Self::Unspaced,
            Some(c) if c.is_alphanumeric() || c == '_' => Self::Letter,
            Some('-' | '.' | '/' | '~' | ':' | '@' | '%' | '+' | '#' | '?' | '&' | '=' | '$') => {
                Self::Connector
            }
            _ => Self::Other,
        }
    }

    /// Whether a word goes on with a character of the `next` kind. Prose without blanks ends where other letters
    /// begin; in paths and addresses both are connected.
    fn joins(self, next: Self) -> bool {
        let is_connected = |kind| matches!(kind, Self::Letter | Self::Unspaced | Self::Connector);
        let may_follow = self == Self::Connector || next == Self::Connector;
        self == next || (may_follow && is_connected(self) && is_connected(next))
    }
}

/// The row with another style in these columns.
pub(in super::super) fn with_style(row: Row, columns: &Range<u16>, style: Style) -> Row {
    if columns.is_empty() {
        return row;
    }
    let mut row = row;
    let mut spans: Vec<Span<'static>> = Vec::with_capacity(row.line.spans.len() + 2);
    let mut at = 0_u16;
    for span in std::mem::take(&mut row.line.spans) {
        for (grapheme, width) in graphemes(&span.content) {
            let end = at.saturating_add(u16::try_from(width).unwrap_or(u16::MAX));
            let is_inside = at < columns.end && end > columns.start;
            let style = if is_inside { span.style.patch(style) } else { span.style };
            match spans.last_mut().filter(|last| last.style == style) {
                Some(last) => last.content.to_mut().push_str(grapheme),
                None => spans.push(Span::styled(grapheme.to_owned(), style)),
            }
            at = end;
        }
    }
    row.line.spans = spans;
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_a_name_a_path_or_an_address() {
        let check = |text: &str, column: u16, expected: &str| {
            let row = Row::styled(text, Style::new());
            let found = word(&row, column);
            let word: String = text
                .chars()
                .skip(usize::from(found.start))
                .take(usize::from(found.end - found.start))
                .collect();
            assert_eq!(word, expected, "{text} at {column}");
        };
        check("see src/main.rs: ok", 6, "src/main.rs");
        check("see src/main.rs: ok", 1, "see");
        check("call foo_bar(x)", 7, "foo_bar");
        check("call foo_bar(x)", 12, "(");
        check("end.", 1, "end");
        check("a  b", 1, "  ");
        check("https://a.b/c?d=e, then", 3, "https://a.b/c?d=e");
        check("cargo test --lib", 12, "--lib");
    }

    #[test]
    fn a_word_of_a_script_without_blanks_is_one_of_its_dictionary() {
        let check = |text: &str, column: u16, expected: &str| {
            let found = word(&Row::styled(text, Style::new()), column);
            let mut at = 0;
            let word = graphemes(text).filter(|(_, cells)| {
                at += u16::try_from(*cells).unwrap();
                at > found.start && at <= found.end
            });
            assert_eq!(
                word.map(|(grapheme, _)| grapheme).collect::<String>(),
                expected,
                "{text} at {column}"
            );
        };
        check("这是一个关于终端的段落。", 13, "终端");
        check("这是一个关于终端的段落。", 20, "段落");
        check("使用src/main.rs文件", 6, "src/main.rs");
        check("使用src/main.rs文件", 17, "文件");
        check("打开/home/用户/文档.txt，", 13, "打开/home/用户/文档.txt");
        check("ภาษาไทยง่าย", 1, "ภาษา");
        check("プログラムを書く", 3, "プログラム");
    }

    #[test]
    fn a_word_of_wide_characters_covers_all_their_cells() {
        let row = Row::styled("说：世界 ok", Style::new());
        assert_eq!(word(&row, 5), 4..8);
        assert_eq!(word(&row, 4), 4..8);
    }

    #[test]
    fn a_style_covers_clusters_that_are_partly_inside() {
        let row = Row::styled("a世b", Style::new());
        let row = with_style(row, &(2..3), Style::new().reversed());
        let texts: Vec<&str> = row.line.spans.iter().map(|span| span.content.as_ref()).collect();
        assert_eq!(texts, ["a", "世", "b"]);
    }
}
