//! The oddities of real conversations, one per row; properties are in `rounds`.

mod rounds;

use serde_json::json;

use super::*;
use crate::ai::messages::{AssistantBlock, ContentBlock, SystemContent, UserContent};

const PNG: &str = "iVBORw0KGgo=";

/// A line per message: `role part+part`.
fn outline(imported: &Imported) -> Vec<String> {
    let system = imported.system.iter().cloned().map(Message::from);
    let messages: Vec<Message> = system.chain(imported.messages.iter().cloned()).collect();
    messages.iter().map(outline_of).collect()
}

fn outline_of(message: &Message) -> String {
    let shown = |blocks: &[ContentBlock]| {
        let shown = blocks.iter().map(|block| match block {
            ContentBlock::Text(text) => text.text.clone(),
            ContentBlock::Image(image) => format!("<{}>", image.mime_type),
            ContentBlock::ImageUrl(image) => format!("<{}>", image.url()),
            ContentBlock::Unknown(value) => value.to_string(),
        });
        shown.collect::<Vec<String>>().join("+")
    };
    let signed =
        |signature: &Option<String>| signature.as_ref().map_or_else(String::new, |sign| format!("~{sign}"));
    match message {
        Message::System(system) => match &system.content {
            SystemContent::Text(text) => format!("system {text}"),
            SystemContent::Blocks(blocks) => format!("system {}", shown(blocks)),
        },
        Message::User(user) => {
            let name = user.extra.get("name").and_then(Value::as_str).map(|name| format!("({name})"));
            let said = match &user.content {
                UserContent::Text(text) => text.clone(),
                UserContent::Blocks(blocks) => shown(blocks),
            };
            format!("user{} {said}", name.unwrap_or_default())
        }
        Message::Assistant(answer) => {
            let blocks = answer.content.iter().map(|block| match block {
                AssistantBlock::Text(text) => format!("{}{}", text.text, signed(&text.text_signature)),
                AssistantBlock::Thinking(thinking) => {
                    format!("[{}]{}", thinking.thinking, signed(&thinking.thinking_signature))
                }
                AssistantBlock::ToolCall(call) => {
                    let arguments = match &call.arguments_error {
                        Some(error) => format!("!{}", error.rsplit('\n').next().unwrap()),
                        None => call.arguments.to_string(),
                    };
                    format!("{} {}{arguments}{}", call.id, call.name, signed(&call.thought_signature))
                }
                AssistantBlock::Unknown(value) => value.to_string(),
            });
            format!("assistant {}", blocks.collect::<Vec<String>>().join("+"))
        }
        Message::ToolResult(result) => {
            let kind = if result.is_error { "error" } else { "result" };
            format!("{kind} {} {} {}", result.tool_call_id, result.tool_name, shown(&result.content))
        }
    }
}

/// Imports, compares, and checks that a second round changes nothing.
#[track_caller]
fn check(format: Format, document: Value, expected: &[&str], notes: &[&str]) {
    check_text(format, &document.to_string(), expected, notes);
}

#[track_caller]
fn check_text(format: Format, text: &str, expected: &[&str], notes: &[&str]) {
    let imported = import(format, text).unwrap();
    assert_eq!(outline(&imported), expected);
    assert_eq!(imported.report.lines(), notes);
    assert_fixed(imported);
}

/// Checks that an imported conversation survives export and import unchanged.
#[track_caller]
fn assert_fixed(imported: Imported) {
    let format = imported.format;
    let messages = imported.into_messages();
    let body = export(format, &messages).body;
    let again = import(format, &body.to_string()).unwrap();
    assert_eq!(again.format, format, "{body}");
    let mut again = again.into_messages();
    // A single message names no model if all messages come from lines.
    for (again, first) in again.iter_mut().zip(&messages) {
        if let (Message::Assistant(again), Message::Assistant(first)) = (again, first) {
            again.model.clone_from(&first.model);
        }
    }
    assert_eq!(again, messages, "{body}");
}

#[track_caller]
fn check_error(format: Format, text: &str, expected: &str) {
    assert_eq!(import(format, text).unwrap_err().to_string(), expected, "{text}");
}

const CHAT: Format = Format::OpenAiChat;
const RESPONSES: Format = Format::OpenAiResponses;
const ANTHROPIC: Format = Format::Anthropic;
const GOOGLE: Format = Format::Google;

