//! Summaries that a model writes while the session waits for them.

use std::sync::Arc;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::super::compaction::{Announce, Summarizer, Summary, SummaryError};
use super::super::event::SummarySource;
use super::super::handle::SessionError;
use super::super::recovery::RetryPolicy;
use super::super::run::ActiveRun;
use super::AgentSession;
use super::branching::{Branching, Departure};
use super::compacting::{ActiveCompaction, Compacting};
use super::handoff;

/// A summary being written. Dropping it does not end the task; cancelling does.
pub(super) struct ActiveSummary {
    pub(super) task: JoinHandle<Result<Summary, SummaryError>>,
    pub(super) cancel: CancellationToken,
    pub(super) purpose: SummaryPurpose,
}

impl ActiveSummary {
    /// Cancels the summary, and the run that waits for it.
    pub(super) fn cancel(&self) {
        self.cancel.cancel();
        if let Some(run) = self.paused_run() {
            run.cancel.cancel();
        }
    }

    pub(super) fn paused_run(&self) -> Option<&ActiveRun> {
        match &self.purpose {
            SummaryPurpose::Compaction(compaction) => compaction.paused_run(),
            SummaryPurpose::Branch(_) | SummaryPurpose::Handoff => None,
        }
    }
}

/// What becomes of a summary.
pub(super) enum SummaryPurpose {
    Compaction(ActiveCompaction),
    Branch(Departure),
    Handoff,
}

/// What writes summaries for `source`, with the model in force and requests of their own.
///
/// # Errors
/// Without a key.
pub(super) async fn summarizer(
    session: &AgentSession,
    source: SummarySource,
) -> Result<Summarizer, SessionError> {
    let model = Arc::clone(session.model.model());
    let credential = session.model.credential().await?;
    let thinking = session.model.selection().thinking();
    let settings = session.settings.get();
    let mut options = session.services.options(&settings.values, &model, thinking, "");
    // A separate request without a successor: caching it would waste money.
    (options.session_id, options.long_cache) = (None, false);
    Ok(Summarizer {
        provider: Arc::clone(&session.services.provider),
        model,
        credential,
        options,
        clock: session.services.clock.clone(),
        retry: RetryPolicy::of(&settings.values),
        announce: Announce { outbox: session.outbox.clone(), source },
        cancel: CancellationToken::new(),
    })
}

/// Hands a summary, or why there is none, to what it was written for.
pub(super) async fn on_end(session: &mut AgentSession, summary: Result<Summary, SummaryError>) {
    match session.run.take_summary().map(|active| active.purpose) {
        Some(SummaryPurpose::Compaction(compaction)) => {
            Compacting::of(session).on_end(compaction, summary).await;
        }
        Some(SummaryPurpose::Branch(departure)) => {
            Branching::of(session).on_summary(departure, summary).await;
        }
        Some(SummaryPurpose::Handoff) => handoff::on_end(session, summary).await,
        None => {}
    }
}
