//! Tool schemas in the two forms the API accepts.
//!
//! `parametersJsonSchema` is JSON Schema, except that `const` is ignored.
//! `parameters` is a subset of OpenAPI: <https://ai.google.dev/api/caching#Schema>.
//! Both are derived from a tool's declaration; constructs without an equivalent are left out.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

/// Maximum depth of a converted schema.
const MAX_DEPTH: usize = 100;
/// Maximum number of converted schemas per tool, so that references cannot multiply without end.
const MAX_SCHEMAS: usize = 2_000;

/// Keywords whose value is a schema, a list of schemas, or schemas by name.
const ONE: &[&str] = &[
    "items",
    "additionalProperties",
    "not",
    "if",
    "then",
    "else",
    "contains",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
];
const LISTS: &[&str] = &["anyOf", "oneOf", "allOf", "prefixItems"];
const NAMED: &[&str] = &["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];

/// The schema with every `const` written as an `enum` of one value.
pub(in crate::ai) fn json_schema(schema: &Value) -> Cow<'_, Value> {
    if !schema.is_object() {
        return Cow::Owned(json!({"type": "object", "properties": {}}));
    }
    if !has_const(schema, 0) {
        return Cow::Borrowed(schema);
    }
    let mut copy = schema.clone();
    rewrite_const(&mut copy, 0);
    Cow::Owned(copy)
}

/// The schemas directly inside `schema`.
fn inner(schema: &Value) -> impl Iterator<Item = &Value> {
    let one = ONE.iter().filter_map(|key| schema.get(key));
    let lists = LISTS.iter().filter_map(|key| schema.get(key)?.as_array()).flatten();
    let named = NAMED.iter().filter_map(|key| schema.get(key)?.as_object()).flat_map(Map::values);
    one.chain(lists).chain(named)
}

fn has_const(schema: &Value, depth: usize) -> bool {
    depth < MAX_DEPTH
        && (schema.get("const").is_some() || inner(schema).any(|schema| has_const(schema, depth + 1)))
}

fn rewrite_const(schema: &mut Value, depth: usize) {
    let Value::Object(members) = schema else { return };
    if depth >= MAX_DEPTH {
        return;
    }
    if let Some(only) = members.remove("const") {
        members.insert("enum".to_owned(), json!([only]));
    }
    for (key, value) in members.iter_mut() {
        let key = key.as_str();
        match value {
            value if ONE.contains(&key) => rewrite_const(value, depth + 1),
            Value::Array(list) if LISTS.contains(&key) => {
                list.iter_mut().for_each(|schema| rewrite_const(schema, depth + 1));
            }
            Value::Object(named) if NAMED.contains(&key) => {
                named.values_mut().for_each(|schema| rewrite_const(schema, depth + 1));
            }
            _ => {}
        }
    }
}

/// The schema in the OpenAPI subset: types in upper case, references resolved.
/// A recursive schema is truncated at the recursion.
pub(super) fn open_api(schema: &Value) -> Value {
    let mut converted = Converter { root: schema, open: Vec::new(), left: MAX_SCHEMAS }.convert(schema);
    if converted.get("type").is_none() {
        converted.insert("type".to_owned(), json!("OBJECT"));
    }
    if converted.get("type") == Some(&json!("OBJECT")) {
        converted.entry("properties").or_insert_with(|| json!({}));
    }
    Value::Object(converted)
}

/// Keywords with the same meaning in both.
const KEPT: &[&str] = &[
    "title",
    "description",
    "default",
    "nullable",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "minLength",
    "maxLength",
    "pattern",
    "minimum",
    "maximum",
    "required",
];

/// Formats the API supports; it rejects others.
const FORMATS: &[&str] = &["enum", "date-time", "float", "double", "int32", "int64"];

struct Converter<'a> {
    /// The document that references point into.
    root: &'a Value,
    /// The references being followed.
    open: Vec<&'a str>,
    /// How many schemas may still be converted.
    left: usize,
}

