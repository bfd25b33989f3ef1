//! Blocking or long-running work on a thread of its own.
//!
//! Not tokio's blocking pool: a thread that hangs in the kernel would occupy one of
//! its slots forever, and the pool panics if the system refuses a thread.

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use tokio::sync::oneshot;

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum WorkError {
    #[error("the system cannot start another thread ({0}); close other programs and try again")]
    NoThread(#[from] io::Error),
    /// With the panic's message.
    #[error("it stopped unexpectedly: {0}")]
    Panicked(String),
}

/// Runs `work` on a thread that starts with the first poll. Dropping the future abandons
/// the thread: it ends with `work`, and the program does not wait for it.
///
/// # Errors
/// If no thread can be started, or `work` panics.
pub async fn run<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, WorkError> {
    run_on(thread::Builder::new().name(name.to_owned()), work).await
}

async fn run_on<T: Send + 'static>(
    thread: thread::Builder,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, WorkError> {
    let (done, result) = oneshot::channel();
    thread.spawn(move || {
        // Values owned by `work` are dropped before its result is visible, so locks are free.
        let outcome = catch_unwind(AssertUnwindSafe(work)).map_err(|panic| message(&*panic));
        // Nothing receives the result of abandoned work.
        drop(done.send(outcome));
    })?;
    match result.await {
        Ok(outcome) => outcome.map_err(WorkError::Panicked),
        Err(_) => Err(WorkError::Panicked("its thread ended".to_owned())),
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no reason given")
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_result_or_a_panic_comes_back() {
        assert_eq!(run("test", || 7).await.unwrap(), 7);
        let error = run("test", || -> u8 { panic!("odd input {}", 1) }).await.unwrap_err();
        assert_eq!(error.to_string(), "it stopped unexpectedly: odd input 1");
    }

    #[tokio::test]
    async fn a_thread_that_cannot_be_started_is_an_error() {
        // More stack than there are addresses.
        let thread = thread::Builder::new().stack_size(1 << 52);
        let error = run_on(thread, || ()).await.unwrap_err();
        assert!(matches!(error, WorkError::NoThread(_)), "{error}");
        assert!(error.to_string().starts_with("the system cannot start another thread"), "{error}");
    }
}
