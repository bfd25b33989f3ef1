//! Finds the credential of each provider.
//!
//! In order: the key from the command line, `auth.json`, the provider's `apiKey`
//! in `models.json`, the provider's environment variables.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::task::spawn_blocking;

use crate::ai::{Api, Catalog, Credential, DEMO_PROVIDER, Model, ProviderInfo, variable, vendor};
use crate::util::os::EndSignals;
use crate::util::paths;

use super::auth_file::{AuthEntries, AuthEntry, AuthFile, OAuthEntry, StoredKey};
use super::cloud_credentials::CloudCredentials;
use super::env::Env;
use super::list_cache::ListCache;
use super::oauth::{Accounts, SignInError, SignInFlow, SignInOffer, sign_in_offer};
use super::value;

/// Maximum time the program's exit waits for a token renewal: the maximum for the file
/// lock, the request to the service, and the disk.
const SETTLE_LIMIT: Duration = Duration::from_secs(75);

/// Finds keys; contains the one from the command line. Cheap to clone.
#[derive(Clone)]
pub struct Credentials {
    env: Arc<Env>,
    /// Provider and key of `--api-key`.
    command_line: Option<(String, String)>,
    /// Whether the demo model may answer.
    has_demo: bool,
    store: Option<Store>,
    clouds: Vec<Cloud>,
    /// Output of commands in `auth.json`: they run once per process.
    outputs: Arc<Mutex<HashMap<String, String>>>,
    lists: Arc<Mutex<Lists>>,
    pub(super) list_cache: Option<ListCache>,
}

/// Model lists that were already requested, by provider and address.
type Lists = HashMap<(String, String), Vec<Model>>;

/// A cloud account of this machine, for the models of a provider.
#[derive(Clone)]
struct Cloud {
    provider: &'static str,
    source: Arc<dyn CloudCredentials>,
    /// As of the program's start, because checking again reads files.
    is_configured: bool,
}

#[derive(Clone)]
struct Store {
    file: Arc<AuthFile>,
    accounts: Accounts,
}

/// Why a model cannot be used, with instructions.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum CredentialError {
    #[error(
        "no key for {provider}; set {variables}, run /login {provider} or pi auth login {provider}, or \
         choose another model"
    )]
    Missing { provider: String, variables: String },
    /// There is only the demo model, and the user did not request it.
    #[error(
        "no model is set up; set a key such as ANTHROPIC_API_KEY, save one with pi auth login, or use \
         the offline demo model with --model demo/pi"
    )]
    OnlyDemo,
    /// The same, although a provider is set up: it has no default model.
    #[error(
        "no model chosen; {provider} is set up: list its models with pi --list-models {provider} and \
         choose one with --model {provider}/ID"
    )]
    NoDefault { provider: String },
    #[error("no key for {provider}: {problem}")]
    Unresolved { provider: String, problem: String },
    #[error("cannot use {provider}: {problem}")]
    Headers { provider: String, problem: String },
    /// The address differs per user.
    #[error("no base URL for {provider}; set {variable}")]
    NoAddress { provider: String, variable: String },
    /// The file with the keys is unreadable, and there is no other key.
    #[error("no key for {provider}: {problem}")]
    Broken { provider: String, problem: String },
    /// The account's tokens are no longer valid.
    #[error("the sign-in to {provider} has expired ({reason}); sign in again with /login {provider}")]
    SignedOut { provider: String, reason: String },
    /// The sign-in is stored, and may work later.
    #[error("cannot renew the sign-in to {provider} now: {reason}")]
    NotRenewed { provider: String, reason: String },
}

/// The source of a provider's key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    /// The flag `--api-key`.
    CommandLine,
    /// A key in `auth.json`.
    Stored,
    /// An account in `auth.json`; its token expires at this time, milliseconds since
    /// the Unix epoch, and is renewed before that.
    SignedIn {
        /// Milliseconds since the Unix epoch.
        expires_ms: u64,
    },
    /// An account in `auth.json` of an unsupported kind.
    Unusable,
    /// The `apiKey` of `models.json`.
    ModelsFile,
    /// The variable.
    Environment(&'static str),
    /// The cloud account of this machine.
    Cloud,
    /// The provider needs no key.
    NotNeeded,
    /// There is no key.
    None,
}

/// A provider in the list of keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderKeys {
    /// The id of the provider.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// Where its key comes from.
    pub source: KeySource,
    /// Whether `auth.json` has an entry for it, used or not.
    pub is_stored: bool,
    /// Whether the catalogue has models of this provider.
    pub is_known: bool,
}

