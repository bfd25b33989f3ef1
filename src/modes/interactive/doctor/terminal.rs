//! What the report says of the terminal, and what to change there.

use std::process::{Command, Stdio};

use crate::config::{Env, Settings};
use crate::tui::keymap::Chord;
use crate::tui::term::{TerminalAnswers, TerminalReply};
use crate::tui::text::PictureFormat;
use crate::tui::theme::{ColorDepth, TerminalColors};

use super::super::appearance::{Looks, in_tmux, tells_keys_apart};
use super::super::reference::indistinct_keys;
use super::super::{keybindings, pictures, program_status, terminal_env};
use super::DoctorInput;

/// Said of what the user can turn on.
const OFF: &str = "no: off in the settings";

/// What was found out about the terminal.
pub(super) struct TerminalFacts {
    pub reply: TerminalReply,
    /// Whether the interface has the terminal, so that only what it asked is known.
    pub is_running: bool,
    /// tmux's options, if pi runs in tmux.
    pub tmux_extended_keys: Option<String>,
    pub tmux_focus_events: Option<String>,
}

impl TerminalFacts {
    fn answers(&self) -> Option<&TerminalAnswers> {
        match &self.reply {
            TerminalReply::Answers(answers) => Some(answers),
            TerminalReply::Silence | TerminalReply::NotAsked => None,
        }
    }

    fn version(&self) -> Option<&str> {
        self.answers().and_then(|answers| answers.version.as_deref())
    }

    /// What `row` makes of the answers, or why there are none.
    fn row(&self, row: impl FnOnce(&TerminalAnswers) -> String) -> String {
        match &self.reply {
            TerminalReply::Answers(answers) => row(answers),
            TerminalReply::Silence => "no answer".to_owned(),
            TerminalReply::NotAsked => "not asked: input or output is not a terminal".to_owned(),
        }
    }

    /// The same for an answer that the interface does not ask for.
    fn asked_row(&self, has: fn(&TerminalAnswers) -> bool, no: &str) -> String {
        if self.is_running {
            return "not asked while pi runs; see pi doctor".to_owned();
        }
        self.row(|answers| yes_or(has(answers), no))
    }
}

/// tmux's option, which decides whether it passes shift+enter on.
pub(super) fn tmux_extended_keys(env: &Env) -> Option<String> {
    tmux_option(env, "extended-keys")
}

/// tmux's option, which decides whether it reports the focus.
pub(super) fn tmux_focus_events(env: &Env) -> Option<String> {
    tmux_option(env, "focus-events")
}

