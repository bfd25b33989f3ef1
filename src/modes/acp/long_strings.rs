//! A line of JSON without its long strings, for parsers that look at every byte.
//!
//! Most of a session is a few long strings. Their ends are found many bytes at a time; what is
//! left of the line is short.

use std::borrow::Cow;
use std::fmt::Write as _;

use memchr::memmem;

/// Bytes of a string, with its quotes, that is worth taking out.
const LONG: usize = 512;
/// Begins the string that stands for a long one; its number follows.
const MARK: &str = "\u{e000}";

/// A line and the long strings that were taken out of it.
#[derive(Debug)]
pub(super) struct LongStrings<'a> {
    /// The line, with a mark for each long string; valid if the line is.
    json: Cow<'a, str>,
    /// The JSON of the strings: without half surrogate pairs, which not every client can read.
    strings: Vec<&'a str>,
}

impl<'a> LongStrings<'a> {
    /// Takes out none where that could change what the line means.
    pub(super) fn take_out(line: &'a str) -> Self {
        Self::try_take_out(line).unwrap_or(Self { json: Cow::Borrowed(line), strings: Vec::new() })
    }

    fn try_take_out(line: &'a str) -> Option<Self> {
        let (mut json, mut strings) = (String::new(), Vec::new());
        let (mut at, mut copied) = (0, 0);
        while let Some(gap) = line.as_bytes()[at..].iter().position(|byte| *byte == b'"') {
            let start = at + gap;
            at = string_end(line.as_bytes(), start)?;
            if at - start < LONG {
                continue;
            }
            let string = &line[start..at];
            json.push_str(without_mark(&line[copied..start])?);
            write!(json, "\"{MARK}{}\"", strings.len()).ok()?;
            strings.push(string);
            copied = at;
        }
        json.push_str(without_mark(&line[copied..])?);
        (!strings.is_empty()).then_some(Self { json: Cow::Owned(json), strings })
    }

    /// The line without the strings.
    pub(super) fn json(&self) -> &str {
        &self.json
    }

    /// Whether `text`, which was read from [`Self::json`], stands for a long string.
    pub(super) fn stands_for_long(&self, text: &str) -> bool {
        !self.strings.is_empty() && text.starts_with(MARK)
    }

    /// The JSON of a string in the line that is `raw` in [`Self::json`].
    pub(super) fn original<'s>(&'s self, raw: &'s str) -> &'s str {
        let number = raw.strip_prefix('"').and_then(|raw| raw.strip_prefix(MARK)?.strip_suffix('"'));
        let string = number.and_then(|number| self.strings.get(number.parse::<usize>().ok()?));
        string.copied().unwrap_or(raw)
    }

    /// The JSON in the line that is `raw` in [`Self::json`].
    pub(super) fn restored<'s>(&'s self, raw: &'s str) -> Cow<'s, str> {
        if self.strings.is_empty() {
            return Cow::Borrowed(raw);
        }
        let mut restored = String::new();
        let mut rest = raw;
        while let Some(start) = rest.find(&["\"", MARK].concat()) {
            let len = 1 + MARK.len() + rest[start + 1 + MARK.len()..].find('"').map_or(0, |len| len + 1);
            restored.push_str(&rest[..start]);
            restored.push_str(self.original(&rest[start..start + len]));
            rest = &rest[start + len..];
        }
        restored.push_str(rest);
        Cow::Owned(restored)
    }
}

/// `rest`, unless a mark in it could be taken for one that stands for a string.
fn without_mark(rest: &str) -> Option<&str> {
    memmem::find(rest.as_bytes(), MARK.as_bytes()).is_none().then_some(rest)
}

/// The end of the string that begins at `start`, behind its quote. `None` if it has none, a
/// control character or an escape that JSON does not have, or half a surrogate pair, perhaps with
/// the other half.
fn string_end(json: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        at = next_special(json, at)?;
        match json[at] {
            b'"' => return Some(at + 1),
            b'\\' => at += escape_len(&json[at + 1..])?,
            _ => return None,
        }
    }
}

