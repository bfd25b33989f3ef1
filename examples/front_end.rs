//! A front end of your own: shows a session as it happens, and answers its questions.
//!
//! `cargo run --example front_end`. The demo model creates a file and reads it back. Before
//! each tool call a gate decides: it lets the model read, and asks about everything else.

use std::io::Write;
use std::path::Path;

use pi::agent::AgentEvent;
use pi::ai::{BlockKind, StreamEvent};
use pi::session::{
    PendingCall, Session, SessionBuilder, SessionCommand, SessionEvent, SessionUpdate, ToolGate, Verdict,
};

struct AskBeforeChanges;

impl ToolGate for AskBeforeChanges {
    fn check(&self, call: &PendingCall<'_>) -> Verdict {
        let touches = call.touches;
        if touches.writes.is_empty() && touches.runs.is_none() && !touches.undeclared {
            return Verdict::Allow;
        }
        Verdict::Ask { text: format!("Run {}?", call.call.name) }
    }
}

/// Shows events until the session is idle.
async fn show(session: &mut Session, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut is_text = false;
    while let Some(SessionUpdate { event, state }) = session.next().await {
        match event {
            // Blocks are texts, thinking, and the arguments of tool calls as they are written.
            SessionEvent::Agent(AgentEvent::MessageUpdate(StreamEvent::BlockStart { kind, .. })) => {
                is_text = kind == BlockKind::Text;
            }
            SessionEvent::Agent(AgentEvent::MessageUpdate(StreamEvent::Delta { text, .. })) if is_text => {
                write!(out, "{text}")?;
            }
            SessionEvent::Agent(AgentEvent::ToolStart { call }) => {
                writeln!(out, "\n[{} {}]", call.name, call.arguments)?;
            }
            SessionEvent::Question(question) => {
                // Here a user would choose one of `question.options`; this one says yes.
                writeln!(out, "{} {}", question.text, question.options[0])?;
                session.handle().send(SessionCommand::Answer { id: question.id, option: 0 });
            }
            SessionEvent::Notice { text, .. } => writeln!(out, "\npi: {text}")?,
            SessionEvent::Settled { .. } => {
                writeln!(out, "\n({} tool calls so far)", state.totals.n_tool_results)?;
                break;
            }
            _ => {}
        }
    }
    Ok(())
}

pub async fn run(project: &Path, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut session = SessionBuilder::new(project, project.join("agent"))
        .model("demo/pi")
        .gate(AskBeforeChanges)
        .answers_questions()
        .start()
        .await?;
    for prompt in ["create hello.txt with hello world", "read hello.txt"] {
        writeln!(out, "> {prompt}")?;
        session.send(prompt, Vec::new()).await?;
        show(&mut session, out).await?;
    }
    Ok(session.close().await?)
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    run(tempfile::tempdir()?.path(), &mut std::io::stdout()).await
}
