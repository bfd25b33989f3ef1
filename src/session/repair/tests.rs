use std::collections::HashMap;

use proptest::prelude::*;
use serde_json::json;

use crate::ai::ThinkingLevel;

use super::super::projection;
use super::super::store::{Entry, EntryBody, EntryId};
use super::*;

/// A conversation from the JSON of its messages; entries are named `0`, `1`, …
fn branch(messages: &[Value]) -> Vec<Arc<Entry>> {
    let entry = |(at, message): (usize, &Value)| {
        let line = json!({"type": "message", "id": at.to_string(), "parentId": null,
            "timestamp": "2026-11-21T09:23:47.280Z", "message": message});
        Arc::new(Entry::parse(&line.to_string()).unwrap())
    };
    messages.iter().enumerate().map(entry).collect()
}

fn model(api: &str) -> Arc<Model> {
    let model = json!({"id": "m", "api": api, "provider": "p", "baseUrl": "http://x", "reasoning": true,
        "input": ["text", "image"]});
    Arc::new(serde_json::from_value(model).unwrap())
}

fn planned(messages: &[Value], api: &str, error: &str, breadth: Breadth) -> Option<Repair> {
    planned_by(messages, model(api), error, breadth)
}

/// The plan after a rejection by `model` with maximum thinking.
fn planned_by(messages: &[Value], model: Arc<Model>, error: &str, breadth: Breadth) -> Option<Repair> {
    let rejection = ai::rejection(error).unwrap();
    let options = StreamOptions { thinking: ThinkingLevel::High, ..StreamOptions::default() };
    let refused = RefusedRequest { model, credential: Credential::None, options };
    plan(&rejection, error, &projection::sources(&branch(messages)), &refused, breadth)
}

