//! Google's application-default credentials, for Vertex AI.
//!
//! [`GoogleAdc`] finds the user's identity in Google's order: the file in
//! `GOOGLE_APPLICATION_CREDENTIALS`, the one that `gcloud auth
//! application-default login` writes, the machine's own account on Google's
//! computers. It exchanges the identity for a token that lives an hour, and caches the
//! token until shortly before it expires. Callers decide when a token is needed, and
//! handle requests without one.
//!
//! Described at <https://cloud.google.com/docs/authentication/application-default-credentials>
//! and <https://developers.google.com/identity/protocols/oauth2/service-account>.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rustls::SignatureScheme;
use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject as _;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::ai::{CallBody, CallError, CallReply, Credential, HttpCall, SignIn, Transport, VertexPlace};
use crate::util::clock::Clock;
use crate::util::os;

use super::env::Env;

/// Longer files are not those of accounts.
const FILE_LIMIT_BYTES: u64 = 1 << 20;

const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
/// A token is replaced this long before it expires.
const MARGIN_MS: u64 = 60_000;
/// Lifetime of an assertion; this is Google's maximum.
const ASSERTION_SECONDS: u64 = 3_600;
/// Maximum wait for the metadata server, which is nearby or absent.
const METADATA_TIMEOUT: Duration = Duration::from_secs(1);
/// Region of requests if none is configured.
const DEFAULT_LOCATION: &str = "global";

/// The endpoints that issue tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoogleEndpoints {
    /// Accepts refresh tokens and assertions, unless a file names another endpoint.
    pub token: String,
    /// The metadata server, without a path.
    pub metadata: String,
}

impl Default for GoogleEndpoints {
    fn default() -> Self {
        Self {
            token: "https://oauth2.googleapis.com/token".to_owned(),
            metadata: "http://metadata.google.internal".to_owned(),
        }
    }
}

/// Why there is no token, with instructions.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum AdcError {
    #[error(
        "no Google credentials; run gcloud auth application-default login, or set GOOGLE_APPLICATION_CREDENTIALS or GOOGLE_CLOUD_API_KEY"
    )]
    Missing,
    #[error("no project for Vertex AI; set GOOGLE_CLOUD_PROJECT")]
    NoProject,
    #[error("cannot read the Google credentials in {path}: {problem}")]
    File { path: PathBuf, problem: String },
    #[error(
        "Google credentials of type {kind:?} in {path} are not supported; use those of a user or a service account"
    )]
    Kind { path: PathBuf, kind: String },
    #[error("the private key of {account} is not usable; create a new key file for the account")]
    Key { account: String },
    /// Google answered without a token.
    #[error(
        "Google returned no token ({status}): {text}; if access was revoked, run gcloud auth application-default login"
    )]
    Refused { status: u16, text: String },
    #[error("no token from Google: {0}")]
    Unreachable(#[from] CallError),
}

/// Finds and caches the token of the user, the service account or the machine.
pub struct GoogleAdc {
    /// `GOOGLE_APPLICATION_CREDENTIALS`; the file must exist if this is set.
    named_file: Option<PathBuf>,
    /// The file that `gcloud` writes.
    gcloud_file: Option<PathBuf>,
    project: Option<String>,
    location: String,
    api_key: Option<String>,
    endpoints: GoogleEndpoints,
    transport: Transport,
    clock: Clock,
    held: Mutex<Option<Token>>,
}

#[derive(Clone)]
struct Token {
    text: String,
    /// Expiry in milliseconds since the Unix epoch.
    ends_ms: u64,
}

impl GoogleAdc {
    /// `home` is the user's home directory.
    pub fn new(env: &Env, home: Option<&Path>, transport: Transport, clock: Clock) -> Self {
        let gcloud = env.path("CLOUDSDK_CONFIG").or_else(|| Some(home?.join(".config/gcloud")));
        let mut endpoints = GoogleEndpoints::default();
        if let Some(host) = env.get("GCE_METADATA_HOST") {
            endpoints.metadata = format!("http://{host}");
        }
        Self {
            named_file: env.path("GOOGLE_APPLICATION_CREDENTIALS"),
            gcloud_file: gcloud.map(|folder| folder.join("application_default_credentials.json")),
            project: env.get("GOOGLE_CLOUD_PROJECT").or_else(|| env.get("GCLOUD_PROJECT")),
            location: env.get("GOOGLE_CLOUD_LOCATION").unwrap_or_else(|| DEFAULT_LOCATION.to_owned()),
            api_key: env.get("GOOGLE_CLOUD_API_KEY"),
            endpoints,
            transport,
            clock,
            held: Mutex::new(None),
        }
    }

