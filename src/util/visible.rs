//! Spells out characters that cannot be seen.
//!
//! What is printed drops them (`escapes`). What a person has to judge, such as a command or a
//! path, shows them, because they are part of what happens. `<U+202E>` is the only form.

use std::ops::Range;

use super::escapes::is_dropped;

/// Text that is shown in place of a character.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replaced {
    /// In the text that is shown, in bytes.
    pub range: Range<usize>,
    pub source: char,
}

/// Whether [`spell_out`] changes nothing but line breaks.
pub fn is_all_visible(text: &str) -> bool {
    let is_plain = text.bytes().all(|byte| matches!(byte, b'\n' | b' '..=b'~'));
    is_plain || judged(text).all(|(c, is_visible)| c == '\n' || is_visible)
}

/// The text with control characters, marks that reorder text and other invisible characters spelt
/// out, and what was replaced. `tab` takes the place of tabs, and line breaks stay; `None` spells out
/// both, as for names of files.
pub fn spell_out(text: &str, tab: Option<&str>) -> (String, Vec<Replaced>) {
    let (mut shown, mut replaced) = (String::with_capacity(text.len()), Vec::new());
    let mut chars = judged(text).peekable();
    while let Some((c, is_visible)) = chars.next() {
        match (c, tab) {
            ('\r', Some(_)) if chars.peek().is_some_and(|(next, _)| *next == '\n') => {}
            ('\n', Some(_)) => shown.push('\n'),
            _ if is_visible => shown.push(c),
            _ => {
                let start = shown.len();
                match tab.filter(|_| c == '\t') {
                    Some(tab) => shown.push_str(tab),
                    None => shown.push_str(&spelt_out(c)),
                }
                replaced.push(Replaced { range: start..shown.len(), source: c });
            }
        }
    }
    (shown, replaced)
}

/// The text with what cannot be seen spelt out, other than control characters.
pub fn spell_out_marks(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for (c, is_visible) in judged(text) {
        if is_visible || c.is_control() {
            shown.push(c);
        } else {
            shown.push_str(&spelt_out(c));
        }
    }
    shown
}

/// The characters of a text, and whether each can be seen, by itself or as a part of what is before it.
fn judged(text: &str) -> impl Iterator<Item = (char, bool)> {
    let mut chars = text.chars();
    let (mut before, mut n_tags) = (None, 0_usize);
    std::iter::from_fn(move || {
        let c = chars.next()?;
        let is_visible = match n_tags.checked_sub(1) {
            Some(left) => {
                n_tags = left;
                true
            }
            None => !may_be_invisible(c) || belongs(c, before, chars.as_str()),
        };
        if c == BLACK_FLAG {
            n_tags = tags_of_flag(chars.as_str());
        }
        before = is_visible.then_some(c);
        Some((c, is_visible))
    })
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
        || matches!(c, '\u{fe00}'..='\u{fe0f}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Whether a character without ink is a part of the one before it, which is visible: joiners and selectors are
/// parts of emoji and of words in some scripts, but not of letters of ASCII, and only one at a time. More of them
/// would be a text that nobody sees.
fn belongs(c: char, before: Option<char>, after: &str) -> bool {
    let Some(before) = before else { return false };
    let has_ink = !before.is_ascii() && !may_be_invisible(before);
    match c {
        // Keycaps: `1`, the selector, the key around it.
        '\u{fe0e}' | '\u{fe0f}' if before.is_ascii() => {
            matches!(before, '0'..='9' | '#' | '*') && after.starts_with('\u{20e3}')
        }
        '\u{200d}' => has_ink || before == '\u{fe0f}',
        '\u{200c}' | '\u{180b}'..='\u{180d}' | '\u{180f}' | '\u{fe00}'..='\u{fe0f}' => has_ink,
        '\u{e0100}'..='\u{e01ef}' => is_ideograph(before),
        _ => false,
    }
}

/// Whether a character may have an ideographic variation, <https://www.unicode.org/reports/tr37/>.
fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}')
        || matches!(c, '\u{20000}'..='\u{3ffff}')
}

