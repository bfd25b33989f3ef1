//! Instruction files: AGENTS.md, CLAUDE.md and similar files.
//!
//! They are part of every request, so a folder of another user must not choose them.
//! The user's own folder may link anywhere. A project's file that links out of
//! the project is read only if the project is trusted. In a folder above the project,
//! or one that is writable for everyone, pi reads only files of the user, of root or of
//! the project's owner. pi never reads devices, pipes, `/proc` and `/sys`, and reading
//! never delays the program for long.

use std::collections::HashSet;
use std::fs::{self, Metadata};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::util::git::Repository;
use crate::util::os;

use super::text::{InvalidText, decode};

/// In each folder, the first of these that is a file is used.
const NAMES: &[&str] = &["AGENTS.override.md", "AGENTS.md", "AGENTS.MD", "CLAUDE.md", "CLAUDE.MD"];

/// Maximum number of bytes read of one file.
const MAX_BYTES: usize = 64 * 1024;

/// Maximum total reading time; more means that a mount does not respond.
const TIME_LIMIT: Duration = Duration::from_secs(2);

/// An instruction file with its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextFile {
    /// Where it is.
    pub path: PathBuf,
    /// What it says.
    pub text: String,
}

/// A project's instruction file that links out of the project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutsideLink {
    /// Where the link is.
    pub path: PathBuf,
    /// The target, with all links resolved.
    pub target: PathBuf,
}

/// The instruction files that apply to a folder.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ContextFiles {
    /// The user's own first, then from the file system's root down.
    pub files: Vec<ContextFile>,
    /// Links that need trust, whether they were read or not.
    pub links: Vec<OutsideLink>,
    /// Files that were not read, or only in part, and why; one line each.
    pub problems: Vec<String>,
}

/// Reads the instruction files that apply to `cwd`: the user's own in `agent_dir`
/// first, then from the file system's root down. `is_trusted` decides whether links out
/// of the project are followed. Blocks, at most for `TIME_LIMIT`.
pub fn context_files(agent_dir: &Path, cwd: &Path, is_trusted: bool) -> ContextFiles {
    let (agent_dir, cwd) = (agent_dir.to_owned(), cwd.to_owned());
    let read = move |steps: &mpsc::Sender<Step>| read_all(&agent_dir, &cwd, is_trusted, steps);
    collect(read, TIME_LIMIT)
}

/// One result of reading.
enum Step {
    /// Starts to read this folder.
    Folder(PathBuf),
    File(ContextFile),
    Link(OutsideLink),
    Problem(String),
}

/// Runs `read` on a thread of its own, and collects its results within `limit`. A
/// thread that hangs is abandoned.
fn collect(read: impl FnOnce(&mpsc::Sender<Step>) + Send + 'static, limit: Duration) -> ContextFiles {
    let (steps, taken) = mpsc::channel();
    let mut found = ContextFiles::default();
    if let Err(error) = thread::Builder::new().name("context-files".to_owned()).spawn(move || read(&steps)) {
        found.problems.push(format!("cannot read instruction files: cannot start a thread: {error}"));
        return found;
    }
    // Many short waits share one limit, because a timer thread could fail to start too.
    let mut folder = PathBuf::new();
    let clock = crate::util::clock::Clock::system();
    let end = clock.monotonic() + limit;
    loop {
        match taken.recv_timeout(end.saturating_sub(clock.monotonic())) {
            Ok(Step::Folder(path)) => folder = path,
            Ok(Step::File(file)) => found.files.push(file),
            Ok(Step::Link(link)) => found.links.push(link),
            Ok(Step::Problem(problem)) => found.problems.push(problem),
            Err(mpsc::RecvTimeoutError::Disconnected) => return found,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                let (folder, seconds) = (folder.display(), limit.as_secs_f64());
                found.problems.push(format!(
                    "cannot read instruction files in {folder} and below: the disk did not respond within {seconds} s"
                ));
                return found;
            }
        }
    }
}

