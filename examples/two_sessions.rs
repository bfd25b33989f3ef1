//! Two sessions side by side: they share keys, models and settings, and nothing else.
//!
//! `cargo run --example two_sessions`. Each works in its own directory, at the same time.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use pi::session::{OpenSession, Session, SessionBuilder};

pub async fn run(folder: &Path, out: &mut dyn Write) -> anyhow::Result<()> {
    let (here, there) = (folder.join("here"), folder.join("there"));
    std::fs::create_dir(&here)?;
    std::fs::create_dir(&there)?;

    let (services, problems) =
        SessionBuilder::new(folder, folder.join("agent")).model("demo/pi").services()?;
    for problem in problems {
        writeln!(out, "settings, models and keys: {problem}")?;
    }
    let services = Arc::new(services);
    let mut first = Session::open(&services, &here, OpenSession::New).await?;
    let mut second = Session::open(&services, &there, OpenSession::New).await?;

    let (one, two) = tokio::join!(
        first.prompt("create poem.txt with roses are red"),
        second.prompt("create poem.txt with violets are blue"),
    );
    writeln!(out, "first:  {}", one?.text())?;
    writeln!(out, "second: {}", two?.text())?;
    for path in [&here, &there] {
        writeln!(out, "{}", std::fs::read_to_string(path.join("poem.txt"))?.trim())?;
    }
    first.close().await?;
    second.close().await?;
    Ok(())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    run(tempfile::tempdir()?.path(), &mut std::io::stdout()).await
}
