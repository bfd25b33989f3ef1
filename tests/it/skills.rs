//! Skills and the trust they need: prompts, messages with inserted skills, stored
//! decisions, the screen.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::fs;
use std::path::Path;

use pi::agent::ToolOutput;
use pi::ai::{FakeAnswer, Message, TestBarrier, system_state};
use pi::config::{Trust, TrustDefault, TrustPolicy};
use pi::session::{IfBusy, Reply, SessionCommand, SkillBlock, TakenQueue, TrustChoice, WhenBusy};
use ratatui::layout::Size;
use serde_json::{Value, json};

use crate::support::agent_bench::TestTool;
use crate::support::chat;
use crate::support::program::{pi, run};
use crate::support::pty::{Pty, TestHome};
use crate::support::session_bench::{Session, SessionBench, sent};
use crate::support::sse_server::{Reply as Answer, SseServer};

const GREET: &str = "---\nname: greet\ndescription: Says hello\n---\n\nSay hello, kindly.\n";

fn named(name: &str) -> String {
    format!("---\nname: {name}\ndescription: Does {name}\n---\nDo it.\n")
}

fn reader() -> TestTool {
    TestTool::new("read", |_, _| async { Ok(ToolOutput::text("read")) })
}

fn bench<const N: usize>(answers: [&str; N]) -> SessionBench {
    SessionBench::new(answers.map(FakeAnswer::of_text)).tools([reader()])
}

/// What the last request says of skills; empty if nothing.
fn listed(bench: &SessionBench) -> String {
    let requests = bench.provider.requests();
    let said = system_state(&requests.last().unwrap().messages);
    said.sections.iter().find(|(name, _)| name == "skills").map(|(_, text)| text.clone()).unwrap_or_default()
}

fn decide(choice: TrustChoice) -> SessionCommand {
    SessionCommand::DecideTrust { choice }
}

fn asking() -> TrustPolicy {
    TrustPolicy { flag: None, default: TrustDefault::Ask, can_ask: true }
}

fn names(session: &Session) -> Vec<String> {
    session.handle.state().skills.iter().map(|skill| skill.name.clone()).collect()
}

// The prompt.

