//! What the app does with the results of effects of keys and accounts.

use crate::ai::DEMO_PROVIDER;
use crate::session::{Scope, SessionCommand};

use super::super::app::App;
use super::super::msg::Effect;
use super::{KeyChange, LoginDialog, LoginDone, LoginEffect, Purpose};

/// Shows the result of an effect of keys and accounts.
pub(in super::super) fn on_done(app: &mut App, done: LoginDone, out: &mut Vec<Effect>) {
    match done {
        LoginDone::Listed { wanted: None, providers, .. } if providers.is_empty() => {
            app.tell("No key or account is saved.");
        }
        LoginDone::Listed { purpose, wanted: None, providers } => {
            let dialog = LoginDialog::new(purpose, providers);
            app.dialogs.open_login(dialog);
        }
        LoginDone::Listed { purpose, wanted: Some(name), providers } => {
            match (providers.into_iter().find(|provider| provider.is_named(&name)), purpose) {
                (Some(provider), Purpose::Login) => {
                    let (dialog, outcome) = LoginDialog::for_provider(provider);
                    app.dialogs.open_login(dialog);
                    if let Some(outcome) = outcome {
                        app.on_dialog(outcome, out);
                    }
                }
                (Some(provider), Purpose::Logout) => {
                    out.push(LoginEffect::Forget(provider.keys.id).into());
                }
                (None, Purpose::Login) => {
                    app.fail(&format!("there is no provider \"{name}\"; /login alone lists them"));
                }
                (None, Purpose::Logout) => app.fail(&format!("nothing is stored for \"{name}\"")),
            }
        }
        LoginDone::Step(step) => app.dialogs.on_sign_in_step(&step),
        LoginDone::Changed(change) => on_keys_changed(app, change, out),
        LoginDone::Failed(error) => {
            app.dialogs.close_sign_in();
            app.fail(&error);
        }
    }
}

fn on_keys_changed(app: &mut App, change: KeyChange, out: &mut Vec<Effect>) {
    app.dialogs.on_keys_changed(change.models);
    let is_demo = app.session.model.provider == DEMO_PROVIDER;
    match change.default_model.filter(|_| is_demo) {
        Some(reference) => {
            // A single notice, because a second one would replace the first.
            let text = change.text;
            app.tell(&format!("{text} The model is now {reference}; use /model to choose another one."));
            out.push(Effect::session(SessionCommand::SetModel { reference, scope: Scope::Session }));
        }
        None => app.tell(&change.text),
    }
}
