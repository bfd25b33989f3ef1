//! Text files in UTF-8, or in UTF-16 with a byte order mark, decoded as they are read.

/// How a text is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TextEncoding {
    #[default]
    Utf8,
    /// With the less significant byte first, as Windows writes it.
    Utf16Le,
    Utf16Be,
}

impl TextEncoding {
    /// The encoding of a text that begins with `start`, which is UTF-8 unless a byte order mark
    /// states another one.
    pub fn of(start: &[u8]) -> Self {
        match start {
            // This mark is that of UTF-32, too.
            [0xff, 0xfe, 0, 0, ..] => Self::Utf8,
            [0xff, 0xfe, ..] => Self::Utf16Le,
            [0xfe, 0xff, ..] => Self::Utf16Be,
            _ => Self::Utf8,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "UTF-8",
            Self::Utf16Le => "UTF-16LE",
            Self::Utf16Be => "UTF-16BE",
        }
    }
}

/// Decodes text that arrives in pieces. Invalid bytes become U+FFFD.
#[derive(Debug, Default)]
pub struct TextDecoder {
    encoding: TextEncoding,
    /// The beginning of a character whose rest has not arrived; at most three bytes.
    pending: Vec<u8>,
    /// Bytes that were decoded.
    n_decoded: u64,
    /// Line breaks before the first invalid byte.
    n_breaks: u64,
    first_invalid: Option<InvalidByte>,
}

/// The first byte that is not part of a character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct InvalidByte {
    byte: u8,
    /// From 0.
    offset: u64,
    /// From 1.
    line: u64,
}

impl TextDecoder {
    /// A decoder for a text in `encoding`.
    pub fn new(encoding: TextEncoding) -> Self {
        Self { encoding, ..Self::default() }
    }

    /// Decodes `bytes`, except a character that is still incomplete.
    pub fn decode(&mut self, bytes: &[u8]) -> String {
        if self.pending.is_empty() {
            return self.decode_joined(bytes);
        }
        let mut joined = std::mem::take(&mut self.pending);
        joined.extend_from_slice(bytes);
        self.decode_joined(&joined)
    }

    /// The replacement of an unfinished character at the end.
    pub fn finish(&mut self) -> String {
        let pending = std::mem::take(&mut self.pending);
        match pending.first() {
            None => String::new(),
            Some(byte) => {
                self.note_invalid(*byte);
                char::REPLACEMENT_CHARACTER.to_string()
            }
        }
    }

    /// What a text that is not valid UTF-8 is, and, after a semicolon, what that means for tools
    /// that write it; `None` for valid UTF-8.
    pub fn note(&self) -> Option<String> {
        let name = self.encoding.name();
        match (self.encoding, self.first_invalid) {
            (TextEncoding::Utf8, None) => None,
            (TextEncoding::Utf8, Some(InvalidByte { byte, offset, line })) => Some(format!(
                "not valid UTF-8: byte {offset} (0x{byte:02x}, line {line}) and maybe others are shown as \
                 U+FFFD; writing the text back would destroy them"
            )),
            (TextEncoding::Utf16Le | TextEncoding::Utf16Be, None) => Some(format!(
                "{name} text, shown as UTF-8; edit cannot change it, and write would store UTF-8"
            )),
            (TextEncoding::Utf16Le | TextEncoding::Utf16Be, Some(InvalidByte { offset, .. })) => {
                Some(format!(
                    "{name} text with invalid bytes from {offset} on, which are shown as U+FFFD; edit cannot \
                 change it, and writing the text back would destroy them"
                ))
            }
        }
    }

    fn decode_joined(&mut self, input: &[u8]) -> String {
        match self.encoding {
            TextEncoding::Utf8 => self.decode_utf8(input),
            TextEncoding::Utf16Le => self.decode_utf16(input, u16::from_le_bytes),
            TextEncoding::Utf16Be => self.decode_utf16(input, u16::from_be_bytes),
        }
    }

