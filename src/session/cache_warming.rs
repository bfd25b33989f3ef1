//! Decides when a request keeps the provider's cache of a conversation. Pure policy.
//!
//! A provider forgets a prompt that nobody repeats, and then charges the next request for
//! all of it. Repeating the last request with the shortest answer costs a fraction of that.
//! `agent_session::prompt_cache` sends it.

use crate::ai::{DEMO_PROVIDER, Model, Usage, is_flat_rate};
use crate::config::CacheWarmingMode;

/// Least expected saving of a request, in US dollars.
const WORTH_USD: f64 = 0.05;
/// How likely another request is while the agent works, and while it waits for the user.
const RUNNING_PROBABILITY: f64 = 1.0;
const IDLE_PROBABILITY: f64 = 0.15;
/// How long a cache is kept: from the start of a run, and from its end.
const RUN_LIMIT_MS: u64 = 60 * 60_000;
const IDLE_LIMIT_MS: u64 = 30 * 60_000;
/// Least time between the request and the end of the cache's lifetime.
const MARGIN_MS: u64 = 10_000;

/// How the provider's cache of a session is kept.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CacheWarmth {
    /// What happens next.
    pub status: WarmingStatus,
    /// For the last prompt, once it is known.
    pub costs: Option<WarmingCosts>,
}

/// What happens next to the provider's cache of a session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum WarmingStatus {
    /// There was no answer yet.
    #[default]
    Unplanned,
    /// A request at this time, in milliseconds since the Unix epoch.
    Planned {
        /// Unless something changes until then.
        at_ms: u64,
    },
    /// The request is being answered.
    Sending,
    /// Nothing until the next answer.
    Stopped(NotWarmed),
}

/// Prices of the last prompt, in US dollars.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WarmingCosts {
    /// What it costs more if the cache has forgotten it.
    pub miss_usd: f64,
    /// What a request costs that keeps it.
    pub warm_usd: f64,
}

/// Why the provider's cache of a session is not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotWarmed {
    /// The setting.
    Off,
    /// The setting, and the agent does not work.
    Idle,
    /// A mode that does not hold its session open.
    FrontEnd,
    /// Nobody knows how long the provider caches this model's prompts.
    UnknownLifetime,
    /// Too short for a request in between.
    ShortLifetime,
    /// A flat-rate plan pays, so nothing can be saved.
    Plan,
    /// The provider did not report that it cached the prompt.
    NotCached,
    /// The API has no way to limit the answer to the repeated request.
    LongAnswer,
    /// The agent does not work, and the request has images, which are not held in memory.
    Images,
    /// It would save less than it is worth.
    NotWorth,
    /// The conversation has rested for too long, or the run takes too long.
    TimeUp,
    /// The computer slept, for example.
    Late,
    /// The next request begins differently.
    Changed,
    /// A limit of cost forbids it.
    Budget,
    /// The last such request was not answered from the cache.
    Missed,
    /// The last such request failed.
    Failed,
}

impl NotWarmed {
    /// The reason, for the user.
    pub fn describe(&self) -> &'static str {
        match self {
            Self::Off => "switched off",
            Self::Idle => "only while the agent works",
            Self::FrontEnd => "not in this mode",
            Self::Images => "only while the agent works, because the prompt has images",
            Self::UnknownLifetime => "not known how long the provider caches this model's prompts",
            Self::ShortLifetime => "the provider caches prompts too briefly",
            Self::Plan => "a plan pays for the requests",
            Self::NotCached => "the provider did not cache the prompt",
            Self::LongAnswer => "the answer to a repeated request cannot be limited",
            Self::NotWorth => "it would cost more than it is expected to save",
            Self::TimeUp => "the time for it is over",
            Self::Late => "the cache had probably expired",
            Self::Changed => "the next request begins differently",
            Self::Budget => "a limit of cost forbids it",
            Self::Missed => "the prompt was no longer in the cache",
            Self::Failed => "the last request for it failed",
        }
    }
}

/// Whether the agent works, and since when, in milliseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Running { since_ms: u64 },
    Idle { since_ms: u64 },
}

impl Stage {
    fn probability(self) -> f64 {
        match self {
            Self::Running { .. } => RUNNING_PROBABILITY,
            Self::Idle { .. } => IDLE_PROBABILITY,
        }
    }

