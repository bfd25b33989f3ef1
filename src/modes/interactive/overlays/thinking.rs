//! The list of thinking levels.

use std::sync::Arc;

use crate::ai::{Model, ThinkingLevel};
use crate::session::{Scope, SessionCommand, SessionState};
use crate::tui::keymap::Keymap;
use crate::tui::term::InputEvent;
use crate::tui::widgets::{DialogCx, Hints, Picker, PickerItem, PickerOutcome};

use super::{Drawn, Overlay, OverlayStep};

/// The levels the current model supports.
pub(in super::super) struct ThinkingLevels {
    picker: Picker<ThinkingLevel>,
    model: Arc<Model>,
    current: ThinkingLevel,
}

impl ThinkingLevels {
    pub(in super::super) fn new(session: &SessionState) -> Self {
        let hints =
            Hints::confirm("this session").key("app.thinking.save", "also as default").cancel("cancel");
        let (model, current) = (Arc::clone(&session.model), session.thinking);
        let picker = Picker::new("", Vec::new()).without_filter().hints(hints);
        let mut levels = Self { picker, model, current };
        levels.fill();
        levels.picker.select(|level| *level == current);
        levels
    }

    fn fill(&mut self) {
        let item = |level: ThinkingLevel| {
            let mark = if level == self.current { "✓ " } else { "  " };
            PickerItem::new(level, format!("{mark}{level}")).note(describe(level))
        };
        self.picker.set_items(self.model.thinking_levels().into_iter().map(item).collect());
        self.picker.set_title(format!("Thinking level of {}", self.model.id));
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
            return match self.picker.selected() {
                Some(level) => chosen(*level, Scope::Default),
                None => OverlayStep::Stay,
            };
        }
        match self.picker.handle(input, keymap) {
            PickerOutcome::Pending | PickerOutcome::Ignored => OverlayStep::Stay,
            PickerOutcome::Cancelled => OverlayStep::Close,
            PickerOutcome::Chosen(level) => chosen(level, Scope::Session),
        }
    }

    fn session_changed(&mut self, session: &SessionState) -> bool {
        if !Arc::ptr_eq(&self.model, &session.model) || self.current != session.thinking {
            let selected = self.picker.selected().copied();
            (self.model, self.current) = (Arc::clone(&session.model), session.thinking);
            self.fill();
            self.picker.select(|level| Some(*level) == selected);
        }
        self.model.thinking_levels().len() > 1
    }

    fn render(&mut self, cx: &DialogCx<'_>) -> Drawn {
        let drawn = self.picker.render(cx);
        (drawn.rows, drawn.cursor)
    }
}
