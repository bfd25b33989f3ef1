//! What proves to a service who is asking.
//!
//! Finding it is left to the callers; none of it is ever printed.

use std::fmt;

/// What proves to a service who is asking. Never printed.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum Credential {
    /// The service needs none (local servers, the demo model).
    #[default]
    None,
    ApiKey(String),
    /// A token sent as `Authorization: Bearer`, whatever the API's habit is.
    Bearer(String),
    /// The token of an account, from signing in.
    SignedIn(Box<SignIn>),
    /// Keys that requests to Amazon are signed with.
    Aws(Box<AwsKeys>),
}

/// Keys of an AWS account or role, and the region to ask.
#[derive(Clone, PartialEq, Eq)]
pub struct AwsKeys {
    pub access_key_id: String,
    pub secret_access_key: String,
    /// Comes with keys that end.
    pub session_token: Option<String>,
    /// Where requests are sent if the address leaves it open, and what they are signed for.
    pub region: String,
}

impl fmt::Debug for AwsKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AwsKeys(…)")
    }
}

/// What a service has given to an account that signed in.
#[derive(Clone, PartialEq, Eq)]
pub struct SignIn {
    /// Sent as `Authorization: Bearer`.
    pub token: String,
    /// Where this account is served, when not at the model's address.
    pub base_url: Option<String>,
    /// The account's id, where requests have to name it.
    pub account_id: Option<String>,
}

impl fmt::Debug for SignIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignIn").field("base_url", &self.base_url).finish_non_exhaustive()
    }
}

impl Credential {
    /// The token, when the credential is one that is always sent as bearer.
    pub fn bearer(&self) -> Option<&str> {
        match self {
            Self::None | Self::ApiKey(_) | Self::Aws(_) => None,
            Self::Bearer(token) => Some(token),
            Self::SignedIn(account) => Some(&account.token),
        }
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::ApiKey(_) => f.write_str("ApiKey(…)"),
            Self::Bearer(_) => f.write_str("Bearer(…)"),
            Self::SignedIn(account) => f.debug_tuple("SignedIn").field(account).finish(),
            Self::Aws(_) => f.write_str("Aws(…)"),
        }
    }
}
