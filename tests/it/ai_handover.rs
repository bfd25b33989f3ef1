//! Whatever was said before, by whom, and however it ended: a request obeys the
//! rules of its API, and nothing is lost on the way that the model should read.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::sync::Arc;

use pi::ai::{Credential, Message, Request, StreamOptions, ThinkingLevel, preview_request};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::bedrock;
use crate::support::validators::{Target, anthropic, chat, google, mistral, responses};

/// A model that a session is handed to, and the rules of its provider.
struct Aim {
    model: Value,
    level: ThinkingLevel,
    broken: fn(&Value, &Target) -> Option<String>,
}

fn aim(
    api: &str,
    provider: &str,
    id: &str,
    level: ThinkingLevel,
    more: Value,
    broken: fn(&Value, &Target) -> Option<String>,
) -> Aim {
    let mut model = json!({"api": api, "provider": provider, "id": id, "baseUrl": "http://x", "reasoning": true,
        "input": ["text", "image"]});
    model.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Aim { model, level, broken }
}

/// Of a model that reads all there is to read between the turns.
fn reads_all() -> Value {
    json!({"supportsMidConvoSystemMessages": true, "supportsMidConvoToolChanges": true, "supportsMidConvoEffort": true,
        "supportsMidConvoToolAdditions": true, "supportsAdditionalTools": true, "forceAdaptiveThinking": true})
}

fn anthropic_aims() -> Vec<Aim> {
    use ThinkingLevel::{High, Low, Off};
    let to = |api, provider, level, more| aim(api, provider, "m", level, more, anthropic::broken);
    vec![
        to("anthropic-messages", "anthropic", High, json!({})),
        to("anthropic-messages", "anthropic", Off, json!({"input": ["text"], "contextWindow": 4_500})),
        to("anthropic-messages", "p", Low, json!({"compat": {"forceAdaptiveThinking": true}})),
        to("anthropic-vertex", "google-vertex", Low, json!({"maxTokens": 2_000})),
        to("anthropic-messages", "anthropic", High, json!({"compat": reads_all()})),
        to("anthropic-messages", "anthropic", Off, json!({"compat": reads_all()})),
    ]
}

fn chat_aims() -> Vec<Aim> {
    use ThinkingLevel::{High, Off};
    let plain = |body: &Value, target: &Target| chat::broken(body, chat::Server::default(), target);
    let deepseek = |body: &Value, target: &Target| {
        chat::broken(body, chat::Server { wants_reasoning: true, ..chat::Server::default() }, target)
    };
    let openrouter = |body: &Value, target: &Target| {
        chat::broken(body, chat::Server { takes_parts: true, ..chat::Server::default() }, target)
    };
    let api = "openai-completions";
    vec![
        aim(api, "openai", "m", High, json!({}), plain),
        aim(api, "p", "m", Off, json!({"reasoning": false, "input": ["text"]}), plain),
        aim(api, "p", "m", High, json!({"compat": {"requiresThinkingAsText": true}}), plain),
        aim(api, "deepseek", "m", High, json!({"input": ["text"]}), deepseek),
        aim(api, "openrouter", "anthropic/m", High, json!({}), openrouter),
        aim(api, "moonshotai", "m", High, json!({}), plain),
        aim(api, "p", "m", High, json!({"compat": reads_all()}), plain),
        aim("mistral-conversations", "mistral", "m", High, json!({}), mistral::broken),
        aim("mistral-conversations", "mistral", "m", Off, json!({"input": ["text"]}), mistral::broken),
    ]
}

fn responses_aims() -> Vec<Aim> {
    use ThinkingLevel::{High, Off};
    let plain = |body: &Value, target: &Target| responses::broken(body, responses::Server::default(), target);
    let router = |body: &Value, target: &Target| {
        let server = responses::Server { wants_ids: true, knows_reasoning: true, is_codex: false };
        responses::broken(body, server, target)
    };
    let knowing = |body: &Value, target: &Target| {
        responses::broken(body, responses::Server { knows_reasoning: true, ..Default::default() }, target)
    };
    let codex = |body: &Value, target: &Target| {
        responses::broken(body, responses::Server { is_codex: true, ..Default::default() }, target)
    };
    let api = "openai-responses";
    vec![
        aim(api, "openai", "m", High, json!({}), plain),
        aim(
            api,
            "openai",
            "m",
            Off,
            json!({"input": ["text"], "contextWindow": 100, "maxTokens": 10}),
            plain,
        ),
        aim(api, "openrouter", "m", High, json!({}), router),
        aim(api, "xai", "m", High, json!({}), knowing),
        aim("openai-codex-responses", "openai-codex", "m", High, json!({}), codex),
        aim("azure-openai-responses", "azure", "m", High, json!({}), plain),
        aim(api, "openai", "m", High, json!({"compat": reads_all()}), plain),
    ]
}

