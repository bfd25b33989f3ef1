//! Starts compactions and stores their summaries.

use serde_json::Value;
use tokio::sync::oneshot;

use crate::ai::{self, AssistantMessage, Extra, StopReason, SystemState, Usage};

use super::super::cache_warming::NotWarmed;
use super::super::command::Reply;
use super::super::compaction::{
    self, CompactionPlan, NothingToCompact, PlanAim, Summarizer, Summary, SummaryError, context_tokens,
    context_tokens_up_to,
};
use super::super::endings::AfterCalls;
use super::super::event::{CompactionReason, NoticeLevel, SessionEvent, SummarySource};
use super::super::handle::SessionError;
use super::super::projection;
use super::super::refusal::Refusal;
use super::super::run::{self, ActiveRun, RequestChange};
use super::super::state::Phase;
use super::super::store::{Compaction, EntryBody, EntryKind};
use super::super::summary_draft::SummaryDraft;
use super::AgentSession;
use super::budgeting::Budgeting;
use super::reviewing::Reviewing;
use super::summaries::{ActiveSummary, SummaryPurpose, summarizer};
use super::window_fit;

/// What a summary that is being written is going to replace.
pub(super) struct ActiveCompaction {
    plan: Box<CompactionPlan>,
    tokens_before: u64,
    reason: CompactionReason,
    /// Whether the user decides about the summary before it takes effect.
    with_review: bool,
    then: AfterCompaction,
}

/// A summary that takes the place of the beginning of the conversation.
pub(super) struct Replacement {
    pub(super) text: String,
    /// Quotes of pinned messages, which end the summary.
    pub(super) quotes: String,
    pub(super) first_kept_entry_id: String,
    pub(super) tokens_before: u64,
    /// The lists of files.
    pub(super) details: Value,
    pub(super) usage: Usage,
}

/// The step after a compaction, successful or not, unless a variant states otherwise.
pub(super) enum AfterCompaction {
    /// Deliver queued messages, if any: also the prompt that found the window nearly full.
    Queue,
    /// Repeat the request that was too long; nothing if the compaction failed.
    Retry,
    /// Continue the run that waits for its next request, even if the compaction failed.
    Request(Box<PausedRun>),
}

/// A run whose loop waits for the changes of its next request.
pub(super) struct PausedRun {
    pub(super) run: ActiveRun,
    /// The system state in the loop's transcript.
    pub(super) said: SystemState,
    pub(super) reply: oneshot::Sender<RequestChange>,
}

impl ActiveCompaction {
    /// The run that waits for it.
    pub(super) fn paused_run(&self) -> Option<&ActiveRun> {
        match &self.then {
            AfterCompaction::Request(paused) => Some(&paused.run),
            AfterCompaction::Queue | AfterCompaction::Retry => None,
        }
    }
}

/// Compacts the conversation of a session.
pub(super) struct Compacting<'s> {
    session: &'s mut AgentSession,
}

impl<'s> Compacting<'s> {
    pub(super) fn of(session: &'s mut AgentSession) -> Self {
        Self { session }
    }

    /// `/compact`: summarises now; `focus` is the subject the summary should emphasise. With
    /// `with_review` the user decides first; a draft that waits for that is shown again.
    ///
    /// # Errors
    /// If the agent is working, there is no key, or there is nothing to compact.
    pub(super) async fn on_command(
        &mut self,
        focus: Option<String>,
        with_review: bool,
    ) -> Result<Reply, SessionError> {
        if with_review && Reviewing::of(self.session).show_waiting() {
            return Ok(Reply::Done);
        }
        // Only a compaction with a review comes here while the agent works, see `SessionCommand::needs_idle`.
        if self.session.run.phase() != Phase::Idle {
            return Err(Refusal::Working.into());
        }
        let prepared =
            self.prepare(CompactionReason::Manual, PlanAim::Manual).await.map_err(|unprepared| {
                match unprepared {
                    Unprepared::Nothing(nothing) => Refusal::from(nothing).into(),
                    Unprepared::NoKey(error) => error,
                }
            })?;
        let begun = Begun { reason: CompactionReason::Manual, focus, with_review };
        self.start(prepared, begun, AfterCompaction::Queue);
        Ok(Reply::Started)
    }

