//! Lists and dialogs that have the keyboard until they close.

mod confirm;
mod dialog;
mod models;
mod queue;
mod scope;
mod sessions;
mod thinking;
mod trust;

use crate::session::{SessionCommand, SessionState, TrustChoice};
use crate::tui::keymap::Keymap;
use crate::tui::term::InputEvent;
use crate::tui::text::Row;
use crate::tui::theme::Theme;

use super::msg::{Effect, WorldEffect};

pub(super) use confirm::Confirmation;
pub(super) use dialog::Dialog;
pub(super) use models::{ModelChoice, Models};
pub(super) use queue::QueuedMessages;
pub(super) use scope::ModelScope;
pub(super) use sessions::Sessions;
pub(super) use thinking::ThinkingLevels;
pub(super) use trust::TrustDialog;

/// Rows, and the cursor's row and column among them.
pub(super) type Drawn = (Vec<Row>, Option<(u16, u16)>);

/// Something over transcript and dock that handles all input. `M` is what it asks
/// for.
pub(super) trait Overlay<M = DialogOutcome> {
    fn handle(&mut self, input: &InputEvent, keymap: &Keymap) -> OverlayStep<M>;

    /// The session has changed.
    fn session_changed(&mut self, _: &SessionState) -> OverlayStep<M> {
        OverlayStep::Stay
    }

    /// The list of models has changed.
    fn models_changed(&mut self, _: &[ModelChoice]) {}

    /// Its rows, `max_rows` at most, and the cursor's row and column among them.
    fn render(&mut self, width: u16, max_rows: u16, theme: &Theme) -> Drawn;
}

/// What an overlay does after an input.
#[derive(Debug)]
pub(super) enum OverlayStep<M = DialogOutcome> {
    Stay,
    /// Stays, and something happens.
    StayWith(M),
    Close,
    CloseWith(M),
}

/// What the user decided in a dialog.
#[derive(Debug, PartialEq)]
pub(super) enum DialogOutcome {
    /// Something for the session or the rest of the world to do.
    Effect(Effect),
    TrustChosen(TrustChoice),
    SignInCancelled,
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
