//! The appearance of the terminal: theme, background, links.

use std::time::Duration;

use crate::config::Env;
use crate::tui::term::InputBroker;
use crate::tui::theme::{Appearance, ColorDepth, Theme};

use super::start::InteractiveStart;

pub(super) fn in_tmux(env: &Env) -> bool {
    env.is_set("TMUX")
}

/// Whether links are shown: by setting, or because the terminal is known to support them.
pub(super) fn shows_links(start: &InteractiveStart) -> bool {
    start.services.settings.hyperlinks == "on" || has_links(start)
}

fn has_links(start: &InteractiveStart) -> bool {
    if start.services.settings.hyperlinks != "auto" || in_tmux(&start.env) {
        return false;
    }
    let program = start.env.get("TERM_PROGRAM").unwrap_or_default();
    let term = start.env.get("TERM").unwrap_or_default();
    ["iTerm.app", "WezTerm", "vscode", "ghostty", "WarpTerminal", "zed"].contains(&program.as_str())
        || ["xterm-kitty", "xterm-ghostty", "alacritty", "foot"].contains(&term.as_str())
        || start.env.is_set("WT_SESSION")
}

/// The theme of the settings: built in, or a file in the user's `themes` folder.
pub(super) fn theme(start: &InteractiveStart, input: &mut InputBroker, problems: &mut Vec<String>) -> Theme {
    let env = &start.env;
    let settings = &start.services.settings;
    let colors = env.get("COLORTERM").unwrap_or_default();
    let true_color = match settings.true_color.as_str() {
        "on" => true,
        "off" => false,
        _ => matches!(colors.as_str(), "truecolor" | "24bit") || env.is_set("WT_SESSION"),
    };
    let depth = if true_color { ColorDepth::True } else { ColorDepth::Indexed };
    let name = settings.theme.as_str();
    let background = background(env, name, input);
    if let Some(theme) = Theme::builtin(name, background, depth) {
        return theme;
    }
    let path = start.services.dirs.agent.join("themes").join(format!("{name}.json"));
    let loaded = std::fs::read_to_string(&path)
        .map_err(|error| error.to_string())
        .and_then(|json| Theme::parse(&json, depth).map_err(|error| error.to_string()));
    loaded.unwrap_or_else(|error| {
        let shown = start.services.dirs.display(&path);
        problems.push(format!("theme \"{name}\": {shown}: {error}; using the system theme"));
        Theme::builtin("system", background, depth).expect("the system theme is built in (tested)")
    })
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
