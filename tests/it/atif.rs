//! `pi export --to atif` follows the rules of the format, on sessions of the original and
//! of pi.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::program::pi;
use crate::support::pty::TestHome;

/// The fields of each part; those with a mark are required. Others are forbidden.
const ROOT: &[&str] =
    &["schema_version!", "session_id", "agent!", "steps!", "notes", "final_metrics", "extra"];
const AGENT: &[&str] = &["name!", "version!", "model_name", "tool_definitions", "extra"];
const STEP: &[&str] = &["step_id!", "timestamp", "source!", "message!", "observation", "extra"];
const AGENT_STEP: &[&str] =
    &["model_name", "reasoning_effort", "reasoning_content", "tool_calls", "metrics", "llm_call_count"];
const CALL: &[&str] = &["tool_call_id!", "function_name!", "arguments!"];
const RESULT: &[&str] = &["source_call_id", "content", "extra"];
const METRICS: &[&str] = &["prompt_tokens", "completion_tokens", "cached_tokens", "cost_usd", "extra"];
const FINAL: &[&str] = &[
    "total_prompt_tokens",
    "total_completion_tokens",
    "total_cached_tokens",
    "total_cost_usd",
    "total_steps",
    "extra",
];

#[track_caller]
fn check_fields(part: &Value, allowed: &[&[&str]]) {
    let allowed = allowed.concat();
    let object = part.as_object().unwrap_or_else(|| panic!("no object: {part}"));
    for name in object.keys() {
        assert!(
            allowed.iter().any(|field| field.trim_end_matches('!') == name),
            "{name} is forbidden: {part}"
        );
    }
    for field in allowed.iter().filter_map(|field| field.strip_suffix('!')) {
        assert!(object.contains_key(field), "{field} is missing: {part}");
    }
    assert!(object.values().all(|value| !value.is_null()), "{part}");
}

/// Checks the rules of the format, and returns source and message of each step.
#[track_caller]
fn check(document: &Value) -> Vec<(String, String)> {
    check_fields(document, &[ROOT]);
    assert_eq!(document["schema_version"], "ATIF-v1.7");
    check_fields(&document["agent"], &[AGENT]);
    assert_eq!(document["agent"]["name"], "pi");
    let steps = document["steps"].as_array().unwrap();
    for (at, step) in steps.iter().enumerate() {
        let is_agent = step["source"] == "agent";
        check_fields(step, if is_agent { &[STEP, AGENT_STEP] } else { &[STEP] });
        assert_eq!(step["step_id"], at + 1);
        assert!(["system", "user", "agent"].contains(&step["source"].as_str().unwrap()));
        assert!(step["message"].is_string());
        if step.get("timestamp").is_some() {
            step["timestamp"].as_str().unwrap().parse::<pi::session::TraceTime>().unwrap();
        }
        let calls: Vec<&Value> = step["tool_calls"].as_array().into_iter().flatten().collect();
        calls.iter().for_each(|call| check_fields(call, &[CALL]));
        assert!(calls.iter().all(|call| call["arguments"].is_object()));
        let ids: BTreeSet<&str> = calls.iter().filter_map(|call| call["tool_call_id"].as_str()).collect();
        for result in step["observation"]["results"].as_array().into_iter().flatten() {
            check_fields(result, &[RESULT]);
            let of_step = result["source_call_id"].as_str().is_none_or(|id| ids.contains(id));
            assert!(of_step, "{result} is of another step");
        }
        if let Some(metrics) = step.get("metrics") {
            check_fields(metrics, &[METRICS]);
            assert_eq!(step["llm_call_count"], 1);
        }
    }
    check_fields(&document["final_metrics"], &[FINAL]);
    assert_eq!(document["final_metrics"]["total_steps"], steps.len());
    let text = |step: &Value, name: &str| step[name].as_str().unwrap().to_owned();
    steps.iter().map(|step| (text(step, "source"), text(step, "message"))).collect()
}

