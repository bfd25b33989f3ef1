//! One key with its modifiers: `ctrl+x`, `shift+enter`, `pageUp`, `alt+]`.

use std::fmt;
use std::str::FromStr;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use thiserror::Error;

/// A key with modifiers, in a single form for all terminals: letters are
/// lower case with `shift` as a modifier, other characters represent themselves
/// and have no `shift`, because the keyboard layout decides how they are typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Chord {
    code: KeyCode,
    modifiers: KeyModifiers,
}

/// Why a text is not a chord.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ChordError {
    #[error("{key:?} is not a key")]
    UnknownKey { key: String },
    #[error("{modifier:?} is not a modifier; use ctrl, shift, alt or super")]
    UnknownModifier { modifier: String },
    #[error("{modifier:?} is there twice")]
    RepeatedModifier { modifier: String },
}

const MODIFIERS: [(KeyModifiers, &str); 4] = [
    (KeyModifiers::CONTROL, "ctrl"),
    (KeyModifiers::SHIFT, "shift"),
    (KeyModifiers::ALT, "alt"),
    (KeyModifiers::SUPER, "super"),
];

/// The first name of a key is the one shown.
const KEYS: [(KeyCode, &str); 22] = [
    (KeyCode::Esc, "escape"),
    (KeyCode::Esc, "esc"),
    (KeyCode::Enter, "enter"),
    (KeyCode::Enter, "return"),
    (KeyCode::Tab, "tab"),
    (KeyCode::Char(' '), "space"),
    (KeyCode::Backspace, "backspace"),
    (KeyCode::Delete, "delete"),
    (KeyCode::Delete, "del"),
    (KeyCode::Insert, "insert"),
    (KeyCode::KeypadBegin, "clear"),
    (KeyCode::Home, "home"),
    (KeyCode::End, "end"),
    (KeyCode::PageUp, "pageUp"),
    (KeyCode::PageDown, "pageDown"),
    (KeyCode::Up, "up"),
    (KeyCode::Down, "down"),
    (KeyCode::Left, "left"),
    (KeyCode::Right, "right"),
    (KeyCode::Char('+'), "plus"),
    (KeyCode::Char('-'), "minus"),
    (KeyCode::Menu, "menu"),
];

impl Chord {
    pub fn new(code: KeyCode, modifiers: KeyModifiers) -> Self {
        let known = KeyModifiers::CONTROL | KeyModifiers::SHIFT | KeyModifiers::ALT | KeyModifiers::SUPER;
        let modifiers = modifiers & known;
        match code {
            KeyCode::BackTab => Self { code: KeyCode::Tab, modifiers: modifiers | KeyModifiers::SHIFT },
            KeyCode::Char(c) if c.is_uppercase() && lower(c) != c => {
                Self { code: KeyCode::Char(lower(c)), modifiers: modifiers | KeyModifiers::SHIFT }
            }
            KeyCode::Char(c) if c != ' ' && !c.is_alphabetic() => {
                Self { code, modifiers: modifiers - KeyModifiers::SHIFT }
            }
            code => Self { code, modifiers },
        }
    }

    /// The chord of a key press: by the character it produces, not by the position of
    /// the key, so that bindings follow the keyboard layout.
    ///
    /// Terminals without a keyboard protocol send control characters; crossterm
    /// reports some of those as digits (`ctrl+4` for 0x1C), which are converted to the
    /// symbols of the ASCII table here.
    pub fn from_event(event: &KeyEvent) -> Self {
        let code = match event.code {
            KeyCode::Char(digit @ '4'..='7') if event.modifiers.contains(KeyModifiers::CONTROL) => {
                KeyCode::Char(match digit {
                    '4' => '\\',
                    '5' => ']',
                    '6' => '^',
                    _ => '-',
                })
            }
            code => code,
        };
        Self::new(code, event.modifiers)
    }

    /// A press of the key.
    #[cfg(test)]
    pub fn event(self) -> KeyEvent {
        KeyEvent::new(self.code, self.modifiers)
    }

