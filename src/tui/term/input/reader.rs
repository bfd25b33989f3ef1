//! The only thread that reads the terminal.
//!
//! It waits for input without blocking in a read, so it can be
//! paused: every byte then stays for the program that runs
//! meanwhile. Bytes it has read are kept here until they are taken; no byte is lost
//! or read twice.

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::sync::Notify;

/// Enough for typed input; a long paste takes several reads.
const CHUNK: usize = 4_096;

/// Handle of the reading thread; dropping it ends the thread.
#[derive(Debug)]
pub(super) struct Reader {
    shared: Arc<Shared>,
    /// Ends the thread's wait.
    alarm: PipeWriter,
    /// The terminal, never read here.
    terminal: File,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    arrived: Notify,
}

#[derive(Debug, Default)]
struct State {
    bytes: Vec<u8>,
    /// Why no more input will arrive.
    end: Option<io::ErrorKind>,
    is_wanted: bool,
    /// Whether the thread may be touching the terminal.
    is_reading: bool,
    /// Whether the thread takes bytes from the terminal, which are not in `bytes` yet.
    is_taking: bool,
    is_over: bool,
}

impl Shared {
    /// Locks the state, which is valid even after a panic elsewhere.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reader {
    /// Starts to read `terminal`.
    ///
    /// # Errors
    /// If the system has no thread or pipe left.
    pub(super) fn start(terminal: File) -> io::Result<Self> {
        let (wake, alarm) = io::pipe()?;
        let watched = terminal.try_clone()?;
        let shared = Arc::new(Shared::default());
        shared.lock().is_wanted = true;
        let inside = Arc::clone(&shared);
        thread::Builder::new().name("terminal-input".to_owned()).spawn(move || {
            let end = read_all(&inside, terminal, wake);
            let mut state = inside.lock();
            state.is_reading = false;
            state.end = Some(end);
            drop(state);
            inside.changed.notify_all();
            inside.arrived.notify_one();
        })?;
        Ok(Self { shared, alarm, terminal: watched })
    }

    /// The bytes read since the last call; `None` if there are none.
    ///
    /// # Errors
    /// If the terminal is gone and all of its input has been taken.
    pub(super) fn take(&self) -> io::Result<Option<Vec<u8>>> {
        take(&mut self.shared.lock())
    }

    /// Whether the terminal has sent bytes that nobody has taken from here.
    pub(super) fn has_unread(&self) -> bool {
        let mut end = [PollFd::from_borrowed_fd(self.terminal.as_fd(), PollFlags::IN)];
        // Held while the terminal is asked, so that the thread does not take the bytes meanwhile.
        let state = self.shared.lock();
        if state.is_taking || !state.bytes.is_empty() {
            return true;
        }
        poll(&mut end, Some(&Timespec::default())).is_ok()
            && end.iter().any(|end| end.revents().contains(PollFlags::IN))
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.shared.lock().bytes.is_empty()
    }

    /// Waits for bytes. Cancel safe.
    ///
    /// # Errors
    /// If the terminal is gone.
    pub(super) async fn bytes(&self) -> io::Result<Vec<u8>> {
        loop {
            if let Some(bytes) = self.take()? {
                return Ok(bytes);
            }
            self.shared.arrived.notified().await;
        }
    }

    /// Waits for bytes at most `limit`, and blocks.
    ///
    /// # Errors
    /// If the terminal is gone.
    pub(super) fn bytes_within(&self, limit: Duration) -> io::Result<Option<Vec<u8>>> {
        let state = self.shared.lock();
        let waited = self
            .shared
            .changed
            .wait_timeout_while(state, limit, |state| state.bytes.is_empty() && state.end.is_none());
        take(&mut waited.unwrap_or_else(PoisonError::into_inner).0)
    }

