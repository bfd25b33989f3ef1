//! Text that is copied from rows.
//!
//! A row on the screen is not what it was made of: long lines are wrapped, boxes and margins
//! are filled with blanks, tabs become spaces, what cannot be seen is spelt out. Each [`Row`] therefore carries a [`CopyRule`],
//! and [`copied_text`] puts the lines together again, byte for byte: wrapped rows are joined with the
//! blanks that the wrap dropped, and what is only drawn around a text is left out.

use std::iter::Peekable;
use std::ops::Range;

use crate::util::escapes::{Piece, is_dropped, pieces};
use crate::util::visible::Replaced;

use super::row::{Row, cells};
use super::sanitize::TAB_WIDTH;
use super::table_copy::{TableRow, selected_cells};
use super::width::{graphemes, width};

/// How a row is copied. The default is a row that is a line of its own.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CopyRule {
    /// Cells at the start that are drawn in front of the text, such as a margin.
    pub(super) lead: u16,
    /// Cells at the end that only fill the row.
    pub(super) fill: u16,
    /// Drawn around texts and never copied, such as the edge of a box.
    pub(super) is_frame: bool,
    /// Whether it stands in for a drawing, which may have other rows at another width.
    pub(super) is_stand_in: bool,
    /// Whether the next row goes on with the same line.
    pub(super) goes_on: bool,
    /// Blanks after the text that are not shown.
    pub(super) dropped: Box<str>,
    /// What a line begins with if it is copied from its beginning, in place of the lead.
    pub(super) prefix: Box<str>,
    /// Replaces the text if the row is copied whole, and so are those that belong to it. Empty for all but
    /// the first of these.
    pub(super) instead: Option<Box<str>>,
    /// Whether the next row belongs to the same text that is copied instead.
    pub(super) is_with_next: bool,
    /// What it shows of a table.
    pub(super) table: Option<TableRow>,
    /// The text of the row, where its cells do not tell: a mark that joins the margin, a cluster
    /// for which the row is too narrow, a tab.
    pub(super) exact: Option<Box<str>>,
    /// Columns whose text stands for a character; ascending.
    pub(super) replaced: Vec<ReplacedCells>,
    /// The byte of its Markdown text at which the block begins that the row belongs to.
    pub(super) part: Option<u32>,
}

/// Cells with text that is shown in place of a character. The row may end before them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ReplacedCells {
    pub columns: Range<u16>,
    /// `None` if they begin on the row before.
    pub source: Option<char>,
}

impl CopyRule {
    pub(super) fn shift(&mut self, by: u16) {
        self.lead = self.lead.saturating_add(by);
        for ReplacedCells { columns, .. } in &mut self.replaced {
            *columns = columns.start.saturating_add(by)..columns.end.saturating_add(by);
        }
        if let Some(TableRow::Cells(cells)) = &mut self.table {
            cells.iter_mut().for_each(|cell| cell.shift(by));
        }
    }
}

impl Row {
    /// Whether the next row goes on with the same line.
    pub fn goes_on(&self) -> bool {
        self.copy.goes_on
    }

    /// Blanks after the text that are not shown.
    pub fn dropped(&self) -> &str {
        &self.copy.dropped
    }

    /// Whether the row is drawn around texts and is none itself.
    pub fn is_frame(&self) -> bool {
        self.copy.is_frame
    }

    /// Marks a row of the source of a drawing for which there is no room at this width.
    pub fn stand_in(&mut self) {
        self.copy.is_stand_in = true;
    }

    /// The columns that have text.
    pub fn text_columns(&self) -> Range<u16> {
        let end = u16::try_from(self.width()).unwrap_or(u16::MAX).saturating_sub(self.copy.fill);
        self.copy.lead.min(end)..end
    }

    /// The byte of its Markdown text at which the block begins that the row belongs to.
    pub fn part(&self) -> Option<usize> {
        usize::try_from(self.copy.part?).ok()
    }

