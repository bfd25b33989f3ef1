//! The `grep` tool: searches the content of files, as ripgrep does.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use futures_util::future::BoxFuture;
use grep_matcher::LineTerminator;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{
    BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkContextKind, SinkMatch,
};
use ignore::DirEntry;
use ignore::overrides::{Override, OverrideBuilder};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::agent::{Tool, ToolCx, ToolError, ToolOutput, ToolSpec, Touches};
use crate::ai::ConstrainedSampling;
use crate::util::text_decoder::TextEncoding;

use super::listing::Listing;
use super::output::format_size;
use super::path::{FoundPath, WrittenPath, path_argument};
use super::unsearched::Unsearched;
use super::walk::{
    IgnoreRules, SEARCHED_IGNORED, ignored_note, n_ignored, relative_glob, relative_name, walk,
    with_literal_brackets,
};

const DEFAULT_LIMIT: f64 = 100.0;

/// Maximum number of characters shown of a line.
const MAX_LINE_CHARS: usize = 500;

/// Maximum lines of context; more would exceed the output limit.
const MAX_CONTEXT_LINES: u64 = 10_000;

/// Memory limit for the lines of one file. A longer line ends the search of its
/// file: logs and data on one line may have any size.
const HEAP_BYTES: usize = 16 << 20;

/// Memory limits for a compiled pattern and for its matching cache.
const PATTERN_BYTES: usize = 10 << 20;

/// Searches files for the model.
#[derive(Debug)]
pub struct Grep {
    spec: ToolSpec,
    home: Option<PathBuf>,
}

impl Grep {
    /// The tool; `~` stands for `home`.
    pub fn new(home: Option<PathBuf>) -> Self {
        let spec = ToolSpec {
            name: "grep".to_owned(),
            description: include_str!("grep.md").trim_ascii().to_owned(),
            snippet: Some("Search file contents (respects .gitignore)".to_owned()),
            guidelines: Vec::new(),
            parameters: json!({
                "type": "object",
                "required": ["pattern"],
                "properties": {
                    "pattern": {
                        "type": "string",
                        "description": "Regular expression to search for, or plain text with literal",
                    },
                    "path": {
                        "type": "string",
                        "description": "Directory or file to search (default: the working directory)",
                    },
                    "glob": {
                        "type": "string",
                        "description": "Search only matching files, relative to the searched directory: '*.rs' \
                                        at any depth, 'src/*.ts' or '**/test/*.ts'; '!*.rs' excludes them",
                    },
                    "ignoreCase": { "type": "boolean", "description": "Ignore case (default: false)" },
                    "literal": {
                        "type": "boolean",
                        "description": "Treat the pattern as plain text (default: false)",
                    },
                    "context": {
                        "type": "number",
                        "description": "Lines of context before and after each match (default: 0)",
                    },
                    "limit": {
                        "type": "number",
                        "description": "Maximum number of matches (default: 100)",
                    },
                },
            }),
            constrained_sampling: Some(ConstrainedSampling::prefer_schema()),
        };
        Self { spec, home }
    }
}

impl Tool for Grep {
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
            let path = arguments.path.as_deref().unwrap_or(".");
            let written = WrittenPath::new(path, cx.cwd, self.home.as_deref());
            let cancel = cx.cancel.clone();
            let what = {
                let shown = written.shown();
                move || format!("searching {shown}")
            };
            super::blocking(&cx.cancel, what, move || search(&arguments, &written, &cancel)).await
        })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Arguments {
    pattern: String,
    path: Option<String>,
    glob: Option<String>,
    #[serde(default)]
    ignore_case: bool,
    #[serde(default)]
    literal: bool,
    context: Option<f64>,
    limit: Option<f64>,
}

fn search(
    arguments: &Arguments,
    written: &WrittenPath,
    cancel: &CancellationToken,
) -> Result<ToolOutput, ToolError> {
    let place = written.find();
    let root = &*place.path;
    let metadata = root.metadata().map_err(|_| ToolError(format!("Path not found: {}", root.display())))?;
    let matcher = matcher(arguments)?;
    let mut found = Found::new(arguments, &place, cancel);
    if metadata.is_dir() {
        let overrides = glob(arguments, root)?;
        let mut folder = FolderSearch { root, overrides, matcher, n_files: 0 };
        folder.run(&mut found, IgnoreRules::Follow { files: &[".rgignore"], require_git: true })?;
        if found.n_matches == 0 {
            folder.explain_ignored(&mut found, written.is_not_cwd(root))?;
        }
    } else if metadata.is_file() {
        let name = root.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // A file named explicitly is searched even if it is binary.
        let mut searchers =
            Searchers::new(found.context, is_crlf_aware(arguments), BinaryDetection::convert(0));
        found.search_file(&mut searchers, &matcher, root, name);
    } else {
        return Err(ToolError(format!("Neither a file nor a directory: {}", root.display())));
    }
    super::check_cancelled(cancel)?;
    Ok(found.finish())
}

/// A search of a directory, which may be repeated with other rules.
struct FolderSearch<'a> {
    root: &'a Path,
    overrides: Override,
    matcher: RegexMatcher,
    /// Files that were visited.
    n_files: usize,
}

