//! The editor with its completion, and the wait for the second key that quits.

use std::time::Duration;

use crossterm::event::KeyEvent;

use crate::tui::composer::{EditorAction, backslash_to_new_line};
use crate::tui::keymap::{Chord, Context, Keymap};

use super::completion::{Completion, CompletionCx, FoundFiles, OnEnter, Replacement};
use super::prompt::PromptEditor;

/// The time within which a second press of the key that clears the editor quits. With a
/// longer time, clearing the editor twice would quit unintentionally.
const QUIT_WAIT: Duration = Duration::from_millis(500);

/// Where prompts, commands and their arguments are typed.
pub(super) struct InputArea {
    pub(super) prompt: PromptEditor,
    pub(super) completion: Completion,
    /// Whether the last key asked for the completion of a path.
    wants_path: bool,
    /// The end of the wait for the second key, during which a hint is shown.
    quit_until: Option<Duration>,
    /// Until when Escape in an empty editor is the second one.
    escape_until: Option<Duration>,
}

/// The result of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InputOutcome {
    /// The editor has handled it.
    Handled,
    /// The action of this id.
    Action(&'static str),
    /// Enter submits the text.
    Submit,
    Quit,
}

/// What Enter would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Planned {
    /// Inserts the selected suggestion.
    Complete,
    /// Replaces a backslash by a line break.
    LineBreak,
    /// Submits this text as it was typed.
    Submit(String),
    /// Submits this text, in which the selected suggestion takes the place of what was typed.
    Run(String),
}

/// Whether a key turns the page of a list, forward or back.
fn turns_page(keymap: &Keymap, key: &KeyEvent) -> Option<bool> {
    match keymap.lookup(Context::Select, key)? {
        "tui.select.pageUp" => Some(false),
        "tui.select.pageDown" => Some(true),
        _ => None,
    }
}

impl InputArea {
    pub(super) fn new() -> Self {
        let (prompt, completion) = (PromptEditor::new(), Completion::default());
        Self { prompt, completion, wants_path: false, quit_until: None, escape_until: None }
    }

    /// Completion handles a key first, then the actions, then the editor. `quits`, from
    /// [`Self::take_quit_wait`], is whether a key that clears the editor quits.
    pub(super) fn on_key(&mut self, key: &KeyEvent, quits: bool, keymap: &Keymap) -> InputOutcome {
        if !keymap.is("app.interrupt", key) {
            self.escape_until = None;
        }
        if quits && keymap.is("app.clear", key) {
            return InputOutcome::Quit;
        }
        if self.ends_jump(key, keymap) {
            return InputOutcome::Handled;
        }
        if self.completion.is_open()
            && let Some(outcome) = self.completion_key(key, keymap)
        {
            return outcome;
        }
        match keymap.lookup(Context::App, key) {
            // If the editor is not empty, the same key deletes.
            Some("app.exit") if !self.prompt.composer.is_empty() => {}
            Some(id) => return InputOutcome::Action(id),
            None => {}
        }
        match keymap.lookup(Context::Editor, key) {
            Some("tui.input.submit") => {
                if !backslash_to_new_line(&mut self.prompt.composer) {
                    return InputOutcome::Submit;
                }
            }
            Some("tui.input.tab") => self.wants_path = true,
            Some(id) => {
                if let Some(action) = EditorAction::from_id(id) {
                    self.prompt.composer.handle(action);
                    self.prompt.on_change(action == EditorAction::Undo);
                }
            }
            None => {
                if let Some(char) = Chord::typed(key) {
                    self.prompt.composer.insert(char.encode_utf8(&mut [0; 4]));
                    self.prompt.on_change(false);
                }
            }
        }
        InputOutcome::Handled
    }

