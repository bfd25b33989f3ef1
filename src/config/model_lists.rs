//! Model lists that only the providers themselves have.
//!
//! They are requested once per process, from providers with a key, when the user
//! wants to see all models.

use futures_util::future::join_all;

use crate::ai::{Catalog, Model, ProviderInfo, Transport, list_models};

use super::credentials::Credentials;

/// The lists of providers, and failures.
#[derive(Debug, Clone, Default)]
pub struct ModelLists {
    /// By provider.
    pub models: Vec<(String, Vec<Model>)>,
    /// One line each.
    pub problems: Vec<String>,
}

impl Credentials {
    /// The connections that accounts use.
    pub fn transport(&self) -> Transport {
        self.accounts().map_or_else(Transport::new, |accounts| accounts.transport().clone())
    }

    /// The lists of all providers that publish one and have a key.
    /// Runs key commands. Known lists are not requested again; the
    /// others take at most three seconds. Dropping the future cancels the requests.
    pub async fn model_lists(&self, catalog: &Catalog) -> ModelLists {
        self.model_lists_of(catalog, |_| true).await
    }

    /// The same, of the providers that `is_wanted` selects.
    pub async fn model_lists_of(
        &self,
        catalog: &Catalog,
        is_wanted: impl Fn(&ProviderInfo) -> bool,
    ) -> ModelLists {
        let wanted = catalog.providers().iter().filter(|info| is_wanted(info));
        let asked = wanted.filter_map(|info| {
            let template = info.template.as_deref().filter(|_| self.is_available(info))?;
            Some(async move { (template, self.model_list(template, catalog).await) })
        });
        let mut lists = ModelLists::default();
        for (template, answer) in join_all(asked).await {
            match answer {
                Ok(models) => lists.models.push((template.provider.clone(), models)),
                Err(problem) => lists.problems.push(format!("{}: {problem}", template.provider)),
            }
        }
        lists
    }

    async fn model_list(&self, template: &Model, catalog: &Catalog) -> Result<Vec<Model>, String> {
        if let Some(known) = self.known_list(template) {
            return Ok(known);
        }
        let credential = self.resolve(template, catalog).await.map_err(|error| error.to_string())?;
        let headers = self.headers(template).await.map_err(|error| error.to_string())?;
        let transport = self.transport();
        let filled = headers.map(|headers| Model { headers, ..template.clone() });
        let mut models = list_models(&transport, filled.as_ref().unwrap_or(template), &credential).await?;
        for model in &mut models {
            // Each request fills in the headers itself.
            model.headers.clone_from(&template.headers);
        }
        self.keep_list(template, &models);
        if catalog.provider(&template.provider).is_some_and(ProviderInfo::is_discovered) {
            self.cache_list(template, &models).await;
        }
        Ok(models)
    }

    /// Keeps a list for the next start. A cache that cannot be written costs that start a request.
    async fn cache_list(&self, template: &Model, models: &[Model]) {
        let Some(cache) = self.list_cache.clone() else { return };
        let template = template.clone();
        let models = models.to_vec();
        let stored = tokio::task::spawn_blocking(move || cache.store(&template, &models)).await;
        drop(stored);
    }

    /// Adds the known lists to a catalogue that was read again, and the cached ones of
    /// discovered models. Blocks, briefly.
    pub fn add_known_lists(&self, catalog: &mut Catalog) {
        let with_template =
            catalog.providers().iter().filter_map(|info| Some((info, info.template.as_ref()?)));
        let mut known = Vec::new();
        let mut unknown = Vec::new();
        for (info, template) in with_template {
            match self.known_list(template) {
                Some(models) => known.push((template.provider.clone(), models)),
                None if info.is_discovered() && self.is_available(info) => unknown.push(&**template),
                None => {}
            }
        }
        if let Some(cache) = self.list_cache.as_ref().filter(|_| !unknown.is_empty()) {
            let cached = cache.models(unknown.into_iter());
            known.extend(cached.into_iter().map(|(template, models)| (template.provider.clone(), models)));
        }
        for (provider, models) in known {
            catalog.set_listed(&provider, models);
        }
    }
}
