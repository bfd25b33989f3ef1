//! A session as one HTML page that needs nothing else.
//!
//! The page holds data and a program that shows it. Data is JSON in elements that browsers
//! do not run, with every character escaped that HTML could act on; the program makes text
//! of it, never markup. A content security policy names the hashes of the program and the
//! style, so that nothing else could run or load, even if it got into the page.
//!
//! Written entry by entry: memory holds one block of entries, whatever the session's size.

mod document;
mod highlight;
mod rows;

use std::io::{self, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::facts::Totals;
use super::{ExportSource, Read};
use crate::util::embedded::embedded_text;
use rows::Rows;

const SCRIPT: &str = embedded_text!("page.js");
const STYLE: &str = embedded_text!("page.css");

/// Entries in one element. The page parses whole elements when it shows one of their entries.
const BLOCK_ENTRIES: usize = 50;
/// An element is closed when it has more bytes than this.
const BLOCK_BYTES: usize = 128 * 1024;

/// Writes the page with all branches. Returns how many entries could not be read.
///
/// # Errors
/// If writing fails.
pub(super) fn write(source: &ExportSource, read: Read, out: &mut dyn Write) -> io::Result<usize> {
    let title = read.text(&source.title());
    write_head(&title, out)?;
    let labels = source.tree.labels();
    let (mut rows, mut totals, mut n_lost) = (Rows::new(), Totals::default(), 0);
    let mut block = Block::default();
    for (idx, known) in source.tree.entries().enumerate() {
        let row = match read.entry(&source.tree, idx) {
            Some(entry) => {
                totals.add(&entry);
                rows.row(&entry)
            }
            None => {
                n_lost += 1;
                Rows::unreadable()
            }
        };
        let parent = known.parent.map_or(json!(-1), |parent| json!(parent));
        let label = labels.get(&idx).map(|label| read.text(&label.text));
        block.push(&json!([parent, row.kind, row.preview, read.text(known.id.as_str()), label]), &row.body);
        if block.n_entries == BLOCK_ENTRIES || block.bodies.len() > BLOCK_BYTES {
            block.write(out)?;
        }
    }
    if block.n_entries > 0 {
        block.write(out)?;
    }
    let mut facts = totals.facts();
    facts.extend(source.place().map(|place| read.text(&place)));
    let leaf = source.tree.leaf().map_or(json!(-1), |leaf| json!(leaf));
    let meta = json!({ "title": title, "facts": facts, "leaf": leaf });
    writeln!(out, "<script type=\"application/json\" id=\"meta\">{}</script>", inert(&meta.to_string()))?;
    write!(out, "<script>{SCRIPT}</script>\n</body>\n</html>\n")?;
    out.flush()?;
    Ok(n_lost)
}

/// Everything above the data.
fn write_head(title: &str, out: &mut dyn Write) -> io::Result<()> {
    let policy = format!(
        "default-src 'none'; img-src data:; style-src '{}'; script-src '{}'; base-uri 'none'; form-action 'none'",
        hash(STYLE),
        hash(SCRIPT)
    );
    let title = escaped(title);
    write!(
        out,
        r#"<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{STYLE}</style>
</head>
<body>
<header id="top">
<h1 id="title">{title}</h1>
<div id="facts"></div>
<div id="bar">
<button type="button" id="tree" title="Show or hide the tree">Tree</button>
<select id="mode" title="Entries to show">
<option value="conversation">Conversation</option>
<option value="prompts">Your messages</option>
<option value="all">Everything</option>
</select>
<label><input type="checkbox" id="tool"> open tools</label>
<label><input type="checkbox" id="thinking"> open thinking</label>
<input type="search" id="search" placeholder="Search (/)" autocomplete="off">
<span id="found"></span>
<button type="button" id="theme" title="Dark or light">◐</button>
</div>
<noscript>This page needs JavaScript to show the session. It loads nothing from elsewhere.</noscript>
</header>
<nav id="outline"></nav>
<main id="list" tabindex="0"></main>
"#
    )
}

/// Entries that are written together: their lines of the index, and their bodies.
#[derive(Default)]
struct Block {
    index: String,
    bodies: String,
    n_entries: usize,
}

impl Block {
    fn push(&mut self, line: &Value, body: &Value) {
        let separator = if self.n_entries == 0 { "" } else { ",\n" };
        for (list, item) in [(&mut self.index, line), (&mut self.bodies, body)] {
            list.push_str(separator);
            list.push_str(&inert(&item.to_string()));
        }
        self.n_entries += 1;
    }

    /// Writes the block and begins the next one.
    fn write(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let Self { index, bodies, .. } = std::mem::take(self);
        writeln!(out, "<script type=\"application/json\" class=\"index\">[{index}]</script>")?;
        writeln!(out, "<script type=\"application/json\" class=\"bodies\">[{bodies}]</script>")
    }
}

/// JSON without characters that HTML or JavaScript could act on. All of them can stand only
/// in strings, where an escape means the same.
fn inert(json: &str) -> String {
    let mut inert = String::with_capacity(json.len() + json.len() / 16);
    for c in json.chars() {
        match c {
            '<' => inert.push_str("\\u003c"),
            '>' => inert.push_str("\\u003e"),
            '&' => inert.push_str("\\u0026"),
            '\u{2028}' => inert.push_str("\\u2028"),
            '\u{2029}' => inert.push_str("\\u2029"),
            c => inert.push(c),
        }
    }
    inert
}

/// Text for the content of an element.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\0' => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

/// The source expression of a content security policy for an inline element.
fn hash(content: &str) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, content.as_bytes());
    format!("sha256-{}", STANDARD.encode(digest))
}

#[cfg(test)]
mod tests;
