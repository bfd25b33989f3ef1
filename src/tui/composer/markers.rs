//! Large pastes, shown as `[paste #1 +120 lines]`, and images, shown as `[image #1]`.
//!
//! A marker is ordinary text in the editor with a known number and an exact label.
//! Undo, kill and yank therefore need no special cases. The owner of the editor has the images.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

const MAX_PLAIN_LINES: usize = 10;
const MAX_PLAIN_CHARS: usize = 1_000;

/// Pastes that are remembered after they were sent, and their bytes.
const MAX_SENT: usize = 16;
const MAX_SENT_BYTES: usize = 2 * 1024 * 1024;

/// What every label of a paste begins with.
const PASTE: &str = "[paste #";

#[derive(Debug, Clone, Default)]
pub(super) struct Markers {
    pastes: BTreeMap<usize, Paste>,
    /// Numbers of the images.
    images: BTreeSet<usize>,
    /// Pastes that were sent, oldest first. A queued prompt may come back to the editor.
    sent: VecDeque<String>,
}

/// A marker in a text.
struct Found<'a> {
    range: Range<usize>,
    /// `None` for an image.
    content: Option<&'a str>,
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
            format!("{PASTE}{number} +{n_lines} lines]")
        } else if n_chars > MAX_PLAIN_CHARS {
            format!("{PASTE}{number} {n_chars} chars]")
        } else {
            return None;
        };
        let paste = self.pastes.entry(number).or_insert(Paste { label, content: content.to_owned() });
        Some(&paste.label)
    }

    /// Makes `[image #number]` a marker.
    pub(super) fn add_image(&mut self, number: usize) {
        self.images.insert(number);
    }

    /// Forgets all images, and pastes unless they come back soon; numbers start at 1 again.
    pub(super) fn clear(&mut self) {
        self.images.clear();
        self.sent.extend(std::mem::take(&mut self.pastes).into_values().map(|paste| paste.content));
        let n_bytes = |sent: &VecDeque<String>| sent.iter().map(String::len).sum::<usize>();
        while self.sent.len() > MAX_SENT || n_bytes(&self.sent) > MAX_SENT_BYTES {
            self.sent.pop_front();
        }
    }

    /// The ranges of markers in `line`, ascending.
    pub(super) fn ranges(&self, line: &str) -> Vec<Range<usize>> {
        self.find(line).map(|found| found.range).collect()
    }

    /// The last marker of a paste in `line` that begins no later than the byte, with the pasted
    /// text.
    pub(super) fn paste_before<'a>(&'a self, line: &'a str, byte: usize) -> Option<(Range<usize>, &'a str)> {
        let before = self.find(line).filter(|found| found.range.start <= byte);
        before.filter_map(|found| Some((found.range, found.content?))).last()
    }

    /// The text with every marker of a paste replaced by the pasted text.
    pub(super) fn expand(&self, text: &str) -> String {
        self.expand_start(text, usize::MAX)
    }

    /// The beginning of the text that [`Self::expand`] returns: at least `limit` bytes of it, or all. Of a
    /// paste, no more is copied.
    pub(super) fn expand_start(&self, text: &str, limit: usize) -> String {
        let mut expanded = String::with_capacity(text.len());
        let mut done = 0;
        for Found { range, content } in self.find(text) {
            expanded.push_str(&text[done..range.start]);
            let content = content.unwrap_or(&text[range.clone()]);
            let left = limit.saturating_sub(expanded.len());
            if left < content.len() {
                expanded.push_str(&content[..content.ceil_char_boundary(left)]);
                return expanded;
            }
            expanded.push_str(content);
            done = range.end;
        }
        expanded.push_str(&text[done..]);
        expanded
    }

    /// The text with markers in place of the pasted texts in it that are as they were, also of
    /// those that were sent and came back.
    pub(super) fn collapse(&mut self, text: &str) -> String {
        let come_back: Vec<String> =
            self.sent.iter().filter(|content| text.contains(content.trim_end())).cloned().collect();
        for content in come_back {
            if !self.pastes.values().any(|paste| paste.content.trim_end() == content.trim_end()) {
                self.add(&content);
            }
        }
        let mut pastes: Vec<&Paste> = self.pastes.values().collect();
        // A paste may contain another one.
        pastes.sort_by_key(|paste| Reverse(paste.content.len()));
        let mut collapsed = text.to_owned();
        for Paste { label, content } in pastes {
            let trimmed = content.trim_end();
            if collapsed.contains(content) {
                collapsed = collapsed.replacen(content, label, 1);
            } else if !trimmed.is_empty() && collapsed.ends_with(trimmed) {
                // Blanks at the end of a text do not survive everywhere.
                collapsed.truncate(collapsed.len() - trimmed.len());
                collapsed.push_str(label);
            }
        }
        collapsed
    }

    /// Where the pasted texts are in the expanded text.
    pub(super) fn expanded_ranges(&self, text: &str) -> Vec<Range<usize>> {
        let (mut ranges, mut grown) = (Vec::new(), 0_usize);
        for Found { range, content } in self.find(text) {
            if let Some(content) = content {
                let start = range.start + grown;
                ranges.push(start..start + content.len());
                grown = grown + content.len() - range.len();
            }
        }
        ranges
    }

    fn find<'a>(&'a self, text: &'a str) -> impl Iterator<Item = Found<'a>> {
        let mut from = 0;
        std::iter::from_fn(move || {
            if self.pastes.is_empty() && self.images.is_empty() {
                return None;
            }
            loop {
                let start = from + text.get(from..)?.find('[')?;
                from = start + 1;
                if let Some((len, content)) = self.marker_at_start(&text[start..]) {
                    from = start + len;
                    return Some(Found { range: start..from, content });
                }
            }
        })
    }

    /// The length of the marker that `text` begins with, and its pasted text.
    fn marker_at_start(&self, text: &str) -> Option<(usize, Option<&str>)> {
        if let Some(rest) = text.strip_prefix(PASTE) {
            let number = rest.split(' ').next()?.parse().ok()?;
            let paste = self.pastes.get(&number).filter(|paste| text.starts_with(&paste.label))?;
            return Some((paste.label.len(), Some(&paste.content)));
        }
        let number = text.strip_prefix(IMAGE_LABEL_START)?.split(']').next()?;
        // A number with leading zeros is none of ours.
        let label = image_label(number.parse().ok().filter(|number| self.images.contains(number))?);
        text.starts_with(&label).then_some((label.len(), None))
    }
}

