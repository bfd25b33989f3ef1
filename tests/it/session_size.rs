//! Sessions of any length: how much of them is read and kept, counted.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pi::ai::{
    Credential, Extra, FakeAnswer, Message, Millis, Request, StreamOptions, UserMessage, request_body,
    supported_apis,
};
use pi::session::{DamagedLine, EntryBody, EntryKind, SessionStore, Totals, messages, read_tree};
use serde_json::json;
use tempfile::TempDir;

use crate::support::files::{make_fifo, wait_for_files};
use crate::support::long_session::LongSession;
use crate::support::session_bench::SessionBench;

/// A session that is long enough for an outline, with everything in it.
const SIZE: LongSession = LongSession {
    n_messages: 1_300,
    message_bytes: 900,
    compact_every: 500,
    branch_every: 90,
    image_every: 600,
};

struct Long {
    folder: TempDir,
    path: PathBuf,
}

impl Long {
    fn new(size: LongSession) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        size.write(&path, "s", "/").unwrap();
        assert!(fs::metadata(&path).unwrap().len() > 1 << 20);
        Self { folder, path }
    }

    /// One that was opened before, so that it has an outline.
    fn outlined(size: LongSession) -> Self {
        let long = Self::new(size);
        long.open().write_outline();
        assert!(long.outline().exists());
        long
    }

    fn open(&self) -> SessionStore {
        open(&self.path)
    }

    fn outline(&self) -> PathBuf {
        self.folder.path().join(".s.jsonl.outline")
    }

    fn append(&self, text: &str) {
        OpenOptions::new().append(true).open(&self.path).unwrap().write_all(text.as_bytes()).unwrap();
    }

    /// Opens the session and expects the same as without an outline, and this many bytes to
    /// be read for it.
    #[track_caller]
    fn check(&self, n_scanned_bytes: u64) {
        let store = self.open();
        assert_eq!(store.reads().n_scanned_bytes, n_scanned_bytes);
        assert_eq!(picture(store), self.without_outline());
    }

    fn without_outline(&self) -> Picture {
        let copy = tempfile::tempdir().unwrap();
        let path = copy.path().join("s.jsonl");
        fs::copy(&self.path, &path).unwrap();
        picture(open(&path))
    }

    fn len(&self) -> u64 {
        fs::metadata(&self.path).unwrap().len()
    }
}

fn open(path: &Path) -> SessionStore {
    SessionStore::open(path, || panic!("the file has a header")).unwrap()
}

/// Everything that opening a session finds out: the header's id, name, entries (id, parent,
/// kind, whether it is silent, time), leaf, totals, damage, and the text of the last entries.
type Picture = (
    String,
    Option<String>,
    Vec<(String, Option<usize>, EntryKind, bool, u64)>,
    Option<usize>,
    Totals,
    Vec<DamagedLine>,
    Vec<String>,
);

fn picture(mut store: SessionStore) -> Picture {
    let tree = store.tree();
    let entries = tree.entries();
    let entries = entries
        .map(|entry| (entry.id.to_string(), entry.parent, entry.kind, entry.is_silent, entry.at_ms))
        .collect();
    let (tail, _) = store.branch_tail(30);
    let texts = tail.iter().map(|entry| entry.body.preview(80)).collect();
    let name = store.name().map(str::to_owned);
    let (totals, damage) = (store.totals().clone(), store.damage().to_vec());
    (store.header().id.clone(), name, entries, tree.leaf(), totals, damage, texts)
}

fn user(text: &str) -> EntryBody {
    EntryBody::message(Arc::new(Message::User(UserMessage::new(text, Vec::new(), Millis(1)))))
}

const LINE: &str = r#"{"type":"session_info","id":"added","parentId":"00000005","timestamp":"2026-11-22T09:23:47.445Z","name":"later"}"#;

// The outline.

