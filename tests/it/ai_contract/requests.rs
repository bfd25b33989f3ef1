//! Which earlier messages requests contain.

use pi::ai::{Request, StreamEvent, ThinkingLevel, preview_request, shortest_answer};
use serde_json::{Value, json};

use super::{everything, read, usage};
use crate::support::dialects::{Dialect, ImagePlace, Lack, ROWS, Script, Step, decode, model, request};

fn user(content: Value) -> Value {
    json!({"role": "user", "content": content})
}

/// The body of a request that follows an answer of the row's model, or of another.
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
        // A model without vision reads a text in place of the image.
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
fn images_by_address_stand_where_they_are_fetched_and_as_text_elsewhere() {
    let image = |url: &str| json!({"type": "text", "text": format!("[image: {url}]"), "imageUrl": url});
    let call = json!({"type": "toolCall", "id": "aaaaaaaa1", "name": "see", "arguments": {}});
    let messages = |url: &str, is_error: bool| {
        vec![
            user(json!([{"type": "text", "text": "look"}, image(url)])),
            json!({"role": "assistant", "content": [call]}),
            json!({"role": "toolResult", "toolCallId": "aaaaaaaa1", "isError": is_error,
                "content": [{"type": "text", "text": "seen"}, image(url)]}),
        ]
    };
    let uploaded = "https://generativelanguage.googleapis.com/v1beta/files/y";
    let (https, http, gs, s3) = ("https://x/y.png", "http://x/y.png", "gs://b/y.png", "s3://b/y.png");
    for row in ROWS {
        let sent = |model: Value, url: &str, is_error: bool| {
            preview_request(&request(model, &messages(url, is_error))).unwrap().body
        };
        let (model_id, fetched): (_, &[&str]) = match row.api() {
            "anthropic-messages" => (None, &[https, uploaded]),
            "anthropic-vertex" => (None, &[]),
            "bedrock-converse-stream" => (Some("us.amazon.nova-pro-v1:0"), &[s3]),
            "google-generative-ai" => (None, &[uploaded]),
            "google-vertex" => (None, &[https, gs]),
            _ => (None, &[https, http, uploaded]),
        };
        let in_result = match row.api() {
            "anthropic-messages" | "bedrock-converse-stream" => ImagePlace::Result,
            api if api.contains("responses") => ImagePlace::Result,
            _ => ImagePlace::AfterResults,
        };
        for url in [https, http, gs, s3, uploaded] {
            let seeing = || {
                let mut model = model(*row, "http://x");
                if let Some(id) = model_id {
                    model["id"] = json!(id);
                }
                model
            };
            let (body, failed) = (sent(seeing(), url, false), sent(seeing(), url, true));
            let label = format!("[image: {url}]");
            if fetched.contains(&url) {
                assert_eq!(row.images(&body), [ImagePlace::Prompt, in_result], "{} {url}", row.api());
                assert_eq!(row.images(&failed).len(), 2, "{} {url}", row.api());
                assert!(!body.to_string().contains(&label), "{} {url}", row.api());
                assert_eq!(body.to_string().matches(url).count(), 2, "{} {url}", row.api());
            } else {
                assert_eq!(row.images(&body), [], "{} {url}", row.api());
                assert_eq!(body.to_string().matches(&label).count(), 2, "{} {url}", row.api());
            }
            let mut blind = seeing();
            blind["input"] = json!(["text"]);
            let body = sent(blind, url, false);
            assert_eq!(row.images(&body), [], "{}", row.api());
            let text = body.to_string();
            assert!(text.contains("(image omitted") && text.contains("(tool image omitted"), "{}", row.api());
        }
    }
}

