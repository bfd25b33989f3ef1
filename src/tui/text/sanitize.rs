//! Cleans text that the program did not write itself.
//!
//! A model, a file or a process may send escape sequences, control characters
//! and tabs. None of them may reach the terminal, and none may make a row wider
//! or narrower than measured.

use std::borrow::Cow;

/// Blanks that stand for one tab.
pub const TAB_WIDTH: usize = 3;

/// Text without escape sequences and control characters; tabs become blanks,
/// every kind of line end becomes `\n`.
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
            Piece::Sgr(_) => {}
        }
    }
    Cow::Owned(clean)
}

/// Like [`sanitize`], but on one line: every run of line ends becomes a blank.
pub fn sanitize_line(text: &str) -> Cow<'_, str> {
    let clean = sanitize(text);
    if !clean.contains('\n') {
        return clean;
    }
    let words: Vec<&str> = clean.split('\n').map(str::trim_end).filter(|part| !part.is_empty()).collect();
    Cow::Owned(words.join(" "))
}

/// Characters that are never shown: controls, and the marks that reorder text
/// so that a reader sees something else than what is stored.
pub(super) fn is_dropped(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{feff}')
}

fn is_clean(text: &str) -> bool {
    text.chars().all(|c| c == '\n' || !(is_dropped(c) || matches!(c, '\u{2028}' | '\u{2029}')))
}

/// One step through terminal text. `\r\n` counts as `\n`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Piece<'a> {
    Char(char),
    /// A whole `CSI … m`, escape included.
    Sgr(&'a str),
}

/// Splits text into characters and colour sequences; drops every other escape
/// sequence, also unfinished ones. Follows the ECMA-48 grammar.
pub(super) fn pieces(text: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            let c = rest.chars().next()?;
            match c {
                '\u{1b}' | '\u{9b}' | '\u{9d}' | '\u{90}' | '\u{98}' | '\u{9e}' | '\u{9f}' => {
                    let len = sequence_len(rest);
                    let (sequence, after) = rest.split_at_checked(len).unwrap_or((rest, ""));
                    rest = after;
                    if sequence.starts_with("\u{1b}[") && sequence.ends_with('m') {
                        return Some(Piece::Sgr(sequence));
                    }
                }
                '\r' if rest.starts_with("\r\n") => {
                    rest = &rest[2..];
                    return Some(Piece::Char('\n'));
                }
                _ => {
                    rest = &rest[c.len_utf8()..];
                    return Some(Piece::Char(c));
                }
            }
        }
    })
}

/// Bytes of the escape sequence at the start of `text`, which begins with an
/// introducer.
fn sequence_len(text: &str) -> usize {
    let mut chars = text.char_indices();
    let Some((_, first)) = chars.next() else { return 0 };
    let kind = if first == '\u{1b}' {
        match chars.next() {
            None => return text.len(),
            Some((_, c @ ('[' | ']' | 'P' | 'X' | '^' | '_'))) => c,
            // Intermediates, then one final byte: charset selections and the like.
            Some((_, '\u{20}'..='\u{2f}')) => {
                return chars
                    .find(|(_, c)| !('\u{20}'..='\u{2f}').contains(c))
                    .map_or(text.len(), |(at, c)| if c.is_control() { at } else { at + c.len_utf8() });
            }
            Some((at, '\u{30}'..='\u{7e}')) => return at + 1,
            // Not a sequence: only the escape itself goes.
            Some((at, _)) => return at,
        }
    } else {
        match first {
            '\u{9b}' => '[',
            '\u{9d}' => ']',
            _ => 'P',
        }
    };
    if kind == '[' {
        for (at, c) in chars {
            match c {
                '\u{20}'..='\u{3f}' => {}
                '\u{40}'..='\u{7e}' => return at + 1,
                _ => return at,
            }
        }
        return text.len();
    }
    string_sequence_len(text, chars)
}

/// Length of an OSC, DCS, SOS, PM or APC string: up to BEL or ST. One that never
/// ends loses only its introducer's line, so that a stray byte cannot hide the
/// rest of a file.
fn string_sequence_len(text: &str, mut chars: std::str::CharIndices<'_>) -> usize {
    while let Some((at, c)) = chars.next() {
        match c {
            '\u{7}' | '\u{9c}' => return at + c.len_utf8(),
            '\u{1b}' => {
                return match chars.next() {
                    Some((slash, '\\')) => slash + 1,
                    _ => at,
                };
            }
            '\n' => return at,
            _ => {}
        }
    }
    text.len()
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
        check("x\u{1b}]0;never ends\nnext", "x\nnext");
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

    proptest! {
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
