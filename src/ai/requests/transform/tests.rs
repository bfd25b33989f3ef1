use serde_json::json;

use super::super::request::StreamOptions;
use super::*;
use crate::ai::transport::Credential;

fn prompt(request: &Request, ids: IdRule) -> Prompt<'_> {
    super::prompt(request, ids, Updates::None)
}

const WORD: IdRule = IdRule::Word { max: 64 };

fn request(messages: Value, model: Value) -> Request {
    let mut base = json!({"id": "m", "provider": "p", "api": "a"});
    base.as_object_mut().unwrap().extend(model.as_object().unwrap().clone());
    Request {
        model: Arc::new(serde_json::from_value(base).unwrap()),
        credential: Credential::None,
        messages: serde_json::from_value(messages).unwrap(),
        options: StreamOptions::default(),
    }
}

/// One line per block: role, content, ids.
fn outline(prompt: &Prompt<'_>) -> Vec<String> {
    let content = |content: &[Content<'_>]| -> String {
        let parts: Vec<&str> = content
            .iter()
            .map(|content| match content {
                Content::Text(text) => text,
                Content::Image(_) => "<image>",
            })
            .collect();
        parts.join("+")
    };
    let mut lines = Vec::new();
    for turn in &prompt.turns {
        match turn {
            // Has a test of its own.
            Turn::User(user) if content(user) == NO_TEXT => {}
            Turn::User(user) => lines.push(format!("user {}", content(user))),
            Turn::System(update) => {
                let added: Vec<&str> = update.tools_added.iter().map(|tool| tool.name.as_str()).collect();
                lines.push(format!("system {:?} +{added:?} -{:?}", update.text, update.tools_removed));
            }
            Turn::Assistant(turn) => {
                for block in &turn.blocks {
                    lines.push(match block {
                        Block::Text { text, signature: None } => format!("text {text}"),
                        Block::Text { text, signature: Some(signature) } => {
                            format!("text {text}~{signature}")
                        }
                        Block::Thinking(thinking) => format!("thinking {}", thinking.thinking),
                        Block::ToolCall { id, name, arguments, signature } => {
                            let signed =
                                signature.map_or_else(String::new, |signature| format!("~{signature}"));
                            format!("call {id} {name}{arguments}{signed}")
                        }
                    });
                }
                for result in &turn.results {
                    let kind = if result.is_error { "error" } else { "result" };
                    lines.push(format!("{kind} {} {}", result.id, content(&result.content)));
                }
            }
        }
    }
    lines
}

#[track_caller]
fn check(messages: Value, expected: &[&str]) {
    assert_eq!(outline(&prompt(&request(messages, json!({})), WORD)), expected);
}

fn answer(content: Value) -> Value {
    json!({"role": "assistant", "provider": "p", "api": "a", "model": "m", "content": content})
}

fn call(id: &str) -> Value {
    json!({"type": "toolCall", "id": id, "name": "read", "arguments": {}})
}