/// The conversation after the edits of `repair`.
fn repaired(messages: &[Value], repair: &Repair) -> Vec<Arc<Message>> {
    let mut branch = branch(messages);
    for (at, edit) in repair.edits.iter().enumerate() {
        let body = EntryBody::ContextEdit(Box::new(edit.clone()));
        let id = EntryId::new(&format!("e{at}"));
        let entry = Entry { id, parent_id: None, timestamp: String::new(), body };
        // As it is after the session was opened again.
        branch.push(Arc::new(Entry::parse(&entry.to_line()).unwrap()));
    }
    projection::messages(&branch)
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn image(data: &str) -> Value {
    json!({"type": "image", "data": data, "mimeType": "image/png"})
}

fn call(id: &str) -> Value {
    json!({"type": "toolCall", "id": id, "name": "read", "arguments": {"path": id}})
}

fn user(content: &[Value]) -> Value {
    json!({"role": "user", "content": content})
}

fn answer(content: &[Value]) -> Value {
    json!({"role": "assistant", "content": content, "api": "anthropic-messages", "provider": "p", "model": "m",
        "stopReason": "stop"})
}

fn result(id: &str, content: &[Value]) -> Value {
    json!({"role": "toolResult", "toolCallId": id, "toolName": "read", "content": content, "isError": false})
}

/// The conversation after the repair as `role: content`, one line per message.
fn lines(messages: &[Arc<Message>]) -> Vec<String> {
    let lines = messages.iter().map(|message| {
        let value = json!(message);
        let content = value["content"].as_array().cloned().unwrap_or_default();
        let parts: Vec<&str> = content
            .iter()
            .filter_map(|block| ["text", "data", "thinking", "id"].iter().find_map(|key| block[key].as_str()))
            .collect();
        format!("{}: {}", value["role"].as_str().unwrap(), parts.join(", "))
    });
    lines.collect()
}

#[track_caller]
fn check(messages: &[Value], error: &str, breadth: Breadth, expected: (&str, &[&str])) {
    let repair = planned(messages, "anthropic-messages", error, breadth).unwrap();
    let after = lines(&repaired(messages, &repair));
    assert_eq!(
        (repair.removed.as_str(), after),
        (expected.0, expected.1.iter().map(|line| (*line).to_owned()).collect())
    );
}

const GONE: &str = "[Image removed: the provider rejected it.]";

fn pictures() -> Vec<Value> {
    vec![
        user(&[text("look"), image("A"), image("B")]),
        answer(&[text("reading"), call("c1")]),
        result("c1", &[text("got"), image("C")]),
    ]
}

#[test]
fn the_picture_at_the_place_is_taken_out_and_no_other() {
    let rest = ["assistant: reading, c1", "toolResult: got, C"];
    let user = format!("user: look, A, {GONE}");
    check(
        &pictures(),
        "400: messages.0.content.2.image.source.base64: image exceeds 5 MB maximum",
        Breadth::Named,
        ("1 image", &[&user, rest[0], rest[1]]),
    );
    let tool = format!("toolResult: got, {GONE}");
    check(
        &pictures(),
        "400: messages.2.content.0.tool_result.content.1.image.source: Could not process image",
        Breadth::Named,
        ("1 image", &["user: look, A, B", rest[0], &tool]),
    );
}

#[test]
fn without_a_place_or_a_second_time_all_pictures_go() {
    let user = format!("user: look, {GONE}, {GONE}");
    let tool = format!("toolResult: got, {GONE}");
    let expected: &[&str] = &[&user, "assistant: reading, c1", &tool];
    check(&pictures(), "400: Could not process image", Breadth::Named, ("3 images", expected));
    let placed = "400: messages.0.content.1.image.source.data: Could not process image";
    check(&pictures(), placed, Breadth::All, ("3 images", expected));
    let elsewhere = "400: messages.70.content.1.image.source.data: Could not process image";
    check(&pictures(), elsewhere, Breadth::Named, ("3 images", expected));
}

#[test]
fn other_apis_name_places_in_their_own_way() {
    let rows = [
        ("openai-completions", "400: Invalid image (invalid_image, at messages[0].content[1].image_url.url)"),
        ("openai-responses", "400: Invalid 'input[0].content[1].image_url'. Expected a valid image"),
        ("google-generative-ai", "400: contents[0].parts[1].inline_data: Unsupported MIME type: image/png"),
    ];
    for (api, error) in rows {
        let repair = planned(&pictures(), api, error, Breadth::Named).unwrap();
        let after = lines(&repaired(&pictures(), &repair));
        assert_eq!(after[0], format!("user: look, {GONE}, B"), "{api}");
    }
}

fn image_at(url: &str) -> Value {
    json!({"type": "text", "text": format!("[image: {url}]"), "imageUrl": url})
}

#[test]
fn pictures_that_cannot_be_fetched_are_taken_out_and_no_others() {
    let long = format!("https://x/{}.png", "long".repeat(40));
    let conversation = [
        user(&[image("A"), image_at("https://x/a.png"), image_at("https://x/a.png?b")]),
        answer(&[call("c1")]),
        result("c1", &[image_at(&long)]),
    ];
    let gone = |url: &str| format!("[Image removed: the provider could not use {url}.]");
    let shown = |url: &str| format!("[image: {url}]");
    let urls = ["https://x/a.png", "https://x/a.png?b", &long];
    let check = |error: &str, breadth: Breadth, expected: [bool; 3]| {
        let text = |at: usize| if expected[at] { shown(urls[at]) } else { gone(urls[at]) };
        let n_gone = expected.iter().filter(|stays| !**stays).count();
        let removed = if n_gone == 1 { "1 image".to_owned() } else { format!("{n_gone} images") };
        let user = format!("user: A, {}, {}", text(0), text(1));
        let result = format!("toolResult: {}", text(2));
        self::check(&conversation, error, breadth, (&removed, &[&user, "assistant: c1", &result]));
    };
    let anthropic = "Unable to download the file. Please verify the URL and try again.";
    let placed = format!("400: messages.0.content.1.image.source.url: {anthropic}");
    check(&placed, Breadth::Named, [false, true, true]);
    check(&placed, Breadth::All, [false, false, false]);
    let in_result = format!("400: messages.2.content.0.tool_result.content.0.image.source.url: {anthropic}");
    check(&in_result, Breadth::Named, [true, true, false]);
    check(&format!("400: {anthropic}"), Breadth::Named, [false, false, false]);
    let openai = |url: &str| format!("400: Error while downloading {url}. Upstream status code: 404.");
    check(&openai("https://x/a.png"), Breadth::Named, [false, true, true]);
    check(&openai("https://x/a.png?b"), Breadth::Named, [true, false, true]);
    check(&openai(&long), Breadth::Named, [true, true, false]);
    check(&openai(&format!("{}...", &long[..80])), Breadth::Named, [true, true, false]);
    check(&openai("https://elsewhere/a.png"), Breadth::Named, [false, false, false]);
    // A service that rejects images rejects images by URL too.
    let any = "404: No endpoints found that support image input";
    let expected = format!("user: {GONE}, {}, {}", gone(urls[0]), gone(urls[1]));
    let result = format!("toolResult: {}", gone(&long));
    self::check(&conversation, any, Breadth::Named, ("4 images", &[&expected, "assistant: c1", &result]));
    // A service that fetches nothing may mean an image that is no URL here.
    let expected = [
        "user: look, [Image removed: the provider rejected it.], [Image removed: the provider rejected it.]",
    ];
    let bytes = [user(&[text("look"), image("A"), image("B")])];
    self::check(&bytes, "400: Failed to download image", Breadth::Named, ("2 images", &expected));
}

#[test]
fn other_apis_name_pictures_by_address_in_their_own_way() {
    let conversation = [user(&[text("look"), image_at("https://x/a.png"), image_at("https://x/b.png")])];
    let rows = [
        (
            "openai-completions",
            "400: Failed to download image (invalid_image_url, at messages[0].content[1].image_url.url)",
        ),
        ("openai-responses", "400: Failed to download image: input[0].content[1].image_url"),
        ("google-vertex", "400: contents[0].parts[1].file_data: Cannot fetch content from the provided URL."),
    ];
    for (api, error) in rows {
        let repair = planned(&conversation, api, error, Breadth::Named).unwrap();
        let after = lines(&repaired(&conversation, &repair));
        let expected = "user: look, [Image removed: the provider could not use https://x/a.png.], [image: https://x/b.png]";
        assert_eq!(after[0], expected, "{api}");
    }
}

#[test]
fn as_many_pictures_stay_as_the_service_says() {
    let two = "400: Too many images: at most 2 images are supported";
    let user = format!("user: look, {GONE}, B");
    check(
        &pictures(),
        two,
        Breadth::Named,
        ("1 image", &[&user, "assistant: reading, c1", "toolResult: got, C"]),
    );
}

#[test]
fn a_request_is_made_smaller_only_if_pictures_make_it_large() {
    let too_large = "413: Request exceeds the maximum size (request_too_large)";
    assert_eq!(planned(&pictures(), "anthropic-messages", too_large, Breadth::Named), None);
    let heavy = "A".repeat(1 << 20);
    let conversation = [user(&[image(&heavy), image(&heavy), text("t")])];
    let repair = planned(&conversation, "anthropic-messages", too_large, Breadth::Named).unwrap();
    assert_eq!(repair.removed, "1 image");
}

#[test]
fn thinking_is_taken_out_of_the_answer_named() {
    let signed = |text: &str| json!({"type": "thinking", "thinking": text, "thinkingSignature": "sig"});
    let conversation = [
        user(&[text("a")]),
        answer(&[signed("one"), text("b")]),
        user(&[text("c")]),
        answer(&[signed("two"), call("c1")]),
        result("c1", &[text("d")]),
    ];
    let error = "400: messages.1.content.0: Invalid `signature` in `thinking` block";
    check(
        &conversation,
        error,
        Breadth::Named,
        (
            "the thinking of 1 answer",
            &["user: a", "assistant: b", "user: c", "assistant: two, c1", "toolResult: d"],
        ),
    );
    let repair =
        planned(&conversation, "anthropic-messages", "400: invalid signature", Breadth::Named).unwrap();
    assert_eq!((repair.removed.as_str(), repair.thinking_off), ("the thinking of 2 answers", true));
}

#[test]
fn missing_thinking_is_answered_without_thinking() {
    let error =
        "400: messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`.";
    let repair = planned(&pictures(), "anthropic-messages", error, Breadth::Named).unwrap();
    assert!(repair.edits.is_empty() && repair.thinking_off);
}

#[test]
fn a_refused_call_goes_with_its_result() {
    let conversation = [
        user(&[text("a")]),
        answer(&[text("b"), call("c1"), call("c2")]),
        result("c1", &[text("1")]),
        result("c2", &[text("2")]),
        user(&[text("c")]),
    ];
    let rest = ["user: a", "assistant: b, c1", "toolResult: 1", "user: c"];
    for error in [
        "400: unexpected `tool_use_id` found in `tool_result` blocks: c2. Each",
        "400: messages.1.content.2.tool_use.id: String should match pattern",
        "400: messages.2.content.1.tool_result.tool_use_id: bad",
        "400: No tool output found for tool call c2.",
    ] {
        check(&conversation, error, Breadth::Named, ("1 tool call", &rest));
    }
    let unnamed = "400: Not the same number of function calls and responses";
    check(&conversation, unnamed, Breadth::Named, ("2 tool calls", &["user: a", "assistant: b", "user: c"]));
}

#[test]
fn what_a_repair_leaves_ends_with_something_to_answer() {
    let conversation = [user(&[text("a")]), answer(&[text("b"), call("c1")]), result("c1", &[text("1")])];
    let error = "400: No tool output found for tool call c1.";
    check(&conversation, error, Breadth::Named, ("1 tool call", &["user: a"]));
}

#[test]
fn a_refused_beginning_changes_nothing_of_the_conversation() {
    let error = "400: This model does not support assistant message prefill.";
    let repair = planned(&pictures(), "anthropic-messages", error, Breadth::Named).unwrap();
    assert!(repair.edits.is_empty() && repair.no_continuation);
}

#[test]
fn nothing_is_done_where_nothing_is_found() {
    let conversation = [user(&[text("a")])];
    for error in ["400: Could not process image", "400: invalid signature", "400: empty text"] {
        assert_eq!(planned(&conversation, "anthropic-messages", error, Breadth::All), None, "{error}");
    }
}

const ERRORS: &[&str] = &[
    "400: Could not process image",
    "400: messages.1.content.0.image.source: Could not process image",
    "400: messages.0.content.0.image.source.url: Unable to download the file.",
    "400: Error while downloading https://x/a.png.",
    "400: Too many images: at most 1 image",
    "413: Payload Too Large",
    "400: messages.1.content.0: Invalid `signature` in `thinking` block",
    "400: unexpected `tool_use_id` found in `tool_result` blocks: c1",
    "400: messages.2.content.0.tool_use.id: bad",
    "400: Not the same number of function calls and responses",
    "400: messages.1: all messages must have non-empty content",
    "400: messages.0.content.0: text content blocks must be non-empty",
];

fn any_message() -> impl Strategy<Value = Value> {
    let id = prop_oneof!["c[1-4]", Just("fc|item".to_owned())];
    let content = || {
        let block = prop_oneof![
            "[a ]{0,2}".prop_map(|words| text(&words)),
            "[A-Z]{1,3}".prop_map(|data| image(&data)),
            "[ab]".prop_map(|name| image_at(&format!("https://x/{name}.png"))),
        ];
        proptest::collection::vec(block, 0..3)
    };
    let said = prop_oneof![
        "[a ]{0,2}".prop_map(|words| text(&words)),
        id.clone().prop_map(|id| call(&id)),
        "[a-z]{0,2}"
            .prop_map(|words| json!({"type": "thinking", "thinking": words, "thinkingSignature": "s"})),
    ];
    prop_oneof![
        content().prop_map(|content| user(&content)),
        (proptest::collection::vec(said, 0..4), any::<bool>()).prop_map(|(content, failed)| {
            let mut answer = answer(&content);
            if failed {
                answer["stopReason"] = json!("error");
                answer["errorMessage"] = json!("e");
            }
            answer
        }),
        (id, content()).prop_map(|(id, content)| result(&id, &content)),
    ]
}

/// The rules of the strictest API, for the messages of a request to it.
fn obeys_the_rules(messages: &[Value]) -> Result<(), String> {
    let ids = |message: &Value, kind: &str, key: &str| -> Vec<String> {
        let blocks = message["content"].as_array().into_iter().flatten();
        let blocks = blocks.filter(|block| block["type"] == kind);
        blocks.map(|block| block[key].as_str().unwrap().to_owned()).collect()
    };
    let mut calls = Vec::new();
    let mut seen = HashMap::new();
    for message in messages {
        if ids(message, "tool_result", "tool_use_id") != calls {
            return Err(format!("results do not answer {calls:?}: {message}"));
        }
        calls = ids(message, "tool_use", "id");
        for id in &calls {
            if seen.insert(id.clone(), ()).is_some() {
                return Err(format!("{id} twice"));
            }
        }
        let blocks = message["content"].as_array().ok_or("no blocks")?;
        let is_blank =
            |block: &Value| block["type"] == "text" && block["text"].as_str().unwrap().trim().is_empty();
        if blocks.is_empty() || blocks.iter().any(is_blank) {
            return Err(format!("blank: {message}"));
        }
    }
    if calls.is_empty() { Ok(()) } else { Err(format!("{calls:?} are not answered")) }
}

/// The images left after the image at `place` was refused.
fn images_left(model: Value, place: &str) -> Vec<String> {
    let mut all = json!({"id": "m", "provider": "p", "reasoning": true, "input": ["text", "image"]});
    all.as_object_mut().unwrap().extend(model.as_object().unwrap().clone());
    let model: Arc<Model> = Arc::new(serde_json::from_value(all).unwrap());
    let messages = [
        user(&[text("a"), image("first")]),
        json!({"role": "assistant", "api": model.api, "provider": "p", "model": "m", "content": [text("b")],
            "providerThinkingLevel": "high"}),
        user(&[text("c"), image("second")]),
        json!({"role": "assistant", "api": model.api, "provider": "p", "model": "m", "content": [text("d")],
            "providerThinkingLevel": "high"}),
        user(&[text("e"), image("third")]),
    ];
    let error = format!("400: {place}: Could not process image");
    let repair = planned_by(&messages, model, &error, Breadth::Named).unwrap();
    let after = repaired(&messages, &repair);
    let blocks = after.iter().flat_map(|message| message.input_blocks());
    let images = blocks.filter_map(|block| match block {
        ContentBlock::Image(image) => Some(image.data.clone()),
        _ => None,
    });
    images.collect()
}

#[test]
fn a_place_is_one_of_the_request_as_it_was_sent() {
    let told = json!({"api": "anthropic-messages", "baseUrl": "http://x",
        "compat": {"supportsMidConvoEffort": true, "forceAdaptiveThinking": true}});
    // Two messages with the thinking effort follow it.
    assert_eq!(images_left(told, "messages.3.content.1"), ["first", "third"]);
    let untold = json!({"api": "anthropic-messages", "baseUrl": "http://x"});
    assert_eq!(images_left(untold, "messages.2.content.1"), ["first", "third"]);
    // The endpoint is unknown without a credential.
    let vertex = json!({"id": "gemini-2.5-pro", "api": "google-vertex"});
    assert_eq!(images_left(vertex, "contents[2].parts[1]"), ["first", "third"]);
}

#[test]
fn the_number_of_images_is_told_from_places_and_counts() {
    let check = |text: &str, expected: Option<usize>| assert_eq!(image_limit(text), expected, "{text}");
    check("400: messages.3.content.104: at most 100 images are allowed", Some(100));
    check("400: Too many images provided. This model supports up to 5 images", Some(5));
    check("400: At most 1 image(s) may be provided in one prompt.", Some(1));
    check("400: the number of images exceeds the limit of 20 (got 31)", Some(20));
    check("400: too many images", None);
}

proptest! {
    #[test]
    fn any_repaired_conversation_obeys_the_rules(
        messages in proptest::collection::vec(any_message(), 1..9),
        error in proptest::sample::select(ERRORS),
        all in any::<bool>(),
        api in proptest::sample::select(&["anthropic-messages", "openai-responses", "openai-completions", "google-generative-ai"]),
    ) {
        let breadth = if all { Breadth::All } else { Breadth::Named };
        let Some(repair) = planned(&messages, api, error, breadth) else { return Ok(()) };
        let after = repaired(&messages, &repair);
        let request = Request {
            model: model("anthropic-messages"),
            credential: Credential::None,
            messages: after.clone(),
            options: StreamOptions::default(),
        };
        let body = ai::preview_request(&request).unwrap().body;
        let sent = body["messages"].as_array().unwrap();
        prop_assert_eq!(obeys_the_rules(sent), Ok(()));
        let before = Request { messages: projection::messages(&branch(&messages)), ..request };
        let before = ai::preview_request(&before).unwrap().body;
        let role = |sent: &Value| sent["messages"].as_array().unwrap().last().map(|last| last["role"].clone());
        if role(&before) == Some(json!("user")) {
            prop_assert!(role(&body) != Some(json!("assistant")), "nothing to answer");
        }
        let is_about_addresses = error.contains("ownload");
        if all && error.contains("image") && !is_about_addresses {
            prop_assert!(!body.to_string().contains("\"image\""));
        }
        if all && is_about_addresses {
            // Embedded images stay as long as there are others.
            prop_assert!(!json!(after).to_string().contains("imageUrl"));
        } else if all {
            let after: Vec<Value> = after.iter().map(|message| json!(message)).collect();
            prop_assert_eq!(planned(&after, api, error, breadth), None, "a second time nothing is left to repair");
        }
    }
}
