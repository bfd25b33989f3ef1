//! The `read` tool: text with line windows, and images.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::agent::{Tool, ToolCx, ToolError, ToolOutput, ToolSpec, Touches};
use crate::ai::{ConstrainedSampling, ContentBlock, Extra, Image};
use crate::util::image::{ImageLimits, ImageProblem, prepare_image, sniff_mime};
use crate::util::text_decoder::{TextDecoder, TextEncoding};

use super::Files;
use super::editor;
use super::file_versions::{Version, VersionBuilder};
use super::output::{Head, MAX_BYTES, MAX_LINES, TruncatedBy, Truncation, format_size};
use super::path::{FoundPath, WrittenPath, path_argument};

/// Number of bytes that determine whether a file is an image.
const SNIFF_BYTES: usize = 4100;

/// Number of bytes that determine whether a file is text.
const BINARY_CHECK_BYTES: usize = 8 * 1024;

/// Larger files are not loaded as images, because eight calls may do so at the same time.
const MAX_IMAGE_FILE_BYTES: u64 = 64 * 1024 * 1024;

const CHUNK_BYTES: usize = 64 * 1024;

/// Reads files for the model.
#[derive(Debug)]
pub struct Read {
    spec: ToolSpec,
    home: Option<PathBuf>,
    images: ImageLimits,
    files: Files,
}

impl Read {
    pub(super) fn new(home: Option<PathBuf>, images: ImageLimits, files: Files) -> Self {
        let spec = ToolSpec {
            name: "read".to_owned(),
            description: include_str!("read.md").trim_ascii().to_owned(),
            snippet: Some("Read a text file or view an image".to_owned()),
            guidelines: vec!["Read files with read rather than with cat, head or sed.".to_owned()],
            parameters: json!({
                "type": "object",
                "required": ["path"],
                "properties": {
                    "path": {
                        "type": "string",
                        "description": "File to read, relative to the working directory or absolute",
                    },
                    "offset": { "type": "number", "description": "First line to read, counted from 1" },
                    "limit": { "type": "number", "description": "Maximum number of lines" },
                },
            }),
            constrained_sampling: Some(ConstrainedSampling::prefer_schema()),
        };
        Self { spec, home, images, files }
    }
}

impl Tool for Read {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn touches(&self, arguments: &Value, cwd: &Path) -> Touches {
        let written = WrittenPath::new(path_argument(arguments), cwd, self.home.as_deref());
        Touches { reads: written.declared(), ..Touches::default() }
    }

    fn run<'a>(&'a self, arguments: Value, cx: ToolCx<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let arguments: Arguments = super::parse(arguments)?;
            super::check_cancelled(&cx.cancel)?;
            let written = WrittenPath::new(&arguments.path, cx.cwd, self.home.as_deref());
            let reading =
                Reading { images: self.images, files: self.files.clone(), cancel: cx.cancel.clone() };
            let shown = arguments.path.clone();
            let what = || format!("reading {shown}");
            let work = move || {
                let found = written.find();
                let mut output = reading.read(&arguments, &found)?;
                if let Some(note) = found.note() {
                    add_note(&mut output, &note);
                }
                Ok(output)
            };
            super::blocking(&cx.cancel, what, work).await
        })
    }
}

#[derive(Deserialize)]
struct Arguments {
    path: String,
    offset: Option<f64>,
    limit: Option<f64>,
}

/// The inputs of a call.
struct Reading {
    images: ImageLimits,
    files: Files,
    cancel: CancellationToken,
}