/// An option of tmux, if pi runs in it and it answers.
fn tmux_option(env: &Env, name: &str) -> Option<String> {
    if !in_tmux(env) {
        return None;
    }
    let mut show = Command::new("tmux");
    show.args(["show-options", "-gv", name]).stdin(Stdio::null()).stderr(Stdio::null());
    let output = show.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// What the terminal is and can do.
pub(super) fn rows(input: &DoctorInput<'_>, facts: &TerminalFacts) -> Vec<(&'static str, String)> {
    let (env, settings) = (input.env, &input.settings.values);
    let links = looks(input).shows_links(settings, facts.version());
    let mut rows = vec![
        ("name", name(env, facts)),
        ("within", within(env)),
        ("shift+enter, ctrl+enter", modified_enter(facts)),
        ("24-bit colour", true_color(looks(input).color_depth(settings)).to_owned()),
        ("images", images_row(input, facts)),
        ("links", yes_or(links, "no")),
        ("frames at once", facts.asked_row(|answers| answers.has_synchronized_output, "no")),
        ("clipboard", clipboard(env)),
        ("notifications", notifications(settings, facts).to_owned()),
        ("task bar", progress(settings).to_owned()),
        ("marks of prompts", "written (OSC 133)".to_owned()),
        ("status of pi", status(env, facts)),
        ("theme", settings.theme.clone()),
        ("colours", facts.row(|answers| colors(&answers.colors))),
        ("light or dark", facts.row(|answers| scheme(answers).to_owned())),
    ];
    rows.extend(language(env).map(|language| ("language", language)));
    rows
}

/// What to change about the terminal.
pub(super) fn advice(input: &DoctorInput<'_>, facts: &TerminalFacts) -> Vec<String> {
    let env = input.env;
    let is_dumb = env.get("TERM").is_none_or(|term| term == "dumb");
    let hides_keys = facts.answers().is_some_and(|answers| !tells_keys_apart(answers));
    let has_few_colors =
        matches!(looks(input).color_depth(&input.settings.values), ColorDepth::Indexed | ColorDepth::Ansi);
    let tmux_hides_keys = facts.tmux_extended_keys.as_deref() == Some("off");
    let indistinct = match tmux_hides_keys || hides_keys && !in_tmux(env) {
        true => keybindings::load(input.dirs, keybindings::platform(env)).ok(),
        false => None,
    };
    let indistinct = indistinct.and_then(|(keymap, _)| indistinct_keys(&keymap, Chord::to_string));
    let indistinct = indistinct.map(|keys| {
        let line_breaks = "; insert line breaks with ctrl+j, or with a backslash before enter";
        // What to change in tmux says that too.
        let line_breaks = if tmux_hides_keys { "" } else { line_breaks };
        format!("this terminal cannot tell some keys apart: {keys}{line_breaks}")
    });
    let advice = [
        (is_dumb, "TERM is not set, or dumb: pi has no interface here; use pi -p \"…\""),
        (
            tmux_hides_keys,
            "tmux hides shift+enter: add `set -s extended-keys on` to ~/.tmux.conf, and with tmux 3.5 or newer \
             `set -s extended-keys-format csi-u`; ctrl+j inserts a line break anyway",
        ),
        (
            has_few_colors && !is_dumb,
            "if the terminal shows 24-bit colours, set COLORTERM=truecolor or the setting \
             terminal.trueColor to \"on\"",
        ),
        (
            input.settings.values.notifications && facts.tmux_focus_events.as_deref() == Some("off"),
            "tmux hides whether its window has the focus: add `set -g focus-events on` to ~/.tmux.conf to be \
             notified",
        ),
        (
            env.is_set("WAYLAND_DISPLAY") && env.find_program("wl-paste").is_none(),
            "install wl-clipboard to paste images from the Wayland clipboard",
        ),
    ];
    let advice = advice.into_iter().filter(|(applies, _)| *applies).map(|(_, text)| text.to_owned());
    advice.chain(indistinct).chain(locale_advice(env)).collect()
}

fn looks<'a>(input: &DoctorInput<'a>) -> Looks<'a> {
    Looks { env: input.env, dirs: input.dirs }
}

fn yes_or(is: bool, otherwise: &str) -> String {
    if is { "yes" } else { otherwise }.to_owned()
}

fn name(env: &Env, facts: &TerminalFacts) -> String {
    let term = env.get("TERM").unwrap_or_else(|| "not set".to_owned());
    let program = facts.version().map(str::to_owned).or_else(|| env.get("TERM_PROGRAM"));
    program.map_or_else(|| format!("TERM={term}"), |program| format!("{program}, TERM={term}"))
}

/// The programs between pi and the terminal.
fn within(env: &Env) -> String {
    let hosts = [
        (in_tmux(env), "tmux"),
        (env.is_set("STY"), "screen"),
        (env.is_set("ZELLIJ"), "zellij"),
        (terminal_env::is_remote(env), "ssh"),
    ];
    let within: Vec<&str> = hosts.iter().filter(|(is, _)| *is).map(|(_, name)| *name).collect();
    if within.is_empty() { "nothing else".to_owned() } else { within.join(", ") }
}

fn modified_enter(facts: &TerminalFacts) -> String {
    match facts.tmux_extended_keys.as_deref() {
        Some(option) => format!("tmux: extended-keys {option}"),
        None => facts.row(|answers| yes_or(tells_keys_apart(answers), "the same as enter")),
    }
}

fn true_color(depth: ColorDepth) -> &'static str {
    match depth {
        ColorDepth::True => "yes",
        ColorDepth::Indexed => "no: 256 colours",
        ColorDepth::Ansi => "no: 16 colours",
        ColorDepth::None => "no: no colours",
    }
}

