//! Keys that a terminal sends twice: in the form of the kitty protocol, and as the character.
//!
//! Some terminals do that with characters that a layout or an input method makes. A terminal
//! that follows the protocol never sends characters in that form with the flags that pi sets.

/// The characters that a key in the form `ESC [ code : shifted ; modifiers u` stands for, if it
/// types one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TypedKey {
    code: char,
    shifted: Option<char>,
}

impl TypedKey {
    /// The key of `sequence`; `None` if it is another key, or held with more than Shift.
    pub(super) fn of(sequence: &[u8]) -> Option<Self> {
        const SHIFT: u32 = 1;
        const LOCKS: u32 = 64 | 128;
        let body = std::str::from_utf8(sequence.strip_prefix(b"\x1b[")?.strip_suffix(b"u")?).ok()?;
        let (codes, held) = body.split_once(';').unwrap_or((body, "1"));
        let held = held.split([':', ';']).next()?;
        let modifiers = if held.is_empty() { 0 } else { held.parse::<u32>().ok()?.checked_sub(1)? };
        if modifiers & !(SHIFT | LOCKS) != 0 {
            return None;
        }
        let mut codes = codes.split(':').map(|code| code.parse().ok().and_then(char::from_u32));
        let code = codes.next()?.filter(|c| !c.is_control() && !is_key_without_text(*c))?;
        Some(Self { code, shifted: codes.next().flatten() })
    }

    /// Whether `sequence` is a character that this key types.
    pub(super) fn types(self, sequence: &[u8]) -> bool {
        let Some(typed) = only_char(sequence) else { return false };
        let is_upper = || self.code.to_uppercase().eq([typed]);
        typed == self.code || self.shifted == Some(typed) || is_upper()
    }
}

/// Keys without text have codes of a private area, also those of the keypad.
fn is_key_without_text(c: char) -> bool {
    matches!(c, '\u{e000}'..='\u{f8ff}')
}

fn only_char(sequence: &[u8]) -> Option<char> {
    let mut chars = std::str::from_utf8(sequence).ok()?.chars();
    let first = chars.next().filter(|c| !c.is_control())?;
    chars.next().is_none().then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_types_its_character_and_the_shifted_one() {
        let check = |key: &str, typed: &str, expected: bool| {
            let key = TypedKey::of(key.as_bytes());
            assert_eq!(key.is_some_and(|key| key.types(typed.as_bytes())), expected, "{key:?} {typed}");
        };
        check("\x1b[233;1u", "é", true);
        check("\x1b[233u", "é", true);
        check("\x1b[43u", "+", true);
        check("\x1b[233;2u", "É", true);
        check("\x1b[49:33;2u", "!", true);
        check("\x1b[233;65u", "É", true);
        check("\x1b[233;1u", "e", false);
        check("\x1b[233;5u", "é", false);
        check("\x1b[233;3u", "é", false);
        check("\x1b[13;1u", "\r", false);
        check("\x1b[57413u", "+", false);
        check("\x1b[233;1u", "éé", false);
        check("\x1b[A", "A", false);
    }
}