/// The key of a provider, before commands run and tokens are renewed.
enum KeyLookup {
    CommandLine(String),
    Stored(StoredKey),
    Account(&'static SignInOffer, OAuthEntry),
    /// The stored entry cannot be used, for this reason.
    Unusable(String),
    /// The template of `models.json`.
    Configured(String),
    Environment {
        name: &'static str,
        value: String,
        bearer: bool,
    },
    Cloud(Arc<dyn CloudCredentials>),
    NotNeeded,
    Nothing,
}

/// The input of a credential that needs the network or a command.
enum Ready {
    Credential(Credential),
    /// The command prints the key.
    Command(KeyCommand),
    Account(&'static SignInOffer, OAuthEntry),
    /// A GitHub token, which is exchanged for Copilot tokens.
    GitHub(&'static SignInOffer, String),
    Cloud(Arc<dyn CloudCredentials>),
}

struct KeyCommand {
    command: String,
    /// Whether its output is kept for this process.
    once: bool,
    bearer: bool,
    if_empty: &'static str,
}

impl Credentials {
    /// Keys only from the command line, `models.json` and environment.
    pub fn new(env: Env) -> Self {
        Self {
            env: Arc::new(env),
            command_line: None,
            has_demo: true,
            store: None,
            clouds: Vec::new(),
            outputs: Arc::default(),
            lists: Arc::default(),
            list_cache: None,
        }
    }

    /// Adds the cloud account of this machine for the models of `provider`.
    #[must_use]
    pub fn with_ambient(mut self, provider: &'static str, source: Arc<dyn CloudCredentials>) -> Self {
        let is_configured = source.is_configured();
        self.clouds.push(Cloud { provider, source, is_configured });
        self
    }

    /// Adds the keys and accounts of `auth.json`.
    #[must_use]
    pub fn with_store(self, file: Arc<AuthFile>, accounts: Accounts) -> Self {
        Self { store: Some(Store { file, accounts }), ..self }
    }

    /// Keeps the lists of discovered models in the file `path`.
    #[must_use]
    pub fn with_list_cache(self, path: PathBuf) -> Self {
        Self { list_cache: Some(ListCache::new(path)), ..self }
    }

    /// Uses `key` for `provider`, with the highest precedence.
    pub fn set_command_line_key(&mut self, provider: &str, key: &str) {
        self.command_line = Some((provider.to_owned(), key.trim().to_owned()));
    }

    /// Disables the demo model: in scripts, its rule-based answers would be mistaken
    /// for a model's.
    pub fn refuse_demo(&mut self) {
        self.has_demo = false;
    }

    /// The first provider with a key, ignoring local servers and the demo.
    pub fn first_set_up<'a>(&self, catalog: &'a Catalog) -> Option<&'a ProviderInfo> {
        let mut others = catalog.providers().iter().filter(|info| info.id != DEMO_PROVIDER && !info.local);
        others.find(|info| self.is_available(info))
    }

    /// The environment that keys are read from.
    pub fn env(&self) -> Arc<Env> {
        Arc::clone(&self.env)
    }

    /// `auth.json`; `None` if keys are not stored.
    pub fn file(&self) -> Option<&Arc<AuthFile>> {
        self.store.as_ref().map(|store| &store.file)
    }

    /// The accounts of `auth.json`, if that is used.
    pub fn accounts(&self) -> Option<&Accounts> {
        self.store.as_ref().map(|store| &store.accounts)
    }

    /// Whether providers of `catalog` can be used, by their ids. Unknown ones cannot.
    pub fn usable_in<'a>(&'a self, catalog: &'a Catalog) -> impl Fn(&str) -> bool + 'a {
        move |id: &str| catalog.provider(id).is_some_and(|info| self.is_available(info))
    }

    /// Whether a provider can be used, checked without the disk, the
    /// network and the user's key command.
    pub fn is_available(&self, provider: &ProviderInfo) -> bool {
        if provider.id == DEMO_PROVIDER {
            return self.has_demo;
        }
        match self.find(&provider.id, Some(provider), None, &self.known()) {
            KeyLookup::Stored(stored) => self.is_resolvable(&stored.key, &stored.env),
            KeyLookup::Configured(template) => self.is_resolvable(&template, &[]),
            KeyLookup::CommandLine(_)
            | KeyLookup::Account(..)
            | KeyLookup::Environment { .. }
            | KeyLookup::Cloud(_)
            | KeyLookup::NotNeeded => true,
            KeyLookup::Unusable(_) | KeyLookup::Nothing => false,
        }
    }

