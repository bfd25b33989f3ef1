//! What the border says about Enter, and what Enter does.

use crate::agent::SteeringDelivery;
use crate::session::{Phase, PromptTemplate, QueueView, ResourceOrigin, SessionCommand, Skill, UserCommand};

use super::super::enter_label::enter_label;
use super::*;

/// What becomes of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// The text stays, and nothing happens but that the user is told why.
    Stays,
    Runs,
    Bash {
        hidden: bool,
    },
    /// Given to the session, which knows when it reaches the model.
    Sent,
    /// The session refuses the prompt.
    MissingSkill,
    QueueDelivered,
    LineBreak,
    Completed,
}

/// What the border promises.
fn promised(label: &str, text: &str, phase: Phase) -> Fate {
    let Some(effect) = label.strip_prefix("enter: ") else {
        assert_eq!(label, "", "{text:?}");
        let is_sent = phase == Phase::Idle && !text.trim().is_empty() && text.trim() != "/";
        return if is_sent { Fate::Sent } else { Fate::Stays };
    };
    match effect {
        "complete" => Fate::Completed,
        "line break" => Fate::LineBreak,
        "run and show the model" => Fate::Bash { hidden: false },
        "run, hidden from the model" => Fate::Bash { hidden: true },
        "deliver queued messages now" if phase != Phase::Compacting => Fate::QueueDelivered,
        "deliver queued messages after the summary" if phase == Phase::Compacting => Fate::QueueDelivered,
        "nothing to run yet" | "a command is still running" => Fate::Stays,
        "interrupt with this" if phase == Phase::Compacting => panic!("a summary is not interrupted"),
        effect
            if ["interrupt with ", "steer ", "send after", "run /review", "run /skill:pdf"]
                .iter()
                .any(|when| effect.starts_with(when)) =>
        {
            Fate::Sent
        }
        effect if effect.starts_with("run /") => Fate::Runs,
        // The command refuses and clears it.
        "only the provider's name belongs here" => Fate::Runs,
        // It returns to the editor when the providers were read.
        effect if effect.starts_with("no provider ") => Fate::Runs,
        effect if effect.starts_with("no skill ") => Fate::MissingSkill,
        effect if effect.starts_with("no ") => Fate::Stays,
        effect if effect.ends_with(" takes no arguments") || effect.ends_with(" is not supported yet") => {
            Fate::Stays
        }
        effect if effect.starts_with("wrong argument for /") => Fate::Stays,
        effect if effect.starts_with('/') && effect.contains(" needs ") => Fate::Stays,
        effect => panic!("the border of {text:?} says {effect:?}"),
    }
}

/// Presses Enter.
fn observed(stage: &mut Stage) -> Fate {
    // A space after a command that was completed changes nothing.
    let text = |stage: &Stage| stage.app.input.prompt.composer.text().trim_end_matches(' ').to_owned();
    let before = text(stage);
    stage.effects.clear();
    stage.type_keys("<enter>");
    let is_kept = text(stage) == before;
    let commands = stage.commands();
    if let Some(command) = commands.first() {
        assert_eq!(commands.len(), 1);
        let is_prompt = command.starts_with("Prompt ");
        return match command {
            command if command.starts_with("RunBash") => {
                Fate::Bash { hidden: command.contains("exclude_from_context: true") }
            }
            command if command == "DeliverNow" => Fate::QueueDelivered,
            _ if is_prompt && before.trim_start().starts_with("/skill:nope") => Fate::MissingSkill,
            _ if is_prompt => Fate::Sent,
            _ => Fate::Runs,
        };
    }
    if is_kept && !before.trim().is_empty() {
        let is_told = stage.app.status.hint.is_some() || stage.screen(100, 24).join("\n").contains("Error: ");
        assert!(is_told, "{before:?} stays without a word");
    }
    match text(stage) {
        after if is_kept || after.is_empty() && before.trim().is_empty() => Fate::Stays,
        after if after.is_empty() => Fate::Runs,
        after if after.contains('\n') => Fate::LineBreak,
        _ => Fate::Completed,
    }
}

