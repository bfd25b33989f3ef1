//! Parses the bytes that a terminal sends into events.
//!
//! `terminput` interprets sequences; this file splits them. A
//! sequence may arrive in pieces, and unknown ones are dropped without
//! affecting later keys. An Escape is a key or the beginning of one; the caller
//! decides how long to wait for the rest.

use crossterm::event::{Event, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::Position;

use super::doubled::TypedKey;
use super::strings;
use super::win32::Win32Keys;

const ESCAPE: u8 = 0x1b;
const CTRL_H: u8 = 0x08;
const DELETE: u8 = 0x7f;
const PASTE: &[u8] = b"\x1b[200~";
const PASTE_END: &[u8] = b"\x1b[201~";
/// alt+enter. With kitty's keyboard protocol that key is sent otherwise, and this is what users have their
/// terminal send for shift+enter.
const ESCAPED_RETURN: &[u8] = b"\x1b\r";
/// shift+enter in kitty's keyboard protocol.
const SHIFT_ENTER: &[u8] = b"\x1b[13;2u";
/// Maximum length of a sequence other than a paste or an answer.
const LONGEST: usize = 128;
/// How much of a string is kept: terminals explain errors in words.
const LONGEST_ANSWER: usize = 1024;

/// A parsed item from the terminal.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Sent {
    Event(Event),
    /// The answer to a cursor query.
    Cursor(Position),
    /// A sequence about the terminal itself.
    Report(Vec<u8>),
}

/// Keeps an incomplete sequence.
#[derive(Debug, Default)]
pub(super) struct Parser {
    sequence: Vec<u8>,
    /// The last bytes, if a string of the terminal may begin with them, or a key with Alt be in them: what
    /// comes next decides that.
    start: Vec<u8>,
    /// Whether a cursor query is pending; its answer looks like a key.
    pub(super) expects_cursor: bool,
    /// Number of lists of questions whose last answer has not come. Their answers look like
    /// Alt with a key and what is typed after it.
    pub(super) n_asked: u8,
    /// Whether the sequence began like an answer at once, which nobody types: tmux passes on
    /// answers of its terminal after its own last one.
    is_answer: bool,
    /// Whether no answer has lost its beginning, and none comes that nobody asked for. Such ones can only be
    /// told by what one read contains.
    pub(super) has_whole_answers: bool,
    /// Whether the terminal's Backspace sends 0x08, which is ctrl+h elsewhere.
    pub(super) erases_with_ctrl_h: bool,
    /// Whether the terminal has kitty's keyboard protocol.
    pub(super) has_kitty_keys: bool,
    /// The last key, if the terminal may send its character, too.
    typed: Option<TypedKey>,
    win32: Win32Keys,
}

impl Parser {
    /// Parses one read of the terminal and appends the completed items.
    pub(super) fn feed(&mut self, bytes: &[u8], out: &mut impl Extend<Sent>) {
        let mut begun = std::mem::take(&mut self.start);
        if self.holds_escape() {
            begun.append(&mut self.sequence);
        }
        if begun.is_empty() {
            self.read(bytes, true, out);
        } else {
            self.read(&[&begun, bytes].concat(), true, out);
        }
    }

    /// Parses bytes that came at once. What may be the start of a string is left for the next ones if it `waits`.
    fn read(&mut self, bytes: &[u8], waits: bool, out: &mut impl Extend<Sent>) {
        let waits = waits && !self.has_whole_answers && self.n_asked == 0;
        // What comes after text was typed with it.
        let may_be_cut = self.sequence.is_empty() && !self.has_whole_answers;
        let mut n_lost = if may_be_cut { cut_answer(bytes) } else { 0 };
        for (at, byte) in bytes.iter().enumerate() {
            if n_lost > 0 {
                n_lost -= 1;
                continue;
            }
            // An Escape before a sequence is a key of its own.
            if self.holds_escape() && *byte == ESCAPE {
                self.complete(out);
            }
            // A character that broke off takes no key with it.
            if self.sequence.first().is_some_and(|first| *first >= 0x80) && !(0x80..0xc0).contains(byte) {
                self.sequence.clear();
            }
            if self.sequence.is_empty() && waits && strings::may_begin(&bytes[at..]) {
                self.start = bytes[at..].to_vec();
                return;
            }
            if self.sequence.is_empty() {
                self.is_answer = !self.has_whole_answers && strings::begins(&bytes[at..]);
            }
            self.sequence.push(*byte);
            // An Escape followed by another byte begins a sequence.
            if !self.holds_escape() {
                self.complete(out);
            }
        }
    }

    /// Whether an Escape has arrived and nothing after it.
    pub(super) fn holds_escape(&self) -> bool {
        self.sequence == [ESCAPE]
    }

    /// Whether what arrived last may be the start of a string.
    pub(super) fn holds_start(&self) -> bool {
        !self.start.is_empty()
    }

    /// Whether that is more than a key with alt.
    pub(super) fn holds_more_than_a_key(&self) -> bool {
        self.start.len() > 2
    }

    /// Reports an Escape as a key, and what could have begun a string, which is returned, as keys, because nothing
    /// followed in time.
    pub(super) fn release_escape(&mut self, out: &mut impl Extend<Sent>) -> Vec<u8> {
        let start = std::mem::take(&mut self.start);
        self.read(&start, false, out);
        if self.holds_escape() {
            self.complete(out);
        }
        start
    }

    /// Drops the beginning of a sequence whose rest will not come.
    pub(super) fn drop_cut(&mut self) {
        if !self.is_pasting() && !self.holds_escape() {
            self.sequence.clear();
            self.is_answer = false;
        }
    }

    /// Whether a paste has begun and not ended.
    pub(super) fn is_pasting(&self) -> bool {
        self.sequence.starts_with(PASTE)
    }

