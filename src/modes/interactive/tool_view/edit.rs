//! `edit`: the file and the diff; during the call, the requested edits.

use crate::tools::Edit;
use crate::tui::text::Row;

use super::super::transcript::RenderCx;
use super::diff::{self, DiffLine};
use super::lines::{below, error, path, title};
use super::{Stage, ToolState};

pub(super) fn rows(state: &ToolState<'_>, cx: &RenderCx<'_>) -> Vec<Row> {
    let mut rows = title(state, [path(state, cx)], cx);
    if let Some(output) = state.error() {
        below(&mut rows, error(output, cx));
        return rows;
    }
    let stored = state.output.as_ref().and_then(|output| output.details?.get("diff")?.as_str());
    let lines = match stored {
        Some(diff) => diff::parse(diff),
        None => asked(state),
    };
    // A finished edit is shown completely, because the user wants to review it.
    let limit = if state.stage == Stage::Done { None } else { state.limit(usize::MAX, cx) };
    below(&mut rows, diff::rows(&lines, limit, cx));
    rows
}

/// The diff of the texts in the arguments; their positions are unknown.
fn asked(state: &ToolState<'_>) -> Vec<DiffLine> {
    let mut lines = Vec::new();
    for edit in Edit::from_arguments(state.arguments) {
        if !lines.is_empty() {
            lines.push(DiffLine::skipped());
        }
        lines.extend(diff::between(&edit.old_text, &edit.new_text));
    }
    lines
}
