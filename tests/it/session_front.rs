//! What every front end gets from a session: its own events, the settings, and the
//! rules of a conversation.

use std::fs;

use pi::agent::{AgentEvent, SteeringDelivery};
use pi::ai::{FakeAnswer, Message, TestBarrier, ThinkingLevel};
use pi::config::{Layer, Trust, TrustDefault, TrustPolicy};
use pi::session::{
    Deltas, OtherCommands, Phase, PromptDraft, Refusal, Reply, Scope, SessionCommand, SessionError,
    SessionEvent, SessionEvents, SessionUpdate, TrustChoice, WhenBusy,
};
use serde_json::{Value, json};

use crate::support::session_bench::{Session, SessionBench, prompt, sent};

fn bench<const N: usize>(answers: [&str; N]) -> SessionBench {
    SessionBench::new(answers.map(FakeAnswer::of_text))
}

/// An answer of two pieces with a stop between them.
fn half(gate: &TestBarrier) -> FakeAnswer {
    FakeAnswer::new().text_pieces(&["half", " whole"], Some(gate))
}

fn asking() -> TrustPolicy {
    TrustPolicy { flag: None, default: TrustDefault::Ask, can_ask: true }
}

fn begin(prompts: &[&str]) -> SessionCommand {
    SessionCommand::Begin { prompts: prompts.iter().map(|&text| PromptDraft::from(text)).collect() }
}

fn change(key: &str, value: Value) -> SessionCommand {
    SessionCommand::ChangeSetting { key: key.to_owned(), value: Some(value) }
}

fn reset(key: &str) -> SessionCommand {
    SessionCommand::ChangeSetting { key: key.to_owned(), value: None }
}

/// Reads until the session is idle again.
async fn until_settled(events: &mut SessionEvents) -> Vec<SessionUpdate> {
    let mut updates = Vec::new();
    loop {
        let update = events.recv().await.expect("the session goes on");
        let is_settled = matches!(update.event, SessionEvent::Settled { .. });
        updates.push(update);
        if is_settled {
            return updates;
        }
    }
}

fn n_deltas(updates: &[SessionUpdate]) -> usize {
    let is_delta =
        |update: &&SessionUpdate| matches!(update.event, SessionEvent::Agent(AgentEvent::MessageUpdate(_)));
    updates.iter().filter(is_delta).count()
}

// Subscribers.

#[tokio::test]
async fn each_subscriber_gets_the_events_it_wants() {
    let bench = bench(["one", "two"]);
    let mut session = bench.start().await;
    session.ask("first").await;
    let mut whole = session.handle.subscribe(Deltas::Unwanted);
    let mut pieces = session.handle.subscribe(Deltas::Wanted);
    session.ask("second").await;
    let (whole, pieces) = (until_settled(&mut whole).await, until_settled(&mut pieces).await);
    assert_eq!(n_deltas(&whole), 0);
    assert!(n_deltas(&pieces) > 0);
    let without_deltas = |updates: &[SessionUpdate]| -> Vec<String> {
        let updates = updates.iter().filter(|update| n_deltas(std::slice::from_ref(update)) == 0);
        updates.map(|update| format!("{:?}", update.event)).collect()
    };
    assert_eq!(without_deltas(&whole), without_deltas(&pieces));
    let SessionEvent::Opened(opened) = &whole[0].event else { panic!("{:?}", whole[0]) };
    let n_messages = opened.tail.iter().filter(|entry| format!("{:?}", entry.body).contains("User(")).count();
    assert_eq!(n_messages, 1, "what was there before comes first");
}

#[tokio::test]
async fn a_subscriber_that_comes_in_the_middle_of_an_answer_gets_no_half_of_it() {
    let gate = TestBarrier::new();
    let bench = SessionBench::new([half(&gate), FakeAnswer::of_text("ok")]);
    let mut session = bench.start().await;
    session.prompt("go").await;
    gate.reached().await;
    let mut late = session.handle.subscribe(Deltas::Wanted);
    assert!(matches!(late.recv().await.unwrap().event, SessionEvent::Opened(_)));
    gate.open();
    session.settled().await;
    let updates = until_settled(&mut late).await;
    assert_eq!(n_deltas(&updates), 0);
    let is_answer = |update: &SessionUpdate| matches!(&update.event, SessionEvent::Agent(AgentEvent::MessageEnd(message)) if matches!(**message, Message::Assistant(_)));
    assert!(updates.iter().any(is_answer), "the whole of it comes with its end");
    session.ask("again").await;
    assert!(n_deltas(&until_settled(&mut late).await) > 0);
}

