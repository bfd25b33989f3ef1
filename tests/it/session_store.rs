//! Session files: when they are written, how damaged, old and foreign ones are read,
//! and which process may write.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pi::ai::{AssistantMessage, Extra, FakeAnswer, Message, Millis, UserMessage};
use pi::session::{
    Entry, EntryBody, EntryId, FoundSessions, Header, JournalError, ModelChange, OpenError, SessionInfo,
    SessionMessage, SessionStore, file_name, find, latest, list, messages,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::agent_bench::{AgentBench, message_line};
use crate::support::faulty_disk::FaultyDisk;
use crate::support::files::make_fifo;

const HEADER: &str =
    r#"{"type":"session","version":3,"id":"s-1","timestamp":"2026-11-21T09:23:47.280Z","cwd":"/tmp/demo"}"#;

fn header() -> Header {
    serde_json::from_str(
        r#"{"version":3,"id":"s-1","timestamp":"2026-11-21T09:23:47.280Z","cwd":"/tmp/demo"}"#,
    )
    .unwrap()
}

fn user(text: &str) -> EntryBody {
    EntryBody::message(Arc::new(Message::User(UserMessage::new(text, Vec::new(), Millis(1)))))
}

fn model_change(id: &str) -> EntryBody {
    let extra = serde_json::Map::new();
    EntryBody::ModelChange(ModelChange { provider: "acme".to_owned(), model_id: id.to_owned(), extra })
}

/// A line of a user message, the child of `parent`.
fn user_line(id: &str, parent: &str) -> String {
    let parent = if parent.is_empty() { "null".to_owned() } else { format!("\"{parent}\"") };
    format!(
        r#"{{"type":"message","id":"{id}","parentId":{parent},"timestamp":"2026-11-21T09:23:47.280Z","message":{{"role":"user","content":"{id}!","timestamp":1}}}}"#
    )
}

/// A folder with a file `s.jsonl` of these bytes.
struct OnDisk {
    folder: TempDir,
    path: PathBuf,
}

impl OnDisk {
    fn new(bytes: impl AsRef<[u8]>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        fs::write(&path, bytes).unwrap();
        Self { folder, path }
    }

    fn open(&self) -> SessionStore {
        SessionStore::open(&self.path, || panic!("the file has a header")).unwrap()
    }

    fn text(&self) -> String {
        fs::read_to_string(&self.path).unwrap()
    }

    /// Names of all files in the folder.
    fn names(&self) -> Vec<String> {
        names(self.folder.path())
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn ids(entries: &[Arc<Entry>]) -> Vec<&str> {
    entries.iter().map(|entry| entry.id.as_str()).collect()
}

/// The messages for the model, one line each.
fn context(store: &mut SessionStore) -> Vec<String> {
    messages(&store.context_branch()).iter().map(|message| message_line(message)).collect()
}

/// Reads a file of these bytes; expects these entries on the branch and these lines reported.
#[track_caller]
fn check_read(bytes: &str, branch: &[&str], damaged: &[usize]) {
    let file = OnDisk::new(bytes);
    let mut store = file.open();
    assert_eq!((ids(&store.branch(0)), store.damaged_lines()), (branch.to_vec(), damaged), "{bytes}");
}

// Writing.

#[test]
fn a_new_session_has_no_file_until_its_first_message() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new").join("s.jsonl");
    let mut store = SessionStore::create(header(), Some(path.clone()));
    store.append(model_change("m-1"), 1).1.unwrap();
    assert!(!store.is_on_disk());
    assert!(!path.exists());
    store.append(user("hi"), 2).1.unwrap();
    assert!(store.is_on_disk());
    let text = fs::read_to_string(&path).unwrap();
    let kinds: Vec<String> = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["type"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(kinds, ["session", "model_change", "message"]);
    assert_eq!(text.lines().next(), Some(HEADER));
    assert!(text.ends_with('\n'));
}

#[test]
fn what_is_appended_is_read_again() {
    let file = OnDisk::new(format!("{HEADER}\n{}\n", user_line("a", "")));
    let mut store = file.open();
    let before = file.text();
    let (entry, written) = store.append(user("more"), 1_795_253_027_280);
    written.unwrap();
    assert_eq!(entry.parent_id.as_ref().unwrap().as_str(), "a");
    assert_eq!(entry.timestamp, "2026-11-21T09:23:47.280Z");
    // One line, at the end, whatever came before it.
    assert_eq!(file.text(), format!("{before}{}\n", entry.to_line()));
    drop(store);
    let mut store = file.open();
    assert_eq!(store.branch(0)[1], entry);
    assert_eq!(store.totals().n_user, 2);
}

#[test]
fn an_append_writes_the_same_whatever_the_length() {
    let written_after = |n: usize| {
        let mut text = format!("{HEADER}\n");
        for at in 0..n {
            text += &user_line(
                &format!("e{at:06}"),
                &at.checked_sub(1).map_or(String::new(), |p| format!("e{p:06}")),
            );
            text.push('\n');
        }
        let file = OnDisk::new(&text);
        let mut store = file.open();
        store.append(user("more"), 1).1.unwrap();
        file.text().len() - text.len()
    };
    assert_eq!(written_after(1), written_after(2_000));
}

#[test]
fn what_cannot_be_written_waits_in_memory_and_is_written_later() {
    let folder = tempfile::tempdir().unwrap();
    let blocker = folder.path().join("sessions");
    fs::write(&blocker, "a file where a folder is wanted").unwrap();
    let path = blocker.join("s.jsonl");
    let mut store = SessionStore::create(header(), Some(path.clone()));
    let (first, written) = store.append(user("one"), 1);
    assert!(matches!(written, Err(JournalError::Write { .. })), "{written:?}");
    // Also entries that would not have created the file.
    assert!(store.append(model_change("m-1"), 2).1.is_err());
    assert!(store.flush().is_err());
    assert_eq!(store.branch(0)[0], first);

    fs::remove_file(&blocker).unwrap();
    let (last, written) = store.append(model_change("m-2"), 3);
    written.unwrap();
    drop(store);
    let mut store = SessionStore::open(&path, header).unwrap();
    assert_eq!((store.branch(0).len(), &store.branch(0)[2]), (3, &last));
    assert_eq!(store.damaged_lines(), [0; 0]);
}

#[test]
fn flushing_writes_what_waits() {
    let folder = tempfile::tempdir().unwrap();
    let blocker = folder.path().join("sessions");
    fs::write(&blocker, "").unwrap();
    let path = blocker.join("s.jsonl");
    let mut store = SessionStore::create(header(), Some(path.clone()));
    assert!(store.append(user("one"), 1).1.is_err());
    fs::remove_file(&blocker).unwrap();
    store.flush().unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 2);
    // Nothing is written twice.
    store.flush().unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 2);
}

#[test]
fn flushing_creates_no_file_for_a_session_without_messages() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    let mut store = SessionStore::create(header(), Some(path.clone()));
    store.append(model_change("m-1"), 1).1.unwrap();
    store.flush().unwrap();
    assert!(!path.exists());
}

