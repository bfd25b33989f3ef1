//! Suggestions for misspelt names.

/// The element of `known` with the most similar spelling, if similar enough.
pub fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let beginning = known.iter().find(|name| word.len() >= 3 && name.starts_with(word));
    let n_wrong = |name: &str| strsim::damerau_levenshtein(word, name);
    // Letters are swapped more often than forgotten.
    let closest = known.iter().min_by_key(|name| (n_wrong(name), name.len().abs_diff(word.len())));
    // Allows two wrong letters of five, or one of three.
    let alike = closest.filter(|name| n_wrong(name) * 5 <= word.len().max(name.len()) * 2);
    beginning.or(alike).copied()
}

/// The elements of `known` in the order of their similarity to `word`.
pub fn most_similar_first<'a>(word: &str, mut known: Vec<&'a str>) -> Vec<&'a str> {
    let begins_alike = |name: &str| !word.is_empty() && (name.starts_with(word) || word.starts_with(name));
    known.sort_by_cached_key(|name| (!begins_alike(name), strsim::damerau_levenshtein(word, name)));
    known
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_ordered_by_their_spelling() {
        let known = || vec!["zai", "openai", "anthropic", "openrouter"];
        assert_eq!(most_similar_first("antropic", known())[0], "anthropic");
        assert_eq!(most_similar_first("open", known())[..2], ["openai", "openrouter"]);
        assert_eq!(most_similar_first("", known()).len(), 4);
    }

    #[test]
    fn beginnings_and_few_wrong_letters_are_recognised() {
        let known = ["theme", "thinking", "retry.maxRetries"];
        let check =
            |word: &str, expected: Option<&str>| assert_eq!(nearest(word, &known), expected, "{word}");
        check("thi", Some("thinking"));
        check("tehme", Some("theme"));
        check("retry.maxRetrys", Some("retry.maxRetries"));
        check("frobnicate", None);
        check("", None);
    }
}
