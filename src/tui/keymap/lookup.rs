//! Maps key presses to ids, with the user's overrides.

use std::fmt;
use std::sync::OnceLock;

use crossterm::event::KeyEvent;
use rustc_hash::FxHashMap;
use thiserror::Error;

use super::chord::{Chord, ChordError};
use super::table::{Binding, Context, Platform, renamed_id};

/// A problem with one entry of the user's key bindings; the others apply.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum OverrideError {
    #[error("key bindings: unknown action {id:?}{}", tip(*meant))]
    UnknownId { id: String, meant: Option<&'static str> },
    #[error("key bindings: {id}: {source}")]
    BadChord { id: String, source: ChordError },
    #[error("key bindings: {id}: expected a key or a list of keys")]
    WrongType { id: String },
    #[error("key bindings: {old} is an earlier name of {id}, which is there too and counts")]
    Renamed { old: String, id: &'static str },
    #[error("key bindings: {id} keeps its default, because nothing else closes a list")]
    Needed { id: &'static str },
}

/// The action without which the user could not leave a list.
const NEEDED: &str = "tui.select.cancel";

/// The action that leaves its key to an editor that is not empty.
const LEAVES_TO_EDITOR: &str = "app.exit";

/// The actions that work whatever is open: they get their keys before every other.
const ANYWHERE: [&str; 2] = ["app.suspend", "app.debug"];

/// Which actions of a dialog or view get a key before others there, smallest first: its own, those of the
/// app, the editor's, then those of lists in general.
fn rank(context: Context) -> u8 {
    match context {
        Context::Fullscreen
        | Context::Search
        | Context::Selection
        | Context::Pager
        | Context::History
        | Context::Sessions
        | Context::Models
        | Context::Tree
        | Context::Trace => 0,
        Context::App => 1,
        Context::Editor => 2,
        Context::Select => 3,
    }
}

/// Contexts whose actions work in the same dialogs or views: those of the first get a key before those of the
/// second.
const TOGETHER: [(Context, Context); 9] = [
    (Context::History, Context::Select),
    (Context::Sessions, Context::Select),
    (Context::Models, Context::Select),
    (Context::Tree, Context::Select),
    (Context::Trace, Context::Pager),
    (Context::Trace, Context::Select),
    (Context::Pager, Context::Fullscreen),
    (Context::Pager, Context::Select),
    (Context::Selection, Context::Fullscreen),
];

/// Actions of the app that work in a dialog too: its own actions get a key before them, those of its list after
/// them.
const IN_DIALOGS: [(&str, Context); 2] =
    [("app.message.copy", Context::Tree), ("app.history.search", Context::History)];

fn tip(meant: Option<&str>) -> String {
    meant.map(|meant| format!("; did you mean {meant:?}?")).unwrap_or_default()
}

fn last_part(id: &str) -> &str {
    id.rsplit('.').next().unwrap_or(id)
}

/// The id that `id` is probably a misspelling of; its first part may be wrong or missing too.
fn meant(id: &str, ids: &[&'static str]) -> Option<&'static str> {
    let same_end = || ids.iter().find(|known| last_part(known).eq_ignore_ascii_case(last_part(id))).copied();
    // Ids have their first parts in common, so that only few letters may differ.
    let n_wrong = |known: &str| strsim::damerau_levenshtein(id, known);
    let closest = ids.iter().copied().min_by_key(|known| n_wrong(known)).filter(|known| n_wrong(known) <= 3);
    closest.or_else(same_end)
}

/// One key of several actions where only one can have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    pub chord: Chord,
    /// The first one gets the key.
    pub ids: Vec<&'static str>,
    /// Whether the others get it where the first one does not work.
    pub is_partial: bool,
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = self.ids.first().copied().unwrap_or_default();
        let place = if self.is_partial { " where both work" } else { "" };
        write!(f, "{} is bound to {}; {first} gets it{place}", self.chord, self.ids.join(" and "))
    }
}

/// The current key bindings.
#[derive(Debug, Clone)]
pub struct Keymap {
    rows: Vec<Row>,
    /// Each frame asks for the keys of its hints.
    by_id: FxHashMap<&'static str, usize>,
    by_chord: FxHashMap<(Context, Chord), Vec<&'static str>>,
    /// Whether the terminal sends some keys as others.
    hides_keys: bool,
}

#[derive(Debug, Clone)]
struct Row {
    binding: Binding,
    chords: Vec<Chord>,
    defaults: Vec<Chord>,
    /// Whether the keys are the user's.
    is_custom: bool,
    /// What [`Keymap::hint`] found; each frame asks for several.
    hint: OnceLock<String>,
}

impl Keymap {
    /// The default keys of these rows. An invalid default is left out; the
    /// tests of each table parse all of them.
    pub fn new(tables: &[&[Binding]], platform: Platform) -> Self {
        let rows = tables
            .iter()
            .flat_map(|table| table.iter())
            .map(|&binding| {
                let keys = binding.keys_on(platform).split(' ').filter(|key| !key.is_empty());
                let defaults: Vec<Chord> = keys.filter_map(|key| key.parse().ok()).collect();
                Row { binding, chords: defaults.clone(), defaults, is_custom: false, hint: OnceLock::new() }
            })
            .collect();
        let mut keymap =
            Self { rows, by_id: FxHashMap::default(), by_chord: FxHashMap::default(), hides_keys: false };
        keymap.index();
        keymap
    }

    /// Applies the user's file: an id with a key, a list of keys, or an empty list to remove
    /// the binding. Bindings that are not in the file keep their defaults. Returns the
    /// problems.
    pub fn apply(&mut self, overrides: &serde_json::Map<String, serde_json::Value>) -> Vec<OverrideError> {
        let mut errors = Vec::new();
        // Names the schema for editors.
        for (id, value) in overrides.iter().filter(|(id, _)| *id != "$schema") {
            let now = renamed_id(id, self.rows.iter().map(|row| row.binding.id));
            let error = match now.filter(|now| overrides.contains_key(*now)) {
                Some(id_now) => Some(OverrideError::Renamed { old: id.clone(), id: id_now }),
                None => self.apply_one(id, value).err(),
            };
            errors.extend(error);
        }
        self.index();
        errors
    }

    fn apply_one(&mut self, id: &str, value: &serde_json::Value) -> Result<(), OverrideError> {
        use serde_json::Value;
        let known = self.rows.iter().map(|row| row.binding.id);
        let renamed = renamed_id(id, known).unwrap_or(id).to_owned();
        let row = self.rows.iter_mut().find(|row| row.binding.id == renamed);
        let Some(row) = row else {
            let ids: Vec<&'static str> = self.rows.iter().map(|row| row.binding.id).collect();
            return Err(OverrideError::UnknownId { id: id.to_owned(), meant: meant(id, &ids) });
        };
        let wrong_type = || OverrideError::WrongType { id: id.to_owned() };
        let keys: Vec<&str> = match value {
            Value::String(key) => vec![key],
            Value::Array(keys) => {
                keys.iter().map(Value::as_str).collect::<Option<_>>().ok_or_else(wrong_type)?
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => return Err(wrong_type()),
        };
        let chords: Result<Vec<Chord>, ChordError> = keys.into_iter().map(str::parse).collect();
        let chords = chords.map_err(|source| OverrideError::BadChord { id: id.to_owned(), source })?;
        if chords.is_empty() && row.binding.id == NEEDED {
            return Err(OverrideError::Needed { id: NEEDED });
        }
        row.chords.clear();
        for chord in chords {
            if !row.chords.contains(&chord) {
                row.chords.push(chord);
            }
        }
        row.is_custom = true;
        Ok(())
    }

    /// Keys of the user that type a character, and that some action takes from the editor, or from the search of a list; with that action.
    pub fn untypable(&self) -> Vec<(Chord, &'static str)> {
        let takes = |row: &&Row| {
            row.is_custom
                && matches!(
                    row.binding.context,
                    Context::App | Context::Editor | Context::Fullscreen | Context::Select
                )
        };
        let rows = self.rows.iter().filter(takes);
        rows.flat_map(|row| row.chords.iter().map(|chord| (*chord, row.binding.id)))
            .filter(|(chord, _)| chord.is_text())
            .collect()
    }

    /// A key that the user chose goes before a default.
    fn index(&mut self) {
        self.rows.iter_mut().for_each(|row| row.hint = OnceLock::new());
        // The first row of an id counts.
        self.by_id = self.rows.iter().enumerate().rev().map(|(at, row)| (row.binding.id, at)).collect();
        self.by_chord.clear();
        let (custom, defaults): (Vec<_>, Vec<_>) = self.rows.iter().partition(|row| row.is_custom);
        for row in custom.into_iter().chain(defaults) {
            for &chord in &row.chords {
                self.by_chord.entry((row.binding.context, chord)).or_default().push(row.binding.id);
            }
        }
    }

    /// The id that gets a key press in a context.
    pub fn lookup(&self, context: Context, event: &KeyEvent) -> Option<&'static str> {
        self.winner(context, Chord::from_event(event))
    }

    /// Whether this id gets a key press. It does not if another one of its context has the key.
    pub fn is(&self, id: &str, event: &KeyEvent) -> bool {
        let row = self.row(id);
        row.is_some_and(|row| self.lookup(row.binding.context, event) == Some(row.binding.id))
    }

    /// The one rule about who gets a key in a context. If it is bound twice there, the user's choice goes before a
    /// default, and the first one of a table before the others. Actions that work whatever is open go
    /// before all contexts. The app's go before the editor's unless only the editor's is the user's choice;
    /// defaults of both share keys on purpose.
    fn winner(&self, context: Context, chord: Chord) -> Option<&'static str> {
        let id = self.first(context, chord)?;
        let is_taken = self.over(context, id, chord).is_some() || self.under(context, id, chord).is_some();
        (!is_taken).then_some(id)
    }

    /// The first id of a context with this key.
    fn first(&self, context: Context, chord: Chord) -> Option<&'static str> {
        self.by_chord.get(&(context, chord))?.first().copied()
    }

    /// The action of the app that takes a key from `id` in another context.
    fn over(&self, context: Context, id: &str, chord: Chord) -> Option<&'static str> {
        let app = self.first(Context::App, chord).filter(|_| context != Context::App)?;
        let is_before = if ANYWHERE.contains(&app) {
            self.is_custom(app) || self.is_custom(id)
        } else {
            context == Context::Editor && app != LEAVES_TO_EDITOR && self.is_custom(app)
        };
        is_before.then_some(app)
    }

    /// The action of the editor that takes a key from the default `id` of the app, by the user's choice.
    fn under(&self, context: Context, id: &str, chord: Chord) -> Option<&'static str> {
        let is_of_app = context == Context::App && id != LEAVES_TO_EDITOR && !ANYWHERE.contains(&id);
        let editor = self.first(Context::Editor, chord).filter(|_| is_of_app)?;
        (self.is_custom(editor) && !self.is_custom(id)).then_some(editor)
    }

    fn is_custom(&self, id: &str) -> bool {
        self.row(id).is_some_and(|row| row.is_custom)
    }

    /// The keys of two actions that work together, one of which has it from the user: defaults share keys on
    /// purpose, also when the user repeats one beside another key.
    fn shared(&self) -> impl Iterator<Item = Conflict> {
        let is_default = |id, chord| self.row(id).is_some_and(|row| row.defaults.contains(&chord));
        TOGETHER.into_iter().flat_map(move |(before, after)| {
            let chords = self.by_chord.keys().filter(move |(context, _)| *context == before);
            chords.filter_map(move |&(_, chord)| {
                let ids = vec![self.winner(before, chord)?, self.winner(after, chord)?];
                let is_new = !ids.iter().all(|id| is_default(id, chord));
                is_new.then_some(Conflict { chord, ids, is_partial: true })
            })
        })
    }

    /// The same of actions of the app and of those of a dialog in which they work.
    fn shared_with_dialogs(&self) -> impl Iterator<Item = Conflict> {
        let is_default = |id, chord| self.row(id).is_some_and(|row| row.defaults.contains(&chord));
        let chords = |(id, dialog)| self.chords(id).iter().map(move |chord| (id, dialog, *chord));
        IN_DIALOGS.into_iter().flat_map(chords).flat_map(move |(id, dialog, chord)| {
            let app = self.winner(Context::App, chord).filter(|app| *app == id);
            let own = self.winner(dialog, chord);
            let of_list = self.winner(Context::Select, chord).filter(|id| id.starts_with("tui.select."));
            let pairs = [own.zip(app), app.zip(of_list)].into_iter().flatten().map(|(a, b)| vec![a, b]);
            let is_new = move |ids: &Vec<&'static str>| !ids.iter().all(|id| is_default(id, chord));
            pairs.filter(is_new).map(move |ids| Conflict { chord, ids, is_partial: true })
        })
    }

    /// The keys with which the user quits from an empty editor, where an action of the editor works too. What
    /// deletes has nothing to delete there.
    fn exits(&self) -> impl Iterator<Item = Conflict> {
        let chords = self.row(LEAVES_TO_EDITOR).filter(|row| row.is_custom).map(|row| &row.chords);
        chords.into_iter().flatten().filter_map(|&chord| {
            let ids = vec![self.winner(Context::App, chord)?, self.winner(Context::Editor, chord)?];
            let is_exit = ids[0] == LEAVES_TO_EDITOR && !ids[1].starts_with("tui.editor.delete");
            is_exit.then_some(Conflict { chord, ids, is_partial: true })
        })
    }

    fn row(&self, id: &str) -> Option<&Row> {
        self.rows.get(*self.by_id.get(id)?)
    }

    /// The keys of an id; empty if it is unknown or its binding was removed.
    pub fn chords(&self, id: &str) -> &[Chord] {
        self.row(id).map_or(&[], |row| &row.chords)
    }

    /// Sets whether the terminal has no keyboard protocol and sends some keys as others: hints name another key then,
    /// if there is one.
    pub fn set_hides_keys(&mut self, hides_keys: bool) {
        if self.hides_keys != hides_keys {
            self.hides_keys = hides_keys;
            self.rows.iter_mut().for_each(|row| row.hint = OnceLock::new());
        }
    }

    /// Whether the terminal sends some keys as others.
    pub fn hides_keys(&self) -> bool {
        self.hides_keys
    }

    /// The first key of an id that reaches it, for hints; empty if there is none.
    pub fn hint(&self, id: &str) -> String {
        let hint = |row: &Row| row.hint.get_or_init(|| self.hint_among(id, &[])).clone();
        self.row(id).map(hint).unwrap_or_default()
    }

    /// As [`Self::hint`], where the actions of `ids` work too: one of a dialog takes a key from those of lists.
    pub fn hint_among(&self, id: &str, ids: &[&str]) -> String {
        let Some(row) = self.row(id) else { return String::new() };
        let others = ids.iter().filter_map(|id| self.row(id));
        let before: Vec<&Row> =
            others.filter(|other| rank(other.binding.context) < rank(row.binding.context)).collect();
        // In a dialog, actions of the app get only keys that none of its own has.
        let is_of_app = row.binding.context == Context::App;
        let takes = |other: &&Row, chord: Chord| match is_of_app {
            true => self.winner(other.binding.context, chord).is_some(),
            false => self.reaching(other).any(|key| key == chord),
        };
        let is_free = |chord: &Chord| !before.iter().any(|other| takes(other, *chord));
        let free: Vec<Chord> = self.reaching(row).filter(is_free).collect();
        let is_sent = |chord: &&Chord| !self.hides_keys || chord.without_protocol().is_empty();
        free.iter().find(is_sent).or(free.first()).map(ToString::to_string).unwrap_or_default()
    }

    /// All rows with the keys that reach them, in table order, for help: a key of several
    /// actions is with the one that gets it.
    pub fn reachable(&self) -> impl Iterator<Item = (&Binding, Vec<Chord>)> {
        self.rows.iter().map(|row| (&row.binding, self.reaching(row).collect()))
    }

    /// The keys of a row that no other action gets.
    fn reaching<'a>(&'a self, row: &'a Row) -> impl Iterator<Item = Chord> + 'a {
        let Binding { id, context, .. } = row.binding;
        row.chords.iter().copied().filter(move |&chord| {
            let is_hidden = context == Context::Editor && self.is_before_the_editor(chord);
            self.winner(context, chord) == Some(id) && !is_hidden
        })
    }

    /// Whether the app gets a key before the editor.
    fn is_before_the_editor(&self, chord: Chord) -> bool {
        // It leaves the key to an editor that is not empty.
        self.winner(Context::App, chord).is_some_and(|id| id != LEAVES_TO_EDITOR)
    }

    /// All rows with their keys, in table order, whether they reach them or not.
    pub fn rows(&self) -> impl Iterator<Item = (&Binding, &[Chord])> {
        self.rows.iter().map(|row| (&row.binding, row.chords.as_slice()))
    }

    /// Keys that are bound more than once in one context, keys of other contexts that an action of the app
    /// takes, and keys that the user gave to actions of a dialog and of the list in it.
    pub fn conflicts(&self) -> Vec<Conflict> {
        let mut conflicts: Vec<Conflict> = self
            .by_chord
            .iter()
            .map(|(&(context, chord), ids)| {
                let first = ids.first();
                let app = first.and_then(|id| self.over(context, id, chord));
                let editor = first.and_then(|id| self.under(context, id, chord));
                let ids = app.or(editor).into_iter().chain(ids.iter().copied()).collect();
                Conflict { chord, ids, is_partial: false }
            })
            .filter(|conflict| conflict.ids.len() > 1)
            .collect();
        conflicts.extend(self.shared());
        conflicts.extend(self.shared_with_dialogs());
        conflicts.extend(self.exits());
        conflicts.sort_by_key(|conflict| conflict.ids.clone());
        conflicts
    }
}

