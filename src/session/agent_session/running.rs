//! Starts runs, handles their reports, and decides what follows their end.

use std::sync::Arc;

use tokio::sync::oneshot;

use crate::agent::{AgentEvent, RunOutcome};
use crate::ai::{self, Credential, Message, StopReason, StreamOptions, SystemState};

use super::super::event::{NoticeLevel, SessionEvent};
use super::super::projection;
use super::super::question::PendingCall;
use super::super::run::{self, Report, RequestChange, RunParts};
use super::super::store::{EntryBody, SessionMessage};
use super::budgeting::Budgeting;
use super::compacting::{AfterCompaction, Compacting, PausedRun};
use super::opening::estimate_context;
use super::recovering::Recovering;
use super::run_state::{RETRY_CANCELLED, RunInput};
use super::{AgentSession, REPORTS_PER_TURN, summaries, window_fit};

impl AgentSession {
    /// Starts a run with `prompts`; an empty list repeats the last request.
    pub(super) fn start_run(&mut self, credential: Credential, prompts: Vec<Message>) {
        self.record_selection();
        let branch = self.log.context_branch();
        let mut messages = projection::messages(&branch);
        window_fit::fit_results(self, &mut messages);
        self.steps.on_run_start(&branch, !prompts.is_empty());
        let again = self.run.prepare(!prompts.is_empty());
        if !prompts.is_empty() {
            self.fit.on_prompt();
            self.endings.on_prompt();
        }
        self.cache.on_run_start(&messages);
        if !prompts.is_empty() {
            self.queue.on_prompt_sent();
        }
        self.model.on_run_start(&credential);
        let parts = RunParts {
            services: &self.services,
            cwd: self.project.cwd(),
            project: self.project.context(),
            tools: self.tools.registry(),
            queues: self.queue.queues(),
            session_id: self.log.session_id(),
            selection: self.model.selection(),
            credential,
            messages,
            settings: self.settings.live(),
            outbox: self.outbox.clone(),
            again,
            is_limit_raised: self.endings.is_limit_raised(),
        };
        self.run.on_start(run::spawn(parts, prompts));
        self.publish();
    }

    pub(super) async fn on_run_input(&mut self, input: RunInput) {
        match input {
            RunInput::Report(first) => {
                self.on_report(first).await;
                for _ in 0..REPORTS_PER_TURN {
                    let Some(report) = self.run.try_report() else { return };
                    self.on_report(report).await;
                }
            }
            RunInput::Ended => self.on_run_end().await,
            RunInput::RetryNow => self.retry().await,
            RunInput::Summarized(summary) => summaries::on_end(self, summary).await,
        }
    }

    async fn on_report(&mut self, report: Report) {
        match report {
            Report::Event { event, taken } => self.on_agent_event(event, taken),
            Report::NextRequest { said, reply } => {
                if self.budget.exceeded().is_some() {
                    let change = RequestChange { stop: true, ..self.next_request(&said, None) };
                    drop(reply.send(change));
                    return;
                }
                let Some(run) = self.run.take_run() else { return };
                Compacting::of(self).on_next_request(PausedRun { run, said, reply }).await;
            }
            Report::Sending(request) => {
                self.fit.on_request(&request);
                self.cache.on_request(request);
            }
            Report::Gate { call, arguments, touches, reply } => {
                let spec = self.tools.registry().get(&call.name).map(|tool| tool.spec());
                let project = &self.project.context().state;
                let pending =
                    PendingCall { call: &call, arguments: &arguments, touches: &touches, spec, project };
                self.questions.on_call(&pending, self.run.is_cancelled(), reply);
            }
        }
    }

    /// The changes for the next request of the run.
    pub(super) fn next_request(
        &self,
        said: &SystemState,
        messages: Option<Vec<Arc<Message>>>,
    ) -> RequestChange {
        let (project, cwd) = (self.project.context(), self.project.cwd());
        let session_id = self.log.session_id();
        let selected = if self.endings.is_limit_raised() {
            let (model, options) = self.model.selected(session_id);
            Some((model, StreamOptions { max_tokens: None, ..options }))
        } else {
            self.model.changed(session_id)
        };
        RequestChange {
            stop: false,
            messages,
            selected,
            tools: self.tools.registry().clone(),
            system: run::system_delta(&self.services, project, self.tools.registry(), cwd, said),
        }
    }

    fn on_agent_event(&mut self, event: AgentEvent, taken: Option<oneshot::Sender<()>>) {
        match &event {
            AgentEvent::ToolEnd { result, .. } => {
                // Stored when its call ends, because other calls may run for long.
                self.fit.on_result(result);
                let message = Arc::new(Message::ToolResult(Arc::clone(result)));
                let id = self.append(EntryBody::message(Arc::clone(&message)));
                self.steps.on_message(&id, &message);
            }
            AgentEvent::MessageEnd(message) => self.on_message_end(message),
            AgentEvent::MessageStart(message) if matches!(**message, Message::User(_)) => {
                self.queue.on_message_start();
                self.run.on_user_message();
            }
            _ => {}
        }
        if let Some(taken) = taken {
            // The loop may already be gone; then it does not wait either.
            let _gone = taken.send(());
        }
        self.outbox.send(SessionEvent::Agent(event));
    }

