use std::cell::Cell;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::time::{Duration, UNIX_EPOCH};

use proptest::prelude::*;
use serde_json::json;
use tempfile::TempDir;

use super::*;

/// A root with sessions, written as the steps of a test say.
struct Bench {
    root: TempDir,
}

impl Bench {
    fn new() -> Self {
        Self { root: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        let folder = self.root.path().join("--work--");
        fs::create_dir_all(&folder).unwrap();
        folder.join(format!("{name}.jsonl"))
    }

    /// Writes a session of these lines after a header.
    fn session(&self, name: &str, lines: &[String]) -> PathBuf {
        let path = self.path(name);
        let header = json!({"type": "session", "version": 3, "id": name, "timestamp": "2026-11-21T09:23:47.280Z", "cwd": "/w"});
        fs::write(&path, format!("{header}\n{}", lines.concat())).unwrap();
        path
    }

    fn index(&self) -> SessionIndex {
        SessionIndex::load(self.root.path())
    }

    /// Loads the index, refreshes and saves it.
    fn refresh(&self) -> Refreshed {
        let mut index = self.index();
        let refreshed = index.refresh(&SessionScope::All, &|| false, &mut |_| {});
        index.save().unwrap();
        refreshed
    }

    /// How many files a refresh reads, from their beginning and from where they ended.
    fn reads(&self) -> (usize, usize) {
        let refreshed = self.refresh();
        (refreshed.n_read - refreshed.n_resumed, refreshed.n_resumed)
    }

    fn rows_file(&self) -> PathBuf {
        self.root.path().join(".index/rows")
    }

    fn packs(&self) -> Vec<PathBuf> {
        let files = fs::read_dir(self.root.path().join(".index")).unwrap();
        files.map(|file| file.unwrap().path()).filter(|path| !path.ends_with("rows")).collect()
    }
}

fn message(id: &str, role: &str, text: &str) -> String {
    message_at(1, id, role, text)
}

/// A message of a time in milliseconds.
fn message_at(time_ms: u64, id: &str, role: &str, text: &str) -> String {
    let content = json!([{"type": "text", "text": text}]);
    json!({"type": "message", "id": id, "parentId": null, "timestamp": "2026-11-21T09:23:47.445Z", "message": {"role": role, "content": content, "timestamp": time_ms}})
        .to_string()
        + "\n"
}

fn info(name: &str) -> String {
    json!({"type": "session_info", "id": "n", "parentId": null, "timestamp": "", "name": name}).to_string()
        + "\n"
}

fn append(path: &Path, text: &str) {
    OpenOptions::new().append(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
}

fn set_modified(path: &Path, s: u64) {
    let file = File::options().append(true).open(path).unwrap();
    file.set_modified(UNIX_EPOCH + Duration::from_secs(s)).unwrap();
}

/// What a search finds, one line per session: rank, id, entry, snippet with marked matches.
fn found(index: &mut SessionIndex, text: &str) -> Vec<String> {
    let query = SearchQuery::parse(text).unwrap().unwrap();
    let mut lines = Vec::new();
    index.search(&SessionScope::All, &query, &|| false, &mut |hit| {
        let message = hit.message.map(|message| {
            let mut line = message.snippet.text.clone();
            for mark in message.snippet.marks.iter().rev() {
                line.insert(mark.end, ']');
                line.insert(mark.start, '[');
            }
            format!(" {} {} {line}", message.author.name(), message.entry_id)
        });
        lines.push(format!("{:?} {}{}", hit.rank, hit.session.id, message.unwrap_or_default()));
    });
    lines
}

fn refreshed(bench: &Bench) -> SessionIndex {
    let mut index = bench.index();
    index.refresh(&SessionScope::All, &|| false, &mut |_| {});
    index
}

#[test]
fn sessions_that_have_not_changed_are_known_before_any_folder_is_read() {
    let bench = Bench::new();
    let paths: Vec<PathBuf> = (0..5)
        .map(|n| {
            // The times of the files are the other way round.
            let path = bench.session(&format!("s{n}"), &[message_at(1_000 + n, "m", "user", "said")]);
            set_modified(&path, 1_000_000 - n);
            path
        })
        .collect();
    bench.refresh();
    fs::remove_file(&paths[4]).unwrap();
    append(&paths[3], &message("n", "user", "more"));
    // Of no folder that is in the cache.
    bench.session("new", &[message("m", "user", "said")]);
    let index = bench.index();
    let known = |scope: &SessionScope, max: usize| -> Vec<PathBuf> {
        index.latest_unchanged(scope, max).into_iter().map(|session| session.path).collect()
    };
    assert_eq!(known(&SessionScope::All, 9), [&paths[2], &paths[1], &paths[0]].map(Clone::clone));
    assert_eq!(known(&SessionScope::All, 2), [&paths[2], &paths[1]].map(Clone::clone));
    let folder = bench.root.path().join("--other--");
    assert!(known(&SessionScope::Folder { folder, cwd: None }, 9).is_empty());
}

#[test]
fn unchanged_sessions_are_not_read_again() {
    let bench = Bench::new();
    for at in 0..5 {
        bench.session(&format!("s-{at}"), &[message("a", "user", "hello")]);
    }
    fs::write(bench.path("foreign"), "{\"type\":\"notes\"}\n").unwrap();
    assert_eq!(bench.reads(), (6, 0));
    assert_eq!(bench.reads(), (0, 0));
    // The proof: content that changed without a trace is not seen.
    let path = bench.path("s-3");
    let modified = fs::metadata(&path).unwrap().modified().unwrap();
    let text = fs::read_to_string(&path).unwrap().replace("hello", "HELLO");
    let mut file = OpenOptions::new().write(true).open(&path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file.set_modified(modified).unwrap();
    let sessions = refreshed(&bench).sessions(&SessionScope::All);
    assert!(sessions.iter().all(|session| session.first_message.as_deref() == Some("hello")));
    assert_eq!(sessions.len(), 5);
}

#[test]
fn session_that_grew_is_read_from_where_it_ended() {
    let bench = Bench::new();
    let long = "word ".repeat(10_000);
    let path = bench.session("s", &[message("a", "user", &long)]);
    assert_eq!(bench.reads(), (1, 0));
    append(&path, &message("b", "assistant", "an answer"));
    append(&path, &info("Named"));
    let refreshed = bench.refresh();
    assert_eq!((refreshed.n_read, refreshed.n_resumed), (1, 1));
    assert!(refreshed.n_bytes < 1_000, "{refreshed:?}");
    let mut index = self::refreshed(&bench);
    let session = &index.sessions(&SessionScope::All)[0];
    assert_eq!((session.n_messages, session.name.as_deref()), (2, Some("Named")));
    let hits = found(&mut index, "answer word");
    assert!(hits.len() == 1 && hits[0].starts_with("Session s user a [word] [word]"), "{hits:?}");
}

#[test]
fn replaced_rewritten_or_torn_session_is_read_from_its_beginning() {
    let bench = Bench::new();
    let path = bench.session("s", &[message("a", "user", "one"), message("b", "user", "two")]);
    assert_eq!(bench.reads(), (1, 0));
    // Other bytes before the end.
    let text = fs::read_to_string(&path).unwrap().replace("two", "new");
    fs::write(&path, text + &message("c", "user", "three")).unwrap();
    assert_eq!(bench.reads(), (1, 0));
    // Truncated.
    bench.session("s", &[message("a", "user", "one")]);
    assert_eq!(bench.reads(), (1, 0));
    // Another file at the path, with the same beginning.
    let text = fs::read_to_string(&path).unwrap() + &message("b", "user", "two");
    let beside = path.with_extension("new");
    fs::write(&beside, text).unwrap();
    fs::rename(&beside, &path).unwrap();
    assert_eq!(bench.reads(), (1, 0));
    // A last line that is completed later.
    let line = message("c", "user", "torn");
    append(&path, &line[..20]);
    assert_eq!(bench.reads(), (0, 1));
    append(&path, &line[20..]);
    assert_eq!(bench.reads(), (1, 0));
    assert_eq!(found(&mut refreshed(&bench), "torn"), ["Message s user c [torn]"]);
}

#[test]
fn session_is_as_recent_as_its_newest_prompt_or_answer() {
    let bench = Bench::new();
    let check = |name: &str, lines: &[String], expected_ms: u64| {
        bench.session(name, lines);
        let sessions = refreshed(&bench).sessions(&SessionScope::All);
        let session = sessions.iter().find(|session| session.id == name).unwrap();
        assert_eq!(session.modified_ms, expected_ms, "{name}");
    };
    let began_ms = crate::util::clock::parse_iso8601("2026-11-21T09:23:47.280Z").unwrap();
    check("answered", &[message_at(7, "a", "user", "x"), message_at(9, "b", "assistant", "y")], 9);
    check("renamed", &[message_at(7, "a", "user", "x"), info("Name")], 7);
    check("result", &[message_at(7, "a", "user", "x"), message_at(9, "b", "toolResult", "y")], 7);
    check("out of order", &[message_at(9, "a", "user", "x"), message_at(7, "b", "assistant", "y")], 9);
    check("empty", &[info("Name")], began_ms);
    let line = message_at(7, "a", "user", "x");
    let without = |time: &str| line.replace("\"timestamp\":7", time);
    check("untimed", &[without("\"of\":7")], began_ms + 165);
    check("of text", &[without("\"timestamp\":\"7\"")], began_ms + 165);
    check("giant", &[without("\"timestamp\":1e300")], began_ms + 165);
    // No header tells the time either.
    let path = bench.path("bare");
    fs::write(&path, r#"{"type":"session","version":3,"id":"bare","timestamp":"","cwd":"/w"}"#).unwrap();
    set_modified(&path, 4_000_000_000);
    let sessions = refreshed(&bench).sessions(&SessionScope::All);
    assert_eq!((sessions[0].id.as_str(), sessions[0].modified_ms), ("bare", 4_000_000_000_000));
}

#[test]
fn renaming_a_session_leaves_it_in_its_place() {
    let bench = Bench::new();
    let old = bench.session("old", &[message_at(7, "a", "user", "x")]);
    bench.session("new", &[message_at(9, "a", "user", "x")]);
    bench.refresh();
    store::rename_session(&old, "Named", 4_000_000_000_000).unwrap();
    // Another program may have named it, long ago or in the future.
    for time_s in [1, 4_000_000_000] {
        set_modified(&old, time_s);
        let sessions = refreshed(&bench).sessions(&SessionScope::All);
        let ids = sessions.iter().map(|session| session.id.as_str()).collect::<Vec<_>>();
        assert_eq!(ids, ["new", "old"]);
        assert_eq!((sessions[1].name.as_deref(), sessions[1].modified_ms), (Some("Named"), 7));
    }
}

/// Replaces the first `old` in a file by `new`, which is as long.
fn replace(file: &Path, old: &str, new: &str) {
    let mut bytes = fs::read(file).unwrap();
    let at = bytes.windows(old.len()).position(|part| part == old.as_bytes()).unwrap();
    bytes[at..at + new.len()].copy_from_slice(new.as_bytes());
    fs::write(file, bytes).unwrap();
}

#[test]
fn index_that_is_damaged_or_of_another_version_is_rebuilt() {
    let bench = Bench::new();
    bench.session("s", &[message("a", "user", "hello"), info("Name")]);
    let check = |what: &str, damage: &dyn Fn(&Path)| {
        bench.refresh();
        assert_eq!(bench.reads(), (0, 0), "{what}: whole before");
        damage(&bench.rows_file());
        let mut index = bench.index();
        let refreshed = index.refresh(&SessionScope::All, &|| false, &mut |_| {});
        assert_eq!(refreshed.n_read, 1, "{what}");
        assert_eq!(index.sessions(&SessionScope::All)[0].name.as_deref(), Some("Name"), "{what}");
        assert_eq!(found(&mut index, "hello"), ["Message s user a [hello]"], "{what}");
    };
    check("deleted", &|file| fs::remove_file(file).unwrap());
    check("deleted with its folder", &|file| fs::remove_dir_all(file.parent().unwrap()).unwrap());
    check("empty", &|file| fs::write(file, "").unwrap());
    check("foreign", &|file| fs::write(file, "{\"type\":\"notes\"}\n[1]\n").unwrap());
    check("newer", &|file| {
        replace(file, "\"version\":4", "\"version\":5");
    });
    check("truncated", &|file| {
        let bytes = fs::read(file).unwrap();
        fs::write(file, &bytes[..bytes.len() - 5]).unwrap();
    });
    check("a changed byte", &|file| {
        replace(file, "Name", "Fame");
    });
    check("without its texts", &|_| bench.packs().iter().for_each(|pack| fs::remove_file(pack).unwrap()));
}

#[test]
fn damaged_text_is_read_from_the_session_and_mended() {
    let bench = Bench::new();
    bench.session("s", &[message("a", "user", "hello there")]);
    bench.refresh();
    for pack in bench.packs() {
        let bytes = fs::read(&pack).unwrap();
        fs::write(&pack, bytes.iter().map(|byte| byte ^ 1).collect::<Vec<u8>>()).unwrap();
    }
    let mut index = refreshed(&bench);
    assert_eq!(found(&mut index, "there"), ["Message s user a hello [there]"]);
    index.save().unwrap();
    assert_eq!(bench.reads(), (1, 0));
    assert_eq!(bench.reads(), (0, 0));
}

#[test]
fn links_in_place_of_the_index_are_not_followed() {
    let bench = Bench::new();
    bench.session("s", &[message("a", "user", "hello")]);
    let elsewhere = tempfile::tempdir().unwrap();
    let target = elsewhere.path().join("precious");
    fs::write(&target, "mine").unwrap();
    fs::create_dir(bench.root.path().join(".index")).unwrap();
    std::os::unix::fs::symlink(&target, bench.rows_file()).unwrap();
    refreshed(&bench).save().unwrap();
    assert_eq!(fs::read_to_string(&target).unwrap(), "mine");
    assert!(fs::symlink_metadata(bench.rows_file()).unwrap().is_file());

    fs::remove_dir_all(bench.root.path().join(".index")).unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), bench.root.path().join(".index")).unwrap();
    assert!(refreshed(&bench).save().is_err());
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 1);
}

#[test]
fn index_that_cannot_be_written_changes_nothing_else() {
    let bench = Bench::new();
    bench.session("s", &[message("a", "user", "hello")]);
    // A file where the folder should be.
    fs::write(bench.root.path().join(".index"), "mine").unwrap();
    let mut index = refreshed(&bench);
    assert_eq!(index.sessions(&SessionScope::All).len(), 1);
    assert_eq!(found(&mut index, "hello"), ["Message s user a [hello]"]);
    assert_eq!(index.refresh(&SessionScope::All, &|| false, &mut |_| {}).n_read, 0);
    assert!(index.save().is_err());
    assert_eq!(fs::read_to_string(bench.root.path().join(".index")).unwrap(), "mine");
}

#[test]
fn two_processes_keep_each_others_rows() {
    let bench = Bench::new();
    bench.session("a", &[message("a", "user", "one")]);
    let (mut first, mut second) = (bench.index(), bench.index());
    first.refresh(&SessionScope::All, &|| false, &mut |_| {});
    bench.session("b", &[message("b", "user", "two")]);
    fs::remove_file(bench.path("a")).unwrap();
    second.refresh(&SessionScope::All, &|| false, &mut |_| {});
    second.save().unwrap();
    first.save().unwrap();
    assert_eq!(bench.reads(), (0, 0));
    assert_eq!(found(&mut refreshed(&bench), "two"), ["Message b user b [two]"]);
}

#[test]
fn index_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;

