//! Parses the JSON form of themes.
//!
//! Strict, so that a misspelt token is reported instead of silently getting a default. An
//! error contains the path of the key, such as `colors.accent`.

use serde_json::{Map, Value};
use thiserror::Error;

use super::Appearance;
use super::color::ThemeColor;
use super::system::contrast;
use super::tokens::{Kind, TABLE};

/// Why a text is not a theme.
#[derive(Debug, Error)]
pub enum ThemeError {
    #[error("theme is not valid JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error("{path}: expected {expected}")]
    WrongType { path: String, expected: &'static str },
    #[error("{path}: unknown key")]
    UnknownKey { path: String },
    #[error("theme lacks {}", some_of(names))]
    Missing { names: Vec<&'static str> },
    #[error("{path}: {value:?} is neither a colour nor a variable of this theme")]
    UnknownColor { path: String, value: String },
    #[error("{path}: circular variables ({})", chain.join(" → "))]
    Cycle { path: String, chain: Vec<String> },
    #[error("name: {name:?} is reserved or contains a slash")]
    BadName { name: String },
}

impl ThemeError {
    /// The dotted key of the file that is wrong, if it is one key.
    pub fn key(&self) -> Option<&str> {
        match self {
            Self::WrongType { path, .. }
            | Self::UnknownKey { path }
            | Self::UnknownColor { path, .. }
            | Self::Cycle { path, .. } => Some(path),
            Self::BadName { .. } => Some("name"),
            Self::Json(_) | Self::Missing { .. } => None,
        }
    }
}

/// Names that are missing; of many the first, as one reads them at a glance.
fn some_of(names: &[&str]) -> String {
    const MAX_NAMES: usize = 4;
    match names.len().checked_sub(MAX_NAMES) {
        None | Some(0) => names.join(", "),
        Some(n_more) => format!("{} and {n_more} more", names[..MAX_NAMES].join(", ")),
    }
}

pub(super) struct Loaded {
    pub(super) name: String,
    pub(super) appearance: Appearance,
    pub(super) colors: [ThemeColor; TABLE.len()],
}

pub(super) fn load(json: &str) -> Result<Loaded, ThemeError> {
    let root: Value = serde_json::from_str(json)?;
    let root = object(&root, "theme")?;
    known_keys(root, "", &["$schema", "name", "appearance", "vars", "colors", "export"])?;

    let name = match root.get("name") {
        Some(Value::String(name)) => name.clone(),
        Some(_) => return Err(wrong_type("name", "a string")),
        None => return Err(ThemeError::Missing { names: vec!["name"] }),
    };
    if name.is_empty() || name.contains('/') || name == "system" {
        return Err(ThemeError::BadName { name });
    }
    let empty = Map::new();
    let vars = root.get("vars").map_or(Ok(&empty), |vars| object(vars, "vars"))?;
    let colors = root.get("colors").ok_or(ThemeError::Missing { names: vec!["colors"] })?;
    let colors = object(colors, "colors")?;

    let names: Vec<&str> = TABLE.iter().map(|row| row.name).collect();
    known_keys(colors, "colors", &names)?;
    for key in vars.keys() {
        resolve(&vars[key], &format!("vars.{key}"), vars)?;
    }
    let mut resolved = [ThemeColor::Default; TABLE.len()];
    for row in TABLE {
        let mut source = row;
        // Fallbacks end in a required token; `tokens` tests that.
        while let (None, Some(fallback)) = (colors.get(source.name), source.fallback) {
            source = fallback.row();
        }
        if let Some(value) = colors.get(source.name) {
            resolved[row.token.index()] = resolve(value, &format!("colors.{}", source.name), vars)?;
        }
    }
    if let Some(export) = root.get("export") {
        let export = object(export, "export")?;
        known_keys(export, "export", &["pageBg", "cardBg", "infoBg"])?;
        for (key, value) in export {
            resolve(value, &format!("export.{key}"), vars)?;
        }
    }

    // Last, because a wrong colour is a slip, and these may be many.
    let missing: Vec<&str> = TABLE
        .iter()
        .filter(|row| row.fallback.is_none() && !colors.contains_key(row.name))
        .map(|row| row.name)
        .collect();
    if !missing.is_empty() {
        return Err(ThemeError::Missing { names: missing });
    }
    let appearance = match root.get("appearance") {
        Some(Value::String(word)) if word == "dark" => Appearance::Dark,
        Some(Value::String(word)) if word == "light" => Appearance::Light,
        Some(_) => return Err(wrong_type("appearance", "\"dark\" or \"light\"")),
        None => appearance_of(&resolved),
    };
    Ok(Loaded { name, appearance, colors: resolved })
}

/// The terminals that a theme is for which does not say so: light ones if its boxes are nearer to
/// white than to black, or its text is easier to read on white. Colours by number are left out,
/// because each terminal shows others.
fn appearance_of(colors: &[ThemeColor; TABLE.len()]) -> Appearance {
    let stands_out_more_from_white = |kind: Kind| {
        let of_kind = TABLE.iter().zip(colors).filter(|(row, _)| row.kind == kind);
        let colors: Vec<[u8; 3]> = of_kind
            .filter_map(|(_, color)| match color {
                ThemeColor::Rgb(red, green, blue) => Some([*red, *green, *blue]),
                ThemeColor::Default | ThemeColor::Indexed(_) => None,
            })
            .collect();
        let total = |from: [u8; 3]| colors.iter().map(|color| contrast(*color, from)).sum::<f64>();
        (!colors.is_empty()).then(|| total([0xff; 3]) > total([0; 3]))
    };
    let is_light = match stands_out_more_from_white(Kind::Background) {
        Some(are_dark) => !are_dark,
        None => stands_out_more_from_white(Kind::Foreground).unwrap_or(false),
    };
    if is_light { Appearance::Light } else { Appearance::Dark }
}

/// Resolves variables to a colour. `path` is the start of the search.
fn resolve(value: &Value, path: &str, vars: &Map<String, Value>) -> Result<ThemeColor, ThemeError> {
    let mut value = value;
    let mut chain: Vec<String> = Vec::new();
    loop {
        let text = match value {
            Value::Number(number) => {
                let index = number.as_u64().and_then(|index| u8::try_from(index).ok());
                return index
                    .map(ThemeColor::Indexed)
                    .ok_or_else(|| wrong_type(path, "a number from 0 to 255"));
            }
            Value::String(text) => text,
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
                return Err(wrong_type(path, "a colour: \"#rrggbb\", 0-255, a variable or \"\""));
            }
        };
        if let Some(color) = ThemeColor::parse(text) {
            return Ok(color);
        }
        if chain.contains(text) {
            chain.push(text.clone());
            return Err(ThemeError::Cycle { path: path.to_owned(), chain });
        }
        value = vars
            .get(text)
            .ok_or_else(|| ThemeError::UnknownColor { path: path.to_owned(), value: text.clone() })?;
        chain.push(text.clone());
    }
}

fn object<'a>(value: &'a Value, path: &str) -> Result<&'a Map<String, Value>, ThemeError> {
    value.as_object().ok_or_else(|| wrong_type(path, "an object"))
}