    fn is_resolvable(&self, template: &str, variables: &[(String, String)]) -> bool {
        value::command(template).is_some()
            || self.expand(template, variables).is_ok_and(|key| !key.is_empty())
    }

    /// Every provider of the catalogue except the demo, and every other stored
    /// one, with the source of its key. Reads the disk.
    pub fn providers(&self, catalog: &Catalog) -> Vec<ProviderKeys> {
        let entries = self.latest();
        let known = catalog.providers().iter().filter(|info| info.id != DEMO_PROVIDER && !info.local);
        let mut providers: Vec<ProviderKeys> = known
            .map(|provider| ProviderKeys {
                id: provider.id.clone(),
                name: provider.name.clone(),
                source: self.find(&provider.id, Some(provider), None, &entries).source(),
                is_stored: entries.get(&provider.id).is_some(),
                is_known: true,
            })
            .collect();
        let others = entries.iter().filter(|(id, _)| catalog.provider(id).is_none());
        providers.extend(others.map(|(id, _)| ProviderKeys {
            id: id.to_owned(),
            name: sign_in_offer(id).map_or(id, |offer| offer.name).to_owned(),
            source: self.find(id, None, None, &entries).source(),
            is_stored: true,
            is_known: false,
        }));
        providers
    }

    /// The source of the key for `model` and how to change it, for a user whose
    /// key was rejected. A sentence or two; never contains the key.
    pub fn key_origin(&self, model: &Model, catalog: &Catalog) -> Option<String> {
        let id = model.provider.as_str();
        let found = self.find(id, catalog.provider(id), Some(&model.base_url), &self.known());
        let file = || {
            let home = self.env.home();
            self.file().map(|file| paths::display(file.path(), home.as_deref())).unwrap_or_default()
        };
        let login = format!("/login {id} (in a shell: pi auth login {id})");
        Some(match found {
            KeyLookup::CommandLine(_) => "The key comes from --api-key.".to_owned(),
            KeyLookup::Stored(stored) => {
                format!("The key {} in {}. Replace it with {login}.", origin(&stored.key), file())
            }
            KeyLookup::Configured(template) => {
                format!("The key {} as apiKey of {id} in models.json. Change it there.", origin(&template))
            }
            KeyLookup::Environment { name, .. } => format!(
                "The key comes from the environment variable {name}. Fix it and restart pi, or save a \
                 key with {login}; saved keys take precedence."
            ),
            KeyLookup::Account(..) => {
                format!("You are signed in with an account. Sign in again with {login}.")
            }
            KeyLookup::Cloud(_) => "The credentials come from this machine's cloud account.".to_owned(),
            KeyLookup::NotNeeded => format!("pi sent no key because {id} has no apiKey in models.json."),
            KeyLookup::Unusable(_) | KeyLookup::Nothing => return None,
        })
    }

    /// The key for `model`, or `Credential::None` if finding it needs the network or a
    /// command: [`super::Authorised`] finds it when a request is
    /// sent.
    ///
    /// # Errors
    /// If there is no key, or the user's template has no value.
    pub async fn prepare(&self, model: &Model, catalog: &Catalog) -> Result<Credential, CredentialError> {
        match self.ready(model, catalog).await? {
            Ready::Credential(credential) => Ok(credential),
            Ready::Command(_) | Ready::Account(..) | Ready::GitHub(..) | Ready::Cloud(_) => {
                Ok(Credential::None)
            }
        }
    }

    /// The key for `model`: a literal key, a command's output, or an account's token,
    /// renewed if it expires soon. Includes changes stored by other processes.
    ///
    /// # Errors
    /// If there is none, or it cannot be obtained.
    pub async fn resolve(&self, model: &Model, catalog: &Catalog) -> Result<Credential, CredentialError> {
        self.resolve_but(model, catalog, None).await
    }

    /// Renews the token of an account whose token was rejected, or finds other keys for
    /// those with the session token or id `rejected`.
    ///
    /// # Errors
    /// If there is none, or it cannot be obtained.
    pub async fn renew(
        &self,
        model: &Model,
        catalog: &Catalog,
        rejected: &str,
    ) -> Result<Credential, CredentialError> {
        self.resolve_but(model, catalog, Some(rejected)).await
    }