fn read_all(agent_dir: &Path, cwd: &Path, is_trusted: bool, steps: &mpsc::Sender<Step>) {
    let mut folders: Vec<&Path> = cwd.ancestors().collect();
    folders.push(agent_dir);
    folders.reverse();
    // After the time limit, nothing receives the results.
    let say = |step: Step| drop(steps.send(step));
    say(Step::Folder(cwd.to_owned()));
    let project = Project::of(cwd);
    let shadowed = shadowed_checkout(cwd);
    let mut seen = HashSet::new();
    for folder in folders {
        say(Step::Folder(folder.to_owned()));
        let Some((path, target)) = first_file(folder) else { continue };
        let is_hidden = shadowed
            .as_ref()
            .is_some_and(|(main, names)| folder == main && names.iter().any(|name| path.ends_with(name)));
        if is_hidden || !seen.insert(target.clone()) {
            continue;
        }
        let is_own = folder == agent_dir;
        if !is_own && project.is_outside(folder, &target) {
            say(Step::Link(OutsideLink { path: path.clone(), target: target.clone() }));
            if !is_trusted {
                continue;
            }
        }
        let may_read = |metadata: &Metadata| is_own || project.accepts(folder, metadata);
        match read_file(&target, may_read) {
            Ok(FileText { text, too_long_bytes, invalid }) => {
                if let Some(n_bytes) = too_long_bytes {
                    say(Step::Problem(too_long(&path, n_bytes)));
                }
                if let Some(invalid) = invalid {
                    say(Step::Problem(format!("{}:{}: {invalid}", path.display(), invalid.line)));
                }
                say(Step::File(ContextFile { path, text }));
            }
            Err(error) => say(Step::Problem(format!("{} is not read: {error}", path.display()))),
        }
    }
}

fn too_long(path: &Path, n_bytes: u64) -> String {
    let (limit_kib, kib) = (MAX_BYTES / 1024, n_bytes.div_ceil(1024));
    format!("{} has {kib} KiB; only its first {limit_kib} KiB are loaded", path.display())
}

/// The first of [`NAMES`] in `folder` that is a file, and its canonical path.
fn first_file(folder: &Path) -> Option<(PathBuf, PathBuf)> {
    NAMES.iter().find_map(|name| {
        let path = folder.join(name);
        if !fs::metadata(&path).ok()?.is_file() {
            return None;
        }
        let target = fs::canonicalize(&path).ok()?;
        Some((path, target))
    })
}

/// The project around the folder of a session.
struct Project {
    /// The top of the repository, or the folder itself without one; canonical.
    root: PathBuf,
    owner: Option<u32>,
}

impl Project {
    fn of(cwd: &Path) -> Self {
        let root = Repository::find(cwd).map_or_else(|| cwd.to_owned(), |repository| repository.root);
        let root = fs::canonicalize(&root).unwrap_or(root);
        Self { root, owner: fs::metadata(cwd).ok().and_then(|metadata| os::owner(&metadata)) }
    }

    /// Whether the file of `folder` with the canonical path `target` is outside the
    /// project; for a folder above the project, outside that folder.
    fn is_outside(&self, folder: &Path, target: &Path) -> bool {
        let folder = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
        let within = if folder.starts_with(&self.root) { &self.root } else { &folder };
        !target.starts_with(within)
    }

    /// Whether pi reads a file of this owner in `folder`.
    fn accepts(&self, folder: &Path, file: &Metadata) -> bool {
        let real = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
        let is_shared = fs::metadata(folder).map_or(true, |metadata| os::is_writable_by_all(&metadata));
        let is_known = |owner: u32| os::is_this_user(owner) || owner == 0 || Some(owner) == self.owner;
        (real.starts_with(&self.root) && !is_shared) || os::owner(file).is_some_and(is_known)
    }
}

/// What was read of a file.
#[derive(Debug, PartialEq, Eq)]
struct FileText {
    text: String,
    /// The size of the file if it exceeds [`MAX_BYTES`] and the text is only the beginning.
    too_long_bytes: Option<u64>,
    invalid: Option<InvalidText>,
}

