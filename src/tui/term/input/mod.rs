//! Keys, pastes and other input from the terminal.
//!
//! On Unix one thread reads bytes (`reader`), which `parse` understands; on Windows the console
//! has events (`console`). [`InputBroker`] has one face for both.
//!
//! The invariant: a key is reported once and in order, regardless of other input.

#[cfg(unix)]
mod broker;
#[cfg(windows)]
mod console;
#[cfg(unix)]
mod doubled;
#[cfg(unix)]
mod parse;
#[cfg(unix)]
mod reader;
#[cfg(unix)]
mod strings;
#[cfg(unix)]
mod win32;

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, MouseEvent};
use ratatui::layout::{Position, Size};

#[cfg(unix)]
pub use broker::{InputBroker, recorded_input};
#[cfg(windows)]
pub use console::InputBroker;

/// An input of the user or the terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputEvent {
    /// Never a release.
    Key(KeyEvent),
    /// Bracketed paste, cleaned by [`normalize_paste`].
    Paste(String),
    /// Only in fullscreen.
    Mouse(MouseEvent),
    Resize(Size),
    /// Whether the window has the focus now.
    Focus(bool),
    /// The terminal has answered questions: [`InputBroker::answers`].
    Answered,
    /// A paste has begun, and nothing more of it came for a while. Escape or ctrl+c end it.
    PasteWaits,
}

/// What the terminal said about its main screen at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ScreenReport {
    /// `None` if it did not answer in time.
    pub cursor: Option<Position>,
    /// `None` if nothing is known.
    pub size: Option<Size>,
}

/// `None` for useless events: key releases, which Windows always sends, and control
/// characters in the form of keys, which no keyboard has.
fn normalize(event: Event) -> Option<InputEvent> {
    match event {
        Event::Key(key) if key.kind == KeyEventKind::Release => None,
        Event::Key(key) if matches!(key.code, KeyCode::Char(c) if c.is_control()) => None,
        Event::Key(key) => Some(InputEvent::Key(key)),
        Event::Paste(text) => Some(InputEvent::Paste(normalize_paste(&text))),
        Event::Mouse(mouse) => Some(InputEvent::Mouse(mouse)),
        Event::Resize(width, height) => Some(InputEvent::Resize(Size::new(width, height))),
        Event::FocusGained => Some(InputEvent::Focus(true)),
        Event::FocusLost => Some(InputEvent::Focus(false)),
    }
}

/// Normalises pasted text for an editor. Terminals send line breaks as `\r`; tmux with
/// extended keys sends control characters as `ESC [ <code> ; 5 u`. Tabs stay; escape sequences, such
/// as colors, and other control characters are removed.
pub fn normalize_paste(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if let Some((control, len)) = encoded_control(rest) {
            push_pasted(control, &mut clean);
            rest = rest.get(len..).unwrap_or_default();
            continue;
        }
        let n_sequence = escape_sequence(rest);
        if n_sequence > 0 {
            rest = rest.get(n_sequence..).unwrap_or_default();
            continue;
        }
        if let Some(after) = rest.strip_prefix("\r\n") {
            clean.push('\n');
            rest = after;
            continue;
        }
        push_pasted(c, &mut clean);
        rest = &rest[c.len_utf8()..];
    }
    clean
}

fn push_pasted(c: char, clean: &mut String) {
    match c {
        '\n' | '\r' => clean.push('\n'),
        '\t' => clean.push('\t'),
        c if c.is_control() => {}
        c => clean.push(c),
    }
}

