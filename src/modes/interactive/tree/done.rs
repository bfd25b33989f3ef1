//! What the app does with the results of effects of the tree.

use super::super::app::App;
use super::super::msg::{Effect, ScreenEffect};
use super::super::overlays::ForkPoints;
use super::{TreeDialog, TreeDone};

/// Shows the result of an effect of the tree.
pub(in super::super) fn on_done(app: &mut App, done: TreeDone, out: &mut Vec<Effect>) {
    match done {
        TreeDone::Read(view) => {
            let mut dialog = TreeDialog::new(*view, app.session.phase);
            dialog.on_session(&app.session);
            app.dialogs.open_tree(dialog);
        }
        TreeDone::Prompts(prompts) if prompts.is_empty() => {
            app.tell("There is no message to fork from yet.");
        }
        TreeDone::Prompts(prompts) => app.dialogs.show(ForkPoints::new(prompts)),
        TreeDone::Forked(prompt) => app.edit_again(prompt),
        TreeDone::Whole(Some(text)) => out.push(ScreenEffect::Copy(text).into()),
        TreeDone::Whole(None) => app.status.hint = Some("this entry has no text to copy".to_owned()),
        done @ (TreeDone::Texts(_) | TreeDone::Found { .. }) => out.extend(app.dialogs.on_tree(done)),
    }
}
