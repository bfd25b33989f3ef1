//! The list that selects and orders the models to cycle through.

use crossterm::event::KeyEvent;

use crate::ai::{ScopedModel, UnmatchedPattern, glob_selects};
use crate::session::{Scope, SessionCommand, SessionState};
use crate::tui::keymap::{Context, Keymap};
use crate::tui::term::InputEvent;
use crate::tui::widgets::{DialogCx, Hints, Picker, PickerItem, PickerOutcome};

use super::{Drawn, ModelChoice, Overlay, OverlayStep};

/// All models with a key; those of the scope are marked and come first. Patterns that match no model
/// are kept, and shown to be removed.
pub(in super::super) struct ModelScope {
    picker: Picker<String>,
    choices: Vec<ModelChoice>,
    /// The patterns that match no model, in place of the reference of one.
    unmatched: Vec<UnmatchedPattern>,
    /// In cycling order.
    scope: Vec<InScope>,
    /// The scope when the list was opened.
    before: Vec<InScope>,
}

/// A model of the scope, or a pattern that matches none.
#[derive(Debug, Clone, PartialEq, Eq)]
struct InScope {
    /// The reference of the model, or the pattern.
    reference: String,
    /// What selects only this.
    exact: String,
    /// What the scope has for it, if it was in there: a pattern that may select others too.
    pattern: Option<String>,
}

impl InScope {
    fn of(scoped: &ScopedModel) -> Self {
        let (reference, exact) = (scoped.model.reference(), scoped.exact_pattern());
        Self { reference, exact, pattern: Some(scoped.pattern.clone()) }
    }

    /// Whether the pattern of this one selects the other too.
    fn would_select(&self, other: &Self) -> bool {
        self.pattern.as_ref().is_some_and(|pattern| glob_selects(pattern, &other.reference))
    }

    /// A model that is added, or a pattern without one.
    fn named(reference: String) -> Self {
        Self { exact: reference.clone(), reference, pattern: None }
    }
}

impl ModelScope {
    pub(in super::super) fn new(choices: &[ModelChoice], session: &SessionState) -> Self {
        let hints = Hints::new()
            .key("app.models.toggle", "on or off")
            .of_item()
            .keys(&["app.models.reorderUp", "app.models.reorderDown"], "order")
            .of_item()
            .key("app.models.save", "also as default")
            .cancel("done")
            .key("app.models.enableAll", "all")
            .key("app.models.clearAll", "none")
            .key("app.models.toggleProvider", "provider")
            .of_item();
        let picker = Picker::new("Models to cycle through; none selected means all", Vec::new()).hints(hints);
        let unmatched = session.unmatched_scope.to_vec();
        let without_model = unmatched.iter().map(|one| InScope::named(one.pattern.clone()));
        let scope: Vec<InScope> = session.scope.iter().map(InScope::of).chain(without_model).collect();
        let mut overlay = Self { picker, choices: choices.to_vec(), unmatched, before: scope.clone(), scope };
        overlay.fill();
        overlay
    }

    /// Keeps the selected model selected.
    fn fill(&mut self) {
        let selected = self.picker.selected().cloned();
        let place = |reference: &str| self.scope.iter().position(|one| one.reference == reference);
        let mark = |place: Option<usize>| if place.is_some() { "✓ " } else { "  " };
        let choices = self.choices.iter().map(|choice| {
            let place = place(&choice.reference());
            (place, choice.item(mark(place), ""))
        });
        let unmatched = self.unmatched.iter().map(|one| {
            let place = place(&one.pattern);
            let item = PickerItem::new(one.pattern.clone(), format!("{}{}", mark(place), one.pattern));
            (place, item.note("matches no model").detail(one.problem.clone()))
        });
        let mut shown: Vec<(Option<usize>, PickerItem<String>)> = choices.chain(unmatched).collect();
        shown.sort_by_key(|(place, _)| place.unwrap_or(usize::MAX));
        self.picker.set_items(shown.into_iter().map(|(_, item)| item).collect());
        self.picker.select(|reference| Some(reference) == selected.as_ref());
    }

