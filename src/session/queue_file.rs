//! Queued messages on disk, beside their session: a crash loses none of them.
//!
//! The file is a log of changes, so that the cost of a message does not depend on the
//! length of the queue. It is rewritten once most of it is obsolete, and removed when
//! the queue is empty. Messages left in it when the session is opened were never
//! delivered; they stay there until the user takes them back. A message returned to the
//! user stays in the file until the draft that contains it is stored.
//!
//! A line is a JSON object. `{"steering": […], "followUp": […]}` contains both
//! queues; earlier versions wrote nothing else. `{"queue": "steering", "at": 3,
//! "remove": 1, "insert": […]}` replaces messages of one of them. A message is a
//! text, or an object with `text`, `images` and `pastes`. Readers ignore other fields.

use std::collections::VecDeque;
use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::command::{PromptDraft, TakenQueue};
use super::{sidecar, store};
use crate::agent::QueueKind;
use crate::util::disk::{self, Disk};
use crate::util::os;

/// Obsolete bytes tolerated before the file is rewritten.
const SLACK_BYTES: u64 = 64 * 1024;

/// A message in the file, in the simplest possible form.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum StoredPrompt {
    Text(String),
    Whole(PromptDraft),
}

impl From<StoredPrompt> for PromptDraft {
    fn from(stored: StoredPrompt) -> Self {
        match stored {
            StoredPrompt::Text(text) => Self { text, ..Self::default() },
            StoredPrompt::Whole(prompt) => prompt,
        }
    }
}

impl From<&PromptDraft> for StoredPrompt {
    fn from(prompt: &PromptDraft) -> Self {
        if prompt.images.is_empty() && prompt.pastes.is_empty() {
            Self::Text(prompt.text.clone())
        } else {
            Self::Whole(prompt.clone())
        }
    }
}

fn stored<'a>(prompts: impl IntoIterator<Item = &'a PromptDraft>) -> Vec<StoredPrompt> {
    prompts.into_iter().map(StoredPrompt::from).collect()
}

/// Both queues as stored; oldest first.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct StoredQueues {
    pub(super) steering: VecDeque<PromptDraft>,
    pub(super) follow_up: VecDeque<PromptDraft>,
}

impl StoredQueues {
    fn is_empty(&self) -> bool {
        self.steering.is_empty() && self.follow_up.is_empty()
    }

    fn line(&self) -> String {
        let value =
            serde_json::json!({ "steering": stored(&self.steering), "followUp": stored(&self.follow_up) });
        value.to_string() + "\n"
    }
}

/// A message that left the queue and stays in the file.
#[derive(Debug)]
struct LeftOver {
    kind: QueueKind,
    prompt: PromptDraft,
    /// The ticket of its return to the user; `None` for a message of an earlier process
    /// that the user has not taken back.
    ticket: Option<u64>,
}

/// The queue file of one session.
#[derive(Debug)]
pub(super) struct QueueFile {
    disk: Arc<dyn Disk>,
    /// `None` for a session that is not saved.
    path: Option<PathBuf>,
    /// Oldest first.
    left_over: Vec<LeftOver>,
    last_ticket: u64,
    /// The current contents of the file.
    written: StoredQueues,
    /// Length of the file; `None` if it must be written as a whole.
    len_bytes: Option<u64>,
    /// Approximate number of bytes that are not obsolete.
    live_bytes: u64,
    /// Whether the last change is missing from the file.
    is_stale: bool,
    /// Number of bytes written since the file was opened.
    n_written_bytes: u64,
    /// What could not be read, for the user.
    problem: Option<String>,
}

