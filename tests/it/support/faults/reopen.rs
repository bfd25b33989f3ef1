//! Continues from a [`Moment`](super::trial::Moment), and reports what is gone.

#![expect(clippy::unwrap_used, reason = "a helper of tests may fail the test")]

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pi::session::{
    Deltas, Entry, OpenError, OpenSession, Reply, SessionCommand, SessionEvent, StoredTree, WhenBusy,
    read_tree,
};
use serde_json::Value;

use super::trial::{Files, Moment};
use super::witness::{Shown, words};
use crate::support::session_bench::{Session, SessionBench, prompt};

/// Far longer than anything takes; only a failure waits so long.
const PATIENCE: Duration = Duration::from_secs(30);

/// What the user says after reopening.
const GO_ON: &str = "w99999";

/// What may be missing, apart from nothing.
#[derive(Debug, Clone, Default)]
pub(crate) struct Damage {
    /// Ids of entries whose lines were damaged.
    pub(crate) ids: HashSet<String>,
    /// Whether lines may be missing or repeated, so that the original need not read the file
    /// as it is. The branch must hold all the same.
    pub(crate) is_irregular: bool,
    /// Whether nothing is left of a line in the middle, so that the branch may begin after it.
    /// A notice says so.
    pub(crate) cuts_branch: bool,
    /// Words that no line contains any more.
    pub(crate) words: BTreeSet<String>,
}

/// Reopens the session of `moment` in the folder of `bench`, continues it, and reads it a
/// third time.
///
/// # Errors
/// The first thing that was shown and is gone.
pub(crate) async fn check(bench: &SessionBench, moment: &Moment, damage: &Damage) -> Result<(), String> {
    let folder = bench.path("sessions");
    restore(&folder, &moment.files);
    let shown = &moment.shown;
    if let Some(early) = shown.too_early.first() {
        return Err(format!("shown as finished before it was stored: {early}"));
    }
    for (path, entries) in &shown.entries {
        check_entries(path, entries, damage)?;
    }
    let target = shown.path.clone().filter(|path| is_session(path));
    let n_unread = target.as_deref().map_or(0, n_unreadable_lines);
    let open = target.map_or(OpenSession::New, OpenSession::File);
    let opened = match bench.open(open.clone()).await {
        Err(OpenError::NoDirectory { cwd }) if cwd != bench.path("work").to_string_lossy() => {
            // Damage can rename the directory in the header. The user is told to recreate it;
            // here the header gets its old one back, so that nothing is created elsewhere.
            if let OpenSession::File(path) = &open {
                set_directory(path, &bench.path("work"));
            }
            bench.open(open).await
        }
        opened => opened,
    };
    let mut session = opened.map_err(|error| format!("cannot be reopened: {error}"))?;
    let taken = match session.request(SessionCommand::TakeLeftOver).await {
        Ok(Reply::Queue(taken)) => taken,
        other => return Err(format!("what is left over cannot be taken: {other:?}")),
    };
    let mut notices = String::new();
    for event in session.waiting_events() {
        if let SessionEvent::Notice { text, .. } = event {
            notices.push_str(&text);
            notices.push('\n');
        }
    }
    if n_unread > 0 && !notices.contains("line") {
        return Err(format!("damage is not reported; notices: {notices:?}"));
    }
    let left: String = taken.into_prompts().into_iter().map(|prompt| prompt.text + "\n").collect();
    check_words(shown, &folder, &(left + &notices), damage)?;
    let path = go_on(session).await?;
    let after = Damage { is_irregular: false, ..damage.clone() };
    for (path, entries) in &shown.entries {
        check_entries(path, entries, &after)?;
    }
    let text = fs::read(&path).unwrap_or_default();
    if !String::from_utf8_lossy(&text).contains(GO_ON) {
        return Err("what was said after reopening is not in the file".to_owned());
    }
    check_structure(&path, damage)
}

/// Puts `files` into `folder`, in place of everything else.
pub(crate) fn restore(folder: &Path, files: &Files) {
    drop(fs::remove_dir_all(folder));
    fs::create_dir_all(folder).unwrap();
    for (name, bytes) in files {
        fs::write(folder.join(name), &**bytes).unwrap();
    }
}

/// Writes `directory` into the header of a session file, however damage spells the old one.
fn set_directory(path: &Path, directory: &Path) {
    let text = fs::read_to_string(path).unwrap();
    let (header, rest) = text.split_once('\n').unwrap_or((&text, ""));
    let mut header: Value = serde_json::from_str(header).unwrap();
    header["cwd"] = directory.to_string_lossy().into();
    fs::write(path, format!("{header}\n{rest}")).unwrap();
}

fn is_session(path: &Path) -> bool {
    matches!(read_tree(path), Ok(Some(_)))
}

