//! What is left of a panic: its record, and what the process prints.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::fs;
use std::panic::{self, AssertUnwindSafe};
use std::process::{Command, Stdio};
use std::sync::Arc;

use pi::ai::FakeAnswer;
use pi::config::Env;
use pi::modes::{self, InteractiveStart, Prompt};
use pi::session::{Deltas, OpenSession, ResourceOptions};
use serde_json::{Value, json};
use tokio::runtime::Handle;

use crate::support::agent_bench::TestTool;
use crate::support::faults::child::CHILD;
use crate::support::session_bench::SessionBench;

/// What stands around the output of the mode, among that of the test harness.
const BEGIN: &str = "begin of the output";
const END: &str = "end of the output";

/// What a process left whose mode ran into a panic.
struct Left {
    stdout: Vec<String>,
    stderr: Vec<String>,
    records: Value,
    /// How the exit code is printed.
    code: String,
    bench: SessionBench,
}

/// Runs `mode` in a process where `fault` panics.
fn run(mode: &str, fault: &str) -> Left {
    let bench = SessionBench::new([]);
    fs::create_dir_all(bench.path("project")).unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "crash_record::the_mode_that_panics", "--nocapture"]);
    let job = json!({ "mode": mode, "fault": fault, "root": bench.folder.path() });
    let output = command.env(CHILD, job.to_string()).stdin(Stdio::null()).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    let (_, rest) = stdout.split_once(BEGIN).unwrap();
    let (stdout, code) = rest.split_once(END).unwrap_or_else(|| panic!("{rest}\n{stderr}"));
    let lines = |text: &str| text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect();
    let records = fs::read_to_string(bench.path("agent").join("crashes.json")).unwrap_or_default();
    Left {
        stdout: lines(stdout),
        stderr: lines(&stderr),
        records: serde_json::from_str(&records).unwrap_or_default(),
        code: code.lines().next().unwrap().trim().to_owned(),
        bench,
    }
}

/// Does nothing unless another test started it.
#[test]
fn the_mode_that_panics() {
    #[expect(clippy::disallowed_methods, reason = "the test that starts this one uses a variable")]
    let Ok(job) = std::env::var(CHILD) else { return };
    let job: Value = serde_json::from_str(&job).unwrap();
    let call = FakeAnswer::new().tool_call("c", "break", json!({}));
    let answers = match job["fault"].as_str().unwrap() {
        "tool" => vec![call, FakeAnswer::of_text("fine")],
        "provider" => vec![FakeAnswer::new().panics("stream\nbroke")],
        _ => vec![FakeAnswer::of_text("fine")],
    };
    let is_session = job["fault"] == "session";
    let bench = SessionBench::new(answers).at(job["root"].as_str().unwrap().into());
    let provider = bench.provider.clone();
    let breaking = TestTool::new("break", |_, _| async { panic!("tool broke") })
        .when_listed(move || assert!(!is_session || provider.requests().is_empty(), "session broke"));
    let bench = bench.tools([breaking]);
    let services = Arc::new(bench.services());
    modes::watch_crashes(&services.dirs, services.clock.clone());
    println!("{BEGIN}");
    let run = AssertUnwindSafe(|| run_mode(&bench, &services, &job));
    let code = panic::catch_unwind(run).unwrap_or_else(|_| modes::after_crash());
    println!("{END} {code:?}");
}

fn run_mode(
    bench: &SessionBench,
    services: &Arc<pi::session::Services>,
    job: &Value,
) -> std::process::ExitCode {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_time();
    if job["mode"] == "screen reader" {
        // Such a runtime cannot wait for signals, and panics where it is asked to.
        let runtime = runtime.build().unwrap();
        let start = interactive_start(bench, services, runtime.handle().clone());
        return runtime.block_on(modes::screen_reader(start)).unwrap();
    }
    let runtime = runtime.enable_all().build().unwrap();
    runtime.block_on(async {
        let (cwd, deltas) = (bench.path("work"), Deltas::Wanted);
        let opened = modes::open_session(services, cwd, OpenSession::New, deltas, &Handle::current()).await;
        let (handle, events) = opened.unwrap();
        let prompt = |text: &str| Prompt { text: text.to_owned(), images: Vec::new() };
        let prompts = vec![prompt("one"), prompt("two")];
        let n_prompts = if job["fault"] == "session" { 2 } else { 1 };
        let prompts = prompts.into_iter().take(n_prompts).collect();
        match job["mode"].as_str().unwrap() {
            "print" => modes::print(&handle, events, prompts, &[], None).await,
            _ => modes::json(&handle, events, prompts, &[], false, None).await,
        }
    })
}