impl QueueFile {
    /// The file beside the session at `session`, with its left-over messages except
    /// those in the stored draft.
    pub(super) fn open(disk: &Arc<dyn Disk>, session: Option<&Path>, in_draft: &[PromptDraft]) -> Self {
        let path = sidecar::path(session, ".queue");
        let (written, problem) = path.as_deref().map(|path| read(&**disk, path)).unwrap_or_default();
        let mut in_draft = in_draft.to_vec();
        let mut is_new = |prompt: &PromptDraft| match in_draft.iter().position(|held| held == prompt) {
            Some(at) => {
                in_draft.swap_remove(at);
                false
            }
            None => true,
        };
        let kinds = [(QueueKind::Steering, &written.steering), (QueueKind::FollowUp, &written.follow_up)];
        let mut left_over = Vec::new();
        for (kind, prompts) in kinds {
            let prompts = prompts.iter().filter(|prompt| is_new(prompt)).cloned();
            left_over.extend(prompts.map(|prompt| LeftOver { kind, prompt, ticket: None }));
        }
        Self {
            disk: Arc::clone(disk),
            path,
            left_over,
            last_ticket: 0,
            written,
            len_bytes: None,
            live_bytes: 0,
            is_stale: false,
            n_written_bytes: 0,
            problem,
        }
    }

    /// Gives no ticket again that `earlier` gave: an editor that stores a draft with one would
    /// drop messages that it has not seen.
    pub(super) fn continue_tickets(&mut self, earlier: &Self) {
        self.last_ticket = self.last_ticket.max(earlier.last_ticket);
    }

    /// Continues beside the session at `session`, whose path has changed.
    pub(super) fn follow(&mut self, session: Option<&Path>) {
        let path = sidecar::path(session, ".queue");
        if path == self.path {
            return;
        }
        if let (Some(old), Some(new)) = (&self.path, &path) {
            // Without a queue there is no file; one that cannot be moved is written anew.
            drop(self.disk.rename(old, new));
        }
        self.path = path;
        self.len_bytes = None;
        self.is_stale = true;
    }

    /// Writes left-over and queued messages to the file. Blocks, briefly.
    ///
    /// # Errors
    /// If it cannot be written; the queue in memory is not affected, and the next
    /// call writes everything.
    pub(super) fn save(&mut self, queue: &StoredQueues) -> io::Result<()> {
        let Some(path) = self.path.clone() else { return Ok(()) };
        let steering = self.splice(QueueKind::Steering, &self.written.steering, &queue.steering);
        let follow_up = self.splice(QueueKind::FollowUp, &self.written.follow_up, &queue.follow_up);
        if steering.is_none() && follow_up.is_none() && !self.is_stale {
            return Ok(());
        }
        let splices = [("steering", steering), ("followUp", follow_up)];
        let mut lines = String::new();
        for (name, splice) in splices {
            let Some(splice) = splice else { continue };
            lines.push_str(&splice.line(name));
            let list =
                if name == "steering" { &mut self.written.steering } else { &mut self.written.follow_up };
            let removed: u64 = list.range(splice.at..splice.at + splice.remove).map(live_bytes).sum();
            let inserted: u64 = splice.insert.iter().map(live_bytes).sum();
            self.live_bytes = (self.live_bytes + inserted).saturating_sub(removed);
            splice.apply(list);
        }
        let result = self.write(&path, &lines);
        self.is_stale = result.is_err();
        if self.is_stale {
            // The file may end in a partial line.
            self.len_bytes = None;
        }
        result
    }

    fn write(&mut self, path: &Path, lines: &str) -> io::Result<()> {
        if self.written.is_empty() {
            self.len_bytes = None;
            self.live_bytes = 0;
            return sidecar::remove(&*self.disk, path);
        }
        let n = lines.len() as u64;
        match self.len_bytes {
            Some(len) if len + n <= 2 * self.live_bytes + SLACK_BYTES && self.append(path, len, lines)? => {
                self.len_bytes = Some(len + n);
                self.n_written_bytes += n;
            }
            _ => {
                let line = self.written.line();
                store::replace(&*self.disk, path, line.as_bytes())?;
                let n = line.len() as u64;
                (self.len_bytes, self.live_bytes) = (Some(n), n);
                self.n_written_bytes += n;
            }
        }
        Ok(())
    }

    /// Appends lines to a file of `len` bytes; `false` if the file has another length.
    fn append(&self, path: &Path, len: u64, lines: &str) -> io::Result<bool> {
        let mut options = OpenOptions::new();
        options.append(true);
        os::refuse_links(&mut options);
        let Ok(file) = self.disk.open(&options, path) else { return Ok(false) };
        let metadata = file.metadata()?;
        if !metadata.is_file() || metadata.len() != len {
            return Ok(false);
        }
        disk::write_all(&*self.disk, &file, lines.as_bytes())?;
        Ok(true)
    }

