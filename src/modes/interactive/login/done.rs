//! What the app does with the results of effects of keys and accounts.

use crate::ai::DEMO_PROVIDER;
use crate::session::{Scope, SessionCommand};
use crate::util::nearest::most_similar_first;

use super::super::app::App;
use super::super::msg::Effect;
use super::{KeyChange, LoginDialog, LoginDone, LoginEffect, Purpose, may_be_key};

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
            let position = providers.iter().position(|provider| provider.is_named(&name));
            let ids: Vec<&str> = providers.iter().map(|provider| provider.keys.id.as_str()).collect();
            let known = nearest_first(&name, ids);
            match (position.and_then(|at| providers.into_iter().nth(at)), purpose) {
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
                (None, _) if may_be_key(&name) && !app.input.completion.knows_provider(&name) => {
                    // Neither repeated nor put into the editor, whose text is stored as a draft.
                    app.fail("enter only the provider's name; pi asks for the key next");
                }
                (None, Purpose::Login) => {
                    let why = format!("there is no provider \"{name}\"; there is {known}");
                    app.refuse_command(&format!("login {name}"), &why);
                }
                (None, Purpose::Logout) => {
                    let stored = if known.is_empty() {
                        "no key or account is saved".to_owned()
                    } else {
                        format!("there is {known}")
                    };
                    let why = format!("nothing is stored for \"{name}\"; {stored}");
                    app.refuse_command(&format!("logout {name}"), &why);
                }
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

/// The names, those with the most similar spelling first.
fn nearest_first(name: &str, ids: Vec<&str>) -> String {
    most_similar_first(&name.to_ascii_lowercase(), ids).join(", ")
}

fn on_keys_changed(app: &mut App, change: KeyChange, out: &mut Vec<Effect>) {
    app.dialogs.close_sign_in();
    app.dialogs.on_models(change.models);
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
