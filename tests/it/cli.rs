//! The command line for scripts: limits, exit codes, completions, the manual page.

use std::fs;
use std::process::Stdio;

use serde_json::json;

use crate::support::chat;
use crate::support::program::{pi, run};
use crate::support::pty::TestHome;
use crate::support::sse_server::{Reply, SseServer};

/// A server whose first answers call a tool.
async fn calling(n_calls: usize) -> (SseServer, TestHome) {
    let call = || Reply::sse(chat::calls(&[("bash", json!({"command": "true"}))]));
    let mut replies: Vec<Reply> = (0..n_calls).map(|_| call()).collect();
    replies.push(Reply::sse(chat::text("Done.")));
    let server = SseServer::start(replies).await;
    let home = TestHome::with_server(server.url());
    (server, home)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_ends_at_the_limit_of_answers_with_a_code_of_its_own() {
    for mode in [&["-p"][..], &["--mode", "json"]] {
        let (server, home) = calling(5).await;
        let (output, told) = run(pi(&home, &[mode, &["--max-turns", "2", "work"]].concat()), None).await;
        assert_eq!(output.status.code(), Some(3), "{mode:?}: {told}");
        assert_eq!(server.requests().len(), 2, "{mode:?}");
        assert!(
            told.contains("This prompt has taken 2 answers, which is the limit (budget.turns)."),
            "{told}"
        );
    }
    // A prompt that needs no more is no failure.
    let (_server, home) = calling(1).await;
    let (output, told) = run(pi(&home, &["-p", "--max-turns", "2", "work"]), None).await;
    assert_eq!((output.status.code(), told.as_str()), (Some(0), ""));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_answer_is_also_written_to_a_file() {
    for mode in [&["-p"][..], &["--mode", "json"]] {
        let (_server, home) = calling(1).await;
        let args = [mode, &["--output-last-message", "last.txt", "work"]].concat();
        let (output, told) = run(pi(&home, &args), None).await;
        assert!(output.status.success() && told.is_empty(), "{mode:?}: {told}");
        assert_eq!(fs::read_to_string(home.project().join("last.txt")).unwrap(), "Done.");
    }
    let (_server, home) = calling(0).await;
    let (output, told) =
        run(pi(&home, &["-p", "--output-last-message", "missing/last.txt", "work"]), None).await;
    assert_eq!(output.status.code(), Some(1));
    assert!(told.contains("cannot write the last answer to missing/last.txt"), "{told}");
    let (output, told) = run(pi(&home, &["--mode", "rpc", "--output-last-message", "x"]), None).await;
    assert_eq!(output.status.code(), Some(1));
    assert!(told.contains("--output-last-message needs --print or --mode json"), "{told}");
}

#[test]
fn completions_and_the_manual_page_name_the_arguments() {
    let home = TestHome::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let output = pi(&home, &["completions", shell]).output().unwrap();
        let script = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{shell}");
        for part in ["max-turns", "sessions"] {
            assert!(script.contains(part), "{shell}: {part}");
        }
        // The others complete no values of arguments.
        assert_eq!(script.contains("retry.maxRetries"), ["bash", "zsh"].contains(&shell), "{shell}");
    }
    let output = pi(&home, &["man"]).output().unwrap();
    let page = String::from_utf8(output.stdout).unwrap();
    assert!(page.starts_with(".ie") && page.contains(".TH pi 1") && page.contains("max"), "{page}");
    let output = pi(&home, &["completions", "tcsh"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn models_are_listed_by_a_command_too() {
    let home = TestHome::new();
    let list = |args: &[&str]| {
        let output = pi(&home, args).env("ANTHROPIC_API_KEY", "k").output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (code, text) = list(&["models", "opus"]);
    assert!(code == Some(0) && text.contains("opus"), "{text}");
    assert_eq!(list(&["--list-models", "opus"]).1, text);
}

#[test]
fn a_reader_that_closes_early_is_no_failure() {
    let home = TestHome::new();
    let mut command = pi(&home, &["config", "list"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8(output.stderr).unwrap().as_str()), (Some(0), ""));
}
