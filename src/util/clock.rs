//! The only reader of time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, Zoned};

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

    /// The zone of this machine; UTC for a clock for tests.
    pub fn zone(&self) -> Zone {
        match &self.0 {
            Source::System { .. } => Zone::system(),
            Source::Manual { .. } => Zone::utc(),
        }
    }

    /// Advances a manual clock; has no effect on a system clock.
    pub fn advance(&self, by: Duration) {
        if let Source::Manual { now_ms } = &self.0 {
            now_ms.fetch_add(u64::try_from(by.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
        }
    }
}

/// A time zone, for days and times that people read.
#[derive(Debug, Clone)]
pub struct Zone(TimeZone);

impl Zone {
    /// That of this machine: `TZ`, otherwise the system's; UTC if neither is known.
    pub fn system() -> Self {
        Self(TimeZone::system())
    }

    pub fn utc() -> Self {
        Self(TimeZone::UTC)
    }

    /// A zone that is always `hours` ahead of UTC, from -23 to 23.
    pub fn fixed(hours: i8) -> Self {
        Self(TimeZone::fixed(jiff::tz::offset(hours.clamp(-23, 23))))
    }

    /// Whether nothing is known about the zone, so that days and times are those of UTC.
    pub fn is_utc(&self) -> bool {
        self.0.is_unknown() || self.0 == TimeZone::UTC
    }

    fn local(&self, ms: u64) -> Zoned {
        let ms = i64::try_from(ms).unwrap_or(i64::MAX);
        Timestamp::from_millisecond(ms).unwrap_or(Timestamp::MAX).to_zoned(self.0.clone())
    }

    /// The day of `ms` since the Unix epoch, as `2026-11-21`.
    pub fn day(&self, ms: u64) -> String {
        self.local(ms).date().to_string()
    }

    /// `2026-11-21 09:23:47`
    pub fn time(&self, ms: u64) -> String {
        self.local(ms).strftime("%Y-%m-%d %H:%M:%S").to_string()
    }

    /// `09:23`
    pub fn time_of_day(&self, ms: u64) -> String {
        self.local(ms).strftime("%H:%M").to_string()
    }

    /// `Sat 09:23`
    pub fn weekday_time(&self, ms: u64) -> String {
        self.local(ms).strftime("%a %H:%M").to_string()
    }

    /// The start of the day that began `days` before that of `ms`, in milliseconds since the
    /// Unix epoch.
    pub fn day_start(&self, ms: u64, days: u64) -> u64 {
        let local = self.local(ms);
        // More than any date is ago.
        let days = i32::try_from(days).unwrap_or(i32::MAX).min(7_000_000);
        let day = local.date().checked_sub(Span::new().days(days));
        let start = day.and_then(|day| day.to_zoned(self.0.clone()));
        start.map_or(0, |start| u64::try_from(start.timestamp().as_millisecond()).unwrap_or(0))
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

    #[test]
    fn days_begin_at_midnight_of_the_zone() {
        const LATE_MS: u64 = 1_795_303_800_000; // 2026-11-21T23:30:00Z
        let check = |zone: Zone, day: &str, start: &str, week_ago: &str| {
            assert_eq!(zone.day(LATE_MS), day);
            assert_eq!(iso8601(zone.day_start(LATE_MS, 0)), start);
            assert_eq!(iso8601(zone.day_start(LATE_MS, 6)), week_ago);
        };
        check(Zone::utc(), "2026-11-21", "2026-11-21T00:00:00.000Z", "2026-11-15T00:00:00.000Z");
        check(Zone::fixed(2), "2026-11-22", "2026-11-21T22:00:00.000Z", "2026-11-15T22:00:00.000Z");
        check(Zone::fixed(-8), "2026-11-21", "2026-11-21T08:00:00.000Z", "2026-11-15T08:00:00.000Z");
        assert_eq!(Zone::fixed(2).time(LATE_MS), "2026-11-22 01:30:00");
        assert_eq!(Zone::fixed(2).weekday_time(LATE_MS), "Sun 01:30");
        // No time makes it panic.
        for ms in [0, u64::MAX, 253_402_300_799_999] {
            let zone = Zone::fixed(-8);
            let (_, _, start) = (zone.day(ms), zone.time(ms), zone.day_start(ms, u64::MAX));
            assert_eq!(start, 0);
        }
    }
}
