//! Runs the commands the user types after `!`.
//!
//! Not a tool: no arguments to validate, no session variables, and the output is
//! sanitised (see [`super::plain_output`]). Reading, limits and the file for long output are the
//! same.

use std::path::{Path, PathBuf};

use tokio_util::sync::CancellationToken;

use crate::util::process::{End, Event};
use crate::util::text_decoder::TextDecoder;

use super::bash::{BashConfig, ShellError};
use super::output::Tail;
use super::plain_output::PlainOutput;

/// What a command of the user left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserBashOutcome {
    /// The end of the sanitised output.
    pub output: String,
    /// `None` if it was cancelled.
    pub exit_code: Option<i32>,
    /// Whether the user cancelled it.
    pub cancelled: bool,
    /// Whether the output was cut.
    pub truncated: bool,
    /// The file with the complete output, if `output` is only a part.
    pub full_output_path: Option<PathBuf>,
    /// How many bytes of the middle are missing in that file.
    pub n_left_out: u64,
}

/// Runs `line` in `cwd`, and passes every piece of sanitised output to `on_output`
/// as it arrives. In a piece, a carriage return means that the current line is written again from
/// its beginning; what it does not cover stays.
///
/// Cancelling kills the command and its descendants; output so far is kept.
///
/// # Errors
/// If the command cannot be started.
pub async fn run_user_command(
    config: &BashConfig,
    line: &str,
    cwd: &Path,
    cancel: &CancellationToken,
    mut on_output: impl FnMut(&str) + Send,
) -> Result<UserBashOutcome, ShellError> {
    let command = config.prepare(line, cwd, cancel).await?;
    let mut running = config.start(&command, cancel.clone())?;
    let mut tail = Tail::new(&config.temp_dir);
    let mut decoder = TextDecoder::default();
    let mut output = PlainOutput::default();
    let mut report = |text: &str| {
        if !text.is_empty() {
            on_output(text);
        }
    };
    let end = loop {
        match running.next().await {
            Event::Output(bytes) => {
                let pieces = output.push(&decoder.decode(&bytes));
                tail.push(pieces.settled.as_bytes());
                report(&pieces.live);
            }
            Event::Ended(end) => break end,
        }
    };
    let pieces = output.push(&decoder.finish());
    tail.push(pieces.settled.as_bytes());
    report(&pieces.live);
    tail.push(output.finish().as_bytes());
    tail.close();
    let truncation = tail.truncation();
    Ok(UserBashOutcome {
        output: truncation.content,
        exit_code: match end {
            End::Exited(code) => Some(code),
            End::Cancelled | End::TimedOut { .. } => None,
        },
        cancelled: end == End::Cancelled,
        truncated: truncation.truncated,
        full_output_path: tail.full_output_path().map(Path::to_owned),
        n_left_out: tail.n_left_out(),
    })
}
