//! Trials with one kind of fault each. Every function returns how many cases it tried, or
//! what was lost and how to repeat it.

#![expect(clippy::unwrap_used, reason = "a helper of tests may fail the test")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use pi::session::{Disk, Entry, EntryBody, SessionCommand, SessionEvent, WhenBusy};

use super::child::{self, Death};
use super::damage;
use super::dice::Dice;
use super::disk::{ALWAYS, EIO, ENOSPC, Fault, TrialDisk};
use super::original;
use super::reopen::{self, Damage};
use super::trial::{self, Files, Moment, Plan, Trial};
use super::witness::Shown;
use crate::support::session_bench::{Session, SessionBench, prompt};

/// The number of cases, or a report.
pub(crate) type Outcome = Result<usize, String>;

/// How many things the user of a trial does.
const N_DEEDS: usize = 14;

async fn run(seed: u64, fault: Option<Fault>, every_step: bool) -> Trial {
    trial::run(Plan { seed, n_deeds: N_DEEDS, fault, every_step }).await
}

/// Reopens a moment; a failure names the case and keeps the files.
async fn check(bench: &SessionBench, moment: &Moment, damage: &Damage, case: &str) -> Result<(), String> {
    reopen::check(bench, moment, damage).await.map_err(|problem| {
        let kept = tempfile::Builder::new().prefix("pi-faults-").tempdir().unwrap().keep();
        reopen::restore(&kept, &moment.files);
        format!("{case}: {problem}\nthe files before reopening are in {}", kept.display())
    })
}

fn case(kind: &str, seed: u64, what: &str) -> String {
    format!("{kind}, seed {seed}, {what}")
}

fn unstopped(trial: &Trial, kind: &str, seed: u64, what: &str) -> Result<(), String> {
    match &trial.stopped {
        None => Ok(()),
        Some(reason) => Err(format!("{}: {reason}; it did {:?}", case(kind, seed, what), trial.deeds)),
    }
}

/// Kills at every write, rename, removal and sync, or at `n` of them.
pub(crate) async fn kill(seed: u64, n: usize) -> Outcome {
    let trial = run(seed, None, true).await;
    unstopped(&trial, "kill", seed, "without a fault")?;
    let moments = Dice::new(seed).some(&trial.moments, n);
    for moment in &moments {
        let what = format!("before step {} ({})", moment.step, moment.what);
        check(&trial.bench, moment, &Damage::default(), &case("kill", seed, &what)).await?;
    }
    Ok(moments.len())
}

/// Tears `n` of the writes, each at a random byte, or all at every byte.
pub(crate) async fn tear(seed: u64, n: usize) -> Outcome {
    let trial = run(seed, None, true).await;
    unstopped(&trial, "torn write", seed, "without a fault")?;
    let mut torn: Vec<(usize, &String, usize)> = Vec::new();
    for (at, pair) in trial.moments.windows(2).enumerate() {
        for (name, after) in &pair[1].files {
            let before = pair[0].files.get(name).map_or(&[][..], |bytes| bytes.as_slice());
            if after.len() > before.len() && after.starts_with(before) {
                torn.extend((before.len() + 1..after.len()).map(|len| (at, name, len)));
            }
        }
    }
    let torn = Dice::new(seed).some(&torn, n);
    for (at, name, len) in &torn {
        let mut moment = trial.moments[*at].clone();
        let bytes = trial.moments[at + 1].files[*name][..*len].to_vec();
        moment.files.insert((*name).clone(), Arc::new(bytes));
        let what = format!("step {at}, {name} torn at byte {len}");
        check(&trial.bench, &moment, &Damage::default(), &case("torn write", seed, &what)).await?;
    }
    Ok(torn.len())
}

