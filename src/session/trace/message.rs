//! The parts of a trace.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::util::clock;

use super::super::store::EntryId;

/// The messages of a session's active branch, oldest first.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Trace {
    /// `None` if the entries did not come from a file.
    pub session_id: Option<String>,
    /// The prompts, oldest first.
    pub messages: Vec<TracedMessage>,
    /// Names lines of the file that could not be read.
    #[serde(skip)]
    pub damage: Option<String>,
}

/// A prompt and the steps that answered it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TracedMessage {
    /// Id of the prompt's entry.
    pub id: EntryId,
    /// Id of the prompt that started the run; a steering message has the id of the run it
    /// was sent to.
    pub request_id: EntryId,
    /// Unique in the session and increasing, so that it can be a cursor.
    pub time: TraceTime,
    /// What the user wrote.
    pub text: String,
    /// How many images went along.
    pub n_images: usize,
    /// What the agent did about it, in order.
    pub steps: Vec<TraceStep>,
    /// Whether the last step ended normally and every call has a result.
    pub completed: bool,
    /// Number of entries of this message; grows while steps are added.
    pub version: u64,
    /// The entries of this message, in order.
    #[serde(skip)]
    pub entries: Vec<EntryId>,
}

/// One answer of the model, with its tool calls.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TraceStep {
    /// Id of the answer's entry.
    pub id: EntryId,
    /// Counts from 0 within the message.
    pub iteration: usize,
    /// ISO 8601, when the answer was complete.
    pub time: String,
    /// The thinking of the answer; empty if there is none or the provider hides it.
    pub thought: String,
    /// The text of the answer.
    pub text: String,
    /// `provider/id`.
    pub model: String,
    /// Why the answer ended, as files name it.
    pub stop_reason: String,
    /// What the provider reported, if the answer failed.
    pub error: Option<String>,
    /// From request to end; `None` if the file does not say.
    pub duration_ms: Option<u64>,
    /// Its tool calls, in order.
    pub calls: Vec<TracedCall>,
}

/// A tool call and its result.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TracedCall {
    /// As the model named the call.
    pub id: String,
    /// The tool.
    pub name: String,
    /// As the model made them.
    pub args: Value,
    /// `None` for a call that never finished.
    pub result: Option<CallResult>,
    /// The model's next text after the result.
    pub reflection: Option<String>,
    /// How long the tool ran; `None` if the file does not say.
    pub duration_ms: Option<u64>,
    /// Whether `duration_ms` is derived from the times of entries, because the file does
    /// not contain the duration.
    pub duration_estimated: bool,
}

/// The result of a tool call.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CallResult {
    /// Whether the result is not an error.
    pub success: bool,
    /// The text that the model reads; images are only counted.
    pub output: String,
    /// How many images the result has.
    pub n_images: usize,
    /// The tool's details for screens, such as a diff.
    pub data: Option<Value>,
    /// The output of a failed call.
    pub error: Option<String>,
    /// Size of text and base64 images.
    pub n_bytes: u64,
}

impl TracedCall {
    /// Whether the call has a result and the result is not an error.
    pub fn succeeded(&self) -> bool {
        self.result.as_ref().is_some_and(|result| result.success)
    }
}

/// A position in a trace: nanoseconds since the Unix epoch, written in RFC 3339.
///
/// ```
/// use pi::session::TraceTime;
///
/// let time: TraceTime = "2026-11-21T09:23:47.445000001Z".parse()?;
/// assert_eq!(time.to_string(), "2026-11-21T09:23:47.445000001Z");
/// assert!(time > "2026-11-21T10:23:47.445+01:00".parse()?);
/// assert!("yesterday".parse::<TraceTime>().is_err());
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct TraceTime(pub u64);

impl fmt::Display for TraceTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&clock::rfc3339_nanos(self.0))
    }
}

impl FromStr for TraceTime {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let problem = || format!("\"{text}\" is not a time; write it like 2026-11-21T09:23:47.445Z");
        clock::parse_rfc3339_nanos(text).map(Self).ok_or_else(problem)
    }
}

impl Serialize for TraceTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