#[test]
fn images_by_address_are_written_in_the_words_of_each_api() {
    let check = |model: Value, block: Value, pointer: &str, expected: Value| {
        let mut all =
            json!({"id": "m", "provider": "acme", "baseUrl": "http://x", "input": ["text", "image"]});
        all.as_object_mut().unwrap().extend(model.as_object().unwrap().clone());
        let body = preview_request(&request(all, &[user(json!([block]))])).unwrap().body;
        assert_eq!(body.pointer(pointer), Some(&expected), "{body}");
    };
    let image = |url: &str, more: Value| {
        let mut block = json!({"type": "text", "text": format!("[image: {url}]"), "imageUrl": url});
        block.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        block
    };
    let plain = image("https://x/y.png", json!({}));
    let close = image("https://x/y", json!({"mimeType": "image/webp", "detail": "high"}));
    check(
        json!({"api": "anthropic-messages"}),
        plain.clone(),
        "/messages/0/content/0/source",
        json!({"type": "url", "url": "https://x/y.png"}),
    );
    for api in ["openai-completions", "mistral-conversations"] {
        let part = json!({"type": "image_url", "image_url": {"url": "https://x/y.png"}});
        check(json!({"api": api}), plain.clone(), "/messages/0/content/0", part);
        let part = json!({"type": "image_url", "image_url": {"url": "https://x/y", "detail": "high"}});
        check(json!({"api": api}), close.clone(), "/messages/0/content/0", part);
    }
    let part = json!({"type": "input_image", "detail": "auto", "image_url": "https://x/y.png"});
    check(json!({"api": "openai-responses"}), plain.clone(), "/input/0/content/0", part);
    let part = json!({"type": "input_image", "detail": "high", "image_url": "https://x/y"});
    check(json!({"api": "openai-responses"}), close.clone(), "/input/0/content/0", part);
    let vertex = json!({"api": "google-vertex", "provider": "google-vertex"});
    let part = json!({"fileData": {"mimeType": "image/png", "fileUri": "https://x/y.png"}});
    check(vertex.clone(), plain, "/contents/0/parts/0", part);
    let part = json!({"fileData": {"mimeType": "image/webp", "fileUri": "https://x/y"}});
    check(vertex, close, "/contents/0/parts/0", part);
    let uploaded = "https://generativelanguage.googleapis.com/v1beta/files/y";
    let part = json!({"fileData": {"fileUri": uploaded}});
    check(json!({"api": "google-generative-ai"}), image(uploaded, json!({})), "/contents/0/parts/0", part);
    check(
        json!({"api": "bedrock-converse-stream", "id": "us.amazon.nova-pro-v1:0"}),
        image("s3://b/y.jpg", json!({})),
        "/messages/0/content/0/image",
        json!({"format": "jpeg", "source": {"s3Location": {"uri": "s3://b/y.jpg"}}}),
    );
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

/// `body` without the limit of the answer, and the limit.
fn without_limit(mut body: Value) -> (Value, Option<u64>) {
    let mut limit = None;
    for field in ["max_tokens", "max_completion_tokens", "max_output_tokens"] {
        limit = limit.or(body.as_object_mut().unwrap().remove(field));
    }
    for (object, field) in [("generationConfig", "maxOutputTokens"), ("inferenceConfig", "maxTokens")] {
        limit = limit.or(body.get_mut(object).and_then(|object| object.as_object_mut()?.remove(field)));
    }
    (body, limit.and_then(|limit| limit.as_u64()))
}

#[test]
fn a_request_with_the_shortest_answer_differs_in_its_limit_alone() {
    let preview = |request: &Request| without_limit(preview_request(request).unwrap().body);
    for (row, level) in
        ROWS.iter().flat_map(|row| [ThinkingLevel::Off, ThinkingLevel::High].map(|level| (row, level)))
    {
        let messages = [user(json!("hi"))];
        let mut whole = request(model(*row, "http://x"), &messages);
        whole.options.thinking = level;
        let Some(cap) = shortest_answer(&whole) else {
            // Its thinking has a budget, or the service accepts no limit.
            let body = preview_request(&whole).unwrap().body;
            let reason = body.to_string().contains("budget_tokens") || preview(&whole).1.is_none();
            assert!(reason, "{}: {body}", row.api());
            continue;
        };
        let mut capped = whole.clone();
        capped.options.answer_cap = Some(cap);
        let ((body, limit), (capped_body, capped_limit)) = (preview(&whole), preview(&capped));
        assert_eq!(body, capped_body, "{}", row.api());
        assert!(limit > Some(1_000) && capped_limit == Some(cap) && cap <= 16, "{}: {limit:?}", row.api());
        // Limits of the user's own come last, so they cannot be lowered.
        whole.options.extra_body = json!({"max_tokens": 5}).as_object().unwrap().clone();
        assert_eq!(shortest_answer(&whole), None);
    }
}
