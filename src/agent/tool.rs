//! The interface between the loop and tools.

use std::ffi::OsString;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::ai::{ConstrainedSampling, ContentBlock, ToolDeclaration};

use super::touches::Touches;

/// Something the model can call.
pub trait Tool: Send + Sync {
    /// Name, description and arguments, the same for the whole session.
    fn spec(&self) -> &ToolSpec;

    /// Whether calls in one assistant message may overlap with others.
    fn concurrency(&self) -> Concurrency {
        Concurrency::Parallel
    }

    /// Converts accepted variants of the arguments to the documented form, before
    /// they are validated.
    fn prepare_arguments(&self, arguments: Value) -> Value {
        arguments
    }

    /// Returns what a call with these validated arguments accesses. Asks no disk; relative
    /// paths start in `cwd`.
    ///
    /// The gate judges a call by it, and calls that conflict run one after the other. A tool
    /// must not access more than it declares.
    fn touches(&self, _arguments: &Value, _cwd: &Path) -> Touches {
        Touches::undeclared()
    }

    /// Runs one call; `arguments` already fits `spec().parameters`.
    ///
    /// `Err` becomes an error result that the model reads; it does not end the
    /// run. Returns soon after `cx.cancel` fires and leaves nothing running.
    fn run<'a>(&'a self, arguments: Value, cx: ToolCx<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>>;
}

impl fmt::Debug for dyn Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tool").field(&self.spec().name).finish()
    }
}

/// Two tools are the same if they are one object.
impl PartialEq for dyn Tool {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::addr_eq(self, other)
    }
}

/// Whether a call may run beside others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Concurrency {
    /// It may, unless one of them writes what the other accesses.
    Parallel,
    /// A single such call makes its whole batch run sequentially.
    Sequential,
}

/// Longest name of a tool.
pub const MAX_NAME_CHARS: usize = 64;

/// Description of a tool for the model and the screen.
#[derive(Debug, Clone)]
pub struct ToolSpec {
    /// At most [`MAX_NAME_CHARS`] ASCII letters, digits, `_` and `-`: every API takes those.
    pub name: String,
    /// What the model reads about it.
    pub description: String,
    /// One line for the tool list of the system prompt, which leaves out tools without.
    pub snippet: Option<String>,
    /// Rules added to the system prompt while the tool is active.
    pub guidelines: Vec<String>,
    /// JSON Schema of the arguments, an object schema.
    pub parameters: Value,
    /// How its arguments are sampled, if the service has a choice.
    pub constrained_sampling: Option<ConstrainedSampling>,
}

impl ToolSpec {
    /// A tool without a line in the system prompt. `parameters` is a JSON Schema of the type
    /// object.
    pub fn new(name: impl Into<String>, description: impl Into<String>, parameters: Value) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            snippet: None,
            guidelines: Vec::new(),
            parameters,
            constrained_sampling: None,
        }
    }

    /// What a request says about the tool.
    pub fn declaration(&self) -> ToolDeclaration {
        ToolDeclaration {
            name: self.name.clone(),
            description: self.description.clone(),
            parameters: self.parameters.clone(),
            constrained_sampling: self.constrained_sampling.clone(),
            extra: serde_json::Map::new(),
        }
    }

    /// # Errors
    /// When a provider would reject the declaration, and with it every request.
    pub fn check(&self) -> Result<(), ToolError> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let name = &self.name;
        if name.is_empty() || name.len() > MAX_NAME_CHARS || !name.chars().all(is_plain) {
            return Err(ToolError(format!(
                "the tool name {name:?} is invalid: use 1 to {MAX_NAME_CHARS} letters, digits, _ or -"
            )));
        }
        if self.parameters.get("type").and_then(Value::as_str) != Some("object") {
            return Err(ToolError(format!(
                "the parameters of the tool {name} are invalid: their schema must have the type object"
            )));
        }
        Ok(())
    }
}

/// Variables for the processes of a call; `None` removes an inherited
/// variable.
pub type Environment = Vec<(OsString, Option<OsString>)>;

/// The context of a running call.
pub struct ToolCx<'a> {
    /// The id of the call, unique in the session.
    pub call_id: &'a str,
    /// The session's directory; relative paths start here.
    pub cwd: &'a Path,
    /// Changes to the environment that processes of the call inherit.
    pub environment: Environment,
    /// Fires when the call is to end.
    pub cancel: CancellationToken,
    /// Shows partial output.
    pub progress: Progress,
}

/// Receives partial output for the screen; the model never sees it. Each report
/// replaces the previous one.
#[derive(Clone)]
pub struct Progress(Arc<dyn Fn(ToolOutput) + Send + Sync>);

impl Progress {
    /// Passes every report to `report`, which must not block.
    pub fn new(report: impl Fn(ToolOutput) + Send + Sync + 'static) -> Self {
        Self(Arc::new(report))
    }

    /// Drops every report.
    pub fn ignore() -> Self {
        Self::new(|_| {})
    }

    /// Shows `partial` in place of the previous report.
    pub fn report(&self, partial: ToolOutput) {
        (self.0)(partial);
    }
}

/// The output of a call.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolOutput {
    /// What the model reads.
    pub content: Vec<ContentBlock>,
    /// Data for transcript and export; stored in the session.
    pub details: Option<Value>,
    /// The call failed, but its content and details are kept.
    pub is_error: bool,
    /// Requests the end of the run; it ends if every result of the batch requests it.
    pub terminate: bool,
}

impl ToolOutput {
    /// Output of one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![ContentBlock::text(text)], ..Self::default() }
    }
}

/// A failed call; the model reads the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ToolError(pub String);

impl ToolError {
    /// A failure with a text for the model: what failed, and what to do instead.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }

    /// The call was cancelled before it could finish.
    pub fn aborted() -> Self {
        Self("Operation aborted".to_owned())
    }
}

/// The tools the model may call in a run, in the order of the request.
#[derive(Clone, Default)]
pub struct ToolRegistry {
    tools: Vec<Arc<dyn Tool>>,
    /// Creates the same tools for another session, if they have state.
    make: Option<MakeTools>,
}

type MakeTools = Arc<dyn Fn() -> Vec<Arc<dyn Tool>> + Send + Sync>;

impl ToolRegistry {
    /// Tools without state; sessions may share them.
    pub fn new(tools: Vec<Arc<dyn Tool>>) -> Self {
        Self { tools, make: None }
    }

    /// Tools with state per session: `make` is called for each.
    pub fn per_session(make: impl Fn() -> Vec<Arc<dyn Tool>> + Send + Sync + 'static) -> Self {
        Self { tools: make(), make: Some(Arc::new(make)) }
    }

    /// The same tools with fresh state.
    #[must_use]
    pub fn for_session(&self) -> Self {
        let tools = self.make.as_ref().map_or_else(|| self.tools.clone(), |make| make());
        Self { tools, make: self.make.clone() }
    }

    /// The tool with this name.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.tools.iter().find(|tool| tool.spec().name == name)
    }

    /// Adds a tool at the end, or in place of the one with its name.
    pub fn add(&mut self, tool: Arc<dyn Tool>) {
        match self.tools.iter_mut().find(|known| known.spec().name == tool.spec().name) {
            Some(known) => *known = tool,
            None => self.tools.push(tool),
        }
    }

    /// Returns whether there was such a tool.
    pub fn remove(&mut self, name: &str) -> bool {
        let n_tools = self.tools.len();
        self.tools.retain(|tool| tool.spec().name != name);
        self.tools.len() < n_tools
    }

    /// All tools, in the order of the request.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Tool>> {
        self.tools.iter()
    }
}
