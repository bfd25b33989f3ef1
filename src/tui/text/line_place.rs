//! Places in the text of rows, and lines that are broken there.
//!
//! Rows that a terminal owns keep their width. What follows them begins a row of its own, whatever the width
//! is by then: its place is found again in rows that were wrapped differently.

use std::collections::HashMap;
use std::ops::Range;

use ratatui::style::Style;

use crate::util::visible::Replaced;

use super::copy::{ReplacedCells, keep_replaced, keep_replaced_after};
use super::row::{Row, Run, cells};
use super::sanitize::{TAB_WIDTH, visible_replaced};
use super::width::{graphemes, width};
use super::wrap::Wrap;

/// The beginning of a row within the rows of a text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LinePlace {
    /// Number of lines before it, without those of tables and drawings, whose number depends on the width.
    line: usize,
    /// The text of its line before it, with a line break where rows that were final before end.
    before: String,
}

impl LinePlace {
    /// The place after these rows, which begin here. With `is_open`, the line of the last row may go on.
    #[must_use]
    pub fn after(mut self, rows: &[Row], is_open: bool) -> Self {
        if !self.before.is_empty() && !rows.is_empty() {
            self.before.push('\n');
        }
        for (row_idx, row) in rows.iter().enumerate() {
            if !row.is_line() {
                continue;
            }
            if row.goes_on() || is_open && row_idx + 1 == rows.len() {
                text_of(row).iter().for_each(|run| self.before.push_str(&run.text));
                self.before.push_str(row.dropped());
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
        if !self.before.contains(is_text) {
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
    let FlatLine { runs, text, replaced } = FlatLine::of(rows);
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
    let n_before = replaced.partition_point(|one| one.range.start < at);
    let (replaced, after) = replaced.split_at(n_before);
    keep_replaced(&mut head, replaced);
    let cut_off = replaced.last().map_or(0, |last| last.range.end.saturating_sub(at));
    if let (Some(new), Some(old)) = (head.first_mut(), rows.first()) {
        new.copy.prefix = [&*old.copy.prefix, &new.copy.prefix].concat().into();
    }
    let mut tail = if has_tail { wrap(&rest, &tail) } else { Vec::new() };
    let after: Vec<Replaced> = after
        .iter()
        .map(|Replaced { range, source }| Replaced {
            range: range.start - at..range.end - at,
            source: *source,
        })
        .collect();
    keep_replaced_after(&mut tail, cut_off, &after);
    let part = rows.first().and_then(|row| row.copy.part);
    head.iter_mut().chain(&mut tail).for_each(|row| row.copy.part = part);
    (head, tail)
}

/// The text of the rows of one line.
#[derive(Debug, Default)]
struct FlatLine {
    runs: Vec<Run>,
    text: String,
    /// What is shown in place of a character.
    replaced: Vec<Replaced>,
}

impl FlatLine {
    fn of(rows: &[Row]) -> Self {
        let mut line = Self::default();
        for row in rows {
            let (start, inside) = (line.text.len(), own_columns(row));
            let before = |column: u16| columns_of(row, inside.start..column);
            let place = |ReplacedCells { columns, source }: &ReplacedCells| {
                let source = source.filter(|_| inside.contains(&columns.start))?;
                let start = start + before(columns.start).iter().map(|run| run.text.len()).sum::<usize>();
                Some(Replaced { range: start..start + columns.len(), source })
            };
            line.replaced.extend(row.copy.replaced.iter().filter_map(place));
            text_of(row).into_iter().for_each(|run| line.push(run));
            let style = line.runs.last().map_or(Style::new(), |run| run.style);
            if let Some(Replaced { range, source }) = line.replaced.last().cloned() {
                // The rest is on the next row, in front of its text.
                let on_row = line.text.len().saturating_sub(range.start);
                let shown = visible_replaced(source.encode_utf8(&mut [0; 4])).0;
                line.push(Run::new(shown.get(on_row..).unwrap_or_default(), style));
            }
            let mut dropped = String::new();
            for c in row.dropped().chars() {
                if c == '\t' {
                    let start = line.text.len() + dropped.len();
                    line.replaced.push(Replaced { range: start..start + TAB_WIDTH, source: '\t' });
                    dropped.extend([' '; TAB_WIDTH]);
                } else {
                    dropped.push(c);
                }
            }
            line.push(Run::new(dropped, style));
        }
        line
    }

    fn push(&mut self, run: Run) {
        self.text.push_str(&run.text);
        self.runs.push(run);
    }
}

/// The byte of `text` at which the text after `before` begins. Markup that was not complete before may be missing
/// in `text`, or be something else there. Where what follows it is not found again, that is shown twice: text
/// that is passed over would never be shown.
fn end_of(before: &str, text: &str) -> usize {
    let before = Letters::of(before);
    let after = Letters::of(text);
    let (mut old, mut new) = (0, 0);
    while old < before.all.len() {
        if before.all.get(old) == after.all.get(new) {
            (old, new) = (old + 1, new + 1);
        } else if let Some((n_old, n_new)) = skipped(&before, old, &after.all[new..]) {
            (old, new) = (old + n_old, new + n_new);
        } else {
            break;
        }
    }
    after.places.get(new).copied().unwrap_or(text.len())
}

/// A text without its blanks.
struct Letters {
    all: Vec<char>,
    /// Where each of them is in the text, in bytes.
    places: Vec<usize>,
    /// Which of them begin a line.
    starts: Vec<bool>,
}

impl Letters {
    fn of(text: &str) -> Self {
        let mut letters = Self { all: Vec::new(), places: Vec::new(), starts: Vec::new() };
        let mut is_start = false;
        for (at, c) in text.char_indices() {
            if is_text(c) {
                letters.all.push(c);
                letters.places.push(at);
                letters.starts.push(is_start);
            }
            is_start = c == '\n' || is_start && !is_text(c);
        }
        letters
    }
}

/// How many letters from `at` on, and how many of `new`, are followed by the same text again. The first ones differ.
fn skipped(before: &Letters, at: usize, new: &[char]) -> Option<(usize, usize)> {
    let old = &before.all[at..];
    match old {
        // Their text stays.
        ['*' | '_' | '`' | '~' | '[', ..] | ['!', '[', ..] => Some((1, 0)),
        ['^', ..] if at > 0 && before.all[at - 1] == '[' => Some((1, 0)),
        ['\\', mark, ..] if mark.is_ascii_punctuation() => Some((1, 0)),
        // An address may be shown in brackets, and may be gone.
        [']', '(', address @ ..] if is_shown(address, new) => Some((1, 0)),
        [']', '(' | '[', ..] => same_again(before, at, new),
        [']', ..] => Some((1, 0)),
        // Comments, addresses, entities, formulas.
        _ => same_again(before, at, new),
    }
}

/// Whether `new` begins with an address in brackets.
fn is_shown(address: &[char], new: &[char]) -> bool {
    const LEAST: usize = 4;
    new.first() == Some(&'(') && address.iter().zip(&new[1..]).take_while(|(a, b)| a == b).count() >= LEAST
}

/// Finds text from `at` on again in `new`. Markup that was not complete went on to the end of the rows that were
/// final then, so what is found begins the next ones. It is later by no more than what is left out, or after brackets.
fn same_again(before: &Letters, at: usize, new: &[char]) -> Option<(usize, usize)> {
    /// Shorter texts are the same by chance.
    const LEAST: usize = 12;
    /// As long as addresses are.
    const REACH: usize = 2_000;
    let mut places: HashMap<&[char], usize> = HashMap::new();
    for (place, letters) in new[..new.len().min(REACH)].windows(LEAST).enumerate() {
        places.entry(letters).or_insert(place);
    }
    let end = before.all.len().min(at + REACH);
    let follows_brackets = new.first() == Some(&'(');
    before.all[at..end].windows(LEAST).enumerate().find_map(|(n_old, letters)| {
        let n_new = *places.get(letters)?;
        let is_start = before.starts[at + n_old] && n_new <= n_old;
        (is_start || n_old == 0 && follows_brackets).then_some((n_old, n_new))
    })
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

/// The columns of a row's text, without the rest of a replaced character that begins on the row before.
fn own_columns(row: &Row) -> Range<u16> {
    let Range { start, end } = row.text_columns();
    let rest = row.copy.replaced.iter().find(|cells| cells.source.is_none());
    rest.map_or(start, |cells| cells.columns.end).min(end)..end
}

/// The text of a row, also of clusters for which the row is too narrow.
fn text_of(row: &Row) -> Vec<Run> {
    let mut runs = columns_of(row, own_columns(row));
    let exact = row.copy.exact.as_deref().filter(|_| row.copy.replaced.is_empty());
    let is_replaced = |run: &Run| run.text.contains(char::REPLACEMENT_CHARACTER);
    let n_clusters = || runs.iter().map(|run| graphemes(&run.text).count()).sum::<usize>();
    if let Some(exact) =
        exact.filter(|exact| runs.iter().any(is_replaced) && graphemes(exact).count() == n_clusters())
    {
        let mut exact = graphemes(exact).map(|(cluster, _)| cluster);
        for run in &mut runs {
            let n_clusters = graphemes(&run.text).count();
            run.text = exact.by_ref().take(n_clusters).collect();
        }
    }
    runs
}

/// The clusters of a row that begin in these columns.
fn columns_of(row: &Row, columns: Range<u16>) -> Vec<Run> {
    let (mut runs, mut column): (Vec<Run>, u16) = (Vec::new(), 0);
    for span in &row.line.spans {
        for (grapheme, n_cells) in graphemes(&span.content) {
            if columns.contains(&column) || n_cells == 0 && column == columns.end && column > columns.start {
                let link = row.links.iter().find(|(range, _)| range.contains(&column)).map(|(_, link)| link);
                match runs.last_mut() {
                    Some(last) if last.style == span.style && last.link.as_ref() == link => {
                        last.text.push_str(grapheme);
                    }
                    _ => {
                        runs.push(Run { link: link.cloned(), ..Run::new(grapheme, span.style) });
                    }
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

    #[track_caller]
    fn check_end(before: &str, text: &str, rest: &str) {
        assert_eq!(&text[end_of(before, text)..], rest, "{before:?} in {text:?}");
    }

    #[test]
    fn markup_that_is_complete_later_moves_no_text() {
        for (before, text, rest) in [
            ("a **bold", "a bold and more", "and more"),
            ("see [the link](https://x.y/a", "see the link (https://x.y/abc) end", "bc) end"),
            ("`code", "code is done", "is done"),
            ("a \\*star", "a *star shines", "shines"),
            ("note[^1", "note[1] and", "] and"),
            ("![alt", "alt and", "and"),
            ("日本", "日本語", "語"),
            ("all", "all", ""),
            ("all**", "all", ""),
        ] {
            check_end(before, text, rest);
        }
    }

    #[test]
    fn text_after_markup_that_is_gone_is_shown() {
        for (before, text, rest) in [
            ("see [the link](https://x.y/a", "see the link and much more", "and much more"),
            ("see [the link](https://x.y/more", "see the link more prose", "more prose"),
            ("see [x](ht", "see x (htop is fine)", "(htop is fine)"),
            ("Note<!-- todo: check", "Note and the rest", "and the rest"),
            ("so $\\frac{1}{2}+\\alph", "so 1/2 + α and", "1/2 + α and"),
            ("Hello&nb", "Hello world", "world"),
            ("\u{fffd}", "世界", "世界"),
        ] {
            check_end(before, text, rest);
        }
    }

    #[test]
    fn text_is_found_again_behind_markup_that_is_gone() {
        let rest = "and much more prose follows";
        for (before, text) in [
            ("see [the link](https://x.y/a/b\nand much more prose", "see the link"),
            ("see [the link](https://x.y/a/b\nc) and much more prose", "see the link (https://x.y/a/bc)"),
            ("see [the link](https\n://x.y/a/b/c\nand much\nmore prose", "see the link"),
            ("see [the link] and much more prose", "see the link (https://x.y/a/b/c)"),
            ("Note<!-- todo: check\nand much more prose", "Note"),
            ("so $\\frac{1}{2}+\\al\nand much more prose", "so 1/2 + α"),
            ("Hello&nb\nand much more prose", "Hello"),
        ] {
            check_end(before, &format!("{text} {rest}"), "follows");
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
    fn what_is_spelt_out_in_a_broken_line_is_copied() {
        let source = "echo\tone\u{200b}two \u{202e}three\u{1b}\u{7}four";
        let lay_out = |width| {
            let runs = super::super::visible_runs(source, Style::new(), Style::new());
            Wrap::new(width).first("$ ", Style::new()).rest("  ", Style::new()).runs(&runs)
        };
        for (old, new) in [(12, 30), (30, 12), (12, 80), (9, 10), (7, 20), (20, 5)] {
            let rows = lay_out(old);
            for n_rows in 1..rows.len() {
                let split = LinePlace::default().after(&rows[..n_rows], true).split(&lay_out(new), new);
                let all: Vec<Row> = split.before.into_iter().chain(split.after).collect();
                let copied = super::super::copied_text(all.iter().map(|row| (row, 0..u16::MAX)));
                assert_eq!(copied, source, "{n_rows} of {old}, then {new}");
                assert!(texts(&all).iter().skip(1).all(|text| text.starts_with("  ")), "{:?}", texts(&all));
            }
        }
    }

    #[test]
    fn clusters_for_which_a_row_was_too_narrow_are_found_again() {
        let narrow = wrap_plain("世界世界", 1, Style::new());
        let place = LinePlace::default().after(&narrow[..2], true);
        let (before, after) = split(&place, &wrap_plain("世界世界", 8, Style::new()), 8);
        assert_eq!((before, after), (vec!["世界".to_owned()], vec!["世界".to_owned()]));
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