/// The text of the file at `target`, a canonical path.
///
/// # Errors
/// If it cannot be read or must not be.
fn read_file(target: &Path, may_read: impl FnOnce(&Metadata) -> bool) -> Result<FileText, String> {
    if ["/proc", "/sys", "/dev"].iter().any(|special| target.starts_with(special)) {
        return Err(format!("it leads to {}", target.display()));
    }
    let file = os::open_plain(target).map_err(|error| error.to_string())?;
    // Check the opened file, because the path may have changed since.
    let metadata = file.metadata().map_err(|error| error.to_string())?;
    if !metadata.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    if !may_read(&metadata) {
        return Err("it belongs to another user".to_owned());
    }
    let mut bytes = Vec::new();
    file.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    let is_long = bytes.len() > MAX_BYTES;
    bytes.truncate(MAX_BYTES);
    if is_long {
        // Do not split the last character.
        let start = bytes.len() - bytes.utf8_chunks().last().map_or(0, |chunk| chunk.invalid().len());
        bytes.truncate(start);
    }
    let (text, invalid) = decode(&bytes, false);
    let mut text = text.strip_prefix('\u{feff}').unwrap_or(&text).trim().to_owned();
    if is_long {
        let (limit_kib, path) = (MAX_BYTES / 1024, target.display());
        text = format!(
            "{text}\n\n[Truncated: these are the first {limit_kib} KiB of the file. Read the rest of {path} if you need it.]"
        );
    }
    Ok(FileText { text, too_long_bytes: is_long.then_some(metadata.len()), invalid })
}

/// A worktree inside its own main checkout finds the main checkout's files above
/// it a second time: returns that checkout's folder, and the names the worktree has too.
fn shadowed_checkout(cwd: &Path) -> Option<(PathBuf, Vec<&'static str>)> {
    let (worktree, common) = cwd.ancestors().find_map(|folder| Some((folder, common_git_dir(folder)?)))?;
    let is_main = |folder: &&Path| git_dir_of(folder).is_some_and(|git_dir| git_dir == common);
    let main = worktree.ancestors().skip(1).find(is_main)?;
    let names = NAMES.iter().copied().filter(|name| worktree.join(name).is_file()).collect();
    Some((main.to_owned(), names))
}

/// The git directory that the linked worktree at `folder` shares with its main checkout. `None` for other
/// folders: a submodule has a `.git` file too, but a repository of its own.
fn common_git_dir(folder: &Path) -> Option<PathBuf> {
    let git_dir = folder.join(".git").is_file().then(|| git_dir_of(folder))??;
    let worktrees =
        git_dir.parent().filter(|parent| parent.file_name().is_some_and(|name| name == "worktrees"))?;
    worktrees.parent().map(Path::to_owned)
}

