//! Normalised texts for searching, with a mapping back to their bytes.
//!
//! Pure. Invariant: a match covers whole characters of the source. A part
//! of a ligature, of a fraction or of a letter with combining characters never matches.

use std::ops::Range;

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::{canonical_combining_class, decompose_compatible};
use unicode_normalization::{IsNormalized, is_nfkc_quick};

/// A text in one of two forms, derived from a source.
#[derive(Debug)]
pub(super) struct Normal {
    text: String,
    /// In the order of both texts. Source bytes between two runs are absent from
    /// `text`.
    runs: Vec<Run>,
}

/// A piece of the text and its origin.
#[derive(Debug)]
struct Run {
    start: usize,
    end: usize,
    source: Range<usize>,
    /// Whether the bytes equal those of the source, so that parts can match; otherwise
    /// only the whole run can.
    is_literal: bool,
}

impl Normal {
    /// With LF for every line break.
    pub(super) fn exact(source: &str) -> Self {
        Self::build(source, |normal, start, line| normal.push(line, start..start + line.len(), true))
    }

    /// With LF for every line break, in a form in which similar texts are
    /// equal: NFKC, ASCII characters for typographic variants, no white space
    /// at line ends.
    pub(super) fn fuzzy(source: &str) -> Self {
        Self::build(source, |normal, start, line| {
            if line.is_ascii() {
                let line = line.trim_end();
                normal.push(line, start..start + line.len(), true);
            } else {
                normal.push_normalised(start, line);
            }
        })
    }

    fn build(source: &str, mut push_line: impl FnMut(&mut Self, usize, &str)) -> Self {
        let mut normal = Self { text: String::with_capacity(source.len()), runs: Vec::new() };
        let mut at = 0;
        loop {
            let rest = &source[at..];
            let end = rest.find(['\r', '\n']).unwrap_or(rest.len());
            let (line, tail) = rest.split_at(end);
            push_line(&mut normal, at, line);
            let break_bytes = if tail.starts_with("\r\n") { 2 } else { tail.len().min(1) };
            if break_bytes == 0 {
                return normal;
            }
            at += end + break_bytes;
            normal.push("\n", at - break_bytes..at, tail.starts_with('\n'));
        }
    }

    fn push_normalised(&mut self, start: usize, line: &str) {
        let mut segments = segments(line);
        // What is blank once it is normalised is so before typography is made plain.
        while segments.last().is_some_and(|(text, _)| text.trim_end().is_empty()) {
            segments.pop();
        }
        if let Some((text, _)) = segments.last_mut() {
            text.truncate(text.trim_end().len());
        }
        for (text, range) in segments {
            let text: String = text.chars().map(plain).collect();
            let source = line.get(range.clone()).unwrap_or_default();
            let is_literal = text == source && source.chars().nth(1).is_none();
            self.push(&text, start + range.start..start + range.end, is_literal);
        }
    }