    /// Keys with another meaning while suggestions are shown.
    fn completion_key(&mut self, key: &KeyEvent, keymap: &Keymap) -> Option<InputOutcome> {
        if keymap.is("app.interrupt", key) {
            self.completion.dismiss(self.prompt.composer.before_cursor());
            return Some(InputOutcome::Handled);
        }
        if let Some(forward) = turns_page(keymap, key) {
            self.completion.turn_page(forward);
            return Some(InputOutcome::Handled);
        }
        // The keys for later and for now send what Enter would send.
        if ["app.message.followUp", "app.message.deliverNow"].iter().any(|id| keymap.is(id, key))
            && let OnEnter::InsertAndSubmit(replacement) = self.completion.planned()
        {
            self.completion.accept();
            self.replace(Some(replacement));
            return None;
        }
        match keymap.lookup(Context::Editor, key) {
            Some("tui.editor.cursorUp") => self.completion.select_previous(),
            Some("tui.editor.cursorDown") => self.completion.select_next(),
            Some("tui.input.tab") => {
                let replacement = self.completion.on_tab();
                self.replace(replacement);
            }
            Some("tui.input.submit") => match self.completion.on_enter() {
                OnEnter::Submit => return None,
                OnEnter::Insert(replacement) => self.replace(Some(replacement)),
                OnEnter::InsertAndSubmit(replacement) => {
                    self.replace(Some(replacement));
                    return Some(InputOutcome::Submit);
                }
            },
            _ => return None,
        }
        Some(InputOutcome::Handled)
    }

    /// What Enter would do.
    pub(super) fn planned(&self) -> Planned {
        let before = self.prompt.composer.before_cursor();
        match self.completion.planned() {
            OnEnter::Insert(_) => Planned::Complete,
            // Commands and their arguments are all that is completed and run at once.
            OnEnter::InsertAndSubmit(Replacement { n_bytes, with }) => {
                let kept = before.len().saturating_sub(n_bytes);
                let text = [before.get(..kept).unwrap_or_default(), &with].concat();
                let is_typed = text.trim_end() == before.trim_end();
                if is_typed { Planned::Submit(text) } else { Planned::Run(text) }
            }
            OnEnter::Submit if before.ends_with('\\') => Planned::LineBreak,
            OnEnter::Submit => Planned::Submit(self.prompt.submitted()),
        }
    }

    fn replace(&mut self, replacement: Option<Replacement>) {
        let Some(Replacement { n_bytes, with }) = replacement else { return };
        let composer = &mut self.prompt.composer;
        match with.strip_suffix(' ') {
            // The blank that ends a completed name is there already.
            Some(name) if composer.after_cursor().starts_with(char::is_whitespace) => {
                composer.replace_before_cursor(n_bytes, name);
                composer.handle(EditorAction::CursorRight);
            }
            _ => composer.replace_before_cursor(n_bytes, &with),
        }
    }

    pub(super) fn on_paste(&mut self, text: &str) {
        self.completion.close();
        self.prompt.composer.paste(text);
        self.prompt.on_change(false);
    }

    /// Ends a jump, which waits for a character, with any other key. Returns whether the key does nothing else:
    /// the border says that a character is waited for, not that Enter sends the text.
    fn ends_jump(&mut self, key: &KeyEvent, keymap: &Keymap) -> bool {
        let composer = &mut self.prompt.composer;
        let submits = keymap.lookup(Context::Editor, key) == Some("tui.input.submit");
        // Escape ends it by itself, and is no interruption then.
        let is_action = keymap.lookup(Context::App, key).is_some_and(|id| id != "app.interrupt");
        let is_jumping = composer.is_jumping();
        if submits || is_action {
            composer.cancel_jump();
        }
        is_jumping && submits
    }

    /// Shows the suggestions for the text that is in the editor now.
    pub(super) fn update_completion(&mut self, cx: &CompletionCx<'_>) {
        if std::mem::take(&mut self.wants_path) {
            self.completion.force(&self.prompt.composer, cx);
        } else if self.prompt.composer.is_browsing_history() {
            // Suggestions for a command among earlier prompts would take the arrow keys.
            self.completion.close();
        } else {
            self.completion.update(&self.prompt.composer, cx);
        }
    }

    /// Shows files that were found, or inserts the only one.
    pub(super) fn on_files(&mut self, found: &FoundFiles, cx: &CompletionCx<'_>) {
        let only = self.completion.on_found(found);
        if only.is_some() {
            self.replace(only);
            self.completion.update(&self.prompt.composer, cx);
        }
    }

    /// Whether the key turns the page of the suggestions that are shown.
    pub(super) fn pages_suggestions(&self, key: &KeyEvent, keymap: &Keymap) -> bool {
        self.completion.is_open() && turns_page(keymap, key).is_some()
    }

    /// Clears the editor and starts the wait for the second key, which quits.
    pub(super) fn clear_or_quit(&mut self, now: Duration) {
        self.quit_until = Some(now + QUIT_WAIT);
        self.prompt.clear();
    }