    /// Reports what has come of a paste, whose end will not come.
    pub(super) fn end_paste(&mut self, out: &mut impl Extend<Sent>) {
        if self.is_pasting() {
            self.feed(PASTE_END, out);
        }
    }

    /// Handles the sequence if it is complete or invalid.
    fn complete(&mut self, out: &mut impl Extend<Sent>) {
        if self.sequence.starts_with(PASTE) {
            if let Some(text) = self.sequence.strip_suffix(PASTE_END) {
                let mut text = text.get(PASTE.len()..).unwrap_or_default();
                // Some terminals put the marks around a paste that has them already.
                while let Some(inner) = text.strip_prefix(PASTE) {
                    text = inner;
                }
                out.extend([Sent::Event(Event::Paste(String::from_utf8_lossy(text).into_owned()))]);
                self.sequence.clear();
            }
            return;
        }
        if self.expects_cursor
            && let Some(position) = cursor(&self.sequence)
        {
            self.expects_cursor = false;
            out.extend([Sent::Cursor(position)]);
            self.sequence.clear();
            return;
        }
        if self.is_answer || self.n_asked > 0 && strings::may_answer(&self.sequence) {
            let is_complete = self.sequence.ends_with(b"\x07") || self.sequence.ends_with(b"\x1b\\");
            let last = self.sequence.last().copied().unwrap_or_default();
            if is_complete {
                out.extend([Sent::Report(std::mem::take(&mut self.sequence))]);
            } else if last < b' ' && last != ESCAPE {
                // A key: strings have no other control characters.
                self.sequence.drain(..self.sequence.len() - 1);
                self.is_answer = false;
                self.complete(out);
            } else if let Some(n_string) = cut_short(&self.sequence) {
                let rest = self.sequence.split_off(n_string);
                out.extend([Sent::Report(std::mem::replace(&mut self.sequence, rest))]);
                self.is_answer &= strings::may_answer(&self.sequence);
                if self.sequence.ends_with(&[ESCAPE, ESCAPE]) {
                    self.sequence.pop();
                } else {
                    self.complete(out);
                }
            } else if self.sequence.len() >= LONGEST_ANSWER {
                // The rest is no text either.
                self.sequence.truncate(LONGEST_ANSWER / 2);
            }
            return;
        }
        if is_report(&self.sequence) {
            if self.sequence.starts_with(b"\x1b[?") && self.sequence.ends_with(b"c") {
                self.n_asked = self.n_asked.saturating_sub(1);
            }
            out.extend([Sent::Report(std::mem::take(&mut self.sequence))]);
            return;
        }
        if is_mouse(&self.sequence) {
            out.extend(mouse(&self.sequence).map(Event::Mouse).map(Sent::Event));
            self.sequence.clear();
            return;
        }
        if self.erases_with_ctrl_h && self.sequence.ends_with(&[CTRL_H]) {
            match self.sequence.as_mut_slice() {
                [byte] | [ESCAPE, byte] => *byte = DELETE,
                _ => {}
            }
        }
        if self.has_kitty_keys && self.sequence == ESCAPED_RETURN {
            self.sequence = SHIFT_ENTER.to_vec();
        }
        let typed = self.typed.take();
        if typed.is_some_and(|key| key.types(&self.sequence)) {
            self.sequence.clear();
            return;
        }
        if let Some(keys) = self.win32.keys(&self.sequence) {
            out.extend(keys.into_iter().map(Event::Key).map(Sent::Event));
            self.sequence.clear();
            return;
        }
        let key = other_key(&self.sequence).or_else(|| rxvt_key(&self.sequence));
        if let Some(key) = key.or_else(|| latin_key(&self.sequence)) {
            self.sequence = key;
        }
        if is_begun(&self.sequence) && self.may_go_on() {
            self.typed = typed;
            return;
        }
        match terminput::Event::parse_from(&self.sequence) {
            Ok(Some(event)) => {
                out.extend(terminput_crossterm::to_crossterm(event).ok().map(Sent::Event));
                self.typed = TypedKey::of(&self.sequence);
            }
            Ok(None) if self.may_go_on() => {
                self.typed = typed;
                return;
            }
            Ok(None) | Err(_) => {}
        }
        self.sequence.clear();
    }

    /// Whether more bytes can complete this sequence.
    fn may_go_on(&self) -> bool {
        self.sequence.len() < LONGEST
    }
}

/// More bytes than the sequence of any key has.
const LONGEST_KEY: usize = 32;

/// What bytes are that came after an Escape which was taken for a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Tail {
    /// The rest of its sequence, here with the Escape: `[`, parameters and a final byte, `O` and the
    /// letter of an arrow or function key, or an answer.
    Rest(Vec<u8>),
    /// The beginning of that.
    Beginning,
    /// What may be the beginning of a string, or a key that was typed.
    Start,
    /// Something else.
    Other,
}

impl Tail {
    pub(super) fn of(bytes: &[u8]) -> Self {
        let whole = [&[ESCAPE], bytes].concat();
        let is_rest = match bytes {
            [] => return Self::Other,
            [b'[', rest @ ..] => match rest.iter().find(|byte| !(0x20..=0x3f).contains(*byte)) {
                Some(last) => (0x40..=0x7e).contains(last),
                None if bytes.len() < LONGEST_KEY => return Self::Beginning,
                None => false,
            },
            [b'O'] => return Self::Beginning,
            [b'O', last, ..] => matches!(last, b'A'..=b'D' | b'F' | b'H' | b'P'..=b'S'),
            _ if strings::may_begin(&whole) => return Self::Start,
            _ => strings::begins(&whole),
        };
        if is_rest { Self::Rest(whole) } else { Self::Other }
    }

