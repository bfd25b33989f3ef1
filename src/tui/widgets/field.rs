//! An input field of one line, optionally hidden.

use crossterm::event::{KeyCode, KeyModifiers};

use super::super::keymap::Chord;
use super::super::term::InputEvent;
use super::super::text::{Row, Run, width};
use super::super::theme::{Theme, Token};

/// Maximum length of text shown or accepted; longer than any key.
const LIMIT_CHARS: usize = 16_384;

/// A line of text, edited at its end. Has no `Debug`, because it may contain a secret.
#[derive(Clone, Default)]
pub struct Field {
    text: String,
    is_hidden: bool,
}

impl Field {
    /// Shows the typed text.
    pub fn plain() -> Self {
        Self::default()
    }

    /// Shows a dot for each character.
    pub fn hidden() -> Self {
        Self { is_hidden: true, ..Self::default() }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    pub fn clear(&mut self) {
        self.text.clear();
    }

    /// Handles typed or pasted text, without line breaks. `false` if the input does not
    /// concern a line of text.
    pub fn handle(&mut self, event: &InputEvent) -> bool {
        match event {
            InputEvent::Paste(text) => self.insert(text),
            InputEvent::Key(key) => match (key.code, Chord::typed(key)) {
                (_, Some(c)) => self.insert(c.encode_utf8(&mut [0; 4])),
                (KeyCode::Backspace, _) => drop(self.text.pop()),
                (KeyCode::Char('u'), _) if key.modifiers == KeyModifiers::CONTROL => self.text.clear(),
                (KeyCode::Char('w'), _) if key.modifiers == KeyModifiers::CONTROL => {
                    delete_last_word(&mut self.text);
                }
                _ => return false,
            },
            InputEvent::Mouse(_)
            | InputEvent::Resize(_)
            | InputEvent::Focus(_)
            | InputEvent::Answered
            | InputEvent::PasteWaits => return false,
        }
        true
    }

    fn insert(&mut self, text: &str) {
        let room = LIMIT_CHARS.saturating_sub(self.text.chars().count());
        self.text.extend(text.chars().filter(|c| !c.is_control()).take(room));
    }

    /// The end of the line, and the column of the cursor.
    pub fn render(&self, columns: u16, theme: &Theme) -> (Row, u16) {
        self.render_after("> ", columns, theme)
    }

    /// Like [`Self::render`], after another mark.
    pub fn render_after(&self, mark: &'static str, columns: u16, theme: &Theme) -> (Row, u16) {
        let shown: String =
            if self.is_hidden { self.text.chars().map(|_| '•').collect() } else { self.text.clone() };
        let room = usize::from(columns).saturating_sub(width(mark) + 1);
        // Drops characters from the front until the rest fits.
        let start = shown.char_indices().map(|(at, _)| at).find(|at| width(&shown[*at..]) <= room);
        let visible = shown.get(start.unwrap_or(shown.len())..).unwrap_or_default();
        let mut row = Row::from_runs([
            Run::new(mark, theme.style(Token::Muted)),
            Run::new(visible, theme.style(Token::Text)),
        ]);
        row.clip(columns.max(1));
        let column = u16::try_from(row.width()).unwrap_or(u16::MAX);
        (row, column.min(columns.saturating_sub(1)))
    }
}

/// Removes the last word of a line, as ctrl+w does.
pub(super) fn delete_last_word(text: &mut String) {
    let kept = text.trim_end().rfind(' ').map_or(0, |at| at + 1);
    text.truncate(kept);
}

#[cfg(test)]
mod tests {
    use crossterm::event::KeyEvent;

    use super::super::super::theme::{Appearance, ColorDepth};
    use super::*;

    fn theme() -> Theme {
        Theme::builtin("dark", Appearance::Dark, ColorDepth::True).unwrap()
    }

    #[test]
    fn it_takes_text_without_line_ends_and_shows_its_end() {
        let mut field = Field::plain();
        assert!(field.handle(&InputEvent::Paste("ab\r\ncd\u{1b}".to_owned())));
        assert!(field.handle(&InputEvent::Key(KeyEvent::new(KeyCode::Char('世'), KeyModifiers::NONE))));
        assert_eq!(field.text(), "abcd世");
        let (row, column) = field.render(8, &theme());
        assert_eq!((row.text().as_str(), column), ("> bcd世", 7));
        assert!(field.handle(&InputEvent::Key(KeyEvent::new(KeyCode::Backspace, KeyModifiers::NONE))));
        assert!(!field.handle(&InputEvent::Key(KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE))));
        assert_eq!(field.text(), "abcd");
        field.handle(&InputEvent::Paste(" two words ".to_owned()));
        let ctrl = |c| InputEvent::Key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL));
        for expected in ["abcd two ", "abcd ", ""] {
            assert!(field.handle(&ctrl('w')));
            assert_eq!(field.text(), expected);
        }
    }

    #[test]
    fn a_hidden_field_shows_no_character_and_any_width_is_survived() {
        let mut field = Field::hidden();
        field.handle(&InputEvent::Paste("canary".to_owned()));
        assert_eq!(field.render(20, &theme()).0.text(), "> ••••••");
        for columns in 0..9 {
            let (row, column) = field.render(columns, &theme());
            assert!(row.width() <= usize::from(columns.max(1)) && column < columns.max(1));
        }
    }
}
