//! `/settings`: the settings as a list, and the values of one.

use serde_json::Value;

use crate::config::{EffectiveSettings, Layer, ROWS, Row as Setting, SettingKind};
use crate::session::{SessionCommand, setting_change};

use super::menu::{Menu, MenuItem, Outcome};
use super::narrator::on_one_line;
use super::{Next, Talk};

/// Lists the settings, or those that match what was typed. A name with a value changes the setting.
pub(super) fn settings(talk: &mut Talk, args: &str) -> Next {
    let named =
        args.split_once(char::is_whitespace).and_then(|(key, text)| Some((Setting::find(key)?, text)));
    if let Some((setting, text)) = named {
        let menu = value_menu(setting, &talk.handle.state().settings);
        talk.choose(menu, text, None);
        return Next::GoOn;
    }
    let menu = Menu::new("Settings:", items(&talk.handle.state().settings));
    super::commands::offer(talk, "settings", menu, args)
}

/// Asks for the value of a setting: its values with numbers, if they are few.
pub(super) fn value_menu(setting: &'static Setting, settings: &EffectiveSettings) -> Menu {
    let about = format!("{}, {}. {}.", setting.key, value_of(setting, settings), setting.help);
    let current = settings.value(setting.key).unwrap_or_default();
    let item = |value: Value| {
        let is_current = value == current;
        MenuItem::command(plain(&value), change(setting, Some(value))).current(is_current)
    };
    let mut items: Vec<MenuItem> = match setting.kind {
        SettingKind::Bool => [true, false].into_iter().map(|value| item(value.into())).collect(),
        SettingKind::BoolOr(word) => [true.into(), false.into(), word.into()].map(item).into(),
        SettingKind::Choice(choices) => choices.iter().map(|choice| item((*choice).into())).collect(),
        _ => return Menu::of_value(format!("{about}\nIt is {}.", setting.kind.describe()), setting),
    };
    let default = format!("default, {}", plain(&setting.default_value()));
    items.push(MenuItem::command(default, change(setting, None)));
    Menu::new(about, items)
}

/// What a typed value changes.
///
/// # Errors
/// If it is none of the setting.
pub(super) fn typed_change(setting: &'static Setting, text: &str) -> Result<SessionCommand, String> {
    let value = if text == "default" { Value::Null } else { setting.kind.parse(text) };
    setting_change(setting.key, value.clone()).map_err(|error| error.to_string())?;
    Ok(change(setting, Some(value).filter(|value| !value.is_null())))
}

/// What to say after a change.
pub(super) fn changed(key: &str, settings: &EffectiveSettings) -> String {
    let Some(setting) = Setting::find(key) else { return String::new() };
    let restart = if setting.at_start { " The change applies when pi starts again." } else { "" };
    format!("{key}, {}.{restart}", value_of(setting, settings))
}

fn change(setting: &Setting, value: Option<Value>) -> SessionCommand {
    SessionCommand::ChangeSetting { key: setting.key.to_owned(), value }
}

/// The settings that have an effect.
fn items(settings: &EffectiveSettings) -> Vec<MenuItem> {
    let item = |setting: &'static Setting| {
        MenuItem::new(setting.key, Outcome::Setting(setting)).detail(value_of(setting, settings))
    };
    ROWS.iter().filter(|setting| setting.kept.is_none()).map(item).collect()
}

/// The value in force, and where it is from.
fn value_of(setting: &Setting, settings: &EffectiveSettings) -> String {
    let value = plain(&settings.shown_value(setting.key).unwrap_or_default());
    match settings.origin(setting.key) {
        Some(Layer::BuiltIn) | None => format!("{value}, the default"),
        Some(origin) => format!("{value}, from {}", origin.name()),
    }
}

/// A value as the user would type it.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::String(text) => on_one_line(text),
        value => on_one_line(&value.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::menu::Choice;
    use super::*;

    #[track_caller]
    fn check(key: &str, text: &str, expected: Result<Option<Value>, &str>) {
        let setting = Setting::find(key).unwrap();
        let found = match value_menu(setting, &EffectiveSettings::default()).choose(text) {
            Choice::Outcome(outcome) => match *outcome {
                Outcome::Command(SessionCommand::ChangeSetting { key: changed, value }) if changed == key => {
                    Ok(value)
                }
                other => panic!("{other:?}"),
            },
            Choice::Nothing(_, why) => Err(why),
            other => panic!("{other:?}"),
        };
        assert_eq!(found, expected.map_err(str::to_owned), "{key} {text}");
    }

    #[test]
    fn a_value_is_chosen_by_number_or_typed() {
        check("quietStartup", "1", Ok(Some(true.into())));
        check("quietStartup", "false", Ok(Some(false.into())));
        check("quietStartup", "default", Ok(None));
        check("doubleEscapeAction", "fork", Ok(Some("fork".into())));
        check("retry.maxRetries", "7", Ok(Some(7.into())));
        check("retry.maxRetries", "default", Ok(None));
        let problem = "Error: \"retry.maxRetries\" must be a whole number, 0 or more.";
        check("retry.maxRetries", "many", Err(problem));
        let problem = "Error: defaultTools: unknown tool \"raed\"; choose from read, bash, edit, write, grep, find, ls.";
        check("defaultTools", "raed, bash", Err(problem));
    }

    #[test]
    fn a_setting_is_read_with_its_value_and_what_it_takes() {
        let setting = Setting::find("retry.maxRetries").unwrap();
        let lines = value_menu(setting, &EffectiveSettings::default()).lines();
        let lines = lines.join("\n");
        assert!(lines.starts_with("retry.maxRetries, 3, the default. "), "{lines}");
        let end =
            "\nIt is a whole number, 0 or more.\nType the value, or the word default. An empty line cancels.";
        assert!(lines.ends_with(end), "{lines}");
    }
}
