//! Puts calls that change one file in a row, while calls on others run beside.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use futures_util::future::BoxFuture;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The files being changed, by the path they have once links are resolved.
/// Clones share them.
#[derive(Debug, Clone, Default)]
pub struct FileLocks(Arc<Mutex<HashMap<PathBuf, Weak<Semaphore>>>>);

/// A place in the row for one file.
pub struct Place(Waiting);

/// The right to change one file, until dropped. A task that writes must own it,
/// so that giving up on the task does not let the next one in.
#[derive(Debug)]
pub struct FileGuard(
    #[expect(dead_code, reason = "dropping the permit lets the next one in")] Option<OwnedSemaphorePermit>,
);

impl FileLocks {
    /// Takes the next place in the row for `path`. Places are served in the
    /// order of these calls, whatever is awaited first.
    ///
    /// Asks the disk where links lead.
    pub fn register(&self, path: &Path) -> Place {
        let key = real_path(path);
        let semaphore = {
            let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            files.retain(|_, semaphore| semaphore.strong_count() > 0);
            let existing = files.get(&key).and_then(Weak::upgrade);
            existing.unwrap_or_else(|| {
                let semaphore = Arc::new(Semaphore::new(1));
                files.insert(key, Arc::downgrade(&semaphore));
                semaphore
            })
        };
        let mut permit: BoxFuture<'static, Option<OwnedSemaphorePermit>> =
            Box::pin(async move { semaphore.acquire_owned().await.ok() });
        // The first poll is what enters the semaphore's own row.
        match permit.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(permit) => Place(Waiting::Over(permit)),
            Poll::Pending => Place(Waiting::InRow(permit)),
        }
    }
}

impl Place {
    /// Waits for one's turn. Dropping it gives the place up.
    pub async fn wait(self) -> FileGuard {
        match self.0 {
            Waiting::Over(permit) => FileGuard(permit),
            Waiting::InRow(permit) => FileGuard(permit.await),
        }
    }
}

enum Waiting {
    Over(Option<OwnedSemaphorePermit>),
    InRow(BoxFuture<'static, Option<OwnedSemaphorePermit>>),
}

/// `path` without links; of a file that does not exist yet, as far as it does.
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

    #[tokio::test]
    async fn places_are_served_in_the_order_of_registration() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let locks = FileLocks::default();
        let (first, second, third) = (locks.register(&path), locks.register(&path), locks.register(&path));
        let served = Arc::new(Mutex::new(Vec::new()));
        let serve = |n: u32, place: Place| {
            let served = Arc::clone(&served);
            async move {
                let guard = place.wait().await;
                served.lock().unwrap().push(n);
                tokio::task::yield_now().await;
                drop(guard);
            }
        };
        tokio::join!(serve(3, third), serve(2, second), serve(1, first));
        assert_eq!(*served.lock().unwrap(), [1, 2, 3]);
    }

    #[tokio::test]
    async fn a_place_given_up_blocks_nobody() {
        let locks = FileLocks::default();
        let path = Path::new("/nonexistent/a");
        let (first, second, third) = (locks.register(path), locks.register(path), locks.register(path));
        drop(second);
        drop(first.wait().await);
        drop(third.wait().await);
    }

    #[cfg(unix)]
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
