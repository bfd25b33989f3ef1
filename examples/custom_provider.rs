//! A provider of your own: a model that runs in your program.
//!
//! `cargo run --example custom_provider`. This one repeats what it hears, word by word; put
//! a local model or a service with its own protocol in its place.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use futures_util::stream;
use pi::ai::{EventStream, Message, Model, Provider, Request, text_answer};
use pi::session::SessionBuilder;
use tokio_util::sync::CancellationToken;

struct Parrot;

impl Provider for Parrot {
    // `request` has the whole conversation, the tools and the options. A failure is an `Err`
    // among the pieces: the session shows it, and repeats the request if that may help.
    fn stream(&self, request: Arc<Request>, cancel: CancellationToken) -> EventStream {
        let heard = request.messages.iter().rev().find_map(|message| match &**message {
            Message::User(message) => Some(message.content.text()),
            _ => None,
        });
        let said = format!("You said: {}", heard.unwrap_or_default());
        let words: Vec<Result<String, String>> =
            said.split_inclusive(' ').map(|word| Ok(word.to_owned())).collect();
        text_answer(&request, stream::iter(words), cancel)
    }
}

pub async fn run(project: &Path, out: &mut dyn Write) -> anyhow::Result<()> {
    let model = Model {
        id: "parrot".into(),
        provider: "zoo".into(),
        context_window: 8_192, // tokens; pi compacts the conversation before it is full
        ..Model::default()
    };
    let mut session =
        SessionBuilder::new(project, project.join("agent")).provider(model, Arc::new(Parrot)).start().await?;
    for prompt in ["Hello!", "Who is a pretty bird?"] {
        let answer = session.prompt(prompt).await?;
        writeln!(out, "{}: {}", answer.model, answer.text())?;
    }
    Ok(session.close().await?)
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    run(tempfile::tempdir()?.path(), &mut std::io::stdout()).await
}
