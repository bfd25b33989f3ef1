//! `pi usage`: tokens and dollars by day, model and project.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::ai::Cost;
use crate::config::Env;
use crate::modes;
use crate::session::{self, UsageRecord, UsageReport};

use super::start::Setup;
use super::transfer::general_args;

const DAY_MS: u64 = 24 * 3_600_000;

/// Show tokens and costs by day, model and project.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct UsageArgs {
    /// Number of days, including today
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..))]
    days: u64,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Directory for session files
    #[arg(long, value_name = "DIR")]
    session_dir: Option<PathBuf>,
}

/// Runs `pi usage`.
pub(super) fn run(args: &UsageArgs, env: Env) -> anyhow::Result<ExitCode> {
    let general = general_args(None, args.session_dir.as_deref())?;
    let setup = Setup::new(&general, env)?;
    let today = setup.clock.now_ms() / DAY_MS;
    let since_ms = (today + 1).saturating_sub(args.days) * DAY_MS;
    let records = session::usage_since(&setup.folders(&general).root, since_ms);
    let rates = |record: &UsageRecord| -> Option<Cost> {
        setup.catalog.get(&record.provider, &record.model).map(|model| model.cost.clone())
    };
    let report = UsageReport::of(&records, rates);
    Ok(modes::show_usage(&report, args.days, setup.dirs.home.as_deref(), args.json))
}
