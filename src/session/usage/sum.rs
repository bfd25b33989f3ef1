//! Sums of usage.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::ai::{Cost, Usage, is_flat_rate};
use crate::util::clock::Zone;

use super::record::UsageRecord;

/// Longer pauses between two requests do not count as work.
const IDLE_MS: u64 = 10 * 60_000;

/// Tokens and dollars of several requests.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UsageSum {
    /// Requests, those for summaries included.
    pub requests: u64,
    /// Requests to models of a flat-rate plan; their dollars are not counted.
    pub plan_requests: u64,
    /// Without cached tokens.
    pub input: u64,
    /// Output tokens.
    pub output: u64,
    /// Input tokens read from a cache.
    pub cache_read: u64,
    /// Input tokens written to a cache.
    pub cache_write: u64,
    /// US dollars.
    pub cost_usd: f64,
    /// What the prompts would have cost in addition without a cache; negative if writing to
    /// the cache cost more than reading from it saved.
    pub cache_savings_usd: f64,
    /// Requests whose prompts missed the cache.
    pub cache_misses: u64,
    /// Prompt tokens that were billed again because of that.
    pub cache_missed_tokens: u64,
    /// What they cost more than from the cache, in US dollars.
    pub cache_missed_usd: f64,
}

impl UsageSum {
    /// Adds a request. `rates` are those of its model, if known.
    fn add(&mut self, record: &UsageRecord, rates: Option<&Cost>) {
        let usage = &record.usage;
        self.requests += 1;
        self.input = self.input.saturating_add(usage.input);
        self.output = self.output.saturating_add(usage.output);
        self.cache_read = self.cache_read.saturating_add(usage.cache_read);
        self.cache_write = self.cache_write.saturating_add(usage.cache_write);
        if record.missed_tokens > 0 {
            self.cache_misses += 1;
            self.cache_missed_tokens = self.cache_missed_tokens.saturating_add(record.missed_tokens);
        }
        if is_flat_rate(&record.provider, usage) {
            self.plan_requests += 1;
            return;
        }
        self.cost_usd += usage.cost.total;
        self.cache_missed_usd += billed_again_usd(usage, record.missed_tokens, rates);
        if let Some(rates) = rates {
            let read = usage.cache_read as f64 * rates.input / 1e6 - usage.cost.cache_read;
            let write = usage.cost.cache_write - usage.cache_write as f64 * rates.input / 1e6;
            self.cache_savings_usd += read - write;
        }
    }

    /// All tokens, cached or not.
    pub fn tokens(&self) -> u64 {
        let prompt = self.input.saturating_add(self.cache_read).saturating_add(self.cache_write);
        prompt.saturating_add(self.output)
    }

    /// Fraction of the prompt tokens that came from the cache, 0 to 1; `None` without prompts.
    pub fn cache_hit(&self) -> Option<f64> {
        let prompt = self.input.saturating_add(self.cache_read).saturating_add(self.cache_write);
        (prompt > 0).then(|| self.cache_read as f64 / prompt as f64)
    }
}

/// What `missed` tokens of the prompt cost more than from the cache, in US dollars. `rates` are
/// those of the model, if known.
pub(in crate::session) fn billed_again_usd(usage: &Usage, missed: u64, rates: Option<&Cost>) -> f64 {
    let paid_tokens = usage.input.saturating_add(usage.cache_write);
    if missed == 0 || paid_tokens == 0 {
        return 0.0;
    }
    let paid = (usage.cost.input + usage.cost.cache_write) / paid_tokens as f64;
    let read = match usage.cache_read {
        0 => rates.map_or(0.0, |rates| rates.cache_read / 1e6),
        tokens => usage.cost.cache_read / tokens as f64,
    };
    missed as f64 * (paid - read).max(0.0)
}

/// Usage by every criterion. Keys are ids; days are `YYYY-MM-DD`, models
/// `provider/id`, projects directories.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UsageReport {
    /// Everything.
    pub total: UsageSum,
    /// What led to the end of the session.
    pub active_branch: UsageSum,
    /// What was left.
    pub other_branches: UsageSum,
    /// By date, `YYYY-MM-DD`.
    pub by_day: BTreeMap<String, UsageSum>,
    /// By `provider/id`.
    pub by_model: BTreeMap<String, UsageSum>,
    /// By directory.
    pub by_project: BTreeMap<String, UsageSum>,
    /// By session id.
    pub by_session: BTreeMap<String, UsageSum>,
    /// By the entry of the prompt.
    pub by_turn: BTreeMap<String, UsageSum>,
    /// Dollars per hour of work; pauses of more than ten minutes do not count. `None` for
    /// less than two requests.
    pub burn_usd_per_hour: Option<f64>,
    /// Over the last hours with requests; `None` without any.
    pub burn_tokens_per_hour: Option<f64>,
}

