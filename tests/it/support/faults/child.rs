//! Trials in a process of their own, which is killed.

#![expect(clippy::unwrap_used, reason = "a helper of tests may fail the test")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

use pi::session::Entry;
use serde_json::{Value, json};

use super::disk::Fault;
use super::trial::{self, ChildOf, Plan};
use super::witness::Shown;

/// The variable that makes a process a child, and says what it does.
pub(crate) const CHILD: &str = "PI_FAULTS_CHILD";

/// Begins the lines of a child, whose standard output may have others.
const MARK: &str = "shown: ";

/// How a child dies.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Death {
    /// Kills itself before a step, or after some bytes of a write.
    AtStep { step: u64, n_bytes: usize },
    /// Is killed when it has told this many things.
    AfterLines(usize),
}

/// Runs a trial in the folder `root` as a process that `command` starts, and returns what it
/// had shown when it died.
pub(crate) fn run(mut command: Command, seed: u64, n_deeds: usize, root: &PathBuf, death: Death) -> Shown {
    let (step, n_bytes) = match death {
        Death::AtStep { step, n_bytes } => (step, n_bytes),
        Death::AfterLines(_) => (u64::MAX, 0),
    };
    let job = json!({ "seed": seed, "deeds": n_deeds, "step": step, "bytes": n_bytes, "root": root });
    command.env(CHILD, job.to_string()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut shown = Shown::default();
    let mut n_lines = 0;
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        // A test prints its name before.
        let Some((_, told)) = line.split_once(MARK) else { continue };
        // The last line may be incomplete; what it tells was not shown completely.
        if let Ok(told) = serde_json::from_str(told) {
            hear(&mut shown, &told);
        }
        n_lines += 1;
        if matches!(death, Death::AfterLines(n) if n_lines == n) {
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    shown
}

/// What a child does that was told to be one.
pub(crate) async fn serve(job: &str) {
    let job: Value = serde_json::from_str(job).unwrap();
    let number = |name: &str| job[name].as_u64().unwrap();
    let fault = Fault::Kill { step: number("step"), n_bytes: usize::try_from(number("bytes")).unwrap() };
    let n_deeds = usize::try_from(number("deeds")).unwrap();
    let plan = Plan { seed: number("seed"), n_deeds, fault: Some(fault), every_step: false };
    let mut told = Shown::default();
    let tell = move |shown: &Shown| {
        let lines = news(&told, shown);
        std::io::stdout().write_all(lines.as_bytes()).unwrap();
        std::io::stdout().flush().unwrap();
        told = shown.clone();
    };
    let root = PathBuf::from(job["root"].as_str().unwrap());
    trial::run_as(plan, Some(ChildOf { root, tell: Box::new(tell) })).await;
}

/// What was shown since `told`, as lines.
fn news(told: &Shown, shown: &Shown) -> String {
    let mut lines = String::new();
    let mut say = |value: Value| {
        lines.push_str(MARK);
        lines.push_str(&value.to_string());
        lines.push('\n');
    };
    if told.path != shown.path {
        say(json!({ "path": shown.path }));
    }
    for (path, entries) in &shown.entries {
        for entry in &entries[told.of(path).len()..] {
            say(json!({ "file": path, "entry": entry.to_line() }));
        }
    }
    for word in shown.words.difference(&told.words) {
        say(json!({ "word": word }));
    }
    for early in &shown.too_early[told.too_early.len()..] {
        say(json!({ "early": early }));
    }
    lines
}

fn hear(shown: &mut Shown, told: &Value) {
    let text = |name: &str| told[name].as_str().map(str::to_owned);
    if let Some(path) = text("path") {
        shown.path = Some(path.into());
    }
    if let (Some(file), Some(line)) = (text("file"), text("entry")) {
        let entry = Arc::new(Entry::parse(&line).unwrap());
        shown.entries.entry(file.into()).or_default().push(entry);
    }
    shown.words.extend(text("word"));
    shown.too_early.extend(text("early"));
}
