//! The user's accounts: signs in and keeps tokens fresh.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reqwest::Url;
use serde_json::{Map, Value};
use tokio::sync::RwLock;
use tokio::task::spawn_blocking;

use crate::ai::{SignIn, Transport};
use crate::util::atomic_file;
use crate::util::clock::Clock;

use super::super::auth_file::{AuthEntry, AuthFile, AuthLock, OAuthEntry};
use super::endpoints::Endpoints;
use super::reply::Tokens;
use super::{
    SignInError, SignInFlow, SignInMethod, SignInOffer, SignInPrompt, chatgpt, codex, copilot, sign_in_offer,
};

/// Tokens that expire within this time are renewed before use.
const MARGIN: Duration = Duration::from_secs(5 * 60);
/// Interval for touching a lock that is held during a request.
const TOUCH: Duration = Duration::from_secs(5);

/// Signs in and keeps tokens fresh. Cheap to clone.
#[derive(Clone)]
pub struct Accounts(Arc<Shared>);

struct Shared {
    service: Service,
    file: Arc<AuthFile>,
    /// The GitHub OAuth app from the environment or the settings.
    copilot_client_id: Option<String>,
    /// Copilot tokens for GitHub tokens from the environment, which are not stored.
    borrowed: Mutex<Vec<(String, OAuthEntry)>>,
    /// Renewals that could not be stored, with the refresh tokens they
    /// replace, by provider.
    unsaved: Mutex<HashMap<&'static str, (String, OAuthEntry)>>,
    /// Held for reading by every renewal in progress.
    renewing: Arc<RwLock<()>>,
}

/// The connections and settings of flows.
#[derive(Clone)]
pub(super) struct Service {
    pub(super) transport: Transport,
    pub(super) clock: Clock,
    pub(super) endpoints: Endpoints,
}

/// A request to sign in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignInRequest {
    /// The id of the provider.
    pub provider: String,
    /// How the user proves who they are.
    pub method: SignInMethod,
    /// The OAuth app, if the user needs one of their own.
    pub client_id: Option<String>,
    /// A GitHub Enterprise server instead of github.com.
    pub domain: Option<String>,
}

impl Accounts {
    /// `copilot_client_id` comes from environment and settings.
    pub fn new(
        transport: Transport,
        clock: Clock,
        endpoints: Endpoints,
        file: Arc<AuthFile>,
        copilot_client_id: Option<String>,
    ) -> Self {
        Self(Arc::new(Shared {
            service: Service { transport, clock, endpoints },
            file,
            copilot_client_id,
            borrowed: Mutex::default(),
            unsaved: Mutex::default(),
            renewing: Arc::default(),
        }))
    }

    /// The connections that flows use.
    pub(in crate::config) fn transport(&self) -> &Transport {
        &self.0.service.transport
    }

    /// Whether this sign-in must first ask the user for a client id.
    pub fn asks_for_client_id(&self, offer: &SignInOffer) -> bool {
        offer.flow == SignInFlow::Copilot && self.copilot_client_id(offer.provider).is_none()
    }

    fn copilot_client_id(&self, provider: &str) -> Option<String> {
        let stored = || self.stored(provider).as_ref().and_then(chatgpt::client_of).map(str::to_owned);
        self.0.copilot_client_id.clone().or_else(stored)
    }

    fn stored(&self, provider: &str) -> Option<OAuthEntry> {
        match self.0.file.latest().get(provider) {
            Some(AuthEntry::OAuth(entry)) => Some(entry.clone()),
            Some(AuthEntry::ApiKey(_) | AuthEntry::Unknown) | None => None,
        }
    }

