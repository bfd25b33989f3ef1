//! Makes the conversation fit the window of the model: results that are larger than their share, and
//! the attempts after a request that did not fit.

use std::sync::Arc;

use crate::ai::{
    self, AssistantMessage, Message, RefusedSize, Request, StopReason, SystemState, ToolResultMessage,
};

use super::super::compaction::{self, PlanLimits};
use super::super::event::NoticeLevel;
use super::super::pins;
use super::super::projection;
use super::super::run;
use super::super::store::EntryId;
use super::AgentSession;

/// Compactions after requests that did not fit, for one prompt.
const MAX_RECOVERIES: u32 = 3;
/// A smaller number in an error is not the size of a window.
const LEAST_WINDOW: u64 = 1_024;

/// What a session knows about the fit of its requests.
#[derive(Default)]
pub(super) struct WindowFit {
    /// Compactions since the last request that fitted.
    n_recoveries: u32,
    /// How often the share of results was halved.
    n_halvings: u32,
    /// Characters of results since the last answer.
    n_result_chars: usize,
    last_request: Option<Arc<Request>>,
    /// Tokens that its service counted, if it refused the last request and said so.
    n_refused_tokens: Option<u64>,
    task: TaskPrompt,
}

/// The prompt whose words every compaction keeps.
#[derive(Debug, Default, PartialEq, Eq)]
enum TaskPrompt {
    #[default]
    None,
    /// The next prompt.
    Next,
    Sent(EntryId),
}

impl WindowFit {
    /// Lets a new prompt have all attempts.
    pub(super) fn on_prompt(&mut self) {
        self.n_recoveries = 0;
    }

    pub(super) fn on_request(&mut self, request: &Arc<Request>) {
        self.last_request = Some(Arc::clone(request));
        self.n_refused_tokens = None;
    }

    pub(super) fn on_result(&mut self, result: &ToolResultMessage) {
        self.n_result_chars = self.n_result_chars.saturating_add(compaction::result_chars(result));
    }

    pub(super) fn on_answer(&mut self, answer: &AssistantMessage) {
        self.n_result_chars = 0;
        if !answer.is_failed() && answer.stop_reason != StopReason::Length {
            self.n_recoveries = 0;
        }
    }

    /// Keeps the words of the next prompt through every compaction.
    pub(super) fn keep_next_prompt(&mut self) {
        self.task = TaskPrompt::Next;
    }

    /// Records a prompt that was stored as entry `id`.
    pub(super) fn on_user_message(&mut self, id: &EntryId) {
        if self.task == TaskPrompt::Next {
            self.task = TaskPrompt::Sent(id.clone());
        }
    }

    pub(super) fn task(&self) -> Option<&EntryId> {
        match &self.task {
            TaskPrompt::Sent(id) => Some(id),
            TaskPrompt::None | TaskPrompt::Next => None,
        }
    }

    /// Counts a request that did not fit. The number of those before it; `None` if that was enough.
    pub(super) fn take_recovery(&mut self) -> Option<u32> {
        let n_before = self.n_recoveries;
        if n_before >= MAX_RECOVERIES {
            return None;
        }
        self.n_recoveries += 1;
        self.n_halvings = self.n_halvings.max(n_before);
        Some(n_before)
    }

    /// The limit of the last answer, in tokens.
    pub(super) fn answer_limit(&self) -> Option<u64> {
        self.last_request.as_deref().map(ai::answer_limit)
    }

    /// Whether the window left the last answer less room than it may have otherwise.
    pub(super) fn was_limit_lowered(&self) -> bool {
        self.last_request.as_deref().is_some_and(ai::is_answer_limit_lowered)
    }
}

/// The messages of the next request, with results that fit the window.
pub(super) fn request_messages(session: &mut AgentSession) -> Vec<Arc<Message>> {
    let mut messages = projection::messages(&session.log.context_branch());
    fit_results(session, &mut messages);
    messages
}

/// Shortens results that exceed their share of the window. The same results stay shortened in later
/// requests, so that the provider's cache holds.
pub(super) fn fit_results(session: &mut AgentSession, messages: &mut [Arc<Message>]) {
    let limits = plan_limits(session, &ai::system_state(messages));
    compaction::fit_results(messages, limits.results_chars(session.fit.n_halvings));
}

