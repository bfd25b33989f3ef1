//! A session continues after any failure of a service, a network or an old file.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::fs;
use std::io::Cursor;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use image::{DynamicImage, ImageFormat, RgbImage};
use pi::agent::ToolOutput;
use pi::ai::{ContentBlock, FakeAnswer, Image, Message, Request, TestBarrier, ThinkingLevel};
use pi::session::{
    EntryBody, Phase, PromptDraft, Scope, SessionCommand, SessionEvent, SessionMessage, WhenBusy,
};
use serde_json::{Value, json};

use crate::support::agent_bench::TestTool;
use crate::support::session_bench::{Session, SessionBench, entries, sent};
use crate::support::sse_server::{Reply, SseServer};

fn texts<const N: usize>(texts: [&str; N]) -> [FakeAnswer; N] {
    texts.map(FakeAnswer::of_text)
}

pub(crate) fn picture(width: u32, height: u32) -> Image {
    let mut bytes = Cursor::new(Vec::new());
    DynamicImage::ImageRgb8(RgbImage::new(width, height)).write_to(&mut bytes, ImageFormat::Png).unwrap();
    let data = STANDARD.encode(bytes.into_inner());
    Image { data, mime_type: "image/png".to_owned(), extra: serde_json::Map::new() }
}

fn show(text: &str, images: Vec<Image>) -> SessionCommand {
    let prompt = PromptDraft { images, ..PromptDraft::from(text) };
    SessionCommand::Prompt { prompt, when_busy: WhenBusy::Steer }
}

/// How many pictures a request would carry.
fn n_images(request: &Request) -> usize {
    let content = |message: &Message| match message {
        Message::User(user) => user.content.blocks(),
        Message::ToolResult(result) => result.content.clone(),
        Message::System(_) | Message::Assistant(_) => Vec::new(),
    };
    let blocks = request.messages.iter().flat_map(|message| content(message));
    blocks.filter(|block| matches!(block, ContentBlock::Image(_))).count()
}

fn notices(lines: &[String]) -> Vec<&str> {
    let notices = lines.iter().filter(|line| line.starts_with("Warning") || line.starts_with("Error"));
    notices.map(String::as_str).collect()
}

// Rejections by services.

const BAD_IMAGE: &str = "400: messages.1.content.1.image.source.data: Could not process image";

#[tokio::test]
async fn a_refused_picture_is_taken_out_and_the_request_repeated_once() {
    let bench = SessionBench::new([FakeAnswer::failed(BAD_IMAGE), FakeAnswer::of_text("seen")]);
    let mut session = bench.start().await;
    session.request(show("look", vec![picture(4, 4), picture(5, 5)])).await.unwrap();
    let lines = session.settled().await;
    let expected = format!(
        "Warning: acme rejected the conversation: {BAD_IMAGE}. Retrying without 1 image; the session file \
         still contains it"
    );
    assert_eq!(notices(&lines), [expected]);
    assert_eq!(lines.last().unwrap(), "settled");
    let answers: Vec<String> = session.on_disk()[3..].to_vec();
    assert_eq!(answers, ["user look", "answer  (error)", "hidden", "edited", "answer seen"]);
    let requests = bench.provider.requests();
    assert_eq!(requests.iter().map(|request| n_images(request)).collect::<Vec<_>>(), [2, 1]);

    // The repair is in the file.
    let path = session.path();
    session.shut_down().await;
    bench.provider.push(FakeAnswer::of_text("again"));
    let mut session = bench.resume(&path).await;
    session.ask("and now?").await;
    let request = bench.provider.requests().pop().unwrap();
    assert_eq!(n_images(&request), 1);
    let gone = "user look[Image removed: the provider rejected it.]";
    assert_eq!(sent(&request), [gone, "assistant seen", "user and now?"]);
}

