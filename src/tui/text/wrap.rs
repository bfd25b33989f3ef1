//! Wraps styled text into rows.
//!
//! Unicode line breaking (UAX #14, through `textwrap`) finds possible breaks in the flat
//! text; our own width decides how much fits, and
//! byte ranges map the pieces back to runs. Web addresses and paths stay whole
//! if they fit on a row, so that a terminal copies them in one piece.

use std::ops::Range;

use ratatui::style::Style;
use ratatui::text::Line;
use textwrap::{WordSeparator, WordSplitter};
use unicode_segmentation::GraphemeCursor;

use crate::util::visible::Replaced;

use super::copy::keep_replaced;
use super::row::{LinkTarget, Row, Run, cells};
use super::truncate::{Ellipsis, truncate};
use super::width::{graphemes, width};

/// In front of a row that continues a line of code.
pub const WRAPPED_MARK: &str = "↪ ";

/// The width, and the indents of the rows.
#[derive(Debug, Clone, Default)]
pub struct Wrap {
    /// Cells per row, including indents; 0 counts as 1.
    pub width: u16,
    /// Prefix of the first row, such as a list bullet.
    pub first: Vec<Run>,
    /// Prefix of every other row.
    pub rest: Vec<Run>,
}

impl Wrap {
    pub fn new(width: u16) -> Self {
        Self { width, ..Self::default() }
    }

    #[must_use]
    pub fn first(mut self, text: impl Into<String>, style: Style) -> Self {
        self.first = vec![Run::new(text, style)];
        self
    }

    #[must_use]
    pub fn rest(mut self, text: impl Into<String>, style: Style) -> Self {
        self.rest = vec![Run::new(text, style)];
        self
    }

    /// Rows of one logical line: at least one, none wider than requested. Spaces at a
    /// break are dropped, all other text is kept. A cluster wider than a whole
    /// row becomes U+FFFD. Indents that would leave no room are left out.
    pub fn runs(&self, runs: &[Run]) -> Vec<Row> {
        let flat: String = runs.iter().map(|run| run.text.as_str()).collect();
        let total = usize::from(self.width.max(1));
        let (first, rest) = (indent(&self.first, total), indent(&self.rest, total));
        let room = |row_idx: usize| total - if row_idx == 0 { first.width } else { rest.width };

        let mut cuts = Vec::new();
        if width(&flat) <= room(0) {
            cuts.push(0..flat.len());
        } else {
            fill(&flat, room, &mut cuts);
        }

        let mut rows = Vec::with_capacity(cuts.len());
        let mut slicer = Slicer { runs, ends: run_ends(runs, &flat), run_idx: 0 };
        for (row_idx, cut) in cuts.iter().enumerate() {
            let mut row = Row::default();
            let indent = if row_idx == 0 { &first } else { &rest };
            for run in indent.runs {
                row.push(run.clone());
            }
            let is_replaced = slicer.copy(&flat, cut.clone(), room(row_idx), &mut row);
            row.keep_exact(&flat[cut.clone()], is_replaced);
            row.copy.lead = cells(indent.width);
            row.copy.goes_on = row_idx + 1 < cuts.len();
            let next = cuts.get(row_idx + 1).map_or(flat.len(), |next| next.start);
            row.copy.dropped = flat[cut.end..next].into();
            if row_idx == 0 && cut.start > 0 {
                row.copy.prefix = flat[..cut.start].into();
            }
            rows.push(row);
        }
        keep_replaced(&mut rows, &replaced_in(runs));
        rows
    }

    /// Rows of one styled line.
    pub fn line(&self, line: &Line<'_>) -> Vec<Row> {
        let runs: Vec<Run> = line
            .spans
            .iter()
            .map(|span| Run::new(span.content.as_ref(), line.style.patch(span.style)))
            .collect();
        self.runs(&runs)
    }

    /// Rows of text with one style; every `\n` starts a new row.
    pub fn text(&self, text: &str, style: Style) -> Vec<Row> {
        let mut rows = Vec::new();
        for (line_idx, line) in text.split('\n').enumerate() {
            let runs = [Run::new(line, style)];
            if line_idx == 0 {
                rows.extend(self.runs(&runs));
            } else {
                let follow = Self { width: self.width, first: self.rest.clone(), rest: self.rest.clone() };
                rows.extend(follow.runs(&runs));
            }
        }
        rows
    }
}