    /// The change from `before` to the left-over messages of `kind` followed by `queue`.
    fn splice(
        &self,
        kind: QueueKind,
        before: &VecDeque<PromptDraft>,
        queue: &VecDeque<PromptDraft>,
    ) -> Option<Splice> {
        let left_over = self.left_over.iter().filter(|left| left.kind == kind).map(|left| &left.prompt);
        let after: Vec<&PromptDraft> = left_over.chain(queue).collect();
        Splice::between(before, &after)
    }

    /// Removes and returns what could not be read, for the user.
    pub(super) fn take_problem(&mut self) -> Option<String> {
        self.problem.take()
    }

    /// Removes and returns the messages of earlier processes that are still left over.
    pub(super) fn take_left_over(&mut self) -> TakenQueue {
        let ticket = self.last_ticket + 1;
        let mut taken = TakenQueue::default();
        for left in self.left_over.iter_mut().filter(|left| left.ticket.is_none()) {
            left.ticket = Some(ticket);
            (taken.ticket, self.last_ticket) = (ticket, ticket);
            taken.of_kind(left.kind).push(left.prompt.clone());
        }
        taken
    }

    /// Returns messages that left the queue to the user. They stay in the file until
    /// [`Self::forget`].
    pub(super) fn give_back(
        &mut self,
        steering: Vec<PromptDraft>,
        follow_up: Vec<PromptDraft>,
    ) -> TakenQueue {
        let mut taken = TakenQueue { steering, follow_up, ..TakenQueue::default() };
        if taken.steering.is_empty() && taken.follow_up.is_empty() {
            return taken;
        }
        self.last_ticket += 1;
        taken.ticket = self.last_ticket;
        for kind in [QueueKind::Steering, QueueKind::FollowUp] {
            let ticket = Some(taken.ticket);
            let prompts = taken.of_kind(kind).iter().cloned();
            self.left_over.extend(prompts.map(|prompt| LeftOver { kind, prompt, ticket }));
        }
        taken
    }

    /// The messages returned with these tickets.
    pub(super) fn held_by(&self, tickets: &[u64]) -> Vec<PromptDraft> {
        let held = self.left_over.iter().filter(|left| left.is_held_by(tickets));
        held.map(|left| left.prompt.clone()).collect()
    }

    /// Drops messages returned with these tickets from the file, with the next [`Self::save`].
    pub(super) fn forget(&mut self, tickets: &[u64]) {
        self.left_over.retain(|left| !left.is_held_by(tickets));
    }
}

impl LeftOver {
    fn is_held_by(&self, tickets: &[u64]) -> bool {
        self.ticket.is_some_and(|given| tickets.contains(&given))
    }
}

/// The approximate size of a message in the file.
fn live_bytes(prompt: &PromptDraft) -> u64 {
    let images: usize = prompt.images.iter().map(|image| image.data.len()).sum();
    (prompt.text.len() + images + 3) as u64
}

/// A change of one queue: replaces some messages with others.
#[derive(Debug, Clone, PartialEq, Deserialize)]
struct Splice {
    #[serde(default)]
    at: usize,
    #[serde(default)]
    remove: usize,
    #[serde(default)]
    #[serde(deserialize_with = "prompts")]
    insert: Vec<PromptDraft>,
}

impl Splice {
    /// The change from `before` to `after`; `None` if they are equal.
    fn between(before: &VecDeque<PromptDraft>, after: &[&PromptDraft]) -> Option<Self> {
        let n_both = before.len().min(after.len());
        let n_head = (0..n_both).take_while(|at| before[*at] == *after[*at]).count();
        if n_head == before.len() && n_head == after.len() {
            return None;
        }
        let n_tail = (1..=n_both - n_head)
            .take_while(|back| before[before.len() - back] == *after[after.len() - back])
            .count();
        let insert = after[n_head..after.len() - n_tail].iter().map(|prompt| (*prompt).clone());
        Some(Self { at: n_head, remove: before.len() - n_tail - n_head, insert: insert.collect() })
    }

    fn line(&self, queue: &str) -> String {
        let value = serde_json::json!({ "queue": queue, "at": self.at, "remove": self.remove, "insert": stored(&self.insert) });
        value.to_string() + "\n"
    }

