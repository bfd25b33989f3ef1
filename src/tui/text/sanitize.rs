//! Sanitises text that the program did not write itself.
//!
//! A model, a file or a process may send escape sequences, control characters
//! and tabs. None of them may reach the terminal, and none may change a row's
//! measured width.
//!
//! From what was printed and answered they are dropped. In what a user has to judge before or after
//! it happened (commands, arguments, paths, diffs) they are spelt out, `<U+202E>`, because there
//! they are part of what happens.

use std::borrow::Cow;

use crate::util::escapes::{Piece, is_dropped, pieces};
use crate::util::visible::{Replaced, is_all_visible, spell_out, spell_out_marks};

/// Number of spaces for a tab.
pub const TAB_WIDTH: usize = 3;

/// Text without escape sequences and control characters; tabs become spaces,
/// and all line breaks become `\n`.
pub fn sanitize(text: &str) -> Cow<'_, str> {
    if is_clean(text) {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len());
    for piece in pieces(text) {
        match piece {
            Piece::Char('\t') => clean.extend(std::iter::repeat_n(' ', TAB_WIDTH)),
            Piece::Char('\n') => clean.push('\n'),
            Piece::Char('\r' | '\u{2028}' | '\u{2029}' | '\u{85}') => clean.push('\n'),
            Piece::Char(c) if is_dropped(c) => {}
            Piece::Char(c) => clean.push(c),
            Piece::Sgr(_) | Piece::Edit(_) => {}
        }
    }
    Cow::Owned(clean)
}

/// Like [`sanitize`], but on one line: consecutive line breaks become a space.
pub fn sanitize_line(text: &str) -> Cow<'_, str> {
    let clean = sanitize(text);
    if !clean.contains('\n') {
        return clean;
    }
    let words: Vec<&str> = clean.split('\n').map(str::trim_end).filter(|part| !part.is_empty()).collect();
    Cow::Owned(words.join(" "))
}

/// Text to be judged, with what cannot be seen spelt out. Tabs become spaces, and `\r\n` becomes
/// `\n`.
pub fn visible(text: &str) -> Cow<'_, str> {
    if is_all_visible(text) { Cow::Borrowed(text) } else { Cow::Owned(visible_replaced(text).0) }
}

/// Like [`visible`], but on one line: consecutive line breaks become a space.
pub fn visible_line(text: &str) -> String {
    let shown = visible(text);
    let words: Vec<&str> = shown.split('\n').map(str::trim_end).filter(|part| !part.is_empty()).collect();
    if shown.contains('\n') { words.join(" ") } else { shown.into_owned() }
}

/// Like [`sanitize`], with tabs as they are, for text that is copied.
pub fn without_controls(text: &str) -> String {
    text.split('\t').map(sanitize).collect::<Vec<_>>().join("\t")
}

/// Like [`visible`], for the name of a file: line breaks and tabs are spelt out too.
pub fn visible_name(name: &str) -> Cow<'_, str> {
    match is_all_visible(name) && !name.contains('\n') {
        true => Cow::Borrowed(name),
        false => Cow::Owned(spell_out(name, None).0),
    }
}

/// Like [`visible`], with tabs as they are, for text that is parsed.
pub fn visible_source(text: &str) -> Cow<'_, str> {
    if is_all_visible(text) { Cow::Borrowed(text) } else { Cow::Owned(spell_out(text, Some("\t")).0) }
}

/// Output of a terminal with what cannot be seen spelt out, other than the control characters,
/// which have a meaning there.
pub fn visible_marks(text: &str) -> Cow<'_, str> {
    if is_all_visible(text) { Cow::Borrowed(text) } else { Cow::Owned(spell_out_marks(text)) }
}

/// Like [`visible`], with what was replaced.
pub fn visible_replaced(text: &str) -> (String, Vec<Replaced>) {
    spell_out(text, Some(&" ".repeat(TAB_WIDTH)))
}

fn is_clean(text: &str) -> bool {
    text.chars().all(|c| c == '\n' || !(is_dropped(c) || matches!(c, '\u{2028}' | '\u{2029}')))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(sanitize(text), expected, "{text:?}");
    }

    #[test]
    fn strips_escape_sequences_whole() {
        check("a\u{1b}[31mb\u{1b}[0mc", "abc");
        check("a\u{1b}]0;title\u{7}b", "ab");
        check("a\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\b", "alinkb");
        check("a\u{1b}Pq#0\u{1b}\\b", "ab");
        check("a\u{1b}(Bb", "ab");
        check("a\u{9b}31mb", "ab");
        check("a\u{1b}7b", "ab");
        check("tail\u{1b}", "tail");
        check("tail\u{1b}[31", "tail");
        check("x\u{1b}]0;never ends\nnext", "x0;never ends\nnext");
    }

    #[test]
    fn normalises_line_ends_tabs_and_controls() {
        check("a\r\nb\rc\n", "a\nb\nc\n");
        check("a\tb", "a   b");
        check("a\u{0}\u{8}\u{7f}b", "ab");
        check("evil\u{202e}txt", "eviltxt");
        check("héllo 世界", "héllo 世界");
    }

    #[test]
    fn one_line_has_no_line_end() {
        assert_eq!(sanitize_line("a\n\n b\r\n"), "a  b");
        assert_eq!(sanitize_line("plain"), "plain");
    }

    #[test]
    fn judged_text_is_spelt_out() {
        assert_eq!(visible("a\tb\r\nc\u{1b}[2J"), "a   b\nc<U+001B>[2J");
        assert_eq!(visible_line("a\n\n b\u{202e}\n"), "a  b<U+202E>");
        assert_eq!(visible_name("a\nb\tc\u{1b}"), "a<U+000A>b<U+0009>c<U+001B>");
    }

    proptest! {
        #[test]
        fn judged_text_has_nothing_dangerous_and_differs_where_the_text_does(text in any::<String>()) {
            let shown = visible(&text);
            prop_assert!(shown.chars().all(|c| c == '\n' || !is_dropped(c)));
            prop_assert_eq!(&visible(&shown), &shown);
            // Whatever is dropped elsewhere is seen here.
            let dropped = text.chars().any(|c| is_dropped(c) && !matches!(c, '\n' | '\t' | '\r'));
            prop_assert!(!dropped || shown.contains("<U+"));
        }

        #[test]
        fn nothing_dangerous_is_left(text in "[\u{1b}\u{9b}\u{9d}\\[\\]mP;0-9a-z\\\\\u{7}\r\n\t世]{0,60}") {
            let clean = sanitize(&text).into_owned();
            prop_assert!(clean.chars().all(|c| c == '\n' || !c.is_control()));
            prop_assert_eq!(sanitize(&clean), clean.as_str());
        }

        #[test]
        fn any_string_is_survived(text in any::<String>()) {
            let clean = sanitize(&text).into_owned();
            prop_assert!(clean.chars().all(|c| c == '\n' || !c.is_control()));
        }
    }
}