#[test]
fn chat_contents_come_in_every_shape() {
    let url = format!("data:image/jpg;base64,{PNG}");
    check(
        CHAT,
        json!({"model": "gpt-4o", "messages": [
            {"role": "system", "content": "One."},
            {"role": "developer", "content": [{"type": "text", "text": "Two."}]},
            {"role": "user", "content": "a", "name": "ada"},
            {"role": "user", "content": [{"type": "text", "text": "b"}, "c", {"type": "image_url", "image_url": url}]},
            {"role": "user", "content": {"type": "text", "text": "d"}},
            {"role": "assistant", "content": [{"type": "text", "text": "e"}, {"type": "refusal", "refusal": "f"}]},
            {"role": "assistant", "content": null, "refusal": "g"},
            {"role": "system", "content": "Later."},
            {"role": "assistant", "content": ""},
            {"role": "user", "content": []},
        ]}),
        &[
            "system One.\n\nTwo.",
            "user(ada) a",
            "user b+c+<image/jpeg>",
            "user d",
            "assistant e+f",
            "assistant g",
            "system Later.",
        ],
        &[],
    );
}

#[test]
fn what_a_chat_cannot_bring_is_noted_in_its_place() {
    check(
        CHAT,
        json!({"tools": [{"type": "function"}], "messages": [
            {"role": "user", "content": [
                {"type": "text", "text": "a"},
                {"type": "input_audio", "input_audio": {}},
                {"type": "image_url", "image_url": {"url": "https://x.y/z.png", "detail": "high"}},
                {"type": "image_url", "image_url": "file:///x.png"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,%%"}},
                {"type": "file", "file": {}},
            ]},
            {"role": "critic", "content": "hm"},
            {"role": "assistant", "content": "b", "audio": {"id": "x"}, "tool_calls": [{"type": "function"}]},
        ]}),
        &["user a+<https://x.y/z.png>+[image: file:///x.png]", "assistant b"],
        &[
            "tools: tool definitions; pi uses its own tools",
            "messages[0].content[1]: audio input",
            "messages[0].content[3]: image by URL; kept as text",
            "messages[0].content[4]: image whose data is not base64",
            "messages[0].content[5]: file",
            "messages[1]: role \"critic\"",
            "messages[2].audio: audio output",
            "messages[2].tool_calls[0]: call without a name",
        ],
    );
}

#[test]
fn calls_of_a_chat_are_tied_to_their_results() {
    let call = |id: &str, arguments: Value| json!({"id": id, "type": "function", "function": {"name": "read", "arguments": arguments}});
    let tool = |id: &str, text: &str| json!({"role": "tool", "tool_call_id": id, "content": text});
    check(
        CHAT,
        json!([
            tool("1", "early"),
            {"role": "assistant", "content": null, "tool_calls": [
                call("1", json!("{\"a\": 1}")), call("2", json!({"b": 2})), call("3", json!("{\"a\": ")), call("4", json!("")),
            ]},
            tool("3", "three"),
            {"role": "user", "content": "meanwhile"},
            tool("2", "two"),
            tool("9", "nobody's"),
            {"role": "assistant", "content": "again", "tool_calls": [call("1", json!("{}"))]},
            tool("1", "again"),
        ]),
        &[
            "assistant 1 read{\"a\":1}+2 read{\"b\":2}+3 read!{\"a\": +4 read{}",
            "result 1 read early",
            "result 2 read two",
            "result 3 read three",
            "user meanwhile",
            "user Result of the tool call 9, which is not in this conversation:\nnobody's",
            "assistant again+1_bf0481e82577f419 read{}",
            "result 1_bf0481e82577f419 read again",
        ],
        &[
            "messages[0]: result out of order; moved after its call",
            "messages[4]: result out of order; moved after its call",
            "messages[5]: result without a call; kept as a user message",
            "messages[6]: call \"1\": id already used or too long; renamed to \"1_bf0481e82577f419\"",
        ],
    );
}

#[test]
fn function_calls_of_old_are_tied_by_name() {
    check(
        CHAT,
        json!([
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": null, "function_call": {"name": "ls", "arguments": "{}"}},
            {"role": "function", "name": "ls", "content": "a\nb"},
            {"role": "assistant", "content": "c", "tool_calls": [{"id": "x", "type": "custom", "custom": {"name": "sh", "input": "ls"}}]},
        ]),
        &["user go", "assistant call_1 ls{}", "result call_1 ls a\nb", "assistant c+x sh{\"input\":\"ls\"}"],
        &[],
    );
}

#[test]
fn reasoning_of_every_dialect_is_kept() {
    let details = json!([{"type": "reasoning.text", "text": "t", "signature": "s"}]);
    check(
        CHAT,
        json!([
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": "a", "reasoning_content": "r", "reasoning": "r"},
            {"role": "assistant", "content": "b", "reasoning": "u", "reasoning_details": details},
            {"role": "assistant", "content": "c", "reasoning": "t", "reasoning_details": [{"type": "reasoning.encrypted", "data": "x"}]},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": [{"type": "text", "text": "m"}]}, {"type": "text", "text": "d"}]},
        ]),
        &[
            "user q",
            "assistant [r]~reasoning_content+a",
            &format!("assistant [t]~{details}+b"),
            "assistant [t]~[{\"type\":\"reasoning.encrypted\",\"data\":\"x\"}]+c",
            "assistant [m]~content+d",
        ],
        &["messages[2].reasoning: another version of the reasoning"],
    );
}

#[test]
fn images_of_chat_results_come_back_to_them() {
    let image = json!({"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{PNG}")}});
    check(
        CHAT,
        json!([
            {"role": "assistant", "tool_calls": [
                {"id": "1", "function": {"name": "a", "arguments": "{}"}},
                {"id": "2", "function": {"name": "b", "arguments": "{}"}},
            ]},
            {"role": "tool", "tool_call_id": "1", "content": [image, {"type": "text", "text": "one"}, {"type": "text", "text": "two"}]},
            {"role": "tool", "tool_call_id": "2", "content": [image, image]},
            {"role": "user", "content": [{"type": "text", "text": "Images of the result of 7:"}, image]},
        ]),
        &[
            "assistant 1 a{}+2 b{}",
            "result 1 a one\ntwo+<image/png>",
            "result 2 b <image/png>+<image/png>",
            "user Images of the result of 7:+<image/png>",
        ],
        &[],
    );
}

