//! Looks for words a session loses, for as long as there is time.
//!
//! `cargo run --release --example faults -- --minutes 10` runs sessions that do random
//! things by seed, kills them at every step, tears their writes, fills and breaks their
//! disk, damages their files, opens them twice, and panics; then it reopens them, and
//! compares with what had been shown. `--seed N` begins with another seed and repeats what a
//! failure reports; `--cases N` limits the cases of each fault per seed.

#![expect(clippy::print_stdout, reason = "this is its output")]

#[path = "../tests/it/support"]
#[allow(dead_code, reason = "the integration tests use the rest")]
mod support {
    pub(crate) mod agent_bench;
    pub(crate) mod agent_order;
    pub(crate) mod faults;
    pub(crate) mod session_bench;
}

use std::collections::BTreeMap;
use std::process::{Command, ExitCode};
use std::time::Duration;

use clap::Parser;
use pi::util::clock::Clock;

use support::faults::campaign::{self, Outcome};
use support::faults::{child, original};

#[derive(Debug, Parser)]
struct Args {
    /// How long to try
    #[arg(long, default_value_t = 1.0)]
    minutes: f64,
    /// The first seed
    #[arg(long, default_value_t = 1_000)]
    seed: u64,
    /// Most cases of each fault per seed
    #[arg(long, default_value_t = 60)]
    cases: usize,
    /// Go on after a failure
    #[arg(long)]
    keep_going: bool,
}

fn main() -> ExitCode {
    silence_panics_on_purpose();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime can be started");
    #[expect(clippy::disallowed_methods, reason = "the parent process uses a variable")]
    if let Ok(job) = std::env::var(child::CHILD) {
        runtime.block_on(child::serve(&job));
        return ExitCode::SUCCESS;
    }
    let args = Args::parse();
    if runtime.block_on(search(&args)) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Tries until the time is over, or something was lost. Returns whether nothing was.
async fn search(args: &Args) -> bool {
    let clock = Clock::system();
    let (start, limit) = (clock.monotonic(), Duration::from_secs_f64(args.minutes * 60.0));
    let mut tried: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut seed, mut n_lost) = (args.seed, 0);
    if original::bundle().is_none() {
        println!("skipped: the original as second process, because PI_ORIGINAL does not name its cli.js");
    }
    loop {
        for (name, outcome) in one_seed(seed, args.cases).await {
            match outcome {
                Ok(n) => *tried.entry(name).or_default() += n,
                Err(problem) => {
                    n_lost += 1;
                    println!("LOST: {problem}\nrepeat with --seed {seed} --cases {}", args.cases);
                }
            }
        }
        seed += 1;
        if clock.monotonic() - start > limit || (n_lost > 0 && !args.keep_going) {
            break;
        }
    }
    let seconds = (clock.monotonic() - start).as_secs();
    println!("{} seeds from {} in {seconds} s", seed - args.seed, args.seed);
    for (name, n) in &tried {
        println!("{n:>8}  {name}");
    }
    match n_lost {
        0 => println!("nothing was lost"),
        n => println!("{n} cases lost something"),
    }
    n_lost == 0
}

/// Every kind of fault with one seed.
async fn one_seed(seed: u64, n: usize) -> Vec<(&'static str, Outcome)> {
    let command = || Command::new(std::env::current_exe().expect("this program has a file"));
    let mut outcomes = vec![
        ("kills before a write, rename, removal or sync", campaign::kill(seed, n).await),
        ("writes torn at a byte", campaign::tear(seed, n).await),
        ("disks that are full or fail, for a while or for good", campaign::fail(seed, n / 6 + 1).await),
        ("panics of the task that writes", campaign::panic(seed, n / 12 + 1).await),
        ("damaged lines", campaign::damage(seed, n).await),
        ("processes killed with SIGKILL", campaign::kill_child(seed, n / 12 + 1, command).await),
        ("sessions open twice, with and without locks", campaign::share(seed).await),
    ];
    if let Some(outcome) = campaign::share_with_original(seed).await {
        outcomes.push(("sessions open in the original too", outcome));
    }
    outcomes
}

/// Reports of panics that are part of a trial would hide the results.
fn silence_panics_on_purpose() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let is_on_purpose = info.payload_as_str().is_some_and(|text| text.contains("on purpose"));
        if !is_on_purpose {
            report(info);
        }
    }));
}
