//! Arguments of a call that arrive in pieces, each with its JSON path.
//!
//! [`PartialArgs`] assembles them and reports the additions to the JSON text
//! of the arguments, so that observers see them grow. The value is authoritative;
//! the text ends early if pieces arrive in an order in which JSON cannot be
//! written. Format: `partialArgs` in
//! <https://cloud.google.com/vertex-ai/generative-ai/docs/multimodal/function-calling#streaming-fc>.

use std::borrow::Cow;

use serde_json::{Map, Number, Value};

use super::super::{Joint, Str};
use super::wire::PartialArg;

/// How far past its end an array may be extended; a model may send any index.
const MAX_GAP: usize = 1_000;
const MAX_DEPTH: usize = 100;

/// The arguments of one call so far.
#[derive(Debug)]
pub(super) struct PartialArgs {
    root: Value,
    /// The path of the unfinished string, as the server writes it.
    open: Option<(String, Vec<Step>)>,
    /// Joins the pieces of that string.
    joint: Joint,
    text: Text,
    error: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Key(String),
    Index(usize),
}

impl PartialArgs {
    pub(super) fn new() -> Self {
        Self {
            root: Value::Object(Map::new()),
            open: None,
            joint: Joint::default(),
            text: Text::default(),
            error: None,
        }
    }

    /// Whether any argument has arrived.
    pub(super) fn has_any(&self) -> bool {
        self.root.as_object().is_some_and(|members| !members.is_empty())
    }

    /// Sets arguments that arrived as an object; later pieces are added to them.
    pub(super) fn start_with(&mut self, whole: Map<String, Value>) {
        self.text.is_over = true;
        self.root = Value::Object(whole);
    }

    /// Handles the next piece. Appends the addition to the JSON text to `added`.
    pub(super) fn push(&mut self, piece: &PartialArg<'_>, added: &mut String) {
        let path = piece.json_path.as_ref().map_or("$", Str::as_str);
        if let Err(error) = self.try_push(path, piece, added) {
            self.text.is_over = true;
            self.error.get_or_insert(error);
        }
    }

    fn try_push(&mut self, path: &str, piece: &PartialArg<'_>, added: &mut String) -> Result<(), String> {
        let goes_on = piece.will_continue == Some(true);
        if let Some((open, steps)) = self.open.take_if(|(open, _)| open == path) {
            let more = self.string(piece, goes_on);
            if let Some(Value::String(text)) = slot(&mut self.root, &steps)? {
                text.push_str(&more);
            }
            self.text.extend(&more, !goes_on, added);
            self.open = goes_on.then_some((open, steps));
            return Ok(());
        }
        let steps = parse_path(path)?;
        if let Some((_, unfinished)) = self.open.take() {
            // Another value arrived before the end of this string, which stays as it is.
            let half = self.joint.end().unwrap_or_default();
            if let Some(Value::String(text)) = slot(&mut self.root, &unfinished)? {
                text.push_str(half);
            }
            self.text.extend(half, true, added);
        }
        let value = match piece {
            PartialArg { string_value: Some(_), .. } => Value::from(self.string(piece, goes_on)),
            PartialArg { number_value: Some(number), .. } => whole_number(number),
            PartialArg { bool_value: Some(bool), .. } => Value::from(*bool),
            // An empty unfinished string, otherwise the only value without a text form.
            _ if goes_on => Value::from(""),
            _ => Value::Null,
        };
        let goes_on = goes_on && value.is_string();
        self.text.write(&self.root, &steps, &value, goes_on, added);
        match slot(&mut self.root, &steps)? {
            Some(slot) => *slot = value,
            None => return Err(format!("{path} does not fit the arguments before it")),
        }
        self.open = goes_on.then(|| (path.to_owned(), steps));
        Ok(())
    }

    /// The text that a piece of a string adds.
    fn string(&mut self, piece: &PartialArg<'_>, goes_on: bool) -> String {
        let text = piece.string_value.as_ref().map_or("", |text| &*text.0);
        let mut more = self.joint.add(Cow::Borrowed(text)).into_owned();
        if !goes_on {
            more.extend(self.joint.end());
        }
        more
    }

    /// The complete arguments. Appends the rest of the JSON text to `added`.
    ///
    /// # Errors
    /// If a piece was invalid, or the last string is unfinished.
    pub(super) fn finish(self, added: &mut String) -> Result<Value, String> {
        if let Some(error) = self.error {
            return Err(error);
        }
        if let Some((path, _)) = self.open {
            return Err(format!("the arguments were cut off in {path}"));
        }
        self.text.finish(added);
        Ok(self.root)
    }
}

/// Converts floats without a fraction to integers: servers write them, and tools require integers.
fn whole_number(number: &Number) -> Value {
    match number.as_f64() {
        Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 9e15 => {
            Value::from(float as i64)
        }
        _ => Value::Number(number.clone()),
    }
}

