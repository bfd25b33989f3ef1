//! What Enter will do, as the editor's border says it, with the user's keys.

use crate::agent::SteeringDelivery;
use crate::session::{Phase, SessionState, is_urgent};
use crate::tui::keymap::Keymap;

use super::input_area::Planned;
use super::prompt::{SlashName, Submission, classify};

/// What Enter will do, unless it just sends the text or has no effect.
pub(super) fn enter_label(planned: &Planned, session: &SessionState, keymap: &Keymap) -> String {
    let key = keymap.hint("tui.input.submit");
    let enter = |effect: &str| if key.is_empty() { String::new() } else { format!("{key}: {effect}") };
    let (text, is_completed) = match planned {
        Planned::Complete => return enter("complete"),
        Planned::LineBreak => return enter("line break"),
        Planned::Submit(text) => (text, false),
        Planned::SubmitCompleted(text) => (text, true),
    };
    let name = |line: &str| line.split_whitespace().next().unwrap_or_default().to_owned();
    let templates = &session.templates;
    match classify(text.trim(), |name| SlashName::of(name, templates)) {
        // What was not typed must be readable before it is run.
        Submission::Command(line) if is_completed => return enter(&format!("run /{}", line.trim())),
        Submission::Command(line) => return enter(&format!("run /{}", name(&line))),
        Submission::Unknown(line) if line.is_empty() => return String::new(),
        Submission::Unknown(line) => return enter(&format!("no command /{}", name(&line))),
        Submission::Nothing | Submission::Bash { .. } | Submission::Prompt(_) => {}
    }
    if text.starts_with("!!") {
        return enter("run, hidden from the model");
    }
    if text.starts_with('!') {
        return enter("run and show the model");
    }
    if session.phase == Phase::Idle {
        return String::new();
    }
    if text.trim().is_empty() {
        return if session.queue.is_empty() { String::new() } else { enter("deliver queued messages now") };
    }
    if is_urgent(text, &session.urgent_words) {
        return enter("interrupt with this");
    }
    let now = match (session.phase, session.steering_delivery) {
        (Phase::Compacting, _) => "send after the summary",
        (_, SteeringDelivery::Tools) => "steer at the next tool",
        (_, SteeringDelivery::Turn) => "steer after this turn",
        (_, SteeringDelivery::Now) => "interrupt with this",
    };
    let later = keymap.hint("app.message.followUp");
    let later = if later.is_empty() { later } else { format!("{later}: when done") };
    let parts = [enter(now), later];
    parts.iter().filter(|part| !part.is_empty()).map(String::as_str).collect::<Vec<_>>().join(" · ")
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use serde_json::json;

    use crate::ai::Model;
    use crate::session::QueueView;

    use super::super::keybindings::default_keymap;
    use super::*;

    fn working() -> SessionState {
        let session = SessionState::of(&Arc::new(Model::default()), Path::new("/"));
        SessionState { phase: Phase::Running, urgent_words: vec!["stop".to_owned()].into(), ..session }
    }

    #[track_caller]
    fn check(session: &SessionState, text: &str, expected: &str) {
        let planned = Planned::Submit(text.to_owned());
        assert_eq!(enter_label(&planned, session, &default_keymap()), expected, "{text:?}");
    }

    #[test]
    fn border_says_what_enter_does_in_every_state() {
        let session = working();
        check(&session, "and tests", "enter: steer at the next tool · alt+enter: when done");
        check(&session, "Stop, not there", "enter: interrupt with this");
        check(&session, "stopper", "enter: steer at the next tool · alt+enter: when done");
        check(&session, "", "");
        check(&session, "!ls", "enter: run and show the model");
        check(&session, "!!ls", "enter: run, hidden from the model");
        let queue = QueueView { steering: vec!["x".to_owned()], follow_up: Vec::new() };
        let queued = SessionState { queue: queue.into(), ..working() };
        check(&queued, " ", "enter: deliver queued messages now");
        let turn = SessionState { steering_delivery: SteeringDelivery::Turn, ..working() };
        check(&turn, "x", "enter: steer after this turn · alt+enter: when done");
        let now = SessionState { steering_delivery: SteeringDelivery::Now, ..working() };
        check(&now, "x", "enter: interrupt with this · alt+enter: when done");
        let compacting = SessionState { phase: Phase::Compacting, ..working() };
        check(&compacting, "x", "enter: send after the summary · alt+enter: when done");
        let idle = SessionState { phase: Phase::Idle, ..working() };
        check(&idle, "x", "");
        for session in [&idle, &working()] {
            check(session, " /model m-1", "enter: run /model");
            check(session, "/modle", "enter: no command /modle");
        }
        check(&idle, "/etc/hosts has what?", "");
        let label = |planned| enter_label(&planned, &session, &default_keymap());
        let completed = Planned::SubmitCompleted("/login openai".to_owned());
        assert_eq!(label(completed), "enter: run /login openai");
        assert_eq!(label(Planned::Complete), "enter: complete");
        assert_eq!(label(Planned::LineBreak), "enter: line break");
    }

    #[test]
    fn border_names_the_keys_of_the_user_and_no_unbound_one() {
        let mut keymap = default_keymap();
        let overrides = json!({"tui.input.submit": "ctrl+s", "app.message.followUp": []});
        assert_eq!(keymap.apply(overrides.as_object().unwrap()), []);
        let label = |text: &str| enter_label(&Planned::Submit(text.to_owned()), &working(), &keymap);
        assert_eq!(label("x"), "ctrl+s: steer at the next tool");
        assert_eq!(label("!x"), "ctrl+s: run and show the model");
    }
}
