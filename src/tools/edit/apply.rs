//! Puts new texts into a file, and leaves the rest of its bytes alone.

use std::ops::Range;

use super::locate::Replacements;

/// `original` with its replacements.
///
/// Lines that no replacement touches keep their bytes. Touched lines keep their
/// own line break where it stays, and in a fuzzy match take their text from the
/// normalised base. New line breaks look like those around them.
pub(super) fn apply(original: &str, replacements: &Replacements) -> String {
    let lines = Lines::new(original, &replacements.base);
    let mut out = Output { text: String::with_capacity(original.len()) };
    let touched = touched_lines(&lines, replacements);
    let mut at = 0;
    for (range, new_text) in &replacements.pieces {
        lines.copy(at..range.start, &touched, &mut out);
        let line_break = lines.break_near(lines.index_at(range.start));
        for (idx, piece) in new_text.split('\n').enumerate() {
            if idx > 0 {
                out.push(line_break);
            }
            out.push(piece);
        }
        at = range.end;
    }
    lines.copy(at..replacements.base.len(), &touched, &mut out);
    out.text
}

/// Per line, whether its text comes from the base. Exact matches share the text
/// of the original, so there it makes no difference.
fn touched_lines(lines: &Lines<'_>, replacements: &Replacements) -> Vec<bool> {
    let mut touched = vec![!replacements.is_fuzzy; lines.0.len()];
    for (range, _) in &replacements.pieces {
        let first = lines.index_at(range.start);
        let last = lines.index_at(range.end.saturating_sub(1).max(range.start));
        if let Some(lines) = touched.get_mut(first..=last) {
            lines.fill(true);
        }
    }
    touched
}

/// The lines of the original side by side with those of the base.
struct Lines<'a>(Vec<Line<'a>>);

struct Line<'a> {
    /// Where it is in the base, without its break.
    base: Range<usize>,
    base_text: &'a str,
    original_text: &'a str,
    /// As in the original; empty for a last line without one.
    line_break: &'a str,
}

impl<'a> Lines<'a> {
    fn new(original: &'a str, base: &'a str) -> Self {
        let mut lines = Vec::new();
        let mut rest = original;
        let mut start = 0;
        for base_text in base.split('\n') {
            let end = rest.find(['\r', '\n']).unwrap_or(rest.len());
            let (original_text, tail) = rest.split_at(end);
            let break_bytes = if tail.starts_with("\r\n") { 2 } else { tail.len().min(1) };
            let (line_break, tail) = tail.split_at(break_bytes);
            rest = tail;
            lines.push(Line { base: start..start + base_text.len(), base_text, original_text, line_break });
            start += base_text.len() + 1;
        }
        Self(lines)
    }

    /// The line that holds byte `at` of the base; its break belongs to it.
    fn index_at(&self, at: usize) -> usize {
        self.0.partition_point(|line| line.base.end < at)
    }

    /// Appends what stands at `range` of the base.
    fn copy(&self, range: Range<usize>, touched: &[bool], out: &mut Output) {
        if range.is_empty() {
            return;
        }
        let first = self.index_at(range.start);
        for (idx, line) in self.0.iter().enumerate().skip(first) {
            if line.base.start >= range.end {
                break;
            }
            let from = range.start.saturating_sub(line.base.start);
            let to = range.end.min(line.base.end).saturating_sub(line.base.start);
            let is_whole = from == 0 && to == line.base_text.len();
            let comes_from_base = touched.get(idx).copied().unwrap_or(true) || !is_whole;
            if comes_from_base {
                out.push(line.base_text.get(from..to).unwrap_or_default());
            } else {
                out.push(line.original_text);
            }
            if range.end > line.base.end {
                out.push(line.line_break);
            }
        }
    }

    /// The break for new lines that begin in line `idx`: its own, or that of the
    /// nearest line before it, then after it. CR alone counts only where no line
    /// ends in LF.
    fn break_near(&self, idx: usize) -> &'a str {
        let (before, after) = self.0.split_at((idx + 1).min(self.0.len()));
        let mut nearest = before.iter().rev().chain(after).map(|line| line.line_break);
        let with_lf = nearest.find(|line_break| line_break.ends_with('\n'));
        let has_cr = || self.0.iter().any(|line| line.line_break == "\r");
        with_lf.unwrap_or_else(|| if has_cr() { "\r" } else { "\n" })
    }
}

struct Output {
    text: String,
}

