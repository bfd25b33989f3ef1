//! Compaction: replaces the beginning of a conversation with a summary.
//!
//! `plan` decides which part is summarised and which is kept, `prompts` writes the
//! requests, `summarize` sends them and assembles the result, `estimate` counts tokens.
//! Everything except the sending is pure. The session task decides when to compact and
//! stores the result; nothing changes before the summary is complete.

mod estimate;
mod plan;
mod prompts;
mod summarize;

pub(super) use estimate::context_tokens;
pub use plan::NothingToCompact;
pub(super) use plan::{CompactionPlan, plan};
pub(super) use summarize::{Summarizer, Summary, SummaryError};
