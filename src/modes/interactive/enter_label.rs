//! What Enter will do, as the editor's border says it, with the user's keys.

use crate::agent::{QueueKind, SteeringDelivery};
use crate::session::{Phase, SessionState, WhenBusy, is_urgent};
use crate::tui::keymap::Keymap;

use super::super::slash::is_unsupported;
use super::commands::{self, name_of};
use super::input_area::Planned;
use super::prompt::{Refused, Submission, classify, key_of};

/// What Enter will do, unless it just sends the text or has no effect. `is_provider` knows the names
/// that `/login` and `/logout` know, `when_busy` is what Enter sends a prompt with.
pub(super) fn enter_label(
    planned: &Planned,
    (session, when_busy): (&SessionState, WhenBusy),
    is_provider: impl Fn(&str) -> bool,
    keymap: &Keymap,
) -> String {
    let key = keymap.hint("tui.input.submit");
    let enter = |effect: &str| if key.is_empty() { String::new() } else { format!("{key}: {effect}") };
    let text = match planned {
        Planned::Complete => return enter("complete"),
        Planned::LineBreak => return enter("line break"),
        Planned::Submit(text) | Planned::Run(text) => text,
    };
    let submission = classify(text.trim(), session);
    match submission {
        _ if key_of(&submission, &is_provider).is_some() => enter("only the provider's name belongs here"),
        Submission::Nothing => String::new(),
        // A summary is not interrupted.
        Submission::DeliverQueue if session.phase == Phase::Compacting => {
            enter("deliver queued messages after the summary")
        }
        Submission::DeliverQueue => enter("deliver queued messages now"),
        // The list of providers is known before it is asked for.
        Submission::Command(line) if unknown_provider(&line, &is_provider).is_some() => {
            enter(&format!("no provider {}", unknown_provider(&line, &is_provider).unwrap_or_default()))
        }
        // What was completed must be readable before it is run, and stays the same when it is typed.
        Submission::Command(line) => {
            enter(&format!("run /{}", line.split_whitespace().collect::<Vec<_>>().join(" ")))
        }
        Submission::Bash { .. } if session.is_read_only => enter("run, not stored: open elsewhere"),
        Submission::Bash { exclude_from_context: true, .. } => enter("run, hidden from the model"),
        Submission::Bash { exclude_from_context: false, .. } => enter("run and show the model"),
        Submission::MissingSkill(_) => {
            let name = session.missing_skill(text).filter(|name| !name.is_empty());
            enter(&format!("no skill {}", name.unwrap_or("without a name")))
        }
        Submission::Refused(refused) => match refusal(&refused) {
            why if why.is_empty() => why,
            why => enter(&why),
        },
        Submission::Prompt(_) => {
            let now = prompt_label(text, (session, when_busy), enter);
            let parts = [now, later_label(text, (session, when_busy), keymap)];
            parts.iter().filter(|part| !part.is_empty()).map(String::as_str).collect::<Vec<_>>().join(" · ")
        }
    }
}

/// The argument of `/login`, if it names no provider.
fn unknown_provider(line: &str, is_provider: impl Fn(&str) -> bool) -> Option<&str> {
    let (_, name) = commands::find(line).filter(|(command, _)| command.name == "login")?;
    (!name.is_empty() && !is_provider(name)).then_some(name)
}

/// When the prompt `text` reaches the model; empty if that is at once and `text` is all of it.
fn prompt_label(
    text: &str,
    (session, when_busy): (&SessionState, WhenBusy),
    enter: impl Fn(&str) -> String,
) -> String {
    if session.is_read_only {
        return enter("the session is open elsewhere and read-only here");
    }
    let called = called(text, session);
    let run = |otherwise: &str| called.map_or_else(|| otherwise.to_owned(), |name| format!("run /{name}"));
    if session.phase == Phase::Idle {
        return called.map(|_| enter(&run(""))).unwrap_or_default();
    }
    if is_queued_again(when_busy) {
        return enter("queue again after the run");
    }
    let interrupt =
        || format!("interrupt with {}", called.map_or("this".to_owned(), |name| format!("/{name}")));
    enter(&match (session.phase, session.steering_delivery) {
        (Phase::Compacting, _) => format!("{} after the summary", run("send")),
        _ if is_urgent(text, &session.urgent_words) => interrupt(),
        (_, SteeringDelivery::Tools) => format!("{} at the next tool", run("steer")),
        (_, SteeringDelivery::Turn) => format!("{} after this turn", run("steer")),
        (_, SteeringDelivery::Now) => interrupt(),
    })
}