#[test]
fn a_new_session_never_overwrites_a_file() {
    let file = OnDisk::new("precious");
    let mut store = SessionStore::create(header(), Some(file.path.clone()));
    assert!(store.append(user("hi"), 1).1.is_err());
    assert_eq!(file.text(), "precious");
}

/// The lines of the file at `path`, without ids.
fn said(path: &Path) -> Vec<String> {
    let mut store = SessionStore::open(path, header).unwrap();
    assert_eq!(store.damaged_lines(), [0; 0]);
    context(&mut store)
}

#[test]
fn a_session_file_that_was_deleted_is_written_anew() {
    let file = OnDisk::new(format!("{HEADER}\n{}\ngarbage\n", user_line("a", "")));
    let before = file.text();
    let mut store = file.open();
    fs::remove_file(&file.path).unwrap();
    let (entry, written) = store.append(user("more"), 1);
    written.unwrap();
    // Everything, including unreadable lines.
    assert_eq!(file.text(), format!("{before}{}\n", entry.to_line()));
    let notices = store.take_notices();
    assert!(
        notices[0].contains("was deleted or moved while it was open; pi wrote the session there again"),
        "{notices:?}"
    );
    store.append(user("and more"), 1).1.unwrap();
    assert!(store.take_notices().is_empty());
    assert_eq!(file.text().lines().count(), 5);
    assert!(file.open().locked_by().is_some());
}

#[test]
fn a_new_session_whose_folder_was_deleted_is_written_anew() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("sessions/s.jsonl");
    let mut store = SessionStore::create(header(), Some(path.clone()));
    store.append(user("one"), 1).1.unwrap();
    fs::remove_dir_all(path.parent().unwrap()).unwrap();
    store.append(user("two"), 2).1.unwrap();
    drop(store);
    assert_eq!(said(&path), ["user one", "user two"]);
}

#[test]
fn a_session_file_that_was_moved_leaves_both_whole() {
    let file = OnDisk::new(format!("{HEADER}\n{}\n", user_line("a", "")));
    let mut store = file.open();
    let moved = file.folder.path().join("moved.jsonl");
    fs::rename(&file.path, &moved).unwrap();
    store.append(user("more"), 1).1.unwrap();
    drop(store);
    assert_eq!(
        (said(&moved), said(&file.path)),
        (vec!["user a!".to_owned()], vec!["user a!".to_owned(), "user more".to_owned()])
    );
}

#[test]
fn what_stands_in_place_of_a_session_file_is_never_overwritten() {
    let file = OnDisk::new(format!("{HEADER}\n{}\n", user_line("a", "")));
    let mut store = file.open();
    fs::remove_file(&file.path).unwrap();
    fs::write(&file.path, "precious").unwrap();
    fs::write(file.folder.path().join("s-recovered-1.jsonl"), "precious too").unwrap();
    store.append(user("more"), 1).1.unwrap();
    assert_eq!(file.text(), "precious");
    let path = store.path().unwrap().to_owned();
    assert_eq!(path, file.folder.path().join("s-recovered-2.jsonl"));
    let notices = store.take_notices();
    assert!(
        notices[0].contains("replaced by another file") && notices[0].contains("s-recovered-2.jsonl"),
        "{notices:?}"
    );
    drop(store);
    assert_eq!(said(&path), ["user a!", "user more"]);
    assert_eq!(file.names(), ["s-recovered-1.jsonl", "s-recovered-2.jsonl", "s.jsonl"]);
    // A folder, too.
    let file = OnDisk::new(format!("{HEADER}\n"));
    let mut store = file.open();
    fs::remove_file(&file.path).unwrap();
    fs::create_dir(&file.path).unwrap();
    store.append(user("more"), 1).1.unwrap();
    assert_eq!(store.path().unwrap(), file.folder.path().join("s-recovered-1.jsonl"));
}

#[test]
fn a_session_file_that_was_cut_short_is_written_anew_as_far_as_it_is_known() {
    let file = OnDisk::new(format!("{HEADER}\n{}\n{}\n", user_line("a", ""), user_line("b", "a")));
    let mut store = file.open();
    // `a` and `b` were read, the file is then emptied.
    store.branch(0);
    fs::write(&file.path, "").unwrap();
    store.append(user("more"), 1).1.unwrap();
    assert!(store.take_notices()[0].contains("was truncated"));
    let path = store.path().unwrap().to_owned();
    drop(store);
    assert_eq!(said(&path), ["user a!", "user b!", "user more"]);
    assert_eq!(file.text(), "");
}

#[test]
fn a_full_disk_when_the_file_is_written_anew_loses_nothing() {
    let file = OnDisk::new(format!("{HEADER}\n{}\n", user_line("a", "")));
    let disk = FaultyDisk::new();
    let mut store = SessionStore::open_on(disk.clone(), &file.path, header).unwrap();
    fs::remove_file(&file.path).unwrap();
    disk.set_room(40);
    assert!(store.append(user("one"), 1).1.is_err());
    assert!(store.unsaved().is_some());
    assert_eq!(file.names(), [".s.jsonl.lock"], "no half of it is left");
    disk.set_room(usize::MAX);
    store.append(user("two"), 1).1.unwrap();
    assert_eq!(
        (store.unsaved(), said(&file.path)),
        (None, vec!["user a!".to_owned(), "user one".to_owned(), "user two".to_owned()])
    );
}

#[test]
fn a_full_disk_delays_a_line_and_its_rest_follows() {
    let file = OnDisk::new(format!("{HEADER}\n"));
    let disk = FaultyDisk::new();
    let mut store = SessionStore::open_on(disk.clone(), &file.path, header).unwrap();
    disk.set_room(25);
    assert!(store.append(user("one"), 1).1.is_err());
    assert!(store.append(user("two"), 1).1.is_err());
    assert_eq!((store.n_unsaved_messages(), store.unsaved()), (2, Some("no storage space")));
    disk.set_room(usize::MAX);
    store.flush().unwrap();
    assert_eq!((store.n_unsaved_messages(), store.unsaved()), (0, None));
    drop(store);
    assert_eq!(said(&file.path), ["user one", "user two"]);
}

#[test]
fn what_is_not_saved_goes_into_a_whole_copy_elsewhere() {
    let file = OnDisk::new(format!("{HEADER}\n{}\n", user_line("a", "")));
    let elsewhere = tempfile::tempdir().unwrap();
    let folders = [PathBuf::from("/nowhere/at/all"), elsewhere.path().to_owned()];
    let disk = FaultyDisk::new();
    let mut store = SessionStore::open_on(disk.clone(), &file.path, header).unwrap();
    assert!(store.write_copy(&folders).is_none(), "everything is saved");
    disk.set_room(25);
    assert!(store.append(user("one"), 1).1.is_err());
    disk.set_room(1_000);
    let copy = store.write_copy(&folders).unwrap().unwrap();
    assert_eq!(
        (copy.parent(), said(&copy)),
        (Some(elsewhere.path()), vec!["user a!".to_owned(), "user one".to_owned()])
    );
    assert_eq!(mode(&copy), 0o600);
    // Of a session that never had a file, too.
    let mut store = SessionStore::create_on(disk.clone(), header(), Some(elsewhere.path().join("new.jsonl")));
    disk.set_room(25);
    assert!(store.append(user("hello"), 1).1.is_err());
    disk.set_room(1_000);
    let copy = store.write_copy(&folders).unwrap().unwrap();
    assert_eq!(said(&copy), ["user hello"]);
}

