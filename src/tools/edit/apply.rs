//! Inserts new texts into a file and leaves its other bytes unchanged.

use super::locate::Replacement;

/// `original` with its replacements applied, which must be in order.
///
/// A new text uses the line breaks of the line where it begins.
pub(super) fn apply(original: &str, replacements: &[Replacement]) -> String {
    let mut out = Output { text: String::with_capacity(original.len()) };
    let mut at = 0;
    for Replacement { range, new_text } in replacements {
        out.push(original.get(at..range.start).unwrap_or_default());
        let line_break = break_near(original, range.start);
        for (idx, piece) in new_text.split('\n').enumerate() {
            if idx > 0 {
                out.push(line_break);
            }
            out.push(piece);
        }
        at = range.end;
    }
    out.push(original.get(at..).unwrap_or_default());
    out.text
}

/// The line break for new lines at byte `at`: that of its line, otherwise of the
/// nearest line before it, then after it. A lone CR counts only if no line ends in LF.
fn break_near(text: &str, at: usize) -> &'static str {
    let (before, after) = text.split_at_checked(at).unwrap_or((text, ""));
    let style = |lf_at: usize, text: &str| if text[..lf_at].ends_with('\r') { "\r\n" } else { "\n" };
    let own = after.find(['\r', '\n']).map(|end| &after[end..]);
    match own {
        Some(own) if own.starts_with("\r\n") => return "\r\n",
        Some(own) if own.starts_with('\n') => return "\n",
        // No line break, or a lone CR.
        _ => {}
    }
    if let Some(lf_at) = before.rfind('\n') {
        return style(lf_at, before);
    }
    match after.find('\n') {
        Some(lf_at) => style(lf_at, after),
        None if text.contains('\r') => "\r",
        None => "\n",
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
    use super::super::normal::Normal;
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

    #[test]
    fn an_inexact_match_leaves_its_line_alone() {
        check("“a” — ﬁ “b”  \r\n", "\"a\"", "A", "A — ﬁ “b”  \r\n");
        check("x ½ “q” ｆ\ne\u{301}\u{a0}\n", "\"q\"", "Q", "x ½ Q ｆ\ne\u{301}\u{a0}\n");
    }

    /// Characters that normalising changes, with neighbours from real texts.
    const JUNK: &str = "[a-z ./“”‘—\u{a0}ﬁﬂ½¾①ｆｕ　éüeo\u{301}\u{308}ㅏ한\u{ad}\u{200d}👍🏽\t]{0,9}";

    /// Lines as `(before, target, after, break)`.
    fn text() -> impl Strategy<Value = Vec<(String, String, String, &'static str)>> {
        let end = prop_oneof![Just("\n"), Just("\r\n"), Just("\r")];
        prop::collection::vec((JUNK, JUNK, JUNK, end), 1..9)
    }

    proptest! {
        #[test]
        fn everything_but_the_matched_range_is_byte_identical(
            lines in text(),
            pick in any::<prop::sample::Index>(),
            new_text in "[a-z“ﬁ]{0,9}",
            has_bom in any::<bool>(),
        ) {
            // Each target is unique by its number, and no combining character can join it from outside.
            let target = |n: usize| format!("<{n}>{}|", lines[n].1);
            let picked = pick.index(lines.len());
            let (mut original, mut range) = (String::new(), 0..0);
            if has_bom {
                original.push('\u{feff}');
            }
            for (n, (before, _, after, end)) in lines.iter().enumerate() {
                original.push_str(before);
                if n == picked {
                    range = original.len()..original.len() + target(n).len();
                }
                original.push_str(&(target(n) + "." + after + end));
            }
            let old_text = Normal::fuzzy(&target(picked)).text().to_owned();
            let edit = Edit { old_text, new_text: new_text.clone() };
            let edited = apply(&original, &locate(&original, &[edit]).unwrap());
            let mut expected = original;
            expected.replace_range(range, &new_text);
            prop_assert_eq!(edited, expected);
        }

        #[test]
        fn an_exact_edit_is_a_replacement_in_the_text_with_lf(
            original in "[ab\r\n“ ]{0,20}",
            old_text in "[ab\r\n“ ]{1,4}",
            new_text in "[xy\r\n]{0,5}",
        ) {
            let (old, new) = (unify_breaks(&old_text), unify_breaks(&new_text));
            let with_lf = unify_breaks(&original);
            let edit = Edit { old_text, new_text };
            let Ok(replacements) = locate(&original, &[edit]) else { return Ok(()) };
            if with_lf.contains(&old) {
                let edited = unify_breaks(&apply(&original, &replacements));
                prop_assert_eq!(edited, with_lf.replacen(&old, &new, 1));
            }
        }
    }
}
