//! Credentials, as requests carry them.
//!
//! Callers find them; they are never printed.

use std::fmt;

/// Authenticates a request to a service. Never printed.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum Credential {
    /// The service needs no credential (local servers, the demo model).
    #[default]
    None,
    /// A key, in the header that the API uses.
    ApiKey(String),
    /// A token always sent as `Authorization: Bearer`, whichever header the API uses for keys.
    Bearer(String),
    /// The token of an account the user signed in to.
    SignedIn(Box<SignIn>),
    /// AWS keys that sign requests.
    Aws(Box<AwsKeys>),
}

/// Keys of an AWS account or role, and the region.
#[derive(Clone, PartialEq, Eq)]
pub struct AwsKeys {
    /// The id of the key.
    pub access_key_id: String,
    /// The secret that signs requests.
    pub secret_access_key: String,
    /// Belongs to temporary keys.
    pub session_token: Option<String>,
    /// The region of the endpoint, unless the address names one, and of the signature.
    pub region: String,
}

impl fmt::Debug for AwsKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AwsKeys(…)")
    }
}

/// The result of signing in to an account.
#[derive(Clone, PartialEq, Eq)]
pub struct SignIn {
    /// Sent as `Authorization: Bearer`.
    pub token: String,
    /// The endpoint of this account, if it differs from the model's.
    pub base_url: Option<String>,
    /// The account's id, for services whose requests must contain it.
    pub account_id: Option<String>,
}

impl fmt::Debug for SignIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignIn").field("base_url", &self.base_url).finish_non_exhaustive()
    }
}

impl Credential {
    /// Whether it belongs to an account with a plan, not to a key that is billed per token.
    pub fn is_account(&self) -> bool {
        match self {
            Self::SignedIn(_) => true,
            // Anthropic's tokens of plans.
            Self::ApiKey(key) | Self::Bearer(key) => key.starts_with("sk-ant-oat"),
            Self::None | Self::Aws(_) => false,
        }
    }

    /// The token, if the credential is always sent as bearer.
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
