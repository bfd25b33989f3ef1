//! Round trips: any document survives import and export, and any conversation
//! keeps everything except the losses that the module lists.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::json;

use super::super::draft::{SEE_IMAGE, images_of};
use super::*;
use crate::ai::messages::{
    AssistantMessage, Image, ImageUrl, Millis, Text, Thinking, ToolCall, UserMessage, join_text,
};

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => "[a-c ]{1,4}".prop_map(|text| format!("w{text}")),
        1 => select(vec!["", " ", "\n", "日本", "\u{1f600}", "{\"a\":1}", SEE_IMAGE]).prop_map(str::to_owned),
        1 => select(vec!["a", "b", "call_1"]).prop_map(images_of),
        1 => any::<String>(),
    ]
}

fn id() -> impl Strategy<Value = &'static str> {
    select(vec![
        "a",
        "b",
        "c",
        "",
        "a|b",
        "c|ctc_1",
        "x y",
        "call_1",
        "call_2",
        "a_very_long_id_that_goes_on_and_on_until_it_is_longer_than_any_service_likes_it",
    ])
}

fn name() -> impl Strategy<Value = &'static str> {
    select(vec!["read", "ls", ""])
}

fn data_url() -> impl Strategy<Value = &'static str> {
    select(vec![
        "data:image/png;base64,iVBORw0KGgo=",
        "data:image/jpg;base64,AAAA",
        "data:,x",
        "https://x/y.png",
        "http://x/y",
        "gs://b/i.webp",
        "file:///y.png",
        "",
    ])
}

fn detail() -> impl Strategy<Value = Value> {
    select(vec![Value::Null, json!("auto"), json!("high"), json!("of the moon"), json!(1)])
}

/// Arguments: an object, text, invalid text, another value, or nothing.
fn arguments() -> impl Strategy<Value = Value> {
    select(vec![
        json!({"p": 1}),
        json!({}),
        json!("{\"q\": [1, 2.5]}"),
        json!("{\"q\": "),
        json!(""),
        json!([1]),
        json!(7),
        json!({"arguments": "x"}),
        json!({"input": "y"}),
        Value::Null,
    ])
}

/// JSON with the keywords of the formats in arbitrary positions.
fn soup() -> impl Strategy<Value = Value> {
    const WORDS: [&str; 36] = [
        "role",
        "content",
        "type",
        "parts",
        "text",
        "name",
        "id",
        "tool_calls",
        "function",
        "arguments",
        "tool_call_id",
        "input",
        "output",
        "call_id",
        "thinking",
        "signature",
        "source",
        "data",
        "functionCall",
        "function_response",
        "response",
        "args",
        "inlineData",
        "thoughtSignature",
        "user",
        "assistant",
        "tool",
        "model",
        "system",
        "tool_use",
        "tool_result",
        "tool_use_id",
        "reasoning",
        "summary",
        "function_call",
        "function_call_output",
    ];
    let leaf = prop_oneof![
        4 => select(&WORDS[..]).prop_map(Value::from),
        1 => text().prop_map(Value::from),
        1 => select(vec![Value::Null, json!(true), json!(3)]),
    ];
    leaf.prop_recursive(5, 40, 5, |inner| {
        prop_oneof![
            1 => vec(inner.clone(), 0..4).prop_map(Value::from),
            3 => vec((select(&WORDS[..]), inner), 0..6).prop_map(|fields| {
                fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<Map<_, _>>().into()
            }),
        ]
    })
}

fn chat_message() -> impl Strategy<Value = Value> {
    let part = || {
        prop_oneof![
            3 => text().prop_map(|text| json!({"type": "text", "text": text})),
            1 => text().prop_map(Value::from),
            1 => (data_url(), detail()).prop_map(|(url, detail)| {
                json!({"type": "image_url", "image_url": {"url": url, "detail": detail}})
            }),
            1 => text().prop_map(|text| json!({"type": "thinking", "thinking": [{"type": "text", "text": text}]})),
            1 => Just(json!({"type": "input_audio", "input_audio": {}})),
        ]
    };
    let content = || {
        prop_oneof![text().prop_map(Value::from), vec(part(), 0..4).prop_map(Value::from), Just(Value::Null)]
    };
    let call = (id(), name(), arguments()).prop_map(|(id, name, arguments)| {
        json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
    });
    let details = select(vec![
        Value::Null,
        json!([]),
        json!([{"type": "reasoning.text", "text": "t"}, {"type": "reasoning.summary", "summary": "s"}]),
        json!([{"type": "reasoning.encrypted", "data": "d"}]),
    ]);
    prop_oneof![
        (select(vec!["system", "developer", "user", "critic"]), content(), option::of(select(vec!["ada", ""])))
            .prop_map(|(role, content, name)| json!({"role": role, "content": content, "name": name})),
        (content(), vec(call, 0..4), text(), details).prop_map(|(content, calls, reasoning, details)| {
            json!({"role": "assistant", "content": content, "tool_calls": calls, "reasoning": reasoning, "reasoning_details": details})
        }),
        (name(), arguments()).prop_map(|(name, arguments)| {
            json!({"role": "assistant", "content": null, "function_call": {"name": name, "arguments": arguments}})
        }),
        (id(), content()).prop_map(|(id, content)| json!({"role": "tool", "tool_call_id": id, "content": content})),
        (name(), content()).prop_map(|(name, content)| json!({"role": "function", "name": name, "content": content})),
    ]
}

