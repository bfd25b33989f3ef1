//! Diffs with line numbers and marks within lines.

use ratatui::style::{Modifier, Style};
use similar::{ChangeTag, TextDiff};

use crate::tui::text::{Row, Run, Wrap, sanitize_line};
use crate::tui::theme::Token;

use super::super::transcript::RenderCx;
use super::lines::hint;

/// Longer lines are not compared word by word.
const MAX_INLINE_BYTES: usize = 1_000;

/// Longer texts are not compared line by line.
const MAX_COMPARED_BYTES: usize = 16 * 1024;

/// Lines with a lower similarity are shown as replaced.
const MIN_RATIO: f32 = 0.4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Added,
    Removed,
    Context,
    /// Unchanged lines that are not shown.
    Skipped,
}

/// One line of a diff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DiffLine {
    kind: Kind,
    /// Right-aligned; empty if unknown.
    number: String,
    text: String,
}

impl DiffLine {
    pub(super) fn skipped() -> Self {
        Self { kind: Kind::Skipped, number: String::new(), text: "...".to_owned() }
    }
}

/// Parses the form of diffs in sessions: a sign, a right-aligned
/// line number, a space, the text.
pub(super) fn parse(diff: &str) -> Vec<DiffLine> {
    diff.lines().map(parse_line).collect()
}

fn parse_line(line: &str) -> DiffLine {
    let mut chars = line.chars();
    let kind = match chars.next() {
        Some('+') => Kind::Added,
        Some('-') => Kind::Removed,
        _ => Kind::Context,
    };
    let rest = chars.as_str();
    let unpadded = rest.trim_start_matches(' ');
    let text = unpadded.trim_start_matches(|c: char| c.is_ascii_digit());
    let (lead, text) = rest.split_at_checked(rest.len() - text.len()).unwrap_or(("", rest));
    let has_number = text.len() < unpadded.len();
    let (kind, number, text) = match (kind, text) {
        _ if has_number => (kind, lead, text.strip_prefix(' ').unwrap_or(text)),
        // One space separates the missing number from the text.
        (Kind::Context, "...") => (Kind::Skipped, lead.strip_suffix(' ').unwrap_or(lead), text),
        _ => (kind, "", rest),
    };
    DiffLine { kind, number: number.to_owned(), text: sanitize_line(text).into_owned() }
}

/// The diff of two texts, without numbers. In long texts all lines count as
/// changed, because the diff is computed again for every frame.
pub(super) fn between(old: &str, new: &str) -> Vec<DiffLine> {
    let plain = |kind: Kind, text: &str| {
        let line =
            |line: &str| DiffLine { kind, number: String::new(), text: sanitize_line(line).into_owned() };
        text.lines().map(line).collect::<Vec<_>>()
    };
    if old.len() + new.len() > MAX_COMPARED_BYTES {
        return [plain(Kind::Removed, old), plain(Kind::Added, new)].concat();
    }
    let diff = TextDiff::from_lines(old, new);
    let line = |change: similar::Change<&str>| {
        let kind = match change.tag() {
            ChangeTag::Equal => Kind::Context,
            ChangeTag::Delete => Kind::Removed,
            ChangeTag::Insert => Kind::Added,
        };
        let text = sanitize_line(change.value().trim_end_matches(['\n', '\r'])).into_owned();
        DiffLine { kind, number: String::new(), text }
    };
    diff.iter_all_changes().map(line).collect()
}

/// Draws lines until there are `limit` rows.
pub(super) fn rows(lines: &[DiffLine], limit: Option<usize>, cx: &RenderCx<'_>) -> Vec<Row> {
    let limit = limit.unwrap_or(usize::MAX);
    let mut rows = Vec::new();
    let mut line_idx = 0;
    while rows.len() < limit && line_idx < lines.len() {
        let rest = lines.get(line_idx..).unwrap_or_default();
        let marked = pair(rest, line_idx.checked_sub(1).and_then(|before| lines.get(before)))
            .and_then(|(old, new)| inline(old, new, cx));
        match (marked, rest) {
            (Some((old_runs, new_runs)), [old, new, ..]) => {
                rows.extend(draw(old, old_runs, cx));
                rows.extend(draw(new, new_runs, cx));
                line_idx += 2;
            }
            (_, [line, ..]) => {
                rows.extend(draw(line, vec![Run::new(line.text.as_str(), style(line.kind, cx))], cx));
                line_idx += 1;
            }
            (_, []) => break,
        }
    }
    let left_out = (lines.len() - line_idx) + usize::from(rows.len() > limit);
    rows.truncate(limit);
    if left_out > 0 {
        rows.push(hint(left_out, "more", cx));
    }
    rows
}