/// Parses `$.a[0]['b c']` into steps; `$` is optional.
fn parse_path(path: &str) -> Result<Vec<Step>, String> {
    let refused = || format!("{path:?} is no path of an argument");
    let mut steps = Vec::new();
    let mut rest = path.strip_prefix('$').unwrap_or(path);
    if !rest.is_empty() && !rest.starts_with(['.', '[']) {
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        steps.push(Step::Key(rest[..end].to_owned()));
        rest = &rest[end..];
    }
    while !rest.is_empty() {
        if let Some(named) = rest.strip_prefix('.') {
            let end = named.find(['.', '[']).unwrap_or(named.len());
            if end == 0 {
                return Err(refused());
            }
            steps.push(Step::Key(named[..end].to_owned()));
            rest = &named[end..];
        } else {
            let inside = rest.strip_prefix('[').ok_or_else(refused)?;
            let (step, after) = match inside.chars().next() {
                Some(quote @ ('\'' | '"')) => {
                    let (key, after) = quoted(&inside[1..], quote).ok_or_else(refused)?;
                    (Step::Key(key), after)
                }
                _ => {
                    let end = inside.find(']').ok_or_else(refused)?;
                    (Step::Index(inside[..end].parse().map_err(|_| refused())?), &inside[end..])
                }
            };
            steps.push(step);
            rest = after.strip_prefix(']').ok_or_else(refused)?;
        }
        if steps.len() > MAX_DEPTH {
            return Err(refused());
        }
    }
    // The arguments are always an object.
    if matches!(steps.first(), Some(Step::Key(_))) { Ok(steps) } else { Err(refused()) }
}

/// The text up to an unescaped `quote`, and the rest.
fn quoted(text: &str, quote: char) -> Option<(String, &str)> {
    let mut key = String::new();
    let mut chars = text.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '\\' => key.push(chars.next()?.1),
            end if end == quote => return Some((key, &text[at + end.len_utf8()..])),
            other => key.push(other),
        }
    }
    None
}

/// The value at the end of `steps`, created if absent. `None` if a value of another
/// type blocks the path.
fn slot<'v>(root: &'v mut Value, steps: &[Step]) -> Result<Option<&'v mut Value>, String> {
    let mut at = root;
    for step in steps {
        at = match step {
            Step::Key(key) => {
                if at.is_null() {
                    *at = Value::Object(Map::new());
                }
                let Value::Object(members) = at else { return Ok(None) };
                members.entry(key.as_str()).or_insert(Value::Null)
            }
            Step::Index(index) => {
                if at.is_null() {
                    *at = Value::Array(Vec::new());
                }
                let Value::Array(items) = at else { return Ok(None) };
                if *index > items.len() + MAX_GAP {
                    return Err(format!("item {index} of an array of {}", items.len()));
                }
                if items.len() <= *index {
                    items.resize(index + 1, Value::Null);
                }
                match items.get_mut(*index) {
                    Some(item) => item,
                    None => return Ok(None),
                }
            }
        };
    }
    Ok(Some(at))
}

fn is_present(root: &Value, steps: &[Step]) -> bool {
    let mut at = Some(root);
    for step in steps {
        at = match step {
            Step::Key(key) => at.and_then(|value| value.get(key)),
            Step::Index(index) => at.and_then(|value| value.get(index)),
        };
    }
    at.is_some()
}

/// The JSON text of the arguments, as far as the order of the pieces allows.
#[derive(Debug, Default)]
struct Text {
    /// The path of the last value. All its containers are open.
    at: Vec<Step>,
    /// No further text can be written.
    is_over: bool,
}

impl Text {
    /// Writes `value` at `steps`. `root` is the value before the change.
    fn write(&mut self, root: &Value, steps: &[Step], value: &Value, goes_on: bool, out: &mut String) {
        let common = self.at.iter().zip(steps).take_while(|(old, new)| old == new).count();
        let (Some(first), false) = (steps.get(common), self.is_over) else {
            self.is_over = true;
            return;
        };
        let follows = match (self.at.get(common), first) {
            (None, Step::Key(_)) => self.at.is_empty(),
            (Some(Step::Key(_)), Step::Key(_)) => !is_present(root, &steps[..=common]),
            (Some(Step::Index(old)), Step::Index(new)) => *new == old + 1,
            _ => false,
        };
        let starts_arrays_at_0 = !steps[common + 1..].iter().any(|step| matches!(step, Step::Index(1..)));
        if !follows || !starts_arrays_at_0 {
            self.is_over = true;
            return;
        }
        if self.at.is_empty() {
            out.push('{');
        } else {
            close(&self.at[common + 1..], out);
            out.push(',');
        }
        key(first, out);
        for step in &steps[common + 1..] {
            out.push(if matches!(step, Step::Key(_)) { '{' } else { '[' });
            key(step, out);
        }
        out.push_str(&value.to_string());
        if goes_on {
            // The closing quote follows at the end of the string.
            out.pop();
        }
        self.at = steps.to_vec();
    }

    /// Writes the next part of the open string.
    fn extend(&self, more: &str, ends: bool, out: &mut String) {
        if self.is_over {
            return;
        }
        let quoted = Value::from(more).to_string();
        out.push_str(quoted.get(1..quoted.len() - 1).unwrap_or_default());
        if ends {
            out.push('"');
        }
    }

