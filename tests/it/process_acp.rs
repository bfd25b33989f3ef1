//! ACP mode as editors use it.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::fs;

use pi::ai::TestBarrier;
use serde_json::{Value, json};

use crate::support::acp_client::{AcpClient, in_folder, of_kind, text_of};
use crate::support::chat;
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
        error(&client, json!(3), -32002, "there is no session x");
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
    let long = "All of it. ".repeat(20_000);
    let expected = long.clone();
    with_answers([says(&long)], move |home, _| {
        let (mut client, read) = AcpClient::start_unread(home, &[]);
        client.send("initialize", json!({ "protocolVersion": 1 }));
        client.raw_text("");
        read();
        assert!(client.next_text().unwrap().contains("agentCapabilities"));
        assert!(client.pid() > 0);
        let session = client.new_session(home);
        let (updates, _) = client.prompt(&session, "go");
        assert_eq!(text_of(&updates, "agent_message_chunk"), expected);
    })
    .await;
}
