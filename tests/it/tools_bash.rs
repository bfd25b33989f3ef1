//! Commands: output, how they end, and what is left of them.
#![expect(clippy::unwrap_used, reason = "a helper of tests may fail the test")]

use std::fs;
use std::path::Path;
use std::time::Duration;

use pi::agent::ToolOutput;
use pi::ai::join_text;
use pi::tools::{CommandLimits, SessionVars, run_user_command};
use pi::util::process::{self, Command, End, Event, Running};
use process_wrap::std::{CommandWrap, ProcessSession};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::support::files::{make_fifo, wait_for_files};
use crate::support::lifeline::Lifeline;
use crate::tools_support::Workbench;

/// Far longer than anything here takes; only a failure waits so long.
const PATIENCE: Duration = Duration::from_secs(20);

/// A lifeline in the session's directory.
fn lifeline(bench: &Workbench, name: &str) -> Lifeline {
    Lifeline::new(bench.path(name))
}

fn kill(pid: &str) {
    let pid = rustix::process::Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

#[tokio::test]
async fn output_comes_in_the_order_it_was_written() {
    let bench = Workbench::new();
    let command = "for n in 1 2 3; do echo out $n; echo err $n >&2; done";
    let text = bench.text("bash", json!({ "command": command })).await;
    assert_eq!(text, "out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\n");
}

#[tokio::test]
async fn a_command_has_no_input_and_runs_in_the_session_directory() {
    let bench = Workbench::new();
    let text = bench.text("bash", json!({ "command": "cat; pwd -P" })).await;
    assert_eq!(text.trim(), fs::canonicalize(bench.cwd()).unwrap().to_str().unwrap());
}

#[tokio::test]
async fn a_failure_is_an_error_with_its_output() {
    let bench = Workbench::new();
    let check = async |command: &str, expected: &str| {
        let output = bench.run("bash", json!({ "command": command })).await.unwrap();
        assert_eq!((join_text(&output.content).as_str(), output.is_error), (expected, true));
    };
    check("echo hi; exit 3", "hi\n\n\nCommand exited with code 3").await;
    check("false", "(no output)\n\nCommand exited with code 1").await;
    let killed = "Command exited with code 137: it was killed (SIGKILL), most likely because memory ran out";
    check("kill -9 $$", &format!("(no output)\n\n{killed}")).await;
}

#[tokio::test]
async fn a_missing_directory_is_an_error() {
    let bench = Workbench::new();
    let cwd = bench.path("gone");
    let error = bench.call("bash", json!({ "command": "true" }), &cwd).await.unwrap_err();
    assert_eq!(error.0, format!("Working directory does not exist: {}", cwd.display()));
}

#[tokio::test]
async fn the_environment_tells_of_the_session() {
    let mut bench = Workbench::configured(|bash| {
        bash.env = vec![("EXTRA".into(), "e".into()), ("PI_PROVIDER".into(), "stale".into())];
        bash.bin_dir = Some("/opt/pi/bin".into());
        bash.search_path = Some("/usr/bin:/bin".into());
        bash.command_prefix = Some("PREFIX=p".to_owned());
    });
    let command = "echo $PI_SESSION_ID,$PI_SESSION_FILE,${PI_PROVIDER-none},$PI_MODEL,\
                   $PI_REASONING_LEVEL,$EXTRA,$PREFIX,$PATH";
    bench.session = SessionVars {
        id: Some("id".to_owned()),
        file: Some("/s.jsonl".into()),
        provider: None,
        model: Some("m".to_owned()),
        reasoning_level: Some("high".to_owned()),
    };
    let text = bench.text("bash", json!({ "command": command })).await;
    assert_eq!(text, "id,/s.jsonl,none,m,high,e,p,/opt/pi/bin:/usr/bin:/bin\n");
    bench.session = SessionVars { model: Some("n".to_owned()), ..SessionVars::default() };
    let text = bench.text("bash", json!({ "command": command })).await;
    assert_eq!(text, ",,none,n,,e,p,/opt/pi/bin:/usr/bin:/bin\n");
}

#[tokio::test]
async fn long_output_is_cut_and_kept_in_a_file() {
    let bench = Workbench::new();
    let output = bench.run("bash", json!({ "command": "seq 1 3000" })).await.unwrap();
    let details = output.details.unwrap();
    let path = details["fullOutputPath"].as_str().unwrap();
    let text = join_text(&output.content);
    assert!(text.starts_with("1001\n"));
    assert!(
        text.ends_with(&format!("3000\n\n[Showing lines 1001-3000 of 3000. Full output: {path}]")),
        "{text}"
    );
    assert_eq!(details["truncation"]["truncatedBy"], "lines");
    assert_eq!(Path::new(path).parent(), Some(bench.temp_dir.as_path()));
    assert_eq!(fs::read_to_string(path).unwrap().lines().count(), 3000);
}

#[tokio::test]
async fn output_is_reported_while_the_command_runs() {
    let bench = Workbench::new();
    // The command goes on only once its first line was reported.
    make_fifo(&bench.path("go"));
    let call = bench.run("bash", json!({ "command": "echo first; cat go" }));
    let watch = async {
        let mut reports = bench.reports.subscribe();
        let is_first = |report: &ToolOutput| join_text(&report.content) == "first\n";
        let reported = reports.wait_for(|reports| reports.iter().any(is_first));
        drop(tokio::time::timeout(PATIENCE, reported).await.expect("a report").unwrap());
        bench.write("go", "");
    };
    let (output, ()) = tokio::join!(call, watch);
    assert_eq!(join_text(&output.unwrap().content), "first\n");
    assert!(bench.reports.borrow()[0].content.is_empty(), "an empty report comes first");
}

#[tokio::test]
async fn abort_kills_to_the_last_grandchild() {
    let bench = Workbench::new();
    let life = lifeline(&bench, "life");
    let command = "exec 3> life; echo started; (sleep 1000 & echo up >&3; wait) & wait";
    let call = bench.run("bash", json!({ "command": command }));
    let abort = async {
        life.line().await;
        assert!(!life.has_ended());
        bench.cancel.cancel();
    };
    let (output, ()) = tokio::join!(call, abort);
    let output = output.unwrap();
    assert_eq!(join_text(&output.content), "started\n\n\nCommand aborted");
    assert!(output.is_error);
    life.ended().await;
}

/// `set -m` and `timeout` start processes in groups of their own.
#[tokio::test]
async fn abort_kills_other_groups_of_the_session_but_not_other_sessions() {
    const CHILD: &str = "PI_TEST_DETACHES";
    const SLEEPER: &str = "echo $$ >&3; exec sleep 1000";
    #[expect(clippy::disallowed_methods, reason = "tells the inner run from the outer one")]
    let is_inner = std::env::var_os(CHILD).is_some();
    if is_inner {
        // In place of the program `setsid`, which not every system has.
        let mut sleeper = std::process::Command::new("/bin/sh");
        sleeper.args(["-c", SLEEPER]);
        CommandWrap::from(sleeper).wrap(ProcessSession).spawn().unwrap();
        return;
    }
    let bench = Workbench::new();
    let (session, group) = (lifeline(&bench, "session"), lifeline(&bench, "group"));
    let test = "tools_bash::abort_kills_other_groups_of_the_session_but_not_other_sessions";
    let program = std::env::current_exe().unwrap();
    let command = format!(
        "{CHILD}=1 '{}' --exact {test} > /dev/null 2>&1 3> session
        set -m; sh -c '{SLEEPER}' 3> group & sleep 1000",
        program.display(),
    );
    let call = bench.run("bash", json!({ "command": command }));
    let abort = async {
        group.line().await;
        let session = session.line().await;
        bench.cancel.cancel();
        session
    };
    let (output, pid) = tokio::join!(call, abort);
    assert!(output.unwrap().is_error);
    group.ended().await;
    assert!(!session.has_ended(), "it detached itself on purpose");
    kill(&pid);
    session.ended().await;
}

/// Also where this is not pi but a program that uses its library.
#[tokio::test]
async fn commands_die_with_a_program_that_is_killed() {
    const CHILD: &str = "PI_TEST_KILLED_IN";
    #[expect(clippy::disallowed_methods, reason = "tells the inner run from the outer one")]
    let inner = std::env::var_os(CHILD);
    if let Some(folder) = inner {
        let folder = Path::new(&folder);
        let script = "(set -m; sh -c 'echo up; exec sleep 1000' 3> one & wait) &
            sh -c 'echo up; exec sleep 1000' 3> two & wait";
        let command = Command {
            program: "/bin/bash".into(),
            args: vec!["-c".into(), script.into()],
            cwd: folder.to_owned(),
            env: Vec::new(),
            timeout: None,
        };
        let mut running = Running::start(&command, CancellationToken::new()).unwrap();
        let mut output = Vec::new();
        while output != b"up\nup\n" {
            match running.next().await {
                Event::Output(bytes) => output.extend(bytes),
                Event::Ended(end) => panic!("{end:?} {output:?}"),
            }
        }
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).unwrap();
        std::future::pending::<()>().await;
    }
    let folder = tempfile::tempdir().unwrap();
    let lives = ["one", "two"].map(|name| Lifeline::new(folder.path().join(name)));
    let mut program = tokio::process::Command::new(std::env::current_exe().unwrap());
    program.args(["--exact", "tools_bash::commands_die_with_a_program_that_is_killed"]);
    let output = program.env(CHILD, folder.path()).output().await.unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&output.status), Some(9), "{output:?}");
    for life in lives {
        life.ended().await;
    }
}

