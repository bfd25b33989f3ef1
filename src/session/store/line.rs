//! Reads the fields around the content of a line, once.
//!
//! Lines can be megabytes, and their first fields tell how the rest is read. [`Head::read`]
//! stops after them, and [`MessageLine`] reads the message without an intermediate form.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{self, DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::ai::Extra;

/// The fields that determine how the rest of a line is parsed.
#[derive(Debug, Default)]
pub(super) struct Head<'a> {
    pub(super) kind: Cow<'a, str>,
    pub(super) id: Cow<'a, str>,
    pub(super) parent_id: Option<Cow<'a, str>>,
    pub(super) timestamp: Option<Cow<'a, str>>,
    /// The role of its message.
    pub(super) role: Option<Cow<'a, str>>,
    seen: Seen,
}

/// Which fields were read.
#[derive(Debug, Default, Clone, Copy)]
struct Seen {
    kind: bool,
    id: bool,
    parent_id: bool,
    timestamp: bool,
}

impl<'a> Head<'a> {
    /// Reads as much of `line` as is needed; the rest may not even be JSON.
    pub(super) fn read(line: &'a str) -> Result<Self, serde_json::Error> {
        let mut head = Self::default();
        let mut deserializer = serde_json::Deserializer::from_str(line);
        let read = FillHead(&mut head).deserialize(&mut deserializer);
        // Its visitor can only stop with an error.
        if head.is_complete() {
            return Ok(head);
        }
        read?;
        if head.seen.kind && head.seen.id {
            return Ok(head);
        }
        Err(de::Error::custom("an entry has a type and an id"))
    }

    /// Whether nothing that follows matters.
    fn is_complete(&self) -> bool {
        let Seen { kind, id, parent_id, timestamp } = self.seen;
        kind && id && parent_id && timestamp && (self.kind != "message" || self.role.is_some())
    }
}

/// Ends reading early.
fn enough<E: de::Error>() -> E {
    E::custom("enough was read")
}

/// A text, borrowed where the input allows that.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

struct FillHead<'h, 'a>(&'h mut Head<'a>);

impl<'de> DeserializeSeed<'de> for FillHead<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for FillHead<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an entry")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let head = self.0;
        let text = |text: Option<Text<'de>>| text.map(|Text(text)| text);
        while let Some(Text(name)) = map.next_key()? {
            match &*name {
                "type" => {
                    head.kind = map.next_value::<Text<'de>>()?.0;
                    head.seen.kind = true;
                }
                "id" => {
                    head.id = map.next_value::<Text<'de>>()?.0;
                    head.seen.id = true;
                }
                "parentId" => {
                    head.parent_id = text(map.next_value()?);
                    head.seen.parent_id = true;
                }
                "timestamp" => {
                    head.timestamp = text(map.next_value()?);
                    head.seen.timestamp = true;
                }
                "message" => map.next_value_seed(FillRole(head))?,
                _ => {
                    let IgnoredAny = map.next_value()?;
                }
            }
            if head.is_complete() {
                return Err(enough());
            }
        }
        Ok(())
    }
}

/// Reads the role of a message.
struct FillRole<'h, 'a>(&'h mut Head<'a>);

impl<'de> DeserializeSeed<'de> for FillRole<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for FillRole<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let head = self.0;
        while let Some(Text(name)) = map.next_key()? {
            if name == "role" {
                head.role = Some(map.next_value::<Text<'de>>()?.0);
                if head.is_complete() {
                    return Err(enough());
                }
            } else {
                let IgnoredAny = map.next_value()?;
            }
        }
        // A message without a role is of none that is known.
        head.role.get_or_insert_default();
        Ok(())
    }
}

/// A line with a message of type `M`.
pub(super) struct MessageLine<M> {
    pub(super) message: M,
    /// Fields that not every entry has.
    pub(super) extra: Extra,
}

impl<'de, M: Deserialize<'de>> Deserialize<'de> for MessageLine<M> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(LineVisitor(PhantomData))
    }
}

struct LineVisitor<M>(PhantomData<M>);

impl<'de, M: Deserialize<'de>> Visitor<'de> for LineVisitor<M> {
    type Value = MessageLine<M>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an entry with a message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut message, mut extra) = (None, Extra::new());
        while let Some(Text(name)) = map.next_key()? {
            match &*name {
                "message" => message = Some(map.next_value()?),
                "type" | "id" | "parentId" | "timestamp" => {
                    let IgnoredAny = map.next_value()?;
                }
                _ => drop(extra.insert(name.into_owned(), map.next_value()?)),
            }
        }
        let message = message.ok_or_else(|| de::Error::missing_field("message"))?;
        Ok(MessageLine { message, extra })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn head_is_read_up_to_the_role() {
        let check = |line: &str, expected: &str| {
            let head = Head::read(line).unwrap_or_else(|error| panic!("{line}: {error}"));
            let Head { kind, id, parent_id, timestamp, role, .. } = head;
            assert_eq!(format!("{kind} {id} {parent_id:?} {timestamp:?} {role:?}"), expected, "{line}");
        };
        let start = r#"{"type":"message","id":"b","parentId":"a","timestamp":"T","message":"#;
        let expected = r#"message b Some("a") Some("T") Some("user")"#;
        check(&format!(r#"{start}{{"role":"user","content":"x"}}}}"#), expected);
        check(&format!(r#"{start}{{"content":[{{"role":"no"}}],"role":"user"}}}}"#), expected);
        check(&format!(r#"{start}{{"role":"user", and so on"#), expected);
        check(
            r#"{"message":{"role":"user"},"timestamp":"T","parentId":"a","id":"b","type":"message"}"#,
            expected,
        );
        check(&format!("{start}{{}}}}"), r#"message b Some("a") Some("T") Some("")"#);
        check(
            r#"{"type":"label","id":"b","parentId":null,"timestamp":"T","#,
            r#"label b None Some("T") None"#,
        );
        check(r#"{"type":"x","id":"b\n"}"#, "x b\n None None None");
        for line in [
            "",
            "[]",
            "{}",
            r#"{"type":"x"}"#,
            r#"{"id":"x"}"#,
            r#"{"type":"x","id":3}"#,
            r#"{"type":"x","id":"b""#,
        ] {
            assert!(Head::read(line).is_err(), "{line}");
        }
    }
}