    /// Whether these bytes, of one read, are the rest of a sequence however late they come: the marks of a paste, and
    /// what the terminal says about itself. Nobody types them at once.
    pub(super) fn is_certain(bytes: &[u8]) -> bool {
        let whole = [&[ESCAPE], bytes].concat();
        let last = bytes.iter().skip(1).position(|byte| (0x40..=0x7e).contains(byte));
        let n_report = last.map_or(0, |at| at + 3);
        [PASTE, PASTE_END].iter().any(|mark| whole.starts_with(mark))
            || strings::begins(&whole)
            || is_report(&whole[..n_report.min(whole.len())])
    }
}

/// The length of the end of a colour that `bytes` begin with, such as `c0c/0c0c/0c0c ESC \`, up to the end of
/// the string; 0 if there is none. tmux 3.6 takes the beginning of a late answer for keys of its own and passes
/// on the rest. Nobody types hexadecimal numbers between slashes and the end of a string in one read.
fn cut_answer(bytes: &[u8]) -> usize {
    const LONGEST_COLOR: usize = 40;
    let near = &bytes[..bytes.len().min(LONGEST_COLOR)];
    let is_part = |byte: &u8| byte.is_ascii_hexdigit() || *byte == b'/';
    // The end of `]11;rgb:` or `]4;15;rgb:` may be before the numbers.
    let start = near.iter().position(|byte| *byte == b':').map_or(0, |at| at + 1);
    let starts_well = near[..start].iter().all(|byte| byte.is_ascii_digit() || b"];rgb:".contains(byte));
    let n_color = near[start..].iter().take_while(|byte| is_part(byte)).count();
    let color = &near[start..start + n_color];
    let n_slashes = color.iter().filter(|byte| **byte == b'/').count();
    let numbers_fit = color.split(|byte| *byte == b'/').all(|number| number.len() <= 4)
        && color.rsplit(|byte| *byte == b'/').next().is_some_and(|last| last.len() >= 2);
    let end = match &near[start + n_color..] {
        [b'\x07', ..] => 1,
        [ESCAPE, b'\\', ..] => 2,
        _ => 0,
    };
    let is_cut = end > 0 && starts_well && numbers_fit && (1..=2).contains(&n_slashes);
    if is_cut { start + n_color + end } else { 0 }
}

/// The length of a string that another sequence ends, of which two bytes have come: every Escape ends a
/// string, and urxvt 9.30 ends its answers with nothing but that.
fn cut_short(sequence: &[u8]) -> Option<usize> {
    let n_string = sequence.len().checked_sub(2)?;
    (n_string > 0 && sequence[n_string] == ESCAPE).then_some(n_string)
}

/// `ESC [ ? …`, `ESC [ > …`, `ESC [ = …` or `ESC [ … t` with its last byte: the terminal about itself, also where
/// a program before pi asked. No key is like that.
fn is_report(sequence: &[u8]) -> bool {
    let Some((last, start)) = sequence.split_last() else { return false };
    match start.strip_prefix(b"\x1b[") {
        Some([b'?' | b'>' | b'=', rest @ ..]) => !rest.is_empty() && (0x40..=0x7e).contains(last),
        Some(numbers @ [b'0'..=b'9', ..]) => {
            *last == b't' && numbers.iter().all(|byte| byte.is_ascii_digit() || *byte == b';')
        }
        _ => false,
    }
}

/// `ESC [` with parameters, before its last byte.
fn is_begun(sequence: &[u8]) -> bool {
    sequence.strip_prefix(b"\x1b[").is_some_and(|rest| rest.iter().all(|byte| (0x20..=0x3f).contains(byte)))
}

/// A key in the form of xterm's modifyOtherKeys, `ESC [ 27 ; modifiers ; code ~`, in the form of the
/// kitty protocol.
fn other_key(sequence: &[u8]) -> Option<Vec<u8>> {
    // Some terminals are set up to send this for shift+enter.
    if sequence == b"\x1b[13;2~" {
        return Some(SHIFT_ENTER.to_vec());
    }
    let body = sequence.strip_prefix(b"\x1b[27;")?.strip_suffix(b"~")?;
    let (modifiers, code) = std::str::from_utf8(body).ok()?.split_once(';')?;
    let (modifiers, code): (u8, u32) = (modifiers.parse().ok()?, code.parse().ok()?);
    Some(format!("\x1b[{code};{modifiers}u").into_bytes())
}

/// A key of the kitty protocol that is held with ctrl, alt or super and types a letter of another script
/// than Latin: in the place of that letter, the one that the key has on the standard layout, which
/// the terminal reports as the third code: `ESC [ code : shifted : standard ; modifiers u`. Bindings would
/// be dead on such layouts otherwise. Letters of Latin layouts stay where the user's layout has them.
/// See <https://sw.kovidgoyal.net/kitty/keyboard-protocol/#key-codes>.
fn latin_key(sequence: &[u8]) -> Option<Vec<u8>> {
    const ALT_CTRL_SUPER: u32 = 0b1110;
    let body = std::str::from_utf8(sequence.strip_prefix(b"\x1b[")?.strip_suffix(b"u")?).ok()?;
    let (codes, held) = body.split_once(';')?;
    let mut codes = codes.split(':');
    let typed = char::from_u32(codes.next()?.parse().ok()?)?;
    let standard: u32 = codes.nth(1)?.parse().ok()?;
    let modifiers = held.split([':', ';']).next()?.parse::<u32>().ok()?.checked_sub(1)?;
    (typed.is_alphabetic() && !is_latin(typed) && modifiers & ALT_CTRL_SUPER != 0)
        .then(|| format!("\x1b[{standard};{held}u").into_bytes())
}

