//! What a terminal can be told besides what to show: its title, a notification,
//! progress, the clipboard.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// One such message. Text is cleaned of control characters when encoded.
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
    /// Puts text on the clipboard (OSC 52), also through ssh; terminals may refuse
    /// silently and limit the size.
    Copy(String),
}

impl Control {
    pub(super) fn encode(&self) -> String {
        match self {
            Self::Title(text) => format!("\x1b]0;{}\x07", plain(text)),
            Self::Bell => "\x07".to_owned(),
            Self::Notify(text) => format!("\x1b]9;{}\x07", plain(text)),
            Self::Progress(Some(percent)) => format!("\x1b]9;4;1;{}\x07", percent.min(&100)),
            Self::Progress(None) => "\x1b]9;4;0;\x07".to_owned(),
            Self::Busy => "\x1b]9;4;3;\x07".to_owned(),
            Self::Copy(text) => format!("\x1b]52;c;{}\x07", STANDARD.encode(text)),
        }
    }
}

fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_end_its_sequence() {
        for (control, expected) in [
            (Control::Title("a\u{7}b\u{1b}\\\u{9c}c".to_owned()), "\x1b]0;ab\\c\x07"),
            (Control::Notify("done\n".to_owned()), "\x1b]9;done\x07"),
            (Control::Progress(Some(250)), "\x1b]9;4;1;100\x07"),
            (Control::Copy("é".to_owned()), "\x1b]52;c;w6k=\x07"),
        ] {
            assert_eq!(control.encode(), expected);
        }
    }
}
