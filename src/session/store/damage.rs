//! Recovers ids and kinds from unreadable lines.

use super::entry::EntryId;
use super::tree::{BrokenLinks, Gap, GapParent};

/// A line of a session file that could not be read, or not all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedLine {
    /// Counts from 1.
    pub line: usize,
    /// The kind of its content, with an article, if known.
    pub what: Option<String>,
}

/// Maximum number of line ranges in a notice.
const MAX_PARTS: usize = 20;

/// The readable fields of a line that is not valid JSON. Both programs begin a line with
/// type, id and parent, so these often survive truncation.
pub(super) fn examine(line: &[u8]) -> (Option<String>, Gap) {
    let text = String::from_utf8_lossy(line);
    // Up to the message or another nested value.
    let start = text.find('{').map_or(0, |at| at + 1);
    let head = text[start..].split(['{', '[']).next().unwrap_or_default();
    let parent = match field(head, "parentId") {
        Some(id) => GapParent::Id(EntryId::new(id)),
        None if head.contains("\"parentId\":null") => GapParent::None,
        None => GapParent::Unknown,
    };
    let role = field(&text, "role");
    let what = field(head, "type").and_then(|kind| describe(kind, role));
    (what, Gap { id: own_id(head).map(EntryId::new), parent })
}

/// The id of the entry whose line begins with `head`. Behind a damaged place, another `id` than
/// that of the entry may be the first.
fn own_id(head: &str) -> Option<&str> {
    let id = field(head, "id")?;
    let (before, behind) = head.split_once(&format!("\"id\":\"{id}\""))?;
    let is_damaged = |c: char| c.is_control() || c == '\u{fffd}';
    let is_own = !before.contains(is_damaged) || behind.starts_with(",\"parentId\":");
    is_own.then_some(id)
}

/// Whether a line that is not valid JSON was written to its end: all brackets outside of
/// strings are closed.
pub(super) fn is_whole(line: &[u8]) -> bool {
    let (mut n_open, mut is_string, mut is_escaped) = (0_usize, false, false);
    for byte in line {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_string => is_escaped = true,
            b'"' => is_string = !is_string,
            _ if is_string => {}
            b'{' | b'[' => n_open += 1,
            b'}' | b']' => n_open = n_open.saturating_sub(1),
            _ => {}
        }
    }
    n_open == 0 && !is_string && line.ends_with(b"}")
}

/// The text of a field; `None` if it is incomplete. A quote that neither another field nor the
/// end follows is damage within the text.
pub(super) fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let key = format!("\"{name}\":\"");
    let (value, behind) = text[text.find(&key)? + key.len()..].split_once('"')?;
    let is_complete = behind.is_empty() || behind.starts_with([',', '}']);
    (is_complete && !value.contains(['\\', '\u{fffd}', '\0'])).then_some(value)
}

/// The kind of an entry, in the user's words.
pub(super) fn describe(kind: &str, role: Option<&str>) -> Option<String> {
    let what = match (kind, role) {
        ("message", Some("user")) => "a message of yours",
        ("message", Some("assistant")) => "an answer",
        ("message", Some("toolResult")) => "the result of a tool",
        ("message", Some("bashExecution")) => "a command of yours",
        ("message", Some("system")) => "a change of prompt or tools",
        ("message", _) => "a message",
        ("model_change", _) => "a change of the model",
        ("thinking_level_change", _) => "a change of the thinking level",
        ("compaction" | "branch_summary", _) => "a summary",
        ("context_edit", _) => "an edit of the context",
        ("session_info", _) => "the name of the session",
        ("label", _) => "a label",
        ("usage", _) => "token counts",
        ("custom" | "custom_message", _) => "something an extension stored",
        _ => return None,
    };
    Some(what.to_owned())
}

/// Lists lines and their kinds: `line 3`, `lines 3-5, 9 (an answer)`. At most
/// twenty ranges. `None` without lines.
pub(in crate::session) fn name_lines(lines: &[DamagedLine]) -> Option<String> {
    let mut parts: Vec<(usize, usize, Option<&str>)> = Vec::new();
    for DamagedLine { line, what } in lines {
        match parts.last_mut() {
            Some((_, last, known)) if *last + 1 == *line && *known == what.as_deref() => *last = *line,
            _ => parts.push((*line, *line, what.as_deref())),
        }
    }
    let shown = parts.iter().take(MAX_PARTS).map(|(first, last, what)| {
        let lines = if first == last { first.to_string() } else { format!("{first}-{last}") };
        what.map_or(lines.clone(), |what| format!("{lines} ({what})"))
    });
    let shown = shown.collect::<Vec<_>>().join(", ");
    let more =
        if parts.len() > MAX_PARTS { format!(", … ({} in all)", lines.len()) } else { String::new() };
    match lines.len() {
        0 => None,
        1 => Some(format!("line {shown}")),
        _ => Some(format!("lines {shown}{more}")),
    }
}

