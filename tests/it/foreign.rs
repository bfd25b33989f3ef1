//! Conversations of others: `pi import`, `pi export`, and recorded requests.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use pi::ai::foreign::{Format, export, import};
use serde_json::{Map, Value, json};

use crate::support::chat;
use crate::support::pty::TestHome;
use crate::support::sse_server::{Reply, SseServer};

/// pi in the user's project, without a key and with nothing else in its environment.
fn pi(home: &TestHome) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pi"));
    command
        .env_clear()
        .env("HOME", home.home())
        .env("TMPDIR", home.temp())
        .env("PATH", "/usr/bin:/bin")
        .env("PI_LOCAL_SERVERS", "none");
    command.current_dir(home.project()).stdin(Stdio::null());
    command
}

#[track_caller]
fn ok(output: Output) -> (String, String) {
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{stdout}\n{stderr}");
    (stdout, stderr)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn recorded(name: &str) -> (PathBuf, Value) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/ai/replay").join(name);
    let body = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    (path, body)
}

#[test]
fn recorded_requests_come_back_as_they_were_sent() {
    let rows = [
        ("anthropic-parallel-tool-results-cache", Format::Anthropic),
        ("anthropic-thinking-tool-result", Format::Anthropic),
        ("copilot-tool-results", Format::OpenAiChat),
        ("groq-tool-results", Format::OpenAiChat),
        ("llamacpp-reasoning-tool-result", Format::OpenAiChat),
        ("mistral-tool-results", Format::OpenAiChat),
        ("ollama-tool-result", Format::OpenAiChat),
        ("openrouter-claude-signed-reasoning", Format::OpenAiChat),
        ("openai-responses-encrypted-reasoning", Format::OpenAiResponses),
        ("openai-responses-parallel", Format::OpenAiResponses),
        ("openai-responses-phase", Format::OpenAiResponses),
        ("xai-responses-followup", Format::OpenAiResponses),
        ("gemini25-thinking-tool-result", Format::Google),
    ];
    for (name, format) in rows {
        let (_, sent) = recorded(&format!("{name}.request.json"));
        let imported = import(format, &sent.to_string()).unwrap();
        let notes: Vec<String> = imported.report.lines();
        assert!(notes.iter().all(|note| note.starts_with("tools: ")), "{name}: {notes:?}");
        let written = export(format, &imported.into_messages());
        assert!(written.report.is_empty(), "{name}: {:?}", written.report);
        assert_eq!(simplified(format, &written.body), simplified(format, &sent), "{name}");
    }
}

/// A body in canonical form, where several are possible.
fn simplified(format: Format, body: &Value) -> Value {
    let (system, list) = match format {
        Format::OpenAiChat => ("", "messages"),
        Format::OpenAiResponses => ("instructions", "input"),
        Format::Anthropic => ("system", "messages"),
        Format::Google => ("systemInstruction", "contents"),
    };
    let mut messages = body[list].as_array().unwrap().clone();
    let mut prompt = texts(&body[system]);
    if format == Format::OpenAiResponses {
        let is_prompt = |item: &Value| item["role"] == "system" || item["role"] == "developer";
        while messages.first().is_some_and(is_prompt) {
            prompt.push_str(&texts(&messages.remove(0)["content"]));
        }
    }
    json!([prompt, messages.iter().map(simple).collect::<Value>()])
}

fn texts(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(texts).collect(),
        Value::Object(part) => texts(part.get("text").or_else(|| part.get("parts")).unwrap_or(&Value::Null)),
        _ => String::new(),
    }
}

