//! Interactive mode.
use super::Prompt;
use crate::config::Env;
use crate::session::{OpenSession, Services};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

/// What interactive mode starts from.
pub struct InteractiveStart {
    pub services: Arc<Services>,
    pub cwd: PathBuf,
    pub open: OpenSession,
    pub env: Env,
    pub prompts: Vec<Prompt>,
    pub problems: Vec<String>,
    pub pick_session: bool,
    pub sessions: PathBuf,
    pub sessions_filter: Option<PathBuf>,
    pub name: Option<String>,
}
/// runs
pub async fn run(_start: InteractiveStart) -> anyhow::Result<ExitCode> {
    anyhow::bail!("later")
}
