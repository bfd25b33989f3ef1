//! External dependencies of a session: models, tools, settings, time.

use std::path::PathBuf;
use std::sync::Arc;

use crate::agent::ToolRegistry;
use crate::ai::{
    self, DEMO_PROVIDER, LiveCatalog, Model, Provider, ProviderInfo, Quotas, StreamOptions, ThinkingLevel,
};
use crate::config::{Credentials, Dirs, LiveSettings, Settings, load_catalog};
use crate::tools::BashConfig;
use crate::util::clock::Clock;
use crate::util::disk::Disk;

use super::question::ToolGate;

/// Shared by the sessions of a process that work alike; created by `cli::start` and by tests.
#[derive(Clone)]
pub struct Services {
    /// Also finds the key of a request without one (`config::Authorised`).
    pub provider: Arc<dyn Provider>,
    /// The models there are.
    pub catalog: Arc<LiveCatalog>,
    /// The keys of providers.
    pub credentials: Credentials,
    /// The tools of new sessions.
    pub tools: ToolRegistry,
    /// The shell of the user's commands, and session variables for the model's commands.
    pub bash: BashConfig,
    /// The settings without a project; each session has its own view of them.
    pub settings: LiveSettings,
    /// The folders of the user.
    pub dirs: Dirs,
    /// Times messages.
    pub clock: Clock,
    /// The model of new sessions, unless their file names one.
    pub model: ModelOptions,
    /// Changes of the system prompt.
    pub prompt: PromptOptions,
    /// Where skills are.
    pub skills: ResourceOptions,
    /// Where prompt templates are.
    pub templates: ResourceOptions,
    /// Who decides about trust.
    pub trust: TrustOptions,
    /// Decides about tool calls.
    pub gate: Arc<dyn ToolGate>,
    /// Writes session files.
    pub disk: Arc<dyn Disk>,
    /// The folder of new sessions; `None` keeps them in memory.
    pub sessions: Option<PathBuf>,
    /// Whether providers are asked for a long cache retention.
    pub long_cache: bool,
    /// Whether sessions may send requests that keep the provider's cache, as the setting
    /// `cacheWarming` says.
    pub warms_caches: bool,
    /// What providers report about their limits.
    pub quotas: Quotas,
}

/// Command line options for the model.
#[derive(Debug, Clone, Default)]
pub struct ModelOptions {
    /// In place of the one that the settings select.
    pub model: Option<Arc<Model>>,
    /// In place of the level that the settings select.
    pub thinking: Option<ThinkingLevel>,
}

/// How a process decides about trust, apart from settings and `trust.json`.
#[derive(Debug, Clone, Copy, Default)]
pub struct TrustOptions {
    /// The decision of the command line, for this process.
    pub flag: Option<bool>,
    /// Whether a user can be asked.
    pub can_ask: bool,
}

/// Command line options for the system prompt. They replace `SYSTEM.md` and
/// `APPEND_SYSTEM.md`.
#[derive(Debug, Clone, Default)]
pub struct PromptOptions {
    /// Replaces preamble, tool list and rules.
    pub custom: Option<String>,
    /// Follows them.
    pub addendum: Option<String>,
    /// Whether to leave out instruction files.
    pub no_context_files: bool,
    /// The command line that prints pages about pi. The prompt names it to models that can
    /// run commands.
    pub docs_command: Option<String>,
}

/// Command line options for skills, or for prompt templates.
#[derive(Debug, Clone, Default)]
pub struct ResourceOptions {
    /// Additional files and folders; absolute.
    pub paths: Vec<PathBuf>,
    /// Whether to leave out all others.
    pub only_paths: bool,
}

impl Services {
    pub(super) fn is_usable(&self, provider: &ProviderInfo) -> bool {
        self.credentials.is_available(provider)
    }

