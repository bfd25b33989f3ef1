//! Detects that a server has fallen silent, even if the machine slept.

use std::pin::pin;
use std::time::Duration;

use tokio::time::Instant;

use crate::util::clock::Clock;

/// Interval at which the wall clock is checked. Timers stop while a machine
/// sleeps, so a dead connection is detected at most this long after waking up.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// Returns after `limit` by the timer or by the wall clock; never returns without a
/// limit. Each call starts anew.
pub(in crate::ai) async fn silence(limit: Option<Duration>, clock: &Clock) {
    let Some(limit) = limit else { return std::future::pending().await };
    let begun_ms = clock.now_ms();
    let end = Instant::now() + limit;
    loop {
        tokio::time::sleep_until(end.min(Instant::now() + LOOK_AGAIN)).await;
        let by_wall = Duration::from_millis(clock.now_ms().saturating_sub(begun_ms));
        if Instant::now() >= end || by_wall >= limit {
            return;
        }
    }
}

/// How long a connection may take to bring what arrived while pi was stopped.
pub(in crate::ai) const AFTER_A_STOP: Duration = Duration::from_millis(50);

/// The output of `future`, or `None` if it takes longer than `limit`. After a time in which pi was
/// stopped, timers end before connections have run, so the future gets another turn.
pub(in crate::ai) async fn in_time<T>(future: impl Future<Output = T>, limit: Duration) -> Option<T> {
    let mut future = pin!(future);
    if let Ok(output) = tokio::time::timeout(limit, &mut future).await {
        return Some(output);
    }
    tokio::time::timeout(AFTER_A_STOP, future).await.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(300);

    #[tokio::test(start_paused = true)]
    async fn silence_is_measured_by_the_timer() {
        let begun = Instant::now();
        silence(Some(LIMIT), &Clock::manual(0)).await;
        assert_eq!(begun.elapsed(), LIMIT);
        silence(Some(Duration::from_millis(30)), &Clock::manual(0)).await;
        assert_eq!(begun.elapsed(), LIMIT + Duration::from_millis(30));
    }

    #[tokio::test(start_paused = true)]
    async fn a_machine_that_slept_notices_soon_after_waking_up() {
        let clock = Clock::manual(1_000);
        let begun = Instant::now();
        let sleeping = async {
            tokio::time::sleep(Duration::from_secs(25)).await;
            // The timers stopped, the wall clock did not.
            clock.advance(Duration::from_secs(3_600));
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = silence(Some(LIMIT), &clock) => {}
            () = sleeping => {}
        }
        assert_eq!(begun.elapsed(), Duration::from_secs(30));
    }

    #[tokio::test(start_paused = true)]
    async fn a_short_jump_is_no_silence_and_no_limit_waits_for_ever() {
        let clock = Clock::manual(1_000);
        let begun = Instant::now();
        let set = async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            clock.advance(Duration::from_secs(200));
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = silence(Some(LIMIT), &clock) => {}
            () = set => {}
        }
        assert_eq!(begun.elapsed(), LIMIT);
        let waited = tokio::time::timeout(LIMIT * 100, silence(None, &clock)).await;
        assert!(waited.is_err());
    }
}
