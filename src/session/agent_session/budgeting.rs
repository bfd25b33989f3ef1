//! Ends runs that exceed a limit of cost, and asks whether to continue.

use crate::ai::Usage;

use super::super::event::NoticeLevel;
use super::super::handle::SessionError;
use super::super::quota_file;
use super::super::refusal::Refusal;
use super::super::usage::{UsageReport, usage_since};
use super::AgentSession;

/// Applies the limits of cost to a session.
pub(super) struct Budgeting<'s> {
    session: &'s mut AgentSession,
}

impl<'s> Budgeting<'s> {
    pub(super) fn of(session: &'s mut AgentSession) -> Self {
        Self { session }
    }

    /// Allows a new prompt, or explains why it may not be sent.
    ///
    /// # Errors
    /// If the session or the day has exceeded its limit.
    pub(super) async fn check_prompt(&mut self) -> Result<(), SessionError> {
        self.session.questions.close_budget();
        self.session.budget.on_prompt();
        self.session.outbox.update(|state| state.stopped_by_limit = false);
        self.load_day().await;
        let Some(exceeded) = self.session.budget.exceeded() else { return Ok(()) };
        let text = exceeded.describe();
        self.session.questions.ask_budget(exceeded.period, &text);
        Err(Refusal::OverBudget { reason: text }.into())
    }

    /// Whether the limits allow a request that costs about `usd`, without asking anybody.
    pub(super) async fn allows(&mut self, usd: f64) -> bool {
        self.load_day().await;
        self.session.budget.allows(usd)
    }

    /// Reports that a run was stopped, and asks whether to continue it. `is_resumable` means
    /// that the model has not seen the results of its calls.
    pub(super) fn on_stopped(&mut self, is_resumable: bool) {
        let Some(exceeded) = self.session.budget.exceeded() else { return };
        self.session.budget.is_stopped = is_resumable;
        self.session.outbox.update(|state| state.stopped_by_limit = true);
        let text = exceeded.describe();
        if !self.session.questions.ask_budget(exceeded.period, &text) {
            self.session.outbox.notice(NoticeLevel::Error, format!("{text} The agent stopped."));
        }
    }

    /// Raises the limits, and continues the stopped run.
    pub(super) async fn go_on(&mut self) {
        let session = &mut *self.session;
        session.budget.raise();
        if !std::mem::take(&mut session.budget.is_stopped) {
            return;
        }
        match session.model.credential().await {
            Ok(credential) => session.start_run(credential, Vec::new()),
            Err(error) => session.outbox.notice(NoticeLevel::Error, error.to_string()),
        }
    }

    /// Adds the cost of a request to the model in use.
    pub(super) fn on_usage(&mut self, usage: &Usage) {
        let provider = &self.session.model.model().provider;
        self.session.budget.on_usage(provider, usage);
    }

    /// Stores what providers reported about their limits, for `pi usage`.
    pub(super) async fn save_quotas(&mut self) {
        let services = &self.session.services;
        if services.quotas.all().is_empty() {
            return;
        }
        let (dirs, quotas) = (services.dirs.clone(), services.quotas.clone());
        // The file is a cache: without it only other processes know less.
        let saving = tokio::task::spawn_blocking(move || quota_file::save(&dirs, &quotas));
        drop(saving.await);
    }

    /// Reads today's costs of all sessions, once a day.
    async fn load_day(&mut self) {
        // The first use of the time zone looks through a folder of all zones.
        if !self.session.budget.has_day_limit() {
            return;
        }
        let services = &self.session.services;
        let since_ms = services.clock.zone().day_start(services.clock.now_ms(), 0);
        if !self.session.budget.misses_day(since_ms) {
            return;
        }
        let Some(folder) = services.sessions.clone() else { return };
        // A folder of the user's own is flat; the others are below one folder.
        let root =
            if folder.starts_with(&services.dirs.sessions) { services.dirs.sessions.clone() } else { folder };
        let reading = tokio::task::spawn_blocking(move || usage_since(&root, since_ms));
        let records = reading.await.unwrap_or_default();
        let spent_usd = UsageReport::of(&records, &services.clock.zone(), |_| None).total.cost_usd;
        self.session.budget.set_day(since_ms, spent_usd);
    }
}
