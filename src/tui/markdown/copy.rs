//! Copying: blocks that are selected whole are copied as they were written.

use std::ops::Range;

use super::super::text::{CopyPiece, Row, copied_pieces, without_controls};
use super::stream::with_line_feeds;

/// A row from which something may be copied.
#[derive(Debug)]
pub struct CopyRow {
    pub row: Row,
    /// The selected columns, up to `u16::MAX` if it is copied to its end. `None` for a row beside the selection,
    /// which tells whether a block goes on there.
    pub columns: Option<Range<u16>>,
    /// Which of the texts it shows; `None` if it shows no Markdown.
    pub text: Option<usize>,
}

impl CopyRow {
    /// The block that it shows: the text and where the block begins there.
    fn part(&self) -> Option<(usize, usize)> {
        Some((self.text?, self.row.part()?))
    }

    /// Whether what is copied of it is selected.
    fn is_whole(&self) -> bool {
        self.row.is_frame() || self.columns.as_ref().is_some_and(|columns| self.row.is_whole_in(columns))
    }
}

/// The selected text of consecutive rows. Blocks that are selected whole, and what is between them, are the bytes
/// of `texts`; a block that is selected in part is copied as it is shown.
pub fn copied_markdown(rows: &[CopyRow], texts: &[String]) -> String {
    let mut sources: Vec<Option<Source>> = texts.iter().map(|_| None).collect();
    let mut pieces = Vec::new();
    let mut shown = Vec::new();
    let mut rest = rows;
    while let Some(first) = rest.first() {
        let Some((text, places)) = whole_blocks(rest) else {
            // Blank rows between blocks belong to no block.
            let n_rows = rest.iter().take_while(|row| row.part() == first.part()).count();
            let (here, after) = rest.split_at(n_rows);
            shown.extend(here.iter().filter_map(|row| Some((&row.row, row.columns.clone()?))));
            rest = after;
            continue;
        };
        let source = sources[text].get_or_insert_with(|| Source::new(&texts[text]));
        pieces.push(CopyPiece::Rows(std::mem::take(&mut shown)));
        pieces.push(CopyPiece::Text(source.between(places.first, places.last)));
        rest = &rest[places.n_rows..];
    }
    pieces.push(CopyPiece::Rows(shown));
    copied_pieces(pieces)
}

/// Blocks of one text: where the first and the last one begin, and their number of rows.
struct Blocks {
    first: usize,
    last: usize,
    n_rows: usize,
}

/// The blocks of one text with which `rows` begin, if they are selected whole.
fn whole_blocks(rows: &[CopyRow]) -> Option<(usize, Blocks)> {
    let (text, first) = rows.first()?.part()?;
    let mut blocks: Option<Blocks> = None;
    let mut at = 0;
    while let Some((found, start)) = rows.get(at).and_then(CopyRow::part).filter(|(found, _)| *found == text)
    {
        let n_rows = rows[at..].iter().take_while(|row| row.part() == Some((found, start))).count();
        if !rows[at..at + n_rows].iter().all(CopyRow::is_whole) {
            break;
        }
        at += n_rows;
        blocks = Some(Blocks { first, last: start, n_rows: at });
        // What is between two blocks of the text.
        at += rows[at..].iter().take_while(|row| row.part().is_none() && row.is_whole()).count();
    }
    Some((text, blocks?))
}

/// A text and its blocks.
struct Source {
    text: String,
    parts: Vec<Range<usize>>,
}

impl Source {
    fn new(text: &str) -> Self {
        let mut source = String::new();
        with_line_feeds(text, &mut false, &mut source);
        let parts = super::parts::outline(&source, None).parts.into_iter().map(|part| part.range).collect();
        Self { text: source, parts }
    }

