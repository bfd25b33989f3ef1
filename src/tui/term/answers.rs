//! What a terminal says about itself: the questions, and how its answers are read.
//!
//! Terminals answer in order, and all of them report their device attributes. So these are the
//! last question, and their report means that no other answer will come.

use ratatui::layout::Size;

use super::super::theme::{Rgb, TerminalColors};

/// What to ask a terminal. Everything else of [`TerminalAnswers`] is asked in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Questions {
    /// Whether it shows what programs are doing (OSC 7501).
    pub status: bool,
    /// Whether it has the kitty graphics protocol. Not for terminals that show what they do not
    /// understand of it.
    pub graphics: bool,
    /// Its colours.
    pub colors: bool,
    /// Whether it has kitty's keyboard protocol.
    pub keys: bool,
}

/// What a terminal said about itself. Fields are empty if it does not know the question.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TerminalAnswers {
    /// Name and version.
    pub version: Option<String>,
    /// Whether it reports keys unambiguously if asked to (kitty keyboard protocol).
    pub has_kitty_keys: bool,
    /// Whether it shows a frame at once.
    pub has_synchronized_output: bool,
    /// Whether it shows images in the sixel format.
    pub has_sixel: bool,
    /// Whether it has the kitty graphics protocol, and it is on.
    pub has_graphics: Option<bool>,
    /// Width and height of a cell in pixels.
    pub cell_pixels: Option<(u16, u16)>,
    /// Whether it tells when it changes between light and dark.
    pub reports_scheme: bool,
    /// Whether it shows what programs are doing.
    pub shows_status: bool,
    pub colors: TerminalColors,
}

/// What a report means beyond its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Report {
    Answer,
    /// The device attributes.
    Last,
    /// The terminal changed between light and dark.
    SchemeChanged,
    /// The columns and rows of its text area.
    Size(Size),
    Unknown,
}

/// What strings that answer questions begin with.
#[cfg(unix)]
pub(super) const STRINGS: &[&[u8]] =
    &[b"\x1bP>|", b"\x1b_G", b"\x1b]4;", b"\x1b]10;", b"\x1b]11;", b"\x1b]7501;"];

#[cfg(unix)]
impl Questions {
    /// The questions that every terminal answers at once: version (XTVERSION), size of a cell,
    /// and those of the fields; without the device attributes.
    pub(super) fn first(self) -> String {
        let mut text = ["\x1b[>0q", CELL_QUERY].concat();
        if self.keys {
            // The cursor is saved, because st takes the question for a restored cursor.
            text.push_str("\x1b7\x1b[?u\x1b8");
        }
        if self.status {
            text.push_str("\x1b]7501;?\x1b\\");
        }
        if self.graphics {
            // One pixel, which is not kept.
            text.push_str("\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\");
        }
        if self.colors {
            text.push_str("\x1b]10;?\x1b\\\x1b]11;?\x1b\\");
        }
        text
    }

    /// Questions that tmux passes on to its terminal, and waits: the palette; then whether it
    /// reports changes between light and dark.
    pub(super) fn second(self) -> String {
        if !self.colors {
            return String::new();
        }
        let colors: String = (0..16).map(|index| format!("\x1b]4;{index};?\x1b\\")).collect();
        colors + "\x1b[?2031$p"
    }
}

/// Asks how many pixels a cell has (XTWINOPS).
#[cfg(unix)]
pub(super) const CELL_QUERY: &str = "\x1b[16t";

/// Asks how many columns and rows the text area has (XTWINOPS).
pub(super) const SIZE_QUERY: &str = "\x1b[18t";

/// Asks where the cursor is (DSR).
pub(super) const CURSOR_QUERY: &str = "\x1b[6n";

/// The last question (DA1).
#[cfg(unix)]
pub(super) const LAST: &str = "\x1b[c";

impl TerminalAnswers {
    /// Reads all answers in `bytes`.
    pub fn read(bytes: &[u8]) -> Self {
        let mut answers = Self::default();
        for report in reports(bytes) {
            answers.take(report);
        }
        answers
    }