#[tokio::test]
async fn a_picture_that_cannot_be_fetched_is_taken_out_and_the_request_repeated_once() {
    let refused = r#"{"type":"error","error":{"type":"invalid_request_error",
        "message":"messages.0.content.2.image.source.url: Unable to download the file. Please verify the URL and try again."}}"#;
    let refused = Reply::status(400, &[("content-type", "application/json")], refused);
    let answer = || Reply::sse(anthropic_text("seen") + &anthropic_end());
    let server = SseServer::start([refused, answer()]).await;
    let bench = served(&server, "anthropic-messages");
    let at =
        |url: &str| json!({"type": "text", "text": format!("[image: {url}]"), "imageUrl": url, "novel": 1});
    let content = json!([{"type": "text", "text": "look"}, at("https://x/a.png"), at("https://x/b.png")]);
    let entry = json!({"type": "message", "id": "u", "parentId": null, "timestamp": "2026-11-21T09:23:47.280Z",
        "message": {"role": "user", "content": content, "timestamp": 1}});
    let path = bench.session_file(&format!("{entry}\n"));
    let before = fs::read_to_string(&path).unwrap();
    let mut session = bench.resume(&path).await;
    let lines = session.ask("well?").await;
    let notices = notices(&lines);
    // The session that was given ends with a question.
    assert!(notices[0].contains("The last answer is incomplete. Send a message"), "{notices:?}");
    assert!(notices[1].contains("Retrying without 1 image"), "{notices:?}");
    let sent = |at: usize| server.requests()[at].body["messages"][0]["content"].clone();
    assert_eq!(sent(0)[1]["source"], json!({"type": "url", "url": "https://x/a.png"}));
    assert_eq!(sent(0)[2]["source"]["url"], "https://x/b.png");
    assert_eq!(sent(1)[1], sent(0)[1]);
    assert_eq!(sent(1)[2]["text"], "[Image removed: the provider could not use https://x/b.png.]");
    assert_eq!(session.on_disk().last().unwrap(), "answer seen");
    // The image stays in the file unchanged; the edit contains the other one in full.
    let after = fs::read_to_string(&path).unwrap();
    assert!(after.starts_with(&before));
    let edit =
        after.lines().find(|line| line.contains("\"context_edit\"") && line.contains("removed")).unwrap();
    assert!(edit.contains(&at("https://x/a.png").to_string()), "{edit}");
}

#[tokio::test]
async fn a_repair_that_does_not_help_is_tried_once_and_the_next_one_goes_further() {
    let refused = || FakeAnswer::failed(BAD_IMAGE);
    let bench = SessionBench::new([refused(), refused(), refused(), FakeAnswer::of_text("blind")]);
    let mut session = bench.start().await;
    session.request(show("look", vec![picture(4, 4), picture(5, 5), picture(6, 6)])).await.unwrap();
    let lines = session.settled().await;
    assert_eq!(notices(&lines).len(), 1, "{lines:?}");
    assert_eq!(bench.provider.n_left(), 2, "one repetition");
    assert_eq!(session.on_disk().last().unwrap(), "answer  (error)");

    let lines = session.ask("go on").await;
    assert!(notices(&lines)[0].contains("without 2 images"), "{lines:?}");
    let counts: Vec<usize> = bench.provider.requests().iter().map(|request| n_images(request)).collect();
    assert_eq!(counts, [3, 2, 2, 0]);
    assert_eq!(session.on_disk().last().unwrap(), "answer blind");
}

#[tokio::test]
async fn refusals_that_nothing_can_be_done_about_are_shown_as_they_are() {
    for error in [BAD_IMAGE, "400: invalid signature", "413: Payload Too Large", "400: bad request"] {
        let bench = SessionBench::new([FakeAnswer::failed(error), FakeAnswer::of_text("ok")]);
        let mut session = bench.start().await;
        session.ask("no pictures here").await;
        assert_eq!(bench.provider.n_left(), 1, "{error}");
        session.ask("go on").await;
        assert_eq!(session.on_disk().last().unwrap(), "answer ok");
    }
}

#[tokio::test]
async fn a_tool_loop_without_thinking_ends_without_thinking() {
    let error =
        "400: messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`.";
    let say = |id: &str| FakeAnswer::new().tool_call(id, "say", json!({"text": "x"}));
    let bench = SessionBench::new([
        say("a"),
        FakeAnswer::failed(error),
        say("b"),
        FakeAnswer::of_text("done"),
        FakeAnswer::of_text("again"),
    ])
    .tools([TestTool::say()]);
    let mut session = bench.start().await;
    session.ask("go").await;
    session.ask("more").await;
    let levels: Vec<ThinkingLevel> =
        bench.provider.requests().iter().map(|request| request.options.thinking).collect();
    use ThinkingLevel::{Medium, Off};
    assert_eq!(levels, [Medium, Medium, Off, Off, Medium]);
    assert!(!session.on_disk().contains(&"thinking off".to_owned()), "the selection stays");
}

