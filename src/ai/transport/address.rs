//! Escapes for parts of URLs, so that a part cannot break out of its position.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Everything but the unreserved characters of RFC 3986.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The unreserved characters, and the sign before versions of models.
const SEGMENT: &AsciiSet = &UNRESERVED.remove(b'@');

/// `text` as one segment of a path. Characters that RFC 3986 allows stay, except
/// the colon, which separates a method from its model.
pub(in crate::ai) fn escape_segment(text: &str) -> String {
    utf8_percent_encode(text, SEGMENT).to_string()
}

/// `text` as part of a signed request, where only the unreserved characters stay.
pub(super) fn escape_unreserved(text: &str) -> String {
    utf8_percent_encode(text, UNRESERVED).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_hold_no_separators() {
        let check = |text: &str, expected: &str| assert_eq!(escape_segment(text), expected);
        check("claude-sonnet-4-5@20250929", "claude-sonnet-4-5@20250929");
        check("a/b:c?d#é %", "a%2Fb%3Ac%3Fd%23%C3%A9%20%25");
        check("..", "..");
    }
}
