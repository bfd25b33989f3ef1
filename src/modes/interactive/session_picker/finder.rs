//! Lists and searches sessions on one thread; a new request cancels the one in progress.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, TryRecvError};
use std::thread;
use std::time::Duration;

use crate::session::{SearchQuery, SessionIndex, SessionScope, delete_session, rename_session};
use crate::util::clock::Clock;

use super::super::effects::Effects;
use super::super::msg::EffectDone;
use super::{SessionsDone, SessionsEffect};

/// Where sessions are.
#[derive(Debug, Clone)]
pub(in super::super) struct SessionFolders {
    /// Contains the folders of all projects.
    pub(in super::super) root: PathBuf,
    /// Folder of this project's sessions, and the directory to filter them by.
    pub(in super::super) folder: PathBuf,
    pub(in super::super) filter: Option<PathBuf>,
}

impl SessionFolders {
    fn scope(&self, is_all: bool) -> SessionScope {
        if is_all {
            return SessionScope::All;
        }
        SessionScope::Folder { folder: self.folder.clone(), cwd: self.filter.clone() }
    }
}

/// Receives results on the finder's thread.
type Report = Box<dyn Fn(SessionsDone) + Send>;

/// The thread that reads and searches; it ends when this is dropped.
#[derive(Debug)]
pub(in super::super) struct SessionFinder {
    requests: mpsc::Sender<SessionsEffect>,
    /// Number of requests so far.
    posted: Arc<AtomicU64>,
}

impl SessionFinder {
    /// # Errors
    /// If no thread can be started.
    fn start(folders: SessionFolders, clock: Clock, report: Report) -> std::io::Result<Self> {
        let (requests, received) = mpsc::channel();
        let posted = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&posted);
        thread::Builder::new().name("sessions".to_owned()).spawn(move || {
            let index = SessionIndex::load(&folders.root);
            Finder { index, folders, clock, report, posted: counted, taken: 0, listed: None }.run(&received);
        })?;
        Ok(Self { requests, posted })
    }

    fn post(&self, request: SessionsEffect) {
        self.posted.fetch_add(1, Ordering::Relaxed);
        // Without its thread nothing can be found; its panic was reported.
        drop(self.requests.send(request));
    }
}

impl Drop for SessionFinder {
    fn drop(&mut self) {
        self.posted.fetch_add(1, Ordering::Relaxed);
    }
}

/// The finder's thread.
struct Finder {
    index: SessionIndex,
    folders: SessionFolders,
    clock: Clock,
    report: Report,
    posted: Arc<AtomicU64>,
    /// Number of requests received.
    taken: u64,
    /// Whether all sessions of this scope are known.
    listed: Option<SessionScope>,
}

/// Sessions that are shown before the files of all are looked at: no screen has more rows.
const FIRST_SESSIONS: usize = 100;
/// Hits are passed on when there are this many; the first one at once.
const BATCH_HITS: usize = 32;
/// More hits than anyone reads.
const MAX_HITS: usize = 500;

impl Finder {
    fn run(mut self, received: &mpsc::Receiver<SessionsEffect>) {
        // A list or search that was cancelled by a change of a session.
        let mut unfinished: Option<SessionsEffect> = None;
        loop {
            let request = match &unfinished {
                None => received.recv().ok(),
                Some(waiting) => match received.try_recv() {
                    Ok(request) => Some(request),
                    Err(TryRecvError::Empty) => Some(waiting.clone()),
                    Err(TryRecvError::Disconnected) => None,
                },
            };
            let Some(request) = request else { break };
            let is_repeated = unfinished.as_ref() == Some(&request);
            self.taken += u64::from(!is_repeated);
            let is_change = matches!(request, SessionsEffect::Rename { .. } | SessionsEffect::Delete { .. });
            if is_change {
                self.change(request);
                continue;
            }
            unfinished = if self.find(&request) { None } else { Some(request) };
        }
        // The next list is faster if this succeeds.
        drop(self.index.save());
    }

    /// `false` if it was cancelled.
    fn find(&mut self, request: &SessionsEffect) -> bool {
        match request {
            SessionsEffect::List { request, is_all } => self.list(*request, &self.folders.scope(*is_all)),
            SessionsEffect::Search { request, is_all, text } => {
                self.search(*request, &self.folders.scope(*is_all), text)
            }
            _ => true,
        }
    }

    fn list(&mut self, request: u64, scope: &SessionScope) -> bool {
        let mut is_first = true;
        let (posted, taken, report) = (Arc::clone(&self.posted), self.taken, &self.report);
        let is_cancelled = || posted.load(Ordering::Relaxed) != taken;
        let sessions = self.index.latest_unchanged(scope, FIRST_SESSIONS);
        if !sessions.is_empty() {
            report(SessionsDone::Listed { request, is_first, sessions, is_done: false });
        }
        let refreshed = self.index.refresh(scope, &is_cancelled, &mut |sessions| {
            report(SessionsDone::Listed { request, is_first, sessions, is_done: false });
            is_first = false;
        });
        if refreshed.is_partial {
            return false;
        }
        let sessions = Vec::new();
        report(SessionsDone::Listed { request, is_first: false, sessions, is_done: true });
        for problem in refreshed.problems {
            report(SessionsDone::Failed(problem));
        }
        self.listed = Some(scope.clone());
        drop(self.index.save());
        true
    }

