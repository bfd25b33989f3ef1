//! The token counts of an answer while they arrive.
//!
//! Services report counts several times, and gateways fill them with zeros or with the
//! counts of a part. A count that cannot be true never replaces a better one.

use serde_json::value::RawValue;

use crate::ai::messages::Usage;

/// No request or answer has more tokens.
const MAX_TOKENS: u64 = 1_000_000_000;
/// No answer costs more dollars.
const MAX_COST_USD: f64 = 100_000.0;
/// Most bytes of text that one token stands for. Rows of blanks reach a hundred.
const MAX_BYTES_PER_TOKEN: u64 = 200;

/// No token stands for so many bytes of text.
const SURELY_MORE_BYTES: u64 = 1_000;

/// A request with less text may well have few tokens, or none that a service counts.
const LONG_BYTES: u64 = 20_000;
/// Bytes of text per token in an estimate.
const BYTES_PER_TOKEN: u64 = 4;

/// The counts so far.
#[derive(Debug, Clone, Default)]
pub(super) struct UsageCount {
    usage: Usage,
    /// Those of earlier requests for the same answer.
    earlier: Usage,
    /// Bytes of text in the request.
    sent_bytes: u64,
}

impl UsageCount {
    /// Counts for a request with this many bytes of text.
    pub(super) fn new(sent_bytes: usize) -> Self {
        Self { sent_bytes: sent_bytes as u64, ..Self::default() }
    }

    /// The counts so far, from which those of a partial report are made.
    pub(super) fn so_far(&self) -> Usage {
        self.usage.clone()
    }

    /// Takes over the counts of `report`, which are totals, except those that cannot be true.
    /// A `total_tokens` of 0 means that the report has none.
    pub(super) fn update(&mut self, report: Usage) {
        let report = sane(report);
        let old = &self.usage;
        let keeps_prompt = !self.is_plausible(&report) && old.prompt_tokens() > report.prompt_tokens();
        let keeps_output = report.output == 0 && old.output > 0;
        let mut new = report.clone();
        if keeps_prompt {
            new.input = old.input;
            new.cache_read = old.cache_read;
            new.cache_write = old.cache_write;
            new.cache_write_1h = old.cache_write_1h;
        }
        if keeps_output {
            new.output = old.output;
        }
        new.reasoning = match (report.reasoning, old.reasoning) {
            (None | Some(0), Some(known)) => Some(known),
            (reported, _) => reported,
        };
        if new.cost.total_from_provider.is_none() {
            new.cost = old.cost.clone();
        }
        if keeps_prompt || keeps_output || new.total_tokens == 0 {
            new.total_tokens = new.prompt_tokens().saturating_add(new.output);
        }
        self.usage = new;
    }

    /// Counts another request for the same answer.
    pub(super) fn start_next(&mut self) {
        let usage = std::mem::take(&mut self.usage);
        self.earlier = sum(&self.earlier, usage);
    }

    /// The final counts. If the service counts an answer but hardly anything of a long request, an
    /// estimate replaces the count, because the session plans with it.
    pub(super) fn finish(mut self) -> Usage {
        let prompt_tokens = self.usage.prompt_tokens();
        let lacks_prompt =
            self.usage.output > 0 && prompt_tokens.saturating_mul(SURELY_MORE_BYTES) < self.sent_bytes;
        if lacks_prompt && self.sent_bytes >= LONG_BYTES {
            let cached = prompt_tokens.saturating_sub(self.usage.input);
            self.usage.input = (self.sent_bytes / BYTES_PER_TOKEN).saturating_sub(cached);
            self.usage.total_tokens = self.usage.prompt_tokens().saturating_add(self.usage.output);
        }
        if self.earlier.total_tokens == 0 { self.usage } else { sum(&self.earlier, self.usage) }
    }

    /// Whether the text of the request can be so few tokens.
    fn is_plausible(&self, usage: &Usage) -> bool {
        let tokens = usage.prompt_tokens();
        tokens > 0 && tokens.saturating_mul(MAX_BYTES_PER_TOKEN) >= self.sent_bytes
    }
}

