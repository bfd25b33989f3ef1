//! What pi is doing, for terminals that show it beside the window's name (OSC 7501).
//!
//! Messages contain the session's name and pi's own words, never prompts or text of a model.

use crate::agent::AgentEvent;
use crate::ai::{Message, StopReason, failure_text};
use crate::config::Env;
use crate::session::{BudgetPeriod, Phase, QuestionKind, SessionEvent, SessionState};
use crate::tui::term::{Control, ProgramState};

use super::appearance::in_tmux;
use super::msg::{Effect, ScreenEffect};

/// Characters of a message at most; the protocol allows 2048 bytes.
const MAX_CHARS: usize = 200;

/// What the terminal was told.
#[derive(Debug, Default)]
pub(super) struct ProgramStatus {
    /// Whether the terminal shows it.
    pub(super) is_shown: bool,
    /// The error of the last answer of the run.
    failure: Option<String>,
    /// Whether a question of the session waits for its answer.
    is_asking: bool,
    last: Option<Control>,
}

/// Whether the terminal shows the status: as the environment says; `None` to ask the terminal.
/// tmux and screen have no answer for the terminal around them.
pub(super) fn is_shown(env: &Env) -> Option<bool> {
    match env.get("PI_PROGRAM_STATUS").as_deref() {
        Some("1") => Some(true),
        Some("0") => Some(false),
        _ => (in_tmux(env) || env.is_set("STY")).then_some(false),
    }
}

impl ProgramStatus {
    /// Tells the terminal about an event; `session` is the state after it.
    pub(super) fn follow(&mut self, event: &SessionEvent, session: &SessionState, out: &mut Vec<Effect>) {
        if let Some(control) = self.status(event, session)
            && self.is_shown
            && self.last.as_ref() != Some(&control)
        {
            self.last = Some(control.clone());
            out.push(ScreenEffect::Control(control).into());
        }
    }

    /// The first line of the error that the run ends with, until it has settled.
    pub(super) fn failure(&self) -> Option<&str> {
        Some(self.failure.as_deref()?.lines().next().unwrap_or_default())
    }

