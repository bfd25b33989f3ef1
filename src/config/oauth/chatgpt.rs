//! "Sign in with ChatGPT", for agents under their own name: the first sign-in
//! registers this installation, and the browser returns the client id to use
//! from then on. Described at developers.openai.com/siwc.

use reqwest::Url;
use serde_json::{Map, Value};

use crate::ai::{CallBody, HttpCall};

use super::super::auth_file::OAuthEntry;
use super::accounts::Service;
use super::callback::{self, Answer, Needs};
use super::pkce::{self, Pkce};
use super::reply::{self, Tokens};
use super::{SignInError, SignInPrompt, SignInStep};

/// The client id of a client that is not registered yet.
const UNREGISTERED: &str = "dynamic_agent_client";
const AGENT_NAME: &str = "pi";
const SCOPE: &str = "openid profile email offline_access resource.invoke chatgpt.tokens.use.direct";
/// Required to use the account's plan.
const NEEDED_SCOPE: &str = "chatgpt.tokens.use.direct";

/// Signs in with the browser. `client_id` is that of an earlier sign-in;
/// `installation` identifies this installation and never changes.
pub(super) async fn sign_in(
    service: &Service,
    client_id: Option<String>,
    installation: &str,
    prompt: &mut SignInPrompt,
) -> Result<OAuthEntry, SignInError> {
    let (pkce, state, nonce) = (Pkce::new()?, pkce::random()?, pkce::random()?);
    let listening = callback::listen(service.endpoints.callback_port).await;
    let (listener, port) =
        listening.map_or((None, service.endpoints.callback_port), |(l, port)| (Some(l), port));
    let redirect = format!("http://127.0.0.1:{port}{}", callback::PATH);
    let host = format!("urn:uuid:{installation}");
    let mut query = vec![
        ("response_type", "code"),
        ("client_id", client_id.as_deref().unwrap_or(UNREGISTERED)),
        ("ext_agent_host_id", &host),
        ("redirect_uri", &redirect),
        ("resource", &service.endpoints.openai_resource),
        ("scope", SCOPE),
        ("state", &state),
        ("nonce", &nonce),
        ("code_challenge", &pkce.challenge),
        ("code_challenge_method", "S256"),
    ];
    if client_id.is_none() {
        query.push(("agent_name_hint", AGENT_NAME));
    }
    let address = format!("{}/api/accounts/authorize", service.endpoints.openai);
    let url = Url::parse_with_params(&address, query)
        .map_err(|_| SignInError::Protocol { what: "its address is invalid" })?;
    if listener.is_none() {
        prompt.tell(SignInStep::Problem(format!(
            "port {port} is in use, so the browser cannot return to pi; paste the address it ends at"
        )));
    }
    prompt.tell(SignInStep::Browser { url: url.into() });
    let needs = if client_id.is_some() { Needs::Code } else { Needs::CodeAndClient };
    let answer = callback::answer(listener, &state, needs, prompt).await?;
    let client_id = issued_client(client_id, &answer)?;
    prompt.tell(SignInStep::Progress("signing in…".to_owned()));
    let form = vec![
        ("grant_type", "authorization_code".to_owned()),
        ("client_id", client_id.clone()),
        ("code", answer.code),
        ("code_verifier", pkce.verifier),
        ("redirect_uri", redirect),
        ("resource", service.endpoints.openai_resource.clone()),
    ];
    let tokens = redeem(service, form).await?;
    check_nonce(&tokens, &nonce)?;
    let granted = tokens.scope.as_deref().unwrap_or_default();
    if !granted.split_whitespace().any(|scope| scope == NEEDED_SCOPE) {
        return Err(SignInError::ScopeMissing { scope: NEEDED_SCOPE });
    }
    let extra = [("clientId", client_id), ("scope", granted.to_owned())];
    let extra = extra.into_iter().map(|(name, value)| (name.to_owned(), Value::from(value))).collect();
    service.entry(tokens, None, extra)
}

/// Exchanges the refresh token for new tokens, including a new refresh token.
pub(super) async fn refresh(service: &Service, entry: &OAuthEntry) -> Result<OAuthEntry, SignInError> {
    let client_id = client_of(entry)
        .ok_or_else(|| SignInError::Ended { reason: "the saved account has no client id".to_owned() })?;
    let form = vec![
        ("grant_type", "refresh_token".to_owned()),
        ("client_id", client_id.to_owned()),
        ("refresh_token", entry.refresh.clone()),
        ("resource", service.endpoints.openai_resource.clone()),
    ];
    let tokens = redeem(service, form).await?;
    service.entry(tokens, Some(&entry.refresh), Map::new())
}

/// The client id stored with an account, under either spelling.
pub(super) fn client_of(entry: &OAuthEntry) -> Option<&str> {
    entry.text("clientId").or_else(|| entry.text("client_id"))
}

async fn redeem(service: &Service, form: Vec<(&'static str, String)>) -> Result<Tokens, SignInError> {
    let url = format!("{}/api/accounts/oauth/token", service.endpoints.openai);
    let call = HttpCall { url, headers: Vec::new(), body: CallBody::Form(form) };
    reply::tokens(&reply::send(&service.transport, call).await?)
}

/// The client id to use from now on: a returning client keeps its own.
fn issued_client(known: Option<String>, answer: &Answer) -> Result<String, SignInError> {
    match (known, &answer.client_id) {
        (Some(known), Some(issued)) if known != *issued => {
            Err(SignInError::Protocol { what: "the client id of another installation" })
        }
        (Some(known), _) => Ok(known),
        (None, Some(issued)) if issued != UNREGISTERED => Ok(issued.clone()),
        (None, _) => Err(SignInError::Protocol { what: "no client id" }),
    }
}

/// Checks that the id token belongs to this sign-in.
fn check_nonce(tokens: &Tokens, nonce: &str) -> Result<(), SignInError> {
    let Some(id_token) = &tokens.id_token else { return Ok(()) };
    let claims = reply::claims(id_token).unwrap_or_default();
    match claims.get("nonce").and_then(Value::as_str) {
        Some(given) if given == nonce => Ok(()),
        _ => Err(SignInError::Protocol { what: "an identity pi did not request" }),
    }
}
