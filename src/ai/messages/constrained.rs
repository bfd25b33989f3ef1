//! Constrained sampling: how a tool restricts the arguments the model may write.
//!
//! Some services can force the model to write only arguments that match the tool's
//! schema or a grammar. This module defines the option as session files contain it,
//! and the tools that take text of a grammar instead of JSON; `strict_schema` has
//! the rules a schema must follow. An option this version does not know survives a
//! round trip and has no effect.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::message::{Extra, Message, ToolDeclaration};

/// How the arguments of a tool are sampled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ConstrainedSampling {
    /// By the schema of its parameters.
    JsonSchema {
        /// Whether it is required.
        strict: Strictness,
        /// Fields that pi does not know, kept.
        #[serde(flatten)]
        extra: Extra,
    },
    /// By a grammar, for a tool with a single text argument.
    Grammar {
        /// The grammar in each notation.
        #[serde(default)]
        variants: Grammars,
        /// Fields that pi does not know, kept.
        #[serde(flatten)]
        extra: Extra,
    },
    /// A form that pi does not know, kept.
    #[serde(untagged)]
    Unknown(Value),
}

impl ConstrainedSampling {
    /// By the schema, where the service supports it.
    pub fn prefer_schema() -> Self {
        Self::JsonSchema { strict: Strictness::Prefer, extra: Extra::new() }
    }
}

/// What happens if a schema cannot be enforced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strictness {
    /// The tool is offered without enforcement.
    Prefer,
    /// The request fails if the service enforces schemas but cannot enforce this one.
    Require,
}

/// One grammar, in the notations of the services that support grammars.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Grammars {
    /// For OpenAI, in Lark notation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub openai_lark: Option<String>,
    /// For OpenAI, as a regular expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub openai_regex: Option<String>,
    /// Fields that pi does not know, kept.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A tool that can be offered to OpenAI's models with a grammar: the model then
/// writes a text, which becomes the one argument of the call.
///
/// <https://platform.openai.com/docs/guides/function-calling#context-free-grammars>.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ai) struct GrammarTool<'a> {
    /// The property that receives the text.
    pub(in crate::ai) parameter: &'a str,
    /// `lark` or `regex`.
    pub(in crate::ai) syntax: &'static str,
    pub(in crate::ai) definition: &'a str,
}

impl<'a> GrammarTool<'a> {
    /// `None` for a tool without such a grammar, and for one whose parameters are not
    /// exactly one text.
    pub(in crate::ai) fn of(tool: &'a ToolDeclaration) -> Option<Self> {
        let Some(ConstrainedSampling::Grammar { variants, .. }) = &tool.constrained_sampling else {
            return None;
        };
        let (syntax, definition) = match (&variants.openai_lark, &variants.openai_regex) {
            (Some(lark), _) => ("lark", lark),
            (None, Some(regex)) => ("regex", regex),
            (None, None) => return None,
        };
        let [Value::String(parameter)] = tool.parameters.get("required")?.as_array()?.as_slice() else {
            return None;
        };
        let kind = tool.parameters.get("properties")?.get(parameter)?.get("type")?;
        (kind == "string").then_some(Self { parameter, syntax, definition })
    }

    /// The text in the arguments of a call, if there is one.
    pub(in crate::ai) fn input(self, arguments: &Value) -> Option<&str> {
        arguments.get(self.parameter)?.as_str()
    }
}

/// Names the argument that receives the model's text, for each tool with a grammar.
#[derive(Debug, Clone, Default)]
pub(in crate::ai) struct GrammarParameters(HashMap<String, String>);

