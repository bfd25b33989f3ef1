//! Lines of JSON, from and to other programs.
//!
//! `input` reads lines on a thread of its own, `output` writes them on another; both know no
//! protocol. The others are for JSON and RPC mode, with names, fields and order of the
//! original (`docs/json.md`): `events` turns each event of a session into lines, `slim` bounds
//! a line, `conversation` is the message list of a session.

mod conversation;
mod events;
mod input;
mod output;
mod slim;

pub(super) use conversation::conversation;
pub(super) use events::{CompactionResult, EventStyle, Lines, as_compaction};
pub(super) use input::{LineInput, MAX_LINE_BYTES, next_input, read_lines};
pub(super) use output::{LineFormat, LineOutput, Outgoing, Waiting, join_updates};