#[test]
fn a_file_that_cannot_be_written_to_is_read_and_what_is_added_waits() {
    let file = OnDisk::new(format!("{HEADER}\n{}\n", user_line("a", "")));
    let disk = FaultyDisk::new();
    disk.set_read_only(true);
    let mut store = SessionStore::open_on(disk.clone(), &file.path, header).unwrap();
    assert_eq!((ids(&store.branch(0)), store.unsaved()), (vec!["a"], None));
    assert!(store.take_notices()[0].contains("(permission denied); new messages stay"));
    assert!(matches!(store.append(user("one"), 1).1, Err(JournalError::Write { .. })));
    assert_eq!(store.unsaved(), Some("permission denied"));
    disk.set_read_only(false);
    store.append(user("two"), 1).1.unwrap();
    drop(store);
    assert_eq!(said(&file.path), ["user a!", "user one", "user two"]);
}

#[test]
fn a_torn_session_opens_on_a_full_disk() {
    let torn = format!("{HEADER}\n{}\n{}", user_line("a", ""), &user_line("b", "a")[..40]);
    let file = OnDisk::new(&torn);
    let disk = FaultyDisk::new();
    disk.set_room(0);
    let mut store = SessionStore::open_on(disk.clone(), &file.path, header).unwrap();
    assert_eq!(store.unsaved(), None, "the session has no messages");
    assert!(store.append(user("c"), 1).1.is_err());
    assert_eq!(store.unsaved(), Some("no storage space"));
    assert_eq!((file.text(), ids(&store.branch(0)).len()), (torn.clone(), 2));
    disk.set_room(usize::MAX);
    let (entry, written) = store.append(user("d"), 1);
    written.unwrap();
    assert!(file.text().starts_with(&format!("{torn}\n")));
    assert!(file.text().ends_with(&format!("{}\n", entry.to_line())));
    // An empty file on such a disk.
    let file = OnDisk::new("");
    disk.set_room(0);
    let mut store = SessionStore::open_on(disk.clone(), &file.path, header).unwrap();
    disk.set_room(usize::MAX);
    store.append(user("hi"), 1).1.unwrap();
    drop(store);
    assert_eq!(said(&file.path), ["user hi"]);
}

fn mode(path: &Path) -> u32 {
    std::os::unix::fs::PermissionsExt::mode(&fs::metadata(path).unwrap().permissions()) & 0o777
}

#[test]
fn session_files_and_their_folders_are_for_their_owner_alone() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("agent/sessions/project/s.jsonl");
    let mut store = SessionStore::create(header(), Some(path.clone()));
    store.append(user("hi"), 1).1.unwrap();
    let lock = path.with_file_name(".s.jsonl.lock");
    assert_eq!([mode(&path), mode(&lock)], [0o600; 2]);
    let made: Vec<&Path> = path.ancestors().skip(1).take(3).collect();
    assert_eq!(made.iter().map(|folder| mode(folder)).collect::<Vec<_>>(), [0o700; 3]);
    // Files that a migration leaves behind, too.
    let old =
        OnDisk::new(r#"{"type":"session","id":"s-1","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/"}"#);
    drop(old.open());
    assert_eq!(mode(&old.folder.path().join("s.jsonl.v1-backup")), 0o600);
}

// Reading.

#[test]
fn a_torn_last_line_is_skipped_and_the_next_entry_gets_a_line_of_its_own() {
    let whole = format!("{HEADER}\n{}\n", user_line("a", ""));
    let torn = format!("{whole}{}", &user_line("b", "a")[..40]);
    let file = OnDisk::new(&torn);
    let mut store = file.open();
    assert_eq!((ids(&store.branch(0)), store.damaged_lines()), (vec!["a"], &[3][..]));
    let (entry, written) = store.append(user("c"), 1);
    written.unwrap();
    assert_eq!(file.text(), format!("{torn}\n{}\n", entry.to_line()));
}

#[test]
fn a_whole_last_line_without_line_break_counts() {
    let text = format!("{HEADER}\n{}", user_line("a", ""));
    let file = OnDisk::new(&text);
    let mut store = file.open();
    assert_eq!((ids(&store.branch(0)), store.damaged_lines()), (vec!["a"], &[][..]));
    assert_eq!(file.text(), text + "\n");
}

#[test]
fn damage_is_skipped_and_named_by_its_lines() {
    let (a, b) = (user_line("a", ""), user_line("b", "a"));
    check_read(&format!("{HEADER}\n{a}\ngarbage\n{b}\n"), &["a", "b"], &[3]);
    check_read(&format!("{HEADER}\n{a}\n[1]\n{{}}\n{b}\n"), &["a", "b"], &[3, 4]);
    check_read(&format!("garbage\n{HEADER}\n{a}\n"), &["a"], &[1]);
    check_read(&format!("\n\n{HEADER}\r\n\r\n{a}\r\n  \n{b}\r\n"), &["a", "b"], &[]);
}

#[test]
fn invalid_utf8_is_damage_of_one_line() {
    let mut bytes = format!("{HEADER}\n{}\n", user_line("a", "")).into_bytes();
    bytes.extend_from_slice(b"{\"type\":\"message\",\"id\":\"x\xff\"}\n");
    bytes.extend_from_slice(user_line("b", "a").as_bytes());
    let file = OnDisk::new(bytes);
    let mut store = file.open();
    assert_eq!((ids(&store.branch(0)), store.damaged_lines()), (vec!["a", "b"], &[3][..]));
}

#[test]
fn odd_content_does_not_cut_the_branch() {
    let odd = [
        r#"{"type":"message","id":"o","parentId":"a","message":"words"}"#,
        r#"{"type":"message","id":"o","parentId":"a","message":{"role":5}}"#,
        r#"{"type":"message","id":"o","parentId":"a","message":{"role":"assistant","content":[],"usage":{"input":"many"}}}"#,
        r#"{"type":"session_info","id":"o","parentId":"a","name":7}"#,
    ];
    for odd in odd {
        let text = format!("{HEADER}\n{}\n{odd}\n{}\n", user_line("a", ""), user_line("b", "o"));
        check_read(&text, &["a", "o", "b"], &[3]);
        let file = OnDisk::new(&text);
        assert_eq!(context(&mut file.open()), ["user a!", "user b!"], "{odd}");
        let kept = file.open().branch(0)[1].to_line();
        let expected: Value = serde_json::from_str(odd).unwrap();
        let mut kept: Value = serde_json::from_str(&kept).unwrap();
        kept.as_object_mut().unwrap().shift_remove("timestamp");
        assert_eq!(kept, expected);
    }
}

