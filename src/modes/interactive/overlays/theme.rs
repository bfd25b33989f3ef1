//! The list of themes; each is shown while it is selected.

use crate::session::SessionCommand;
use crate::tui::keymap::Keymap;
use crate::tui::term::InputEvent;
use crate::tui::widgets::{DialogCx, Hints, Picker, PickerItem, PickerOutcome};

use super::super::msg::ScreenEffect;
use super::super::theme_files::ListedTheme;
use super::{DialogOutcome, Drawn, Overlay, OverlayStep};

/// The built-in themes and those of the user.
pub(in super::super) struct Themes {
    picker: Picker<String>,
    /// The theme of the settings.
    current: String,
    /// The theme on the screen.
    shown: String,
    /// Those that cannot be used, and so not chosen.
    unusable: Vec<String>,
}

impl Themes {
    /// `query` is what the filter begins with. If the settings name a pair, it is an item too.
    pub(in super::super) fn new(themes: &[ListedTheme], current: &str, query: &str) -> Self {
        let pair = current.contains('/').then(|| {
            let item = PickerItem::new(current.to_owned(), format!("✓ {current}"));
            item.note("by the background")
        });
        let broken = themes.iter().filter(|theme| theme.problem.is_some());
        let unusable = broken.map(|theme| theme.name.clone()).collect();
        let item = |ListedTheme { name, problem }: &ListedTheme| {
            let mark = if name == current { "✓ " } else { "  " };
            let item = PickerItem::new(name.clone(), format!("{mark}{name}"));
            match problem {
                Some(problem) => item.note("cannot be used").detail(problem.clone()),
                None => item,
            }
        };
        let items = pair.into_iter().chain(themes.iter().map(item)).collect();
        let mut picker = Picker::new("Theme", items);
        picker.set_query(query);
        if query.is_empty() {
            picker.select(|name| name == current);
        }
        Self { picker, current: current.to_owned(), shown: current.to_owned(), unusable }
    }

    /// Whether no theme matches the query.
    pub(in super::super) fn is_empty(&self) -> bool {
        self.picker.selected().is_none()
    }

    /// Shows the selected theme, or that of the settings where it cannot be used: its row says why.
    fn preview(&mut self) -> OverlayStep {
        let usable = |name| if self.unusable.contains(name) { &self.current } else { name };
        match self.picker.selected().map(usable) {
            Some(name) if *name != self.shown => {
                self.shown.clone_from(name);
                OverlayStep::StayWith(DialogOutcome::Effect(ScreenEffect::FollowLooks.into()))
            }
            _ => OverlayStep::Stay,
        }
    }
}

impl Overlay for Themes {
    fn handle(&mut self, input: &InputEvent, keymap: &Keymap) -> OverlayStep {
        match self.picker.handle(input, keymap) {
            PickerOutcome::Pending | PickerOutcome::Ignored => self.preview(),
            PickerOutcome::Cancelled if self.shown == self.current => OverlayStep::Close,
            PickerOutcome::Cancelled => {
                OverlayStep::CloseWith(DialogOutcome::Effect(ScreenEffect::FollowLooks.into()))
            }
            PickerOutcome::Chosen(name) if self.unusable.contains(&name) => OverlayStep::Stay,
            PickerOutcome::Chosen(name) => {
                let (key, value) = ("theme".to_owned(), Some(name.into()));
                OverlayStep::close_with(SessionCommand::ChangeSetting { key, value })
            }
        }
    }

    fn previewed_theme(&self) -> Option<&str> {
        (self.shown != self.current).then_some(&self.shown)
    }

    fn render(&mut self, cx: &DialogCx<'_>) -> Drawn {
        let is_usable = self.picker.selected().is_some_and(|name| !self.unusable.contains(name));
        let hints = if is_usable { Hints::confirm("save") } else { Hints::new() };
        self.picker.set_hints(hints.cancel(format!("keep {}", self.current)));
        let drawn = self.picker.render(cx);
        (drawn.rows, drawn.cursor)
    }
}

#[cfg(test)]
mod tests {
    use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

    use super::super::super::keybindings::default_keymap;
    use super::super::super::msg::Effect;
    use super::*;

