//! Reads Markdown as a person would: without the marks of its formatting.
//!
//! Works line by line, because an answer is read as it arrives. Code and tables keep their characters, and
//! comments of HTML are left out, as on the screen. A line is judged by itself and what came before it: a
//! line of a table is one that begins with `|`, and indented lines are code only outside of lists. Only lines
//! of a paragraph whose last one ends with a backslash, or which have a mark that the next line may close, wait
//! for that line.

use std::ops::Range;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::util::flanks::{Marked, without_marks as without_parser_marks};

/// Columns of indentation that make a line code.
const CODE_INDENT: usize = 4;
/// Lines of a paragraph that wait at most for the end of a mark.
const MAX_HELD: usize = 8;

/// Reads the lines of one text.
#[derive(Debug, Default)]
pub(super) struct MarkdownReader {
    /// The block of code that the next line is in.
    fence: Option<Fence>,
    /// Whether an indented line belongs to a list.
    in_list: bool,
    /// Whether the line before was running text, which an indented line continues.
    in_text: bool,
    /// The comment that the next line is in.
    comment: Option<Comment>,
    /// Lines of a paragraph that wait for the next one.
    held: Vec<String>,
}

/// Where a comment of several lines began.
#[derive(Debug)]
struct Comment {
    n_quotes: usize,
    is_in_item: bool,
}

/// How a block of code began.
#[derive(Debug)]
struct Fence {
    /// The marks that end it.
    marks: String,
    /// In how many quotes it is.
    n_quotes: usize,
    /// The column of the item it is in; of the fence itself, if that is not known.
    column: usize,
}

impl MarkdownReader {
    pub(super) fn lines(&mut self, lines: Vec<String>) -> Vec<String> {
        let mut read = Vec::new();
        for line in lines {
            if !self.held.is_empty() && !continues(&self.held[0], &line) {
                self.release(&mut read);
            }
            if self.held.is_empty() && !self.may_wait(&line) {
                self.line(line, &mut read);
                continue;
            }
            self.held.push(line);
            if self.held.len() >= MAX_HELD || !is_open(&joined(&self.held)) {
                self.release(&mut read);
            }
        }
        read
    }

    /// Whether a line is running text.
    fn may_wait(&self, line: &str) -> bool {
        let marks = &line[..line.len() - without_block_marks(line).len()];
        let text = &line[marks.len()..];
        let is_code = indent(line) >= CODE_INDENT && !self.in_list && !self.in_text;
        let is_inside = self.fence.is_some() || self.comment.is_some() || is_code;
        let is_block =
            text.is_empty() || marks.contains('#') || text.starts_with('|') || text.starts_with('<');
        !is_inside && !is_block && opened_fence(line, self.in_list).is_none()
    }

    /// Reads the lines that waited, together if they are the lines of one paragraph.
    fn release(&mut self, read: &mut Vec<String>) {
        let held = std::mem::take(&mut self.held);
        let texts = match &held[..] {
            [_, _, ..] => paragraph(&joined(&held)).filter(|texts| texts.len() == held.len()),
            _ => None,
        };
        let Some(texts) = texts else {
            return held.into_iter().for_each(|line| self.line(line, read));
        };
        for (line, text) in held.iter().zip(texts) {
            // It is no code, and lines after it are judged by it.
            self.is_code(line);
            let marks = &line[..line.len() - without_block_marks(line).len()];
            read.extend(behind_marks(marks, &text).split('\n').map(str::to_owned));
        }
    }

    /// The rest, after the last line of the text.
    pub(super) fn finish(&mut self) -> Vec<String> {
        let mut read = Vec::new();
        self.release(&mut read);
        if self.fence.take().is_some() {
            read.push(END_OF_CODE.to_owned());
        }
        read
    }

