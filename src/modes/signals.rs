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

/// Ends the process if a signal asks for that while a terminal that does not read holds up the thread that
/// draws. `write` names the write in progress, and `restore` gives back what can be given back without writing.
#[expect(clippy::exit, reason = "the way out when nothing else answers any more")]
pub(super) async fn end_if_write_blocks(write: impl Fn() -> Option<u64>, restore: impl FnOnce()) {
    let Ok(mut signals) = EndSignals::new() else { return };
    let code = loop {
        let code = signals.next_request().await;
        if is_write_blocked(&write).await {
            break code;
        }
    };
    process::kill_all();
    restore();
    std::process::exit(code.into());
}

/// Whether one write lasts longer than [`WRITE_LIMIT`].
async fn is_write_blocked(write: &impl Fn() -> Option<u64>) -> bool {
    for _ in 0..LOOKS {
        let before = write();
        tokio::time::sleep(WRITE_LIMIT).await;
        if before.is_some() && write() == before {
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

    #[tokio::test(start_paused = true)]
    async fn only_a_write_that_lasts_too_long_is_blocked() {
        let looks = Cell::new(0);
        let sequence = |writes: &'static [Option<u64>]| {
            looks.set(0);
            let looks = &looks;
            move || {
                looks.set(looks.get() + 1);
                writes.get(looks.get() - 1).copied().flatten()
            }
        };
        assert!(is_write_blocked(&sequence(&[Some(3), Some(3)])).await);
        // The last write, which restores the terminal.
        assert!(is_write_blocked(&sequence(&[None, Some(5), Some(5), Some(5)])).await);
        assert!(!is_write_blocked(&sequence(&[Some(3), Some(5), Some(7), None])).await);
        assert!(!is_write_blocked(&sequence(&[])).await);
        assert_eq!(looks.get(), LOOKS);
    }
}
