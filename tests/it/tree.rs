//! Branches of a session: moving between them, labels, and sessions made of them.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::fs;
use std::path::{Path, PathBuf};

use pi::ai::{FakeAnswer, TestBarrier};
use pi::session::{
    EntryBody, EntryId, EntryKind, IfBusy, LeftBranch, PromptDraft, Reply, Secrets, SessionCommand,
    SessionError, SessionEvent, SessionTree, WhenBusy, fork_session,
};
use serde_json::{Value, json};

use crate::recovery::picture;
use crate::support::session_bench::{START_MS, Session, SessionBench, entries, prompt, sent};

fn texts<const N: usize>(texts: [&str; N]) -> Vec<FakeAnswer> {
    texts.map(FakeAnswer::of_text).to_vec()
}

async fn tree(session: &Session) -> SessionTree {
    match session.request(SessionCommand::ReadTree).await {
        Ok(Reply::Tree(tree)) => tree,
        other => panic!("{other:?}"),
    }
}

/// The first entry whose line says `text`.
async fn find(session: &Session, text: &str) -> EntryId {
    let tree = tree(session).await;
    let said = |idx: &usize| tree.read(*idx).is_some_and(|entry| entry.body.preview(100) == text);
    let idx = (0..tree.len()).find(said).unwrap_or_else(|| panic!("no entry says {text}"));
    tree.entry(idx).id.clone()
}

fn navigate(target: EntryId, summary: LeftBranch) -> SessionCommand {
    SessionCommand::Navigate { target, summary, if_busy: IfBusy::Refuse }
}

fn summarized() -> LeftBranch {
    LeftBranch::Summarize { focus: None }
}

fn refusal(result: Result<Reply, SessionError>) -> String {
    match result {
        Err(SessionError::Refused(refusal)) => refusal.to_string(),
        other => panic!("{other:?}"),
    }
}

async fn go(session: &mut Session, text: &str) -> Vec<String> {
    let target = find(session, text).await;
    assert_eq!(session.request(navigate(target, LeftBranch::Leave)).await, Ok(Reply::Done));
    session.waiting()
}

// Moving.

#[tokio::test]
async fn choosing_a_message_takes_it_back_and_branches_before_it() {
    let bench = SessionBench::new(texts(["1", "2", "3"]));
    let mut session = bench.start().await;
    session.ask("one").await;
    session.ask("two").await;
    let n_lines = entries(&session.path()).len();
    let lines = go(&mut session, "two").await;
    assert_eq!(lines, ["navigated to 5 entries, back Some(\"two\")"]);
    assert_eq!(entries(&session.path()).len(), n_lines, "moving writes nothing");

    session.ask("other").await;
    assert_eq!(sent(&bench.provider.requests()[2]), ["user one", "assistant 1", "user other"]);
    let stored = entries(&session.path());
    let (other, first_answer) = (&stored[n_lines], &stored[4]);
    assert_eq!(other.parent_id.as_ref(), Some(&first_answer.id));
}

#[tokio::test]
async fn choosing_an_answer_continues_after_it() {
    let bench = SessionBench::new(texts(["1", "2", "3"]));
    let mut session = bench.start().await;
    session.ask("one").await;
    session.ask("two").await;
    let lines = go(&mut session, "1").await;
    assert_eq!(lines, ["navigated to 5 entries, back None"]);
    session.ask("three").await;
    assert_eq!(sent(&bench.provider.requests()[2]), ["user one", "assistant 1", "user three"]);
    // And back to the branch that was left.
    go(&mut session, "2").await;
    assert_eq!(session.handle.state().context.counted(), None, "no answer here has counted");
}

#[tokio::test]
async fn a_message_is_taken_back_with_its_images() {
    let bench = SessionBench::new(texts(["1", "2"]));
    let mut session = bench.start().await;
    session.ask("one").await;
    let image = picture(2, 2);
    let prompt = PromptDraft { images: vec![image], ..PromptDraft::from("look") };
    let command = SessionCommand::Prompt { prompt, when_busy: WhenBusy::Refuse };
    session.request(command).await.unwrap();
    session.settled().await;
    let target = find(&session, "look").await;
    session.request(navigate(target, LeftBranch::Leave)).await.unwrap();
    let is_navigated = |event: &SessionEvent| matches!(event, SessionEvent::Navigated(_));
    let SessionEvent::Navigated(navigated) = session.until(is_navigated).await else { unreachable!() };
    let back = navigated.prompt.clone().unwrap();
    assert_eq!((back.text.as_str(), back.images.len()), ("look", 1));
}

