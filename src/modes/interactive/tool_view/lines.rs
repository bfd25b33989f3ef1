//! Parts that several views and cells share.

use std::path::Path;
use std::time::Duration;

use ratatui::style::Style;

use crate::ai::ContentBlock;
use crate::tui::text::{
    Ellipsis, OutputLine, Row, Run, WRAPPED_MARK, Wrap, keep_replaced, keep_tabs, output_lines, sanitize,
    sanitize_line, truncate_row, visible_line, visible_replaced, visible_runs, width, wrap_plain,
};
use crate::tui::theme::Token;

use super::super::transcript::RenderCx;
use super::{End, Output, ToolState};

/// In place of an argument that has not arrived.
pub(super) const MISSING: &str = "…";

/// Maximum rows of a title while collapsed.
const TITLE_ROWS: usize = 10;

/// Maximum rows of an error while collapsed.
const ERROR_ROWS: usize = 10;

/// The first rows of `text`, and a hint about hidden ones. `None` means no limit.
pub(in super::super) fn head(text: &str, limit: Option<usize>, style: Style, cx: &RenderCx<'_>) -> Vec<Row> {
    first(text, limit, cx, |line| {
        let mut rows = wrap_plain(&sanitize(line), cx.width, style);
        keep_tabs(&mut rows, line);
        rows
    })
}

/// The first rows of code in the language of the file at `path`.
pub(super) fn code(text: &str, path: &str, limit: Option<usize>, cx: &RenderCx<'_>) -> Vec<Row> {
    let mut lines = cx.highlighter.lines(language(path));
    let wrap = Wrap::new(cx.width).rest(WRAPPED_MARK, cx.style(Token::Dim));
    first(text, limit, cx, |line| {
        let mut rows = wrap.runs(&lines.next_line(&sanitize_line(line), cx.theme));
        keep_tabs(&mut rows, line);
        rows
    })
}

/// Like [`code`], for code that the model wrote and the user has to judge.
pub(super) fn judged_code(text: &str, path: &str, limit: Option<usize>, cx: &RenderCx<'_>) -> Vec<Row> {
    let mut lines = cx.highlighter.lines(language(path));
    let wrap = Wrap::new(cx.width).rest(WRAPPED_MARK, cx.style(Token::Dim));
    let draw = |line: &str| {
        let (shown, replaced) = visible_replaced(line);
        let mut rows = wrap.runs(&lines.next_line(&shown, cx.theme));
        keep_replaced(&mut rows, &replaced);
        rows
    };
    let (mut rows, left_out) = first_rows(text, limit, draw);
    if left_out > 0 {
        let total = text.trim_end_matches(['\n', '\r']).lines().count();
        rows.push(hint_of_total(left_out, total, cx));
    }
    rows
}

/// Text of the model or the user to be judged, as runs: what cannot be seen is spelt out and stands out.
pub(in super::super) fn judged(text: &str, style: Style, cx: &RenderCx<'_>) -> Vec<Run> {
    visible_runs(text, style, style.patch(cx.style(Token::Warning)))
}

/// The name of the language: the extension, or the file name if there is none.
pub(super) fn language(path: &str) -> &str {
    let path = Path::new(path);
    path.extension().or_else(|| path.file_name()).and_then(|name| name.to_str()).unwrap_or_default()
}

/// The first rows of `text`, and a hint about hidden lines.
fn first(
    text: &str,
    limit: Option<usize>,
    cx: &RenderCx<'_>,
    draw: impl FnMut(&str) -> Vec<Row>,
) -> Vec<Row> {
    let (mut rows, left_out) = first_rows(text, limit, draw);
    if left_out > 0 {
        rows.push(hint(left_out, "more", cx));
    }
    rows
}

/// Draws lines until there are enough rows; the rest is only counted.
fn first_rows(text: &str, limit: Option<usize>, mut draw: impl FnMut(&str) -> Vec<Row>) -> (Vec<Row>, usize) {
    let text = text.trim_end_matches(['\n', '\r']);
    let mut rows = Vec::new();
    if text.is_empty() {
        return (rows, 0);
    }
    let limit = limit.unwrap_or(usize::MAX);
    let mut lines = text.lines();
    while rows.len() < limit {
        let Some(line) = lines.next() else { return (rows, 0) };
        rows.extend(draw(line));
    }
    let is_cut = rows.len() > limit;
    rows.truncate(limit);
    (rows, lines.count() + usize::from(is_cut))
}

