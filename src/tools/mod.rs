//! The tools the model can call, and their shared parts.
//!
//! One file per tool, with its description for the model in the `.md` of the
//! same name; [`BUILTINS`] lists them. Invariant: the output of a tool
//! is limited, for all files and commands.

mod bash;
mod edit;
mod editor;
mod file_locks;
mod file_versions;
mod find;
mod grep;
mod listing;
mod ls;
mod output;
mod overwritten;
mod path;
mod plain_output;
mod read;
mod selection;
mod spill;
mod unsearched;
mod user_bash;
mod walk;
mod write;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::agent::{Tool, ToolError, ToolRegistry};

pub use crate::util::image::{ImageLimits, ImageProblem, PreparedImage, prepare_image, sniff_mime};
use crate::util::worker;
pub use bash::{Bash, BashConfig, CommandLimits, SessionVars, ShellError};
pub use edit::{DiffRow, Edit, EditPreview, EditTool, preview};
pub use editor::Editor;
pub use file_locks::{FileGuard, FileLocks, Place};
use file_versions::{FileVersions, Version};
pub use find::Find;
pub use grep::Grep;
pub use ls::Ls;
pub use output::{
    ANY_LINES, Head, MAX_BYTES, MAX_LINES, Tail, TruncatedBy, Truncation, format_size, saved_output,
    truncate_head, truncate_tail,
};
pub use path::{resolve, resolve_mention};
pub use read::{Read, omitted_image_note};
pub use selection::{ToolSelection, UnknownTool, only_edits, select, selected, tool_names};
pub use user_bash::{UserBashOutcome, run_user_command};
pub use write::Write;

/// The configuration of one session's tools.
#[derive(Debug, Clone)]
pub struct ToolsConfig {
    /// The directory that `~` stands for.
    pub home: Option<PathBuf>,
    /// How images are made to fit.
    pub images: ImageLimits,
    /// The shell of `bash`.
    pub bash: BashConfig,
}

/// A built-in tool.
#[derive(Debug)]
pub struct Builtin {
    /// The name the model calls it by.
    pub name: &'static str,
    /// Whether it is active by default.
    pub default_active: bool,
    new: fn(&ToolsConfig, &Files) -> Arc<dyn Tool>,
}

/// State that the tools of one session share.
#[derive(Debug, Clone, Default)]
struct Files {
    locks: FileLocks,
    versions: FileVersions,
    /// Serves files in place of the disk.
    editor: Option<Arc<dyn Editor>>,
}

impl Files {
    fn editor(&self) -> Option<&dyn Editor> {
        self.editor.as_deref()
    }

    /// Whether the file differs from the one the model knows. Blocks.
    fn has_changed(&self, path: &Path) -> bool {
        let n_bytes = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
        match editor::unsaved_at(self.editor(), path, n_bytes) {
            Some(text) => self.versions.differs(path, &Version::of(text.as_bytes())),
            None => self.versions.has_changed(path),
        }
    }
}

/// Every built-in tool, in the order of the request.
pub const BUILTINS: &[Builtin] = &[
    Builtin {
        name: "read",
        default_active: true,
        new: |config, files| Arc::new(Read::new(config.home.clone(), config.images, files.clone())),
    },
    Builtin { name: "bash", default_active: true, new: |config, _| Arc::new(Bash::new(config.bash.clone())) },
    Builtin {
        name: "edit",
        default_active: true,
        new: |config, files| Arc::new(EditTool::new(config.home.clone(), files.clone())),
    },
    Builtin {
        name: "write",
        default_active: true,
        new: |config, files| Arc::new(Write::new(config.home.clone(), files.clone())),
    },
    Builtin {
        name: "grep",
        default_active: false,
        new: |config, _| Arc::new(Grep::new(config.home.clone())),
    },
    Builtin {
        name: "find",
        default_active: false,
        new: |config, _| Arc::new(Find::new(config.home.clone())),
    },
    Builtin { name: "ls", default_active: false, new: |config, _| Arc::new(Ls::new(config.home.clone())) },
];