    /// The bytes from the beginning of the block at `first` to the end of the one at `last`, without blank lines
    /// below it and without control characters.
    fn between(&self, first: usize, last: usize) -> String {
        let found = self.parts.iter().find(|part| part.start >= last);
        let end = match found {
            Some(part) if part.start == last => part.end,
            Some(next) => next.start,
            None => self.text.len(),
        };
        let text = self.text.get(first..end).unwrap_or_default();
        let text_end = text.trim_end().len();
        let line_end = text[text_end..].find('\n').map_or(text.len(), |at| text_end + at);
        without_controls(&text[..line_end])
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::theme::{Appearance, ColorDepth, Theme};
    use super::super::{Highlighter, MarkdownOptions, MarkdownStream};
    use super::*;

    /// Blocks, with what is between them and the next one.
    const BLOCKS: [(&str, &str); 20] = [
        ("A *first* paragraph with `code`, **marks** and\na second line  \nafter a break.", "\n\n\n"),
        ("# Heading\t*one*", "\n"),
        ("Setext\n======", "\n  \n"),
        ("- one **item**\n  that goes on\n\n  > in a quote\n  >\n  > of two", "\n"),
        ("- another [link](https://example.com \"title\")", "\n"),
        ("* with another bullet\n  1) nested\n  2) list", "\n\n"),
        ("1. number", "\n\n"),
        ("1. the same\n   ```rust\n   fn main() {}\n   ```", "\n\n"),
        ("- [x] | a | b |\n  |---|:-:|\n  | 1 | 2 |", "\n\n"),
        ("> quoted\n>\n> *text*\nlazily", "\n\n"),
        ("````markdown\n```\n\tcode\n```\n````", "\n"),
        ("    indented code\n\n    of two lines", "\n\n"),
        ("|a|`b`|\n|:--|-|\n|1 |**2**|\n| 3|", "\n\n"),
        ("<!-- a comment -->\n\n[label]: https://example.com\n\nSee [it][label].", "\n\n"),
        ("```mermaid\ngraph TD\n  A[one] --> B[two]\n```", "\n\n"),
        ("<b>Html</b>", "\n\n"),
        ("$x_i^2 \\leq \\alpha$ and $$\\frac{1}{2}$$ &amp; \\*stars\\*", "\n\n"),
        ("***", "\n\n"),
        (
            "   Indented\ttext with 世界 and a very long line so that it wraps at most widths of this test",
            "\n\n",
        ),
        ("[^1]: A note", ""),
    ];

    fn theme() -> Theme {
        Theme::builtin("dark", Appearance::Dark, ColorDepth::True).unwrap()
    }

    fn rows(text: &str, width: u16, step: usize) -> Vec<Row> {
        let mut stream = MarkdownStream::new(MarkdownOptions::default());
        let (theme, highlighter) = (theme(), Highlighter::new());
        let chars: Vec<char> = text.chars().collect();
        for delta in chars.chunks(step) {
            stream.push(&delta.iter().collect::<String>());
            stream.rows(width, &theme, &highlighter);
        }
        stream.finish();
        stream.rows(width, &theme, &highlighter).to_vec()
    }

    /// The text of these rows, all selected, between their neighbours.
    fn copied(rows: &[Row], range: Range<usize>, text: &str) -> String {
        let at = |index: usize, columns| {
            let row = rows.get(index)?.clone();
            Some(CopyRow { text: row.part().map(|_| 0), row, columns })
        };
        let above = range.start.checked_sub(1).and_then(|index| at(index, None));
        let inside = range.clone().filter_map(|index| at(index, Some(0..u16::MAX)));
        let all: Vec<CopyRow> = above.into_iter().chain(inside).chain(at(range.end, None)).collect();
        copied_markdown(&all, &[text.to_owned()])
    }

    #[test]
    fn blocks_that_are_selected_whole_are_copied_as_they_were_written() {
        let text: String = BLOCKS.iter().flat_map(|(block, between)| [*block, *between]).collect();
        for (width, step) in [(20, 7), (41, 1), (80, 64), (200, 10_000)] {
            let rows = rows(&text, width, step);
            assert_eq!(copied(&rows, 0..rows.len(), &text), text, "{width}");
            let mut starts: Vec<usize> = rows.iter().filter_map(Row::part).collect();
            starts.dedup();
            let of = |start: usize| {
                let is_of = |row: &Row| row.part() == Some(start);
                let first = rows.iter().position(is_of).unwrap();
                first..first + rows[first..].iter().take_while(|row| is_of(row)).count()
            };
            // Comments and definitions have no rows, so they are copied with what is around them.
            let written = |block: &str| block.rsplit("\n\n").next().unwrap().to_owned();
            assert_eq!(starts.len(), BLOCKS.len(), "{width}");
            for (n, start) in starts.iter().enumerate() {
                let expected =
                    if BLOCKS[n].0.starts_with("<!") { written(BLOCKS[n].0) } else { BLOCKS[n].0.to_owned() };
                assert_eq!(copied(&rows, of(*start), &text), expected, "{width}");
                let Some(next) = starts.get(n + 1) else { continue };
                let two = text[*start..].split_at(next - start).0.to_owned() + BLOCKS[n + 1].0;
                if !BLOCKS[n + 1].0.starts_with("<!") {
                    assert_eq!(copied(&rows, of(*start).start..of(*next).end, &text), two, "{width}");
                }
            }
        }
    }

    #[test]
    fn block_that_is_selected_in_part_is_copied_as_it_is_shown() {
        let text = "Some **bold** words that wrap.\n\n- `item`\n- other\n\nThe *end*.";
        let rows = rows(text, 20, 3);
        let shown: Vec<String> = rows.iter().map(Row::text).collect();
        assert_eq!(shown, ["Some bold words that", "wrap.", "", "- item", "- other", "", "The end."]);
        assert_eq!(copied(&rows, 1..4, text), "wrap.\n\n- `item`");
        assert_eq!(copied(&rows, 0..1, text), "Some bold words that ");
        assert_eq!(copied(&rows, 4..7, text), "- other\n\nThe *end*.");
        let part = |columns| CopyRow { row: rows[6].clone(), columns: Some(columns), text: Some(0) };
        let texts = [text.to_owned()];
        assert_eq!(copied_markdown(&[part(0..7)], &texts), "The end");
        assert_eq!(copied_markdown(&[part(0..8)], &texts), "The *end*.");
        let item = |columns| CopyRow { row: rows[3].clone(), columns: Some(columns), text: Some(0) };
        assert_eq!(copied_markdown(&[item(2..6)], &texts), "item", "without its bullet");
        assert_eq!(copied_markdown(&[item(0..6)], &texts), "- `item`");
    }

    #[test]
    fn nested_items_are_copied_with_their_marks() {
        for (text, inner) in
            [("- outer\n    - inner\n", "- inner"), ("1. outer\n     1. inner\n", "1. inner")]
        {
            let rows = rows(text, 20, 3);
            assert_eq!(rows[1].text().trim_start(), inner);
            assert_eq!(copied(&rows, 1..2, text), rows[1].text());
        }
    }

    #[test]
    fn line_breaks_are_line_feeds_and_what_is_not_shown_is_left_out() {
        let text = "a\u{1b}[31m *b*\r\n\r\nc\u{7}\rd\n";
        let rows = rows(text, 20, 1);
        assert_eq!(copied(&rows, 0..rows.len(), text), "a *b*\n\nc\nd");
    }
}
