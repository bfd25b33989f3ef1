//! RPC mode as a client of the original uses it: recorded dialogues, bad input, slow and
//! dying clients.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use pi::ai::TestBarrier;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::chat;
use crate::support::files::wait_for_files;
use crate::support::pty::TestHome;
use crate::support::rpc_client::{Reads, RpcClient};
use crate::support::sse_server::{Reply, SseServer};

/// Events whose number depends on time.
const VARYING: [&str; 2] = ["message_update", "tool_execution_update"];

/// A user with the models of the recorded dialogues, served at `url`.
fn recorded_home(url: &str) -> TestHome {
    let model = |id: &str, name: &str| {
        json!({
            "id": id, "name": name, "reasoning": true, "input": ["text", "image"],
            "cost": { "input": 3, "output": 15, "cacheRead": 0.3, "cacheWrite": 3.75 },
            "contextWindow": 200_000, "maxTokens": 8000,
        })
    };
    let provider =
        |api: &str, model: Value| json!({ "baseUrl": url, "api": api, "apiKey": "k", "models": [model] });
    let home = TestHome::new().settings(&json!({ "compaction": { "keepRecentTokens": 1000 } }));
    let models = json!({ "providers": {
        "acme": provider("openai-completions", model("m-1", "M1")),
        "acme-a": provider("anthropic-messages", model("a-1", "A1")),
    } });
    fs::write(home.agent().join("models.json"), models.to_string()).unwrap();
    fs::write(home.project().join("README.md"), "# Demo\n\nA small project.\n").unwrap();
    home
}

fn recording(name: &str) -> Vec<Value> {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/rpc").join(name).with_extension("jsonl");
    let text = fs::read_to_string(path).unwrap();
    // The tool waits for the test, not for time.
    let text = text.replace("sleep 2; echo slept", "read line < gate; echo slept");
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The answers of the recorded model, for the server.
fn answers(dialogue: &[Value]) -> Vec<Reply> {
    let messages = dialogue.iter().filter(|line| line["out"]["type"] == "message_end");
    let messages =
        messages.map(|line| &line["out"]["message"]).filter(|message| message["role"] == "assistant");
    messages.map(answer).collect()
}

fn answer(message: &Value) -> Reply {
    let blocks = message["content"].as_array().unwrap();
    let texts: String = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
    let calls: Vec<(&str, Value)> = blocks
        .iter()
        .filter(|block| block["type"] == "toolCall")
        .map(|block| (block["name"].as_str().unwrap(), block["arguments"].clone()))
        .collect();
    if message["stopReason"] == "aborted" {
        return Reply::stream("text/event-stream").piece(chat::delta(&texts)).gate(&TestBarrier::default());
    }
    if calls.is_empty() {
        return Reply::sse(chat::text(&texts));
    }
    Reply::sse([chat::delta(&texts), chat::calls(&calls)].concat())
}

/// What a client sees of a line: names and order of its fields, and the values that are no
/// ids, times, paths or texts. A set of fields stands for what the original may leave out.
fn shape(line: &Value) -> String {
    const SAID: [&str; 12] = [
        "type",
        "id",
        "command",
        "success",
        "disposition",
        "reason",
        "aborted",
        "willRetry",
        "level",
        "toolName",
        "isError",
        "steering",
    ];
    let fields = |value: &Value| match value {
        Value::Object(fields) => {
            let names = fields.keys().map(String::as_str);
            // An answer that is cancelled may not have its id yet.
            let is_aborted = value["stopReason"] == "aborted";
            names
                .filter(|name| !["structuredContent", "responseModel"].contains(name))
                .filter(|name| !(is_aborted && *name == "responseId"))
                .collect::<Vec<_>>()
                .join(",")
        }
        _ => String::new(),
    };
    let said = SAID.iter().filter_map(|name| Some(format!("{name}={}", line.get(*name)?)));
    let message = &line["message"];
    let role = format!("{} {} {{{}}}", message["role"], message["stopReason"], in_order(&fields(message)));
    let parts = [fields(line), fields(&line["data"]), fields(&line["result"]), role];
    said.chain(parts).collect::<Vec<_>>().join(" ")
}

/// The fields of a message stand in no order.
fn in_order(fields: &str) -> String {
    fields.split(',').collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(",")
}

/// The kinds of updates, with their fields.
fn update_shapes<'a>(lines: impl Iterator<Item = &'a Value>) -> BTreeSet<String> {
    let updates = lines.filter(|line| line["type"] == "message_update");
    let mut shapes = BTreeSet::new();
    for update in updates {
        let mut event = update["assistantMessageEvent"].clone();
        if event["type"] == "toolcall_start" {
            (event["id"], event["toolName"]) = ("".into(), "".into());
        }
        shapes.insert(shape(update) + &shape(&event));
    }
    shapes
}

