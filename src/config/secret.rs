//! Text that must not be seen.

use std::fmt;

/// A key or a token on its way. What prints it prints a mark instead.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// What somebody typed or pasted: blanks around it and line ends in it, which
    /// come from wrapped text, are not part of a secret; nor is what cannot be seen.
    pub fn typed(text: &str) -> Self {
        Self(text.chars().filter(|c| !c.is_control()).collect::<String>().trim().to_owned())
    }

    /// The text, for sending or storing.
    pub fn expose(&self) -> &str {
        &self.0
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
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
}
