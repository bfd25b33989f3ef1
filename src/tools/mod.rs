//! The tools the model can call, and what they share.
//!
//! One file per tool, with what the model reads about it in the `.md` of the
//! same name; [`BUILTINS`] lists them. Invariant: what a tool puts before the
//! model is bounded, whatever the files and commands are like.

mod bash;
mod edit;
mod file_locks;
mod find;
mod grep;
mod listing;
mod ls;
mod output;
mod path;
mod read;
mod user_bash;
mod walk;
mod write;

use std::path::PathBuf;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::agent::{Tool, ToolError, ToolRegistry};

pub use crate::util::image::{ImageLimits, ImageProblem, PreparedImage, prepare_image, sniff_mime};
pub use bash::{Bash, BashConfig, SessionEnv, SessionVars, ShellError};
pub use edit::{DiffRow, Edit, EditPreview, EditTool, preview};
pub use file_locks::{FileGuard, FileLocks, Place};
pub use find::Find;
pub use grep::Grep;
pub use ls::Ls;
pub use output::{
    ANY_LINES, Head, MAX_BYTES, MAX_LINES, Tail, TruncatedBy, Truncation, format_size, truncate_head,
    truncate_tail,
};
pub use path::resolve_existing;
pub use read::Read;
pub use user_bash::{UserBashOutcome, run_user_command};
pub use write::Write;

/// What the tools of one session are made of.
#[derive(Debug, Clone)]
pub struct ToolsConfig {
    /// What `~` means in paths.
    pub home: Option<PathBuf>,
    pub images: ImageLimits,
    pub bash: BashConfig,
}

/// A tool that comes with pi.
#[derive(Debug)]
pub struct Builtin {
    pub name: &'static str,
    /// Whether the model gets it unless the user chooses tools.
    pub default_active: bool,
    new: fn(&ToolsConfig, &FileLocks) -> Arc<dyn Tool>,
}

/// Every built-in tool, in the order the model is told of them.
pub const BUILTINS: &[Builtin] = &[
    Builtin {
        name: "read",
        default_active: true,
        new: |config, _| Arc::new(Read::new(config.home.clone(), config.images)),
    },
    Builtin { name: "bash", default_active: true, new: |config, _| Arc::new(Bash::new(config.bash.clone())) },
    Builtin {
        name: "edit",
        default_active: true,
        new: |config, locks| Arc::new(EditTool::new(config.home.clone(), locks.clone())),
    },
    Builtin {
        name: "write",
        default_active: true,
        new: |config, locks| Arc::new(Write::new(config.home.clone(), locks.clone())),
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

/// All built-in tools, active by default or not, in the order of [`BUILTINS`].
///
/// They share one [`FileLocks`], so calls of `edit` and `write` on one file take
/// turns.
pub fn builtins(config: &ToolsConfig) -> Vec<Arc<dyn Tool>> {
    let locks = FileLocks::default();
    BUILTINS.iter().map(|builtin| (builtin.new)(config, &locks)).collect()
}

/// The built-in tools whose names are in `active`.
pub fn registry(config: &ToolsConfig, active: &[String]) -> ToolRegistry {
    let is_active = |tool: &Arc<dyn Tool>| active.iter().any(|name| name == tool.spec().name);
    ToolRegistry::new(builtins(config).into_iter().filter(is_active).collect())
}

/// The arguments of a call as the tool's own type.
fn parse<T: DeserializeOwned>(arguments: Value) -> Result<T, ToolError> {
    serde_json::from_value(arguments).map_err(|error| ToolError(format!("Invalid arguments: {error}")))
}

/// A count the model gave as any JSON number, as a whole number of at least `min`.
fn whole(number: f64, min: u64) -> u64 {
    // The cast saturates; not-a-number becomes 0.
    (number as u64).max(min)
}

/// Runs `work` where it may wait for the disk or compute for long.
///
/// Waits for its end even when the call is cancelled: `work` polls the token
/// itself where it takes long.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(ToolError(format!("The tool stopped unexpectedly: {error}"))),
    }
}

fn check_cancelled(cancel: &CancellationToken) -> Result<(), ToolError> {
    if cancel.is_cancelled() { Err(ToolError::aborted()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    fn config() -> ToolsConfig {
        ToolsConfig {
            home: None,
            images: ImageLimits::default(),
            bash: BashConfig::new(PathBuf::from("/tmp"), SessionEnv::default()),
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
            assert!(!spec.description.is_empty() && !spec.snippet.is_empty(), "{}", spec.name);
            assert_eq!(spec.description.trim(), spec.description, "{}", spec.name);
            assert!(!spec.snippet.contains('\n'), "{}", spec.name);
            assert_eq!(spec.parameters["type"], "object", "{}", spec.name);
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
            let name = tool.spec().name;
            let beside = [folder.join(format!("{name}.md")), folder.join(name).join(format!("{name}.md"))];
            let file = beside.into_iter().find(|path| path.exists()).unwrap();
            assert_eq!(std::fs::read_to_string(file).unwrap().trim(), tool.spec().description);
        }
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
}
