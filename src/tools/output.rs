//! Limits the output of tools to a size a model can read.
//!
//! [`Head`] keeps the beginning (files, searches), [`Tail`] the end (commands)
//! and, in a file, as much of the whole as [`super::spill`] allows. Both accept output
//! in pieces, use bounded memory, and count dropped output.

use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::util::text_decoder::TextDecoder;

use super::overwritten::OverwrittenLines;
use super::spill::{SpillFile, SpillLimits};

/// Maximum number of lines.
pub const MAX_LINES: u64 = 2000;

/// Maximum number of bytes.
pub const MAX_BYTES: usize = 50 * 1024;

/// No limit of lines: the largest integer that every JSON parser
/// represents exactly.
pub const ANY_LINES: u64 = (1 << 53) - 1;

/// The shown part of an output and its total size; written to a result's
/// details under `truncation`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Truncation {
    /// What is left of the output.
    pub content: String,
    /// Whether anything was cut.
    pub truncated: bool,
    /// Which limit cut it.
    pub truncated_by: Option<TruncatedBy>,
    /// Lines of the whole output.
    pub total_lines: u64,
    /// Bytes of the whole output.
    pub total_bytes: u64,
    /// Lines of `content`.
    pub output_lines: u64,
    /// Bytes of `content`.
    pub output_bytes: u64,
    /// Only the end of the last line is shown, because the line exceeds the limit.
    pub last_line_partial: bool,
    /// Nothing is shown, because the first line exceeds the limit.
    pub first_line_exceeds_limit: bool,
    /// The limit in lines.
    pub max_lines: u64,
    /// The limit in bytes.
    pub max_bytes: u64,
}

/// A limit of output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TruncatedBy {
    /// Too many lines.
    Lines,
    /// Too many bytes.
    Bytes,
}

/// The first complete lines of `text` within the limits.
pub fn truncate_head(text: &str, max_lines: u64, max_bytes: usize) -> Truncation {
    let mut head = Head::new(max_lines, max_bytes);
    head.push(text);
    head.finish()
}

/// The last complete lines of `text` within the limits; if the last line
/// exceeds them, its end.
pub fn truncate_tail(text: &str, max_lines: u64, max_bytes: usize) -> Truncation {
    let mut counts = Counts::default();
    counts.add(text);
    tail_of(text, &counts, max_lines, max_bytes)
}

/// A number of bytes for display: `512B`, `50.0KB`, `1.5MB`; 1 KB is 1024 bytes.
pub fn format_size(bytes: u64) -> String {
    const KB: f64 = 1024.0;
    let size = bytes as f64;
    if size < KB {
        format!("{bytes}B")
    } else if size < KB * KB {
        format!("{:.1}KB", size / KB)
    } else {
        format!("{:.1}MB", size / (KB * KB))
    }
}

/// Collects the beginning of some output.
#[derive(Debug)]
pub struct Head {
    kept: String,
    counts: Counts,
    first_line_bytes: u64,
    max_lines: u64,
    max_bytes: usize,
}

impl Head {
    /// An empty head with these limits.
    pub fn new(max_lines: u64, max_bytes: usize) -> Self {
        Self { kept: String::new(), counts: Counts::default(), first_line_bytes: 0, max_lines, max_bytes }
    }

    /// Adds `text`; text beyond the limit is only counted.
    pub fn push(&mut self, text: &str) {
        if self.counts.newlines == 0 {
            let first_line = text.split('\n').next().unwrap_or_default();
            self.first_line_bytes += first_line.len() as u64;
        }
        self.counts.add(text);
        // One byte more than the limit, so that `finish` detects truncation.
        let room = (self.max_bytes + 1).saturating_sub(self.kept.len());
        self.kept.push_str(&text[..text.ceil_char_boundary(room.min(text.len()))]);
    }

    /// Adds `line` as a separate line.
    pub fn push_line(&mut self, line: &str) {
        if self.counts.bytes > 0 {
            self.push("\n");
        }
        self.push(line);
    }

    /// Length of the first line in bytes, without its line break.
    pub fn first_line_bytes(&self) -> u64 {
        self.first_line_bytes
    }

