//! `bash`: the command, the end of its output, and its outcome.

use crate::tui::text::{Row, Run, sanitize, sanitize_line, wrap_plain};
use crate::tui::theme::Token;

use super::super::transcript::RenderCx;
use super::lines::{MISSING, below, duration, end_mark, judged, runs, split_remark, tail, whole_seconds};
use super::{End, Output, Stage, ToolState};

/// Maximum rows of output while collapsed.
const COLLAPSED_ROWS: usize = 5;

pub(super) fn rows(state: &ToolState<'_>, cx: &RenderCx<'_>) -> Vec<Row> {
    let command = state.text("command").map(str::trim).filter(|command| !command.is_empty());
    let style = cx.bold(Token::ToolTitle);
    let mut title = vec![Run::new("$ ", style)];
    title.extend(judged(command.unwrap_or(MISSING), style, cx));
    if let Some(secs) = state.number("timeout") {
        title.push(Run::new(format!(" (timeout {secs}s)"), cx.style(Token::Muted)));
    }
    if let Some(pending) = state.pending(cx).filter(|_| command.is_some()) {
        title.extend([Run::new(" ", pending.style), pending]);
    }
    let mut rows = runs(&title, cx);
    let none = Output::default();
    let parts = Parts::of(state.output.as_ref().unwrap_or(&none));
    below(
        &mut rows,
        tail(parts.printed, 0, state.limit(COLLAPSED_ROWS, cx), cx.style(Token::ToolOutput), cx),
    );
    below(&mut rows, foot(state, &parts, cx));
    rows
}

fn foot(state: &ToolState<'_>, parts: &Parts<'_>, cx: &RenderCx<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut line = |text: &str, token: Token| rows.extend(wrap_plain(text, cx.width, cx.style(token)));
    if let Some(remark) = parts.remark {
        line(&sanitize_line(remark), Token::Warning);
        if has_file(state) {
            // The file of a very long output lacks the middle.
            let what = if remark.contains(" in the middle: ") { "what was saved" } else { "all of it" };
            line(&format!("/output shows {what}"), Token::Muted);
        }
    }
    if let Some(status) = parts.status {
        let (mark, token) = end_mark(parts.end);
        line(&format!("{mark}{}", sanitize(status)), token);
    }
    if state.stage == Stage::Waiting {
        line("Waiting", Token::Muted);
    }
    if let Some(time) = state.time {
        let text = match state.stage {
            Stage::Done => format!("Took {}", duration(time)),
            _ => format!("Elapsed {}", whole_seconds(time)),
        };
        line(&text, Token::Muted);
    }
    rows
}

/// Whether a file has the output, or most of it.
fn has_file(state: &ToolState<'_>) -> bool {
    state.output.as_ref().and_then(|output| output.details?.get("fullOutputPath")).is_some()
}

/// A result split into the command's output and the tool's remarks.
#[derive(Debug, PartialEq)]
struct Parts<'a> {
    printed: &'a str,
    /// A remark about missing output.
    remark: Option<&'a str>,
    /// Why the command failed, or did not run.
    status: Option<&'a str>,
    end: End,
}

impl<'a> Parts<'a> {
    fn of(output: &'a Output<'_>) -> Self {
        let mut parts = Self { printed: &output.text, remark: None, status: None, end: output.end };
        if output.end != End::Success {
            let is_of_command = |(_, last): &(&str, &str)| last.starts_with("Command ");
            // Other errors come before anything was printed.
            let split = parts.printed.rsplit_once("\n\n").filter(is_of_command);
            let (printed, status) = split.unwrap_or(("", parts.printed));
            (parts.printed, parts.status) = (printed, Some(status));
        }
        let is_cut = output.details.and_then(|details| details.get("truncation")).is_some();
        if is_cut {
            (parts.printed, parts.remark) = split_remark(parts.printed);
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(text: &str, is_error: bool, is_cut: bool, expected: (&str, Option<&str>, Option<&str>)) {
        let details = json!({ "truncation": {} });
        let end = if is_error { End::Failure } else { End::Success };
        let output =
            Output { text: text.into(), end, details: is_cut.then_some(&details), ..Output::default() };
        let parts = Parts::of(&output);
        assert_eq!((parts.printed, parts.remark, parts.status), expected);
    }

    #[test]
    fn output_and_remarks_are_told_apart() {
        check("a\n", false, false, ("a\n", None, None));
        check("a\n\n[x]", false, false, ("a\n\n[x]", None, None));
        check("a\n\n[x]", false, true, ("a", Some("[x]"), None));
        check(
            "a\n\n\nCommand exited with code 3",
            true,
            false,
            ("a\n", None, Some("Command exited with code 3")),
        );
        check("a\n\n[x]\n\nCommand aborted", true, true, ("a", Some("[x]"), Some("Command aborted")));
        check("Command aborted", true, false, ("", None, Some("Command aborted")));
        let refused = "no JSON object\n\nReceived arguments:\n{";
        check(refused, true, false, ("", None, Some(refused)));
    }
}