    /// What the last key does, in a list with `dark` selected, and what is previewed then.
    fn last_step(codes: &[KeyCode]) -> String {
        let keymap = default_keymap();
        let theme = |name: &str| {
            let problem = (name == "broken").then(|| "its line 3".to_owned());
            ListedTheme { name: name.to_owned(), problem }
        };
        let themes = ["system", "dark", "light", "mine", "broken"].map(theme).to_vec();
        let mut themes = Themes::new(&themes, "dark", "");
        let mut last = String::new();
        for &code in codes {
            let key = InputEvent::Key(KeyEvent::new(code, KeyModifiers::NONE));
            last = match themes.handle(&key, &keymap) {
                OverlayStep::Stay => "stay".to_owned(),
                OverlayStep::Close => "close".to_owned(),
                OverlayStep::StayWith(DialogOutcome::Effect(Effect::Screen(effect)))
                | OverlayStep::CloseWith(DialogOutcome::Effect(Effect::Screen(effect))) => {
                    format!("{effect:?}")
                }
                OverlayStep::CloseWith(outcome) | OverlayStep::StayWith(outcome) => format!("{outcome:?}"),
            };
        }
        themes.previewed_theme().map_or(last.clone(), |name| format!("{last} with {name}"))
    }

    #[test]
    fn only_a_theme_that_can_be_used_is_offered_to_be_saved() {
        let themes = [("dark", None), ("broken", Some("its line 3".to_owned()))]
            .map(|(name, problem)| ListedTheme { name: name.to_owned(), problem });
        let mut themes = Themes::new(&themes, "dark", "");
        let last_row = |themes: &mut Themes| {
            let (rows, _) = super::super::tests::draw(themes, 80, 24);
            rows.last().map(|row| row.text().trim().to_owned()).unwrap_or_default()
        };
        assert_eq!(last_row(&mut themes), "enter: save · escape: keep dark");
        themes.handle(&InputEvent::Key(KeyEvent::new(KeyCode::Down, KeyModifiers::NONE)), &default_keymap());
        assert_eq!(last_row(&mut themes), "escape: keep dark");
    }

    #[test]
    fn a_pair_is_marked_and_selected_and_nothing_else_is_saved_without_a_move() {
        let themes =
            ["system", "dark", "light"].map(|name| ListedTheme { name: name.to_owned(), problem: None });
        let mut list = Themes::new(&themes, "light/dark", "");
        let (rows, _) = super::super::tests::draw(&mut list, 60, 24);
        let rows: Vec<String> = rows.iter().map(|row| row.text().trim_end().to_owned()).collect();
        assert!(rows.iter().any(|row| row == "→ ✓ light/dark  by the background"), "{rows:?}");
        assert_eq!(rows.iter().filter(|row| row.contains('✓')).count(), 1, "{rows:?}");
        assert_eq!(rows.last().map(|row| row.trim()), Some("enter: save · escape: keep light/dark"));
        let key = |code| InputEvent::Key(KeyEvent::new(code, KeyModifiers::NONE));
        list.handle(&key(KeyCode::Down), &default_keymap());
        assert_eq!(list.previewed_theme(), Some("system"));
        list.handle(&key(KeyCode::Up), &default_keymap());
        assert_eq!(list.previewed_theme(), None);
        let OverlayStep::CloseWith(saved) = list.handle(&key(KeyCode::Enter), &default_keymap()) else {
            panic!("the list stays open")
        };
        assert!(format!("{saved:?}").contains("\"light/dark\""), "{saved:?}");
    }

    #[test]
    fn selected_theme_is_shown_and_only_the_chosen_one_saved() {
        use KeyCode::{Char, Down, Enter, Esc, Up};
        assert_eq!(last_step(&[Down]), "FollowLooks with light");
        assert_eq!(last_step(&[Char('m')]), "FollowLooks with mine");
        assert_eq!(last_step(&[Char('m'), Char('i')]), "stay with mine");
        assert_eq!(last_step(&[Down, Up]), "FollowLooks");
        assert_eq!(last_step(&[Esc]), "close");
        // The list is closed then.
        assert_eq!(last_step(&[Down, Esc]), "FollowLooks with light");
        // "broken" is the last one.
        assert_eq!(last_step(&[Down, Down, Down]), "FollowLooks");
        assert_eq!(last_step(&[Char('b'), Char('r')]), "stay");
        let saved = last_step(&[Down, Enter]);
        assert!(saved.contains("ChangeSetting") && saved.contains("light"), "{saved}");
    }
}