impl Reading {
    fn read(&self, arguments: &Arguments, found: &FoundPath) -> Result<ToolOutput, ToolError> {
        let path = &*found.path;
        let failed = |error: &io::Error| could_not_read(path, error);
        let metadata = fs::metadata(path).map_err(|error| failed(&error))?;
        if metadata.is_dir() {
            return Err(ToolError(format!("{} is a directory, not a file", path.display())));
        }
        if !metadata.is_file() {
            // Opening a pipe or a device could block forever.
            return Err(ToolError(format!("{} is not a regular file", path.display())));
        }
        let mut file = File::open(path).map_err(|error| failed(&error))?;
        let mut start = Vec::with_capacity(BINARY_CHECK_BYTES);
        let n_bytes = BINARY_CHECK_BYTES as u64;
        (&mut file).take(n_bytes).read_to_end(&mut start).map_err(|error| failed(&error))?;

        if let Some(mime) = sniff_mime(&start[..start.len().min(SNIFF_BYTES)]) {
            return self.read_image(mime, start, file).map_err(|error| match error.kind() {
                io::ErrorKind::Interrupted => ToolError::aborted(),
                _ => failed(&error),
            });
        }
        let encoding = TextEncoding::of(&start);
        if encoding == TextEncoding::Utf8 && start.contains(&0) {
            let size = format_size(metadata.len());
            return Err(ToolError(format!(
                "{} is a binary file ({size}), which read does not support. Use bash with a tool for \
                 its format, or inspect its bytes: xxd {} | head",
                path.display(),
                shell_quote(&found.name),
            )));
        }
        let window = Window {
            start: super::whole(arguments.offset.unwrap_or(1.0), 1) - 1,
            // Models fill optional arguments with 0.
            n_lines: arguments.limit.map(|limit| super::whole(limit, 0)).filter(|n_lines| *n_lines > 0),
        };
        let unsaved = editor::unsaved_at(self.files.editor(), path, metadata.len());
        let read = match &unsaved {
            Some(text) => {
                read_window(text.as_bytes(), io::empty(), TextEncoding::Utf8, &window, &self.cancel)
            }
            None => read_window(&start, file, encoding, &window, &self.cancel),
        };
        let (text, version) = read.map_err(|error| match error.kind() {
            io::ErrorKind::Interrupted => ToolError::aborted(),
            _ => failed(&error),
        })?;
        // Reading from the start replaces all that the model knew.
        let has_moved = window.start > 0 && self.files.versions.differs(path, &version);
        let output = show_text(text, &window, &found.name, has_moved)?;
        self.files.versions.note(path, version);
        Ok(output)
    }

    /// Reads the rest of an image that begins with `bytes`.
    fn read_image(&self, mime: &'static str, mut bytes: Vec<u8>, file: File) -> io::Result<ToolOutput> {
        // The file may grow while it is being read.
        let room = (MAX_IMAGE_FILE_BYTES + 1).saturating_sub(bytes.len() as u64);
        file.take(room).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > MAX_IMAGE_FILE_BYTES {
            return Ok(omitted_image(mime, &ImageProblem::TooLarge));
        }
        if self.cancel.is_cancelled() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        Ok(show_image(mime, &bytes, &self.images))
    }
}

/// The requested lines, counted from 0.
struct Window {
    start: u64,
    n_lines: Option<u64>,
}

impl Window {
    fn end(&self) -> u64 {
        self.n_lines.map_or(u64::MAX, |n_lines| self.start.saturating_add(n_lines))
    }
}

struct WindowText {
    head: Head,
    /// Number of lines of the file; a line break at its end begins another line.
    total_lines: u64,
    /// Whether that other line is there, and empty.
    ends_with_break: bool,
    /// What the model must know about the encoding.
    encoding: Option<String>,
}

/// Reads the whole file, of which the beginning was already read, in little memory
/// for lines of any length.
///
/// # Errors
/// `Interrupted` if cancelled.
fn read_window(
    start: &[u8],
    mut file: impl io::Read,
    encoding: TextEncoding,
    window: &Window,
    cancel: &CancellationToken,
) -> io::Result<(WindowText, Version)> {
    let mut decoder = TextDecoder::new(encoding);
    let mut version = VersionBuilder::default();
    version.add(start);
    let mut collected = WindowText {
        head: Head::new(MAX_LINES, MAX_BYTES),
        total_lines: 1,
        ends_with_break: false,
        encoding: None,
    };
    collected.push(&decoder.decode(start), window);
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        if cancel.is_cancelled() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let n_bytes = match file.read(&mut chunk) {
            Ok(0) => break,
            Ok(n_bytes) => n_bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let bytes = chunk.get(..n_bytes).unwrap_or_default();
        version.add(bytes);
        collected.push(&decoder.decode(bytes), window);
    }
    collected.push(&decoder.finish(), window);
    collected.encoding = decoder.note();
    Ok((collected, version.finish()))
}

impl WindowText {
    fn push(&mut self, text: &str, window: &Window) {
        self.ends_with_break = if text.is_empty() { self.ends_with_break } else { text.ends_with('\n') };
        let mut pieces = text.split('\n');
        self.push_piece(pieces.next().unwrap_or_default(), window);
        for piece in pieces {
            let line = self.total_lines - 1;
            // The break between two lines of the window is part of it.
            if line >= window.start && line.saturating_add(1) < window.end() {
                self.head.push("\n");
            }
            self.total_lines += 1;
            self.push_piece(piece, window);
        }
    }

    fn push_piece(&mut self, piece: &str, window: &Window) {
        let line = self.total_lines - 1;
        if line >= window.start && line < window.end() {
            self.head.push(piece);
        }
    }
}