/// The length of the escape sequence that `text` begins with; 0 if there is none, or it is not
/// complete. Control strings, whose end may be far, end at most after [`LONGEST_STRING`].
fn escape_sequence(text: &str) -> usize {
    const LONGEST_STRING: usize = 4_096;
    let bytes = text.as_bytes();
    let [0x1b, kind, rest @ ..] = bytes else { return 0 };
    match kind {
        b'[' => {
            let n_parameters =
                rest.iter().take(LONGEST_STRING).take_while(|byte| (0x20..=0x3f).contains(*byte)).count();
            let is_complete = rest.get(n_parameters).is_some_and(|last| (0x40..=0x7e).contains(last));
            if is_complete { n_parameters + 3 } else { 0 }
        }
        b']' | b'P' | b'_' | b'^' | b'X' => {
            let near = &rest[..rest.len().min(LONGEST_STRING)];
            let end = near.iter().position(|byte| matches!(byte, 0x07 | 0x1b));
            match end.map(|at| (at, &near[at..])) {
                Some((at, [0x07, ..])) => at + 3,
                Some((at, [0x1b, b'\\', ..])) => at + 4,
                Some(_) | None => 0,
            }
        }
        // A character set: one more byte.
        b'(' | b')' if rest.first().is_some_and(u8::is_ascii_alphanumeric) => 3,
        b'=' | b'>' | b'7' | b'8' | b'c' | b'M' => 2,
        _ => 0,
    }
}

/// The control character encoded as `ESC [ <code> ; 5 u` at the start of `text`,
/// and the length of the sequence.
fn encoded_control(text: &str) -> Option<(char, usize)> {
    const MAX_DIGITS: usize = 3;
    let after = text.strip_prefix("\x1b[")?;
    // Not farther: a paste may have thousands of other sequences.
    let n_digits = after.bytes().take(MAX_DIGITS).take_while(u8::is_ascii_digit).count();
    let (code, rest) = after.split_at_checked(n_digits)?;
    let letter = code.parse::<u8>().ok().filter(u8::is_ascii_alphabetic)?;
    if !rest.starts_with(";5u") {
        return None;
    }
    Some((char::from(letter & 0x1f), "\x1b[".len() + code.len() + ";5u".len()))
}

#[cfg(test)]
mod tests {
    use crossterm::event::KeyModifiers;

    use super::*;

    #[test]
    fn pastes_are_cleaned() {
        for (text, expected) in [
            ("a\rb\r\nc\nd", "a\nb\nc\nd"),
            ("\tx\ty", "\tx\ty"),
            ("a\u{0}\u{7}b", "ab"),
            ("a\x1b[106;5ub\x1b[105;5uc\x1b[99;5ud", "a\nb\tcd"),
            ("x\x1b[31my\x1b[0m", "xy"),
            ("\x1b[38;2;1;2;3mx\x1b[K\x1b(B\x1b[m", "x"),
            ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x07!", "link!"),
            ("\x1b[200~abc \x1b[201~", "abc "),
            ("\x1b]never ends", "]never ends"),
            ("\x1b[1é;5u", "[1é;5u"),
            ("世界", "世界"),
        ] {
            assert_eq!(normalize_paste(text), expected, "{text:?}");
        }
    }

    #[test]
    fn large_pastes_of_coloured_text_are_linear_work() {
        // Looking for the end of each sequence in all that follows would take hours.
        let line = "\x1b[31mred\x1b[0m\r";
        let clean = normalize_paste(&line.repeat(300_000));
        assert_eq!(clean.len(), "red\n".len() * 300_000);
        assert_eq!(normalize_paste(&"\x1b]".repeat(300_000)).len(), 300_000);
    }

    #[test]
    fn releases_are_dropped_and_repeats_kept() {
        let key =
            |kind| Event::Key(KeyEvent { kind, ..KeyEvent::new(KeyCode::Char('a'), KeyModifiers::NONE) });
        assert!(normalize(key(KeyEventKind::Press)).is_some());
        assert!(normalize(key(KeyEventKind::Repeat)).is_some());
        assert_eq!(normalize(key(KeyEventKind::Release)), None);
        assert_eq!(normalize(Event::Paste("a\rb".to_owned())), Some(InputEvent::Paste("a\nb".to_owned())));
    }
}