    /// Signs in and stores the account. Dropping the future cancels the sign-in.
    ///
    /// # Errors
    /// If the user declines, time runs out, the service rejects it, or the account
    /// cannot be stored.
    pub async fn sign_in(&self, request: SignInRequest, mut prompt: SignInPrompt) -> Result<(), SignInError> {
        let offer = sign_in_offer(&request.provider)
            .filter(|offer| offer.methods.contains(&request.method))
            .ok_or_else(|| SignInError::NotOffered { provider: request.provider.clone() })?;
        let service = &self.0.service;
        let entry = match offer.flow {
            SignInFlow::ChatGpt => {
                let before = self.stored(offer.provider);
                let client_id = before.as_ref().and_then(chatgpt::client_of).map(str::to_owned);
                let installation = self.installation().await?;
                chatgpt::sign_in(service, client_id, &installation, &mut prompt).await?
            }
            SignInFlow::Codex => codex::sign_in(service, request.method, &mut prompt).await?,
            SignInFlow::Copilot => {
                let client_id = request.client_id.filter(|id| !id.is_empty());
                let client_id = client_id.or_else(|| self.copilot_client_id(offer.provider));
                let client_id = client_id.ok_or(SignInError::ClientIdMissing)?;
                let domain = match request.domain.as_deref() {
                    Some(domain) => Some(
                        copilot::enterprise_domain(domain)
                            .ok_or(SignInError::Protocol { what: "an invalid domain" })?,
                    ),
                    None => None,
                };
                copilot::sign_in(service, client_id, domain, &prompt).await?
            }
        };
        let file = Arc::clone(&self.0.file);
        blocking(move || file.set_account(offer.provider, &entry)).await?;
        Ok(())
    }

    /// The id of this installation, for services that register it.
    async fn installation(&self) -> Result<String, SignInError> {
        let folder = self.0.file.path().parent().unwrap_or(Path::new("."));
        let path = folder.join("installation-id");
        blocking(move || Ok(installation(&path))).await
    }

    /// The account's tokens, valid for the next request: those of `entry` if they
    /// last, otherwise new ones, which are stored before they are returned. `rejected`
    /// is a token the service rejected.
    ///
    /// A renewal continues if the future is dropped: the old token may already be
    /// invalid, and the new one must not be lost.
    pub(in crate::config) async fn fresh(
        &self,
        offer: &'static SignInOffer,
        entry: &OAuthEntry,
        rejected: Option<&str>,
    ) -> Result<OAuthEntry, SignInError> {
        if self.0.lasts(entry, rejected) {
            return Ok(entry.clone());
        }
        let shared = Arc::clone(&self.0);
        let rejected_token = rejected.map(str::to_owned);
        // Before the task runs, so that the program's exit waits for it.
        let renewing = Arc::clone(&self.0.renewing).read_owned().await;
        let renewed = tokio::spawn(async move {
            let renewed = shared.renew(offer, rejected_token.as_deref()).await;
            drop(renewing);
            renewed
        });
        let renewed = renewed.await;
        let renewed = renewed.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
        self.0.renewed_or_before(renewed, Some(entry), rejected)
    }

