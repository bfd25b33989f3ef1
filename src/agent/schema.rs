//! Validates the arguments of a tool call against the tool's JSON Schema, and
//! corrects common mistakes of models.
//!
//! The part of JSON Schema (2020-12) that tool parameters use; a keyword that is
//! not known here restricts nothing. Invariant: what [`validate`] returns fits
//! the schema as far as it is understood.
//!
//! The crate `jsonschema` would not replace this. It only judges, and the larger part here
//! mends, branch by branch of the schema. It also refuses whole schemas that servers of
//! tools really send (`type: file`, `required: true`, `exclusiveMinimum: true`, `items` as a
//! list, a pattern it cannot read, a remote or dangling `$ref`), where a tool must stay
//! usable; and it adds up to 4 MB to the program (0.60: 4.5 MB with it and 0.4 MB without).

use std::cell::Cell;
use std::fmt;

use serde_json::{Map, Number, Value};

use crate::ai::parse_text;

/// Schemas nested deeper, or with infinite recursion, are not followed.
const MAX_DEPTH: usize = 64;

/// Maximum number of comparisons between values and schemas. Recursive alternatives
/// multiply; beyond this limit everything matches.
const MAX_STEPS: u32 = 100_000;

/// One problem with the arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Names and positions joined by dots, `edits.0.oldText`; `root` for the
    /// arguments as a whole.
    pub path: String,
    /// What is wrong, as the model reads it.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

/// Converts `arguments` to the types that `schema` requires.
///
/// Corrects numbers, booleans, lists and objects in strings, and scalars that should be strings;
/// a single value in place of a list; `null` for an optional property.
///
/// # Errors
/// Every remaining problem.
pub fn validate(schema: &Value, arguments: Value) -> Result<Value, Vec<Problem>> {
    let mut checked = arguments;
    let steps = Cell::new(0);
    let mut check = Check { root: schema, mend: true, problems: Vec::new(), steps: &steps };
    check.value(schema, &mut checked, &Path::Root, 0);
    if check.problems.is_empty() { Ok(checked) } else { Err(check.problems) }
}

/// The error that the model reads about invalid arguments.
pub fn describe(tool_name: &str, problems: &[Problem], raw_arguments: &Value) -> String {
    let bullets: Vec<String> = problems.iter().map(|problem| format!("  - {problem}")).collect();
    // `{:#}` is indented JSON.
    format!(
        "Validation failed for tool \"{tool_name}\":\n{}\n\nReceived arguments:\n{raw_arguments:#}",
        bullets.join("\n"),
    )
}

/// The path of a value, innermost step first.
enum Path<'a> {
    Root,
    Property(&'a Self, &'a str),
    Item(&'a Self, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => f.write_str("root"),
            Self::Property(Self::Root, name) => f.write_str(name),
            Self::Item(Self::Root, idx) => write!(f, "{idx}"),
            Self::Property(parent, name) => write!(f, "{parent}.{name}"),
            Self::Item(parent, idx) => write!(f, "{parent}.{idx}"),
        }
    }
}

struct Check<'a> {
    /// The document that `$ref` refers to.
    root: &'a Value,
    /// Whether values may be corrected.
    mend: bool,
    problems: Vec<Problem>,
    steps: &'a Cell<u32>,
}

impl<'a> Check<'a> {
    fn value(&mut self, schema: &'a Value, value: &mut Value, path: &Path<'_>, depth: usize) {
        let schema = match schema {
            Value::Bool(false) => return self.report(path, "is not allowed"),
            Value::Object(schema) => schema,
            _ => return,
        };
        if depth > MAX_DEPTH || self.steps.get() > MAX_STEPS {
            return;
        }
        self.steps.set(self.steps.get() + 1);
        if let Some(target) = schema.get("$ref").and_then(Value::as_str).and_then(|name| self.resolve(name)) {
            self.value(target, value, path, depth + 1);
        }
        if let Some(kinds) = kinds(schema) {
            let fits = |value: &Value| kinds.iter().any(|kind| is_kind(value, kind));
            if !fits(value) && self.mend {
                mend(value, &kinds);
            }
            if !fits(value) {
                return self.report(path, &format!("must be {}", kinds.join(" or ")));
            }
        }
        self.choices(schema, value, path);
        self.combined(schema, value, path, depth);
        match value {
            Value::Object(object) => self.object(schema, object, path, depth),
            Value::Array(items) => self.array(schema, items, path, depth),
            Value::String(text) => self.string(schema, text, path),
            Value::Number(number) => self.number(schema, number, path),
            Value::Null | Value::Bool(_) => {}
        }
    }

