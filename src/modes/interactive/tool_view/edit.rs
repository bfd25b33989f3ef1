//! `edit`: the file and the diff; without a result, the requested edits.

use crate::tools::Edit;
use crate::tui::text::{Row, wrap_plain};
use crate::tui::theme::Token;
use crate::tui::widgets::{DiffLine, DiffRows, changes_last_break, diff_between, parse_diff};

use super::super::transcript::RenderCx;
use super::lines::{below, error, hint, language, path, title};
use super::{End, Stage, ToolState};

pub(super) fn rows(state: &ToolState<'_>, cx: &RenderCx<'_>) -> Vec<Row> {
    let mut rows = title(state, [path(state, cx)], cx);
    let failed = state.error();
    if let Some(output) = failed.filter(|output| output.end != End::Missing) {
        below(&mut rows, error(output, cx));
        return rows;
    }
    let stored = state.output.as_ref().and_then(|output| output.details?.get("diff")?.as_str());
    let lines = match stored {
        Some(diff) => parse_diff(diff),
        None => asked(state),
    };
    // A finished edit is shown completely, because the user wants to review it.
    let limit = if state.stage == Stage::Done { None } else { state.limit(usize::MAX, cx) };
    below(&mut rows, diff(state, &lines, limit, cx));
    if stored.is_some() && changes_last_break(&lines) {
        let note = "The text of the last line did not change, only its line break.";
        rows.extend(wrap_plain(note, cx.width, cx.style(Token::Muted)));
    }
    if let Some(output) = failed {
        below(&mut rows, error(output, cx));
    }
    rows
}

/// The diff of the texts in the arguments; their positions are unknown.
fn asked(state: &ToolState<'_>) -> Vec<DiffLine> {
    let mut lines = Vec::new();
    for edit in Edit::from_arguments(state.arguments) {
        if !lines.is_empty() {
            lines.push(DiffLine::gap());
        }
        lines.extend(diff_between(&edit.old_text, &edit.new_text));
    }
    lines
}

/// Draws lines until there are `limit` rows.
fn diff(state: &ToolState<'_>, lines: &[DiffLine], limit: Option<usize>, cx: &RenderCx<'_>) -> Vec<Row> {
    let limit = limit.unwrap_or(usize::MAX);
    let lang = language(state.text("path").unwrap_or_default());
    let mut drawn = DiffRows::new(lines, lang, cx.width, cx.highlighter, cx.theme);
    let mut rows: Vec<Row> = Vec::new();
    while rows.len() < limit
        && let Some(more) = drawn.next()
    {
        rows.extend(more);
    }
    let left_out = drawn.n_left() + usize::from(rows.len() > limit);
    rows.truncate(limit);
    if left_out > 0 {
        rows.push(hint(left_out, "more", cx));
    }
    rows
}