    async fn resolve_but(
        &self,
        model: &Model,
        catalog: &Catalog,
        rejected: Option<&str>,
    ) -> Result<Credential, CredentialError> {
        let mut ready = self.ready(model, catalog).await?;
        if let Ready::Command(command) = ready {
            ready = Ready::Credential(self.output(&model.provider, command).await?);
        }
        if let Ready::Cloud(cloud) = &ready {
            if let Some(token) = rejected {
                cloud.forget(token);
            }
            let found = cloud.credential(&model.base_url).await;
            return found.map_err(|problem| CredentialError::Unresolved {
                provider: model.provider.clone(),
                problem,
            });
        }
        let Some(accounts) = self.accounts() else { return ready.without_network(&model.provider) };
        let (offer, entry) = match ready {
            Ready::Credential(credential) => return Ok(credential),
            Ready::Command(_) | Ready::Cloud(_) => return Ok(Credential::None),
            Ready::Account(offer, entry) => (offer, accounts.fresh(offer, &entry, rejected).await),
            Ready::GitHub(offer, token) => (offer, accounts.borrowed(&token, rejected).await),
        };
        let entry = entry.map_err(|error| CredentialError::of_account(&model.provider, error))?;
        Ok(Credential::SignedIn(Box::new(accounts.credential(offer.flow, &entry))))
    }

    /// The output of `provider`'s key command. The command continues, up to its time limit,
    /// if the future is dropped.
    async fn output(&self, provider: &str, command: KeyCommand) -> Result<Credential, CredentialError> {
        let credentials = self.clone();
        let key = spawn_blocking(move || {
            let KeyCommand { command, once, bearer, if_empty } = command;
            let key = if once { credentials.output_once(&command) } else { value::output_of(&command) };
            key.and_then(|key| not_empty(key, if_empty)).map(|key| wrap(key, bearer))
        });
        let key = key.await.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
        key.map_err(|problem| CredentialError::Unresolved { provider: provider.to_owned(), problem })
    }

    /// The model's headers with templates and commands filled in; `None` if
    /// they contain none.
    ///
    /// # Errors
    /// If a variable is not set or a command fails; contains the header's name.
    pub async fn headers(&self, model: &Model) -> Result<Option<BTreeMap<String, String>>, CredentialError> {
        let is_template = |value: &String| value.starts_with('!') || value.contains('$');
        if !model.headers.values().any(is_template) {
            return Ok(None);
        }
        let (credentials, headers) = (self.clone(), model.headers.clone());
        let filled = spawn_blocking(move || {
            let fill = |(name, value): (String, String)| {
                let filled = match value::command(&value) {
                    Some(command) => value::output_of(command),
                    None => credentials.expand(&value, &[]),
                };
                filled
                    .map(|value| (name.clone(), value))
                    .map_err(|problem| format!("header {name}: {problem}"))
            };
            headers.into_iter().map(fill).collect::<Result<_, String>>()
        });
        let filled = filled.await.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
        filled
            .map(Some)
            .map_err(|problem| CredentialError::Headers { provider: model.provider.clone(), problem })
    }

    /// Returns when no token renewal is in progress, or after a time limit: a new token
    /// must not be lost when the program ends. A termination signal, such as
    /// ctrl+c, ends the wait.
    pub async fn settled(&self) {
        let Some(accounts) = self.accounts() else { return };
        tokio::select! {
            biased;
            () = accounts.settled() => {}
            () = tokio::time::sleep(SETTLE_LIMIT) => {}
            () = told_to_end() => {}
        }
    }

    pub(super) fn known_list(&self, template: &Model) -> Option<Vec<Model>> {
        let key = (template.provider.clone(), template.base_url.clone());
        self.lists.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned()
    }

    pub(super) fn keep_list(&self, template: &Model, models: &[Model]) {
        let key = (template.provider.clone(), template.base_url.clone());
        self.lists.lock().unwrap_or_else(PoisonError::into_inner).insert(key, models.to_vec());
    }

    /// All steps that do not need the network.
    async fn ready(&self, model: &Model, catalog: &Catalog) -> Result<Ready, CredentialError> {
        if model.api == Api::DEMO && !self.has_demo {
            return Err(match self.first_set_up(catalog) {
                Some(info) => CredentialError::NoDefault { provider: info.id.clone() },
                None => CredentialError::OnlyDemo,
            });
        }
        if model.api == Api::DEMO {
            return Ok(Ready::Credential(Credential::None));
        }
        if let Some(name) = variable(&model.base_url) {
            let (provider, variable) = (model.provider.clone(), name.to_owned());
            return Err(CredentialError::NoAddress { provider, variable });
        }
        let credentials = self.clone();
        let (id, base_url) = (model.provider.clone(), model.base_url.clone());
        let provider = catalog.provider(&model.provider).cloned();
        // The disk or a command may be slow.
        let ready =
            spawn_blocking(move || credentials.ready_blocking(&id, provider.as_ref(), &base_url)).await;
        ready.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
    }

