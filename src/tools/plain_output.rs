//! A command's output as plain text, as it arrives.
//!
//! Escape sequences and control characters are removed, except those that edit the current line:
//! they are applied, so that a progress bar leaves its last state and not all of them.

use crate::util::escapes::{Escapes, LineEdit, Step, is_cancel};
use crate::util::terminal_line::TerminalLine;

/// A longer line is not edited any more, so that a line without end takes limited memory.
const MAX_LINE_BYTES: usize = 16 * 1024;

/// No longer sequence edits a line.
const MAX_SEQUENCE_BYTES: usize = 16;

/// What a piece of output adds.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Pieces {
    /// Text that can no longer change. The current line is not part of it.
    pub(super) settled: String,
    /// The same with the current line, for those who show it at once. What follows a carriage
    /// return replaces the current line. Other control characters are tab and line feed only.
    pub(super) live: String,
}

/// Output of one command. Sequences and lines may be split between pieces.
#[derive(Debug, Default)]
pub(super) struct PlainOutput {
    escapes: Escapes,
    /// The beginning of the sequence that is being read.
    sequence: String,
    /// The control string that is being read, without the two characters that begin it.
    string: String,
    line: TerminalLine<()>,
    /// The current line as [`Pieces::live`] has reported it.
    reported: String,
    /// Bytes written to the current line; at least as many as it has.
    n_written: usize,
    /// Whether the beginning of the line is settled, and what follows is only appended.
    is_too_long: bool,
}

impl PlainOutput {
    pub(super) fn push(&mut self, text: &str) -> Pieces {
        let mut pieces = Pieces::default();
        for c in text.chars() {
            let was_in_string = self.escapes.is_in_string();
            let step = self.escapes.step(c);
            if !was_in_string {
                self.string.clear();
            } else if step == Step::Inside {
                self.string.push(c);
            } else if step == Step::Text && !is_cancel(c) {
                self.put_string(&mut pieces);
            }
            match step {
                Step::Text if c == '\n' => {
                    self.settle(&mut pieces);
                    pieces.settled.push('\n');
                    pieces.live.push('\n');
                    self.is_too_long = false;
                }
                Step::Text if is_shown(c) => self.put(c, &mut pieces),
                Step::Text => self.edit(LineEdit::of_char(c)),
                Step::Begins | Step::Inside | Step::Ends => self.on_sequence(c, step),
            }
        }
        self.report(&mut pieces.live);
        pieces
    }

    /// What of the current line has not settled.
    pub(super) fn current_line(&self) -> String {
        self.line.text()
    }

    /// What the last line has become.
    pub(super) fn finish(mut self) -> String {
        let mut pieces = Pieces::default();
        if self.escapes.is_in_string() {
            self.put_string(&mut pieces);
        }
        self.settle(&mut pieces);
        pieces.settled
    }

    /// Adds a control string that never ended.
    fn put_string(&mut self, pieces: &mut Pieces) {
        let string = std::mem::take(&mut self.string);
        string.chars().filter(|c| is_shown(*c)).for_each(|c| self.put(c, pieces));
    }

    fn on_sequence(&mut self, c: char, step: Step) {
        if step == Step::Begins {
            self.sequence.clear();
        }
        if self.sequence.len() < MAX_SEQUENCE_BYTES {
            self.sequence.push(c);
        }
        if step == Step::Ends {
            self.edit(LineEdit::of_sequence(&self.sequence));
        }
    }

    fn edit(&mut self, edit: Option<LineEdit>) {
        if let Some(edit) = edit.filter(|_| !self.is_too_long) {
            self.line.edit(edit);
        }
    }

    fn put(&mut self, c: char, pieces: &mut Pieces) {
        self.line.put(c, &());
        self.n_written += c.len_utf8();
        if self.n_written > MAX_LINE_BYTES {
            // Most of a progress bar was written over.
            self.n_written = self.line.text().len();
            if self.n_written > MAX_LINE_BYTES / 2 {
                self.settle(pieces);
                self.is_too_long = true;
            }
        }
    }

    fn settle(&mut self, pieces: &mut Pieces) {
        self.report(&mut pieces.live);
        pieces.settled.push_str(&std::mem::take(&mut self.line).text());
        self.reported.clear();
        self.n_written = 0;
    }

    /// Adds what the current line has become since it was last reported.
    fn report(&mut self, live: &mut String) {
        let text = self.line.text();
        match text.strip_prefix(&self.reported) {
            Some(added) => live.push_str(added),
            None => {
                live.push('\r');
                live.push_str(&text);
            }
        }
        self.reported = text;
    }
}