/// The last rows of a command's output, in its colours, below a hint about hidden
/// ones. `n_before` lines preceded `text`.
pub(in super::super) fn tail(
    text: &str,
    n_before: usize,
    limit: Option<usize>,
    style: Style,
    cx: &RenderCx<'_>,
) -> Vec<Row> {
    let wrap = Wrap::new(cx.width);
    let mut lines = output_lines(text.trim_end_matches(['\n', '\r', ' ']));
    let limit = limit.unwrap_or(usize::MAX);
    let mut from_end: Vec<Row> = Vec::new();
    while from_end.len() < limit {
        let Some(OutputLine { shown, with_tabs }) = lines.pop() else { break };
        let mut line = cx.theme.output(shown);
        line.style = style.patch(line.style);
        let mut rows = wrap.line(&line);
        keep_tabs(&mut rows, with_tabs.as_deref().unwrap_or_default());
        from_end.extend(rows.into_iter().rev());
    }
    let cut = from_end.len().saturating_sub(limit);
    from_end.truncate(limit);
    let rows_of = |OutputLine { shown: line, .. }: &OutputLine| {
        let cells: usize = line.spans.iter().map(|span| width(&span.content)).sum();
        if cells <= usize::from(cx.width) { 1 } else { wrap.line(line).len() }
    };
    let left_out = n_before + cut + lines.iter().map(rows_of).sum::<usize>();
    if left_out > 0 && !from_end.is_empty() {
        from_end.push(hint(left_out, "earlier", cx));
    }
    from_end.reverse();
    from_end
}

/// Reports hidden lines and how to show them.
pub(in super::super) fn hint(n_lines: usize, which: &str, cx: &RenderCx<'_>) -> Row {
    hidden(n_lines, &lines_of(n_lines, which), None, cx)
}

/// Reports hidden lines, of how many, and how to show them.
fn hint_of_total(n_lines: usize, total: usize, cx: &RenderCx<'_>) -> Row {
    hidden(n_lines, &lines_of(n_lines, "more"), Some(total), cx)
}

fn lines_of(n_lines: usize, which: &str) -> String {
    format!("{which} {}", if n_lines == 1 { "line" } else { "lines" })
}

/// Reports hidden characters of a long line and how to show them.
pub(in super::super) fn characters_hint(n_chars: usize, cx: &RenderCx<'_>) -> Row {
    hidden(n_chars, "more characters", None, cx)
}

fn hidden(n: usize, what: &str, total: Option<usize>, cx: &RenderCx<'_>) -> Row {
    let (key, effect) = match cx.view.expanded {
        true => (&cx.view.page_key, "show"),
        false => (&cx.view.expand_key, "expand"),
    };
    let plain = format!("… ({n} {what})");
    let with_total = total.map(|total| format!("{n} {what}, {total} total"));
    let mut texts: Vec<String> = with_total
        .into_iter()
        .map(|text| match key.is_empty() {
            true => format!("… ({text})"),
            false => format!("… ({text}, {key} to {effect})"),
        })
        .collect();
    if !key.is_empty() {
        texts.extend([
            format!("… ({n} {what}, {key} to {effect})"),
            format!("… ({n} {what}, {key})"),
            format!("… ({n}, {key})"),
        ]);
    }
    texts.push(plain);
    let fits = texts.iter().find(|text| width(text) <= usize::from(cx.width)).or(texts.last());
    let mut row = Row::styled(fits.cloned().unwrap_or_default(), cx.style(Token::Muted));
    truncate_row(&mut row, cx.width, Ellipsis::One);
    row
}

/// One logical line of styled text; only its beginning while collapsed.
pub(in super::super) fn runs(runs: &[Run], cx: &RenderCx<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut line: Vec<Run> = Vec::new();
    let wrap = Wrap::new(cx.width);
    for run in runs {
        for (part_idx, part) in run.text.split('\n').enumerate() {
            if part_idx > 0 {
                rows.extend(wrap.runs(&std::mem::take(&mut line)));
            }
            line.push(Run { text: part.to_owned(), ..run.clone() });
        }
    }
    rows.extend(wrap.runs(&line));
    if !cx.view.expanded && rows.len() > TITLE_ROWS {
        let left_out = rows.len() - TITLE_ROWS;
        rows.truncate(TITLE_ROWS);
        rows.push(hint(left_out, "more", cx));
    }
    rows
}

/// The first line of a call: the tool's name in bold, then its target.
pub(super) fn title(
    state: &ToolState<'_>,
    rest: impl IntoIterator<Item = Run>,
    cx: &RenderCx<'_>,
) -> Vec<Row> {
    let mut title = vec![match state.name.trim() {
        "" => Run::new("(no tool name)", cx.style(Token::Muted)),
        name => Run::new(visible_line(name), cx.bold(Token::ToolTitle)),
    }];
    for run in rest {
        title.push(Run::new(" ", Style::new()));
        title.push(run);
    }
    // An ellipsis in place of an argument says the same.
    if let Some(pending) = state.pending(cx).filter(|_| title.last().is_none_or(|run| run.text != MISSING)) {
        title.push(Run::new(" ", Style::new()));
        title.push(pending);
    }
    runs(&title, cx)
}