    fn decode_utf8(&mut self, input: &[u8]) -> String {
        let mut text = String::with_capacity(input.len());
        let mut chunks = input.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            self.push(chunk.valid(), chunk.valid().len(), &mut text);
            let invalid = chunk.invalid();
            let Some(first) = invalid.first() else { continue };
            if chunks.peek().is_none() && may_continue(invalid) {
                self.pending = invalid.to_vec();
            } else {
                self.note_invalid(*first);
                self.n_decoded += invalid.len() as u64;
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
        text
    }

    fn decode_utf16(&mut self, input: &[u8], unit: fn([u8; 2]) -> u16) -> String {
        let mut text = String::with_capacity(input.len());
        let mut rest = input;
        while let Some((pair, after)) = rest.split_first_chunk::<2>() {
            let mut n_bytes = 2;
            let decoded = match unit(*pair) {
                high @ 0xd800..0xdc00 => {
                    let Some((low, _)) = after.split_first_chunk::<2>() else { break };
                    let decoded = char::decode_utf16([high, unit(*low)]).next().and_then(Result::ok);
                    n_bytes += 2 * usize::from(decoded.is_some());
                    decoded
                }
                unit => char::from_u32(u32::from(unit)),
            };
            let is_mark = self.n_decoded == 0 && decoded == Some('\u{feff}');
            match decoded {
                Some(_) if is_mark => self.n_decoded += 2,
                Some(c) => self.push(c.encode_utf8(&mut [0; 4]), n_bytes, &mut text),
                None => {
                    self.note_invalid(pair[0]);
                    self.n_decoded += 2;
                    text.push(char::REPLACEMENT_CHARACTER);
                }
            }
            rest = rest.get(n_bytes..).unwrap_or_default();
        }
        self.pending = rest.to_vec();
        text
    }

    fn push(&mut self, valid: &str, n_bytes: usize, text: &mut String) {
        text.push_str(valid);
        self.n_decoded += n_bytes as u64;
        if self.first_invalid.is_none() {
            self.n_breaks += memchr::memchr_iter(b'\n', valid.as_bytes()).count() as u64;
        }
    }

    fn note_invalid(&mut self, byte: u8) {
        let found = InvalidByte { byte, offset: self.n_decoded, line: self.n_breaks + 1 };
        self.first_invalid.get_or_insert(found);
    }
}

/// The text of a whole file, and what its reader must know before writing it.
pub fn decode_text(bytes: &[u8]) -> (String, Option<String>) {
    let mut decoder = TextDecoder::new(TextEncoding::of(bytes));
    let mut text = decoder.decode(bytes);
    text.push_str(&decoder.finish());
    (text, decoder.note())
}

/// Whether `bytes`, not UTF-8 by themselves, could begin a character.
fn may_continue(bytes: &[u8]) -> bool {
    str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_decoder_joins_characters_that_were_cut() {
        let text = "aü€😀";
        for cut in 0..=text.len() {
            let mut decoder = TextDecoder::default();
            let (left, right) = text.as_bytes().split_at(cut);
            assert_eq!(decoder.decode(left) + &decoder.decode(right) + &decoder.finish(), text);
            assert_eq!(decoder.note(), None);
        }
        let mut decoder = TextDecoder::default();
        assert_eq!(decoder.decode(b"a\xff\xe2\x82"), "a\u{fffd}");
        assert_eq!(decoder.decode(b"b\xe2"), "\u{fffd}b");
        assert_eq!(decoder.finish(), "\u{fffd}");
    }

    #[test]
    fn first_invalid_byte_is_named_with_its_line() {
        let check = |bytes: &[u8], expected: &str| {
            let note = decode_text(bytes).1.unwrap();
            assert!(note.starts_with(&format!("not valid UTF-8: {expected} and maybe")), "{note}");
        };
        check(b"caf\xe9\n", "byte 3 (0xe9, line 1)");
        check(
            "ü\nb\n".as_bytes().iter().chain(b"\xe2\x82").copied().collect::<Vec<_>>().as_slice(),
            "byte 5 (0xe2, line 3)",
        );
        let mut decoder = TextDecoder::default();
        for byte in b"a\nb\n\xffc\xfe" {
            decoder.decode(&[*byte]);
        }
        assert!(decoder.note().unwrap().contains("byte 4 (0xff, line 3)"));
    }

    #[test]
    fn utf_16_with_a_mark_is_decoded_however_it_arrives() {
        let text = "aü€😀\r\nb";
        let little: Vec<u8> =
            "\u{feff}".encode_utf16().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> =
            "\u{feff}".encode_utf16().chain(text.encode_utf16()).flat_map(u16::to_be_bytes).collect();
        for (bytes, name) in [(little, "UTF-16LE"), (big, "UTF-16BE")] {
            let mut decoder = TextDecoder::new(TextEncoding::of(&bytes));
            let pieces: String = bytes.iter().map(|byte| decoder.decode(&[*byte])).collect();
            assert_eq!(pieces + &decoder.finish(), text);
            assert!(decoder.note().unwrap().starts_with(&format!("{name} text, shown as UTF-8;")));
            assert_eq!(decode_text(&bytes).0, text);
        }
        let (text, note) = decode_text(b"\xff\xfea\0\x00\xdcb\0c");
        assert_eq!(text, "a\u{fffd}b\u{fffd}");
        assert!(note.unwrap().contains("invalid bytes from 4 on"));
        assert_eq!(TextEncoding::of(b"\xff\xfe\0\0a\0\0\0"), TextEncoding::Utf8);
    }
}
