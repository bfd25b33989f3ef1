//! The `write` tool: creates or replaces a whole file.

use std::fs;
use std::path::{Path, PathBuf};

use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::agent::{Tool, ToolCx, ToolError, ToolOutput, ToolSpec, Touches};
use crate::ai::ConstrainedSampling;

use super::Files;
use super::editor;
use super::file_versions::Version;
use super::path::{FoundPath, WrittenPath, path_argument};

/// Writes files for the model.
#[derive(Debug)]
pub struct Write {
    spec: ToolSpec,
    home: Option<PathBuf>,
    files: Files,
}

impl Write {
    pub(super) fn new(home: Option<PathBuf>, files: Files) -> Self {
        let spec = ToolSpec {
            name: "write".to_owned(),
            description: include_str!("write.md").trim_ascii().to_owned(),
            snippet: Some("Create or overwrite a file".to_owned()),
            guidelines: vec!["Use write only for new files and complete rewrites.".to_owned()],
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
                        "description": "Complete new content, written unchanged",
                    },
                },
            }),
            constrained_sampling: Some(ConstrainedSampling::prefer_schema()),
        };
        Self { spec, home, files }
    }
}

impl Tool for Write {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn touches(&self, arguments: &Value, cwd: &Path) -> Touches {
        let written = WrittenPath::new(path_argument(arguments), cwd, self.home.as_deref());
        Touches { writes: written.declared(), ..Touches::default() }
    }

    fn run<'a>(&'a self, arguments: Value, cx: ToolCx<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        // Outside the future, so that calls queue in the order they are made.
        let arguments = super::parse::<Arguments>(arguments).map(|arguments| {
            let written = WrittenPath::new(&arguments.path, cx.cwd, self.home.as_deref());
            (arguments, self.files.locks.register(written))
        });
        Box::pin(async move {
            let (Arguments { content, .. }, place) = arguments?;
            let (FoundPath { path, name: shown, .. }, guard) = tokio::select! {
                () = cx.cancel.cancelled() => return Err(ToolError::aborted()),
                waited = place.wait() => waited?,
            };
            super::check_cancelled(&cx.cancel)?;
            let files = self.files.clone();
            let what = || format!("writing {shown} (it may still complete)");
            let work = move || {
                let _guard = guard;
                let failed = |error| ToolError(format!("Could not write {}: {error}", path.display()));
                if let Some(folder) = path.parent() {
                    fs::create_dir_all(folder).map_err(|error| match file_above(&path) {
                        Some(file) => ToolError(format!(
                            "Could not write {}: {} is a file, not a directory",
                            path.display(),
                            file.display()
                        )),
                        None => failed(error),
                    })?;
                }
                // A pipe would wait for its other end.
                if fs::metadata(&path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir()) {
                    return Err(ToolError(format!("{} is not a regular file", path.display())));
                }
                let has_changed = files.has_changed(&path);
                editor::note_overwrite(files.editor(), &path);
                editor::write(files.editor(), &path, &content).map_err(failed)?;
                files.versions.note(&path, Version::of(content.as_bytes()));
                Ok(has_changed)
            };
            let has_changed = super::blocking(&cx.cancel, what, work).await?;
            let mut text = format!("Successfully wrote to {shown}");
            if has_changed {
                text.push_str(
                    "\n\nNote: the file had changed on disk since you last read or wrote it. Those \
                     changes were overwritten.",
                );
            }
            Ok(ToolOutput::text(text))
        })
    }
}

#[derive(Deserialize)]
struct Arguments {
    path: String,
    content: String,
}

/// The file among the parents of `path`, where a directory would have to be.
fn file_above(path: &Path) -> Option<&Path> {
    path.ancestors()
        .skip(1)
        .find(|parent| parent.symlink_metadata().is_ok())
        .filter(|parent| !parent.is_dir())
}
