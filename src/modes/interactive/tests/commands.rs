//! Commands that can do nothing.

use std::path::PathBuf;

use crate::ai::Catalog;

use super::super::completion::ProviderChoice;
use super::super::export::ExportRequest;
use super::super::login::{LoginDone, LoginEffect, Purpose};
use super::super::msg::EffectDone;
use super::super::theme_files::ListedTheme;
use super::overlays::providers;
use super::*;

/// Runs a command, and returns what it asks of the world.
fn run(stage: &mut Stage, line: &str) -> Vec<WorldEffect> {
    stage.effects.clear();
    stage.paste(line).type_keys(" <enter>");
    let effects = stage.effects.drain(..).filter_map(|effect| match effect {
        Effect::World(WorldEffect::History(_) | WorldEffect::FindFiles(_)) | Effect::Screen(_) => None,
        Effect::World(effect) => Some(effect),
    });
    effects.collect()
}

/// The screen after an answer of the world.
fn answer(stage: &mut Stage, done: EffectDone) -> String {
    stage.app.on_effect_done(done, &mut stage.effects);
    stage.screen(100, 24).join("\n")
}

#[test]
fn a_command_that_cannot_run_stays_in_the_editor() {
    let lines = [
        "/handoff",
        "/compact --nope",
        "/trace --tool",
        "/trace nothing",
        "/trace --slow --failed",
        "/trace --failed --tool bash --slow",
        "/export notes.txt",
        "/import",
        "/thinking loud",
        "/hotkeys now",
        "/nothing",
    ];
    for line in lines {
        let mut stage = Stage::new();
        assert_eq!(run(&mut stage, line), [], "{line}");
        assert_eq!(stage.editor().trim_end_matches('|').trim_end(), line);
        assert!(stage.screen(100, 24).join("\n").contains("Error: "), "{line}");
    }
    // It may be a key.
    for argument in ["acme sk-canary", "AKLTcanary0123456789"] {
        let mut stage = Stage::new();
        run(&mut stage, &format!("/login {argument}"));
        let (wanted, providers) = (Some(argument.to_owned()), providers());
        let listed = LoginDone::Listed { purpose: Purpose::Login, wanted, providers };
        let screen = answer(&mut stage, EffectDone::Login(listed));
        assert!(screen.contains("enter only the provider's name"), "{screen}");
        assert!(!screen.contains("canary"), "{screen}");
        assert_eq!(stage.editor(), "|");
    }
    // It is the name of a provider, for which nothing is stored.
    let mut stage = Stage::new();
    stage.app.input.completion.set_providers(ProviderChoice::of(&Catalog::builtin()));
    let (wanted, providers) = (Some("Amazon Bedrock".to_owned()), providers());
    let listed = LoginDone::Listed { purpose: Purpose::Logout, wanted, providers };
    let screen = answer(&mut stage, EffectDone::Login(listed));
    assert!(screen.contains("nothing is stored for"), "{screen}");
    assert_eq!(stage.editor(), "/logout Amazon Bedrock|");
}

#[test]
fn a_command_that_fails_later_returns_to_the_editor_unless_something_was_typed() {
    let mut stage = Stage::new();
    let list = LoginEffect::List { purpose: Purpose::Login, wanted: Some("nosuch".to_owned()) };
    assert_eq!(run(&mut stage, "/login nosuch"), [WorldEffect::Login(list)]);
    assert_eq!(stage.editor(), "|");
    let listed = |purpose| {
        let (wanted, providers) = (Some("cluod".to_owned()), providers());
        EffectDone::Login(LoginDone::Listed { purpose, wanted, providers })
    };
    let screen = answer(&mut stage, listed(Purpose::Login));
    assert!(screen.contains("there is no provider \"cluod\"; there is cloud, a"), "{screen}");
    assert_eq!(stage.editor(), "/login cluod|");
    let mut stage = Stage::new();
    stage.type_keys("next");
    let screen = answer(&mut stage, listed(Purpose::Logout));
    assert!(screen.contains("nothing is stored for \"cluod\"; there is cloud, a"), "{screen}");
    assert_eq!(stage.editor(), "next|");

    let mut stage = Stage::new();
    let wanted = run(&mut stage, "/export  /no/where.md");
    let [WorldEffect::Export(ExportRequest { line, .. })] = wanted.as_slice() else { panic!("{wanted:?}") };
    let failed = EffectDone::CommandFailed { line: line.clone(), error: "cannot write it".to_owned() };
    assert!(answer(&mut stage, failed).contains("Error: cannot write it"));
    assert_eq!(stage.editor(), "/export /no/where.md|");
}

