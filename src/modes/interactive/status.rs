//! The row above the editor: the current activity, and how to stop it.

use std::borrow::Cow;
use std::time::Duration;

use crate::agent::AgentEvent;
use crate::ai::ThinkingLevel;
use crate::session::{CompactionReason, Phase, SessionEvent, SessionState, SummarySource};
use crate::tui::text::{Ellipsis, Row, Run, sanitize_line, truncate, truncate_row, width};
use crate::tui::theme::{Theme, Token};
use crate::tui::widgets::spinner;

use super::app::App;

/// In place of the spinner.
const STILL: &str = "•";
/// Between activity and hint.
const SEPARATOR_CELLS: usize = 3;

/// Shows what became of a key where the user looks: in the tree if that is open.
pub(super) fn show_hint(app: &mut App, text: &str) {
    match app.dialogs.tree() {
        Some(tree) => tree.set_note(text),
        None => app.status.hint = Some(text.into()),
    }
}

/// The session's activity.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) enum Status {
    #[default]
    Idle,
    Working {
        since: Duration,
    },
    Retrying {
        /// Of a summary, not of an answer.
        is_summary: bool,
        attempt: u32,
        max_attempts: u32,
        at: Duration,
    },
    RunningBash {
        since: Duration,
    },
    Summarizing {
        since: Duration,
        source: SummarySource,
    },
}

/// A text of one line, in forms that say the same, each with less room than the one before.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Hint(Vec<String>);

impl Hint {
    pub(super) fn shortened(forms: impl IntoIterator<Item = String>) -> Self {
        Self(forms.into_iter().collect())
    }

    /// The first form that has room, or the last one.
    fn fitting(&self, room: usize) -> Cow<'_, str> {
        let mut forms = self.0.iter().map(|form| sanitize_line(form));
        let first = forms.find(|form| width(form) <= room);
        first.or_else(|| self.0.last().map(|form| sanitize_line(form))).unwrap_or_default()
    }
}

impl From<String> for Hint {
    fn from(text: String) -> Self {
        Self(vec![text])
    }
}

impl From<&str> for Hint {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

/// The status row. Always one row high, so that the layout stays stable.
#[derive(Debug, Default)]
pub(super) struct StatusLine {
    pub(super) status: Status,
    /// A short response to the user's last action; removed by the next key.
    pub(super) hint: Option<Hint>,
    /// Whether nothing may move, because the user asked for that.
    pub(super) is_still: bool,
    /// When the user's command started.
    bash_since: Option<Duration>,
    /// The model and its thinking, as they were when the session was opened or last shown.
    selection: Option<(String, ThinkingLevel)>,
}

impl StatusLine {
    /// Handles an event of the session; `now` is monotonic.
    pub(super) fn on_session_event(&mut self, event: &SessionEvent, session: &SessionState, now: Duration) {
        let is_idle = session.phase == Phase::Idle;
        match event {
            SessionEvent::Agent(AgentEvent::AgentStart) => self.status = Status::Working { since: now },
            SessionEvent::RetryScheduled { attempt, max_attempts, delay, .. }
            | SessionEvent::SummaryRetryScheduled { attempt, max_attempts, delay, .. } => {
                let is_summary = matches!(event, SessionEvent::SummaryRetryScheduled { .. });
                let (attempt, max_attempts, at) = (*attempt, *max_attempts, now + *delay);
                self.status = Status::Retrying { is_summary, attempt, max_attempts, at };
            }
            SessionEvent::BashStarted { .. } => {
                self.bash_since = Some(now);
                if is_idle {
                    self.status = Status::RunningBash { since: now };
                }
            }
            SessionEvent::BashEnded { .. } => {
                self.bash_since = None;
                if is_idle {
                    self.status = Status::Idle;
                }
            }
            SessionEvent::Settled { .. } => {
                self.status = self.bash_since.map_or(Status::Idle, |since| Status::RunningBash { since });
            }
            SessionEvent::Opened(_) => self.selection = Some(selection(session)),
            // The event also reports other changes, such as those of the name and the file. They come
            // with earlier events too.
            SessionEvent::SelectionChanged if self.selection != Some(selection(session)) => {
                self.selection = Some(selection(session));
                self.hint = Some(format!("{} · thinking {}", session.model.id, session.thinking).into());
            }
            SessionEvent::CompactionStarted { reason } => {
                let source = SummarySource::Compaction(*reason);
                self.status = Status::Summarizing { since: now, source };
            }
            SessionEvent::BranchSummaryStarted => {
                self.status = Status::Summarizing { since: now, source: SummarySource::Branch };
            }
            SessionEvent::HandoffStarted => {
                self.status = Status::Summarizing { since: now, source: SummarySource::Handoff };
            }
            SessionEvent::SummaryRetryStarted { source } => {
                self.status = Status::Summarizing { since: now, source: *source };
            }
            SessionEvent::CompactionEnded { .. }
            | SessionEvent::BranchSummaryEnded { .. }
            | SessionEvent::HandoffEnded { .. } => {
                self.status = Status::Idle;
            }
            SessionEvent::Ended { .. } => {
                self.bash_since = None;
                self.status = Status::Idle;
            }
            SessionEvent::SelectionChanged
            | SessionEvent::Navigated(_)
            | SessionEvent::Agent(_)
            | SessionEvent::QueueChanged
            | SessionEvent::QueueReturned(_)
            | SessionEvent::PromptReturned { .. }
            | SessionEvent::SettingsChanged { .. }
            | SessionEvent::ProjectChanged
            | SessionEvent::Question(_)
            | SessionEvent::QuestionClosed { .. }
            | SessionEvent::RetryEnded { .. }
            | SessionEvent::SummaryDrafted(_)
            | SessionEvent::SummaryDecided { .. }
            | SessionEvent::SummaryRetriesFinished
            | SessionEvent::BashOutput { .. }
            | SessionEvent::EntryAppended(_)
            | SessionEvent::Notice { .. } => {}
        }
    }

