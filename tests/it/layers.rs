//! Layers import only the layers listed for them.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::fs;
use std::path::{Path, PathBuf};

const LAYERS: &[(&str, &[&str])] = &[
    ("util", &[]),
    ("ai", &["util"]),
    ("agent", &["ai", "util"]),
    ("tools", &["agent", "ai", "util"]),
    ("config", &["ai", "util"]),
    ("session", &["config", "tools", "agent", "ai", "util"]),
    ("tui", &["util"]),
    ("modes", &["session", "config", "tools", "agent", "ai", "tui", "util"]),
    ("cli", &["modes", "session", "config", "tools", "ai", "tui", "util"]),
];

/// The rooms of `ai`, each with those it may use.
const ROOMS: &[(&str, &[&str])] = &[
    ("failure", &[]),
    ("messages", &["failure"]),
    ("transport", &["failure"]),
    ("models", &["messages", "transport"]),
    ("requests", &["models", "messages", "transport", "failure"]),
    ("api", &["requests", "models", "messages", "transport", "failure"]),
    ("providers", &["api", "requests", "models", "messages", "transport", "failure"]),
    ("foreign", &["api", "requests", "messages"]),
    ("demo", &["providers", "requests", "messages"]),
];

#[test]
fn layers_import_downwards() {
    let src = src();
    let mut violations = Vec::new();
    for (layer, allowed) in LAYERS {
        for_each_line(&src.join(layer), |file, at, code| {
            for target in crate_paths(code) {
                if target != *layer && !allowed.contains(&target) {
                    violations.push(format!("{at}: `{layer}` must not use `{target}`"));
                }
            }
            // `super::` leaves a layer only from the layer's own mod.rs.
            if file == src.join(layer).join("mod.rs")
                && code.contains("super::")
                && !code.contains("use super::*")
            {
                violations.push(format!("{at}: `super::` leaves `{layer}`"));
            }
        });
    }
    assert!(violations.is_empty(), "{}", violations.join("\n"));
}

#[test]
fn every_folder_is_a_layer() {
    for entry in fs::read_dir(src()).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if entry.file_type().unwrap().is_dir() {
            assert!(LAYERS.iter().any(|(layer, _)| *layer == name), "src/{name} is not in the table");
        }
    }
}

#[test]
fn rooms_of_ai_import_downwards() {
    let ai = src().join("ai");
    for (idx, (room, allowed)) in ROOMS.iter().enumerate() {
        let earlier: Vec<&str> = ROOMS[..idx].iter().map(|(name, _)| *name).collect();
        assert!(allowed.iter().all(|name| earlier.contains(name)), "the rooms {room} uses come before it");
    }
    let mut violations = Vec::new();
    for (room, allowed) in ROOMS {
        for_each_line(&ai.join(room), |file, at, code| {
            for (start, found) in code.match_indices("crate::ai::") {
                let target = first_name(&code[start + found.len()..]);
                if target != *room && !allowed.contains(&target) {
                    violations.push(format!("{at}: `{room}` must not use `{target}`"));
                }
            }
            if n_supers(code) > depth_below(&ai.join(room), file) {
                violations.push(format!("{at}: `super::` leaves `{room}`"));
            }
        });
    }
    assert!(violations.is_empty(), "{}", violations.join("\n"));
}

/// How many modules deep the module of `file` is in the folder of its room.
fn depth_below(room: &Path, file: &Path) -> usize {
    let n_parts = file.strip_prefix(room).unwrap().components().count();
    if file.ends_with("mod.rs") { n_parts - 1 } else { n_parts }
}

/// The longest chain of `super::` in a line.
fn n_supers(code: &str) -> usize {
    (1..).take_while(|n| code.contains(&"super::".repeat(*n))).count()
}

#[test]
fn every_file_of_ai_is_in_a_room() {
    for entry in fs::read_dir(src().join("ai")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(name == "mod.rs" || ROOMS.iter().any(|(room, _)| *room == name), "src/ai/{name} is no room");
    }
}

#[test]
fn only_the_interactive_mode_names_tui() {
    let modes = src().join("modes");
    let mut violations = Vec::new();
    for_each_line(&modes, |file, at, code| {
        if !file.starts_with(modes.join("interactive")) && crate_paths(code).any(|target| target == "tui") {
            violations.push(at);
        }
    });
    assert!(violations.is_empty(), "{}", violations.join("\n"));
}