#[tokio::test]
async fn a_call_the_service_cannot_place_goes_with_its_result() {
    let error = "400: No tool output found for function call a.";
    let say = FakeAnswer::new().tool_call("a", "say", json!({"text": "x"}));
    let bench = SessionBench::new([say, FakeAnswer::failed(error), FakeAnswer::of_text("ok")])
        .tools([TestTool::say()]);
    let mut session = bench.start().await;
    let lines = session.ask("go").await;
    assert!(notices(&lines)[0].contains("without 1 tool call"), "{lines:?}");
    assert_eq!(sent(&bench.provider.requests()[2]), ["user go"]);
    assert_eq!(session.on_disk().last().unwrap(), "answer ok");
}

#[tokio::test]
async fn edits_of_the_original_are_understood() {
    let bench = SessionBench::new(texts(["ok"]));
    let user = json!({"role": "user", "content": [{"type": "text", "text": "a"},
        {"type": "image", "data": "AAAA", "mimeType": "image/png"}], "timestamp": 1});
    let answer = json!({"role": "assistant", "content": [{"type": "text", "text": "b"}], "api": "x", "provider": "p",
        "model": "m", "usage": {}, "stopReason": "stop", "timestamp": 2});
    let edit = |id: &str, target: &str, replacement: Value| json!({"type": "context_edit", "id": id, "targetId": target, "replacement": replacement});
    let mut entries = vec![
        json!({"type": "message", "id": "u", "message": user}),
        json!({"type": "message", "id": "v", "message": answer}),
        json!({"type": "message", "id": "w", "message": {"role": "user", "content": "gone", "timestamp": 3}}),
        edit("e1", "u", json!({"content": "a only"})),
        edit("e2", "v", json!({"content": "b instead"})),
        edit("e3", "w", Value::Null),
    ];
    let mut parent = Value::Null;
    let mut lines = String::new();
    for entry in &mut entries {
        entry["parentId"] = std::mem::replace(&mut parent, entry["id"].clone());
        entry["timestamp"] = json!("2026-11-21T09:23:47.280Z");
        lines.push_str(&entry.to_string());
        lines.push('\n');
    }
    let path = bench.session_file(&lines);
    let mut session = bench.resume(&path).await;
    session.ask("c").await;
    assert_eq!(sent(&bench.provider.requests()[0]), ["user a only", "assistant b instead", "user c"]);
}

// Storage.

#[tokio::test]
async fn model_that_cannot_see_the_image_of_a_read_file_is_named_in_the_result() {
    for (input, expected) in [(json!(["text"]), json!("m-1")), (json!(["text", "image"]), json!(null))] {
        let tool = TestTool::new("read", |_, _| async {
            let content = vec![ContentBlock::text("an image"), ContentBlock::Image(picture(2, 2))];
            Ok(ToolOutput { content, ..ToolOutput::default() })
        });
        let acme = json!({"baseUrl": "http://127.0.0.1:1", "api": "openai-completions",
            "models": [{"id": "m-1", "contextWindow": 100_000, "input": input}]});
        let read = FakeAnswer::new().tool_call("a", "read", json!({}));
        let bench = SessionBench::new([read, FakeAnswer::of_text("ok")]).acme(acme).tools([tool]);
        let mut session = bench.start().await;
        session.ask("look").await;
        let file = std::fs::read_to_string(session.path()).unwrap();
        let lines = file.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        let results: Vec<_> = lines.filter(|line| line["message"]["role"] == "toolResult").collect();
        let message = &results[0]["message"];
        assert_eq!(message["details"]["imageUnsupportedByModel"], expected);
        assert_eq!(message["content"][1]["type"], "image", "another model may see it");
    }
}