#[tokio::test]
async fn old_output_files_are_removed_when_a_command_starts() {
    let bench = Workbench::new();
    let old = bench.temp_dir.join("pi-bash-0123456789abcdef.log");
    let day = Duration::from_secs(24 * 60 * 60);
    let written = fs::File::create(&old).unwrap();
    let today = fs::metadata(&old).unwrap().modified().unwrap();
    written.set_modified(today - 8 * day).unwrap();
    let other = bench.temp_dir.join("pi-bash-0123456789abcdee.log");
    fs::File::create(&other).unwrap().set_modified(today - 6 * day).unwrap();
    bench.text("bash", json!({ "command": "true" })).await;
    wait_for_files(&bench.temp_dir, "the old file's end", || !old.exists());
    assert!(other.exists());
}

#[tokio::test]
async fn a_command_that_takes_too_long_is_killed() {
    let bench = Workbench::new();
    let life = lifeline(&bench, "life");
    let command = "exec 3> life; echo x; sleep 1000";
    let output = bench.run("bash", json!({ "command": command, "timeout": 1 })).await.unwrap();
    assert_eq!(join_text(&output.content), "x\n\n\nCommand timed out after 1 seconds");
    life.ended().await;
    let error = bench.error("bash", json!({ "command": "true", "timeout": 0 })).await;
    assert!(error.starts_with("Invalid timeout"), "{error}");
}