    fn status(&mut self, event: &SessionEvent, session: &SessionState) -> Option<Control> {
        if let SessionEvent::QuestionClosed { .. } | SessionEvent::Opened(_) = event {
            self.is_asking = false;
        }
        let status = |state, kind, message: String| {
            Some(Control::Status { state, kind, message: message.chars().take(MAX_CHARS).collect() })
        };
        let name = || session.name.clone().unwrap_or_default();
        match event {
            SessionEvent::Opened(_) => status(ProgramState::Idle, None, String::new()),
            SessionEvent::Agent(AgentEvent::MessageEnd(message)) => {
                self.failure = match &**message {
                    Message::Assistant(answer) if answer.stop_reason == StopReason::Error => {
                        Some(failure_text(answer).unwrap_or_default())
                    }
                    _ => None,
                };
                None
            }
            SessionEvent::Agent(AgentEvent::AgentStart) | SessionEvent::CompactionStarted { .. } => {
                status(ProgramState::Working, None, name())
            }
            SessionEvent::Question(question) => {
                self.is_asking = true;
                let (kind, title) = match question.kind {
                    QuestionKind::Trust => ("permission", "Trust this folder?"),
                    QuestionKind::ToolCall(_) => ("permission", "Allow a tool call?"),
                    QuestionKind::Budget(BudgetPeriod::Answers) => {
                        ("question", "Continue beyond the limit of answers?")
                    }
                    QuestionKind::Budget(_) => ("question", "Continue beyond the limit of cost?"),
                };
                status(ProgramState::Blocked, Some(kind), title.to_owned())
            }
            // A run that a limit of cost ends has settled while its question waits.
            SessionEvent::Settled { .. } if self.is_asking => None,
            SessionEvent::QuestionClosed { .. } if session.phase != Phase::Idle => {
                status(ProgramState::Working, None, name())
            }
            SessionEvent::QuestionClosed { .. } | SessionEvent::Settled { aborted: true } => {
                status(ProgramState::Idle, None, String::new())
            }
            SessionEvent::Settled { aborted: false } | SessionEvent::CompactionEnded { .. }
                if session.phase == Phase::Idle =>
            {
                let failure = self.failure().map(str::to_owned);
                self.failure = None;
                match failure {
                    Some(failure) => status(ProgramState::Error, None, failure),
                    None => status(ProgramState::Done, None, name()),
                }
            }
            SessionEvent::Ended { reason } => status(ProgramState::Error, None, reason.clone()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use crate::ai::{Api, AssistantMessage, Model};
    use crate::session::{Question, QuestionId};

    use super::*;

    fn session(phase: Phase) -> SessionState {
        let mut session = SessionState::of(&Arc::new(Model::default()), Path::new("/work/lamp"));
        (session.phase, session.name) = (phase, Some("fix the lamp".to_owned()));
        session
    }

    /// The states that events lead to, each with the phase after it.
    fn told(events: Vec<(SessionEvent, Phase)>) -> Vec<String> {
        let mut status = ProgramStatus { is_shown: true, ..ProgramStatus::default() };
        let mut out = Vec::new();
        for (event, phase) in events {
            status.follow(&event, &session(phase), &mut out);
        }
        let text = |effect: Effect| match effect {
            Effect::Screen(ScreenEffect::Control(Control::Status { state, kind, message })) => {
                format!("{state:?} {} {message}", kind.unwrap_or("-"))
            }
            other => format!("{other:?}"),
        };
        out.into_iter().map(text).collect()
    }

    fn working() -> (SessionEvent, Phase) {
        (SessionEvent::Agent(AgentEvent::AgentStart), Phase::Running)
    }

    #[test]
    fn a_question_about_a_limit_names_its_kind() {
        for (period, kind) in [(BudgetPeriod::Answers, "answers"), (BudgetPeriod::Turn, "cost")] {
            let (id, kind_of) = (QuestionId::new(1), QuestionKind::Budget(period));
            let question = Question { id, kind: kind_of, text: String::new(), options: vec![], default: 0 };
            let told = told(vec![(SessionEvent::Question(Arc::new(question)), Phase::Running)]);
            assert_eq!(told, [format!("Blocked question Continue beyond the limit of {kind}?")]);
        }
    }

    #[test]
    fn states_follow_the_session_and_name_nothing_of_the_conversation() {
        let question = Question {
            id: QuestionId::new(1),
            kind: QuestionKind::Trust,
            text: "secret text".to_owned(),
            options: vec![],
            default: 0,
        };
        let question = Arc::new(question);
        let states = told(vec![
            working(),
            working(),
            (SessionEvent::Question(Arc::clone(&question)), Phase::Running),
            (SessionEvent::QuestionClosed { id: QuestionId::new(1) }, Phase::Running),
            (SessionEvent::Settled { aborted: false }, Phase::Idle),
            working(),
            (SessionEvent::Settled { aborted: true }, Phase::Idle),
        ]);
        let expected = [
            "Working - fix the lamp",
            "Blocked permission Trust this folder?",
            "Working - fix the lamp",
            "Done - fix the lamp",
            "Working - fix the lamp",
            "Idle - ",
        ];
        assert_eq!(states, expected);
        // One about a limit of cost waits after the run.
        let states = told(vec![
            working(),
            (SessionEvent::Question(question), Phase::Running),
            (SessionEvent::Settled { aborted: true }, Phase::Idle),
            (SessionEvent::QuestionClosed { id: QuestionId::new(1) }, Phase::Idle),
        ]);
        assert_eq!(states, ["Working - fix the lamp", "Blocked permission Trust this folder?", "Idle - "]);
    }

    #[test]
    fn a_failed_run_ends_as_an_error() {
        let failed =
            AssistantMessage::builder(Api::ANTHROPIC_MESSAGES, "x", "x").failed("overloaded\nmore").build();
        let end = SessionEvent::Agent(AgentEvent::MessageEnd(Arc::new(failed.into())));
        let states = told(vec![
            working(),
            (end, Phase::Running),
            (SessionEvent::Settled { aborted: false }, Phase::Idle),
        ]);
        assert_eq!(states.len(), 2);
        assert!(states[1].starts_with("Error - ") && !states[1].contains("more"), "{states:?}");
    }

    #[test]
    fn terminals_that_show_nothing_are_told_nothing() {
        let mut out = Vec::new();
        ProgramStatus::default().follow(&working().0, &session(Phase::Running), &mut out);
        assert_eq!(out, []);
        let check = |env: &[(&str, &str)], expected| assert_eq!(is_shown(&Env::of(env)), expected, "{env:?}");
        check(&[], None);
        check(&[("TMUX", "/tmp/tmux")], Some(false));
        check(&[("STY", "1.x")], Some(false));
        check(&[("TMUX", "/tmp/tmux"), ("PI_PROGRAM_STATUS", "1")], Some(true));
        check(&[("PI_PROGRAM_STATUS", "0")], Some(false));
    }
}
