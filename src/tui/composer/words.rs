//! The units of cursor movement: atoms and words.
//!
//! An atom is a paste marker or a grapheme cluster. Words follow Unicode word
//! segmentation (UAX #29) and end at ASCII punctuation; a run of punctuation is a
//! word, and so is a marker. Scripts without blanks between words, such as Chinese and Thai, are
//! segmented by a dictionary.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

use crate::tui::text::word_parts;

/// The atoms of a line with the given markers.
pub(super) fn atoms(line: &str, markers: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut atoms = Vec::new();
    pieces(line, markers, |start, text, is_marker| {
        if is_marker {
            atoms.push(start..start + text.len());
        } else {
            atoms.extend(text.grapheme_indices(true).map(|(at, g)| start + at..start + at + g.len()));
        }
    });
    atoms
}

/// The words of a line, without the blanks between.
pub(in crate::tui) fn words(line: &str, markers: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut words: Vec<(Range<usize>, Class)> = Vec::new();
    pieces(line, markers, |start, text, is_marker| {
        if is_marker {
            words.push((start..start + text.len(), Class::Marker));
            return;
        }
        let parts = word_parts(text).into_iter();
        for (at, part) in parts.flat_map(|(at, part)| split_punctuation(at, part)) {
            let range = start + at..start + at + part.len();
            let class = classify(part);
            match words.last_mut() {
                Some((last, Class::Punctuation))
                    if class == Class::Punctuation && last.end == range.start =>
                {
                    last.end = range.end;
                }
                _ if class == Class::Blank => {}
                _ => words.push((range, class)),
            }
        }
    });
    words.into_iter().map(|(range, _)| range).collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Blank,
    Word,
    Punctuation,
    Marker,
}

/// Splits `foo.bar` and `1,000`, which UAX #29 keeps together but programmers do not.
fn split_punctuation(at: usize, part: &str) -> impl Iterator<Item = (usize, &str)> {
    let splits = |c: char| c.is_ascii_punctuation() && !matches!(c, '_' | '\'');
    let mut start = 0;
    part.split_inclusive(splits).flat_map(move |piece| {
        let word = piece.trim_end_matches(splits);
        let found = [(at + start, word), (at + start + word.len(), &piece[word.len()..])];
        start += piece.len();
        found.into_iter().filter(|(_, text)| !text.is_empty())
    })
}

fn classify(part: &str) -> Class {
    if part.chars().all(char::is_whitespace) {
        Class::Blank
    } else if part.chars().any(|c| c.is_alphanumeric() || c == '_' || !c.is_ascii()) {
        Class::Word
    } else {
        Class::Punctuation
    }
}

fn pieces(line: &str, markers: &[Range<usize>], mut each: impl FnMut(usize, &str, bool)) {
    let mut done = 0;
    for marker in markers {
        each(done, &line[done..marker.start], false);
        each(marker.start, &line[marker.clone()], true);
        done = marker.end;
    }
    each(done, &line[done..], false);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_segmented_by_unicode() {
        for (line, expected) in [
            ("let x = foo(bar)->baz;", vec!["let", "x", "=", "foo", "(", "bar", ")->", "baz", ";"]),
            ("foo.bar_baz", vec!["foo", ".", "bar_baz"]),
            ("don't  stop", vec!["don't", "stop"]),
            ("日本 ok", vec!["日本", "ok"]),
            ("请检查终端宽度，foo.bar。", vec!["请", "检查", "终端", "宽度", "，", "foo", ".", "bar", "。"]),
            ("東京に住む", vec!["東京", "に", "住む"]),
            ("ภาษาไทย", vec!["ภาษา", "ไทย"]),
            ("", vec![]),
        ] {
            let found: Vec<&str> = words(line, &[]).into_iter().map(|range| &line[range]).collect();
            assert_eq!(found, expected, "{line:?}");
        }
        assert_eq!(words("a [m m] b[n]", &[2..7, 9..12]), [0..1, 2..7, 8..9, 9..12]);
        assert_eq!(atoms("a[mm]👨‍👩‍👧‍👦[n]", &[1..5, 30..33]), [0..1, 1..5, 5..30, 30..33]);
    }
}
