//! What tools and commands printed, completely.
//!
//! A session keeps the end of a long output and the path of a file with all of it; the file is in the
//! system's temporary directory and may be gone. Everything here blocks.

use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use crate::ai::{Message, ToolResultMessage, join_text};
use crate::session::{
    BashExecution, Entry, EntryBody, EntryKind, Reply, SessionCommand, SessionMessage, SessionTree,
};
use crate::tui::text::visible_line;
use crate::util::grouped;
use crate::util::os;

use super::super::effects::Effects;
use super::super::msg::EffectDone;
use super::super::tree;
use super::{Chapter, ChapterText, OutputSource, ReportDone, ReportKind};

/// Outputs that are listed, the newest ones.
const MAX_OUTPUTS: usize = 300;
/// Of larger files only the end is read.
const MAX_BYTES: u64 = 16 * 1024 * 1024;

const NOTHING: &str = "No tool and no command has printed anything in this session yet.";

impl Effects {
    /// Answers with [`EffectDone::Report`].
    pub(super) fn list_outputs(&self) {
        let (answer, done) = (self.link.handle().post(SessionCommand::ReadTree), self.done.clone());
        tokio::spawn(async move {
            let Ok(Reply::Tree(tree)) = answer.await else { return };
            tokio::task::spawn_blocking(move || {
                drop(done.send(EffectDone::Report(report(&tree))));
            });
        });
    }
}

pub(in super::super) fn report(tree: &SessionTree) -> ReportDone {
    let chapters = list(tree);
    let markdown = if chapters.is_empty() { NOTHING.to_owned() } else { String::new() };
    ReportDone::Report { kind: ReportKind::Outputs, markdown, chapters }
}

/// The outputs of the active branch, newest first.
fn list(tree: &SessionTree) -> Vec<Chapter> {
    let path = tree.path(tree.leaf());
    let is_output = |idx: &usize| matches!(tree.entry(*idx).kind, EntryKind::ToolResult | EntryKind::Bash);
    let chapter = |entry: usize| {
        let printed = tree.read(entry)?;
        let output = Output::of(&printed)?;
        let source = OutputSource { tree: tree.clone(), entry };
        let name = visible_line(&tree::line_of(tree, entry));
        Some(Chapter { name, note: output.size(), text: ChapterText::Output(source) })
    };
    path.into_iter().rev().filter(is_output).filter_map(chapter).take(MAX_OUTPUTS).collect()
}

/// All of an output, or what is left of it with the reason.
pub(super) fn read(source: &OutputSource) -> String {
    let Some(entry) = source.tree.read(source.entry) else {
        return "This entry of the session file cannot be read.".to_owned();
    };
    let Some(output) = Output::of(&entry) else { return String::new() };
    let Some(path) = &output.file else { return output.text };
    match read_end(Path::new(path)) {
        Ok((text, 0)) => text,
        Ok((text, n_left_out)) => {
            let n = grouped(n_left_out);
            format!("[The first {n} bytes of {path} are left out]\n{text}")
        }
        Err(error) => {
            format!(
                "[More of the output was in {path}, which cannot be read: {error}. The session has:]\n{}",
                output.text
            )
        }
    }
}

/// The text of a file, and the bytes before it that are left out.
fn read_end(path: &Path) -> io::Result<(String, u64)> {
    // A session of somebody else may name anything.
    let mut file = os::open_plain(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let n_left_out = metadata.len().saturating_sub(MAX_BYTES);
    file.seek(SeekFrom::Start(n_left_out))?;
    let mut bytes = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut bytes)?;
    // The first line may be a part of one.
    let start = match n_left_out {
        0 => 0,
        _ => bytes.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1),
    };
    let text = String::from_utf8_lossy(bytes.get(start..).unwrap_or_default()).into_owned();
    Ok((text, n_left_out + start as u64))
}