    /// Stops reading; returns when the thread no longer accesses the terminal.
    pub(super) fn pause(&mut self) {
        let mut state = self.shared.lock();
        state.is_wanted = false;
        // A full pipe wakes the thread as well.
        drop(self.alarm.write(&[0]));
        while state.is_reading && state.end.is_none() {
            state = self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Resumes reading.
    pub(super) fn resume(&self) {
        let mut state = self.shared.lock();
        if !state.is_wanted {
            state.is_wanted = true;
            self.shared.changed.notify_all();
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.shared.lock().is_over = true;
        self.shared.changed.notify_all();
        drop(self.alarm.write(&[0]));
    }
}

fn take(state: &mut State) -> io::Result<Option<Vec<u8>>> {
    match (state.bytes.is_empty(), state.end) {
        (false, _) => Ok(Some(std::mem::take(&mut state.bytes))),
        (true, None) => Ok(None),
        (true, Some(end)) => Err(end.into()),
    }
}

/// The thread: reads while reading is enabled. Returns why it cannot continue.
fn read_all(shared: &Shared, mut terminal: File, mut wake: PipeReader) -> io::ErrorKind {
    let mut chunk = [0; CHUNK];
    loop {
        if !may_read(shared) {
            return io::ErrorKind::Interrupted;
        }
        let mut ends = [
            PollFd::from_borrowed_fd(terminal.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(wake.as_fd(), PollFlags::IN),
        ];
        match poll(&mut ends, None) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return io::Error::from(error).kind(),
        }
        let [has_input, is_woken] = ends.map(|end| !end.revents().is_empty());
        if is_woken {
            // The content does not matter; check the state again.
            drop(wake.read(&mut [0; 64]));
            continue;
        }
        if !has_input {
            continue;
        }
        shared.lock().is_taking = true;
        let read = terminal.read(&mut chunk);
        let mut state = shared.lock();
        state.is_taking = false;
        match read {
            Ok(0) => return io::ErrorKind::UnexpectedEof,
            Ok(count) => {
                state.bytes.extend(chunk.iter().take(count));
                drop(state);
                shared.changed.notify_all();
                shared.arrived.notify_one();
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => {}
            Err(error) => return error.kind(),
        }
    }
}

/// Waits until reading is enabled; `false` if it never will be again.
fn may_read(shared: &Shared) -> bool {
    let mut state = shared.lock();
    while !state.is_wanted && !state.is_over {
        state.is_reading = false;
        shared.changed.notify_all();
        state = shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
    }
    state.is_reading = !state.is_over;
    !state.is_over
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn reader() -> (Reader, PipeWriter) {
        let (terminal, keys) = io::pipe().unwrap();
        (Reader::start(File::from(OwnedFd::from(terminal))).unwrap(), keys)
    }

    #[test]
    fn what_has_arrived_is_known_until_it_is_taken() {
        let (reader, mut keys) = reader();
        for round in 0..2_000 {
            assert!(!reader.has_unread(), "nothing was typed in round {round}");
            keys.write_all(b"a").unwrap();
            // The thread takes the byte at any moment between these calls.
            for _ in 0..10 {
                assert!(reader.has_unread(), "round {round}");
            }
            assert_eq!(reader.bytes_within(LONG).unwrap().unwrap(), b"a");
        }
    }

    #[test]
    fn what_is_typed_arrives_and_the_end_is_told() {
        let (reader, mut keys) = reader();
        assert_eq!(reader.take().unwrap(), None);
        keys.write_all(b"ab").unwrap();
        assert_eq!(reader.bytes_within(LONG).unwrap().unwrap(), b"ab");
        drop(keys);
        assert_eq!(reader.bytes_within(LONG).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_paused_reader_leaves_the_keys_to_others() {
        let (terminal, mut keys) = io::pipe().unwrap();
        let mut other = terminal.try_clone().unwrap();
        let mut reader = Reader::start(File::from(OwnedFd::from(terminal))).unwrap();
        for round in 0..200_u8 {
            reader.pause();
            keys.write_all(&[round]).unwrap();
            let mut read = [0; 8];
            assert_eq!(other.read(&mut read).unwrap(), 1, "round {round}");
            reader.resume();
            keys.write_all(&[round]).unwrap();
            assert_eq!(reader.bytes_within(LONG).unwrap().unwrap(), [round]);
        }
    }

    #[tokio::test]
    async fn waiting_can_be_given_up_without_loss() {
        let (reader, mut keys) = reader();
        for _ in 0..100 {
            tokio::select! {
                biased;
                bytes = reader.bytes() => panic!("{bytes:?}"),
                () = tokio::task::yield_now() => {}
            }
            keys.write_all(b"x").unwrap();
            assert_eq!(reader.bytes().await.unwrap(), b"x");
        }
    }
}
