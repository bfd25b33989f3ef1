//! Selects the session from the command line.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::config::{Dirs, Env, Settings};
use crate::modes::{self, UsageError};
use crate::session::{self, FoundSessions, OpenError, OpenSession, SessionScope};
use crate::util::clock::Clock;
use crate::util::paths;

use super::args::Args;

/// The folders of sessions.
#[derive(Debug, Clone)]
pub(super) struct SessionFolders {
    /// Folder of this project's sessions.
    pub(super) folder: PathBuf,
    /// Folder that contains all projects' folders.
    pub(super) root: PathBuf,
    /// Whether the user chose a single folder for all projects.
    pub(super) is_custom: bool,
}

impl SessionFolders {
    /// `--session-dir`, the environment, the settings, or the folder of `cwd`
    /// below the agent's own.
    pub(super) fn new(args: &Args, env: &Env, settings: &Settings, dirs: &Dirs, cwd: &Path) -> Self {
        let expand = |text: String| cwd.join(paths::expand_home(&text, dirs.home.as_deref()));
        let custom = args
            .session_dir
            .clone()
            .map(|path| expand(path.to_string_lossy().into_owned()))
            .or_else(|| env.get("PI_CODING_AGENT_SESSION_DIR").map(expand))
            .or_else(|| settings.session_dir.clone().map(expand));
        match custom {
            Some(folder) => Self { root: folder.clone(), folder, is_custom: true },
            None => {
                let folder = session::project_folder(&dirs.sessions, cwd);
                Self { folder, root: dirs.sessions.clone(), is_custom: false }
            }
        }
    }

    /// Checks that the sessions of this project, or all, can be listed. A folder that does not exist yet
    /// is an error only if the user chose it.
    ///
    /// # Errors
    /// Names the folder and the reason.
    pub(super) fn check(&self, is_all: bool) -> anyhow::Result<()> {
        let folder = if is_all { &self.root } else { &self.folder };
        match std::fs::read_dir(folder) {
            Err(error) if self.is_custom || error.kind() != io::ErrorKind::NotFound => {
                Err(error).with_context(|| format!("cannot read the sessions in {}", folder.display()))
            }
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// The sessions of `cwd`, or all.
    pub(super) fn scope(&self, is_all: bool, cwd: &Path) -> SessionScope {
        if is_all {
            return SessionScope::All;
        }
        SessionScope::Folder { folder: self.folder.clone(), cwd: Some(cwd.to_owned()) }
    }
}

/// The session to open. A folder may contain sessions of several directories, so all
/// matches are compared with `cwd`.
///
/// # Errors
/// If `--session` or `--fork` matches no session, or several, or the copy cannot be written.
pub(super) fn choose(args: &Args, folders: &SessionFolders, cwd: &Path) -> anyhow::Result<OpenSession> {
    if args.continue_session {
        let latest = session::latest(&folders.folder, Some(cwd));
        return Ok(latest.map_or(OpenSession::New, OpenSession::File));
    }
    if let Some(wanted) = &args.fork {
        let source = existing(wanted, folders, cwd)?;
        let copy = session::fork_session(&source, cwd, &folders.folder, Clock::system().now_ms())?;
        return Ok(OpenSession::File(copy));
    }
    if let Some(id) = &args.session_id {
        return with_id(id, folders, cwd);
    }
    match &args.session {
        Some(wanted) => existing(wanted, folders, cwd).map(OpenSession::File),
        None => Ok(OpenSession::New),
    }
}

/// Why `--continue` does not open the file that was changed last; `None` if it does.
pub(super) fn passed_over(args: &Args, folders: &SessionFolders, open: &OpenSession) -> Option<String> {
    let latest = args.continue_session.then(|| session::unrecognised_latest(&folders.folder))??;
    let instead = match open {
        OpenSession::File(_) => "an older session is continued",
        OpenSession::New | OpenSession::WithId(_) | OpenSession::Forked { .. } => "a new session is started",
    };
    let file = latest.display();
    Some(format!("the latest session file could not be read, so {instead}: {file}"))
}

/// The session of this directory with exactly this id, or a new one.
fn with_id(id: &str, folders: &SessionFolders, cwd: &Path) -> anyhow::Result<OpenSession> {
    let new = OpenSession::with_id(id).map_err(|problem| UsageError(format!("--session-id: {problem}")))?;
    let FoundSessions { here, .. } = session::find(&folders.root, &folders.folder, cwd, id);
    let is_it = |path: &PathBuf| session::read_header(path).is_some_and(|header| header.id == id);
    if let Some(path) = here.into_iter().find(is_it) {
        return Ok(OpenSession::File(path));
    }
    modes::report_notes(&[format!("there is no session {id} in this directory; starting it")]);
    Ok(new)
}

/// The session that `wanted` names: its file, its id or the start of that.
fn existing(wanted: &str, folders: &SessionFolders, cwd: &Path) -> anyhow::Result<PathBuf> {
    if wanted.trim().is_empty() {
        // Every id starts with an empty text.
        anyhow::bail!(UsageError::new("the id of the session is empty; list sessions with pi sessions"));
    }
    let is_path = wanted.contains(['/', '\\']) || wanted.ends_with(".jsonl");
    if is_path {
        // Without parts such as `./`, which say nothing.
        let path: PathBuf = cwd.join(wanted).components().collect();
        if !path.try_exists().unwrap_or(true) {
            return Err(OpenError::Missing { path }.into());
        }
        return Ok(path);
    }
    let FoundSessions { here, elsewhere } = session::find(&folders.root, &folders.folder, cwd, wanted);
    if here.is_empty() && elsewhere.is_empty() {
        folders.check(false)?;
    }
    match (here.as_slice(), elsewhere.as_slice()) {
        // The newest session of this directory.
        ([path, ..], _) | ([], [path]) => Ok(path.clone()),
        ([], []) => {
            anyhow::bail!("no session id starts with \"{wanted}\"; list sessions with pi sessions")
        }
        ([], several) => {
            let names: Vec<String> = several.iter().take(5).map(|path| path.display().to_string()).collect();
            anyhow::bail!(
                "several session ids start with \"{wanted}\"; use the path of one: {}",
                names.join(", ")
            )
        }
    }
}