#[tokio::test]
async fn pictures_are_made_to_fit_before_they_are_stored() {
    let tool = TestTool::new("shoot", |_, _| async {
        let content = vec![ContentBlock::text("shot"), ContentBlock::Image(picture(9_000, 2))];
        Ok(ToolOutput { content, ..ToolOutput::default() })
    });
    let shoot = FakeAnswer::new().tool_call("a", "shoot", json!({}));
    let bench = SessionBench::new([shoot, FakeAnswer::of_text("ok")]).tools([tool]);
    let mut session = bench.start().await;
    let broken = Image { data: "iVBO".to_owned(), ..picture(1, 1) };
    session.request(show("look", vec![picture(4_000, 2), broken])).await.unwrap();
    session.settled().await;
    let mut shown = Vec::new();
    for entry in entries(&session.path()) {
        let EntryBody::Message { message: SessionMessage::Model(message), .. } = entry.body else { continue };
        let content = match &*message {
            Message::User(user) => user.content.blocks(),
            Message::ToolResult(result) => result.content.clone(),
            Message::System(_) | Message::Assistant(_) => continue,
        };
        shown.extend(content.iter().map(|block| match block {
            ContentBlock::Image(image) => {
                let bytes = STANDARD.decode(&image.data).unwrap();
                format!("{} pixels wide", image::load_from_memory(&bytes).unwrap().width())
            }
            other => other.as_text().unwrap().to_owned(),
        }));
    }
    let hint = |height: u32, width: u32, factor: &str| {
        format!(
            "[Image: original {width}x2, displayed at 2000x{height}. Multiply {factor} to map to original image.]"
        )
    };
    assert_eq!(
        shown,
        [
            format!("look\n\n{}", hint(1, 4_000, "coordinates by 2.00")),
            "2000 pixels wide".to_owned(),
            "[Image omitted: could not be converted to a supported inline image format.]".to_owned(),
            "shot".to_owned(),
            "2000 pixels wide".to_owned(),
            hint(1, 9_000, "x by 4.50 and y by 2.00"),
        ]
    );
}

// Waiting.

fn overloaded() -> FakeAnswer {
    FakeAnswer::failed("503: overloaded (retry after 15s)")
}

async fn waiting(session: &mut Session) {
    session.prompt("go").await;
    session.until(|event| matches!(event, SessionEvent::RetryScheduled { .. })).await;
    assert_eq!(session.handle.state().phase, Phase::Retrying);
}

#[tokio::test(start_paused = true)]
async fn what_must_not_wait_ends_the_wait() {
    let check = async |commands: Vec<SessionCommand>, expected_secs: u64| {
        let bench = SessionBench::new([overloaded(), FakeAnswer::of_text("ok"), FakeAnswer::of_text("more")]);
        let mut session = bench.start().await;
        waiting(&mut session).await;
        let begun = tokio::time::Instant::now();
        for command in commands.clone() {
            session.request(command).await.unwrap();
        }
        session.settled().await;
        assert_eq!(begun.elapsed().as_secs(), expected_secs, "{commands:?}");
        assert_eq!(sent(&bench.provider.requests()[1])[0], "user go");
    };
    let say = |text: &str, when_busy| SessionCommand::Prompt { prompt: PromptDraft::from(text), when_busy };
    check(vec![say("rather", WhenBusy::Now)], 0).await;
    check(vec![say("stop: rather", WhenBusy::Steer)], 0).await;
    check(vec![say("rather", WhenBusy::Steer), SessionCommand::DeliverNow], 0).await;
    check(vec![SessionCommand::DeliverNow], 15).await;
    check(vec![say("rather", WhenBusy::Steer)], 15).await;
    check(vec![say("later", WhenBusy::FollowUp)], 15).await;
}

#[tokio::test(start_paused = true)]
async fn a_wait_above_the_cap_fails_at_once_and_says_how_long() {
    let limited = FakeAnswer::failed("429: slow down (rate_limit_error, retry after 90s)");
    let bench = SessionBench::new([limited, FakeAnswer::of_text("ok")]);
    let mut session = bench.start().await;
    let begun = tokio::time::Instant::now();
    let lines = session.ask("go").await;
    assert_eq!(begun.elapsed(), Duration::ZERO);
    assert_eq!(
        notices(&lines),
        [
            "Error: pi does not retry: the provider asks for a wait of 90s, longer than the limit of 60s; send the prompt again after that"
        ]
    );
    session.ask("again").await;
    assert_eq!(session.on_disk().last().unwrap(), "answer ok");
}

// Answers that break off.

fn anthropic_text(text: &str) -> String {
    let event = |kind: &str, data: Value| format!("event: {kind}\ndata: {data}\n\n");
    [
        event("message_start", json!({"type": "message_start", "message": {"id": "r", "model": "m-2", "content": [], "usage": {"input_tokens": 5, "output_tokens": 1}}})),
        event("content_block_start", json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}})),
        event("content_block_delta", json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}})),
    ]
    .concat()
}