/// Wraps text of one style without indents.
pub fn wrap_plain(text: &str, width: u16, style: Style) -> Vec<Row> {
    Wrap::new(width).text(text, style)
}

/// `text` in at most `most` rows; the last one ends with an ellipsis if there is more.
pub fn wrap_plain_at_most(text: &str, width: u16, most: usize, style: Style) -> Vec<Row> {
    let mut rows = wrap_plain(text, width, style);
    if rows.len() > most {
        let rest: Vec<String> = rows.drain(most.saturating_sub(1)..).map(|row| row.text()).collect();
        let rest = rest.iter().map(|row| row.trim()).collect::<Vec<_>>().join(" ");
        rows.push(Row::styled(truncate(&rest, usize::from(width), Ellipsis::One).into_owned(), style));
    }
    rows
}

struct Indent<'a> {
    runs: &'a [Run],
    width: usize,
}

/// The indent, or nothing if it would fill the whole row.
fn indent(runs: &[Run], total: usize) -> Indent<'_> {
    let width = runs.iter().map(|run| width(&run.text)).sum();
    if width < total { Indent { runs, width } } else { Indent { runs: &[], width: 0 } }
}

/// Greedy filling: appends the byte range of each row.
fn fill(flat: &str, room: impl Fn(usize) -> usize, cuts: &mut Vec<Range<usize>>) {
    let mut row = Range { start: 0, end: 0 };
    let mut used = 0;
    // Spaces after the last word count only if another word follows on the row.
    let mut blanks = 0;
    let mut row_has_word = false;
    let mut whole = url_ranges(flat);
    let paths = path_ranges(flat, &whole);
    // The rows of a longer one begin where its names do.
    whole.extend(paths.into_iter().filter(|range| with_marks(flat, range) <= room(1)));
    whole.sort_unstable_by_key(|range| range.start);
    for chunk in chunks(flat, &whole) {
        let text = &flat[chunk.start..chunk.word_end];
        let word_width = width(text);
        if row_has_word && used + blanks + word_width > room(cuts.len()) {
            cuts.push(row.clone());
            row = chunk.start..chunk.start;
            (used, blanks, row_has_word) = (0, 0, false);
        }
        if !row_has_word && blanks + word_width > room(cuts.len()) {
            // Leading spaces that leave no room for the word.
            row = chunk.start..chunk.start;
            blanks = 0;
        }
        if used + blanks + word_width <= room(cuts.len()) {
            used += blanks + word_width;
            row.end = chunk.word_end;
        } else {
            used = break_word(flat, chunk.start..chunk.word_end, &room, cuts, &mut row);
        }
        // A word may have no width, such as a lone joiner, but it is text and is kept.
        row_has_word |= !text.is_empty();
        blanks = if text.is_empty() { blanks } else { 0 } + width(&flat[chunk.word_end..chunk.end]);
    }
    if row_has_word || cuts.is_empty() {
        cuts.push(row);
    }
}

/// Distributes a word wider than a row over as many rows as needed.
/// Returns the cells used on the last one, which stays open in `row`.
fn break_word(
    flat: &str,
    word: Range<usize>,
    room: &impl Fn(usize) -> usize,
    cuts: &mut Vec<Range<usize>>,
    row: &mut Range<usize>,
) -> usize {
    *row = word.start..word.start;
    let mut used = 0;
    for (grapheme, cells) in graphemes(&flat[word]) {
        // A cluster wider than any row is drawn as a replacement of one cell.
        let cells = if cells > room(cuts.len()) { 1 } else { cells };
        if used + cells > room(cuts.len()) {
            cuts.push(row.clone());
            *row = row.end..row.end;
            used = 0;
        }
        row.end += grapheme.len();
        used += cells;
    }
    used
}

/// A piece of text that stays on one row if possible, with the spaces after it.
pub(in crate::tui) struct Chunk {
    pub(in crate::tui) start: usize,
    pub(in crate::tui) word_end: usize,
    pub(in crate::tui) end: usize,
}

