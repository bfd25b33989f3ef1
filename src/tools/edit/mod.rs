//! The `edit` tool: replaces pieces of a file.
//!
//! [`locate`] finds the old texts, in the forms that [`normal`] produces,
//! [`apply`] inserts the new ones, [`diff`] describes the result; all are pure.
//! Invariant: bytes outside the replaced places stay unchanged.

mod apply;
mod diff;
mod locate;
mod normal;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use futures_util::future::BoxFuture;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

use crate::agent::{Tool, ToolCx, ToolError, ToolOutput, ToolSpec, Touches};
use crate::ai::{ConstrainedSampling, parse_text};
use crate::util::text_decoder::TextEncoding;

use super::Files;
use super::editor::{self, Editor};
use super::file_versions::Version;
use super::path::{FoundPath, WrittenPath, path_argument};

pub use diff::DiffRow;

const BOM: &str = "\u{feff}";

/// Edits files for the model.
#[derive(Debug)]
pub struct EditTool {
    spec: ToolSpec,
    home: Option<PathBuf>,
    files: Files,
}

impl EditTool {
    pub(super) fn new(home: Option<PathBuf>, files: Files) -> Self {
        let spec = ToolSpec {
            name: "edit".to_owned(),
            description: include_str!("edit.md").trim_ascii().to_owned(),
            snippet: Some("Replace exact parts of a file, several in one call".to_owned()),
            guidelines: [
                "Change existing files with edit; each oldText must match the file exactly, and only once.",
                "Make all changes to one file in one edit call; each is matched against the file before the call.",
            ]
            .map(str::to_owned)
            .to_vec(),
            parameters: json!({
                "type": "object",
                "required": ["path", "edits"],
                "properties": {
                    "path": {
                        "type": "string",
                        "description": "File to edit, relative to the working directory or absolute",
                    },
                    "edits": {
                        "type": "array",
                        "minItems": 1,
                        "description": "Replacements, all matched against the file before this call",
                        "items": {
                            "type": "object",
                            "required": ["oldText", "newText"],
                            "properties": {
                                "oldText": {
                                    "type": "string",
                                    "description": "Text to replace; must occur exactly once in the file",
                                },
                                "newText": { "type": "string", "description": "Replacement text" },
                            },
                        },
                    },
                },
            }),
            constrained_sampling: Some(ConstrainedSampling::prefer_schema()),
        };
        Self { spec, home, files }
    }
}

impl Tool for EditTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    /// Also accepts `edits` as JSON text or as one edit without a list, and
    /// `oldText` and `newText` beside `path`.
    fn prepare_arguments(&self, arguments: Value) -> Value {
        match arguments {
            Value::Object(arguments) => Value::Object(prepare(arguments)),
            other => other,
        }
    }

    fn touches(&self, arguments: &Value, cwd: &Path) -> Touches {
        let paths = WrittenPath::new(path_argument(arguments), cwd, self.home.as_deref()).declared();
        Touches { reads: paths.clone(), writes: paths, ..Touches::default() }
    }

    fn run<'a>(&'a self, arguments: Value, cx: ToolCx<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        // Outside the future, so that calls queue in the order they are made.
        let arguments = super::parse::<Arguments>(arguments).map(|arguments| {
            let written = WrittenPath::new(&arguments.path, cx.cwd, self.home.as_deref());
            (arguments, self.files.locks.register(written))
        });
        Box::pin(async move {
            let (Arguments { edits, .. }, place) = arguments?;
            let (FoundPath { path, name: shown, .. }, guard) = tokio::select! {
                () = cx.cancel.cancelled() => return Err(ToolError::aborted()),
                waited = place.wait() => waited?,
            };
            let (cancel, files) = (cx.cancel.clone(), self.files.clone());
            let n_edits = edits.len();
            let name = shown.clone();
            let what = || format!("editing {shown} (it may still complete)");
            let work = move || {
                let _guard = guard;
                super::check_cancelled(&cancel)?;
                let outcome = Outcome::compute(&name, &path, &edits, files.editor())?;
                super::check_cancelled(&cancel)?;
                let has_changed = files.versions.differs(&path, &outcome.version);
                let text = outcome.text();
                editor::write(files.editor(), &path, &text).map_err(|error| could_not_edit(&name, &error))?;
                files.versions.note(&path, Version::of(text.as_bytes()));
                Ok((outcome.describe(&name), has_changed))
            };
            let (preview, has_changed) = super::blocking(&cx.cancel, what, work).await?;
            let mut text = format!("Successfully replaced {n_edits} block(s) in {shown}.");
            if has_changed {
                text.push_str(
                    "\n\nNote: the file had changed on disk since you last read or wrote it. Your edits \
                     were applied to the current text; read it again before you rely on the rest.",
                );
            }
            let EditPreview { diff, patch, first_changed_line, .. } = preview;
            let details = json!({ "diff": diff, "patch": patch, "firstChangedLine": first_changed_line });
            Ok(ToolOutput { details: Some(details), ..ToolOutput::text(text) })
        })
    }
}

