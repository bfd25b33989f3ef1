//! TABLE: what keys do besides editing, with their default keys and help.

use crate::session::SessionCommand;
use crate::tui::keymap::{Binding, Context};

use super::app::App;
use super::msg::Effect;

/// One action: its binding, and what it does.
pub(super) struct Action {
    pub(super) binding: Binding,
    pub(super) run: fn(&mut App, &mut Vec<Effect>),
}

const fn action(
    id: &'static str,
    keys: &'static str,
    help: &'static str,
    run: fn(&mut App, &mut Vec<Effect>),
) -> Action {
    Action { binding: Binding::new(id, Context::App, keys, help), run }
}

/// A key that an overlay handles itself.
const fn listed(id: &'static str, context: Context, keys: &'static str, help: &'static str) -> Action {
    Action { binding: Binding::new(id, context, keys, help), run: |_, _| {} }
}

/// In the order help lists them.
pub(super) const ACTIONS: &[Action] = &[
    action(
        "app.interrupt",
        "escape",
        "Interrupt the agent and return queued messages to the editor",
        App::interrupt,
    ),
    action(
        "app.message.followUp",
        "alt+enter",
        "Queue the message until the agent is done",
        App::submit_follow_up,
    ),
    action(
        "app.message.deliverNow",
        "ctrl+enter",
        "Interrupt the agent and send the message now",
        App::submit_now,
    ),
    action("app.message.dequeue", "alt+up", "Return queued messages to the editor", |_, out| {
        out.push(Effect::TakeQueue);
    }),
    action("app.message.queue", "", "Reorder, edit or remove queued messages", |app, _| app.open_queue()),
    action("app.message.copy", "ctrl+x", "Copy the last answer", App::copy_answer),
    action("app.clear", "ctrl+c", "Clear the editor; press twice to quit", App::clear_or_quit),
    action("app.exit", "ctrl+d", "Quit if the editor is empty", App::exit_if_empty),
    action("app.suspend", "ctrl+z", "Suspend; resume with fg in the shell", |_, out| {
        out.push(Effect::Suspend);
    }),
    action("app.tools.expand", "ctrl+o", "Expand or collapse tool output", App::toggle_expanded),
    action("app.thinking.toggle", "ctrl+t", "Show or hide thinking", App::toggle_thinking),
    action("app.thinking.cycle", "shift+tab", "Next thinking level", |_, out| {
        out.push(Effect::Session(SessionCommand::CycleThinking));
    }),
    action("app.model.select", "ctrl+l", "Choose a model", App::open_models),
    action("app.model.cycleForward", "ctrl+p", "Next model", |_, out| {
        out.push(Effect::Session(SessionCommand::CycleModel { forward: true }));
    }),
    action("app.model.cycleBackward", "shift+ctrl+p", "Previous model", |_, out| {
        out.push(Effect::Session(SessionCommand::CycleModel { forward: false }));
    }),
    action("app.editor.external", "ctrl+g", "Edit the message in $VISUAL or $EDITOR", App::open_editor),
    listed("app.models.save", Context::Models, "ctrl+s", "Choose and save as default"),
    listed("app.models.scope", Context::Models, "tab", "Switch between all models and the cycle list"),
    listed("app.models.toggle", Context::Models, "enter", "Add a model to the cycle list, or remove it"),
    listed("app.models.moveUp", Context::Models, "alt+up", "Move a model up in the cycle list"),
    listed("app.models.moveDown", Context::Models, "alt+down", "Move a model down in the cycle list"),
    listed("app.thinking.save", Context::Select, "ctrl+s", "Choose and save as default"),
    listed("app.queue.moveUp", Context::Select, "alt+up", "Deliver a queued message earlier"),
    listed("app.queue.moveDown", Context::Select, "alt+down", "Deliver a queued message later"),
    listed(
        "app.queue.toggle",
        Context::Select,
        "tab",
        "Switch a queued message between steering and follow-up",
    ),
    listed("app.queue.drop", Context::Select, "delete", "Remove a queued message"),
    action("app.session.new", "", "Start a new session", App::new_session),
    action("app.session.resume", "", "Choose a session to continue", |_, out| out.push(Effect::ListSessions)),
];

/// The bindings of all actions.
pub(super) fn bindings() -> Vec<Binding> {
    ACTIONS.iter().map(|action| action.binding).collect()
}

/// Does what a key is bound to.
pub(super) fn perform(id: &str, app: &mut App, out: &mut Vec<Effect>) {
    if let Some(action) = ACTIONS.iter().find(|action| action.binding.id == id) {
        (action.run)(app, out);
    }
}

#[cfg(test)]
mod tests {
    use crate::tui::keymap::{BINDINGS, Keymap, Platform};

    use super::*;

    #[test]
    fn no_two_defaults_collide_in_one_context() {
        let app = bindings();
        for platform in [Platform::Unix, Platform::Windows, Platform::Wsl] {
            let keymap = Keymap::new(&[BINDINGS, &app], platform);
            let conflicts: Vec<String> = keymap
                .conflicts()
                .iter()
                .map(|conflict| format!("{}: {:?}", conflict.chord, conflict.ids))
                .collect();
            assert!(conflicts.is_empty(), "{conflicts:?}");
        }
    }

    #[test]
    fn every_action_has_help() {
        for action in ACTIONS {
            let help = action.binding.help;
            assert!(!help.is_empty() && !help.ends_with('.'), "{}", action.binding.id);
        }
    }
}
