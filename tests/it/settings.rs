//! Settings from the shell and from the list of the interactive mode.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::fs;

use ratatui::layout::Size;
use serde_json::{Value, json};

use crate::support::program::pi;
use crate::support::pty::{Pty, TestHome};

/// Runs `pi config` with `args`; returns exit code, output and standard error.
#[track_caller]
fn config(home: &TestHome, args: &[&str]) -> (Option<i32>, String, String) {
    let output = pi(home, &[&["config"], args].concat()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn done(stdout: &str) -> (Option<i32>, String, String) {
    (Some(0), stdout.to_owned(), String::new())
}

fn home() -> TestHome {
    let home = TestHome::new();
    fs::create_dir_all(home.agent()).unwrap();
    home
}

#[test]
fn settings_are_set_shown_and_reset_and_other_keys_stay() {
    let home = home();
    let file = home.agent().join("settings.json");
    fs::write(&file, r#"{"mine": {"x": 1}}"#).unwrap();
    let saved = |key: &str| done(&format!("Saved {key} in ~/.pi/agent/settings.json.\n"));
    assert_eq!(config(&home, &["set", "retry.maxRetries", "7"]), saved("retry.maxRetries"));
    assert_eq!(config(&home, &["set", "defaultTools", "read, bash"]), saved("defaultTools"));
    assert_eq!(config(&home, &["set", "theme", "dark"]), saved("theme"));
    let written: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let expected = json!({
        "mine": {"x": 1}, "retry": {"maxRetries": 7}, "defaultTools": ["read", "bash"], "theme": "dark",
    });
    assert_eq!(written, expected);
    assert_eq!(config(&home, &["get", "theme"]), done("dark\n"));
    assert_eq!(config(&home, &["get", "defaultTools"]), done("[\"read\",\"bash\"]\n"));
    let removed = done("Removed retry.maxRetries from ~/.pi/agent/settings.json.\n");
    assert_eq!(config(&home, &["unset", "retry.maxRetries"]), removed);
    assert_eq!(config(&home, &["get", "retry.maxRetries"]), done("3\n"));
    let (_, listed, _) = config(&home, &["list", "--changed"]);
    assert_eq!(
        listed,
        "defaultTools  [\"read\",\"bash\"]  (your settings)\ntheme         \"dark\"  (your settings)\n"
    );
    assert_eq!(config(&home, &["path"]), done(&format!("{}\n", file.display())));
    let nothing = "pi: no setting contains \"nosuch\"; pi config lists all\n".to_owned();
    assert_eq!(config(&home, &["list", "nosuch"]), (Some(1), String::new(), nothing));
}

#[test]
fn values_that_are_no_list_and_names_of_no_tool_are_not_saved() {
    let home = home();
    let check = |key: &str, value: &str, problem: &str| {
        let expected = (Some(2), String::new(), format!("pi: {problem}\n"));
        assert_eq!(config(&home, &["set", key, value]), expected, "{value}");
    };
    check("urgentWords", r#"{"a":1}"#, "\"urgentWords\" must be a list of strings");
    let names = "read, bash, edit, write, grep, find, ls";
    for value in ["raed", "read,raed", "-raed", "+raed"] {
        let problem = format!("defaultTools: unknown tool \"raed\"; choose from {names}");
        check("defaultTools", value, &problem);
    }
    assert!(!home.agent().join("settings.json").exists());
    assert_eq!(config(&home, &["set", "defaultTools", "-bash,+g*"]).0, Some(0));
}

#[test]
fn unknown_and_broken_themes_are_saved_with_a_warning() {
    let home = home();
    let (code, said, noted) = config(&home, &["set", "theme", "drak"]);
    assert!(code == Some(0) && said.starts_with("Saved theme in "), "{said}");
    assert!(
        noted.contains("theme \"drak\": there is no ") && noted.contains("did you mean \"dark\"?"),
        "{noted}"
    );
    for known in ["dark", "system", "light/dark"] {
        assert_eq!(config(&home, &["set", "theme", known]).2, "", "{known}");
    }
    fs::create_dir_all(home.agent().join("themes")).unwrap();
    fs::write(home.agent().join("themes/mine.json"), "{\n\"name\": 7}").unwrap();
    let (_, _, noted) = config(&home, &["set", "theme", "light/mine"]);
    assert!(noted.contains("themes/mine.json:2: name: expected a string"), "{noted}");
}

#[test]
fn keys_that_are_there_twice_are_named_with_their_lines() {
    let home = home();
    let text = "{\n  \"theme\": \"dark\",\n  \"retry\": {\n    \"maxRetries\": 1,\n    \"maxRetries\": 2\n  },\n  \"theme\": \"light\"\n}";
    fs::write(home.agent().join("settings.json"), text).unwrap();
    fs::write(
        home.agent().join("auth.json"),
        "{\"groq\": {},\n\"groq\": {\"type\": \"api_key\", \"key\": \"k\"}}",
    )
    .unwrap();
    let (code, value, noted) = config(&home, &["get", "theme"]);
    assert_eq!((code, value.as_str()), (Some(0), "light\n"));
    for (place, key, first) in [
        ("settings.json:5", "retry.maxRetries", 4),
        ("settings.json:7", "theme", 2),
        ("auth.json:2", "groq", 1),
    ] {
        let expected =
            format!("{place}: \"{key}\" is in line {first} too; this value counts, the other is ignored");
        assert!(noted.contains(&expected), "{expected}: {noted}");
    }
}

#[test]
fn pipes_in_place_of_files_are_named_and_not_read() {
    let home = home();
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    for name in ["settings.json", "models.json", "models-store.json", "auth.json"] {
        let path = home.agent().join(name);
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let (code, value, noted) = config(&home, &["get", "theme"]);
        assert_eq!((code, value.as_str()), (Some(0), "system\n"), "{name}");
        let otherwise = if name == "settings.json" { "; pi starts with the default settings" } else { "" };
        assert_eq!(noted, format!("pi: ~/.pi/agent/{name}: it is not a regular file{otherwise}\n"));
        fs::remove_file(path).unwrap();
    }
    let (code, _, refused) = {
        fs::create_dir(home.agent().join("settings.json")).unwrap();
        config(&home, &["set", "theme", "dark"])
    };
    assert_eq!(code, Some(1));
    assert_eq!(refused.matches("Is a directory").count(), 1, "the cause is named once: {refused}");
}

#[test]
fn a_project_has_a_layer_of_its_own_that_counts_once_trusted() {
    let home = home();
    let (code, said, noted) = config(&home, &["set", "-l", "theme", "light"]);
    assert_eq!(code, Some(0));
    assert!(said.starts_with("Saved theme in ") && said.ends_with("/project/.pi/settings.json.\n"), "{said}");
    assert!(noted.contains("count once you trust it"), "{noted}");
    assert_eq!(config(&home, &["get", "theme"]), done("system\n"));
    let project = fs::canonicalize(home.project()).unwrap();
    fs::write(home.agent().join("trust.json"), json!({ project.to_str().unwrap(): true }).to_string())
        .unwrap();
    let (_, shown, _) = config(&home, &["get", "theme", "--json"]);
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!((&shown["value"], &shown["origin"]), (&json!("light"), &json!("project")));
    let (code, _, noted) = config(&home, &["set", "theme", "dark"]);
    assert_eq!(code, Some(0));
    assert_eq!(noted, "pi: this directory's .pi/settings.json has its own value of theme\n");
    let (code, _, refused) = config(&home, &["set", "-l", "defaultProjectTrust", "always"]);
    assert_eq!(code, Some(2));
    assert!(refused.contains("works only in your own settings.json"), "{refused}");
}

#[test]
fn wrong_keys_and_values_are_refused_with_what_to_do() {
    let home = home();
    let check = |args: &[&str], expected: &str| {
        let (code, _, refused) = config(&home, args);
        assert_eq!((code, refused.as_str()), (Some(2), expected), "{args:?}");
    };
    check(&["get", "them"], "pi: there is no setting \"them\"; did you mean \"theme\"?\n");
    check(
        &["set", "maxAgentDelayMs", "1"],
        "pi: there is no setting \"maxAgentDelayMs\"; did you mean \"retry.maxAgentDelayMs\"?\n",
    );
    check(&["get", "frobnicate"], "pi: there is no setting \"frobnicate\"; pi config lists all\n");
    check(&["set", "retry.maxRetries", "-1"], "pi: \"retry.maxRetries\" must be a whole number, 0 or more\n");
    fs::write(home.agent().join("settings.json"), "{\n  \"theme\": dark\n}").unwrap();
    let (code, _, refused) = config(&home, &["set", "theme", "light"]);
    assert_eq!(code, Some(1));
    assert!(refused.contains("line 2") && refused.contains("fix the file and try again"), "{refused}");
}

#[test]
fn settings_without_effect_are_kept_and_say_so_wherever_they_are_shown() {
    let home = home();
    let (code, said, noted) = config(&home, &["set", "packages", r#"["npm:x"]"#]);
    assert_eq!((code, said.as_str()), (Some(0), "Saved packages in ~/.pi/agent/settings.json.\n"));
    let help = "Packages of extensions, skills, prompts and themes; kept, has no effect yet";
    assert_eq!(noted, format!("pi: packages: {help}\n"));
    let written: Value =
        serde_json::from_str(&fs::read_to_string(home.agent().join("settings.json")).unwrap()).unwrap();
    assert_eq!(written, json!({ "packages": ["npm:x"] }));
    let listed = "packages  [\"npm:x\"]  (your settings; no effect yet)\n";
    assert_eq!(config(&home, &["list", "--changed"]), done(listed));
    let (_, schema, _) = config(&home, &["schema"]);
    let schema: Value = serde_json::from_str(&schema).unwrap();
    assert_eq!(schema["properties"]["packages"]["description"], json!(help));
    let report = pi(&home, &["doctor"]).output().unwrap();
    let report = String::from_utf8(report.stdout).unwrap();
    assert!(report.contains("these settings are kept and have no effect"), "{report}");
    let pty = Pty::start(&home, Size::new(110, 30), &["--model", "demo/pi"]);
    pty.wait_idle();
    pty.keys("/settings packages\r");
    pty.wait("what it is for", |rows| rows.iter().any(|row| row.contains("kept, has no effect yet")));
}

#[test]
fn doctor_names_the_same_problems_of_files_inside_pi() {
    let home = home();
    let pty = Pty::start(&home, Size::new(160, 40), &["--model", "demo/pi", "--approve"]);
    pty.wait_idle();
    // The files are read when the report is asked for.
    fs::write(home.agent().join("settings.json"), r#"{"resize": "x", "defaultModle": "x"}"#).unwrap();
    fs::write(home.agent().join("auth.json"), "{").unwrap();
    for (folder, name) in [(home.agent().join("skills"), "mine"), (home.project().join(".pi/skills"), "its")]
    {
        fs::create_dir_all(folder.join(name)).unwrap();
        fs::write(folder.join(name).join("SKILL.md"), "---\n[\n---\n").unwrap();
    }
    pty.keys("/doctor\r");
    let problems =
        ["\"resize\" must", "defaultModle", "auth.json", "skills/mine/SKILL.md:2: the skill is not"];
    for problem in problems.into_iter().chain(["skills/its/SKILL.md:2: the skill is not"]) {
        pty.wait(problem, |rows| rows.iter().any(|row| row.contains(problem)));
    }
    let report = pi(&home, &["doctor"]).output().unwrap();
    let report = String::from_utf8(report.stdout).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
    for problem in problems {
        assert!(report.contains(problem), "{problem} is not in {report}");
    }
}

#[test]
fn doctor_lists_the_files_that_shape_a_session_if_the_project_is_trusted() {
    let home = home();
    let (agent, project) = (home.agent(), home.project());
    for file in ["prompts/a.md", "APPEND_SYSTEM.md", "skills/a/SKILL.md"].map(|name| agent.join(name)) {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, "---\nname: a\ndescription: It helps.\n---\nText.\n").unwrap();
    }
    fs::create_dir_all(project.join(".pi/prompts")).unwrap();
    fs::write(project.join(".pi/settings.json"), "{}").unwrap();
    fs::write(project.join(".pi/SYSTEM.md"), "You are terse.\n").unwrap();
    fs::write(project.join("AGENTS.md"), "Be kind.\n").unwrap();
    let listed = |trust: &str| {
        fs::write(agent.join("settings.json"), format!(r#"{{"defaultProjectTrust": "{trust}"}}"#)).unwrap();
        let report = String::from_utf8(pi(&home, &["doctor"]).output().unwrap().stdout).unwrap();
        let kinds = ["project settings", "instructions", "system prompt", "skills", "prompt templates"];
        let rows = report.lines().filter_map(|row| {
            let row = row.trim_start();
            let kind = kinds.into_iter().find(|kind| row.starts_with(kind))?;
            Some(format!(
                "{kind}: {}",
                row[kind.len()..].trim().replace(project.to_str().unwrap(), "PROJECT")
            ))
        });
        rows.collect::<Vec<_>>()
    };
    let always = [
        "project settings: PROJECT/.pi/settings.json",
        "instructions: PROJECT/AGENTS.md",
        "system prompt: PROJECT/.pi/SYSTEM.md",
        "system prompt: ~/.pi/agent/APPEND_SYSTEM.md",
        "skills: ~/.pi/agent/skills (1 file)",
        "prompt templates: ~/.pi/agent/prompts (1 file)",
        "prompt templates: PROJECT/.pi/prompts (0 files)",
    ];
    assert_eq!(listed("always"), always);
    assert_eq!(listed("never"), [always[1], always[3], always[4], always[5]]);
}

#[test]
fn problems_of_a_file_are_named_with_their_line() {
    let home = home();
    let text = "{\n  \"theem\": \"dark\",\n  \"retry\": {\n    \"enabled\": true,\n    \"maxRetries\": \"many\"\n  },\n  \"other\": 1\n}";
    fs::write(home.agent().join("settings.json"), text).unwrap();
    let (code, _, noted) = config(&home, &["list"]);
    assert_eq!(code, Some(0));
    assert_eq!(
        noted,
        "pi: ~/.pi/agent/settings.json:5: \"retry.maxRetries\" must be a whole number, 0 or more; using the default, 3\n\
         pi: ~/.pi/agent/settings.json:2: there is no setting \"theem\"; did you mean \"theme\"?\n"
    );
}

#[test]
fn schema_describes_every_setting() {
    let (code, text, _) = config(&home(), &["schema"]);
    assert_eq!(code, Some(0));
    let schema: Value = serde_json::from_str(&text).unwrap();
    let choice = &schema["properties"]["defaultThinkingLevel"];
    assert_eq!((&choice["enum"][0], &choice["default"]), (&json!("off"), &json!("medium")));
    assert_eq!(schema["properties"]["retry"]["properties"]["maxRetries"]["type"], "integer");
}

#[test]
fn the_list_changes_settings_in_place() {
    let home = home();
    let pty = Pty::start(&home, Size::new(100, 30), &["--model", "demo/pi"]);
    pty.wait_idle();
    pty.keys("/settings hidethink\r");
    pty.wait("the setting", |rows| {
        rows.iter().any(|row| row.starts_with("→ hideThinkingBlock") && row.contains("false"))
    });
    pty.keys("\r");
    pty.wait("the new value", |rows| rows.iter().any(|row| row.contains("true · your settings")));
    let read = || {
        serde_json::from_str::<Value>(&fs::read_to_string(home.agent().join("settings.json")).unwrap())
            .unwrap()
    };
    assert_eq!(read(), json!({ "hideThinkingBlock": true }));
    pty.keys("\x12");
    pty.wait("the default", |rows| {
        rows.iter().any(|row| row.starts_with("→ hideThinkingBlock") && row.trim_end().ends_with("false"))
    });
    assert_eq!(read(), json!({}));
}