/// What the label of every image begins with.
pub const IMAGE_LABEL_START: &str = "[image #";

/// The marker of an image in the text.
pub fn image_label(number: usize) -> String {
    format!("{IMAGE_LABEL_START}{number}]")
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
    fn images_are_markers_that_expand_to_themselves() {
        let mut markers = Markers::default();
        markers.add_image(2);
        let text = "[image #1] [image #2][image #02] [image #2";
        assert_eq!(markers.ranges(text).first(), Some(&(11..21)));
        assert_eq!(markers.ranges(text).len(), 1);
        assert_eq!(markers.expand(text), text);
        assert_eq!(markers.paste_before(text, 12), None);
    }

    #[test]
    fn pasted_text_that_came_back_is_a_marker_again() {
        let mut markers = Markers::default();
        let big = format!("{}\n", "line of text\n".repeat(20));
        let label = markers.add(&big).unwrap().to_owned();
        let expanded = markers.expand(&format!("see {label} ok {label}"));
        assert_eq!(markers.collapse(&expanded), format!("see {label} ok {big}"));
        // An editor may have removed the blank lines at the end.
        assert_eq!(markers.collapse(&format!("see {}", big.trim_end())), format!("see {label}"));
        assert_eq!(markers.collapse("see line of text"), "see line of text");
        markers.clear();
        assert_eq!(markers.collapse(&format!("{expanded} more")), format!("see {label} ok {big} more"));
        let expanded = markers.expand(&format!("é {label} {label}"));
        let ranges = markers.expanded_ranges(&format!("é {label} {label}"));
        assert_eq!(ranges.iter().map(|range| &expanded[range.clone()]).collect::<Vec<_>>(), [&big, &big]);
    }

    #[test]
    fn beginning_of_an_expanded_text_ends_within_a_paste() {
        let mut markers = Markers::default();
        let big = "é".repeat(1_001);
        let label = markers.add(&big).map(str::to_owned).unwrap();
        let text = format!("é {label} end");
        let whole = markers.expand(&text);
        for limit in [0, 1, 2, 3, 4, 1_000, 2_004, 2_005, 9_000] {
            let start = markers.expand_start(&text, limit);
            assert!(whole.starts_with(&start), "{limit}");
            assert!(start.len() >= limit.min(whole.len()), "{limit}");
        }
        assert!(markers.expand_start(&text, 100).len() < 110);
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
        let at = |byte| {
            markers
                .paste_before("a [paste #1 1001 chars][paste #1 1001 chars] b", byte)
                .map(|(range, _)| range)
        };
        assert_eq!(
            [at(1), at(2), at(9), at(23), at(44), at(45)],
            [None, Some(2..23), Some(2..23), Some(23..44), Some(23..44), Some(23..44)]
        );
    }
}
