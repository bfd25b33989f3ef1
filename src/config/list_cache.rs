//! The models of providers that `models.json` names by address only, kept for the next
//! start: `model-lists.json` beside the settings.
//!
//! The file is a cache: it may be deleted at any time, and a damaged one is replaced. It
//! contains no keys and no headers.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::ai::{ListedModel, Model};
use crate::util::{atomic_file, os};

/// Larger files are ignored and replaced.
const FILE_LIMIT_BYTES: u64 = 8 << 20;

/// The cached lists of all providers.
#[derive(Debug, Clone)]
pub(super) struct ListCache {
    path: PathBuf,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct CachedList {
    /// The address that was queried. A list of another address does not count.
    queried: String,
    models: Vec<ListedModel>,
}

impl ListCache {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// The lists of the providers of `templates`. Blocks.
    pub(super) fn models<'a>(
        &self,
        templates: impl Iterator<Item = &'a Model>,
    ) -> Vec<(&'a Model, Vec<Model>)> {
        let mut cached = self.read();
        let known = templates.filter_map(|template| {
            let list = cached.remove(&template.provider)?;
            let models = list.models.into_iter().map(|listed| listed.model(template));
            (list.queried == template.base_url).then(|| (template, models.collect()))
        });
        known.collect()
    }

    /// Adds a list. Blocks, briefly.
    ///
    /// # Errors
    /// If the file cannot be written; it is unchanged then.
    pub(super) fn store(&self, template: &Model, models: &[Model]) -> io::Result<()> {
        let mut cached = self.read();
        let queried = template.base_url.clone();
        let list = CachedList { queried, models: models.iter().map(ListedModel::of).collect() };
        cached.insert(template.provider.clone(), list);
        if let Some(folder) = self.path.parent() {
            atomic_file::create_private_folder(folder)?;
        }
        atomic_file::write_private(&self.path, &serde_json::to_vec(&cached)?)
    }

    fn read(&self) -> BTreeMap<String, CachedList> {
        let read = || -> io::Result<BTreeMap<String, CachedList>> {
            let mut bytes = Vec::new();
            os::open_regular(&self.path)?.take(FILE_LIMIT_BYTES + 1).read_to_end(&mut bytes)?;
            if bytes.len() as u64 > FILE_LIMIT_BYTES {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            Ok(serde_json::from_slice(&bytes)?)
        };
        read().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(provider: &str, base_url: &str, id: &str) -> Model {
        let (provider, base_url, id) = (provider.to_owned(), base_url.to_owned(), id.to_owned());
        Model { provider, base_url, id, ..Model::default() }
    }

    #[test]
    fn lists_are_kept_by_provider_and_address_without_headers() {
        let folder = tempfile::tempdir().unwrap();
        let cache = ListCache::new(folder.path().join("agent/model-lists.json"));
        let home = model("home", "http://h", "");
        let mut listed = model("home", "http://h/v1", "m");
        listed.context_window = 4_096;
        listed.headers.insert("x-key".to_owned(), "secret".to_owned());
        cache.store(&home, &[listed]).unwrap();
        cache.store(&model("work", "http://w", ""), &[model("work", "http://w", "n")]).unwrap();
        let found = cache.models([&home].into_iter());
        let shown: Vec<_> = found[0].1.iter().map(|model| (&*model.base_url, model.context_window)).collect();
        assert_eq!((found.len(), shown), (1, vec![("http://h/v1", 4_096)]));
        assert!(!std::fs::read_to_string(&cache.path).unwrap().contains("secret"));
        assert!(cache.models([&model("home", "http://other", "")].into_iter()).is_empty());
        // A damaged cache is replaced.
        std::fs::write(&cache.path, "{").unwrap();
        assert!(cache.models([&home].into_iter()).is_empty());
        cache.store(&home, &[]).unwrap();
        assert_eq!(cache.models([&home].into_iter()).len(), 1);
    }
}