    /// Compacts if the window is nearly full. Otherwise, or if there is nothing to compact,
    /// returns `then`.
    pub(super) async fn start_if_full(&mut self, then: AfterCompaction) -> Option<AfterCompaction> {
        let limits = window_fit::plan_limits(self.session, &SystemState::default());
        let limit = limits.threshold();
        if !self.is_enabled() || limit == 0 {
            return Some(then);
        }
        let tokens = context_tokens_up_to(&mut self.session.log.context(), limit, limits.result_tokens());
        if tokens <= limit {
            return Some(then);
        }
        self.try_start(CompactionReason::Threshold, PlanAim::Threshold, then).await
    }

    fn is_enabled(&self) -> bool {
        self.session.settings.get().values.compaction.enabled
    }

    /// Compacts before the next request of a run if the window is nearly full.
    pub(super) async fn on_next_request(&mut self, paused: PausedRun) {
        if paused.run.cancel.is_cancelled() {
            return self.resume(paused, false);
        }
        let session = &mut *self.session;
        if session.endings.after_calls(session.model.allows_longer_answers()) == AfterCalls::GiveUp {
            return self.give_up(paused);
        }
        let is_cut = session.endings.is_cut_call() && session.fit.was_limit_lowered();
        let then = AfterCompaction::Request(Box::new(paused));
        let left = if is_cut && self.is_enabled() {
            let aim = PlanAim::Overflow { n_before: 0 };
            self.try_start(CompactionReason::Overflow, aim, then).await
        } else {
            self.start_if_full(then).await
        };
        if let Some(AfterCompaction::Request(paused)) = left {
            self.resume(*paused, false);
        }
    }

    /// Ends a run whose calls cannot be run again and again.
    fn give_up(&mut self, paused: PausedRun) {
        let text = if self.session.endings.is_cut_call() {
            let limit = self.session.fit.answer_limit().unwrap_or_default();
            format!(
                "the model cannot finish a call within {limit} tokens, its output limit; \
                 let it write in smaller steps, or raise the limit"
            )
        } else {
            "the model writes calls whose arguments cannot be read, again and again; \
             ask in other words, or choose another model with /model"
                .to_owned()
        };
        self.session.outbox.notice(NoticeLevel::Error, text);
        self.resume_with(paused, false, true);
    }

    /// Continues a run that waits for its next request, with the messages that are left after
    /// a compaction if it was `compacted`.
    fn resume(&mut self, paused: PausedRun, compacted: bool) {
        self.resume_with(paused, compacted, false);
    }

    fn resume_with(&mut self, paused: PausedRun, compacted: bool, stop: bool) {
        let session = &mut *self.session;
        let PausedRun { run, said, reply } = paused;
        let messages = match compacted {
            true => Some(window_fit::request_messages(session)),
            false => window_fit::shortened_messages(session, &said),
        };
        let said = messages.as_deref().map_or(said, ai::system_state);
        let change = RequestChange { stop, ..session.next_request(&said, messages) };
        // The loop may already be gone.
        drop(reply.send(change));
        session.run.on_start(run);
        if session.outbox.snapshot().phase != session.run.phase() {
            session.publish();
        }
    }

