//! `read`: the file and its lines; the text only while expanded, except why an image was omitted.

use crate::tools::omitted_image_note;
use crate::tui::text::{Row, sanitize_line, wrap_plain};
use crate::tui::theme::Token;

use super::super::transcript::RenderCx;
use super::lines::{below, code, error, path, split_remark, title};
use super::{Output, Stage, ToolState};

pub(super) fn rows(state: &ToolState<'_>, cx: &RenderCx<'_>) -> Vec<Row> {
    let mut shown = path(state, cx);
    shown.text.push_str(&range(state));
    let mut rows = title(state, [shown], cx);
    if let Some(output) = state.error() {
        below(&mut rows, error(output, cx));
    } else if let (true, Stage::Done, Some(output)) = (cx.view.expanded, state.stage, &state.output) {
        let (text, remark) = split_remark(&output.text);
        let name = state.text("path").unwrap_or_default();
        // The remarks about an image are not text of the file.
        let name = if output.images.is_empty() { name } else { "" };
        below(&mut rows, code(text, name, None, cx));
        if let Some(remark) = remark {
            below(&mut rows, wrap_plain(&sanitize_line(remark), cx.width, cx.style(Token::Warning)));
        }
    } else if let Some(note) = state.output.as_ref().and_then(|output| omitted_image_note(&output.text)) {
        below(&mut rows, wrap_plain(&sanitize_line(note), cx.width, cx.style(Token::Warning)));
    }
    if let Some(note) = state.output.as_ref().and_then(unseen_image_note) {
        below(&mut rows, wrap_plain(&sanitize_line(&note), cx.width, cx.style(Token::Warning)));
    }
    rows
}

/// Names the model that could not see the image of the result.
fn unseen_image_note(output: &Output<'_>) -> Option<String> {
    let model = output.details?.get("imageUnsupportedByModel")?.as_str()?;
    Some(format!("[{model} does not support images; it saw a placeholder instead]"))
}

/// `:3-12`, `:3` for all lines from one on, or empty for the whole file.
fn range(state: &ToolState<'_>) -> String {
    // The casts saturate, because a model may write any number.
    let offset = state.number("offset").map(|offset| (offset as u64).max(1));
    let limit = state.number("limit").map(|limit| limit as u64).filter(|limit| *limit > 0);
    match (offset, limit) {
        (None, None) => String::new(),
        (Some(from), None) => format!(":{from}"),
        (from, Some(n_lines)) => {
            let from = from.unwrap_or(1);
            format!(":{from}-{}", from.saturating_add(n_lines).saturating_sub(1))
        }
    }
}
