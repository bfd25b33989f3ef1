//! Places in the text of rows, and lines that are broken there.
//!
//! Rows that a terminal owns keep their width. What follows them begins a row of its own, whatever the width
//! is by then: its place is found again in rows that were wrapped differently.

use ratatui::style::Style;

use super::row::{Row, Run, cells};
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
                    .extend(runs_of(row).iter().flat_map(|run| run.text.chars()).filter(|c| is_text(*c)));
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
    let runs: Vec<Run> = rows.iter().flat_map(runs_of).collect();
    let flat: String = runs.iter().map(|run| run.text.as_str()).collect();
    let at = end_of(before, &flat);
    let head_end = flat[..at].trim_end().len();
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
    let has_tail = at < flat.len();
    let wrap = |first: &Vec<Run>, runs: &[Run]| {
        let mut rows = Wrap { width, first: first.clone(), rest: rest.clone() }.runs(runs);
        // A prefix is never copied, except by the first row.
        rows.iter_mut().for_each(|row| row.copy.exact = None);
        rows
    };
    let mut head = wrap(&first, &head);
    if let (Some(new), Some(old)) = (head.first_mut(), rows.first()) {
        new.copy.prefix.clone_from(&old.copy.prefix);
    }
    let tail = if has_tail { wrap(&rest, &tail) } else { Vec::new() };
    if let Some(last) = head.last_mut() {
        last.copy.goes_on = has_tail;
        last.copy.dropped = flat[head_end..at].into();
    }
    (head, tail)
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

/// The text of a row with the blanks after it.
fn runs_of(row: &Row) -> Vec<Run> {
    let mut runs = columns_of(row, row.text_columns());
    let style = runs.last().map_or(Style::new(), |run| run.style);
    if !row.dropped().is_empty() {
        runs.push(Run::new(row.dropped(), style));
    }
    runs
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
