//! How long a value is as JSON, without writing it.
//!
//! serde_json can write to a sink that counts, but then it looks at texts byte by byte, and
//! nearly all of a long request is text. Here a text's escapes are counted for many bytes at a
//! time; everything else is left to serde_json.

use serde::Serialize;
use serde::ser::{self, Serializer};
use serde_json::Error;

/// The number of bytes that [`serde_json::to_writer`] writes for `value`.
///
/// # Errors
/// As for [`serde_json::to_writer`]: for keys that are no texts, and those of `value` itself.
pub fn json_length(value: &(impl Serialize + ?Sized)) -> Result<u64, Error> {
    let mut length = Length(0);
    value.serialize(&mut length)?;
    Ok(length.0)
}

struct Length(u64);

impl std::io::Write for Length {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// How serde_json names the type and the field of a `RawValue`.
const RAW: &str = "$serde_json::private::RawValue";

impl Length {
    fn text(&mut self, text: &str) {
        self.0 += 2 + text.len() as u64 + n_escape_bytes(text);
    }

    fn as_written(&mut self, value: &(impl Serialize + ?Sized)) -> Result<(), Error> {
        serde_json::to_writer(self, value)
    }

    /// Adds `{"variant":` and `}`, which are around what follows.
    fn variant(&mut self, variant: &str) -> &mut Self {
        self.text(variant);
        self.0 += 3;
        self
    }

    /// Of a list or an object: its brackets and what is in it.
    fn members(&mut self) -> Members<'_> {
        self.0 += 2;
        Members { length: self, has_some: false, is_raw: false }
    }
}

/// How many bytes more than `text` has its JSON, without the quotes.
fn n_escape_bytes(text: &str) -> u64 {
    // Sums of a byte each do not overflow, and a compiler adds many of them at once.
    const AT_ONCE: usize = 32;
    let extra = |byte: u8| {
        let control = u8::from(byte < b' ') * 5;
        let short = u8::from(matches!(byte, 8 | b'\t' | b'\n' | 12 | b'\r')) * 4;
        control - short + u8::from(byte == b'"') + u8::from(byte == b'\\')
    };
    let sum = |bytes: &[u8]| u64::from(bytes.iter().map(|byte| extra(*byte)).sum::<u8>());
    let mut parts = text.as_bytes().chunks_exact(AT_ONCE);
    let whole: u64 = parts.by_ref().map(sum).sum();
    whole + sum(parts.remainder())
}

macro_rules! as_serde_json_does {
    ($($method:ident($type:ty))*) => {
        $(fn $method(self, value: $type) -> Result<(), Error> {
            serde_json::Serializer::new(self).$method(value)
        })*
    };
}

impl<'a> Serializer for &'a mut Length {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Members<'a>;
    type SerializeTuple = Members<'a>;
    type SerializeTupleStruct = Members<'a>;
    type SerializeTupleVariant = Members<'a>;
    type SerializeMap = Members<'a>;
    type SerializeStruct = Members<'a>;
    type SerializeStructVariant = Members<'a>;

    as_serde_json_does! {
        serialize_bool(bool)
        serialize_i8(i8) serialize_i16(i16) serialize_i32(i32) serialize_i64(i64) serialize_i128(i128)
        serialize_u8(u8) serialize_u16(u16) serialize_u32(u32) serialize_u64(u64) serialize_u128(u128)
        serialize_f32(f32) serialize_f64(f64)
        serialize_char(char) serialize_bytes(&[u8])
    }

    fn serialize_str(self, text: &str) -> Result<(), Error> {
        self.text(text);
        Ok(())
    }

    fn serialize_none(self) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Error> {
        self.as_written(&())
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(
        self,
        _name: &'static str,
        _at: u32,
        variant: &'static str,
    ) -> Result<(), Error> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _at: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        value.serialize(self.variant(variant))
    }

    fn serialize_seq(self, _len: Option<usize>) -> Result<Members<'a>, Error> {
        Ok(self.members())
    }

    fn serialize_tuple(self, _len: usize) -> Result<Members<'a>, Error> {
        Ok(self.members())
    }

    fn serialize_tuple_struct(self, _name: &'static str, _len: usize) -> Result<Members<'a>, Error> {
        Ok(self.members())
    }

    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        _at: u32,
        variant: &'static str,
        _len: usize,
    ) -> Result<Members<'a>, Error> {
        Ok(self.variant(variant).members())
    }

    fn serialize_map(self, _len: Option<usize>) -> Result<Members<'a>, Error> {
        Ok(self.members())
    }

    fn serialize_struct(self, name: &'static str, _len: usize) -> Result<Members<'a>, Error> {
        if name == RAW {
            return Ok(Members { length: self, has_some: false, is_raw: true });
        }
        Ok(self.members())
    }

    fn serialize_struct_variant(
        self,
        _name: &'static str,
        _at: u32,
        variant: &'static str,
        _len: usize,
    ) -> Result<Members<'a>, Error> {
        Ok(self.variant(variant).members())
    }
}

