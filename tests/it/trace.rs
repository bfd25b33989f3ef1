//! Traces and accounting: of sessions written here, of the original's, and through the
//! binary.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use pi::ai::{FakeAnswer, TestBarrier, Usage};
use pi::session::{
    DeleteError, Entry, EntryId, Trace, TraceTime, UsageReport, WhenBusy, delete_message, purge_message,
    read_trace, read_usage, usage_since,
};
use pi::util::clock::Zone;
use proptest::prelude::*;
use ratatui::layout::Size;
use serde_json::{Value, json};

use crate::support::agent_bench::TestTool;
use crate::support::pty::{Pty, TestHome};
use crate::support::session_bench::{SessionBench, prompt, sent};

fn say_call(id: &str, text: &str) -> FakeAnswer {
    FakeAnswer::new().tool_call(id, "say", json!({ "text": text }))
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/sessions").join(name)
}

fn fixtures() -> Vec<PathBuf> {
    let folder = fs::read_dir(fixture("")).unwrap();
    folder
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|x| x == "jsonl"))
        .collect()
}

/// A line of a session: `kind id parent`, with kinds `user`, `answer`.
fn line(id: &str, parent: Option<&str>, ms: u64, message: &Value) -> String {
    let timestamp = pi::util::clock::iso8601(ms);
    json!({ "type": "message", "id": id, "parentId": parent, "timestamp": timestamp, "message": message })
        .to_string()
}

fn user(text: &str) -> Value {
    json!({ "role": "user", "content": text, "timestamp": 0 })
}

fn answer(text: &str) -> Value {
    json!({ "role": "assistant", "content": [{ "type": "text", "text": text }], "provider": "acme", "model": "m-1",
        "stopReason": "stop", "usage": { "input": 10, "output": 2, "cost": { "total": 0.5 } }, "timestamp": 0 })
}

fn branch(lines: &[String]) -> Vec<Arc<Entry>> {
    lines.iter().map(|line| Arc::new(Entry::parse(line).unwrap())).collect()
}