    /// Sets [`Self::part`].
    pub fn set_part(&mut self, start: usize) {
        self.copy.part = u32::try_from(start).ok();
    }

    /// Lets the row be copied as it is shown.
    pub fn forget_part(&mut self) {
        self.copy.part = None;
    }

    /// Whether these columns have all of its text, and what its line begins with.
    pub fn is_whole_in(&self, columns: &Range<u16>) -> bool {
        let inside = self.whole_columns();
        let is_begun = columns.start <= inside.start
            && (self.copy.prefix.is_empty() || begins_line(columns, &self.text_columns()));
        self.is_frame() || is_begun && columns.end >= inside.end
    }

    /// The columns without which it is not whole: of a table those of its cells, without the lines around them.
    fn whole_columns(&self) -> Range<u16> {
        self.cell_columns().unwrap_or_else(|| self.text_columns())
    }

    /// The same row, never copied.
    #[must_use]
    pub fn as_frame(mut self) -> Self {
        self.copy.is_frame = true;
        self
    }

    /// The same row, copied as `text` if it is copied whole.
    #[must_use]
    pub fn copied_as(mut self, text: impl Into<Box<str>>) -> Self {
        self.copy.instead = Some(text.into());
        self
    }

    /// The text in these columns; clusters and replaced characters that are partly in them are included.
    pub(super) fn copy_columns(&self, columns: &Range<u16>, out: &mut String) {
        // A mark behind a blank or a replaced character joins the last cell of it.
        let joined = |grapheme: &str| grapheme.strip_prefix([' ', '>']).unwrap_or_default().to_owned();
        let mut column = 0_u16;
        let mut copied_until = 0;
        for span in &self.line.spans {
            for (grapheme, cells) in graphemes(&span.content) {
                let end = column.saturating_add(u16::try_from(cells).unwrap_or(u16::MAX));
                let is_inside = if cells == 0 {
                    column >= columns.start && column <= columns.end
                } else {
                    column < columns.end && end > columns.start
                };
                if end == columns.start && columns.start == self.copy.lead {
                    out.push_str(&joined(grapheme));
                }
                if is_inside && column < self.copy.lead {
                    out.push_str(&joined(grapheme));
                } else if is_inside {
                    match self.copy.replaced.iter().find(|replaced| replaced.columns.contains(&column)) {
                        Some(replaced) => {
                            if column >= copied_until {
                                out.extend(replaced.source);
                                copied_until = replaced.columns.end;
                            }
                            out.push_str(&joined(grapheme));
                        }
                        None => out.push_str(grapheme),
                    }
                }
                column = end;
            }
        }
    }
}

/// Rows that are copied as `source` if all of them are copied whole.
pub fn copied_together(mut rows: Vec<Row>, source: &str) -> Vec<Row> {
    let last = rows.len().saturating_sub(1);
    for (row_idx, row) in rows.iter_mut().enumerate() {
        row.copy.instead = Some(if row_idx == 0 { source.into() } else { "".into() });
        row.copy.is_with_next = row_idx < last;
    }
    rows
}

/// The selected columns of a row; a row that is copied to its end has columns up to `u16::MAX`.
pub(super) struct Selected<'a> {
    pub(super) row: &'a Row,
    pub(super) columns: Range<u16>,
}

impl Selected<'_> {
    fn is_whole(&self) -> bool {
        let inside = self.row.whole_columns();
        self.columns.start <= inside.start && self.columns.end >= inside.end
    }

    /// Whether both belong to one text that is copied instead of them.
    fn is_with(&self, next: &Self) -> bool {
        self.row.copy.is_with_next && next.row.copy.instead.as_deref() == Some("")
    }

    fn is_of_table(&self) -> bool {
        self.row.copy.table.is_some()
    }
}

/// The text that is copied instead of these rows, which belong together, if all of them are there.
fn instead<'a>(rows: &[Selected<'a>]) -> Option<&'a str> {
    let (first, last) = (rows.first()?, rows.last()?);
    let is_complete = !last.row.copy.is_with_next && rows.iter().all(Selected::is_whole);
    first.row.copy.instead.as_deref().filter(|text| is_complete && !text.is_empty())
}