    /// `enum` and `const`.
    fn choices(&mut self, schema: &Map<String, Value>, value: &mut Value, path: &Path<'_>) {
        let constant = schema.get("const").map(std::slice::from_ref);
        let listed = schema.get("enum").and_then(Value::as_array).map(Vec::as_slice);
        for choices in [constant, listed].into_iter().flatten() {
            if choices.iter().any(|choice| equal(choice, value)) {
                continue;
            }
            let same_text = choices.iter().find(|choice| self.mend && text_of(choice) == text_of(value));
            if let Some(choice) = same_text {
                *value = choice.clone();
                continue;
            }
            let shown: Vec<String> = choices.iter().map(Value::to_string).collect();
            match shown.as_slice() {
                [only] => self.report(path, &format!("must be {only}")),
                several => self.report(path, &format!("must be one of {}", several.join(", "))),
            }
        }
    }

    /// `allOf`, `anyOf`, `oneOf`.
    fn combined(&mut self, schema: &'a Map<String, Value>, value: &mut Value, path: &Path<'_>, depth: usize) {
        let branches = |name: &str| schema.get(name).and_then(Value::as_array).map(Vec::as_slice);
        for branch in branches("allOf").unwrap_or_default() {
            self.value(branch, value, path, depth + 1);
        }
        for name in ["anyOf", "oneOf"] {
            let Some(branches) = branches(name) else { continue };
            let n_fitting = branches.iter().filter(|branch| self.fits(branch, value, depth)).count();
            if n_fitting > 1 && name == "oneOf" {
                self.report(path, "must fit exactly one of the allowed forms");
            }
            if n_fitting > 0 {
                continue;
            }
            let mut candidates = if self.mend { branches.iter() } else { [].iter() };
            match candidates.find_map(|branch| self.mended(branch, value, depth)) {
                Some(mended) => *value = mended,
                None => self.report(path, "must fit one of the allowed forms"),
            }
        }
    }

    fn object(
        &mut self,
        schema: &'a Map<String, Value>,
        object: &mut Map<String, Value>,
        path: &Path<'_>,
        depth: usize,
    ) {
        let required: Vec<&str> = schema
            .get("required")
            .and_then(Value::as_array)
            .map(|names| names.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, property) in properties.into_iter().flatten() {
            let is_empty = object.get(name).is_some_and(Value::is_null);
            let may_be_omitted = is_empty && self.mend && !required.contains(&name.as_str());
            if may_be_omitted && !self.fits(property, &Value::Null, depth) {
                object.shift_remove(name);
            }
            if let Some(value) = object.get_mut(name) {
                self.value(property, value, &Path::Property(path, name), depth + 1);
            }
        }
        for name in required {
            if !object.contains_key(name) {
                self.report(&Path::Property(path, name), "is required");
            }
        }
        let Some(additional) = schema.get("additionalProperties") else { return };
        for (name, value) in object.iter_mut() {
            if properties.is_none_or(|properties| !properties.contains_key(name)) {
                self.value(additional, value, &Path::Property(path, name), depth + 1);
            }
        }
    }

    fn array(&mut self, schema: &'a Map<String, Value>, items: &mut [Value], path: &Path<'_>, depth: usize) {
        self.at_least(schema, "minItems", items.len() as f64, "items", path);
        self.at_most(schema, "maxItems", items.len() as f64, "items", path);
        let tuple =
            schema.get("prefixItems").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let rest = schema.get("items");
        for (idx, item) in items.iter_mut().enumerate() {
            if let Some(schema) = tuple.get(idx).or(rest) {
                self.value(schema, item, &Path::Item(path, idx), depth + 1);
            }
        }
    }

    fn string(&mut self, schema: &Map<String, Value>, text: &str, path: &Path<'_>) {
        let n_chars = text.chars().count() as f64;
        self.at_least(schema, "minLength", n_chars, "characters", path);
        self.at_most(schema, "maxLength", n_chars, "characters", path);
    }

    fn number(&mut self, schema: &Map<String, Value>, number: &Number, path: &Path<'_>) {
        let Some(number) = number.as_f64() else { return };
        let bound = |name: &str| schema.get(name).and_then(Value::as_f64);
        if let Some(min) = bound("minimum").filter(|min| number < *min) {
            self.report(path, &format!("must be at least {min}"));
        }
        if let Some(max) = bound("maximum").filter(|max| number > *max) {
            self.report(path, &format!("must be at most {max}"));
        }
        if let Some(min) = bound("exclusiveMinimum").filter(|min| number <= *min) {
            self.report(path, &format!("must be greater than {min}"));
        }
        if let Some(max) = bound("exclusiveMaximum").filter(|max| number >= *max) {
            self.report(path, &format!("must be less than {max}"));
        }
    }

