//! Derives a model's family from its id: generations differ in call ids, images and thinking.
//!
//! Facts: <https://ai.google.dev/gemini-api/docs/thinking>,
//! <https://ai.google.dev/gemini-api/docs/function-calling>.

use serde_json::Value;

use super::super::thinking_budget;
use super::wire::{Amount, ThinkingConfig};
use crate::ai::messages::ThinkingLevel;
use crate::ai::models::Model;
use crate::ai::requests::StreamOptions;

/// Tokens reserved for the answer if thinking and answer share a limit.
const MIN_ANSWER: u64 = 1_024;

/// A family of models that behave alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    /// Ids such as `gemini-flash-latest` contain no generation; they follow the newest.
    Gemini {
        generation: u32,
        tier: Tier,
    },
    Gemma {
        generation: u32,
    },
    Claude,
    GptOss,
    /// The id does not reveal the family.
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tier {
    Pro,
    Flash,
    FlashLite,
    Other,
}

impl Family {
    /// The family of a model id, with or without a path before it.
    pub(super) fn of(id: &str) -> Self {
        let id = id.to_ascii_lowercase();
        let name = id.rsplit('/').next().unwrap_or_default();
        let generation = |rest: &str| {
            let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            rest[..digits].parse::<u32>().ok()
        };
        if let Some(rest) = name.strip_prefix("gemini-") {
            let tier = if rest.contains("flash-lite") {
                Tier::FlashLite
            } else if rest.contains("flash") {
                Tier::Flash
            } else if rest.split('-').any(|word| word == "pro") {
                Tier::Pro
            } else {
                Tier::Other
            };
            let of_old = rest.starts_with("robotics-er-1");
            let generation = generation(rest).unwrap_or(if of_old { 2 } else { 3 });
            return Self::Gemini { generation, tier };
        }
        if let Some(rest) = name.strip_prefix("gemma-") {
            return Self::Gemma { generation: generation(rest).unwrap_or(4) };
        }
        if name.starts_with("claude-") {
            Self::Claude
        } else if name.starts_with("gpt-oss-") {
            Self::GptOss
        } else {
            Self::Unknown
        }
    }

    /// Whether calls and responses refer to each other by id. Older models do not support
    /// ids; for unknown families, a superfluous id does less harm than a missing one.
    pub(super) fn has_call_ids(self) -> bool {
        match self {
            Self::Gemini { generation, .. } => generation >= 3,
            Self::Gemma { .. } => false,
            Self::Claude | Self::GptOss | Self::Unknown => true,
        }
    }

    /// Whether a function response may contain images.
    pub(super) fn sees_images_in_responses(self) -> bool {
        self.is_gemini_3()
    }

    /// Whether the model rejects calls of the current turn without a signature.
    pub(super) fn checks_signatures(self) -> bool {
        self.is_gemini_3()
    }

    /// Whether thinking is useful only with its signature.
    pub(super) fn wants_signed_thinking(self) -> bool {
        self == Self::Claude
    }

    fn is_gemini_3(self) -> bool {
        matches!(self, Self::Gemini { generation: 3.., .. })
    }

    /// The thinking setting for a level the model supports. `None` leaves it out,
    /// because the model has no such setting.
    fn amount(self, level: ThinkingLevel, options: &StreamOptions, max_tokens: u64) -> Option<Amount> {
        use ThinkingLevel::{High, Low, Max, Medium, Minimal, Off, Xhigh};
        let named = |name: &str| Some(Amount::ThinkingLevel(name.to_owned()));
        // The budget of the level, and the smallest budget the model accepts.
        let (budget, floor) = match self {
            Self::Gemini { generation: 3.., tier } => {
                return named(match level {
                    // Their minimum: these models always think.
                    Off | Minimal if tier != Tier::Pro => "MINIMAL",
                    Off | Minimal | Low => "LOW",
                    Medium => "MEDIUM",
                    High | Xhigh | Max => "HIGH",
                });
            }
            Self::Gemma { generation: 4.. } => {
                return named(match level {
                    Off | Minimal | Low => "MINIMAL",
                    Medium | High | Xhigh | Max => "HIGH",
                });
            }
            Self::Gemma { .. } => return None,
            Self::Gemini { tier: Tier::Pro, .. } => match level {
                // This model cannot stop thinking.
                Off | Minimal => (128, 128),
                Low => (2_048, 128),
                Medium => (8_192, 128),
                High | Xhigh | Max => (32_768, 128),
            },
            Self::Gemini { tier: Tier::Flash | Tier::FlashLite, .. } if level == Off => (0, 0),
            Self::Gemini { tier: tier @ (Tier::Flash | Tier::FlashLite), .. } => {
                let least = if tier == Tier::FlashLite { 512 } else { 128 };
                let floor = if tier == Tier::FlashLite { 512 } else { 0 };
                let budget = match level {
                    Off | Minimal => least,
                    Low => 2_048,
                    Medium => 8_192,
                    High | Xhigh | Max => 24_576,
                };
                (budget, floor)
            }
            Self::Gemini { tier: Tier::Other, .. } | Self::Claude | Self::GptOss | Self::Unknown => {
                if level == Off {
                    return None;
                }
                (thinking_budget(options, level), 0)
            }
        };
        let set = options.thinking_budgets.get(&level.min(High)).filter(|_| level != Off);
        let budget = set.copied().unwrap_or(budget);
        let budget: u64 = budget.min(max_tokens.saturating_sub(MIN_ANSWER)).max(floor);
        i64::try_from(budget).ok().map(Amount::ThinkingBudget)
    }

