//! Keys and commands as markdown, generated from their tables: for `/hotkeys`, with
//! the current keys, and for the documentation, with the defaults.

use std::collections::HashSet;

use crate::tui::keymap::{BINDINGS, Binding, Chord, Context, Keymap, Platform};

use super::actions;
use super::commands;

/// Prefixes other than slash commands, in the form of their table.
const PREFIXES: &[(&str, &str)] = &[
    ("/skill:NAME [TEXT]", "Run a skill, with optional instructions"),
    ("!COMMAND", "Run a command and share its output with the model"),
    ("!!COMMAND", "Run a command without sharing its output"),
];

/// Contexts in the order documentation lists them, with their headings.
const CONTEXTS: &[(Context, &str)] = &[
    (Context::App, "While typing a prompt"),
    (Context::Editor, "Editing the prompt"),
    (Context::Select, "In lists"),
    (Context::History, "In the list of earlier prompts"),
    (Context::Models, "In the list of models"),
    (Context::Sessions, "In the list of sessions"),
    (Context::Tree, "In the session tree"),
    (Context::Trace, "In the trace"),
    (Context::Fullscreen, "In fullscreen and in the pager"),
    (Context::Pager, "In the pager: the transcript, reports, the trace and long output"),
    (Context::Search, "While searching in fullscreen"),
    (Context::Selection, "While selecting with the keyboard in fullscreen"),
];

/// The current keys, by context, and all commands. A key appears once per meaning,
/// even if several actions implement it.
pub(super) fn hotkeys(keymap: &Keymap) -> String {
    let mut text = String::new();
    let indistinct = indistinct_keys(keymap, |key| format!("`{key}`")).filter(|_| keymap.hides_keys());
    if let Some(keys) = indistinct {
        text.push_str(&["This terminal cannot tell some keys apart: ", &keys, ".\n\n"].concat());
    }
    let mut shown = HashSet::new();
    for (context, heading) in CONTEXTS {
        let mut rows = String::new();
        for (binding, chords) in keymap.reachable().filter(|(binding, _)| binding.context == *context) {
            let keys: Vec<String> = chords.iter().map(ToString::to_string).collect();
            if !keys.is_empty() && shown.insert((keys.clone(), binding.help)) {
                rows.push_str(&["| ", &codes(&keys), " | ", binding.help, " |\n"].concat());
            }
        }
        if !rows.is_empty() {
            text.push_str(&["## ", heading, "\n\n| key | what it does |\n|---|---|\n", &rows, "\n"].concat());
        }
    }
    text.push_str("## Commands\n\n");
    text.push_str(&commands_markdown());
    text
}

/// Which keys of actions a terminal without a keyboard protocol sends as others; `None` if it tells all of them
/// apart. `write` is how a key is written.
pub(super) fn indistinct_keys(keymap: &Keymap, write: fn(&Chord) -> String) -> Option<String> {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for key in keymap.reachable().flat_map(|(_, keys)| keys) {
        let sent = match key.without_protocol()[..] {
            [] => continue,
            [sent] if key.differs_in_shift(sent) => "without shift".to_owned(),
            ref sent => format!("as {}", sent.iter().map(write).collect::<Vec<_>>().join(" or ")),
        };
        let key = write(&key);
        match groups.iter_mut().find(|(other, _)| *other == sent) {
            Some((_, keys)) if keys.contains(&key) => {}
            Some((_, keys)) => keys.push(key),
            None => groups.push((sent, vec![key])),
        }
    }
    let group = |(sent, keys): &(String, Vec<String>)| match &keys[..] {
        [before @ .., last] if !before.is_empty() => {
            format!("{} and {last} arrive {sent}", before.join(", "))
        }
        keys => format!("{} arrives {sent}", keys.join("")),
    };
    let groups: Vec<String> = groups.iter().map(group).collect();
    (!groups.is_empty()).then(|| groups.join("; "))
}

/// All bindings by context, with their ids for `keybindings.json` and their
/// default keys.
pub fn keybindings_markdown() -> String {
    let app = actions::bindings();
    let keymap = Keymap::new(&[&app, BINDINGS], Platform::Unix);
    let mut sections = Vec::new();
    for (context, heading) in CONTEXTS {
        let mut rows = String::new();
        for (binding, chords) in keymap.rows().filter(|(binding, _)| binding.context == *context) {
            let keys = if chords.is_empty() { "none".to_owned() } else { codes(chords) };
            rows.push_str(&["| ", &keys, " | ", binding.help, " | `", binding.id, "` |\n"].concat());
        }
        if !rows.is_empty() {
            sections.push(format!("## {heading}\n\n| key | what it does | id |\n|---|---|---|\n{rows}"));
        }
    }
    sections.push(platform_keys(&app));
    sections.join("\n")
}

