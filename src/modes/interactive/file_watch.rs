//! Watches a file, such as that of the theme in use, so that a change of it is seen at once.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use notify::event::{AccessKind, AccessMode};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::msg::EffectDone;

/// Editors write a file in several steps; it is read when no more have followed for this long.
const REST: Duration = Duration::from_millis(100);

/// The watched file, if there is one. Dropping it ends the watch.
#[derive(Debug)]
pub(super) struct FileWatch {
    watched: Option<(PathBuf, RecommendedWatcher)>,
    /// What reports a change.
    change: fn() -> EffectDone,
}

impl FileWatch {
    pub(super) fn new(change: fn() -> EffectDone) -> Self {
        Self { watched: None, change }
    }

    /// Watches this file and no other, and reports each change of it. Without a file there is neither a
    /// thread nor a task. Where the system cannot watch, nothing is reported. Returns whether a watch
    /// began: the file may have changed shortly before.
    pub(super) fn follow(&mut self, file: Option<PathBuf>, done: &UnboundedSender<EffectDone>) -> bool {
        if file.as_ref() == self.watched.as_ref().map(|(path, _)| path) {
            return false;
        }
        self.watched = file.and_then(|path| {
            let (changed, changes) = unbounded_channel();
            let watcher = watch(&path, changed).ok()?;
            tokio::spawn(report(changes, self.change, done.clone()));
            Some((path, watcher))
        });
        self.watched.is_some()
    }
}

/// Watches the folder of the file, because editors and git replace a file, and the folder of what it links to.
fn watch(path: &Path, changed: UnboundedSender<()>) -> notify::Result<RecommendedWatcher> {
    let target = path.canonicalize()?;
    let names: Vec<OsString> =
        [path, &target].into_iter().filter_map(Path::file_name).map(OsString::from).collect();
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        let is_change = event.is_ok_and(|event| {
            is_write(event.kind)
                && event
                    .paths
                    .iter()
                    .any(|path| path.file_name().is_some_and(|name| names.iter().any(|n| n == name)))
        });
        if is_change {
            // The task that reports has ended with the program.
            changed.send(()).unwrap_or_default();
        }
    })?;
    let mut folders: Vec<&Path> = [path, &target].into_iter().filter_map(Path::parent).collect();
    folders.dedup();
    for folder in folders {
        watcher.watch(folder, RecursiveMode::NonRecursive)?;
    }
    Ok(watcher)
}

/// Reading a file is an event too.
fn is_write(kind: EventKind) -> bool {
    !matches!(kind, EventKind::Access(access) if access != AccessKind::Close(AccessMode::Write))
}

/// Reports changes, once for those that follow each other closely.
async fn report(
    mut changes: UnboundedReceiver<()>,
    change: fn() -> EffectDone,
    done: UnboundedSender<EffectDone>,
) {
    while changes.recv().await.is_some() {
        while let Ok(Some(())) = tokio::time::timeout(REST, changes.recv()).await {}
        if done.send(change()).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn writes_that_follow_each_other_are_one_change() {
        let (changed, changes) = unbounded_channel();
        let (done, mut reports) = unbounded_channel();
        let task = tokio::spawn(report(changes, || EffectDone::ThemeChanged, done));
        for pause in [REST / 2, REST / 2, REST * 2, REST / 2] {
            changed.send(()).unwrap();
            tokio::time::sleep(pause).await;
        }
        drop(changed);
        task.await.unwrap();
        let n_reports = std::iter::from_fn(|| reports.try_recv().ok()).count();
        assert_eq!(n_reports, 2);
    }

    #[tokio::test]
    async fn the_file_may_be_written_replaced_or_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real/theme.json"), folder.path().join("themes/mine.json"));
        for file in [&real, &link] {
            std::fs::create_dir(file.parent().unwrap()).unwrap();
        }
        std::fs::write(&real, "1").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let (done, mut reports) = unbounded_channel();
        let mut watch = FileWatch::new(|| EffectDone::ThemeChanged);
        assert!(watch.follow(Some(link.clone()), &done));
        assert!(!watch.follow(Some(link.clone()), &done), "it is watched already");
        std::fs::write(&real, "2").unwrap();
        assert!(matches!(reports.recv().await, Some(EffectDone::ThemeChanged)));
        std::fs::write(folder.path().join("themes/other"), "3").unwrap();
        std::fs::rename(folder.path().join("themes/other"), &link).unwrap();
        assert!(matches!(reports.recv().await, Some(EffectDone::ThemeChanged)));
        assert!(!watch.follow(None, &done));
        drop(done);
        assert!(reports.recv().await.is_none());
    }
}
