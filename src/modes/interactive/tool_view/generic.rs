//! Any other tool: its name, its arguments, the beginning of its output.

use serde_json::Value;

use crate::tui::text::{Ellipsis, Row, Run, truncate, visible_line, wrap_plain};
use crate::tui::theme::Token;

use super::super::transcript::RenderCx;
use super::ToolState;
use super::lines::{below, error, head, title};

/// Maximum width of each argument while collapsed.
const VALUE_CELLS: usize = 100;

/// Maximum rows of output while collapsed.
const COLLAPSED_ROWS: usize = 10;

pub(super) fn rows(state: &ToolState<'_>, cx: &RenderCx<'_>) -> Vec<Row> {
    let empty = serde_json::Map::new();
    let arguments = state.arguments.as_object().unwrap_or(&empty);
    let style = cx.style(Token::ToolOutput);
    let mut rows = if cx.view.expanded {
        let mut rows = title(state, [], cx);
        for (key, value) in arguments {
            rows.extend(wrap_plain(&argument(key, value), cx.width, style));
        }
        rows
    } else {
        let short = |(key, value): (&String, &Value)| {
            Run::new(truncate(&argument(key, value), VALUE_CELLS, Ellipsis::One), style)
        };
        title(state, arguments.iter().map(short), cx)
    };
    if let Some(output) = state.error() {
        below(&mut rows, error(output, cx));
    } else if let Some(output) = &state.output {
        below(&mut rows, head(&output.text, state.limit(COLLAPSED_ROWS, cx), style, cx));
    }
    rows
}

/// `key=value` on one line; texts without quotes.
fn argument(key: &str, value: &Value) -> String {
    let value = match value {
        Value::String(text) => visible_line(text),
        other => visible_line(&other.to_string()),
    };
    format!("{}={value}", visible_line(key))
}
