//! Finds the one place each edit means.
//!
//! Texts are compared with all line breaks as LF. If one of the old texts is not
//! there literally, all are looked for in a normalised form of the text, in
//! which typographic variants and trailing blanks do not count.

use std::ops::Range;

use unicode_normalization::UnicodeNormalization as _;

use crate::agent::ToolError;

use super::Edit;

/// What to put where.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Replacements {
    /// The text the ranges are about: the original with LF line breaks, or that
    /// normalised line by line. It has the lines of the original either way.
    pub(super) base: String,
    /// Whether `base` is normalised.
    pub(super) is_fuzzy: bool,
    /// Byte ranges of `base`, in order, none overlapping, and what replaces them.
    pub(super) pieces: Vec<(Range<usize>, String)>,
}

/// Why edits cannot be applied; counts edits from 0.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LocateError {
    Empty { edit: usize },
    NotFound { edit: usize },
    Ambiguous { edit: usize, n_places: usize },
    Overlap { earlier: usize, later: usize },
}

impl LocateError {
    /// What the model reads about it; `name` is the file, `n_edits` how many
    /// edits there were.
    pub(super) fn about(&self, name: &str, n_edits: usize) -> ToolError {
        let is_single = n_edits == 1;
        ToolError(match *self {
            Self::Empty { .. } if is_single => format!("oldText must not be empty in {name}."),
            Self::Empty { edit } => format!("edits[{edit}].oldText must not be empty in {name}."),
            Self::NotFound { .. } if is_single => format!(
                "Could not find the exact text in {name}. \
                 The old text must match exactly including all whitespace and newlines."
            ),
            Self::NotFound { edit } => format!(
                "Could not find edits[{edit}] in {name}. \
                 The oldText must match exactly including all whitespace and newlines."
            ),
            Self::Ambiguous { n_places, .. } if is_single => format!(
                "Found {n_places} occurrences of the text in {name}. \
                 The text must be unique. Please provide more context to make it unique."
            ),
            Self::Ambiguous { edit, n_places } => format!(
                "Found {n_places} occurrences of edits[{edit}] in {name}. \
                 Each oldText must be unique. Please provide more context to make it unique."
            ),
            Self::Overlap { earlier, later } => format!(
                "edits[{earlier}] and edits[{later}] overlap in {name}. \
                 Merge them into one edit or make them target separate text."
            ),
        })
    }
}

/// Finds the places of `edits` in `text`, all of them in the text as it is.
pub(super) fn locate(text: &str, edits: &[Edit]) -> Result<Replacements, LocateError> {
    let exact = unify_breaks(text);
    let fuzzy = normalise(&exact);
    let mut old_texts = Vec::with_capacity(edits.len());
    for (idx, edit) in edits.iter().enumerate() {
        if edit.old_text.is_empty() {
            return Err(LocateError::Empty { edit: idx });
        }
        old_texts.push(unify_breaks(&edit.old_text));
    }
    let is_fuzzy = old_texts.iter().any(|old| !exact.contains(old));

    let mut found = Vec::with_capacity(edits.len());
    for (idx, (edit, old)) in edits.iter().zip(&old_texts).enumerate() {
        let fuzzy_old = normalise(old);
        // A blank old text has no normal form to look for.
        let n_places = match count(&fuzzy, &fuzzy_old) {
            0 => count(&exact, old),
            n_places => n_places,
        };
        if n_places > 1 {
            return Err(LocateError::Ambiguous { edit: idx, n_places });
        }
        let (base, old) = if is_fuzzy { (&fuzzy, &fuzzy_old) } else { (&exact, old) };
        let start = if old.is_empty() { None } else { base.find(old.as_str()) };
        let start = start.ok_or(LocateError::NotFound { edit: idx })?;
        found.push((idx, start..start + old.len(), unify_breaks(&edit.new_text)));
    }
    found.sort_by_key(|(_, range, _)| range.start);
    for pair in found.windows(2) {
        if let [(earlier, first, _), (later, second, _)] = pair
            && first.end > second.start
        {
            return Err(LocateError::Overlap { earlier: *earlier, later: *later });
        }
    }
    let pieces = found.into_iter().map(|(_, range, new)| (range, new)).collect();
    Ok(Replacements { base: if is_fuzzy { fuzzy } else { exact }, is_fuzzy, pieces })
}

/// `text` with LF for CRLF and for CR alone.
pub(super) fn unify_breaks(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

/// The form in which texts that look alike are equal. Keeps the number of lines.
fn normalise(text: &str) -> String {
    let mut normal = String::with_capacity(text.len());
    for (idx, line) in text.split('\n').enumerate() {
        if idx > 0 {
            normal.push('\n');
        }
        let line: String = line.nfkc().collect();
        normal.extend(line.trim_end().chars().map(plain));
    }
    normal
}

/// The character of the keyboard for its typographic variants.
fn plain(c: char) -> char {
    match c {
        '\u{2018}'..='\u{201b}' => '\'',
        '\u{201c}'..='\u{201f}' => '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{a0}' | '\u{2002}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        c => c,
    }
}

fn count(text: &str, part: &str) -> usize {
    if part.is_empty() { 0 } else { text.matches(part).count() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_have_one_normal_form() {
        let check = |text: &str, expected: &str| assert_eq!(normalise(text), expected);
        check("a \t\nb\u{3000}\n", "a\nb\n");
        check("‘’‚‛“”„‟", "''''\"\"\"\"");
        check("a‐b–c—d−e", "a-b-c-d-e");
        check("a\u{a0}b\u{2009}c\u{202f}d", "a b c d");
        check("e\u{301}ﬁ①", "éfi1");
    }

    #[test]
    fn one_inexact_edit_makes_all_fuzzy() {
        let edit = |old: &str| Edit { old_text: old.to_owned(), new_text: String::new() };
        let replacements = locate("a “b” c", &[edit("c"), edit("\"b\"")]).unwrap();
        assert!(replacements.is_fuzzy);
        assert_eq!(replacements.base, "a \"b\" c");
        assert_eq!(replacements.pieces, [(2..5, String::new()), (6..7, String::new())]);
    }

    #[test]
    fn blanks_alone_are_found_literally() {
        let edit = |old: &str| Edit { old_text: old.to_owned(), new_text: "x".to_owned() };
        assert_eq!(locate("a   b", &[edit("   ")]).unwrap().pieces, [(1..4, "x".to_owned())]);
        assert_eq!(locate("a b", &[edit("   ")]), Err(LocateError::NotFound { edit: 0 }));
    }
}
