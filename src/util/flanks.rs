//! Lets emphasis begin and end next to CJK text.
//!
//! `CommonMark` decides by the characters on both sides of a run of `*` or `~~` whether it may open
//! or close. Its rule assumes spaces between words: in `**粗体。**后面` the second run is between
//! punctuation and a letter, so it may only open, and its asterisks stay. An invisible mark between
//! the punctuation and the run makes the parser see a letter there. The text is parsed with these
//! marks; they are removed from what the parser returns.

use std::borrow::Cow;

/// A noncharacter, which no text contains to be shown, and which is neither a space nor punctuation.
const MARK: char = '\u{fdd0}';

/// A text with marks for the parser.
#[derive(Debug)]
pub struct Marked<'a> {
    pub text: Cow<'a, str>,
    /// Where in `text` marks are, ascending.
    places: Vec<usize>,
}

impl<'a> Marked<'a> {
    /// Marks only the runs that could not open or close otherwise.
    pub fn new(text: &'a str) -> Self {
        let mut marked = Self { text: Cow::Borrowed(text), places: Vec::new() };
        if text.is_ascii() {
            return marked;
        }
        let mut with_marks = String::new();
        let mut done = 0;
        for (start, run) in runs(text) {
            let end = start + run.len();
            let before = text[..start].chars().next_back();
            let place = match before.zip(text[end..].chars().next()) {
                Some((before, after)) if needs_mark(before, after) => start,
                Some((before, after)) if needs_mark(after, before) => end,
                _ => continue,
            };
            with_marks.push_str(&text[done..place]);
            marked.places.push(with_marks.len());
            with_marks.push(MARK);
            done = place;
        }
        if !marked.places.is_empty() {
            with_marks.push_str(&text[done..]);
            marked.text = Cow::Owned(with_marks);
        }
        marked
    }

    /// The place in the text without marks of a place in the text with them.
    pub fn place_without(&self, at: usize) -> usize {
        at - self.places.partition_point(|place| *place < at) * MARK.len_utf8()
    }
}

/// A text of the parser without the marks. A U+FDD0 of the source is removed too, in code as well: the parser does
/// not report which one was put in, and no text contains this noncharacter to be shown.
pub fn without_marks(text: &str) -> Cow<'_, str> {
    if text.contains(MARK) { Cow::Owned(text.replace(MARK, "")) } else { Cow::Borrowed(text) }
}

/// The runs of asterisks and the double tildes, with their places.
fn runs(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut from = 0;
    std::iter::from_fn(move || {
        loop {
            let start = from + text.get(from..)?.find(['*', '~'])?;
            let rest = &text[start..];
            let delimiter = if rest.starts_with('*') { '*' } else { '~' };
            let run = &rest[..rest.find(|c| c != delimiter).unwrap_or(rest.len())];
            from = start + run.len();
            if delimiter == '*' || run.len() == 2 {
                return Some((start, run));
            }
        }
    })
}

/// Whether a run is seen as next to a space only because of punctuation that has CJK text on its
/// other side, or is such text itself.
fn needs_mark(punctuation: char, other: char) -> bool {
    // A backslash may escape the run, cells of tables end at a line, and a mark
    // would make an underline one within a word.
    let is_mark = |c: char| !c.is_alphanumeric() && !c.is_whitespace() && !matches!(c, '\\' | '|' | '_');
    is_mark(punctuation) && other.is_alphanumeric() && (is_cjk(punctuation) || is_cjk(other))
}

/// Whether a character is of a script without spaces between words, or one with
/// particles that follow a word directly; its punctuation included.
fn is_cjk(c: char) -> bool {
    matches!(u32::from(c),
        // Hangul letters
        0x1100..=0x11ff | 0xa960..=0xa97f | 0xac00..=0xd7ff
        // radicals, punctuation, kana, ideographs
        | 0x2e80..=0xa4cf | 0xf900..=0xfaff | 0x1_6fe0..=0x1_8dff | 0x1_aff0..=0x1_b2ff | 0x2_0000..=0x3_fffd
        // vertical forms, compatibility forms, full and half width
        | 0xfe10..=0xfe1f | 0xfe30..=0xfe6f | 0xff00..=0xffef)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, marked: &str) {
        assert_eq!(Marked::new(text).text.replace(MARK, "·"), marked, "{text:?}");
    }

    #[test]
    fn marks_are_where_punctuation_keeps_a_run_from_opening_or_closing() {
        check("**粗体。**后面", "**粗体。·**后面");
        check("他说**“你好”**然后", "他说**·“你好”·**然后");
        check("前面**（括号）**后面", "前面**·（括号）·**后面");
        check("**bold.**中文，**code**", "**bold.·**中文，·**code**");
        check("~~删除。~~后面 ~一。~二", "~~删除。·~~后面 ~一。~二");
        check("**마크다운(Markdown)**은", "**마크다운(Markdown)·**은");
    }

    #[test]
    fn other_text_has_no_marks() {
        for text in [
            "**a.**b é",
            "\\**后",
            "**粗体**后面",
            "**粗体。** 后",
            "|**a**|后",
            "。**",
            "**。",
            "__粗。__后",
        ] {
            check(text, text);
        }
    }

    proptest! {
        #[test]
        fn text_and_places_survive(text in "[*~a。，后\\\\ (\u{fdd1}]{0,40}") {
            let marked = Marked::new(&text);
            prop_assert_eq!(&*without_marks(&marked.text), &text);
            for (at, c) in marked.text.char_indices().filter(|(_, c)| *c != MARK) {
                prop_assert!(text[marked.place_without(at)..].starts_with(c));
            }
            prop_assert_eq!(marked.place_without(marked.text.len()), text.len());
        }
    }
}