impl Output {
    /// Appends `piece`; a CR and an LF that become neighbours stay two breaks.
    fn push(&mut self, piece: &str) {
        if self.text.ends_with('\r') && piece.starts_with('\n') {
            self.text.push('\r');
        }
        self.text.push_str(piece);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Edit;
    use super::super::locate::{locate, unify_breaks};
    use super::*;

    #[track_caller]
    fn check(original: &str, old_text: &str, new_text: &str, expected: &str) {
        let edit = Edit { old_text: old_text.to_owned(), new_text: new_text.to_owned() };
        assert_eq!(apply(original, &locate(original, &[edit]).unwrap()), expected);
    }

    #[test]
    fn new_breaks_look_like_those_of_the_line_where_they_begin() {
        check("a\r\nb\r\n", "a", "1\n2", "1\r\n2\r\nb\r\n");
        check("a\nb\r\nc\n", "b", "1\n2", "a\n1\r\n2\r\nc\n");
        check("a\nb\r\nc\n", "a", "1\r\n2", "1\n2\nb\r\nc\n");
        check("a\r\nb", "b", "1\n2", "a\r\n1\r\n2");
        check("a", "a", "1\n2", "1\n2");
    }

    #[test]
    fn cr_alone_is_used_only_in_files_without_lf() {
        check("a\rb\r", "a", "1\n2", "1\r2\rb\r");
        check("a\rb\nc", "a", "1\n2", "1\n2\rb\nc");
    }

    #[test]
    fn breaks_of_other_lines_stay_mixed() {
        check("a\r\nb\nc\rd\n", "b", "B", "a\r\nB\nc\rd\n");
        check("a\r\nb\nc\r\n", "a\nb", "x\ny", "x\r\ny\nc\r\n");
    }

    #[test]
    fn a_cr_before_a_seam_does_not_merge_with_an_lf_behind_it() {
        check("a\rb\nc\n", "b", "", "a\r\r\nc\n");
        assert_eq!(unify_breaks("a\r\r\nc\n"), "a\n\nc\n");
    }

    #[test]
    fn a_whole_line_can_go_and_leave_the_next_one_alone() {
        check("a\n“b”\nc  \n", "\"b\"\n", "", "a\nc  \n");
        check("a\n“b”\nc  \n", "\"b\"\n", "x\n", "a\nx\nc  \n");
        check("x\n“b”", "\"b\"", "", "x\n");
    }

    /// Lines with every kind of break, blanks and typographic characters; each is
    /// made unique by its number.
    fn text() -> impl Strategy<Value = Vec<(String, &'static str)>> {
        let line = ("[a-z “”é\u{a0}]{0,8}[ \t]{0,2}", prop_oneof![Just("\n"), Just("\r\n"), Just("\r")]);
        prop::collection::vec(line, 1..12)
    }

    proptest! {
        #[test]
        fn untouched_lines_keep_their_bytes(
            lines in text(),
            pick in any::<prop::sample::Index>(),
            new_text in "[a-z\n]{0,12}",
            is_fuzzy in any::<bool>(),
        ) {
            let lines: Vec<(String, &str)> =
                lines.iter().enumerate().map(|(n, (line, end))| (format!("<{n}> ‘{line}"), *end)).collect();
            let original: String = lines.iter().flat_map(|(line, end)| [line.as_str(), end]).collect();
            let picked = pick.index(lines.len());
            let old_text = if is_fuzzy { format!("<{picked}> '") } else { format!("<{picked}> ‘") };
            let edit = Edit { old_text, new_text };
            let edited = apply(&original, &locate(&original, &[edit]).unwrap());

            let bytes_of = |lines: &[(String, &str)]| -> String {
                lines.iter().flat_map(|(line, end)| [line.as_str(), end]).collect()
            };
            prop_assert!(edited.starts_with(&bytes_of(&lines[..picked])));
            prop_assert!(edited.ends_with(&bytes_of(&lines[picked + 1..])));
        }

        #[test]
        fn an_exact_edit_is_a_replacement_in_the_text_with_lf(
            original in "[ab\r\n“ ]{0,20}",
            old_text in "[ab\r\n“ ]{1,4}",
            new_text in "[xy\r\n]{0,5}",
        ) {
            let edit = Edit { old_text: old_text.clone(), new_text: new_text.clone() };
            let Ok(replacements) = locate(&original, &[edit]) else { return Ok(()) };
            let edited = apply(&original, &replacements);
            let (old, new) = (unify_breaks(&old_text), unify_breaks(&new_text));
            let mut expected = replacements.base.clone();
            for (range, _) in &replacements.pieces {
                expected.replace_range(range.clone(), &new);
            }
            if !replacements.is_fuzzy {
                prop_assert_eq!(unify_breaks(&original).replacen(&old, &new, 1), expected.as_str());
                prop_assert_eq!(unify_breaks(&edited), expected);
            }
        }
    }
}