#[test]
fn only_the_terminal_writes_escape_sequences() {
    let mut violations = Vec::new();
    // One writes them, the other takes those of others apart.
    let (writer, parser) = (src().join("tui/term"), src().join("util/escapes.rs"));
    for_each_line(&src(), |file, at, code| {
        let names_one =
            ["\\x1b", "\\u{1b}", "\\u{9b}", "0x1b", "\\x9b"].iter().any(|form| code.contains(form));
        let is_test = file.strip_prefix(src()).unwrap().components().any(|part| part.as_os_str() == "tests");
        if names_one && !is_test && !file.starts_with(&writer) && file != parser {
            violations.push(at);
        }
    });
    assert!(violations.is_empty(), "{}", violations.join("\n"));
}

/// Users change keys in `keybindings.json`, and every hint takes them from the keymap. The tables have
/// the defaults, and the report on the terminal is about keys as such. What ends a paste is no binding.
#[test]
fn no_text_names_a_key_that_users_may_have_changed() {
    const TABLES: &[&str] = &["tui/keymap", "modes/interactive/actions.rs", "modes/interactive/doctor"];
    let names_key = |code: &str| {
        if code.starts_with("const PASTE_WAITS") {
            return false;
        }
        let texts = code.split('"').skip(1).step_by(2);
        texts.into_iter().any(|text| {
            ["ctrl+", "alt+", "shift+", "Escape", "press Enter"].iter().any(|name| text.contains(name))
        })
    };
    let mut violations = Vec::new();
    for folder in ["tui", "session", "modes/interactive"] {
        for_each_line(&src().join(folder), |file, at, code| {
            let file = file.strip_prefix(src()).unwrap();
            let is_test = file.components().any(|part| part.as_os_str() == "tests");
            if !is_test && !TABLES.iter().any(|table| file.starts_with(table)) && names_key(code) {
                violations.push(at);
            }
        });
    }
    assert!(violations.is_empty(), "{}", violations.join("\n"));
}

/// What is there for one operating system only has a counterpart or is not needed on others.
#[test]
fn only_the_seam_names_what_one_operating_system_has() {
    const SEAM: &[&str] = &[
        "util/os",
        "util/file_identity.rs",
        "util/watchdog.rs",
        "tui/term/input/broker.rs",
        "tui/term/input/reader.rs",
        "tui/term/probe.rs",
    ];
    const NAMES: &[&str] =
        &["std::os::", "rustix::", "nix::", "process_wrap::", "signal::unix", "signal::windows"];
    let mut violations = Vec::new();
    for_each_line(&src(), |file, at, code| {
        let file = file.strip_prefix(src()).unwrap();
        let is_test = file.components().any(|part| part.as_os_str() == "tests");
        let is_seam = SEAM.iter().any(|part| file.starts_with(part));
        if !is_test && !is_seam && NAMES.iter().any(|name| code.contains(name)) {
            violations.push(at);
        }
    });
    assert!(violations.is_empty(), "{}", violations.join("\n"));
}

pub(crate) fn src() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// Calls `visit` with file, `file:line` and the line without its comment, for
/// every line above the unit tests.
pub(crate) fn for_each_line(folder: &Path, mut visit: impl FnMut(&Path, String, &str)) {
    for file in rust_files(folder) {
        let text = fs::read_to_string(&file).unwrap();
        for (line_idx, line) in text.lines().enumerate() {
            if line.starts_with("#[cfg(test)]") || file.ends_with("tests.rs") {
                break;
            }
            let code = line.split("//").next().unwrap_or_default();
            visit(&file, format!("{}:{}", file.display(), line_idx + 1), code);
        }
    }
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

/// The name after each `crate::`; "" for a grouped `crate::{…}`, which no layer allows.
fn crate_paths(code: &str) -> impl Iterator<Item = &str> {
    code.match_indices("crate::").map(|(start, found)| first_name(&code[start + found.len()..]))
}

/// The name `text` begins with; "" where it begins with none.
fn first_name(text: &str) -> &str {
    let end = text.find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(text.len());
    &text[..end]
}
