//! `/settings`: all settings with their values and origins, changed in place.

use std::sync::Arc;

use serde_json::Value;

use crate::config::{EffectiveSettings, Layer, ROWS, Row as Setting, SettingKind};
use crate::session::{SessionCommand, SessionState, setting_change};
use crate::tui::keymap::{Chord, Context, Keymap};
use crate::tui::term::InputEvent;
use crate::tui::text::{visible_line, wrap_plain};
use crate::tui::theme::Token;
use crate::tui::widgets::{DialogCx, Field, Hints, Picker, PickerItem, PickerOutcome};

use super::super::msg::WorldEffect;
use super::dialog::Dialog;
use super::{DialogOutcome, Drawn, ModelChoice, Overlay, OverlayStep};

/// Characters between the parts of keys, and of the names that the original shows.
const SEPARATORS: &[char] = &['-', '.'];

/// Words for settings in the menu of the original that their keys and descriptions do not have.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("compaction.enabled", "auto compact"),
    ("markdown.mermaid", "mermaid rendering"),
    ("outputPad", "output padding"),
    ("autocompleteMaxVisible", "autocomplete max items"),
];

/// The list of settings, or the value of one that is being typed or chosen.
pub(in super::super) struct SettingsDialog {
    settings: Arc<EffectiveSettings>,
    /// Models with a key.
    models: Vec<ModelChoice>,
    picker: Picker<&'static Setting>,
    stage: Stage,
}

enum Stage {
    List,
    Edit(Edit),
    /// The models that `defaultModel` can be.
    DefaultModel(Picker<String>),
}

/// A value that is being typed.
struct Edit {
    setting: &'static Setting,
    field: Field,
    /// Whether the text is a JSON string, because the field has no line breaks and tabs.
    is_json: bool,
    problem: Option<String>,
}

impl Edit {
    fn new(setting: &'static Setting, value: &Value) -> Self {
        let is_json = value.as_str().is_some_and(|text| text.contains(char::is_control));
        let typed = if is_json { value.to_string() } else { as_typed(value) };
        let mut field = Field::with_text(&typed);
        if value.is_number() {
            field.select();
        }
        Self { setting, field, is_json, problem: None }
    }

    fn value(&self) -> Result<Value, String> {
        let text = self.field.text();
        // A text without quotes replaces it.
        let is_json = self.is_json && text.trim_start().starts_with('"');
        let value = if is_json {
            serde_json::from_str::<String>(text)
                .map_err(|error| format!("not a JSON string: {error}"))?
                .into()
        } else {
            self.setting.kind.parse(text)
        };
        setting_change(self.setting.key, value.clone()).map_err(|error| error.to_string())?;
        Ok(value)
    }
}

impl SettingsDialog {
    /// Lists the settings that match `query`.
    pub(in super::super) fn new(
        settings: &Arc<EffectiveSettings>,
        models: &[ModelChoice],
        query: &str,
    ) -> Self {
        let hints = Hints::confirm("change").key("app.settings.reset", "reset").of_item().cancel("close");
        let mut picker = Picker::new("Settings", items(settings))
            .keeping_ends()
            .separating_words_at(SEPARATORS)
            .hints(hints);
        picker.set_query(query);
        Self { settings: Arc::clone(settings), models: models.to_vec(), picker, stage: Stage::List }
    }

    /// Changes a setting with few values to the next one; asks for the others.
    fn change(&mut self, setting: &'static Setting) -> OverlayStep {
        match setting.key {
            // Its list opens over this one.
            "theme" => return OverlayStep::StayWith(WorldEffect::ListThemes(String::new()).into()),
            "defaultModel" => {
                if let Some(list) = self.default_models() {
                    self.stage = Stage::DefaultModel(list);
                    return OverlayStep::Stay;
                }
            }
            _ => {}
        }
        let value = self.settings.value(setting.key).unwrap_or_default();
        let next = match setting.kind {
            SettingKind::Bool => Some(Value::from(value != Value::Bool(true))),
            SettingKind::BoolOr(word) => {
                Some(if value == Value::Bool(true) { word.into() } else { (value != word).into() })
            }
            SettingKind::Choice(choices) => {
                let at = choices.iter().position(|choice| value == *choice);
                choices.get(at.map_or(0, |at| (at + 1) % choices.len())).map(|choice| Value::from(*choice))
            }
            _ => None,
        };
        let Some(next) = next else {
            self.stage = Stage::Edit(Edit::new(setting, &value));
            return OverlayStep::Stay;
        };
        set(setting, Some(next))
    }

