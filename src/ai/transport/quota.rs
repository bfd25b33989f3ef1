//! The limits that services report in the headers of their answers, and how much of them is
//! used.
//!
//! | service | headers |
//! |---|---|
//! | Anthropic, keys | `anthropic-ratelimit-requests-limit`, `-remaining`, `-reset`; the same for tokens |
//! | Anthropic, plans | `anthropic-ratelimit-unified-5h-utilization`, `-reset`; the same for `7d` |
//! | OpenAI and services like it | `x-ratelimit-limit-requests`, `x-ratelimit-remaining-requests`, `x-ratelimit-reset-requests` |
//! | ChatGPT | `x-codex-primary-used-percent`, `-window-minutes`, `-reset-after-seconds`; the same for `secondary` |

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};
use reqwest::header::HeaderMap;
use serde::{Deserialize, Serialize};

/// More windows than any service reports.
const MAX_WINDOWS: usize = 16;
/// Longest name of a window.
const MAX_NAME_BYTES: usize = 40;

/// The limits of one provider, as its latest answer reported them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Quota {
    /// When it was reported, in milliseconds since the Unix epoch.
    pub seen_ms: u64,
    /// Sorted by name; never empty.
    pub windows: Vec<QuotaWindow>,
}

/// One limit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QuotaWindow {
    /// `5 h`, `7 d`, `requests`, `tokens`, or as the service names it.
    pub name: String,
    /// Whether it belongs to a plan: a share of a period, without numbers.
    pub is_plan: bool,
    /// The used fraction, 0 to 1; above 1 if the service allows more than the limit.
    pub used: f64,
    /// How much the window allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// How much is left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remaining: Option<u64>,
    /// When all of it is available again, in milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resets_ms: Option<u64>,
}

impl QuotaWindow {
    /// Whether the window has ended since it was reported.
    pub fn is_over(&self, now_ms: u64) -> bool {
        self.resets_ms.is_some_and(|resets_ms| resets_ms <= now_ms)
    }
}

/// The quotas of all providers of a process. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Quotas(Arc<Mutex<BTreeMap<String, Arc<Quota>>>>);

impl Quotas {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Quota>>> {
        // A panic while it was locked cannot have left half a quota.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The latest quota of a provider, if it reports one.
    pub fn get(&self, provider: &str) -> Option<Arc<Quota>> {
        self.lock().get(provider).cloned()
    }

    /// Replaces the quota of a provider, unless a later one is known.
    pub fn set(&self, provider: &str, quota: Quota) {
        let mut quotas = self.lock();
        if quotas.get(provider).is_none_or(|known| known.seen_ms <= quota.seen_ms) {
            quotas.insert(provider.to_owned(), Arc::new(quota));
        }
    }

    /// All of them, by provider.
    pub fn all(&self) -> BTreeMap<String, Arc<Quota>> {
        self.lock().clone()
    }

    /// Reads the headers of a response. One without such headers changes nothing.
    pub(super) fn note(&self, provider: &str, headers: &HeaderMap, now_ms: u64) {
        let windows = read(headers, now_ms);
        if !windows.is_empty() {
            self.set(provider, Quota { seen_ms: now_ms, windows });
        }
    }
}

/// The windows that headers describe, sorted by name.
fn read(headers: &HeaderMap, now_ms: u64) -> Vec<QuotaWindow> {
    let headers = Headers { headers, now_ms };
    let mut windows = Vec::new();
    for name in headers.headers.keys().map(reqwest::header::HeaderName::as_str) {
        let window = if let Some(rest) = name.strip_prefix("anthropic-ratelimit-unified-") {
            rest.strip_suffix("-utilization").and_then(|key| headers.unified(key))
        } else if let Some(rest) = name.strip_prefix("anthropic-ratelimit-") {
            rest.strip_suffix("-limit").and_then(|key| {
                let field = |field: &str| format!("anthropic-ratelimit-{key}-{field}");
                headers.counted(key, &field("limit"), &field("remaining"), &field("reset"))
            })
        } else if let Some(key) = name.strip_prefix("x-ratelimit-limit-") {
            let field = |field: &str| format!("x-ratelimit-{field}-{key}");
            headers.counted(key, name, &field("remaining"), &field("reset"))
        } else if let Some(rest) = name.strip_prefix("x-codex-") {
            rest.strip_suffix("-used-percent").and_then(|key| headers.codex(key))
        } else {
            None
        };
        windows.extend(window.filter(|window| window.name.len() <= MAX_NAME_BYTES));
        if windows.len() == MAX_WINDOWS {
            break;
        }
    }
    windows.sort_by(|a, b| a.name.cmp(&b.name));
    windows
}

struct Headers<'a> {
    headers: &'a HeaderMap,
    now_ms: u64,
}

