//! JSON that a model is still writing, or wrote with small mistakes.
//!
//! While arguments stream in, [`parse_lenient`] returns the readable part.
//! Once they are complete, [`parse_strict`] decides whether they may be used. It repairs what
//! several servers produce: raw control characters and invalid escapes in strings, an object
//! in a string, special tokens around an object, and an empty object before it.

use std::borrow::Cow;

use jiter::{JsonValue, PartialMode};
use serde_json::{Map, Value};

/// The readable part of an unfinished JSON object; `{}` if there is none.
pub fn parse_lenient(text: &str) -> Value {
    let repaired = repair(without_empty_objects(text));
    let parsed = JsonValue::parse_with_config(repaired.as_bytes(), false, PartialMode::TrailingStrings);
    match parsed.map(|value| to_serde(&value)) {
        Ok(value @ Value::Object(_)) => value,
        _ => Value::Object(Map::new()),
    }
}

/// `text` without the empty objects that some servers send before the arguments.
fn without_empty_objects(text: &str) -> &str {
    let mut text = text.trim_start();
    while let Some(rest) = text.strip_prefix("{}").filter(|rest| rest.trim_start().starts_with('{')) {
        text = rest.trim_start();
    }
    text
}

/// The JSON object in `text`; blank text is `{}`.
///
/// # Errors
/// The reason why `text` is not a JSON object.
pub fn parse_strict(text: &str) -> Result<Value, String> {
    if text.trim().is_empty() {
        return Ok(Value::Object(Map::new()));
    }
    let whole = replace_lone_surrogates(text);
    match parse_repaired(&whole) {
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(other) => only_object(unwrapped(&other, MAX_WRAPPED))
            .ok_or_else(|| format!("expected a JSON object, found {}", kind(&other))),
        Err(error) => only_object(only_value(&whole, MAX_WRAPPED)).ok_or_else(|| error.to_string()),
    }
}

/// The object or list that a string contains as JSON text, for an argument that should have
/// been one; `None` if it contains none.
pub fn parse_text(text: &str) -> Option<Value> {
    let whole = replace_lone_surrogates(text);
    match parse_repaired(&whole) {
        Ok(value) => unwrapped(&value, MAX_WRAPPED),
        Err(_) => only_value(&whole, MAX_WRAPPED),
    }
}

/// Strings in strings beyond this are not JSON that was encoded too often.
const MAX_WRAPPED: usize = 3;

fn parse_repaired(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(text).or_else(|error| match repair(text) {
        Cow::Borrowed(_) => Err(error),
        Cow::Owned(repaired) => serde_json::from_str(&repaired).map_err(|_| error),
    })
}