fn anthropic_end() -> String {
    let event = |kind: &str, data: Value| format!("event: {kind}\ndata: {data}\n\n");
    [
        event("content_block_stop", json!({"type": "content_block_stop", "index": 0})),
        event("message_delta", json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 7}})),
        event("message_stop", json!({"type": "message_stop"})),
    ]
    .concat()
}

/// Body of request `at`: its messages as `role: text`.
fn asked(server: &SseServer, at: usize) -> Vec<String> {
    let body = &server.requests()[at].body;
    let messages = body["messages"].as_array().unwrap().iter().map(|message| {
        let text = match &message["content"] {
            Value::Array(blocks) => blocks.iter().filter_map(|block| block["text"].as_str()).collect(),
            content => content.as_str().unwrap_or_default().to_owned(),
        };
        format!("{}: {text}", message["role"].as_str().unwrap())
    });
    messages.filter(|line| !line.starts_with("system") && !line.starts_with("developer")).collect()
}

const QUICK: &str = r#"{"retry": {"baseDelayMs": 1}}"#;

fn served(server: &SseServer, api: &'static str) -> SessionBench {
    SessionBench::new([]).served_by(server.url(), api).settings(serde_json::from_str(QUICK).unwrap())
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_gone_on_with_where_the_api_allows_it() {
    let broken = |text: &str| Reply::stream("text/event-stream").piece(anthropic_text(text)).hang_up();
    let whole = Reply::sse(anthropic_text(" time") + &anthropic_end());
    let server = SseServer::start([broken("Once "), broken(" upon a"), whole]).await;
    let bench = served(&server, "anthropic-messages").model("m-2");
    let mut session = bench.start().await;
    session.ask("tell").await;
    assert_eq!(asked(&server, 1), ["user: tell", "assistant: Once"]);
    assert_eq!(asked(&server, 2), ["user: tell", "assistant: Once upon a"]);
    assert_eq!(
        session.on_disk()[3..],
        [
            "user tell",
            "answer Once  (error)",
            "hidden",
            "answer Once upon a (error)",
            "hidden",
            "answer Once upon a time"
        ]
    );
}

#[tokio::test]
async fn a_model_that_takes_no_beginning_is_asked_again_from_the_start() {
    let broken = Reply::stream("text/event-stream").piece(anthropic_text("Once")).hang_up();
    let error = json!({"type": "error", "error": {"type": "invalid_request_error",
        "message": "This model does not support assistant message prefill. The conversation must end with a user message."}});
    let refused = Reply::status(400, &[], &error.to_string());
    let whole = Reply::sse(anthropic_text("Once more") + &anthropic_end());
    let server = SseServer::start([broken.clone(), refused, broken, whole]).await;
    let mut session = served(&server, "anthropic-messages").model("m-2").start().await;
    session.ask("tell").await;
    assert_eq!(asked(&server, 1).last().unwrap(), "assistant: Once");
    for at in [2, 3] {
        assert_eq!(asked(&server, at), ["user: tell"], "not tried again");
    }
    assert_eq!(session.on_disk().last().unwrap(), "answer Once more");
}

#[tokio::test]
async fn elsewhere_an_answer_that_breaks_off_is_repeated_as_a_whole() {
    let piece = "data: {\"choices\":[{\"delta\":{\"content\":\"Once\"}}]}\n\n";
    let broken = Reply::stream("text/event-stream").piece(piece).hang_up();
    let server = SseServer::start([broken, Reply::sse(OK)]).await;
    let mut session = served(&server, "openai-completions").model("m-2").start().await;
    session.ask("tell").await;
    assert_eq!(asked(&server, 1), ["user: tell"]);
    assert_eq!(session.on_disk()[3..], ["user tell", "answer Once (error)", "hidden", "answer ok"]);
}

#[tokio::test]
async fn what_is_said_while_an_answer_is_to_go_on_is_answered_instead() {
    let broken = FakeAnswer::new().text("Once").error("503: overloaded (retry after 1s)");
    let bench = SessionBench::new([broken, FakeAnswer::of_text("ok")]).model("m-2");
    let mut session = bench.start().await;
    waiting(&mut session).await;
    session.say("rather", WhenBusy::Now).await;
    session.settled().await;
    let request = bench.provider.requests().pop().unwrap();
    assert_eq!(request.options.continue_from, None);
    assert_eq!(sent(&request), ["user go", "user rather"]);
}

#[tokio::test(start_paused = true)]
async fn no_model_goes_on_with_the_answer_of_another() {
    let claude = |id: &str| json!({"id": id, "compat": {"supportsAssistantPrefill": true}});
    let acme =
        json!({"baseUrl": "http://x", "api": "anthropic-messages", "models": [claude("a"), claude("b")]});
    for (other, expected) in [(false, Some("Once")), (true, None)] {
        let broken = FakeAnswer::new().text("Once").error("503: overloaded (retry after 9s)");
        let bench = SessionBench::new([broken, FakeAnswer::of_text("ok")]).acme(acme.clone()).model("a");
        let mut session = bench.start().await;
        waiting(&mut session).await;
        if other {
            let reference = "acme/b".to_owned();
            session.request(SessionCommand::SetModel { reference, scope: Scope::Session }).await.unwrap();
        }
        session.settled().await;
        let request = bench.provider.requests().pop().unwrap();
        assert_eq!(request.options.continue_from.as_deref(), expected);
    }
}

// Servers that behave badly.

const OK: &str = concat!(
    "data: {\"choices\":[{\"delta\":{\"content\":\"ok\"},\"finish_reason\":\"stop\"}]}\n\n",
    "data: [DONE]\n\n",
);

/// `body` as a gzip file with one stored block (RFC 1951, 3.2.4; RFC 1952).
fn gzip(body: &[u8]) -> Vec<u8> {
    let crc = !body.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(
            crc ^ u32::from(*byte),
            |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 },
        )
    });
    let length = u16::try_from(body.len()).unwrap();
    let header: &[u8] = &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff, 1];
    let (length, inverse) = (length.to_le_bytes(), (!length).to_le_bytes());
    let size = u32::try_from(body.len()).unwrap().to_le_bytes();
    [header, &length, &inverse, body, &crc.to_le_bytes(), &size].concat()
}

