//! Blocking or long-running work on a thread of its own.
//!
//! Not tokio's blocking pool: a thread that hangs in the kernel would occupy one of
//! its slots forever, and the pool panics if the system refuses a thread.

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

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

/// What blocking work is busy with, for a caller that stops waiting for it.
#[derive(Debug, Clone, Default)]
pub struct Progress(Arc<Mutex<PathBuf>>);

impl Progress {
    /// Says that the work is going to read `path`.
    pub fn reads(&self, path: &Path) {
        path.clone_into(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn path(&self) -> PathBuf {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Work took longer than its limit.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {}: the disk did not respond within {} s; check the disk or mount it is on", path.display(), limit.as_secs_f64())]
pub struct Late {
    path: PathBuf,
    limit: Duration,
}

/// Runs `work`, which reads files. If it takes longer than `limit`, `on_late` is called on another thread,
/// which can end the program: this one may hang in the kernel. The work stays on this thread, because
/// it took measurably longer on another. If the system cannot start a thread, there
/// is no limit.
pub fn watched<T>(
    limit: Duration,
    on_late: impl FnOnce(&Late) + Send + 'static,
    work: impl FnOnce(&Progress) -> T,
) -> T {
    let progress = Progress::default();
    let (working, done) = mpsc::channel::<()>();
    let seen = progress.clone();
    let watch = move || {
        if done.recv_timeout(limit) == Err(mpsc::RecvTimeoutError::Timeout) {
            on_late(&Late { path: seen.path(), limit });
        }
    };
    drop(thread::Builder::new().name("watch".to_owned()).spawn(watch));
    let result = work(&progress);
    drop(working);
    result
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
        let outcome = catch_unwind(AssertUnwindSafe(work)).map_err(|panic| panic_message(&*panic));
        // Nothing receives the result of abandoned work.
        drop(done.send(outcome));
    })?;
    match result.await {
        Ok(outcome) => outcome.map_err(WorkError::Panicked),
        Err(_) => Err(WorkError::Panicked("its thread ended".to_owned())),
    }
}

/// What was said when it panicked.
pub(super) fn panic_message(panic: &(dyn Any + Send)) -> String {
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

    #[test]
    fn file_that_is_read_for_too_long_is_named_while_the_work_hangs() {
        let (told, late) = mpsc::channel();
        let on_late = move |late: &Late| told.send(late.to_string()).unwrap();
        let named = watched(Duration::from_millis(20), on_late, |progress| {
            progress.reads(Path::new("/a/settings.json"));
            progress.reads(Path::new("/a/auth.json"));
            late.recv().unwrap()
        });
        let expected = "cannot read /a/auth.json: the disk did not respond within 0.02 s; check the disk or mount it is on";
        assert_eq!(named, expected);
    }

    #[test]
    fn work_that_is_done_in_time_is_not_late() {
        let (told, late) = mpsc::channel::<()>();
        let on_late = move |_: &Late| told.send(()).unwrap();
        assert_eq!(watched(Duration::from_secs(600), on_late, |_| 7), 7);
        // The watch has ended, and nothing was told.
        assert_eq!(late.recv(), Err(mpsc::RecvError));
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
