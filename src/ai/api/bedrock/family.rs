//! How models of different vendors differ behind the one API.
//!
//! The family is recognised by id, or by name if the id is that of the user's own
//! inference profile. A field that a model does not support fails the request, so
//! unknown models get none. Sources: the pages "Inference request parameters" and
//! "Prompt caching" of <https://docs.aws.amazon.com/bedrock/latest/userguide/>.

use serde_json::{Value, json};

use super::super::{fitting_budget, mapped_level, thinking_budget};
use crate::ai::messages::ThinkingLevel;
use crate::ai::models::{BedrockCompat, Model};
use crate::ai::requests::Request;

/// The vendor of a model, where requests differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    /// With major and minor version, if the id contains them.
    Claude(Option<(u32, u32)>),
    Nova,
    Nova2,
    Gpt,
    GptOss,
    KimiK2,
    DeepSeek,
    /// GLM, and Kimi from K2.5.
    ConfiguredReasoning,
    Other,
}

/// The thinking settings of a request.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Thinking {
    /// For `additionalModelRequestFields`.
    pub(super) fields: Option<Value>,
    /// Whether the model chooses its own sampling.
    pub(super) fixes_sampling: bool,
    /// Whether the model rejects a maximum length of the answer.
    pub(super) fixes_length: bool,
}

impl Thinking {
    /// Whether they contain a number of tokens.
    pub(super) fn has_budget(&self) -> bool {
        self.fields.as_ref().is_some_and(|fields| fields["thinking"].get("budget_tokens").is_some())
    }
}

/// The parts of a request that can end with a cache point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CachePoints {
    /// System prompt and messages.
    pub(super) prompt: bool,
    pub(super) tools: bool,
}

impl Family {
    pub(super) fn of(model: &Model) -> Self {
        let by_id = Self::of_name(&model.id.to_ascii_lowercase());
        if by_id == Self::Other { Self::of_name(&model.name.to_ascii_lowercase()) } else { by_id }
    }

    fn of_name(name: &str) -> Self {
        let has = |part: &str| name.contains(part);
        if has("claude") {
            return Self::Claude(claude_version(name));
        }
        if has("nova-2") || has("nova 2") {
            return Self::Nova2;
        }
        if has("amazon.nova") || has("amazon nova") || name.starts_with("nova") {
            return Self::Nova;
        }
        if has("gpt-oss") {
            return Self::GptOss;
        }
        if has("openai.") || has("gpt-") {
            return Self::Gpt;
        }
        if has("deepseek") {
            return Self::DeepSeek;
        }
        if has("kimi-k2.5") || has("zai.glm") {
            return Self::ConfiguredReasoning;
        }
        if has("kimi-k2") { Self::KimiK2 } else { Self::Other }
    }

    pub(super) fn cache_points(self) -> CachePoints {
        match self {
            // Of the older ones, only this version caches.
            Self::Claude(version) => {
                let caches = version.is_none_or(|version| version >= (3, 7) || version == (3, 5));
                CachePoints { prompt: caches, tools: caches }
            }
            Self::Nova | Self::Nova2 => CachePoints { prompt: true, tools: false },
            // Caches automatically and rejects cache points.
            Self::Gpt
            | Self::GptOss
            | Self::KimiK2
            | Self::DeepSeek
            | Self::ConfiguredReasoning
            | Self::Other => CachePoints { prompt: false, tools: false },
        }
    }

    /// Whether the model signs its thinking and accepts it only with the signature.
    pub(super) fn signs_thinking(self) -> bool {
        matches!(self, Self::Claude(_))
    }

    /// Whether the model accepts its earlier thinking.
    pub(super) fn takes_thinking(self) -> bool {
        self != Self::DeepSeek
    }

    pub(super) fn takes_stops(self) -> bool {
        self != Self::Gpt
    }

    /// Whether the model can be forced to call a tool. No Claude can while it thinks, and
    /// the newest ones never can.
    pub(super) fn can_be_forced(self, thinking: &Thinking) -> bool {
        match self {
            Self::Claude(version) => {
                thinking.fields.is_none() && version.is_none_or(|version| version < (5, 5))
            }
            _ => true,
        }
    }

    /// Whether the model accepts sampling parameters when it does not think.
    pub(super) fn samples(self, model: &Model, compat: &BedrockCompat) -> bool {
        compat.supports_temperature.unwrap_or(match self {
            Self::Claude(version) => version.is_none_or(|version| version < (4, 7)),
            Self::Gpt => !model.reasoning,
            _ => true,
        })
    }

