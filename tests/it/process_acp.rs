//! ACP mode as editors use it.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use pi::ai::TestBarrier;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::acp_client::{AcpClient, in_folder, of_kind, text_of};
use crate::support::chat;
use crate::support::files::wait_for_files;
use crate::support::long_session::LongSession;
use crate::support::program;
use crate::support::pty::TestHome;
use crate::support::sse_server::{Reply, SseServer};

/// Runs `test` with a user whose model gives these answers.
async fn with_answers(
    answers: impl IntoIterator<Item = Reply>,
    test: impl FnOnce(&TestHome, &SseServer) + Send + 'static,
) {
    let server = SseServer::start(answers).await;
    let home = TestHome::with_server(server.url());
    tokio::task::spawn_blocking(move || test(&home, &server)).await.unwrap();
}

fn says(text: &str) -> Reply {
    Reply::sse(chat::text(text))
}

#[test]
fn first_line_answers_initialize_and_names_a_way_to_sign_in() {
    let home = TestHome::new();
    let mut client = AcpClient::start(&home, &[]);
    client.send(
        "initialize",
        json!({
            "protocolVersion": 7,
            "clientCapabilities": { "fs": { "readTextFile": true, "writeTextFile": true }, "terminal": true,
                "_meta": { "terminal_output": true, "terminal-auth": true } },
        }),
    );
    let response = client.next().unwrap();
    let result = &response["result"];
    assert_eq!((&response["id"], &result["protocolVersion"]), (&json!(1), &json!(1)));
    assert_eq!(result["agentInfo"]["name"], "pi");
    assert_eq!(
        result["agentCapabilities"],
        json!({
            "loadSession": true,
            "promptCapabilities": { "image": true, "audio": false, "embeddedContext": true },
            "mcpCapabilities": { "http": false, "sse": false },
            "sessionCapabilities": { "list": {}, "delete": {}, "fork": {}, "resume": {}, "close": {} },
            "auth": {},
        })
    );
    let methods = result["authMethods"].as_array().unwrap();
    assert_eq!(methods[0]["id"], "stored-keys");
    assert_eq!(methods[1]["_meta"]["terminal-auth"]["args"], json!(["acp", "--login"]));
    let (rest, status, _) = client.finish();
    assert_eq!((rest, status.code()), (Vec::new(), Some(0)));
}

#[tokio::test]
async fn prompt_streams_text_and_ends_with_its_stop_reason() {
    let answer = Reply::sse([chat::delta("Hel"), chat::delta("lo"), chat::end("stop")].concat());
    with_answers([answer], |home, _| {
        let mut client = AcpClient::connect(home, json!({}));
        let id = client.send("session/new", in_folder(&home.project()));
        let opened = client.until_response(&id);
        assert_eq!(opened.len(), 1, "no update names a session before its response does: {opened:?}");
        let session = opened[0]["result"]["sessionId"].as_str().unwrap().to_owned();
        let (updates, response) = client.prompt(&session, "hi");
        assert_eq!(text_of(&updates, "agent_message_chunk"), "Hello");
        let chunks = of_kind(&updates, "agent_message_chunk");
        assert!(chunks.iter().all(|chunk| chunk["messageId"] == chunks[0]["messageId"]), "{chunks:?}");
        assert_eq!(response["result"]["stopReason"], "end_turn");
        assert_eq!(response["result"]["usage"]["outputTokens"], 20);
        assert_eq!(of_kind(&updates, "session_info_update")[0]["title"], "hi");
        let usage = of_kind(&updates, "usage_update");
        assert_eq!((&usage.last().unwrap()["used"], &usage[0]["size"]), (&json!(120), &json!(200_000)));
        let (_, status, stderr) = client.finish();
        assert_eq!((status.code(), stderr.as_str()), (Some(0), ""));
        let entries = home.entries();
        assert_eq!(entries[0]["id"], session.as_str());
        assert_eq!(entries.last().unwrap()["message"]["content"][0]["text"], "Hello");
    })
    .await;
}

#[tokio::test]
async fn cancelled_prompt_ends_with_cancelled_and_the_next_one_runs() {
    let gate = TestBarrier::new();
    let stuck = Reply::stream("text/event-stream").piece(chat::delta("so far")).gate(&gate);
    with_answers([stuck, says("again")], |home, _| {
        let mut client = AcpClient::connect(home, json!({}));
        let session = client.new_session(home);
        let prompt = client.send_prompt(&session, "go");
        client.until(|line| line["params"]["update"]["content"]["text"] == "so far");
        client.notify("session/cancel", json!({ "sessionId": session }));
        let response = client.until_response(&prompt).pop().unwrap();
        assert_eq!(response["result"]["stopReason"], "cancelled");
        let (updates, response) = client.prompt(&session, "go on");
        assert_eq!(text_of(&updates, "agent_message_chunk"), "again");
        assert_eq!(response["result"]["stopReason"], "end_turn");
    })
    .await;
}

#[tokio::test]
async fn end_of_input_cancels_what_runs_and_saves_it() {
    let gate = TestBarrier::new();
    let stuck = Reply::stream("text/event-stream").piece(chat::delta("so far")).gate(&gate);
    with_answers([stuck], |home, _| {
        let mut client = AcpClient::connect(home, json!({}));
        let session = client.new_session(home);
        let prompt = client.send_prompt(&session, "go");
        client.until(|line| line["params"]["update"]["content"]["text"] == "so far");
        let (rest, status, _) = client.finish();
        let response = rest.iter().find(|line| line["id"] == prompt).unwrap();
        assert_eq!((&response["result"]["stopReason"], status.code()), (&json!("cancelled"), Some(0)));
        let answer = home.entries().pop().unwrap();
        assert_eq!(answer["message"]["stopReason"], "aborted");
        assert_eq!(answer["message"]["content"][0]["text"], "so far");
    })
    .await;
}

