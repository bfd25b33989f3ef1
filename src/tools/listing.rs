//! The output of a listing tool: the lines that fit, and notes about missing ones.

use serde_json::{Map, Value, json};

use crate::agent::ToolOutput;

use super::output::{ANY_LINES, Head, MAX_BYTES, format_size};
use super::path::FoundPath;

/// Lines, limited by their bytes.
#[derive(Debug)]
pub(super) struct Listing {
    head: Head,
    notices: Vec<String>,
    details: Map<String, Value>,
    lines_cut: Option<String>,
    passed_over: Vec<String>,
    /// Names the directory if it is not the one that was asked for.
    place: Option<String>,
}

impl Listing {
    /// A listing of `root`, or of what is in there.
    pub(super) fn of(root: &FoundPath) -> Self {
        Self {
            head: Head::new(ANY_LINES, MAX_BYTES),
            notices: Vec::new(),
            details: Map::new(),
            lines_cut: None,
            passed_over: Vec::new(),
            place: root.note(),
        }
    }

    pub(super) fn push(&mut self, line: &str) {
        self.head.push_line(line);
    }

    /// Adds a note that there is more than the requested `limit`; `key` is
    /// the corresponding field of the details.
    pub(super) fn limit_reached(&mut self, key: &str, limit: u64, notice: String) {
        self.details.insert(key.to_owned(), json!(limit));
        self.notices.push(notice);
    }

    /// Adds a note that some lines are truncated.
    pub(super) fn lines_cut(&mut self, notice: String) {
        self.lines_cut = Some(notice);
    }

    /// Adds a note about skipped items.
    pub(super) fn passed_over(&mut self, notice: String) {
        self.passed_over.push(notice);
    }

    /// The output if there is nothing to list, with the notes about skipped items.
    pub(super) fn empty(self, text: &str) -> ToolOutput {
        let notes = self.passed_over.iter().map(|note| format!("[{note}]")).chain(self.place);
        let parts: Vec<String> = std::iter::once(text.to_owned()).chain(notes).collect();
        ToolOutput::text(parts.join("\n\n"))
    }

    pub(super) fn finish(self) -> ToolOutput {
        let Self { head, mut notices, mut details, lines_cut, passed_over, place } = self;
        let truncation = head.finish();
        if truncation.truncated {
            notices.push(format!("{} limit reached", format_size(truncation.max_bytes)));
            details.insert("truncation".to_owned(), json!(truncation));
        }
        if let Some(notice) = lines_cut {
            notices.push(notice);
            details.insert("linesTruncated".to_owned(), json!(true));
        }
        notices.extend(passed_over);
        let mut text = truncation.content;
        if !notices.is_empty() {
            text.push_str(&["\n\n[", &notices.join(". "), "]"].concat());
        }
        if let Some(place) = place {
            text.push_str("\n\n");
            text.push_str(&place);
        }
        let details = (!details.is_empty()).then_some(Value::Object(details));
        ToolOutput { details, ..ToolOutput::text(text) }
    }
}
