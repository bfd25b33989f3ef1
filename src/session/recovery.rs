//! Decides what follows a failed run: wait and repeat, or give up.
//!
//! Pure: takes what happened, returns what to do. Waiting, hiding the failed
//! message and telling clients are the business of the session task.

use std::time::Duration;

/// How often and how patiently failed requests are repeated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RetryPolicy {
    /// 0 turns repeating off.
    pub(super) max_retries: u32,
    pub(super) base_delay: Duration,
    pub(super) max_delay: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { max_retries: 3, base_delay: Duration::from_secs(2), max_delay: Duration::from_secs(60) }
    }
}

/// What the session does after a failed run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Next {
    /// Repeat the request after `delay`. `attempt` counts from 1.
    Retry { attempt: u32, delay: Duration },
    /// It would fail again, or all attempts are spent.
    GiveUp,
}

/// Counts attempts since the last answer that was not an error.
#[derive(Debug, Default)]
pub(super) struct Recovery {
    attempts: u32,
}

impl Recovery {
    /// Decides about one failure, and counts it. `demanded` is the wait the
    /// server asked for.
    pub(super) fn decide(
        &mut self,
        transient: bool,
        demanded: Option<Duration>,
        policy: &RetryPolicy,
    ) -> Next {
        if !transient || self.attempts >= policy.max_retries {
            return Next::GiveUp;
        }
        self.attempts += 1;
        let backoff = backoff(self.attempts, policy);
        Next::Retry {
            attempt: self.attempts,
            delay: demanded.map_or(backoff, |demanded| demanded.max(backoff)),
        }
    }

    /// Forgets earlier failures; called for every answer that is not an error, and
    /// when repeating is given up. Returns how many attempts it took.
    pub(super) fn reset(&mut self) -> u32 {
        std::mem::take(&mut self.attempts)
    }
}

/// `base_delay * 2^(attempt - 1)`, at most `max_delay`.
fn backoff(attempt: u32, policy: &RetryPolicy) -> Duration {
    let factor = 2_u32.saturating_pow(attempt.saturating_sub(1));
    policy.base_delay.saturating_mul(factor).min(policy.max_delay)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(failures: &[(bool, Option<u64>)], expected: &[&str]) {
        let policy = RetryPolicy { max_delay: Duration::from_secs(6), ..RetryPolicy::default() };
        let mut recovery = Recovery::default();
        let decided: Vec<String> = failures
            .iter()
            .map(|(transient, demanded)| {
                match recovery.decide(*transient, demanded.map(Duration::from_secs), &policy) {
                    Next::Retry { attempt, delay } => format!("retry {attempt} in {delay:?}"),
                    Next::GiveUp => "give up".to_owned(),
                }
            })
            .collect();
        assert_eq!(decided, expected);
    }

    #[test]
    fn doubles_the_wait_up_to_the_cap_then_gives_up() {
        let expected = ["retry 1 in 2s", "retry 2 in 4s", "retry 3 in 6s", "give up"];
        check(&[(true, None); 4], &expected);
    }

    #[test]
    fn a_longer_wait_that_the_server_demands_is_kept() {
        check(&[(true, Some(20)), (true, Some(1))], &["retry 1 in 20s", "retry 2 in 4s"]);
    }

    #[test]
    fn what_will_fail_again_is_not_repeated() {
        check(&[(false, None), (true, None)], &["give up", "retry 1 in 2s"]);
    }
}
