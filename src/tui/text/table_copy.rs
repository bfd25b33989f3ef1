//! Text that is copied from a part of a table: that of its cells, without what is drawn around them.

use std::ops::Range;

use super::copy::Selected;
use super::row::{Row, cells};

/// Between two cells, as in the source of a table.
const SEPARATOR: &str = " | ";

/// What a row shows of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TableRow {
    /// The line below the head.
    Rule,
    /// Texts side by side.
    Cells(Vec<CopiedCell>),
    /// A text with the whole width.
    Line,
}

/// The part of a cell on a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CopiedCell {
    columns: Range<u16>,
    /// Whether the next row goes on with the same line of the cell.
    goes_on: bool,
    /// Blanks after the text that are not shown.
    dropped: Box<str>,
    /// The text, where its cells do not tell.
    exact: Option<Box<str>>,
}

impl CopiedCell {
    pub(super) fn shift(&mut self, by: u16) {
        self.columns = self.columns.start.saturating_add(by)..self.columns.end.saturating_add(by);
    }

    /// The selected text, and whether it is selected to its end.
    fn text(&self, selected: &Selected<'_>) -> (String, bool) {
        let Range { start, end } = self.columns;
        let columns = &selected.columns;
        let reaches_end = columns.end >= end;
        if let Some(exact) = self.exact.as_deref().filter(|_| columns.start <= start && reaches_end) {
            return (exact.to_owned(), true);
        }
        let mut text = String::new();
        let from = columns.start.max(start);
        selected.row.copy_columns(&(from..columns.end.min(end).max(from)), &mut text);
        (text, reaches_end)
    }
}

impl Row {
    /// Appends a line of a cell of a table.
    pub fn append_cell(&mut self, line: Self) {
        let start = cells(self.width());
        let cell = CopiedCell {
            columns: start..start.saturating_add(cells(line.width())),
            goes_on: line.copy.goes_on,
            dropped: line.copy.dropped.clone(),
            exact: line.copy.exact.clone(),
        };
        self.append(line);
        match &mut self.copy.table {
            Some(TableRow::Cells(cells)) => cells.push(cell),
            table => *table = Some(TableRow::Cells(vec![cell])),
        }
    }

    /// The same row as the line below the head of a table.
    #[must_use]
    pub fn as_table_rule(mut self) -> Self {
        self.copy.table = Some(TableRow::Rule);
        self
    }

    /// The same row as a line of a cell that has the whole width.
    #[must_use]
    pub fn as_table_line(mut self) -> Self {
        self.copy.table = Some(TableRow::Line);
        self
    }

    /// Whether the next row shows other lines of the same cells.
    pub fn cells_go_on(&self) -> bool {
        self.copy.is_with_next && matches!(self.copy.table, Some(TableRow::Cells(_)))
    }

    /// The columns from the text of the first cell of a table to that of the last one.
    pub(super) fn cell_columns(&self) -> Option<Range<u16>> {
        let Some(TableRow::Cells(cells)) = &self.copy.table else { return None };
        let texts = || cells.iter().map(|cell| &cell.columns).filter(|columns| !columns.is_empty());
        let (first, last) = (texts().next()?, texts().next_back()?);
        Some(first.start..last.end)
    }

    fn cell(&self, nth: usize) -> Option<&CopiedCell> {
        match &self.copy.table {
            Some(TableRow::Cells(cells)) => cells.get(nth),
            _ => None,
        }
    }
}

