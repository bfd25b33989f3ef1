//! Commands: output, how they end, and what they leave behind.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a helper of tests may fail the test")]

use std::fs;
use std::path::Path;
use std::time::Duration;

use pi::ai::join_text;
use pi::tools::{SessionVars, run_user_command};
use pi::util::process::{self, Command, End, Event, Running};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::tools_support::Workbench;

/// Far longer than anything here takes; only a failure waits so long.
const PATIENCE: Duration = Duration::from_secs(20);

/// Whether process `pid` is running; a zombie is not.
fn is_alive(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next());
    state.is_some_and(|state| state != 'Z' && state != 'X')
}

async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let waiting = async {
        while !condition() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("waited in vain: {what}"));
}

/// The pid that a command writes to a file, once it is complete.
async fn pid_in(path: &Path) -> String {
    let mut pid = String::new();
    until("the pid", || {
        pid = fs::read_to_string(path).unwrap_or_default();
        pid.ends_with('\n')
    })
    .await;
    pid
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
    check("kill -9 $$", "(no output)\n\nCommand exited with code 137").await;
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
    // The command continues only after its first line was reported.
    let call = bench.run("bash", json!({ "command": "echo first; until [ -e go ]; do sleep 0.01; done" }));
    let watch = async {
        until("a report", || {
            let reports = bench.reports.lock().unwrap();
            reports.iter().any(|report| join_text(&report.content) == "first\n")
        })
        .await;
        bench.write("go", "");
    };
    let (output, ()) = tokio::join!(call, watch);
    assert_eq!(join_text(&output.unwrap().content), "first\n");
    assert!(bench.reports.lock().unwrap()[0].content.is_empty(), "an empty report comes first");
}

#[tokio::test]
async fn abort_kills_to_the_last_grandchild() {
    let bench = Workbench::new();
    let command = "echo started; (sleep 1000 & echo $! > pid.tmp; mv pid.tmp pid; wait) & wait";
    let call = bench.run("bash", json!({ "command": command }));
    let abort = async {
        let pid = pid_in(&bench.path("pid")).await;
        assert!(is_alive(&pid));
        bench.cancel.cancel();
        pid
    };
    let (output, pid) = tokio::join!(call, abort);
    let output = output.unwrap();
    assert_eq!(join_text(&output.content), "started\n\n\nCommand aborted");
    assert!(output.is_error);
    until("the grandchild's end", || !is_alive(&pid)).await;
}

/// `set -m` and `timeout` start processes in groups of their own.
#[tokio::test]
async fn abort_kills_other_groups_of_the_session_but_not_other_sessions() {
    let bench = Workbench::new();
    let command = "setsid sleep 1000 & echo $! > session.tmp
        until [ \"$(cut -d' ' -f6 /proc/$!/stat)\" = $! ]; do :; done
        mv session.tmp session
        set -m; sleep 1000 & echo $! > group.tmp; mv group.tmp group; sleep 1000";
    let call = bench.run("bash", json!({ "command": command }));
    let abort = async {
        let pids = (pid_in(&bench.path("group")).await, pid_in(&bench.path("session")).await);
        bench.cancel.cancel();
        pids
    };
    let (output, (group, session)) = tokio::join!(call, abort);
    assert!(output.unwrap().is_error);
    until("the other group's end", || !is_alive(&group)).await;
    assert!(is_alive(&session), "it detached itself on purpose");
    let pid = rustix::process::Pid::from_raw(session.trim().parse().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

/// Also where this is not pi but a program that uses its library.
#[tokio::test]
async fn commands_die_with_a_program_that_is_killed() {
    const CHILD: &str = "PI_TEST_KILLED_IN";
    #[expect(clippy::disallowed_methods, reason = "tells the inner run from the outer one")]
    let inner = std::env::var_os(CHILD);
    if let Some(folder) = inner {
        let folder = Path::new(&folder);
        let script = "(set -m; sleep 1000 & echo $! > one.tmp; mv one.tmp one; wait) &
            sleep 1000 & echo $! > two.tmp; mv two.tmp two; wait";
        let command = Command {
            program: "/bin/bash".into(),
            args: vec!["-c".into(), script.into()],
            cwd: folder.to_owned(),
            env: Vec::new(),
            timeout: None,
        };
        let _running = Running::start(&command, CancellationToken::new()).unwrap();
        pid_in(&folder.join("one")).await;
        pid_in(&folder.join("two")).await;
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).unwrap();
        std::future::pending::<()>().await;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut program = tokio::process::Command::new(std::env::current_exe().unwrap());
    program.args(["--exact", "tools_bash::commands_die_with_a_program_that_is_killed"]);
    let output = program.env(CHILD, folder.path()).output().await.unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&output.status), Some(9), "{output:?}");
    for name in ["one", "two"] {
        let pid = pid_in(&folder.path().join(name)).await;
        until("the end of all it started", || !is_alive(&pid)).await;
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
    until("the old file's end", || !old.exists()).await;
    assert!(other.exists());
}

#[tokio::test]
async fn a_command_that_takes_too_long_is_killed() {
    let bench = Workbench::new();
    let command = "echo $$ > pid; echo x; sleep 1000";
    let output = bench.run("bash", json!({ "command": command, "timeout": 1 })).await.unwrap();
    assert_eq!(join_text(&output.content), "x\n\n\nCommand timed out after 1 seconds");
    let pid = bench.read("pid");
    until("the command's end", || !is_alive(&pid)).await;
    let error = bench.error("bash", json!({ "command": "true", "timeout": 0 })).await;
    assert!(error.starts_with("Invalid timeout"), "{error}");
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
    let call = bench.text("bash", json!({ "command": "sleep 1000 & echo $!" }));
    let pid = tokio::time::timeout(PATIENCE, call).await.expect("the call returns");
    assert!(is_alive(&pid), "it was not asked to stop");
    let pid: i32 = pid.trim().parse().unwrap();
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(pid).unwrap(),
        rustix::process::Signal::KILL,
    )
    .unwrap();
}

#[tokio::test]
async fn what_a_background_process_still_prints_is_kept() {
    let bench = Workbench::new();
    let text = bench
        .text(
            "bash",
            json!({ "command": "(while kill -0 $$ 2>/dev/null; do :; done; echo late) & echo early" }),
        )
        .await;
    assert_eq!(text, "early\nlate\n");
}

#[tokio::test]
async fn dropping_a_running_command_kills_it() {
    let bench = Workbench::new();
    let pid = {
        let call = bench.run("bash", json!({ "command": "echo $$ > pid.tmp; mv pid.tmp pid; sleep 1000" }));
        let pid_file = bench.path("pid");
        tokio::select! {
            _ = call => panic!("the command does not end by itself"),
            pid = pid_in(&pid_file) => pid,
        }
    };
    until("the command's end", || !is_alive(&pid)).await;
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
        args: vec!["-c".into(), "(sleep 1000 & echo $! > pid.tmp; mv pid.tmp pid; wait); wait".into()],
        cwd: folder.to_owned(),
        env: Vec::new(),
        timeout: None,
    };
    let mut running = Running::start(&command, CancellationToken::new()).unwrap();
    let pid = pid_in(&folder.join("pid")).await;
    process::kill_all();
    let end = loop {
        if let Event::Ended(end) = running.next().await {
            break end;
        }
    };
    assert_eq!(end, End::Exited(137));
    until("the grandchild's end", || !is_alive(&pid)).await;
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
