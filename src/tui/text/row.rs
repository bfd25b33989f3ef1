//! Rows: one line of the screen, ready to paint, and the runs they are made of.

use std::ops::Range;
use std::sync::Arc;
use std::sync::LazyLock;

use percent_encoding::{CONTROLS, utf8_percent_encode};
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use crate::util::visible::{Replaced, is_all_visible};

use super::copy::{CopyRule, ReplacedCells};
use super::picture::RowPicture;
use super::sanitize::visible_replaced;
use super::width::{graphemes, width};

/// The target of a link: an `http`, `https`, `mailto` or `file` URL without
/// control characters. Other schemes are rejected, because a click passes the URL
/// to the desktop.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinkTarget(Arc<str>);

impl LinkTarget {
    /// `None` if the scheme is not allowed, or the URL contains characters that cannot be seen
    /// or could end the escape sequence around it.
    pub fn new(url: &str) -> Option<Self> {
        const SCHEMES: [&str; 4] = ["http://", "https://", "file://", "mailto:"];
        const MAX_BYTES: usize = 2_000;
        let known = SCHEMES
            .iter()
            .any(|scheme| url.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme)));
        let clean = is_all_visible(url) && !url.chars().any(char::is_whitespace);
        // Terminals expect addresses in ASCII:
        // https://gist.github.com/egmontkob/eb114294efbcd5adb1944c9f3cb5feda#encodings
        let encoded = || Self(utf8_percent_encode(url, CONTROLS).to_string().into());
        (known && clean && url.len() <= MAX_BYTES).then(encoded)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Text to be judged, as runs: what cannot be seen is spelt out and has the style `mark`.
pub fn visible_runs(text: &str, style: Style, mark: Style) -> Vec<Run> {
    let (shown, replaced) = visible_replaced(text);
    let mut runs = Vec::new();
    let mut start = 0;
    for Replaced { range, source } in replaced {
        runs.push(Run::new(&shown[start..range.start], style));
        let style = if source == '\t' { style } else { mark };
        runs.push(Run { source: Some(source), ..Run::new(&shown[range.clone()], style) });
        start = range.end;
    }
    runs.push(Run::new(&shown[start..], style));
    runs
}

/// A piece of text with one style, before it is laid out.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Run {
    pub text: String,
    pub style: Style,
    pub link: Option<LinkTarget>,
    /// The character that the text, which is ASCII, is shown in place of.
    pub source: Option<char>,
}

impl Run {
    pub fn new(text: impl Into<String>, style: Style) -> Self {
        Self { text: text.into(), style, link: None, source: None }
    }

    pub fn linked(text: impl Into<String>, style: Style, link: LinkTarget) -> Self {
        Self { text: text.into(), style, link: Some(link), source: None }
    }
}

impl From<Span<'_>> for Run {
    fn from(span: Span<'_>) -> Self {
        Self::new(span.content, span.style)
    }
}

/// Where a prompt begins or ends, for terminals that go from prompt to prompt (OSC 133).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptMark {
    /// The first row of a prompt.
    Begin,
    /// The last row of a prompt; the answer follows.
    End,
}

/// One row of the screen. The code that creates a row keeps it within the requested
/// width; the painter clips wider rows.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Row {
    pub line: Line<'static>,
    /// Cell ranges of links; ascending, not overlapping.
    pub links: Vec<(Range<u16>, LinkTarget)>,
    pub mark: Option<PromptMark>,
    /// The part of a picture over it.
    pub picture: Option<RowPicture>,
    /// How its text is copied.
    pub copy: CopyRule,
}

impl Row {
    /// A row without text.
    pub fn blank() -> &'static Self {
        static BLANK: LazyLock<Row> = LazyLock::new(Row::default);
        &BLANK
    }
}

impl AsRef<Self> for Row {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl Row {
    pub fn new(line: impl Into<Line<'static>>) -> Self {
        Self { line: line.into(), ..Self::default() }
    }

    pub fn styled(text: impl Into<String>, style: Style) -> Self {
        Self::new(Span::styled(text.into(), style))
    }

    /// The row of these runs side by side.
    pub fn from_runs(runs: impl IntoIterator<Item = Run>) -> Self {
        let mut row = Self::default();
        for run in runs {
            row.push(run);
        }
        row
    }

    /// Width in cells.
    pub fn width(&self) -> usize {
        self.line.spans.iter().map(|span| width(&span.content)).sum()
    }

    /// The text without styles.
    pub fn text(&self) -> String {
        self.line.spans.iter().map(|span| span.content.as_ref()).collect()
    }

    pub fn push(&mut self, run: Run) {
        if run.text.is_empty() {
            return;
        }
        self.copy.exact = None;
        if let Some(source) = run.source {
            let start = cells(self.width());
            let columns = start..start.saturating_add(cells(run.text.len()));
            self.copy.replaced.push(ReplacedCells { columns, source: Some(source) });
        }
        if let Some(link) = run.link {
            let start = cells(self.width());
            let end = start.saturating_add(cells(width(&run.text)));
            match self.links.last_mut() {
                Some((range, target)) if *target == link && range.end == start => range.end = end,
                _ => self.links.push((start..end, link)),
            }
        }
        match self.line.spans.last_mut() {
            Some(last) if last.style == run.style => last.content.to_mut().push_str(&run.text),
            _ => self.line.spans.push(Span::styled(run.text, run.style)),
        }
    }

