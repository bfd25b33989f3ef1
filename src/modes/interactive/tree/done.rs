//! What the app does with the results of effects of the tree, and with what changes the tree.

use crate::session::SessionEvent;

use super::super::app::App;
use super::super::msg::{Effect, ScreenEffect};
use super::super::overlays::ForkPoints;
use super::super::status;
use super::{TreeDialog, TreeDone};

/// Has the open tree read again when the session has changed.
pub(in super::super) fn follow(app: &mut App, event: &SessionEvent, out: &mut Vec<Effect>) {
    let changes_tree = matches!(
        event,
        SessionEvent::EntryAppended(_) | SessionEvent::Navigated(_) | SessionEvent::Opened(_)
    );
    if changes_tree && let Some(tree) = app.dialogs.tree() {
        out.extend(tree.refresh().map(Effect::from));
    }
}

/// Shows the result of an effect of the tree.
pub(in super::super) fn on_done(app: &mut App, done: TreeDone, out: &mut Vec<Effect>) {
    match done {
        TreeDone::Read(view) => {
            // Another session may have been opened since the tree was asked for.
            if view.tree.session_id() != app.session.id {
                return;
            }
            let is_outdated = view.leaf() != app.session.leaf.as_ref();
            let mut dialog = TreeDialog::new(*view, app.session.phase);
            dialog.on_session(&app.session);
            if is_outdated {
                out.extend(dialog.refresh().map(Effect::from));
            }
            app.dialogs.open_tree(dialog);
        }
        TreeDone::Prompts { session_id, .. } if session_id != app.session.id => {}
        TreeDone::Prompts { prompts, .. } if prompts.is_empty() => {
            app.tell("There is no message to fork from yet.");
        }
        TreeDone::Prompts { session_id, prompts } => {
            app.dialogs.show(ForkPoints::new(&session_id, prompts));
        }
        TreeDone::Forked(prompt) => app.edit_again(prompt),
        TreeDone::Whole(Some(text)) => out.push(ScreenEffect::Copy(text).into()),
        TreeDone::Whole(None) => status::show_hint(app, "this entry has no text to copy"),
        TreeDone::Refreshed(read) => {
            let Some(tree) = app.dialogs.tree() else { return };
            let more = tree.on_refreshed(*read);
            tree.on_session(&app.session);
            out.extend(more.into_iter().map(Effect::from));
        }
        TreeDone::Texts { tree: read, texts } => {
            if let Some(tree) = app.dialogs.tree() {
                tree.on_texts(&read, texts);
            }
        }
        TreeDone::Found { tree: searched, query, from, entries } => {
            let Some(tree) = app.dialogs.tree() else { return };
            let more = tree.on_found(&searched, (query, from), entries);
            out.extend(more.into_iter().map(Effect::from));
        }
    }
}
