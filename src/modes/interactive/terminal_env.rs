//! What the environment says of the terminal. It decides before settings and detection.

use std::time::Duration;

use crate::config::{Capability, Env, PictureProtocol, Settings};

/// How long an Escape waits for the rest of a sequence, in milliseconds.
const ESCAPE_TIMEOUT: &str = "PI_TUI_ESC_TIMEOUT";
const LINKS: &str = "PI_HYPERLINKS";
const TRUE_COLOR: &str = "PI_TRUE_COLOR";
const PROTOCOL: &str = "PI_IMAGE_PROTOCOL";
const CLEAR_ON_SHRINK: &str = "PI_CLEAR_ON_SHRINK";
const HARDWARE_CURSOR: &str = "PI_HARDWARE_CURSOR";
const CLIPBOARD: &str = "PI_CLIPBOARD_OSC52";
const MAX_ESCAPE_WAIT_MS: u64 = 5_000;
/// Terminals write a sequence at once, so what the system has not passed on by now is no part of it. Timers add
/// up to two milliseconds.
const LOCAL_ESCAPE_WAIT: Duration = Duration::from_millis(1);
/// A network may deliver the rest of a sequence later, and an arrow key would count as Escape.
const REMOTE_ESCAPE_WAIT: Duration = Duration::from_millis(100);

/// Whether the terminal is on another machine.
pub(super) fn is_remote(env: &Env) -> bool {
    env.is_set("SSH_TTY") || env.is_set("SSH_CONNECTION")
}

/// How long an Escape that arrives alone waits before it counts as a key; and what is wrong with
/// the value of the environment.
pub(super) fn escape_wait(env: &Env) -> (Duration, Option<String>) {
    // tmux waits for the rest of a sequence itself, and passes it on at once.
    let is_local = !is_remote(env) || env.is_set("TMUX");
    let usual = if is_local { LOCAL_ESCAPE_WAIT } else { REMOTE_ESCAPE_WAIT };
    let Some(value) = env.get(ESCAPE_TIMEOUT) else { return (usual, None) };
    match value.trim().parse::<u64>().ok().filter(|ms| *ms <= MAX_ESCAPE_WAIT_MS) {
        Some(ms) => (Duration::from_millis(ms), None),
        None => {
            let (ms, max) = (usual.as_millis(), MAX_ESCAPE_WAIT_MS);
            let wrong =
                format!("{ESCAPE_TIMEOUT}: \"{value}\" is not a number from 0 to {max}; pi waits {ms} ms");
            (usual, Some(wrong))
        }
    }
}

/// Whether links are shown.
pub(super) fn hyperlinks(env: &Env, settings: &Settings) -> Capability {
    switch(env, LINKS).unwrap_or(settings.hyperlinks)
}

/// Whether the terminal shows 24-bit colours.
pub(super) fn true_color(env: &Env, settings: &Settings) -> Capability {
    switch(env, TRUE_COLOR).unwrap_or(settings.true_color)
}

/// How the terminal shows images.
pub(super) fn picture_protocol(env: &Env, settings: &Settings) -> PictureProtocol {
    env.get(PROTOCOL).and_then(|value| protocol(&value)).unwrap_or(settings.picture_protocol)
}

fn protocol(value: &str) -> Option<PictureProtocol> {
    match value.to_lowercase().as_str() {
        "auto" => Some(PictureProtocol::Auto),
        "kitty" => Some(PictureProtocol::Kitty),
        "iterm2" => Some(PictureProtocol::Iterm),
        "sixel" => Some(PictureProtocol::Sixel),
        "off" | "none" | "0" => Some(PictureProtocol::Off),
        _ => None,
    }
}

/// What is wrong with the values of the environment besides that of [`escape_wait`], one line each.
pub(super) fn problems(env: &Env) -> Vec<String> {
    let wrong = |name: &'static str| {
        let value = env.get(name)?;
        let expected = match name {
            PROTOCOL if protocol(&value).is_none() => "none of auto, kitty, iterm2, sixel and off",
            PROTOCOL => return None,
            _ if switch(env, name).is_none() => "neither 1 nor 0",
            _ => return None,
        };
        Some(format!("{name}: \"{value}\" is {expected}; it is ignored"))
    };
    let names = [LINKS, TRUE_COLOR, PROTOCOL, CLEAR_ON_SHRINK, HARDWARE_CURSOR, CLIPBOARD];
    names.into_iter().filter_map(wrong).collect()
}

/// What the environment says of settings that are read with every frame; `None` leaves them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct ScreenOverrides {
    /// Whether the transcript is written again when it needs fewer rows.
    pub(super) clear_on_shrink: Option<bool>,
    /// Whether the terminal shows its cursor.
    pub(super) hardware_cursor: Option<bool>,
}