#[test]
fn session_with_an_outline_opens_without_reading_its_lines() {
    let long = Long::new(SIZE);
    let store = long.open();
    assert_eq!(store.reads().n_scanned_bytes, long.len(), "one pass");
    drop(store);
    assert!(!long.outline().exists(), "opening alone writes nothing");
    long.open().write_outline();
    assert_eq!(fs::metadata(long.outline()).unwrap().permissions().mode() & 0o777, 0o600);
    long.check(0);
    assert!(read_tree(&long.path).unwrap().unwrap().tree.len() > 1_300);
    // It may be deleted at any time.
    fs::remove_file(long.outline()).unwrap();
    long.check(long.len());
}

#[test]
fn short_session_has_no_outline() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    LongSession::new(50, 400).write(&path, "s", "/").unwrap();
    open(&path).write_outline();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn only_lines_added_since_the_outline_are_read() {
    let long = Long::outlined(SIZE);
    let mut store = long.open();
    store.append(user("by pi"), 7).1.unwrap();
    drop(store);
    let n_old = long.len();
    let outlined = fs::metadata(long.outline()).unwrap().len();
    long.append(&format!("{LINE}\nnot JSON\n{}\n", LINE.replace("added", "after")));
    let store = long.open();
    assert_eq!(store.name(), Some("later"));
    assert_eq!(store.damaged_lines().len(), 1);
    let n_added = store.reads().n_scanned_bytes;
    assert!(n_added > long.len() - n_old && n_added < 1_000, "{n_added}");
    drop(store);
    long.check(n_added);
    // Few lines are not worth another outline.
    long.open().write_outline();
    assert_eq!(fs::metadata(long.outline()).unwrap().len(), outlined);
}

#[test]
fn torn_last_line_is_not_part_of_an_outline() {
    let long = Long::new(SIZE);
    long.append(&LINE[..60]);
    long.open().write_outline();
    // Opening ended the line.
    assert_eq!(fs::read(&long.path).unwrap().last(), Some(&b'\n'));
    long.check(61);
    assert_eq!(long.open().damaged_lines().len(), 1);
}

#[test]
fn branch_that_a_damaged_last_line_began_is_found_every_time() {
    let long = Long::new(SIZE);
    let damaged = LINE.replace("\"name\":", "\"name\"\0");
    long.append(&format!("{damaged}\n"));
    long.open().write_outline();
    assert!(!long.outline().exists(), "an outline does not know where the branch ends");
    let leaf = |store: &SessionStore| store.leaf().map(ToString::to_string);
    assert_eq!(leaf(&long.open()).as_deref(), Some("00000005"), "the damaged line names it");
    // A line that was torn is not an entry yet.
    let torn = Long::new(SIZE);
    let before = leaf(&torn.open());
    torn.append(&LINE[..LINE.len() - 1]);
    assert_eq!(leaf(&torn.open()), before);
    assert_eq!(leaf(&torn.open()), before, "opening ended the line");
}

#[test]
fn line_that_another_program_completes_is_read_whole() {
    let long = Long::new(SIZE);
    long.append(&LINE[..60]);
    // Another process has it open, so it is read and not written.
    let holder = long.open();
    fs::write(&long.path, fs::read(&long.path).unwrap().strip_suffix(b"\n").unwrap()).unwrap();
    long.open().write_outline();
    drop(holder);
    long.append(&format!("{}\n", &LINE[60..]));
    long.check(LINE.len() as u64 + 1);
    assert_eq!(long.open().name(), Some("later"));
}