/// Makes `n` writes or other steps fail: once, some times, or from then on.
pub(crate) async fn fail(seed: u64, n: usize) -> Outcome {
    let whole = run(seed, None, false).await;
    unstopped(&whole, "failing disk", seed, "without a fault")?;
    let (n_steps, n_bytes) = whole.disk.count();
    let mut dice = Dice::new(seed);
    for _ in 0..n {
        let errno = [ENOSPC, EIO][dice.below(2)];
        let n_times = [1, 2, 5, ALWAYS][dice.below(4)];
        let fault = if dice.chance(50) {
            Fault::FailByte { at: dice.roll() % n_bytes.max(1), errno, n_times }
        } else {
            Fault::FailStep { step: dice.roll() % n_steps.max(1), errno, n_times }
        };
        let trial = run(seed, Some(fault), false).await;
        let what = format!("{fault:?}");
        let is_lasting = n_times == ALWAYS;
        if !is_lasting {
            unstopped(&trial, "failing disk", seed, &what)?;
        }
        trial.disk.mend();
        let is_worth = |entry: &Entry| matches!(entry.body, EntryBody::Message { .. });
        // The last attempt, at the end, may have written it without another event.
        let is_in = |path: &PathBuf, entry: &Entry| {
            let text = std::fs::read_to_string(path).unwrap_or_default();
            text.lines().any(|line| Entry::parse(line).is_ok_and(|found| found.id == entry.id))
        };
        let is_lost = |(path, entry): &&(PathBuf, Arc<Entry>)| is_worth(entry) && !is_in(path, entry);
        let unsaved = trial.end().shown.unsaved.iter().find(is_lost);
        if let (Some((_, entry)), None, None) = (unsaved, &trial.quit, &trial.stopped) {
            let case = case("failing disk", seed, &what);
            return Err(format!("{case}: not saved, and quitting did not say so: {}", entry.to_line()));
        }
        check(&trial.bench, trial.end(), &Damage::default(), &case("failing disk", seed, &what)).await?;
    }
    Ok(n)
}

/// Makes `n` steps panic, each in the task that takes it.
pub(crate) async fn panic(seed: u64, n: usize) -> Outcome {
    let whole = run(seed, None, false).await;
    let (n_steps, _) = whole.disk.count();
    let mut dice = Dice::new(seed);
    for _ in 0..n {
        let fault = Fault::Panic { step: dice.roll() % n_steps.max(1) };
        let trial = run(seed, Some(fault), false).await;
        trial.disk.mend();
        let what = format!("{fault:?}");
        check(&trial.bench, trial.end(), &Damage::default(), &case("panic", seed, &what)).await?;
    }
    Ok(n)
}

/// Damages a line of the session file, in `n` ways.
pub(crate) async fn damage(seed: u64, n: usize) -> Outcome {
    let trial = run(seed, None, false).await;
    unstopped(&trial, "damaged line", seed, "without a fault")?;
    let end = trial.end();
    let name = end.shown.path.as_ref().and_then(|path| path.file_name());
    let name = name.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let Some(bytes) = end.files.get(&name) else { return Ok(0) };
    let mut dice = Dice::new(seed);
    for _ in 0..n {
        let damaged = damage::damage(bytes, &mut dice);
        let mut moment = end.clone();
        moment.files.insert(name.clone(), Arc::new(damaged.bytes));
        check(&trial.bench, &moment, &damaged.damage, &case("damaged line", seed, &damaged.what)).await?;
    }
    Ok(n)
}

/// Runs a trial in a process of its own, which `command` starts, and kills it `n` times: at
/// a step, in the middle of a write, or from outside.
pub(crate) async fn kill_child(seed: u64, n: usize, command: impl Fn() -> Command) -> Outcome {
    let whole = run(seed, None, false).await;
    let (n_steps, _) = whole.disk.count();
    let mut dice = Dice::new(seed);
    for _ in 0..n {
        let death = match dice.below(3) {
            0 => Death::AtStep { step: dice.roll() % n_steps.max(1), n_bytes: 0 },
            1 => Death::AtStep { step: dice.roll() % n_steps.max(1), n_bytes: dice.below(300) + 1 },
            _ => Death::AfterLines(dice.below(60) + 1),
        };
        let (bench, _) = trial::bench(seed);
        let shown = child::run(command(), seed, N_DEEDS, &bench.path(""), death);
        let files = trial::files(&bench.path("sessions"));
        let moment = Moment { step: 0, what: String::new(), files, shown: Arc::new(shown) };
        check(&bench, &moment, &Damage::default(), &case("killed process", seed, &format!("{death:?}")))
            .await?;
    }
    Ok(n)
}

/// Opens a session twice: with locks the second one is read-only; without them both write,
/// and neither loses anything.
pub(crate) async fn share(seed: u64) -> Outcome {
    share_locked(seed).await.map_err(|problem| format!("second process, seed {seed}: {problem}"))?;
    share_unlocked(seed).await.map_err(|problem| format!("no locks, seed {seed}: {problem}"))?;
    Ok(2)
}