/// What an entry has of an output.
struct Output {
    text: String,
    /// A file with all of it.
    file: Option<String>,
    /// Lines of the whole output, if it was cut.
    n_lines: Option<u64>,
    /// Lines of `text` that are pi's own.
    n_own: u64,
}

/// Lines of a command's result that the command did not print: how it ended, in a paragraph of its
/// own, and that it printed nothing.
fn n_own_lines(text: &str, is_error: bool) -> u64 {
    let printed = match is_error {
        true => text.rsplit_once("\n\n").map_or("", |(printed, _)| printed),
        false => text,
    };
    let printed = if printed == "(no output)" { "" } else { printed };
    (text.trim_end().lines().count() - printed.trim_end().lines().count()) as u64
}

impl Output {
    /// `None` for entries of other kinds.
    fn of(entry: &Entry) -> Option<Self> {
        let EntryBody::Message { message, .. } = &entry.body else { return None };
        match message {
            SessionMessage::Model(message) => match &**message {
                Message::ToolResult(result) => Some(Self::of_result(result)),
                Message::User(_) | Message::Assistant(_) | Message::System(_) => None,
            },
            SessionMessage::BashExecution(execution) => Some(Self::of_command(execution)),
            SessionMessage::Unknown(_) => None,
        }
    }

    fn of_result(result: &ToolResultMessage) -> Self {
        let details = result.details.as_ref();
        let text = join_text(&result.content);
        let n_own = if result.tool_name == "bash" { n_own_lines(&text, result.is_error) } else { 0 };
        let file = details.and_then(|details| details.get("fullOutputPath")?.as_str());
        let n_lines = details.and_then(|details| details.get("truncation")?.get("totalLines")?.as_u64());
        Self { text, file: file.map(str::to_owned), n_lines, n_own }
    }

    fn of_command(execution: &BashExecution) -> Self {
        let file = execution.full_output_path.clone().filter(|_| execution.truncated);
        Self { text: execution.output.clone(), file, n_lines: None, n_own: 0 }
    }