    let bench = Bench::new();
    bench.session("s", &[message("a", "user", "hello")]);
    bench.refresh();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&bench.root.path().join(".index")), 0o700);
    assert_eq!(mode(&bench.rows_file()), 0o600);
    assert_eq!(bench.packs().iter().map(|pack| mode(pack)).collect::<Vec<_>>(), [0o600]);
}

#[test]
fn newest_sessions_come_first_and_known_ones_before_all_others() {
    let bench = Bench::new();
    let names = |batch: Vec<SessionSummary>| batch.into_iter().map(|session| session.id).collect::<Vec<_>>();
    for at in 0..100_u64 {
        let path = bench.session(&format!("s-{at:03}"), &[message("a", "user", "x")]);
        set_modified(&path, 4_000_000_000 + at);
    }
    bench.refresh();
    for at in [7, 50] {
        append(&bench.path(&format!("s-{at:03}")), "\n");
    }
    let mut batches = Vec::new();
    bench.index().refresh(&SessionScope::All, &|| false, &mut |batch| batches.push(names(batch)));
    assert_eq!(batches.iter().map(Vec::len).collect::<Vec<_>>(), [98, 2]);
    assert_eq!(batches[0][..2], ["s-099", "s-098"]);
}

#[test]
fn cancelled_refresh_keeps_what_it_has_and_is_continued() {
    let bench = Bench::new();
    for at in 0..10 {
        bench.session(&format!("s-{at}"), &[message("a", "user", "x")]);
    }
    let mut index = bench.index();
    let n_asked = Cell::new(0);
    let cancelled = || n_asked.replace(n_asked.get() + 1) > 8;
    let refreshed = index.refresh(&SessionScope::All, &cancelled, &mut |_| {});
    assert!(refreshed.is_partial && (1..10).contains(&refreshed.n_read), "{refreshed:?}");
    index.save().unwrap();
    assert_eq!(bench.reads(), (10 - refreshed.n_read, 0));
}