/// One replacement.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Edit {
    /// The text to replace, which must occur once.
    pub old_text: String,
    /// What takes its place.
    pub new_text: String,
}

impl Edit {
    /// The edits in the arguments of a call, in any form the tool accepts. While
    /// the arguments are still arriving, returns the complete ones so far.
    pub fn from_arguments(arguments: &Value) -> Vec<Self> {
        let Some(arguments) = arguments.as_object() else { return Vec::new() };
        let prepared = prepare(arguments.clone());
        let edits = prepared.get("edits").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        edits.iter().filter_map(|edit| Self::deserialize(edit).ok()).collect()
    }
}

/// The effect of edits on a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditPreview {
    /// `rows` as text, in the form of session files.
    pub diff: String,
    /// A unified diff; empty if it would be longer than 1 MiB.
    pub patch: String,
    /// The changed lines, with some around them.
    pub rows: Vec<DiffRow>,
    /// Counts from 1, in the new file.
    pub first_changed_line: u64,
}

/// The effect of `edits` on the file at `path`, which is not changed.
///
/// Blocks on the disk.
///
/// # Errors
/// The errors of the tool itself.
pub fn preview(
    path: &str,
    edits: &[Edit],
    cwd: &Path,
    home: Option<&Path>,
) -> Result<EditPreview, ToolError> {
    let found = WrittenPath::new(path, cwd, home).find_target();
    Ok(Outcome::compute(&found.name, &found.path, edits, None)?.describe(&found.name))
}

#[derive(Deserialize)]
struct Arguments {
    path: String,
    #[serde(deserialize_with = "at_least_one")]
    edits: Vec<Edit>,
}

fn at_least_one<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Edit>, D::Error> {
    let edits = Vec::deserialize(deserializer)?;
    if edits.is_empty() {
        return Err(serde::de::Error::custom("edits must contain at least one replacement"));
    }
    Ok(edits)
}

fn prepare(mut arguments: Map<String, Value>) -> Map<String, Value> {
    let parsed = arguments.get("edits").and_then(Value::as_str).and_then(parse_text);
    if let Some(edits) = parsed {
        arguments.insert("edits".to_owned(), edits);
    }
    if let Some(edit @ Value::Object(_)) = arguments.get("edits") {
        let edits = Value::Array(vec![edit.clone()]);
        arguments.insert("edits".to_owned(), edits);
    }
    if let Some(Value::Array(edits)) = arguments.get_mut("edits") {
        for edit in edits {
            let parsed = edit.as_str().and_then(parse_text);
            *edit = parsed.unwrap_or_else(|| std::mem::take(edit));
        }
    }
    let is_legacy = arguments.get("oldText").is_some_and(Value::is_string)
        && arguments.get("newText").is_some_and(Value::is_string);
    if is_legacy {
        let old_text = arguments.shift_remove("oldText");
        let new_text = arguments.shift_remove("newText");
        let edit = json!({ "oldText": old_text, "newText": new_text });
        match arguments.get_mut("edits") {
            Some(Value::Array(edits)) => edits.push(edit),
            _ => {
                arguments.insert("edits".to_owned(), Value::Array(vec![edit]));
            }
        }
    }
    arguments
}

/// A file before and after its edits.
struct Outcome {
    /// The version that was read.
    version: Version,
    bom: &'static str,
    before: String,
    after: String,
}

impl Outcome {
    /// `name` is the path as the model wrote it.
    fn compute(
        name: &str,
        path: &Path,
        edits: &[Edit],
        editor: Option<&dyn Editor>,
    ) -> Result<Self, ToolError> {
        let on_disk = read(name, path)?;
        let text = editor::unsaved(editor, path, &on_disk).unwrap_or(on_disk);
        let version = Version::of(text.as_bytes());
        let (bom, before) = match text.strip_prefix(BOM) {
            Some(rest) => (BOM, rest.to_owned()),
            None => ("", text),
        };
        let edits = without_marks(&before, edits);
        let replacements = locate::locate(&before, &edits).map_err(|error| error.about(name, edits.len()))?;
        let after = apply::apply(&before, &replacements);
        // The file has its mark already.
        let has_second = !bom.is_empty() && !before.starts_with(BOM);
        let after = after.strip_prefix(BOM).filter(|_| has_second).map(str::to_owned).unwrap_or(after);
        if after == before {
            return Err(ToolError(format!(
                "No changes made to {name}: the file already contains the new text."
            )));
        }
        Ok(Self { version, bom, before, after })
    }