    fn push(&mut self, text: &str, source: Range<usize>, is_literal: bool) {
        if text.is_empty() {
            return;
        }
        let start = self.text.len();
        self.text.push_str(text);
        let end = self.text.len();
        match self.runs.last_mut() {
            Some(last) if last.is_literal && is_literal && last.source.end == source.start => {
                last.end = end;
                last.source.end = source.end;
            }
            _ => self.runs.push(Run { start, end, source, is_literal }),
        }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The matches of `part` in the source, without overlaps.
    /// An empty `part` has none.
    pub(super) fn find_all(&self, part: &str) -> Vec<Range<usize>> {
        let mut places = Vec::new();
        let mut from = 0;
        if part.is_empty() {
            return places;
        }
        while let Some(found) = self.text.get(from..).and_then(|rest| rest.find(part)) {
            let start = from + found;
            let end = start + part.len();
            if let (Some(first), Some(last)) = (self.source_start(start), self.source_end(end)) {
                places.push(first..last);
                from = end;
            } else {
                from = start + self.text[start..].chars().next().map_or(1, char::len_utf8);
            }
        }
        places
    }

    /// The source position of the text from `at` on; `None` inside a run that
    /// is a single unit.
    fn source_start(&self, at: usize) -> Option<usize> {
        let run = self.runs.get(self.runs.partition_point(|run| run.end <= at))?;
        let offset = at - run.start;
        (run.is_literal || offset == 0).then(|| run.source.start + offset)
    }

    /// The source position of the text's end at `at`, likewise.
    fn source_end(&self, at: usize) -> Option<usize> {
        let run = self.runs.get(self.runs.partition_point(|run| run.end < at))?;
        let missing = run.end - at;
        (run.is_literal || missing == 0).then(|| run.source.end - missing)
    }
}

/// Pieces of a line that normalise independently of each other, normalised, with
/// their positions. Their concatenation is the normal form of the line.
fn segments(line: &str) -> Vec<(String, Range<usize>)> {
    let mut starts: Vec<usize> =
        line.char_indices().filter(|(at, c)| *at == 0 || starts_segment(*c)).map(|(at, _)| at).collect();
    starts.push(line.len());
    let ranges = starts.windows(2).filter_map(|pair| match pair {
        [start, end] => Some(*start..*end),
        _ => None,
    });
    ranges.map(|range| (line.get(range.clone()).unwrap_or_default().nfkc().collect(), range)).collect()
}

/// Whether normalising never joins or reorders `c` with the text before it
/// (UAX #15, 9.1: a boundary before a starter whose quick check is Yes).
fn starts_segment(c: char) -> bool {
    let mut first = None;
    decompose_compatible(c, |part| {
        first.get_or_insert(part);
    });
    let first = first.unwrap_or(c);
    canonical_combining_class(first) == 0 && is_nfkc_quick(std::iter::once(first)) == IsNormalized::Yes
}

/// The ASCII character for a typographic variant.
fn plain(c: char) -> char {
    match c {
        '\u{2018}'..='\u{201b}' => '\'',
        '\u{201c}'..='\u{201f}' => '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{a0}' | '\u{2002}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        c => c,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fuzzy(text: &str) -> String {
        Normal::fuzzy(text).text
    }

    #[test]
    fn variants_have_one_normal_form() {
        let check = |text: &str, expected: &str| assert_eq!(fuzzy(text), expected);
        check("a \t\nb\u{3000}\n", "a\nb\n");
        check("a \t\r\nb\rc", "a\nb\nc");
        check("‘’‚‛“”„‟", "''''\"\"\"\"");
        check("a‐b–c—d−e", "a-b-c-d-e");
        check("a\u{a0}b\u{2009}c\u{202f}d", "a b c d");
        check("e\u{301}ﬁ①½", "éfi11\u{2044}2");
        check("", "");
    }

    #[track_caller]
    fn check_places(source: &str, part: &str, expected: &[&str]) {
        let normal = Normal::fuzzy(source);
        let places: Vec<&str> = normal.find_all(part).into_iter().map(|place| &source[place]).collect();
        assert_eq!(places, expected, "{part:?} in {source:?}");
    }

    #[test]
    fn places_are_those_of_the_source() {
        check_places("x “a” y", "\"a\"", &["“a”"]);
        check_places("die ﬁrma", "firma", &["ﬁrma"]);
        check_places("cafe\u{301}!", "café", &["cafe\u{301}"]);
        check_places("ｆｕｌｌ　width", "full width", &["ｆｕｌｌ　width"]);
        check_places("add 1½ cups", "11\u{2044}2 cups", &["1½ cups"]);
        check_places("a  \r\nb\u{3000}\rc", "a\nb\nc", &["a  \r\nb\u{3000}\rc"]);
        check_places("aaa", "aa", &["aa"]);
        check_places("a", "", &[]);
    }

    #[test]
    fn blanks_at_the_end_of_a_line_belong_to_a_place_only_inside_of_it() {
        check_places("a  \nb  \nc", "a", &["a"]);
        check_places("a  \nb  \nc", "\nb", &["\nb"]);
        check_places("a  \nb  \nc", "b\n", &["b  \n"]);
    }

    #[test]
    fn a_part_of_a_character_is_no_place() {
        check_places("ﬁle", "ile", &[]);
        check_places("½", "1", &[]);
        check_places("e\u{301}", "e", &[]);
        check_places("q\u{301} q", "q", &["q"]);
        check_places("ﬁ if", "if", &["if"]);
    }

    proptest! {
        #[test]
        fn pieces_normalise_as_the_whole_does(
            text in "([a-z \t“”—ﬁ½①ｆｕ　é가각각\u{301}\u{308}\u{344}ﾞ\u{1161}\u{11a8}ſ]|\r|\n|.){0,24}",
        ) {
            let lines: Vec<String> = text
                .replace("\r\n", "\n")
                .replace('\r', "\n")
                .split('\n')
                .map(|line| line.nfkc().collect::<String>().trim_end().chars().map(plain).collect())
                .collect();
            prop_assert_eq!(fuzzy(&text), lines.join("\n"));
        }

        #[test]
        fn every_place_is_of_whole_characters(text in "[a-f “”ﬁ½é\u{301}\r\n]{0,24}", part in "[a-f \"i1é\n]{1,3}") {
            let normal = Normal::fuzzy(&text);
            for place in normal.find_all(&part) {
                prop_assert!(text.is_char_boundary(place.start) && text.is_char_boundary(place.end));
                prop_assert_eq!(fuzzy(&text[place]), fuzzy(&part));
            }
        }
    }
}
