//! The appearance of the terminal: colours, background, links.

use crate::config::{Capability, Dirs, Env, Settings};
use crate::tui::term::{Abilities, Questions, ReflowTraits, TerminalAnswers};
use crate::tui::theme::{Appearance, ColorDepth};

use super::terminal_env;

pub(super) fn in_tmux(env: &Env) -> bool {
    env.is_set("TMUX")
}

/// Whether GNU screen is what draws, not tmux.
pub(super) fn in_screen(env: &Env) -> bool {
    env.is_set("STY") && !in_tmux(env)
}

/// What to ask the terminal about itself.
pub(super) fn questions(env: &Env) -> Questions {
    let term = env.get("TERM").unwrap_or_default();
    let is_within = in_tmux(env) || env.is_set("STY") || env.is_set("ZELLIJ");
    let is_old = ["linux", "vt", "ansi", "cygwin", "dumb"].iter().any(|start| term.starts_with(start));
    // They show what they do not understand of the protocol, or make a title of it.
    let shows_strings = is_within
        || is_old
        || term.starts_with("rxvt")
        || env.get("TERM_PROGRAM").is_some_and(|name| name == "Apple_Terminal");
    Questions { status: false, graphics: !shows_strings, colors: !is_old, keys: !is_old }
}

/// What the terminal is known to do with its rows when its width changes. What it calls itself
/// counts more than the environment, which may be that of the terminal from which it was started.
pub(super) fn reflow_traits(env: &Env, version: Option<&str>) -> ReflowTraits {
    let name = terminal_name(env, version);
    let counts_padding =
        name == "tmux" && tmux_version(env, version).is_some_and(|version| version >= (3, 6));
    ReflowTraits { counts_padding, ..ReflowTraits::of(name) }
}

/// The numbers of a version such as `3.6b` or `next-3.8`.
fn tmux_version(env: &Env, version: Option<&str>) -> Option<(u16, u16)> {
    let own = version.and_then(|version| version.strip_prefix("tmux ").map(str::to_owned));
    let of_env = || {
        let is_own = env.get("TERM_PROGRAM").is_some_and(|name| name == "tmux");
        is_own.then(|| env.get("TERM_PROGRAM_VERSION")).flatten()
    };
    let text = own.or_else(of_env)?;
    let (major, rest) = text.trim_start_matches(|c: char| !c.is_ascii_digit()).split_once('.')?;
    let minor = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Whether the terminal calls itself one that knows xterm's modifyOtherKeys and not the kitty protocol: xterm and
/// [mintty](https://mintty.github.io/mintty.1.html).
pub(super) fn knows_other_keys(version: Option<&str>) -> bool {
    version.is_some_and(|version| version.starts_with("XTerm(") || version.starts_with("mintty "))
}

/// Whether the terminal has a keyboard protocol, with which shift+enter and ctrl+enter differ from enter.
/// Within tmux its option decides.
pub(super) fn tells_keys_apart(answers: &TerminalAnswers) -> bool {
    // The console of Windows reports keys itself.
    cfg!(windows) || answers.has_kitty_keys || knows_other_keys(answers.version.as_deref())
}

/// The terminal, if it is a known one.
fn terminal_name(env: &Env, version: Option<&str>) -> &'static str {
    if in_tmux(env) {
        return "tmux";
    }
    if env.is_set("ZELLIJ") {
        return "zellij";
    }
    if env.is_set("STY") {
        return "screen";
    }
    if let Some(version) = version {
        let version = version.to_lowercase();
        let known = [
            ("alacritty", "alacritty"),
            ("foot", "foot"),
            ("ghostty", "ghostty"),
            ("kitty", "kitty"),
            ("konsole", "konsole"),
            ("tmux", "tmux"),
            ("vte", "vte"),
            ("wezterm", "wezterm"),
            ("xterm.js", "vscode"),
            ("xterm(", "xterm"),
            ("zellij", "zellij"),
        ];
        return known.iter().find(|(start, _)| version.starts_with(start)).map_or("", |(_, name)| name);
    }
    let named = name_by_term(&env.get("TERM").unwrap_or_default());
    if !named.is_empty() {
        return named;
    }
    match env.get("TERM_PROGRAM").unwrap_or_default().as_str() {
        "WezTerm" => "wezterm",
        "vscode" => "vscode",
        "ghostty" => "ghostty",
        _ if env.is_set("KONSOLE_VERSION") => "konsole",
        _ if env.is_set("VTE_VERSION") => "vte",
        _ if env.is_set("WT_SESSION") => "windows-terminal",
        _ if env.is_set("XTERM_VERSION") => "xterm",
        _ => "",
    }
}

