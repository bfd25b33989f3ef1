//! The same answers over a connection, whole, broken off and cancelled.

use std::sync::Arc;

use futures_util::StreamExt as _;
use pi::ai::{
    EventStream, HttpOptions, HttpProvider, MessageBuilder, Millis, Provider, StopReason, StreamEvent,
    TestBarrier, Transport, is_retryable, request_body,
};
use pi::util::clock::Clock;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{checked, everything, outline, read, read_pieces, runnable};
use crate::support::dialects::{Dialect, ROWS, decode, model, request};
use crate::support::sse_server::{Reply, SseServer};

fn provider() -> HttpProvider {
    HttpProvider::new(Transport::new(), Clock::manual(1), HttpOptions::default())
}

fn stream(provider: &HttpProvider, row: &dyn Dialect, url: &str, cancel: &CancellationToken) -> EventStream {
    let user = json!({"role": "user", "content": "hi"});
    provider.stream(Arc::new(request(model(row, url), &[user])), cancel.clone())
}

#[tokio::test]
async fn answers_are_the_same_over_a_connection() {
    let provider = provider();
    for row in ROWS {
        let script = everything(*row);
        let mut reply = Reply::stream(row.content_type());
        for frame in row.frames(&script) {
            let (head, tail) = frame.split_at(frame.len() / 2);
            reply = reply.piece(head).piece(tail);
        }
        let server = SseServer::start([reply]).await;
        let events: Vec<StreamEvent> =
            stream(&provider, *row, server.url(), &CancellationToken::new()).collect().await;
        let mut message = checked(*row, &events);
        assert_eq!(message.duration_ms.take(), Some(0), "{}", row.api());
        message.thinking_level = None;
        assert_eq!(message, read(*row, &script), "{}", row.api());
        let sent = &server.requests()[0];
        assert_eq!(sent.method, "POST", "{}", row.api());
        assert_eq!(sent.header("authorization"), Some("Bearer token"), "{}", row.api());
        assert!(sent.body.to_string().contains("hi"), "{}", row.api());
    }
}

/// Such a body is written while it is sent, once for each attempt.
#[tokio::test]
async fn a_long_request_arrives_as_it_would_be_written() {
    let options = HttpOptions { max_retries: 1, ..HttpOptions::default() };
    let provider = HttpProvider::new(Transport::new(), Clock::manual(1), options);
    let text = "a \"quoted\" line\n".repeat((5 << 20) / 16);
    for row in ROWS {
        let answer =
            row.frames(&everything(*row)).iter().fold(Reply::stream(row.content_type()), Reply::piece);
        let wait = Reply::status(503, &[("retry-after", "0")], "busy");
        let server = SseServer::start([wait, answer]).await;
        let long = json!({"role": "user", "content": text});
        let request = Arc::new(request(model(*row, server.url()), &[long]));
        let events: Vec<StreamEvent> =
            provider.stream(Arc::clone(&request), CancellationToken::new()).collect().await;
        checked(*row, &events);
        let expected = String::from_utf8(request_body(&request).unwrap()).unwrap();
        let sent = server.requests();
        assert_eq!(sent.len(), 2, "{}", row.api());
        for sent in sent {
            assert_eq!(sent.header("content-length"), Some(expected.len().to_string().as_str()));
            assert!(sent.text == expected, "{}: {} bytes", row.api(), sent.text.len());
        }
    }
}

/// The events that `frames` alone lead to, without the end of the stream.
fn events_of(row: &dyn Dialect, frames: &[Vec<u8>]) -> Vec<StreamEvent> {
    let request = request(model(row, "http://x"), &[]);
    let mut events = pi::ai::decode_recorded(&request, frames.iter().map(Vec::as_slice));
    events.pop();
    // Some of these may be from the frames; those that are come before a delta.
    while matches!(events.last(), Some(StreamEvent::BlockEnd { .. })) {
        events.pop();
    }
    events
}

/// The events, with pieces of a block that follow each other as one: how many there are depends on which of
/// them arrived together.
pub(crate) fn joined(events: &[StreamEvent]) -> Vec<StreamEvent> {
    let mut joined: Vec<StreamEvent> = Vec::new();
    for event in events {
        match (joined.last_mut(), event) {
            (Some(StreamEvent::Delta { index: last, text }), StreamEvent::Delta { index, text: more })
                if last == index =>
            {
                text.push_str(more);
            }
            _ => joined.push(event.clone()),
        }
    }
    joined
}

/// The bytes of all pieces, and the number of all other events.
fn progress(events: &[StreamEvent]) -> usize {
    let of_event = |event: &StreamEvent| match event {
        StreamEvent::Delta { text, .. } => text.len(),
        _ => 1,
    };
    events.iter().map(of_event).sum()
}

