//! Places in the text of rows, and lines that are broken there.
//!
//! Rows that a terminal owns keep their width. What follows them begins a row of its own, whatever the width
//! is by then: its place is found again in rows that were wrapped differently.

use ratatui::style::Style;

use super::copy::keep_tabs_at;
use super::row::{Row, Run, cells};
use super::sanitize::TAB_WIDTH;
use super::width::{graphemes, width};
use super::wrap::Wrap;

/// The beginning of a row within the rows of a text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LinePlace {
    /// Number of lines before it, without those of tables and drawings, whose number depends on the width.
    line: usize,
    /// The text of its line before it, without blanks.
    before: String,
}

impl LinePlace {
    /// The place after these rows, which begin here. With `is_open`, the line of the last row may go on.
    #[must_use]
    pub fn after(mut self, rows: &[Row], is_open: bool) -> Self {
        for (row_idx, row) in rows.iter().enumerate() {
            if !row.is_line() {
                continue;
            }
            if row.goes_on() || is_open && row_idx + 1 == rows.len() {
                self.before
                    .extend(text_of(row).iter().flat_map(|run| run.text.chars()).filter(|c| is_text(*c)));
            } else {
                self.line += 1;
                self.before.clear();
            }
        }
        self
    }

    /// The rows before this place, and those after it, which begin a row of their own, at this width; and the
    /// number of `rows` with which the latter begin or that follow its line.
    pub fn split(&self, rows: &[Row], width: u16) -> SplitRows {
        let ends = rows.iter().enumerate().filter(|(_, row)| row.is_line() && !row.goes_on());
        let mut ends = ends.map(|(row_idx, _)| row_idx + 1);
        let first = match self.line.checked_sub(1) {
            Some(before) => ends.nth(before).unwrap_or(rows.len()),
            None => 0,
        };
        if self.before.is_empty() {
            return SplitRows { first, end: first, ..SplitRows::default() };
        }
        // Tables have no line that goes on.
        let end = ends.next().unwrap_or(rows.len()).max(first);
        let (before, after) = broken(&rows[first..end], &self.before, width);
        SplitRows { first, before, after, end }
    }
}

/// Rows divided at a place: `rows[..first]` and `before`, then `after` and `rows[end..]`.
#[derive(Debug, Default)]
pub struct SplitRows {
    pub first: usize,
    pub before: Vec<Row>,
    pub after: Vec<Row>,
    pub end: usize,
}

impl Row {
    /// Whether it is a line of text, or a part of one.
    pub fn is_line(&self) -> bool {
        let rule = &self.copy;
        rule.instead.is_none() && !rule.is_frame && !rule.is_stand_in && self.picture.is_none()
    }
}

/// The rows of one line, wrapped anew before and after the text `before`.
fn broken(rows: &[Row], before: &str, width: u16) -> (Vec<Row>, Vec<Row>) {
    let FlatLine { runs, text, tabs } = FlatLine::of(rows);
    let at = end_of(before, &text);
    let head_end = text[..at].trim_end().len();
    let lead = |row: &Row| columns_of(row, 0..row.copy.lead);
    let first: Vec<Run> = rows.first().map(lead).unwrap_or_default();
    let rest = match rows.get(1) {
        Some(row) => lead(row),
        None => first.iter().map(|run| Run { text: blanked(&run.text), ..run.clone() }).collect(),
    };
    let (mut head, mut tail, mut start) = (Vec::new(), Vec::new(), 0);
    for run in runs {
        let cut = at.saturating_sub(start).min(run.text.len());
        let shown = head_end.saturating_sub(start).min(cut);
        start += run.text.len();
        let (left, right) = run.text.split_at(cut);
        head.push(Run { text: left[..shown].to_owned(), ..run.clone() });
        tail.push(Run { text: right.to_owned(), ..run.clone() });
    }
    let has_tail = at < text.len();
    let wrap =
        |first: &Vec<Run>, runs: &[Run]| Wrap { width, first: first.clone(), rest: rest.clone() }.runs(runs);
    let mut head = wrap(&first, &head);
    if let Some(last) = head.last_mut() {
        last.copy.goes_on = has_tail;
        last.copy.dropped = text[head_end..at].into();
    }
    let (tabs_before, tabs_after) = tabs.split_at(tabs.partition_point(|tab| *tab < at));
    keep_tabs_at(&mut head, tabs_before);
    if let (Some(new), Some(old)) = (head.first_mut(), rows.first()) {
        new.copy.prefix = [&*old.copy.prefix, &new.copy.prefix].concat().into();
    }
    let mut tail = if has_tail { wrap(&rest, &tail) } else { Vec::new() };
    let tabs_after: Vec<usize> = tabs_after.iter().map(|tab| tab - at).collect();
    keep_tabs_at(&mut tail, &tabs_after);
    (head, tail)
}

