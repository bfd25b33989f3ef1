//! Decides which value of a setting applies: that of the strongest layer with a value.
//!
//! Pure. Each layer is validated separately, so an invalid value does not hide the value
//! of a weaker layer. Objects are merged, all other values are replaced.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::{InProject, ROWS, Row, Settings, unknown};

/// The origin of a value. Later layers override earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layer {
    /// The default.
    BuiltIn,
    /// The user's `settings.json`.
    User,
    /// `.pi/settings.json` of a trusted project.
    Project,
    /// A command line flag.
    CommandLine,
    /// A change in this session that could not be saved, or that would be hidden by the
    /// project or a flag.
    Session,
}

impl Layer {
    /// The name for users.
    pub fn name(self) -> &'static str {
        match self {
            Self::BuiltIn => "default",
            Self::User => "your settings",
            Self::Project => "project",
            Self::CommandLine => "command line",
            Self::Session => "this session",
        }
    }
}

/// A problem with a key of a settings file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum SettingsProblem {
    /// An invalid value, or a setting in a file where it does not apply. `fallback` is the
    /// consequence.
    #[error("\"{key}\" must be {expected}; {fallback}")]
    Invalid { key: &'static str, expected: String, fallback: String },
    #[error("there is no setting \"{key}\"; did you mean \"{meant}\"?")]
    Misspelt { key: String, meant: &'static str },
}

impl SettingsProblem {
    /// The dotted key in the file.
    pub fn key(&self) -> &str {
        match self {
            Self::Invalid { key, .. } => key,
            Self::Misspelt { key, .. } => key,
        }
    }
}

/// The valid values of all layers except the built-in one, without `null`.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Layers {
    pub(super) user: Map<String, Value>,
    pub(super) project: Map<String, Value>,
    pub(super) command_line: Map<String, Value>,
    pub(super) session: Map<String, Value>,
}

impl Layers {
    /// From weak to strong.
    fn in_order(&self) -> [(Layer, &Map<String, Value>); 4] {
        [
            (Layer::User, &self.user),
            (Layer::Project, &self.project),
            (Layer::CommandLine, &self.command_line),
            (Layer::Session, &self.session),
        ]
    }

    fn merged(&self) -> Map<String, Value> {
        let mut merged = Map::new();
        for (layer, values) in self.in_order().into_iter().filter(|(_, values)| !values.is_empty()) {
            for row in ROWS.iter().filter(|row| counts(row, layer)) {
                let Some(value) = lookup(values, row.key) else { continue };
                let place = entry(&mut merged, row.key);
                if row.is_edited {
                    edit(place, value, || row.default_value());
                } else {
                    merge(place, value);
                }
            }
        }
        merged
    }
}

/// Whether a layer's value of a setting overrides weaker layers.
fn counts(row: &Row, layer: Layer) -> bool {
    layer != Layer::Project || row.in_project == InProject::Overrides
}

/// The current values of all settings, and their origins.
#[derive(Debug, Clone, PartialEq)]
pub struct EffectiveSettings {
    /// The values that count.
    pub values: Settings,
    layers: Layers,
    merged: Map<String, Value>,
}

impl Default for EffectiveSettings {
    fn default() -> Self {
        Self::of(Layers::default())
    }
}

impl EffectiveSettings {
    pub(super) fn of(layers: Layers) -> Self {
        let merged = layers.merged();
        Self { values: Settings::of(&merged), layers, merged }
    }

    /// The current value of a setting; `None` for an unknown key.
    pub fn value(&self, key: &str) -> Option<Value> {
        let row = Row::find(key)?;
        Some(lookup(&self.merged, key).cloned().unwrap_or_else(|| row.default_value()))
    }

    /// Like [`Self::value`], to be shown: without passwords in addresses.
    pub fn shown_value(&self, key: &str) -> Option<Value> {
        self.value(key).map(|value| match value {
            Value::String(text) => Value::String(without_password(text)),
            value => value,
        })
    }

    /// The layer of a value, the strongest one for merged objects; `None` for an unknown
    /// key.
    pub fn origin(&self, key: &str) -> Option<Layer> {
        let row = Row::find(key)?;
        let layers = self.layers.in_order().into_iter().rev();
        let found = layers.filter(|(layer, _)| counts(row, *layer));
        let mut found = found.filter(|(_, values)| lookup(values, key).is_some());
        Some(found.next().map_or(Layer::BuiltIn, |(layer, _)| layer))
    }

    /// The value of the project's file; `None` if it has none.
    pub fn project_value(&self, key: &str) -> Option<&Value> {
        lookup(&self.layers.project, key)
    }