    fn toggle(&mut self, reference: String) {
        match self.scope.iter().position(|one| one.reference == reference) {
            Some(at) => drop(self.scope.remove(at)),
            None => self.scope.push(InScope::named(reference)),
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
                    self.scope.retain(|one| !models.contains(&one.reference));
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
        self.scope.iter().any(|one| one.reference == reference)
    }

    fn add(&mut self, references: Vec<String>) {
        for reference in references {
            if !self.has(&reference) {
                self.scope.push(InScope::named(reference));
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
        let Some(at) = self.scope.iter().position(|one| one.reference == reference) else { return };
        let to = if up { at.checked_sub(1) } else { Some(at + 1) };
        if let Some(to) = to.filter(|to| *to < self.scope.len()) {
            self.scope.swap(at, to);
        }
    }

    /// The patterns of the scope. One that selected several models stays as it was written while all of them are
    /// there, and none is left out or moved that it would select again.
    fn patterns(&self) -> Vec<String> {
        let mut patterns = Vec::new();
        let mut rest = self.scope.as_slice();
        while let Some(first) = rest.first() {
            let n_done = self.scope.len() - rest.len();
            let is_same = |one: &&InScope| one.pattern.is_some() && one.pattern == first.pattern;
            let begin = self.before.iter().position(|one| is_same(&one)).unwrap_or(self.before.len());
            let (earlier, group) = self.before.split_at(begin);
            let group: Vec<&InScope> = group.iter().take_while(is_same).collect();
            let is_whole = !group.is_empty()
                && rest.iter().take(group.len()).eq(group.iter().copied())
                && earlier.iter().all(|one| self.scope[..n_done].contains(one) || !first.would_select(one));
            patterns.push(first.pattern.as_ref().filter(|_| is_whole).unwrap_or(&first.exact).clone());
            rest = &rest[if is_whole { group.len() } else { 1 }..];
        }
        patterns
    }

    fn chosen(&self, scope: Scope) -> OverlayStep {
        let patterns = self.patterns();
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
            PickerOutcome::Cancelled if self.scope == self.before => OverlayStep::Close,
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

    use std::path::Path;
    use std::sync::Arc;

    use crate::ai::Model;

    use super::super::super::keybindings::default_keymap;
    use super::super::DialogOutcome;
    use super::*;

    fn overlay(session: &SessionState) -> ModelScope {
        let model = |provider: &str, id: &str| ModelChoice {
            id: id.to_owned(),
            provider: provider.to_owned(),
            name: String::new(),
        };
        let choices = [model("acme", "one"), model("umbrella", "two"), model("acme", "three")];
        ModelScope::new(&choices, session)
    }

    fn session() -> SessionState {
        SessionState::of(&Arc::new(Model::default()), Path::new("/"))
    }

    fn press(overlay: &mut ModelScope, code: KeyCode, held: KeyModifiers) -> OverlayStep {
        overlay.handle(&InputEvent::Key(KeyEvent::new(code, held)), &default_keymap())
    }

    /// Presses keys with ctrl, or types them.
    fn press_all(overlay: &mut ModelScope, keys: &str) {
        for key in keys.chars() {
            let held = if key.is_uppercase() { KeyModifiers::CONTROL } else { KeyModifiers::NONE };
            press(overlay, KeyCode::Char(key.to_ascii_lowercase()), held);
        }
    }

    /// The references in the cycle list after keys.
    fn scope_after(keys: &str) -> Vec<String> {
        let mut overlay = overlay(&session());
        press_all(&mut overlay, keys);
        overlay.scope.into_iter().map(|one| one.reference).collect()
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

    /// A model of the scope that `pattern` selected.
    fn scoped(provider: &str, id: &str, pattern: &str) -> ScopedModel {
        let model = Model { id: id.to_owned(), provider: provider.to_owned(), ..Model::default() };
        ScopedModel { model: Arc::new(model), thinking: None, pattern: pattern.to_owned() }
    }

    #[test]
    fn a_pattern_of_several_models_stays_while_all_of_them_do() {
        let mut session = session();
        let models = [("umbrella", "two", "*/two"), ("acme", "one", "acme/*"), ("acme", "three", "acme/*")];
        session.scope = models.map(|(provider, id, pattern)| scoped(provider, id, pattern)).into();
        let check = |keys: &[(KeyCode, KeyModifiers)], expected: &[&str]| {
            let mut overlay = overlay(&session);
            keys.iter().for_each(|(code, held)| drop(press(&mut overlay, *code, *held)));
            assert_eq!(overlay.patterns(), expected, "{keys:?}");
        };
        let (plain, alt) = (KeyModifiers::NONE, KeyModifiers::ALT);
        let (down, enter) = ((KeyCode::Down, plain), (KeyCode::Enter, plain));
        check(&[], &["*/two", "acme/*"]);
        check(&[down, enter], &["*/two", "acme/three"]);
        check(&[enter], &["acme/*"]);
        check(&[enter, enter], &["acme/*", "umbrella/two"]);
        check(&[down, (KeyCode::Down, alt)], &["*/two", "acme/three", "acme/one"]);
        // The pattern would select what was removed.
        session.scope = [scoped("acme", "one", "one"), scoped("acme", "three", "acme/*:high")].into();
        assert_eq!(overlay(&session).patterns(), ["one", "acme/*:high"]);
        let mut overlay = overlay(&session);
        press(&mut overlay, KeyCode::Enter, plain);
        assert_eq!(overlay.patterns(), ["acme/three"]);
    }

    #[test]
    fn patterns_without_a_model_are_kept_until_they_are_removed() {
        let pattern = |pattern: &str| UnmatchedPattern {
            pattern: pattern.to_owned(),
            problem: format!("no model matches \"{pattern}\""),
        };
        let mut session = session();
        session.scope = [scoped("acme", "one", "one")].into();
        session.unmatched_scope = [pattern("dead/*"), pattern("acme/gone")].into();
        let saved = |keys: &[KeyCode]| {
            let mut overlay = overlay(&session);
            for key in keys {
                press(&mut overlay, *key, KeyModifiers::NONE);
            }
            match press(&mut overlay, KeyCode::Char('s'), KeyModifiers::CONTROL) {
                OverlayStep::CloseWith(DialogOutcome::Effect(effect)) => format!("{effect:?}"),
                step => panic!("{step:?}"),
            }
        };
        let all = saved(&[]);
        assert!(all.contains(r#"["one", "dead/*", "acme/gone"]"#), "{all}");
        let left = saved(&[KeyCode::Down, KeyCode::Enter]);
        assert!(left.contains(r#"["one", "acme/gone"]"#), "{left}");
        assert!(matches!(
            press(&mut overlay(&session), KeyCode::Esc, KeyModifiers::NONE),
            OverlayStep::Close
        ));
    }
}
