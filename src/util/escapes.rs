//! Splits terminal text into characters, colours, and unwanted escape
//! sequences.
//!
//! All text of a model, a server or a process passes through here before it is shown.
//! Callers handle tabs, line breaks and colours.

use std::borrow::Cow;

/// Plain text without escape sequences and
/// without control characters except tabs and line breaks.
pub fn without_escapes(text: &str) -> Cow<'_, str> {
    let is_kept = |c: char| matches!(c, '\n' | '\t') || !is_dropped(c);
    if text.chars().all(is_kept) {
        return Cow::Borrowed(text);
    }
    let kept = pieces(text).filter_map(|piece| match piece {
        Piece::Char(c) if is_kept(c) => Some(c),
        Piece::Char(_) | Piece::Sgr(_) => None,
    });
    Cow::Owned(kept.collect())
}

/// Characters that are never shown: controls, and marks that reorder text
/// so that the reader sees something other than the stored text.
pub fn is_dropped(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{feff}')
}

/// A piece of terminal text. `\r\n` counts as `\n`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Piece<'a> {
    Char(char),
    /// A complete `CSI … m`, including the escape character.
    Sgr(&'a str),
}

/// Splits text into characters and colour sequences; drops all other escape
/// sequences, including unfinished ones. Follows the ECMA-48 grammar.
pub fn pieces(text: &str) -> impl Iterator<Item = Piece<'_>> {
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
            // Intermediates, then one final byte: for example charset selections.
            Some((_, '\u{20}'..='\u{2f}')) => {
                return chars
                    .find(|(_, c)| !('\u{20}'..='\u{2f}').contains(c))
                    .map_or(text.len(), |(at, c)| if c.is_control() { at } else { at + c.len_utf8() });
            }
            Some((at, '\u{30}'..='\u{7e}')) => return at + 1,
            // Not a sequence, so only the escape character is dropped.
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

/// Length of an OSC, DCS, SOS, PM or APC string: up to BEL or ST. An unterminated
/// string extends only to the end of its line, so that a stray byte cannot hide the
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
    use super::*;

    #[test]
    fn lines_and_tabs_are_all_that_is_left_of_controls() {
        let check = |text: &str, expected: &str| assert_eq!(without_escapes(text), expected, "{text:?}");
        check("a\tb\nc", "a\tb\nc");
        check("a\u{1b}[2J\u{1b}]0;title\u{7}b\u{1b}[31mc\u{1b}[0m", "abc");
        check("a\r\nb\rc\u{8}\u{9b}31md", "a\nbcd");
        check("evil\u{202e}txt", "eviltxt");
        check("héllo 世界", "héllo 世界");
    }
}