/// Whether a letter is in one of the blocks of Latin letters: up to Latin Extended-B and IPA, whose letters some
/// African and Turkic layouts have, then Latin Extended Additional, C, D and E.
fn is_latin(letter: char) -> bool {
    matches!(letter, '\0'..='\u{2af}' | '\u{1e00}'..='\u{1eff}' | '\u{2c60}'..='\u{2c7f}')
        || matches!(letter, '\u{a720}'..='\u{a7ff}' | '\u{ab30}'..='\u{ab6f}')
}

/// A key with a modifier in rxvt's form, in xterm's: `ESC O a` and `ESC [ a` are ctrl and shift with an
/// arrow, `ESC [ 3 ^`, `$` and `@` are ctrl, shift and both with another key.
fn rxvt_key(sequence: &[u8]) -> Option<Vec<u8>> {
    let arrow = |last: u8, modifiers| Some(format!("\x1b[1;{modifiers}{}", char::from(last)).into_bytes());
    match sequence {
        [ESCAPE, b'O', last @ b'a'..=b'd'] => arrow(last.to_ascii_uppercase(), 5),
        [ESCAPE, b'[', last @ b'a'..=b'd'] => arrow(last.to_ascii_uppercase(), 2),
        [ESCAPE, b'[', number @ .., last @ (b'^' | b'$' | b'@')] => {
            let modifiers = match last {
                b'$' => 2,
                b'^' => 5,
                _ => 6,
            };
            let number = std::str::from_utf8(number).ok()?.parse::<u8>().ok()?;
            Some(format!("\x1b[{number};{modifiers}~").into_bytes())
        }
        _ => None,
    }
}

/// `ESC [ < … M`, `ESC [ < … m` or `ESC [ 1;2;3 M`: the mouse.
fn is_mouse(sequence: &[u8]) -> bool {
    let body =
        sequence.strip_prefix(b"\x1b[").and_then(|rest| rest.strip_suffix(b"M").or(rest.strip_suffix(b"m")));
    body.and_then(|body| body.first()).is_some_and(|first| first.is_ascii_digit() || *first == b'<')
}

/// A report in the only form that pi asks for: `ESC [ < button ; column ; row M`, or `m` for a
/// release, counted from 1. Other reports and buttons without a meaning here are `None`.
/// See <https://invisible-island.net/xterm/ctlseqs/ctlseqs.html#h3-Extended-coordinates>.
fn mouse(sequence: &[u8]) -> Option<MouseEvent> {
    let body = std::str::from_utf8(sequence.strip_prefix(b"\x1b[<")?).ok()?;
    let is_release = body.ends_with('m');
    let mut numbers = body.get(..body.len() - 1)?.split(';').map(|number| number.parse::<u16>().ok());
    let (code, column, row) = (numbers.next()??, numbers.next()??, numbers.next()??);
    const SHIFT: u16 = 4;
    const ALT: u16 = 8;
    const CTRL: u16 = 16;
    const MOTION: u16 = 32;
    let button = || match code & 3 {
        0 => Some(MouseButton::Left),
        1 => Some(MouseButton::Middle),
        2 => Some(MouseButton::Right),
        _ => None,
    };
    let kind = match code & !(SHIFT | ALT | CTRL) {
        64 => MouseEventKind::ScrollUp,
        65 => MouseEventKind::ScrollDown,
        66 => MouseEventKind::ScrollLeft,
        67 => MouseEventKind::ScrollRight,
        0..=2 if is_release => MouseEventKind::Up(button()?),
        0..=2 => MouseEventKind::Down(button()?),
        plain if plain & MOTION > 0 && plain < 64 => MouseEventKind::Drag(button()?),
        _ => return None,
    };
    let pairs = [(SHIFT, KeyModifiers::SHIFT), (ALT, KeyModifiers::ALT), (CTRL, KeyModifiers::CONTROL)];
    let modifiers =
        pairs.into_iter().filter(|(bit, _)| code & bit > 0).map(|(_, modifier)| modifier).collect();
    Some(MouseEvent { kind, column: column.checked_sub(1)?, row: row.checked_sub(1)?, modifiers })
}

/// `ESC [ row ; column R`, counted from 1.
fn cursor(sequence: &[u8]) -> Option<Position> {
    let numbers = sequence.strip_prefix(b"\x1b[")?.strip_suffix(b"R")?;
    let (row, column) = std::str::from_utf8(numbers).ok()?.split_once(';')?;
    let (row, column): (u16, u16) = (row.parse().ok()?, column.parse().ok()?);
    Some(Position::new(column.saturating_sub(1), row.saturating_sub(1)))
}

#[cfg(test)]
mod tests {
    use crossterm::event::{KeyCode, KeyEvent};
    use proptest::prelude::*;

    use super::*;

    fn parse(parser: &mut Parser, chunks: &[&[u8]]) -> Vec<Sent> {
        let mut sent = Vec::new();
        for chunk in chunks {
            parser.feed(chunk, &mut sent);
        }
        parser.release_escape(&mut sent);
        sent
    }

    #[test]
    fn strings_that_nobody_asked_for_are_whole_wherever_they_are_cut() {
        for string in [
            "\x1bP>|kitty(0.26.5)\x1b\\",
            "\x1b_Gi=31;OK\x1b\\",
            "\x1b]11;rgb:1e1e/1e1e/1e1e\x07",
            "\x1bP1+r524742=38\x1b\\",
            "\x1bP0+r\x1b\\",
            "\x1bP1$r0m\x1b\\",
        ] {
            let bytes = string.as_bytes();
            for cut in 1..=3 {
                let sent = parse(&mut Parser::default(), &[&bytes[..cut], &bytes[cut..], b"a"]);
                assert_eq!(sent, [Sent::Report(bytes.to_vec()), plain('a')], "{string:?} cut at {cut}");
            }
            let pieces: Vec<&[u8]> = bytes.chunks(1).collect();
            let sent = parse(&mut Parser::default(), &pieces);
            assert_eq!(sent, [Sent::Report(bytes.to_vec())], "{string:?} in pieces");
        }
        // Keys with Alt, alone and before others.
        for keys in ["\x1b]", "\x1bP", "\x1b_", "\x1b]1", "\x1b]1x", "\x1bPa"] {
            let bytes = keys.as_bytes();
            let whole = parse(&mut Parser::default(), &[bytes]);
            assert_eq!(whole.len(), bytes.len() - 1, "{whole:?}");
            let pieces: Vec<&[u8]> = bytes.chunks(1).collect();
            assert_eq!(parse(&mut Parser::default(), &pieces), whole, "{keys:?}");
        }
    }

