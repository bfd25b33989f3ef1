//! Print mode: prints the last answer, and nothing else, on standard output.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use crate::agent::AgentEvent;
use crate::ai::{AssistantMessage, Message, StopReason, failure_text, length_text};
use crate::session::{
    self, NoticeLevel, PromptDraft, Reply, SessionCommand, SessionError, SessionEvent, SessionEvents,
    SessionHandle, SessionUpdate, WhenBusy, no_answer_text,
};
use crate::util::process;

use super::crash_notice::caught;
use super::output::{write_err, write_out};
use super::signals;
use super::slash;
use super::{Prompt, exit};

/// Maximum time for the session to end.
pub(super) const SHUTDOWN_LIMIT: Duration = Duration::from_secs(2);
/// What the user reads if it has not ended then.
pub(super) const SILENT_SESSION: &str =
    "pi: the session does not respond, perhaps because its disk does not; what came last may not be in it";

/// Sends each prompt and waits until the session has settled; then prints the text of the
/// last answer, and writes it to `last_message`. `exit` has the exit codes.
///
/// The first termination signal kills commands and saves partial results, the second one
/// ends the process.
pub async fn print(
    handle: &SessionHandle,
    mut events: SessionEvents,
    prompts: Vec<Prompt>,
    problems: &[String],
    last_message: Option<&Path>,
) -> ExitCode {
    let signalled = signals::first_signal();
    for problem in problems {
        write_err(&format!("pi: {problem}"));
    }
    let code = tokio::select! {
        code = caught(say_all(handle, &mut events, prompts)) => code,
        code = signalled => {
            process::kill_all();
            code
        }
    };
    let code = save_last_message(handle, last_message, code).await;
    shut_down(handle).await;
    code
}

/// Writes the text of the last answer to `file`; returns `code`, or a failure if that is
/// impossible.
pub(super) async fn save_last_message(
    handle: &SessionHandle,
    file: Option<&Path>,
    code: ExitCode,
) -> ExitCode {
    let Some(file) = file else { return code };
    // A session that does not respond has nothing to tell.
    let reading = tokio::time::timeout(SHUTDOWN_LIMIT, handle.request(SessionCommand::ReadContext)).await;
    let Ok(Ok(Reply::Context(branch))) = reading else { return code };
    let messages = session::messages(&branch);
    let last = messages.iter().rev().find_map(|message| match &**message {
        Message::Assistant(answer) => Some(answer.texts().collect::<Vec<_>>().join("\n")),
        _ => None,
    });
    match std::fs::write(file, last.unwrap_or_default()) {
        Ok(()) => code,
        Err(error) => {
            write_err(&format!("pi: cannot write the last answer to {}: {error}", file.display()));
            ExitCode::from(exit::FAILED)
        }
    }
}

/// Ends the session, and prints what could not be saved.
pub(super) async fn shut_down(handle: &SessionHandle) {
    // Ending takes longer only if the disk does not respond.
    let ending = handle.request(SessionCommand::Shutdown);
    let ended = tokio::time::timeout(SHUTDOWN_LIMIT, ending).await;
    match ended {
        Err(_) => write_err(SILENT_SESSION),
        Ok(Err(error @ SessionError::Refused(_))) => write_err(&format!("pi: {error}")),
        Ok(_) => {}
    }
}

async fn say_all(handle: &SessionHandle, events: &mut SessionEvents, prompts: Vec<Prompt>) -> ExitCode {
    let mut last = None;
    // Of the first prompt that failed.
    let mut failed = None;
    let n_prompts = prompts.len();
    keep_task(handle).await;
    for (at, Prompt { text, images }) in prompts.into_iter().enumerate() {
        if let Some(problem) = slash::misspelt_template(&text, &handle.state().templates) {
            tell_waiting(events);
            write_err(&format!("pi: {problem}"));
            return ExitCode::from(exit::REFUSED);
        }
        let prompt = PromptDraft { text, images, ..PromptDraft::default() };
        let command = SessionCommand::Prompt { prompt, when_busy: WhenBusy::FollowUp };
        if let Err(error) = handle.request(command).await {
            tell_waiting(events);
            write_err(&format!("pi: {error}"));
            return exit::rejected(&error);
        }
        let mut answer = None;
        if !settled(events, &mut answer).await {
            return ExitCode::from(1);
        }
        if handle.state().stopped_by_limit {
            if let Some(answer) = answer.or(last) {
                report(&answer);
            }
            return ExitCode::from(exit::LIMIT);
        }
        if let Some(answer) = answer.as_ref().filter(|_| at + 1 < n_prompts) {
            failed = failed.or_else(|| report_problem(answer));
        }
        last = answer.or(last);
    }
    let code = match last {
        Some(message) => report(&message),
        None => Some(exit::FAILED),
    };
    failed.or(code).map_or(ExitCode::SUCCESS, ExitCode::from)
}

/// Keeps the first prompt of a run that nobody watches through every compaction.
pub(super) async fn keep_task(handle: &SessionHandle) {
    // A session that has ended is reported at the prompt.
    drop(handle.request(SessionCommand::KeepNextPrompt).await);
}

