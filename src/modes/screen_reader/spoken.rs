//! Reads Markdown as a person would: without the marks of its formatting.
//!
//! Works line by line, because an answer is read as it arrives. Code and tables keep their characters, and
//! comments of HTML are left out, as on the screen. A line is judged by itself and what came before it: a
//! line of a table is one that begins with `|`, and indented lines are code only outside of lists. Only a
//! line that ends with a backslash waits for the next one, which decides whether that is a line break.

use std::ops::Range;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// Columns of indentation that make a line code.
const CODE_INDENT: usize = 4;

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
    /// A line that ends with a backslash.
    held: Option<String>,
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
            if let Some(held) = self.held.take() {
                let is_break = breaks_line(&held, &line);
                self.line(held, is_break, &mut read);
            }
            if self.fence.is_none() && line.ends_with('\\') {
                self.held = Some(line);
            } else {
                self.line(line, false, &mut read);
            }
        }
        read
    }

    /// The rest, after the last line of the text.
    pub(super) fn finish(&mut self) -> Vec<String> {
        let mut read = Vec::new();
        if let Some(held) = self.held.take() {
            self.line(held, false, &mut read);
        }
        if self.fence.take().is_some() {
            read.push(END_OF_CODE.to_owned());
        }
        read
    }

    /// Reads a line. If `is_break`, its last character is the mark of a line break.
    fn line(&mut self, mut line: String, is_break: bool, read: &mut Vec<String>) {
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
        if is_break {
            line.pop();
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

/// Whether the backslash at the end of a line is the mark of a line break, because the next line continues
/// its paragraph.
fn breaks_line(line: &str, next: &str) -> bool {
    let text = without_block_marks(line);
    let marks = &line[..line.len() - text.len()];
    let (_, next) = without_quotes(next, marks.matches('>').count());
    if marks.contains('#') || text.starts_with('|') {
        return false;
    }
    let both = format!("{text}\n{}", next.trim_start());
    let is_break = |(event, place): (Event<'_>, Range<usize>)| {
        event == Event::HardBreak && place.start + 1 == text.len()
    };
    Parser::new_ext(&both, Options::ENABLE_STRIKETHROUGH).into_offset_iter().any(is_break)
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
        return line.to_owned();
    }
    let marks = marks.trim_end_matches(['#', ' ']);
    let space = if marks.is_empty() { "" } else { " " };
    [marks, space, &without_inline_marks(rest)].concat()
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
    let mut text = String::new();
    let mut links: Vec<(String, String, usize)> = Vec::new();
    let mut in_paragraph = false;
    let parser = Parser::new_ext(line, Options::ENABLE_STRIKETHROUGH);
    // `[1]: https://example.com` is no text for the parser.
    if parser.reference_definitions().iter().next().is_some() {
        return line.to_owned();
    }
    for event in parser {
        match event {
            Event::Start(Tag::Paragraph) if !in_paragraph => in_paragraph = true,
            Event::End(TagEnd::Paragraph) => in_paragraph = false,
            Event::Start(Tag::HtmlBlock) if !in_paragraph && is_line_break(line) => return String::new(),
            Event::Start(Tag::HtmlBlock) if !in_paragraph => return without_comments(line),
            // A rule, a table without its head and the like.
            _ if !in_paragraph => return line.to_owned(),
            Event::Start(Tag::Link { dest_url, title, .. } | Tag::Image { dest_url, title, .. }) => {
                links.push((dest_url.to_string(), title.to_string(), text.len()));
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
            Event::Text(piece) | Event::Code(piece) | Event::InlineHtml(piece) | Event::Html(piece) => {
                text.push_str(&piece);
            }
            Event::SoftBreak | Event::HardBreak => text.push(' '),
            _ => {}
        }
    }
    if text.trim().is_empty() && !text.contains('\n') { line.to_owned() } else { text }
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
        fn words_are_never_lost(text in "[a-z*_#>` ~0-9.\\-\n\t\\[\\]:()<>|!&\\\\\"]{0,60}") {
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
