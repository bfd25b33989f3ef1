//! Calls the user back: a notification when pi is done or blocked while its window is not
//! looked at, and progress in the task bar.

use crate::session::{SessionEvent, SessionState};
use crate::tui::term::Control;

use super::app::App;
use super::msg::{Effect, ScreenEffect};

/// Characters of a question or an error that a notification shows.
const MAX_CHARS: usize = 120;

/// What the terminal is told beside the screen.
pub(super) fn follow(app: &App, event: &SessionEvent, out: &mut Vec<Effect>) {
    let settings = &app.session.settings.values;
    let text = if app.is_focused { None } else { news(event, &app.session, app.program_status.failure()) };
    out.extend(text.filter(|_| settings.notifications).map(|text| control(Control::Notify(text))));
    if settings.terminal_progress {
        out.extend(progress(event).map(control));
    }
}

fn control(control: Control) -> Effect {
    ScreenEffect::Control(control).into()
}

/// What a user who looks elsewhere wants to know; `failure` is the error that the run ends with.
fn news(event: &SessionEvent, session: &SessionState, failure: Option<&str>) -> Option<String> {
    let folder = session.cwd.file_name().map(|name| name.to_string_lossy().into_owned());
    let place = session.name.clone().or(folder).unwrap_or_else(|| "pi".to_owned());
    let text = match event {
        SessionEvent::Settled { aborted: false } => {
            failure.map_or_else(|| "is done".to_owned(), |failure| format!("failed: {}", beginning(failure)))
        }
        SessionEvent::Question(question) => {
            format!("asks: {}", beginning(question.text.lines().next().unwrap_or_default()))
        }
        SessionEvent::Ended { reason } => format!("stopped: {reason}"),
        _ => return None,
    };
    Some(format!("{place} {text}"))
}

fn beginning(text: &str) -> String {
    text.chars().take(MAX_CHARS).collect()
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
            assert_eq!(news(&event, &session, None).as_deref(), expected, "{event:?}");
        };
        check(SessionEvent::Settled { aborted: false }, Some("lamp is done"));
        check(SessionEvent::Settled { aborted: true }, None);
        check(SessionEvent::Ended { reason: "a bug".to_owned() }, Some("lamp stopped: a bug"));
        check(SessionEvent::QueueChanged, None);
        let named = SessionState { name: Some("fix the lamp".to_owned()), ..session.clone() };
        let settled = SessionEvent::Settled { aborted: false };
        assert_eq!(news(&settled, &named, None).as_deref(), Some("fix the lamp is done"));
        let failed = news(&settled, &named, Some("overloaded"));
        assert_eq!(failed.as_deref(), Some("fix the lamp failed: overloaded"));
    }
}
