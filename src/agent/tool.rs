//! The contract between the loop and what the model can call.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::ai::{ConstrainedSampling, ContentBlock, ToolDeclaration};

/// Something the model can call.
pub trait Tool: Send + Sync {
    fn spec(&self) -> &ToolSpec;

    /// Whether calls in one assistant message may overlap with others.
    fn concurrency(&self) -> Concurrency {
        Concurrency::Parallel
    }

    /// Puts accepted variants of the arguments into the documented form, before
    /// they are validated.
    fn prepare_arguments(&self, arguments: Value) -> Value {
        arguments
    }

    /// Runs one call; `arguments` already fits `spec().parameters`.
    ///
    /// `Err` becomes an error result that the model reads; it does not end the
    /// run. Returns soon after `cx.cancel` fires, with nothing left running.
    fn run<'a>(&'a self, arguments: Value, cx: ToolCx<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>>;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Concurrency {
    Parallel,
    /// One such call makes its whole batch run one after the other.
    Sequential,
}

/// Description of a tool for the model and the screen.
#[derive(Debug, Clone)]
pub struct ToolSpec {
    pub name: &'static str,
    /// What the model reads about it.
    pub description: &'static str,
    /// One line for the tool list of the system prompt.
    pub snippet: &'static str,
    /// Rules added to the system prompt while the tool is active.
    pub guidelines: &'static [&'static str],
    /// JSON Schema of the arguments, an object schema.
    pub parameters: Value,
    /// How its arguments are to be sampled, where a service lets that be chosen.
    pub constrained_sampling: Option<ConstrainedSampling>,
}

impl ToolSpec {
    pub fn declaration(&self) -> ToolDeclaration {
        ToolDeclaration {
            name: self.name.to_owned(),
            description: self.description.to_owned(),
            parameters: self.parameters.clone(),
            constrained_sampling: self.constrained_sampling.clone(),
            extra: serde_json::Map::new(),
        }
    }
}

/// Variables for the processes that a call starts; `None` removes one that they would
/// inherit.
pub type Environment = Vec<(OsString, Option<OsString>)>;

/// What a running call may use.
pub struct ToolCx<'a> {
    pub call_id: &'a str,
    /// The session's directory; relative paths start here.
    pub cwd: &'a Path,
    pub environment: Environment,
    pub cancel: CancellationToken,
    pub progress: Progress,
}

/// Takes partial output for the screen; the model never sees it. Each report
/// replaces the one before.
#[derive(Clone)]
pub struct Progress(Arc<dyn Fn(ToolOutput) + Send + Sync>);

impl Progress {
    pub fn new(report: impl Fn(ToolOutput) + Send + Sync + 'static) -> Self {
        Self(Arc::new(report))
    }

    /// Drops every report.
    pub fn ignore() -> Self {
        Self::new(|_| {})
    }

    pub fn report(&self, partial: ToolOutput) {
        (self.0)(partial);
    }
}

/// What a call produced.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolOutput {
    /// What the model reads.
    pub content: Vec<ContentBlock>,
    /// What transcript and export read; kept in the session.
    pub details: Option<Value>,
    /// Failed, but with content and details worth keeping.
    pub is_error: bool,
    /// Asks to end the run; it ends if every result of the batch asks so.
    pub terminate: bool,
}

impl ToolOutput {
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![ContentBlock::text(text)], ..Self::default() }
    }
}

/// A failed call: what the model reads about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ToolError(pub String);

impl ToolError {
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
    /// Makes the same tools for another session, if they remember anything.
    make: Option<MakeTools>,
}

type MakeTools = Arc<dyn Fn() -> Vec<Arc<dyn Tool>> + Send + Sync>;

impl ToolRegistry {
    /// Tools that remember nothing; sessions may share them.
    pub fn new(tools: Vec<Arc<dyn Tool>>) -> Self {
        Self { tools, make: None }
    }

    /// Tools that remember something about a session: `make` is called for each.
    pub fn per_session(make: impl Fn() -> Vec<Arc<dyn Tool>> + Send + Sync + 'static) -> Self {
        Self { tools: make(), make: Some(Arc::new(make)) }
    }

    /// The same tools, with nothing remembered.
    #[must_use]
    pub fn for_session(&self) -> Self {
        let tools = self.make.as_ref().map_or_else(|| self.tools.clone(), |make| make());
        Self { tools, make: self.make.clone() }
    }

    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.tools.iter().find(|tool| tool.spec().name == name)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Tool>> {
        self.tools.iter()
    }
}