/// The key that sends the prompt `text` when the agent is done; empty if Enter says all there is to say.
fn later_label(text: &str, (session, when_busy): (&SessionState, WhenBusy), keymap: &Keymap) -> String {
    let is_urgent = session.phase != Phase::Compacting && is_urgent(text, &session.urgent_words);
    let has_later = session.phase != Phase::Idle && !session.is_read_only;
    let key = keymap.hint("app.message.followUp");
    if key.is_empty() || !has_later || is_urgent || is_queued_again(when_busy) {
        return String::new();
    }
    format!("{key}: when done")
}

/// Whether an edited message goes back to those that wait for the end of the run.
fn is_queued_again(when_busy: WhenBusy) -> bool {
    matches!(when_busy, WhenBusy::At { kind: QueueKind::FollowUp, .. })
}

/// The name of the skill, with `skill:`, or of the prompt template that `text` calls.
fn called<'a>(text: &'a str, session: &SessionState) -> Option<&'a str> {
    let name = name_of(text.trim_start().strip_prefix('/')?);
    let is_skill = |skill: &str| session.skills.iter().any(|one| one.name == skill);
    let is_called = session.templates.iter().any(|template| template.name == name)
        || name.strip_prefix("skill:").is_some_and(is_skill);
    is_called.then_some(name)
}

/// Why Enter does nothing.
fn refusal(refused: &Refused) -> String {
    match refused {
        Refused::Unknown { line } if line.is_empty() => String::new(),
        Refused::Unknown { line } if is_unsupported(name_of(line)) => {
            format!("/{} is not supported yet", name_of(line))
        }
        Refused::Unknown { line } => format!("no command /{}", name_of(line)),
        Refused::Space => "no command, a space follows the slash".to_owned(),
        Refused::TakesNoArguments { line } => format!("/{} takes no arguments", name_of(line)),
        Refused::WrongArguments { line, .. } => wrong_arguments(line),
        Refused::Working { line } => format!("no /{} while the agent works", name_of(line)),
        Refused::CommandRuns => "a command is still running".to_owned(),
        Refused::NoBashCommand => "nothing to run yet".to_owned(),
    }
}

