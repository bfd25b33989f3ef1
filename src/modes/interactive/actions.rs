//! TABLE: the actions of keys other than editing, with default keys and help.

use crate::session::{SessionCommand, WhenBusy};
use crate::tui::keymap::{Binding, Context};

use super::app::App;
use super::clipboard::AttachEffect;
use super::commands;
use super::fullscreen;
use super::msg::{Effect, ScreenEffect, WorldEffect};
use super::pager;
use super::prompt_history::HistoryEffect;
use super::session_picker::SessionsEffect;
use super::status::Hint;

/// One action: its binding and its handler.
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

impl Action {
    const fn on_windows(self, keys: &'static str) -> Self {
        Self { binding: self.binding.on_windows(keys), ..self }
    }

    /// Instead of keys that terminals of Windows keep for themselves, on Windows and in WSL.
    const fn in_windows_terminals(self, keys: &'static str) -> Self {
        Self { binding: self.binding.on_windows(keys).on_wsl(keys), ..self }
    }
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
    action("app.message.followUp", "alt+enter", "Queue the message until the agent is done", |app, out| {
        app.submit(WhenBusy::FollowUp, out);
    })
    .in_windows_terminals("ctrl+q"),
    action(
        "app.message.deliverNow",
        "ctrl+enter",
        "Interrupt the agent and send the message now",
        |app, out| app.submit(WhenBusy::Now, out),
    ),
    action("app.message.dequeue", "alt+up", "Return queued messages to the editor", |_, out| {
        out.push(WorldEffect::TakeQueue.into());
    })
    .in_windows_terminals("alt+q"),
    action("app.message.queue", "", "Reorder, edit or remove queued messages", |app, _| {
        commands::open_queue(app);
    }),
    action("app.message.copy", "ctrl+x", "Copy the last answer", copy_answer),
    action("app.clear", "ctrl+c", "Clear the editor; press twice to quit", |app, _| {
        app.input.clear_or_quit(app.now);
    }),
    action("app.exit", "ctrl+d", "Quit if the editor is empty", exit_if_empty),
    action("app.suspend", "ctrl+z", "Suspend; resume with fg in the shell", |_, out| {
        out.push(ScreenEffect::Suspend.into());
    })
    .on_windows(""),
    action("app.tools.expand", "ctrl+o", "Expand or collapse tool output and the header", toggle_expanded),
    action("app.transcript.page", "alt+o", "Show the whole transcript, with search", pager::open),
    action("app.screen.toggle", "", "Switch between the main screen and fullscreen", toggle_fullscreen),
    action("app.thinking.toggle", "ctrl+t", "Show or hide thinking", toggle_thinking),
    action("app.thinking.cycle", "shift+tab", "Next thinking level", |app, out| {
        if app.session.model.thinking_levels().len() < 2 {
            app.status.hint = Some(format!("{} has no thinking levels", app.session.model.id).into());
            return;
        }
        out.push(Effect::session(SessionCommand::CycleThinking));
    }),
    action("app.model.select", "ctrl+l", "Choose a model", |app, out| commands::open_models(app, "", out)),
    action("app.model.cycleForward", "ctrl+p", "Next model", |_, out| {
        out.push(Effect::session(SessionCommand::CycleModel { forward: true }));
    }),
    action("app.model.cycleBackward", "shift+ctrl+p", "Previous model", |_, out| {
        out.push(Effect::session(SessionCommand::CycleModel { forward: false }));
    })
    .in_windows_terminals("alt+p"),
    Action {
        binding: Binding::new(
            "app.clipboard.pasteImage",
            Context::App,
            "ctrl+v",
            "Paste an image, files or text",
        )
        .on_windows("ctrl+v alt+v")
        .on_wsl("ctrl+v alt+v"),
        run: |_, out| out.push(AttachEffect::Clipboard.into()),
    },
    action("app.history.search", "ctrl+r", "Search your earlier prompts", |_, out| {
        out.push(HistoryEffect::Search.into());
    }),
    listed(
        "app.history.toggleScope",
        Context::History,
        "tab",
        "Switch between prompts of this directory and all",
    ),
    action("app.editor.external", "ctrl+g", "Edit the message in $VISUAL or $EDITOR", open_editor),
    listed("app.models.save", Context::Models, "ctrl+s", "Choose and save as default"),
    listed("app.models.scope", Context::Models, "tab", "Switch between all models and the cycle list"),
    listed("app.models.toggle", Context::Models, "enter", "Add a model to the cycle list, or remove it"),
    listed("app.models.reorderUp", Context::Models, "alt+up", "Move a model up in the cycle list"),
    listed("app.models.reorderDown", Context::Models, "alt+down", "Move a model down in the cycle list"),
    listed(
        "app.models.enableAll",
        Context::Models,
        "ctrl+a",
        "Add all models that are shown to the cycle list",
    ),
    listed("app.models.clearAll", Context::Models, "ctrl+x", "Empty the cycle list"),
    listed(
        "app.models.toggleProvider",
        Context::Models,
        "ctrl+p",
        "Add all models of the provider to the cycle list, or remove them",
    ),
    listed("app.settings.reset", Context::Select, "ctrl+r", "Reset a setting"),
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
    action("app.session.new", "", "Start a new session", commands::new_session),
    action("app.session.resume", "", "Choose a session to continue", |_, out| {
        out.push(SessionsEffect::Open.into());
    }),
    action("app.session.tree", "", "Show the session as a tree and continue anywhere in it", |app, out| {
        commands::open_tree(app, out);
    }),
    action("app.session.fork", "", "Continue from an earlier message in a new session", |app, out| {
        commands::open_fork(app, out);
    }),
    listed("app.session.toggleScope", Context::Sessions, "tab", "Switch between this directory and all"),
    listed(
        "app.session.toggleSort",
        Context::Sessions,
        "ctrl+s",
        "Switch between threads and the order of time",
    ),
    listed("app.session.toggleNamedFilter", Context::Sessions, "ctrl+n", "Show only sessions with a name"),
    listed("app.session.togglePath", Context::Sessions, "ctrl+p", "Show or hide directories"),
    listed("app.session.rename", Context::Sessions, "ctrl+r", "Rename the session"),
    listed("app.session.delete", Context::Sessions, "ctrl+d", "Delete the session, after a question"),
    listed(
        "app.session.deleteNoninvasive",
        Context::Sessions,
        "ctrl+backspace",
        "Delete the session, if the search is empty",
    ),
    listed("app.tree.foldOrUp", Context::Tree, "ctrl+left alt+left", "Fold a branch, or go to its start"),
    listed(
        "app.tree.unfoldOrDown",
        Context::Tree,
        "ctrl+right alt+right",
        "Unfold a branch, or go to its end",
    ),
    listed("app.tree.editLabel", Context::Tree, "shift+l", "Label an entry"),
    listed("app.tree.togglePin", Context::Tree, "alt+p", "Pin a message, or unpin it"),
    listed("app.tree.toggleLabelTimestamp", Context::Tree, "shift+t", "Show when labels were set"),
    listed("app.tree.filter.default", Context::Tree, "ctrl+d", "Show the conversation"),
    listed("app.tree.filter.noTools", Context::Tree, "ctrl+t", "Hide tool results"),
    listed("app.tree.filter.userOnly", Context::Tree, "ctrl+u", "Show only your messages"),
    listed("app.tree.filter.labeledOnly", Context::Tree, "ctrl+l", "Show only labelled entries"),
    listed("app.tree.filter.all", Context::Tree, "ctrl+a", "Show all entries"),
    listed("app.tree.filter.cycleForward", Context::Tree, "ctrl+o", "Next filter"),
    listed("app.tree.filter.cycleBackward", Context::Tree, "shift+ctrl+o", "Previous filter"),
    action("app.debug", "shift+ctrl+d", "Write what is on the screen to a file", |_, out| {
        out.push(ScreenEffect::ReportScreen.into());
    }),
    listed("app.trace.failed", Context::Trace, "f", "Show only failed calls, or all again"),
    listed("app.trace.slow", Context::Trace, "s", "Show the slowest calls, or all again"),
    listed("app.trace.tool", Context::Trace, "t", "Show only the calls of the next tool"),
];

