//! Signals that ask the program to end.

use std::io;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

use crate::util::process;

/// How long the program may take to end after the first signal.
const LIMIT: Duration = Duration::from_secs(5);

/// SIGTERM, SIGHUP, SIGINT and SIGQUIT, from the moment this is made.
pub(super) struct EndSignals {
    term: Signal,
    hup: Signal,
    int: Signal,
    quit: Signal,
}

impl EndSignals {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            term: signal(SignalKind::terminate())?,
            hup: signal(SignalKind::hangup())?,
            int: signal(SignalKind::interrupt())?,
            quit: signal(SignalKind::quit())?,
        })
    }

    /// The exit code for the next signal: 128 and its number. Loses none when dropped.
    pub(super) async fn next(&mut self) -> u8 {
        tokio::select! {
            _ = self.term.recv() => 143,
            _ = self.hup.recv() => 129,
            _ = self.int.recv() => 130,
            _ = self.quit.recv() => 131,
        }
    }

    /// Forgets the signals of keys that were meant for another program, which had the
    /// terminal: they went to this one as well.
    pub(super) fn forget_keys(&mut self) {
        // Where a new one cannot be had, the old one goes on.
        if let (Ok(int), Ok(quit)) = (signal(SignalKind::interrupt()), signal(SignalKind::quit())) {
            (self.int, self.quit) = (int, quit);
        }
    }
}

/// Returns what resolves to the exit code at the first signal. From then on the process has
/// [`LIMIT`] to end by itself, and ends at once with the second signal.
///
/// The signals have a thread of their own, which also ends a process whose other threads
/// wait in the kernel. It lives as long as the process.
pub(super) fn first_signal() -> impl Future<Output = ExitCode> {
    let (first, received) = oneshot::channel();
    // Without a thread signals do what they do by default: they end the process.
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
    // Nobody may be listening any more: the answer is there and being written.
    first.send(code).unwrap_or_default();
    let code = tokio::time::timeout(LIMIT, signals.next()).await.unwrap_or(code);
    process::kill_all();
    std::process::exit(code.into());
}
