//! The session's activity: a run, the wait before a retry, a compaction, or none; and
//! the results of answers that affect the next one.

use tokio::time::Instant;

use crate::ai::{self, AssistantMessage};

use super::super::compaction::{Summary, SummaryError};
use super::super::event::SessionEvent;
use super::super::outbox::Outbox;
use super::super::recovery::{Again, Breadth, Next, Recovery, RetryPolicy};
use super::super::repair::Repair;
use super::super::run::{ActiveRun, Report};
use super::super::state::{ContextUsage, Phase, SessionState};
use super::super::store::{ContextEdit, EntryBody, EntryId};
use super::summaries::ActiveSummary;

pub(super) struct RunState {
    activity: Activity,
    recovery: Recovery,
    /// Entry of the latest answer of the current run.
    last_answer: Option<EntryId>,
    context: ContextUsage,
    outbox: Outbox,
}

/// The error of retries that the user ended.
/// The final error of retries that were cancelled.
pub const RETRY_CANCELLED: &str = "Retry cancelled";

/// The session's activity, with the means to stop it.
enum Activity {
    Idle,
    Running(ActiveRun),
    Retrying { at: Instant },
    Summarizing(ActiveSummary),
}

/// The events that wake a working session.
pub(super) enum RunInput {
    Report(Report),
    Ended,
    RetryNow,
    Summarized(Result<Summary, SummaryError>),
}

impl RunState {
    pub(super) fn new(outbox: Outbox) -> Self {
        Self {
            activity: Activity::Idle,
            recovery: Recovery::default(),
            last_answer: None,
            context: ContextUsage::default(),
            outbox,
        }
    }

    /// Resets everything; for another session, while nothing runs.
    pub(super) fn reset(&mut self) {
        *self = Self::new(self.outbox.clone());
    }

    pub(super) fn phase(&self) -> Phase {
        match self.activity {
            Activity::Idle => Phase::Idle,
            Activity::Running(_) => Phase::Running,
            Activity::Retrying { .. } => Phase::Retrying,
            Activity::Summarizing(_) => Phase::Compacting,
        }
    }

    /// The next input; never returns while the session is idle.
    pub(super) async fn next_input(&mut self) -> RunInput {
        match &mut self.activity {
            Activity::Idle => std::future::pending().await,
            Activity::Running(run) => run.reports.recv().await.map_or(RunInput::Ended, RunInput::Report),
            Activity::Retrying { at } => {
                tokio::time::sleep_until(*at).await;
                RunInput::RetryNow
            }
            Activity::Summarizing(active) => {
                let summary = (&mut active.task).await;
                RunInput::Summarized(summary.unwrap_or_else(|error| Err(SummaryError::of_task(&error))))
            }
        }
    }

    /// A report that has already arrived.
    pub(super) fn try_report(&mut self) -> Option<Report> {
        let Activity::Running(run) = &mut self.activity else { return None };
        run.reports.try_recv().ok()
    }

    // Beginning and end.

    /// Prepares for a run; returns how it differs from an ordinary one.
    pub(super) fn prepare(&mut self, is_prompted: bool) -> Again {
        if is_prompted {
            self.recovery.prompted();
        }
        self.recovery.again()
    }

    pub(super) fn on_start(&mut self, run: ActiveRun) {
        self.activity = Activity::Running(run);
        self.last_answer = None;
    }

    /// Takes the run out, because it has ended or waits for a compaction; `None` if none is
    /// in progress.
    pub(super) fn take_run(&mut self) -> Option<ActiveRun> {
        match std::mem::replace(&mut self.activity, Activity::Idle) {
            Activity::Running(run) => Some(run),
            other => {
                self.activity = other;
                None
            }
        }
    }

    /// Cancels the activity. A run then ends by itself; a wait ends here, and the result
    /// reports that.
    pub(super) fn cancel(&mut self) -> bool {
        match &mut self.activity {
            Activity::Idle => false,
            Activity::Running(run) => {
                run.cancel.cancel();
                false
            }
            Activity::Summarizing(active) => {
                active.cancel();
                false
            }
            Activity::Retrying { .. } => {
                self.activity = Activity::Idle;
                self.end_retries(RETRY_CANCELLED.to_owned());
                true
            }
        }
    }

    /// The run in progress, also while it waits for a compaction.
    fn run(&self) -> Option<&ActiveRun> {
        match &self.activity {
            Activity::Running(run) => Some(run),
            Activity::Summarizing(active) => active.paused_run(),
            Activity::Idle | Activity::Retrying { .. } => None,
        }
    }

