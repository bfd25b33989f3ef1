//! Providers' caches of a conversation stay valid: every request of a session
//! begins with the previous request to the same model, byte for byte.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use pi::ai::{FakeAnswer, TestBarrier, ThinkingLevel, preview_request};
use pi::session::{Scope, SessionCommand, WhenBusy};
use serde_json::{Value, json};

use crate::support::agent_bench::TestTool;
use crate::support::dialects::{self, Call, Dialect, Lack, Prefix, ROWS, Script, Step};
use crate::support::session_bench::{Session, SessionBench};
use crate::support::validators::{MAX_MARKERS, n_markers};

/// A row, and further properties of its models.
struct Variant {
    row: &'static dyn Dialect,
    name: &'static str,
    base_url: &'static str,
    /// The model that the session begins with, and the one it goes to.
    ids: [&'static str; 2],
    model: Value,
    /// Requests contain cache markers.
    marks: bool,
    /// What the model reads of the system between the turns, so that it does not
    /// change the start.
    reads: &'static [Kind],
}

fn row(api: &str) -> &'static dyn Dialect {
    *ROWS.iter().find(|row| row.api() == api).unwrap()
}

/// Every row, and the dialects that write requests in another way.
fn variants() -> Vec<Variant> {
    let base_url = "http://127.0.0.1:1";
    let rows = ROWS.iter().map(|row| Variant {
        row: *row,
        name: row.api(),
        base_url,
        ids: row.model_ids(),
        model: json!({}),
        marks: row.marks(),
        reads: &[],
    });
    let mut variants: Vec<Variant> = rows.collect();
    let mut add = |api: &str, name, base_url, compat: Value, marks| {
        let ids = ["m-1", "m-2"];
        let model = json!({ "compat": compat });
        variants.push(Variant { row: row(api), name, base_url, ids, model, marks, reads: &[] });
    };
    let claude = json!({"cacheControlFormat": "anthropic"});
    add("openai-completions", "openrouter", "http://openrouter.ai.test:1", claude.clone(), true);
    add("openai-completions", "proxy of Claude", base_url, claude, true);
    add("openai-responses", "openrouter responses", "http://openrouter.ai.test:1", json!({}), false);
    for (name, ids) in [
        ("Gemini 2", ["gemini-2.5-pro", "gemini-2.5-flash"]),
        ("Gemini 3", ["gemini-3-pro-preview", "gemini-3-flash"]),
    ] {
        let row = row("google-generative-ai");
        variants.push(Variant { row, name, base_url, ids, model: json!({}), marks: false, reads: &[] });
    }
    let mut add = |api, name, compat: Value, marks, reads| {
        let model = json!({ "compat": compat });
        variants.push(Variant { row: row(api), name, base_url, ids: ["m-1", "m-2"], model, marks, reads });
    };
    let texts = json!({"supportsMidConvoSystemMessages": true});
    let with = |more: Value| {
        let mut compat = texts.clone();
        compat.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        compat
    };
    let all: &[Kind] = &[Kind::Prompt, Kind::SkillAdded, Kind::ToolAdded, Kind::ToolRemoved];
    let additions: &[Kind] = &[Kind::Prompt, Kind::SkillAdded, Kind::ToolAdded];
    let prompts: &[Kind] = &[Kind::Prompt, Kind::SkillAdded];
    let changes = with(json!({"supportsMidConvoToolChanges": true}));
    add("anthropic-messages", "Claude reading instructions", texts.clone(), true, prompts);
    add("anthropic-messages", "Claude reading tools", changes, true, all);
    let effort = with(json!({"supportsMidConvoToolChanges": true, "supportsMidConvoEffort": true,
        "forceAdaptiveThinking": true}));
    add("anthropic-messages", "Claude told how much to think", effort, true, all);
    add("openai-responses", "GPT reading instructions", texts.clone(), false, prompts);
    add("openai-responses", "GPT finding tools", with(json!({"supportsToolSearch": true})), false, additions);
    let tools = with(json!({"supportsAdditionalTools": true, "supportsMidConvoEffort": true}));
    add("openai-responses", "GPT reading tools", tools.clone(), false, all);
    add("openai-codex-responses", "GPT of ChatGPT reading tools", tools, false, all);
    add("openai-completions", "chat reading instructions", texts.clone(), false, prompts);
    add(
        "openai-completions",
        "Kimi reading tools",
        with(json!({"supportsMidConvoToolAdditions": true})),
        false,
        additions,
    );
    variants
}

