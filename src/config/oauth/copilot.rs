//! GitHub Copilot: a device code for the user's own OAuth app yields a permanent GitHub
//! token, which is exchanged for Copilot tokens that last half an hour. The
//! GitHub token is therefore stored as the refresh token.

use std::time::Duration;

use reqwest::Url;
use serde_json::{Map, Value};

use crate::ai::{CallBody, HttpCall};

use super::super::auth_file::OAuthEntry;
use super::accounts::Service;
use super::device::{self, Pace, Poll};
use super::reply;
use super::{SignInError, SignInPrompt, SignInStep};

const SCOPE: &str = "read:user";
const GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";
/// Lifetime of a device code if GitHub does not report one.
const DEVICE_CODE_LIFE: Duration = Duration::from_secs(15 * 60);

/// Signs in with a device code. `domain` is that of a GitHub Enterprise server.
pub(super) async fn sign_in(
    service: &Service,
    client_id: String,
    domain: Option<String>,
    prompt: &SignInPrompt,
) -> Result<OAuthEntry, SignInError> {
    let github = match &domain {
        Some(domain) => format!("https://{domain}"),
        None => service.endpoints.github.clone(),
    };
    let form = vec![("client_id", client_id.clone()), ("scope", SCOPE.to_owned())];
    let asked = post(service, format!("{github}/login/device/code"), form).await?;
    if let Some(code) = reply::error_code(&asked) {
        return Err(SignInError::Refused { reason: reply::plain(code) });
    }
    let text = |name: &str| asked.get(name).and_then(Value::as_str).map(str::to_owned);
    let (Some(device_code), Some(user_code)) = (text("device_code"), text("user_code")) else {
        return Err(SignInError::Protocol { what: "no device code" });
    };
    let url = text("verification_uri").as_deref().and_then(reply::web_address);
    let url = url.ok_or(SignInError::Protocol { what: "an address that cannot be opened" })?;
    let seconds = |name: &str| asked.get(name).and_then(reply::number).map(Duration::from_secs);
    let pace = Pace {
        interval: seconds("interval").unwrap_or(device::DEFAULT_INTERVAL),
        expires_in: seconds("expires_in").unwrap_or(DEVICE_CODE_LIFE),
    };
    prompt.tell(SignInStep::Device { url, code: reply::plain(&user_code) });
    let granted = device::poll(pace, || async {
        let form = vec![
            ("client_id", client_id.clone()),
            ("device_code", device_code.clone()),
            ("grant_type", GRANT.to_owned()),
        ];
        device_answer(&post(service, format!("{github}/login/oauth/access_token"), form).await?)
    });
    let token = granted.await?;
    prompt.tell(SignInStep::Progress("requesting a Copilot token…".to_owned()));
    let mut extra = Map::from_iter([("clientId".to_owned(), client_id.into())]);
    if let Some(domain) = domain {
        extra.insert("enterpriseUrl".to_owned(), domain.into());
    }
    let entry = OAuthEntry { access: String::new(), refresh: token, expires_ms: 0, extra };
    let renewed = refresh(service, &entry).await?;
    let mut extra = entry.extra;
    extra.extend(renewed.extra);
    Ok(OAuthEntry { extra, ..renewed })
}

/// GitHub's token, once the user has entered the code. GitHub's rejections have
/// status 200.
fn device_answer(value: &Value) -> Result<Poll<String>, SignInError> {
    if let Some(token) = value.get("access_token").and_then(Value::as_str) {
        return Ok(Poll::Done(token.to_owned()));
    }
    match reply::error_code(value) {
        Some("authorization_pending") => Ok(Poll::Pending),
        Some("slow_down") => {
            let interval = value.get("interval").and_then(reply::number).map(Duration::from_secs);
            Ok(Poll::SlowDown(interval))
        }
        Some("expired_token" | "token_expired") => Err(SignInError::Expired),
        Some("access_denied") => Err(SignInError::Denied),
        Some(code) => Err(SignInError::Refused { reason: reply::plain(code) }),
        None => Err(SignInError::Protocol { what: "no token" }),
    }
}