fn result(id: &str, text: &str) -> Value {
    json!({"role": "toolResult", "toolCallId": id, "toolName": "read", "content": [{"type": "text", "text": text}]})
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

#[test]
fn system_messages_collapse_into_one_prompt() {
    let messages: Vec<Arc<Message>> = serde_json::from_value(json!([
        {"role": "system", "content": "Base", "sections": {"a": "A", "b": "B", "c": "C"},
         "toolsAdded": [{"name": "read"}, {"name": "bash"}]},
        user("hi"),
        {"role": "system", "content": "", "sections": {"b": null, "a": "A2", "d": "D"},
         "toolsRemoved": [{"name": "read"}], "toolsAdded": [{"name": "bash", "description": "new"}, {"name": "read"}]},
        {"role": "system", "content": "More", "sections": {"b": "B3"}},
    ]))
    .unwrap();
    let state = system_state(&messages);
    assert_eq!(state.prompt(), "Base\n\nMore\n\nA2\n\nB3\n\nC\n\nD");
    let tools: Vec<(&str, &str)> =
        state.tools.iter().map(|tool| (tool.name.as_str(), tool.description.as_str())).collect();
    assert_eq!(tools, [("bash", "new"), ("read", "")]);
}

#[test]
fn failed_answers_and_their_results_are_not_repeated() {
    let mut failed = answer(json!([{"type": "text", "text": "par"}, call("x")]));
    failed["stopReason"] = json!("error");
    check(json!([user("a"), failed, result("x", "lost"), user("b")]), &["user a", "user b"]);
}

#[test]
fn every_call_has_one_result_right_after_its_answer() {
    check(
        json!([
            user("a"),
            answer(json!([call("1"), call("2")])),
            result("stray", "-"),
            {"role": "system", "content": "s"},
            user("typed meanwhile"),
            result("2", "two"),
            result("2", "again"),
            user("b"),
            answer(json!([call("3")])),
        ]),
        &[
            "user a",
            "call 1 read{}",
            "call 2 read{}",
            "error 1 No result provided",
            "result 2 two",
            "user typed meanwhile",
            "user b",
            "call 3 read{}",
            "error 3 No result provided",
        ],
    );
}

#[test]
fn equal_ids_are_told_apart_within_and_across_answers() {
    let request = request(
        json!([
            answer(json!([call("x"), call("x")])),
            result("x", "first"),
            result("x", "second"),
            answer(json!([call("x")])),
            result("x", "third"),
        ]),
        json!({}),
    );
    let lines = outline(&prompt(&request, WORD));
    let ids: HashSet<&str> = lines
        .iter()
        .filter(|line| line.starts_with("call"))
        .filter_map(|line| line.split(' ').nth(1))
        .collect();
    assert_eq!(ids.len(), 3, "{lines:?}");
    assert!(lines[2].ends_with("first") && lines[3].ends_with("second") && lines[5].ends_with("third"));
}

#[test]
fn another_models_thinking_is_dropped_and_its_ids_are_fitted() {
    let content =
        json!([{"type": "thinking", "thinking": "hm", "thinkingSignature": "s"}, call("functions.read:0")]);
    check(
        json!([answer(content.clone()), result("functions.read:0", "ok")]),
        &["thinking hm", "call functions.read:0 read{}", "result functions.read:0 ok"],
    );
    let mut foreign = answer(content);
    foreign["model"] = json!("other");
    check(
        json!([foreign, result("functions.read:0", "ok")]),
        &["call functions_read_0 read{}", "result functions_read_0 ok"],
    );
}

#[test]
fn ids_of_two_parts_are_told_apart_by_the_first() {
    let calls = ["c1|fc_1", "c1|fc_2", "", "d:e|fc_3"];
    let long = "x".repeat(65) + "|fc_4";
    let ids = |model: &str| -> Vec<String> {
        let mut message = answer(calls.iter().chain([&&*long]).map(|id| call(id)).collect());
        message["model"] = json!(model);
        let request = request(json!([message]), json!({}));
        let lines = outline(&prompt(&request, IdRule::CallAndItem { max: 64 }));
        let ids = lines.iter().filter_map(|line| line.strip_prefix("call ")?.split(' ').next());
        ids.map(str::to_owned).collect()
    };
    let own = ids("m");
    assert_eq!((own[0].as_str(), own[3].as_str()), ("c1|fc_1", "d:e|fc_3"));
    assert!(own[1].starts_with("c1_") && own[1] != own[0] && !own[2].is_empty(), "{own:?}");
    assert!(own[4].len() == 64 && !own[4].contains('|'), "{own:?}");
    let foreign = ids("other");
    assert_eq!((foreign[0].as_str(), foreign[3].as_str()), ("c1", "d_e"));
    assert!(foreign.iter().all(|id| id.len() <= 64 && id.chars().all(is_word)), "{foreign:?}");
}

#[test]
fn signatures_go_back_to_the_model_that_made_them() {
    let mut call = call("c");
    call["thoughtSignature"] = json!("S");
    let mut signed = answer(json!([
        {"type": "text", "text": "a", "textSignature": "T"},
        {"type": "text", "text": "", "textSignature": "U"},
        {"type": "text", "text": "b", "textSignature": ""},
        call,
    ]));
    let messages = |answer: &Value| json!([answer, result("c", "r")]);
    check(messages(&signed), &["text a~T", "text ~U", "text b", "call c read{}~S", "result c r"]);
    signed["model"] = json!("other");
    check(messages(&signed), &["text a", "text b", "call c read{}", "result c r"]);
}

#[test]
fn empty_and_unknown_things_are_not_sent() {
    check(
        json!([
            user(" \n"),
            {"role": "user", "content": [{"type": "hologram"}, {"type": "text", "text": ""}]},
            answer(json!([{"type": "text", "text": " "}, {"type": "thinking", "thinking": ""}, {"type": "??"}])),
            answer(json!([call("1")])),
            {"role": "toolResult", "toolCallId": "1", "content": []},
        ]),
        &["call 1 read{}", "result 1 (no tool output)"],
    );
    check(
        json!([answer(json!([{"type": "toolCall", "id": "1", "name": "x", "arguments": null}]))]),
        &["call 1 x{}", "error 1 No result provided"],
    );
}

#[test]
fn arguments_that_broke_off_are_not_sent() {
    let mut cut = call("1");
    cut["arguments"] = json!({"path": "no"});
    cut["argumentsError"] = json!("the arguments were cut off\n\nReceived arguments:\n{\"path\":\"no");
    check(json!([answer(json!([cut]))]), &["call 1 read{}", "error 1 No result provided"]);
}

#[test]
fn runs_of_images_become_one_placeholder_for_models_that_read_text() {
    let image = json!({"type": "image", "data": "AA==", "mimeType": "image/png"});
    let messages = json!([
        {"role": "user", "content": [{"type": "text", "text": "look"}, image, image, {"type": "text", "text": "x"}, image]},
    ]);
    let omitted = "(image omitted: model does not support images)";
    check(messages.clone(), &[&format!("user look+{omitted}+x+{omitted}")]);
    let request = request(messages, json!({"input": ["text", "image"]}));
    assert_eq!(outline(&prompt(&request, WORD)), ["user look+<image>+<image>+x+<image>"]);
}

#[test]
fn ids_fit_the_rule_and_distinct_ones_stay_distinct() {
    let long = "call_".to_owned() + &"x".repeat(80);
    let strict = IdRule::StrictWord { max: 64 };
    for rule in [WORD, IdRule::Word { max: 40 }, strict, IdRule::Nine, IdRule::CallAndItem { max: 64 }] {
        let mut ids = Ids { rule, used: HashSet::new(), calls: 0 };
        let given = ["", "a", "a:b", "a.b", "call|item", "abcDEF123", &long, &format!("{long}y"), "ünï"];
        let fitted: Vec<String> = given.iter().map(|id| ids.assign(id, rule == strict)).collect();
        let distinct: HashSet<&String> = fitted.iter().collect();
        assert_eq!(distinct.len(), given.len(), "{fitted:?}");
        for id in &fitted {
            match rule {
                IdRule::Word { max } | IdRule::StrictWord { max } | IdRule::CallAndItem { max } => {
                    assert!(!id.is_empty() && id.len() <= max && id.chars().all(is_word), "{id}");
                }
                IdRule::Nine => {
                    assert!(id.len() == 9 && id.chars().all(|c| c.is_ascii_alphanumeric()), "{id}");
                }
            }
        }
        assert!(fitted.contains(&"abcDEF123".to_owned()));
    }
}

#[test]
fn every_conversation_begins_with_the_user() {
    let check = |messages: Value, has_placeholder: bool| {
        let request = request(messages, json!({}));
        let prompt = prompt(&request, WORD);
        let Some(Turn::User(first)) = prompt.turns.first() else { panic!("{:?}", prompt.turns) };
        let is_placeholder = matches!(first.as_slice(), [Content::Text(text)] if text == NO_TEXT);
        assert_eq!(is_placeholder, has_placeholder);
    };
    check(json!([]), true);
    check(json!([system("S", json!(null), &[], &[])]), true);
    check(json!([user(" "), answer(json!([{"type": "text", "text": "hi"}]))]), true);
    check(json!([user("a"), answer(json!([{"type": "text", "text": "hi"}]))]), false);
}

#[test]
fn calls_of_the_past_keep_their_declarations() {
    let request = request(
        json!([
            {"role": "system", "toolsAdded": [{"name": "read", "description": "d"}]},
            answer(json!([call("1"), {"type": "toolCall", "id": "2", "name": "gone", "arguments": {}}])),
            {"role": "system", "toolsRemoved": [{"name": "read"}]},
        ]),
        json!({}),
    );
    let prompt = prompt(&request, WORD);
    assert!(prompt.tools_are_history);
    let tools: Vec<(&str, &str)> =
        prompt.tools.iter().map(|tool| (tool.name.as_str(), tool.description.as_str())).collect();
    assert_eq!(tools, [("read", "d"), ("gone", "")]);
}

#[test]
fn the_answer_is_bounded_by_model_window_and_wish() {
    #[track_caller]
    fn check(window: u64, max_tokens: u64, input_tokens: usize, wish: Option<u64>, expected: u64) {
        // Characters count, not bytes.
        for character in ["x", "世"] {
            let text = character.repeat(input_tokens * 4);
            let mut request =
                request(json!([user(&text)]), json!({"contextWindow": window, "maxTokens": max_tokens}));
            request.options.max_tokens = wish;
            assert_eq!(prompt(&request, WORD).max_tokens, expected);
        }
    }
    check(200_000, 64_000, 1_000, None, 64_000);
    check(200_000, 64_000, 1_000, Some(100), 100);
    check(200_000, 64_000, 100_000, None, 64_000);
    check(200_000, 128_000, 100_000, None, 85_000);
    check(200_000, 64_000, 150_000, None, 32_768);
    check(200_000, 64_000, 190_000, None, 5_904);
    // No shorter than a useful answer: the server decides whether that fits.
    check(8_000, 4_000, 9_000, None, 1_000);
    check(8_000, 500, 9_000, None, 500);
}

#[test]
fn names_no_api_takes_back_are_replaced_unless_a_tool_has_them() {
    let named = |id: &str, name: &str| json!({"type": "toolCall", "id": id, "name": name, "arguments": {}});
    let long = "x".repeat(65);
    check(
        json!([
            {"role": "system", "toolsAdded": [{"name": "server.tool"}]},
            answer(json!([named("1", ""), named("2", "functions.read"), named("3", "server.tool"), named("4", &long)])),
            result("1", "no such tool"),
            result("2", "-"),
            result("3", "-"),
            result("4", "-"),
        ]),
        &[
            "call 1 unknown_tool{}",
            "call 2 unknown_tool{}",
            "call 3 server.tool{}",
            "call 4 unknown_tool{}",
            "result 1 no such tool",
            "result 2 -",
            "result 3 -",
            "result 4 -",
        ],
    );
}

#[test]
fn blocked_images_are_one_line_of_text_per_run_for_every_model() {
    let image = json!({"type": "image", "data": "AA==", "mimeType": "image/png"});
    let at = json!({"type": "text", "text": "[image: https://x/y.png]", "imageUrl": "https://x/y.png"});
    let messages = json!([
        {"role": "user", "content": [{"type": "text", "text": "look"}, image, at, image, {"type": "text", "text": "x"}, image]},
        {"role": "assistant", "content": [{"type": "toolCall", "id": "1", "name": "read", "arguments": {}}]},
        {"role": "toolResult", "toolCallId": "1", "content": [{"type": "text", "text": "Read a.png"}, image]},
    ]);
    for input in [json!(["text"]), json!(["text", "image"])] {
        let mut request = request(messages.clone(), json!({ "input": input }));
        request.options.without_images = true;
        let blocked = "Image reading is disabled.";
        let lines = outline(&prompt(&request, WORD));
        assert_eq!(lines[0], format!("user look+{blocked}+x+{blocked}"));
        assert_eq!(lines[2], format!("result 1 Read a.png+{blocked}"));
        assert!(!prompt(&request, WORD).has_images());
    }
}

#[test]
fn images_are_sent_only_in_types_that_the_api_takes() {
    let image = |kind: &str, data: &str| json!({"type": "image", "data": data, "mimeType": kind});
    let said = json!([
        {"role": "user", "content": [image("image/gif", "AA=="), image("image/heic", "AA=="), image("image/bmp", "AA=="),
            image("image/png", "")]},
        answer(json!([call("1")])),
        {"role": "toolResult", "toolCallId": "1", "content": [image("image/bmp", "AA=="), image("image/png", "AA==")]},
    ]);
    let check = |api: &str, expected: &str| {
        let request = request(said.clone(), json!({"input": ["text", "image"], "api": api}));
        let lines = outline(&prompt(&request, WORD));
        assert_eq!(lines[0], expected, "{api}");
        assert_eq!(
            lines[2], "result 1 (tool image omitted: model does not support its type)+<image>",
            "{api}"
        );
    };
    check("openai-completions", "user <image>+(image omitted: model does not support its type)");
    check(
        "google-vertex",
        "user (image omitted: model does not support its type)+<image>+(image omitted: model does not support its type)",
    );
}

/// Prompt, tools at the start and turns, for a model that reads `updates`.
#[track_caller]
fn check_updates(updates: Updates, messages: &Value, system: &str, tools: &[&str], turns: &[&str]) {
    let request = request(messages.clone(), json!({}));
    let prompt = super::prompt(&request, WORD, updates);
    let names: Vec<&str> = prompt.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(prompt.system, system, "{updates:?}");
    assert_eq!(names, tools, "{updates:?}");
    assert_eq!(outline(&prompt), turns, "{updates:?}");
}

fn system(content: &str, sections: Value, added: &[&str], removed: &[&str]) -> Value {
    let tools = |names: &[&str]| names.iter().map(|name| json!({"name": name})).collect::<Value>();
    json!({"role": "system", "content": content, "sections": sections, "toolsAdded": tools(added),
        "toolsRemoved": tools(removed)})
}

#[test]
fn later_system_messages_stay_in_place_where_the_model_reads_them() {
    let messages = json!([
        system("Be brief.", json!({"cwd": "/a"}), &["read"], &[]),
        user("hi"),
        answer(json!([{"type": "text", "text": "hello"}])),
        system("", json!({"cwd": "/b", "gone": null}), &["grep"], &[]),
        user("go on"),
        answer(json!([call("1")])),
        system("", json!(null), &[], &["read"]),
        result("1", "done"),
    ]);
    let head = "Be brief.\n\n/a";
    let text = "The part \\\"cwd\\\" of the system prompt now reads:\\n\\n/b\\n\\nThe part \\\"gone\\\" of the system \
                prompt no longer applies.";
    let turns = |update: &str, removal: Option<&str>| -> Vec<String> {
        let turns = ["user hi", "text hello", update, "user go on", "call 1 read{}", "result 1 done"];
        turns.into_iter().chain(removal).filter(|turn| !turn.is_empty()).map(str::to_owned).collect()
    };
    let check = |updates, system: &str, tools: &[&str], turns: Vec<String>| {
        let turns: Vec<&str> = turns.iter().map(String::as_str).collect();
        check_updates(updates, &messages, system, tools, &turns);
    };
    check(Updates::None, "Be brief.\n\n/b", &["grep"], turns("", None));
    let texts_only = format!("system \"{text}\" +[] -[]");
    check(Updates::Texts, head, &["grep"], turns(&texts_only, None));
    // A tool was removed later, so everything before that is sent at the start.
    check(Updates::Additions, head, &["grep"], turns(&texts_only, None));
    let with_tools = format!("system \"{text}\" +[\"grep\"] -[]");
    let removal = "system \"\" +[] -[\"read\"]";
    check(Updates::Changes, head, &["read"], turns(&with_tools, Some(removal)));
}

#[test]
fn tools_are_added_in_place_only_where_there_are_some_from_the_start() {
    let added = system("", json!(null), &["grep"], &[]);
    let with = json!([system("P", json!(null), &["read"], &[]), user("a"), added, user("b")]);
    for updates in [Updates::Additions, Updates::Changes] {
        check_updates(updates, &with, "P", &["read"], &["user a", "system \"\" +[\"grep\"] -[]", "user b"]);
    }
    let without = json!([system("P", json!(null), &[], &[]), user("a"), added, user("b")]);
    check_updates(Updates::Changes, &without, "P", &["grep"], &["user a", "user b"]);
    // A declaration with the same name replaces the tool and does not remove it.
    let again = json!([
        system("P", json!(null), &["read"], &[]),
        user("a"),
        system("", json!(null), &["read"], &["read"]),
    ]);
    check_updates(Updates::Changes, &again, "P", &["read"], &["user a", "system \"\" +[\"read\"] -[]"]);
    check_updates(Updates::Additions, &again, "P", &["read"], &["user a"]);
}

#[test]
fn a_conversation_from_elsewhere_begins_with_what_is_said_first() {
    let messages = json!([user("a"), system("P", json!(null), &["read"], &[]), user("b")]);
    check_updates(Updates::Changes, &messages, "P", &["read"], &["user a", "user b"]);
    check_updates(Updates::Changes, &json!([user("a")]), "", &[], &["user a"]);
}

#[test]
fn an_image_by_address_goes_where_it_is_fetched_and_as_text_elsewhere() {
    let image = |url: &str| json!({"type": "text", "text": format!("[image: {url}]"), "imageUrl": url});
    let (web, bucket) = ("https://x/y.png", "gs://b/y.png");
    let said = json!([
        {"role": "user", "content": [image(web), image(bucket)]},
        answer(json!([call("1")])),
        {"role": "toolResult", "toolCallId": "1", "content": [image(web)]},
    ]);
    let check = |model: Value, user: &str, result: &str| {
        let request = request(said.clone(), model);
        let lines = outline(&prompt(&request, WORD));
        assert_eq!((lines[0].as_str(), lines[2].as_str()), (user, result));
    };
    let sees = |api: &str| json!({"input": ["text", "image"], "api": api});
    let texts = "user [image: https://x/y.png]+[image: gs://b/y.png]";
    check(sees("openai-completions"), "user <image>+[image: gs://b/y.png]", "result 1 <image>");
    check(sees("google-vertex"), "user <image>+<image>", "result 1 <image>");
    check(sees("anthropic-vertex"), texts, "result 1 [image: https://x/y.png]");
    check(
        json!({"api": "openai-completions"}),
        "user (image omitted: model does not support images)",
        "result 1 (tool image omitted: model does not support images)",
    );
}
