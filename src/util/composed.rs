//! Text in the form in which equal characters are equal bytes (NFC).

use std::borrow::Cow;

use unicode_normalization::{IsNormalized, UnicodeNormalization as _, is_nfc_quick};

/// `text` in that form.
pub fn composed(text: &str) -> Cow<'_, str> {
    if text.is_ascii() || is_nfc_quick(text.chars()) == IsNormalized::Yes {
        return text.into();
    }
    text.nfc().collect::<String>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_decomposed_text_is_changed() {
        for (text, expected) in
            [("cafe\u{301}", "café"), ("\u{1112}\u{1161}\u{11ab}", "한"), ("フ\u{309a}", "プ")]
        {
            assert_eq!(composed(text), expected);
        }
        for text in ["a.rs", "café", "한글", "プ", "模型"] {
            assert!(matches!(composed(text), Cow::Borrowed(_)), "{text}");
        }
    }
}