    fn on_edit(&mut self, input: &InputEvent, keymap: &Keymap) -> OverlayStep {
        let Stage::Edit(edit) = &mut self.stage else { return OverlayStep::Stay };
        if edit.field.handle(input, keymap) {
            edit.problem = None;
            return OverlayStep::Stay;
        }
        let InputEvent::Key(key) = input else { return OverlayStep::Stay };
        match keymap.lookup(Context::Select, key) {
            Some("tui.select.cancel") => self.stage = Stage::List,
            Some("tui.select.confirm") => match edit.value() {
                Err(problem) => edit.problem = Some(problem),
                Ok(value) => {
                    let setting = edit.setting;
                    self.stage = Stage::List;
                    return set(setting, Some(value).filter(|value| !value.is_null()));
                }
            },
            _ => {}
        }
        OverlayStep::Stay
    }

    /// The models of the default provider by their ids, or without one all by their references; `None` if
    /// there are none.
    fn default_models(&self) -> Option<Picker<String>> {
        let settings = &self.settings.values;
        let (provider, current) = (settings.default_provider.as_ref(), settings.default_model.as_ref());
        let value = |model: &ModelChoice| match provider {
            Some(_) => model.id.clone(),
            None => model.reference(),
        };
        let models = self.models.iter().filter(|model| provider.is_none_or(|id| *id == model.provider));
        let items: Vec<PickerItem<String>> = models
            .map(|model| {
                let value = value(model);
                let mark = if Some(&value) == current { "✓ " } else { "  " };
                PickerItem { value, ..model.item(mark, "") }
            })
            .collect();
        if items.is_empty() {
            return None;
        }
        let title = match provider {
            Some(provider) => format!("Model for new sessions, of {provider}"),
            None => "Model for new sessions".to_owned(),
        };
        let mut list = Picker::new(title, items).hints(Hints::confirm("save").cancel("back"));
        list.select(|value| Some(value) == current);
        Some(list)
    }

    fn on_default_model(&mut self, input: &InputEvent, keymap: &Keymap) -> OverlayStep {
        let Stage::DefaultModel(list) = &mut self.stage else { return OverlayStep::Stay };
        match list.handle(input, keymap) {
            PickerOutcome::Pending | PickerOutcome::Ignored => OverlayStep::Stay,
            PickerOutcome::Cancelled => {
                self.stage = Stage::List;
                OverlayStep::Stay
            }
            PickerOutcome::Chosen(model) => {
                self.stage = Stage::List;
                change("defaultModel", Some(model.into()))
            }
        }
    }

    /// Whether a key is a blank that begins no search.
    fn is_lone_blank(&self, input: &InputEvent) -> bool {
        let is_blank = matches!(input, InputEvent::Key(key) if Chord::typed(key) == Some(' '));
        is_blank && self.picker.query().is_empty()
    }
}

fn set(setting: &Setting, value: Option<Value>) -> OverlayStep {
    change(setting.key, value)
}

fn change(key: &str, value: Option<Value>) -> OverlayStep {
    let command = SessionCommand::ChangeSetting { key: key.to_owned(), value };
    OverlayStep::StayWith(DialogOutcome::session(command))
}

fn items(settings: &EffectiveSettings) -> Vec<PickerItem<&'static Setting>> {
    let item = |row: &'static Setting| {
        let value = match settings.shown_value(row.key).unwrap_or_default() {
            Value::Null => "none".to_owned(),
            value => value.to_string(),
        };
        let origin = match settings.origin(row.key) {
            Some(Layer::BuiltIn) | None => String::new(),
            Some(origin) => format!(" · {}", origin.name()),
        };
        let names = OTHER_NAMES.iter().find(|(key, _)| *key == row.key).map_or("", |(_, names)| names);
        let restart = if row.at_start { " · applies when pi starts again" } else { "" };
        PickerItem::new(row, row.key)
            .note(format!("{}{origin}", visible_line(&value)))
            .detail(format!("{}{restart}", row.help))
            .prose(format!("{} {names}", row.help))
    };
    ROWS.iter().map(item).collect()
}

