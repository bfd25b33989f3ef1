//! Reordering, editing and dropping queued messages.

use crate::agent::{QueueKind, QueueSlot};
use crate::session::{QueueView, SessionCommand, SessionState};
use crate::tui::keymap::Keymap;
use crate::tui::term::InputEvent;
use crate::tui::widgets::{DialogCx, Hints, Picker, PickerItem, PickerOutcome};

use super::super::msg::WorldEffect;
use super::{DialogOutcome, Drawn, Overlay, OverlayStep};

/// The queued messages, in delivery order.
pub(in super::super) struct QueuedMessages {
    picker: Picker<QueueSlot>,
    queue: QueueView,
    /// The message that was just moved, which stays selected.
    moved: Option<QueueSlot>,
}

impl QueuedMessages {
    pub(in super::super) fn new(queue: &QueueView) -> Self {
        let hints = Hints::confirm("edit")
            .keys(&["app.queue.moveUp", "app.queue.moveDown"], "move")
            .key("app.queue.toggle", "switch queue")
            .key("app.queue.drop", "remove")
            .cancel("close");
        let picker = Picker::new("Queued messages", items(queue)).without_filter().hints(hints);
        Self { picker, queue: queue.clone(), moved: None }
    }

    fn texts(&self, kind: QueueKind) -> &[String] {
        match kind {
            QueueKind::Steering => &self.queue.steering,
            QueueKind::FollowUp => &self.queue.follow_up,
        }
    }

    fn put(&mut self, slot: QueueSlot, kind: QueueKind, index: usize) -> OverlayStep {
        self.moved = Some(QueueSlot { kind, index, text: slot.text.clone() });
        OverlayStep::StayWith(DialogOutcome::session(SessionCommand::MoveQueued { slot, kind, index }))
    }

    /// Moves a message within its queue, or from the first follow-up to the steering messages
    /// and back.
    fn shift(&mut self, slot: QueueSlot, up: bool) -> OverlayStep {
        let n_steering = self.queue.steering.len();
        let last = self.texts(slot.kind).len().saturating_sub(1);
        match (slot.kind, up) {
            (kind, true) if slot.index > 0 => {
                let index = slot.index - 1;
                self.put(slot, kind, index)
            }
            (kind, false) if slot.index < last => {
                let index = slot.index + 1;
                self.put(slot, kind, index)
            }
            (QueueKind::FollowUp, true) => self.put(slot, QueueKind::Steering, n_steering),
            (QueueKind::Steering, false) => self.put(slot, QueueKind::FollowUp, 0),
            _ => OverlayStep::Stay,
        }
    }
}

/// One item per message: steering first.
fn items(queue: &QueueView) -> Vec<PickerItem<QueueSlot>> {
    let of = |kind, name: &'static str, texts: &[String]| {
        texts
            .iter()
            .enumerate()
            .map(|(index, text)| {
                let label = text.split_whitespace().collect::<Vec<_>>().join(" ");
                PickerItem::new(QueueSlot { kind, index, text: text.clone() }, label).note(name)
            })
            .collect::<Vec<_>>()
    };
    let mut items = of(QueueKind::Steering, "steering", &queue.steering);
    items.extend(of(QueueKind::FollowUp, "follow-up", &queue.follow_up));
    items
}

impl Overlay for QueuedMessages {
    fn handle(&mut self, input: &InputEvent, keymap: &Keymap) -> OverlayStep {
        let slot = self.picker.selected().cloned();
        if let (InputEvent::Key(key), Some(slot)) = (input, slot) {
            let is = |id| keymap.is(id, key);
            if is("app.queue.moveUp") || is("app.queue.moveDown") {
                return self.shift(slot, is("app.queue.moveUp"));
            }
            if is("app.queue.toggle") {
                let other = match slot.kind {
                    QueueKind::Steering => QueueKind::FollowUp,
                    QueueKind::FollowUp => QueueKind::Steering,
                };
                let end = self.texts(other).len();
                return self.put(slot, other, end);
            }
            if is("app.queue.drop") {
                return OverlayStep::StayWith(DialogOutcome::session(SessionCommand::DropQueued { slot }));
            }
        }
        match self.picker.handle(input, keymap) {
            PickerOutcome::Pending | PickerOutcome::Ignored => OverlayStep::Stay,
            PickerOutcome::Cancelled => OverlayStep::Close,
            PickerOutcome::Chosen(slot) => {
                let before = slot.index.checked_sub(1);
                let after = before.and_then(|index| {
                    let text = self.texts(slot.kind).get(index)?.clone();
                    Some(QueueSlot { kind: slot.kind, index, text })
                });
                OverlayStep::CloseWith(WorldEffect::TakeQueued { slot, after }.into())
            }
        }
    }

