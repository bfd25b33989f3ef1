//! Kills, full and broken disks, torn and damaged lines, second processes and panics: a
//! session loses nothing that was shown as finished. `cargo run --release --example faults`
//! tries the same for as long as there is time.

use std::process::Command;

use crate::support::faults::campaign::{self, Outcome};
use crate::support::faults::child;

#[track_caller]
fn passed(outcome: Outcome) {
    match outcome {
        Ok(n) => assert!(n > 0, "nothing was tried"),
        Err(problem) => panic!("{problem}"),
    }
}

#[tokio::test]
async fn kill_at_any_step_loses_nothing_that_was_shown() {
    for seed in 0..3 {
        passed(campaign::kill(seed, 40).await);
    }
}

#[tokio::test]
async fn write_torn_at_any_byte_loses_nothing_that_was_shown() {
    for seed in 10..13 {
        passed(campaign::tear(seed, 30).await);
    }
}

#[tokio::test]
async fn disk_that_fails_at_any_step_or_byte_loses_nothing_that_was_shown() {
    for seed in 20..23 {
        passed(campaign::fail(seed, 6).await);
    }
}

#[tokio::test]
async fn panic_at_any_step_loses_nothing_that_was_shown() {
    for seed in 30..33 {
        passed(campaign::panic(seed, 6).await);
    }
}

#[tokio::test]
async fn damaged_line_costs_that_line_alone() {
    for seed in 40..43 {
        passed(campaign::damage(seed, 30).await);
    }
}

#[tokio::test]
async fn second_process_on_a_session_loses_nothing() {
    for seed in 50..53 {
        passed(campaign::share(seed).await);
    }
}

#[tokio::test]
async fn original_on_a_session_loses_nothing() {
    match campaign::share_with_original(60).await {
        Some(outcome) => passed(outcome),
        None => eprintln!("skipped: PI_ORIGINAL does not name the original's cli.js, or node is missing"),
    }
}

#[tokio::test]
async fn killed_process_loses_nothing_that_was_shown() {
    let command = || {
        let mut command = Command::new(std::env::current_exe().expect("a test has a file"));
        command.args(["--exact", "faults::the_process_that_is_killed", "--nocapture"]);
        command
    };
    passed(campaign::kill_child(70, 4, command).await);
}

/// Does nothing unless another test started it.
#[tokio::test]
async fn the_process_that_is_killed() {
    #[expect(clippy::disallowed_methods, reason = "the test that starts this one uses a variable")]
    if let Ok(job) = std::env::var(child::CHILD) {
        child::serve(&job).await;
    }
}
