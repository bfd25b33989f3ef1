//! The lines above an empty transcript: keys, and how to connect a model.

use crate::ai::DEMO_PROVIDER;
use crate::session::SessionState;
use crate::tui::keymap::Keymap;

/// Instructions for new users.
pub(super) fn hints(keymap: &Keymap, session: &SessionState) -> Vec<String> {
    let key = |id: &str| keymap.hint(id);
    let mut lines = vec![format!(
        "{} interrupt · {} twice quit · / commands · ! bash · {} expand",
        key("app.interrupt"),
        key("app.clear"),
        key("app.tools.expand")
    )];
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
