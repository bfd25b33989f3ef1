//! Generation options, as in settings and `models.json`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Generation options of settings and `models.json`. Missing options use the
/// provider's default. Unknown names go into the request body unchanged, for
/// options that only one server supports, such as `top_k` or `min_p`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Sampling {
    /// How much answers vary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// The share of likely tokens that are considered, 0 to 1.
    #[serde(alias = "top_p", skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// Maximum number of tokens in the answer.
    #[serde(alias = "max_tokens", skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// Stop sequences.
    #[serde(alias = "stop_sequences", alias = "stop", skip_serializing_if = "Option::is_none")]
    pub stop_sequences: Option<Vec<String>>,
    /// Further fields of the request body.
    #[serde(flatten)]
    pub body: Map<String, Value>,
}

impl Sampling {
    /// These options, completed with those of `base`.
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

    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The problem with the values, for the user.
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sampling(value: Value) -> Sampling {
        serde_json::from_value(value).unwrap()
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
