//! Asks the terminal what it supports, outside a running interface.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::Duration;

use crossterm::terminal;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The questions. The last one is answered by every terminal, and in order, so that its answer
/// ends the wait.
///
/// Version (XTVERSION), keyboard flags (kitty), synchronised output (DECRQM 2026), device
/// attributes (DA1).
const QUESTIONS: &[u8] = b"\x1b[>0q\x1b[?u\x1b[?2026$p\x1b[c";

/// What a terminal said about itself. Fields are empty if it does not know the question.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TerminalAnswers {
    /// Name and version.
    pub version: Option<String>,
    /// Whether it reports keys unambiguously if asked to (kitty keyboard protocol).
    pub has_kitty_keys: bool,
    /// Whether it shows a frame at once.
    pub has_synchronized_output: bool,
    /// Whether it shows images in the sixel format.
    pub has_sixel: bool,
}

/// Asks the terminal and waits for its answers, at most for `limit`. `None` if it answers
/// nothing, or if standard input or output is no terminal. Blocks; keys typed meanwhile are lost.
pub fn ask_terminal(limit: Duration) -> Option<TerminalAnswers> {
    if !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
        return None;
    }
    terminal::enable_raw_mode().ok()?;
    let answers = ask(limit);
    terminal::disable_raw_mode().ok();
    let answers = answers.ok()?;
    is_complete(&answers).then(|| read(&answers))
}

fn ask(limit: Duration) -> io::Result<Vec<u8>> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(QUESTIONS)?;
    stdout.flush()?;
    // Not through the buffer of the standard library, which polling does not see.
    let stdin = rustix::stdio::stdin();
    let mut answers = Vec::new();
    let limit = Timespec { tv_sec: 0, tv_nsec: i64::from(limit.subsec_nanos()) };
    while !is_complete(&answers) {
        let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
        if poll(&mut fds, Some(&limit))? == 0 {
            break;
        }
        let mut bytes = [0; 256];
        match rustix::io::read(stdin, &mut bytes)? {
            0 => break,
            n => answers.extend_from_slice(&bytes[..n]),
        }
    }
    Ok(answers)
}

/// Whether the device attributes have arrived: `ESC [ ? … c`.
fn is_complete(answers: &[u8]) -> bool {
    sequences(answers).iter().any(|sequence| sequence.starts_with("[?") && sequence.ends_with('c'))
}

fn read(answers: &[u8]) -> TerminalAnswers {
    let mut found = TerminalAnswers::default();
    for sequence in sequences(answers) {
        if let Some(version) = sequence.strip_prefix("P>|") {
            found.version = Some(version.trim_end_matches(['\x1b', '\\']).to_owned());
        } else if let Some(body) = sequence.strip_prefix("[?") {
            // 1 and 2: the mode is known, and on or off.
            found.has_synchronized_output |= matches!(body, "2026;1$y" | "2026;2$y");
            found.has_kitty_keys |= body.strip_suffix('u').is_some_and(|flags| flags.parse::<u8>().is_ok());
            let attributes = body.strip_suffix('c').unwrap_or_default();
            found.has_sixel |= attributes.split(';').skip(1).any(|attribute| attribute == "4");
        }
    }
    found
}

/// The sequences in what arrived, without their first escape character.
fn sequences(answers: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(answers);
    // A string ends with `ESC \`, which is no sequence of its own.
    let parts = text.split('\x1b').skip(1).filter(|part| *part != "\\");
    parts.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_terminals_are_understood() {
        let check = |answers: &str, expected: Option<(Option<&str>, bool, bool, bool)>| {
            let found = is_complete(answers.as_bytes()).then(|| read(answers.as_bytes()));
            let expected = expected.map(|(version, kitty, synchronized, sixel)| TerminalAnswers {
                version: version.map(str::to_owned),
                has_kitty_keys: kitty,
                has_synchronized_output: synchronized,
                has_sixel: sixel,
            });
            assert_eq!(found, expected, "{answers:?}");
        };
        check(
            "\x1bP>|kitty(0.40.1)\x1b\\\x1b[?0u\x1b[?2026;2$y\x1b[?62;c",
            Some((Some("kitty(0.40.1)"), true, true, false)),
        );
        check("\x1bP>|tmux 3.5\x1b\\\x1b[?1;2;4c", Some((Some("tmux 3.5"), false, false, true)));
        check("\x1b[?2026;0$y\x1b[?6c", Some((None, false, false, false)));
        check("\x1b[?64;1;44c", Some((None, false, false, false)));
        check("", None);
        check("\x1b[?1u", None);
        check("ab\x1b[A", None);
    }
}
