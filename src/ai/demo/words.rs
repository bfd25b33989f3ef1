//! Taking a request and an answer apart.

/// Pieces of a few words, as a service streams them.
pub(super) fn pieces(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive([' ', '\n', ',', '"'])
}

/// Whether any of `words` occurs in `text` as a word of its own, ignoring case.
pub(super) fn has_word(text: &str, words: &[&str]) -> bool {
    let lower = text.to_lowercase();
    lower.split(|char: char| !char.is_alphanumeric() && char != '\'').any(|word| words.contains(&word))
}

/// What stands between the first pair of backticks or quotes.
pub(super) fn quoted(text: &str) -> Option<&str> {
    for (open, close) in [('`', '`'), ('"', '"'), ('“', '”'), ('\'', '\'')] {
        if let Some((_, rest)) = text.split_once(open)
            && let Some((inner, _)) = rest.split_once(close)
            && !inner.is_empty()
        {
            return Some(inner);
        }
    }
    None
}

/// The first word that looks like a path: with a dot inside or a slash.
pub(super) fn path(text: &str) -> Option<&str> {
    text.split_whitespace()
        .map(|word| {
            word.trim_matches(|char: char| {
                matches!(char, '`' | '"' | '\'' | ',' | ';' | ':' | '?' | '!' | '(' | ')')
            })
        })
        .map(|word| word.strip_suffix('.').unwrap_or(word))
        .map(|word| word.strip_prefix('@').unwrap_or(word))
        .find(|word| {
            let dot_inside =
                word.trim_start_matches('.').contains('.') || word.starts_with('.') && word.len() > 2;
            word.contains('/') || dot_inside
        })
}

/// What follows the first of `markers` in `text`, ignoring case; trimmed.
pub(super) fn after<'a>(text: &'a str, markers: &[&str]) -> Option<&'a str> {
    markers.iter().find_map(|marker| {
        let at = find_ignoring_case(text, marker)?;
        let rest = text.get(at + marker.len()..)?.trim();
        (!rest.is_empty()).then_some(rest)
    })
}

/// Where `needle` (ASCII) occurs in `text`, ignoring ASCII case.
pub(super) fn find_ignoring_case(text: &str, needle: &str) -> Option<usize> {
    text.char_indices()
        .map(|(at, _)| at)
        .find(|at| text.get(*at..at + needle.len()).is_some_and(|part| part.eq_ignore_ascii_case(needle)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_come_apart() {
        assert_eq!(path("please read src/main.rs, then stop."), Some("src/main.rs"));
        assert_eq!(path("what is in README.md?"), Some("README.md"));
        assert_eq!(path("edit .gitignore"), Some(".gitignore"));
        assert_eq!(path("tell me a story."), None);
        assert_eq!(quoted("run `cargo test` now"), Some("cargo test"));
        assert_eq!(after("Search for TODO", &["search for "]), Some("TODO"));
        assert!(has_word("List files!", &["list"]));
        assert!(!has_word("enlisted", &["list"]));
        assert_eq!(pieces("a b,c").collect::<Vec<_>>(), ["a ", "b,", "c"]);
    }
}