    #[test]
    fn mouse_reports_become_events() {
        let check = |report: &str, kind: MouseEventKind, at: (u16, u16), modifiers: KeyModifiers| {
            let event = MouseEvent { kind, column: at.0, row: at.1, modifiers };
            let sent = parse(&mut Parser::default(), &[report.as_bytes(), b"a"]);
            assert_eq!(sent, [Sent::Event(Event::Mouse(event)), plain('a')], "{report:?}");
        };
        let none = KeyModifiers::NONE;
        check("\x1b[<0;1;1M", MouseEventKind::Down(MouseButton::Left), (0, 0), none);
        check("\x1b[<0;300;200m", MouseEventKind::Up(MouseButton::Left), (299, 199), none);
        check("\x1b[<32;3;4M", MouseEventKind::Drag(MouseButton::Left), (2, 3), none);
        check("\x1b[<2;3;4M", MouseEventKind::Down(MouseButton::Right), (2, 3), none);
        check("\x1b[<64;3;4M", MouseEventKind::ScrollUp, (2, 3), none);
        check("\x1b[<73;3;4M", MouseEventKind::ScrollDown, (2, 3), KeyModifiers::ALT);
        check(
            "\x1b[<20;3;4M",
            MouseEventKind::Down(MouseButton::Left),
            (2, 3),
            KeyModifiers::SHIFT | KeyModifiers::CONTROL,
        );
    }

    #[test]
    fn mouse_reports_without_meaning_are_passed_over() {
        for report in [
            "\x1b[32;0M",
            "\x1b[<0;0;0M",
            "\x1b[<35;5;5M",
            "\x1b[<128;5;5M",
            "\x1b[<0;5M",
            "\x1b[<0;99999;5M",
            "\x1b[35;1;1M",
        ] {
            let sent = parse(&mut Parser::default(), &[report.as_bytes(), b"a"]);
            assert_eq!(sent, [key(KeyCode::Char('a'), KeyModifiers::NONE)], "{report:?}");
        }
    }

    fn key(code: KeyCode, modifiers: KeyModifiers) -> Sent {
        Sent::Event(Event::Key(KeyEvent::new(code, modifiers)))
    }

    fn plain(c: char) -> Sent {
        key(KeyCode::Char(c), KeyModifiers::NONE)
    }

    #[test]
    fn sequences_are_cut_apart() {
        let check = |chunks: &[&[u8]], expected: &[Sent]| {
            assert_eq!(parse(&mut Parser::default(), chunks), expected, "{chunks:?}");
        };
        let esc = || key(KeyCode::Esc, KeyModifiers::NONE);
        let up = || key(KeyCode::Up, KeyModifiers::NONE);
        let paste = |text: &str| Sent::Event(Event::Paste(text.to_owned()));
        check(&[b"ab"], &[plain('a'), plain('b')]);
        check(&["ä世".as_bytes()], &[plain('ä'), plain('世')]);
        check(&[&"世".as_bytes()[..1], &"世".as_bytes()[1..]], &[plain('世')]);
        check(&[b"\r"], &[key(KeyCode::Enter, KeyModifiers::NONE)]);
        check(&[b"\x03"], &[key(KeyCode::Char('c'), KeyModifiers::CONTROL)]);
        check(&[b"\x1b"], &[esc()]);
        // Split by a slow connection.
        check(&[b"\x1b", b"[A"], &[up()]);
        check(&[b"\x1b", b"[", b"1;3A"], &[key(KeyCode::Up, KeyModifiers::ALT)]);
        check(&[b"\x1b", b"\r"], &[key(KeyCode::Enter, KeyModifiers::ALT)]);
        check(&[b"\x1ba"], &[key(KeyCode::Char('a'), KeyModifiers::ALT)]);
        check(&[b"\x1b\x1b"], &[esc(), esc()]);
        check(&[b"\x1b\x1b[A"], &[esc(), up()]);
        check(&[b"\x1b[", b"A"], &[up()]);
        check(&[b"\x1b[1;3A"], &[key(KeyCode::Up, KeyModifiers::ALT)]);
        check(&[b"\x1b[13;5u"], &[key(KeyCode::Enter, KeyModifiers::CONTROL)]);
        check(&[b"\x1b[27;2;1", b"3~"], &[key(KeyCode::Enter, KeyModifiers::SHIFT)]);
        check(&[b"\x1b[27;5;99~a"], &[key(KeyCode::Char('c'), KeyModifiers::CONTROL), plain('a')]);
        check(&[b"\x1b[27;3;127~"], &[key(KeyCode::Backspace, KeyModifiers::ALT)]);
        check(&[b"\x1b[27;3;228~"], &[key(KeyCode::Char('ä'), KeyModifiers::ALT)]);
        check(&[b"\x1bOd"], &[key(KeyCode::Left, KeyModifiers::CONTROL)]);
        check(&[b"\x1b[", b"a"], &[key(KeyCode::Up, KeyModifiers::SHIFT)]);
        check(&[b"\x1b[3^a"], &[key(KeyCode::Delete, KeyModifiers::CONTROL), plain('a')]);
        check(&[b"\x1b[7$"], &[key(KeyCode::Home, KeyModifiers::SHIFT)]);
        check(&[b"\x1b[5@"], &[key(KeyCode::PageUp, KeyModifiers::CONTROL | KeyModifiers::SHIFT)]);
        check(&[b"\x1b[27;5;99999999999~a", b"\x1b[27;~b"], &[plain('a'), plain('b')]);
        check(&[b"\x1b[200~a\rb\x1b[201~c"], &[paste("a\rb"), plain('c')]);
        check(&[b"\x1b[200~a\x1b[20", b"1~"], &[paste("a")]);
        check(&[b"\x1b[200~\xff\x1b[201~"], &[paste("\u{fffd}")]);
    }

