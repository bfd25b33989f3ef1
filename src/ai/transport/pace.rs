//! Lets the events of an answer collect while they trickle.
//!
//! Every batch wakes the tasks of reader, loop, session and front end. A service that sends each token by
//! itself would wake them more often than any screen is drawn. The end of an answer that trickles is known up to
//! one interval late.

use std::time::Duration;

use tokio::time::Instant;

/// The time between two batches of a trickle. Text that grows more often looks no smoother.
const INTERVAL: Duration = Duration::from_millis(60);
/// Batches that need no time between them, so that a short answer is passed on at once.
const MAX_CREDIT: u32 = 8;
/// What arrives in larger pieces has collected already.
const SMALL_BYTES: usize = 1 << 10;

/// Decides when the next events of an answer are passed on.
#[derive(Debug)]
pub(in crate::ai) struct Pace {
    /// Batches that need no time before them.
    credit: u32,
    /// When the last credit was given.
    given: Instant,
}

impl Pace {
    pub(in crate::ai) fn new(now: Instant) -> Self {
        Self { credit: MAX_CREDIT, given: now }
    }

    /// Until when nothing that arrives would be passed on; `None` if it would be at once. Only what comes in
    /// larger pieces, or ends the answer, would not have to wait.
    pub(in crate::ai) fn collects_until(&self, now: Instant) -> Option<Instant> {
        let end = self.given + INTERVAL;
        (self.credit == 0 && now < end).then_some(end)
    }

    /// When to pass on what begins with a piece of `n_bytes` that was read at `now`; `None` for at once.
    pub(in crate::ai) fn pass_on_at(&mut self, n_bytes: usize, now: Instant) -> Option<Instant> {
        if n_bytes >= SMALL_BYTES {
            return None;
        }
        self.give_credit(now);
        if self.credit > 0 {
            self.credit -= 1;
            return None;
        }
        // The credit of that time is used by the batch.
        self.given += INTERVAL;
        Some(self.given)
    }

    /// Records that what collected is passed on at `now`.
    pub(in crate::ai) fn on_collected(&mut self, now: Instant) {
        self.give_credit(now);
        self.credit = self.credit.saturating_sub(1);
    }

    fn give_credit(&mut self, now: Instant) {
        while self.credit < MAX_CREDIT && now >= self.given + INTERVAL {
            self.credit += 1;
            self.given += INTERVAL;
        }
        if self.credit == MAX_CREDIT {
            self.given = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The times, in milliseconds, at which `n` pieces of `n_bytes` are passed on that arrive every
    /// `every_ms`.
    fn batches(n: u64, every_ms: u64, n_bytes: usize) -> Vec<u64> {
        let begun = Instant::now();
        let mut pace = Pace::new(begun);
        let mut n_arrived = 0;
        let mut times = Vec::new();
        while n_arrived < n {
            let now_ms = n_arrived * every_ms;
            let now = begun + Duration::from_millis(now_ms);
            let at = pace.pass_on_at(n_bytes, now).map_or(now_ms, |at| (at - begun).as_millis() as u64);
            // What arrives until then is passed on together.
            n_arrived = (at / every_ms + 1).max(n_arrived + 1);
            times.push(at);
        }
        times
    }

    #[test]
    fn a_trickle_is_passed_on_17_times_a_second() {
        // 150 tokens a second for ten seconds.
        let times = batches(1_500, 7, 150);
        assert!((175..195).contains(&times.len()), "{}", times.len());
        assert_eq!(times[..4], [0, 7, 14, 21]);
        let longest = times.windows(2).map(|pair| pair[1] - pair[0]).max();
        assert_eq!(longest, Some(60));
    }

    #[test]
    fn short_answers_slow_answers_and_large_pieces_do_not_wait() {
        assert_eq!(batches(8, 1, 150), [0, 1, 2, 3, 4, 5, 6, 7]);
        let slow: Vec<u64> = (0..100).map(|n| n * 70).collect();
        assert_eq!(batches(100, 70, 150), slow);
        let large: Vec<u64> = (0..100).collect();
        assert_eq!(batches(100, 1, 4_096), large);
    }

    #[test]
    fn an_answer_that_paused_is_passed_on_at_once() {
        let begun = Instant::now();
        let mut pace = Pace::new(begun);
        let at = |ms| begun + Duration::from_millis(ms);
        let waits = (0..20).filter(|ms| pace.pass_on_at(10, at(*ms)).is_some()).count();
        assert!(waits > 0);
        assert_eq!(pace.pass_on_at(10, at(60_000)), None);
        let n_free = (0..20).take_while(|_| pace.pass_on_at(10, at(60_000)).is_none()).count();
        assert_eq!(n_free, MAX_CREDIT as usize - 1);
    }
}