#[test]
fn words_are_found_in_any_case_and_form() {
    let bench = Bench::new();
    bench.session(
        "s-1",
        &[
            message_at(2, "a", "user", "Fix the  Größe of the WIDGET\nin src/main.rs"),
            message("b", "assistant", "Done: cafe\u{301} and Привет"),
            message("c", "toolResult", "secret output"),
        ],
    );
    bench.session("s-2", &[message("d", "user", "another widget"), info("Widget work")]);
    let mut index = refreshed(&bench);
    let mut check =
        |query: &str, expected: &[&str]| assert_eq!(found(&mut index, query), expected, "{query}");
    check("grösse", &[]);
    check("GRÖßE", &["Message s-1 user a Fix the [Größe] of the WIDGET in src/main.rs"]);
    check("ПРИВЕТ café", &["Message s-1 assistant b Done: [café] and [Привет]"]);
    check(
        "widget",
        &[
            "Message s-1 user a Fix the Größe of the [WIDGET] in src/main.rs",
            "Name s-2 user d another [widget]",
        ],
    );
    check("widget work", &["Name s-2 user d another [widget]"]);
    check("widget done", &["Session s-1 user a Fix the Größe of the [WIDGET] in src/main.rs"]);
    check("\"widget in\"", &["Message s-1 user a Fix the Größe of the [WIDGET in] src/main.rs"]);
    check("main.rs", &["Message s-1 user a …Größe of the WIDGET in src/[main.rs]"]);
    check("mainxrs", &[]);
    check("re:^fix.*the\\b", &["Message s-1 user a [Fix the Größe of the] WIDGET in src/main.rs"]);
    check("secret", &[]);
    check("s-2", &["Header s-2"]);
    check("another s-2", &["Header s-2 user d [another] widget"]);
    check("another work", &["Session s-2 user d [another] widget"]);
    assert!(SearchQuery::parse("  ").unwrap().is_none());
    let error = SearchQuery::parse("re:(a").unwrap_err();
    assert_eq!(error.to_string(), "invalid regular expression: unclosed group");
    let error = SearchQuery::parse(&"é".repeat(20_000)).unwrap_err();
    let expected = "a word or phrase of 20000 characters is too long to search for; use at most 1000";
    assert_eq!(error.to_string(), expected);
    assert!(SearchQuery::parse(&"(é".repeat(500)).is_ok());
}

