//! When the conversation is compacted, and what happens with the summary.

use std::sync::Arc;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::ai::{self, AssistantMessage, Extra, Message, StopReason};

use super::super::command::Reply;
use super::super::compaction::{
    self, CompactionPlan, NothingToCompact, Summarizer, Summary, SummaryError, context_tokens,
};
use super::super::event::{CompactionReason, NoticeLevel, SessionEvent};
use super::super::handle::SessionError;
use super::super::projection;
use super::super::run;
use super::super::store::{Compaction, EntryBody};
use super::{Activity, AgentSession};

/// A summary being written. Dropping it does not end the task; cancelling does.
pub(super) struct ActiveCompaction {
    pub(super) task: JoinHandle<Result<Summary, SummaryError>>,
    pub(super) cancel: CancellationToken,
    plan: CompactionPlan,
    tokens_before: u64,
    reason: CompactionReason,
    then: AfterCompaction,
}

/// What follows a compaction, whether it succeeded or not, unless said otherwise.
pub(super) enum AfterCompaction {
    /// What is queued, or nothing.
    Queue,
    /// The request that was too long, repeated; nothing if the compaction failed.
    Retry,
    /// A prompt that came when the window was nearly full.
    Prompt(Vec<Message>),
}

impl AgentSession {
    /// `/compact`: summarises now; `focus` is what the summary should dwell on.
    pub(super) async fn compact(&mut self, focus: Option<String>) -> Result<Reply, SessionError> {
        if !matches!(self.activity, Activity::Idle) {
            return Err(SessionError::Refused(
                "the agent is still working; press Escape to stop it".to_owned(),
            ));
        }
        self.begin_compaction(CompactionReason::Manual, focus, AfterCompaction::Queue)
            .await
            .map_err(SessionError::Refused)?;
        Ok(Reply::Started)
    }

    /// Compacts if the window is nearly full. Gives `then` back if it is not, or if
    /// there is nothing to compact.
    pub(super) async fn compact_if_full(&mut self, then: AfterCompaction) -> Option<AfterCompaction> {
        let policy = &self.services.settings.compaction;
        let model = &self.selection.model;
        let budget = policy.budget(&model.reference());
        let limit = model.context_window.saturating_sub(budget.reserve_tokens);
        if !policy.enabled || model.context_window == 0 || limit == 0 {
            return Some(then);
        }
        let branch = self.store.context_branch();
        if context_tokens(&branch, &projection::messages(&branch)) <= limit {
            return Some(then);
        }
        self.try_compaction(CompactionReason::Threshold, then).await
    }

    /// Compacts because a request did not fit, and repeats it; once for each prompt.
    /// Returns whether that is under way.
    pub(super) async fn recover_overflow(&mut self, answer: &AssistantMessage) -> bool {
        if !self.services.settings.compaction.enabled || self.overflow_recovered {
            return false;
        }
        self.overflow_recovered = true;
        // A whole answer stays; one that failed is hidden and asked for again.
        let then = if answer.stop_reason == StopReason::Stop {
            AfterCompaction::Queue
        } else {
            self.hide_answer();
            AfterCompaction::Retry
        };
        self.try_compaction(CompactionReason::Overflow, then).await.is_none()
    }

    /// Whether the answer was cut off because the window was full, not by a limit of
    /// the model or the user.
    pub(super) fn was_cut_off_by_the_window(&self, answer: &AssistantMessage) -> bool {
        let model = &self.selection.model;
        let used = answer.usage.prompt_tokens().saturating_add(answer.usage.output);
        answer.stop_reason == StopReason::Length
            && answer.usage.output < model.max_tokens
            && model.context_window > 0
            && used >= model.context_window - model.context_window / 10
    }

    async fn try_compaction(
        &mut self,
        reason: CompactionReason,
        then: AfterCompaction,
    ) -> Option<AfterCompaction> {
        let mut then = Some(then);
        match self.prepare_compaction().await {
            Ok(prepared) => {
                self.spawn_compaction(prepared, reason, None, then.take().unwrap_or(AfterCompaction::Queue));
            }
            // Nobody asked for it, so nobody is told that there was nothing to do.
            Err(Unprepared::Nothing(_)) => {}
            Err(Unprepared::NoKey(error)) => self.notice(NoticeLevel::Warning, error),
        }
        then
    }