#[tokio::test]
async fn the_model_is_told_of_skills_it_can_read() {
    let mut bench = bench(["1", "2", "3"]);
    let path = bench.skill("agent/skills/greet", GREET);
    bench.skill("agent/skills/a-b", "---\ndescription: Fish & <chips>\n---\n");
    bench.skill("agent/skills/hidden", "---\ndescription: d\ndisable-model-invocation: true\n---\nBoo.\n");
    let mut session = bench.start().await;
    session.ask("hi").await;
    let text = listed(&bench).replace(bench.folder.path().to_str().unwrap(), "");
    insta::assert_snapshot!(text, @r"
    <skills>
    Skills are instructions for particular kinds of work.
    When a task fits the description of one, load the file at its location with the read tool before you begin.
    Relative paths in such a file start from the folder the file is in.

    <available_skills>
      <skill>
        <name>a-b</name>
        <description>Fish &amp; &lt;chips&gt;</description>
        <location>/agent/skills/a-b/SKILL.md</location>
      </skill>
      <skill>
        <name>greet</name>
        <description>Says hello</description>
        <location>/agent/skills/greet/SKILL.md</location>
      </skill>
    </available_skills>
    </skills>
    ");
    assert!(listed(&bench).contains(path.to_str().unwrap()));
    // Not listed, and yet a command.
    session.ask("/skill:hidden").await;
    assert!(sent(bench.provider.requests().last().unwrap()).last().unwrap().contains("\n\nBoo.\n"));
    session.shut_down().await;

    bench = bench.tools([TestTool::say()]);
    let mut session = bench.start().await;
    session.ask("hi").await;
    assert_eq!(listed(&bench), "", "nothing to read them with");
}

#[tokio::test]
async fn a_resumed_session_is_told_only_what_changed_of_skills() {
    let bench = bench(["1", "2", "3", "4"]);
    bench.skill("agent/skills/greet", GREET);
    let mut session = bench.start().await;
    session.ask("one").await;
    let path = session.path();
    session.shut_down().await;
    let last_system = || {
        let messages = bench.provider.requests().last().unwrap().messages.clone();
        let Message::System(system) = &*messages[messages.len() - 2] else { return None };
        assert!(system.tools_added.is_empty() && system.tools_removed.is_empty());
        system.sections.clone().map(Value::Object)
    };

    let mut session = bench.resume(&path).await;
    session.ask("nothing changed").await;
    assert_eq!(last_system(), None);
    session.shut_down().await;

    bench.skill("agent/skills/more", &named("more"));
    let mut session = bench.resume(&path).await;
    session.ask("one more").await;
    let said = last_system().unwrap();
    assert_eq!(said.as_object().unwrap().keys().collect::<Vec<_>>(), ["skills"]);
    assert!(said["skills"].as_str().unwrap().contains("<name>more</name>"));
    session.shut_down().await;

    fs::remove_dir_all(bench.path("agent/skills")).unwrap();
    let mut session = bench.resume(&path).await;
    session.ask("none").await;
    assert_eq!(last_system(), Some(json!({ "skills": null })));
}

// The command.

#[tokio::test]
async fn a_command_puts_the_skill_before_what_is_said() {
    let bench = bench(["hello"]);
    let path = bench.skill("agent/skills/greet", GREET);
    let mut session = bench.start().await;
    session.ask("/skill:greet  Ada\nand Bob ").await;
    let requests = bench.provider.requests();
    let said = sent(&requests[0]).pop().unwrap();
    let folder = path.parent().unwrap().display();
    let path = path.display();
    let expected = format!(
        "user <skill name=\"greet\" location=\"{path}\">\nReferences are relative to {folder}.\n\n\
         Say hello, kindly.\n</skill>\n\nAda\nand Bob"
    );
    assert_eq!(said, expected);
    let block = SkillBlock::parse(said.strip_prefix("user ").unwrap()).unwrap();
    assert_eq!(block.command(), "/skill:greet Ada\nand Bob");
}

#[tokio::test]
async fn a_queued_command_is_what_the_skill_said_then_and_comes_back_as_typed() {
    let gate = TestBarrier::new();
    let bench = SessionBench::new([
        FakeAnswer::new().text_pieces(&["half", " whole"], Some(&gate)),
        FakeAnswer::of_text("hello"),
    ])
    .tools([reader()]);
    let path = bench.skill("agent/skills/greet", GREET);
    let mut session = bench.start().await;
    session.prompt("go").await;
    gate.reached().await;
    assert_eq!(session.say("/skill:greet Bob", WhenBusy::FollowUp).await, Reply::Queued);
    let follow_up = vec!["/skill:greet Bob".to_owned()];
    assert_eq!(session.handle.state().queue.follow_up, follow_up);
    let taken = session.request(SessionCommand::TakeQueue).await.unwrap();
    let follow_up = vec!["/skill:greet Bob".into()];
    assert_eq!(taken, Reply::Queue(TakenQueue { follow_up, ticket: 1, ..TakenQueue::default() }));
    assert_eq!(session.say("/skill:greet Ada", WhenBusy::FollowUp).await, Reply::Queued);
    fs::remove_file(path).unwrap();
    gate.open();
    session.settled().await;
    let said = sent(bench.provider.requests().last().unwrap()).pop().unwrap();
    assert!(said.contains("Say hello, kindly.") && said.ends_with("</skill>\n\nAda"), "{said}");
}

#[tokio::test]
async fn a_skill_that_does_not_exist_is_refused_with_the_nearest() {
    let bench = bench([]);
    bench.skill("agent/skills/greet", GREET);
    bench.skill("work/.pi/skills/own", &named("own"));
    let session = bench.start().await;
    let refused =
        session.request(crate::support::session_bench::prompt("/skill:gret x", WhenBusy::Steer)).await;
    let text = "there is no skill \"gret\"; nearest: greet; this folder's skills are not loaded because \
                it isn't trusted (use /trust or --approve)";
    assert_eq!(refused.unwrap_err().to_string(), text);
    assert_eq!(bench.provider.requests().len(), 0);
    assert!(!session.path().exists(), "nothing was said");
}

#[tokio::test]
async fn what_is_wrong_with_skills_is_told_once() {
    let bench = bench([]);
    bench.skill("agent/skills/a", &named("same"));
    bench.skill("agent/skills/b", &named("same"));
    for n in 0..6 {
        bench.skill(&format!("agent/skills/x{n}"), "---\n[\n---\n");
    }
    let mut session = bench.start().await;
    let lines = session.waiting();
    let told: Vec<&String> = lines.iter().filter(|line| line.starts_with("Warning")).collect();
    assert_eq!(told.len(), 6, "{told:?}");
    let (a, b) = (bench.path("agent/skills/a/SKILL.md"), bench.path("agent/skills/b/SKILL.md"));
    let (a, b) = (a.display(), b.display());
    assert_eq!(*told[0], format!("Warning: two skills are named \"same\"; using {a}, ignoring {b}"));
    assert_eq!(
        told[5],
        "Warning: 2 more problems with settings, skills or prompt templates; pi doctor lists all"
    );
    session.request(SessionCommand::New { if_busy: IfBusy::Cancel }).await.unwrap();
    assert_eq!(session.waiting().iter().filter(|line| line.starts_with("Warning")).count(), 0);
}

// Trust.

#[tokio::test]
async fn trust_names_every_kind_of_file_that_it_loads() {
    let bench = bench([]).trust(asking());
    bench.skill("work/.pi/skills/own", &named("own"));
    let folder = bench.path("work/.pi");
    for (file, text) in [
        ("prompts/one.md", "Do it"),
        ("prompts/two.md", "Do that"),
        ("settings.json", r#"{"reducedMotion": true}"#),
        ("SYSTEM.md", "You help."),
        ("themes/sea.json", "{}"),
    ] {
        let path = folder.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let mut session = bench.start().await;
    session.request(decide(TrustChoice::Folder)).await.unwrap();
    let loaded = "Info: This folder is trusted. Loaded 1 skill, 2 prompt templates, themes, settings and the \
                  system prompt.";
    assert!(session.waiting().contains(&loaded.to_owned()));
    // They are there already.
    session.request(decide(TrustChoice::Folder)).await.unwrap();
    assert_eq!(session.waiting(), ["Info: This folder is trusted."]);
}

#[tokio::test]
async fn skills_of_a_project_wait_for_a_decision_which_is_kept() {
    let mut bench = bench(["1", "2"]).trust(asking());
    bench.skill("work/.pi/skills/own", &named("own"));
    let mut session = bench.start().await;
    let state = session.handle.state();
    assert_eq!(state.project.trust, Trust::Undecided);
    assert_eq!(*state.project.protected, [bench.path("work/.pi/skills")]);
    assert_eq!(names(&session), [""; 0]);
    session.ask("before").await;
    assert_eq!(listed(&bench), "");
    session.request(decide(TrustChoice::Folder)).await.unwrap();
    assert_eq!(session.waiting(), ["Info: This folder is trusted. Loaded 1 skill."]);
    assert_eq!(
        (session.handle.state().project.trust, names(&session)),
        (Trust::Trusted, vec!["own".to_owned()])
    );
    session.ask("after").await;
    assert!(listed(&bench).contains("<name>own</name>"));
    let work = fs::canonicalize(bench.path("work")).unwrap();
    let kept = fs::read_to_string(bench.path("agent/trust.json")).unwrap();
    assert_eq!(kept, format!("{{\n  \"{}\": true\n}}\n", work.display()));
    session.shut_down().await;

    // The next program need not ask, and one that cannot ask neither.
    bench = bench.trust(TrustPolicy::default());
    let session = bench.start().await;
    assert_eq!(names(&session), ["own"]);
}

/// What a decision leads to: in this session, in a new one of the same process,
/// and in the next process.
async fn check_choice(choice: TrustChoice, now: Trust, next_process: Trust) {
    let bench = bench([]).trust(asking());
    bench.skill("work/.pi/skills/own", &named("own"));
    let session = bench.start().await;
    session.request(decide(choice)).await.unwrap();
    assert_eq!(session.handle.state().project.trust, now, "{choice:?}");
    session.request(SessionCommand::New { if_busy: IfBusy::Cancel }).await.unwrap();
    assert_eq!(session.handle.state().project.trust, now, "{choice:?} in a new session");
    assert_eq!(names(&session).is_empty(), !now.is_trusted());
    session.shut_down().await;
    let session = bench.start().await;
    assert_eq!(session.handle.state().project.trust, next_process, "{choice:?} in a new process");
}

#[tokio::test]
async fn decisions_last_as_long_as_they_say() {
    check_choice(TrustChoice::Folder, Trust::Trusted, Trust::Trusted).await;
    check_choice(TrustChoice::Parent, Trust::Trusted, Trust::Trusted).await;
    check_choice(TrustChoice::Session, Trust::Trusted, Trust::Undecided).await;
    check_choice(TrustChoice::No, Trust::Refused, Trust::Refused).await;
    check_choice(TrustChoice::NotNow, Trust::Refused, Trust::Undecided).await;
}

#[tokio::test]
async fn trusting_the_parent_keeps_the_parent() {
    let bench = bench([]).trust(asking());
    bench.skill("work/.agents/skills/own", &named("own"));
    let session = bench.start().await;
    session.request(decide(TrustChoice::Parent)).await.unwrap();
    let kept: Value =
        serde_json::from_str(&fs::read_to_string(bench.path("agent/trust.json")).unwrap()).unwrap();
    let parent = fs::canonicalize(bench.folder.path()).unwrap();
    assert_eq!(kept, json!({ parent.to_str().unwrap(): true }));
}

#[tokio::test]
async fn what_is_left_out_is_said_once() {
    let bench = bench([]);
    bench.skill("work/.pi/skills/own", &named("own"));
    let mut session = bench.start().await;
    let said = "Warning: skills in .pi/skills are not loaded because this folder isn't trusted; \
                --approve loads them";
    assert_eq!(session.waiting()[1..], [said]);
    session.request(SessionCommand::New { if_busy: IfBusy::Cancel }).await.unwrap();
    assert_eq!(session.waiting().len(), 1, "the new session alone");
    // Without anything to trust there is no notice and no question.
    fs::remove_dir_all(bench.path("work/.pi")).unwrap();
    session.shut_down().await;
    let bench = bench.trust(asking());
    let mut session = bench.start().await;
    assert_eq!((session.waiting().len(), session.handle.state().project.trust), (1, Trust::Unasked));
}

#[tokio::test]
async fn a_decision_that_cannot_be_kept_counts_for_now() {
    let bench = bench([]).trust(asking());
    bench.skill("work/.pi/skills/own", &named("own"));
    fs::write(bench.path("agent/trust.json"), "{ broken").unwrap();
    let mut session = bench.start().await;
    assert!(session.waiting()[1].contains("trust.json"));
    session.request(decide(TrustChoice::Folder)).await.unwrap();
    let lines = session.waiting();
    assert!(lines[0].starts_with("Error: the decision was not saved"), "{lines:?}");
    assert_eq!(names(&session), ["own"]);
    assert_eq!(fs::read_to_string(bench.path("agent/trust.json")).unwrap(), "{ broken");
}

// The program.

fn put_skill(folder: &Path, text: &str) {
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join("SKILL.md"), text).unwrap();
}

/// System prompt and last message of the last request.
fn last_request(server: &SseServer) -> (String, String) {
    let body = server.requests().last().unwrap().body.clone();
    let messages = body["messages"].as_array().unwrap();
    let text = |message: &Value| match &message["content"] {
        Value::String(text) => text.clone(),
        blocks => blocks[0]["text"].as_str().unwrap().to_owned(),
    };
    (text(&messages[0]), text(messages.last().unwrap()))
}

#[tokio::test(flavor = "multi_thread")]
async fn print_mode_lists_and_calls_skills() {
    let server = SseServer::start((0..3).map(|_| Answer::sse(chat::text("ok")))).await;
    let home = TestHome::with_server(server.url());
    put_skill(&home.agent().join("skills/greet"), GREET);
    let folder = home.agent().join("skills/greet");
    let folder = folder.display();
    let block = format!(
        "<skill name=\"greet\" location=\"{folder}/SKILL.md\">\nReferences are relative to {folder}.\n\n\
         Say hello, kindly.\n</skill>"
    );
    for (args, piped, said) in [
        (&["-p", "/skill:greet Ada"][..], None, "Ada"),
        (&["-p"], Some("/skill:greet Ada\n"), "Ada"),
        (&["-p", "/skill:greet these"], Some("Ada, Bob\n"), "these\n\nAda, Bob"),
    ] {
        let (output, told) = run(pi(&home, args), piped).await;
        assert!(output.status.success() && told.is_empty(), "{args:?}: {told}");
        let (system, last) = last_request(&server);
        assert!(system.contains("<name>greet</name>"), "{system}");
        assert_eq!(last.trim_end(), format!("{block}\n\n{said}"), "{args:?}");
    }
    let (output, told) = run(pi(&home, &["-p", "/skill:greeet Ada"]), None).await;
    assert_eq!(output.status.code(), Some(4));
    assert_eq!(told, "pi: there is no skill \"greeet\"; nearest: greet\n");
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn print_mode_says_how_to_load_skills_of_a_project() {
    let server = SseServer::start((0..7).map(|_| Answer::sse(chat::text("ok")))).await;
    let home = TestHome::with_server(server.url());
    put_skill(&home.project().join(".pi/skills/own"), &named("own"));
    put_skill(&home.agent().join("skills/greet"), GREET);
    let more = home.home().join("more");
    put_skill(&more, &named("more"));
    let untrusted = "pi: skills in .pi/skills are not loaded because this folder isn't trusted; \
                     --approve loads them\n";
    let more = more.to_str().unwrap();
    for (args, expected, said) in [
        (&[][..], &["greet"][..], untrusted),
        (&["--approve"], &["greet", "own"], ""),
        (&["-a"], &["greet", "own"], ""),
        (&["-na"], &["greet"], ""),
        (&["-ns"], &[], ""),
        (&["-ns", "--skill", more, "--skill", ".pi/skills/own"], &["more", "own"], ""),
    ] {
        let mut command = pi(&home, args);
        command.args(["-p", "hi"]);
        let (output, told) = run(command, None).await;
        assert!(output.status.success(), "{args:?}: {told}");
        assert_eq!(told, said, "{args:?}");
        let system = last_request(&server).0;
        let listed = system.split("<name>").skip(1).map(|rest| rest.split('<').next().unwrap());
        assert_eq!(listed.collect::<Vec<_>>(), expected, "{args:?}");
    }
    assert!(!home.agent().join("trust.json").exists(), "flags are for one run");
    fs::write(home.agent().join("settings.json"), r#"{"defaultProjectTrust": "always"}"#).unwrap();
    run(pi(&home, &["-p", "hi"]), None).await;
    assert!(last_request(&server).0.contains("<name>own</name>"));
}

#[tokio::test(flavor = "multi_thread")]
async fn print_mode_uses_the_settings_of_a_trusted_project() {
    let server = SseServer::start((0..3).map(|_| Answer::sse(chat::text("ok")))).await;
    let home = TestHome::with_server(server.url());
    let file = home.project().join(".pi/settings.json");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, r#"{"defaultTools": ["read"], "generation": {"maxTokens": 77}}"#).unwrap();
    let untrusted = "pi: settings in .pi/settings.json are not loaded because this folder isn't trusted; \
                     --approve loads them\n";
    for (args, n_tools, limited, said) in [
        (&["-p", "hi"][..], 4, false, untrusted),
        (&["-a", "-p", "hi"], 1, true, ""),
        // The command line is stronger.
        (&["-a", "--tools", "read,bash", "-p", "hi"], 2, true, ""),
    ] {
        let (output, told) = run(pi(&home, args), None).await;
        assert!(output.status.success(), "{args:?}: {told}");
        assert_eq!(told, said, "{args:?}");
        let body = server.requests().last().unwrap().body.clone();
        assert_eq!(body["tools"].as_array().unwrap().len(), n_tools, "{args:?}");
        assert_eq!(body["max_tokens"] == 77, limited, "{args:?}: {}", body["max_tokens"]);
    }
}

const SIZE: Size = Size { width: 80, height: 24 };

#[tokio::test(flavor = "multi_thread")]
async fn the_first_frame_asks_whether_the_project_is_trusted() {
    let server = SseServer::start([Answer::sse(chat::text("Hello to you."))]).await;
    let home = TestHome::with_server(server.url());
    put_skill(&home.project().join(".pi/skills/own"), &named("own"));
    // What the command line says waits for the answer.
    let pty = Pty::start(&home, SIZE, &["say hello"]);
    let rows = pty.wait_text("escape: not now");
    let shown = |text: &str| rows.iter().any(|row| row.contains(text));
    for text in [
        "Do you trust ",
        "It contains .pi/skills.",
        "→ Not now",
        "  Trust this folder",
        "  Trust parent folder (",
        "  Trust it until pi exits",
        "  Don't trust",
    ] {
        assert!(shown(text), "{text} is not in\n{}", rows.join("\n"));
    }
    assert_eq!(server.requests().len(), 0);
    pty.keys("\x1b[B\r");
    pty.wait_text("Hello to you.");
    pty.wait_text("This folder is trusted. Loaded 1 skill.");
    let (system, last) = last_request(&server);
    assert!(system.contains("<name>own</name>"), "{system}");
    assert_eq!(last, "say hello");
    pty.wait_idle();
    pty.keys("\x04");
    assert!(pty.end().0.success());
    let kept = fs::read_to_string(home.agent().join("trust.json")).unwrap();
    let kept: Value = serde_json::from_str(&kept).unwrap();
    assert_eq!(kept, json!({ home.project().to_str().unwrap(): true }));

    // It is asked once; /trust asks again.
    let pty = Pty::start(&home, SIZE, &[]);
    pty.wait_idle();
    pty.keys("/trust\r");
    pty.wait_text("→ Trust this folder");
    pty.keys("\x1b[A\r");
    pty.wait_text("Skills in .pi/skills are not loaded because this folder");
    let kept = fs::read_to_string(home.agent().join("trust.json")).unwrap();
    assert!(kept.contains("false"), "{kept}");
}

#[tokio::test(flavor = "multi_thread")]
async fn skills_are_offered_called_and_shown_as_a_row() {
    let server = SseServer::start([Answer::sse(chat::text("Hello, Ada."))]).await;
    let home = TestHome::with_server(server.url());
    put_skill(&home.agent().join("skills/greet"), GREET);
    let pty = Pty::start(&home, SIZE, &[]);
    pty.wait_idle();
    // By its own name, without the prefix.
    pty.keys("/gre");
    pty.wait_text("→ /skill:greet [TEXT]  [u] Says hello");
    pty.keys("\t");
    pty.wait("the command", |rows| rows.iter().any(|row| row.trim() == "/skill:greet"));
    pty.keys("Ada\r");
    pty.wait_text("Hello, Ada.");
    let rows = pty.wait_idle();
    let shown = |text: &str| rows.iter().any(|row| row.contains(text));
    assert!(shown("[skill] greet (ctrl+o to expand)") && shown(" Ada"), "{}", rows.join("\n"));
    assert!(!shown("kindly") && !shown("<skill"), "{}", rows.join("\n"));
    assert!(last_request(&server).1.contains("Say hello, kindly."));
    pty.keys("\x0f");
    pty.wait_text("Say hello, kindly.");

    // One that does not exist stays in the editor.
    pty.keys("/skill:zzzz now\r");
    pty.wait_text("there is no skill \"zzzz\"; available: greet");
    pty.wait("the text in the editor", |rows| rows.iter().any(|row| row.trim() == "/skill:zzzz now"));
    pty.keys("\x03");
    pty.keys("\x04");
    assert!(pty.end().0.success());

    // Later, too; and what comes back from history is what was typed.
    let pty = Pty::start(&home, SIZE, &["--continue"]);
    pty.wait_text("[skill] greet (ctrl+o to expand)");
    pty.wait_idle();
    pty.keys("\x1b[A");
    pty.wait("what was typed", |rows| rows.iter().any(|row| row.trim() == "/skill:greet Ada"));
    pty.keys("\x03/resume\r");
    pty.wait_text("This directory has no other sessions");
}

#[tokio::test(flavor = "multi_thread")]
async fn skills_are_not_offered_where_that_is_switched_off() {
    let home = TestHome::new().settings(&json!({ "enableSkillCommands": false }));
    put_skill(&home.agent().join("skills/quit"), &named("quit"));
    let pty = Pty::start(&home, SIZE, &[]);
    pty.wait_idle();
    pty.keys("/qui");
    let rows = pty.wait_text("→ /quit");
    assert!(!rows.iter().any(|row| row.contains("skill:quit")), "{}", rows.join("\n"));
    pty.keys("\r");
    assert!(pty.end().0.success());
}
