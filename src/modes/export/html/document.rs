//! Markdown as nested lists for the page: `["p", "text", ["code", "x"]]`. The page makes
//! elements of them by a fixed table, and text of everything else.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use serde_json::{Value, json};

use super::highlight::Highlighter;
use crate::util::flanks::{Marked, without_marks};

/// Deeper nesting is shown flat, because the page follows it recursively.
const MAX_DEPTH: usize = 40;

/// The nodes of `text`. HTML in it is text.
pub(super) fn nodes(text: &str, highlighter: &mut Highlighter) -> Vec<Value> {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut open = Open { stack: vec![Vec::new()], n_flat: 0 };
    let mut code: Option<(String, String)> = None;
    let marked = Marked::new(text);
    for event in Parser::new_ext(&marked.text, options) {
        match event {
            Event::Start(Tag::CodeBlock(kind)) => {
                let language = match &kind {
                    CodeBlockKind::Fenced(info) => info.split([' ', ',', '{']).next().unwrap_or_default(),
                    CodeBlockKind::Indented => "",
                };
                code = Some((without_marks(language).into_owned(), String::new()));
            }
            Event::End(TagEnd::CodeBlock) => {
                let Some((language, code)) = code.take() else { continue };
                let code = code.strip_suffix('\n').unwrap_or(&code);
                let spans = highlighter.spans(&language, code);
                open.node(json!(["pre", language, code, spans]));
            }
            Event::Start(tag) => open.start(start(tag)),
            Event::End(_) => open.end(),
            Event::Text(text) => match &mut code {
                Some((_, code)) => code.push_str(&without_marks(&text)),
                None => open.text(&without_marks(&text)),
            },
            Event::Code(text) => open.node(json!(["code", &*without_marks(&text)])),
            Event::Html(text) | Event::InlineHtml(text) => open.text(&without_marks(&text)),
            Event::InlineMath(text) | Event::DisplayMath(text) => open.text(&without_marks(&text)),
            Event::FootnoteReference(name) => open.text(&["[^", &without_marks(&name), "]"].concat()),
            Event::SoftBreak => open.text("\n"),
            Event::HardBreak => open.node(json!(["br"])),
            Event::Rule => open.node(json!(["hr"])),
            Event::TaskListMarker(is_done) => open.text(if is_done { "☑ " } else { "☐ " }),
        }
    }
    open.finish()
}

/// The beginning of a node.
fn start(tag: Tag<'_>) -> Vec<Value> {
    let name = match tag {
        Tag::Heading { level, .. } => ["h1", "h2", "h3", "h4", "h5", "h6"][level as usize - 1],
        Tag::BlockQuote(_) => "blockquote",
        Tag::List(Some(first)) => return vec![json!("ol"), json!(first)],
        Tag::List(None) => "ul",
        Tag::Item => "li",
        Tag::Emphasis => "em",
        Tag::Strong => "strong",
        Tag::Strikethrough => "del",
        Tag::Table(_) => "table",
        Tag::TableHead => "thead",
        Tag::TableRow => "tr",
        Tag::TableCell => "td",
        Tag::Link { dest_url, .. } => {
            return vec![json!("a"), json!(safe_address(&without_marks(&dest_url)))];
        }
        // Pictures from elsewhere are not loaded; they are links.
        Tag::Image { dest_url, .. } => {
            return vec![json!("a"), json!(safe_address(&without_marks(&dest_url))), json!("🖼 ")];
        }
        _ => "p",
    };
    vec![json!(name)]
}

/// The address if the page may link it; empty otherwise, so that its text remains.
pub(super) fn safe_address(address: &str) -> &str {
    let scheme = address.split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase());
    match scheme.as_deref() {
        Some("http" | "https" | "mailto") => address,
        _ => "",
    }
}

/// The nodes that are not finished, outermost first; the first is the list of all.
struct Open {
    stack: Vec<Vec<Value>>,
    /// Nodes that are too deep to be nodes.
    n_flat: usize,
}

impl Open {
    fn start(&mut self, node: Vec<Value>) {
        if self.stack.len() > MAX_DEPTH {
            self.n_flat += 1;
        } else {
            self.stack.push(node);
        }
    }

    fn end(&mut self) {
        if self.n_flat > 0 {
            self.n_flat -= 1;
        } else if self.stack.len() > 1
            && let Some(node) = self.stack.pop()
        {
            self.node(Value::Array(node));
        }
    }

    fn node(&mut self, node: Value) {
        if let Some(parent) = self.stack.last_mut() {
            parent.push(node);
        }
    }

    fn text(&mut self, text: &str) {
        if let Some(parent) = self.stack.last_mut() {
            parent.push(json!(text));
        }
    }

    fn finish(mut self) -> Vec<Value> {
        while self.stack.len() > 1 {
            self.n_flat = 0;
            self.end();
        }
        // Text outside of all blocks would be taken for the name of a node.
        let nodes = self.stack.pop().unwrap_or_default();
        nodes.into_iter().map(|node| if node.is_string() { json!(["p", node]) } else { node }).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Value) {
        assert_eq!(Value::Array(nodes(text, &mut Highlighter::plain())), expected, "{text}");
    }

    #[test]
    fn markdown_becomes_nodes() {
        check("a **b** `c`", json!([["p", "a ", ["strong", "b"], " ", ["code", "c"]]]));
        check("**粗。**后 `**码。**后`", json!([["p", ["strong", "粗。"], "后 ", ["code", "**码。**后"]]]));
        check("3. x\n4. y", json!([["ol", 3, ["li", "x"], ["li", "y"]]]));
        check("```none\nx\n```", json!([["pre", "none", "x", null]]));
        check("[t](https://a/b)", json!([["p", ["a", "https://a/b", "t"]]]));
    }

    #[test]
    fn html_is_text_and_addresses_that_run_code_are_dropped() {
        check("<b onclick=x>hi</b>", json!([["p", "<b onclick=x>", "hi", "</b>"]]));
        check("<script>\nx\n</script>", json!([["p", "<script>\n", "x\n", "</script>"]]));
        for address in
            ["javascript:alert(1)", "JavaScript:x", "data:text/html,x", "vbscript:x", "file:///etc", "x"]
        {
            check(&format!("[t](<{address}>)"), json!([["p", ["a", "", "t"]]]));
        }
        check("![alt](https://a/b.png)", json!([["p", ["a", "https://a/b.png", "🖼 ", "alt"]]]));
    }

    fn depth(value: &Value) -> usize {
        match value {
            Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
            _ => 0,
        }
    }

    #[test]
    fn deep_nesting_is_flattened() {
        let nodes = Value::Array(nodes(&"> ".repeat(5_000), &mut Highlighter::plain()));
        assert!(depth(&nodes) <= MAX_DEPTH + 2, "{}", depth(&nodes));
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "[a-c`*_<>\\[\\]()#|~\n!:-]{0,60}") {
            let nodes = nodes(&text, &mut Highlighter::plain());
            for node in nodes {
                prop_assert!(node.get(0).is_some_and(Value::is_string), "{node}");
            }
        }
    }
}
