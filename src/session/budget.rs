//! Limits on the cost of a prompt, a session and a day, and on the answers to a prompt.
//! Pure policy.
//!
//! Costs are known when an answer is complete, so a limit is exceeded by one answer at
//! most. `agent_session::budgeting` ends the run then and asks whether to continue.

use crate::ai::{Usage, is_flat_rate};
use crate::config::BudgetLimits;

/// The period that a limit applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BudgetPeriod {
    /// One prompt and everything that answers it.
    Turn,
    /// The cost of the whole session.
    Session,
    /// A day in the zone of this machine, all sessions together.
    Day,
    /// The answers to one prompt, whatever they cost.
    Answers,
}

/// A limit that was exceeded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Exceeded {
    pub(super) period: BudgetPeriod,
    /// US dollars; a number for [`BudgetPeriod::Answers`].
    pub(super) spent: f64,
    pub(super) limit: f64,
}

/// The number of answers to a prompt. A limit of 0 means none.
#[derive(Debug, Default)]
struct AnswerCount {
    n: u32,
    limit: u32,
    /// The limit of the settings.
    step: u32,
}

impl AnswerCount {
    fn new(step: u32) -> Self {
        Self { n: 0, limit: step, step }
    }

    /// The next request would lead to one answer too many.
    fn is_reached(&self) -> bool {
        self.step > 0 && self.n >= self.limit
    }
}

/// The costs so far, and the limits, which the user may have raised.
#[derive(Debug)]
pub(super) struct Budget {
    turn: Account,
    session: Account,
    day: Account,
    answers: AnswerCount,
    /// Start of the day of `day`, in milliseconds since the Unix epoch; `None` until its costs
    /// are known.
    today: Option<u64>,
    /// A run was stopped before the model read the results of its calls.
    pub(super) is_stopped: bool,
}

#[derive(Debug)]
struct Account {
    spent_usd: f64,
    limit_usd: f64,
    /// The limit of the settings; 0 means none.
    step_usd: f64,
}

impl Account {
    fn new(step_usd: f64) -> Self {
        Self { spent_usd: 0.0, limit_usd: step_usd, step_usd }
    }

    fn is_exceeded(&self) -> bool {
        self.step_usd > 0.0 && self.spent_usd > self.limit_usd
    }

    /// Allows the limit once more.
    fn raise(&mut self) {
        self.limit_usd = self.limit_usd.max(self.spent_usd) + self.step_usd;
    }

    fn reset(&mut self, spent_usd: f64) {
        *self = Self { spent_usd, ..Self::new(self.step_usd) };
    }
}

impl Budget {
    /// `session_usd` is the cost of the session so far.
    pub(super) fn new(limits: &BudgetLimits, session_usd: f64) -> Self {
        let mut budget = Self {
            turn: Account::new(limits.turn_usd),
            session: Account::new(limits.session_usd),
            day: Account::new(limits.day_usd),
            answers: AnswerCount::new(limits.turns),
            today: None,
            is_stopped: false,
        };
        budget.session.spent_usd = session_usd;
        budget
    }

    /// Applies changed limits; limits that the user raised stay raised.
    pub(super) fn configure(&mut self, limits: &BudgetLimits) {
        if self.answers.step != limits.turns {
            self.answers = AnswerCount { n: self.answers.n, ..AnswerCount::new(limits.turns) };
        }
        let steps = [limits.turn_usd, limits.session_usd, limits.day_usd];
        let accounts = [&mut self.turn, &mut self.session, &mut self.day];
        for (account, step_usd) in accounts.into_iter().zip(steps).filter(|(a, step)| a.step_usd != *step) {
            *account = Account { spent_usd: account.spent_usd, ..Account::new(step_usd) };
        }
    }

    /// Continues with another session, whose cost is `session_usd`.
    pub(super) fn on_session(&mut self, session_usd: f64) {
        self.session.reset(session_usd);
        self.turn.reset(0.0);
        self.answers = AnswerCount::new(self.answers.step);
        self.is_stopped = false;
    }

    /// Counts an answer that did not fail.
    pub(super) fn on_answer(&mut self) {
        self.answers.n = self.answers.n.saturating_add(1);
    }

    pub(super) fn on_prompt(&mut self) {
        self.answers = AnswerCount::new(self.answers.step);
        self.turn.reset(0.0);
        self.is_stopped = false;
    }

    /// Whether costs of a day are limited.
    pub(super) fn has_day_limit(&self) -> bool {
        self.day.step_usd > 0.0
    }

    /// Whether the costs of the day that began at `start_ms`, in milliseconds since the Unix
    /// epoch, are missing. Without a limit per day they are not.
    pub(super) fn misses_day(&self, start_ms: u64) -> bool {
        self.has_day_limit() && self.today != Some(start_ms)
    }

    /// Sets the costs of the day that began at `start_ms`.
    pub(super) fn set_day(&mut self, start_ms: u64, spent_usd: f64) {
        self.today = Some(start_ms);
        self.day.reset(spent_usd);
    }

    /// Adds the cost of a request to `provider`; flat-rate plans cost nothing.
    pub(super) fn on_usage(&mut self, provider: &str, usage: &Usage) {
        if is_flat_rate(provider, usage) {
            return;
        }
        for account in [&mut self.turn, &mut self.session, &mut self.day] {
            account.spent_usd += usage.cost.total;
        }
    }

