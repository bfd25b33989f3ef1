//! A tool call, from its first byte to its result.
//!
//! The tool's view draws the content; this file has the life cycle of a
//! call and the box around it.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::agent::{SKIPPED_CALL, ToolOutput};
use crate::ai::{ContentBlock, Extra, ToolCall, ToolResultMessage, join_text};
use crate::tui::text::Row;
use crate::tui::theme::Token;

use super::super::super::tool_view::{self, End, Output, Stage, ToolState};
use super::super::render::{BoxMark, RenderCx, box_inset, boxed};
use super::picture::Picture;

/// Running calls show their elapsed time in seconds.
const TICK: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(in super::super) struct ToolCell {
    name: String,
    arguments: Value,
    state: State,
    /// The images of the result.
    pub(super) pictures: Vec<Picture>,
    /// The elapsed time when it was last drawn.
    drawn_at: Option<Duration>,
}

/// A call that was taken up and has no result.
pub(in super::super) struct StartedCall<'a> {
    pub(in super::super) call: ToolCall,
    /// Since when it runs; `None` if it waits.
    pub(in super::super) since: Option<Duration>,
    /// Its output so far.
    pub(in super::super) partial: Option<&'a Arc<ToolOutput>>,
}

#[derive(Debug)]
enum State {
    /// Its arguments are still being written.
    Arriving,
    /// The arguments are complete; the answer may not be.
    Complete,
    /// It was taken up and does not run yet.
    Waiting,
    Running {
        since: Duration,
        partial: Option<Arc<ToolOutput>>,
    },
    Done {
        result: Outcome,
        took: Option<Duration>,
    },
}

#[derive(Debug)]
enum Outcome {
    /// The result, shared with the session.
    Result(Arc<ToolResultMessage>),
    /// There is no result, for this reason.
    Missing(String),
}

impl ToolCell {
    /// A call whose arguments are still arriving.
    pub(in super::super) fn arriving(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            arguments: Value::Object(Map::new()),
            state: State::Arriving,
            pictures: Vec::new(),
            drawn_at: None,
        }
    }

    pub(in super::super) fn new(call: &ToolCall) -> Self {
        let mut cell = Self::arriving(&call.name);
        cell.set_call(call);
        cell
    }

    pub(in super::super) fn is_arriving(&self) -> bool {
        matches!(self.state, State::Arriving)
    }

    pub(in super::super) fn set_partial_arguments(&mut self, arguments: Value) {
        if self.is_arriving() {
            self.arguments = arguments;
        }
    }

    pub(in super::super) fn set_call(&mut self, call: &ToolCall) {
        if matches!(self.state, State::Arriving | State::Complete) {
            self.name.clone_from(&call.name);
            self.arguments = call.readable_arguments().into_owned();
            self.state = State::Complete;
        }
    }

    pub(in super::super) fn start(&mut self, call: &ToolCall) {
        self.set_call(call);
        if matches!(self.state, State::Complete) {
            self.state = State::Waiting;
        }
    }

    pub(in super::super) fn run(&mut self, now: Duration) {
        if matches!(self.state, State::Waiting) {
            self.state = State::Running { since: now, partial: None };
        }
    }

    pub(in super::super) fn update(&mut self, output: &Arc<ToolOutput>) {
        if let State::Running { partial, .. } = &mut self.state {
            *partial = Some(Arc::clone(output));
        }
    }

    /// The result of a call that never ran has no duration, whatever it waited for.
    pub(in super::super) fn end(&mut self, result: &Arc<ToolResultMessage>) {
        let took = result.duration_ms.map(Duration::from_millis);
        if !self.is_done() {
            self.pictures = Picture::of_result(result);
        }
        self.finish(Outcome::Result(without_images(result)), took);
    }

    /// Ends a call that will have no result.
    pub(in super::super) fn fail(&mut self, reason: &str) -> bool {
        let open = !self.is_done();
        self.finish(Outcome::Missing(reason.to_owned()), None);
        open
    }

    fn finish(&mut self, result: Outcome, took: Option<Duration>) {
        if !self.is_done() {
            self.state = State::Done { result, took };
        }
    }

    /// The call, if it was taken up and has no result.
    pub(in super::super) fn started(&self, id: &str) -> Option<StartedCall<'_>> {
        let (since, partial) = match &self.state {
            State::Waiting => (None, None),
            State::Running { since, partial } => (Some(*since), partial.as_ref()),
            State::Arriving | State::Complete | State::Done { .. } => return None,
        };
        let call = ToolCall {
            id: id.to_owned(),
            name: self.name.clone(),
            arguments: self.arguments.clone(),
            thought_signature: None,
            arguments_error: None,
            extra: Extra::new(),
        };
        Some(StartedCall { call, since, partial })
    }

    pub(super) fn is_done(&self) -> bool {
        matches!(self.state, State::Done { .. })
    }

    pub(in super::super) fn shows_elapsed(&self) -> bool {
        matches!(self.state, State::Running { .. }) && tool_view::view(&self.name).shows_time
    }

    pub(super) fn is_due(&self, now: Duration) -> bool {
        self.shows_elapsed() && self.drawn_at.is_some_and(|drawn_at| now.saturating_sub(drawn_at) >= TICK)
    }

    fn elapsed(&self, now: Duration) -> Option<Duration> {
        match self.state {
            State::Running { since, .. } => Some(now.saturating_sub(since)),
            State::Arriving | State::Complete | State::Waiting | State::Done { .. } => None,
        }
    }

    /// Passes on the texts of arguments and output.
    pub(super) fn each_text(&self, each: &mut dyn FnMut(&str)) {
        each_string(&self.arguments, each);
        let output = match &self.state {
            State::Running { partial: Some(partial), .. } => {
                output(&partial.content, partial.details.as_ref(), partial.is_error)
            }
            State::Done { result, .. } => result.output(),
            State::Arriving | State::Complete | State::Waiting | State::Running { partial: None, .. } => {
                return;
            }
        };
        each(&output.text);
        if let Some(details) = output.details {
            each_string(details, each);
        }
    }

    pub(super) fn rows(&mut self, cx: &RenderCx<'_>) -> Vec<Row> {
        self.drawn_at = Some(cx.now);
        let (stage, background, time) = match &self.state {
            State::Arriving => (Stage::Arriving, Token::ToolPendingBg, None),
            State::Waiting => (Stage::Waiting, Token::ToolPendingBg, None),
            State::Complete | State::Running { .. } => {
                (Stage::Running, Token::ToolPendingBg, self.elapsed(cx.now))
            }
            State::Done { result, took } => {
                let background = match result.output().end {
                    End::Success => Token::ToolSuccessBg,
                    End::Failure | End::Missing => Token::ToolErrorBg,
                    End::Skipped => Token::ToolPendingBg,
                };
                (Stage::Done, background, *took)
            }
        };
        let background = cx.style(background);
        let inner = cx.narrower(box_inset(cx.width, background));
        let pictures: Vec<Row> = self.pictures.iter_mut().flat_map(|picture| picture.rows(&inner)).collect();
        let mut output = match &self.state {
            State::Running { partial: Some(partial), .. } => {
                Some(output(&partial.content, partial.details.as_ref(), partial.is_error))
            }
            State::Done { result, .. } => Some(result.output()),
            State::Arriving | State::Complete | State::Waiting | State::Running { partial: None, .. } => None,
        };
        if let Some(output) = &mut output {
            output.images.extend(pictures);
        }
        let state = ToolState { name: &self.name, arguments: &self.arguments, stage, output, time };
        boxed(tool_view::rows(&state, &inner), cx.width, background, BoxMark::Tool)
    }
}

