//! Diffs: as lines with numbers, and as rows.
//!
//! A line reads `+12 text`: sign, number right-aligned, text. Removed lines have
//! their old number, all others the new one. If a block of removed lines is
//! followed by as many added ones, differing words are highlighted.

use ratatui::style::{Modifier, Style};
use similar::{ChangeTag, TextDiff};

use super::super::text::{Row, Run, TAB_WIDTH, Wrap, sanitize_line};
use super::super::theme::{Theme, Token};

/// The kind of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiffKind {
    Added,
    Removed,
    Context,
    /// Omitted unchanged lines.
    Gap,
}

/// One line of a diff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffLine {
    pub kind: DiffKind,
    /// Counted from 1; `None` for gaps and if the source has no numbers.
    pub number: Option<usize>,
    pub text: String,
}

/// The changes from `old` to `new` with `context` unchanged lines around each. The
/// work may grow with the square of the changed lines; process large texts on a
/// background task.
pub fn diff_lines(old: &str, new: &str, context: usize) -> Vec<DiffLine> {
    let diff = TextDiff::from_lines(old, new);
    let mut lines = Vec::new();
    for (group_idx, group) in diff.grouped_ops(context).iter().enumerate() {
        if group_idx > 0 {
            lines.push(DiffLine { kind: DiffKind::Gap, number: None, text: "...".to_owned() });
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let (kind, index) = match change.tag() {
                ChangeTag::Insert => (DiffKind::Added, change.new_index()),
                ChangeTag::Delete => (DiffKind::Removed, change.old_index()),
                ChangeTag::Equal => (DiffKind::Context, change.new_index()),
            };
            let text = change.value().trim_end_matches(['\n', '\r']).to_owned();
            lines.push(DiffLine { kind, number: index.map(|index| index + 1), text });
        }
    }
    lines
}

/// Parses a diff in text form, one `+12 text` per line. Lines of another
/// form count as context.
pub fn parse_diff(text: &str) -> Vec<DiffLine> {
    text.lines().map(parse_line).collect()
}

fn parse_line(line: &str) -> DiffLine {
    let (kind, rest) = match line.split_at_checked(1) {
        Some(("+", rest)) => (DiffKind::Added, rest),
        Some(("-", rest)) => (DiffKind::Removed, rest),
        Some((" ", rest)) => (DiffKind::Context, rest),
        _ => (DiffKind::Context, line),
    };
    let unpadded = rest.trim_start_matches(' ');
    if kind == DiffKind::Context && unpadded == "..." {
        return DiffLine { kind: DiffKind::Gap, number: None, text: unpadded.to_owned() };
    }
    let digits = unpadded.len() - unpadded.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, after) = unpadded.split_at_checked(digits).unwrap_or(("", unpadded));
    match (number.parse(), after.strip_prefix(' ')) {
        (Ok(number), Some(text)) => DiffLine { kind, number: Some(number), text: text.to_owned() },
        (Ok(number), None) if after.is_empty() => {
            DiffLine { kind, number: Some(number), text: String::new() }
        }
        _ => DiffLine { kind, number: None, text: rest.to_owned() },
    }
}

/// The lines as rows; long ones wrap below their text.
pub fn diff_rows(lines: &[DiffLine], width: u16, theme: &Theme) -> Vec<Row> {
    let number_width = lines.iter().filter_map(|line| line.number).max().unwrap_or(0).to_string().len();
    let mut rows = Vec::new();
    let mut line_idx = 0;
    while line_idx < lines.len() {
        let n_removed = count(&lines[line_idx..], DiffKind::Removed);
        let n_added = count(&lines[line_idx + n_removed..], DiffKind::Added);
        if n_removed > 0 && n_removed == n_added {
            let (removed, added) = lines[line_idx..line_idx + 2 * n_removed].split_at(n_removed);
            let pairs: Vec<_> =
                removed.iter().zip(added).map(|(old, new)| changed_words(old, new, theme)).collect();
            for (line, (runs, _)) in removed.iter().zip(&pairs) {
                push_rows(line, runs, number_width, width, theme, &mut rows);
            }
            for (line, (_, runs)) in added.iter().zip(&pairs) {
                push_rows(line, runs, number_width, width, theme, &mut rows);
            }
            line_idx += 2 * n_removed;
        } else {
            let line = &lines[line_idx];
            let runs = [Run::new(shown(&line.text), style(line.kind, theme))];
            push_rows(line, &runs, number_width, width, theme, &mut rows);
            line_idx += 1;
        }
    }
    rows
}

fn count(lines: &[DiffLine], kind: DiffKind) -> usize {
    lines.iter().take_while(|line| line.kind == kind).count()
}

fn style(kind: DiffKind, theme: &Theme) -> Style {
    theme.style(match kind {
        DiffKind::Added => Token::ToolDiffAdded,
        DiffKind::Removed => Token::ToolDiffRemoved,
        DiffKind::Context | DiffKind::Gap => Token::ToolDiffContext,
    })
}

