//! How an answer is generated, as far as somebody says.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::request::StreamOptions;
use crate::ai::models::{Model, ThinkingLevel};

/// Generation options of settings and `models.json`. What is not said is the
/// provider's choice. Names other than these go into the request body as they
/// are, for what only one server knows, such as `top_k` or `min_p`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Sampling {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    #[serde(alias = "top_p", skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// Upper bound of tokens to answer with.
    #[serde(alias = "max_tokens", skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// Texts that end the answer where they appear.
    #[serde(alias = "stop_sequences", alias = "stop", skip_serializing_if = "Option::is_none")]
    pub stop_sequences: Option<Vec<String>>,
    #[serde(flatten)]
    pub body: Map<String, Value>,
}

impl Sampling {
    /// These options where they say something, else those of `base`.
    #[must_use]
    pub fn or(self, base: &Self) -> Self {
        let mut body = base.body.clone();
        body.extend(self.body);
        Self {
            temperature: self.temperature.or(base.temperature),
            top_p: self.top_p.or(base.top_p),
            max_tokens: self.max_tokens.or(base.max_tokens),
            stop_sequences: self.stop_sequences.or_else(|| base.stop_sequences.clone()),
            body,
        }
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What is wrong with the values, for the user.
    pub fn problem(&self) -> Option<String> {
        let within = |value: Option<f64>, most: f64| value.is_none_or(|value| (0.0..=most).contains(&value));
        if !within(self.temperature, 2.0) {
            return Some("temperature must be between 0 and 2".to_owned());
        }
        if !within(self.top_p, 1.0) {
            return Some("topP must be between 0 and 1".to_owned());
        }
        (self.max_tokens == Some(0)).then(|| "maxTokens must be at least 1".to_owned())
    }
}

/// Generation options by whom they are meant for.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SamplingPolicy {
    /// For every model.
    pub all: Sampling,
    /// By `provider/id`; these win over everything else.
    pub by_model: BTreeMap<String, Sampling>,
    /// Whether providers are asked to keep prompts for long, which costs more where
    /// they charge for it.
    pub long_cache: bool,
    /// Thinking tokens of each level, where they differ from the usual ones.
    pub thinking_budgets: BTreeMap<ThinkingLevel, u64>,
}

impl SamplingPolicy {
    /// Writes into `options` what is to be asked of `model`, thinking at `level`:
    /// the user's options for the model, those of its entry for the level, those
    /// of its entry, those for every model, in this order.
    pub fn apply(&self, model: &Model, level: ThinkingLevel, options: &mut StreamOptions) {
        let level = model.clamp_thinking(level);
        let nothing = Sampling::default();
        let by_level = model.sampling_params_by_thinking_level.get(&level).unwrap_or(&nothing);
        let own = self.by_model.get(&model.reference()).cloned().unwrap_or_default();
        let sampling = own.or(by_level).or(&model.sampling_params).or(&self.all);
        options.thinking = level;
        options.temperature = sampling.temperature;
        options.top_p = sampling.top_p;
        options.max_tokens = sampling.max_tokens;
        options.stop_sequences = sampling.stop_sequences.unwrap_or_default();
        // Refused, or the end of every answer.
        options.stop_sequences.retain(|text| !text.trim().is_empty());
        options.extra_body = sampling.body;
        options.long_cache = self.long_cache;
        options.thinking_budgets.clone_from(&self.thinking_budgets);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sampling(value: Value) -> Sampling {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn the_most_particular_option_wins() {
        let model: Model = serde_json::from_value(json!({
            "id": "m", "provider": "p", "reasoning": true,
            "samplingParams": {"temperature": 0.3, "top_p": 0.9, "min_p": 0.1},
            "samplingParamsByThinkingLevel": {"high": {"temperature": 0.6}},
        }))
        .unwrap();
        let policy = SamplingPolicy {
            all: sampling(json!({"temperature": 1, "maxTokens": 100, "topP": 0.1, "stop": ["END"]})),
            by_model: [("p/m".to_owned(), sampling(json!({"maxTokens": 7})))].into(),
            long_cache: false,
            thinking_budgets: BTreeMap::new(),
        };
        let check = |level, temperature| {
            let mut options = StreamOptions::default();
            policy.apply(&model, level, &mut options);
            assert_eq!(options.temperature, Some(temperature));
            assert_eq!((options.top_p, options.max_tokens), (Some(0.9), Some(7)));
            assert_eq!(options.stop_sequences, ["END"]);
            assert_eq!(Value::Object(options.extra_body), json!({"min_p": 0.1}));
        };
        check(ThinkingLevel::Low, 0.3);
        check(ThinkingLevel::High, 0.6);
        // The model cannot do more than high.
        check(ThinkingLevel::Max, 0.6);
    }

    #[test]
    fn values_no_provider_takes_are_named() {
        let check = |value: Value, expected: Option<&str>| {
            assert_eq!(sampling(value.clone()).problem().as_deref(), expected, "{value}");
        };
        check(json!({"temperature": 0.0, "topP": 1.0, "maxTokens": 1}), None);
        check(json!({"temperature": 2.5}), Some("temperature must be between 0 and 2"));
        check(json!({"topP": -0.1}), Some("topP must be between 0 and 1"));
        check(json!({"maxTokens": 0}), Some("maxTokens must be at least 1"));
    }
}