#[test]
fn long_texts_are_found_across_their_pieces_and_shown_near_the_match() {
    let bench = Bench::new();
    let text = format!("{}needle {}", "ä".repeat(131_068), "tail ".repeat(200_000));
    bench.session("s", &[message("a", "user", &text)]);
    bench.refresh();
    let lines = found(&mut refreshed(&bench), "needle");
    assert!(lines[0].starts_with("Message s user a …ääää") && lines[0].contains("[needle]"), "{lines:?}");
    assert!(lines[0].chars().count() < 400, "{lines:?}");
}

#[test]
fn many_updates_leave_few_packs_and_lose_no_text() {
    let bench = Bench::new();
    let path = bench.session("s", &[message("a", "user", "first")]);
    for at in 0..40 {
        append(&path, &message("b", "user", &format!("number{at}x")));
        bench.refresh();
        for pack in bench.packs() {
            set_modified(&pack, 1);
        }
    }
    bench.session("t", &[]);
    bench.refresh();
    assert!(bench.packs().len() <= 14, "{}", bench.packs().len());
    assert_eq!(bench.reads(), (0, 0));
    for at in [0, 13, 39] {
        assert_eq!(found(&mut refreshed(&bench), &format!("number{at}x")).len(), 1);
    }
}

/// A change of a file, and of which one.
#[derive(Debug, Clone)]
enum Step {
    Append(String),
    AppendTorn(String),
    Rewrite(String),
    Remove,
    Refresh,
    DeleteIndex,
}