    /// The whole file.
    fn text(&self) -> String {
        format!("{}{}", self.bom, self.after)
    }

    fn describe(&self, name: &str) -> EditPreview {
        diff::describe(&locate::unify_breaks(&self.before), &locate::unify_breaks(&self.after), name)
    }
}

/// The edits without byte order marks that the model copied from the beginning of a file.
/// Inside a text, the mark is a character.
fn without_marks(text: &str, edits: &[Edit]) -> Vec<Edit> {
    let unmarked = edits.iter().map(|edit| match edit.old_text.strip_prefix(BOM) {
        Some(old_text) if !text.contains(&edit.old_text) => Edit {
            old_text: old_text.to_owned(),
            new_text: edit.new_text.strip_prefix(BOM).unwrap_or(&edit.new_text).to_owned(),
        },
        Some(_) | None => edit.clone(),
    });
    unmarked.collect()
}

fn read(name: &str, path: &Path) -> Result<String, ToolError> {
    let failed = |error: io::Error| could_not_edit(name, &error);
    let metadata = fs::metadata(path).map_err(failed)?;
    if metadata.is_dir() {
        return Err(failed(io::ErrorKind::IsADirectory.into()));
    }
    if !metadata.is_file() {
        return Err(ToolError(format!("Could not edit file: {name}. It is not a regular file.")));
    }
    // Check write access now, before the work.
    fs::OpenOptions::new().write(true).open(path).map_err(failed)?;
    let bytes = fs::read(path).map_err(failed)?;
    if TextEncoding::of(&bytes) != TextEncoding::Utf8 {
        return Err(ToolError(format!(
            "Could not edit file: {name}. It is UTF-16 text, and editing it as UTF-8 would damage it. \
             Use bash with a tool for its encoding."
        )));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        ToolError(format!(
            "Could not edit file: {name}. It is not UTF-8 text (byte {at} is invalid) and editing it as text \
             would damage it. Use bash with a tool for its encoding."
        ))
    })
}

