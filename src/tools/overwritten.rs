//! Output of commands as the model reads it: lines that were written over, such as progress
//! bars, as they ended.
//!
//! All other lines stay byte for byte, with their escape sequences.

use super::plain_output::PlainOutput;

/// A line up to this length is kept until it ends, because it may be written over.
const MAX_PENDING_BYTES: usize = 16 * 1024;

/// Replaces each line that carriage returns write over by its last state, as it arrives.
#[derive(Debug, Default)]
pub(super) struct OverwrittenLines {
    /// The current line.
    line: PendingLine,
}

#[derive(Debug)]
enum PendingLine {
    /// Nothing was written over so far.
    Raw(String),
    /// Longer than is kept; the rest passes through.
    Long,
    /// Carriage returns are applied; `text` is what has settled before the end of the line.
    Edited { output: PlainOutput, text: String },
}

impl Default for PendingLine {
    fn default() -> Self {
        Self::Raw(String::new())
    }
}

impl OverwrittenLines {
    /// The lines that `text` ends.
    pub(super) fn push(&mut self, text: &str) -> String {
        let mut ended = String::with_capacity(text.len());
        for piece in text.split_inclusive('\n') {
            self.push_piece(piece, &mut ended);
        }
        ended
    }

    /// The last line, without a line break.
    pub(super) fn finish(&mut self) -> String {
        std::mem::take(&mut self.line).finish()
    }

    /// The current line so far.
    pub(super) fn current(&self) -> String {
        match &self.line {
            PendingLine::Raw(line) => line.clone(),
            PendingLine::Long => String::new(),
            PendingLine::Edited { output, text } => [text.as_str(), &output.current_line()].concat(),
        }
    }

    /// Adds `piece`, which has no line break except at its end.
    fn push_piece(&mut self, piece: &str, ended: &mut String) {
        let ends = piece.ends_with('\n');
        match &mut self.line {
            PendingLine::Raw(line) => {
                line.push_str(piece);
                if writes_over(line) {
                    let mut output = PlainOutput::default();
                    let text = output.push(line).settled;
                    self.line = PendingLine::Edited { output, text };
                } else if ends || line.len() > MAX_PENDING_BYTES {
                    ended.push_str(line);
                    self.line = if ends { PendingLine::default() } else { PendingLine::Long };
                    return;
                }
            }
            PendingLine::Long => ended.push_str(piece),
            PendingLine::Edited { output, text } => text.push_str(&output.push(piece).settled),
        }
        if ends {
            ended.push_str(&self.finish());
        }
    }
}

impl PendingLine {
    fn finish(self) -> String {
        match self {
            Self::Raw(line) => line,
            Self::Long => String::new(),
            Self::Edited { output, text } => [text, output.finish()].concat(),
        }
    }
}

/// Whether text follows a carriage return in `line`. Before a line break it is a part of that.
fn writes_over(line: &str) -> bool {
    let text = line.trim_end_matches(['\r', '\n']);
    memchr::memchr(b'\r', text.as_bytes()).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Also checks the text split at every character.
    #[track_caller]
    fn check(text: &str, expected: &str) {
        for (cut, _) in text.char_indices() {
            let mut lines = OverwrittenLines::default();
            let (left, right) = text.split_at(cut);
            let mut shown = lines.push(left);
            shown.push_str(&lines.push(right));
            shown.push_str(&lines.finish());
            assert_eq!(shown, expected, "{text:?} cut at {cut}");
        }
    }

    #[test]
    fn progress_reaches_the_model_as_it_ended() {
        check("\r12%\r13%\r14%\ndone\n", "14%\ndone\n");
        check("a\r\x1b[Kb", "b");
        check("downloading\rdone       \nx", "done\nx");
        let bar: String = (0..5_000).map(|n| format!("\r{:3}%", n / 50)).collect();
        let mut lines = OverwrittenLines::default();
        assert_eq!(lines.push(&bar), "");
        assert_eq!(lines.current(), " 99%");
        assert_eq!(lines.push("\n"), " 99%\n");
        assert_eq!(lines.current(), "");
    }

    #[test]
    fn other_lines_stay_byte_for_byte() {
        for text in
            ["a\r\nb\r\n", "a\r\r\nb", "a\r", "\x1b[31mred\x1b[0m\n\x1b]0;t\x07x\ty\u{8}z\n", "", "no end"]
        {
            check(text, text);
        }
        check("\x1b[31mred\x1b[0m\n1%\r2%\n\x1b[32mgreen\n", "\x1b[31mred\x1b[0m\n2%\n\x1b[32mgreen\n");
    }

    #[test]
    fn line_of_any_length_passes_through() {
        let long = "x".repeat(MAX_PENDING_BYTES + 1);
        let mut lines = OverwrittenLines::default();
        assert_eq!(lines.push(&long), long);
        assert_eq!(lines.push("\rmore\n1%\r2%\n"), "\rmore\n2%\n");
    }
}