#[tokio::test]
async fn a_subscriber_that_is_slow_or_gone_stops_nothing() {
    let bench = bench(["one", "two", "three"]);
    let mut session = bench.start().await;
    let mut slow = session.handle.subscribe(Deltas::Wanted);
    drop(session.handle.subscribe(Deltas::Wanted));
    for text in ["a", "b", "c"] {
        session.ask(text).await;
    }
    assert_eq!(session.on_disk().last().unwrap(), "answer three");
    for _ in 0..3 {
        assert!(n_deltas(&until_settled(&mut slow).await) > 0, "nothing was lost either");
    }
    session.shut_down().await;
    while slow.recv().await.is_some() {}
}

#[tokio::test]
async fn an_event_carries_the_snapshot_it_led_to() {
    let gate = TestBarrier::new();
    let bench = SessionBench::new([half(&gate)]);
    let session = bench.start().await;
    let mut events = session.handle.subscribe(Deltas::Unwanted);
    session.prompt("go").await;
    gate.reached().await;
    session.request(SessionCommand::SetName { name: "first".to_owned() }).await.unwrap();
    session.request(SessionCommand::SetName { name: "second".to_owned() }).await.unwrap();
    gate.open();
    // Read when all of it is over.
    let updates = until_settled(&mut events).await;
    let names: Vec<&str> = updates
        .iter()
        .filter(|update| matches!(update.event, SessionEvent::SelectionChanged))
        .filter_map(|update| update.state.name.as_deref())
        .collect();
    assert_eq!(names, ["first", "second"]);
    let phase_at = |fits: fn(&SessionEvent) -> bool| {
        updates.iter().find(|update| fits(&update.event)).unwrap().state.phase
    };
    assert_eq!(
        phase_at(|event| matches!(event, SessionEvent::Agent(AgentEvent::AgentStart))),
        Phase::Running
    );
    assert_eq!(phase_at(|event| matches!(event, SessionEvent::Settled { .. })), Phase::Idle);
}

#[tokio::test]
async fn a_refusal_names_its_reason() {
    let gate = TestBarrier::new();
    let bench = SessionBench::new([half(&gate)]);
    let mut session = bench.start().await;
    let refusal = async |session: &Session, command| match session.request(command).await {
        Err(SessionError::Refused(refusal)) => refusal,
        other => panic!("{other:?}"),
    };
    assert_eq!(refusal(&session, prompt(" ", WhenBusy::Steer)).await, Refusal::NothingToSend);
    let level = SessionCommand::SetThinking { level: ThinkingLevel::Max, scope: Scope::Session };
    assert!(matches!(
        refusal(&session, level).await,
        Refusal::ThinkingLevel { level: ThinkingLevel::Max, .. }
    ));
    let unsupported =
        SessionCommand::SetModel { reference: "acme/m-2:max".to_owned(), scope: Scope::Session };
    assert!(matches!(refusal(&session, unsupported).await, Refusal::ThinkingLevel { .. }));
    let unknown = SessionCommand::SetModel { reference: "no-such".to_owned(), scope: Scope::Session };
    assert!(matches!(refusal(&session, unknown).await, Refusal::Model(_)));
    let wrong = refusal(&session, change("theme", json!(1))).await;
    assert_eq!(wrong.to_string(), "\"theme\" must be a string");
    session.prompt("go").await;
    gate.reached().await;
    for command in [
        prompt("x", WhenBusy::Refuse),
        SessionCommand::Reload,
        SessionCommand::Compact { focus: None, with_review: false },
    ] {
        assert_eq!(refusal(&session, command).await, Refusal::Working);
    }
    gate.open();
    session.settled().await;
}

// Settings.

#[tokio::test]
async fn a_changed_setting_is_seen_by_all_sessions_and_stored_once() {
    let bench = bench([]);
    let [mut one, two] = bench.start_two().await;
    let mut notices = two.handle.subscribe(Deltas::Unwanted);
    one.request(change("steeringDelivery", json!("turn"))).await.unwrap();
    assert_eq!(one.handle.state().steering_delivery, SteeringDelivery::Turn);
    assert_eq!(one.handle.state().settings.origin("steeringDelivery"), Some(Layer::User));
    let keys = loop {
        if let SessionUpdate { event: SessionEvent::SettingsChanged { keys }, state } =
            notices.recv().await.unwrap()
        {
            assert_eq!(state.steering_delivery, SteeringDelivery::Turn);
            assert_eq!(state.settings.origin("steeringDelivery"), Some(Layer::User));
            break keys;
        }
    };
    assert_eq!(*keys, ["steeringDelivery"]);
    let stored: Value = serde_json::from_str(&fs::read_to_string(bench.settings_file()).unwrap()).unwrap();
    assert_eq!(stored["steeringDelivery"], "turn");
    one.request(reset("steeringDelivery")).await.unwrap();
    assert_eq!(one.handle.state().settings.origin("steeringDelivery"), Some(Layer::BuiltIn));
    assert!(one.waiting().iter().all(|line| !line.starts_with("Error")));
    assert!(!fs::read_to_string(bench.settings_file()).unwrap().contains("steeringDelivery"));
}

