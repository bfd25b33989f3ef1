//! Texts of diagrams: quotes, entities and tags of HTML become plain lines.

use ratatui::style::Style;

use super::super::super::text::{sanitize, width, wrap_plain};

/// Longer texts are no labels.
const MAX_CHARS: usize = 400;

/// The text of a label, with `\n` between lines. `None` if it is too long.
pub(super) fn plain(source: &str) -> Option<String> {
    let source = source.trim();
    let source = strip_pair(source, "\"").unwrap_or(source).trim();
    let markdown = strip_pair(source, "`");
    let source = markdown.unwrap_or(source);
    if source.chars().nth(MAX_CHARS).is_some() {
        return None;
    }
    let text = without_tags(source);
    let text = if markdown.is_some() { without_bold(&text) } else { text };
    // Text that is escaped is no tag.
    let text = sanitize(&decode(&text).replace("\\n", "\n")).into_owned();
    let lines: Vec<&str> = text.split('\n').map(str::trim).collect();
    Some(lines.join("\n").trim_matches('\n').to_owned())
}

fn strip_pair<'a>(text: &'a str, mark: &str) -> Option<&'a str> {
    text.strip_prefix(mark)?.strip_suffix(mark)
}

/// The lines of a text within `most` cells.
pub(super) fn lines(text: &str, most: usize) -> Vec<String> {
    if text.is_empty() {
        return Vec::new();
    }
    let most = u16::try_from(most).unwrap_or(u16::MAX);
    let wrapped = |line: &str| -> Vec<String> {
        wrap_plain(line, most, Style::new()).iter().map(|row| row.text().trim_end().to_owned()).collect()
    };
    text.split('\n').flat_map(wrapped).collect()
}

pub(super) fn widest(lines: &[String]) -> usize {
    lines.iter().map(|line| width(line)).max().unwrap_or(0)
}

/// Markdown without the marks around bold text; one without a partner stays.
fn without_bold(text: &str) -> String {
    let n_pairs = text.matches("**").count() / 2;
    text.replacen("**", "", 2 * n_pairs)
}

/// Entities of HTML and those of Mermaid, which begin with `#`.
fn decode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['&', '#']) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let name = from[1..].split_once(';').map(|(name, _)| name).filter(|name| name.len() <= 8);
        match name.and_then(|name| Some((name.len(), entity(name)?))) {
            Some((n_bytes, c)) => {
                out.push(c);
                rest = &from[n_bytes + 2..];
            }
            None => {
                out.push_str(&from[..1]);
                rest = &from[1..];
            }
        }
    }
    out + rest
}

pub(super) fn entity(name: &str) -> Option<char> {
    let number = name.strip_prefix('#').unwrap_or(name);
    match name {
        "quot" => Some('"'),
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "nbsp" => Some(' '),
        "apos" => Some('\''),
        _ if number.starts_with(['x', 'X']) => char::from_u32(u32::from_str_radix(&number[1..], 16).ok()?),
        _ => char::from_u32(number.parse().ok()?),
    }
}

/// Line breaks for `<br>`, nothing for pairs of tags that change the look of letters; other text
/// between angle brackets, such as type arguments, stays.
fn without_tags(text: &str) -> String {
    const LOOKS: [&str; 12] =
        ["b", "i", "u", "s", "em", "strong", "small", "sub", "sup", "span", "code", "center"];
    let mut out = String::with_capacity(text.len());
    let mut open: Vec<String> = Vec::new();
    let mut rest = text;
    while let Some((before, from)) = rest.split_once('<') {
        out.push_str(before);
        let (tag, after) = from.split_once('>').unwrap_or(("", from));
        let name = tag.trim_matches(['/', ' ']).split(' ').next().unwrap_or_default().to_ascii_lowercase();
        let is_known = LOOKS.contains(&name.as_str());
        rest = if name == "br" {
            out.push('\n');
            after
        } else if is_known && tag.starts_with('/') && open.last() == Some(&name) {
            open.pop();
            after
        } else if is_known && after.to_ascii_lowercase().contains(&format!("</{name}>")) {
            open.push(name);
            after
        } else {
            out.push('<');
            from
        };
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_plain_text() {
        for (source, expected) in [
            ("\"a b\"", "a b"),
            (" a<br/>b<BR>c ", "a\nb\nc"),
            ("<b>x</b> &lt;T&gt; #35; #quot;q#quot; #9829;", "x <T> # \"q\" ♥"),
            ("Vec<u8> & co; #1", "Vec<u8> & co; #1"),
            ("\"`**bold** text ** `\"", "bold text **"),
            ("f(**kwargs) char** argv 2**10 **x**", "f(**kwargs) char** argv 2**10 **x**"),
            ("use &lt;b&gt; tags #lt;br#gt;", "use <b> tags <br>"),
            ("<i>a <B>b</B></i> Box<S> Map<B, <u>U</u>> x</b>", "a b Box<S> Map<B, U> x</b>"),
            ("a\\nb", "a\nb"),
            ("a\u{1b}[31mb#27;[2Jc#8238;", "abc"),
            ("&#x41;", "A"),
            ("", ""),
        ] {
            assert_eq!(plain(source).as_deref(), Some(expected), "{source:?}");
        }
        assert_eq!(plain(&"x".repeat(401)), None);
    }

    #[test]
    fn lines_wrap_at_words() {
        assert_eq!(lines("one two three\n世界", 8), ["one two", "three", "世界"]);
        assert!(lines("", 8).is_empty());
    }
}