/// Splits one line at possible breaks, but not within the ranges of `whole`, which
/// are ascending and do not overlap.
pub(in crate::tui) fn chunks(flat: &str, whole: &[Range<usize>]) -> Vec<Chunk> {
    let mut whole = whole.iter().peekable();
    let mut chunks: Vec<Chunk> = Vec::new();
    let mut start = 0;
    for word in WordSeparator::UnicodeBreakProperties.find_words(flat) {
        let word_end = start + word.word.len();
        let end = word_end + word.whitespace.len();
        while whole.next_if(|range| range.end <= start).is_some() {}
        let inside = whole.peek().is_some_and(|range| range.start < start && start < range.end);
        // The slash of a command or path belongs to its name, and not to the word before it.
        if !inside
            && let Some(before) = chunks.last_mut().filter(|chunk| chunk.end == start)
            && let Some(text) = flat.get(before.start..start).and_then(|text| text.strip_suffix(" /"))
        {
            let slash = start - 1;
            (before.word_end, before.end) = (before.start + text.trim_end_matches(' ').len(), slash);
            chunks.push(Chunk { start: slash, word_end, end });
            start = end;
            continue;
        }
        match chunks.last_mut() {
            Some(chunk)
                if inside
                    || chunk.end == chunk.word_end && is_path_start(&flat[chunk.start..chunk.word_end]) =>
            {
                chunk.word_end = word_end;
                chunk.end = end;
            }
            _ => {
                let hyphenates = whole.peek().is_none_or(|range| range.start >= word_end);
                let mut piece = start;
                if hyphenates {
                    for point in hyphens(word.word) {
                        let at = start + point;
                        chunks.push(Chunk { start: piece, word_end: at, end: at });
                        piece = at;
                    }
                }
                if let Some((before, rest)) = break_at_space(&flat[piece..word_end]) {
                    let rest_start = word_end - rest;
                    chunks.push(Chunk { start: piece, word_end: piece + before, end: rest_start });
                    piece = rest_start;
                }
                chunks.push(Chunk { start: piece, word_end, end });
            }
        }
        start = end;
    }
    chunks
}

/// Whether a text is the `/`, `./`, `~/` or `(/` that a path or a command of the prompt begins with. Longer rows of
/// signs are none: they have places to break at, and none of them is looked through again and again.
fn is_path_start(text: &str) -> bool {
    const MAX_BYTES: usize = 8;
    text.len() <= MAX_BYTES && text.ends_with('/') && !text.contains(char::is_alphanumeric)
}

/// The lengths of the text before the last space and of what follows it, if a break there is better than
/// none. Unicode has none before a slash or an ellipsis, also after a space.
fn break_at_space(word: &str) -> Option<(usize, usize)> {
    let space = word.rfind(' ')?;
    let rest = &word[space + 1..];
    (is_path_start(rest) || rest.len() > 1 && rest.is_ascii())
        .then(|| (word[..space].trim_end().len(), rest.len()))
}

/// Places after hyphens between letters. Names of files, numbers and options stay whole.
fn hyphens(word: &str) -> impl Iterator<Item = usize> {
    let is_name =
        word.starts_with('-') || word.contains(['_', '/']) || word.trim_end_matches('.').contains('.');
    let points = if is_name { Vec::new() } else { WordSplitter::HyphenSplitter.split_points(word) };
    points.into_iter().filter(|&point| {
        let is_digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
        let before = word[..point].trim_end_matches('-').chars().next_back();
        !is_digit(before) && !is_digit(word[point..].chars().next())
    })
}

/// The ranges of web addresses in the text. They end at a space, a quote, a bracket with angles, or a letter of a
/// script without spaces between words, because text in these continues directly after an address. Only a
/// segment of a path that begins with such a letter may contain more of them.
pub(in crate::tui) fn url_ranges(flat: &str) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let mut from = 0;
    while let Some(found) = flat.get(from..).and_then(|rest| rest.find("://")) {
        let colon = from + found;
        let scheme_len = flat[..colon].bytes().rev().take(12).take_while(u8::is_ascii_alphanumeric).count();
        let len = address_len(&flat[colon..]);
        if scheme_len > 0 {
            ranges.push(colon - scheme_len..colon + len);
        }
        from = colon + len.max(3);
    }
    ranges
}

/// The ranges of the paths between `urls`: ASCII characters with a slash, without quotes and brackets.
fn path_ranges(flat: &str, urls: &[Range<usize>]) -> Vec<Range<usize>> {
    let is_of_path = |c: char| c.is_ascii_graphic() && !"\"'`<>|(){}[],;".contains(c);
    let mut ranges = Vec::new();
    let mut urls = urls.iter().peekable();
    let mut from = 0;
    while let Some(found) = flat.get(from..).and_then(|rest| rest.find('/')) {
        let slash = from + found;
        let before = &flat[from..slash];
        let start = slash - (before.len() - before.trim_end_matches(is_of_path).len());
        let after = &flat[slash..];
        let end = slash + after.find(|c| !is_of_path(c)).unwrap_or(after.len());
        while urls.next_if(|url| url.end <= start).is_some() {}
        if urls.peek().is_none_or(|url| end <= url.start) {
            ranges.push(start..end);
        }
        from = end;
    }
    ranges
}