/// Without empty fields; lists of one text as the text; arguments as values.
fn simple(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut out = Map::new();
            for (key, value) in fields {
                // Ids that are made up where there are none, names of tools in their
                // results, and fields that only the sender or only the server needs.
                let is_noise = ["cache_control", "annotations", "logprobs", "status", "index", "caller"];
                let is_made_up = key == "id" && fields.contains_key("name") && !fields.contains_key("input");
                let is_known = key == "name" && fields.contains_key("tool_call_id");
                let value = match (key.as_str(), value) {
                    ("arguments", Value::String(text)) => serde_json::from_str(text).unwrap(),
                    ("content", Value::Null) => continue,
                    ("content" | "output" | "system", Value::String(text)) => json!([text]),
                    ("content", Value::Array(_)) if value == &json!([]) => continue,
                    // Some send no text as an empty one.
                    (_, other) => simple(other),
                };
                let is_empty = value == json!([""]) || value.is_null() || value == json!(false);
                if !(is_noise.contains(&key.as_str()) || is_made_up || is_known || is_empty) {
                    out.insert(key.clone(), value);
                }
            }
            // By the API's convention, or as libraries have it.
            if let Some(result) = out.get_mut("response").and_then(Value::as_object_mut)
                && let Some(text) = result.remove("result")
            {
                result.insert("output".to_owned(), json!([text]));
            }
            // Some send the same under two names.
            if out.get("reasoning") == out.get("reasoning_content") {
                out.remove("reasoning");
            }
            let is_text =
                |kind: &Value| ["text", "input_text", "output_text"].iter().any(|text| kind == *text);
            match (out.get("type"), out.get("text")) {
                (Some(kind), Some(text)) if is_text(kind) => text.clone(),
                _ => {
                    if out.get("type").is_some_and(|kind| kind == "message") {
                        out.remove("type");
                    }
                    // Key order is the writer's own.
                    let mut keys: Vec<(String, Value)> = out.into_iter().collect();
                    keys.sort_by(|a, b| a.0.cmp(&b.0));
                    keys.into_iter().collect::<Map<String, Value>>().into()
                }
            }
        }
        Value::Array(values) => values.iter().map(simple).collect(),
        other => other.clone(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_imported_conversation_goes_on_and_out_again() {
    let server = SseServer::start([Reply::sse(chat::text("Sunny, still."))]).await;
    let home = TestHome::with_server(server.url());
    let (path, _) = recorded("anthropic-thinking-tool-result.request.json");
    let home = tokio::task::spawn_blocking(move || {
        let imported =
            pi(&home).args(["import", "--from", "anthropic", "--name", "Old\ntalk"]).arg(path).output();
        let (stdout, stderr) = ok(imported.unwrap());
        assert_eq!(stderr, "tools: tool definitions; pi uses its own tools\n");
        let lines: Vec<&str> = stdout.lines().collect();
        assert_eq!(lines[0], "4 messages imported");
        let [file] = home.sessions().try_into().unwrap();
        assert_eq!(lines[1], format!("file:    {}", file.display()));
        let id = lines[2].strip_prefix("session: ").unwrap();
        assert_eq!(lines[3], format!("resume:  pi --session {id}"));
        let entries = home.entries();
        assert_eq!((&entries[0]["id"], &entries[0]["version"]), (&json!(id), &json!(3)));
        assert_eq!(entries[0]["cwd"], json!(home.project()));
        assert_eq!((&entries[1]["type"], &entries[1]["name"]), (&json!("session_info"), &json!("Old talk")));

        let resumed = pi(&home).args(["-p", "--session", id, "--model", "local/m-1", "And now?"]).output();
        assert_eq!(ok(resumed.unwrap()).0, "Sunny, still.\n");
        home
    })
    .await
    .unwrap();
    let sent = server.requests()[0].body["messages"].as_array().unwrap().clone();
    let roles: Vec<&str> = sent.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "user"]);
    // The prompt of the conversation stands before pi's own.
    assert!(sent[0]["content"].as_str().unwrap().starts_with("You are a helpful assistant"), "{}", sent[0]);
    assert_eq!(sent[2]["tool_calls"][0]["id"], sent[3]["tool_call_id"]);

    let id = home.entries()[0]["id"].as_str().unwrap().to_owned();
    let before = fs::read(&home.sessions()[0]).unwrap();
    // The beginning of the id is enough; no key and no server are asked.
    let output = pi(&home).args(["export", "--to", "google", &id[..30]]).output().unwrap();
    let (stdout, stderr) = ok(output);
    let body: Value = serde_json::from_str(&stdout).unwrap();
    let contents = body["contents"].as_array().unwrap();
    assert_eq!(contents.last().unwrap(), &json!({"role": "model", "parts": [{"text": "Sunny, still."}]}));
    let declared = &body["tools"][0]["functionDeclarations"];
    assert!(declared.as_array().unwrap().iter().any(|tool| tool["name"] == "bash"), "{declared}");
    assert!(stderr.contains(": name of the session\n"), "{stderr}");
    assert!(stderr.contains(": thinking of a model that does not use this format\n"), "{stderr}");
    assert_eq!(fs::read(&home.sessions()[0]).unwrap(), before);
    assert_eq!(fs::read_dir(home.sessions()[0].parent().unwrap()).unwrap().count(), 1, "no lock is left");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn images_by_address_are_imported_sent_and_exported() {
    let server = SseServer::start([Reply::sse(chat::text("A cat."))]).await;
    let home = TestHome::with_server(server.url());
    let models = json!({"providers": {"local": {
        "baseUrl": server.url(), "api": "openai-completions",
        "models": [{"id": "m-1", "input": ["text", "image"]}],
    }}});
    fs::write(home.agent().join("models.json"), models.to_string()).unwrap();
    let url = "https://x.y/cat.png";
    let image = json!({"type": "image_url", "image_url": {"url": url, "detail": "low"}});
    let messages = json!([{"role": "user", "content": [{"type": "text", "text": "What is it?"}, image]}]);
    let home = tokio::task::spawn_blocking(move || {
        fs::write(home.project().join("chat.json"), messages.to_string()).unwrap();
        let imported = pi(&home).args(["import", "--from", "openai", "chat.json"]).output();
        assert_eq!(ok(imported.unwrap()).1, "");
        let resumed = pi(&home).args(["-pc", "--model", "local/m-1", "Well?"]).output();
        assert_eq!(ok(resumed.unwrap()).0, "A cat.\n");
        home
    })
    .await
    .unwrap();
    let sent = server.requests()[0].body["messages"].as_array().unwrap().clone();
    assert_eq!(sent.iter().find(|message| message["role"] == "user").unwrap()["content"][1], image);
    // The original pi reads a text that contains the address.
    let entries = home.entries();
    let said = entries.iter().find(|entry| entry["message"]["role"] == "user").unwrap();
    let stored = json!({"type": "text", "text": format!("[image: {url}]"), "imageUrl": url, "detail": "low"});
    assert_eq!(said["message"]["content"][1].to_string(), stored.to_string());
    let id = entries[0]["id"].as_str().unwrap();
    let (stdout, stderr) = ok(pi(&home).args(["export", "--to", "anthropic", id]).output().unwrap());
    let body: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(body["messages"][0]["content"][1]["source"], json!({"type": "url", "url": url}));
    assert!(!stderr.contains("image"), "{stderr}");
}

