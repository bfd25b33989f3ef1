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