fn google_aims() -> Vec<Aim> {
    use ThinkingLevel::{High, Off};
    let is_2 = |body: &Value, target: &Target| google::broken(body, google::Family::Gemini2, target);
    let is_3 = |body: &Value, target: &Target| google::broken(body, google::Family::Gemini3, target);
    let claude = |body: &Value, target: &Target| google::broken(body, google::Family::Claude, target);
    let api = "google-generative-ai";
    vec![
        aim(api, "google", "gemini-2.5-flash", High, json!({}), is_2),
        aim(api, "google", "gemini-2.5-pro", Off, json!({"input": ["text"]}), is_2),
        aim(api, "google", "gemini-3-pro-preview", High, json!({}), is_3),
        aim("google-vertex", "google-vertex", "gemini-3-flash", Off, json!({"input": ["text"]}), is_3),
        aim("google-vertex", "google-vertex", "gemini-3-pro", High, json!({}), is_3),
        aim("google-vertex", "google-vertex", "claude-4", High, json!({}), claude),
    ]
}

fn bedrock_aims() -> Vec<Aim> {
    use ThinkingLevel::{High, Off};
    let claude = |body: &Value, _: &Target| bedrock::broken(body, true);
    let other = |body: &Value, _: &Target| bedrock::broken(body, false);
    let to =
        |id, level, more, broken| aim("bedrock-converse-stream", "amazon-bedrock", id, level, more, broken);
    vec![
        to("anthropic.claude-sonnet-4-6", High, json!({}), claude),
        to("us.amazon.nova-pro-v1:0", Off, json!({}), other),
        to("deepseek.v3.2", High, json!({"input": ["text"]}), other),
        to("openai.gpt-6-sol", High, json!({}), other),
    ]
}

/// Who gave an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Own,
    /// Another model of the same provider and API.
    Sibling,
    /// A model of another provider, with this API.
    Foreign(&'static str),
}

#[derive(Debug, Clone)]
enum Part {
    Text(&'static str),
    Image(&'static str, &'static str),
    /// By its address, with its type if it is known.
    ImageUrl(&'static str, Option<&'static str>),
}

/// The data a block carries for its own server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Signed {
    No,
    Empty,
    /// In one of the forms that servers and files have.
    Form(usize),
    Redacted,
}