    fn ready_blocking(
        &self,
        id: &str,
        provider: Option<&ProviderInfo>,
        base_url: &str,
    ) -> Result<Ready, CredentialError> {
        let bearer = provider.is_some_and(|provider| provider.auth_header);
        let wrap = |key: String, bearer: bool| Ready::Credential(wrap(key, bearer));
        let command = |command: &str, once: bool, if_empty| {
            Ready::Command(KeyCommand { command: command.to_owned(), once, bearer, if_empty })
        };
        let unresolved = |problem| CredentialError::Unresolved { provider: id.to_owned(), problem };
        let entries = self.latest();
        match self.find(id, provider, Some(base_url), &entries) {
            KeyLookup::CommandLine(key) => Ok(wrap(key, bearer)),
            KeyLookup::Stored(stored) => {
                let if_empty = "the saved key is empty";
                if let Some(shell) = value::command(&stored.key) {
                    return Ok(command(shell, true, if_empty));
                }
                let key = self.expand(&stored.key, &stored.env).and_then(|key| not_empty(key, if_empty));
                key.map(|key| wrap(key, bearer)).map_err(unresolved)
            }
            KeyLookup::Configured(template) => {
                let if_empty = "the configured apiKey is empty";
                if let Some(shell) = value::command(&template) {
                    return Ok(command(shell, false, if_empty));
                }
                let key = self.expand(&template, &[]).and_then(|key| not_empty(key, if_empty));
                key.map(|key| wrap(key, bearer)).map_err(unresolved)
            }
            KeyLookup::Account(offer, entry) => Ok(Ready::Account(offer, entry)),
            KeyLookup::Environment { value, bearer, .. } => {
                match sign_in_offer(id).filter(|offer| offer.flow == SignInFlow::Copilot) {
                    Some(offer) => Ok(Ready::GitHub(offer, value)),
                    None => Ok(wrap(value, bearer)),
                }
            }
            KeyLookup::Cloud(cloud) => Ok(Ready::Cloud(cloud)),
            KeyLookup::NotNeeded => Ok(Ready::Credential(Credential::None)),
            KeyLookup::Unusable(problem) => Err(unresolved(problem)),
            KeyLookup::Nothing => match (entries.problem(), self.cloud(id)) {
                (Some(problem), _) => {
                    Err(CredentialError::Broken { provider: id.to_owned(), problem: problem.to_owned() })
                }
                // Set up since the start, or only through the network.
                (None, Some(cloud)) => Ok(Ready::Cloud(Arc::clone(&cloud.source))),
                (None, None) => Err(missing(id)),
            },
        }
    }

    /// The first source with a key, in this order. `base_url` is the destination of
    /// the key, if known.
    fn find(
        &self,
        id: &str,
        provider: Option<&ProviderInfo>,
        base_url: Option<&str>,
        entries: &AuthEntries,
    ) -> KeyLookup {
        if let Some((owner, key)) = &self.command_line
            && owner == id
        {
            return KeyLookup::CommandLine(key.clone());
        }
        let mut unusable = None;
        match entries.get(id) {
            Some(AuthEntry::ApiKey(stored)) => match stored_key(id, stored) {
                Some(stored) => return KeyLookup::Stored(stored),
                None => unusable = Some(NOT_USED.to_owned()),
            },
            Some(AuthEntry::OAuth(entry)) => match sign_in_offer(id) {
                Some(offer) => match self.elsewhere(offer, base_url) {
                    None => return KeyLookup::Account(offer, entry.clone()),
                    elsewhere => unusable = elsewhere,
                },
                None => unusable = Some(NOT_USED.to_owned()),
            },
            Some(AuthEntry::Unknown) => unusable = Some(NOT_USED.to_owned()),
            None => {}
        }
        if let Some(template) = provider.and_then(|provider| provider.api_key.clone()) {
            return KeyLookup::Configured(template);
        }
        // Clouds read their variables themselves, in combination with others.
        if let Some(cloud) = self.cloud(id).filter(|cloud| cloud.is_configured) {
            return KeyLookup::Cloud(Arc::clone(&cloud.source));
        }
        if let Some(found) = self.environment(id) {
            return found;
        }
        if let Some(problem) = unusable {
            return KeyLookup::Unusable(problem);
        }
        // A custom provider without a key is a server that needs none.
        if provider.is_some_and(|provider| provider.custom) {
            KeyLookup::NotNeeded
        } else {
            KeyLookup::Nothing
        }
    }

