//! Finds files for completion on one thread; a new request cancels the one in progress.
//!
//! The thread walks the project once and keeps its paths while they are asked for. It answers
//! from what it has, and again as it finds more. It ends when nothing was asked for a while.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, TryRecvError};
use std::thread;
use std::time::Duration;

use ignore::{Walk, WalkBuilder};

use crate::util::clock::Clock;
use crate::util::composed::composed;
use crate::util::paths;

use super::super::effects::Effects;
use super::super::msg::EffectDone;
use super::index::FileIndex;

/// Paths in an answer.
const LIMIT: usize = 20;
/// Paths of a project that are searched; more are left out.
const MAX_PATHS: usize = 300_000;
/// Paths that are walked before the thread looks for a request.
const STEP: usize = 500;
/// For how long the paths are kept after the last request.
const IDLE: Duration = Duration::from_secs(60);
/// Paths older than this are walked again when the next `@` is typed.
const FRESH: Duration = Duration::from_secs(5);

/// What is wanted for the text that is being typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct FileRequest {
    /// The answer carries it.
    pub(in super::super) id: u64,
    pub(in super::super) cwd: PathBuf,
    pub(in super::super) home: Option<PathBuf>,
    pub(in super::super) wanted: Wanted,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) enum Wanted {
    /// Files and folders of the project that match, best first.
    Matching { query: String, is_new: bool },
    /// The entries of a folder whose names begin like the path, folders first.
    Beginning { path: String },
}

/// The answer to a request.
#[derive(Debug, PartialEq, Eq)]
pub(in super::super) struct FoundFiles {
    pub(in super::super) id: u64,
    /// As the user would type them; folders end with a slash.
    pub(in super::super) paths: Vec<String>,
    /// Whether no further answer follows.
    pub(in super::super) is_done: bool,
}

/// Receives answers on the finder's thread.
type Report = Box<dyn Fn(FoundFiles) + Send>;

/// The thread that finds files; it ends when this is dropped.
#[derive(Debug)]
pub(in super::super) struct FileFinder {
    requests: mpsc::Sender<FileRequest>,
    /// Number of requests so far.
    posted: Arc<AtomicU64>,
}

impl FileFinder {
    /// # Errors
    /// If no thread can be started.
    fn start(clock: Clock, report: Report) -> std::io::Result<Self> {
        let (requests, received) = mpsc::channel();
        let posted = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&posted);
        thread::Builder::new().name("files".to_owned()).spawn(move || {
            Finder { clock, report, posted: counted, taken: 0, project: None, walk: None, unfinished: None }
                .run(&received);
        })?;
        Ok(Self { requests, posted })
    }

    /// Returns whether the thread is still there.
    fn post(&self, request: FileRequest) -> bool {
        self.posted.fetch_add(1, Ordering::Relaxed);
        self.requests.send(request).is_ok()
    }
}

impl Drop for FileFinder {
    fn drop(&mut self) {
        self.posted.fetch_add(1, Ordering::Relaxed);
    }
}

impl Effects {
    /// Finds files; answers with [`EffectDone::Files`].
    pub(in super::super) fn find_files(&mut self, request: FileRequest) {
        if self.files.as_ref().is_some_and(|finder| finder.post(request.clone())) {
            return;
        }
        let done = self.done.clone();
        let report = Box::new(move |found| drop(done.send(EffectDone::Files(found))));
        match FileFinder::start(self.services.clock.clone(), report) {
            Ok(finder) => {
                finder.post(request);
                self.files = Some(finder);
            }
            Err(error) => drop(self.done.send(EffectDone::Failed(format!("cannot find files: {error}")))),
        }
    }
}

/// The paths of one folder, and when they were read.
struct Project {
    cwd: PathBuf,
    index: FileIndex,
    /// Monotonic; `None` while they are being read for the first time.
    read_at: Option<Duration>,
}

/// A walk in progress.
struct ProjectWalk {
    cwd: PathBuf,
    entries: Walk,
    /// What was found, if the old paths are still in use; otherwise paths go to these directly.
    fresh: Option<FileIndex>,
    /// Number of paths when the last answer was given.
    answered: usize,
}

/// The finder's thread.
struct Finder {
    clock: Clock,
    report: Report,
    posted: Arc<AtomicU64>,
    /// Number of requests received.
    taken: u64,
    project: Option<Project>,
    walk: Option<ProjectWalk>,
    /// A request that a walk in progress may find more for.
    unfinished: Option<FileRequest>,
}

