//! The list that selects and orders the models to cycle through.

use crate::ai::ScopedModel;
use crate::session::{Scope, SessionCommand};
use crate::tui::keymap::Keymap;
use crate::tui::term::InputEvent;
use crate::tui::text::Row;
use crate::tui::theme::Theme;
use crate::tui::widgets::{Picker, PickerItem, PickerOutcome};

use super::{ModelChoice, Overlay, OverlayStep};

/// All models with a key; those of the scope are marked and come first.
pub(in super::super) struct ModelScope {
    picker: Picker<String>,
    choices: Vec<ModelChoice>,
    /// In cycling order: references, and the patterns that select
    /// them.
    scope: Vec<(String, String)>,
}

impl ModelScope {
    pub(in super::super) fn new(choices: &[ModelChoice], scope: &[ScopedModel], keymap: &Keymap) -> Self {
        let hints = format!(
            "{}: on or off · {}/{}: order · {}: also as default · escape: done",
            keymap.hint("app.models.toggle"),
            keymap.hint("app.models.moveUp"),
            keymap.hint("app.models.moveDown"),
            keymap.hint("app.models.save"),
        );
        let picker = Picker::new("Models to cycle through; none selected means all", Vec::new()).hints(hints);
        let scope = scope.iter().map(|scoped| (scoped.model.reference(), scoped.pattern())).collect();
        let mut overlay = Self { picker, choices: choices.to_vec(), scope };
        overlay.fill();
        overlay
    }

    /// Keeps the selected model selected.
    fn fill(&mut self) {
        let selected = self.picker.selected().cloned();
        let place = |reference: &str| self.scope.iter().position(|(one, _)| one == reference);
        let mut shown: Vec<(Option<usize>, &ModelChoice)> =
            self.choices.iter().map(|choice| (place(&choice.reference()), choice)).collect();
        shown.sort_by_key(|(place, _)| place.unwrap_or(usize::MAX));
        let items: Vec<PickerItem<String>> = shown
            .into_iter()
            .map(|(place, choice)| choice.item(if place.is_some() { "✓ " } else { "  " }))
            .collect();
        self.picker.set_items(items);
        self.picker.select(|reference| Some(reference) == selected.as_ref());
    }

    fn toggle(&mut self, reference: String) {
        match self.scope.iter().position(|(one, _)| *one == reference) {
            Some(at) => drop(self.scope.remove(at)),
            None => self.scope.push((reference.clone(), reference)),
        }
    }

    fn shift(&mut self, reference: &str, up: bool) {
        let Some(at) = self.scope.iter().position(|(one, _)| one == reference) else { return };
        let to = if up { at.checked_sub(1) } else { Some(at + 1) };
        if let Some(to) = to.filter(|to| *to < self.scope.len()) {
            self.scope.swap(at, to);
        }
    }

    fn chosen(&self, scope: Scope) -> OverlayStep {
        let patterns = self.scope.iter().map(|(_, pattern)| pattern.clone()).collect();
        OverlayStep::close_with(SessionCommand::SetScope { patterns, scope })
    }
}

impl Overlay for ModelScope {
    fn handle(&mut self, input: &InputEvent, keymap: &Keymap) -> OverlayStep {
        if let InputEvent::Key(key) = input {
            let is = |id| keymap.is(id, key);
            if is("app.models.save") {
                return self.chosen(Scope::Default);
            }
            let selected = self.picker.selected().cloned();
            let moved = is("app.models.moveUp") || is("app.models.moveDown");
            if let Some(reference) = selected.filter(|_| moved || is("app.models.toggle")) {
                if moved {
                    self.shift(&reference, is("app.models.moveUp"));
                } else {
                    self.toggle(reference);
                }
                self.fill();
                return OverlayStep::Stay;
            }
        }
        match self.picker.handle(input, keymap) {
            PickerOutcome::Pending | PickerOutcome::Ignored | PickerOutcome::Chosen(_) => OverlayStep::Stay,
            PickerOutcome::Cancelled => self.chosen(Scope::Session),
        }
    }

    fn models_changed(&mut self, models: &[ModelChoice]) {
        models.clone_into(&mut self.choices);
        self.fill();
    }

    fn render(&mut self, width: u16, max_rows: u16, theme: &Theme) -> (Vec<Row>, Option<(u16, u16)>) {
        let drawn = self.picker.render(width, max_rows, theme);
        (drawn.rows, drawn.cursor)
    }
}
