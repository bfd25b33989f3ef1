//! `pi doctor`: what the terminal supports, what is configured, and what to change.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::config::Env;
use crate::modes::{self, DoctorInput};

use super::start::{Setup, project_facts};
use super::transfer::general_args;

/// Check the terminal, files and providers, and say what to change
#[derive(Debug, Clone, clap::Args)]
pub(super) struct DoctorArgs {
    /// Directory for session files
    #[arg(long, value_name = "DIR")]
    session_dir: Option<PathBuf>,
}

/// Runs `pi doctor`.
pub(super) fn run(args: &DoctorArgs, env: Env) -> anyhow::Result<ExitCode> {
    let general = general_args(None, args.session_dir.as_deref())?;
    let mut setup = Setup::new(&general, env.clone())?;
    setup.tool_names(&general);
    setup.problems.extend(setup.transport.certificate_problem());
    let project_facts = project_facts(&general, Setup::new(&general, env.clone())?);
    setup.problems.extend(project_facts.problems);
    let sessions = setup.folders(&general).root;
    modes::say(&modes::doctor(&DoctorInput {
        env: &env,
        dirs: &setup.dirs,
        settings: &setup.settings,
        project: setup.trusts_project().then_some(setup.cwd.as_path()),
        catalog: &setup.catalog,
        credentials: &setup.credentials,
        sessions: &sessions,
        files: &project_facts.files,
        problems: &setup.problems,
    }));
    Ok(ExitCode::SUCCESS)
}