    /// The thinking part of the request for the wanted level. A value in the
    /// model's own map takes precedence over the user's budget and the
    /// family's: a number is a budget, a word a level.
    pub(super) fn thinking(
        self,
        model: &Model,
        options: &StreamOptions,
        max_tokens: u64,
    ) -> Option<ThinkingConfig> {
        if !model.reasoning {
            return None;
        }
        let wanted = options.thinking;
        let level = model.clamp_thinking(wanted);
        let mapped = match model.thinking_level_map.get(&level) {
            Some(Some(Value::Number(budget))) => budget.as_i64().map(Amount::ThinkingBudget),
            Some(Some(Value::String(name))) => Some(match name.parse() {
                Ok(budget) => Amount::ThinkingBudget(budget),
                Err(_) => Amount::ThinkingLevel(name.to_ascii_uppercase()),
            }),
            Some(_) | None => None,
        };
        let amount = mapped.or_else(|| self.amount(level, options, max_tokens))?;
        // Users who turned thinking off do not want to read thinking that cannot be turned off.
        let include_thoughts = wanted != ThinkingLevel::Off && amount != Amount::ThinkingBudget(0);
        Some(ThinkingConfig { include_thoughts, amount })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn options(thinking: ThinkingLevel) -> StreamOptions {
        StreamOptions { thinking, ..StreamOptions::default() }
    }

    #[test]
    fn ids_tell_family_generation_and_tier() {
        let gemini = |generation, tier| Family::Gemini { generation, tier };
        let rows = [
            ("gemini-2.5-pro", gemini(2, Tier::Pro)),
            ("models/gemini-2.5-flash-lite-preview-09-2025", gemini(2, Tier::FlashLite)),
            ("gemini-2.5-computer-use-preview-10-2025", gemini(2, Tier::Other)),
            ("google/Gemini-3.1-Pro-preview-customtools", gemini(3, Tier::Pro)),
            ("gemini-4-argon", gemini(4, Tier::Other)),
            ("gemini-12-flash", gemini(12, Tier::Flash)),
            ("gemini-flash-latest", gemini(3, Tier::Flash)),
            ("gemini-robotics-er-1.5-preview", gemini(2, Tier::Other)),
            ("gemma-3-27b-it", Family::Gemma { generation: 3 }),
            ("claude-sonnet-4-5@20250929", Family::Claude),
            ("gpt-oss-120b-maas", Family::GptOss),
            ("mine", Family::Unknown),
            ("", Family::Unknown),
            ("gemini-99999999999", gemini(3, Tier::Other)),
        ];
        for (id, expected) in rows {
            assert_eq!(Family::of(id), expected, "{id}");
        }
    }

    #[track_caller]
    fn check(id: &str, map: Value, max_tokens: u64, level: ThinkingLevel, expected: Value) {
        let model = json!({"id": id, "reasoning": true, "thinkingLevelMap": map});
        let model: Model = serde_json::from_value(model).unwrap();
        let config = Family::of(id).thinking(&model, &options(level), max_tokens);
        assert_eq!(json!(config), expected, "{id} {level}");
    }

    #[test]
    fn older_models_think_by_budget() {
        use ThinkingLevel::{High, Low, Max, Minimal, Off};
        let budget = |tokens: i64| json!({"includeThoughts": true, "thinkingBudget": tokens});
        let no_map = || json!({});
        check("gemini-2.5-pro", no_map(), 65_536, Minimal, budget(128));
        check("gemini-2.5-pro", no_map(), 65_536, High, budget(32_768));
        check("gemini-2.5-pro", no_map(), 65_536, Max, budget(32_768));
        check("gemini-2.5-pro", no_map(), 65_536, Off, json!({"thinkingBudget": 128}));
        check("gemini-2.5-flash", no_map(), 65_536, Off, json!({"thinkingBudget": 0}));
        check("gemini-2.5-flash", no_map(), 65_536, High, budget(24_576));
        check("gemini-2.5-flash-lite", no_map(), 65_536, Minimal, budget(512));
        check("gemini-2.5-flash", no_map(), 3_000, High, budget(1_976));
        check("gemini-2.5-flash", no_map(), 500, High, json!({"thinkingBudget": 0}));
        check("gemini-2.5-flash-lite", no_map(), 500, High, budget(512));
        check("gemini-2.5-flash", json!({"low": -1}), 65_536, Low, budget(-1));
        check("mine", no_map(), 65_536, High, budget(16_384));
        check("mine", no_map(), 65_536, Off, json!(null));
        check("gemma-3-27b-it", no_map(), 65_536, High, json!(null));
    }

    #[test]
    fn newer_models_think_by_level() {
        use ThinkingLevel::{High, Low, Medium, Minimal, Off, Xhigh};
        let level = |name: &str| json!({"includeThoughts": true, "thinkingLevel": name});
        let pro = || json!({"off": null, "minimal": null, "low": "low", "high": "high"});
        check("gemini-3.1-pro-preview", pro(), 65_536, High, level("HIGH"));
        check("gemini-3.1-pro-preview", pro(), 65_536, Xhigh, level("HIGH"));
        check("gemini-3.1-pro-preview", pro(), 65_536, Minimal, level("LOW"));
        check("gemini-3.1-pro-preview", pro(), 65_536, Off, json!({"thinkingLevel": "LOW"}));
        check("gemini-3-flash-preview", json!({}), 65_536, Off, json!({"thinkingLevel": "MINIMAL"}));
        check("gemini-3-pro-preview", json!({}), 65_536, Minimal, level("LOW"));
        check("gemini-4-argon", json!({}), 65_536, Medium, level("MEDIUM"));
        check(
            "gemma-4-31b-it",
            json!({"minimal": "MINIMAL", "low": null}),
            65_536,
            Minimal,
            level("MINIMAL"),
        );
        check("gemma-4-31b-it", json!({}), 65_536, Low, level("MINIMAL"));
    }
}