/// As short as the border needs it; Enter gives the whole reason.
fn wrong_arguments(line: &str) -> String {
    match commands::find(line) {
        Some((command, args)) if commands::lacks_arguments(command, args) => {
            format!("/{} needs {}", command.name, command.args)
        }
        _ => format!("wrong argument for /{}", name_of(line)),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use serde_json::json;

    use crate::ai::Model;
    use crate::session::{PromptTemplate, QueueView, ResourceOrigin, Skill, UserCommand};

    use super::super::keybindings::default_keymap;
    use super::*;

    fn working() -> SessionState {
        let session = SessionState::of(&Arc::new(Model::default()), Path::new("/"));
        SessionState { phase: Phase::Running, urgent_words: vec!["stop".to_owned()].into(), ..session }
    }

    #[track_caller]
    fn check(session: &SessionState, text: &str, expected: &str) {
        let planned = Planned::Submit(text.to_owned());
        let is_provider = |name: &str| ["Amazon Bedrock", "groq", "openai"].contains(&name);
        assert_eq!(
            enter_label(&planned, (session, WhenBusy::Steer), is_provider, &default_keymap()),
            expected,
            "{text:?}"
        );
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
        for text in ["x", "Stop, not there"] {
            check(&compacting, text, "enter: send after the summary · alt+enter: when done");
        }
        let queued = SessionState { phase: Phase::Compacting, ..queued };
        check(&queued, "", "enter: deliver queued messages after the summary");
        let idle = SessionState { phase: Phase::Idle, ..working() };
        check(&idle, "x", "");
        for session in [&idle, &working()] {
            check(session, " /model m-1", "enter: run /model m-1");
            check(session, "/modle", "enter: no command /modle");
            check(session, "/mcp", "enter: /mcp is not supported yet");
            check(session, "/quit now", "enter: /quit takes no arguments");
            check(session, "/skill:nope hi", "enter: no skill nope");
            check(session, "/skill:", "enter: no skill without a name");
            for line in ["/login groq KEY", "/login AKLT0123456789abcdef", "/logout\nsk-ant-api03-canary"] {
                check(session, line, "enter: only the provider's name belongs here");
            }
            check(session, "/login Amazon Bedrock", "enter: run /login Amazon Bedrock");
            check(session, "/login groq", "enter: run /login groq");
            check(session, "/login banana", "enter: no provider banana");
            check(session, "/login", "enter: run /login");
            // A key may be left of a provider that is no longer known.
            check(session, "/logout banana", "enter: run /logout banana");
            check(session, "!", "enter: nothing to run yet");
            check(session, "/", "");
        }
        let read_only = SessionState { is_read_only: true, ..idle.clone() };
        check(&read_only, "x", "enter: the session is open elsewhere and read-only here");
        check(&read_only, "!ls", "enter: run, not stored: open elsewhere");
        check(&idle, "/handoff", "enter: /handoff needs GOAL");
        check(&idle, "/handoff  tests", "enter: run /handoff tests");
        check(&idle, "/import ''", "enter: /import needs FILE");
        check(&idle, "/import ", "enter: /import needs FILE");
        check(&idle, "/thinking banana", "enter: wrong argument for /thinking");
        check(&idle, "/thinking high", "enter: run /thinking high");
        check(&idle, "/trace --tool", "enter: wrong argument for /trace");
        check(&idle, "/trace --tool bash", "enter: run /trace --tool bash");
        check(&idle, "/compact --edit", "enter: run /compact --edit");
        check(&idle, "/compact --hard", "enter: wrong argument for /compact");
        check(&idle, "/export 'a b.html'", "enter: run /export 'a b.html'");
        check(&idle, "/export a.pdf", "enter: wrong argument for /export");
        check(&idle, "/etc/hosts has what?", "");
        check(&idle, "/compact", "enter: run /compact");
        check(&working(), "/compact the tests", "enter: no /compact while the agent works");
        check(&working(), "/reload", "enter: no /reload while the agent works");
        let command = UserCommand { command: "sleep 9".to_owned(), exclude_from_context: false };
        let runs = SessionState { user_command: Some(command.into()), ..idle.clone() };
        check(&runs, "!ls", "enter: a command is still running");
        let label = |planned| {
            enter_label(
                &planned,
                (&session, WhenBusy::Steer),
                |name: &str| name == "openai",
                &default_keymap(),
            )
        };
        let completed = Planned::Submit("/login openai".to_owned());
        assert_eq!(label(completed), "enter: run /login openai");
        let typed = Planned::Submit("/model   demo/pi".to_owned());
        assert_eq!(label(typed), "enter: run /model demo/pi");
        assert_eq!(label(Planned::Complete), "enter: complete");
        assert_eq!(label(Planned::LineBreak), "enter: line break");
    }

    #[test]
    fn border_names_the_template_or_skill_that_is_run() {
        let (path, origin) = (Path::new("/s").to_owned(), ResourceOrigin::User);
        let (name, description) = ("greet".to_owned(), String::new());
        let skill = Skill { name, description, path: path.clone(), origin, is_listed: true };
        let (name, description) = ("tpl".to_owned(), String::new());
        let template = PromptTemplate { name, description, argument_hint: String::new(), path, origin };
        let session = SessionState { skills: [skill].into(), templates: [template].into(), ..working() };
        let idle = SessionState { phase: Phase::Idle, ..session.clone() };
        let label = |planned: &Planned, session: &SessionState| {
            enter_label(planned, (session, WhenBusy::Steer), |_| false, &default_keymap())
        };
        for (text, call) in [("/tpl", "/tpl"), ("/skill:greet ", "/skill:greet"), ("/tpl it", "/tpl")] {
            let (completed, typed) = (Planned::Run(text.to_owned()), Planned::Submit(text.to_owned()));
            for planned in [&completed, &typed] {
                assert_eq!(label(planned, &idle), format!("enter: run {call}"), "{planned:?}");
            }
            let now = SessionState { steering_delivery: SteeringDelivery::Now, ..session.clone() };
            let compacting = SessionState { phase: Phase::Compacting, ..session.clone() };
            let later = "alt+enter: when done";
            for planned in [&completed, &typed] {
                assert_eq!(label(planned, &session), format!("enter: run {call} at the next tool · {later}"));
                assert_eq!(label(planned, &now), format!("enter: interrupt with {call} · {later}"));
                let after = format!("enter: run {call} after the summary · {later}");
                assert_eq!(label(planned, &compacting), after);
            }
        }
    }

    #[test]
    fn border_names_the_keys_of_the_user_and_no_unbound_one() {
        let mut keymap = default_keymap();
        let overrides = json!({"tui.input.submit": "ctrl+s", "app.message.followUp": []});
        assert_eq!(keymap.apply(overrides.as_object().unwrap()), []);
        let label = |text: &str| {
            enter_label(&Planned::Submit(text.to_owned()), (&working(), WhenBusy::Steer), |_| false, &keymap)
        };
        assert_eq!(label("x"), "ctrl+s: steer at the next tool");
        assert_eq!(label("!x"), "ctrl+s: run and show the model");
    }
}