fn response_item() -> impl Strategy<Value = Value> {
    let part = || {
        prop_oneof![
            3 => text().prop_map(|text| json!({"type": "input_text", "text": text})),
            1 => (data_url(), detail()).prop_map(|(url, detail)| {
                json!({"type": "input_image", "image_url": url, "detail": detail})
            }),
            1 => text().prop_map(|text| json!({"type": "output_text", "text": text, "annotations": []})),
            1 => Just(json!({"type": "input_file"})),
        ]
    };
    let content = || {
        prop_oneof![text().prop_map(Value::from), vec(part(), 0..4).prop_map(Value::from), Just(Value::Null)]
    };
    let kind = || select(vec!["function_call", "custom_tool_call"]);
    prop_oneof![
        (select(vec!["system", "developer", "user", "assistant", "critic"]), content())
            .prop_map(|(role, content)| json!({"role": role, "content": content})),
        (id(), option::of(Just("commentary")), content()).prop_map(|(id, phase, content)| {
            json!({"type": "message", "role": "assistant", "id": id, "phase": phase, "content": content})
        }),
        (id(), text()).prop_map(|(id, text)| {
            json!({"type": "reasoning", "id": id, "summary": [{"type": "summary_text", "text": text}]})
        }),
        (kind(), id(), option::of(id()), name(), arguments()).prop_map(|(kind, call_id, id, name, arguments)| {
            json!({"type": kind, "call_id": call_id, "id": id, "name": name, "arguments": arguments, "input": "ls"})
        }),
        (kind(), id(), content()).prop_map(|(kind, id, content)| {
            json!({"type": format!("{kind}_output"), "call_id": id, "output": content})
        }),
        Just(json!({"type": "web_search_call"})),
    ]
}

fn anthropic_message() -> impl Strategy<Value = Value> {
    let shown = || {
        prop_oneof![
            3 => text().prop_map(|text| json!({"type": "text", "text": text})),
            1 => Just(json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}})),
            1 => data_url().prop_map(|url| json!({"type": "image", "source": {"type": "url", "url": url}})),
            1 => text().prop_map(|text| json!({"type": "document", "source": {"type": "text", "data": text}})),
        ]
    };
    let content = || prop_oneof![text().prop_map(Value::from), vec(shown(), 0..4).prop_map(Value::from)];
    let result = (id(), content(), any::<bool>()).prop_map(|(id, content, is_error)| {
        json!({"type": "tool_result", "tool_use_id": id, "content": content, "is_error": is_error})
    });
    let said = prop_oneof![
        2 => text().prop_map(|text| json!({"type": "text", "text": text})),
        1 => (text(), select(vec!["", "S"])).prop_map(|(text, signature)| json!({"type": "thinking", "thinking": text, "signature": signature})),
        1 => Just(json!({"type": "redacted_thinking", "data": "D"})),
        2 => (id(), name(), arguments()).prop_map(|(id, name, input)| json!({"type": "tool_use", "id": id, "name": name, "input": input})),
        1 => Just(json!({"type": "server_tool_use"})),
    ];
    prop_oneof![
        (select(vec!["system", "user", "critic"]), content())
            .prop_map(|(role, content)| json!({"role": role, "content": content})),
        vec(prop_oneof![2 => result, 1 => shown()], 0..5)
            .prop_map(|content| json!({"role": "user", "content": content})),
        vec(said, 0..5).prop_map(|content| json!({"role": "assistant", "content": content})),
    ]
}