/// One removed line replaced by one added line.
fn pair<'a>(rest: &'a [DiffLine], before: Option<&DiffLine>) -> Option<(&'a DiffLine, &'a DiffLine)> {
    let [old, new, after @ ..] = rest else { return None };
    let alone = old.kind == Kind::Removed
        && new.kind == Kind::Added
        && before.is_none_or(|line| line.kind != Kind::Removed)
        && after.first().is_none_or(|line| line.kind != Kind::Added);
    let short = old.text.len().max(new.text.len()) <= MAX_INLINE_BYTES;
    (alone && short).then_some((old, new))
}

/// Both lines with their differences marked; `None` if nearly everything differs.
fn inline(old: &DiffLine, new: &DiffLine, cx: &RenderCx<'_>) -> Option<(Vec<Run>, Vec<Run>)> {
    let diff = TextDiff::from_unicode_words(old.text.as_str(), new.text.as_str());
    if diff.ratio() < MIN_RATIO {
        return None;
    }
    let (removed, added) = (style(Kind::Removed, cx), style(Kind::Added, cx));
    let (mut old_runs, mut new_runs) = (Vec::new(), Vec::new());
    for change in diff.iter_all_changes() {
        let text = change.value();
        match change.tag() {
            ChangeTag::Equal => {
                old_runs.push(Run::new(text, removed));
                new_runs.push(Run::new(text, added));
            }
            ChangeTag::Delete => old_runs.push(Run::new(text, set_off(removed))),
            ChangeTag::Insert => new_runs.push(Run::new(text, set_off(added))),
        }
    }
    Some((old_runs, new_runs))
}

fn set_off(style: Style) -> Style {
    style.add_modifier(Modifier::REVERSED)
}

fn draw(line: &DiffLine, text: Vec<Run>, cx: &RenderCx<'_>) -> Vec<Row> {
    let sign = match line.kind {
        Kind::Added => '+',
        Kind::Removed => '-',
        Kind::Context | Kind::Skipped => ' ',
    };
    let blank = if line.number.is_empty() { "" } else { " " };
    let lead = format!("{sign}{}{blank}", line.number);
    let indent = " ".repeat(lead.len());
    let style = style(line.kind, cx);
    Wrap::new(cx.width).first(lead, style).rest(indent, style).runs(&text)
}

fn style(kind: Kind, cx: &RenderCx<'_>) -> Style {
    cx.style(match kind {
        Kind::Added => Token::ToolDiffAdded,
        Kind::Removed => Token::ToolDiffRemoved,
        Kind::Context | Kind::Skipped => Token::ToolDiffContext,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, kind: Kind, number: &str, text: &str) {
        let expected = DiffLine { kind, number: number.to_owned(), text: text.to_owned() };
        assert_eq!(parse_line(line), expected, "{line:?}");
    }

    #[test]
    fn reads_stored_lines() {
        check("+12 x", Kind::Added, "12", "x");
        check("- 7  indented", Kind::Removed, " 7", " indented");
        check("  9 12 34", Kind::Context, " 9", "12 34");
        check("+ 3 ", Kind::Added, " 3", "");
        check("+3", Kind::Added, "3", "");
        check("    ...", Kind::Skipped, "  ", "...");
        check(" 10 ...", Kind::Context, "10", "...");
    }

    #[test]
    fn reads_lines_of_any_other_form() {
        check("", Kind::Context, "", "");
        check("é", Kind::Context, "", "");
        check("+no number", Kind::Added, "", "no number");
        check("-1 a\u{1b}[31mb\tc", Kind::Removed, "1", "ab   c");
    }
}