/// Imports, exports to another format, and compares the first message and
/// the notes.
#[track_caller]
fn check_carried(from: Format, part: Value, to: Format, expected: Value, notes: &[&str]) {
    let content = if from == GOOGLE { "parts" } else { "content" };
    let document = json!({from.list(): [{"role": "user", content: [part]}]});
    let imported = import(from, &document.to_string()).unwrap();
    assert_eq!(imported.report.lines(), [""; 0], "{document}");
    let exported = export(to, &imported.into_messages());
    let content = if to == GOOGLE { "parts" } else { "content" };
    let lines = exported.report.lines();
    assert_eq!(
        (&exported.body[to.list()][0][content][0], lines),
        (&expected, notes.iter().map(|note| (*note).to_owned()).collect())
    );
}

#[test]
fn images_by_address_are_carried_from_format_to_format() {
    let chat = |url: &str| json!({"type": "image_url", "image_url": {"url": url}});
    let responses = |url: &str| json!({"type": "input_image", "detail": "auto", "image_url": url});
    let anthropic = |url: &str| json!({"type": "image", "source": {"type": "url", "url": url}});
    let google = |url: &str| json!({"fileData": {"mimeType": "image/png", "fileUri": url}});
    let https = "https://x.y/z.png";
    let parts = [
        (CHAT, chat(https)),
        (RESPONSES, responses(https)),
        (ANTHROPIC, anthropic(https)),
        (GOOGLE, google(https)),
    ];
    for (from, part) in &parts {
        for (to, expected) in &parts {
            check_carried(*from, part.clone(), *to, expected.clone(), &[]);
        }
    }
    let detailed = json!({"type": "image_url", "image_url": {"url": https, "detail": "high"}});
    let also = json!({"type": "input_image", "detail": "high", "image_url": https});
    check_carried(CHAT, detailed.clone(), CHAT, detailed.clone(), &[]);
    check_carried(CHAT, detailed.clone(), RESPONSES, also.clone(), &[]);
    check_carried(RESPONSES, also, CHAT, detailed.clone(), &[]);
    check_carried(CHAT, detailed, ANTHROPIC, anthropic(https), &[]);
    let not_fetched =
        ["messages[0].content[0]: image at a URL the provider does not fetch; exported unchanged"];
    let (http, gs) = ("http://x.y/z.png", "gs://b/z.png");
    check_carried(CHAT, chat(http), RESPONSES, responses(http), &[]);
    check_carried(CHAT, chat(http), ANTHROPIC, anthropic(http), &not_fetched);
    check_carried(CHAT, chat(http), GOOGLE, google(http), &not_fetched);
    check_carried(GOOGLE, google(gs), GOOGLE, google(gs), &[]);
    check_carried(GOOGLE, google(gs), CHAT, chat(gs), &not_fetched);
    let unknown = ["messages[0].content[0]: image by URL; kept as text"];
    check_carried(CHAT, chat("https://x.y/z"), GOOGLE, json!({"text": "[image: https://x.y/z]"}), &unknown);
    let bytes =
        json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}});
    let data_url = format!("data:image/png;base64,{PNG}");
    check_carried(ANTHROPIC, anthropic(&data_url), ANTHROPIC, bytes.clone(), &[]);
    check_carried(GOOGLE, google(&data_url), ANTHROPIC, bytes, &[]);
}