    /// The limit that is exceeded, the shortest period first.
    pub(super) fn exceeded(&self) -> Option<Exceeded> {
        if self.answers.is_reached() {
            let (spent, limit) = (f64::from(self.answers.n), f64::from(self.answers.limit));
            return Some(Exceeded { period: BudgetPeriod::Answers, spent, limit });
        }
        let accounts = [
            (BudgetPeriod::Turn, &self.turn),
            (BudgetPeriod::Session, &self.session),
            (BudgetPeriod::Day, &self.day),
        ];
        let (period, account) = accounts.into_iter().find(|(_, account)| account.is_exceeded())?;
        Some(Exceeded { period, spent: account.spent_usd, limit: account.limit_usd })
    }

    /// Whether no limit is exceeded, and none would be after a request that costs `usd`.
    pub(super) fn allows(&self, usd: f64) -> bool {
        let accounts = [&self.turn, &self.session, &self.day];
        let has_room = |a: &Account| a.step_usd == 0.0 || a.spent_usd + usd <= a.limit_usd;
        self.exceeded().is_none() && accounts.into_iter().all(has_room)
    }

    /// Raises every exceeded limit by the amount in the settings.
    pub(super) fn raise(&mut self) {
        if self.answers.is_reached() {
            self.answers.limit = self.answers.n.saturating_add(self.answers.step);
        }
        for account in [&mut self.turn, &mut self.session, &mut self.day] {
            if account.is_exceeded() {
                account.raise();
            }
        }
    }
}

impl Exceeded {
    /// What happened, for the user.
    pub(super) fn describe(&self) -> String {
        let (what, setting) = match self.period {
            BudgetPeriod::Turn => ("This prompt", "budget.turnUsd"),
            BudgetPeriod::Session => ("This session", "budget.sessionUsd"),
            BudgetPeriod::Day => ("Today's sessions", "budget.dayUsd"),
            BudgetPeriod::Answers => {
                let n = self.spent;
                let answers = if n > 1.0 { "answers" } else { "answer" };
                return format!("This prompt has taken {n} {answers}, which is the limit (budget.turns).");
            }
        };
        let verb = if self.period == BudgetPeriod::Day { "have" } else { "has" };
        let (spent, limit) = (self.spent, self.limit);
        format!("{what} {verb} cost ${spent:.2}, more than the limit of ${limit:.2} ({setting}).")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(usd: f64) -> Usage {
        let mut usage = Usage::default();
        usage.cost.total = usd;
        usage
    }

    fn budget(turn_usd: f64, session_usd: f64, day_usd: f64) -> Budget {
        Budget::new(&BudgetLimits { turn_usd, session_usd, day_usd, turns: 0 }, 0.0)
    }

    #[test]
    fn the_shortest_exceeded_period_is_reported_and_raising_allows_the_limit_again() {
        let mut budget = budget(1.0, 3.0, 0.0);
        budget.on_usage("acme", &cost(1.0));
        assert_eq!(budget.exceeded(), None, "the limit itself may be spent");
        budget.on_usage("acme", &cost(0.5));
        let exceeded = budget.exceeded().unwrap();
        assert_eq!((exceeded.period, exceeded.spent), (BudgetPeriod::Turn, 1.5));
        budget.raise();
        budget.on_usage("acme", &cost(1.0));
        assert_eq!(budget.exceeded(), None);
        budget.on_usage("acme", &cost(1.0));
        assert_eq!(budget.exceeded().map(|found| found.period), Some(BudgetPeriod::Turn));
        budget.on_prompt();
        assert_eq!(budget.exceeded().map(|found| found.period), Some(BudgetPeriod::Session));
    }

    #[test]
    fn answers_are_counted_per_prompt_and_raising_allows_as_many_again() {
        let mut budget = Budget::new(&BudgetLimits { turns: 2, ..BudgetLimits::default() }, 0.0);
        budget.on_answer();
        assert_eq!(budget.exceeded(), None);
        budget.on_answer();
        let exceeded = budget.exceeded().unwrap();
        assert_eq!(
            exceeded.describe(),
            "This prompt has taken 2 answers, which is the limit (budget.turns)."
        );
        budget.raise();
        budget.on_answer();
        assert_eq!(budget.exceeded(), None);
        budget.on_answer();
        assert!(budget.exceeded().is_some());
        budget.on_prompt();
        assert_eq!(budget.exceeded(), None);
    }

    #[test]
    fn without_limits_and_on_plans_nothing_is_exceeded() {
        let mut free = budget(0.0, 0.0, 0.0);
        free.on_usage("acme", &cost(1e6));
        assert_eq!(free.exceeded(), None);
        let mut plan = budget(1.0, 1.0, 1.0);
        plan.on_usage("github-copilot", &cost(5.0));
        assert_eq!(plan.exceeded(), None);
    }

    #[test]
    fn a_new_day_starts_with_its_own_costs() {
        let mut budget = budget(0.0, 0.0, 2.0);
        assert!(budget.misses_day(5));
        budget.set_day(5, 1.5);
        assert!(!budget.misses_day(5) && budget.misses_day(6));
        budget.on_usage("acme", &cost(1.0));
        assert_eq!(budget.exceeded().map(|found| found.period), Some(BudgetPeriod::Day));
        budget.set_day(6, 0.0);
        assert_eq!(budget.exceeded(), None);
    }
}