    /// Escape with nothing to stop: whether it is the second one in an empty editor.
    pub(super) fn is_second_escape(&mut self, now: Duration) -> bool {
        if !self.prompt.is_blank() {
            return false;
        }
        let is_second = self.escape_until.take().is_some_and(|until| now < until);
        if !is_second {
            self.escape_until = Some(now + QUIT_WAIT);
        }
        is_second
    }

    /// Ends the wait for the second key. Returns whether that key would still have quit.
    pub(super) fn take_quit_wait(&mut self, now: Duration) -> bool {
        self.quit_until.take().is_some_and(|until| now < until)
    }

    /// Ends the wait if its time has passed.
    pub(super) fn expire(&mut self, now: Duration) {
        if self.quit_until.is_some_and(|until| until <= now) {
            self.quit_until = None;
        }
    }

    /// When the hint disappears by itself.
    pub(super) fn changes_at(&self) -> Option<Duration> {
        self.quit_until
    }

    /// The hint about the second key, during the wait.
    pub(super) fn quit_hint(&self, keymap: &Keymap) -> Option<String> {
        let key = keymap.hint("app.clear");
        self.quit_until.filter(|_| !key.is_empty()).map(|_| format!("{key} again to quit"))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crossterm::event::{KeyCode, KeyModifiers};

    use crate::ai::Catalog;
    use crate::config::EffectiveSettings;
    use crate::session::{ResourceOrigin, SessionState, Skill};
    use crate::tui::keymap::{BINDINGS, Platform};

    use super::super::actions;
    use super::*;

    const CTRL_C: KeyEvent = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);

    fn keymap() -> Keymap {
        Keymap::new(&[BINDINGS, &actions::bindings()], Platform::Unix)
    }

    #[test]
    fn the_key_that_clears_quits_only_within_the_wait() {
        let check = |later_ms: u64, expected: InputOutcome| {
            let (keymap, mut input) = (keymap(), InputArea::new());
            let start = Duration::from_secs(1);
            input.on_paste("draft");
            assert!(!input.take_quit_wait(start));
            assert_eq!(input.on_key(&CTRL_C, false, &keymap), InputOutcome::Action("app.clear"));
            input.clear_or_quit(start);
            assert!(input.prompt.composer.is_empty());
            assert_eq!(input.quit_hint(&keymap).as_deref(), Some("ctrl+c again to quit"));
            let quits = input.take_quit_wait(start + Duration::from_millis(later_ms));
            assert_eq!(input.on_key(&CTRL_C, quits, &keymap), expected, "{later_ms}");
            assert_eq!(input.quit_hint(&keymap), None, "{later_ms}");
        };
        check(499, InputOutcome::Quit);
        check(500, InputOutcome::Action("app.clear"));
    }

    #[test]
    fn cleared_text_comes_back_with_undo() {
        let mut input = InputArea::new();
        input.on_paste(&"x\n".repeat(20));
        input.on_paste("and more");
        let text = input.prompt.composer.expanded_text();
        input.clear_or_quit(Duration::ZERO);
        assert!(input.prompt.is_blank());
        input.prompt.composer.handle(EditorAction::Undo);
        assert_eq!(input.prompt.composer.expanded_text(), text);
    }

    fn session() -> SessionState {
        let catalog = Catalog::builtin();
        SessionState::of(catalog.get("demo", "pi").unwrap(), Path::new("/"))
    }

    #[test]
    fn skills_are_offered_unless_the_settings_leave_them_out() {
        let check = |skill_commands: bool| {
            let path = "/s/SKILL.md".into();
            let (name, description, origin) = ("pdf".to_owned(), "Does it".to_owned(), ResourceOrigin::User);
            let skill = Skill { name, description, path, origin, is_listed: true };
            let mut settings = EffectiveSettings::default();
            settings.values.skill_commands = skill_commands;
            let session = SessionState { skills: [skill].into(), settings: settings.into(), ..session() };
            let mut input = InputArea::new();
            input.prompt.composer.set_text("/skill:p");
            input.update_completion(&CompletionCx { session: &session, models: &[], home: None });
            assert_eq!(input.completion.is_open(), skill_commands);
        };
        check(true);
        check(false);
    }

