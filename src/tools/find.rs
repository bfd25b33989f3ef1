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
use super::path::{path_argument, resolve};
use super::walk::{relative_name, walk};

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
                        "description": "Glob to match, for example '*.ts', '**/*.json' or 'src/**/*.spec.ts'",
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
            super::blocking(&cx.cancel, what, move || find(&arguments, &root, &cancel)).await
        })
    }
}

#[derive(Deserialize)]
struct Arguments {
    pattern: String,
    path: Option<String>,
    limit: Option<f64>,
}

fn find(arguments: &Arguments, root: &Path, cancel: &CancellationToken) -> Result<ToolOutput, ToolError> {
    let metadata = root.metadata().map_err(|_| ToolError(format!("Path not found: {}", root.display())))?;
    if !metadata.is_dir() {
        return Err(ToolError(format!("Not a directory: {}", root.display())));
    }
    let pattern = Pattern::new(&arguments.pattern)?;
    let limit = super::whole(arguments.limit.unwrap_or(DEFAULT_LIMIT), 1);

    let mut listing = Listing::default();
    let mut n_found: u64 = 0;
    // Outside a repository, a .gitignore is still useful.
    let require_git = Repository::find(root).is_some();
    for entry in walk(root, &[".fdignore"], require_git, Override::empty()).build() {
        super::check_cancelled(cancel)?;
        let Ok(entry) = entry else { continue };
        if entry.depth() == 0 || !pattern.matches(entry.path()) {
            continue;
        }
        if n_found == limit {
            let more = limit.saturating_mul(2);
            listing.limit_reached(
                "resultLimitReached",
                limit,
                format!("{limit} results limit reached. Use limit={more} for more, or refine pattern"),
            );
            break;
        }
        n_found += 1;
        let suffix = if entry.file_type().is_some_and(|kind| kind.is_dir()) { "/" } else { "" };
        listing.push(&format!("{}{suffix}", relative_name(entry.path(), root)));
    }
    if n_found == 0 {
        return Ok(ToolOutput::text("No files found matching pattern"));
    }
    Ok(listing.finish())
}

/// A glob, and the part of a path it applies to.
struct Pattern {
    glob: GlobMatcher,
    whole_path: bool,
}

impl Pattern {
    fn new(pattern: &str) -> Result<Self, ToolError> {
        let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
        let whole_path = pattern.contains('/');
        let is_anchored = pattern.starts_with('/') || pattern.starts_with("**/");
        let prefix = if whole_path && !is_anchored { "**/" } else { "" };
        let glob = GlobBuilder::new(&format!("{prefix}{pattern}"))
            .literal_separator(true)
            .case_insensitive(!pattern.chars().any(char::is_uppercase))
            .build()
            .map_err(|error| ToolError(format!("Invalid pattern: {error}")))?;
        Ok(Self { glob: glob.compile_matcher(), whole_path })
    }

    fn matches(&self, path: &Path) -> bool {
        if self.whole_path {
            self.glob.is_match(path)
        } else {
            path.file_name().is_some_and(|name| self.glob.is_match(name))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, path: &str, expected: bool) {
        let matches = Pattern::new(pattern).unwrap().matches(Path::new(path));
        assert_eq!(matches, expected, "{pattern} with {path}");
    }

    #[test]
    fn a_pattern_without_a_slash_is_matched_with_names() {
        check("*.rs", "/w/src/a.rs", true);
        check("*.rs", "/w/src.rs/a", false);
        check("**", "/w/a", true);
    }

    #[test]
    fn a_pattern_with_a_slash_is_matched_with_the_end_of_paths() {
        check("src/*.rs", "/w/src/a.rs", true);
        check("src/*.rs", "/w/src/b/a.rs", false);
        check("./src/*.rs", "/w/src/a.rs", true);
        check("src/**/*.rs", "/w/src/b/a.rs", true);
        check("**/a.rs", "/w/src/b/a.rs", true);
        check("/w/*/a.rs", "/w/src/a.rs", true);
        check("/src/*", "/w/src/a.rs", false);
    }

    #[test]
    fn only_a_pattern_with_capitals_minds_case() {
        check("readme*", "/w/README.md", true);
        check("Readme*", "/w/README.md", false);
        check("-x", "/w/-x", true);
    }

    #[test]
    fn a_broken_pattern_is_an_error() {
        assert!(Pattern::new("a[").is_err());
    }
}
