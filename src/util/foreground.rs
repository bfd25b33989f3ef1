//! Runs the future of a front end on its own thread, with timers of its own.
//!
//! The timers of a runtime with workers belong to one of these: setting a timer may wake it, so do the places in
//! its wheel that a distant timer passes, and when the time has come, it has to wake this thread.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use tokio::runtime::Runtime;
use tokio::time::Instant;

thread_local! {
    /// While the thread is in [`block_on`]: when to poll the future again at the latest.
    static NEXT_ALARM: Cell<Option<Alarm>> = const { Cell::new(None) };
}

#[derive(Debug, Clone, Copy)]
enum Alarm {
    Never,
    At(Instant),
}

/// Wakes the thread that runs the future.
struct Bell {
    thread: Thread,
    /// Whether the future has to be polled; what the future does may use up the permit of [`Thread::unpark`].
    has_rung: AtomicBool,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.has_rung.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

impl Bell {
    /// Returns when the future has to be polled again.
    fn wait(&self, alarm: Alarm) {
        while !self.has_rung.swap(false, Ordering::Acquire) {
            match alarm {
                Alarm::Never => thread::park(),
                Alarm::At(at) => match at.saturating_duration_since(Instant::now()) {
                    left if left.is_zero() => return,
                    left => thread::park_timeout(left),
                },
            }
        }
    }
}

/// Runs `future` on this thread and returns its output. It can use what belongs to `runtime`.
pub fn block_on<F: Future>(runtime: &Runtime, future: F) -> F::Output {
    let _context = runtime.enter();
    let bell = Arc::new(Bell { thread: thread::current(), has_rung: AtomicBool::new(false) });
    let waker = Waker::from(Arc::clone(&bell));
    let mut future = pin!(future);
    loop {
        NEXT_ALARM.set(Some(Alarm::Never));
        let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
        let alarm = NEXT_ALARM.take().unwrap_or(Alarm::Never);
        match polled {
            Poll::Ready(output) => return output,
            Poll::Pending => bell.wait(alarm),
        }
    }
}

/// Returns at `at`, at once if that is over. In [`block_on`] without a timer of the runtime, so that whatever awaits
/// it must poll it whenever the whole future is polled, as `select!` does; elsewhere like
/// [`tokio::time::sleep_until`].
pub async fn sleep_until(at: Instant) {
    if NEXT_ALARM.get().is_none() {
        return tokio::time::sleep_until(at).await;
    }
    poll_fn(|_| {
        if Instant::now() >= at {
            return Poll::Ready(());
        }
        let next = match NEXT_ALARM.get() {
            Some(Alarm::At(other)) => other.min(at),
            Some(Alarm::Never) | None => at,
        };
        NEXT_ALARM.set(Some(Alarm::At(next)));
        Poll::Pending
    })
    .await;
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::runtime::Builder;
    use tokio::sync::mpsc;

    use super::*;

    const LONG: Duration = Duration::from_secs(3_600);

    fn runtime() -> Runtime {
        Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
    }

    #[test]
    fn earliest_alarm_and_messages_of_other_threads_wake_the_thread() {
        let runtime = runtime();
        let begun = Instant::now();
        let woken_by = block_on(&runtime, async {
            let (sender, mut receiver) = mpsc::channel(1);
            let short = begun + Duration::from_millis(1);
            tokio::select! {
                _ = receiver.recv() => panic!("nothing was sent"),
                () = sleep_until(begun + LONG) => panic!("too late"),
                () = sleep_until(short) => assert!(Instant::now() >= short),
            }
            tokio::spawn(async move { sender.send("message").await });
            tokio::select! {
                message = receiver.recv() => message,
                () = sleep_until(begun + LONG) => None,
            }
        });
        assert_eq!(woken_by, Some("message"));
        assert!(begun.elapsed() < LONG);
    }

    /// Blocking on another channel may use up the permit that wakes the thread.
    #[test]
    fn message_that_arrives_while_the_thread_blocks_is_not_missed() {
        let received = block_on(&runtime(), async {
            let (sender, mut receiver) = mpsc::channel(1);
            let (done, sent) = std::sync::mpsc::channel();
            let mut is_first = true;
            poll_fn(|cx| {
                let polled = receiver.poll_recv(cx);
                if std::mem::take(&mut is_first) {
                    let (sender, done) = (sender.clone(), done.clone());
                    tokio::spawn(async move {
                        sender.send(7).await.unwrap();
                        done.send(()).unwrap();
                    });
                    sent.recv().unwrap();
                    // Uses up the permit if waiting for the other thread did not.
                    thread::park_timeout(Duration::ZERO);
                }
                polled
            })
            .await
        });
        assert_eq!(received, Some(7));
    }

    #[tokio::test(start_paused = true)]
    async fn elsewhere_the_time_is_that_of_the_runtime() {
        let begun = Instant::now();
        sleep_until(begun + LONG).await;
        assert_eq!(begun.elapsed(), LONG);
    }
}
