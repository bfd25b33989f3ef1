//! Opening and listing long sessions: `cargo bench --bench session`.
#![expect(clippy::unwrap_used, reason = "a bench that cannot set itself up has nothing to measure")]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use divan::counter::{BytesCount, ItemsCount};
use pi::session::{SearchQuery, SessionIndex, SessionScope, SessionStore, list, messages};

const N_MESSAGES: usize = 10_000;
const N_SESSIONS: usize = 100;

fn main() {
    divan::main();
}

/// Everything up to the request of the next prompt, the file being in the page cache.
#[divan::bench]
fn open_and_project(bencher: divan::Bencher<'_, '_>) {
    let folder = tempfile::tempdir().unwrap();
    let path = write_session(folder.path(), "long", N_MESSAGES);
    let n_bytes = fs::metadata(&path).unwrap().len();
    bencher.counter(ItemsCount::new(N_MESSAGES)).counter(BytesCount::new(n_bytes)).bench(|| {
        let mut store = open(&path);
        messages(&store.context_branch())
    });
}

/// The work before the first frame of a resumed session.
#[divan::bench]
fn open_and_show_the_end(bencher: divan::Bencher<'_, '_>) {
    let folder = tempfile::tempdir().unwrap();
    let path = write_session(folder.path(), "long", N_MESSAGES);
    bencher.counter(ItemsCount::new(N_MESSAGES)).bench(|| open(&path).branch_tail(400));
}

/// The same for a large file, before it is read.
#[divan::bench]
fn peek_at_the_end(bencher: divan::Bencher<'_, '_>) {
    let folder = tempfile::tempdir().unwrap();
    let path = write_session(folder.path(), "long", N_MESSAGES);
    bencher.bench(|| SessionStore::peek_tail(&path));
}

#[divan::bench]
fn list_a_folder(bencher: divan::Bencher<'_, '_>) {
    let folder = tempfile::tempdir().unwrap();
    for at in 0..N_SESSIONS {
        write_session(folder.path(), &format!("s-{at}"), N_MESSAGES / N_SESSIONS);
    }
    bencher.counter(ItemsCount::new(N_SESSIONS)).bench(|| list(folder.path(), None));
}

/// Sizes of a root for lists and searches.
const ROOTS: [usize; 3] = [500, 1_000, 5_000];

/// A list without a cache: every session is read.
#[divan::bench(args = ROOTS, sample_count = 3)]
fn list_all_cold(bencher: divan::Bencher<'_, '_>, n_sessions: usize) {
    let root = root_of(n_sessions);
    bencher.counter(ItemsCount::new(n_sessions)).bench(|| {
        let mut index = SessionIndex::load(root.path());
        index.refresh(&SessionScope::All, &|| false, &mut |_| {})
    });
}

/// A list with a cache, from an empty memory to the last row.
#[divan::bench(args = ROOTS, sample_count = 20)]
fn list_all_warm(bencher: divan::Bencher<'_, '_>, n_sessions: usize) {
    let root = root_of(n_sessions);
    indexed(root.path());
    bencher.counter(ItemsCount::new(n_sessions)).bench(|| {
        let mut index = SessionIndex::load(root.path());
        index.refresh(&SessionScope::All, &|| false, &mut |_| {});
        index.sessions(&SessionScope::All)
    });
}

/// The first rows of a list with a cache in which ten sessions are outdated.
#[divan::bench(args = ROOTS, sample_count = 20)]
fn list_first_rows(bencher: divan::Bencher<'_, '_>, n_sessions: usize) {
    let root = root_of(n_sessions);
    indexed(root.path());
    for at in 0..10 {
        write_session(root.path(), &format!("s-{at}"), N_LISTED_MESSAGES + 4);
    }
    bencher.counter(ItemsCount::new(n_sessions)).bench(|| {
        let has_rows = std::cell::Cell::new(false);
        let mut index = SessionIndex::load(root.path());
        index.refresh(&SessionScope::All, &|| has_rows.get(), &mut |_| has_rows.set(true))
    });
}

