//! The body of a request: its JSON and its tool schemas.

use std::borrow::Cow;
use std::io;

use serde::Serialize;
use serde_json::{Map, Value};

use super::EncodeError;
use crate::ai::models::Dialect;
use crate::ai::requests::{Prompt, Request, StrictTools};
use crate::util::json_length::json_length;

/// Where the body of a request is written.
pub(in crate::ai) enum BodyTo<'a> {
    Memory(&'a mut Vec<u8>),
    /// In many small writes.
    Writer(&'a mut dyn io::Write),
    /// Nowhere; the number of its bytes is stored.
    Length(&'a mut u64),
}

impl BodyTo<'_> {
    fn write(self, body: &impl Serialize, n_bytes: usize) -> Result<(), serde_json::Error> {
        match self {
            Self::Memory(bytes) => {
                // A long conversation would otherwise be copied each time the buffer doubles.
                bytes.reserve_exact(n_bytes);
                serde_json::to_writer(bytes, body)
            }
            Self::Writer(out) => serde_json::to_writer(out, body),
            Self::Length(length) => {
                *length = json_length(body)?;
                Ok(())
            }
        }
    }
}

/// Serializes `body`, whose length is about `n_bytes`. The fields of `extra` replace its
/// own; objects are merged member by member.
pub(super) fn write_body(
    body: &impl Serialize,
    extra: &Map<String, Value>,
    n_bytes: usize,
    to: BodyTo<'_>,
) -> Result<(), EncodeError> {
    if extra.is_empty() {
        return Ok(to.write(body, n_bytes)?);
    }
    let mut bytes = Vec::new();
    BodyTo::Memory(&mut bytes).write(body, n_bytes)?;
    let mut merged: Map<String, Value> = serde_json::from_slice(&bytes)?;
    drop(bytes);
    merge(&mut merged, extra);
    Ok(to.write(&merged, n_bytes)?)
}

pub(super) fn merge(base: &mut Map<String, Value>, over: &Map<String, Value>) {
    for (key, value) in over {
        match (base.get_mut(key), value) {
            (Some(Value::Object(old)), Value::Object(new)) => merge(old, new),
            _ => drop(base.insert(key.clone(), value.clone())),
        }
    }
}

/// The schema of a tool's arguments with the root that Anthropic and OpenAI require:
/// an object with properties and without alternatives.
pub(in crate::ai) fn object_schema(schema: &Value) -> Cow<'_, Value> {
    const ALTERNATIVES: [&str; 3] = ["anyOf", "oneOf", "allOf"];
    let is_fine = schema.get("type").and_then(Value::as_str) == Some("object")
        && schema.get("properties").is_some_and(Value::is_object)
        && !ALTERNATIVES.iter().any(|key| schema.get(key).is_some());
    if is_fine {
        return Cow::Borrowed(schema);
    }
    let mut root = schema.as_object().cloned().unwrap_or_default();
    for key in ALTERNATIVES {
        root.remove(key);
    }
    root.insert("type".to_owned(), Value::from("object"));
    if !root.get("properties").is_some_and(Value::is_object) {
        root.insert("properties".to_owned(), Value::Object(Map::new()));
    }
    Cow::Owned(Value::Object(root))
}

/// The schemas that the service should enforce.
///
/// Covers the tools of `prompt`, including later ones; none without a `dialect`,
/// because then the service enforces no schemas.
pub(super) fn strict_tools<'a>(
    request: &Request,
    prompt: &'a Prompt<'a>,
    dialect: Option<Dialect>,
) -> Result<StrictTools<'a>, EncodeError> {
    match dialect {
        Some(dialect) if !prompt.tools_are_history => {
            let only_required = request.options.without_strict_schemas;
            Ok(StrictTools::of(prompt.all_tools(), dialect, only_required)?)
        }
        _ => Ok(StrictTools::default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_have_an_object_with_properties_at_their_root() {
        use serde_json::json;

        let check = |schema: Value, expected: Value| assert_eq!(*object_schema(&schema), expected);
        let empty = json!({"type": "object", "properties": {}});
        for schema in
            [json!(null), json!({}), json!({"type": "object"}), json!({"oneOf": [], "properties": null})]
        {
            let mut sorted = object_schema(&schema).into_owned();
            sorted.sort_all_objects();
            assert_eq!(sorted, empty, "{schema}");
        }
        let fine = json!({"properties": {"x": {"anyOf": []}}, "type": "object", "required": ["x"]});
        check(fine.clone(), fine);
        let closed = json!({"type": "object", "properties": {}, "additionalProperties": false});
        check(json!({"properties": {}, "additionalProperties": false, "oneOf": []}), closed.clone());
        check(closed.clone(), closed);
    }
}