impl<'a> Converter<'a> {
    fn convert(&mut self, schema: &'a Value) -> Map<String, Value> {
        let mut out = Map::new();
        let Some(members) = schema.as_object().filter(|_| self.left > 0) else { return out };
        self.left -= 1;
        if let Some(reference) = members.get("$ref").and_then(Value::as_str)
            && !self.open.contains(&reference)
            && let Some(target) = reference.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer))
        {
            self.open.push(reference);
            out = self.convert(target);
            self.open.pop();
        }
        // The subset has no conjunction; merging is correct for the output of generators.
        for part in members.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            merge(&mut out, self.convert(part));
        }
        for key in KEPT {
            if let Some(value) = members.get(*key) {
                out.insert((*key).to_owned(), value.clone());
            }
        }
        let format = members.get("format").and_then(Value::as_str);
        if let Some(format) = format.filter(|name| FORMATS.contains(name)) {
            out.insert("format".to_owned(), json!(format));
        }
        types(members, &mut out);
        values(members, &mut out);
        if let Some(properties) = members.get("properties").and_then(Value::as_object) {
            let mut converted = Map::new();
            for (name, schema) in properties {
                converted.insert(name.clone(), Value::Object(self.convert(schema)));
            }
            merge(&mut out, Map::from_iter([("properties".to_owned(), Value::Object(converted))]));
        }
        if let Some(items) = members.get("items") {
            out.insert("items".to_owned(), Value::Object(self.convert(items)));
        } else if out.get("type") == Some(&json!("ARRAY")) {
            // The API requires it; JSON Schema allows anything without it.
            out.entry("items").or_insert_with(|| json!({}));
        }
        self.alternatives(members, &mut out);
        out
    }

    /// `anyOf` and `oneOf`, which are equivalent here. A `null` among them becomes `nullable`.
    fn alternatives(&mut self, members: &'a Map<String, Value>, out: &mut Map<String, Value>) {
        let alternatives = ["anyOf", "oneOf"].iter().find_map(|key| members.get(*key)?.as_array());
        let Some(alternatives) = alternatives else { return };
        let is_null = |schema: &Value| schema.get("type").and_then(Value::as_str) == Some("null");
        let mut converted = Vec::new();
        for schema in alternatives {
            if is_null(schema) {
                out.insert("nullable".to_owned(), json!(true));
            } else {
                converted.push(self.convert(schema));
            }
        }
        match converted.len() {
            0 => {}
            1 => merge(out, converted.remove(0)),
            _ => {
                let converted = converted.into_iter().map(Value::Object).collect();
                out.insert("anyOf".to_owned(), Value::Array(converted));
            }
        }
    }
}

/// `type`, which may be a list in JSON Schema and is a single name here.
fn types(members: &Map<String, Value>, out: &mut Map<String, Value>) {
    let upper = |name: &str| json!(name.to_ascii_uppercase());
    match members.get("type") {
        Some(Value::String(name)) => drop(out.insert("type".to_owned(), upper(name))),
        Some(Value::Array(names)) => {
            let mut names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
            let all = names.len();
            names.retain(|name| *name != "null");
            if names.len() < all {
                out.insert("nullable".to_owned(), json!(true));
            }
            match names.as_slice() {
                [] => {}
                [name] => drop(out.insert("type".to_owned(), upper(name))),
                names => {
                    let one_of = names.iter().map(|name| json!({"type": upper(name)})).collect();
                    out.insert("anyOf".to_owned(), Value::Array(one_of));
                }
            }
        }
        _ => {}
    }
}

/// `enum` and `const`; the subset supports them only for strings.
fn values(members: &Map<String, Value>, out: &mut Map<String, Value>) {
    let values = match (members.get("const"), members.get("enum")) {
        (Some(only), _) => vec![only.clone()],
        (None, Some(Value::Array(values))) => values.clone(),
        (None, _) => return,
    };
    let texts: Vec<Value> = values.iter().filter(|value| value.is_string()).cloned().collect();
    let nulls = values.iter().filter(|value| value.is_null()).count();
    if texts.is_empty() || texts.len() + nulls < values.len() {
        return;
    }
    if nulls > 0 {
        out.insert("nullable".to_owned(), json!(true));
    }
    out.entry("type").or_insert_with(|| json!("STRING"));
    out.insert("enum".to_owned(), Value::Array(texts));
}

