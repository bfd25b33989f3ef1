//! The step after a failed answer.

use std::sync::Arc;

use tokio::time::Instant;

use crate::ai::{self, AssistantMessage, Failure, FailureClass, Rejection, StopReason};

use super::super::event::{NoticeLevel, SessionEvent};
use super::super::projection;
use super::super::recovery::{self, Next, RetryPolicy};
use super::super::repair::{self, RefusedRequest};
use super::super::store::EntryBody;
use super::AgentSession;
use super::compacting::Compacting;
use super::window_fit;

/// Recovers a session from a failed answer.
pub(super) struct Recovering<'s> {
    session: &'s mut AgentSession,
}

impl<'s> Recovering<'s> {
    pub(super) fn of(session: &'s mut AgentSession) -> Self {
        Self { session }
    }

    /// Recovers from a failed answer: removes rejected content, compacts, waits for a retry,
    /// or gives up.
    pub(super) async fn on_failure(&mut self, answer: &AssistantMessage) {
        let error = answer.error_message.clone().unwrap_or_else(|| "request error".to_owned());
        let failure = Failure::of_answer(answer);
        let rejection = failure.as_ref().and_then(|failure| failure.rejection.clone());
        if self.repair(rejection, &error).await {
            return;
        }
        let session = &mut *self.session;
        if ai::is_overflow(answer, session.model.model().context_window) {
            window_fit::learn_window(session, failure.as_ref().and_then(|failure| failure.size.as_deref()));
            if Compacting::of(session).recover(answer).await {
                return;
            }
            let hint = "the conversation no longer fits into the model's context window; start a new \
                        session, or choose a model with a larger window";
            session.outbox.notice(NoticeLevel::Error, hint);
            session.run.end_retries(error);
            return session.settle(false).await;
        }
        let policy = RetryPolicy::of(&session.settings.get().values);
        let demanded = failure.as_ref().and_then(|failure| failure.retry_after);
        match session.run.decide(ai::is_retryable(answer), demanded, &policy) {
            Next::Retry { attempt, delay } => {
                if let Some(edit) = session.run.hide_answer() {
                    session.append(edit);
                }
                let partial = ai::continuable(session.model.model(), answer);
                session.run.wait(Instant::now() + delay, partial);
                let max_attempts = policy.max_retries;
                session.outbox.send(SessionEvent::RetryScheduled { attempt, max_attempts, delay, error });
            }
            Next::TooLong { demanded } => {
                session.outbox.notice(NoticeLevel::Error, recovery::too_long(demanded, policy.max_delay));
                session.run.end_retries(error);
                session.settle(false).await;
            }
            Next::GiveUp => {
                if failure.is_some_and(|failure| failure.class == FailureClass::NotFound) {
                    let model = session.model.model().reference();
                    let text = format!("if {model} is gone, choose another model with /model");
                    session.outbox.notice(NoticeLevel::Info, text);
                }
                session.run.end_retries(error);
                session.settle(false).await;
            }
        }
    }

    /// Settles after the last of several calls that the output limit cut off. Returns whether it was one.
    pub(super) async fn gave_up_on_calls(&mut self, answer: &AssistantMessage) -> bool {
        let is_cut = answer.stop_reason == StopReason::Length && self.session.endings.is_cut_call();
        if is_cut {
            self.session.settle(false).await;
        }
        is_cut
    }

    /// Requests an answer once more if the last one is of no use.
    pub(super) async fn asks_again(&mut self, answer: &AssistantMessage) -> bool {
        let is_last = self.session.queue.is_empty() && self.session.budget.exceeded().is_none();
        if !is_last || !self.session.endings.asks_again(answer, self.session.model.allows_longer_answers()) {
            return false;
        }
        if let Some(edit) = self.session.run.hide_answer() {
            self.session.append(edit);
        }
        self.session.retry().await;
        true
    }

    /// Removes the content that the service rejected from the conversation, and retries the
    /// request. Returns false if no removal could help.
    async fn repair(&mut self, rejection: Option<Rejection>, error: &str) -> bool {
        let session = &mut *self.session;
        let Some((rejection, breadth)) = rejection.zip(session.run.may_repair()) else { return false };
        let sources = projection::sources(&session.log.context_branch());
        let model = Arc::clone(session.model.model());
        let credential = session.model.credential().await.unwrap_or_default();
        let thinking = session.model.selection().thinking();
        let settings = session.settings.get();
        let options = session.services.options(&settings.values, &model, thinking, session.log.session_id());
        let refused = RefusedRequest { model, credential, options };
        let Some(repair) = repair::plan(&rejection, error, &sources, &refused, breadth) else { return false };
        if let Some(edit) = session.run.hide_answer() {
            session.append(edit);
        }
        let notice = repair.notice(&session.model.model().provider, error);
        session.outbox.notice(NoticeLevel::Warning, notice);
        session.run.on_repair(&repair);
        session.cache.on_prefix_change("part of the conversation was removed");
        for edit in repair.edits {
            session.append(EntryBody::ContextEdit(Box::new(edit)));
        }
        session.retry().await;
        true
    }
}