/// The defaults that differ on Windows or in WSL.
fn platform_keys(app: &[Binding]) -> String {
    let [unix, windows, wsl] = [Platform::Unix, Platform::Windows, Platform::Wsl]
        .map(|platform| Keymap::new(&[app, BINDINGS], platform));
    let mut text = concat!(
        "## On Windows and in WSL\n\n",
        "Their terminals keep some keys for themselves, so these defaults differ.\n\n",
        "| key on Windows | key in WSL | what it does | id |\n|---|---|---|---|\n",
    )
    .to_owned();
    for (((binding, usual), (_, windows)), (_, wsl)) in unix.rows().zip(windows.rows()).zip(wsl.rows()) {
        if usual == windows && usual == wsl {
            continue;
        }
        let keys = |chords: &[Chord]| if chords.is_empty() { "none".to_owned() } else { codes(chords) };
        let cells = [keys(windows), keys(wsl), binding.help.to_owned(), format!("`{}`", binding.id)];
        text.push_str(&["| ", &cells.join(" | "), " |\n"].concat());
    }
    text
}

/// All slash commands and prefixes, as a table.
pub fn commands_markdown() -> String {
    let mut text = "| command | what it does |\n|---|---|\n".to_owned();
    for command in commands::all() {
        // In a table, a bare bar would end the cell, even in code.
        let usage = [command.name, &command.args.replace('|', "\\|")].join(" ");
        text.push_str(&["| `/", usage.trim(), "` | ", command.help, " |\n"].concat());
    }
    for (usage, help) in PREFIXES {
        text.push_str(&["| `", usage, "` | ", help, " |\n"].concat());
    }
    text
}

fn codes(chords: &[impl ToString]) -> String {
    let keys: Vec<String> = chords.iter().map(|chord| format!("`{}`", chord.to_string())).collect();
    keys.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hotkeys_have_sections_and_name_each_key_once_for_what_it_does() {
        let app = actions::bindings();
        let text = hotkeys(&Keymap::new(&[BINDINGS, &app], Platform::Unix));
        for heading in ["While typing a prompt", "Editing the prompt", "In lists", "Commands"] {
            assert!(text.contains(&format!("## {heading}\n")), "{text}");
        }
        let mut seen = HashSet::new();
        for row in text.lines().filter(|line| line.starts_with("| `")) {
            let (keys, help) = row[1..].split_once(" | ").unwrap();
            for key in keys.split_whitespace().filter(|_| !keys.contains('/')) {
                assert!(seen.insert((key.to_owned(), help.to_owned())), "{row}");
            }
        }
        // The editor does not receive keys that the app handles.
        let editing = text.split("## ").find(|section| section.starts_with("Editing the prompt")).unwrap();
        assert!(!editing.contains("Copy the selection") && text.contains("Clear the editor"), "{text}");
    }

    #[test]
    fn key_of_two_actions_is_with_the_one_that_gets_it() {
        let app = actions::bindings();
        let mut keymap = Keymap::new(&[BINDINGS, &app], Platform::Unix);
        let overrides = serde_json::json!({ "app.screen.toggle": "ctrl+l" });
        assert_eq!(keymap.apply(overrides.as_object().unwrap()), []);
        let text = hotkeys(&keymap);
        let typing = text.split("## ").find(|section| section.starts_with("While typing a prompt")).unwrap();
        assert_eq!(typing.matches("`ctrl+l`").count(), 1, "{typing}");
        assert!(!typing.contains("Choose a model"), "{typing}");
    }

    #[test]
    fn keys_that_a_terminal_sends_as_others_are_named_as_far_as_they_are_bound() {
        let app = actions::bindings();
        let mut keymap = Keymap::new(&[BINDINGS, &app], Platform::Unix);
        let note = |keymap: &Keymap| {
            let mut keymap = keymap.clone();
            keymap.set_hides_keys(true);
            let text = hotkeys(&keymap);
            text.strip_prefix("This terminal cannot tell some keys apart: ")
                .and_then(|rest| Some(rest.split_once(".\n\n## ")?.0.to_owned()))
        };
        assert_eq!(
            note(&keymap).as_deref(),
            Some(
                "`shift+enter` and `ctrl+enter` arrive as `enter`; `ctrl+shift+f`, `ctrl+shift+g`, \
                 `ctrl+shift+p`, `ctrl+shift+o` and `ctrl+shift+d` arrive without shift; \
                 `ctrl+backspace` arrives as `ctrl+h` or `backspace`"
            )
        );
        assert!(hotkeys(&keymap).starts_with("## "));
        let unbound =
            keymap.rows().filter(|(_, keys)| keys.iter().any(|key| !key.without_protocol().is_empty()));
        let mut overrides: serde_json::Map<_, _> =
            unbound.map(|(binding, _)| (binding.id.to_owned(), serde_json::json!([]))).collect();
        assert_eq!(keymap.apply(&overrides), []);
        assert_eq!(note(&keymap), None);
        overrides["app.message.deliverNow"] = "ctrl+i".into();
        overrides["app.debug"] = "ctrl+shift+y".into();
        assert_eq!(keymap.apply(&overrides), []);
        let named = "`ctrl+i` arrives as `tab`; `ctrl+shift+y` arrives without shift";
        assert_eq!(note(&keymap).as_deref(), Some(named));
    }

    #[test]
    fn every_binding_is_listed_under_its_context() {
        let text = keybindings_markdown();
        for binding in BINDINGS.iter().chain(&actions::bindings()) {
            assert!(text.contains(&format!("`{}` |", binding.id)), "{}", binding.id);
        }
    }
}
