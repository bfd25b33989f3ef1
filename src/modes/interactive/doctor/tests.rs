//! What the report says, and how it reads.

use crate::tui::term::TerminalAnswers;
use crate::tui::theme::TerminalColors;

use super::*;

fn outside_tmux(reply: TerminalReply) -> TerminalFacts {
    TerminalFacts { reply, is_running: false, tmux_extended_keys: None, tmux_focus_events: None }
}

/// The report of a user with these variables, files and answers.
fn report(variables: &[(&str, &str)], files: &[(&str, &str)], facts: &TerminalFacts) -> String {
    report_as(variables, files, facts, Report::text)
}

fn report_as(
    variables: &[(&str, &str)],
    files: &[(&str, &str)],
    facts: &TerminalFacts,
    form: fn(&Report) -> String,
) -> String {
    let home = tempfile::tempdir().unwrap();
    let root = home.path().to_str().unwrap();
    let agent = home.path().join(".pi/agent");
    fs::create_dir_all(&agent).unwrap();
    for (name, content) in files {
        let path = agent.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    let bin = home.path().join("bin");
    fs::create_dir(&bin).unwrap();
    fs::write(bin.join("bash"), "").unwrap();
    let path = bin.to_str().unwrap();
    let env = Env::of(&[variables, &[("HOME", root), ("PATH", path)]].concat());
    let dirs = Dirs::new(&env);
    let (live, _) = LiveSettings::load(dirs.settings_file(), []);
    let settings = live.get();
    let input = DoctorInput {
        env: &env,
        dirs: &dirs,
        settings: &settings,
        project: None,
        catalog: &Catalog::builtin(),
        credentials: &Credentials::new(env.clone()),
        sessions: &dirs.sessions,
        files: &[],
        problems: &["settings.json: line 3: \"them\" is not a setting".to_owned()],
    };
    form(&Report::of(&input, facts)).replace(root, "HOME")
}

fn of_foot(form: fn(&Report) -> String) -> String {
    let answers = TerminalAnswers {
        version: Some("foot(1.16)".to_owned()),
        has_kitty_keys: true,
        has_synchronized_output: true,
        has_sixel: true,
        cell_pixels: Some((10, 21)),
        reports_scheme: true,
        shows_status: true,
        colors: TerminalColors { background: Some([0x1d, 0x20, 0x21]), ..TerminalColors::default() },
        ..TerminalAnswers::default()
    };
    let facts = outside_tmux(TerminalReply::Answers(answers));
    let variables = [
        ("TERM", "foot"),
        ("COLORTERM", "truecolor"),
        ("LANG", "zh_CN.UTF-8"),
        ("ANTHROPIC_API_KEY", "sk-canary"),
        ("VISUAL", "nvim"),
        ("DISPLAY", ":0"),
        ("HTTPS_PROXY", "http://user:canary@proxy:3128"),
    ];
    let files = [("auth.json", "{}"), ("keybindings.json", r#"{"app.nope": "x"}"#)];
    report_as(&variables, &files, &facts, form)
}

/// A report in a terminal that answers everything.
pub(in super::super) fn example() -> String {
    of_foot(Report::markdown)
}

#[test]
fn report_says_what_is_there_and_what_to_change() {
    let report = of_foot(Report::text);
    assert!(!report.contains("canary"), "{report}");
    insta::assert_snapshot!(report);
}

#[test]
fn limits_of_a_terminal_lead_to_advice() {
    let facts = TerminalFacts {
        reply: TerminalReply::Silence,
        is_running: false,
        tmux_extended_keys: Some("off".to_owned()),
        tmux_focus_events: Some("off".to_owned()),
    };
    let variables = [("TERM", "tmux-256color"), ("TMUX", "/tmp/x"), ("SSH_TTY", "/dev/pts/1"), ("LANG", "C")];
    let report = report(&variables, &[], &facts);
    for advice in [
        "tmux hides shift+enter",
        "set -g focus-events on",
        "COLORTERM=truecolor",
        "set LANG to a UTF-8 locale",
        "no provider has a key",
        "no: tmux does not report the focus",
    ] {
        assert!(report.contains(advice), "{advice} is not in\n{report}");
    }
    assert!(report.contains("tmux, ssh") && !report.contains("backslash"), "{report}");
}

#[test]
fn keys_that_a_terminal_cannot_tell_apart_are_named() {
    let files = [("keybindings.json", r#"{"app.debug": "ctrl+shift+y"}"#)];
    for (has_kitty_keys, is_named) in [(false, true), (true, false)] {
        let answers = TerminalAnswers { has_kitty_keys, ..TerminalAnswers::default() };
        let reply = TerminalReply::Answers(answers);
        let facts = outside_tmux(reply);
        let report = report(&[], &files, &facts).replace("\n     ", " ");
        let named = "cannot tell some keys apart: shift+enter and ctrl+enter arrive as enter; ";
        let has_changed = report.contains(
            " and ctrl+shift+y arrive without shift; ctrl+backspace arrives as ctrl+h or backspace; insert line breaks",
        );
        assert_eq!(has_changed, is_named, "{report}");
        assert_eq!(report.contains(named), is_named, "{report}");
    }
}

#[test]
fn variable_that_decides_about_characters_is_named() {
    let facts = outside_tmux(TerminalReply::Silence);
    let check = |variables: &[(&str, &str)], named: Option<&str>| {
        let report = report(variables, &[], &facts);
        for name in ["LC_ALL", "LC_CTYPE", "LANG"] {
            let advice = format!("set {name} to a UTF-8 locale");
            assert_eq!(report.contains(&advice), named == Some(name), "{variables:?}\n{report}");
        }
    };
    check(&[], Some("LANG"));
    check(&[("LANG", "C")], Some("LANG"));
    check(&[("LC_CTYPE", "C"), ("LANG", "C.UTF-8")], Some("LC_CTYPE"));
    check(&[("LC_ALL", "C"), ("LC_CTYPE", "C.UTF-8"), ("LANG", "C.UTF-8")], Some("LC_ALL"));
    check(&[("LC_ALL", ""), ("LC_CTYPE", "de_DE.utf8"), ("LANG", "C")], None);
}

#[test]
fn unknown_and_broken_themes_are_named() {
    let facts = outside_tmux(TerminalReply::Silence);
    let settings = r#"{"theme": "drak/x\u001b[31m"}"#;
    let files = [("settings.json", settings), ("themes/mine.json", "{}")];
    let report = report(&[], &files, &facts).replace("\n     ", " ");
    assert!(
        report.contains("theme \"drak\": there is no ~/.pi/agent/themes/drak.json; did you mean \"dark\"?"),
        "{report}"
    );
    assert!(report.contains("theme \"mine\": ~/.pi/agent/themes/mine.json: theme lacks name"), "{report}");
    assert!(report.contains("theme \"x<U+001B>[31m\": there is no "), "{report}");
}

#[test]
fn terminal_that_is_silent_differs_from_one_that_is_not_asked() {
    let variables = [("TERM", "xterm-256color"), ("LANG", "C.UTF-8")];
    for (reply, expected) in [
        (TerminalReply::Silence, "no answer"),
        (TerminalReply::NotAsked, "not asked: input or output is not a terminal"),
    ] {
        let facts = outside_tmux(reply);
        let report = report(&variables, &[], &facts);
        let found = |name: &str| {
            let row = report.lines().find_map(|row| row.trim_start().strip_prefix(name));
            row.map(|value| value.trim().to_owned())
        };
        for name in ["shift+enter, ctrl+enter", "frames at once", "colours", "light or dark"] {
            assert_eq!(found(name).as_deref(), Some(expected), "{name} in\n{report}");
        }
        let images = if expected == "no answer" { "as lines of text" } else { expected };
        assert_eq!(found("images").as_deref(), Some(images));
    }
}

#[test]
fn settings_without_effect_are_named() {
    let facts = outside_tmux(TerminalReply::Silence);
    let settings =
        r#"{"packages": ["npm:x"], "theme": "dark", "codemode": {"mode": "off"}, "extensions": null}"#;
    let report = report(&[], &[("settings.json", settings)], &facts).replace("\n     ", " ");
    let expected =
        "these settings are kept and have no effect; pi config list NAME says why: packages, codemode.mode\n";
    assert!(report.contains(expected), "{report}");
}

#[test]
fn shell_that_is_missing_or_not_bash_leads_to_advice() {
    let check = |is_chosen, shell: Option<&str>, expected: &str| {
        let advice = shell_advice(is_chosen, shell.map(Path::new)).unwrap_or_default();
        assert!(advice.starts_with(expected) && advice.is_empty() == expected.is_empty(), "{advice}");
    };
    check(false, Some("/bin/bash"), "");
    check(true, Some("/bin/sh"), "");
    check(false, Some("/bin/sh"), "install bash for commands that need it: they run in /bin/sh");
    check(false, None, "install a shell such as bash");
    check(true, None, "correct the setting shellPath");
}

#[test]
fn an_editor_that_is_not_there_leads_to_advice() {
    let facts = outside_tmux(TerminalReply::Silence);
    let report = |variables: &[(&str, &str)]| report(variables, &[], &facts).replace("\n     ", " ");
    let missing = "or name your editor in VISUAL";
    assert!(report(&[]).contains("no editor found; install nano, vim or vi, or set externalEditor, VISUAL"));
    assert!(report(&[("EDITOR", "/nowhere/vi -f")]).contains(&format!("install /nowhere/vi, {missing}")));
    assert!(!report(&[("EDITOR", "bash -c cat"), ("VISUAL", "")]).contains(missing));
}

#[test]
fn host_of_an_address_never_contains_a_password() {
    assert_eq!(host("https://me:secret@proxy.corp:8443/v1?key=x"), Some("proxy.corp:8443"));
    assert_eq!(host("http://localhost:11434"), Some("localhost:11434"));
    assert_eq!(host("not an address"), None);
}