fn gzipped(body: &[u8]) -> Reply {
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    Reply::raw([head.as_bytes(), body].concat())
}

/// The error of the last answer on disk.
fn last_error(session: &Session) -> String {
    let failed = entries(&session.path()).into_iter().rev().find_map(|entry| match entry.body {
        EntryBody::Message { message: SessionMessage::Model(message), .. } => match &*message {
            Message::Assistant(answer) => answer.error_message.clone(),
            _ => None,
        },
        _ => None,
    });
    failed.unwrap()
}

#[tokio::test]
async fn a_bad_server_is_named_and_spoils_nothing() {
    let gate = TestBarrier::new();
    let json_error = r#"{"error": {"message": "model is loading", "code": 1}}"#;
    let in_stream = "data: {\"error\": {\"message\": \"worker died\"}}\n\n";
    let redirects = vec![Reply::status(307, &[("location", "/chat/completions")], ""); 5];
    let endless = (0..9).fold(Reply::stream("text/event-stream").piece("data: "), |reply, _| {
        reply.piece(vec![b'x'; 8 << 20])
    });
    let rows: Vec<(&str, Vec<Reply>, &str)> = vec![
        (
            "a web page",
            vec![Reply::status(200, &[("content-type", "text/html")], "<html><title>Log in</title></html>")],
            "acme answered with an HTML page (Log in); check the base URL",
        ),
        (
            "an empty body",
            vec![Reply::status(200, &[], "")],
            "acme sent an empty answer: stream ended before any data",
        ),
        ("an empty error", vec![Reply::status(400, &[], "")], "400: acme answered with an empty body"),
        ("a redirect loop", redirects, "307: acme redirects to /chat/completions; check the base URL"),
        (
            "another content type",
            vec![Reply::status(200, &[("content-type", "text/plain")], "hello")],
            "acme did not answer with an event stream (text/plain): hello",
        ),
        (
            "an error with status 200",
            vec![Reply::status(200, &[("content-type", "application/json")], json_error)],
            "1: model is loading",
        ),
        ("an error in the stream", vec![Reply::sse(in_stream)], "worker died"),
        (
            "an answer that is no stream",
            vec![Reply::status(200, &[("content-type", "application/json")], r#"{"hello": 1}"#)],
            "acme answered with JSON instead of an event stream: {\"hello\": 1}",
        ),
        ("damaged compression", vec![gzipped(b"\x1f\x8b\x08\0no")], "stream interrupted: connection lost"),
        ("no bytes at all", vec![Reply::raw("").hang_up()], "connection lost: http://127.0.0.1"),
        (
            "something that is not HTTP",
            vec![Reply::raw("SSH-2.0-OpenSSH\r\n\r\n").hang_up()],
            "connection lost: http://127.0.0.1",
        ),
        ("noise", vec![Reply::sse(b"\xff\xfe\xfd\n\n")], "stream ended before any event: acme sent only"),
        ("broken events", vec![Reply::sse("data: {\"choices\": [\n\n")], "malformed JSON"),
        ("an endless line", vec![endless.gate(&gate)], "the stream holds an event larger than"),
        (
            "silence",
            vec![Reply::stream("text/event-stream").gate(&gate)],
            "timed out: no data from acme for 0.5 s",
        ),
        (
            "silence before the headers",
            vec![Reply::raw("").gate(&gate)],
            "timed out: no answer from acme for 0.5 s",
        ),
    ];
    for (name, replies, expected) in rows {
        let server = SseServer::start(replies.into_iter().chain([Reply::sse(OK)])).await;
        let settings = json!({"retry": {"enabled": false}});
        let bench = SessionBench::new([]).served_by(server.url(), "openai-completions").settings(settings);
        let mut session = bench.start().await;
        session.ask("one").await;
        let failed = last_error(&session);
        assert!(failed.contains(expected), "{name}: {failed}");
        session.ask("two").await;
        assert_eq!(session.on_disk().last().unwrap(), "answer ok", "{name}");
        assert_eq!(asked(&server, server.requests().len() - 1), ["user: one", "user: two"], "{name}");
    }
}

#[tokio::test]
async fn a_compressed_answer_is_read() {
    let server = SseServer::start([gzipped(&gzip(OK.as_bytes()))]).await;
    let mut session = served(&server, "openai-completions").start().await;
    session.ask("go").await;
    assert_eq!(session.on_disk().last().unwrap(), "answer ok");
}

#[tokio::test]
async fn a_key_that_cannot_be_sent_is_refused_with_its_header() {
    let server = SseServer::start([Reply::sse(OK)]).await;
    let bench = served(&server, "openai-completions");
    fs::write(bench.path("key"), "half\rhalf\n").unwrap();
    let mut session = bench.start().await;
    let reference = "keyed/m-3".to_owned();
    let scope = pi::session::Scope::Session;
    session.request(SessionCommand::SetModel { reference, scope }).await.unwrap();
    session.ask("go").await;
    let expected = "keyed: the header \"authorization\" cannot be sent: its name or value has characters HTTP does not allow";
    assert_eq!(last_error(&session), expected);
    fs::write(bench.path("key"), "good\n").unwrap();
    session.ask("again").await;
    let asked = server.requests();
    assert_eq!(asked[0].header("authorization"), Some("Bearer good"));
    assert_eq!(session.on_disk().last().unwrap(), "answer ok");
}

#[tokio::test]
async fn pictures_of_an_old_session_are_made_to_fit_the_model_at_hand() {
    let server = SseServer::start([Reply::sse(OK), Reply::sse(OK)]).await;
    let bench = served(&server, "anthropic-messages");
    let content = json!([{"type": "text", "text": "look"},
        {"type": "image", "data": picture(9_000, 2).data, "mimeType": "image/jpeg"},
        {"type": "image", "data": "AAAA", "mimeType": "image/png"}]);
    let entry = json!({"type": "message", "id": "u", "parentId": null, "timestamp": "2026-11-21T09:23:47.280Z",
        "message": {"role": "user", "content": content, "timestamp": 1}});
    let path = bench.session_file(&format!("{entry}\n"));
    let before = fs::read_to_string(&path).unwrap();
    let mut session = bench.resume(&path).await;
    session.ask("well?").await;
    let body = &server.requests()[0].body;
    let blocks = body["messages"][0]["content"].as_array().unwrap();
    let data = STANDARD.decode(blocks[1]["source"]["data"].as_str().unwrap()).unwrap();
    assert_eq!(image::load_from_memory(&data).unwrap().width(), 8_000);
    assert_eq!(blocks[1]["source"]["media_type"], "image/png");
    assert_eq!(
        blocks[2]["text"],
        "[Image omitted: could not be converted to a supported inline image format.]"
    );
    assert!(fs::read_to_string(&path).unwrap().starts_with(&before), "the session keeps what it had");
}
