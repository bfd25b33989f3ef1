//! What clients see of a tool call: title, kind, locations, diffs and output.

use std::path::{Path, PathBuf};

use agent_client_protocol_schema::v1::{
    self as acp, Content, Diff, ImageContent, TextContent, ToolCallContent, ToolCallLocation, ToolKind,
};
use serde_json::Value;

use crate::ai::ContentBlock;
use crate::tools;

/// How paths of arguments are read.
#[derive(Debug, Clone)]
pub(super) struct Folders {
    pub(super) cwd: PathBuf,
    pub(super) home: Option<PathBuf>,
}

impl Folders {
    pub(super) fn resolve(&self, path: &str) -> PathBuf {
        tools::resolve(path, &self.cwd, self.home.as_deref())
    }

    /// Relative to the session's directory where it is in there.
    fn shown(&self, path: &Path) -> String {
        match path.strip_prefix(&self.cwd) {
            Ok(inside) if inside.as_os_str().is_empty() => ".".to_owned(),
            Ok(inside) => inside.display().to_string(),
            Err(_) => path.display().to_string(),
        }
    }
}

/// A call whose arguments are complete.
pub(super) struct CallView {
    pub(super) title: String,
    pub(super) locations: Vec<ToolCallLocation>,
    /// What it would change, before it runs.
    pub(super) content: Vec<ToolCallContent>,
}

pub(super) fn kind(tool: &str) -> ToolKind {
    match tool {
        "read" => ToolKind::Read,
        "edit" | "write" => ToolKind::Edit,
        "bash" => ToolKind::Execute,
        "grep" | "find" | "ls" => ToolKind::Search,
        _ => ToolKind::Other,
    }
}

pub(super) fn describe(tool: &str, arguments: &Value, folders: &Folders) -> CallView {
    let text = |name: &str| arguments.get(name).and_then(Value::as_str);
    let path = text("path").map(|path| folders.resolve(path));
    let place = || path.as_deref().map_or(".".to_owned(), |path| folders.shown(path));
    let title = match tool {
        "read" => format!("Read {}{}", place(), lines(arguments)),
        "edit" => format!("Edit {}", place()),
        "write" => format!("Write {}", place()),
        "bash" => text("command").unwrap_or("bash").trim().to_owned(),
        "grep" => format!("Search for \"{}\" in {}", text("pattern").unwrap_or_default(), place()),
        "find" => format!("Find \"{}\" in {}", text("pattern").unwrap_or_default(), place()),
        "ls" => format!("List {}", place()),
        other => other.to_owned(),
    };
    let line = match tool {
        "read" => number(arguments, "offset").and_then(|line| u32::try_from(line).ok()),
        _ => None,
    };
    let locations = path.iter().map(|path| ToolCallLocation::new(path.clone()).line(line)).collect();
    let content = path.map(|path| planned(tool, arguments, &path)).unwrap_or_default();
    CallView { title, locations, content }
}

/// `:10-20` for a window of lines.
fn lines(arguments: &Value) -> String {
    match (number(arguments, "offset"), number(arguments, "limit")) {
        (None, None) => String::new(),
        (Some(first), None) => format!(":{first}-"),
        (first, Some(n_lines)) => {
            let first = first.unwrap_or(1);
            format!(":{first}-{}", first.saturating_add(n_lines).saturating_sub(1))
        }
    }
}

fn number(arguments: &Value, name: &str) -> Option<u64> {
    // The cast saturates.
    arguments.get(name).and_then(Value::as_f64).map(|number| number.max(0.0) as u64)
}