impl FolderSearch<'_> {
    fn run(&mut self, found: &mut Found<'_>, rules: IgnoreRules<'_>) -> Result<(), ToolError> {
        let mut searchers = Searchers::new(found.context, found.is_crlf_aware, BinaryDetection::quit(0));
        for entry in walk(self.root, rules, self.overrides.clone()).build() {
            super::check_cancelled(found.cancel)?;
            let entry = match entry {
                Ok(entry) => entry,
                // The rest is searched.
                Err(error) => {
                    found.unsearched.push_walked(&error, self.root);
                    continue;
                }
            };
            if is_file(&entry) {
                self.n_files += 1;
                let name = relative_name(entry.path(), self.root);
                found.search_file(&mut searchers, &self.matcher, entry.path(), name);
            }
            if found.more {
                break;
            }
        }
        Ok(())
    }

    /// Notes which files a search without matches left out. If these are all files of a
    /// directory that the model named, searches them.
    fn explain_ignored(&mut self, found: &mut Found<'_>, is_named: bool) -> Result<(), ToolError> {
        if is_named && self.n_files == 0 {
            self.run(found, IgnoreRules::Disregard)?;
            if self.n_files > 0 {
                found.listing.passed_over(SEARCHED_IGNORED.to_owned());
            }
        } else if is_named || self.n_files == 0 {
            let n_ignored =
                n_ignored(self.root, self.overrides.clone(), self.n_files, is_file, found.cancel)?;
            if let Some(note) = ignored_note(n_ignored, "file") {
                found.listing.passed_over(note);
            }
        }
        Ok(())
    }
}

fn is_file(entry: &DirEntry) -> bool {
    entry.file_type().is_some_and(|kind| kind.is_file())
}

/// Whether `$` matches before CRLF. A pattern that contains a carriage return means it literally.
fn is_crlf_aware(arguments: &Arguments) -> bool {
    let pattern = arguments.pattern.to_ascii_lowercase();
    !["\r", "\\r", "\\x0d", "\\x{d}", "\\u000d"].iter().any(|written| pattern.contains(written))
}

fn matcher(arguments: &Arguments) -> Result<RegexMatcher, ToolError> {
    let mut builder = RegexMatcherBuilder::new();
    if is_crlf_aware(arguments) {
        builder.crlf(true);
    } else {
        builder.line_terminator(Some(b'\n'));
    }
    builder
        .multi_line(true)
        .case_insensitive(arguments.ignore_case)
        .fixed_strings(arguments.literal)
        .size_limit(PATTERN_BYTES)
        .dfa_size_limit(PATTERN_BYTES)
        .build(&arguments.pattern)
        .map_err(|error| ToolError(format!("Invalid pattern: {error}")))
}

fn glob(arguments: &Arguments, root: &Path) -> Result<Override, ToolError> {
    let mut overrides = OverrideBuilder::new(root);
    if let Some(glob) = &arguments.glob {
        let (not, positive) = match glob.strip_prefix('!') {
            Some(positive) => ("!", positive),
            None => ("", glob.as_str()),
        };
        let positive = relative_glob(positive, root);
        let literal = with_literal_brackets(positive);
        let globs = [Some(positive), literal.as_deref()].into_iter().flatten();
        for glob in globs.filter(|glob| !glob.is_empty()) {
            overrides.add(&[not, glob].concat()).map_err(|error| invalid_glob(&error))?;
        }
    }
    overrides.build().map_err(|error| invalid_glob(&error))
}

fn invalid_glob(error: &ignore::Error) -> ToolError {
    ToolError(format!("Invalid glob: {error}"))
}

/// How text and other files are searched.
struct Searchers {
    /// Searches NUL bytes as part of lines, so that lines are counted right.
    text: Searcher,
    binary: Searcher,
}

impl Searchers {
    fn new(context: u64, is_crlf_aware: bool, binary: BinaryDetection) -> Self {
        let context = usize::try_from(context).unwrap_or(usize::MAX);
        let searcher = |detection: BinaryDetection| {
            SearcherBuilder::new()
                .binary_detection(detection)
                .line_terminator(if is_crlf_aware {
                    LineTerminator::crlf()
                } else {
                    LineTerminator::byte(b'\n')
                })
                .before_context(context)
                .after_context(context)
                .line_number(true)
                .heap_limit(Some(HEAP_BYTES))
                .build()
        };
        Self { text: searcher(BinaryDetection::none()), binary: searcher(binary) }
    }
}

/// Number of bytes that determine whether a file is text.
const TEXT_CHECK_BYTES: u64 = 8 * 1024;

/// So many bytes of a text may be control characters, and one of [`BYTES_PER_FLAW`] more.
const STRAY_BYTES: usize = 4;

/// One of so many bytes of a text may be a control character, or invalid.
const BYTES_PER_FLAW: usize = 32;