/// The selected text of a row of the table, which has these rows of the screen. A cell of which nothing
/// is selected is left out, unless it is empty and between others.
pub(super) fn selected_cells(rows: &[Selected<'_>]) -> String {
    let mut texts: Vec<(String, bool)> = Vec::new();
    while rows.iter().any(|selected| selected.row.cell(texts.len()).is_some()) {
        let nth = texts.len();
        let is_empty =
            |selected: &Selected<'_>| selected.row.cell(nth).is_none_or(|cell| cell.columns.is_empty());
        texts.push((selected_cell(rows, nth), rows.iter().all(is_empty)));
    }
    let has_text = |(text, _): &(String, bool)| !text.is_empty();
    let first = texts.iter().position(has_text).unwrap_or(texts.len());
    let end = texts.iter().rposition(has_text).map_or(first, |last| last + 1);
    let shown = texts[first..end].iter().filter(|(text, is_empty)| !text.is_empty() || *is_empty);
    shown.map(|(text, _)| text.as_str()).collect::<Vec<_>>().join(SEPARATOR)
}

/// The selected text of one cell.
fn selected_cell(rows: &[Selected<'_>], nth: usize) -> String {
    let mut text = String::new();
    // What is between the last line and the next one.
    let mut between: Option<&str> = None;
    for selected in rows {
        let Some(cell) = selected.row.cell(nth) else { continue };
        let (line, reaches_end) = cell.text(selected);
        if line.is_empty() {
            continue;
        }
        text.push_str(between.unwrap_or_default());
        text.push_str(&line);
        between = reaches_end.then_some(if cell.goes_on { &cell.dropped } else { " " });
    }
    text
}

#[cfg(test)]
mod tests {
    use ratatui::style::Style;

    use super::super::copy::{copied_text, copied_together};
    use super::super::row::Run;
    use super::super::wrap::wrap_plain;
    use super::*;

    /// A row of a table whose cells are four columns wide, behind a margin.
    fn table_row(texts: &[&str], source: &str) -> Vec<Row> {
        let cells: Vec<Vec<Row>> = texts.iter().map(|text| wrap_plain(text, 4, Style::new())).collect();
        let height = cells.iter().map(Vec::len).max().unwrap();
        let row = |nth: usize| {
            let mut row = Row::styled("│", Style::new());
            for cell in &cells {
                row.push(Run::new(" ", Style::new()));
                let line = cell.get(nth).cloned().unwrap_or_default();
                let free = 4 - line.width();
                row.append_cell(line);
                row.push(Run::new(format!("{} │", " ".repeat(free)), Style::new()));
            }
            row
        };
        let mut rows = copied_together((0..height).map(row).collect(), source);
        rows.iter_mut().for_each(|row| row.indent(" ", Style::new()));
        rows
    }

    fn table() -> Vec<Row> {
        let mut rows = table_row(&["a", "b"], "| a | b |");
        rows.push(Row::styled(" ├──────┼──────┤", Style::new()).copied_as("| --- | --- |").as_table_rule());
        rows.extend(table_row(&["one two six", "ten"], "| one two six | ten |"));
        rows.extend(table_row(&["", "end"], "|  | end |"));
        rows
    }

    #[track_caller]
    fn check(from: (usize, u16), to: (usize, u16), expected: &str) {
        let rows = table();
        let columns = |nth: usize| {
            let start = if nth == from.0 { from.1 } else { 0 };
            start..if nth == to.0 { to.1 } else { u16::MAX }
        };
        let selected = (from.0..=to.0).map(|nth| (&rows[nth], columns(nth)));
        assert_eq!(copied_text(selected), expected, "{from:?} {to:?}");
    }

    #[test]
    fn part_of_a_table_is_copied_as_the_text_of_its_cells() {
        let shown: Vec<String> = table().iter().map(Row::text).collect();
        assert_eq!(
            shown,
            [
                " │ a    │ b    │",
                " ├──────┼──────┤",
                " │ one  │ ten  │",
                " │ two  │      │",
                " │ six  │      │",
                " │      │ end  │"
            ]
        );
        // Whole rows are Markdown.
        check((0, 0), (5, u16::MAX), "| a | b |\n| --- | --- |\n| one two six | ten |\n|  | end |");
        check((2, 0), (4, u16::MAX), "| one two six | ten |");
        // A part of one row.
        check((2, 3), (2, 6), "one");
        check((2, 4), (3, 5), "ne tw | ten");
        check((3, 0), (4, u16::MAX), "two six");
        check((2, 0), (3, 4), "one t | ten");
        check((2, 11), (4, 6), "two six | en");
        // From one row to another, over the rule and over whole rows.
        check((0, 10), (2, 5), "b\non");
        check((0, 3), (5, 12), "a | b\none two six | ten\nen");
        // Nothing but lines.
        check((0, 6), (0, 10), "");
        check((1, 3), (1, 9), "");
        check((0, 8), (2, 3), "b");
    }

    #[test]
    fn empty_cells_between_others_keep_their_place() {
        let rows = table_row(&["a", "", "c", "d"], "| a |  | c | d |");
        assert_eq!(copied_text([(&rows[0], 2..19)]), "a |  | c");
        assert_eq!(copied_text([(&rows[0], 2..u16::MAX)]), "| a |  | c | d |", "all of its cells");
        assert_eq!(copied_text([(&rows[0], 9..19)]), "c");
    }
}
