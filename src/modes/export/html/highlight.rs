//! Highlights code for the page: lengths and classes, never markup.

use serde_json::{Value, json};
use syntect::parsing::{Scope, ScopeStack};

use crate::util::grammars::{CodeParser, Grammars};

/// Longer lines, in bytes, stay plain, because grammars can be slow on minified files.
const MAX_LINE_BYTES: usize = 2_000;
/// Longer pieces of code, in bytes, stay plain.
const MAX_CODE_BYTES: usize = 64 * 1024;
/// Code beyond this many bytes in one export stays plain, so that the time an export takes
/// depends on reading and writing.
const MAX_TOTAL_BYTES: usize = 2 * 1024 * 1024;

/// The grammars, and how much code may still be highlighted.
pub(super) struct Highlighter {
    grammars: Grammars,
    scopes: Vec<(Scope, u8)>,
    bytes_left: usize,
}

impl Highlighter {
    pub(super) fn new() -> Self {
        Self {
            grammars: Grammars::default(),
            scopes: SCOPES
                .iter()
                .filter_map(|(name, class)| Some((Scope::new(name).ok()?, *class)))
                .collect(),
            bytes_left: MAX_TOTAL_BYTES,
        }
    }

    /// Leaves all code plain.
    #[cfg(test)]
    pub(super) fn plain() -> Self {
        Self { bytes_left: 0, ..Self::new() }
    }

    /// Classes and lengths in UTF-16 units, alternating: `SYNTAX` in `page.js` names the
    /// classes. `Null` for plain code.
    pub(super) fn spans(&mut self, language: &str, code: &str) -> Value {
        if code.len() > MAX_CODE_BYTES.min(self.bytes_left) {
            return Value::Null;
        }
        let Some(mut parser) = self.grammars.parser(language) else { return Value::Null };
        self.bytes_left -= code.len();
        let mut spans = Spans::default();
        let mut scopes = ScopeStack::new();
        for line in code.split_inclusive('\n') {
            if line.len() > MAX_LINE_BYTES || self.line(line, &mut parser, &mut scopes, &mut spans).is_none()
            {
                // The rest is plain.
                return spans.into_value();
            }
        }
        spans.into_value()
    }

    fn line(
        &self,
        line: &str,
        parser: &mut CodeParser,
        scopes: &mut ScopeStack,
        spans: &mut Spans,
    ) -> Option<()> {
        let operations = parser.line(line)?;
        let mut start = 0;
        for (at, operation) in operations {
            spans.push(self.class(scopes), line.get(start..at).unwrap_or_default());
            start = start.max(at);
            scopes.apply(&operation).ok()?;
        }
        spans.push(self.class(scopes), line.get(start..).unwrap_or_default());
        Some(())
    }

    /// The class of the innermost scope that has one.
    fn class(&self, scopes: &ScopeStack) -> u8 {
        let class = |scope: &Scope| {
            self.scopes.iter().find(|(prefix, _)| prefix.is_prefix_of(*scope)).map(|(_, class)| *class)
        };
        scopes.as_slice().iter().rev().find_map(class).unwrap_or(0)
    }
}

#[derive(Default)]
struct Spans(Vec<(u8, usize)>);

impl Spans {
    fn push(&mut self, class: u8, text: &str) {
        let len: usize = text.chars().map(char::len_utf16).sum();
        match self.0.last_mut() {
            _ if len == 0 => {}
            Some((last, n)) if *last == class => *n += len,
            _ => self.0.push((class, len)),
        }
    }

    fn into_value(self) -> Value {
        let is_plain = self.0.iter().all(|(class, _)| *class == 0);
        if is_plain {
            Value::Null
        } else {
            self.0.iter().flat_map(|(class, n)| [json!(class), json!(n)]).collect()
        }
    }
}

/// Scopes by prefix; the first match wins, so longer prefixes come first. Names follow
/// <https://www.sublimetext.com/docs/scope_naming.html>; numbers are places in `SYNTAX` of
/// `page.js`.
const SCOPES: &[(&str, u8)] = &[
    ("comment", 1),
    ("punctuation.definition.comment", 1),
    ("punctuation.definition.string", 2),
    ("string", 2),
    ("constant", 3),
    ("keyword.operator", 8),
    ("keyword", 4),
    ("storage", 4),
    ("entity.name.function", 5),
    ("support.function", 5),
    ("support.macro", 5),
    ("variable.function", 5),
    ("meta.function-call.identifier", 5),
    ("entity.name.tag", 4),
    ("entity.other.attribute-name", 7),
    ("entity.name", 6),
    ("entity.other.inherited-class", 6),
    ("support.type", 6),
    ("support.class", 6),
    ("variable", 7),
    ("punctuation", 8),
    ("markup.inserted", 9),
    ("markup.deleted", 10),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_cover_the_code_in_utf16_units() {
        let mut highlighter = Highlighter::new();
        let code = "let s = \"🦀\"; // é\n";
        let spans = highlighter.spans("rust", code);
        let numbers: Vec<u64> = spans.as_array().unwrap().iter().filter_map(Value::as_u64).collect();
        let total: u64 = numbers.chunks(2).map(|pair| pair[1]).sum();
        assert_eq!(total, code.encode_utf16().count() as u64);
        assert!(numbers.chunks(2).any(|pair| pair[0] == 2) && numbers.chunks(2).any(|pair| pair[0] == 1));
    }

    #[test]
    fn unknown_languages_and_large_code_stay_plain() {
        let mut highlighter = Highlighter::new();
        assert_eq!(highlighter.spans("no-such-language", "let x = 1;"), Value::Null);
        assert_eq!(highlighter.spans("rust", &"let x = 1;\n".repeat(10_000)), Value::Null);
        highlighter.bytes_left = 5;
        assert_eq!(highlighter.spans("rust", "let x = 1;"), Value::Null);
    }
}
