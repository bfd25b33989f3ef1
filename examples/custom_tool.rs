//! A tool of your own: the model asks how many words a file has.
//!
//! `cargo run --example custom_tool`. A script plays the model, so that this needs no key.
//! With `.env(Env::process()).model("sonnet")` in place of `.provider(…)` a real one calls
//! the tool.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use pi::agent::{Tool, ToolCx, ToolError, ToolOutput, ToolSpec, Touches};
use pi::ai::{FakeAnswer, FakeProvider, Model};
use pi::session::SessionBuilder;
use serde_json::{Value, json};

struct CountWords(ToolSpec);

impl Tool for CountWords {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    // The session runs calls side by side unless one writes what another one reads.
    fn touches(&self, arguments: &Value, cwd: &Path) -> Touches {
        Touches::reads(cwd.join(arguments["path"].as_str().unwrap_or_default()))
    }

    // The arguments fit the schema. The model reads an error and can try something else.
    fn run<'a>(&'a self, arguments: Value, cx: ToolCx<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let path = cx.cwd.join(arguments["path"].as_str().unwrap_or_default());
            let text = tokio::fs::read_to_string(&path).await;
            let text = text.map_err(|error| ToolError::new(format!("cannot read the file: {error}")))?;
            Ok(ToolOutput::text(format!("{} words", text.split_whitespace().count())))
        })
    }
}

pub async fn run(project: &Path, out: &mut dyn Write) -> anyhow::Result<()> {
    std::fs::write(project.join("notes.md"), "Buy milk and bread.\n")?;
    let count_words = CountWords(ToolSpec::new(
        "count_words",
        "Counts the words of a file",
        json!({
            "type": "object",
            "properties": { "path": { "type": "string" } },
            "required": ["path"],
        }),
    ));
    let script = FakeProvider::new([
        FakeAnswer::new().tool_call("call_1", "count_words", json!({ "path": "notes.md" })),
        FakeAnswer::of_text("Your notes have four words."),
    ]);
    let model = Model { id: "script".into(), provider: "example".into(), ..Model::default() };

    let mut session = SessionBuilder::new(project, project.join("agent"))
        .tool(count_words)
        .provider(model, Arc::new(script))
        .start()
        .await?;
    let answer = session.prompt("How long are my notes?").await?;
    let n_calls = session.state().totals.n_tool_results;
    writeln!(out, "{} (after {n_calls} call of the tool)", answer.text())?;
    Ok(session.close().await?)
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    run(tempfile::tempdir()?.path(), &mut std::io::stdout()).await
}
