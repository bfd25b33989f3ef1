//! How the cost of a session grows with its length: `cargo bench --bench growth`.
//!
//! Sessions like real ones of 1,000, 10,000 and 100,000 messages (1, 10 and 100 MB), in the
//! page cache.
#![expect(clippy::unwrap_used, reason = "a bench that cannot set itself up has nothing to measure")]

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use divan::counter::ItemsCount;
use pi::ai::{Message, Millis, UserMessage};
use pi::modes::{ExportFormat, ExportSource};
use pi::session::{
    EntryBody, SearchQuery, Secrets, SessionIndex, SessionScope, SessionStore, messages, preview_compaction,
    read_tree,
};
use tempfile::TempDir;

#[path = "../tests/it/support/long_session.rs"]
mod long_session;

use long_session::LongSession;

const SIZES: [usize; 3] = [1_000, 10_000, 100_000];

fn main() {
    divan::main();
}

struct Written {
    folder: TempDir,
    path: PathBuf,
}

fn write(n_messages: usize) -> Written {
    write_as(LongSession::new(n_messages, 1_000))
}

fn write_as(size: LongSession) -> Written {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    size.write(&path, "s", "/tmp").unwrap();
    Written { folder, path }
}

fn open_file(path: &Path) -> SessionStore {
    SessionStore::open(path, || unreachable!("the file has a header")).unwrap()
}

/// The one pass over a session that was never opened before.
#[divan::bench(args = SIZES, sample_count = 5)]
fn open_without_outline(bencher: divan::Bencher<'_, '_>, n: usize) {
    let written = write(n);
    bencher.counter(ItemsCount::new(n)).bench(|| open_file(&written.path));
}

/// Every later time, with what is shown.
#[divan::bench(args = SIZES, sample_count = 20)]
fn open(bencher: divan::Bencher<'_, '_>, n: usize) {
    let written = write(n);
    open_file(&written.path).write_outline();
    bencher.counter(ItemsCount::new(n)).bench(|| open_file(&written.path).branch_tail(400));
}

/// What is shown before a session is read.
#[divan::bench(args = SIZES, sample_count = 20)]
fn first_screen(bencher: divan::Bencher<'_, '_>, n: usize) {
    let written = write(n);
    bencher.bench(|| SessionStore::peek_tail(&written.path));
}

#[divan::bench(args = SIZES, sample_count = 100)]
fn append(bencher: divan::Bencher<'_, '_>, n: usize) {
    let written = write(n);
    let mut store = open_file(&written.path);
    bencher.bench_local(|| {
        let message = Message::User(UserMessage::new("Look at this file, please.", Vec::new(), Millis(1)));
        store.append(EntryBody::message(Arc::new(message)), 1).1.unwrap();
    });
}

/// The messages of the next request, from the file.
#[divan::bench(args = SIZES, sample_count = 20)]
fn project(bencher: divan::Bencher<'_, '_>, n: usize) {
    let written = write(n);
    let mut store = open_file(&written.path);
    bencher.bench_local(|| {
        store.release_bodies();
        messages(&store.context_branch())
    });
}

/// The same for a session without compactions.
#[divan::bench(args = [1_000, 10_000], sample_count = 10)]
fn project_everything(bencher: divan::Bencher<'_, '_>, n: usize) {
    let written = write_as(LongSession::plain(n, 1_000));
    let mut store = open_file(&written.path);
    bencher.counter(ItemsCount::new(n)).bench_local(|| {
        store.release_bodies();
        messages(&store.context_branch())
    });
}

#[divan::bench(args = SIZES, sample_count = 20)]
fn plan_compaction(bencher: divan::Bencher<'_, '_>, n: usize) {
    let written = write(n);
    let mut store = open_file(&written.path);
    bencher.bench_local(|| {
        store.release_bodies();
        preview_compaction(&mut store, 20_000)
    });
}

/// The entries as `/tree` shows them.
#[divan::bench(args = SIZES, sample_count = 20)]
fn tree(bencher: divan::Bencher<'_, '_>, n: usize) {
    let written = write(n);
    let store = open_file(&written.path);
    bencher.counter(ItemsCount::new(n)).bench_local(|| store.tree().path(store.tree().leaf()));
}

/// One session in a list that has no index.
#[divan::bench(args = SIZES, sample_count = 3)]
fn list_without_index(bencher: divan::Bencher<'_, '_>, n: usize) {
    let written = write(n);
    bencher
        .counter(ItemsCount::new(n))
        .bench(|| refreshed(written.folder.path()).sessions(&SessionScope::All));
}

#[divan::bench(args = SIZES, sample_count = 20)]
fn list(bencher: divan::Bencher<'_, '_>, n: usize) {
    let written = write(n);
    refreshed(written.folder.path()).save().unwrap();
    bencher.bench(|| refreshed(written.folder.path()).sessions(&SessionScope::All));
}

#[divan::bench(args = SIZES, sample_count = 10)]
fn search(bencher: divan::Bencher<'_, '_>, n: usize) {
    let written = write(n);
    let mut index = refreshed(written.folder.path());
    index.save().unwrap();
    let query = SearchQuery::parse("parser offset").unwrap().unwrap();
    bencher.counter(ItemsCount::new(n)).bench_local(|| {
        let mut n_hits = 0;
        index.search(&SessionScope::All, &query, &|| false, &mut |_| n_hits += 1);
        n_hits
    });
}

fn refreshed(root: &Path) -> SessionIndex {
    let mut index = SessionIndex::load(root);
    index.refresh(&SessionScope::All, &|| false, &mut |_| {});
    index
}

#[divan::bench(args = SIZES, sample_count = 3)]
fn export(bencher: divan::Bencher<'_, '_>, n: usize) {
    let written = write(n);
    bencher.counter(ItemsCount::new(n)).bench(|| {
        let read = read_tree(&written.path).unwrap().unwrap();
        let source = ExportSource { tree: read.tree, header: read.header, name: read.name };
        source.write(ExportFormat::Html, Secrets::Keep, 0, &mut io::sink()).unwrap()
    });
}

/// What 100,000 messages of 10 KB cost: the session of a gigabyte.
#[divan::bench(sample_count = 1)]
fn open_a_gigabyte_without_outline(bencher: divan::Bencher<'_, '_>) {
    let written = write_as(LongSession::new(100_000, 10_000));
    let n_bytes = fs::metadata(&written.path).unwrap().len();
    bencher.counter(divan::counter::BytesCount::new(n_bytes)).bench(|| open_file(&written.path));
}
