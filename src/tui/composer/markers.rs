//! Large pastes, shown as `[paste #1 +120 lines]`.
//!
//! A marker is ordinary text in the editor with a known number and an exact label.
//! Undo, kill and yank therefore need no special cases.

use std::collections::BTreeMap;
use std::ops::Range;

const MAX_PLAIN_LINES: usize = 10;
const MAX_PLAIN_CHARS: usize = 1_000;

#[derive(Debug, Clone, Default)]
pub(super) struct Markers {
    pastes: BTreeMap<usize, Paste>,
}

#[derive(Debug, Clone)]
struct Paste {
    label: String,
    content: String,
}

impl Markers {
    /// The marker for a paste that is too large to show; `None` for a small one.
    pub(super) fn add(&mut self, content: &str) -> Option<&str> {
        let n_lines = content.split('\n').count();
        let n_chars = content.chars().count();
        let number = self.pastes.last_key_value().map_or(1, |(last, _)| last + 1);
        let label = if n_lines > MAX_PLAIN_LINES {
            format!("[paste #{number} +{n_lines} lines]")
        } else if n_chars > MAX_PLAIN_CHARS {
            format!("[paste #{number} {n_chars} chars]")
        } else {
            return None;
        };
        let paste = self.pastes.entry(number).or_insert(Paste { label, content: content.to_owned() });
        Some(&paste.label)
    }

    /// Forgets all pastes; numbers start at 1 again.
    pub(super) fn clear(&mut self) {
        self.pastes.clear();
    }

    /// The ranges of markers in `line`, ascending.
    pub(super) fn ranges(&self, line: &str) -> Vec<Range<usize>> {
        self.find(line).map(|(range, _)| range).collect()
    }

    /// The text with every marker replaced by its pasted text.
    pub(super) fn expand(&self, text: &str) -> String {
        let mut expanded = String::with_capacity(text.len());
        let mut done = 0;
        for (range, paste) in self.find(text) {
            expanded.push_str(&text[done..range.start]);
            expanded.push_str(&paste.content);
            done = range.end;
        }
        expanded.push_str(&text[done..]);
        expanded
    }

    fn find<'a>(&'a self, text: &'a str) -> impl Iterator<Item = (Range<usize>, &'a Paste)> {
        let mut from = 0;
        std::iter::from_fn(move || {
            if self.pastes.is_empty() {
                return None;
            }
            loop {
                let start = from + text.get(from..)?.find("[paste #")?;
                let rest = &text[start..];
                let digits = rest["[paste #".len()..].split(' ').next().unwrap_or_default();
                let paste = digits.parse().ok().and_then(|number: usize| self.pastes.get(&number));
                if let Some(paste) = paste.filter(|paste| rest.starts_with(&paste.label)) {
                    from = start + paste.label.len();
                    return Some((start..from, paste));
                }
                from = start + 1;
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_large_pastes_become_markers() {
        let mut markers = Markers::default();
        assert_eq!(markers.add(&"x\n".repeat(9)), None);
        assert_eq!(markers.add(&"x\n".repeat(10)), Some("[paste #1 +11 lines]"));
        assert_eq!(markers.add(&"é".repeat(1_000)), None);
        assert_eq!(markers.add(&"é".repeat(1_001)), Some("[paste #2 1001 chars]"));
    }

    #[test]
    fn only_known_labels_are_expanded() {
        let mut markers = Markers::default();
        let big = "y".repeat(1_001);
        markers.add(&big);
        let text = "[paste #1 1001 chars] [paste #2 1001 chars] [paste #1 5 chars] [[paste #1 1001 chars]";
        let expected = format!("{big} [paste #2 1001 chars] [paste #1 5 chars] [{big}");
        assert_eq!(markers.expand(text), expected);
        assert_eq!(markers.ranges("a [paste #1 1001 chars] [paste #1 1001 chars]"), [2..23, 24..45]);
    }
}