    fn end_ms(self) -> u64 {
        match self {
            Self::Running { since_ms } => since_ms.saturating_add(RUN_LIMIT_MS),
            Self::Idle { since_ms } => since_ms.saturating_add(IDLE_LIMIT_MS),
        }
    }
}

/// How long the provider caches prompts of `model`, in milliseconds; `None` if that is not
/// known. `long` means that requests ask for a long time.
pub(super) fn known_lifetime_ms(model: &Model, long: bool) -> Option<u64> {
    let supports_long = model.compat.get("supportsLongCacheRetention") != Some(&false.into());
    let tier = if long && supports_long { "long" } else { "short" };
    let seconds = model.extra.get("promptCache")?.get(tier)?.as_u64()?;
    Some(seconds.saturating_mul(1_000))
}

/// Whether the cache of `model` could be kept at all, before anything is known about its
/// prompt.
pub(super) fn check_model(model: &Model, mode: CacheWarmingMode, long: bool) -> Result<(), NotWarmed> {
    match mode {
        CacheWarmingMode::Off => return Err(NotWarmed::Off),
        CacheWarmingMode::Streaming | CacheWarmingMode::Idle => {}
    }
    let lifetime_ms = known_lifetime_ms(model, long).filter(|_| model.provider != DEMO_PROVIDER);
    delay_ms(lifetime_ms.ok_or(NotWarmed::UnknownLifetime)?).ok_or(NotWarmed::ShortLifetime).map(drop)
}

/// Time from the use of a cache to the request that keeps it: nine tenths of its lifetime,
/// and at least ten seconds before its end. `None` if it lives too briefly.
fn delay_ms(lifetime_ms: u64) -> Option<u64> {
    let latest = lifetime_ms.checked_sub(MARGIN_MS).filter(|latest| *latest > 0)?;
    Some(latest.min(lifetime_ms - lifetime_ms / 10))
}

/// A prompt in the provider's cache.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CachedPrompt {
    /// Its length.
    tokens: u64,
    lifetime_ms: u64,
    /// Start of the last request that used it, in milliseconds since the Unix epoch.
    pub(super) used_ms: u64,
    pub(super) costs: WarmingCosts,
}

impl CachedPrompt {
    /// The prompt of a request to `model` at `used_ms` that was answered with `usage`. A
    /// repetition has an answer of `answer_tokens`.
    pub(super) fn of(
        model: &Model,
        long: bool,
        usage: &Usage,
        answer_tokens: u64,
        used_ms: u64,
    ) -> Result<Self, NotWarmed> {
        if is_flat_rate(&model.provider, usage) {
            return Err(NotWarmed::Plan);
        }
        if usage.cache_read == 0 && usage.cache_write == 0 {
            return Err(NotWarmed::NotCached);
        }
        let lifetime_ms = known_lifetime_ms(model, long).ok_or(NotWarmed::UnknownLifetime)?;
        let tokens = usage.prompt_tokens();
        let costs = costs(model, tokens, answer_tokens, usage.cache_write_1h.is_some());
        Ok(Self { tokens, lifetime_ms, used_ms, costs })
    }

    /// When to send the next request that keeps it, in milliseconds since the Unix epoch.
    pub(super) fn next_ms(
        &self,
        mode: CacheWarmingMode,
        stage: Stage,
        now_ms: u64,
    ) -> Result<u64, NotWarmed> {
        match (mode, stage) {
            (CacheWarmingMode::Off, _) => return Err(NotWarmed::Off),
            (CacheWarmingMode::Streaming, Stage::Idle { .. }) => return Err(NotWarmed::Idle),
            (CacheWarmingMode::Streaming | CacheWarmingMode::Idle, _) => {}
        }
        let delay_ms = delay_ms(self.lifetime_ms).ok_or(NotWarmed::ShortLifetime)?;
        if stage.probability() * self.costs.miss_usd - self.costs.warm_usd < WORTH_USD {
            return Err(NotWarmed::NotWorth);
        }
        let due_ms = self.used_ms.saturating_add(delay_ms);
        if due_ms > stage.end_ms() {
            return Err(NotWarmed::TimeUp);
        }
        if self.is_late(now_ms) {
            return Err(NotWarmed::Late);
        }
        Ok(due_ms)
    }

