//! Whatever a session contains stays text: the page is taken apart again and compared with
//! the page of a harmless session.

use proptest::prelude::*;
use serde_json::Map;

use crate::session::Secrets;

use super::super::ExportFormat;
use super::*;

/// A session with these lines below its header.
fn source(header: &Value, lines: &[Value]) -> ExportSource {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    let lines: Vec<String> = [header].into_iter().chain(lines).map(ToString::to_string).collect();
    std::fs::write(&path, lines.join("\n") + "\n").unwrap();
    let stored = crate::session::read_tree(&path).unwrap().unwrap();
    ExportSource { tree: stored.tree, header: stored.header, name: stored.name }
}

fn page(source: &ExportSource) -> String {
    let mut out = Vec::new();
    source.write(ExportFormat::Html, Secrets::Keep, 0, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// A part of a page as a browser tokenises it: inside of `script`, `style` and `title`, only
/// the end tag ends the text.
#[derive(Debug, PartialEq)]
enum Part {
    Tag(String),
    /// The content of a script or a style, or text.
    Text(String),
}

fn parts(page: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut rest = page;
    while let Some(at) = rest.find('<') {
        if at > 0 {
            parts.push(Part::Text(rest[..at].to_owned()));
        }
        let end = rest[at..].find('>').expect("a tag ends") + at + 1;
        let tag = &rest[at..end];
        parts.push(Part::Tag(tag.to_owned()));
        rest = &rest[end..];
        let name = tag[1..].split([' ', '>']).next().unwrap();
        if ["script", "style"].contains(&name) {
            let end = rest.to_ascii_lowercase().find(&format!("</{name}")).expect("it ends");
            parts.push(Part::Text(rest[..end].to_owned()));
            rest = &rest[end..];
        }
    }
    parts.push(Part::Text(rest.to_owned()));
    parts
}

fn tags(page: &str) -> Vec<String> {
    let tag = |part| match part {
        Part::Tag(tag) => Some(tag),
        Part::Text(_) => None,
    };
    parts(page).into_iter().filter_map(tag).collect()
}

/// The contents of elements with JSON.
fn data(page: &str) -> Vec<Value> {
    let parts = parts(page);
    let is_data = |part: &Part| matches!(part, Part::Tag(tag) if tag.starts_with("<script type="));
    let texts = parts.windows(2).filter(|pair| is_data(&pair[0])).map(|pair| &pair[1]);
    texts
        .map(|text| match text {
            Part::Text(text) => {
                assert!(!text.contains(['<', '>', '&', '\u{2028}', '\u{2029}']), "{text}");
                serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
            }
            Part::Tag(tag) => panic!("{tag}"),
        })
        .collect()
}

/// A session with one entry of each kind, with `text` in every field that can hold any.
fn session_full_of(text: &str) -> (Value, Vec<Value>) {
    let usage = json!({"input": 1, "output": 1, "cost": {"total": 0.1}});
    let header = json!({"type": "session", "version": 3, "id": text, "timestamp": text, "cwd": text});
    let mut arguments = Map::new();
    for name in ["command", text] {
        arguments.insert(name.to_owned(), json!(text));
    }
    let file = json!({"path": text, "content": text});
    let bodies = [
        json!({"type": "message", "message": {"role": "system", "content": text, "sections": {text: text}, "toolsAdded": [{"name": text, "description": text, "parameters": {text: text}}], "timestamp": 1}}),
        json!({"type": "message", "message": {"role": "user", "content": [{"type": "text", "text": text}, {"type": "image", "data": text, "mimeType": text}, {"type": "image", "data": text, "mimeType": "image/png"}, {"type": "image", "data": "AAAA", "mimeType": text}, {"type": "text", "text": text, "imageUrl": format!("https://{text}")}, {"type": text, "x": text}], "timestamp": 1}}),
        json!({"type": "message", "message": {"role": "user", "content": text, "timestamp": 1}}),
        json!({"type": "message", "message": {"role": "assistant", "content": [{"type": "text", "text": text}, {"type": "text", "text": format!("```{text}\n{text}\n```\n[{text}]({text}) ![{text}](<{text}>)")}, {"type": "thinking", "thinking": text}, {"type": "toolCall", "id": text, "name": text, "arguments": arguments}, {"type": "toolCall", "id": "w", "name": "write", "arguments": file}, {"type": text}], "api": text, "provider": text, "model": text, "usage": usage, "stopReason": "error", "errorMessage": text, "timestamp": 1}}),
        json!({"type": "message", "message": {"role": "toolResult", "toolCallId": text, "toolName": text, "content": [{"type": "text", "text": text}], "details": {"diff": text}, "isError": false, "timestamp": 1}}),
        json!({"type": "message", "message": {"role": "toolResult", "toolCallId": "w", "toolName": "read", "content": [{"type": "text", "text": text}], "isError": true, "timestamp": 1}}),
        json!({"type": "message", "message": {"role": "bashExecution", "command": text, "output": text, "timestamp": 1}}),
        json!({"type": "message", "message": {"role": text, "content": text}}),
        json!({"type": "model_change", "provider": text, "modelId": text}),
        json!({"type": "thinking_level_change", "thinkingLevel": text}),
        json!({"type": "usage", "usage": usage, "kind": text}),
        json!({"type": "compaction", "summary": text, "firstKeptEntryId": text, "tokensBefore": 1}),
        json!({"type": "branch_summary", "fromId": text, "summary": text}),
        json!({"type": "context_edit", "targetId": text, "replacement": {"content": text}}),
        json!({"type": "custom", "customType": text, "data": {text: text}}),
        json!({"type": "custom_message", "customType": text, "content": text, "display": true}),
        json!({"type": "label", "targetId": format!("{text}1"), "label": text}),
        json!({"type": "session_info", "name": text}),
        json!({"type": format!("x{text}"), text: text}),
    ];
    let lines = bodies.into_iter().enumerate().map(|(n, mut body)| {
        body["id"] = json!(format!("{text}{n}"));
        body["parentId"] = if n == 0 { Value::Null } else { json!(format!("{text}{}", n - 1)) };
        body["timestamp"] = json!(text);
        body
    });
    (header, lines.collect())
}

const HOSTILE: &[&str] = &[
    "</script><script>document.title='owned'</script>",
    "<!--<script>",
    "--><img src=x onerror=\"document.title='owned'\">",
    "\"><svg onload=alert(1)>",
    "javascript:document.title='owned'",
    "' onmouseover='alert(1)",
    "]]></title></style><meta http-equiv=refresh content=0;url=https://example.com>",
    "\u{2028}\u{2029}\u{0}\u{1b}[31m\\u003cb>",
    "&lt;b&gt;&amp;<b>",
    "__proto__",
    "${alert(1)}`",
    "data:text/html,<script>alert(1)</script>",
    "![](https://example.com/x.png) <https://example.com> <javascript:x> [a](vbscript:x)",
];

#[test]
fn hostile_content_in_every_field_stays_text() {
    let (header, lines) = session_full_of("harmless");
    let expected = tags(&page(&source(&header, &lines)));
    for text in HOSTILE {
        let (header, lines) = session_full_of(text);
        let source = source(&header, &lines);
        assert_eq!(source.tree.len(), lines.len());
        let page = page(&source);
        // The same elements with the same attributes, whatever the content.
        assert_eq!(tags(&page), expected, "{text}");
        let data = data(&page);
        let (index, bodies) = (data[0].as_array().unwrap(), data[1].as_array().unwrap());
        assert_eq!((index.len(), bodies.len()), (lines.len(), lines.len()));
        // It is all there, as strings.
        assert_eq!(bodies[2]["b"][0], json!(["text", text]), "{text}");
        assert_eq!(index[3][3], format!("{text}3"));
    }
}

/// The nodes and blocks that are links or pictures, with what they link to.
fn addresses(value: &Value, found: &mut Vec<(String, String)>) {
    if let Value::Array(items) = value {
        if let (Some(Value::String(kind)), Some(Value::String(to))) = (items.first(), items.get(1))
            && ["a", "link", "img"].contains(&kind.as_str())
        {
            found.push((kind.clone(), to.clone()));
        }
        items.iter().for_each(|item| addresses(item, found));
    } else if let Value::Object(fields) = value {
        fields.values().for_each(|value| addresses(value, found));
    }
}

#[test]
fn links_go_to_pages_only_and_pictures_are_data() {
    for text in HOSTILE {
        let (header, lines) = session_full_of(text);
        let data = data(&page(&source(&header, &lines)));
        let mut found = Vec::new();
        data.iter().for_each(|value| addresses(value, &mut found));
        for (kind, to) in found {
            let is_fine = match kind.as_str() {
                "img" => to == "image/png",
                _ => to.is_empty() || to.starts_with("https://") || to.starts_with("http://"),
            };
            assert!(is_fine, "{kind} {to:?}");
        }
    }
}

#[test]
fn page_loads_nothing_and_runs_only_its_own_program() {
    let (header, lines) = session_full_of("harmless");
    let page = page(&source(&header, &lines));
    let policy = format!("script-src '{}'; base-uri 'none'", hash(SCRIPT));
    assert!(page.contains("default-src 'none'; img-src data:;") && page.contains(&policy));
    for tag in tags(&page) {
        let is_inert = !tag.contains(" src=") && !tag.contains(" href=") && !tag.contains(" on");
        assert!(is_inert, "{tag}");
    }
    // The program never has the browser parse text as HTML or as a program.
    for name in
        ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function(", "fetch("]
    {
        assert!(!SCRIPT.contains(name), "{name}");
    }
    // Nothing in it ends its element.
    for text in [SCRIPT, STYLE] {
        assert!(!text.contains("</") && !text.contains("<!--"));
    }
}

#[test]
fn index_and_bodies_agree_and_blocks_are_small() {
    let header = json!({"type": "session", "version": 3, "id": "s", "timestamp": "T", "cwd": "/"});
    let lines: Vec<Value> = (0..130)
        .map(|n| {
            let parent = (n > 0).then(|| format!("e{}", n - 1));
            json!({"type": "message", "id": format!("e{n}"), "parentId": parent, "timestamp": "T", "message": {"role": "user", "content": format!("text {n}"), "timestamp": 1}})
        })
        .collect();
    let data = data(&page(&source(&header, &lines)));
    let (blocks, meta) = data.split_at(data.len() - 1);
    assert_eq!(blocks.len(), 2 * 130_usize.div_ceil(BLOCK_ENTRIES));
    let mut n = 0;
    for pair in blocks.chunks(2) {
        let (index, bodies) = (pair[0].as_array().unwrap(), pair[1].as_array().unwrap());
        assert_eq!(index.len(), bodies.len());
        for (line, body) in index.iter().zip(bodies) {
            assert_eq!(line, &json!([n - 1, "user", format!("text {n}"), format!("e{n}"), null]));
            assert_eq!(body["b"], json!([["text", format!("text {n}")]]));
            n += 1;
        }
    }
    assert_eq!((n, &meta[0]["leaf"]), (130, &json!(129)));
}

#[test]
fn masked_page_contains_no_secret_and_counts_it_before() {
    let key = ["gh", "p_", "q7Zk2Xw9Lm4Tb8Rv3Ns6q7Zk2Xw9Lm4Tb8Rv"].concat();
    let (header, lines) = session_full_of(&format!("use {key} now"));
    let source = source(&header, &lines);
    assert!(source.secrets(ExportFormat::Html).n_secrets() > 20);
    for format in [ExportFormat::Html, ExportFormat::Markdown] {
        let mut out = Vec::new();
        source.write(format, Secrets::Mask, 0, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("[masked: GitHub token]") || text.contains(r"\[masked: GitHub token\]"));
        assert!(!text.contains(&key), "{format:?}");
    }
}

fn any_hostile() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        prop::sample::select(HOSTILE).prop_map(str::to_owned),
        any::<String>(),
        "[<>&\"'/!a-z=: `*_\\[\\]()-]{0,12}",
    ];
    prop::collection::vec(piece, 1..4).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn any_content_in_every_field_stays_text(text in any_hostile()) {
        let (header, lines) = session_full_of("harmless");
        let expected = tags(&page(&source(&header, &lines)));
        let (header, lines) = session_full_of(&text);
        let page = page(&source(&header, &lines));
        prop_assert_eq!(tags(&page), expected);
        let data = data(&page);
        prop_assert_eq!(&data[1][2]["b"][0], &json!(["text", text]));
    }

    #[test]
    fn escaped_json_is_the_same_json(text in any::<String>()) {
        let json = json!({ text.as_str(): text }).to_string();
        let inert = inert(&json);
        let is_inert = !inert.contains(['<', '>', '&', '\u{2028}', '\u{2029}']);
        prop_assert!(is_inert);
        prop_assert_eq!(serde_json::from_str::<Value>(&inert).unwrap(), serde_json::from_str::<Value>(&json).unwrap());
    }
}

/// Receives a page, and measures how it arrives.
#[derive(Default)]
struct Measured {
    n_bytes: usize,
    largest_write: usize,
}

impl Write for Measured {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.n_bytes += bytes.len();
        self.largest_write = self.largest_write.max(bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn fifty_thousand_messages_are_written_in_blocks_and_linear_size() {
    let header = json!({"type": "session", "version": 3, "id": "s", "timestamp": "", "cwd": "/w"});
    let written = |n_messages: usize| {
        let lines: Vec<Value> = (0..n_messages)
            .map(|at| {
                let parent = at.checked_sub(1).map(|parent| format!("e{parent:05}"));
                json!({"type": "message", "id": format!("e{at:05}"), "parentId": parent, "timestamp": "",
                    "message": {"role": "user", "content": format!("message number {at:05}")}})
            })
            .collect();
        let mut out = Measured::default();
        source(&header, &lines).write(ExportFormat::Html, Secrets::Keep, 0, &mut out).unwrap();
        out
    };
    let (few, many) = (written(500), written(50_000));
    // Nothing is collected: what is written at once does not grow with the session.
    assert_eq!(many.largest_write, few.largest_write);
    let fixed = STYLE.len() + SCRIPT.len();
    let per_message = |out: &Measured, n: usize| (out.n_bytes - fixed) / n;
    let (few, many) = (per_message(&few, 500), per_message(&many, 50_000));
    assert!(many <= few + few / 10, "{many} bytes per message, {few} in a short session");
}