fn known_keys(map: &Map<String, Value>, path: &str, known: &[&str]) -> Result<(), ThemeError> {
    match map.keys().find(|key| !known.contains(&key.as_str())) {
        None => Ok(()),
        Some(key) if path.is_empty() => Err(ThemeError::UnknownKey { path: key.clone() }),
        Some(key) => Err(ThemeError::UnknownKey { path: format!("{path}.{key}") }),
    }
}

fn wrong_type(path: &str, expected: &'static str) -> ThemeError {
    ThemeError::WrongType { path: path.to_owned(), expected }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Token;
    use super::*;

    /// The dark theme with one key replaced, by JSON pointer.
    fn theme_with(pointer: &str, value: Value) -> String {
        let mut theme: Value = serde_json::from_str(include_str!("../../../themes/dark.json")).unwrap();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        theme.pointer_mut(parent).unwrap().as_object_mut().unwrap().insert(key.to_owned(), value);
        theme.to_string()
    }

    #[track_caller]
    fn check_error(pointer: &str, value: Value, expected: &str) {
        let error = load(&theme_with(pointer, value)).err().map(|error| error.to_string());
        assert_eq!(error.as_deref(), Some(expected));
    }

    #[test]
    fn names_the_key_at_fault() {
        check_error("/extra", json!(1), "extra: unknown key");
        check_error("/colors/accnt", json!(1), "colors.accnt: unknown key");
        check_error("/colors/accent", json!(256), "colors.accent: expected a number from 0 to 255");
        check_error(
            "/colors/accent",
            json!("nope"),
            "colors.accent: \"nope\" is neither a colour nor a variable of this theme",
        );
        check_error("/vars/accent", json!("accent"), "vars.accent: circular variables (accent → accent)");
        check_error("/export", json!({ "page": "" }), "export.page: unknown key");
        check_error("/name", json!("system"), "name: \"system\" is reserved or contains a slash");
        check_error("/appearance", json!("dusk"), "appearance: expected \"dark\" or \"light\"");
    }

    #[test]
    fn an_appearance_that_is_missing_is_that_of_the_colours() {
        for (json, expected) in [
            (include_str!("../../../themes/dark.json"), Appearance::Dark),
            (include_str!("../../../themes/light.json"), Appearance::Light),
        ] {
            let mut theme: Value = serde_json::from_str(json).unwrap();
            theme.as_object_mut().unwrap().remove("appearance");
            assert_eq!(load(&theme.to_string()).map(|loaded| loaded.appearance).ok(), Some(expected));
            for row in TABLE.iter().filter(|row| row.kind == Kind::Background) {
                theme["colors"][row.name] = "".into();
            }
            assert_eq!(load(&theme.to_string()).map(|loaded| loaded.appearance).ok(), Some(expected));
        }
    }

    #[test]
    fn what_is_missing_is_named_after_what_is_wrong() {
        let mut theme: Value = serde_json::from_str(include_str!("../../../themes/dark.json")).unwrap();
        theme["colors"].as_object_mut().unwrap().retain(|name, _| name == "accent");
        let error = |theme: &Value| load(&theme.to_string()).err().map(|error| error.to_string());
        let missing = error(&theme).unwrap();
        assert!(missing.starts_with("theme lacks border, ") && missing.contains(" and "), "{missing}");
        assert!(missing.len() < 120, "{missing}");
        theme["colors"]["accent"] = "#zzz".into();
        assert!(error(&theme).unwrap().starts_with("colors.accent"), "{:?}", error(&theme));
    }

    #[test]
    fn variables_may_lead_to_variables_and_numbers() {
        let loaded = load(&theme_with("/vars", {
            let mut theme: Value = serde_json::from_str(include_str!("../../../themes/dark.json")).unwrap();
            let vars = theme.pointer_mut("/vars").unwrap();
            vars["accent"] = json!("next");
            vars["next"] = json!("last");
            vars["last"] = json!(42);
            vars.take()
        }))
        .unwrap();
        assert_eq!(loaded.colors[Token::Accent.index()], ThemeColor::Indexed(42));
    }

    #[test]
    fn optional_tokens_fall_back() {
        let mut theme: Value = serde_json::from_str(include_str!("../../../themes/dark.json")).unwrap();
        let colors = theme.pointer_mut("/colors").unwrap().as_object_mut().unwrap();
        colors.shift_remove("thinkingMax");
        colors.shift_remove("searchMatchBg");
        let loaded = load(&theme.to_string()).unwrap();
        let color = |token: Token| loaded.colors[token.index()];
        assert_eq!(color(Token::ThinkingMax), color(Token::ThinkingXhigh));
        assert_eq!(color(Token::SearchMatchBg), color(Token::SelectedBg));
        theme.pointer_mut("/colors").unwrap().as_object_mut().unwrap().shift_remove("accent");
        assert_eq!(load(&theme.to_string()).err().unwrap().to_string(), "theme lacks accent");
    }
}
