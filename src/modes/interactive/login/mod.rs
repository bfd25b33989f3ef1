//! `/login` and `/logout`: the order of dialogs, and their notices.
//!
//! The overlays show and ask, `effects` stores and signs in; a key goes from the
//! one to the other as a [`Secret`] and nowhere else.

mod effects;

use crate::ai::DEMO_PROVIDER;
use crate::config::{
    CLIENT_ID_HELP, ProviderKeys, Secret, SignInMethod, SignInOffer, SignInRequest, SignInStep,
};
use crate::session::{Scope, SessionCommand};

use super::app::App;
use super::msg::{AppMsg, Effect};
use super::overlays::{Entry, LoginMethods, Logins, ModelChoice, SignInDialog};

pub(super) use effects::SignInTask;

/// What the list of providers is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Login,
    Logout,
}

/// A provider that can be chosen.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LoginProvider {
    pub(super) keys: ProviderKeys,
    pub(super) offer: Option<&'static SignInOffer>,
    /// Signing in needs a client id, which is missing.
    pub(super) asks_for_client_id: bool,
}

/// How to get access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LoginMethod {
    Key,
    SignIn(SignInMethod),
}

/// What the user did in a dialog.
#[derive(Debug)]
pub(super) enum LoginMsg {
    Chosen(LoginProvider),
    MethodChosen(LoginProvider, LoginMethod),
    KeyEntered { provider: String, key: Secret },
    ClientIdEntered { provider: LoginProvider, method: SignInMethod, id: String },
    ForgetChosen(String),
    Pasted(Secret),
    Copy(String),
    Open(String),
    Cancelled,
}

/// What happens outside of the app.
#[derive(Debug, PartialEq)]
pub(super) enum LoginEffect {
    /// Reads what there is; answers with [`LoginDone::Listed`].
    List {
        purpose: Purpose,
        wanted: Option<String>,
    },
    /// These answer with [`LoginDone::Changed`] or [`LoginDone::Failed`].
    SaveKey {
        provider: String,
        key: Secret,
    },
    Forget(String),
    /// Tells its steps meanwhile, as [`LoginDone::Step`].
    SignIn(SignInRequest),
    /// Hands what the user pasted to the sign-in.
    Paste(Secret),
    /// Opens an address in the browser, if there is one.
    Open(String),
    /// Gives the sign-in up.
    Cancel,
}

/// What an effect came to.
#[derive(Debug)]
pub(super) enum LoginDone {
    Listed {
        purpose: Purpose,
        /// The provider the command named.
        wanted: Option<String>,
        providers: Vec<LoginProvider>,
    },
    Step(SignInStep),
    Changed(Changed),
    Failed(String),
}

/// Keys changed.
#[derive(Debug)]
pub(super) struct Changed {
    pub(super) text: String,
    /// Models there is a key for now.
    pub(super) models: Vec<ModelChoice>,
    /// The model to go on with, when there was none but the demo.
    pub(super) default_model: Option<String>,
}

impl LoginProvider {
    /// The ways to get access, the usual one first.
    pub(super) fn methods(&self) -> Vec<LoginMethod> {
        let sign_ins = self.offer.iter().flat_map(|offer| offer.methods).copied().map(LoginMethod::SignIn);
        let takes_key = self.offer.is_none_or(SignInOffer::takes_key);
        takes_key.then_some(LoginMethod::Key).into_iter().chain(sign_ins).collect()
    }

    fn is_named(&self, name: &str) -> bool {
        self.keys.id.eq_ignore_ascii_case(name) || self.keys.name.eq_ignore_ascii_case(name)
    }
}

impl App {
    pub(super) fn login(&mut self, msg: LoginMsg, out: &mut Vec<Effect>) {
        match msg {
            LoginMsg::Chosen(provider) => self.login_chosen(provider, out),
            LoginMsg::MethodChosen(provider, LoginMethod::Key) => self.ask_for_key(&provider),
            LoginMsg::MethodChosen(provider, LoginMethod::SignIn(method)) => {
                self.begin_sign_in(provider, method, None, out);
            }
            LoginMsg::KeyEntered { provider, key } => {
                out.push(Effect::Login(LoginEffect::SaveKey { provider, key }));
            }
            LoginMsg::ClientIdEntered { provider, method, id } => {
                self.begin_sign_in(provider, method, Some(id), out);
            }
            LoginMsg::ForgetChosen(provider) => out.push(Effect::Login(LoginEffect::Forget(provider))),
            LoginMsg::Pasted(text) => out.push(Effect::Login(LoginEffect::Paste(text))),
            LoginMsg::Copy(text) => out.push(Effect::Copy(text)),
            LoginMsg::Open(url) => out.push(Effect::Login(LoginEffect::Open(url))),
            LoginMsg::Cancelled => {
                out.push(Effect::Login(LoginEffect::Cancel));
                self.tell("The sign-in was cancelled.");
            }
        }
    }