impl Finder {
    fn run(mut self, received: &mpsc::Receiver<FileRequest>) {
        loop {
            let request = if self.walk.is_some() {
                match received.try_recv() {
                    Ok(request) => Some(request),
                    Err(TryRecvError::Empty) => None,
                    Err(TryRecvError::Disconnected) => return,
                }
            } else {
                match received.recv_timeout(IDLE) {
                    Ok(request) => Some(request),
                    Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return,
                }
            };
            match request {
                Some(request) => {
                    self.taken += 1;
                    self.begin(request);
                }
                None => self.step(),
            }
        }
    }

    fn is_cancelled(&self) -> bool {
        self.posted.load(Ordering::Relaxed) != self.taken
    }

    fn begin(&mut self, request: FileRequest) {
        self.unfinished = None;
        if self.is_cancelled() {
            return;
        }
        match &request.wanted {
            Wanted::Beginning { path } => {
                let paths = beginning(path, &request.cwd, request.home.as_deref());
                (self.report)(FoundFiles { id: request.id, paths, is_done: true });
            }
            Wanted::Matching { query, is_new } => {
                self.walk_if_needed(&request.cwd, *is_new);
                if query.is_empty() || is_outside(query) {
                    let paths = match query.is_empty() {
                        true => at_top(&request.cwd),
                        false => beginning(query, &request.cwd, request.home.as_deref()),
                    };
                    return (self.report)(FoundFiles { id: request.id, paths, is_done: true });
                }
                self.answer(&request);
                self.unfinished = self.walk.is_some().then_some(request);
            }
        }
    }

    /// Starts to read the project, unless its paths are known.
    fn walk_if_needed(&mut self, cwd: &Path, is_new: bool) {
        let now = self.clock.monotonic();
        let known = self.project.as_ref().filter(|project| project.cwd == cwd);
        let is_fresh = known.is_some_and(|project| {
            project.read_at.is_none_or(|at| !is_new || now.saturating_sub(at) < FRESH)
        });
        let is_walking = self.walk.as_ref().is_some_and(|walk| walk.cwd == cwd);
        if is_fresh || is_walking {
            return;
        }
        let fresh = known.is_some().then(FileIndex::default);
        if fresh.is_none() {
            let cwd = cwd.to_owned();
            self.project = Some(Project { cwd, index: FileIndex::default(), read_at: None });
        }
        self.walk = Some(ProjectWalk { cwd: cwd.to_owned(), entries: walk(cwd), fresh, answered: 0 });
        // Small projects are known as a whole in the first answer.
        self.step();
    }

    /// Reads some entries of the project, and answers again if that is worth it.
    fn step(&mut self) {
        let (Some(walk), Some(project)) = (&mut self.walk, &mut self.project) else { return };
        let is_first = walk.fresh.is_none();
        let index = walk.fresh.as_mut().unwrap_or(&mut project.index);
        let mut is_done = false;
        for _ in 0..STEP {
            let Some(entry) = walk.entries.next().filter(|_| index.len() < MAX_PATHS) else {
                is_done = true;
                break;
            };
            // What cannot be read cannot be completed.
            let Ok(entry) = entry else { continue };
            let relative = entry.path().strip_prefix(&walk.cwd).unwrap_or(entry.path());
            if entry.depth() > 0
                && let Some(path) = relative.to_str().filter(|path| is_typable(path))
            {
                let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
                index.push(&if is_folder { format!("{path}/") } else { path.to_owned() });
            }
        }
        let has_doubled = is_first && index.len() >= 2 * walk.answered.max(STEP);
        if has_doubled {
            walk.answered = index.len();
        }
        if is_done {
            if let Some(fresh) = walk.fresh.take() {
                project.index = fresh;
            }
            project.read_at = Some(self.clock.monotonic());
            self.walk = None;
        }
        if (is_done || has_doubled)
            && let Some(request) = self.unfinished.take()
        {
            self.answer(&request);
            self.unfinished = self.walk.is_some().then_some(request);
        }
    }

    /// Searches what is known of the project.
    fn answer(&mut self, request: &FileRequest) {
        let Wanted::Matching { query, .. } = &request.wanted else { return };
        let (posted, taken) = (Arc::clone(&self.posted), self.taken);
        let is_cancelled = || posted.load(Ordering::Relaxed) != taken;
        let Some(project) = &mut self.project else { return };
        if let Some(paths) = project.index.search(query, LIMIT, &is_cancelled) {
            (self.report)(FoundFiles { id: request.id, paths, is_done: self.walk.is_none() });
        }
    }
}