/// All built-in tools, active by default or not, in the order of [`BUILTINS`], for
/// one session.
///
/// They share one [`FileLocks`], so that calls of `edit` and `write` on the same file
/// are serialised, and the file versions that the model has seen.
pub fn builtins(config: &ToolsConfig) -> Vec<Arc<dyn Tool>> {
    with_files(config, &FileLocks::default(), None)
}

fn with_files(
    config: &ToolsConfig,
    locks: &FileLocks,
    editor: Option<Arc<dyn Editor>>,
) -> Vec<Arc<dyn Tool>> {
    let files = Files { locks: locks.clone(), versions: FileVersions::default(), editor };
    BUILTINS.iter().map(|builtin| (builtin.new)(config, &files)).collect()
}

/// The built-in tools whose names are in `active`. Each session that calls
/// [`ToolRegistry::for_session`] has its own file versions; all share the file locks.
pub fn registry(config: &ToolsConfig, active: &[String]) -> ToolRegistry {
    registry_with(config, active, FileLocks::default(), None)
}

/// As [`registry`], with locks that other registries share, and files that `editor` serves.
pub fn registry_with(
    config: &ToolsConfig,
    active: &[String],
    locks: FileLocks,
    editor: Option<Arc<dyn Editor>>,
) -> ToolRegistry {
    let (config, active) = (config.clone(), active.to_vec());
    ToolRegistry::per_session(move || {
        let is_active = |tool: &Arc<dyn Tool>| active.iter().any(|name| *name == tool.spec().name);
        with_files(&config, &locks, editor.clone()).into_iter().filter(is_active).collect()
    })
}

/// Parses the arguments of a call.
fn parse<T: DeserializeOwned>(arguments: Value) -> Result<T, ToolError> {
    serde_json::from_value(arguments).map_err(|error| ToolError(format!("Invalid arguments: {error}")))
}

/// A count, of any JSON number type, as an integer of at least `min`.
fn whole(number: f64, min: u64) -> u64 {
    // The cast saturates; not-a-number becomes 0.
    (number as u64).max(min)
}

/// How long a cancelled call may take to end by itself.
const GRACE: Duration = Duration::from_millis(300);

/// Runs `work` on a thread where it may block on the disk or compute for long.
///
/// `work` polls the token itself if it takes long. A call that does not end within
/// [`GRACE`] after cancellation is blocked in the kernel, for example by a dead mount:
/// its thread is abandoned, and the result names the abandoned `what`.
async fn blocking<T: Send + 'static>(
    cancel: &CancellationToken,
    what: impl FnOnce() -> String,
    work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    let work = worker::run("tool", work);
    let given_up = async {
        cancel.cancelled().await;
        tokio::time::sleep(GRACE).await;
    };
    tokio::select! {
        biased;
        result = work => match result {
            Ok(result) => result,
            Err(error) => Err(ToolError(format!("The tool failed: {error}"))),
        },
        () = given_up => Err(ToolError(format!(
            "{}; abandoned {} because the system did not respond", ToolError::aborted(), what()
        ))),
    }
}