    #[test]
    fn key_that_comes_as_its_character_too_is_typed_once() {
        let check = |chunks: &[&str], expected: &str| {
            let chunks: Vec<&[u8]> = chunks.iter().map(|chunk| chunk.as_bytes()).collect();
            let whole = chunks.concat();
            let expected: Vec<Sent> = expected.chars().map(plain).collect();
            assert_eq!(parse(&mut Parser::default(), &chunks), expected, "{chunks:?}");
            assert_eq!(parse(&mut Parser::default(), &[&whole]), expected, "{chunks:?}");
            let single: Vec<&[u8]> = whole.chunks(1).collect();
            assert_eq!(parse(&mut Parser::default(), &single), expected, "{chunks:?}");
        };
        check(&["\x1b[233;1u", "é"], "é");
        check(&["\x1b[43u", "+"], "+");
        check(&["\x1b[233;1u", "é", "\x1b[233;1u", "é"], "éé");
        check(&["\x1b[233;1u", "é", "é"], "éé");
        check(&["é", "é"], "éé");
        check(&["\x1b[232u", "x"], "èx");
        check(&["\x1b[232u", "x", "è"], "èxè");
        check(&["\x1b[233;1u", "\x1b[233;1u"], "éé");
    }

    #[test]
    fn keys_of_windows_and_marks_of_nested_pastes_are_read() {
        let ctrl_c = key(KeyCode::Char('c'), KeyModifiers::CONTROL);
        let sent = parse(
            &mut Parser::default(),
            &[b"\x1b[72;35;104;1;0;1_\x1b[72;35;104;0;0;1_", b"\x1b[67;46;3;1;8;1_x"],
        );
        assert_eq!(sent, [plain('h'), ctrl_c, plain('x')]);
        let pasted = Sent::Event(Event::Paste("abc ".to_owned()));
        let sent = parse(&mut Parser::default(), &[b"\x1b[200~\x1b[200~abc \x1b[201~\x1b[201~x"]);
        assert_eq!(sent, [pasted, plain('x')]);
    }

    #[test]
    fn paste_arrives_whole_however_it_is_split() {
        let bytes = "a\x1b[200~x\x1b[31m\r世\x1b[20\x1b[A\x1b[201~\x1b[Bb".as_bytes();
        let pasted = Sent::Event(Event::Paste("x\x1b[31m\r世\x1b[20\x1b[A".to_owned()));
        let expected = [plain('a'), pasted, key(KeyCode::Down, KeyModifiers::NONE), plain('b')];
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(parse(&mut Parser::default(), &single), expected);
        for first in 0..=bytes.len() {
            for second in first..=bytes.len() {
                let chunks = [&bytes[..first], &bytes[first..second], &bytes[second..]];
                assert_eq!(parse(&mut Parser::default(), &chunks), expected, "{first} {second}");
            }
        }
    }

    #[test]
    fn an_escape_that_was_waited_for_is_the_key() {
        let mut parser = Parser::default();
        let mut sent = Vec::new();
        parser.feed(b"\x1b", &mut sent);
        assert!(sent.is_empty() && parser.holds_escape());
        parser.release_escape(&mut sent);
        parser.feed(b"a", &mut sent);
        assert_eq!(sent, [key(KeyCode::Esc, KeyModifiers::NONE), plain('a')]);
        // Only a lone Escape: the rest of a longer sequence may arrive later.
        parser.feed(b"\x1b[", &mut sent);
        parser.release_escape(&mut sent);
        parser.feed(b"A", &mut sent);
        assert_eq!(sent.last(), Some(&key(KeyCode::Up, KeyModifiers::NONE)));
    }

    #[test]
    fn unknown_sequences_do_not_swallow_keys() {
        for unknown in [
            &b"\x1b[?1;2$y"[..],
            b"\x1b[?62;4c",
            b"\x1b[4;600;800t",
            b"\x1b[>0;276;0c",
            b"\x1b[99999999999;5u",
            b"\xff",
        ] {
            let sent = parse(&mut Parser::default(), &[unknown, b"x"]);
            assert_eq!(sent.last(), Some(&plain('x')), "{unknown:?}");
        }
        let endless = vec![b'1'; 10_000];
        let sent = parse(&mut Parser::default(), &[b"\x1b[", &endless, b"x"]);
        assert_eq!(sent.last(), Some(&plain('x')));
    }

    #[test]
    fn a_cursor_report_is_one_only_when_asked_for() {
        let mut parser = Parser { expects_cursor: true, ..Parser::default() };
        let sent = parse(&mut parser, &[b"a\x1b[12;40Rb", b"\x1b[1;2R"]);
        let f3 = key(KeyCode::F(3), KeyModifiers::SHIFT);
        assert_eq!(sent, [plain('a'), Sent::Cursor(Position::new(39, 11)), plain('b'), f3]);
    }