    /// Why the account of `offer` must not be used with `base_url`: its token must not be
    /// sent to a gateway.
    fn elsewhere(&self, offer: &SignInOffer, base_url: Option<&str>) -> Option<String> {
        let base_url = base_url
            .filter(|url| self.accounts().is_some_and(|accounts| !accounts.serves(offer.flow, url)))?;
        let provider = offer.provider;
        Some(format!(
            "pi does not send its sign-in to {base_url}; set the key for that URL as apiKey of {provider} in models.json"
        ))
    }

    fn cloud(&self, id: &str) -> Option<&Cloud> {
        self.clouds.iter().find(|cloud| cloud.provider == id)
    }

    fn environment(&self, id: &str) -> Option<KeyLookup> {
        vendor(id)?.env_keys.iter().find_map(|key| {
            let value = self.env.get(key.name)?.trim().to_owned();
            let found = KeyLookup::Environment { name: key.name, value, bearer: key.bearer };
            (!found.is_empty()).then_some(found)
        })
    }

    fn expand(&self, template: &str, variables: &[(String, String)]) -> Result<String, String> {
        value::expand(template, &|name| {
            let own = variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
            own.or_else(|| self.env.get(name))
        })
    }

    /// The output of a command, which runs on first use. Failures are not
    /// cached: the user may unlock a key store later.
    fn output_once(&self, command: &str) -> Result<String, String> {
        let known = self.outputs.lock().unwrap_or_else(PoisonError::into_inner).get(command).cloned();
        if let Some(output) = known {
            return Ok(output);
        }
        let output = value::output_of(command)?;
        let mut outputs = self.outputs.lock().unwrap_or_else(PoisonError::into_inner);
        outputs.insert(command.to_owned(), output.clone());
        Ok(output)
    }

    fn latest(&self) -> Arc<AuthEntries> {
        self.file().map(|file| file.latest()).unwrap_or_default()
    }

    fn known(&self) -> Arc<AuthEntries> {
        self.file().map(|file| file.known()).unwrap_or_default()
    }
}

/// Describes the source of a configured key.
fn origin(template: &str) -> String {
    if value::command(template).is_some() {
        return "is printed by a command, set".to_owned();
    }
    let name = template.strip_prefix('$').map(|name| name.trim_matches(['{', '}']));
    match name.filter(|name| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')) {
        Some(name) => format!("comes from the environment variable {name}, set"),
        None => "is stored".to_owned(),
    }
}

/// Waits for a termination signal; forever if signals cannot be received.
async fn told_to_end() {
    let Ok(mut signals) = EndSignals::new() else { return std::future::pending().await };
    signals.next().await;
}

/// Message for the original's entries that pi does not support.
const NOT_USED: &str = "pi does not support the saved account; save a key instead";

/// The key of an entry; it may be among the entry's variables instead.
fn stored_key(id: &str, stored: &StoredKey) -> Option<StoredKey> {
    if !stored.key.is_empty() {
        return Some(stored.clone());
    }
    let names = vendor(id)?.env_keys.iter().map(|key| key.name);
    let mut held = names.filter_map(|name| stored.env.iter().find(|(known, _)| known == name));
    let (name, _) = held.next()?;
    Some(StoredKey { key: format!("${{{name}}}"), env: stored.env.clone() })
}

fn wrap(key: String, bearer: bool) -> Credential {
    if bearer { Credential::Bearer(key) } else { Credential::ApiKey(key) }
}

fn not_empty(key: String, problem: &str) -> Result<String, String> {
    if key.is_empty() { Err(problem.to_owned()) } else { Ok(key) }
}

fn missing(id: &str) -> CredentialError {
    CredentialError::Missing { provider: id.to_owned(), variables: variables(id) }
}

fn variables(id: &str) -> String {
    match vendor(id) {
        Some(vendor) => vendor.env_keys.iter().map(|key| key.name).collect::<Vec<_>>().join(" or "),
        None => "apiKey in models.json".to_owned(),
    }
}

impl KeyLookup {
    fn source(&self) -> KeySource {
        match self {
            Self::CommandLine(_) => KeySource::CommandLine,
            Self::Stored(_) => KeySource::Stored,
            Self::Account(_, entry) => KeySource::SignedIn { expires_ms: entry.expires_ms },
            Self::Unusable(_) => KeySource::Unusable,
            Self::Configured(_) => KeySource::ModelsFile,
            Self::Environment { name, .. } => KeySource::Environment(name),
            Self::Cloud(_) => KeySource::Cloud,
            Self::NotNeeded => KeySource::NotNeeded,
            Self::Nothing => KeySource::None,
        }
    }