fn google_content() -> impl Strategy<Value = Value> {
    let shown = || {
        prop_oneof![
            3 => text().prop_map(|text| json!({"text": text})),
            1 => Just(json!({"inline_data": {"mime_type": "image/png", "data": PNG}})),
            1 => Just(json!({"fileData": {"mimeType": "video/mp4", "fileUri": "gs://x"}})),
            1 => data_url().prop_map(|url| json!({"fileData": {"mimeType": "image/webp", "fileUri": url}})),
        ]
    };
    let response = (option::of(id()), name(), select(vec![
        json!({"output": "x"}), json!({"result": "r"}), json!({"error": "y"}), json!({"output": 1}), json!({"error": null, "n": 1}), json!({}), json!("z"), json!([1]),
    ]), vec(shown(), 0..2))
        .prop_map(|(id, name, response, parts)| json!({"functionResponse": {"id": id, "name": name, "response": response, "parts": parts}}));
    let said = prop_oneof![
        2 => (text(), any::<bool>(), option::of(Just("A"))).prop_map(|(text, thought, signature)| json!({"text": text, "thought": thought, "thoughtSignature": signature})),
        2 => (option::of(id()), name(), arguments(), option::of(Just("B"))).prop_map(|(id, name, args, signature)| {
            json!({"function_call": {"id": id, "name": name, "args": args}, "thought_signature": signature})
        }),
        1 => Just(json!({"executableCode": {}})),
    ];
    prop_oneof![
        (select(vec!["user", "system", "critic"]), vec(shown(), 0..4))
            .prop_map(|(role, parts)| json!({"role": role, "parts": parts})),
        (select(vec!["user", "function"]), vec(prop_oneof![2 => response, 1 => shown()], 0..5))
            .prop_map(|(role, parts)| json!({"role": role, "parts": parts})),
        vec(said, 0..5).prop_map(|parts| json!({"role": "model", "parts": parts})),
    ]
}

/// Checks that an importable document survives its own export.
fn comes_back(format: Format, document: &Value) {
    if let Ok(imported) = import(format, &document.to_string()) {
        assert_fixed(imported);
    }
}

proptest! {
    #[test]
    fn any_chat_comes_back(messages in vec(chat_message(), 1..9)) {
        comes_back(CHAT, &json!({"model": "m", "messages": messages}));
    }

    #[test]
    fn any_input_of_responses_comes_back(items in vec(response_item(), 1..9), instructions in text()) {
        comes_back(RESPONSES, &json!({"model": "m", "instructions": instructions, "input": items}));
    }

    #[test]
    fn any_anthropic_conversation_comes_back(messages in vec(anthropic_message(), 1..9), system in text()) {
        comes_back(ANTHROPIC, &json!({"model": "m", "system": system, "messages": messages}));
    }

    #[test]
    fn any_google_conversation_comes_back(contents in vec(google_content(), 1..9), system in text()) {
        comes_back(GOOGLE, &json!({"systemInstruction": {"parts": [{"text": system}]}, "contents": contents}));
    }

    #[test]
    fn nonsense_is_survived(values in vec(soup(), 0..5), text in ".{0,40}") {
        for format in Format::ALL {
            comes_back(format, &json!({format.list(): values}));
            comes_back(format, &Value::from(values.clone()));
            let lines: String = values.iter().map(|value| value.to_string() + "\n").collect();
            for text in [&lines, &text] {
                if let Ok(imported) = import(format, text) {
                    assert_fixed(imported);
                }
            }
        }
    }
}