fn push_rows(
    line: &DiffLine,
    runs: &[Run],
    number_width: usize,
    width: u16,
    theme: &Theme,
    rows: &mut Vec<Row>,
) {
    let sign = match line.kind {
        DiffKind::Added => '+',
        DiffKind::Removed => '-',
        DiffKind::Context | DiffKind::Gap => ' ',
    };
    let number = line.number.map(|number| number.to_string()).unwrap_or_default();
    let gutter = format!("{sign}{number:>number_width$} ");
    let blank = " ".repeat(gutter.len());
    let wrap = Wrap::new(width).first(gutter, style(line.kind, theme)).rest(blank, Style::new());
    rows.extend(wrap.runs(runs));
}

/// The runs of an old and a new line, with differences reversed. Lines that have
/// little in common are not marked, because marks everywhere mean nothing.
fn changed_words(old: &DiffLine, new: &DiffLine, theme: &Theme) -> (Vec<Run>, Vec<Run>) {
    const MAX_BYTES: usize = 2_000;
    const MIN_RATIO: f32 = 0.4;
    let (old_text, new_text) = (shown(&old.text), shown(&new.text));
    let (old_style, new_style) = (style(old.kind, theme), style(new.kind, theme));
    if old_text.len().max(new_text.len()) <= MAX_BYTES {
        let diff = TextDiff::from_unicode_words(old_text.as_str(), new_text.as_str());
        if diff.ratio() >= MIN_RATIO {
            let (mut old_runs, mut new_runs) = (Vec::new(), Vec::new());
            for change in diff.iter_all_changes() {
                let run = |style: Style, changed: bool| {
                    let style = if changed { style.add_modifier(Modifier::REVERSED) } else { style };
                    Run::new(change.value(), style)
                };
                match change.tag() {
                    ChangeTag::Delete => old_runs.push(run(old_style, true)),
                    ChangeTag::Insert => new_runs.push(run(new_style, true)),
                    ChangeTag::Equal => {
                        old_runs.push(run(old_style, false));
                        new_runs.push(run(new_style, false));
                    }
                }
            }
            return (old_runs, new_runs);
        }
    }
    (vec![Run::new(old_text, old_style)], vec![Run::new(new_text, new_style)])
}

/// The displayed text: tabs as spaces, no control characters.
fn shown(text: &str) -> String {
    sanitize_line(&text.replace('\t', &" ".repeat(TAB_WIDTH))).into_owned()
}

#[cfg(test)]
mod tests {
    use super::super::super::theme::{Appearance, ColorDepth};
    use super::*;

    fn theme() -> Theme {
        Theme::builtin("dark", Appearance::Dark, ColorDepth::True).unwrap()
    }

    fn texts(lines: &[DiffLine], width: u16) -> Vec<String> {
        diff_rows(lines, width, &theme()).iter().map(Row::text).collect()
    }

    #[test]
    fn numbers_lines_and_leaves_gaps() {
        let old: String = (1..=20).map(|n| format!("line {n}\n")).collect();
        let new = old.replace("line 3\n", "line three\n").replace("line 18\n", "");
        assert_eq!(
            texts(&diff_lines(&old, &new, 1), 40),
            [
                "  2 line 2",
                "- 3 line 3",
                "+ 3 line three",
                "  4 line 4",
                "    ...",
                " 17 line 17",
                "-18 line 18",
                " 18 line 19",
            ]
        );
        assert_eq!(diff_lines("same", "same", 3), []);
    }

    #[test]
    fn written_diffs_are_read_back() {
        let text = "- 9 a\tb\n+ 9 ab\n    ...\n 10 \n10";
        assert_eq!(texts(&parse_diff(text), 40), ["- 9 a   b", "+ 9 ab", "    ...", " 10 ", " 10 "]);
        assert_eq!(
            parse_diff("é"),
            [DiffLine { kind: DiffKind::Context, number: None, text: "é".to_owned() }]
        );
    }

    #[test]
    fn only_changed_words_stand_out() {
        let lines = diff_lines("let a = old(1);\n", "let a = new(1);\n", 3);
        let rows = diff_rows(&lines, 40, &theme());
        let reversed = |row: &Row| -> String {
            let spans =
                row.line.spans.iter().filter(|span| span.style.add_modifier.contains(Modifier::REVERSED));
            spans.map(|span| span.content.as_ref()).collect()
        };
        assert_eq!((reversed(&rows[0]), reversed(&rows[1])), ("old".to_owned(), "new".to_owned()));
    }

    #[test]
    fn long_lines_wrap_under_their_text() {
        let lines = [DiffLine { kind: DiffKind::Added, number: Some(7), text: "some words".to_owned() }];
        assert_eq!(texts(&lines, 8), ["+7 some", "   words"]);
        assert!(texts(&lines, 1).iter().all(|row| row.chars().count() <= 1));
    }
}