async fn share_locked(seed: u64) -> Result<(), String> {
    let (bench, _) = trial::bench(seed);
    let mut first = bench.start().await;
    say(&mut first, "w00001").await?;
    let path = first.path();
    let mut second = bench.resume(&path).await;
    let before = trial::files(&bench.path("sessions"));
    let notices = notices(&mut second);
    if !notices.contains("read-only") {
        return Err(format!("the second one is not told that it can only read: {notices:?}"));
    }
    if second.request(prompt("w00002", WhenBusy::Steer)).await.is_ok() {
        return Err("the second one may write".to_owned());
    }
    quit(second).await;
    if trial::files(&bench.path("sessions")) != before {
        return Err("the second one changed files".to_owned());
    }
    say(&mut first, "w00003").await?;
    quit(first).await;
    let text = std::fs::read_to_string(&path).unwrap();
    if !text.contains("w00003") || text.contains("w00002") {
        return Err("the first one could not go on".to_owned());
    }
    Ok(())
}

async fn share_unlocked(seed: u64) -> Result<(), String> {
    let (bench, _) = trial::bench(seed);
    let bench = bench.disk(TrialDisk::without_locks() as Arc<dyn Disk>);
    let mut first = bench.start().await;
    say(&mut first, "w00001").await?;
    let path = first.path();
    let mut second = bench.resume(&path).await;
    let told = notices(&mut second);
    if !told.contains("cannot be locked") {
        return Err(format!("nobody is told that there is no lock: {told:?}"));
    }
    let mut dice = Dice::new(seed);
    for n in 2..8 {
        let text = format!("w{n:05}");
        // Each of them writes at least once: one that is alone has nothing to notice.
        if n == 2 || n > 3 && dice.chance(50) {
            say(&mut first, &text).await?;
        } else {
            say(&mut second, &text).await?;
        }
    }
    let told = notices(&mut first) + &notices(&mut second);
    if !told.contains("another program") {
        return Err(format!("nobody is told that another program writes: {told:?}"));
    }
    quit(first).await;
    quit(second).await;
    all_there(&bench, &path, 8).await
}

/// Lets the original write to a session that is open here. `None` if it is not installed.
pub(crate) async fn share_with_original(seed: u64) -> Option<Outcome> {
    let bundle = original::bundle()?;
    Some(with_original(seed, &bundle).await.map_err(|problem| format!("original, seed {seed}: {problem}")))
}

async fn with_original(seed: u64, bundle: &Path) -> Outcome {
    let (bench, _) = trial::bench(seed);
    let mut session = bench.start().await;
    for n in 1..4 {
        say(&mut session, &format!("w{n:05}")).await?;
        let answered =
            original::name_session(bundle, &session.path(), &bench.path("work"), &format!("name {n}"));
        if !answered.contains("w00001") {
            return Err(format!("it does not read the session: {answered}"));
        }
    }
    let path = session.path();
    quit(session).await;
    all_there(&bench, &path, 4).await?;
    Ok(3)
}

/// Every word below `n` is in the session, which opens and goes on.
async fn all_there(bench: &SessionBench, path: &Path, n: usize) -> Result<(), String> {
    let mut shown = Shown { path: Some(path.to_owned()), ..Shown::default() };
    (1..n).for_each(|n| shown.promise(&format!("w{n:05}")));
    let files: Files = trial::files(&bench.path("sessions"));
    let moment = Moment { step: 0, what: String::new(), files, shown: Arc::new(shown) };
    reopen::check(bench, &moment, &Damage::default()).await
}

async fn say(session: &mut Session, text: &str) -> Result<(), String> {
    let replied = session.request(prompt(text, WhenBusy::Refuse)).await;
    replied.map_err(|error| error.to_string())?;
    while !matches!(session.next_kept().await, SessionEvent::Settled { .. }) {}
    Ok(())
}

fn notices(session: &mut Session) -> String {
    let events = session.waiting_events().into_iter();
    let texts = events.filter_map(|event| match event {
        SessionEvent::Notice { text, .. } => Some(text + "\n"),
        _ => None,
    });
    texts.collect()
}

async fn quit(session: Session) {
    drop(session.request(SessionCommand::Shutdown).await);
    session.gone().await;
}
