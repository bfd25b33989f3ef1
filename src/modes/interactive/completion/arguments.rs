//! TABLE: what completion suggests as the arguments of commands.

use crate::ai::VENDORS;
use crate::session::SessionState;
use crate::tui::theme::BUILTIN_NAMES;
use crate::tui::widgets::fuzzy_rank;

use super::super::overlays::ModelChoice;
use super::{Insertion, Suggestion};

/// The kind of a command's argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Argument {
    Model,
    ThinkingLevel,
    Provider,
    Path,
    /// One of these words.
    Words(&'static [&'static str]),
}

/// The commands whose arguments can be completed.
pub(super) const ARGUMENTS: &[(&str, Argument)] = &[
    ("model", Argument::Model),
    ("thinking", Argument::ThinkingLevel),
    ("login", Argument::Provider),
    ("logout", Argument::Provider),
    ("export", Argument::Path),
    ("import", Argument::Path),
    ("theme", Argument::Words(&BUILTIN_NAMES)),
    ("compact", Argument::Words(&["--edit"])),
    ("trace", Argument::Words(&["--failed", "--slow", "--tool"])),
];

/// What the argument of this command is; `None` if it is free text or there is none.
pub(super) fn argument_of(command: &str) -> Option<Argument> {
    ARGUMENTS.iter().find(|(name, _)| *name == command).map(|(_, argument)| *argument)
}

/// The choices of an argument that match `typed`, best first. Paths come from elsewhere.
pub(super) fn suggest(
    argument: Argument,
    typed: &str,
    session: &SessionState,
    models: &[ModelChoice],
) -> Vec<Suggestion> {
    let all: Vec<Suggestion> = match argument {
        Argument::Model => models.iter().map(|model| word(&model.reference(), &model.name)).collect(),
        Argument::ThinkingLevel => {
            session.model.thinking_levels().into_iter().map(|level| word(level.name(), "")).collect()
        }
        Argument::Provider => VENDORS.iter().map(|vendor| word(vendor.id, vendor.name)).collect(),
        Argument::Words(words) => words.iter().map(|one| word(one, "")).collect(),
        Argument::Path => Vec::new(),
    };
    // What is complete needs no list.
    if all.iter().any(|one| one.label == typed) {
        return Vec::new();
    }
    let texts: Vec<String> = all.iter().map(|one| format!("{} {}", one.label, one.help)).collect();
    let ranked = fuzzy_rank(typed, texts.iter().map(String::as_str));
    ranked.into_iter().filter_map(|idx| all.get(idx).cloned()).collect()
}

fn word(text: &str, help: &str) -> Suggestion {
    let insertion = Insertion { text: text.to_owned(), goes_on: false };
    Suggestion { label: text.to_owned(), help: help.to_owned(), insertion }
}