    /// The same, with other endpoints.
    #[must_use]
    pub fn with_endpoints(self, endpoints: GoogleEndpoints) -> Self {
        Self { endpoints, ..self }
    }

    /// Whether credentials seem to be configured, checked without
    /// the network. Google's own computers may have others.
    pub fn is_configured(&self) -> bool {
        let exists = |file: &Option<PathBuf>| file.as_deref().is_some_and(Path::is_file);
        self.api_key.is_some() || self.named_file.is_some() || exists(&self.gcloud_file)
    }

    /// The credential for a Vertex model with this base URL: the key of
    /// express mode if there is one, otherwise a token and the address of the project.
    ///
    /// # Errors
    /// Like [`Self::token`], and if no project is known.
    pub async fn credential(&self, base_url: &str) -> Result<Credential, AdcError> {
        if let Some(key) = &self.api_key {
            return Ok(Credential::ApiKey(key.clone()));
        }
        let place = self.place().await?;
        let token = self.token().await?;
        let base_url = Some(place.base_url(base_url));
        Ok(Credential::SignedIn(Box::new(SignIn { token, base_url, account_id: None })))
    }

    /// A token that is valid for at least a minute. Waits for the network if
    /// none is cached; two concurrent calls may both fetch one, which does no harm.
    ///
    /// # Errors
    /// If there are no credentials, or Google rejects them.
    pub async fn token(&self) -> Result<String, AdcError> {
        let now_ms = self.clock.now_ms();
        if let Some(token) = self.held().filter(|token| now_ms.saturating_add(MARGIN_MS) < token.ends_ms) {
            return Ok(token.text);
        }
        let reply = match self.identity().await? {
            Some(identity) => {
                let uri = identity.token_uri(&self.endpoints.token);
                let body = CallBody::Form(identity.grant(&uri, now_ms / 1_000)?);
                self.transport.call(HttpCall { url: uri, headers: Vec::new(), body }).await?
            }
            None => self.metadata("instance/service-accounts/default/token").await?,
        };
        let token = read_token(&reply, now_ms)?;
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = Some(token.clone());
        Ok(token.text)
    }

    /// Drops `token` from the cache after a service rejected it.
    pub fn forget(&self, token: &str) {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).take_if(|held| held.text == token);
    }

    /// Project and location of requests: those of the environment, otherwise the project
    /// of the credentials.
    ///
    /// # Errors
    /// If no project is known, or the credentials cannot be read.
    pub async fn place(&self) -> Result<VertexPlace, AdcError> {
        let location = self.location.clone();
        if let Some(project) = self.project.clone() {
            return Ok(VertexPlace { project, location });
        }
        let project = match self.identity().await? {
            Some(identity) => identity.project(),
            None => {
                let reply = self.metadata("project/project-id").await?;
                Some(reply.body.trim().to_owned()).filter(|_| reply.status == 200)
            }
        };
        let project = project.filter(|project| !project.is_empty()).ok_or(AdcError::NoProject)?;
        Ok(VertexPlace { project, location })
    }

    fn held(&self) -> Option<Token> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The identity in the files; `None` means the machine's own account.
    async fn identity(&self) -> Result<Option<Identity>, AdcError> {
        let (path, must_exist) = match (&self.named_file, &self.gcloud_file) {
            (Some(path), _) => (path, true),
            (None, Some(path)) => (path, false),
            (None, None) => return Ok(None),
        };
        match read_small(path.clone()).await {
            Ok(text) => Identity::read(path, &text).map(Some),
            Err(error) if !must_exist && error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(AdcError::File { path: path.clone(), problem: error.to_string() }),
        }
    }

    /// The metadata server's reply for `path`.
    async fn metadata(&self, path: &str) -> Result<CallReply, AdcError> {
        let call = HttpCall {
            url: format!("{}/computeMetadata/v1/{path}", self.endpoints.metadata),
            headers: vec![("metadata-flavor", "Google".to_owned())],
            body: CallBody::None,
        };
        // Without such a server, this is not one of Google's computers.
        let called = tokio::time::timeout(METADATA_TIMEOUT, self.transport.call(call)).await;
        called.ok().and_then(Result::ok).ok_or(AdcError::Missing)
    }
}