/// The terminal that has this value of `TERM` for itself.
fn name_by_term(term: &str) -> &'static str {
    match term {
        // GNU screen, which may put the name of its terminal behind it. tmux reports its version.
        _ if term == "screen" || term.starts_with("screen-") || term.starts_with("screen.") => "screen",
        "xterm-ghostty" => "ghostty",
        "xterm-kitty" => "kitty",
        "alacritty" | "alacritty-direct" => "alacritty",
        "foot" | "foot-direct" | "foot-extra" => "foot",
        "rxvt-unicode" | "rxvt-unicode-256color" => "urxvt",
        "st" | "st-256color" => "st",
        _ => "",
    }
}

/// Those that show links in any version that pi meets.
const LINKING: [&str; 6] = ["alacritty", "foot", "ghostty", "kitty", "vscode", "wezterm"];

/// Chooses colours and links; environment and directories, apart from the settings.
pub(super) struct Looks<'a> {
    pub(super) env: &'a Env,
    pub(super) dirs: &'a Dirs,
}

impl Looks<'_> {
    /// How cells are written. `version` is what the terminal calls itself.
    pub(super) fn abilities(&self, settings: &Settings, version: Option<&str>) -> Abilities {
        let links = self.shows_links(settings, version);
        Abilities { links, has_16_colors: self.color_depth(settings) == ColorDepth::Ansi }
    }

    /// Whether links are shown: as set, or because the terminal is known for it. `version` is
    /// what it calls itself.
    pub(super) fn shows_links(&self, settings: &Settings, version: Option<&str>) -> bool {
        match terminal_env::hyperlinks(self.env, settings) {
            Capability::On => true,
            Capability::Off => false,
            Capability::Auto => !in_tmux(self.env) && self.has_links(version),
        }
    }

    fn has_links(&self, version: Option<&str>) -> bool {
        let program = self.env.get("TERM_PROGRAM").unwrap_or_default();
        let outer = name_by_term(&self.env.get("TERM").unwrap_or_default());
        let programs = ["iTerm.app", "WezTerm", "vscode", "ghostty", "WarpTerminal", "zed"];
        match terminal_name(self.env, version) {
            name if LINKING.contains(&name) => true,
            // Those that tell their version are newer than 0.50, which has links.
            "vte" => version.is_some() || self.vte_version() >= 5_000,
            // It passes them on to its terminal.
            "zellij" if LINKING.contains(&outer) => true,
            _ => programs.contains(&program.as_str()) || self.env.is_set("WT_SESSION"),
        }
    }

    fn vte_version(&self) -> u32 {
        self.env.get("VTE_VERSION").and_then(|version| version.parse().ok()).unwrap_or(0)
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

    #[test]
    fn a_terminal_is_known_by_what_it_calls_itself_or_by_the_environment() {
        let check = |env: &[(&str, &str)], version: Option<&str>, name: &str, links: bool| {
            let (env, dirs) = (Env::of(env), Dirs::new(&Env::of(&[("HOME", "/nowhere")])));
            let looks = Looks { env: &env, dirs: &dirs };
            assert_eq!(terminal_name(&env, version), name, "{env:?}");
            assert_eq!(looks.shows_links(&Settings::default(), version), links, "{env:?}");
        };
        let xterm = ("TERM", "xterm-256color");
        check(&[("TERM", "xterm-kitty")], None, "kitty", true);
        check(&[("TERM", "rxvt-unicode-256color")], None, "urxvt", false);
        check(&[xterm, ("VTE_VERSION", "7006")], None, "vte", true);
        check(&[xterm, ("VTE_VERSION", "4600")], None, "vte", false);
        check(&[xterm, ("KONSOLE_VERSION", "221203")], Some("Konsole 22.12.3"), "konsole", false);
        check(&[xterm, ("TERM_PROGRAM", "iTerm.app")], Some("iTerm2 3.5"), "", true);
        // Over ssh there is nothing else.
        check(&[xterm], Some("XTerm(379)"), "xterm", false);
        check(&[xterm], Some("VTE(7802)"), "vte", true);
        check(&[xterm], Some("WezTerm 20240203"), "wezterm", true);
        check(&[xterm], Some("xterm.js(5.5.0)"), "vscode", true);
        check(&[("TERM", "tmux-256color")], Some("tmux 3.4"), "tmux", false);
        // Started from the shell of another terminal.
        check(&[xterm, ("VTE_VERSION", "7006")], Some("XTerm(379)"), "xterm", false);
        check(&[("TERM", "st-256color"), ("VTE_VERSION", "7006")], None, "st", false);
        check(&[("TERM", "alacritty"), ("TERM_PROGRAM", "vscode")], None, "alacritty", true);
        check(&[("TERM", "screen"), ("STY", "1.pts"), ("VTE_VERSION", "7006")], None, "screen", false);
        // GNU screen on another machine: it reports no version, and `STY` stays there.
        check(&[("TERM", "screen")], None, "screen", false);
        check(&[("TERM", "screen-256color")], None, "screen", false);
        check(&[("TERM", "screen.xterm-256color")], None, "screen", false);
        check(&[("TERM", "screen-256color")], Some("tmux 3.4"), "tmux", false);
        check(&[("TERM", "xterm-kitty"), ("ZELLIJ", "0")], Some("Zellij(4500)"), "zellij", true);
        check(&[xterm, ("TMUX", "/tmp/tmux")], Some("tmux 3.4"), "tmux", false);
    }

    #[test]
    fn tmux_is_known_by_its_version_to_count_padding() {
        let counts = |env: &[(&str, &str)], version: Option<&str>| {
            reflow_traits(&Env::of(&[env, &[("TMUX", "/tmp/tmux")]].concat()), version).counts_padding
        };
        for version in ["tmux 3.6", "tmux 3.6b", "tmux 3.10", "tmux next-3.8", "tmux 4.0"] {
            assert!(counts(&[], Some(version)), "{version}");
        }
        for version in ["tmux 3.3a", "tmux 3.5a", "tmux master", "kitty(0.48.2)"] {
            assert!(!counts(&[], Some(version)), "{version}");
        }
        assert!(counts(&[("TERM_PROGRAM", "tmux"), ("TERM_PROGRAM_VERSION", "3.6b")], None));
        assert!(!counts(&[("TERM_PROGRAM", "WezTerm"), ("TERM_PROGRAM_VERSION", "20240203.1")], None));
        assert!(!counts(&[], None));
    }

    #[test]
    fn terminals_that_would_print_the_question_for_graphics_are_not_asked() {
        let asks = |env: &[(&str, &str)]| questions(&Env::of(env)).graphics;
        assert!(asks(&[("TERM", "xterm-256color")]));
        assert!(asks(&[("TERM", "foot")]));
        assert!(!asks(&[("TERM", "rxvt-unicode-256color")]));
        assert!(!asks(&[("TERM", "linux")]));
        assert!(!asks(&[("TERM", "xterm-256color"), ("TERM_PROGRAM", "Apple_Terminal")]));
        assert!(!asks(&[("TERM", "xterm-256color"), ("ZELLIJ", "0")]));
    }
}
