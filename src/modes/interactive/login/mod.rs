//! `/login` and `/logout`: their dialog, and its effects.
//!
//! The dialog shows and asks, `effects` stores and signs in; a key is passed between
//! them only as a [`Secret`].

mod dialog;
mod done;
mod effects;
mod entry;
mod providers;
mod sign_in;

use crate::config::{ProviderKeys, Secret, SignInMethod, SignInOffer, SignInRequest, SignInStep};
use crate::session::find_secrets;

use super::overlays::ModelChoice;

pub(super) use dialog::LoginDialog;
pub(super) use done::on_done;
pub(super) use effects::SignInTask;

/// The purpose of the list of providers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Login,
    Logout,
}

/// A provider in the list.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LoginProvider {
    pub(super) keys: ProviderKeys,
    pub(super) offer: Option<&'static SignInOffer>,
    /// Signing in needs a client id that has not been set yet.
    pub(super) asks_for_client_id: bool,
}

/// How to get access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LoginMethod {
    Key,
    SignIn(SignInMethod),
}

/// The user's action in one stage of the dialog.
#[derive(Debug)]
enum LoginMsg {
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

/// An effect outside the app.
#[derive(Debug, PartialEq)]
pub(super) enum LoginEffect {
    /// Lists the providers; answers with [`LoginDone::Listed`].
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
    /// Reports its steps as [`LoginDone::Step`].
    SignIn(SignInRequest),
    /// Passes the pasted text to the sign-in.
    Paste(Secret),
    /// Opens an address in the browser, if there is one.
    Open(String),
    /// Cancels the sign-in.
    Cancel,
}

/// The result of an effect.
#[derive(Debug)]
pub(super) enum LoginDone {
    Listed {
        purpose: Purpose,
        /// The provider in the command.
        wanted: Option<String>,
        providers: Vec<LoginProvider>,
    },
    Step(SignInStep),
    Changed(KeyChange),
    Failed(String),
}

/// The consequences of a change of keys.
#[derive(Debug)]
pub(super) struct KeyChange {
    pub(super) text: String,
    /// The models with a key after the change.
    pub(super) models: Vec<ModelChoice>,
    /// The model to switch to from the demo model.
    pub(super) default_model: Option<String>,
}

impl LoginProvider {
    /// The methods of access, the default first.
    pub(super) fn methods(&self) -> Vec<LoginMethod> {
        let sign_ins = self.offer.iter().flat_map(|offer| offer.methods).copied().map(LoginMethod::SignIn);
        let takes_key = self.offer.is_none_or(SignInOffer::takes_key);
        takes_key.then_some(LoginMethod::Key).into_iter().chain(sign_ins).collect()
    }

    pub(super) fn is_named(&self, name: &str) -> bool {
        self.keys.id.eq_ignore_ascii_case(name) || self.keys.name.eq_ignore_ascii_case(name)
    }
}

/// Whether the argument of `/login` may be a key instead of a provider's name.
pub(super) fn may_be_key(text: &str) -> bool {
    let is_long = text.len() > 32 || (text.len() >= 12 && text.contains(|c: char| c.is_ascii_digit()));
    is_long || text.contains(char::is_whitespace) || !find_secrets(text).is_empty()
}

/// Whether it is several words without anything that is known to be a key.
fn is_prose(text: &str) -> bool {
    text.contains(char::is_whitespace) && find_secrets(text).is_empty()
}

/// Whether a command of this name, which may be misspelt by one letter or cut short, is followed by what may be a key.
/// `is_provider` knows the names of providers, some of which have spaces like a name with a key.
pub(super) fn may_lead_to_key(name: &str, argument: &str, is_provider: impl Fn(&str) -> bool) -> bool {
    let is_meant = |command: &str| {
        // One of any length is compared for each frame.
        name.len().abs_diff(command.len()) <= 1
            && strsim::damerau_levenshtein(&name.to_ascii_lowercase(), command) <= 1
    };
    // `/log of yesterday` is more likely to be a text.
    let is_cut_short = |command: &str| {
        name.len() >= 3 && command.starts_with(&name.to_ascii_lowercase()) && !is_prose(argument)
    };
    let commands = ["login", "logout"];
    commands.into_iter().any(|command| is_meant(command) || is_cut_short(command))
        && may_be_key(argument)
        && !is_provider(argument)
}
