//! What settings and flags change on the screen, in requests and in other programs.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::fs;
use std::net::TcpListener;
use std::path::Path;

use ratatui::layout::Size;
use serde_json::{Value, json};

use crate::support::chat;
use crate::support::program::{pi, run};
use crate::support::pty::{Pty, SIZE, TestHome};
use crate::support::sse_server::{Reply, SseServer};
use crate::support::web_socket_server::{Script, Step, WebSocketServer};

const ANSWER: &str = "Hello there\n\n```\nlet it = be;\n```\n";

/// The program after one answer, with these settings.
async fn answered(settings: &Value, reply: String) -> (SseServer, TestHome, Pty) {
    let server = SseServer::start([Reply::sse(reply)]).await;
    let home = TestHome::with_server(server.url()).settings(settings);
    let pty = Pty::start(&home, SIZE, &[]);
    pty.wait_idle();
    pty.keys("go\r");
    (server, home, pty)
}

fn row<'a>(rows: &'a [String], part: &str) -> &'a str {
    rows.iter().find(|row| row.contains(part)).unwrap_or_else(|| panic!("{part}: {rows:#?}")).trim_end()
}

/// Number of suggestions on the screen.
fn n_suggestions(rows: &[String]) -> usize {
    let first = rows.iter().position(|row| row.starts_with("→ /")).unwrap();
    let last = rows.iter().position(|row| row.trim().starts_with("(1/")).unwrap();
    last - first
}

