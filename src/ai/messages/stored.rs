//! Reads the content of messages without copying its texts.
//!
//! For an enum of tagged and untagged variants, serde derives code that reads a block into
//! a general form and copies every text out of it. Most of a session is the text of blocks,
//! so here a block's fields are read once and moved into their places. A block that does
//! not have the form of its kind is kept as it is.

use std::borrow::Cow;
use std::fmt;

use serde::de::value::SeqAccessDeserializer;
use serde::de::{self, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::image_url::ImageUrl;
use super::message::{
    AssistantBlock, ContentBlock, Extra, Image, SystemContent, Text, Thinking, ToolCall, UserContent,
};

impl<'de> Deserialize<'de> for ContentBlock {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = match deserializer.deserialize_any(StoredVisitor)? {
            Stored::Object(fields) => fields,
            Stored::Other(value) => return Ok(Self::Unknown(value)),
        };
        Ok(match fields.kind() {
            Some("text") if fields.fit(TEXT) => {
                ImageUrl::of_text(fields.into_text()).map_or_else(Self::Text, Self::ImageUrl)
            }
            Some("image") if fields.fit(IMAGE) => Self::Image(fields.into_image()),
            _ => Self::Unknown(fields.into_value()),
        })
    }
}

impl<'de> Deserialize<'de> for AssistantBlock {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = match deserializer.deserialize_any(StoredVisitor)? {
            Stored::Object(fields) => fields,
            Stored::Other(value) => return Ok(Self::Unknown(value)),
        };
        Ok(match fields.kind() {
            Some("text") if fields.fit(TEXT) => Self::Text(fields.into_text()),
            Some("thinking") if fields.fit(THINKING) => Self::Thinking(fields.into_thinking()),
            Some("toolCall") if fields.fit(TOOL_CALL) => Self::ToolCall(fields.into_tool_call()),
            _ => Self::Unknown(fields.into_value()),
        })
    }
}

impl<'de> Deserialize<'de> for UserContent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match deserializer.deserialize_any(ContentVisitor)? {
            TextOrBlocks::Text(text) => Self::Text(text),
            TextOrBlocks::Blocks(blocks) => Self::Blocks(blocks),
        })
    }
}

impl<'de> Deserialize<'de> for SystemContent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match deserializer.deserialize_any(ContentVisitor)? {
            TextOrBlocks::Text(text) => Self::Text(text),
            TextOrBlocks::Blocks(blocks) => Self::Blocks(blocks),
        })
    }
}

/// What a field of a block must be. Fields that are not listed can be anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    RequiredText,
    /// If it is there.
    Text,
    /// Or `null`.
    OptionalText,
    Bool,
    Any,
}

const TEXT: &[(&str, Rule)] = &[("text", Rule::Text), ("textSignature", Rule::OptionalText)];
const IMAGE: &[(&str, Rule)] = &[("data", Rule::RequiredText), ("mimeType", Rule::RequiredText)];
const THINKING: &[(&str, Rule)] =
    &[("thinking", Rule::Text), ("thinkingSignature", Rule::OptionalText), ("redacted", Rule::Bool)];
const TOOL_CALL: &[(&str, Rule)] = &[
    ("id", Rule::RequiredText),
    ("name", Rule::RequiredText),
    ("arguments", Rule::Any),
    ("thoughtSignature", Rule::OptionalText),
    ("argumentsError", Rule::OptionalText),
];

impl Rule {
    fn fits(self, value: &Value) -> bool {
        match self {
            Self::RequiredText | Self::Text => value.is_string(),
            Self::OptionalText => value.is_string() || value.is_null(),
            Self::Bool => value.is_boolean(),
            Self::Any => true,
        }
    }
}

/// A block as it is stored.
enum Stored<'de> {
    Object(Fields<'de>),
    Other(Value),
}

/// Names and values, in their order.
struct Fields<'de>(Vec<(Cow<'de, str>, Value)>);