#[test]
fn a_damaged_line_within_the_branch_does_not_cut_off_what_came_before() {
    let (a, b, d) = (user_line("a", ""), user_line("b", "a"), user_line("d", "c"));
    for damaged in ["garbage".to_owned(), "\0".repeat(100), user_line("c", "b")[..30].to_owned()] {
        check_read(&format!("{HEADER}\n{a}\n{b}\n{damaged}\n{d}\n"), &["a", "b", "d"], &[4]);
    }
    // The readable part of the line identifies the branch it was on.
    let (x, c) = (user_line("x", "a"), user_line("c", "b"));
    check_read(&format!("{HEADER}\n{a}\n{b}\n{x}\n{}\n{d}\n", &c[..80]), &["a", "b", "d"], &[5]);
    let file = OnDisk::new(format!("{HEADER}\n{a}\n{b}\n{}\n{d}\n", &c[..130]));
    let mut store = file.open();
    assert_eq!(context(&mut store), ["user a!", "user b!", "user d!"]);
    assert_eq!(store.damage()[0].what.as_deref(), Some("a message of yours"));
    // New entries hang below one that can be read, for other programs' sake.
    let file = OnDisk::new(format!("{HEADER}\n{a}\n{b}\n{c}\n{}\n", &d[..80]));
    assert_eq!(file.open().append(user("e"), 1).0.parent_id.as_ref().unwrap().as_str(), "c");
}

