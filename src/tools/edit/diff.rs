//! Describes changes, for the screen and for `patch`.

use std::time::Duration;

use similar::{DiffOp, TextDiff};

use crate::util::with_last_breaks;

use super::EditPreview;

/// Most bytes of the lines of a description, which is stored with the result. A change of a
/// file with one line of many megabytes would otherwise store that line four times.
const MAX_BYTES: usize = 1 << 20;

/// Bytes kept of each line in a longer description.
const MAX_LINE_BYTES: usize = 4 << 10;

/// Unchanged lines shown on each side of a change.
const CONTEXT_LINES: usize = 4;

/// After this time the diff becomes coarser instead of minimal.
const DIFF_TIMEOUT: Duration = Duration::from_millis(500);

/// One row of the diff.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variants say what the fields are")]
pub enum DiffRow {
    /// `line` counts from 1 in the new file.
    Added { line: usize, text: String },
    /// `line` counts from 1 in the old file.
    Removed { line: usize, text: String },
    /// `line` counts from 1 in the old file.
    Context { line: usize, text: String },
    /// Unchanged lines that are not shown.
    Skipped,
}

/// The difference of two texts with LF line breaks; `name` heads the patch.
pub(super) fn describe(before: &str, after: &str, name: &str) -> EditPreview {
    let diff = TextDiff::configure().timeout(DIFF_TIMEOUT).diff_lines(before, after);
    let is_long = n_bytes(&diff) > MAX_BYTES;
    let (old, new) = with_last_breaks(before, after);
    let is_same = old == before && new == after;
    let of_lines = (!is_same).then(|| TextDiff::configure().timeout(DIFF_TIMEOUT).diff_lines(&*old, &*new));
    let shown = of_lines.as_ref().unwrap_or(&diff);
    let rows = rows(shown, is_long);
    // A patch with truncated lines would be wrong.
    let patch = match is_long {
        true => String::new(),
        false => diff.unified_diff().context_radius(CONTEXT_LINES).header(name, name).to_string(),
    };
    let n_lines = before.split('\n').count().max(after.split('\n').count());
    EditPreview {
        diff: display(&rows, n_lines.to_string().len()),
        patch,
        first_changed_line: first_changed_line(shown.ops()),
        rows,
    }
}

/// The length of the lines that rows and patch would repeat.
fn n_bytes(diff: &TextDiff<'_, '_, str>) -> usize {
    let old = |idx: usize| diff.old_slice(idx).map_or(0, str::len);
    let new = |idx: usize| diff.new_slice(idx).map_or(0, str::len);
    let ops = diff.grouped_ops(CONTEXT_LINES).into_iter().flatten();
    ops.map(|op| match op {
        DiffOp::Equal { .. } => op.old_range().map(old).sum::<usize>(),
        _ => op.old_range().map(old).sum::<usize>() + op.new_range().map(new).sum::<usize>(),
    })
    .sum()
}

/// If the difference `is_long`, with truncated lines, and without what exceeds the limit.
fn rows(diff: &TextDiff<'_, '_, str>, is_long: bool) -> Vec<DiffRow> {
    let text = |line: Option<&str>| match text(line) {
        line if is_long => clipped(line),
        line => line,
    };
    let old = |idx: usize| text(diff.old_slice(idx));
    let new = |idx: usize| text(diff.new_slice(idx));
    let mut rows = Vec::new();
    let mut old_shown = 0;
    for group in diff.grouped_ops(CONTEXT_LINES) {
        if group.first().is_some_and(|op| op.old_range().start > old_shown) {
            rows.push(DiffRow::Skipped);
        }
        for op in group {
            let (old_range, new_range) = (op.old_range(), op.new_range());
            old_shown = old_range.end;
            if matches!(op, DiffOp::Equal { .. }) {
                rows.extend(old_range.map(|idx| DiffRow::Context { line: idx + 1, text: old(idx) }));
            } else {
                rows.extend(old_range.map(|idx| DiffRow::Removed { line: idx + 1, text: old(idx) }));
                rows.extend(new_range.map(|idx| DiffRow::Added { line: idx + 1, text: new(idx) }));
            }
        }
    }
    if is_long {
        let (n_rows, mut n_bytes) = (rows.len(), 0);
        rows.retain(|row| {
            n_bytes += row.text().len() + 1;
            n_bytes <= MAX_BYTES
        });
        if rows.len() < n_rows {
            rows.push(DiffRow::Skipped);
            return rows;
        }
    }
    if old_shown < diff.old_len() && !rows.is_empty() {
        rows.push(DiffRow::Skipped);
    }
    rows
}

impl DiffRow {
    fn text(&self) -> &str {
        match self {
            Self::Added { text, .. } | Self::Removed { text, .. } | Self::Context { text, .. } => text,
            Self::Skipped => "",
        }
    }
}

/// A line without what follows its first [`MAX_LINE_BYTES`].
fn clipped(mut line: String) -> String {
    if line.len() > MAX_LINE_BYTES {
        line.truncate(line.floor_char_boundary(MAX_LINE_BYTES));
        line.push('…');
    }
    line
}

