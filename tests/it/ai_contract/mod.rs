//! Rules for every wire API.
//!
//! The rows are those of [`dialects`]: each writes the same answers in the words
//! of its API, and every case runs over all of them. The grammar of events is
//! checked wherever events are read.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

mod answers;
mod requests;
pub(crate) mod transport;

use pi::ai::{
    Api, AssistantBlock, AssistantMessage, MessageBuilder, Millis, StopReason, StreamEvent, StreamOrder,
    decode_recorded, supported_apis,
};
use serde_json::{Value, json};

use crate::support::dialects::{
    Call, Dialect, End, Lack, ROWS, Refusal, Script, Step, Tokens, decode, model, request,
};

#[test]
fn every_api_has_a_row() {
    let rows: Vec<&str> = ROWS.iter().map(|row| row.api()).collect();
    for api in supported_apis() {
        assert!(rows.contains(&api), "{api} has no row in tests/it/support/dialects");
    }
    assert_eq!(rows.len(), supported_apis().len());
}

/// A row that could declare anything as missing would pass everything.
#[test]
fn every_row_has_what_a_conversation_needs() {
    use Lack::{
        ArgumentPieces, BrokenArguments, CacheWrites, Identity, ReasoningTokens, RefusalWords, Signatures,
    };
    for row in ROWS {
        let lacks: &[Lack] = match row.api() {
            "google-generative-ai" | "google-vertex" => &[ArgumentPieces, BrokenArguments, CacheWrites],
            "bedrock-converse-stream" => &[ReasoningTokens, Identity, RefusalWords],
            "mistral-conversations" => &[Signatures, ArgumentPieces, CacheWrites, ReasoningTokens],
            _ => &[],
        };
        assert_eq!(row.lacks(), lacks, "{}", row.api());
        let frames = row.frames(&everything(*row));
        assert!(frames.len() > 5 && frames.iter().all(|frame| !frame.is_empty()), "{}", row.api());
    }
}

/// An answer with all that the row has: thinking, text, calls, unknown and empty events.
fn everything(row: &dyn Dialect) -> Script {
    let signature = (!row.lacks().contains(&Lack::Signatures)).then_some("c2lnbmF0dXJl");
    Script::new([
        Step::Thinking { pieces: vec!["Let me ", "", "see."], signature },
        Step::Unknown,
        Step::Text(vec!["é漢", "", "🦀 \u{200d}👩‍👩‍👧 \"}\\n"]),
        Step::Calls(vec![
            Call { id: "aaaaaaaa1", name: "read", pieces: vec!["{\"path\":", "", "\"ä🦀.md\"}"] },
            Call { id: "aaaaaaaa2", name: "list", pieces: vec![""] },
        ]),
    ])
    .usage(usage(row))
}

/// The fields the row's API can express.
fn usage(row: &dyn Dialect) -> Tokens {
    let lacks = |lack: Lack| row.lacks().contains(&lack);
    Tokens {
        input: 100,
        output: 30,
        cache_read: 4_000,
        cache_write: if lacks(Lack::CacheWrites) { 0 } else { 250 },
        reasoning: if lacks(Lack::ReasoningTokens) { 0 } else { 12 },
    }
}

/// The content of a script, by kinds and texts.
fn content_of(script: &Script, refusal: Refusal) -> Value {
    let mut blocks = Vec::new();
    for step in &script.steps {
        match step {
            Step::Text(pieces) => blocks.push(json!({"text": pieces.concat()})),
            Step::Thinking { pieces, .. } => blocks.push(json!({"thinking": pieces.concat()})),
            Step::Calls(calls) => blocks.extend(calls.iter().map(|call| {
                let arguments = call.pieces.concat();
                let arguments = if arguments.is_empty() { "{}" } else { &arguments };
                json!({"call": call.id, "name": call.name,
                    "arguments": serde_json::from_str::<Value>(arguments).unwrap()})
            })),
            Step::Unknown => {}
        }
    }
    if let (End::Refused(words), Refusal::Said) = (script.end, refusal) {
        blocks.push(json!({"text": words}));
    }
    Value::Array(blocks)
}

/// As [`content_of`], of a message. A call that must not run has no arguments.
fn outline(message: &AssistantMessage) -> Value {
    let blocks = message.content.iter().map(|block| match block {
        AssistantBlock::Text(text) => json!({"text": text.text}),
        AssistantBlock::Thinking(thinking) => json!({"thinking": thinking.thinking}),
        AssistantBlock::ToolCall(call) => {
            // The second part of an id is the API's own affair.
            let id = call.id.split('|').next();
            let arguments = call.arguments_error.is_none().then_some(&call.arguments);
            json!({"call": id, "name": call.name, "arguments": arguments})
        }
        AssistantBlock::Unknown(block) => block.clone(),
    });
    blocks.collect()
}

/// The message of a stream whose events are in order, not empty and consistent with it.
fn checked(row: &dyn Dialect, events: &[StreamEvent]) -> AssistantMessage {
    let mut order = StreamOrder::default();
    let mut builder = MessageBuilder::new(AssistantMessage::pending(Api::default(), "", "", Millis(0)));
    for event in events {
        order.accept(event).unwrap_or_else(|error| panic!("{}: {error}", row.api()));
        match event {
            StreamEvent::Delta { text, .. } => assert!(!text.is_empty(), "{}: an empty piece", row.api()),
            StreamEvent::Done(message) => {
                assert_eq!(builder.message().content, message.content, "{}", row.api());
            }
            _ => {}
        }
        builder.push(event);
    }
    assert!(order.is_done(), "{}", row.api());
    let message = builder.into_message();
    // Calls of an answer that failed or was too long are not run; of those that
    // are, all must be whole.
    assert_eq!(message.error_message.is_some(), message.is_failed(), "{}", row.api());
    message
}

/// The calls of `message` that the agent would run.
fn runnable(message: &AssistantMessage) -> Vec<&str> {
    if !matches!(message.stop_reason, StopReason::Stop | StopReason::ToolUse) {
        return Vec::new();
    }
    let whole = message.tool_calls().filter(|call| call.arguments_error.is_none());
    whole.map(|call| call.name.as_str()).collect()
}

fn read(row: &dyn Dialect, script: &Script) -> AssistantMessage {
    checked(row, &decode(row, script))
}

/// The message of `body`, in the pieces in which it arrives.
fn read_pieces<'a>(row: &dyn Dialect, pieces: impl IntoIterator<Item = &'a [u8]>) -> AssistantMessage {
    checked(row, &decode_recorded(&request(model(row, "http://x"), &[]), pieces))
}
