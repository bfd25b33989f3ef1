//! `pi acp`: sessions for editors.

use std::ffi::OsString;
use std::process::ExitCode;

use crate::config::Env;
use crate::modes::{self, UsageError};

use super::args::{self, Args};
use super::start::{self, Setup};
use super::{auth, finish, single_runtime};

/// The arguments of `pi acp`.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct AcpArgs {
    /// Ask for a provider, save a key or sign in, and exit; editors run this in a terminal
    #[arg(long)]
    login: bool,

    /// Options for all sessions, such as --model or --session-dir
    #[arg(value_name = "OPTIONS OF PI", trailing_var_arg = true, allow_hyphen_values = true)]
    options: Vec<OsString>,
}

/// Flags of pi that make no sense here.
const SINGLE_SESSION: [&str; 8] =
    ["--print", "--mode", "--continue", "--resume", "--session", "--fork", "--name", "--list-models"];

/// Runs the sub-command.
pub(super) fn run(acp: AcpArgs, env: Env) -> anyhow::Result<ExitCode> {
    let (login, options): (Vec<OsString>, Vec<OsString>) =
        acp.options.into_iter().partition(|word| word == "--login");
    let words = [OsString::from("pi")].into_iter().chain(options).collect();
    let args = match args::parse(words) {
        Ok(args) => args,
        Err(error) => return Ok(modes::report_usage(&error.render(), error.use_stderr())),
    };
    if let Some(flag) = single_session(&args) {
        anyhow::bail!(UsageError(format!("{flag} does not go with pi acp; the client chooses sessions")));
    }
    let setup = Setup::new(&args, env)?;
    if acp.login || !login.is_empty() {
        return auth::log_in(&setup);
    }
    let runtime = single_runtime()?;
    let code = start::acp(&runtime, &args, setup);
    finish(runtime, code)
}

fn single_session(args: &Args) -> Option<&'static str> {
    let given = [
        args.print,
        args.mode.is_some(),
        args.continue_session,
        args.resume,
        args.session.is_some(),
        args.fork.is_some(),
        args.name.is_some(),
        args.list_models.is_some(),
    ];
    given.into_iter().zip(SINGLE_SESSION).find(|(given, _)| *given).map(|(_, flag)| flag)
}