/// Bytes of an escape; `code` is what follows its backslash.
fn escape_len(code: &[u8]) -> Option<usize> {
    match code.first()? {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(2),
        b'u' => {
            let digits = code.get(1..5)?;
            let is_half = matches!(digits[0], b'd' | b'D');
            (!is_half && digits.iter().all(u8::is_ascii_hexdigit)).then_some(6)
        }
        _ => None,
    }
}

/// Where the first quote, backslash or control character is from `at` on.
fn next_special(json: &[u8], mut at: usize) -> Option<usize> {
    // Escapes are so near to each other that a search for each would take longer.
    while let Some(bytes) = json.get(at..)?.first_chunk::<8>() {
        let special = special_bytes(u64::from_le_bytes(*bytes));
        if special != 0 {
            return Some(at + special.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    let rest = json[at..].iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20))?;
    Some(at + rest)
}

/// The highest bit of the lowest byte that is special, and none below it.
fn special_bytes(bytes: u64) -> u64 {
    const EACH: u64 = u64::MAX / 0xff;
    // What is less borrows from the bytes above, never from those below.
    let is_less = |bytes: u64, than: u64| bytes.wrapping_sub(EACH * than) & !bytes & (EACH * 0x80);
    let is = |byte: u8| is_less(bytes ^ (EACH * u64::from(byte)), 1);
    is(b'"') | is(b'\\') | is_less(bytes, 0x20)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn long(text: &str) -> String {
        text.repeat(LONG)
    }

    #[test]
    fn long_strings_are_taken_out_and_found_again() {
        let line = json!({"a": [long("x\n\"ö"), "short"], "b": {"c": long("y\\")}}).to_string();
        let strings = LongStrings::take_out(&line);
        assert!(strings.json().len() < 80, "{}", strings.json());
        let value: Value = serde_json::from_str(strings.json()).unwrap();
        let first = value["a"][0].as_str().unwrap();
        assert!(strings.stands_for_long(first) && !strings.stands_for_long("short"));
        let raw = format!("\"{first}\"");
        let original: String = serde_json::from_str(strings.original(&raw)).unwrap();
        assert_eq!((original, strings.original("\"short\"")), (long("x\n\"ö"), "\"short\""));
        assert_eq!(strings.restored(strings.json()), line);
    }

    #[test]
    fn line_stays_whole_where_taking_out_could_change_it() {
        let check = |line: &str| {
            let strings = LongStrings::take_out(line);
            assert_eq!((strings.json(), strings.strings.len()), (line, 0));
        };
        let text = long("x");
        check("{\"a\":\"x\"}");
        check(&format!("[\"\u{e000}0\",\"{text}\"]"));
        check(&format!("[\"{text}\\ud83d\\ude00\"]"));
        check(&format!("[\"{text}\\x\"]"));
        check(&format!("[\"{text}\\u12\"]"));
        check(&format!("[\"{text}\t\"]"));
        check(&format!("[\"{text}"));
        check(&format!("[\"{text}\\"));
    }

    #[test]
    fn special_byte_is_found_at_every_place_and_no_other() {
        for at in 0..20 {
            for byte in 0..=u8::MAX {
                let mut bytes = [b'x'; 20];
                bytes[at] = byte;
                let expected = matches!(byte, b'"' | b'\\' | 0..0x20).then_some(at);
                assert_eq!(next_special(&bytes, 0), expected, "{byte} at {at}");
            }
        }
    }

    proptest! {
        #[test]
        fn any_line_is_valid_without_its_long_strings_exactly_if_it_is_with_them(
            parts in prop::collection::vec("[\\[\\]{},:\"\\\\/unbd0\u{e000} ä\t]{0,8}", 0..12),
            at in 0_usize..12,
        ) {
            let mut parts = parts;
            let long = long("x");
            parts.insert(at.min(parts.len()), long.clone());
            parts.insert((at / 2).min(parts.len()), format!("\"{long}\""));
            let text = parts.concat();
            for line in [format!("[\"{text}\"]"), format!("[{}]", parts.join(",")), text] {
                let strings = LongStrings::take_out(&line);
                let is_valid = |json: &str| serde_json::from_str::<Value>(json).is_ok();
                prop_assert_eq!(is_valid(strings.json()), is_valid(&line), "{}", line);
                prop_assert_eq!(strings.restored(strings.json()), line.as_str());
            }
        }
    }
}