/// What a call would change, as far as its arguments tell.
fn planned(tool: &str, arguments: &Value, path: &Path) -> Vec<ToolCallContent> {
    match tool {
        "edit" => tools::Edit::from_arguments(arguments)
            .into_iter()
            .map(|edit| diff(path, Some(edit.old_text), edit.new_text))
            .collect(),
        "write" => {
            let text = arguments.get("content").and_then(Value::as_str);
            text.map(|text| diff(path, None, text.to_owned())).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

fn diff(path: &Path, old: Option<String>, new: String) -> ToolCallContent {
    ToolCallContent::Diff(Diff::new(path, new).old_text(old))
}

/// Whether results of a tool are shown as changes of a file.
pub(super) fn changes_files(tool: &str) -> bool {
    matches!(tool, "edit" | "write")
}

/// What a call that succeeded changed. `overwritten` is the text that a file had before a
/// `write`.
pub(super) fn changed(
    tool: &str,
    arguments: &Value,
    details: Option<&Value>,
    overwritten: Option<String>,
    folders: &Folders,
) -> Option<Vec<ToolCallContent>> {
    let path = folders.resolve(arguments.get("path")?.as_str()?);
    match tool {
        "edit" => {
            let patch = details.and_then(|details| details.get("patch")).and_then(Value::as_str);
            let hunks = patch.map(hunks).filter(|hunks| !hunks.is_empty());
            Some(match hunks {
                Some(hunks) => hunks.into_iter().map(|(old, new)| diff(&path, Some(old), new)).collect(),
                None => planned(tool, arguments, &path),
            })
        }
        "write" => {
            let text = arguments.get("content")?.as_str()?;
            Some(vec![diff(&path, overwritten, text.to_owned())])
        }
        _ => None,
    }
}

/// Where a call that succeeded changed a file.
pub(super) fn changed_location(
    arguments: &Value,
    details: Option<&Value>,
    folders: &Folders,
) -> Option<ToolCallLocation> {
    let line = details?.get("firstChangedLine")?.as_u64().and_then(|line| u32::try_from(line).ok())?;
    let path = folders.resolve(arguments.get("path")?.as_str()?);
    Some(ToolCallLocation::new(path).line(line))
}

/// The old and the new text of each hunk of a unified diff.
fn hunks(patch: &str) -> Vec<(String, String)> {
    let mut hunks: Vec<(String, String)> = Vec::new();
    let mut last_was = ' ';
    for line in patch.split_inclusive('\n') {
        if line.starts_with("@@") {
            hunks.push((String::new(), String::new()));
            continue;
        }
        let Some((old, new)) = hunks.last_mut() else { continue };
        let Some(sign) = line.chars().next() else { continue };
        let text = &line[sign.len_utf8()..];
        match sign {
            ' ' => {
                old.push_str(text);
                new.push_str(text);
            }
            '-' => old.push_str(text),
            '+' => new.push_str(text),
            // `\ No newline at end of file` is about the line before.
            '\\' => {
                if last_was != '+' {
                    drop_break(old);
                }
                if last_was != '-' {
                    drop_break(new);
                }
            }
            _ => {}
        }
        last_was = sign;
    }
    hunks
}

fn drop_break(text: &mut String) {
    if text.ends_with('\n') {
        text.pop();
    }
}

/// Output of a tool as content.
pub(super) fn output(content: &[ContentBlock]) -> Vec<ToolCallContent> {
    content.iter().filter_map(block).map(|block| ToolCallContent::Content(Content::new(block))).collect()
}

/// A block of pi's as one of the protocol; `None` for kinds that pi does not know.
pub(super) fn block(block: &ContentBlock) -> Option<acp::ContentBlock> {
    match block {
        ContentBlock::Text(text) => Some(text_block(text.text.as_str())),
        ContentBlock::Image(image) => {
            Some(acp::ContentBlock::Image(ImageContent::new(image.data.as_str(), image.mime_type.as_str())))
        }
        ContentBlock::ImageUrl(image) => Some(text_block(image.url())),
        ContentBlock::Unknown(_) => None,
    }
}

pub(super) fn text_block(text: impl Into<String>) -> acp::ContentBlock {
    acp::ContentBlock::Text(TextContent::new(text))
}

/// What `text` adds to the output `shown`, of which it may only contain the end.
pub(super) fn added<'t>(shown: &str, text: &'t str) -> &'t str {
    &text[overlap(shown.as_bytes(), text.as_bytes())..]
}

/// The length of the longest beginning of `text` that `shown` ends with. Linear.
fn overlap(shown: &[u8], text: &[u8]) -> usize {
    // For each beginning of `text`: the longest shorter one that it ends with.
    let mut shorter = vec![0; text.len()];
    let mut len = 0;
    for at in 1..text.len() {
        while len > 0 && text[at] != text[len] {
            len = shorter[len - 1];
        }
        len += usize::from(text[at] == text[len]);
        shorter[at] = len;
    }
    let mut len = 0;
    for byte in shown {
        while len > 0 && (len == text.len() || text[len] != *byte) {
            len = shorter[len - 1];
        }
        len += usize::from(text.get(len) == Some(byte));
    }
    // Both are text, so the end of what they share is a boundary in both.
    len
}

/// The exit code of a command whose result is `text`; `None` if it was killed.
pub(super) fn exit_code(text: &str, is_error: bool) -> Option<i64> {
    if !is_error {
        return Some(0);
    }
    text.lines().last()?.strip_prefix("Command exited with code ")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn folders() -> Folders {
        Folders { cwd: PathBuf::from("/work"), home: Some(PathBuf::from("/home/ada")) }
    }

    #[track_caller]
    fn check_title(tool: &str, arguments: Value, title: &str, location: Option<(&str, Option<u32>)>) {
        let view = describe(tool, &arguments, &folders());
        let found = view.locations.first().map(|place| (place.path.to_str().unwrap(), place.line));
        assert_eq!((view.title.as_str(), found), (title, location));
    }

    #[test]
    fn titles_say_what_a_call_does_and_locations_are_absolute() {
        check_title("read", json!({"path": "src/a.rs"}), "Read src/a.rs", Some(("/work/src/a.rs", None)));
        let window = json!({"path": "a", "offset": 10, "limit": 5});
        check_title("read", window, "Read a:10-14", Some(("/work/a", Some(10))));
        check_title("edit", json!({"path": "~/x"}), "Edit /home/ada/x", Some(("/home/ada/x", None)));
        check_title("write", json!({"path": "/etc/x"}), "Write /etc/x", Some(("/etc/x", None)));
        check_title("bash", json!({"command": " make test\n"}), "make test", None);
        check_title("grep", json!({"pattern": "fn"}), "Search for \"fn\" in .", None);
        check_title("ls", json!({"path": "."}), "List .", Some(("/work", None)));
        check_title("deploy", json!({"path": 7}), "deploy", None);
        // Arguments may be anything.
        check_title("read", json!(null), "Read .", None);
        check_title("bash", json!([]), "bash", None);
    }

    #[test]
    fn planned_changes_are_diffs() {
        let edits = json!({"path": "a", "edits": [{"oldText": "x", "newText": "y"}]});
        assert_eq!(
            describe("edit", &edits, &folders()).content,
            [diff(Path::new("/work/a"), Some("x".to_owned()), "y".to_owned(),)]
        );
        let write = json!({"path": "a", "content": "new"});
        assert_eq!(
            describe("write", &write, &folders()).content,
            [diff(Path::new("/work/a"), None, "new".to_owned(),)]
        );
    }

    #[test]
    fn hunks_of_a_patch_are_the_texts_before_and_after() {
        let patch = "--- a\n+++ a\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n@@ -9,1 +9,2 @@\n-end\n\\ No newline at end of file\n+end\n+more\n\\ No newline at end of file\n";
        let expected = [
            ("one\ntwo\nthree\n".to_owned(), "one\n2\nthree\n".to_owned()),
            ("end".to_owned(), "end\nmore".to_owned()),
        ];
        assert_eq!(hunks(patch), expected);
        assert_eq!(hunks("no patch"), []);
    }

    #[test]
    fn only_new_output_is_added() {
        assert_eq!(added("", "abc"), "abc");
        assert_eq!(added("abc", "abcdef"), "def");
        assert_eq!(added("abcdef", "defghi"), "ghi", "the beginning was truncated");
        assert_eq!(added("abc", "abc"), "");
        assert_eq!(added("abc", "xyz"), "xyz", "more was truncated than was shown");
        assert_eq!(added("aaa", "aaaa"), "a");
        assert_eq!(added("ä", "äö"), "ö");
    }

    #[test]
    fn exit_codes_are_read_from_results() {
        assert_eq!(exit_code("ok", false), Some(0));
        assert_eq!(exit_code("x\n\nCommand exited with code 3", true), Some(3));
        assert_eq!(exit_code("Command aborted", true), None);
    }

    proptest! {
        #[test]
        fn added_is_what_follows_the_longest_overlap(shown in "[abä]{0,12}", text in "[abä]{0,12}") {
            let plain = (0..=text.len())
                .rev()
                .filter(|len| text.is_char_boundary(*len))
                .find(|len| shown.ends_with(&text[..*len]))
                .unwrap();
            prop_assert_eq!(added(&shown, &text), &text[plain..]);
        }

        #[test]
        fn any_arguments_are_described(arguments in "[a-z{}\\[\\]\":,0-9 ]{0,40}", tool in "read|edit|write|bash|grep|find|ls|x") {
            let arguments: Value = serde_json::from_str(&arguments).unwrap_or_default();
            let view = describe(&tool, &arguments, &folders());
            prop_assert!(view.locations.iter().all(|place| place.path.is_absolute()));
        }
    }
}
