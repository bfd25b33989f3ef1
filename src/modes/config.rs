//! The output of `pi config`.

use std::process::ExitCode;

use serde_json::{Value, json};

use crate::config::{EffectiveSettings, Layer, ROWS, Row};

use super::exit;
use super::output::{write_err, write_out};

/// The form of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfigOutput {
    Text,
    Json,
}

/// Prints the settings whose keys contain `search`, one line each; with `only_changed`, those
/// with a value of some layer. A failure if no key contains it.
pub fn list_settings(
    settings: &EffectiveSettings,
    search: Option<&str>,
    only_changed: bool,
    output: ConfigOutput,
) -> ExitCode {
    let search = search.unwrap_or_default().to_lowercase();
    let rows = ROWS.iter().filter(|row| row.key.to_lowercase().contains(&search));
    let rows: Vec<&Row> =
        rows.filter(|row| !only_changed || settings.origin(row.key) != Some(Layer::BuiltIn)).collect();
    if rows.is_empty() && !only_changed && output == ConfigOutput::Text {
        write_err(&format!("pi: no setting contains \"{search}\"; pi config lists all"));
        return ExitCode::from(exit::FAILED);
    }
    match output {
        ConfigOutput::Json => {
            let all: Vec<Value> = rows.iter().map(|row| as_json(settings, row)).collect();
            write_out(&(serde_json::to_string_pretty(&all).unwrap_or_default() + "\n"));
        }
        ConfigOutput::Text => write_out(&lines(settings, &rows)),
    }
    ExitCode::SUCCESS
}

/// Prints a value: texts as they are, everything else as JSON.
pub fn show_setting(settings: &EffectiveSettings, row: &Row, output: ConfigOutput) {
    let text = match output {
        ConfigOutput::Json => serde_json::to_string_pretty(&as_json(settings, row)).unwrap_or_default(),
        ConfigOutput::Text => match settings.shown_value(row.key).unwrap_or_default() {
            Value::String(text) => text,
            Value::Null => String::new(),
            value => value.to_string(),
        },
    };
    write_out(&(text + "\n"));
}

fn lines(settings: &EffectiveSettings, rows: &[&Row]) -> String {
    let width = rows.iter().map(|row| row.key.len()).max().unwrap_or_default();
    let mut text = String::new();
    for row in rows {
        let value = match settings.shown_value(row.key).unwrap_or_default() {
            Value::Null => "(none)".to_owned(),
            value => value.to_string(),
        };
        let origin = match settings.origin(row.key) {
            Some(Layer::BuiltIn) | None => String::new(),
            Some(origin) => match row.kept {
                Some(kept) => format!("  ({}; {kept})", origin.name()),
                None => format!("  ({})", origin.name()),
            },
        };
        text.push_str(&[&format!("{:<width$}", row.key), "  ", &value, &origin, "\n"].concat());
    }
    text
}

fn as_json(settings: &EffectiveSettings, row: &Row) -> Value {
    json!({
        "key": row.key,
        "value": settings.shown_value(row.key),
        "default": row.default_value(),
        "origin": settings.origin(row.key).unwrap_or(Layer::BuiltIn).name(),
        "help": row.help,
        "hasEffect": row.kept.is_none(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_key_value_and_origin() {
        let settings = EffectiveSettings::default();
        let rows: Vec<&Row> =
            ["theme", "sessionDir", "retry.maxRetries"].map(|key| Row::find(key).unwrap()).into();
        let expected = "theme             \"system\"\nsessionDir        (none)\nretry.maxRetries  3\n";
        assert_eq!(lines(&settings, &rows), expected);
    }
}
