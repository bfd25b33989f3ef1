//! Reads the user's `keybindings.json`, which overrides the keys of the tables.

use std::{fmt, io};

use serde_json::Value;

use crate::config::{Dirs, Env};
use crate::tui::keymap::{BINDINGS, Keymap, Platform};
use crate::util::{json_problem, os, repeated_keys};

use super::actions;

/// The system whose terminal the program runs in. WSL tells its programs by these variables.
pub(super) fn platform(env: &Env) -> Platform {
    if cfg!(windows) {
        Platform::Windows
    } else if env.is_set("WSL_DISTRO_NAME") || env.is_set("WSL_INTEROP") {
        Platform::Wsl
    } else {
        Platform::Unix
    }
}

/// Added to the error of a start.
pub(super) const DEFAULTS_APPLY: &str = "; pi starts with the default keys";
/// Added to the error of a reload.
pub(super) const KEYS_STAY: &str = "; the keys read before stay";

/// The keys with the overrides of the file, and problems with these, one line each.
/// Blocks.
///
/// # Errors
/// If the file cannot be read or parsed. The caller adds which keys apply then: [`DEFAULTS_APPLY`]
/// or [`KEYS_STAY`].
pub(super) fn load(dirs: &Dirs, platform: Platform) -> Result<(Keymap, Vec<String>), String> {
    let path = dirs.keybindings_file();
    let named = |problem: &dyn fmt::Display| format!("{}: {problem}", dirs.display(&path));
    let mut keymap = keymap_of(platform);
    let text = match os::open_regular(&path).and_then(io::read_to_string) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((keymap, Vec::new())),
        Err(error) => return Err(named(&error)),
    };
    match serde_json::from_str(text.trim_start_matches('\u{feff}')) {
        Ok(Value::Object(overrides)) => {
            let mut problems: Vec<String> =
                keymap.apply(&overrides).iter().map(|problem| named(problem)).collect();
            let repeated = repeated_keys(text.trim_start_matches('\u{feff}'));
            let path = dirs.display(&path);
            problems.extend(repeated.iter().map(|key| format!("{path}:{}: {key}", key.line)));
            problems.extend(keymap.conflicts().iter().map(|conflict| named(conflict)));
            let untypable = keymap.untypable();
            problems.extend(
                untypable.iter().map(|(chord, id)| {
                    named(&format!("{chord} can no longer be typed, because {id} has it"))
                }),
            );
            Ok((keymap, problems))
        }
        Ok(_) => Err(named(&"expected an object")),
        Err(error) => Err(named(&format!("this is not valid JSON: {}", json_problem(&error)))),
    }
}

/// The keys of the tables.
pub(super) fn keymap_of(platform: Platform) -> Keymap {
    Keymap::new(&[BINDINGS, &actions::bindings()], platform)
}