/// Tools that run side by side end in any order.
fn with_sorted_ends(shapes: Vec<String>) -> Vec<String> {
    let is_end = |shape: &String| shape.starts_with("type=\"tool_execution_end\"");
    let mut sorted = Vec::new();
    for group in shapes.chunk_by(|a, b| is_end(a) && is_end(b)) {
        let mut group = group.to_vec();
        group.sort();
        sorted.extend(group);
    }
    sorted
}

/// Replays a dialogue and compares every line.
async fn replay(name: &'static str, summaries: usize) {
    let dialogue = recording(name);
    let replies = answers(&dialogue);
    let server = SseServer::start([]).await;
    let (mut replies, home) = (replies.into_iter(), recorded_home(server.url()));
    tokio::task::spawn_blocking(move || {
        rustix::fs::mknodat(
            rustix::fs::CWD,
            home.project().join("gate"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RWXU,
            0,
        )
        .unwrap();
        let mut client = RpcClient::start(
            &home,
            &["--mode", "rpc", "--provider", "acme", "--model", "m-1", "--thinking", "medium"],
        );
        let (mut expected, mut found, mut updates) = (Vec::new(), Vec::new(), Vec::new());
        for line in &dialogue {
            if let Some(command) = line.get("in") {
                if command["type"] == "compact" {
                    (0..summaries).for_each(|_| server.reply(Reply::sse(chat::text("A summary."))));
                }
                // The answers to come stand after the summary.
                if command["type"] == "prompt" {
                    replies
                        .by_ref()
                        .take(n_answers_until_settled(&dialogue, line))
                        .for_each(|reply| server.reply(reply));
                }
                client.send(command);
            } else if let Some(out) = line.get("out") {
                if VARYING.contains(&out["type"].as_str().unwrap()) {
                    continue;
                }
                expected.push(shape(out));
                loop {
                    let next = client.next().unwrap();
                    let kind = next["type"].as_str().unwrap();
                    if VARYING.contains(&kind) || next["method"] == "notify" {
                        updates.push(next);
                        continue;
                    }
                    found.push(shape(&next));
                    break;
                }
                if name == "steer-followup" && out["id"] == "4" {
                    fs::write(home.project().join("gate"), "go\n").unwrap();
                }
            }
        }
        assert_eq!(with_sorted_ends(found), with_sorted_ends(expected), "{name}");
        let recorded = update_shapes(dialogue.iter().filter_map(|line| line.get("out")));
        assert_eq!(update_shapes(updates.iter()), recorded, "{name}");
        let (rest, status, stderr) = client.finish();
        assert_eq!((rest, status.code(), stderr.as_str()), (Vec::new(), Some(0), ""));
    })
    .await
    .unwrap();
}

/// The number of answers that a recorded prompt causes.
fn n_answers_until_settled(dialogue: &[Value], prompt: &Value) -> usize {
    let after = dialogue.iter().skip_while(|line| *line != prompt);
    let run = after.take_while(|line| line["out"]["type"] != "agent_settled");
    run.filter(|line| line["out"]["type"] == "message_end" && line["out"]["message"]["role"] == "assistant")
        .count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_of_the_original_gets_what_it_got() {
    for name in ["state-and-models", "prompt-tools", "steer-followup", "abort"] {
        replay(name, 0).await;
    }
    // A split turn has two summaries.
    replay("compact", 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_input_is_answered_and_the_rest_goes_on() {
    let server = SseServer::start([]).await;
    let home = recorded_home(server.url());
    tokio::task::spawn_blocking(move || {
        let mut client = RpcClient::start(&home, &["--mode", "rpc"]);
        let cases = [
            ("{\"type\":\n", "parse", "Failed to parse command: EOF while parsing a value"),
            ("\u{0}\u{1}\n", "parse", "Failed to parse command: expected value"),
            ("{\"type\":\"frobnicate\"}\n", "frobnicate", "Unknown command: frobnicate"),
            ("{\"type\":\"prompt\"}\n", "prompt", "missing field `message`"),
            ("{\"type\":\"prompt\",\"message\":\" \"}\n", "prompt", "there is nothing to send"),
            ("{\"type\":\"bash\",\"command\":\"\"}\n", "bash", "the command is empty"),
            (
                "{\"type\":\"set_thinking_level\",\"level\":\"enormous\"}\n",
                "set_thinking_level",
                "unknown thinking level",
            ),
            (
                "{\"type\":\"set_steering_mode\",\"mode\":\"x\"}\n",
                "set_steering_mode",
                "\"steeringMode\" must be",
            ),
            (
                "{\"type\":\"switch_session\",\"sessionPath\":\"none.jsonl\"}\n",
                "switch_session",
                "does not exist",
            ),
            ("{\"type\":\"get_entries\",\"since\":\"zzz\"}\n", "get_entries", "Entry not found: zzz"),
            ("{\"type\":\"fork\",\"entryId\":\"zzz\"}\n", "fork", "Invalid entry ID for forking"),
            ("{\"type\":\"navigate_tree\",\"entryId\":\"zzz\"}\n", "navigate_tree", "no entry zzz"),
            ("{\"type\":\"get_trace\",\"session\":\"zzz\"}\n", "get_trace", "no session id starts with"),
            ("{\"type\":\"get_trace\",\"session\":\"\"}\n", "get_trace", "the id of the session is empty"),
            (
                "{\"type\":\"list_sessions\",\"search\":\"re:(\"}\n",
                "list_sessions",
                "invalid regular expression",
            ),
            (
                "{\"type\":\"extension_ui_response\",\"id\":\"q\",\"value\":\"x\"}\n",
                "extension_ui_response",
                "no longer open",
            ),
        ];
        for (line, command, error) in cases {
            client.send_raw(line);
            let response = client.next().unwrap();
            assert_eq!((&response["type"], &response["command"]), (&json!("response"), &json!(command)));
            assert!(response["error"].as_str().unwrap().contains(error), "{response}");
            assert_eq!(response["success"], json!(false));
        }
        // A client of the original waits for these before the error.
        client.send(&json!({ "id": "g", "type": "compact" }));
        let lines = client.until(|line| line["id"] == "g");
        let kinds: Vec<&str> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["compaction_start", "compaction_end", "response"]);
        // The last line is whole, although its break is missing.
        client.send_raw("{\"id\":\"last\",\"type\":\"get_available_thinking_levels\"}");
        let (rest, status, _) = client.finish();
        assert_eq!((rest.len(), &rest[0]["id"], status.code()), (1, &json!("last"), Some(0)));
    })
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_with_the_same_id_are_all_answered_with_it() {
    let server = SseServer::start([]).await;
    let home = recorded_home(server.url());
    tokio::task::spawn_blocking(move || {
        let mut client = RpcClient::start(&home, &["--mode", "rpc"]);
        let commands = [
            json!({ "type": "get_state" }),
            json!({ "type": "get_available_thinking_levels" }),
            json!({ "type": "frobnicate" }),
            json!({ "type": "bash", "command": "echo one" }),
            json!({ "type": "bash", "command": "echo two" }),
        ];
        for mut command in commands.clone() {
            command["id"] = json!("same");
            client.send(&command);
        }
        let mut answered = Vec::new();
        while answered.len() < commands.len() {
            let response = client.until(|line| line["type"] == "response").pop().unwrap();
            assert_eq!(response["id"], json!("same"));
            let output = response["data"]["output"].as_str().unwrap_or_default().trim().to_owned();
            answered.push(format!("{} {output}", response["command"].as_str().unwrap()).trim().to_owned());
        }
        answered.sort_unstable();
        assert_eq!(
            answered,
            ["bash one", "bash two", "frobnicate", "get_available_thinking_levels", "get_state"]
        );
    })
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn half_a_line_and_one_without_end_are_named_and_the_others_answered() {
    let server = SseServer::start([]).await;
    let home = recorded_home(server.url());
    tokio::task::spawn_blocking(move || {
        let mut client = RpcClient::start(&home, &["--mode", "rpc"]);
        client.send_raw("{\"id\":\"long\",\"type\":\"prompt\",\"message\":\"");
        for _ in 0..100 {
            client.send_raw(&"x".repeat(1 << 20));
        }
        client.send_raw("\"}\n");
        let refused = client.next().unwrap();
        assert_eq!(refused["error"], json!("Failed to parse command: the line is longer than 64 MiB"));
        let answered = client.request(json!({ "type": "get_available_thinking_levels" }), "next");
        assert_eq!(answered["success"], json!(true));
        client.send_raw("{\"id\":\"half\",\"type\":\"get_st");
        let (rest, status, _) = client.finish();
        assert_eq!((rest.len(), status.code()), (1, Some(0)), "{rest:?}");
        let error = rest[0]["error"].as_str().unwrap();
        assert!(error.starts_with("Failed to parse command: EOF while parsing a string"), "{error}");
    })
    .await
    .unwrap();
}

#[test]
fn commands_right_before_the_end_of_input_are_answered() {
    let home = TestHome::with_server("http://127.0.0.1:1");
    let commands = ["get_state", "get_messages", "get_available_models", "get_session_stats", "get_commands"];
    for round in 0..4 {
        let mut client = RpcClient::start(&home, &["--mode", "rpc"]);
        let lines = commands.map(|name| format!("{}\n", json!({ "id": name, "type": name })));
        client.send_raw(&lines.concat());
        client.close_input();
        let (lines, status, _) = client.finish();
        assert!(status.success());
        for name in commands {
            let response = lines.iter().find(|line| line["id"] == name);
            let is_answered = response.is_some_and(|response| response["success"] == true);
            assert!(is_answered, "round {round}: {name} in {lines:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_closes_its_end_of_the_output_ends_the_program_which_saves() {
    let gate = TestBarrier::default();
    let half = Reply::stream("text/event-stream").piece(chat::delta("Half")).gate(&gate);
    let server = SseServer::start([half]).await;
    let home = recorded_home(server.url());
    tokio::task::spawn_blocking(move || {
        let mut command = crate::support::program::pi(&home, &["--mode", "rpc"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        writeln!(input, "{}", json!({ "id": "1", "type": "prompt", "message": "go" })).unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        lines.find(|line| line.as_ref().unwrap().contains("text_delta")).unwrap().unwrap();
        drop(lines);
        writeln!(input, "{}", json!({ "id": "2", "type": "get_state" })).unwrap();
        // The input stays open: the program ends because nobody reads.
        let status = child.wait().unwrap();
        assert_eq!(status.code(), Some(141));
        let stored = home.entries();
        assert_eq!(stored.last().unwrap()["message"]["content"][0]["text"], json!("Half"));
    })
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_of_the_user_run_side_by_side() {
    let server = SseServer::start([]).await;
    let home = recorded_home(server.url());
    tokio::task::spawn_blocking(move || {
        let mut client = RpcClient::start(&home, &["--mode", "rpc"]);
        client.send(&json!({ "id": "1", "type": "bash", "command": "mkfifo pipe; echo first; read x < pipe; echo got $x; exit 3" }));
        let started = |line: &Value| line["type"] == "bash_execution_update" && line["id"] == "1";
        let lines = client.until(started);
        assert_eq!(lines.last().unwrap()["delta"], json!("first\n"));
        // The second one ends the first.
        client.send(&json!({ "id": "2", "type": "bash", "command": "echo hello > pipe", "excludeFromContext": true }));
        let mut data = BTreeMap::new();
        while data.len() < 2 {
            let response = client.until(|line| line["type"] == "response").pop().unwrap();
            data.insert(response["id"].to_string(), response["data"].clone());
        }
        let second = json!({ "output": "", "exitCode": 0, "cancelled": false, "truncated": false });
        assert_eq!(data["\"2\""], second);
        let first = &data["\"1\""];
        assert_eq!((&first["output"], &first["exitCode"]), (&json!("first\ngot hello\n"), &json!(3)));
        client.send(&json!({ "id": "3", "type": "bash", "command": "echo on; read x < pipe" }));
        client.until(|line| line["id"] == "3");
        client.send(&json!({ "id": "4", "type": "abort_bash" }));
        assert_eq!(client.response("3")["data"]["cancelled"], json!(true));
        let messages = client.request(json!({ "type": "get_messages" }), "5");
        let roles: Vec<&Value> =
            messages["data"]["messages"].as_array().unwrap().iter().map(|message| &message["role"]).collect();
        assert_eq!(roles, ["bashExecution", "bashExecution", "bashExecution"]);
    })
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn more_commands_of_the_user_than_may_run_are_refused() {
    let server = SseServer::start([]).await;
    let home = recorded_home(server.url());
    tokio::task::spawn_blocking(move || {
        let mut client = RpcClient::start(&home, &["--mode", "rpc"]);
        client.request(json!({ "type": "bash", "command": "mkfifo pipe" }), "mkfifo");
        let ids: Vec<String> = (1..=65).map(|nth| nth.to_string()).collect();
        for id in &ids {
            client.send(&json!({ "id": id, "type": "bash", "command": "read x < pipe" }));
        }
        let refused = client.until(|line| line["type"] == "response").pop().unwrap();
        let error = "64 commands are running already; wait until one ends, or cancel them";
        assert_eq!((&refused["id"], &refused["error"]), (&json!("65"), &json!(error)));
        client.send(&json!({ "id": "abort", "type": "abort_bash" }));
        let mut open: BTreeSet<String> = ids[..64].iter().cloned().collect();
        while !open.is_empty() {
            let response = client.until(|line| line["type"] == "response").pop().unwrap();
            open.remove(response["id"].as_str().unwrap());
        }
    })
    .await
    .unwrap();
}

#[test]
fn a_hundred_thousand_commands_are_answered_although_the_client_reads_nothing_until_all_are_sent() {
    const N: usize = 100_000;
    let home = TestHome::new();
    let args = ["--mode", "rpc", "--model", "demo/pi"];
    let (mut client, start_reading) = RpcClient::start_with(&home, &args, Reads::Later);
    let lines: Vec<String> =
        (0..N).map(|nth| format!("{{\"id\":{nth},\"type\":\"abort_retry\"}}\n")).collect();
    client.send_raw(&lines.concat());
    start_reading();
    for nth in 0..N {
        let line = client.next_text().unwrap();
        assert!(line.starts_with(&format!("{{\"id\":{nth},")) && line.contains("\"success\":true"), "{line}");
    }
    let (rest, status, _) = client.finish();
    assert_eq!((rest.len(), status.code()), (0, Some(0)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_reads_nothing_stops_nothing_and_loses_nothing() {
    let n_calls = 40;
    let call = |nth: usize| {
        let command = if nth < n_calls { "yes 0123456789 | head -c 40000" } else { "touch done" };
        Reply::sse(chat::calls(&[("bash", json!({ "command": command }))]))
    };
    let replies = (1..=n_calls).map(call).chain([Reply::sse(chat::text("All done."))]);
    let server = SseServer::start(replies).await;
    let home = recorded_home(server.url());
    tokio::task::spawn_blocking(move || {
        let (mut client, start_reading) = RpcClient::start_with(&home, &["--mode", "rpc"], Reads::Later);
        // The counts of the recorded answers are implausible for so much text, so they are estimated.
        client.send(&json!({ "id": "0", "type": "set_auto_compaction", "enabled": false }));
        client.send(&json!({ "id": "1", "type": "prompt", "message": "go" }));
        // More than a pipe holds: the session goes on all the same.
        wait_for_files(&home.project(), "the last call", || home.project().join("done").exists());
        start_reading();
        let lines = client.until(|line| line["type"] == "agent_settled");
        let n_results = lines.iter().filter(|line| line["type"] == "tool_execution_end").count();
        assert_eq!(n_results, n_calls);
        let text: String = lines
            .iter()
            .filter(|line| line["assistantMessageEvent"]["type"] == "text_delta")
            .map(|line| line["assistantMessageEvent"]["delta"].as_str().unwrap())
            .collect();
        assert_eq!(text, "All done.");
    })
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_or_the_end_of_input_ends_a_run_in_order() {
    let halves =
        |gate: &TestBarrier| Reply::stream("text/event-stream").piece(chat::delta("Half")).gate(gate);
    for signal in [None, Some(Signal::TERM), Some(Signal::HUP)] {
        let gate = TestBarrier::default();
        let server = SseServer::start([halves(&gate)]).await;
        let home = recorded_home(server.url());
        tokio::task::spawn_blocking(move || {
            let mut client = RpcClient::start(&home, &["--mode", "rpc"]);
            client.send(&json!({ "id": "1", "type": "prompt", "message": "go" }));
            client.until(|line| line["assistantMessageEvent"]["type"] == "text_delta");
            if let Some(signal) = signal {
                let pid = Pid::from_raw(i32::try_from(client.pid()).unwrap()).unwrap();
                kill_process(pid, signal).unwrap();
            }
            if signal.is_none() {
                client.close_input();
            }
            let rest = client.until(|line| line["type"] == "agent_settled");
            let (_, status, stderr) = client.finish();
            let kinds: Vec<&str> = rest.iter().map(|line| line["type"].as_str().unwrap()).collect();
            assert_eq!(
                kinds,
                ["message_update", "message_end", "turn_end", "agent_end", "agent_settled"],
                "{stderr}"
            );
            assert_eq!(rest[1]["message"]["stopReason"], json!("aborted"));
            let expected = signal.map_or(0, |signal| 128 + signal.as_raw());
            assert_eq!((status.code(), status.signal()), (Some(expected), None));
            let stored = home.entries();
            assert_eq!(stored.last().unwrap()["message"]["content"][0]["text"], json!("Half"));
        })
        .await
        .unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_are_asked_and_answered() {
    let costly = [chat::delta("Done."), chat::end("stop")].concat();
    let server = SseServer::start([Reply::sse(&costly), Reply::sse(&costly)]).await;
    let home = recorded_home(server.url());
    tokio::task::spawn_blocking(move || {
        let args = ["--mode", "rpc", "--provider", "acme", "--model", "m-1", "--max-session-cost", "0.0001"];
        let mut client = RpcClient::start(&home, &args);
        client.prompt("one");
        client.send(&json!({ "id": "2", "type": "prompt", "message": "two" }));
        let lines = client.until(|line| line["method"] == "select" || line["id"] == "2");
        let question = lines.iter().find(|line| line["method"] == "select");
        let question = question
            .cloned()
            .unwrap_or_else(|| client.until(|line| line["method"] == "select").pop().unwrap());
        let options = question["options"].as_array().unwrap();
        client.send(&json!({ "type": "extension_ui_response", "id": question["id"], "value": "nonsense" }));
        let refused = client.until(|line| line["command"] == "extension_ui_response").pop().unwrap();
        assert!(refused["error"].as_str().unwrap().starts_with("no such option"), "{refused}");
        client.send(&json!({ "type": "extension_ui_response", "id": question["id"], "value": options[1] }));
        assert_eq!(client.prompt("two again").last().unwrap()["aborted"], json!(false));
    })
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn trees_traces_searches_and_usage_are_read_by_commands() {
    let call = chat::calls(&[("bash", json!({ "command": "echo a needle" }))]);
    let server = SseServer::start([Reply::sse(call), Reply::sse(chat::text("Found it."))]).await;
    let home = recorded_home(server.url());
    tokio::task::spawn_blocking(move || {
        let mut client = RpcClient::start(&home, &["--mode", "rpc", "--name", "Walk"]);
        client.prompt("look for it");
        let entries = client.request(json!({ "type": "get_entries" }), "e");
        let entries = entries["data"]["entries"].as_array().unwrap().clone();
        let user = entries.iter().find(|entry| entry["message"]["role"] == "user").unwrap()["id"].clone();
        let since = client.request(json!({ "type": "get_entries", "since": user }), "s");
        let n_after = entries.iter().skip_while(|entry| entry["id"] != user).count() - 1;
        assert_eq!(since["data"]["entries"].as_array().unwrap().len(), n_after);

        let label = json!({ "type": "set_label", "entryId": user, "label": "start" });
        assert_eq!(client.request(label, "l")["success"], json!(true));
        let tree = client.request(json!({ "type": "get_tree" }), "t");
        let mut labels = BTreeMap::new();
        let mut nodes = tree["data"]["tree"].as_array().unwrap().clone();
        while let Some(node) = nodes.pop() {
            labels.insert(node["entry"]["id"].to_string(), node["label"].clone());
            nodes.extend(node["children"].as_array().unwrap().clone());
        }
        assert_eq!(labels.len(), entries.len() + 1);
        assert_eq!(labels[&user.to_string()], json!("start"));

        let trace = client.request(json!({ "type": "get_trace" }), "tr");
        assert_eq!(trace["data"]["messages"][0]["steps"][0]["calls"][0]["name"], json!("bash"));
        let stats = client.request(json!({ "type": "get_tool_stats" }), "ts");
        assert_eq!(stats["data"]["tools"][0]["calls"], json!(1));
        let found = client.request(json!({ "type": "list_sessions", "search": "found" }), "ls");
        assert_eq!(found["data"]["sessions"][0]["name"], json!("Walk"), "{found}");
        let usage = client.request(json!({ "type": "get_usage", "days": 36_500 }), "u");
        assert_eq!(usage["data"]["total"]["requests"], json!(2));
        let page = client.request(json!({ "type": "export_html", "outputPath": "out.html" }), "x");
        assert!(fs::read_to_string(page["data"]["path"].as_str().unwrap()).unwrap().contains("look for it"));

        let moved = client.request(json!({ "type": "navigate_tree", "entryId": user }), "n");
        assert_eq!(moved["data"], json!({ "cancelled": false }));
        let state = client.request(json!({ "type": "get_state" }), "st");
        assert_eq!(state["data"]["messageCount"], json!(1));
        let forks = client.request(json!({ "type": "get_fork_messages" }), "f");
        assert_eq!(forks["data"]["messages"], json!([{ "entryId": user, "text": "look for it" }]));
        let forked = client.request(json!({ "type": "fork", "entryId": user }), "fk");
        assert_eq!(forked["data"], json!({ "text": "look for it", "cancelled": false }));
        let child = client.request(json!({ "type": "new_session", "parentSession": "a.jsonl" }), "ns");
        assert_eq!(child["data"], json!({ "cancelled": false }));
    })
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn summaries_that_wait_handoffs_and_session_files_are_controlled_by_commands() {
    let long = "one\n".repeat(3000);
    let texts = [&*long, "Two.", "A summary.", "A goal: go on."];
    let server = SseServer::start(texts.map(|text| Reply::sse(chat::text(text)))).await;
    let home = recorded_home(server.url());
    tokio::task::spawn_blocking(move || {
        let mut client = RpcClient::start(&home, &["--mode", "rpc", "--provider", "acme", "--model", "m-1"]);
        client.prompt("first");
        client.prompt("second");
        let none = client.request(json!({ "type": "get_summary_draft" }), "g");
        assert_eq!(none["data"], json!({ "draft": null }));
        let refused = client.request(json!({ "type": "decide_summary", "decision": "accept" }), "d0");
        assert_eq!(refused["success"], json!(false), "{refused}");
        let waits = client.request(json!({ "type": "compact", "review": true }), "c");
        let draft = &waits["data"]["draft"];
        assert!(draft["text"].as_str().unwrap().contains("A summary."), "{waits}");
        assert_eq!(draft["model"], json!("acme/m-1"));
        let again = client.request(json!({ "type": "compact", "review": true }), "c2");
        assert_eq!(again["data"]["draft"]["text"], draft["text"], "the one that waits comes back");
        let n_compactions = |client: &mut RpcClient| {
            let entries = client.request(json!({ "type": "get_entries" }), "e");
            let entries = entries["data"]["entries"].as_array().unwrap();
            let compactions = entries.iter().filter(|entry| entry["type"] == "compaction");
            compactions.map(|entry| entry["summary"].clone()).collect::<Vec<_>>()
        };
        assert!(n_compactions(&mut client).is_empty());
        let saved = json!({ "type": "decide_summary", "decision": "save", "text": "changed" });
        assert_eq!(client.request(saved, "d1")["success"], json!(true));
        let now = client.request(json!({ "type": "get_summary_draft" }), "g2");
        assert_eq!(now["data"]["draft"]["text"], json!("changed"));
        let accepted = client.request(json!({ "type": "decide_summary", "decision": "accept" }), "d2");
        assert_eq!(accepted["success"], json!(true), "{accepted}");
        assert!(n_compactions(&mut client)[0].as_str().unwrap().starts_with("changed"));

        let out = json!({ "type": "export_session", "outputPath": "out.jsonl", "maskSecrets": true });
        let exported = client.request(out, "x");
        let file = exported["data"]["path"].clone();
        assert!(fs::read_to_string(file.as_str().unwrap()).unwrap().contains("second"));
        let handoff = client.request(json!({ "type": "handoff", "goal": "go on" }), "h");
        assert!(handoff["data"]["text"].as_str().unwrap().contains("go on"), "{handoff}");
        let state = client.request(json!({ "type": "get_state" }), "s");
        assert_eq!(state["data"]["messageCount"], json!(0));
        let imported = client.request(json!({ "type": "import_session", "path": file }), "i");
        assert_eq!(imported["data"], json!({ "cancelled": false }), "{imported}");
        assert_eq!(n_compactions(&mut client).len(), 1);
    })
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn context_use_is_estimated_after_a_first_answer_that_was_cancelled() {
    let begun = Reply::stream("text/event-stream").piece(chat::delta("Begun")).gate(&TestBarrier::default());
    let server = SseServer::start([begun]).await;
    let home = recorded_home(server.url());
    tokio::task::spawn_blocking(move || {
        let mut client = RpcClient::start(&home, &["--mode", "rpc", "--provider", "acme", "--model", "m-1"]);
        let use_now = |client: &mut RpcClient| {
            client.request(json!({ "type": "get_session_stats" }), "s")["data"]["contextUsage"].clone()
        };
        assert_eq!(use_now(&mut client)["tokens"], json!(0));
        client.send(&json!({ "type": "prompt", "message": "word ".repeat(1000) }));
        client.until(|line| line["type"] == "message_update");
        assert_eq!(client.request(json!({ "type": "abort" }), "a")["success"], json!(true));
        let tokens = use_now(&mut client)["tokens"].as_u64().unwrap();
        assert!((1000..5000).contains(&tokens), "{tokens}");
    })
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_are_listed_changed_and_read_again_by_commands() {
    let server = SseServer::start([]).await;
    let home = recorded_home(server.url());
    tokio::task::spawn_blocking(move || {
        let mut client = RpcClient::start(&home, &["--mode", "rpc"]);
        let setting = |client: &mut RpcClient, key: &str| {
            let all = client.request(json!({ "type": "get_settings" }), "g");
            let all = all["data"]["settings"].as_array().unwrap();
            let row = all.iter().find(|row| row["key"] == key).unwrap();
            (row["value"].clone(), row["origin"].clone())
        };
        let built_in = setting(&mut client, "steeringMode");
        let set = json!({ "type": "set_setting", "key": "steeringMode", "value": "all" });
        assert_eq!(client.request(set, "s")["success"], json!(true));
        assert_eq!(setting(&mut client, "steeringMode"), (json!("all"), json!("user")));
        let reset = json!({ "type": "set_setting", "key": "steeringMode" });
        assert_eq!(client.request(reset, "r")["success"], json!(true));
        assert_eq!(setting(&mut client, "steeringMode"), built_in);
        let wrong = json!({ "type": "set_setting", "key": "steeringMod", "value": 3 });
        let refused = client.request(wrong, "w");
        assert!(refused["error"].as_str().unwrap().contains("steeringMode"), "{refused}");
        fs::write(home.agent().join("settings.json"), "{\"followUpMode\": \"all\"}").unwrap();
        assert_eq!(client.request(json!({ "type": "reload" }), "l")["success"], json!(true));
        assert_eq!(setting(&mut client, "followUpMode"), (json!("all"), json!("user")));
        let scope = json!({ "type": "set_scoped_models", "patterns": ["acme/*"] });
        assert_eq!(client.request(scope, "sc")["success"], json!(true));
        let next = client.request(json!({ "type": "cycle_model" }), "c");
        assert!(next["data"].is_null() || next["data"]["isScoped"] == json!(true), "{next}");
    })
    .await
    .unwrap();
}

#[test]
fn messages_and_files_on_the_command_line_are_refused() {
    let home = TestHome::new();
    let (lines, status, stderr) = RpcClient::start(&home, &["--mode", "rpc", "@a.txt"]).finish();
    assert_eq!((lines.len(), status.code()), (0, Some(2)));
    assert!(stderr.contains("--mode rpc takes no messages"), "{stderr}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_example_prints_an_answer_and_its_cost() {
    if Command::new("python3").arg("--version").output().is_err() {
        println!("skipped: python3 is not installed");
        return;
    }
    let call = chat::calls(&[("bash", json!({ "command": "echo hi" }))]);
    let server = SseServer::start([Reply::sse(call), Reply::sse(chat::text("It greets."))]).await;
    let home = recorded_home(server.url());
    let output = tokio::task::spawn_blocking(move || {
        let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/rpc_client.py");
        let mut command = Command::new("python3");
        command.arg(example).args(["What does this do?", "--provider", "acme", "--model", "m-1"]);
        command
            .env_clear()
            .env("HOME", home.home())
            .env("TMPDIR", home.temp())
            .env("PI", env!("CARGO_BIN_EXE_pi"));
        command.env("PATH", "/usr/bin:/bin").env("PI_LOCAL_SERVERS", "none").current_dir(home.project());
        command.output().unwrap()
    });
    let output = output.await.unwrap();
    let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!(out, "\n[bash {\"command\": \"echo hi\"}]\nIt greets.\n", "{err}");
    assert_eq!((err.as_str(), output.status.code()), ("240 tokens, $0.0012\n", Some(0)));
}
