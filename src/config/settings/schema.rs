//! The JSON schema of `settings.json`, from the table, for editors.

use serde_json::{Map, Value, json};

use super::layers;
use super::table::{Kind, LEVELS, ROWS, Row};

/// The schema, in JSON Schema draft 2020-12. Unknown keys are allowed, because pi keeps them.
pub fn schema() -> Value {
    let mut properties = Map::new();
    properties.insert("$schema".to_owned(), json!({ "type": "string" }));
    for row in ROWS {
        let path = row.key.replace('.', ".properties.");
        layers::set(&mut properties, &path, Some(&of_row(row)));
    }
    for section in ROWS.iter().filter_map(|row| row.key.rsplit_once('.')).map(|(section, _)| section) {
        for end in section.match_indices('.').map(|(end, _)| end).chain([section.len()]) {
            let path = section[..end].replace('.', ".properties.");
            layers::set(&mut properties, &format!("{path}.type"), Some(&"object".into()));
        }
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Settings of pi",
        "description": "~/.pi/agent/settings.json, or .pi/settings.json of a project",
        "type": "object",
        "properties": properties,
    })
}

fn of_row(row: &Row) -> Value {
    let mut schema = row.kind.schema();
    schema["description"] = row.help.into();
    let default = row.default_value();
    if !default.is_null() {
        schema["default"] = default;
    }
    schema
}

impl Kind {
    /// The schema of values of this kind.
    fn schema(self) -> Value {
        let by_model = |values: Value| json!({ "type": "object", "additionalProperties": values });
        let count = || json!({ "type": "integer", "minimum": 0 });
        match self {
            Self::Bool => json!({ "type": "boolean" }),
            Self::BoolOr(word) => json!({ "anyOf": [{ "type": "boolean" }, { "const": word }] }),
            Self::Number => count(),
            Self::Count { least, most } => json!({ "type": "integer", "minimum": least, "maximum": most }),
            Self::Any => json!({}),
            Self::Decimal { least, most } => json!({ "type": "number", "minimum": least, "maximum": most }),
            Self::CountOrAuto { least, most } => json!({
                "anyOf": [{ "const": "auto" }, { "type": "integer", "minimum": least, "maximum": most }],
            }),
            Self::Text => json!({ "type": "string" }),
            Self::Choice(choices) => json!({ "enum": choices }),
            Self::TextList => json!({ "type": "array", "items": { "type": "string" } }),
            Self::LevelByModel => by_model(json!({ "enum": LEVELS })),
            Self::SamplingByModel => by_model(json!({
                "type": "object",
                "properties": {
                    "temperature": { "type": "number", "minimum": 0, "maximum": 2 },
                    "topP": { "type": "number", "minimum": 0, "maximum": 1 },
                    "maxTokens": count(),
                    "stopSequences": { "type": "array", "items": { "type": "string" } },
                },
            })),
            Self::CompactionByModel => by_model(json!({
                "type": "object",
                "properties": { "reserveTokens": count(), "keepRecentTokens": count() },
            })),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_in_the_schema_with_help_and_default() {
        let schema = schema();
        for row in ROWS {
            let path = format!("/properties/{}", row.key.replace('.', "/properties/"));
            let found = schema.pointer(&path).unwrap_or_else(|| panic!("{} is missing", row.key));
            assert_eq!(found["description"], row.help, "{}", row.key);
            assert_eq!(found.get("default"), Some(row.default_value()).filter(|v| !v.is_null()).as_ref());
        }
        assert_eq!(schema["properties"]["retry"]["properties"]["provider"]["type"], "object");
        assert_eq!(schema["properties"]["theme"]["type"], "string");
    }

    #[test]
    fn schema_of_a_kind_names_its_bounds() {
        let check = |kind: Kind, expected: Value| assert_eq!(kind.schema(), expected);
        check(Kind::Choice(&["a", "b"]), json!({ "enum": ["a", "b"] }));
        check(
            Kind::Decimal { least: 0.0, most: 2.0 },
            json!({ "type": "number", "minimum": 0.0, "maximum": 2.0 }),
        );
        check(Kind::Number, json!({ "type": "integer", "minimum": 0 }));
        check(Kind::Count { least: 3, most: 20 }, json!({ "type": "integer", "minimum": 3, "maximum": 20 }));
        check(Kind::Any, json!({}));
    }
}
