//! The active branch as Markdown.
//!
//! Content cannot end the block it stands in: outputs are fenced by more backticks than they
//! contain, HTML in messages is escaped, and a message that leaves a block open is fenced
//! as a whole. Written entry by entry.

use std::io::{self, Write};

use pulldown_cmark::{Event, HeadingLevel, LinkType, Options, Parser, Tag};
use serde_json::Value;

use crate::ai::{
    AssistantBlock, AssistantMessage, ContentBlock, Message, ToolCall, ToolResultMessage, UserContent,
};
use crate::session::{BashExecution, Entry, EntryBody, SessionMessage};

use super::facts::{self, Totals};
use super::{ExportSource, Read};

/// Writes the branch. Returns how many entries could not be read.
///
/// # Errors
/// If writing fails.
pub(super) fn write(source: &ExportSource, read: Read, out: &mut dyn Write) -> io::Result<usize> {
    let path = source.tree.path(source.tree.leaf());
    writeln!(out, "# {}\n", plain(&read.text(&source.title())))?;
    writeln!(out, "- Session {}", span(&read.text(&source.header.id)))?;
    if let Some(place) = source.place() {
        writeln!(out, "- In {}", span(&read.text(&place)))?;
    }
    // Sums come before the conversation and need all of it; memory holds one entry at a time.
    let mut totals = Totals::default();
    path.iter().filter_map(|idx| read.entry(&source.tree, *idx)).for_each(|entry| totals.add(&entry));
    for fact in totals.facts() {
        writeln!(out, "- {}", plain(&fact))?;
    }
    let labels = source.tree.labels();
    let mut n_lost = 0;
    for idx in path {
        let Some(entry) = read.entry(&source.tree, idx) else {
            n_lost += 1;
            writeln!(out, "\n*An entry could not be read.*")?;
            continue;
        };
        let label = labels.get(&idx).map(|label| read.text(&label.text));
        write_entry(&entry, label.as_deref(), out)?;
    }
    out.flush()?;
    Ok(n_lost)
}

fn write_entry(entry: &Entry, label: Option<&str>, out: &mut dyn Write) -> io::Result<()> {
    let mut section = Section::default();
    match &entry.body {
        EntryBody::Message { message: SessionMessage::Model(message), .. } => match &**message {
            Message::User(user) => {
                section.heading("You", &[facts::time(&entry.timestamp)]);
                section.input(&user.content);
            }
            Message::Assistant(answer) => {
                section.heading("Answer", &facts::answer(answer));
                section.answer(answer);
            }
            Message::ToolResult(result) => section.result(result),
            // Prompt and tools are long and the same everywhere.
            Message::System(_) => {}
        },
        EntryBody::Message { message: SessionMessage::BashExecution(execution), .. } => {
            section.bash(execution);
        }
        EntryBody::Message { message: SessionMessage::Unknown(message), .. } => {
            section.heading("Message", &[]);
            section.fenced("json", &serde_json::to_string_pretty(message).unwrap_or_default());
        }
        EntryBody::Compaction(compaction) => {
            let about = format!("replaces {} tokens", facts::tokens(compaction.tokens_before));
            section.heading("Compaction", &[about]);
            section.markdown(&compaction.summary);
        }
        EntryBody::BranchSummary(branch) => {
            section.heading("Summary of another branch", &[]);
            section.markdown(&branch.summary);
        }
        EntryBody::CustomMessage(message) => {
            section.heading("Message", &[span(&message.custom_type)]);
            if let Some(content) = &message.content {
                section.input(content);
            }
        }
        EntryBody::ModelChange(change) => {
            section.note(&format!("Model: {}/{}", change.provider, change.model_id));
        }
        EntryBody::ThinkingLevelChange(_)
        | EntryBody::Usage(_)
        | EntryBody::ContextEdit(_)
        | EntryBody::Custom(_)
        | EntryBody::Label(_)
        | EntryBody::SessionInfo(_)
        | EntryBody::Unknown { .. } => {}
    }
    if let (Some(label), false) = (label, section.text.is_empty()) {
        section.note(&format!("Label: {label}"));
    }
    out.write_all(section.text.as_bytes())
}

/// The text of one entry: blocks, each with an empty line before it.
#[derive(Default)]
struct Section {
    text: String,
}

