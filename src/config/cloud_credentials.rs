//! Credentials of this machine: what a cloud's own tools have set up for every
//! program on it.

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use crate::ai::Credential;

use super::aws::AwsCredentials;
use super::google_adc::GoogleAdc;

/// One cloud's way to find out who the user is.
pub trait CloudCredentials: Send + Sync {
    /// Whether there is anything to try, without the network.
    fn is_configured(&self) -> bool;

    /// A credential for requests to `base_url`, which may be a template. Dropping
    /// the future gives up.
    ///
    /// # Errors
    /// Describes for the user what is missing.
    fn credential<'a>(&'a self, base_url: &'a str) -> BoxFuture<'a, Result<Credential, String>>;

    /// Does not give out `token` again: it was not taken. For keys it is the session
    /// token, else their id.
    fn forget(&self, token: &str);
}

impl CloudCredentials for GoogleAdc {
    fn is_configured(&self) -> bool {
        Self::is_configured(self)
    }

    fn credential<'a>(&'a self, base_url: &'a str) -> BoxFuture<'a, Result<Credential, String>> {
        async move { Self::credential(self, base_url).await.map_err(|error| error.to_string()) }.boxed()
    }

    fn forget(&self, token: &str) {
        Self::forget(self, token);
    }
}

impl CloudCredentials for AwsCredentials {
    fn is_configured(&self) -> bool {
        Self::is_configured(self)
    }

    fn credential<'a>(&'a self, base_url: &'a str) -> BoxFuture<'a, Result<Credential, String>> {
        async move { Self::credential(self, base_url).await.map_err(|error| error.to_string()) }.boxed()
    }

    fn forget(&self, token: &str) {
        Self::forget(self, token);
    }
}