    /// Tokens for a GitHub token from the environment; they are kept in memory.
    pub(in crate::config) async fn borrowed(
        &self,
        github_token: &str,
        rejected: Option<&str>,
    ) -> Result<OAuthEntry, SignInError> {
        let held = self.0.borrowed.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let held = held.into_iter().find(|(token, _)| token == github_token).map(|(_, entry)| entry);
        if let Some(entry) = held.as_ref().filter(|entry| self.0.lasts(entry, rejected)) {
            return Ok(entry.clone());
        }
        let refresh = github_token.to_owned();
        let entry = OAuthEntry { access: String::new(), refresh, expires_ms: 0, extra: Map::new() };
        let entry = copilot::refresh(&self.0.service, &entry).await;
        let entry = self.0.renewed_or_before(entry, held.as_ref(), rejected)?;
        let mut held = self.0.borrowed.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|(token, _)| token != github_token);
        held.push((github_token.to_owned(), entry.clone()));
        Ok(entry)
    }

    /// Whether a token may be sent to `base_url`: to the service that issued it, and not to
    /// a gateway in front of it. Copilot's tokens contain their own address, which
    /// overrides the model's.
    pub(in crate::config) fn serves(&self, flow: SignInFlow, base_url: &str) -> bool {
        let endpoints = &self.0.service.endpoints;
        match flow {
            SignInFlow::ChatGpt => is_same_origin(base_url, &endpoints.openai_resource),
            SignInFlow::Codex => is_same_origin(base_url, &endpoints.codex),
            SignInFlow::Copilot => true,
        }
    }

    /// The credential for requests of the account.
    pub(in crate::config) fn credential(&self, flow: SignInFlow, entry: &OAuthEntry) -> SignIn {
        let token = entry.access.clone();
        match flow {
            SignInFlow::ChatGpt => SignIn { token, base_url: None, account_id: None },
            SignInFlow::Codex => SignIn { token, base_url: None, account_id: codex::account(entry) },
            SignInFlow::Copilot => {
                let base_url = Some(copilot::base_url(&self.0.service, entry));
                SignIn { token, base_url, account_id: None }
            }
        }
    }

    /// Returns when no token renewal is in progress; for the program's exit.
    pub async fn settled(&self) {
        drop(self.0.renewing.write().await);
    }
}

impl Shared {
    fn lasts(&self, entry: &OAuthEntry, rejected: Option<&str>) -> bool {
        let margin_ms = u64::try_from(MARGIN.as_millis()).unwrap_or(u64::MAX);
        let ends_later = entry.expires_ms > self.service.clock.now_ms().saturating_add(margin_ms);
        ends_later && rejected != Some(entry.access.as_str())
    }

    /// The result of a renewal; or `before`, if it is valid for some more minutes
    /// and the renewal failed for a transient reason.
    fn renewed_or_before(
        &self,
        renewed: Result<OAuthEntry, SignInError>,
        before: Option<&OAuthEntry>,
        rejected: Option<&str>,
    ) -> Result<OAuthEntry, SignInError> {
        let is_good =
            |entry: &&OAuthEntry| rejected.is_none() && entry.expires_ms > self.service.clock.now_ms();
        match (renewed, before.filter(is_good)) {
            (Err(error), Some(before)) if !matches!(error, SignInError::Ended { .. }) => Ok(before.clone()),
            (renewed, _) => renewed,
        }
    }

    async fn renew(
        self: Arc<Self>,
        offer: &'static SignInOffer,
        rejected: Option<&str>,
    ) -> Result<OAuthEntry, SignInError> {
        let file = Arc::clone(&self.file);
        let lock = blocking(move || file.lock()).await?;
        let stored = lock.account(offer.provider);
        let stored = stored.ok_or_else(|| SignInError::Ended { reason: "it was signed out".to_owned() })?;
        // The stored token is invalid if its renewal could not be stored.
        let kept = self.unsaved(offer.provider, &stored);
        let entry = kept.clone().unwrap_or_else(|| stored.clone());
        if self.lasts(&entry, rejected) {
            if kept.is_some() {
                return Ok(self.saved(lock, offer.provider, stored, entry).await);
            }
            // Another process has already renewed it.
            return Ok(entry);
        }
        let asking = async {
            match offer.flow {
                SignInFlow::ChatGpt => chatgpt::refresh(&self.service, &entry).await,
                SignInFlow::Codex => codex::refresh(&self.service, &entry).await,
                SignInFlow::Copilot => copilot::refresh(&self.service, &entry).await,
            }
        };
        let renewed = tokio::select! {
            renewed = asking => renewed?,
            () = keep(&lock) => return Err(SignInError::Expired),
        };
        let mut extra = entry.extra.clone();
        extra.extend(renewed.extra);
        let renewed = OAuthEntry { extra, ..renewed };
        Ok(self.saved(lock, offer.provider, stored, renewed).await)
    }