#[tokio::test]
async fn command_without_timeout_is_killed_after_the_default_one() {
    let limits = CommandLimits { default_timeout: Some(Duration::from_secs(1)), ..CommandLimits::default() };
    let bench = Workbench::configured(|config| config.limits = limits);
    let life = lifeline(&bench, "life");
    let output = bench.run("bash", json!({ "command": "exec 3> life; sleep 1000" })).await.unwrap();
    let text = join_text(&output.content);
    assert!(text.starts_with("Command timed out after 1 seconds, the default. Set timeout"), "{text}");
    life.ended().await;
}

#[tokio::test]
async fn limit_of_memory_holds_for_what_a_command_starts() {
    let limits = CommandLimits { memory_mb: 200, ..CommandLimits::default() };
    let bench = Workbench::configured(|config| config.limits = limits);
    let command = "ulimit -v; head -c 400M /dev/zero | tail | wc -c";
    let output = bench.run("bash", json!({ "command": command })).await.unwrap();
    let text = join_text(&output.content);
    assert!(text.starts_with("200000\n") && text.contains("memory exhausted"), "{text}");
}

#[tokio::test]
async fn a_timeout_tells_if_only_background_processes_were_left() {
    let bench = Workbench::new();
    let command = "while :; do echo x; done & exit 0";
    let output = bench.run("bash", json!({ "command": command, "timeout": 0.5 })).await.unwrap();
    let text = join_text(&output.content);
    assert!(text.contains("timed out after 0.5 seconds. The command itself had finished"), "{text}");
}

#[tokio::test]
async fn a_silent_background_process_is_not_waited_for() {
    let bench = Workbench::new();
    let life = lifeline(&bench, "life");
    let command = "sh -c 'echo up >&3; exec sleep 1000' 3> life & echo $!";
    let call = bench.text("bash", json!({ "command": command }));
    let pid = tokio::time::timeout(PATIENCE, call).await.expect("the call returns");
    life.line().await;
    assert!(!life.has_ended(), "it was not asked to stop");
    kill(&pid);
    life.ended().await;
}

