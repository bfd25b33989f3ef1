//! Calls the user back: a notification when pi is done or blocked while its window is not
//! looked at, and progress in the task bar.

use crate::session::{SessionEvent, SessionState};
use crate::tui::term::Control;

use super::app::App;
use super::msg::{Effect, ScreenEffect};

/// Characters of a question that a notification shows.
const MAX_CHARS: usize = 120;

/// What the terminal is told beside the screen.
pub(super) fn follow(app: &App, event: &SessionEvent, out: &mut Vec<Effect>) {
    let settings = &app.session.settings.values;
    let text = if app.is_focused { None } else { news(event, &app.session) };
    out.extend(text.filter(|_| settings.notifications).map(|text| control(Control::Notify(text))));
    if settings.terminal_progress {
        out.extend(progress(event).map(control));
    }
}

fn control(control: Control) -> Effect {
    ScreenEffect::Control(control).into()
}

/// What a user who looks elsewhere wants to know.
fn news(event: &SessionEvent, session: &SessionState) -> Option<String> {
    let folder = session.cwd.file_name().map(|name| name.to_string_lossy().into_owned());
    let place = session.name.clone().or(folder).unwrap_or_else(|| "pi".to_owned());
    let text = match event {
        SessionEvent::Settled { aborted: false } => "is done".to_owned(),
        SessionEvent::Question(question) => {
            let first = question.text.lines().next().unwrap_or_default();
            format!("asks: {}", first.chars().take(MAX_CHARS).collect::<String>())
        }
        SessionEvent::Ended { reason } => format!("stopped: {reason}"),
        _ => return None,
    };
    Some(format!("{place} {text}"))
}

/// The task bar while pi works.
fn progress(event: &SessionEvent) -> Option<Control> {
    use crate::agent::AgentEvent;
    match event {
        SessionEvent::Agent(AgentEvent::AgentStart) | SessionEvent::CompactionStarted { .. } => {
            Some(Control::Busy)
        }
        SessionEvent::Settled { .. } | SessionEvent::CompactionEnded { .. } | SessionEvent::Ended { .. } => {
            Some(Control::Progress(None))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use crate::ai::Model;

    use super::*;

    #[test]
    fn news_name_the_session_and_what_happened() {
        let session = SessionState::of(&Arc::new(Model::default()), Path::new("/work/lamp"));
        let check = |event: SessionEvent, expected: Option<&str>| {
            assert_eq!(news(&event, &session).as_deref(), expected, "{event:?}");
        };
        check(SessionEvent::Settled { aborted: false }, Some("lamp is done"));
        check(SessionEvent::Settled { aborted: true }, None);
        check(SessionEvent::Ended { reason: "a bug".to_owned() }, Some("lamp stopped: a bug"));
        check(SessionEvent::QueueChanged, None);
        let named = SessionState { name: Some("fix the lamp".to_owned()), ..session.clone() };
        let done = news(&SessionEvent::Settled { aborted: false }, &named);
        assert_eq!(done.as_deref(), Some("fix the lamp is done"));
    }
}
