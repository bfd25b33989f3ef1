//! Watches a file, such as that of the theme in use, so that a change of it is seen at once.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use notify::event::{AccessKind, AccessMode, ModifyKind};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::msg::EffectDone;

/// Editors write a file in several steps; it is read when no more have followed for this long.
const REST: Duration = Duration::from_millis(100);

/// The watched file, if there is one. Dropping it ends the watch.
#[derive(Debug)]
pub(super) struct FileWatch {
    watched: Option<Watched>,
    /// What reports a change.
    change: fn() -> EffectDone,
    /// Whether the folder above is watched too, in which others may write.
    watches_above: bool,
}

#[derive(Debug)]
struct Watched {
    path: PathBuf,
    /// Whether its folder was removed or made anew, which ends the watch of what is in it.
    is_over: Arc<AtomicBool>,
    _watcher: RecommendedWatcher,
}

impl FileWatch {
    pub(super) fn new(change: fn() -> EffectDone) -> Self {
        Self { watched: None, change, watches_above: false }
    }

    /// The same of a file whose folder a program may put in place of another one.
    pub(super) fn in_any_folder(change: fn() -> EffectDone) -> Self {
        Self { watches_above: true, ..Self::new(change) }
    }

    /// Watches this file and no other, and reports each change of it. Without a file there is neither a
    /// thread nor a task. Where the system cannot watch, nothing is reported. Returns whether a watch
    /// began: the file may have changed shortly before.
    pub(super) fn follow(&mut self, file: Option<PathBuf>, done: &UnboundedSender<EffectDone>) -> bool {
        let watched = self.watched.as_ref().filter(|watched| !watched.is_over.load(Ordering::Relaxed));
        if file.as_ref() == watched.map(|watched| &watched.path) {
            return false;
        }
        self.watched = file.and_then(|path| {
            let (changed, changes) = unbounded_channel();
            let watched = Watched::new(path, self.watches_above, changed).ok()?;
            tokio::spawn(report(changes, self.change, done.clone()));
            Some(watched)
        });
        self.watched.is_some()
    }
}

impl Watched {
    /// Watches the folder of the file, because editors and git replace a file, the folder of what it links to, and,
    /// if wanted, the folders above them.
    fn new(path: PathBuf, watches_above: bool, changed: UnboundedSender<()>) -> notify::Result<Self> {
        let target = path.canonicalize().unwrap_or_else(|_| path.clone());
        let names: Vec<OsString> =
            [&path, &target].into_iter().filter_map(|path| path.file_name()).map(OsString::from).collect();
        let mut folders: Vec<PathBuf> =
            [&path, &target].into_iter().filter_map(|path| path.parent()).map(Path::to_owned).collect();
        folders.dedup();
        let is_over = Arc::new(AtomicBool::new(false));
        let (own_folders, ends) = (folders.clone(), Arc::clone(&is_over));
        let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            let Ok(event) = event else { return };
            let is_named =
                |path: &PathBuf| path.file_name().is_some_and(|name| names.iter().any(|n| n == name));
            let replaces = matches!(event.kind, EventKind::Create(_) | EventKind::Remove(_))
                || matches!(event.kind, EventKind::Modify(ModifyKind::Name(_)));
            let is_replaced = replaces && event.paths.iter().any(|path| own_folders.contains(path));
            if is_replaced {
                ends.store(true, Ordering::Relaxed);
            }
            if is_replaced || is_write(event.kind) && event.paths.iter().any(is_named) {
                // The task that reports has ended with the program.
                changed.send(()).unwrap_or_default();
            }
        })?;
        let above = folders.iter().filter(|_| watches_above).filter_map(|folder| folder.parent());
        let above: Vec<&Path> = above.collect();
        let watch = |folder: &Path| watcher.watch(folder, RecursiveMode::NonRecursive);
        let begun: Vec<_> = folders.iter().map(PathBuf::as_path).chain(above).map(watch).collect();
        // One of them is there, or nothing can be watched.
        if begun.iter().all(Result::is_err) {
            begun.into_iter().collect::<notify::Result<()>>()?;
        }
        Ok(Self { path, is_over, _watcher: watcher })
    }
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
        let mut watch = FileWatch::in_any_folder(|| EffectDone::ThemeChanged);
        assert!(watch.follow(Some(link.clone()), &done));
        assert!(!watch.follow(Some(link.clone()), &done), "it is watched already");
        std::fs::write(&real, "2").unwrap();
        assert!(matches!(reports.recv().await, Some(EffectDone::ThemeChanged)));
        std::fs::write(folder.path().join("themes/other"), "3").unwrap();
        std::fs::rename(folder.path().join("themes/other"), &link).unwrap();
        assert!(matches!(reports.recv().await, Some(EffectDone::ThemeChanged)));
        // A program may put the whole folder in its place.
        std::fs::rename(folder.path().join("themes"), folder.path().join("old")).unwrap();
        assert!(matches!(reports.recv().await, Some(EffectDone::ThemeChanged)));
        std::fs::create_dir(folder.path().join("themes")).unwrap();
        watch.follow(Some(link.clone()), &done);
        std::fs::write(&link, "4").unwrap();
        assert!(matches!(reports.recv().await, Some(EffectDone::ThemeChanged)));
        watch.follow(None, &done);
        drop(done);
        while reports.recv().await.is_some() {}
    }
}
