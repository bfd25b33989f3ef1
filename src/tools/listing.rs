//! The output of a listing tool: the lines that fit, and notes about missing ones.

use serde_json::{Map, Value, json};

use crate::agent::ToolOutput;

use super::output::{ANY_LINES, Head, MAX_BYTES, format_size};

/// Lines, limited by their bytes.
#[derive(Debug)]
pub(super) struct Listing {
    head: Head,
    notices: Vec<String>,
    details: Map<String, Value>,
    lines_cut: Option<String>,
    passed_over: Option<String>,
}

impl Default for Listing {
    fn default() -> Self {
        Self {
            head: Head::new(ANY_LINES, MAX_BYTES),
            notices: Vec::new(),
            details: Map::new(),
            lines_cut: None,
            passed_over: None,
        }
    }
}

impl Listing {
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
        self.passed_over = Some(notice);
    }

    pub(super) fn finish(self) -> ToolOutput {
        let Self { head, mut notices, mut details, lines_cut, passed_over } = self;
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
        let text = if notices.is_empty() {
            truncation.content
        } else {
            format!("{}\n\n[{}]", truncation.content, notices.join(". "))
        };
        let details = (!details.is_empty()).then_some(Value::Object(details));
        ToolOutput { details, ..ToolOutput::text(text) }
    }
}
