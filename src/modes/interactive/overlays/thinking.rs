//! The list of thinking levels.

use crate::ai::{Model, ThinkingLevel};
use crate::session::{Scope, SessionCommand};
use crate::tui::keymap::Keymap;
use crate::tui::term::InputEvent;
use crate::tui::widgets::{DialogCx, Hints, Picker, PickerItem, PickerOutcome};

use super::{Drawn, Overlay, OverlayStep};

/// The levels the current model supports.
pub(in super::super) struct ThinkingLevels(Picker<ThinkingLevel>);

impl ThinkingLevels {
    pub(in super::super) fn new(model: &Model, current: ThinkingLevel) -> Self {
        let items = model
            .thinking_levels()
            .into_iter()
            .map(|level| {
                let mark = if level == current { "✓ " } else { "  " };
                PickerItem::new(level, format!("{mark}{level}")).note(describe(level))
            })
            .collect();
        let hints =
            Hints::confirm("this session").key("app.thinking.save", "also as default").cancel("cancel");
        let title = format!("Thinking level of {}", model.id);
        let mut picker = Picker::new(title, items).without_filter().hints(hints);
        picker.select(|level| *level == current);
        Self(picker)
    }
}

fn describe(level: ThinkingLevel) -> &'static str {
    match level {
        ThinkingLevel::Off => "no thinking",
        ThinkingLevel::Minimal => "a glance",
        ThinkingLevel::Low => "quick work",
        ThinkingLevel::Medium => "ordinary work",
        ThinkingLevel::High => "hard problems",
        ThinkingLevel::Xhigh => "very hard problems",
        ThinkingLevel::Max => "as long as it takes",
    }
}

fn chosen(level: ThinkingLevel, scope: Scope) -> OverlayStep {
    OverlayStep::close_with(SessionCommand::SetThinking { level, scope })
}

impl Overlay for ThinkingLevels {
    fn handle(&mut self, input: &InputEvent, keymap: &Keymap) -> OverlayStep {
        let save = matches!(input, InputEvent::Key(key) if keymap.is("app.thinking.save", key));
        if save {
            return match self.0.selected() {
                Some(level) => chosen(*level, Scope::Default),
                None => OverlayStep::Stay,
            };
        }
        match self.0.handle(input, keymap) {
            PickerOutcome::Pending | PickerOutcome::Ignored => OverlayStep::Stay,
            PickerOutcome::Cancelled => OverlayStep::Close,
            PickerOutcome::Chosen(level) => chosen(level, Scope::Session),
        }
    }

    fn render(&mut self, cx: &DialogCx<'_>) -> Drawn {
        let drawn = self.0.render(cx);
        (drawn.rows, drawn.cursor)
    }
}