fn check_cancelled(cancel: &CancellationToken) -> Result<(), ToolError> {
    if cancel.is_cancelled() { Err(ToolError::aborted()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;
    use crate::agent::{Touches, validate};

    fn config() -> ToolsConfig {
        ToolsConfig {
            home: None,
            images: ImageLimits::default(),
            bash: BashConfig::new(PathBuf::from("/tmp")),
        }
    }

    #[test]
    fn rows_and_tools_agree() {
        let tools = builtins(&config());
        for (row, tool) in BUILTINS.iter().zip(&tools) {
            assert_eq!(row.name, tool.spec().name);
        }
        let names: BTreeSet<&str> = BUILTINS.iter().map(|row| row.name).collect();
        assert_eq!(names.len(), BUILTINS.len(), "no two tools share a name");
    }

    #[test]
    fn every_tool_describes_itself_and_its_parameters() {
        for tool in builtins(&config()) {
            let spec = tool.spec();
            assert_eq!(spec.check(), Ok(()));
            let snippet = spec.snippet.as_deref().unwrap();
            assert!(!spec.description.is_empty() && !snippet.is_empty(), "{}", spec.name);
            assert_eq!(spec.description.trim(), spec.description, "{}", spec.name);
            assert!(!snippet.contains('\n'), "{}", spec.name);
            let properties = spec.parameters["properties"].as_object().unwrap();
            for (name, property) in properties {
                assert!(property["description"].is_string(), "{}.{name}", spec.name);
            }
            for required in spec.parameters["required"].as_array().unwrap() {
                assert!(properties.contains_key(required.as_str().unwrap()), "{}", spec.name);
            }
        }
    }

    #[test]
    fn every_tool_has_its_description_beside_it() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tools");
        for tool in builtins(&config()) {
            let name = &tool.spec().name;
            let beside = [folder.join(format!("{name}.md")), folder.join(name).join(format!("{name}.md"))];
            let file = beside.into_iter().find(|path| path.exists()).unwrap();
            assert_eq!(std::fs::read_to_string(file).unwrap().trim(), tool.spec().description);
        }
    }

    #[test]
    fn every_tool_declares_what_a_call_touches() {
        let check = |name: &str, arguments: Value, expected: Touches| {
            let tool = builtins(&config()).into_iter().find(|tool| tool.spec().name == name).unwrap();
            let arguments = validate(&tool.spec().parameters, tool.prepare_arguments(arguments)).unwrap();
            assert_eq!(tool.touches(&arguments, Path::new("/work")), expected, "{name}");
        };
        let path = |path: &str| PathBuf::from(path);
        check("read", json!({"path": "@src/../a"}), Touches::reads(path("/work/a")));
        check("ls", json!({}), Touches::reads(path("/work")));
        check("grep", json!({"pattern": "x", "path": "src"}), Touches::reads(path("/work/src")));
        check("find", json!({"pattern": "*", "path": "/etc"}), Touches::reads(path("/etc")));
        check("write", json!({"path": "a", "content": ""}), Touches::writes(path("/work/a")));
        let edited = Touches { reads: vec![path("/work/a")], ..Touches::writes(path("/work/a")) };
        check("edit", json!({"path": "file:///work/a", "oldText": "x", "newText": "y"}), edited);
        check("bash", json!({"command": "make"}), Touches::runs("make"));
        assert_eq!(BUILTINS.len(), 7, "a new tool declares what it touches");
    }

    #[test]
    fn counts_are_whole_whatever_number_comes() {
        let check = |number: f64, expected: u64| assert_eq!(whole(number, 1), expected);
        check(3.0, 3);
        check(3.9, 3);
        check(0.0, 1);
        check(-5.0, 1);
        check(f64::NAN, 1);
        check(1e300, u64::MAX);
    }

    /// Waits in the kernel until its other end is opened.
    fn fifo() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fifo");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        (folder, path)
    }

    #[tokio::test]
    async fn cancelling_abandons_work_that_hangs_in_the_kernel() {
        let (_folder, path) = fifo();
        let (cancel, opened) = (CancellationToken::new(), path.clone());
        let (began, begins) = std::sync::mpsc::channel();
        let work = move || {
            began.send(()).unwrap();
            std::fs::read(opened).map_err(|error| ToolError(error.to_string()))
        };
        let call = blocking(&cancel, || "reading the pipe".to_owned(), work);
        let stop = async {
            tokio::task::spawn_blocking(move || begins.recv().unwrap()).await.unwrap();
            cancel.cancel();
        };
        let (result, ()) = tokio::join!(call, stop);
        let expected = "Operation aborted; abandoned reading the pipe because the system did not respond";
        assert_eq!(result, Err(ToolError(expected.to_owned())));
        // The thread still exists, and ends once it is unblocked.
        drop(std::fs::OpenOptions::new().write(true).open(&path).unwrap());
    }

    #[tokio::test]
    async fn work_that_heeds_the_token_ends_by_itself() {
        let cancel = CancellationToken::new();
        let token = cancel.clone();
        let call = blocking(
            &cancel,
            || panic!("nothing is given up"),
            move || -> Result<(), ToolError> {
                loop {
                    check_cancelled(&token)?;
                    std::thread::yield_now();
                }
            },
        );
        let (result, ()) = tokio::join!(call, async { cancel.cancel() });
        assert_eq!(result, Err(ToolError::aborted()));
    }
}
