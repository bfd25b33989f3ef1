//! Credentials of this machine, which a cloud's own tools have set up for all
//! programs.

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use crate::ai::Credential;

use super::aws::AwsCredentials;
use super::google_adc::GoogleAdc;

/// A cloud's method to find the user's credential.
pub trait CloudCredentials: Send + Sync {
    /// Whether credentials seem to be configured, checked without the network.
    fn is_configured(&self) -> bool;

    /// A credential for requests to `base_url`, which may be a template. Dropping
    /// the future cancels it.
    ///
    /// # Errors
    /// Names the missing part, for the user.
    fn credential<'a>(&'a self, base_url: &'a str) -> BoxFuture<'a, Result<Credential, String>>;

    /// Drops `token`, which a service rejected. For keys it is the session
    /// token, otherwise their id.
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
