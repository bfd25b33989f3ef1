//! Credentials for Amazon Bedrock.
//!
//! [`AwsCredentials`] finds them in the order of Amazon's own tools: a bearer
//! token for Bedrock, keys in the environment, the profile of the shared files,
//! a web identity, a container's service, the service of an EC2 instance. Temporary
//! keys are cached until shortly before they expire. Callers decide when keys are
//! needed, and handle requests without any.
//!
//! Described at <https://docs.aws.amazon.com/sdkref/latest/guide/standardized-credentials.html>.

mod profile;
mod remote;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::ai::{
    AwsKeys, BEDROCK_DEFAULT_REGION, CallError, Credential, SignIn, Transport, bedrock_base_url,
    bedrock_region,
};
use crate::util::clock::Clock;

use super::env::Env;
use profile::{Files, Profile, Source};
use remote::{Container, WebIdentity};

/// Longer files are not those of accounts.
const FILE_LIMIT_BYTES: u64 = 4 << 20;

/// Keys are replaced this long before they expire.
const MARGIN_MS: u64 = 5 * 60_000;

/// Endpoints of keys, in addition to files and environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AwsEndpoints {
    /// Issues keys to containers whose environment contains a path of it.
    pub container: String,
    /// The metadata service of EC2 instances.
    pub metadata: String,
    /// Exchanges web identities for keys; `{region}` is filled in.
    pub sts: String,
}

impl Default for AwsEndpoints {
    fn default() -> Self {
        Self {
            container: "http://169.254.170.2".to_owned(),
            metadata: "http://169.254.169.254".to_owned(),
            sts: "https://sts.{region}.amazonaws.com".to_owned(),
        }
    }
}

