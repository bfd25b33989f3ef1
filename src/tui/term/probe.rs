//! Asks the terminal what it supports, outside a running interface.

#[cfg(unix)]
use std::io::Write as _;
use std::io::{self, IsTerminal as _};
use std::time::Duration;

use crossterm::terminal;
#[cfg(unix)]
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::answers::{self, Questions, TerminalAnswers};

/// A question that the interface need not ask: synchronised output.
#[cfg(unix)]
const MORE_QUESTIONS: &str = "\x1b[?2026$p";

/// What came of asking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TerminalReply {
    Answers(TerminalAnswers),
    /// It did not answer in time.
    Silence,
    /// Standard input or output is no terminal that answers could be read from.
    NotAsked,
}

/// Asks the terminal and waits for its answers, at most for `limit`. Blocks; keys typed meanwhile
/// are lost.
pub fn ask_terminal(questions: Questions, limit: Duration) -> TerminalReply {
    if !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
        return TerminalReply::NotAsked;
    }
    if terminal::enable_raw_mode().is_err() {
        return TerminalReply::NotAsked;
    }
    let answers = ask(questions, limit);
    terminal::disable_raw_mode().ok();
    match answers {
        Ok(answers) if answers::are_complete(&answers) => {
            TerminalReply::Answers(TerminalAnswers::read(&answers))
        }
        Ok(_) | Err(_) => TerminalReply::Silence,
    }
}

/// The console of Windows has no answers in its input.
#[cfg(windows)]
fn ask(_questions: Questions, _limit: Duration) -> io::Result<Vec<u8>> {
    Ok(Vec::new())
}

#[cfg(unix)]
fn ask(questions: Questions, limit: Duration) -> io::Result<Vec<u8>> {
    let mut stdout = io::stdout().lock();
    let text = [&questions.first(), MORE_QUESTIONS, &questions.second(), answers::LAST].concat();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()?;
    // Not through the buffer of the standard library, which polling does not see.
    let stdin = rustix::stdio::stdin();
    let mut answers = Vec::new();
    let limit = Timespec { tv_sec: 0, tv_nsec: i64::from(limit.subsec_nanos()) };
    while !answers::are_complete(&answers) {
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
