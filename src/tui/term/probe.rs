//! Asks the terminal what it supports, outside a running interface.

#[cfg(unix)]
use std::io::Write as _;
use std::io::{self, IsTerminal as _};
#[cfg(unix)]
use std::os::fd::AsFd;
use std::time::Duration;

use crossterm::terminal;
#[cfg(unix)]
use rustix::event::{PollFd, PollFlags, Timespec, poll};
#[cfg(unix)]
use rustix::termios::{QueueSelector, tcflush};

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

/// Asks the terminal and waits for its answers, at most for `limit` while nothing comes. Blocks; keys typed
/// meanwhile are lost.
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
    let answers = read_answers(stdin, limit)?;
    if !answers::are_complete(&answers) {
        // What has come since is not for the shell.
        tcflush(stdin, QueueSelector::IFlush)?;
    }
    Ok(answers)
}

/// Reads until the last answer has come, or nothing has for `limit`.
#[cfg(unix)]
fn read_answers(terminal: impl AsFd, limit: Duration) -> io::Result<Vec<u8>> {
    let mut answers = Vec::new();
    let limit = Timespec::try_from(limit).map_err(|_| io::ErrorKind::InvalidInput)?;
    while !answers::are_complete(&answers) {
        let mut fds = [PollFd::new(&terminal, PollFlags::IN)];
        if poll(&mut fds, Some(&limit))? == 0 {
            break;
        }
        let mut bytes = [0; 256];
        match rustix::io::read(&terminal, &mut bytes)? {
            0 => break,
            n => answers.extend_from_slice(&bytes[..n]),
        }
    }
    Ok(answers)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn answers_that_take_whole_seconds_are_waited_for() {
        let (terminal, mut answers) = io::pipe().unwrap();
        let slow = std::thread::spawn(move || {
            for piece in ["\x1b[6;20;10t", "\x1b[?6", "2;22c"] {
                answers.write_all(piece.as_bytes()).unwrap();
                std::thread::yield_now();
            }
            answers
        });
        let read = read_answers(&terminal, Duration::from_secs(60)).unwrap();
        assert_eq!(String::from_utf8(read).unwrap(), "\x1b[6;20;10t\x1b[?62;22c");
        drop(slow.join().unwrap());
        assert_eq!(read_answers(&terminal, Duration::ZERO).unwrap(), b"");
    }
}
