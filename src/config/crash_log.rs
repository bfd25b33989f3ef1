//! Crashes of pi, in `crashes.json`, which pi shares with the original: an array of objects
//! with `timestamp`, `version`, `kind`, `message`, `stack`, `sessionFile`, `cwd` and `notified`.

use std::backtrace::Backtrace;
use std::borrow::Cow;
use std::io::{self, Read as _};
use std::panic::{Location, PanicHookInfo};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use crate::util::clock;
use crate::util::panics::panic_text;
use crate::util::{atomic_file, os};

use super::json_file::{FolderLock, LockTimes};

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
/// A crash is written even if another process holds the lock for longer.
const LOCK_TIMES: LockTimes = LockTimes {
    stale: Duration::from_secs(10),
    watch: Duration::from_millis(250),
    wait: Duration::from_secs(1),
};

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
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    notified: bool,
}

/// A panic, as it is recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Crash {
    /// The text of the panic, truncated, and its place in the source.
    pub message: String,
    /// Truncated at the end.
    pub stack: String,
}

impl Crash {
    /// A panic with the stack of the calling thread; for its hook.
    pub fn of(panic: &PanicHookInfo<'_>) -> Self {
        let stack = Backtrace::force_capture().to_string();
        Self {
            message: message(&panic_text(panic.payload()), panic.location()),
            stack: start_of(&stack, MAX_STACK_BYTES).to_owned(),
        }
    }
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
}

impl CrashLog {
    /// The log in the file at `path`, which need not exist.
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends a crash; `notified` says whether the user sees it, so that no later start reports it. Blocks.
    /// Runs in the panic hook, where another panic would abort the process: nothing in it may panic.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn record(
        &self,
        version: &str,
        crash: &Crash,
        context: &CrashContext,
        notified: bool,
        now_ms: u64,
    ) -> io::Result<()> {
        let record = serde_json::to_value(Record {
            timestamp: clock::iso8601(now_ms),
            version,
            kind: "panic",
            message: &crash.message,
            stack: &crash.stack,
            session_file: context.session_file.as_deref().map(Path::to_string_lossy),
            cwd: context.cwd.to_string_lossy(),
            notified,
        })?;
        if let Some(folder) = self.path.parent() {
            atomic_file::create_private_folder(folder)?;
        }
        self.alone(|| {
            let mut records = self.records();
            records.push(record);
            records.drain(..records.len().saturating_sub(MAX_RECORDS));
            self.write(&records)
        })
    }

    /// Returns the latest crash of the last seven days that was not shown before, and marks all records as
    /// shown. Blocks.
    pub fn take_unreported(&self, now_ms: u64) -> Option<UnreportedCrash> {
        unreported(&self.records(), now_ms)?;
        // Of several processes that start at once, one reports it.
        self.alone(|| self.take_from_file(now_ms))
    }

    fn take_from_file(&self, now_ms: u64) -> Option<UnreportedCrash> {
        let mut records = self.records();
        let unreported = unreported(&records, now_ms)?;
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

    /// Does `work` while no other thread or process changes the file, unless one has the lock for very long.
    fn alone<T>(&self, work: impl FnOnce() -> T) -> T {
        let _lock = FolderLock::acquire(&self.path, LOCK_TIMES).ok();
        work()
    }

    fn write(&self, records: &[Value]) -> io::Result<()> {
        let text = serde_json::to_string_pretty(records)? + "\n";
        atomic_file::write_owner_only(&self.path, text.as_bytes())
    }
}