/// A value as the user would type it.
fn as_typed(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

impl Overlay for SettingsDialog {
    fn handle(&mut self, input: &InputEvent, keymap: &Keymap) -> OverlayStep {
        match self.stage {
            Stage::List => {}
            Stage::Edit(_) => return self.on_edit(input, keymap),
            Stage::DefaultModel(_) => return self.on_default_model(input, keymap),
        }
        if let (InputEvent::Key(key), Some(setting)) = (input, self.picker.selected().copied())
            && keymap.is("app.settings.reset", key)
        {
            return set(setting, None);
        }
        if let Some(setting) = self.picker.selected().copied().filter(|_| self.is_lone_blank(input)) {
            return self.change(setting);
        }
        match self.picker.handle(input, keymap) {
            PickerOutcome::Pending | PickerOutcome::Ignored => OverlayStep::Stay,
            PickerOutcome::Cancelled => OverlayStep::Close,
            PickerOutcome::Chosen(setting) => self.change(setting),
        }
    }

    fn models_changed(&mut self, models: &[ModelChoice]) {
        models.clone_into(&mut self.models);
    }

    fn session_changed(&mut self, session: &SessionState) -> bool {
        if !Arc::ptr_eq(&self.settings, &session.settings) {
            self.settings = Arc::clone(&session.settings);
            let selected = self.picker.selected().map(|setting| setting.key);
            self.picker.set_items(items(&self.settings));
            self.picker.select(|setting| Some(setting.key) == selected);
        }
        true
    }

    fn render(&mut self, cx: &DialogCx<'_>) -> Drawn {
        let edit = match &mut self.stage {
            Stage::Edit(edit) => edit,
            Stage::List => return drawn(&mut self.picker, cx),
            Stage::DefaultModel(list) => return drawn(list, cx),
        };
        let form = if edit.is_json { ", here as a JSON string" } else { "" };
        let about = format!("{}: {}{form}", edit.setting.help, edit.setting.kind.describe());
        Dialog {
            title: edit.setting.key,
            body: wrap_plain(&about, cx.width.max(1), cx.theme.style(Token::Muted)),
            field: Some(&edit.field),
            note: edit.problem.as_deref().map(|problem| (problem, Token::Error)),
            hints: Hints::confirm("save").cancel("back"),
        }
        .render(cx)
    }
}

fn drawn<T: Clone>(list: &mut Picker<T>, cx: &DialogCx<'_>) -> Drawn {
    let drawn = list.render(cx);
    (drawn.rows, drawn.cursor)
}

#[cfg(test)]
mod tests {
    use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

    use crate::config::{LiveSettings, SettingChange};
    use crate::tui::keymap::{BINDINGS, Platform};

    use super::super::super::actions;
    use super::super::super::msg::Effect;
    use super::super::tests::draw;
    use super::*;

    fn keymap() -> Keymap {
        Keymap::new(&[BINDINGS, &actions::bindings()], Platform::Unix)
    }

    fn dialog(query: &str, changes: Vec<SettingChange>) -> SettingsDialog {
        let (live, _) = LiveSettings::load("/nowhere/settings.json".into(), changes);
        let model = |provider: &str, id: &str| ModelChoice {
            id: id.to_owned(),
            provider: provider.to_owned(),
            name: String::new(),
        };
        let models = [model("acme", "one"), model("umbrella", "two"), model("acme", "three")];
        SettingsDialog::new(&live.get(), &models, query)
    }

    fn press(
        dialog: &mut SettingsDialog,
        keys: &[(KeyCode, KeyModifiers)],
    ) -> Option<(String, Option<Value>)> {
        let mut changed = None;
        for (code, modifiers) in keys {
            let key = InputEvent::Key(KeyEvent::new(*code, *modifiers));
            if let OverlayStep::StayWith(DialogOutcome::Effect(Effect::World(WorldEffect::Session(
                SessionCommand::ChangeSetting { key, value },
            )))) = dialog.handle(&key, &keymap())
            {
                changed = Some((key, value));
            }
        }
        changed
    }

    fn typed(text: &str) -> Vec<(KeyCode, KeyModifiers)> {
        let mut keys = vec![(KeyCode::Char('u'), KeyModifiers::CONTROL)];
        keys.extend(text.chars().map(|c| (KeyCode::Char(c), KeyModifiers::NONE)));
        keys.push(ENTER);
        keys
    }

    const ENTER: (KeyCode, KeyModifiers) = (KeyCode::Enter, KeyModifiers::NONE);

    #[test]
    fn text_with_line_breaks_stays_as_it_is_unless_it_is_changed() {
        let text = "shopt -s expand_aliases\nalias ll='ls\t-l'\u{7}";
        let with_breaks = || {
            let change = SettingChange::set("shellCommandPrefix", Value::from(text)).unwrap();
            dialog("shellCommandPrefix", vec![change])
        };
        let key = || "shellCommandPrefix".to_owned();
        assert_eq!(press(&mut with_breaks(), &[ENTER, ENTER]), Some((key(), Some(text.into()))));
        let edited =
            [vec![ENTER, (KeyCode::Backspace, KeyModifiers::NONE), ENTER], typed("\"a\\nb\"")].concat();
        let mut dialog = with_breaks();
        assert_eq!(press(&mut dialog, &edited[..3]), None);
        assert!(shown(&mut dialog, 12).contains("not a JSON string: "), "{}", shown(&mut dialog, 12));
        assert_eq!(press(&mut dialog, &edited[3..]), Some((key(), Some("a\nb".into()))));
        let plain = [vec![ENTER], typed("true;")].concat();
        assert_eq!(press(&mut with_breaks(), &plain), Some((key(), Some("true;".into()))));
    }

    fn shown(dialog: &mut SettingsDialog, max_rows: u16) -> String {
        let (rows, _) = draw(dialog, 90, max_rows);
        rows.iter().map(|row| row.text().trim_end().to_owned()).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn each_setting_is_shown_with_value_and_origin() {
        let flag = SettingChange::set("theme", Value::from("light")).unwrap();
        let screen = shown(&mut dialog("theme", vec![flag]), 8);
        assert!(screen.contains("→ theme ") && screen.contains("\"light\" · command line"), "{screen}");
        assert!(screen.contains("dark, light, system"), "{screen}");
        let flag = SettingChange::set("theme", Value::from("da\u{9b}rk\u{202e}")).unwrap();
        let screen = shown(&mut dialog("theme", vec![flag]), 8);
        assert!(screen.contains("\"da<U+009B>rk<U+202E>\""), "{screen}");
        assert!(shown(&mut dialog("shellPath", vec![]), 8).contains("none"));
        assert!(shown(&mut dialog("shellPath", vec![]), 8).contains("applies when pi starts again"));
    }

    #[test]
    fn enter_switches_what_has_few_values_and_asks_for_the_others() {
        let changed = |query: &str, keys: &[(KeyCode, KeyModifiers)]| press(&mut dialog(query, vec![]), keys);
        let expected = |key: &str, value: Value| Some((key.to_owned(), Some(value)));
        assert_eq!(changed("quietStartup", &[ENTER]), expected("quietStartup", true.into()));
        assert_eq!(changed("doubleEscapeAction", &[ENTER]), expected("doubleEscapeAction", "fork".into()));
        let keys = [vec![ENTER], typed("7")].concat();
        assert_eq!(changed("retry.maxRetries", &keys), expected("retry.maxRetries", 7.into()));
        let keys = [vec![ENTER], typed("read, bash")].concat();
        let tools = serde_json::json!(["read", "bash"]);
        assert_eq!(changed("defaultTools", &keys), expected("defaultTools", tools));
        let reset = (KeyCode::Char('r'), KeyModifiers::CONTROL);
        assert_eq!(changed("quietStartup", &[reset]), Some(("quietStartup".to_owned(), None)));
    }

    #[test]
    fn settings_are_found_by_words_of_key_description_and_the_originals_names() {
        let first = |query: &str| {
            let dialog = dialog(query, vec![]);
            dialog.picker.selected().map_or("none", |setting| setting.key)
        };
        for (query, key) in [
            ("Transport", "transport"),
            ("steering mode", "steeringMode"),
            ("follow-up mode", "followUpMode"),
            ("Auto-compact", "compaction.enabled"),
            ("double-escape action", "doubleEscapeAction"),
            ("Auto-resize images", "images.autoResize"),
            ("output padding", "outputPad"),
            ("Quiet startup", "quietStartup"),
            ("tree-filter-mode", "treeFilterMode"),
            ("http-idle-timeout", "httpIdleTimeoutMs"),
            ("hide thinking", "hideThinkingBlock"),
            ("Mermaid rendering", "markdown.mermaid"),
            ("cache-miss-notices", "showCacheMissNotices"),
            ("default-project-trust", "defaultProjectTrust"),
            ("image-width-cells", "terminal.imageWidthCells"),
            ("autocomplete max items", "autocompleteMaxVisible"),
            ("clear-on-shrink", "terminal.clearOnShrink"),
            ("terminal progress", "terminal.showTerminalProgress"),
            ("editor padding", "editorPaddingX"),
            ("skill-commands", "enableSkillCommands"),
            // A word of the key and one of the description.
            ("markdown front", "markdown.codeBlockIndent"),
            ("retry.maxRetries", "retry.maxRetries"),
        ] {
            assert_eq!(first(query), key, "{query}");
        }
    }

    #[test]
    fn blank_changes_the_selected_setting_until_a_search_has_begun() {
        let key = |c| (KeyCode::Char(c), KeyModifiers::NONE);
        let (down, mut list) = ((KeyCode::Down, KeyModifiers::NONE), dialog("", vec![]));
        let at = ROWS.iter().position(|row| row.key == "showCacheMissNotices").unwrap();
        assert_eq!(press(&mut list, &vec![down; at]), None);
        let expected = Some(("showCacheMissNotices".to_owned(), Some(false.into())));
        assert_eq!(press(&mut list, &[key(' ')]), expected);
        assert_eq!(press(&mut list, &[key('q'), key(' '), key('s')]), None);
        assert_eq!(list.picker.query(), "q s");
    }

    #[test]
    fn default_model_is_chosen_among_the_models_of_the_default_provider() {
        let set = |key: &str, value: &str| SettingChange::set(key, Value::from(value)).unwrap();
        let chosen = |model: &str| Some(("defaultModel".to_owned(), Some(model.into())));
        let down = (KeyCode::Down, KeyModifiers::NONE);
        let mut list =
            dialog("defaultModel", vec![set("defaultProvider", "acme"), set("defaultModel", "three")]);
        assert_eq!(press(&mut list, &[ENTER]), None);
        let screen = shown(&mut list, 12);
        assert!(screen.contains("Model for new sessions, of acme"), "{screen}");
        assert!(screen.contains("→ ✓ three") && !screen.contains("two"), "{screen}");
        assert_eq!(press(&mut list, &[down, ENTER]), chosen("one"));
        assert!(shown(&mut list, 12).contains("→ defaultModel"));
        press(&mut list, &[ENTER, (KeyCode::Esc, KeyModifiers::NONE)]);
        assert!(shown(&mut list, 12).contains("→ defaultModel"));
        // Without a provider, the value names it.
        assert_eq!(press(&mut dialog("defaultModel", vec![]), &[ENTER, down, ENTER]), chosen("umbrella/two"));
        // Without a model to choose, it is typed.
        let mut unknown = dialog("defaultModel", vec![set("defaultProvider", "gone")]);
        assert_eq!(press(&mut unknown, &[vec![ENTER], typed("any")].concat()), chosen("any"));
    }

    #[test]
    fn theme_opens_the_list_of_themes() {
        let key = InputEvent::Key(KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE));
        let step = dialog("theme", vec![]).handle(&key, &keymap());
        let expected = DialogOutcome::from(WorldEffect::ListThemes(String::new()));
        assert!(matches!(step, OverlayStep::StayWith(outcome) if outcome == expected));
    }

    #[test]
    fn digit_replaces_a_number_and_keys_that_move_keep_it() {
        let key = |code| (code, KeyModifiers::NONE);
        let changed = |keys: &[(KeyCode, KeyModifiers)]| {
            let changed = press(&mut dialog("compaction.reserveTokens", vec![]), keys);
            changed.and_then(|(_, value)| value).map(|value| value.to_string()).unwrap_or_default()
        };
        let five = key(KeyCode::Char('5'));
        assert_eq!(changed(&[ENTER, ENTER]), "16384");
        assert_eq!(changed(&[ENTER, five, five, ENTER]), "55");
        assert_eq!(changed(&[ENTER, key(KeyCode::Backspace), five, ENTER]), "5");
        assert_eq!(changed(&[ENTER, key(KeyCode::Delete), five, ENTER]), "5");
        assert_eq!(changed(&[ENTER, key(KeyCode::Right), five, ENTER]), "163845");
    }

    #[test]
    fn a_wrong_value_is_explained_and_stays_to_be_corrected() {
        let mut dialog = dialog("retry.maxRetries", vec![]);
        assert_eq!(press(&mut dialog, &[vec![ENTER], typed("many")].concat()), None);
        let screen = shown(&mut dialog, 12);
        assert!(screen.contains("\"retry.maxRetries\" must be a whole number, 0 or more"), "{screen}");
        assert!(screen.contains("> many"), "{screen}");
        press(&mut dialog, &[(KeyCode::Esc, KeyModifiers::NONE)]);
        assert!(shown(&mut dialog, 12).contains("→ retry.maxRetries"));
        let mut dialog = self::dialog("defaultTools", vec![]);
        assert_eq!(press(&mut dialog, &[vec![ENTER], typed("raed")].concat()), None);
        let screen = shown(&mut dialog, 12);
        assert!(screen.contains("unknown tool \"raed\"; choose from read"), "{screen}");
    }

    #[test]
    fn any_size_is_survived() {
        let mut dialog = dialog("", vec![]);
        for width in 0..9 {
            for max_rows in 0..9 {
                assert!(draw(&mut dialog, width, max_rows).0.len() <= usize::from(max_rows.max(1)));
            }
        }
    }
}