    fn line(&mut self, line: String, read: &mut Vec<String>) {
        if let Some(fence) = self.fence.take() {
            let (n_quotes, code) = without_quotes(&line, fence.n_quotes);
            let is_end = indent(code) < fence.column + CODE_INDENT
                && code.trim_start().starts_with(&fence.marks)
                && code.trim_matches(['`', '~', ' ', '\t']).is_empty();
            if n_quotes == fence.n_quotes && !is_end {
                read.push(code.to_owned());
                self.fence = Some(fence);
                return;
            }
            read.push(END_OF_CODE.to_owned());
            if n_quotes == fence.n_quotes {
                return;
            }
            // The quote ended with its code, and this line is behind it.
        }
        if let Some(comment) = self.comment.take() {
            let (n_quotes, text) = without_quotes(&line, comment.n_quotes);
            let is_left = comment.is_in_item && indent(text) == 0 && !text.trim().is_empty();
            if n_quotes == comment.n_quotes && !is_left {
                match text.split_once(COMMENT_END) {
                    None => self.comment = Some(comment),
                    Some((_, rest)) if rest.trim().is_empty() => {}
                    Some((_, rest)) => read.push(without_comments(rest).trim().to_owned()),
                }
                return;
            }
        }
        if let Some((fence, language)) = opened_fence(&line, self.in_list) {
            read.push(if language.is_empty() { "Code:".to_owned() } else { format!("Code, {language}:") });
            self.in_text = false;
            // Without indentation it is behind the list.
            self.in_list = item(line.trim_start()).is_some() || (self.in_list && indent(&line) > 0);
            self.fence = Some(fence);
            return;
        }
        if self.is_code(&line) {
            read.push(line);
            return;
        }
        let (marks, text) = line.split_at(line.len() - without_block_marks(&line).len());
        if text.starts_with(COMMENT) {
            self.in_text = false;
            // Its first two characters may belong to both.
            if !text[2..].contains(COMMENT_END) {
                let n_quotes = marks.matches('>').count();
                self.comment = Some(Comment { n_quotes, is_in_item: self.in_list });
            }
            if without_comments(text).trim().is_empty() {
                let is_item = !marks.trim_matches(['>', ' ', '\t']).is_empty();
                read.extend(is_item.then(|| marks.trim_end().to_owned()));
                return;
            }
        }
        read.extend(without_marks(&line).split('\n').map(str::to_owned));
    }

    /// Whether a line outside of fences is code by its indentation.
    fn is_code(&mut self, line: &str) -> bool {
        let text = line.trim_start();
        if text.is_empty() {
            self.in_text = false;
            return false;
        }
        let indent = indent(line);
        if indent >= CODE_INDENT && !self.in_list && !self.in_text {
            return true;
        }
        let is_item = item(text).is_some();
        // Text without indentation continues an item only if no blank line is between them.
        self.in_list = is_item || (self.in_list && (indent > 0 || self.in_text));
        self.in_text = heading(text).is_none();
        false
    }
}

/// A whole text, as [`MarkdownReader`] reads it.
pub(super) fn read_out(text: &str) -> Vec<String> {
    let mut reader = MarkdownReader::default();
    let mut read = reader.lines(text.lines().map(str::to_owned).collect());
    read.append(&mut reader.finish());
    read
}

const END_OF_CODE: &str = "End of code.";
const COMMENT: &str = "<!--";
const COMMENT_END: &str = "-->";

/// The text of the lines of a paragraph, the first of which may be in quotes and an item.
fn joined(held: &[String]) -> String {
    let mut lines = held.iter();
    let Some(first) = lines.next() else { return String::new() };
    let text = without_block_marks(first);
    let n_quotes = first[..first.len() - text.len()].matches('>').count();
    let rest = lines.map(|line| without_quotes(line, n_quotes).1.trim_start());
    std::iter::once(text).chain(rest).collect::<Vec<_>>().join("\n")
}

/// Whether `next` may continue the paragraph that `first` began.
fn continues(first: &str, next: &str) -> bool {
    let n_quotes = first[..first.len() - without_block_marks(first).len()].matches('>').count();
    let (n_next, rest) = without_quotes(next, usize::MAX);
    let text = rest.trim_start();
    let is_block = heading(text).is_some() || item(text).is_some() || opened_fence(next, true).is_some();
    let is_line = text.trim_matches(['=', '-', '*', '_', ' ', '\t']).is_empty();
    n_next == n_quotes && !is_block && !is_line && !text.starts_with(['|', '<'])
}

/// Whether the next line may decide how the end of a text is read.
fn is_open(text: &str) -> bool {
    let marked = Marked::new(text);
    let mut events = Parser::new_ext(&marked.text, Options::ENABLE_STRIKETHROUGH).into_offset_iter();
    // Marks that belong to nothing are text for the parser.
    let is_mark = |(event, place)| matches!(event, Event::Text(_)) && has_open_mark(&marked.text, place);
    text.ends_with('\\') || events.any(is_mark)
}

