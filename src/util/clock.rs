//! The only reader of time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Returns the time; cheap to clone. `tokio::time` is for sleeping.
#[derive(Debug, Clone)]
pub struct Clock(Source);

#[derive(Debug, Clone)]
enum Source {
    System { start: Instant },
    Manual { now_ms: Arc<AtomicU64> },
}

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "this is where the program reads the time")]
    pub fn system() -> Self {
        Self(Source::System { start: Instant::now() })
    }

    /// A clock for tests that stands at `now_ms` until [`Self::advance`] moves it.
    pub fn manual(now_ms: u64) -> Self {
        Self(Source::Manual { now_ms: Arc::new(AtomicU64::new(now_ms)) })
    }

    /// Milliseconds since the Unix epoch.
    #[expect(clippy::disallowed_methods, reason = "this is where the program reads the time")]
    pub fn now_ms(&self) -> u64 {
        match &self.0 {
            Source::System { .. } => {
                let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX)
            }
            Source::Manual { now_ms } => now_ms.load(Ordering::Relaxed),
        }
    }

    /// Time since a fixed moment; never decreases.
    pub fn monotonic(&self) -> Duration {
        match &self.0 {
            Source::System { start } => start.elapsed(),
            Source::Manual { now_ms } => Duration::from_millis(now_ms.load(Ordering::Relaxed)),
        }
    }

    /// Advances a manual clock; has no effect on a system clock.
    pub fn advance(&self, by: Duration) {
        if let Source::Manual { now_ms } = &self.0 {
            now_ms.fetch_add(u64::try_from(by.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
        }
    }
}

/// `ms` since the Unix epoch as ISO 8601 in UTC with milliseconds, as session
/// files write it: `2026-11-21T09:23:47.280Z`.
pub fn iso8601(ms: u64) -> String {
    let ms = i64::try_from(ms).unwrap_or(i64::MAX);
    match jiff::Timestamp::from_millisecond(ms) {
        Ok(timestamp) => format!("{timestamp:.3}"),
        Err(_) => "9999-12-31T23:59:59.999Z".to_owned(),
    }
}

/// Milliseconds since the Unix epoch of an ISO 8601 timestamp.
pub fn parse_iso8601(text: &str) -> Option<u64> {
    let timestamp: jiff::Timestamp = text.parse().ok()?;
    u64::try_from(timestamp.as_millisecond()).ok()
}

/// `ns` since the Unix epoch as RFC 3339 in UTC with nanoseconds.
pub fn rfc3339_nanos(ns: u64) -> String {
    match jiff::Timestamp::from_nanosecond(i128::from(ns)) {
        Ok(timestamp) => format!("{timestamp:.9}"),
        Err(_) => "9999-12-31T23:59:59.999999999Z".to_owned(),
    }
}

/// Nanoseconds since the Unix epoch of an RFC 3339 timestamp; `None` before the epoch.
pub fn parse_rfc3339_nanos(text: &str) -> Option<u64> {
    let timestamp: jiff::Timestamp = text.parse().ok()?;
    u64::try_from(timestamp.as_nanosecond()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_written_as_the_original_writes_them() {
        assert_eq!(iso8601(1_795_253_027_280), "2026-11-21T09:23:47.280Z");
        assert_eq!(parse_iso8601("2026-11-21T09:23:47.280Z"), Some(1_795_253_027_280));
        assert_eq!(parse_iso8601("yesterday"), None);
    }
}
