//! The dialog of `/login` and `/logout`, with its stages.

use crate::config::{CLIENT_ID_HELP, Secret, SignInMethod, SignInRequest, SignInStep};
use crate::tui::keymap::Keymap;
use crate::tui::term::InputEvent;
use crate::tui::widgets::DialogCx;

use super::super::msg::{Effect, ScreenEffect};
use super::super::overlays::{DialogOutcome, Drawn, Overlay, OverlayStep};
use super::entry::Entry;
use super::providers::{LoginMethods, Logins};
use super::sign_in::SignInDialog;
use super::{LoginEffect, LoginMethod, LoginMsg, LoginProvider, Purpose};

/// Provider, then method, then a key or a sign-in; stages with a single choice are
/// skipped. Cancelling a stage leads back to the one before it, except from a sign-in.
pub(in super::super) struct LoginDialog {
    stage: Stage,
    /// The first one first.
    earlier: Vec<Stage>,
}

enum Stage {
    Providers(Logins),
    Methods(LoginMethods),
    Entry(Entry),
    SignIn(SignInDialog),
}

impl LoginDialog {
    /// Begins with the list of providers.
    pub(in super::super) fn new(purpose: Purpose, providers: Vec<LoginProvider>) -> Self {
        Self { stage: Stage::Providers(Logins::new(purpose, providers)), earlier: Vec::new() }
    }

    /// Begins with `provider` already chosen. The outcome is due at once.
    pub(in super::super) fn for_provider(provider: LoginProvider) -> (Self, Option<DialogOutcome>) {
        let mut dialog = Self { stage: Stage::Methods(LoginMethods::new(&provider)), earlier: Vec::new() };
        let step = dialog.choose(provider);
        dialog.earlier.clear();
        let outcome = match step {
            OverlayStep::StayWith(outcome) | OverlayStep::CloseWith(outcome) => Some(outcome),
            OverlayStep::Stay | OverlayStep::Close => None,
        };
        (dialog, outcome)
    }

    /// Whether it shows a sign-in, whose end closes the dialog.
    pub(in super::super) fn is_signing_in(&self) -> bool {
        matches!(self.stage, Stage::SignIn(_))
    }

    pub(in super::super) fn on_sign_in_step(&mut self, step: &SignInStep) {
        if let Stage::SignIn(dialog) = &mut self.stage {
            dialog.on_step(step);
        }
    }

    fn stage(&mut self) -> &mut dyn Overlay<LoginMsg> {
        match &mut self.stage {
            Stage::Providers(list) => list,
            Stage::Methods(list) => list,
            Stage::Entry(entry) => entry,
            Stage::SignIn(dialog) => dialog,
        }
    }

    fn on_msg(&mut self, msg: LoginMsg) -> OverlayStep {
        match msg {
            LoginMsg::Chosen(provider) => self.choose(provider),
            LoginMsg::MethodChosen(provider, LoginMethod::Key) => {
                self.show(Stage::Entry(key_entry(&provider)))
            }
            LoginMsg::MethodChosen(provider, LoginMethod::SignIn(method)) => {
                self.begin_sign_in(provider, method, None)
            }
            LoginMsg::ClientIdEntered { provider, method, id } => {
                self.begin_sign_in(provider, method, Some(id))
            }
            LoginMsg::KeyEntered { provider, key } => {
                OverlayStep::CloseWith(outcome(LoginEffect::SaveKey { provider, key }))
            }
            LoginMsg::ForgetChosen(provider) => {
                OverlayStep::CloseWith(outcome(LoginEffect::Forget(provider)))
            }
            LoginMsg::Pasted(text) => OverlayStep::StayWith(outcome(LoginEffect::Paste(text))),
            LoginMsg::Open(url) => OverlayStep::StayWith(outcome(LoginEffect::Open(url))),
            LoginMsg::Copy(text) => OverlayStep::StayWith(outcome(ScreenEffect::Copy(text))),
            LoginMsg::Cancelled => OverlayStep::CloseWith(DialogOutcome::SignInCancelled),
        }
    }

    fn choose(&mut self, provider: LoginProvider) -> OverlayStep {
        match provider.methods().as_slice() {
            [only] => self.on_msg(LoginMsg::MethodChosen(provider, *only)),
            _ => self.show(Stage::Methods(LoginMethods::new(&provider))),
        }
    }

