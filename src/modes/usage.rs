//! The output of `pi usage`.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use crate::ai::{Quota, QuotaWindow};
use crate::session::{UsageReport, UsageSum};
use crate::util::clock::Zone;
use crate::util::escapes::without_escapes;
use crate::util::paths;
use crate::util::{counted, grouped};

use super::output::write_out;
use super::table::table;

/// Older reports of limits say when they were made.
const STALE_MS: u64 = 10 * 60_000;

/// What `pi usage` shows.
#[derive(Debug, Clone, Copy)]
pub struct UsageView<'a> {
    pub report: &'a UsageReport,
    /// The limits that providers reported last, by provider.
    pub quotas: &'a BTreeMap<String, Quota>,
    /// Number of days of the report.
    pub days: u64,
    /// Milliseconds since the Unix epoch.
    pub now_ms: u64,
    pub zone: &'a Zone,
}

/// Prints a report; paths are shown with `~` for `home`.
pub fn show_usage(view: &UsageView<'_>, home: Option<&Path>, json: bool) -> ExitCode {
    let UsageView { report, quotas, days, now_ms, zone } = *view;
    if json {
        let mut all = serde_json::to_value(report).unwrap_or_default();
        all["quotas"] = serde_json::to_value(quotas).unwrap_or_default();
        let text = serde_json::to_string_pretty(&all).unwrap_or_default();
        write_out(&(text + "\n"));
        return ExitCode::SUCCESS;
    }
    if report.total.requests == 0 {
        let unit = if days == 1 { "day" } else { "days" };
        write_out(&format!("No requests in the last {days} {unit}.\n{}", limits(quotas, now_ms, zone)));
        return ExitCode::SUCCESS;
    }
    let project = |path: &str| match path {
        "" => "(unknown)".to_owned(),
        path => paths::display(Path::new(path), home),
    };
    let parts = [
        section(if zone.is_utc() { "day (UTC)" } else { "day" }, report.by_day.iter().rev(), str::to_owned),
        section("model", by_cost(&report.by_model), str::to_owned),
        section("project", by_cost(&report.by_project), project),
        totals(report) + &limits(quotas, now_ms, zone),
    ];
    write_out(&parts.join("\n"));
    ExitCode::SUCCESS
}

fn by_cost(sums: &BTreeMap<String, UsageSum>) -> impl Iterator<Item = (&String, &UsageSum)> {
    let mut sums: Vec<_> = sums.iter().collect();
    sums.sort_by(|(_, a), (_, b)| b.cost_usd.total_cmp(&a.cost_usd).then(b.tokens().cmp(&a.tokens())));
    sums.into_iter()
}

fn section<'a>(
    name: &str,
    sums: impl Iterator<Item = (&'a String, &'a UsageSum)>,
    shown: impl Fn(&str) -> String,
) -> String {
    let header = [name, "requests", "input", "cached", "output", "cost"].map(str::to_owned).to_vec();
    let rows = sums.map(|(key, sum)| {
        let input = sum.input.saturating_add(sum.cache_write);
        let cost = if sum.plan_requests == sum.requests { "plan".to_owned() } else { usd(sum.cost_usd) };
        let counts = [sum.requests, input, sum.cache_read, sum.output].map(|count| count.to_string());
        [vec![shown(key)], counts.to_vec(), vec![cost]].concat()
    });
    table(&std::iter::once(header).chain(rows).collect::<Vec<_>>())
}

fn totals(report: &UsageReport) -> String {
    let total = &report.total;
    let mut lines = vec![format!("Total: {}, {}", counted(total.requests, "request"), usd(total.cost_usd))];
    if total.plan_requests > 0 {
        lines.push(format!(
            "On flat-rate plans, without a price: {}",
            counted(total.plan_requests, "request")
        ));
    }
    lines.extend(savings_line(total).map(|line| format!("Cache: {line}")));
    lines.extend(misses_line(total).map(|line| format!("Cache misses: {line}")));
    lines.extend(rate_line(report).map(|line| format!("Rate: {line}")));
    lines.join("\n") + "\n"
}

fn limits(quotas: &BTreeMap<String, Quota>, now_ms: u64, zone: &Zone) -> String {
    let line = |(provider, quota): (&String, &Quota)| {
        format!("Limits of {}: {}\n", without_escapes(provider), quota_line(quota, now_ms, zone))
    };
    quotas.iter().map(line).collect()
}

/// How much of the input came from the cache, and what that saved.
pub(super) fn savings_line(sum: &UsageSum) -> Option<String> {
    let hit = sum.cache_hit().filter(|hit| *hit > 0.0)?;
    let share = format!("{:.0} % of the input tokens", hit * 100.0);
    Some(match sum.cache_savings_usd {
        savings if savings.abs() < 5e-5 => share,
        savings if savings < 0.0 => format!("{share}; writing it cost {} more than it saved", usd(-savings)),
        savings => format!("{share}, saving {}", usd(savings)),
    })
}

