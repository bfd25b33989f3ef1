//! `grep`, `find` and `ls`: the pattern, the folder, and the first results.

use crate::tui::text::{Row, Run, sanitize_line, visible_line, wrap_plain};
use crate::tui::theme::Token;

use super::super::transcript::RenderCx;
use super::ToolState;
use super::lines::{MISSING, below, error, head, path, split_remark, title};

/// Maximum rows of results while collapsed.
const COLLAPSED_ROWS: usize = 15;

pub(super) fn grep(state: &ToolState<'_>, cx: &RenderCx<'_>) -> Vec<Row> {
    let pattern = state.text("pattern").map(|pattern| format!("/{pattern}/"));
    let mut rest = vec![subject(pattern.as_deref(), cx)];
    rest.extend(place(state, cx));
    if let Some(glob) = state.text("glob") {
        rest.push(Run::new(format!("({})", visible_line(glob)), cx.style(Token::Muted)));
    }
    found(state, rest, cx)
}

pub(super) fn find(state: &ToolState<'_>, cx: &RenderCx<'_>) -> Vec<Row> {
    let mut rest = vec![subject(state.text("pattern"), cx)];
    rest.extend(place(state, cx));
    found(state, rest, cx)
}

pub(super) fn ls(state: &ToolState<'_>, cx: &RenderCx<'_>) -> Vec<Row> {
    found(state, vec![folder(state, cx)], cx)
}

fn subject(pattern: Option<&str>, cx: &RenderCx<'_>) -> Run {
    match pattern {
        Some(pattern) => Run::new(visible_line(pattern), cx.style(Token::Accent)),
        None => Run::new(MISSING, cx.style(Token::Muted)),
    }
}

/// `in` and the folder.
fn place(state: &ToolState<'_>, cx: &RenderCx<'_>) -> [Run; 2] {
    [Run::new("in", cx.style(Token::Muted)), folder(state, cx)]
}

/// The folder of the arguments, or the session's own.
fn folder(state: &ToolState<'_>, cx: &RenderCx<'_>) -> Run {
    match state.text("path").is_none_or(str::is_empty) {
        true => cx.path(".", cx.style(Token::Accent)),
        false => path(state, cx),
    }
}

fn found(state: &ToolState<'_>, rest: Vec<Run>, cx: &RenderCx<'_>) -> Vec<Row> {
    let mut rest = rest;
    if let Some(limit) = state.number("limit") {
        rest.push(Run::new(format!("limit {limit}"), cx.style(Token::Muted)));
    }
    let mut rows = title(state, rest, cx);
    if let Some(output) = state.error() {
        below(&mut rows, error(output, cx));
    } else if let Some(output) = &state.output {
        let (text, remark) = match output.details {
            Some(_) => split_remark(&output.text),
            None => (&*output.text, None),
        };
        let limit = state.limit(COLLAPSED_ROWS, cx);
        below(&mut rows, head(text, limit, cx.style(Token::ToolOutput), cx));
        if let Some(remark) = remark {
            below(&mut rows, wrap_plain(&sanitize_line(remark), cx.width, cx.style(Token::Warning)));
        }
    }
    rows
}