/// The messages of a run's next request, if its latest results exceed their share.
pub(super) fn shortened_messages(
    session: &mut AgentSession,
    said: &SystemState,
) -> Option<Vec<Arc<Message>>> {
    let n_chars = plan_limits(session, said).results_chars(session.fit.n_halvings);
    // Earlier results are short already.
    (session.fit.n_result_chars > n_chars).then(|| request_messages(session))
}

/// Whether the request that did not fit asked for a longer answer than it will: its service, which
/// counted the answer, named a smaller window, which has room for the conversation.
pub(super) fn answer_will_shrink(session: &AgentSession) -> bool {
    let Some(request) = &session.fit.last_request else { return false };
    let counts_answer =
        session.fit.n_refused_tokens.is_some_and(|requested| requested > ai::answer_limit(request));
    counts_answer && ai::fits_with_shorter_answer(request, session.model.model())
}

/// Whether the request that did not fit had larger results than it will have: its service named a
/// smaller window.
pub(super) fn results_will_shrink(session: &AgentSession) -> bool {
    let Some(request) = &session.fit.last_request else { return false };
    let limits = plan_limits(session, &ai::system_state(&request.messages));
    let n_chars = limits.results_chars(session.fit.n_halvings);
    // A shortened result is a little longer than its share.
    compaction::has_large_results(
        &request.messages,
        n_chars.saturating_add(n_chars / 4).saturating_add(2_000),
    )
}

/// Halves the share of results. Whether that makes the next request smaller.
pub(super) fn halve_results(session: &mut AgentSession) -> bool {
    let messages = projection::messages(&session.log.context_branch());
    let limits = plan_limits(session, &ai::system_state(&messages));
    let is_large = |n_halvings| compaction::has_large_results(&messages, limits.results_chars(n_halvings));
    let helps = is_large(session.fit.n_halvings + 1);
    session.fit.n_halvings += u32::from(helps);
    helps
}

/// The sizes for compactions of this conversation; `said` is its prompt and tools.
pub(super) fn plan_limits(session: &AgentSession, said: &SystemState) -> PlanLimits {
    let model = session.model.model();
    let budget = session.settings.get().values.compaction.budget(&model.reference());
    let system = run::replayed_system(said, 0);
    let fixed = system.map_or(0, |system| compaction::message_tokens(&Message::from(system)));
    PlanLimits::of(budget, model, fixed)
}

/// Pins the prompt whose words have to stay, before a compaction can remove it. Whether it was not pinned.
pub(super) fn pin_task(session: &mut AgentSession) -> bool {
    let Some(task) = session.fit.task().cloned() else { return false };
    if session.log.is_pinned(&task) || !session.log.store().contains(&task) {
        return false;
    }
    session.append(pins::pin_entry(&task, true));
    true
}

/// Whether `answer` shows that the conversation has to shrink.
pub(super) fn is_overflow(session: &AgentSession, answer: &AssistantMessage) -> bool {
    let model = session.model.model();
    ai::is_overflow(answer, model.context_window)
        || was_cut_off_by_the_window(answer, model)
        || (answer.stop_reason == StopReason::Length && session.fit.was_limit_lowered())
}

/// Takes the size of the window from the error of a service that knows better than the catalogue.
pub(super) fn learn_window(session: &mut AgentSession, size: Option<&RefusedSize>) {
    session.fit.n_refused_tokens = size.and_then(|size| size.requested);
    let Some(window) = size.and_then(|size| size.limit).filter(|window| *window >= LEAST_WINDOW) else {
        return;
    };
    let before = session.model.model().context_window;
    if !session.model.limit_window(window) {
        return;
    }
    session.run.set_window(window);
    let model = session.model.model().reference();
    let text = format!("the context window of {model} has {window} tokens here, not {before}");
    session.outbox.notice(NoticeLevel::Info, text);
    session.publish();
}

/// Whether an answer was truncated by the window, not by a limit of the
/// model or the user.
fn was_cut_off_by_the_window(answer: &AssistantMessage, model: &ai::Model) -> bool {
    let used = answer.usage.prompt_tokens().saturating_add(answer.usage.output);
    answer.stop_reason == StopReason::Length
        && answer.usage.output < model.max_tokens
        && model.context_window > 0
        && used >= model.context_window - model.context_window / 10
}