/// The text of consecutive rows, each in these columns; a row that is copied to its end has
/// columns up to `u16::MAX`. A table of which a row is copied in part is copied as the text of its cells.
pub fn copied_text<R: AsRef<Row>>(rows: impl IntoIterator<Item = (R, Range<u16>)>) -> String {
    copied_pieces([CopyPiece::Rows(rows.into_iter().collect())])
}

/// Consecutive rows, each in these columns, or whole lines of text in place of rows.
#[derive(Debug)]
pub enum CopyPiece<R> {
    Rows(Vec<(R, Range<u16>)>),
    Text(String),
}

/// The text of consecutive pieces; that of rows is as [`copied_text`] has it.
pub fn copied_pieces<R: AsRef<Row>>(pieces: impl IntoIterator<Item = CopyPiece<R>>) -> String {
    let mut copied = Copied::default();
    for piece in pieces {
        match piece {
            CopyPiece::Rows(rows) => copied.rows(&rows),
            CopyPiece::Text(text) => copied.lines(&text),
        }
    }
    copied.text
}

/// Whether columns of a row have what its line begins with, other than the text in the columns `inside`.
fn begins_line(columns: &Range<u16>, inside: &Range<u16>) -> bool {
    columns.start < inside.start || columns.start == 0
}

/// What was copied so far.
#[derive(Default)]
struct Copied {
    text: String,
    /// Whether a row came before, and its line goes on.
    before: Option<bool>,
}

impl Copied {
    fn rows<R: AsRef<Row>>(&mut self, rows: &[(R, Range<u16>)]) {
        let selected =
            rows.iter().map(|(row, columns)| Selected { row: row.as_ref(), columns: columns.clone() });
        let selected: Vec<Selected<'_>> = selected.filter(|selected| !selected.row.is_frame()).collect();
        let are_together = |one: &Selected<'_>, next: &Selected<'_>| {
            one.is_with(next) || (one.is_of_table() && next.is_of_table())
        };
        for block in selected.chunk_by(are_together) {
            let groups = || block.chunk_by(Selected::is_with);
            let is_complete = groups().all(|group| instead(group).is_some());
            for group in groups() {
                match instead(group).filter(|_| is_complete) {
                    Some(text) => self.line(&group[0], text),
                    None => self.shown(group),
                }
            }
        }
    }

    /// Adds lines that no row tells.
    fn lines(&mut self, text: &str) {
        if self.before.is_some() {
            self.text.push('\n');
        }
        self.text.push_str(text);
        self.before = Some(false);
    }

    fn begin(&mut self, Selected { row, columns }: &Selected<'_>) {
        if self.before == Some(false) {
            self.text.push('\n');
        }
        let inside = row.text_columns();
        if self.before != Some(true) && begins_line(columns, &inside) {
            self.text.push_str(&row.copy.prefix);
        }
    }

    /// Adds a line that begins where `first` does.
    fn line(&mut self, first: &Selected<'_>, text: &str) {
        self.begin(first);
        self.text.push_str(text);
        self.before = Some(false);
    }