    /// Whether the row changes by itself.
    pub(super) fn is_animated(&self) -> bool {
        self.status != Status::Idle
    }

    /// Shows `quit_hint` unless there is a newer response, after the activity, which keeps its
    /// place: it says how to stop it. `unsaved` is the reason why part of
    /// the session is not on disk, which is shown until it is.
    pub(super) fn row(
        &self,
        now: Duration,
        interrupt_key: &str,
        quit_hint: Option<&str>,
        unsaved: Option<&str>,
        width: u16,
        theme: &Theme,
    ) -> Row {
        let mut activity = self.activity(now, interrupt_key, width, theme);
        let quit_hint = quit_hint.map(Hint::from);
        match self.hint.as_ref().or(quit_hint.as_ref()) {
            Some(hint) if self.status == Status::Idle => activity = hint_row(hint, width, theme),
            Some(hint) => {
                let room = usize::from(width).saturating_sub(activity.width() + SEPARATOR_CELLS);
                let hint = format!(" · {}", hint.fitting(room));
                activity.push(Run::new(hint, theme.style(Token::Dim)));
                truncate_row(&mut activity, width, Ellipsis::One);
            }
            None => {}
        }
        let Some(reason) = unsaved else { return activity };
        let warning = format!(" Not saved: {}", sanitize_line(reason));
        let mut row = Row::styled(warning, theme.style(Token::Warning));
        row.append(activity);
        truncate_row(&mut row, width, Ellipsis::One);
        row
    }