/// Whether there is a mark at this place of a text that something behind it can close.
fn has_open_mark(text: &str, place: Range<usize>) -> bool {
    let Some(piece) = text.get(place.clone()) else { return false };
    let is_escaped = text[..place.start].ends_with('\\');
    piece.char_indices().skip(usize::from(is_escaped)).any(|(at, mark)| {
        let (before, behind) = (&text[..place.start + at], &text[place.start + at..]);
        let inner = behind.trim_start_matches(mark);
        let opens = inner.starts_with(|c: char| !c.is_whitespace());
        match mark {
            '*' | '~' => opens,
            '_' => opens && !before.ends_with(|c: char| c.is_alphanumeric() || c == '_'),
            '`' => true,
            '[' => {
                !behind.contains(']') || behind.rsplit_once("](").is_some_and(|(_, url)| !url.contains(')'))
            }
            _ => false,
        }
    })
}

/// A block of HTML without comments; the last one may have no end.
fn without_comments(html: &str) -> String {
    let mut text = String::new();
    let mut rest = html;
    while let Some((before, comment)) = rest.split_once(COMMENT) {
        text.push_str(before);
        rest = comment.split_once(COMMENT_END).map_or("", |(_, after)| after);
    }
    text + rest
}

fn is_line_break(tag: &str) -> bool {
    tag.trim_matches(['<', '>', '/', ' ']).eq_ignore_ascii_case("br")
}

/// The block of code that a line opens, in quotes and items or not, and what it says of its
/// language.
///
/// A line that is indented like code opens none. In a quote or below an item any indentation may be that of
/// an item.
fn opened_fence(line: &str, in_list: bool) -> Option<(Fence, &str)> {
    let (mut n_quotes, mut behind_quotes) = without_quotes(line, usize::MAX);
    let (mut rest, mut is_below_item, mut is_in_item) = (behind_quotes, in_list || n_quotes > 0, false);
    loop {
        if !is_below_item && indent(rest) >= CODE_INDENT {
            return None;
        }
        let Some(after) = item(rest.trim_start()) else { break };
        let (n_inner, inner) = without_quotes(after, usize::MAX);
        if n_inner > 0 {
            behind_quotes = inner;
        }
        (n_quotes, rest, is_below_item, is_in_item) = (n_quotes + n_inner, inner, false, true);
    }
    let rest = rest.trim_start();
    let before = &behind_quotes[..behind_quotes.len() - rest.len()];
    let column = if is_below_item || is_in_item { columns(before) } else { 0 };
    let mark = rest.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let info = rest.trim_start_matches(mark);
    let marks = &rest[..rest.len() - info.len()];
    let is_fence = marks.len() >= 3 && (mark == '~' || !info.contains('`'));
    let fence = Fence { marks: marks.to_owned(), n_quotes, column };
    is_fence.then(|| (fence, info.trim()))
}

/// The text after the marks of at most `max` quotes, and their number.
fn without_quotes(line: &str, max: usize) -> (usize, &str) {
    let (mut n_quotes, mut rest) = (0, line);
    while let Some(after) = rest.trim_start().strip_prefix('>').filter(|_| n_quotes < max) {
        (n_quotes, rest) = (n_quotes + 1, after.strip_prefix(' ').unwrap_or(after));
    }
    (n_quotes, rest)
}

/// The text after the mark of a list item.
fn item(text: &str) -> Option<&str> {
    let number = text.trim_start_matches(|c: char| c.is_ascii_digit());
    if number.len() < text.len() {
        return number.strip_prefix(". ").or_else(|| number.strip_prefix(") "));
    }
    ["- ", "* ", "+ "].iter().find_map(|mark| text.strip_prefix(mark))
}

/// The text after the mark of a heading.
fn heading(text: &str) -> Option<&str> {
    let heading = text.trim_start_matches('#');
    (1..=6).contains(&(text.len() - heading.len())).then(|| heading.strip_prefix(' '))?
}

/// Columns of blanks that a line begins with.
fn indent(line: &str) -> usize {
    columns(&line[..line.len() - line.trim_start_matches([' ', '\t']).len()])
}

fn columns(text: &str) -> usize {
    text.chars().map(|c| if c == '\t' { CODE_INDENT } else { 1 }).sum()
}

/// A line without the marks of its formatting, unless it is one of a table.
fn without_marks(line: &str) -> String {
    let (marks, rest) = line.split_at(line.len() - without_block_marks(line).len());
    if rest.starts_with('|') {
        return table_line(line);
    }
    behind_marks(marks, &without_inline_marks(rest))
}

