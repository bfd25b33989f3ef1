//! The list that selects and orders the models to cycle through.

use crossterm::event::KeyEvent;

use crate::ai::ScopedModel;
use crate::session::{Scope, SessionCommand};
use crate::tui::keymap::{Context, Keymap};
use crate::tui::term::InputEvent;
use crate::tui::widgets::{DialogCx, Hints, Picker, PickerItem, PickerOutcome};

use super::{Drawn, ModelChoice, Overlay, OverlayStep};

/// All models with a key; those of the scope are marked and come first.
pub(in super::super) struct ModelScope {
    picker: Picker<String>,
    choices: Vec<ModelChoice>,
    /// In cycling order: references, and the patterns that select
    /// them.
    scope: Vec<(String, String)>,
}

impl ModelScope {
    pub(in super::super) fn new(choices: &[ModelChoice], scope: &[ScopedModel]) -> Self {
        let hints = Hints::new()
            .key("app.models.toggle", "on or off")
            .keys(&["app.models.reorderUp", "app.models.reorderDown"], "order")
            .key("app.models.save", "also as default")
            .cancel("done")
            .key("app.models.enableAll", "all")
            .key("app.models.clearAll", "none")
            .key("app.models.toggleProvider", "provider");
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

    /// Performs an action on several models. Returns whether the key is one of these.
    fn handle_several(&mut self, key: &KeyEvent, keymap: &Keymap) -> bool {
        match keymap.lookup(Context::Models, key) {
            Some("app.models.enableAll") => self.add(self.picker.shown().cloned().collect()),
            Some("app.models.clearAll") => self.scope.clear(),
            Some("app.models.toggleProvider") => {
                let selected = self.picker.selected().cloned().unwrap_or_default();
                let models = self.of_provider(&selected);
                if models.iter().all(|reference| self.has(reference)) {
                    self.scope.retain(|(one, _)| !models.contains(one));
                } else {
                    self.add(models);
                }
            }
            _ => return false,
        }
        self.fill();
        true
    }

    fn has(&self, reference: &str) -> bool {
        self.scope.iter().any(|(one, _)| one == reference)
    }

    fn add(&mut self, references: Vec<String>) {
        for reference in references {
            if !self.has(&reference) {
                self.scope.push((reference.clone(), reference));
            }
        }
    }

    /// The models of the same provider.
    fn of_provider(&self, reference: &str) -> Vec<String> {
        let provider = |reference: &str| self.choices.iter().find(|one| one.reference() == reference);
        let Some(provider) = provider(reference).map(|one| one.provider.clone()) else { return Vec::new() };
        self.choices.iter().filter(|one| one.provider == provider).map(ModelChoice::reference).collect()
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
            if self.handle_several(key, keymap) {
                return OverlayStep::Stay;
            }
            let moved = is("app.models.reorderUp") || is("app.models.reorderDown");
            if let Some(reference) = selected.filter(|_| moved || is("app.models.toggle")) {
                if moved {
                    self.shift(&reference, is("app.models.reorderUp"));
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

    fn render(&mut self, cx: &DialogCx<'_>) -> Drawn {
        let drawn = self.picker.render(cx);
        (drawn.rows, drawn.cursor)
    }
}

#[cfg(test)]
mod tests {
    use crossterm::event::{KeyCode, KeyModifiers};

    use super::super::super::keybindings::default_keymap;
    use super::*;

    /// The references in the cycle list after keys that are pressed with ctrl, or typed.
    fn scope_after(keys: &str) -> Vec<String> {
        let model = |provider: &str, id: &str| ModelChoice {
            id: id.to_owned(),
            provider: provider.to_owned(),
            name: String::new(),
        };
        let choices = [model("acme", "one"), model("umbrella", "two"), model("acme", "three")];
        let keymap = default_keymap();
        let mut overlay = ModelScope::new(&choices, &[]);
        for key in keys.chars() {
            let held = if key.is_uppercase() { KeyModifiers::CONTROL } else { KeyModifiers::NONE };
            let key = KeyEvent::new(KeyCode::Char(key.to_ascii_lowercase()), held);
            overlay.handle(&InputEvent::Key(key), &keymap);
        }
        overlay.scope.into_iter().map(|(reference, _)| reference).collect()
    }

    #[test]
    fn keys_add_and_remove_several_models() {
        let check = |keys: &str, expected: &[&str]| assert_eq!(scope_after(keys), expected, "{keys}");
        check("A", &["acme/one", "umbrella/two", "acme/three"]);
        check("AA", &["acme/one", "umbrella/two", "acme/three"]);
        check("AX", &[]);
        check("P", &["acme/one", "acme/three"]);
        check("PP", &[]);
        check("umbrellaA", &["umbrella/two"]);
    }
}