impl GrammarParameters {
    /// Collects the tools that the conversation declares.
    pub(in crate::ai) fn of<'a>(messages: impl IntoIterator<Item = &'a Message>) -> Self {
        let systems = messages.into_iter().filter_map(|message| match message {
            Message::System(system) => Some(system),
            Message::User(_) | Message::Assistant(_) | Message::ToolResult(_) => None,
        });
        let grammars = systems.flat_map(|system| &system.tools_added).filter_map(|tool| {
            let grammar = GrammarTool::of(tool)?;
            Some((tool.name.clone(), grammar.parameter.to_owned()))
        });
        Self(grammars.collect())
    }

    /// The argument that receives a text for `tool`; `input` if the tool is unknown.
    pub(in crate::ai) fn name(&self, tool: &str) -> &str {
        self.0.get(tool).map_or("input", String::as_str)
    }

    /// The JSON arguments of a call of `tool` whose input arrived as `text`.
    pub(in crate::ai) fn arguments(&self, tool: &str, text: &str) -> String {
        json!({ self.name(tool): text }).to_string()
    }

    /// The start of those arguments, up to the text.
    pub(in crate::ai) fn opening(&self, tool: &str) -> String {
        format!("{{{}:\"", Value::from(self.name(tool)))
    }
}

/// `text` escaped for a JSON string.
pub(in crate::ai) fn escaped(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declaration(value: Value) -> ToolDeclaration {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn wishes_survive_a_round_trip() {
        let check = |wish: Value, known: bool| {
            let text = json!({"name": "t", "description": "", "parameters": {}, "constrainedSampling": wish, "x": 1});
            let tool = declaration(text.clone());
            assert_eq!(serde_json::to_string(&tool).unwrap(), text.to_string());
            let is_known = !matches!(tool.constrained_sampling, Some(ConstrainedSampling::Unknown(_)));
            assert_eq!(is_known, known, "{wish}");
        };
        check(json!({"type": "json_schema", "strict": "prefer"}), true);
        check(json!({"type": "json_schema", "strict": "require", "later": [1]}), true);
        check(
            json!({"type": "grammar", "variants": {"openai_lark": "start: \"a\"", "llama_gbnf": "root"}}),
            true,
        );
        check(json!({"type": "json_schema", "strict": "perhaps"}), false);
        check(json!({"type": "json_schema"}), false);
        check(json!({"type": "telepathy"}), false);
        check(json!(["json_schema"]), false);
        assert_eq!(declaration(json!({"name": "t"})).constrained_sampling, None);
    }

    #[test]
    fn a_grammar_needs_one_text_and_nothing_else() {
        let check = |parameters: Value, variants: Value, expected: Option<(&str, &str)>| {
            let tool = declaration(json!({"name": "t", "parameters": parameters,
                "constrainedSampling": {"type": "grammar", "variants": variants}}));
            let found = GrammarTool::of(&tool).map(|grammar| (grammar.parameter, grammar.syntax));
            assert_eq!(found, expected, "{}", tool.parameters);
        };
        let text = json!({"type": "object", "required": ["q"], "properties": {"q": {"type": "string"}}});
        check(text.clone(), json!({"openai_lark": "a", "openai_regex": "b"}), Some(("q", "lark")));
        check(text.clone(), json!({"openai_regex": "b"}), Some(("q", "regex")));
        check(text.clone(), json!({"other": "b"}), None);
        let lark = json!({"openai_lark": "a"});
        check(json!({"required": ["q"], "properties": {"q": {"type": "number"}}}), lark.clone(), None);
        check(json!({"required": ["q"], "properties": {}}), lark.clone(), None);
        check(json!({"required": ["q", "r"], "properties": {"q": {"type": "string"}}}), lark.clone(), None);
        check(json!({"properties": {"q": {"type": "string"}}}), lark.clone(), None);
        check(json!(null), lark, None);
    }

    #[test]
    fn a_text_becomes_the_one_argument() {
        let tool = json!({"role": "system", "toolsAdded": [{"name": "t",
            "parameters": {"required": ["say \"x\""], "properties": {"say \"x\"": {"type": "string"}}},
            "constrainedSampling": {"type": "grammar", "variants": {"openai_regex": "."}}}]});
        let message: Message = serde_json::from_value(tool).unwrap();
        let parameters = GrammarParameters::of([&message]);
        let whole = parameters.arguments("t", "a\n\"b\"");
        assert_eq!(whole, r#"{"say \"x\"":"a\n\"b\""}"#);
        assert_eq!(format!("{}{}\"}}", parameters.opening("t"), escaped("a\n\"b\"")), whole);
        assert_eq!(parameters.arguments("other", "a"), r#"{"input":"a"}"#);
    }
}