/// A text with the marks of its quotes and items.
fn behind_marks(marks: &str, text: &str) -> String {
    let marks = marks.trim_end_matches(['#', ' ']);
    let space = if marks.is_empty() { "" } else { " " };
    [marks, space, text].concat()
}

/// A line of a table with blanks for its line breaks, except in code.
fn table_line(line: &str) -> String {
    let mut read = String::new();
    for (nth, part) in line.split('`').enumerate() {
        read.push_str(if nth == 0 { "" } else { "`" });
        let mut rest = if nth % 2 == 0 { part } else { "" };
        read.push_str(if nth % 2 == 0 { "" } else { part });
        while let Some((before, tag)) = rest.split_once('<') {
            read.push_str(before);
            match tag.split_once('>') {
                Some((name, after)) if is_line_break(name) => {
                    read.push(' ');
                    rest = after;
                }
                _ => {
                    read.push('<');
                    rest = tag;
                }
            }
        }
        read.push_str(rest);
    }
    read
}

/// The text after the marks of quotes, headings and list items.
fn without_block_marks(line: &str) -> &str {
    let mut rest = line.trim_start();
    while let Some(after) = heading(rest).or_else(|| item(rest)).or_else(|| rest.strip_prefix("> ")) {
        rest = after.trim_start();
    }
    rest
}

/// The text of one line with what its marks stand for; the line itself if it is no running text.
fn without_inline_marks(line: &str) -> String {
    // Alone it is a paragraph even if it is a tag.
    if let Some(Event::Start(Tag::HtmlBlock)) = Parser::new_ext(line, Options::ENABLE_STRIKETHROUGH).next() {
        return if is_line_break(line) { String::new() } else { without_comments(line) };
    }
    match paragraph(line) {
        Some(lines) if lines.iter().any(|line| !line.trim().is_empty() || line.contains('\n')) => {
            lines.join(" ")
        }
        _ => line.to_owned(),
    }
}

