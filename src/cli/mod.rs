//! The command line: arguments in, a running mode out.

mod acp;
mod args;
mod attached;
mod auth;
mod auth_check;
mod config;
mod discovery;
mod docs;
mod doctor;
mod initial;
mod piped;
mod reference;
mod session_list;
mod sessions;
mod start;
mod trace;
mod transfer;
mod usage;
mod words;

use std::ffi::OsString;
use std::panic;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use tokio::runtime::{Builder, Runtime};

use crate::ai;
use crate::config::{Dirs, Env};
use crate::modes::{self, Terminals, UsageError};
use crate::util::clock::Clock;
use crate::util::os;
use crate::util::runtime;

use args::SubCommand;
pub use args::{Args, IGNORED, IgnoredFlag, Mode, command};
pub use docs::CHAPTERS;

/// Runs the program; [`modes::EXIT_CODES`] are the exit codes.
pub fn main() -> ExitCode {
    // Without listeners, the system ends the process at that limit.
    os::survive_file_size_limit().unwrap_or_default();
    // The panic hook has reported it.
    let done = panic::catch_unwind(dispatch);
    modes::after_output(done.unwrap_or_else(|_| modes::after_crash()))
}

fn dispatch() -> ExitCode {
    let env = Env::process();
    let dirs = Dirs::new(&env);
    modes::watch_crashes(&dirs, Clock::system());
    let home = dirs.home;
    let given: Vec<OsString> = std::env::args_os().collect();
    if let Err(error) = words::check_first(given.get(1..).unwrap_or_default()) {
        return modes::report_error(&error, home.as_deref());
    }
    let sorted = args::sort_out(help_as_flag(given).into_iter());
    let mut args = match args::parse(sorted.args) {
        Ok(args) => args,
        Err(error) => return modes::report_usage(&error.render(), error.use_stderr()),
    };
    let done = match args.command.take() {
        Some(SubCommand::Acp(args)) => {
            modes::report_notes(&sorted.notes);
            acp::run(args, env)
        }
        Some(SubCommand::Auth(args)) => auth::run(args, env),
        Some(SubCommand::Import(args)) => transfer::import(&args, env),
        Some(SubCommand::Export(args)) => transfer::export(&args, env),
        Some(SubCommand::Sessions(args)) => session_list::run(&args, env),
        Some(SubCommand::Trace(args)) => trace::run(&args, env),
        Some(SubCommand::Config(args)) => config::run(args, env),
        Some(SubCommand::Models(models)) => {
            args.list_models = Some(models.search);
            run(args, env)
        }
        Some(SubCommand::Docs(args)) => docs::run(&args),
        Some(SubCommand::Completions(args)) => reference::completions(&args),
        Some(SubCommand::Man) => reference::man(),
        Some(SubCommand::Usage(args)) => usage::run(&args, env),
        Some(SubCommand::Doctor(args)) => doctor::run(&args, env),
        None => {
            modes::report_notes(&sorted.notes);
            match &args.export {
                Some(words) => transfer::export_page(words, args.session_dir.as_deref(), env),
                None => run(args, env),
            }
        }
    };
    match done {
        Ok(code) => code,
        Err(error) => modes::report_error(&error, home.as_deref()),
    }
}

/// Parses a command line as [`main`] does, the program's name first.
///
/// # Errors
/// The text that the program would print, for `--help` and `--version` too.
pub fn parse(words: Vec<OsString>) -> Result<Args, String> {
    let sorted = args::sort_out(help_as_flag(words).into_iter());
    args::parse(sorted.args).map_err(|error| error.to_string())
}

/// Rewrites `pi help` and `pi help COMMAND` as the flag.
fn help_as_flag(mut words: Vec<OsString>) -> Vec<OsString> {
    let is_command = |word: &OsString| word == "help" || command().find_subcommand(word).is_some();
    match words.get(1..).unwrap_or_default() {
        [help] if help == "help" => words[1] = "--help".into(),
        [help, command, ..] if help == "help" && is_command(command) => {
            words.remove(1);
            words.push("--help".into());
        }
        _ => {}
    }
    words
}

