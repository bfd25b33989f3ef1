//! Model lists that only the providers themselves have.
//!
//! They are requested once per process, from providers with a key, when the user
//! wants to see all models.

use futures_util::future::join_all;

use crate::ai::{Catalog, Model, Transport, list_models};

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
        let asked = catalog.providers().iter().filter_map(|info| {
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
        Ok(models)
    }

    /// Adds the known lists to a catalogue that was read again.
    pub fn add_known_lists(&self, catalog: &mut Catalog) {
        let templates = catalog.providers().iter().filter_map(|info| info.template.clone());
        let known: Vec<_> = templates
            .filter_map(|template| Some((template.provider.clone(), self.known_list(&template)?)))
            .collect();
        for (provider, models) in known {
            catalog.set_listed(&provider, models);
        }
    }
}