/// The text of the rows of one line.
#[derive(Debug, Default)]
struct FlatLine {
    runs: Vec<Run>,
    text: String,
    /// Where [`TAB_WIDTH`] spaces stand for a tab, in bytes of the text.
    tabs: Vec<usize>,
}

impl FlatLine {
    fn of(rows: &[Row]) -> Self {
        let mut line = Self::default();
        for row in rows {
            let (start, inside) = (line.text.len(), row.text_columns());
            let before = |column: u16| columns_of(row, inside.start..column);
            let tab = |column: &u16| start + before(*column).iter().map(|run| run.text.len()).sum::<usize>();
            line.tabs.extend(row.copy.tabs.iter().filter(|column| inside.contains(*column)).map(tab));
            text_of(row).into_iter().for_each(|run| line.push(run));
            let style = line.runs.last().map_or(Style::new(), |run| run.style);
            let mut dropped = String::new();
            for c in row.dropped().chars() {
                if c == '\t' {
                    line.tabs.push(line.text.len() + dropped.len());
                    dropped.extend([' '; TAB_WIDTH]);
                } else {
                    dropped.push(c);
                }
            }
            line.push(Run::new(dropped, style));
        }
        // A row that is narrower than a tab has a part of it.
        let is_whole =
            |tab: &usize| line.text.get(*tab..tab + TAB_WIDTH).is_some_and(|text| text.trim().is_empty());
        line.tabs.retain(is_whole);
        line
    }

    fn push(&mut self, run: Run) {
        self.text.push_str(&run.text);
        self.runs.push(run);
    }
}

/// The byte of `text` at which the text after `before` begins. Marks of a markup that was not complete before may
/// be missing in `text`, and others may be new.
fn end_of(before: &str, text: &str) -> usize {
    let mut before = before.chars().peekable();
    for (at, c) in text.char_indices().filter(|(_, c)| is_text(*c)) {
        while before.next_if(|mark| *mark != c && mark.is_ascii_punctuation()).is_some() {}
        match before.peek() {
            None => return at,
            Some(expected) if *expected == c => drop(before.next()),
            Some(_) => {}
        }
    }
    text.len()
}

fn is_text(c: char) -> bool {
    !c.is_whitespace()
}

/// What is in front of the other rows of a line.
fn blanked(lead: &str) -> String {
    let shown = |grapheme: &str, cells: usize| match grapheme {
        "│" | "┊" => grapheme.to_owned(),
        _ => " ".repeat(cells),
    };
    graphemes(lead).map(|(grapheme, cells)| shown(grapheme, cells)).collect()
}

/// The text of a row.
fn text_of(row: &Row) -> Vec<Run> {
    columns_of(row, row.text_columns())
}

/// The clusters of a row that begin in these columns.
fn columns_of(row: &Row, columns: std::ops::Range<u16>) -> Vec<Run> {
    let (mut runs, mut column): (Vec<Run>, u16) = (Vec::new(), 0);
    for span in &row.line.spans {
        for (grapheme, n_cells) in graphemes(&span.content) {
            if columns.contains(&column) || n_cells == 0 && column == columns.end && column > columns.start {
                let link = row.links.iter().find(|(range, _)| range.contains(&column)).map(|(_, link)| link);
                match runs.last_mut() {
                    Some(last) if last.style == span.style && last.link.as_ref() == link => {
                        last.text.push_str(grapheme);
                    }
                    _ => runs.push(Run { text: grapheme.to_owned(), style: span.style, link: link.cloned() }),
                }
            }
            column = column.saturating_add(cells(n_cells));
        }
    }
    debug_assert!(runs.iter().map(|run| width(&run.text)).sum::<usize>() <= row.width());
    runs
}

#[cfg(test)]
mod tests {
    use super::super::wrap::wrap_plain;
    use super::*;

    fn texts(rows: &[Row]) -> Vec<String> {
        rows.iter().map(Row::text).collect()
    }

