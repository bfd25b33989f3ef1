//! Choosing a message to fork from.

use crate::session::{EntryId, IfBusy, SessionCommand};
use crate::tui::keymap::Keymap;
use crate::tui::term::InputEvent;
use crate::tui::widgets::{DialogCx, Hints, Picker, PickerItem, PickerOutcome};

use super::{Drawn, Overlay, OverlayStep};

/// The user's messages on the active branch, oldest first; the last one is selected.
pub(in super::super) struct ForkPoints(Picker<EntryId>);

impl ForkPoints {
    pub(in super::super) fn new(prompts: Vec<(EntryId, String)>) -> Self {
        let last = prompts.last().map(|(id, _)| id.clone());
        let items = prompts.into_iter().map(|(id, text)| PickerItem::new(id, text)).collect();
        let title = "Fork: continue in a new session from before a message";
        let mut picker = Picker::new(title, items).hints(Hints::confirm("fork").cancel("cancel"));
        picker.select(|id| Some(id) == last.as_ref());
        Self(picker)
    }
}

impl Overlay for ForkPoints {
    fn handle(&mut self, input: &InputEvent, keymap: &Keymap) -> OverlayStep {
        match self.0.handle(input, keymap) {
            PickerOutcome::Pending | PickerOutcome::Ignored => OverlayStep::Stay,
            PickerOutcome::Cancelled => OverlayStep::Close,
            PickerOutcome::Chosen(id) => {
                OverlayStep::close_with(SessionCommand::Fork { target: id, if_busy: IfBusy::Refuse })
            }
        }
    }

    fn render(&mut self, cx: &DialogCx<'_>) -> Drawn {
        let drawn = self.0.render(cx);
        (drawn.rows, drawn.cursor)
    }
}
