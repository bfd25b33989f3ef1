//! Lines that were typed or pasted.
//!
//! The terminal marks pastes only for a program that sends escape sequences. Here the lines of a paste are
//! those that arrive together, because a person types one at a time.

use std::io::{self, BufRead, BufReader, IsTerminal as _};
use std::thread;
use std::time::Duration;

use tokio::sync::mpsc;

use crate::util::counted;
use crate::util::os::{LINE_BYTES, has_line};

/// A line that follows another one within this time was not typed.
const TOGETHER: Duration = Duration::from_millis(30);
/// Connections deliver a long paste in pieces; a longer pause ends it.
const PAUSE: Duration = Duration::from_millis(150);

/// What arrives at once.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Input {
    /// One line, or those of a paste.
    Lines(Vec<String>),
    /// The terminal cut the line of this number, from 1.
    Cut(usize),
}

/// The lines of standard input, read on a thread that lives as long as the process.
pub(super) fn read_input() -> mpsc::UnboundedReceiver<Input> {
    let (sender, inputs) = mpsc::unbounded_channel();
    // Without a thread nothing can be typed, which ends the conversation.
    let started = thread::Builder::new().name("input".to_owned()).spawn(move || {
        let stdin = io::stdin();
        let is_terminal = stdin.is_terminal();
        let mut lines = LineReader { input: BufReader::new(stdin), has_ended: false };
        while let Some(input) = lines.next(|limit| is_terminal && has_line(limit)) {
            if sender.send(input).is_err() {
                return;
            }
        }
    });
    drop(started);
    inputs
}

struct LineReader<R> {
    input: R,
    has_ended: bool,
}

impl<R: BufRead> LineReader<R> {
    /// The next lines that arrive together. `has_more` waits for another line.
    fn next(&mut self, has_more: impl Fn(Duration) -> bool) -> Option<Input> {
        let mut lines = vec![self.line()?];
        while has_more(if lines.len() == 1 { TOGETHER } else { PAUSE }) {
            match self.line() {
                Some(line) => lines.push(line),
                None => break,
            }
        }
        let is_cut = |line: &Vec<u8>| LINE_BYTES.is_some_and(|limit| line.len() >= limit);
        if let Some(index) = lines.iter().position(is_cut) {
            return Some(Input::Cut(index + 1));
        }
        let text = |line: Vec<u8>| String::from_utf8_lossy(&line).trim_end_matches('\r').to_owned();
        Some(Input::Lines(lines.into_iter().map(text).collect()))
    }

    fn line(&mut self) -> Option<Vec<u8>> {
        if self.has_ended {
            return None;
        }
        let mut line = Vec::new();
        let n_read = self.input.read_until(b'\n', &mut line).unwrap_or_default();
        let is_whole = line.pop_if(|byte| *byte == b'\n').is_some();
        // A terminal may report its end only once.
        self.has_ended = !is_whole;
        (n_read > 0).then_some(line)
    }
}

/// Lines that wait for the rest of their prompt: pasted ones for Enter, typed ones for the line after their
/// backslash.
#[derive(Debug, Default)]
pub(super) struct Draft {
    lines: Vec<String>,
    is_pasted: bool,
}

/// A prompt or command that is complete.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Whole {
    pub(super) text: String,
    pub(super) is_pasted: bool,
}

impl Draft {
    /// Adds lines that were pasted. The last one of a paste may have no end; then it is typed, for the
    /// terminal.
    pub(super) fn paste(&mut self, lines: Vec<String>) {
        self.lines.extend(lines);
        self.is_pasted = true;
    }

    /// Adds a line that was typed. Returns all of them unless it ends with a backslash.
    pub(super) fn add(&mut self, line: &str) -> Option<Whole> {
        if let Some(begun) = line.strip_suffix('\\') {
            self.lines.push(begun.to_owned());
            return None;
        }
        self.lines.push(line.to_owned());
        let Self { lines, is_pasted } = std::mem::take(self);
        let text = lines.join("\n");
        if !is_pasted {
            return Some(Whole { text: text.trim().to_owned(), is_pasted });
        }
        // The first line keeps its indentation.
        let begin = lines.iter().take_while(|line| line.trim().is_empty()).map(|line| line.len() + 1).sum();
        Some(Whole { text: text.get(begin..).unwrap_or_default().trim_end().to_owned(), is_pasted })
    }