    /// What terminals without a keyboard protocol send for this key, if that is another key; they differ for one.
    pub fn without_protocol(self) -> Vec<Self> {
        let Self { code, modifiers } = self;
        let alt = modifiers & KeyModifiers::ALT;
        let has_ctrl = modifiers.contains(KeyModifiers::CONTROL);
        let sent = match code {
            _ if modifiers.contains(KeyModifiers::SUPER) => self,
            KeyCode::Backspace if has_ctrl => {
                let ctrl_h = Self { code: KeyCode::Char('h'), modifiers: alt | KeyModifiers::CONTROL };
                return vec![ctrl_h, Self { modifiers: alt, ..self }];
            }
            KeyCode::Enter => Self { modifiers: alt, ..self },
            KeyCode::Char('i') if has_ctrl => Self { code: KeyCode::Tab, modifiers: alt },
            KeyCode::Char('m') if has_ctrl => Self { code: KeyCode::Enter, modifiers: alt },
            KeyCode::Char('[') if has_ctrl => Self { code: KeyCode::Esc, modifiers: alt },
            KeyCode::Char(c) if has_ctrl && c.is_alphabetic() => {
                Self { modifiers: modifiers - KeyModifiers::SHIFT, ..self }
            }
            _ => self,
        };
        if sent == self { Vec::new() } else { vec![sent] }
    }

    /// Whether this key is a character, and `other` the same without shift.
    pub fn differs_in_shift(self, other: Self) -> bool {
        matches!(self.code, KeyCode::Char(_))
            && self == Self { modifiers: other.modifiers | KeyModifiers::SHIFT, ..other }
    }

    /// Whether this key types a character.
    pub fn is_text(&self) -> bool {
        matches!(self.code, KeyCode::Char(_)) && (self.modifiers - KeyModifiers::SHIFT).is_empty()
    }

    /// The text that this key press types: a character without ctrl, alt or super. With
    /// `AltGr`, which some terminals report as ctrl+alt, a character other than an ASCII
    /// letter or digit counts as typed.
    pub fn typed(event: &KeyEvent) -> Option<char> {
        let KeyCode::Char(c) = event.code else { return None };
        let held = event.modifiers - KeyModifiers::SHIFT;
        let alt_gr = KeyModifiers::CONTROL | KeyModifiers::ALT;
        let by_alt_gr = held == alt_gr && !c.is_ascii_alphanumeric() && c != ' ' && c != ']';
        (!c.is_control() && (held.is_empty() || by_alt_gr)).then_some(c)
    }
}

fn lower(c: char) -> char {
    let mut lower = c.to_lowercase();
    match (lower.next(), lower.next()) {
        (Some(only), None) => only,
        _ => c,
    }
}

impl FromStr for Chord {
    type Err = ChordError;

    fn from_str(text: &str) -> Result<Self, ChordError> {
        // The key follows the last plus, unless the key is the plus.
        let (modifiers, key) = match text.strip_suffix('+') {
            Some(before) if before.is_empty() || before.ends_with('+') => (before, "+"),
            _ => text.rsplit_once('+').unwrap_or(("", text)),
        };
        let mut held = KeyModifiers::NONE;
        for name in modifiers.split('+').filter(|name| !name.is_empty()) {
            let found = MODIFIERS.iter().find(|(_, known)| known.eq_ignore_ascii_case(name.trim()));
            let (modifier, _) =
                found.ok_or_else(|| ChordError::UnknownModifier { modifier: name.to_owned() })?;
            if held.contains(*modifier) {
                return Err(ChordError::RepeatedModifier { modifier: name.to_owned() });
            }
            held |= *modifier;
        }
        let code = parse_key(key.trim()).ok_or_else(|| ChordError::UnknownKey { key: key.to_owned() })?;
        // `A` means the key a; shift must be spelled out.
        let code = match code {
            KeyCode::Char(c) => KeyCode::Char(lower(c)),
            code => code,
        };
        Ok(Self::new(code, held))
    }
}

