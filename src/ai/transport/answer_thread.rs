//! A thread that reads answers and sleeps while all of them let their events collect.
//!
//! A reactor wakes its thread for each packet, whether or not anybody wants it yet. A service that sends each
//! token by itself would thus wake it 150 times a second, and each time costs more than reading the token. This
//! thread does not wait in its reactor while every answer rests: what arrives is left to the system, and is read
//! together afterwards.

use std::io;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, Thread};
use std::time::Duration;

use futures_util::{Stream, StreamExt as _, stream};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::util::runtime;

/// How many items of an answer may wait for whom they are for.
const MAX_WAITING: usize = 8;
/// Timers fire with the next full millisecond.
const TIMER_STEP: Duration = Duration::from_millis(1);

/// The thread, which starts with the first answer. Cheap to clone; ends with the last clone and answer.
#[derive(Debug, Clone, Default)]
pub(in crate::ai) struct AnswerThread(Arc<OnceLock<Option<Started>>>);

#[derive(Debug)]
struct Started {
    runtime: Handle,
    sleeper: Sleeper,
    /// Ends the thread when it is dropped.
    _alive: oneshot::Sender<()>,
}

/// The thread while it sleeps.
#[derive(Debug, Clone)]
struct Sleeper {
    thread: Thread,
    answers: Answers,
}

/// What the thread reads.
#[derive(Debug, Clone, Default)]
struct Answers(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    n_answers: usize,
    /// When the rests end that have begun; at most one for each answer.
    rests: Vec<Instant>,
}

/// Lets one answer rest.
#[derive(Debug, Clone)]
pub(in crate::ai) struct Rest(Option<Answers>);

impl Rest {
    /// For an answer that is read by another thread than this module's.
    pub(in crate::ai) fn anywhere() -> Self {
        Self(None)
    }

    /// Returns at `end`. The thread may sleep until then.
    pub(in crate::ai) async fn until(&self, end: Instant) {
        let _resting = self.0.as_ref().map(|answers| Resting::begin(answers, end));
        sleep_until(end).await;
    }
}

struct Resting<'a> {
    answers: &'a Answers,
    end: Instant,
}

impl<'a> Resting<'a> {
    fn begin(answers: &'a Answers, end: Instant) -> Self {
        answers.lock().rests.push(end);
        Self { answers, end }
    }
}

impl Drop for Resting<'_> {
    fn drop(&mut self) {
        let mut state = self.answers.lock();
        if let Some(at) = state.rests.iter().position(|end| *end == self.end) {
            state.rests.swap_remove(at);
        }
    }
}

/// An answer that has not ended.
struct Reading(Answers);

impl Reading {
    fn begin(answers: &Answers) -> Self {
        answers.lock().n_answers += 1;
        Self(answers.clone())
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.0.lock().n_answers -= 1;
    }
}

impl Answers {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Until when all answers rest; `None` if one does not, or there is none.
    fn rest_until(&self) -> Option<Instant> {
        let state = self.lock();
        let all_rest = state.rests.len() == state.n_answers;
        state.rests.iter().min().copied().filter(|end| all_rest && *end > Instant::now())
    }

    /// Called when the thread has nothing to do before something arrives: sleeps as long as all answers rest.
    fn sleep(&self) {
        if let Some(end) = self.rest_until() {
            thread::park_timeout(end.saturating_duration_since(Instant::now()) + TIMER_STEP);
        }
    }
}

impl Sleeper {
    /// Wakes the thread for what its answers have to do.
    fn wake(&self) {
        self.thread.unpark();
    }
}

impl AnswerThread {
    /// The items of `answer`, which the thread polls from the first time that they are asked for. It is dropped
    /// with the stream. The token that `answer` gets is cancelled with `cancel`. If the system refuses a thread,
    /// the answer is polled by whoever asks.
    ///
    /// # Panics
    /// If `answer` does.
    pub(in crate::ai) fn read<T: Send + 'static, S: Stream<Item = T> + Send + 'static>(
        self,
        answer: impl FnOnce(Rest, CancellationToken) -> S + Send + 'static,
        cancel: CancellationToken,
    ) -> impl Stream<Item = T> + Send {
        stream::once(async move {
            match self.started() {
                Some(started) => Elsewhere::begin(&self, started, answer, cancel).into_stream().left_stream(),
                None => answer(Rest::anywhere(), cancel).right_stream(),
            }
        })
        .flatten()
    }

