//! The `ls` tool: lists the contents of a folder.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::agent::{Tool, ToolCx, ToolError, ToolOutput, ToolSpec, Touches};
use crate::ai::ConstrainedSampling;

use super::listing::Listing;
use super::path::{FoundPath, WrittenPath, path_argument};

const DEFAULT_LIMIT: f64 = 500.0;

/// Lists folders for the model.
#[derive(Debug)]
pub struct Ls {
    spec: ToolSpec,
    home: Option<PathBuf>,
}

impl Ls {
    /// The tool; `~` stands for `home`.
    pub fn new(home: Option<PathBuf>) -> Self {
        let spec = ToolSpec {
            name: "ls".to_owned(),
            description: include_str!("ls.md").trim_ascii().to_owned(),
            snippet: Some("List a directory".to_owned()),
            guidelines: Vec::new(),
            parameters: json!({
                "type": "object",
                "required": [],
                "properties": {
                    "path": {
                        "type": "string",
                        "description": "Directory to list (default: the working directory)",
                    },
                    "limit": {
                        "type": "number",
                        "description": "Maximum number of entries (default: 500)",
                    },
                },
            }),
            constrained_sampling: Some(ConstrainedSampling::prefer_schema()),
        };
        Self { spec, home }
    }
}

impl Tool for Ls {
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
            let limit = super::whole(arguments.limit.unwrap_or(DEFAULT_LIMIT), 1);
            let cancel = cx.cancel.clone();
            let what = {
                let shown = written.shown();
                move || format!("listing {shown}")
            };
            super::blocking(&cx.cancel, what, move || list(&written.find(), limit, &cancel)).await
        })
    }
}

#[derive(Deserialize)]
struct Arguments {
    path: Option<String>,
    limit: Option<f64>,
}

fn list(found: &FoundPath, limit: u64, cancel: &CancellationToken) -> Result<ToolOutput, ToolError> {
    let path = &*found.path;
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => ToolError(format!("Path not found: {}", path.display())),
        _ => ToolError(format!("Could not list {}: {error}", path.display())),
    };
    if !fs::metadata(path).map_err(failed)?.is_dir() {
        return Err(ToolError(format!("Not a directory: {}", path.display())));
    }
    let mut names = Vec::new();
    for entry in fs::read_dir(path).map_err(failed)? {
        super::check_cancelled(cancel)?;
        let Ok(entry) = entry else { continue };
        // Follows links, so that a link to a folder is shown as a folder and a
        // broken one is not shown.
        let Ok(metadata) = fs::metadata(entry.path()) else { continue };
        let suffix = if metadata.is_dir() { "/" } else { "" };
        let name = entry.file_name().to_string_lossy().into_owned();
        names.push((name.to_lowercase(), name, suffix));
    }
    names.sort();
    let mut listing = Listing::of(found);
    if names.is_empty() {
        return Ok(listing.empty("(empty directory)"));
    }

    let n_shown = usize::try_from(limit).unwrap_or(usize::MAX).min(names.len());
    for (_, name, suffix) in names.iter().take(n_shown) {
        listing.push(&format!("{name}{suffix}"));
    }
    if n_shown < names.len() {
        let more = limit.saturating_mul(2);
        listing.limit_reached(
            "entryLimitReached",
            limit,
            format!("{limit} entries limit reached. Use limit={more} for more"),
        );
    }
    Ok(listing.finish())
}
