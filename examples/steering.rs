//! Steering from code: a message reaches the agent while it works.
//!
//! `cargo run --example steering`. A script plays the model; it pauses in the middle of its
//! answer, so that the message always arrives at the same place.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use pi::agent::AgentEvent;
use pi::ai::{FakeAnswer, FakeProvider, Message, Model, StreamEvent, TestBarrier};
use pi::session::{SessionBuilder, SessionEvent};

pub async fn run(project: &Path, out: &mut dyn Write) -> anyhow::Result<()> {
    let pause = TestBarrier::new();
    let script = FakeProvider::new([
        FakeAnswer::new().text_pieces(&["I start with ", "a class for each shape."], Some(&pause)),
        FakeAnswer::of_text("Then an enum has all shapes."),
    ]);
    let model = Model { id: "script".into(), provider: "example".into(), ..Model::default() };
    let mut session = SessionBuilder::new(project, project.join("agent"))
        .provider(model, Arc::new(script.clone()))
        .start()
        .await?;

    session.send("Write a program that draws shapes.", Vec::new()).await?;
    while let Some(update) = session.next().await {
        if let SessionEvent::Agent(AgentEvent::MessageUpdate(StreamEvent::Delta { .. })) = update.event {
            break; // the answer has begun
        }
    }
    // A message that begins with a word such as "stop" interrupts the answer at once; so does
    // `SessionCommand::Abort`, without a message.
    session.steer("In Rust, please.").await?;
    pause.open();
    session.settled().await?;

    // What the model saw with its last request, and what it answered.
    for message in script.requests().last().iter().flat_map(|request| &request.messages) {
        match &**message {
            Message::User(message) => writeln!(out, "user:  {}", message.content.text())?,
            Message::Assistant(answer) => writeln!(out, "model: {}", answer.text())?,
            _ => {}
        }
    }
    Ok(session.close().await?)
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    run(tempfile::tempdir()?.path(), &mut std::io::stdout()).await
}