    fn on_message_end(&mut self, message: &Arc<Message>) {
        if matches!(**message, Message::ToolResult(_)) {
            // Already stored when its call ended.
            return;
        }
        // What an answer answers ends before it.
        let (extra, request) = match **message {
            Message::Assistant(_) => (self.steps.fields(), window_fit::request_messages(self)),
            _ => (ai::Extra::new(), Vec::new()),
        };
        let stored = SessionMessage::Model(Arc::clone(message));
        let entry_id = self.append(EntryBody::Message { message: stored, extra });
        self.steps.on_message(&entry_id, message);
        match &**message {
            Message::Assistant(answer) => {
                self.fit.on_answer(answer);
                self.endings.on_answer(answer);
                self.run.on_answer(entry_id, answer);
                self.cache.on_answer(answer, &request, self.model.model());
                self.run.on_outcome(answer);
                self.budget.on_usage(&answer.provider, &answer.usage);
                if !answer.is_failed() {
                    self.budget.on_answer();
                }
            }
            Message::User(_) => {
                self.fit.on_user_message(&entry_id);
                self.queue.on_delivered(message);
            }
            Message::System(_) | Message::ToolResult(_) => {}
        }
    }

    async fn on_run_end(&mut self) {
        let Some(run) = self.run.take_run() else { return };
        self.questions.withdraw_calls();
        let outcome = run.task.await.unwrap_or_else(|error| {
            self.outbox.notice(NoticeLevel::Error, format!("the run ended unexpectedly: {error}"));
            RunOutcome { last: None, aborted: true, panic: None }
        });
        self.queue.on_run_end();
        self.log.append_deferred();
        self.follow_log();
        if let Some(panic) = outcome.panic {
            // The answer in the transcript contains the error; a retry would panic again.
            self.run.end_retries(panic);
            return self.settle(true).await;
        }
        // The abort may have arrived after the loop's end, before it was reported here.
        if outcome.aborted || run.cancel.is_cancelled() {
            self.run.end_retries(RETRY_CANCELLED.to_owned());
            return self.settle(true).await;
        }
        let calls_tools = outcome.last_assistant().is_some_and(|answer| match answer.stop_reason {
            StopReason::ToolUse => true,
            StopReason::Length => answer.tool_calls().next().is_some(),
            _ => false,
        });
        if self.budget.exceeded().is_some() && (calls_tools || !self.queue.is_empty()) {
            Budgeting::of(self).on_stopped(calls_tools);
            return self.settle(true).await;
        }
        if let Some(answer) =
            outcome.last_assistant().filter(|answer| answer.stop_reason == StopReason::Error)
        {
            return Recovering::of(self).on_failure(answer).await;
        }
        if let Some(answer) = outcome.last_assistant()
            && (Recovering::of(self).gave_up_on_calls(answer).await
                || Compacting::of(self).recover(answer).await
                || Recovering::of(self).asks_again(answer).await)
        {
            return;
        }
        if Compacting::of(self).start_if_full(AfterCompaction::Queue).await.is_some() {
            self.start_queued().await;
        }
    }

    /// Continues with messages queued in the run's last moment, or settles.
    pub(super) async fn start_queued(&mut self) {
        if self.queue.is_empty() {
            return self.settle(false).await;
        }
        // Check this before messages leave the queue: without a key they would be lost.
        match self.model.credential().await {
            Ok(credential) => {
                let prompts = self.queue.take_next();
                self.start_run(credential, prompts);
            }
            Err(error) => {
                self.outbox.notice(NoticeLevel::Error, error.to_string());
                self.settle(false).await;
            }
        }
    }

    pub(super) async fn retry(&mut self) {
        self.run.end_wait();
        match self.model.credential().await {
            Ok(credential) => self.start_run(credential, Vec::new()),
            Err(error) => {
                self.run.end_retries(error.to_string());
                self.outbox.notice(NoticeLevel::Error, error.to_string());
                self.settle(false).await;
            }
        }
    }

    pub(super) fn abort(&mut self) {
        self.bash.cancel(None);
        self.questions.withdraw_calls();
        if self.run.cancel() {
            self.publish();
            self.queue.on_settled(true);
            self.outbox.send(SessionEvent::Settled { aborted: true });
        }
    }

    pub(super) async fn settle(&mut self, aborted: bool) {
        self.cache.on_idle();
        estimate_context(self);
        self.publish();
        self.queue.on_settled(aborted);
        self.log.sync().await;
        self.follow_log();
        Budgeting::of(self).save_quotas().await;
        self.outbox.send(SessionEvent::Settled { aborted });
    }
}
