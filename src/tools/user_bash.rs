//! Runs the commands the user types after `!`.
//!
//! Not a tool: no arguments to validate, no session variables, and the output is
//! sanitised. Reading, limits and the file for long output are the same.

use std::path::{Path, PathBuf};

use tokio_util::sync::CancellationToken;

use crate::util::escapes::{Escapes, Step};
use crate::util::process::{End, Event};

use super::bash::{BashConfig, ShellError};
use super::output::{Decoder, Tail};

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
}

/// Runs `line` in `cwd`, and passes every piece of sanitised output to `on_output`
/// as it arrives.
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
    let mut decoder = Decoder::default();
    let mut sanitiser = Sanitiser::default();
    let mut add = |text: &str, tail: &mut Tail| {
        let safe = sanitiser.sanitise(text);
        if !safe.is_empty() {
            tail.push(safe.as_bytes());
            on_output(&safe);
        }
    };
    let end = loop {
        match running.next().await {
            Event::Output(bytes) => add(&decoder.decode(&bytes), &mut tail),
            Event::Ended(end) => break end,
        }
    };
    add(&decoder.finish(), &mut tail);
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
    })
}

/// Removes what would act on a terminal: escape sequences and control characters other
/// than tab and line feed. Sequences may be split between calls.
#[derive(Debug, Default)]
struct Sanitiser {
    escapes: Escapes,
}

impl Sanitiser {
    fn sanitise(&mut self, text: &str) -> String {
        text.chars().filter(|c| self.escapes.step(*c) == Step::Text && is_harmless(*c)).collect()
    }
}

fn is_harmless(c: char) -> bool {
    match c {
        '\t' | '\n' => true,
        '\u{fff9}'..='\u{fffb}' => false,
        c => !c.is_control(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Also checks the text split at every character.
    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(Sanitiser::default().sanitise(text), expected);
        for (cut, _) in text.char_indices() {
            let mut sanitiser = Sanitiser::default();
            let (left, right) = text.split_at(cut);
            assert_eq!(sanitiser.sanitise(left) + &sanitiser.sanitise(right), expected, "cut at {cut}");
        }
    }

    #[test]
    fn escape_sequences_are_removed() {
        check("\x1b[1;31mred\x1b[0m ü", "red ü");
        check("\x1b]0;title\x07a\x1b]8;;http://x\x1b\\b\x1b]8;;\x1b\\", "ab");
        check("\x1bPq#0\x1b\\a\x1b_G\x1b\\b", "ab");
        check("\x1b(Ba\x1b=b\x1bMc\x1b7", "abc");
        check("\u{9b}31ma\u{9d}0;t\u{9c}b", "ab");
    }

    #[test]
    fn control_characters_are_removed() {
        check("a\rb\x08c\x00\td\ne\x7f\u{85}\u{fff9}f", "abc\td\nef");
    }

    #[test]
    fn a_broken_sequence_swallows_no_text() {
        check("\x1b[31\nnext", "\nnext");
        check("\x1b\nnext", "\nnext");
        check("\x1b[3\x1b[1mx", "x");
        check("\x1b]0;title\x18x", "x");
    }

    #[test]
    fn an_endless_control_string_ends() {
        let text = format!("\x1b]{}", "x".repeat((1 << 20) + 10));
        assert!(!Sanitiser::default().sanitise(&text).is_empty());
    }
}