impl ScreenOverrides {
    pub(super) fn of(env: &Env) -> Self {
        let is_on = |name| switch(env, name).map(|value| value == Capability::On);
        Self { clear_on_shrink: is_on(CLEAR_ON_SHRINK), hardware_cursor: is_on(HARDWARE_CURSOR) }
    }
}

/// Whether copied text always goes to the terminal's clipboard too.
pub(super) fn copies_to_terminal(env: &Env) -> bool {
    switch(env, CLIPBOARD) == Some(Capability::On)
}

fn switch(env: &Env, name: &str) -> Option<Capability> {
    match env.get(name)?.to_lowercase().as_str() {
        "1" | "true" | "on" | "yes" => Some(Capability::On),
        "0" | "false" | "off" | "no" => Some(Capability::Off),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_waits_longer_over_a_network_and_as_long_as_asked() {
        let check = |env: &[(&str, &str)], ms: u64, problem: Option<&str>| {
            let expected = (Duration::from_millis(ms), problem.map(str::to_owned));
            assert_eq!(escape_wait(&Env::of(env)), expected, "{env:?}");
        };
        check(&[], 1, None);
        check(&[("SSH_TTY", "/dev/pts/1")], 100, None);
        check(&[("SSH_CONNECTION", "1 2 3 4")], 100, None);
        check(&[("SSH_CONNECTION", "1 2 3 4"), ("TMUX", "/tmp/tmux-0/default,1,0")], 1, None);
        check(&[(ESCAPE_TIMEOUT, "25"), ("SSH_TTY", "/dev/pts/1")], 25, None);
        check(&[(ESCAPE_TIMEOUT, "0")], 0, None);
        check(&[(ESCAPE_TIMEOUT, "")], 1, None);
        let wrong = |value: &str| {
            format!("PI_TUI_ESC_TIMEOUT: \"{value}\" is not a number from 0 to 5000; pi waits 1 ms")
        };
        for value in ["5001", "-1", "soon", "99999999999999999999"] {
            check(&[(ESCAPE_TIMEOUT, value)], 1, Some(&wrong(value)));
        }
    }

    #[test]
    fn wrong_values_are_reported() {
        let names = [
            "PI_HYPERLINKS",
            "PI_TRUE_COLOR",
            "PI_CLEAR_ON_SHRINK",
            "PI_HARDWARE_CURSOR",
            "PI_CLIPBOARD_OSC52",
        ];
        for name in names {
            for value in ["1", "0", "ON", "no", ""] {
                assert_eq!(problems(&Env::of(&[(name, value)])), [""; 0], "{name}={value}");
            }
            let expected = [format!("{name}: \"maybe\" is neither 1 nor 0; it is ignored")];
            assert_eq!(problems(&Env::of(&[(name, "maybe")])), expected);
        }
        let of_protocol = |value: &str| problems(&Env::of(&[("PI_IMAGE_PROTOCOL", value)]));
        assert_eq!(of_protocol("None"), [""; 0]);
        let expected =
            ["PI_IMAGE_PROTOCOL: \"kity\" is none of auto, kitty, iterm2, sixel and off; it is ignored"];
        assert_eq!(of_protocol("kity"), expected);
    }

    #[test]
    fn shrinking_and_cursor_follow_the_environment_if_it_names_them() {
        let check = |env: &[(&str, &str)], clear_on_shrink, hardware_cursor| {
            let expected = ScreenOverrides { clear_on_shrink, hardware_cursor };
            assert_eq!(ScreenOverrides::of(&Env::of(env)), expected, "{env:?}");
        };
        check(&[], None, None);
        check(&[("PI_CLEAR_ON_SHRINK", "1")], Some(true), None);
        check(&[("PI_CLEAR_ON_SHRINK", "0"), ("PI_HARDWARE_CURSOR", "off")], Some(false), Some(false));
        check(&[("PI_CLEAR_ON_SHRINK", "maybe"), ("PI_HARDWARE_CURSOR", "1")], None, Some(true));
    }

    #[test]
    fn environment_decides_before_settings() {
        let mut settings = Settings { hyperlinks: Capability::Off, ..Settings::default() };
        settings.picture_protocol = PictureProtocol::Sixel;
        let check =
            |env: &[(&str, &str)], links: Capability, color: Capability, protocol: PictureProtocol| {
                let env = Env::of(env);
                assert_eq!(hyperlinks(&env, &settings), links);
                assert_eq!(true_color(&env, &settings), color);
                assert_eq!(picture_protocol(&env, &settings), protocol);
            };
        check(&[], Capability::Off, Capability::Auto, PictureProtocol::Sixel);
        check(&[("PI_HYPERLINKS", "maybe")], Capability::Off, Capability::Auto, PictureProtocol::Sixel);
        let all = [("PI_HYPERLINKS", "1"), ("PI_TRUE_COLOR", "0"), ("PI_IMAGE_PROTOCOL", "Kitty")];
        check(&all, Capability::On, Capability::Off, PictureProtocol::Kitty);
    }
}
