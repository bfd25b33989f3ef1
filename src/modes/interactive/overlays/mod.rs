//! Dialogs and lists that receive all keys until they close.

mod confirm;
mod dialog;
mod entry;
mod logins;
mod models;
mod queue;
mod scope;
mod sessions;
mod sign_in;
mod thinking;
mod trust;

use crate::config::SignInStep;
use crate::session::SessionState;
use crate::tui::keymap::Keymap;
use crate::tui::term::InputEvent;
use crate::tui::text::Row;
use crate::tui::theme::Theme;

use super::msg::AppMsg;

pub(super) use confirm::Confirmation;
pub(super) use entry::Entry;
pub(super) use logins::{LoginMethods, Logins};
pub(super) use models::{ModelChoice, Models};
pub(super) use queue::QueuedMessages;
pub(super) use scope::ModelScope;
pub(super) use sessions::Sessions;
pub(super) use sign_in::SignInDialog;
pub(super) use thinking::ThinkingLevels;
pub(super) use trust::TrustDialog;

/// Something over transcript and dock that takes all input.
pub(super) trait Overlay {
    fn handle(&mut self, input: &InputEvent, keymap: &Keymap) -> OverlayStep;

    /// Takes in that the session has changed.
    fn session_changed(&mut self, _: &SessionState) -> OverlayStep {
        OverlayStep::Stay
    }

    /// Takes in which models there are now.
    fn models_changed(&mut self, _: &[ModelChoice]) {}

    /// Its rows, `max_rows` at most, and the cursor's row and column among them.
    fn render(&mut self, width: u16, max_rows: u16, theme: &Theme) -> (Vec<Row>, Option<(u16, u16)>);

    /// Takes in what a sign-in tells. `false` if this overlay shows none.
    fn sign_in_step(&mut self, _step: &SignInStep) -> bool {
        false
    }

    /// Whether it asks about the folder of the session, and goes with it.
    fn asks_for_trust(&self) -> bool {
        false
    }

    /// Whether it belongs to a sign-in, and goes with it.
    fn is_sign_in(&self) -> bool {
        false
    }
}

/// What became of an input.
#[derive(Debug)]
pub(super) enum OverlayStep {
    Stay,
    /// Stays, and something happens.
    StayWith(AppMsg),
    Close,
    CloseWith(AppMsg),
}
