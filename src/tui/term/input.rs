//! Keys, pastes and the other things a terminal sends.
//!
//! Wraps crossterm's event stream, which holds the input while it lives: a query
//! beside it times out after two seconds and an external editor would lose keys.
//! So the broker drops the stream for those and starts another one afterwards;
//! what was typed meanwhile is not lost.

use std::io;
use std::time::Duration;

use crossterm::event::{Event, EventStream, KeyEvent, KeyEventKind, MouseEvent};
use futures_util::StreamExt as _;
use ratatui::layout::{Position, Size};

/// Something the user or the terminal did.
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
}

/// Reads the terminal's input. At most one may exist.
#[derive(Debug, Default)]
pub struct InputBroker {
    stream: Option<EventStream>,
}

impl InputBroker {
    /// A broker that does not read yet; the first [`Self::next`] starts it.
    pub fn new() -> Self {
        Self::default()
    }

    /// The next event; `None` when the terminal is gone. Cancel safe: an event is
    /// either returned or still waiting.
    ///
    /// # Errors
    /// When the terminal cannot be read.
    pub async fn next(&mut self) -> Option<io::Result<InputEvent>> {
        let stream = self.stream.get_or_insert_with(EventStream::new);
        loop {
            match stream.next().await? {
                Ok(event) => {
                    if let Some(event) = normalize(event) {
                        return Some(Ok(event));
                    }
                }
                Err(error) => return Some(Err(error)),
            }
        }
    }

    /// Stops reading, for another program to read or for a query; the next
    /// [`Self::next`] starts again.
    pub fn pause(&mut self) {
        self.stream = None;
    }

    /// Asks the terminal where its cursor is; blocks for the answer, usually some
    /// milliseconds. `None` when none comes, after two seconds, or four if the
    /// terminal was being read.
    pub fn cursor_position(&mut self) -> Option<Position> {
        // Dropping a stream leaves a wake-up behind if no one was waiting on it, and
        // crossterm takes that for the end of the wait; the first poll uses it up.
        let attempts = if self.stream.is_some() { 2 } else { 1 };
        self.pause();
        (0..attempts).find_map(|_| {
            drop(crossterm::event::poll(Duration::ZERO));
            crossterm::cursor::position().ok().map(Position::from)
        })
    }

    /// Asks for the size of the terminal; `None` when it is unknown or zero.
    pub fn size(&self) -> Option<Size> {
        let (width, height) = crossterm::terminal::size().ok()?;
        (width > 0 && height > 0).then(|| Size::new(width, height))
    }

    /// Throws away what is still arriving, so that it does not end up in the shell:
    /// until nothing comes for `idle`, at most `limit` events. Blocks.
    pub fn drain(&mut self, idle: Duration, limit: usize) {
        self.pause();
        for _ in 0..limit {
            match crossterm::event::poll(idle) {
                Ok(true) if crossterm::event::read().is_ok() => {}
                _ => return,
            }
        }
    }
}

/// `None` for what no one needs: key releases, which Windows always sends.
fn normalize(event: Event) -> Option<InputEvent> {
    match event {
        Event::Key(key) if key.kind == KeyEventKind::Release => None,
        Event::Key(key) => Some(InputEvent::Key(key)),
        Event::Paste(text) => Some(InputEvent::Paste(normalize_paste(&text))),
        Event::Mouse(mouse) => Some(InputEvent::Mouse(mouse)),
        Event::Resize(width, height) => Some(InputEvent::Resize(Size::new(width, height))),
        Event::FocusGained => Some(InputEvent::Focus(true)),
        Event::FocusLost => Some(InputEvent::Focus(false)),
    }
}

/// Pasted text as an editor wants it. Terminals send line ends as `\r`; tmux with
/// extended keys sends control characters as `ESC [ <code> ; 5 u`. Tabs become
/// four blanks and all other control characters go.
pub fn normalize_paste(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if let Some((control, len)) = encoded_control(rest) {
            push_pasted(control, &mut clean);
            rest = rest.get(len..).unwrap_or_default();
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
        '\t' => clean.push_str("    "),
        c if c.is_control() => {}
        c => clean.push(c),
    }
}

/// The control character that `ESC [ <code> ; 5 u` at the start of `text` stands
/// for, and the length of the sequence.
fn encoded_control(text: &str) -> Option<(char, usize)> {
    let after = text.strip_prefix("\x1b[")?;
    let (code, _) = after.split_once(";5u")?;
    let letter = code.parse::<u8>().ok().filter(u8::is_ascii_alphabetic)?;
    Some((char::from(letter & 0x1f), "\x1b[".len() + code.len() + ";5u".len()))
}

#[cfg(test)]
mod tests {
    use crossterm::event::{KeyCode, KeyModifiers};

    use super::*;

    #[test]
    fn pastes_are_cleaned() {
        for (text, expected) in [
            ("a\rb\r\nc\nd", "a\nb\nc\nd"),
            ("\tx", "    x"),
            ("a\u{0}\u{7}b", "ab"),
            ("a\x1b[106;5ub\x1b[105;5uc\x1b[99;5ud", "a\nb    cd"),
            ("x\x1b[31my", "x[31my"),
            ("\x1b[1é;5u", "[1é;5u"),
            ("世界", "世界"),
        ] {
            assert_eq!(normalize_paste(text), expected, "{text:?}");
        }
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