#[derive(Debug, Clone)]
enum Block {
    Text(&'static str, Signed),
    Thinking(&'static str, Signed),
    Call { id: &'static str, name: &'static str, arguments: Value, signed: Signed },
    Unknown,
}

/// The outcome of a call.
#[derive(Debug, Clone)]
struct Outcome {
    /// How many results there are of it.
    times: usize,
    parts: Vec<Part>,
    is_error: bool,
}

#[derive(Debug, Clone)]
enum Episode {
    Plain(&'static str),
    User(Vec<Part>),
    System(Value),
    /// A result that no call waits for.
    Stray(&'static str),
    Answer {
        source: Source,
        stop: &'static str,
        blocks: Vec<Block>,
        outcomes: Vec<Outcome>,
        /// Results come in the opposite order of their calls.
        reversed: bool,
        /// Another message comes before the results.
        interrupted: bool,
    },
}

/// Marks data that only the server of another model can read.
const FOREIGN: &str = "Zm9yZWlnbi0t";
const FOREIGN_THOUGHT: &str = "thought of another";

/// Signatures of blocks, in the forms of all APIs.
fn signature(form: usize, of: &str) -> String {
    let item = |id: String, more: Value| {
        let mut item = json!({"type": "reasoning", "id": id, "summary": []});
        item.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        item.to_string()
    };
    match form {
        0 => of.to_owned(),
        1 => item(format!("rs_{of}"), json!({"encrypted_content": of, "status": null})),
        2 => item(format!("rs_2{of}"), json!({"encrypted_content": null, "x": of})),
        3 => json!({"type": "reasoning", "id": format!("rs_3{of}"), "encrypted_content": of}).to_string(),
        4 => json!({"v": 1, "id": format!("msg_{of}"), "phase": "final_answer"}).to_string(),
        5 => json!({"v": 1, "id": format!("item.{of}"), "phase": "of the moon"}).to_string(),
        6 => json!([{"type": "reasoning.text", "text": "hm", "signature": of}]).to_string(),
        _ => format!("not of base64: {of}"),
    }
}

const FORMS: usize = 8;

fn word() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "",
        " ",
        "\n\n",
        "hello",
        "ends in space ",
        "naïve 🦀 漢字 \u{200d}\u{7}",
        "\"}{",
    ])
}

fn part() -> impl Strategy<Value = Part> {
    let kinds = prop::sample::select(vec![
        "image/png",
        "image/jpeg",
        "image/gif",
        "image/webp",
        "image/heic",
        "image/bmp",
        "image/svg+xml",
        "",
    ]);
    let data = prop::sample::select(vec!["AA==", "AA==", "AA==", ""]);
    let address = prop::sample::select(vec![
        ("https://x/y.png", None),
        ("https://x/y.png", Some("image/png")),
        ("https://x/y", None),
        ("https://x/y", Some("image/heic")),
        ("https://x/y", Some("image/x")),
        ("https://x/y.svg", None),
        ("https://x/y.gif", Some("image/gif")),
        ("http://x/y.webp?z=1", None),
        ("gs://b/y.jpeg", None),
        ("gs://b/y", Some("image/png")),
        ("s3://b/y.png", None),
        ("s3://b/y", None),
        ("https://generativelanguage.googleapis.com/v1beta/files/y", None),
    ]);
    prop_oneof![
        2 => word().prop_map(Part::Text),
        2 => (kinds, data).prop_map(|(kind, data)| Part::Image(kind, data)),
        1 => address.prop_map(|(url, kind)| Part::ImageUrl(url, kind)),
    ]
}

fn signed() -> impl Strategy<Value = Signed> {
    prop_oneof![
        Just(Signed::No),
        Just(Signed::Empty),
        Just(Signed::Redacted),
        (0..FORMS).prop_map(Signed::Form),
        (0..2_usize).prop_map(Signed::Form),
    ]
}

fn id() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "",
        "a",
        "a",
        "b:1",
        "abcdefghi",
        "call_with_an_id_that_is_much_longer_than_forty_characters_allow",
        "a|fc_1",
        "é|fc_2",
        "call_with_a_first_part_that_is_longer_than_even_sixty_four_characters_allow|fc_2",
        "c|item.with.other.letters",
        "d|ctc_1",
    ])
}

fn block() -> impl Strategy<Value = Block> {
    let name = prop::sample::select(vec!["f", "f", "see", "never_declared", "", "functions.f", "naïve name"]);
    let arguments =
        prop::sample::select(vec![json!({}), json!({"input": "x"}), json!(null), json!("text"), json!([1])]);
    let call = (id(), name, arguments, signed());
    prop_oneof![
        2 => (word(), signed()).prop_map(|(text, signed)| Block::Text(text, signed)),
        2 => (word(), signed()).prop_map(|(text, signed)| Block::Thinking(text, signed)),
        4 => call.prop_map(|(id, name, arguments, signed)| Block::Call { id, name, arguments, signed }),
        1 => Just(Block::Unknown),
    ]
}

fn episode() -> impl Strategy<Value = Episode> {
    let source = prop_oneof![
        3 => Just(Source::Own),
        1 => Just(Source::Sibling),
        2 => prop::sample::select(vec!["anthropic-messages", "openai-responses", "google-generative-ai", "x"])
            .prop_map(Source::Foreign),
    ];
    let stop = prop::sample::select(vec!["stop", "toolUse", "toolUse", "length", "error", "aborted"]);
    let outcome =
        (prop::sample::select(vec![1, 1, 1, 0, 2]), prop::collection::vec(part(), 0..3), any::<bool>())
            .prop_map(|(times, parts, is_error)| Outcome { times, parts, is_error });
    let answer = (
        source,
        stop,
        prop::collection::vec(block(), 0..6),
        prop::collection::vec(outcome, 6),
        any::<bool>(),
        prop::bool::weighted(0.2),
    );
    let system = prop::sample::select(vec![
        json!({"content": "more"}),
        json!({"content": "", "toolsAdded": [{"name": "f"}, {"name": "see", "parameters": {"type": "object"}}]}),
        json!({"toolsAdded": [{"name": "f", "description": "d", "parameters": {"anyOf": [], "properties": {"x": {}}}}]}),
        json!({"toolsRemoved": [{"name": "f"}, {"name": "see"}]}),
        json!({"sections": {"a": "section", "b": " "}}),
    ]);
    prop_oneof![
        1 => word().prop_map(Episode::Plain),
        2 => prop::collection::vec(part(), 0..4).prop_map(Episode::User),
        1 => system.prop_map(Episode::System),
        1 => id().prop_map(Episode::Stray),
        5 => answer.prop_map(|(source, stop, blocks, outcomes, reversed, interrupted)| {
            Episode::Answer { source, stop, blocks, outcomes, reversed, interrupted }
        }),
    ]
}

