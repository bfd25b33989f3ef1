//! Signing in to accounts: the offers, the flows, and the renewal of tokens.
//!
//! A flow reports its steps to a front end and receives pasted text;
//! it knows no screen. Tokens are stored in `auth.json` before they are used,
//! and renewed under its lock: providers treat a token as stolen if two
//! processes renew it. Nothing here prints or logs a token.

mod accounts;
mod callback;
mod chatgpt;
mod codex;
mod copilot;
mod device;
mod endpoints;
mod pkce;
mod reply;

use tokio::sync::mpsc;

use super::auth_file::AuthFileError;
use super::secret::Secret;

pub use accounts::{Accounts, SignInRequest};
pub use endpoints::Endpoints;

/// One way to sign in, as shown to the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignInOffer {
    /// The provider it is for.
    pub provider: &'static str,
    /// How the service does it.
    pub flow: SignInFlow,
    /// Its name for people.
    pub name: &'static str,
    /// One-line description, shown in the list.
    pub note: &'static str,
    /// The possible methods, the default first.
    pub methods: &'static [SignInMethod],
}

/// The service to sign in to, and how its tokens are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignInFlow {
    /// "Sign in with ChatGPT", for agents that register under their own name.
    ChatGpt,
    /// The sign-in of the Codex clients.
    Codex,
    /// GitHub Copilot, with the user's own OAuth app.
    Copilot,
}

/// How the user authenticates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignInMethod {
    /// In a browser that returns to this machine, or whose last address is pasted.
    Browser,
    /// With a code that the user enters in a browser on any device.
    DeviceCode,
}

/// TABLE: the providers to sign in to. They appear if the catalogue has
/// the provider. Anthropic is missing because its terms restrict plan sign-ins to its
/// own products.
pub const SIGN_INS: &[SignInOffer] = &[
    SignInOffer {
        provider: "openai",
        flow: SignInFlow::ChatGpt,
        name: "Sign in with ChatGPT",
        note: "uses your ChatGPT plan",
        methods: &[SignInMethod::Browser],
    },
    SignInOffer {
        provider: "openai-codex",
        flow: SignInFlow::Codex,
        name: "Sign in to Codex",
        note: "experimental: not meant for other programs, and may stop working",
        methods: &[SignInMethod::Browser, SignInMethod::DeviceCode],
    },
    SignInOffer {
        provider: "github-copilot",
        flow: SignInFlow::Copilot,
        name: "Sign in with GitHub",
        note: "needs a GitHub OAuth app of your own",
        methods: &[SignInMethod::DeviceCode],
    },
];

impl SignInOffer {
    /// Whether the provider also accepts API keys; the others accept only accounts.
    pub fn takes_key(&self) -> bool {
        match self.flow {
            SignInFlow::ChatGpt => true,
            SignInFlow::Codex | SignInFlow::Copilot => false,
        }
    }
}

/// The way to sign in to a provider, if there is one.
pub fn sign_in_offer(provider: &str) -> Option<&'static SignInOffer> {
    SIGN_INS.iter().find(|offer| offer.provider == provider)
}

/// How to get GitHub's client id, in two lines.
pub const CLIENT_ID_HELP: [&str; 2] = [
    "Register an OAuth app at https://github.com/settings/applications/new and enable its device flow.",
    "Its client id is not secret; you can set it as PI_COPILOT_CLIENT_ID or copilotClientId.",
];

/// A step of a sign-in in progress.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variants say what the fields are")]
pub enum SignInStep {
    /// The user must open `url`; then the browser returns by itself, or the user pastes
    /// the address it ends at.
    Browser { url: String },
    /// The user must open `url` on any device and enter `code`.
    Device { url: String, code: String },
    /// The current activity.
    Progress(String),
    /// A problem such as an invalid pasted address; the sign-in continues.
    Problem(String),
}

/// The connection between a sign-in and its front end. Dropping the future cancels the
/// sign-in.
pub struct SignInPrompt {
    /// Receives what the user has to do.
    pub steps: mpsc::UnboundedSender<SignInStep>,
    /// Yields what the user pasted.
    pub pasted: mpsc::UnboundedReceiver<Secret>,
}

impl SignInPrompt {
    fn tell(&self, step: SignInStep) {
        // If the front end is gone, it will drop this sign-in too.
        drop(self.steps.send(step));
    }

    /// The next pasted text; never returns once no more can arrive.
    async fn next_paste(&mut self) -> Secret {
        match self.pasted.recv().await {
            Some(text) => text,
            None => std::future::pending().await,
        }
    }
}

/// Why a sign-in or a token renewal failed.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum SignInError {
    #[error("the sign-in was declined")]
    Denied,
    #[error("the sign-in expired; start again")]
    Expired,
    /// The service or a proxy rejected the request.
    #[error("the provider rejected it: {reason}")]
    Refused { reason: String },
    /// An earlier token or code is no longer valid: used, revoked or expired.
    #[error("the provider rejected it: {reason}")]
    Ended { reason: String },
    /// A retry may work later.
    #[error("{reason}")]
    Unreachable { reason: String },
    #[error("the provider sent an unexpected response: {what}")]
    Protocol { what: &'static str },
    #[error("the account does not allow other programs to use its plan ({scope} is missing)")]
    ScopeMissing { scope: &'static str },
    #[error("the sign-in needs the client id of an OAuth app; set PI_COPILOT_CLIENT_ID or copilotClientId")]
    ClientIdMissing,
    #[error("device codes are disabled for this account; sign in with the browser")]
    DeviceCodesDisabled,
    #[error("{provider} does not support this sign-in")]
    NotOffered { provider: String },
    #[error(transparent)]
    Save(#[from] AuthFileError),
}