fn only_object(value: Option<Value>) -> Option<Value> {
    match value? {
        object @ Value::Object(_) => Some(object),
        Value::Array(items) => match <[Value; 1]>::try_from(items) {
            Ok([object @ Value::Object(_)]) => Some(object),
            Ok(_) | Err(_) => None,
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

/// The object or list that `value` is, or contains as text.
fn unwrapped(value: &Value, n_left: usize) -> Option<Value> {
    match value {
        Value::Object(_) | Value::Array(_) => Some(value.clone()),
        Value::String(text) if n_left > 0 => match parse_repaired(text) {
            Ok(value) => unwrapped(&value, n_left - 1),
            Err(_) => only_value(text, n_left - 1),
        },
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// The only value in `text` that is not empty, if there is nothing else but special tokens,
/// fences of code, and brackets that close nothing.
fn only_value(text: &str, n_left: usize) -> Option<Value> {
    let text = repair(without_opening(text));
    let mut values = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
    let mut found: Option<Value> = None;
    let mut end = 0;
    while let Some(Ok(value)) = values.next() {
        end = values.byte_offset();
        if is_empty(&value) || found.as_ref() == Some(&value) {
            continue;
        }
        // Of two objects none is surely meant.
        if found.replace(value).is_some() {
            return None;
        }
    }
    if !is_noise(text.get(end..).unwrap_or_default()) {
        return None;
    }
    let empty = Value::Object(Map::new());
    unwrapped(&found.unwrap_or(empty), n_left).filter(|_| end > 0)
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) => false,
    }
}

/// `text` without the special tokens or the fence that it begins with.
fn without_opening(text: &str) -> &str {
    let mut rest = text.trim_start_matches('\u{feff}').trim_start();
    while let Some((token, after)) = rest.strip_prefix('<').and_then(|rest| rest.split_once('>'))
        && token.len() <= MAX_TOKEN_BYTES
    {
        rest = after.trim_start();
    }
    match rest.strip_prefix("```") {
        Some(fenced) => fenced.trim_start_matches(|c: char| c.is_ascii_alphanumeric()),
        None => rest,
    }
}

/// A longer text between angle brackets is no special token.
const MAX_TOKEN_BYTES: usize = 40;

/// Whether nothing of `rest`, the text behind a complete value, was meant as an argument.
fn is_noise(rest: &str) -> bool {
    let rest = rest.trim_start_matches(|c: char| c.is_whitespace() || "}],;`".contains(c));
    // What follows a special token is another message, which the model should not have begun.
    let is_token =
        ["<|", "<｜", "</", "[/", "<eos>", "<end_of_turn>"].iter().any(|token| rest.starts_with(token));
    rest.is_empty() || is_token
}

/// The arguments of a finished tool call: the object, and the error for the model
/// if the text is not an object.
pub fn finished_arguments(text: &str) -> (Value, Option<String>) {
    match parse_strict(text) {
        Ok(value) => (value, None),
        Err(error) => (Value::Object(Map::new()), Some(quoting(&error, text))),
    }
}

/// The arguments of a tool call that broke off: the readable part, and the error that keeps the
/// call from running.
pub(in crate::ai) fn cut_arguments(text: &str) -> (Value, Option<String>) {
    let error = parse_strict(text).err().unwrap_or_else(|| "the arguments were cut off".to_owned());
    (parse_lenient(text), Some(quoting(&error, text)))
}

/// Separates the reason from the argument text in the error of a tool call.
const RECEIVED: &str = "\n\nReceived arguments:\n";

/// The error of a tool call: the reason and the argument text.
pub(in crate::ai) fn quoting(error: &str, text: &str) -> String {
    [error, RECEIVED, text].concat()
}

/// The argument text that [`quoting`] added to `error`.
pub(super) fn quoted(error: &str) -> Option<&str> {
    error.split_once(RECEIVED).map(|(_, text)| text)
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Escapes raw control characters inside strings and doubles the backslash of
/// escapes that JSON does not define. Borrows if there is nothing to repair.
pub(in crate::ai) fn repair(text: &str) -> Cow<'_, str> {
    let mut out: Option<String> = None;
    let mut in_string = false;
    let mut chars = text.char_indices().peekable();
    while let Some((at, char)) = chars.next() {
        if !in_string {
            in_string = char == '"';
            push(&mut out, char);
            continue;
        }
        match char {
            '"' => {
                in_string = false;
                push(&mut out, char);
            }
            '\\' => {
                let escape = chars.peek().map(|(_, next)| *next);
                let valid = match escape {
                    Some('"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't') => true,
                    // A truncated \u at the end may still become a valid escape.
                    Some('u') => text[at + 2..].chars().take(4).all(|digit| digit.is_ascii_hexdigit()),
                    None => true,
                    Some(_) => false,
                };
                if valid {
                    push(&mut out, '\\');
                    if let Some((_, next)) = chars.next() {
                        push(&mut out, next);
                    }
                } else {
                    owned(&mut out, &text[..at]).push_str("\\\\");
                }
            }
            control if (control as u32) < 0x20 => {
                let escaped = match control {
                    '\n' => "\\n".to_owned(),
                    '\r' => "\\r".to_owned(),
                    '\t' => "\\t".to_owned(),
                    other => format!("\\u{:04x}", other as u32),
                };
                owned(&mut out, &text[..at]).push_str(&escaped);
            }
            other => push(&mut out, other),
        }
    }
    out.map_or(Cow::Borrowed(text), Cow::Owned)
}

/// Appends to the repaired copy, if there is one.
fn push(out: &mut Option<String>, char: char) {
    if let Some(out) = out {
        out.push(char);
    }
}

/// The repaired copy, created from `before` on the first repair.
fn owned<'a>(out: &'a mut Option<String>, before: &str) -> &'a mut String {
    out.get_or_insert_with(|| before.to_owned())
}

fn to_serde(value: &JsonValue<'_>) -> Value {
    match value {
        JsonValue::Null => Value::Null,
        JsonValue::Bool(bool) => Value::Bool(*bool),
        JsonValue::Int(int) => Value::from(*int),
        JsonValue::BigInt(int) => Value::String(int.to_string()),
        JsonValue::Float(float) => Value::from(*float),
        JsonValue::Str(text) => Value::String(text.clone().into_owned()),
        JsonValue::Array(items) => Value::Array(items.iter().map(to_serde).collect()),
        JsonValue::Object(members) => {
            Value::Object(members.iter().map(|(key, value)| (key.to_string(), to_serde(value))).collect())
        }
    }
}

/// Replaces each `\ud83d` without its other half by the replacement character,
/// because UTF-8 cannot encode a lone surrogate.
pub fn replace_lone_surrogates(text: &str) -> Cow<'_, str> {
    replace_halves(text, |_| None)
}

/// A surrogate in JSON text without its other half beside it.
#[derive(Debug, Clone, Copy)]
pub(in crate::ai) struct LoneSurrogate {
    pub(in crate::ai) unit: u16,
    /// It begins its string, or, as a first half, ends it: the other half may be in another string.
    pub(in crate::ai) is_at_edge: bool,
}

/// Replaces each lone surrogate by the two characters that `sign` has for it, otherwise by the
/// replacement character.
pub(in crate::ai) fn replace_halves(
    text: &str,
    sign: impl Fn(LoneSurrogate) -> Option<[char; 2]>,
) -> Cow<'_, str> {
    if !text.contains("\\ud") && !text.contains("\\uD") {
        return Cow::Borrowed(text);
    }
    let unit = |at: usize| -> Option<u16> {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let mut out = String::with_capacity(text.len());
    let mut rest = 0;
    while let Some(found) = text[rest..].find('\\') {
        let at = rest + found;
        out.push_str(&text[rest..at]);
        let (taken, written) = match (unit(at), unit(at + 6)) {
            (Some(0xD800..0xDC00), Some(0xDC00..0xE000)) => (12, text.get(at..at + 12)),
            (Some(unit @ 0xD800..0xE000), _) => {
                // Without a character between them, the quote before it is an escaped one.
                let begins = found > 0 && text[..at].ends_with('"');
                let is_at_edge = if unit < 0xDC00 { text[at + 6..].starts_with('"') } else { begins };
                match sign(LoneSurrogate { unit, is_at_edge }) {
                    Some(sign) => out.extend(sign),
                    None => out.push_str("\\ufffd"),
                }
                (6, None)
            }
            (Some(_), _) => (6, text.get(at..at + 6)),
            // Skip the escaped character too, so that `\\ud83d` stays unchanged.
            (None, _) => {
                let escaped = text[at + 1..].chars().next().map_or(0, char::len_utf8);
                (1 + escaped, text.get(at..at + 1 + escaped))
            }
        };
        out.push_str(written.unwrap_or_default());
        rest = at + taken;
    }
    out.push_str(&text[rest..]);
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unfinished_objects_show_what_has_arrived() {
        let check = |text: &str, expected: Value| assert_eq!(parse_lenient(text), expected, "{text}");
        check("", json!({}));
        check(r#"{"pa"#, json!({}));
        check(r#"{"path":"notes.md","content":"Hel"#, json!({"path": "notes.md", "content": "Hel"}));
        check(r#"{"path":"a","edits":[{"oldText":"x\n"#, json!({"path": "a", "edits": [{"oldText": "x\n"}]}));
        check("{\"a\":\"line\nbreak", json!({"a": "line\nbreak"}));
        check(r#"[1,2]"#, json!({}));
    }

    #[test]
    fn finished_text_must_be_an_object_after_repair() {
        assert_eq!(parse_strict("  "), Ok(json!({})));
        assert_eq!(parse_strict("{\"a\":\"x\ty\"}"), Ok(json!({"a": "x\ty"})));
        assert_eq!(parse_strict(r#"{"re":"\d+"}"#), Ok(json!({"re": "\\d+"})));
        assert_eq!(parse_strict(r#"{"re":"\\d\u00e9"}"#), Ok(json!({"re": "\\dé"})));
        assert_eq!(parse_strict("[1]"), Err("expected a JSON object, found an array".to_owned()));
        let (arguments, error) = finished_arguments("{\"a\":");
        assert_eq!(arguments, json!({}));
        assert!(error.is_some_and(|error| error.ends_with("\n\nReceived arguments:\n{\"a\":")));
    }

    #[test]
    fn object_in_another_shape_is_recovered() {
        let check = |text: &str| assert_eq!(parse_strict(text), Ok(json!({"path": "a"})), "{text}");
        let object = r#"{"path":"a"}"#;
        check(&json!(object).to_string());
        check(&json!(json!(object).to_string()).to_string());
        for token in [
            "<|im_end|>",
            "<|im_end|>\n<|im_start|>assistant",
            "</s>",
            "</tool_call>",
            "<｜end｜>",
            "}",
            "\n```",
            "{}",
        ] {
            check(&[object, token].concat());
        }
        for token in ["{}", "{} ", "{}{}", "null", "\"\"", "<|message|>", "```json\n", "\u{feff}", object] {
            check(&[token, object].concat());
        }
        check(&["```json\n", object, "\n```"].concat());
        check(&["[", object, "]"].concat());
        assert_eq!(parse_strict("{}{}"), Ok(json!({})));
        assert_eq!(parse_strict("{}<|im_end|>"), Ok(json!({})));
        assert_eq!(parse_strict("{\"a\":\"x\ny\"}<|im_end|>"), Ok(json!({"a": "x\ny"})));
        assert_eq!(parse_lenient("{}{\"path\":\"a"), json!({"path": "a"}));
    }

    #[test]
    fn text_that_is_not_surely_one_object_is_refused() {
        for text in [
            "{\"a\":1}{\"a\":2}",
            "{\"a\":1} and more",
            "{\"a\":1",
            "{\"a\":1<|im_end|>",
            "\"text\"",
            "\"{\"",
            "[1]",
            "[{},{}]",
            "<|im_end|>",
            "no json",
            "7",
        ] {
            assert!(parse_strict(text).is_err(), "{text}");
        }
    }

    #[test]
    fn text_of_an_argument_is_read_as_object_or_list() {
        let check = |text: &str, expected: Option<Value>| assert_eq!(parse_text(text), expected, "{text}");
        check("[{\"old\":\"a\n\tb\"}]", Some(json!([{"old": "a\n\tb"}])));
        check("{\"old\":\"a\"}<|im_end|>", Some(json!({"old": "a"})));
        check("\"[1]\"", Some(json!([1])));
        check("plain", None);
        check("5", None);
        check("", None);
    }

    #[test]
    fn arguments_that_broke_off_keep_what_had_arrived() {
        for text in ["", "{\"a\":\"x", "{\"a\":\"x\"}", "[1"] {
            let (arguments, error) = cut_arguments(text);
            assert_eq!(arguments, parse_lenient(text));
            assert_eq!(quoted(&error.unwrap_or_default()), Some(text));
        }
    }

    #[test]
    fn lone_surrogates_are_replaced_and_pairs_kept() {
        let check =
            |text: &str, expected: &str| assert_eq!(replace_lone_surrogates(text), expected, "{text}");
        check(r#""\ud83d\ude00""#, r#""\ud83d\ude00""#);
        check(r#""\ud83d""#, r#""\ufffd""#);
        check(r#""\ude00x\ud83d\n\\ud83dé\""#, r#""\ufffdx\ufffd\n\\ud83dé\""#);
        check(r"\ud83", r"\ud83");
    }
}