impl UsageReport {
    /// Adds up `records` with days in `zone`; `rates` returns the prices of the model of a record, if known,
    /// for the cache savings.
    pub fn of(records: &[UsageRecord], zone: &Zone, rates: impl Fn(&UsageRecord) -> Option<Cost>) -> Self {
        let mut report = Self::default();
        for record in records {
            let rates = rates(record);
            let day = zone.day(record.time_ms);
            let branch =
                if record.on_active_branch { &mut report.active_branch } else { &mut report.other_branches };
            branch.add(record, rates.as_ref());
            let sums = [
                report.by_day.entry(day).or_default(),
                report.by_model.entry(format!("{}/{}", record.provider, record.model)).or_default(),
                report.by_project.entry(record.project.clone()).or_default(),
                report.by_session.entry(record.session.clone()).or_default(),
                report.by_turn.entry(record.turn.clone()).or_default(),
                &mut report.total,
            ];
            for sum in sums {
                sum.add(record, rates.as_ref());
            }
        }
        if let Some(hours) = hours_of_work(records) {
            report.burn_usd_per_hour = Some(report.total.cost_usd / hours);
            report.burn_tokens_per_hour = Some(report.total.tokens() as f64 / hours);
        }
        report
    }
}

/// Less work tells nothing about an hour of it.
const MIN_WORK_MS: u64 = 60_000;

/// The time from request to request without long pauses; `None` if that is less than a minute.
fn hours_of_work(records: &[UsageRecord]) -> Option<f64> {
    let mut times: Vec<u64> = records.iter().map(|record| record.time_ms).collect();
    times.sort_unstable();
    let pauses = times.windows(2).map(|pair| pair[1] - pair[0]).filter(|pause| *pause <= IDLE_MS);
    let worked_ms: u64 = pauses.sum();
    (worked_ms >= MIN_WORK_MS).then(|| worked_ms as f64 / 3_600_000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(time_min: u64, provider: &str, cost: f64) -> UsageRecord {
        let mut usage = Usage { input: 100, output: 10, cache_read: 1_000_000, ..Usage::default() };
        (usage.cost.total, usage.cost.cache_read) = (cost, 0.5);
        UsageRecord {
            time_ms: 1_795_253_027_000 + time_min * 60_000,
            session: "s".to_owned(),
            project: "/p".to_owned(),
            entry: format!("e{time_min}"),
            turn: "t".to_owned(),
            on_active_branch: true,
            provider: provider.to_owned(),
            model: "m".to_owned(),
            usage,
            missed_tokens: 0,
        }
    }

    #[test]
    fn plans_count_in_tokens_and_not_in_dollars() {
        let records = [record(0, "anthropic", 2.0), record(1, "github-copilot", 9.0)];
        let report = UsageReport::of(&records, &Zone::utc(), |_| None);
        assert_eq!((report.total.requests, report.total.plan_requests), (2, 1));
        assert!((report.total.cost_usd - 2.0).abs() < 1e-9);
        assert_eq!(report.by_model["github-copilot/m"].tokens(), 1_000_110);
        assert_eq!(report.by_model["github-copilot/m"].cost_usd, 0.0);
    }

    #[test]
    fn cache_savings_are_the_difference_to_uncached_prices() {
        let rates = Cost { input: 5.0, ..Cost::default() };
        let report = UsageReport::of(&[record(0, "anthropic", 2.0)], &Zone::utc(), |_| Some(rates.clone()));
        assert!((report.total.cache_savings_usd - 4.5).abs() < 1e-9, "{report:?}");
    }

    #[test]
    fn what_missed_the_cache_costs_the_difference_to_reading_it() {
        let usage = |input: u64, read: u64, write: u64| {
            let mut usage = Usage { input, cache_read: read, cache_write: write, ..Usage::default() };
            usage.cost.input = input as f64 * 5e-6;
            usage.cost.cache_read = read as f64 * 0.5e-6;
            usage.cost.cache_write = write as f64 * 6e-6;
            usage
        };
        let rates = Cost { cache_read: 0.5, ..Cost::default() };
        let check = |usage: &Usage, rates: Option<&Cost>, expected: f64| {
            let found = billed_again_usd(usage, 1_000_000, rates);
            assert!((found - expected).abs() < 1e-9, "{usage:?}: {found}");
        };
        check(&usage(1_000_000, 0, 0), Some(&rates), 4.5);
        check(&usage(1_000_000, 0, 0), None, 5.0);
        check(&usage(0, 2_000_000, 1_000_000), None, 5.5);
        check(&usage(500_000, 2_000_000, 500_000), None, 5.0);
        check(&usage(0, 1_000_000, 0), None, 0.0);
        let mut plan = record(0, "github-copilot", 9.0);
        plan.missed_tokens = 100_000;
        let mut paid = plan.clone();
        paid.provider = "anthropic".to_owned();
        let report = UsageReport::of(&[plan, paid], &Zone::utc(), |_| None);
        assert_eq!((report.total.cache_misses, report.total.cache_missed_tokens), (2, 200_000));
        assert_eq!(report.by_model["github-copilot/m"].cache_missed_usd, 0.0);
    }

    #[test]
    fn the_burn_rate_ignores_long_pauses() {
        let records = [record(0, "a", 1.0), record(6, "a", 1.0), record(600, "a", 1.0)];
        let report = UsageReport::of(&records, &Zone::utc(), |_| None);
        assert_eq!(report.burn_usd_per_hour.map(f64::round), Some(30.0));
        assert_eq!(UsageReport::of(&records[..1], &Zone::utc(), |_| None).burn_usd_per_hour, None);
        let mut moments = [record(0, "a", 1.0), record(0, "a", 1.0)];
        moments[1].time_ms += MIN_WORK_MS - 1;
        assert_eq!(UsageReport::of(&moments, &Zone::utc(), |_| None).burn_usd_per_hour, None, "too little");
    }
}
