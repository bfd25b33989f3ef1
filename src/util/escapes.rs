//! Splits terminal text into characters, colours, and unwanted escape
//! sequences.
//!
//! All text of a model, a server or a process passes through here before it is shown.
//! Callers handle tabs, line breaks and colours.

use std::borrow::Cow;

/// Plain text without escape sequences and
/// without control characters except tabs and line breaks.
pub fn without_escapes(text: &str) -> Cow<'_, str> {
    let is_kept = |c: char| matches!(c, '\n' | '\t') || !is_dropped(c);
    if text.chars().all(is_kept) {
        return Cow::Borrowed(text);
    }
    let kept = pieces(text).filter_map(|piece| match piece {
        Piece::Char(c) if is_kept(c) => Some(c),
        Piece::Char(_) | Piece::Sgr(_) | Piece::Edit(_) => None,
    });
    Cow::Owned(kept.collect())
}

/// Characters that are never shown: controls, and marks that reorder text
/// so that the reader sees something other than the stored text.
pub fn is_dropped(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{feff}')
}

/// A piece of terminal text. `\r\n` counts as `\n`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Piece<'a> {
    Char(char),
    /// A complete `CSI … m`, including the escape character.
    Sgr(&'a str),
    /// A sequence that acts on the line of the cursor.
    Edit(LineEdit),
}

/// What a control character or an escape sequence does to the line that is being written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineEdit {
    /// Moves the cursor to this column, from 0.
    Column(usize),
    Left(usize),
    Right(usize),
    /// Erases from the cursor on.
    EraseRight,
    /// Erases up to and including the column of the cursor.
    EraseLeft,
    EraseLine,
}

impl LineEdit {
    /// The edit of a control character.
    pub fn of_char(c: char) -> Option<Self> {
        match c {
            '\r' => Some(Self::Column(0)),
            '\u{8}' => Some(Self::Left(1)),
            _ => None,
        }
    }

    /// The edit of a complete escape sequence: `CSI` with `K`, `G`, `C` or `D` and at most one
    /// parameter.
    pub fn of_sequence(sequence: &str) -> Option<Self> {
        let body = sequence.strip_prefix("\u{1b}[").or_else(|| sequence.strip_prefix('\u{9b}'))?;
        let parameter = body.get(..body.len().checked_sub(1)?)?;
        if !parameter.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        // A number that is too large is as good as the largest.
        let number = (!parameter.is_empty()).then(|| parameter.parse().unwrap_or(usize::MAX));
        let count = number.unwrap_or(1).max(1);
        match (body.bytes().last()?, number) {
            (b'G', _) => Some(Self::Column(count - 1)),
            (b'C', _) => Some(Self::Right(count)),
            (b'D', _) => Some(Self::Left(count)),
            (b'K', None | Some(0)) => Some(Self::EraseRight),
            (b'K', Some(1)) => Some(Self::EraseLeft),
            (b'K', Some(2)) => Some(Self::EraseLine),
            _ => None,
        }
    }
}

/// Splits text into characters, colour sequences and edits of the line; drops every other escape
/// sequence, also unfinished ones. Of a control string that never ends, only the two characters that
/// begin it.
pub fn pieces(text: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut escapes = Escapes::default();
    let (mut start, mut at) = (0, 0);
    std::iter::from_fn(move || {
        loop {
            let was_in_string = escapes.is_in_string();
            let Some(c) = text[at..].chars().next() else {
                if !was_in_string {
                    return None;
                }
                (escapes, at) = (Escapes::default(), start + STRING_START_LEN);
                continue;
            };
            let end = at + c.len_utf8();
            match escapes.step(c) {
                Step::Text if was_in_string && !is_cancel(c) => {
                    (escapes, at) = (Escapes::default(), start + STRING_START_LEN);
                    continue;
                }
                Step::Text => {
                    let is_line_end = c == '\r' && text[end..].starts_with('\n');
                    at = end + usize::from(is_line_end);
                    return Some(Piece::Char(if is_line_end { '\n' } else { c }));
                }
                Step::Begins => start = at,
                Step::Inside => {}
                Step::Ends => {
                    let sequence = &text[start..end];
                    at = end;
                    if sequence.starts_with("\u{1b}[") && c == 'm' {
                        return Some(Piece::Sgr(sequence));
                    }
                    if let Some(edit) = LineEdit::of_sequence(sequence) {
                        return Some(Piece::Edit(edit));
                    }
                }
            }
            at = end;
        }
    })
}

/// The parameters of a [`Piece::Sgr`], as they are written.
pub fn sgr_parameters(sequence: &str) -> Option<&str> {
    sequence.strip_prefix("\u{1b}[")?.strip_suffix('m')
}

/// Bytes of ESC and the character behind it that begins a control string.
const STRING_START_LEN: usize = 2;

/// A longer control string is taken for binary noise, not for a control string.
const MAX_CONTROL_STRING_CHARS: usize = 1 << 20;

/// Finds escape sequences in text that may arrive in pieces, by the grammar of ECMA-48.
///
/// A broken sequence ends before the first character that cannot be part of it, and a line
/// end ends every sequence, so that a stray byte cannot hide the rest of a text. The C1 controls that
/// would begin a control string are characters of their own: text that was decoded twice has them
/// (`”` becomes U+00E2, U+0080 and U+009D), and terminals ignore them in UTF-8.
///
/// The crate `vte` parses bytes, not text: it reads a C1 control as the character that is
/// printed, loses what follows a broken sequence, and does not tell whether it is inside of
/// a control string, without which none of that can be mended around it.
#[derive(Debug, Default)]
pub struct Escapes {
    state: State,
}

