//! Turns a command line into a process: shell, directory, environment.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::agent::{Environment, ToolError};
use crate::util::os::NULL_DEVICE;
use crate::util::process::{Command, Running};
use crate::util::worker::{self, WorkError};

use super::super::spill;

/// How long a cancelled command that has not started may wait for the disk.
const GRACE: Duration = Duration::from_millis(300);

/// How commands run, for the model and for the user.
#[derive(Debug, Clone)]
pub struct BashConfig {
    /// The user's choice of shell; it must exist.
    pub shell_path: Option<PathBuf>,
    /// A line before every command.
    pub command_prefix: Option<String>,
    /// The `PATH` that commands inherit.
    pub search_path: Option<OsString>,
    /// Prepended to `search_path`.
    pub bin_dir: Option<PathBuf>,
    /// Added to the inherited environment.
    pub env: Vec<(OsString, OsString)>,
    /// The folder for long output.
    pub temp_dir: PathBuf,
    /// Limits of the model's commands.
    pub limits: CommandLimits,
}

/// Limits of the model's commands. Zero means no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CommandLimits {
    /// The timeout of a call that sets none.
    pub default_timeout: Option<Duration>,
    /// Address space of each process, in megabytes.
    pub memory_mb: u64,
    /// Processes of the user's account.
    pub processes: u64,
}

impl CommandLimits {
    /// `line` as a shell runs it within the limits of memory and processes. The limit of processes comes
    /// last, because setting it may need a process.
    pub(super) fn applied_to(&self, line: &str) -> String {
        let memory =
            (self.memory_mb > 0).then(|| format!("ulimit -v {}\n", self.memory_mb.saturating_mul(1_000)));
        let processes = (self.processes > 0).then(|| format!("ulimit -u {}\n", self.processes));
        [memory.unwrap_or_default(), processes.unwrap_or_default(), line.to_owned()].concat()
    }
}

impl BashConfig {
    /// The user's shell, with long output in `temp_dir`.
    pub fn new(temp_dir: PathBuf) -> Self {
        Self {
            shell_path: None,
            command_prefix: None,
            search_path: None,
            bin_dir: None,
            env: Vec::new(),
            temp_dir,
            limits: CommandLimits::default(),
        }
    }

    /// The process that runs `line` in `cwd`, without session variables. Also removes
    /// old output files in the background.
    ///
    /// Another thread checks whether shell and directory exist, because the disk may
    /// not respond; cancelling does not wait for it.
    pub(in crate::tools) async fn prepare(
        &self,
        line: &str,
        cwd: &Path,
        cancel: &CancellationToken,
    ) -> Result<Command, ShellError> {
        spill::remove_old_in_background(&self.temp_dir);
        let (config, line, folder) = (self.clone(), line.to_owned(), cwd.to_owned());
        let asking = worker::run("find-shell", move || config.command(&line, &folder));
        let given_up = async {
            cancel.cancelled().await;
            tokio::time::sleep(GRACE).await;
        };
        tokio::select! {
            biased;
            command = asking => command?,
            () = given_up => Err(ShellError::GivenUp { path: cwd.to_owned() }),
        }
    }

    /// Like [`Self::prepare`]; blocks.
    fn command(&self, line: &str, cwd: &Path) -> Result<Command, ShellError> {
        if !cwd.is_dir() {
            return Err(ShellError::NoDirectory { path: cwd.to_owned() });
        }
        if line.contains('\0') {
            return Err(ShellError::NulCharacter);
        }
        let line = match &self.command_prefix {
            Some(prefix) if !prefix.is_empty() => format!("{prefix}\n{line}"),
            _ => line.to_owned(),
        };
        let mut env: Vec<(OsString, Option<OsString>)> =
            SESSION_VARIABLES.iter().map(|name| (OsString::from(name), None)).collect();
        env.extend(self.path_with_bin_dir().map(|path| ("PATH".into(), Some(path))));
        env.extend(self.env.iter().map(|(name, value)| (name.clone(), Some(value.clone()))));
        Ok(Command {
            program: self.shell()?,
            args: vec!["-c".into(), line.into()],
            cwd: cwd.to_owned(),
            env,
            timeout: None,
        })
    }

    /// Starts the process that [`Self::command`] describes.
    pub(in crate::tools) fn start(
        &self,
        command: &Command,
        cancel: CancellationToken,
    ) -> Result<Running, ShellError> {
        Running::start(command, cancel).map_err(|source| not_started(command, Path::new(NULL_DEVICE), source))
    }