    /// Compacts because a request or its answer did not fit, and then repeats it. Each attempt of a
    /// prompt gives up more. Returns whether one began.
    pub(super) async fn recover(&mut self, answer: &AssistantMessage) -> bool {
        if !self.is_enabled() || !window_fit::is_overflow(self.session, answer) {
            return false;
        }
        let Some(n_before) = self.session.fit.take_recovery() else { return false };
        // A complete answer stays; a failed one is hidden and requested again.
        let then = if answer.stop_reason == StopReason::Stop {
            AfterCompaction::Queue
        } else {
            if let Some(edit) = self.session.run.hide_answer() {
                self.session.append(edit);
            }
            AfterCompaction::Retry
        };
        let will_shrink =
            window_fit::answer_will_shrink(self.session) || window_fit::results_will_shrink(self.session);
        if matches!(then, AfterCompaction::Retry) && will_shrink {
            self.session.retry().await;
            return true;
        }
        match self.try_start(CompactionReason::Overflow, PlanAim::Overflow { n_before }, then).await {
            None => true,
            // Nothing can be summarised, but results may still be shortened.
            Some(AfterCompaction::Retry) if window_fit::halve_results(self.session) => {
                self.session.retry().await;
                true
            }
            Some(_) => false,
        }
    }

    async fn try_start(
        &mut self,
        reason: CompactionReason,
        aim: PlanAim,
        then: AfterCompaction,
    ) -> Option<AfterCompaction> {
        match self.prepare(reason, aim).await {
            Ok(prepared) => {
                self.start(prepared, Begun { reason, focus: None, with_review: false }, then);
                return None;
            }
            // The user did not request it, so no notice is needed.
            Err(Unprepared::Nothing(_)) => {}
            Err(Unprepared::NoKey(error)) => {
                self.session.outbox.notice(NoticeLevel::Warning, error.to_string());
            }
        }
        Some(then)
    }

    async fn prepare(
        &mut self,
        reason: CompactionReason,
        aim: PlanAim,
    ) -> Result<(CompactionPlan, u64, Summarizer), Unprepared> {
        let session = &mut *self.session;
        let window = session.model.model().context_window;
        let system = projection::messages(&session.log.context().system());
        let limits = window_fit::plan_limits(session, &ai::system_state(&system));
        let mut plan =
            compaction::plan_of(&mut session.log.context(), limits, aim).map_err(Unprepared::Nothing)?;
        if window_fit::pin_task(session) {
            plan =
                compaction::plan_of(&mut session.log.context(), limits, aim).map_err(Unprepared::Nothing)?;
        }
        let tokens_before = context_tokens_up_to(&mut session.log.context(), window, limits.result_tokens());
        let summarizer =
            summarizer(session, SummarySource::Compaction(reason)).await.map_err(Unprepared::NoKey)?;
        Ok((plan, tokens_before, summarizer))
    }

    fn start(
        &mut self,
        (plan, tokens_before, summarizer): (CompactionPlan, u64, Summarizer),
        Begun { reason, focus, with_review }: Begun,
        then: AfterCompaction,
    ) {
        self.session.cache.stop(NotWarmed::Changed);
        let cancel = summarizer.cancel.clone();
        let planned = plan.clone();
        let is_needed = reason == CompactionReason::Overflow;
        let task =
            tokio::spawn(async move { summarizer.summarize(&planned, focus.as_deref(), is_needed).await });
        let plan = Box::new(plan);
        let purpose =
            SummaryPurpose::Compaction(ActiveCompaction { plan, tokens_before, reason, with_review, then });
        self.session.run.on_summary_start(ActiveSummary { task, cancel, purpose });
        self.session.outbox.send(SessionEvent::CompactionStarted { reason });
    }