#[test]
fn outline_of_other_content_is_ignored() {
    // Replaced by a copy.
    let long = Long::outlined(SIZE);
    let copy = long.folder.path().join("copy");
    fs::copy(&long.path, &copy).unwrap();
    fs::rename(&copy, &long.path).unwrap();
    long.check(long.len());

    // Truncated, at the end of a line and within one.
    for n_cut in [0, 30] {
        let long = Long::outlined(SIZE);
        let text = fs::read_to_string(&long.path).unwrap();
        let end = text[..text.len() - 1].rfind('\n').unwrap() + 1 - n_cut;
        File::options().write(true).open(&long.path).unwrap().set_len(end as u64).unwrap();
        long.check(end as u64);
    }

    // Truncated and continued by another program, until it is longer than before.
    let long = Long::outlined(SIZE);
    let text = fs::read_to_string(&long.path).unwrap();
    File::options().write(true).open(&long.path).unwrap().set_len(text.len() as u64 / 2).unwrap();
    long.append(&format!("\n{}", format!("{LINE}\n").repeat(text.len() / LINE.len())));
    long.check(long.len());

    // Changed in place.
    let long = Long::outlined(SIZE);
    let file = File::options().write(true).open(&long.path).unwrap();
    let later = file.metadata().unwrap().modified().unwrap() + Duration::from_secs(1);
    file.write_all_at(b"#", long.len() / 2).unwrap();
    file.set_modified(later).unwrap();
    long.check(long.len());
}

#[test]
fn damaged_outline_is_ignored_and_replaced() {
    let long = Long::outlined(SIZE);
    let whole = fs::read(long.outline()).unwrap();
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    let mut newer = whole.clone();
    let version = whole.iter().position(|byte| *byte == b'1').unwrap();
    newer[version] = b'2';
    for damaged in [&whole[..whole.len() - 1], &flipped, &newer, b"", b"pi-session-outline 2 "] {
        fs::write(long.outline(), damaged).unwrap();
        long.check(long.len());
    }
    long.open().write_outline();
    assert_eq!(fs::read(long.outline()).unwrap(), whole);
}

#[test]
fn what_stands_in_place_of_an_outline_is_not_followed_or_waited_for() {
    let long = Long::outlined(SIZE);
    let elsewhere = long.folder.path().join("elsewhere");
    fs::rename(long.outline(), &elsewhere).unwrap();
    symlink(&elsewhere, long.outline()).unwrap();
    long.check(long.len());
    let before = fs::read(&elsewhere).unwrap();
    long.append(&format!("{LINE}\n"));
    long.open().write_outline();
    assert_eq!(fs::read(&elsewhere).unwrap(), before, "the link is replaced, not its target");
    long.check(0);

    fs::remove_file(long.outline()).unwrap();
    make_fifo(&long.outline());
    long.check(long.len());

    fs::remove_file(long.outline()).unwrap();
    fs::create_dir(long.outline()).unwrap();
    long.check(long.len());
    long.open().write_outline();
    assert!(long.outline().is_dir(), "writing it fails, which nobody notices");
}

#[tokio::test]
async fn outline_is_written_while_the_session_is_open() {
    let bench = SessionBench::new([FakeAnswer::new().text("ok")]);
    let path = bench.path("long.jsonl");
    let cwd = bench.folder.path().to_str().unwrap().to_owned();
    SIZE.write(&path, "long", &cwd).unwrap();
    let mut session = bench.resume(&path).await;
    let folder = path.parent().unwrap().to_owned();
    let outline = folder.join(".long.jsonl.outline");
    tokio::task::spawn_blocking(move || {
        wait_for_files(&folder, "the outline", || outline.exists());
    })
    .await
    .unwrap();
    session.ask("hi").await;
    session.shut_down().await;
    let n_bytes = open(&path).reads().n_scanned_bytes;
    assert!(n_bytes > 0 && n_bytes < 4_000, "{n_bytes}");
}

// What is read of the entries.

#[test]
fn request_reads_only_what_follows_the_last_compaction() {
    let long = Long::outlined(SIZE);
    let mut store = long.open();
    let n_sent = messages(&store.context_branch()).len();
    assert!((100..400).contains(&n_sent), "{n_sent}");
    let n_read = store.reads().n_bodies;
    assert!(n_read < n_sent + 10, "{n_read} for {n_sent} messages");
    // Again costs nothing.
    store.context_branch();
    assert_eq!(store.reads().n_bodies, n_read);
}