#[tokio::test]
async fn what_a_background_process_still_prints_is_kept() {
    let bench = Workbench::new();
    // The pipe closes when the command itself ends.
    make_fifo(&bench.path("open"));
    let command = "(cat open; echo late) & exec 3> open; echo early";
    let text = bench.text("bash", json!({ "command": command })).await;
    assert_eq!(text, "early\nlate\n");
}

#[tokio::test]
async fn dropping_a_running_command_kills_it() {
    let bench = Workbench::new();
    let life = lifeline(&bench, "life");
    {
        let call = bench.run("bash", json!({ "command": "exec 3> life; echo up >&3; sleep 1000" }));
        tokio::select! {
            _ = call => panic!("the command does not end by itself"),
            _ = life.line() => {}
        }
    }
    life.ended().await;
}

/// Apart from the other tests, whose commands it would kill too.
#[test]
fn the_end_of_the_program_ends_its_commands() {
    const CHILD: &str = "PI_TEST_KILL_ALL_IN";
    #[expect(clippy::disallowed_methods, reason = "tells the inner run from the outer one")]
    let inner = std::env::var_os(CHILD);
    if let Some(folder) = inner {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        return runtime.block_on(kill_all_in(Path::new(&folder)));
    }
    let folder = tempfile::tempdir().unwrap();
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "tools_bash::the_end_of_the_program_ends_its_commands"])
        .env(CHILD, folder.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

async fn kill_all_in(folder: &Path) {
    let command = Command {
        program: "/bin/sh".into(),
        args: vec!["-c".into(), "exec 3> life; (sleep 1000 & echo up >&3; wait); wait".into()],
        cwd: folder.to_owned(),
        env: Vec::new(),
        timeout: None,
    };
    let life = Lifeline::new(folder.join("life"));
    let mut running = Running::start(&command, CancellationToken::new()).unwrap();
    life.line().await;
    process::kill_all();
    let end = loop {
        if let Event::Ended(end) = running.next().await {
            break end;
        }
    };
    assert_eq!(end, End::Exited(137));
    life.ended().await;
}

#[tokio::test]
async fn a_users_command_streams_sanitised_output() {
    let bench = Workbench::new();
    let config = pi::tools::BashConfig::new(bench.temp_dir.clone());
    let mut streamed = String::new();
    let outcome = run_user_command(
        &config,
        r"printf '\033[31mred\033[0m\r\n\a'; echo ${PI_SESSION_ID-none}; exit 2",
        &bench.cwd(),
        &CancellationToken::new(),
        |chunk| streamed.push_str(chunk),
    )
    .await
    .unwrap();
    assert_eq!(outcome.output, "red\nnone\n");
    assert_eq!(streamed, outcome.output);
    assert_eq!((outcome.exit_code, outcome.cancelled, outcome.truncated), (Some(2), false, false));
    assert_eq!(outcome.full_output_path, None);
}

#[tokio::test]
async fn a_users_command_can_be_cancelled_and_keeps_its_output() {
    let bench = Workbench::new();
    let config = pi::tools::BashConfig::new(bench.temp_dir.clone());
    let cancel = CancellationToken::new();
    let on_output = |chunk: &str| {
        if chunk.contains("3000") {
            cancel.cancel();
        }
    };
    let cwd = bench.cwd();
    let outcome =
        run_user_command(&config, "seq 1 3000; sleep 1000", &cwd, &cancel, on_output).await.unwrap();
    assert!(outcome.cancelled && outcome.truncated && outcome.exit_code.is_none());
    assert!(outcome.output.ends_with("\n3000"));
    let full = fs::read_to_string(outcome.full_output_path.unwrap()).unwrap();
    assert_eq!(full.lines().count(), 3000);
}

#[tokio::test]
async fn a_users_command_that_cannot_start_says_why() {
    let bench = Workbench::new();
    let mut config = pi::tools::BashConfig::new(bench.temp_dir.clone());
    config.shell_path = Some("/nonexistent/shell".into());
    let run = run_user_command(&config, "true", Path::new("/"), &CancellationToken::new(), |_| {}).await;
    assert_eq!(run.unwrap_err().to_string(), "The shell in shellPath does not exist: /nonexistent/shell");
}
