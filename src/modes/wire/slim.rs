//! Bounds the length of a line, for clients that read lines into buffers of limited size.

use serde_json::{Map, Value, json};

/// Maximum length of a line with its line break, in bytes.
pub(super) const MAX_LINE_BYTES: usize = 1 << 20;
/// Bytes of a text that arrives in pieces: a line with it is short enough even if each byte is
/// escaped.
pub(super) const PIECE_BYTES: usize = 128 << 10;
/// Bytes of a string that are kept, the first that suffices.
const STRING_LIMITS: [usize; 6] = [256 << 10, 64 << 10, 16 << 10, 4 << 10, 512, 64];
/// Elements of an array that are kept once strings are short.
const ARRAY_LIMIT: usize = 256;
/// How an image begins in a line.
const IMAGE: &str = r#""type":"image""#;

/// Shortens the JSON object at `start` of `out`: image data is left out, and then the longest
/// strings are cut until the line is short enough. A line that was cut says so in a field
/// `truncated`.
pub(super) fn shorten(out: &mut String, start: usize) {
    let is_long = |text: &str| text.len() - start >= MAX_LINE_BYTES;
    if !is_long(out) && !out[start..].contains(IMAGE) {
        return;
    }
    let Ok(mut value) = serde_json::from_str::<Value>(&out[start..]) else { return };
    omit_images(&mut value);
    replace(out, start, &value);
    for limit in STRING_LIMITS {
        if !is_long(out) {
            return;
        }
        cut(&mut value, limit);
        if let Value::Object(fields) = &mut value {
            fields.insert("truncated".to_owned(), true.into());
        }
        replace(out, start, &value);
    }
    if is_long(out) {
        // Millions of keys; nobody reads those.
        let kind = value.get("type").cloned().unwrap_or_default();
        replace(out, start, &json!({ "type": kind, "truncated": true }));
    }
}

fn replace(out: &mut String, start: usize, value: &Value) {
    out.truncate(start);
    out.push_str(&value.to_string());
}

/// Replaces the data of images with its size.
fn omit_images(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if fields.get("type").is_some_and(|kind| kind == "image") {
                omit_data(fields);
            }
            fields.values_mut().for_each(omit_images);
        }
        Value::Array(values) => values.iter_mut().for_each(omit_images),
        _ => {}
    }
}

fn omit_data(image: &mut Map<String, Value>) {
    if let Some(Value::String(data)) = image.get_mut("data") {
        let n_bytes = data.len();
        data.clear();
        image.insert("omittedBytes".to_owned(), n_bytes.into());
    }
}

/// Cuts every string to `limit` bytes, and long arrays of what is already short.
fn cut(value: &mut Value, limit: usize) {
    match value {
        Value::String(text) if text.len() > limit => {
            text.truncate(text.floor_char_boundary(limit));
            text.push('…');
        }
        Value::Array(values) => {
            if limit <= 512 {
                values.truncate(ARRAY_LIMIT);
            }
            values.iter_mut().for_each(|value| cut(value, limit));
        }
        Value::Object(fields) => fields.values_mut().for_each(|value| cut(value, limit)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shortened(value: &Value) -> (String, Value) {
        let mut line = "before\n".to_owned();
        line.push_str(&value.to_string());
        shorten(&mut line, 7);
        let rest = line.strip_prefix("before\n").unwrap().to_owned();
        let value = serde_json::from_str(&rest).unwrap();
        (rest, value)
    }

    #[test]
    fn a_short_line_stays_as_it_is() {
        let value = json!({ "type": "x", "text": "ä".repeat(1000) });
        assert_eq!(shortened(&value).1, value);
    }

    #[test]
    fn images_are_named_and_left_out() {
        let image = json!({ "type": "image", "data": "AAAA", "mimeType": "image/png" });
        let (_, found) = shortened(&json!({ "type": "x", "content": [image] }));
        let expected = json!({ "type": "image", "data": "", "mimeType": "image/png", "omittedBytes": 4 });
        assert_eq!(found, json!({ "type": "x", "content": [expected] }));
    }

    #[test]
    fn a_long_line_is_cut_where_it_is_longest_and_says_so() {
        let value = json!({ "type": "x", "a": "ä".repeat(1 << 20), "b": "short" });
        let (line, found) = shortened(&value);
        assert!(line.len() < MAX_LINE_BYTES);
        assert_eq!((&found["b"], &found["truncated"]), (&json!("short"), &json!(true)));
        assert!(found["a"].as_str().unwrap().ends_with("ä…"));
    }

    #[test]
    fn anything_becomes_a_line_of_limited_length() {
        let many = Value::from(vec!["x".repeat(100); 100_000]);
        let keys: Map<String, Value> = (0..200_000).map(|n| (format!("key {n}"), Value::Null)).collect();
        let deep = (0..100).fold(json!("x".repeat(2 << 20)), |inner, _| json!([inner]));
        for content in [many, Value::Object(keys), deep, json!("\u{1}".repeat(1 << 20))] {
            let (line, found) = shortened(&json!({ "type": "message_end", "content": content }));
            assert!(line.len() < MAX_LINE_BYTES);
            assert_eq!((&found["type"], &found["truncated"]), (&json!("message_end"), &json!(true)));
        }
    }
}
