//! A model: its capabilities, prices and wire API.

use crate::ai::messages::{Api, Extra, ThinkingLevel, Usage, UsageCost, js_number};
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ai::models::Sampling;

/// One model of one provider. The JSON form is that of the catalogue and of
/// the user's `models.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Model {
    /// What requests name it by.
    pub id: String,
    /// Its name for people.
    #[serde(default)]
    pub name: String,
    /// The API that it speaks.
    #[serde(default)]
    pub api: Api,
    /// The id of its provider.
    #[serde(default)]
    pub provider: String,
    /// Where requests go; paths are appended.
    #[serde(default)]
    pub base_url: String,
    /// Whether the model can think before it answers.
    #[serde(default)]
    pub reasoning: bool,
    /// What it reads.
    #[serde(default = "text_only")]
    pub input: Vec<Modality>,
    /// Its prices.
    #[serde(default)]
    pub cost: Cost,
    /// Tokens of prompt and answer combined.
    #[serde(default = "default_context_window")]
    pub context_window: u64,
    /// Maximum number of tokens in one answer.
    #[serde(default = "default_max_tokens")]
    pub max_tokens: u64,
    /// Wire value of each level: `None` = unsupported; missing = the level's own
    /// name, except `xhigh` and `max`, which are then unsupported.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub thinking_level_map: BTreeMap<ThinkingLevel, Option<Value>>,
    /// Extra HTTP headers for this model.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Wire quirks, by the names of `models.json`; read through `ai::compat`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub compat: Map<String, Value>,
    /// Generation options, unless the user's settings override them.
    #[serde(default, skip_serializing_if = "Sampling::is_empty")]
    pub sampling_params: Sampling,
    /// Generation options by thinking level; they win over `sampling_params`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sampling_params_by_thinking_level: BTreeMap<ThinkingLevel, Sampling>,
    /// Fields that pi does not know, kept.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Default for Model {
    fn default() -> Self {
        Self {
            id: String::new(),
            name: String::new(),
            api: Api::default(),
            provider: String::new(),
            base_url: String::new(),
            reasoning: false,
            input: text_only(),
            cost: Cost::default(),
            context_window: default_context_window(),
            max_tokens: default_max_tokens(),
            thinking_level_map: BTreeMap::new(),
            headers: BTreeMap::new(),
            compat: Map::new(),
            sampling_params: Sampling::default(),
            sampling_params_by_thinking_level: BTreeMap::new(),
            extra: Extra::new(),
        }
    }
}

/// The longest id of a model or provider in lists and files. Longer ones are rejected: no
/// service has them, and they would fill tables and screens.
pub(super) const MAX_ID_BYTES: usize = 256;

/// A kind of content a model can read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Modality {
    /// Text.
    Text,
    /// Images.
    Image,
    /// Something that pi does not send.
    #[serde(other)]
    Other,
}

/// US dollars per million tokens.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Cost {
    /// For input that is not in a cache.
    #[serde(serialize_with = "js_number")]
    pub input: f64,
    /// For output.
    #[serde(serialize_with = "js_number")]
    pub output: f64,
    /// For input read from a cache.
    #[serde(serialize_with = "js_number")]
    pub cache_read: f64,
    /// For input written to a cache.
    #[serde(serialize_with = "js_number")]
    pub cache_write: f64,
    /// Other rates for long prompts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tiers: Vec<CostTier>,
}

/// Rates for the whole request if its prompt is larger than a limit.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CostTier {
    /// The limit, in tokens.
    pub input_tokens_above: u64,
    /// For input that is not in a cache.
    #[serde(serialize_with = "js_number")]
    pub input: f64,
    /// For output.
    #[serde(serialize_with = "js_number")]
    pub output: f64,
    /// For input read from a cache.
    #[serde(serialize_with = "js_number")]
    pub cache_read: f64,
    /// For input written to a cache.
    #[serde(serialize_with = "js_number")]
    pub cache_write: f64,
}

impl Model {
    /// `provider/id`, the unambiguous reference.
    pub fn reference(&self) -> String {
        format!("{}/{}", self.provider, self.id)
    }

    /// Whether it reads images.
    pub fn reads_images(&self) -> bool {
        self.input.contains(&Modality::Image)
    }

    /// Whether it has this thinking level.
    pub fn supports(&self, level: ThinkingLevel) -> bool {
        if !self.reasoning {
            return level == ThinkingLevel::Off;
        }
        match self.thinking_level_map.get(&level) {
            Some(mapped) => mapped.is_some(),
            None => !matches!(level, ThinkingLevel::Xhigh | ThinkingLevel::Max),
        }
    }

    /// The supported levels, lowest first.
    pub fn thinking_levels(&self) -> Vec<ThinkingLevel> {
        ThinkingLevel::ALL.into_iter().filter(|level| self.supports(*level)).collect()
    }

    /// `level` if supported, otherwise the next higher supported one, otherwise the next lower.
    pub fn clamp_thinking(&self, level: ThinkingLevel) -> ThinkingLevel {
        let levels = self.thinking_levels();
        let higher = levels.iter().copied().find(|candidate| *candidate >= level);
        higher.or_else(|| levels.last().copied()).unwrap_or_default()
    }

    /// Prices `usage`, unless it contains the provider's own bill.
    pub fn price(&self, usage: &mut Usage) {
        self.price_at(usage, 1.0);
    }

    /// Like [`Self::price`], at `factor` times the listed prices.
    pub(in crate::ai) fn price_at(&self, usage: &mut Usage, factor: f64) {
        self.cost.price_at(usage, factor);
    }
}

impl Cost {
    /// Prices `usage` at `factor` times these rates, unless it contains the provider's own bill.
    pub(in crate::ai) fn price_at(&self, usage: &mut Usage, factor: f64) {
        let tier = self
            .tiers
            .iter()
            .filter(|tier| tier.input_tokens_above < usage.prompt_tokens())
            .max_by_key(|tier| tier.input_tokens_above);
        let (input, output, cache_read, cache_write) = match tier {
            Some(tier) => (tier.input, tier.output, tier.cache_read, tier.cache_write),
            None => (self.input, self.output, self.cache_read, self.cache_write),
        };
        let dollars = |tokens: u64, rate: f64| tokens as f64 * rate * factor / 1e6;
        // One-hour cache writes cost twice the input rate; other writes cost the write rate.
        let written_1h = usage.cache_write_1h.unwrap_or(0).min(usage.cache_write);
        let mut cost = UsageCost {
            input: dollars(usage.input, input),
            output: dollars(usage.output, output),
            cache_read: dollars(usage.cache_read, cache_read),
            cache_write: dollars(usage.cache_write - written_1h, cache_write)
                + dollars(written_1h, 2.0 * input),
            ..UsageCost::default()
        };
        if usage.cost.total_from_provider == Some(true) {
            cost.total = usage.cost.total;
            cost.total_from_provider = Some(true);
        } else {
            cost.total = cost.input + cost.output + cost.cache_read + cost.cache_write;
        }
        usage.cost = cost;
    }
}

fn text_only() -> Vec<Modality> {
    vec![Modality::Text]
}

fn default_context_window() -> u64 {
    128_000
}

fn default_max_tokens() -> u64 {
    16_384
}
