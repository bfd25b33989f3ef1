//! The `find` tool: files and folders by name, as fd does.

use std::path::{Path, PathBuf};

use futures_util::future::BoxFuture;
use globset::{GlobBuilder, GlobMatcher};
use ignore::overrides::Override;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::agent::{Tool, ToolCx, ToolError, ToolOutput, ToolSpec, Touches};
use crate::ai::ConstrainedSampling;
use crate::util::git::Repository;

use super::listing::Listing;
use super::path::{FoundPath, WrittenPath, path_argument};
use super::unsearched::Unsearched;
use super::walk::{
    IgnoreRules, SEARCHED_IGNORED, ignored_note, n_ignored, relative_glob, relative_name, walk,
    with_literal_brackets,
};

const DEFAULT_LIMIT: f64 = 1000.0;

/// Finds files for the model.
#[derive(Debug)]
pub struct Find {
    spec: ToolSpec,
    home: Option<PathBuf>,
}

impl Find {
    /// The tool; `~` stands for `home`.
    pub fn new(home: Option<PathBuf>) -> Self {
        let spec = ToolSpec {
            name: "find".to_owned(),
            description: include_str!("find.md").trim_ascii().to_owned(),
            snippet: Some("Find files by glob (respects .gitignore)".to_owned()),
            guidelines: Vec::new(),
            parameters: json!({
                "type": "object",
                "required": ["pattern"],
                "properties": {
                    "pattern": {
                        "type": "string",
                        "description": "Glob relative to the searched directory: '*.ts' matches names at any depth, \
                                        'src/*.ts' or '**/test/*.ts' paths",
                    },
                    "path": {
                        "type": "string",
                        "description": "Directory to search (default: the working directory)",
                    },
                    "limit": {
                        "type": "number",
                        "description": "Maximum number of results (default: 1000)",
                    },
                },
            }),
            constrained_sampling: Some(ConstrainedSampling::prefer_schema()),
        };
        Self { spec, home }
    }
}

impl Tool for Find {
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
            super::blocking(&cx.cancel, what, move || find(&arguments, &written, &cancel)).await
        })
    }
}

#[derive(Deserialize)]
struct Arguments {
    pattern: String,
    path: Option<String>,
    limit: Option<f64>,
}

fn find(
    arguments: &Arguments,
    written: &WrittenPath,
    cancel: &CancellationToken,
) -> Result<ToolOutput, ToolError> {
    let place = written.find();
    let root = &*place.path;
    let metadata = root.metadata().map_err(|_| ToolError(format!("Path not found: {}", root.display())))?;
    if !metadata.is_dir() {
        return Err(ToolError(format!("Not a directory: {}", root.display())));
    }
    let pattern = Pattern::new(&arguments.pattern, root)?;
    let limit = super::whole(arguments.limit.unwrap_or(DEFAULT_LIMIT), 1);
    let mut search = FindRun { place: &place, pattern, limit, n_found: 0, n_visited: 0, cancel };
    // Outside a repository, a .gitignore is still useful.
    let require_git = Repository::find(root).is_some();
    let mut listing = search.run(IgnoreRules::Follow { files: &[".fdignore"], require_git })?;
    if search.n_found == 0 && written.is_not_cwd(root) && search.n_visited == 0 {
        listing = search.run(IgnoreRules::Disregard)?;
        if search.n_visited > 0 {
            listing.passed_over(SEARCHED_IGNORED.to_owned());
        }
    } else if search.n_found == 0 && (written.is_not_cwd(root) || search.n_visited == 0) {
        let n_ignored = n_ignored(root, Override::empty(), search.n_visited, |_| true, cancel)?;
        if let Some(note) = ignored_note(n_ignored, "path") {
            listing.passed_over(note);
        }
    }
    if search.n_found == 0 {
        return Ok(listing.empty("No files found matching pattern"));
    }
    Ok(listing.finish())
}

/// One search, which may be repeated with other rules.
struct FindRun<'a> {
    place: &'a FoundPath,
    pattern: Pattern,
    limit: u64,
    n_found: u64,
    n_visited: usize,
    cancel: &'a CancellationToken,
}

impl FindRun<'_> {
    fn run(&mut self, rules: IgnoreRules<'_>) -> Result<Listing, ToolError> {
        let root = &*self.place.path;
        let mut listing = Listing::of(self.place);
        let mut unread = Unsearched::default();
        for entry in walk(root, rules, Override::empty()).build() {
            super::check_cancelled(self.cancel)?;
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    unread.push_walked(&error, root);
                    continue;
                }
            };
            if entry.depth() == 0 {
                continue;
            }
            self.n_visited += 1;
            let is_dir = entry.file_type().is_some_and(|kind| kind.is_dir());
            let name = relative_name(entry.path(), root);
            if !self.pattern.matches(entry.path(), &name, is_dir) {
                continue;
            }
            if self.n_found == self.limit {
                let limit = self.limit;
                let more = limit.saturating_mul(2);
                listing.limit_reached(
                    "resultLimitReached",
                    limit,
                    format!("{limit} results limit reached. Use limit={more} for more, or refine pattern"),
                );
                break;
            }
            self.n_found += 1;
            let suffix = if is_dir { "/" } else { "" };
            listing.push(&[&name, suffix].concat());
        }
        if let Some(notice) = unread.notice() {
            listing.passed_over(notice);
        }
        Ok(listing)
    }
}