#[test]
fn images_where_only_text_can_be_are_noted() {
    let image = |url: &str| json!({"type": "image_url", "image_url": {"url": url}});
    let data_url = format!("data:image/png;base64,{PNG}");
    check(
        CHAT,
        json!([{"role": "system", "content": ["a", image("https://x/y"), image(&data_url)]}, {"role": "user", "content": "b"}]),
        &["system a\n[image: https://x/y]", "user b"],
        &["messages[0]: image by URL; kept as text", "messages[0]: image where only text is allowed"],
    );
}

#[test]
fn responses_items_become_answers() {
    let reasoning = json!({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "s"}], "encrypted_content": "e"});
    let signature = "{\"v\":1,\"id\":\"msg_1\",\"phase\":\"final_answer\"}";
    check(
        CHAT,
        json!({"model": "gpt-5", "instructions": "Be brief.", "previous_response_id": "resp_1", "input": [
            {"role": "developer", "content": "Very."},
            {"role": "user", "content": [{"type": "input_text", "text": "a"}, {"type": "input_image", "image_url": format!("data:image/png;base64,{PNG}")}]},
            reasoning,
            {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "read", "arguments": "{\"p\":1}", "status": "completed"},
            {"type": "custom_tool_call", "call_id": "c2", "name": "sh", "input": "ls"},
            {"type": "custom_tool_call_output", "call_id": "c2", "output": "x"},
            {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "b"}, {"type": "input_file", "file_id": "f"}]},
            {"type": "web_search_call", "id": "ws_1"},
            {"type": "message", "role": "assistant", "id": "msg_1", "phase": "final_answer", "content": [{"type": "output_text", "text": "c", "annotations": [{}]}, {"type": "refusal", "refusal": "d"}]},
            {"role": "assistant", "content": "e"},
            {"type": "item_reference", "id": "x"},
        ]}),
        &[
            "system Be brief.\n\nVery.",
            "user a+<image/png>",
            &format!("assistant [s]~{reasoning}+c1|fc_1 read{{\"p\":1}}+c2|ctc_c2 sh{{\"input\":\"ls\"}}"),
            "result c1|fc_1 read b",
            "result c2|ctc_c2 sh x",
            &format!("assistant cd~{signature}+e"),
        ],
        &[
            "previous_response_id: refers to data only the provider has",
            "input[6].output[1]: file",
            "input[7]: item of type \"web_search_call\"",
            "input[8].content[0].annotations: annotations",
            "input[10]: reference to an item that only the provider has",
        ],
    );
    check(RESPONSES, json!({"input": "hi"}), &["user hi"], &[]);
    check(
        RESPONSES,
        json!([{"role": "user", "content": "q"}, {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{"}]),
        &["user q", "assistant c f!{"],
        &[],
    );
}

#[test]
fn anthropic_blocks_become_messages() {
    let image =
        json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}});
    check(
        ANTHROPIC,
        json!({"model": "claude-x", "max_tokens": 9, "system": [{"type": "text", "text": "One.", "cache_control": {}}, {"type": "text", "text": "Two."}],
            "tools": [], "messages": [
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "t", "signature": "S"},
                {"type": "redacted_thinking", "data": "D"},
                {"type": "text", "text": "b", "citations": [{}]},
                {"type": "tool_use", "id": "1", "name": "read", "input": {"p": 1}},
                {"type": "tool_use", "id": "2", "name": "ls", "input": "{\"q\": 2}"},
                {"type": "tool_use", "id": "3", "name": "rm", "input": "{\"q\": "},
                {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
            ]},
            {"role": "user", "content": [
                {"type": "text", "text": "and"},
                {"type": "tool_result", "tool_use_id": "2", "is_error": true, "content": [image, {"type": "text", "text": "no"}]},
                {"type": "tool_result", "tool_use_id": "1", "content": "yes"},
                {"type": "document", "source": {"type": "text", "data": "doc"}},
                {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": PNG}},
            ]},
            {"role": "assistant", "content": "c"},
        ]}),
        &[
            "system One.\n\nTwo.",
            "user a",
            "assistant [t]~S+[]~D+b+1 read{\"p\":1}+2 ls{\"q\":2}+3 rm{\"arguments\":\"{\\\"q\\\": \"}",
            "result 1 read yes",
            "error 2 ls no+<image/png>",
            "user and+doc",
            "assistant c",
        ],
        &[
            "messages[1].content[2]: citations",
            "messages[1].content[5]: arguments that are not an object; wrapped in one",
            "messages[1].content[6]: block of type \"server_tool_use\"",
            "messages[2].content[3]: document; kept as text",
            "messages[2].content[4]: document",
        ],
    );
}