impl Fields<'_> {
    fn kind(&self) -> Option<&str> {
        self.0.iter().find(|(name, _)| name == "type")?.1.as_str()
    }

    /// Whether the fields follow `rules`, and those with a meaning occur once.
    fn fit(&self, rules: &[(&str, Rule)]) -> bool {
        let n_kinds = self.0.iter().filter(|(name, _)| name == "type").count();
        n_kinds == 1
            && rules.iter().all(|(name, rule)| {
                let mut values = self.0.iter().filter(|(other, _)| other == name).map(|(_, value)| value);
                match values.next() {
                    Some(value) => rule.fits(value) && values.next().is_none(),
                    None => *rule != Rule::RequiredText,
                }
            })
    }

    fn into_text(self) -> Text {
        let mut text = Text::default();
        for (name, value) in self.0 {
            match (&*name, value) {
                ("text", value) => text.text = string(value),
                ("textSignature", value) => text.text_signature = optional_string(value),
                (_, value) => keep(&mut text.extra, name, value),
            }
        }
        text
    }

    fn into_image(self) -> Image {
        let mut image = Image { data: String::new(), mime_type: String::new(), extra: Extra::new() };
        for (name, value) in self.0 {
            match (&*name, value) {
                ("data", value) => image.data = string(value),
                ("mimeType", value) => image.mime_type = string(value),
                (_, value) => keep(&mut image.extra, name, value),
            }
        }
        image
    }

    fn into_thinking(self) -> Thinking {
        let mut thinking = Thinking::default();
        for (name, value) in self.0 {
            match (&*name, value) {
                ("thinking", value) => thinking.thinking = string(value),
                ("thinkingSignature", value) => thinking.thinking_signature = optional_string(value),
                ("redacted", value) => thinking.redacted = value == Value::Bool(true),
                (_, value) => keep(&mut thinking.extra, name, value),
            }
        }
        thinking
    }

    fn into_tool_call(self) -> ToolCall {
        let mut call = ToolCall {
            id: String::new(),
            name: String::new(),
            arguments: Value::Null,
            thought_signature: None,
            arguments_error: None,
            extra: Extra::new(),
        };
        for (name, value) in self.0 {
            match (&*name, value) {
                ("id", value) => call.id = string(value),
                ("name", value) => call.name = string(value),
                ("arguments", value) => call.arguments = value,
                ("thoughtSignature", value) => call.thought_signature = optional_string(value),
                ("argumentsError", value) => call.arguments_error = optional_string(value),
                (_, value) => keep(&mut call.extra, name, value),
            }
        }
        call
    }

    fn into_value(self) -> Value {
        self.0.into_iter().map(|(name, value)| (name.into_owned(), value)).collect()
    }
}

/// Adds a field without a meaning; the kind is none, it is the type of the block.
fn keep(extra: &mut Extra, name: Cow<'_, str>, value: Value) {
    if name != "type" {
        extra.insert(name.into_owned(), value);
    }
}

fn string(value: Value) -> String {
    optional_string(value).unwrap_or_default()
}

fn optional_string(value: Value) -> Option<String> {
    if let Value::String(text) = value { Some(text) } else { None }
}

/// The name of a field, borrowed where the input allows that.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

struct StoredVisitor;