impl Headers<'_> {
    fn text(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok().map(str::trim)
    }

    fn number(&self, name: &str) -> Option<f64> {
        self.text(name)?.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0)
    }

    fn unified(&self, key: &str) -> Option<QuotaWindow> {
        let used = self.number(&format!("anthropic-ratelimit-unified-{key}-utilization"))?;
        let resets_ms = self.resets_ms(&format!("anthropic-ratelimit-unified-{key}-reset"));
        Some(QuotaWindow { name: spaced(key), is_plan: true, used, limit: None, remaining: None, resets_ms })
    }

    fn counted(&self, key: &str, limit: &str, remaining: &str, reset: &str) -> Option<QuotaWindow> {
        let (limit, remaining) = (self.number(limit)?, self.number(remaining)?);
        if limit < 1.0 {
            return None;
        }
        Some(QuotaWindow {
            name: key.replace(['-', '_'], " "),
            is_plan: false,
            used: ((limit - remaining) / limit).clamp(0.0, 1.0),
            limit: Some(limit as u64),
            remaining: Some(remaining as u64),
            resets_ms: self.resets_ms(reset),
        })
    }

    fn codex(&self, key: &str) -> Option<QuotaWindow> {
        let field = |field: &str| format!("x-codex-{key}-{field}");
        let used = self.number(&field("used-percent"))? / 100.0;
        let minutes = self.number(&field("window-minutes")).unwrap_or_default();
        // The header is there without a window, too.
        if minutes < 1.0 {
            return None;
        }
        let after = self.number(&field("reset-after-seconds")).map(|seconds| self.after(seconds));
        let resets_ms = after.or_else(|| self.resets_ms(&field("reset-at")));
        let name = minutes_name(minutes as u64);
        Some(QuotaWindow { name, is_plan: true, used, limit: None, remaining: None, resets_ms })
    }

    fn after(&self, seconds: f64) -> u64 {
        self.now_ms.saturating_add((seconds * 1e3) as u64)
    }

    /// A time in seconds since the Unix epoch or as RFC 3339, or a delay in seconds or as
    /// `6m0s`.
    fn resets_ms(&self, name: &str) -> Option<u64> {
        /// Smaller numbers are delays: 2001 in seconds since the epoch.
        const FIRST_TIME: f64 = 1e9;
        if let Some(number) = self.number(name) {
            return Some(if number < FIRST_TIME { self.after(number) } else { (number * 1e3) as u64 });
        }
        let text = self.text(name)?;
        if let Ok(time) = text.parse::<Timestamp>() {
            return u64::try_from(time.as_millisecond()).ok();
        }
        let delay: SignedDuration = text.parse().ok()?;
        u64::try_from(delay.as_millis()).ok().map(|delay_ms| self.now_ms.saturating_add(delay_ms))
    }
}

/// `5h` as `5 h`, `7d_sonnet` as `7 d sonnet`.
fn spaced(key: &str) -> String {
    let digits = key.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = key.split_at(digits);
    let unit = unit.replace(['-', '_'], " ");
    if number.is_empty() { unit } else { format!("{number} {unit}") }
}

