//! `pi sessions`: lists sessions and searches their texts.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::config::Env;
use crate::modes::{self, ListedSession, UsageError};
use crate::session::{SearchHit, SearchQuery, SessionIndex};
use crate::util::clock::Clock;
use crate::util::paths;

use super::args::whole;
use super::start::Setup;
use super::transfer::general_args;

/// List sessions, or search their texts.
#[derive(Debug, Clone, clap::Args)]
#[command(
    after_help = "Exit code 1 means that the search found nothing, or that the sessions cannot be read."
)]
pub(super) struct SessionsArgs {
    /// Only sessions that contain all these words, a "phrase" or a re:PATTERN, in any case
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,

    /// Include the sessions of all directories
    #[arg(long)]
    all: bool,

    /// Show at most N sessions; 0 shows all
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = whole::<usize>, allow_negative_numbers = true)]
    limit: usize,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Directory for session files
    #[arg(long, value_name = "DIR")]
    session_dir: Option<PathBuf>,
}

/// Runs `pi sessions`.
pub(super) fn run(args: &SessionsArgs, env: Env) -> anyhow::Result<ExitCode> {
    let query = args.search.as_deref().map(parse).transpose()?;
    let general = general_args(None, args.session_dir.as_deref())?;
    let setup = Setup::reported(&general, env)?;
    let folders = setup.folders(&general);
    folders.check(args.all)?;
    let scope = folders.scope(args.all, &setup.cwd);
    let mut index = SessionIndex::load(&folders.root);
    let refreshed = index.refresh(&scope, &|| false, &mut |_| {});
    let home = setup.dirs.home.as_deref();
    let problems: Vec<String> =
        refreshed.problems.iter().map(|problem| paths::with_tilde(problem, home)).collect();
    modes::report_notes(&problems);
    let strange = not_sessions(&index.not_sessions(&scope));
    modes::report_notes(strange.map(|note| paths::with_tilde(&note, home)).as_slice());
    let listed = match &query {
        None => index.sessions(&scope).into_iter().map(ListedSession::from).collect(),
        Some(query) => {
            let mut hits = Vec::new();
            index.search(&scope, query, &|| false, &mut |hit| hits.push(hit));
            by_rank(hits)
        }
    };
    let shown = modes::SessionsOutput {
        sessions: listed,
        limit: args.limit,
        search: args.search.as_deref(),
        is_all: args.all,
        home: setup.dirs.home.as_deref(),
        now_ms: Clock::system().now_ms(),
    };
    let code = if args.json { shown.print_json() } else { shown.print() };
    // Without it the next list takes longer, which is all.
    drop(index.save());
    Ok(code)
}

/// Most paths in a note.
const MAX_PATHS: usize = 3;

/// A note about files among the sessions that are none.
pub(super) fn not_sessions(paths: &[PathBuf]) -> Option<String> {
    let names: Vec<String> = paths.iter().take(MAX_PATHS).map(|path| path.display().to_string()).collect();
    let names = names.join(", ");
    let n_more = paths.len().saturating_sub(MAX_PATHS);
    let more = if n_more > 0 { format!(" and {n_more} more") } else { String::new() };
    match paths.len() {
        0 => None,
        1 => Some(format!("1 file is not a session: {names}")),
        n_files => Some(format!("{n_files} files are not sessions: {names}{more}")),
    }
}

fn parse(text: &str) -> anyhow::Result<SearchQuery> {
    let query = SearchQuery::parse(text).map_err(UsageError::new)?;
    Ok(query.ok_or_else(|| UsageError::new("--search needs at least one word"))?)
}

/// Hits in names first and those in ids and directories last, each by time.
fn by_rank(mut hits: Vec<SearchHit>) -> Vec<ListedSession> {
    // Stable: hits of one place stay in order.
    hits.sort_by_key(|hit| hit.rank.place());
    hits.into_iter().map(ListedSession::from).collect()
}
