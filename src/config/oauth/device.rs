//! Polls until the user has entered a code elsewhere (RFC 8628, section 3.5).

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::SignInError;

/// The interval if the service does not specify one.
pub(super) const DEFAULT_INTERVAL: Duration = Duration::from_secs(5);
/// The increase of the interval after `slow_down`.
const SLOWER: Duration = Duration::from_secs(5);
/// Limits for intervals requested by a service.
const INTERVALS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// Maximum lifetime of a code, regardless of the service.
const LIFE_LIMIT: Duration = Duration::from_secs(60 * 60);

/// The result of one poll.
pub(super) enum Poll<T> {
    Done(T),
    Pending,
    /// Pending, with the new interval if the service specifies one.
    SlowDown(Option<Duration>),
}

/// The interval and duration of polling.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    pub(super) interval: Duration,
    pub(super) expires_in: Duration,
}

/// Polls until the answer arrives, waiting before each poll. If a service is
/// temporarily unreachable, polling continues more slowly.
///
/// # Errors
/// [`SignInError::Expired`] when time has run out; otherwise the error of `ask`.
pub(super) async fn poll<T, F>(pace: Pace, ask: impl Fn() -> F) -> Result<T, SignInError>
where
    F: Future<Output = Result<Poll<T>, SignInError>>,
{
    let deadline = Instant::now() + pace.expires_in.min(LIFE_LIMIT);
    let clamp = |interval: Duration| interval.clamp(INTERVALS.0, INTERVALS.1);
    let mut interval = clamp(pace.interval);
    loop {
        if Instant::now() + interval > deadline {
            return Err(SignInError::Expired);
        }
        sleep(interval).await;
        match ask().await {
            Ok(Poll::Done(done)) => return Ok(done),
            Ok(Poll::Pending) => {}
            Ok(Poll::SlowDown(demanded)) => {
                interval = clamp(demanded.unwrap_or_default().max(interval + SLOWER));
            }
            Err(SignInError::Unreachable { .. }) => interval = clamp(interval + SLOWER),
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// The seconds at which polls happen, and the result.
    async fn asked(interval: u64, expires_in: u64, answers: &[&str]) -> (Vec<u64>, String) {
        let pace =
            Pace { interval: Duration::from_secs(interval), expires_in: Duration::from_secs(expires_in) };
        let start = Instant::now();
        let at = RefCell::new(Vec::new());
        let ended = poll(pace, || async {
            at.borrow_mut().push(start.elapsed().as_secs());
            match answers.get(at.borrow().len() - 1).copied() {
                Some("slow") => Ok(Poll::SlowDown(None)),
                Some("slower") => Ok(Poll::SlowDown(Some(Duration::from_secs(20)))),
                Some("lost") => Err(SignInError::Unreachable { reason: "lost".to_owned() }),
                Some("denied") => Err(SignInError::Denied),
                Some("done") => Ok(Poll::Done(())),
                _ => Ok(Poll::Pending),
            }
        })
        .await;
        (at.into_inner(), ended.map_or_else(|error| error.to_string(), |()| "done".to_owned()))
    }

    #[tokio::test(start_paused = true)]
    async fn it_waits_first_and_slows_down_when_told() {
        assert_eq!(asked(5, 900, &["wait", "done"]).await, (vec![5, 10], "done".to_owned()));
        assert_eq!(asked(5, 900, &["slow", "wait", "done"]).await.0, [5, 15, 25]);
        assert_eq!(asked(5, 900, &["slower", "wait", "done"]).await.0, [5, 25, 45]);
        assert_eq!(asked(0, 900, &["done"]).await.0, [1]);
    }

    #[tokio::test(start_paused = true)]
    async fn it_ends_when_the_code_does_and_when_it_is_refused() {
        let (at, ended) = asked(5, 14, &[]).await;
        assert_eq!((at, ended), (vec![5, 10], "the sign-in expired; start again".to_owned()));
        let (at, ended) = asked(5, 900, &["wait", "denied"]).await;
        assert_eq!((at, ended), (vec![5, 10], "the sign-in was declined".to_owned()));
    }

    #[tokio::test(start_paused = true)]
    async fn an_absurd_life_or_interval_is_cut() {
        let (at, ended) = asked(u64::MAX, u64::MAX, &[]).await;
        assert_eq!((at.len(), ended.as_str()), (60, "the sign-in expired; start again"));
        assert_eq!(asked(5, u64::MAX, &["done"]).await, (vec![5], "done".to_owned()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_lost_connection_is_not_the_end() {
        assert_eq!(asked(5, 900, &["lost", "done"]).await, (vec![5, 15], "done".to_owned()));
    }
}