#[tokio::test]
async fn moves_that_lead_nowhere_are_refused() {
    let bench = SessionBench::new(texts(["1"]));
    let mut session = bench.start().await;
    session.ask("one").await;
    let nowhere = navigate(EntryId::new("none"), LeftBranch::Leave);
    assert_eq!(refusal(session.request(nowhere).await), "this session has no entry none");
    let leaf = find(&session, "1").await;
    let here = navigate(leaf, LeftBranch::Leave);
    assert_eq!(refusal(session.request(here).await), "the session is already at this point");
    assert_eq!(session.waiting(), [""; 0]);
}

#[tokio::test]
async fn a_move_during_a_run_is_refused_or_cancels_it() {
    let gate = TestBarrier::new();
    let half = FakeAnswer::new().text_pieces(&["half", " whole"], Some(&gate));
    let bench = SessionBench::new([texts(["1"]), vec![half], texts(["3"])].concat());
    let mut session = bench.start().await;
    session.ask("one").await;
    session.prompt("two").await;
    let is_half =
        |event: &SessionEvent| matches!(event, SessionEvent::Agent(pi::agent::AgentEvent::MessageUpdate(_)));
    session.until(is_half).await;
    let prompt = PromptDraft::from("later");
    session.request(SessionCommand::Prompt { prompt, when_busy: WhenBusy::FollowUp }).await.unwrap();
    let target = find(&session, "1").await;
    let refused = refusal(session.request(navigate(target.clone(), LeftBranch::Leave)).await);
    assert!(refused.contains("still working"), "{refused}");

    let command = SessionCommand::Navigate { target, summary: LeftBranch::Leave, if_busy: IfBusy::Cancel };
    assert_eq!(session.request(command).await, Ok(Reply::Done));
    let lines = session.waiting();
    assert_eq!(lines.last().unwrap(), "navigated to 5 entries, back None");
    assert!(lines.contains(&"settled aborted".to_owned()), "{lines:?}");
    assert!(lines.iter().any(|line| line.contains("later")), "{lines:?}");
    // What there was of the answer is kept on its branch.
    assert!(session.on_disk().iter().any(|line| line.starts_with("answer half")), "{:?}", session.on_disk());
    session.ask("three").await;
    assert_eq!(sent(&bench.provider.requests()[2]), ["user one", "assistant 1", "user three"]);
}

// Summaries.

#[tokio::test]
async fn summary_of_the_branch_that_is_left_goes_along() {
    let bench = SessionBench::new(texts(["1", "2", "THE SUMMARY", "4"]));
    let mut session = bench.start().await;
    session.ask("one").await;
    session.ask("two").await;
    let (target, leaf) = (find(&session, "1").await, find(&session, "2").await);
    let focus = Some("the second question".to_owned());
    let command = navigate(target.clone(), LeftBranch::Summarize { focus });
    assert_eq!(session.request(command).await, Ok(Reply::Started));
    let lines = session.settled().await;
    let expected = [
        "branch summary start",
        "branch summary end false None",
        "navigated to 6 entries, back None",
        "settled",
    ];
    assert_eq!(lines, expected);

    let asked = sent(&bench.provider.requests()[2]).concat();
    for part in ["[User]: two", "[Assistant]: 2", "## Key Decisions", "Additional focus: the second question"]
    {
        assert!(asked.contains(part), "{part} is not in {asked}");
    }
    assert!(!asked.contains("[User]: one"), "what both branches have is not summarised: {asked}");
    let line = fs::read_to_string(session.path()).unwrap().lines().last().unwrap().to_owned();
    let stored: Value = serde_json::from_str(&line).unwrap();
    let keys: Vec<&str> = stored.as_object().unwrap().keys().map(String::as_str).collect();
    let order = ["type", "id", "parentId", "timestamp", "fromId", "summary", "details", "usage", "fromHook"];
    assert_eq!(keys, order, "as the original writes it");
    assert_eq!((&stored["parentId"], &stored["fromId"]), (&json!(target), &json!(leaf)));
    assert!(stored["summary"].as_str().unwrap().ends_with(":\n\nTHE SUMMARY"), "{line}");

    session.ask("three").await;
    let request = sent(&bench.provider.requests()[3]);
    assert_eq!(request[..2], ["user one", "assistant 1"]);
    assert!(request[2].contains("<summary>") && request[2].contains("THE SUMMARY"), "{request:?}");
}