fn could_not_edit(name: &str, error: &io::Error) -> ToolError {
    let code = match error.kind() {
        io::ErrorKind::NotFound => "ENOENT".to_owned(),
        io::ErrorKind::PermissionDenied => "EACCES".to_owned(),
        io::ErrorKind::IsADirectory => "EISDIR".to_owned(),
        io::ErrorKind::NotADirectory => "ENOTDIR".to_owned(),
        io::ErrorKind::ReadOnlyFilesystem => "EROFS".to_owned(),
        io::ErrorKind::StorageFull => "ENOSPC".to_owned(),
        _ => error.to_string(),
    };
    ToolError(format!("Could not edit file: {name}. Error code: {code}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(old_text: &str, new_text: &str) -> Edit {
        Edit { old_text: old_text.to_owned(), new_text: new_text.to_owned() }
    }

    #[track_caller]
    fn check_prepared(arguments: &Value, expected: &[Edit]) {
        assert_eq!(Edit::from_arguments(arguments), expected, "{arguments}");
    }

    #[test]
    fn variants_of_the_arguments_are_understood() {
        let one = json!({ "oldText": "a", "newText": "b" });
        check_prepared(&json!({ "edits": [one] }), &[edit("a", "b")]);
        check_prepared(&json!({ "edits": one }), &[edit("a", "b")]);
        check_prepared(&json!({ "edits": one.to_string() }), &[edit("a", "b")]);
        check_prepared(&json!({ "edits": json!([one]).to_string() }), &[edit("a", "b")]);
        check_prepared(&json!({ "edits": [one.to_string()] }), &[edit("a", "b")]);
        let raw = "[{\"oldText\":\"a\n\tb\",\"newText\":\"c\"}]";
        check_prepared(&json!({ "edits": raw }), &[edit("a\n\tb", "c")]);
        check_prepared(&json!({ "path": "p", "oldText": "a", "newText": "b" }), &[edit("a", "b")]);
        check_prepared(
            &json!({ "edits": [one], "oldText": "c", "newText": "d" }),
            &[edit("a", "b"), edit("c", "d")],
        );
        check_prepared(&json!({ "edits": [one, { "oldText": "unfinished" }] }), &[edit("a", "b")]);
        check_prepared(&json!({ "edits": "no json" }), &[]);
        check_prepared(&json!(null), &[]);
    }

    #[track_caller]
    fn check(before: &str, edits: &[(&str, &str)], expected: Result<&str, &str>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        fs::write(&path, before).unwrap();
        let edits: Vec<Edit> = edits.iter().map(|(old, new)| edit(old, new)).collect();
        let outcome = Outcome::compute("f", &path, &edits, None);
        let outcome = outcome.map(|outcome| outcome.text()).map_err(|error| error.0);
        assert_eq!(outcome, expected.map(str::to_owned).map_err(str::to_owned));
    }

    #[test]
    fn exact_text_is_replaced() {
        check("a\nb\nc\n", &[("b", "B")], Ok("a\nB\nc\n"));
        check("a\nb\nc\n", &[("b\n", "")], Ok("a\nc\n"));
        check("a b c", &[("a", "1"), ("c", "3")], Ok("1 b 3"));
        check("a b c", &[("c", "3"), ("a", "1")], Ok("1 b 3"));
    }

    #[test]
    fn edits_are_matched_with_the_original() {
        check("a b", &[("a", "b"), ("b", "a")], Ok("b a"));
    }

    #[test]
    fn fuzzy_matches_touch_nothing_else() {
        check(
            "\u{feff}a\r\nb  \r\nc “q”\r\nd\n",
            &[("b\nc \"q\"", "B1\nB2")],
            Ok("\u{feff}a\r\nB1\r\nB2\r\nd\n"),
        );
        check("x  \n“a” b “c”\ny  \n", &[("\"a\"", "A")], Ok("x  \nA b “c”\ny  \n"));
        check("“a” “b”\n", &[("\"a\"", "A"), ("\"b\"", "B")], Ok("A B\n"));
        check("ﬁle\n", &[("file", "x")], Ok("x\n"));
    }

    #[test]
    fn errors_name_the_file_and_the_edit() {
        let single = "Could not find the exact text in f. \
                      The old text must match exactly including all whitespace and newlines.";
        check("a\n", &[("x", "y")], Err(single));
        let multi = "Could not find edits[1] in f. \
                     The oldText must match exactly including all whitespace and newlines.";
        check("a\n", &[("a", "b"), ("x", "y")], Err(multi));
        let single = "Found 2 occurrences of the text in f. \
                      The text must be unique. Please provide more context to make it unique.";
        check("a\na\n", &[("a", "b")], Err(single));
        let multi = "Found 3 occurrences of edits[0] in f. \
                     Each oldText must be unique. Please provide more context to make it unique.";
        check("a\na\na b\n", &[("a", "c"), ("b", "d")], Err(multi));
        check("a", &[("", "b")], Err("oldText must not be empty in f."));
        check("a", &[("a", "b"), ("", "b")], Err("edits[1].oldText must not be empty in f."));
        let overlap =
            "edits[1] and edits[0] overlap in f. Merge them into one edit or make them target separate text.";
        check("abc", &[("bc", "x"), ("ab", "y")], Err(overlap));
        check("a", &[("a", "a")], Err("No changes made to f: the file already contains the new text."));
    }

    #[test]
    fn places_that_differ_only_in_trailing_blanks_are_told_apart() {
        check("a\nb \na\nb\n", &[("a\nb\n", "x")], Ok("a\nb \nx"));
        let error = "Found 2 occurrences of the text in f. \
                     The text must be unique. Please provide more context to make it unique.";
        check("a\nb \na\nb  \n", &[("a\nb\n", "x")], Err(error));
    }

    #[test]
    fn byte_order_mark_is_never_part_of_an_edit() {
        check("\u{feff}a\nb", &[("\u{feff}a", "\u{feff}c")], Ok("\u{feff}c\nb"));
        check("\u{feff}a\nb", &[("\u{feff}a", "c")], Ok("\u{feff}c\nb"));
        check("\u{feff}a\nb", &[("a", "\u{feff}c")], Ok("\u{feff}c\nb"));
        check("\u{feff}a\nb", &[("b", "\u{feff}c")], Ok("\u{feff}a\n\u{feff}c"));
        check("a\nb", &[("\u{feff}a", "\u{feff}c")], Ok("c\nb"));
        check("\u{feff}a", &[("\u{feff}", "")], Err("oldText must not be empty in f."));
        // Inside of the text it is a character.
        check("x\u{feff}a", &[("\u{feff}a", "b")], Ok("xb"));
    }

    #[test]
    fn a_file_that_cannot_be_edited_says_why() {
        let folder = tempfile::tempdir().unwrap();
        let check = |name: &str, expected: &str| {
            let error = preview(name, &[edit("a", "b")], folder.path(), None).unwrap_err();
            assert!(error.0.starts_with(expected), "{error}");
        };
        fs::write(folder.path().join("latin1"), b"caf\xe9").unwrap();
        check("none", "Could not edit file: none. Error code: ENOENT.");
        check(".", "Could not edit file: .. Error code: EISDIR.");
        check("latin1", "Could not edit file: latin1. It is not UTF-8 text (byte 3 is invalid)");
    }
}
