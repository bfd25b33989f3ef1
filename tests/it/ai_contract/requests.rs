//! What requests hold of what came before.

use pi::ai::{StreamEvent, preview_request};
use serde_json::{Value, json};

use super::{everything, read, usage};
use crate::support::dialects::{Dialect, ImagePlace, Lack, ROWS, Script, Step, decode, model, request};

fn user(content: Value) -> Value {
    json!({"role": "user", "content": content})
}

/// The body of a request that goes on after an answer of the row's model, or of another.
fn after(row: &dyn Dialect, script: &Script, own: bool) -> Value {
    let answer = read(row, script);
    let results = answer.tool_calls().map(|call| {
        let said = format!("result of {}", call.name);
        json!({"role": "toolResult", "toolCallId": call.id, "content": [{"type": "text", "text": said}]})
    });
    let mut messages = vec![
        json!({"role": "system", "content": "Be kind.", "toolsAdded": [{"name": "read"}, {"name": "list"}]}),
        user(json!("hi")),
    ];
    let results: Vec<Value> = results.collect();
    let mut answer = serde_json::to_value(&answer).unwrap();
    answer["role"] = json!("assistant");
    if !own {
        answer["model"] = json!("another");
    }
    messages.push(answer);
    messages.extend(results);
    messages.push(user(json!("so?")));
    preview_request(&request(model(row, "http://x"), &messages)).unwrap().body
}

#[test]
fn an_answer_goes_back_whole() {
    for row in ROWS {
        let body = after(*row, &everything(*row), true).to_string();
        for said in ["Be kind.", "hi", "é漢🦀", "ä🦀.md", "result of read", "result of list", "so?"] {
            assert!(body.contains(said), "{}: {said} is not in {body}", row.api());
        }
        let at = |text: &str| body.find(text).unwrap();
        assert!(at("result of read") < at("result of list"), "{}", row.api());
        assert!(at("é漢🦀") < at("result of read") && at("result of list") < at("so?"), "{}", row.api());
    }
}

#[test]
fn signatures_go_back_to_their_model_and_to_no_other() {
    for row in ROWS.iter().filter(|row| !row.lacks().contains(&Lack::Signatures)) {
        let script = everything(*row);
        let sent = |own: bool| after(*row, &script, own).to_string();
        assert!(sent(true).contains("c2lnbmF0dXJl"), "{}", row.api());
        let foreign = sent(false);
        assert!(!foreign.contains("c2lnbmF0dXJl") && !foreign.contains("Let me"), "{}: {foreign}", row.api());
    }
}

#[test]
fn thinking_that_is_not_signed_stays_with_its_model() {
    for row in ROWS {
        let script = Script::new([
            Step::Thinking { pieces: vec!["Let me see"], signature: None },
            Step::Text(vec!["Done."]),
        ]);
        assert!(!after(*row, &script, false).to_string().contains("Let me see"), "{}", row.api());
        assert!(after(*row, &script, true).to_string().contains("Done."), "{}", row.api());
    }
}

#[test]
fn images_stand_where_the_api_has_a_place_for_them() {
    let image = |data: &str| json!({"type": "image", "data": data, "mimeType": "image/png"});
    let call = json!({"type": "toolCall", "id": "aaaaaaaa1", "name": "see", "arguments": {}});
    let messages = |is_error: bool| {
        vec![
            user(json!([{"type": "text", "text": "look"}, image("AAAA")])),
            json!({"role": "assistant", "content": [call]}),
            json!({"role": "toolResult", "toolCallId": "aaaaaaaa1", "isError": is_error,
                "content": [{"type": "text", "text": "seen"}, image("BBBB")]}),
        ]
    };
    for row in ROWS {
        let sent = |model: Value, is_error: bool| {
            preview_request(&request(model, &messages(is_error))).unwrap().body
        };
        let in_result = match row.api() {
            "anthropic-messages" | "anthropic-vertex" | "bedrock-converse-stream" => ImagePlace::Result,
            api if api.contains("responses") => ImagePlace::Result,
            _ => ImagePlace::AfterResults,
        };
        let body = sent(model(*row, "http://x"), false);
        assert_eq!(row.images(&body), [ImagePlace::Prompt, in_result], "{}", row.api());
        let text = body.to_string();
        assert!(text.find("AAAA").unwrap() < text.find("BBBB").unwrap(), "{}", row.api());
        // Of a failed call the image is still seen, wherever.
        let body = sent(model(*row, "http://x"), true);
        assert_eq!(row.images(&body).len(), 2, "{}", row.api());
        // A model without eyes is told that there was something.
        let mut blind = model(*row, "http://x");
        blind["input"] = json!(["text"]);
        let body = sent(blind, false);
        assert_eq!(row.images(&body), [], "{}", row.api());
        let text = body.to_string();
        assert!(text.contains("(image omitted") && text.contains("(tool image omitted"), "{}", row.api());
    }
    // The one family whose generations differ.
    let gemini = ROWS.iter().find(|row| row.api() == "google-generative-ai").unwrap();
    let mut model = model(*gemini, "http://x");
    model["id"] = json!("gemini-3-pro-preview");
    let body = preview_request(&request(model, &messages(false))).unwrap().body;
    assert_eq!(gemini.images(&body), [ImagePlace::Prompt, ImagePlace::Result]);
}

#[test]
fn usage_is_priced_by_kind_of_token() {
    for row in ROWS {
        let mut priced = model(*row, "http://x");
        priced["cost"] = json!({"input": 1e6, "output": 2e6, "cacheRead": 3e6, "cacheWrite": 4e6});
        let frames = row.frames(&everything(*row));
        let events = pi::ai::decode_recorded(&request(priced, &[]), frames.iter().map(Vec::as_slice));
        let Some(StreamEvent::Done(message)) = events.last() else { panic!("{}", row.api()) };
        let tokens = usage(*row);
        let expected = tokens.input + 2 * tokens.output + 3 * tokens.cache_read + 4 * tokens.cache_write;
        assert_eq!(message.usage.cost.total, expected as f64, "{}", row.api());
    }
}

#[test]
fn two_requests_for_the_same_are_the_same() {
    for row in ROWS {
        let script = everything(*row);
        assert_eq!(decode(*row, &script), decode(*row, &script), "{}", row.api());
        assert_eq!(after(*row, &script, true), after(*row, &script, true), "{}", row.api());
    }
}