#[tokio::test]
async fn a_default_that_is_saved_is_that_of_the_next_session() {
    let bench = bench([]);
    let session = bench.start().await;
    let model = SessionCommand::SetModel { reference: "acme/m-2".to_owned(), scope: Scope::Default };
    session.request(model).await.unwrap();
    assert_eq!(session.handle.state().settings.values.default_model.as_deref(), Some("m-2"));
    let another = bench.start().await;
    assert_eq!(another.handle.state().model.id, "m-2");
}

#[tokio::test]
async fn settings_of_a_project_count_once_it_is_trusted() {
    let bench = bench(["1"]).trust(asking());
    fs::create_dir_all(bench.path("work/.pi")).unwrap();
    let own = json!({"urgentWords": ["halt"], "defaultProjectTrust": "always", "skills": ["more"]});
    fs::write(bench.path("work/.pi/settings.json"), own.to_string()).unwrap();
    bench.skill("work/.pi/more/own", "---\nname: own\ndescription: d\n---\nDo it.\n");
    let mut session = bench.start().await;
    let state = session.handle.state();
    assert_eq!(state.project.trust, Trust::Undecided);
    assert_eq!(state.settings.origin("urgentWords"), Some(Layer::BuiltIn));
    assert!(state.skills.is_empty());
    session.waiting();
    session.request(SessionCommand::DecideTrust { choice: TrustChoice::Session }).await.unwrap();
    let state = session.handle.state();
    assert_eq!(state.settings.origin("urgentWords"), Some(Layer::Project));
    assert_eq!(*state.urgent_words, ["halt"]);
    assert_eq!(state.skills.iter().map(|skill| skill.name.as_str()).collect::<Vec<_>>(), ["own"]);
    let lines = session.waiting();
    let ignored =
        "work/.pi/settings.json:1: \"defaultProjectTrust\" must be in your own settings.json; ignoring it";
    assert!(lines.iter().any(|line| line.ends_with(ignored)), "{lines:?}");
    // Another session of the process, which nobody trusts, does not see them.
    session.request(SessionCommand::DecideTrust { choice: TrustChoice::NotNow }).await.unwrap();
    assert_eq!(session.handle.state().settings.origin("urgentWords"), Some(Layer::BuiltIn));
}

#[tokio::test]
async fn a_setting_that_cannot_be_saved_counts_for_its_session() {
    let bench = bench([]);
    let mut session = bench.start().await;
    fs::write(bench.settings_file(), "{ broken").unwrap();
    session.request(change("hideThinkingBlock", json!(true))).await.unwrap();
    let state = session.handle.state();
    assert!(state.settings.values.hide_thinking);
    assert_eq!(state.settings.origin("hideThinkingBlock"), Some(Layer::Session));
    let lines = session.waiting();
    assert!(lines.iter().any(|line| line.starts_with("Error: the setting was not saved")), "{lines:?}");
    assert_eq!(fs::read_to_string(bench.settings_file()).unwrap(), "{ broken");
    session.request(change("quietStartup", json!(true))).await.unwrap();
    let lines = session.waiting();
    assert!(!lines.iter().any(|line| line.contains("Restart pi")), "{lines:?}");
    fs::write(bench.settings_file(), "{}").unwrap();
    session.request(change("quietStartup", json!(false))).await.unwrap();
    let lines = session.waiting();
    assert!(lines.iter().any(|line| line.contains("Restart pi")), "{lines:?}");
}

