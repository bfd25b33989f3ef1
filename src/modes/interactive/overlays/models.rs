//! Choosing a model.

use crate::session::Scope;
use crate::tui::keymap::Keymap;
use crate::tui::term::InputEvent;
use crate::tui::text::Row;
use crate::tui::theme::Theme;
use crate::tui::widgets::{Picker, PickerItem, PickerOutcome};

use super::super::msg::AppMsg;
use super::{Overlay, OverlayStep};

/// A model that can be chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct ModelChoice {
    pub(in super::super) id: String,
    pub(in super::super) provider: String,
    pub(in super::super) name: String,
}

impl ModelChoice {
    fn reference(&self) -> String {
        format!("{}/{}", self.provider, self.id)
    }

    /// Whether a reference, with or without a thinking level, names exactly this model.
    pub(in super::super) fn is_named(&self, reference: &str) -> bool {
        let is =
            |text: &str| text.eq_ignore_ascii_case(&self.id) || text.eq_ignore_ascii_case(&self.reference());
        is(reference) || reference.rsplit_once(':').is_some_and(|(rest, _)| is(rest))
    }
}

/// The list of models there is a key for.
pub(in super::super) struct Models(Picker<String>);

impl Models {
    /// `current` is marked and comes first.
    pub(in super::super) fn new(choices: &[ModelChoice], current: &str, query: &str, save_key: &str) -> Self {
        let mut choices: Vec<&ModelChoice> = choices.iter().collect();
        choices.sort_by_key(|choice| choice.reference() != current);
        let items = choices
            .into_iter()
            .map(|choice| {
                let mark = if choice.reference() == current { "✓ " } else { "" };
                PickerItem::new(choice.reference(), format!("{mark}{}", choice.id))
                    .note(format!("[{}]", choice.provider))
                    .detail(choice.name.clone())
                    .keywords(format!("{} {}", choice.reference(), choice.name))
            })
            .collect();
        let hints = format!("enter: this session · {save_key}: also as default · escape: cancel");
        let mut picker = Picker::new("Model", items).hints(hints);
        if !query.is_empty() {
            picker.set_query(query);
        }
        Self(picker)
    }
}

impl Overlay for Models {
    fn handle(&mut self, input: &InputEvent, keymap: &Keymap) -> OverlayStep {
        if let InputEvent::Key(key) = input
            && keymap.is("app.models.save", key)
        {
            return match self.0.selected() {
                Some(reference) => OverlayStep::CloseWith(AppMsg::ModelChosen {
                    reference: reference.clone(),
                    scope: Scope::Default,
                }),
                None => OverlayStep::Stay,
            };
        }
        match self.0.handle(input, keymap) {
            PickerOutcome::Pending | PickerOutcome::Ignored => OverlayStep::Stay,
            PickerOutcome::Cancelled => OverlayStep::Close,
            PickerOutcome::Chosen(reference) => {
                OverlayStep::CloseWith(AppMsg::ModelChosen { reference, scope: Scope::Session })
            }
        }
    }

    fn render(&mut self, width: u16, max_rows: u16, theme: &Theme) -> (Vec<Row>, Option<(u16, u16)>) {
        let drawn = self.0.render(width, max_rows, theme);
        (drawn.rows, drawn.cursor)
    }
}
