//! Text that must never be shown.

use std::fmt;

/// A key or token in transit. Its `Debug` prints a placeholder.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// A typed or pasted secret. Removes surrounding white space and line breaks inside,
    /// which come from wrapped text, and invisible characters,
    /// such as a byte order mark or those that web pages insert.
    pub fn typed(text: &str) -> Self {
        Self(text.chars().filter(|c| !is_invisible(*c)).collect::<String>().trim().to_owned())
    }

    /// The first character that no key contains, with its position, counted from 1: keys
    /// consist of visible ASCII characters.
    pub fn odd_character(key: &str) -> Option<(usize, char)> {
        key.chars().enumerate().find(|(_, c)| !c.is_ascii_graphic()).map(|(at, c)| (at + 1, c))
    }

    /// The text, for sending or storing.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether there is nothing to hide.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Invisible characters: controls, joiners and zero-width spaces, marks
/// of direction and of variants. Unicode, "Default_Ignorable_Code_Point".
fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pasted_secret_has_no_line_ends_and_is_not_printed() {
        let secret = Secret::typed(" sk-can\r\n\u{1b}ary\n");
        assert_eq!(secret.expose(), "sk-canary");
        assert_eq!(format!("{secret:?}"), "Secret(…)");
        assert!(Secret::typed(" \n").is_empty());
    }

    #[test]
    fn what_cannot_be_seen_is_no_part_of_a_secret() {
        let check = |text: &str| assert_eq!(Secret::typed(text).expose(), "sk-1", "{text:?}");
        check("\u{feff}sk-1");
        check("s\u{200b}k-1\u{200b}");
        check("\u{202a}sk-1\u{202c}");
        check("sk\u{ad}-\u{2060}1");
        check("\u{a0}sk-1\u{3000}");
        check("sk-\u{fe0f}1\u{e0041}");
    }

    #[test]
    fn what_no_key_has_is_found() {
        assert_eq!(Secret::odd_character("sk-aZ09_~!$"), None);
        assert_eq!(Secret::odd_character("sk\u{2013}1"), Some((3, '\u{2013}')));
        assert_eq!(Secret::odd_character("sk 1é"), Some((3, ' ')));
    }
}
