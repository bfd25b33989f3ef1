//! Words that make a steering message urgent.

/// Whether `text` begins with one of `words`, ignoring case. A word that
/// ends in a letter must end there in the text too: `stop` is not in `stopwatch`.
pub fn is_urgent(text: &str, words: &[String]) -> bool {
    let text = text.trim_start().to_lowercase();
    words.iter().map(|word| word.trim().to_lowercase()).filter(|word| !word.is_empty()).any(|word| {
        text.strip_prefix(word.as_str()).is_some_and(|rest| {
            let word_goes_on = rest.chars().next().is_some_and(|next| next.is_ascii_alphanumeric());
            let ends_in_letter = word.chars().last().is_some_and(|last| last.is_ascii_alphanumeric());
            !(ends_in_letter && word_goes_on)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urgent_is_what_begins_with_an_urgent_word() {
        let words = ["wait", "no,", "等等", " "].map(str::to_owned);
        for text in ["wait", "Wait, use tabs", "  wait!", "no, the other", "等等我", "WAIT for it"] {
            assert!(is_urgent(text, &words), "{text}");
        }
        for text in ["", "waiter", "no problem", "please wait", "等"] {
            assert!(!is_urgent(text, &words), "{text}");
        }
        assert!(!is_urgent("wait", &[]));
    }
}
