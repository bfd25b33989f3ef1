//! Reads Markdown as a person would: without the marks of its formatting.
//!
//! Works line by line, because an answer is read as it arrives. Code keeps its characters, and so do
//! tables; what a line is part of is known only for code.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// Reads the lines of one text.
#[derive(Debug, Default)]
pub(super) struct MarkdownReader {
    /// What ends the block of code that the next line is in.
    fence: Option<String>,
}

impl MarkdownReader {
    pub(super) fn lines(&mut self, lines: Vec<String>) -> Vec<String> {
        lines.into_iter().map(|line| self.line(line)).collect()
    }

    fn line(&mut self, line: String) -> String {
        let trimmed = line.trim_start();
        if let Some(fence) = &self.fence {
            let is_end =
                trimmed.starts_with(fence.as_str()) && trimmed.trim_matches(['`', '~', ' ']).is_empty();
            if !is_end {
                return line;
            }
            self.fence = None;
            return "End of code.".to_owned();
        }
        if let Some((fence, language)) = opened_fence(trimmed) {
            self.fence = Some(fence);
            return if language.is_empty() { "Code:".to_owned() } else { format!("Code, {language}:") };
        }
        let (marks, rest) = line.split_at(line.len() - without_block_marks(&line).len());
        let marks = marks.trim_end_matches(['#', ' ']);
        let space = if marks.is_empty() { "" } else { " " };
        [marks, space, &without_inline_marks(rest)].concat()
    }
}

/// A whole text, as [`MarkdownReader`] reads it.
pub(super) fn read_out(text: &str) -> Vec<String> {
    MarkdownReader::default().lines(text.lines().map(str::to_owned).collect())
}

/// What ends the block of code that a line opens, and its language.
fn opened_fence(line: &str) -> Option<(String, &str)> {
    let mark = line.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let rest = line.trim_start_matches(mark);
    let fence = &line[..line.len() - rest.len()];
    let is_fence = fence.len() >= 3 && (mark == '~' || !rest.contains('`'));
    is_fence.then(|| (fence.to_owned(), rest.trim().split(' ').next().unwrap_or_default()))
}

/// The text after the marks of quotes, headings and list items.
fn without_block_marks(line: &str) -> &str {
    let mut rest = line.trim_start();
    loop {
        let heading = rest.trim_start_matches('#');
        let n_hashes = rest.len() - heading.len();
        let number = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        let after = if (1..=6).contains(&n_hashes) {
            heading.strip_prefix(' ')
        } else if number.len() < rest.len() {
            number.strip_prefix(". ").or_else(|| number.strip_prefix(") "))
        } else {
            ["> ", "- ", "* ", "+ "].iter().find_map(|mark| rest.strip_prefix(mark))
        };
        match after {
            Some(after) => rest = after.trim_start(),
            None => return rest,
        }
    }
}

/// The text of one line with what its marks stand for; the line itself if it is no running text.
fn without_inline_marks(line: &str) -> String {
    let mut text = String::new();
    let mut links: Vec<(String, usize)> = Vec::new();
    let mut depth = 0_usize;
    for event in Parser::new_ext(line, Options::ENABLE_STRIKETHROUGH) {
        match event {
            Event::Start(Tag::Paragraph) if depth == 0 => depth = 1,
            Event::End(TagEnd::Paragraph) => depth = 0,
            // A rule, a table without its head and the like.
            _ if depth == 0 => return line.to_owned(),
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                links.push((dest_url.to_string(), text.len()));
            }
            Event::End(TagEnd::Link | TagEnd::Image) => {
                let Some((address, start)) = links.pop() else { continue };
                if text.get(start..) != Some(address.as_str()) {
                    text.extend([" (", &address, ")"]);
                }
            }
            Event::Text(piece) | Event::Code(piece) | Event::InlineHtml(piece) | Event::Html(piece) => {
                text.push_str(&piece);
            }
            Event::SoftBreak | Event::HardBreak => text.push(' '),
            _ => {}
        }
    }
    text
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
        check("| a | b |\n|---|---|\n---", &["| a | b |", "|---|---|", "---"]);
    }

    proptest! {
        #[test]
        fn words_are_never_lost(text in "[a-z*_#>` ~0-9.\\-\n]{0,60}") {
            let read = read_out(&text).join("\n");
            for word in text.split(|c: char| !c.is_ascii_lowercase()).filter(|word| !word.is_empty()) {
                prop_assert!(read.contains(word), "{word} of {text:?} is not in {read:?}");
            }
        }
    }
}