/// Why there are no keys, with instructions.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum AwsError {
    #[error(
        "no AWS credentials; set AWS_BEARER_TOKEN_BEDROCK, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run aws configure"
    )]
    Missing,
    #[error(
        "the AWS profile {0:?} is neither in the credentials file nor in the config file; check AWS_PROFILE"
    )]
    NoProfile(String),
    #[error("the AWS profile {0:?} has no keys; run aws configure --profile {0}")]
    Empty(String),
    /// The profile uses a method that only Amazon's own tool supports.
    #[error(
        "the AWS profile {profile:?} uses {what}, which pi does not support; create another profile with credential_process = aws configure export-credentials --profile {profile}"
    )]
    Unsupported { profile: String, what: &'static str },
    #[error("cannot read {path}: {problem}")]
    File { path: PathBuf, problem: String },
    #[error("the credential_process of the AWS profile {profile:?} returned no keys: {problem}")]
    Process { profile: String, problem: String },
    #[error("pi does not request AWS keys from {0}; it is neither https nor local")]
    Insecure(String),
    /// A service answered without keys.
    #[error("{service} returned no AWS keys ({status}): {text}")]
    Refused { service: &'static str, status: u16, text: String },
    #[error("no AWS keys: {0}")]
    Unreachable(#[from] CallError),
}

/// Finds and caches the keys of the user, the role or the machine.
pub struct AwsCredentials {
    bearer: Option<String>,
    /// From `AWS_ACCESS_KEY_ID` and related variables.
    from_env: Option<Keys>,
    files: Files,
    web_identity: Option<WebIdentity>,
    container: Option<Container>,
    /// Whether this may be an EC2 instance.
    asks_instance: bool,
    region: Option<String>,
    endpoints: AwsEndpoints,
    transport: Transport,
    clock: Clock,
    held: Mutex<Option<Keys>>,
}

/// Keys without the region, which has other sources.
#[derive(Clone, PartialEq, Eq)]
struct Keys {
    id: String,
    secret: String,
    token: Option<String>,
    /// Expiry in milliseconds since the Unix epoch; `None` for permanent keys.
    ends_ms: Option<u64>,
}

impl AwsCredentials {
    /// `home` is the user's home directory.
    pub fn new(env: &Env, home: Option<&Path>, transport: Transport, clock: Clock) -> Self {
        let key =
            |name: &str| env.get(name).map(|value| value.trim().to_owned()).filter(|key| !key.is_empty());
        let from_env = key("AWS_ACCESS_KEY_ID").zip(key("AWS_SECRET_ACCESS_KEY"));
        let mut endpoints = AwsEndpoints::default();
        if let Some(metadata) = env.get("AWS_EC2_METADATA_SERVICE_ENDPOINT") {
            metadata.trim_end_matches('/').clone_into(&mut endpoints.metadata);
        }
        let is_disabled =
            env.get("AWS_EC2_METADATA_DISABLED").is_some_and(|flag| flag.eq_ignore_ascii_case("true"));
        Self {
            bearer: key("AWS_BEARER_TOKEN_BEDROCK"),
            from_env: from_env.map(|(id, secret)| Keys {
                id,
                secret,
                token: key("AWS_SESSION_TOKEN"),
                ends_ms: None,
            }),
            files: Files::new(env, home),
            web_identity: WebIdentity::of_env(env),
            container: Container::of_env(env),
            asks_instance: !is_disabled,
            region: key("AWS_REGION").or_else(|| key("AWS_DEFAULT_REGION")),
            endpoints,
            transport,
            clock,
            held: Mutex::new(None),
        }
    }

    /// The same, with other endpoints.
    #[must_use]
    pub fn with_endpoints(self, endpoints: AwsEndpoints) -> Self {
        Self { endpoints, ..self }
    }

    /// Whether credentials seem to be configured, checked without
    /// the network. Reads the shared files. An EC2 instance may have others.
    pub fn is_configured(&self) -> bool {
        self.bearer.is_some()
            || self.from_env.is_some()
            || self.web_identity.is_some()
            || self.container.is_some()
            || self.files.is_chosen()
            || self.files.read().is_ok_and(|profile| profile.is_some_and(|profile| profile.source.is_some()))
    }

    /// The credential for a Bedrock model with this base URL: the bearer
    /// token if there is one, with the address of the region, otherwise keys. Waits
    /// for the network if none are cached; two concurrent calls may both fetch
    /// keys, which does no harm.
    ///
    /// # Errors
    /// If there are no credentials, or they cannot be read or are rejected.
    pub async fn credential(&self, base_url: &str) -> Result<Credential, AwsError> {
        if let Some(token) = self.bearer.clone() {
            // A broken file matters only if it is needed.
            let profile = self.files.read().ok().flatten();
            let base_url = Some(bedrock_base_url(base_url, &self.region(profile.as_ref(), base_url)));
            return Ok(Credential::SignedIn(Box::new(SignIn { token, base_url, account_id: None })));
        }
        let profile = match (&self.from_env, self.files.read()) {
            (Some(_), Err(_)) => None,
            (_, read) => read?,
        };
        let region = self.region(profile.as_ref(), base_url);
        let Keys { id, secret, token, .. } = self.keys(profile, &region).await?;
        Ok(Credential::Aws(Box::new(AwsKeys {
            access_key_id: id,
            secret_access_key: secret,
            session_token: token,
            region,
        })))
    }

    /// Drops the cached keys with this session token, or with this id if they have none,
    /// after a service rejected them.
    pub fn forget(&self, token: &str) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.take_if(|keys| keys.token.as_deref().unwrap_or(&keys.id) == token);
    }

    /// The region of the environment, otherwise of the profile, otherwise of the address.
    fn region(&self, profile: Option<&Profile>, base_url: &str) -> String {
        let configured = self.region.as_deref().or_else(|| profile?.region.as_deref());
        configured.or_else(|| bedrock_region(base_url)).unwrap_or(BEDROCK_DEFAULT_REGION).to_owned()
    }

    async fn keys(&self, profile: Option<Profile>, region: &str) -> Result<Keys, AwsError> {
        if let Some(keys) = &self.from_env {
            return Ok(keys.clone());
        }
        // Configured keys may be edited at any time, so they are not cached.
        if let Some(Profile { source: Some(Source::Keys(keys)), .. }) = &profile {
            return Ok(keys.clone());
        }
        if let Some(keys) = self.held() {
            return Ok(keys);
        }
        let keys = match profile {
            Some(Profile { name, source: Some(source), .. }) => match source {
                Source::Keys(keys) => keys,
                Source::Process(command) => profile::run(&name, &command).await?,
                Source::WebIdentity(identity) => self.by_web_identity(&identity, region).await?,
                Source::Unsupported(what) => return Err(AwsError::Unsupported { profile: name, what }),
            },
            Some(Profile { name, source: None, .. }) if self.files.is_chosen() => {
                return Err(AwsError::Empty(name));
            }
            Some(_) | None => match (&self.web_identity, &self.container) {
                (Some(identity), _) => self.by_web_identity(identity, region).await?,
                (None, Some(container)) => container.keys(&self.transport, &self.endpoints.container).await?,
                (None, None) if self.asks_instance => {
                    remote::instance_keys(&self.transport, &self.endpoints.metadata).await?
                }
                (None, None) => return Err(AwsError::Missing),
            },
        };
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = Some(keys.clone());
        Ok(keys)
    }

    async fn by_web_identity(&self, identity: &WebIdentity, region: &str) -> Result<Keys, AwsError> {
        identity.keys(&self.transport, &self.endpoints.sts.replace("{region}", region)).await
    }

    fn held(&self) -> Option<Keys> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        let soon_ms = self.clock.now_ms().saturating_add(MARGIN_MS);
        held.ends_ms.is_none_or(|ends_ms| soon_ms < ends_ms).then_some(held)
    }
}

/// A time as Amazon writes it, `2026-11-21T15:11:00Z`, in milliseconds since
/// the Unix epoch.
fn time_ms(text: &str) -> Option<u64> {
    let time: jiff::Timestamp = text.trim().parse().ok()?;
    u64::try_from(time.as_millisecond()).ok()
}
