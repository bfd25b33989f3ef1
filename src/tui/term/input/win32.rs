//! Keys of win32-input-mode: `ESC [ Vk ; Sc ; Uc ; Kd ; Cs ; Rc _`, the fields of a key event of
//! Windows.
//!
//! pi does not ask for this mode, but another program may have left it on.
//! See <https://github.com/microsoft/terminal/blob/main/doc/specs/%234999%20-%20Improved%20keyboard%20handling%20in%20Conpty.md>.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// No key repeats more often between two reads.
const MAX_REPEATS: usize = 32;

/// Joins the halves of characters beyond U+FFFF, which come as two keys.
#[derive(Debug, Default)]
pub(super) struct Win32Keys {
    high: Option<u16>,
}

impl Win32Keys {
    /// The keys of `sequence`; `None` if it is not of this mode. Releases and modifiers alone are
    /// no keys.
    pub(super) fn keys(&mut self, sequence: &[u8]) -> Option<Vec<KeyEvent>> {
        let fields = WindowsKey::of(sequence)?;
        if !fields.is_down {
            return Some(Vec::new());
        }
        let typed = self.typed(fields.unit);
        let key = fields.key(typed).map(|(code, modifiers)| KeyEvent::new(code, modifiers));
        Some(key.into_iter().cycle().take(fields.n_repeats * usize::from(key.is_some())).collect())
    }

    /// The character that ends with `unit` of UTF-16.
    fn typed(&mut self, unit: u16) -> Option<char> {
        match (self.high.take(), unit) {
            (_, 0xd800..0xdc00) => {
                self.high = Some(unit);
                None
            }
            (Some(high), 0xdc00..0xe000) => char::decode_utf16([high, unit]).next()?.ok(),
            (_, unit) => char::from_u32(u32::from(unit)).filter(|c| *c != '\0'),
        }
    }
}

struct WindowsKey {
    virtual_key: u32,
    unit: u16,
    is_down: bool,
    control: u32,
    n_repeats: usize,
}

impl WindowsKey {
    fn of(sequence: &[u8]) -> Option<Self> {
        let body = std::str::from_utf8(sequence.strip_prefix(b"\x1b[")?.strip_suffix(b"_")?).ok()?;
        let mut numbers = body.split(';').map(|number| match number {
            "" => Some(None),
            number => number.parse::<u32>().ok().map(Some),
        });
        let mut next = |default: u32| {
            numbers.next().map_or(Some(default), |number| number.map(|n| n.unwrap_or(default)))
        };
        let virtual_key = next(0)?;
        let _scan_code = next(0)?;
        let unit = u16::try_from(next(0)?).ok()?;
        let is_down = next(0)? != 0;
        let control = next(0)?;
        let n_repeats = usize::try_from(next(1)?).ok()?.clamp(1, MAX_REPEATS);
        numbers.next().is_none().then_some(Self { virtual_key, unit, is_down, control, n_repeats })
    }

    fn key(&self, typed: Option<char>) -> Option<(KeyCode, KeyModifiers)> {
        let mut modifiers = self.modifiers();
        if let Some(code) = self.named_key() {
            return Some((code, modifiers));
        }
        // AltGr is ctrl and alt, with a character of its own.
        let is_graph = modifiers.contains(KeyModifiers::CONTROL | KeyModifiers::ALT);
        match typed {
            Some(c) if !c.is_control() && is_graph => {
                modifiers -= KeyModifiers::CONTROL | KeyModifiers::ALT;
                Some((KeyCode::Char(c), modifiers))
            }
            Some(c) if !c.is_control() => Some((KeyCode::Char(c), modifiers)),
            // With ctrl the character is a control character, or none.
            Some(_) | None => Some((KeyCode::Char(self.plain_key()?), modifiers)),
        }
    }

    fn modifiers(&self) -> KeyModifiers {
        let bits = [(0x10, KeyModifiers::SHIFT), (0x0c, KeyModifiers::CONTROL), (0x03, KeyModifiers::ALT)];
        bits.into_iter().filter(|(bits, _)| self.control & bits != 0).map(|(_, modifier)| modifier).collect()
    }