    /// The head, and what was cut.
    pub fn finish(self) -> Truncation {
        let Self { kept, counts, first_line_bytes, max_lines, max_bytes } = self;
        if counts.fit(max_lines, max_bytes) {
            return counts.whole(kept, max_lines, max_bytes);
        }
        let mut end = 0;
        let mut output_lines = 0;
        let mut truncated_by = TruncatedBy::Lines;
        for line in kept.split('\n') {
            if output_lines == max_lines {
                break;
            }
            let start = if output_lines == 0 { 0 } else { end + 1 };
            if start + line.len() > max_bytes {
                truncated_by = TruncatedBy::Bytes;
                break;
            }
            end = start + line.len();
            output_lines += 1;
        }
        let mut content = kept;
        content.truncate(end);
        Truncation {
            output_bytes: content.len() as u64,
            content,
            truncated: true,
            truncated_by: Some(truncated_by),
            total_lines: counts.lines(),
            total_bytes: counts.bytes,
            output_lines,
            last_line_partial: false,
            first_line_exceeds_limit: first_line_bytes > max_bytes as u64,
            max_lines,
            max_bytes: max_bytes as u64,
        }
    }
}

/// Collects the end of a command's output, and the whole in a file once it
/// exceeds the shown part.
#[derive(Debug)]
pub struct Tail {
    decoder: TextDecoder,
    lines: OverwrittenLines,
    /// The end of the output: the shown part and a margin.
    recent: String,
    counts: Counts,
    /// The complete output, until the file is created.
    unspilled: Vec<u8>,
    spill: Spill,
    limits: SpillLimits,
    temp_dir: PathBuf,
}

impl Tail {
    /// Empty; the file will be created in `temp_dir`.
    pub fn new(temp_dir: &Path) -> Self {
        Self::with_limits(temp_dir, SpillLimits::default())
    }

    pub(super) fn with_limits(temp_dir: &Path, limits: SpillLimits) -> Self {
        Self {
            limits,
            decoder: TextDecoder::default(),
            lines: OverwrittenLines::default(),
            recent: String::new(),
            counts: Counts::default(),
            unspilled: Vec::new(),
            spill: Spill::NotNeeded,
            temp_dir: temp_dir.to_owned(),
        }
    }

    /// Adds output; a character may be split between calls. Once there is a file
    /// this writes to it, into the page cache as a rule.
    pub fn push(&mut self, bytes: &[u8]) {
        let text = self.decoder.decode(bytes);
        let ended = self.lines.push(&text);
        self.add(&ended);
        if matches!(self.spill, Spill::NotNeeded) {
            self.unspilled.extend_from_slice(bytes);
            self.spill_if_needed();
        } else {
            self.write(|file| file.push(bytes));
        }
    }

    /// Declares the output complete: a character that was cut off becomes U+FFFD, and
    /// the file gets the end of the output.
    pub fn close(&mut self) {
        let text = self.decoder.finish();
        let mut ended = self.lines.push(&text);
        ended.push_str(&self.lines.finish());
        self.add(&ended);
        if matches!(self.spill, Spill::NotNeeded) {
            self.spill_if_needed();
        }
        self.write(SpillFile::close);
    }

    /// Runs `write` on the file, if there is one. A failure affects only the file.
    fn write(&mut self, write: impl FnOnce(&mut SpillFile) -> io::Result<()>) {
        if let Spill::File(file) = &mut self.spill
            && let Err(error) = write(file)
            && let Spill::File(file) = std::mem::replace(&mut self.spill, Spill::Failed(error.to_string()))
        {
            file.remove();
        }
    }

    /// The shown part of the output so far.
    pub fn truncation(&self) -> Truncation {
        let current = self.lines.current();
        if current.is_empty() {
            return tail_of(&self.recent, &self.counts, MAX_LINES, MAX_BYTES);
        }
        let mut counts = self.counts.clone();
        counts.add(&current);
        let recent = [self.recent.as_str(), &current].concat();
        tail_of(&recent, &counts, MAX_LINES, MAX_BYTES)
    }

    /// The file with the complete output, or most of it, if there is one.
    pub fn full_output_path(&self) -> Option<&Path> {
        match &self.spill {
            Spill::File(file) => Some(file.path()),
            Spill::NotNeeded | Spill::Failed(_) => None,
        }
    }