#[tokio::test]
async fn a_session_written_here_is_traced_without_guesses() {
    let last = FakeAnswer::of_text("Both said.");
    let answers = [
        say_call("c1", "x"),
        FakeAnswer::new().text("First.").tool_call("c2", "say", json!({ "text": "y" })),
        last,
    ];
    let bench = SessionBench::new(answers).tools([TestTool::say()]);
    let mut session = bench.start().await;
    session.ask("say twice").await;

    let trace = read_trace(&session.path()).unwrap();
    let [message] = trace.messages.as_slice() else { panic!("{trace:?}") };
    assert_eq!((message.text.as_str(), message.completed), ("say twice", true));
    assert_eq!(message.request_id, message.id);
    let iterations: Vec<usize> = message.steps.iter().map(|step| step.iteration).collect();
    assert_eq!(iterations, [0, 1, 2]);
    let reflections: Vec<Option<&str>> =
        trace.calls().map(|found| found.call.reflection.as_deref()).collect();
    assert_eq!(reflections, [Some("First."), Some("Both said.")]);
    assert!(trace.calls().all(|found| found.call.duration_ms.is_some() && !found.call.duration_estimated));

    // The facts are in the file, and not in the request.
    let text = fs::read_to_string(session.path()).unwrap();
    let recorded = format!(r#""trace":{{"request":"{}","reflectsOn":["c2"]}}"#, message.id);
    assert!(text.contains(&recorded), "{text}");
    assert!(!sent(&bench.provider.requests()[2]).concat().contains("reflectsOn"));
}

#[tokio::test]
async fn a_steering_message_belongs_to_the_request_of_its_run() {
    let gate = TestBarrier::new();
    let first = FakeAnswer::new().gate(&gate).tool_call("c1", "say", json!({ "text": "x" }));
    let bench = SessionBench::new([first, FakeAnswer::of_text("Steered.")]);
    let bench = bench.tools([TestTool::say()]);
    let mut session = bench.start().await;
    session.request(prompt("work", WhenBusy::Steer)).await.unwrap();
    gate.reached().await;
    session.request(prompt("and also this", WhenBusy::Steer)).await.unwrap();
    gate.open();
    session.settled().await;
    let trace = read_trace(&session.path()).unwrap();
    let ids: Vec<&EntryId> = trace.messages.iter().map(|message| &message.request_id).collect();
    assert_eq!(ids.len(), 2);
    assert_eq!(ids[0], ids[1]);
}

#[test]
fn every_call_of_the_originals_sessions_is_traced_once() {
    for path in fixtures() {
        let trace = read_trace(&path).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let mut ids: Vec<&str> = trace.calls().map(|found| found.call.id.as_str()).collect();
        ids.sort_unstable();
        let n_calls = ids.len();
        ids.dedup();
        assert_eq!(ids.len(), n_calls, "{}", path.display());
        assert!(ids.iter().all(|id| text.contains(*id)), "{}", path.display());
        let shown: usize = trace.tool_stats().iter().map(|tool| tool.calls).sum();
        assert_eq!(shown, n_calls);
    }
}

#[test]
fn unfinished_calls_and_empty_steps_are_shown_as_such() {
    let call =
        json!({ "type": "toolCall", "id": "c1", "name": "bash", "arguments": { "command": "sleep 9" } });
    let message = json!({ "role": "assistant", "content": [call], "stopReason": "toolUse", "timestamp": 0 });
    let empty = json!({ "role": "assistant", "content": null, "stopReason": "aborted", "errorMessage": "stopped", "timestamp": 0 });
    let lines = [
        line("u1", None, 1_000, &user("go")),
        line("a1", Some("u1"), 2_000, &message),
        line("a2", Some("a1"), 3_000, &empty),
    ];
    let trace = Trace::of(&branch(&lines));
    let message = &trace.messages[0];
    assert!(!message.completed);
    assert_eq!(message.steps.len(), 2);
    assert_eq!((&message.steps[0].calls[0].result, message.steps[0].calls[0].duration_ms), (&None, None));
    assert_eq!(message.steps[1].error.as_deref(), Some("stopped"));
    assert_eq!(trace.tool_stats()[0].unfinished, 1);
    assert!(trace.failed_calls().is_empty());
}

#[test]
fn a_missing_duration_is_estimated_and_marked() {
    let call = json!({ "type": "toolCall", "id": "c1", "name": "ls", "arguments": {} });
    let message = json!({ "role": "assistant", "content": [call], "stopReason": "toolUse", "timestamp": 0 });
    let result = json!({ "role": "toolResult", "toolCallId": "c1", "toolName": "ls", "isError": true, "timestamp": 0,
        "content": [{ "type": "text", "text": "no such directory" }] });
    let lines = [
        line("u1", None, 1_000, &user("go")),
        line("a1", Some("u1"), 2_000, &message),
        line("r1", Some("a1"), 2_250, &result),
    ];
    let trace = Trace::of(&branch(&lines));
    let failed = trace.failed_calls();
    let call = failed[0].call;
    assert_eq!((call.duration_ms, call.duration_estimated), (Some(250), true));
    assert_eq!(call.result.as_ref().unwrap().error.as_deref(), Some("no such directory"));
}

proptest! {
    /// Prompts may share a time, and clocks may be set back.
    #[test]
    fn pages_neither_overlap_nor_leave_a_message_out(
        times in proptest::collection::vec(0_u64..4, 0..12),
        n_late in 0_usize..4,
        limit in 1_usize..5,
    ) {
        let ids: Vec<String> = (0..times.len()).map(|n| format!("u{n}")).collect();
        let lines: Vec<String> = times
            .iter()
            .enumerate()
            .map(|(n, ms)| line(&ids[n], n.checked_sub(1).map(|n| ids[n].as_str()), *ms, &user("hi")))
            .collect();
        let n_first = times.len().saturating_sub(n_late);
        let mut seen: Vec<String> = Vec::new();
        let mut before: Option<TraceTime> = None;
        // The first page is read before the last messages arrive.
        let mut trace = Trace::of(&branch(&lines[..n_first]));
        loop {
            let page = trace.page(limit, before);
            prop_assert!(page.messages.len() <= limit);
            seen.extend(page.messages.iter().map(|message| message.id.to_string()));
            let Some(next) = page.next_before else { break };
            // A cursor survives its way through text.
            before = Some(next.to_string().parse().unwrap());
            trace = Trace::of(&branch(&lines));
        }
        let mut expected = ids[..n_first].to_vec();
        expected.reverse();
        prop_assert_eq!(seen, expected);
    }
}

#[test]
fn deleting_cascades_to_steps_and_refuses_a_stale_version() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    fs::copy(fixture("tools3.jsonl"), &path).unwrap();
    let before = fs::read_to_string(&path).unwrap();
    let message = read_trace(&path).unwrap().messages[0].clone();
    assert!(!message.steps.is_empty());

    let unknown = delete_message(&path, &EntryId::new("nope"), None, 0);
    assert!(matches!(unknown, Err(DeleteError::Unknown { .. })), "{unknown:?}");
    let stale = delete_message(&path, &message.id, Some(message.version - 1), 0);
    assert!(
        matches!(stale, Err(DeleteError::Stale { current, .. }) if current == message.version),
        "{stale:?}"
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), before);

    delete_message(&path, &message.id, Some(message.version), 0).unwrap();
    let trace = read_trace(&path).unwrap();
    assert_eq!(trace.message(&message.id), None);
    let is_left = |id: &str| trace.calls().any(|found| found.call.id == id);
    assert!(message.steps.iter().flat_map(|step| &step.calls).all(|call| !is_left(&call.id)));
    assert!(fs::read_to_string(&path).unwrap().starts_with(&before), "the file keeps its history");
    let again = delete_message(&path, &message.id, None, 0);
    assert!(matches!(again, Err(DeleteError::Unknown { .. })), "{again:?}");
}

