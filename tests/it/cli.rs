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
    let (server, home) = calling(0).await;
    for (file, problem) in
        [("missing/last.txt", "its directory does not exist"), ("../project", "it is a directory")]
    {
        let (output, told) = run(pi(&home, &["-p", "--output-last-message", file, "work"]), None).await;
        assert_eq!(output.status.code(), Some(2));
        assert_eq!(told, format!("pi: cannot write the last answer to {file}: {problem}\n"));
    }
    assert_eq!(server.requests().len(), 0, "nothing is paid for");
    let (output, told) = run(pi(&home, &["--mode", "rpc", "--output-last-message", "x"]), None).await;
    assert_eq!(output.status.code(), Some(2));
    assert!(told.contains("--output-last-message needs --print or --mode json"), "{told}");
}

#[test]
fn completions_name_the_arguments() {
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
    let script = pi(&home, &["completions", "bash"]).output().unwrap().stdout;
    fs::write(home.project().join("pi.bash"), script).unwrap();
    for (words, expected) in [
        (&["--mode", ""][..], "text json rpc"),
        (&["--thinking", "h"], "high"),
        (&["--provider", "openr"], "openrouter"),
        (&["auth", "login", "anth"], "anthropic"),
        (&["docs", "key"], "keybindings"),
        (&["config", "set", "outp"], "outputPad"),
        (&["--tui-mode", "f"], "fullscreen"),
        (&["--use-theme", ""], "dark light system"),
        (&["import", "--from", "g"], "google"),
        (&["export", "--to", ""], "html md jsonl atif openai openai-responses anthropic google"),
        (&["config", "set", "theme", ""], "dark light system"),
        (&["config", "set", "--project", "quietStartup", ""], "true false header"),
        (&["config", "set", "defaultProjectTrust", "a"], "ask always"),
        (&["config", "set", "theme", "--"], "--project --help"),
        (&["config", "set", "theme", "dark", ""], ""),
        (&["config", "get", "theme", ""], ""),
        (&["help", "ex"], "export"),
        (&["help", "-"], ""),
        (&["help", "export", ""], ""),
    ] {
        let [.., before, word] = words else { panic!("two words") };
        let line = ["pi"].iter().chain(words).map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
        let script = format!(
            "source ./pi.bash; COMP_WORDS=({line}); COMP_CWORD={}; $(complete -p pi | grep -o '_pi[a-z_]*') pi '{word}' '{before}'; echo \"${{COMPREPLY[*]}}\"",
            words.len()
        );
        let bash =
            std::process::Command::new("bash").args(["-c", &script]).current_dir(home.project()).output();
        assert_eq!(String::from_utf8(bash.unwrap().stdout).unwrap().trim(), expected, "{words:?}");
    }
    let output = pi(&home, &["completions", "tcsh"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn the_manual_page_has_codes_variables_and_files_and_names_no_other_page() {
    let home = TestHome::new();
    let output = pi(&home, &["man"]).output().unwrap();
    let page = String::from_utf8(output.stdout).unwrap();
    let sections: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix(".SH ")).collect();
    assert_eq!(sections[..4], ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS"]);
    let last = ["COMMANDS", "\"EXIT STATUS\"", "ENVIRONMENT", "FILES", "\"SEE ALSO\""];
    assert_eq!(sections[sections.len() - last.len()..], last);
    assert!(
        page.starts_with(".ie") && page.matches(".ie").count() == 1 && page.contains(".TH pi 1"),
        "{page}"
    );
    // Hyphens are escaped, and terms are bold.
    for part in [
        "max\\-turns",
        "\\fBpi sessions\\fR\nList sessions",
        "\\fB3\\fR\na limit ended the run",
        "\\fBHTTPS_PROXY\\fR, \\fBHTTP_PROXY\\fR",
        "\\fB~/.pi/agent/auth.json\\fR\nkeys and sign\\-ins",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("(1)") && !page.contains("]("), "{page}");
}

#[test]
fn arguments_that_make_no_sense_are_answered_with_what_to_do() {
    let home = TestHome::new();
    let check = |args: &[&str], expected: &str| {
        let output = pi(&home, args).output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(matches!(output.status.code(), Some(1 | 2)), "{args:?}");
        assert!(told.contains(expected), "{args:?}: {told}");
    };
    let demo = |args: &[&'static str]| [&["--model", "demo/pi", "-p", "hi"], args].concat();
    for flag in ["--session", "--fork"] {
        check(&demo(&[flag, ""]), "the id of the session is empty; list sessions with pi sessions");
    }
    check(&["trace", ""], "the id of the session is empty");
    check(&["export", "", "--to", "md"], "the id of the session is empty");
    check(&["--export", ""], "the id of the session is empty");
    check(&demo(&["--api-key", " "]), "--api-key is empty; leave it out");
    check(&demo(&["--slim-events", "--mode", "text"]), "--slim-events needs --mode json or rpc");
    check(&["help", "nope"], "pi has no command \"nope\"");
    check(&["help", "mcp"], "pi mcp is not supported yet");
}

#[test]
fn a_prompt_that_looks_like_a_file_is_sent_with_a_note() {
    let home = TestHome::new();
    fs::write(home.project().join("real.md"), "Be brief.").unwrap();
    let told = |args: &[&str]| {
        let args = [&["--model", "demo/pi", "-p", "hi"], args].concat();
        let output = pi(&home, &args).env("PI_DEMO_INSTANT", "1").output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let note = "pi: --append-system-prompt: there is no file ./gone.md; it is sent as text\n";
    assert!(told(&["--append-system-prompt", "./gone.md"]).contains(note));
    assert!(told(&["--system-prompt", "gone.md"]).contains("pi: --system-prompt: there is no file gone.md;"));
    for text in ["real.md", "Be brief. See notes.md", "brief"] {
        assert!(!told(&["--system-prompt", text]).contains("there is no file"), "{text}");
    }
}

#[test]
fn help_of_a_command_of_a_command_is_its_help() {
    let home = TestHome::new();
    for (words, usage) in [
        (&["help", "sessions"][..], "Usage: pi sessions"),
        (&["help", "auth", "login"], "Usage: pi auth login"),
        (&["help"], "Usage: pi [OPTIONS]"),
    ] {
        let output = pi(&home, words).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && text.contains(usage), "{words:?}: {text}");
    }
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