fn run(args: Args, env: Env) -> anyhow::Result<ExitCode> {
    let terminals = Terminals::detect();
    // A terminal that cannot move its cursor is like a pipe.
    let is_dumb = env.get("TERM").is_some_and(|term| term == "dumb");
    let mut setup = start::Setup::new(&args, env)?;
    if let Some(search) = &args.list_models {
        let runtime = single_runtime()?;
        let (found, lists) = runtime.block_on(async {
            let lists = setup.credentials.model_lists(&setup.catalog);
            tokio::join!(ai::discover(&setup.catalog.local_addresses, &setup.transport), lists)
        });
        for (server, models) in found {
            setup.catalog.set_local(server, models);
        }
        for (provider, models) in lists.models {
            setup.catalog.set_listed(&provider, models);
        }
        setup.problems.extend(lists.problems);
        setup.problems.extend(setup.transport.certificate_problem());
        return Ok(modes::list_models(
            &setup.catalog,
            &setup.credentials,
            search.as_deref(),
            &setup.problems,
        ));
    }
    if args.slim_events && !matches!(args.mode, Some(Mode::Json | Mode::Rpc)) {
        anyhow::bail!(UsageError::new("--slim-events needs --mode json or rpc"));
    }
    if let Some(file) = &args.output_last_message {
        check_output_file(file)?;
    }
    let is_usable = !is_dumb || setup.settings.values.screen_reader;
    let interactive = !args.print && args.mode.is_none() && is_usable && terminals.can_interact();
    if interactive && args.output_last_message.is_some() {
        anyhow::bail!(UsageError::new("--output-last-message needs --print or --mode json"));
    }
    if interactive {
        // With one thread each, what wakes one wakes no other.
        let (interface, session) = (background_runtime()?, background_runtime()?);
        let code = start::interactive(&interface, session.handle().clone(), &args, setup);
        session.shutdown_background();
        return finish(interface, code);
    }
    if args.output_last_message.is_some() && args.mode == Some(Mode::Rpc) {
        anyhow::bail!(UsageError::new("--output-last-message needs --print or --mode json"));
    }
    if args.resume {
        let problem = "--resume needs a terminal to show a list; use --continue or --session";
        let is_asked = args.print || args.mode.is_some();
        return Err(if is_asked { UsageError::new(problem).into() } else { anyhow::Error::msg(problem) });
    }
    let runtime = single_runtime()?;
    let code = match args.mode {
        Some(Mode::Rpc) => start::rpc(&runtime, &args, setup),
        Some(Mode::Json) => start::json(&runtime, &args, setup, terminals),
        Some(Mode::Text) | None => start::print(&runtime, &args, setup, terminals, is_dumb),
    };
    finish(runtime, code)
}

/// Rejects a file that the last answer could not be written to, before an answer is paid for.
fn check_output_file(file: &Path) -> anyhow::Result<()> {
    let problem = match file.parent() {
        _ if file.is_dir() => "it is a directory",
        Some(folder) if !folder.as_os_str().is_empty() && !folder.is_dir() => "its directory does not exist",
        _ => return Ok(()),
    };
    anyhow::bail!(UsageError(format!("cannot write the last answer to {}: {problem}", file.display())))
}

fn runtime(builder: Builder) -> anyhow::Result<Runtime> {
    runtime::build(builder).context(
        "the system cannot start another thread; close other programs, or raise the limit (ulimit -u)",
    )
}

/// A runtime whose tasks run on another thread.
fn background_runtime() -> anyhow::Result<Runtime> {
    let mut threads = Builder::new_multi_thread();
    threads.worker_threads(1);
    runtime(threads)
}

/// A runtime whose tasks run on this thread.
fn single_runtime() -> anyhow::Result<Runtime> {
    runtime(Builder::new_current_thread())
}

/// Ends without waiting for blocked work.
fn finish(runtime: Runtime, code: anyhow::Result<ExitCode>) -> anyhow::Result<ExitCode> {
    runtime.shutdown_background();
    code
}