/// The branch of a file whose second line is `a`, followed by these lines, and the notice about them.
fn read_lines(lines: &[String]) -> (String, Option<String>) {
    let text = format!("{HEADER}\n{}\n{}\n", user_line("a", ""), lines.join("\n"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    fs::write(&path, text).unwrap();
    let mut store = SessionStore::open(&path, || unreachable!("it has a header")).unwrap();
    (ids(&store.branch(0)).join(" "), pi::session::damage_notice(store.damage()))
}

#[test]
fn entries_within_a_damaged_line_are_all_read() {
    let [b, c] = [user_line("b", "a"), user_line("c", "b")];
    let zeros = "\0".repeat(900);
    let whole = |line: String| {
        assert_eq!(read_lines(std::slice::from_ref(&line)), ("a b".to_owned(), None), "{line}");
    };
    whole(format!("{b}{zeros}"));
    whole(format!("{zeros}{b}"));
    whole(format!("{zeros}{b}{zeros}"));
    // The beginning of an entry that follows whole.
    whole(format!("{}{b}", &b[..60]));
    let several = |line: String| {
        assert_eq!(read_lines(std::slice::from_ref(&line)), ("a b c".to_owned(), None), "{line}");
    };
    several(format!("{b}{c}"));
    several(format!("{b}{zeros}{c}{zeros}"));
    assert_eq!(read_lines(&[b.clone(), format!("{}{c}", &b[..60])]), ("a b c".to_owned(), None));
}

#[test]
fn notice_names_what_a_damaged_line_has_lost() {
    let [b, c] = [user_line("b", "a"), user_line("c", "b")];
    let answer = b.replace(r#""role":"user""#, r#""role":"assistant""#);
    let check = |line: String, branch: &str, expected: &str| {
        let (read, notice) = read_lines(std::slice::from_ref(&line));
        assert_eq!((read.as_str(), notice.as_deref()), (branch, Some(expected)), "{line}");
    };
    let torn = &answer[..answer.len() - 12];
    check(
        format!("{torn}{c}"),
        "a c",
        "line 3 (an answer) of the session file could not be read; the rest is intact",
    );
    check(
        format!("{b} and garbage"),
        "a b",
        "line 3 of the session file could not be read; the rest is intact",
    );
}

#[test]
fn header_with_more_on_its_line_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    fs::write(&path, format!("{HEADER}{}\n{}\n", user_line("a", ""), user_line("b", "a"))).unwrap();
    let mut store = SessionStore::open(&path, || unreachable!("it has a header")).unwrap();
    assert_eq!((ids(&store.branch(0)), store.damaged_lines()), (vec!["a", "b"], &[][..]));
    assert!(pi::session::read_header(&path).is_some());
}

#[test]
fn damage_in_a_session_of_the_original_costs_its_line_alone() {
    for path in fixtures() {
        let text = fs::read_to_string(&path).unwrap();
        let whole = ids(&OnDisk::new(&text).open().branch(0)).join(" ");
        let n_lines = text.lines().count();
        // Neither the header nor the leaf.
        for damaged in 2..n_lines {
            let lines: Vec<&str> = text
                .lines()
                .enumerate()
                .map(|(at, line)| if at + 1 == damaged { &line[..90] } else { line })
                .collect();
            let lost = Entry::parse(text.lines().nth(damaged - 1).unwrap()).unwrap().id;
            let mut store = OnDisk::new(lines.join("\n") + "\n").open();
            let branch = store.branch(0);
            let expected: Vec<&str> = whole.split(' ').filter(|id| *id != lost.as_str()).collect();
            assert_eq!(ids(&branch), expected, "{}:{damaged}", path.display());
            assert_eq!(store.damaged_lines(), [damaged]);
        }
    }
}

#[test]
fn two_entries_on_one_line_lose_only_the_one_that_broke_off() {
    let (a, b, c) = (user_line("a", ""), user_line("b", "a"), user_line("c", "b"));
    check_read(&format!("{HEADER}\n{a}\n{}{c}\n", &b[..80]), &["a", "c"], &[3]);
    // The zeros a power failure leaves have replaced nothing that is known.
    check_read(&format!("{HEADER}\n{a}\n{}{b}\n{c}\n", "\0".repeat(4096)), &["a", "b", "c"], &[]);
    // A tool call at the end of a torn answer is no entry.
    let torn = r#"{"type":"message","id":"b","parentId":"a","timestamp":"T","message":{"role":"assistant","content":[{"type":"toolCall","id":"z","name":"n","arguments":{}}"#;
    check_read(&format!("{HEADER}\n{a}\n{torn}\n{}\n", user_line("c", "b")), &["a", "c"], &[3]);
}

#[test]
fn broken_characters_are_replaced_and_the_message_is_kept() {
    let mut bytes = format!("{HEADER}\n{}\n", user_line("a", "").replace("a!", "a~!")).into_bytes();
    let at = bytes.iter().position(|byte| *byte == b'~').unwrap();
    bytes[at] = 0xff;
    let file = OnDisk::new(bytes);
    let mut store = file.open();
    assert_eq!((context(&mut store), store.damaged_lines()), (vec!["user a\u{fffd}!".to_owned()], &[2][..]));
}

#[test]
fn a_line_of_a_million_characters_is_read_and_written() {
    let long = user_line("a", "").replace("a!", &"x".repeat(1_000_000));
    let file = OnDisk::new(format!("{HEADER}\n{long}\n{}\n", &long[..900_000]));
    let mut store = file.open();
    assert_eq!((ids(&store.branch(0)), store.damaged_lines()), (vec!["a"], &[3][..]));
    let (entry, written) = store.append(user(&"y".repeat(1_000_000)), 1);
    written.unwrap();
    drop(store);
    assert_eq!(file.open().branch(0)[1], entry);
}

#[test]
fn a_body_that_cannot_be_read_later_is_reported_by_its_line() {
    let lines = [user_line("a", ""), user_line("b", "a"), user_line("c", "b")];
    let file = OnDisk::new(format!("{HEADER}\n{}\n", lines.join("\n")));
    let mut store = file.open();
    fs::write(&file.path, file.text().replace(&lines[1], &"#".repeat(lines[1].len()))).unwrap();
    assert_eq!(context(&mut store), ["user a!", "user c!"]);
    let expected =
        "line 3 (a message of yours) of the session file can no longer be read; the rest is intact";
    assert_eq!(store.take_notices(), [expected]);
    store.branch(0);
    assert!(store.take_notices().is_empty(), "it was said");
}

#[test]
fn arguments_nested_too_deeply_are_cut_marked_and_read_back() {
    let mut deep = json!("core");
    for _ in 0..400 {
        deep = json!([deep]);
    }
    let call = json!({"type": "toolCall", "id": "c", "name": "n", "arguments": {"x": deep}});
    let answer: AssistantMessage = serde_json::from_value(json!({"content": [call]})).unwrap();
    let file = OnDisk::new(format!("{HEADER}\n"));
    let mut store = file.open();
    let (entry, written) = store.append(EntryBody::message(Arc::new(Message::from(answer))), 1);
    written.unwrap();
    assert!(store.take_notices()[0].contains("nested too deeply"));
    drop(store);
    let mut store = file.open();
    assert_eq!(store.damaged_lines(), [0; 0]);
    assert_eq!(store.branch(0), [entry]);
    assert!(file.text().contains("[nested too deeply to be stored; "), "{}", file.text());
}

#[test]
fn content_of_another_shape_is_kept_and_not_sent() {
    let odd =
        r#"{"type":"message","id":"o","parentId":"a","timestamp":"T","message":{"role":"user","content":5}}"#;
    let file = OnDisk::new(format!("{HEADER}\n{}\n{odd}\n{}\n", user_line("a", ""), user_line("b", "o")));
    let mut store = file.open();
    assert_eq!(ids(&store.branch(0)), ["a", "o", "b"]);
    assert_eq!(store.branch(0)[1].to_line(), odd);
    assert_eq!(context(&mut store), ["user a!", "user b!"]);
}

#[test]
fn what_is_no_session_is_refused_and_left_alone() {
    let texts = [
        "just text\n",
        "\n\n",
        r#"{"type":"message","id":"a"}"#,
        "[]\n",
        r#"{"type":"session","version":3}"#,
    ];
    for text in texts {
        let file = OnDisk::new(text);
        let error = SessionStore::open(&file.path, header).unwrap_err();
        assert!(matches!(error, OpenError::NotASession { .. }), "{text}: {error}");
        assert_eq!((file.text().as_str(), file.names()), (text, vec!["s.jsonl".to_owned()]));
    }
    let folder = tempfile::tempdir().unwrap();
    let error = SessionStore::open(&folder.path().join("none"), header).unwrap_err();
    assert!(matches!(error, OpenError::Read { .. }), "{error}");
    assert!(names(folder.path()).is_empty());
}

#[test]
fn an_empty_file_becomes_a_session() {
    let file = OnDisk::new("");
    let mut store = SessionStore::open(&file.path, header).unwrap();
    assert_eq!(file.text(), format!("{HEADER}\n"));
    store.append(user("hi"), 1).1.unwrap();
    drop(store);
    assert_eq!(file.open().branch(0).len(), 1);
}

#[test]
fn bodies_are_read_when_they_are_asked_for() {
    let file = OnDisk::new(format!("{HEADER}\n{}\n{}\n", user_line("a", ""), user_line("b", "a")));
    let mut store = file.open();
    // The same number of bytes, so that every line stays where it was.
    fs::write(&file.path, file.text().replace("a!", "A!")).unwrap();
    assert_eq!(context(&mut store), ["user A!", "user b!"]);
    // Once read they stay.
    fs::write(&file.path, file.text().replace("A!", "Z!")).unwrap();
    assert_eq!(context(&mut store), ["user A!", "user b!"]);
}

#[test]
fn a_body_that_is_gone_is_left_out() {
    let file = OnDisk::new(format!("{HEADER}\n{}\n{}\n", user_line("a", ""), user_line("b", "a")));
    let mut store = file.open();
    fs::write(&file.path, "").unwrap();
    assert!(store.branch(0).is_empty());
}

// Old formats.

#[test]
fn version_1_becomes_a_chain_and_keeps_what_its_compaction_kept() {
    let lines = [
        r#"{"type":"session","id":"s-1","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/tmp/demo"}"#,
        r#"{"type":"message","timestamp":"T","message":{"role":"user","content":"one","timestamp":1}}"#,
        "garbage",
        r#"{"type":"message","timestamp":"T","message":{"role":"user","content":"two","timestamp":2}}"#,
        r#"{"type":"compaction","timestamp":"2026-01-01T00:00:01.000Z","summary":"S","firstKeptEntryIndex":2,"tokensBefore":9}"#,
        r#"{"type":"message","timestamp":"T","message":{"role":"user","content":"three","timestamp":3}}"#,
    ];
    let file = OnDisk::new(lines.join("\n"));
    let mut store = file.open();
    assert_eq!(store.header().version, 3);
    assert_eq!(store.damaged_lines(), [3]);
    assert_eq!(file.text().lines().nth(2), Some("garbage"), "it stays where it was");
    let backup = file.folder.path().join("s.jsonl.v1-backup");
    assert_eq!(fs::read_to_string(&backup).unwrap(), lines.join("\n"));
    let notices = store.take_notices();
    assert!(notices[0].contains("version 1") && notices[0].contains("v1-backup"), "{notices:?}");
    let seen = context(&mut store);
    assert!(seen[0].ends_with("<summary>\nS\n</summary>"), "{seen:?}");
    assert_eq!(seen[1..], ["user two", "user three"]);
    let branch = store.branch(0);
    assert_eq!(branch.len(), 4);
    assert_eq!(branch[0].parent_id, None);
    assert!(branch.windows(2).all(|pair| pair[1].parent_id.as_ref() == Some(&pair[0].id)));
    assert!(!file.text().contains("firstKeptEntryIndex"));
    drop(store);
    let migrated = file.text();
    drop(file.open());
    assert_eq!(file.text(), migrated, "a second open finds nothing to do");
    assert_eq!(file.names(), ["s.jsonl", "s.jsonl.v1-backup"]);
}

#[test]
fn a_migration_never_replaces_an_earlier_backup() {
    let old = r#"{"type":"session","version":2,"id":"s-1","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/"}"#;
    let file = OnDisk::new(old);
    fs::write(file.folder.path().join("s.jsonl.v2-backup"), "precious").unwrap();
    drop(file.open());
    assert_eq!(file.names(), ["s.jsonl", "s.jsonl.v2-backup", "s.jsonl.v2-backup-2"]);
    assert_eq!(fs::read_to_string(file.folder.path().join("s.jsonl.v2-backup")).unwrap(), "precious");
    assert_eq!(fs::read_to_string(file.folder.path().join("s.jsonl.v2-backup-2")).unwrap(), old);
}

#[test]
fn version_2_keeps_its_application_messages() {
    let lines = [
        r#"{"type":"session","version":2,"id":"s-1","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/tmp/demo"}"#,
        r#"{"type":"message","id":"a","parentId":null,"timestamp":"T","message":{"role":"hookMessage","customType":"x","content":"note","display":true,"timestamp":1}}"#,
        r#"{"type":"message","id":"b","parentId":"a","timestamp":"T","message":{"role":"user","content":"two","timestamp":2}}"#,
    ];
    let file = OnDisk::new(lines.join("\n") + "\n");
    let mut store = file.open();
    assert_eq!(context(&mut store), ["user note", "user two"]);
    assert!(file.text().contains(r#""role":"custom""#));
}

#[test]
fn a_migrated_file_stays_behind_its_link() {
    let file =
        OnDisk::new(r#"{"type":"session","id":"s-1","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/"}"#);
    let link = file.folder.path().join("link.jsonl");
    std::os::unix::fs::symlink(&file.path, &link).unwrap();
    SessionStore::open(&link, header).unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(file.text().contains("\"version\":3"));
}

#[test]
fn a_newer_version_is_read_as_it_is() {
    let text = format!("{}\n{}\n", HEADER.replace("\"version\":3", "\"version\":9"), user_line("a", ""));
    let file = OnDisk::new(&text);
    let mut store = file.open();
    assert_eq!((store.header().version, ids(&store.branch(0))), (9, vec!["a"]));
    assert_eq!(file.text(), text);
}

// Tree.

#[test]
fn the_last_entry_of_the_file_is_the_leaf() {
    let label = r#"{"type":"label","id":"l","parentId":"b","timestamp":"T","targetId":"a","label":"start"}"#;
    let lines = [user_line("a", ""), user_line("b", "a"), user_line("c", "a")].join("\n");
    check_read(&format!("{HEADER}\n{lines}\n"), &["a", "c"], &[]);
    check_read(&format!("{HEADER}\n{lines}\n{label}\n"), &["a", "b", "l"], &[]);
    // Broken references end the path and lose nothing else.
    check_read(&format!("{HEADER}\n{}\n{}\n", user_line("x", "gone"), user_line("y", "x")), &["x", "y"], &[]);
}

#[test]
fn the_tail_of_a_branch_says_how_much_comes_before_it() {
    let file = OnDisk::new(format!(
        "{HEADER}\n{}\n{}\n{}\n",
        user_line("a", ""),
        user_line("b", "a"),
        user_line("c", "b")
    ));
    let mut store = file.open();
    let (tail, n_earlier) = store.branch_tail(2);
    assert_eq!((ids(&tail), n_earlier), (vec!["b", "c"], 1));
    let (tail, n_earlier) = store.branch_tail(9);
    assert_eq!((ids(&tail), n_earlier), (vec!["a", "b", "c"], 0));
    assert_eq!(ids(&SessionStore::peek_tail(&file.path).unwrap()), ["a", "b", "c"]);
}

#[test]
fn kinds_that_are_not_known_are_part_of_the_tree() {
    let novel = r#"{"type":"from_the_future","id":"n","parentId":"a","timestamp":"T","z":[1]}"#;
    let file = OnDisk::new(format!("{HEADER}\n{}\n{novel}\n{}\n", user_line("a", ""), user_line("b", "n")));
    let mut store = file.open();
    assert_eq!(store.branch(0)[1].to_line(), novel);
    assert_eq!(context(&mut store), ["user a!", "user b!"]);
}

#[test]
fn the_model_reads_what_the_branch_says() {
    let lines = [
        HEADER.to_owned(),
        r#"{"type":"message","id":"s","parentId":null,"timestamp":"T","message":{"role":"system","content":"p"}}"#.to_owned(),
        user_line("a", "s"),
        user_line("b", "a"),
        r#"{"type":"message","id":"x","parentId":"b","timestamp":"T","message":{"role":"assistant","content":[{"type":"text","text":"no"}],"stopReason":"error"}}"#.to_owned(),
        r#"{"type":"context_edit","id":"e","parentId":"x","timestamp":"T","targetId":"x","replacement":null}"#.to_owned(),
        r#"{"type":"compaction","id":"c","parentId":"e","timestamp":"T","summary":"S","firstKeptEntryId":"b","tokensBefore":9}"#.to_owned(),
        r#"{"type":"message","id":"h","parentId":"c","timestamp":"T","message":{"role":"bashExecution","command":"ls","output":"","cancelled":true}}"#.to_owned(),
        r#"{"type":"custom_message","customType":"ext","content":"note","display":true,"id":"n","parentId":"h","timestamp":"T"}"#.to_owned(),
        r#"{"type":"branch_summary","id":"f","parentId":"n","timestamp":"T","fromId":"z","summary":"B"}"#.to_owned(),
        r#"{"type":"session_info","id":"i","parentId":"f","timestamp":"T","name":" two\nlines "}"#.to_owned(),
        user_line("d", "i"),
    ];
    let file = OnDisk::new(lines.join("\n") + "\n");
    let mut store = file.open();
    let seen = context(&mut store);
    let expected = ["user b!", "user Ran `ls`\n(no output)\n\n(command cancelled)", "user note"];
    assert!(seen[0].ends_with("<summary>\nS\n</summary>"), "{}", seen[0]);
    assert_eq!(seen[1..4], expected);
    assert!(seen[4].ends_with("<summary>\nB</summary>"), "{}", seen[4]);
    assert_eq!(seen[5..], ["user d!"]);
    assert_eq!(store.name(), Some("two lines"));
}

// The right to write.

#[test]
fn the_second_who_opens_a_session_can_only_read() {
    let file = OnDisk::new(format!("{HEADER}\n{}\n", user_line("a", "")));
    let first = file.open();
    let before = file.text();
    let mut second = file.open();
    assert_eq!(second.locked_by(), Some(std::process::id().to_string().as_str()));
    assert_eq!(ids(&second.branch(0)), ["a"]);
    assert!(matches!(second.append(user("b"), 1).1, Err(JournalError::Locked { .. })));
    assert_eq!(file.text(), before);
    drop(first);
    assert_eq!(file.open().locked_by(), None);
    assert_eq!(file.names(), ["s.jsonl"], "no lock file is left behind");
}

#[test]
fn a_new_session_is_locked_once_its_file_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    let mut store = SessionStore::create(header(), Some(path.clone()));
    store.append(user("hi"), 1).1.unwrap();
    assert!(SessionStore::open(&path, header).unwrap().locked_by().is_some());
}

#[test]
fn a_lock_file_without_a_holder_is_no_obstacle() {
    let file = OnDisk::new(format!("{HEADER}\n"));
    fs::write(file.folder.path().join(".s.jsonl.lock"), "4711").unwrap();
    assert_eq!(file.open().locked_by(), None);
}

#[test]
fn a_lock_file_is_not_followed_and_keeps_what_pi_did_not_write() {
    let file = OnDisk::new(format!("{HEADER}\n"));
    let (precious, lock) = (file.folder.path().join("precious"), file.folder.path().join(".s.jsonl.lock"));
    fs::write(&precious, "4711").unwrap();
    std::os::unix::fs::symlink(&precious, &lock).unwrap();
    drop(file.open());
    assert_eq!(fs::read_to_string(&precious).unwrap(), "4711");
    assert!(fs::symlink_metadata(&lock).unwrap().is_symlink());

    fs::remove_file(&lock).unwrap();
    fs::write(&lock, "a note of the user").unwrap();
    let holder = file.open();
    assert_eq!(file.open().locked_by(), Some("unknown"), "it locks all the same");
    drop(holder);
    assert_eq!(fs::read_to_string(&lock).unwrap(), "a note of the user");
    // A link to nothing makes nothing.
    fs::remove_file(&lock).unwrap();
    std::os::unix::fs::symlink(file.folder.path().join("later"), &lock).unwrap();
    drop(file.open());
    assert!(!file.folder.path().join("later").exists());
}

#[test]
fn an_old_file_that_another_process_holds_is_not_migrated() {
    let file = OnDisk::new(format!("{HEADER}\n"));
    let holder = file.open();
    let old = r#"{"type":"session","id":"s-1","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/"}"#;
    fs::write(&file.path, old).unwrap();
    assert!(file.open().locked_by().is_some());
    assert_eq!(file.text(), old);
    drop(holder);
}

// Finding.

#[test]
fn sessions_are_listed_and_found_by_header() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("--tmp-demo--");
    let other = root.path().join("--tmp-other--");
    fs::create_dir_all(&folder).unwrap();
    fs::create_dir_all(&other).unwrap();
    let write = |folder: &Path, id: &str, cwd: &str, body: &str, modified_s: u64| {
        let path = folder.join(file_name("2026-11-21T09:23:47.280Z", id));
        let header = HEADER.replace("s-1", id).replace("/tmp/demo", cwd);
        fs::write(&path, format!("{header}\n{body}\n")).unwrap();
        let modified = std::time::UNIX_EPOCH + std::time::Duration::from_secs(modified_s);
        fs::File::options().append(true).open(&path).unwrap().set_modified(modified).unwrap();
        path
    };
    let said = user_line("a", "");
    let later = said.replace("\"timestamp\":1}", "\"timestamp\":2}");
    let old = write(&folder, "abc-1", "/tmp/demo", &said, 4_000_000_000);
    let new = write(&folder, "abc-2", "/tmp/./demo/", &later, 4_000_000_100);
    let foreign = write(&folder, "xyz-1", "/tmp-demo", "", 4_000_000_200);
    let elsewhere = write(&other, "abc-3", "/tmp/other", &said, 4_000_000_300);
    fs::write(folder.join("notes.jsonl"), "{\"type\":\"notes\"}\n").unwrap();
    fs::write(folder.join("notes.txt"), HEADER).unwrap();

    let here = Path::new("/tmp/demo");
    assert_eq!(latest(&folder, None), Some(foreign.clone()));
    assert_eq!(latest(&folder, Some(here)), Some(new.clone()));
    assert_eq!(latest(&root.path().join("none"), None), None);
    let paths = |cwd| list(&folder, cwd).into_iter().map(|summary| summary.path).collect::<Vec<_>>();
    assert_eq!(paths(None), [foreign.as_path(), &new, &old]);
    assert_eq!(paths(Some(here)), [new.as_path(), &old]);
    let summary = &list(&folder, Some(here))[1];
    assert_eq!((summary.id.as_str(), summary.n_messages), ("abc-1", 1));
    assert_eq!(summary.first_message.as_deref(), Some("a!"));
    assert_eq!(summary.modified_ms, 1);
    // A session without prompts has no first message.
    assert_eq!(list(&folder, None)[0].first_message, None);

    let find = |id: &str| find(root.path(), &folder, here, id);
    let found = |here: &[&PathBuf], elsewhere: &[&PathBuf]| {
        let owned = |paths: &[&PathBuf]| paths.iter().map(|path| (*path).clone()).collect();
        FoundSessions { here: owned(here), elsewhere: owned(elsewhere) }
    };
    assert_eq!(find("abc-1"), found(&[&old], &[]));
    assert_eq!(find("abc"), found(&[&new, &old], &[]));
    assert_eq!(find("abc-3"), found(&[], &[&elsewhere]));
    // In the same folder, and of another directory.
    assert_eq!(find("xyz"), found(&[], &[&foreign]));
    assert_eq!(find("nothing"), FoundSessions::default());
}

#[test]
fn a_session_that_names_no_directory_belongs_to_its_folder() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("--tmp-demo--");
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join("old.jsonl");
    fs::write(&path, "{\"type\":\"session\",\"id\":\"o\"}\n").unwrap();
    assert_eq!(latest(&folder, Some(Path::new("/tmp/demo"))), Some(path));
    assert_eq!(latest(&folder, Some(Path::new("/tmp/other"))), None);
}

#[test]
fn listing_is_not_held_up_by_pipes_and_folders() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe.jsonl");
    make_fifo(&pipe);
    fs::create_dir(folder.path().join("folder.jsonl")).unwrap();
    assert!(list(folder.path(), None).is_empty());
    let error = SessionStore::open(&pipe, header).unwrap_err();
    assert!(error.to_string().ends_with("pipe.jsonl: it is not a regular file"), "{error}");
    let error = SessionStore::open(&folder.path().join("folder.jsonl"), header).unwrap_err();
    assert!(error.to_string().contains("is a directory"), "{error}");
    assert_eq!(names(folder.path()), ["folder.jsonl", "pipe.jsonl"], "no lock files");
}

// Files of the original.

fn fixtures() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/sessions");
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
        .collect();
    paths.sort();
    assert!(paths.len() >= 16, "the fixtures are missing");
    paths
}

