//! Rewrites the character classes of grammars so that their regular expressions compile faster and need less
//! memory. The build script does this once for all grammars.
//!
//! Grammars name letters and digits by Unicode property. Onig expands each property into a table of hundreds
//! of ranges wherever it is used in brackets, and one grammar uses it thousands of times. Here a letter is
//! one of ASCII or any character beyond ASCII, and a digit is one of ASCII. This differs only for
//! punctuation and digits of other scripts in names.

/// Every character beyond ASCII.
const BEYOND: &str = r"\x{80}-\x{10ffff}";

/// Escapes that stand for large tables in brackets, and what replaces them.
const IN_BRACKETS: [(&str, &[&str]); 12] = [
    (r"\p{L}", &["a-zA-Z", BEYOND]),
    (r"\p{Ll}", &[r"a-z\x{df}-\x{f6}\x{f8}-\x{10ffff}"]),
    (r"\p{Lu}", &[r"A-Z\x{c0}-\x{d6}\x{d8}-\x{de}"]),
    (r"\p{Lt}", &[BEYOND]),
    (r"\p{Lo}", &[BEYOND]),
    (r"\p{M}", &[BEYOND]),
    (r"\p{Mn}", &[BEYOND]),
    (r"\p{Mc}", &[BEYOND]),
    (r"\p{N}", &["0-9"]),
    (r"\p{Nd}", &["0-9"]),
    (r"\p{Pc}", &["_", BEYOND]),
    (r"\w", &["0-9A-Za-z_", BEYOND]),
];

/// The rewritten pattern; `None` if it has nothing to rewrite, or its brackets are not understood.
pub(super) fn compact_classes(pattern: &str) -> Option<String> {
    let mut compact = String::with_capacity(pattern.len());
    let mut rest = pattern;
    let (mut depth, mut is_changed) = (0_usize, false);
    while let Some(c) = rest.chars().next() {
        let mut n_bytes = c.len_utf8();
        if c == '\\' {
            let found = IN_BRACKETS.iter().find(|(escape, _)| depth > 0 && rest.starts_with(escape));
            if let Some((escape, ranges)) = found {
                compact.extend(ranges.iter().copied());
                rest = &rest[escape.len()..];
                is_changed = true;
                continue;
            }
            // What is escaped opens and closes nothing.
            n_bytes += rest[n_bytes..].chars().next().map_or(0, char::len_utf8);
        } else if c == '[' {
            depth += 1;
        } else if c == ']' {
            depth = depth.saturating_sub(1);
        }
        let (read, after) = rest.split_at(n_bytes);
        compact.push_str(read);
        rest = after;
    }
    // A bracket in a comment, for example.
    (is_changed && depth == 0).then_some(compact)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_in_brackets_become_ranges() {
        for (pattern, expected) in [
            (r"[\p{L}_]x", Some(r"[a-zA-Z\x{80}-\x{10ffff}_]x")),
            (r"[^\]\p{Nd}]", Some(r"[^\]0-9]")),
            (r"[\w[:alpha:]]", Some(r"[0-9A-Za-z_\x{80}-\x{10ffff}[:alpha:]]")),
            // Single escapes are small, and escaped ones are none.
            (r"\w+\p{L}", None),
            (r"[\\w]", None),
            // A comment that opens a bracket.
            ("(?x) [\\w] # [\n", None),
            ("plain", None),
        ] {
            assert_eq!(compact_classes(pattern).as_deref(), expected, "{pattern}");
        }
    }
}