#[tokio::test]
async fn a_reload_reads_settings_skills_and_trust_again() {
    let bench = bench(["1"]).trust(asking());
    let mut session = bench.start().await;
    session.waiting();
    bench.skill("agent/skills/new", "---\nname: new\ndescription: d\n---\nDo it.\n");
    fs::create_dir_all(bench.path("work/.pi")).unwrap();
    fs::write(bench.path("work/.pi/settings.json"), "{}").unwrap();
    fs::write(bench.settings_file(), r#"{"followUpMode": "all", "shellPath": "zsh", "theme": 1}"#).unwrap();
    session.request(SessionCommand::Reload).await.unwrap();
    let state = session.handle.state();
    assert_eq!(state.skills.iter().map(|skill| skill.name.as_str()).collect::<Vec<_>>(), ["new"]);
    assert_eq!(state.settings.value("followUpMode"), Some(json!("all")));
    assert_eq!(state.questions.len(), 1, "there is something to trust now");
    let lines = session.waiting();
    assert!(lines.iter().any(|line| line.contains("\"theme\" must be a string")), "{lines:?}");
    assert!(
        lines.contains(&"Info: Restart pi to apply the changed settings: shellPath.".to_owned()),
        "{lines:?}"
    );
}

// The rules of a conversation.

#[tokio::test]
async fn prompts_from_the_start_wait_until_trust_is_decided() {
    let bench = bench(["1", "2"]).trust(asking());
    bench.skill("work/.pi/skills/own", "---\nname: own\ndescription: d\n---\nDo it.\n");
    let mut session = bench.start().await;
    session.request(begin(&["/skill:own", "then this"])).await.unwrap();
    assert_eq!(session.handle.state().phase, Phase::Idle);
    assert_eq!(bench.provider.requests().len(), 0, "nobody has decided");
    session.request(SessionCommand::DecideTrust { choice: TrustChoice::Session }).await.unwrap();
    session.settled().await;
    let requests = bench.provider.requests();
    assert!(sent(&requests[0])[0].contains("Do it."), "the skill is there");
    assert_eq!(sent(&requests[1]).last().unwrap(), "user then this");
}

#[tokio::test]
async fn prompts_from_the_start_are_sent_at_once_where_nothing_is_to_be_decided() {
    let bench = bench(["1"]).trust(asking());
    let mut session = bench.start().await;
    session.request(begin(&["go"])).await.unwrap();
    session.settled().await;
    assert_eq!(sent(&bench.provider.requests()[0]), ["user go"]);
}

#[tokio::test]
async fn a_prompt_from_the_start_that_is_refused_goes_back_to_the_user() {
    let bench = bench(["1"]);
    let mut session = bench.start().await;
    session.waiting();
    session.request(begin(&["/skill:none", "go"])).await.unwrap();
    let lines = session.settled().await;
    assert!(lines[0].starts_with("returned /skill:none: there is no skill \"none\""), "{lines:?}");
    assert_eq!(sent(&bench.provider.requests()[0]), ["user go"]);
}

#[tokio::test]
async fn a_failed_run_gives_the_queue_back() {
    let gate = TestBarrier::new();
    let bench = SessionBench::new([FakeAnswer::failed("401 no such key").gate(&gate)]);
    let mut session = bench.start().await;
    session.prompt("go").await;
    gate.reached().await;
    session.say("and then", WhenBusy::FollowUp).await;
    gate.open();
    let lines = session.settled().await;
    assert_eq!(lines[lines.len() - 2..], ["returned and then", "settled"]);
    assert!(session.handle.state().queue.is_empty());
}

#[tokio::test]
async fn an_interrupt_gives_the_queue_back_and_ends_the_run() {
    let gate = TestBarrier::new();
    let bench = SessionBench::new([half(&gate), FakeAnswer::of_text("never")]);
    let mut session = bench.start().await;
    session.prompt("go").await;
    gate.reached().await;
    session.say("and then", WhenBusy::FollowUp).await;
    session.waiting();
    session.handle.send(SessionCommand::Interrupt);
    // As one who types while it ends.
    session.handle.send(prompt("late", WhenBusy::FollowUp));
    let lines = session.settled().await;
    let returned: Vec<&String> = lines.iter().filter(|line| line.starts_with("returned")).collect();
    assert_eq!(returned, ["returned and then", "returned late"]);
    assert_eq!(lines.last().unwrap(), "settled aborted");
    assert_eq!(bench.provider.n_left(), 1);
}

#[tokio::test]
async fn a_command_of_the_user_is_part_of_the_snapshot_while_it_runs() {
    let bench = bench([]);
    let mut session = bench.start().await;
    let run = |command: &str| SessionCommand::RunBash {
        command: command.to_owned(),
        exclude_from_context: true,
        others: OtherCommands::Refuse,
    };
    assert!(matches!(session.request(run("sleep 1000")).await, Ok(Reply::BashStarted(_))));
    let state = session.handle.state();
    let command = state.user_command.as_ref().unwrap();
    assert!(state.is_busy() && command.exclude_from_context && command.command == "sleep 1000");
    let refused = session.request(run("true")).await;
    assert_eq!(refused, Err(SessionError::Refused(Refusal::CommandRunning)));
    session.request(SessionCommand::Interrupt).await.unwrap();
    session.until(|event| matches!(event, SessionEvent::BashEnded { .. })).await;
    assert!(!session.handle.state().is_busy());
}
