//! Diffs: as lines with numbers, and as rows.
//!
//! A line reads `+12 text`: sign, number right-aligned, text. Removed lines have
//! their old number, all others the new one. [`marks`] finds the words that changed,
//! [`rows`] draws lines in the colours of their language.

mod marks;
mod rows;

use std::ops::Range;

use similar::{ChangeTag, TextDiff};

use super::super::text::visible_ranges;

pub use rows::DiffRows;

/// Texts that are longer together are not compared line by line.
const MAX_TEXT_BYTES: usize = 16 * 1024;

/// The kind of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DiffKind {
    Added,
    Removed,
    Context,
    /// Omitted unchanged lines.
    Gap,
}

/// One line of a diff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffLine {
    kind: DiffKind,
    /// Right-aligned; empty if unknown.
    number: String,
    /// Without line break; what cannot be seen is spelt out.
    text: String,
    /// Where in `text` that is.
    spelt_out: Vec<Range<usize>>,
}

impl DiffLine {
    fn new(kind: DiffKind, number: &str, source: &str) -> Self {
        let (text, spelt_out) = visible_ranges(source);
        Self { kind, number: number.to_owned(), text, spelt_out }
    }

    /// Between two changes whose distance is unknown.
    pub fn gap() -> Self {
        Self::new(DiffKind::Gap, "", "…")
    }
}

/// Parses the form of diffs in sessions, one `+12 text` per line. Lines of another form count as
/// context.
pub fn parse_diff(text: &str) -> Vec<DiffLine> {
    text.lines().map(parse_line).collect()
}

fn parse_line(line: &str) -> DiffLine {
    let mut chars = line.chars();
    let kind = match chars.next() {
        Some('+') => DiffKind::Added,
        Some('-') => DiffKind::Removed,
        _ => DiffKind::Context,
    };
    let rest = chars.as_str();
    let unpadded = rest.trim_start_matches(' ');
    let text = unpadded.trim_start_matches(|c: char| c.is_ascii_digit());
    let (lead, text) = rest.split_at_checked(rest.len() - text.len()).unwrap_or(("", rest));
    let has_number = text.len() < unpadded.len();
    match (kind, text) {
        _ if has_number => DiffLine::new(kind, lead, text.strip_prefix(' ').unwrap_or(text)),
        // One space separates the missing number from the text.
        (DiffKind::Context, "...") => {
            DiffLine { number: lead.strip_suffix(' ').unwrap_or(lead).to_owned(), ..DiffLine::gap() }
        }
        _ => DiffLine::new(kind, "", rest),
    }
}

/// The diff of two texts, without numbers. In long texts all lines count as
/// changed, because the diff of a call that is still arriving is computed again for every frame.
pub fn diff_between(old: &str, new: &str) -> Vec<DiffLine> {
    if old.len() + new.len() > MAX_TEXT_BYTES {
        let removed = old.lines().map(|line| DiffLine::new(DiffKind::Removed, "", line));
        return removed.chain(new.lines().map(|line| DiffLine::new(DiffKind::Added, "", line))).collect();
    }
    let diff = TextDiff::from_lines(old, new);
    // Where both texts have them, they are line breaks like any other.
    let shows_returns = old.contains('\r') != new.contains('\r');
    let line = |change: similar::Change<&str>| {
        let kind = match change.tag() {
            ChangeTag::Equal => DiffKind::Context,
            ChangeTag::Delete => DiffKind::Removed,
            ChangeTag::Insert => DiffKind::Added,
        };
        let text = change.value();
        let text = text.strip_suffix('\n').unwrap_or(text);
        let text = if shows_returns { text } else { text.strip_suffix('\r').unwrap_or(text) };
        DiffLine::new(kind, "", text)
    };
    diff.iter_all_changes().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, kind: DiffKind, number: &str, text: &str) {
        let found = parse_line(line);
        assert_eq!(
            (found.kind, found.number.as_str(), found.text.as_str()),
            (kind, number, text),
            "{line:?}"
        );
    }

    #[test]
    fn stored_lines_are_read() {
        check("+12 x", DiffKind::Added, "12", "x");
        check("- 7  indented", DiffKind::Removed, " 7", " indented");
        check("  9 12 34", DiffKind::Context, " 9", "12 34");
        check("+ 3 ", DiffKind::Added, " 3", "");
        check("+3", DiffKind::Added, "3", "");
        check("    ...", DiffKind::Gap, "  ", "…");
        check(" 10 ...", DiffKind::Context, "10", "...");
    }

    #[test]
    fn lines_of_any_other_form_are_read() {
        check("", DiffKind::Context, "", "");
        check("é", DiffKind::Context, "", "");
        check("+no number", DiffKind::Added, "", "no number");
        check("-1 a\u{1b}[31mb\tc", DiffKind::Removed, "1", "a<U+001B>[31mb   c");
    }

    #[test]
    fn lines_that_differ_in_what_cannot_be_seen_look_different() {
        let lines = diff_between("hi\n", "h\u{1b}[2Ji\u{202e}\n");
        let texts: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
        assert_eq!(texts, ["hi", "h<U+001B>[2Ji<U+202E>"]);
        let texts: Vec<String> = diff_between("a\r\n", "a\n").into_iter().map(|line| line.text).collect();
        assert_eq!(texts, ["a<U+000D>", "a"]);
    }
}