    /// Reads a report, which is one sequence.
    pub(super) fn take(&mut self, report: &[u8]) -> Report {
        let text = String::from_utf8_lossy(report);
        let body = text.trim_end_matches("\x1b\\").trim_end_matches('\x07');
        if let Some(version) = body.strip_prefix("\x1bP>|") {
            self.version = Some(version.to_owned());
        } else if let Some(answer) = body.strip_prefix("\x1b_G") {
            self.has_graphics = Some(answer.ends_with(";OK"));
        } else if body.starts_with("\x1b]7501;") {
            self.shows_status = true;
        } else if let Some(answer) = body.strip_prefix("\x1b]") {
            return self.take_color(answer).map_or(Report::Unknown, |()| Report::Answer);
        } else if let Some(answer) = body.strip_prefix("\x1b[?") {
            return self.take_private(answer);
        } else if let Some(answer) = body.strip_prefix("\x1b[6;").and_then(|answer| answer.strip_suffix('t'))
        {
            self.cell_pixels = cell_pixels(answer);
        } else if let Some(answer) = body.strip_prefix("\x1b[8;").and_then(|answer| answer.strip_suffix('t'))
        {
            return text_size(answer).map_or(Report::Unknown, Report::Size);
        } else {
            return Report::Unknown;
        }
        Report::Answer
    }

    fn take_private(&mut self, answer: &str) -> Report {
        // 1 and 2: the mode is known, and on or off.
        match answer {
            "2026;1$y" | "2026;2$y" => self.has_synchronized_output = true,
            "2031;1$y" | "2031;2$y" => self.reports_scheme = true,
            "997;1n" | "997;2n" => return Report::SchemeChanged,
            _ => {
                if let Some(attributes) = answer.strip_suffix('c') {
                    self.has_sixel = attributes.split(';').skip(1).any(|attribute| attribute == "4");
                    return Report::Last;
                }
                let Some(flags) = answer.strip_suffix('u') else { return Report::Unknown };
                self.has_kitty_keys = flags.parse::<u8>().is_ok();
            }
        }
        Report::Answer
    }