    pub(super) fn login_done(&mut self, done: LoginDone, out: &mut Vec<Effect>) {
        match done {
            LoginDone::Listed { purpose, wanted: None, providers } => self.list_logins(purpose, providers),
            LoginDone::Listed { purpose, wanted: Some(name), providers } => {
                match (providers.into_iter().find(|provider| provider.is_named(&name)), purpose) {
                    (Some(provider), Purpose::Login) => self.login_chosen(provider, out),
                    (Some(provider), Purpose::Logout) => {
                        out.push(Effect::Login(LoginEffect::Forget(provider.keys.id)));
                    }
                    (None, Purpose::Login) => {
                        self.fail(&format!("there is no provider \"{name}\"; use /login to list providers"));
                    }
                    (None, Purpose::Logout) => {
                        self.fail(&format!("no key or account is saved for \"{name}\""))
                    }
                }
            }
            LoginDone::Step(step) => self.sign_in_step(&step),
            LoginDone::Changed(changed) => self.keys_changed(changed, out),
            LoginDone::Failed(error) => {
                self.overlays.retain(|overlay| !overlay.is_sign_in());
                self.fail(&error);
            }
        }
    }

    fn list_logins(&mut self, purpose: Purpose, providers: Vec<LoginProvider>) {
        if providers.is_empty() {
            return self.tell("No key or account is saved.");
        }
        self.overlays.push(Box::new(Logins::new(purpose, providers)));
    }

    fn login_chosen(&mut self, provider: LoginProvider, out: &mut Vec<Effect>) {
        match provider.methods().as_slice() {
            [only] => self.login(LoginMsg::MethodChosen(provider, *only), out),
            _ => self.overlays.push(Box::new(LoginMethods::new(&provider))),
        }
    }

    fn ask_for_key(&mut self, provider: &LoginProvider) {
        let id = provider.keys.id.clone();
        let title = format!("Key for {}", provider.keys.name);
        let about = "pi saves it in auth.json, which only you can read, and never shows it.".to_owned();
        self.overlays.push(Box::new(Entry::hidden(title, vec![about], move |text| {
            AppMsg::Login(LoginMsg::KeyEntered { provider: id.clone(), key: Secret::typed(text) })
        })));
    }

    fn begin_sign_in(
        &mut self,
        provider: LoginProvider,
        method: SignInMethod,
        client_id: Option<String>,
        out: &mut Vec<Effect>,
    ) {
        if provider.asks_for_client_id && client_id.is_none() {
            let title = format!("Client id for {}", provider.keys.name);
            let about = CLIENT_ID_HELP.map(str::to_owned).to_vec();
            return self.overlays.push(Box::new(Entry::plain(title, about, move |text| {
                let (provider, id) = (provider.clone(), text.trim().to_owned());
                AppMsg::Login(LoginMsg::ClientIdEntered { provider, method, id })
            })));
        }
        let copy_key = self.keymap.hint("app.message.copy");
        let name = provider.offer.map_or(provider.keys.name.as_str(), |offer| offer.name);
        self.overlays.push(Box::new(SignInDialog::new(name, &copy_key)));
        let request = SignInRequest { provider: provider.keys.id, method, client_id, domain: None };
        out.push(Effect::Login(LoginEffect::SignIn(request)));
    }

    fn sign_in_step(&mut self, step: &SignInStep) {
        for overlay in &mut self.overlays {
            if overlay.sign_in_step(step) {
                return;
            }
        }
    }

    fn keys_changed(&mut self, changed: Changed, out: &mut Vec<Effect>) {
        self.overlays.retain(|overlay| !overlay.is_sign_in());
        self.models = changed.models;
        let is_demo = self.session.model.provider == DEMO_PROVIDER;
        match changed.default_model.filter(|_| is_demo) {
            Some(reference) => {
                // One notice: a second one would take the place of the first.
                let text = changed.text;
                self.tell(&format!("{text} The model is now {reference}; use /model to choose another one."));
                out.push(Effect::Session(SessionCommand::SetModel { reference, scope: Scope::Session }));
            }
            None => self.tell(&changed.text),
        }
    }
}
