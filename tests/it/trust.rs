//! Trust is bound to what a project contained when the user decided.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::fs;

use pi::ai::FakeAnswer;
use pi::config::{Trust, TrustDefault, TrustPolicy};
use pi::session::{IfBusy, SessionCommand, TrustChoice};
use serde_json::{Value, json};

use crate::support::session_bench::{Session, SessionBench};

const ASK: TrustPolicy = TrustPolicy { flag: None, default: TrustDefault::Ask, can_ask: true };

fn put(bench: &SessionBench, path: &str, text: &str) {
    let path = bench.path(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn bench() -> SessionBench {
    let bench = SessionBench::new(["1"].map(FakeAnswer::of_text)).trust(ASK);
    put(&bench, "work/.pi/prompts/fix.md", "Fix it.");
    bench
}

async fn decide(session: &Session, choice: TrustChoice) {
    session.request(SessionCommand::DecideTrust { choice }).await.unwrap();
}

/// Trust, number of loaded templates, and the files that changed.
fn seen(session: &Session) -> (Trust, usize, Vec<String>) {
    let state = session.handle.state();
    (state.project.trust, state.templates.len(), state.project.changed.to_vec())
}

fn trusted() -> (Trust, usize, Vec<String>) {
    (Trust::Trusted, 1, Vec::new())
}

fn changed(trust: Trust) -> (Trust, usize, Vec<String>) {
    (trust, 0, vec![".pi/prompts/fix.md".to_owned()])
}

#[tokio::test]
async fn a_changed_file_of_a_trusted_project_asks_again() {
    let bench = bench();
    let session = bench.start().await;
    decide(&session, TrustChoice::Folder).await;
    assert_eq!(seen(&session), trusted());
    session.shut_down().await;
    let session = bench.start().await;
    assert_eq!(seen(&session), trusted(), "nothing changed");
    session.shut_down().await;

    put(&bench, "work/.pi/prompts/fix.md", "Break it.");
    let session = bench.start().await;
    assert_eq!(seen(&session), changed(Trust::Undecided));
    decide(&session, TrustChoice::Folder).await;
    assert_eq!(seen(&session), trusted());
    session.shut_down().await;
    let session = bench.start().await;
    assert_eq!(seen(&session), trusted(), "the answer counts for the new content");
}

#[tokio::test]
async fn changed_skill_that_project_settings_name_elsewhere_asks_again() {
    let bench = bench();
    put(&bench, "work/.pi/settings.json", r#"{"skills": ["../out"], "prompts": ["../texts"]}"#);
    put(&bench, "work/out/o/SKILL.md", "---\nname: o\ndescription: One.\n---\n");
    put(&bench, "work/texts/p.md", "Do it.");
    let session = bench.start().await;
    let named =
        |path: &str| session.handle.state().project.protected.iter().any(|known| known.ends_with(path));
    assert!(named("out") && named("texts"), "{:?}", session.handle.state().project.protected);
    decide(&session, TrustChoice::Folder).await;
    session.shut_down().await;
    for (path, text) in
        [("work/out/o/SKILL.md", "---\nname: o\ndescription: Two.\n---\n"), ("work/texts/p.md", "Break it.")]
    {
        let session = bench.start().await;
        assert_eq!(session.handle.state().project.trust, Trust::Trusted, "nothing changed");
        session.shut_down().await;
        put(&bench, path, text);
        let session = bench.start().await;
        assert_eq!(session.handle.state().project.trust, Trust::Undecided, "{path}");
        let expected = path.strip_prefix("work/").unwrap();
        assert_eq!(*session.handle.state().project.changed, [expected.to_owned()]);
        decide(&session, TrustChoice::Folder).await;
        session.shut_down().await;
    }
}

#[tokio::test]
async fn a_damaged_record_of_the_contents_asks_again() {
    let bench = bench();
    let session = bench.start().await;
    decide(&session, TrustChoice::Folder).await;
    session.shut_down().await;
    let work = fs::canonicalize(bench.path("work")).unwrap();
    for damaged in ["{", "[]", &json!({ work.to_str().unwrap(): 3 }).to_string()] {
        put(&bench, "agent/trust-contents.json", damaged);
        let session = bench.start().await;
        assert_eq!(seen(&session), changed(Trust::Undecided), "{damaged}");
        decide(&session, TrustChoice::Folder).await;
        session.shut_down().await;
        let session = bench.start().await;
        assert_eq!(seen(&session), trusted(), "{damaged}: the answer is kept");
        session.shut_down().await;
    }
}

#[tokio::test]
async fn without_a_user_changed_files_are_left_out_and_named() {
    let mut bench = bench();
    let session = bench.start().await;
    decide(&session, TrustChoice::Folder).await;
    session.shut_down().await;
    put(&bench, "work/.pi/prompts/fix.md", "Break it.");
    bench = bench.trust(TrustPolicy::default());
    let mut session = bench.start().await;
    assert_eq!(seen(&session), changed(Trust::Unasked));
    let expected = "Warning: prompt templates in .pi/prompts are not loaded because .pi/prompts/fix.md changed \
                    since you trusted this folder; --approve loads them";
    assert_eq!(session.waiting()[1..], [expected]);
    session.shut_down().await;

    // The flag trusts what is there, for this run alone.
    bench = bench.trust(TrustPolicy { flag: Some(true), ..TrustPolicy::default() });
    let session = bench.start().await;
    assert_eq!(seen(&session), trusted());
    session.shut_down().await;
    bench = bench.trust(TrustPolicy::default());
    assert_eq!(seen(&bench.start().await), changed(Trust::Unasked));
}

#[tokio::test]
async fn a_decision_for_this_process_is_bound_to_the_content_too() {
    let bench = bench();
    let session = bench.start().await;
    decide(&session, TrustChoice::Session).await;
    session.request(SessionCommand::New { if_busy: IfBusy::Cancel }).await.unwrap();
    assert_eq!(seen(&session), trusted());
    put(&bench, "work/.pi/prompts/fix.md", "Break it.");
    session.request(SessionCommand::Reload).await.unwrap();
    assert_eq!(seen(&session), changed(Trust::Undecided));
}

#[tokio::test]
async fn a_decision_of_the_original_is_bound_to_what_is_seen_first() {
    let bench = bench();
    let work = fs::canonicalize(bench.path("work")).unwrap();
    let parent = work.parent().unwrap().to_str().unwrap();
    put(&bench, "agent/trust.json", &json!({ parent: true, "note": {"x": 1} }).to_string());
    let session = bench.start().await;
    assert_eq!(seen(&session), trusted());
    session.shut_down().await;
    put(&bench, "work/.pi/prompts/fix.md", "Break it.");
    let session = bench.start().await;
    assert_eq!(seen(&session), changed(Trust::Undecided));
    decide(&session, TrustChoice::Folder).await;
    let kept: Value =
        serde_json::from_str(&fs::read_to_string(bench.path("agent/trust.json")).unwrap()).unwrap();
    assert_eq!(kept, json!({ parent: true, work.to_str().unwrap(): true, "note": {"x": 1} }));
}

#[tokio::test]
async fn the_target_of_a_trusted_link_is_part_of_the_content() {
    let bench = SessionBench::new([]).trust(ASK).context_files();
    put(&bench, "outside.md", "Use tabs.");
    std::os::unix::fs::symlink(bench.path("outside.md"), bench.path("work/AGENTS.md")).unwrap();
    let session = bench.start().await;
    decide(&session, TrustChoice::Folder).await;
    session.shut_down().await;
    put(&bench, "outside.md", "Delete everything.");
    let session = bench.start().await;
    let state = session.handle.state();
    assert_eq!(
        (state.project.trust, state.project.changed.to_vec()),
        (Trust::Undecided, vec!["AGENTS.md".to_owned()])
    );
}