/// Adds members missing from `out`; properties and required names are united.
fn merge(out: &mut Map<String, Value>, other: Map<String, Value>) {
    for (key, value) in other {
        match (out.get_mut(&key), value) {
            (Some(Value::Object(known)), Value::Object(more)) if key == "properties" => known.extend(more),
            (Some(Value::Array(known)), Value::Array(more)) if key == "required" => {
                for name in more {
                    if !known.contains(&name) {
                        known.push(name);
                    }
                }
            }
            (Some(_), _) => {}
            (None, value) => drop(out.insert(key, value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn const_becomes_an_enum_where_it_is_a_keyword() {
        let schema = json!({"type": "object", "properties": {
            "const": {"const": 1},
            "list": {"type": "array", "items": {"anyOf": [{"const": "a"}, {"type": "null"}]}},
            "plain": {"enum": ["const"], "default": {"const": 1}},
        }});
        let expected = json!({"type": "object", "properties": {
            "const": {"enum": [1]},
            "list": {"type": "array", "items": {"anyOf": [{"enum": ["a"]}, {"type": "null"}]}},
            "plain": {"enum": ["const"], "default": {"const": 1}},
        }});
        assert_eq!(*json_schema(&schema), expected);
        assert!(matches!(json_schema(&expected), Cow::Borrowed(_)));
        assert_eq!(*json_schema(&Value::Null), json!({"type": "object", "properties": {}}));
    }

    #[track_caller]
    fn check(schema: Value, expected: Value) {
        let object = json!({"type": "object", "properties": {"x": schema}, "$defs": {
            "id": {"type": "string", "description": "an id"},
            "tree": {"type": "object", "properties": {"left": {"$ref": "#/$defs/tree"}}},
        }});
        assert_eq!(open_api(&object)["properties"]["x"], expected);
    }

    #[test]
    fn the_subset_holds_what_it_can_say() {
        check(
            json!({"type": "string", "format": "uri", "$comment": "c", "minLength": 1}),
            json!({"minLength": 1, "type": "STRING"}),
        );
        check(json!({"type": ["string", "null"]}), json!({"nullable": true, "type": "STRING"}));
        check(
            json!({"type": ["string", "number"]}),
            json!({"anyOf": [{"type": "STRING"}, {"type": "NUMBER"}]}),
        );
        check(json!({"const": "a"}), json!({"type": "STRING", "enum": ["a"]}));
        check(json!({"type": "integer", "enum": [1, 2]}), json!({"type": "INTEGER"}));
        check(
            json!({"anyOf": [{"type": "integer"}, {"type": "null"}], "description": "n"}),
            json!({"description": "n", "nullable": true, "type": "INTEGER"}),
        );
        check(
            json!({"oneOf": [{"type": "integer"}, {"$ref": "#/$defs/id"}]}),
            json!({"anyOf": [{"type": "INTEGER"}, {"description": "an id", "type": "STRING"}]}),
        );
        check(json!({"type": "array"}), json!({"type": "ARRAY", "items": {}}));
        check(
            json!({"allOf": [
                {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
                {"properties": {"b": {"type": "string"}}, "required": ["a", "b"], "additionalProperties": false},
            ]}),
            json!({"required": ["a", "b"], "type": "OBJECT",
                "properties": {"a": {"type": "STRING"}, "b": {"type": "STRING"}}}),
        );
        check(json!({"$ref": "https://elsewhere"}), json!({}));
        check(json!(true), json!({}));
    }

    #[test]
    fn a_schema_that_contains_itself_ends_somewhere() {
        let tree = json!({"$ref": "#/$defs/tree", "$defs": {
            "tree": {"type": "object", "properties": {"left": {"$ref": "#/$defs/tree"}}}}});
        let expected = json!({"type": "OBJECT", "properties": {"left": {}}});
        assert_eq!(open_api(&tree), expected);
        // Each of many refers to all of them.
        let all: Map<String, Value> =
            (0..12).map(|at| (format!("p{at}"), json!({"$ref": format!("#/$defs/d{at}")}))).collect();
        let defs: Map<String, Value> =
            (0..12).map(|at| (format!("d{at}"), json!({"type": "object", "properties": all}))).collect();
        let wide = open_api(&json!({"type": "object", "properties": all, "$defs": defs}));
        assert!(wide.to_string().len() < 1_000_000);
    }
}
