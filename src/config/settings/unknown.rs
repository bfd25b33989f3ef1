//! Keys of a settings file that are no settings: misspelt ones are reported with the setting
//! that was probably meant. All others belong to other programs and are left alone.

use serde_json::{Map, Value};

use crate::util::nearest::nearest;

use super::table::ROWS;

/// Keys that the original writes itself, and older names of its settings. Some are spelt like
/// settings of pi.
const ORIGINAL: &[&str] = &[
    "$schema",
    "deviceId",
    "extensionChangelogVersions",
    "lastChangelogVersion",
    "queueMode",
    "retry.maxDelayMs",
    "trackingId",
    "websockets",
];

/// Number of wrong letters in a key of a file that is reported. More would report keys of
/// other programs, with every start.
const MAX_WRONG: usize = 2;
/// The same in a key of [`MIN_LETTERS`].
const MAX_WRONG_IF_SHORT: usize = 1;
/// Shorter keys differ from others in few letters anyway.
const MIN_LETTERS: usize = 4;

/// The setting with a key like `key`, which somebody typed as a setting.
pub(super) fn meant(key: &str) -> Option<&'static str> {
    misspelling_of(key).or_else(|| nearest(key, &keys()))
}

/// The setting of which `key` is surely a misspelling.
fn misspelling_of(key: &str) -> Option<&'static str> {
    let keys = keys();
    let equal = keys.iter().find(|known| known.eq_ignore_ascii_case(key)).copied();
    // Whoever forgets the section writes the last part.
    let last = || {
        let mut ends = keys.iter().filter(|known| known.rsplit('.').next() == Some(key));
        ends.next().filter(|_| ends.next().is_none()).copied()
    };
    let similar = || {
        let n_wrong = |known: &str| strsim::damerau_levenshtein(key, known);
        let closest = keys.iter().min_by_key(|known| n_wrong(known)).copied();
        let most = if key.len() > MIN_LETTERS { MAX_WRONG } else { MAX_WRONG_IF_SHORT };
        closest.filter(|known| key.len() >= MIN_LETTERS && n_wrong(known) <= most)
    };
    equal.or_else(last).or_else(similar)
}

fn keys() -> Vec<&'static str> {
    ROWS.iter().map(|row| row.key).collect()
}

/// The misspelt keys in `values`, each with the setting that was probably meant.
pub(super) fn misspelt(values: &Map<String, Value>) -> Vec<(String, &'static str)> {
    let mut found = Vec::new();
    visit(values, "", &mut found);
    found
}

fn visit(values: &Map<String, Value>, section: &str, found: &mut Vec<(String, &'static str)>) {
    for (name, value) in values {
        let key = if section.is_empty() { name.clone() } else { format!("{section}.{name}") };
        let is_row = ROWS.iter().any(|row| row.key == key);
        let is_section =
            ROWS.iter().any(|row| row.key.strip_prefix(&key).is_some_and(|rest| rest.starts_with('.')));
        match value {
            _ if is_row || ORIGINAL.contains(&key.as_str()) => {}
            Value::Object(values) if is_section => visit(values, &key, found),
            _ if is_section => {}
            _ => found.extend(misspelling_of(&key).map(|meant| (key, meant))),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn misspelt_keys_are_found_and_foreign_ones_left_alone() {
        let values = json!({
            "defualtModel": "m",
            "Theme": "dark",
            "them": "dark",
            "team": "a",
            "item": 1,
            "maxRetries": 3,
            "retry": { "maxRetrys": 3, "enabled": true, "provider": { "maxRetries": 1 }, "mine": {} },
            "packages": [{ "source": "npm:x" }],
            "markdown": { "mermaid": "off" },
            "$schema": "x",
            "lastChangelogVersion": "1.5.2",
            "companyTool": { "theme": 1 },
            "default": 1,
            "compaction": 3,
        });
        let found = misspelt(values.as_object().unwrap());
        let found: Vec<(&str, &str)> = found.iter().map(|(key, meant)| (key.as_str(), *meant)).collect();
        assert_eq!(
            found,
            [
                ("defualtModel", "defaultModel"),
                ("Theme", "theme"),
                ("them", "theme"),
                ("retry.maxRetrys", "retry.maxRetries")
            ]
        );
    }

    #[test]
    fn keys_of_the_original_are_no_settings_of_pi() {
        for key in ORIGINAL {
            assert!(ROWS.iter().all(|row| row.key != *key), "{key}");
        }
    }

    #[test]
    fn a_key_without_its_section_is_recognised() {
        assert_eq!(meant("baseDelayMs"), Some("retry.baseDelayMs"));
        assert_eq!(meant("HIDETHINKINGBLOCK"), Some("hideThinkingBlock"));
        assert_eq!(meant("frobnicate"), None);
    }
}
