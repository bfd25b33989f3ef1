//! Keys from services: for containers, for EC2 instances, for web
//! identities.
//!
//! Each function sends one request; the caller caches keys and retries.

use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::ai::{CallBody, CallReply, HttpCall, Transport};
use crate::util::os;

use super::super::env::Env;
use super::{AwsError, FILE_LIMIT_BYTES, Keys, time_ms};

/// Maximum wait for the metadata service, which is on the same machine or absent.
const METADATA_TIMEOUT: Duration = Duration::from_secs(1);

/// Identifies the process by a token that another program keeps fresh:
/// <https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRoleWithWebIdentity.html>.
pub(super) struct WebIdentity {
    token_file: PathBuf,
    role_arn: String,
    session: String,
}

impl WebIdentity {
    pub(super) fn new(token_file: PathBuf, role_arn: String, session: Option<String>) -> Self {
        Self { token_file, role_arn, session: session.unwrap_or_else(|| "pi".to_owned()) }
    }

    pub(super) fn of_env(env: &Env) -> Option<Self> {
        let token_file = env.path("AWS_WEB_IDENTITY_TOKEN_FILE")?;
        Some(Self::new(token_file, env.get("AWS_ROLE_ARN")?, env.get("AWS_ROLE_SESSION_NAME")))
    }

    /// Exchanges the token for keys, at the security token service at `url`.
    pub(super) async fn keys(&self, transport: &Transport, url: &str) -> Result<Keys, AwsError> {
        let token = read_token(&self.token_file).await?;
        let form = vec![
            ("Action", "AssumeRoleWithWebIdentity".to_owned()),
            ("Version", "2011-06-15".to_owned()),
            ("RoleArn", self.role_arn.clone()),
            ("RoleSessionName", self.session.clone()),
            ("WebIdentityToken", token),
        ];
        let call = HttpCall { url: format!("{url}/"), headers: Vec::new(), body: CallBody::Form(form) };
        let reply = transport.call(call).await?;
        let field = |name: &str| element(&reply.body, name);
        match field("AccessKeyId").zip(field("SecretAccessKey")).filter(|_| reply.status == 200) {
            Some((id, secret)) => {
                let ends_ms = field("Expiration").and_then(|time| time_ms(&time));
                Ok(Keys { id, secret, token: field("SessionToken"), ends_ms })
            }
            None => {
                let words: Vec<String> = ["Code", "Message"].into_iter().filter_map(field).collect();
                Err(refused("the security token service", reply.status, &words.join(": ")))
            }
        }
    }
}

/// The text of the first element with this name. Sufficient for replies of a few
/// flat fields; not an XML parser.
fn element(xml: &str, name: &str) -> Option<String> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    let (text, _) = rest.split_once(&format!("</{name}>"))?;
    let entities = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&amp;", "&")];
    let text =
        entities.iter().fold(text.trim().to_owned(), |text, (entity, char)| text.replace(entity, char));
    Some(text).filter(|text| !text.is_empty())
}

/// The source of a container's keys, and the token that authenticates it:
/// <https://docs.aws.amazon.com/sdkref/latest/guide/feature-container-credentials.html>.
pub(super) struct Container {
    place: Place,
    token_file: Option<PathBuf>,
    token: Option<String>,
}

enum Place {
    /// A path at the default service.
    Relative(String),
    Full(String),
}

impl Container {
    pub(super) fn of_env(env: &Env) -> Option<Self> {
        let place = match env.get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") {
            Some(path) => Place::Relative(path),
            None => Place::Full(env.get("AWS_CONTAINER_CREDENTIALS_FULL_URI")?),
        };
        Some(Self {
            place,
            token_file: env.path("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"),
            token: env.get("AWS_CONTAINER_AUTHORIZATION_TOKEN"),
        })
    }

    /// Requests keys; `base` is the default service.
    pub(super) async fn keys(&self, transport: &Transport, base: &str) -> Result<Keys, AwsError> {
        let url = match &self.place {
            Place::Relative(path) => format!("{base}/{}", path.trim_start_matches('/')),
            Place::Full(url) if may_be_asked(url) => url.clone(),
            Place::Full(url) => return Err(AwsError::Insecure(url.clone())),
        };
        let token = match &self.token_file {
            Some(path) => Some(read_token(path).await?),
            None => self.token.clone(),
        };
        let headers = token.map(|token| ("authorization", token)).into_iter().collect();
        let reply = transport.call(HttpCall { url, headers, body: CallBody::None }).await?;
        read_keys(&reply, "the container's credentials service")
    }
}

