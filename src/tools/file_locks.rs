//! Serialises calls that change the same file; calls on other files run in parallel.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::Poll;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::agent::ToolError;
use crate::util::worker;

use super::path::{FoundPath, WrittenPath};

/// The files being changed, by path with links resolved.
/// Clones share them.
#[derive(Debug, Clone, Default)]
pub struct FileLocks(Arc<Rows>);

#[derive(Debug, Default)]
struct Rows {
    files: Mutex<HashMap<PathBuf, Weak<Semaphore>>>,
    /// The numbers of places whose queue is not known yet.
    arriving: watch::Sender<BTreeSet<u64>>,
}

/// A place in the queue for one file.
#[derive(Debug)]
pub struct Place {
    written: WrittenPath,
    arrival: Arrival,
}

/// The right to change one file, until dropped. The writing task must own it,
/// so that the next one cannot start while abandoned work still writes.
#[derive(Debug)]
pub struct FileGuard(
    #[expect(dead_code, reason = "dropping the permit lets the next one in")] Option<OwnedSemaphorePermit>,
);

impl FileLocks {
    /// Reserves the next place in the queue for a file to write. Places are served in the
    /// order of these calls, regardless of the order of awaiting.
    pub(super) fn register(&self, written: WrittenPath) -> Place {
        let mut number = 0;
        self.0.arriving.send_modify(|arriving| {
            number = arriving.last().map_or(0, |last| last + 1);
            arriving.insert(number);
        });
        Place { written, arrival: Arrival { rows: Arc::clone(&self.0), number } }
    }
}

impl Place {
    /// Finds the file and waits for its turn. Dropping it, or this future, releases the place.
    ///
    /// The path is resolved on another thread, because the disk may not respond. Until
    /// then, later places wait, because they may be for the same file.
    ///
    /// # Errors
    /// If the system cannot start a thread.
    pub(super) async fn wait(self) -> Result<(FoundPath, FileGuard), ToolError> {
        let Self { written, arrival } = self;
        let resolving = worker::run("resolve-path", move || {
            let found = written.find_target();
            let key = real_path(&found.path);
            (found, key)
        });
        let (found, key) = resolving.await.map_err(|error| ToolError(format!("The tool failed: {error}")))?;
        arrival.turn().await;
        let mut permit = Box::pin(arrival.rows.row(key).acquire_owned());
        // The first poll enters the semaphore's own queue.
        let first = std::future::poll_fn(|cx| Poll::Ready(permit.as_mut().poll(cx))).await;
        drop(arrival);
        let guard = match first {
            Poll::Ready(permit) => FileGuard(permit.ok()),
            Poll::Pending => FileGuard(permit.await.ok()),
        };
        Ok((found, guard))
    }
}

impl Rows {
    fn row(&self, key: PathBuf) -> Arc<Semaphore> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.retain(|_, semaphore| semaphore.strong_count() > 0);
        let existing = files.get(&key).and_then(Weak::upgrade);
        existing.unwrap_or_else(|| {
            let semaphore = Arc::new(Semaphore::new(1));
            files.insert(key, Arc::downgrade(&semaphore));
            semaphore
        })
    }
}

/// A place whose queue is not known yet, while this value lives.
#[derive(Debug)]
struct Arrival {
    rows: Arc<Rows>,
    number: u64,
}

impl Arrival {
    /// Waits until all earlier calls have arrived or were cancelled.
    async fn turn(&self) {
        let mut arriving = self.rows.arriving.subscribe();
        // The sender is a field of this value, so there is no error.
        drop(arriving.wait_for(|arriving| arriving.first().is_none_or(|first| *first >= self.number)).await);
    }
}

impl Drop for Arrival {
    fn drop(&mut self) {
        self.rows.arriving.send_modify(|arriving| {
            arriving.remove(&self.number);
        });
    }
}

/// `path` with links resolved, as far as the path exists.
fn real_path(path: &Path) -> PathBuf {
    if let Ok(real) = fs::canonicalize(path) {
        return real;
    }
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => real_path(parent).join(name),
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(path: &Path) -> WrittenPath {
        WrittenPath::new(path.to_str().unwrap(), Path::new("/"), None)
    }

    #[tokio::test]
    async fn places_are_served_in_the_order_of_registration() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let locks = FileLocks::default();
        let (first, second, third) =
            (locks.register(written(&path)), locks.register(written(&path)), locks.register(written(&path)));
        let served = Arc::new(Mutex::new(Vec::new()));
        let serve = |n: u32, place: Place| {
            let served = Arc::clone(&served);
            async move {
                let guard = place.wait().await.unwrap();
                served.lock().unwrap().push(n);
                tokio::task::yield_now().await;
                drop(guard);
            }
        };
        tokio::join!(serve(3, third), serve(2, second), serve(1, first));
        assert_eq!(*served.lock().unwrap(), [1, 2, 3]);
    }

    #[tokio::test]
    async fn a_released_place_blocks_no_call() {
        let locks = FileLocks::default();
        let path = Path::new("/nonexistent/a");
        let (first, second, third) =
            (locks.register(written(path)), locks.register(written(path)), locks.register(written(path)));
        drop(second);
        drop(first.wait().await.unwrap());
        drop(third.wait().await.unwrap());
    }

    #[tokio::test]
    async fn a_place_given_up_does_not_let_later_ones_pass_earlier_ones() {
        let locks = FileLocks::default();
        let path = Path::new("/nonexistent/a");
        let (first, second, third) =
            (locks.register(written(path)), locks.register(written(path)), locks.register(written(path)));
        drop(second);
        let served = Mutex::new(Vec::new());
        let serve = async |n: u32, place: Place| {
            let guard = place.wait().await.unwrap();
            served.lock().unwrap().push(n);
            drop(guard);
        };
        tokio::join!(serve(3, third), serve(1, first));
        assert_eq!(*served.lock().unwrap(), [1, 3]);
    }

    #[test]
    fn a_link_and_its_target_are_one_file() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a"), "").unwrap();
        std::os::unix::fs::symlink("a", folder.path().join("b")).unwrap();
        assert_eq!(real_path(&folder.path().join("a")), real_path(&folder.path().join("b")));
        let missing = folder.path().join("x/y");
        assert_eq!(real_path(&missing), fs::canonicalize(folder.path()).unwrap().join("x/y"));
    }
}