/// The items of a list or the members of an object.
struct Members<'a> {
    length: &'a mut Length,
    has_some: bool,
    is_raw: bool,
}

impl Members<'_> {
    fn comma(&mut self) {
        self.length.0 += u64::from(self.has_some);
        self.has_some = true;
    }

    fn item<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.comma();
        value.serialize(&mut *self.length)
    }

    fn field<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Result<(), Error> {
        if self.is_raw {
            // It stands in the JSON as it is, not as a text.
            let json = serde_json::to_value(value)?;
            self.length.0 += json.as_str().map_or(0, str::len) as u64;
            return Ok(());
        }
        self.comma();
        self.length.text(name);
        self.length.0 += 1;
        value.serialize(&mut *self.length)
    }
}

macro_rules! items {
    ($($trait:ident $method:ident)*) => {
        $(impl ser::$trait for Members<'_> {
            type Ok = ();
            type Error = Error;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
                self.item(value)
            }

            fn end(self) -> Result<(), Error> {
                Ok(())
            }
        })*
    };
}

items! {
    SerializeSeq serialize_element
    SerializeTuple serialize_element
    SerializeTupleStruct serialize_field
    SerializeTupleVariant serialize_field
}

macro_rules! fields {
    ($($trait:ident)*) => {
        $(impl ser::$trait for Members<'_> {
            type Ok = ();
            type Error = Error;

            fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Error> {
                self.field(name, value)
            }

            fn end(self) -> Result<(), Error> {
                Ok(())
            }
        })*
    };
}

fields! { SerializeStruct SerializeStructVariant }

impl ser::SerializeMap for Members<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        self.comma();
        // serde_json makes texts of numbers that are keys. It writes `{`, the key and `:null`.
        let mut with_null = Length(0);
        serde_json::Serializer::new(&mut with_null).serialize_map(None)?.serialize_entry(key, &())?;
        self.length.0 += with_null.0 - "{null".len() as u64;
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        value.serialize(&mut *self.length)
    }

    fn end(self) -> Result<(), Error> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde_json::value::{RawValue, to_raw_value};
    use serde_json::{Value, json};

    use super::*;

    fn assert_length(value: &impl Serialize) {
        let written = serde_json::to_string(value).unwrap();
        assert_eq!(json_length(value).unwrap(), written.len() as u64, "{written}");
    }

    #[derive(Serialize)]
    enum Kind {
        Unit,
        New(u8),
        Pair(u8, &'static str),
        Fields { a: Option<u8>, b: f32 },
    }

    #[derive(Serialize)]
    #[serde(tag = "type")]
    enum Tagged {
        One { text: &'static str },
    }

    #[derive(Serialize)]
    struct Every<'a> {
        kinds: Vec<Kind>,
        tagged: Tagged,
        raw: &'a RawValue,
        unit: (),
        none: Option<u8>,
        #[serde(skip_serializing_if = "Option::is_none")]
        left_out: Option<u8>,
        tuple: (char, i64, f64, bool),
        numbers: BTreeMap<u16, u64>,
        empty: [u8; 0],
        #[serde(flatten)]
        others: BTreeMap<&'static str, u8>,
    }

    #[test]
    fn every_kind_of_value_has_the_length_that_is_written() {
        let fields = Kind::Fields { a: None, b: 0.1 };
        assert_length(&Every {
            kinds: vec![Kind::Unit, Kind::New(7), Kind::Pair(1, "\n"), fields],
            tagged: Tagged::One { text: "\"" },
            raw: &to_raw_value(&json!({"a": [1, 2.5, "\u{1}"]})).unwrap(),
            unit: (),
            none: None,
            left_out: None,
            tuple: ('\t', i64::MIN, f64::NAN, true),
            numbers: [(1, u64::MAX), (20, 0)].into(),
            empty: [],
            others: [("x", 1), ("yy", 20)].into(),
        });
    }

    #[test]
    fn keys_that_are_no_texts_are_errors_as_when_written() {
        let map: BTreeMap<Vec<u8>, u8> = [(vec![1], 2)].into();
        assert!(serde_json::to_string(&map).is_err());
        assert!(json_length(&map).is_err());
    }

    #[test]
    fn every_character_is_as_long_as_written() {
        for c in ('\0'..='\u{ff}').chain(['\u{2028}', '\u{ffff}', '\u{10ffff}']) {
            assert_length(&String::from(c).repeat(70));
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 64, 8, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
                prop::collection::vec((any::<String>(), inner), 0..8)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_value_has_the_length_that_is_written(value in any_json()) {
            assert_length(&value);
        }
    }
}
