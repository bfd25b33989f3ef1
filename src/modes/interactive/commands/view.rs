//! Commands about what is on the screen.

use super::super::app::App;
use super::super::msg::Effect;
use super::{Command, all};

pub(super) const COMMANDS: &[Command] = &[
    Command { name: "copy", args: "", help: "Copy the last answer", run: |app, _, out| app.copy_answer(out) },
    Command { name: "hotkeys", args: "", help: "Show all keys and commands", run: hotkeys },
];

fn hotkeys(app: &mut App, _: &str, _: &mut Vec<Effect>) {
    let mut text = "### Keys\n\n| key | what it does |\n|---|---|\n".to_owned();
    for (binding, chords) in app.keymap.rows() {
        if chords.is_empty() {
            continue;
        }
        let keys: Vec<String> = chords.iter().map(ToString::to_string).collect();
        text.push_str(&["| `", &keys.join("` `"), "` | ", binding.help, " |\n"].concat());
    }
    text.push_str("\n### Commands\n\n| command | what it does |\n|---|---|\n");
    for command in all() {
        let usage = [command.name, command.args].join(" ");
        text.push_str(&["| `/", usage.trim(), "` | ", command.help, " |\n"].concat());
    }
    text.push_str("| `!COMMAND` | Run a command and show it to the model |\n");
    text.push_str("| `!!COMMAND` | Run a command the model does not see |\n");
    app.transcript.block(&text);
}
