//! Limits the nesting depth of an entry's JSON, so that it can be read back.

use serde_json::Value;

use super::entry::Entry;

/// The JSON parser's limit is 128 levels; lines stay below it.
const MAX_DEPTH: usize = 120;

/// The line of `entry`, and the stored version of the entry if parts of it had to be
/// left out. A marker replaces each of them.
pub(super) fn bounded_line(entry: &Entry) -> (String, Option<Entry>) {
    let line = entry.to_line();
    if depth(&line) <= MAX_DEPTH {
        return (line, None);
    }
    let mut value = entry.to_value();
    cut(&mut value, MAX_DEPTH);
    let line = value.to_string();
    let bounded = Entry::parse(&line).ok();
    (line, bounded)
}

/// The nesting depth of `json`.
fn depth(json: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let mut bytes = json.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => skip_string(&mut bytes),
            b'{' | b'[' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

fn skip_string(bytes: &mut impl Iterator<Item = u8>) {
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => return,
            b'\\' => drop(bytes.next()),
            _ => {}
        }
    }
}

/// Replaces everything below `levels` with a marker.
fn cut(value: &mut Value, levels: usize) {
    if levels == 0 && (value.is_array() || value.is_object()) {
        let n_bytes = value.to_string().len();
        *value = format!("[nested too deeply to be stored; {n_bytes} bytes omitted]").into();
        return;
    }
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| cut(item, levels - 1)),
        Value::Object(fields) => fields.values_mut().for_each(|field| cut(field, levels - 1)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn depth_counts_brackets_outside_of_strings() {
        let check = |json: &str, expected| assert_eq!(depth(json), expected, "{json}");
        check("1", 0);
        check(r#"{"a":[1,{"b":"[[[[\"[["}],"c":{}}"#, 3);
    }

    #[test]
    fn what_lies_too_deep_becomes_a_mark() {
        let mut value = json!({"a": [1, [2]], "b": {"c": {}}, "d": "e"});
        cut(&mut value, 2);
        let mark = |n| format!("[nested too deeply to be stored; {n} bytes omitted]");
        assert_eq!(value, json!({"a": [1, mark(3)], "b": {"c": mark(2)}, "d": "e"}));
    }
}