/// Notices about lines that can be read and do not fit together.
pub(super) fn link_notices(repeated: &[usize], links: &BrokenLinks) -> Vec<String> {
    let named = |lines: &[usize]| {
        let lines: Vec<DamagedLine> =
            lines.iter().map(|line| DamagedLine { line: *line, what: None }).collect();
        name_lines(&lines)
    };
    let about = |lines: &[usize], one: &str, several: &str| {
        let what = if lines.len() == 1 { one } else { several };
        named(lines).map(|lines| format!("{lines} of the session file {what}"))
    };
    let notices = [
        about(repeated, "repeats an earlier line and is ignored", "repeat earlier lines and are ignored"),
        about(
            &links.orphans,
            "follows an entry that is missing; what came before it is in /tree",
            "follow entries that are missing; what came before them is in /tree",
        ),
        about(
            &links.reused_ids,
            "has the id of an earlier entry; both are in /tree",
            "have ids of earlier entries; all of them are in /tree",
        ),
        about(
            links.circle.as_slice(),
            "follows one of its own successors, so the conversation begins there",
            "follow their own successors",
        ),
    ];
    notices.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_beginning_of_a_line_is_whole() {
        let line = r#"{"type":"label","id":"l","a":[{"b":"\"}"},"\\"],"c":{"d":{}}}"#;
        for len in 0..line.len() {
            assert!(!is_whole(&line.as_bytes()[..len]), "{len}");
        }
        assert!(is_whole(line.as_bytes()) && is_whole(line.replace("label", "l\0bel").as_bytes()));
    }

    #[test]
    fn the_beginning_of_a_line_tells_what_it_was() {
        let check = |line: &str, what: Option<&str>, id: Option<&str>, parent: GapParent| {
            let id = id.map(EntryId::new);
            assert_eq!(examine(line.as_bytes()), (what.map(str::to_owned), Gap { id, parent }), "{line}");
        };
        let a = || GapParent::Id(EntryId::new("a"));
        let line = r#"{"type":"message","id":"b","parentId":"a","timestamp":"T","message":{"role":"assistant","content":[{"type":"toolCall","id":"c1"#;
        check(line, Some("an answer"), Some("b"), a());
        check(&line[..60], Some("a message"), Some("b"), a());
        check(&line[..40], Some("a message"), Some("b"), GapParent::Unknown);
        check(&line[..25], Some("a message"), None, GapParent::Unknown);
        check(r#"{"type":"label","id":"l","parentId":null,"#, Some("a label"), Some("l"), GapParent::None);
        // Ids inside an entry's content are not its own.
        check(
            r#"{"type":"custom","data":{"id":"x","parentId":"y"},"id":"#,
            Some("something an extension stored"),
            None,
            GapParent::Unknown,
        );
        // Nor is one behind a place that is damaged, unless a parent follows.
        let zeros =
            |range: std::ops::Range<usize>| line.replace(&line[range.clone()], &"\0".repeat(range.len()));
        check(&zeros(18..line.len() - 20), Some("a message"), None, GapParent::Unknown);
        check(&zeros(9..16), None, Some("b"), a());
        // Nor is the beginning of an id within which a quote stands.
        let quoted = |id: &str| line.replace(&format!("\"{id}\""), &format!("\"{id}\"de18\""));
        check(&quoted("b"), Some("an answer"), None, a());
        check(&quoted("a"), Some("an answer"), Some("b"), GapParent::Unknown);
        check("garbage", None, None, GapParent::Unknown);
        check("", None, None, GapParent::Unknown);
        check("\0\0\0", None, None, GapParent::Unknown);
    }

    #[test]
    fn lines_are_named_in_ranges_with_what_they_held() {
        let line = |line, what: Option<&str>| DamagedLine { line, what: what.map(str::to_owned) };
        let check = |lines: &[DamagedLine], expected: Option<&str>| {
            assert_eq!(name_lines(lines).as_deref(), expected);
        };
        check(&[], None);
        check(&[line(118, None)], Some("line 118"));
        check(&[line(7, Some("an answer"))], Some("line 7 (an answer)"));
        let some = [line(1, None), line(2, None), line(3, None), line(5, Some("an answer")), line(6, None)];
        check(&some, Some("lines 1-3, 5 (an answer), 6"));
        let many: Vec<DamagedLine> = (1..50).map(|n| line(n * 2, None)).collect();
        assert!(name_lines(&many).unwrap().ends_with("38, 40, … (49 in all)"));
    }
}
