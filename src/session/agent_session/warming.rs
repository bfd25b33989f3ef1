//! Sends requests that keep the provider's cache, and stores what they cost.

use serde_json::json;

use crate::ai::{self, AssistantMessage, Extra};
use crate::util::counted;

use super::super::cache_warming::NotWarmed;
use super::super::event::NoticeLevel;
use super::super::projection;
use super::super::run;
use super::super::store::{EntryBody, UsageEntry};
use super::AgentSession;
use super::budgeting::Budgeting;
use super::prompt_cache::{CacheInput, WarmingPlan};

/// The kind of usage entry that the original writes for such a request.
const KIND: &str = "cache_warm";

/// Keeps the provider's cache of a session.
pub(super) struct Warming<'s> {
    session: &'s mut AgentSession,
}

impl<'s> Warming<'s> {
    pub(super) fn of(session: &'s mut AgentSession) -> Self {
        Self { session }
    }

    pub(super) async fn on_input(&mut self, input: CacheInput) {
        match input {
            CacheInput::Due => self.on_due().await,
            CacheInput::Answered(answer) => self.on_answer(answer.as_deref()),
        }
    }

    /// Sends the planned request, if it still makes sense.
    async fn on_due(&mut self) {
        let Some(plan) = self.session.cache.take_plan() else { return };
        let now_ms = self.session.services.clock.now_ms();
        let why = if plan.prompt.is_late(now_ms) {
            NotWarmed::Late
        } else if self.has_changed(&plan) {
            NotWarmed::Changed
        } else if !Budgeting::of(self.session).allows(plan.prompt.costs.warm_usd).await {
            NotWarmed::Budget
        } else {
            return self.session.cache.send(plan);
        };
        self.session.cache.rest_with(why, &plan);
    }

    /// Whether the next request of the session would not begin with the messages of `plan`.
    fn has_changed(&mut self, plan: &WarmingPlan) -> bool {
        let session = &mut *self.session;
        let (selection, settings) = (session.model.selection(), session.settings.get());
        let (model, thinking) = (&selection.model, selection.thinking());
        let next = session.services.options(&settings.values, model, thinking, session.log.session_id());
        let options = &plan.request.options;
        // Those on which the prompt depends.
        let is_same = *model == plan.request.model
            && thinking == options.thinking
            && next.thinking_budgets == options.thinking_budgets
            && next.without_images == options.without_images;
        if !is_same {
            return true;
        }
        let sent = &plan.request.messages;
        let now = projection::messages(&session.log.context_branch());
        let said = ai::system_state(&now);
        let (project, cwd) = (session.project.context(), session.project.cwd());
        let delta = run::system_delta(&session.services, project, session.tools.registry(), cwd, &said);
        delta.is_some() || now.get(..sent.len()) != Some(sent.as_slice())
    }

    fn on_answer(&mut self, answer: Option<&AssistantMessage>) {
        let session = &mut *self.session;
        if let Some(answer) = answer.filter(|answer| answer.usage.prompt_tokens() > 0) {
            let mut extra = Extra::new();
            extra.extend([
                ("kind".to_owned(), json!(KIND)),
                ("provider".to_owned(), json!(answer.provider)),
                ("model".to_owned(), json!(answer.model)),
            ]);
            let usage = answer.usage.clone();
            session.append(EntryBody::Usage(Box::new(UsageEntry { usage, extra })));
            session.budget.on_usage(&answer.provider, &answer.usage);
            if session.settings.get().values.show_cache_miss_notices {
                session.outbox.notice(NoticeLevel::Info, notice(answer));
            }
        }
        session.cache.on_warmed(answer);
    }
}

fn notice(answer: &AssistantMessage) -> String {
    let usage = &answer.usage;
    let cost_usd = usage.cost.total;
    match usage.input.saturating_add(usage.cache_write) {
        billed if billed > usage.cache_read => {
            let tokens = counted(billed, "prompt token");
            format!(
                "The provider no longer cached the prompt: {tokens} were billed again for ${cost_usd:.4} to cache it."
            )
        }
        _ => {
            let tokens = counted(usage.cache_read, "prompt token");
            format!("Kept {tokens} in the provider's cache for ${cost_usd:.4}.")
        }
    }
}
