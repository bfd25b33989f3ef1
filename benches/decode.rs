//! Decoding of long answers: `cargo bench --bench decode`.

use std::sync::Arc;

use divan::counter::{BytesCount, ItemsCount};
use pi::ai::{Credential, Request, StreamOptions, decode_recorded};

const N_DELTAS: usize = 20_000;
/// Approximate size of one read from a connection.
const CHUNK_BYTES: usize = 16 << 10;

fn main() {
    divan::main();
}

#[divan::bench]
fn anthropic_messages(bencher: divan::Bencher<'_, '_>) {
    let mut body = String::from(
        "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"content\":[],\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}}\n\n\
         event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
    );
    for _ in 0..N_DELTAS {
        body.push_str("event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\" and so on\"}    }\n\n");
    }
    body.push_str(
        "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n\
         event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":20000}}\n\n\
         event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
    );
    decode(bencher, "anthropic-messages", &body);
}

#[divan::bench]
fn openai_completions(bencher: divan::Bencher<'_, '_>) {
    let frame = |delta: &str, finish: &str| {
        format!(
            "data: {{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1773346298,\"model\":\"m\",\"system_fingerprint\":\"fp_1\",\"choices\":[{{\"index\":0,\"delta\":{delta},\"logprobs\":null,\"finish_reason\":{finish}}}]}}\n\n"
        )
    };
    let mut body = frame("{\"content\":\" and so on\"}", "null").repeat(N_DELTAS);
    body.push_str(&frame("{}", "\"stop\""));
    body.push_str("data: [DONE]\n\n");
    decode(bencher, "openai-completions", &body);
}

#[divan::bench]
fn openai_responses(bencher: divan::Bencher<'_, '_>) {
    let mut body = String::from(
        "event: response.output_item.added\ndata: {\"type\":\"response.output_item.added\",\"sequence_number\":1,\"output_index\":0,\"item\":{\"id\":\"msg_1\",\"type\":\"message\",\"status\":\"in_progress\",\"content\":[],\"role\":\"assistant\"}}\n\n",
    );
    for _ in 0..N_DELTAS {
        body.push_str("event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"sequence_number\":2,\"item_id\":\"msg_1\",\"output_index\":0,\"content_index\":0,\"delta\":\" and so on\",\"logprobs\":[],\"obfuscation\":\"kPzqgH\"}\n\n");
    }
    body.push_str("event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"id\":\"resp_1\",\"status\":\"completed\",\"output\":[]}}\n\n");
    decode(bencher, "openai-responses", &body);
}

#[divan::bench]
fn google_generative_ai(bencher: divan::Bencher<'_, '_>) {
    let frame = |part: &str, finish: &str| {
        format!(
            "data: {{\"candidates\": [{{\"content\": {{\"parts\": [{part}],\"role\": \"model\"}},{finish}\"index\": 0}}],\"usageMetadata\": {{\"promptTokenCount\": 11,\"candidatesTokenCount\": 14,\"totalTokenCount\": 231,\"promptTokensDetails\": [{{\"modality\": \"TEXT\",\"tokenCount\": 11}}],\"thoughtsTokenCount\": 206}},\"modelVersion\": \"m\",\"responseId\": \"r\"}}\r\n\r\n"
        )
    };
    let mut body = frame("{\"text\": \" and so on\"}", "").repeat(N_DELTAS);
    body.push_str(&frame("{\"text\": \"\",\"thoughtSignature\": \"AAAA\"}", "\"finishReason\": \"STOP\","));
    decode(bencher, "google-generative-ai", &body);
}

#[divan::bench]
fn bedrock_converse_stream(bencher: divan::Bencher<'_, '_>) {
    let delta = amazon_event(
        "contentBlockDelta",
        "{\"contentBlockIndex\":0,\"delta\":{\"text\":\" and so on\"},\"p\":\"abcdefghijklmnopqrstuvwxyz\"}",
    );
    let mut body = delta.repeat(N_DELTAS);
    body.extend(amazon_event("contentBlockStop", "{\"contentBlockIndex\":0}"));
    body.extend(amazon_event("messageStop", "{\"stopReason\":\"end_turn\"}"));
    decode(bencher, "bedrock-converse-stream", &body);
}

/// An event in the framing of `application/vnd.amazon.eventstream`.
fn amazon_event(kind: &str, payload: &str) -> Vec<u8> {
    let mut headers = Vec::new();
    for (name, value) in
        [(":event-type", kind), (":content-type", "application/json"), (":message-type", "event")]
    {
        headers.push(name.len() as u8);
        headers.extend(name.as_bytes());
        headers.push(7);
        headers.extend((value.len() as u16).to_be_bytes());
        headers.extend(value.as_bytes());
    }
    let mut event = ((16 + headers.len() + payload.len()) as u32).to_be_bytes().to_vec();
    event.extend((headers.len() as u32).to_be_bytes());
    event.extend(crc32fast::hash(&event).to_be_bytes());
    event.extend(headers);
    event.extend(payload.as_bytes());
    event.extend(crc32fast::hash(&event).to_be_bytes());
    event
}

fn decode(bencher: divan::Bencher<'_, '_>, api: &str, body: impl AsRef<[u8]>) {
    let body = body.as_ref();
    let model = serde_json::json!({"id": "m", "api": api, "provider": "p"});
    let request = Request {
        model: Arc::new(serde_json::from_value(model).expect("the model is written above")),
        credential: Credential::None,
        messages: Vec::new(),
        options: StreamOptions::default(),
    };
    bencher
        .counter(ItemsCount::new(N_DELTAS))
        .counter(BytesCount::of_slice(body))
        .bench(|| decode_recorded(&request, body.chunks(CHUNK_BYTES)));
}
