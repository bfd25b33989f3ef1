//! Reads what a tool call does: its arguments, and for edits the texts that are removed and added.

use serde_json::Value;
use similar::{DiffOp, TextDiff};

use crate::ai::ToolCall;
use crate::tools::Edit;

use super::narrator::{describe, described_argument, on_one_line};

/// A call with all of its arguments.
pub(super) fn call_lines(call: &ToolCall) -> Vec<String> {
    // What arrived of a call that broke off.
    let call = &ToolCall { arguments: call.readable_arguments().into_owned(), ..call.clone() };
    let mut lines = vec![format!("Call of {}", describe(call))];
    let edits = if call.name == "edit" { Edit::from_arguments(&call.arguments) } else { Vec::new() };
    for (number, edit) in (1..).zip(&edits) {
        if edits.len() > 1 {
            lines.push(format!("Edit {number} of {}:", edits.len()));
        }
        lines.extend(edit_lines(edit));
    }
    if !edits.is_empty() {
        lines.push("End of the edit.".to_owned());
        return lines;
    }
    // A line break is not heard in the line above.
    let is_read = |name: &str, value: &Value| {
        described_argument(call)
            .is_some_and(|(described, text)| described == name && on_one_line(text) == text)
            && value.is_string()
    };
    let arguments = call.arguments.as_object().into_iter().flatten();
    let arguments = arguments.filter(|(name, value)| !is_read(name, value));
    lines.extend(arguments.flat_map(|(name, value)| argument_lines(name, value)));
    lines
}

/// The lines that an edit removes and adds, without those that stay.
fn edit_lines(edit: &Edit) -> Vec<String> {
    let (old, new): (Vec<&str>, Vec<&str>) =
        (edit.old_text.lines().collect(), edit.new_text.lines().collect());
    let diff = TextDiff::from_slices(&old, &new);
    let mut lines = Vec::new();
    for op in diff.ops().iter().filter(|op| !matches!(op, DiffOp::Equal { .. })) {
        for (title, text) in [("Removed:", &old[op.old_range()]), ("Added:", &new[op.new_range()])] {
            if !text.is_empty() {
                lines.push(title.to_owned());
                lines.extend(text.iter().map(|line| (*line).to_owned()));
            }
        }
    }
    if lines.is_empty() {
        lines.push("It changes nothing but line breaks.".to_owned());
    }
    lines
}

fn argument_lines(name: &str, value: &Value) -> Vec<String> {
    let name = on_one_line(name);
    match value.as_str() {
        Some("") => vec![format!("{name} is empty.")],
        Some(text) if text.trim_end_matches('\n').contains('\n') => {
            let text = text.lines().map(str::to_owned);
            [format!("{name}:")].into_iter().chain(text).chain([format!("End of {name}.")]).collect()
        }
        Some(text) => vec![format!("{name}: {}", text.trim_end_matches('\n'))],
        None => vec![format!("{name}: {value}")],
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(name: &str, arguments: Value, expected: &[&str]) {
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        assert_eq!(call_lines(&ToolCall::new("1", name, arguments)), expected);
    }

    #[test]
    fn a_written_text_is_read_as_a_whole() {
        check(
            "write",
            json!({"path": "z.txt", "content": "one\n  two\n"}),
            &["Call of write: z.txt", "content:", "one", "  two", "End of content."],
        );
        check(
            "write",
            json!({"path": "z.txt", "content": "one\n"}),
            &["Call of write: z.txt", "content: one"],
        );
        check(
            "write",
            json!({"path": "z.txt", "content": ""}),
            &["Call of write: z.txt", "content is empty."],
        );
    }

    #[test]
    fn lines_of_an_edit_are_read_as_removed_and_added() {
        let edits = json!([
            {"oldText": "a\nb\nc\n", "newText": "a\nB\nc\nd\n"},
            {"oldText": "gone", "newText": ""},
        ]);
        check(
            "edit",
            json!({"path": "z.txt", "edits": edits}),
            &[
                "Call of edit: z.txt",
                "Edit 1 of 2:",
                "Removed:",
                "b",
                "Added:",
                "B",
                "Added:",
                "d",
                "Edit 2 of 2:",
                "Removed:",
                "gone",
                "End of the edit.",
            ],
        );
        check(
            "edit",
            json!({"path": "z.txt", "edits": [{"oldText": "a", "newText": "a\n"}]}),
            &["Call of edit: z.txt", "It changes nothing but line breaks.", "End of the edit."],
        );
    }

    #[test]
    fn what_arrived_of_a_broken_call_is_read() {
        let broken = ToolCall::from_text("1", "read", r#"{"path": "notes.md", "off"#);
        assert_eq!(call_lines(&broken), ["Call of read: notes.md"]);
    }

    #[test]
    fn arguments_of_other_tools_are_read_once() {
        check("bash", json!({"command": "ls", "timeout": 5}), &["Call of bash: ls", "timeout: 5"]);
        check(
            "bash",
            json!({"command": "ls\npwd"}),
            &["Call of bash: ls pwd", "command:", "ls", "pwd", "End of command."],
        );
        check("edit", json!({"path": "z.txt", "edits": 3}), &["Call of edit: z.txt", "edits: 3"]);
        check("other", json!({}), &["Call of other"]);
    }
}