/// The counts of both; the rest is that of `usage`.
fn sum(earlier: &Usage, mut usage: Usage) -> Usage {
    let add = |one: Option<u64>, other: Option<u64>| match (one, other) {
        (None, other) => other,
        (Some(one), other) => Some(one.saturating_add(other.unwrap_or(0))),
    };
    usage.input = usage.input.saturating_add(earlier.input);
    usage.output = usage.output.saturating_add(earlier.output);
    usage.cache_read = usage.cache_read.saturating_add(earlier.cache_read);
    usage.cache_write = usage.cache_write.saturating_add(earlier.cache_write);
    usage.total_tokens = usage.total_tokens.saturating_add(earlier.total_tokens);
    usage.cache_write_1h = add(earlier.cache_write_1h, usage.cache_write_1h);
    usage.reasoning = add(earlier.reasoning, usage.reasoning);
    usage
}

/// `usage` without counts and costs that are out of any range.
fn sane(mut usage: Usage) -> Usage {
    let counts = [
        &mut usage.input,
        &mut usage.output,
        &mut usage.cache_read,
        &mut usage.cache_write,
        &mut usage.total_tokens,
    ];
    for count in counts {
        if *count > MAX_TOKENS {
            *count = 0;
        }
    }
    for count in [&mut usage.reasoning, &mut usage.cache_write_1h] {
        *count = count.filter(|count| *count <= MAX_TOKENS);
    }
    usage
}

/// The dollars that the service billed for the answer; `None` if it names none, or an impossible
/// amount.
///
/// `upstream` is what the provider behind a router bills to the user's own key.
pub(super) fn billed_cost(cost: Option<&RawValue>, upstream: Option<f64>) -> Option<f64> {
    let is_possible = |cost: &f64| (0.0..=MAX_COST_USD).contains(cost);
    let cost = cost?.get().trim_matches('"').parse::<f64>().ok().filter(is_possible)?;
    Some(cost + upstream.filter(is_possible).unwrap_or(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(input: u64, cache_read: u64, output: u64) -> Usage {
        Usage { input, cache_read, output, ..Usage::default() }
    }

    #[track_caller]
    fn check(sent_bytes: usize, reports: &[Usage], expected: (u64, u64, u64, u64)) {
        let mut count = UsageCount::new(sent_bytes);
        for report in reports {
            count.update(report.clone());
        }
        let found = count.finish();
        assert_eq!((found.input, found.cache_read, found.output, found.total_tokens), expected);
    }

    #[test]
    fn impossible_counts_replace_no_better_ones() {
        let real = usage(40_000, 0, 1);
        check(150_000, &[real.clone(), usage(0, 0, 50)], (40_000, 0, 50, 40_050));
        check(150_000, &[real.clone(), usage(5, 0, 50)], (40_000, 0, 50, 40_050));
        check(150_000, &[real.clone(), usage(u64::MAX, 0, 50)], (40_000, 0, 50, 40_050));
        check(150_000, &[real.clone(), usage(30_000, 0, 0)], (30_000, 0, 1, 30_001));
        check(150_000, &[real, usage(100, 39_900, 7)], (100, 39_900, 7, 40_007));
        check(150_000, &[usage(0, 0, 1), usage(41_000, 0, 9)], (41_000, 0, 9, 41_009));
        check(100, &[usage(400, 0, 1), usage(25, 0, 2)], (25, 0, 2, 27));
    }

    #[test]
    fn an_estimate_replaces_an_impossible_count() {
        check(150_000, &[usage(0, 0, 9)], (37_500, 0, 9, 37_509));
        check(150_000, &[usage(3, 0, 9)], (37_500, 0, 9, 37_509));
        check(150_000, &[usage(200, 0, 9)], (200, 0, 9, 209));
        check(150_000, &[], (0, 0, 0, 0));
        check(10_000, &[usage(0, 0, 9)], (0, 0, 9, 9));
    }

    #[test]
    fn impossible_costs_are_ignored() {
        let check = |cost: &str, upstream: Option<f64>, expected: Option<f64>| {
            let raw = RawValue::from_string(cost.to_owned()).unwrap();
            assert_eq!(billed_cost(Some(&raw), upstream), expected, "{cost}");
        };
        check("0.5", None, Some(0.5));
        check("\"0.5\"", Some(0.25), Some(0.75));
        check("0.5", Some(-3.0), Some(0.5));
        check("0", None, Some(0.0));
        for cost in ["-1000", "1e308", "{}", "null", "\"NaN\"", "\"inf\""] {
            check(cost, None, None);
        }
    }
}