    /// How many bytes of the middle are missing in that file.
    pub fn n_left_out(&self) -> u64 {
        match &self.spill {
            Spill::File(file) => file.n_left_out(),
            Spill::NotNeeded | Spill::Failed(_) => 0,
        }
    }

    /// A line that describes the missing output to the model; `None` if nothing is missing.
    pub fn notice(&self, truncation: &Truncation) -> Option<String> {
        let truncated_by = truncation.truncated_by?;
        let last = truncation.total_lines;
        let full = match &self.spill {
            Spill::File(file) => format!("{}: {}", saved_output(file.n_left_out()), file.path().display()),
            Spill::Failed(error) => format!("The full output could not be saved: {error}"),
            Spill::NotNeeded => "The full output was not saved".to_owned(),
        };
        if truncation.last_line_partial {
            let shown = format_size(truncation.output_bytes);
            let line = format_size(self.counts.last_line_bytes());
            return Some(format!("[Showing last {shown} of line {last} (line is {line}). {full}]"));
        }
        let first = last.saturating_sub(truncation.output_lines) + 1;
        let limit = match truncated_by {
            TruncatedBy::Lines => String::new(),
            TruncatedBy::Bytes => format!(" ({} limit)", format_size(truncation.max_bytes)),
        };
        Some(format!("[Showing lines {first}-{last} of {last}{limit}. {full}]"))
    }

    fn add(&mut self, text: &str) {
        self.counts.add(text);
        self.recent.push_str(text);
        // Truncating only occasionally keeps the cost per byte constant.
        if self.recent.len() > 4 * MAX_BYTES {
            let start = self.recent.ceil_char_boundary(self.recent.len() - 2 * MAX_BYTES);
            self.recent.drain(..start);
        }
    }

    fn spill_if_needed(&mut self) {
        if self.counts.fit(MAX_LINES, MAX_BYTES) {
            return;
        }
        let bytes = std::mem::take(&mut self.unspilled);
        self.spill = match SpillFile::create(&self.temp_dir, self.limits) {
            Ok(file) => Spill::File(file),
            Err(error) => Spill::Failed(error.to_string()),
        };
        self.write(|file| file.push(&bytes));
    }
}

/// What a file with saved output has, if so many bytes of the middle are missing.
pub fn saved_output(n_left_out: u64) -> String {
    match n_left_out {
        0 => "Full output".to_owned(),
        n_bytes => format!("Output without {} in the middle", format_size(n_bytes)),
    }
}

#[derive(Debug)]
enum Spill {
    NotNeeded,
    File(SpillFile),
    Failed(String),
}

#[derive(Debug, Clone, Default)]
struct Counts {
    bytes: u64,
    newlines: u64,
    /// Bytes since the last line break.
    open_line_bytes: u64,
    /// Length of the last complete line in bytes.
    closed_line_bytes: u64,
}

impl Counts {
    fn add(&mut self, text: &str) {
        self.bytes += text.len() as u64;
        let mut pieces = text.split('\n');
        self.open_line_bytes += pieces.next().unwrap_or_default().len() as u64;
        for piece in pieces {
            self.newlines += 1;
            self.closed_line_bytes = self.open_line_bytes;
            self.open_line_bytes = piece.len() as u64;
        }
    }

    /// A line break at the end does not begin another line.
    fn lines(&self) -> u64 {
        self.newlines + u64::from(self.open_line_bytes > 0)
    }

    fn last_line_bytes(&self) -> u64 {
        if self.open_line_bytes > 0 { self.open_line_bytes } else { self.closed_line_bytes }
    }

    fn fit(&self, max_lines: u64, max_bytes: usize) -> bool {
        self.lines() <= max_lines && self.bytes <= max_bytes as u64
    }

    fn whole(&self, content: String, max_lines: u64, max_bytes: usize) -> Truncation {
        Truncation {
            content,
            truncated: false,
            truncated_by: None,
            total_lines: self.lines(),
            total_bytes: self.bytes,
            output_lines: self.lines(),
            output_bytes: self.bytes,
            last_line_partial: false,
            first_line_exceeds_limit: false,
            max_lines,
            max_bytes: max_bytes as u64,
        }
    }
}