/// A session, written for the model it is handed to.
struct Written {
    messages: Vec<Value>,
    /// The numbers of the texts that the model must read, in their order.
    survivors: Vec<usize>,
    own_ids: Vec<String>,
    n_texts: usize,
}

impl Written {
    fn of(episodes: &[Episode], model: &Value) -> Self {
        let mut written =
            Self { messages: Vec::new(), survivors: Vec::new(), own_ids: Vec::new(), n_texts: 0 };
        written.user(&[Part::Text("first")]);
        for episode in episodes {
            match episode {
                Episode::Plain(word) => {
                    let text = written.text(word, true);
                    written.messages.push(json!({"role": "user", "content": text}));
                }
                Episode::User(parts) => written.user(parts),
                Episode::System(fields) => {
                    let mut message = fields.clone();
                    message["role"] = json!("system");
                    written.messages.push(message);
                }
                Episode::Stray(id) => {
                    let stray = json!([{"type": "text", "text": "stray"}]);
                    // An answer between it and all calls, so that it belongs to none.
                    written.messages.push(json!({"role": "assistant", "content": []}));
                    written.messages.push(json!({"role": "toolResult", "toolCallId": id, "content": stray}));
                }
                Episode::Answer { .. } => written.answer(episode, model),
            }
        }
        written.user(&[Part::Text("last")]);
        written
    }

    /// `word` with its number, if there is something in it.
    fn text(&mut self, word: &str, survives: bool) -> String {
        if word.trim().is_empty() {
            return word.to_owned();
        }
        self.n_texts += 1;
        if survives {
            self.survivors.push(self.n_texts);
        }
        format!("⟦{}⟧{word}", self.n_texts)
    }

    fn parts(&mut self, parts: &[Part], survive: bool) -> Value {
        let parts = parts.iter().map(|part| match part {
            Part::Text(word) => json!({"type": "text", "text": self.text(word, survive)}),
            Part::Image(kind, data) => json!({"type": "image", "data": data, "mimeType": kind}),
            Part::ImageUrl(url, kind) => {
                let mut block = json!({"type": "text", "text": format!("[image: {url}]"), "imageUrl": url});
                if let Some(kind) = kind {
                    block["mimeType"] = json!(kind);
                }
                block
            }
        });
        parts.collect()
    }

    fn user(&mut self, parts: &[Part]) {
        let content = self.parts(parts, true);
        self.messages.push(json!({"role": "user", "content": content}));
    }