#[test]
fn sessions_of_the_first_versions_are_migrated_as_the_original_does() {
    let old = |name: &str| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/sessions/old");
        let text = fs::read_to_string(folder.join(name)).unwrap();
        text.replace("/home/user/project", "/tmp")
    };
    // Of the second version only the number changes here.
    let file = OnDisk::new(old("v2.jsonl"));
    drop(file.open());
    assert_eq!(file.text(), old("v2.jsonl").replacen("\"version\":2", "\"version\":3", 1));

    let file = OnDisk::new(old("v1.jsonl"));
    let mut store = file.open();
    let branch = store.branch(0);
    assert_eq!(branch.len(), 14);
    let parents: Vec<_> = branch.iter().map(|entry| entry.parent_id.clone()).collect();
    let chain = std::iter::once(None).chain(branch.iter().map(|entry| Some(entry.id.clone())));
    assert_eq!(parents, chain.take(14).collect::<Vec<_>>());
    // It named the line it kept by its number, the header being 0.
    let compaction = serde_json::from_str::<Value>(old("v1.jsonl").lines().nth(12).unwrap()).unwrap();
    let kept = usize::try_from(compaction["firstKeptEntryIndex"].as_u64().unwrap()).unwrap();
    let EntryBody::Compaction(migrated) = &branch[11].body else { panic!("{:?}", branch[11].body) };
    assert_eq!(migrated.first_kept_entry_id, branch[kept - 1].id.as_str());
    // The rest of each line is what it was.
    for (entry, line) in branch.iter().zip(old("v1.jsonl").lines().skip(1)) {
        let mut found: Value = serde_json::from_str(&entry.to_line()).unwrap();
        let mut expected: Value = serde_json::from_str(line).unwrap();
        for (value, names) in [
            (&mut found, ["id", "parentId", "firstKeptEntryId"]),
            (&mut expected, ["firstKeptEntryIndex", "", ""]),
        ] {
            names.iter().for_each(|name| drop(value.as_object_mut().unwrap().shift_remove(*name)));
        }
        assert_eq!(found, expected);
    }
}