/// Waits until the session has settled. `false` if it ended instead.
async fn settled(events: &mut SessionEvents, last: &mut Option<AssistantMessage>) -> bool {
    let mut said = None;
    while let Some(SessionUpdate { event, .. }) = events.recv().await {
        match event {
            SessionEvent::Agent(AgentEvent::MessageEnd(message)) => {
                if let Message::Assistant(answer) = &*message {
                    *last = Some(AssistantMessage::clone(answer));
                }
            }
            SessionEvent::RetryScheduled { attempt, max_attempts, delay, error } => {
                let seconds = delay.as_secs_f64();
                let error = last.as_ref().and_then(failure_text).unwrap_or(error);
                let attempt = format!("retrying in {seconds:.0} s ({attempt} of {max_attempts})");
                let is_repeated = said.as_ref() == Some(&error);
                write_err(&if is_repeated {
                    format!("pi: {attempt}")
                } else {
                    format!("pi: {error}; {attempt}")
                });
                said = Some(error);
            }
            SessionEvent::SummaryRetryScheduled { attempt, max_attempts, delay, error } => {
                let seconds = delay.as_secs_f64();
                write_err(&format!(
                    "pi: cannot write the summary: {error}; retrying in {seconds:.0} s ({attempt} of {max_attempts})"
                ));
            }
            SessionEvent::Notice { level, text } => tell(level, &text),
            SessionEvent::Settled { .. } => return true,
            SessionEvent::Ended { reason } => {
                write_err(&format!("pi: the session stopped: {reason}"));
                return false;
            }
            SessionEvent::Opened(_)
            | SessionEvent::Agent(_)
            | SessionEvent::QueueChanged
            | SessionEvent::QueueReturned(_)
            | SessionEvent::PromptReturned { .. }
            | SessionEvent::SettingsChanged { .. }
            | SessionEvent::ProjectChanged
            | SessionEvent::Question(_)
            | SessionEvent::QuestionClosed { .. }
            | SessionEvent::RetryEnded { .. }
            | SessionEvent::CompactionStarted { .. }
            | SessionEvent::CompactionEnded { .. }
            | SessionEvent::SummaryDrafted(_)
            | SessionEvent::SummaryDecided { .. }
            | SessionEvent::SummaryRetryStarted { .. }
            | SessionEvent::SummaryRetriesFinished
            | SessionEvent::BranchSummaryStarted
            | SessionEvent::HandoffStarted
            | SessionEvent::HandoffEnded { .. }
            | SessionEvent::BranchSummaryEnded { .. }
            | SessionEvent::Navigated(_)
            | SessionEvent::BashStarted { .. }
            | SessionEvent::BashOutput { .. }
            | SessionEvent::BashEnded { .. }
            | SessionEvent::EntryAppended(_)
            | SessionEvent::SelectionChanged => {}
        }
    }
    write_err("pi: the session ended unexpectedly");
    false
}

fn tell(level: NoticeLevel, text: &str) {
    match level {
        NoticeLevel::Warning | NoticeLevel::Error => write_err(&format!("pi: {text}")),
        NoticeLevel::Info => {}
    }
}

/// Prints notices that arrived before a prompt was rejected.
fn tell_waiting(events: &mut SessionEvents) {
    while let Some(update) = events.try_recv() {
        if let SessionEvent::Notice { level, text } = update.event {
            tell(level, &text);
        }
    }
}

/// Prints an answer, and why it is none; returns the exit code if it failed. A server may end an
/// answer with a reason that pi does not know: its text is printed too.
fn report(answer: &AssistantMessage) -> Option<u8> {
    let is_ended = answer.raw_stop_reason.is_some() && exit::failed(answer) == exit::FAILED;
    if !answer.is_failed() || is_ended {
        let lines = answer.texts().map(|part| format!("{part}\n"));
        write_out(&lines.collect::<String>());
    }
    report_problem(answer)
}

/// Prints why an answer failed; returns the exit code if it did.
fn report_problem(answer: &AssistantMessage) -> Option<u8> {
    match answer.stop_reason {
        StopReason::Error | StopReason::Aborted => {
            let aborted = || answer.error_message.clone().unwrap_or_default();
            write_err(&format!("pi: {}", failure_text(answer).unwrap_or_else(aborted)));
            return Some(exit::failed(answer));
        }
        StopReason::Stop
        | StopReason::Length
        | StopReason::ToolUse
        | StopReason::Deferred
        | StopReason::Pending => {}
    }
    if let Some(code) = exit::useless(answer) {
        // The session has reported calls that were cut off.
        if let Some(text) = no_answer_text(answer) {
            write_err(&format!("pi: {text}"));
        }
        return Some(code);
    }
    if answer.stop_reason == StopReason::Length {
        write_err(&format!("pi: {}", lower_first(length_text(answer))));
        return Some(exit::FAILED);
    }
    // The session has reported why it did not continue after calls.
    (answer.stop_reason == StopReason::ToolUse).then_some(exit::FAILED)
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_lowercase().chain(chars).collect()).unwrap_or_default()
}