    fn started(&self) -> Option<&Started> {
        self.0.get_or_init(|| Started::new().ok()).as_ref()
    }
}

impl Started {
    fn new() -> io::Result<Self> {
        // The thread before its runtime, which must not be dropped here if the system refuses the thread.
        let (give, runtime) = std::sync::mpsc::channel::<Runtime>();
        let (alive, ended) = oneshot::channel::<()>();
        let thread = thread::Builder::new().name("answers".to_owned()).spawn(move || {
            let Ok(runtime) = runtime.recv() else { return };
            // The error is expected: the other end is dropped.
            runtime.block_on(ended).unwrap_or_default();
            // Resolving a name may hang.
            runtime.shutdown_background();
        })?;
        let answers = Answers::default();
        let mut builder = Builder::new_current_thread();
        let resting = answers.clone();
        builder.on_thread_park(move || resting.sleep());
        let runtime = runtime::build(builder)?;
        let handle = runtime.handle().clone();
        give.send(runtime).map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        let sleeper = Sleeper { thread: thread.thread().clone(), answers };
        Ok(Self { runtime: handle, sleeper, _alive: alive })
    }
}

/// An answer that the thread reads.
struct Elsewhere<T> {
    items: mpsc::Receiver<T>,
    task: JoinHandle<()>,
    sleeper: Sleeper,
    /// Of the caller.
    cancel: CancellationToken,
    /// Of the answer: the thread must have work before it wakes, or it would sleep on.
    cancel_answer: CancellationToken,
    /// Runs as long as there are answers.
    _thread: AnswerThread,
}

impl<T: Send + 'static> Elsewhere<T> {
    fn begin<S: Stream<Item = T> + Send + 'static>(
        thread: &AnswerThread,
        started: &Started,
        answer: impl FnOnce(Rest, CancellationToken) -> S + Send + 'static,
        cancel: CancellationToken,
    ) -> Self {
        let Started { runtime, sleeper, .. } = started;
        let reading = Reading::begin(&sleeper.answers);
        let rest = Rest(Some(sleeper.answers.clone()));
        let cancel_answer = CancellationToken::new();
        let token = cancel_answer.clone();
        let (sender, items) = mpsc::channel(MAX_WAITING);
        let task = runtime.spawn(async move {
            let _reading = reading;
            let mut answer = Box::pin(answer(rest, token));
            while let Some(item) = answer.next().await {
                if sender.send(item).await.is_err() {
                    return;
                }
            }
        });
        sleeper.wake();
        let (sleeper, thread) = (sleeper.clone(), thread.clone());
        Self { items, task, sleeper, cancel, cancel_answer, _thread: thread }
    }

    fn into_stream(self) -> impl Stream<Item = T> + Send {
        stream::unfold(self, async |mut answer| Some((answer.next().await?, answer)))
    }

    async fn next(&mut self) -> Option<T> {
        let item = tokio::select! {
            biased;
            () = self.cancel.cancelled(), if !self.cancel_answer.is_cancelled() => {
                self.cancel_answer.cancel();
                self.sleeper.wake();
                self.items.recv().await
            }
            item = self.items.recv() => item,
        };
        if item.is_none()
            && let Err(error) = (&mut self.task).await
            && let Ok(panic) = error.try_into_panic()
        {
            resume_unwind(panic);
        }
        item
    }
}

impl<T> Drop for Elsewhere<T> {
    fn drop(&mut self) {
        self.task.abort();
        self.sleeper.wake();
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::{TcpListener, TcpStream};
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::io::AsyncReadExt as _;

    use super::*;

    const LONG: Duration = Duration::from_secs(3_600);

    /// Waits until so many answers rest, and perhaps until the thread sleeps.
    fn wait_for_rests(thread: &AnswerThread, n: usize) {
        let answers = &thread.started().unwrap().sleeper.answers;
        while answers.lock().rests.len() < n {
            thread::yield_now();
        }
        (0..20).for_each(|_| thread::yield_now());
    }

    /// An answer of one item, which comes when it is cancelled, and not while it rests.
    fn cancelled(rest: Rest, cancel: CancellationToken) -> impl Stream<Item = &'static str> {
        stream::once(async move {
            tokio::select! {
                () = rest.until(Instant::now() + LONG) => "rested",
                () = cancel.cancelled() => "cancelled",
            }
        })
    }

