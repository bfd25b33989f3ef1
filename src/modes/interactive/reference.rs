//! Keys and commands as markdown, made from their tables: for `/hotkeys`, with
//! the keys in force, and for the documentation, with the defaults.

use crate::tui::keymap::{BINDINGS, Context, Keymap, Platform};

use super::actions;
use super::commands;

/// What can be typed besides slash commands, in the form of their table.
const PREFIXES: &[(&str, &str)] = &[
    ("/skill:NAME [TEXT]", "Put a skill before what you say"),
    ("!COMMAND", "Run a command and show it to the model"),
    ("!!COMMAND", "Run a command the model does not see"),
];

/// Contexts in the order documentation lists them, with their headings.
const CONTEXTS: &[(Context, &str)] = &[
    (Context::App, "While the prompt has the keyboard"),
    (Context::Editor, "In the prompt"),
    (Context::Select, "In lists"),
    (Context::Models, "In the list of models"),
    (Context::Sessions, "In the list of sessions"),
    (Context::Tree, "In the session tree"),
    (Context::Search, "While searching"),
    (Context::Fullscreen, "In fullscreen"),
];

/// The keys in force, and all commands.
pub(super) fn hotkeys(keymap: &Keymap) -> String {
    let mut text = "### Keys\n\n| key | what it does |\n|---|---|\n".to_owned();
    for (binding, chords) in keymap.rows() {
        if !chords.is_empty() {
            text.push_str(&["| ", &codes(chords), " | ", binding.help, " |\n"].concat());
        }
    }
    text.push_str("\n### Commands\n\n");
    text.push_str(&commands_markdown());
    text
}

/// All bindings by context, with the ids that `keybindings.json` knows and their
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
    sections.join("\n")
}

/// All slash commands and prefixes, as a table.
pub fn commands_markdown() -> String {
    let mut text = "| command | what it does |\n|---|---|\n".to_owned();
    for command in commands::all() {
        let usage = [command.name, command.args].join(" ");
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
    fn every_binding_is_listed_under_its_context() {
        let text = keybindings_markdown();
        for binding in BINDINGS.iter().chain(&actions::bindings()) {
            assert!(text.contains(&format!("`{}` |", binding.id)), "{}", binding.id);
        }
    }
}
