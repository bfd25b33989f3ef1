//! `pi trace`: the prompts, steps and tool calls of a session.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::config::Env;
use crate::modes::{self, CallFilter, CallKind, TraceView};
use crate::session::{self, EntryId, OpenSession, Trace, TraceTime};
use crate::util::clock::Clock;

use super::args::positive;
use super::sessions;
use super::start::Setup;
use super::transfer::general_args;

/// Show the prompts, steps and tool calls of a session.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct TraceArgs {
    /// The session's file, id or start of its id [default: this directory's latest session]
    session: Option<String>,

    /// Number of messages or calls to show
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = positive::<usize>, allow_negative_numbers = true)]
    limit: usize,

    /// Show only messages before this time; each page ends with the time for the next one
    #[arg(long, value_name = "TIME")]
    before: Option<TraceTime>,

    /// List the calls of this tool
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,

    /// List failed calls, newest first
    #[arg(long, conflicts_with = "slow")]
    failed: bool,

    /// List the slowest calls
    #[arg(long)]
    slow: bool,

    /// Show statistics of each tool
    #[arg(long, conflicts_with_all = ["failed", "slow", "before"])]
    stats: bool,

    /// Delete this message and its steps from the trace; the file keeps them
    #[arg(long, value_name = "ID", conflicts_with_all = ["failed", "slow", "stats", "tool", "before"])]
    delete: Option<String>,

    /// Delete only if the message still has this version
    #[arg(long, value_name = "N", requires = "delete")]
    version: Option<u64>,

    /// Remove the deleted message from the file, too
    #[arg(long, requires = "delete")]
    purge: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Directory for session files
    #[arg(long, value_name = "DIR")]
    session_dir: Option<PathBuf>,
}

/// Runs `pi trace`.
pub(super) fn run(args: &TraceArgs, env: Env) -> anyhow::Result<ExitCode> {
    let mut general = general_args(args.session.as_deref(), args.session_dir.as_deref())?;
    general.continue_session = args.session.is_none();
    let setup = Setup::reported(&general, env)?;
    let path = match sessions::choose(&general, &setup.folders(&general), &setup.cwd)? {
        OpenSession::File(path) => path,
        OpenSession::New | OpenSession::WithId(_) | OpenSession::Forked { .. } => {
            setup.folders(&general).check(false)?;
            anyhow::bail!("this directory has no sessions; pass the file or id of one")
        }
    };
    if let Some(id) = &args.delete {
        let (id, now_ms) = (EntryId::new(id), Clock::system().now_ms());
        if args.purge {
            session::purge_message(&path, &id, args.version, now_ms)?;
        } else {
            session::delete_message(&path, &id, args.version, now_ms)?;
        }
        let place = if args.purge { "session file" } else { "trace" };
        modes::say(&format!("Deleted the message {id} from the {place}."));
        return Ok(ExitCode::SUCCESS);
    }
    let trace = session::read_trace(&path)?;
    modes::report_notes(trace.damage.as_slice());
    Ok(modes::show_trace(&view(args, &trace), &setup.clock.zone(), args.json))
}

fn view<'a>(args: &TraceArgs, trace: &'a Trace) -> TraceView<'a> {
    if args.stats {
        return TraceView::Tools(trace.tool_stats());
    }
    if !args.failed && !args.slow && args.tool.is_none() {
        return TraceView::Messages(trace.page(args.limit, args.before));
    }
    let kind = match (args.failed, args.slow) {
        (true, _) => CallKind::Failed,
        (false, true) => CallKind::Slow,
        (false, false) => CallKind::All,
    };
    let filter = CallFilter { tool: args.tool.clone(), kind };
    let mut calls = filter.calls(trace);
    if let Some(before) = args.before {
        let older = |id: &EntryId| trace.message(id).is_some_and(|message| message.time < before);
        calls.retain(|found| older(found.message_id));
    }
    let n_more = calls.len().saturating_sub(args.limit);
    calls.truncate(args.limit);
    TraceView::Calls { calls, n_more, filter }
}