    #[tokio::test]
    async fn answer_that_is_cancelled_while_all_rest_ends_at_once() {
        let thread = AnswerThread::default();
        for _ in 0..50 {
            let cancel = CancellationToken::new();
            let mut answer = Box::pin(thread.clone().read(cancelled, cancel.clone()));
            let begin = async {
                wait_for_rests(&thread, 1);
                cancel.cancel();
                std::future::pending::<()>().await;
            };
            tokio::select! {
                biased;
                item = answer.next() => assert_eq!(item, Some("cancelled")),
                () = begin => {}
            }
            assert_eq!(answer.next().await, None);
        }
    }

    #[tokio::test]
    async fn answer_is_read_while_another_one_rests_and_goes_with_its_stream() {
        let thread = AnswerThread::default();
        let mut resting = Box::pin(thread.clone().read(cancelled, CancellationToken::new()));
        assert!(futures_util::poll!(resting.next()).is_pending());
        for _ in 0..50 {
            wait_for_rests(&thread, 1);
            let other = thread.clone().read(|_, _| stream::iter([1, 2, 3]), CancellationToken::new());
            assert_eq!(other.collect::<Vec<_>>().await, [1, 2, 3]);
        }
        drop(resting);
        let answers = thread.started().unwrap().sleeper.answers.clone();
        while answers.lock().n_answers > 0 {
            thread::yield_now();
        }
    }

    /// Reads all that arrives on a connection, after a rest that ends when it is cancelled.
    fn read_after_rest(
        address: std::net::SocketAddr,
        n_reads: Arc<AtomicUsize>,
    ) -> impl FnOnce(Rest, CancellationToken) -> futures_util::stream::BoxStream<'static, usize> {
        move |rest, cancel| {
            stream::once(async move {
                let mut connection = tokio::net::TcpStream::connect(address).await.unwrap();
                let reading = tokio::spawn(async move {
                    let (mut bytes, mut n_bytes) = ([0; 4_096], 0);
                    while let Ok(n @ 1..) = connection.read(&mut bytes).await {
                        n_reads.fetch_add(1, Ordering::Relaxed);
                        n_bytes += n;
                    }
                    n_bytes
                });
                tokio::select! {
                    () = rest.until(Instant::now() + LONG) => {}
                    () = cancel.cancelled() => {}
                }
                reading.await.unwrap()
            })
            .boxed()
        }
    }

    #[tokio::test]
    async fn what_arrives_while_all_rest_is_left_to_the_system() {
        const N_PACKETS: usize = 1_000;
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let n_reads = Arc::<AtomicUsize>::default();
        let (thread, cancel) = (AnswerThread::default(), CancellationToken::new());
        let begin = read_after_rest(listener.local_addr().unwrap(), Arc::clone(&n_reads));
        let mut answer = Box::pin(thread.clone().read(begin, cancel.clone()));
        assert!(futures_util::poll!(answer.next()).is_pending());
        let (mut connection, _): (TcpStream, _) = listener.accept().unwrap();
        connection.set_nodelay(true).unwrap();
        wait_for_rests(&thread, 1);
        for _ in 0..N_PACKETS {
            connection.write_all(b"token").unwrap();
            thread::yield_now();
        }
        let n_reads_resting = n_reads.load(Ordering::Relaxed);
        drop(connection);
        cancel.cancel();
        assert_eq!(answer.next().await, Some(5 * N_PACKETS));
        assert!(n_reads_resting < N_PACKETS / 10, "{n_reads_resting}");
    }

    #[tokio::test]
    #[should_panic(expected = "odd answer")]
    async fn panic_of_an_answer_reaches_whoever_reads_it() {
        let panics = |_, _| stream::once(async { panic!("odd answer") });
        let mut answer = Box::pin(AnswerThread::default().read(panics, CancellationToken::new()));
        let item: Option<()> = answer.next().await;
        assert_eq!(item, None);
    }
}
