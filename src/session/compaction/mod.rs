//! Compaction: a summary in place of the beginning of a conversation.
//!
//! `plan` decides what is summarised and what is kept, `prompts` writes the requests,
//! `summarize` sends them and puts the answer together, `estimate` counts tokens. All
//! but the sending is pure. When to compact, and storing the result, are the session
//! task's business; nothing is changed before a whole summary is there.

mod estimate;
mod plan;
mod prompts;
mod summarize;

pub(super) use estimate::context_tokens;
pub(super) use plan::{CompactionPlan, NothingToCompact, plan};
pub(super) use summarize::{Summarizer, Summary, SummaryError};
