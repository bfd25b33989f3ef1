//! Diffs: as lines with numbers, and as rows.
//!
//! A line reads `+12 text`: sign, number right-aligned, text. Removed lines have
//! their old number, all others the new one. [`marks`] finds the words that changed,
//! [`rows`] draws lines in the colours of their language.

mod marks;
mod rows;

use similar::{ChangeTag, TextDiff};

use crate::util::visible::Replaced;
use crate::util::with_last_breaks;

use super::super::text::visible_replaced;

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
    /// What was replaced in `text`.
    replaced: Vec<Replaced>,
    /// The text with tabs for the blanks that stand for them, of the same length; `None` without tabs.
    with_tabs: Option<String>,
}

impl DiffLine {
    fn new(kind: DiffKind, number: &str, source: &str) -> Self {
        let (text, replaced) = visible_replaced(source);
        let with_tabs = with_tabs(&text, &replaced);
        Self { kind, number: number.to_owned(), text, replaced, with_tabs }
    }

    /// What changed words are found in: a tab is another text than blanks.
    fn compared(&self) -> &str {
        self.with_tabs.as_deref().unwrap_or(&self.text)
    }

    /// Between two changes whose distance is unknown.
    pub fn gap() -> Self {
        Self::new(DiffKind::Gap, "", "…")
    }
}

fn with_tabs(text: &str, replaced: &[Replaced]) -> Option<String> {
    let tabs = || replaced.iter().filter(|one| one.source == '\t').map(|one| one.range.clone());
    tabs().next()?;
    let mut with_tabs = text.to_owned();
    for tab in tabs() {
        with_tabs.replace_range(tab.clone(), &"\t".repeat(tab.len()));
    }
    Some(with_tabs)
}

/// Whether a line was replaced by itself, because only the line break after it is new or gone.
pub fn changes_last_break(lines: &[DiffLine]) -> bool {
    lines.windows(2).any(|pair| {
        let [old, new] = pair else { return false };
        old.kind == DiffKind::Removed
            && new.kind == DiffKind::Added
            && (&old.text, &old.replaced) == (&new.text, &new.replaced)
    })
}

/// Parses the form of diffs in sessions, one `+12 text` per line. Lines without a number keep their sign; those
/// without a sign count as context, without their first character.
pub fn parse_diff(text: &str) -> Vec<DiffLine> {
    let lines = || text.strip_suffix('\n').unwrap_or(text).split('\n').filter(|_| !text.is_empty());
    // Where all lines have them, they are line breaks like any other.
    let is_gap = |line: &str| line.trim() == GAP;
    let shows_returns = lines().any(|line| !line.ends_with('\r') && !is_gap(line));
    let lines = lines().map(|line| line.strip_suffix('\r').filter(|_| !shows_returns).unwrap_or(line));
    lines.map(parse_line).collect()
}

/// What stored diffs have for omitted lines.
const GAP: &str = "...";

fn parse_line(line: &str) -> DiffLine {
    let mut chars = line.chars();
    let kind = match chars.next() {
        Some('+') => DiffKind::Added,
        Some('-') => DiffKind::Removed,
        _ => DiffKind::Context,
    };
    let rest = chars.as_str();
    let unpadded = rest.trim_start_matches(' ');
    let after_number = unpadded.trim_start_matches(|c: char| c.is_ascii_digit());
    let number_end = rest.len() - after_number.len();
    let has_number = after_number.len() < unpadded.len();
    // What only begins with digits, such as `3rd`, is text.
    if has_number && (after_number.is_empty() || after_number.starts_with(' ')) {
        return DiffLine::new(kind, &rest[..number_end], after_number.strip_prefix(' ').unwrap_or_default());
    }
    if kind == DiffKind::Context && unpadded == GAP {
        // One space separates the missing number from the text.
        let lead = &rest[..rest.len() - unpadded.len()];
        return DiffLine { number: lead.strip_suffix(' ').unwrap_or(lead).to_owned(), ..DiffLine::gap() };
    }
    DiffLine::new(kind, "", rest)
}

/// The diff of two texts, without numbers. In long texts all lines count as
/// changed, because the diff of a call that is still arriving is computed again for every frame.
pub fn diff_between(old: &str, new: &str) -> Vec<DiffLine> {
    if old.len() + new.len() > MAX_TEXT_BYTES {
        let removed = old.lines().map(|line| DiffLine::new(DiffKind::Removed, "", line));
        return removed.chain(new.lines().map(|line| DiffLine::new(DiffKind::Added, "", line))).collect();
    }
    let (old, new) = with_last_breaks(old, new);
    let diff = TextDiff::from_lines(&*old, &*new);
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
        check("+3rd party", DiffKind::Added, "", "3rd party");
        check("-1.5", DiffKind::Removed, "", "1.5");
        check(" 3...", DiffKind::Context, "", "3...");
        check("-1 a\u{1b}[31mb\tc", DiffKind::Removed, "1", "a<U+001B>[31mb   c");
    }

    #[test]
    fn returns_are_shown_unless_all_stored_lines_have_them() {
        let texts = |diff| parse_diff(diff).into_iter().map(|line| line.text).collect::<Vec<_>>();
        assert_eq!(texts("-1 a\r\n+1 a\n"), ["a<U+000D>", "a"]);
        assert_eq!(texts("-1 a\r\n   ...\n+1 b\r"), ["a", "…", "b"]);
        assert_eq!(texts("+1 a\n+2 \n\n"), ["a", "", ""]);
        assert_eq!(texts(""), [""; 0]);
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