#[test]
fn google_speaks_in_two_spellings() {
    check(
        GOOGLE,
        json!({"systemInstruction": {"parts": [{"text": "One."}, {"text": "Two."}]}, "contents": [
            {"role": "user", "parts": [{"text": "a"}, {"inlineData": {"mimeType": "image/png", "data": PNG}}]},
            {"role": "model", "parts": [
                {"text": "t", "thought": true, "thoughtSignature": "A"},
                {"functionCall": {"name": "f", "args": {"p": 1}}, "thoughtSignature": "B"},
                {"functionCall": {"name": "f"}},
                {"executableCode": {"code": "1"}},
            ]},
            {"role": "user", "parts": [
                {"functionResponse": {"name": "f", "response": {"result": "x"}}},
                {"functionResponse": {"name": "f", "response": {"error": "y"}, "parts": [{"inlineData": {"mimeType": "image/png", "data": PNG}}]}},
                {"text": "b"},
            ]},
        ]}),
        &[
            "system One.\n\nTwo.",
            "user a+<image/png>",
            "assistant [t]~A+call_1 f{\"p\":1}~B+call_2 f{}",
            "result call_1 f x",
            "error call_2 f y+<image/png>",
            "user b",
        ],
        &["contents[1].parts[3]: part with \"executableCode\""],
    );
    check(
        GOOGLE,
        json!({"system_instruction": "One.", "contents": [
            {"parts": [{"text": "a"}, {"inline_data": {"mime_type": "audio/wav", "data": PNG}}]},
            {"role": "user", "parts": [{"file_data": {"mime_type": "image/png", "file_uri": "gs://b/i"}}]},
            {"role": "model", "parts": [{"function_call": {"id": "7", "name": "f", "args": [1]}}]},
            {"role": "function", "parts": [{"function_response": {"id": "7", "name": "f", "response": {"n": 1}}}]},
            {"role": "model", "parts": [{"text": "", "thought_signature": "C"}, {"text": "b"}, {"text": " "}]},
            {"role": "model", "parts": {"text": "c"}},
        ]}),
        &[
            "system One.",
            "user a+<gs://b/i>",
            "assistant 7 f{\"arguments\":[1]}",
            "result 7 f {\"n\":1}",
            "assistant ~C+b+c",
        ],
        &[
            "contents[0].parts[1]: file that is not an image",
            "contents[2].parts[0]: arguments that are not an object; wrapped in one",
        ],
    );
    for instruction in
        [json!([{"text": "S"}]), json!({"text": "S"}), json!({"role": "system", "parts": {"text": "S"}})]
    {
        let document = json!({"systemInstruction": instruction, "contents": "hi"});
        check(GOOGLE, document, &["system S", "user hi"], &[]);
    }
}