#[test]
fn border_says_what_enter_does_whatever_is_typed_and_happens() {
    type Change = fn(&mut SessionState);
    let waits: Change = |session| {
        let queue = QueueView { steering: vec!["x".to_owned()], follow_up: Vec::new() };
        (session.phase, session.queue) = (Phase::Running, queue.into());
    };
    let runs: Change = |session| {
        let command = UserCommand { command: "sleep 9".to_owned(), exclude_from_context: false };
        session.user_command = Some(command.into());
    };
    let waits_for_summary: Change = |session| {
        let queue = QueueView { steering: vec!["x".to_owned()], follow_up: Vec::new() };
        (session.phase, session.queue) = (Phase::Compacting, queue.into());
    };
    let states: [(&str, Change); 10] = [
        ("idle", |_| {}),
        ("running", |session| session.phase = Phase::Running),
        ("queued", waits),
        ("retrying", |session| session.phase = Phase::Retrying),
        ("compacting", |session| session.phase = Phase::Compacting),
        ("queued while compacting", waits_for_summary),
        ("command", runs),
        ("turn", |session| {
            (session.phase, session.steering_delivery) = (Phase::Running, SteeringDelivery::Turn);
        }),
        ("now", |session| {
            (session.phase, session.steering_delivery) = (Phase::Running, SteeringDelivery::Now);
        }),
        ("compacting now", |session| {
            (session.phase, session.steering_delivery) = (Phase::Compacting, SteeringDelivery::Now);
        }),
    ];
    let texts = [
        "",
        " ",
        "hello",
        "stop it",
        "line\\",
        "/",
        "/ model",
        "/etc/hosts is odd",
        "/modle",
        "/share",
        "/debug it",
        "/quit",
        "/quit now",
        "/hotkeys",
        "/hotkeys x",
        "/new",
        "/new x",
        "/resume x",
        "/tree x",
        "/context x",
        "/fullscreen x",
        "/session",
        "/session x",
        "/model",
        "/model mini",
        "/compact",
        "/compact the tests",
        "/compact --edit",
        "/reload",
        "/handoff a goal",
        "/handoff",
        "/thinking banana",
        "/trace --tool",
        "/export a.pdf",
        "/name",
        "/copy",
        "/queue",
        "/login",
        "/login acme",
        "/login banana",
        "/login acme KEY",
        "/logout\nAKLT0123456789abcdef",
        "/model\nis a word",
        "/review it",
        "/rev",
        "/pd",
        "/skill:pdf x",
        "/skill:nope",
        "/skill:nope hi",
        "!",
        "!!",
        "! ",
        "!ls",
        "!!ls",
        " !ls",
        "!ls\npwd",
    ];
    for (state, change) in states {
        for text in texts {
            // As a whole, and key by key, which opens suggestions.
            for typed in [false, true] {
                let mut stage = Stage::new();
                stage.session(|session| {
                    session.urgent_words = vec!["stop".to_owned()].into();
                    let (path, origin) = (std::path::PathBuf::from("/s"), ResourceOrigin::User);
                    let (name, description) = ("pdf".to_owned(), String::new());
                    session.skills =
                        [Skill { name, description, path: path.clone(), origin, is_listed: true }].into();
                    let (name, description) = ("review".to_owned(), String::new());
                    let argument_hint = String::new();
                    session.templates =
                        [PromptTemplate { name, description, argument_hint, path, origin }].into();
                });
                stage.session(change);
                if typed && !text.contains('\n') {
                    stage.type_keys(text);
                } else {
                    stage.app.input.prompt.composer.set_text(text);
                }
                let app = &stage.app;
                let is_provider = |name: &str| app.input.completion.knows_provider(name);
                let label = enter_label(
                    &app.input.planned(),
                    (&app.session, app.input.prompt.when_busy(&app.session)),
                    is_provider,
                    &app.keymap,
                );
                let promised = promised(&label, text, app.session.phase);
                let observed = observed(&mut stage);
                assert_eq!(promised, observed, "{text:?} when {state}, typed: {typed}, border: {label:?}");
            }
        }
    }
}

/// The commands that Enter refuses while the agent works are those that the session refuses then.
#[test]
fn commands_that_wait_for_the_agent_are_those_that_the_session_refuses() {
    for command in super::super::commands::all() {
        let mut stage = Stage::new();
        let line = format!("/{} x", command.name);
        let line = if command.args.is_empty() { format!("/{}", command.name) } else { line };
        stage.app.input.prompt.composer.set_text(&line);
        let is_refused = {
            let mut session = (*stage.app.session).clone();
            session.phase = Phase::Running;
            super::super::commands::waits_for_agent(command, "x", &session)
        };
        stage.type_keys("<enter>");
        let needs_idle = stage.effects.iter().any(|effect| match effect {
            Effect::World(WorldEffect::Session(command)) => command.needs_idle(),
            Effect::World(WorldEffect::Reload) => SessionCommand::Reload.needs_idle(),
            _ => false,
        });
        assert_eq!(is_refused, needs_idle, "{line}");
    }
}

#[test]
fn keys_for_later_and_now_send_what_enter_would() {
    let (path, origin) = (std::path::PathBuf::from("/s"), ResourceOrigin::User);
    let (name, description) = ("pdf".to_owned(), String::new());
    let skill = Skill { name, description, path, origin, is_listed: true };
    for (key, when) in [("<enter>", "Steer"), ("<alt+enter>", "FollowUp"), ("<ctrl+enter>", "Now")] {
        let mut stage = Stage::new();
        stage.session(|session| (session.phase, session.skills) = (Phase::Running, [skill.clone()].into()));
        stage.type_keys("/skill:p").type_keys(key);
        let commands = stage.commands();
        let [command] = &commands[..] else { panic!("{key}: {commands:?}") };
        assert!(command.contains("\"/skill:pdf") && command.contains(when), "{key}: {command}");
    }
}
