//! Files that something else writes or removes.

#![expect(clippy::unwrap_used, reason = "a helper of tests may fail the test")]

use std::path::Path;
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

use notify::event::{AccessKind, AccessMode};
use notify::{EventKind, RecursiveMode, Watcher as _};

/// Far longer than anything takes; only a failure waits so long.
const LIMIT: Duration = Duration::from_secs(30);

/// Waits until `ready`, which looks at files below `folder`: once, and whenever the system
/// reports a change there. What is written into a folder that is made meanwhile may be
/// missed.
#[track_caller]
pub(crate) fn wait_for_files(folder: &Path, what: &str, ready: impl Fn() -> bool) {
    let (changed, changes) = mpsc::channel();
    let on_event = move |event: notify::Result<notify::Event>| {
        // Reading a file is an event too, also by `ready`.
        let is_read = |kind: &EventKind| matches!(kind, EventKind::Access(access) if *access != AccessKind::Close(AccessMode::Write));
        if !is_read(&event.unwrap().kind) {
            // Nobody waits any more.
            let _gone = changed.send(());
        }
    };
    let mut watcher = notify::recommended_watcher(on_event).unwrap();
    watcher.watch(folder, RecursiveMode::Recursive).unwrap();
    while !ready() {
        assert!(changes.recv_timeout(LIMIT).is_ok(), "{what} did not come");
    }
}

/// Makes a named pipe. No call that does so exists on every Unix in the crates at hand.
pub(crate) fn make_fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}