    /// Stores the summary, or reports the failure; then continues with the next step.
    pub(super) async fn on_end(&mut self, active: ActiveCompaction, summary: Result<Summary, SummaryError>) {
        let ActiveCompaction { plan, tokens_before, reason, with_review, then } = active;
        let aborted = summary == Err(SummaryError::Cancelled);
        let mut tokens_after = None;
        let error = match summary {
            Ok(summary) => {
                Budgeting::of(self.session).on_usage(&summary.usage);
                if let Some(error) = &summary.replaced {
                    let text = format!(
                        "there is no summary: {error}. The beginning of the conversation was cut off, and an \
                         excerpt takes its place; the session still has all of it"
                    );
                    self.session.outbox.notice(NoticeLevel::Warning, text);
                }
                if with_review {
                    let draft = self.draft(&plan, summary, tokens_before);
                    Reviewing::of(self.session).on_drafted(draft);
                } else {
                    tokens_after = Some(self.store(Replacement::of(&plan, summary, tokens_before)));
                }
                None
            }
            Err(error) => Some(error.to_string()),
        };
        let succeeded = error.is_none();
        let then = match then {
            AfterCompaction::Request(paused) => {
                self.resume(*paused, succeeded);
                None
            }
            other => {
                self.session.publish();
                Some(other)
            }
        };
        let will_retry = succeeded && matches!(then, Some(AfterCompaction::Retry));
        self.session.outbox.send(SessionEvent::CompactionEnded {
            reason,
            aborted,
            error: error.clone(),
            will_retry,
            tokens_after,
        });
        let session = &mut *self.session;
        if let Some(error) = error.filter(|_| !aborted) {
            let text = format!("cannot compact the conversation: {error}; nothing was changed");
            session.outbox.notice(NoticeLevel::Error, text);
        }
        match then {
            None => {}
            // Queued messages wait for the decision.
            Some(_) if succeeded && with_review => {
                session.log.sync().await;
                session.outbox.send(SessionEvent::Settled { aborted: false });
            }
            Some(AfterCompaction::Retry) if succeeded => session.retry().await,
            Some(AfterCompaction::Queue) if !aborted => session.start_queued().await,
            Some(_) => {
                session.settle(aborted).await;
            }
        }
    }

    fn draft(&mut self, plan: &CompactionPlan, summary: Summary, tokens_before: u64) -> SummaryDraft {
        let after = self.session.log.store().last_of(&[EntryKind::Compaction]);
        SummaryDraft {
            text: summary.text,
            first_kept_entry_id: plan.first_kept_entry_id.clone(),
            tokens_before,
            n_replaced: plan.n_summarised(),
            model: self.session.model.model().reference(),
            usage: summary.usage,
            details: plan.details(),
            after,
        }
    }

    /// Appends the entry that replaces the beginning of the conversation; returns the
    /// estimated tokens of the next request.
    pub(super) fn store(&mut self, replacement: Replacement) -> u64 {
        let session = &mut *self.session;
        let messages = projection::messages(&session.log.context().system());
        let now_ms = session.services.clock.now_ms();
        let Replacement { text, quotes, first_kept_entry_id, tokens_before, details, usage } = replacement;
        let cost_usd = usage.cost.total;
        session.append(EntryBody::Compaction(Box::new(Compaction {
            summary: text + &quotes,
            first_kept_entry_id,
            tokens_before,
            details: Some(compaction::with_quotes(details, &quotes)),
            usage: Some(usage),
            from_hook: Some(false),
            system_message: run::replayed_system(&ai::system_state(&messages), now_ms),
            extra: Extra::new(),
        })));
        // The next answer counts what is left.
        session.run.estimate_context(None);
        session.cache.on_summary();
        if cost_usd > 0.0 {
            session.outbox.notice(NoticeLevel::Info, format!("Writing the summary cost ${cost_usd:.4}."));
        }
        let branch = session.log.context_branch();
        context_tokens(&branch, &projection::messages(&branch))
    }
}

impl Replacement {
    fn of(plan: &CompactionPlan, summary: Summary, tokens_before: u64) -> Self {
        Self {
            text: summary.text,
            quotes: plan.quotes.clone(),
            first_kept_entry_id: plan.first_kept_entry_id.clone(),
            tokens_before,
            details: plan.details(),
            usage: summary.usage,
        }
    }
}

/// Why and how a compaction began.
struct Begun {
    reason: CompactionReason,
    focus: Option<String>,
    with_review: bool,
}

/// Why a compaction did not start.
enum Unprepared {
    Nothing(NothingToCompact),
    NoKey(SessionError),
}
