//! Lists and dialogs that receive all keys until they close.

mod confirm;
mod dialog;
mod fork;
mod models;
mod question;
mod queue;
mod scope;
mod settings;
mod summary;
mod theme;
mod thinking;
mod trace;
mod trust;

use crate::session::{SessionCommand, SessionState, TrustChoice};
use crate::tui::keymap::Keymap;
use crate::tui::term::InputEvent;
use crate::tui::text::Row;
use crate::tui::widgets::{DialogCx, Pager};

use super::msg::{Effect, WorldEffect};
use super::reports::ReportDone;
use super::session_picker::ChosenSession;
use super::share::ShareDone;

pub(super) use confirm::Confirmation;
pub(super) use dialog::Dialog;
pub(super) use fork::ForkPoints;
pub(super) use models::{ModelChoice, Models};
pub(super) use question::QuestionDialog;
pub(super) use queue::QueuedMessages;
pub(super) use scope::ModelScope;
pub(super) use settings::SettingsDialog;
pub(super) use summary::SummaryReview;
pub(super) use theme::Themes;
pub(super) use thinking::ThinkingLevels;
pub(super) use trace::{ReadTrace, TraceDialog};
pub(super) use trust::TrustDialog;

/// Rows, and the cursor's row and column among them.
pub(super) type Drawn = (Vec<Row>, Option<(u16, u16)>);

/// A dialog over transcript and dock that handles all input. `M` is the type of its
/// results.
pub(super) trait Overlay<M = DialogOutcome> {
    fn handle(&mut self, input: &InputEvent, keymap: &Keymap) -> OverlayStep<M>;

    /// Updates for a change of the session; returns whether it stays open.
    fn session_changed(&mut self, _: &SessionState) -> bool {
        true
    }

    /// Updates for a change of the models.
    fn models_changed(&mut self, _: &[ModelChoice]) {}

    /// Takes what it asked for; returns what it did not ask for.
    fn on_report(&mut self, done: ReportDone) -> Option<ReportDone> {
        Some(done)
    }

    /// Takes the result of a step of `/share`; returns whether it stays open.
    fn on_share(&mut self, _: &ShareDone) -> bool {
        true
    }

    /// The pager in it, if it shows a text to read. It gets the wheel, and no question covers it: that
    /// would take keys that scroll.
    fn pager(&mut self) -> Option<&mut Pager> {
        None
    }

    /// The theme that it shows in place of that of the settings.
    fn previewed_theme(&self) -> Option<&str> {
        None
    }

    /// Its rows, at most those there is room for, and the cursor's row and column among them.
    fn render(&mut self, cx: &DialogCx<'_>) -> Drawn;
}

/// The result of an input.
#[derive(Debug)]
pub(super) enum OverlayStep<M = DialogOutcome> {
    Stay,
    /// Stays open and returns a result.
    StayWith(M),
    Close,
    CloseWith(M),
}

/// The user's decision in a dialog.
#[derive(Debug, PartialEq)]
pub(super) enum DialogOutcome {
    /// An effect on the session or outside the app.
    Effect(Effect),
    TrustChosen(TrustChoice),
    SignInCancelled,
    SessionChosen(ChosenSession),
    /// A prompt of an earlier session, for the editor.
    PromptChosen(String),
}

impl DialogOutcome {
    /// Sends a command to the session.
    pub(super) fn session(command: SessionCommand) -> Self {
        Self::Effect(Effect::session(command))
    }
}

impl From<WorldEffect> for DialogOutcome {
    fn from(effect: WorldEffect) -> Self {
        Self::Effect(effect.into())
    }
}

impl OverlayStep {
    /// Closes, and sends a command to the session.
    pub(super) fn close_with(command: SessionCommand) -> Self {
        Self::CloseWith(DialogOutcome::session(command))
    }
}

#[cfg(test)]
pub(super) mod tests;