/// Whether a file that begins with `start` is a text, maybe with a stray NUL byte or in an old
/// encoding.
fn is_text(start: &[u8]) -> bool {
    if TextEncoding::of(start) != TextEncoding::Utf8 {
        return true;
    }
    let is_odd = |byte: &u8| byte.is_ascii_control() && !matches!(byte, b'\t' | b'\n' | b'\r' | 8 | 12 | 27);
    let n_odd = start.iter().filter(|byte| is_odd(byte)).count();
    if n_odd == 0 {
        return true;
    }
    let n_invalid: usize = start.utf8_chunks().map(|chunk| chunk.invalid().len()).sum();
    let n_allowed = start.len() / BYTES_PER_FLAW;
    n_odd <= STRAY_BYTES + n_allowed && n_invalid <= n_allowed
}

/// Collects matches up to the limit, and detects whether there is one more.
struct Found<'a> {
    listing: Listing,
    n_matches: u64,
    limit: u64,
    context: u64,
    /// The line of the last shown match in the current file.
    last_match_line: Option<u64>,
    more: bool,
    cut_lines: bool,
    /// The current file's name, as shown.
    name: String,
    unsearched: Unsearched,
    is_crlf_aware: bool,
    cancel: &'a CancellationToken,
}

impl<'a> Found<'a> {
    fn new(arguments: &Arguments, place: &FoundPath, cancel: &'a CancellationToken) -> Self {
        Self {
            listing: Listing::of(place),
            n_matches: 0,
            limit: super::whole(arguments.limit.unwrap_or(DEFAULT_LIMIT), 1),
            context: super::whole(arguments.context.unwrap_or(0.0), 0).min(MAX_CONTEXT_LINES),
            last_match_line: None,
            more: false,
            cut_lines: false,
            name: String::new(),
            unsearched: Unsearched::default(),
            is_crlf_aware: is_crlf_aware(arguments),
            cancel,
        }
    }

    fn search_file(&mut self, searchers: &mut Searchers, matcher: &RegexMatcher, path: &Path, name: String) {
        self.name = name;
        self.last_match_line = None;
        let searched = File::open(path).and_then(|file| {
            let mut file = Cancellable { file, cancel: self.cancel.clone() };
            let mut start = Vec::new();
            file.by_ref().take(TEXT_CHECK_BYTES).read_to_end(&mut start)?;
            let searcher = if is_text(&start) { &mut searchers.text } else { &mut searchers.binary };
            // A file that fails halfway keeps its matches so far.
            searcher.search_reader(matcher, start.as_slice().chain(file), &mut *self)
        });
        if let Err(error) = searched {
            // The searcher's out-of-memory error has no specific kind.
            let reason = if error.kind() == io::ErrorKind::Other && error.raw_os_error().is_none() {
                format!("a line is longer than {}", format_size(HEAP_BYTES as u64))
            } else {
                error.to_string()
            };
            self.unsearched.push(&self.name, &reason);
        }
    }

    /// Whether line `number` belongs to the context after the last match.
    fn follows_last_match(&self, number: u64) -> bool {
        self.last_match_line.is_some_and(|last| number > last && number - last <= self.context)
    }

    fn push(&mut self, number: u64, sign: char, line: &[u8]) {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line));
        let line = line.replace('\0', "\u{fffd}");
        let (shown, mark) = match line.char_indices().nth(MAX_LINE_CHARS) {
            Some((end, _)) => {
                self.cut_lines = true;
                (&line[..end], "... [truncated]")
            }
            None => (line.as_str(), ""),
        };
        self.listing.push(&format!("{}{sign}{number}{sign} {shown}{mark}", self.name));
    }

    fn finish(mut self) -> ToolOutput {
        if let Some(notice) = self.unsearched.notice() {
            self.listing.passed_over(notice);
        }
        if self.n_matches == 0 {
            return self.listing.empty("No matches found");
        }
        if self.more {
            let limit = self.limit;
            let double = limit.saturating_mul(2);
            self.listing.limit_reached(
                "matchLimitReached",
                limit,
                format!("{limit} matches limit reached. Use limit={double} for more, or refine pattern"),
            );
        }
        if self.cut_lines {
            self.listing.lines_cut(format!(
                "Some lines truncated to {MAX_LINE_CHARS} chars. Use read tool to see full lines"
            ));
        }
        self.listing.finish()
    }
}

impl Sink for Found<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        let number = found.line_number().unwrap_or_default();
        if self.n_matches < self.limit {
            self.n_matches += 1;
            self.last_match_line = Some(number);
            self.push(number, ':', found.bytes());
            return Ok(true);
        }
        self.more = true;
        if self.follows_last_match(number) {
            self.push(number, '-', found.bytes());
            return Ok(true);
        }
        Ok(false)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        let number = context.line_number().unwrap_or_default();
        let shown = self.n_matches < self.limit || self.follows_last_match(number);
        if shown {
            self.push(number, '-', context.bytes());
        }
        // After the limit, only context lines of the last match matter.
        let past_last = !shown && *context.kind() == SinkContextKind::After;
        Ok(!(self.more && past_last))
    }
}

/// A file that fails to read once the call is cancelled.
struct Cancellable {
    file: File,
    cancel: CancellationToken,
}

impl io::Read for Cancellable {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.cancel.is_cancelled() {
            return Err(io::Error::other("cancelled"));
        }
        self.file.read(buffer)
    }
}