    fn at_least(&mut self, schema: &Map<String, Value>, name: &str, n: f64, unit: &str, path: &Path<'_>) {
        if let Some(min) = schema.get(name).and_then(Value::as_f64).filter(|min| n < *min) {
            self.report(path, &format!("must have at least {min} {unit}"));
        }
    }

    fn at_most(&mut self, schema: &Map<String, Value>, name: &str, n: f64, unit: &str, path: &Path<'_>) {
        if let Some(max) = schema.get(name).and_then(Value::as_f64).filter(|max| n > *max) {
            self.report(path, &format!("must have at most {max} {unit}"));
        }
    }

    /// Whether `value` matches without corrections.
    fn fits(&self, schema: &'a Value, value: &Value, depth: usize) -> bool {
        let mut check = Check { root: self.root, mend: false, problems: Vec::new(), steps: self.steps };
        check.value(schema, &mut value.clone(), &Path::Root, depth + 1);
        check.problems.is_empty()
    }

    /// `value` with corrections, if they make it match.
    fn mended(&self, schema: &'a Value, value: &Value, depth: usize) -> Option<Value> {
        let mut check = Check { root: self.root, mend: true, problems: Vec::new(), steps: self.steps };
        let mut mended = value.clone();
        check.value(schema, &mut mended, &Path::Root, depth + 1);
        check.problems.is_empty().then_some(mended)
    }

    /// The schema that a local `$ref` refers to: `#`, or `#/` and a JSON Pointer (RFC 6901).
    fn resolve(&self, reference: &str) -> Option<&'a Value> {
        self.root.pointer(reference.strip_prefix('#')?)
    }

    fn report(&mut self, path: &Path<'_>, message: &str) {
        self.problems.push(Problem { path: path.to_string(), message: message.to_owned() });
    }
}

/// The types a schema allows; `None` for any.
fn kinds(schema: &Map<String, Value>) -> Option<Vec<&str>> {
    match schema.get("type")? {
        Value::String(kind) => Some(vec![kind]),
        Value::Array(kinds) => Some(kinds.iter().filter_map(Value::as_str).collect()),
        _ => None,
    }
}

fn is_kind(value: &Value, kind: &str) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        // A type of a later standard.
        _ => true,
    }
}

/// Converts `value` to the first of `kinds` it can represent.
fn mend(value: &mut Value, kinds: &[&str]) {
    let mended = kinds.iter().find_map(|kind| match *kind {
        "number" => parse_number(value.as_str()?).map(Value::Number),
        "integer" => {
            let number = parse_number(value.as_str()?)?;
            number.as_f64().is_some_and(|number| number.fract() == 0.0).then_some(Value::Number(number))
        }
        "boolean" => match value.as_str()?.trim() {
            "true" => Some(Value::Bool(true)),
            "false" => Some(Value::Bool(false)),
            _ => None,
        },
        "string" => match value {
            Value::Number(_) | Value::Bool(_) => Some(Value::String(value.to_string())),
            Value::Null | Value::String(_) | Value::Array(_) | Value::Object(_) => None,
        },
        // An object in a string becomes one where the schema of the items asks for it.
        "array" => json_text(value)
            .filter(Value::is_array)
            .or_else(|| (!value.is_null()).then(|| Value::Array(vec![value.clone()]))),
        "object" => json_text(value).filter(Value::is_object),
        _ => None,
    });
    if let Some(mended) = mended {
        *value = mended;
    }
}

/// The object or list that a string contains as JSON.
fn json_text(value: &Value) -> Option<Value> {
    parse_text(value.as_str()?)
}

/// A finite decimal number; an integer if it is written as one.
fn parse_number(text: &str) -> Option<Number> {
    let text = text.trim();
    // Rust also parses "inf" and "nan", which are not numbers in JSON.
    if let Ok(whole) = text.parse::<i64>() {
        return Some(whole.into());
    }
    text.parse().ok().and_then(Number::from_f64)
}

/// JSON Schema compares numbers by value: 1 is 1.0.
fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left == right || left.as_f64() == right.as_f64(),
        _ => left == right,
    }
}