#[tokio::test]
async fn cancelling_at_any_event_keeps_what_came_and_closes_the_connection() {
    let provider = provider();
    for row in ROWS {
        let frames = row.frames(&everything(*row));
        let gate = TestBarrier::new();
        // The last frames may end the answer, after which there is nothing to cancel.
        let n_open = (0..frames.len()).rev().find(|n| read_prefix(*row, &frames[..*n]).is_failed()).unwrap();
        let replies = (0..=n_open).map(|n| {
            let head = Reply::stream(row.content_type());
            frames[..n].iter().fold(head, Reply::piece).gate(&gate)
        });
        let server = SseServer::start(replies).await;
        for n in 0..=n_open {
            let expected = events_of(*row, &frames[..n]);
            let cancel = CancellationToken::new();
            let mut events = stream(&provider, *row, server.url(), &cancel);
            let mut seen = Vec::new();
            while progress(&seen) < progress(&expected) {
                seen.push(events.next().await.unwrap());
            }
            assert_eq!(joined(&seen), joined(&expected), "{} after {n} frames", row.api());
            gate.reached().await;
            cancel.cancel();
            seen.extend(events.collect::<Vec<_>>().await);
            let message = checked(*row, &seen);
            assert_eq!(message.stop_reason, StopReason::Aborted, "{} after {n} frames", row.api());
            assert_eq!(message.error_message.as_deref(), Some("Request was aborted"));
            assert_eq!(runnable(&message), [""; 0], "{} after {n} frames", row.api());
            assert_eq!(said(&message.content), said(&built(&expected)), "{} after {n} frames", row.api());
            server.client_closed().await;
        }
    }
}

fn read_prefix(row: &dyn Dialect, frames: &[Vec<u8>]) -> pi::ai::AssistantMessage {
    read_pieces(row, frames.iter().map(Vec::as_slice))
}

fn built(events: &[StreamEvent]) -> Vec<pi::ai::AssistantBlock> {
    let pending = pi::ai::AssistantMessage::pending(pi::ai::Api::default(), "", "", Millis(0));
    let mut builder = MessageBuilder::new(pending);
    events.iter().for_each(|event| builder.push(event));
    builder.into_message().content
}

/// Kinds and texts of blocks; of calls only their names, since none is whole.
fn said(content: &[pi::ai::AssistantBlock]) -> Vec<String> {
    use pi::ai::AssistantBlock::{Text, Thinking, ToolCall, Unknown};
    let lines = content.iter().map(|block| match block {
        Text(text) => format!("text {}", text.text),
        Thinking(thinking) => format!("thinking {}", thinking.thinking),
        ToolCall(call) => format!("call {}", call.name),
        Unknown(block) => format!("unknown {block}"),
    });
    lines.collect()
}

#[tokio::test]
async fn a_lost_connection_is_a_failure_that_may_pass_unless_all_was_said() {
    let provider = provider();
    for row in ROWS {
        let script = everything(*row);
        let frames = row.frames(&script);
        let replies = (0..=frames.len()).map(|n| {
            let head = Reply::stream(row.content_type());
            frames[..n].iter().fold(head, Reply::piece).hang_up()
        });
        let server = SseServer::start(replies).await;
        for n in 0..=frames.len() {
            let events = stream(&provider, *row, server.url(), &CancellationToken::new());
            let message = checked(*row, &events.collect::<Vec<_>>().await);
            if message.is_failed() {
                assert!(n < frames.len(), "{}: {:?}", row.api(), message.error_message);
                assert!(is_retryable(&message), "{}: {:?}", row.api(), message.error_message);
                assert_eq!(runnable(&message), [""; 0], "{}", row.api());
            } else {
                assert_eq!(
                    outline(&message),
                    outline(&read(*row, &script)),
                    "{} after {n} frames",
                    row.api()
                );
            }
        }
    }
}

#[tokio::test]
async fn refused_requests_say_why_and_whether_to_try_again() {
    let provider = provider();
    let body = |message: &str| json!({"error": {"type": "x", "message": message}}).to_string();
    for (status, message, retryable) in [
        (401, "invalid key", false),
        (400, "messages.0: bad", false),
        (429, "slow down", true),
        (503, "busy", true),
        (529, "overloaded", true),
    ] {
        for row in ROWS {
            let headers = [("content-type", "application/json")];
            let server = SseServer::start([Reply::status(status, &headers, &body(message))]).await;
            let events = stream(&provider, *row, server.url(), &CancellationToken::new());
            let events: Vec<StreamEvent> = events.collect().await;
            assert_eq!(events.len(), 1, "{}", row.api());
            let answer = checked(*row, &events);
            let error = answer.error_message.as_deref().unwrap();
            let starts = error.starts_with(&format!("{status}: ")) && error.contains(message);
            assert!(starts, "{}: {error}", row.api());
            assert_eq!(is_retryable(&answer), retryable, "{}: {error}", row.api());
        }
    }
}

#[test]
fn nothing_is_read_after_the_end() {
    for row in ROWS {
        let script = everything(*row);
        let mut frames = row.frames(&script);
        let whole = read(*row, &script);
        // Gateways append data of another API.
        frames.push(b"data: [DONE]\n\n".to_vec());
        let message = read_prefix(*row, &frames);
        assert_eq!(message, whole, "{}", row.api());
        assert_eq!(decode(*row, &script).len(), decode(*row, &script.clone()).len());
    }
}