    /// Appends another row on the right.
    pub fn append(&mut self, other: Self) {
        self.copy.exact = None;
        let by = cells(self.width());
        let moved = other
            .links
            .into_iter()
            .map(|(range, link)| (range.start.saturating_add(by)..range.end.saturating_add(by), link));
        self.links.extend(moved);
        let style = other.line.style;
        self.line.spans.extend(other.line.spans.into_iter().map(|mut span| {
            span.style = style.patch(span.style);
            span
        }));
    }

    /// Prepends `text`, which is not copied, and shifts the links.
    pub fn indent(&mut self, text: impl Into<String>, style: Style) {
        let text = text.into();
        if text.is_empty() {
            return;
        }
        let by = cells(width(&text));
        for (range, _) in &mut self.links {
            *range = range.start.saturating_add(by)..range.end.saturating_add(by);
        }
        if let Some(picture) = &mut self.picture {
            picture.column = picture.column.saturating_add(by);
        }
        self.copy.shift(by);
        // Growing doubles the room, which rows of a transcript would keep for as long as they live.
        self.line.spans.reserve_exact(1);
        self.line.spans.insert(0, Span::styled(text, style));
    }

    /// Prepends `text`; a line that is copied from its beginning begins with `copied` instead.
    pub fn prefix(&mut self, text: impl Into<String>, style: Style, copied: &str) {
        self.indent(text, style);
        self.copy.prefix = [copied, &self.copy.prefix].concat().into();
    }

    /// Puts `prefix` in front of the other lines of a text that is copied instead of the row.
    pub fn prefix_copied_lines(&mut self, prefix: &str) {
        let Some(text) = self.copy.instead.as_deref().filter(|text| text.contains('\n')) else { return };
        let is_blank = prefix.trim().is_empty();
        let lines: Vec<String> = text
            .split('\n')
            .enumerate()
            .map(|(n, line)| match n == 0 || is_blank && line.is_empty() {
                true => line.to_owned(),
                false => [prefix, line].concat(),
            })
            .collect();
        self.copy.instead = Some(lines.join("\n").into());
    }

    /// Fills up to `to_width` cells with spaces of `style`.
    pub fn pad(&mut self, to_width: u16, style: Style) {
        let missing = usize::from(to_width).saturating_sub(self.width());
        if missing > 0 {
            self.copy.fill = self.copy.fill.saturating_add(cells(missing));
            self.line.spans.push(Span::styled(" ".repeat(missing), style));
        }
    }

    /// Applies `style` below every span: properties that a span does not set come from it.
    pub fn underlay(&mut self, style: Style) {
        for span in &mut self.line.spans {
            span.style = style.patch(span.style);
        }
    }

    /// Applies `style` over every span.
    pub fn overlay(&mut self, style: Style) {
        for span in &mut self.line.spans {
            span.style = span.style.patch(style);
        }
    }

    /// Keeps at most `max_width` cells, cut between clusters.
    pub fn clip(&mut self, max_width: u16) {
        let before = self.width();
        let mut left = usize::from(max_width);
        let mut kept = Vec::with_capacity(self.line.spans.len());
        for mut span in self.line.spans.drain(..) {
            let mut end = 0;
            let mut full = false;
            for (grapheme, cells) in graphemes(&span.content) {
                if cells > left {
                    full = true;
                    break;
                }
                left -= cells;
                end += grapheme.len();
            }
            if full {
                span.content = span.content.get(..end).unwrap_or_default().to_owned().into();
            }
            if !span.content.is_empty() {
                kept.push(span);
            }
            if full {
                break;
            }
        }
        self.line.spans = kept;
        let is_whole =
            |picture: &RowPicture| picture.column.saturating_add(picture.key.size.columns) <= max_width;
        self.picture = self.picture.filter(is_whole);
        let width = cells(self.width());
        if usize::from(width) < before {
            self.copy.exact = None;
        }
        self.copy.fill = self.copy.fill.saturating_sub(cells(before).saturating_sub(width));
        self.links.retain_mut(|(range, _)| {
            range.end = range.end.min(width);
            range.start < range.end
        });
    }
}

impl From<Line<'static>> for Row {
    fn from(line: Line<'static>) -> Self {
        Self::new(line)
    }
}

impl From<Span<'static>> for Row {
    fn from(span: Span<'static>) -> Self {
        Self::new(span)
    }
}

/// A width, saturated.
pub(super) fn cells(width: usize) -> u16 {
    u16::try_from(width).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_targets_that_could_run_or_escape() {
        for (url, allowed) in [
            ("https://example.com/a?b=c#d", true),
            ("HTTPS://EXAMPLE.com", true),
            ("file:///tmp/a.txt", true),
            ("javascript:alert(1)", false),
            ("https://a\u{7}b", false),
            ("https://a\u{9c}b", false),
            ("https://a b", false),
            ("héé", false),
            ("", false),
        ] {
            assert_eq!(LinkTarget::new(url).is_some(), allowed, "{url:?}");
        }
    }

    #[test]
    fn targets_are_ascii() {
        let target = LinkTarget::new("https://a.b/终?c=%20&d").unwrap();
        assert_eq!(target.as_str(), "https://a.b/%E7%BB%88?c=%20&d");
    }

    #[test]
    fn links_follow_their_text() {
        let link = LinkTarget::new("https://a.b").unwrap();
        let mut row = Row::from_runs([
            Run::new("see ", Style::new()),
            Run::linked("世界", Style::new().bold(), link.clone()),
            Run::linked("!", Style::new(), link.clone()),
        ]);
        assert_eq!(row.links, [(4..9, link.clone())]);
        row.indent("> ", Style::new());
        assert_eq!(row.links, [(6..11, link.clone())]);
        row.clip(9);
        assert_eq!((row.text().as_str(), row.links), ("> see 世", vec![(6..8, link)]));
    }
}
