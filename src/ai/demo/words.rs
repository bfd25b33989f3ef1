//! Splits requests and answers into words.

/// Pieces of a few words, as a service streams them.
pub(super) fn pieces(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive([' ', '\n', ',', '"'])
}

/// Whether any of `words` occurs in `text` as a word of its own, ignoring case.
pub(super) fn has_word(text: &str, words: &[&str]) -> bool {
    let lower = text.to_lowercase();
    lower.split(|char: char| !char.is_alphanumeric() && char != '\'').any(|word| words.contains(&word))
}

/// The rest of `text` after the first of `openings` it begins with, ignoring case.
/// An opening must end at a word boundary: `new` does not open `new.txt`.
pub(super) fn opened_by<'a>(text: &'a str, openings: &[&str]) -> Option<&'a str> {
    openings.iter().find_map(|opening| {
        let (head, rest) = text.split_at_checked(opening.len())?;
        let behind = rest.trim_start_matches([',', '.', ':', ';', '!', '?']);
        let at_end = behind.is_empty() || behind.starts_with(char::is_whitespace);
        (head.eq_ignore_ascii_case(opening) && at_end)
            .then(|| rest.trim_start_matches([',', ':']).trim_start())
    })
}

/// `text` without the one of `openings` at its start, if any.
pub(super) fn without<'a>(text: &'a str, openings: &[&str]) -> &'a str {
    opened_by(text, openings).unwrap_or(text)
}

/// A request without the polite phrases around it.
pub(super) fn request(text: &str) -> &str {
    const COURTESY: &[&str] =
        &["please", "can you", "could you", "would you", "now", "then", "ok", "okay", "so", "pi"];
    let mut text = text.trim();
    while let Some(rest) = opened_by(text, COURTESY).filter(|rest| !rest.is_empty()) {
        text = rest;
    }
    let lower_end = text.len().saturating_sub(" please".len());
    match text.split_at_checked(lower_end) {
        Some((rest, end)) if end.eq_ignore_ascii_case(" please") => rest.trim_end_matches(','),
        _ => text,
    }
}

/// The first argument of a request, quoted or a single word, and the rest.
/// The flag reports whether it was quoted.
pub(super) fn argument(text: &str) -> Option<(&str, bool, &str)> {
    let text = text.trim_start();
    for (open, close) in QUOTES {
        if let Some((inner, rest)) = text.strip_prefix(open).and_then(|rest| rest.split_once(close)) {
            return (!inner.is_empty()).then_some((inner, true, rest.trim_start()));
        }
    }
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (!word.is_empty()).then_some((word, false, rest.trim_start()))
}

const QUOTES: [(char, char); 4] = [('`', '`'), ('"', '"'), ('“', '”'), ('\'', '\'')];

/// Whether the rest of a request is only punctuation.
pub(super) fn is_end(rest: &str) -> bool {
    rest.chars().all(|char| char.is_whitespace() || ".?!".contains(char))
}

/// The text between the first pair of backticks or quotes.
pub(super) fn quoted(text: &str) -> Option<&str> {
    QUOTES.iter().find_map(|(open, close)| {
        let (_, rest) = text.split_once(*open)?;
        let (inner, _) = rest.split_once(*close)?;
        (!inner.is_empty()).then_some(inner)
    })
}

/// The first word that looks like a path: with a dot inside or a slash.
pub(super) fn path(text: &str) -> Option<&str> {
    text.split_whitespace().map(bare).find(|word| is_path(word))
}

/// A word without surrounding quotes, punctuation and the `@` of a reference.
pub(super) fn bare(word: &str) -> &str {
    let word = word.trim_matches(|char: char| {
        matches!(char, '`' | '"' | '\'' | ',' | ';' | ':' | '?' | '!' | '(' | ')')
    });
    let word = word.strip_suffix('.').unwrap_or(word);
    word.strip_prefix('@').unwrap_or(word)
}

/// Whether a word looks like a path: with a dot inside or a slash.
pub(super) fn is_path(word: &str) -> bool {
    let dot_inside = word.trim_start_matches('.').contains('.') || word.starts_with('.') && word.len() > 2;
    word.contains('/') || dot_inside
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
        assert!(has_word("List files!", &["list"]));
        assert!(!has_word("enlisted", &["list"]));
        assert_eq!(pieces("a b,c").collect::<Vec<_>>(), ["a ", "b,", "c"]);
    }

    #[test]
    fn only_the_beginning_opens_a_request() {
        assert_eq!(opened_by("Search for TODO", &["search for"]), Some("TODO"));
        assert_eq!(opened_by("stop, please", &["stop"]), Some("please"));
        assert_eq!(opened_by("running", &["run"]), None);
        for name in ["new.txt", "new-2", "new_2", "new/a", "new:a", ".new"] {
            assert_eq!(opened_by(name, &["new"]), None, "{name}");
        }
        assert_eq!(opened_by("stop...", &["stop"]), Some("..."));
        assert_eq!(opened_by("do not run it", &["run"]), None);
        assert_eq!(opened_by("ä", &["a"]), None);
    }

    #[test]
    fn courtesy_is_passed_over() {
        for said in
            ["run it", "please run it", "Can you please run it", "ok, run it please", "run it, please"]
        {
            assert_eq!(request(said), "run it", "{said}");
        }
        assert_eq!(request("please"), "please");
        assert_eq!(request("日本"), "日本");
    }

    #[test]
    fn an_argument_is_a_word_or_what_is_quoted() {
        assert_eq!(argument("hello with b"), Some(("hello", false, "with b")));
        assert_eq!(argument(" `a b` with c"), Some(("a b", true, "with c")));
        assert_eq!(argument("it's"), Some(("it's", false, "")));
        assert_eq!(argument("  "), None);
        assert_eq!(argument("``"), None);
    }
}