/// The length of a path with the marks around it, which are never on another row.
fn with_marks(flat: &str, path: &Range<usize>) -> usize {
    let is_mark = |c: &char| c.is_ascii_punctuation();
    let (before, after) = (&flat[..path.start], &flat[path.end..]);
    path.len() + before.chars().rev().take_while(is_mark).count() + after.chars().take_while(is_mark).count()
}

/// The length of an address from the `://` on that `rest` begins with.
fn address_len(rest: &str) -> usize {
    // Letters with marks, Greek and Cyrillic ones are of words between spaces.
    let is_spaced =
        |c: char| matches!(c, '\u{c0}'..='\u{52f}' | '\u{1e00}'..='\u{1fff}') && c.is_alphabetic();
    let mut has_host = false;
    let mut before = '/';
    // Whether the segment of the path may contain any letters.
    let mut is_open = false;
    for (at, c) in rest.char_indices().skip("://".len()) {
        if c == '/' {
            (has_host, is_open) = (true, false);
        } else if !c.is_ascii() {
            is_open |= has_host && before == '/';
            if !(is_spaced(c) || is_open && c.is_alphanumeric()) {
                return at;
            }
        } else if !c.is_ascii_graphic() || matches!(c, '"' | '<' | '>' | '`' | '|') {
            return at;
        }
        before = c;
    }
    rest.len()
}

/// `text` as runs, with its web addresses as links in `link_style`. The punctuation after an address
/// is not part of it.
pub fn linked_runs(text: &str, style: Style, link_style: Style) -> Vec<Run> {
    let mut runs = Vec::new();
    let mut done = 0;
    for range in url_ranges(text) {
        let url = without_punctuation(&text[range.clone()]);
        if let Some(target) = LinkTarget::new(url) {
            runs.push(Run::new(&text[done..range.start], style));
            runs.push(Run::linked(url, link_style, target));
            done = range.start + url.len();
        }
    }
    runs.push(Run::new(&text[done..], style));
    runs
}

/// An address without the punctuation at its end. Brackets that it opens itself are part of it, as GFM has it
/// (<https://github.github.com/gfm/#extended-autolink-path-validation>).
fn without_punctuation(url: &str) -> &str {
    let count = |c: char| url.matches(c).count();
    let mut n_extra =
        [(')', count(')').saturating_sub(count('('))), (']', count(']').saturating_sub(count('[')))];
    let mut end = url.len();
    while let Some(last) = url[..end].chars().next_back() {
        match n_extra.iter_mut().find(|(bracket, _)| *bracket == last) {
            Some((_, n_extra)) if *n_extra > 0 => *n_extra -= 1,
            None if matches!(last, '.' | ',' | ';' | ':' | '!' | '?' | '*' | '\'' | '_') => {}
            _ => break,
        }
        end -= last.len_utf8();
    }
    &url[..end]
}

/// The characters that runs are shown in place of.
fn replaced_in(runs: &[Run]) -> Vec<Replaced> {
    let mut end = 0;
    let places = runs.iter().filter_map(|run| {
        let start = end;
        end += run.text.len();
        run.source.map(|source| Replaced { range: start..end, source })
    });
    places.collect()
}

/// The end of each run in the flat text. A cluster that two runs share belongs to
/// the first, because half a cluster has another width.
fn run_ends(runs: &[Run], flat: &str) -> Vec<usize> {
    let mut end = 0;
    runs.iter()
        .map(|run| {
            end += run.text.len();
            let mut cursor = GraphemeCursor::new(end, flat.len(), true);
            match cursor.is_boundary(flat, 0) {
                Ok(false) => cursor.next_boundary(flat, 0).ok().flatten().unwrap_or(flat.len()),
                _ => end,
            }
        })
        .collect()
}

/// Copies ascending byte ranges of the flat text out of the runs, in one pass.
struct Slicer<'a> {
    runs: &'a [Run],
    ends: Vec<usize>,
    run_idx: usize,
}