    #[test]
    fn answers_are_reports_until_the_last_one_has_come() {
        let report = |bytes: &[u8]| Sent::Report(bytes.to_vec());
        let answers: &[&[u8]] = &[
            b"\x1bP>|kitty(0.40.1)\x1b\\",
            b"\x1b_Gi=31;OK\x1b\\",
            b"\x1b]11;rgb:1111/2222/3333\x07",
            b"\x1b]4;7;rgb:1111/2222/3333\x1b\\",
            b"\x1b[6;20;10t",
            b"\x1b[?62;4c",
        ];
        let expected: Vec<Sent> = answers.iter().map(|answer| report(answer)).collect();
        let all = [answers.concat(), b"x".to_vec()].concat();
        for end in 0..=all.len() {
            let mut parser = Parser { n_asked: 1, ..Parser::default() };
            let mut sent = Vec::new();
            // However late the rest is: Escape is no key while it may begin an answer.
            parser.feed(&all[..end], &mut sent);
            parser.feed(&all[end..], &mut sent);
            assert_eq!(sent, [expected.as_slice(), &[plain('x')]].concat(), "cut at {end}");
            assert_eq!(parser.n_asked, 0);
        }
        // From then on, these are keys again.
        let alt = |c| key(KeyCode::Char(c), KeyModifiers::ALT);
        let sent = parse(&mut Parser::default(), &[b"\x1b]", b"4", b"\x1b_", b"H"]);
        assert_eq!(sent, [alt(']'), plain('4'), alt('_'), plain('H')]);
        // Late answers come at once.
        let sent = parse(&mut Parser::default(), &[b"\x1b]11;rgb:1111/22", b"22/3333\x07x"]);
        assert_eq!(sent, [report(answers[2]), plain('x')]);
        // While answers are due, keys that begin like one wait for the next key only.
        let mut parser = Parser { n_asked: 1, ..Parser::default() };
        assert_eq!(parse(&mut parser, &[b"\x1b]", b"a", b"b"]).last(), Some(&plain('b')));
    }

    #[test]
    fn reports_that_nobody_here_asked_for_are_no_text() {
        for report in [
            "\x1b[>41;379;0c",
            "\x1b[>4;2m",
            "\x1b[=1;2x",
            "\x1bP1+r524742=38\x1b\\",
            "\x1bP!|00000000\x1b\\",
            "\x1bP1$r0 q\x1b\\",
            "\x1b]52;c;aGVsbG8=\x1b\\",
            "\x1b]12;rgb:ffff/ffff/ffff\x07",
            "\x1b]lTitle\x1b\\",
            "\x1b^text\x1b\\",
        ] {
            let bytes = report.as_bytes();
            let expected = [Sent::Report(bytes.to_vec()), plain('x')];
            assert_eq!(parse(&mut Parser::default(), &[bytes, b"x"]), expected, "{report:?}");
            // Cut behind its head, as a slow connection does.
            if let Some(head) = report.find([';', '+', '$', '|']) {
                let (first, rest) = bytes.split_at(head + 1);
                assert_eq!(parse(&mut Parser::default(), &[first, rest, b"x"]), expected, "{report:?}");
            }
        }
        let long = ["\x1b]52;c;", &"YWJj".repeat(100_000), "\x1b\\"].concat();
        let sent = parse(&mut Parser::default(), &[long.as_bytes(), b"x"]);
        assert!(matches!(&sent[..], [Sent::Report(_), last] if *last == plain('x')), "{}", sent.len());
        // A string without an end swallows text, but no key.
        let enter = key(KeyCode::Enter, KeyModifiers::NONE);
        let sent = parse(&mut Parser::default(), &[b"\x1b]52;c;abc", b"\r", b"x"]);
        assert_eq!(sent, [enter, plain('x')]);
    }

    #[test]
    fn bytes_of_broken_characters_take_no_key_with_them() {
        for (bytes, expected) in [
            (&b"\xe4x"[..], vec![plain('x')]),
            (b"\xe4\r", vec![key(KeyCode::Enter, KeyModifiers::NONE)]),
            (b"ab\xc3(", vec![plain('a'), plain('b'), plain('(')]),
            (b"\xe4\xb8\x1b[A", vec![key(KeyCode::Up, KeyModifiers::NONE)]),
            (b"\xe4\xe4\xb8\x96", vec![plain('世')]),
        ] {
            assert_eq!(parse(&mut Parser::default(), &[bytes]), expected, "{bytes:?}");
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            assert_eq!(parse(&mut Parser::default(), &single), expected, "{bytes:?}");
        }
    }

    #[test]
    fn backspace_is_what_the_terminal_erases_with() {
        let check = |erases_with_ctrl_h: bool, bytes: &[u8], expected: Sent| {
            let mut parser = Parser { erases_with_ctrl_h, ..Parser::default() };
            assert_eq!(parse(&mut parser, &[bytes]), [expected], "{bytes:?}");
        };
        let (none, ctrl, alt) = (KeyModifiers::NONE, KeyModifiers::CONTROL, KeyModifiers::ALT);
        for erases_with_ctrl_h in [false, true] {
            check(erases_with_ctrl_h, b"\x7f", key(KeyCode::Backspace, none));
            check(erases_with_ctrl_h, b"\x1b\x7f", key(KeyCode::Backspace, alt));
            // A key protocol tells them apart.
            check(erases_with_ctrl_h, b"\x1b[104;5u", key(KeyCode::Char('h'), ctrl));
            check(erases_with_ctrl_h, b"\x1b[127;5u", key(KeyCode::Backspace, ctrl));
        }
        check(true, b"\x08", key(KeyCode::Backspace, none));
        check(true, b"\x1b\x08", key(KeyCode::Backspace, alt));
        check(false, b"\x08", key(KeyCode::Char('h'), ctrl));
    }

