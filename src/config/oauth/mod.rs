//! Signing in to accounts: who offers it, how it goes, and how tokens are renewed.
//!
//! A flow tells its steps to whoever shows them and gets back what is pasted;
//! it knows no screen. Tokens are stored in `auth.json` before they are used,
//! and renewed under its lock: providers take a token for stolen when two
//! processes renew it. Nothing in here prints or logs a token.

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

/// One way to sign in, as people know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignInOffer {
    /// The provider it is for.
    pub provider: &'static str,
    pub flow: SignInFlow,
    pub name: &'static str,
    /// One-line description, shown in the list.
    pub note: &'static str,
    /// How it can be done, the usual one first.
    pub methods: &'static [SignInMethod],
}

/// Which service one signs in to, and how tokens are used there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignInFlow {
    /// "Sign in with ChatGPT", for agents that register under their own name.
    ChatGpt,
    /// The sign-in of the Codex clients.
    Codex,
    /// GitHub Copilot, with an OAuth app of the user's own.
    Copilot,
}

/// How the user proves who they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignInMethod {
    /// In a browser that comes back to this machine, or whose last address is pasted.
    Browser,
    /// With a code that is typed in a browser anywhere.
    DeviceCode,
}

/// TABLE: the providers one can sign in to. They appear where the catalogue has
/// the provider. Anthropic is not among them: its terms keep plan sign-ins to its
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
    /// Whether the provider takes API keys besides; the others know accounts alone.
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

/// How to get the client id that GitHub asks for, in two lines.
pub const CLIENT_ID_HELP: [&str; 2] = [
    "Register an OAuth app at https://github.com/settings/applications/new and enable its device flow.",
    "Its client id is not secret; you can set it as PI_COPILOT_CLIENT_ID or copilotClientId.",
];

/// What a sign-in tells while it goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignInStep {
    /// The user is to open `url`; then the browser comes back by itself, or the
    /// address it ends at is pasted.
    Browser { url: String },
    /// The user is to open `url` anywhere and type `code`.
    Device { url: String, code: String },
    /// What is being waited for.
    Progress(String),
    /// A problem such as an invalid pasted address; the sign-in continues.
    Problem(String),
}

/// The two ends of a conversation with the user. The sign-in is given up by
/// dropping its future.
pub struct SignInPrompt {
    pub steps: mpsc::UnboundedSender<SignInStep>,
    pub pasted: mpsc::UnboundedReceiver<Secret>,
}

impl SignInPrompt {
    fn tell(&self, step: SignInStep) {
        // Whoever showed the steps is gone, and will drop this sign-in too.
        drop(self.steps.send(step));
    }

    /// What the user pastes next; never, once nothing more can come.
    async fn next_paste(&mut self) -> Secret {
        match self.pasted.recv().await {
            Some(text) => text,
            None => std::future::pending().await,
        }
    }
}

/// Why a sign-in or a token renewal failed.
#[derive(Debug, thiserror::Error)]
pub enum SignInError {
    #[error("the sign-in was declined")]
    Denied,
    #[error("the sign-in expired; start again")]
    Expired,
    /// The service or a proxy rejected the request.
    #[error("the provider rejected it: {reason}")]
    Refused { reason: String },
    /// What was given out earlier is worth nothing any more: spent, revoked, or gone.
    #[error("the provider rejected it: {reason}")]
    Ended { reason: String },
    /// It may work later.
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