impl Variant {
    fn acme(&self) -> Value {
        let model = |id: &str| {
            let mut model =
                json!({"id": id, "reasoning": true, "input": ["text", "image"], "contextWindow": 200_000});
            model.as_object_mut().unwrap().extend(self.model.as_object().unwrap().clone());
            model
        };
        let models = self.ids.map(model);
        json!({"baseUrl": self.base_url, "api": self.row.api(), "models": models})
    }

    /// An answer of the model `id`, through framing and decoder.
    fn answer(&self, id: &str, steps: impl IntoIterator<Item = Step>) -> FakeAnswer {
        let mut model = dialects::model(self.row, self.base_url);
        model["id"] = json!(id);
        model.as_object_mut().unwrap().extend(self.model.as_object().unwrap().clone());
        let frames = self.row.frames(&Script::new(steps));
        let request = dialects::request(model, &[]);
        FakeAnswer::of_events(pi::ai::decode_recorded(&request, frames.iter().map(Vec::as_slice)))
    }

    fn thinking(&self) -> Step {
        let signature = (!self.row.lacks().contains(&Lack::Signatures)).then_some("c2lnbmF0dXJl");
        Step::Thinking { pieces: vec!["hm"], signature }
    }
}

fn text(text: &'static str) -> Step {
    Step::Text(vec![text])
}

fn says(id: &'static str) -> Call {
    Call { id, name: "say", pieces: vec!["{\"text\":", "\"ok\"}"] }
}

/// Changes that are allowed in the requests from a position on.
struct Change {
    /// Requests before it.
    at: usize,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    ToolAdded,
    ToolRemoved,
    Prompt,
    SkillAdded,
}

fn set_model(id: &str) -> SessionCommand {
    SessionCommand::SetModel { reference: format!("acme/{id}"), scope: Scope::Session }
}