/// All files and folders that version control does not ignore, hidden ones included.
fn walk(cwd: &Path) -> Walk {
    not_ignored(cwd).build()
}

fn not_ignored(cwd: &Path) -> WalkBuilder {
    let mut walk = WalkBuilder::new(cwd);
    walk.hidden(false)
        .follow_links(true)
        .require_git(false)
        .filter_entry(|entry| entry.file_name() != OsStr::new(".git"));
    walk
}

/// What is in the project's folder itself, except what version control ignores and what is hidden: folders
/// first, then by name.
fn at_top(cwd: &Path) -> Vec<String> {
    let entries = not_ignored(cwd).hidden(true).max_depth(Some(1)).build();
    let found = entries.flatten().filter(|entry| entry.depth() > 0).filter_map(|entry| {
        let name = entry.file_name().to_str().filter(|name| is_typable(name))?;
        Some((entry.file_type().is_none_or(|kind| !kind.is_dir()), name.to_owned()))
    });
    folders_first(found.collect(), "")
}

/// Whether the editor can hold the path: it drops control characters, and what is left would name
/// another file.
fn is_typable(path: &str) -> bool {
    !path.contains(char::is_control)
}

/// Whether a path leads out of the project, where nothing is searched.
fn is_outside(path: &str) -> bool {
    path.starts_with(['/', '~']) || path.starts_with("./") || path.starts_with("../") || path == ".."
}

/// The entries of the folder that `path` names whose names begin like its last part: folders
/// first, then by name. Hidden ones are left out unless a dot was typed.
fn beginning(path: &str, cwd: &Path, home: Option<&Path>) -> Vec<String> {
    let (folder, name) = path.split_at(path.rfind('/').map_or(0, |at| at + 1));
    // A lone tilde is the home folder.
    if path == "~" {
        return vec!["~/".to_owned()];
    }
    let folder = &on_disk(folder, cwd, home);
    let root = cwd.join(paths::expand_home(folder, home));
    let Ok(entries) = fs::read_dir(root) else { return Vec::new() };
    let wanted = composed(name).to_lowercase();
    let found: Vec<(bool, String)> = entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok().filter(|name| is_typable(name))?;
            let is_hidden = name.starts_with('.') && !wanted.starts_with('.');
            if is_hidden || name == ".git" || !composed(&name).to_lowercase().starts_with(&wanted) {
                return None;
            }
            // A link to a folder is one.
            Some((!entry.path().is_dir(), name))
        })
        .collect();
    folders_first(found, folder)
}

/// `folder` as the disk spells it: the names of its parts may have decomposed characters.
fn on_disk(folder: &str, cwd: &Path, home: Option<&Path>) -> String {
    let mut found = String::new();
    for part in folder.split_inclusive('/') {
        let place = cwd.join(paths::expand_home(&found, home));
        let entries = Some(&place).filter(|place| !part.is_ascii() && !place.join(part).exists());
        let mut entries = entries.and_then(|place| fs::read_dir(place).ok()).into_iter().flatten().flatten();
        let spelt = entries.find_map(|entry| {
            let name = entry.file_name().into_string().ok()? + "/";
            (composed(&name) == composed(part)).then_some(name)
        });
        found.push_str(spelt.as_deref().unwrap_or(part));
    }
    found
}

