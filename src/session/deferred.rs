//! Results of `!` commands that are not in the session file yet, and the command that is
//! running.
//!
//! A result must not come between a tool call and its result, so it waits for the end of the
//! run. It is shown at once, so it is also stored at once: as a line of a file beside the
//! session. An entry keeps its id, so a crash while it moves to the session file duplicates
//! nothing. A command that is running has a line too, marked with `running`; if the process
//! is killed, the next one stores it as cancelled and reports it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::ai::{Extra, Millis};
use crate::util::clock;
use crate::util::disk::Disk;

use super::sidecar;
use super::store::{self, BashExecution, Entry, EntryBody, EntryId, SessionMessage};
use super::user_bash::BashId;

/// Marks the line of a command that is running.
const RUNNING: &str = "running";
/// The output of a command whose process was killed along with pi.
const LOST_OUTPUT: &str = "pi stopped while this command was running; its output was not saved";

/// The waiting entries of one session, oldest first.
#[derive(Debug)]
pub(super) struct DeferredEntries {
    disk: Arc<dyn Disk>,
    /// `None` for a session that is not saved.
    path: Option<PathBuf>,
    entries: Vec<Entry>,
    /// Entries that were taken and stay on disk until [`Self::forget`].
    taken: Vec<Entry>,
    /// Commands that are running.
    running: Vec<(BashId, Entry)>,
    problems: Vec<String>,
}

impl DeferredEntries {
    /// The entries beside the session at `session`. Blocks, briefly.
    pub(super) fn open(disk: &Arc<dyn Disk>, session: Option<&Path>) -> Self {
        let path = sidecar::path(session, ".deferred");
        let read = path.as_deref().map(|path| sidecar::read(&**disk, path, "results of ! commands"));
        let mut deferred = Self {
            disk: Arc::clone(disk),
            path,
            entries: Vec::new(),
            taken: Vec::new(),
            running: Vec::new(),
            problems: Vec::new(),
        };
        deferred.add_lines(read.unwrap_or_default());
        deferred
    }

    fn add_lines(&mut self, read: sidecar::Contents) {
        self.problems.extend(read.problem);
        let mut is_damaged = false;
        for line in read.bytes.split_inclusive(|byte| *byte == b'\n') {
            match Entry::parse(&String::from_utf8_lossy(line)) {
                Ok(mut entry) => {
                    if let Some(command) = end_running(&mut entry) {
                        self.problems.push(format!(
                            "pi stopped while this command was running, so its output is lost: {command}"
                        ));
                    }
                    self.entries.push(entry);
                    is_damaged |= line.contains(&0) || std::str::from_utf8(line).is_err();
                }
                // The last line of an earlier version may be incomplete; its command had not
                // been shown as finished.
                Err(_) => is_damaged |= line.ends_with(b"\n") && !line.trim_ascii().is_empty(),
            }
        }
        if let Some(path) = self.path.as_deref().filter(|_| is_damaged) {
            let what = "results of ! commands";
            self.problems.push(sidecar::keep_damaged(&*self.disk, path, &read.bytes, what));
        }
    }

    /// Removes and returns what could not be read or was lost, for the user.
    pub(super) fn take_problems(&mut self) -> Vec<String> {
        std::mem::take(&mut self.problems)
    }

    /// Continues beside the session at `session`, whose path has changed.
    pub(super) fn follow(&mut self, session: Option<&Path>) {
        let path = sidecar::path(session, ".deferred");
        if let (Some(old), Some(new)) = (&self.path, &path) {
            // Entries that cannot be moved are in memory as well.
            drop(self.disk.rename(old, new));
        }
        self.path = path;
    }

    /// Records that a command starts. Blocks, briefly.
    ///
    /// # Errors
    /// If the file cannot be written; a crash then loses the command.
    pub(super) fn begin(
        &mut self,
        id: BashId,
        command: &str,
        exclude_from_context: bool,
        now_ms: u64,
    ) -> io::Result<()> {
        let mut extra = Extra::new();
        extra.insert(RUNNING.to_owned(), true.into());
        let execution = BashExecution {
            command: command.to_owned(),
            cancelled: true,
            timestamp: Millis(now_ms),
            exclude_from_context: exclude_from_context.then_some(true),
            extra,
            ..BashExecution::default()
        };
        self.running.push((id, entry(EntryBody::bash(execution), now_ms)));
        self.save()
    }

    /// Adds the result of a command that was running; `None` if it did not start. Blocks,
    /// briefly.
    ///
    /// # Errors
    /// If the file cannot be written; the entry is then only in memory.
    pub(super) fn end(&mut self, id: BashId, body: Option<EntryBody>, now_ms: u64) -> io::Result<()> {
        let running = self.running.iter().position(|(running, _)| *running == id);
        let running = running.map(|at| self.running.remove(at).1);
        if let Some(body) = body {
            let ended = entry(body, now_ms);
            let id = running.map_or(ended.id, |running| running.id);
            self.entries.push(Entry { id, ..ended });
        }
        self.save()
    }

