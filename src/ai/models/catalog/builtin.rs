//! The built-in models.
//!
//! A vendor's list is parsed on first use, because most starts need only one.
//! A row has exactly the fields below; parsing it is several times as fast as
//! parsing a [`Model`], which keeps unknown fields.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::super::model::{Cost, Modality, Model};
use super::super::vendors::{self, Models};
use crate::ai::messages::{Api, ThinkingLevel};

/// When the lists were generated, in milliseconds since the Unix epoch. Stored lists with a
/// later date are newer. `contrib/models.py` writes both forms.
pub(super) const LISTED_MS: u64 = 1_795_171_680_000;
#[cfg(test)]
pub(super) const LISTED: &str = "2026-11-20T10:48:00.000Z";

/// The models of a vendor; empty if `provider` is not a vendor.
pub(super) fn models(provider: &str) -> Vec<Arc<Model>> {
    let Some(vendor) = vendors::vendor(provider) else { return Vec::new() };
    let list = match vendor.models {
        Models::Listed(list) => list,
        Models::Of(owner) => match vendors::vendor(owner).map(|owner| owner.models) {
            Some(Models::Listed(list)) => list,
            _ => "[]",
        },
        Models::Queried { .. } => "[]",
    };
    let rows: Vec<Row> = serde_json::from_str(list).expect("the lists compiled in are valid (tested)");
    rows.into_iter().map(|row| Arc::new(row.model(vendor.id, vendor.base_url))).collect()
}

/// One model of a list.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Row {
    id: &'static str,
    #[serde(borrow)]
    name: Cow<'static, str>,
    api: &'static str,
    #[serde(default)]
    base_url: &'static str,
    #[serde(default)]
    reasoning: bool,
    input: Vec<Modality>,
    cost: Cost,
    context_window: u64,
    max_tokens: u64,
    #[serde(default)]
    thinking_level_map: BTreeMap<ThinkingLevel, Option<Value>>,
    #[serde(default)]
    compat: Map<String, Value>,
    prompt_cache: Option<Value>,
}

impl Row {
    /// The model as a vendor offers it, at the vendor's address unless the row has another.
    fn model(self, provider: &str, base_url: &str) -> Model {
        let base_url = if self.base_url.is_empty() { base_url } else { self.base_url };
        Model {
            id: self.id.to_owned(),
            name: self.name.into_owned(),
            api: Api::known(self.api),
            provider: provider.to_owned(),
            base_url: base_url.to_owned(),
            reasoning: self.reasoning,
            input: self.input,
            cost: self.cost,
            context_window: self.context_window,
            max_tokens: self.max_tokens,
            thinking_level_map: self.thinking_level_map,
            compat: self.compat,
            extra: self.prompt_cache.map(|cache| ("promptCache".to_owned(), cache)).into_iter().collect(),
            ..Model::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::vendors::VENDORS;
    use super::*;

    #[test]
    fn every_list_is_read_by_its_vendor() {
        for vendor in VENDORS {
            assert_eq!(models(vendor.id).is_empty(), vendor.default_model.is_none(), "{}", vendor.id);
        }
    }
}