    fn finish(&self, out: &mut String) {
        if !self.is_over {
            close(&self.at, out);
        }
    }
}

fn key(step: &Step, out: &mut String) {
    if let Step::Key(key) = step {
        out.push_str(&Value::from(key.as_str()).to_string());
        out.push(':');
    }
}

/// Closes the containers of `steps`, innermost first.
fn close(steps: &[Step], out: &mut String) {
    out.extend(steps.iter().rev().map(|step| if matches!(step, Step::Key(_)) { '}' } else { ']' }));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// The value of all pieces, and the text they produce.
    fn run(pieces: &Value) -> (Result<Value, String>, String) {
        let mut arguments = PartialArgs::new();
        let mut text = String::new();
        for piece in pieces.as_array().unwrap() {
            let json = piece.to_string();
            arguments.push(&serde_json::from_str(&json).unwrap(), &mut text);
        }
        let value = arguments.finish(&mut text);
        (value, text)
    }

    #[track_caller]
    fn check(pieces: Value, expected: Value) {
        let (value, text) = run(&pieces);
        assert_eq!(value, Ok(expected.clone()));
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected, "{text}");
    }

    #[test]
    fn pieces_in_order_write_the_text_of_their_value() {
        check(
            json!([
                {"jsonPath": "$.path", "stringValue": "a\"", "willContinue": true},
                {"jsonPath": "$.path", "stringValue": "\nb", "willContinue": true},
                {"jsonPath": "$.path", "stringValue": ""},
                {"jsonPath": "$.edits[0].old", "stringValue": "x"},
                {"jsonPath": "$.edits[0].new", "nullValue": "NULL_VALUE"},
                {"jsonPath": "$.edits[1]['a.b']", "numberValue": 2.0},
                {"jsonPath": "$.matrix[0][0]", "numberValue": 0.5},
                {"jsonPath": "$.matrix[0][1]", "boolValue": true},
                {"jsonPath": "$.matrix[1][0]", "stringValue": "é"},
            ]),
            json!({"path": "a\"\nb", "edits": [{"old": "x", "new": null}, {"a.b": 2}],
                "matrix": [[0.5, true], ["é"]]}),
        );
        check(json!([{"jsonPath": "x", "boolValue": false}]), json!({"x": false}));
    }

    #[test]
    fn the_value_counts_where_the_order_is_not_that_of_json() {
        let (value, text) = run(&json!([
            {"jsonPath": "$.a.x", "stringValue": "1"},
            {"jsonPath": "$.b", "stringValue": "2"},
            {"jsonPath": "$.a.y", "stringValue": "3"},
        ]));
        assert_eq!(value, Ok(json!({"a": {"x": "1", "y": "3"}, "b": "2"})));
        assert_eq!(text, r#"{"a":{"x":"1"},"b":"2""#);
        let (value, _) = run(&json!([{"jsonPath": "$.a[2]", "stringValue": "c"}]));
        assert_eq!(value, Ok(json!({"a": [null, null, "c"]})));
    }

    #[test]
    fn what_is_not_understood_is_an_error() {
        let check = |piece: Value, expected: &str| {
            assert_eq!(run(&json!([piece])).0, Err(expected.to_owned()));
        };
        check(json!({"jsonPath": "$", "stringValue": "x"}), "\"$\" is no path of an argument");
        check(json!({"stringValue": "x"}), "\"$\" is no path of an argument");
        check(json!({"jsonPath": "$[0]", "stringValue": "x"}), "\"$[0]\" is no path of an argument");
        check(json!({"jsonPath": "$.a[-1]", "stringValue": "x"}), "\"$.a[-1]\" is no path of an argument");
        check(json!({"jsonPath": "$.a['b", "stringValue": "x"}), "\"$.a['b\" is no path of an argument");
        check(json!({"jsonPath": "$.a[99999]", "stringValue": "x"}), "item 99999 of an array of 0");
        check(
            json!({"jsonPath": "$.a", "stringValue": "x", "willContinue": true}),
            "the arguments were cut off in $.a",
        );
        let (value, _) =
            run(&json!([{"jsonPath": "$.a", "stringValue": "x"}, {"jsonPath": "$.a.b", "boolValue": true}]));
        assert_eq!(value, Err("$.a.b does not fit the arguments before it".to_owned()));
    }

    proptest! {
        #[test]
        fn whatever_is_written_to_the_end_is_the_value(
            pieces in prop::collection::vec(("\\$?(\\.[ab]|\\[[012]\\]|\\['q'\\]){0,4}", "[ab\"\n]{0,2}", any::<bool>()), 0..8),
        ) {
            let pieces = pieces.iter().map(|(path, text, goes_on)| {
                json!({"jsonPath": path, "stringValue": text, "willContinue": goes_on})
            });
            let (value, text) = run(&Value::Array(pieces.collect()));
            if let (Ok(value), Ok(written)) = (value, serde_json::from_str::<Value>(&text)) {
                prop_assert_eq!(value, written);
            }
        }
    }
}