#[test]
fn an_import_asks_only_about_a_file_that_is_a_session() {
    let mut stage = Stage::new();
    let (path, line) = (PathBuf::from("/home/me/project/old.jsonl"), "import old.jsonl".to_owned());
    let check = WorldEffect::CheckImport { path: path.clone(), line: line.clone() };
    assert_eq!(run(&mut stage, "/import old.jsonl"), [check]);
    assert!(!stage.app.dialogs.is_open());
    answer(&mut stage, EffectDone::CommandFailed { line, error: "it is not there".to_owned() });
    assert!(!stage.app.dialogs.is_open());
    assert_eq!(stage.editor(), "/import old.jsonl|");
    assert!(answer(&mut stage, EffectDone::Importable(path)).contains("Import this session?"));
}

#[test]
fn a_theme_that_cannot_be_used_is_refused_and_not_saved() {
    let problem = "~/.pi/agent/themes/broken.json:7: colors.accnt: unknown key".to_owned();
    let themes = vec![
        ListedTheme { name: "dusk".to_owned(), problem: None },
        ListedTheme { name: "broken".to_owned(), problem: Some(problem) },
    ];
    let mut stage = Stage::new();
    assert_eq!(run(&mut stage, "/theme broken"), [WorldEffect::ListThemes("broken".to_owned())]);
    let screen =
        answer(&mut stage, EffectDone::Themes { themes: themes.clone(), query: "broken".to_owned() });
    assert!(screen.contains("theme \"broken\": ~/.pi/agent/themes/broken.json:7: colors.accnt"), "{screen}");
    assert_eq!(stage.editor(), "/theme broken|");
    assert!(!stage.app.dialogs.is_open());
    assert_eq!(stage.commands(), [""; 0]);

    let mut stage = Stage::new();
    answer(&mut stage, EffectDone::Themes { themes, query: "dusk".to_owned() });
    let [command] = &stage.commands()[..] else { panic!("one command is sent") };
    assert!(command.starts_with("ChangeSetting") && command.contains("dusk"), "{command}");
}

#[test]
fn themes_are_named_where_none_has_the_name() {
    let themes = ["dark", "light", "mine"].map(|name| ListedTheme { name: name.to_owned(), problem: None });
    let mut stage = Stage::new();
    run(&mut stage, "/theme drak");
    let done = EffectDone::Themes { themes: themes.to_vec(), query: "drak".to_owned() };
    let screen = answer(&mut stage, done);
    assert!(screen.contains("there is no theme \"drak\"; the themes are dark, mine, light"), "{screen}");
    assert_eq!(stage.editor(), "/theme drak|");
    // A part of a name filters the list.
    answer(&mut stage, EffectDone::Themes { themes: themes.to_vec(), query: "da".to_owned() });
    assert!(stage.app.dialogs.is_open());
    // Both names of a pair count.
    let mut stage = Stage::new();
    run(&mut stage, "/theme light/drak");
    let done = EffectDone::Themes { themes: themes.to_vec(), query: "light/drak".to_owned() };
    assert!(
        answer(&mut stage, done).contains("there is no theme \"drak\"; the themes are dark, mine, light")
    );
    assert_eq!(stage.editor(), "/theme light/drak|");
    answer(&mut stage, EffectDone::Themes { themes: themes.to_vec(), query: "light/mine".to_owned() });
    let [command] = &stage.commands()[..] else { panic!("one command is sent") };
    assert!(command.starts_with("ChangeSetting") && command.contains("light/mine"), "{command}");
}

#[test]
fn notice_about_tmux_stays_above_the_status_line() {
    let mut stage = Stage::new();
    let notice = Some("tmux hides keys.".to_owned());
    answer(&mut stage, EffectDone::TmuxHidesKeys { notice });
    stage.type_keys("x");
    let rows = stage.screen(80, 24);
    let at = rows.iter().position(|row| row.contains("tmux hides keys.")).unwrap();
    assert!(rows[at + 1].trim().is_empty(), "{rows:#?}");
}
