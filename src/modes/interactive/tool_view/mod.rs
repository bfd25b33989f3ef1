//! Views of tool calls, one file per tool.
//!
//! [`VIEWS`] names the tools that have a look of their own; all others get
//! [`generic`]. A view turns the state of a call into rows and keeps nothing; the
//! box around them is the cell's business. It has to cope with any arguments and
//! any details: they come from a model and from files.

mod bash;
mod diff;
mod edit;
mod generic;
mod lines;
mod read;
mod search;
mod write;

use std::borrow::Cow;
use std::time::Duration;

use serde_json::Value;

use crate::tui::text::Row;

use super::transcript::RenderCx;

pub(super) use lines::{grouped, head, hint, image_label, runs, tail};

/// How one tool's calls are shown.
pub(super) struct ToolView {
    pub(super) name: &'static str,
    /// Whether a running call shows how long it has been running.
    pub(super) shows_time: bool,
    rows: fn(&ToolState<'_>, &RenderCx<'_>) -> Vec<Row>,
}

const VIEWS: &[ToolView] = &[
    ToolView { name: "bash", shows_time: true, rows: bash::rows },
    ToolView { name: "read", shows_time: false, rows: read::rows },
    ToolView { name: "edit", shows_time: false, rows: edit::rows },
    ToolView { name: "write", shows_time: false, rows: write::rows },
    ToolView { name: "grep", shows_time: false, rows: search::grep },
    ToolView { name: "find", shows_time: false, rows: search::find },
    ToolView { name: "ls", shows_time: false, rows: search::ls },
];

const GENERIC: ToolView = ToolView { name: "", shows_time: false, rows: generic::rows };

/// The view for a tool of this name.
pub(super) fn view(name: &str) -> &'static ToolView {
    VIEWS.iter().find(|view| view.name == name).unwrap_or(&GENERIC)
}

/// How far a call has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// The model is still writing the arguments.
    Arriving,
    /// Complete; it may have output already.
    Running,
    Done,
}

/// A call as views see it.
pub(super) struct ToolState<'a> {
    pub(super) name: &'a str,
    /// An object, if the model wrote one; possibly cut off while arriving.
    pub(super) arguments: &'a Value,
    pub(super) stage: Stage,
    pub(super) output: Option<Output<'a>>,
    /// How long it has been running, or did run.
    pub(super) time: Option<Duration>,
}

/// What a call printed so far, or its result.
#[derive(Debug, Default)]
pub(super) struct Output<'a> {
    pub(super) text: Cow<'a, str>,
    /// What stands for its pictures, as [`image_label`] has it.
    pub(super) images: Vec<String>,
    pub(super) details: Option<&'a Value>,
    pub(super) is_error: bool,
}

impl ToolState<'_> {
    fn text(&self, key: &str) -> Option<&str> {
        self.arguments.get(key)?.as_str()
    }

    fn number(&self, key: &str) -> Option<f64> {
        self.arguments.get(key)?.as_f64()
    }

    /// How many rows may be shown: `collapsed`, or all of a finished call that is
    /// expanded. Rows of a running one cannot go to the scrollback, so there are
    /// never many.
    fn limit(&self, collapsed: usize, cx: &RenderCx<'_>) -> Option<usize> {
        const LIVE_ROWS: usize = 10;
        match (self.stage, cx.view.expanded) {
            (Stage::Done, true) => None,
            (Stage::Done, false) => Some(collapsed),
            (Stage::Arriving | Stage::Running, true) => Some(LIVE_ROWS),
            (Stage::Arriving | Stage::Running, false) => Some(collapsed.min(LIVE_ROWS)),
        }
    }

    /// The output if the call failed.
    fn error(&self) -> Option<&Output<'_>> {
        self.output.as_ref().filter(|output| output.is_error)
    }
}

/// The rows of a call, none wider than `cx.width`.
pub(super) fn rows(state: &ToolState<'_>, cx: &RenderCx<'_>) -> Vec<Row> {
    let mut rows = (view(state.name).rows)(state, cx);
    let images = state.output.iter().flat_map(|output| &output.images);
    rows.extend(images.flat_map(|label| lines::muted(label, cx)));
    rows
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use crate::tools::BUILTINS;

    use super::*;

    #[test]
    fn every_built_in_tool_has_a_view_and_no_other() {
        let views: BTreeSet<&str> = VIEWS.iter().map(|view| view.name).collect();
        let tools: BTreeSet<&str> = BUILTINS.iter().map(|tool| tool.name).collect();
        assert_eq!(views, tools);
        assert_eq!(views.len(), VIEWS.len());
        assert_eq!(view("oracle").name, "");
    }
}