    /// Whether more than half of the time between the planned request and the end of the
    /// lifetime is over.
    pub(super) fn is_late(&self, now_ms: u64) -> bool {
        let delay_ms = delay_ms(self.lifetime_ms).unwrap_or(0);
        let rest_ms = self.lifetime_ms.saturating_sub(delay_ms);
        now_ms.saturating_sub(self.used_ms) > delay_ms.saturating_add(rest_ms / 2)
    }

    /// Whether a request with this usage was answered from the cache.
    pub(super) fn was_read(&self, usage: &Usage) -> bool {
        usage.cache_read >= self.tokens / 2
    }
}

/// Prices of a prompt; `for_hour` is whether the provider caches it for an hour, which costs more.
fn costs(model: &Model, tokens: u64, answer_tokens: u64, for_hour: bool) -> WarmingCosts {
    let priced = |mut usage: Usage| {
        model.price(&mut usage);
        usage.cost.total
    };
    let read_usd = priced(Usage { cache_read: tokens, ..Usage::default() });
    let output_usd =
        priced(Usage { cache_read: tokens, output: answer_tokens, ..Usage::default() }) - read_usd;
    let written = match model.cost.cache_write > 0.0 {
        true => Usage { cache_write: tokens, cache_write_1h: for_hour.then_some(tokens), ..Usage::default() },
        false => Usage { input: tokens, ..Usage::default() },
    };
    WarmingCosts { miss_usd: priced(written) - read_usd, warm_usd: read_usd + output_usd }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const MINUTE: u64 = 60_000;

    fn model(fields: &Value) -> Model {
        let mut value = json!({"id": "m", "provider": "acme", "promptCache": {"short": 300, "long": 3600},
            "cost": {"input": 4, "output": 20, "cacheRead": 0.2, "cacheWrite": 5}});
        value.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        serde_json::from_value(value).unwrap()
    }

    fn usage(read: u64, write: u64) -> Usage {
        Usage { input: 10, output: 500, cache_read: read, cache_write: write, ..Usage::default() }
    }

    #[test]
    fn requests_are_sent_after_nine_tenths_of_the_lifetime() {
        let check = |lifetime_s: u64, expected: Option<u64>| {
            assert_eq!(delay_ms(lifetime_s * 1_000), expected.map(|s| s * 1_000), "{lifetime_s} s");
        };
        check(0, None);
        check(10, None);
        check(11, Some(1));
        check(60, Some(50));
        check(100, Some(90));
        check(300, Some(270));
        check(3600, Some(3240));
    }

    #[test]
    fn lifetimes_are_facts_of_the_model() {
        let check = |fields: Value, long: bool, expected: Option<u64>| {
            assert_eq!(known_lifetime_ms(&model(&fields), long), expected, "{fields}");
        };
        check(json!({}), false, Some(300_000));
        check(json!({}), true, Some(3_600_000));
        check(json!({"compat": {"supportsLongCacheRetention": false}}), true, Some(300_000));
        check(json!({"promptCache": {"long": 60}}), false, None);
        check(json!({"promptCache": null}), false, None);
        let checked = |fields: Value, mode| check_model(&model(&fields), mode, false);
        assert_eq!(checked(json!({}), CacheWarmingMode::Idle), Ok(()));
        assert_eq!(checked(json!({}), CacheWarmingMode::Off), Err(NotWarmed::Off));
        let unknown = Err(NotWarmed::UnknownLifetime);
        assert_eq!(checked(json!({"promptCache": {}}), CacheWarmingMode::Idle), unknown);
        assert_eq!(checked(json!({"provider": "demo"}), CacheWarmingMode::Idle), unknown);
        let brief = json!({"promptCache": {"short": 10}});
        assert_eq!(checked(brief, CacheWarmingMode::Streaming), Err(NotWarmed::ShortLifetime));
    }

    #[test]
    fn costs_are_those_of_reading_and_of_writing_the_prompt() {
        let check = |fields: Value, for_hour: bool, miss: f64, warm: f64| {
            let costs = costs(&model(&fields), 100_000, 16, for_hour);
            assert!((costs.miss_usd - miss).abs() < 1e-9, "{costs:?}");
            assert!((costs.warm_usd - warm).abs() < 1e-9, "{costs:?}");
        };
        check(json!({}), false, 0.48, 0.02 + 0.000_32);
        // Writing for an hour costs twice the input.
        check(json!({}), true, 0.78, 0.02 + 0.000_32);
        let implicit = json!({"cost": {"input": 2, "output": 10, "cacheRead": 0.2, "cacheWrite": 0}});
        check(implicit, false, 0.18, 0.02 + 0.000_16);
        let tiers = json!({"cost": {"input": 4, "output": 20, "cacheRead": 0.2, "cacheWrite": 5, "tiers":
            [{"inputTokensAbove": 50_000, "input": 8, "output": 40, "cacheRead": 0.4, "cacheWrite": 10}]}});
        check(tiers, false, 0.96, 0.04 + 0.000_64);
    }

    #[test]
    fn prompts_of_plans_and_without_a_cache_are_not_kept() {
        let of = |model: &Model, usage: &Usage| {
            CachedPrompt::of(model, false, usage, 1, 0).map(|cached| cached.tokens)
        };
        assert_eq!(of(&model(&json!({})), &usage(7, 5)), Ok(22));
        assert_eq!(of(&model(&json!({})), &usage(0, 0)), Err(NotWarmed::NotCached));
        assert_eq!(of(&model(&json!({"provider": "github-copilot"})), &usage(7, 5)), Err(NotWarmed::Plan));
        let mut on_plan = usage(7, 5);
        on_plan.extra.insert("onPlan".to_owned(), true.into());
        assert_eq!(of(&model(&json!({})), &on_plan), Err(NotWarmed::Plan));
        assert_eq!(of(&model(&json!({"promptCache": {}})), &usage(7, 5)), Err(NotWarmed::UnknownLifetime));
    }

    #[test]
    fn requests_are_sent_while_they_are_worth_it_and_in_time() {
        use CacheWarmingMode::{Idle, Off, Streaming};
        let running = Stage::Running { since_ms: 0 };
        let idle = Stage::Idle { since_ms: 0 };
        let check = |tokens: u64, used: u64, mode, stage, now: u64, expected: Result<u64, NotWarmed>| {
            let cached = CachedPrompt::of(&model(&json!({})), false, &usage(tokens, 0), 1, used).unwrap();
            let next = cached.next_ms(mode, stage, now);
            assert_eq!(next, expected, "{tokens} tokens used at {used}, {mode:?}, {stage:?}, now {now}");
        };
        let delay = 270_000;
        // Running, 11,000 tokens save 0.05 dollars; idle, it takes almost 100,000.
        check(11_000, 0, Idle, running, 0, Ok(delay));
        check(10_000, 0, Idle, running, 0, Err(NotWarmed::NotWorth));
        check(97_000, 0, Idle, idle, 0, Ok(delay));
        check(95_000, 0, Idle, idle, 0, Err(NotWarmed::NotWorth));
        check(97_000, 0, Streaming, running, 0, Ok(delay));
        check(97_000, 0, Streaming, idle, 0, Err(NotWarmed::Idle));
        check(97_000, 0, Off, running, 0, Err(NotWarmed::Off));
        // Limits: an hour of a run, half an hour without one.
        let last = 60 * MINUTE - delay;
        check(97_000, last, Idle, running, last, Ok(60 * MINUTE));
        check(97_000, last + 1, Idle, running, last + 1, Err(NotWarmed::TimeUp));
        let last = 30 * MINUTE - delay;
        check(97_000, last, Idle, idle, last, Ok(30 * MINUTE));
        check(97_000, last + 1, Idle, idle, last + 1, Err(NotWarmed::TimeUp));
        // Half of the last thirty seconds may be over.
        check(97_000, 0, Idle, running, 285_000, Ok(delay));
        check(97_000, 0, Idle, running, 285_001, Err(NotWarmed::Late));
    }

    #[test]
    fn a_request_that_pays_for_the_prompt_again_did_not_keep_it() {
        let cached = CachedPrompt::of(&model(&json!({})), false, &usage(100_000, 0), 1, 0).unwrap();
        let read = [usage(100_000, 0), usage(60_000, 40_000), usage(0, 100_000)].map(|u| cached.was_read(&u));
        assert_eq!(read, [true, true, false]);
    }
}