/// The end of an output; `recent` contains its last part and `counts` the totals.
///
/// If `recent` does not include the beginning, it is longer than `max_bytes`.
fn tail_of(recent: &str, counts: &Counts, max_lines: u64, max_bytes: usize) -> Truncation {
    if counts.fit(max_lines, max_bytes) {
        return counts.whole(recent.to_owned(), max_lines, max_bytes);
    }
    let text = recent.strip_suffix('\n').unwrap_or(recent);
    let mut start = text.len();
    let mut output_lines = 0;
    let mut truncated_by = TruncatedBy::Lines;
    let mut last_line_partial = false;
    for line in text.rsplit('\n') {
        if output_lines == max_lines {
            break;
        }
        let line_start = if output_lines == 0 { start - line.len() } else { start - 1 - line.len() };
        if text.len() - line_start > max_bytes {
            truncated_by = TruncatedBy::Bytes;
            if output_lines == 0 {
                start = text.ceil_char_boundary(text.len() - max_bytes);
                output_lines = 1;
                last_line_partial = true;
            }
            break;
        }
        start = line_start;
        output_lines += 1;
    }
    let content = text[start..].to_owned();
    Truncation {
        output_bytes: content.len() as u64,
        content,
        truncated: true,
        truncated_by: Some(truncated_by),
        total_lines: counts.lines(),
        total_bytes: counts.bytes,
        output_lines,
        last_line_partial,
        first_line_exceeds_limit: false,
        max_lines,
        max_bytes: max_bytes as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The shown part of `text` and the limit that applied, with 3 lines and 10 bytes.
    #[track_caller]
    fn check_head(text: &str, content: &str, by: Option<TruncatedBy>, total: (u64, u64)) {
        let whole = truncate_head(text, 3, 10);
        assert_eq!((whole.content.as_str(), whole.truncated_by), (content, by));
        assert_eq!((whole.total_lines, whole.total_bytes), total);
        assert_eq!(whole.output_bytes, content.len() as u64);
        let mut pieces = Head::new(3, 10);
        for char in text.chars() {
            pieces.push(char.encode_utf8(&mut [0; 4]));
        }
        assert_eq!(pieces.finish(), whole, "piece by piece");
    }

    #[test]
    fn head_keeps_whole_lines_from_the_start() {
        check_head("", "", None, (0, 0));
        check_head("a\nb\nc\n", "a\nb\nc\n", None, (3, 6));
        check_head("a\nb\nc\nd", "a\nb\nc", Some(TruncatedBy::Lines), (4, 7));
        check_head("12345\n7890", "12345\n7890", None, (2, 10));
        check_head("12345\n78901", "12345", Some(TruncatedBy::Bytes), (2, 11));
        check_head("1234\n6789\n", "1234\n6789\n", None, (2, 10));
        check_head("1234\n67890\n", "1234\n67890", Some(TruncatedBy::Bytes), (2, 11));
        check_head("\n\n\n\n", "\n\n", Some(TruncatedBy::Lines), (4, 4));
        check_head("12345678ü\na", "12345678ü", Some(TruncatedBy::Bytes), (2, 12));
    }

    #[test]
    fn head_shows_nothing_of_a_first_line_that_is_too_long() {
        check_head("1234567890a\nb", "", Some(TruncatedBy::Bytes), (2, 13));
        let truncation = truncate_head("123456789üü", 3, 10);
        assert!(truncation.first_line_exceeds_limit);
        assert_eq!(truncation.output_lines, 0);
    }

    #[track_caller]
    fn check_tail(text: &str, content: &str, by: Option<TruncatedBy>, partial: bool) {
        let truncation = truncate_tail(text, 3, 10);
        assert_eq!((truncation.content.as_str(), truncation.truncated_by), (content, by));
        assert_eq!(truncation.last_line_partial, partial);
        assert_eq!(
            truncation.output_lines,
            content.split('\n').count() as u64 * u64::from(truncation.truncated)
                + truncation.total_lines * u64::from(!truncation.truncated)
        );
    }

    #[test]
    fn tail_keeps_whole_lines_from_the_end() {
        check_tail("", "", None, false);
        check_tail("a\nb\nc\n", "a\nb\nc\n", None, false);
        check_tail("a\nb\nc\nd\n", "b\nc\nd", Some(TruncatedBy::Lines), false);
        check_tail("abcdef\n12345\n789", "12345\n789", Some(TruncatedBy::Bytes), false);
        check_tail("a\n1234567890", "1234567890", Some(TruncatedBy::Bytes), false);
        check_tail("a\n1234567890\n", "1234567890", Some(TruncatedBy::Bytes), false);
    }

    #[test]
    fn tail_cuts_a_last_line_that_is_too_long_between_characters() {
        check_tail("a\n12345678901", "2345678901", Some(TruncatedBy::Bytes), true);
        check_tail("üüüüüüa", "üüüüa", Some(TruncatedBy::Bytes), true);
    }

    #[test]
    fn sizes_are_written_for_people() {
        let check = |bytes: u64, expected: &str| assert_eq!(format_size(bytes), expected);
        check(0, "0B");
        check(1023, "1023B");
        check(1024, "1.0KB");
        check(51200, "50.0KB");
        check(3 * 1024 * 1024 / 2, "1.5MB");
    }

    #[test]
    fn output_within_the_limits_needs_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let mut tail = Tail::new(folder.path());
        tail.push("x\n".repeat(2000).as_bytes());
        tail.close();
        assert!(!tail.truncation().truncated);
        assert_eq!(tail.full_output_path(), None);
        assert_eq!(tail.notice(&tail.truncation()), None);
    }

    #[test]
    fn longer_output_is_kept_in_a_private_file() {
        let folder = tempfile::tempdir().unwrap();
        let mut tail = Tail::new(folder.path());
        let mut all = String::new();
        for n in 0..20_000 {
            let line = format!("line {n} ü\n");
            for byte in line.bytes() {
                tail.push(&[byte]);
            }
            all.push_str(&line);
        }
        tail.close();

        let path = tail.full_output_path().unwrap();
        assert_eq!(std::fs::read_to_string(path).unwrap(), all);
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
        }
        let truncation = tail.truncation();
        assert_eq!(truncation, truncate_tail(&all, MAX_LINES, MAX_BYTES));
        assert_eq!(truncation.output_lines, 2000);
        assert_eq!(
            tail.notice(&truncation).unwrap(),
            format!("[Showing lines 18001-20000 of 20000. Full output: {}]", path.display()),
        );
        assert!(tail.recent.len() <= 4 * MAX_BYTES, "memory is bounded");
    }

    #[test]
    fn an_endless_line_shows_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let mut tail = Tail::new(folder.path());
        tail.push(b"first\n");
        for _ in 0..600 {
            tail.push("y".repeat(1024).as_bytes());
        }
        tail.push(b"\n");
        let path = tail.full_output_path().unwrap().display().to_string();
        assert_eq!(
            tail.notice(&tail.truncation()).unwrap(),
            format!("[Showing last 50.0KB of line 2 (line is 600.0KB). Full output: {path}]"),
        );
    }

    #[test]
    fn what_the_file_lacks_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let limits = SpillLimits { head_bytes: 3_000, tail_bytes: 1_000 };
        let mut tail = Tail::with_limits(folder.path(), limits);
        let all: String = (0..20_000).map(|n| format!("line {n}\n")).collect();
        tail.push(all.as_bytes());
        tail.close();
        let path = tail.full_output_path().unwrap();
        let kept = std::fs::read_to_string(path).unwrap();
        assert!(kept.starts_with(&all[..3_000]) && kept.ends_with(&all[all.len() - 1_000..]));
        let left_out = all.len() - 4_000;
        let size = format_size(left_out as u64);
        assert!(kept.contains(&format!("[{left_out} bytes ({size}) of output omitted]")));
        assert_eq!(
            tail.notice(&tail.truncation()).unwrap(),
            format!(
                "[Showing lines 18001-20000 of 20000. Output without {size} in the middle: {}]",
                path.display()
            ),
        );
    }

    #[test]
    fn a_folder_that_cannot_be_written_loses_only_the_file() {
        let mut tail = Tail::new(Path::new("/nonexistent/folder"));
        tail.push("x\n".repeat(3000).as_bytes());
        let notice = tail.notice(&tail.truncation()).unwrap();
        assert!(notice.contains("could not be saved"), "{notice}");
    }
}
