//! Terminal controls outside the screen's contents: title, notification,
//! progress, clipboard.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::tui::text::sanitize_line;

/// Longest message of a status, before base64.
const MAX_STATUS_BYTES: usize = 2048;

/// Longest string that any version of GNU screen hands on: 256 bytes before 4.2, 768 since, less those it
/// needs itself.
const SCREEN_STRING_BYTES: usize = 240;

/// A control. Its text is sanitised like that of rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Control {
    /// The window's title (OSC 0).
    Title(String),
    Bell,
    /// A desktop notification (OSC 9; iTerm2, kitty, `WezTerm`, Windows Terminal).
    Notify(String),
    /// Progress in the task bar (OSC 9;4, `ConEmu`): percent, or `None` for done.
    Progress(Option<u8>),
    /// Busy, without a percentage.
    Busy,
    /// What the program is doing (OSC 7501), with a word for what blocks it.
    Status {
        state: ProgramState,
        kind: Option<&'static str>,
        message: String,
    },
    /// Copies text to the clipboard (OSC 52), also through ssh; terminals may ignore it
    /// silently and limit the size.
    Copy(String),
    /// The same for the terminal around GNU screen, which drops it otherwise.
    CopyAroundScreen(String),
}

/// The states of OSC 7501.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramState {
    Idle,
    Working,
    /// Waits for the user.
    Blocked,
    Done,
    Error,
}

impl ProgramState {
    fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Working => "working",
            Self::Blocked => "blocked",
            Self::Done => "done",
            Self::Error => "error",
        }
    }
}

impl Control {
    pub(super) fn encode(&self) -> String {
        match self {
            Self::Title(text) => format!("\x1b]0;{}\x07", sanitize_line(text)),
            Self::Bell => "\x07".to_owned(),
            Self::Notify(text) => format!("\x1b]9;{}\x07", notification(text)),
            Self::Progress(Some(percent)) => format!("\x1b]9;4;1;{}\x07", percent.min(&100)),
            Self::Progress(None) => "\x1b]9;4;0;\x07".to_owned(),
            Self::Busy => "\x1b]9;4;3;\x07".to_owned(),
            Self::Status { state, kind, message } => {
                let kind = kind.map(|kind| format!(":kind={kind}")).unwrap_or_default();
                let message = sanitize_line(message);
                let message = &message[..message.floor_char_boundary(MAX_STATUS_BYTES)];
                let message = if message.is_empty() {
                    String::new()
                } else {
                    format!(":msg={}", STANDARD.encode(message))
                };
                format!("\x1b]7501;state={}:app=pi{kind}{message}\x1b\\", state.name())
            }
            Self::Copy(text) => copy(text),
            Self::CopyAroundScreen(text) => through_screen(&copy(text)),
        }
    }
}

fn copy(text: &str) -> String {
    format!("\x1b]52;c;{}\x07", STANDARD.encode(text))
}

/// A sequence of ASCII that GNU screen hands to its terminal, in strings that are short enough for it. None of
/// them contains the end of a string.
fn through_screen(sequence: &str) -> String {
    let strings = sequence.as_bytes().chunks(SCREEN_STRING_BYTES);
    strings.map(|string| format!("\x1bP{}\x1b\\", String::from_utf8_lossy(string))).collect()
}

/// Escapes a leading number, which would select another command of OSC 9: `4;` for
/// progress, or ConEmu's for its tabs and macros. A leading space keeps it a text.
fn notification(text: &str) -> String {
    let text = sanitize_line(text);
    let is_command = text.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with(';');
    if is_command { format!(" {text}") } else { text.into_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_end_its_sequence() {
        for (control, expected) in [
            (Control::Title("a\u{7}b\u{1b}\\\u{9c}c".to_owned()), "\x1b]0;abc\x07"),
            (Control::Notify("done\n".to_owned()), "\x1b]9;done\x07"),
            (Control::Notify("4;1;50".to_owned()), "\x1b]9; 4;1;50\x07"),
            (Control::Progress(Some(250)), "\x1b]9;4;1;100\x07"),
            (
                Control::Status {
                    state: ProgramState::Blocked,
                    kind: Some("auth"),
                    message: "a\u{7}\u{1b}]b".to_owned(),
                },
                "\x1b]7501;state=blocked:app=pi:kind=auth:msg=YWI=\x1b\\",
            ),
            (
                Control::Status { state: ProgramState::Idle, kind: None, message: String::new() },
                "\x1b]7501;state=idle:app=pi\x1b\\",
            ),
            (Control::Copy("é".to_owned()), "\x1b]52;c;w6k=\x07"),
            (Control::CopyAroundScreen("é".to_owned()), "\x1bP\x1b]52;c;w6k=\x07\x1b\\"),
        ] {
            assert_eq!(control.encode(), expected);
        }
    }

    #[test]
    fn screen_gets_a_long_copy_in_strings_that_it_hands_on() {
        let text = "a long text ".repeat(1000);
        let wrapped = Control::CopyAroundScreen(text.clone()).encode();
        let strings: Vec<&str> = wrapped.split_terminator("\x1b\\").collect();
        assert!(strings.len() > 60 && wrapped.ends_with("\x1b\\"), "{}", strings.len());
        assert!(strings.iter().all(|string| string.len() <= 250), "{strings:?}");
        let handed_on: String = strings.iter().map(|string| string.strip_prefix("\x1bP").unwrap()).collect();
        assert_eq!(handed_on, Control::Copy(text).encode());
    }

    #[test]
    fn text_passes_the_same_filter_as_rows() {
        let text = "a\u{202e}fdp.exe\u{2066}\u{200f}\u{feff} \u{1b}[31mred\u{1b}]0;x\u{7}\n\u{2028}end";
        assert_eq!(Control::Title(text.to_owned()).encode(), "\x1b]0;afdp.exe red end\x07");
        assert_eq!(Control::Notify(text.to_owned()).encode(), "\x1b]9;afdp.exe red end\x07");
    }
}
