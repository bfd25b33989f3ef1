//! The trace of a session: prompts, the steps that answered them, and tool calls.
//!
//! Built from the entries of the active branch, so it works for a saved session and for
//! one that is open, in this program or in another. `message` has the types, `build`
//! derives them from entries, `page` cuts pages with a cursor, `stats` sums up tool
//! calls, `delete` hides or removes messages, and `recorder` writes the facts that a
//! reader could otherwise only guess. All except `delete` and [`read_trace`] is pure. The
//! invariant: every prompt, answer, call and result of the branch is in exactly one place.
//!
//! ```
//! use std::sync::Arc;
//! use pi::session::{Entry, Trace};
//!
//! let lines = [
//!     r#"{"type":"message","id":"p1","parentId":null,"timestamp":"2026-11-21T09:00:00.000Z",
//!         "message":{"role":"user","content":"What is in notes.md?","timestamp":0}}"#,
//!     r#"{"type":"message","id":"a1","parentId":"p1","timestamp":"2026-11-21T09:00:02.000Z",
//!         "message":{"role":"assistant","content":[{"type":"toolCall","id":"c1","name":"read",
//!         "arguments":{"path":"notes.md"}}],"stopReason":"toolUse","timestamp":0}}"#,
//!     r#"{"type":"message","id":"r1","parentId":"a1","timestamp":"2026-11-21T09:00:02.010Z",
//!         "message":{"role":"toolResult","toolCallId":"c1","toolName":"read","durationMs":7,
//!         "content":[{"type":"text","text":"buy milk"}],"isError":false,"timestamp":0}}"#,
//!     r#"{"type":"message","id":"a2","parentId":"r1","timestamp":"2026-11-21T09:00:03.000Z",
//!         "message":{"role":"assistant","content":[{"type":"text","text":"You want to buy milk."}],
//!         "stopReason":"stop","timestamp":0}}"#,
//! ];
//! let branch: Vec<Arc<Entry>> =
//!     lines.iter().map(|line| Arc::new(Entry::parse(line).unwrap())).collect();
//! let trace = Trace::of(&branch);
//!
//! let page = trace.page(10, None);
//! let message = page.messages[0];
//! assert!(message.completed);
//! assert_eq!((message.text.as_str(), message.steps.len()), ("What is in notes.md?", 2));
//! let call = &message.steps[0].calls[0];
//! assert_eq!((call.name.as_str(), call.duration_ms), ("read", Some(7)));
//! assert_eq!(call.result.as_ref().unwrap().output, "buy milk");
//! assert_eq!(call.reflection.as_deref(), Some("You want to buy milk."));
//! ```

mod build;
mod delete;
mod message;
mod page;
mod recorder;
mod stats;

use std::path::Path;

pub use delete::{DeleteError, delete_message, purge_message};
pub use message::{CallResult, Trace, TraceStep, TraceTime, TracedCall, TracedMessage};
pub use page::TracePage;
pub(super) use recorder::StepRecorder;
pub use stats::{CallOf, ToolStats};

use super::open::damage as damage_notice;
use super::store::{OpenError, SessionStore, read_header};

/// Reads the trace of the active branch of the session in `path`, without opening the
/// session. Blocks: reads the whole file.
///
/// # Errors
/// If the file cannot be read or is not a session.
///
/// ```
/// use pi::session::{TraceTime, read_trace};
///
/// let path = std::path::Path::new("tests/fixtures/sessions/tools3.jsonl");
/// let trace = read_trace(path)?;
/// // The newest page, then the one before it.
/// let newest = trace.page(1, None);
/// if let Some(before) = newest.next_before {
///     let older = trace.page(1, Some(before));
///     assert!(older.messages[0].time < newest.messages[0].time);
/// }
/// // Statistics per tool, and calls that failed.
/// for tool in trace.tool_stats() {
///     println!("{}: {} calls, {} failed", tool.name, tool.calls, tool.failures);
/// }
/// assert!(trace.failed_calls().iter().all(|found| !found.call.succeeded()));
/// # Ok::<(), pi::session::OpenError>(())
/// ```
pub fn read_trace(path: &Path) -> Result<Trace, OpenError> {
    let saved = SessionStore::read(path)?;
    let session_id = read_header(path).map(|header| header.id);
    Ok(Trace { session_id, damage: damage_notice(&saved.damage), ..Trace::of(&saved.branch) })
}
