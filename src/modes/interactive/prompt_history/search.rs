//! The list of earlier prompts, with a search.

use std::path::{Path, PathBuf};

use crate::tui::keymap::Keymap;
use crate::tui::term::InputEvent;
use crate::tui::widgets::{DialogCx, Hints, Picker, PickerItem, PickerOutcome};
use crate::util::paths;

use super::super::super::sessions::age;
use super::super::overlays::{DialogOutcome, Drawn, Overlay, OverlayStep};
use super::PastPrompt;

/// Characters of a prompt that its row may show, and that the search reads.
const MAX_LABEL_CHARS: usize = 400;
const MAX_SEARCHED_CHARS: usize = 4_000;

/// Prompts of this directory, or of all.
pub(in super::super) struct HistorySearch {
    picker: Picker<String>,
    /// Newest first.
    prompts: Vec<PastPrompt>,
    cwd: PathBuf,
    home: Option<PathBuf>,
    now_ms: u64,
    is_all: bool,
}

/// Whose prompts are searched, and for what.
pub(in super::super) struct HistoryQuery<'a> {
    pub(in super::super) cwd: &'a Path,
    pub(in super::super) home: Option<&'a Path>,
    pub(in super::super) now_ms: u64,
    /// What the search begins with.
    pub(in super::super) text: &'a str,
}

impl HistorySearch {
    /// `prompts` are newest first. Begins with those of the directory, if there are any.
    pub(in super::super) fn new(prompts: Vec<PastPrompt>, query: &HistoryQuery<'_>) -> Self {
        let is_all = !prompts.iter().any(|prompt| prompt.cwd == query.cwd);
        let mut picker = Picker::new("", Vec::new());
        picker.set_query(query.text);
        let mut search = Self {
            picker,
            prompts,
            cwd: query.cwd.to_owned(),
            home: query.home.map(Path::to_owned),
            now_ms: query.now_ms,
            is_all,
        };
        search.list();
        search
    }

    /// Lists the prompts of the scope.
    fn list(&mut self) {
        let shown = self.prompts.iter().filter(|prompt| self.is_all || prompt.cwd == self.cwd);
        let items = shown.map(|prompt| self.item(prompt)).collect();
        self.picker.set_items(items);
        let (scope, other) = if self.is_all {
            ("all directories".to_owned(), "this directory")
        } else {
            (paths::display(&self.cwd, self.home.as_deref()), "all directories")
        };
        self.picker.set_title(format!("Earlier prompts in {scope}"));
        let hints = Hints::confirm("edit again").key("app.history.toggleScope", other);
        self.picker.set_hints(hints.cancel("cancel"));
    }

    fn item(&self, prompt: &PastPrompt) -> PickerItem<String> {
        let label: String = prompt.text.chars().take(MAX_LABEL_CHARS).collect();
        let label = label.split_whitespace().collect::<Vec<_>>().join(" ");
        let rest: String = prompt.text.chars().skip(MAX_LABEL_CHARS).take(MAX_SEARCHED_CHARS).collect();
        let mut details = vec![age(self.now_ms, prompt.at_ms)];
        if self.is_all {
            details.push(paths::display(&prompt.cwd, self.home.as_deref()));
        }
        let n_lines = prompt.text.lines().count();
        if n_lines > 1 {
            details.push(format!("{n_lines} lines"));
        }
        PickerItem::new(prompt.text.clone(), label).prose(rest).detail(details.join(" · "))
    }
}

impl Overlay for HistorySearch {
    fn handle(&mut self, input: &InputEvent, keymap: &Keymap) -> OverlayStep {
        if let InputEvent::Key(key) = input {
            if keymap.is("app.history.toggleScope", key) {
                self.is_all = !self.is_all;
                self.list();
                return OverlayStep::Stay;
            }
            // The key that opened the list goes on to older prompts, as in a shell.
            if keymap.is("app.history.search", key) {
                self.picker.select_next();
                return OverlayStep::Stay;
            }
        }
        match self.picker.handle(input, keymap) {
            PickerOutcome::Pending | PickerOutcome::Ignored => OverlayStep::Stay,
            PickerOutcome::Cancelled => OverlayStep::Close,
            PickerOutcome::Chosen(text) => OverlayStep::CloseWith(DialogOutcome::PromptChosen(text)),
        }
    }

    fn render(&mut self, cx: &DialogCx<'_>) -> Drawn {
        let drawn = self.picker.render(cx);
        (drawn.rows, drawn.cursor)
    }
}

#[cfg(test)]
mod tests {
    use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

    use crate::tui::text::Row;

    use super::super::super::keybindings::default_keymap;
    use super::super::super::overlays::tests::{check_hints, draw};
    use super::*;

    const HOUR_MS: u64 = 3_600_000;

    fn search(query: &str) -> HistorySearch {
        let prompt = |hours: u64, cwd: &str, text: &str| PastPrompt {
            at_ms: (100 - hours) * HOUR_MS,
            cwd: cwd.into(),
            text: text.to_owned(),
        };
        let prompts = vec![
            prompt(1, "/home/me/proj", "fix the lighthouse\nand its lamp"),
            prompt(
                2,
                "/home/me/other",
                "看看灯塔 and write what you see, in as many words as it takes to fill a row",
            ),
            prompt(50, "/home/me/proj", "add tests for lamps"),
        ];
        let query = HistoryQuery {
            cwd: Path::new("/home/me/proj"),
            home: Some(Path::new("/home/me")),
            now_ms: 100 * HOUR_MS,
            text: query,
        };
        HistorySearch::new(prompts, &query)
    }

    fn press(search: &mut HistorySearch, code: KeyCode, held: KeyModifiers) -> OverlayStep {
        search.handle(&InputEvent::Key(KeyEvent::new(code, held)), &default_keymap())
    }

    fn screen(search: &mut HistorySearch, width: u16) -> String {
        let (rows, _) = draw(search, width, 12);
        assert!(rows.iter().all(|row| row.width() <= usize::from(width)));
        rows.iter().map(Row::text).map(|row| row.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn prompts_of_the_directory_come_first_and_a_key_shows_all() {
        let mut list = search("");
        insta::assert_snapshot!(screen(&mut list, 80));
        press(&mut list, KeyCode::Tab, KeyModifiers::NONE);
        press(&mut list, KeyCode::Char('r'), KeyModifiers::CONTROL);
        insta::assert_snapshot!(screen(&mut list, 40));
        check_hints(&mut list);
        for width in [1, 20, 120, 200] {
            screen(&mut list, width);
        }
    }

    #[test]
    fn chosen_prompt_is_returned_whole() {
        let mut list = search("lamp");
        let chosen = press(&mut list, KeyCode::Enter, KeyModifiers::NONE);
        let OverlayStep::CloseWith(DialogOutcome::PromptChosen(text)) = chosen else { panic!("{chosen:?}") };
        assert!(text.contains("lamp"), "{text}");
    }
}