    /// Stores `renewed` in place of `stored`. If that fails, it is kept in memory:
    /// the service accepts no other token.
    async fn saved(
        &self,
        lock: AuthLock,
        provider: &'static str,
        stored: OAuthEntry,
        renewed: OAuthEntry,
    ) -> OAuthEntry {
        let (before, after) = (stored.clone(), renewed.clone());
        let saved = blocking(move || lock.save_account(provider, &before, &after)).await;
        let mut unsaved = self.unsaved.lock().unwrap_or_else(PoisonError::into_inner);
        match saved {
            Ok(saved) => {
                unsaved.remove(provider);
                saved
            }
            Err(_) => {
                unsaved.insert(provider, (stored.refresh, renewed.clone()));
                renewed
            }
        }
    }

    /// The renewal of `stored` that could not be stored.
    fn unsaved(&self, provider: &str, stored: &OAuthEntry) -> Option<OAuthEntry> {
        let unsaved = self.unsaved.lock().unwrap_or_else(PoisonError::into_inner);
        let (spent, renewed) = unsaved.get(provider)?;
        (*spent == stored.refresh).then(|| renewed.clone())
    }
}

fn is_same_origin(one: &str, other: &str) -> bool {
    let origin = |address: &str| Url::parse(address).ok().map(|url| url.origin());
    origin(one).is_some_and(|one| one.is_tuple() && Some(one) == origin(other))
}

/// Touches the lock repeatedly; never returns.
async fn keep(lock: &AuthLock) {
    loop {
        tokio::time::sleep(TOUCH).await;
        lock.touch();
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, super::AuthFileError> + Send + 'static,
) -> Result<T, SignInError> {
    let done = spawn_blocking(work).await;
    Ok(done.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))?)
}

/// Reads the id, or creates one. If it cannot be stored, it is used only once.
fn installation(path: &PathBuf) -> String {
    let known = fs::read_to_string(path).ok().and_then(|text| uuid::Uuid::parse_str(text.trim()).ok());
    if let Some(known) = known {
        return known.to_string();
    }
    let id = uuid::Uuid::new_v4().to_string();
    drop(path.parent().map(atomic_file::create_private_folder));
    drop(atomic_file::write_private(path, format!("{id}\n").as_bytes()));
    id
}

impl Service {
    /// The stored form of an account. `refresh_before` is used if the service issued
    /// no new one.
    pub(super) fn entry(
        &self,
        tokens: Tokens,
        refresh_before: Option<&str>,
        extra: Map<String, Value>,
    ) -> Result<OAuthEntry, SignInError> {
        let refresh = tokens.refresh.or_else(|| refresh_before.map(str::to_owned));
        let refresh = refresh.ok_or(SignInError::Protocol { what: "no refresh token" })?;
        let life_ms = tokens.expires_in.saturating_mul(1_000);
        let expires_ms = self.clock.now_ms().saturating_add(life_ms);
        Ok(OAuthEntry { access: tokens.access, refresh, expires_ms, extra })
    }
}

#[cfg(test)]
impl Default for Service {
    fn default() -> Self {
        Self { transport: Transport::new(), clock: Clock::manual(0), endpoints: Endpoints::default() }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::super::SIGN_INS;
    use super::*;

    #[tokio::test]
    async fn a_renewal_counts_from_the_moment_it_is_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let file = Arc::new(AuthFile::open(folder.path().join("auth.json")));
        let Service { transport, clock, endpoints } = Service::default();
        let accounts = Accounts::new(transport, clock, endpoints, file, None);
        let entry =
            OAuthEntry { access: String::new(), refresh: String::new(), expires_ms: 0, extra: Map::new() };
        assert!(accounts.settled().now_or_never().is_some());
        // The caller is gone before the task runs.
        assert!(accounts.fresh(&SIGN_INS[0], &entry, None).now_or_never().is_none());
        assert!(accounts.settled().now_or_never().is_none());
        accounts.settled().await;
    }
}
