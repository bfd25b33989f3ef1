//! What a run reports, and what is done when it ends: retries, repairs, the queue.

use std::sync::Arc;

use tokio::time::Instant;

use crate::agent::{AgentEvent, RunOutcome};
use crate::ai::{self, AssistantMessage, Failure, Message, Rejection, StopReason, ToolResultMessage};

use super::super::cache_watch::{self, Miss};
use super::super::event::{NoticeLevel, SessionEvent};
use super::super::projection;
use super::super::recovery::{self, Next};
use super::super::repair::{self, RefusedRequest, Repair};
use super::super::run::Report;
use super::super::selection::Selection;
use super::super::store::{ContextEdit, EntryBody};
use super::{Activity, AgentSession, REPORTS_PER_TURN, queue_view};

impl AgentSession {
    /// Handles a report and those that wait behind it.
    pub(super) fn take_reports(&mut self, first: Report) {
        self.take_report(first);
        for _ in 0..REPORTS_PER_TURN {
            let Activity::Running(run) = &mut self.activity else { return };
            match run.reports.try_recv() {
                Ok(report) => self.take_report(report),
                Err(_) => return,
            }
        }
    }

    pub(super) fn take_report(&mut self, report: Report) {
        let Report { event, taken } = report;
        match &event {
            AgentEvent::ToolEnd { result, .. } => self.tool_ended(result),
            AgentEvent::MessageEnd(message) => self.message_ended(message),
            AgentEvent::MessageStart(message) if matches!(**message, Message::User(_)) => {
                // The borrow must end before `publish`, which takes the same lock to write.
                let changed = self.state.borrow().queue != queue_view(&self.queues);
                if changed {
                    self.publish();
                    self.send(SessionEvent::QueueChanged);
                }
            }
            _ => {}
        }
        if let Some(taken) = taken {
            // The loop may be gone already; then it does not wait either.
            let _gone = taken.send(());
        }
        self.send(SessionEvent::Agent(event));
    }

    /// Stores a result when its call ends: other calls may still run for long.
    fn tool_ended(&mut self, result: &Arc<ToolResultMessage>) {
        self.append(EntryBody::message(Arc::new(Message::ToolResult(Arc::clone(result)))));
        self.publish();
    }

    fn message_ended(&mut self, message: &Arc<Message>) {
        if matches!(**message, Message::ToolResult(_)) {
            // Stored when its call ended.
            return;
        }
        let entry_id = self.append(EntryBody::message(Arc::clone(message)));
        if let Message::Assistant(answer) = &**message {
            self.last_answer = Some(entry_id);
            self.context.note(answer);
            self.watch_cache(answer);
            if !answer.is_failed() {
                let attempt = self.recovery.answered();
                if attempt > 0 {
                    self.send(SessionEvent::RetryEnded { success: true, attempt, final_error: None });
                }
            }
        }
        if let Message::System(_) = &**message {
            self.cache.changed("system prompt or tools changed");
        }
        if let Message::User(_) = &**message {
            // Delivered, and in the session from here on.
            self.save_queue();
            self.prompt_landed();
        }
        self.publish();
    }

    fn watch_cache(&mut self, answer: &AssistantMessage) {
        let settings = &self.services.settings;
        let shown = settings.show_cache_miss_notices;
        let kept_ms = cache_watch::kept_ms(&self.selection.model, settings.sampling.long_cache);
        if let Some(miss) = self.cache.answered(answer, kept_ms)
            && shown
        {
            let Miss { tokens, reason } = miss;
            let text = format!("Cache miss: {tokens} tokens of the prompt were paid for again; {reason}.");
            self.notice(NoticeLevel::Info, text);
        }
    }

    pub(super) async fn run_ended(&mut self) {
        let Activity::Running(run) = std::mem::replace(&mut self.activity, Activity::Idle) else { return };
        let outcome = run.task.await.unwrap_or_else(|error| {
            self.notice(NoticeLevel::Error, format!("the run ended unexpectedly: {error}"));
            RunOutcome { last: None, aborted: true, panic: None }
        });
        self.prompt_landed();
        // A loop that vanished has left its token behind.
        self.queues.end_turn();
        self.append_deferred();
        if let Some(panic) = outcome.panic {
            // The answer in the transcript says what happened; a repetition would meet it again.
            self.end_retries(panic);
            return self.settle(true).await;
        }
        // The abort may have come when the loop was over and its end not yet known here.
        if outcome.aborted || run.cancel.is_cancelled() {
            self.end_retries("Retry cancelled".to_owned());
            return self.settle(true).await;
        }
        if let Some(answer) =
            outcome.last_assistant().filter(|answer| answer.stop_reason == StopReason::Error)
        {
            return self.recover(answer).await;
        }
        self.start_queued().await;
    }