fn minutes_name(minutes: u64) -> String {
    match minutes {
        minutes if minutes >= 1_440 => format!("{} d", (minutes + 720) / 1_440),
        minutes if minutes >= 60 => format!("{} h", (minutes + 30) / 60),
        minutes => format!("{minutes} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-21T09:00:00Z
    const NOW_MS: u64 = 1_795_251_600_000;

    #[track_caller]
    fn check(headers: &[(&'static str, &str)], expected: &[&str]) {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().unwrap());
        }
        let shown = |window: &QuotaWindow| {
            let resets = window.resets_ms.map(|ms| ms.saturating_sub(NOW_MS) / 1_000);
            let counts = window.limit.map(|limit| format!(" {}/{limit}", window.remaining.unwrap()));
            format!("{}: {:.2}{} in {resets:?}", window.name, window.used, counts.unwrap_or_default())
        };
        let found: Vec<String> = read(&map, NOW_MS).iter().map(shown).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn limits_of_keys_are_counts() {
        check(
            &[
                ("anthropic-ratelimit-requests-limit", "50"),
                ("anthropic-ratelimit-requests-remaining", "49"),
                ("anthropic-ratelimit-requests-reset", "2026-11-21T09:00:30Z"),
                ("anthropic-ratelimit-input-tokens-limit", "40000"),
                ("anthropic-ratelimit-input-tokens-remaining", "10000"),
            ],
            &["input tokens: 0.75 10000/40000 in None", "requests: 0.02 49/50 in Some(30)"],
        );
        check(
            &[
                ("x-ratelimit-limit-requests", "100"),
                ("x-ratelimit-remaining-requests", "50"),
                ("x-ratelimit-reset-requests", "6m0s"),
                ("x-ratelimit-limit-tokens", "1000"),
                ("x-ratelimit-remaining-tokens", "1200"),
                ("x-ratelimit-reset-tokens", "2m59.5s"),
            ],
            &["requests: 0.50 50/100 in Some(360)", "tokens: 0.00 1200/1000 in Some(179)"],
        );
        check(
            &[
                ("x-ratelimit-limit-tokens-minute", "60000"),
                ("x-ratelimit-remaining-tokens-minute", "30000"),
                ("x-ratelimit-reset-tokens-minute", "12.5"),
            ],
            &["tokens minute: 0.50 30000/60000 in Some(12)"],
        );
    }

    #[test]
    fn windows_of_plans_are_shares() {
        check(
            &[
                ("anthropic-ratelimit-unified-status", "allowed"),
                ("anthropic-ratelimit-unified-5h-utilization", "0.37"),
                ("anthropic-ratelimit-unified-5h-reset", "1795255200"),
                ("anthropic-ratelimit-unified-7d-utilization", "1.02"),
            ],
            &["5 h: 0.37 in Some(3600)", "7 d: 1.02 in None"],
        );
        check(
            &[
                ("x-codex-primary-used-percent", "12.5"),
                ("x-codex-primary-window-minutes", "300"),
                ("x-codex-primary-reset-after-seconds", "60"),
                ("x-codex-secondary-used-percent", "80"),
                ("x-codex-secondary-window-minutes", "10080"),
                ("x-codex-secondary-reset-at", "1795255200"),
            ],
            &["5 h: 0.12 in Some(60)", "7 d: 0.80 in Some(3600)"],
        );
    }

    #[test]
    fn headers_that_make_no_sense_are_ignored() {
        check(&[("x-ratelimit-limit-requests", "100"), ("content-type", "text/plain")], &[]);
        check(&[("x-ratelimit-limit-requests", "0"), ("x-ratelimit-remaining-requests", "0")], &[]);
        check(&[("x-ratelimit-limit-a", "NaN"), ("x-ratelimit-remaining-a", "-3")], &[]);
        check(&[("x-codex-primary-used-percent", "3")], &[]);
        check(
            &[
                ("x-ratelimit-limit-requests", "1e300"),
                ("x-ratelimit-remaining-requests", "1"),
                ("x-ratelimit-reset-requests", "soon"),
            ],
            &["requests: 1.00 1/18446744073709551615 in None"],
        );
    }

    #[test]
    fn the_latest_report_counts_and_silence_changes_nothing() {
        let quotas = Quotas::default();
        let at = |used: &str| {
            let mut map = HeaderMap::new();
            map.insert("anthropic-ratelimit-unified-5h-utilization", used.parse().unwrap());
            map
        };
        quotas.note("a", &at("0.5"), 20);
        quotas.note("a", &HeaderMap::new(), 30);
        quotas.note("a", &at("0.1"), 10);
        let quota = quotas.get("a").unwrap();
        assert_eq!((quota.seen_ms, quota.windows[0].used), (20, 0.5));
        assert_eq!(quotas.get("b"), None);
    }
}
