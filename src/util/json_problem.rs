//! What is wrong with JSON that people write, in words about their file.

use std::collections::HashMap;
use std::fmt;

use jsonc_parser::ast::Value;
use jsonc_parser::{CollectOptions, ParseOptions};

/// Describes `error` and its place. The parser's own words for a text that ends too early are about
/// the parser.
pub fn json_problem(error: &serde_json::Error) -> String {
    if error.is_eof() {
        let (line, column) = (error.line(), error.column());
        return format!("the file ends at line {line}, column {column}, before its JSON is complete");
    }
    error.to_string()
}

/// A key that an object has twice; the last value counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepeatedKey {
    /// With the keys of the objects around it, joined by dots.
    pub key: String,
    /// The line that counts, from 1.
    pub line: usize,
    /// The line of the first one.
    pub first_line: usize,
}

impl fmt::Display for RepeatedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "\"{}\" is in line {} too; this value counts, the other is ignored",
            self.key, self.first_line
        )
    }
}

/// The keys that objects in `text` have more than once. Comments and trailing commas are allowed; a text
/// that cannot be parsed has none.
pub fn repeated_keys(text: &str) -> Vec<RepeatedKey> {
    let parsed = jsonc_parser::parse_to_ast(text, &CollectOptions::default(), &ParseOptions::default());
    let mut found = Vec::new();
    if let Ok(Some(value)) = parsed.map(|parsed| parsed.value) {
        visit(&value, "", text, &mut found);
    }
    found
}

/// Bounded by the depth that the parser accepts.
fn visit(value: &Value<'_>, path: &str, text: &str, found: &mut Vec<RepeatedKey>) {
    match value {
        Value::Object(object) => {
            let mut starts: HashMap<&str, usize> = HashMap::new();
            for property in &object.properties {
                let (name, start) = (property.name.as_str(), property.range.start);
                let key = if path.is_empty() { name.to_owned() } else { [path, ".", name].concat() };
                if let Some(first) = starts.get(name) {
                    let (line, first_line) = (line_at(text, start), line_at(text, *first));
                    found.push(RepeatedKey { key: key.clone(), line, first_line });
                }
                starts.entry(name).or_insert(start);
                visit(&property.value, &key, text, found);
            }
        }
        Value::Array(array) => {
            for (idx, element) in array.elements.iter().enumerate() {
                visit(element, &format!("{path}[{idx}]"), text, found);
            }
        }
        Value::StringLit(_) | Value::NumberLit(_) | Value::BooleanLit(_) | Value::NullKeyword(_) => {}
    }
}

/// The line of a dotted key in `text`, from 1; `None` if it is not there.
pub fn line_of_key(text: &str, key: &str) -> Option<usize> {
    let parsed = jsonc_parser::parse_to_ast(text, &CollectOptions::default(), &ParseOptions::default());
    let mut value = parsed.ok()?.value?;
    let mut start = 0;
    for part in key.split('.') {
        let Value::Object(object) = value else { return None };
        let property = object.properties.into_iter().find(|property| property.name.as_str() == part)?;
        start = property.range.start;
        value = property.value;
    }
    Some(line_at(text, start))
}

fn line_at(text: &str, offset: usize) -> usize {
    1 + text.get(..offset).unwrap_or_default().matches('\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_ends_too_early_is_named_and_other_problems_have_their_place() {
        let check = |text: &str, expected: &str| {
            assert_eq!(json_problem(&serde_json::from_str::<serde_json::Value>(text).unwrap_err()), expected);
        };
        check("{\n  \"theme\": ", "the file ends at line 2, column 11, before its JSON is complete");
        check("{\n  \"theme\": dark\n}", "expected value at line 2 column 12");
    }

    #[test]
    fn keys_that_are_there_twice_have_both_lines() {
        let check = |text: &str, expected: &[(&str, usize, usize)]| {
            let found = repeated_keys(text);
            let found: Vec<(&str, usize, usize)> =
                found.iter().map(|one| (one.key.as_str(), one.line, one.first_line)).collect();
            assert_eq!(found, expected, "{text}");
        };
        check("{\n\"a\": 1,\n\"b\": {\"a\": 2}\n}", &[]);
        check("{\n\"a\": 1,\n// c\n\"b\": 2,\n\"a\": 3,\n}", &[("a", 5, 2)]);
        check("{\"p\": {\"m\": [\n{\"id\": 1},\n{\"id\": 1,\n\"id\": 2}]}}", &[("p.m[1].id", 4, 3)]);
        check("{\"a\": 1, \"a\": 2, \"a\": 3}", &[("a", 1, 1), ("a", 1, 1)]);
        // The same key with an escape.
        check("{\"a\": 1,\n\"\\u0061\": 2}", &[("a", 2, 1)]);
        for text in ["", "[", "{\"a\": 1, \"a\"", "7"] {
            check(text, &[]);
        }
        assert_eq!(repeated_keys(&"[".repeat(100_000)), []);
    }
}
