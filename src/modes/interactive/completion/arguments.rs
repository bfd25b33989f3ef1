//! TABLE: what completion suggests as the arguments of commands.

use crate::ai::{Catalog, DEMO_PROVIDER, ThinkingLevel};
use crate::tui::theme::BUILTIN_NAMES;
use crate::tui::widgets::fuzzy_rank;

use super::{CompletionCx, Insertion, Suggestion};

/// A provider that has keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct ProviderChoice {
    pub(super) id: String,
    pub(super) name: String,
}

impl ProviderChoice {
    /// Those that `/login` lists: also of `models.json`, but not servers on this machine.
    pub(in super::super) fn of(catalog: &Catalog) -> Vec<Self> {
        let has_key = catalog.providers().iter().filter(|info| info.id != DEMO_PROVIDER && !info.local);
        has_key.map(|info| Self { id: info.id.clone(), name: info.name.clone() }).collect()
    }

    pub(super) fn is_named(&self, name: &str) -> bool {
        self.id.eq_ignore_ascii_case(name) || self.name.eq_ignore_ascii_case(name)
    }
}

/// What arguments can be, apart from what the session and the settings say.
#[derive(Debug, Clone, Default)]
pub(super) struct Known {
    pub(super) providers: Vec<ProviderChoice>,
    /// Names of the themes in files.
    pub(super) themes: Vec<String>,
}

impl Known {
    fn theme_names(&self) -> impl Iterator<Item = &str> {
        BUILTIN_NAMES.into_iter().chain(self.themes.iter().map(String::as_str))
    }
}

/// The kind of a command's argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Argument {
    Model,
    ThinkingLevel,
    Provider,
    Theme,
    /// A file that exists.
    Path,
    /// A file that is written, so that every name is complete.
    NewPath,
    /// One of these words. A word with a space behind it takes a value.
    Words(&'static [&'static str]),
}

/// The commands whose arguments can be completed.
pub(super) const ARGUMENTS: &[(&str, Argument)] = &[
    ("model", Argument::Model),
    ("thinking", Argument::ThinkingLevel),
    ("login", Argument::Provider),
    ("logout", Argument::Provider),
    ("export", Argument::NewPath),
    ("import", Argument::Path),
    ("theme", Argument::Theme),
    ("compact", Argument::Words(&["--edit"])),
    ("trace", Argument::Words(&["--failed", "--slow", "--tool "])),
];

/// What the argument of this command is; `None` if it is free text or there is none.
pub(super) fn argument_of(command: &str) -> Option<Argument> {
    ARGUMENTS.iter().find(|(name, _)| *name == command).map(|(_, argument)| *argument)
}

/// The choices of an argument that match `typed`, best first. Paths come from elsewhere.
pub(super) fn suggest(
    argument: Argument,
    typed: &str,
    cx: &CompletionCx<'_>,
    known: &Known,
) -> Vec<Suggestion> {
    let all: Vec<Suggestion> = match argument {
        Argument::Model => cx.models.iter().map(|model| word(&model.reference(), &model.name)).collect(),
        Argument::ThinkingLevel => {
            cx.session.model.thinking_levels().into_iter().map(|level| word(level.name(), "")).collect()
        }
        Argument::Provider => {
            known.providers.iter().map(|provider| word(&provider.id, &provider.name)).collect()
        }
        Argument::Theme => known.theme_names().map(|name| word(name, "")).collect(),
        Argument::Words(words) => words.iter().map(|one| word(one, "")).collect(),
        Argument::Path | Argument::NewPath => Vec::new(),
    };
    // What is complete needs no list.
    if all.iter().any(|one| one.label == typed) {
        return Vec::new();
    }
    let texts: Vec<String> = all.iter().map(|one| format!("{} {}", one.label, one.help)).collect();
    let ranked = fuzzy_rank(typed, texts.iter().map(String::as_str));
    ranked.into_iter().filter_map(|idx| all.get(idx).cloned()).collect()
}

/// Whether `typed` names one of the choices in any way that the command understands.
pub(super) fn is_complete(argument: Argument, typed: &str, cx: &CompletionCx<'_>, known: &Known) -> bool {
    match argument {
        Argument::Model => cx.models.iter().any(|model| model.is_named(typed)),
        Argument::ThinkingLevel => ThinkingLevel::parse(typed).is_some(),
        Argument::Provider => known.providers.iter().any(|provider| provider.is_named(typed)),
        Argument::Theme => known.theme_names().any(|name| name == typed),
        Argument::Words(words) => words.iter().any(|one| one.trim_end() == typed),
        Argument::Path | Argument::NewPath => true,
    }
}

fn word(text: &str, help: &str) -> Suggestion {
    let insertion = Insertion { text: text.to_owned(), goes_on: text.ends_with(' ') };
    Suggestion { label: text.trim_end().to_owned(), help: help.to_owned(), insertion }
}