#[test]
fn appending_reads_nothing() {
    let long = Long::outlined(SIZE);
    let mut store = long.open();
    for at in 0..20 {
        store.append(user("more"), at).1.unwrap();
    }
    assert_eq!((store.reads().n_scanned_bytes, store.reads().n_bodies), (0, 0));
}

#[test]
fn end_of_a_session_is_limited_in_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    LongSession::plain(300, 40_000).write(&path, "s", "/").unwrap();
    let mut store = open(&path);
    let (tail, n_earlier) = store.branch_tail(400);
    assert_eq!(tail.len() + n_earlier, store.tree().path(store.tree().leaf()).len());
    let n_bytes: usize = tail.iter().map(|entry| entry.to_line().len()).sum();
    assert!((40..120).contains(&tail.len()) && n_bytes < 3 << 20, "{} with {n_bytes} bytes", tail.len());
}

#[test]
fn body_of_a_long_request_is_written_without_growing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    LongSession { image_every: 50, ..LongSession::plain(400, 2_000) }.write(&path, "s", "/").unwrap();
    let messages = messages(&open(&path).context_branch());
    for api in supported_apis() {
        let model = json!({"id": "m", "api": api, "provider": "p", "baseUrl": "http://x/v1", "input": ["text", "image"]});
        let request = Request {
            model: Arc::new(serde_json::from_value(model).unwrap()),
            credential: Credential::None,
            messages: messages.clone(),
            options: StreamOptions::default(),
        };
        let body = request_body(&request).unwrap();
        // A buffer that had to grow is up to twice as large as its content.
        let (len, capacity) = (body.len(), body.capacity());
        assert!(len > 800_000 && capacity < len + len / 4, "{api}: {len} bytes in {capacity}");
    }
}

// What is kept of them.

#[test]
fn memory_keeps_what_the_next_request_needs_except_images() {
    let long = Long::outlined(LongSession { image_every: 100, ..SIZE });
    let mut store = long.open();
    store.branch(0);
    let context = store.context_branch();
    let is_image = |line: &str| line.contains(r#""type":"image""#);
    let n_images = context.iter().filter(|entry| is_image(&entry.to_line())).count();
    assert!(n_images > 1);
    assert!(store.n_loaded_bodies() > 2 * context.len());
    store.release_unused();
    assert_eq!(store.n_loaded_bodies(), context.len() - n_images);
    let n_read = store.reads().n_bodies;
    assert_eq!(messages(&store.context_branch()), messages(&context));
    assert_eq!(store.reads().n_bodies - n_read, n_images);
}

#[test]
fn entries_of_this_process_leave_memory_once_they_are_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    let header = serde_json::from_str(r#"{"version":3,"id":"s","timestamp":"T","cwd":"/"}"#).unwrap();
    let mut store = SessionStore::create(header, Some(path));
    let (waiting, _) = store.append(
        EntryBody::SessionInfo(pi::session::SessionInfo { name: "n".to_owned(), extra: Extra::new() }),
        1,
    );
    assert_eq!(store.release_bodies(), 0, "there is no file yet");
    for text in ["one", "two"] {
        store.append(user(text), 2).1.unwrap();
    }
    store.release_bodies();
    let texts: Vec<String> = store.branch(0).iter().map(|entry| entry.body.preview(9)).collect();
    assert_eq!(texts, ["n", "one", "two"]);
    assert_eq!(store.branch(0)[0].id, waiting.id);
    assert!(store.reads().n_bodies >= 1);
    // Nothing is dropped that is not durable: a sync did not happen.
    let (n_loaded, n_dropped) = (store.n_loaded_bodies(), store.release_unused());
    assert_eq!((n_loaded, n_dropped), (3, 0));
}
