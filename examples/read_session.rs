//! Reading a session: prompts, steps, tool calls and tokens of a file.
//!
//! `cargo run --example read_session -- FILE` reads any session of pi, without opening or
//! changing it; without FILE it makes one first.

use std::io::Write;
use std::path::Path;

use pi::session::{SessionBuilder, read_trace, read_usage};

fn show(path: &Path, out: &mut dyn Write) -> anyhow::Result<()> {
    let trace = read_trace(path)?;
    for message in &trace.messages {
        writeln!(out, "> {}", message.text)?;
        for step in &message.steps {
            for call in &step.calls {
                let outcome = if call.succeeded() { "ok" } else { "failed" };
                writeln!(out, "  step {}: {} {} ({outcome})", step.iteration, call.name, call.args)?;
            }
            if let Some(line) = step.text.lines().next() {
                writeln!(out, "  step {}: {line}", step.iteration)?;
            }
        }
    }
    for tool in trace.tool_stats() {
        writeln!(out, "{}: {} calls, {} failed", tool.name, tool.calls, tool.failures)?;
    }
    let usage = read_usage(path)?;
    let n_tokens: u64 = usage.iter().map(|record| record.usage.output).sum();
    writeln!(out, "{} answers, {n_tokens} output tokens", usage.len())?;
    Ok(())
}

pub async fn run(project: &Path, out: &mut dyn Write) -> anyhow::Result<()> {
    std::fs::write(project.join("shapes.txt"), "circle\nsquare\n")?;
    let mut session = SessionBuilder::new(project, project.join("agent"))
        .model("demo/pi")
        .save_in(project.join("sessions"))
        .start()
        .await?;
    session.prompt("replace square with triangle in shapes.txt").await?;
    session.prompt("read missing.txt").await?;
    let path = session.state().path.clone().unwrap_or_default();
    session.close().await?;
    show(&path, out)
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    match std::env::args_os().nth(1) {
        Some(path) => show(Path::new(&path), &mut std::io::stdout()),
        None => run(tempfile::tempdir()?.path(), &mut std::io::stdout()).await,
    }
}