/// Without answers pi goes by the environment; a terminal that is not asked may answer later.
fn images_row(input: &DoctorInput<'_>, facts: &TerminalFacts) -> String {
    let (env, settings) = (input.env, &input.settings.values);
    match facts.reply {
        TerminalReply::Silence => images(env, settings, &TerminalAnswers::default()),
        TerminalReply::Answers(_) | TerminalReply::NotAsked => {
            facts.row(|answers| images(env, settings, answers))
        }
    }
}

/// How images are shown.
fn images(env: &Env, settings: &Settings, answers: &TerminalAnswers) -> String {
    let cell = answers.cell_pixels.or_else(pictures::cell_size);
    let size = cell.map(|(width, height)| format!(", cells of {width}×{height} pixels")).unwrap_or_default();
    let protocol = match pictures::format(env, settings, answers) {
        None => return "as lines of text".to_owned(),
        Some(PictureFormat::Kitty) => "kitty protocol with placeholders",
        Some(PictureFormat::KittyInTmux) => "kitty protocol with placeholders, through tmux",
        Some(PictureFormat::Iterm) => "iTerm2's protocol",
        Some(PictureFormat::Sixel) if cell.is_none() => {
            return "as lines of text: the terminal has sixels, but does not say how large a cell is"
                .to_owned();
        }
        Some(PictureFormat::Sixel) => "sixels",
    };
    [protocol, &size].concat()
}

/// Where copied text goes.
fn clipboard(env: &Env) -> String {
    let has_display = env.is_set("DISPLAY") || env.is_set("WAYLAND_DISPLAY") || cfg!(target_os = "macos");
    if has_display && !terminal_env::is_remote(env) && !in_tmux(env) {
        "this machine's".to_owned()
    } else {
        "the terminal's, for copying (OSC 52)".to_owned()
    }
}

/// What the terminal told about its colours.
fn colors(colors: &TerminalColors) -> String {
    let Some([red, green, blue]) = colors.background else { return "not told".to_owned() };
    let n_known = colors.palette.iter().flatten().count();
    format!("background #{red:02x}{green:02x}{blue:02x}, {n_known} of 16 of the palette")
}

fn scheme(answers: &TerminalAnswers) -> &'static str {
    if answers.reports_scheme { "changes are followed" } else { "asked at the start only" }
}

/// Whether pi notifies through the terminal while another window has the focus.
fn notifications(settings: &Settings, facts: &TerminalFacts) -> &'static str {
    match facts.tmux_focus_events.as_deref() {
        _ if !settings.notifications => OFF,
        Some("off") => "no: tmux does not report the focus",
        _ => "sent (OSC 9) while another window has the focus",
    }
}

/// Whether the task bar shows that pi works.
fn progress(settings: &Settings) -> &'static str {
    if settings.terminal_progress { "shows that pi works (OSC 9;4)" } else { OFF }
}

/// Whether the terminal is told what pi is doing.
fn status(env: &Env, facts: &TerminalFacts) -> String {
    let (yes, no) = ("told (OSC 7501)", "not told: the terminal does not show it");
    match program_status::is_shown(env) {
        Some(true) => yes.to_owned(),
        Some(false) => "not told: PI_PROGRAM_STATUS=1 changes that".to_owned(),
        None => facts.row(|answers| if answers.shows_status { yes } else { no }.to_owned()),
    }
}

/// The variable that decides about characters, and the locale.
fn locale(env: &Env) -> Option<(&'static str, String)> {
    let names = ["LC_ALL", "LC_CTYPE", "LANG"];
    names.iter().find_map(|name| Some((*name, env.get(name).filter(|value| !value.is_empty())?)))
}

fn language(env: &Env) -> Option<String> {
    let (name, value) = locale(env)?;
    Some(if name == "LANG" { value } else { format!("{value} ({name})") })
}

/// What to change if the locale is not one of UTF-8. A variable that is set hides those behind it.
fn locale_advice(env: &Env) -> Option<String> {
    let (name, value) = locale(env).unwrap_or(("LANG", String::new()));
    let is_utf8 = value.to_lowercase().replace('-', "").contains("utf8");
    (!is_utf8).then(|| format!("set {name} to a UTF-8 locale such as C.UTF-8; other text may look wrong"))
}
