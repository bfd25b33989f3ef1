//! Summaries: in place of the beginning of a conversation, and of a branch that is left.
//!
//! `plan` decides which part is summarised and which is kept, `branch` does so for a branch,
//! `portions` divides what is longer than a request, `prompts` writes the requests, `summarize`
//! sends them and assembles the result, `estimate` counts tokens. Everything except the sending is pure. The session task decides
//! when to compact and stores the result; nothing changes before the summary is complete.

mod branch;
mod estimate;
mod plan;
mod portions;
mod prompts;
mod summarize;

pub(super) use branch::{BranchPlan, plan_branch};
pub(super) use estimate::{
    IMAGE_CHARS, context_tokens, context_tokens_unless_compacted, context_tokens_up_to, tokens_of_chars,
};
pub(super) use plan::{CompactionPlan, PlanLimits, plan_of, with_quotes};
pub use plan::{CompactionPreview, NothingToCompact, preview_compaction};
pub(super) use summarize::{Announce, Summarizer, Summary, SummaryError};
