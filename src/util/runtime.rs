//! Runtimes of tokio that do not panic if the system refuses threads.

use std::cell::Cell;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

use super::worker::panic_message;

thread_local! {
    static IS_STARTING: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread starts those of a runtime. A panic is then an error of [`build`], and no crash.
pub fn is_starting() -> bool {
    IS_STARTING.get()
}

/// Builds a runtime whose threads have been started.
///
/// Tokio panics if it cannot start a worker, or the first thread of its blocking pool. So this function starts
/// and reserves one thread of the pool: blocking work waits for it if there are no others.
///
/// # Errors
/// If the system refuses a thread or the means to wait for events.
pub fn build(mut builder: Builder) -> io::Result<Runtime> {
    const KEPT: Duration = Duration::from_secs(365 * 24 * 60 * 60);
    let runtime = starting(|| builder.thread_keep_alive(KEPT).enable_all().build())??;
    match starting(|| drop(runtime.spawn_blocking(|| ()))) {
        Ok(()) => Ok(runtime),
        Err(refused) => {
            // Dropping it would panic in a task.
            runtime.shutdown_background();
            Err(refused)
        }
    }
}

fn starting<T>(start: impl FnOnce() -> T) -> io::Result<T> {
    IS_STARTING.set(true);
    let started = catch_unwind(AssertUnwindSafe(start));
    IS_STARTING.set(false);
    started.map_err(|panic| io::Error::other(panic_message(&*panic)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread with it cannot be started: it is more than there are addresses.
    const STACK_BYTES: usize = 1 << 52;

    #[test]
    fn a_refused_thread_is_an_error_in_a_task_too() {
        let mut workers = Builder::new_multi_thread();
        workers.worker_threads(1).thread_stack_size(STACK_BYTES);
        let error = build(workers).unwrap_err().to_string();
        // The reason of the system is in it.
        assert!(error.contains("os error"), "{error}");

        let refused = || {
            let mut pool = Builder::new_current_thread();
            pool.thread_stack_size(STACK_BYTES);
            build(pool).unwrap_err();
        };
        refused();
        let runtime = build(Builder::new_current_thread()).unwrap();
        runtime.block_on(async { refused() });
        runtime.block_on(runtime.spawn(async move { refused() })).unwrap();
        assert!(!is_starting());
    }
}