/// The path argument, or an ellipsis until it arrives.
pub(super) fn path(state: &ToolState<'_>, cx: &RenderCx<'_>) -> Run {
    match state.text("path").filter(|path| !path.is_empty()) {
        Some(path) => cx.path(path, cx.style(Token::Accent)),
        None => Run::new(MISSING, cx.style(Token::Muted)),
    }
}

/// What the result of a call that did not succeed begins with.
pub(in super::super) fn end_mark(end: End) -> (&'static str, Token) {
    match end {
        End::Skipped => ("– ", Token::Muted),
        End::Success | End::Failure | End::Missing => ("✗ ", Token::Error),
    }
}

/// The text of a call that failed or was skipped.
pub(super) fn error(output: &Output<'_>, cx: &RenderCx<'_>) -> Vec<Row> {
    let limit = (!cx.view.expanded).then_some(ERROR_ROWS);
    let (mark, token) = end_mark(output.end);
    let mut rows = head(&output.text, limit, cx.style(token), &cx.narrower(2));
    for (row_idx, row) in rows.iter_mut().enumerate() {
        row.indent(if row_idx == 0 { mark } else { "  " }, cx.style(token));
        row.clip(cx.width);
    }
    rows
}

/// Adds rows after a blank one; does nothing if there are none.
pub(super) fn below(rows: &mut Vec<Row>, more: Vec<Row>) {
    if !more.is_empty() {
        rows.push(Row::default());
        rows.extend(more);
    }
}

/// Splits off the last paragraph if it is a remark of the tool in brackets.
pub(super) fn split_remark(text: &str) -> (&str, Option<&str>) {
    match text.rsplit_once("\n\n") {
        Some((body, last)) if last.starts_with('[') && last.ends_with(']') => (body, Some(last)),
        _ if text.starts_with('[') && text.ends_with(']') && !text.contains('\n') => ("", Some(text)),
        _ => (text, None),
    }
}

/// Text that replaces an image: its media type or its URL. `None` for other blocks.
pub(in super::super) fn image_label(block: &ContentBlock) -> Option<String> {
    match block {
        ContentBlock::Image(image) => Some(format!("[Image: {}]", sanitize_line(&image.mime_type))),
        ContentBlock::ImageUrl(image) => Some(sanitize_line(&image.label()).into_owned()),
        ContentBlock::Text(_) | ContentBlock::Unknown(_) => None,
    }
}

/// `4.2s`, `1m 30s`, `2h 3m 4s`.
pub(in super::super) fn duration(time: Duration) -> String {
    let secs = time.as_secs();
    match secs {
        0..60 => format!("{}.{}s", secs, time.subsec_millis() / 100),
        60..3600 => format!("{}m {}s", secs / 60, secs % 60),
        _ => format!("{}h {}m {}s", secs / 3600, secs / 60 % 60, secs % 60),
    }
}

/// The time of what still runs, which is drawn once per second.
pub(in super::super) fn whole_seconds(time: Duration) -> String {
    match time.as_secs() {
        secs @ 0..60 => format!("{secs}s"),
        _ => duration(time),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_short() {
        for (millis, expected) in
            [(0, "0.0s"), (4_290, "4.2s"), (59_999, "59.9s"), (90_000, "1m 30s"), (7_384_000, "2h 3m 4s")]
        {
            assert_eq!(duration(Duration::from_millis(millis)), expected);
        }
        for (millis, expected) in [(999, "0s"), (59_999, "59s"), (90_000, "1m 30s")] {
            assert_eq!(whole_seconds(Duration::from_millis(millis)), expected);
        }
    }

    #[test]
    fn remarks_are_the_last_paragraph_in_brackets() {
        assert_eq!(split_remark("a\n\n[more]"), ("a", Some("[more]")));
        assert_eq!(split_remark("[only]"), ("", Some("[only]")));
        assert_eq!(split_remark("a\n[1]"), ("a\n[1]", None));
        assert_eq!(split_remark("a\n\n[x] y"), ("a\n\n[x] y", None));
    }

    #[test]
    fn the_language_is_the_extension_or_the_name() {
        for (path, expected) in
            [("src/a.rs", "rs"), ("Makefile", "Makefile"), ("/x/.bashrc", ".bashrc"), ("", "")]
        {
            assert_eq!(language(path), expected);
        }
    }
}