    /// The program that runs commands: the user's choice, `bash` or `sh`.
    ///
    /// # Errors
    /// If there is none.
    pub fn shell(&self) -> Result<PathBuf, ShellError> {
        if let Some(path) = &self.shell_path {
            return if path.is_file() {
                Ok(path.clone())
            } else {
                Err(ShellError::NoShell { path: path.clone() })
            };
        }
        self.find_shell(Path::new("/bin/bash"), Path::new("/bin/sh"))
    }

    /// `bash`, one on the `PATH`, or `sh`.
    fn find_shell(&self, bash: &Path, sh: &Path) -> Result<PathBuf, ShellError> {
        if bash.is_file() {
            return Ok(bash.to_owned());
        }
        let on_path = |name: &str| {
            let folders = std::env::split_paths(self.search_path.as_deref().unwrap_or_default());
            folders.map(|folder| folder.join(name)).find(|path| path.is_file())
        };
        let last = || Some(sh.to_owned()).filter(|path| path.is_file());
        on_path("bash").or_else(|| on_path("sh")).or_else(last).ok_or(ShellError::NoneFound)
    }

    /// `None` leaves `PATH` unchanged.
    fn path_with_bin_dir(&self) -> Option<OsString> {
        let bin_dir = self.bin_dir.clone()?;
        let inherited = self.search_path.clone().unwrap_or_default();
        let folders = std::env::split_paths(&inherited).filter(|folder| *folder != bin_dir);
        // A folder with a separator in its name cannot be in a PATH.
        std::env::join_paths(std::iter::once(bin_dir.clone()).chain(folders)).ok()
    }
}

/// What a command that could not be started lacks: the system reports a missing file without
/// its name.
fn not_started(command: &Command, null_device: &Path, source: io::Error) -> ShellError {
    let shell = command.program.clone();
    if source.kind() == io::ErrorKind::ArgumentListTooLong {
        let n_bytes = command.args.iter().map(|arg| arg.len()).sum();
        return ShellError::TooLong { n_bytes };
    }
    // Commands have no input.
    if let Err(source) = File::open(null_device) {
        return ShellError::NoNullDevice { shell, path: null_device.to_owned(), source };
    }
    if !command.cwd.is_dir() {
        return ShellError::NoDirectory { path: command.cwd.clone() };
    }
    match source.kind() {
        io::ErrorKind::NotFound if shell.is_file() => ShellError::NoInterpreter { shell },
        _ => ShellError::Start { shell, source },
    }
}

/// Describes a session to the commands of its model; `None` leaves a variable out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionVars {
    /// `PI_SESSION_ID`
    pub id: Option<String>,
    /// `PI_SESSION_FILE`; only if the session is saved.
    pub file: Option<PathBuf>,
    /// `PI_PROVIDER`
    pub provider: Option<String>,
    /// `PI_MODEL`
    pub model: Option<String>,
    /// `PI_REASONING_LEVEL`
    pub reasoning_level: Option<String>,
}

const SESSION_VARIABLES: &[&str] =
    &["PI_SESSION_ID", "PI_SESSION_FILE", "PI_PROVIDER", "PI_MODEL", "PI_REASONING_LEVEL"];

impl SessionVars {
    /// Every variable, so that none is inherited from an outer session.
    pub fn variables(self) -> Environment {
        let Self { id, file, provider, model, reasoning_level } = self;
        let values = [
            id.map(OsString::from),
            file.map(PathBuf::into_os_string),
            provider.map(OsString::from),
            model.map(OsString::from),
            reasoning_level.map(OsString::from),
        ];
        SESSION_VARIABLES.iter().map(OsString::from).zip(values).collect()
    }
}

/// Why a command could not be started.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum ShellError {
    #[error("Working directory does not exist: {}", path.display())]
    NoDirectory { path: PathBuf },
    #[error("The shell in shellPath does not exist: {}", path.display())]
    NoShell { path: PathBuf },
    #[error(
        "Commands cannot run here: there is no bash or sh on the PATH, and no /bin/sh. Work with the \
         other tools, or ask the user to install a shell or to name one in the setting shellPath."
    )]
    NoneFound,
    #[error("The command contains a NUL character, which a shell cannot read; remove it")]
    NulCharacter,
    #[error("The command has {n_bytes} bytes, more than the system allows; write it to a file and run that")]
    TooLong { n_bytes: usize },
    #[error("Could not start {}, because {} cannot be opened: {source}", shell.display(), path.display())]
    NoNullDevice { shell: PathBuf, path: PathBuf, source: io::Error },
    #[error(
        "Could not start {}: the file exists, but the interpreter or loader that it names does not. \
         Repair it, or name another shell in the setting shellPath.",
        shell.display()
    )]
    NoInterpreter { shell: PathBuf },
    #[error("Could not start {}: {source}", shell.display())]
    Start { shell: PathBuf, source: io::Error },
    #[error("Command aborted before it started; {} does not respond", path.display())]
    GivenUp { path: PathBuf },
    #[error("Could not start the command: {0}")]
    NoWorker(#[from] WorkError),
}