    fn is_empty(&self) -> bool {
        matches!(self, Self::Environment { value, .. } if value.is_empty())
    }
}

impl Ready {
    fn without_network(self, provider: &str) -> Result<Credential, CredentialError> {
        match self {
            Self::Credential(credential) => Ok(credential),
            Self::Command(_) | Self::Account(..) | Self::GitHub(..) | Self::Cloud(_) => {
                Err(CredentialError::Unresolved {
                    provider: provider.to_owned(),
                    problem: "accounts are not supported here".to_owned(),
                })
            }
        }
    }
}

impl CredentialError {
    fn of_account(provider: &str, error: SignInError) -> Self {
        let provider = provider.to_owned();
        match error {
            SignInError::Ended { reason } => Self::SignedOut { provider, reason },
            SignInError::Unreachable { .. }
            | SignInError::Refused { .. }
            | SignInError::Save(_)
            | SignInError::Denied
            | SignInError::Expired
            | SignInError::Protocol { .. }
            | SignInError::ScopeMissing { .. }
            | SignInError::ClientIdMissing
            | SignInError::DeviceCodesDisabled
            | SignInError::NotOffered { .. } => Self::NotRenewed { provider, reason: error.to_string() },
        }
    }
}

impl KeySource {
    /// Its name for scripts.
    pub fn id(&self) -> &'static str {
        match self {
            Self::CommandLine => "command-line",
            Self::Stored => "auth.json",
            Self::SignedIn { .. } => "account",
            Self::Unusable => "unusable",
            Self::ModelsFile => "models.json",
            Self::Environment(_) => "environment",
            Self::Cloud => "cloud",
            Self::NotNeeded => "not-needed",
            Self::None => "none",
        }
    }
}