    #[test]
    fn end_of_an_answer_whose_beginning_was_lost_is_no_text() {
        let check = |bytes: &str, n_keys: usize| {
            let mut parser = Parser::default();
            let sent = parse(&mut parser, &[bytes.as_bytes(), b"x"]);
            assert_eq!((sent.len(), sent.last()), (n_keys + 1, Some(&plain('x'))), "{bytes:?}");
        };
        let answer = "]11;rgb:0c0c/0c0c/0c0c";
        for end in ["\x1b\\", "\x07"] {
            // The Escape alone, or with any part of what follows it, up to the last number.
            for cut in 0..answer.len() - "c/0c0c".len() {
                check(&format!("{}{end}", &answer[cut..]), 0);
            }
            check(&format!("c0c/0c0c/0c0c{end}abc"), 3);
            check(&format!("c/0c0c{end}"), 0);
            let mut parser = Parser { n_asked: 1, ..Parser::default() };
            let sent = parse(&mut parser, &[format!("c/0c0c{end}").as_bytes(), b"x"]);
            assert_eq!(sent, [plain('x')], "while answers are due");
        }
        // What people type and paste, also before such keys.
        check("c0c/0c0c/0c0c", 13);
        check("a/b", 3);
        check("face/b00c", 9);
        check("ab\x1b\\", 3);
        check("a/b\x1b\\", 4);
        check("see c0c/0c0c\x1b\\", 13);
        check("feed/beef/cafe/f00d\x1b\\", 20);
        check("abcde/0c0c\x1b\\", 11);
        check("/", 1);
        check("", 0);
    }

    #[test]
    fn keys_of_other_scripts_are_latin_ones_only_with_a_modifier() {
        let check = |sequence: &str, code: char, modifiers: KeyModifiers| {
            let sent = parse(&mut Parser::default(), &[sequence.as_bytes()]);
            let [Sent::Event(Event::Key(key))] = &sent[..] else { panic!("{sequence:?}: {sent:?}") };
            assert_eq!((key.code, key.modifiers), (KeyCode::Char(code), modifiers), "{sequence:?}");
        };
        let (ctrl, alt, shift) = (KeyModifiers::CONTROL, KeyModifiers::ALT, KeyModifiers::SHIFT);
        check("\x1b[1092::97;5u", 'a', ctrl);
        check("\x1b[1092::97;5:1u", 'a', ctrl);
        check("\x1b[1092:1060:97;6u", 'a', ctrl | shift);
        check("\x1b[1080::98;3u", 'b', alt);
        check("\x1b[945::97;7u", 'a', ctrl | alt);
        // With caps lock and num lock.
        check("\x1b[1092::97;197u", 'a', ctrl);
        // Text, and what the terminal does not know.
        check("\x1b[1092::97u", 'ф', KeyModifiers::NONE);
        check("\x1b[1092::97;1u", 'ф', KeyModifiers::NONE);
        check("\x1b[1092:1060:97;2u", 'Ф', KeyModifiers::NONE);
        check("\x1b[1092;5u", 'ф', ctrl);
        check("\x1b[1092:1060;5u", 'ф', ctrl);
        // Latin layouts decide themselves where their letters are.
        check("\x1b[97::113;5u", 'a', ctrl);
        check("\x1b[246::59;5u", 'ö', ctrl);
        check("\x1b[601::119;5u", 'ə', ctrl);
        check("\x1b[7865::101;3u", 'ẹ', alt);
        check("\x1b[11365::97;5u", 'ⱥ', ctrl);
    }

    #[test]
    fn answers_that_end_with_a_mere_escape_swallow_nothing() {
        let report = |bytes: &[u8]| Sent::Report(bytes.to_vec());
        let colors: &[&[u8]] = &[b"\x1b]4;0;rgb:0000/0000/0000", b"\x1b]4;1;rgb:cdcd/0000/0000"];
        let (no_scheme, last): (&[u8], &[u8]) = (b"\x1b[?2031;0$y", b"\x1b[?1;2c");
        let all = [colors[0], b"\x1b", colors[1], b"\x1b", no_scheme, last, b"x"].concat();
        let expected = [report(colors[0]), report(colors[1]), report(no_scheme), report(last), plain('x')];
        for end in 0..=all.len() {
            let mut parser = Parser { n_asked: 1, ..Parser::default() };
            let mut sent = Vec::new();
            parser.feed(&all[..end], &mut sent);
            parser.feed(&all[end..], &mut sent);
            assert_eq!(sent, expected, "cut at {end}");
            assert_eq!(parser.n_asked, 0);
        }
        // A sequence in place of the end.
        let mut parser = Parser { n_asked: 1, ..Parser::default() };
        let sent = parse(&mut parser, &[colors[0], b"\x1b[A", colors[1], b"\x1bx"]);
        let (up, alt_x) = (key(KeyCode::Up, KeyModifiers::NONE), key(KeyCode::Char('x'), KeyModifiers::ALT));
        assert_eq!(sent, [report(colors[0]), up, report(colors[1]), alt_x]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(chunks in prop::collection::vec(
            prop_oneof![
                prop::collection::vec(any::<u8>(), 1..12),
                "\u{1b}\\[[?<M0-9;:]{0,8}[A-Za-z~]?".prop_map(String::into_bytes),
                "\u{1b}[O\\[M<]{1,2}.{0,6}".prop_map(String::into_bytes),
            ], 0..12), expects_cursor: bool, n_asked in 0..3_u8)
        {
            let mut parser = Parser { expects_cursor, n_asked, ..Parser::default() };
            let mut sent = Vec::new();
            for chunk in &chunks {
                parser.feed(chunk, &mut sent);
            }
            // After a timeout, a key is a key again in every case.
            parser.feed(PASTE_END, &mut sent);
            parser.feed(&[b'1'; LONGEST_ANSWER], &mut sent);
            parser.feed(b"x", &mut sent);
            prop_assert_eq!(sent.last(), Some(&plain('x')));
        }
    }
}