    /// `10;rgb:…`, `11;rgb:…` or `4;INDEX;rgb:…`.
    fn take_color(&mut self, answer: &str) -> Option<()> {
        let (kind, rest) = answer.split_once(';')?;
        match kind {
            "10" => self.colors.foreground = Some(color(rest)?),
            "11" => self.colors.background = Some(color(rest)?),
            "4" => {
                let (index, value) = rest.split_once(';')?;
                let slot = self.colors.palette.get_mut(index.parse::<usize>().ok()?)?;
                *slot = Some(color(value)?);
            }
            _ => return None,
        }
        Some(())
    }
}

fn color(text: &str) -> Option<Rgb> {
    let color = xterm_color::Color::parse(text.as_bytes()).ok()?;
    Some([color.red, color.green, color.blue].map(|channel| u8::try_from(channel >> 8).unwrap_or(u8::MAX)))
}

/// `HEIGHT;WIDTH`; `None` for sizes that no cell has.
fn cell_pixels(text: &str) -> Option<(u16, u16)> {
    const MOST: u16 = 200;
    let (height, width) = text.split_once(';')?;
    let cell = (width.parse::<u16>().ok()?, height.parse::<u16>().ok()?);
    ((1..=MOST).contains(&cell.0) && (1..=MOST).contains(&cell.1)).then_some(cell)
}

/// `ROWS;COLUMNS`; `None` if one of them is zero.
fn text_size(text: &str) -> Option<Size> {
    let (height, width) = text.split_once(';')?;
    let size = Size::new(width.parse().ok()?, height.parse().ok()?);
    (size.width > 0 && size.height > 0).then_some(size)
}

/// The sequences in what arrived. A string's end is part of it.
fn reports(bytes: &[u8]) -> Vec<&[u8]> {
    let starts: Vec<usize> = (0..bytes.len())
        .filter(|at| bytes[*at] == 0x1b && bytes.get(at + 1).is_some_and(|next| *next != b'\\'))
        .collect();
    let ends = starts.iter().skip(1).copied().chain([bytes.len()]);
    starts.iter().zip(ends).map(|(start, end)| &bytes[*start..end]).collect()
}

/// Whether the device attributes have arrived.
pub(super) fn are_complete(bytes: &[u8]) -> bool {
    reports(bytes).iter().any(|report| TerminalAnswers::default().take(report) == Report::Last)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn answers_of_terminals_are_understood() {
        let check = |answers: &str, expected: TerminalAnswers| {
            assert_eq!(TerminalAnswers::read(answers.as_bytes()), expected, "{answers:?}");
        };
        let named =
            |name: &str| TerminalAnswers { version: Some(name.to_owned()), ..TerminalAnswers::default() };
        check(
            "\x1bP>|kitty(0.40.1)\x1b\\\x1b[?0u\x1b[?2026;2$y\x1b_Gi=31;OK\x1b\\\x1b[6;21;9t\x1b[?62;c",
            TerminalAnswers {
                has_kitty_keys: true,
                has_synchronized_output: true,
                has_graphics: Some(true),
                cell_pixels: Some((9, 21)),
                ..named("kitty(0.40.1)")
            },
        );
        check("\x1bP>|tmux 3.5\x1b\\\x1b[?1;2;4c", TerminalAnswers { has_sixel: true, ..named("tmux 3.5") });
        check("\x1b[?2026;0$y\x1b[?2031;0$y\x1b[?6c", TerminalAnswers::default());
        check("\x1b[?64;1;44c\x1b[6;0;0t", TerminalAnswers::default());
        check("", TerminalAnswers::default());
        let mut colors = TerminalColors {
            foreground: Some([0xab, 0, 0xff]),
            background: Some([0x12, 0x34, 0x56]),
            ..TerminalColors::default()
        };
        colors.palette[15] = Some([0xff; 3]);
        check(
            "\x1b]10;rgb:abcd/0000/ffff\x1b\\\x1b]11;#123456\x07\x1b]4;15;rgb:ff/ff/ff\x07\x1b]4;16;rgb:0/0/0\x07\x1b]4;3;x\x07",
            TerminalAnswers { colors, ..TerminalAnswers::default() },
        );
        assert!(are_complete(b"ab\x1b[?1u\x1b[?62;22c") && !are_complete(b"\x1b[?1u\x1b[A"));
    }

    #[test]
    fn a_change_between_light_and_dark_is_told_apart() {
        let mut answers = TerminalAnswers::default();
        assert_eq!(answers.take(b"\x1b[?997;1n"), Report::SchemeChanged);
        assert_eq!(answers.take(b"\x1b[?996n"), Report::Unknown);
        assert_eq!(answers, TerminalAnswers::default());
    }

    #[test]
    fn size_of_the_text_area_is_read_unless_it_is_none() {
        let mut answers = TerminalAnswers::default();
        assert_eq!(answers.take(b"\x1b[8;24;80t"), Report::Size(Size::new(80, 24)));
        for report in ["\x1b[8;0;80t", "\x1b[8;24;0t", "\x1b[8;24t", "\x1b[8;70000;80t", "\x1b[8;1;2;3t"] {
            assert_eq!(answers.take(report.as_bytes()), Report::Unknown, "{report:?}");
        }
        assert_eq!(answers, TerminalAnswers::default());
    }

    proptest! {
        #[test]
        fn any_answer_is_survived(bytes in prop::collection::vec(any::<u8>(), 0..64), strings in any::<[u8; 4]>()) {
            let mut report = STRINGS[usize::from(strings[0]) % STRINGS.len()].to_vec();
            report.extend(&bytes);
            let _answers = TerminalAnswers::read(&report);
            let _others = TerminalAnswers::read(&bytes);
        }
    }
}