#[test]
fn lines_are_messages_or_whole_requests() {
    let lines = "\u{feff}{\"role\":\"system\",\"content\":\"S\"}\n\n{\"role\":\"user\",\"content\":[{\"type\":\"input_audio\"},\"hi\"]}\r\n";
    check_text(CHAT, lines, &["system S", "user hi"], &["line 3.content[0]: audio input"]);
    check_text(ANTHROPIC, "{\"role\":\"user\",\"content\":\"a\"}", &["user a"], &[]);
    let requests = "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}\n{\"custom_id\":\"x\",\"body\":{\"messages\":[{\"role\":\"user\",\"content\":\"b\"}]}}\n";
    check_text(CHAT, requests, &["user b"], &["line 1: earlier request; pi reads only the last one"]);
    check_text(GOOGLE, "{\"request\":{\"contents\":[{\"parts\":[{\"text\":\"a\"}]}]}}", &["user a"], &[]);
    check_text(
        CHAT,
        r#"[{"role":"user","content":"half \ud83d of one"}]"#,
        &["user half \u{fffd} of one"],
        &[],
    );
}

#[test]
fn what_is_no_conversation_is_refused_where_it_goes_wrong() {
    check_error(CHAT, " \n", "it is empty");
    check_error(
        CHAT,
        "# Notes\nhello",
        "it is neither JSON nor JSON lines: expected value at line 1 column 1",
    );
    check_error(
        CHAT,
        "{\"role\":\"user\",\"content\":\"a\"}\n{\"role\":",
        "line 2 is not JSON: EOF while parsing a value at line 1 column 8",
    );
    check_error(CHAT, "7", "the document: expected a request, or a list of messages, found a number");
    check_error(
        CHAT,
        "{}",
        "the document: expected a request with \"messages\", \"input\" or \"contents\", or a list of messages, found an object without them",
    );
    check_error(CHAT, r#"{"messages": 1}"#, "messages: expected a list of messages, found a number");
    check_error(
        CHAT,
        r#"[{"role":"user","content":"a"}, 3]"#,
        "messages[1]: expected a message, which is an object, found a number",
    );
    check_error(
        CHAT,
        r#"[{"role":"user","content":3}]"#,
        "messages[0].content: expected text or a list of parts, found a number",
    );
    check_error(CHAT, r#"[{"content":"a"}]"#, "messages[0]: expected a message with a \"role\", found none");
    check_error(CHAT, r#"[{"role":"user","content":""}]"#, "it contains no messages");
    check_error(CHAT, "[]", "it contains no messages");
    check_error(
        CHAT,
        "{\"messages\":[]}\n{\"role\":\"user\",\"content\":\"a\"}",
        "line 2 mixes requests with single messages",
    );
}

#[test]
fn the_wrong_format_is_recognised() {
    let chat = json!({"messages": [{"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{}"}}]}]});
    let responses = json!({"input": [{"role": "user", "content": "a"}]});
    let anthropic = json!({"system": "S", "messages": [{"role": "user", "content": "a"}]});
    let google = json!({"contents": [{"parts": [{"text": "a"}]}]});
    let plain = json!([{"role": "user", "content": "a"}]);
    let session = json!({"type": "session", "id": "x"});
    let rows = [
        (CHAT, &anthropic, "openai", "anthropic"),
        (CHAT, &google, "openai", "google"),
        (CHAT, &session, "openai", "a session of pi"),
        (ANTHROPIC, &chat, "anthropic", "openai"),
        (ANTHROPIC, &responses, "anthropic", "openai"),
        (ANTHROPIC, &google, "anthropic", "google"),
        (GOOGLE, &chat, "google", "openai"),
        (GOOGLE, &anthropic, "google", "anthropic"),
        (GOOGLE, &plain, "google", "openai or anthropic"),
    ];
    for (format, document, wanted, found) in rows {
        check_error(
            format,
            &document.to_string(),
            &format!("it is not in {wanted} format; it looks like {found}"),
        );
    }
    // OpenAI's two formats are distinguished.
    assert_eq!(import(RESPONSES, &chat.to_string()).unwrap().format, CHAT);
    assert_eq!(import(CHAT, &responses.to_string()).unwrap().format, RESPONSES);
}

