//! JSON mode as wrappers use it: the original's lines, exit codes, bounded lines.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use serde_json::{Value, json};

use crate::support::chat;
use crate::support::pty::TestHome;
use crate::support::rpc_client::RpcClient;
use crate::support::sse_server::{Reply, SseServer};

fn kinds(lines: &[Value]) -> Vec<String> {
    let mut kinds: Vec<String> = lines
        .iter()
        .map(|line| {
            let role = line["message"]["role"].as_str().map(|role| format!(" {role}")).unwrap_or_default();
            format!("{}{role}", line["type"].as_str().unwrap())
        })
        .collect();
    kinds.dedup_by(|a, b| a == "message_update" && b == "message_update");
    kinds
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_the_header_and_its_events() {
    let call = chat::calls(&[("bash", json!({ "command": "echo from the tool" }))]);
    let server = SseServer::start([Reply::sse(call), Reply::sse(chat::text("Done."))]).await;
    let home = TestHome::with_server(server.url());
    tokio::task::spawn_blocking(move || {
        let client = RpcClient::start(&home, &["-p", "--mode", "json", "do it"]);
        let (lines, status, stderr) = client.finish();
        assert_eq!((status.code(), stderr.as_str()), (Some(0), ""));
        let lines: Vec<Value> =
            lines.into_iter().filter(|line| line["type"] != "tool_execution_update").collect();
        let expected = [
            "session",
            "agent_start",
            "turn_start",
            "message_start system",
            "message_end system",
            "message_start user",
            "message_end user",
            "message_start assistant",
            "message_update",
            "message_end assistant",
            "tool_execution_start",
            "tool_execution_end",
            "message_start toolResult",
            "message_end toolResult",
            "turn_end assistant",
            "turn_start",
            "message_start assistant",
            "message_update",
            "message_end assistant",
            "turn_end assistant",
            "agent_end",
            "agent_settled",
        ];
        assert_eq!(kinds(&lines), expected);
        let header = home.entries().remove(0);
        assert_eq!(lines[0], header);
        let end = lines.iter().find(|line| line["type"] == "agent_end").unwrap();
        assert_eq!(end["messages"].as_array().unwrap().len(), 5);
        assert_eq!(end["willRetry"], json!(false));
    })
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_begin_with_their_type_and_have_no_blanks() {
    let server = SseServer::start([Reply::sse(chat::text("a \u{2028} b"))]).await;
    let home = TestHome::with_server(server.url());
    tokio::task::spawn_blocking(move || {
        let mut client = RpcClient::start(&home, &["--mode", "json", "go"]);
        client.close_input();
        let mut n_updates = 0;
        while let Some(line) = client.next_text() {
            assert!(line.starts_with("{\"type\":\""), "{line}");
            n_updates += usize::from(line.starts_with("{\"type\":\"message_update\",\"usage\":{\"input\":"));
        }
        assert!(n_updates >= 3);
    })
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_answer_is_an_event_and_prompts_follow_each_other() {
    let refused = json!({ "error": { "message": "no such thing" } }).to_string();
    let server = SseServer::start([Reply::status(400, &[], &refused), Reply::sse(chat::text("Two."))]).await;
    let home = TestHome::with_server(server.url());
    tokio::task::spawn_blocking(move || {
        let client = RpcClient::start(&home, &["--mode", "json", "one", "two"]);
        let (lines, status, _) = client.finish();
        assert_eq!(status.code(), Some(0));
        let ends: Vec<&Value> = lines
            .iter()
            .filter(|line| line["type"] == "message_end" && line["message"]["role"] == "assistant")
            .collect();
        assert_eq!(ends[0]["message"]["stopReason"], json!("error"));
        assert!(ends[0]["message"]["errorMessage"].as_str().unwrap().contains("no such thing"));
        assert_eq!(ends[1]["message"]["content"][0]["text"], json!("Two."));
        assert_eq!(kinds(&lines).iter().filter(|kind| *kind == "agent_settled").count(), 2);
        assert_eq!(kinds(&lines).iter().filter(|kind| *kind == "session").count(), 1);
    })
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_is_announced_with_the_end_of_the_run() {
    let busy = json!({ "error": { "message": "overloaded" } }).to_string();
    let replies = [Reply::status(529, &[], &busy), Reply::sse(chat::text("Now."))];
    let server = SseServer::start(replies).await;
    let settings = json!({ "retry": { "baseDelayMs": 1, "provider": { "maxRetries": 0 } } });
    let home = TestHome::with_server(server.url()).settings(&settings);
    tokio::task::spawn_blocking(move || {
        let (lines, status, _) = RpcClient::start(&home, &["--mode", "json", "go"]).finish();
        assert_eq!(status.code(), Some(0));
        let told: Vec<Value> = lines
            .into_iter()
            .filter(|line| {
                ["agent_end", "auto_retry_start", "auto_retry_end"].contains(&line["type"].as_str().unwrap())
            })
            .map(|mut line| {
                line.as_object_mut().unwrap().shift_remove("messages");
                line.as_object_mut().unwrap().shift_remove("errorMessage");
                line
            })
            .collect();
        let expected = [
            json!({ "type": "agent_end", "willRetry": true }),
            json!({ "type": "auto_retry_start", "attempt": 1, "maxAttempts": 3, "delayMs": 1 }),
            json!({ "type": "auto_retry_end", "success": true, "attempt": 1 }),
            json!({ "type": "agent_end", "willRetry": false }),
        ];
        assert_eq!(told, expected);
    })
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn slim_events_have_short_lines_and_say_nothing_twice() {
    let long = "word ".repeat(400_000);
    let server = SseServer::start([Reply::sse(chat::text(&long))]).await;
    let home = TestHome::with_server(server.url());
    tokio::task::spawn_blocking(move || {
        let mut client = RpcClient::start(&home, &["--mode", "json", "--slim-events", "go"]);
        client.close_input();
        let mut lines = Vec::new();
        while let Some(line) = client.next_text() {
            assert!(line.len() < 1 << 20, "{} bytes", line.len());
            lines.push(serde_json::from_str::<Value>(&line).unwrap());
        }
        let end = lines.iter().find(|line| line["type"] == "agent_end").unwrap();
        assert_eq!(*end, json!({ "type": "agent_end", "willRetry": false }));
        let turn = lines.iter().find(|line| line["type"] == "turn_end").unwrap();
        assert_eq!(*turn, json!({ "type": "turn_end" }));
        let last = lines.iter().rfind(|line| line["type"] == "message_end").unwrap();
        assert_eq!(last["truncated"], json!(true));
    })
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_prompt_there_is_only_the_header() {
    let server = SseServer::start([]).await;
    let home = TestHome::with_server(server.url());
    tokio::task::spawn_blocking(move || {
        let (lines, status, _) = RpcClient::start(&home, &["--mode", "json"]).finish();
        assert_eq!((kinds(&lines), status.code()), (vec!["session".to_owned()], Some(0)));
    })
    .await
    .unwrap();
}