#[track_caller]
fn export(home: &TestHome, session: &Path) -> Value {
    let output = pi(home, &["export", "--to", "atif", "--keep-secrets"]).arg(session).output().unwrap();
    assert!(output.status.success(), "{}: {}", session.display(), String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn trajectories_of_sessions_of_the_original_follow_the_format() {
    let home = TestHome::new();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/sessions");
    let (mut n_steps, mut n_results) = (0, 0);
    for file in fs::read_dir(fixtures).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "jsonl") {
            let document = export(&home, &path);
            n_steps += check(&document).len();
            let steps = document["steps"].as_array().unwrap();
            n_results += steps.iter().filter(|step| step.get("observation").is_some()).count();
        }
    }
    assert!(n_steps > 50 && n_results > 5, "{n_steps} {n_results}");
}

#[test]
fn a_trajectory_has_the_steps_of_a_session_with_their_calls_and_results() {
    let home = TestHome::new();
    fs::write(home.project().join("a.txt"), "one\n").unwrap();
    let prompts = ["--print", "--model", "demo/pi", "replace one with two in a.txt", "read missing.txt"];
    assert!(pi(&home, &prompts).output().unwrap().status.success());
    let [session] = home.sessions().try_into().unwrap();
    let document = export(&home, &session);
    let steps = check(&document);
    let sources: Vec<&str> = steps.iter().map(|(source, _)| source.as_str()).collect();
    assert_eq!(sources, ["user", "agent", "agent", "user", "agent", "agent"]);
    assert_eq!(steps[0].1, "replace one with two in a.txt");
    let call = &document["steps"][1]["tool_calls"][0];
    assert_eq!(call["function_name"], "edit");
    let result = &document["steps"][1]["observation"]["results"][0];
    assert_eq!(result["source_call_id"], call["tool_call_id"]);
    assert_eq!(result["extra"]["is_error"], false);
    assert_eq!(document["steps"][4]["observation"]["results"][0]["extra"]["is_error"], true);
    assert_eq!(document["agent"]["model_name"], "demo/pi");
    let tools = document["agent"]["tool_definitions"].as_array().unwrap();
    assert!(tools.iter().any(|tool| tool["function"]["name"] == "edit"));
    let usage = |name: &str| {
        let steps = document["steps"].as_array().unwrap().iter();
        steps.filter_map(|step| step["metrics"][name].as_u64()).sum::<u64>()
    };
    assert_eq!(document["final_metrics"]["total_prompt_tokens"], usage("prompt_tokens"));
    assert_eq!(document["final_metrics"]["total_completion_tokens"], usage("completion_tokens"));
}

#[test]
fn a_result_without_its_call_and_cancelled_answers_leave_a_valid_trajectory() {
    let home = TestHome::new();
    let path = home.project().join("odd.jsonl");
    let cwd = home.project();
    let message = |id: &str, parent: Option<&str>, message: Value| json!({"type": "message", "id": id, "parentId": parent, "timestamp": "2026-11-21T09:23:47.280Z", "message": message});
    let lines = [
        json!({"type": "session", "version": 3, "id": "odd", "timestamp": "2026-11-21T09:23:47.280Z", "cwd": cwd}),
        message(
            "e0",
            None,
            json!({"role": "toolResult", "toolCallId": "x", "toolName": "read", "content": [{"type": "text", "text": "lost"}], "isError": false, "timestamp": 1}),
        ),
        message("e1", Some("e0"), json!({"role": "user", "content": "go", "timestamp": 1})),
        message(
            "e2",
            Some("e1"),
            json!({"role": "assistant", "content": [], "stopReason": "aborted", "timestamp": 1}),
        ),
        message(
            "e3",
            Some("e2"),
            json!({"role": "assistant", "content": [{"type": "toolCall", "id": "c", "name": "read", "arguments": "text"}], "stopReason": "toolUse", "timestamp": 1}),
        ),
        message(
            "e4",
            Some("e3"),
            json!({"role": "toolResult", "toolCallId": "other", "toolName": "read", "content": [{"type": "image", "data": "AAAA", "mimeType": "image/png"}], "isError": false, "timestamp": 1}),
        ),
    ];
    fs::write(&path, lines.map(|line| line.to_string() + "\n").concat()).unwrap();
    let document = export(&home, &path);
    let steps = check(&document);
    let expected = [("system", "lost"), ("user", "go"), ("agent", "")];
    assert_eq!(steps, expected.map(|(source, text)| (source.to_owned(), text.to_owned())));
    assert_eq!(document["steps"][2]["observation"]["results"][0]["content"], "[image: image/png]");
}
