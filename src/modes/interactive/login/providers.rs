//! The choice of a provider to log in to or out of, and of the method.

use crate::config::SignInMethod;
use crate::tui::keymap::Keymap;
use crate::tui::term::InputEvent;
use crate::tui::widgets::{DialogCx, Hints, Picker, PickerItem, PickerOutcome};

use super::super::overlays::{Drawn, Overlay, OverlayStep};
use super::{LoginMethod, LoginMsg, LoginProvider, Purpose};

/// The providers, each with the source of its key.
pub(super) struct Logins {
    picker: Picker<LoginProvider>,
    purpose: Purpose,
}

impl Logins {
    pub(super) fn new(purpose: Purpose, providers: Vec<LoginProvider>) -> Self {
        let items = providers
            .into_iter()
            .map(|provider| {
                let detail = match (purpose, provider.offer) {
                    (Purpose::Login, Some(offer)) => format!("{}: {}", offer.name, offer.note),
                    (Purpose::Login, None) | (Purpose::Logout, _) => String::new(),
                };
                let (name, note) = (provider.keys.name.clone(), provider.keys.source.to_string());
                let keywords = provider.keys.id.clone();
                PickerItem::new(provider, name).note(note).detail(detail).keywords(keywords)
            })
            .collect();
        let (title, confirm) = match purpose {
            Purpose::Login => ("Log in to a provider", "choose"),
            Purpose::Logout => ("Remove a provider's saved key or account", "remove"),
        };
        let hints = Hints::confirm(confirm).cancel("cancel");
        Self { picker: Picker::new(title, items).hints(hints), purpose }
    }
}

impl Overlay<LoginMsg> for Logins {
    fn handle(&mut self, input: &InputEvent, keymap: &Keymap) -> OverlayStep<LoginMsg> {
        match self.picker.handle(input, keymap) {
            PickerOutcome::Pending | PickerOutcome::Ignored => OverlayStep::Stay,
            PickerOutcome::Cancelled => OverlayStep::Close,
            PickerOutcome::Chosen(provider) => OverlayStep::CloseWith(match self.purpose {
                Purpose::Login => LoginMsg::Chosen(provider),
                Purpose::Logout => LoginMsg::ForgetChosen(provider.keys.id),
            }),
        }
    }

    fn render(&mut self, cx: &DialogCx<'_>) -> Drawn {
        let drawn = self.picker.render(cx);
        (drawn.rows, drawn.cursor)
    }
}

/// The methods of access to one provider.
pub(super) struct LoginMethods {
    picker: Picker<LoginMethod>,
    provider: LoginProvider,
}

impl LoginMethods {
    pub(super) fn new(provider: &LoginProvider) -> Self {
        let items = provider.methods().into_iter().map(|method| {
            let (label, note) = match (method, provider.offer) {
                (LoginMethod::SignIn(method), Some(offer)) => {
                    let way = match method {
                        SignInMethod::Browser => "with the browser",
                        SignInMethod::DeviceCode => "with a code, from any device",
                    };
                    let label = if offer.methods.len() > 1 { way.to_owned() } else { offer.name.to_owned() };
                    (label, offer.note)
                }
                (LoginMethod::Key | LoginMethod::SignIn(_), _) => ("API key".to_owned(), ""),
            };
            PickerItem::new(method, label).note(note)
        });
        let title = format!("Log in to {}", provider.keys.name);
        let picker = Picker::new(title, items.collect()).without_filter();
        let hints = Hints::confirm("choose").cancel("cancel");
        Self { picker: picker.hints(hints), provider: provider.clone() }
    }
}

impl Overlay<LoginMsg> for LoginMethods {
    fn handle(&mut self, input: &InputEvent, keymap: &Keymap) -> OverlayStep<LoginMsg> {
        match self.picker.handle(input, keymap) {
            PickerOutcome::Pending | PickerOutcome::Ignored => OverlayStep::Stay,
            PickerOutcome::Cancelled => OverlayStep::Close,
            PickerOutcome::Chosen(method) => {
                OverlayStep::CloseWith(LoginMsg::MethodChosen(self.provider.clone(), method))
            }
        }
    }

    fn render(&mut self, cx: &DialogCx<'_>) -> Drawn {
        let drawn = self.picker.render(cx);
        (drawn.rows, drawn.cursor)
    }
}
