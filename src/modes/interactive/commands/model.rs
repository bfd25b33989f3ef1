//! Commands about the model.

use crate::ai::ThinkingLevel;
use crate::session::{Scope, SessionCommand};

use super::super::app::App;
use super::super::msg::Effect;
use super::Command;

pub(super) const COMMANDS: &[Command] = &[
    Command { name: "model", args: "[MODEL]", help: "Switch the model", run: model },
    Command {
        name: "scoped-models",
        args: "",
        help: "Choose and order the models to cycle through",
        run: |app, _, out| app.open_scope(out),
    },
    Command { name: "thinking", args: "[LEVEL]", help: "Set how much the model thinks", run: thinking },
];

fn model(app: &mut App, args: &str, out: &mut Vec<Effect>) {
    if args.is_empty() {
        return app.open_models(out);
    }
    if app.models.iter().any(|choice| choice.is_named(args)) {
        let reference = args.to_owned();
        out.push(Effect::Session(SessionCommand::SetModel { reference, scope: Scope::Session }));
    } else {
        app.open_models_with(args, out);
    }
}

fn thinking(app: &mut App, args: &str, out: &mut Vec<Effect>) {
    if args.is_empty() {
        return app.open_thinking();
    }
    match ThinkingLevel::parse(args) {
        Some(level) => {
            out.push(Effect::Session(SessionCommand::SetThinking { level, scope: Scope::Session }));
        }
        None => {
            let names: Vec<&str> = ThinkingLevel::ALL.into_iter().map(ThinkingLevel::name).collect();
            app.fail(&format!("\"{args}\" is not a thinking level; use one of {}", names.join(", ")));
        }
    }
}
