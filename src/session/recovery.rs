//! Decides what follows a failed run: wait and retry, repair and retry, or
//! give up.
//!
//! Pure: receives the failure, returns the decision. The session task waits, hides the
//! failed message and informs clients; `repair` decides which part of a conversation
//! to remove.

use std::time::Duration;

use crate::ai;
use crate::config::Settings;

/// Limits for retries of failed requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RetryPolicy {
    /// 0 turns retries off.
    pub(super) max_retries: u32,
    pub(super) base_delay: Duration,
    /// Longest wait, whether chosen by pi or requested by the server.
    pub(super) max_delay: Duration,
}

impl RetryPolicy {
    pub(super) fn of(settings: &Settings) -> Self {
        Self {
            max_retries: if settings.retry_enabled { settings.retry_max } else { 0 },
            base_delay: settings.retry_base_delay,
            max_delay: settings.retry_max_delay,
        }
    }
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
    /// The server requested a longer wait than the user accepts
    /// without being asked.
    TooLong { demanded: Duration },
    /// A retry would fail again, or all attempts are used up.
    GiveUp,
}

/// How much of the conversation a repair may remove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Breadth {
    /// The part that the error names.
    Named,
    /// Everything of that kind, because removing the named part did not help.
    All,
}

/// How the next run differs from an ordinary one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Again {
    /// The text that the answer continues.
    pub(super) continue_from: Option<String>,
    pub(super) thinking_off: bool,
}

/// Counts attempts since the last answer that was not an error, or the last message of the user.
#[derive(Debug, Default)]
pub(super) struct Recovery {
    attempts: u32,
    /// The last attempt that was announced, until its end is.
    announced: u32,
    /// Whether the current prompt has had a repair.
    repaired: bool,
    /// Whether a repair was made and no answer has succeeded since.
    unproven: bool,
    no_continuation: bool,
    again: Again,
}

impl Recovery {
    /// Decides about one failure, and counts it. `demanded` is the wait the
    /// server requested.
    pub(super) fn decide(
        &mut self,
        transient: bool,
        demanded: Option<Duration>,
        policy: &RetryPolicy,
    ) -> Next {
        if !transient || self.attempts >= policy.max_retries {
            return Next::GiveUp;
        }
        if let Some(demanded) = demanded.filter(|demanded| *demanded > policy.max_delay) {
            return Next::TooLong { demanded };
        }
        self.attempts += 1;
        self.announced = self.attempts;
        let backoff = backoff(self.attempts, policy);
        Next::Retry {
            attempt: self.attempts,
            delay: demanded.map_or(backoff, |demanded| demanded.max(backoff)),
        }
    }

    /// The extent of a repair; `None` if the current prompt has already had one.
    pub(super) fn may_repair(&self) -> Option<Breadth> {
        let breadth = if self.unproven { Breadth::All } else { Breadth::Named };
        (!self.repaired).then_some(breadth)
    }

    /// Records a repair, and the options of the repeated request.
    pub(super) fn repaired(&mut self, thinking_off: bool, no_continuation: bool) {
        self.repaired = true;
        self.unproven = true;
        self.no_continuation |= no_continuation;
        self.again = Again { continue_from: None, thinking_off: self.again.thinking_off || thinking_off };
    }

    /// Lets the repeated request continue `partial`, if there is one.
    pub(super) fn continue_from(&mut self, partial: Option<String>) {
        self.again.continue_from = partial.filter(|_| !self.no_continuation);
    }

    /// How the next run differs from an ordinary one.
    pub(super) fn again(&mut self) -> Again {
        Again { continue_from: self.again.continue_from.take(), ..self.again }
    }

    /// Resets for a new prompt of the user.
    pub(super) fn prompted(&mut self) {
        self.repaired = false;
        self.again = Again::default();
    }

    /// Lets the attempts begin anew for a request with another message of the user.
    pub(super) fn on_user_message(&mut self) {
        self.attempts = 0;
    }

    /// Resets everything; called for every successful answer. Returns the last attempt
    /// that was announced.
    pub(super) fn answered(&mut self) -> u32 {
        std::mem::take(self).announced
    }

    /// Resets the attempts when retrying is cancelled. Returns the last one that was announced.
    pub(super) fn give_up(&mut self) -> u32 {
        self.again = Again::default();
        self.attempts = 0;
        std::mem::take(&mut self.announced)
    }
}

/// `base_delay * 2^(attempt - 1)`, at most `max_delay`.
fn backoff(attempt: u32, policy: &RetryPolicy) -> Duration {
    let factor = 2_u32.saturating_pow(attempt.saturating_sub(1));
    policy.base_delay.saturating_mul(factor).min(policy.max_delay)
}

/// Message for a server that requested a longer delay than pi accepts.
pub(super) fn too_long(demanded: Duration, most: Duration) -> String {
    format!(
        "pi does not retry: the provider asks for a wait of {}, longer than the limit of {}; \
         send the prompt again after that",
        ai::wait_text(demanded),
        ai::wait_text(most)
    )
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
                    Next::TooLong { demanded } => format!("not for {demanded:?}"),
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
    fn a_longer_wait_that_the_server_demands_is_kept_up_to_the_cap() {
        let failures = [(true, Some(5)), (true, Some(1)), (true, Some(6)), (true, Some(7))];
        check(&failures[..3], &["retry 1 in 5s", "retry 2 in 4s", "retry 3 in 6s"]);
        check(&failures[3..], &["not for 7s"]);
    }

    #[test]
    fn what_will_fail_again_is_not_repeated() {
        check(&[(false, None), (true, None)], &["give up", "retry 1 in 2s"]);
    }

    #[test]
    fn message_of_the_user_has_all_attempts() {
        let (mut recovery, policy) = (Recovery::default(), RetryPolicy::default());
        let attempt = |recovery: &mut Recovery| match recovery.decide(true, None, &policy) {
            Next::Retry { attempt, .. } => Some(attempt),
            Next::TooLong { .. } | Next::GiveUp => None,
        };
        assert_eq!([(); 4].map(|()| attempt(&mut recovery)), [Some(1), Some(2), Some(3), None]);
        recovery.on_user_message();
        assert_eq!(attempt(&mut recovery), Some(1));
        recovery.on_user_message();
        assert_eq!(recovery.answered(), 1, "its end is announced");
        assert_eq!(recovery.give_up(), 0);
    }

    #[test]
    fn one_repair_per_prompt_and_a_broad_one_if_it_did_not_help() {
        let mut recovery = Recovery::default();
        assert_eq!(recovery.may_repair(), Some(Breadth::Named));
        recovery.repaired(true, false);
        assert_eq!(recovery.may_repair(), None);
        assert!(recovery.again().thinking_off);
        recovery.prompted();
        assert_eq!(recovery.may_repair(), Some(Breadth::All));
        assert_eq!(recovery.again(), Again::default());
        recovery.answered();
        assert_eq!(recovery.may_repair(), Some(Breadth::Named));
    }

    #[test]
    fn an_answer_is_continued_once_and_not_where_that_was_refused() {
        let mut recovery = Recovery::default();
        recovery.continue_from(Some("half".to_owned()));
        assert_eq!(recovery.again().continue_from.as_deref(), Some("half"));
        assert_eq!(recovery.again().continue_from, None);
        recovery.repaired(false, true);
        recovery.continue_from(Some("half".to_owned()));
        assert_eq!(recovery.again().continue_from, None);
    }
}
