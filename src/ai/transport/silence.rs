//! Notices that a server has fallen silent, also while the machine slept.

use std::time::Duration;

use tokio::time::Instant;

use crate::util::clock::Clock;

/// How often the wall clock is looked at. Timers stand still while a machine
/// sleeps, so after waking up it is this long, at most, until a dead connection
/// is given up.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// Returns when `limit` has passed, by the timer or by the wall clock; never,
/// without one. Begins anew with each call.
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
            // The timers stood still, the wall clock did not.
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