impl Slicer<'_> {
    /// Returns whether something was replaced because it is wider than `room`.
    fn copy(&mut self, flat: &str, cut: Range<usize>, room: usize, row: &mut Row) -> bool {
        let mut is_replaced = false;
        let mut at = cut.start;
        while at < cut.end {
            let Some((run, &run_end)) = self.runs.get(self.run_idx).zip(self.ends.get(self.run_idx)) else {
                break;
            };
            if at >= run_end {
                self.run_idx += 1;
                continue;
            }
            let end = cut.end.min(run_end);
            let text = &flat[at..end];
            let replaced = replace_oversized(text, room);
            is_replaced |= replaced.is_some();
            let text = replaced.unwrap_or_else(|| text.to_owned());
            row.push(Run { text, style: run.style, link: run.link.clone(), source: None });
            at = end;
        }
        is_replaced
    }
}

/// The text without clusters wider than `room`; `None` if it has none.
fn replace_oversized(text: &str, room: usize) -> Option<String> {
    if text.is_ascii() || width(text) <= room {
        return None;
    }
    Some(graphemes(text).map(|(grapheme, cells)| if cells > room { "\u{fffd}" } else { grapheme }).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, width: u16, expected: &[&str]) {
        let rows = wrap_plain(text, width, Style::new());
        let rows: Vec<String> = rows.iter().map(Row::text).collect();
        assert_eq!(rows, expected, "{text:?} at {width}");
    }

    #[test]
    fn breaks_between_words() {
        check("", 10, &[""]);
        check("hello big world", 9, &["hello big", "world"]);
        check("hello big world", 10, &["hello big", "world"]);
        check("exactly ten", 7, &["exactly", "ten"]);
        check("  indented words", 10, &["  indented", "words"]);
        check("two\n\nparts", 10, &["two", "", "parts"]);
        check("trailing blanks    ", 8, &["trailing", "blanks"]);
        check("half-open", 6, &["half-", "open"]);
    }

    #[test]
    fn commands_paths_and_names_of_files_stay_whole() {
        check("end it: /unpin", 9, &["end it:", "/unpin"]);
        check("an unknown key; /settings", 17, &["an unknown key;", "/settings"]);
        check("either / or", 7, &["either", "/ or"]);
        check("parser::numbers ... ok", 18, &["parser::numbers", "... ok"]);
        check("in ~/a and (/etc/b", 12, &["in ~/a and", "(/etc/b"]);
        check(
            "compacted. /unpin ends that, /usr/lib too",
            12,
            &["compacted.", "/unpin ends", "that,", "/usr/lib too"],
        );
        check("/home/me/file", 9, &["/home/me/", "file"]);
        check("see 2026-11-23T14-20_a-b.jsonl", 26, &["see", "2026-11-23T14-20_a-b.jsonl"]);
        check("use --no-color-at-all", 18, &["use", "--no-color-at-all"]);
    }

    #[test]
    fn breaks_long_words_and_wide_glyphs_between_clusters() {
        check("abcdefgh", 3, &["abc", "def", "gh"]);
        check("世界世界", 5, &["世界", "世界"]);
        check("世界", 1, &["\u{fffd}", "\u{fffd}"]);
        check("a🌞b", 2, &["a", "🌞", "b"]);
        check("x 👨‍👩‍👧‍👦👨‍👩‍👧‍👦", 4, &["x 👨‍👩‍👧‍👦", "👨‍👩‍👧‍👦"]);
    }

    #[test]
    fn words_without_width_are_kept() {
        check("\u{1e008} abcdefgh ij", 8, &["\u{1e008}", "abcdefgh", "ij"]);
        check("abcdefgh      \u{1e008} ij", 8, &["abcdefgh", "\u{1e008} ij"]);
    }

    #[test]
    fn signs_with_slashes_are_no_start_of_a_path_that_grows() {
        for sign in ["→/", "★/", "*/", "👍/"] {
            let text = sign.repeat(1_000);
            let longest = chunks(&text, &[]).iter().map(|chunk| chunk.end - chunk.start).max();
            assert!(longest.unwrap() <= 16, "{sign}: {longest:?}");
        }
    }

    #[test]
    fn closing_marks_never_start_a_row() {
        check("これは。", 6, &["これ", "は。"]);
    }

    #[test]
    fn addresses_stay_whole_when_they_fit() {
        check("see https://a.example/b-c/d?e=f ok", 28, &["see", "https://a.example/b-c/d?e=f", "ok"]);
        check("https://a.example/b/c", 9, &["https://a", ".example/", "b/c"]);
        check("见https://a.example。后", 18, &["见", "https://a.example", "。后"]);
    }

    #[test]
    fn paths_stay_whole_when_they_fit() {
        check("saved in /home/ada/notes/plan.md.", 24, &["saved in", "/home/ada/notes/plan.md."]);
        check("see (src/tui/text/wrap.rs:12), then", 24, &["see (src/tui/text/", "wrap.rs:12), then"]);
        check("see (src/tui/text/wrap.rs:12), then", 26, &["see", "(src/tui/text/wrap.rs:12),", "then"]);
        check("/a/long/path/to/a/file", 12, &["/a/long/", "path/to/a/", "file"]);
        check("见src/main.rs和src/lib.rs", 11, &["见", "src/main.rs", "和", "src/lib.rs"]);
        check("https://a.b/c/d and src/e", 15, &["https://a.b/c/d", "and src/e"]);
    }

    #[test]
    fn addresses_end_where_other_text_begins() {
        let check = |text: &str, expected: &[&str]| {
            let runs = linked_runs(text, Style::new(), Style::new());
            let links: Vec<&str> =
                runs.iter().filter(|run| run.link.is_some()).map(|run| run.text.as_str()).collect();
            assert_eq!(links, expected, "{text}");
            assert_eq!(runs.iter().map(|run| run.text.as_str()).collect::<String>(), text);
        };
        let wiki = "https://en.wikipedia.org/wiki/Foo_(bar)";
        check(&format!("plain {wiki} end."), &[wiki]);
        check(&format!("({wiki}), [{wiki}]. {wiki})."), &[wiki, wiki, wiki]);
        check(
            "(see https://a.b/c). https://a.b/d[0], https://a.b/(e!",
            &["https://a.b/c", "https://a.b/d[0]", "https://a.b/(e"],
        );
        check(
            "见https://zh.wikipedia.org/wiki/终端_(软件)，然后",
            &["https://zh.wikipedia.org/wiki/终端_(软件)"],
        );
        check(
            "https://ja.wikipedia.org/wiki/メインページ/一覧。",
            &["https://ja.wikipedia.org/wiki/メインページ/一覧"],
        );
        check(
            "见https://a.b/c。然后https://a.b然后 https://a.b/c然后",
            &["https://a.b/c", "https://a.b", "https://a.b/c"],
        );
        check(
            "https://de.wikipedia.org/wiki/Käse, https://münchen.de/Плов…",
            &["https://de.wikipedia.org/wiki/Käse", "https://münchen.de/Плов"],
        );
    }

    #[test]
    fn indents_and_styles_follow() {
        let wrap = Wrap::new(8).first("- ", Style::new()).rest("  ", Style::new());
        let link = LinkTarget::new("https://x.y").unwrap();
        let runs =
            [Run::new("bold ", Style::new().bold()), Run::linked("and linked", Style::new(), link.clone())];
        let rows = wrap.runs(&runs);
        let texts: Vec<String> = rows.iter().map(Row::text).collect();
        assert_eq!(texts, ["- bold", "  and", "  linked"]);
        assert_eq!(rows[0].line.spans[1].style, Style::new().bold());
        assert_eq!(rows[1].links, [(2..5, link.clone())]);
        assert_eq!(rows[2].links, [(2..8, link)]);
    }

    fn without_blanks(text: &str) -> String {
        text.chars().filter(|c| !c.is_whitespace()).collect()
    }

    proptest! {
        #[test]
        fn rows_fit_and_keep_the_text(text in "(\\PC|[ a-z世🌞-]){0,60}", width in 1_u16..30, cut in 0_usize..60) {
            let at = text.char_indices().map(|(at, _)| at).nth(cut).unwrap_or(text.len());
            let runs = [Run::new(&text[..at], Style::new().bold()), Run::new(&text[at..], Style::new())];
            let rows = Wrap::new(width).first("> ", Style::new()).rest("  ", Style::new()).runs(&runs);
            for row in &rows {
                prop_assert!(row.width() <= usize::from(width), "{row:?}");
            }
            if width >= 12 {
                let joined: String = rows.iter().map(|row| row.text().chars().skip(2).collect::<String>()).collect();
                prop_assert_eq!(without_blanks(&joined), without_blanks(&text));
            }
        }

        #[test]
        fn any_string_is_survived(text in any::<String>(), width in 0_u16..20) {
            for row in wrap_plain(&text, width, Style::new()) {
                prop_assert!(row.width() <= usize::from(width.max(1)));
            }
        }
    }
}
