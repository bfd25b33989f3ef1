//! The `write` tool: creates or replaces a whole file.

use std::fs;
use std::path::PathBuf;

use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::agent::{Tool, ToolCx, ToolError, ToolOutput, ToolSpec};
use crate::ai::ConstrainedSampling;
use crate::util::atomic_file;

use super::file_locks::FileLocks;
use super::path::resolve;

/// Writes files for the model.
#[derive(Debug)]
pub struct Write {
    spec: ToolSpec,
    home: Option<PathBuf>,
    locks: FileLocks,
}

impl Write {
    pub fn new(home: Option<PathBuf>, locks: FileLocks) -> Self {
        let spec = ToolSpec {
            name: "write",
            description: include_str!("write.md").trim_ascii(),
            snippet: "Create a file or replace all of it",
            guidelines: &["Keep write for new files and for rewriting a file completely."],
            parameters: json!({
                "type": "object",
                "required": ["path", "content"],
                "properties": {
                    "path": {
                        "type": "string",
                        "description": "File to write, relative to the working directory or absolute",
                    },
                    "content": {
                        "type": "string",
                        "description": "The whole new content, written as it is",
                    },
                },
            }),
            constrained_sampling: Some(ConstrainedSampling::prefer_schema()),
        };
        Self { spec, home, locks }
    }
}

impl Tool for Write {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run<'a>(&'a self, arguments: Value, cx: ToolCx<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        // Outside of the future: calls take their places in the order they are made.
        let arguments = super::parse::<Arguments>(arguments).map(|arguments| {
            let path = resolve(&arguments.path, cx.cwd, self.home.as_deref());
            let place = self.locks.register(&path);
            (arguments, path, place)
        });
        Box::pin(async move {
            let (Arguments { path: shown, content }, path, place) = arguments?;
            let guard = tokio::select! {
                () = cx.cancel.cancelled() => return Err(ToolError::aborted()),
                guard = place.wait() => guard,
            };
            super::check_cancelled(&cx.cancel)?;
            let result = super::blocking(move || {
                let _guard = guard;
                let failed = |error| ToolError(format!("Could not write {}: {error}", path.display()));
                if let Some(folder) = path.parent() {
                    fs::create_dir_all(folder).map_err(failed)?;
                }
                atomic_file::write(&path, content.as_bytes()).map_err(failed)
            });
            result.await?;
            Ok(ToolOutput::text(format!("Successfully wrote to {shown}")))
        })
    }
}

#[derive(Deserialize)]
struct Arguments {
    path: String,
    content: String,
}