    fn split(place: &LinePlace, rows: &[Row], width: u16) -> (Vec<String>, Vec<String>) {
        let split = place.split(rows, width);
        let before = [texts(&rows[..split.first]), texts(&split.before)].concat();
        (before, [texts(&split.after), texts(&rows[split.end..])].concat())
    }

    #[test]
    fn line_is_broken_where_a_row_began_at_another_width() {
        let text = "first\none two three four five six\nlast";
        let wide = wrap_plain(text, 14, Style::new());
        assert_eq!(texts(&wide), ["first", "one two three", "four five six", "last"]);
        let slim = wrap_plain(text, 8, Style::new());
        let at = |n: usize| LinePlace::default().after(&wide[..n], false);
        let (before, after) = split(&at(2), &slim, 8);
        assert_eq!(before, ["first", "one two", "three"]);
        assert_eq!(after, ["four", "five six", "last"]);
        let (before, after) = split(&at(1), &slim, 8);
        assert_eq!((before.len(), after.len()), (1, 5));
        let (before, after) = split(&at(3), &slim, 8);
        assert_eq!((before.len(), after), (5, vec!["last".to_owned()]));
        // The line of the last row goes on.
        let open = LinePlace::default().after(&wide[..3], true);
        let longer = wrap_plain("first\none two three four five six seven\nlast", 40, Style::new());
        let (before, after) = split(&open, &longer, 40);
        assert_eq!(before, ["first", "one two three four five six"]);
        assert_eq!(after, ["seven", "last"]);
    }

    #[test]
    fn markup_that_is_complete_later_moves_no_text() {
        for (before, text, rest) in [
            ("a**bold", "a bold and more", "and more"),
            ("see[thelink](https://x.y/a", "see the link (https://x.y/abc) end", "bc) end"),
            ("`code", "code is done", "is done"),
            ("日本", "日本語", "語"),
            ("all", "all", ""),
        ] {
            assert_eq!(&text[end_of(before, text)..], rest, "{before}");
        }
    }

    #[test]
    fn tabs_of_a_broken_line_are_copied() {
        let source = "let a\t=\tsome_function(one,\ttwo,\tthree)\t+ four";
        let lay_out = |width| {
            let wrap = Wrap::new(width).first("  ", Style::new()).rest("↪ ", Style::new());
            let mut rows = wrap.text(&super::super::sanitize(source), Style::new());
            super::super::keep_tabs(&mut rows, source);
            rows
        };
        for (old, new) in [(12, 30), (30, 12), (12, 80), (9, 10)] {
            let rows = lay_out(old);
            for n_rows in 1..rows.len() {
                let split = LinePlace::default().after(&rows[..n_rows], true).split(&lay_out(new), new);
                let all: Vec<Row> = split.before.into_iter().chain(split.after).collect();
                let copied = super::super::copied_text(all.iter().map(|row| (row, 0..u16::MAX)));
                assert_eq!(copied, source, "{n_rows} of {old}, then {new}");
                assert!(texts(&all).iter().all(|text| !text.contains('\t')));
            }
        }
    }

    #[test]
    fn rows_after_a_break_have_the_margin_of_their_line_and_are_copied_as_before() {
        let mut rows = wrap_plain("one two three four", 8, Style::new());
        for (row_idx, row) in rows.iter_mut().enumerate() {
            row.prefix(
                if row_idx == 0 { "- " } else { "  " },
                Style::new(),
                if row_idx == 0 { "- " } else { "  " },
            );
        }
        let place = LinePlace::default().after(&rows[..1], false);
        for width in [10, 30] {
            let text = wrap_plain("one two three four", width - 2, Style::new());
            let mut laid_out = text;
            for (row_idx, row) in laid_out.iter_mut().enumerate() {
                row.prefix(
                    if row_idx == 0 { "- " } else { "  " },
                    Style::new(),
                    if row_idx == 0 { "- " } else { "  " },
                );
            }
            let split = place.split(&laid_out, width);
            assert_eq!(texts(&split.before), ["- one two"]);
            assert!(split.after.iter().all(|row| row.text().starts_with("  ")), "{:?}", split.after);
            let all: Vec<Row> = split.before.into_iter().chain(split.after).collect();
            let copied = super::super::copied_text(all.iter().map(|row| (row, 0..u16::MAX)));
            assert_eq!(copied, "- one two three four");
        }
    }
}