fn is_shown(c: char) -> bool {
    match c {
        '\t' => true,
        '\u{fff9}'..='\u{fffb}' => false,
        c => !c.is_control(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn settled(pieces: &[&str]) -> String {
        let mut output = PlainOutput::default();
        let mut text: String = pieces.iter().map(|piece| output.push(piece).settled).collect();
        text.push_str(&output.finish());
        text
    }

    /// What a reader of the live pieces has in the end.
    fn seen(pieces: &[&str]) -> String {
        let mut output = PlainOutput::default();
        let mut text = String::new();
        for piece in pieces {
            for c in output.push(piece).live.chars() {
                match c {
                    '\r' => text.truncate(text.rfind('\n').map_or(0, |at| at + 1)),
                    c => text.push(c),
                }
            }
        }
        text
    }

    /// Also checks the text split at every character.
    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(settled(&[text]), expected, "{text:?}");
        for (cut, _) in text.char_indices() {
            let (left, right) = text.split_at(cut);
            assert_eq!(settled(&[left, right]), expected, "{text:?} cut at {cut}");
            assert_eq!(seen(&[left, right]), expected, "{text:?} cut at {cut}, live");
        }
    }

    #[test]
    fn progress_leaves_its_last_state() {
        check(" 10%\r 50%\r100%\r\ndone\n", "100%\ndone\n");
        check("working\r\u{1b}[Kok\n", "ok\n");
        check("remote: 10%\u{1b}[K\rremote: 100%\u{1b}[K\n", "remote: 100%\n");
        check("N\u{8}NA\u{8}A\n", "NA\n");
        check("a\u{8}", "a");
    }

    #[test]
    fn escape_sequences_are_removed() {
        check("\x1b[1;31mred\x1b[0m ü", "red ü");
        check("\x1b]0;title\x07a\x1b]8;;http://x\x1b\\b\x1b]8;;\x1b\\", "ab");
        check("\x1bPq#0\x1b\\a\x1b_G\x1b\\b", "ab");
        check("\x1b(Ba\x1b=b\x1bMc\x1b7", "abc");
        check("\u{9b}31ma\u{1b}]0;t\u{9c}b", "ab");
        check("\x1b[2J\x1b[1;1Ha\x1b[5Ab", "ab");
    }

    #[test]
    fn control_characters_are_removed() {
        check("ac\x00\td\ne\x7f\u{85}\u{fff9}f", "ac\td\nef");
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
        let noise = "x".repeat((1 << 20) + 10);
        assert_eq!(settled(&[&format!("\x1b]{noise}")]), noise);
    }

    #[test]
    fn control_string_that_never_ends_is_text() {
        check("a\x1b]8;;x unterminated\nb", "a8;;x unterminated\nb");
        assert_eq!(settled(&["a\x1bP", "b"]), "ab");
        check("a \u{9d} b \u{90}c", "a  b c");
    }

    #[test]
    fn line_without_end_takes_limited_memory_and_loses_nothing() {
        let long = "abcdefgh".repeat(MAX_LINE_BYTES);
        let mut output = PlainOutput::default();
        let pieces = output.push(&long);
        assert!(pieces.settled.len() + MAX_LINE_BYTES >= long.len());
        assert_eq!(pieces.live, long);
        assert_eq!(pieces.settled + &output.finish(), long);
    }

    #[test]
    fn progress_of_any_length_is_written_over() {
        let bars: Vec<String> = (0..10_000).map(|n| format!("{n} of 9999\r")).collect();
        let bars: Vec<&str> = bars.iter().map(String::as_str).collect();
        assert_eq!(settled(&bars), "9999 of 9999");
        assert_eq!(seen(&bars), "9999 of 9999");
    }

    proptest! {
        #[test]
        fn cuts_of_the_stream_change_nothing(
            text in "([a-c世]|\r|\u{8}|\t|\n|\u{1b}\\[[0-2]?K|\u{1b}\\[[1-9]?[CDG]|\u{1b}\\[31m|\u{1b}|\\[|\u{9b}){0,30}",
            cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..5),
        ) {
            let boundaries: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
            let mut at: Vec<usize> = cuts.iter().map(|cut| *cut.get(&boundaries)).collect();
            at.extend([0, text.len()]);
            at.sort_unstable();
            let pieces: Vec<&str> = at.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect();
            let whole = settled(&[&text]);
            prop_assert!(whole.chars().all(|c| !c.is_control() || matches!(c, '\n' | '\t')));
            prop_assert_eq!(settled(&pieces), whole.as_str());
            prop_assert_eq!(seen(&pieces), whole);
        }
    }
}
