//! The events of a session as lines of JSON, for other programs.
//!
//! Names, fields and their order are those of the original (`docs/json.md`). `events` turns
//! each event of a session into lines, `slim` bounds a line, `output` writes lines to standard
//! output on a thread of its own, `conversation` is the message list of a session.

mod conversation;
mod events;
mod output;
mod slim;

pub(super) use conversation::conversation;
pub(super) use events::{CompactionResult, EventStyle, Lines, as_compaction};
pub(super) use output::{LineOutput, Outgoing};
