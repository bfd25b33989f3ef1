//! `pi usage`: tokens and dollars by day, model and project.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::ai::{Cost, Quotas};
use crate::config::Env;
use crate::modes::{self, UsageView};
use crate::session::{self, OpenError, UsageRecord, UsageReport};
use crate::util::paths;

use super::args::positive;
use super::session_list::not_sessions;
use super::start::Setup;
use super::transfer::general_args;

/// Show tokens and costs by day, model and project.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct UsageArgs {
    /// Number of days, including today
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = positive::<u64>, allow_negative_numbers = true)]
    days: u64,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Directory for session files
    #[arg(long, value_name = "DIR")]
    session_dir: Option<PathBuf>,
}

/// Notes about files that were left out.
fn notes(problems: Vec<OpenError>, home: Option<&Path>) -> Vec<String> {
    let (mut strange, mut notes) = (Vec::new(), Vec::new());
    for problem in problems {
        match problem {
            OpenError::NotASession { path } => strange.push(path),
            other => notes.push(other.to_string()),
        }
    }
    notes.extend(not_sessions(&strange));
    notes.iter().map(|note| paths::with_tilde(note, home)).collect()
}

/// Runs `pi usage`.
pub(super) fn run(args: &UsageArgs, env: Env) -> anyhow::Result<ExitCode> {
    let general = general_args(None, args.session_dir.as_deref())?;
    let setup = Setup::reported(&general, env)?;
    let (now_ms, zone) = (setup.clock.now_ms(), setup.clock.zone());
    let since_ms = zone.day_start(now_ms, args.days - 1);
    let folders = setup.folders(&general);
    folders.check(true)?;
    let (records, problems) = session::read_usage_since(&folders.root, since_ms);
    modes::report_notes(&notes(problems, setup.dirs.home.as_deref()));
    let rates = |record: &UsageRecord| -> Option<Cost> {
        setup.catalog.get(&record.provider, &record.model).map(|model| model.cost.clone())
    };
    let report = UsageReport::of(&records, &zone, rates);
    let quotas = session::read_quotas(&setup.dirs, &Quotas::default());
    let view = UsageView { report: &report, quotas: &quotas, days: args.days, now_ms, zone: &zone };
    Ok(modes::show_usage(&view, setup.dirs.home.as_deref(), args.json))
}
