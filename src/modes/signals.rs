//! Termination signals.

use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::sync::oneshot;

use crate::util::process;

pub(super) use crate::util::os::EndSignals;

/// Maximum time for the program to end after the first signal.
const LIMIT: Duration = Duration::from_secs(5);

/// Returns a future with the exit code of the first signal. From then on the process has
/// [`LIMIT`] to end by itself, and ends at once with the second signal.
///
/// A separate thread handles the signals, so that it can end a process whose other threads
/// are blocked in the kernel. It lives as long as the process.
pub(super) fn first_signal() -> impl Future<Output = ExitCode> {
    let (first, received) = oneshot::channel();
    // Without a thread, signals keep their default action and end the process.
    let started = thread::Builder::new().name("signals".to_owned()).spawn(move || {
        let Ok(runtime) = Builder::new_current_thread().enable_all().build() else { return };
        runtime.block_on(watch(first));
    });
    drop(started);
    async move {
        match received.await {
            Ok(code) => ExitCode::from(code),
            Err(_) => std::future::pending().await,
        }
    }
}

/// How long a write to the terminal may take once a signal has asked the process to end.
const WRITE_LIMIT: Duration = Duration::from_secs(2);
/// How often that is looked at after a signal: the write that restores the terminal comes later.
const LOOKS: usize = 5;
/// After so many looks, the thread that draws must have noticed the signal.
const LOOKS_TO_NOTICE: usize = 3;

/// What the thread that draws does, for others.
pub(super) trait Progress {
    /// The number of the write to the terminal that is in progress.
    fn write(&self) -> Option<u64>;
    /// How often the thread has looked at what is to be done.
    fn turns(&self) -> u64;
}

/// Ends the process if a signal asks for that while the thread that draws cannot: a terminal that does not read
/// holds up a write of it, or it is stuck in its work. `restore` gives the terminal back without that thread.
#[expect(clippy::exit, reason = "the way out when nothing else answers any more")]
pub(super) async fn end_if_stuck(progress: impl Progress, restore: impl FnOnce()) {
    let Ok(mut signals) = EndSignals::new() else { return };
    let code = loop {
        let code = signals.next_request().await;
        if is_stuck(&progress).await {
            break code;
        }
    };
    process::kill_all();
    restore();
    std::process::exit(code.into());
}

/// How long a program that quits waits for a terminal that does not read.
const QUIT_LIMIT: Duration = Duration::from_secs(1);

/// Ends the process if one write to the terminal lasts longer than [`QUIT_LIMIT`]: the user has quit, and
/// nobody reads the rest. `restore` gives the terminal back without the thread that writes.
#[expect(clippy::exit, reason = "the way out when nothing else answers any more")]
pub(super) async fn quit_if_stuck(progress: impl Progress, restore: impl FnOnce()) {
    until_stuck(&progress).await;
    process::kill_all();
    restore();
    std::process::exit(0);
}

async fn until_stuck(progress: &impl Progress) {
    loop {
        let before = progress.write();
        tokio::time::sleep(QUIT_LIMIT).await;
        if before.is_some() && progress.write() == before {
            return;
        }
    }
}

/// Whether one write lasts longer than [`WRITE_LIMIT`], or the thread does not notice the signal.
async fn is_stuck(progress: &impl Progress) -> bool {
    let turns = progress.turns();
    for look in 1..=LOOKS {
        let before = progress.write();
        tokio::time::sleep(WRITE_LIMIT).await;
        let is_unnoticed = look == LOOKS_TO_NOTICE && progress.turns() == turns;
        if is_unnoticed || before.is_some() && progress.write() == before {
            return true;
        }
    }
    false
}

#[expect(clippy::exit, reason = "the way out when nothing else answers any more")]
async fn watch(first: oneshot::Sender<u8>) {
    let Ok(mut signals) = EndSignals::new() else { return };
    let code = signals.next().await;
    // The receiver may be gone: the answer is complete and being printed.
    first.send(code).unwrap_or_default();
    let code = tokio::time::timeout(LIMIT, signals.next()).await.unwrap_or(code);
    process::kill_all();
    std::process::exit(code.into());
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// What each look sees.
    struct Looks {
        writes: Vec<Option<u64>>,
        turns: fn(usize) -> u64,
        n_looks: Cell<usize>,
    }

    impl Progress for Looks {
        fn write(&self) -> Option<u64> {
            self.n_looks.set(self.n_looks.get() + 1);
            self.writes.get(self.n_looks.get() - 1).copied().flatten()
        }

        fn turns(&self) -> u64 {
            (self.turns)(self.n_looks.get())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_write_that_lasts_too_long_or_a_signal_that_is_not_noticed_is_the_end() {
        let looks = |writes: &[Option<u64>], turns: fn(usize) -> u64| Looks {
            writes: writes.to_vec(),
            turns,
            n_looks: Cell::new(0),
        };
        let busy: fn(usize) -> u64 = |n_looks| u64::from(n_looks > 0);
        assert!(is_stuck(&looks(&[Some(3), Some(3)], busy)).await);
        // The last write, which restores the terminal.
        assert!(is_stuck(&looks(&[None, Some(5), Some(5), Some(5)], busy)).await);
        assert!(!is_stuck(&looks(&[Some(3), Some(5), Some(7), None], busy)).await);
        let idle = looks(&[], busy);
        assert!(!is_stuck(&idle).await);
        assert_eq!(idle.n_looks.get(), LOOKS);
        let quits = looks(&[None, Some(5), Some(6), Some(7), Some(7)], busy);
        until_stuck(&quits).await;
        assert_eq!(quits.n_looks.get(), 5, "a write that goes on is waited for");
        let started = tokio::time::Instant::now();
        assert!(is_stuck(&looks(&[], |_| 7)).await);
        assert_eq!(started.elapsed(), WRITE_LIMIT * 3);
    }
}
