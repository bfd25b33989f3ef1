//! Spellings of file names that readers cannot tell apart: unusual spaces, composed and
//! decomposed accents, straight and curly quotes.
//!
//! Models retype the names they read. Asks no disk.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use unicode_normalization::UnicodeNormalization as _;

/// The common spelling of every name that looks like `name`: plain spaces, straight quotes,
/// composed accents (NFC).
pub fn plain(name: &str) -> Cow<'_, str> {
    if name.is_ascii() {
        return Cow::Borrowed(name);
    }
    Cow::Owned(name.nfc().map(plain_char).collect())
}

/// Whether another name may have the same common spelling.
pub fn has_others(name: &str) -> bool {
    !name.is_ascii() || name.contains([' ', '\'', '"'])
}

/// `path` with the common spelling of each name, for comparisons.
pub fn plain_path(path: &Path) -> Cow<'_, Path> {
    match path.to_str() {
        Some(text) if !text.is_ascii() => Cow::Owned(PathBuf::from(plain(text).into_owned())),
        Some(_) | None => Cow::Borrowed(path),
    }
}

/// Whether a character is not U+0020 but looks like it.
pub fn is_unusual_space(c: char) -> bool {
    matches!(c, '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}')
}

fn plain_char(c: char) -> char {
    match c {
        c if is_unusual_space(c) => ' ',
        '\u{2018}' | '\u{2019}' => '\'',
        '\u{201c}' | '\u{201d}' => '"',
        c => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_look_alike_have_one_common_spelling() {
        let check = |name: &str, expected: &str| {
            assert_eq!(plain(name), expected);
            assert!(has_others(name) && has_others(expected), "{name}");
        };
        check("a\u{a0}b\u{202f}c\u{3000}d\u{2009}e\u{205f}f", "a b c d e f");
        check("cafe\u{301}", "café");
        check("it\u{2019}s \u{201c}x\u{201d}", "it's \"x\"");
        assert!(!has_others("a-b_c.rs"));
        // A space of no width is no space.
        assert_eq!(plain("a\u{200b}b"), "a\u{200b}b");
    }

    #[test]
    fn paths_are_compared_in_their_common_spelling() {
        assert_eq!(plain_path(Path::new("/a\u{a0}b/c")), Path::new("/a b/c"));
        assert_eq!(plain_path(Path::new("/a/b")), Path::new("/a/b"));
    }
}