/// The notes of exporting a conversation.
#[track_caller]
fn check_export(format: Format, messages: Value, expected: Value, notes: &[&str]) {
    let messages: Vec<Message> = serde_json::from_value(messages).unwrap();
    let exported = export(format, &messages);
    assert_eq!(exported.body, expected);
    assert_eq!(exported.report.lines(), notes);
}

#[test]
fn an_export_carries_what_its_format_has_a_place_for() {
    let messages = json!([
        {"role": "system", "content": "", "sections": {"a": "A", "b": "B"}, "toolsAdded": [{"name": "read", "description": "d", "parameters": {"type": "object"}}]},
        {"role": "user", "content": "hi"},
        {"role": "assistant", "api": "anthropic-messages", "provider": "anthropic", "model": "claude-x", "content": [
            {"type": "thinking", "thinking": "t", "thinkingSignature": "S"},
            {"type": "toolCall", "id": "a|b", "name": "read", "arguments": {}},
        ]},
        {"role": "system", "content": "Later."},
        {"role": "toolResult", "toolCallId": "a|b", "toolName": "read", "isError": true, "content": [{"type": "text", "text": "no"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "par"}], "stopReason": "aborted", "errorMessage": "x"},
    ]);
    let failed = "messages[5]: answer that failed or was cancelled";
    check_export(
        CHAT,
        messages.clone(),
        json!({
            "messages": [
                {"role": "system", "content": "A\n\nB"},
                {"role": "user", "content": "hi"},
                {"role": "assistant", "content": null, "tool_calls": [{"id": "a_b", "type": "function", "function": {"name": "read", "arguments": "{}"}}]},
                {"role": "tool", "tool_call_id": "a_b", "content": "no"},
                {"role": "system", "content": "Later."},
            ],
            "tools": [{"type": "function", "function": {"name": "read", "description": "d", "parameters": {"type": "object"}}}],
        }),
        &[
            "messages[2].content[0]: thinking of a model that does not use this format",
            failed,
            "messages[4]: failed result; the format cannot mark it as failed",
        ],
    );
    check_export(
        ANTHROPIC,
        messages.clone(),
        json!({
            "model": "claude-x",
            "system": "A\n\nB",
            "messages": [
                {"role": "user", "content": "hi"},
                {"role": "assistant", "content": [
                    {"type": "thinking", "thinking": "t", "signature": "S"},
                    {"type": "tool_use", "id": "a|b", "name": "read", "input": {}},
                ]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a|b", "content": [{"type": "text", "text": "no"}], "is_error": true}]},
                {"role": "system", "content": "Later."},
            ],
            "tools": [{"name": "read", "description": "d", "input_schema": {"type": "object", "properties": {}}}],
        }),
        &[failed, "messages[3]: later system message, which only newer models accept there"],
    );
    check_export(
        GOOGLE,
        messages,
        json!({
            "systemInstruction": {"parts": [{"text": "Later.\n\nA\n\nB"}]},
            "contents": [
                {"role": "user", "parts": [{"text": "hi"}]},
                {"role": "model", "parts": [{"functionCall": {"id": "a_b", "name": "read", "args": {}}}]},
                {"role": "user", "parts": [{"functionResponse": {"id": "a_b", "name": "read", "response": {"error": "no"}}}]},
            ],
            "tools": [{"functionDeclarations": [{"name": "read", "description": "d", "parametersJsonSchema": {"type": "object"}}]}],
        }),
        &[
            "messages[2].content[0]: thinking of a model that does not use this format",
            "messages[3]: later system message; moved before the conversation",
            failed,
        ],
    );
}

#[test]
fn lines_begin_with_the_system_prompt() {
    for format in Format::ALL {
        let messages: Vec<Message> = serde_json::from_value(json!([
            {"role": "system", "content": "S", "toolsAdded": [{"name": "read"}]},
            {"role": "user", "content": "hi"},
        ]))
        .unwrap();
        let (lines, report) = export(format, &messages).into_lines();
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert_eq!(report.lines(), ["tools: not supported in JSON lines"]);
        let text: String = lines.iter().map(|line| line.to_string() + "\n").collect();
        assert_eq!(outline(&import(format, &text).unwrap()), ["system S", "user hi"], "{text}");
    }
}