    /// Goes on with what was queued in the run's last moment, or settles.
    async fn start_queued(&mut self) {
        if self.queues.is_empty() {
            return self.settle(false).await;
        }
        // Before anything leaves the queue: without a key it would be lost.
        match self.credential(&self.selection.model).await {
            Ok(credential) => {
                let prompts = self.queues.take_next().iter().map(|message| (**message).clone()).collect();
                self.start_run_with(credential, prompts);
            }
            Err(error) => {
                self.notice(NoticeLevel::Error, error.to_string());
                self.settle(false).await;
            }
        }
    }

    async fn recover(&mut self, answer: &AssistantMessage) {
        let error = answer.error_message.clone().unwrap_or_else(|| "request error".to_owned());
        let failure = Failure::of_answer(answer);
        let rejection = failure.as_ref().and_then(|failure| failure.rejection.clone());
        if let Some(repair) = self.repair_for(rejection, &error).await {
            return self.repair(repair, &error).await;
        }
        if ai::is_overflow(answer, self.selection.model.context_window) {
            let hint = "the conversation no longer fits into the model's context window; go on in a new session \
                        with /new, or switch to a model with a larger one with /model";
            self.notice(NoticeLevel::Error, hint.to_owned());
            self.end_retries(error);
            return self.settle(false).await;
        }
        let policy = self.services.retry_policy();
        let demanded = failure.and_then(|failure| failure.retry_after);
        match self.recovery.decide(ai::is_retryable(answer), demanded, &policy) {
            Next::Retry { attempt, delay } => {
                self.hide_answer();
                self.recovery.continue_from(ai::continuable(&self.selection.model, answer));
                self.activity = Activity::Retrying { at: Instant::now() + delay, error: error.clone() };
                self.publish();
                let max_attempts = policy.max_retries;
                self.send(SessionEvent::RetryScheduled { attempt, max_attempts, delay, error });
            }
            Next::TooLong { demanded } => {
                self.notice(NoticeLevel::Error, recovery::too_long(demanded, policy.max_delay));
                self.end_retries(error);
                self.settle(false).await;
            }
            Next::GiveUp => {
                self.end_retries(error);
                self.settle(false).await;
            }
        }
    }

    /// What to take out of the conversation so that its service takes it again.
    async fn repair_for(&mut self, rejection: Option<Rejection>, error: &str) -> Option<Repair> {
        let rejection = rejection?;
        let breadth = self.recovery.may_repair()?;
        let sources = projection::sources(&self.store.context_branch());
        let Selection { model, .. } = &self.selection;
        let credential = self.credential(model).await.unwrap_or_default();
        let session_id = &self.store.header().id;
        let options = self.services.options(model, self.selection.thinking(), session_id);
        let refused = RefusedRequest { model: Arc::clone(model), credential, options };
        repair::plan(&rejection, error, &sources, &refused, breadth)
    }

    /// Takes it out and repeats the request.
    async fn repair(&mut self, repair: Repair, error: &str) {
        self.hide_answer();
        self.notice(NoticeLevel::Warning, repair.notice(&self.selection.model.provider, error));
        self.recovery.repaired(repair.thinking_off, repair.no_continuation);
        for edit in repair.edits {
            self.append(EntryBody::ContextEdit(edit));
        }
        self.cache.changed("a part of the conversation was taken out");
        self.retry_now().await;
    }

    /// The failed answer stays in the file, but the model does not see it again.
    fn hide_answer(&mut self) {
        if let Some(target_id) = self.last_answer.take() {
            let edit = ContextEdit { target_id, replacement: None, extra: ai::Extra::new() };
            self.append(EntryBody::ContextEdit(edit));
        }
    }

    /// Repeats a failed request at once, if one waits.
    pub(super) fn stop_waiting(&mut self) {
        if let Activity::Retrying { at, .. } = &mut self.activity {
            *at = Instant::now();
        }
    }

    /// Tells that repeating did not help, if anything was repeated.
    fn end_retries(&mut self, error: String) {
        let attempt = self.recovery.give_up();
        if attempt > 0 {
            let final_error = Some(error);
            self.send(SessionEvent::RetryEnded { success: false, attempt, final_error });
        }
    }

    pub(super) async fn retry_now(&mut self) {
        self.activity = Activity::Idle;
        if let Err(error) = self.start_run(Vec::new()).await {
            self.end_retries(error.to_string());
            self.notice(NoticeLevel::Error, error.to_string());
            self.settle(false).await;
        }
    }

    pub(super) fn abort(&mut self) {
        self.bash.cancel();
        match &mut self.activity {
            Activity::Idle => {}
            Activity::Running(run) => run.cancel.cancel(),
            Activity::Retrying { error, .. } => {
                let error = format!("Retry cancelled: {error}");
                self.activity = Activity::Idle;
                self.end_retries(error);
                self.publish();
                self.send(SessionEvent::Settled { aborted: true });
            }
        }
    }

    async fn settle(&mut self, aborted: bool) {
        self.publish();
        self.sync().await;
        self.send(SessionEvent::Settled { aborted });
    }
}