/// The lines of a paragraph with what their marks stand for; `None` if the text is none. A line break in
/// HTML is one in its line.
fn paragraph(paragraph: &str) -> Option<Vec<String>> {
    let (mut lines, mut text) = (Vec::new(), String::new());
    let mut links: Vec<(String, String, usize)> = Vec::new();
    let mut in_paragraph = false;
    let marked = Marked::new(paragraph);
    let parser = Parser::new_ext(&marked.text, Options::ENABLE_STRIKETHROUGH);
    // `[1]: https://example.com` is no text for the parser.
    if parser.reference_definitions().iter().next().is_some() {
        return None;
    }
    for (event, place) in parser.into_offset_iter() {
        match event {
            Event::Start(Tag::Paragraph) if !in_paragraph => in_paragraph = true,
            Event::End(TagEnd::Paragraph) => in_paragraph = false,
            // A rule, a table without its head and the like.
            _ if !in_paragraph => return None,
            Event::Start(Tag::Link { dest_url, title, .. } | Tag::Image { dest_url, title, .. }) => {
                let [address, title] = [dest_url, title].map(|part| without_parser_marks(&part).into_owned());
                links.push((address, title, text.len()));
            }
            Event::End(TagEnd::Link | TagEnd::Image) => {
                let Some((address, title, start)) = links.pop() else { continue };
                let is_address = text.get(start..) == Some(address.as_str());
                let target = [address, title].into_iter().skip(usize::from(is_address));
                let target: Vec<String> = target.filter(|text| !text.is_empty()).collect();
                if !target.is_empty() {
                    text.extend([" (", &target.join(", "), ")"]);
                }
            }
            Event::InlineHtml(tag) if is_line_break(&tag) => text.push('\n'),
            Event::InlineHtml(tag) if tag.starts_with(COMMENT) => {}
            Event::Code(_) if marked.text[place.clone()].contains('\n') => {
                // The parser makes blanks of its line ends.
                for (nth, line) in marked.text[place].trim_matches('`').split('\n').enumerate() {
                    if nth > 0 {
                        lines.push(std::mem::take(&mut text));
                    }
                    text.push_str(&without_parser_marks(line));
                }
            }
            Event::Text(piece) | Event::Code(piece) | Event::InlineHtml(piece) | Event::Html(piece) => {
                text.push_str(&without_parser_marks(&piece));
            }
            Event::SoftBreak | Event::HardBreak => lines.push(std::mem::take(&mut text)),
            _ => {}
        }
    }
    lines.push(text);
    Some(lines)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, read: &[&str]) {
        assert_eq!(read_out(text), read, "{text:?}");
    }

    #[test]
    fn marks_of_formatting_are_not_read() {
        check("You said **5** characters.", &["You said 5 characters."]);
        check("## A *heading*\n\n> a ~~quote~~", &["A heading", "", "> a quote"]);
        check("- one `a*b*c`\n  2. two\n", &["- one a*b*c", "  2. two"]);
        check(
            "see [the docs](https://a.b) and <https://c.d>",
            &["see the docs (https://a.b) and https://c.d"],
        );
        check("2 * 3 * 4 and a_b_c &amp; \\*x\\*", &["2 * 3 * 4 and a_b_c & *x*"]);
    }

    #[test]
    fn marks_next_to_cjk_punctuation_are_not_read() {
        check("这是**「重要」**的内容。", &["这是「重要」的内容。"]);
        check("请**注意：**看这里。", &["请注意：看这里。"]);
        check("还有*（斜体）*文字。", &["还有（斜体）文字。"]);
        check("~~「旧」~~新", &["「旧」新"]);
        check("请**「看\n这里」**吧", &["请「看", "这里」吧"]);
        check(
            "见[*「文」*档](https://a.b/*「文」*档)和`a*「b」*c\n*「d」*e`",
            &["见「文」档 (https://a.b/*「文」*档)和a*「b」*c", "*「d」*e"],
        );
        // As on the screen: the second run may only open.
        check("This is **\"quoted\"**text", &["This is **\"quoted\"**text"]);
    }

    #[test]
    fn code_and_tables_are_read_as_they_are() {
        check(
            "```rust\nlet a = **b; // # x\n\n```\n*after*",
            &["Code, rust:", "let a = **b; // # x", "", "End of code.", "after"],
        );
        check("| **a** | `b` |\n|---|---|\n---", &["| **a** | `b` |", "|---|---|", "---"]);
        check(
            "So:\n\n    def f(**kwargs):\n\n\treturn `x`\n\n*after*",
            &["So:", "", "    def f(**kwargs):", "", "\treturn `x`", "", "after"],
        );
        check("# Head\n    # not *this*", &["Head", "    # not *this*"]);
    }

    #[test]
    fn indented_lines_of_lists_and_paragraphs_are_text() {
        check(
            "1. *one*\n\n    - **two**\n\n    and *three*\n\nafter *it*\n\n    **code**",
            &["1. one", "", "    - two", "", "and three", "", "after it", "", "    **code**"],
        );
        check("one\n    *two*", &["one", "two"]);
    }

    #[test]
    fn code_in_quotes_and_items_ends() {
        check(
            "> ```sh\n> a **b**\n>\n> ```\n> *after*",
            &["Code, sh:", "a **b**", "", "End of code.", "> after"],
        );
        check(">> ~~~\n> > a\n> *b*", &["Code:", "a", "End of code.", "> b"]);
        check("- ```sh\n  > a\n  ```\n- *b*", &["Code, sh:", "  > a", "End of code.", "- b"]);
    }

    #[test]
    fn indented_marks_of_code_are_text_of_it() {
        check("```md\n    ```\n*a*\n   ```\n*b*", &["Code, md:", "    ```", "*a*", "End of code.", "b"]);
        check("a\n\n    ```\n    b\n\n*c*", &["a", "", "    ```", "    b", "", "c"]);
        check("-     ```\n*a*", &["- ```", "a"]);
        check("- ```\n      ```\n  ```\n*a*", &["Code:", "      ```", "End of code.", "a"]);
        check(
            "1. a\n   - b\n\n     ```\n         ```\n     ```\n*c*",
            &["1. a", "   - b", "", "Code:", "         ```", "End of code.", "c"],
        );
        check(
            "> - a\n>   - b\n>\n>     ```\n>     c\n>     ```",
            &["> - a", ">   - b", ">", "Code:", "    c", "End of code."],
        );
    }

    #[test]
    fn code_ends_with_its_text() {
        check("```sh\nls", &["Code, sh:", "ls", "End of code."]);
        check("> ```", &["Code:", "End of code."]);
    }

    #[test]
    fn marks_of_line_breaks_are_not_read() {
        check("one\\\n*two*\\\n\nC:\\", &["one", "two\\", "", "C:\\"]);
        check("> a\\\n> b\\\n\n- c\\\n  d\\\n- e", &["> a", "> b\\", "", "- c", "d\\", "- e"]);
        check("a\\\\\nb", &["a\\", "b"]);
        check("# Head\\\ntext", &["Head\\", "text"]);
        check("`a\\\n```\nx\\\ny\n```", &["`a\\", "Code:", "x\\", "y", "End of code."]);
        check("one<br>two<BR/>\nthree\n<br>\nfour", &["one", "two", "", "three", "", "four"]);
    }

    #[test]
    fn marks_that_span_lines_are_not_read() {
        check("**bold\ntext** more\nend", &["bold", "text more", "end"]);
        check("- an *item\n  with* two\n- **b**", &["- an item", "with two", "- b"]);
        check("> ~~a\n> b~~ c\n\nd", &["> a", "> b c", "", "d"]);
        check("see [the\ndocs](https://a.b) and `x\ny`", &["see the", "docs (https://a.b) and x", "y"]);
        check("[the\ndocs](https://a.b), _it\nis_", &["the", "docs (https://a.b), it", "is"]);
    }

    #[test]
    fn marks_that_nothing_closes_are_read_and_wait_for_few_lines() {
        check("**never\nclosed\n\n*here*", &["**never", "closed", "", "here"]);
        check("**never\n# closed", &["**never", "closed"]);
        check("**never\n- *closed*\n```\n**\n```", &["**never", "- closed", "Code:", "**", "End of code."]);
        let mut reader = MarkdownReader::default();
        assert_eq!(reader.lines(vec!["2 * 3 is a_b, \\*c".to_owned()]), ["2 * 3 is a_b, *c"]);
        let mut read = 0;
        for n in 0..MAX_HELD {
            assert_eq!(read, 0, "{n}");
            read += reader.lines(vec!["*word".to_owned()]).len();
        }
        assert_eq!(read, MAX_HELD);
    }

    #[test]
    fn line_breaks_in_cells_are_blanks() {
        check("| a<br>b<BR />c | `<br>` 1<2 |", &["| a b c | `<br>` 1<2 |"]);
    }

    #[test]
    fn a_line_that_ends_with_a_backslash_is_read_at_the_end() {
        let mut reader = MarkdownReader::default();
        assert_eq!(reader.lines(vec!["a\\".to_owned()]), [""; 0]);
        assert_eq!(reader.lines(vec!["b".to_owned(), "c\\".to_owned()]), ["a", "b"]);
        assert_eq!(reader.finish(), ["c\\"]);
        assert_eq!(reader.finish(), [""; 0]);
    }

    #[test]
    fn comments_are_not_read_and_other_tags_are() {
        check("a <!-- no --> b <kbd>x</kbd> `<!-- code -->`", &["a  b <kbd>x</kbd> <!-- code -->"]);
        check("<!-- no -->\ntext\n<div><!-- no -->in</div>", &["text", "<div>in</div>"]);
        check("text\n<!-- no\n\n```\nno\n-->\n**after**", &["text", "after"]);
        check("<!-- no\nno --> rest\n*after*", &["rest", "after"]);
        check("> <!-- no\n> no\n\n*after*\n\n- <!-- no\n  no\n\n*last*", &["", "after", "", "-", "last"]);
        check(
            "```\n<!-- code -->\n```\n    <!-- text\n\n    <!-- code",
            &["Code:", "<!-- code -->", "End of code.", "    <!-- text", "", "    <!-- code"],
        );
        check("not <!-- closed\nhere", &["not <!-- closed", "here"]);
    }

    #[test]
    fn lines_that_define_links_are_read() {
        check(
            "See [docs][1].\n\n[1]: https://example.com\n- [docs]: https://a.b\n[^1]: note",
            &["See [docs][1].", "", "[1]: https://example.com", "- [docs]: https://a.b", "[^1]: note"],
        );
        check("[a](https://b.c \"why\") and ![](d)", &["a (https://b.c, why) and  (d)"]);
    }

    proptest! {
        #[test]
        fn words_are_never_lost(text in "[a-z「。字*_#>` ~0-9.\\-\n\t\\[\\]:()<>|!&\\\\\"]{0,60}") {
            prop_assume!(!text.contains(COMMENT));
            let read = read_out(&text).join("\n");
            // That may be a line break.
            let words = text.split(|c: char| !c.is_ascii_lowercase()).filter(|word| !["", "br"].contains(word));
            for word in words {
                prop_assert!(read.contains(word), "{word} of {text:?} is not in {read:?}");
            }
        }
    }
}
