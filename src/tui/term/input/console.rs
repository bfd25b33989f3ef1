//! The input of a console on Windows.
//!
//! A thread waits for crossterm's events, in short turns, so that it can be paused. The console
//! answers no questions in its input: what it is comes from the environment.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crossterm::event::{self, Event};
use ratatui::layout::{Position, Size};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::super::answers::{Questions, TerminalAnswers};
use super::{InputEvent, ScreenReport, normalize};

/// How long a pause may have to wait.
const TURN: Duration = Duration::from_millis(50);

/// Reads the terminal's input. At most one may exist.
#[derive(Debug, Default)]
pub struct InputBroker {
    reader: Option<Reader>,
    /// Events that were not returned yet.
    ready: VecDeque<InputEvent>,
    answers: TerminalAnswers,
}

#[derive(Debug)]
struct Reader {
    events: UnboundedReceiver<io::Result<Event>>,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    is_wanted: bool,
    /// Whether the thread may be touching the console.
    is_reading: bool,
    is_over: bool,
}

impl InputBroker {
    /// A broker that is not reading yet; the first [`Self::next`] starts it. The console sends
    /// keys whole, so that an Escape need not wait.
    pub fn new(_escape_wait: Duration, _erase_byte: Option<u8>) -> Self {
        Self::default()
    }

    /// The next event. Cancel safe: an event is either returned or kept.
    ///
    /// # Errors
    /// If the console is gone.
    pub async fn next(&mut self) -> io::Result<InputEvent> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(event);
            }
            let event = self.read()?.events.recv().await;
            let event = event.unwrap_or_else(|| Err(io::ErrorKind::UnexpectedEof.into()))?;
            self.ready.extend(normalize(event));
        }
    }

    /// The event after the one that [`Self::next`] just returned, if it has already arrived,
    /// so that input typed at once is shown at once.
    pub fn next_arrived(&mut self) -> Option<InputEvent> {
        while self.ready.is_empty() {
            let Ok(Ok(event)) = self.reader.as_mut()?.events.try_recv() else { break };
            self.ready.extend(normalize(event));
        }
        self.ready.pop_front()
    }

    /// Stops reading, so that another program can read; the next [`Self::next`] starts
    /// again. After it returns, every key goes to the other program.
    pub fn pause(&mut self) {
        if let Some(reader) = &self.reader {
            reader.shared.pause();
        }
    }

    /// The cursor position, `None` if the console does not know, and the size.
    pub fn ask_screen(&mut self) -> ScreenReport {
        let cursor = crossterm::cursor::position().ok().map(|(x, y)| Position::new(x, y));
        ScreenReport { cursor, size: self.size() }
    }

    /// The console does not report its size in its input.
    pub fn reports_size(&self) -> bool {
        false
    }

    /// The console does not report sizes.
    pub fn sizes_around_frame(&mut self) -> Option<(Size, Size)> {
        None
    }

    /// The console answers no questions.
    pub fn ask_with_cursor(&mut self, _questions: Questions) {}

    /// What the terminal has said so far: nothing.
    pub fn answers(&mut self) -> &TerminalAnswers {
        &self.answers
    }

    /// The size of the terminal; `None` if it is unknown or zero.
    pub fn size(&self) -> Option<Size> {
        let (width, height) = crossterm::terminal::size().ok()?;
        (width > 0 && height > 0).then(|| Size::new(width, height))
    }

    /// Ensures that the thread is running and reads.
    fn read(&mut self) -> io::Result<&mut Reader> {
        let reader = match self.reader.take() {
            Some(reader) => reader,
            None => Reader::start()?,
        };
        reader.shared.resume();
        Ok(self.reader.insert(reader))
    }
}

impl Reader {
    fn start() -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let (sender, events) = unbounded_channel();
        let inside = Arc::clone(&shared);
        thread::Builder::new().name("terminal-input".to_owned()).spawn(move || read_all(&inside, &sender))?;
        Ok(Self { events, shared })
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.shared.lock().is_over = true;
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn resume(&self) {
        self.lock().is_wanted = true;
        self.changed.notify_all();
    }

    fn pause(&self) {
        let mut state = self.lock();
        state.is_wanted = false;
        while state.is_reading {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits until reading is enabled; `false` if it never will be again.
    fn may_read(&self) -> bool {
        let mut state = self.lock();
        while !state.is_wanted && !state.is_over {
            state.is_reading = false;
            self.changed.notify_all();
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.is_reading = !state.is_over;
        if state.is_over {
            self.changed.notify_all();
        }
        !state.is_over
    }
}

/// The thread: reads while reading is enabled, until the console or the broker is gone.
fn read_all(shared: &Shared, events: &UnboundedSender<io::Result<Event>>) {
    while shared.may_read() {
        let read = match event::poll(TURN) {
            Ok(false) => continue,
            Ok(true) => event::read(),
            Err(error) => Err(error),
        };
        let is_last = read.is_err();
        if events.send(read).is_err() || is_last {
            break;
        }
    }
    shared.lock().is_reading = false;
    shared.changed.notify_all();
}
