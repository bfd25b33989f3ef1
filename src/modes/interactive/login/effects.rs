//! Performs [`LoginEffect`]s. A sign-in is a task that [`Effects`] owns: it
//! ends when it is done, cancelled, or with the program.

use std::process::{Command, Stdio};
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::config::{AuthFile, AuthFileError, Env, Secret, SignInPrompt, SignInRequest, sign_in_offer};
use crate::session::Services;

use super::super::effects::Effects;
use super::super::msg::EffectDone;
use super::super::overlays::ModelChoice;
use super::{KeyChange, LoginDone, LoginEffect, LoginProvider, Purpose};

/// A sign-in in progress.
pub(in super::super) struct SignInTask {
    pasted: mpsc::UnboundedSender<Secret>,
    _guard: DropGuard,
}

impl Effects {
    pub(in super::super) fn start_login(&mut self, effect: LoginEffect) {
        match effect {
            LoginEffect::List { purpose, wanted } => self.list_logins(purpose, wanted),
            LoginEffect::SaveKey { provider, key } => {
                self.change(provider, "Saved", move |file, id| file.set_key(id, key.expose()).map(|()| true));
            }
            LoginEffect::Forget(provider) => self.change(provider, "Removed", AuthFile::remove),
            LoginEffect::SignIn(request) => self.sign_in(request),
            LoginEffect::Paste(text) => {
                if let Some(task) = &self.sign_in {
                    drop(task.pasted.send(text));
                }
            }
            LoginEffect::Open(url) => self.open(url),
            LoginEffect::Cancel => self.sign_in = None,
        }
    }

    fn list_logins(&self, purpose: Purpose, wanted: Option<String>) {
        let (services, done) = (Arc::clone(&self.services), self.done.clone());
        tokio::task::spawn_blocking(move || {
            let credentials = &services.credentials;
            let asks =
                |offer| credentials.accounts().is_some_and(|accounts| accounts.asks_for_client_id(offer));
            let providers = credentials.providers(&services.catalog.get()).into_iter();
            let providers = providers
                .filter(|provider| match purpose {
                    Purpose::Login => provider.is_known,
                    Purpose::Logout => provider.is_stored,
                })
                .map(|keys| {
                    let offer = sign_in_offer(&keys.id);
                    LoginProvider { asks_for_client_id: offer.is_some_and(asks), keys, offer }
                });
            let providers = providers.collect();
            let listed = LoginDone::Listed { purpose, wanted, providers };
            drop(done.send(EffectDone::Login(listed)));
        });
    }

    /// Changes the key file and reports the result.
    fn change(
        &self,
        provider: String,
        verb: &'static str,
        change: impl FnOnce(&Arc<AuthFile>, &str) -> Result<bool, AuthFileError> + Send + 'static,
    ) {
        let (services, done) = (Arc::clone(&self.services), self.done.clone());
        tokio::task::spawn_blocking(move || {
            let Some(file) = services.credentials.file() else { return };
            let outcome = match change(file, &provider) {
                Ok(true) => {
                    let text = match verb {
                        "Saved" => format!("Saved the key for {provider}."),
                        _ => format!("{verb} the credentials of {provider}."),
                    };
                    LoginDone::Changed(key_change(&services, &provider, text))
                }
                Ok(false) => LoginDone::Failed(format!("no key or account is saved for {provider}")),
                Err(error) => LoginDone::Failed(error.to_string()),
            };
            drop(done.send(EffectDone::Login(outcome)));
        });
    }

    fn sign_in(&mut self, request: SignInRequest) {
        let Some(accounts) = self.services.credentials.accounts().cloned() else { return };
        let (services, done) = (Arc::clone(&self.services), self.done.clone());
        let (steps, mut told) = mpsc::unbounded_channel();
        let (pasted, pastes) = mpsc::unbounded_channel();
        let cancel = CancellationToken::new();
        let cancelled = cancel.clone();
        tokio::spawn(async move {
            let provider = request.provider.clone();
            let signing_in = accounts.sign_in(request, SignInPrompt { steps, pasted: pastes });
            tokio::pin!(signing_in);
            let ended = loop {
                tokio::select! {
                    biased;
                    () = cancelled.cancelled() => return,
                    Some(step) = told.recv() => drop(done.send(EffectDone::Login(LoginDone::Step(step)))),
                    ended = &mut signing_in => break ended,
                }
            };
            let outcome = match ended {
                Ok(()) => {
                    let text = format!("You are signed in to {provider}.");
                    LoginDone::Changed(key_change(&services, &provider, text))
                }
                Err(error) => LoginDone::Failed(format!("cannot sign in to {provider}: {error}")),
            };
            drop(done.send(EffectDone::Login(outcome)));
        });
        self.sign_in = Some(SignInTask { pasted, _guard: cancel.drop_guard() });
    }

    fn open(&self, url: String) {
        let (env, done) = (self.env.clone(), self.done.clone());
        tokio::task::spawn_blocking(move || {
            if let Err(problem) = open_browser(&url, &env) {
                let step = crate::config::SignInStep::Problem(problem);
                drop(done.send(EffectDone::Login(LoginDone::Step(step))));
            }
        });
    }
}

/// The data for the app after keys changed.
fn key_change(services: &Services, provider: &str, text: String) -> KeyChange {
    let catalog = services.catalog.get();
    let info = catalog.provider(provider).filter(|info| services.credentials.is_available(info));
    let default_model = info.and_then(|info| {
        let first = || catalog.models_of(&info.id).first();
        let id = info.default_model.clone().or_else(|| first().map(|model| model.id.clone()))?;
        Some(format!("{}/{id}", info.id))
    });
    KeyChange { text, models: ModelChoice::of(&services.usable_models()), default_model }
}

/// Opens a web address with the desktop's default program. Blocks.
fn open_browser(url: &str, env: &Env) -> Result<(), String> {
    if !(url.starts_with("https://") || url.starts_with("http://")) {
        return Err("this is not a web address".to_owned());
    }
    let is_mac = cfg!(target_os = "macos");
    if !is_mac && !env.is_set("DISPLAY") && !env.is_set("WAYLAND_DISPLAY") {
        return Err("no browser found on this machine; open the address on another one".to_owned());
    }
    let opener = if is_mac { "open" } else { "xdg-open" };
    let status = Command::new(opener)
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(_) | Err(_) => Err(format!("{opener} cannot open the address; copy it instead")),
    }
}