#[test]
fn standard_input_lines_and_files_go_in_and_out() {
    let home = TestHome::new();
    let mut command = pi(&home);
    command.args(["import", "--from", "openai", "-"]).stdin(Stdio::piped());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = "{\"role\":\"user\",\"content\":\"hi\"}\n{\"role\":\"assistant\",\"content\":\"hello\",\"audio\":{}}\n";
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let (stdout, stderr) = ok(child.wait_with_output().unwrap());
    assert!(stdout.starts_with("2 messages imported\n"), "{stdout}");
    assert_eq!(stderr, "line 2.audio: audio output\n");

    let session = home.sessions()[0].clone();
    let out = home.project().join("out.jsonl");
    let export = |args: &[&str]| {
        let mut command = pi(&home);
        command.args(["export", "--to", "openai-responses", "--format", "jsonl"]).arg(&session).arg(&out);
        command.args(args).output().unwrap()
    };
    assert_eq!(ok(export(&[])).0, format!("exported to {}\n", out.display()));
    let written = fs::read_to_string(&out).unwrap();
    let written: Vec<Value> = written.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(written[0], json!({"role": "user", "content": "hi"}));
    assert_eq!((written.len(), &written[1]["content"][0]["text"]), (2, &json!("hello")));
    let refused = export(&[]);
    assert_eq!(text(&refused.stderr), format!("pi: {} exists; use --force to overwrite it\n", out.display()));
    ok(export(&["--force"]));

    let elsewhere = home.project().join("my sessions");
    let output = pi(&home)
        .args(["import", "--from", "openai", "out.jsonl", "--session-dir", "my sessions"])
        .output()
        .unwrap();
    let (stdout, _) = ok(output);
    let [file] = fs::read_dir(&elsewhere)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect::<Vec<_>>()
        .try_into()
        .unwrap();
    assert!(stdout.ends_with(&format!("resume:  pi --session '{}'\n", file.display())), "{stdout}");
}

#[test]
fn an_export_says_what_stays_behind() {
    let home = TestHome::new();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/sessions");
    let notes = |name: &str| {
        let path = fixtures.join(name);
        let before = fs::read(&path).unwrap();
        let output = pi(&home).args(["export", "--to", "anthropic"]).arg(&path).output().unwrap();
        let (_, stderr) = ok(output);
        assert_eq!(fs::read(&path).unwrap(), before);
        stderr
    };
    assert!(notes("rpc-bash.jsonl").contains("command with !"), "{}", notes("rpc-bash.jsonl"));
    assert!(notes("rpc-compact.jsonl").contains("summary of a compaction; exported as a user message"));
    assert!(notes("rpc-abort.jsonl").contains("answer that failed or was cancelled"));

    // An old format is read as the new one, in the file's own place unchanged.
    let old = home.project().join("old.jsonl");
    let lines = [
        json!({"type": "session", "id": "s", "timestamp": "2026-11-21T09:23:47.280Z", "cwd": "/gone"}),
        json!({"type": "message", "timestamp": "2026-11-21T09:23:47.280Z", "message": {"role": "user", "content": "hi"}}),
        json!({"type": "label", "timestamp": "2026-11-21T09:23:47.280Z", "targetId": "x", "label": "l"}),
    ];
    let lines: String = lines.iter().map(|line| line.to_string() + "\n").collect();
    fs::write(&old, &lines).unwrap();
    let (stdout, stderr) = ok(pi(&home).args(["export", "--to", "openai", "./old.jsonl"]).output().unwrap());
    let body: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(body, json!({"messages": [{"role": "user", "content": "hi"}]}));
    assert!(stderr.ends_with(": label\n"), "{stderr}");
    assert_eq!(fs::read_to_string(&old).unwrap(), lines);
}

