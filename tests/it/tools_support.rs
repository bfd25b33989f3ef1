//! Runs one tool call in a temporary directory.
#![expect(clippy::unwrap_used, reason = "a helper of tests may fail the test")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pi::agent::{Progress, Tool, ToolCx, ToolError, ToolOutput, validate};
use pi::ai::join_text;
use pi::tools::{BashConfig, ImageLimits, SessionVars, ToolsConfig, builtins};
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// A directory to work in, and all built-in tools.
pub(crate) struct Workbench {
    folder: tempfile::TempDir,
    pub(crate) temp_dir: PathBuf,
    pub(crate) session: SessionVars,
    tools: Vec<Arc<dyn Tool>>,
    pub(crate) cancel: CancellationToken,
    pub(crate) reports: watch::Sender<Vec<ToolOutput>>,
}

impl Workbench {
    pub(crate) fn new() -> Self {
        Self::configured(|_| {})
    }

    pub(crate) fn configured(configure: impl FnOnce(&mut BashConfig)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let temp_dir = folder.path().join("tmp");
        let cwd = folder.path().join("work");
        fs::create_dir(&temp_dir).unwrap();
        fs::create_dir(&cwd).unwrap();
        let session = SessionVars::default();
        let mut bash = BashConfig::new(temp_dir.clone());
        configure(&mut bash);
        let home = Some(folder.path().join("home"));
        let tools = builtins(&ToolsConfig { home, images: ImageLimits::default(), bash });
        let cancel = CancellationToken::new();
        Self { folder, temp_dir, session, tools, cancel, reports: watch::Sender::default() }
    }

    pub(crate) fn cwd(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.cwd().join(name)
    }

    /// Writes a file, and the folders it is in.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// Runs a call as the loop does: prepared, validated, then run.
    pub(crate) async fn run(&self, name: &str, arguments: Value) -> Result<ToolOutput, ToolError> {
        self.call(name, arguments, &self.cwd()).await
    }

    pub(crate) async fn call(
        &self,
        name: &str,
        arguments: Value,
        cwd: &Path,
    ) -> Result<ToolOutput, ToolError> {
        let tool = self.tools.iter().find(|tool| tool.spec().name == name).unwrap();
        let arguments = validate(&tool.spec().parameters, tool.prepare_arguments(arguments)).unwrap();
        let reports = self.reports.clone();
        let progress = Progress::new(move |partial| reports.send_modify(|reports| reports.push(partial)));
        let cancel = self.cancel.clone();
        let environment = self.session.clone().variables();
        tool.run(arguments, ToolCx { call_id: "call", cwd, environment, cancel, progress }).await
    }

    /// The text of a call that succeeds.
    pub(crate) async fn text(&self, name: &str, arguments: Value) -> String {
        let output = self.run(name, arguments).await.unwrap();
        assert!(!output.is_error, "{}", join_text(&output.content));
        join_text(&output.content)
    }

    /// The text of a call that fails without a result.
    pub(crate) async fn error(&self, name: &str, arguments: Value) -> String {
        self.run(name, arguments).await.unwrap_err().0
    }
}
