//! Summaries: in place of the beginning of a conversation, and of a branch that is left.
//!
//! `limits` fits the user's budget into the window, `plan` decides which part is summarised and which is
//! kept, `branch` does so for a branch, `portions` divides what is longer than a request, `prompts`
//! writes the requests, `summarize` sends them and assembles the result, `excerpt` replaces a summary
//! that the model does not write, `shorten` cuts what exceeds its share, `estimate` counts tokens.
//! Everything except the sending is pure. The session task decides when to compact and stores the
//! result; nothing changes before the summary is complete.

mod branch;
mod estimate;
mod excerpt;
mod limits;
mod plan;
mod portions;
mod prompts;
mod shorten;
mod summarize;

pub(super) use branch::{BranchPlan, plan_branch};
pub(super) use estimate::{
    IMAGE_CHARS, context_tokens, context_tokens_unless_compacted, context_tokens_up_to, message_tokens,
    tokens_of_chars,
};
pub(super) use limits::{PlanLimits, reserve};
pub(super) use plan::{CompactionPlan, PlanAim, plan_of, with_quotes};
pub use plan::{CompactionPreview, NothingToCompact, preview_compaction};
pub(super) use shorten::{fit_results, has_large_results, largest_share, result_chars, within};
pub(super) use summarize::{Announce, Summarizer, Summary, SummaryError};
