//! Runtimes of tokio that do not panic if the system refuses threads.

use std::io;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

/// Builds a runtime with `n_workers` threads besides the one that calls.
///
/// Tokio panics if it cannot start a worker, or the first thread of its blocking pool.
/// This function therefore checks first whether enough threads can start, and starts and
/// reserves one thread of the pool: blocking work waits for it if there are no others.
///
/// # Errors
/// If the system refuses a thread or the means to wait for events.
pub fn build(mut builder: Builder, n_workers: usize) -> io::Result<Runtime> {
    const KEPT: Duration = Duration::from_secs(365 * 24 * 60 * 60);
    try_threads(n_workers + 1)?;
    let runtime = builder.thread_keep_alive(KEPT).enable_all().build()?;
    drop(runtime.spawn_blocking(|| ()));
    Ok(runtime)
}

/// Starts that many threads at the same time, and ends them again.
fn try_threads(n_threads: usize) -> io::Result<()> {
    /// They do nothing, and a small stack is made and released sooner.
    const STACK_BYTES: usize = 64 << 10;
    let started: Result<Vec<_>, _> = (0..n_threads)
        .map(|_| {
            let (alive, ended) = mpsc::channel::<()>();
            // The error is expected: the other end is dropped.
            let wait = move || ended.recv().unwrap_or_default();
            let builder = thread::Builder::new().stack_size(STACK_BYTES);
            builder.spawn(wait).map(|thread| (alive, thread))
        })
        .collect();
    for (alive, thread) in started? {
        drop(alive);
        drop(thread.join());
    }
    Ok(())
}