    /// Whether models of several providers are usable, not counting the demo.
    pub(super) fn has_several_providers(&self) -> bool {
        let catalog = self.catalog.get();
        let has_models = |info: &ProviderInfo| !catalog.models_of(&info.id).is_empty();
        let usable = catalog.providers().iter().filter(|info| {
            let is_asked = info.local || info.template.is_some();
            info.id != DEMO_PROVIDER && self.is_usable(info) && (!is_asked || has_models(info))
        });
        usable.take(2).count() == 2
    }

    /// A provider that the user has set up although `model` is the demo: the user chose the
    /// demo, or the provider has no default model.
    pub fn instead_of_demo(&self, model: &Model) -> Option<String> {
        if model.provider != DEMO_PROVIDER {
            return None;
        }
        self.credentials.first_set_up(&self.catalog.get()).map(|info| info.id.clone())
    }

    /// Whether this machine itself runs a model: on a server that was found without
    /// configuration, or in this program.
    pub fn is_local_or_demo(&self, model: &Model) -> bool {
        self.catalog
            .get()
            .provider(&model.provider)
            .is_some_and(|info| info.local || info.id == DEMO_PROVIDER)
    }

    /// The models with a key.
    pub fn usable_models(&self) -> Vec<Arc<Model>> {
        let catalog = self.catalog.get();
        let usable = catalog.providers().iter().filter(|info| self.is_usable(info));
        let mut models: Vec<Arc<Model>> =
            usable.flat_map(|info| catalog.models_of(&info.id)).cloned().collect();
        models.sort_by_key(|model| model.provider == DEMO_PROVIDER);
        models
    }

    /// Reads the model files again and queries the servers on this machine,
    /// which takes little more than half a second at most.
    /// Returns problems of the file, one line each.
    pub async fn refresh_models(&self) -> Vec<String> {
        let (dirs, env) = (self.dirs.clone(), self.credentials.env());
        let reading = tokio::task::spawn_blocking(move || load_catalog(&dirs, &env));
        let addresses = self.catalog.get().local_addresses.clone();
        let transport = self.credentials.transport();
        let (read, found) = tokio::join!(reading, ai::discover(&addresses, &transport));
        let Ok((catalog, problems)) = read else { return Vec::new() };
        self.catalog.update(|current| {
            let before = std::mem::replace(current, catalog);
            current.keep_hosted(&before);
            self.credentials.add_known_lists(current);
            for (server, models) in found {
                current.set_local(server, models);
            }
        });
        problems
    }

    /// Queries the list of the provider of `model`, if its models are discovered; takes a few
    /// seconds at most. Returns whether there was one to query, and failures, one line each.
    pub async fn refresh_list_of(&self, model: &Model) -> Option<Vec<String>> {
        let catalog = self.catalog.get();
        let is_its = |info: &ProviderInfo| info.id == model.provider && info.is_discovered();
        if !catalog.providers().iter().any(is_its) {
            return None;
        }
        let lists = self.credentials.model_lists_of(&catalog, is_its).await;
        self.catalog.update(|current| self.credentials.add_known_lists(current));
        Some(lists.problems)
    }

    /// Queries the model lists of the providers that have one and a key. Takes a few
    /// seconds at most. Returns failures, one line each; `None` if there was no provider
    /// to query.
    pub async fn refresh_lists(&self) -> Option<Vec<String>> {
        let lists = self.credentials.model_lists(&self.catalog.get()).await;
        if lists.models.is_empty() && lists.problems.is_empty() {
            return None;
        }
        self.catalog.update(|current| self.credentials.add_known_lists(current));
        Some(lists.problems)
    }

    /// The options of one answer of `model` in the session `session_id`.
    pub(super) fn options(
        &self,
        settings: &Settings,
        model: &Model,
        level: ThinkingLevel,
        session_id: &str,
    ) -> StreamOptions {
        let mut options =
            StreamOptions { session_id: Some(session_id.to_owned()), ..StreamOptions::default() };
        settings.sampling.apply(model, level, &mut options);
        options.long_cache = self.long_cache;
        options
    }
}
