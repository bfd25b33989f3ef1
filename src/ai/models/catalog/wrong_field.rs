//! Parses user-written values, with errors in the words of the file.

use serde::de::DeserializeOwned;
use serde_json::Value;

/// Parses `value` as a `T`.
///
/// # Errors
/// The name of the field and the expected value, without naming types of this
/// program.
pub(super) fn read<T: DeserializeOwned>(value: Value) -> Result<T, String> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        let problem = in_plain_words(&error.inner().to_string());
        match path.as_str() {
            "." => problem,
            // The message already names the missing field.
            path if problem.ends_with("is missing") => format!("\"{path}\": {problem}"),
            path => format!("\"{path}\" {problem}"),
        }
    })
}

/// Translates an error of the JSON library into plain words.
fn in_plain_words(message: &str) -> String {
    if let Some(field) = message.strip_prefix("missing field ") {
        return format!("\"{}\" is missing", field.trim_matches('`'));
    }
    if let Some((found, expected)) = split(message, "unknown variant ", ", expected ") {
        let choices = expected.trim_start_matches("one of ").replace('`', "\"");
        return format!("must be one of {choices}, not \"{}\"", found.trim_matches('`'));
    }
    let wrong = split(message, "invalid type: ", ", expected ");
    match wrong.or_else(|| split(message, "invalid value: ", ", expected ")) {
        Some((found, expected)) => format!("must be {}, not {}", wanted(expected), what(found)),
        None => message.to_owned(),
    }
}

fn split<'a>(message: &'a str, prefix: &str, middle: &str) -> Option<(&'a str, &'a str)> {
    message.strip_prefix(prefix)?.split_once(middle)
}

/// The expected value.
fn wanted(expected: &str) -> &str {
    match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number, 0 or more",
        "i64" | "i32" => "a whole number",
        "f32" | "f64" => "a number",
        "string" => "a string",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        "a map" => "an object",
        expected if expected.starts_with("struct ") => "an object",
        expected => expected,
    }
}

/// The actual value.
fn what(found: &str) -> String {
    let value = found.split_once(' ').map_or("", |(_, value)| value).trim_matches('`');
    match found.split(' ').next().unwrap_or_default() {
        "string" => format!("the text {value}"),
        "integer" | "boolean" => value.to_owned(),
        // "floating point `1.5`"
        "floating" => value.trim_start_matches("point `").to_owned(),
        "map" => "an object".to_owned(),
        "sequence" => "a list".to_owned(),
        "unit" => "null".to_owned(),
        _ => found.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only read")]
    struct Outer {
        name: String,
        #[serde(default)]
        parts: Vec<BTreeMap<String, f64>>,
        size: Option<u64>,
        shape: Option<Shape>,
        open: Option<bool>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Shape {
        Round,
        Flat,
    }

    #[test]
    fn errors_are_in_the_words_of_the_file() {
        let check = |value: Value, expected: &str| assert_eq!(read::<Outer>(value).unwrap_err(), expected);
        check(json!(7), "must be an object, not 7");
        check(json!({}), "\"name\" is missing");
        check(json!({"name": 7}), "\"name\" must be a string, not 7");
        check(json!({"name": {"a": 1}}), "\"name\" must be a string, not an object");
        check(json!({"name": "a", "parts": {}}), "\"parts\" must be a list, not an object");
        let parts = json!({"name": "a", "parts": [{}, {"price": "free"}]});
        check(parts, "\"parts[1].price\" must be a number, not the text \"free\"");
        check(json!({"name": "a", "size": -1}), "\"size\" must be a whole number, 0 or more, not -1");
        check(json!({"name": "a", "size": 1.5}), "\"size\" must be a whole number, 0 or more, not 1.5");
        check(json!({"name": "a", "open": "yes"}), "\"open\" must be true or false, not the text \"yes\"");
        let shape = json!({"name": "a", "shape": "square"});
        check(shape, "\"shape\" must be one of \"round\" or \"flat\", not \"square\"");
    }
}
