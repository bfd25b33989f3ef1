//! Halves of a character that a server cuts over two deltas.
//!
//! JSON writes a character beyond the first plane as a pair of surrogates, and a
//! gateway that counts UTF-16 units may send each in an event of its own. Rust's
//! strings cannot hold one half, so [`mark`] writes a sign in its place wherever
//! the other half may be in another string. [`TextPiece`] passes the sign to the block, which
//! joins the halves; every other string has the replacement character instead.

use std::borrow::Cow;

use serde::Deserialize;

use crate::ai::messages::partial_json::replace_halves;

/// Begins a sign: a code point that no text may contain.
const LEAD: char = '\u{10ffff}';
/// The second character of a sign is this one plus the offset of its half from U+D800.
const FIRST: u32 = 0x10_f000;
const LONE: &str = "\u{fffd}";

/// Half of a character that is not in the first plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Half(u16);

impl Half {
    fn is_first(self) -> bool {
        self.0 < 0xDC00
    }

    fn of_sign(sign: char) -> Option<Self> {
        let offset = u32::from(sign).checked_sub(FIRST)?;
        let unit = u16::try_from(offset).ok()?.checked_add(0xD800)?;
        (unit < 0xE000).then_some(Self(unit))
    }

    fn sign(self) -> Option<char> {
        char::from_u32(FIRST + u32::from(self.0 - 0xD800))
    }

    fn with(self, second: Self) -> Option<char> {
        char::decode_utf16([self.0, second.0]).next()?.ok()
    }
}

/// Replaces each half of a pair in JSON text that has no other half beside it. At the end of a
/// string the first half becomes a sign, as does the second half at its beginning; elsewhere
/// a half becomes the replacement character.
pub(super) fn mark(json: &str) -> Cow<'_, str> {
    replace_halves(json, |half| {
        let sign = Half(half.unit).sign().filter(|_| half.is_at_edge)?;
        Some([LEAD, sign])
    })
}

/// `text` with the replacement character in place of each sign.
pub(super) fn without_signs(text: &str) -> Cow<'_, str> {
    // No other UTF-8 sequence contains these bytes.
    if !text.contains(LEAD) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        let is_sign = char == LEAD && chars.next_if(|next| Half::of_sign(*next).is_some()).is_some();
        if is_sign { out.push_str(LONE) } else { out.push(char) }
    }
    Cow::Owned(out)
}

/// A string of a frame that continues a text: it may begin or end with half of a character.
///
/// Borrowed if it has no escapes.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(transparent)]
pub(super) struct TextPiece<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

impl TextPiece<'_> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Joins the pieces of one text. Looks at the ends of a piece alone, so that it costs nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Joint(Option<Half>);

impl Joint {
    /// The text that `piece` adds. A first half at its end waits for the next piece.
    pub(super) fn add<'t>(&mut self, piece: Cow<'t, str>) -> Cow<'t, str> {
        let begins = second_half(&piece);
        let waiting = if piece.is_empty() { return piece } else { self.0.take() };
        let mut text = match (waiting, begins) {
            (None, None) => piece,
            (waiting, begins) => {
                let joined = waiting.zip(begins).and_then(|(first, second)| first.with(second));
                let start = joined.map_or_else(|| LONE.to_owned(), String::from);
                Cow::Owned(start + &piece[begins.map_or(0, |_| sign_bytes())..])
            }
        };
        if let Some(half) = first_half(&text) {
            self.0 = Some(half);
            let end = text.len() - sign_bytes();
            match &mut text {
                Cow::Borrowed(text) => *text = &text[..end],
                Cow::Owned(text) => text.truncate(end),
            }
        }
        text
    }

    /// The replacement character if a half still waits, at the end of the text.
    pub(super) fn end(&mut self) -> Option<&'static str> {
        self.0.take().map(|_| LONE)
    }
}

const fn sign_bytes() -> usize {
    2 * LEAD.len_utf8()
}

/// The second half at the start of `text`.
fn second_half(text: &str) -> Option<Half> {
    let mut chars = text.strip_prefix(LEAD)?.chars();
    Half::of_sign(chars.next()?).filter(|half| !half.is_first())
}

/// The first half at the end of `text`.
fn first_half(text: &str) -> Option<Half> {
    // The last byte of almost every text excludes it.
    let last = text.chars().next_back()?;
    let half = Half::of_sign(last).filter(|half| half.is_first())?;
    text[..text.len() - last.len_utf8()].ends_with(LEAD).then_some(half)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text that the strings in `pieces` add up to, and what each of them adds.
    fn join(pieces: &[&str]) -> (String, Vec<String>) {
        let mut joint = Joint::default();
        let mut added = Vec::new();
        for piece in pieces {
            let json = format!("\"{piece}\"");
            let marked = mark(&json);
            let TextPiece(text) = serde_json::from_str(&marked).unwrap();
            added.push(joint.add(text).into_owned());
        }
        added.extend(joint.end().map(str::to_owned));
        (added.concat(), added)
    }

    #[test]
    fn halves_in_two_strings_become_one_character() {
        let check = |pieces: &[&str], expected: &str| assert_eq!(join(pieces).0, expected, "{pieces:?}");
        check(&[r"a\ud83d", r"\ude0bb"], "a😋b");
        check(&[r"\uD83D", r"\uDE0B"], "😋");
        check(&[r"a\ud83d", "", r"\ude0bb"], "a😋b");
        check(&[r"a\ud83d\ude0b", "b"], "a😋b");
        check(&[r"\ud83d", r"\ude0b\ud83d", r"\ude0b"], "😋😋");
        check(&[r"\n\ud83d", r"\ude0b\n"], "\n😋\n");
    }

    #[test]
    fn lone_halves_become_the_replacement_character() {
        let check = |pieces: &[&str], expected: &str| assert_eq!(join(pieces).0, expected, "{pieces:?}");
        check(&[r"a\ud83d"], "a\u{fffd}");
        check(&[r"a\ud83d", "b"], "a\u{fffd}b");
        check(&[r"a\ud83d", r"\ud83d", r"\ude0b"], "a\u{fffd}😋");
        check(&[r"\ude0ba"], "\u{fffd}a");
        check(&["a", r"\ude0bb"], "a\u{fffd}b");
        check(&[r"a\ud83db", r"c\ude0bd"], "a\u{fffd}bc\u{fffd}d");
        check(&[r#"\"\ude0b\ud83d\""#], "\"\u{fffd}\u{fffd}\"");
        check(&[r"\\ud83d", r"\\ude0b"], r"\ud83d\ude0b");
    }

    #[test]
    fn texts_without_halves_are_borrowed_and_unchanged() {
        let whole = "a😋\u{10ffff}\u{10f000}b";
        assert!(matches!(Joint::default().add(Cow::Borrowed(whole)), Cow::Borrowed(text) if text == whole));
        assert!(matches!(mark("\"a\""), Cow::Borrowed(_)));
        assert_eq!(without_signs(&mark(r#"["\ud83d","\ude0b","a"]"#)), "[\"\u{fffd}\",\"\u{fffd}\",\"a\"]");
        assert_eq!(without_signs("a\u{10ffff}b"), "a\u{10ffff}b");
    }
}