impl fmt::Display for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CommandLine => f.write_str("key from --api-key"),
            Self::Stored => f.write_str("key in auth.json"),
            Self::SignedIn { .. } => f.write_str("signed in"),
            Self::Unusable => f.write_str("an account pi does not support"),
            Self::ModelsFile => f.write_str("key in models.json"),
            Self::Environment(name) => write!(f, "key in {name}"),
            Self::Cloud => f.write_str("this machine's cloud account"),
            Self::NotNeeded => f.write_str("needs no key"),
            Self::None => f.write_str("no key"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::ai::Transport;
    use crate::util::clock::Clock;

    use super::super::oauth::Endpoints;
    use super::*;

    const MODELS: &str = r#"{"providers":{"deepseek":{"apiKey":"$MINE"},"home":{"baseUrl":"http://h","api":"openai-completions","models":[{"id":"m"}]}}}"#;

    fn catalog() -> Catalog {
        let mut catalog = Catalog::builtin();
        catalog.add_user_models(MODELS).unwrap();
        catalog
    }

    fn stored(content: &serde_json::Value, env: Env) -> (tempfile::TempDir, Credentials) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("auth.json");
        std::fs::write(&path, content.to_string()).unwrap();
        let file = Arc::new(AuthFile::open(path));
        let (transport, clock) = (Transport::new(), Clock::manual(1_000));
        let accounts = Accounts::new(transport, clock, Endpoints::default(), Arc::clone(&file), None);
        (folder, Credentials::new(env).with_store(file, accounts))
    }

    async fn resolve(credentials: &Credentials, provider: &str) -> Result<Credential, CredentialError> {
        let catalog = catalog();
        let model = catalog.models_of(provider).first().unwrap();
        credentials.resolve(model, &catalog).await
    }

    #[tokio::test]
    async fn keys_come_from_the_nearest_place() {
        let env = Env::of(&[
            ("MINE", "from-file"),
            ("DEEPSEEK_API_KEY", "from-env"),
            ("ANTHROPIC_AUTH_TOKEN", "tok\n"),
        ]);
        let mut credentials = Credentials::new(env.clone());
        assert_eq!(resolve(&credentials, "deepseek").await, Ok(Credential::ApiKey("from-file".to_owned())));
        assert_eq!(resolve(&credentials, "anthropic").await, Ok(Credential::Bearer("tok".to_owned())));
        assert_eq!(resolve(&credentials, "home").await, Ok(Credential::None));
        credentials.set_command_line_key("deepseek", "typed");
        assert_eq!(resolve(&credentials, "deepseek").await, Ok(Credential::ApiKey("typed".to_owned())));
        let missing = resolve(&credentials, "groq").await.unwrap_err().to_string();
        assert_eq!(
            missing,
            "no key for groq; set GROQ_API_KEY, run /login groq or pi auth login groq, or choose \
             another model"
        );

        let content = json!({"deepseek": {"type": "api_key", "key": "from-auth"}, "home": {"type": "api_key", "key": "$X-1", "env": {"X": "x"}}});
        let (_folder, mut credentials) = stored(&content, env);
        assert_eq!(resolve(&credentials, "deepseek").await, Ok(Credential::ApiKey("from-auth".to_owned())));
        assert_eq!(resolve(&credentials, "home").await, Ok(Credential::ApiKey("x-1".to_owned())));
        credentials.set_command_line_key("deepseek", "typed");
        assert_eq!(resolve(&credentials, "deepseek").await, Ok(Credential::ApiKey("typed".to_owned())));
    }

    #[tokio::test]
    async fn a_command_in_auth_json_runs_once() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let command = format!("!echo ran >> '{}'; echo key", log.display());
        let (_folder, credentials) =
            stored(&json!({"groq": {"type": "api_key", "key": command}}), Env::default());
        for _ in 0..2 {
            assert_eq!(resolve(&credentials, "groq").await, Ok(Credential::ApiKey("key".to_owned())));
        }
        assert_eq!(std::fs::read_to_string(log).unwrap(), "ran\n");
    }

    #[tokio::test]
    async fn what_cannot_be_used_does_not_hide_what_can() {
        let oauth = json!({"type": "oauth", "access": "a", "refresh": "r", "expires": 9_000_000_000_000_u64});
        let content = json!({
            "anthropic": oauth,
            "groq": oauth,
            "openai": oauth,
            "xai": {"type": "api_key", "key": "", "env": {"XAI_API_KEY": "from-entry"}},
            "acme": {"type": "hologram"},
        });
        let (_folder, credentials) = stored(&content, Env::of(&[("GROQ_API_KEY", "from-env")]));
        assert_eq!(resolve(&credentials, "groq").await, Ok(Credential::ApiKey("from-env".to_owned())));
        assert_eq!(resolve(&credentials, "xai").await, Ok(Credential::ApiKey("from-entry".to_owned())));
        let refused = resolve(&credentials, "anthropic").await.unwrap_err().to_string();
        assert!(refused.contains("does not support the saved account"), "{refused}");
        let catalog = catalog();
        let shown: Vec<String> = credentials
            .providers(&catalog)
            .iter()
            .filter(|provider| provider.is_stored)
            .map(|provider| format!("{}: {}", provider.id, provider.source))
            .collect();
        assert_eq!(
            shown,
            [
                "anthropic: an account pi does not support",
                "openai: signed in",
                "groq: key in GROQ_API_KEY",
                "xai: key in auth.json",
                "acme: an account pi does not support",
            ]
        );
        let available: Vec<&str> = catalog
            .providers()
            .iter()
            .filter(|provider| credentials.is_available(provider))
            .map(|provider| provider.id.as_str())
            .collect();
        assert_eq!(
            available,
            ["openai", "groq", "xai", "ollama", "lmstudio", "llama.cpp", "vllm", "demo", "home"]
        );
    }

    #[tokio::test]
    async fn a_broken_file_is_the_reason_when_there_is_no_other_key() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("auth.json");
        std::fs::write(&path, "{").unwrap();
        let file = Arc::new(AuthFile::open(path));
        let accounts =
            Accounts::new(Transport::new(), Clock::manual(0), Endpoints::default(), Arc::clone(&file), None);
        let credentials = Credentials::new(Env::of(&[("XAI_API_KEY", "k")])).with_store(file, accounts);
        assert_eq!(resolve(&credentials, "xai").await, Ok(Credential::ApiKey("k".to_owned())));
        let error = resolve(&credentials, "groq").await.unwrap_err().to_string();
        assert!(error.starts_with("no key for groq: ") && error.contains("auth.json"), "{error}");
    }
}