/// Contents of a credentials file, by its kind.
enum Identity {
    User(AuthorizedUser),
    Service(ServiceAccount),
}

#[derive(Deserialize)]
struct AuthorizedUser {
    client_id: String,
    client_secret: String,
    refresh_token: String,
    /// The project that pays for requests.
    quota_project_id: Option<String>,
}

#[derive(Deserialize)]
struct ServiceAccount {
    client_email: String,
    private_key: String,
    private_key_id: Option<String>,
    project_id: Option<String>,
    quota_project_id: Option<String>,
    token_uri: Option<String>,
}

impl Identity {
    fn read(path: &Path, text: &[u8]) -> Result<Self, AdcError> {
        // The parser's message may quote the file, and with it a secret.
        let refused = |problem: &str| AdcError::File { path: path.to_owned(), problem: problem.to_owned() };
        let value: Value = serde_json::from_slice(text).map_err(|_| refused("it is not JSON"))?;
        let kind = value.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
        let incomplete = |_| refused("fields are missing");
        match kind.as_str() {
            "authorized_user" => serde_json::from_value(value).map(Self::User).map_err(incomplete),
            "service_account" => serde_json::from_value(value).map(Self::Service).map_err(incomplete),
            _ => Err(AdcError::Kind { path: path.to_owned(), kind }),
        }
    }

    fn project(&self) -> Option<String> {
        match self {
            Self::User(user) => user.quota_project_id.clone(),
            Self::Service(account) => account.project_id.clone().or_else(|| account.quota_project_id.clone()),
        }
    }

    fn token_uri(&self, default: &str) -> String {
        match self {
            Self::User(_) => default.to_owned(),
            Self::Service(account) => account.token_uri.clone().unwrap_or_else(|| default.to_owned()),
        }
    }

    /// The form that requests a token from `uri`.
    fn grant(&self, uri: &str, now_s: u64) -> Result<Vec<(&'static str, String)>, AdcError> {
        Ok(match self {
            Self::User(user) => vec![
                ("grant_type", "refresh_token".to_owned()),
                ("client_id", user.client_id.clone()),
                ("client_secret", user.client_secret.clone()),
                ("refresh_token", user.refresh_token.clone()),
            ],
            Self::Service(account) => vec![
                ("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer".to_owned()),
                ("assertion", account.assertion(uri, now_s)?),
            ],
        })
    }
}

impl ServiceAccount {
    /// A signed assertion of this account, for the token service at `audience`.
    fn assertion(&self, audience: &str, now_s: u64) -> Result<String, AdcError> {
        let mut header = json!({"alg": "RS256", "typ": "JWT"});
        if let Some(id) = &self.private_key_id {
            header["kid"] = json!(id);
        }
        let claims = json!({
            "iss": self.client_email,
            "scope": SCOPE,
            "aud": audience,
            "iat": now_s,
            "exp": now_s.saturating_add(ASSERTION_SECONDS),
        });
        let encode = |part: &Value| URL_SAFE_NO_PAD.encode(part.to_string());
        let signed = format!("{}.{}", encode(&header), encode(&claims));
        let signature = rs256(&self.private_key, signed.as_bytes());
        let signature = signature.ok_or_else(|| AdcError::Key { account: self.client_email.clone() })?;
        Ok(format!("{signed}.{signature}"))
    }
}

/// RSASSA-PKCS1-v1_5 with SHA-256 in base64url (RFC 7518, 3.3), with a key in PEM.
/// `None` if that is not an RSA key.
fn rs256(pem: &str, message: &[u8]) -> Option<String> {
    let key = PrivateKeyDer::from_pem_slice(pem.as_bytes()).ok()?;
    let signer = any_supported_type(&key).ok()?.choose_scheme(&[SignatureScheme::RSA_PKCS1_SHA256])?;
    signer.sign(message).ok().map(|signature| URL_SAFE_NO_PAD.encode(signature))
}

fn read_token(reply: &CallReply, now_ms: u64) -> Result<Token, AdcError> {
    let value: Value = serde_json::from_str(&reply.body).unwrap_or_default();
    let field = |name: &str| value.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    match field("access_token").filter(|_| reply.status == 200) {
        Some(token) => {
            let seconds = value.get("expires_in").and_then(Value::as_u64).unwrap_or_default();
            let ends_ms = now_ms.saturating_add(seconds.saturating_mul(1_000));
            Ok(Token { text: token.to_owned(), ends_ms })
        }
        None => {
            let words: Vec<&str> = ["error", "error_description"].into_iter().filter_map(field).collect();
            let text = if words.is_empty() { "no reason given".to_owned() } else { words.join(": ") };
            Err(AdcError::Refused { status: reply.status, text })
        }
    }
}

