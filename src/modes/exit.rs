//! TABLE: the exit codes. `docs/cli.md` is generated from it.

use std::fmt::Display;
use std::io;
use std::process::ExitCode;

use crate::ai::{AssistantMessage, Failure, FailureClass};
use crate::session::{Refusal, SessionError, has_cut_call, no_answer_text};

use super::output::write_err;

/// An error, a failed answer, or a prompt that was not accepted.
pub(super) const FAILED: u8 = 1;
/// The command line is invalid.
pub(super) const USAGE: u8 = 2;
/// A limit of cost or of answers ended the run.
pub(super) const LIMIT: u8 = 3;
/// The session did not accept the prompt, or the model declined to answer it.
pub(super) const REFUSED: u8 = 4;
/// The model gave no answer, or could not finish a call.
pub(super) const NO_ANSWER: u8 = 5;
/// As after SIGPIPE: the reader of standard output is gone.
pub(super) const READER_GONE: u8 = 141;

/// Every exit code, and what it means.
pub const EXIT_CODES: &[(u8, &str)] = &[
    (0, "success; in JSON mode also if an answer failed, which its events report"),
    (
        FAILED,
        "an error: no key, an unknown model, an unreadable session, output that cannot be written, an internal error that ended pi, or, in print mode, a failed or truncated answer",
    ),
    (
        USAGE,
        "an invalid command line: an unknown flag, command, tool or setting, a wrong value, or arguments that do not go together",
    ),
    (LIMIT, "a limit ended the run: `--max-turns`, `--max-cost` and the other limits of cost"),
    (
        REFUSED,
        "refused: pi did not accept the prompt, such as one with an unknown skill or for a session that is open elsewhere, or, in print mode, the model declined to answer",
    ),
    (
        NO_ANSWER,
        "no answer: in print and JSON mode, the model answered with nothing or only with thinking, also when it was asked again, or it could not finish a call within its output limit",
    ),
    (129, "ended by SIGHUP, after partial results were saved"),
    (130, "ended by SIGINT (ctrl+c)"),
    (131, "ended by SIGQUIT"),
    (READER_GONE, "in JSON and RPC mode: the reader of standard output is gone"),
    (
        143,
        "ended by SIGTERM; after SIGUSR1, SIGUSR2, SIGALRM and SIGXCPU, which end pi alike, 128 plus their number",
    ),
];

/// An invalid command line that the parser of flags accepted: the program ends with its exit code.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(pub String);

impl UsageError {
    /// An error with the text of `problem`.
    pub fn new(problem: impl Display) -> Self {
        Self(problem.to_string())
    }
}

/// The code after the program ended with `error`.
pub(super) fn after_error(error: &anyhow::Error) -> ExitCode {
    ExitCode::from(if error.is::<UsageError>() { USAGE } else { FAILED })
}

/// The code after a panic ended the program.
pub fn after_crash() -> ExitCode {
    ExitCode::from(FAILED)
}

/// The code after a prompt was rejected.
pub(super) fn rejected(error: &SessionError) -> ExitCode {
    match error {
        SessionError::Refused(Refusal::OverBudget { .. }) => ExitCode::from(LIMIT),
        // As the original ends without a usable model.
        SessionError::Refused(Refusal::Credential(_) | Refusal::Model(_)) | SessionError::Ended => {
            ExitCode::from(FAILED)
        }
        SessionError::Refused(_) => ExitCode::from(REFUSED),
    }
}

/// The code if standard output failed, after `code` if it did not. Reports what the reader of the
/// output cannot know.
pub(super) fn unless_output_failed(failure: Option<&io::Error>, code: ExitCode) -> ExitCode {
    match failure {
        None => code,
        Some(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::from(READER_GONE),
        Some(error) => {
            write_err(&format!("pi: cannot write to standard output: {error}"));
            ExitCode::from(FAILED)
        }
    }
}

/// The code after an answer that did not fail, if it is of no use.
pub(super) fn useless(answer: &AssistantMessage) -> Option<u8> {
    (no_answer_text(answer).is_some() || has_cut_call(answer)).then_some(NO_ANSWER)
}

/// The code after an answer that failed or was cancelled.
pub(super) fn failed(answer: &AssistantMessage) -> u8 {
    let class = Failure::of_answer(answer).map(|failure| failure.class);
    if class == Some(FailureClass::Refused) { REFUSED } else { FAILED }
}