/// Each line: arguments, exit code, and the start of standard error.
#[test]
fn bad_conversations_are_refused_and_leave_nothing() {
    let home = TestHome::new();
    let project = home.project();
    let claude = json!({"system": "S", "messages": [{"role": "user", "content": "a"}]});
    fs::write(project.join("claude.json"), claude.to_string()).unwrap();
    fs::write(project.join("notes.md"), "# Notes\n\nhello\n").unwrap();
    fs::write(project.join("cut.jsonl"), "{\"role\":\"user\",\"content\":\"a\"}\n{\"role\":\"us").unwrap();
    fs::write(project.join("empty"), "").unwrap();
    fs::write(project.join("binary"), [0xff_u8, 0xfe, 0]).unwrap();
    fs::write(project.join("shape.json"), "[{\"role\":\"user\",\"content\":7}]").unwrap();
    fs::write(project.join("hi.json"), "[{\"role\":\"user\",\"content\":\"hi\"}]").unwrap();
    let cases: &[(&[&str], i32, &str)] = &[
        (
            &["import", "--from", "openai", "claude.json"],
            1,
            "pi: cannot import claude.json: it is not in openai format; it looks like anthropic; try --from anthropic",
        ),
        (
            &["import", "--from", "google", "hi.json"],
            1,
            "pi: cannot import hi.json: it is not in google format; it looks like openai or anthropic\n",
        ),
        (
            &["import", "--from", "openai", "notes.md"],
            1,
            "pi: cannot import notes.md: it is neither JSON nor JSON lines: expected value at line 1",
        ),
        (
            &["import", "--from", "openai", "cut.jsonl"],
            1,
            "pi: cannot import cut.jsonl: line 2 is not JSON: EOF",
        ),
        (&["import", "--from", "openai", "empty"], 1, "pi: cannot import empty: it is empty"),
        (&["import", "--from", "openai", "-"], 1, "pi: cannot import standard input: it is empty"),
        (&["import", "--from", "openai", "binary"], 1, "pi: binary is not UTF-8 text"),
        (
            &["import", "--from", "openai", "shape.json"],
            1,
            "pi: cannot import shape.json: messages[0].content: expected text or a list of parts, found a number",
        ),
        (&["import", "--from", "openai", "gone.json"], 1, "pi: cannot read gone.json: No such file"),
        (
            &["import", "--from", "openai", "no/where/a.json"],
            1,
            "pi: cannot read no/where/a.json: No such file",
        ),
        (&["import", "--from", "openai", "."], 1, "pi: cannot read .: Is a directory"),
        (
            &["import", "--from", "openai", "hi.json", "--session-dir", "hi.json"],
            1,
            "pi: cannot write the session ",
        ),
        (
            &["import", "--from", "cohere", "hi.json"],
            2,
            "error: invalid value 'cohere' for '--from <FORMAT>'",
        ),
        (&["import", "hi.json"], 2, "error: the following required arguments were not provided"),
        (&["export", "--to", "openai", "0000"], 1, "pi: no session id starts with \"0000\""),
        (&["export", "--to", "openai", "./gone.jsonl"], 1, "pi: cannot read "),
        (&["export", "--to", "openai", "./hi.json"], 1, "pi: "),
        (&["export", "--to", "openai", "./empty"], 1, "pi: "),
        (&["export", "--to", "openai"], 2, "error: the following required arguments were not provided"),
    ];
    for (args, code, expected) in cases {
        let output = pi(&home).args(*args).output().unwrap();
        let stderr = text(&output.stderr);
        assert!(stderr.starts_with(expected), "{args:?}: {stderr}");
        assert_eq!(output.status.code(), Some(*code), "{args:?}");
        assert_eq!(text(&output.stdout), "", "{args:?}");
    }
    assert_eq!(home.sessions(), Vec::<PathBuf>::new());

    ok(pi(&home).args(["import", "--from", "openai", "hi.json"]).output().unwrap());
    let id = home.entries()[0]["id"].as_str().unwrap().to_owned();
    let output = pi(&home).args(["export", "--to", "openai", &id, "no/where/out.json"]).output().unwrap();
    assert!(
        text(&output.stderr).starts_with("pi: cannot write no/where/out.json: "),
        "{}",
        text(&output.stderr)
    );
    assert_eq!(output.status.code(), Some(1));
}