#[cfg(test)]
pub(super) fn default_keymap() -> Keymap {
    keymap_of(Platform::Unix)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use crate::tui::keymap::{Binding, Chord, Conflict, Context};

    use super::*;

    #[track_caller]
    fn problems(file: &str) -> Vec<String> {
        loaded(file).unwrap().1
    }

    fn loaded(file: &str) -> Result<(Keymap, Vec<String>), String> {
        let home = tempfile::tempdir().unwrap();
        let dirs = Dirs::new(&Env::of(&[("HOME", home.path().to_str().unwrap())]));
        fs::create_dir_all(dirs.keybindings_file().parent().unwrap()).unwrap();
        fs::write(dirs.keybindings_file(), file).unwrap();
        load(&dirs, Platform::Unix)
    }

    #[test]
    fn a_file_that_is_no_object_is_named_and_nothing_is_said_of_the_keys_that_apply() {
        let check = |file: &str, expected: &str| {
            assert_eq!(loaded(file).unwrap_err(), format!("~/.pi/agent/keybindings.json: {expected}"));
        };
        check("{ bad", "this is not valid JSON: key must be a string at line 1 column 3");
        check("{", "this is not valid JSON: the file ends at line 1, column 1, before its JSON is complete");
        for file in ["[]", "\"x\"", "null"] {
            check(file, "expected an object");
        }
    }

    #[test]
    fn keys_are_those_of_the_system_whose_terminal_it_is() {
        let home = tempfile::tempdir().unwrap();
        let home = ("HOME", home.path().to_str().unwrap());
        let queue_key = |pairs: &[(&str, &str)]| {
            let env = Env::of(pairs);
            let (keymap, problems) = load(&Dirs::new(&env), platform(&env)).unwrap();
            assert_eq!(problems, [""; 0]);
            keymap.hint("app.message.followUp")
        };
        let expected = if cfg!(windows) { "ctrl+q" } else { "alt+enter" };
        assert_eq!(queue_key(&[home]), expected);
        assert_eq!(queue_key(&[home, ("WSL_DISTRO_NAME", "Debian")]), "ctrl+q");
        assert_eq!(queue_key(&[home, ("WSL_INTEROP", "/run/WSL/8_interop")]), "ctrl+q");
    }

    #[test]
    fn key_that_can_no_longer_be_typed_is_reported() {
        let typed = |key: &str| problems(&format!(r#"{{"app.tools.expand": "{key}"}}"#));
        assert_eq!(
            typed("a"),
            ["~/.pi/agent/keybindings.json: a can no longer be typed, because app.tools.expand has it"]
        );
        assert_eq!(typed("shift+a").len(), 1);
        assert_eq!((typed("alt+a"), typed("f2")), (Vec::new(), Vec::new()));
        assert_eq!(problems(r#"{"tui.pager.top": "u"}"#), [""; 0]);
    }

    #[test]
    fn modifier_that_is_there_twice_is_reported() {
        let problem = "key bindings: tui.editor.undo: \"ctrl\" is there twice";
        assert_eq!(
            problems(r#"{"tui.editor.undo": "ctrl+ctrl+x"}"#),
            [format!("~/.pi/agent/keybindings.json: {problem}")]
        );
    }

    #[test]
    fn ids_of_pi_0_58_are_known() {
        let file = r#"{"expandTools": "f2", "cycleThinkingLevel": "f3", "treeFoldOrUp": "f4", "newSession": "f5",
            "toggleSessionNamedFilter": "f6", "pasteImage": "f7", "selectPageDown": "f8", "cursorUp": "f9"}"#;
        assert_eq!(problems(file), [""; 0]);
        let old = problems(r#"{"expandTool": "f2"}"#);
        assert!(old.len() == 1 && old[0].contains("expandTool"), "{old:?}");
    }

    /// The app and the editor share some defaults on purpose, the same ones everywhere.
    #[test]
    fn app_and_editor_share_the_same_defaults_on_all_platforms() {
        let shared = |platform| {
            let keymap = keymap_of(platform);
            let of_editor: Vec<Chord> = (keymap.rows())
                .filter(|(binding, _)| binding.context == Context::Editor)
                .flat_map(|(_, chords)| chords.to_vec())
                .collect();
            let of_app = keymap.rows().filter(|(binding, _)| binding.context == Context::App);
            let of_app = of_app.flat_map(|(_, chords)| chords.to_vec());
            of_app
                .filter(|chord| of_editor.contains(chord))
                .map(|chord| chord.to_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(shared(Platform::Unix), ["ctrl+c", "ctrl+d"]);
        assert_eq!(shared(Platform::Windows), ["ctrl+c", "ctrl+d"]);
        assert_eq!(shared(Platform::Wsl), ["ctrl+c", "ctrl+d"]);
    }

    /// The keymap in which `id` has this key, and no other.
    fn with_key(defaults: &Keymap, id: &str, chord: Chord) -> Keymap {
        let mut keymap = defaults.clone();
        let overrides = serde_json::Map::from_iter([(id.to_owned(), chord.to_string().into())]);
        assert_eq!(keymap.apply(&overrides), []);
        keymap
    }

    /// Gives each action of the program the key of each other one, and compares who gets it with what the report,
    /// the hints and `/hotkeys` say.
    #[test]
    fn action_that_loses_its_key_to_another_never_gets_it_in_any_context() {
        let defaults = default_keymap();
        let rows: Vec<(Binding, Vec<Chord>)> =
            defaults.rows().map(|(binding, chords)| (*binding, chords.to_vec())).collect();
        let mut n_clashes = 0;
        for (loser, chords) in &rows {
            let Some(&chord) = chords.first() else { continue };
            for (winner, _) in rows.iter().filter(|(winner, _)| winner.id != loser.id) {
                let is_anywhere = ["app.suspend", "app.debug"].contains(&winner.id);
                let is_of_app =
                    |binding: &Binding| binding.context == Context::App && binding.id != "app.exit";
                let is_loser_anywhere = ["app.suspend", "app.debug"].contains(&loser.id);
                let is_clash = winner.context == loser.context
                    || is_anywhere
                    || is_of_app(winner) && loser.context == Context::Editor
                    || is_of_app(loser) && winner.context == Context::Editor;
                let keymap = with_key(&defaults, winner.id, chord);
                let told = (winner.id, loser.id, chord);
                // Those that work whatever is open keep their keys.
                let loses = is_clash && !(is_loser_anywhere && winner.context != Context::App);
                assert_eq!(keymap.is(loser.id, &chord.event()), !loses, "{told:?}");
                if !loses {
                    continue;
                }
                n_clashes += 1;
                let conflicts = keymap.conflicts();
                let is_told = |told: &Conflict| told.chord == chord && told.ids.contains(&loser.id);
                assert!(conflicts.iter().any(is_told), "{told:?}");
                // One that works whatever is open goes before both.
                let app = defaults.lookup(Context::App, &chord.event());
                let is_taken = winner.context != Context::App
                    && app.is_some_and(|id| ["app.suspend", "app.debug"].contains(&id));
                assert_eq!(keymap.is(winner.id, &chord.event()), !is_taken, "{told:?}");
                assert_ne!(keymap.lookup(loser.context, &chord.event()), Some(loser.id), "{told:?}");
                assert_ne!(keymap.hint(loser.id), chord.to_string(), "{told:?}");
                let reached = keymap.reachable().find(|(binding, _)| binding.id == loser.id).unwrap().1;
                assert!(!reached.contains(&chord), "{told:?}");
            }
        }
        assert!(n_clashes > 1000, "{n_clashes}");
    }

    #[test]
    fn a_key_that_quits_instead_of_what_it_does_in_an_empty_editor_is_reported() {
        let reported = "~/.pi/agent/keybindings.json: enter is bound to app.exit and tui.input.submit; \
                        app.exit gets it where both work";
        assert_eq!(problems(r#"{"app.exit": ["ctrl+d", "enter"]}"#), [reported]);
        assert_eq!(problems(r#"{"app.exit": ["ctrl+d", "ctrl+w", "f9"]}"#), [""; 0]);
    }

    #[test]
    fn key_bound_twice_in_one_context_is_reported_with_its_actions() {
        let path = "~/.pi/agent/keybindings.json";
        assert_eq!(
            problems(r#"{"app.message.copy": "ctrl+t", "tui.editor.undo": ["f2", "ctrl+z"]}"#),
            [
                format!(
                    "{path}: ctrl+t is bound to app.message.copy and app.thinking.toggle; app.message.copy gets it"
                ),
                format!("{path}: ctrl+z is bound to app.suspend and tui.editor.undo; app.suspend gets it"),
                format!(
                    "{path}: ctrl+t is bound to app.tree.filter.noTools and app.message.copy; \
                     app.tree.filter.noTools gets it where both work"
                ),
            ]
        );
        assert_eq!(
            problems("{\"app.suspend\": \"f2\",\n\"app.suspend\": \"f3\"}"),
            [format!("{path}:2: \"app.suspend\" is in line 1 too; this value counts, the other is ignored")]
        );
        assert_eq!(problems(r#"{"app.suspend": [], "tui.editor.undo": "ctrl+z"}"#), [""; 0]);
        assert_eq!(
            problems(r#"{"tui.editor.deleteWordBackward": "ctrl+t"}"#),
            [format!(
                "{path}: ctrl+t is bound to tui.editor.deleteWordBackward and app.thinking.toggle; \
                 tui.editor.deleteWordBackward gets it"
            )]
        );
    }
}