#[cfg(test)]
mod tests {
    use crossterm::event::{KeyCode, KeyModifiers};
    use serde_json::json;

    use super::super::table::BINDINGS;
    use super::*;

    fn keymap(overrides: &serde_json::Value) -> (Keymap, Vec<String>) {
        let mut keymap = Keymap::new(&[BINDINGS], Platform::Unix);
        let errors = keymap.apply(overrides.as_object().unwrap());
        (keymap, errors.iter().map(ToString::to_string).collect())
    }

    fn ctrl(c: char) -> KeyEvent {
        KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL)
    }

    #[test]
    fn defaults_are_chords_without_conflicts() {
        for platform in [Platform::Unix, Platform::Windows, Platform::Wsl] {
            let keymap = Keymap::new(&[BINDINGS], platform);
            assert_eq!(keymap.conflicts(), []);
            for (binding, chords) in keymap.rows() {
                let named = binding.keys_on(platform).split(' ').filter(|key| !key.is_empty()).count();
                assert_eq!(chords.len(), named, "{}", binding.id);
                assert!(!binding.help.is_empty() && !binding.help.ends_with('.'), "{}", binding.id);
            }
        }
    }

    #[test]
    fn contexts_are_apart() {
        let (keymap, _) = keymap(&json!({}));
        let up = KeyEvent::new(KeyCode::Up, KeyModifiers::NONE);
        assert_eq!(keymap.lookup(Context::Editor, &up), Some("tui.editor.cursorUp"));
        assert_eq!(keymap.lookup(Context::Select, &up), Some("tui.select.up"));
        assert_eq!(keymap.lookup(Context::Tree, &up), None);
    }

    #[test]
    fn overrides_replace_only_what_they_name() {
        let (keymap, errors) =
            keymap(&json!({ "tui.editor.yank": ["ctrl+t", "f5"], "undo": [], "tui.input.tab": "ctrl+i" }));
        assert_eq!(errors, [""; 0]);
        assert_eq!(keymap.lookup(Context::Editor, &ctrl('t')), Some("tui.editor.yank"));
        assert_eq!(keymap.lookup(Context::Editor, &ctrl('y')), None);
        assert_eq!(keymap.lookup(Context::Editor, &ctrl('k')), Some("tui.editor.deleteToLineEnd"));
        assert_eq!(keymap.hint("tui.editor.undo"), "");
        assert_eq!(keymap.hint("tui.editor.yank"), "ctrl+t");
        assert!(keymap.is("tui.input.tab", &ctrl('i')));
    }

    #[test]
    fn earlier_name_of_an_action_gives_way_to_the_current_one() {
        for file in [
            json!({ "undo": "f2", "tui.editor.undo": "f3" }),
            json!({ "tui.editor.undo": "f3", "undo": "f2" }),
        ] {
            let (keymap, errors) = keymap(&file);
            assert_eq!(keymap.hint("tui.editor.undo"), "f3");
            let told =
                "key bindings: undo is an earlier name of tui.editor.undo, which is there too and counts";
            assert_eq!(errors, [told]);
        }
    }

    #[test]
    fn hints_name_keys_that_the_terminal_sends() {
        let (mut keymap, _) = keymap(&json!({}));
        let hint = |keymap: &Keymap| keymap.hint("tui.altScreen.searchPrevious");
        assert_eq!(hint(&keymap), "shift+enter");
        keymap.set_hides_keys(true);
        assert_eq!(hint(&keymap), "up");
        keymap.set_hides_keys(false);
        assert_eq!(hint(&keymap), "shift+enter");
    }

    #[test]
    fn list_can_always_be_left() {
        let (keymap, errors) = keymap(&json!({ "tui.select.cancel": [], "tui.select.up": [] }));
        assert_eq!(keymap.hint("tui.select.cancel"), "escape");
        assert_eq!(
            errors,
            ["key bindings: tui.select.cancel keeps its default, because nothing else closes a list"]
        );
    }

    #[test]
    fn the_schema_for_editors_is_no_binding() {
        let (_, errors) = keymap(&json!({ "$schema": "https://example.com/keys.json" }));
        assert_eq!(errors, [""; 0]);
    }

    #[test]
    fn mistakes_are_named_and_leave_the_default() {
        let (keymap, errors) = keymap(
            &json!({ "tui.nope": "x", "tui.editor.yank": "ctrl+nope", "tui.editor.undo": 5, "tui.editor.yankk": "x", "editor.Redo": "x" }),
        );
        assert_eq!(
            errors,
            [
                "key bindings: unknown action \"tui.nope\"",
                "key bindings: tui.editor.yank: \"nope\" is not a key",
                "key bindings: tui.editor.undo: expected a key or a list of keys",
                "key bindings: unknown action \"tui.editor.yankk\"; did you mean \"tui.editor.yank\"?",
                "key bindings: unknown action \"editor.Redo\"; did you mean \"tui.editor.redo\"?",
            ]
        );
        assert_eq!(keymap.lookup(Context::Editor, &ctrl('y')), Some("tui.editor.yank"));
    }

    #[test]
    fn hints_name_keys_that_reach_the_action() {
        let row = |id, context, keys| Binding::new(id, context, keys, "Does it");
        let table = [
            row("app.model.select", Context::App, "ctrl+l"),
            row("app.screen.toggle", Context::App, ""),
            row("app.exit", Context::App, "ctrl+d"),
            row("tui.editor.undo", Context::Editor, "ctrl+z ctrl+g"),
            row("tui.editor.deleteCharForward", Context::Editor, "ctrl+d"),
        ];
        let mut keymap = Keymap::new(&[&table], Platform::Unix);
        assert_eq!(keymap.hint("app.model.select"), "ctrl+l");
        let overrides = json!({ "app.screen.toggle": ["ctrl+l", "ctrl+z"] });
        assert_eq!(keymap.apply(overrides.as_object().unwrap()), []);
        let hints: Vec<String> = table.iter().map(|binding| keymap.hint(binding.id)).collect();
        assert_eq!(hints, ["", "ctrl+l", "ctrl+d", "ctrl+g", "ctrl+d"]);
    }

    #[test]
    fn a_key_bound_twice_is_reported() {
        let (keymap, _) = keymap(&json!({ "tui.editor.yank": "ctrl+k" }));
        let conflicts = keymap.conflicts();
        assert_eq!(conflicts.len(), 1);
        assert_eq!(conflicts[0].chord.to_string(), "ctrl+k");
        assert_eq!(conflicts[0].ids, ["tui.editor.yank", "tui.editor.deleteToLineEnd"]);
        assert_eq!(keymap.lookup(Context::Editor, &ctrl('k')), Some("tui.editor.yank"));
    }

    #[test]
    fn a_key_of_the_app_and_of_a_dialog_in_which_it_works_is_reported() {
        let row = |id, context, keys| Binding::new(id, context, keys, "Does it");
        let table = [
            row("app.message.copy", Context::App, "ctrl+x"),
            row("app.tools.expand", Context::App, "ctrl+o"),
            row("app.tree.filter.userOnly", Context::Tree, "ctrl+u"),
            row("app.tree.filter.cycleForward", Context::Tree, "ctrl+o"),
            row("app.queue.drop", Context::Select, "delete"),
            row("tui.select.confirm", Context::Select, "enter"),
        ];
        let check = |overrides: serde_json::Value, hint: &str, expected: &[&str]| {
            let mut keymap = Keymap::new(&[&table], Platform::Unix);
            assert_eq!(keymap.apply(overrides.as_object().unwrap()), []);
            let reports: Vec<String> = keymap.conflicts().iter().map(ToString::to_string).collect();
            assert_eq!(reports, expected, "{overrides}");
            assert_eq!(keymap.hint_among("app.message.copy", &["app.tree.filter.cycleForward"]), hint);
        };
        check(json!({}), "ctrl+x", &[]);
        let filter = "f6 is bound to app.tree.filter.userOnly and app.message.copy; \
                      app.tree.filter.userOnly gets it where both work";
        check(json!({ "app.message.copy": "f6", "app.tree.filter.userOnly": "f6" }), "", &[filter]);
        check(json!({ "app.message.copy": ["f6", "f7"], "app.tree.filter.userOnly": "f6" }), "f7", &[filter]);
        let list = "enter is bound to app.message.copy and tui.select.confirm; app.message.copy gets it where both work";
        check(json!({ "app.message.copy": "enter" }), "enter", &[list]);
        check(json!({ "app.message.copy": "delete" }), "delete", &[]);
        check(json!({ "app.tools.expand": "ctrl+u" }), "ctrl+x", &[]);
    }

    #[test]
    fn a_key_of_a_dialog_and_of_the_list_in_it_is_reported() {
        let row = |id, context, keys| Binding::new(id, context, keys, "Does it");
        let table = [
            row("app.models.save", Context::Models, "ctrl+s pageUp"),
            row("tui.select.pageUp", Context::Select, "pageUp"),
            row("tui.select.confirm", Context::Select, "enter"),
        ];
        let reports = |overrides: serde_json::Value| {
            let mut keymap = Keymap::new(&[&table], Platform::Unix);
            assert_eq!(keymap.apply(overrides.as_object().unwrap()), []);
            keymap.conflicts().iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(reports(json!({})), [""; 0], "defaults share keys on purpose");
        assert_eq!(reports(json!({ "tui.select.pageUp": ["pageUp", "ctrl+b"] })), [""; 0]);
        assert_eq!(
            reports(json!({ "tui.select.confirm": ["enter", "ctrl+s"] })),
            [
                "ctrl+s is bound to app.models.save and tui.select.confirm; app.models.save gets it where both work"
            ]
        );
        assert_eq!(reports(json!({ "app.models.save": ["f6", "f6"] })), [""; 0], "one key, twice");
        assert_eq!(
            reports(json!({ "app.models.save": "enter" })),
            [
                "enter is bound to app.models.save and tui.select.confirm; app.models.save gets it where both work"
            ]
        );
    }
}
