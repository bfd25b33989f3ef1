//! The lines above an empty transcript: keys, and how to connect a model.

use crate::ai::{DEMO_PROVIDER, ScopedModel};
use crate::session::SessionState;
use crate::tui::keymap::Keymap;

use super::actions::ACTIONS;

/// The actions whose keys are listed when the header is expanded.
const LISTED: &[&str] = &[
    "app.interrupt",
    "app.clear",
    "app.exit",
    "app.suspend",
    "app.message.followUp",
    "app.message.dequeue",
    "app.thinking.cycle",
    "app.thinking.toggle",
    "app.model.select",
    "app.model.cycleForward",
    "app.model.cycleBackward",
    "app.tools.expand",
    "app.transcript.page",
    "app.history.search",
    "app.editor.external",
    "app.clipboard.pasteImage",
];

/// One line for each key, in place of the first of [`hints`].
pub(super) fn keys(keymap: &Keymap) -> Vec<String> {
    let line = |id: &&str| {
        let action = ACTIONS.iter().find(|action| action.binding.id == *id)?;
        let key = Some(keymap.hint(id)).filter(|key| !key.is_empty())?;
        Some(format!("{key}: {}", action.binding.help))
    };
    let typed = [
        "/: Commands; /hotkeys lists all keys",
        "!: Run a command in bash, !! without the model knowing",
        "@: Name a file",
    ];
    LISTED.iter().filter_map(line).chain(typed.map(str::to_owned)).collect()
}

/// The models to cycle through, and the key that does; `None` if they are all models.
pub(super) fn scope(keymap: &Keymap, session: &SessionState) -> Option<String> {
    let model = |scoped: &ScopedModel| match scoped.thinking {
        Some(level) => format!("{}:{level}", scoped.model.id),
        None => scoped.model.id.clone(),
    };
    let models: Vec<String> = session.scope.iter().map(model).collect();
    let key = Some(keymap.hint("app.model.cycleForward")).filter(|key| !key.is_empty());
    let key = key.map(|key| format!(" ({key} to cycle)")).unwrap_or_default();
    (!models.is_empty()).then(|| format!("Model scope: {}{key}", models.join(", ")))
}

/// Instructions for new users.
pub(super) fn hints(keymap: &Keymap, session: &SessionState) -> Vec<String> {
    let bound = |id: &str, what: &str| {
        Some(keymap.hint(id)).filter(|key| !key.is_empty()).map(|key| format!("{key} {what}"))
    };
    let parts = [
        bound("app.interrupt", "interrupt"),
        bound("app.clear", "twice quit"),
        Some("/ commands".to_owned()),
        Some("! bash".to_owned()),
        bound("app.tools.expand", "expand"),
    ];
    let mut lines = vec![parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")];
    let is_demo = session.model.provider == DEMO_PROVIDER;
    if let Some(provider) = &session.instead_of_demo {
        lines.push("This is the offline demo model. It follows fixed rules and runs real tools.".to_owned());
        lines.push(format!("{provider} is set up: use /model to choose one of its models."));
    } else if is_demo {
        lines.push(
            "No key is configured, so this is the offline demo model. It follows fixed rules and runs real tools."
                .to_owned(),
        );
        lines.push(
            "To use a real model, type /login, or set ANTHROPIC_API_KEY or another key and restart pi."
                .to_owned(),
        );
    }
    if is_demo {
        lines.push("Try: give me an overview · create hello.txt with hello world · count slowly".to_owned());
    }
    lines
}
