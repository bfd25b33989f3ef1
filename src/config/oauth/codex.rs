//! The sign-in of the Codex clients, with their client id and port. Experimental,
//! and under pi's own name: `originator` and `User-Agent` identify
//! pi.

use std::time::Duration;

use reqwest::Url;
use serde_json::{Map, Value, json};

use crate::ai::{CallBody, CallReply, HttpCall};

use super::super::auth_file::OAuthEntry;
use super::accounts::Service;
use super::callback::{self, Needs};
use super::device::{self, Pace, Poll};
use super::pkce::{self, Pkce};
use super::reply::{self, Tokens};
use super::{SignInError, SignInMethod, SignInPrompt, SignInStep};

const CLIENT_ID: &str = "app_EMoamEEZ73f0CkXaXp7hrann";
const SCOPE: &str = "openid profile email offline_access";
const ORIGINATOR: &str = "pi";
/// Lifetime of a device code.
const DEVICE_CODE_LIFE: Duration = Duration::from_secs(15 * 60);

pub(super) async fn sign_in(
    service: &Service,
    method: SignInMethod,
    prompt: &mut SignInPrompt,
) -> Result<OAuthEntry, SignInError> {
    match method {
        SignInMethod::Browser => browser(service, prompt).await,
        SignInMethod::DeviceCode => device_code(service, prompt).await,
    }
}

async fn browser(service: &Service, prompt: &mut SignInPrompt) -> Result<OAuthEntry, SignInError> {
    let (pkce, state) = (Pkce::new()?, pkce::random()?);
    let listening = callback::listen(service.endpoints.callback_port).await;
    let (listener, port) =
        listening.map_or((None, service.endpoints.callback_port), |(l, port)| (Some(l), port));
    let redirect = format!("http://localhost:{port}{}", callback::PATH);
    let query = [
        ("response_type", "code"),
        ("client_id", CLIENT_ID),
        ("redirect_uri", &redirect),
        ("scope", SCOPE),
        ("code_challenge", &pkce.challenge),
        ("code_challenge_method", "S256"),
        ("state", &state),
        ("id_token_add_organizations", "true"),
        ("codex_cli_simplified_flow", "true"),
        ("originator", ORIGINATOR),
    ];
    let address = format!("{}/oauth/authorize", service.endpoints.openai);
    let url = Url::parse_with_params(&address, query)
        .map_err(|_| SignInError::Protocol { what: "its address is invalid" })?;
    if listener.is_none() {
        prompt.tell(SignInStep::Problem(format!(
            "port {port} is in use, so the browser cannot return to pi; paste the address it ends at"
        )));
    }
    prompt.tell(SignInStep::Browser { url: url.into() });
    let answer = callback::answer(listener, &state, Needs::Code, prompt).await?;
    prompt.tell(SignInStep::Progress("signing in…".to_owned()));
    redeem_code(service, answer.code, pkce.verifier, redirect).await
}

/// Not the standard device flow: the resulting code is redeemed like a
/// browser's, with a verifier that the service created.
async fn device_code(service: &Service, prompt: &SignInPrompt) -> Result<OAuthEntry, SignInError> {
    let accounts = format!("{}/api/accounts/deviceauth", service.endpoints.openai);
    let asked = post(service, format!("{accounts}/usercode"), json!({ "client_id": CLIENT_ID })).await?;
    if asked.status == 404 {
        return Err(SignInError::DeviceCodesDisabled);
    }
    let asked = reply::json(&asked)?;
    let text = |name: &str| asked.get(name).and_then(Value::as_str).map(str::to_owned);
    let (Some(id), Some(code)) = (text("device_auth_id"), text("user_code")) else {
        return Err(SignInError::Protocol { what: "no device code" });
    };
    let interval = asked.get("interval").and_then(reply::number).map(Duration::from_secs);
    let pace = Pace { interval: interval.unwrap_or(device::DEFAULT_INTERVAL), expires_in: DEVICE_CODE_LIFE };
    let url = format!("{}/codex/device", service.endpoints.openai);
    prompt.tell(SignInStep::Device { url, code: reply::plain(&code) });
    let granted = device::poll(pace, || async {
        let body = json!({ "device_auth_id": id, "user_code": code });
        let answer = post(service, format!("{accounts}/token"), body).await?;
        device_answer(&answer)
    });
    let (code, verifier) = granted.await?;
    prompt.tell(SignInStep::Progress("signing in…".to_owned()));
    let redirect = format!("{}/deviceauth/callback", service.endpoints.openai);
    redeem_code(service, code, verifier, redirect).await
}