fn parse_key(key: &str) -> Option<KeyCode> {
    if let Some((code, _)) = KEYS.iter().find(|(_, name)| name.eq_ignore_ascii_case(key)) {
        return Some(*code);
    }
    let mut chars = key.chars();
    match (chars.next()?, chars.as_str()) {
        (c, "") if !c.is_control() && !c.is_whitespace() => Some(KeyCode::Char(c)),
        ('f' | 'F', number) => number.parse().ok().filter(|number| (1..=24).contains(number)).map(KeyCode::F),
        _ => None,
    }
}

impl fmt::Display for Chord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (modifier, name) in MODIFIERS {
            if self.modifiers.contains(modifier) {
                write!(f, "{name}+")?;
            }
        }
        match self.code {
            KeyCode::F(number) => write!(f, "f{number}"),
            KeyCode::Char(c) if c != ' ' => write!(f, "{c}"),
            code => match KEYS.iter().find(|(known, _)| *known == code) {
                Some((_, name)) => f.write_str(name),
                None => write!(f, "{code}"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_chords_are_the_same() {
        for (text, shown) in [
            ("ctrl+x", "ctrl+x"),
            ("Ctrl+X", "ctrl+x"),
            ("shift+ctrl+p", "ctrl+shift+p"),
            ("shift+enter", "shift+enter"),
            ("esc", "escape"),
            ("pageup", "pageUp"),
            ("alt+]", "alt+]"),
            ("ctrl+-", "ctrl+-"),
            ("ctrl++", "ctrl++"),
            ("+", "+"),
            ("f12", "f12"),
            ("super+space", "super+space"),
            ("é", "é"),
        ] {
            let chord: Chord = text.parse().unwrap();
            assert_eq!(chord.to_string(), shown, "{text:?}");
            assert_eq!(shown.parse(), Ok(chord));
        }
        for text in ["", "ctrl+", "hyper+x", "f99", "ab", "ctrl+ab", "ctrl+ctrl+x", "Alt+ctrl+alt+x"] {
            assert!(text.parse::<Chord>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn events_of_every_protocol_give_the_same_chord() {
        let event = |code, modifiers| Chord::from_event(&KeyEvent::new(code, modifiers)).to_string();
        for (code, modifiers, shown) in [
            (KeyCode::Char('P'), KeyModifiers::CONTROL | KeyModifiers::SHIFT, "ctrl+shift+p"),
            (KeyCode::Char('p'), KeyModifiers::CONTROL | KeyModifiers::SHIFT, "ctrl+shift+p"),
            (KeyCode::Char('L'), KeyModifiers::NONE, "shift+l"),
            (KeyCode::Char('?'), KeyModifiers::SHIFT, "?"),
            (KeyCode::BackTab, KeyModifiers::SHIFT, "shift+tab"),
            (KeyCode::BackTab, KeyModifiers::NONE, "shift+tab"),
            (KeyCode::Char('5'), KeyModifiers::CONTROL, "ctrl+]"),
            (KeyCode::Char('7'), KeyModifiers::CONTROL, "ctrl+-"),
            (KeyCode::Char('j'), KeyModifiers::CONTROL, "ctrl+j"),
        ] {
            assert_eq!(event(code, modifiers), shown, "{code:?} {modifiers:?}");
        }
    }

    #[test]
    fn only_plain_characters_are_typed() {
        let alt_gr = KeyModifiers::CONTROL | KeyModifiers::ALT;
        for (c, modifiers, typed) in [
            ('a', KeyModifiers::NONE, true),
            ('A', KeyModifiers::SHIFT, true),
            ('a', KeyModifiers::CONTROL, false),
            ('a', KeyModifiers::ALT, false),
            ('@', alt_gr, true),
            ('e', alt_gr, false),
        ] {
            let event = KeyEvent::new(KeyCode::Char(c), modifiers);
            assert_eq!(Chord::typed(&event), typed.then_some(c), "{c} {modifiers:?}");
        }
    }
}
