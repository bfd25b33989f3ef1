//! Parts of addresses, written so that they stay the parts they are.

/// `text` as one segment of a path. What RFC 3986 allows there stays, apart
/// from the colon, which separates a method from its model.
pub(in crate::ai) fn escape_segment(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'-' | b'.' | b'_' | b'~' | b'@' => escaped.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => escaped.push(char::from(byte)),
            _ => {
                escaped.push('%');
                for digit in [byte >> 4, byte & 15] {
                    escaped.extend(
                        char::from_digit(u32::from(digit), 16).map(|digit| digit.to_ascii_uppercase()),
                    );
                }
            }
        }
    }
    escaped
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