    /// Applies the change as far as it is valid.
    fn apply(self, list: &mut VecDeque<PromptDraft>) {
        let at = self.at.min(list.len());
        let tail = list.split_off(at);
        list.extend(self.insert);
        list.extend(tail.into_iter().skip(self.remove));
    }
}

fn prompts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<PromptDraft>, D::Error> {
    let stored = Vec::<StoredPrompt>::deserialize(deserializer)?;
    Ok(stored.into_iter().map(PromptDraft::from).collect())
}

/// The contents of a file, and what could not be read.
fn read(disk: &dyn Disk, path: &Path) -> (StoredQueues, Option<String>) {
    let what = "queued messages";
    let sidecar::Contents { bytes, problem } = sidecar::read(disk, path, what);
    let (queues, is_damaged) = parse(&bytes);
    let damage = is_damaged.then(|| sidecar::keep_damaged(disk, path, &bytes, what));
    (queues, damage.or(problem))
}

/// The queues, and whether a line could not be read.
fn parse(bytes: &[u8]) -> (StoredQueues, bool) {
    let mut queues = StoredQueues::default();
    let mut is_damaged = false;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let Ok(Value::Object(mut fields)) = serde_json::from_slice(line) else {
            // The last line may be incomplete; its change was not confirmed.
            is_damaged |= line.ends_with(b"\n") && !line.trim_ascii().is_empty();
            continue;
        };
        match fields.get("queue").and_then(Value::as_str) {
            Some(name @ ("steering" | "followUp")) => {
                let list = if name == "steering" { &mut queues.steering } else { &mut queues.follow_up };
                match serde_json::from_value::<Splice>(Value::Object(fields)) {
                    Ok(splice) => splice.apply(list),
                    Err(_) => is_damaged = true,
                }
            }
            Some(_) => {}
            None => {
                let mut prompts = |key: &str| match fields.remove(key) {
                    Some(Value::Array(items)) => {
                        let n_items = items.len();
                        let prompts = items.into_iter().filter_map(|item| serde_json::from_value(item).ok());
                        let prompts: VecDeque<PromptDraft> =
                            prompts.map(|prompt: StoredPrompt| prompt.into()).collect();
                        is_damaged |= prompts.len() != n_items;
                        Some(prompts)
                    }
                    Some(_) => {
                        is_damaged = true;
                        Some(VecDeque::new())
                    }
                    None => None,
                };
                if let Some(steering) = prompts("steering") {
                    queues.steering = steering;
                }
                if let Some(follow_up) = prompts("followUp") {
                    queues.follow_up = follow_up;
                }
            }
        }
    }
    (queues, is_damaged)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use crate::ai::{Extra, Image};

    use super::*;

    fn queue(steering: &[&str]) -> StoredQueues {
        let steering = steering.iter().map(|text| PromptDraft::from(*text)).collect();
        StoredQueues { steering, follow_up: VecDeque::new() }
    }

    fn disk() -> Arc<dyn Disk> {
        Arc::new(crate::util::disk::SystemDisk)
    }

    fn open(session: &Path) -> QueueFile {
        QueueFile::open(&disk(), Some(session), &[])
    }

    /// The messages that the next process would find.
    fn found(session: &Path) -> StoredQueues {
        open(session).written
    }

    #[test]
    fn message_handed_back_stays_until_the_draft_that_holds_it_is_stored() {
        let folder = tempfile::tempdir().unwrap();
        let session = folder.path().join("s.jsonl");
        let mut file = open(&session);
        file.save(&queue(&["a", "b"])).unwrap();
        let taken = file.give_back(vec!["a".into()], Vec::new());
        file.save(&queue(&["b"])).unwrap();
        assert_eq!(found(&session), queue(&["a", "b"]));
        // A draft that was sent before the message arrived does not contain it.
        assert!(file.held_by(&[]).is_empty());
        assert_eq!(file.held_by(&[taken.ticket]), ["a".into()]);
        file.forget(&[taken.ticket]);
        file.save(&queue(&["b"])).unwrap();
        assert_eq!(found(&session), queue(&["b"]));
    }

    #[test]
    fn ticket_of_one_session_is_not_given_again_in_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let mut first = open(&folder.path().join("first.jsonl"));
        let seen = first.give_back(vec!["a".into()], Vec::new()).ticket;
        let mut second = open(&folder.path().join("second.jsonl"));
        second.continue_tickets(&first);
        second.give_back(vec!["b".into()], Vec::new());
        // The editor has not seen the message yet.
        assert!(second.held_by(&[seen]).is_empty());
    }

    #[test]
    fn messages_that_are_on_their_way_to_the_editor_stay() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = open(&folder.path().join("s.jsonl"));
        // By an event, which arrives after the reply that was given later.
        let _late = file.give_back(vec!["a".into()], Vec::new());
        let replied = file.give_back(vec!["b".into()], Vec::new()).ticket;
        assert_eq!(file.held_by(&[replied]), ["b".into()]);
        file.forget(&[replied]);
        file.save(&StoredQueues::default()).unwrap();
        let mut next = open(&folder.path().join("s.jsonl"));
        assert_eq!(next.take_left_over().steering, ["a".into()]);
    }

    #[test]
    fn message_that_the_stored_draft_holds_comes_back_once() {
        let folder = tempfile::tempdir().unwrap();
        let session = folder.path().join("s.jsonl");
        open(&session).save(&queue(&["a", "a", "b"])).unwrap();
        let mut file = QueueFile::open(&disk(), Some(&session), &["a".into()]);
        assert_eq!(file.take_left_over().steering, ["a".into(), "b".into()]);
        assert_eq!(file.take_left_over(), TakenQueue::default());
    }

    #[test]
    fn what_waited_is_there_for_the_next_process_until_it_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let session = folder.path().join("s.jsonl");
        open(&session).save(&queue(&["a", "b"])).unwrap();

        let mut next = open(&session);
        next.save(&queue(&["c"])).unwrap();
        assert_eq!(found(&session), queue(&["a", "b", "c"]));
        let taken = next.take_left_over();
        assert_eq!(taken.steering, ["a".into(), "b".into()]);
        next.forget(&[taken.ticket]);
        next.save(&queue(&[])).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_broken_file_is_an_empty_queue() {
        let folder = tempfile::tempdir().unwrap();
        let session = folder.path().join("s.jsonl");
        for text in ["", "[1]", "{\"steering\":7,\"followUp\":[1,\"x\"]}"] {
            fs::write(folder.path().join(".s.jsonl.queue"), text).unwrap();
            let left_over = found(&session);
            assert!(left_over.steering.is_empty() && left_over.follow_up.len() < 2, "{text}");
        }
    }

    #[test]
    fn the_form_of_earlier_versions_and_half_a_line_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("q");
        let old = r#"{"steering":["a"],"followUp":["b"]}"#;
        fs::write(&path, old).unwrap();
        let texts = |queues: StoredQueues| {
            queues.steering.into_iter().chain(queues.follow_up).map(|prompt| prompt.text).collect::<String>()
        };
        assert_eq!(texts(parse(&fs::read(&path).unwrap()).0), "ab");
        let change = r#"{"queue":"steering","at":1,"insert":["c",{"text":"d","images":[{"data":"","mimeType":"image/png"}]}]}"#;
        fs::write(&path, format!("{old}\n{change}\n{{\"queue\":\"followUp\",\"remove\":1,\"ins")).unwrap();
        let queues = parse(&fs::read(&path).unwrap()).0;
        assert_eq!((queues.steering[2].images.len(), texts(queues).as_str()), (1, "acdb"));
    }

    #[test]
    fn images_are_stored_with_their_message() {
        let image = Image { data: "aGk=".to_owned(), mime_type: "image/png".to_owned(), extra: Extra::new() };
        let folder = tempfile::tempdir().unwrap();
        let session = folder.path().join("s.jsonl");
        let prompt = PromptDraft { text: "see".to_owned(), images: vec![image], ..PromptDraft::default() };
        let queues = StoredQueues { follow_up: [prompt].into(), ..queue(&["a"]) };
        open(&session).save(&queues).unwrap();
        assert_eq!(found(&session), queues);
    }

    #[test]
    fn a_hundred_thousand_messages_are_written_in_linear_time() {
        const BATCH: usize = 500;
        let folder = tempfile::tempdir().unwrap();
        let session = folder.path().join("s.jsonl");
        let mut file = open(&session);
        let mut waiting = StoredQueues::default();
        let mut n_text_bytes = 0;
        for at in 0..100_000 {
            let text = format!("message number {at}");
            n_text_bytes += text.len() as u64;
            waiting.steering.push_back(text.as_str().into());
            if (at + 1) % BATCH == 0 {
                file.save(&waiting).unwrap();
            }
        }
        assert_eq!(found(&session).steering.len(), 100_000);
        while !waiting.steering.is_empty() {
            waiting.steering.drain(..BATCH);
            file.save(&waiting).unwrap();
        }
        // Each message is written once when it arrives, and a few times while others leave.
        assert!(file.n_written_bytes < 6 * n_text_bytes, "{} of {n_text_bytes}", file.n_written_bytes);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_file_changed_by_another_process_is_rewritten() {
        let folder = tempfile::tempdir().unwrap();
        let session = folder.path().join("s.jsonl");
        let path = folder.path().join(".s.jsonl.queue");
        let mut file = open(&session);
        file.save(&queue(&["a"])).unwrap();
        for change in ["", "{\"steering\":[\"", "x\n\n"] {
            fs::write(&path, change).unwrap();
            file.save(&queue(&["a", change])).unwrap();
            assert_eq!(parse(&fs::read(&path).unwrap()).0, queue(&["a", change]));
        }
        fs::remove_file(&path).unwrap();
        file.save(&queue(&["b"])).unwrap();
        assert_eq!(parse(&fs::read(&path).unwrap()).0, queue(&["b"]));
    }

    #[test]
    fn a_session_that_moves_takes_its_queue_along() {
        let folder = tempfile::tempdir().unwrap();
        let (old, new) = (folder.path().join("old.jsonl"), folder.path().join("new.jsonl"));
        let mut file = open(&old);
        file.save(&queue(&["a"])).unwrap();
        file.follow(Some(&new));
        file.save(&queue(&["a"])).unwrap();
        assert!(found(&old).is_empty());
        assert_eq!(found(&new), queue(&["a"]));
    }

    #[test]
    fn a_change_that_could_not_be_written_is_written_with_the_next_call() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("sessions");
        fs::write(&inner, "a file where a folder is wanted").unwrap();
        let session = inner.join("s.jsonl");
        let mut file = open(&session);
        assert!(file.save(&queue(&["a"])).is_err());
        fs::remove_file(&inner).unwrap();
        file.save(&queue(&["a"])).unwrap();
        assert_eq!(found(&session), queue(&["a"]));
    }

    #[test]
    fn the_file_is_for_its_owner_alone_and_follows_no_link() {
        use std::os::unix::fs::PermissionsExt as _;

        let folder = tempfile::tempdir().unwrap();
        let (session, path) = (folder.path().join("s.jsonl"), folder.path().join(".s.jsonl.queue"));
        let mut file = open(&session);
        file.save(&queue(&["a"])).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let precious = folder.path().join("precious");
        fs::rename(&path, &precious).unwrap();
        let before = fs::read(&precious).unwrap();
        std::os::unix::fs::symlink(&precious, &path).unwrap();
        file.save(&queue(&["a", "b"])).unwrap();
        assert_eq!(fs::read(&precious).unwrap(), before);
        assert_eq!(parse(&fs::read(&path).unwrap()).0, queue(&["a", "b"]));
    }

    proptest! {
        /// After any changes of the queues, the file contains their messages.
        #[test]
        fn any_change_is_read_back(
            views in prop::collection::vec(
                (prop::collection::vec("[ab]{1,2}", 0..6), prop::collection::vec("[ab]{1,2}", 0..3)), 1..8
            )
        ) {
            let folder = tempfile::tempdir().unwrap();
            let session = folder.path().join("s.jsonl");
            let mut file = open(&session);
            for (steering, follow_up) in views {
                let stored = |texts: Vec<String>| texts.iter().map(|text| text.as_str().into()).collect();
                let queues = StoredQueues { steering: stored(steering), follow_up: stored(follow_up) };
                file.save(&queues).unwrap();
                prop_assert_eq!(found(&session), queues);
            }
        }
    }
}
