//! `write`: the file and the beginning of its new content.

use crate::tui::text::Row;

use super::super::transcript::RenderCx;
use super::ToolState;
use super::lines::{below, error, judged_code, path, title};

/// Maximum rows of content while collapsed.
const COLLAPSED_ROWS: usize = 10;

pub(super) fn rows(state: &ToolState<'_>, cx: &RenderCx<'_>) -> Vec<Row> {
    let mut rows = title(state, [path(state, cx)], cx);
    let name = state.text("path").unwrap_or_default();
    let content = state.text("content").unwrap_or_default();
    below(&mut rows, judged_code(content, name, state.limit(COLLAPSED_ROWS, cx), cx));
    if let Some(output) = state.error() {
        below(&mut rows, error(output, cx));
    }
    rows
}