    async fn begin_compaction(
        &mut self,
        reason: CompactionReason,
        focus: Option<String>,
        then: AfterCompaction,
    ) -> Result<(), String> {
        let prepared = self.prepare_compaction().await.map_err(|unprepared| match unprepared {
            Unprepared::Nothing(nothing) => nothing.to_string(),
            Unprepared::NoKey(error) => error,
        })?;
        self.spawn_compaction(prepared, reason, focus, then);
        Ok(())
    }

    async fn prepare_compaction(&mut self) -> Result<(CompactionPlan, u64, Summarizer), Unprepared> {
        let model = Arc::clone(&self.selection.model);
        let budget = self.services.settings.compaction.budget(&model.reference());
        let branch = self.store.branch(0);
        let plan = compaction::plan(&branch, budget.keep_recent_tokens).map_err(Unprepared::Nothing)?;
        let context = self.store.context_branch();
        let tokens_before = context_tokens(&context, &projection::messages(&context));
        let credential =
            self.credential(&model).await.map_err(|error| Unprepared::NoKey(error.to_string()))?;
        let mut options = self.services.options(&model, self.selection.thinking(), "");
        // A request of its own, which nothing follows: no cache is worth paying for.
        (options.session_id, options.long_cache) = (None, false);
        let summarizer = Summarizer {
            provider: Arc::clone(&self.services.provider),
            model,
            credential,
            options,
            clock: self.services.clock.clone(),
            retry: self.services.retry_policy(),
            cancel: CancellationToken::new(),
        };
        Ok((plan, tokens_before, summarizer))
    }

    fn spawn_compaction(
        &mut self,
        (plan, tokens_before, summarizer): (CompactionPlan, u64, Summarizer),
        reason: CompactionReason,
        focus: Option<String>,
        then: AfterCompaction,
    ) {
        let cancel = summarizer.cancel.clone();
        let planned = plan.clone();
        let task = tokio::spawn(async move { summarizer.summarize(&planned, focus.as_deref()).await });
        self.activity =
            Activity::Compacting(ActiveCompaction { task, cancel, plan, tokens_before, reason, then });
        self.publish();
        self.send(SessionEvent::CompactionStarted { reason });
    }

    /// Stores the summary, or reports that there is none; then goes on.
    pub(super) async fn compaction_ended(&mut self, summary: Result<Summary, SummaryError>) {
        let Activity::Compacting(active) = std::mem::replace(&mut self.activity, Activity::Idle) else {
            return;
        };
        let ActiveCompaction { plan, tokens_before, reason, then, .. } = active;
        let aborted = summary == Err(SummaryError::Cancelled);
        let error = match summary {
            Ok(summary) => {
                self.store_summary(&plan, summary, tokens_before);
                None
            }
            Err(error) => Some(error.to_string()),
        };
        self.publish();
        let succeeded = error.is_none();
        self.send(SessionEvent::CompactionEnded { reason, aborted, error: error.clone() });
        if let Some(error) = error.filter(|_| !aborted) {
            let text = format!("cannot compact the conversation: {error}; nothing was changed");
            self.notice(NoticeLevel::Error, text);
        }
        match then {
            AfterCompaction::Prompt(prompts) if !aborted => {
                if let Err(error) = self.start_run(prompts).await {
                    self.notice(NoticeLevel::Error, error.to_string());
                    self.settle(false).await;
                }
            }
            AfterCompaction::Retry if succeeded => self.retry_now().await,
            AfterCompaction::Queue if !aborted => self.start_queued().await,
            AfterCompaction::Prompt(_) | AfterCompaction::Retry | AfterCompaction::Queue => {
                self.settle(aborted).await;
            }
        }
    }

    fn store_summary(&mut self, plan: &CompactionPlan, summary: Summary, tokens_before: u64) {
        let messages = projection::messages(&self.store.context_branch());
        let now_ms = self.services.clock.now_ms();
        let cost_usd = summary.usage.cost.total;
        self.append(EntryBody::Compaction(Compaction {
            summary: summary.text,
            first_kept_entry_id: plan.first_kept_entry_id.clone(),
            tokens_before,
            details: Some(plan.details()),
            usage: Some(summary.usage),
            from_hook: Some(false),
            system_message: run::replayed_system(&ai::system_state(&messages), now_ms),
            extra: Extra::new(),
        }));
        self.cache.changed("the conversation was compacted");
        // Unknown until the next answer.
        self.context.tokens = None;
        if cost_usd > 0.0 {
            self.notice(NoticeLevel::Info, format!("Writing the summary cost ${cost_usd:.4}."));
        }
    }
}

/// Why no compaction was started.
enum Unprepared {
    Nothing(NothingToCompact),
    NoKey(String),
}
