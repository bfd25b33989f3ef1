//! Processes watched by a pipe that they hold open: it tells what they say, and when the
//! last of them ends. This asks no table of processes, so it works on every Unix.

#![expect(clippy::unwrap_used, reason = "a helper of tests may fail the test")]

use std::fs::File;
use std::io::Read as _;
use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::watch;

use super::files::make_fifo;

/// Far longer than anything takes; only a failure waits so long.
const LIMIT: Duration = Duration::from_secs(30);

/// A named pipe that processes hold open for writing, as `exec 3> NAME` in a shell does
/// for itself and all it starts.
pub(crate) struct Lifeline {
    pipe: watch::Receiver<Pipe>,
}

#[derive(Debug, Default)]
struct Pipe {
    text: String,
    /// Nobody holds it open any more.
    ended: bool,
}

impl Lifeline {
    /// Makes the pipe.
    pub(crate) fn new(path: PathBuf) -> Self {
        make_fifo(&path);
        let (sender, pipe) = watch::channel(Pipe::default());
        std::thread::spawn(move || {
            // Waits for the first process that opens it.
            let mut reader = File::open(path).unwrap();
            let mut chunk = [0; 256];
            loop {
                let n_bytes = reader.read(&mut chunk).unwrap();
                sender.send_modify(|pipe| {
                    pipe.text.push_str(std::str::from_utf8(&chunk[..n_bytes]).unwrap());
                    pipe.ended = n_bytes == 0;
                });
                if n_bytes == 0 {
                    return;
                }
            }
        });
        Self { pipe }
    }

    /// Waits until a line was written to it, and returns the first.
    pub(crate) async fn line(&self) -> String {
        self.wait("a line", |pipe| pipe.text.contains('\n')).await;
        self.pipe.borrow().text.lines().next().unwrap().to_owned()
    }

    /// Waits for the end of the last process that held it open.
    pub(crate) async fn ended(&self) {
        self.wait("the end of all processes", |pipe| pipe.ended).await;
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.pipe.borrow().ended
    }

    async fn wait(&self, what: &str, ready: impl FnMut(&Pipe) -> bool) {
        let mut pipe = self.pipe.clone();
        let waiting = tokio::time::timeout(LIMIT, pipe.wait_for(ready)).await;
        drop(waiting.unwrap_or_else(|_| panic!("waited in vain for {what}")).unwrap());
    }
}