/// Passes on the strings in a value.
fn each_string(value: &Value, each: &mut dyn FnMut(&str)) {
    match value {
        Value::String(text) => each(text),
        Value::Array(values) => values.iter().for_each(|value| each_string(value, each)),
        Value::Object(fields) => fields.values().for_each(|value| each_string(value, each)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

impl Outcome {
    fn output(&self) -> Output<'_> {
        match self {
            Self::Result(result) => output(&result.content, result.details.as_ref(), result.is_error),
            Self::Missing(reason) => {
                Output { text: Cow::Borrowed(reason), end: End::Missing, ..Output::default() }
            }
        }
    }
}

fn output<'a>(content: &'a [ContentBlock], details: Option<&'a Value>, is_error: bool) -> Output<'a> {
    let text = match content {
        [ContentBlock::Text(text)] => Cow::Borrowed(text.text.as_str()),
        blocks => Cow::Owned(join_text(blocks)),
    };
    let end = match is_error {
        false => End::Success,
        // The model reads it as an error, but nothing went wrong.
        true if text == SKIPPED_CALL => End::Skipped,
        true => End::Failure,
    };
    Output { text, images: Vec::new(), details, end }
}

/// The result, without the bytes of its images: those stay in memory only until the terminal
/// has them.
fn without_images(result: &Arc<ToolResultMessage>) -> Arc<ToolResultMessage> {
    let is_image = |block: &ContentBlock| matches!(block, ContentBlock::Image(_));
    if !result.content.iter().any(is_image) {
        return Arc::clone(result);
    }
    Arc::new(ToolResultMessage {
        tool_call_id: result.tool_call_id.clone(),
        tool_name: result.tool_name.clone(),
        content: result.content.iter().filter(|&block| !is_image(block)).cloned().collect(),
        details: result.details.clone(),
        is_error: result.is_error,
        duration_ms: result.duration_ms,
        timestamp: result.timestamp,
        extra: result.extra.clone(),
    })
}