    pub(super) fn is_in_run(&self) -> bool {
        self.run().is_some()
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.run().is_some_and(|run| run.cancel.is_cancelled())
    }

    // Answers.

    /// Records an answer, stored as entry `id`.
    pub(super) fn on_answer(&mut self, id: EntryId, answer: &AssistantMessage) {
        self.last_answer = Some(id);
        self.context.note(answer);
        self.outbox.update(|state| self.show(state));
    }

    /// Ends retries if the answer succeeded.
    pub(super) fn on_outcome(&mut self, answer: &AssistantMessage) {
        if answer.is_failed() {
            return;
        }
        let attempt = self.recovery.answered();
        if attempt > 0 {
            self.outbox.send(SessionEvent::RetryEnded { success: true, attempt, final_error: None });
        }
    }

    /// The entry that hides a failed answer: the file keeps it, but the model no longer
    /// sees it.
    pub(super) fn hide_answer(&mut self) -> Option<EntryBody> {
        let target_id = self.last_answer.take()?;
        let edit = ContextEdit { target_id, replacement: None, extra: ai::Extra::new() };
        Some(EntryBody::ContextEdit(Box::new(edit)))
    }

    // The model and its window.

    pub(super) fn set_window(&mut self, window: u64) {
        self.context.window = window;
    }

    /// Records a change of the model: no model continues the answer of another.
    pub(super) fn on_model_change(&mut self) {
        self.recovery.continue_from(None);
    }

    /// Updates the context use after the last answer of a conversation.
    pub(super) fn note_context(&mut self, answer: &AssistantMessage) {
        self.context.note(answer);
    }

    /// Records an estimate of the context use, until an answer counts it.
    pub(super) fn estimate_context(&mut self, tokens: Option<u64>) {
        self.context = ContextUsage { tokens, is_estimate: tokens.is_some(), ..self.context };
    }

    pub(super) fn context(&self) -> ContextUsage {
        self.context
    }

    pub(super) fn clear_context(&mut self, window: u64) {
        self.context = ContextUsage { window, ..ContextUsage::default() };
    }

    // Summaries.

    pub(super) fn on_summary_start(&mut self, active: ActiveSummary) {
        self.activity = Activity::Summarizing(active);
        self.outbox.update(|state| self.show(state));
    }

    /// The summary that has ended; `None` if none is in progress.
    pub(super) fn take_summary(&mut self) -> Option<ActiveSummary> {
        match std::mem::replace(&mut self.activity, Activity::Idle) {
            Activity::Summarizing(active) => Some(active),
            other => {
                self.activity = other;
                None
            }
        }
    }

    // Retries and repairs.

    pub(super) fn decide(
        &mut self,
        transient: bool,
        demanded: Option<std::time::Duration>,
        policy: &RetryPolicy,
    ) -> Next {
        self.recovery.decide(transient, demanded, policy)
    }

    /// Waits until `at`; the retry then continues after `partial`.
    pub(super) fn wait(&mut self, at: Instant, partial: Option<String>) {
        self.recovery.continue_from(partial);
        self.activity = Activity::Retrying { at };
        self.outbox.update(|state| self.show(state));
    }

    /// Retries at once, if a retry is scheduled.
    pub(super) fn skip_wait(&mut self) {
        if let Activity::Retrying { at } = &mut self.activity {
            *at = Instant::now();
        }
    }

    pub(super) fn end_wait(&mut self) {
        self.activity = Activity::Idle;
    }

    /// Reports that the retries failed, if there were any.
    pub(super) fn end_retries(&mut self, error: String) {
        let attempt = self.recovery.give_up();
        if attempt > 0 {
            let final_error = Some(error);
            self.outbox.send(SessionEvent::RetryEnded { success: false, attempt, final_error });
        }
    }

    /// Lets the retries begin anew, because the user said something else.
    pub(super) fn on_user_message(&mut self) {
        self.recovery.on_user_message();
    }

    pub(super) fn may_repair(&self) -> Option<Breadth> {
        self.recovery.may_repair()
    }

    pub(super) fn on_repair(&mut self, repair: &Repair) {
        self.recovery.repaired(repair.thinking_off, repair.no_continuation);
    }

    /// Sets the snapshot's fields about the run.
    pub(super) fn show(&self, state: &mut SessionState) {
        state.phase = self.phase();
        state.context = self.context;
    }
}