/// The latest of `records` that is due for a report.
fn unreported(records: &[Value], now_ms: u64) -> Option<UnreportedCrash> {
    records.iter().rev().find_map(|record| {
        let at_ms = clock::parse_iso8601(record["timestamp"].as_str()?)?;
        let is_due = record["notified"] != true && now_ms.saturating_sub(at_ms) <= MAX_AGE_MS;
        let message = record["message"].as_str().filter(|_| is_due)?.to_owned();
        Some(UnreportedCrash { at_ms, message })
    })
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

    use super::*;

    const DAY_MS: u64 = MAX_AGE_MS / 7;
    const NOW_MS: u64 = 1_795_000_000_000;

    fn crash(message: &str) -> Crash {
        Crash { message: message.to_owned(), stack: "0: frame".to_owned() }
    }

    /// Records it as it is without a session.
    fn record(log: &CrashLog, message: &str, now_ms: u64) -> io::Result<()> {
        log.record("1", &crash(message), &CrashContext::default(), false, now_ms)
    }

    #[test]
    fn crash_is_recorded_and_reported_once() {
        let folder = tempfile::tempdir().unwrap();
        let log = CrashLog::new(folder.path().join("agent/crashes.json"));
        let context = CrashContext { session_file: Some("/s/a.jsonl".into()), cwd: "/work".into() };
        log.record("1.2.3", &crash("it broke"), &context, false, NOW_MS).unwrap();
        let records: Value = serde_json::from_str(&fs::read_to_string(log.path()).unwrap()).unwrap();
        let expected = json!([{
            "timestamp": clock::iso8601(NOW_MS), "version": "1.2.3", "kind": "panic", "message": "it broke",
            "stack": "0: frame", "sessionFile": "/s/a.jsonl", "cwd": "/work",
        }]);
        assert_eq!(records, expected);
        let reported = log.take_unreported(NOW_MS + DAY_MS).unwrap();
        assert_eq!(reported, UnreportedCrash { at_ms: NOW_MS, message: "it broke".to_owned() });
        assert_eq!(log.take_unreported(NOW_MS + DAY_MS), None);
    }

    #[test]
    fn crash_that_the_user_saw_is_recorded_and_not_reported_again() {
        let folder = tempfile::tempdir().unwrap();
        let log = CrashLog::new(folder.path().join("crashes.json"));
        log.record("1", &crash("shown"), &CrashContext::default(), true, NOW_MS).unwrap();
        assert_eq!(log.records()[0]["message"], "shown");
        assert_eq!(log.take_unreported(NOW_MS), None);
    }

    #[test]
    fn crashes_of_several_threads_at_once_are_all_recorded() {
        let folder = tempfile::tempdir().unwrap();
        let log = CrashLog::new(folder.path().join("crashes.json"));
        std::thread::scope(|scope| {
            for n in 0..MAX_RECORDS {
                let log = &log;
                scope.spawn(move || record(log, &format!("n{n}"), NOW_MS).unwrap());
            }
        });
        let mut messages: Vec<Value> = log.records().iter().map(|record| record["message"].clone()).collect();
        messages.sort_by_key(ToString::to_string);
        assert_eq!(messages, ["n0", "n1", "n2", "n3", "n4"]);
    }

    #[test]
    fn panic_with_a_long_text_keeps_the_earlier_records() {
        let folder = tempfile::tempdir().unwrap();
        let log = CrashLog::new(folder.path().join("crashes.json"));
        record(&log, "earlier", NOW_MS).unwrap();
        let message = message(&"é".repeat(1 << 20), Some(Location::caller()));
        record(&log, &message, NOW_MS).unwrap();
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
        log.record("1", &crash("broken"), &context, false, NOW_MS).unwrap();
        let [record] = log.records().try_into().unwrap();
        assert_eq!(
            (&record["cwd"], &record["sessionFile"]),
            (&json!("/caf\u{fffd}"), &json!("/caf\u{fffd}"))
        );
        assert_eq!(log.take_unreported(NOW_MS).unwrap().message, "broken");
    }

    #[test]
    fn crash_that_cannot_be_written_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), "").unwrap();
        let log = CrashLog::new(folder.path().join("file/crashes.json"));
        assert!(record(&log, "broken", NOW_MS).is_err());
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
            record(&log, &format!("n{n}"), NOW_MS + n).unwrap();
        }
        let messages = |log: &CrashLog| -> Vec<Value> {
            log.records().into_iter().map(|record| record["message"].clone()).collect()
        };
        assert_eq!(messages(&log), ["of the original", "n0", "n1", "n2", "n3"]);
        assert_eq!(log.records()[0]["more"], 1);
        record(&log, "n4", NOW_MS).unwrap();
        assert_eq!(messages(&log), ["n0", "n1", "n2", "n3", "n4"]);
        assert_eq!(log.take_unreported(NOW_MS + 8 * DAY_MS), None);
        assert_eq!(log.take_unreported(NOW_MS).unwrap().message, "n4");
        for damaged in ["", "{}", "[1, \"x\", null]", "\u{0}"] {
            fs::write(log.path(), damaged).unwrap();
            assert_eq!(log.take_unreported(NOW_MS), None, "{damaged:?}");
        }
    }
}