fn any_line() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => ("[a-e]{1,2}", "[a-dé ]{0,12}").prop_map(|(id, text)| message(&id, "user", &text)),
        2 => "[a-d ]{0,12}".prop_map(|text| message("x", "assistant", &text)),
        1 => "[a-d]{0,3}".prop_map(|name| info(&name)),
        1 => Just("{\"type\":\"message\",\"id\":\"d\"\n".to_owned()),
        1 => Just("\n".to_owned()),
    ]
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => any_line().prop_map(Step::Append),
        2 => any_line().prop_map(Step::AppendTorn),
        1 => any_line().prop_map(Step::Rewrite),
        1 => Just(Step::Remove),
        4 => Just(Step::Refresh),
        1 => Just(Step::DeleteIndex),
    ]
}

/// The list, and what some searches find.
fn contents(index: &mut SessionIndex) -> (Vec<SessionSummary>, Vec<Vec<String>>) {
    (index.sessions(&SessionScope::All), ["a", "b c", "é", "dd"].map(|query| found(index, query)).to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn reading_in_steps_equals_reading_at_once(steps in prop::collection::vec((0_usize..3, any_step()), 1..24)) {
        let bench = Bench::new();
        for (at, (file, step)) in steps.iter().enumerate() {
            let name = format!("s-{file}");
            let path = bench.path(&name);
            let ensure = || if !path.exists() { bench.session(&name, &[]); };
            match step {
                Step::Append(line) => { ensure(); append(&path, line); }
                Step::AppendTorn(line) => { ensure(); append(&path, &line[..line.len() / 2]); }
                Step::Rewrite(line) => { bench.session(&name, std::slice::from_ref(line)); }
                Step::Remove => drop(fs::remove_file(&path)),
                Step::Refresh => { bench.refresh(); }
                Step::DeleteIndex => drop(fs::remove_dir_all(bench.root.path().join(".index"))),
            }
            if path.exists() {
                // A clock finer than the disk's, so that every change is a new version.
                set_modified(&path, 4_000_000_000 + at as u64);
            }
        }
        refreshed(&bench).save().unwrap();
        let kept = contents(&mut refreshed(&bench));
        drop(fs::remove_dir_all(bench.root.path().join(".index")));
        prop_assert_eq!(&kept, &contents(&mut refreshed(&bench)));
        // Texts are in no cache now.
        let mut index = refreshed(&bench);
        drop(fs::remove_dir_all(bench.root.path().join(".index")));
        prop_assert_eq!(&kept, &contents(&mut index));
    }
}
