//! Recognises strings in which a terminal tells something: `ESC ]`, `ESC P`, `ESC _`, `ESC ^` and `ESC X`, up to
//! BEL or `ESC \`.
//!
//! Without a key protocol, Alt with one of these characters sends the same two bytes. Strings that pi asked
//! for are known by how they begin. Others come too: a program that ran before pi may have asked, and ended
//! before the answer.

use super::super::answers::STRINGS;

const ESCAPE: u8 = 0x1b;
/// A string that is longer is not looked for in what arrived.
const LONGEST: usize = 4_096;

/// Whether a string begins here, of which this much arrived at once: nobody types so fast.
pub(super) fn begins(bytes: &[u8]) -> bool {
    let [ESCAPE, kind @ (b']' | b'P' | b'_' | b'^' | b'X'), rest @ ..] = bytes else { return false };
    STRINGS.iter().any(|start| bytes.starts_with(start)) || has_head(*kind, rest) || is_whole(rest)
}

/// Whether a string may begin here, of which so little has arrived that it may also be Alt with a key.
pub(super) fn may_begin(bytes: &[u8]) -> bool {
    let is_number = |rest: &[u8]| rest.len() <= 4 && rest.iter().all(u8::is_ascii_digit);
    let may_be_named = |rest: &[u8]| rest.len() <= 4 && rest.iter().all(|byte| (0x30..=0x3f).contains(byte));
    match bytes {
        [ESCAPE, b']', rest @ ..] => is_number(rest),
        [ESCAPE, b'P', rest @ ..] => may_be_named(rest),
        [ESCAPE, b'_' | b'^' | b'X'] => true,
        _ => false,
    }
}

/// Whether `bytes`, which came at once, are the rest of a string whose start was taken for keys. They are more than
/// what somebody could have typed while a connection was slow.
pub(super) fn continues(start: &[u8], bytes: &[u8]) -> bool {
    /// Shorter than the rest of any string about colours or the terminal's name.
    const LEAST: usize = 6;
    bytes.len() >= LEAST && begins(&[start, bytes].concat())
}

/// Whether this is a string that answers a question of pi, or the beginning of one.
pub(super) fn may_answer(sequence: &[u8]) -> bool {
    sequence.len() > 1
        && STRINGS.iter().any(|start| sequence.starts_with(start) || start.starts_with(sequence))
}

/// The number of an OSC with its semicolon, or the parameters of a DCS with its name.
fn has_head(kind: u8, rest: &[u8]) -> bool {
    let n_parameters = |of: fn(&u8) -> bool| rest.iter().take_while(|byte| of(byte)).count();
    match kind {
        b']' => {
            let n_digits = n_parameters(u8::is_ascii_digit);
            (1..=4).contains(&n_digits) && rest.get(n_digits) == Some(&b';')
        }
        b'P' => {
            let n = n_parameters(|byte| (0x30..=0x3f).contains(byte) || *byte == b'!');
            n > 0 && matches!(rest.get(n), Some(b'|' | b'+' | b'$'))
        }
        _ => false,
    }
}

/// Whether the string ends here, and has nothing in it that only keys send.
fn is_whole(rest: &[u8]) -> bool {
    let near = &rest[..rest.len().min(LONGEST)];
    let n_text = near.iter().take_while(|byte| **byte >= 0x20 && **byte != 0x7f).count();
    n_text > 0 && matches!(near.get(n_text..), Some([0x07, ..] | [ESCAPE, b'\\', ..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_told_from_keys_with_alt() {
        for string in [
            "\x1b]12;rgb:ffff/ffff/ffff\x07",
            "\x1b]52;c;aGVsbG8=\x1b\\",
            "\x1b]lTitle\x1b\\",
            "\x1b]12;",
            "\x1bP1+r524742=38\x1b\\",
            "\x1bP!|00000000\x1b\\",
            "\x1bP1$r0 q\x1b\\",
            "\x1bP1+r",
            "\x1b^text\x1b\\",
            "\x1bXtext\x1b\\",
            "\x1b_text\x1b\\after",
        ] {
            assert!(begins(string.as_bytes()), "{string:?}");
        }
        for keys in [
            "\x1b]",
            "\x1b]1",
            "\x1b]a",
            "\x1bP",
            "\x1bPa",
            "\x1bP1",
            "\x1b_",
            "\x1b^ab",
            "\x1b]\x07",
            "\x1b]a\rb\x07",
            "\x1b]a\x1b[A",
            "\x1b[A",
            "a",
        ] {
            assert!(!begins(keys.as_bytes()), "{keys:?}");
        }
        for start in ["\x1b]", "\x1b]1", "\x1b]1012", "\x1bP", "\x1bP>", "\x1bP1", "\x1b_"] {
            assert!(may_begin(start.as_bytes()) && !begins(start.as_bytes()), "{start:?}");
        }
        for keys in ["\x1b", "\x1b]a", "\x1b]12345", "\x1bPa", "\x1b_a", "\x1b[", "a", ""] {
            assert!(!may_begin(keys.as_bytes()), "{keys:?}");
        }
    }
}