/// A glob, and what it is compared with.
struct Pattern {
    globs: Vec<GlobMatcher>,
    subject: MatchSubject,
    dirs_only: bool,
}

/// The part of a path that a pattern is compared with.
enum MatchSubject {
    Name,
    /// The path relative to the directory that is searched.
    RelativePath,
    AbsolutePath,
}

impl Pattern {
    fn new(pattern: &str, root: &Path) -> Result<Self, ToolError> {
        let relative = relative_glob(pattern, root);
        let (glob, dirs_only) = match relative.strip_suffix('/') {
            Some(name) if !name.is_empty() => (name, true),
            Some(_) | None => (relative, false),
        };
        let subject = match glob {
            glob if glob.starts_with('/') => MatchSubject::AbsolutePath,
            glob if glob.contains('/') => MatchSubject::RelativePath,
            _ => MatchSubject::Name,
        };
        let ignores_case = !glob.chars().any(char::is_uppercase);
        let literal = with_literal_brackets(glob);
        let globs = [Some(glob), literal.as_deref()].into_iter().flatten().map(|glob| {
            let glob = GlobBuilder::new(glob).literal_separator(true).case_insensitive(ignores_case).build();
            glob.map(|glob| glob.compile_matcher())
                .map_err(|error| ToolError(format!("Invalid pattern: {error}")))
        });
        Ok(Self { globs: globs.collect::<Result<_, _>>()?, subject, dirs_only })
    }

    /// `relative` is `path` below the directory that is searched.
    fn matches(&self, path: &Path, relative: &str, is_dir: bool) -> bool {
        if self.dirs_only && !is_dir {
            return false;
        }
        let subject = match self.subject {
            MatchSubject::Name => path.file_name().map(Path::new).unwrap_or(path),
            MatchSubject::RelativePath => Path::new(relative),
            MatchSubject::AbsolutePath => path,
        };
        self.globs.iter().any(|glob| glob.is_match(subject))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches `/W`.
    #[track_caller]
    fn check(pattern: &str, path: &str, expected: bool) {
        let root = Path::new("/W");
        let is_dir = path.ends_with('/');
        let path = Path::new(path);
        let name = relative_name(path, root);
        let matches = Pattern::new(pattern, root).unwrap().matches(path, &name, is_dir);
        assert_eq!(matches, expected, "{pattern} with {path:?}");
    }

    #[test]
    fn a_pattern_without_a_slash_is_matched_with_names() {
        check("*.rs", "/W/src/a.rs", true);
        check("./*.rs", "/W/src/a.rs", true);
        check("*.rs", "/W/src.rs/a", false);
        check("**", "/W/a", true);
    }

    #[test]
    fn a_pattern_with_a_slash_is_relative_to_the_searched_directory() {
        check("src/*.rs", "/W/src/a.rs", true);
        check("src/*.rs", "/W/pkg/src/a.rs", false);
        check("**/src/*.rs", "/W/src/a.rs", true);
        check("**/src/*.rs", "/W/pkg/src/a.rs", true);
        check("src/*.rs", "/W/src/b/a.rs", false);
        check("./src/*.rs", "/W/src/a.rs", true);
        check("././src/*.rs", "/W/src/a.rs", true);
        check("src/**/*.rs", "/W/src/b/a.rs", true);
        check("**/a.rs", "/W/src/b/a.rs", true);
        check("w/src/*.rs", "/W/src/a.rs", false);
    }

    #[test]
    fn an_absolute_pattern_is_matched_as_it_is() {
        check("/W/*/a.rs", "/W/src/a.rs", true);
        check("/*/*/a.rs", "/W/src/a.rs", true);
        check("/src/*", "/W/src/a.rs", false);
    }

    #[test]
    fn only_a_pattern_with_capitals_minds_case() {
        check("readme*", "/W/README.md", true);
        check("Readme*", "/W/README.md", false);
        check("docs/readme*", "/W/Docs/README.md", true);
        // The capital of the searched directory does not count.
        check("/W/docs/readme*", "/W/Docs/README.md", true);
        check("-x", "/W/-x", true);
    }

    #[test]
    fn brackets_match_a_name_with_brackets_too() {
        check("[id].tsx", "/W/i.tsx", true);
        check("[id].tsx", "/W/[id].tsx", true);
        check("app/[...slug]/*.tsx", "/W/app/[...slug]/page.tsx", true);
        check("*.[ch]", "/W/a.c", true);
    }

    #[test]
    fn a_slash_at_the_end_asks_for_directories() {
        check("src/", "/W/pkg/src/", true);
        check("src/", "/W/src", false);
        check("pkg/*/", "/W/pkg/src/", true);
    }

    #[test]
    fn a_broken_pattern_is_an_error() {
        assert!(Pattern::new("a[", Path::new("/W")).is_err());
    }
}