    /// Drops the lines. Returns what to say if there were any.
    pub(super) fn discard(&mut self) -> Option<String> {
        let Self { lines, is_pasted } = std::mem::take(self);
        let what = if is_pasted { "pasted" } else { "typed" };
        (!lines.is_empty()).then(|| format!("Discarded {} that you {what}.", counted_lines(&lines)))
    }

    /// What waits, and for what: first for the answer to a question, if one is open.
    pub(super) fn waiting(&self, is_asked: bool) -> Option<String> {
        let lines = counted_lines(&self.lines);
        match self.lines.first() {
            None => None,
            Some(_) if is_asked => Some(format!("{lines} of yours wait until the question is answered.")),
            Some(_) if !self.is_pasted => Some(format!("Your prompt of {lines} waits for the rest.")),
            Some(first) => {
                let (what, verb) =
                    if first.starts_with('!') { (", a command", "runs") } else { ("", "sends") };
                Some(format!(
                    "Pasted {lines}{what}. Enter {verb} them; what you type before is added. ctrl+c discards \
                     them."
                ))
            }
        }
    }
}

fn counted_lines(lines: &[String]) -> String {
    counted(lines.len() as u64, "line")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(lines: &[&str]) -> Vec<String> {
        lines.iter().map(|line| (*line).to_owned()).collect()
    }

    /// All inputs from `text`, of which the first `n_together` lines arrive together.
    fn inputs(text: &[u8], n_together: usize) -> Vec<Input> {
        let mut reader = LineReader { input: text, has_ended: false };
        let n_read = std::cell::Cell::new(1);
        let has_more = |_| n_read.replace(n_read.get() + 1) < n_together;
        std::iter::from_fn(|| reader.next(has_more)).collect()
    }

    #[test]
    fn lines_that_arrive_together_are_one_input() {
        let all = Input::Lines(owned(&["a", "", "  b"]));
        assert_eq!(inputs(b"a\r\n\n  b\nc", 3), [all, Input::Lines(owned(&["c"]))]);
        let each = ["a", "b"].map(|line| Input::Lines(owned(&[line])));
        assert_eq!(inputs(b"a\nb\n", 1), each);
        // The end of the input is no line.
        assert_eq!(inputs(b"a\n", 9), [Input::Lines(owned(&["a"]))]);
        assert_eq!(inputs(b"", 1), []);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_line_as_long_as_the_terminal_keeps_is_cut() {
        let long = |n: usize| format!("a\n{}\nb\n", "x".repeat(n));
        assert_eq!(inputs(long(4_095).as_bytes(), 3), [Input::Cut(2)]);
        assert!(
            matches!(inputs(long(4_094).as_bytes(), 3).as_slice(), [Input::Lines(lines)] if lines.len() == 3)
        );
    }

    #[test]
    fn pasted_lines_wait_for_enter_and_keep_backslashes_and_indentation() {
        let mut draft = Draft::default();
        draft.paste(owned(&["", "  cargo test \\", "    --lib"]));
        let whole = |text: &str| Some(Whole { text: text.to_owned(), is_pasted: true });
        assert_eq!(draft.add(""), whole("  cargo test \\\n    --lib"));
        assert_eq!(draft.waiting(false), None);
        draft.paste(owned(&["a", "b"]));
        draft.paste(owned(&["c", "d"]));
        assert!(
            draft
                .waiting(false)
                .is_some_and(|waiting| waiting.starts_with("Pasted 4 lines. Enter sends them"))
        );
        // The last line had no end, or was typed.
        assert_eq!(draft.add("e"), whole("a\nb\nc\nd\ne"));
        draft.paste(owned(&["!for a in 1 2", "do echo $a; done"]));
        assert!(
            draft
                .waiting(false)
                .is_some_and(|waiting| waiting.starts_with("Pasted 2 lines, a command. Enter runs"))
        );
        assert_eq!(draft.discard().as_deref(), Some("Discarded 2 lines that you pasted."));
        assert_eq!(draft.discard(), None);
    }

    #[test]
    fn a_backslash_continues_a_typed_prompt() {
        let mut draft = Draft::default();
        assert_eq!(draft.add(" a\\"), None);
        assert_eq!(draft.waiting(false).as_deref(), Some("Your prompt of 1 line waits for the rest."));
        assert_eq!(draft.add("b "), Some(Whole { text: "a\nb".to_owned(), is_pasted: false }));
        assert_eq!(draft.add("c"), Some(Whole { text: "c".to_owned(), is_pasted: false }));
    }
}
