//! Text of files that should be UTF-8: the place of what is not.

use std::borrow::Cow;
use std::fmt;

/// The first bytes of a file that are not UTF-8. U+FFFD stands for them and for all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InvalidText {
    /// From 1.
    pub(super) line: usize,
    /// From 0.
    offset: usize,
    byte: u8,
}

impl fmt::Display for InvalidText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (byte, offset) = (self.byte, self.offset);
        write!(
            f,
            "byte {offset} (0x{byte:02x}) is not UTF-8 and is replaced by U+FFFD; save the file as UTF-8"
        )
    }
}

/// The text of `bytes`, and where it is not UTF-8. With `is_cut`, `bytes` are the beginning of a
/// file, whose last character may be incomplete.
pub(super) fn decode(bytes: &[u8], is_cut: bool) -> (Cow<'_, str>, Option<InvalidText>) {
    let Err(error) = std::str::from_utf8(bytes) else { return (String::from_utf8_lossy(bytes), None) };
    let offset = error.valid_up_to();
    let is_last_character = error.error_len().is_none();
    let invalid = (!(is_cut && is_last_character)).then(|| InvalidText {
        line: 1 + bytes.iter().take(offset).filter(|byte| **byte == b'\n').count(),
        offset,
        byte: bytes.get(offset).copied().unwrap_or_default(),
    });
    (String::from_utf8_lossy(bytes), invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_byte_that_is_not_utf_8_has_its_place() {
        let check = |bytes: &[u8], is_cut: bool, text: &str, place: Option<(usize, usize)>| {
            let (decoded, invalid) = decode(bytes, is_cut);
            assert_eq!((&*decoded, invalid.map(|found| (found.line, found.offset))), (text, place));
        };
        check("é\nü".as_bytes(), false, "é\nü", None);
        check(b"a\nb\xff\xfe\nc\xff", false, "a\nb\u{fffd}\u{fffd}\nc\u{fffd}", Some((2, 3)));
        check(b"a\xc3", false, "a\u{fffd}", Some((1, 1)));
        check(b"a\xc3", true, "a\u{fffd}", None);
        check(b"\xff\xc3", true, "\u{fffd}\u{fffd}", Some((1, 0)));
        let (_, invalid) = decode(b"x\n\xe9", false);
        let expected = "byte 2 (0xe9) is not UTF-8 and is replaced by U+FFFD; save the file as UTF-8";
        assert_eq!(invalid.unwrap().to_string(), expected);
    }
}
