//! Lenient parsing of server output: repaired JSON, numbers and strings of
//! any type, optional fields with unexpected types.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;

use super::DecodeError;
use super::halves::{mark, without_signs};
use crate::ai::failure::{ErrorBody, clip};
use crate::ai::messages::{partial_json, replace_lone_surrogates};

/// Parses a frame and passes it to `read`, after repairing invalid JSON: some servers
/// write raw control characters, invalid escapes and
/// lone surrogates.
pub(super) fn with_json<'a, T, R>(
    data: &'a str,
    repaired: &'a mut String,
    read: impl FnOnce(T) -> Result<R, DecodeError>,
) -> Result<R, DecodeError>
where
    T: Deserialize<'a>,
{
    let error = match mark(data) {
        Cow::Borrowed(_) => match serde_json::from_str(data) {
            Ok(parsed) => return read(parsed),
            Err(error) => {
                *repaired = partial_json::repair(data).into_owned();
                Some(error)
            }
        },
        // Lone surrogates in a part that is parsed later cause no error earlier.
        Cow::Owned(whole) => {
            *repaired = partial_json::repair(&whole).into_owned();
            None
        }
    };
    read(serde_json::from_str(repaired).map_err(|again| error.unwrap_or(again))?)
}

/// The error text in a frame with this data; `None` if it does not
/// look like an error.
pub(super) fn reported_error(data: &str) -> Option<DecodeError> {
    let whole = replace_lone_surrogates(data);
    let value = serde_json::from_str::<Value>(&partial_json::repair(&whole)).ok()?;
    let body = ErrorBody::from_json(&value)?;
    Some(body.into_error(None).into())
}

/// The same for data the API has marked as an error.
pub(super) fn error_of(data: &str) -> DecodeError {
    reported_error(data).unwrap_or_else(|| DecodeError::failed(clip(data)))
}

/// A string of a frame, borrowed if it has no escapes.
///
/// A separate type, because `Option<Cow<str>>` always copies. Text that later frames continue is
/// a [`TextPiece`](super::TextPiece).
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Str<'a>(pub(super) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Str<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Str<'de>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a string")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Str(without_signs(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Str(Cow::Owned(without_signs(text).into_owned())))
            }
        }
        deserializer.deserialize_str(Visitor)
    }
}

impl Str<'_> {
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// The text of an optional string, unless it is empty.
pub(super) fn filled<'s>(text: Option<&'s Str<'_>>) -> Option<&'s str> {
    text.map(Str::as_str).filter(|text| !text.is_empty())
}

/// A count, of any JSON number type.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Count(pub(super) u64);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Count;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a number")
            }
            fn visit_u64<E>(self, count: u64) -> Result<Count, E> {
                Ok(Count(count))
            }
            fn visit_i64<E>(self, count: i64) -> Result<Count, E> {
                Ok(Count(u64::try_from(count).unwrap_or(0)))
            }
            fn visit_f64<E>(self, count: f64) -> Result<Count, E> {
                Ok(Count(count.max(0.0) as u64))
            }
            fn visit_str<E>(self, count: &str) -> Result<Count, E> {
                Ok(Count(count.trim().parse().unwrap_or(0)))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// Reads an optional field: a value of an unexpected type counts as absent, because
/// it is no reason to discard an answer.
pub(super) fn lenient<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de>,
{
    let raw = Option::<&'de serde_json::value::RawValue>::deserialize(deserializer)?;
    Ok(raw.and_then(|raw| serde_json::from_str(raw.get()).ok()))
}

/// The same for a string, without parsing twice: some strings are in every frame.
pub(super) fn lenient_str<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Str<'de>>, D::Error> {
    use serde::de::{IgnoredAny, MapAccess, SeqAccess};

    struct Visitor;
    impl<'de> serde::de::Visitor<'de> for Visitor {
        type Value = Option<Str<'de>>;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("anything")
        }
        fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
            Ok(Some(Str(without_signs(text))))
        }
        fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
            Ok(Some(Str(Cow::Owned(without_signs(text).into_owned()))))
        }
        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(None)
        }
        fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
            Ok(None)
        }
        fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
            Ok(None)
        }
        fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
            Ok(None)
        }
        fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
            Ok(None)
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
            while items.next_element::<IgnoredAny>()?.is_some() {}
            Ok(None)
        }
        fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
            while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            Ok(None)
        }
    }
    deserializer.deserialize_any(Visitor)
}
