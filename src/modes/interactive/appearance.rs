//! The appearance of the terminal: theme, background, links.

use std::time::Duration;

use crate::config::{Capability, Dirs, Env, Settings};
use crate::tui::term::{InputBroker, ReflowTraits};
use crate::tui::theme::{Appearance, ColorDepth, Theme};

pub(super) fn in_tmux(env: &Env) -> bool {
    env.is_set("TMUX")
}

/// What the terminal is known to do with its rows when its width changes.
pub(super) fn reflow_traits(env: &Env) -> ReflowTraits {
    let program = env.get("TERM_PROGRAM").unwrap_or_default();
    let term = env.get("TERM").unwrap_or_default();
    let name = match (program.as_str(), term.as_str()) {
        _ if in_tmux(env) => "tmux",
        _ if env.is_set("STY") || env.is_set("ZELLIJ") => "",
        ("WezTerm", _) => "wezterm",
        ("vscode", _) => "vscode",
        ("ghostty", _) | (_, "xterm-ghostty") => "ghostty",
        (_, "xterm-kitty") => "kitty",
        (_, "alacritty") => "alacritty",
        (_, "foot") => "foot",
        (_, "rxvt-unicode" | "rxvt-unicode-256color") => "urxvt",
        _ if env.is_set("KONSOLE_VERSION") => "konsole",
        _ if env.is_set("VTE_VERSION") => "vte",
        _ if env.is_set("WT_SESSION") => "windows-terminal",
        _ if env.is_set("XTERM_VERSION") => "xterm",
        _ => "",
    };
    ReflowTraits::of(name)
}

/// Chooses theme and links; environment and directories, apart from the settings.
pub(super) struct Looks<'a> {
    pub(super) env: &'a Env,
    pub(super) dirs: &'a Dirs,
}

impl Looks<'_> {
    /// Whether links are shown: as set, or because the terminal is known for it.
    pub(super) fn shows_links(&self, settings: &Settings) -> bool {
        match settings.hyperlinks {
            Capability::On => true,
            Capability::Off => false,
            Capability::Auto => !in_tmux(self.env) && self.has_links(),
        }
    }

    fn has_links(&self) -> bool {
        let program = self.env.get("TERM_PROGRAM").unwrap_or_default();
        let term = self.env.get("TERM").unwrap_or_default();
        ["iTerm.app", "WezTerm", "vscode", "ghostty", "WarpTerminal", "zed"].contains(&program.as_str())
            || ["xterm-kitty", "xterm-ghostty", "alacritty", "foot"].contains(&term.as_str())
            || self.env.is_set("WT_SESSION")
    }

    /// Whether the terminal shows 24-bit colours: as set, or because it says so.
    pub(super) fn has_true_color(&self, settings: &Settings) -> bool {
        match settings.true_color {
            Capability::On => true,
            Capability::Off => false,
            Capability::Auto => {
                let colors = self.env.get("COLORTERM").unwrap_or_default();
                matches!(colors.as_str(), "truecolor" | "24bit") || self.env.is_set("WT_SESSION")
            }
        }
    }

    /// The theme of the settings: built in, or a file in the user's `themes` folder.
    pub(super) fn theme(
        &self,
        settings: &Settings,
        input: &mut InputBroker,
        problems: &mut Vec<String>,
    ) -> Theme {
        let depth = if self.has_true_color(settings) { ColorDepth::True } else { ColorDepth::Indexed };
        let name = settings.theme.as_str();
        let background = background(self.env, name, input);
        if let Some(theme) = Theme::builtin(name, background, depth) {
            return theme;
        }
        let path = self.dirs.agent.join("themes").join(format!("{name}.json"));
        let loaded = std::fs::read_to_string(&path)
            .map_err(|error| error.to_string())
            .and_then(|json| Theme::parse(&json, depth).map_err(|error| error.to_string()));
        loaded.unwrap_or_else(|error| {
            let shown = self.dirs.display(&path);
            problems.push(format!("theme \"{name}\": {shown}: {error}; using the system theme"));
            Theme::builtin("system", background, depth).expect("the system theme is built in (tested)")
        })
    }
}

/// Whether the terminal is light or dark; only asked for when the theme depends on it.
fn background(env: &Env, theme: &str, input: &mut InputBroker) -> Appearance {
    if theme != "system" {
        return Appearance::Dark;
    }
    if let Some(colors) = env.get("COLORFGBG") {
        let light = matches!(colors.rsplit(';').next(), Some("7" | "15"));
        return if light { Appearance::Light } else { Appearance::Dark };
    }
    input.pause();
    let mut options = terminal_colorsaurus::QueryOptions::default();
    options.timeout = Duration::from_millis(100);
    match terminal_colorsaurus::theme_mode(options) {
        Ok(terminal_colorsaurus::ThemeMode::Light) => Appearance::Light,
        _ => Appearance::Dark,
    }
}
