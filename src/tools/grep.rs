//! The `grep` tool: searches the content of files, as ripgrep does.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use futures_util::future::BoxFuture;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{
    BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkContextKind, SinkMatch,
};
use ignore::overrides::{Override, OverrideBuilder};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::agent::{Tool, ToolCx, ToolError, ToolOutput, ToolSpec, Touches};
use crate::ai::ConstrainedSampling;

use super::listing::Listing;
use super::output::format_size;
use super::path::{path_argument, resolve};
use super::walk::{relative_name, walk};

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

/// Maximum number of skipped files that are listed.
const MAX_NAMED: usize = 3;

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
                        "description": "Search only matching files: '*.rs' or 'src/**/*.ts'; '!*.rs' excludes them",
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
        Touches::reads(resolve(path_argument(arguments), cwd, self.home.as_deref()))
    }

    fn run<'a>(&'a self, arguments: Value, cx: ToolCx<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let arguments: Arguments = super::parse(arguments)?;
            super::check_cancelled(&cx.cancel)?;
            let root = resolve(arguments.path.as_deref().unwrap_or("."), cx.cwd, self.home.as_deref());
            let cancel = cx.cancel.clone();
            let what = {
                let shown = root.display().to_string();
                move || format!("searching {shown}")
            };
            super::blocking(&cx.cancel, what, move || search(&arguments, &root, &cancel)).await
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

fn search(arguments: &Arguments, root: &Path, cancel: &CancellationToken) -> Result<ToolOutput, ToolError> {
    let metadata = root.metadata().map_err(|_| ToolError(format!("Path not found: {}", root.display())))?;
    let matcher = matcher(arguments)?;
    let limit = super::whole(arguments.limit.unwrap_or(DEFAULT_LIMIT), 1);
    let context = super::whole(arguments.context.unwrap_or(0.0), 0).min(MAX_CONTEXT_LINES);
    let mut found = Found {
        listing: Listing::default(),
        n_matches: 0,
        limit,
        context,
        last_match_line: None,
        more: false,
        cut_lines: false,
        name: String::new(),
        unsearched: Vec::new(),
        cancel,
    };

    if metadata.is_dir() {
        let mut searcher = searcher(context, BinaryDetection::quit(0));
        for entry in walk(root, &[".rgignore"], true, glob(arguments, root)?).build() {
            super::check_cancelled(cancel)?;
            // An unreadable folder is skipped; the rest is searched.
            let Ok(entry) = entry else { continue };
            if entry.file_type().is_some_and(|kind| kind.is_file()) {
                found.search_file(&mut searcher, &matcher, entry.path(), relative_name(entry.path(), root));
            }
            if found.more {
                break;
            }
        }
    } else if metadata.is_file() {
        let name = root.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // A file named explicitly is searched even if it is binary.
        let mut searcher = searcher(context, BinaryDetection::convert(0));
        found.search_file(&mut searcher, &matcher, root, name);
    } else {
        return Err(ToolError(format!("Neither a file nor a directory: {}", root.display())));
    }
    super::check_cancelled(cancel)?;
    Ok(found.finish())
}

fn matcher(arguments: &Arguments) -> Result<RegexMatcher, ToolError> {
    RegexMatcherBuilder::new()
        .multi_line(true)
        .case_insensitive(arguments.ignore_case)
        .fixed_strings(arguments.literal)
        .line_terminator(Some(b'\n'))
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
        // Globs match paths without a leading "./".
        let positive = positive.strip_prefix("./").unwrap_or(positive);
        if !positive.is_empty() {
            overrides.add(&format!("{not}{positive}")).map_err(|error| invalid_glob(&error))?;
        }
    }
    overrides.build().map_err(|error| invalid_glob(&error))
}

fn invalid_glob(error: &ignore::Error) -> ToolError {
    ToolError(format!("Invalid glob: {error}"))
}

fn searcher(context: u64, binary: BinaryDetection) -> Searcher {
    let context = usize::try_from(context).unwrap_or(usize::MAX);
    SearcherBuilder::new()
        .binary_detection(binary)
        .before_context(context)
        .after_context(context)
        .line_number(true)
        .heap_limit(Some(HEAP_BYTES))
        .build()
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
    /// Files that were not searched completely, and why.
    unsearched: Vec<(String, io::Error)>,
    cancel: &'a CancellationToken,
}

impl Found<'_> {
    fn search_file(&mut self, searcher: &mut Searcher, matcher: &RegexMatcher, path: &Path, name: String) {
        self.name = name;
        self.last_match_line = None;
        let searched = File::open(path).and_then(|file| {
            let file = Cancellable { file, cancel: self.cancel.clone() };
            // A file that fails halfway keeps its matches so far.
            searcher.search_reader(matcher, file, &mut *self)
        });
        if let Err(error) = searched {
            self.unsearched.push((std::mem::take(&mut self.name), error));
        }
    }

    /// Names the skipped files; `None` if all were searched.
    fn passed_over(&self) -> Option<String> {
        let named = self.unsearched.iter().take(MAX_NAMED).map(|(name, error)| {
            // The searcher's out-of-memory error has no specific kind.
            let reason = if error.kind() == io::ErrorKind::Other && error.raw_os_error().is_none() {
                format!("a line is longer than {}", format_size(HEAP_BYTES as u64))
            } else {
                error.to_string()
            };
            format!("{name}: {reason}")
        });
        let named: Vec<String> = named.collect();
        let n_more = self.unsearched.len() - named.len();
        let more = if n_more > 0 { format!("; and {n_more} more") } else { String::new() };
        (!named.is_empty()).then(|| format!("Not fully searched: {}{more}", named.join("; ")))
    }

    /// Whether line `number` belongs to the context after the last match.
    fn follows_last_match(&self, number: u64) -> bool {
        self.last_match_line.is_some_and(|last| number > last && number - last <= self.context)
    }

    fn push(&mut self, number: u64, sign: char, line: &[u8]) {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line));
        let (shown, mark) = match line.char_indices().nth(MAX_LINE_CHARS) {
            Some((end, _)) => {
                self.cut_lines = true;
                (&line[..end], "... [truncated]")
            }
            None => (&*line, ""),
        };
        self.listing.push(&format!("{}{sign}{number}{sign} {shown}{mark}", self.name));
    }

    fn finish(mut self) -> ToolOutput {
        let passed_over = self.passed_over();
        if self.n_matches == 0 {
            let notice = passed_over.map(|notice| format!("\n\n[{notice}]")).unwrap_or_default();
            return ToolOutput::text(format!("No matches found{notice}"));
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
        if let Some(notice) = passed_over {
            self.listing.passed_over(notice);
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