#[tokio::test]
async fn a_summary_that_fails_or_is_cancelled_leaves_the_session_where_it_was() {
    let gate = TestBarrier::new();
    let half = FakeAnswer::new().text_pieces(&["half", " whole"], Some(&gate));
    let bench =
        SessionBench::new([texts(["1", "2"]), vec![FakeAnswer::of_text(""), half], texts(["5"])].concat());
    let mut session = bench.start().await;
    session.ask("one").await;
    session.ask("two").await;
    let before = fs::read(session.path()).unwrap();
    let target = find(&session, "1").await;
    session.request(navigate(target.clone(), summarized())).await.unwrap();
    let lines = session.settled().await;
    assert!(lines[1].starts_with("branch summary end false Some("), "{lines:?}");
    assert!(lines[2].ends_with("the session is where it was"), "{lines:?}");

    session.request(navigate(target, summarized())).await.unwrap();
    session.request(SessionCommand::Abort).await.unwrap();
    let lines = session.settled().await;
    assert_eq!(lines[1..], ["branch summary end true Some(\"cancelled\")", "settled aborted"]);
    assert_eq!(fs::read(session.path()).unwrap(), before);
    // It may have been cancelled before it was asked for.
    gate.open();
    session.ask("three").await;
    let request = sent(bench.provider.requests().last().unwrap());
    assert_eq!(request, ["user one", "assistant 1", "user two", "assistant 2", "user three"]);
}

#[tokio::test]
async fn prompt_during_a_summary_waits_for_the_other_branch() {
    let gate = TestBarrier::new();
    let summary = FakeAnswer::new().text_pieces(&["THE ", "SUMMARY"], Some(&gate));
    let bench = SessionBench::new([texts(["1", "2"]), vec![summary], texts(["4"])].concat());
    let mut session = bench.start().await;
    session.ask("one").await;
    session.ask("two").await;
    let target = find(&session, "1").await;
    session.request(navigate(target, summarized())).await.unwrap();
    assert_eq!(session.request(prompt("three", WhenBusy::FollowUp)).await, Ok(Reply::Queued));
    gate.open();
    session.settled().await;
    let request = sent(&bench.provider.requests()[3]);
    assert_eq!((request.len(), request[3].as_str()), (4, "user three"), "{request:?}");
    assert!(request[2].contains("THE SUMMARY"), "{request:?}");
}

#[tokio::test]
async fn without_anything_to_summarise_no_model_is_asked() {
    let bench = SessionBench::new(texts(["1", "2"]));
    let mut session = bench.start().await;
    session.ask("one").await;
    session.ask("two").await;
    go(&mut session, "1").await;
    // Ahead of here is nothing that is left.
    let target = find(&session, "2").await;
    assert_eq!(session.request(navigate(target, summarized())).await, Ok(Reply::Done));
    assert_eq!(bench.provider.requests().len(), 2);
}

// Labels.

