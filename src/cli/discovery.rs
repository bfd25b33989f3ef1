//! Queries servers that `models.json` names by address only, where the start depends on it.
//!
//! `config::model_lists` makes the requests and caches their results; this decides which are
//! made before the session opens.

use crate::ai::{DEMO_PROVIDER, ProviderInfo};

use super::args::Args;
use super::start::{Front, Setup};

impl Setup {
    /// Queries servers whose models are discovered, if the choice of the model depends on
    /// their lists. The lists are cached for the next start.
    pub(super) fn discover_models(&mut self, args: &Args, front: Front) -> anyhow::Result<()> {
        let wanted = self.lists_to_query(args, front);
        if wanted.is_empty() {
            return Ok(());
        }
        let is_wanted = |info: &ProviderInfo| wanted.contains(&info.id);
        let lists =
            super::single_runtime()?.block_on(self.credentials.model_lists_of(&self.catalog, is_wanted));
        for (provider, models) in lists.models {
            self.catalog.set_listed(&provider, models);
        }
        self.problems.extend(lists.problems);
        Ok(())
    }

    /// The ids of providers to query before the start. Interactive mode queries the server of a
    /// model that the user named after its first frame.
    fn lists_to_query(&self, args: &Args, front: Front) -> Vec<String> {
        let is_unlisted = |info: &&ProviderInfo| {
            let is_empty = self.catalog.models_of(&info.id).is_empty();
            info.is_discovered() && is_empty && self.credentials.is_available(info)
        };
        let unlisted: Vec<String> =
            self.catalog.providers().iter().filter(is_unlisted).map(|info| info.id.clone()).collect();
        if unlisted.is_empty() {
            return unlisted;
        }
        let settings = &self.settings.values;
        let provider = args.provider.as_ref().or(settings.default_provider.as_ref());
        let only = |provider: &str| unlisted.iter().filter(|id| *id == provider).cloned().collect();
        let model = args.model.as_ref().or(settings.default_model.as_ref());
        let Some(reference) = model else {
            return match provider {
                Some(provider) => only(provider),
                None if self.has_usable_model() => Vec::new(),
                None => unlisted,
            };
        };
        let usable = self.credentials.usable_in(&self.catalog);
        match self.catalog.find(reference, provider.map(String::as_str), &usable) {
            Ok(matched) if !matched.assumed || front == Front::Interactive => Vec::new(),
            Ok(matched) => only(&matched.model.provider),
            Err(_) => unlisted,
        }
    }

    /// Whether a provider with a key has models that a session can begin with.
    fn has_usable_model(&self) -> bool {
        let mut others =
            self.catalog.providers().iter().filter(|info| info.id != DEMO_PROVIDER && !info.local);
        let has_model = |info: &ProviderInfo| {
            info.default_model.is_some() || !self.catalog.models_of(&info.id).is_empty()
        };
        others.any(|info| has_model(info) && self.credentials.is_available(info))
    }
}
