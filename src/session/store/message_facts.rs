//! Reads of a stored message what the tree needs to know, and copies none of its texts.

use std::borrow::Cow;
use std::fmt;

use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::ai::Usage;

/// A message without its content.
#[derive(Debug, Default)]
pub(super) struct MessageFacts<'a> {
    pub(super) role: Cow<'a, str>,
    pub(super) usage: Option<Usage>,
    pub(super) provider: Cow<'a, str>,
    /// Of answers only: there is something to read in it.
    has_text: bool,
    has_failed: bool,
    /// Calls of tools in it.
    pub(super) n_calls: usize,
}

impl MessageFacts<'_> {
    /// Whether it is an answer that has nothing to read: it only calls tools.
    pub(super) fn is_silent(&self) -> bool {
        self.role == "assistant" && !self.has_text && !self.has_failed
    }
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "camelCase")]
enum Field {
    Role,
    Provider,
    Usage,
    Content,
    StopReason,
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for MessageFacts<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FactsVisitor)
    }
}

struct FactsVisitor;

impl<'de> Visitor<'de> for FactsVisitor {
    type Value = MessageFacts<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut facts = MessageFacts::default();
        while let Some(field) = map.next_key()? {
            match field {
                Field::Role => facts.role = map.next_value::<Name<'de>>()?.0,
                Field::Provider => {
                    let provider: Option<Name<'de>> = map.next_value()?;
                    facts.provider = provider.map(|Name(provider)| provider).unwrap_or_default();
                }
                Field::Usage => facts.usage = map.next_value()?,
                // Tool results can be large, and nothing depends on what they say.
                Field::Content if facts.role == "assistant" => {
                    let content: Content = map.next_value()?;
                    (facts.has_text, facts.n_calls) = (content.has_text, content.n_calls);
                }
                Field::StopReason => {
                    let reason: Option<Name<'de>> = map.next_value()?;
                    facts.has_failed =
                        reason.is_some_and(|Name(reason)| reason == "error" || reason == "aborted");
                }
                Field::Content | Field::Other => {
                    let IgnoredAny = map.next_value()?;
                }
            }
        }
        Ok(facts)
    }
}

/// What there is in content, in a block of it, or in a field of that.
#[derive(Default)]
struct Content {
    /// Something to read: a text that is not blank, or a block with one.
    has_text: bool,
    /// The word that marks a block as a call.
    is_call: bool,
    n_calls: usize,
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("content")
    }

    fn visit_str<E>(self, text: &str) -> Result<Content, E> {
        Ok(Content { has_text: !text.trim().is_empty(), is_call: text == "toolCall", n_calls: 0 })
    }

    fn visit_unit<E>(self) -> Result<Content, E> {
        Ok(Content::default())
    }

    fn visit_bool<E>(self, _: bool) -> Result<Content, E> {
        Ok(Content::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<Content, E> {
        Ok(Content::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<Content, E> {
        Ok(Content::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<Content, E> {
        Ok(Content::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut blocks: A) -> Result<Content, A::Error> {
        let mut content = Content::default();
        while let Some(Content { has_text, n_calls, .. }) = blocks.next_element()? {
            content.has_text |= has_text;
            content.n_calls += n_calls;
        }
        Ok(content)
    }

    /// A block: of those that are stored only texts have a field `text`.
    fn visit_map<A: MapAccess<'de>>(self, mut block: A) -> Result<Content, A::Error> {
        let mut content = Content::default();
        while let Some(Name(key)) = block.next_key()? {
            match key.as_ref() {
                "text" => content.has_text |= block.next_value::<Content>()?.has_text,
                "type" => content.n_calls += usize::from(block.next_value::<Content>()?.is_call),
                _ => {
                    let IgnoredAny = block.next_value()?;
                }
            }
        }
        Ok(content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(message: &str, expected: bool) {
        let facts: MessageFacts<'_> =
            serde_json::from_str(message).unwrap_or_else(|error| panic!("{message}: {error}"));
        assert_eq!(facts.is_silent(), expected, "{message}");
    }

    #[test]
    fn an_answer_without_text_is_silent_unless_it_failed_and_its_calls_are_counted() {
        check(
            r#"{"role":"assistant","content":[{"type":"toolCall","id":"a","name":"x","arguments":{"text":"t"}}]}"#,
            true,
        );
        check(r#"{"role":"assistant","content":[{"type":"text","text":" \n"}]}"#, true);
        check(
            r#"{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"a\"b"}]}"#,
            false,
        );
        check(r#"{"role":"assistant","content":"plain"}"#, false);
        check(r#"{"role":"assistant","content":[],"stopReason":"aborted"}"#, false);
        check(r#"{"role":"user","content":[]}"#, false);
        for (content, n_calls) in [
            (r#"[{"type":"toolCall"},{"type":"text","text":"toolCall"},{"name":"x","type":"toolCall"}]"#, 2),
            (r#""toolCall""#, 0),
            (r#"[{"type":3},{"type":["toolCall"]},{"type":"thinking","thinking":"toolCall"}]"#, 0),
        ] {
            let message = format!(r#"{{"role":"assistant","content":{content}}}"#);
            assert_eq!(
                serde_json::from_str::<MessageFacts<'_>>(&message).unwrap().n_calls,
                n_calls,
                "{content}"
            );
        }
        for odd in ["null", "3", "-1", "0.5", "true", "[[1,null]]", "{}", r#"[{"text":{"a":1}}]"#] {
            check(&format!(r#"{{"role":"assistant","content":{odd},"stopReason":null}}"#), true);
        }
    }
}