    #[test]
    fn the_second_escape_in_an_empty_editor_counts_within_the_wait() {
        let escape = KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE);
        let check = |typed: &str, between: Option<KeyCode>, later_ms: u64, expected: bool| {
            let (keymap, mut input) = (keymap(), InputArea::new());
            let start = Duration::from_secs(1);
            input.on_paste(typed);
            input.on_key(&escape, false, &keymap);
            assert!(!input.is_second_escape(start));
            if let Some(code) = between {
                input.on_key(&KeyEvent::new(code, KeyModifiers::NONE), false, &keymap);
            }
            input.on_key(&escape, false, &keymap);
            let is_second = input.is_second_escape(start + Duration::from_millis(later_ms));
            assert_eq!(is_second, expected, "{typed} {between:?} {later_ms}");
        };
        check("", None, 499, true);
        check("", None, 500, false);
        check("", Some(KeyCode::Left), 10, false);
        check("text", None, 10, false);
    }

    #[test]
    fn arrow_keys_pass_commands_among_earlier_prompts() {
        let (keymap, mut input, session) = (keymap(), InputArea::new(), session());
        input.prompt.composer.set_history(["one", "/quit", "/fullscreen", "two"]);
        input.prompt.composer.set_text("draft");
        let mut press = |code: KeyCode| {
            input.on_key(&KeyEvent::new(code, KeyModifiers::NONE), false, &keymap);
            input.update_completion(&CompletionCx { session: &session, models: &[], home: None });
            (input.prompt.composer.text(), input.completion.is_open())
        };
        // The first one goes to the start of the draft.
        press(KeyCode::Up);
        let keys = [[KeyCode::Up; 4], [KeyCode::Down; 4]].concat();
        let shown: Vec<_> = keys.into_iter().map(&mut press).collect();
        let expected = ["two", "/fullscreen", "/quit", "one", "/quit", "/fullscreen", "two", "draft"];
        assert_eq!(shown, expected.map(|text| (text.to_owned(), false)));
        let edited = [KeyCode::Up, KeyCode::Up, KeyCode::Up, KeyCode::End, KeyCode::Backspace].map(press);
        assert_eq!(edited.last(), Some(&("/fullscree".to_owned(), true)));
    }

    #[test]
    fn completed_name_has_one_blank_behind_it() {
        let check = |before: &str, after: &str, expected: (&str, &str)| {
            let (keymap, mut input, session) = (keymap(), InputArea::new(), session());
            let cx = CompletionCx { session: &session, models: &[], home: None };
            let press = |input: &mut InputArea, code: KeyCode| {
                input.on_key(&KeyEvent::new(code, KeyModifiers::NONE), false, &keymap);
                input.update_completion(&cx);
            };
            input.prompt.composer.set_text(&[before, after].concat());
            after.chars().for_each(|_| press(&mut input, KeyCode::Left));
            input.update_completion(&cx);
            let id = input.completion.take_request().map(|request| request.id).unwrap();
            let paths = vec!["src/lib.rs".to_owned(), "src/lib.md".to_owned()];
            input.on_files(&FoundFiles { id, paths, is_done: true }, &cx);
            press(&mut input, KeyCode::Tab);
            let composer = &input.prompt.composer;
            let (before, after) = (composer.before_cursor(), composer.after_cursor());
            assert_eq!((before, after), expected);
            assert!(!input.completion.is_open(), "the name is complete");
        };
        check("x @lib", " and more", ("x @src/lib.rs ", "and more"));
        check("x @lib", ", more", ("x @src/lib.rs ", ", more"));
        check("x @lib", "", ("x @src/lib.rs ", ""));
    }

    #[test]
    fn enter_submits_unless_a_command_was_hardly_typed() {
        let check = |typed: &str, expected: InputOutcome| {
            let (keymap, mut input, session) = (keymap(), InputArea::new(), session());
            for char in typed.chars() {
                input.on_key(&KeyEvent::new(KeyCode::Char(char), KeyModifiers::NONE), false, &keymap);
                input.update_completion(&CompletionCx { session: &session, models: &[], home: None });
            }
            let enter = KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE);
            assert_eq!(input.on_key(&enter, false, &keymap), expected, "{typed}");
        };
        check("hello", InputOutcome::Submit);
        check("hello\\", InputOutcome::Handled);
        check("/quit", InputOutcome::Submit);
        check("/qt", InputOutcome::Handled);
    }
}