impl<'de> Visitor<'de> for StoredVisitor {
    type Value = Stored<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a block")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Stored<'de>, A::Error> {
        let mut fields = Vec::with_capacity(3);
        while let Some(Name(name)) = map.next_key()? {
            fields.push((name, map.next_value()?));
        }
        Ok(Stored::Object(Fields(fields)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Stored<'de>, A::Error> {
        Value::deserialize(SeqAccessDeserializer::new(seq)).map(Stored::Other)
    }

    fn visit_str<E>(self, text: &str) -> Result<Stored<'de>, E> {
        Ok(Stored::Other(text.into()))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Stored<'de>, E> {
        Ok(Stored::Other(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Stored<'de>, E> {
        Ok(Stored::Other(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Stored<'de>, E> {
        Ok(Stored::Other(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Stored<'de>, E> {
        Ok(Stored::Other(value.into()))
    }

    fn visit_unit<E>(self) -> Result<Stored<'de>, E> {
        Ok(Stored::Other(Value::Null))
    }
}

/// The content of a message in both of its forms.
enum TextOrBlocks {
    Text(String),
    Blocks(Vec<ContentBlock>),
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = TextOrBlocks;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a list of blocks")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<TextOrBlocks, E> {
        self.visit_string(text.to_owned())
    }

    fn visit_string<E>(self, text: String) -> Result<TextOrBlocks, E> {
        Ok(TextOrBlocks::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<TextOrBlocks, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(seq)).map(TextOrBlocks::Blocks)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// The same enums as serde would read them.
    mod derived {
        use super::*;

        #[derive(Deserialize)]
        #[serde(tag = "type", rename_all = "camelCase")]
        pub(super) enum Content {
            Text(Text),
            Image(Image),
            #[serde(untagged)]
            Unknown(Value),
        }

        #[derive(Deserialize)]
        #[serde(tag = "type", rename_all = "camelCase")]
        pub(super) enum Assistant {
            Text(Text),
            Thinking(Thinking),
            ToolCall(ToolCall),
            #[serde(untagged)]
            Unknown(Value),
        }
    }

    impl From<derived::Content> for ContentBlock {
        fn from(block: derived::Content) -> Self {
            match block {
                derived::Content::Text(text) => {
                    ImageUrl::of_text(text).map_or_else(Self::Text, Self::ImageUrl)
                }
                derived::Content::Image(image) => Self::Image(image),
                derived::Content::Unknown(value) => Self::Unknown(value),
            }
        }
    }

    impl From<derived::Assistant> for AssistantBlock {
        fn from(block: derived::Assistant) -> Self {
            match block {
                derived::Assistant::Text(text) => Self::Text(text),
                derived::Assistant::Thinking(thinking) => Self::Thinking(thinking),
                derived::Assistant::ToolCall(call) => Self::ToolCall(call),
                derived::Assistant::Unknown(value) => Self::Unknown(value),
            }
        }
    }

    /// Reads a block both ways, from text and from a value.
    #[track_caller]
    fn check(block: &str) {
        let expected = serde_json::from_str::<derived::Content>(block).ok().map(ContentBlock::from);
        assert_eq!(serde_json::from_str(block).ok(), expected, "{block}");
        let expected = serde_json::from_str::<derived::Assistant>(block).ok().map(AssistantBlock::from);
        assert_eq!(serde_json::from_str(block).ok(), expected, "{block}");
        let Ok(value) = serde_json::from_str::<Value>(block) else { return };
        let expected = serde_json::from_value::<derived::Assistant>(value.clone()).ok();
        assert_eq!(serde_json::from_value(value).ok(), expected.map(AssistantBlock::from), "{block}");
    }

    #[test]
    fn blocks_are_read_as_serde_would_read_them() {
        for block in [
            r#"{"type":"text"}"#,
            r#"{"text":"a\nb","type":"text","textSignature":null,"novel":{"z":1,"a":null}}"#,
            r#"{"type":"text","text":null}"#,
            r#"{"type":"text","text":"a","textSignature":3}"#,
            r#"{"type":"text","text":"a","text":"b"}"#,
            r#"{"type":"text","type":"text","text":"b"}"#,
            r#"{"type":"text","text":"[image: https://x/y]","imageUrl":"https://x/y"}"#,
            r#"{"type":"image","data":"AA"}"#,
            r#"{"type":"toolCall","id":"a","name":"b"}"#,
            r#"{"type":"thinking","redacted":1}"#,
            r#"{"type":7}"#,
            r#"{"kind":"text"}"#,
            r#""plain""#,
            "[1, -2, 0.5, true, null]",
            "null",
            r#"{"type":"text","text":"#,
            r#"{"type":"text","text":"\ud83d"}"#,
        ] {
            check(block);
        }
    }

    #[test]
    fn content_is_text_or_blocks() {
        let read = |content: Value| serde_json::from_value::<UserContent>(content).ok();
        assert_eq!(read(json!("a")), Some(UserContent::Text("a".to_owned())));
        assert_eq!(
            read(json!([{"type": "text", "text": "a"}])),
            Some(UserContent::Blocks(vec![ContentBlock::text("a")]))
        );
        assert_eq!(read(json!([3])), Some(UserContent::Blocks(vec![ContentBlock::Unknown(json!(3))])));
        for other in [json!(null), json!(1), json!({})] {
            assert_eq!(read(other), None);
        }
    }

    fn any_value() -> impl Strategy<Value = Value> {
        prop_oneof![
            3 => "[a-c\n\"é]{0,3}".prop_map(Value::from),
            1 => prop_oneof![Just(Value::Null), any::<bool>().prop_map(Value::from), any::<i64>().prop_map(Value::from)],
            1 => Just(json!({"path": "a", "b": [1]})),
        ]
    }

    proptest! {
        #[test]
        fn any_fields_are_read_as_serde_would_read_them(
            kind in prop::sample::select(vec!["text", "image", "thinking", "toolCall", "novel"]),
            at in 0..5_usize,
            fields in prop::collection::vec((prop::sample::select(vec![
                "text", "textSignature", "data", "mimeType", "thinking", "thinkingSignature", "redacted", "id",
                "name", "arguments", "thoughtSignature", "argumentsError", "imageUrl", "novel",
            ]), any_value()), 0..6),
        ) {
            let mut parts: Vec<String> = fields.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
            parts.insert(at.min(parts.len()), format!("\"type\":\"{kind}\""));
            check(&format!("{{{}}}", parts.join(",")));
        }
    }
}