/// `has_moved` means that the lines before the window may have changed.
fn show_text(
    text: WindowText,
    window: &Window,
    path: &str,
    has_moved: bool,
) -> Result<ToolOutput, ToolError> {
    let total = text.total_lines;
    let first = window.start.saturating_add(1);
    if window.start >= total {
        return Err(ToolError(format!("Offset {first} is beyond end of file ({total} lines total)")));
    }
    let first_line_bytes = text.head.first_line_bytes();
    let encoding = text.encoding.map(|note| format!("[This file is {note}.]"));
    let truncation = text.head.finish();
    let limit = format_size(MAX_BYTES as u64);
    let notice = if truncation.first_line_exceeds_limit {
        let size = format_size(first_line_bytes);
        let quoted = shell_quote(path);
        Some(format!(
            "[Line {first} is {size}, exceeds {limit} limit. \
             Use bash: sed -n '{first}p' {quoted} | head -c {MAX_BYTES}]"
        ))
    } else if let Some(truncated_by) = truncation.truncated_by {
        let last = window.start + truncation.output_lines;
        let by_bytes = match truncated_by {
            TruncatedBy::Lines => String::new(),
            TruncatedBy::Bytes => format!(" ({limit} limit)"),
        };
        let next = last + 1;
        Some(format!("[Showing lines {first}-{last} of {total}{by_bytes}. Use offset={next} to continue.]"))
    } else {
        // The empty text after the last line break is no line to continue with.
        let rest = total.saturating_sub(window.end()).saturating_sub(u64::from(text.ends_with_break));
        let next = window.end().saturating_add(1);
        (rest > 0).then(|| format!("[{rest} more lines in file. Use offset={next} to continue.]"))
    };
    let moved = has_moved.then(|| {
        "[This file has changed since you last read or wrote it; line numbers may have moved.]".to_owned()
    });
    let notices: Vec<String> = notice.into_iter().chain(moved).chain(encoding).collect();
    let notice = (!notices.is_empty()).then(|| notices.join("\n"));
    Ok(text_output(truncation, notice))
}

fn text_output(truncation: Truncation, notice: Option<String>) -> ToolOutput {
    let text = match notice {
        Some(notice) if truncation.first_line_exceeds_limit => notice,
        Some(notice) => format!("{}\n\n{notice}", truncation.content),
        None => truncation.content.clone(),
    };
    let details = truncation.truncated.then(|| json!({ "truncation": truncation }));
    ToolOutput { details, ..ToolOutput::text(text) }
}

/// Adds a line to the text of an output.
fn add_note(output: &mut ToolOutput, note: &str) {
    let gap = if output.content.len() > 1 { "\n" } else { "\n\n" };
    if let Some(ContentBlock::Text(text)) = output.content.first_mut() {
        text.text.push_str(gap);
        text.text.push_str(note);
    }
}

fn show_image(mime: &'static str, bytes: &[u8], limits: &ImageLimits) -> ToolOutput {
    match prepare_image(bytes, limits) {
        Ok(image) => {
            let mut text = format!("{IMAGE}{}]", image.mime);
            for hint in &image.hints {
                text.push('\n');
                text.push_str(hint);
            }
            let image = Image { data: image.data, mime_type: image.mime.to_owned(), extra: Extra::new() };
            let content = vec![ContentBlock::text(text), ContentBlock::Image(image)];
            ToolOutput { content, ..ToolOutput::default() }
        }
        Err(problem) => omitted_image(mime, &problem),
    }
}

fn omitted_image(mime: &str, problem: &ImageProblem) -> ToolOutput {
    ToolOutput::text(format!("{IMAGE}{mime}]\n{OMITTED}{problem}.]"))
}

const IMAGE: &str = "Read image file [";
const OMITTED: &str = "[Image omitted: ";

/// The line of a result of `read` about an image that the model does not get.
pub fn omitted_image_note(text: &str) -> Option<&str> {
    let (first, note) = text.split_once('\n')?;
    let is_of_image = first.starts_with(IMAGE) && note.starts_with(OMITTED) && !note.contains('\n');
    is_of_image.then_some(note)
}

fn could_not_read(path: &Path, error: &io::Error) -> ToolError {
    match error.kind() {
        io::ErrorKind::NotFound => ToolError(format!("File not found: {}", path.display())),
        _ => ToolError(format!("Could not read {}: {error}", path.display())),
    }
}

/// `text` as one word of a shell command.
fn shell_quote(text: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+@%:,".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_quoted_for_the_shell_only_if_needed() {
        let check = |text: &str, expected: &str| assert_eq!(shell_quote(text), expected);
        check("src/ü.rs", "src/ü.rs");
        check("a b", "'a b'");
        check("it's", "'it'\\''s'");
        check("", "''");
    }
}