/// Every entry that was shown can be read, as it was shown.
fn check_entries(path: &Path, entries: &[Arc<Entry>], damage: &Damage) -> Result<(), String> {
    if entries.is_empty() {
        return Ok(());
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let stored = match read_tree(path) {
        Ok(Some(stored)) => stored,
        Ok(None) => return Err(format!("{name} is empty")),
        Err(error) => return Err(error.to_string()),
    };
    let tree = &stored.tree;
    for entry in entries.iter().filter(|entry| !damage.ids.contains(entry.id.as_str())) {
        let read = tree.index_of(&entry.id).and_then(|idx| tree.read(idx));
        match read {
            None => return Err(format!("{name}: entry {} is gone: {}", entry.id, entry.to_line())),
            Some(read) if read != *entry => {
                return Err(format!("{name}: shown was {}, read is {}", entry.to_line(), read.to_line()));
            }
            Some(_) => {}
        }
    }
    check_branch(&stored, entries, damage).map_err(|problem| format!("{name}: {problem}"))
}

/// The branch that was shown last is the one that is shown again, unless something that had
/// not been shown follows.
fn check_branch(stored: &StoredTree, entries: &[Arc<Entry>], damage: &Damage) -> Result<(), String> {
    let (tree, last) = (&stored.tree, entries.last().unwrap());
    if damage.cuts_branch {
        return Ok(());
    }
    if !damage.is_irregular && tree.entries().last().is_none_or(|end| *end.id != last.id) {
        return Ok(());
    }
    let branch: HashSet<&str> =
        tree.path(tree.leaf()).into_iter().map(|idx| tree.entry(idx).id.as_str()).collect();
    let by_id: HashMap<&str, &Arc<Entry>> = entries.iter().map(|entry| (entry.id.as_str(), entry)).collect();
    let mut at = Some(last);
    while let Some(entry) = at {
        if !branch.contains(entry.id.as_str()) && !damage.ids.contains(entry.id.as_str()) {
            return Err(format!("entry {} is no longer on the branch", entry.id));
        }
        at = entry.parent_id.as_ref().and_then(|parent| by_id.get(parent.as_str()).copied());
    }
    Ok(())
}

/// Every word of a draft, a queued message or a command is somewhere the user finds it: in
/// `left` (the editor and the notices), in a session, or beside a session that is not open.
fn check_words(shown: &Shown, folder: &Path, left: &str, damage: &Damage) -> Result<(), String> {
    if shown.notices.iter().any(|notice| notice.contains("crash would lose")) {
        // The user was told.
        return Ok(());
    }
    let mut found: BTreeSet<String> = words(left).collect();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let session = match name.strip_prefix('.') {
            None => path.clone(),
            Some(beside) => match beside.find(".jsonl") {
                Some(at) => folder.join(&beside[..at + ".jsonl".len()]),
                None => continue,
            },
        };
        let is_own = shown.path.as_ref() == Some(&session);
        if name.starts_with('.') && is_own || !is_session(&session) {
            continue;
        }
        found.extend(words(&String::from_utf8_lossy(&fs::read(&path).unwrap())));
    }
    let mut unsaved = shown.clone();
    unsaved.give_up();
    found.extend(unsaved.given_up);
    let lost: Vec<&String> =
        shown.words.iter().filter(|word| !found.contains(*word) && !damage.words.contains(*word)).collect();
    if lost.is_empty() { Ok(()) } else { Err(format!("lost words: {lost:?}")) }
}

/// Says one more thing, and quits. Returns the session's file.
async fn go_on(session: Session) -> Result<PathBuf, String> {
    let handle = session.handle.clone();
    let mut events = handle.subscribe(Deltas::Unwanted);
    let replied = handle.request(prompt(GO_ON, WhenBusy::Refuse)).await;
    if replied != Ok(Reply::Started) {
        return Err(format!("cannot continue: {replied:?}"));
    }
    let settle = async {
        while let Some(update) = events.recv().await {
            if matches!(update.event, SessionEvent::Settled { .. }) {
                return true;
            }
        }
        false
    };
    if !tokio::time::timeout(PATIENCE, settle).await.unwrap_or(false) {
        return Err("there is no answer after reopening".to_owned());
    }
    let path = handle.state().path.clone().unwrap();
    let quit = handle.request(SessionCommand::Shutdown).await;
    quit.map_err(|error| format!("quitting after reopening: {error}"))?;
    drop(session);
    while events.recv().await.is_some() {}
    Ok(path)
}

fn n_unreadable_lines(path: &Path) -> usize {
    let bytes = fs::read(path).unwrap();
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    lines.filter(|line| serde_json::from_slice::<Value>(line).is_err()).count()
}

/// What the original needs to read a session: a header first, and then entries with ids of
/// their own whose parents are known, or null.
fn check_structure(path: &Path, damage: &Damage) -> Result<(), String> {
    if damage.is_irregular {
        return Ok(());
    }
    let bytes = fs::read(path).unwrap();
    let mut lines =
        bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    let header = lines.next().unwrap_or_default();
    if header["type"] != "session" || header["version"] != 3 || !header["id"].is_string() {
        return Err(format!("the first line is no header: {header}"));
    }
    let mut ids = HashSet::new();
    for line in lines {
        let id = line["id"].as_str().ok_or_else(|| format!("an entry has no id: {line}"))?.to_owned();
        if let Some(parent) = line["parentId"].as_str().filter(|parent| !ids.contains(*parent)) {
            return Err(format!("{id} follows {parent}, which is missing"));
        }
        if !ids.insert(id) {
            return Err(format!("two entries have one id: {line}"));
        }
    }
    Ok(())
}