#[test]
fn session_without_a_usable_model_asks_to_sign_in() {
    let home = TestHome::new();
    let mut client = AcpClient::connect(&home, json!({}));
    let check = |response: Value| {
        assert_eq!(response["error"]["code"], -32000, "{response}");
        let text = response["error"]["message"].as_str().unwrap();
        assert!(text.contains("pi auth login"), "{text}");
    };
    check(client.call("session/new", in_folder(&home.project())));
    check(client.call("authenticate", json!({ "methodId": "stored-keys" })));
    let response = client.call("authenticate", json!({ "methodId": "magic" }));
    assert_eq!(response["error"]["message"], "authenticate: there is no method magic");
    fs::write(home.agent().join("auth.json"), r#"{"groq":{"type":"api_key","key":"k"}}"#).unwrap();
    assert_eq!(client.call("authenticate", json!({ "methodId": "stored-keys" }))["result"], json!({}));
}

// Questions.

#[tokio::test]
async fn prompt_waits_for_the_answer_about_trust() {
    with_answers([says("done")], |home, _| {
        let skill = home.project().join(".pi/skills/own");
        fs::create_dir_all(&skill).unwrap();
        fs::write(skill.join("SKILL.md"), "---\nname: own\ndescription: Mine.\n---\nDo it.\n").unwrap();
        let mut client = AcpClient::connect(home, json!({}));
        let session = client.new_session(home);
        let prompt = client.send_prompt(&session, "go");
        let asked = client.asked("session/request_permission");
        let kinds: Vec<&str> = asked["params"]["options"]
            .as_array()
            .unwrap()
            .iter()
            .map(|option| option["kind"].as_str().unwrap())
            .collect();
        assert_eq!(kinds, ["reject_once", "allow_always", "allow_always", "allow_once", "reject_always"]);
        assert_eq!(asked["params"]["sessionId"], session.as_str());
        client.reply(&asked, json!({ "outcome": { "outcome": "selected", "optionId": "1" } }));
        let lines = client.until_response(&prompt);
        let updates = crate::support::acp_client::updates(&lines);
        assert_eq!(text_of(&updates, "agent_message_chunk"), "done");
        let commands = of_kind(&updates, "available_commands_update");
        let names: Vec<&Value> = commands[0]["availableCommands"]
            .as_array()
            .unwrap()
            .iter()
            .map(|command| &command["name"])
            .collect();
        assert!(names.contains(&&json!("skill:own")), "{names:?}");
        let trusted = fs::read_to_string(home.agent().join("trust.json")).unwrap();
        assert!(trusted.contains("true"), "{trusted}");
    })
    .await;
}

#[tokio::test]
async fn prompt_that_waits_for_trust_can_be_cancelled() {
    with_answers([says("later")], |home, server| {
        fs::create_dir_all(home.project().join(".pi/skills/own")).unwrap();
        fs::write(
            home.project().join(".pi/skills/own/SKILL.md"),
            "---\nname: own\ndescription: Mine.\n---\n",
        )
        .unwrap();
        let mut client = AcpClient::connect(home, json!({}));
        let session = client.new_session(home);
        let prompt = client.send_prompt(&session, "go");
        let asked = client.asked("session/request_permission");
        client.notify("session/cancel", json!({ "sessionId": session }));
        let response = client.until_response(&prompt).pop().unwrap();
        assert_eq!(response["result"]["stopReason"], "cancelled");
        client.reply(&asked, json!({ "outcome": { "outcome": "cancelled" } }));
        let (updates, _) = client.prompt(&session, "now");
        assert_eq!(text_of(&updates, "agent_message_chunk"), "later");
        assert_eq!(server.requests().len(), 1, "the cancelled prompt was not sent");
    })
    .await;
}

// Bad input.

#[tokio::test]
async fn bad_input_is_named_and_the_rest_goes_on() {
    let gate = TestBarrier::new();
    let stuck = Reply::stream("text/event-stream").piece(chat::delta("one")).gate(&gate);
    with_answers([stuck, says("two")], move |home, _| {
        let mut client = AcpClient::start(home, &[]);
        let error = |client: &AcpClient, id: Value, code: i64, text: &str| {
            let response = client.until(|line| line.get("error").is_some()).pop().unwrap();
            assert_eq!((&response["id"], &response["error"]["code"]), (&id, &json!(code)), "{response}");
            let message = response["error"]["message"].as_str().unwrap();
            assert!(message.contains(text), "{message}");
        };
        client.send("session/new", in_folder(&home.project()));
        error(&client, json!(1), -32600, "call initialize first");
        client.raw_text("{\"jsonrpc\":\"2.0\",\"id\":\n");
        error(&client, Value::Null, -32700, "EOF while parsing");
        client.raw_text(&format!("{{\"id\":\"{}\"}}\n", "x".repeat(100 << 20)));
        error(&client, Value::Null, -32700, "longer than 64 MiB");
        client.call("initialize", json!({ "protocolVersion": 1 }));
        client.raw(&json!({ "id": "a", "method": "session/frobnicate" }));
        error(&client, json!("a"), -32601, "there is no method session/frobnicate");
        client.raw(&json!({ "method": "_vendor/hello" }));
        client.raw(&json!({ "id": "b", "method": "session/prompt", "params": { "sessionId": "x" } }));
        error(&client, json!("b"), -32602, "missing field `prompt`");
        for method in ["session/prompt", "session/close", "session/set_config_option"] {
            let params = json!({ "sessionId": "x", "prompt": [], "configId": "model", "value": "m" });
            client.raw(&json!({ "id": "c", "method": method, "params": params }));
            error(&client, json!("c"), -32002, "session x is not open");
        }
        client.notify("session/cancel", json!({ "sessionId": "x" }));
        client.send("session/load", json!({ "sessionId": "x", "cwd": home.project(), "mcpServers": [] }));
        client.raw(&json!({ "id": "early", "method": "session/prompt",
            "params": { "sessionId": "x", "prompt": [] } }));
        error(&client, json!(3), -32002, "there is no session x");
        error(&client, json!("early"), -32002, "session x is not open");
        client.send("session/new", json!({ "cwd": "project", "mcpServers": [] }));
        error(&client, json!(4), -32602, "not an absolute path");
        let session = client.new_session(home);
        client.raw(&json!({ "id": "p", "method": "session/prompt",
            "params": { "sessionId": session, "prompt": [{ "type": "audio", "data": "", "mimeType": "audio/wav" }] } }));
        error(&client, json!("p"), -32602, "does not read audio");
        let prompt = client.send_prompt(&session, "go");
        client.until(|line| line["params"]["update"]["content"]["text"] == "one");
        client.raw(&json!({ "id": prompt, "method": "session/prompt",
            "params": { "sessionId": session, "prompt": [] } }));
        error(&client, prompt.clone(), -32600, "is open already");
        client.notify("$/cancel_request", json!({ "requestId": prompt }));
        let response = client.until_response(&prompt).pop().unwrap();
        assert_eq!(response["result"]["stopReason"], "cancelled");
        let (updates, _) = client.prompt(&session, "again");
        assert_eq!(text_of(&updates, "agent_message_chunk"), "two");
    })
    .await;
}

#[test]
fn requests_before_the_end_of_input_are_answered_and_half_a_line_is_named() {
    let home = TestHome::new();
    let mut client = AcpClient::start(&home, &[]);
    let folder = in_folder(&home.project());
    let requests = [
        json!({ "id": "i", "method": "initialize", "params": { "protocolVersion": 1 } }),
        json!({ "id": "n", "method": "session/new", "params": folder }),
        json!({ "id": "l", "method": "session/list", "params": {} }),
        json!({ "id": "a", "method": "authenticate", "params": { "methodId": "none" } }),
    ];
    for request in &requests {
        client.raw(request);
    }
    client.raw_text("{\"jsonrpc\":\"2.0\",\"id\":\"h\",\"meth");
    let (lines, status, _) = client.finish();
    for request in &requests {
        let n_answers = lines.iter().filter(|line| line["id"] == request["id"]).count();
        assert_eq!(n_answers, 1, "{request}: {lines:#?}");
    }
    let unnamed: Vec<&Value> =
        lines.iter().filter(|line| line.get("error").is_some() && line["id"].is_null()).collect();
    assert!(
        matches!(&unnamed[..], [line] if line["error"]["message"].as_str().unwrap().contains("EOF while parsing")),
        "{unnamed:?}"
    );
    assert_eq!(status.code(), Some(0));
}

#[tokio::test]
async fn prompt_sent_during_a_run_is_answered_when_its_own_run_ends() {
    let gate = TestBarrier::new();
    let first = Reply::stream("text/event-stream").piece(chat::delta("one")).gate(&gate);
    let first = first.piece(chat::end("stop"));
    with_answers([first, says("two")], move |home, _| {
        let mut client = AcpClient::connect(home, json!({}));
        let session = client.new_session(home);
        let one = client.send_prompt(&session, "first");
        client.until(|line| line["params"]["update"]["content"]["text"] == "one");
        let two = client.send_prompt(&session, "second");
        // The session has it once it answers what was sent later.
        client.call(
            "session/set_config_option",
            json!({ "sessionId": session, "configId": "model", "value": "local/m-1" }),
        );
        gate.open();
        let lines = client.until_response(&two);
        let of_one = lines.iter().position(|line| line["id"] == one).unwrap();
        let of_two =
            lines.iter().position(|line| line["params"]["update"]["content"]["text"] == "two").unwrap();
        assert!(of_one < of_two, "{lines:#?}");
        for line in [&lines[of_one], lines.last().unwrap()] {
            assert_eq!(line["result"]["stopReason"], "end_turn");
        }
    })
    .await;
}

#[tokio::test]
async fn client_that_reads_nothing_stops_nothing_and_loses_nothing() {
    let n_calls = 40;
    let call = |nth: usize| {
        let command = if nth < n_calls { "yes 0123456789 | head -c 40000" } else { "touch done" };
        Reply::sse(chat::calls(&[("bash", json!({ "command": command }))]))
    };
    let answers: Vec<Reply> = (1..=n_calls).map(call).chain([says("All done.")]).collect();
    with_answers(answers, move |home, _| {
        // The client knows the session from before.
        let folder = home.agent().join("sessions/--all--");
        fs::create_dir_all(&folder).unwrap();
        LongSession::plain(6, 400)
            .write(&folder.join("s.jsonl"), "known", home.project().to_str().unwrap())
            .unwrap();
        let (mut client, read) = AcpClient::start_unread(home, &["--model", "local/m-1"]);
        client.send("initialize", json!({ "protocolVersion": 1 }));
        client.send("session/load", named("known", home));
        let prompt = client.send_prompt("known", "go");
        // More than a pipe holds: the session goes on all the same.
        wait_for_files(&home.project(), "the last call", || home.project().join("done").exists());
        read();
        assert!(client.next_text().unwrap().contains("agentCapabilities"));
        let lines = client.until_response(&prompt);
        let updates = crate::support::acp_client::updates(&lines);
        let ended = updates.iter().filter(|update| update["status"] == "completed");
        assert!(ended.count() >= n_calls, "every result comes");
        assert!(text_of(&updates, "agent_message_chunk").ends_with("All done."));
        assert_eq!(lines.last().unwrap()["result"]["stopReason"], "end_turn");
    })
    .await;
}

// Tool calls.

fn calls(calls: &[(&str, Value)]) -> Reply {
    Reply::sse(chat::calls(calls))
}

/// The updates of the call `id`, merged in order.
fn call(updates: &[Value], id: &str) -> Value {
    let mut call = json!({});
    for update in updates.iter().filter(|update| update["toolCallId"] == id) {
        for (name, value) in update.as_object().unwrap() {
            call[name] = value.clone();
        }
    }
    call
}

#[tokio::test]
async fn tool_calls_have_kinds_locations_diffs_and_results() {
    let edit = json!({ "path": "a.txt", "edits": [{ "oldText": "two", "newText": "2" }] });
    let answers = [
        calls(&[
            ("read", json!({ "path": "a.txt", "offset": 2 })),
            ("edit", edit),
            ("write", json!({ "path": "b.txt", "content": "new\n" })),
            ("write", json!({ "path": "c.txt", "content": "now\n" })),
            ("read", json!({ "path": "missing" })),
        ]),
        says("done"),
    ];
    with_answers(answers, |home, _| {
        fs::write(home.project().join("a.txt"), "one\ntwo\nthree\n").unwrap();
        fs::write(home.project().join("c.txt"), "before\n").unwrap();
        let mut client = AcpClient::connect(home, json!({}));
        let session = client.new_session(home);
        let (updates, response) = client.prompt(&session, "go");
        assert_eq!(response["result"]["stopReason"], "end_turn");
        let path = |name: &str| json!(home.project().join(name));
        let announced = of_kind(&updates, "tool_call");
        assert_eq!(announced.len(), 5, "{announced:#?}");
        assert_eq!((&announced[0]["kind"], &announced[0]["name"]), (&json!("read"), &json!("read")));
        let read = call(&updates, "call_0");
        assert_eq!((&read["title"], &read["status"]), (&json!("Read a.txt:2-"), &json!("completed")));
        assert_eq!(read["locations"], json!([{ "path": path("a.txt"), "line": 2 }]));
        assert_eq!(read["rawInput"], json!({ "path": "a.txt", "offset": 2 }));
        assert_eq!(read["content"][0]["content"]["text"], "two\nthree\n");
        let edit = call(&updates, "call_1");
        assert_eq!(
            edit["content"],
            json!([{
                "type": "diff", "path": path("a.txt"),
                "oldText": "one\ntwo\nthree\n", "newText": "one\n2\nthree\n",
            }])
        );
        assert_eq!(edit["locations"], json!([{ "path": path("a.txt"), "line": 2 }]));
        let new = call(&updates, "call_2");
        assert_eq!(new["content"], json!([{ "type": "diff", "path": path("b.txt"), "newText": "new\n" }]));
        let replaced = json!([{
            "type": "diff", "path": path("c.txt"), "oldText": "before\n", "newText": "now\n",
        }]);
        assert_eq!(call(&updates, "call_3")["content"], replaced);
        let missing = call(&updates, "call_4");
        assert_eq!(missing["status"], "failed");
        let states = updates.iter().filter(|update| update["toolCallId"] == "call_0");
        let states: Vec<&str> = states.filter_map(|update| update["status"].as_str()).collect();
        assert_eq!(states, ["in_progress", "completed"]);
    })
    .await;
}

#[tokio::test]
async fn output_of_commands_is_drawn_in_a_terminal_where_there_is_one() {
    let command = json!({ "command": "printf one; read line < gate; printf two; exit 3" });
    with_answers([calls(&[("bash", command)]), says("done")], |home, _| {
        let gate = home.project().join("gate");
        rustix::fs::mknodat(rustix::fs::CWD, &gate, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0)
            .unwrap();
        let mut client = AcpClient::connect(home, json!({ "_meta": { "terminal_output": true } }));
        let session = client.new_session(home);
        let prompt = client.send_prompt(&session, "go");
        let mut lines =
            client.until(|line| line["params"]["update"]["_meta"]["terminal_output"]["data"] == "one");
        fs::write(&gate, "go\n").unwrap();
        lines.extend(client.until_response(&prompt));
        let updates = crate::support::acp_client::updates(&lines);
        let start = updates.iter().find(|update| update["status"] == "in_progress").unwrap();
        assert_eq!(start["content"], json!([{ "type": "terminal", "terminalId": "call_0" }]));
        assert_eq!(start["_meta"]["terminal_info"]["terminal_id"], "call_0");
        let data = updates.iter().filter_map(|update| update["_meta"]["terminal_output"]["data"].as_str());
        assert_eq!(data.collect::<String>(), "onetwo\n\nCommand exited with code 3");
        let end = updates.iter().find(|update| update["status"] == "failed").unwrap();
        let exit = json!({ "terminal_id": "call_0", "exit_code": 3, "signal": null });
        assert_eq!(end["_meta"]["terminal_exit"], exit);
        assert!(end.get("content").is_none(), "the terminal stays: {end}");
    })
    .await;
}

#[tokio::test]
async fn output_of_commands_is_text_where_there_is_no_terminal() {
    let command = json!({ "command": "echo hello" });
    with_answers([calls(&[("bash", command)]), says("done")], |home, _| {
        let mut client = AcpClient::connect(home, json!({}));
        let session = client.new_session(home);
        let (updates, _) = client.prompt(&session, "go");
        let bash = call(&updates, "call_0");
        assert_eq!((&bash["title"], &bash["status"]), (&json!("echo hello"), &json!("completed")));
        assert_eq!(bash["content"][0]["content"]["text"], "hello\n");
        assert_eq!(of_kind(&updates, "tool_call")[0]["kind"], "execute");
    })
    .await;
}

#[tokio::test]
async fn cancelled_calls_end_as_failed() {
    let command = json!({ "command": "printf on; read line < gate" });
    with_answers([calls(&[("bash", command)])], |home, _| {
        let gate = home.project().join("gate");
        rustix::fs::mknodat(rustix::fs::CWD, &gate, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0)
            .unwrap();
        let mut client = AcpClient::connect(home, json!({}));
        let session = client.new_session(home);
        let prompt = client.send_prompt(&session, "go");
        client.until(|line| line["params"]["update"]["content"][0]["content"]["text"] == "on");
        client.notify("session/cancel", json!({ "sessionId": session }));
        let lines = client.until_response(&prompt);
        assert_eq!(lines.last().unwrap()["result"]["stopReason"], "cancelled");
        let updates = crate::support::acp_client::updates(&lines);
        assert_eq!(call(&updates, "call_0")["status"], "failed");
    })
    .await;
}

#[tokio::test]
async fn thoughts_are_streamed_apart_from_the_answer() {
    let thought = r#"{"id":"r","model":"m-1","choices":[{"index":0,"delta":{"reasoning_content":"hm"},"finish_reason":null}]}"#;
    let answer = Reply::sse([&format!("data: {thought}\n\n"), &*chat::text("so")].concat());
    with_answers([answer], |home, _| {
        let mut client = AcpClient::connect(home, json!({}));
        let session = client.new_session(home);
        let (updates, _) = client.prompt(&session, "go");
        assert_eq!(text_of(&updates, "agent_thought_chunk"), "hm");
        assert_eq!(text_of(&updates, "agent_message_chunk"), "so");
    })
    .await;
}

#[tokio::test]
async fn failed_request_is_an_error_of_its_prompt() {
    let refused = |status: u16, text: &str| {
        Reply::status(status, &[], &json!({ "error": { "message": text } }).to_string())
    };
    let answers = [refused(401, "wrong key"), refused(400, "no such thing"), says("ok")];
    with_answers(answers, |home, _| {
        let mut client = AcpClient::connect(home, json!({}));
        let session = client.new_session(home);
        for (code, text) in [(-32000, "wrong key"), (-32603, "no such thing")] {
            let (_, response) = client.prompt(&session, text);
            assert_eq!(response["error"]["code"], code, "{response}");
            assert!(response["error"]["message"].as_str().unwrap().contains(text), "{response}");
        }
        assert_eq!(client.prompt(&session, "again").1["result"]["stopReason"], "end_turn");
    })
    .await;
}

// Files of the client.

#[tokio::test]
async fn unsaved_changes_of_the_client_count_and_writes_go_through_it() {
    let edit = json!({ "path": "a.txt", "edits": [{ "oldText": "unsaved", "newText": "edited" }] });
    let answers = [
        calls(&[("read", json!({ "path": "a.txt" }))]),
        calls(&[("edit", edit)]),
        calls(&[("write", json!({ "path": "b.txt", "content": "new\n" }))]),
        says("done"),
    ];
    with_answers(answers, |home, server| {
        fs::write(home.project().join("a.txt"), "saved\r\n").unwrap();
        let files = json!({ "fs": { "readTextFile": true, "writeTextFile": true } });
        let mut client = AcpClient::connect(home, files);
        let session = client.new_session(home);
        let prompt = client.send_prompt(&session, "go");
        let read = client.asked("fs/read_text_file");
        assert_eq!(read["params"], json!({ "sessionId": session, "path": home.project().join("a.txt") }));
        client.reply(&read, json!({ "content": "unsaved\n" }));
        let again = client.asked("fs/read_text_file");
        client.reply(&again, json!({ "content": "unsaved\n" }));
        let write = client.asked("fs/write_text_file");
        assert_eq!(write["params"]["content"], "edited\n");
        client.reply(&write, json!({}));
        let create = client.asked("fs/write_text_file");
        assert_eq!(create["params"]["path"], json!(home.project().join("b.txt")));
        // A client that cannot write leaves it to pi.
        client.raw(&json!({ "id": create["id"], "error": { "code": -32603, "message": "not mine" } }));
        client.until_response(&prompt);
        let results: Vec<String> =
            server.requests()[1..].iter().map(|request| request.text.clone()).collect();
        assert!(results[0].contains("unsaved") && !results[0].contains("saved\\r"), "{}", results[0]);
        assert!(results[1].contains("Successfully replaced") && !results[1].contains("had changed"));
        assert_eq!(fs::read_to_string(home.project().join("a.txt")).unwrap(), "saved\r\n");
        assert_eq!(fs::read_to_string(home.project().join("b.txt")).unwrap(), "new\n");
    })
    .await;
}

#[tokio::test]
async fn file_without_unsaved_changes_keeps_its_line_breaks() {
    let edit = json!({ "path": "a.txt", "edits": [{ "oldText": "two", "newText": "2" }] });
    with_answers([calls(&[("edit", edit)]), says("done")], |home, _| {
        fs::write(home.project().join("a.txt"), "one\r\ntwo\r\n").unwrap();
        let mut client = AcpClient::connect(home, json!({ "fs": { "readTextFile": true } }));
        let session = client.new_session(home);
        let prompt = client.send_prompt(&session, "go");
        let read = client.asked("fs/read_text_file");
        client.reply(&read, json!({ "content": "one\ntwo\n" }));
        client.until_response(&prompt);
        assert_eq!(fs::read_to_string(home.project().join("a.txt")).unwrap(), "one\r\n2\r\n");
    })
    .await;
}

// Sessions.

fn named(session: &str, home: &TestHome) -> Value {
    json!({ "sessionId": session, "cwd": home.project(), "mcpServers": [] })
}

#[tokio::test]
async fn loaded_session_is_replayed_before_the_response_and_a_resumed_one_is_not() {
    let answers = [
        calls(&[("write", json!({ "path": "a", "content": "x" })), ("read", json!({ "path": "missing" }))]),
        says("done"),
        says("more"),
        says("and more"),
    ];
    with_answers(answers, |home, _| {
        let mut client = AcpClient::connect(home, json!({}));
        let session = client.new_session(home);
        client.prompt(&session, "go");
        client.call("session/close", json!({ "sessionId": session }));
        client.finish();

        let mut client = AcpClient::connect(home, json!({}));
        let id = client.send("session/load", named(&session, home));
        let mut lines = client.until_response(&id);
        let response = lines.pop().unwrap();
        assert_eq!(response["result"]["configOptions"][0]["currentValue"], "local/m-1");
        let updates = crate::support::acp_client::updates(&lines);
        assert_eq!(updates.len(), lines.len(), "{lines:#?}");
        let kinds: Vec<&str> =
            updates.iter().map(|update| update["sessionUpdate"].as_str().unwrap()).collect();
        let expected = [
            "user_message_chunk",
            "tool_call",
            "tool_call",
            "tool_call_update",
            "tool_call_update",
            "agent_message_chunk",
        ];
        assert_eq!(kinds, expected);
        assert_eq!(text_of(&updates, "user_message_chunk"), "go");
        assert_eq!(
            (&call(&updates, "call_0")["status"], &call(&updates, "call_1")["status"]),
            (&json!("completed"), &json!("failed"))
        );
        assert_eq!(call(&updates, "call_0")["content"][0]["type"], "diff");
        // Loading it again replays the open session.
        let id = client.send("session/load", named(&session, home));
        let again = crate::support::acp_client::updates(&client.until_response(&id));
        assert_eq!(text_of(&again, "user_message_chunk"), "go");
        assert_eq!(text_of(&client.prompt(&session, "on").0, "agent_message_chunk"), "more");
        client.finish();

        let mut client = AcpClient::connect(home, json!({}));
        let id = client.send("session/resume", named(&session, home));
        assert_eq!(client.until_response(&id).len(), 1, "nothing is replayed");
        assert_eq!(text_of(&client.prompt(&session, "on").0, "agent_message_chunk"), "and more");
    })
    .await;
}

#[tokio::test]
async fn sessions_are_listed_forked_and_deleted() {
    with_answers([says("one"), says("two"), says("three")], |home, _| {
        let mut client = AcpClient::connect(home, json!({}));
        let first = client.new_session(home);
        client.prompt(&first, "the first\nprompt");
        let second = client.new_session(home);
        client.prompt(&second, "the second");
        let ids = |list: &Value| -> Vec<String> {
            let sessions = list["result"]["sessions"].as_array().unwrap_or_else(|| panic!("{list}"));
            sessions.iter().map(|session| session["sessionId"].as_str().unwrap().to_owned()).collect()
        };
        let list = client.call("session/list", json!({ "cwd": home.project() }));
        assert_eq!(ids(&list), [second.clone(), first.clone()]);
        assert_eq!(list["result"]["sessions"][1]["title"], "the first prompt");
        assert_eq!(list["result"]["sessions"][0]["cwd"], json!(home.project()));
        assert_eq!(ids(&client.call("session/list", json!({ "cwd": home.home() }))), [""; 0]);
        assert_eq!(ids(&client.call("session/list", json!({}))).len(), 2);
        let wrong = client.call("session/list", json!({ "cursor": "x" }));
        assert_eq!(wrong["error"]["code"], -32602);

        let open = client.call("session/delete", json!({ "sessionId": first }));
        assert!(open["error"]["message"].as_str().unwrap().contains("close it first"), "{open}");
        let fork = client.call("session/fork", named(&first, home));
        let fork = fork["result"]["sessionId"].as_str().unwrap().to_owned();
        assert_ne!(fork, first);
        assert_eq!(text_of(&client.prompt(&fork, "on").0, "agent_message_chunk"), "three");
        client.call("session/close", json!({ "sessionId": first }));
        let elsewhere = json!({ "sessionId": first, "cwd": home.home(), "mcpServers": [] });
        let error = client.call("session/load", elsewhere);
        assert_eq!(error["error"]["code"], -32602, "{error}");
        assert_eq!(client.call("session/delete", json!({ "sessionId": first }))["result"], json!({}));
        assert_eq!(client.call("session/load", named(&first, home))["error"]["code"], -32002);
        assert_eq!(client.call("session/delete", json!({ "sessionId": first }))["result"], json!({}));
    })
    .await;
}

#[test]
fn pages_of_the_list_contain_every_session_once() {
    let home = TestHome::with_server("http://127.0.0.1:1");
    let folder = home.agent().join("sessions/--all--");
    fs::create_dir_all(&folder).unwrap();
    for number in 0..120 {
        let header = json!({ "type": "session", "version": 3, "id": format!("s{number:03}"),
            "timestamp": "2026-11-21T09:00:00.000Z", "cwd": home.project() });
        fs::write(folder.join(format!("{number}.jsonl")), format!("{header}\n")).unwrap();
    }
    let mut client = AcpClient::connect(&home, json!({}));
    let (mut ids, mut sizes, mut cursor) = (std::collections::BTreeSet::new(), Vec::new(), None::<Value>);
    loop {
        let params = cursor.map_or(json!({}), |cursor| json!({ "cursor": cursor }));
        let list = client.call("session/list", params);
        let sessions = list["result"]["sessions"].as_array().unwrap();
        sizes.push(sessions.len());
        ids.extend(sessions.iter().map(|session| session["sessionId"].to_string()));
        cursor = list["result"].get("nextCursor").cloned();
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!((sizes, ids.len()), (vec![50, 50, 20], 120));
}

#[test]
fn session_of_ten_thousand_messages_is_replayed_whole_and_in_order() {
    let home = TestHome::with_server("http://127.0.0.1:1");
    let folder = home.agent().join("sessions/--all--");
    fs::create_dir_all(&folder).unwrap();
    let cwd = home.project();
    LongSession::plain(10_000, 400).write(&folder.join("long.jsonl"), "long", cwd.to_str().unwrap()).unwrap();
    let mut client = AcpClient::connect(&home, json!({}));
    let id = client.send("session/load", named("long", &home));
    let mut lines = client.until_response(&id);
    assert!(lines.pop().unwrap()["result"].is_object());
    let updates = crate::support::acp_client::updates(&lines);
    let n_of = |kind: &str| of_kind(&updates, kind).len();
    // Turns of six messages: prompt, call, result, call, result, answer.
    let of_turn = |within: &[usize]| (0..10_000).filter(|at| within.contains(&(at % 6))).count();
    assert_eq!(n_of("user_message_chunk"), of_turn(&[0]));
    assert_eq!(n_of("tool_call"), of_turn(&[1, 3]));
    assert_eq!(n_of("agent_thought_chunk"), of_turn(&[1, 3]));
    assert_eq!(n_of("agent_message_chunk"), of_turn(&[5]));
    let results: Vec<&str> = of_kind(&updates, "tool_call_update")
        .iter()
        .map(|update| update["toolCallId"].as_str().unwrap())
        .collect();
    let expected: Vec<String> =
        (0..10_000).filter(|at| [1, 3].contains(&(at % 6))).map(|at| format!("call_{at}")).collect();
    assert_eq!(results, expected);
}

// Options and commands.

#[cfg(target_os = "linux")]
#[test]
fn output_takes_a_megabyte_before_the_client_must_read() {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::process::Stdio;

    use rustix::pipe::{fcntl_getpipe_size, fcntl_setpipe_size};

    let (_reader, own) = std::io::pipe().unwrap();
    let Ok(size) = fcntl_setpipe_size(&own, 1 << 20) else {
        eprintln!("skipped: the system gives this user no larger pipe");
        return;
    };
    let home = TestHome::with_server("http://127.0.0.1:1");
    let (reader, writer) = std::io::pipe().unwrap();
    let mut command = program::pi(&home, &["acp"]);
    let mut child = command.stdin(Stdio::piped()).stdout(writer).spawn().unwrap();
    drop(command);
    let mut lines = BufReader::new(reader);
    child.stdin.as_mut().unwrap().write_all(b"not a request\n").unwrap();
    lines.read_line(&mut String::new()).unwrap();
    assert_eq!(fcntl_getpipe_size(lines.get_ref()).unwrap(), size);
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

fn two_models(url: &str) -> TestHome {
    let home = TestHome::new();
    let models = json!({ "providers": { "acme": {
        "baseUrl": url, "api": "openai-completions", "apiKey": "key",
        "models": [{ "id": "thinks", "reasoning": true }, { "id": "plain", "name": "Plain" }],
    } } });
    fs::write(home.agent().join("models.json"), models.to_string()).unwrap();
    home
}

#[test]
fn model_and_thinking_level_are_options() {
    let home = two_models("http://127.0.0.1:1");
    let mut client = AcpClient::connect(&home, json!({}));
    let opened = client.call("session/new", in_folder(&home.project()));
    let session = opened["result"]["sessionId"].as_str().unwrap().to_owned();
    let options = &opened["result"]["configOptions"];
    assert_eq!((&options[0]["category"], &options[0]["type"]), (&json!("model"), &json!("select")));
    let values: Vec<&Value> =
        options[0]["options"].as_array().unwrap().iter().map(|option| &option["value"]).collect();
    assert_eq!(values, ["acme/thinks", "acme/plain"]);
    assert_eq!(options[1]["category"], "thought_level");
    let mut set = |id: &str, value: &str| {
        client.call(
            "session/set_config_option",
            json!({ "sessionId": session, "configId": id, "value": value }),
        )
    };
    let set_level = set("thought_level", "low");
    assert_eq!(set_level["result"]["configOptions"][1]["currentValue"], "low");
    let set_model = set("model", "acme/plain");
    let options = set_model["result"]["configOptions"].as_array().unwrap();
    assert_eq!((options.len(), &options[0]["currentValue"]), (1, &json!("acme/plain")));
    for (id, value, expected) in [
        ("model", "acme/none", "there is no model acme/none"),
        ("thought_level", "high", "plain has no thinking level high"),
        ("mood", "good", "there is no option mood"),
    ] {
        let error = set(id, value);
        assert_eq!(error["error"]["code"], -32602, "{error}");
        assert!(error["error"]["message"].as_str().unwrap().contains(expected), "{error}");
    }
    let mode = client.call("session/set_mode", json!({ "sessionId": session, "modeId": "ask" }));
    assert_eq!(mode["error"]["code"], -32602);
}

#[tokio::test]
async fn commands_answer_like_the_agent_and_change_the_session() {
    with_answers([says("hello")], |home, server| {
        fs::create_dir_all(home.agent().join("prompts")).unwrap();
        fs::write(home.agent().join("prompts/greet.md"), "Greet $1.\n").unwrap();
        let mut client = AcpClient::connect(home, json!({}));
        let session = client.new_session(home);
        let announced =
            client.until(|line| line["params"]["update"]["sessionUpdate"] == "available_commands_update");
        let commands = &announced.last().unwrap()["params"]["update"]["availableCommands"];
        let names: Vec<&str> =
            commands.as_array().unwrap().iter().map(|command| command["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["compact", "export", "model", "name", "reload", "session", "thinking", "greet"]);
        let mut say = |text: &str| {
            let (updates, response) = client.prompt(&session, text);
            assert_eq!(response["result"]["stopReason"], "end_turn", "{response}");
            (text_of(&updates, "agent_message_chunk"), updates)
        };
        let (text, updates) = say("/name My work");
        assert_eq!(text, "The session is named My work.");
        assert_eq!(of_kind(&updates, "session_info_update")[0]["title"], "My work");
        assert_eq!(say("/greet Ada").0, "hello");
        assert!(server.requests()[0].text.contains("Greet Ada."));
        assert!(say("/session").0.contains("- Model: local/m-1"));
        assert_eq!(say("/model").0, "The model is local/m-1.");
        assert!(say("/model none/such").0.contains("none/such"));
        assert_eq!(say("/export page.html").0, "Wrote page.html.");
        assert!(home.project().join("page.html").exists());
        assert!(say("/export page.html").0.contains("cannot write"));
        assert!(say("/compact").0.to_lowercase().contains("compact"));
        assert_eq!(server.requests().len(), 1, "commands cost nothing");
    })
    .await;
}

#[tokio::test]
async fn images_and_embedded_files_reach_the_model() {
    with_answers([says("seen")], |home, server| {
        let models = fs::read_to_string(home.agent().join("models.json")).unwrap();
        let models = models.replace("\"contextWindow\"", "\"input\":[\"text\",\"image\"],\"contextWindow\"");
        fs::write(home.agent().join("models.json"), models).unwrap();
        let mut client = AcpClient::connect(home, json!({}));
        let session = client.new_session(home);
        let pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
        let uri = |name: &str| format!("file://{}", home.project().join(name).display());
        let response = client.call("session/prompt", json!({ "sessionId": session, "prompt": [
            { "type": "text", "text": "compare " },
            { "type": "resource_link", "uri": uri("a.rs"), "name": "a.rs" },
            { "type": "text", "text": " with " },
            { "type": "resource", "resource": { "uri": uri("b.rs"), "text": "fn b() {}" } },
            { "type": "image", "data": pixel, "mimeType": "image/png" },
        ] }));
        assert_eq!(response["result"]["stopReason"], "end_turn");
        let sent = &server.requests()[0].text;
        assert!(sent.contains("compare @a.rs with @b.rs\\n\\n<file name=\\\"b.rs\\\">\\nfn b() {}\\n</file>"), "{sent}");
        assert!(sent.contains("data:image/png;base64,"), "{sent}");
    })
    .await;
}

#[tokio::test]
async fn servers_that_the_client_passes_are_named_as_unused() {
    with_answers([says("ok")], |home, _| {
        let mut client = AcpClient::connect(home, json!({ "session": { "notices": {} } }));
        let servers = json!([
            { "name": "ide", "command": "/bin/ide-mcp", "args": [], "env": [] },
            { "type": "http", "name": "web", "url": "http://localhost:1", "headers": [] },
        ]);
        let opened = client.call("session/new", json!({ "cwd": home.project(), "mcpServers": servers }));
        let session = opened["result"]["sessionId"].as_str().unwrap().to_owned();
        let (updates, _) = client.prompt(&session, "go");
        let notices = of_kind(&updates, "notice");
        assert_eq!(notices[0]["title"], "pi does not use MCP servers yet; it ignores ide, web.");
        let (_, _, stderr) = client.finish();
        assert!(stderr.contains("it ignores ide, web"), "{stderr}");
    })
    .await;
}

// Dialogues of clients.

/// Whether `found` has everything that `expected` has. A word with a dollar is known already,
/// or becomes what stands in its place.
fn matches(expected: &Value, found: &Value, words: &mut BTreeMap<String, Value>) -> bool {
    match (expected, found) {
        (Value::String(text), _) if text == "$ANY" => !found.is_null(),
        (Value::String(text), _) if ["$SESSION", "$ASKED"].contains(&text.as_str()) => {
            match words.get(text) {
                Some(known) if text == "$SESSION" => known == found,
                _ => words.insert(text.clone(), found.clone()).is_none_or(|_| true),
            }
        }
        (Value::Object(expected), Value::Object(found)) => expected
            .iter()
            .all(|(name, value)| found.get(name).is_some_and(|found| matches(value, found, words))),
        (Value::Array(expected), Value::Array(found)) => {
            expected.len() == found.len()
                && expected.iter().zip(found).all(|(expected, found)| matches(expected, found, words))
        }
        _ => expected == found,
    }
}

/// `message` with its words.
fn filled(message: &Value, words: &BTreeMap<String, Value>) -> Value {
    match message {
        Value::String(text) if words.contains_key(text) => words[text].clone(),
        Value::String(text) => {
            let filled = words.iter().fold(text.clone(), |text, (word, value)| {
                value.as_str().map_or(text.clone(), |value| text.replace(word, value))
            });
            filled.into()
        }
        Value::Array(values) => values.iter().map(|value| filled(value, words)).collect(),
        Value::Object(fields) => {
            let filled = fields.iter().map(|(name, value)| (name.clone(), filled(value, words)));
            Value::Object(filled.collect())
        }
        other => other.clone(),
    }
}

fn model_answer(answer: &Value) -> Reply {
    if let Some(text) = answer["text"].as_str() {
        return says(text);
    }
    if let Some(text) = answer["stuck"].as_str() {
        return Reply::stream("text/event-stream").piece(chat::delta(text)).gate(&TestBarrier::new());
    }
    let calls: Vec<(&str, Value)> = answer["calls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|call| (call[0].as_str().unwrap(), call[1].clone()))
        .collect();
    Reply::sse(chat::calls(&calls))
}

/// Plays the client of a dialogue, and reads until each message that is expected comes. What
/// comes in between are updates.
async fn play(name: &'static str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/acp").join(name);
    let dialogue = fs::read_to_string(path.with_extension("jsonl")).unwrap();
    let dialogue: Vec<Value> = dialogue.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let answers: Vec<Reply> =
        dialogue.iter().filter_map(|line| line.get("model")).map(model_answer).collect();
    with_answers(answers, move |home, _| {
        fs::write(home.project().join("a.txt"), "saved\n").unwrap();
        let mut words = BTreeMap::from([("$CWD".to_owned(), json!(home.project()))]);
        let mut client = AcpClient::start(home, &[]);
        for line in &dialogue {
            if let Some(message) = line.get("in") {
                client.raw(&filled(message, &words));
            } else if let Some(expected) = line.get("out") {
                let expected =
                    filled(expected, &BTreeMap::from([("$CWD".to_owned(), words["$CWD"].clone())]));
                loop {
                    let found = client.next().unwrap_or_else(|| panic!("{name} ended before {expected}"));
                    if matches(&expected, &found, &mut words) {
                        break;
                    }
                    assert_eq!(
                        found["method"], "session/update",
                        "{name}: expected {expected}, found {found}"
                    );
                }
            }
        }
        let (_, status, _) = client.finish();
        assert_eq!(status.code(), Some(0), "{name}");
    })
    .await;
}

#[tokio::test]
async fn dialogue_of_zed_runs_to_its_end() {
    play("zed").await;
}

#[tokio::test]
async fn dialogue_of_codecompanion_runs_to_its_end() {
    play("codecompanion").await;
}

// The program.

#[tokio::test]
async fn sessions_of_one_connection_run_side_by_side() {
    let gate = TestBarrier::new();
    let slow = Reply::stream("text/event-stream").piece(chat::delta("slow")).gate(&gate);
    with_answers([slow.piece(chat::end("stop")), says("quick")], move |home, _| {
        let mut client = AcpClient::connect(home, json!({}));
        let (first, second) = (client.new_session(home), client.new_session(home));
        let slow = client.send_prompt(&first, "one");
        client.until(|line| line["params"]["update"]["content"]["text"] == "slow");
        let (updates, response) = client.prompt(&second, "two");
        assert_eq!(text_of(&updates, "agent_message_chunk"), "quick");
        assert_eq!(response["result"]["stopReason"], "end_turn");
        gate.open();
        let response = client.until_response(&slow).pop().unwrap();
        assert_eq!(response["result"]["stopReason"], "end_turn");
    })
    .await;
}

#[tokio::test]
async fn signal_ends_the_program_in_order() {
    let gate = TestBarrier::new();
    let stuck = Reply::stream("text/event-stream").piece(chat::delta("so far")).gate(&gate);
    with_answers([stuck], |home, _| {
        let mut client = AcpClient::connect(home, json!({}));
        let session = client.new_session(home);
        let prompt = client.send_prompt(&session, "go");
        client.until(|line| line["params"]["update"]["content"]["text"] == "so far");
        let pid = Pid::from_raw(client.pid().cast_signed()).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
        assert_eq!(client.until_response(&prompt).pop().unwrap()["result"]["stopReason"], "cancelled");
        assert_eq!(client.finish().1.code(), Some(143));
        assert_eq!(home.entries().pop().unwrap()["message"]["content"][0]["text"], "so far");
    })
    .await;
}

#[test]
fn arguments_that_make_no_sense_are_errors() {
    let home = TestHome::with_server("http://127.0.0.1:1");
    for (args, code, expected) in [
        (&["acp", "hello"][..], 2, "pi acp takes no messages (\"hello\"); the client sends prompts"),
        (&["acp", "--continue"], 2, "--continue does not go with pi acp; the client chooses sessions"),
        (&["acp", "--model", "m-1", "--mode", "rpc"], 2, "--mode does not go with pi acp"),
        (&["acp", "--modle", "m-1"], 2, "a similar argument exists: '--model'"),
        (&["acp", "--login"], 1, "logging in needs a terminal; use pi auth login PROVIDER there"),
        (&["acp", "--model", "m-1", "--login"], 1, "logging in needs a terminal"),
    ] {
        let output = program::pi(&home, args).output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(told.contains(expected), "{args:?}: {told}");
        assert_eq!((output.status.code(), output.stdout.len()), (Some(code), 0), "{args:?}");
    }
}