    /// Adds rows that belong together, as they are shown.
    fn shown(&mut self, rows: &[Selected<'_>]) {
        match rows.first().and_then(|first| first.row.copy.table.as_ref()) {
            Some(TableRow::Rule) => {}
            Some(TableRow::Cells(_)) => {
                let text = selected_cells(rows);
                if !text.is_empty() {
                    self.line(&rows[0], &text);
                }
            }
            Some(TableRow::Line) | None => rows.iter().for_each(|row| self.row(row)),
        }
    }

    fn row(&mut self, selected: &Selected<'_>) {
        self.begin(selected);
        let Selected { row, columns } = selected;
        let rule = &row.copy;
        match rule.exact.as_deref().filter(|_| selected.is_whole()) {
            Some(exact) => self.text.push_str(exact),
            None => {
                let inside = row.text_columns();
                let from = columns.start.max(inside.start);
                row.copy_columns(&(from..columns.end.min(inside.end).max(from)), &mut self.text);
            }
        }
        if columns.end == u16::MAX {
            self.text.push_str(&rule.dropped);
        }
        self.before = Some(rule.goes_on);
    }
}

/// Lets the tabs of `source`, a line of text, be copied from the rows that show it. The rows are the result of
/// wrapping its sanitised text.
pub fn keep_tabs(rows: &mut [Row], source: &str) {
    if source.contains('\t') {
        keep_replaced(rows, &tabs(source));
    }
}

/// Lets what was replaced in a line of text be copied from the rows that are the result of wrapping it.
pub fn keep_replaced(rows: &mut [Row], replaced: &[Replaced]) {
    keep_replaced_after(rows, 0, replaced);
}

/// The same if the first bytes, up to `end`, are the rest of a replaced character.
pub(super) fn keep_replaced_after(rows: &mut [Row], mut end: usize, replaced: &[Replaced]) {
    if replaced.is_empty() && end == 0 {
        return;
    }
    let mut replaced = replaced.iter().peekable();
    // `end` is where the last replaced character ends; a narrow row may break it.
    let mut at = 0;
    for row in rows {
        // Blanks at the beginning for which there was no room.
        let prefix = std::mem::take(&mut row.copy.prefix);
        row.copy.prefix = with_sources(&prefix, at, &mut replaced, &mut end).into();
        at += prefix.len();
        let content = row.copy.exact.take().map_or_else(|| row.text_after_lead(), String::from);
        // The rest of a replaced character that began on the row before. All of it is ASCII.
        let rest = content.bytes().take(end.saturating_sub(at)).take_while(u8::is_ascii).count();
        if rest > 0 {
            let columns = row.copy.lead..row.copy.lead.saturating_add(cells(rest));
            row.copy.replaced.push(ReplacedCells { columns, source: None });
        }
        let here: Vec<&Replaced> =
            std::iter::from_fn(|| replaced.next_if(|one| one.range.start < at + content.len())).collect();
        for Replaced { range, source } in &here {
            if let Some(before) = range.start.checked_sub(at).and_then(|start| content.get(..start)) {
                let start = row.copy.lead.saturating_add(cells(width(before)));
                let columns = start..start.saturating_add(cells(range.len()));
                row.copy.replaced.push(ReplacedCells { columns, source: Some(*source) });
            }
        }
        row.copy.exact = Some(with_sources(&content, at, &mut here.into_iter().peekable(), &mut end).into());
        at += content.len();
        let dropped = std::mem::take(&mut row.copy.dropped);
        row.copy.dropped = with_sources(&dropped, at, &mut replaced, &mut end).into();
        at += dropped.len();
    }
}

/// `text`, which begins at `start` of the line, with the characters that were replaced in it, and
/// without the rest of one that ends at `end`.
fn with_sources<'r>(
    text: &str,
    start: usize,
    replaced: &mut Peekable<impl Iterator<Item = &'r Replaced>>,
    end: &mut usize,
) -> String {
    let mut kept = String::with_capacity(text.len());
    for (offset, c) in text.char_indices() {
        let at = start + offset;
        if let Some(Replaced { range, source }) = replaced.next_if(|one| one.range.start == at) {
            kept.push(*source);
            *end = range.end;
        } else if at >= *end {
            kept.push(c);
        }
    }
    kept
}

/// The tabs of a line, where its sanitised text has them.
fn tabs(source: &str) -> Vec<Replaced> {
    let mut tabs = Vec::new();
    let mut at = 0;
    for piece in pieces(source) {
        match piece {
            Piece::Char('\t') => {
                tabs.push(Replaced { range: at..at + TAB_WIDTH, source: '\t' });
                at += TAB_WIDTH;
            }
            Piece::Char('\n' | '\r' | '\u{2028}' | '\u{2029}' | '\u{85}') => at += 1,
            Piece::Char(c) if is_dropped(c) => {}
            Piece::Char(c) => at += c.len_utf8(),
            Piece::Sgr(_) | Piece::Edit(_) => {}
        }
    }
    tabs
}