    /// The thinking settings of `request`; `has_tools` is whether it offers tools.
    pub(super) fn thinking(
        self,
        request: &Request,
        compat: &BedrockCompat,
        max_tokens: u64,
        has_tools: bool,
    ) -> Thinking {
        let model = &request.model;
        if !model.reasoning {
            return Thinking::default();
        }
        let level = model.clamp_thinking(request.options.thinking);
        if level == ThinkingLevel::Off {
            // Only some GPT models have a setting for it.
            let told = model.thinking_level_map.contains_key(&level) && self == Self::Gpt;
            let fields = told.then(|| json!({"reasoning": {"effort": mapped_level(model, level)}}));
            return Thinking { fixes_sampling: told, fields, ..Thinking::default() };
        }
        // "low" is their lowest effort.
        let effort = match mapped_level(model, level) {
            minimal if minimal == "minimal" => "low".to_owned(),
            effort => effort,
        };
        let fields = match self {
            Self::Claude(version) => {
                let adaptive = compat.adaptive_thinking;
                let is_adaptive =
                    adaptive.unwrap_or_else(|| version.is_some_and(|version| version >= (4, 6)));
                let fields = if is_adaptive {
                    Some(adaptive_thinking(request, &effort))
                } else {
                    let interleaves = has_tools && version.is_none_or(|version| version >= (4, 0));
                    {
                        let budget = thinking_budget(&request.options, level);
                        fitting_budget(budget, &request.model, max_tokens)
                            .map(|budget| thinking_by_budget(budget, interleaves))
                    }
                };
                return Thinking { fixes_sampling: fields.is_some(), fields, fixes_length: false };
            }
            Self::Nova2 => {
                // At its highest effort, the model chooses all other parameters.
                let is_high = effort == "high";
                let fields = json!({"reasoningConfig": {"type": "enabled", "maxReasoningEffort": effort}});
                return Thinking { fields: Some(fields), fixes_sampling: is_high, fixes_length: is_high };
            }
            Self::Gpt => Some(json!({"reasoning": {"effort": effort}})),
            Self::GptOss | Self::KimiK2 => Some(json!({"reasoning_effort": effort})),
            Self::DeepSeek | Self::ConfiguredReasoning => Some(json!({"reasoning_config": effort})),
            Self::Nova | Self::Other => None,
        };
        Thinking { fields, ..Thinking::default() }
    }
}

fn thinking_by_budget(budget: u64, interleaves: bool) -> Value {
    let mut fields = json!({"thinking": {"type": "enabled", "budget_tokens": budget}});
    if interleaves {
        fields["anthropic_beta"] = json!(["interleaved-thinking-2025-05-14"]);
    }
    fields
}

fn adaptive_thinking(request: &Request, effort: &str) -> Value {
    let mut thinking = json!({"type": "adaptive"});
    // Newer models show their thinking only on request, and the government regions
    // do not support that request.
    let id = request.model.id.as_str();
    if !id.starts_with("us-gov.") && !super::region(request).starts_with("us-gov-") {
        thinking["display"] = json!("summarized");
    }
    json!({"thinking": thinking, "output_config": {"effort": effort}})
}

/// The version in a lower-case id or name: `claude-3-7-sonnet-20250219`, `claude-opus-4-6-v1`,
/// `claude opus 4.7`.
fn claude_version(name: &str) -> Option<(u32, u32)> {
    let after = name.get(name.find("claude")?..)?;
    let mut tokens = after.split(|char: char| !char.is_ascii_alphanumeric());
    // Ignore dates.
    let number = |token: &str| token.parse::<u32>().ok().filter(|number| *number < 100);
    let major = tokens.find_map(number)?;
    Some((major, tokens.next().and_then(number).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_told_by_id_or_name() {
        let check = |id: &str, name: &str, expected: Family| {
            let model = Model { id: id.to_owned(), name: name.to_owned(), ..Model::default() };
            assert_eq!(Family::of(&model), expected, "{id}");
        };
        check("us.anthropic.claude-3-7-sonnet-20250219-v1:0", "", Family::Claude(Some((3, 7))));
        check("anthropic.claude-sonnet-4-20250514-v1:0", "", Family::Claude(Some((4, 0))));
        check("global.anthropic.claude-opus-4-6-v1", "", Family::Claude(Some((4, 6))));
        check("anthropic.claude-fable-5-1", "", Family::Claude(Some((5, 1))));
        check("anthropic.claude-mythos-preview", "", Family::Claude(None));
        let profile = "arn:aws:bedrock:us-east-1:1:application-inference-profile/abc123";
        check(profile, "Claude Opus 4.7 (team)", Family::Claude(Some((4, 7))));
        check(profile, "ours", Family::Other);
        check("eu.amazon.nova-micro-v1:0", "", Family::Nova);
        check("us.amazon.nova-2-lite-v1:0", "", Family::Nova2);
        check("us-gov.openai.gpt-oss-120b-1:0", "", Family::GptOss);
        check("global.openai.gpt-6-sol", "", Family::Gpt);
        check("deepseek.v3.2", "", Family::DeepSeek);
        check("moonshot.kimi-k2-thinking", "", Family::KimiK2);
        check("moonshotai.kimi-k2.5", "", Family::ConfiguredReasoning);
        check("zai.glm-4.7", "", Family::ConfiguredReasoning);
        check("us.meta.llama4-scout-17b-instruct-v1:0", "Llama 4", Family::Other);
    }

    #[test]
    fn only_some_models_are_told_what_to_cache() {
        let check = |id: &str, prompt: bool, tools: bool| {
            assert_eq!(Family::of_name(id).cache_points(), CachePoints { prompt, tools }, "{id}");
        };
        check("anthropic.claude-sonnet-5", true, true);
        check("anthropic.claude-3-5-haiku-20241022-v1:0", true, true);
        check("anthropic.claude-3-haiku-20240307-v1:0", false, false);
        check("amazon.nova-pro-v1:0", true, false);
        check("openai.gpt-6-sol", false, false);
        check("mistral.devstral-2-123b", false, false);
    }
}