    fn activity(&self, now: Duration, interrupt_key: &str, width: u16, theme: &Theme) -> Row {
        let (what, effect) = match &self.status {
            Status::Idle => return Row::default(),
            Status::Working { since } => (format!("Working…{}", elapsed(now, *since)), "interrupt"),
            Status::RunningBash { since } => (format!("Running…{}", elapsed(now, *since)), "stop"),
            Status::Summarizing { since, source } => {
                let what = match source {
                    SummarySource::Compaction(CompactionReason::Manual) => "Compacting the conversation",
                    SummarySource::Compaction(CompactionReason::Threshold) => {
                        "The context window is nearly full, compacting"
                    }
                    SummarySource::Compaction(CompactionReason::Overflow) => {
                        "The context window is full, compacting"
                    }
                    SummarySource::Branch => "Summarising the branch",
                    SummarySource::Handoff => "Drafting the handoff",
                };
                (format!("{what}…{}", elapsed(now, *since)), "cancel")
            }
            Status::Retrying { is_summary, attempt, max_attempts, at } => {
                let seconds = at.saturating_sub(now).as_secs_f64().ceil();
                let what = if *is_summary { " the summary" } else { "" };
                (format!("Retrying{what} ({attempt}/{max_attempts}) in {seconds:.0}s…"), "cancel")
            }
        };
        let text =
            if interrupt_key.is_empty() { what } else { format!("{what} ({interrupt_key} to {effect})") };
        let mut row = Row::from_runs([
            Run::new(
                format!(" {} ", if self.is_still { STILL } else { spinner(now) }),
                theme.style(Token::Accent),
            ),
            Run::new(text, theme.style(Token::Muted)),
        ]);
        truncate_row(&mut row, width, Ellipsis::One);
        row
    }
}

fn selection(session: &SessionState) -> (String, ThinkingLevel) {
    (session.model.reference(), session.thinking)
}

fn hint_row(hint: &Hint, width: u16, theme: &Theme) -> Row {
    let text = format!(" {}", hint.fitting(usize::from(width).saturating_sub(1)));
    Row::styled(truncate(&text, usize::from(width), Ellipsis::One), theme.style(Token::Dim))
}

/// ` 12s`, or empty in the first seconds, when it would only flicker.
fn elapsed(now: Duration, since: Duration) -> String {
    let seconds = now.saturating_sub(since).as_secs();
    match seconds {
        0..3 => String::new(),
        3..60 => format!(" {seconds}s"),
        _ => format!(" {}m {}s", seconds / 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use crate::ai::Model;
    use crate::session::{Entry, NoticeLevel};
    use crate::tui::theme::{Appearance, ColorDepth};

    use super::*;

    #[test]
    fn a_wait_is_counted_down_second_by_second() {
        let at = Duration::from_secs(12);
        let status = Status::Retrying { is_summary: false, attempt: 1, max_attempts: 3, at };
        let line = StatusLine { status, ..StatusLine::default() };
        let theme = Theme::builtin("dark", Appearance::Dark, ColorDepth::True).unwrap();
        let shown = |now_ms: u64| {
            let row = line.row(Duration::from_millis(now_ms), "esc", None, None, 80, &theme);
            row.text().trim().chars().skip(2).collect::<String>()
        };
        assert_eq!(shown(10_000), "Retrying (1/3) in 2s… (esc to cancel)");
        assert_eq!(shown(10_900), "Retrying (1/3) in 2s… (esc to cancel)");
        assert_eq!(shown(11_000), "Retrying (1/3) in 1s… (esc to cancel)");
        assert_eq!(shown(12_500), "Retrying (1/3) in 0s… (esc to cancel)");
        assert!(line.is_animated(), "so that it is drawn again");
    }

    /// What a session sends: the snapshots of all events have the change.
    #[test]
    fn model_is_shown_when_it_changes_and_not_when_the_name_or_the_file_does() {
        let mut line = StatusLine::default();
        let mut session = SessionState::of(&Arc::new(Model::default()), Path::new("/"));
        let entry = r#"{"type":"session_info","id":"a1","parentId":null,"timestamp":"","name":"abc"}"#;
        let named = SessionEvent::EntryAppended(Entry::parse(entry).unwrap().into());
        let notice = SessionEvent::Notice { level: NoticeLevel::Info, text: "writable again".to_owned() };
        let mut hint_after = |first: SessionEvent, session: &SessionState| {
            line.hint = None;
            for event in [first, SessionEvent::SelectionChanged] {
                line.on_session_event(&event, session, Duration::ZERO);
            }
            line.hint.clone()
        };
        assert_eq!(hint_after(SessionEvent::Opened(Default::default()), &session), None);
        session.name = Some("abc".to_owned());
        assert_eq!(hint_after(named, &session), None);
        session.unsaved = Some("no space left".into());
        assert_eq!(hint_after(notice.clone(), &session), None);
        session.thinking = ThinkingLevel::High;
        assert_eq!(hint_after(notice, &session), Some(" · thinking high".into()));
    }

    #[test]
    fn without_a_key_nothing_is_said_about_stopping() {
        let theme = Theme::builtin("dark", Appearance::Dark, ColorDepth::True).unwrap();
        let since = Duration::ZERO;
        let at = Duration::from_secs(12);
        let source = SummarySource::Branch;
        let check = |status: Status, expected: &str| {
            let line = StatusLine { status, is_still: true, ..StatusLine::default() };
            let row = line.row(Duration::from_secs(10), "", None, None, 80, &theme);
            assert_eq!(row.text(), format!(" • {expected}"));
        };
        check(Status::Working { since }, "Working… 10s");
        check(Status::RunningBash { since }, "Running… 10s");
        check(Status::Summarizing { since, source }, "Summarising the branch… 10s");
        check(
            Status::Retrying { is_summary: false, attempt: 1, max_attempts: 3, at },
            "Retrying (1/3) in 2s…",
        );
        let summary = Status::Retrying { is_summary: true, attempt: 1, max_attempts: 3, at };
        check(summary, "Retrying the summary (1/3) in 2s…");
    }

    #[test]
    fn a_response_leaves_the_key_that_interrupts_in_its_place() {
        let theme = Theme::builtin("dark", Appearance::Dark, ColorDepth::True).unwrap();
        let status = Status::Working { since: Duration::ZERO };
        let hint = Some("tool output is expanded".to_owned());
        let line = StatusLine { status, hint: hint.map(Hint::from), is_still: true, ..StatusLine::default() };
        let shown = |width, quit| line.row(Duration::ZERO, "esc", quit, None, width, &theme).text();
        assert_eq!(shown(80, None), " • Working… (esc to interrupt) · tool output is expanded");
        assert_eq!(shown(40, None), " • Working… (esc to interrupt) · tool o…");
        assert!(shown(32, None).starts_with(" • Working… (esc to interrupt)"));
        let line = StatusLine { hint: None, ..line };
        let row = line.row(Duration::ZERO, "esc", Some("ctrl+c again to quit"), None, 80, &theme);
        assert_eq!(row.text(), " • Working… (esc to interrupt) · ctrl+c again to quit");
    }

    #[test]
    fn hint_that_does_not_fit_is_said_shorter() {
        let theme = Theme::builtin("dark", Appearance::Dark, ColorDepth::True).unwrap();
        let forms = ["expanded; a key shows all", "expanded; key", "expanded"];
        let hint = Some(Hint::shortened(forms.map(str::to_owned)));
        let mut line = StatusLine { hint, is_still: true, ..StatusLine::default() };
        let shown =
            |line: &StatusLine, width| line.row(Duration::ZERO, "esc", None, None, width, &theme).text();
        for (width, expected) in
            [(26, " expanded; a key shows all"), (25, " expanded; key"), (10, " expanded"), (8, " expand…")]
        {
            assert_eq!(shown(&line, width), expected);
        }
        line.status = Status::Working { since: Duration::ZERO };
        assert_eq!(shown(&line, 46), " • Working… (esc to interrupt) · expanded; key");
        assert_eq!(shown(&line, 45), " • Working… (esc to interrupt) · expanded");
    }

    #[test]
    fn nothing_turns_with_reduced_motion() {
        let theme = Theme::builtin("dark", Appearance::Dark, ColorDepth::True).unwrap();
        let status = Status::Working { since: Duration::ZERO };
        let line = StatusLine { status, is_still: true, ..StatusLine::default() };
        let shown =
            |now_ms: u64| line.row(Duration::from_millis(now_ms), "esc", None, None, 80, &theme).text();
        assert_eq!(shown(100), shown(900));
        assert_eq!(shown(4_000).trim(), "• Working… 4s (esc to interrupt)");
    }

    #[test]
    fn activity_that_does_not_fit_ends_with_an_ellipsis() {
        let theme = Theme::builtin("dark", Appearance::Dark, ColorDepth::True).unwrap();
        let status = Status::Working { since: Duration::ZERO };
        let line = StatusLine { status, is_still: true, ..StatusLine::default() };
        let shown = |unsaved| line.row(Duration::from_secs(6), "escape", None, unsaved, 20, &theme).text();
        assert_eq!(shown(None), " • Working… 6s (esc…");
        assert_eq!(shown(Some("no space left")), " Not saved: no spac…");
    }

    #[test]
    fn what_is_not_saved_is_shown_beside_what_goes_on() {
        let mut line = StatusLine::default();
        let theme = Theme::builtin("dark", Appearance::Dark, ColorDepth::True).unwrap();
        let shown = |line: &StatusLine, width| {
            let row = line.row(Duration::ZERO, "esc", None, Some("No space\nleft"), width, &theme);
            row.text().trim().to_owned()
        };
        assert!(shown(&line, 80).starts_with("Not saved: No space"), "{}", shown(&line, 80));
        line.hint = Some("copied".into());
        assert!(shown(&line, 80).ends_with(" copied"), "{}", shown(&line, 80));
        assert!(shown(&line, 8).starts_with("Not"), "{}", shown(&line, 8));
        line.status = Status::Working { since: Duration::ZERO };
        line.hint = None;
        assert!(shown(&line, 80).contains("Working"), "{}", shown(&line, 80));
    }
}