#[test]
fn every_line_of_the_original_survives() {
    for path in fixtures() {
        let text = fs::read_to_string(&path).unwrap();
        for (line_idx, line) in text.lines().enumerate().skip(1) {
            let entry = Entry::parse(line).unwrap();
            let known = !matches!(
                entry.body,
                EntryBody::Unknown { .. } | EntryBody::Message { message: SessionMessage::Unknown(_), .. }
            );
            let at = format!("{}:{}", path.display(), line_idx + 1);
            assert!(known, "{at}");
            let json = |text: &str| serde_json::from_str::<Value>(text).unwrap();
            assert_eq!(json(&entry.to_line()), json(line), "{at}");
            // Costs have more digits than a reader keeps; all else is the same bytes.
            if !line.contains("\"usage\"") {
                assert_eq!(entry.to_line(), line, "{at}");
            }
        }
    }
}

#[tokio::test]
async fn every_session_of_the_original_opens_and_can_be_asked_to_go_on() {
    for path in fixtures() {
        let text = fs::read_to_string(&path).unwrap();
        let file = OnDisk::new(&text);
        let mut store = file.open();
        assert_eq!(store.damaged_lines(), [0; 0], "{}", path.display());
        assert_eq!(file.text(), text, "{}", path.display());
        let conversation = messages(&store.context_branch());
        assert!(!conversation.is_empty(), "{}", path.display());
        let mut bench = AgentBench::new([FakeAnswer::of_text("ok")]);
        bench
            .run_with(vec![Message::User(UserMessage::new("go on", Vec::new(), Millis(1)))], conversation)
            .await;
        let request = &bench.provider.requests()[0];
        pi::ai::preview_request(request).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}

#[test]
fn names_and_totals_are_those_of_the_bodies() {
    let named = fixtures().into_iter().find(|path| path.ends_with("named.jsonl")).unwrap();
    let file = OnDisk::new(fs::read(named).unwrap());
    let mut store = file.open();
    let name = store.name().unwrap().to_owned();
    let totals = store.totals().clone();
    // The same from the bodies.
    let bodies = store.branch(0);
    let last_name = bodies.iter().rev().find_map(|entry| match &entry.body {
        EntryBody::SessionInfo(SessionInfo { name, .. }) => Some(name.clone()),
        _ => None,
    });
    assert_eq!(Some(name), last_name);
    let mut counted = pi::session::Totals::default();
    for entry in &bodies {
        if let EntryBody::Message { message: SessionMessage::Model(message), .. } = &entry.body {
            counted.note(message);
        }
    }
    assert_eq!(totals, counted);
}

// The tree.

#[test]
fn a_moved_leaf_starts_a_branch_and_bodies_of_the_other_one_are_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    let line = |id: &str, parent: Option<&str>, text: &str| {
        let message = json!({"role": "user", "content": text, "timestamp": 1});
        json!({"type": "message", "id": id, "parentId": parent, "timestamp": "t", "message": message})
            .to_string()
    };
    let label = |id: &str, target: &str, label: Option<&str>| {
        json!({"type": "label", "id": id, "parentId": "c", "timestamp": "t", "targetId": target, "label": label})
            .to_string()
    };
    let header = json!({"type": "session", "version": 3, "id": "s", "timestamp": "t", "cwd": ""}).to_string();
    let lines = [
        header,
        line("a", None, "first"),
        line("b", Some("a"), "one\n  way,  much too long for a list"),
        line("c", Some("a"), "other"),
        label("l", "b", Some("start")),
        label("m", "a", Some("gone")),
        label("n", "a", None),
    ];
    fs::write(&path, lines.join("\n") + "\n").unwrap();
    let mut store = SessionStore::open(&path, || unreachable!("there is a header")).unwrap();
    let id = EntryId::new;
    let tree = store.tree();
    let parents: Vec<Option<usize>> = tree.entries().map(|entry| entry.parent).collect();
    assert_eq!(parents, [None, Some(0), Some(0), Some(2), Some(2), Some(2)]);
    let labels: Vec<(usize, String)> =
        tree.labels().into_iter().map(|(idx, label)| (idx, label.text)).collect();
    assert_eq!(labels, [(1, "start".to_owned())]);
    assert_eq!(tree.read(1).unwrap().body.preview(10), "one way,…");
    assert_eq!(tree.leaf(), Some(5));
    let texts = |store: &mut SessionStore| -> Vec<String> {
        store.branch(0).iter().map(|entry| entry.body.preview(80)).filter(|text| !text.is_empty()).collect()
    };
    assert_eq!(texts(&mut store), ["first", "other"]);

    assert!(!store.move_leaf(Some(&id("none"))));
    assert!(store.move_leaf(Some(&id("b"))));
    assert_eq!(texts(&mut store), ["first", "one way, much too long for a list"]);
    // Released bodies are read again.
    assert_eq!(store.release_bodies(), 2, "`a` and `b`; the other branch was released by the move");
    assert_eq!(texts(&mut store), ["first", "one way, much too long for a list"]);
    let info = SessionInfo { name: "new".to_owned(), extra: Extra::new() };
    let (entry, written) = store.append(EntryBody::SessionInfo(info), 0);
    written.unwrap();
    assert_eq!(entry.parent_id, Some(id("b")));
    // The picture that was taken before knows nothing of it; a new one does.
    assert_eq!((tree.len(), store.tree().len()), (6, 7));
    assert_eq!(store.tree().path(store.tree().leaf()), [0, 1, 6]);

    assert!(store.move_leaf(None));
    assert_eq!(texts(&mut store), [""; 0]);
    let info = SessionInfo { name: "root".to_owned(), extra: Extra::new() };
    assert_eq!(store.append(EntryBody::SessionInfo(info), 0).0.parent_id, None);
}

#[test]
fn a_line_that_became_empty_costs_that_line_alone() {
    let lines =
        [HEADER, &user_line("a", ""), &user_line("b", "a"), "", &user_line("d", "c"), &user_line("e", "d")];
    let file = OnDisk::new(lines.join("\n") + "\n");
    assert_eq!(context(&mut file.open()), ["user a!", "user b!", "user d!", "user e!"]);
}
