//! Spells out characters that cannot be seen.
//!
//! What is printed drops them (`escapes`). What a person has to judge, such as a command or a
//! path, shows them, because they are part of what happens. `<U+202E>` is the only form.

use std::ops::Range;

use super::escapes::is_dropped;

/// Whether [`spell_out`] changes nothing but line breaks.
pub fn is_all_visible(text: &str) -> bool {
    text.chars().all(|c| c == '\n' || !may_be_invisible(c))
}

/// The text with control characters, marks that reorder text and other invisible characters spelt
/// out, and where that is. `tab` takes the place of tabs, and line breaks stay; `None` spells out
/// both, as for names of files.
pub fn spell_out(text: &str, tab: Option<&str>) -> (String, Vec<Range<usize>>) {
    let (mut shown, mut ranges) = (String::with_capacity(text.len()), Vec::<Range<usize>>::new());
    let mut chars = text.chars().peekable();
    let mut before = None;
    while let Some(c) = chars.next() {
        let mut is_shown = true;
        match (c, tab) {
            ('\r', Some(_)) if chars.peek() == Some(&'\n') => {}
            ('\n', Some(_)) => shown.push('\n'),
            ('\t', Some(tab)) => shown.push_str(tab),
            _ if is_invisible(c, before) => {
                is_shown = false;
                let start = shown.len();
                shown.push_str(&spelt_out(c));
                match ranges.last_mut() {
                    Some(last) if last.end == start => last.end = shown.len(),
                    _ => ranges.push(start..shown.len()),
                }
            }
            _ => shown.push(c),
        }
        before = is_shown.then_some(c);
    }
    (shown, ranges)
}

/// The text with what cannot be seen spelt out, other than control characters.
pub fn spell_out_marks(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut before = None;
    for c in text.chars() {
        if !c.is_control() && is_invisible(c, before) {
            shown.push_str(&spelt_out(c));
            before = None;
        } else {
            shown.push(c);
            before = Some(c);
        }
    }
    shown
}

fn spelt_out(c: char) -> String {
    format!("<U+{:04X}>", u32::from(c))
}

/// Whether a character has no ink of its own, or changes the order of others. It may still belong
/// to the one before it.
fn may_be_invisible(c: char) -> bool {
    is_dropped(c)
        || matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}')
        || matches!(c, '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200d}' | '\u{2028}' | '\u{2029}')
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}')
        || matches!(c, '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Whether a character cannot be seen after the one before it: joiners, selectors and tags are
/// parts of emoji and of words in some scripts, but not between the letters of ASCII.
fn is_invisible(c: char, before: Option<char>) -> bool {
    let is_tag = |c: char| matches!(c, '\u{e0020}'..='\u{e007f}');
    match c {
        '\u{200c}' | '\u{200d}' | '\u{180b}'..='\u{180d}' | '\u{180f}' | '\u{e0100}'..='\u{e01ef}' => {
            before.is_none_or(|before| before.is_ascii() || may_be_invisible(before))
        }
        _ if is_tag(c) => !before.is_some_and(|before| before == '\u{1f3f4}' || is_tag(before)),
        _ => may_be_invisible(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_is_spelt_out() {
        let check = |text: &str, expected: &str| {
            assert_eq!(spell_out(text, Some("  ")).0, expected, "{text:?}");
            assert_eq!(is_all_visible(text), text == expected, "{text:?}");
        };
        check("echo \u{202e} rtl \u{1b}[2J", "echo <U+202E> rtl <U+001B>[2J");
        check("a\u{0}b\u{7f}\u{9b}31m", "a<U+0000>b<U+007F><U+009B>31m");
        check("a\tb\r\nc\rd\n", "a  b\nc<U+000D>d\n");
        check("pass\u{200b}word\u{feff}\u{2028}\u{ad}", "pass<U+200B>word<U+FEFF><U+2028><U+00AD>");
        check("a\u{200d}b \u{e0041}\u{e0041}", "a<U+200D>b <U+E0041><U+E0041>");
        check("héllo 世界 a\nb e\u{301} 1\u{fe0f}\u{20e3}", "héllo 世界 a\nb e\u{301} 1\u{fe0f}\u{20e3}");
    }

    #[test]
    fn parts_of_emoji_and_words_stay() {
        for text in ["👩\u{200d}💻", "می\u{200c}خواهم", "🏴\u{e0067}\u{e0062}\u{e007f}", "葛\u{e0100}"]
        {
            assert_eq!(spell_out(text, None).0, text);
        }
    }

    #[test]
    fn control_characters_of_output_stay_when_marks_are_spelt_out() {
        let check = |text: &str, expected: &str| assert_eq!(spell_out_marks(text), expected, "{text:?}");
        check(
            "\u{1b}[31m\u{202e}red\u{1b}[0m\r\n\tx\u{200b}",
            "\u{1b}[31m<U+202E>red\u{1b}[0m\r\n\tx<U+200B>",
        );
        check("👩\u{200d}💻 می\u{200c}خواهم", "👩\u{200d}💻 می\u{200c}خواهم");
    }

    #[test]
    fn places_of_what_is_spelt_out_are_known() {
        assert_eq!(spell_out("\u{1b}\u{1b}é\u{1b}", None).1, [0..16, 18..26]);
        assert_eq!(spell_out("a\n\tb", None).0, "a<U+000A><U+0009>b");
    }
}