    fn begin_sign_in(
        &mut self,
        provider: LoginProvider,
        method: SignInMethod,
        client_id: Option<String>,
    ) -> OverlayStep {
        if provider.asks_for_client_id && client_id.is_none() {
            return self.show(Stage::Entry(client_id_entry(provider, method)));
        }
        let name = provider.offer.map_or(provider.keys.name.as_str(), |offer| offer.name);
        self.stage = Stage::SignIn(SignInDialog::new(name));
        self.earlier.clear();
        let request = SignInRequest { provider: provider.keys.id, method, client_id, domain: None };
        OverlayStep::StayWith(outcome(LoginEffect::SignIn(request)))
    }

    fn show(&mut self, stage: Stage) -> OverlayStep {
        self.earlier.push(std::mem::replace(&mut self.stage, stage));
        OverlayStep::Stay
    }

    fn go_back(&mut self) -> OverlayStep {
        match self.earlier.pop() {
            Some(stage) => self.stage = stage,
            None => return OverlayStep::Close,
        }
        OverlayStep::Stay
    }
}

fn outcome(effect: impl Into<Effect>) -> DialogOutcome {
    DialogOutcome::Effect(effect.into())
}

fn key_entry(provider: &LoginProvider) -> Entry {
    let id = provider.keys.id.clone();
    let title = format!("Key for {}", provider.keys.name);
    let about = "pi saves it in auth.json, which only you can read, and never shows it.".to_owned();
    Entry::hidden(title, vec![about], move |text| LoginMsg::KeyEntered {
        provider: id.clone(),
        key: Secret::typed(text),
    })
}

fn client_id_entry(provider: LoginProvider, method: SignInMethod) -> Entry {
    let title = format!("Client id for {}", provider.keys.name);
    let about = CLIENT_ID_HELP.map(str::to_owned).to_vec();
    Entry::plain(title, about, move |text| {
        let (provider, id) = (provider.clone(), text.trim().to_owned());
        LoginMsg::ClientIdEntered { provider, method, id }
    })
}

impl Overlay for LoginDialog {
    fn handle(&mut self, input: &InputEvent, keymap: &Keymap) -> OverlayStep {
        match self.stage().handle(input, keymap) {
            OverlayStep::Stay => OverlayStep::Stay,
            OverlayStep::Close => self.go_back(),
            OverlayStep::StayWith(msg) | OverlayStep::CloseWith(msg) => self.on_msg(msg),
        }
    }

    fn render(&mut self, cx: &DialogCx<'_>) -> Drawn {
        self.stage().render(cx)
    }
}

#[cfg(test)]
mod tests {
    use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

    use crate::config::{KeySource, ProviderKeys};

    use super::super::super::keybindings::default_keymap;
    use super::super::super::overlays::tests::check_hints;
    use super::*;

    fn press(dialog: &mut LoginDialog, code: KeyCode) -> OverlayStep {
        let key = InputEvent::Key(KeyEvent::new(code, KeyModifiers::NONE));
        dialog.handle(&key, &default_keymap())
    }

    #[test]
    fn escape_leads_back_to_the_list_that_the_dialog_began_with() {
        let (id, name, source) = ("acme".to_owned(), "ACME".to_owned(), KeySource::Stored);
        let keys = ProviderKeys { id, name, source, is_stored: true, is_known: true };
        let provider = LoginProvider { keys, offer: None, asks_for_client_id: false };
        let mut dialog = LoginDialog::new(Purpose::Login, vec![provider.clone()]);
        press(&mut dialog, KeyCode::Enter);
        assert!(matches!(dialog.stage, Stage::Entry(_)));
        assert!(matches!(press(&mut dialog, KeyCode::Esc), OverlayStep::Stay));
        assert!(matches!(dialog.stage, Stage::Providers(_)));
        assert!(matches!(press(&mut dialog, KeyCode::Esc), OverlayStep::Close));
        let (mut dialog, _) = LoginDialog::for_provider(provider);
        assert!(matches!(dialog.stage, Stage::Entry(_)));
        assert!(matches!(press(&mut dialog, KeyCode::Esc), OverlayStep::Close));
    }

    #[test]
    fn hints_of_lists_and_entry_name_the_keys_of_the_user() {
        let (id, name, source) = ("acme".to_owned(), "ACME".to_owned(), KeySource::Stored);
        let keys = ProviderKeys { id, name, source, is_stored: true, is_known: true };
        let provider = LoginProvider { keys, offer: None, asks_for_client_id: false };
        let mut dialog = LoginDialog::new(Purpose::Login, vec![provider.clone()]);
        check_hints(&mut dialog);
        dialog.show(Stage::Methods(LoginMethods::new(&provider)));
        check_hints(&mut dialog);
        let enter = InputEvent::Key(KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE));
        dialog.handle(&enter, &default_keymap());
        assert!(matches!(dialog.stage, Stage::Entry(_)));
        check_hints(&mut dialog);
    }
}