/// The text of a scalar without quotes; `None` for other values.
fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check_ok(schema: &Value, arguments: Value, expected: &Value) {
        assert_eq!(validate(schema, arguments).as_ref(), Ok(expected));
    }

    #[track_caller]
    fn check_problems(schema: &Value, arguments: Value, expected: &[&str]) {
        let problems = validate(schema, arguments).unwrap_err();
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(problems, expected);
    }

    /// An object schema with the one property `x`, not required.
    fn x(schema: Value) -> Value {
        json!({ "type": "object", "properties": { "x": schema } })
    }

    #[test]
    fn values_are_mended_to_the_type_that_is_asked_for() {
        let check = |kind: Value, value: Value, expected: Value| {
            check_ok(&x(json!({ "type": kind })), json!({ "x": value }), &json!({ "x": expected }));
        };
        check(json!("number"), json!("5"), json!(5));
        check(json!("number"), json!(" 0.5 "), json!(0.5));
        check(json!("integer"), json!("7"), json!(7));
        check(json!("integer"), json!(7.0), json!(7.0));
        check(json!("boolean"), json!("true"), json!(true));
        check(json!("string"), json!(5), json!("5"));
        check(json!("string"), json!(true), json!("true"));
        check(json!("array"), json!("a"), json!(["a"]));
        check(json!(["number", "null"]), json!("5"), json!(5));
        check(json!(["string", "number"]), json!(5), json!(5));
    }

    #[test]
    fn items_are_mended_inside_of_a_list_that_was_made() {
        let schema = x(json!({ "type": "array", "items": { "type": "string" } }));
        check_ok(&schema, json!({ "x": 5 }), &json!({ "x": ["5"] }));
    }

    #[test]
    fn lists_and_objects_in_strings_are_parsed() {
        let edit =
            json!({ "type": "object", "required": ["old"], "properties": { "old": { "type": "string" } } });
        let schema = x(json!({ "type": "array", "items": edit }));
        let expected = json!({ "x": [{ "old": "a\n\tb" }] });
        for value in [
            json!("[{\"old\":\"a\\n\\tb\"}]"),
            json!("[{\"old\":\"a\n\tb\"}]"),
            json!("{\"old\":\"a\n\tb\"}"),
            json!(["{\"old\":\"a\n\tb\"}"]),
            json!("[{\"old\":\"a\n\tb\"}]<|im_end|>"),
        ] {
            check_ok(&schema, json!({ "x": value }), &expected);
        }
        check_ok(&x(json!({ "type": "object" })), json!({ "x": "{\"a\":1}" }), &json!({ "x": { "a": 1 } }));
        let names = x(json!({ "type": "array", "items": { "type": "string" } }));
        check_ok(&names, json!({ "x": "[\"a\",\"b\"]" }), &json!({ "x": ["a", "b"] }));
        // Text that may be a string stays one.
        check_ok(&names, json!({ "x": "{}" }), &json!({ "x": ["{}"] }));
        let either = x(json!({ "type": ["string", "array"] }));
        check_ok(&either, json!({ "x": "[1]" }), &json!({ "x": "[1]" }));
    }

    #[test]
    fn null_stands_for_an_optional_property_that_is_missing() {
        check_ok(&x(json!({ "type": "string" })), json!({ "x": null }), &json!({}));
        check_ok(&x(json!({ "type": ["string", "null"] })), json!({ "x": null }), &json!({ "x": null }));
        check_ok(&x(json!({})), json!({ "x": null }), &json!({ "x": null }));
        let required =
            json!({ "type": "object", "required": ["x"], "properties": { "x": { "type": "string" } } });
        check_problems(&required, json!({ "x": null }), &["x: must be string"]);
    }

    #[test]
    fn what_cannot_be_mended_is_a_problem() {
        let check = |kind: &str, value: Value| {
            let expected = format!("x: must be {kind}");
            check_problems(&x(json!({ "type": kind })), json!({ "x": value }), &[&expected]);
        };
        check("number", json!("five"));
        check("number", json!("inf"));
        check("number", json!(true));
        check("integer", json!("1.5"));
        check("boolean", json!(1));
        check("string", json!(["a"]));
        check("object", json!("a"));
        check_problems(&json!({ "type": "object" }), json!([]), &["root: must be object"]);
    }

    #[test]
    fn paths_lead_to_the_problem() {
        let schema = json!({
            "type": "object",
            "required": ["path", "edits"],
            "properties": {
                "path": { "type": "string" },
                "edits": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["old"],
                        "properties": { "old": { "type": "string" } },
                    },
                },
            },
        });
        check_problems(
            &schema,
            json!({ "edits": [{ "old": "a" }, { "old": {} }, {}] }),
            &["edits.1.old: must be string", "edits.2.old: is required", "path: is required"],
        );
    }

    #[test]
    fn extra_properties_are_accepted_unless_forbidden() {
        check_ok(&x(json!({})), json!({ "y": 1 }), &json!({ "y": 1 }));
        let closed = json!({ "type": "object", "properties": { "x": {} }, "additionalProperties": false });
        check_problems(&closed, json!({ "x": 1, "y": 1 }), &["y: is not allowed"]);
        let numbers = json!({ "type": "object", "additionalProperties": { "type": "number" } });
        check_ok(&numbers, json!({ "y": "1" }), &json!({ "y": 1 }));
    }

    #[test]
    fn choices_are_compared_by_value_then_by_text() {
        let schema = x(json!({ "enum": ["a", 1, true] }));
        check_ok(&schema, json!({ "x": 1.0 }), &json!({ "x": 1.0 }));
        check_ok(&schema, json!({ "x": "1" }), &json!({ "x": 1 }));
        check_problems(&schema, json!({ "x": "b" }), &["x: must be one of \"a\", 1, true"]);
        check_problems(&x(json!({ "const": "a" })), json!({ "x": [] }), &["x: must be \"a\""]);
    }

    #[test]
    fn bounds_are_checked() {
        let check = |schema: Value, value: Value, message: &str| {
            check_problems(&x(schema), json!({ "x": value }), &[&format!("x: {message}")]);
        };
        check(json!({ "minimum": 1 }), json!(0.5), "must be at least 1");
        check(json!({ "maximum": 1 }), json!(2), "must be at most 1");
        check(json!({ "exclusiveMinimum": 0 }), json!(0), "must be greater than 0");
        check(json!({ "exclusiveMaximum": 1.5 }), json!(1.5), "must be less than 1.5");
        check(json!({ "minLength": 2 }), json!("ü"), "must have at least 2 characters");
        check(json!({ "maxLength": 1 }), json!("ab"), "must have at most 1 characters");
        check(json!({ "minItems": 1 }), json!([]), "must have at least 1 items");
        check(json!({ "maxItems": 0 }), json!([1]), "must have at most 0 items");
    }

    #[test]
    fn alternatives_take_what_fits_before_what_can_be_mended() {
        let schema = x(json!({ "anyOf": [{ "type": "number" }, { "type": "string" }] }));
        check_ok(&schema, json!({ "x": "5" }), &json!({ "x": "5" }));
        let schema = x(json!({ "oneOf": [{ "type": "number" }, { "type": "null" }] }));
        check_ok(&schema, json!({ "x": "5" }), &json!({ "x": 5 }));
        check_problems(&schema, json!({ "x": "y" }), &["x: must fit one of the allowed forms"]);
        let both = x(json!({ "oneOf": [{ "minimum": 0 }, { "maximum": 9 }] }));
        check_problems(&both, json!({ "x": 5 }), &["x: must fit exactly one of the allowed forms"]);
        let all = x(json!({ "allOf": [{ "type": "number" }, { "minimum": 3 }] }));
        check_ok(&all, json!({ "x": "5" }), &json!({ "x": 5 }));
        check_problems(&all, json!({ "x": "2" }), &["x: must be at least 3"]);
    }

    #[test]
    fn references_are_followed_but_not_for_ever() {
        let schema = json!({
            "type": "object",
            "properties": { "x": { "$ref": "#/$defs/node" } },
            "$defs": { "node": {
                "type": "object",
                "properties": { "value": { "type": "number" }, "next": { "$ref": "#/$defs/node" } },
            } },
        });
        check_ok(
            &schema,
            json!({ "x": { "next": { "value": "1" } } }),
            &json!({ "x": { "next": { "value": 1 } } }),
        );
        check_problems(
            &schema,
            json!({ "x": { "next": { "value": "a" } } }),
            &["x.next.value: must be number"],
        );
        let endless = json!({ "$ref": "#/$defs/a", "$defs": { "a": { "$ref": "#/$defs/a" } } });
        check_ok(&endless, json!({}), &json!({}));
        let endless = json!({ "allOf": [{ "$ref": "#" }, { "$ref": "#" }] });
        check_ok(&endless, json!({}), &json!({}));
    }

    #[test]
    fn the_description_names_tool_problems_and_arguments() {
        let problems = [
            Problem { path: "path".to_owned(), message: "is required".to_owned() },
            Problem { path: "root".to_owned(), message: "is not allowed".to_owned() },
        ];
        insta::assert_snapshot!(describe("read", &problems, &json!({ "file": "a" })), @r#"
        Validation failed for tool "read":
          - path: is required
          - root: is not allowed

        Received arguments:
        {
          "file": "a"
        }
        "#);
    }
}
