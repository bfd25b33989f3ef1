//! Crashes of the interface, in `crashes.json`, which pi shares with the original: an array of objects
//! with `timestamp`, `version`, `kind`, `message`, `stack`, `sessionFile`, `cwd` and `notified`.

use std::backtrace::Backtrace;
use std::borrow::Cow;
use std::io::{self, Read as _};
use std::panic::{self, Location};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde::Serialize;
use serde_json::Value;

use crate::util::clock::{self, Clock};
use crate::util::panics::panic_text;
use crate::util::{atomic_file, os};

/// Older records are dropped.
const MAX_RECORDS: usize = 5;
/// The age up to which a crash is reported to the user, in milliseconds.
const MAX_AGE_MS: u64 = 7 * 24 * 60 * 60 * 1000;
/// More than five records need. A larger file is replaced.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// Longer stacks are truncated at the end, where the frames of every program are.
const MAX_STACK_BYTES: usize = 32 << 10;
/// Longer texts of panics, which may contain whatever the program was working on, are truncated at the end.
const MAX_MESSAGE_BYTES: usize = 4 << 10;

/// The state of the program when it crashed.
#[derive(Debug, Clone, Default)]
pub struct CrashContext {
    /// The open session, if it is on disk.
    pub session_file: Option<PathBuf>,
    /// The directory of the session.
    pub cwd: PathBuf,
}

/// A crash in the file. Paths are text there, because JSON has no other names; one that is not UTF-8 is written
/// with replacement characters.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Record<'a> {
    timestamp: String,
    version: &'a str,
    kind: &'a str,
    message: &'a str,
    stack: &'a str,
    session_file: Option<Cow<'a, str>>,
    cwd: Cow<'a, str>,
}

/// A crash that was not yet shown to the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreportedCrash {
    /// In milliseconds since 1970.
    pub at_ms: u64,
    /// The message of the panic and its place in the source.
    pub message: String,
}

/// The file.
#[derive(Debug, Clone)]
pub struct CrashLog {
    path: PathBuf,
    /// Shared by all clones.
    has_recorded: Arc<AtomicBool>,
}

impl CrashLog {
    /// The log in the file at `path`, which need not exist.
    pub fn new(path: PathBuf) -> Self {
        Self { path, has_recorded: Arc::default() }
    }