    /// `120 lines`
    fn size(&self) -> String {
        let n_kept = || (self.text.trim_end().lines().count() as u64).saturating_sub(self.n_own);
        let n_lines = self.n_lines.unwrap_or_else(n_kept);
        let more = if self.file.is_some() && self.n_lines.is_none() { "more than " } else { "" };
        format!("{more}{} {}", grouped(n_lines), if n_lines == 1 { "line" } else { "lines" })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use serde_json::{Value, json};

    use crate::session::{Header, SessionStore};

    use super::*;

    fn tree_of(entries: &[Value]) -> SessionTree {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        writeln!(
            file,
            "{}",
            json!({"type": "session", "version": 3, "id": "s", "timestamp": "", "cwd": "/"})
        )
        .unwrap();
        for (n, message) in entries.iter().enumerate() {
            let parent = n.checked_sub(1).map(|n| format!("e{n}"));
            let entry = json!({
                "type": "message", "id": format!("e{n}"), "parentId": parent,
                "timestamp": "2026-11-21T09:23:47.280Z", "message": message,
            });
            writeln!(file, "{entry}").unwrap();
        }
        let none = || -> Header { unreachable!("the file has a header") };
        SessionStore::open(file.path(), none).unwrap().tree()
    }

    fn result(text: &str, details: Value) -> Value {
        json!({
            "role": "toolResult", "toolCallId": "c1", "toolName": "bash", "isError": false,
            "content": [{"type": "text", "text": text}], "details": details, "timestamp": 0,
        })
    }

    fn all_of(tree: &SessionTree, at: usize) -> String {
        match &list(tree)[at].text {
            ChapterText::Output(source) => read(source),
            ChapterText::Here(_) => unreachable!("outputs are read"),
        }
    }

    #[test]
    fn outputs_are_listed_newest_first_with_their_size() {
        let call = json!({
            "role": "assistant", "api": "x", "provider": "x", "model": "x", "stopReason": "toolUse", "timestamp": 0,
            "content": [{"type": "toolCall", "id": "c1", "name": "bash", "arguments": {"command": "make all"}}],
        });
        let command = json!({
            "role": "bashExecution", "command": "git log", "output": "one line\n", "exitCode": 0,
            "cancelled": false, "truncated": false, "timestamp": 0,
        });
        let tree = tree_of(&[
            json!({"role": "user", "content": "build"}),
            call,
            result("a\nb", json!({"truncation": {"totalLines": 12345}})),
            command,
        ]);
        let shown: Vec<(String, String)> =
            list(&tree).into_iter().map(|chapter| (chapter.name, chapter.note)).collect();
        let row = |name: &str, note: &str| (name.to_owned(), note.to_owned());
        assert_eq!(shown, [row("!git log", "1 line"), row("bash: make all", "12,345 lines")]);
    }

    #[test]
    fn lines_that_the_command_did_not_print_do_not_count() {
        let check = |text: &str, is_error: bool, expected: &str| {
            let mut result = result(text, Value::Null);
            result["isError"] = is_error.into();
            assert_eq!(list(&tree_of(&[result]))[0].note, expected, "{text:?}");
        };
        check("one\n", false, "1 line");
        check("one\n\n\nCommand exited with code 2", true, "1 line");
        check("(no output)\n\nCommand exited with code 2", true, "0 lines");
        check("(no output)", false, "0 lines");
        check("Command aborted", true, "0 lines");
        check("a\n\nb", false, "3 lines");
    }

    #[test]
    fn what_cannot_be_seen_in_a_command_is_spelt_out_in_the_list() {
        let command = json!({
            "role": "bashExecution", "command": "echo \u{202e}txt", "output": "x", "exitCode": 0,
            "cancelled": false, "truncated": false, "timestamp": 0,
        });
        assert_eq!(list(&tree_of(&[command]))[0].name, "!echo <U+202E>txt");
    }

    #[test]
    fn whole_output_comes_from_its_file_and_without_it_from_the_session() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        write!(file, "first\nlast\n").unwrap();
        let path = file.path().to_str().unwrap().to_owned();
        let tree = tree_of(&[result("last", json!({"fullOutputPath": path, "truncation": {}}))]);
        assert_eq!(all_of(&tree, 0), "first\nlast\n");
        drop(file);
        let left = all_of(&tree, 0);
        assert!(
            left.starts_with(&format!("[More of the output was in {path}, which cannot be read")),
            "{left}"
        );
        assert!(left.ends_with("\nlast"), "{left}");
    }

    #[test]
    fn file_of_a_session_that_is_none_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        let secret = folder.path().join("secret");
        std::fs::write(&secret, "secret").unwrap();
        std::os::unix::fs::symlink(&secret, &link).unwrap();
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for path in ["/dev/zero".as_ref(), folder.path(), &link, &pipe] {
            let tree = tree_of(&[result("last", json!({"fullOutputPath": path, "truncation": {}}))]);
            let shown = all_of(&tree, 0);
            assert!(shown.contains("which cannot be read") && shown.ends_with("\nlast"), "{shown}");
        }
    }

    #[test]
    fn of_a_huge_file_the_end_is_read_from_a_line_on() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(MAX_BYTES).unwrap();
        file.seek(SeekFrom::End(0)).unwrap();
        write!(file, "\nthe end").unwrap();
        let (text, n_left_out) = read_end(file.path()).unwrap();
        assert_eq!((text.as_str(), n_left_out), ("the end", MAX_BYTES + 1));
        // The file may lack the middle of the output, so nothing is said of the whole.
        let path = file.path().to_str().unwrap().to_owned();
        let tree = tree_of(&[result("the end", json!({"fullOutputPath": path, "truncation": {}}))]);
        let expected = format!("[The first 16,777,217 bytes of {path} are left out]\nthe end");
        assert_eq!(all_of(&tree, 0), expected);
    }
}