impl Section {
    fn block(&mut self, text: &str) {
        self.text.push('\n');
        self.text.push_str(text.trim_end_matches('\n'));
        self.text.push('\n');
    }

    fn heading(&mut self, role: &str, about: &[String]) {
        self.block(&["## ", role].concat());
        let about: Vec<&str> = about.iter().map(String::as_str).filter(|fact| !fact.is_empty()).collect();
        if !about.is_empty() {
            self.note(&about.join(" · "));
        }
    }

    fn note(&mut self, text: &str) {
        self.block(&["*", &plain(text), "*"].concat());
    }

    fn fenced(&mut self, language: &str, text: &str) {
        self.block(&fenced(language, text));
    }

    fn markdown(&mut self, text: &str) {
        if !text.trim().is_empty() {
            self.block(&closed(text));
        }
    }

    fn input(&mut self, content: &UserContent) {
        match content {
            UserContent::Text(text) => self.markdown(text),
            UserContent::Blocks(blocks) => blocks.iter().for_each(|block| match block {
                ContentBlock::Text(text) => self.markdown(&text.text),
                other => self.input_block(other),
            }),
        }
    }

    fn input_block(&mut self, block: &ContentBlock) {
        match block {
            ContentBlock::Text(text) => self.fenced("", &text.text),
            ContentBlock::Image(image) => {
                let n_bytes = image.data.len() / 4 * 3;
                self.note(&format!("[image: {}, {} kB]", image.mime_type, n_bytes.div_ceil(1_000)));
            }
            ContentBlock::ImageUrl(image) => self.note(&image.label()),
            ContentBlock::Unknown(value) => self.fenced("json", &value.to_string()),
        }
    }

    fn answer(&mut self, answer: &AssistantMessage) {
        for block in &answer.content {
            match block {
                AssistantBlock::Text(text) => self.markdown(&text.text),
                AssistantBlock::Thinking(thinking)
                    if thinking.redacted || thinking.thinking.trim().is_empty() => {}
                AssistantBlock::Thinking(thinking) => {
                    let quoted: Vec<String> =
                        fenced("", &thinking.thinking).lines().map(|line| format!("> {line}")).collect();
                    self.block(&["> **Thinking**\n>\n", &quoted.join("\n")].concat());
                }
                AssistantBlock::ToolCall(call) => self.call(call),
                AssistantBlock::Unknown(value) => self.fenced("json", &value.to_string()),
            }
        }
        if let Some(error) = facts::failure(answer) {
            self.block("**Failed**");
            self.fenced("", &error);
        }
    }

    fn call(&mut self, call: &ToolCall) {
        self.block(&["**Call** ", &span(&call.name)].concat());
        let fields = call.arguments.as_object();
        let command = call.arguments.get("command").and_then(Value::as_str);
        match command {
            Some(command) if fields.is_some_and(|fields| fields.len() == 1) => self.fenced("sh", command),
            _ => self.fenced("json", &serde_json::to_string_pretty(&call.arguments).unwrap_or_default()),
        }
        if let Some(error) = &call.arguments_error {
            self.fenced("", error);
        }
    }

    fn result(&mut self, result: &ToolResultMessage) {
        let what = if result.is_error { "**Error** of " } else { "**Result** of " };
        self.block(&[what, &span(&result.tool_name)].concat());
        if let Some(diff) = result.details.as_ref().and_then(|details| details.get("diff")?.as_str()) {
            self.fenced("diff", diff);
        }
        result.content.iter().for_each(|block| self.input_block(block));
    }

    fn bash(&mut self, execution: &BashExecution) {
        let code = execution.exit_code.filter(|code| *code != 0).map(|code| format!("exit code {code}"));
        let hidden =
            (execution.exclude_from_context == Some(true)).then(|| "hidden from the model".to_owned());
        let cancelled = execution.cancelled.then(|| "cancelled".to_owned());
        let about: Vec<String> = [code, hidden, cancelled].into_iter().flatten().collect();
        self.heading("Your command", &about);
        self.fenced("sh", &execution.command);
        if !execution.output.is_empty() {
            self.fenced("", &execution.output);
        }
    }
}

