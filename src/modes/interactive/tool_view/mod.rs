//! Views of tool calls, one file per tool.
//!
//! [`VIEWS`] lists the tools with a view of their own; all others use
//! [`generic`]. A view converts the state of a call to rows and has no state itself; the
//! cell draws the box around them. Views must handle any arguments and
//! details, because they come from a model and from files.

mod bash;
mod edit;
mod generic;
mod lines;
mod read;
mod search;
mod write;

use std::borrow::Cow;
use std::time::Duration;

use serde_json::Value;

use crate::tui::text::{Row, Run};
use crate::tui::theme::Token;

use super::transcript::RenderCx;

pub(super) use lines::{characters_hint, duration, end_mark, head, hint, image_label, judged, runs, tail};

/// How calls of one tool are shown.
pub(super) struct ToolView {
    pub(super) name: &'static str,
    /// Whether a running call shows its elapsed time.
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

/// The view for the tool with this name.
pub(super) fn view(name: &str) -> &'static ToolView {
    VIEWS.iter().find(|view| view.name == name).unwrap_or(&GENERIC)
}

/// The stage of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// The model is still writing the arguments.
    Arriving,
    /// The call was taken up and does not run yet.
    Waiting,
    /// The arguments are complete; there may be partial output.
    Running,
    Done,
}

/// A call as views see it.
pub(super) struct ToolState<'a> {
    pub(super) name: &'a str,
    /// An object, if the model wrote one; may be truncated while arriving.
    pub(super) arguments: &'a Value,
    pub(super) stage: Stage,
    pub(super) output: Option<Output<'a>>,
    /// Its elapsed time, or its final duration.
    pub(super) time: Option<Duration>,
}

/// The partial output of a call, or its result.
#[derive(Debug, Default)]
pub(super) struct Output<'a> {
    pub(super) text: Cow<'a, str>,
    /// Its images, or lines in their place.
    pub(super) images: Vec<Row>,
    pub(super) details: Option<&'a Value>,
    pub(super) end: End,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum End {
    /// Also while it runs.
    #[default]
    Success,
    Failure,
    /// It has no result, because its answer broke off or the session stopped.
    Missing,
    /// It never ran, because the user sent something else.
    Skipped,
}

impl ToolState<'_> {
    fn text(&self, key: &str) -> Option<&str> {
        self.arguments.get(key)?.as_str()
    }

    fn number(&self, key: &str) -> Option<f64> {
        self.arguments.get(key)?.as_f64()
    }

    /// Maximum number of rows: `collapsed`, or unlimited for a finished call that is
    /// expanded. Rows of a running call cannot move to the scrollback, so their number
    /// is limited, except where there is none.
    fn limit(&self, collapsed: usize, cx: &RenderCx<'_>) -> Option<usize> {
        match (self.stage, cx.view.expanded) {
            (Stage::Done, true) => None,
            (Stage::Done, false) => Some(collapsed),
            (Stage::Arriving | Stage::Waiting | Stage::Running, true) => cx.view.live_rows,
            (Stage::Arriving | Stage::Waiting | Stage::Running, false) => {
                Some(cx.view.live_rows.map_or(collapsed, |live_rows| live_rows.min(collapsed)))
            }
        }
    }

    /// The output if the call failed or was skipped.
    fn error(&self) -> Option<&Output<'_>> {
        self.output.as_ref().filter(|output| output.end != End::Success)
    }

    /// What the title of a call ends with that runs and shows no time.
    fn pending(&self, cx: &RenderCx<'_>) -> Option<Run> {
        let shows_time = view(self.name).shows_time && (self.time.is_some() || self.stage == Stage::Waiting);
        let text = match self.stage {
            Stage::Done => return None,
            Stage::Waiting => "… waiting",
            Stage::Arriving | Stage::Running => "…",
        };
        (!shows_time).then(|| Run::new(text, cx.style(Token::Muted)))
    }
}

/// The rows of a call, none wider than `cx.width`.
pub(super) fn rows(state: &ToolState<'_>, cx: &RenderCx<'_>) -> Vec<Row> {
    let mut rows = (view(state.name).rows)(state, cx);
    rows.extend(state.output.iter().flat_map(|output| &output.images).cloned());
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