    /// Whether a panic of this process is in the file.
    pub fn has_recorded(&self) -> bool {
        self.has_recorded.load(Ordering::SeqCst)
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Records every panic of the calling thread from now on, before it is printed. `context` is called then,
    /// and must not wait for anything.
    pub fn record_panics(
        self,
        version: &'static str,
        clock: Clock,
        context: impl Fn() -> CrashContext + Send + Sync + 'static,
    ) {
        let (thread, previous) = (thread::current().id(), panic::take_hook());
        panic::set_hook(Box::new(move |panic| {
            if thread::current().id() == thread {
                let message = message(&panic_text(panic.payload()), panic.location());
                let stack = Backtrace::force_capture().to_string();
                // The panic itself is printed in any case.
                drop(self.record(version, &message, &stack, &context(), clock.now_ms()));
            }
            previous(panic);
        }));
    }

    /// Appends a crash. Blocks. Runs in the panic hook, where another panic would abort the process: nothing in
    /// it may panic.
    ///
    /// # Errors
    /// If the file cannot be written.
    fn record(
        &self,
        version: &str,
        message: &str,
        stack: &str,
        context: &CrashContext,
        now_ms: u64,
    ) -> io::Result<()> {
        let mut records = self.records();
        records.push(serde_json::to_value(Record {
            timestamp: clock::iso8601(now_ms),
            version,
            kind: "panic",
            message,
            stack: start_of(stack, MAX_STACK_BYTES),
            session_file: context.session_file.as_deref().map(Path::to_string_lossy),
            cwd: context.cwd.to_string_lossy(),
        })?);
        records.drain(..records.len().saturating_sub(MAX_RECORDS));
        self.write(&records)?;
        self.has_recorded.store(true, Ordering::SeqCst);
        Ok(())
    }

    /// Returns the latest crash of the last seven days that was not shown before, and marks all records as
    /// shown. Blocks.
    pub fn take_unreported(&self, now_ms: u64) -> Option<UnreportedCrash> {
        let mut records = self.records();
        let unreported = records.iter().rev().find_map(|record| {
            let at_ms = clock::parse_iso8601(record["timestamp"].as_str()?)?;
            let is_due = record["notified"] != true && now_ms.saturating_sub(at_ms) <= MAX_AGE_MS;
            let message = record["message"].as_str().filter(|_| is_due)?.to_owned();
            Some(UnreportedCrash { at_ms, message })
        })?;
        for record in records.iter_mut().filter_map(Value::as_object_mut) {
            record.insert("notified".to_owned(), true.into());
        }
        // If that fails, the next start shows it once more.
        drop(self.write(&records));
        Some(unreported)
    }

    /// The records of the file; empty if it is damaged. Leaves out what is no record.
    fn records(&self) -> Vec<Value> {
        let mut text = String::new();
        let read = |text: &mut String| {
            os::open_regular(&self.path)?.take(MAX_FILE_BYTES).read_to_string(text).map(drop)
        };
        let records: Vec<Value> = match read(&mut text) {
            Ok(()) => serde_json::from_str(&text).unwrap_or_default(),
            Err(_) => Vec::new(),
        };
        records
            .into_iter()
            .filter(|record| record["timestamp"].is_string() && record["message"].is_string())
            .collect()
    }

    fn write(&self, records: &[Value]) -> io::Result<()> {
        let text = serde_json::to_string_pretty(records)? + "\n";
        atomic_file::write_owner_only(&self.path, text.as_bytes())
    }
}

/// The text of a panic, truncated, and its place in the source.
fn message(text: &str, at: Option<&Location<'_>>) -> String {
    let at = at.map(|at| format!(" ({}:{})", at.file(), at.line())).unwrap_or_default();
    start_of(text, MAX_MESSAGE_BYTES).to_owned() + &at
}

/// The first bytes of a text, at most `limit` and only whole characters.
fn start_of(text: &str, limit: usize) -> &str {
    text.get(..text.floor_char_boundary(limit)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use crate::util::panics::lock_hook;

    use super::*;

    const DAY_MS: u64 = MAX_AGE_MS / 7;
    const NOW_MS: u64 = 1_795_000_000_000;

    #[test]
    fn panic_of_the_thread_is_recorded_and_reported_once() {
        let _hook = lock_hook();
        let folder = tempfile::tempdir().unwrap();
        let log = CrashLog::new(folder.path().join("crashes.json"));
        let context = CrashContext { session_file: Some("/s/a.jsonl".into()), cwd: "/work".into() };
        let recording = log.clone();
        let broken = thread::spawn(move || {
            recording.record_panics("1.2.3", Clock::manual(NOW_MS), move || context.clone());
            // A panic of another thread is not recorded.
            drop(thread::spawn(|| panic!("elsewhere")).join());
            panic!("the interface broke");
        });
        assert!(broken.join().is_err());
        assert!(log.has_recorded());
        let records: Value = serde_json::from_str(&fs::read_to_string(log.path()).unwrap()).unwrap();
        let [record] = records.as_array().unwrap().as_slice() else { panic!("{records}") };
        assert_eq!(record["version"], "1.2.3");
        assert_eq!(record["timestamp"], clock::iso8601(NOW_MS));
        assert_eq!((&record["sessionFile"], &record["cwd"]), (&json!("/s/a.jsonl"), &json!("/work")));
        assert!(!record["stack"].as_str().unwrap().is_empty());
        let reported = log.take_unreported(NOW_MS + DAY_MS).unwrap();
        assert!(
            reported.message.starts_with("the interface broke (src/config/crash_log.rs:"),
            "{reported:?}"
        );
        assert_eq!(log.take_unreported(NOW_MS + DAY_MS), None);
    }

    #[test]
    fn panic_with_a_long_text_keeps_the_earlier_records() {
        let folder = tempfile::tempdir().unwrap();
        let log = CrashLog::new(folder.path().join("crashes.json"));
        log.record("1", "earlier", "", &CrashContext::default(), NOW_MS).unwrap();
        let message = message(&"é".repeat(1 << 20), Some(Location::caller()));
        log.record("1", &message, "", &CrashContext::default(), NOW_MS).unwrap();
        let [earlier, long] = log.records().try_into().unwrap();
        assert_eq!(earlier["message"], "earlier");
        let (text, place) = long["message"].as_str().unwrap().split_once(' ').unwrap();
        assert_eq!(text, "é".repeat(MAX_MESSAGE_BYTES / 2));
        assert!(place.starts_with("(src/config/crash_log.rs:"), "{place}");
        assert_eq!(log.take_unreported(NOW_MS).unwrap().message, message);
    }

    #[cfg(unix)]
    #[test]
    fn crash_in_a_directory_whose_name_is_not_utf8_is_recorded() {
        use std::ffi::OsStr;
        use std::os::unix::ffi::OsStrExt as _;

        let folder = tempfile::tempdir().unwrap();
        let log = CrashLog::new(folder.path().join("crashes.json"));
        let path = PathBuf::from(OsStr::from_bytes(b"/caf\xe9"));
        let context = CrashContext { session_file: Some(path.clone()), cwd: path };
        log.record("1", "broken", "", &context, NOW_MS).unwrap();
        let [record] = log.records().try_into().unwrap();
        assert_eq!(
            (&record["cwd"], &record["sessionFile"]),
            (&json!("/caf\u{fffd}"), &json!("/caf\u{fffd}"))
        );
        assert_eq!(log.take_unreported(NOW_MS).unwrap().message, "broken");
    }

    #[test]
    fn crash_that_cannot_be_written_does_not_count_as_recorded() {
        let folder = tempfile::tempdir().unwrap();
        let log = CrashLog::new(folder.path().join("none/crashes.json"));
        assert!(log.record("1", "broken", "", &CrashContext::default(), NOW_MS).is_err());
        assert!(!log.has_recorded());
    }

    #[test]
    fn five_records_are_kept_and_old_ones_are_not_reported() {
        let folder = tempfile::tempdir().unwrap();
        let log = CrashLog::new(folder.path().join("crashes.json"));
        assert_eq!(log.take_unreported(NOW_MS), None);
        let foreign =
            json!([{"timestamp": clock::iso8601(NOW_MS), "message": "of the original", "more": 1}, 3]);
        fs::write(log.path(), foreign.to_string()).unwrap();
        for n in 0..4 {
            log.record("1", &format!("n{n}"), "", &CrashContext::default(), NOW_MS + n).unwrap();
        }
        let messages = |log: &CrashLog| -> Vec<Value> {
            log.records().into_iter().map(|record| record["message"].clone()).collect()
        };
        assert_eq!(messages(&log), ["of the original", "n0", "n1", "n2", "n3"]);
        assert_eq!(log.records()[0]["more"], 1);
        log.record("1", "n4", "", &CrashContext::default(), NOW_MS).unwrap();
        assert_eq!(messages(&log), ["n0", "n1", "n2", "n3", "n4"]);
        assert_eq!(log.take_unreported(NOW_MS + 8 * DAY_MS), None);
        assert_eq!(log.take_unreported(NOW_MS).unwrap().message, "n4");
        for damaged in ["", "{}", "[1, \"x\", null]", "\u{0}"] {
            fs::write(log.path(), damaged).unwrap();
            assert_eq!(log.take_unreported(NOW_MS), None, "{damaged:?}");
        }
    }
}
