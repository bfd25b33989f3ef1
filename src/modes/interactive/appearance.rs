//! The appearance of the terminal: colours, background, links.

use crate::config::{Capability, Dirs, Env, Settings};
use crate::tui::term::{Questions, ReflowTraits};
use crate::tui::theme::{Appearance, ColorDepth};

use super::terminal_env;

pub(super) fn in_tmux(env: &Env) -> bool {
    env.is_set("TMUX")
}

/// What to ask the terminal about itself.
pub(super) fn questions(env: &Env) -> Questions {
    let term = env.get("TERM").unwrap_or_default();
    let is_within = in_tmux(env) || env.is_set("STY") || env.is_set("ZELLIJ");
    let is_old = ["linux", "vt", "ansi", "cygwin", "dumb"].iter().any(|start| term.starts_with(start));
    // They show what they do not understand of the protocol, or make a title of it.
    let shows_strings =
        is_within || is_old || env.get("TERM_PROGRAM").is_some_and(|name| name == "Apple_Terminal");
    Questions { status: false, graphics: !shows_strings, colors: !is_old }
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

/// Chooses colours and links; environment and directories, apart from the settings.
pub(super) struct Looks<'a> {
    pub(super) env: &'a Env,
    pub(super) dirs: &'a Dirs,
}

impl Looks<'_> {
    /// Whether links are shown: as set, or because the terminal is known for it.
    pub(super) fn shows_links(&self, settings: &Settings) -> bool {
        match terminal_env::hyperlinks(self.env, settings) {
            Capability::On => true,
            Capability::Off => false,
            Capability::Auto => !in_tmux(self.env) && self.has_links(),
        }
    }

    fn has_links(&self) -> bool {
        let program = self.env.get("TERM_PROGRAM").unwrap_or_default();
        let term = self.env.get("TERM").unwrap_or_default();
        let programs = ["iTerm.app", "WezTerm", "vscode", "ghostty", "WarpTerminal", "zed"];
        programs.contains(&program.as_str())
            || ["xterm-kitty", "xterm-ghostty", "alacritty", "foot"].contains(&term.as_str())
            || self.env.is_set("WT_SESSION")
    }

    /// Whether the terminal shows 24-bit colours: as set, or because it says so.
    pub(super) fn has_true_color(&self, settings: &Settings) -> bool {
        match terminal_env::true_color(self.env, settings) {
            Capability::On => true,
            Capability::Off => false,
            Capability::Auto => {
                let colors = self.env.get("COLORTERM").unwrap_or_default();
                matches!(colors.as_str(), "truecolor" | "24bit") || self.env.is_set("WT_SESSION")
            }
        }
    }

    /// The colours of the terminal, by its name where it does not say more.
    pub(super) fn color_depth(&self, settings: &Settings) -> ColorDepth {
        if terminal_env::true_color(self.env, settings) == Capability::On {
            return ColorDepth::True;
        }
        // See <https://no-color.org>.
        if self.env.get("NO_COLOR").is_some_and(|value| !value.is_empty()) {
            return ColorDepth::None;
        }
        let term = self.env.get("TERM").unwrap_or_default();
        match term.as_str() {
            _ if self.has_true_color(settings) => ColorDepth::True,
            "vt100" | "vt102" | "vt220" | "vt320" => ColorDepth::None,
            term if term.ends_with("-m") || term.ends_with("-mono") => ColorDepth::None,
            // tmux has 256 colours whatever it is called.
            "screen" | "tmux" if in_tmux(self.env) => ColorDepth::Indexed,
            "linux" | "xterm" | "screen" | "tmux" | "rxvt" | "ansi" | "cygwin" => ColorDepth::Ansi,
            term if term.ends_with("-16color") || term.ends_with("-color") => ColorDepth::Ansi,
            _ => ColorDepth::Indexed,
        }
    }
}

/// Whether the terminal is light or dark, where it does not tell its background.
pub(super) fn background(env: &Env) -> Appearance {
    let is_light =
        env.get("COLORFGBG").is_some_and(|colors| matches!(colors.rsplit(';').next(), Some("7" | "15")));
    if is_light { Appearance::Light } else { Appearance::Dark }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_of_colours_follows_the_environment() {
        let check = |env: &[(&str, &str)], expected| {
            let (env, dirs) = (Env::of(env), Dirs::new(&Env::of(&[("HOME", "/nowhere")])));
            let looks = Looks { env: &env, dirs: &dirs };
            assert_eq!(looks.color_depth(&Settings::default()), expected, "{env:?}");
        };
        check(&[("TERM", "xterm-256color")], ColorDepth::Indexed);
        check(&[("TERM", "xterm-256color"), ("COLORTERM", "truecolor")], ColorDepth::True);
        check(&[("TERM", "xterm-256color"), ("COLORTERM", "truecolor"), ("NO_COLOR", "1")], ColorDepth::None);
        check(&[("TERM", "xterm-256color"), ("NO_COLOR", "")], ColorDepth::Indexed);
        check(&[("TERM", "linux")], ColorDepth::Ansi);
        check(&[("TERM", "screen"), ("TMUX", "/tmp/tmux")], ColorDepth::Indexed);
        check(&[("TERM", "screen")], ColorDepth::Ansi);
        check(&[("TERM", "vt100")], ColorDepth::None);
        check(&[("TERM", "xterm-mono")], ColorDepth::None);
    }
}