#[test]
fn purging_removes_the_lines_and_keeps_the_rest_reachable() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    let header =
        r#"{"type":"session","version":3,"id":"s","timestamp":"2026-11-21T09:00:00.000Z","cwd":"/w"}"#;
    let label = r#"{"type":"label","id":"l1","parentId":"a1","timestamp":"","targetId":"u1","label":"x"}"#;
    let compaction = r#"{"type":"compaction","id":"c1","parentId":"a2","timestamp":"","summary":"S","firstKeptEntryId":"u1","tokensBefore":1}"#;
    let lines = [
        header.to_owned(),
        line("u1", None, 1_000, &user("secret question")),
        line("a1", Some("u1"), 2_000, &answer("secret answer")),
        label.to_owned(),
        "damaged".to_owned(),
        line("u2", Some("l1"), 3_000, &user("second")),
        line("a2", Some("u2"), 4_000, &answer("kept")),
        compaction.to_owned(),
    ];
    fs::write(&path, lines.join("\n") + "\n").unwrap();
    purge_message(&path, &EntryId::new("u1"), None, 0).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    assert!(!text.contains("secret") && !text.contains("\"l1\""), "{text}");
    assert!(text.contains("damaged\n") && text.contains(r#""firstKeptEntryId":"u2""#), "{text}");
    let second: Entry = text.lines().skip(1).find_map(|line| Entry::parse(line).ok()).unwrap();
    assert_eq!((second.id.as_str(), second.parent_id), ("u2", None));
    assert_eq!(read_trace(&path).unwrap().messages.len(), 1);
}

#[test]
fn usage_counts_every_branch_once_and_a_fork_not_again() {
    let root = tempfile::tempdir().unwrap();
    let header = |id: &str| {
        json!({ "type": "session", "version": 3, "id": id, "timestamp": "", "cwd": "/w" }).to_string()
    };
    let now_ms = 1_795_253_027_000;
    let shared = [line("u1", None, now_ms, &user("a")), line("a1", Some("u1"), now_ms, &answer("b"))];
    let side = line("a2", Some("u1"), now_ms + 1, &answer("other"));
    let later = line("a3", Some("a1"), now_ms + 2, &answer("c"));
    let source =
        [&[header("s1")], &shared[..1], &[side], &shared[1..], std::slice::from_ref(&later)].concat();
    let fork = [&[header("s2")], &shared[..], &[line("a4", Some("a1"), now_ms + 3, &answer("d"))]].concat();
    let folder = root.path().join("--w--");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("2026_s1.jsonl"), source.join("\n")).unwrap();
    fs::write(folder.join("2027_s2.jsonl"), fork.join("\n")).unwrap();
    fs::write(folder.join("broken.jsonl"), "no session\n").unwrap();

    let records = read_usage(&folder.join("2026_s1.jsonl")).unwrap();
    let report = UsageReport::of(&records, &Zone::utc(), |_| None);
    assert_eq!((report.active_branch.requests, report.other_branches.requests), (2, 1));
    assert_eq!(report.by_turn["u1"].requests, 3);
    let report = UsageReport::of(&usage_since(root.path(), now_ms), &Zone::utc(), |_| None);
    assert_eq!((report.total.requests, report.total.cost_usd), (4, 2.0));
    assert_eq!(report.by_session["s2"].requests, 1);
    assert_eq!(report.by_day.keys().collect::<Vec<_>>(), ["2026-11-21"]);
    assert!(usage_since(root.path(), u64::MAX).is_empty());
}