/// The code and its verifier, once the user has entered the device code.
fn device_answer(answer: &CallReply) -> Result<Poll<(String, String)>, SignInError> {
    let value: Value = serde_json::from_str(&answer.body).unwrap_or_default();
    match (answer.status, reply::error_code(&value)) {
        (_, Some("slow_down")) => Ok(Poll::SlowDown(None)),
        (_, Some("access_denied" | "deviceauth_denied")) => Err(SignInError::Denied),
        (_, Some("expired_token" | "deviceauth_expired")) => Err(SignInError::Expired),
        (403 | 404, _) | (_, Some("deviceauth_authorization_pending" | "authorization_pending")) => {
            Ok(Poll::Pending)
        }
        _ => {
            let value = reply::json(answer)?;
            let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
            match (text("authorization_code"), text("code_verifier")) {
                (Some(code), Some(verifier)) => Ok(Poll::Done((code, verifier))),
                _ => Err(SignInError::Protocol { what: "no code" }),
            }
        }
    }
}

/// Exchanges the refresh token for new tokens, including a new refresh token.
pub(super) async fn refresh(service: &Service, entry: &OAuthEntry) -> Result<OAuthEntry, SignInError> {
    let form = vec![
        ("grant_type", "refresh_token".to_owned()),
        ("refresh_token", entry.refresh.clone()),
        ("client_id", CLIENT_ID.to_owned()),
    ];
    let tokens = redeem(service, form).await?;
    let extra = account_of(&tokens.access).map(account_field).unwrap_or_default();
    service.entry(tokens, Some(&entry.refresh), extra)
}

/// The account id that requests must contain.
pub(super) fn account(entry: &OAuthEntry) -> Option<String> {
    entry.text("accountId").map(str::to_owned).or_else(|| account_of(&entry.access))
}

fn account_of(access: &str) -> Option<String> {
    let claims = reply::claims(access)?;
    let account = claims.get("https://api.openai.com/auth")?.get("chatgpt_account_id")?.as_str()?;
    Some(account.to_owned())
}

fn account_field(account: String) -> Map<String, Value> {
    Map::from_iter([("accountId".to_owned(), account.into())])
}

async fn redeem_code(
    service: &Service,
    code: String,
    verifier: String,
    redirect: String,
) -> Result<OAuthEntry, SignInError> {
    let form = vec![
        ("grant_type", "authorization_code".to_owned()),
        ("client_id", CLIENT_ID.to_owned()),
        ("code", code),
        ("code_verifier", verifier),
        ("redirect_uri", redirect),
    ];
    let tokens = redeem(service, form).await?;
    let account = account_of(&tokens.access);
    let account = account.ok_or(SignInError::Protocol { what: "a token without an account" })?;
    service.entry(tokens, None, account_field(account))
}

async fn redeem(service: &Service, form: Vec<(&'static str, String)>) -> Result<Tokens, SignInError> {
    let url = format!("{}/oauth/token", service.endpoints.openai);
    let call = HttpCall { url, headers: Vec::new(), body: CallBody::Form(form) };
    reply::tokens(&reply::send(&service.transport, call).await?)
}

async fn post(service: &Service, url: String, body: Value) -> Result<CallReply, SignInError> {
    let call = HttpCall { url, headers: Vec::new(), body: CallBody::Json(body) };
    reply::send(&service.transport, call).await
}