#[tokio::test(flavor = "multi_thread")]
async fn layout_follows_the_settings() {
    let others = json!({
        "autocompleteMaxVisible": 3, "editorPaddingX": 3, "outputPad": 0, "showHardwareCursor": false,
        "markdown": { "codeBlockIndent": "> " },
    });
    for (settings, hello, code, typed, n_rows, is_block) in [
        (json!({}), " Hello there", "   let it = be;", "/", 6, false),
        (others, "Hello there", "> let it = be;", "   /", 3, true),
    ] {
        let (_server, _home, pty) = answered(&settings, chat::text(ANSWER)).await;
        let rows = pty.wait_text("let it");
        assert_eq!((row(&rows, "Hello"), row(&rows, "let it")), (hello, code));
        pty.wait_idle();
        pty.keys("/");
        let rows = pty.wait_text("(1/");
        assert_eq!(n_suggestions(&rows), n_rows, "{rows:#?}");
        assert!(rows.iter().any(|row| row.trim_end() == typed), "{rows:#?}");
        let (hidden, reversed) = pty.picture(|screen| {
            let (row, column) = screen.cursor_position();
            (screen.hide_cursor(), screen.cell(row, column).unwrap().inverse())
        });
        assert_eq!((hidden, reversed), (is_block, is_block));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_layout_is_shown_at_once() {
    let (_server, _home, pty) = answered(&json!({}), chat::text(ANSWER)).await;
    pty.wait_text(" Hello there");
    pty.wait_idle();
    pty.keys("/settings outputPad\r");
    pty.wait_text("→ outputPad");
    pty.keys("\r\x150\r");
    pty.wait_text("0 · your settings");
    pty.keys("\x1b");
    pty.wait("the answer at the margin", |rows| rows.iter().any(|row| row.starts_with("Hello there")));
}

#[tokio::test(flavor = "multi_thread")]
async fn diagrams_become_source_when_the_setting_changes() {
    let answer = "Look:\n\n```mermaid\ngraph LR\nA[Start] --> B[Done]\n```\n";
    let (_server, _home, pty) = answered(&json!({}), chat::text(answer)).await;
    pty.wait_text("│ Start ├─►│ Done │");
    pty.wait_idle();
    pty.keys("/settings markdown.mermaid\r");
    pty.wait_text("→ markdown.mermaid");
    pty.keys("\r");
    pty.wait_text("\"off\" · your settings");
    pty.keys("\x1b");
    let rows = pty.wait_text("A[Start] --> B[Done]");
    assert!(!rows.iter().any(|row| row.contains("│ Start")), "{rows:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn content_that_shrinks_leaves_blank_rows_unless_the_screen_is_written_again() {
    for clears in [false, true] {
        let settings = json!({ "terminal": { "clearOnShrink": clears } });
        let (_server, _home, pty) = answered(&settings, chat::text(&chat::numbered(0..60))).await;
        pty.wait_text("line 059");
        pty.wait_idle();
        pty.keys("a\nb\nc\nd\ne\nf\ng");
        pty.wait("a tall editor", |rows| rows.iter().any(|row| row.starts_with('g')));
        pty.keys("\x03");
        let rows = pty.wait("an empty editor", |rows| !rows.iter().any(|row| row.starts_with('g')));
        let is_blank_below = rows.last().unwrap().trim().is_empty();
        assert_eq!(is_blank_below, !clears, "{rows:#?}");
        assert_eq!(pty.text_log().contains("\x1b[3J"), clears);
        chat::assert_each_once(0..60, &pty.everything());
    }
}

/// The variable of the original comes before the setting.
#[tokio::test(flavor = "multi_thread")]
async fn environment_decides_whether_content_that_shrinks_is_written_again() {
    for (variable, clears) in [("1", true), ("0", false)] {
        let server = SseServer::start([Reply::sse(chat::text(&chat::numbered(0..60)))]).await;
        let settings = json!({ "terminal": { "clearOnShrink": !clears } });
        let home = TestHome::with_server(server.url()).settings(&settings);
        let env = [("PI_CLEAR_ON_SHRINK", variable)];
        let pty = Pty::start_in(&home, &home.project(), SIZE, &[], &env);
        pty.wait_idle();
        pty.keys("go\r");
        pty.wait_text("line 059");
        pty.wait_idle();
        pty.keys("a\nb\nc\nd\ne\nf\ng");
        pty.wait("a tall editor", |rows| rows.iter().any(|row| row.starts_with('g')));
        pty.keys("\x03");
        let rows = pty.wait("an empty editor", |rows| !rows.iter().any(|row| row.starts_with('g')));
        assert_eq!(rows.last().unwrap().trim().is_empty(), !clears, "{rows:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn blocked_images_do_not_leave_the_machine() {
    for blocks in [false, true] {
        let server = SseServer::start([Reply::sse(chat::text("I see."))]).await;
        let home = TestHome::new().settings(&json!({ "images": { "blockImages": blocks } }));
        let models = json!({"providers": {"local": {
            "baseUrl": server.url(), "api": "openai-completions",
            "models": [{"id": "m-1", "input": ["text", "image"]}],
        }}});
        fs::write(home.agent().join("models.json"), models.to_string()).unwrap();
        let mut png = std::io::Cursor::new(Vec::new());
        image::RgbImage::new(2, 2).write_to(&mut png, image::ImageFormat::Png).unwrap();
        fs::write(home.project().join("dot.png"), png.into_inner()).unwrap();
        let (_, told) = run(pi(&home, &["-p", "@dot.png", "@dot.png", "what is this?"]), None).await;
        assert_eq!(told, "");
        let sent = server.requests()[0].body.to_string();
        assert_eq!(sent.contains("data:image/png"), !blocks, "{sent}");
        assert_eq!(sent.matches("Image reading is disabled.").count(), usize::from(blocks), "{sent}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_editor_of_the_settings_comes_before_that_of_the_environment() {
    let server = SseServer::start([]).await;
    let home = TestHome::with_server(server.url());
    for name in ["mine", "theirs"] {
        let script = format!("#!/bin/sh\nprintf 'by {name} with %s' \"$1\" > \"$2\"\n");
        fs::write(home.project().join(format!("{name}.sh")), script).unwrap();
    }
    let home = home.settings(&json!({ "externalEditor": "sh ./mine.sh --flag" }));
    let env = [("EDITOR", "sh ./theirs.sh x"), ("VISUAL", "sh ./theirs.sh x")];
    let pty = Pty::start_in(&home, &home.project(), SIZE, &[], &env);
    pty.wait_idle();
    pty.keys("draft\x07");
    pty.wait_text("by mine with --flag");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_begin_to_answer_is_given_up_after_the_time_set() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let settings = json!({
        "retry": { "enabled": false, "provider": { "timeoutMs": 50 } },
        // Without the former it would be this one.
        "httpIdleTimeoutMs": 0,
    });
    let home = TestHome::with_server(&url).settings(&settings);
    let (output, told) = run(pi(&home, &["-p", "hello"]), None).await;
    assert_eq!(output.status.code(), Some(1));
    assert!(told.contains("50 ms") || told.contains("timed out") || told.contains("no answer"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_travel_as_the_setting_says() {
    let event = |kind: &str, rest: Value| {
        let mut event = json!({ "type": kind });
        event.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        event.to_string()
    };
    let answer = |id: &str, item: Value| {
        vec![
            event("response.output_item.done", json!({ "output_index": 0, "item": item })),
            event("response.completed", json!({ "response": { "id": id, "status": "completed" } })),
        ]
    };
    let call = json!({ "type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "read",
        "arguments": "{\"path\":\"note.txt\"}", "status": "completed" });
    let text = json!({ "type": "message", "role": "assistant", "id": "msg_1", "status": "completed",
        "content": [{ "type": "output_text", "text": "Read.", "annotations": [] }] });
    let script = [answer("r1", call), answer("r2", text)];
    let over_http = || {
        let body = |events: &Vec<String>| {
            events.iter().map(|event| format!("data: {event}\n\n")).collect::<String>()
        };
        script.iter().map(|events| Reply::sse(body(events))).collect::<Vec<_>>()
    };
    let steps = |answers: &[Vec<String>]| {
        let step = |events: &Vec<String>| {
            std::iter::once(Step::Request).chain(events.iter().cloned().map(Step::Send)).collect::<Vec<_>>()
        };
        Script::Steps(answers.iter().flat_map(step).collect())
    };
    let each = || vec![steps(&script[..1]), steps(&script[1..])];
    // With the number of requests over HTTP, and the connection of each other with the answer it names.
    type Row = (Value, Vec<Script>, usize, &'static [(usize, Option<&'static str>)]);
    let rows: [Row; 5] = [
        (json!({}), Vec::new(), 2, &[]),
        (json!({ "transport": "sse" }), Vec::new(), 2, &[]),
        (json!({ "transport": "websocket" }), each(), 0, &[(0, None), (1, None)]),
        (json!({ "websockets": true }), each(), 0, &[(0, None), (1, None)]),
        (json!({ "transport": "websocket-cached" }), vec![steps(&script)], 0, &[(0, None), (0, Some("r1"))]),
    ];
    for (settings, scripts, n_posts, expected) in rows {
        let server = WebSocketServer::start(scripts, over_http()).await;
        let home = TestHome::new().settings(&settings);
        let models = json!({"providers": {"acme": {
            "baseUrl": server.url(), "api": "openai-codex-responses", "apiKey": "key", "models": [{"id": "m-1"}],
        }}});
        fs::write(home.agent().join("models.json"), models.to_string()).unwrap();
        fs::write(home.project().join("note.txt"), "A note.").unwrap();
        let (output, told) = run(pi(&home, &["-p", "--model", "acme/m-1", "hi"]), None).await;
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "Read.\n", "{settings}: {told}");
        let requests = server.requests();
        let found: Vec<(usize, Option<&str>)> = requests
            .iter()
            .map(|(connection, request)| {
                (*connection, request.get("previous_response_id").and_then(Value::as_str))
            })
            .collect();
        assert_eq!((server.posts().len(), found.as_slice()), (n_posts, expected), "{settings}");
    }
}

/// Writes a theme whose boxes of prompts have this background.
fn write_theme(path: &Path, background: &str) {
    let mut theme: Value = serde_json::from_str(include_str!("../../themes/dark.json")).unwrap();
    theme["name"] = path.file_stem().unwrap().to_str().unwrap().into();
    theme["colors"]["userMessageBg"] = background.into();
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, theme.to_string()).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn themes_come_from_the_settings_and_from_flags() {
    for (themes, args, red) in [
        (json!(["../../../themes"]), &[][..], 11),
        (json!([]), &["--theme", "../flag/dusk.json"], 22),
        (json!(["../../../themes"]), &["--theme", "../flag", "--no-themes"], 22),
    ] {
        let server = SseServer::start([Reply::sse(chat::text("An answer."))]).await;
        let settings = json!({ "theme": "dusk", "themes": themes, "terminal": { "trueColor": "on" } });
        let home = TestHome::with_server(server.url()).settings(&settings);
        write_theme(&home.home().join("../themes/dusk.json"), "#0b0203");
        write_theme(&home.home().join("../flag/dusk.json"), "#160203");
        let pty = Pty::start(&home, Size::new(80, 24), args);
        pty.wait_idle();
        pty.keys("go\r");
        pty.wait_text("An answer.");
        assert!(pty.text_log().contains(&format!("48;2;{red};2;3")), "{args:?}: {}", pty.text_log());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_of_anthropic_is_warned_about_unless_the_setting_is_off() {
    for (key, settings, warned) in [
        ("sk-ant-oat01-0", json!({}), true),
        ("sk-ant-oat01-0", json!({ "warnings": { "anthropicExtraUsage": false } }), false),
        ("sk-ant-api03-0", json!({}), false),
    ] {
        let server = SseServer::start([Reply::sse(chat::text("Hello."))]).await;
        let home = TestHome::new().settings(&settings);
        let models = json!({"providers": {"anthropic": {
            "baseUrl": server.url(), "api": "openai-completions", "apiKey": key, "models": [{"id": "m-1"}],
        }}});
        fs::write(home.agent().join("models.json"), models.to_string()).unwrap();
        let (output, told) = run(pi(&home, &["-p", "--model", "anthropic/m-1", "hi"]), None).await;
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "Hello.\n", "{told}");
        assert_eq!(
            told.matches("may bill those of other programs as extra usage").count(),
            usize::from(warned),
            "{told}"
        );
    }
}
