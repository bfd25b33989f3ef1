//! JSON mode: the header of the session and all its events on standard output, a line each.

use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use crate::agent::AgentEvent;
use crate::ai::{AssistantMessage, Message};
use crate::session::{
    NoticeLevel, PromptDraft, SessionCommand, SessionEvent, SessionEvents, SessionHandle, SessionUpdate,
    WhenBusy, no_answer_text,
};
use crate::util::process;

use super::crash_notice::caught;
use super::output::{header_line, write_err};
use super::print::{keep_task, save_last_message, shut_down};
use super::wire::{EventStyle, LineOutput, Lines, Outgoing};
use super::{Prompt, exit, signals, slash};

/// Writes the header of the session, sends each prompt and writes events until the session has
/// settled. Exit code 1 if a prompt was rejected or the session ended; a failed answer is an
/// event, and no failure of this mode, unless the model gave none.
///
/// The first termination signal kills commands and saves partial results, the second one
/// ends the process.
pub async fn json(
    handle: &SessionHandle,
    mut events: SessionEvents,
    prompts: Vec<Prompt>,
    problems: &[String],
    slim_events: bool,
    last_message: Option<&Path>,
) -> ExitCode {
    let signalled = signals::first_signal();
    for problem in problems {
        write_err(&format!("pi: {problem}"));
    }
    let style = if slim_events { EventStyle::Slim } else { EventStyle::Whole };
    let output = match LineOutput::start(Lines::new(style), io::stdout()) {
        Ok(output) => output,
        Err(error) => {
            write_err(&format!("pi: cannot write events: {error}"));
            return ExitCode::from(1);
        }
    };
    let (code, is_signalled) = tokio::select! {
        code = caught(say_all(handle, &mut events, prompts, &output)) => (code, false),
        () = output.broken() => (ExitCode::SUCCESS, false),
        code = signalled => {
            process::kill_all();
            (code, true)
        }
    };
    let code = save_last_message(handle, last_message, code).await;
    shut_down(handle).await;
    while let Some(update) = events.try_recv() {
        forward(update, &output);
    }
    // After a signal nobody may be reading; the signal's own limit ends the process.
    output.finish(is_signalled.then_some(super::print::SHUTDOWN_LIMIT)).await;
    if is_signalled { code } else { exit::unless_output_failed(output.failure().as_ref(), code) }
}

async fn say_all(
    handle: &SessionHandle,
    events: &mut SessionEvents,
    prompts: Vec<Prompt>,
    output: &LineOutput,
) -> ExitCode {
    if !opened(events, output).await {
        return ExitCode::from(1);
    }
    let mut useless = None;
    keep_task(handle).await;
    for Prompt { text, images } in prompts {
        if let Some(problem) = slash::misspelt_template(&text, &handle.state().templates) {
            while let Some(update) = events.try_recv() {
                forward(update, output);
            }
            write_err(&format!("pi: {problem}"));
            return ExitCode::from(exit::REFUSED);
        }
        let prompt = PromptDraft { text, images, ..PromptDraft::default() };
        let command = SessionCommand::Prompt { prompt, when_busy: WhenBusy::FollowUp };
        if let Err(error) = handle.request(command).await {
            while let Some(update) = events.try_recv() {
                forward(update, output);
            }
            write_err(&format!("pi: {error}"));
            return exit::rejected(&error);
        }
        let mut last = None;
        if !settled(events, output, &mut last).await {
            return ExitCode::from(1);
        }
        if handle.state().stopped_by_limit {
            return ExitCode::from(exit::LIMIT);
        }
        if let Some(Message::Assistant(answer)) = last.as_deref() {
            useless = useless.or_else(|| report_useless(answer));
        }
    }
    useless.map_or(ExitCode::SUCCESS, ExitCode::from)
}

/// Prints why an answer is none; returns the exit code if it is none.
fn report_useless(answer: &AssistantMessage) -> Option<u8> {
    if let Some(text) = no_answer_text(answer) {
        write_err(&format!("pi: {text}"));
    }
    exit::useless(answer)
}

/// Waits for the session, and writes its header. `false` if it cannot be opened.
async fn opened(events: &mut SessionEvents, output: &LineOutput) -> bool {
    while let Some(update) = events.recv().await {
        let is_open = matches!(&update.event, SessionEvent::Opened(opened) if opened.n_earlier.is_some());
        if is_open {
            output.send(Outgoing::Line(header_line(&update.state.header)));
        }
        if !forward(update, output) {
            return false;
        }
        if is_open {
            return true;
        }
    }
    write_err("pi: the session ended unexpectedly");
    false
}

/// Writes events until the session has settled; puts the last answer into `last`. `false` if it ended
/// instead.
async fn settled(events: &mut SessionEvents, output: &LineOutput, last: &mut Option<Arc<Message>>) -> bool {
    while let Some(update) = events.recv().await {
        if let SessionEvent::Agent(AgentEvent::MessageEnd(message)) = &update.event
            && matches!(**message, Message::Assistant(_))
        {
            *last = Some(Arc::clone(message));
        }
        let is_settled = matches!(update.event, SessionEvent::Settled { .. });
        if !forward(update, output) {
            return false;
        }
        if is_settled {
            return true;
        }
    }
    write_err("pi: the session ended unexpectedly");
    false
}

/// Writes an event. `false` if it says that the session ended.
fn forward(update: SessionUpdate, output: &LineOutput) -> bool {
    match &update.event {
        SessionEvent::Notice { level: NoticeLevel::Warning | NoticeLevel::Error, text } => {
            write_err(&format!("pi: {text}"));
        }
        SessionEvent::Ended { reason } => {
            write_err(&format!("pi: the session stopped: {reason}"));
            return false;
        }
        _ => {}
    }
    output.send(Outgoing::Update(update));
    true
}