/// Exchanges the GitHub token, which stays the same, for a Copilot token.
pub(super) async fn refresh(service: &Service, entry: &OAuthEntry) -> Result<OAuthEntry, SignInError> {
    let api = match domain(entry) {
        Some(domain) => format!("https://api.{domain}"),
        None => service.endpoints.github_api.clone(),
    };
    let call = HttpCall {
        url: format!("{api}/copilot_internal/v2/token"),
        headers: vec![
            ("accept", "application/json".to_owned()),
            ("authorization", format!("Bearer {}", entry.refresh)),
        ],
        body: CallBody::None,
    };
    let reply = reply::send(&service.transport, call).await?;
    let value = match (reply::json(&reply), reply.status) {
        // GitHub's API has no error code for a revoked token, only "Bad credentials".
        (Err(SignInError::Refused { reason }), 401) => return Err(SignInError::Ended { reason }),
        (value, _) => value?,
    };
    let token = value.get("token").and_then(Value::as_str).filter(|token| !token.is_empty());
    let access = token.ok_or(SignInError::Protocol { what: "no token" })?.to_owned();
    let expires = value.get("expires_at").and_then(reply::number);
    let expires_ms =
        expires.ok_or(SignInError::Protocol { what: "a token without expiry" })?.saturating_mul(1_000);
    let mut extra = Map::new();
    let base_url = value.get("endpoints").and_then(|endpoints| endpoints.get("api")).and_then(Value::as_str);
    if let Some(base_url) = base_url.and_then(reply::web_address) {
        extra.insert("baseUrl".to_owned(), base_url.trim_end_matches('/').into());
    }
    Ok(OAuthEntry { access, refresh: entry.refresh.clone(), expires_ms, extra })
}

/// The account's endpoint: from the token's response, otherwise from the token
/// itself, otherwise the default of its kind of account.
pub(super) fn base_url(service: &Service, entry: &OAuthEntry) -> String {
    if let Some(url) = entry.text("baseUrl").and_then(reply::web_address) {
        return url.trim_end_matches('/').to_owned();
    }
    let proxy = entry.access.split(';').find_map(|field| field.strip_prefix("proxy-ep="));
    if let Some(host) = proxy.and_then(host) {
        let host = host.strip_prefix("proxy.").map_or(host.clone(), |rest| format!("api.{rest}"));
        return format!("https://{host}");
    }
    match domain(entry) {
        Some(domain) => format!("https://copilot-api.{domain}"),
        None => service.endpoints.copilot.clone(),
    }
}

/// The domain of a GitHub Enterprise server.
fn domain(entry: &OAuthEntry) -> Option<String> {
    enterprise_domain(entry.text("enterpriseUrl")?)
}

/// The domain in a typed or stored text: `company.ghe.com`, or its address.
pub(super) fn enterprise_domain(text: &str) -> Option<String> {
    let text = text.trim();
    host(text.strip_prefix("https://").unwrap_or(text).trim_end_matches('/'))
}

/// The text, if it is only a host name.
fn host(text: &str) -> Option<String> {
    let url = Url::parse(&format!("https://{text}/")).ok()?;
    url.host_str().filter(|host| *host == text).map(str::to_owned)
}

async fn post(
    service: &Service,
    url: String,
    form: Vec<(&'static str, String)>,
) -> Result<Value, SignInError> {
    let headers = vec![("accept", "application/json".to_owned())];
    let call = HttpCall { url, headers, body: CallBody::Form(form) };
    reply::json(&reply::send(&service.transport, call).await?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_account_is_served_where_its_token_says() {
        let check = |access: &str, extra: Value, expected: &str| {
            let Value::Object(extra) = extra else { panic!("not an object") };
            let (access, refresh) = (access.to_owned(), String::new());
            let entry = OAuthEntry { access, refresh, expires_ms: 0, extra };
            assert_eq!(base_url(&Service::default(), &entry), expected);
        };
        check("tid=1;exp=2", json!({}), "https://api.individual.githubcopilot.com");
        check(
            "tid=1;proxy-ep=proxy.business.githubcopilot.com;exp=2",
            json!({}),
            "https://api.business.githubcopilot.com",
        );
        check("tid=1;proxy-ep=evil.example/x?", json!({}), "https://api.individual.githubcopilot.com");
        check("tid=1", json!({"enterpriseUrl": "https://acme.ghe.com/"}), "https://copilot-api.acme.ghe.com");
        check("tid=1", json!({"baseUrl": "https://api.acme.example/"}), "https://api.acme.example");
        check("tid=1", json!({"baseUrl": "file:///x"}), "https://api.individual.githubcopilot.com");
    }
}
