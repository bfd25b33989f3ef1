//! Reads Markdown as a person would: without the marks of its formatting.
//!
//! Works line by line, because an answer is read as it arrives. Code keeps its characters, and so do
//! tables. Lines are judged by the ones before them, so that a line of a table is known by its first
//! character, and indented code only outside of lists.

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
}

/// How a block of code began.
#[derive(Debug)]
struct Fence {
    /// The marks that end it.
    marks: String,
    /// In how many quotes it is.
    n_quotes: usize,
}

impl MarkdownReader {
    pub(super) fn lines(&mut self, lines: Vec<String>) -> Vec<String> {
        let mut read = Vec::new();
        for line in lines {
            self.line(line, &mut read);
        }
        read
    }

    fn line(&mut self, line: String, read: &mut Vec<String>) {
        if let Some(fence) = self.fence.take() {
            let (n_quotes, code) = without_quotes(&line, fence.n_quotes);
            let is_end = code.trim_start().starts_with(&fence.marks)
                && code.trim_matches(['`', '~', ' ', '\t']).is_empty();
            if n_quotes == fence.n_quotes && !is_end {
                read.push(code.to_owned());
                self.fence = Some(fence);
                return;
            }
            read.push("End of code.".to_owned());
            if n_quotes == fence.n_quotes {
                return;
            }
            // The quote ended with its code, and this line is behind it.
        }
        if let Some((fence, language)) = opened_fence(&line) {
            read.push(if language.is_empty() { "Code:".to_owned() } else { format!("Code, {language}:") });
            self.in_text = false;
            self.fence = Some(fence);
            return;
        }
        read.push(if self.is_code(&line) { line } else { without_marks(&line) });
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
    MarkdownReader::default().lines(text.lines().map(str::to_owned).collect())
}

/// The block of code that a line opens, in quotes and items or not, and what it says of its
/// language.
fn opened_fence(line: &str) -> Option<(Fence, &str)> {
    let (mut n_quotes, mut rest) = without_quotes(line, usize::MAX);
    while let Some(after) = item(rest.trim_start()) {
        let (n_inner, inner) = without_quotes(after, usize::MAX);
        (n_quotes, rest) = (n_quotes + n_inner, inner);
    }
    let rest = rest.trim_start();
    let mark = rest.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let info = rest.trim_start_matches(mark);
    let marks = &rest[..rest.len() - info.len()];
    let is_fence = marks.len() >= 3 && (mark == '~' || !info.contains('`'));
    let fence = Fence { marks: marks.to_owned(), n_quotes };
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
    line.chars()
        .map_while(|c| [(' ', 1), ('\t', CODE_INDENT)].iter().find(|(blank, _)| *blank == c))
        .map(|(_, n)| n)
        .sum()
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
    let mut depth = 0_usize;
    let parser = Parser::new_ext(line, Options::ENABLE_STRIKETHROUGH);
    // `[1]: https://example.com` is no text for the parser.
    if parser.reference_definitions().iter().next().is_some() {
        return line.to_owned();
    }
    for event in parser {
        match event {
            Event::Start(Tag::Paragraph) if depth == 0 => depth = 1,
            Event::End(TagEnd::Paragraph) => depth = 0,
            // A rule, a table without its head and the like.
            _ if depth == 0 => return line.to_owned(),
            Event::Start(Tag::Link { dest_url, title, .. } | Tag::Image { dest_url, title, .. }) => {
                links.push((dest_url.to_string(), title.to_string(), text.len()));
            }
            Event::End(TagEnd::Link | TagEnd::Image) => {
                let Some((address, title, start)) = links.pop() else { continue };
                let is_address = text.get(start..) == Some(address.as_str());
                let told = [address, title].into_iter().skip(usize::from(is_address));
                let told: Vec<String> = told.filter(|text| !text.is_empty()).collect();
                if !told.is_empty() {
                    text.extend([" (", &told.join(", "), ")"]);
                }
            }
            Event::Text(piece) | Event::Code(piece) | Event::InlineHtml(piece) | Event::Html(piece) => {
                text.push_str(&piece);
            }
            Event::SoftBreak | Event::HardBreak => text.push(' '),
            _ => {}
        }
    }
    if text.trim().is_empty() { line.to_owned() } else { text }
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
            let read = read_out(&text).join("\n");
            for word in text.split(|c: char| !c.is_ascii_lowercase()).filter(|word| !word.is_empty()) {
                prop_assert!(read.contains(word), "{word} of {text:?} is not in {read:?}");
            }
        }
    }
}
