//! What pi knows about itself: `pi docs`, the model's way to it, and the demo model's answers.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::fs;

use pi::cli::CHAPTERS;
use serde_json::Value;

use crate::docs::root;
use crate::support::chat;
use crate::support::program::{pi, run};
use crate::support::pty::TestHome;
use crate::support::sse_server::{Reply, SseServer};

#[track_caller]
fn printed(args: &[&str]) -> String {
    let output = pi(&TestHome::new(), args).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn pages_are_listed_printed_and_searched() {
    let list = printed(&["docs"]);
    assert!(CHAPTERS.iter().all(|page| list.contains(page.about.split('`').next().unwrap())), "{list}");
    let page = printed(&["docs", "settings"]);
    assert!(page.starts_with("# Settings\n") && page.contains("| `theme` |"), "{page}");
    assert!(!page.contains("<!--"), "marks of generated parts are for tests");
    let found = printed(&["docs", "--search", "change", "the", "theme"]);
    assert!(found.contains("(pi docs themes)"), "{found}");
    let wrong = pi(&TestHome::new(), &["docs", "setings"]).output().unwrap();
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8(wrong.stderr).unwrap().contains("did you mean settings?"));
}

#[test]
fn every_page_for_users_is_in_the_program() {
    for page in CHAPTERS {
        let path = root().join(format!("docs/{}.md", page.name));
        assert_eq!(fs::read_to_string(path).unwrap(), page.text, "{}", page.name);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_can_run_commands_reads_the_pages() {
    let server = SseServer::start([Reply::sse(chat::text("Hello."))]).await;
    let home = TestHome::with_server(server.url());
    let (output, told) = run(pi(&home, &["-p", "hello"]), None).await;
    assert!(output.status.success(), "{told}");
    let prompt = system_prompt(&server.requests()[0].body);
    let (_, docs) = prompt.split_once("<docs>\n`").expect("the prompt names the command");
    let command = docs.split('`').next().unwrap();
    assert!(command.ends_with(" docs"));
    // The command of the prompt works as it stands there, in the environment of tools.
    let mut shell = std::process::Command::new("sh");
    let listed = shell.args(["-c", &format!("{command} --search rebind keys")]).output().unwrap();
    assert!(String::from_utf8(listed.stdout).unwrap().contains("(pi docs keybindings)"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_without_commands_and_one_with_a_prompt_of_the_user_hear_nothing_of_them() {
    let server = SseServer::start([Reply::sse(chat::text("1")), Reply::sse(chat::text("2"))]).await;
    let home = TestHome::with_server(server.url());
    for args in [&["-p", "--tools", "read", "hello"][..], &["-p", "--system-prompt", "Be brief.", "hello"]] {
        let (output, told) = run(pi(&home, args), None).await;
        assert!(output.status.success(), "{told}");
    }
    for request in server.requests() {
        assert!(!system_prompt(&request.body).contains("<docs>"));
    }
}

fn system_prompt(body: &Value) -> String {
    let messages = body["messages"].as_array().unwrap().iter();
    let system = messages.filter(|message| matches!(message["role"].as_str(), Some("system" | "developer")));
    system.filter_map(|message| message["content"].as_str()).collect()
}

#[test]
fn the_demo_model_answers_questions_about_pi_from_the_pages() {
    let check = |question: &str, page: &str, expected: &str| {
        let answer = printed(&["-p", "--model", "demo/pi", question]);
        assert!(
            answer.contains(&format!("pi docs {page}`")) && answer.contains(expected),
            "{question}:\n{answer}"
        );
    };
    check("how do I change the theme?", "questions", "/theme");
    check("what is steering?", "usage", "Enter");
    check("how can I rebind keys", "questions", "keybindings.json");
    check("how are sessions saved?", "questions", "~/.pi/agent/sessions");
    check("what are prompt templates?", "templates", "`~/.pi/agent/prompts/review.md`");
    check("how do I use pi in Zed?", "acp", "agent_servers");
    // Questions that look like a search, or name a file, and halves of questions.
    check("where are session files?", "questions", "~/.pi/agent/sessions");
    check("what is AGENTS.md for", "questions", "describes your project");
    check("pin a message", "questions", "/pin");
    check("use a proxy", "questions", "HTTPS_PROXY");
    check("telemetry", "questions", "no telemetry");
    check("what does exit code 3 mean", "questions", "a limit that ended the run");
    // Requests stay requests, and nothing is made up.
    let read = printed(&["-p", "--model", "demo/pi", "what is in AGENTS.md?"]);
    assert!(!read.contains("From pi's own pages"), "{read}");
    let answer = printed(&["-p", "--model", "demo/pi", "how much does a llama weigh?"]);
    assert!(answer.contains("I am the offline **demo model**"), "{answer}");
}
