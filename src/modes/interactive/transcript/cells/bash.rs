//! A `!` or `!!` command of the user.

use std::time::Duration;

use crate::session::BashExecution;
use crate::tools::saved_output;
use crate::tui::text::{Row, Run, Wrap, wrap_plain};
use crate::tui::theme::Token;

use super::super::super::tool_view;
use super::super::render::{RenderCx, side};

/// Maximum rows of output while it runs, and afterwards while collapsed.
const TAIL_ROWS: usize = 20;

/// Approximate maximum of kept output while the command runs; its end event contains the
/// output that the session keeps.
const LIVE_BYTES: usize = 16 * 1024;

#[derive(Debug)]
pub(in super::super) struct BashCell {
    command: String,
    /// Whether the model does not see it.
    excluded: bool,
    state: State,
}

#[derive(Debug)]
enum State {
    Running {
        output: String,
        /// Number of dropped lines of output.
        n_dropped: usize,
    },
    Ended(Box<BashExecution>),
}

impl BashCell {
    pub(in super::super) fn start(command: &str, excluded: bool) -> Self {
        Self {
            command: command.to_owned(),
            excluded,
            state: State::Running { output: String::new(), n_dropped: 0 },
        }
    }

    pub(in super::super) fn ended(execution: &BashExecution) -> Self {
        Self {
            command: execution.command.clone(),
            excluded: execution.exclude_from_context == Some(true),
            state: State::Ended(Box::new(execution.clone())),
        }
    }

    pub(in super::super) fn push(&mut self, chunk: &str) {
        let State::Running { output, n_dropped } = &mut self.state else { return };
        add_live(output, chunk);
        if output.len() > 2 * LIVE_BYTES {
            let cut = output.ceil_char_boundary(output.len() - LIVE_BYTES);
            let cut = output.get(cut..).and_then(|rest| rest.find('\n')).map_or(cut, |at| cut + at + 1);
            *n_dropped += output.drain(..cut).filter(|c| *c == '\n').count();
        }
    }

    pub(in super::super) fn end(&mut self, execution: &BashExecution) {
        self.state = State::Ended(Box::new(execution.clone()));
    }

    /// Ends a command whose end was never reported.
    pub(in super::super) fn cancel(&mut self) -> bool {
        let State::Running { output, .. } = &mut self.state else { return false };
        let execution =
            BashExecution { output: std::mem::take(output), cancelled: true, ..BashExecution::default() };
        self.state = State::Ended(Box::new(execution));
        true
    }

    pub(super) fn is_done(&self) -> bool {
        matches!(self.state, State::Ended(_))
    }

    /// Passes on command and output.
    pub(super) fn each_text(&self, each: &mut dyn FnMut(&str)) {
        each(&self.command);
        match &self.state {
            State::Running { output, .. } => each(output),
            State::Ended(execution) => each(&execution.output),
        }
    }

    pub(super) fn rows(&self, cx: &RenderCx<'_>) -> Vec<Row> {
        let frame = cx.style(if self.excluded { Token::Dim } else { Token::BashMode });
        // The bar is where the editor has no border and tool calls have a background.
        let bar = if side(cx.width) > 0 { " │ " } else { "" };
        let inner = cx.narrower(4 * side(cx.width));
        let style = if self.excluded { frame } else { cx.bold(Token::BashMode) };
        let mut title = vec![Run::new("$ ", style)];
        title.extend(tool_view::judged(self.command.trim(), style, cx));
        if self.excluded {
            title.push(Run::new(" (not shown to the model)", cx.style(Token::Dim)));
        }
        let mut content = tool_view::runs(&title, &inner);
        let (output, n_dropped, limit) = match &self.state {
            State::Running { output, n_dropped } => (output, *n_dropped, Some(TAIL_ROWS)),
            State::Ended(execution) => (&execution.output, 0, (!cx.view.expanded).then_some(TAIL_ROWS)),
        };
        let token = if self.excluded { Token::Dim } else { Token::Muted };
        let output = tool_view::tail(output, n_dropped, limit, cx.style(token), &inner);
        if !output.is_empty() {
            content.push(Row::default());
            content.extend(output);
        }
        if let State::Ended(execution) = &self.state {
            let status = status(execution, &inner);
            if !status.is_empty() {
                content.push(Row::default());
                content.extend(status);
            }
        }
        content.iter_mut().for_each(|row| row.indent(bar, frame));
        content
    }
}

/// Adds a piece of live output, in which a carriage return stands before a new version of the
/// current line.
fn add_live(output: &mut String, chunk: &str) {
    let mut versions = chunk.split('\r');
    output.push_str(versions.next().unwrap_or_default());
    for version in versions {
        output.truncate(output.rfind('\n').map_or(0, |at| at + 1));
        output.push_str(version);
    }
}

/// The outcome if it is worth a line, and the duration.
fn status(execution: &BashExecution, cx: &RenderCx<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    let (failure, error) = tool_view::end_mark(tool_view::End::Failure);
    let ended = match execution.exit_code {
        _ if execution.cancelled => Some((Token::Warning, "– Command cancelled".to_owned())),
        Some(0) => None,
        Some(code) => Some((error, format!("{failure}Command exited with code {code}"))),
        None => Some((error, format!("{failure}Command did not run"))),
    };
    if let Some((token, text)) = ended {
        rows.extend(wrap_plain(&text, cx.width, cx.style(token)));
    }
    if execution.truncated {
        let mut note = vec![Run::new("Output truncated.", cx.style(Token::Warning))];
        if let Some(path) = &execution.full_output_path {
            let saved = saved_output(execution.left_out_bytes.unwrap_or_default());
            note.push(Run::new(format!(" {saved}: "), cx.style(Token::Warning)));
            note.push(cx.path(path, cx.style(Token::Warning)));
            note.push(Run::new("; /output shows it", cx.style(Token::Muted)));
        }
        rows.extend(Wrap::new(cx.width).runs(&note));
    }
    if let Some(millis) = execution.duration_ms {
        let took = format!("Took {}", tool_view::duration(Duration::from_millis(millis)));
        rows.extend(wrap_plain(&took, cx.width, cx.style(Token::Muted)));
    }
    rows
}
