//! Writing the request of a long session: `cargo bench --bench encode`.

use std::sync::Arc;

use divan::counter::{BytesCount, ItemsCount};
use pi::ai::{Credential, Message, Request, StreamOptions, request_body, supported_apis};
use serde_json::{Value, json};

const N_MESSAGES: usize = 2_000;

fn main() {
    divan::main();
}

/// The cost of every request of the session, paid once before it is sent.
#[divan::bench(args = supported_apis())]
fn long_session(bencher: divan::Bencher<'_, '_>, api: &str) {
    let request = request(api);
    let n_bytes = request_body(&request).map(|body| body.len()).expect("the request can be written");
    bencher
        .counter(ItemsCount::new(N_MESSAGES))
        .counter(BytesCount::new(n_bytes))
        .bench(|| request_body(&request));
}

/// Turns of four messages: prompt, thinking with a call, result, answer.
fn request(api: &str) -> Request {
    let tools = json!([{"name": "read", "description": "Reads a file", "parameters": {"type": "object",
        "properties": {"path": {"type": "string"}}, "required": ["path"]}}]);
    let mut messages = vec![json!({"role": "system", "content": "Be brief.", "toolsAdded": tools})];
    let answer = |content: Value| json!({"role": "assistant", "api": api, "provider": "p", "model": "m", "content": content});
    for at in 0..N_MESSAGES / 4 {
        let id = format!("call_{at}");
        messages.push(json!({"role": "user", "content": [{"type": "text", "text": "Look at this file, please. ".repeat(8)}]}));
        messages.push(answer(json!([
            {"type": "thinking", "thinking": "hm", "thinkingSignature": "c2lnbmF0dXJl"},
            {"type": "toolCall", "id": id, "name": "read", "arguments": {"path": "src/main.rs"}},
        ])));
        messages.push(json!({"role": "toolResult", "toolCallId": id,
            "content": [{"type": "text", "text": "fn main() { println!(\"é\"); }\n".repeat(50)}]}));
        messages.push(answer(json!([{"type": "text", "text": "It prints a letter. ".repeat(20)}])));
    }
    let model = json!({"id": "m", "api": api, "provider": "p", "baseUrl": "http://x/v1", "reasoning": true});
    let messages =
        messages.into_iter().map(|message| serde_json::from_value::<Message>(message).map(Arc::new));
    Request {
        model: Arc::new(serde_json::from_value(model).expect("the model is written above")),
        credential: Credential::None,
        messages: messages.collect::<Result<_, _>>().expect("the messages are written above"),
        options: StreamOptions::default(),
    }
}
