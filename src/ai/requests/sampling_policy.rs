//! Chooses the generation options of a request.

use crate::ai::models::{Model, Sampling};
use std::collections::BTreeMap;

use super::request::StreamOptions;
use crate::ai::messages::ThinkingLevel;

/// Generation options of the user's settings, by model.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SamplingPolicy {
    /// For every model.
    pub all: Sampling,
    /// By `provider/id`; these win over all others.
    pub by_model: BTreeMap<String, Sampling>,
    /// Whether to request long cache lifetimes, which cost more at providers that
    /// charge for them.
    pub long_cache: bool,
    /// Whether models get a line of text in place of each image.
    pub block_images: bool,
    /// Thinking tokens of each level, if they differ from the defaults.
    pub thinking_budgets: BTreeMap<ThinkingLevel, u64>,
}

impl SamplingPolicy {
    /// Fills `options` for `model` at thinking `level`, in this order of precedence:
    /// the user's options for the model, those of the model's entry for the level, those
    /// of the entry, those for every model.
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
        // A blank stop sequence is rejected, or ends every answer.
        options.stop_sequences.retain(|text| !text.trim().is_empty());
        options.extra_body = sampling.body;
        options.long_cache = self.long_cache;
        options.without_images = self.block_images;
        options.thinking_budgets.clone_from(&self.thinking_budgets);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

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
            block_images: false,
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
        // This model supports at most `high`.
        check(ThinkingLevel::Max, 0.6);
    }
}
