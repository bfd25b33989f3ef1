//! All models: built-in ones, newer ones stored by the original, those of the
//! user's `models.json`, and those of servers on this machine.
//!
//! Pure: receives the text of files, not paths, and the servers that were found.
//! An error in the user's file is reported and never hides the built-in models.

mod builtin;
mod find;
mod live;
mod scope;
mod stored;
mod user_models;
mod wrong_field;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};

use super::local_servers::{LOCAL_SERVERS, LocalAddresses, LocalServer};
use super::model::{Modality, Model};
use super::model_lists;
use super::vendors::VENDORS;
use crate::ai::messages::Api;

pub use find::{MatchError, Matched};
pub use live::LiveCatalog;
pub use scope::{ScopedModel, UnmatchedPattern, glob_selects};

/// The provider id of the offline demo model.
pub const DEMO_PROVIDER: &str = "demo";

/// All models and providers.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    providers: Vec<ProviderInfo>,
    /// In the order of the providers.
    groups: Vec<Group>,
    /// Ids of the providers of the embedding program.
    hosted: Vec<String>,
    /// Addresses at which to look for servers on this machine.
    pub local_addresses: LocalAddresses,
}

/// The models of one provider; built-in ones are parsed on first use.
#[derive(Debug, Clone)]
struct Group {
    provider: String,
    /// Models newer than the built-in ones, which they replace when those are parsed.
    stored: Vec<Arc<Model>>,
    /// `modelOverrides` of `models.json`, for models that a list adds later.
    overrides: BTreeMap<String, Map<String, Value>>,
    models: OnceLock<Vec<Arc<Model>>>,
}

impl Group {
    fn new(provider: &str) -> Self {
        Self {
            provider: provider.to_owned(),
            stored: Vec::new(),
            overrides: BTreeMap::new(),
            models: OnceLock::new(),
        }
    }

    /// The models, parsed on first use.
    fn models(&self) -> &Vec<Arc<Model>> {
        self.models.get_or_init(|| {
            let mut models = builtin::models(&self.provider);
            put(&self.stored, &mut models);
            models
        })
    }

    /// Adds newer models, now or when the built-in ones are parsed.
    fn store(&mut self, newer: Vec<Arc<Model>>) {
        match self.models.get_mut() {
            Some(models) => put(&newer, models),
            None => self.stored.extend(newer),
        }
    }
}

/// Replaces models by the `newer` ones with the same ids; appends the others.
fn put(newer: &[Arc<Model>], models: &mut Vec<Arc<Model>>) {
    for newer in newer {
        match models.iter_mut().find(|model| model.id == newer.id) {
            Some(model) => model.clone_from(newer),
            None => models.push(Arc::clone(newer)),
        }
    }
}

/// One provider: a vendor, or one from `models.json`.
#[derive(Debug, Clone, PartialEq)]
pub struct ProviderInfo {
    /// What models and settings name it by.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// The `apiKey` of `models.json`, unresolved: a literal, `$NAME` or `!command`.
    pub api_key: Option<String>,
    /// Whether the provider exists only in `models.json`.
    pub custom: bool,
    /// Whether it is a server on this machine whose models are queried.
    pub local: bool,
    /// Whether the key is sent as a bearer token, whichever header the API uses.
    pub auth_header: bool,
    /// The model to begin with.
    pub default_model: Option<String>,
    /// The defaults for models that only the provider's own list contains, which is
    /// queried; `None` if the models are built in or the user's.
    pub template: Option<Arc<Model>>,
}

impl ProviderInfo {
    /// Whether `models.json` has only the address of the provider, whose list has its models.
    pub fn is_discovered(&self) -> bool {
        self.custom && self.template.is_some()
    }
}

impl Catalog {
    /// The built-in models, the demo model last.
    pub fn builtin() -> Self {
        let mut catalog = Self::default();
        for vendor in VENDORS {
            catalog.groups.push(Group::new(vendor.id));
            catalog.providers.push(ProviderInfo {
                id: vendor.id.to_owned(),
                name: vendor.name.to_owned(),
                api_key: None,
                custom: false,
                local: false,
                auth_header: false,
                default_model: vendor.default_model.map(str::to_owned),
                template: vendor.default_model.is_none().then(|| Arc::new(model_lists::template(vendor))),
            });
        }
        catalog.providers.extend(LOCAL_SERVERS.iter().map(|server| ProviderInfo {
            id: server.id.to_owned(),
            name: server.name.to_owned(),
            api_key: None,
            custom: true,
            local: true,
            auth_header: false,
            default_model: None,
            template: None,
        }));
        catalog.providers.push(ProviderInfo {
            id: DEMO_PROVIDER.to_owned(),
            name: "Demo".to_owned(),
            api_key: None,
            custom: false,
            local: false,
            auth_header: false,
            default_model: Some("pi".to_owned()),
            template: None,
        });
        catalog.group(DEMO_PROVIDER).push(Arc::new(demo_model()));
        catalog
    }

    /// Replaces the models of a server on this machine by its current ones.
    /// Does nothing if the user has described the server in `models.json`.
    pub fn set_local(&mut self, server: &LocalServer, models: Vec<Model>) {
        if self.provider(server.id).is_some_and(|provider| provider.local) {
            *self.group(server.id) = models.into_iter().map(Arc::new).collect();
        }
    }

