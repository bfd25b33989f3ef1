//! What is left of a panic of an interface.

use std::fs;
use std::sync::Arc;
use std::thread;

use pi::config::Env;
use pi::modes::{InteractiveStart, screen_reader};
use pi::session::{OpenSession, ResourceOptions};

use crate::support::session_bench::SessionBench;

#[test]
fn a_panic_in_screen_reader_mode_is_recorded() {
    let bench = SessionBench::new([]);
    fs::create_dir_all(bench.path("project")).unwrap();
    let start = InteractiveStart {
        services: Arc::new(bench.services()),
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
    };
    // Such a runtime cannot wait for signals, and panics where it is asked to.
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let ended = thread::spawn(move || runtime().block_on(screen_reader(start))).join();
    assert!(ended.is_err(), "{ended:?}");
    let text = fs::read_to_string(bench.path("agent").join("crashes.json")).unwrap();
    let records: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(records[0]["cwd"], bench.path("project").to_str().unwrap(), "{records}");
    assert_eq!(records[0]["kind"], "panic");
}