/// What was billed again because it was no longer in the cache.
pub(super) fn misses_line(sum: &UsageSum) -> Option<String> {
    let (misses, tokens) = (sum.cache_misses, sum.cache_missed_tokens);
    let costs = match sum.cache_missed_usd {
        dollars if dollars < 5e-5 => String::new(),
        dollars => format!(" for {}", usd(dollars)),
    };
    (misses > 0).then(|| format!("{misses}, with {} tokens billed again{costs}", grouped(tokens)))
}

/// Dollars and tokens per hour of work.
pub(super) fn rate_line(report: &UsageReport) -> Option<String> {
    let (dollars, tokens) = (report.burn_usd_per_hour?, report.burn_tokens_per_hour?);
    let tokens = match tokens {
        few if few < 10_000.0 => format!("{few:.0}"),
        many => format!("{:.0}k", many / 1e3),
    };
    let tokens = format!("{tokens} tokens per hour of work");
    Some(if dollars > 0.0 { format!("{} and {tokens}", usd(dollars)) } else { tokens })
}

/// The windows of a quota on one line: the used share, and when it is available again.
pub(super) fn quota_line(quota: &Quota, now_ms: u64, zone: &Zone) -> String {
    let current: Vec<String> = (quota.windows.iter().filter(|window| !window.is_over(now_ms)))
        .map(|window| window_text(window, now_ms, zone))
        .collect();
    let age = if now_ms.saturating_sub(quota.seen_ms) > STALE_MS {
        format!(" (as of {})", zone.weekday_time(quota.seen_ms))
    } else {
        String::new()
    };
    if current.is_empty() { "all available again".to_owned() } else { current.join(" · ") + &age }
}

fn window_text(window: &QuotaWindow, now_ms: u64, zone: &Zone) -> String {
    let used = match (window.limit, window.remaining) {
        (Some(limit), Some(remaining)) => format!("{remaining} of {limit} left"),
        _ => format!("{:.0} % used", window.used * 100.0),
    };
    let resets = match window.resets_ms {
        // Limits per minute are full again before anybody has read this.
        Some(at) if at.saturating_sub(now_ms) < 90_000 => String::new(),
        Some(at) if at.saturating_sub(now_ms) < 20 * 3_600_000 => {
            format!(", resets {}", zone.time_of_day(at))
        }
        Some(at) if at.saturating_sub(now_ms) < 6 * 86_400_000 => {
            format!(", resets {}", zone.weekday_time(at))
        }
        Some(at) => format!(", resets {}", zone.day(at)),
        None => String::new(),
    };
    format!("{} {used}{resets}", without_escapes(&window.name))
}

/// Dollars with four digits below a cent, otherwise two.
pub(super) fn usd(dollars: f64) -> String {
    let sign = if dollars < 0.0 { "-" } else { "" };
    let amount = dollars.abs();
    if amount > 0.0 && amount < 0.01 { format!("{sign}${amount:.4}") } else { format!("{sign}${amount:.2}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_say_what_is_left_and_until_when() {
        const NOW_MS: u64 = 1_795_251_600_000; // Saturday, 2026-11-21T09:00:00Z
        let window = |name: &str, used: f64, limit: Option<u64>, resets_min: Option<u64>| QuotaWindow {
            name: name.to_owned(),
            is_plan: limit.is_none(),
            used,
            limit,
            remaining: limit.map(|limit| limit / 2),
            resets_ms: resets_min.map(|minutes| NOW_MS + minutes * 60_000),
        };
        let check = |windows: Vec<QuotaWindow>, later_ms: u64, expected: &str| {
            let quota = Quota { seen_ms: NOW_MS, windows };
            assert_eq!(quota_line(&quota, NOW_MS + later_ms, &Zone::utc()), expected);
        };
        let plan = || vec![window("5 h", 0.37, None, Some(90)), window("7 d", 0.8, None, Some(4_320))];
        check(plan(), 0, "5 h 37 % used, resets 10:30 · 7 d 80 % used, resets Tue 09:00");
        check(plan(), 3 * 3_600_000, "7 d 80 % used, resets Tue 09:00 (as of Sat 09:00)");
        check(plan(), 9 * 86_400_000, "all available again");
        check(vec![window("requests", 0.5, Some(50), Some(1))], 0, "requests 25 of 50 left");
        check(vec![window("7 d", 1.04, None, Some(9_000))], 0, "7 d 104 % used, resets 2026-11-27");
    }
}