    /// The keys whose values differ from those in `before`.
    pub fn changed_since(&self, before: &Self) -> Vec<&'static str> {
        // Setting a value to its default changes nothing.
        let differs = |row: &&Row| self.shown(row) != before.shown(row);
        ROWS.iter().filter(differs).map(|row| row.key).collect()
    }

    /// The current value, and that of the project if it applies in addition.
    fn shown(&self, row: &Row) -> (Option<Value>, Option<Value>) {
        let beside = (row.in_project == InProject::Beside).then(|| lookup(&self.layers.project, row.key));
        (self.value(row.key), beside.flatten().cloned())
    }
}

/// The valid values of one layer, and problems with the others.
pub(super) fn checked(
    values: &Map<String, Value>,
    layer: Layer,
) -> (Map<String, Value>, Vec<SettingsProblem>) {
    let values = &*modern(values);
    let mut problems = section_problems(values, layer);
    let mut fitting = Map::new();
    for row in ROWS {
        let Some(value) = lookup(values, row.key).filter(|value| !value.is_null()) else { continue };
        if layer == Layer::Project && row.in_project == InProject::Ignored {
            let expected = "in your own settings.json".to_owned();
            problems.push(SettingsProblem::Invalid { key: row.key, expected, fallback: IGNORED.to_owned() });
        } else if row.kind.accepts(value) {
            *entry(&mut fitting, row.key) = value.clone();
        } else {
            let fallback = match layer {
                Layer::User => format!("using the default, {}", row.default),
                _ => IGNORED.to_owned(),
            };
            problems.push(SettingsProblem::Invalid { key: row.key, expected: row.kind.describe(), fallback });
        }
    }
    let misspelt = unknown::misspelt(values).into_iter();
    problems.extend(misspelt.map(|(key, meant)| SettingsProblem::Misspelt { key, meant }));
    (fitting, problems)
}

const IGNORED: &str = "ignoring it";

/// Converts older and other forms of settings to the current form.
pub(super) fn modern(values: &Map<String, Value>) -> Cow<'_, Map<String, Value>> {
    let mut modern = Cow::Borrowed(values);
    if let Some(Value::Object(skills)) = values.get("skills") {
        let (folders, commands) = (skills.get("customDirectories"), skills.get("enableSkillCommands"));
        if folders.is_some() || commands.is_some() {
            let modern = modern.to_mut();
            modern.insert("skills".to_owned(), folders.cloned().unwrap_or_default());
            if let Some(commands) = commands {
                modern.entry("enableSkillCommands").or_insert_with(|| commands.clone());
            }
        }
    }
    for (old, new) in RENAMED {
        if let Some(value) = lookup(values, old)
            && lookup(values, new).is_none()
        {
            *entry(modern.to_mut(), new) = value.clone();
        }
    }
    if let Some(on) = values.get("websockets").and_then(Value::as_bool)
        && lookup(values, "transport").is_none()
    {
        *entry(modern.to_mut(), "transport") = if on { "websocket" } else { "sse" }.into();
    }
    const TIMEOUTS: [&str; 4] = [
        "httpIdleTimeoutMs",
        "httpContentTimeoutMs",
        "retry.provider.timeoutMs",
        "websocketConnectTimeoutMs",
    ];
    for key in TIMEOUTS {
        if lookup(values, key).is_some_and(|value| value == "disabled") {
            *entry(modern.to_mut(), key) = 0.into();
        }
    }
    modern
}

/// Earlier names of settings.
const RENAMED: &[(&str, &str)] =
    &[("queueMode", "steeringMode"), ("retry.maxDelayMs", "retry.provider.maxRetryDelayMs")];

/// Sections that are not objects, such as `"retry": 3`. Their settings are ignored.
fn section_problems(values: &Map<String, Value>, layer: Layer) -> Vec<SettingsProblem> {
    let mut problems: Vec<SettingsProblem> = Vec::new();
    for row in ROWS {
        for (dot, _) in row.key.match_indices('.') {
            let (section, first) = (&row.key[..dot], &row.key[dot + 1..]);
            let is_wrong =
                lookup(values, section).is_some_and(|value| !value.is_object() && !value.is_null());
            if is_wrong && problems.iter().all(|problem| problem.key() != section) {
                let expected =
                    format!("an object, such as {{\"{}\": …}}", first.split('.').next().unwrap_or(first));
                let fallback = if layer == Layer::User { "using the defaults" } else { IGNORED }.to_owned();
                problems.push(SettingsProblem::Invalid { key: section, expected, fallback });
            }
        }
    }
    problems
}

/// The value at a dotted key.
pub(super) fn lookup<'a>(values: &'a Map<String, Value>, key: &str) -> Option<&'a Value> {
    match key.split_once('.') {
        None => values.get(key),
        Some((head, rest)) => lookup(values.get(head)?.as_object()?, rest),
    }
}

