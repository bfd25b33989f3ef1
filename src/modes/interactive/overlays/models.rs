//! The list of models to choose from.

use std::sync::Arc;

use crate::ai::{Model, ScopedModel};
use crate::session::{Scope, SessionCommand, SessionState};
use crate::tui::keymap::Keymap;
use crate::tui::term::InputEvent;
use crate::tui::widgets::{DialogCx, Hints, Picker, PickerItem, PickerOutcome};

use super::{Drawn, Overlay, OverlayStep};

/// A model in the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct ModelChoice {
    pub(in super::super) id: String,
    pub(in super::super) provider: String,
    pub(in super::super) name: String,
}

impl ModelChoice {
    pub(in super::super) fn of(models: &[Arc<Model>]) -> Vec<Self> {
        let choice = |model: &Arc<Model>| Self {
            id: model.id.clone(),
            provider: model.provider.clone(),
            name: model.name.clone(),
        };
        models.iter().map(choice).collect()
    }

    pub(in super::super) fn reference(&self) -> String {
        format!("{}/{}", self.provider, self.id)
    }

    pub(super) fn item(&self, mark: &str, state: &str) -> PickerItem<String> {
        PickerItem::new(self.reference(), format!("{mark}{}", self.id))
            .note(format!("[{}]{state}", self.provider))
            .detail(self.name.clone())
            .keywords(format!("{} {}", self.reference(), self.name))
    }

    /// Whether a reference, with or without a thinking level, is exactly this model's.
    pub(in super::super) fn is_named(&self, reference: &str) -> bool {
        let is =
            |text: &str| text.eq_ignore_ascii_case(&self.id) || text.eq_ignore_ascii_case(&self.reference());
        is(reference) || reference.rsplit_once(':').is_some_and(|(rest, _)| is(rest))
    }
}

/// The list of models with a key.
pub(in super::super) struct Models {
    picker: Picker<String>,
    choices: Vec<ModelChoice>,
    /// References of the models to cycle through; may be empty.
    scope: Vec<String>,
    /// Whether only those are shown.
    scoped: bool,
    /// The session's model, which is marked.
    current: Arc<Model>,
    /// Reference of the one that is first: the model when the list was opened.
    first: String,
    /// Where the scope comes from.
    scoped_models: Arc<[ScopedModel]>,
    /// Reference of the model of new sessions, if the settings name one.
    default: Option<String>,
}

impl Models {
    /// Marks the session's model, which is selected; in the list of all models it is first.
    pub(in super::super) fn new(choices: &[ModelChoice], session: &SessionState, query: &str) -> Self {
        let scoped_models = Arc::clone(&session.scope);
        let mut models = Self {
            picker: Picker::new("Model", Vec::new()),
            choices: choices.to_vec(),
            scope: references(&scoped_models),
            scoped: query.is_empty() && choices.iter().any(|choice| is_in(&scoped_models, choice)),
            current: Arc::clone(&session.model),
            first: session.model.reference(),
            scoped_models,
            default: default_of(session),
        };
        models.fill();
        models.picker.select(|reference| *reference == models.first);
        if !query.is_empty() {
            models.picker.set_query(query);
        }
        models
    }

    /// Keeps the selected model selected.
    fn fill_again(&mut self) {
        let selected = self.picker.selected().cloned();
        self.fill();
        self.picker.select(|reference| Some(reference) == selected.as_ref());
    }

    fn fill(&mut self) {
        let mut hints = Hints::confirm("this session").key("app.models.save", "also as default").of_item();
        if !self.scope.is_empty() {
            hints = hints.key("app.models.scope", "all or scoped");
        }
        self.picker.set_hints(hints.cancel("cancel"));
        let current = self.current.reference();
        self.picker.set_title(if self.scoped { "Models in the cycle list" } else { "Model" });
        let mut shown: Vec<&ModelChoice> = self
            .choices
            .iter()
            .filter(|choice| !self.scoped || self.scope.contains(&choice.reference()))
            .collect();
        if self.scoped {
            shown.sort_by_key(|choice| self.scope.iter().position(|one| *one == choice.reference()));
        } else {
            shown.sort_by_key(|choice| choice.reference() != self.first);
        }
        let items = shown.into_iter().map(|choice| {
            let mark = if choice.reference() == current { "✓ " } else { "  " };
            let is_default = self.default.as_ref() == Some(&choice.reference());
            choice.item(mark, if is_default { " · default" } else { "" })
        });
        self.picker.set_items(items.collect());
    }
}

/// Whether a model is in the scope.
fn is_in(scope: &[ScopedModel], choice: &ModelChoice) -> bool {
    scope.iter().any(|scoped| scoped.model.reference() == choice.reference())
}

fn references(scope: &[ScopedModel]) -> Vec<String> {
    scope.iter().map(|scoped| scoped.model.reference()).collect()
}

fn default_of(session: &SessionState) -> Option<String> {
    let settings = &session.settings.values;
    Some(format!("{}/{}", settings.default_provider.as_ref()?, settings.default_model.as_ref()?))
}

fn chosen(reference: String, scope: Scope) -> OverlayStep {
    OverlayStep::close_with(SessionCommand::SetModel { reference, scope })
}

impl Overlay for Models {
    fn handle(&mut self, input: &InputEvent, keymap: &Keymap) -> OverlayStep {
        if let InputEvent::Key(key) = input
            && keymap.is("app.models.save", key)
        {
            return match self.picker.selected() {
                Some(reference) => chosen(reference.clone(), Scope::Default),
                None => OverlayStep::Stay,
            };
        }
        if matches!(input, InputEvent::Key(key) if keymap.is("app.models.scope", key))
            && !self.scope.is_empty()
        {
            self.scoped = !self.scoped;
            self.fill_again();
            return OverlayStep::Stay;
        }
        match self.picker.handle(input, keymap) {
            PickerOutcome::Pending | PickerOutcome::Ignored => OverlayStep::Stay,
            PickerOutcome::Cancelled => OverlayStep::Close,
            PickerOutcome::Chosen(reference) => chosen(reference, Scope::Session),
        }
    }

    fn models_changed(&mut self, models: &[ModelChoice]) {
        models.clone_into(&mut self.choices);
        self.fill_again();
    }

    fn session_changed(&mut self, session: &SessionState) -> bool {
        let default = default_of(session);
        let is_same = Arc::ptr_eq(&self.current, &session.model)
            && Arc::ptr_eq(&self.scoped_models, &session.scope)
            && self.default == default;
        if !is_same {
            self.default = default;
            self.current = Arc::clone(&session.model);
            self.scoped_models = Arc::clone(&session.scope);
            self.scope = references(&session.scope);
            self.scoped &= !self.scope.is_empty();
            self.fill_again();
        }
        true
    }

    fn render(&mut self, cx: &DialogCx<'_>) -> Drawn {
        let drawn = self.picker.render(cx);
        (drawn.rows, drawn.cursor)
    }
}