    fn answer(&mut self, episode: &Episode, model: &Value) {
        let Episode::Answer { source, stop, blocks, outcomes, reversed, interrupted } = episode else {
            return;
        };
        let kept = !matches!(*stop, "error" | "aborted");
        let is_own = *source == Source::Own;
        let owner = if is_own { "b3duZWQtLS0t" } else { FOREIGN };
        let signature = |signed: &Signed| match signed {
            Signed::No => None,
            Signed::Empty => Some(String::new()),
            Signed::Form(form) => Some(signature(*form, owner)),
            Signed::Redacted => Some(owner.to_owned()),
        };
        let mut content = Vec::new();
        let mut results = Vec::new();
        let mut calls = Vec::new();
        for (at, block) in blocks.iter().enumerate() {
            let mut written = match block {
                Block::Text(word, signed) => {
                    json!({"type": "text", "text": self.text(word, kept), "textSignature": signature(signed)})
                }
                Block::Thinking(word, signed) => {
                    let blank = word.trim().is_empty();
                    let text = if is_own || blank { word } else { FOREIGN_THOUGHT };
                    json!({"type": "thinking", "thinking": text, "thinkingSignature": signature(signed),
                        "redacted": *signed == Signed::Redacted})
                }
                Block::Call { id, name, arguments, signed } => {
                    calls.push((*id, outcomes[at].clone()));
                    if is_own {
                        self.own_ids.push((*id).to_owned());
                    }
                    json!({"type": "toolCall", "id": id, "name": name, "arguments": arguments,
                        "thoughtSignature": signature(signed)})
                }
                Block::Unknown => json!({"type": "hologram", "data": FOREIGN}),
            };
            written.as_object_mut().unwrap().retain(|_, value| !value.is_null());
            content.push(written);
        }
        // Calls with the same id are answered in their order, regardless of the intended call.
        for (id, outcome) in &calls {
            for _ in 0..outcome.times {
                let parts = self.parts(&outcome.parts, false);
                results.push((
                    *id,
                    json!({"role": "toolResult", "toolCallId": id, "toolName": "f",
                    "content": parts, "isError": outcome.is_error}),
                ));
            }
        }
        if *reversed {
            results.reverse();
        }
        if kept {
            let mut left = results.clone();
            for (id, _) in &calls {
                let Some(found) = left.iter().position(|(known, _)| known == id) else { continue };
                let (_, result) = left.remove(found);
                self.survivors.extend(numbers(&result.to_string()));
            }
        }
        let (api, provider, id) = match source {
            Source::Own => (&model["api"], &model["provider"], model["id"].clone()),
            Source::Sibling => (&model["api"], &model["provider"], json!("sibling")),
            Source::Foreign(_) => (&Value::Null, &Value::Null, model["id"].clone()),
        };
        let foreign_api = if let Source::Foreign(api) = source { *api } else { api.as_str().unwrap() };
        let mut answer = json!({"role": "assistant", "api": foreign_api, "provider": provider.as_str().unwrap_or("elsewhere"),
            "model": id, "content": content, "stopReason": stop});
        if !kept {
            answer["errorMessage"] = json!("it failed");
        }
        self.messages.push(answer);
        if *interrupted {
            self.messages.push(json!({"role": "system", "content": "in between"}));
            self.user(&[Part::Text("in between")]);
        }
        self.messages.extend(results.into_iter().map(|(_, result)| result));
    }
}

/// The numbers of the texts in `body`, in their order.
fn numbers(body: &str) -> Vec<usize> {
    let starts = body.split('⟦').skip(1);
    starts.filter_map(|rest| rest.split_once('⟧')?.0.parse().ok()).collect()
}

fn body(aim: &Aim, messages: &[Value]) -> (Value, Request) {
    let messages =
        messages.iter().map(|message| Arc::new(serde_json::from_value::<Message>(message.clone()).unwrap()));
    let request = Request {
        model: Arc::new(serde_json::from_value(aim.model.clone()).unwrap()),
        credential: Credential::Bearer("t".to_owned()),
        messages: messages.collect(),
        options: StreamOptions { thinking: aim.level, temperature: Some(0.5), ..StreamOptions::default() },
    };
    (preview_request(&request).unwrap().body, request)
}

/// Fails unless the session can be handed to `aim` and the model reads all of it.
fn check(aim: &Aim, episodes: &[Episode]) -> Result<(), TestCaseError> {
    let written = Written::of(episodes, &aim.model);
    let (body, request) = body(aim, &written.messages);
    let target = Target {
        own_ids: written.own_ids,
        reads_images: request.model.reads_images(),
        provider: request.model.provider.clone(),
        max_tokens: request.model.max_tokens,
        reads_updates: request.model.compat.contains_key("supportsMidConvoSystemMessages"),
    };
    let text = body.to_string();
    prop_assert_eq!((aim.broken)(&body, &target), None, "{}", aim.model);
    prop_assert_eq!(numbers(&text), written.survivors, "{} gets {}", aim.model, text);
    for lost in [FOREIGN, FOREIGN_THOUGHT, "stray", "hologram", "it failed"] {
        prop_assert!(!text.contains(lost), "{} gets {lost}: {text}", aim.model);
    }
    Ok(())
}

fn conversation() -> impl Strategy<Value = Vec<Episode>> {
    prop::collection::vec(episode(), 0..8)
}

/// Enough to find a defect from a single change; `PROPTEST_CASES` sets a higher number.
fn cases() -> ProptestConfig {
    let default = ProptestConfig::default();
    // The environment takes precedence; 256 is proptest's default.
    let cases = if default.cases == 256 { 96 } else { default.cases };
    ProptestConfig { cases, failure_persistence: None, ..default }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn any_conversation_obeys_the_rules_of_its_api(episodes in conversation()) {
        let aims = [anthropic_aims(), chat_aims(), responses_aims(), google_aims(), bedrock_aims()];
        for aim in aims.iter().flatten() {
            check(aim, &episodes)?;
        }
    }
}
