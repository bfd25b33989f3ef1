//! Commands about the screen.

use super::super::actions;
use super::super::app::App;
use super::super::msg::{Effect, ScreenEffect, WorldEffect};
use super::super::pager::PagerEffect;
use super::super::reference;
use super::Command;

pub(super) const COMMANDS: &[Command] = &[
    Command {
        name: "copy",
        args: "",
        help: "Copy the last answer",
        run: |app, _, out| actions::copy_answer(app, out),
    },
    Command {
        name: "transcript",
        args: "",
        help: "Show the whole transcript, with search",
        run: |_, _, out| out.push(PagerEffect::Open.into()),
    },
    Command {
        name: "redraw",
        args: "",
        help: "Clear screen and scrollback, and write the transcript again at the current width",
        run: |_, _, out| out.push(ScreenEffect::Replay.into()),
    },
    Command {
        name: "doctor",
        args: "",
        help: "Check the terminal, files and providers, and say what to change",
        run: |_, _, out| out.push(WorldEffect::Examine.into()),
    },
    Command { name: "hotkeys", args: "", help: "Show all keys and commands", run: hotkeys },
];

fn hotkeys(app: &mut App, _: &str, _: &mut Vec<Effect>) {
    let text = reference::hotkeys(&app.keymap);
    app.transcript.block(&text);
}