/// The git directory of the working tree that begins at `folder`, with all links resolved.
fn git_dir_of(folder: &Path) -> Option<PathBuf> {
    let repository = Repository::find(folder).filter(|repository| repository.root == folder)?;
    fs::canonicalize(repository.git_dir).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files below a temporary folder, and the search from its folder `cwd`.
    struct Tree(tempfile::TempDir);

    impl Tree {
        fn new(files: &[(&str, &str)]) -> Self {
            let tree = Self(tempfile::tempdir().unwrap());
            for (path, text) in files {
                let path = tree.path(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            tree
        }

        fn path(&self, path: &str) -> PathBuf {
            fs::canonicalize(self.0.path()).unwrap().join(path)
        }

        fn link(&self, path: &str, target: impl AsRef<Path>) -> &Self {
            fs::create_dir_all(self.path(path).parent().unwrap()).unwrap();
            std::os::unix::fs::symlink(target, self.path(path)).unwrap();
            self
        }

        fn find(&self, cwd: &str, is_trusted: bool) -> ContextFiles {
            fs::create_dir_all(self.path(cwd)).unwrap();
            let mut found = context_files(&self.path("agent"), &self.path(cwd), is_trusted);
            // Ignore files above the temporary folder.
            found.files.retain(|file| file.path.starts_with(self.path("")));
            found
        }

        #[track_caller]
        fn check(&self, cwd: &str, is_trusted: bool, expected: &[&str]) -> ContextFiles {
            let found = self.find(cwd, is_trusted);
            let files = found.files.iter().map(|file| {
                let relative = file.path.strip_prefix(self.path("")).unwrap();
                format!("{}={}", relative.display(), file.text)
            });
            assert_eq!(files.collect::<Vec<_>>(), expected);
            found
        }
    }

    #[track_caller]
    fn check(files: &[(&str, &str)], cwd: &str, expected: &[&str]) {
        let found = Tree::new(files).check(cwd, false, expected);
        assert_eq!((found.links, found.problems), (Vec::new(), Vec::new()));
    }

    #[test]
    fn the_users_file_comes_first_then_from_the_root_down() {
        check(
            &[("agent/AGENTS.md", "mine"), ("a/AGENTS.md", "\u{feff}outer"), ("a/b/CLAUDE.md", "inner")],
            "a/b",
            &["agent/AGENTS.md=mine", "a/AGENTS.md=outer", "a/b/CLAUDE.md=inner"],
        );
    }

    #[test]
    fn one_file_counts_per_folder_and_folders_do_not() {
        check(&[("a/AGENTS.md/x", ""), ("a/CLAUDE.md", "c")], "a", &["a/CLAUDE.md=c"]);
        check(
            &[("a/AGENTS.md", "plain"), ("a/AGENTS.override.md", "override")],
            "a",
            &["a/AGENTS.override.md=override"],
        );
    }

    #[test]
    fn a_worktree_inside_its_checkout_does_not_see_the_same_file_twice() {
        check(
            &[
                ("main/.git/HEAD", "ref: refs/heads/main"),
                ("main/.git/worktrees/w/HEAD", "ref: refs/heads/w"),
                ("main/AGENTS.md", "main"),
                ("main/w/.git", "gitdir: ../.git/worktrees/w"),
                ("main/w/AGENTS.md", "w"),
            ],
            "main/w",
            &["main/w/AGENTS.md=w"],
        );
    }

    #[test]
    fn submodule_sees_the_files_of_its_superproject() {
        let superproject = [("main/.git/HEAD", "ref: refs/heads/main"), ("main/AGENTS.md", "main")];
        let module = [
            ("main/.git/modules/repos/x/HEAD", "ref: refs/heads/x"),
            ("main/repos/x/.git", "gitdir: ../../.git/modules/repos/x"),
        ];
        let with = |more: &[(&'static str, &'static str)]| [&superproject[..], &module[..], more].concat();
        check(
            &with(&[("main/repos/x/AGENTS.md", "x")]),
            "main/repos/x",
            &["main/AGENTS.md=main", "main/repos/x/AGENTS.md=x"],
        );
        check(
            &with(&[("main/repos/x/CLAUDE.md", "x")]),
            "main/repos/x/src",
            &["main/AGENTS.md=main", "main/repos/x/CLAUDE.md=x"],
        );
        check(&with(&[]), "main/repos/x", &["main/AGENTS.md=main"]);
        // A worktree of the submodule, inside it and beside it.
        let linked = [
            ("main/repos/x/AGENTS.md", "x"),
            ("main/.git/modules/repos/x/worktrees/w/HEAD", "ref: refs/heads/w"),
        ];
        let inside = [("main/repos/x/w/.git", "gitdir: ../../../.git/modules/repos/x/worktrees/w")];
        check(
            &with(&[&linked[..], &inside, &[("main/repos/x/w/AGENTS.md", "w")]].concat()),
            "main/repos/x/w",
            &["main/AGENTS.md=main", "main/repos/x/w/AGENTS.md=w"],
        );
        let beside =
            [("main/w/.git", "gitdir: ../.git/modules/repos/x/worktrees/w"), ("main/w/AGENTS.md", "w")];
        check(
            &with(&[&linked[..], &beside].concat()),
            "main/w",
            &["main/AGENTS.md=main", "main/w/AGENTS.md=w"],
        );
    }

    #[test]
    fn submodule_of_a_worktree_does_not_see_the_main_checkout() {
        check(
            &[
                ("main/.git/HEAD", "ref: refs/heads/main"),
                ("main/.git/worktrees/w/HEAD", "ref: refs/heads/w"),
                ("main/.git/worktrees/w/modules/x/HEAD", "ref: refs/heads/x"),
                ("main/AGENTS.md", "main"),
                ("main/w/.git", "gitdir: ../.git/worktrees/w"),
                ("main/w/AGENTS.md", "w"),
                ("main/w/x/.git", "gitdir: ../../.git/worktrees/w/modules/x"),
                ("main/w/x/AGENTS.md", "x"),
            ],
            "main/w/x",
            &["main/w/AGENTS.md=w", "main/w/x/AGENTS.md=x"],
        );
    }

    #[test]
    fn repositories_with_other_git_directories_see_the_files_above_them() {
        let above = [("main/.git/HEAD", "ref: refs/heads/main"), ("main/AGENTS.md", "main")];
        let clone = [("main/x/.git/HEAD", "ref: refs/heads/x"), ("main/x/AGENTS.md", "x")];
        let both = ["main/AGENTS.md=main", "main/x/AGENTS.md=x"];
        check(&[&above[..], &clone].concat(), "main/x", &both);
        let separate = [
            ("elsewhere/HEAD", "ref: refs/heads/x"),
            ("main/x/.git", "gitdir: ../../elsewhere"),
            ("main/x/AGENTS.md", "x"),
        ];
        check(&[&above[..], &separate].concat(), "main/x", &both);
        // A worktree of the nested clone shadows the clone alone.
        let worktree = [
            ("main/x/.git/worktrees/w/HEAD", "ref: refs/heads/w"),
            ("main/x/w/.git", "gitdir: ../.git/worktrees/w"),
            ("main/x/w/AGENTS.md", "w"),
        ];
        check(
            &[&above[..], &clone, &worktree].concat(),
            "main/x/w",
            &["main/AGENTS.md=main", "main/x/w/AGENTS.md=w"],
        );
    }

    #[test]
    fn a_link_out_of_the_project_is_read_only_with_trust() {
        let tree = Tree::new(&[("secret", "s"), ("repo/.git/HEAD", "ref: refs/heads/main")]);
        tree.link("repo/AGENTS.md", "../secret").link("repo/sub/AGENTS.md", "../../secret");
        let link = |path: &str| OutsideLink { path: tree.path(path), target: tree.path("secret") };
        let found = tree.check("repo", false, &[]);
        assert_eq!((found.links, found.problems), (vec![link("repo/AGENTS.md")], Vec::new()));
        let found = tree.check("repo", true, &["repo/AGENTS.md=s"]);
        assert_eq!(found.links, [link("repo/AGENTS.md")]);
        // The folder itself may be a link out of the project.
        fs::create_dir(tree.path("elsewhere")).unwrap();
        fs::write(tree.path("elsewhere/AGENTS.md"), "e").unwrap();
        tree.link("other/AGENTS.md", "dir/AGENTS.md").link("other/dir", "../elsewhere");
        assert_eq!(tree.check("other", false, &[]).links.len(), 1);
    }

    #[test]
    fn links_within_the_project_and_the_users_own_are_followed() {
        let tree = Tree::new(&[
            ("dotfiles/agents", "mine"),
            ("repo/.git/HEAD", "ref: refs/heads/main"),
            ("repo/docs/agents", "ours"),
        ]);
        tree.link("agent/AGENTS.md", "../dotfiles/agents").link("repo/sub/CLAUDE.md", "../docs/agents");
        let found = tree.check("repo/sub", false, &["agent/AGENTS.md=mine", "repo/sub/CLAUDE.md=ours"]);
        assert_eq!(found.links, []);
        // A project that is opened through a link is the same project.
        tree.link("shortcut", "repo");
        assert_eq!(tree.find("shortcut/sub", false).files.len(), 2);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn nothing_is_read_from_proc_sys_and_devices_even_with_trust() {
        for target in ["/proc/self/environ", "/proc/kmsg", "/sys/kernel/mm/transparent_hugepage/enabled"] {
            let tree = Tree::new(&[]);
            tree.link("a/AGENTS.md", target).link("agent/CLAUDE.md", target);
            let found = tree.check("a", true, &[]);
            if Path::new(target).exists() {
                let is_named = |problem: &String| problem.contains(" is not read: it leads to /");
                assert!(!found.problems.is_empty() && found.problems.iter().all(is_named), "{found:?}");
            }
        }
        let tree = Tree::new(&[("a/CLAUDE.md", "c")]);
        tree.link("a/AGENTS.md", "/dev/zero").check("a", true, &["a/CLAUDE.md=c"]);
    }

    #[test]
    fn a_pipe_is_passed_over_without_waiting() {
        let tree = Tree::new(&[("a/CLAUDE.md", "c")]);
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        let pipe = tree.path("a/AGENTS.md");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        tree.check("a", false, &["a/CLAUDE.md=c"]);
        // The file is replaced after it was checked.
        assert_eq!(read_file(&pipe, |_| true), Err("it is not a regular file".to_owned()));
    }

    #[test]
    fn a_disk_that_does_not_answer_costs_only_what_it_has() {
        let (_never, hang) = mpsc::channel::<()>();
        let file = ContextFile { path: "/a/AGENTS.md".into(), text: "a".to_owned() };
        let first = file.clone();
        let read = move |steps: &mpsc::Sender<Step>| {
            steps.send(Step::File(first)).unwrap();
            steps.send(Step::Folder("/a/hung".into())).unwrap();
            hang.recv().unwrap_or_default();
        };
        let found = collect(read, Duration::from_millis(50));
        assert_eq!(found.files, [file]);
        let problem =
            "cannot read instruction files in /a/hung and below: the disk did not respond within 0.05 s";
        assert_eq!(found.problems, [problem]);
    }

    #[test]
    fn a_long_file_is_cut_between_characters_and_the_model_told() {
        let long = "ü".repeat(MAX_BYTES);
        let tree = Tree::new(&[("a/AGENTS.md", &format!("x{long}")), ("b/AGENTS.md", &long[..MAX_BYTES])]);
        let found = tree.find("a", false);
        let (text, rest) = found.files[0].text.split_once("\n\n").unwrap();
        assert_eq!(text, format!("x{}", &long[..MAX_BYTES - 2]));
        assert!(
            rest.starts_with("[Truncated: these are the first 64 KiB of the file. Read the rest of /"),
            "{rest}"
        );
        let path = tree.path("a/AGENTS.md");
        assert_eq!(
            found.problems,
            [format!("{} has 129 KiB; only its first 64 KiB are loaded", path.display())]
        );
        assert_eq!(tree.find("b", false).problems, Vec::<String>::new());
    }

    #[test]
    fn file_that_is_not_utf_8_is_loaded_and_its_first_wrong_byte_named() {
        let tree = Tree::new(&[("a/AGENTS.md", "")]);
        let path = tree.path("a/AGENTS.md");
        fs::write(&path, b"one\ncaf\xe9\n").unwrap();
        let found = tree.check("a", false, &["a/AGENTS.md=one\ncaf\u{fffd}"]);
        let problem = "byte 7 (0xe9) is not UTF-8 and is replaced by U+FFFD; save the file as UTF-8";
        assert_eq!(found.problems, [format!("{}:2: {problem}", path.display())]);
        // The limit cuts a character in two, which is no problem of the file.
        fs::write(&path, format!("x{}", "ü".repeat(MAX_BYTES))).unwrap();
        let found = tree.find("a", false);
        assert!(found.problems.len() == 1 && found.problems[0].contains("KiB"), "{:?}", found.problems);
    }

    #[test]
    fn in_a_shared_folder_only_files_of_known_owners_count() {
        use std::os::unix::fs::PermissionsExt as _;

        let tree = Tree::new(&[("tmp/AGENTS.md", "planted"), ("tmp/mine/AGENTS.md", "m")]);
        fs::set_permissions(tree.path("tmp"), fs::Permissions::from_mode(0o1777)).unwrap();
        let file = fs::metadata(tree.path("tmp/AGENTS.md")).unwrap();
        let me = os::owner(&file).unwrap();
        let project = |root: &str, owner| Project { root: tree.path(root), owner: Some(owner) };
        // As if the file belonged to another user.
        let other = me.wrapping_add(4_242);
        let accepts = |root: &str, folder: &str| project(root, me).accepts(&tree.path(folder), &file);
        assert!(accepts("tmp/mine", "tmp") && accepts("tmp", "tmp") && accepts("tmp/mine", "tmp/mine"));
        if rustix::process::geteuid().is_root() {
            // Only root can change a file's owner.
            let path = tree.path("tmp/AGENTS.md");
            std::os::unix::fs::chown(&path, Some(other), None).unwrap();
            let file = fs::metadata(&path).unwrap();
            let accepts = |root: &str, owner: u32, folder: &str| {
                project(root, owner).accepts(&tree.path(folder), &file)
            };
            assert!(!accepts("tmp/mine", me, "tmp"), "above the project");
            assert!(!accepts("tmp", me, "tmp"), "everybody may write there");
            assert!(accepts("tmp/mine", other, "tmp"), "the owner of the project");
            assert!(accepts("tmp/mine", me, "tmp/mine"), "in the project");
            let found = tree.check("tmp/mine", false, &["tmp/mine/AGENTS.md=m"]);
            assert_eq!(
                found.problems,
                [format!("{} is not read: it belongs to another user", path.display())]
            );
        }
    }
}