/// What the flags of a part of a country begin with.
const BLACK_FLAG: char = '\u{1f3f4}';

/// The number of tags that make a flag of the black one: those of England, Scotland or Wales, the only ones that
/// are meant for interchange, <https://www.unicode.org/reports/tr51/#valid-emoji-tag-sequences>. Any others could
/// be a text that nobody sees.
fn tags_of_flag(after: &str) -> usize {
    let tag = |c: char| char::from_u32(u32::from(c) - 0xe0000).filter(char::is_ascii_alphanumeric);
    let is_tag = |c: &char| matches!(c, '\u{e0020}'..='\u{e007e}');
    let name: String = after.chars().take_while(is_tag).map_while(tag).take(6).collect();
    let ends = after.chars().nth(name.len()) == Some('\u{e007f}');
    if ends && matches!(name.as_str(), "gbeng" | "gbsct" | "gbwls") { name.len() + 1 } else { 0 }
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
        // Selectors and tags without end would be any text.
        check("😀\u{fe00}\u{fe01}a\u{fe0f}", "😀\u{fe00}<U+FE01>a<U+FE0F>");
        check("a\u{fe00}\u{e0100}\u{fe01}", "a<U+FE00><U+E0100><U+FE01>");
        check("葛\u{e0100}\u{fe01}\u{e0101}", "葛\u{e0100}<U+FE01><U+E0101>");
        check("😀\u{e0141}\u{200d}", "😀<U+E0141><U+200D>");
        check("❤\u{fe0f}\u{200d}\u{fe0f}\u{200d}", "❤\u{fe0f}\u{200d}<U+FE0F><U+200D>");
        check("1\u{fe0f}2\u{fe0e}", "1<U+FE0F>2<U+FE0E>");
        check("🏴\u{e0072}\u{e006d}\u{e007f}", "🏴<U+E0072><U+E006D><U+E007F>");
        check("🏴\u{e0067}\u{e0062}", "🏴<U+E0067><U+E0062>");
        let england = "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}";
        check(england, england);
        check(&format!("{england}\u{e0061}\u{200d}"), &format!("{england}<U+E0061><U+200D>"));
        check("héllo 世界 a\nb e\u{301} 1\u{fe0f}\u{20e3}", "héllo 世界 a\nb e\u{301} 1\u{fe0f}\u{20e3}");
    }

    #[test]
    fn parts_of_emoji_and_words_stay() {
        let flag = "🏴\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}";
        let rainbow = "🏳\u{fe0f}\u{200d}🌈";
        for text in [
            "👩\u{200d}💻",
            "می\u{200c}خواهم",
            flag,
            "葛\u{e0100}",
            rainbow,
            "❤\u{fe0f}",
            "#\u{fe0f}\u{20e3}",
        ] {
            assert_eq!(spell_out(text, None).0, text);
        }
    }

    #[test]
    fn at_most_one_character_without_ink_follows_each_that_has_some() {
        let without_ink = (0xfe00..=0xfe0f).chain(0xe0020..=0xe007f).chain(0xe0100..=0xe01ef);
        let payload: String = without_ink.filter_map(char::from_u32).collect();
        for base in ["a", "1", "😀", "葛", "🏴", "❤\u{fe0f}", "👩\u{200d}"] {
            let shown = spell_out(&format!("{base}{payload}"), None).0;
            let n_hidden = shown.chars().filter(|c| may_be_invisible(*c)).count();
            assert!(n_hidden <= 1, "{base:?}: {shown:?}");
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
        let replaced = spell_out("\u{1b}\t\u{1b}é\u{200b}\n", Some("   ")).1;
        let places: Vec<_> = replaced.into_iter().map(|Replaced { range, source }| (range, source)).collect();
        assert_eq!(places, [(0..8, '\u{1b}'), (8..11, '\t'), (11..19, '\u{1b}'), (21..29, '\u{200b}')]);
        assert_eq!(spell_out("a\n\tb", None).0, "a<U+000A><U+0009>b");
    }
}
