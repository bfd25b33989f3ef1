//! Finds the one place of each edit.
//!
//! Texts are compared with all line breaks as LF. Only if an old text has no
//! literal match, it is compared in a form that ignores typographic variants and white
//! space at line ends; this is decided for each edit separately.

use std::cell::LazyCell;
use std::ops::Range;

use crate::agent::ToolError;

use super::Edit;
use super::normal::Normal;

/// A new text and its place.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Replacement {
    /// Bytes of the text; a CRLF is included completely or not at all.
    pub(super) range: Range<usize>,
    /// With LF line breaks.
    pub(super) new_text: String,
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
    /// The error for the model; `name` is the file, `n_edits` the number of
    /// edits.
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

/// Finds the places of `edits` in `text`, all relative to the original text. They are
/// returned in text order, and do not overlap.
pub(super) fn locate(text: &str, edits: &[Edit]) -> Result<Vec<Replacement>, LocateError> {
    let exact = Normal::exact(text);
    let fuzzy = LazyCell::new(|| Normal::fuzzy(text));
    if let Some(edit) = edits.iter().position(|edit| edit.old_text.is_empty()) {
        return Err(LocateError::Empty { edit });
    }
    let mut found = Vec::with_capacity(edits.len());
    for (idx, edit) in edits.iter().enumerate() {
        let old = unify_breaks(&edit.old_text);
        let literal = exact.find_all(&old);
        let range = if literal.is_empty() {
            // A blank old text has no normal form to search for.
            let alike = only(fuzzy.find_all(Normal::fuzzy(&old).text()), idx)?;
            with_blanks(text, alike, &old)
        } else {
            only(literal, idx)?
        };
        found.push((idx, Replacement { range, new_text: unify_breaks(&edit.new_text) }));
    }
    found.sort_by_key(|(_, replacement)| replacement.range.start);
    for pair in found.windows(2) {
        if let [(earlier, first), (later, second)] = pair
            && first.range.end > second.range.start
        {
            return Err(LocateError::Overlap { earlier: *earlier, later: *later });
        }
    }
    Ok(found.into_iter().map(|(_, replacement)| replacement).collect())
}

/// The only one of `places`.
fn only(places: Vec<Range<usize>>, edit: usize) -> Result<Range<usize>, LocateError> {
    let n_places = places.len();
    match places.into_iter().next() {
        None => Err(LocateError::NotFound { edit }),
        Some(_) if n_places > 1 => Err(LocateError::Ambiguous { edit, n_places }),
        Some(place) => Ok(place),
    }
}

/// `place` extended by the white space that `old` ends in too: up to the end of the
/// line, or as much as `old` has.
fn with_blanks(text: &str, place: Range<usize>, old: &str) -> Range<usize> {
    let is_blank = |c: char| c.is_whitespace() && c != '\n' && c != '\r';
    let n_old = old.chars().rev().take_while(|c| is_blank(*c)).count();
    let behind = text.get(place.end..).unwrap_or_default();
    let rest = behind.trim_start_matches(is_blank);
    let ends_line = rest.is_empty() || rest.starts_with(['\r', '\n']);
    let n_bytes = if n_old > 0 && ends_line {
        behind.len() - rest.len()
    } else {
        behind.chars().take_while(|c| is_blank(*c)).take(n_old).map(char::len_utf8).sum()
    };
    place.start..place.end + n_bytes
}

/// `text` with LF for CRLF and for CR alone.
pub(super) fn unify_breaks(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(old: &str) -> Edit {
        Edit { old_text: old.to_owned(), new_text: "x".to_owned() }
    }

    /// The text at the places of `old_texts`, in the order of the text.
    #[track_caller]
    fn check(text: &str, old_texts: &[&str], expected: &[&str]) {
        let edits: Vec<Edit> = old_texts.iter().map(|old| edit(old)).collect();
        let found = locate(text, &edits).unwrap();
        let found: Vec<&str> = found.into_iter().map(|replacement| &text[replacement.range]).collect();
        assert_eq!(found, expected, "{text:?}");
    }

    #[test]
    fn each_edit_is_exact_or_inexact_by_itself() {
        check("a “b” c—d", &["c", "\"b\""], &["“b”", "c"]);
        check("1½ “b”\r\n½", &["\"b\"\n", "1½"], &["1½", "“b”\r\n"]);
    }

    #[test]
    fn one_literal_match_wins_over_similar_places() {
        check("greeting = \"hi\"\ngreeting = “hi”\n", &["greeting = \"hi\""], &["greeting = \"hi\""]);
        check("a–b\na-b\n", &["a-b"], &["a-b"]);
        check("a–b\na-b\n", &["a–b"], &["a–b"]);
        check("a\nb \na\nb\n", &["a\nb\n"], &["a\nb\n"]);
        check("x\u{a0}y x y", &["x y"], &["x y"]);
    }

    #[test]
    fn twins_are_refused() {
        let check = |text: &str, old: &str| {
            assert_eq!(
                locate(text, &[edit(old)]),
                Err(LocateError::Ambiguous { edit: 0, n_places: 2 }),
                "{text:?}"
            );
        };
        check("a-b a-b", "a-b");
        check("a\nb\r\na\r\nb\n", "a\nb\n");
        // Neither is literal.
        check("a–b a—b", "a-b");
    }

    #[test]
    fn blanks_alone_are_found_literally() {
        check("a   b", &["   "], &["   "]);
        assert_eq!(locate("a b", &[edit("   ")]), Err(LocateError::NotFound { edit: 0 }));
    }

    #[test]
    fn blanks_that_end_an_inexact_old_text_go_with_it() {
        check("“a”\t\nb", &["\"a\"  "], &["“a”\t"]);
        check("“a”   b", &["\"a\" "], &["“a” "]);
        check("“a”b", &["\"a\"  "], &["“a”"]);
        check("“a”  \nb", &["\"a\""], &["“a”"]);
    }

    #[test]
    fn a_part_of_a_character_is_not_found() {
        assert_eq!(locate("ﬁle", &[edit("ile")]), Err(LocateError::NotFound { edit: 0 }));
        assert_eq!(locate("½ cup", &[edit("2 cup")]), Err(LocateError::NotFound { edit: 0 }));
    }
}