/// The entry of a dotted key. Creates the objects above it, replacing other values.
fn entry<'a>(values: &'a mut Map<String, Value>, key: &str) -> &'a mut Value {
    match key.split_once('.') {
        None => values.entry(key).or_insert(Value::Null),
        Some((head, rest)) => {
            let section = values.entry(head).or_insert(Value::Null);
            if !section.is_object() {
                *section = Value::Object(Map::new());
            }
            entry(section.as_object_mut().expect("made an object above"), rest)
        }
    }
}

/// Sets the value at a dotted key of a layer, or removes it.
pub(super) fn set(values: &mut Map<String, Value>, key: &str, value: Option<&Value>) {
    match value {
        Some(value) => *entry(values, key) = value.clone(),
        None => remove(values, key),
    }
}

/// Removes the value at a dotted key, and objects that become empty.
pub(super) fn remove(values: &mut Map<String, Value>, key: &str) {
    let Some((head, rest)) = key.split_once('.') else {
        values.shift_remove(key);
        return;
    };
    if let Some(Value::Object(section)) = values.get_mut(head) {
        remove(section, rest);
        if section.is_empty() {
            values.shift_remove(head);
        }
    }
}

/// Merges `value` into `place` if both are objects; otherwise replaces it.
fn merge(place: &mut Value, value: &Value) {
    match (place, value) {
        (Value::Object(below), Value::Object(above)) => {
            for (key, value) in above {
                merge(below.entry(key).or_insert(Value::Null), value);
            }
        }
        (place, value) => *place = value.clone(),
    }
}

/// Adds a list whose entries all begin with `+` or `-` to the list in `place`; any other
/// value replaces it.
fn edit(place: &mut Value, value: &Value, default: impl FnOnce() -> Value) {
    let signed = |entry: &Value| entry.as_str().is_some_and(|entry| entry.starts_with(['+', '-']));
    match value.as_array().filter(|list| !list.is_empty() && list.iter().all(signed)) {
        Some(edits) => {
            if place.is_null() {
                *place = default();
            }
            place.as_array_mut().into_iter().for_each(|list| list.extend(edits.iter().cloned()));
        }
        None => *place = value.clone(),
    }
}

