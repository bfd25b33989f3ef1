//! Markdown files that begin with YAML between two lines of `---`.
//!
//! Splits the two parts; callers interpret the YAML. Works for any text.

use std::io::{self, Read as _};
use std::path::Path;

use crate::util::os;

/// Files whose heads are worth a thread of their own.
pub(super) const FILES_PER_THREAD: usize = 25;
/// Maximum number of bytes read for the frontmatter.
const MAX_HEAD_BYTES: u64 = 32 << 10;

/// A text without a byte order mark, split into its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Frontmatter<'a> {
    /// No frontmatter; contains the whole text.
    None(&'a str),
    /// The frontmatter has no end.
    Unclosed,
    Some {
        yaml: &'a str,
        /// The text after the frontmatter.
        body: &'a str,
    },
}

/// Splits `text`. Lines may end in CRLF.
pub(super) fn split(text: &str) -> Frontmatter<'_> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.split_inclusive('\n');
    let is_fence = |line: &str| line.trim_end() == "---";
    let Some(first) = lines.next().filter(|line| is_fence(line)) else { return Frontmatter::None(text) };
    let start = first.len();
    let mut at = start;
    for line in lines {
        let end = at + line.len();
        if is_fence(line) {
            return Frontmatter::Some {
                yaml: text.get(start..at).unwrap_or_default(),
                body: text.get(end..).unwrap_or_default(),
            };
        }
        at = end;
    }
    Frontmatter::Unclosed
}

/// The beginning of a file, long enough for any reasonable frontmatter. Blocks.
pub(super) fn read_head(path: &Path) -> io::Result<String> {
    // Most files are shorter, and are read at once.
    let mut bytes = Vec::with_capacity(4 << 10);
    os::open_regular(path)?.take(MAX_HEAD_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Why a file whose frontmatter has no end is not used.
pub(super) fn unclosed() -> String {
    format!("its frontmatter has no closing --- line in the first {} KiB", MAX_HEAD_BYTES >> 10)
}

/// `text` with single spaces in place of line breaks and other control characters.
pub(super) fn one_line(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn yaml_and_body_are_taken_apart() {
        let check = |text: &str, expected: Frontmatter<'_>| assert_eq!(split(text), expected, "{text:?}");
        let both = |yaml, body| Frontmatter::Some { yaml, body };
        check("---\na: 1\n---\nbody\n", both("a: 1\n", "body\n"));
        check("\u{feff}--- \r\na: 1\r\n---\r\n\r\nbody", both("a: 1\r\n", "\r\nbody"));
        check("---\n---", both("", ""));
        check("---\na: |\n  ----\n---\n", both("a: |\n  ----\n", ""));
        check("body\n---\n", Frontmatter::None("body\n---\n"));
        check("----\na\n---\n", Frontmatter::None("----\na\n---\n"));
        check("\u{feff}", Frontmatter::None(""));
        check("---\na: 1\n", Frontmatter::Unclosed);
        check("---", Frontmatter::Unclosed);
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "(---|\\r|\\n|[a-z é:]|\u{feff}){0,30}") {
            if let Frontmatter::Some { yaml, body } = split(&text) {
                prop_assert!(text.contains(yaml) && text.ends_with(body));
            }
        }
    }
}