impl From<ShellError> for ToolError {
    fn from(error: ShellError) -> Self {
        Self(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> BashConfig {
        BashConfig::new(PathBuf::from("/tmp"))
    }

    #[test]
    fn the_bin_dir_comes_first_once() {
        let config = BashConfig {
            bin_dir: Some(PathBuf::from("/a/bin")),
            search_path: Some("/usr/bin:/a/bin:/bin".into()),
            ..config()
        };
        assert_eq!(config.path_with_bin_dir(), Some("/a/bin:/usr/bin:/bin".into()));
        let config = BashConfig { bin_dir: None, ..config };
        assert_eq!(config.path_with_bin_dir(), None);
    }

    #[test]
    fn a_shell_or_directory_that_is_missing_is_an_error() {
        let missing = Path::new("/nonexistent/x");
        let error = config().command("true", missing).unwrap_err();
        assert_eq!(error.to_string(), "Working directory does not exist: /nonexistent/x");
        let config = BashConfig { shell_path: Some(missing.to_owned()), ..config() };
        let error = config.command("true", Path::new("/")).unwrap_err();
        assert_eq!(error.to_string(), "The shell in shellPath does not exist: /nonexistent/x");
    }

    #[test]
    fn what_a_command_lacks_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let script = path("shell");
        std::fs::write(&script, "#!/nonexistent/interpreter\n").unwrap();
        let check = |program: &Path, cwd: &Path, null: &str, kind: io::ErrorKind, expected: &str| {
            let (args, env) = (vec!["-c".into(), "x".repeat(7).into()], Vec::new());
            let (program, cwd) = (program.to_owned(), cwd.to_owned());
            let command = Command { program, args, cwd, env, timeout: None };
            let error = not_started(&command, &path(null), io::Error::from(kind)).to_string();
            assert!(error.replace(folder.path().to_str().unwrap(), "DIR").contains(expected), "{error}");
        };
        let gone = io::ErrorKind::NotFound;
        check(
            &script,
            folder.path(),
            "null",
            gone,
            "DIR/shell, because DIR/null cannot be opened: No such file",
        );
        check(&script, &path("cwd"), "shell", gone, "Working directory does not exist: DIR/cwd");
        check(&script, folder.path(), "shell", gone, "DIR/shell: the file exists, but the interpreter");
        check(&path("none"), folder.path(), "shell", gone, "Could not start DIR/none: entity not found");
        let denied = io::ErrorKind::PermissionDenied;
        check(&script, folder.path(), "shell", denied, "Could not start DIR/shell: permission denied");
        let long = io::ErrorKind::ArgumentListTooLong;
        check(&script, folder.path(), "shell", long, "The command has 9 bytes, more than the system allows");
        let error = config().command("echo \0", folder.path()).unwrap_err().to_string();
        assert_eq!(error, "The command contains a NUL character, which a shell cannot read; remove it");
    }

    #[test]
    fn shell_is_looked_for_in_order_and_its_absence_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let config = BashConfig { search_path: Some(folder.path().as_os_str().to_owned()), ..config() };
        let found = || config.find_shell(&path("usual"), &path("last")).map_err(|error| error.to_string());
        let expected = "Commands cannot run here: there is no bash or sh on the PATH, and no /bin/sh. ";
        assert!(found().unwrap_err().starts_with(expected));
        for name in ["last", "sh", "bash", "usual"] {
            std::fs::write(path(name), "").unwrap();
            assert_eq!(found(), Ok(path(name)));
        }
    }

    #[test]
    fn limits_are_lines_before_the_command() {
        let limits = CommandLimits { memory_mb: 2, processes: 50, ..CommandLimits::default() };
        assert_eq!(limits.applied_to("make"), "ulimit -v 2000\nulimit -u 50\nmake");
        assert_eq!(CommandLimits::default().applied_to("make"), "make");
    }

    #[test]
    fn the_prefix_is_a_line_before_the_command() {
        let config = BashConfig { command_prefix: Some("shopt -s extglob".to_owned()), ..config() };
        let command = config.command("-x", Path::new("/")).unwrap();
        assert_eq!(command.args, ["-c", "shopt -s extglob\n-x"]);
    }
}