#[tokio::test]
async fn labels_are_set_replaced_and_removed() {
    let bench = SessionBench::new(texts(["1"]));
    let mut session = bench.start().await;
    session.ask("one").await;
    let target = find(&session, "one").await;
    let label = |text: Option<&str>| SessionCommand::SetLabel {
        target: target.clone(),
        label: text.map(str::to_owned),
    };
    for (text, expected) in [
        (Some("start"), Some("start")),
        (Some(" two\nlines "), Some("two lines")),
        (Some("  "), None),
        (Some("again"), Some("again")),
        (None, None),
    ] {
        session.request(label(text)).await.unwrap();
        let labels = tree(&session).await.labels();
        let shown: Vec<&str> = labels.values().map(|label| label.text.as_str()).collect();
        assert_eq!(shown, expected.into_iter().collect::<Vec<_>>(), "{text:?}");
    }
    let last = fs::read_to_string(session.path()).unwrap().lines().last().unwrap().to_owned();
    assert!(last.ends_with(&format!(r#""targetId":"{target}"}}"#)), "{last}");
    let nowhere = SessionCommand::SetLabel { target: EntryId::new("none"), label: None };
    assert_eq!(refusal(session.request(nowhere).await), "this session has no entry none");
}

// Copies.

fn lines_of(path: &Path) -> Vec<String> {
    fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect()
}

fn fixture(name: &str) -> Vec<String> {
    lines_of(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/sessions").join(name))
}

/// The session with branches, a label and a summary that the original wrote.
fn tree_of_the_original(bench: &SessionBench) -> PathBuf {
    let mut lines = fixture("tree.jsonl");
    let mut header: Value = serde_json::from_str(&lines[0]).unwrap();
    header["cwd"] = json!(bench.path("work"));
    lines[0] = header.to_string();
    let path = bench.path("sessions").join("tree.jsonl");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, lines.join("\n") + "\n").unwrap();
    path
}

/// Lines below the header, of labels without their ids, which are new in every copy.
fn body(lines: &[String]) -> Vec<String> {
    let is_label = |line: &&String| line.starts_with(r#"{"type":"label""#);
    lines[1..]
        .iter()
        .map(|line| if is_label(&line) { [&line[..20], &line[36..]].concat() } else { line.clone() })
        .collect()
}

#[tokio::test]
async fn copies_of_a_session_of_the_original_are_those_the_original_makes() {
    let bench = SessionBench::new([]);
    let path = tree_of_the_original(&bench);
    let before = fs::read(&path).unwrap();

    let session = bench.resume(&path).await;
    let export = bench.path("export.jsonl");
    session.request(SessionCommand::Export { path: export.clone(), secrets: Secrets::Keep }).await.unwrap();
    let (ours, theirs) = (lines_of(&export), fixture("tree-export.jsonl"));
    assert_eq!(ours[1..], theirs[1..]);
    let keys = |line: &str| -> Vec<String> {
        serde_json::from_str::<Value>(line).unwrap().as_object().unwrap().keys().cloned().collect()
    };
    assert_eq!(keys(&ours[0]), keys(&theirs[0]));
    assert!(ours[0].contains("01a20169-6a6e-7233-bf8b-759f62e0fb8b"), "an export keeps the id");

    assert_eq!(session.request(SessionCommand::Clone { if_busy: IfBusy::Cancel }).await, Ok(Reply::Done));
    let (ours, theirs) = (lines_of(&session.path()), fixture("tree-clone.jsonl"));
    assert_eq!(body(&ours), body(&theirs));
    assert_eq!(keys(&ours[0]), keys(&theirs[0]));
    let header: Value = serde_json::from_str(&ours[0]).unwrap();
    assert_eq!(header["parentSession"], json!(path));
    assert_eq!(session.path().parent(), path.parent());

    let session = bench.resume(&path).await;
    let fork = session
        .request(SessionCommand::Fork { target: EntryId::new("26d3759f"), if_busy: IfBusy::Cancel })
        .await;
    assert_eq!(fork, Ok(Reply::Forked(PromptDraft::from("run echo hello"))));
    assert_eq!(body(&lines_of(&session.path())), body(&fixture("tree-fork.jsonl")));
    assert_eq!(fs::read(&path).unwrap(), before, "the session that was copied is unchanged");
}

#[tokio::test]
async fn a_session_of_the_original_is_the_tree_the_original_shows() {
    let bench = SessionBench::new([]);
    let session = bench.resume(&tree_of_the_original(&bench)).await;
    let tree = tree(&session).await;
    let labels: Vec<(EntryId, String)> =
        tree.labels().into_iter().map(|(idx, label)| (tree.entry(idx).id.clone(), label.text)).collect();
    assert_eq!(labels, [(EntryId::new("3ca8047a"), "start".to_owned())]);
    assert_eq!(tree.leaf(), Some(tree.len() - 1));
    let silent = tree.entries().filter(|entry| entry.is_silent).count();
    assert_eq!(silent, 2, "answers that only call a tool");
    let summaries = tree.entries().filter(|entry| entry.kind == EntryKind::BranchSummary).count();
    assert_eq!(summaries, 1);
}

#[tokio::test]
async fn a_fork_from_the_first_message_is_a_new_session_that_names_its_parent() {
    let bench = SessionBench::new(texts(["1", "2"]));
    let mut session = bench.start().await;
    session.ask("one").await;
    let source = session.path();
    let target = find(&session, "one").await;
    let reply = session.request(SessionCommand::Fork { target, if_busy: IfBusy::Cancel }).await;
    assert_eq!(reply, Ok(Reply::Forked(PromptDraft::from("one"))));
    assert!(!session.path().exists(), "nobody has said anything in it");
    session.ask("else").await;
    assert_eq!(sent(&bench.provider.requests()[1]), ["user else"]);
    let header: Value = serde_json::from_str(&lines_of(&session.path())[0]).unwrap();
    assert_eq!(header["parentSession"], json!(source));
}

#[tokio::test]
async fn compaction_in_a_fork_still_names_what_it_keeps() {
    let bench = SessionBench::new([]);
    let message = |id: &str, parent: &str, text: &str| {
        json!({"type": "message", "id": id, "parentId": parent, "timestamp": "t",
            "message": {"role": "user", "content": text}})
        .to_string()
    };
    let lines = [
        json!({"type": "message", "id": "a", "parentId": null, "timestamp": "t", "message": {"role": "user", "content": "one"}})
            .to_string(),
        json!({"type": "label", "id": "l", "parentId": "a", "timestamp": "2026-11-21T09:00:00.000Z", "targetId": "a", "label": "x"})
            .to_string(),
        message("b", "l", "two"),
        json!({"type": "compaction", "id": "c", "parentId": "b", "timestamp": "t", "summary": "S", "firstKeptEntryId": "l", "tokensBefore": 1})
            .to_string(),
        message("d", "c", "three"),
    ];
    let path = bench.session_file(&(lines.join("\n") + "\n"));
    let session = bench.resume(&path).await;
    session.request(SessionCommand::Clone { if_busy: IfBusy::Cancel }).await.unwrap();
    let copied = entries(&session.path());
    let ids: Vec<&str> = copied.iter().map(|entry| entry.id.as_str()).collect();
    assert_eq!(ids[..4], ["a", "b", "c", "d"]);
    assert_eq!(copied[1].parent_id, Some(EntryId::new("a")), "the label between them is gone");
    assert!(
        matches!(&copied[2].body, EntryBody::Compaction(compaction) if compaction.first_kept_entry_id == "b")
    );
    assert!(matches!(&copied[4].body, EntryBody::Label(label) if label.target_id.as_str() == "a"));
}

#[tokio::test]
async fn what_cannot_be_copied_is_refused() {
    let bench = SessionBench::new(texts(["1"]));
    let mut session = bench.start().await;
    assert!(
        refusal(session.request(SessionCommand::Clone { if_busy: IfBusy::Cancel }).await)
            .contains("not saved yet")
    );
    session.ask("one").await;
    let target = find(&session, "1").await;
    let refused = refusal(session.request(SessionCommand::Fork { target, if_busy: IfBusy::Cancel }).await);
    assert!(refused.contains("only your own messages"), "{refused}");

    let bench = SessionBench::new(texts(["1"])).in_memory();
    let mut session = bench.start().await;
    session.ask("one").await;
    assert!(
        refusal(session.request(SessionCommand::Clone { if_busy: IfBusy::Cancel }).await)
            .contains("not saved yet")
    );
    // But it has branches as any other.
    let target = find(&session, "one").await;
    session.request(navigate(target, LeftBranch::Leave)).await.unwrap();
    let export = bench.path("export.jsonl");
    session.request(SessionCommand::Export { path: export.clone(), secrets: Secrets::Keep }).await.unwrap();
    let refused =
        refusal(session.request(SessionCommand::Export { path: export, secrets: Secrets::Keep }).await);
    assert!(refused.ends_with("exists already; choose another name"), "{refused}");
}

#[tokio::test]
async fn an_import_is_a_copy_under_a_free_name_and_leaves_nothing_when_it_fails() {
    let bench = SessionBench::new([]);
    let source = bench.session_file(&(fixture("tree-export.jsonl")[4].clone() + "\n"));
    let session = bench.start().await;
    let folder = session.path().parent().unwrap().to_owned();
    let import = |path: &Path| SessionCommand::Import { path: path.to_owned(), if_busy: IfBusy::Cancel };
    session.request(import(&source)).await.unwrap();
    assert_eq!(fs::read(session.path()).unwrap(), fs::read(&source).unwrap());
    let first = session.path();
    session.request(import(&source)).await.unwrap();
    assert_ne!(session.path(), first);
    assert!(session.path().to_string_lossy().ends_with("-1.jsonl"), "{}", session.path().display());

    let n_files = || {
        fs::read_dir(&folder)
            .unwrap()
            .flatten()
            .filter(|file| !file.file_name().to_string_lossy().starts_with('.'))
            .count()
    };
    let before = n_files();
    let foreign = bench.path("foreign.json");
    fs::write(&foreign, "{\"messages\": []}\n").unwrap();
    let gone = bench.path("gone.jsonl");
    fs::write(&gone, bench.header().replace("work", "moved away") + "\n").unwrap();
    for (path, why) in [
        (bench.path("none.jsonl"), "does not exist"),
        (bench.path("work"), "is a directory"),
        (foreign, "is not a pi session"),
        (gone, "no longer exists"),
    ] {
        let refused = refusal(session.request(import(&path)).await);
        assert!(refused.contains(why), "{refused}");
    }
    assert_eq!(n_files(), before, "a failed import leaves no copy");
}

#[test]
fn forking_a_file_copies_all_branches_and_brings_old_formats_up_to_date() {
    let folder = tempfile::tempdir().unwrap();
    let (source, target) = (folder.path().join("old.jsonl"), folder.path().join("new"));
    let lines = [
        r#"{"type":"session","id":"s","timestamp":"t","cwd":"/gone"}"#,
        r#"{"type":"message","timestamp":"t","message":{"role":"user","content":"one"}}"#,
        "{\"type\": damaged",
        r#"{"type":"compaction","timestamp":"t","summary":"S","firstKeptEntryIndex":1,"tokensBefore":1}"#,
    ];
    fs::write(&source, lines.join("\n")).unwrap();
    let copy = fork_session(&source, folder.path(), &target, START_MS).unwrap();
    assert_eq!(fs::read_to_string(&source).unwrap(), lines.join("\n"), "the old file is unchanged");
    let header: Value = serde_json::from_str(&lines_of(&copy)[0]).unwrap();
    assert_eq!((&header["version"], &header["cwd"]), (&json!(3), &json!(folder.path())));
    assert_eq!(header["parentSession"], json!(source));
    let copied = entries(&copy);
    assert_eq!(copied.len(), 2);
    assert_eq!(copied[1].parent_id.as_ref(), Some(&copied[0].id));
    assert!(
        matches!(&copied[1].body, EntryBody::Compaction(compaction) if compaction.first_kept_entry_id == copied[0].id.as_str())
    );

    // All branches of a new one, byte for byte.
    let tree = folder.path().join("tree.jsonl");
    fs::write(&tree, fixture("tree.jsonl").join("\n") + "\n").unwrap();
    let copy = fork_session(&tree, folder.path(), &target, START_MS + 1).unwrap();
    assert_eq!(lines_of(&copy)[1..], fixture("tree.jsonl")[1..]);

    for (text, why) in [("", "is not a pi session"), ("[]", "is not a pi session")] {
        fs::write(&source, text).unwrap();
        let error = fork_session(&source, folder.path(), &target, START_MS + 2).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
    let error = fork_session(&folder.path().join("none"), folder.path(), &target, START_MS).unwrap_err();
    assert!(error.to_string().contains("No such file"), "{error}");
}