/// Whether the container's token may be sent to an address: encrypted, on this machine,
/// or one of Amazon's two services on every container host.
fn may_be_asked(url: &str) -> bool {
    let Some(rest) = url.strip_prefix("http://") else { return url.starts_with("https://") };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    // The text before an @ is not the host, although it may look like one.
    if authority.contains('@') {
        return false;
    }
    let host = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, _)) => host,
        None => authority.split(':').next().unwrap_or_default(),
    };
    match host.parse::<IpAddr>() {
        Ok(IpAddr::V4(ip)) => ip.is_loopback() || matches!(ip.octets(), [169, 254, 170, 2 | 23]),
        Ok(IpAddr::V6(ip)) => ip.is_loopback() || ip.segments() == [0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x23],
        Err(_) => host == "localhost",
    }
}

/// Keys of the role that an EC2 instance has, by version 2 of its metadata
/// service:
/// <https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instance-metadata-security-credentials.html>.
///
/// # Errors
/// [`AwsError::Missing`] if there is no such service or no role.
pub(super) async fn instance_keys(transport: &Transport, base: &str) -> Result<Keys, AwsError> {
    let ask = async |path: &str, headers: Vec<(&'static str, String)>, body: CallBody| {
        let call = HttpCall { url: format!("{base}/latest/{path}"), headers, body };
        let called = tokio::time::timeout(METADATA_TIMEOUT, transport.call(call)).await;
        let reply = called.ok().and_then(Result::ok).ok_or(AwsError::Missing)?;
        if reply.status == 200 { Ok(reply) } else { Err(AwsError::Missing) }
    };
    let lifetime = ("x-aws-ec2-metadata-token-ttl-seconds", "21600".to_owned());
    let token = ask("api/token", vec![lifetime], CallBody::Put).await?;
    let token = ("x-aws-ec2-metadata-token", token.body.trim().to_owned());
    let roles = "meta-data/iam/security-credentials/";
    let role = ask(roles, vec![token.clone()], CallBody::None).await?;
    let role =
        role.body.lines().next().map(str::trim).filter(|role| !role.is_empty()).ok_or(AwsError::Missing)?;
    let reply = ask(&format!("{roles}{role}"), vec![token], CallBody::None).await?;
    read_keys(&reply, "the instance's metadata service")
}

async fn read_token(path: &Path) -> Result<String, AwsError> {
    let file = path.to_owned();
    let reading = tokio::task::spawn_blocking(move || os::read_regular(&file, FILE_LIMIT_BYTES));
    let read = reading.await.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
    let token = read.and_then(|bytes| String::from_utf8(bytes).map_err(io::Error::other));
    let token =
        token.map_err(|error| AwsError::File { path: path.to_owned(), problem: error.to_string() })?;
    Ok(token.trim().to_owned())
}

/// Parses keys in the format of the services for containers and instances.
fn read_keys(reply: &CallReply, service: &'static str) -> Result<Keys, AwsError> {
    let value: Value = serde_json::from_str(&reply.body).unwrap_or_default();
    let field = |name: &str| value.get(name)?.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    match field("AccessKeyId").zip(field("SecretAccessKey")).filter(|_| reply.status == 200) {
        Some((id, secret)) => {
            let ends_ms = field("Expiration").and_then(|time| time_ms(&time));
            Ok(Keys { id, secret, token: field("Token"), ends_ms })
        }
        None => {
            let names = ["code", "Code", "message", "Message"];
            let words: Vec<String> = names.into_iter().filter_map(field).collect();
            Err(refused(service, reply.status, &words.join(": ")))
        }
    }
}

fn refused(service: &'static str, status: u16, text: &str) -> AwsError {
    let text = if text.is_empty() { "no reason given" } else { text };
    AwsError::Refused { service, status, text: text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_go_to_safe_addresses_only() {
        let check = |url: &str, expected: bool| assert_eq!(may_be_asked(url), expected, "{url}");
        check("https://example.com/keys", true);
        check("http://127.0.0.1:8080/keys", true);
        check("http://localhost/keys", true);
        check("http://[::1]:8080/keys", true);
        check("http://169.254.170.23/v1/credentials", true);
        check("http://169.254.170.2", true);
        check("http://[fd00:ec2::23]/v1/credentials", true);
        check("http://169.254.169.254/keys", false);
        check("http://example.com/keys", false);
        check("http://127.0.0.1.example.com/keys", false);
        check("http://127.0.0.1@example.com/keys", false);
        check("http://localhost:x@example.com/keys", false);
        check("file:///etc/passwd", false);
    }

    #[test]
    fn elements_are_found_and_unescaped() {
        let xml = "<R><Credentials>\n <AccessKeyId>A</AccessKeyId><SessionToken> a&lt;b&amp;lt;c </SessionToken><Empty></Empty><Open>";
        let check = |name: &str, expected: Option<&str>| {
            assert_eq!(element(xml, name).as_deref(), expected, "{name}");
        };
        check("AccessKeyId", Some("A"));
        check("SessionToken", Some("a<b&lt;c"));
        check("Empty", None);
        check("Open", None);
        check("None", None);
    }
}
