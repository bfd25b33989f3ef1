//! Code blocks: the fence rows and the lines between, one at a time.
//!
//! Finished blocks and arriving blocks use the same
//! [`CodeBlock`], so their rows are identical.

use std::borrow::Cow;

use super::super::text::{Row, Run, WRAPPED_MARK, Wrap, keep_tabs, sanitize, width};
use super::super::theme::{Theme, Token};
use super::highlight::{CodeLines, Highlighter};
use super::render::MarkdownOptions;

/// The language word of a fence's info string: up to a space, comma or brace.
pub(super) fn language(info: &str) -> &str {
    info.trim().split([' ', '\t', ',', '{']).next().unwrap_or_default()
}

/// Whether a fence ends the code block `source`, which begins with its first fence.
pub(super) fn is_closed(source: &str) -> bool {
    let Some((first, rest)) = source.split_once('\n') else { return false };
    // Marks of quotes are in front of each line.
    let last = rest.trim_end().rsplit('\n').next().unwrap_or_default().trim_start_matches([' ', '\t', '>']);
    Fence::open(first).is_some_and(|fence| fence.closes(last))
}

/// The marks of the fence that begins a code block; those of one that is only indented are the usual ones.
pub(super) fn marks(source: &str) -> String {
    let fence = source.lines().next().and_then(Fence::open);
    fence.map_or_else(|| "```".to_owned(), |fence| fence.marks())
}

/// A code block being written, row by row.
#[derive(Debug)]
pub(super) struct CodeBlock {
    lines: CodeLines,
    width: u16,
    indent: String,
    /// The marks of the fence: the code may contain the usual ones.
    marks: String,
    lang: String,
}

impl CodeBlock {
    pub(super) fn new(
        (marks, lang): (&str, &str),
        width: u16,
        highlighter: &Highlighter,
        options: &MarkdownOptions,
    ) -> Self {
        let (marks, lang) = (marks.to_owned(), sanitize(lang).replace('\n', ""));
        Self { lines: highlighter.lines(&lang), width, indent: options.code_indent.clone(), marks, lang }
    }

    pub(super) fn open(&self, theme: &Theme, out: &mut Vec<Row>) {
        out.push(self.fence(&self.lang, theme));
    }

    pub(super) fn close(&self, theme: &Theme, out: &mut Vec<Row>) {
        out.push(self.fence("", theme));
    }

    /// The marks are a border, the language is read.
    fn fence(&self, lang: &str, theme: &Theme) -> Row {
        let marks = Run::new(&self.marks, theme.style(Token::MdCodeBlockBorder));
        let mut row = Row::from_runs([marks, Run::new(lang, theme.style(Token::Dim))]);
        row.clip(self.width);
        row
    }

    /// Appends one line of code, without its line break. Advances the highlighter.
    pub(super) fn line(&mut self, source: &str, theme: &Theme, out: &mut Vec<Row>) {
        let line = sanitize(source);
        for part in line.split('\n') {
            let runs = self.lines.next_line(part, theme);
            let before = out.len();
            self.rows(&runs, theme, out);
            if line.len() == part.len() {
                keep_tabs(&mut out[before..], source);
            }
        }
    }

    /// Appends the line that is still arriving, without advancing the highlighter.
    pub(super) fn preview(&self, line: &str, theme: &Theme, out: &mut Vec<Row>) {
        let line = sanitize(line).replace('\n', " ");
        self.rows(&self.lines.clone().next_line(&line, theme), theme, out);
    }

    /// Rows that continue a line begin with a mark, in the indent if there is room, because code may begin
    /// with blanks or with anything else by itself.
    fn rows(&self, runs: &[Run], theme: &Theme, out: &mut Vec<Row>) {
        let indent = |text: &str| Run::new(text, Default::default());
        let room = " ".repeat(width(WRAPPED_MARK));
        let before_mark = self.indent.strip_suffix(room.as_str()).unwrap_or(&self.indent);
        let wrap = Wrap {
            width: self.width,
            first: vec![indent(&self.indent)],
            rest: vec![indent(before_mark), Run::new(WRAPPED_MARK, theme.style(Token::Dim))],
        };
        out.extend(wrap.runs(runs));
    }
}

/// The line that opens a fenced block at the top level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fence {
    mark: char,
    count: usize,
    indent: usize,
    pub(super) lang: String,
}

impl Fence {
    /// Parses an opening fence: three or more marks, indented by at most three
    /// spaces, without a backtick in a backtick fence's info (`CommonMark` 4.5).
    pub(super) fn open(line: &str) -> Option<Self> {
        let rest = line.trim_start_matches(' ');
        let indent = line.len() - rest.len();
        let mark = rest.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let info = rest.trim_start_matches(mark);
        let count = rest.len() - info.len();
        if indent > 3 || count < 3 || (mark == '`' && info.contains('`')) {
            return None;
        }
        Some(Self { mark, count, indent, lang: language(info).to_owned() })
    }

    pub(super) fn marks(&self) -> String {
        self.mark.to_string().repeat(self.count)
    }

    pub(super) fn closes(&self, line: &str) -> bool {
        let rest = line.trim_start_matches(' ');
        let marks = rest.trim_start_matches(self.mark);
        line.len() - rest.len() <= 3 && rest.len() - marks.len() >= self.count && marks.trim().is_empty()
    }

    /// Whether a line that is still arriving may close the fence.
    pub(super) fn may_close(&self, line: &str) -> bool {
        line.trim_start_matches(' ').trim_end().chars().all(|c| c == self.mark)
    }

    /// A line of the content without the fence's own indentation.
    /// A tab extends to the next multiple of four columns; the rest of a split
    /// tab becomes spaces (`CommonMark` 2.2).
    pub(super) fn content<'a>(&self, line: &'a str) -> Cow<'a, str> {
        let mut column = 0;
        for (at, c) in line.char_indices() {
            let next = match c {
                _ if column >= self.indent => return Cow::Borrowed(&line[at..]),
                ' ' => column + 1,
                '\t' => column + 4 - column % 4,
                _ => return Cow::Borrowed(&line[at..]),
            };
            if next > self.indent && c == '\t' {
                return Cow::Owned(format!("{}{}", " ".repeat(next - self.indent), &line[at + 1..]));
            }
            column = next;
        }
        Cow::Borrowed("")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fences_follow_commonmark() {
        for (line, lang) in [
            ("```rust", Some("rust")),
            ("  ~~~~ py extra", Some("py")),
            ("```rust,ignore", Some("rust")),
            ("``` a`b", None),
            ("~~~ a`b", Some("a`b")),
            ("    ```", None),
            ("``", None),
            ("text", None),
        ] {
            assert_eq!(Fence::open(line).map(|fence| fence.lang), lang.map(str::to_owned), "{line:?}");
        }
        let fence = Fence::open("  ````").unwrap();
        for (line, closes) in
            [("````", true), ("  `````  ", true), ("```", false), ("````x", false), ("    ````", false)]
        {
            assert_eq!(fence.closes(line), closes, "{line:?}");
        }
        for (line, content) in
            [("   x", " x"), (" x", "x"), ("x", "x"), ("", ""), ("\tx", "  x"), ("  \tx", "\tx")]
        {
            assert_eq!(fence.content(line), content, "{line:?}");
        }
    }
}