/// What a character is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Not part of a sequence. It may be a control character.
    Text,
    /// The first of a sequence; one before it is broken off.
    Begins,
    Inside,
    /// The last of a sequence.
    Ends,
}

#[derive(Debug, Default, Clone, Copy)]
enum State {
    #[default]
    Text,
    /// Behind ESC.
    Escape,
    /// Behind ESC and an intermediate character: one final character follows.
    EscapeIntermediate,
    /// Behind CSI, up to its final character.
    Sequence,
    /// Behind ESC with OSC, DCS, SOS, PM or APC, up to its terminator.
    ControlString { n_chars: usize },
}

/// CAN and SUB, which end every sequence.
pub fn is_cancel(c: char) -> bool {
    matches!(c, '\u{18}' | '\u{1a}')
}

impl Escapes {
    /// Whether a control string has begun. Unless [`is_cancel`], a character that is then
    /// [`Step::Text`] shows that it never ends, and that its characters are text.
    pub fn is_in_string(&self) -> bool {
        matches!(self.state, State::ControlString { .. })
    }

    /// Takes the next character.
    pub fn step(&mut self, c: char) -> Step {
        let (state, step) = match (self.state, c) {
            (_, '\u{1b}') => (State::Escape, Step::Begins),
            (State::ControlString { .. }, '\u{7}' | '\u{9c}') => (State::Text, Step::Ends),
            (State::ControlString { .. }, c) if c == '\n' || is_cancel(c) => (State::Text, Step::Text),
            (State::ControlString { n_chars }, _) if n_chars < MAX_CONTROL_STRING_CHARS => {
                (State::ControlString { n_chars: n_chars + 1 }, Step::Inside)
            }
            (_, '\u{9b}') => (State::Sequence, Step::Begins),
            (State::Escape, '[') => (State::Sequence, Step::Inside),
            (State::Escape, ']' | 'P' | 'X' | '^' | '_') => {
                (State::ControlString { n_chars: 0 }, Step::Inside)
            }
            (State::Escape | State::EscapeIntermediate, ' '..='/') => {
                (State::EscapeIntermediate, Step::Inside)
            }
            (State::Sequence, ' '..='?') => (State::Sequence, Step::Inside),
            (State::Escape | State::EscapeIntermediate | State::Sequence, '0'..='~') => {
                (State::Text, Step::Ends)
            }
            _ => (State::Text, Step::Text),
        };
        self.state = state;
        step
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_end_where_they_are_broken_and_at_the_end_of_a_line() {
        let check = |text: &str, expected: &[Piece<'_>]| {
            assert_eq!(pieces(text).collect::<Vec<_>>(), expected, "{text:?}");
        };
        let (a, b) = (Piece::Char('a'), Piece::Char('b'));
        check("\u{1b}]0;title\u{7}a\u{1b}]0;title\u{1b}\\b", &[a, b]);
        check("\u{1b}Pdata\u{18}a", &[Piece::Char('\u{18}'), a]);
        check("\u{1b}[3\u{1b}[1ma", &[Piece::Sgr("\u{1b}[1m"), a]);
        check("\u{1b}[3\u{9b}1ma\u{9b}31", &[a]);
        check("\u{1b}é\u{1b}(éa", &[Piece::Char('é'), Piece::Char('é'), a]);
        check("a\r\nb\r", &[a, Piece::Char('\n'), b, Piece::Char('\r')]);
        assert_eq!(sgr_parameters("\u{1b}[1;31m"), Some("1;31"));
    }

    #[test]
    fn control_string_that_never_ends_is_text() {
        let check = |text: &str, expected: &str| assert_eq!(without_escapes(text), expected, "{text:?}");
        check("a\u{1b}]8;;x unterminated\nb", "a8;;x unterminated\nb");
        check("a\u{1b}P1\u{9b}31m\u{1b}]2 \u{1b}_end", "aend");
        check(
            &format!("\u{1b}X{}", "x".repeat(MAX_CONTROL_STRING_CHARS + 9)),
            &"x".repeat(MAX_CONTROL_STRING_CHARS + 9),
        );
        check("\u{1b}]", "");
        check(
            "He said \u{e2}\u{80}\u{9c}quoted\u{e2}\u{80}\u{9d} and \u{90}the rest",
            "He said âquotedâ and the rest",
        );
    }

    #[test]
    fn edits_of_the_line_are_told_from_other_sequences() {
        let check = |sequence: &str, expected: Option<LineEdit>| {
            assert_eq!(LineEdit::of_sequence(sequence), expected, "{sequence:?}");
        };
        check("\u{1b}[K", Some(LineEdit::EraseRight));
        check("\u{9b}1K", Some(LineEdit::EraseLeft));
        check("\u{1b}[2K", Some(LineEdit::EraseLine));
        check("\u{1b}[G", Some(LineEdit::Column(0)));
        check("\u{1b}[0C", Some(LineEdit::Right(1)));
        check("\u{1b}[99999999999999999999D", Some(LineEdit::Left(usize::MAX)));
        for other in ["\u{1b}[3K", "\u{1b}[?K", "\u{1b}[1;2K", "\u{1b}[2J", "\u{1b}K", "\u{1b}[", "K", ""] {
            check(other, None);
        }
    }

    #[test]
    fn lines_and_tabs_are_all_that_is_left_of_controls() {
        let check = |text: &str, expected: &str| assert_eq!(without_escapes(text), expected, "{text:?}");
        check("a\tb\nc", "a\tb\nc");
        check("a\u{1b}[2J\u{1b}]0;title\u{7}b\u{1b}[31mc\u{1b}[0m", "abc");
        check("a\r\nb\rc\u{8}\u{9b}31md", "a\nbcd");
        check("evil\u{202e}txt", "eviltxt");
        check("héllo 世界", "héllo 世界");
    }
}