    /// Adds the models of a provider's own list, with the user's `modelOverrides`. Models that
    /// the user has described stay unchanged; those of an earlier list are replaced if all models
    /// are from lists.
    pub fn set_listed(&mut self, provider: &str, models: Vec<Model>) {
        let overrides = self.group_of(provider).overrides.clone();
        let is_discovered = self.provider(provider).is_some_and(ProviderInfo::is_discovered);
        let group = self.group(provider);
        if is_discovered {
            group.clear();
        }
        for model in models {
            if !group.iter().any(|known| known.id == model.id) {
                let changed =
                    overrides.get(&model.id).map(|fields| user_models::with_override(&model, fields));
                group.push(Arc::new(changed.unwrap_or(model)));
            }
        }
    }

    /// Adds models that the embedding program answers itself, under the provider id they
    /// name. They need no key, and take the place of a provider with that id.
    pub fn add_hosted(&mut self, models: impl IntoIterator<Item = Model>) {
        for model in models {
            let id = model.provider.clone();
            if !self.hosted.contains(&id) {
                self.hosted.push(id.clone());
                self.providers.retain(|provider| provider.id != id);
                self.groups.retain(|group| group.provider != id);
                self.groups.push(Group { models: OnceLock::from(Vec::new()), ..Group::new(&id) });
                self.providers.push(ProviderInfo {
                    name: id.clone(),
                    default_model: Some(model.id.clone()),
                    api_key: None,
                    custom: true,
                    local: false,
                    auth_header: false,
                    template: None,
                    id: id.clone(),
                });
            }
            put(&[Arc::new(model)], self.group(&id));
        }
    }

    /// Takes over the models that [`Self::add_hosted`] added to `other`.
    pub fn keep_hosted(&mut self, other: &Self) {
        for id in &other.hosted {
            self.add_hosted(other.models_of(id).iter().map(|model| Model::clone(model)));
        }
    }

    /// Fills in the variables of addresses, written `{NAME}`. Variables without a value
    /// stay.
    pub fn fill_addresses(&mut self, value: impl Fn(&str) -> Option<String>) {
        for template in self.providers.iter_mut().filter_map(|provider| provider.template.as_mut()) {
            let filled = model_lists::fill(&template.base_url, &value);
            Arc::make_mut(template).base_url = filled;
        }
    }

    /// Changes every model of a provider.
    pub fn change_models(&mut self, provider: &str, mut change: impl FnMut(&mut Model)) {
        for model in self.group(provider) {
            change(Arc::make_mut(model));
        }
    }

    /// The servers found on this machine, with the number of models of each.
    pub fn found_servers(&self) -> Vec<(&'static str, usize)> {
        let count = |server: &LocalServer| {
            let is_local = self.provider(server.id).is_some_and(|provider| provider.local);
            (server.name, if is_local { self.models_of(server.id).len() } else { 0 })
        };
        LOCAL_SERVERS.iter().map(count).filter(|(_, n_models)| *n_models > 0).collect()
    }

    /// All models, grouped by provider.
    pub fn models(&self) -> impl Iterator<Item = &Arc<Model>> {
        self.providers.iter().flat_map(|provider| self.models_of(&provider.id))
    }

    /// The models of one provider, parsed on first use.
    pub fn models_of(&self, provider: &str) -> &[Arc<Model>] {
        match self.groups.iter().find(|group| group.provider == provider) {
            Some(group) => group.models(),
            None => &[],
        }
    }

    /// Mutable access to the models of a provider; adds a group for a new provider.
    fn group(&mut self, provider: &str) -> &mut Vec<Arc<Model>> {
        let group = self.group_of(provider);
        group.models();
        group.models.get_mut().expect("read above")
    }

    fn group_of(&mut self, provider: &str) -> &mut Group {
        let at = match self.groups.iter().position(|group| group.provider == provider) {
            Some(at) => at,
            None => {
                self.groups.push(Group::new(provider));
                self.groups.len() - 1
            }
        };
        &mut self.groups[at]
    }

    /// The model with exactly this id.
    pub fn get(&self, provider: &str, id: &str) -> Option<&Arc<Model>> {
        self.models_of(provider).iter().find(|model| model.id == id)
    }

    /// The model of a session or of the settings. If the catalogue does not contain it
    /// and `usable` reports access to its provider, the model is assumed: it may be newer
    /// than this version, or on a server not queried yet.
    pub fn get_or_assume(
        &self,
        provider: &str,
        id: &str,
        usable: &dyn Fn(&str) -> bool,
    ) -> Option<Arc<Model>> {
        let known = self.get(provider, id).cloned();
        known.or_else(|| self.assumed(id, Some(provider), usable).map(Arc::new))
    }

    /// Whether the models known of a provider are all it has: its own list was read.
    pub fn lists_all_models_of(&self, provider: &str) -> bool {
        let is_queried = self.provider(provider).is_some_and(|info| info.local || info.template.is_some());
        is_queried && !self.models_of(provider).is_empty()
    }

    /// The provider with this id.
    pub fn provider(&self, id: &str) -> Option<&ProviderInfo> {
        self.providers.iter().find(|provider| provider.id == id)
    }

    /// All providers: vendors, servers on this machine, the demo, then the user's.
    pub fn providers(&self) -> &[ProviderInfo] {
        &self.providers
    }
}

fn demo_model() -> Model {
    Model {
        id: "pi".to_owned(),
        name: "Demo (offline)".to_owned(),
        api: Api::DEMO,
        provider: DEMO_PROVIDER.to_owned(),
        reasoning: true,
        input: vec![Modality::Text, Modality::Image],
        ..Model::default()
    }
}
