//! An input field of one line, optionally hidden.

use std::ops::Range;

use super::super::composer::{EditorAction, words};
use super::super::keymap::{Chord, Context, Keymap};
use super::super::term::InputEvent;
use super::super::text::{Row, Run, graphemes, width};
use super::super::theme::{Theme, Token};

/// Maximum length of text shown or accepted; longer than any key.
const LIMIT_CHARS: usize = 16_384;

/// A line of text with a cursor, edited with the keys of the editor. Has no `Debug`, because it may contain a secret.
#[derive(Clone, Default)]
pub struct Field {
    text: String,
    /// In bytes.
    cursor: usize,
    is_hidden: bool,
    /// Whether text takes the place of what is there.
    is_selected: bool,
}

impl Field {
    /// Shows the typed text.
    pub fn plain() -> Self {
        Self::default()
    }

    /// Shows `text`, without line breaks, with the cursor at its end.
    pub fn with_text(text: &str) -> Self {
        let mut field = Self::plain();
        field.insert(text);
        field
    }

    /// Shows a dot for each character.
    pub fn hidden() -> Self {
        Self { is_hidden: true, ..Self::default() }
    }

    /// Selects the text: what is typed next replaces it, and keys that move keep it.
    pub fn select(&mut self) {
        self.is_selected = !self.text.is_empty();
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    pub fn clear(&mut self) {
        self.remove(0..self.text.len());
    }

    /// Handles typed or pasted text, without line breaks, and the editor's keys. `false` if the input does not
    /// concern a line of text.
    pub fn handle(&mut self, event: &InputEvent, keymap: &Keymap) -> bool {
        match event {
            InputEvent::Paste(text) => self.insert(text),
            InputEvent::Key(key) => match Chord::typed(key) {
                Some(c) => self.insert(c.encode_utf8(&mut [0; 4])),
                None => {
                    let action = keymap.lookup(Context::Editor, key).and_then(EditorAction::from_id);
                    return action.is_some_and(|action| self.act(action));
                }
            },
            InputEvent::Mouse(_)
            | InputEvent::Resize(_)
            | InputEvent::Focus(_)
            | InputEvent::Answered
            | InputEvent::PasteWaits => return false,
        }
        true
    }

    /// Performs an action of the editor; `false` if one line has no use for it.
    fn act(&mut self, action: EditorAction) -> bool {
        let (cursor, end) = (self.cursor, self.text.len());
        let was_selected = std::mem::take(&mut self.is_selected);
        match action {
            EditorAction::DeleteCharBackward | EditorAction::DeleteCharForward if was_selected => {
                self.clear();
            }
            EditorAction::CursorLeft => self.cursor = self.before(),
            EditorAction::CursorRight => self.cursor = self.after(),
            EditorAction::CursorWordLeft => self.cursor = self.word_before(),
            EditorAction::CursorWordRight => self.cursor = self.word_after(),
            EditorAction::CursorLineStart => self.cursor = 0,
            EditorAction::CursorLineEnd => self.cursor = end,
            EditorAction::DeleteCharBackward => self.remove(self.before()..cursor),
            EditorAction::DeleteCharForward => self.remove(cursor..self.after()),
            EditorAction::DeleteWordBackward => self.remove(self.word_before()..cursor),
            EditorAction::DeleteWordForward => self.remove(cursor..self.word_after()),
            EditorAction::DeleteToLineStart => self.remove(0..cursor),
            EditorAction::DeleteToLineEnd => self.remove(cursor..end),
            EditorAction::CursorUp
            | EditorAction::CursorDown
            | EditorAction::JumpForward
            | EditorAction::JumpBackward
            | EditorAction::PageUp
            | EditorAction::PageDown
            | EditorAction::HistoryPrevious
            | EditorAction::HistoryNext
            | EditorAction::Yank
            | EditorAction::YankPop
            | EditorAction::Undo
            | EditorAction::Redo
            | EditorAction::ExpandPaste
            | EditorAction::NewLine => return false,
        }
        true
    }

    fn insert(&mut self, text: &str) {
        if std::mem::take(&mut self.is_selected) {
            self.clear();
        }
        let room = LIMIT_CHARS.saturating_sub(self.text.chars().count());
        let lines: Vec<&str> = text.lines().collect();
        // A secret has no blanks.
        let text = lines.join(if self.is_hidden { "" } else { " " });
        let text = text.chars().map(|c| if c == '\t' && !self.is_hidden { ' ' } else { c });
        let text: String = text.filter(|c| !c.is_control()).take(room).collect();
        self.text.insert_str(self.cursor, &text);
        self.cursor += text.len();
    }

    fn remove(&mut self, range: Range<usize>) {
        self.cursor = range.start;
        self.text.drain(range);
    }

    fn before(&self) -> usize {
        let last = graphemes(&self.text[..self.cursor]).next_back();
        self.cursor - last.map_or(0, |(cluster, _)| cluster.len())
    }

    fn after(&self) -> usize {
        let next = graphemes(&self.text[self.cursor..]).next();
        self.cursor + next.map_or(0, |(cluster, _)| cluster.len())
    }

    fn word_before(&self) -> usize {
        let starts = words(&self.text, &[]).into_iter().rev().map(|word| word.start);
        starts.into_iter().find(|&start| start < self.cursor).unwrap_or(0)
    }

    fn word_after(&self) -> usize {
        let ends = words(&self.text, &[]).into_iter().map(|word| word.end);
        ends.into_iter().find(|&end| end > self.cursor).unwrap_or(self.text.len())
    }

    /// The part of the line around the cursor, and the column of the cursor.
    pub fn render(&self, columns: u16, theme: &Theme) -> (Row, u16) {
        self.render_after("> ", columns, theme)
    }

    /// Like [`Self::render`], after another mark.
    pub fn render_after(&self, mark: &'static str, columns: u16, theme: &Theme) -> (Row, u16) {
        let room = usize::from(columns).saturating_sub(width(mark) + 1);
        let (mut byte, mut total, mut caret) = (0, 0, 0);
        let mut clusters = Vec::new();
        for (cluster, cells) in graphemes(&self.text) {
            let (shown, cells) = if self.is_hidden { ("•", 1) } else { (cluster, cells) };
            clusters.push((total..total + cells, shown));
            total += cells;
            if byte < self.cursor {
                caret = total;
            }
            byte += cluster.len();
        }
        // The cursor is in the middle, unless an end of the text is visible.
        let first = caret.saturating_sub(room / 2).min(total.saturating_sub(room));
        let first = clusters.iter().map(|(cells, _)| cells.start).find(|&start| start >= first);
        let first = first.unwrap_or(caret);
        let is_visible = |cells: &Range<usize>| cells.start >= first && cells.end <= first + room;
        let visible = clusters.iter().filter(|(cells, _)| is_visible(cells));
        let visible: String = visible.map(|(_, shown)| *shown).collect();
        let mut text = theme.style(Token::Text);
        if self.is_selected {
            text = text.patch(theme.style(Token::SelectedBg));
        }
        let mut row = Row::from_runs([Run::new(mark, theme.style(Token::Muted)), Run::new(visible, text)]);
        row.clip(columns.max(1));
        let column = u16::try_from(width(mark) + caret - first).unwrap_or(u16::MAX);
        (row, column.min(columns.saturating_sub(1)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::super::keymap::{BINDINGS, Platform};
    use super::super::super::theme::{Appearance, ColorDepth};
    use super::*;

    fn theme() -> Theme {
        Theme::builtin("dark", Appearance::Dark, ColorDepth::True).unwrap()
    }

    fn keymap() -> Keymap {
        Keymap::new(&[BINDINGS], Platform::Unix)
    }

    fn press(field: &mut Field, keys: &str) {
        for key in keys.split(' ') {
            let chord: Chord = key.parse().unwrap();
            assert!(field.handle(&InputEvent::Key(chord.event()), &keymap()), "{key}");
        }
    }

    fn paste(field: &mut Field, text: &str) {
        assert!(field.handle(&InputEvent::Paste(text.to_owned()), &keymap()));
    }

    #[test]
    fn it_takes_text_without_line_ends_and_shows_its_end() {
        let mut field = Field::plain();
        paste(&mut field, "ab\r\ncd\u{1b}");
        press(&mut field, "世");
        assert_eq!(field.text(), "ab cd世");
        let (row, column) = field.render(8, &theme());
        assert_eq!((row.text().as_str(), column), (">  cd世", 7));
        for key in ["enter", "up", "ctrl+c", "f5"] {
            let key: Chord = key.parse().unwrap();
            assert!(!field.handle(&InputEvent::Key(key.event()), &keymap()), "{key}");
        }
        assert_eq!(field.text(), "ab cd世");
    }

    #[test]
    fn text_is_edited_at_the_cursor() {
        let check = |keys: &str, expected: &str| {
            let mut field = Field::with_text("say  no世 two");
            press(&mut field, keys);
            paste(&mut field, "|");
            assert_eq!(field.text(), expected, "{keys}");
        };
        check("left left", "say  no世 t|wo");
        check("home right", "s|ay  no世 two");
        check("ctrl+a end", "say  no世 two|");
        check("alt+left ctrl+left", "say  no|世 two");
        check("home alt+right ctrl+right", "say  no|世 two");
        check("home delete ctrl+d", "|y  no世 two");
        check("alt+left left backspace", "say  no| two");
        check("ctrl+w ctrl+w", "say  no|");
        check("left ctrl+w", "say  no世 |o");
        check("home alt+d", "|  no世 two");
        check("alt+left ctrl+u", "|two");
        check("alt+left ctrl+k", "say  no世 |");
    }

    #[test]
    fn keys_of_the_user_edit() {
        let mut keymap = keymap();
        let overrides = serde_json::json!({ "tui.editor.cursorLineStart": "f2" });
        assert_eq!(keymap.apply(overrides.as_object().unwrap()), []);
        let mut field = Field::with_text("ab");
        let key = |key: &str| InputEvent::Key(key.parse::<Chord>().unwrap().event());
        assert!(!field.handle(&key("home"), &keymap) && field.handle(&key("f2"), &keymap));
        field.handle(&key("x"), &keymap);
        assert_eq!(field.text(), "xab");
    }

    #[test]
    fn the_text_around_the_cursor_is_visible() {
        let check = |keys: &str, expected: (&str, u16)| {
            let mut field = Field::with_text("0123456世界89");
            press(&mut field, keys);
            let (row, column) = field.render(9, &theme());
            assert_eq!((row.text().as_str(), column), expected, "{keys}");
        };
        check("end", ("> 世界89", 8));
        check("end left", ("> 世界89", 7));
        check("end left left left", ("> 6世界8", 5));
        check("end left left left left", ("> 456世", 5));
        check("home", ("> 012345", 2));
        check("home right right right right", ("> 123456", 5));
        check("home right right right right right right", ("> 3456世", 5));
    }

    #[test]
    fn a_hidden_field_shows_no_character_and_any_width_is_survived() {
        let mut field = Field::hidden();
        paste(&mut field, "canary");
        assert_eq!(field.render(20, &theme()).0.text(), "> ••••••");
        press(&mut field, "left left");
        assert_eq!(field.render(20, &theme()).1, 6);
        for columns in 0..9 {
            let (row, column) = field.render(columns, &theme());
            assert!(row.width() <= usize::from(columns.max(1)) && column < columns.max(1));
        }
    }

    proptest! {
        #[test]
        fn any_text_is_survived(texts in prop::collection::vec("\\PC{0,6}|[e世\u{301}\u{200d}👩🇩ก\u{e33}]{0,4}", 1..6), keys in prop::collection::vec(0..7_usize, 0..9), columns in 0..12u16) {
            let all = ["left", "right", "alt+left", "alt+right", "backspace", "delete", "home"];
            let mut field = Field::plain();
            for (at, text) in texts.iter().enumerate() {
                paste(&mut field, text);
                keys.iter().skip(at).step_by(2).for_each(|key| press(&mut field, all[*key]));
                let (row, column) = field.render(columns, &theme());
                prop_assert!(row.width() <= usize::from(columns.max(1)) && column < columns.max(1));
            }
        }
    }
}
