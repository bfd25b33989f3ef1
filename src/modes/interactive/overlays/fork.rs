//! Choosing a message to fork from.

use crate::session::{EntryId, IfBusy, SessionCommand, SessionState};
use crate::tui::keymap::Keymap;
use crate::tui::term::InputEvent;
use crate::tui::widgets::{DialogCx, Hints, Picker, PickerItem, PickerOutcome};

use super::{Drawn, Overlay, OverlayStep};

/// The user's messages on the active branch, oldest first; the last one is selected.
pub(in super::super) struct ForkPoints {
    session_id: String,
    picker: Picker<EntryId>,
}

impl ForkPoints {
    pub(in super::super) fn new(session_id: &str, prompts: Vec<(EntryId, String)>) -> Self {
        let last = prompts.last().map(|(id, _)| id.clone());
        let items = prompts.into_iter().map(|(id, text)| PickerItem::new(id, text)).collect();
        let title = "Fork: continue in a new session from before a message";
        let mut picker = Picker::new(title, items).hints(Hints::confirm("fork").cancel("cancel"));
        picker.select(|id| Some(id) == last.as_ref());
        Self { session_id: session_id.to_owned(), picker }
    }
}

impl Overlay for ForkPoints {
    fn handle(&mut self, input: &InputEvent, keymap: &Keymap) -> OverlayStep {
        match self.picker.handle(input, keymap) {
            PickerOutcome::Pending | PickerOutcome::Ignored => OverlayStep::Stay,
            PickerOutcome::Cancelled => OverlayStep::Close,
            PickerOutcome::Chosen(id) => {
                OverlayStep::close_with(SessionCommand::Fork { target: id, if_busy: IfBusy::Refuse })
            }
        }
    }

    /// The messages of another session are no places to fork this one from.
    fn session_changed(&mut self, session: &SessionState) -> bool {
        session.id == self.session_id
    }

    fn render(&mut self, cx: &DialogCx<'_>) -> Drawn {
        let drawn = self.picker.render(cx);
        (drawn.rows, drawn.cursor)
    }
}