/// An address without the password in it: `http://user:…@proxy:3128`.
fn without_password(text: String) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let Some((account, host)) = authority.rsplit_once('@') else { return text };
    let Some((user, _)) = account.split_once(':') else { return text };
    format!("{scheme}://{user}:…@{host}{}", &rest[authority.len()..])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn layer(values: Value, layer: Layer) -> Map<String, Value> {
        checked(values.as_object().unwrap(), layer).0
    }

    fn effective(user: Value, project: Value, command_line: Value) -> EffectiveSettings {
        EffectiveSettings::of(Layers {
            user: layer(user, Layer::User),
            project: layer(project, Layer::Project),
            command_line: layer(command_line, Layer::CommandLine),
            session: Map::new(),
        })
    }

    #[test]
    fn passwords_of_addresses_are_not_shown() {
        let check = |text: &str, expected: &str| {
            assert_eq!(without_password(text.to_owned()), expected);
        };
        check("http://user:p@ss:w@proxy:3128/x", "http://user:…@proxy:3128/x");
        check("http://user@proxy", "http://user@proxy");
        check("http://proxy/a:b@c", "http://proxy/a:b@c");
        check("dark", "dark");
    }

    #[test]
    fn the_strongest_layer_with_a_value_wins_and_is_named() {
        let check = |user, project, command_line, theme: &str, origin| {
            let settings = effective(user, project, command_line);
            assert_eq!((settings.values.theme.as_str(), settings.origin("theme")), (theme, Some(origin)));
            assert_eq!(settings.value("theme"), Some(json!(theme)));
        };
        check(json!({}), json!({}), json!({}), "system", Layer::BuiltIn);
        check(json!({"theme": "dark"}), json!({}), json!({}), "dark", Layer::User);
        check(json!({"theme": "dark"}), json!({"theme": "light"}), json!({}), "light", Layer::Project);
        let flag = json!({"theme": "mine"});
        check(json!({}), json!({"theme": "light"}), flag, "mine", Layer::CommandLine);
        // Nothing at all, and a wrong value, let the layer below through.
        check(json!({"theme": "dark"}), json!({"theme": null}), json!({}), "dark", Layer::User);
        check(json!({"theme": "dark"}), json!({"theme": 1}), json!({}), "dark", Layer::User);
    }

    #[test]
    fn objects_are_merged_and_lists_replaced() {
        let settings = effective(
            json!({"retry": {"maxRetries": 5, "enabled": false}, "urgentWords": ["a", "b"],
                   "compaction": {"modelOverrides": {"p/m": {"reserveTokens": 1}, "p/n": {"reserveTokens": 2}}}}),
            json!({"retry": {"maxRetries": 7}, "urgentWords": ["c"],
                   "compaction": {"modelOverrides": {"p/m": {"keepRecentTokens": 3}}}}),
            json!({}),
        );
        let values = &settings.values;
        assert_eq!((values.retry_max, values.retry_enabled), (7, false));
        assert_eq!(values.urgent_words, ["c"]);
        assert_eq!(values.compaction.budget("p/m").reserve_tokens, 1);
        assert_eq!(values.compaction.budget("p/m").keep_recent_tokens, 3);
        assert_eq!(values.compaction.budget("p/n").reserve_tokens, 2);
        assert_eq!(settings.origin("retry.maxRetries"), Some(Layer::Project));
        assert_eq!(settings.origin("retry.enabled"), Some(Layer::User));
    }

    #[test]
    fn signed_tools_change_the_selection_of_weaker_layers() {
        let check = |user: Value, project: Value, command_line: Value, expected: &str| {
            let of = |tools: Value| json!({ "defaultTools": tools });
            let settings = effective(of(user), of(project), of(command_line));
            assert_eq!(settings.values.default_tools.join(" "), expected);
        };
        let none = || Value::Null;
        check(json!(["read"]), json!(["+grep"]), none(), "read +grep");
        check(none(), json!(["-bash"]), json!(["+ls", "-edit"]), "read bash edit write -bash +ls -edit");
        check(json!(["-bash"]), json!(["read"]), none(), "read");
        check(json!(["-bash"]), json!([]), none(), "");
        check(json!(["read"]), json!(["ls", "+grep"]), none(), "ls +grep");
    }

    #[test]
    fn a_project_decides_only_about_what_it_may() {
        let project = json!({"defaultProjectTrust": "always", "copilotClientId": "x", "retry": {"maxRetries": "no"},
                             "skills": ["theirs"]});
        let (values, problems) = checked(project.as_object().unwrap(), Layer::Project);
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(
            problems,
            [
                "\"defaultProjectTrust\" must be in your own settings.json; ignoring it",
                "\"copilotClientId\" must be in your own settings.json; ignoring it",
                "\"retry.maxRetries\" must be a whole number, 0 or more; ignoring it",
            ]
        );
        let user = layer(json!({"skills": ["mine"]}), Layer::User);
        let settings = EffectiveSettings::of(Layers { user, project: values, ..Layers::default() });
        assert_eq!(settings.values.project_trust, super::super::TrustDefault::Ask);
        assert_eq!(settings.values.skills, ["mine"], "those of the project count beside them");
        assert_eq!(settings.origin("skills"), Some(Layer::User));
    }

    #[test]
    fn earlier_names_and_words_of_the_original_count() {
        let values = json!({
            "queueMode": "all",
            "httpIdleTimeoutMs": "disabled",
            "websocketConnectTimeoutMs": "disabled",
            "websockets": true,
            "retry": {"maxDelayMs": 5, "provider": {"timeoutMs": "disabled"}},
        });
        let (values, problems) = checked(values.as_object().unwrap(), Layer::User);
        assert_eq!(problems, []);
        let settings = EffectiveSettings::of(Layers { user: values, ..Layers::default() }).values;
        assert_eq!(settings.steering_mode, super::super::BatchSize::All);
        assert!(settings.http_idle_timeout.is_zero());
        assert_eq!(settings.transport, super::super::TransportChoice::WebSocket);
        assert!(settings.web_socket_connect_timeout.is_zero());
        assert_eq!(settings.provider_timeout, Some(std::time::Duration::ZERO));
        assert_eq!(settings.provider_max_retry_delay.as_millis(), 5);
        let both = json!({"queueMode": "all", "steeringMode": "one-at-a-time"});
        let (values, _) = checked(both.as_object().unwrap(), Layer::User);
        assert_eq!(lookup(&values, "steeringMode"), Some(&json!("one-at-a-time")));
    }

    #[test]
    fn changes_are_named_by_their_keys() {
        let before = effective(json!({"theme": "dark"}), json!({}), json!({}));
        let check = |user, project, expected: &[&str]| {
            assert_eq!(effective(user, project, json!({})).changed_since(&before), expected);
        };
        check(json!({"theme": "dark", "retry": {"maxRetries": 3}}), json!({}), &[]);
        check(json!({"theme": "dark"}), json!({"skills": ["x"]}), &["skills"]);
        check(json!({"retry": {"maxRetries": 4}}), json!({}), &["theme", "retry.maxRetries"]);
    }

    #[test]
    fn a_removed_value_leaves_no_empty_section() {
        let mut values =
            layer(json!({"retry": {"provider": {"maxRetries": 1}}, "theme": "dark"}), Layer::User);
        remove(&mut values, "retry.provider.maxRetries");
        remove(&mut values, "compaction.enabled");
        assert_eq!(Value::Object(values), json!({"theme": "dark"}));
    }
}