/// Everything that happens to a session, except compaction, which begins anew.
async fn played(variant: &Variant) -> (SessionBench, Vec<Change>) {
    let [first, second] = variant.ids;
    let mut bench = SessionBench::new([]).acme(variant.acme()).model(first).tools([TestTool::say(), read()]);
    bench.skill("agent/skills/one", "---\ndescription: \"Is there from\n  the start <&>\"\n---\nOne.\n");
    let mut changes = Vec::new();
    let mut session = bench.start().await;
    let push = |bench: &SessionBench, answers: Vec<FakeAnswer>| {
        answers.into_iter().for_each(|answer| bench.provider.push(answer));
    };

    push(&bench, vec![variant.answer(first, [text("one")])]);
    session.ask("first").await;
    push(
        &bench,
        vec![
            variant.answer(
                first,
                [
                    variant.thinking(),
                    text("calling"),
                    Step::Calls(vec![says("aaaaaaaa1"), says("aaaaaaaa2")]),
                ],
            ),
            // The same ids again, as some servers give them out.
            variant.answer(first, [variant.thinking(), Step::Calls(vec![says("aaaaaaaa1")])]),
            variant.answer(first, [text("done ")]),
        ],
    );
    session.ask("second").await;
    // A new skill is listed only when the session is opened again.
    bench.skill("agent/skills/unseen", "---\ndescription: Comes and goes\n---\n");

    // Failed and cancelled answers are not sent to the model.
    push(&bench, vec![FakeAnswer::failed("400: bad request")]);
    session.ask("third").await;
    abort(&bench, &mut session).await;
    push(&bench, vec![variant.answer(first, [text("four")])]);
    session.ask("fourth").await;

    // To another model and back, with calls of both.
    session.request(set_model(second)).await.unwrap();
    push(
        &bench,
        vec![
            variant.answer(second, [variant.thinking(), Step::Calls(vec![says("bbbbbbbb1")])]),
            variant.answer(second, [text("of the other")]),
        ],
    );
    session.ask("fifth").await;
    session.request(set_model(first)).await.unwrap();
    let low = SessionCommand::SetThinking { level: ThinkingLevel::Low, scope: Scope::Session };
    session.request(low).await.unwrap();
    push(
        &bench,
        vec![
            variant.answer(first, [Step::Calls(vec![says("cccccccc1")])]),
            variant.answer(first, [text("six")]),
        ],
    );
    session.ask("sixth").await;
    session.request(set_model(second)).await.unwrap();
    push(&bench, vec![variant.answer(second, [text("seven")])]);
    session.ask("seventh").await;
    session.request(set_model(first)).await.unwrap();
    push(&bench, vec![variant.answer(first, [text("eight")])]);
    session.ask("eighth").await;

    std::fs::remove_dir_all(bench.path("agent/skills/unseen")).unwrap();

    // Read from its file; then with another skill, with more tools, with another
    // prompt, with fewer tools.
    let resumed: [(Option<Kind>, &'static str); 5] = [
        (None, "Be brief."),
        (Some(Kind::SkillAdded), "Be brief."),
        (Some(Kind::ToolAdded), "Be brief."),
        (Some(Kind::Prompt), "Be long."),
        (Some(Kind::ToolRemoved), "Be long."),
    ];
    for (kind, prompt) in resumed {
        let path = session.path();
        session.shut_down().await;
        let tools = match kind {
            None | Some(Kind::SkillAdded) => vec![TestTool::say(), read()],
            Some(Kind::ToolAdded | Kind::Prompt) => vec![TestTool::say(), read(), other_tool()],
            Some(Kind::ToolRemoved) => vec![read(), other_tool()],
        };
        if kind == Some(Kind::SkillAdded) {
            bench.skill("agent/skills/added", "---\ndescription: Is there later\n---\nTwo.\n");
        }
        bench = bench.tools(tools).prompt(prompt);
        changes.extend(kind.map(|kind| Change { at: bench.provider.requests().len(), kind }));
        session = bench.resume(&path).await;
        for said in ["again", "and again"] {
            push(&bench, vec![variant.answer(first, [variant.thinking(), text("nine")])]);
            session.ask(said).await;
        }
    }
    (bench, changes)
}

fn read() -> TestTool {
    TestTool::new("read", |_, _| async { Ok(pi::agent::ToolOutput::text("read")) })
}

fn other_tool() -> TestTool {
    TestTool::new("other", |_, _| async { Ok(pi::agent::ToolOutput::text("other")) })
}

async fn abort(bench: &SessionBench, session: &mut Session) {
    let gate = TestBarrier::new();
    bench.provider.push(FakeAnswer::new().text_pieces(&["half", " whole"], Some(&gate)));
    session.say("cancelled", WhenBusy::Steer).await;
    gate.reached().await;
    session.request(SessionCommand::Abort).await.unwrap();
    session.settled().await;
}

/// Fails unless `later` begins with `earlier`, apart from known changes.
fn check(name: &str, earlier: &Prefix, later: &Prefix, changes: &[Kind], reads: &[Kind]) {
    // Tools added between the turns go to the start when one of them is removed there.
    let moves = changes.contains(&Kind::ToolRemoved) && reads.contains(&Kind::ToolAdded);
    if !moves {
        let n_messages = earlier.messages.len().min(later.messages.len());
        assert_eq!(later.messages[..n_messages], earlier.messages, "{name}");
        assert!(later.messages.len() > earlier.messages.len(), "{name} says nothing new");
    }
    if !changes.contains(&Kind::Prompt) && !changes.contains(&Kind::SkillAdded) {
        assert_eq!(later.system, earlier.system, "{name}");
    }
    match changes {
        changes if changes.contains(&Kind::ToolRemoved) => {
            assert!(moves || later.tools.iter().all(|tool| earlier.tools.contains(tool)), "{name}");
        }
        changes if changes.contains(&Kind::ToolAdded) => {
            assert_eq!(later.tools[..earlier.tools.len()], earlier.tools, "{name}");
        }
        _ => assert_eq!(later.tools, earlier.tools, "{name}"),
    }
}

#[tokio::test]
async fn every_request_begins_with_the_one_before_it() {
    for variant in variants() {
        let (bench, changes) = played(&variant).await;
        let requests = bench.provider.requests();
        assert_eq!(requests.len(), 23, "{}", variant.name);
        // Another skill is listed from the moment the session is opened with it, and
        // not while one is open.
        for (at, request) in requests.iter().enumerate() {
            let body = preview_request(request).unwrap().body.to_string();
            assert!(body.contains("<name>one</name>"), "{}, request {at}", variant.name);
            assert!(!body.contains("<name>unseen</name>"), "{}, request {at}", variant.name);
            assert_eq!(body.contains("<name>added</name>"), at >= 15, "{}, request {at}", variant.name);
        }
        let bodies = requests.iter().map(|request| preview_request(request).unwrap().body);
        let n_markers: usize = bodies.map(|body| n_markers(&body)).sum();
        assert_eq!(n_markers > 0, variant.marks, "{}", variant.name);
        for id in variant.ids {
            let own: Vec<(usize, Prefix)> = requests
                .iter()
                .enumerate()
                .filter(|(_, request)| request.model.id == id)
                .map(|(at, request)| (at, variant.row.prefix(&preview_request(request).unwrap().body)))
                .collect();
            for pair in own.windows(2) {
                let [(earlier_at, earlier), (later_at, later)] = pair else { continue };
                let between = |change: &&Change| *earlier_at < change.at && change.at <= *later_at;
                let kinds = changes.iter().filter(between).map(|change| change.kind);
                let kinds: Vec<Kind> = kinds.filter(|kind| !variant.reads.contains(kind)).collect();
                check(
                    &format!("{} to {id}, request {later_at}", variant.name),
                    earlier,
                    later,
                    &kinds,
                    variant.reads,
                );
            }
        }
    }
}

/// The marked positions, by kind, in the order of the cached prefix.
fn marked(body: &Value) -> [bool; 3] {
    let last = |list: &Value| list.as_array().and_then(|items| items.last()).cloned().unwrap_or_default();
    let is_marked = |value: &Value| {
        let is_mark = value["cachePoint"] == json!({"type": "default"});
        is_mark || value["cache_control"] == json!({"type": "ephemeral"})
    };
    let first = &body["messages"][0];
    let is_said = |message: &&Value| !message["output_config"].is_object();
    let said: Value = body["messages"].as_array().unwrap().iter().filter(is_said).cloned().collect();
    let is_shown = |tool: &&Value| tool["defer_loading"] != true;
    let system = if first["role"] == "system" { &first["content"] } else { &body["system"] };
    let message = last(&said);
    let tools = body.get("tools").unwrap_or(&body["toolConfig"]["tools"]);
    let tools: Value = tools.as_array().unwrap().iter().filter(is_shown).cloned().collect();
    [is_marked(&last(&tools)), is_marked(&last(system)), is_marked(&last(&message["content"]))]
}

#[tokio::test]
async fn what_is_worth_caching_is_marked_at_its_end() {
    for variant in variants().into_iter().filter(|variant| variant.marks) {
        let (bench, _) = played(&variant).await;
        for (at, request) in bench.provider.requests().iter().enumerate() {
            let body = preview_request(request).unwrap().body;
            // Not every proxy accepts a marker on a result; then the last message has it.
            let after_results = body["messages"].as_array().unwrap().last().unwrap()["role"] == "tool";
            let at_the_end = !(after_results && variant.name == "proxy of Claude");
            assert_eq!(marked(&body), [true, true, at_the_end], "{}, request {at}: {body}", variant.name);
            let markers = n_markers(&body);
            assert!(markers == 3 && markers <= MAX_MARKERS, "{}, request {at}: {markers}", variant.name);
        }
    }
}