    /// Removes and returns all entries. They stay on disk until [`Self::forget`].
    pub(super) fn take(&mut self) -> Vec<Entry> {
        let entries = std::mem::take(&mut self.entries);
        self.taken.extend(entries.iter().cloned());
        entries
    }

    /// Removes entries that were taken from the disk, once they are in the session file.
    /// Blocks, briefly.
    pub(super) fn forget(&mut self) {
        self.taken.clear();
        // If they stay, they are read again and recognised by their ids.
        drop(self.save());
    }

    fn save(&self) -> io::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        let all = self.taken.iter().chain(&self.entries).chain(self.running.iter().map(|(_, entry)| entry));
        let lines: String = all.map(|entry| entry.to_line() + "\n").collect();
        if lines.is_empty() {
            return sidecar::remove(&*self.disk, path);
        }
        store::replace(&*self.disk, path, lines.as_bytes())
    }
}

fn entry(body: EntryBody, now_ms: u64) -> Entry {
    let id = EntryId::new(&uuid::Uuid::new_v4().simple().to_string()[..8]);
    Entry { id, parent_id: None, timestamp: clock::iso8601(now_ms), body }
}

/// Makes the line of a command that was running its result. Returns the command.
fn end_running(entry: &mut Entry) -> Option<String> {
    let EntryBody::Message { message: SessionMessage::BashExecution(execution), .. } = &mut entry.body else {
        return None;
    };
    execution.extra.shift_remove(RUNNING)?;
    execution.output = LOST_OUTPUT.to_owned();
    Some(execution.command.clone())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::session::store::SessionInfo;
    use crate::util::disk::SystemDisk;

    fn named(name: &str) -> EntryBody {
        EntryBody::SessionInfo(SessionInfo { name: name.to_owned(), extra: Extra::new() })
    }

    fn open(session: &Path) -> DeferredEntries {
        let disk: Arc<dyn Disk> = Arc::new(SystemDisk);
        DeferredEntries::open(&disk, Some(session))
    }

    #[test]
    fn entries_come_back_until_they_are_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let session = folder.path().join("s.jsonl");
        let mut deferred = open(&session);
        deferred.end(BashId::default(), Some(named("a")), 0).unwrap();
        deferred.end(BashId::default(), Some(named("b")), 0).unwrap();
        let pushed = deferred.take();

        // Torn by a crash of an earlier version.
        let path = folder.path().join(".s.jsonl.deferred");
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("{text}{{\"type\":\"sess")).unwrap();
        let mut next = open(&session);
        assert_eq!(next.take(), pushed);
        assert!(next.take_problems().is_empty());
        // A result that arrives now is on a line of its own, and those that were taken stay.
        next.end(BashId::default(), Some(named("c")), 0).unwrap();
        let mut again = open(&session).take();
        assert_eq!(again.split_off(2), next.take());
        assert_eq!(again, pushed);
        next.forget();
        assert!(!path.exists());
        assert!(open(&session).take().is_empty());
    }

    #[test]
    fn command_that_was_running_comes_back_once_as_cancelled() {
        let folder = tempfile::tempdir().unwrap();
        let session = folder.path().join("s.jsonl");
        open(&session).begin(BashId::default(), "make all", true, 0).unwrap();
        let mut next = open(&session);
        let entries = next.take();
        let [Entry { body: EntryBody::Message { message: SessionMessage::BashExecution(stored), .. }, .. }] =
            entries.as_slice()
        else {
            panic!("{entries:?}")
        };
        assert_eq!((stored.command.as_str(), stored.output.as_str()), ("make all", LOST_OUTPUT));
        assert!(stored.cancelled && stored.exclude_from_context == Some(true) && stored.extra.is_empty());
        assert!(next.take_problems()[0].ends_with("its output is lost: make all"));
        next.forget();
        assert!(open(&session).take().is_empty());
    }

    #[test]
    fn result_of_a_command_has_the_id_of_its_running_line() {
        let folder = tempfile::tempdir().unwrap();
        let session = folder.path().join("s.jsonl");
        let mut deferred = open(&session);
        deferred.begin(BashId::default(), "make", false, 0).unwrap();
        let running = open(&session).take()[0].id.clone();
        deferred.end(BashId::default(), Some(named("result")), 0).unwrap();
        assert_eq!(open(&session).take()[0].id, running);
        assert_eq!(deferred.take()[0].id, running);
    }

    #[test]
    fn damaged_results_are_reported_and_kept() {
        let folder = tempfile::tempdir().unwrap();
        let (session, path) = (folder.path().join("s.jsonl"), folder.path().join(".s.jsonl.deferred"));
        open(&session).end(BashId::default(), Some(named("a")), 0).unwrap();
        let damaged = format!("\0\0\0\n{}", fs::read_to_string(&path).unwrap());
        fs::write(&path, &damaged).unwrap();
        let mut next = open(&session);
        assert_eq!(next.take().len(), 1);
        let kept = folder.path().join(".s.jsonl.deferred.damaged");
        assert!(next.take_problems()[0].ends_with(&kept.display().to_string()));
        next.forget();
        assert_eq!(fs::read_to_string(kept).unwrap(), damaged);
    }
}
