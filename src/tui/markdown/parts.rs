//! Finds the blocks at the top level of a text, and where links are defined in it.
//!
//! A streamed answer is drawn part by part: each one that later text cannot change becomes final.

use std::ops::Range;

use pulldown_cmark::{Event, Parser, Tag};

use super::blocks::{fold, is_below_blank, options};
use crate::util::flanks::{Marked, without_marks};

/// The top level of a text.
#[derive(Debug, Default)]
pub(super) struct Outline {
    pub(super) parts: Vec<Part>,
    /// Link definitions by their start.
    pub(super) definitions: Vec<Definition>,
}

/// A top-level block, or an item of a top-level list. Parsed by itself, it is what it is in its
/// text, because only an item's own lines decide how it is read.
#[derive(Debug)]
pub(super) struct Part {
    /// From the start of its first line.
    pub(super) range: Range<usize>,
    pub(super) item: Option<ItemPlace>,
    /// Whether a blank line ends it.
    pub(super) is_paragraph: bool,
}

/// The place of an item in its list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ItemPlace {
    /// Its number in an ordered list.
    pub(super) number: Option<u64>,
    pub(super) is_first: bool,
    /// Whether a blank line is between it and the item before it.
    pub(super) is_spaced: bool,
}

#[derive(Debug)]
pub(super) struct Definition {
    pub(super) start: usize,
    pub(super) label: String,
    pub(super) target: String,
}

/// The parts of `text`, which begins with the item at `first` if there is one.
pub(super) fn outline(text: &str, mut first: Option<ItemPlace>) -> Outline {
    let marked = Marked::new(text);
    let parser = Parser::new_ext(&marked.text, options(&marked.text));
    let mut definitions: Vec<Definition> = parser
        .reference_definitions()
        .iter()
        .map(|(label, found)| Definition {
            start: marked.place_without(found.span.start),
            label: fold(label),
            target: without_marks(&found.dest).into_owned(),
        })
        .collect();
    definitions.sort_by_key(|definition| definition.start);
    let line_start =
        |at: usize| text.get(..at).and_then(|before| before.rfind('\n')).map_or(0, |line_end| line_end + 1);
    let mut parts: Vec<Part> = Vec::new();
    let mut depth = 0_usize;
    // The place of the next item of the list at the top level.
    let mut next: Option<ItemPlace> = None;
    for (event, range) in parser.into_offset_iter() {
        let range = marked.place_without(range.start)..marked.place_without(range.end);
        match (&event, depth) {
            (Event::End(_), _) => {}
            (Event::Start(Tag::List(number)), 0) => {
                let place = ItemPlace { number: *number, is_first: true, is_spaced: false };
                next = Some(first.take().unwrap_or(place));
            }
            (_, 0) => {
                (next, first) = (None, None);
                let is_paragraph = matches!(event, Event::Start(Tag::Paragraph));
                parts.push(Part { range: line_start(range.start)..range.end, item: None, is_paragraph });
            }
            (Event::Start(Tag::Item), 1) => {
                let start = line_start(range.start);
                if let Some(place) = &mut next {
                    let is_spaced = place.is_spaced || !place.is_first && is_below_blank(text, start);
                    parts.push(Part {
                        range: start..range.end,
                        item: Some(ItemPlace { is_spaced, ..*place }),
                        is_paragraph: false,
                    });
                    let number = place.number.map(|number| number.saturating_add(1));
                    *place = ItemPlace { number, is_first: false, is_spaced: false };
                }
            }
            _ => {}
        }
        match event {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    Outline { parts, definitions }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::blocks::{Block, Definitions, parse};
    use super::*;

    /// Lines of lists and quotes that may continue, nest or end each other, without references.
    fn lines() -> impl Strategy<Value = String> {
        let indent =
            prop::sample::select(vec!["", "", "", " ", "  ", "  ", "   ", "    ", "      ", "\t", "> ", ">"]);
        let mark = prop::sample::select(vec![
            "", "", "- ", "- ", "* ", "-", "1. ", "7. ", "10) ", "1.", "- [x] ", "- - ", "- > ", "-\t",
        ]);
        let text = prop::sample::select(vec![
            "",
            "",
            "text",
            "**bold",
            "`code",
            "# Head",
            "===",
            "---",
            "```rust",
            "```",
            "| a | b |",
            "|---|---|",
            "    indented",
            "<div>",
            "<!-- c",
            "-->",
            "\\",
            "[^1]: note",
            "text[^1]",
        ]);
        let line = (indent, mark, text).prop_map(|(indent, mark, text)| format!("{indent}{mark}{text}"));
        prop::collection::vec(line, 0..16).prop_map(|lines| lines.join("\n"))
    }

    /// The blocks of each part, with the items of a list together again.
    fn parse_parts(text: &str) -> Vec<Block> {
        let mut blocks: Vec<Block> = Vec::new();
        for Part { range, item, .. } in outline(text, None).parts {
            let mut parsed = parse(&text[range], &Definitions::new(), |_, _| ());
            let (Some(place), [Block::List(alone)]) = (item, parsed.as_mut_slice()) else {
                blocks.extend(parsed);
                continue;
            };
            assert_eq!(alone.items.len(), 1);
            alone.items[0].is_spaced = place.is_spaced;
            match blocks.last_mut() {
                Some(Block::List(list)) if !place.is_first => {
                    let number = list.start.map(|start| start + list.items.len() as u64);
                    assert_eq!(number, place.number);
                    list.items.append(&mut alone.items);
                }
                _ => blocks.extend(parsed),
            }
        }
        blocks
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn parts_are_parsed_as_in_their_text(text in lines()) {
            prop_assert_eq!(parse_parts(&text), parse(&text, &Definitions::new(), |_, _| ()));
        }
    }
}
