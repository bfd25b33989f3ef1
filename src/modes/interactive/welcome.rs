//! The lines above an empty transcript: keys, and how to connect a model.

use crate::ai::DEMO_PROVIDER;
use crate::session::SessionState;
use crate::tui::keymap::Keymap;

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
