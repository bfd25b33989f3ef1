//! Keys after one that completes a path wait until it is found, so that they mean the same however fast they are
//! typed.

use std::time::Duration;

use tokio::time::Instant;

/// The longest wait: a folder may be on a disk that hangs.
const LIMIT: Duration = Duration::from_millis(300);

#[derive(Debug, Clone, Copy, Default)]
pub(super) enum InputWait {
    #[default]
    No,
    Until(Instant),
    /// It took too long.
    Over,
}

impl InputWait {
    /// `is_awaited` is whether the path is not found yet.
    pub(super) fn follow(&mut self, is_awaited: bool) {
        *self = match *self {
            _ if !is_awaited => Self::No,
            Self::No => Self::Until(Instant::now() + LIMIT),
            Self::Until(at) if at <= Instant::now() => Self::Over,
            same => same,
        };
    }

    /// Until when keys wait; `None` if they do not.
    pub(super) fn until(self) -> Option<Instant> {
        match self {
            Self::Until(at) => Some(at),
            Self::No | Self::Over => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn keys_wait_for_a_path_but_not_for_ever() {
        let mut wait = InputWait::default();
        wait.follow(false);
        assert!(wait.until().is_none());
        wait.follow(true);
        let until = wait.until().unwrap();
        tokio::time::advance(LIMIT / 2).await;
        wait.follow(true);
        assert_eq!(wait.until(), Some(until));
        tokio::time::advance(LIMIT).await;
        wait.follow(true);
        assert!(wait.until().is_none());
        wait.follow(true);
        assert!(wait.until().is_none(), "the path is still not found");
        wait.follow(false);
        wait.follow(true);
        assert!(wait.until().is_some(), "another one");
    }
}