fn text(line: Option<&str>) -> String {
    let line = line.unwrap_or_default();
    line.strip_suffix('\n').unwrap_or(line).to_owned()
}

fn display(rows: &[DiffRow], number_width: usize) -> String {
    let line = |row: &DiffRow| match row {
        DiffRow::Added { line, text } => format!("+{line:>number_width$} {text}"),
        DiffRow::Removed { line, text } => format!("-{line:>number_width$} {text}"),
        DiffRow::Context { line, text } => format!(" {line:>number_width$} {text}"),
        DiffRow::Skipped => format!(" {:>number_width$} ...", ""),
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Counts from 1 in the new text; for lines that were only removed, the line that
/// replaced them.
fn first_changed_line(ops: &[DiffOp]) -> u64 {
    let first = ops.iter().find(|op| !matches!(op, DiffOp::Equal { .. }));
    first.map_or(1, |op| op.new_range().start as u64 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(n_lines: usize) -> String {
        (1..=n_lines).map(|n| format!("line {n}\n")).collect()
    }

    #[test]
    fn shows_changes_with_context_and_skips_the_rest() {
        let before = numbered(30);
        let after = before.replace("line 10\n", "ten\nten and a half\n").replace("line 25\n", "");
        let preview = describe(&before, &after, "a.txt");
        insta::assert_snapshot!(preview.diff, @"
            ...
          6 line 6
          7 line 7
          8 line 8
          9 line 9
        -10 line 10
        +10 ten
        +11 ten and a half
         11 line 11
         12 line 12
         13 line 13
         14 line 14
            ...
         21 line 21
         22 line 22
         23 line 23
         24 line 24
        -25 line 25
         26 line 26
         27 line 27
         28 line 28
         29 line 29
            ...
        ");
        insta::assert_snapshot!(preview.patch, @"
        --- a.txt
        +++ a.txt
        @@ -6,9 +6,10 @@
         line 6
         line 7
         line 8
         line 9
        -line 10
        +ten
        +ten and a half
         line 11
         line 12
         line 13
         line 14
        @@ -21,9 +22,8 @@
         line 21
         line 22
         line 23
         line 24
        -line 25
         line 26
         line 27
         line 28
         line 29
        ");
        assert_eq!(preview.first_changed_line, 10);
    }

    #[test]
    fn close_changes_share_their_context() {
        let preview = describe("a\nb\nc\n", "A\nb\nC\n", "x");
        assert_eq!(preview.diff, "-1 a\n+1 A\n 2 b\n-3 c\n+3 C");
    }

    #[test]
    fn a_missing_break_at_the_end_is_shown_in_the_patch() {
        let preview = describe("a\nb", "a\nc", "x");
        assert_eq!(preview.diff, " 1 a\n-2 b\n+2 c");
        let note = "\\ No newline at end of file\n";
        assert_eq!(preview.patch, format!("--- x\n+++ x\n@@ -1,2 +1,2 @@\n a\n-b\n{note}+c\n{note}"));
    }

    #[test]
    fn a_last_line_that_only_gets_a_break_is_not_changed() {
        let check = |before: &str, after: &str, diff: &str, first: u64| {
            let preview = describe(before, after, "x");
            assert_eq!((preview.diff.as_str(), preview.first_changed_line), (diff, first));
        };
        check("a\nb", "a\nb\nc\n", " 1 a\n 2 b\n+3 c", 3);
        check("a\nb", "a\nb\nc", " 1 a\n 2 b\n+3 c", 3);
        check("a\nb\n", "a", " 1 a\n-2 b", 2);
        // Otherwise nothing would be shown.
        check("a\nb", "a\nb\n", " 1 a\n-2 b\n+2 b", 2);
        let patch = describe("a\nb", "a\nb\nc\n", "x").patch;
        assert!(patch.contains("-b\n\\ No newline at end of file\n+b\n+c\n"), "{patch}");
    }

    #[test]
    fn a_change_of_a_very_long_line_is_described_in_brief() {
        let long = "é".repeat(MAX_BYTES);
        let preview = describe(&format!("a\n{long}x\n"), &format!("a\n{long}y\n"), "x");
        assert!(
            preview.diff.len() < 3 * MAX_LINE_BYTES && preview.patch.is_empty(),
            "{}",
            preview.diff.len()
        );
        assert_eq!((preview.rows.len(), preview.first_changed_line), (3, 2));

        let before = numbered(200_000);
        let preview = describe(&before, &before.replace("line", "row"), "x");
        assert!(preview.diff.len() < 4 * MAX_BYTES && preview.patch.is_empty(), "{}", preview.diff.len());
        assert_eq!(preview.rows.last(), Some(&DiffRow::Skipped));
    }

    #[test]
    fn an_emptied_file_has_only_removed_lines() {
        let preview = describe("a\n", "", "x");
        assert_eq!((preview.diff.as_str(), preview.first_changed_line), ("-1 a", 1));
    }
}