    fn session_changed(&mut self, session: &SessionState) -> bool {
        if *session.queue == self.queue {
            return true;
        }
        if session.queue.is_empty() {
            return false;
        }
        self.queue = (*session.queue).clone();
        self.picker.set_items(items(&self.queue));
        if let Some(moved) = self.moved.take() {
            self.picker.select(|slot| *slot == moved);
        }
        true
    }

    fn render(&mut self, cx: &DialogCx<'_>) -> Drawn {
        let drawn = self.picker.render(cx);
        (drawn.rows, drawn.cursor)
    }
}

#[cfg(test)]
mod tests {
    use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

    use crate::tui::keymap::{BINDINGS, Platform};

    use super::super::super::actions;
    use super::super::super::msg::Effect;
    use super::*;

    /// Presses a key on the message at `at` and describes the outcome.
    fn press(at: usize, code: KeyCode, modifiers: KeyModifiers) -> String {
        let actions = actions::bindings();
        let keymap = Keymap::new(&[BINDINGS, &actions], Platform::Unix);
        let texts = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let queue = QueueView { steering: texts(&["a", "b"]), follow_up: texts(&["c"]) };
        let mut overlay = QueuedMessages::new(&queue);
        let key = |code, modifiers| InputEvent::Key(KeyEvent::new(code, modifiers));
        for _ in 0..at {
            overlay.handle(&key(KeyCode::Down, KeyModifiers::NONE), &keymap);
        }
        let effect = match overlay.handle(&key(code, modifiers), &keymap) {
            OverlayStep::Stay => return "stay".to_owned(),
            OverlayStep::Close => return "close".to_owned(),
            OverlayStep::CloseWith(DialogOutcome::Effect(Effect::World(WorldEffect::TakeQueued {
                slot,
                after,
            }))) => {
                return format!("edit {} after {:?}", slot.text, after.map(|after| after.text));
            }
            OverlayStep::StayWith(DialogOutcome::Effect(Effect::World(effect))) => effect,
            other => return format!("{other:?}"),
        };
        match effect {
            WorldEffect::Session(SessionCommand::DropQueued { slot }) => format!("drop {}", slot.text),
            WorldEffect::Session(SessionCommand::MoveQueued { slot, kind, index }) => {
                format!("{} to {kind:?} {index}", slot.text)
            }
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn keys_move_edit_and_drop() {
        let check = |at, code, modifiers, expected: &str| {
            assert_eq!(press(at, code, modifiers), expected, "{code:?} at {at}");
        };
        let (none, alt) = (KeyModifiers::NONE, KeyModifiers::ALT);
        check(0, KeyCode::Up, alt, "stay");
        check(1, KeyCode::Up, alt, "b to Steering 0");
        check(2, KeyCode::Up, alt, "c to Steering 2");
        check(0, KeyCode::Down, alt, "a to Steering 1");
        check(1, KeyCode::Down, alt, "b to FollowUp 0");
        check(2, KeyCode::Down, alt, "stay");
        check(0, KeyCode::Tab, none, "a to FollowUp 1");
        check(2, KeyCode::Tab, none, "c to Steering 2");
        check(1, KeyCode::Delete, none, "drop b");
        check(0, KeyCode::Enter, none, "edit a after None");
        check(1, KeyCode::Enter, none, "edit b after Some(\"a\")");
        check(2, KeyCode::Enter, none, "edit c after None");
        check(0, KeyCode::Esc, none, "close");
    }
}