    /// Keys that Windows knows by their number.
    fn named_key(&self) -> Option<KeyCode> {
        Some(match self.virtual_key {
            0x08 => KeyCode::Backspace,
            0x09 if self.control & 0x10 != 0 => KeyCode::BackTab,
            0x09 => KeyCode::Tab,
            0x0d => KeyCode::Enter,
            0x1b => KeyCode::Esc,
            0x21 => KeyCode::PageUp,
            0x22 => KeyCode::PageDown,
            0x23 => KeyCode::End,
            0x24 => KeyCode::Home,
            0x25 => KeyCode::Left,
            0x26 => KeyCode::Up,
            0x27 => KeyCode::Right,
            0x28 => KeyCode::Down,
            0x2d => KeyCode::Insert,
            0x2e => KeyCode::Delete,
            key @ 0x70..=0x87 => KeyCode::F(u8::try_from(key - 0x6f).ok()?),
            _ => return None,
        })
    }

    /// The letter or digit of a key whose character is none.
    fn plain_key(&self) -> Option<char> {
        let is_plain = matches!(self.virtual_key, 0x20 | 0x30..=0x39 | 0x41..=0x5a);
        char::from_u32(self.virtual_key).filter(|_| is_plain).map(|c| c.to_ascii_lowercase())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(sequences: &[&str], expected: &[(KeyCode, KeyModifiers)]) {
        let mut keys = Win32Keys::default();
        let found: Vec<(KeyCode, KeyModifiers)> = sequences
            .iter()
            .flat_map(|sequence| keys.keys(sequence.as_bytes()).unwrap())
            .map(|key| (key.code, key.modifiers))
            .collect();
        assert_eq!(found, expected, "{sequences:?}");
    }

    #[test]
    fn keys_of_windows_are_keys() {
        let none = KeyModifiers::NONE;
        let char = |c: char, modifiers| (KeyCode::Char(c), modifiers);
        check(&["\x1b[72;35;104;1;0;1_", "\x1b[72;35;104;0;0;1_"], &[char('h', none)]);
        check(&["\x1b[72;35;72;1;16;1_"], &[char('H', KeyModifiers::SHIFT)]);
        check(&["\x1b[67;46;3;1;8;1_"], &[char('c', KeyModifiers::CONTROL)]);
        check(&["\x1b[66;48;98;1;2;1_"], &[char('b', KeyModifiers::ALT)]);
        check(&["\x1b[13;28;13;1;0;1_"], &[(KeyCode::Enter, none)]);
        check(&["\x1b[27;1;27;1;0;1_"], &[(KeyCode::Esc, none)]);
        check(&["\x1b[38;72;0;1;256;2_"], &[(KeyCode::Up, none); 2]);
        check(&["\x1b[112;59;0;1;0;1_"], &[(KeyCode::F(1), none)]);
        check(&["\x1b[9;15;9;1;16;1_"], &[(KeyCode::BackTab, KeyModifiers::SHIFT)]);
        // AltGr and Q on a German keyboard.
        check(&["\x1b[81;16;64;1;9;1_"], &[char('@', none)]);
        // Ctrl alone.
        check(&["\x1b[17;29;0;1;8;1_"], &[]);
        check(&["\x1b[0;0;55357;1;0;1_", "\x1b[0;0;56832;1;0;1_"], &[char('😀', none)]);
        check(&["\x1b[;;97;1_"], &[char('a', none)]);
    }

    #[test]
    fn other_sequences_are_not_of_this_mode() {
        for sequence in
            ["\x1b[A", "\x1b[72;35_x", "\x1b[a;1_", "\x1b[1;2;3;4;5;6;7_", "\x1b[1;2;99999999;1_", "_"]
        {
            assert_eq!(Win32Keys::default().keys(sequence.as_bytes()), None, "{sequence:?}");
        }
    }
}
