//! Divides a source into statements, and recognises those that no drawing in text shows.

use super::Undrawn;
use super::graph::is_name;
use super::label::entity;

/// The statements of a diagram, without comments and settings.
pub(super) fn statements(source: &str) -> Result<Vec<&str>, Undrawn> {
    let lines = without_comments(split_settings(source)?.1)?;
    let statements = lines.into_iter().flat_map(split_at_semicolons).map(str::trim);
    Ok(statements.filter(|statement| !statement.is_empty()).collect())
}

/// The title of a diagram, from the settings above it.
pub(super) fn title(source: &str) -> Option<&str> {
    let (settings, _) = split_settings(source).ok()?;
    settings.lines().find_map(|line| line.strip_prefix("title:")).map(str::trim)
}

/// The settings above a diagram, and the diagram.
fn split_settings(source: &str) -> Result<(&str, &str), Undrawn> {
    let source = source.trim_start();
    match source.strip_prefix("---\n") {
        Some(settings) => settings.split_once("\n---").ok_or(Undrawn::Syntax),
        None => Ok(("", source)),
    }
}

/// The lines without comments, directives and descriptions for screen readers. The last two may
/// have several lines.
fn without_comments(source: &str) -> Result<Vec<&str>, Undrawn> {
    let mut lines = Vec::new();
    let mut end = None;
    for line in source.lines() {
        let mut rest = line.trim();
        end = end.or_else(|| {
            let is_description = rest.strip_prefix("accDescr").is_some_and(|rest| rest.trim() == "{");
            let begins = [(rest.starts_with("%%{"), "}%%"), (is_description, "}")];
            begins.into_iter().find(|(begins, _)| *begins).map(|(_, end)| end)
        });
        if let Some(mark) = end {
            let Some((_, after)) = rest.split_once(mark) else { continue };
            (rest, end) = (after, None);
        }
        if !rest.starts_with("%%") {
            lines.push(rest);
        }
    }
    if end.is_some() { Err(Undrawn::Syntax) } else { Ok(lines) }
}

/// Semicolons end statements, except in quotes and brackets and at the end of entities.
fn split_at_semicolons(line: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut depth, mut is_quoted) = (0, 0_usize, false);
    // Where the name of an entity would begin.
    let mut name = None;
    for (at, c) in line.char_indices() {
        match c {
            '"' => is_quoted = !is_quoted,
            '[' | '(' | '{' if !is_quoted => depth += 1,
            ']' | ')' | '}' if !is_quoted => depth = depth.saturating_sub(1),
            ';' if !is_quoted && depth == 0 && name.and_then(|name| entity(&line[name..at])).is_none() => {
                parts.push(&line[start..at]);
                start = at + 1;
            }
            _ => {}
        }
        name = match c {
            '&' => Some(at + 1),
            '#' if name != Some(at) => Some(at + 1),
            c if c.is_alphanumeric() || c == '#' => name,
            _ => None,
        };
    }
    parts.push(&line[start..]);
    parts
}

/// The first word of a statement, and what follows it.
pub(super) fn first_word(statement: &str) -> (&str, &str) {
    let (word, rest) = statement.split_once(char::is_whitespace).unwrap_or((statement, ""));
    (word, rest.trim())
}

/// Whether a statement only changes colours, links nodes to pages or describes the diagram.
/// Where a node has such a word for its name, a line, a text or a bracket follows it, and the
/// statement is drawn.
pub(super) fn is_styling(word: &str, rest: &str) -> bool {
    match word {
        "accTitle" | "accDescr" => rest.starts_with(':'),
        "style" | "classDef" | "class" | "linkStyle" | "click" | "callback" | "link" => {
            let (names, value) = first_word(rest);
            let is_line = ["--", "==", "-.", "~~~"].iter().any(|line| names.contains(line));
            names.starts_with(|c: char| c.is_alphanumeric() || c == '_') && !is_line && !value.is_empty()
        }
        "cssClass" => rest.starts_with('"'),
        _ => word.starts_with("accTitle:") || word.starts_with("accDescr:"),
    }
}

/// Where the first of `marks` is outside of quotes.
pub(super) fn find_unquoted<'a>(source: &str, marks: &[&'a str]) -> Option<(usize, &'a str)> {
    let mut is_quoted = false;
    source.char_indices().find_map(|(at, c)| {
        is_quoted ^= c == '"';
        let mark = marks.iter().find(|mark| source[at..].starts_with(**mark));
        mark.filter(|_| !is_quoted).map(|mark| (at, *mark))
    })
}

/// Both sides of the colon before a text; the colons of `name:::class` and `a::b` are none.
pub(super) fn split_text(source: &str) -> Option<(&str, &str)> {
    let mut from = 0;
    loop {
        let at = from + find_unquoted(&source[from..], &[":"])?.0;
        let after = source[at..].trim_start_matches(':');
        let n_colons = source.len() - at - after.len();
        if n_colons == 1 {
            return Some((&source[..at], after));
        }
        from = at + n_colons;
    }
}

/// A name without the class that chooses its colours: `name:::class`.
pub(super) fn without_class(source: &str) -> Result<&str, Undrawn> {
    match source.split_once(":::") {
        None => Ok(source.trim()),
        Some((name, class)) if is_name(class.trim()) => Ok(name.trim()),
        Some(_) => Err(Undrawn::Syntax),
    }
}