    fn search(&mut self, request: u64, scope: &SessionScope, text: &str) -> bool {
        let (posted, taken, report) = (Arc::clone(&self.posted), self.taken, &self.report);
        let is_cancelled = || posted.load(Ordering::Relaxed) != taken;
        let query = match SearchQuery::parse(text) {
            Ok(Some(query)) => query,
            Ok(None) => return true,
            Err(error) => {
                report(SessionsDone::BadQuery { request, problem: error.to_string() });
                return true;
            }
        };
        if self.listed.as_ref() != Some(scope) {
            let refreshed = self.index.refresh(scope, &is_cancelled, &mut |_| {});
            if refreshed.is_partial {
                return false;
            }
            self.listed = Some(scope.clone());
        }
        let (mut is_first, mut n_hits, mut batch) = (true, 0, Vec::new());
        let n_found = std::cell::Cell::new(0);
        let stops = || is_cancelled() || n_found.get() >= MAX_HITS;
        self.index.search(scope, &query, &stops, &mut |hit| {
            batch.push(hit);
            n_hits += 1;
            n_found.set(n_hits);
            if is_first || batch.len() >= BATCH_HITS {
                let hits = std::mem::take(&mut batch);
                report(SessionsDone::Found { request, is_first, hits, is_done: false });
                is_first = false;
            }
        });
        if is_cancelled() {
            return false;
        }
        report(SessionsDone::Found { request, is_first, hits: batch, is_done: true });
        true
    }

    fn change(&mut self, request: SessionsEffect) {
        let done = match request {
            SessionsEffect::Rename { path, name } => {
                match rename_session(&path, &name, self.clock.now_ms()) {
                    Ok(()) => SessionsDone::Renamed { path, name },
                    Err(error) => SessionsDone::NotRenamed { path, name, problem: error.to_string() },
                }
            }
            SessionsEffect::Delete { path } => match delete_session(&path, "trash") {
                Ok(how) => SessionsDone::Deleted { path, how },
                Err(error) => SessionsDone::Failed(error.to_string()),
            },
            _ => return,
        };
        self.listed = None;
        (self.report)(done);
    }
}

/// Updates of the cache while the user reads or types.
#[derive(Debug, Default)]
pub(in super::super) struct IndexUpdate {
    last: Option<Duration>,
    /// Cancels the one in progress.
    cancel: Arc<AtomicBool>,
    is_running: Arc<AtomicBool>,
}

/// At most one update in this time.
const UPDATE_INTERVAL: Duration = Duration::from_secs(5 * 60);

impl IndexUpdate {
    /// Starts an update on a thread of its own, unless there was one a moment ago.
    fn start(&mut self, folders: &SessionFolders, now: Duration) {
        let is_due = self.last.is_none_or(|last| now.saturating_sub(last) >= UPDATE_INTERVAL);
        if !is_due || self.is_running.swap(true, Ordering::Relaxed) {
            return;
        }
        self.last = Some(now);
        self.cancel = Arc::new(AtomicBool::new(false));
        let (cancel, is_running, root) =
            (Arc::clone(&self.cancel), Arc::clone(&self.is_running), folders.root.clone());
        let started = thread::Builder::new().name("session-index".to_owned()).spawn(move || {
            let mut index = SessionIndex::load(&root);
            index.refresh(&SessionScope::All, &|| cancel.load(Ordering::Relaxed), &mut |_| {});
            drop(index.save());
            is_running.store(false, Ordering::Relaxed);
        });
        if started.is_err() {
            self.is_running.store(false, Ordering::Relaxed);
        }
    }

    /// Makes way for a prompt; what has been read is kept.
    pub(in super::super) fn cancel(&mut self) {
        self.cancel.store(true, Ordering::Relaxed);
    }
}

impl Drop for IndexUpdate {
    fn drop(&mut self) {
        self.cancel();
    }
}

impl Effects {
    pub(in super::super) fn start_sessions(&mut self, effect: SessionsEffect) {
        match effect {
            SessionsEffect::Open => self.open_finder(),
            SessionsEffect::Close => self.finder = None,
            SessionsEffect::UpdateIndex => {
                if self.finder.is_none() {
                    self.index_update.start(&self.sessions, self.services.clock.monotonic());
                }
            }
            request => {
                if let Some(finder) = &self.finder {
                    finder.post(request);
                }
            }
        }
    }

    fn open_finder(&mut self) {
        self.index_update.cancel();
        let done = self.done.clone();
        let report = Box::new(move |found| drop(done.send(EffectDone::Sessions(found))));
        match SessionFinder::start(self.sessions.clone(), self.services.clock.clone(), report) {
            Ok(finder) => {
                drop(self.done.send(EffectDone::Sessions(SessionsDone::Opened)));
                finder.post(SessionsEffect::List { request: 0, is_all: false });
                self.finder = Some(finder);
            }
            Err(error) => {
                let text = format!("cannot list sessions: the system cannot start another thread ({error})");
                drop(self.done.send(EffectDone::Failed(text)));
            }
        }
    }
}