/// The bytes of an account's file.
async fn read_small(path: PathBuf) -> std::io::Result<Vec<u8>> {
    let reading = tokio::task::spawn_blocking(move || os::read_regular(&path, FILE_LIMIT_BYTES));
    reading.await.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = include_str!("../../tests/fixtures/google/rfc7515-a2.pem");

    #[test]
    fn signatures_are_those_of_rfc_7515() {
        let message = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";
        let signature = "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw";
        assert_eq!(rs256(KEY, message.as_bytes()).as_deref(), Some(signature));
        assert_eq!(rs256("no key", b""), None);
    }

    fn identity(file: Value) -> Result<Identity, String> {
        Identity::read(Path::new("f.json"), file.to_string().as_bytes()).map_err(|error| error.to_string())
    }

    #[test]
    fn an_assertion_names_account_scope_audience_and_hour() {
        let file = json!({"type": "service_account", "client_email": "a@b", "private_key": KEY, "private_key_id": "k",
            "project_id": "p", "token_uri": "https://t/token"});
        let identity = identity(file).unwrap();
        let uri = identity.token_uri("https://default");
        assert_eq!((uri.as_str(), identity.project().as_deref()), ("https://t/token", Some("p")));
        let grant = identity.grant(&uri, 1_000).unwrap();
        assert_eq!(grant[0], ("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer".to_owned()));
        let parts: Vec<&str> = grant[1].1.split('.').collect();
        let part = |at: usize| -> Value {
            serde_json::from_slice(&URL_SAFE_NO_PAD.decode(parts[at]).unwrap()).unwrap()
        };
        assert_eq!(part(0), json!({"alg": "RS256", "typ": "JWT", "kid": "k"}));
        let claims =
            json!({"iss": "a@b", "scope": SCOPE, "aud": "https://t/token", "iat": 1_000, "exp": 4_600});
        assert_eq!(part(1), claims);
        let signed = format!("{}.{}", parts[0], parts[1]);
        assert_eq!(rs256(KEY, signed.as_bytes()).as_deref(), Some(parts[2]));
    }

    #[test]
    fn files_that_are_of_no_use_say_so_without_their_secrets() {
        let check = |file: Value, expected: &str| {
            assert_eq!(identity(file).err().as_deref(), Some(expected));
        };
        check(
            json!({"type": "external_account"}),
            "Google credentials of type \"external_account\" in f.json are not supported; use those of a user or a service account",
        );
        check(
            json!({"type": "authorized_user", "refresh_token": "canary"}),
            "cannot read the Google credentials in f.json: fields are missing",
        );
        let broken = Identity::read(Path::new("f.json"), b"{\"refresh_token\": \"canary");
        let text = broken.err().map(|error| error.to_string());
        assert_eq!(text.as_deref(), Some("cannot read the Google credentials in f.json: it is not JSON"));
        let file = json!({"type": "service_account", "client_email": "a@b", "private_key": "canary"});
        let error = identity(file).unwrap().grant("u", 0).err().map(|error| error.to_string());
        assert_eq!(
            error.as_deref(),
            Some("the private key of a@b is not usable; create a new key file for the account")
        );
    }

    #[test]
    fn replies_are_tokens_or_reasons() {
        let check = |status: u16, body: &str, expected: Result<(&str, u64), &str>| {
            let reply = CallReply { status, body: body.to_owned() };
            let read = read_token(&reply, 1_000).map_err(|error| error.to_string());
            let read =
                read.as_ref().map(|token| (token.text.as_str(), token.ends_ms)).map_err(String::as_str);
            assert_eq!(read, expected);
        };
        check(200, r#"{"access_token":"t","expires_in":3599,"token_type":"Bearer"}"#, Ok(("t", 3_600_000)));
        check(200, r#"{"access_token":"t"}"#, Ok(("t", 1_000)));
        check(
            400,
            r#"{"error":"invalid_grant","error_description":"Token has been expired or revoked."}"#,
            Err(
                "Google returned no token (400): invalid_grant: Token has been expired or revoked.; if access was revoked, run gcloud auth application-default login",
            ),
        );
        check(
            502,
            "<html>",
            Err(
                "Google returned no token (502): no reason given; if access was revoked, run gcloud auth application-default login",
            ),
        );
    }
}
