//! The text on standard input.

use std::io::Read;

use anyhow::Context as _;

use crate::util::text_decoder::{TextEncoding, decode_text};

use super::attached::{MAX_TEXT_BYTES, MAX_TEXT_SHOWN};

/// What was piped into the program.
#[derive(Debug)]
pub(super) struct Piped {
    pub(super) text: String,
    /// What it is, if it is not valid text.
    pub(super) problem: Option<String>,
}

impl Piped {
    /// Reads `input` to its end.
    ///
    /// # Errors
    /// If it fails, or is longer than any model reads.
    pub(super) fn read(input: impl Read) -> anyhow::Result<Self> {
        let mut bytes = Vec::new();
        input.take(MAX_TEXT_BYTES + 1).read_to_end(&mut bytes).context("cannot read standard input")?;
        if bytes.len() as u64 > MAX_TEXT_BYTES {
            anyhow::bail!(
                "standard input is longer than {MAX_TEXT_SHOWN}, more than a model reads; \
                 write it to a file and name the file in the prompt"
            );
        }
        Ok(Self::of(&bytes))
    }

    pub(super) fn of(bytes: &[u8]) -> Self {
        let (text, note) = decode_text(bytes);
        // UTF-16 is decoded without loss, and no tool can write to standard input.
        let note = note.filter(|_| TextEncoding::of(bytes) == TextEncoding::Utf8);
        let problem = note.map(|note| note.split(';').next().unwrap_or_default().to_owned());
        Self { text, problem }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_without_end_is_an_error() {
        let error = Piped::read(std::io::repeat(b'x')).unwrap_err().to_string();
        assert!(error.starts_with("standard input is longer than 10 MB"), "{error}");
        assert_eq!(Piped::read(b"x\n".as_slice()).unwrap().text, "x\n");
    }
}
