//! The models compiled in.
//!
//! Every start reads them, so they have a form of their own: a row has the fields
//! below and no others, which is read several times as fast as a [`Model`] that
//! keeps what it does not know.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::super::model::{Api, Cost, Modality, Model, ThinkingLevel};

const ROWS: &str = include_str!("../data/models.json");

/// The rows of each vendor that has a list of its own.
pub(super) fn rows() -> BTreeMap<&'static str, Vec<Row>> {
    serde_json::from_str(ROWS).expect("the catalogue compiled in is valid (tested)")
}

/// What the catalogue says about one model.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Row {
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
}

impl Row {
    /// The model as a vendor offers it, at its address unless the row has another.
    pub(super) fn model(&self, provider: &str, base_url: &str) -> Model {
        let base_url = if self.base_url.is_empty() { base_url } else { self.base_url };
        Model {
            id: self.id.to_owned(),
            name: self.name.clone().into_owned(),
            api: Api::known(self.api),
            provider: provider.to_owned(),
            base_url: base_url.to_owned(),
            reasoning: self.reasoning,
            input: self.input.clone(),
            cost: self.cost.clone(),
            context_window: self.context_window,
            max_tokens: self.max_tokens,
            thinking_level_map: self.thinking_level_map.clone(),
            compat: self.compat.clone(),
            ..Model::default()
        }
    }
}