/// One side's message in a generated conversation.
#[derive(Debug, Clone)]
enum Said {
    System(String),
    User(Vec<ContentBlock>, Option<&'static str>),
    Answer { is_own: bool, blocks: Vec<OwnBlock>, name: Option<&'static str> },
}

#[derive(Debug, Clone)]
enum OwnBlock {
    Text(String),
    Thinking(String, bool),
    /// Arguments as text; content and failure of the result.
    Call(&'static str, Option<(Vec<ContentBlock>, bool)>),
}

/// Images by URL, of known and unknown types.
fn address() -> impl Strategy<Value = ImageUrl> {
    let url = select(vec!["https://x/y.png", "https://x/y", "http://x/y.gif", "gs://b/i", "s3://b/i.jpg"]);
    (url, option::of(Just("image/webp"))).prop_map(|(url, mime_type)| {
        let mut image = ImageUrl::new(url).unwrap();
        image.mime_type = mime_type.map(str::to_owned);
        image
    })
}

fn said() -> impl Strategy<Value = Said> {
    let shown = || {
        vec(
            prop_oneof![
                3 => text().prop_map(ContentBlock::text),
                1 => Just(ContentBlock::Image(Image::new(PNG, "image/png"))),
                1 => address().prop_map(ContentBlock::ImageUrl),
            ],
            0..3,
        )
    };
    let block = prop_oneof![
        text().prop_map(OwnBlock::Text),
        (text(), any::<bool>()).prop_map(|(text, signed)| OwnBlock::Thinking(text, signed)),
        (select(vec!["{\"p\":1}", "{}", "{\"q\":"]), option::of((shown(), any::<bool>())))
            .prop_map(|(arguments, result)| OwnBlock::Call(arguments, result)),
    ];
    let name = || option::of(Just("ada"));
    prop_oneof![
        1 => text().prop_map(Said::System),
        2 => (shown(), name()).prop_map(|(blocks, name)| Said::User(blocks, name)),
        3 => (any::<bool>(), vec(block, 0..5), name()).prop_map(|(is_own, blocks, name)| Said::Answer { is_own, blocks, name }),
    ]
}

fn messages_of(format: Format, conversation: &[Said]) -> Vec<Message> {
    let mut messages: Vec<Message> = Vec::new();
    let mut n_calls = 0;
    for said in conversation {
        match said {
            Said::System(text) => messages.push(SystemMessage::new(text).into()),
            Said::User(blocks, name) => {
                let content = UserContent::Blocks(blocks.clone());
                let mut user = UserMessage { content, ..UserMessage::new("", vec![], Millis(7)) };
                user.extra.extend(name.map(|name| ("name".to_owned(), json!(name))));
                messages.push(user.into());
            }
            Said::Answer { is_own, blocks, name } => {
                let (api, provider) = format.origin();
                let api = if *is_own { api } else { Api::DEMO };
                let mut answer = AssistantMessage::builder(api, provider, "m").at(Millis(7));
                let mut results: Vec<Message> = Vec::new();
                for block in blocks {
                    answer = match block {
                        OwnBlock::Text(text) => answer.text(text),
                        OwnBlock::Thinking(text, signed) => {
                            answer.block(AssistantBlock::Thinking(Thinking {
                                thinking_signature: signature(format, text, *signed),
                                ..Thinking::new(text)
                            }))
                        }
                        OwnBlock::Call(arguments, result) => {
                            n_calls += 1;
                            let call = ToolCall::from_text(format!("id_{n_calls}"), "read", arguments);
                            results.extend(result.as_ref().map(|(blocks, is_error)| {
                                let mut result = call.result().build();
                                result.content.clone_from(blocks);
                                result.is_error = *is_error;
                                Message::from(result)
                            }));
                            answer.tool_call(call)
                        }
                    };
                }
                let mut answer = answer.build();
                answer.extra.extend(name.map(|name| ("name".to_owned(), json!(name))));
                messages.push(answer.into());
                messages.append(&mut results);
            }
        }
    }
    messages
}

/// The signature of thinking in that format.
fn signature(format: Format, text: &str, signed: bool) -> Option<String> {
    match format {
        Format::OpenAiChat => Some(if signed { "content" } else { "reasoning_content" }.to_owned()),
        Format::OpenAiResponses => {
            let item =
                json!({"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": text}]});
            Some(item.to_string())
        }
        Format::Anthropic | Format::Google => signed.then(|| "U0lHTg==".to_owned()),
    }
}

/// The conversation without the parts the format loses, as the module lists them.
fn without_losses(format: Format, messages: &[Message]) -> Vec<String> {
    let is_chat = format == Format::OpenAiChat;
    let mut system: Vec<String> = Vec::new();
    let mut lines: Vec<(char, String)> = Vec::new();
    for message in messages {
        let mut message = message.clone();
        let side = match &mut message {
            Message::System(message) => {
                let SystemContent::Text(text) = &message.content else { continue };
                if text.trim().is_empty() {
                    continue;
                }
                if lines.is_empty() || format == Format::Google {
                    system.push(text.clone());
                    continue;
                }
                's'
            }
            Message::User(message) => {
                message.content = UserContent::Blocks(not_blank(format, message.content.blocks()));
                if !is_chat {
                    message.extra.clear();
                }
                'u'
            }
            Message::Assistant(answer) => {
                if !is_chat {
                    answer.extra.clear();
                }
                let is_own = format.speaks(&answer.api);
                let mut blocks = std::mem::take(&mut answer.content);
                blocks.retain(|block| match block {
                    AssistantBlock::Text(Text { text, .. }) => !text.trim().is_empty(),
                    AssistantBlock::Thinking(thinking) => is_own && is_kept(format, thinking),
                    AssistantBlock::ToolCall(_) | AssistantBlock::Unknown(_) => true,
                });
                for block in &mut blocks {
                    if let AssistantBlock::ToolCall(call) = block
                        && matches!(format, Format::Anthropic | Format::Google)
                        && call.arguments_error.take().is_some()
                    {
                        call.arguments = json!({"arguments": "{\"q\":"});
                    }
                }
                answer.content = if is_chat { chat_order(blocks) } else { blocks };
                'a'
            }
            Message::ToolResult(result) => {
                let result = std::sync::Arc::make_mut(result);
                let blocks = not_blank(format, std::mem::take(&mut result.content));
                let (texts, images): (Vec<_>, Vec<_>) =
                    blocks.iter().cloned().partition(|block| block.as_text().is_some());
                let joins = is_chat || format == Format::Google;
                result.content = match format {
                    _ if joins => {
                        let text = (!texts.is_empty()).then(|| ContentBlock::text(join_text(&texts)));
                        text.into_iter().chain(images).collect()
                    }
                    Format::Anthropic if result.is_error => texts.into_iter().chain(images).collect(),
                    _ => blocks,
                };
                // The placeholder of an image moves with the image.
                let is_placeholder = |text: &str| text == SEE_IMAGE && result.content.len() > 1;
                let mut texts = result.content.iter().filter_map(ContentBlock::as_text);
                if texts.next().is_some_and(is_placeholder) && texts.next().is_none() {
                    result.content.retain(|block| block.as_text().is_none());
                }
                result.is_error &= matches!(format, Format::Anthropic | Format::Google);
                'r'
            }
        };
        let line = outline_of(&message);
        match lines.last_mut() {
            // The message is empty now.
            _ if ["assistant ", "user ", "user(ada) "].contains(&line.as_str()) => {}
            Some((last, known))
                if *last == side
                    && (format.joins_answers() && side == 'a' || format == Format::Google && side == 'u') =>
            {
                known.push('+');
                known.push_str(line.split_once(' ').unwrap().1);
            }
            _ => lines.push((side, line)),
        }
    }
    let system = (!system.is_empty()).then(|| format!("system {}", system.join("\n\n")));
    system.into_iter().chain(lines.into_iter().map(|(_, line)| line)).collect()
}

/// The non-blank blocks. For Google, a URL of unknown type becomes a text.
fn not_blank(format: Format, blocks: Vec<ContentBlock>) -> Vec<ContentBlock> {
    let kept = blocks.into_iter().filter(|block| block.as_text().is_none_or(|text| !text.trim().is_empty()));
    let kept = kept.map(|block| match block {
        ContentBlock::ImageUrl(image) if format == Format::Google && image.media_type().is_none() => {
            ContentBlock::text(image.label())
        }
        other => other,
    });
    kept.collect()
}

/// Empty thinking matters only for its signature.
fn is_kept(format: Format, thinking: &Thinking) -> bool {
    let is_signed = thinking.thinking_signature.is_some() && format != Format::OpenAiChat;
    is_signed || !thinking.thinking.trim().is_empty()
}

/// Reasoning in a field, then the content, then the calls.
fn chat_order(blocks: Vec<AssistantBlock>) -> Vec<AssistantBlock> {
    let (mut fields, mut content, mut calls) = (Vec::new(), Vec::new(), Vec::new());
    for block in blocks {
        match block {
            AssistantBlock::Thinking(thinking)
                if thinking.thinking_signature.as_deref() != Some("content") =>
            {
                fields.push(thinking.thinking);
            }
            AssistantBlock::ToolCall(_) => calls.push(block),
            _ => content.push(block),
        }
    }
    let field = (!fields.is_empty()).then(|| {
        let signature = Some("reasoning_content".to_owned());
        AssistantBlock::Thinking(Thinking {
            thinking_signature: signature,
            ..Thinking::new(fields.join("\n\n"))
        })
    });
    field.into_iter().chain(content).chain(calls).collect()
}

proptest! {
    #[test]
    fn any_conversation_comes_back_but_for_the_losses_listed(conversation in vec(said(), 0..8)) {
        for format in Format::ALL {
            let messages = messages_of(format, &conversation);
            let expected = without_losses(format, &messages);
            let body = export(format, &messages).body;
            match import(format, &body.to_string()) {
                Ok(imported) => {
                    prop_assert_eq!(outline(&imported), expected, "{} {}", format, body);
                    assert_fixed(imported);
                }
                Err(ImportError::NoConversation) => {
                    prop_assert!(expected.iter().all(|line| line.starts_with("system ")), "{:?}", expected);
                }
                Err(error) => prop_assert!(false, "{}: {}", error, body),
            }
        }
    }
}