/// The first ones of names in `folder`, each with whether it is none of a folder.
fn folders_first(mut found: Vec<(bool, String)>, folder: &str) -> Vec<String> {
    found.sort_by(|(is_file, name), (other_is_file, other)| {
        let key = |name: &str| name.to_lowercase();
        is_file.cmp(other_is_file).then_with(|| key(name).cmp(&key(other)))
    });
    let typed = |(is_file, name): (bool, String)| format!("{folder}{name}{}", if is_file { "" } else { "/" });
    found.into_iter().take(LIMIT).map(typed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A project with ignored and hidden files.
    fn project() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for path in [
            "src/main.rs",
            "src/my file.rs",
            "src/.hidden",
            ".git/HEAD",
            "target/main.o",
            "Über/模型.md",
            "notes.md",
        ] {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        fs::write(folder.path().join(".gitignore"), "target\n").unwrap();
        folder
    }

    /// The last answer to each query, asked one after the other.
    fn found(cwd: &Path, wanted: &[Wanted]) -> Vec<Vec<String>> {
        let (answers, answered) = mpsc::channel();
        let finder =
            FileFinder::start(Clock::manual(0), Box::new(move |found| answers.send(found).unwrap())).unwrap();
        let ask = |(id, wanted): (usize, &Wanted)| {
            let id = id as u64;
            assert!(finder.post(FileRequest {
                id,
                cwd: cwd.to_owned(),
                home: Some(cwd.join("src")),
                wanted: wanted.clone(),
            }));
            answered.iter().find(|found| found.id == id && found.is_done).unwrap().paths
        };
        wanted.iter().enumerate().map(ask).collect()
    }

    #[test]
    fn files_of_the_project_are_found_except_ignored_ones() {
        let matching = |query: &str| Wanted::Matching { query: query.to_owned(), is_new: true };
        let folder = project();
        let queries = ["main", "hidden", "模", "HEAD", "./no", "~/m", "src/m", ""].map(matching);
        let answers = found(folder.path(), &queries);
        assert_eq!(
            answers,
            [
                vec!["src/main.rs"],
                vec!["src/.hidden"],
                vec!["Über/模型.md"],
                vec![],
                vec!["./notes.md"],
                vec!["~/main.rs", "~/my file.rs"],
                vec!["src/main.rs", "src/my file.rs"],
                vec!["src/", "Über/", "notes.md"],
            ]
        );
    }

    #[cfg(unix)]
    #[test]
    fn only_names_that_the_editor_can_hold_are_offered() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["evil\u{1b}[31mname\u{1b}]0;pwn.txt", "evil\ttab", "evil\u{202e}rtl.txt", "evil.txt"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let wanted = [
            Wanted::Matching { query: "evil".to_owned(), is_new: true },
            Wanted::Beginning { path: "ev".to_owned() },
        ];
        for mut paths in found(folder.path(), &wanted) {
            paths.sort();
            assert_eq!(paths, ["evil.txt", "evil\u{202e}rtl.txt"]);
        }
    }

    #[test]
    fn path_is_continued_with_folders_first() {
        let beginning = |path: &str| Wanted::Beginning { path: path.to_owned() };
        let folder = project();
        let absolute = format!("{}/no", folder.path().display());
        let paths = ["", "s", "src/M", "src/.", "ü", "none/", "~", &absolute].map(beginning);
        assert_eq!(
            found(folder.path(), &paths),
            [
                vec!["src/", "target/", "Über/", "notes.md"],
                vec!["src/"],
                vec!["src/main.rs", "src/my file.rs"],
                vec!["src/.hidden"],
                vec!["Über/"],
                vec![],
                vec!["~/"],
                vec![&format!("{absolute}tes.md")],
            ]
        );
    }

    #[test]
    fn names_that_the_disk_has_decomposed_are_completed_as_it_spells_them() {
        let folder = tempfile::tempdir().unwrap();
        let [cafe, han] = ["Cafe\u{301}", "\u{1112}\u{1161}\u{11ab}.md"];
        fs::create_dir(folder.path().join(cafe)).unwrap();
        fs::write(folder.path().join(cafe).join(han), "").unwrap();
        // Some file systems spell all names in one way.
        let spelt = |path: &Path| {
            fs::read_dir(path).unwrap().next().unwrap().unwrap().file_name().into_string().unwrap()
        };
        let cafe = spelt(folder.path());
        let han = spelt(&folder.path().join(&cafe));
        let beginning = |path: &str| Wanted::Beginning { path: path.to_owned() };
        let matching = |query: &str| Wanted::Matching { query: query.to_owned(), is_new: true };
        let wanted = [beginning("./café"), beginning("./Café/한"), matching("café/한")];
        let path = format!("{cafe}/{han}");
        let expected = [vec![format!("./{cafe}/")], vec![format!("./{path}")], vec![path]];
        assert_eq!(found(folder.path(), &wanted), expected);
    }

    #[test]
    fn new_files_are_found_after_a_while() {
        let folder = project();
        let clock = Clock::manual(0);
        let (answers, answered) = mpsc::channel();
        let finder =
            FileFinder::start(clock.clone(), Box::new(move |found| answers.send(found).unwrap())).unwrap();
        let ask = |id: u64| {
            let wanted = Wanted::Matching { query: "later".to_owned(), is_new: true };
            finder.post(FileRequest { id, cwd: folder.path().to_owned(), home: None, wanted });
            answered.iter().find(|found| found.id == id && found.is_done).unwrap().paths
        };
        assert_eq!(ask(1), [""; 0]);
        fs::write(folder.path().join("later.md"), "").unwrap();
        assert_eq!(ask(2), [""; 0], "the paths are fresh");
        clock.advance(FRESH);
        assert_eq!(ask(3), ["later.md"]);
    }
}