/// A search for a word that no session contains: all texts are looked at.
#[divan::bench(args = ROOTS, sample_count = 10)]
fn search_for_nothing(bencher: divan::Bencher<'_, '_>, n_sessions: usize) {
    search(bencher, n_sessions, "nowhere");
}

/// A search for two words that every session contains.
#[divan::bench(args = ROOTS, sample_count = 10)]
fn search_for_everything(bencher: divan::Bencher<'_, '_>, n_sessions: usize) {
    search(bencher, n_sessions, "parser offset");
}

fn search(bencher: divan::Bencher<'_, '_>, n_sessions: usize, text: &str) {
    let root = root_of(n_sessions);
    let mut index = indexed(root.path());
    let query = SearchQuery::parse(text).unwrap().unwrap();
    bencher.counter(ItemsCount::new(n_sessions)).bench_local(|| {
        let mut n_hits = 0;
        index.search(&SessionScope::All, &query, &|| false, &mut |_| n_hits += 1);
        n_hits
    });
}

/// Messages of each session in a list: 21 KB of searchable text.
const N_LISTED_MESSAGES: usize = 96;

fn root_of(n_sessions: usize) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for at in 0..n_sessions {
        write_session(root.path(), &format!("s-{at}"), N_LISTED_MESSAGES);
    }
    root
}

fn indexed(root: &Path) -> SessionIndex {
    let mut index = SessionIndex::load(root);
    index.refresh(&SessionScope::All, &|| false, &mut |_| {});
    index.save().unwrap();
    index
}

fn open(path: &Path) -> SessionStore {
    SessionStore::open(path, || unreachable!("the file has a header")).unwrap()
}

/// A session of turns of four messages: prompt, call, result, answer.
fn write_session(folder: &Path, id: &str, n_messages: usize) -> PathBuf {
    let mut text = format!(
        "{{\"type\":\"session\",\"version\":3,\"id\":\"{id}\",\"timestamp\":\"2026-11-21T09:23:47.280Z\",\"cwd\":\"/tmp\"}}\n"
    );
    let words = "The parser keeps the offset of every line it has seen. ".repeat(8);
    let usage = r#"{"input":1371,"output":234,"cacheRead":0,"cacheWrite":0,"totalTokens":1605,"cost":{"input":0.004,"output":0.003,"cacheRead":0,"cacheWrite":0,"total":0.007}}"#;
    let answer = |content: &str| {
        format!(
            r#"{{"role":"assistant","content":[{content}],"api":"anthropic-messages","provider":"acme","model":"m-1","usage":{usage},"stopReason":"stop","timestamp":1795253027489}}"#
        )
    };
    for at in 0..n_messages {
        let message = match at % 4 {
            0 => format!(r#"{{"role":"user","content":[{{"type":"text","text":"{words}"}}],"timestamp":1}}"#),
            1 => answer(&format!(
                r#"{{"type":"toolCall","id":"c{at}","name":"read","arguments":{{"path":"src/{at}.rs"}}}}"#
            )),
            2 => format!(
                r#"{{"role":"toolResult","toolCallId":"c{}","toolName":"read","content":[{{"type":"text","text":"{}"}}],"isError":false,"timestamp":1}}"#,
                at - 1,
                words.repeat(4)
            ),
            _ => answer(&format!(r#"{{"type":"text","text":"{words}"}}"#)),
        };
        let parent = if at == 0 { "null".to_owned() } else { format!("\"{:08x}\"", at - 1) };
        writeln!(
            text,
            r#"{{"type":"message","id":"{at:08x}","parentId":{parent},"timestamp":"2026-11-21T09:23:47.445Z","message":{message}}}"#
        )
        .unwrap();
    }
    let path = folder.join(format!("{id}.jsonl"));
    fs::write(&path, text).unwrap();
    path
}