impl Row {
    fn text_after_lead(&self) -> String {
        let mut text = String::new();
        self.copy_columns(&(self.copy.lead..u16::MAX), &mut text);
        text
    }

    /// Keeps `text`, which the row was made of, if its cells do not tell it: it begins with a mark
    /// that has no cell of its own, or a part of it was replaced.
    pub(super) fn keep_exact(&mut self, text: &str, is_replaced: bool) {
        let is_mark = |first: char| {
            let joins = graphemes(&String::from_iter([' ', first])).count() == 1;
            joins || graphemes(text).next().is_some_and(|(_, cells)| cells == 0)
        };
        if is_replaced || text.chars().next().is_some_and(|first| !first.is_ascii() && is_mark(first)) {
            self.copy.exact = Some(text.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use ratatui::style::Style;

    use super::super::row::{Run, visible_runs};
    use super::super::sanitize::sanitize;
    use super::super::wrap::{Wrap, wrap_plain};
    use super::*;

    fn whole(rows: &[Row]) -> String {
        copied_text(rows.iter().map(|row| (row, 0..u16::MAX)))
    }

    #[test]
    fn wrapped_rows_are_joined_with_the_blanks_that_were_dropped() {
        for text in ["one two  three   four", "世界世界世界世界", "", "a\n\nb", "trailing   ", "  lead"]
        {
            for width in 4..12 {
                assert_eq!(whole(&wrap_plain(text, width, Style::new())), text, "{width}");
            }
        }
    }

    #[test]
    fn margins_fill_and_frames_are_left_out() {
        let mut rows = wrap_plain("one two three", 8, Style::new());
        for row in &mut rows {
            row.indent("  ", Style::new());
            row.pad(20, Style::new());
        }
        rows.insert(0, Row::styled("────", Style::new()).as_frame());
        rows.push(Row::styled("────", Style::new()).as_frame());
        assert_eq!(whole(&rows), "one two three");
        let part = [(&rows[1], 3..u16::MAX), (&rows[2], 0..4)];
        assert_eq!(copied_text(part), "ne two th");
    }

    #[test]
    fn a_prefix_is_copied_with_the_beginning_of_its_line() {
        let mut rows = wrap_plain("one two three", 8, Style::new());
        for (index, row) in rows.iter_mut().enumerate() {
            row.prefix(
                if index == 0 { "• " } else { "  " },
                Style::new(),
                if index == 0 { "- " } else { "  " },
            );
        }
        assert_eq!(whole(&rows), "- one two three");
        assert_eq!(copied_text([(&rows[0], 2..5)]), "one");
        assert_eq!(copied_text([(&rows[0], 1..5)]), "- one");
    }

    #[test]
    fn a_row_that_stands_for_another_text_is_copied_as_it_if_it_is_whole() {
        let row = Row::styled("│ a │ b │", Style::new()).copied_as("| a | b |");
        assert_eq!(copied_text([(&row, 0..u16::MAX)]), "| a | b |");
        assert_eq!(copied_text([(&row, 2..3)]), "a");
    }

    #[test]
    fn rows_that_stand_for_another_text_are_copied_as_it_if_all_are_whole() {
        let drawn = ["┌─┐", "│x│", "└─┘"].map(|text| Row::styled(text, Style::new()));
        let rows = copied_together(drawn.to_vec(), "source");
        assert_eq!(whole(&rows), "source");
        assert_eq!(whole(&rows[..2]), "┌─┐\n│x│");
        assert_eq!(whole(&rows[1..]), "│x│\n└─┘");
        assert_eq!(copied_text([(&rows[0], 0..u16::MAX), (&rows[1], 0..2)]), "┌─┐\n│x");
        assert_eq!(whole(&[rows.clone(), rows].concat()), "source\nsource");
    }

    #[test]
    fn marks_alone_and_clusters_wider_than_the_row_are_copied_as_they_are() {
        for text in [
            "\u{301}",
            "\u{301}a",
            "\u{93e}",
            "\u{200d}x",
            "世界",
            "👨‍👩‍👧‍👦",
            "a\u{301}\u{301} \u{301}b",
            "\t\u{301}",
        ] {
            for width in 1..6 {
                for lead in ["", " ", "> "] {
                    let wrap = Wrap::new(width).first(lead, Style::new()).rest(lead, Style::new());
                    let mut rows = wrap.text(&sanitize(text), Style::new());
                    keep_tabs(&mut rows, text);
                    assert_eq!(whole(&rows), text, "{width} {lead:?}");
                }
            }
        }
    }

    #[test]
    fn a_row_that_is_cut_or_continued_is_copied_as_it_is_shown() {
        let rows = wrap_plain("\u{301}abcdef", 20, Style::new());
        let mut cut = rows[0].clone();
        cut.clip(3);
        assert_eq!(whole(&[cut]), "\u{301}abc");
        let mut longer = rows[0].clone();
        longer.push(Run::new("!", Style::new()));
        assert_eq!(whole(&[longer]), "\u{301}abcdef!");
    }

    #[test]
    fn part_of_a_replaced_character_is_copied_as_all_of_it() {
        let runs = visible_runs("a\u{200b}b\tc", Style::new(), Style::new());
        let row = Row::from_runs(runs.clone());
        assert_eq!(row.text(), "a<U+200B>b   c");
        for (columns, expected) in
            [(0..2, "a\u{200b}"), (5..10, "\u{200b}b"), (11..14, "\tc"), (9..u16::MAX, "b\tc")]
        {
            assert_eq!(copied_text([(&row, columns.clone())]), expected, "{columns:?}");
        }
        let rows = Wrap::new(5).runs(&runs);
        assert_eq!(rows.iter().map(Row::text).collect::<Vec<_>>(), ["a<U+2", "00B>b", "c"]);
        assert_eq!(whole(&rows), "a\u{200b}b\tc");
        assert_eq!(copied_text([(&rows[1], 0..u16::MAX), (&rows[2], 0..u16::MAX)]), "b\tc");
    }

    proptest! {
        #[test]
        fn any_line_to_be_judged_is_copied_byte_for_byte(text in "(\\PC|[ a-z\t世🌞\u{301}\u{93e}\u{200d}\u{200b}\u{202e}\u{1b}\u{7}\u{85}\u{feff}-]){0,40}", width in 1_u16..30) {
            let wrap = Wrap::new(width).first("$ ", Style::new()).rest("  ", Style::new());
            let rows = wrap.runs(&visible_runs(&text, Style::new(), Style::new()));
            prop_assert_eq!(whole(&rows), text);
        }

        #[test]
        fn any_line_is_copied_as_it_is(text in "(\\PC|[ a-z\t世🌞\u{301}\u{93e}\u{200d}-]){0,60}", width in 1_u16..30, indent in 0_u16..3) {
            let lead = " ".repeat(usize::from(indent));
            let text: String = text.chars().filter(|c| !matches!(c, '\u{2028}' | '\u{2029}')).collect();
            let clean = sanitize(&text);
            let runs = [Run::new(clean.clone(), Style::new())];
            let wrap = Wrap::new(width).first(lead.clone(), Style::new()).rest(lead, Style::new());
            let mut rows = wrap.runs(&runs);
            keep_tabs(&mut rows, &text);
            for row in &mut rows {
                row.indent(" ", Style::new());
                row.pad(width + 4, Style::new());
            }
            let expected: String = text.chars().filter(|c| *c == '\t' || sanitize(c.encode_utf8(&mut [0; 4])).len() == c.len_utf8()).collect();
            prop_assert_eq!(whole(&rows), expected);
        }
    }
}