/// Text between fences that are longer than any run of backticks in it.
fn fenced(language: &str, text: &str) -> String {
    let fence = "`".repeat((longest_run(text, '`') + 1).max(3));
    let text = text.strip_suffix('\n').unwrap_or(text);
    format!("{fence}{language}\n{text}\n{fence}")
}

/// One line of code within a paragraph.
fn span(text: &str) -> String {
    let line = one_line(text);
    if line.is_empty() {
        return String::new();
    }
    let ticks = "`".repeat(longest_run(&line, '`') + 1);
    let pad = if line.starts_with(['`', ' ']) || line.ends_with(['`', ' ']) { " " } else { "" };
    [&*ticks, pad, &line, pad, &ticks].concat()
}

/// One line of text that means nothing to Markdown.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    for c in one_line(text).chars() {
        if c.is_ascii_punctuation() && !".,:;/-()$%?'\"".contains(c) {
            plain.push('\\');
        }
        plain.push(c);
    }
    plain
}

fn one_line(text: &str) -> String {
    let spaced: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    spaced.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn longest_run(text: &str, of: char) -> usize {
    text.split(|c| c != of).map(str::len).max().unwrap_or(0)
}

/// A message that is Markdown itself, without HTML, without links that run code, and with
/// all its blocks closed. If that is not possible, as text between fences.
fn closed(text: &str) -> String {
    let mut text = text.trim_end().to_owned();
    // An escape can uncover what it had covered.
    for _ in 0..8 {
        match without_html(&text) {
            Some(escaped) => text = escaped,
            None => return close_fence(&text).unwrap_or_else(|| fenced("", &text)),
        }
    }
    fenced("", &text)
}

fn options() -> Options {
    Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS
}

/// `text` with its HTML and its doubtful links escaped; `None` if there are none.
fn without_html(text: &str) -> Option<String> {
    let mut escapes: Vec<(usize, &str)> = Vec::new();
    for (event, range) in Parser::new_ext(text, options()).into_offset_iter() {
        match event {
            Event::Html(_) | Event::InlineHtml(_) => {
                let angles = text[range.clone()].match_indices('<');
                escapes.extend(angles.map(|(at, _)| (range.start + at, "&lt;")));
            }
            Event::Start(Tag::Link { dest_url, link_type, .. } | Tag::Image { dest_url, link_type, .. })
                if is_doubtful(&dest_url) =>
            {
                let is_bare = matches!(link_type, LinkType::Autolink | LinkType::Email);
                let at = range.start + usize::from(text[range.clone()].starts_with('!'));
                escapes.push((at, if is_bare { "&lt;" } else { "\\[" }));
            }
            _ => {}
        }
    }
    if escapes.is_empty() {
        return None;
    }
    escapes.sort_unstable();
    escapes.dedup_by_key(|(at, _)| *at);
    let mut escaped = String::with_capacity(text.len() + escapes.len() * 3);
    let mut from = 0;
    for (at, escape) in escapes {
        escaped.push_str(&text[from..at]);
        escaped.push_str(escape);
        // The character replaced is `<` or `[`.
        from = at + 1;
    }
    escaped.push_str(&text[from..]);
    Some(escaped)
}

/// Whether an address has a scheme that could do more than show a page.
fn is_doubtful(address: &str) -> bool {
    let scheme = address.split([':', '/', '?', '#']).next().filter(|scheme| scheme.len() < address.len());
    let has_scheme = scheme.is_some_and(|scheme| address[scheme.len()..].starts_with(':'));
    let known = ["http", "https", "mailto"];
    has_scheme && !scheme.is_some_and(|scheme| known.contains(&scheme.to_ascii_lowercase().as_str()))
}

/// `text`, with the end of a fence that it leaves open; `None` if something else stays open.
fn close_fence(text: &str) -> Option<String> {
    if is_closed(text) {
        return Some(text.to_owned());
    }
    let fences = (3..=8).flat_map(|n| ["`".repeat(n), "~".repeat(n)]);
    fences.map(|fence| [text, "\n", &fence].concat()).find(|closed| is_closed(closed))
}

/// Whether a heading that follows `text` is one, at the outermost level.
fn is_closed(text: &str) -> bool {
    const NEXT: &str = "\n\n## 7f3a next\n";
    let whole = [text, NEXT].concat();
    let at = text.len() + 2;
    let mut depth = 0_usize;
    for (event, range) in Parser::new_ext(&whole, options()).into_offset_iter() {
        match event {
            Event::Start(Tag::Heading { level: HeadingLevel::H2, .. }) if range.start == at => {
                return depth == 0;
            }
            Event::Start(_) => depth += 1,
            Event::End(_) => depth -= 1,
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Headings of the outermost level that say `next`, and whether there is any HTML or a
    /// doubtful link.
    fn outline(text: &str) -> (usize, bool) {
        let (mut n_next, mut depth, mut is_bad) = (0, 0_usize, false);
        let mut in_heading = false;
        for event in Parser::new_ext(text, options()) {
            match event {
                Event::Start(tag) => {
                    is_bad |= matches!(&tag, Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } if is_doubtful(dest_url));
                    in_heading = depth == 0 && matches!(tag, Tag::Heading { .. });
                    depth += 1;
                }
                Event::End(_) => depth -= 1,
                Event::Text(text) if in_heading && &*text == "next" => n_next += 1,
                Event::Html(_) | Event::InlineHtml(_) => is_bad = true,
                _ => {}
            }
        }
        (n_next, is_bad)
    }

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(closed(text), expected, "{text:?}");
        assert_eq!(outline(&[&closed(text), "\n\n## next\n"].concat()), (1, false), "{text:?}");
    }

    #[test]
    fn messages_keep_their_markdown_and_close_what_they_open() {
        check("a **b**\n\n- c", "a **b**\n\n- c");
        check("```rust\nlet x = 1;", "```rust\nlet x = 1;\n```");
        check("~~~~\nx", "~~~~\nx\n~~~~");
        check("use `Vec<T>` and a < b", "use `Vec<T>` and a < b");
        check("[docs](https://a/b) [here](#x) [f](./a:b)", "[docs](https://a/b) [here](#x) [f](./a:b)");
    }

    #[test]
    fn html_and_links_that_run_code_are_text() {
        check("a <b onclick=x>b</b>", "a &lt;b onclick=x>b&lt;/b>");
        check("<!-- hidden", "&lt;!-- hidden");
        check("[x](javascript:alert(1))", "\\[x](javascript:alert(1))");
        check("![x](data:text/html,x)", "!\\[x](data:text/html,x)");
        check("<javascript:alert(1)>", "&lt;javascript:alert(1)>");
    }

    #[test]
    fn fences_and_spans_are_longer_than_what_they_hold() {
        assert_eq!(fenced("", "a\n````\nb\n"), "`````\na\n````\nb\n`````");
        assert_eq!(span("a`b``c"), "```a`b``c```");
        assert_eq!(span("`a\nb"), "`` `a b ``");
        assert_eq!(plain("a *b* <c>\n# d"), r"a \*b\* \<c\> \# d");
    }

    proptest! {
        #[test]
        fn no_message_reaches_beyond_its_block(text in "([a-b]|`{1,5}|~{3,5}|<!--|-->|</?[a-z]+>|<script>|\\n|    |> |- |1\\. |\\[x\\]|\\(javascript:y\\)|<javascript:z>|\\\\|\\|){0,20}") {
            let (n_next, is_bad) = outline(&[&closed(&text), "\n\n## next\n"].concat());
            prop_assert_eq!(n_next, 1);
            prop_assert!(!is_bad, "{}", closed(&text));
        }

        #[test]
        fn no_output_ends_its_fence(text in "([a-b]|`{1,5}|~{3,5}|\\n|<!--|</?pre>){0,20}") {
            let whole = [&fenced("", &text), "\n\n## next\n"].concat();
            prop_assert_eq!(outline(&whole), (1, false));
        }

        #[test]
        fn names_mean_nothing_to_markdown(text in any::<String>()) {
            for line in [plain(&text), span(&text)] {
                let whole = ["*x* ", &line, "\n\n## next\n"].concat();
                let events: Vec<Event<'_>> = Parser::new_ext(&whole, options()).collect();
                let is_bad = events.iter().any(|event| matches!(event, Event::Html(_) | Event::InlineHtml(_) | Event::Start(Tag::Link { .. } | Tag::Image { .. })));
                prop_assert!(!is_bad && outline(&whole).0 == 1, "{}", line);
            }
        }
    }
}
