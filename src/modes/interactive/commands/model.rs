//! Commands about the model.

use crate::ai::ThinkingLevel;
use crate::session::{Scope, SessionCommand, SessionState};

use super::super::app::App;
use super::super::msg::{Effect, WorldEffect};
use super::Command;

pub(super) const COMMANDS: &[Command] = &[
    Command { name: "model", args: "[MODEL]", help: "Switch the model", run: model },
    Command {
        name: "scoped-models",
        args: "",
        help: "Choose and order the models to cycle through",
        run: |app, _, out| open_scope(app, out),
    },
    Command { name: "thinking", args: "[LEVEL]", help: "Set how much the model thinks", run: thinking },
];

fn model(app: &mut App, args: &str, out: &mut Vec<Effect>) {
    if app.dialogs.has_model(args) {
        let reference = args.to_owned();
        out.push(Effect::session(SessionCommand::SetModel { reference, scope: Scope::Session }));
    } else {
        open_models(app, args, out);
    }
}

/// Lists the known models, filtered by `query`, and searches for others in the background.
pub(in super::super) fn open_models(app: &mut App, query: &str, out: &mut Vec<Effect>) {
    out.push(WorldEffect::RefreshModels { with_services: true }.into());
    app.dialogs.open_models(&app.session, query);
}

fn open_scope(app: &mut App, out: &mut Vec<Effect>) {
    out.push(WorldEffect::RefreshModels { with_services: true }.into());
    app.dialogs.open_scope(&app.session);
}

/// Returns why the arguments of `/thinking` are invalid, or `None`.
pub(super) fn invalid_level(args: &str, session: &SessionState) -> Option<String> {
    if args.is_empty() || ThinkingLevel::parse(args).is_some() {
        return None;
    }
    let levels = session.model.thinking_levels();
    if levels.len() < 2 {
        return Some(format!("{} has no thinking levels", session.model.id));
    }
    let names: Vec<&str> = levels.into_iter().map(ThinkingLevel::name).collect();
    Some(format!("\"{args}\" is not a thinking level; use one of {}", names.join(", ")))
}

fn thinking(app: &mut App, args: &str, out: &mut Vec<Effect>) {
    if args.is_empty() {
        if let Err(refusal) = app.dialogs.open_thinking(&app.session) {
            app.fail(&refusal);
        }
        return;
    }
    if let Some(level) = ThinkingLevel::parse(args) {
        out.push(Effect::session(SessionCommand::SetThinking { level, scope: Scope::Session }));
    }
}