/// The missed tokens of each answer of a session: `(entry, after, input, read, written)`, or another entry.
#[test]
fn what_missed_the_cache_is_counted_along_each_branch() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("2026_s1.jsonl");
    let header = json!({"type": "session", "version": 3, "id": "s1", "timestamp": "", "cwd": "/w"});
    let usage = |[input, read, written]: [u64; 3]| {
        json!({"input": input, "output": 1, "cacheRead": read, "cacheWrite": written, "totalTokens": 0, "cost": {
            "input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}})
    };
    let answer = |id: &str, after: &str, tokens: [u64; 3]| {
        json!({"type": "message", "id": id, "parentId": after, "timestamp": "", "message": {"role": "assistant",
            "content": [], "provider": "p", "model": "m", "usage": usage(tokens)}})
    };
    let warm = json!({"type": "usage", "id": "w", "parentId": "a3", "timestamp": "", "kind": "cache_warm",
        "provider": "p", "model": "m", "usage": usage([0, 30_000, 10_000])});
    let lines = [
        header,
        json!({"type": "message", "id": "u", "parentId": null, "timestamp": "", "message": {"role": "user"}}),
        // No cache was reported, so nothing was missed.
        answer("a0", "u", [9_000, 0, 0]),
        answer("a1", "a0", [50, 0, 20_000]),
        answer("a2", "a1", [100, 20_050, 0]),
        answer("a3", "a2", [20_500, 0, 0]),
        // A failed request sends nothing.
        answer("f", "a3", [0, 0, 0]),
        // From an earlier entry: what came after that was not part of the prompt.
        answer("b1", "a1", [5_000, 20_050, 0]),
        warm,
        answer("a4", "w", [10_000, 30_000, 10_000]),
        // Less than the parts in which caches keep prompts.
        answer("a5", "a4", [1_024, 48_976, 0]),
        json!({"type": "compaction", "id": "c", "parentId": "a5", "timestamp": "", "usage": usage([9_000, 0, 0]),
            "summary": "s", "firstKeptEntryId": "a5", "tokensBefore": 50_000}),
        answer("a6", "c", [30_000, 0, 0]),
    ];
    let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
    fs::write(&path, lines.join("\n")).unwrap();
    let records = read_usage(&path).unwrap();
    let missed = |id: &str| records.iter().find(|record| record.entry == id).unwrap().missed_tokens;
    let ids = ["a0", "a1", "a2", "a3", "f", "b1", "w", "a4", "a5", "c", "a6"];
    assert_eq!(ids.map(missed), [0, 9_000, 0, 20_150, 0, 0, 0, 10_000, 0, 0, 0]);
    let report = UsageReport::of(&records, &Zone::utc(), |_| None);
    assert_eq!((report.total.cache_misses, report.total.cache_missed_tokens), (3, 39_150));
}

#[tokio::test]
async fn usage_of_a_running_session_is_read_from_its_file() {
    let usage = Usage { input: 1_000, output: 10, ..Usage::default() };
    let bench = SessionBench::new([FakeAnswer::of_text("one").usage(usage)]);
    let mut session = bench.start().await;
    session.ask("hi").await;
    let records = read_usage(&session.path()).unwrap();
    assert_eq!((records.len(), records[0].usage.input), (1, 1_000));
    assert_eq!((records[0].provider.as_str(), records[0].model.as_str()), ("acme", "m-1"));
}

fn pi(home: &TestHome, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pi"));
    command
        .env_clear()
        .env("HOME", home.home())
        .env("TMPDIR", home.temp())
        .env("PATH", "/usr/bin:/bin")
        .env("PI_LOCAL_SERVERS", "none");
    command.args(args).current_dir(home.project()).stdin(Stdio::null()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn the_trace_of_a_session_is_printed_paged_and_as_json() {
    let home = TestHome::new();
    let path = fixture("tools3.jsonl").display().to_string();
    let output = pi(&home, &["trace", &path]);
    let shown = text(&output.stdout);
    assert!(output.status.success() && shown.contains("  completed\n"), "{shown}{}", text(&output.stderr));
    let page: Value = serde_json::from_slice(&pi(&home, &["trace", &path, "--json"]).stdout).unwrap();
    let message = &page["messages"][0];
    assert_eq!(message["steps"][0]["iteration"], 0);
    assert!(message["steps"][0]["calls"][0]["durationMs"].is_u64(), "{message}");
    let before = message["time"].as_str().unwrap();
    let older: Value =
        serde_json::from_slice(&pi(&home, &["trace", &path, "--json", "--before", before]).stdout).unwrap();
    assert!(older["messages"].as_array().unwrap().iter().all(|older| older["id"] != message["id"]));
    let stats = text(&pi(&home, &["trace", &path, "--stats"]).stdout);
    assert!(stats.starts_with("tool") && stats.contains("p95"), "{stats}");
    for flag in ["--failed", "--slow"] {
        assert!(pi(&home, &["trace", &path, flag]).status.success());
    }
}

/// Arguments, and the start of standard error.
#[test]
fn bad_traces_are_answered_with_what_to_do() {
    let home = TestHome::new();
    fs::write(home.project().join("x.jsonl"), "no session\n").unwrap();
    let cases: &[(&[&str], &str)] = &[
        (&["trace"], "pi: this directory has no sessions; pass the file or id of one"),
        (&["trace", "0000"], "pi: no session id starts with \"0000\""),
        (&["trace", "./missing.jsonl"], "pi: cannot read "),
        (&["trace", "./x.jsonl"], "pi: "),
        (&["trace", "x", "--before", "yesterday"], "error: invalid value 'yesterday'"),
        (&["trace", "x", "--purge"], "error: "),
        (&["usage", "--days", "0"], "error: invalid value '0'"),
    ];
    for (args, expected) in cases {
        let output = pi(&home, args);
        let stderr = text(&output.stderr);
        assert!(stderr.starts_with(expected), "{args:?}: {stderr}");
        assert!(!output.status.success() && output.stdout.is_empty(), "{args:?}");
    }
}

#[test]
fn usage_is_printed_by_day_model_and_project() {
    let home = TestHome::new();
    assert_eq!(text(&pi(&home, &["usage"]).stdout), "No requests in the last 30 days.\n");
    let folder = home.agent().join("sessions/--w--");
    fs::create_dir_all(&folder).unwrap();
    let now_ms = pi::util::clock::Clock::system().now_ms();
    let header = json!({ "type": "session", "version": 3, "id": "s", "timestamp": "", "cwd": home.home().join("work") });
    let lines =
        [header.to_string(), line("u", None, now_ms, &user("a")), line("a", Some("u"), now_ms, &answer("b"))];
    fs::write(folder.join("s.jsonl"), lines.join("\n")).unwrap();
    let shown = text(&pi(&home, &["usage", "--days", "1"]).stdout);
    assert!(shown.contains("acme/m-1         1     10       0       2  $0.50"), "{shown}");
    assert!(shown.contains("~/work") && shown.contains("Total: 1 request, $0.50"), "{shown}");
    let report: Value = serde_json::from_slice(&pi(&home, &["usage", "--json"]).stdout).unwrap();
    assert_eq!(report["total"]["costUsd"], 0.5);
}

#[test]
fn usage_shows_local_days_and_the_limits_that_were_reported() {
    let home = TestHome::new();
    let folder = home.agent().join("sessions/--w--");
    fs::create_dir_all(&folder).unwrap();
    let now_ms = pi::util::clock::Clock::system().now_ms();
    let header = json!({ "type": "session", "version": 3, "id": "s", "timestamp": "", "cwd": "/w" });
    let lines = [header.to_string(), line("a", None, now_ms, &answer("b"))];
    fs::write(folder.join("s.jsonl"), lines.join("\n")).unwrap();
    let quota = json!({ "acme": { "seenMs": now_ms, "windows": [
        { "name": "5 h", "isPlan": true, "used": 0.25, "resetsMs": now_ms + 7_200_000 },
        { "name": "gone", "isPlan": true, "used": 0.9, "resetsMs": now_ms },
    ] } });
    fs::write(home.agent().join("quota.json"), quota.to_string()).unwrap();
    // One of these zones has another day than UTC.
    for hours in [-12_i8, 12] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pi"));
        command
            .env_clear()
            .env("HOME", home.home())
            .env("TMPDIR", home.temp())
            .env("PI_LOCAL_SERVERS", "none");
        let output = command.env("TZ", format!("<zone>{}", -hours)).arg("usage").output().unwrap();
        let shown = text(&output.stdout);
        assert!(shown.starts_with("day ") && shown.contains(&Zone::fixed(hours).day(now_ms)), "{shown}");
        let resets = Zone::fixed(hours).time_of_day(now_ms + 7_200_000);
        assert!(shown.contains(&format!("Limits of acme: 5 h 25 % used, resets {resets}\n")), "{shown}");
    }
    let report: Value = serde_json::from_slice(&pi(&home, &["usage", "--json"]).stdout).unwrap();
    assert_eq!(report["quotas"]["acme"]["windows"][0]["used"], 0.25);
}

#[test]
fn costs_of_the_session_and_of_the_day_are_shown() {
    let home = TestHome::new();
    let path = home.agent().join("sessions/--w--/s.jsonl");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let header =
        json!({ "type": "session", "version": 3, "id": "s", "timestamp": "", "cwd": home.project() });
    let now_ms = pi::util::clock::Clock::system().now_ms();
    let lines = [
        header.to_string(),
        line("u", None, now_ms, &user("one")),
        line("a", Some("u"), now_ms, &answer("1")),
        line("v", Some("a"), now_ms, &user("two")),
        line("b", Some("v"), now_ms, &answer("2")),
    ];
    fs::write(&path, lines.join("\n") + "\n").unwrap();
    let pty = Pty::start(&home, Size::new(100, 40), &["--session", &path.display().to_string()]);
    pty.wait_text("two");
    pty.keys("/session\r");
    let rows = pty.wait_text("adds up days");
    let find = |name: &str| rows.iter().find(|row| row.contains(name)).cloned().unwrap_or_default();
    assert!(find("Last prompt").contains("$0.50"), "{rows:#?}");
    assert!(find("│ Session").contains("$1.00"), "{rows:#?}");
    assert!(find("Today, this directory").contains("$1.00"), "{rows:#?}");
}

#[test]
fn the_trace_of_the_open_session_is_shown_and_closed() {
    let home = TestHome::new();
    let path = home.project().join("s.jsonl");
    let header =
        json!({ "type": "session", "version": 3, "id": "s", "timestamp": "", "cwd": home.project() });
    let lines = [
        header.to_string(),
        line("u", None, 1, &user("what is here")),
        line("a", Some("u"), 2, &answer("files")),
    ];
    fs::write(&path, lines.join("\n") + "\n").unwrap();
    let pty = Pty::start(&home, Size::new(100, 30), &["--session", &path.display().to_string()]);
    pty.wait_text("what is here");
    pty.keys("/trace\r");
    let rows = pty.wait_text("Trace, newest message first");
    assert!(rows.iter().any(|row| row.contains("No tool calls.")), "{rows:?}");
    assert!(rows.iter().any(|row| row.contains("1 step  completed")), "{rows:?}");
    // Times are short and local, and filters are a key away.
    assert!(rows.iter().any(|row| row.contains("1970-01-01 00:00:00")), "{rows:?}");
    pty.keys("f");
    pty.wait_text("No failed calls.");
    pty.keys("f");
    pty.wait_text("1 step  completed");
    pty.keys("\x1b");
    pty.wait("the closed trace", |rows| !rows.iter().any(|row| row.contains("Trace, newest")));
    pty.keys("\x04");
    assert!(pty.end().0.success());
}

#[test]
fn the_trace_of_the_screen_is_filtered_and_paged() {
    let home = TestHome::new();
    let path = home.project().join("s.jsonl");
    let header =
        json!({ "type": "session", "version": 3, "id": "s", "timestamp": "", "cwd": home.project() });
    let call = json!({ "role": "assistant", "content": [
        { "type": "toolCall", "id": "c1", "name": "grep", "arguments": { "pattern": "x" } },
        { "type": "toolCall", "id": "c2", "name": "read", "arguments": { "path": "gone" } },
    ], "stopReason": "toolUse", "timestamp": 0 });
    let result = |id: &str, name: &str, failed: bool| {
        json!({ "role": "toolResult", "toolCallId": id,
        "toolName": name, "content": [{ "type": "text", "text": format!("result of {name}") }],
        "isError": failed, "timestamp": 0 })
    };
    let mut lines = vec![header.to_string()];
    let mut parent: Option<String> = None;
    for at in 0..60 {
        let id = format!("u{at}");
        lines.push(line(&id, parent.as_deref(), at + 1, &user(&format!("question {at}."))));
        parent = Some(id);
    }
    lines.push(line("a", parent.as_deref(), 100, &call));
    lines.push(line("r1", Some("a"), 101, &result("c1", "grep", false)));
    lines.push(line("r2", Some("r1"), 102, &result("c2", "read", true)));
    fs::write(&path, lines.join("\n") + "\n").unwrap();
    let pty = Pty::start(&home, Size::new(100, 30), &["--session", &path.display().to_string()]);
    pty.wait_text("question 59.");
    pty.keys("/trace --failed\r");
    let rows = pty.wait_text("Trace, failed calls");
    assert!(rows.iter().any(|row| row.contains("failed: result of read")), "{rows:?}");
    assert!(!rows.iter().any(|row| row.contains("a 0  grep")), "{rows:?}");
    pty.keys("ft");
    pty.wait_text("Trace, calls of grep");
    pty.keys("tt");
    pty.wait_text("page 1 of 2");
    pty.keys("/question 7.\r");
    let rows = pty.wait_text("pages 1–2 of 2");
    assert!(rows.iter().any(|row| row.contains("question 7.")), "{rows:?}");
    pty.keys("G");
    pty.wait_text("question 0.");
    pty.keys("\x1b");
    pty.wait("the closed trace", |rows| !rows.iter().any(|row| row.contains("Trace, ")));
    pty.keys("/trace --all\r");
    pty.wait_text("/trace does not know \"--all\"");
}