fn interactive_start(
    bench: &SessionBench,
    services: &Arc<pi::session::Services>,
    session_runtime: Handle,
) -> InteractiveStart {
    InteractiveStart {
        services: Arc::clone(services),
        cwd: bench.path("project"),
        open: OpenSession::New,
        env: Env::of(&[]),
        prompts: Vec::new(),
        problems: Vec::new(),
        pick_session: false,
        sessions_root: bench.path("sessions"),
        sessions: bench.path("sessions"),
        sessions_filter: None,
        custom_sessions: false,
        name: None,
        themes: ResourceOptions::default(),
        times: Default::default(),
        session_runtime,
    }
}

/// The line about a panic with `text`, without the place in the source.
#[track_caller]
fn assert_told(left: &Left, line: &str, text: &str) {
    let file = left.bench.path("agent").join("crashes.json");
    assert!(line.starts_with(&format!("pi: internal error: {text} (")), "{line}");
    assert!(line.ends_with(&format!("); please report it with {}", file.display())), "{line}");
}

const SUCCESS: &str = "ExitCode(unix_exit_status(0))";
const FAILED: &str = "ExitCode(unix_exit_status(1))";

#[test]
fn panic_of_any_task_is_recorded_and_told_in_one_line_by_print_mode() {
    for (fault, text, stdout, code, follows) in [
        // The model reads that the tool failed, and goes on.
        ("tool", "tool broke", &["fine"][..], SUCCESS, None),
        ("provider", "stream broke", &[], FAILED, Some("stream")),
        ("session", "session broke", &[], FAILED, Some("pi: the session has ended")),
    ] {
        let left = run("print", fault);
        assert_eq!(
            (&left.stdout[..], &*left.code),
            (&stdout.iter().map(ToString::to_string).collect::<Vec<_>>()[..], code),
            "{fault}: {:?}",
            left.stderr
        );
        assert_told(&left, &left.stderr[0], text);
        assert_eq!(
            left.stderr.get(1).map(|line| line.contains(follows.unwrap_or("?"))),
            follows.map(|_| true),
            "{:?}",
            left.stderr
        );
        let [record] = &left.records.as_array().unwrap()[..] else { panic!("{:?}", left.records) };
        let message = record["message"].as_str().unwrap().replace('\n', " ");
        assert!(message.starts_with(text), "{fault}: {message}");
        assert_eq!(record["cwd"], left.bench.path("work").to_str().unwrap(), "{fault}");
        assert_eq!(record["notified"], Value::Null, "the next start of the interface tells it");
    }
}

#[test]
fn output_of_json_mode_stays_valid_when_a_task_panics() {
    for (fault, code) in [("tool", SUCCESS), ("provider", SUCCESS), ("session", FAILED)] {
        let left = run("json", fault);
        assert_eq!(left.code, code, "{fault}: {:?}", left.stderr);
        let lines: Vec<Value> = left.stdout.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines[0]["type"], "session");
        assert!(left.stderr[0].starts_with("pi: internal error: "), "{:?}", left.stderr);
        assert_eq!(left.records.as_array().map(Vec::len), Some(1), "{fault}");
    }
}

#[test]
fn panic_that_ends_screen_reader_mode_is_recorded_with_the_way_back() {
    let left = run("screen reader", "interface");
    assert_eq!(left.code, FAILED);
    assert!(left.stderr[0].starts_with("pi: internal error: "), "{:?}", left.stderr);
    assert_eq!(left.stderr[1..], ["pi: to resume the session with your draft: pi --continue"]);
    let record = &left.records[0];
    assert_eq!(record["cwd"], left.bench.path("project").to_str().unwrap(), "{record}");
    assert_eq!(record["kind"], "panic");
}