fn exit_if_empty(app: &mut App, out: &mut Vec<Effect>) {
    if app.input.prompt.composer.is_empty() {
        out.push(ScreenEffect::Quit.into());
    }
}

fn toggle_expanded(app: &mut App, _: &mut Vec<Effect>) {
    let mut view = app.transcript.view().clone();
    view.expanded = !view.expanded;
    let (hint, key) =
        (if view.expanded { "expanded" } else { "collapsed" }, app.keymap.hint("app.transcript.page"));
    app.transcript.set_view(view);
    // Fullscreen shows all of it so, on the main screen some has been written.
    if app.fullscreen.is_some() {
        app.status.hint = Some(format!("tool output is {hint}").into());
        return;
    }
    let shortest = format!("{hint} from here on");
    app.status.hint = Some(if key.is_empty() {
        Hint::shortened([format!("tool output is {shortest}"), shortest])
    } else {
        let all = format!("tool output is {shortest}; {key} shows the whole transcript");
        Hint::shortened([all, format!("{shortest}; {key} shows all"), shortest])
    });
}

fn toggle_thinking(app: &mut App, out: &mut Vec<Effect>) {
    let hide_thinking = !app.session.settings.values.hide_thinking;
    let (key, value) = ("hideThinkingBlock".to_owned(), Some(hide_thinking.into()));
    out.push(Effect::session(SessionCommand::ChangeSetting { key, value }));
}

/// Switches the screen, as the setting does.
pub(super) fn toggle_fullscreen(app: &mut App, out: &mut Vec<Effect>) {
    let mode = if app.fullscreen.is_some() { "regular" } else { "fullscreen" };
    let (key, value) = ("tuiMode".to_owned(), Some(mode.into()));
    out.push(Effect::session(SessionCommand::ChangeSetting { key, value }));
}

/// Copies the last answer to the clipboard.
pub(super) fn copy_answer(app: &mut App, out: &mut Vec<Effect>) {
    let copies_itself = app.session.settings.values.fullscreen.copy_on_select;
    if !copies_itself && let Some(text) = fullscreen::copy_selection(app) {
        return out.push(ScreenEffect::Copy(text).into());
    }
    match app.transcript.last_answer() {
        Some(text) => out.push(ScreenEffect::Copy(text).into()),
        None => app.status.hint = Some("there is no answer to copy yet".into()),
    }
}

fn open_editor(app: &mut App, out: &mut Vec<Effect>) {
    out.push(ScreenEffect::OpenEditor(app.input.prompt.composer.expanded_text()).into());
}

/// The bindings of all actions.
pub(super) fn bindings() -> Vec<Binding> {
    ACTIONS.iter().map(|action| action.binding).collect()
}

/// Performs the action of this id.
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
